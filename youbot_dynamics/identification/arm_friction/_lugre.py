"""Stiffness of a joint's bristles from reversals, and their damping if the rate of readings is high enough.

When a joint reverses, its friction is a function of position, not of time: it changes from +coulomb to -coulomb along
coulomb (1 - 2 exp(-sigma0 x / coulomb)), x the distance since the reversal; with a Stribeck curve the torque at which
it slides depends on the speed. sigma0 is observable only there. sigma1 acts on the rate of the deflection for some
milliseconds, so 50 Hz is too slow to estimate it.

Source: systems 9, 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar, nnls

from youbot_dynamics.arrays import Indices, Vector, rms, usual_step
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction
from youbot_dynamics.identification.arm_friction._regressors import (
    columns_of_joints,
    with_inertial_parameters,
)
from youbot_dynamics.identification.arm_friction._rows import PARTS
from youbot_dynamics.identification.arm_friction._windows import near_turns, noise_of, reading_noise, reversal_pieces
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Kind,
    Reason,
    Rival,
    Rows,
    Unknown,
    judge,
    least_squares,
    undetermined,
    widened,
)
from youbot_dynamics.identification.signals import ArmSignals, even_stamps

_MOST_READINGS = 4000  # readings of a reversal
_FEWEST = 6
_ACCELERATION_MEAN = 0.02  # averaging time of positions before they are differentiated to accelerations [s]
_POSITION_MEAN = 0.008  # shortest averaging time of positions in the path of the bristle [s]
_ACCELERATION_SPAN = 0.05  # between the positions that tell the acceleration of a reversal [s]
_REFINEMENT = 8  # cubic interpolation points between two readings, since the turning point falls between readings


@dataclass(frozen=True, eq=False)
class Reversals:
    """r readings near reversals of one joint in all recordings; the mean friction of each reversal is subtracted."""

    count: int  # of reversals
    number: Indices  # (r,) number of the reversal of each reading
    torque: Vector  # (r,) friction without its viscous part, minus its mean over the reversal [N m]
    distance: Vector  # (r,) distance since the reversal, negative before it [rad]
    paths: list[Vector]  # positions on a finer grid, one array per recording [rad]
    steps: list[Vector]  # times of these grids [s]
    levels: list[Vector]  # torque at which the joint slides there, over the Coulomb torque
    indices: Indices  # (r,) index of each reading in the grid of its recording
    recording: Indices  # (r,) index of the recording of each reading
    rate: float  # readings per second
    delay: float  # of the efforts, by which they were taken back [s]
    lag: float = 0.0  # of a filter of the efforts, if that is their delay [s]

    def columns(self, steepness: float) -> Vector:
        """Columns (r, 2) of the Coulomb torque and of sigma1, for a steepness sigma0 / coulomb [1/rad].

        They are the deflection relative to that under the Coulomb torque, and its rate, each minus its mean over the
        reversal.
        Where bristles swing back quickly, their damping is as large as their stiffness; without it, sigma0 was up to
        three times too large. It is therefore always fitted, although only fast readings determine its value.
        """
        shares, rates = np.empty(len(self.number)), np.empty(len(self.number))
        for k, (path, level, time) in enumerate(zip(self.paths, self.levels, self.steps, strict=True)):
            share = np.empty(len(path))
            bend(path, level, steepness, share)
            share = _filtered(share, time, self.lag)
            selected = self.recording == k
            shares[selected] = share[self.indices[selected]]
            rates[selected] = np.gradient(share, time)[self.indices[selected]]
        return np.column_stack(
            [_minus_group_mean(self.number, shares), _minus_group_mean(self.number, rates) / steepness]
        )


def _filtered(values: Vector, time: Vector, lag: float) -> Vector:
    """Values (s,) at times (s,) [s] through a filter of first order, taken back by its `lag` [s]; 0 for none."""
    if lag <= 0.0:
        return values
    from scipy.signal import lfilter  # only here: every command would need 0.9 s more

    share = 1.0 - math.exp(-usual_step(time) / lag)
    late = lfilter([share], [1.0, share - 1.0], values)
    return np.asarray(np.interp(time + lag, time, late))


def _minus_group_mean(number: Indices, values: Vector) -> Vector:
    """Values (r,) minus the mean of those with the same number (r,)."""
    _, index, counts = np.unique(number, return_inverse=True, return_counts=True)
    return values - (np.bincount(index, values) / counts)[index]


@compiled
def bend(path: Vector, level: Vector, steepness: float, share: Vector) -> None:
    """Write the relative deflection (s,) of a bristle along a path (s,) [rad]; it starts relaxed.

    It is exact between the points, between which the joint slides at `level` (s,) times the Coulomb torque: 1 without a
    Stribeck curve. The steepness is sigma0 / coulomb [1/rad].

    Source: systems 9, 10.
    """
    deflection = 0.0
    share[0] = 0.0
    for k in range(1, len(path)):
        step = path[k] - path[k - 1]
        if step != 0.0:
            end = level[k] if step > 0.0 else -level[k]
            deflection = end + (deflection - end) * np.exp(-steepness * abs(step) / level[k])
        share[k] = deflection


def near_reversals(
    recordings: Sequence[ArmSignals], found: ArmFriction, joint: int, longer: float = 1.0
) -> Reversals | None:
    """Readings near the reversals of joint number `joint` in `found.rows`; None without reversals.

    Angles are averaged `longer` by this factor than their noise demands.

    Identified weight, inertia and viscous friction of the arm are subtracted, and the efforts are taken back by their
    identified delay: late efforts make a bristle look softer, or stiffer.
    """
    column = found.rows[joint].joint
    nominal = found.model.tree
    tree = None if nominal is None else with_inertial_parameters(nominal, found.parameters)
    recordings = [signals for signals in recordings if len(signals.time) >= _FEWEST]
    pieces: list[tuple[Any, ...]] = []
    paths, steps, levels, rates = [], [], [], []
    for recording_index, signals in enumerate(recordings):
        even = even_stamps(signals.time, signals.position)
        prompt = [np.interp(even + found.effort_delay, even, torque) for torque in signals.torque.T]
        signals = replace(signals, time=even, torque=np.column_stack(prompt))
        time, position = signals.time, signals.position[:, column]
        turns = reversal_pieces(position)
        fine_time = np.interp(np.arange((len(time) - 1) * _REFINEMENT + 1) / _REFINEMENT, np.arange(len(time)), time)
        paths.append(_smooth_path(time, position, fine_time, _averaging_time(time, position, turns, longer)))
        steps.append(fine_time + np.arange(len(fine_time)) * 1e-12)
        levels.append(_levels(found, joint, np.gradient(paths[-1], steps[-1])))
        rates.append(1.0 / max(usual_step(time, np.inf), 1e-9))  # a gap makes no log slower
        for first, turn, last in turns:
            index = np.arange(first, last)[:_MOST_READINGS]
            friction = _friction_torque(signals, found, tree, joint, index)
            finite = np.isfinite(friction)
            if np.count_nonzero(finite) < _FEWEST:
                continue
            index = index[finite]
            number, recorded = np.full(len(index), len(pieces)), np.full(len(index), recording_index)
            distance = np.where(index >= turn, 1.0, -1.0) * np.abs(position[index] - position[turn])
            pieces.append((number, friction[finite], distance, index * _REFINEMENT, recorded))
    if not pieces:
        return None
    number, torque, distance, indices, recorded = (np.concatenate(column) for column in zip(*pieces, strict=True))
    torque = _minus_group_mean(number, torque)
    rate = float(np.median(rates))
    return Reversals(
        len(pieces), number, torque, distance, paths, steps, levels, indices, recorded, rate, found.effort_delay
    )


def _levels(found: ArmFriction, joint: int, speed: Vector) -> Vector:
    """Torque at which joint number `joint` slides at speeds (s,) [rad/s], over its Coulomb torque."""
    coulomb, stribeck = found.friction[joint, [PARTS.index("coulomb"), PARTS.index("stribeck")]]
    stribeck_speed = found.rows[joint].stribeck_speed
    if not (coulomb > 0.0 and stribeck_speed > 0.0):
        return np.ones(len(speed))
    return np.asarray(1.0 + stribeck / coulomb * np.exp(-((speed / stribeck_speed) ** 2)))


def _averaging_time(
    time: Vector, position: Vector, turns: Sequence[tuple[int, int, int]], longer: float = 1.0
) -> float:
    """Averaging time T of positions (s,) at times (s,) in the path of the bristle [s], the longer the more noise.

    Over T, the mean of positions with an acceleration a is off by a T^2 / 24, and noise of readings at intervals dt
    leaves noise sqrt(dt / T) in it; T makes both equal, or is `longer` by a factor. Without noise it is the least.
    """
    step = usual_step(time)
    apart = max(1, round(_ACCELERATION_SPAN / step))
    near = near_turns(turns, apart, len(time))
    second = position[near + apart] - 2.0 * position[near] + position[near - apart]
    acceleration = rms(second) / (apart * step) ** 2 if np.any(second) else math.inf
    balanced = (24.0 * reading_noise(time, position, turns) * math.sqrt(step) / acceleration) ** 0.4
    return max(_POSITION_MEAN, longer * float(balanced))


def _smooth_path(time: Vector, position: Vector, fine_time: Vector, mean: float) -> Vector:
    """Positions at times `fine_time` (f,) from a cubic through means over `mean` [s] of positions (s,) at times (s,).

    Without the means, noise and encoder quantisation would look like motion back and forth, in which a bristle relaxes.
    """
    group_size = max(1, round(mean / usual_step(time)))
    groups = len(time) // group_size
    middles = time[: groups * group_size].reshape(groups, group_size).mean(axis=1)
    means = position[: groups * group_size].reshape(groups, group_size).mean(axis=1)
    increasing = np.concatenate([[True], np.diff(middles) > 0.0])
    return np.asarray(CubicSpline(middles[increasing], means[increasing])(np.clip(fine_time, middles[0], middles[-1])))


def _friction_torque(signals: ArmSignals, found: ArmFriction, tree: Tree | None, joint: int, index: Indices) -> Vector:
    """Torque (r,) of the readings `index` (r,) minus bodies and viscous friction; NaN at the ends of the recording."""
    row, values = found.rows[joint], found.values
    time = signals.time[index]
    # Smoothed over at most one period of the driver, because the acceleration changes quickly while the bristles bend.
    group_size = max(1, round(_ACCELERATION_MEAN / usual_step(signals.time)))
    first = max(0, int(index[0]) - 4 * group_size)
    groups = min(len(signals.time) - first, int(index[-1]) - first + 5 * group_size) // group_size
    if groups < _FEWEST:
        return np.full(len(index), np.nan)
    span = slice(first, first + groups * group_size)
    middles = signals.time[span].reshape(groups, group_size).mean(axis=1)
    table = signals.position[span].reshape(groups, group_size, -1).mean(axis=1)
    if np.any(np.diff(middles) <= 0.0):
        return np.full(len(index), np.nan)
    curve = CubicSpline(middles, table)
    speed, acceleration, position = curve(time, 1), curve(time, 2), signals.position[index]
    if tree is not None:
        scale = 1.0 + found.reading_values[joint]
        bodies = scale * tree.inverse_dynamics(position, speed, acceleration)[:, row.joint]
    else:
        columns = columns_of_joints(position, acceleration, found.model.weighed, found.model.coupled)[:, row.joint, :-1]
        width = columns.shape[1]
        bodies = columns @ values[width * joint : width * (joint + 1)]
    viscous = found.friction[joint, PARTS.index("viscous")] * speed[:, row.joint]
    friction: Vector = signals.torque[index, row.joint] - bodies - viscous
    friction[(time < middles[1]) | (time > middles[-2])] = np.nan
    return friction


_SLOWEST_RATE = 500.0  # rate of readings below which sigma1 is not estimated [1/s]
_STEEPEST, _FLATTEST = 3e5, 30.0  # range of sigma0 / coulomb in the search [1/rad]
_GRID = 4.0  # points of the search per factor of e
_BOUND_MARGIN = 1.01  # ratio to the softest value within which the search ended at its bound, not at a minimum
_FEWEST_IN_TRANSITION = 2.0  # mean number of readings during the transition of a reversal
_TRANSITION = 3.0  # length of the transition in units of coulomb / sigma0
_SMOOTHING = 0.05
_NO_REVERSAL = Reason(Kind.NOT_EXCITED, "the joint never reversed while it slid, or noise of a milliradian hides where")
_NO_FRICTION = Reason(Kind.WRONG_SIGNALS, "the torque at the reversals shows no friction, or its sign is wrong")
_UP_TO_COULOMB = Reason(Kind.DEPENDS, "it is the stiffness up to the Coulomb torque, which is not identified")
_NOISY = Reason(
    Kind.OTHER_EXPLANATION,
    "the angles are too noisy for a bend of the bristles of this size; needed: finer angles, a higher rate of "
    "readings, or quicker reversals",
)
_LATE = Reason(
    Kind.OTHER_EXPLANATION,
    "the efforts may be late, which turns the torque round later after a reversal: remove their filter, or check the "
    "stamps",
)
_FILTERED = Reason(
    Kind.OTHER_EXPLANATION,
    "the efforts seem to be filtered, which rounds them at a reversal as soft bristles do: remove their filter",
)
_AS_WELL = 1.02  # misfit over that of a pure delay up to which a filter explains the efforts as well
_REPETITIONS, _NOISY_RANGE = 3, 6.0  # with more noise; factor of the steepness searched in each
_LONGER = 2.0  # factor of the averaging time that tells whether noise relaxes the bristles of a joint at rest
_SIGMA0, _SIGMA1 = Unknown("sigma0", "N m/rad", low=0.0), Unknown("sigma1", "N m s/rad", low=0.0)


@dataclass(frozen=True, eq=False)
class Bristles:
    """Identified bristle parameters of a joint."""

    sigma0: Estimate  # stiffness [N m/rad]
    sigma1: Estimate  # damping [N m s/rad]
    reversals: int = 0


def fit_bristles(recordings: Sequence[ArmSignals], found: ArmFriction, joint: str) -> Bristles:
    """Identify sigma0 of one joint, and sigma1 if the rate of readings allows.

    The torque near each reversal, minus identified weight, inertia and viscous friction, is coulomb times a function of
    the distance with one unknown, sigma0 / coulomb, which is searched. Each reversal has its own constant for errors of
    the bodies. The blocks of the intervals are reversals. The recordings are those of `found`, or different
    recordings of the same arm.
    """
    fitted = [k for k, row in enumerate(found.rows) if row.name == joint]
    if not fitted or found.fit is None:
        return _refused(found[joint].estimates[0].reason)
    reversals = near_reversals(recordings, found, fitted[0])
    if reversals is None:
        return _refused(_NO_REVERSAL)
    steepness, at_steepest = _best_steepness(reversals, _FLATTEST, _STEEPEST)
    bending = (reversals.distance > 0.0) & (reversals.distance < _TRANSITION / steepness)
    transition_readings = float(np.count_nonzero(bending)) / reversals.count
    coulomb = _solve(reversals.columns(steepness), reversals.torque)[0]
    if transition_readings < _FEWEST_IN_TRANSITION or at_steepest:
        few = f"{math.floor(transition_readings)} readings show how the torque turns round when the joint reverses"
        faster = f"{_FEWEST_IN_TRANSITION:g} are needed: reverse more slowly, or record at a higher rate"
        reason = Reason(Kind.TOO_LITTLE_DATA, f"{few}, {faster}; Coulomb and viscous friction do not need them")
    elif not coulomb > 0.0:
        reason = _NO_FRICTION
    elif steepness < _FLATTEST * _BOUND_MARGIN:
        soft = f"sigma0 is below {_FLATTEST:g} times the Coulomb torque per radian, the lower bound of the search"
        reason = Reason(Kind.AT_BOUND, soft)
    else:
        reason = _UP_TO_COULOMB
        try:
            rivals = [
                _noise_rival(recordings, found, fitted[0], reversals, steepness),
                _late_rival(reversals, steepness),
                _filter_rival(reversals, steepness),
            ]
            bristles = _linearised(reversals, steepness, transition_readings, rivals)
            if found[joint]["coulomb"].identified:
                late, parts = found[joint].late, (bristles.sigma0, bristles.sigma1)
                stiffness, damping = parts if late is None else (one.refused_if_identified(late) for one in parts)
                return replace(bristles, sigma0=stiffness, sigma1=damping)
        except IdentificationError:
            few = f"{reversals.count} reversals are too few for an interval"
            reason = Reason(Kind.TOO_LITTLE_DATA, f"{few}; their fit gives {steepness * coulomb:.3g} N m/rad")
    return _refused(reason, reversals.count)


def _solve(table: Vector, torque: Vector) -> Vector:
    """Coulomb torque and sigma1 (2,) for columns (r, 2) and torques (r,); neither can be negative."""
    return np.asarray(nnls(table, torque)[0], dtype=np.float64)


def _solve_late(table: Vector, torque: Vector) -> Vector:
    """The same for torques that may be late, which look like a negative sigma1."""
    return np.asarray(np.linalg.lstsq(table, torque, rcond=None)[0])


def _best_steepness(
    reversals: Reversals, low: float, high: float, solve: Callable[[Vector, Vector], Vector] = _solve
) -> tuple[float, bool]:
    """Steepness of least misfit between two [1/rad], and whether it is at the upper one."""

    def misfit(log: float) -> float:
        table = reversals.columns(math.exp(log))
        residual = reversals.torque - table @ solve(table, reversals.torque)
        return float(residual @ residual)

    grid = np.linspace(math.log(low), math.log(high), 2 + round(_GRID * math.log(high / low)))
    k, last = int(np.argmin([misfit(float(log)) for log in grid])), len(grid) - 1
    bounds = (float(grid[max(0, k - 1)]), float(grid[min(last, k + 1)]))
    return math.exp(float(minimize_scalar(misfit, bounds=bounds, method="bounded").x)), k == last


def _noise_rival(
    recordings: Sequence[ArmSignals], found: ArmFriction, joint: int, reversals: Reversals, steepness: float
) -> Rival:
    """Angles without noise: what noise as large again changes in the fit tells what their own noise has changed.

    A bend of the bristles is a distance, and noise adds to its square. What it changes in sigma1 is of first order.

    Source: simulation extrapolation, Cook and Stefanski 1994.
    """
    random, column = np.random.default_rng(0), found.rows[joint].joint
    noises, solutions = [float(noise_of(signals)[column]) for signals in recordings], []
    for _ in range(_REPETITIONS):
        noisier = []
        for signals, noise in zip(recordings, noises, strict=True):
            position = signals.position.copy()
            position[:, column] += noise * random.standard_normal(len(position))
            noisier.append(replace(signals, position=position))
        other = near_reversals(noisier, found, joint)
        if other is None:
            return Rival(_NOISY, {_SIGMA0.name: math.inf, _SIGMA1.name: math.inf})
        steeper, _ = _best_steepness(other, steepness / _NOISY_RANGE, steepness * _NOISY_RANGE)
        solutions.append(_solve(other.columns(steeper), other.torque) * [steeper, 1.0])
    stiffness, damping = _solve(reversals.columns(steepness), reversals.torque) * [steepness, 1.0]
    found0, found1 = np.transpose(solutions)
    growth = rms((stiffness / np.maximum(found0, 1e-9)) ** 2 - 1.0)
    change = stiffness / math.sqrt(1.0 - growth) - stiffness if growth < 1.0 else math.inf
    # In a rest, noise that moves back and forth relaxes the bristle wholly, and more noise changes nothing any more.
    smoother = near_reversals(recordings, found, joint, _LONGER)
    if smoother is not None:
        steeper, _ = _best_steepness(smoother, steepness / _NOISY_RANGE, steepness * _NOISY_RANGE)
        of_longer = float(_solve(smoother.columns(steeper), smoother.torque)[0]) * steeper
        change = max(change, abs(of_longer - stiffness))
    return Rival(_NOISY, {_SIGMA0.name: change, _SIGMA1.name: rms(found1 - damping)})


def _late_rival(reversals: Reversals, steepness: float) -> Rival:
    """Efforts that are late: with x_b the bend, sigma0 x_b(t - d) = sigma0 x_b - d sigma0 x_b', a negative damping."""
    late, _ = _best_steepness(reversals, steepness / _NOISY_RANGE, steepness * _NOISY_RANGE, _solve_late)
    values = _solve_late(reversals.columns(late), reversals.torque) * [late, 1.0]
    values -= _solve(reversals.columns(steepness), reversals.torque) * [steepness, 1.0]
    return Rival(_LATE, dict(zip((_SIGMA0.name, _SIGMA1.name), values.tolist(), strict=True)))


