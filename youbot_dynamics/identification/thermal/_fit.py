"""Electrical and thermal constants of a motor, and which of them a recording can tell (systems 1, 2, 5).

Armature: V = R i + K w. From voltage, current and speed both constants; without the voltage neither.

Heat, as rises x of the winding and y of the housing above the ambient:
    x' = h (1 + a x) i^2 - (x - y) / tau_w,   y' = c (x - y) / tau_w - y / tau_h
with h = R_a / C_w, tau_w = R_wh C_w, tau_h = R_ha C_h, c = C_w / C_h. Current and temperature tell these four, no more:
twice the resistance with twice the capacities and half the thermal resistances heats alike. Only with R_a, from the
armature, do resistances and capacities follow each by itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.thermal_motor import heat_history
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Rows,
    Unknown,
    judge,
    least_squares,
    refusal,
    undetermined,
)

COPPER = 0.00393  # [1/K] handbook value
_NO_VOLTAGE = (
    "the recording holds no motor voltage, and one made up of R i + K w would only give back its R and K; "
    "needed: the voltage at the terminals, measured"
)
_NO_TEMPERATURE = (
    "the recording holds no motor temperature, nor a voltage, which gives the winding's by its resistance; "
    "needed: one of the two"
)
_ONLY_RATIOS = "current and temperature give only ratios: the motor's resistance is needed, from its voltage"

MEAN = 0.02  # [s] over which voltage, current and speed are averaged: beyond the current loop and PWM
_WINDOW = 5.0  # [s] over which a winding's resistance tells its temperature: a third of its time constant
_ENOUGH = 0.25  # of the mean square current that must flow
_FIRST_WINDOWS = 4  # which tell the cold resistance
_FEWEST_BLOCKS = 12
_HEAT_BLOCKS = 40
_NAMES = ("heating", "winding_time_constant", "housing_time_constant", "capacity_ratio")
_UNITS = ("K/(A2 s)", "s", "s", "1")
_START = (1e-2, 15.0, 200.0, 0.1)
_LOW, _HIGH = (1e-6, 0.1, 1.0, 1e-3), (10.0, 1e3, 1e5, 10.0)
_SPREADS = (0.3, 1.0, 3.0)  # of the starting values of the search
_AT_END = 1e-3  # of a logarithm: as near to the end of the search it stopped there, not at a least misfit
_EXPLAINS = 0.5  # R^2 below which a model explains too little for its values to mean anything
_APART = 3.0  # combined standard errors beyond which parts of the data disagree
_SHOWN = 2.0  # time constants that a run must last to show them: before, an exponential looks like a slope


@dataclass(frozen=True, eq=False)
class Armature:
    """Resistance and torque constant as identified."""

    resistance: Estimate  # of the winding [Ohm], at the temperature it had
    constant: Estimate  # K [V s/rad], or volts for each unit of the speed that was recorded
    explained: float  # R^2 of the voltage
    fit: Fit | None  # None where there was nothing to fit


def identify_armature(
    time: ArrayLike,
    voltage: ArrayLike | None,
    current: ArrayLike,
    speed: ArrayLike,
    speed_unit: str = "rad/s",
    mean: float = MEAN,
) -> Armature:
    """R and K of V = R i + K w, over means of 20 ms, within which inductance and filters settle.

    Both are refused where the two explain less than half of the voltage's variance about its mean.

    Args:
        time: (n,) [s], increasing.
        voltage: (n,) at the terminals [V]; None where it is not measured.
        current: (n,) [A].
        speed: (n,) of the rotor, or of what it drives.
        speed_unit: of the speed; K is in volts for each of it.
        mean: time over which everything is averaged [s]: longer where readings are slow or noisy.

    Raises:
        InputError: shapes that do not fit, or numbers that are not finite.
    """
    unknowns = [
        Unknown("resistance", "Ohm", low=0.0, unexcited="there never was a current"),
        Unknown("constant", f"V/({speed_unit})", low=0.0, unexcited="the motor never turned"),
    ]
    if voltage is None:
        return _no_armature(unknowns, _NO_VOLTAGE)
    stamps = array("time", time, (None,))
    columns = [array(n, v, stamps.shape) for n, v in (("current", current), ("speed", speed), ("voltage", voltage))]
    place = np.floor((stamps - stamps[0]) / mean).astype(int) if len(stamps) else np.zeros(0, dtype=int)
    counts = np.bincount(place)
    filled = counts > 0
    means = [np.bincount(place, values)[filled] / counts[filled] for values in (stamps, *columns)]
    table = np.column_stack(means[1:3])
    span = float(np.ptp(means[0])) if len(means[0]) else 0.0
    block = max(mean, min(1.0, span / _FEWEST_BLOCKS))
    try:
        found = least_squares([Rows(means[0], table, means[3], block=block)], unknowns)
    except IdentificationError as too_little:
        return _no_armature(unknowns, f"{too_little.got}; needed: {too_little.expected}")
    values = np.nan_to_num([estimate.value for estimate in found.estimates])
    left, spread = means[3] - table @ values, means[3] - means[3].mean()
    power = float(spread @ spread)
    explained = 1.0 - float(left @ left) / power if power > 0.0 else math.nan
    told = [one if explained >= _EXPLAINS else _meaningless(one, explained) for one in found.estimates]
    return Armature(told[0], told[1], explained, found)


def _meaningless(estimate: Estimate, explained: float) -> Estimate:
    """The estimate, refused where it was identified by a fit that explains too little."""
    reason = (
        f"the fit explains {explained:.2g} of the variance (R2): at least {_EXPLAINS:g} is needed for it to mean much"
    )
    return undetermined(Unknown(estimate.name, estimate.unit), reason) if estimate.identified else estimate


def _no_armature(unknowns: Sequence[Unknown], reason: str) -> Armature:
    resistance, constant = (undetermined(unknown, reason) for unknown in unknowns)
    return Armature(resistance, constant, math.nan, None)


def winding_from_voltage(
    time: Vector, voltage: Vector, current: Vector, speed: Vector, constant: float, coefficient: float
) -> tuple[Vector, Vector, float]:
    """Temperature of a winding by its resistance (V - K w) / i over windows of 5 s, where current flows.

    Args:
        time: (n,) [s], increasing, from a cold start.
        voltage: (n,) [V].
        current: (n,) [A].
        speed: (n,) of the rotor [rad/s].
        constant: K [V s/rad].
        coefficient: growth of the resistance, over that of the cold winding [1/K].

    Returns:
        Middles (k,) of the windows [s], rises (k,) above the first of them [K], and the cold resistance [Ohm], taken
        from the first windows as the line through them has it at the start.
    """
    nothing = np.zeros(0), np.zeros(0), math.nan
    if not len(time):
        return nothing
    place = np.floor((time - time[0]) / _WINDOW).astype(int)
    power = np.bincount(place, current**2)
    counts = np.maximum(np.bincount(place), 1)
    enough = power / counts > _ENOUGH * float(np.mean(current**2))
    middles = time[0] + _WINDOW * (np.flatnonzero(enough) + 0.5)
    resistance = np.bincount(place, (voltage - constant * speed) * current)[enough] / power[enough]
    if len(middles) < _FIRST_WINDOWS:
        return nothing
    first = slice(0, _FIRST_WINDOWS)
    cold = float(np.polyval(np.polyfit(middles[first] - time[0], resistance[first], 1), 0.0))
    return middles, (resistance / cold - 1.0) / coefficient, cold


@dataclass(frozen=True, eq=False)
class HeatRun:
    """A recording of a motor's heat, at times (n,) [s]; NaN where a temperature was not read."""

    time: Vector  # (n,) increasing [s]
    current: Vector  # (n,) held until the next time [A]
    winding: Vector | None = None  # (n,) [degC], None where it is not measured
    housing: Vector | None = None  # (n,) [degC], None where it is not measured
    # [degC]; None: the motor began as cold as the air, whatever that had: readings count up to a constant
    ambient: float | None = None

    def first(self) -> float:
        """Temperature it starts from [degC]: the first reading there is."""
        for column in (self.winding, self.housing):
            if column is not None and np.any(np.isfinite(column)):
                return float(column[np.isfinite(column)][0])
        return math.nan

    def rises(self, values: Vector, coefficient: float) -> Vector:
        """Temperatures (n, 2) [degC] of winding and housing for heating, time constants and ratio (4,)."""
        heating, tau_winding, tau_housing, ratio = values
        start = self.first()
        ambient = start if self.ambient is None else self.ambient
        # Capacities in units of the winding's; the resistance then is h, at the ambient temperature.
        constants = np.array(
            [heating, coefficient * heating, 1.0 / tau_winding, 1.0 / (ratio * tau_housing), 1.0, 1.0 / ratio, ambient]
        )
        out = np.empty((len(self.time) - 1, 2))
        steps = np.diff(self.time)
        heat_history(constants, start, start, np.ascontiguousarray(self.current[:-1]), np.zeros(len(steps)), steps, out)
        return np.vstack([[start, start], out])

    def misfit(self, values: Vector, coefficient: float) -> Vector:
        """Model less reading (m,) [K] of all that was read; less its mean where the ambient is not known."""
        model, parts = self.rises(values, coefficient), []
        for k, column in enumerate((self.winding, self.housing)):
            if column is not None:
                read = np.isfinite(column)
                parts.append(model[read, k] - column[read])
        left = np.concatenate(parts) if parts else np.zeros(0)
        return left - left.mean() if self.ambient is None and len(left) else left

    def only(self, half: int) -> HeatRun:
        """The run with the readings of its first (0) or second (1) half alone, and where it began."""
        late = self.time >= 0.5 * (self.time[0] + self.time[-1])

        def kept(column: Vector | None) -> Vector | None:
            if column is None:
                return None
            part: Vector = np.where(late == bool(half), column, np.nan)
            began = int(np.argmax(np.isfinite(column)))
            part[began] = column[began]
            return part

        return dataclasses.replace(self, winding=kept(self.winding), housing=kept(self.housing))

    def spread(self) -> Vector:
        """Each reading (m,) less the mean of its column [K], in the order of `misfit`."""
        columns = [column[np.isfinite(column)] for column in (self.winding, self.housing) if column is not None]
        return np.concatenate([column - column.mean() for column in columns if len(column)] or [np.zeros(0)])

    def read_times(self) -> Vector:
        """Time (m,) of each reading, in the order of `misfit` [s]."""
        columns = [column for column in (self.winding, self.housing) if column is not None]
        return np.concatenate([self.time[np.isfinite(column)] for column in columns]) if columns else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Heat:
    """Heat of a motor as identified."""

    ratios: tuple[Estimate, ...]  # heating h, time constants of winding and housing, capacity ratio c
    constants: tuple[Estimate, ...]  # R_wh, R_ha, C_w, C_h; refused where only ratios are known
    residual: float  # root mean square [K]
    values: Vector  # (4,) of the ratios, as solved
    coefficient: float  # of the winding's resistance, at the ambient temperature [1/K]
    # Ratios of which parts of the data tell different values: their intervals hold both
    disagreeing: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        """Estimate of one ratio or constant by its name."""
        return {estimate.name: estimate for estimate in (*self.ratios, *self.constants)}[name]

    def error_in(self, run: HeatRun) -> float:
        """Root mean square error [K] of the model on a run, such as one it was not fitted to."""
        return float(np.sqrt(np.mean(run.misfit(self.values, self.coefficient) ** 2)))


