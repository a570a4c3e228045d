"""Speeds that a log repeated over several rows: found by how long they last, and put together as what they are.

A robot's loop measures a speed once a period; a faster log repeats it until the next one comes. Where the log loses
rows, or writes them in an uneven rhythm, fewer rows than usual carry a speed, and their sum is too short. Each reading
counts for one period then, however many rows show it. How many the log loses may depend on the motion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector

_FEWEST = 30  # readings that change, by which a rhythm is known
_FRESH = 0.01  # share of the readings that may last for a single row
_TWICE = 1.5  # times the usual number of rows: longer ones are two equal readings
_LONGEST = 0.95  # quantile of the usual ones that is the period: the log loses rows and adds none


class Held(NamedTuple):
    """What a log did to the readings of a robot."""

    rows: float  # mean number of rows for which it repeats a reading
    period: float  # rows for which a reading counts
    speeds: Vector  # (m, n) as if each reading had lasted for a period


def held(speeds: Vector) -> Held | None:
    """Readings of the wheels (m, n), in any unit, that a log of even rows repeated; None if it did not."""
    borders = [np.concatenate([[0], np.flatnonzero(np.diff(column) != 0.0) + 1, [len(column)]]) for column in speeds.T]
    values = [column[border[:-1]] for column, border in zip(speeds.T, borders, strict=True)]
    lengths = np.concatenate(
        [np.diff(border)[value != 0.0] for border, value in zip(borders, values, strict=True)] or [np.zeros(0, int)]
    )
    if len(lengths) < _FEWEST or np.quantile(lengths, _FRESH) < 2.0:
        return None
    once = lengths[lengths < _TWICE * np.bincount(lengths).argmax()]
    rows, period = float(np.mean(once)), float(np.quantile(once, _LONGEST))
    mended = np.empty(speeds.shape)
    for k, (border, value) in enumerate(zip(borders, values, strict=True)):
        lasting = np.diff(border)
        readings = np.maximum(np.round(lasting / rows), 1.0)
        mended[:, k] = np.repeat(value * readings * period / lasting, lasting)
    return Held(rows, period, mended)
