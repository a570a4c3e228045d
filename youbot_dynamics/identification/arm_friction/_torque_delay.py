"""Delay from the torque asked of a joint to its motion, from starts out of rest (systems 32, 33)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Rows,
    Unknown,
    judge,
    least_squares,
    undetermined,
)
from youbot_dynamics.identification.signals import HeldCommand, RecordedArm

_LONGEST = 0.05  # [s] delay that is looked for
_DURATION = 1.1  # [s] of a start: the transient and enough of what follows to know the friction
_GRID = 1e-3  # [s]
_BLOCK = 0.1  # [s] at most
_SPARE_BLOCKS = 10
_GAP = 0.03  # [s] between readings ends a start: what was asked meanwhile is not known
_REST = 0.01  # share of the fastest speed
_FEWEST = 10  # readings of a start
_DELAY, _INERTIA = Unknown("delay", "s", low=0.0, resolution=2e-3), Unknown("inertia", "kg m2", low=0.0)

AGAINST = "the joint speeds up against the torque asked of it: check the signs"


@dataclass(frozen=True, eq=False)
class TorqueDelay:
    """Delay of a joint."""

    # Effective delay [s], dead time and lags of current loop and speed reading together: one start out of rest, under
    # feedback, does not tell them apart
    delay: Estimate
    inertia: Estimate  # [kg m2]
    fit: Fit  # of speeds, linear about the delay
    starts: int  # number of starts used


@dataclass(frozen=True, eq=False)
class _Start:
    """A start out of rest: times (s,) since its begin, speeds (s,), the torque held between its samples."""

    time: Vector
    speed: Vector
    torque: HeldCommand


def estimate_torque_delay(recordings: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]) -> TorqueDelay:
    """Output error of v(t) = (integral of torque(t - d) - coulomb (t - d) - viscous x(t)) / J + offset of the start.

    Torques under speed feedback carry the noise of the speeds: steady motion says nothing of the delay, or lies. Only
    the start counts, where the torque is large and the same whatever the noise. The integral of the held torque is
    exact between its samples; d is searched, all else is linear.

    Args:
        recordings: times (s,) [s], torques (s,) asked for, cut at the limits of the driver [N m], measured speeds (s,)
            [rad/s]; each begins at rest and goes one way.

    Raises:
        InputError: shapes that do not fit.
        IdentificationError: no start out of rest.
    """
    starts = [start for start in (_start(*recording) for recording in recordings) if start is not None]
    if not starts:
        raise IdentificationError(
            "delay of the torque",
            got="no recording that begins at rest and then moves",
            expected="starts out of rest under a torque that jumps",
        )

    def solve(delay: float) -> tuple[Vector, float]:
        table, speeds = _table(starts, delay), np.concatenate([start.speed for start in starts])
        values = np.linalg.lstsq(table, speeds, rcond=None)[0]
        left = speeds - table @ values
        return values, float(left @ left)

    grid = np.arange(0.0, _LONGEST + _GRID, _GRID)
    best = float(grid[int(np.argmin([solve(float(d))[1] for d in grid]))])
    bounds = (max(0.0, best - _GRID), min(best + _GRID, _LONGEST))
    best = float(minimize_scalar(lambda d: solve(d)[1], bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)
    values, _ = solve(best)
    found = _linear_fit(starts, best, values)
    if values[0] <= 0.0:
        return TorqueDelay(undetermined(_DELAY, AGAINST), undetermined(_INERTIA, AGAINST), found, len(starts))
    error = found["delay"].standard_error
    delay = judge(_DELAY, best, error, found.reach(error))
    if best > _LONGEST - _GRID:
        delay = undetermined(_DELAY, f"the best delay lies at the end of the search, {1e3 * _LONGEST:g} ms")
    gain, error = float(values[0]), found["mobility"].standard_error / float(values[0]) ** 2
    inertia = judge(_INERTIA, 1.0 / gain, error, found.reach(error))
    return TorqueDelay(delay, inertia, found, len(starts))


def _start(time: ArrayLike, torque: ArrayLike, speed: ArrayLike) -> _Start | None:
    """The part of a recording from rest on, as long as readings follow each other and the joint goes one way."""
    stamps = array("time", time, (None,))
    asked, speeds = array("torque", torque, stamps.shape), array("speed", speed, stamps.shape)
    if len(stamps) < _FEWEST or not np.any(speeds):
        return None
    way = np.sign(speeds[np.argmax(np.abs(speeds))])
    ahead, fastest = way * speeds, float(np.max(np.abs(speeds)))
    last = np.searchsorted(stamps, stamps[0] + _DURATION)
    breaks = np.flatnonzero((np.diff(stamps) > _GAP) | (ahead[1:] < -_REST * fastest))
    last = min([int(last), *(int(k) + 1 for k in breaks[:1])])
    if abs(speeds[0]) > _REST * fastest or last < _FEWEST or np.max(ahead[:last]) < 0.5 * fastest:
        return None
    since = stamps - stamps[0]
    return _Start(since[:last], ahead[:last], HeldCommand(since, way * asked, 0.0))


def _table(starts: Sequence[_Start], delay: float) -> Vector:
    """Columns (r, 3 + starts): integral of the delayed torque, time since, way, and a constant for each start."""
    parts = []
    for k, start in enumerate(starts):
        late = np.maximum(start.time - delay, 0.0)
        steps = 0.5 * np.diff(start.time) * (start.speed[1:] + start.speed[:-1])
        table = np.zeros((len(late), 3 + len(starts)))
        table[:, 0] = start.torque.integral(late)
        table[:, 1], table[1:, 2], table[:, 3 + k] = -late, -np.cumsum(steps), 1.0
        parts.append(table)
    return np.concatenate(parts)


def _linear_fit(starts: Sequence[_Start], delay: float, values: Vector) -> Fit:
    """The fit about its solution, with the delay as one more unknown: its change, its interval."""
    unknowns = [Unknown("mobility", "1/(kg m2)", low=0.0), Unknown("coulomb", "rad/s2"), Unknown("viscous", "1/s")]
    unknowns += [Unknown(f"offset_{k + 1}", "rad/s") for k in range(len(starts))]
    unknowns.append(Unknown("delay", "s"))
    table, pieces, row = _table(starts, delay), [], 0
    block = min(_BLOCK, sum(float(start.time[-1]) for start in starts) / (len(unknowns) + _SPARE_BLOCKS))
    for k, start in enumerate(starts):
        part = table[row : row + len(start.time)]
        row += len(start.time)
        late = start.time - delay
        slope = np.where(late > 0.0, -values[0] * start.torque.held(np.maximum(late, 0.0)) + values[1], 0.0)
        pieces.append(Rows(start.time, np.column_stack([part, slope]), start.speed, recording=k, block=block))
    return least_squares(pieces, unknowns, robust=False)


def torque_starts(arm: RecordedArm, joint: int) -> list[tuple[Vector, Vector, Vector]]:
    """Times [s], torques asked for [N m] and speeds [rad/s], each (m,), of the starts of a joint out of rest.

    Instants are those of readings and of commands, so that a command between two readings keeps its time; speeds in
    between are interpolated. One way only: a start ends where the joint turns round.
    """
    time, speed = arm.signals.time, arm.speed[:, joint]
    if arm.asked is None or len(time) < _FEWEST or not np.all(np.isfinite(speed)):
        return []
    sent, asked = arm.asked[0], arm.asked[1][:, joint]
    known = np.isfinite(asked)
    if not np.any(asked[known]):
        return []
    command = HeldCommand(sent[known], asked[known], 0.0)
    still = np.abs(speed) <= _REST * float(np.max(np.abs(speed)))
    begins = np.flatnonzero(still[:-1] & ~still[1:])
    starts = []
    for begin, after in zip(begins, np.append(begins, len(time))[1:], strict=True):
        if time[begin] < sent[known][0]:
            continue
        first, last = time[begin], min(time[after - 1], time[begin] + _DURATION)
        inside = (sent > first) & (sent < last)
        moments = np.union1d(time[(time >= first) & (time <= last)], sent[inside])
        starts.append((moments, command.held(moments), np.interp(moments, time, speed)))
    return [start for start in starts if len(start[0]) >= _FEWEST]
