"""Ljung-Box test of whether a residual is white, on uniform times, without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc

from youbot_dynamics.arrays import array
from youbot_dynamics.errors import InputError

_LAGS = 20  # fewer for short residuals
_FEWEST = 20
_LEVEL = 0.01  # significance level: one white residual in a hundred is rejected


@dataclass(frozen=True)
class Whiteness:
    """Autocorrelation of a residual in time; NaN if there are too few samples."""

    q: float  # Ljung-Box statistic [1]
    p_value: float  # of q: probability of such a value for stationary white noise
    # The same for white noise with a changing variance, such as that of stamp jitter, which grows with speed
    uneven_p_value: float
    lags: int  # number of lags in q; 0 if there are too few samples
    correlations: tuple[float, ...]  # r1, r2, ... at one to `lags` steps
    step: float  # between the uniform times [s]
    samples: int  # number of residuals tested

    @property
    def white(self) -> bool:
        """Whether the residual is consistent with white noise: p above 1 % in the test for a changing variance."""
        return self.uneven_p_value > _LEVEL


def whiteness(time: ArrayLike, residual: ArrayLike) -> Whiteness:
    """Test a residual: Q = n (n + 2) sum_k r_k^2 / n_k is chi-square for white noise, one degree of freedom per lag.

    Readings are assigned to the nearest uniform time, one median step apart. Times without a reading stay empty, and
    n_k is the number of pairs. Interpolation would colour the residual. Q assumes a constant noise variance; sum_k
    (sum_t e_t e_t-k)^2 / sum_t e_t^2 e_t-k^2 does not. Fitted parameters do not reduce the degrees of freedom: only
    those of a noise model would, not a gain or a delay of the motion.

    A residual that is not white shows slow variations that the model does not explain. Intervals then need blocks,
    which the fits use.

    Args:
        time: (m,) [s], not decreasing.
        residual: (m,) any unit.

    Raises:
        InputError: shapes that do not fit, values that are not finite, or times that decrease.

    Source: Ljung and Box 1978; Lobato, Nankervis and Savin 2001.
    """
    stamps = array("time", time, (None,))
    residuals = array("residual", residual, stamps.shape)
    steps = np.diff(stamps)
    if np.any(steps < 0.0):
        place = int(np.argmax(steps < 0.0))
        raise InputError(f"time[{place + 1}]", got=f"{stamps[place + 1]:g} s", expected=f"{stamps[place]:g} s or later")
    step = float(np.median(steps)) if len(steps) else nan
    used = min(_LAGS, len(residuals) // 4)
    if len(residuals) < _FEWEST or step <= 0.0 or np.ptp(residuals) == 0.0:
        return Whiteness(nan, nan, nan, 0, (), step, len(residuals))
    place = np.round((stamps - stamps[0]) / step).astype(np.int64)
    # Shorten every gap to one step more than the largest lag to save memory.
    kept = np.concatenate([[0], np.cumsum(np.minimum(np.diff(place), used + 1))])
    count = np.bincount(kept)
    there = count > 0
    even = np.bincount(kept, weights=residuals) / np.maximum(count, 1)
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