def _filter_rival(reversals: Reversals, steepness: float) -> Rival:
    """Efforts whose delay is that of a filter, if it explains the reversals as well: it rounds them."""
    if reversals.delay <= 0.0:
        return Rival(_FILTERED, {})
    filtered = replace(reversals, lag=reversals.delay)
    other, _ = _best_steepness(filtered, steepness / _NOISY_RANGE, steepness * _NOISY_RANGE)
    tables = reversals.columns(steepness), filtered.columns(other)
    values = [_solve(table, reversals.torque) for table in tables]
    left, right = (rms(reversals.torque - table @ value) for table, value in zip(tables, values, strict=True))
    if right > _AS_WELL * left:
        return Rival(_FILTERED, {})
    change = values[1] * [other, 1.0] - values[0] * [steepness, 1.0]
    return Rival(_FILTERED, dict(zip((_SIGMA0.name, _SIGMA1.name), change.tolist(), strict=True)))


def _linearised(
    reversals: Reversals, steepness: float, transition_readings: float, rivals: Sequence[Rival]
) -> Bristles:
    """Estimates from the linearised fit about the solution."""
    table, step = reversals.columns(steepness), 1e-3
    values = _solve(table, reversals.torque)
    steeper, flatter = (reversals.columns(steepness * math.exp(sign * step)) @ values for sign in (1.0, -1.0))
    unknowns = [Unknown("coulomb", "N m"), _SIGMA1, Unknown("logarithm of the steepness", "1")]
    columns = np.column_stack([table, (steeper - flatter) / (2.0 * step)])
    fit = least_squares(
        [Rows(reversals.number.astype(np.float64) + 0.5, columns, reversals.torque)], unknowns, robust=False
    )
    # sigma0 = coulomb x steepness, so relative errors add up.
    coulomb, errors = float(values[0]), fit.covariance[np.ix_([0, 2], [0, 2])]
    relative, sigma0 = np.array([1.0 / coulomb, 1.0]), coulomb * steepness
    # Errors common to all reversals do not appear in their scatter: half a reading in the transition, and 5 % from the
    # smoothing of the positions. Both were measured on simulated arms with known bristles. And efforts may be read
    # anywhere within the period of the angles: sigma0 times this time looks like damping.
    common = max(_SMOOTHING, 0.5 / transition_readings)
    error = sigma0 * math.hypot(math.sqrt(float(relative @ errors @ relative)), common)
    stiffness = judge(_SIGMA0, sigma0, error, fit.half_width(error))
    within = sigma0 / reversals.rate / math.sqrt(12.0)
    error = math.hypot(math.sqrt(float(fit.covariance[1, 1])), common * float(values[1]), within)
    damping = judge(_SIGMA1, float(values[1]), error, fit.half_width(error))
    if reversals.rate < 0.95 * _SLOWEST_RATE:
        slow = (
            f"{reversals.rate:.0f} Hz is too slow for an effect that lasts milliseconds; "
            f"{_SLOWEST_RATE:.0f} Hz is needed"
        )
        damping = undetermined(_SIGMA1, Reason(Kind.TOO_LITTLE_DATA, slow))
    stiffness, damping = widened((stiffness, damping), (_SIGMA0, _SIGMA1), rivals, fit.half_width(1.0))
    return Bristles(stiffness, damping, reversals.count)


def _refused(reason: Reason | None, reversals: int = 0) -> Bristles:
    return Bristles(undetermined(_SIGMA0, reason), undetermined(_SIGMA1, reason), reversals)
