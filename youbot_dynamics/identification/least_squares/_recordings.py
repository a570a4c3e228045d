"""Scatter between recordings, which one recording cannot show: random effects, wherever recordings are combined.

A robot drives anew with other phases of its clocks, warmer motors, another place on the floor. What that moves a value
by is no part of the scatter within a recording. It is taken as drawn anew for each: x_r = x + between + within.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, stdtrit

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.least_squares._verdict import CONFIDENCE

# Recordings from which on their scatter is known to a factor of 3, by the 95 % interval of a deviation
ENOUGH = 5
_FEWEST = 2  # degrees of freedom of the scatter between two: one has a t of 12.7
_ALONE = 5.0  # times the variance of the mean of equal recordings, up to which one of them counts by itself


def between(values: Vector, variances: Vector) -> float:
    """Variance between recordings beyond the variances (r,) of their values (r,), 0 where these explain all.

    The one with sum of (x - mean)^2 / (variance + between) at the median of its chi-square distribution of r - 1
    degrees of freedom (Viechtbauer 2021): Paule and Mandel's, at its mean, is too small in most pairs of recordings.
    """
    median = float(chdtri(len(values) - 1, 0.5))

    def excess(scatter: float) -> float:
        weights = 1.0 / (variances + scatter)
        off = values - weights @ values / weights.sum()
        return float(weights @ off**2) - median

    if excess(0.0) <= 0.0:
        return 0.0
    most = float(np.sum((values - np.mean(values)) ** 2)) / median
    return float(brentq(excess, 0.0, most, xtol=1e-9 * most))


def pooled(values: Vector, variances: Vector, freedom: float, weights: Vector | None = None) -> tuple[float, float]:
    """Weighted mean of the values (r,) of recordings, r at least 2, and its standard error with the scatter between.

    Its interval is Student's of Knapp and Hartung (2003), their variance not below that of the weights; degrees of
    freedom are `freedom` for the part within and r - 1 for the part between (2 of two: the median is half again as
    large, and holds a large scatter in 88 %), put together as Satterthwaite does. The standard error is the one with
    this interval for `freedom` degrees.

    Args:
        values: of the recordings.
        variances: of each, within its recording.
        freedom: of the variances together.
        weights: (r,) of the mean; the best ones if None, 1 / (variance + between).
    """
    scatter = between(values, variances)
    share = 1.0 / (variances + scatter) if weights is None else weights
    share = share / share.sum()
    parts = float(share**2 @ variances), scatter * float(share @ share)
    variance = sum(parts)
    of_all = variance**2 / (parts[0] ** 2 / freedom + parts[1] ** 2 / max(_FEWEST, len(values) - 1))
    return float(share @ values), float(np.sqrt(variance)) * student(of_all) / student(freedom)


def student(freedom: float) -> float:
    """Standard errors to either side of an interval, by Student's t."""
    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2.0))


def widening(values: Vector, variances: Vector, joint: float, freedom: float) -> float:
    """Factor on the standard error of a joint fit of all recordings, 1 or more, for the scatter between them.

    Args:
        values: (r,) of one unknown by each recording alone, NaN where it does not determine it.
        variances: (r,) of them. One whose variance is many times its share of the joint fit's hardly determines the
            value without the others, such as friction at one speed: it says nothing of the scatter.
        joint: variance of the joint fit.
        freedom: of the joint fit.
    """
    with np.errstate(invalid="ignore"):
        known = np.isfinite(values) & (variances > 0.0) & (variances < _ALONE * len(values) * joint)
    if np.count_nonzero(known) < 2:
        return 1.0
    weights = 1.0 / variances[known]
    return max(1.0, pooled(values[known], variances[known], freedom, weights)[1] * float(np.sqrt(weights.sum())))


@dataclass(frozen=True, eq=False)
class Within:
    """What a joint fit and each recording alone say of p unknowns, by the scatter within recordings."""

    covariance: Vector  # (p, p) of the joint fit
    alone: tuple[
        tuple[Vector, Vector], ...
    ]  # values (p,) and covariance (p, p) of each recording, NaN for what is open
    freedom: float  # of the joint fit

    def error_of(self, row: Vector) -> float:
        """Standard error of row (p,) @ values of the joint fit."""
        return math.sqrt(_variance(self.covariance, row))

    def widening_of(self, row: Vector) -> float:
        """Factor on the error of row (p,) @ values for the scatter between recordings: see `widening`."""
        if len(self.alone) < 2:
            return 1.0
        used = row != 0.0
        values = np.array([row[used] @ values[used] for values, _ in self.alone])
        variances = np.array([_variance(covariance, row) for _, covariance in self.alone])
        return widening(values, variances, _variance(self.covariance, row), self.freedom)


def _variance(covariance: Vector, row: Vector) -> float:
    """Variance of row (p,) @ values; NaN where one of those that count is open."""
    used = row != 0.0
    variance = float(row[used] @ covariance[np.ix_(used, used)] @ row[used])
    return variance if not variance < 0.0 else 0.0
