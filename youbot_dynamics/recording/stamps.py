"""Stamps of messages: which rows keep time order, and seconds relative to an origin."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.recording.series import FloatArray

IntArray = NDArray[np.int64]


def longest_nondecreasing(values: IntArray) -> IntArray:
    """Return the rows of a longest subsequence that never decreases.

    One stamp far in the future would make a running maximum reject everything after it; the longest
    subsequence loses that one row only.

    Args:
        values: shape (n,).

    Returns:
        Shape (m,), increasing row numbers; all of them when the values never decrease.
    """
    if values.size < 2 or bool(np.all(values[1:] >= values[:-1])):
        return np.arange(values.size)
    tails: list[int] = []
    tail_rows: list[int] = []
    previous = np.full(values.size, -1, dtype=np.int64)
    for row, value in enumerate(values.tolist()):
        length = bisect_right(tails, value)
        if length:
            previous[row] = tail_rows[length - 1]
        if length == len(tails):
            tails.append(value)
            tail_rows.append(row)
        else:
            tails[length] = value
            tail_rows[length] = row
    rows = np.empty(len(tails), dtype=np.int64)
    row = tail_rows[-1]
    for place in range(len(tails) - 1, -1, -1):
        rows[place] = row
        row = int(previous[row])
    return rows


def ordered_rows(stamp: IntArray) -> IntArray:
    """Return the rows to keep: stamped ones that do not decrease, or every row if none is stamped.

    Args:
        stamp: shape (n,) [ns], 0 where the sender left the stamp empty.
    """
    stamped = np.flatnonzero(stamp)
    if stamped.size == 0:
        return np.arange(stamp.size)
    rows: IntArray = stamped[longest_nondecreasing(stamp[stamped])]
    return rows


def seconds(nanoseconds: IntArray, origin: int) -> FloatArray:
    """Return times relative to an origin.

    Args:
        nanoseconds: shape (n,) [ns].
        origin: [ns].

    Returns:
        Shape (n,) [s].
    """
    return np.asarray((nanoseconds - np.int64(origin)) * 1e-9, dtype=np.float64)


def stamp_seconds(stamp: IntArray, origin: int) -> FloatArray:
    """Return stamps relative to an origin, NaN throughout if none is set.

    Args:
        stamp: shape (n,) [ns], 0 where the sender left the stamp empty.
        origin: [ns].

    Returns:
        Shape (n,) [s].
    """
    return seconds(stamp, origin) if np.any(stamp) else np.full(stamp.size, np.nan)
