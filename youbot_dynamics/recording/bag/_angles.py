"""Angles that a driver wraps into one turn, or whose counter rolls over, put together again."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector

_LEAP = 0.5  # share of the range of the readings above which a step between two of them is a leap
_FASTEST = 0.4  # largest share of the range that the joint may move between two readings; a leap is the rest of it
_EDGE = 1.5  # largest usual steps from the ends of the range within which a reading before or after a leap lies
_CLEAR = 0.2  # largest usual steps above which the motion beside a leap has a direction
_GAP = 1.5  # median periods between two readings above which some are missing between them
_TURN = 2.0 * np.pi
_ROUND = 0.05  # [rad] from a whole number of turns within which a range is that number


def unwrapped(time: Vector, positions: Vector) -> tuple[Vector, Vector]:
    """Positions (n, k) of joints without the leaps of their range, and the range (k,) of each [rad], 0 for no leaps.

    Times (n,) [s] increase. Turns during a gap between readings stay unknown.

    Readings that leap from one end of their range to the other, against their motion before and after, are wrapped. A
    corrupt reading does not start and end there, and one after a fast motion does not leap against it. A range is a
    whole number of turns if it nearly is one, or else the mean leap with the motion between its two readings.
    """
    known = np.isfinite(positions)
    ranges = np.array([_range(time[sound], column[sound]) for sound, column in zip(known.T, positions.T, strict=True)])
    if not np.any(ranges):
        return positions, ranges
    together = positions.copy()
    for k in np.flatnonzero(ranges):
        together[known[:, k], k] = np.unwrap(positions[known[:, k], k], period=ranges[k])
    return together, ranges


def _range(time: Vector, angles: Vector) -> float:
    """Range of wrapped angles (n,) [rad] at times (n,) [s], 0 if they are not."""
    if len(angles) < 3:
        return 0.0
    low, high = float(np.min(angles)), float(np.max(angles))
    steps, passed = np.diff(angles), np.diff(time)
    gaps = passed > _GAP * np.median(passed)
    leaps = (np.abs(steps) > _LEAP * (high - low)) & ~gaps
    others = ~leaps & ~gaps
    if not np.any(leaps) or not np.any(others) or high - low < 0.5 * _TURN:
        return 0.0
    usual = float(np.max(np.abs(steps[others])))
    if usual > _FASTEST * (high - low) or np.min(np.abs(steps[leaps])) < (1.0 - _FASTEST) * (high - low):
        return 0.0
    ends = np.column_stack([angles[:-1], angles[1:]])[leaps]
    edge = _EDGE * usual
    if np.any(np.min(ends, axis=1) > low + edge) or np.any(np.max(ends, axis=1) < high - edge):
        return 0.0
    # Between the two readings of a leap the joint moves as between those before.
    before = np.where(others, steps, np.nan)
    sides = np.array([np.append(np.nan, before[:-1]), np.append(before[1:], np.nan)])[:, leaps]
    known = np.isfinite(sides)
    near = np.nansum(sides, axis=0) / np.maximum(1, np.sum(known, axis=0))
    against = -np.sign(steps[leaps]) * near
    clear = np.abs(near) > _CLEAR * usual
    if not np.any(clear) or np.any(against[clear] < 0.0):
        return 0.0
    mean = float(np.mean(np.abs(steps[leaps] - near)))
    turns = round(mean / _TURN)
    return turns * _TURN if turns and abs(mean - turns * _TURN) < max(_ROUND, 0.5 * usual) else mean
