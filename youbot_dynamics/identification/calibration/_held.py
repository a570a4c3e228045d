"""Speeds that a log repeated over several rows: found by how long they last, and put together as what they are.

A robot's loop measures a speed once a period; a faster log repeats it until the next one comes. Where the log loses
rows, some readings have fewer rows than a period has, and their sum is too short. Each reading counts for one period
then, however many rows show it. How many the log loses may depend on the motion. That the period is the usual longest
number of rows is an assumption: the lengths alone show only that the log is uneven. A loop whose period is no multiple
of the log's keeps an even beat, and nothing is lost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array

_FEWEST = 30  # readings that change, by which a rhythm is known
_FRESH = 0.01  # share of the readings that may last for a single row
_RHYTHM = 0.5  # least share of the readings that last about as long as the usual one, or twice as long
_MOST_ROWS = 10.0  # of the usual reading: a slow signal in coarse steps lasts longer
_BEAT = 3.0  # [rows] by which an even beat may be off
_TWICE = 1.5  # times the usual number of rows: longer ones are two equal readings
_LONGEST = 0.95  # quantile of the usual ones that is the period: the log loses rows and adds none


class Held(NamedTuple):
    """What a log did to the readings of a robot."""

    rows: float  # mean number of rows for which it repeats a reading
    period: float  # rows for which a reading counts
    speeds: Vector  # (m, n) as if each reading had lasted for a period


def held(speeds: ArrayLike) -> Held | None:
    """Readings of the wheels (m, n), in any unit, that a log of even rows repeated and lost rows of.

    Returns:
        None if the rows are new ones, or keep an even beat, or are too few to tell.

    Raises:
        InputError: another shape, or values that are not finite.
    """
    columns = array("speeds", speeds, (None, None)).T
    borders = [np.flatnonzero(np.diff(column, prepend=np.nan, append=np.nan) != 0.0) for column in columns]
    values = [column[border[:-1]] for column, border in zip(columns, borders, strict=True)]
    lasting = [np.diff(border) for border in borders]
    moving = [length[value != 0.0] for length, value in zip(lasting, values, strict=True)]
    lengths = np.concatenate([*moving, np.zeros(0, dtype=np.int64)])
    if len(lengths) < _FEWEST or np.quantile(lengths, _FRESH) < 2.0:
        return None
    usual = int(np.bincount(lengths).argmax())
    rhythm = np.minimum(np.abs(lengths - usual), np.abs(lengths - 2 * usual)) <= 1
    once = lengths[lengths < _TWICE * usual]
    rows, period = float(np.mean(once)), float(np.quantile(once, _LONGEST))
    walks = [np.ptp(np.cumsum(length - rows * np.round(length / rows))) for length in moving if len(length)]
    if usual > _MOST_ROWS or np.mean(rhythm) < _RHYTHM or max(walks) <= _BEAT:
        return None
    mended = [
        np.repeat(value * np.maximum(np.round(length / rows), 1.0) * period / length, length)
        for value, length in zip(values, lasting, strict=True)
    ]
    return Held(rows, period, np.column_stack(mended))
