"""Fit the geometry of a mecanum base to its wheel angles and the poses of a body on it.

The Gauss-Newton method solves the model of `_model` for radii, size, lateral factor and sensor pose. Each step is a
`least_squares` fit of the innovations of a Kalman filter (`_filter`), whose noise is found from them; the scatter of
their parts gives weights, intervals and verdicts. Slip of the wheels against each other is no row (`_slip`). Where the
motion leaves differences of the radii open, they stay near the configured ones (`UNEQUAL`). A turn determines only the
lever, a combination of half length, half width and lateral factor; the configured ratio of the two lengths is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.calibration._model import Guess, lever, ratios, scaled_to
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.calibration._solution import ROUNDS, Solved, solve
from youbot_dynamics.identification.calibration._start import (
    TURNING_RADIUS,
    cut_windows,
    excitation,
    first_guess,
    wrong_unit,
)
from youbot_dynamics.identification.calibration._weights import PoseNoise, shrinkage
from youbot_dynamics.identification.calibration._wiring import miswired
from youbot_dynamics.identification.least_squares import (
    WIDEST_SHARE,
    ByName,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    Unknown,
    alike,
    confused,
    judge,
    student,
    undetermined,
    unsettled,
    widened,
)
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot_base import WHEELS

RADIUS = "wheel_radius"
RADIUS_ERROR = "wheel_radius_error"
LEVER = "lever"
LEVER_IN_WORDS = "the lever of a turn, half_length / lateral_factor + half_width"
LATERAL_FACTOR = "lateral_factor"
_MISPLACED = Reason(
    Kind.OTHER_EXPLANATION,
    "the wheels turn against each other in proportion to the motion: a wheel has another place, or its rollers another "
    "angle, than configured, and this has the same effect",
)
_SLIPPING = Reason(
    Kind.OTHER_EXPLANATION,
    "the wheels slip against each other in proportion to the motion, and how much each of them then moves the base is "
    "unknown",
)
_ASSUMED = Reason(
    Kind.NOT_EXCITED,
    "the poses do not show it: drive forward, sideways and turn; that the wheels hardly turn against each other does "
    "not show it, because stiff speed loops let unequal wheels slip",
)
_LIKE_OTHERS = Reason(
    Kind.NOT_EXCITED,
    "the radius of a wheel is hardly known, and that it is likely like those of the others changes this value",
)
_REASONS = None, _ASSUMED, _SLIPPING, _MISPLACED
_CHECK = "check order and signs of the wheels, and that the poses are of this robot with z up"
ALIKE = Reason(Kind.CONFUSED, "it cannot be distinguished from the others: the robot moved in one way only")

_WORST_SHARE = 0.3  # unexplained share of the motion above which the poses are not those of this robot
LIKELY = 2.0  # factor by which radius, lever and lateral factor may differ from the configured ones
_FARTHEST = 3.0  # largest plausible distance of the tracked body from the centre of the base, along an axis [m]
_NUISANCES = RADIUS_ERROR, "sensor_", "time_offset", "pose_smoothing"  # fitted together with the geometry
_EVEN = 0.002  # largest useful half-width of a radius error if all wheels are equal [1]
_STRONG = 0.015  # [s2] smoothing of the poses above which the model of it is too coarse: 0.1 % of the radius at 0.019
_USEFUL = 0.05  # relative half-width of a geometric value above which the data sheet is more accurate; of the place of
# the tracked body, as a share of the lever
_YAW_RESOLUTION, _OFFSET_RESOLUTION = 0.02, 0.01  # [rad, s] sufficient for any value


@dataclass(frozen=True, eq=False)
class Calibration(ByName):
    """The identified geometry."""

    # "wheel_radius" (mean of the wheels), "wheel_radius_error_fl" and so on (radius over mean, minus 1),
    # "wheel_radius_fl" and so on, "lever", "lateral_factor", "sensor_x", "sensor_y", "sensor_yaw" (pose of the tracked
    # body on the robot), "time_offset" (pose stamp minus wheel stamp of the same moment; "time_offset_0" and so on for
    # several recordings) and "pose_smoothing" (a pose differs from the motion by this [s2] times its acceleration: half
    # the variance of the times over which it is an average)
    estimates: tuple[Estimate, ...]
    base: MecanumBase  # kinematics with the identified values, and the configured ones elsewhere
    sensor: Vector  # (3,) fitted pose of the tracked body on the robot [m, m, rad]; 0 if the data do not show it
    offsets: Vector  # (r,) fitted time offsets of the recordings [s]
    smoothing: float  # fitted "pose_smoothing" [s2]
    of_past: bool = False  # whether the tracker averages over the past alone
    size_factor: float = 1.0  # identified over configured half_length and half_width; 1 if the lever is unknown
    noise: PoseNoise | None = None  # of the poses; None if nothing was fitted to them
    wiring: Reason | None = None  # wheels that are exchanged or reversed, or poses with a wrong sign; None if none is
    # Last step, over logarithms of radii, lever and lateral factor, then the others: correlation and condition.
    # None if there was nothing to fit.
    fit: Fit | None = None


def calibrate(recordings: Sequence[CalibrationSignals], base: MecanumBase) -> Calibration:
    """Calibrate the geometry of a base with n mecanum or omni wheels at any positions and roller angles.

    Args:
        recordings: of one robot with one tracker, its body in one place, each with its own number.
        base: configured base: initial guess, and the values that the data do not determine.

    Returns:
        Estimates with intervals and verdicts; all refused if the poses do not follow the wheels.

    Raises:
        InputError: the number of angle columns differs from the number of wheels, or no recording.
        ModelError: a steered wheel, which `calibrate_whole_way` knows.
    """
    base.refuse_steered("calibrate")
    n = len(base.radii)
    if not recordings or any(r.wheel_angles.shape[1] != n for r in recordings):
        columns = ", ".join(str(r.wheel_angles.shape[1]) for r in recordings) or "no recording"
        raise InputError("recordings", got=f"wheels {columns}", expected=f"{n} wheels in each")
    start = first_guess(recordings, base)
    short, windows, pieces = cut_windows(recordings, start)
    excited = excitation(short, start)
    unknowns = _changes(n, [signals.recording for signals in recordings])
    free = np.flatnonzero(excited.determined(n) + [True] * (len(recordings) + 1))
    reasons = excited.reasons(n, len(recordings) + 1)
    wiring = miswired(recordings, start)
    failure = wiring or wrong_unit(short, start)
    solved = None
    try:
        if failure is None and not all(reasons):
            solved = solve(pieces, windows, start, free, unknowns, excited)
            failure = _disagreement(solved, windows[0].span, base)
    except IdentificationError as exception:
        few = f"{exception.count} windows of {excited.span:g} s with motion; {exception.expected} are needed"
        failure = Reason(Kind.TOO_LITTLE_DATA, few)
    if failure is not None:
        reasons, solved = [failure] * len(unknowns), None
    found = _judged(base, start if solved is None else solved.guess, solved, unknowns, reasons)
    return replace(found, wiring=wiring)


def _changes(wheels: int, numbers: Sequence[int]) -> tuple[Unknown, ...]:
    """Unknowns of the linear model: changes of the current guess, without a lower bound on a useful size."""
    names = [f"{RADIUS}_{name}" for name in (WHEELS[:wheels] if wheels <= len(WHEELS) else range(wheels))]
    names += [LEVER, LATERAL_FACTOR, "sensor_x", "sensor_y", "sensor_yaw"]
    names += ["time_offset"] if len(numbers) == 1 else [f"time_offset_{number}" for number in numbers]
    names += ["pose_smoothing"]
    units = ["1"] * (wheels + 2) + ["m", "m", "rad"] + ["s"] * len(numbers) + ["s2"]
    return tuple(Unknown(name, unit, resolution=math.inf) for name, unit in zip(names, units, strict=True))


def _disagreement(solved: Solved, span: float, base: MecanumBase) -> Reason | None:
    """Why these poses cannot be those of this robot over windows of a `span` [s], None if they can."""
    guess, noise, deviations = solved.guess, solved.noise, np.sqrt(np.diag(solved.fit.covariance))
    motion = noise.motion
    unexplained = math.hypot(noise.position, TURNING_RADIUS * noise.yaw, float(np.mean(base.radii)) * noise.slip)
    n, shown = len(base.radii), ratios(guess.base, base)
    errors = [0.0, *np.nan_to_num(deviations[n : n + 2], posinf=0.0)]
    pairs = zip(shown.items(), errors, strict=True)
    far = [name for (name, ratio), error in pairs if abs(math.log(ratio)) - 2.0 * error > math.log(LIKELY)]
    distance = float(np.max(np.abs(guess.sensor[:2]) - 2.0 * np.nan_to_num(deviations[n + 2 : n + 4], posinf=0.0)))
    if unexplained > _WORST_SHARE * motion:
        return Reason(
            Kind.WRONG_SIGNALS,
            f"the poses do not follow the wheels: with {shown['wheel radius']:.3g} times the configured wheel radius, "
            f"{unexplained:.2g} m of a motion of {motion:.2g} m in windows of {span:g} s remain unexplained;"
            f" {_CHECK}",
        )
    if far:
        return Reason(
            Kind.WRONG_SIGNALS,
            f"the poses do not follow the wheels as configured: they show {shown[far[0]]:.3g} times the configured "
            f"{far[0]}; check the geometry in the robot file (a diameter for a radius, a whole length for a half), "
            "units, and order and signs of the wheels",
        )
    if distance > _FARTHEST:
        return Reason(
            Kind.WRONG_SIGNALS,
            f"the poses do not follow the wheels: the tracked body would be {np.hypot(*guess.sensor[:2]):.2g} m from "
            f"the centre of the base; {_CHECK}",
        )
    if not solved.settled:
        return unsettled(f"{ROUNDS} steps")
    smoothing = guess.smoothing
    if abs(smoothing) - 2.0 * deviations[-1] > _STRONG:
        return Reason(
            Kind.WRONG_SIGNALS,
            f"the poses are filtered: they differ from the motion by {smoothing:.2g} s2 times its acceleration, and "
            f"above {_STRONG:g} s2 this is not modelled well enough; record the poses without a filter",
        )
    return None


def _judged(
    base: MecanumBase,
    guess: Guess,
    solved: Solved | None,
    unknowns: Sequence[Unknown],
    reasons: Sequence[Reason | None],
) -> Calibration:
    """Convert the changes of the last step to values with verdicts, and to the calibrated base."""
    n = len(base.radii)
    causes = [next(filter(None, reasons[:n]), None)] * (1 + n) + list(reasons)
    fitted = None if solved is None else solved.fit
    reported = _reported(guess, [unknown.name for unknown in unknowns], solved)
    estimates = _with_joint_refusals(
        [_estimate(each, cause, solved) for each, cause in zip(reported, causes, strict=True)]
    )
    known = {estimate.name: estimate.value for estimate in estimates if estimate.identified}
    pattern = (
        np.array([quantity.value for quantity in reported[1 + n : 1 + 2 * n]])
        if all_radii_identified(estimates)
        else base.radii
    )
    mean = known.get(RADIUS, float(np.mean(base.radii)))
    lateral = known.get(LATERAL_FACTOR, base.lateral_factor)
    positions = scaled_to(base, known[LEVER], lateral) if LEVER in known else base.positions
    return Calibration(
        estimates,
        replace(base, positions=positions, radii=mean / np.mean(pattern) * pattern, lateral_factor=lateral),
        read_only(guess.sensor.copy()),
        read_only(guess.offsets.copy()),
        guess.smoothing,
        guess.of_past,
        float(np.sum(np.abs(positions)) / np.sum(np.abs(base.positions))),
        None if solved is None else solved.noise,
        fit=fitted,
    )


def _with_joint_refusals(estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
    """Refuse what was fitted together with a geometry that is refused: sensor, offsets, smoothing, radius errors."""
    known = {estimate.name: estimate for estimate in estimates}
    judged = []
    for estimate in estimates:
        required = (RADIUS, LEVER) if estimate.name in ("sensor_x", "sensor_y") else (RADIUS,)
        unidentified = [name for name in required if not known[name].identified]
        if unidentified and estimate.identified and estimate.name.startswith(_NUISANCES):
            text = f"it was fitted together with the {unidentified[0]}, which is {known[unidentified[0]].verdict}"
            estimate = estimate.refused(Reason(Kind.DEPENDS, text))
        judged.append(estimate)
    return tuple(judged)


def all_radii_identified(estimates: Sequence[Estimate]) -> bool:
    """Whether the radius errors of all wheels are identified, so that they can be used."""
    errors = [estimate.identified for estimate in estimates if estimate.name.startswith(RADIUS_ERROR)]
    return bool(errors) and all(errors)


class _Reported(NamedTuple):
    """A reported value and its slope (p,) over the unknowns."""

    unknown: Unknown
    value: float
    slope: Vector
    slipped: float = 0.0  # its change by a slip that is as large as the motion
    moved: float = 0.0  # its change by `_likely_radii`


def _reported(guess: Guess, names: Sequence[str], solved: Solved | None) -> list[_Reported]:
    """Mean radius r, relative errors e_i = r_i / r - 1 of the n radii, then the values of the other unknowns.

    The first unknowns are ln r_i, so dr = sum of r_i / n d ln r_i and de_i = r_i / r (d ln r_i - sum of r_j / (n r) d
    ln r_j). The radii are the likely ones of `_likely_radii`. The verdict is on the differences of all wheels together,
    so an error that happens to be zero is as well known as the others.
    """
    n, offsets = len(guess.base.radii), len(guess.offsets)
    fitted = guess.base.radii
    radii = fitted if solved is None else _likely_radii(fitted, solved)
    mean, zeros = float(np.mean(radii)), np.zeros(len(names) - n)
    errors = radii / mean - 1.0
    moves = mean - float(np.mean(fitted)), errors - fitted / float(np.mean(fitted)) + 1.0
    radius = Unknown(RADIUS, "m", share=_USEFUL)
    reported = [_Reported(radius, mean, np.concatenate([radii / n, zeros]), slipped=mean, moved=moves[0])]
    error_slopes = (radii / mean)[:, None] * (np.eye(n) - radii / (n * mean))
    rows = np.column_stack([error_slopes, np.tile(zeros, (n, 1))])
    resolution = max(_EVEN, WIDEST_SHARE * math.sqrt(float(np.mean(errors**2))))
    for name, error, row, moved in zip(names[:n], errors.tolist(), rows, moves[1].tolist(), strict=True):
        unknown = Unknown(name.replace(RADIUS, RADIUS_ERROR), "1", resolution=resolution)
        reported.append(_Reported(unknown, error, row, slipped=1.0, moved=moved))
    size = lever(guess.base), guess.base.lateral_factor
    values = np.concatenate([radii, size, guess.sensor, guess.offsets, [guess.smoothing]])
    slopes_ = np.diag(np.concatenate([values[: n + 2], np.ones(len(names) - n - 2)]))
    units = ["m"] * (n + 1) + ["1", "m", "m", "rad"] + ["s"] * offsets + ["s2"]
    resolutions = [0.0] * (n + 2) + [_USEFUL * size[0]] * 2 + [_YAW_RESOLUTION] + [_OFFSET_RESOLUTION] * offsets
    resolutions.append(_STRONG)
    # The place of the body suffers the mean of what the wheels do.
    slipped = [*radii, *size, *(np.array([size[0], size[0], 1.0]) / math.sqrt(n)), *np.zeros(offsets + 1)]
    moved = [*(radii - fitted), *np.zeros(len(names) - n)]
    for name, unit, value, slope, fine, *changes in zip(
        names, units, values.tolist(), slopes_, resolutions, slipped, moved, strict=True
    ):
        unknown = Unknown(name, unit, resolution=fine, share=WIDEST_SHARE if fine else _USEFUL)
        reported.append(_Reported(unknown, value, slope, *changes))
    return reported


def _likely_radii(radii: Vector, solved: Solved) -> Vector:
    """Radii (n,) [m] as they most likely are, for fitted ones; those that are well known hardly differ from these.

    The errors of their logarithms are those of the fit with its rivals, in the directions that the fit leaves open.
    """
    n = len(radii)
    rows = np.pad(np.eye(n), ((0, 0), (0, len(solved.fit.unknowns) - n)))
    errors = np.array([math.hypot(solved.fit.error_of(row), *_by_rivals(row, 1.0, solved)) for row in rows])
    if not np.all(np.isfinite(errors)):
        return radii
    parts = solved.influence[:n] @ solved.influence[:n].T + solved.assumed[:n] @ solved.assumed[:n].T
    parts += solved.fit.covariance[:n, :n] + (solved.slip.loads**2 + solved.slip.unexplained**2) * np.eye(n)
    scale = errors / np.sqrt(np.maximum(np.diag(parts), 1e-300))
    return np.asarray(radii * np.exp(shrinkage(np.log(radii), parts * np.outer(scale, scale))))


def _estimate(reported: _Reported, reason: Reason | None, solved: Solved | None) -> Estimate:
    """Estimate of a value; `reason` states why it cannot be identified, None if it may be."""
    unknown = reported.unknown
    if reason is not None or solved is None:
        return undetermined(unknown, reason)
    linear_fit, used = solved.fit, reported.slope != 0.0
    names = np.array([fitted.name for fitted in linear_fit.unknowns])
    covariance = linear_fit.covariance[np.ix_(used, used)]
    if np.any(np.isnan(covariance)):
        linear = next(fitted for fitted in linear_fit.estimates if fitted.name in names[used] and not fitted.identified)
        return undetermined(unknown, linear.reason)
    by_filter = reported.slope @ solved.unmodelled, reported.slope @ solved.other
    error = math.hypot(linear_fit.error_of(reported.slope), *map(float, by_filter))
    if not math.isfinite(error):
        return undetermined(unknown, ALIKE)
    multiple, hint = linear_fit.half_width(1.0), ""
    if np.sum(used) == 1:
        hint = confused(alike(names.tolist(), linear_fit.correlation)[int(np.flatnonzero(used)[0])])
    judged = judge(unknown, reported.value, error, multiple * error, hint)
    changes = _by_rivals(reported.slope, reported.slipped, solved)
    further = math.sqrt(max(reported.moved**2 - error**2 - sum(change**2 for change in changes), 0.0))
    pairs = zip((*_REASONS, _LIKE_OTHERS), (*changes, further), strict=True)
    return widened([judged], [unknown], [Rival(why, {unknown.name: change}) for why, change in pairs], multiple)[0]


def _by_rivals(slope: Vector, slipped: float, solved: Solved) -> tuple[float, float, float, float]:
    """Errors of a value for each of `_REASONS`: what lasts, radii that are equal only by assumption, two kinds of slip.

    Errors of odometry (rollers, bounces, creep) last for seconds, longer than the blocks of the fit. What is left by
    the fit, which follows few parts, is scaled up by what it took (MacKinnon and White 1985, HC2).

    Args:
        slope: (p,) of the value over the unknowns.
        slipped: as of `_Reported`.
        solved: the fit.
    """
    count, within = solved.influence.shape[1], solved.fit.within.error_of(slope)
    lasting = float(np.linalg.norm(slope @ solved.influence))
    lasting *= student(max(count - 1, 2)) / solved.fit.half_width(1.0)
    return (
        math.sqrt(max(lasting**2 - within**2, 0.0)),
        float(np.linalg.norm(slope @ solved.assumed)),
        slipped * solved.slip.loads,
        slipped * solved.slip.unexplained,
    )
