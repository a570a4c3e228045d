"""Equations of all joints together, since they share the bodies: their unknowns, their columns and one solution."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.identification.arm_friction._regressors import (
    UNKNOWN_ROTOR,
    BaseParameters,
    felt_parameters,
    uncertainty,
)
from youbot_dynamics.identification.arm_friction._rows import PARTS, ArmFrictionModel, JointRows, unexplained
from youbot_dynamics.identification.least_squares import NEGLIGIBLE, Fit, Unknown, least_squares

# Blocks of the scatter: longest and shortest length [s], and the wanted excess of their number over the unknowns.
_BLOCK, _SHORTEST_BLOCK, _SPARE_BLOCKS = 1.0, 0.2, 12
# Effect on the torques below which a combination of inertial parameters is not included in the first fit [N m].
_FIRST_EFFECT = 0.005
# Smallest ratio of the effect of a combination to the residual's standard error over all rows. Combinations that are
# not fitted keep their nominal values, which biases the friction of a small joint.
_LEAST_SIGNIFICANCE = 3.0
_HIDDEN = "weight or friction hide it in these data"
_NO_STRIBECK = "no Stribeck speed was given"
_REFERENCE_JOINT = "the scales of the other joints are relative to this one, or these data do not determine its scale"


@dataclass(frozen=True, eq=False)
class ArmEquations:
    """Equations of k joints; unknowns are bodies, then with a tree readings, then the friction of each joint."""

    model: ArmFrictionModel
    rows: tuple[JointRows, ...]  # [k]
    # Combinations of inertial parameters that the data determine, as differences from the nominal tree; None without
    # a tree: inertia and weight of each joint
    base: BaseParameters | None = None
    # Whether the efforts of each joint have a scale, and whether they have a delay (k + 1); empty without a tree
    scaled: tuple[bool, ...] = ()

    @property
    def bodies(self) -> slice:
        """Places of the unknowns of the bodies."""
        return slice(0, len(self.base.columns) if self.base else sum(row.body.shape[1] for row in self.rows))

    @property
    def readings(self) -> slice:
        """Places of the scale of each joint's efforts less 1, then of their delay [s]."""
        return slice(self.bodies.stop, self.bodies.stop + len(self.scaled))

    def friction(self, k: int) -> slice:
        """Places of PARTS of the k-th joint."""
        first = self.readings.stop + len(PARTS) * k
        return slice(first, first + len(PARTS))

    def table(self, k: int, row: JointRows | None = None) -> Vector:
        """All regressors (r, p) of the rows of the k-th joint, or of others of it.

        The efforts of a joint are currents times a torque constant that is some percent off, so bodies that act on
        several joints have a different scale in each; the joint with the largest torques is the reference. A delay of
        the efforts appears as minus the rate of the torque; where gravity grows with the angle, that looks like viscous
        friction.
        """
        row = row or self.rows[k]
        if self.base is None:
            parts = [self._of_joint(k, row.bodies())]
        else:
            late = -row.slew * self.scaled[-1]
            parts = [row.bodies(), self._of_joint(k, self.scaled[k] * row.load[:, None]), late[:, None]]
        return np.hstack([*parts, self._of_joint(k, row.friction())])

    def _of_joint(self, k: int, columns: Vector) -> Vector:
        """Columns (r, c) of the k-th joint among those (r, c k) of all joints, which are 0."""
        count = columns.shape[1]
        wide = np.zeros((len(columns), count * len(self.rows)))
        wide[:, count * k : count * (k + 1)] = columns
        return wide

    def solution(self, further: Sequence[Vector] = ()) -> Fit:
        """One fit of all joints; `further` (r,) is one more column of each joint, with the unknown `further_term`.

        Raises:
            IdentificationError: too few blocks of time.
        """
        unknowns = [*self._unknowns(), *(Unknown(further_term(row.name), "") for row in self.rows if further)]
        block = block_length(self.rows, len(unknowns))
        pieces = []
        for k, row in enumerate(self.rows):
            table, target = self.table(k), row.torque - row.known
            weight = _noise_weight(table, target)
            if further:
                table = np.hstack([table, self._of_joint(k, further[k][:, None])])
            pieces += row.pieces(weight * table, weight * target, block)
        return least_squares(pieces, unknowns)

    def _unknowns(self) -> list[Unknown]:
        names, unknowns, tree = [row.name for row in self.rows], list[Unknown](), self.model.tree
        if self.base is not None and tree is not None:
            known = uncertainty(tree)
            known[-tree.nv :][tree.layout.rotor_inertias == 0.0] /= UNKNOWN_ROTOR  # the inertia of the links
            sizes = zip(self.base.names, self.base.units, known[self.base.columns], strict=True)
            unknowns += [Unknown(f"{name}_change", unit, resolution=float(size)) for name, unit, size in sizes]
            unknowns += [
                Unknown(f"{name}_scale", "1", resolution=NEGLIGIBLE, unexcited=_REFERENCE_JOINT) for name in names
            ]
            unknowns.append(Unknown("effort_delay", "s", unexcited="these data do not determine it"))
        for name in names if self.base is None else ():
            unknowns.append(Unknown(f"{name}_inertia", "kg m2", low=0.0, unexcited="the joint never changed its speed"))
            weight = f"{name}_weight"
            parts = ("sin", "cos") if self.model.weighed else ()
            unknowns += [Unknown(f"{weight}_{part}", "N m", resolution=0.02, whole=weight) for part in parts]
        for name in names:
            unknowns += [
                Unknown(f"{name}_coulomb", "N m", low=0.0, resolution=0.01, whole=name),
                Unknown(f"{name}_viscous", "N m s/rad", low=0.0, resolution=0.02, whole=name),
                Unknown(f"{name}_stribeck", "N m", low=0.0, resolution=0.02, unexcited=_NO_STRIBECK, whole=name),
                Unknown(f"{name}_offset", "N m", resolution=0.05, unexcited=_HIDDEN, whole=name),
                Unknown(f"{name}_bend", "N m", unexcited=_NO_STRIBECK),
            ]
        return unknowns

    def linearised(self, fit: Fit, scaled: tuple[bool, ...]) -> ArmEquations:
        """The same about the solution of a fit, with other scales: a scale times a change of bodies is not linear."""
        scales = np.nan_to_num([estimate.value for estimate in fit.estimates[self.readings]]) * scaled
        values = np.nan_to_num(fit.values)
        rows = tuple(row.linearised(values, scale) for row, scale in zip(self.rows, scales.tolist(), strict=False))
        return dataclasses.replace(self, rows=rows, scaled=scaled)


