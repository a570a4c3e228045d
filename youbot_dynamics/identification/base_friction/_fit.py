"""Friction of a mecanum base from wheel speeds and wheel torques, or from coasting with the motors off (system 36).

Why seed 003's own formulas give negative friction: (i) V_L = 1/(4R) sum w instead of R/4 (D-003-2) makes every
coefficient of a speed R^2 times what it is; (ii) the acceleration is the backward difference of the very speed that is
a regressor, so at constant speed the noise of one reading enters both, xi tends to -m_a/dt and F1 takes what is left;
(iii) m_a leaves out the rotors (D-003-10); (iv) the sign of a wheel at rest is noise. Here speed and acceleration are
averaged over a window in which they share no noise, instruments come from the command, inertia is the effective one,
and windows with a wheel near rest are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.base_friction._rows import FrictionModel, friction_rows
from youbot_dynamics.identification.base_friction._signals import FrictionSignals
from youbot_dynamics.identification.least_squares import (
    BlockSums,
    Estimate,
    Fit,
    Rows,
    Unknown,
    accumulate,
    fit,
    merge,
    undetermined,
)


@dataclass(frozen=True, eq=False)
class BaseFriction:
    """Friction of a base as identified."""

    model: FrictionModel  # which coefficients
    # of its coefficients of friction, then, with `each_wheel`, of the viscous torque of each wheel
    estimates: tuple[Estimate, ...]
    fit: Fit | None = None  # residual, condition, correlation; None where there was nothing to fit

    def __getitem__(self, name: str) -> Estimate:
        """Estimate of one coefficient by its name."""
        return {estimate.name: estimate for estimate in self.estimates}[name]


def friction_sums(signals: FrictionSignals, model: FrictionModel) -> BlockSums:
    """Block sums of one recording with efforts: all that identification needs, to be merged with those of others."""
    return merge([accumulate(piece) for piece in friction_rows(model, signals)])


def fit_friction(
    sums: BlockSums, model: FrictionModel, rows: Callable[[], Iterable[Rows]] | None = None
) -> BaseFriction:
    """Friction from merged block sums.

    Args:
        sums: of one or many recordings.
        model: the model they were made with.
        rows: gives the rows once more, for the solution by QR.
    """
    unknowns = model.unknowns()
    try:
        found = fit(sums, unknowns, rows)
    except IdentificationError as too_little:
        reason = f"{too_little.got} in which every wheel keeps turning one way; needed: {too_little.expected}"
        return no_friction(model, reason)
    extra = _wheel_viscous(found, model) if model.each_wheel else ()
    return BaseFriction(model, found.estimates[: model.coefficients] + extra, found)


def no_friction(model: FrictionModel, reason: str) -> BaseFriction:
    """Every coefficient of the model refused for one reason."""
    asked = model.unknowns()[: model.coefficients]
    return BaseFriction(model, tuple(undetermined(unknown, reason) for unknown in asked))


def _wheel_viscous(found: Fit, model: FrictionModel) -> tuple[Estimate, ...]:
    """Viscous torque of each wheel when driving forward: its share of xi_L and what sets it apart from the others."""
    patterns, names = model.patterns(), [unknown.name for unknown in found.unknowns]
    matrix = np.zeros((len(patterns), len(names)))
    matrix[:, names.index("viscous_x")] = model.base.radii**2 / len(patterns)
    matrix[:, names.index("viscous_pattern_1") :] = patterns
    wheels = [Unknown(f"wheel_viscous_{name}", "N m s", low=0.0, resolution=5e-4) for name in model.wheel_names]
    return found.combination(matrix, wheels)


def estimate_base_friction(recordings: Sequence[FrictionSignals], model: FrictionModel) -> BaseFriction:
    """Identify the friction of the base from recordings of its wheels.

    F - (M V' + m Omega x V) = xi V + F1 J' sign w + F2/r sum sign(V_T + Omega h) |1/cos d| (seed 003 eq. (1) with
    D-003-9 and D-003-10 put right, the row of the turn added), by instrumental variables where the command is known.
    All values scale with the torque constant behind the efforts: that of a motor may be 3 % off its sheet, which the
    intervals do not contain.

    Args:
        recordings: signals, each recording with another number.
        model: which coefficients.

    Returns:
        Estimates with intervals and verdicts; all of them "not identifiable" where a recording has no efforts.
    """
    reasons = [signals.refusal() for signals in recordings]
    if not recordings or any(reasons):
        reason = next((reason for reason in reasons if reason), "there is no recording")
        return no_friction(model, reason)
    sums = merge([friction_sums(signals, model) for signals in recordings])
    return fit_friction(sums, model, lambda: (rows for signals in recordings for rows in friction_rows(model, signals)))


_UNITS = {"viscous_x": "1/s", "viscous_y": "1/s", "roller_coulomb": "m/s2", "wheel_coulomb": "m2/s2"}


def estimate_coast_down(
    signals: FrictionSignals, off: Sequence[tuple[float, float]], model: FrictionModel
) -> BaseFriction:
    """Friction over effective mass from the spans in which the motors were off: all a driver without efforts can tell.

    Motors off means no torque: M V' + m Omega x V = -friction. Divided by the effective mass forward this holds no
    force at all, so only ratios come out: xi_L / m_eff [1/s], F1 / m_eff [N m/kg], and so on. The real driver switches
    the motors off by the service `base/switchOffMotors`; on the floor the base then rolls to rest in a second or two.

    Args:
        signals: of the wheels; efforts and commands are not looked at.
        off: (begin, end) of each span without torque [s], on the clock of the signals.
        model: kinematics and inertias, of which only ratios matter; without `each_wheel`.

    Returns:
        viscous_x, viscous_y, roller_coulomb and wheel_coulomb, each over the effective mass forward.
    """
    sums = coast_sums(signals, off, model)
    return fit_coast_down([] if sums is None else [sums], model)


def coast_sums(signals: FrictionSignals, off: Sequence[tuple[float, float]], model: FrictionModel) -> BlockSums | None:
    """Block sums of one recording, a block each coast: see `estimate_coast_down`; None where nothing rolled in them."""
    mass = _mass_forward(model)
    parts = []
    for number, (begin, end) in enumerate(off):
        inside = (signals.time > begin) & (signals.time < end)
        speeds = signals.speeds[inside]
        coasting = FrictionSignals(signals.time[inside], speeds, np.zeros_like(speeds), None, signals.recording)
        for rows in friction_rows(model, coasting):
            friction = rows.regressors[:, : model.coefficients]
            # One block a coast: readings along it share what the floor was like.
            coast = np.full(len(rows.time), number + 0.5)
            parts.append(accumulate(Rows(coast, friction, rows.target / mass, None, signals.recording)))
    return merge(parts) if parts else None


def fit_coast_down(parts: Sequence[BlockSums], model: FrictionModel) -> BaseFriction:
    """Friction over effective mass from the sums of one or many recordings; refused without any."""
    mass = _mass_forward(model)
    unknowns = tuple(
        Unknown(f"{one.name}_over_mass", _UNITS[one.name], one.low, one.high, one.resolution / mass, one.unexcited)
        for one in model.unknowns()[: model.coefficients]
    )
    reason = "no span with the motors off; needed: eight or more in which the base rolls to rest"
    if parts:
        try:
            found = fit(merge(parts), unknowns)
            return BaseFriction(model, found.estimates, found)
        except IdentificationError as too_little:
            coasts = too_little.got.replace("blocks with usable rows", "coasts in which the wheels roll one way")
            reason = f"{coasts}; needed: {too_little.expected}"
    return BaseFriction(model, tuple(undetermined(unknown, reason) for unknown in unknowns))


def _mass_forward(model: FrictionModel) -> float:
    """Effective mass forward [kg]."""
    return float(effective_inertia(model.base, model.mass, model.yaw_inertia, model.wheel_inertia)[0, 0])
