"""Thermal constants of a motor, and which of them a recording determines.

With temperature rises x of the winding and y of the housing above the ambient:
    x' = h (1 + a x) i^2 - (x - y) / tau_w,   y' = c (x - y) / tau_w - y / tau_h
with h = R_a / C_w, tau_w = R_wh C_w, tau_h = R_ha C_h, c = C_w / C_h. Current and temperature determine only these
four ratios: twice the resistance with twice the capacities and half the thermal resistances gives the same heat. Only
with R_a from the armature are resistances and capacities determined separately.

Source: systems 1, 2, 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from youbot_dynamics.arrays import Vector, rms
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.least_squares import (
    SIGNIFICANT,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    Searched,
    Unknown,
    judge,
    least_squares,
    rows_of,
    search,
    slopes_of,
    too_little,
    undetermined,
    unsettled,
    widened,
    with_unit,
)
from youbot_dynamics.identification.thermal._armature import EXPLAINS, GAIN
from youbot_dynamics.identification.thermal._range import end_of_range, without_top
from youbot_dynamics.identification.thermal._run import LAG, HeatRun

# Thermal estimates that are robot parameters.
HEAT_CONSTANTS = (
    "winding_housing_resistance",
    "housing_ambient_resistance",
    "winding_time_constant",
    "housing_time_constant",
)
COPPER = 0.00393  # [1/K] handbook value
_NO_TEMPERATURE = Reason(
    Kind.NOT_MEASURED,
    "the recording holds neither a motor temperature nor a motor voltage, which gives the winding temperature through "
    "its resistance; needed: one of the two",
)
_ONLY_RATIOS = Reason(
    Kind.CONFUSED,
    "current and temperature give only ratios; needed: the resistance of the motor, from its voltage",
)
_LATE = "the temperatures are some {lag:.2g} s behind the current: their sensors lag"
_DRIFTING = Reason(
    Kind.OTHER_EXPLANATION,
    "it depends on a drift of the air or the sensor during the run; needed: air that does not warm, or a longer run",
)
BRUSHED = Reason(
    Kind.OTHER_EXPLANATION,
    "part of the voltage has the sign of the current, as of brushes, and hides how warm the winding is; needed: a "
    "measured temperature",
)
_EXCHANGED = Reason(
    Kind.CONFUSED, "the winding would be slower than its housing: these readings do not distinguish the two"
)

_HEAT_BLOCKS = 40
_HEATING, _RATIO = Unknown("heating", "K/(A2 s)", low=0.0), Unknown("capacity_ratio", "1", low=0.0)
_RATIOS = (_HEATING, *(Unknown(f"{part}_time_constant", "s", low=0.0) for part in ("winding", "housing")), _RATIO)
_NAMES = tuple(ratio.name for ratio in _RATIOS)
# The heating of the search is that by the largest current [K/s]; its start value is found from the readings.
_START = (15.0, 200.0, 0.1)
_LOW, _HIGH = (1e-6, 0.1, 1.0, 1e-3), (1e3, 1e3, 1e5, 10.0)
_START_FACTORS = (0.3, 1.0, 3.0)  # factors on the start values of the search
_BUDGET = 400  # steps of the search from each start
_STEP = 1e-4  # of the logarithms, and of the lag [s], for slopes
_BOUND_MARGIN = 1e-3  # distance of a logarithm to its bound at which the search ended at the bound, not at a minimum
_LONGEST_LAG = 60.0  # of a sensor, that is tried [s]
_LEAST_DURATION = 2.0  # of a run's readings in time constants; in a shorter run an exponential looks like a line


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


def identify_heat(
    runs: Sequence[HeatRun], *, coefficient: float = COPPER, resistance: tuple[float, float] | None = None
) -> Heat:
    """Identify thermal ratios from currents and temperatures, and the constants if the resistance is known.

    Output-error fit of the logarithms of the four ratios. Intervals come from blocks of the linearised fit and from
    errors that do not average out, each as a standard deviation: the air is 0.2 K from the motor's first reading and
    drifts, a sensor lags by 0.5 s, the current is 1 % off and the coefficient 10 %. They are widened if parts of the
    data disagree, and by what a lag of the sensors, or a trend, changes significantly. All ratios are refused if too
    few temperatures were read, a sensor reached the end of its range, or the fit explains less than half of their
    variance; a time constant is refused if the
    readings of no run last twice as long.

    Args:
        runs: recordings of one motor.
        coefficient: temperature coefficient of the resistance, relative to ambient temperature [1/K].
        resistance: R_a at ambient temperature and its standard error [Ohm], from the armature; None if unknown.
    """
    runs = [run for run in runs if len(run.read_times())]
    if not runs:
        return refused_heat(_NO_TEMPERATURE, coefficient)
    peak = max(float(np.max(np.abs(run.current))) for run in runs) or 1.0
    runs = [replace(run, current=run.current / peak) for run in runs]
    largest_rise = max(float(np.max(np.abs(run.spread()))) for run in runs) or 1.0
    starts = [np.log([spread * largest_rise / _START[0], *_START]) for spread in _START_FACTORS]
    try:
        best, fit, slopes = _solve(runs, coefficient, starts)
    except IdentificationError as problem:
        return refused_heat(too_little(problem), coefficient)
    if not best.settled:
        return refused_heat(unsettled(f"{_BUDGET} evaluations of the model"), coefficient)
    logs, residuals = best.values, best.residual
    if (ended := _end_of_range(runs, coefficient, [*starts, logs])) is not None:
        return refused_heat(ended, coefficient)
    gaps = _disagreement(runs, coefficient, logs)
    changes = [*_model_changes(runs, coefficient, logs, fit), *_gap_changes(gaps)]
    covariance = fit.covariance + _shared_error_covariance(runs, coefficient, logs, slopes)
    logs_in_ampere = logs - np.array([2.0 * math.log(peak), 0.0, 0.0, 0.0])
    values, multiple, ratios = np.exp(logs_in_ampere), fit.half_width(1.0), []
    rivals = [Rival(reason, dict(zip(_NAMES, (values * change).tolist(), strict=True))) for reason, change in changes]
    for k, unknown in enumerate(_RATIOS):
        error = float(np.sqrt(covariance[k, k]) * values[k])
        if math.isfinite(error):
            ratio = judge(unknown, float(values[k]), error, multiple * error)
            (ratio,) = widened([ratio], _RATIOS, rivals, multiple)
            reason = _implausibility(k, runs, logs, residuals, ratio.value)
            ratios.append(ratio if reason is None else ratio.refused(reason))
        else:
            ratios.append(undetermined(unknown, fit.estimates[k].reason))
    _, _, housing, share = ratios
    if housing.reason is not None and housing.reason.kind is Kind.OTHER_EXPLANATION:
        # Air or cooling that change in a run bend the heat that goes to the housing, too.
        ratios[-1] = share.refused_if_identified(housing.reason)
    unidentified = [ratio.name for ratio in ratios if not ratio.identified]
    covariance += sum((np.outer(change, change) for _, change in changes), np.zeros_like(covariance))
    constants = _constants(fit, covariance, logs_in_ampere, resistance, unidentified)
    disagreeing = tuple(name for name, gap in zip(_NAMES, gaps, strict=True) if gap > 0.0)
    residual = rms(residuals)
    return Heat(tuple(ratios), constants, residual, values, coefficient, disagreeing)


def refused_heat(reason: Reason, coefficient: float) -> Heat:
    """Thermal model with all values refused for one reason."""
    ratios, constants = (tuple(undetermined(unknown, reason) for unknown in group) for group in (_RATIOS, _CONSTANTS))
    return Heat(ratios, constants, math.nan, np.full(4, math.nan), coefficient)


def _solve(runs: Sequence[HeatRun], coefficient: float, starts: Sequence[Vector]) -> tuple[Searched, Fit, Vector]:
    """Logarithms (4,) of the ratios with their residuals (m,) [K], the best from several starts.

    The further results are their linearised fit, and the slopes (m, 4) of the temperatures over the logarithms [K].
    Values of a rival count even if the search did not settle. A fifth unknown, where the starts have one, is the lag of
    the sensors [s].

    Raises:
        IdentificationError: too few readings.
    """

    def misfit(unknowns: Vector) -> Vector:
        logs, lag = unknowns[: len(_NAMES)], float(np.sum(unknowns[len(_NAMES) :]))
        return np.concatenate([run.misfit(np.exp(logs), coefficient, lag) for run in runs])

    low, high = (np.append(np.log(limit), lag)[: len(starts[0])] for limit, lag in ((_LOW, 0.0), (_HIGH, _LONGEST_LAG)))
    # The search may try constants with thermal runaway; their large residuals lead it back.
    with np.errstate(over="ignore", invalid="ignore"):
        best = search(misfit, starts, (low, high), _BUDGET)
        slopes = slopes_of(misfit, best.values, np.full(len(low), _STEP))
    times = [run.read_times() for run in runs]
    total = sum(float(np.ptp(part)) for part in times) or 1.0  # each a single reading
    unknowns = [Unknown(name, "1", resolution=math.inf) for name in (*_NAMES, "lag")[: len(low)]]
    pieces = rows_of(slopes, -best.residual, times, total / _HEAT_BLOCKS)
    # Without the scatter between runs, which `_disagreement` detects.
    return best, least_squares(pieces, unknowns, robust=False, between=False), slopes


def _end_of_range(runs: Sequence[HeatRun], coefficient: float, starts: Sequence[Vector]) -> Reason | None:
    """Why a sensor reached the end of its range, None if none did."""
    kept = [without_top(run) for run in runs]
    if all(rest is run for rest, run in zip(kept, runs, strict=True)):
        return None
    try:
        logs = _solve(kept, coefficient, starts)[0].values
    except IdentificationError:  # too few readings below it
        return None
    return end_of_range(runs, kept, np.exp(logs), coefficient)


def _model_changes(runs: Sequence[HeatRun], coefficient: float, logs: Vector, fit: Fit) -> list[tuple[Reason, Vector]]:
    """Changes (4,) of the logarithms in other models, each with its cause, as far as the readings show them.

    A sensor that lags looks like a slow winding. A lag counts from 3 standard errors, if it is longer than that which
    all intervals include. Air that warms, or a sensor that drifts, looks like a slow housing; what a linear trend of
    the readings, or one of the air that the housing follows, changes counts from 3 standard errors of the change
    (Hausman 1978).
    """
    changes = []
    try:
        late, with_lag, _ = _solve(runs, coefficient, [np.append(logs, LAG)])
        lag = float(late.values[-1])
        if lag > max(SIGNIFICANT * with_lag["lag"].standard_error, LAG):
            changes.append((Reason(Kind.OTHER_EXPLANATION, _LATE.format(lag=lag)), late.values[:-1] - logs))
        read = _drift_change([replace(run, trend=True) for run in runs], coefficient, logs, fit)
        followed = _drift_change([replace(run, warming=True) for run in runs], coefficient, logs, fit)
    except IdentificationError:  # too short for one more unknown
        return changes
    # One drift explains the data, so the larger change counts, not both.
    return [*changes, (_DRIFTING, np.where(np.abs(read) > np.abs(followed), read, followed))]


def _drift_change(drifting: Sequence[HeatRun], coefficient: float, logs: Vector, fit: Fit) -> Vector:
    """Change (4,) of the logarithms by runs with a drift, 0 where it is not significant."""
    found, with_drift, _ = _solve(drifting, coefficient, [logs])
    variance = np.diag(fit.covariance)
    with np.errstate(invalid="ignore"):  # of one at its bound, which both leave undetermined
        errors = np.sqrt(np.maximum(np.diag(with_drift.covariance) - variance, variance))
    difference = found.values - logs
    return np.where(np.abs(difference) > SIGNIFICANT * errors, difference, 0.0)


def _gap_changes(gaps: Vector) -> list[tuple[Reason, Vector]]:
    """Half of each difference (4,) between parts of the data: the interval then contains the values of both parts."""
    found = []
    for k in np.flatnonzero(gaps):
        differ = f"parts of them give values that differ by a factor of {math.exp(gaps[k]):.2g}"
        reason = Reason(Kind.OTHER_EXPLANATION, f"the recordings disagree: {differ}")
        found.append((reason, 0.5 * gaps * (np.arange(len(gaps)) == k)))
    return found


def _disagreement(runs: Sequence[HeatRun], coefficient: float, logs: Vector) -> Vector:
    """Largest significant difference (4,) between parts of the data in the logarithms of the ratios, 0 if they agree.

    The readings of the first half of every run are compared with those of the second, each run with all other runs, and
    the first half of the runs with the second. Parts agree within 3 combined standard errors.
    """
    pairs = [([run.only(0) for run in runs], [run.only(1) for run in runs])]
    if len(runs) > 1:
        pairs += [([run], [*runs[:k], *runs[k + 1 :]]) for k, run in enumerate(runs)]
        pairs += [(list(runs[: len(runs) // 2]), list(runs[len(runs) // 2 :]))]
    gaps = np.zeros(4)
    for pair in pairs:
        try:
            (first, fit_a, _), (second, fit_b, _) = (_solve(part, coefficient, [logs]) for part in pair)
        except IdentificationError:
            continue  # a part is too short to be fitted alone
        difference = np.abs(first.values - second.values)
        combined = np.sqrt(np.diag(fit_a.covariance) + np.diag(fit_b.covariance))
        gaps = np.maximum(gaps, np.where(difference > SIGNIFICANT * combined, difference, 0.0))
    return gaps


def _implausibility(k: int, runs: Sequence[HeatRun], logs: Vector, residuals: Vector, value: float) -> Reason | None:
    """Reason why the ratio number k is not credible although it has an interval, None if it is credible."""
    spread = np.concatenate([run.spread() for run in runs])
    power = float(spread @ spread)
    explained = 1.0 - float(residuals @ residuals) / power if power > 0.0 else 0.0
    longest = max(float(np.ptp(run.read_times())) for run in runs)
    if explained < EXPLAINS:
        little = f"the fit explains {explained:.2g} of the temperature variance (R2); at least {EXPLAINS:g} is needed"
        return Reason(Kind.UNEXPLAINED, little)
    if min(logs[k] - math.log(_LOW[k]), math.log(_HIGH[k]) - logs[k]) < _BOUND_MARGIN:
        return Reason(Kind.AT_BOUND, f"the search ended at its bound, {with_unit(f'{value:.3g}', _RATIOS[k].unit)}")
    if _RATIOS[k].unit == "s" and logs[1] > logs[2]:
        return _EXCHANGED
    if _RATIOS[k].unit == "s" and _LEAST_DURATION * value > longest:
        short = f"the fit gives {value:.3g} s, but the longest run lasts {math.floor(longest)} s"
        return Reason(Kind.TOO_LITTLE_DATA, f"{short}; {math.ceil(_LEAST_DURATION * value)} s are needed")
    return None


def _shared_error_covariance(runs: Sequence[HeatRun], coefficient: float, logs: Vector, slopes: Vector) -> Vector:
    """Covariance (4, 4) of the logarithms from errors that readings share and the scatter of residuals does not show.

    The change of the logarithms is the fit of the change of the readings, `HeatRun.shared_errors`.
    """
    run_columns, common_columns, row = [], np.zeros((2, len(slopes))), 0
    for run in runs:
        run_changes, common_changes = run.shared_errors(np.exp(logs), coefficient)
        part = slice(row, row + run_changes.shape[1])
        row = part.stop
        common_columns[:, part] = common_changes
        for change in run_changes:
            run_columns.append(np.zeros(len(slopes)))
            run_columns[-1][part] = change
    shifts, *_ = np.linalg.lstsq(slopes, np.column_stack([*run_columns, *common_columns]), rcond=None)
    covariance: Vector = shifts @ shifts.T
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
    fit: Fit, covariance: Vector, logs: Vector, resistance: tuple[float, float] | None, unidentified: Sequence[str]
) -> tuple[Estimate, ...]:
    """Thermal resistances and capacities from the ratios and the motor's resistance.

    A constant is refused if one of its ratios is undetermined, because the linearised fit is valid only near its
    solution.
    """
    if resistance is None:
        return tuple(undetermined(unknown, _ONLY_RATIOS) for unknown in _CONSTANTS)
    ohms, ohms_error = resistance
    estimates = []
    for unknown, powers in zip(_CONSTANTS, _POWERS, strict=True):
        used = powers[1:] != 0.0
        variance = float(powers[1:][used] @ covariance[np.ix_(used, used)] @ powers[1:][used])
        missing = [name for name, use in zip(_NAMES, used, strict=True) if use and name in unidentified]
        if missing:
            reason = Reason(Kind.DEPENDS, f"these runs do not determine: {', '.join(missing)}")
            estimates.append(undetermined(unknown, reason))
            continue
        value = math.exp(float(powers @ np.concatenate([[math.log(ohms)], logs])))
        standard_error = value * math.hypot(math.sqrt(variance), ohms_error / ohms)
        estimates.append(judge(unknown, value, standard_error, fit.half_width(standard_error)))
    return tuple(estimates)
