"""Fit the geometry of a mecanum base to its wheel angles and the poses of a body on it.

The Gauss-Newton method solves the model of `_model` for radii, size, lateral factor and sensor pose. Each step is a
`least_squares` fit of the linearised model over windows of about 2 s; their scatter gives weights, intervals and
verdicts. Rows are scaled by standard deviations of position, yaw and slip, estimated from the residuals. Outlying
poses (a tracker that lost its body) get small weights. A turn determines only the lever, a combination of half length,
half width and lateral factor; the configured ratio of the two lengths is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Indices, Vector, read_only
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.calibration._model import Guess, Windows, lever, residuals, scaled_to, slopes
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.calibration._start import (
    TURNING_RADIUS,
    cut_windows,
    excitation,
    first_guess,
    tracked_over_rolled,
)
from youbot_dynamics.identification.least_squares import (
    WIDEST_SHARE,
    Estimate,
    Fit,
    Rows,
    Unknown,
    accumulate,
    alike,
    fit,
    judge,
    merge,
    refusal,
    undetermined,
)
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot_base import WHEELS, BaseGeometry

RADIUS = "wheel_radius"
RADIUS_ERROR = "wheel_radius_error"
LEVER = "lever"
LEVER_IN_WORDS = "the lever of a turn, half_length / lateral_factor + half_width"
LATERAL_FACTOR = "lateral_factor"
ALIKE = "it cannot be distinguished from the others: the robot moved in one way only"

_SPAN = 2.0  # length of the windows [s]; longer if poses are rare, half of it if the recordings are short
_ROUNDS = 30
_SETTLED = 0.02  # the fit has converged if no unknown changes by more [standard errors]
_NOTHING = 1e-10  # negligible change of an unknown [1, m, rad, s]
_CURVED = 0.5  # change up to which the slopes of the previous iteration are reused [standard errors]
# By unit: standard error for white residuals above which a step is damped.
_WIDTHS = {"1": 0.05, "m": 0.2, "rad": 0.1, "s": 0.1}
_FAR = 4.0  # standard deviations above which the weight of a pose decreases
_MEDIAN_TO_DEVIATION = 1.4826  # of normal residuals
_FIRST_SCALES = np.array([0.02, 0.05, 0.2])  # [m, rad, rad]
_SMALLEST = np.array([1e-4, 1e-4, 1e-4])  # smallest plausible scatter [m, rad, rad]
_WORST_SHARE = 0.3  # unexplained share of the motion above which the poses are not those of this robot
LIKELY = 2.0  # factor by which a radius may differ from the configured one
_ANOTHER_UNIT = 4.0  # ratio of distances by poses and by wheels above which a unit is wrong
CREEP = 0.0004  # apparent radius error (relative) from contact creep under unequal loads: 0.0002 to 0.0004 in MuJoCo
_EVEN = 0.002  # largest useful half-width of a radius error if all wheels are equal [1]
_USEFUL = 0.05  # relative half-width of a geometric value above which the data sheet is more accurate
_LEVER_RESOLUTION, _YAW_RESOLUTION, _OFFSET_RESOLUTION = 0.02, 0.02, 0.01  # [m, rad, s] sufficient for any value


@dataclass(frozen=True, eq=False)
class Calibration:
    """The identified geometry."""

    # "wheel_radius" (mean of the wheels), "wheel_radius_error_fl" and so on (radius over mean, minus 1),
    # "wheel_radius_fl" and so on, "lever", "lateral_factor", "sensor_x", "sensor_y", "sensor_yaw" (pose of the tracked
    # body on the robot) and "time_offset" (pose stamp minus wheel stamp of the same moment; "time_offset_0" and so on
    # for several recordings)
    estimates: tuple[Estimate, ...]
    base: MecanumBase  # kinematics with the identified values, and the configured ones elsewhere
    sensor: Vector  # (3,) fitted pose of the tracked body on the robot [m, m, rad]; 0 if the data do not show it
    offsets: Vector  # (r,) fitted time offsets of the recordings [s]
    size_factor: float = 1.0  # identified over configured half_length and half_width; 1 if the lever is unknown
    # Last step, over logarithms of radii, lever and lateral factor, then sensor and offsets: correlation and condition.
    # None if there was nothing to fit.
    fit: Fit | None = None

    def __getitem__(self, name: str) -> Estimate:
        """Estimate of one value by its name."""
        return {estimate.name: estimate for estimate in self.estimates}[name]


def calibrate(recordings: Sequence[CalibrationSignals], base: MecanumBase) -> Calibration:
    """Calibrate the geometry of a base with n mecanum or omni wheels at any positions and roller angles.

    Args:
        recordings: of one robot with the tracked body in one place, each with its own number.
        base: configured base: initial guess, and the values that the data do not determine.

    Returns:
        Estimates with intervals and verdicts; all refused if the poses do not follow the wheels.

    Raises:
        InputError: the number of angle columns differs from the number of wheels, or no recording.
    """
    n = len(base.radii)
    if not recordings or any(r.wheel_angles.shape[1] != n for r in recordings):
        columns = ", ".join(str(r.wheel_angles.shape[1]) for r in recordings) or "no recording"
        raise InputError("recordings", got=f"wheels {columns}", expected=f"{n} wheels in each")
    start = first_guess(recordings, base)
    windows = cut_windows(recordings, start, _SPAN)
    told = excitation(windows, start)
    unknowns = _changes(n, [signals.recording for signals in recordings])
    asked = np.flatnonzero(told.asked(n) + [True] * len(recordings))
    reasons = told.reasons(n, len(recordings))
    strange = _wrong_unit(windows, start)
    solved = None
    try:
        if not strange and not all(reasons):
            solved = _solve(windows, start, asked, unknowns)
            strange = _disagreement(windows, solved, base)
    except IdentificationError as too_little:
        count = too_little.got.split()[0]
        strange = f"{count} windows of {windows[0].span:g} s with motion; {too_little.expected} are needed"
    if strange:
        reasons, solved = [strange] * len(unknowns), None
    return _judged(base, start if solved is None else solved.guess, solved, unknowns, reasons)


def _changes(wheels: int, numbers: Sequence[int]) -> tuple[Unknown, ...]:
    """Unknowns of the linear model: changes of the current guess, without a lower bound on a useful size."""
    names = [f"{RADIUS}_{name}" for name in (WHEELS[:wheels] if wheels <= len(WHEELS) else range(wheels))]
    names += [LEVER, LATERAL_FACTOR, "sensor_x", "sensor_y", "sensor_yaw"]
    names += ["time_offset"] if len(numbers) == 1 else [f"time_offset_{number}" for number in numbers]
    units = ["1"] * (wheels + 2) + ["m", "m", "rad"] + ["s"] * len(numbers)
    return tuple(Unknown(name, unit, resolution=math.inf) for name, unit in zip(names, units, strict=True))


@dataclass(frozen=True, eq=False)
class _Solved:
    """Converged fit: the solution, the fit of the last step, scatter (3,) of position, yaw and slip."""

    guess: Guess
    fit: Fit
    scales: Vector


def _solve(windows: Sequence[Windows], start: Guess, asked: Indices, unknowns: Sequence[Unknown]) -> _Solved:
    """Gauss-Newton iterations; each uses weights and scales from the residuals of the previous one.

    Raises:
        IdentificationError: too few windows.
    """
    guess, scales = start, _FIRST_SCALES
    weights = [np.ones((len(part.rows), 2)) for part in windows]
    slope_of: list[Vector] = []
    farthest = math.inf  # change in the last iteration, in standard errors
    for _ in range(_ROUNDS):
        left = _residuals(windows, guess, weights, scales)
        scales = _scatter(left)
        weights = [_fading(part, one, scales, guess) for part, one in zip(windows, left, strict=True)]
        left = _residuals(windows, guess, weights, scales)
        if farthest > _CURVED:
            slope_of = [slopes(part, guess, k, weights[k], scales, asked) for k, part in enumerate(windows)]
        pieces = []
        for k, (part, slope) in enumerate(zip(windows, slope_of, strict=True)):
            by = np.sqrt(weights[k])[:, [0, 0, 0] + [1] * (slope.shape[1] - 3)]
            by /= scales[[0, 0, 1] + [2] * (slope.shape[1] - 3)]
            time = np.repeat(part.spread(part.keys.astype(np.float64) + 0.5), slope.shape[1]) * part.span
            rows = (slope * by[:, :, None]).reshape(-1, slope.shape[2])
            pieces.append(Rows(time, -rows, (left[k] * by).ravel(), recording=k, block=part.span))
        found, change = _step(pieces, unknowns)
        guess = guess.moved(change)
        errors = np.sqrt(np.diag(found.covariance))
        known = np.isfinite(errors) & (np.abs(change) > _NOTHING)
        with np.errstate(divide="ignore"):
            farthest = float(np.max(np.abs(change[known]) / errors[known], initial=0.0))
        if farthest <= _SETTLED:
            break
    return _Solved(guess, found, scales)


def _step(pieces: Sequence[Rows], unknowns: Sequence[Unknown]) -> tuple[Fit, Vector]:
    """Fit the linearised model; return the fit and the damped change (p,) of the guess.

    Levenberg damping: it converges to the same solution as undamped steps, and does not diverge along undetermined
    directions.

    Raises:
        IdentificationError: too few windows.
    """
    sums = merge([accumulate(piece) for piece in pieces])
    found = fit(sums, unknowns, lambda: pieces)
    total = np.einsum("k,kij->ij", found.weights, sums.products())
    damping = np.diag([_WIDTHS[unknown.unit] ** -2 for unknown in unknowns])
    return found, np.linalg.solve(total[:, :-1] + damping, total[:, -1])


def _residuals(windows: Sequence[Windows], guess: Guess, weights: Sequence[Vector], scales: Vector) -> list[Vector]:
    """Residuals (m, 3 + n) of each recording."""
    pairs = zip(windows, guess.offsets.tolist(), weights, strict=True)
    return [residuals(part, guess, offset, by, scales) for part, offset, by in pairs]


def _scatter(left: Sequence[Vector]) -> Vector:
    """Standard deviations (3,) of position [m], yaw and slip [rad], from medians, which are robust to outliers."""
    table = np.abs(np.vstack(left))
    medians = [np.median(table[:, columns]) for columns in (slice(0, 2), 2, slice(3, None))]
    scales: Vector = np.maximum(_MEDIAN_TO_DEVIATION * np.array(medians), _SMALLEST)
    return scales


def _fading(part: Windows, left: Vector, scales: Vector, guess: Guess) -> Vector:
    """Weights (m, 2) of poses and slips from residuals (m, 3 + n): 1, and (4 / deviations)^4 beyond 4 deviations.

    A wheel that slips by e leaves a residual of e / 2 and moves the base by e / 4 along each axis. The effect is
    not symmetric, so radii fitted to it are 0.1 % too small. Poses are weighted as if half the slip of
    their window added to their scatter.
    """
    pose = np.max(np.abs(left[:, :3]) / scales[[0, 0, 1]], axis=1)
    slip = np.max(np.abs(left[:, 3:]) / scales[2], axis=1)
    weights = np.asarray((_FAR / np.maximum(np.column_stack([pose, slip]), _FAR)) ** 4)
    slid = 0.5 * np.mean(guess.base.radii) * np.sqrt(part.sums(np.sum(left[:, 3:] ** 2, axis=1)) / part.counts)
    weights[:, 0] /= 1.0 + (part.spread(slid) / scales[0]) ** 2
    return weights


def _wrong_unit(windows: Sequence[Windows], start: Guess) -> str:
    """Why wheels or poses have a wrong unit, "" if they may be in rad and m."""
    ratio = tracked_over_rolled(windows, start)
    if 1.0 / _ANOTHER_UNIT < ratio < _ANOTHER_UNIT:
        return ""
    return (
        f"the poses show {ratio:.3g} times the distance that the configured wheels rolled: check that the wheel "
        "positions are in rad and the poses in m"
    )


def _disagreement(windows: Sequence[Windows], solved: _Solved, base: MecanumBase) -> str:
    """Why these poses cannot be those of this robot, "" if they can."""
    ratio = float(np.mean(solved.guess.base.radii / base.radii))
    ways = []
    for part in windows:
        poses = part.signals.poses
        places = np.column_stack([poses[:, :2], TURNING_RADIUS * np.unwrap(poses[:, 2])])[part.rows]
        ways.append(places - part.spread(part.sums(places) / part.counts[:, None]))
    motion = math.sqrt(float(np.mean(np.sum(np.vstack(ways) ** 2, axis=1))))
    left = math.hypot(float(solved.scales[0]), TURNING_RADIUS * float(solved.scales[1]))
    if left <= _WORST_SHARE * motion and 1.0 / LIKELY < ratio < LIKELY:
        return ""
    return (
        f"the poses do not follow the wheels: with {ratio:.3g} times the configured wheel radius, {left:.2g} m of a "
        f"motion of {motion:.2g} m in windows of {windows[0].span:g} s remain unexplained; check order and signs of "
        "the wheels, and that the poses are of this robot with z up"
    )


def _judged(
    base: MecanumBase, guess: Guess, solved: _Solved | None, unknowns: Sequence[Unknown], reasons: Sequence[str]
) -> Calibration:
    """Convert the changes of the last step to values with verdicts, and to the calibrated base."""
    n = len(base.radii)
    why = [next((reason for reason in reasons[:n] if reason), "")] * (1 + n) + list(reasons)
    fitted = None if solved is None else solved.fit
    asked = _asked(guess, [unknown.name for unknown in unknowns], fitted)
    pairs = zip(asked, why, strict=True)
    estimates = _with_what_they_stand_on([_estimate(value, reason, fitted) for value, reason in pairs])
    known = {estimate.name: estimate.value for estimate in estimates if estimate.identified}
    pattern = np.array([one.value for one in asked[1 + n : 1 + 2 * n]]) if wheels_told_apart(estimates) else base.radii
    mean = known.get(RADIUS, float(np.mean(base.radii)))
    lateral = known.get(LATERAL_FACTOR, base.lateral_factor)
    positions = scaled_to(base, known[LEVER], lateral) if LEVER in known else base.positions
    return Calibration(
        estimates,
        replace(base, positions=positions, radii=mean / np.mean(pattern) * pattern, lateral_factor=lateral),
        read_only(guess.sensor.copy()),
        read_only(guess.offsets.copy()),
        float(np.sum(np.abs(positions)) / np.sum(np.abs(base.positions))),
        fitted,
    )


def _with_what_they_stand_on(estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
    """Refuse sensor pose, offsets and relative radius errors if the geometry they were fitted with is refused."""
    known = {estimate.name: estimate for estimate in estimates}
    judged = []
    for one in estimates:
        needed = (RADIUS, LEVER) if one.name in ("sensor_x", "sensor_y") else (RADIUS,)
        lacking = [name for name in needed if not known[name].identified]
        if lacking and one.identified and one.name.startswith((RADIUS_ERROR, "sensor_", "time_offset")):
            text = f"it was fitted together with the {lacking[0]}, which is {known[lacking[0]].verdict}"
            one = replace(one, verdict=refusal(text))
        judged.append(one)
    return tuple(judged)


def wheels_told_apart(estimates: Sequence[Estimate]) -> bool:
    """Whether the radius errors of all wheels are identified, so that they can be used."""
    return all(one.identified for one in estimates if one.name.startswith(RADIUS_ERROR))


class _Asked(NamedTuple):
    """A reported value, its slope (p,) over the unknowns, and the relative error above which it is useless."""

    unknown: Unknown
    value: float
    slope: Vector
    share: float
    more: float = 0.0  # variance in addition to that of the unknowns


def shrinkage(errors: Vector, variance: float) -> float:
    """Factor from 0 to 1 by which radius errors (n,) are shrunk towards 0 by empirical Bayes.

    The radii are modelled as random about their mean. Their variance is estimated by moments: sum of e^2 / (n - 1)
    minus the variance of one error, from fit and contact creep.

    Source: Efron and Morris 1975, with n - 1 instead of n - 3.
    """
    both = variance + CREEP**2
    return float(min(1.0, both * (len(errors) - 1) / max(float(errors @ errors), 1e-300)))


def _asked(guess: Guess, names: Sequence[str], found: Fit | None) -> list[_Asked]:
    """Mean radius r, relative errors e_i = r_i / r - 1 of the n radii, then the values of the other unknowns.

    The first unknowns are ln r_i, so dr = sum of r_i / n d ln r_i and de_i = r_i / r (d ln r_i - sum of r_j / (n r) d
    ln r_j). Errors, and with them the radii, are shrunk; the mean shift, and the creep that they
    may be, count as additional errors. The verdict is
    on the differences of all wheels together, so an error that happens to be zero is as well known as the others.
    """
    n, offsets = len(guess.base.radii), len(guess.offsets)
    mean, nothing = float(np.mean(guess.base.radii)), np.zeros(len(names) - n)
    asked = [_Asked(Unknown(RADIUS, "m"), mean, np.concatenate([guess.base.radii / n, nothing]), _USEFUL)]
    of_radii = (guess.base.radii / mean)[:, None] * (np.eye(n) - guess.base.radii / (n * mean))
    errors = guess.base.radii / mean - 1.0
    rows = np.column_stack([of_radii, np.zeros((n, len(names) - n))])
    variance = math.nan if found is None else sum(found.error_of(row) ** 2 for row in rows) / (n - 1)
    share = shrinkage(errors, variance) if math.isfinite(variance) else 0.0
    moved = share**2 * float(np.mean(errors**2)) + (1.0 - share) * CREEP**2
    errors *= 1.0 - share
    radii = mean * (1.0 + errors)
    resolution = max(_EVEN, WIDEST_SHARE * math.sqrt(float(np.mean(errors**2))))
    for name, error, slope in zip(names[:n], errors.tolist(), math.sqrt(1.0 - share) * of_radii, strict=True):
        unknown = Unknown(name.replace(RADIUS, RADIUS_ERROR), "1", resolution=resolution)
        asked.append(_Asked(unknown, error, np.concatenate([slope, nothing]), math.inf, moved))
    values = np.concatenate([radii, [lever(guess.base), guess.base.lateral_factor], guess.sensor, guess.offsets])
    slopes_ = np.diag(np.concatenate([values[: n + 2], np.ones(len(names) - n - 2)]))
    units = ["m"] * (n + 1) + ["1", "m", "m", "rad"] + ["s"] * offsets
    good = [0.0] * (n + 2) + [_LEVER_RESOLUTION] * 2 + [_YAW_RESOLUTION] + [_OFFSET_RESOLUTION] * offsets
    more = [mean**2 * moved] * n + [0.0] * (len(names) - n)
    for name, unit, value, slope, fine, own in zip(names, units, values.tolist(), slopes_, good, more, strict=True):
        asked.append(_Asked(Unknown(name, unit, resolution=fine), value, slope, math.inf if fine else _USEFUL, own))
    return asked


def _estimate(asked: _Asked, reason: str, found: Fit | None) -> Estimate:
    """Estimate of a value with its verdict; `reason` states why it cannot be identified, "" if it may be."""
    unknown = asked.unknown
    if reason or found is None:
        return undetermined(unknown, reason)
    used = asked.slope != 0.0
    names = np.array([one.name for one in found.unknowns])
    covariance = found.covariance[np.ix_(used, used)]
    if np.any(np.isnan(covariance)):
        linear = next(one for one in found.estimates if one.name in names[used] and not one.identified)
        return undetermined(unknown, linear.verdict.removeprefix(refusal("")))
    error = math.hypot(found.error_of(asked.slope), math.sqrt(asked.more))
    if not math.isfinite(error):
        return undetermined(unknown, ALIKE)
    reach = found.half_width(error)
    relatives = alike(names.tolist(), found.correlation)[int(np.flatnonzero(used)[0])] if np.sum(used) == 1 else []
    judged = judge(unknown, asked.value, error, reach, relatives)
    if judged.identified and reach > asked.share * abs(asked.value):
        share = 100.0 * reach / abs(asked.value)
        text = f"it is known only to +-{share:.2g} %; {100.0 * _USEFUL:g} % is needed to improve on the data sheet"
        told = f"; it cannot be distinguished from {', '.join(relatives)} in these data" if relatives else ""
        return replace(judged, verdict=refusal(text + told))
    return judged


def named_estimates(found: Calibration, geometry: BaseGeometry) -> dict[str, Estimate]:
    """Estimates by their name in the result.

    `robot.base.geometry.wheel_radius` is the mean of the wheels. `wheel_radius_error_fl` and so on are relative to this
    mean; they are parameters if all are identified (`wheels_told_apart`). Otherwise the robot keeps its errors, and the
    written radius is the one that gives the identified mean with them. Of `half_length` and `half_width` the motion
    shows only the lever: each is refused on its own, with the value of the configured ratio that gives the identified
    lever. Of omni wheels the lever is `wheel_distance`. Lever, radius of each wheel, pose of the tracked body and clock
    offset are listed under `base.geometry`, because the robot has no parameter for them.

    Args:
        found: the calibration of a base made from `geometry`.
        geometry: as configured.
    """
    apart = wheels_told_apart(found.estimates)
    common = 1.0 if apart else 1.0 / (1.0 + float(np.mean(geometry.wheel_radius_errors)))
    parameters = "robot.base.geometry"
    named = {f"{parameters}.{RADIUS}": _share(found[RADIUS], RADIUS, common)}
    whole = found[LEVER]
    if geometry.wheel_distance > 0.0:
        named[f"{parameters}.wheel_distance"] = replace(whole, name="wheel_distance")
    for name in ("half_length", "half_width") if geometry.wheel_distance == 0.0 else ():
        half = undetermined(Unknown(name, "m"), whole.verdict.removeprefix(refusal("")))
        if whole.identified:
            text = f"the motion determines only {LEVER_IN_WORDS}; this value keeps the configured ratio of the two"
            half = replace(half, value=found.size_factor * getattr(geometry, name), verdict=refusal(text))
        named[f"{parameters}.{name}"] = half
    for estimate in found.estimates:
        if estimate.name != RADIUS and not (estimate.name == LEVER and geometry.wheel_distance > 0.0):
            known = estimate.name == LATERAL_FACTOR or (apart and estimate.name.startswith(RADIUS_ERROR))
            named[f"{parameters if known else 'base.geometry'}.{estimate.name}"] = estimate
    return named


def _share(whole: Estimate, name: str, share: float) -> Estimate:
    """Estimate of a fixed share of another estimate."""
    low, high = (share * end for end in whole.interval)
    error = share * whole.standard_error
    return replace(whole, name=name, value=share * whole.value, standard_error=error, interval=(low, high))
