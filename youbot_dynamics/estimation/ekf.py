"""Extended Kalman filter for any model: exact Jacobians, sequential updates.

The model advances the mean and gives the Jacobian of the step, F = dx+/dx, not 1 + A dt. Readings have their own
Jacobian and are processed one by one in Joseph's form, so the covariance stays symmetric and positive. Document 001
describes no update.
Source: system 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, scalar
from youbot_dynamics.compiled import compiled


@compiled
def correct(covariance: Vector, row: Vector, variance: float, shift: Vector, gain: Vector) -> None:
    """Joseph's update by one number: P+ = (1 - k h) P (1 - k h)' + k r k', k = P h' / s, s = h P h' + r.

    In this form P+ stays positive under rounding and for an inexact gain.

    Args:
        covariance: P (m, m), changed.
        row: h (m,).
        variance: r, above 0.
        shift: P h' (m,), from the caller.
        gain: k (m,), from the caller.

    Source: system 13.
    """
    m = len(gain)
    for i in range(m):
        factor = gain[i]
        for j in range(m):
            covariance[i, j] -= factor * shift[j]
    for i in range(m):
        projected = 0.0
        for j in range(m):
            projected += covariance[i, j] * row[j]
        projected -= gain[i] * variance
        for j in range(m):
            covariance[i, j] -= projected * gain[j]
    even_out(covariance, m)


@compiled
def correct_sparsely(
    covariance: Vector, first: int, weight: float, second: int, variance: float, shift: Vector, gain: Vector
) -> None:
    """`correct` for a row h that is 1 at `first`, `weight` at `second` and 0 elsewhere.

    P stays symmetric up to rounding; the caller calls `even_out` once per message.

    Args:
        covariance: P (m, m), changed.
        first: index of the 1.
        weight: the other element.
        second: its index.
        variance: r, above 0.
        shift: P h' (m,).
        gain: k (m,).
    """
    m = len(gain)
    for i in range(m):
        a = covariance[i, first] - gain[i] * shift[first]
        b = covariance[i, second] - gain[i] * shift[second]
        # k (P h')' and the rest of Joseph's form combined, since P h' = k s.
        both = shift[i] + a + weight * b - gain[i] * variance
        for j in range(m):
            covariance[i, j] -= both * gain[j]


@compiled
def even_out(covariance: Vector, m: int) -> None:
    """Make the leading m rows and columns of P (n, n) exactly symmetric."""
    for i in range(m):
        for j in range(i):
            mean = 0.5 * (covariance[i, j] + covariance[j, i])
            covariance[i, j] = mean
            covariance[j, i] = mean


# Outcomes of a message in `Ekf.update`.
TAKEN, REFUSED, UNUSABLE = "taken in", "beyond the gate", "not finite"


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a model with m states."""

    mean: Vector  # (m,) after the step
    jacobian: Vector  # (m, m) of the step
    noise: Vector  # (m, m) covariance of the process noise


# Step from (mean (m,), dt [s], input passed to the filter).
Model = Callable[[Vector, float, Any], Step]
# Readings expected (k,) and their Jacobian (k, m) from the mean (m,).
Sensor = Callable[[Vector], tuple[Vector, Vector]]


@dataclass(frozen=True, eq=False)
class Innovation:
    """Difference between readings and expected values."""

    difference: Vector  # (k,) reading minus expected value; NaN if missing
    # difference' covariance^-1 difference, chi-squared with `count` degrees of freedom for a consistent filter
    nis: float
    count: int  # number of readings that were not missing
    fate: str  # TAKEN, REFUSED or UNUSABLE


class Ekf:
    """State of m numbers that a model advances and readings correct.

    Args:
        mean: (m,) at the start.
        covariance: (m, m) at the start, positive definite.
        stamp: of the start [s].
        model: see `Model`.
        gate: in standard deviations; readings are refused if their NIS is less likely than such a deviation.

    Attributes:
        stamp: of the state [s].
        counts: of messages, by outcome.

    Raises:
        InputError: wrong shapes or numbers that are not finite.
    """

    def __init__(
        self, mean: ArrayLike, covariance: ArrayLike, stamp: float, model: Model, *, gate: float = math.inf
    ) -> None:
        self._mean = array("mean", mean, (None,)).copy()
        self._covariance = array("covariance", covariance, (len(self._mean),) * 2).copy()
        self.stamp = scalar("stamp", stamp)
        self._model, self._gate = model, gate
        self.counts = {TAKEN: 0, REFUSED: 0, UNUSABLE: 0}

    @property
    def mean(self) -> Vector:
        """State (m,), a copy."""
        return self._mean.copy()

    @property
    def covariance(self) -> Vector:
        """Covariance (m, m) of the state, a copy."""
        return self._covariance.copy()

    def predict(self, stamp: float, drive: Any = None) -> None:
        """Advance to a stamp [s]; an earlier one changes nothing. `drive` is the model's input during the step.

        Raises:
            FloatingPointError: the model's step overflows; the state stays as it was.
        """
        if stamp > self.stamp:
            step = self._model(self.mean, stamp - self.stamp, drive)
            with np.errstate(over="ignore", invalid="ignore"):
                covariance = step.jacobian @ self._covariance @ step.jacobian.T + step.noise
            if not (np.isfinite(step.mean).all() and np.isfinite(covariance).all()):
                raise FloatingPointError(f"a step of {stamp - self.stamp:g} s")
            self.stamp, self._mean, self._covariance = stamp, step.mean, covariance
            even_out(self._covariance, len(step.mean))

    def update(self, readings: Vector, sensor: Sensor, variances: Vector) -> Innovation:
        """Correct by readings (k,) of the present time, NaN if missing, with independent noise.

        Args:
            readings: (k,).
            sensor: expected readings and their Jacobian.
            variances: (k,) of their noise, above 0.
        """
        expected, jacobian = sensor(self.mean)
        difference = readings - expected
        mean, covariance, nis = self.mean, self.covariance, 0.0
        there = np.flatnonzero(np.isfinite(difference))
        for k in there:
            row, variance = jacobian[k], float(variances[k])
            shift = covariance @ row
            total = float(row @ shift) + variance
            surprise = float(difference[k] - row @ (mean - self._mean))
            gain = shift / total
            mean += gain * surprise
            correct(covariance, row, variance, shift, gain)
            nis += surprise * surprise / total
        likely_enough = nis <= likely(self._gate, len(there)) and bool(np.all(np.isfinite(mean)))
        fate = UNUSABLE if not len(there) else TAKEN if likely_enough else REFUSED
        if fate == TAKEN:
            self._mean, self._covariance = mean, covariance
        self.counts[fate] += 1
        return Innovation(difference, nis, len(there), fate)


def likely(deviations: float, count: int) -> float:
    """Bound of chi-squared with `count` degrees of freedom for the one-sided probability of a normal deviation.

    The deviation is `deviations` standard deviations. Approximation of Wilson and Hilferty.
    """
    if count == 0 or math.isinf(deviations):
        return math.inf
    part = 2.0 / (9.0 * count)
    return float(count * (1.0 - part + deviations * math.sqrt(part)) ** 3)


def positions_of(places: Sequence[int], size: int) -> Sensor:
    """Sensor of some elements of a state of m = `size`: expected values (k,), Jacobian (k, m)."""
    jacobian = np.zeros((len(places), size))
    jacobian[np.arange(len(places)), list(places)] = 1.0
    return lambda mean: (mean[list(places)], jacobian)
