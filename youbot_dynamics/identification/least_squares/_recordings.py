"""Scatter between recordings, by a random-effects model.

Each drive has other clock phases, motor temperatures and places on the floor. Their effect on a value is not part of
the scatter within a recording. It is modelled as a random term of each recording: x_r = x + between + within.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, stdtrit

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.least_squares._verdict import CONFIDENCE, WIDEST_SHARE, Estimate, Unknown, judge

# Number of recordings for which the 95 % interval of their standard deviation is narrower than a factor of 3
ENOUGH = 5
_FREEDOM = 30.0  # degrees of freedom of the errors of several recordings, each of at least half a minute
_FEWEST = 2  # degrees of freedom for the scatter between two recordings: with 1, t would be 12.7
_ALONE = 5.0  # largest variance of a recording used, relative to that of one of several equal recordings


def between(values: Vector, variances: Vector) -> float:
    """Variance between recordings beyond the variances (r,) of their values (r,), 0 if these explain the scatter.

    The result makes sum of (x - mean)^2 / (variance + between) equal to the median of its chi-square distribution with
    r - 1 degrees of freedom. The Paule-Mandel estimate, which uses its mean, is too small for most pairs of recordings.

    Source: Viechtbauer 2021.
    """
    from scipy.optimize import brentq  # only here: every reader of a bag would need 40 MB more

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
    """Weighted mean of the values (r,) of recordings, r >= 2, and its standard error with the scatter between them.

    The interval is the Student interval of Knapp and Hartung, with their variance not below that of the weights. The
    degrees of freedom combine `freedom` for the part within and r - 1 for the part between by Satterthwaite's formula.
    For two recordings 2 replaces r - 1: the median interval is half again as large and contains a large scatter in 88 %
    of cases. The returned standard error gives this interval with `freedom` degrees of freedom, those of the variances
    (r,) within the recordings. The weights (r,) of the mean are 1 / (variance + between) if None.

    Source: Knapp and Hartung 2003.
    """
    scatter = between(values, variances)
    share = 1.0 / (variances + scatter) if weights is None else weights
    share = share / share.sum()
    parts = float(share**2 @ variances), scatter * float(share @ share)
    variance = sum(parts)
    of_all = variance**2 / (parts[0] ** 2 / freedom + parts[1] ** 2 / max(_FEWEST, len(values) - 1))
    return float(share @ values), float(np.sqrt(variance)) * student(of_all) / student(freedom)


def combined(estimates: Sequence[Estimate], *, systematic: bool = False) -> Estimate:
    """Random-effects mean of the identified values of recordings; the only one if there are no more, or else a refusal.

    Args:
        estimates: of a quantity that is not negative, at least one. A half-width suffices for the mean if it is a share
            of it, as in `judge`, or if it sufficed for a recording although it was a larger share of its value.
        systematic: whether a part of the errors is the same in all recordings. It does not average out: the interval
            then reaches as far as those of the recordings do in the mean.
    """
    identified = [estimate for estimate in estimates if estimate.identified]
    if len(identified) <= 1:
        return (identified or estimates)[0]
    table = np.array([np.r_[one.value, one.standard_error, one.interval] for one in identified])
    values, errors = np.ascontiguousarray(table[:, :2].T)
    value, error = pooled(values, np.maximum(errors, 1e-9) ** 2, _FREEDOM)
    low = high = student(_FREEDOM) * error
    if systematic:
        below, above = np.mean(np.abs(table[:, 2:] - values[:, None]), axis=0).tolist()
        low, high = max(low, below), max(high, above)
    half_widths = np.max(np.abs(table[:, 2:] - values[:, None]), axis=1)
    negligible = float(np.max(half_widths[half_widths > WIDEST_SHARE * values], initial=0.0))
    unknown = Unknown(identified[0].name, identified[0].unit, low=0.0, resolution=negligible)
    error = 0.5 * (low + high) / student(_FREEDOM)
    return judge(unknown, value, error, max(low, high), interval=(value - low, value + high))


def student(freedom: float) -> float:
    """Half-width of the 95 % interval in standard errors, by Student's t."""
    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2.0))


def jackknife_error(replicates: ArrayLike) -> float:
    """Standard error of a real or complex value from those (k,) found without one block of the data each."""
    values = np.asarray(replicates)
    return float(np.sqrt((len(values) - 1) * np.mean(np.abs(values - np.mean(values)) ** 2)))


def widening(values: Vector, variances: Vector, joint: float, freedom: float) -> float:
    """Factor (1 or more) on the standard error of a joint fit of all recordings, for the scatter between them.

    Args:
        values: (r,) of one unknown from each recording alone, NaN if undetermined.
        variances: (r,) of them. A recording with a variance many times larger than expected hardly determines the value
            alone (friction at one speed, for example) and is ignored.
        joint: variance of the joint fit.
        freedom: degrees of freedom of the joint fit.
    """
    with np.errstate(invalid="ignore"):
        known = np.isfinite(values) & (variances > 0.0) & (variances < _ALONE * len(values) * joint)
    if np.count_nonzero(known) < 2:
        return 1.0
    weights = 1.0 / variances[known]
    return max(1.0, pooled(values[known], variances[known], freedom, weights)[1] * float(np.sqrt(weights.sum())))


@dataclass(frozen=True, eq=False)
class Within:
    """Values of p unknowns from the joint fit and from each recording alone, with the scatter within recordings."""

    covariance: Vector  # (p, p) of the joint fit
    alone: tuple[tuple[Vector, Vector], ...]  # values (p,) and covariance (p, p) of each recording, NaN if undetermined
    freedom: float  # degrees of freedom of the joint fit

    def error_of(self, row: Vector) -> float:
        """Standard error of row (p,) @ values of the joint fit."""
        return math.sqrt(_variance(self.covariance, row))

    def widened(self) -> Vector:
        """Covariance (p, p) with the scatter between recordings."""
        wider = np.array([self.widening_of(row) for row in np.eye(len(self.covariance))])
        return np.asarray(self.covariance * np.outer(wider, wider))

    def widening_of(self, row: Vector) -> float:
        """Factor on the error of row (p,) @ values for the scatter between recordings, see `widening`."""
        if len(self.alone) < 2:
            return 1.0
        used = row != 0.0
        values = np.array([row[used] @ values[used] for values, _ in self.alone])
        variances = np.array([_variance(covariance, row) for _, covariance in self.alone])
        return widening(values, variances, _variance(self.covariance, row), self.freedom)


def _variance(covariance: Vector, row: Vector) -> float:
    """Variance of row (p,) @ values; NaN if an unknown with a nonzero coefficient is undetermined."""
    used = row != 0.0
    variance = float(row[used] @ covariance[np.ix_(used, used)] @ row[used])
    return variance if not variance < 0.0 else 0.0
