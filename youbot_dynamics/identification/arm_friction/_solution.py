"""Linear least squares of all joints of an arm together: its unknowns, and the bodies that the data determine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.identification.arm_friction._regressors import (
    UNKNOWN_ROTOR,
    BaseParameters,
    felt_parameters,
    uncertainty,
)
from youbot_dynamics.identification.arm_friction._rows import (
    ArmFrictionModel,
    JointRows,
    block_length,
    joint_regressors,
)
from youbot_dynamics.identification.least_squares import Fit, Rows, Unknown, least_squares

# Effect on the torques below which a combination of inertial parameters is not included in the first fit [N m].
_FIRST_EFFECT = 0.005
# Smallest ratio of the effect of a combination to the residual's standard error over all rows. Combinations that are
# not fitted keep their nominal values, which biases the friction of a small joint.
_LEAST_SIGNIFICANCE = 5.0
_REFERENCE_JOINT = "the scales of the other joints are relative to this one, or these data do not determine its scale"


def determined_bodies(tree: Tree, rows: Sequence[JointRows]) -> BaseParameters:
    """Combinations of inertial parameters with an effect that exceeds the unexplained torque of the rows."""
    preliminary = felt_parameters(tree, np.concatenate([row.body for row in rows]), _FIRST_EFFECT)
    weighted = []
    for row in rows:
        columns = np.hstack([row.body[:, preliminary.columns], row.friction()])
        weighted.append(_noise_weight(columns, row.torque - row.known) * row.body)
    table = np.concatenate(weighted)
    return felt_parameters(tree, table, _LEAST_SIGNIFICANCE / math.sqrt(len(table)))


def _unknowns(model: ArmFrictionModel, names: Sequence[str], base: BaseParameters | None) -> list[Unknown]:
    unknowns = []
    if base is not None and model.tree is not None:
        known = uncertainty(model.tree)
        known[-model.tree.nv :][model.tree.layout.rotor_inertias == 0.0] /= UNKNOWN_ROTOR  # the inertia of the links
        for name, unit, size in zip(base.names, base.units, known[base.columns], strict=True):
            unknowns.append(Unknown(f"{name}_change", unit, resolution=float(size)))
        unknowns += [Unknown(f"{name}_scale", "1", resolution=0.05, unexcited=_REFERENCE_JOINT) for name in names]
        unknowns.append(Unknown("effort_delay", "s", resolution=0.01, unexcited="these data do not determine it"))
    else:
        for name in names:
            unknowns.append(Unknown(f"{name}_inertia", "kg m2", low=0.0, unexcited="the joint never changed its speed"))
            if model.weighed:
                unknowns += [Unknown(f"{name}_weight_{part}", "N m", resolution=0.02) for part in ("sin", "cos")]
    for name in names:
        unknowns += [
            Unknown(f"{name}_coulomb", "N m", low=0.0, resolution=0.01),
            Unknown(f"{name}_viscous", "N m s/rad", low=0.0, resolution=0.02),
            Unknown(f"{name}_stribeck", "N m", low=0.0, resolution=0.02, unexcited="no Stribeck speed was given"),
            Unknown(f"{name}_offset", "N m", resolution=0.05, unexcited="weight or friction hide it in these data"),
            Unknown(f"{name}_bend", "N m", unexcited="no Stribeck speed was given"),
        ]
    return unknowns


def joint_solution(
    rows: Sequence[JointRows],
    model: ArmFrictionModel,
    base: BaseParameters | None,
    offsets: Sequence[bool],
    scaled: Sequence[bool],
    powers: Sequence[Vector] = (),
) -> Fit:
    """One fit of all joints together, since they share the bodies; `powers` (r,) is one more column of each joint."""
    names = [model.joint_names[row.joint] for row in rows]
    unknowns = _unknowns(model, names, base) + [Unknown(f"{name}_power", "") for name in names[: len(powers)]]
    block = block_length(rows, len(unknowns))
    pieces = []
    for k, row in enumerate(rows):
        table, target = joint_regressors(rows, k, row, base, offsets, scaled), row.torque - row.known
        weight = _noise_weight(table, target)
        if powers:
            table = np.hstack([table, np.outer(powers[k], np.arange(len(powers)) == k)])
        for number in np.unique(row.recording):
            selected = row.recording == number
            pieces.append(
                Rows(row.time[selected], weight * table[selected], weight * target[selected], None, int(number), block)
            )
    return least_squares(pieces, unknowns)


def _noise_weight(table: Vector, target: Vector) -> float:
    """1 / residual of a joint fitted alone [1/(N m)], so that a large joint does not dominate a small one."""
    lengths = np.linalg.norm(table, axis=0)
    scaled = table[:, lengths > 0.0] / lengths[lengths > 0.0]
    residual = target - scaled @ np.linalg.lstsq(scaled, target, rcond=1e-6)[0]
    return 1.0 / max(float(np.sqrt(np.mean(residual**2))), 1e-3)