def further_term(joint: str) -> str:
    """Name of the unknown of one more column of a joint, see `ArmEquations.solution`."""
    return f"{joint}_further"


def block_length(rows: Sequence[JointRows], unknowns: int) -> float:
    """Duration of the blocks [s]: 1 s, or shorter if a recording is too short for enough blocks."""
    block = _BLOCK
    time, recording = (np.concatenate([getattr(row, name) for row in rows]) for name in ("time", "recording"))
    while block > _SHORTEST_BLOCK:
        if len(np.unique(recording + 1j * (time // block))) >= unknowns + _SPARE_BLOCKS:  # pairs of the two
            break
        block *= 0.8
    return max(block, _SHORTEST_BLOCK)


def arm_equations(model: ArmFrictionModel, rows: Sequence[JointRows]) -> ArmEquations:
    """Equations of the joints with these rows; with a tree, scales of the efforts and their delay are unknown."""
    if model.tree is None:
        return ArmEquations(model, tuple(row.with_free(row.free) for row in rows))
    base = _determined_bodies(model.tree, rows)
    return ArmEquations(model, tuple(row.with_free(base.columns) for row in rows), base, (True,) * (len(rows) + 1))


def _determined_bodies(tree: Tree, rows: Sequence[JointRows]) -> BaseParameters:
    """Combinations of inertial parameters with an effect that exceeds the unexplained torque of the rows."""
    preliminary = felt_parameters(tree, np.concatenate([row.body for row in rows]), _FIRST_EFFECT)
    weighted = []
    for row in rows:
        columns = np.hstack([row.body[:, preliminary.columns], row.friction()])
        weighted.append(_noise_weight(columns, row.torque - row.known) * row.body)
    table = np.concatenate(weighted)
    return felt_parameters(tree, table, _LEAST_SIGNIFICANCE / math.sqrt(len(table)))


def _noise_weight(table: Vector, target: Vector) -> float:
    """1 / residual of a joint fitted alone [1/(N m)], so that a large joint does not dominate a small one."""
    return 1.0 / max(float(np.sqrt(np.mean(unexplained(table, target, 1e-6) ** 2))), 1e-3)
