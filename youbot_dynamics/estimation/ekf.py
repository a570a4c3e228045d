"""An extended Kalman filter over messages with stamps, and the step of a Kalman filter by itself.

Extended Kalman filter for any model: exact Jacobians, one reading after the other, late messages by their stamps.

The model moves the mean and gives the Jacobian of that very step, F = dx+/dx, not 1 + A dt; readings come with their
own Jacobian. Readings of a message are made independent of each other and taken in one by one in Joseph's form, so
that the covariance stays symmetric and positive (seed 001 names no update; system 13).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector, array, scalar
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError, ModelError


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
TAKEN, REFUSED, TOO_LATE, UNUSABLE = "taken in", "beyond the gate", "too late", "not finite"


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
class Message:
    """k readings of one moment.

    Args:
        value: (k,) NaN where a reading is missing.
        sensor: what is expected of them.
        covariance: (k, k) of their noise, or (k,) variances.
        angles: (k,) which of them are angles, whose differences are wrapped to within -pi to pi; none by default.
    """

    value: Vector
    sensor: Sensor
    covariance: Vector
    angles: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Innovation:
    """How readings differ from those expected.

    Args:
        difference: (k,) reading less expectation, angles wrapped; NaN where missing.
        covariance: (k, k) expected of it, of the readings that are not missing the rows and columns, else NaN.
        nis: difference' covariance^-1 difference, chi-squared with `count` degrees of freedom where all is right.
        count: number of readings that were not missing.
        fate: TAKEN, REFUSED, TOO_LATE or UNUSABLE.
    """

    difference: Vector
    covariance: Vector
    nis: float
    count: int
    fate: str


@dataclass(frozen=True, eq=False)
class _Moment:
    """State after a message at a stamp, with what is needed to go over it once more."""

    stamp: float
    mean: Vector
    covariance: Vector
    drive: Any
    message: Message | None = field(default=None)


class Ekf:
    """State of m numbers that is moved by a model and corrected by messages.

    Between two stamps the input holds that was handed over with the first. A message whose stamp lies before the
    state's, but within `memory`, is put in its place and all after it are gone over once more.

    Args:
        mean: (m,) at the start.
        covariance: (m, m) at the start, positive definite.
        stamp: of the start [s].
        model: see `Model`.
        gate: standard deviations; a message is refused whose NIS is as unlikely as a number so far off.
        memory: how late a message may come [s].

    Raises:
        InputError: wrong shapes or numbers that are not finite.
        ModelError: a covariance that is not symmetric and positive.
    """

    def __init__(
        self,
        mean: ArrayLike,
        covariance: ArrayLike,
        stamp: float,
        model: Model,
        *,
        gate: float = math.inf,
        memory: float = 0.0,
    ) -> None:
        start = array("mean", mean, (None,)).copy()
        spread = array("covariance", covariance, (len(start), len(start))).copy()
        symmetric = np.allclose(spread, spread.T, rtol=1e-9, atol=0.0)
        if not symmetric or np.linalg.eigvalsh(spread)[0] <= 0.0:
            raise ModelError("covariance", got="not positive", expected="symmetric and positive definite")
        self._model = model
        self._gate = gate
        self._memory = memory
        self._moments = [_Moment(scalar("stamp", stamp), start, spread, None)]
        self.counts = {TAKEN: 0, REFUSED: 0, TOO_LATE: 0, UNUSABLE: 0}

    @property
    def stamp(self) -> float:
        """Of the state [s]."""
        return self._moments[-1].stamp

    @property
    def mean(self) -> Vector:
        """The state (m,), a copy."""
        return self._moments[-1].mean.copy()

    @property
    def covariance(self) -> Vector:
        """Of the state (m, m), a copy."""
        return self._moments[-1].covariance.copy()

    def predict(self, stamp: float, drive: Any = None) -> None:
        """Move on to a stamp; `drive` is the input from the last stamp to this one.

        Args:
            stamp: [s]; one before the state's changes nothing.
            drive: as the model takes it.
        """
        if stamp > self.stamp:
            self._keep(self._moved(self._moments[-1], stamp, drive))

    def update(self, message: Message, stamp: float | None = None) -> Innovation:
        """Take in a message.

        Args:
            message: its readings (k,).
            stamp: when they were taken [s], by default that of the state; one after it first moves the state there
                with the input of the last step.

        Raises:
            InputError: readings, expectation and noise whose shapes differ.
        """
        at = self.stamp if stamp is None else float(stamp)
        if not math.isfinite(at) or np.all(np.isnan(message.value)):
            return self._unused(message, UNUSABLE)
        if at > self.stamp:
            self.predict(at, self._moments[-1].drive)
        place = bisect_right([moment.stamp for moment in self._moments], at) - 1
        if place < 0 or at < self.stamp - self._memory:
            return self._unused(message, TOO_LATE)
        later = self._moments[place + 1 :]
        del self._moments[place + 1 :]
        if at > self._moments[-1].stamp:  # then there is a later one, whose input held
            self._keep(self._moved(self._moments[-1], at, later[0].drive))
        moment, innovation = self._corrected(self._moments[-1], message)
        self.counts[innovation.fate] += 1
        self._moments.append(moment)
        for after in later:
            again = self._moved(self._moments[-1], after.stamp, after.drive)
            if after.message is not None:
                again, _ = self._corrected(again, after.message)
            self._moments.append(again)
        self._forget()
        return innovation

    def _moved(self, moment: _Moment, stamp: float, drive: Any) -> _Moment:
        dt = stamp - moment.stamp
        if dt <= 0.0:
            return _Moment(stamp, moment.mean, moment.covariance, drive)
        step = self._model(moment.mean.copy(), dt, drive)
        covariance = step.jacobian @ moment.covariance @ step.jacobian.T + step.noise
        even_out(covariance, len(covariance))
        return _Moment(stamp, step.mean, covariance, drive)

    def _corrected(self, moment: _Moment, message: Message) -> tuple[_Moment, Innovation]:
        expected, jacobian = message.sensor(moment.mean.copy())
        k = len(message.value)
        noise = np.asarray(message.covariance, dtype=np.float64)
        noise = np.diag(noise) if noise.ndim == 1 else noise
        if expected.shape != (k,) or jacobian.shape != (k, len(moment.mean)) or noise.shape != (k, k):
            raise InputError(
                "message",
                got=f"{k} readings, expectation {expected.shape}, Jacobian {jacobian.shape}, noise {noise.shape}",
                expected=f"({k},), ({k}, {len(moment.mean)}) and ({k}, {k})",
            )
        difference = message.value - expected
        if message.angles is not None:
            wrapped = np.remainder(difference + np.pi, 2.0 * np.pi) - np.pi
            difference = np.where(message.angles, wrapped, difference)
        use = np.isfinite(difference)
        covariance = np.full((k, k), np.nan)
        covariance[np.ix_(use, use)] = jacobian[use] @ moment.covariance @ jacobian[use].T + noise[np.ix_(use, use)]
        # In these coordinates the readings' noises are independent, with variance 1.
        factor = np.linalg.cholesky(noise[np.ix_(use, use)])
        rows = np.linalg.solve(factor, jacobian[use])
        left = np.linalg.solve(factor, difference[use])
        mean, spread, nis = moment.mean.copy(), moment.covariance.copy(), 0.0
        for row, off in zip(rows, left, strict=True):
            shift = spread @ row
            total = float(row @ shift) + 1.0
            surprise = float(off - row @ (mean - moment.mean))
            gain = shift / total
            mean += gain * surprise
            correct(spread, np.ascontiguousarray(row), 1.0, shift, gain)
            nis += surprise * surprise / total
        fate = TAKEN if nis <= likely(self._gate, int(use.sum())) and np.all(np.isfinite(mean)) else REFUSED
        innovation = Innovation(difference, covariance, nis, int(use.sum()), fate)
        if fate == REFUSED:
            return moment, innovation
        return _Moment(moment.stamp, mean, spread, moment.drive, message), innovation

    def _keep(self, moment: _Moment) -> None:
        self._moments.append(moment)
        self._forget()

    def _forget(self) -> None:
        oldest = self.stamp - self._memory
        while len(self._moments) > 1 and self._moments[1].stamp <= oldest:
            del self._moments[0]

    def _unused(self, message: Message, fate: str) -> Innovation:
        self.counts[fate] += 1
        k = len(message.value)
        return Innovation(np.full(k, np.nan), np.full((k, k), np.nan), 0.0, 0, fate)


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
