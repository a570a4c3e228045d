"""Coulomb friction that grows with the torque a gear transmits: coulomb + load_coefficient |tau_gear|.

As in BAM's models of servos (Duclusaud et al. 2024) and in MuJoCo's discussion of strain-wave gears. tau_gear is what
the bodies ask of the gear: weight and inertia on its far side, without the rotor, which turns before it; of a joint
without a tree its whole inertia. It depends on the bodies, so that the fit is repeated with the torque they then give.
Whether the data ask for it is judged by prediction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.lugre import coulomb_under_load
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction, block_length
from youbot_dynamics.identification.arm_friction._regressors import OF_BODY, inertial_parameters
from youbot_dynamics.identification.arm_friction._rows import JointRows
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Rows,
    Unknown,
    least_squares,
    undetermined,
)

_ROUNDS = 4
_PIECES = 8  # of each recording: every other one trains, the others are predicted, and the other way round
_LOAD = Unknown("load_coefficient", "1", unexcited="the gear never transmitted a torque")


@dataclass(frozen=True)
class LoadFriction:
    """Friction of one joint with a part that grows with the load."""

    coulomb: Estimate  # without load [N m]; used with the other or not at all
    load: Estimate  # load_coefficient [1]; identified only where it is positive and predicts better
    held_out: tuple[float, float]  # root mean square error [N m] of predicted torques, without and with it


def load_friction(found: ArmFriction, joint: str) -> LoadFriction:
    """Friction of a joint, by itself, with a part that grows with its load, of what `found` was identified from."""
    unknown, nan = Unknown("unloaded_coulomb", "N m", low=0.0), float("nan")
    rows = [row for row in found.rows if found.model.joint_names[row.joint] == joint]
    try:
        if not rows or found.fit is None or not found[joint]["coulomb"].identified:
            raise IdentificationError(joint, got="no Coulomb torque that is identified", expected="one")
        row = rows[0]
        fit, gear = _fitted(found, row, np.ones(len(row.time), dtype=bool))
        held_out = _held_out(found, row, gear)
    except IdentificationError as little:
        reason = f"{little.got}; needed: {little.expected}"
        return LoadFriction(undetermined(unknown, reason), undetermined(_LOAD, reason), (nan, nan))
    load, coulomb = fit.estimates[-1], fit.estimates[-2]
    if not load.interval[0] > 0.0:
        reason = f"friction need not grow with the load: {fit.values[-1]:.2g} +-{fit.reach(load.standard_error):.2g}"
    elif not held_out[1] < held_out[0]:
        reason = (
            f"torques that were left out are predicted to {held_out[1]:.3g} N m with it, to {held_out[0]:.3g} without"
        )
    else:
        return LoadFriction(coulomb, load, held_out)
    return LoadFriction(undetermined(unknown, reason), undetermined(_LOAD, reason), held_out)


def _columns(found: ArmFriction, row: JointRows) -> tuple[Vector, Vector]:
    """Columns (r, m) of the bodies that this joint feels, and (r, 4) of its friction, the Coulomb torque last."""
    body = row.body if found.base is None else row.body[:, found.base.columns]
    friction = row.friction()
    friction[:, -1] *= row.has_offset(body)
    return body, friction[:, ::-1]


def _fitted(found: ArmFriction, row: JointRows, used: NDArray[np.bool_]) -> tuple[Fit, Vector]:
    """Fit of the rows (r,) that are `used`, Coulomb torque and load coefficient last, and the gear's torque (r,)."""
    body, friction = _columns(found, row)
    names = [*(f"body_{k}" for k in range(body.shape[1])), "offset", "stribeck", "viscous"]
    unknowns = [*(Unknown(name, "") for name in names), Unknown("unloaded_coulomb", "N m", low=0.0), _LOAD]
    own, block = np.zeros(body.shape[1]), block_length([row], len(unknowns))
    for _ in range(_ROUNDS):
        gear = _gear_torque(found, row, body, own)
        column = np.sign(row.speed) * coulomb_under_load(0.0, 1.0, gear)
        table, target = np.column_stack([body, friction, column]), row.torque - row.known
        pieces = []
        for number in np.unique(row.recording[used]):
            of = used & (row.recording == number)
            pieces.append(Rows(row.time[of], table[of], target[of], None, int(number), block))
        fit = least_squares(pieces, unknowns)
        own = np.nan_to_num(fit.values[: body.shape[1]])
    return fit, gear


def _gear_torque(found: ArmFriction, row: JointRows, body: Vector, own: Vector) -> Vector:
    """Torque (r,) that the bodies ask of the gear, for values `own` (m,) of their columns."""
    tree, base = found.model.tree, found.base
    if tree is None or base is None:
        return row.known + body @ own
    parameters, bodies = inertial_parameters(tree), OF_BODY * len(tree.names)
    parameters[base.columns] += own
    return row.body[:, :bodies] @ parameters[:bodies]


def _held_out(found: ArmFriction, row: JointRows, gear: Vector) -> tuple[float, float]:
    """Root mean square error [N m] of the torques of left out pieces, predicted without and with the load."""
    piece = np.zeros(len(row.time), dtype=int)
    for number in np.unique(row.recording):
        of = row.recording == number
        begin, span = row.time[of].min(), max(float(np.ptp(row.time[of])), 1e-9)
        piece[of] = np.minimum((_PIECES * (row.time[of] - begin) / span).astype(int), _PIECES - 1)
    column = np.sign(row.speed) * coulomb_under_load(0.0, 1.0, gear)
    plain = np.column_stack(_columns(found, row))
    target, left = row.torque - row.known, []
    for table in (plain, np.column_stack([plain, column])):
        lengths = np.maximum(np.linalg.norm(table, axis=0), 1e-12)
        error = np.empty(len(target))
        for fold in (0, 1):
            train = piece % 2 == fold
            values = np.linalg.lstsq(table[train] / lengths, target[train], rcond=1e-6)[0]
            error[~train] = (target - table / lengths @ values)[~train]
        left.append(float(np.sqrt(np.mean(error**2))))
    return left[0], left[1]
