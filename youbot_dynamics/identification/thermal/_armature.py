"""Resistance and torque constant of a motor: V = R i + K w.

Voltage, current and speed determine both constants; without the voltage, neither. Source: systems 1, 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, rms
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.least_squares import (
    NORMAL,
    SIGNIFICANT,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    Rows,
    Unknown,
    least_squares,
    strength,
    student,
    too_little,
    undetermined,
    widened,
)

_NO_VOLTAGE = Reason(
    Kind.NOT_MEASURED,
    "the recording holds no motor voltage, and a voltage computed as R i + K w would only return its own R and K; "
    "needed: the measured voltage at the terminals",
)

_UNSIGNED = Reason(
    Kind.WRONG_SIGNALS,
    "the current never changes its sign, but the voltage does as if it did: its sign was not recorded; needed: the "
    "current with its sign",
)
_CONSTANT = Reason(Kind.NOT_EXCITED, "the voltage was constant; needed: one that changes, such as steps")

MEAN = 0.02  # averaging time of voltage, current and speed [s], longer than current loop and PWM period
_WINDOW = 5.0  # averaging time of the winding's resistance [s], a third of its thermal time constant
_LEAST_CURRENT_SHARE = 0.25  # least mean square current of a window, as a share of that of the recording
_FIRST_WINDOWS = 4  # windows that determine the cold resistance
_FEWEST_BLOCKS = 12
# Share of the unexplained power of the voltage below which the current lacks its sign; signs that follow noise leave a
# third, and the number of iterations of sign and torque constant.
_UNSIGNED_SHARE, _SIGN_ITERATIONS = 0.2, 5
_CONSTANT_VOLTAGE = 1e-6  # relative change of a voltage below which it counts as constant
EXPLAINS = 0.5  # R^2 below which the values of a model are meaningless
# Standard deviations of errors that do not average out, both chosen.
GAIN = 0.01  # relative, of a current or voltage sensor
_SPEED_LAG = 5e-3  # of the speed behind voltage and current, such as of a filter [s]
_LARGEST_SPEED_ERROR = 0.15  # share of the speeds above which R and K are unknown; R was 10 % off at 0.26
_TOO_SLOW = Reason(
    Kind.TOO_LITTLE_DATA,
    "the readings are too slow for the motion: the speed between them is unknown; needed: a higher rate",
)
_NO_SIGN = 0.05  # share of the usual current below which its sign may be that of noise: of a motor at rest
_LEAST_APART = 0.02  # share of a voltage beside R i + K w that these do not explain, to be found
_BRUSHES = "{size:.2g} V of the voltage have the sign of the current, whatever its size, as of brushes or a bridge"
_ZERO_ERROR = "the voltage has a zero error of {size:.2g} V"
_LATE = "the voltage seems to be {size:.2g} s later than current and speed"


@dataclass(frozen=True, eq=False)
class Armature:
    """Identified resistance and torque constant."""

    resistance: Estimate  # of the winding at its temperature in the data [Ohm]
    constant: Estimate  # K [V s/rad], or volts per unit of the recorded speed
    explained: float  # R^2 of the voltage
    fit: Fit | None  # None if there was nothing to fit
    # Voltage with the sign of the current, whatever its size, and its standard error [V]; 0 where the data show none
    brushes: tuple[float, float] = (0.0, 0.0)


def identify_armature(
    time: ArrayLike,
    voltage: ArrayLike | None,
    current: ArrayLike,
    speed: ArrayLike,
    speed_unit: str = "rad/s",
    mean: float = MEAN,
    speed_error: ArrayLike | None = None,
) -> Armature:
    """R and K of V = R i + K w, from means over 20 ms, in which inductance and filters settle.

    Both are refused if they explain less than half of the voltage's variance about its mean. Their intervals contain
    the scatter between blocks, gains that are 1 % off, a speed that is 5 ms late, and its known error, as standard
    deviations. Brushes, and a bridge that waits between its switches, take a voltage with the sign of the current.
    Where it, a zero error of the voltage or a voltage that is late is significant, what it changes counts as an error.

    Args:
        time: (n,) [s], increasing.
        voltage: (n,) at the terminals [V]; None if it is not measured.
        current: (n,) [A].
        speed: (n,) of the rotor or of what it drives.
        speed_unit: unit of the speed; K is in volts per this unit.
        mean: averaging time [s]; longer if readings are slow or noisy.
        speed_error: (n,) error of each speed that does not average out, such as of slow readings; none if None.

    Raises:
        InputError: shapes that do not fit, or numbers that are not finite.
    """
    unknowns = [
        Unknown("resistance", "Ohm", low=0.0, unexcited="the current was always zero"),
        Unknown("constant", f"V/({speed_unit})", low=0.0, unexcited="the motor never turned"),
    ]
    if voltage is None:
        return _refused_armature(unknowns, _NO_VOLTAGE)
    errors = np.zeros(np.shape(time)) if speed_error is None else speed_error
    signals = {"current": current, "speed": speed, "voltage": voltage, "speed_error": errors}
    means = _means(mean, time, signals)
    if np.linalg.norm(means[4]) > _LARGEST_SPEED_ERROR * np.linalg.norm(means[2]):
        return _refused_armature(unknowns, _TOO_SLOW)
    table = np.column_stack(means[1:3])
    span = float(np.ptp(means[0])) if len(means[0]) else 0.0
    block = max(mean, min(1.0, span / _FEWEST_BLOCKS))
    try:
        rows = Rows(means[0], table, means[3], block=block)
        fit = least_squares([rows], unknowns)
    except IdentificationError as problem:
        return _refused_armature(unknowns, too_little(problem))
    values = np.nan_to_num([estimate.value for estimate in fit.estimates])
    residual, deviation = means[3] - table @ values, means[3] - means[3].mean()
    power = float(deviation @ deviation)
    constant = power <= _CONSTANT_VOLTAGE**2 * float(means[3] @ means[3])
    if not constant and _unsigned(table, means[3], residual):
        return _refused_armature(unknowns, _UNSIGNED)
    explained = math.nan if constant else 1.0 - float(residual @ residual) / power
    if not explained >= EXPLAINS:
        estimates = [_refuse_unexplained(estimate, explained) for estimate in fit.estimates]
        return Armature(estimates[0], estimates[1], explained, fit)
    rivals, brushes = _rivals(rows, unknowns, values, means[4])
    resistance, torque_constant = widened(fit.estimates, unknowns, rivals, fit.half_width(1.0))
    return Armature(resistance, torque_constant, explained, fit, brushes)


def _means(mean: float, time: ArrayLike, signals: Mapping[str, ArrayLike]) -> list[Vector]:
    """Times (n,) and named signals (n,) averaged over intervals of `mean` [s]: (b,) each, of those with readings."""
    stamps = array("time", time, (None,))
    columns = [array(name, values, stamps.shape) for name, values in signals.items()]
    index = np.floor((stamps - stamps[0]) / mean).astype(int) if len(stamps) else np.zeros(0, dtype=int)
    counts = np.bincount(index)
    filled = counts > 0
    return [np.bincount(index, values)[filled] / counts[filled] for values in (stamps, *columns)]


def _rivals(
    rows: Rows, unknowns: Sequence[Unknown], values: Vector, speed_error: Vector
) -> tuple[list[Rival], tuple[float, float]]:
    """What errors of the speed (n,) and gains change in R and K (2,), and voltages beside these that the data show.

    The second result is the voltage of brushes and its standard error [V].
    """
    time, table, voltage = rows.time, rows.regressors, rows.target
    late = np.interp(time - _SPEED_LAG, time, table[:, 1]) - table[:, 1]
    errors, *_ = np.linalg.lstsq(table, values[1] * np.column_stack([late, speed_error]), rcond=None)
    gain_errors = GAIN * values * (math.sqrt(2.0), 1.0)  # R is a ratio of voltage and current, K of voltage and speed
    names, shared = [unknown.name for unknown in unknowns], np.hypot(np.hypot(*errors.T), gain_errors).tolist()
    rivals, brushes = [Rival(None, dict(zip(names, shared, strict=True)))], (0.0, 0.0)
    try:
        signs = signs_of(table[:, 0])
        later = -np.gradient(voltage, time) if len(time) > 1 else np.zeros(len(time))
        for column, cause in ((signs, _BRUSHES), (np.ones(len(table)), _ZERO_ERROR), (later, _LATE)):
            apart = column - table @ np.linalg.lstsq(table, column, rcond=None)[0]
            if rms(apart) < _LEAST_APART * rms(column):  # currents of one size: their noise would tell the two apart
                continue
            more = Rows(time, np.column_stack([table, column]), voltage, block=rows.block)
            wider = least_squares([more], [*unknowns, Unknown("further", "1")])
            if strength(wider, ["further"]) > SIGNIFICANT:
                reason = Reason(Kind.OTHER_EXPLANATION, cause.format(size=wider.values[2]))
                changes = (wider.values[:2] - values).tolist()
                rivals.append(Rival(reason, dict(zip(names, changes, strict=True))))
                # A winding that warms has a voltage that grows more than its current: a negative one of brushes.
                if column is signs and wider.values[2] > 0.0:
                    brushes = float(wider.values[2]), wider["further"].standard_error
    except IdentificationError:  # too short for one more unknown
        pass
    return rivals, brushes


def signs_of(current: Vector) -> Vector:
    """Signs (n,) of currents (n,), smooth where these are as small as their noise at rest."""
    return np.tanh(current / max(_NO_SIGN * rms(current), 1e-300))


def _unsigned(table: Vector, voltage: Vector, residual: Vector) -> bool:
    """Whether the current lacks its sign: given that of V - K w, it leaves far less of the voltage (n,) unexplained.

    `table` (n, 2) is current and speed, `residual` (n,) that of the fit. A current of one sign may be true: a weight.
    """
    current, speed = table.T
    if np.any(current < 0.0) and np.any(current > 0.0):
        return False
    least = math.inf
    for constant in (float(voltage @ speed) / (float(speed @ speed) or 1.0), 0.0):
        for _ in range(_SIGN_ITERATIONS):
            signs = np.sign(voltage - constant * speed)
            if np.ptp(signs) < 2.0:
                break  # one sign, as recorded
            signed = np.column_stack([np.abs(current) * signs, speed])
            values, *_ = np.linalg.lstsq(signed, voltage, rcond=None)
            constant = float(values[1])
            least = min(least, float(np.sum((voltage - signed @ values) ** 2)))
    return least < _UNSIGNED_SHARE * float(residual @ residual)


def _refuse_unexplained(estimate: Estimate, explained: float) -> Estimate:
    """Refuse an identified estimate because the fit explains too little of the variance."""
    little = f"the fit explains {explained:.2g} of the variance (R2); at least {EXPLAINS:g} is needed"
    reason = _CONSTANT if math.isnan(explained) else Reason(Kind.UNEXPLAINED, little)
    return undetermined(Unknown(estimate.name, estimate.unit), reason) if estimate.identified else estimate


def _refused_armature(unknowns: Sequence[Unknown], reason: Reason) -> Armature:
    resistance, constant = (undetermined(unknown, reason) for unknown in unknowns)
    return Armature(resistance, constant, math.nan, None)


def winding_from_voltage(
    time: Vector, voltage: Vector, current: Vector, speed: Vector, constant: float, coefficient: float
) -> tuple[Vector, Vector, tuple[float, float] | None]:
    """Temperature of a winding from its resistance (V - K w) / i, over windows of 5 s with current.

    Times, voltages, currents and speeds of the rotor (n,) [s, V, A, rad/s] are from a cold start on; `constant` is K
    [V s/rad], `coefficient` that of the resistance, relative to the cold winding [1/K].

    Returns:
        Middles (k,) of the windows [s], temperature rises (k,) above the first of them [K], and the cold resistance
        with its standard error [Ohm]. That is extrapolated by a line through the first windows to their begin, and on
        by half of what currents before them may have warmed the winding, which is an error, too. Empty and None for
        fewer than four windows.
    """
    empty = np.zeros(0), np.zeros(0), None
    if not len(time):
        return empty
    index = np.floor((time - time[0]) / _WINDOW).astype(int)
    power = np.bincount(index, current**2)
    counts = np.maximum(np.bincount(index), 1)
    powered = power / counts > _LEAST_CURRENT_SHARE * float(np.mean(current**2))
    if np.count_nonzero(powered) < _FIRST_WINDOWS:
        return empty
    middles = time[0] + _WINDOW * (np.flatnonzero(powered) + 0.5)
    resistance = np.bincount(index, (voltage - constant * speed) * current)[powered] / power[powered]
    first = np.flatnonzero(powered)[:_FIRST_WINDOWS]
    since = middles[:_FIRST_WINDOWS] - (middles[0] - 0.5 * _WINDOW)
    line, covariance = np.polyfit(since, resistance[:_FIRST_WINDOWS], 1, cov=True)
    heat = power / counts
    before = 0.5 * _WINDOW * float(np.sum(heat[: first[0]]) / np.mean(heat[first]))  # [s] of the first windows' heat
    cold, warmed = float(line[1] - before * line[0]), before * float(line[0])
    # Two windows more than the line needs: their scatter, as an error of a normal one
    scatter = math.sqrt(covariance[1, 1]) * student(_FIRST_WINDOWS - 2) / NORMAL
    return middles, (resistance / cold - 1.0) / coefficient, (cold, math.hypot(scatter, warmed))
