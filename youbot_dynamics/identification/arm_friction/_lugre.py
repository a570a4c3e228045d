"""Stiffness of a joint's bristles from reversals, and their damping where readings come fast enough (systems 9, 10).

While a joint turns round, its friction follows the way it went, not the time: from +coulomb to -coulomb along
coulomb (1 - 2 exp(-sigma0 x / coulomb)), x the way since the reversal. That is where sigma0 shows, and nowhere else.
sigma1 acts on the rate of the deflection, for some milliseconds: at 50 readings a second nothing of it is seen.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar, nnls

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction
from youbot_dynamics.identification.arm_friction._regressors import with_inertial_parameters
from youbot_dynamics.identification.arm_friction._windows import turning_points
from youbot_dynamics.identification.least_squares import Estimate, Rows, Unknown, judge, least_squares, undetermined
from youbot_dynamics.identification.signals import ArmSignals, even_stamps

REACH = 0.05  # [rad] to either side of a reversal that is looked at
_BEFORE = 0.01  # [rad]
_MOST = 4000  # readings of a reversal
_FEWEST = 6
_AROUND = 0.02  # [s] over which positions are averaged before accelerations are taken from them
_STILL = 0.008  # [s]
_FINER = 8  # points between two readings, along a cubic: the outermost point of a reversal is hardly ever read


@dataclass(frozen=True, eq=False)
class Reversals:
    """r readings near reversals of one joint, of all recordings; friction is centred over each reversal."""

    count: int  # of reversals
    number: Indices  # (r,) of the reversal each belongs to
    torque: Vector  # (r,) friction, without its viscous part, less its mean over the reversal [N m]
    way: Vector  # (r,) since the reversal, negative before it [rad]
    paths: list[Vector]  # positions on a finer grid, one array a recording [rad]
    steps: list[Vector]  # of these grids, times of one recording each [s]
    places: Indices  # (r,) where each reading stands in the grid of its recording
    sources: Indices  # (r,) place of its recording
    rate: float  # readings a second

    def columns(self, steepness: float) -> Vector:
        """Columns (r, 2) of the Coulomb torque and of sigma1, for a steepness sigma0 / coulomb [1/rad].

        They are the deflection over its reach, -1 to 1, and its rate, each centred over the reversal. The damping of
        the bristles weighs as much as their stiffness where they swing back quickly: left out, sigma0 came out up to
        three times too large. So it is always fitted, though only fast readings say how large it is.
        """
        shares, rates = np.empty(len(self.number)), np.empty(len(self.number))
        for k, (path, time) in enumerate(zip(self.paths, self.steps, strict=True)):
            share = np.empty(len(path))
            bend(path, steepness, share)
            of = self.sources == k
            shares[of] = share[self.places[of]]
            rates[of] = np.gradient(share, time)[self.places[of]]
        return np.column_stack([_centred(self.number, shares), _centred(self.number, rates) / steepness])


def _centred(number: Indices, values: Vector) -> Vector:
    """Values (r,) less their mean over all with the same number (r,)."""
    _, place, counts = np.unique(number, return_inverse=True, return_counts=True)
    apart: Vector = values - (np.bincount(place, values) / counts)[place]
    return apart


@compiled
def bend(path: Vector, steepness: float, share: Vector) -> None:
    """Write the deflection (s,) of a bristle over its reach along a path (s,) [rad]; it starts relaxed.

    It is exact between the points; the steepness is sigma0 / coulomb [1/rad].
    """
    bent = 0.0
    share[0] = 0.0
    for k in range(1, len(path)):
        way = path[k] - path[k - 1]
        if way != 0.0:
            end = 1.0 if way > 0.0 else -1.0
            bent = end + (bent - end) * np.exp(-steepness * abs(way))
        share[k] = bent


def near_reversals(recordings: Sequence[ArmSignals], found: ArmFriction, joint: int) -> Reversals | None:
    """Readings near the reversals of the joint at a place in `found.rows`; None without any.

    Weight, inertia and viscous friction of the arm, as found, are taken off.
    """
    place = found.rows[joint].joint
    nominal = found.model.tree
    tree = None if nominal is None else with_inertial_parameters(nominal, found.parameters)
    numbers, torques, ways, places, sources = [], [], [], [], []
    paths, steps, rates, count = [], [], [], 0
    for source, signals in enumerate(recordings):
        signals = dataclasses.replace(signals, time=even_stamps(signals.time, signals.position))
        time, position = signals.time, signals.position[:, place]
        fine = np.interp(np.arange((len(time) - 1) * _FINER + 1) / _FINER, np.arange(len(time)), time)
        paths.append(_smooth_path(time, position, fine))
        steps.append(fine + np.arange(len(fine)) * 1e-12)
        rates.append((len(time) - 1) / max(float(time[-1] - time[0]), 1e-9))
        for first, turn, last in _pieces(position):
            index = np.arange(first, last)[:_MOST]
            friction = _friction_torque(signals, found, tree, joint, index)
            ok = np.isfinite(friction)
            if np.count_nonzero(ok) < _FEWEST:
                continue
            index = index[ok]
            numbers.append(np.full(len(index), count))
            torques.append(friction[ok])
            ways.append(np.where(index >= turn, 1.0, -1.0) * np.abs(position[index] - position[turn]))
            places.append(index * _FINER)
            sources.append(np.full(len(index), source))
            count += 1
    if not count:
        return None
    number = np.concatenate(numbers)
    return Reversals(
        count,
        number,
        _centred(number, np.concatenate(torques)),
        np.concatenate(ways),
        paths,
        steps,
        np.concatenate(places),
        np.concatenate(sources),
        float(np.median(rates)),
    )


def _smooth_path(time: Vector, position: Vector, fine: Vector) -> Vector:
    """Positions at times `fine` (f,) along a cubic through means over 8 ms of positions (s,) at times (s,).

    Where readings come faster the ticks of the encoder would count as way back and forth.
    """
    together = max(1, round(_STILL / float(np.median(np.diff(time)))))
    groups = len(time) // together
    middles = time[: groups * together].reshape(groups, together).mean(axis=1)
    means = position[: groups * together].reshape(groups, together).mean(axis=1)
    fresh = np.concatenate([[True], np.diff(middles) > 0.0])
    path: Vector = CubicSpline(middles[fresh], means[fresh])(np.clip(fine, middles[0], middles[-1]))
    return path


def _pieces(position: Vector) -> list[tuple[int, int, int]]:
    """First reading, turning point and last reading (exclusive) about each reversal of positions (s,)."""
    pieces = []
    turns = turning_points(position)
    for k, turn in enumerate(turns):
        begin = turns[k - 1] if k else 0
        end = turns[k + 1] if k + 1 < len(turns) else len(position)
        before = np.abs(position[begin:turn] - position[turn])
        after = np.abs(position[turn:end] - position[turn])
        if not (len(before) and before.max() > REACH and after.max() > REACH):
            continue
        first = begin + int(np.flatnonzero(before > _BEFORE)[-1])
        last = turn + int(np.flatnonzero(after > REACH)[0])
        pieces.append((first, int(turn), last))
    return pieces


def _friction_torque(signals: ArmSignals, found: ArmFriction, tree: Tree | None, joint: int, index: Indices) -> Vector:
    """Torque (r,) of the readings `index` (r,) less bodies and viscous friction; NaN at the ends of the recording."""
    row, values = found.rows[joint], found.values
    time = signals.time[index]
    # Smoothed over no more than a reading of the driver: while the bristles bend the acceleration changes quickly.
    together = max(1, round(_AROUND / float(np.median(np.diff(signals.time)))))
    first = max(0, int(index[0]) - 4 * together)
    groups = min(len(signals.time) - first, int(index[-1]) - first + 5 * together) // together
    if groups < _FEWEST:
        return np.full(len(index), np.nan)
    span = slice(first, first + groups * together)
    middles = signals.time[span].reshape(groups, together).mean(axis=1)
    table = signals.position[span].reshape(groups, together, -1).mean(axis=1)
    if np.any(np.diff(middles) <= 0.0):
        return np.full(len(index), np.nan)
    curve = CubicSpline(middles, table)
    speed, acceleration, position = curve(time, 1), curve(time, 2), signals.position[index]
    if tree is not None:
        bodies = tree.inverse_dynamics(position, speed, acceleration)[:, row.joint]
    else:
        own = [acceleration[:, row.joint]]
        if found.model.weighed:
            own += [np.sin(position[:, row.joint]), np.cos(position[:, row.joint])]
        bodies = np.column_stack(own) @ values[len(own) * joint : len(own) * (joint + 1)]
    viscous = values[len(values) - 4 * len(found.rows) + 4 * joint + 1] * speed[:, row.joint]
    left: Vector = signals.torque[index, row.joint] - bodies - viscous
    left[(time < middles[1]) | (time > middles[-2])] = np.nan
    return left


_SLOWEST_RATE = 500.0  # [1/s] of readings below which sigma1 is not looked for
_STEEPEST, _FLATTEST = 3e5, 30.0  # [1/rad] sigma0 / coulomb that are tried
_END = 1.01  # of the softest that are tried: the search stopped there, not at a least misfit
_FEWEST_IN_TRANSITION = 2.0  # readings, on average over the reversals, while the bristles bend over
_TRANSITION = 3.0  # lengths coulomb / sigma0 that this takes
_SMOOTHING = 0.05
_SIGMA0, _SIGMA1 = Unknown("sigma0", "N m/rad", low=0.0), Unknown("sigma1", "N m s/rad", low=0.0)


@dataclass(frozen=True, eq=False)
class Bristles:
    """Bristles of a joint as identified."""

    sigma0: Estimate  # stiffness [N m/rad]
    sigma1: Estimate  # damping [N m s/rad]
    reversals: int = 0


def fit_bristles(recordings: Sequence[ArmSignals], found: ArmFriction, joint: str) -> Bristles:
    """sigma0, and sigma1 where the rate allows, of one joint.

    The torque near each reversal, less weight, inertia and viscous friction as identified, is coulomb times a function
    of the way with one unknown, sigma0 / coulomb, which is searched; each reversal has a constant of its own for what
    the bodies leave over. Blocks of the intervals are reversals. The recordings are those that `found` was identified
    from, or others of the same arm.
    """
    places = [k for k, row in enumerate(found.rows) if found.model.joint_names[row.joint] == joint]
    if not places or found.fit is None:
        return _refused(found[joint].estimates[0].verdict.removeprefix("not identifiable: "))
    near = near_reversals(recordings, found, places[0])
    if near is None:
        return _refused("the joint never reversed while it slid")

    def misfit(log: float) -> float:
        table = near.columns(math.exp(log))
        left = near.torque - table @ _solved(table, near.torque)
        return float(left @ left)

    grid = np.linspace(math.log(_FLATTEST), math.log(_STEEPEST), 40)
    k = int(np.argmin([misfit(float(log)) for log in grid]))
    bounds = (float(grid[max(0, k - 1)]), float(grid[min(len(grid) - 1, k + 1)]))
    steepness = math.exp(float(minimize_scalar(misfit, bounds=bounds, method="bounded").x))
    bending = (near.way > 0.0) & (near.way < _TRANSITION / steepness)
    seen = float(np.count_nonzero(bending)) / near.count
    coulomb = _solved(near.columns(steepness), near.torque)[0]
    if seen < _FEWEST_IN_TRANSITION or k == len(grid) - 1:
        slower = "reverse more slowly, or record more readings a second"
        reason = f"the bristles bend over within {seen:.1f} readings: {slower}"
    elif not coulomb > 0.0:
        reason = "the torque at the reversals shows no friction, or its sign is wrong"
    elif steepness < _FLATTEST * _END:
        reason = f"they are softer than {_FLATTEST:g} times the Coulomb torque a radian, the end of the search"
    else:
        try:
            return _about(near, steepness, seen)
        except IdentificationError:
            asked = steepness * coulomb
            reason = f"{near.count} reversals are too few to judge by; they ask for {asked:.3g} N m/rad"
    return _refused(reason, near.count)


def _solved(table: Vector, torque: Vector) -> Vector:
    """Coulomb torque and sigma1 (2,) for columns (r, 2) and torques (r,); neither can be negative."""
    return np.asarray(nnls(table, torque)[0], dtype=np.float64)


def _about(near: Reversals, steepness: float, seen: float) -> Bristles:
    """Estimates from the fit that is linear about the solution."""
    table, step = near.columns(steepness), 1e-3
    values = _solved(table, near.torque)
    steeper, flatter = (near.columns(steepness * math.exp(sign * step)) @ values for sign in (1.0, -1.0))
    unknowns = [Unknown("coulomb", "N m"), _SIGMA1, Unknown("logarithm of the steepness", "1")]
    columns = np.column_stack([table, (steeper - flatter) / (2.0 * step)])
    fit = least_squares([Rows(near.number.astype(np.float64) + 0.5, columns, near.torque)], unknowns, robust=False)
    # sigma0 = coulomb x steepness: the relative changes add up.
    coulomb, errors = float(values[0]), fit.covariance[np.ix_([0, 2], [0, 2])]
    relative, sigma0 = np.array([1.0 / coulomb, 1.0]), coulomb * steepness
    # What reversals have in common, the scatter between them hides: half a reading more or less in the transition, and
    # the smoothing of the positions, a twentieth. Measured on simulated arms whose bristles are known.
    common = max(_SMOOTHING, 0.5 / seen)
    error = sigma0 * math.hypot(math.sqrt(float(relative @ errors @ relative)), common)
    stiffness = judge(_SIGMA0, sigma0, error, fit.reach(error))
    error = math.hypot(math.sqrt(float(fit.covariance[1, 1])), common * float(values[1]))
    damping = judge(_SIGMA1, float(values[1]), error, fit.reach(error))
    if near.rate < 0.95 * _SLOWEST_RATE:
        slow = f"{near.rate:.0f} readings a second, its effect lasts milliseconds: {_SLOWEST_RATE:.0f} are needed"
        damping = undetermined(_SIGMA1, slow)
    return Bristles(stiffness, damping, near.count)


def _refused(reason: str, reversals: int = 0) -> Bristles:
    return Bristles(undetermined(_SIGMA0, reason), undetermined(_SIGMA1, reason), reversals)
