"""Newton-Euler and Featherstone's recursion once more, on 6 x 6 matrices, as a check on the package's scalar code.

Spatial vectors are [linear; angular] in the frame of their body. The printed variants of document 002 (A.22) and of its
formula for branched trees are switches of `featherstone`, for the tests that prove them wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from random_trees import POSITIONS, SPEEDS, Description
from scipy.spatial.transform import Rotation


def cross(a: np.ndarray) -> np.ndarray:
    """Matrix (3, 3) of the vector product with a."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def motion_cross(v: np.ndarray) -> np.ndarray:
    """Matrix (6, 6) of v x for motions; minus its transpose is v x* for forces."""
    zero = np.zeros((3, 3))
    return np.block([[cross(v[3:]), cross(v[:3])], [zero, cross(v[3:])]])


def spatial_inertia(mass: float, centre: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """(6, 6) about the frame's origin."""
    h = cross(centre)
    return np.block([[mass * np.eye(3), -mass * h], [mass * h, inertia - mass * h @ h]])


@dataclass
class Chain:
    """Bodies of a description at one state: transforms from the parent, selections, inertias, velocities."""

    description: Description
    q: np.ndarray
    v: np.ndarray
    from_parent: list[np.ndarray] = field(default_factory=list)
    selections: list[np.ndarray] = field(default_factory=list)
    inertias: list[np.ndarray] = field(default_factory=list)
    velocities: list[np.ndarray] = field(default_factory=list)
    products: list[np.ndarray] = field(default_factory=list)
    speeds: list[slice] = field(default_factory=list)

    def __post_init__(self) -> None:
        d, at_q, at_v = self.description, 0, 0
        for i, kind in enumerate(d.types):
            axis = d.axes[i] / np.linalg.norm(d.axes[i])
            joint = np.eye(4)
            mine = self.q[at_q : at_q + POSITIONS[kind]]
            selection = np.zeros((6, SPEEDS[kind]))
            if kind == "revolute":
                joint[:3, :3] = Rotation.from_rotvec(axis * mine[0]).as_matrix()
                selection[3:, 0] = axis
            elif kind == "prismatic":
                joint[:3, 3] = axis * mine[0]
                selection[:3, 0] = axis
            elif kind == "floating":
                joint[:3, :3], joint[:3, 3] = Rotation.from_quat(mine[3:]).as_matrix(), mine[:3]
                selection = np.eye(6)
            pose = d.placements[i] @ joint
            turn, place = pose[:3, :3], pose[:3, 3]
            transform = np.block([[turn.T, -turn.T @ cross(place)], [np.zeros((3, 3)), turn.T]])
            self.speeds.append(slice(at_v, at_v + SPEEDS[kind]))
            moved = selection @ self.v[self.speeds[i]]
            carried = self.velocities[d.parents[i]] if d.parents[i] >= 0 else np.zeros(6)
            self.from_parent.append(transform)
            self.selections.append(selection)
            self.inertias.append(spatial_inertia(d.masses[i], d.centres[i], d.inertias[i]))
            self.velocities.append(transform @ carried + moved)
            self.products.append(motion_cross(self.velocities[i]) @ moved)
            at_q, at_v = at_q + POSITIONS[kind], at_v + SPEEDS[kind]

    @property
    def world(self) -> np.ndarray:
        """Acceleration (6,) of the world that stands for gravity."""
        return np.concatenate([-self.description.gravity, np.zeros(3)])

    def accelerations(self, a: np.ndarray) -> list[np.ndarray]:
        """Spatial accelerations (6,) of the bodies, gravity in them, at joint accelerations a (nv,)."""
        found: list[np.ndarray] = []
        for i, parent in enumerate(self.description.parents):
            carried = found[parent] if parent >= 0 else self.world
            found.append(self.from_parent[i] @ carried + self.selections[i] @ a[self.speeds[i]] + self.products[i])
        return found

    def own_forces(self, external: np.ndarray) -> list[np.ndarray]:
        """F_i of the document: v x* I v and minus what acts from outside."""
        pairs = zip(self.inertias, self.velocities, external, strict=True)
        return [-motion_cross(v).T @ inertia @ v - wrench for inertia, v, wrench in pairs]

    def joint_wrenches(self, a: np.ndarray, external: np.ndarray) -> list[np.ndarray]:
        """Wrench (6,) that the joint of each body exerts on it at accelerations a (nv,): Newton and Euler."""
        total = [
            inertia @ motion + own
            for inertia, motion, own in zip(
                self.inertias, self.accelerations(a), self.own_forces(external), strict=True
            )
        ]
        for i in range(len(total) - 1, -1, -1):
            if self.description.parents[i] >= 0:
                total[self.description.parents[i]] = (
                    total[self.description.parents[i]] + self.from_parent[i].T @ total[i]
                )
        return total

    def inverse_dynamics(self, a: np.ndarray, external: np.ndarray) -> np.ndarray:
        """Joint forces (nv,)."""
        tau = self.description.rotors * a
        for selection, mine, wrench in zip(self.selections, self.speeds, self.joint_wrenches(a, external), strict=True):
            tau[mine] += selection.T @ wrench
        return tau

    def featherstone(
        self,
        tau: np.ndarray,
        external: np.ndarray,
        *,
        sign: float = 1.0,
        bias_once: bool = True,
        own_selection: bool = True,
        own_denominator: bool = True,
    ) -> np.ndarray:
        """Accelerations (nv,) of joints of one degree of freedom, by (A.20)-(A.22).

        Switches to what is printed: the sign of the term with tau; F_i inside the sum over the m children; one
        selection P_i for all children; Delta_{i+1} in the denominator of every child.
        """
        d = self.description
        n = len(d.parents)
        children = [[j for j in range(n) if d.parents[j] == i] for i in range(n)]
        inertia, bias = [m.copy() for m in self.inertias], self.own_forces(external)
        column = [s[:, 0] for s in self.selections]
        if not own_selection:
            for brood in children:
                for j in brood[1:]:
                    # The first child's axis, as the carrier sees it.
                    towards = self.from_parent[j] @ np.linalg.inv(self.from_parent[brood[0]])
                    column[j] = towards @ column[brood[0]]
        pivot, rest = np.zeros(n), np.zeros(n)
        for i in range(n - 1, -1, -1):
            for j in children[i]:
                gain = inertia[j] @ column[j]
                of = j if own_denominator else children[i][0]
                divisor = column[j] @ inertia[of] @ column[j] + d.rotors[j]
                left = inertia[j] - np.outer(gain, gain) / divisor
                through = bias[j] + left @ self.products[j] + sign * gain * rest[j] / divisor
                inertia[i] = inertia[i] + self.from_parent[j].T @ left @ self.from_parent[j]
                bias[i] = bias[i] + self.from_parent[j].T @ through
            if not bias_once and len(children[i]) > 1:
                bias[i] = bias[i] + (len(children[i]) - 1) * self.own_forces(external)[i]
            pivot[i] = column[i] @ inertia[i] @ column[i] + d.rotors[i]
            rest[i] = tau[i] - column[i] @ bias[i]
        a, motion = np.zeros(n), []
        for i in range(n):
            carried = motion[d.parents[i]] if d.parents[i] >= 0 else self.world
            start = self.from_parent[i] @ carried + self.products[i]
            a[i] = (rest[i] - inertia[i] @ column[i] @ start) / pivot[i]
            motion.append(start + column[i] * a[i])
        return a
