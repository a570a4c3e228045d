"""Whether a residual is white: Ljung-Box, on even times, gaps left out."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc

from youbot_dynamics.arrays import array
from youbot_dynamics.errors import InputError

_LAGS = 20
_FEWEST = 20
_LEVEL = 0.01  # of the test: one white residual in a hundred is called coloured


@dataclass(frozen=True)
class Whiteness:
    """How a residual follows itself in time; NaN where there is too little of it."""

    q: float  # Ljung-Box statistic [1]
    p_value: float  # of q: how often steady white noise gives as much
    # The same for white noise whose strength changes, as that of jittering stamps does with speed
    uneven_p_value: float
    lags: int  # number of lags in q; 0 where there is too little to tell
    correlations: tuple[float, ...]  # r1, r2, ... at one to `lags` steps
    step: float  # between the even times [s]
    samples: int  # residuals that were tested

    @property
    def white(self) -> bool:
        """Whether nothing speaks against it: p above 1 % by the test that strength may change."""
        return self.uneven_p_value > _LEVEL


def whiteness(time: ArrayLike, residual: ArrayLike, *, lags: int = _LAGS) -> Whiteness:
    """Test a residual: Q = n (n + 2) sum_k r_k^2 / n_k, chi-square of as many degrees as lags for white noise.

    Readings go to the nearest of even times, the median step apart; times without a reading stay empty, and n_k counts
    the pairs that are there. Interpolating instead would colour the residual it is to judge. Q takes the noise as
    equally strong throughout; sum_k (sum_t e_t e_t-k)^2 / sum_t e_t^2 e_t-k^2 does not (Lobato, Nankervis, Savin 2001).
    Fitted parameters take no degrees away: those of a noise model would, a gain or a delay of the motion does not.

    Intervals of a fit whose residual is not white need blocks; they have them. What a residual that is not white says
    is that the model lacks something that moves slower than the readings.

    Args:
        time: (m,) [s], not decreasing.
        residual: (m,) any unit.
        lags: largest lag, fewer for short residuals.

    Raises:
        InputError: shapes that do not fit, not finite, or times that decrease.
    """
    stamps = array("time", time, (None,))
    left = array("residual", residual, stamps.shape)
    steps = np.diff(stamps)
    if np.any(steps < 0.0):
        place = int(np.argmax(steps < 0.0))
        raise InputError(f"time[{place + 1}]", got=f"{stamps[place + 1]:g} s", expected=f"{stamps[place]:g} s or later")
    step = float(np.median(steps)) if len(steps) else nan
    used = min(lags, len(left) // 4)
    if len(left) < _FEWEST or step <= 0.0 or np.ptp(left) == 0.0:
        return Whiteness(nan, nan, nan, 0, (), step, len(left))
    place = np.round((stamps - stamps[0]) / step).astype(np.int64)
    # Every gap is cut to one step beyond the largest lag: long gaps need no memory.
    kept = np.concatenate([[0], np.cumsum(np.minimum(np.diff(place), used + 1))])
    count = np.bincount(kept)
    there = count > 0
    even = np.bincount(kept, weights=left) / np.maximum(count, 1)
    n = int(there.sum())
    even = np.where(there, even - even[there].mean(), 0.0)
    variance = float(even @ even) / n
    pairs = np.array([int(np.count_nonzero(there[k:] & there[:-k])) for k in range(1, used + 1)])
    sums = np.array([float(even[k:] @ even[:-k]) for k in range(1, used + 1)])
    squares = np.array([float(even[k:] ** 2 @ even[:-k] ** 2) for k in range(1, used + 1)])
    r = sums / (np.maximum(pairs, 1) * variance)
    q = float(np.sum(n * (n + 2.0) * r**2 * pairs / n**2))
    uneven = float(np.sum(sums[squares > 0.0] ** 2 / squares[squares > 0.0]))
    p_value, uneven_p = (float(gammaincc(0.5 * used, 0.5 * statistic)) for statistic in (q, uneven))
    return Whiteness(q, p_value, uneven_p, used, tuple(r.tolist()), step, n)
