"""Friction of a mecanum base from wheel speeds and wheel torques, or from coasting with the motors off.

The formulas of document 003 give negative friction for four reasons: (i) V_L = 1/(4R) sum w instead of R/4 multiplies
every coefficient of a speed by R^2; (ii) the acceleration is the backward difference of the speed that is also a
regressor, so at constant speed the noise of one reading enters both, xi tends to -m_a/dt and F1 absorbs the remainder;
(iii) m_a lacks the rotors; (iv) the sign of a wheel at rest is noise. Here speed and acceleration are averaged over a
window in which their noise is uncorrelated, instruments come from the command, the inertia is the effective one, and
windows with a wheel near rest are left out.

Source: system 36; document 003, D-003-2, D-003-10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.base_friction._rows import FrictionModel, friction_rows
from youbot_dynamics.identification.base_friction._signals import FrictionSignals
from youbot_dynamics.identification.least_squares import (
    POWERS,
    SIGNIFICANT,
    BlockSums,
    ByName,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    Rows,
    Unknown,
    accumulate,
    admitted,
    fit,
    merge,
    strength,
    too_little,
    undetermined,
    values_of,
    widened,
)

_OMNI_WHEELS = Reason(
    Kind.CONFUSED,
    "the viscous friction of one wheel is its share when driving forward, and omni wheels turn unequally then",
)
_NO_RECORDING = Reason(Kind.NOT_MEASURED, "there is no recording")
_NO_COAST = Reason(
    Kind.NOT_MEASURED,
    "no span with the motors off; needed: eight or more in which the base coasts to rest",
)

_LAG_CHANGES = 2.0  # multiple of the changes by a lag: of one of 0.1 to 0.3 s, smooth drives show a half or less
_PROMPT = 0.02  # [s] efforts in phase with the commands of a servo loop appear to lag, or lead, by up to this


@dataclass(frozen=True, eq=False)
class BaseFriction(ByName):
    """Identified friction of a base."""

    model: FrictionModel  # selects the coefficients
    # Of the friction coefficients, then, with `each_wheel`, of the viscous torque of each wheel
    estimates: tuple[Estimate, ...]
    fit: Fit | None = None  # residual, condition, correlation; None if there was nothing to fit


def friction_sums(signals: FrictionSignals, model: FrictionModel) -> BlockSums:
    """Block sums of one recording with efforts, to be merged with those of other recordings."""
    return merge([accumulate(piece) for piece in friction_rows(model, signals)])


def fit_friction(
    sums: BlockSums, model: FrictionModel, rows: Callable[[], Iterable[Rows]] | None = None
) -> BaseFriction:
    """Friction from merged block sums of a model; `rows` yields the rows again, for the solution by QR."""
    unknowns = model.unknowns()
    try:
        solution = fit(sums, unknowns, rows)
    except IdentificationError as problem:
        counted = "usable time blocks in which every wheel turns in one direction"
        return no_friction(model, too_little(problem, counted))
    wheel_viscous = _wheel_viscous(solution, model) if model.each_wheel else ()
    return BaseFriction(model, solution.estimates[: model.coefficients] + wheel_viscous, solution)


def with_model_errors(friction: BaseFriction, sums_of: Callable[[FrictionModel], BlockSums]) -> BaseFriction:
    """The friction with the errors of the model itself, where the forces contradict it.

    The fit is repeated with efforts that lag, and with friction proportional to each power of the speed. Where the lag
    is significant, the changes of each coefficient by it count as additional errors, and the powers are tried with it
    and compared with it, since a filter looks like them. So do the changes by a significant power, and by others that
    are nearly as significant. A value that this refuses names the cause. `friction` is that of the model without powers
    and lag; `sums_of` gives the merged block sums of the same recordings for a model.

    Forces that a filter hides from the efforts are also missing in their rate, so that the lag found is too short, and
    most so where the motion is smooth: it is the least one, and its changes count several times.
    """
    if friction.fit is None:
        return friction
    model, rivals = friction.model, list[Rival]()
    before = {one.name: one.value for one in friction.estimates}
    try:
        lagging = replace(model, effort_lag=True)
        other = fit(sums_of(lagging), lagging.unknowns())
        lag = values_of(other)["effort_lag"]
        if abs(lag) > max(_PROMPT, SIGNIFICANT * other["effort_lag"].standard_error):
            side = "behind" if lag > 0.0 else "ahead of"
            late = f"the efforts are at least {1e3 * abs(lag):.0f} ms {side}"
            text = f"{late} the motion, and the value depends on it: remove their filter, or check the stamps"
            reason = Reason(Kind.OTHER_EXPLANATION, text)
            values = _coefficients(other, model)
            rivals.append(Rival(reason, {name: _LAG_CHANGES * (values[name] - before[name]) for name in before}))
            model, before = lagging, values
        rivals += admitted([_power_rival(before, sums_of, model, exponent) for exponent in POWERS])
    except IdentificationError:  # too short for more unknowns
        pass
    unknowns = (*friction.fit.unknowns, *_wheel_unknowns(model))
    return replace(friction, estimates=widened(friction.estimates, unknowns, rivals, friction.fit.half_width(1.0)))


def _power_rival(
    before: Mapping[str, float], sums_of: Callable[[FrictionModel], BlockSums], model: FrictionModel, exponent: float
) -> Rival:
    """Friction with a power of the speed in addition to a model; `before` are the coefficients without it, by name."""
    with_power = replace(model, exponents=(exponent,))
    other = fit(sums_of(with_power), with_power.unknowns())
    law = f"friction does not follow Coulomb + viscous: the forces also contain a term of |v|^{exponent:g}"
    values, terms = _coefficients(other, model), [unknown.name for unknown in with_power.power_unknowns()]
    changes = {name: values[name] - value for name, value in before.items()}
    return Rival(Reason(Kind.OTHER_EXPLANATION, f"{law}, and the value depends on it"), changes, strength(other, terms))


def _coefficients(solution: Fit, model: FrictionModel) -> dict[str, float]:
    """Friction coefficients before any bound by name, and with `each_wheel` the viscous torque of each wheel."""
    wheels = _wheel_viscous(solution, model) if model.each_wheel else ()
    names = [unknown.name for unknown in model.unknowns()[: model.coefficients]]
    values = values_of(solution)
    return {name: values[name] for name in names} | {one.name: one.value for one in wheels}


def friction_of(
    sums: BlockSums, widest: FrictionModel, model: FrictionModel, rows: Callable[[], Iterable[Rows]]
) -> BaseFriction:
    """Friction with the errors of the model, from sums of everything that is tried with the widest model.

    `rows` yields the rows of the model again, see `fit_friction`.
    """
    sums_of = partial(of_model, sums, most_general(widest))
    return with_model_errors(fit_friction(sums_of(model), model, rows), sums_of)


def most_general(model: FrictionModel) -> FrictionModel:
    """The model with everything that `with_model_errors` tries."""
    return replace(model, exponents=POWERS, effort_lag=True)


def of_model(sums: BlockSums, general: FrictionModel, model: FrictionModel) -> BlockSums:
    """Sums for a model from those of a more general one; the Coulomb column of all wheels is the sum of theirs."""
    names = [unknown.name for unknown in general.unknowns()]
    wheels = [f"wheel_coulomb_{name}" for name in model.wheel_names]
    all_wheels = general.each_wheel and not model.each_wheel
    parts = [
        wheels if all_wheels and unknown.name == "wheel_coulomb" else [unknown.name] for unknown in model.unknowns()
    ]
    return sums.combined(np.array([[name in part for part in parts] for name in names], dtype=np.float64))


def no_friction(model: FrictionModel, reason: Reason) -> BaseFriction:
    """Refuse every coefficient of the model for one reason."""
    unknowns = model.unknowns()[: model.coefficients]
    return BaseFriction(model, tuple(undetermined(unknown, reason) for unknown in unknowns))


def _wheel_unknowns(model: FrictionModel) -> list[Unknown]:
    return [Unknown(f"wheel_viscous_{name}", "N m s", low=0.0) for name in model.wheel_names]


def _wheel_viscous(solution: Fit, model: FrictionModel) -> tuple[Estimate, ...]:
    """Viscous torque of each wheel when driving forward: its share of xi_L plus its deviation from the mean."""
    wheels = _wheel_unknowns(model)
    if np.any(model.base.drives[:, 1]):
        return tuple(undetermined(wheel, _OMNI_WHEELS) for wheel in wheels)
    patterns, names = model.patterns(), [unknown.name for unknown in solution.unknowns]
    matrix = np.zeros((len(patterns), len(names)))
    matrix[:, names.index("viscous_x")] = model.base.radii**2 / len(patterns)
    matrix[:, names.index("viscous_pattern_1") :] = patterns
    return solution.combination(matrix, wheels)


def estimate_base_friction(recordings: Sequence[FrictionSignals], model: FrictionModel) -> BaseFriction:
    """Identify the friction of the base from recordings of its wheels.

    F - (M V' + m Omega x V) = xi V + F1 J' sign w + F2/r sum sign(V_T + Omega h) |1/cos d|, with the row of the turn
    added, by instrumental variables if the command is known. All values scale with the torque constant behind the
    efforts. The constant of a motor may differ by 3 % from its data sheet; the intervals do not include this error.

    Args:
        recordings: signals, each recording with its own number.
        model: selects the coefficients.

    Returns:
        Estimates with intervals and verdicts; all "not identifiable" if a recording has no efforts.

    Source: document 003 eq. (1), corrected by D-003-9 and D-003-10.
    """
    reasons = [reason for signals in recordings if (reason := signals.refusal()) is not None]
    if not recordings or reasons:
        return no_friction(model, reasons[0] if reasons else _NO_RECORDING)
    sums = merge([friction_sums(signals, most_general(model)) for signals in recordings])
    return friction_of(sums, model, model, lambda: (rows for one in recordings for rows in friction_rows(model, one)))


_UNITS = {"N s/m": "1/s", "N": "m/s2", "N m": "m2/s2"}  # of a coefficient -> of one over a mass


def coast_sums(signals: FrictionSignals, off: Sequence[tuple[float, float]], model: FrictionModel) -> BlockSums | None:
    """Block sums of the spans `off` (begin, end) [s] of one recording; None without rolling wheels.

    Each is one block. Only kinematics and inertias of the model count, without `each_wheel`; efforts and commands do
    not.
    """
    mass = _mass_forward(model)
    parts = []
    for number, (begin, end) in enumerate(off):
        inside = (signals.time > begin) & (signals.time < end)
        speeds = signals.speeds[inside]
        coasting = FrictionSignals(signals.time[inside], speeds, np.zeros_like(speeds), None, signals.recording)
        for rows in friction_rows(model, coasting):
            friction = rows.regressors[:, : model.coefficients]
            # One block per coast, since all its readings share the same floor.
            coast = np.full(len(rows.time), number + 0.5)
            parts.append(accumulate(Rows(coast, friction, rows.target / mass, None, signals.recording)))
    return merge(parts) if parts else None


def fit_coast_down(parts: Sequence[BlockSums], model: FrictionModel) -> BaseFriction:
    """Friction over effective mass from the sums of one or many recordings; refused if there are none.

    With the motors off the torque is zero: M V' + m Omega x V = -friction. Without a known force, only ratios to the
    effective forward mass can be identified: xi_L / m_eff [1/s], F1 / m_eff [N m/kg], and so on. The real driver
    switches the motors off with the service `base/switchOffMotors`; on the floor the base then comes to rest in a
    second or two.
    """
    mass = _mass_forward(model)
    unknowns = tuple(
        replace(one, name=f"{one.name}_over_mass", unit=_UNITS[one.unit], resolution=one.resolution / mass)
        for one in model.unknowns()[: model.coefficients]
    )
    reason = _NO_COAST
    if parts:
        try:
            solution = fit(merge(parts), unknowns)
            return BaseFriction(model, solution.estimates, solution)
        except IdentificationError as problem:
            reason = too_little(problem, "coasts with wheels turning in one direction")
    return BaseFriction(model, tuple(undetermined(unknown, reason) for unknown in unknowns))


def _mass_forward(model: FrictionModel) -> float:
    """Effective mass forward [kg]."""
    return float(effective_inertia(model.base, model.mass, model.yaw_inertia, model.wheel_inertia)[0, 0])
