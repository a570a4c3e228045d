"""Friction over effective mass from a base that coasts with its motors off: all a driver without efforts can tell.

Motors off means no torque: M V' + m Omega x V = -friction. Divided by the effective mass forward this holds no force
at all, so only ratios come out: xi_L / m_eff [1/s], F1 / m_eff [N m/kg], and so on. The real driver switches the
motors off by the service `base/switchOffMotors`; on the floor the base then rolls to rest in a second or two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.base.friction_rows import FrictionModel, friction_rows
from youbot_dynamics.identification.base_friction import BaseFriction, FrictionSignals
from youbot_dynamics.identification.fitting.block_sums import BlockSums, Rows, accumulate, merge
from youbot_dynamics.identification.fitting.verdict import Unknown, undetermined
from youbot_dynamics.identification.least_squares import fit

Vector = NDArray[np.float64]

_UNITS = {"viscous_x": "1/s", "viscous_y": "1/s", "roller_coulomb": "m/s2", "wheel_coulomb": "m2/s2"}


def estimate_coast_down(
    signals: FrictionSignals, off: Sequence[tuple[float, float]], model: FrictionModel
) -> BaseFriction:
    """Friction over effective mass from the spans in which the motors were off.

    Args:
        signals: of the wheels; efforts and commands are not looked at.
        off: (begin, end) of each span without torque [s], on the clock of the signals.
        model: kinematics and inertias; only their ratios matter. Common to all wheels.

    Returns:
        viscous_x, viscous_y, roller_coulomb and wheel_coulomb, each over the effective mass forward.
    """
    sums = coast_sums(signals, off, model)
    return fit_coast_down([] if sums is None else [sums], model)


def coast_sums(signals: FrictionSignals, off: Sequence[tuple[float, float]], model: FrictionModel) -> BlockSums | None:
    """Block sums of one recording, a block each coast: see `estimate_coast_down`; None where nothing rolled in them."""
    common, mass = dataclasses.replace(model, each_wheel=False), _mass_forward(model)
    parts = []
    for number, (begin, end) in enumerate(off):
        inside = (signals.time > begin) & (signals.time < end)
        speeds = signals.speeds[inside]
        for rows in friction_rows(common, signals.time[inside], speeds, np.zeros_like(speeds), None, signals.recording):
            friction = rows.regressors[:, : common.coefficients]
            # One block a coast: readings along it share what the floor was like.
            coast = np.full(len(rows.time), number + 0.5)
            parts.append(accumulate(Rows(coast, friction, rows.target / mass, None, signals.recording)))
    return merge(parts) if parts else None


def fit_coast_down(parts: Sequence[BlockSums], model: FrictionModel) -> BaseFriction:
    """Friction over effective mass from the sums of one or many recordings; refused without any."""
    common, mass = dataclasses.replace(model, each_wheel=False), _mass_forward(model)
    unknowns = tuple(
        Unknown(f"{one.name}_over_mass", _UNITS[one.name], one.low, one.high, one.resolution / mass, one.unexcited)
        for one in common.unknowns()[: common.coefficients]
    )
    try:
        if not parts:
            raise IdentificationError("coast-down", got="no span with the motors off")
        found = fit(merge(parts), unknowns)
    except IdentificationError as too_little:
        reason = too_little.got.replace("blocks with usable rows", "coasts in which the wheels roll one way")
        return BaseFriction(common, tuple(undetermined(unknown, reason) for unknown in unknowns))
    return BaseFriction(common, found.estimates, found)


def _mass_forward(model: FrictionModel) -> float:
    """Effective mass forward [kg]."""
    return float(effective_inertia(model.base, model.mass, model.yaw_inertia, model.wheel_inertia)[0, 0])
