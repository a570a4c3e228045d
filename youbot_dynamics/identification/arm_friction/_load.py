"""Coulomb friction that increases with the torque of the gear: coulomb + load_coefficient |tau_gear|.

tau_gear is the torque that the gear transmits to the bodies: weight and inertia on its output side, without the rotor;
for a joint without a tree, its whole inertia. It depends on the bodies, so the fit is iterated with the resulting
torque. Prediction of held-out data decides whether the load term is needed.

Source: BAM's servo models, Duclusaud et al. 2024; MuJoCo's discussion of strain-wave gears.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.lugre import coulomb_under_load
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction
from youbot_dynamics.identification.arm_friction._regressors import OF_BODY, inertial_parameters
from youbot_dynamics.identification.arm_friction._rows import PARTS, JointRows, block_length
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Rows,
    Unknown,
    least_squares,
    undetermined,
)

_ROUNDS = 4
_PIECES = 8  # pieces of each recording for two-fold cross-validation: even ones against odd ones
_LOAD = Unknown("load_coefficient", "1", unexcited="the gear never transmitted a torque")


@dataclass(frozen=True)
class LoadFriction:
    """Friction of one joint with a part that increases with the load."""

    coulomb: Estimate  # without load [N m]; used only together with the load coefficient
    load: Estimate  # load_coefficient [1]; identified only if it is positive and improves the prediction
    held_out: tuple[float, float]  # RMS error of predicted torques without and with the load term [N m]


def load_friction(found: ArmFriction, joint: str) -> LoadFriction:
    """Identify the load-dependent friction of one joint from the data of `found`."""
    unknown, nan = Unknown("unloaded_coulomb", "N m", low=0.0), float("nan")
    rows = [row for row in found.rows if found.model.joint_names[row.joint] == joint]
    try:
        if not rows or found.fit is None or not found[joint]["coulomb"].identified:
            raise IdentificationError(joint, got="no identified Coulomb torque", expected="one")
        row = rows[0]
        fit, gear = _fitted(found, row, np.ones(len(row.time), dtype=bool))
        held_out = _held_out(found, row, gear)
    except IdentificationError as little:
        reason = f"{little.got}; needed: {little.expected}"
        return LoadFriction(undetermined(unknown, reason), undetermined(_LOAD, reason), (nan, nan))
    load, coulomb = fit.estimates[-1], fit.estimates[-2]
    if not load.interval[0] > 0.0:
        reason = f"no significant load dependence: {fit.values[-1]:.2g} +-{fit.half_width(load.standard_error):.2g}"
    elif not held_out[1] < held_out[0]:
        reason = (
            f"the prediction error of held-out torques is {held_out[1]:.3g} N m with it, {held_out[0]:.3g} without it"
        )
    else:
        return LoadFriction(coulomb, load, held_out)
    return LoadFriction(undetermined(unknown, reason), undetermined(_LOAD, reason), held_out)


def _columns(found: ArmFriction, row: JointRows) -> tuple[Vector, Vector]:
    """Columns (r, m) of the bodies that act on this joint, and (r, 5) of its friction, the Coulomb torque last."""
    body = row.body if found.base is None else row.body[:, found.base.columns]
    friction = row.friction()
    friction[:, PARTS.index("offset")] *= row.has_offset(body)
    return body, friction[:, ::-1]


def _fitted(found: ArmFriction, row: JointRows, used: NDArray[np.bool_]) -> tuple[Fit, Vector]:
    """Fit of the rows (r,) that are `used`, Coulomb torque and load coefficient last, and the gear's torque (r,)."""
    body, friction = _columns(found, row)
    names = [*(f"body_{k}" for k in range(body.shape[1])), *PARTS[:0:-1]]
    unknowns = [*(Unknown(name, "") for name in names), Unknown("unloaded_coulomb", "N m", low=0.0), _LOAD]
    own, block = np.zeros(body.shape[1]), block_length([row], len(unknowns))
    for _ in range(_ROUNDS):
        gear = _gear_torque(found, row, body, own)
        column = np.sign(row.speed) * coulomb_under_load(0.0, 1.0, gear)
        table, target = np.column_stack([body, friction, column]), row.torque - row.nominal
        pieces = []
        for number in np.unique(row.recording[used]):
            of = used & (row.recording == number)
            pieces.append(Rows(row.time[of], table[of], target[of], None, int(number), block))
        fit = least_squares(pieces, unknowns)
        own = np.nan_to_num(fit.values[: body.shape[1]])
    return fit, gear


def _gear_torque(found: ArmFriction, row: JointRows, body: Vector, own: Vector) -> Vector:
    """Torque (r,) from the gear to the bodies, for values `own` (m,) of their columns."""
    tree, base = found.model.tree, found.base
    if tree is None or base is None:
        return row.nominal + body @ own
    parameters, bodies = inertial_parameters(tree), OF_BODY * len(tree.names)
    parameters[base.columns] += own
    return row.body[:, :bodies] @ parameters[:bodies]


def _held_out(found: ArmFriction, row: JointRows, gear: Vector) -> tuple[float, float]:
    """RMS error [N m] of the predicted torques of held-out pieces, without and with the load term."""
    piece = np.zeros(len(row.time), dtype=int)
    for number in np.unique(row.recording):
        of = row.recording == number
        begin, span = row.time[of].min(), max(float(np.ptp(row.time[of])), 1e-9)
        piece[of] = np.minimum((_PIECES * (row.time[of] - begin) / span).astype(int), _PIECES - 1)
    column = np.sign(row.speed) * coulomb_under_load(0.0, 1.0, gear)
    plain = np.column_stack(_columns(found, row))
    target, left = row.torque - row.nominal, []
    for table in (plain, np.column_stack([plain, column])):
        lengths = np.maximum(np.linalg.norm(table, axis=0), 1e-12)
        error = np.empty(len(target))
        for fold in (0, 1):
            train = piece % 2 == fold
            values = np.linalg.lstsq(table[train] / lengths, target[train], rcond=1e-6)[0]
            error[~train] = (target - table / lengths @ values)[~train]
        left.append(float(np.sqrt(np.mean(error**2))))
    return left[0], left[1]