def identify_heat(
    runs: Sequence[HeatRun], *, coefficient: float = COPPER, resistance: tuple[float, float] | None = None
) -> Heat:
    """Thermal ratios from currents and temperatures, and with the resistance the constants themselves.

    Output error over the logarithms of the four ratios; intervals from blocks of the linearised fit, widened where
    parts of the data disagree. All are refused where no temperature was read or the fit explains less than half of its
    variance, a time constant where no run lasts twice as long.

    Args:
        runs: recordings of one motor.
        coefficient: growth of the resistance, over the resistance at ambient temperature [1/K].
        resistance: R_a at ambient temperature and its standard error [Ohm], from the armature; None if not known.
    """
    if not runs or not any(len(run.read_times()) for run in runs):
        nothing = tuple(undetermined(Unknown(*pair), _NO_TEMPERATURE) for pair in zip(_NAMES, _UNITS, strict=True))
        constants = tuple(undetermined(unknown, _NO_TEMPERATURE) for unknown in _CONSTANTS)
        return Heat(nothing, constants, math.nan, np.full(4, math.nan), coefficient)

    starts = [np.log(np.array(_START) * [spread, 1.0, 1.0, 1.0]) for spread in _SPREADS]
    logs, found, left = _solved(runs, coefficient, starts)
    values = np.exp(logs)
    gaps = _disagreement(runs, coefficient, logs)
    # Half the gap as a further standard error: the interval then holds what either part tells.
    covariance = found.covariance + np.diag((0.5 * gaps) ** 2)
    ratios = []
    for k, (name, unit) in enumerate(zip(_NAMES, _UNITS, strict=True)):
        error = float(np.sqrt(covariance[k, k]) * values[k])
        if math.isfinite(error):
            ratio = judge(Unknown(name, unit, low=0.0), float(values[k]), error, found.reach(error))
            reason = _unbelievable(k, runs, logs, left, float(gaps[k]), ratio.identified)
            ratios.append(dataclasses.replace(ratio, verdict=refusal(reason)) if reason else ratio)
        else:
            reason = found.estimates[k].verdict.removeprefix(refusal(""))
            ratios.append(undetermined(Unknown(name, unit), reason))
    open_ones = [ratio.name for ratio in ratios if not ratio.identified]
    constants = _constants(found, covariance, logs, resistance, open_ones)
    disagreeing = tuple(name for name, gap in zip(_NAMES, gaps, strict=True) if gap > 0.0)
    residual = float(np.sqrt(np.mean(left**2)))
    return Heat(tuple(ratios), constants, residual, values, coefficient, disagreeing)


