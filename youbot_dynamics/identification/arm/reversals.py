"""Readings of a joint near the points where it turns round, and how far bristles bend there (system 9)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.identification.arm.arm_regressors import with_inertial_parameters
from youbot_dynamics.identification.arm.arm_windows import ArmSignals, turning_points
from youbot_dynamics.identification.arm_friction import ArmFriction
from youbot_dynamics.identification.timing.even_stamps import even_stamps

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]

REACH = 0.05  # [rad] to either side of a reversal that is looked at
_BEFORE = 0.01  # [rad]
_MOST = 4000  # readings of a reversal
_FEWEST = 6
_AROUND = 0.02  # [s] over which positions are averaged before accelerations are taken from them
_STILL = 0.008  # [s]
_FINER = 8  # points between two readings, along a cubic: the outermost point of a reversal is hardly ever read


@dataclass(frozen=True, eq=False)
class Reversals:
    """r readings near reversals of one joint, of all recordings; friction is centred over each reversal.

    Args:
        number: (r,) of the reversal each belongs to.
        torque: (r,) friction, without its viscous part, less its mean over the reversal [N m].
        way: (r,) since the reversal, negative before it [rad].
        paths: positions on a finer grid, one array a recording [rad].
        steps: of these grids, times of one recording each [s].
        places: (r,) where each reading stands in the grid of its recording.
        sources: (r,) place of its recording.
        rate: readings a second.
    """

    number: Integers
    torque: Vector
    way: Vector
    paths: tuple[Vector, ...]
    steps: tuple[Vector, ...]
    places: Integers
    sources: Integers
    rate: float

    @property
    def count(self) -> int:
        """Number of reversals."""
        return len(np.unique(self.number))

    def bent(self, steepness: float) -> tuple[Vector, Vector]:
        """Deflection (r,) over its reach, -1 to 1, and its rate (r,) [1/s], each centred over the reversal.

        Args:
            steepness: sigma0 / coulomb [1/rad].
        """
        shares, rates = np.empty(len(self.number)), np.empty(len(self.number))
        for k, (path, time) in enumerate(zip(self.paths, self.steps, strict=True)):
            share = np.empty(len(path))
            bend(path, steepness, share)
            of = self.sources == k
            shares[of] = share[self.places[of]]
            rates[of] = np.gradient(share, time)[self.places[of]]
        return self.centred(shares), self.centred(rates)

    def centred(self, values: Vector) -> Vector:
        """Values (r,) less their mean over each reversal."""
        return centred(self.number, values)

    def readings_within(self, way: float) -> float:
        """Readings up to a way [rad] after a reversal, on average over the reversals."""
        within = (self.way > 0.0) & (self.way < way)
        return float(np.count_nonzero(within)) / max(1, self.count)


def centred(number: Integers, values: Vector) -> Vector:
    """Values (r,) less their mean over all with the same number (r,)."""
    _, place, counts = np.unique(number, return_inverse=True, return_counts=True)
    apart: Vector = values - (np.bincount(place, values) / counts)[place]
    return apart


@compiled
def bend(path: Vector, steepness: float, share: Vector) -> None:
    """Deflection of a bristle over its reach along a path, exact between its points; it starts relaxed.

    Args:
        path: (s,) positions [rad].
        steepness: sigma0 / coulomb [1/rad].
        share: (s,), written.
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
    """Readings near the reversals of a joint, weight, inertia and viscous friction taken off; None without any.

    Args:
        recordings: of the arm that `found` was identified for.
        found: friction and bodies.
        joint: its place in `found.rows`.
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
        number,
        centred(number, np.concatenate(torques)),
        np.concatenate(ways),
        tuple(paths),
        tuple(steps),
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


def _friction_torque(signals: ArmSignals, found: ArmFriction, tree: Tree | None, joint: int, index: Integers) -> Vector:
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
    friction = 4 * len(found.rows)
    if tree is not None:
        bodies = tree.inverse_dynamics(position, speed, acceleration)[:, row.joint]
    else:
        own = [acceleration[:, row.joint]]
        if found.model.weighed:
            own += [np.sin(position[:, row.joint]), np.cos(position[:, row.joint])]
        bodies = np.column_stack(own) @ values[len(own) * joint : len(own) * (joint + 1)]
    viscous = values[len(values) - friction + 4 * joint + 1] * speed[:, row.joint]
    left: Vector = signals.torque[index, row.joint] - bodies - viscous
    left[(time < middles[1]) | (time > middles[-2])] = np.nan
    return left
