"""Accelerations out of speeds that come with stamps: their slope, a time constant late."""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, number

_LONGEST_GAP = 0.5  # [s] between stamps, after which nothing is known of the slope


class SpeedRate:
    """Slope of n speeds behind a first-order lag, a = (v - u) / T with u' = a; it is exact, T late, on a ramp.

    Args:
        lag: T [s].

    Raises:
        ModelError: a lag that is not positive.
    """

    def __init__(self, lag: float) -> None:
        self._lag = number("lag", lag, "s", above=0.0)
        self._stamp = np.nan
        self._before: Vector = np.zeros(0)
        self._behind: Vector = np.zeros(0)
        self._rate: Vector = np.zeros(0)

    def take(self, stamp: float, speeds: ArrayLike) -> Vector:
        """Accelerations (n,) after speeds (n,) at a stamp [s]: 0 at first, after a gap and where stamps do not go on.

        Speeds run straight between two stamps. One that is no number leaves everything as it was.
        """
        told = np.array(speeds, dtype=np.float64)
        if not np.isfinite(told).all():
            return self._rate if len(self._rate) else np.zeros(len(told))
        elapsed = stamp - self._stamp
        if not 0.0 < elapsed <= _LONGEST_GAP:
            self._behind = told
        else:
            left, lead = exp(-elapsed / self._lag), (self._lag / elapsed) * (told - self._before)
            self._behind = told - lead + left * (self._behind - self._before + lead)
        self._stamp, self._before = stamp, told
        self._rate = (told - self._behind) / self._lag
        return self._rate