def _solved(runs: Sequence[HeatRun], coefficient: float, starts: Sequence[Vector]) -> tuple[Vector, Fit, Vector]:
    """Logarithms (4,) of the ratios, the fit about them, and what is left (m,) [K]; the best from several starts."""

    def misfit(logs: Vector) -> Vector:
        return np.concatenate([run.misfit(np.exp(logs), coefficient) for run in runs])

    limits = (np.log(_LOW), np.log(_HIGH))
    # On its way the search meets constants with which the heat runs away; it turns back from them by itself.
    with np.errstate(over="ignore", invalid="ignore"):
        solutions = [optimize.least_squares(misfit, start, bounds=limits, x_scale=1.0) for start in starts]
        best = min(solutions, key=lambda one: float(one.cost))
        return best.x, _linear_fit(runs, misfit, best.x), best.fun


def _disagreement(runs: Sequence[HeatRun], coefficient: float, logs: Vector) -> Vector:
    """How far (4,) parts of the data lie apart in the logarithms of the ratios, 0 where they agree.

    The readings of the first half of every run against those of the second; each run against all others; the first half
    of the runs against the second. Parts agree within 3 combined standard errors.
    """
    read = [run for run in runs if len(run.read_times())]
    pairs = [([run.only(0) for run in read], [run.only(1) for run in read])]
    if len(read) > 1:
        pairs += [([run], [*read[:k], *read[k + 1 :]]) for k, run in enumerate(read)]
        pairs += [(read[: len(read) // 2], read[len(read) // 2 :])]
    gaps = np.zeros(4)
    for pair in pairs:
        try:
            (a, of_a, _), (b, of_b, _) = (_solved(part, coefficient, [logs]) for part in pair)
        except IdentificationError:
            continue  # a part is too short to tell anything by itself
        apart = np.abs(a - b)
        combined = np.sqrt(np.diag(of_a.covariance) + np.diag(of_b.covariance))
        gaps = np.maximum(gaps, np.where(apart > _APART * combined, apart, 0.0))
    return gaps


def _unbelievable(k: int, runs: Sequence[HeatRun], logs: Vector, left: Vector, gap: float, identified: bool) -> str:
    """Why a ratio by its number cannot be believed although an interval is known, "" where it can."""
    spread = np.concatenate([run.spread() for run in runs])
    power = float(spread @ spread)
    explained = 1.0 - float(left @ left) / power if power > 0.0 else 0.0
    value, longest = math.exp(logs[k]), max(float(np.ptp(run.time)) for run in runs)
    if explained < _EXPLAINS:
        return f"the fit explains {explained:.2g} of the temperatures' variance (R2): at least {_EXPLAINS:g} is needed"
    if min(logs[k] - math.log(_LOW[k]), math.log(_HIGH[k]) - logs[k]) < _AT_END:
        return f"the search ended at its bound, {value:.3g} {_UNITS[k]}"
    if _UNITS[k] == "s" and _SHOWN * value > longest:
        needed = _SHOWN * value
        return f"the data ask for {value:.3g} s, but the longest run lasts {longest:.0f} s: {needed:.0f} s are needed"
    if gap > 0.0 and not identified:
        return f"the recordings disagree: parts of them give values that differ by a factor of {math.exp(gap):.2g}"
    return ""


def _linear_fit(runs: Sequence[HeatRun], misfit: Callable[[Vector], Vector], logs: Vector) -> Fit:
    """The fit about its solution: slopes of the temperatures over the logarithms of the ratios."""
    step = 1e-4
    base = misfit(logs)
    pairs = [(misfit(logs + step * one), misfit(logs - step * one)) for one in np.eye(4)]
    slopes = np.column_stack([(after - before) / (2.0 * step) for after, before in pairs])
    pieces, row = [], 0
    total = sum(float(np.ptp(run.time)) for run in runs)
    for k, run in enumerate(runs):
        times = run.read_times()
        part = slice(row, row + len(times))
        row += len(times)
        pieces.append(Rows(times, slopes[part], -base[part], recording=k, block=total / _HEAT_BLOCKS))
    unknowns = [Unknown(name, "1", resolution=math.inf) for name in _NAMES]
    return least_squares(pieces, unknowns, robust=False, between=False)  # `_disagreement` sees to it


_CONSTANTS = (
    Unknown("winding_housing_resistance", "K/W", low=0.0),
    Unknown("housing_ambient_resistance", "K/W", low=0.0),
    Unknown("winding_capacity", "J/K", low=0.0),
    Unknown("housing_capacity", "J/K", low=0.0),
)
# Powers of R_a, h, tau_w, tau_h, c in R_wh = tau_w h / R_a, R_ha = tau_h c h / R_a, C_w = R_a / h, C_h = R_a / (h c).
_POWERS = np.array([[-1, 1, 1, 0, 0], [-1, 1, 0, 1, 1], [1, -1, 0, 0, 0], [1, -1, 0, 0, -1]], dtype=float)


def _constants(
    found: Fit, covariance: Vector, logs: Vector, resistance: tuple[float, float] | None, open_ones: Sequence[str]
) -> tuple[Estimate, ...]:
    """Thermal resistances and capacities from the ratios and the motor's resistance.

    One of whose ratios some are open is refused: the fit is linear about its solution, and far from it says nothing.
    """
    if resistance is None:
        return tuple(undetermined(unknown, _ONLY_RATIOS) for unknown in _CONSTANTS)
    value, error = resistance
    estimates = []
    for unknown, powers in zip(_CONSTANTS, _POWERS, strict=True):
        used = powers[1:] != 0.0
        variance = float(powers[1:][used] @ covariance[np.ix_(used, used)] @ powers[1:][used])
        lacking = [name for name, use in zip(_NAMES, used, strict=True) if use and name in open_ones]
        if lacking:
            estimates.append(undetermined(unknown, f"these runs leave open: {', '.join(lacking)}"))
            continue
        found_value = math.exp(float(powers @ np.concatenate([[math.log(value)], logs])))
        standard = found_value * math.hypot(math.sqrt(variance), error / value)
        estimates.append(judge(unknown, found_value, standard, found.reach(standard)))
    return tuple(estimates)
