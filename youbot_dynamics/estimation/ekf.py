"""Extended Kalman filter for any model: exact Jacobians, one reading after the other.

The model moves the mean and gives the Jacobian of that very step, F = dx+/dx, not 1 + A dt; readings come with their
own Jacobian and are taken in one by one in Joseph's form, so that the covariance stays symmetric and positive (seed 001
names no update; system 13).
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
    """Update of Joseph by one number: P+ = (1 - k h) P (1 - k h)' + k r k', k = P h' / s, s = h P h' + r.

    In this form rounding, or a gain that is not quite right, leaves P+ positive; seed 001 gives none (system 13).

    Args:
        covariance: P (m, m), changed.
        row: h (m,).
        variance: r, above 0.
        shift: P h' (m,), which the caller has.
        gain: k (m,), which the caller has.
    """
    m = len(gain)
    for i in range(m):
        factor = gain[i]
        for j in range(m):
            covariance[i, j] -= factor * shift[j]
    for i in range(m):
        left = 0.0
        for j in range(m):
            left += covariance[i, j] * row[j]
        left -= gain[i] * variance
        for j in range(m):
            covariance[i, j] -= left * gain[j]
    even_out(covariance, m)


@compiled
def correct_sparsely(
    covariance: Vector, first: int, weight: float, second: int, variance: float, shift: Vector, gain: Vector
) -> None:
    """`correct` for a row h that is 1 at `first`, `weight` at `second` and 0 elsewhere.

    It leaves P symmetric but for rounding: `even_out` is the caller's, once a message.

    Args:
        covariance: P (m, m), changed.
        first: place of the 1.
        weight: the other number.
        second: its place.
        variance: r, above 0.
        shift: P h' (m,).
        gain: k (m,).
    """
    m = len(gain)
    for i in range(m):
        a = covariance[i, first] - gain[i] * shift[first]
        b = covariance[i, second] - gain[i] * shift[second]
        # k (P h')' and the rest of Joseph's form in one, since P h' = k s.
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


# What `Ekf.update` counts a message as.
TAKEN, REFUSED, UNUSABLE = "taken in", "beyond the gate", "not finite"


@dataclass(frozen=True, eq=False)
class Step:
    """A model's step for a state of m numbers.

    Args:
        mean: (m,) after it.
        jacobian: (m, m) of it.
        noise: (m, m) covariance it adds.
    """

    mean: Vector
    jacobian: Vector
    noise: Vector


# Step from (mean (m,), dt [s], input as handed to the filter).
Model = Callable[[Vector, float, Any], Step]
# Readings expected (k,) and their Jacobian (k, m) from the mean (m,).
Sensor = Callable[[Vector], tuple[Vector, Vector]]


@dataclass(frozen=True, eq=False)
class Innovation:
    """How readings differ from those expected.

    Args:
        difference: (k,) reading less expectation; NaN where missing.
        nis: difference' covariance^-1 difference, chi-squared with `count` degrees of freedom where all is right.
        count: number of readings that were not missing.
        fate: TAKEN, REFUSED or UNUSABLE.
    """

    difference: Vector
    nis: float
    count: int
    fate: str


class Ekf:
    """State of m numbers that is moved by a model and corrected by readings.

    Args:
        mean: (m,) at the start.
        covariance: (m, m) at the start, positive definite.
        stamp: of the start [s].
        model: see `Model`.
        gate: standard deviations; readings are refused whose NIS is as unlikely as a number so far off.

    Attributes:
        stamp: of the state [s].
        counts: of messages, by fate.

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
        """The state (m,), a copy."""
        return self._mean.copy()

    @property
    def covariance(self) -> Vector:
        """Of the state (m, m), a copy."""
        return self._covariance.copy()

    def predict(self, stamp: float, drive: Any = None) -> None:
        """Move on to a stamp [s], one before the state's changes nothing; `drive` is the model's input till then."""
        if stamp > self.stamp:
            step = self._model(self.mean, stamp - self.stamp, drive)
            self.stamp, self._mean = stamp, step.mean
            self._covariance = step.jacobian @ self._covariance @ step.jacobian.T + step.noise
            even_out(self._covariance, len(step.mean))

    def update(self, readings: Vector, sensor: Sensor, variances: Vector) -> Innovation:
        """Take in readings (k,) of this moment, NaN where missing, whose noise is independent.

        Args:
            readings: (k,).
            sensor: what is expected of them.
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
    """Bound of chi-squared with `count` degrees of freedom that is passed as rarely as a normal number passes
    `deviations` standard deviations on one side; Wilson and Hilferty's approximation.
    """  # noqa: D205
    if count == 0 or math.isinf(deviations):
        return math.inf
    part = 2.0 / (9.0 * count)
    return float(count * (1.0 - part + deviations * math.sqrt(part)) ** 3)


def positions_of(places: Sequence[int], size: int) -> Sensor:
    """Sensor that reads some numbers of a state of m = `size` as they are: expectation (k,), Jacobian (k, m)."""
    jacobian = np.zeros((len(places), size))
    jacobian[np.arange(len(places)), list(places)] = 1.0
    return lambda mean: (mean[list(places)], jacobian)
