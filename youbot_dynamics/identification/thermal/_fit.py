"""Thermal constants of a motor, and which of them a recording determines.

With temperature rises x of the winding and y of the housing above the ambient:
    x' = h (1 + a x) i^2 - (x - y) / tau_w,   y' = c (x - y) / tau_w - y / tau_h
with h = R_a / C_w, tau_w = R_wh C_w, tau_h = R_ha C_h, c = C_w / C_h. Current and temperature determine only these
four ratios: twice the resistance with twice the capacities and half the thermal resistances gives the same heat. Only
with R_a from the armature are resistances and capacities determined separately.

Source: systems 1, 2, 5.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.thermal_motor import heat_history
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Rows,
    Unknown,
    judge,
    least_squares,
    refusal,
    undetermined,
    with_unit,
)
from youbot_dynamics.identification.thermal._armature import EXPLAINS, GAIN

COPPER = 0.00393  # [1/K] handbook value
_NO_TEMPERATURE = (
    "the recording holds neither a motor temperature nor a motor voltage, which gives the winding temperature through "
    "its resistance; needed: one of the two"
)
_ONLY_RATIOS = "current and temperature give only ratios; needed: the resistance of the motor, from its voltage"

_HEAT_BLOCKS = 40
_NAMES = ("heating", "winding_time_constant", "housing_time_constant", "capacity_ratio")
_UNITS = ("K/(A2 s)", "s", "s", "1")
# The heating of the search is that by the largest current [K/s]; its start value is found from the readings.
_START = (15.0, 200.0, 0.1)
_LOW, _HIGH = (1e-6, 0.1, 1.0, 1e-3), (1e3, 1e3, 1e5, 10.0)
_HOTTEST = 1e6  # residuals beyond are set to it [K]: the search may try constants with thermal runaway
_SPREADS = (0.3, 1.0, 3.0)  # factors on the start values of the search
_AT_END = 1e-3  # distance of a logarithm to its bound at which the search ended at the bound, not at a minimum
_APART = 3.0  # combined standard errors above which parts of the data disagree
# Standard deviations of errors that all readings of a run share; they do not average out. All are chosen.
_AIR = 1.0  # of the air at the start, relative to the motor's first reading or to the given temperature [K]
_DRIFT = 0.03  # of the air or of the sensor, in the square root of a second [K]: 1.3 K in half an hour
_LAG = 2.0  # of a sensor behind its part, or between the clocks of current and temperature [s]
_GROWTH = 0.1  # relative, of the coefficient: leads and connectors stay cold
_SHOWN = 2.0  # minimum length of a run's readings in time constants; in a shorter run an exponential looks like a line


@dataclass(frozen=True, eq=False)
class HeatRun:
    """Currents and temperatures of a motor at times (n,) [s]; NaN where a temperature was not read."""

    time: Vector  # (n,) increasing [s]
    current: Vector  # (n,) held until the next time [A]
    winding: Vector | None = None  # (n,) [degC], None if not measured
    housing: Vector | None = None  # (n,) [degC], None if not measured
    # [degC]; None: the motor started at the unknown air temperature, so readings are relative to a constant
    ambient: float | None = None

    def __post_init__(self) -> None:
        """Check shapes, times and currents; any temperature may be missing."""
        time = array("time", self.time, (None,))
        columns = {name: column for name in ("winding", "housing") if (column := getattr(self, name)) is not None}
        for name, column in columns.items():
            array(name, np.nan_to_num(column), time.shape)
            object.__setattr__(self, name, np.asarray(column, dtype=np.float64))
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "current", array("current", self.current, time.shape))
        if np.any(np.diff(time) < 0.0):
            raise InputError("time", got="times that decrease", expected="increasing times [s]")

    def first(self) -> float:
        """Initial temperature [degC]: the first reading."""
        for column in (self.winding, self.housing):
            if column is not None and np.any(np.isfinite(column)):
                return float(column[np.isfinite(column)][0])
        return math.nan

    def rises(self, values: Vector, coefficient: float) -> Vector:
        """Temperatures (n, 2) [degC] of winding and housing for heating, time constants and capacity ratio (4,)."""
        heating, tau_winding, tau_housing, ratio = values
        start = self.first()
        ambient = start if self.ambient is None else self.ambient
        # Capacities relative to the winding's; the resistance at ambient temperature is then h.
        constants = np.array(
            [heating, coefficient * heating, 1.0 / tau_winding, 1.0 / (ratio * tau_housing), 1.0, 1.0 / ratio, ambient]
        )
        out = np.empty((len(self.time) - 1, 2))
        steps = np.diff(self.time)
        heat_history(constants, start, start, np.ascontiguousarray(self.current[:-1]), np.zeros(len(steps)), steps, out)
        return np.vstack([[start, start], out])

    def misfit(self, values: Vector, coefficient: float) -> Vector:
        """Model minus reading (m,) [K] for all readings; without its mean if the ambient temperature is unknown."""
        readings = [np.nan if column is None else column for column in (self.winding, self.housing)]
        left = self.rises(values, coefficient)
        for k, column in enumerate(readings):
            left[:, k] -= column
        return np.nan_to_num(np.clip(self.at_readings(left), -_HOTTEST, _HOTTEST), nan=_HOTTEST)

    def at_readings(self, table: Vector) -> Vector:
        """Values (m,) of a table (n, 2) at the readings, without their mean if the ambient temperature is unknown."""
        columns = ((k, column) for k, column in enumerate((self.winding, self.housing)) if column is not None)
        parts = [table[np.isfinite(column), k] for k, column in columns]
        values = np.concatenate(parts) if parts else np.zeros(0)
        return values - values.mean() if self.ambient is None and len(values) else values

    def shared_errors(self, values: Vector, coefficient: float) -> tuple[Vector, Vector]:
        """Changes of the readings by one standard deviation of the errors that they share [K].

        Returns:
            Of this run's air and of its drift (2, m), and of the sensor's lag and the coefficient (2, m), which are the
            same in all runs.
        """
        model = self.rises(values, coefficient)
        air = self.first() if self.ambient is None else self.ambient
        warmer = dataclasses.replace(self, ambient=air + _AIR).rises(values, coefficient)
        read = self.read_times()
        drift = _DRIFT * (self.time - read.min()) / math.sqrt(float(np.ptp(read)) or 1.0)
        late = np.column_stack([np.interp(self.time - _LAG, self.time, column) for column in model.T])
        steeper = self.rises(values, (1.0 + _GROWTH) * coefficient)
        changes = [warmer - model, np.column_stack([drift, drift]), late - model, steeper - model]
        rows = np.array([self.at_readings(change) for change in changes])
        return rows[:2], rows[2:]

    def only(self, half: int) -> HeatRun:
        """The run with only the first (0) or second (1) half of its readings, by time, and its initial temperature."""
        read = self.read_times()
        late = self.time >= 0.5 * (read.min() + read.max())

        def kept(column: Vector | None) -> Vector | None:
            if column is None:
                return None
            part: Vector = np.where(late == bool(half), column, np.nan)
            began = int(np.argmax(np.isfinite(column)))
            part[began] = column[began]
            return part

        return dataclasses.replace(self, winding=kept(self.winding), housing=kept(self.housing))

    def spread(self) -> Vector:
        """Each reading (m,) minus the mean of its column [K], in the order of `misfit`."""
        columns = [column[np.isfinite(column)] for column in (self.winding, self.housing) if column is not None]
        return np.concatenate([column - column.mean() for column in columns if len(column)] or [np.zeros(0)])

    def read_times(self) -> Vector:
        """Time (m,) of each reading, in the order of `misfit` [s]."""
        columns = [column for column in (self.winding, self.housing) if column is not None]
        return np.concatenate([self.time[np.isfinite(column)] for column in columns]) if columns else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Heat:
    """Identified thermal model of a motor."""

    ratios: tuple[Estimate, ...]  # heating h, time constants of winding and housing, capacity ratio c
    constants: tuple[Estimate, ...]  # R_wh, R_ha, C_w, C_h; refused if only ratios are known
    residual: float  # root mean square [K]
    values: Vector  # (4,) solution for the ratios
    coefficient: float  # temperature coefficient of the winding's resistance, at ambient temperature [1/K]
    # Ratios with different values in parts of the data: their intervals contain both
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
    """Identify thermal ratios from currents and temperatures, and the constants if the resistance is known.

    Output-error fit of the logarithms of the four ratios. Intervals come from blocks of the linearised fit and from
    errors that do not average out: the air is 1 K from the motor's first reading and drifts, a sensor lags by 2 s, the
    current is 2 % off and the coefficient 10 %, each as a standard deviation. They are widened if parts of the data
    disagree. All ratios are refused if too few temperatures were read or the fit explains
    less than half of their variance; a time constant is refused if the readings of no run last twice as long.

    Args:
        runs: recordings of one motor.
        coefficient: temperature coefficient of the resistance, relative to ambient temperature [1/K].
        resistance: R_a at ambient temperature and its standard error [Ohm], from the armature; None if unknown.
    """
    runs = [run for run in runs if len(run.read_times())]
    if not runs:
        return _unknown(_NO_TEMPERATURE, coefficient)
    peak = max(float(np.max(np.abs(run.current))) for run in runs) or 1.0
    runs = [dataclasses.replace(run, current=run.current / peak) for run in runs]
    warmest = max(float(np.max(np.abs(run.spread()))) for run in runs) or 1.0
    starts = [np.log([spread * warmest / _START[0], *_START]) for spread in _SPREADS]
    try:
        logs, found, left, slopes = _solved(runs, coefficient, starts)
    except IdentificationError as few:
        return _unknown(f"{few.got}; needed: {few.expected}", coefficient)
    gaps = _disagreement(runs, coefficient, logs)
    # Half the difference as an additional standard error, so that the interval contains the values of both parts.
    covariance = found.covariance + np.diag((0.5 * gaps) ** 2) + _from_shared_errors(runs, coefficient, logs, slopes)
    in_ampere = logs - np.array([2.0 * math.log(peak), 0.0, 0.0, 0.0])
    values = np.exp(in_ampere)
    ratios = []
    for k, (name, unit) in enumerate(zip(_NAMES, _UNITS, strict=True)):
        error = float(np.sqrt(covariance[k, k]) * values[k])
        if math.isfinite(error):
            ratio = judge(Unknown(name, unit, low=0.0), float(values[k]), error, found.half_width(error))
            reason = _unbelievable(k, runs, logs, left, float(gaps[k]), ratio)
            ratios.append(dataclasses.replace(ratio, verdict=refusal(reason)) if reason else ratio)
        else:
            reason = found.estimates[k].verdict.removeprefix(refusal(""))
            ratios.append(undetermined(Unknown(name, unit), reason))
    open_ones = [ratio.name for ratio in ratios if not ratio.identified]
    constants = _constants(found, covariance, in_ampere, resistance, open_ones)
    disagreeing = tuple(name for name, gap in zip(_NAMES, gaps, strict=True) if gap > 0.0)
    residual = float(np.sqrt(np.mean(left**2)))
    return Heat(tuple(ratios), constants, residual, values, coefficient, disagreeing)


def _unknown(reason: str, coefficient: float) -> Heat:
    """A thermal model of which nothing is known."""
    unknowns = [Unknown(*pair) for pair in zip(_NAMES, _UNITS, strict=True)]
    ratios, constants = (tuple(undetermined(unknown, reason) for unknown in group) for group in (unknowns, _CONSTANTS))
    return Heat(ratios, constants, math.nan, np.full(4, math.nan), coefficient)


def _solved(
    runs: Sequence[HeatRun], coefficient: float, starts: Sequence[Vector]
) -> tuple[Vector, Fit, Vector, Vector]:
    """Logarithms (4,) of the ratios, their linearised fit, and the residuals (m,) [K]; the best from several starts.

    The last result are the slopes (m, 4) of the temperatures over the logarithms [K].
    """

    def misfit(logs: Vector) -> Vector:
        return np.concatenate([run.misfit(np.exp(logs), coefficient) for run in runs])

    limits = (np.log(_LOW), np.log(_HIGH))
    # The search may try constants with thermal runaway; their large residuals lead it back.
    with np.errstate(over="ignore", invalid="ignore"):
        solutions = [optimize.least_squares(misfit, start, bounds=limits, x_scale=1.0) for start in starts]
        best = min(solutions, key=lambda one: float(one.cost))
        return best.x, *_linear_fit(runs, misfit, best.x)


def _disagreement(runs: Sequence[HeatRun], coefficient: float, logs: Vector) -> Vector:
    """Largest significant difference (4,) between parts of the data in the logarithms of the ratios, 0 if they agree.

    Compared are the readings of the first half of every run with those of the second, each run with all others, and the
    first half of the runs with the second. Parts agree within 3 combined standard errors.
    """
    pairs = [([run.only(0) for run in runs], [run.only(1) for run in runs])]
    if len(runs) > 1:
        pairs += [([run], [*runs[:k], *runs[k + 1 :]]) for k, run in enumerate(runs)]
        pairs += [(list(runs[: len(runs) // 2]), list(runs[len(runs) // 2 :]))]
    gaps = np.zeros(4)
    for pair in pairs:
        try:
            (a, of_a, *_), (b, of_b, *_) = (_solved(part, coefficient, [logs]) for part in pair)
        except IdentificationError:
            continue  # a part is too short to be fitted alone
        apart = np.abs(a - b)
        combined = np.sqrt(np.diag(of_a.covariance) + np.diag(of_b.covariance))
        gaps = np.maximum(gaps, np.where(apart > _APART * combined, apart, 0.0))
    return gaps


def _unbelievable(k: int, runs: Sequence[HeatRun], logs: Vector, left: Vector, gap: float, ratio: Estimate) -> str:
    """Why the ratio number k is not credible although it has an interval, "" if it is."""
    spread = np.concatenate([run.spread() for run in runs])
    power = float(spread @ spread)
    explained = 1.0 - float(left @ left) / power if power > 0.0 else 0.0
    value, longest = ratio.value, max(float(np.ptp(run.read_times())) for run in runs)
    if explained < EXPLAINS:
        return f"the fit explains {explained:.2g} of the temperature variance (R2); at least {EXPLAINS:g} is needed"
    if min(logs[k] - math.log(_LOW[k]), math.log(_HIGH[k]) - logs[k]) < _AT_END:
        return f"the search ended at its bound, {with_unit(f'{value:.3g}', _UNITS[k])}"
    if _UNITS[k] == "s" and _SHOWN * value > longest:
        needed = _SHOWN * value
        return f"the fit gives {value:.3g} s, but the longest run lasts {longest:.0f} s; {needed:.0f} s are needed"
    if gap > 0.0 and not ratio.identified:
        return f"the recordings disagree: parts of them give values that differ by a factor of {math.exp(gap):.2g}"
    return ""


def _linear_fit(
    runs: Sequence[HeatRun], misfit: Callable[[Vector], Vector], logs: Vector
) -> tuple[Fit, Vector, Vector]:
    """Linearised fit about the solution, its residuals (m,) and the slopes (m, 4) over the logarithms of the ratios."""
    step = 1e-4
    base = misfit(logs)
    pairs = [(misfit(logs + step * one), misfit(logs - step * one)) for one in np.eye(4)]
    slopes = np.column_stack([(after - before) / (2.0 * step) for after, before in pairs])
    pieces, row = [], 0
    total = sum(float(np.ptp(run.read_times())) for run in runs) or 1.0  # each a single reading
    for k, run in enumerate(runs):
        times = run.read_times()
        part = slice(row, row + len(times))
        row += len(times)
        pieces.append(Rows(times, slopes[part], -base[part], recording=k, block=total / _HEAT_BLOCKS))
    unknowns = [Unknown(name, "1", resolution=math.inf) for name in _NAMES]
    # Without the scatter between runs, which `_disagreement` finds.
    return least_squares(pieces, unknowns, robust=False, between=False), base, slopes


def _from_shared_errors(runs: Sequence[HeatRun], coefficient: float, logs: Vector, slopes: Vector) -> Vector:
    """Covariance (4, 4) of the logarithms from errors that readings share and the scatter of residuals does not show.

    Each changes the readings as `HeatRun.shared_errors` tells, and the logarithms by the fit of this change.
    """
    changes, common, row = [], np.zeros((2, len(slopes))), 0
    for run in runs:
        own, of_all = run.shared_errors(np.exp(logs), coefficient)
        part = slice(row, row + own.shape[1])
        row = part.stop
        common[:, part] = of_all
        for one in own:
            changes.append(np.zeros(len(slopes)))
            changes[-1][part] = one
    moved, *_ = np.linalg.lstsq(slopes, np.column_stack([*changes, *common]), rcond=None)
    covariance: Vector = moved @ moved.T
    covariance[0, 0] += (2.0 * GAIN) ** 2  # heat is proportional to the square of the current
    return covariance


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

    A constant is refused if one of its ratios is undetermined, because the linearised fit is valid only near its
    solution.
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
            estimates.append(undetermined(unknown, f"these runs do not determine: {', '.join(lacking)}"))
            continue
        found_value = math.exp(float(powers @ np.concatenate([[math.log(value)], logs])))
        standard = found_value * math.hypot(math.sqrt(variance), error / value)
        estimates.append(judge(unknown, found_value, standard, found.half_width(standard)))
    return tuple(estimates)
