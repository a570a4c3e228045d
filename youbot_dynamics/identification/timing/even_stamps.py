"""Stamps without their jitter, where it is theirs and not that of the readings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import savgol_filter

from youbot_dynamics.arrays import array

Vector = NDArray[np.float64]

_AROUND = 12  # readings to either side over which stamps are smoothed
_GAP = 3.0  # times the usual step between stamps: beyond it readings are missing


def even_stamps(time: ArrayLike, position: ArrayLike) -> Vector:
    """Times (s,) with their jitter smoothed out, where that makes the positions smoother too; else as they were.

    A driver that reads in a regular loop and stamps late shows its jitter as accelerations: 1 ms at 1 rad/s, read 50
    times a second, as 2.5 rad/s2. One whose loop itself is irregular stamps what is true, and smooth stamps would be
    wrong. The positions tell which, by their third differences. Between gaps each stretch is smoothed by itself.

    Args:
        time: (s,) stamps, increasing [s].
        position: (s, n) of the joints [rad].
    """
    stamps = array("time", time, (None,))
    table = array("position", position, (len(stamps), None))
    if len(stamps) < 2:
        return stamps
    steps = np.diff(stamps)
    ends = np.concatenate([[0], np.flatnonzero(steps > _GAP * np.median(steps)) + 1, [len(stamps)]])
    even = stamps.copy()
    for first, last in zip(ends[:-1], ends[1:], strict=True):
        if last - first > 2 * _AROUND + 1:
            even[first:last] = savgol_filter(stamps[first:last], 2 * _AROUND + 1, 1)
    if np.any(np.diff(even) <= 0.0):
        return stamps
    return even if _roughness(even, table) < _roughness(stamps, table) else stamps


def _roughness(time: Vector, position: Vector) -> float:
    """Squares of the third divided differences of positions (s, n) over times (s,), joints in units of their spread."""
    table = position / np.maximum(np.ptp(position, axis=0), 1e-6)
    for order in range(1, 4):
        spans = np.maximum(time[order:] - time[:-order], 1e-9)
        table = np.diff(table, axis=0) / spans[:, None]
    return float(np.sum(table**2))
