"""Coulomb friction that increases with the torque of the gear: coulomb + load_coefficient |tau_gear|.

tau_gear is the torque that the gear transmits to the bodies: weight and inertia on its output side, without the rotor;
for a joint without a tree, its whole inertia. It depends on the bodies, so the fit is iterated with the resulting
torque. Prediction of held-out data decides whether the load term is needed.

Source: BAM's servo models, Duclusaud et al. 2024; MuJoCo's discussion of strain-wave gears.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from youbot_dynamics.arrays import Vector, rms
from youbot_dynamics.dynamics.lugre import coulomb_under_load
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction, JointFit
from youbot_dynamics.identification.arm_friction._regressors import OF_BODY, inertial_parameters
from youbot_dynamics.identification.arm_friction._rows import PARTS, JointRows, block_length
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    Unknown,
    least_squares,
    too_little,
    undetermined,
)

_ITERATIONS = 4
_FOLD_PIECES = 8  # pieces of each recording for two-fold cross-validation: even ones against odd ones
_UNLOADED = Unknown("unloaded_coulomb", "N m", low=0.0)
_LOADED = Reason(
    Kind.OTHER_EXPLANATION, "friction grows with the load, which explains a part of what speed seems to do"
)
_LOAD = Unknown("load_coefficient", "1", unexcited="the gear never transmitted a torque")


@dataclass(frozen=True)
class LoadFriction:
    """Friction of one joint with a part that increases with the load."""

    coulomb: Estimate  # without load [N m]; used only together with the load coefficient
    load: Estimate  # load_coefficient [1]; identified only if it is positive and improves the prediction
    held_out: tuple[float, float]  # RMS error of predicted torques without and with the load term [N m]
    # Where the load is identified: Coulomb torque at its mean [N m], and viscous friction beside it [N m s/rad]
    beside: dict[str, float] = field(default_factory=dict)

    def rival(self, joint: JointFit) -> Rival:
        """What the load term changes in the friction of its joint: fast motion loads the gear too."""
        plain = {name: joint[name] for name in self.beside}
        return Rival(_LOADED, {one.name: self.beside[name] - one.value for name, one in plain.items()})


def load_friction(found: ArmFriction, joint: str) -> LoadFriction:
    """Identify the load-dependent friction of one joint from the data of `found`."""
    rows = [row for row in found.rows if row.name == joint]
    try:
        if not rows or found.fit is None or not found[joint]["coulomb"].identified:
            raise IdentificationError(joint, got="no identified Coulomb torque", expected="one")
        row = rows[0]
        fit, gear = _load_fit(found, row)
        held_out = _prediction_errors(row, gear)
    except IdentificationError as problem:
        return _refused(too_little(problem))
    load, coulomb = fit.estimates[-1], fit.estimates[-2]
    if not load.interval[0] > 0.0:
        none = f"no significant load dependence: {fit.values[-1]:.2g} +-{fit.half_width(load.standard_error):.2g}"
        return _refused(Reason(Kind.TOO_WIDE, none), held_out)
    if not held_out[1] < held_out[0]:
        worse = (
            f"the prediction error of held-out torques is {held_out[1]:.3g} N m with it, {held_out[0]:.3g} without it"
        )
        return _refused(Reason(Kind.UNEXPLAINED, worse), held_out)
    beside = {one.name: one.value for one in fit.estimates if one.name == "viscous"}
    beside["coulomb"] = coulomb_under_load(coulomb.value, load.value, float(np.mean(np.abs(gear))))
    return LoadFriction(coulomb, load, held_out, beside)


def _refused(reason: Reason, held_out: tuple[float, float] = (math.nan, math.nan)) -> LoadFriction:
    return LoadFriction(undetermined(_UNLOADED, reason), undetermined(_LOAD, reason), held_out)


def _load_fit(found: ArmFriction, row: JointRows) -> tuple[Fit, Vector]:
    """Fit of the rows, Coulomb torque and load coefficient last, and the gear's torque (r,)."""
    body, friction = row.body[:, row.free], row.friction()[:, ::-1]
    names = [*(f"body_{k}" for k in range(body.shape[1])), *PARTS[:0:-1]]
    unknowns = [*(Unknown(name, "") for name in names), _UNLOADED, _LOAD]
    body_values, block = np.zeros(body.shape[1]), block_length([row], len(unknowns))
    for _ in range(_ITERATIONS):
        gear = _gear_torque(found, row, body, body_values)
        column = np.sign(row.speed) * coulomb_under_load(0.0, 1.0, gear)
        table = np.column_stack([body, friction, column])
        fit = least_squares(row.pieces(table, row.torque - row.nominal, block), unknowns)
        body_values = np.nan_to_num(fit.values[: body.shape[1]])
    return fit, gear


def _gear_torque(found: ArmFriction, row: JointRows, body: Vector, body_values: Vector) -> Vector:
    """Torque (r,) from the gear to the bodies, for values (m,) of their columns."""
    tree, base = found.model.tree, found.base
    if tree is None or base is None:
        return row.nominal + body @ body_values
    parameters, bodies = inertial_parameters(tree), OF_BODY * len(tree.names)
    parameters[base.columns] += body_values
    return row.body[:, :bodies] @ parameters[:bodies]


def _prediction_errors(row: JointRows, gear: Vector) -> tuple[float, float]:
    """RMS error [N m] of the predicted torques of held-out pieces, without and with the load term."""
    piece = np.minimum((_FOLD_PIECES * row.progress()).astype(int), _FOLD_PIECES - 1)
    column = np.sign(row.speed) * coulomb_under_load(0.0, 1.0, gear)
    plain = np.column_stack([row.body[:, row.free], row.friction()[:, ::-1]])
    target, errors = row.torque - row.nominal, []
    for table in (plain, np.column_stack([plain, column])):
        lengths = np.maximum(np.linalg.norm(table, axis=0), 1e-12)
        prediction_error = np.empty(len(target))
        for fold in (0, 1):
            train = piece % 2 == fold
            values = np.linalg.lstsq(table[train] / lengths, target[train], rcond=1e-6)[0]
            prediction_error[~train] = (target - table / lengths @ values)[~train]
        errors.append(rms(prediction_error))
    return errors[0], errors[1]
