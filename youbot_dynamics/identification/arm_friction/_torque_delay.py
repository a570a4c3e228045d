"""Delay from the commanded torque of a joint to its motion, from starts from rest.

Source: systems 32, 33.
"""

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
    Kind,
    Reason,
    Rows,
    Unknown,
    judge,
    least_squares,
    search_ended,
    undetermined,
)
from youbot_dynamics.identification.signals import HeldCommand, RecordedArm

_LONGEST = 0.05  # longest delay in the search [s]
_DURATION = 1.1  # duration of a start [s]: the transient, and enough motion after it to determine the friction
_GRID = 1e-3  # [s]
_BLOCK = 0.1  # [s] at most
_SPARE_BLOCKS = 10
_GAP = 0.03  # a longer interval between readings ends a start, since commands in it are unknown [s]
_STANDSTILL = 0.01  # share of the fastest speed
_FEWEST = 10  # readings of a start
_DELAY, _INERTIA = Unknown("delay", "s", low=0.0), Unknown("inertia", "kg m2", low=0.0)

AGAINST = Reason(Kind.WRONG_SIGNALS, "the joint accelerates against the commanded torque: check the signs")


@dataclass(frozen=True, eq=False)
class TorqueDelay:
    """Torque delay of a joint."""

    # Effective delay [s]: dead time plus lags of current loop and speed measurement. Starts from rest under feedback
    # do not separate them.
    delay: Estimate
    inertia: Estimate  # [kg m2]
    fit: Fit  # of speeds, linearised about the delay
    starts: int  # number of starts used


@dataclass(frozen=True, eq=False)
class _Start:
    """A start from rest: times (s,) from its start, speeds (s,), the torque held between its samples."""

    time: Vector
    speed: Vector
    torque: HeldCommand


def estimate_torque_delay(recordings: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]) -> TorqueDelay:
    """Output-error fit of v(t) = (integral of torque(t - d) - coulomb (t - d) - viscous x(t)) / J + start offset.

    Torques under speed feedback contain the noise of the speeds, so steady motion carries no information on the delay
    and would bias it. Only the start is used, where the torque is large and independent of the noise. The integral of
    the held torque is exact between its samples; d is searched, the other unknowns are linear.

    Args:
        recordings: times (s,) [s], commanded torques (s,) clipped to the limits of the driver [N m], measured speeds
            (s,) [rad/s]; each starts at rest and moves in one direction.

    Raises:
        InputError: shapes that do not fit.
        IdentificationError: no start from rest.
    """
    starts = [start for start in (_start(*recording) for recording in recordings) if start is not None]
    if not starts:
        raise IdentificationError(
            "delay of the torque",
            got="no recording that starts at rest and then moves",
            expected="starts from rest after a step of the torque",
        )

    def solve(delay: float) -> tuple[Vector, float]:
        table, speeds = _table(starts, delay), np.concatenate([start.speed for start in starts])
        values = np.linalg.lstsq(table, speeds, rcond=None)[0]
        residual = speeds - table @ values
        return values, float(residual @ residual)

    grid = np.arange(0.0, _LONGEST + _GRID, _GRID)
    best = float(grid[int(np.argmin([solve(float(d))[1] for d in grid]))])
    bounds = (max(0.0, best - _GRID), min(best + _GRID, _LONGEST))
    best = float(minimize_scalar(lambda d: solve(d)[1], bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)
    values, _ = solve(best)
    fit = _linear_fit(starts, best, values)
    if values[0] <= 0.0:
        return TorqueDelay(undetermined(_DELAY, AGAINST), undetermined(_INERTIA, AGAINST), fit, len(starts))
    error = fit["delay"].standard_error
    delay = judge(_DELAY, best, error, fit.half_width(error))
    if best > _LONGEST - _GRID:
        delay = undetermined(_DELAY, search_ended("s", _LONGEST))
    gain, error = float(values[0]), fit["mobility"].standard_error / float(values[0]) ** 2
    inertia = judge(_INERTIA, 1.0 / gain, error, fit.half_width(error))
    return TorqueDelay(delay, inertia, fit, len(starts))


def _start(time: ArrayLike, torque: ArrayLike, speed: ArrayLike) -> _Start | None:
    """The part of a recording from rest on, without gaps and in one direction."""
    stamps = array("time", time, (None,))
    commands, speeds = array("torque", torque, stamps.shape), array("speed", speed, stamps.shape)
    if len(stamps) < _FEWEST or not np.any(speeds):
        return None
    direction = np.sign(speeds[np.argmax(np.abs(speeds))])
    forward_speeds, fastest = direction * speeds, float(np.max(np.abs(speeds)))
    last = np.searchsorted(stamps, stamps[0] + _DURATION)
    breaks = np.flatnonzero((np.diff(stamps) > _GAP) | (forward_speeds[1:] < -_STANDSTILL * fastest))
    last = min([int(last), *(int(k) + 1 for k in breaks[:1])])
    if abs(speeds[0]) > _STANDSTILL * fastest or last < _FEWEST or np.max(forward_speeds[:last]) < 0.5 * fastest:
        return None
    elapsed = stamps - stamps[0]
    return _Start(elapsed[:last], forward_speeds[:last], HeldCommand(elapsed, direction * commands, 0.0))


def _table(starts: Sequence[_Start], delay: float) -> Vector:
    """Columns (r, 3 + starts): integral of the delayed torque, time, distance, and a constant for each start."""
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
    """Linearised fit about the solution, with the delay as an additional unknown: its change and interval."""
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
    """Times [s], commanded torques [N m] and speeds [rad/s], each (m,), of the starts of a joint from rest.

    The times are those of readings and commands, so that a command between two readings keeps its time; speeds are
    interpolated. A start ends where the joint reverses.
    """
    time, speed = arm.signals.time, arm.speed[:, joint]
    if arm.torque_commands is None or len(time) < _FEWEST or not np.all(np.isfinite(speed)):
        return []
    sent, commands = arm.torque_commands[0], arm.torque_commands[1][:, joint]
    readable = np.isfinite(commands)
    if not np.any(commands[readable]):
        return []
    command = HeldCommand(sent[readable], commands[readable], 0.0)
    at_rest = np.abs(speed) <= _STANDSTILL * float(np.max(np.abs(speed)))
    begins = np.flatnonzero(at_rest[:-1] & ~at_rest[1:])
    starts = []
    for begin, after in zip(begins, np.append(begins, len(time))[1:], strict=True):
        if time[begin] < sent[readable][0]:
            continue
        first, last = time[begin], min(time[after - 1], time[begin] + _DURATION)
        inside = (sent > first) & (sent < last)
        moments = np.union1d(time[(time >= first) & (time <= last)], sent[inside])
        starts.append((moments, command.held(moments), np.interp(moments, time, speed)))
    return [start for start in starts if len(start[0]) >= _FEWEST]
