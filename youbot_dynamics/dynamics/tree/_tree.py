"""Dynamics of any open tree of rigid bodies.

Each body's frame is its joint's frame; spatial vectors are [linear; angular]. A fixed joint has no element in q and v,
a revolute or prismatic joint one. A floating joint has [x y z, quaternion x y z w] in q and [linear; angular] in the
body's own frame in v.
Source: Featherstone 2008; document 002 A.2, A.3, A.5, systems 18-23, 26.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, excerpt, read_only, scalar
from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.tree import _rows as kernels
from youbot_dynamics.dynamics.tree._bodies import (
    Articulation,
    Bodies,
    articulation_of,
    body_jacobian,
    body_poses,
    step_positions,
)
from youbot_dynamics.dynamics.tree._layout import (
    FIXED,
    FLOATING,
    POSITIONS_OF,
    PRISMATIC,
    Layout,
    Parts,
    make_layout,
    parents_first,
)
from youbot_dynamics.dynamics.tree._rows import index_of, one_state, state_rows
from youbot_dynamics.dynamics.tree._straight_line import StraightLine, find_straight_line
from youbot_dynamics.dynamics.tree._urdf import Limits, read_urdf
from youbot_dynamics.errors import InputError, ModelError


@dataclass(frozen=True, eq=False)
class Tree(MadeOfArguments):
    """n bodies, each carried by a joint; make one with `from_arrays` or `from_urdf`.

    Dynamics take one state, q (nq,) and v (nv,), or one state a row, q (t, nq) and v (t, nv); results have the same
    form. Accelerations `a` and torques `tau` are shaped as v. `external` (n, 6) or (t, n, 6) is a wrench on each body,
    fixed in its frame, [force; moment]. All methods raise InputError for a wrong shape, NaN, infinity, or numbers
    beyond 1e100, whose products overflow. Bodies are given by index or by name.

    Args:
        names: [n] of the bodies.
        joint_names: [n] of the joints that carry them.
        layout: the bodies as arrays.
        limits: [n] of the joints.
        damping: [n] viscous damping of the URDF; not applied, friction is a separate model.
        friction: [n] Coulomb friction of the URDF; not applied.

    Attributes:
        nq: length of q [rad, m].
        nv: length of v [rad/s, m/s] and of generalised forces [N m, N].

    Example:
        >>> axis, here, rod = [[0.0, 1.0, 0.0]], np.eye(4)[None], [0.01 * np.eye(3)]
        >>> pendulum = yd.Tree.from_arrays([-1], ["revolute"], axis, here, [2.0], [[0.0, 0.0, -0.5]], rod)
        >>> pendulum.forward_dynamics([np.pi / 2], [0.0], [0.0]).round(3)
        array([-19.235])
    """

    names: tuple[str, ...]
    joint_names: tuple[str, ...]
    layout: Layout
    limits: tuple[Limits, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    nq: int = field(init=False)
    nv: int = field(init=False)
    _program: StraightLine | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the arrays read-only, count the joints and look for straight-line code of this tree."""
        for values in self.layout:
            values.setflags(write=False)
        object.__setattr__(self, "nq", sum(POSITIONS_OF[int(kind)] for kind in self.layout.kinds))
        object.__setattr__(self, "nv", len(self.layout.subspace))
        object.__setattr__(self, "_program", find_straight_line(self.layout))

    @classmethod
    def from_arrays(
        cls,
        parents: Sequence[int],
        joint_types: Sequence[str],
        axes: ArrayLike,
        placements: ArrayLike,
        masses: ArrayLike,
        centres_of_mass: ArrayLike,
        inertias: ArrayLike,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        *,
        rotor_inertias: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Tree:
        """Tree of n bodies, in any order.

        Args:
            parents: [n], -1 for the world.
            joint_types: [n], "revolute", "prismatic", "fixed" or "floating".
            axes: (n, 3) of the joints, in the body's frame; any length but 0 for a joint with an axis.
            placements: (n, 4, 4) joint frame in the parent's joint frame, at q = 0.
            masses: (n,) [kg].
            centres_of_mass: (n, 3) in the body's joint frame [m].
            inertias: (n, 3, 3) about the centre of mass, in the axes of the joint frame [kg m2].
            gravity: (3,) in the world [m/s2].
            rotor_inertias: (nv,) inertia of the motors reflected to the joints, N^2 J [kg m2]; none by default.
            names: [n] of the bodies, "body_0" and so on by default.

        Raises:
            ModelError: a loop, an unknown joint type, an invalid axis or rotation, or an inertia that no body can have.
            InputError: a wrong shape or a number that is not finite.
        """
        for what, given in (("parents", parents), ("joint_types", joint_types)):
            if not isinstance(given, Sized):
                raise InputError(what, got=excerpt(given), expected="a list with one for each body")
        n = len(parents)
        named = tuple(names) if names is not None else tuple(f"body_{i}" for i in range(n))
        if len(named) != n or len(joint_types) != n:
            counts = f"{n}, {len(joint_types)}, {len(named)} of them"
            raise InputError("parents, joint_types, names", got=counts, expected="as many each")
        frames, bodies = (joint_types, axes, placements), (masses, centres_of_mass, inertias)
        layout = make_layout(Parts(named, parents, *frames, *bodies, gravity, rotor_inertias))
        return cls(named, named, layout, (Limits(),) * n, (0.0,) * n, (0.0,) * n)

    @classmethod
    def from_urdf(
        cls,
        path_or_text: str | Path,
        floating_base: bool = False,
        *,
        root: str | None = None,
        tip: str | None = None,
        locked: Sequence[str] = (),
        rotor_inertias: ArrayLike | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> Tree:
        """Tree of a URDF file or text; body 0 is its root link, fixed to the world or floating.

        Args:
            path_or_text: the file, or its text (starting with `<`).
            floating_base: whether the root link floats.
            root: link to start from; links that it does not carry are left out. The URDF's root by default.
            tip: last link of an arm; joints that are not between root and tip are fixed at 0. None by default.
            locked: names of joints to fix at 0.
            rotor_inertias: (nv,) inertia of the motors reflected to the joints [kg m2]; none by default.
            gravity: (3,) in the frame of the world [m/s2].

        Raises:
            ModelError: a file that is not a URDF, a loop, an unknown joint type, link or joint, a joint that mimics
                another and is not locked, invalid limits, damping or friction, or an inertia that no body can have.
        """
        chosen = read_urdf(path_or_text, root, locked, tip=tip)
        index = {link.name: i for i, link in enumerate(chosen)}
        types = ["floating" if floating_base else "fixed", *(link.joint_type for link in chosen[1:])]
        parts = Parts(
            list(index),
            [index.get(link.parent, -1) if i else -1 for i, link in enumerate(chosen)],
            types,
            np.array([link.axis for link in chosen]),
            np.array([link.placement if i else np.eye(4) for i, link in enumerate(chosen)]),
            np.array([link.mass for link in chosen]),
            np.array([link.centre_of_mass for link in chosen]),
            np.array([link.inertia for link in chosen]),
            gravity,
            rotor_inertias,
        )
        return cls(
            tuple(index),
            tuple(link.joint for link in chosen),
            make_layout(parts),
            tuple(link.limits for link in chosen),
            tuple(link.damping for link in chosen),
            tuple(link.friction for link in chosen),
        )

    @property
    def slides(self) -> tuple[bool, ...]:
        """Whether the joint of each body is prismatic."""
        return tuple(kind == PRISMATIC for kind in self.layout.kinds)

    @property
    def is_written_out(self) -> bool:
        """Whether straight-line code exists for this tree."""
        return self._program is not None

    def __repr__(self) -> str:
        """Show the numbers of bodies and speeds."""
        return f"Tree({len(self.names)} bodies, nq={self.nq}, nv={self.nv})"

    def body(self, body: int | str) -> int:
        """Index of a body given by index or name; InputError for an unknown one."""
        return index_of("body", body, self.names)

    def slots(self, joint: int | str) -> tuple[slice, slice]:
        """Slices of a joint, given by index or name, in q and in v; both are empty for a fixed one.

        Raises:
            InputError: an unknown joint.
        """
        i = index_of("joint", joint, self.joint_names)
        q, v = int(self.layout.q_start[i]), int(self.layout.v_start[i])
        return slice(q, q + POSITIONS_OF[int(self.layout.kinds[i])]), slice(v, v + int(self.layout.v_count[i]))

    def neutral(self) -> Vector:
        """Positions (nq,) with all joints at 0 and floating bodies at the world's origin without rotation."""
        q = np.zeros(self.nq)
        q[self.layout.q_start[self.layout.kinds == FLOATING] + 6] = 1.0  # w of the quaternion
        return q

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None) -> Vector:
        """Joint torques and forces for accelerations: tau = M(q) a + bias_forces(q, v) - J' external.

        This is the recursive Newton-Euler algorithm; (nv,) or (t, nv).
        Source: systems 20, 26; D-002-4.
        """
        program = self._program if external is None else None
        if program is not None and (answer := program.at("inverse_dynamics", q, v, a)) is not None:
            return answer
        positions, (speeds, accelerations), wrenches, single = self._states(q, {"v": v, "a": a}, external)
        tau = np.empty_like(speeds)
        if program is not None:
            program.rows("inverse_dynamics")(positions, speeds, accelerations, program.parameters, tau)
        else:
            kernels.inverse_dynamics_rows(self.layout, positions, speeds, accelerations, wrenches, tau)
        return tau[0] if single else tau

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None) -> Vector:
        """Accelerations (nv,) or (t, nv) under joint torques, by the articulated-body algorithm.

        Raises:
            ModelError: a joint has no inertia to accelerate; the message names its body.

        Source: Featherstone 2008, chapter 7; document 002 (A.20)-(A.22); D-002-6, D-002-7.
        """
        program = self._program if external is None else None
        if program is not None and (answer := program.at("forward_dynamics", q, v, tau)) is not None:
            return answer
        positions, (speeds, torques), wrenches, single = self._states(q, {"v": v, "tau": tau}, external)
        out = np.empty_like(speeds)
        if program is not None:
            program.rows("forward_dynamics")(positions, speeds, torques, program.parameters, out)
        else:
            self._accelerate(positions, speeds, torques, wrenches, out)
        return out[0] if single else out

    def articulation(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None
    ) -> Articulation:
        """Articulated inertias and biases of all bodies at one state q (nq,), v (nv,), tau (nv,).

        Source: document 002 (A.12), (A.21), (A.22).
        """
        position, (speed, torque) = self._state(q, {"v": v, "tau": tau})
        wrenches = np.zeros((len(self.names), 6))
        if external is not None:
            wrenches = array("external", external, wrenches.shape)
        inertias, biases, stuck = articulation_of(self.layout, position, speed, torque, wrenches)
        self._refuse_stuck(stuck)
        return Articulation(inertias, biases)

    def mass_matrix(self, q: ArrayLike) -> Vector:
        """Mass matrix (nv, nv) or (t, nv, nv) of q (nq,) or (t, nq), with rotors. Source: systems 19, 26; D-002-3."""
        if self._program is not None and (answer := self._program.mass_matrix(q)) is not None:
            return answer
        positions, _, _, single = self._states(q, {}, None)
        matrix = np.zeros((len(positions), self.nv, self.nv))
        if self._program is not None:
            self._program.rows("mass_matrix")(positions, self._program.parameters, matrix)
        else:
            kernels.mass_matrix_rows(self.layout, positions, matrix)
        return matrix[0] if single else matrix

    def bias_forces(self, q: ArrayLike, v: ArrayLike) -> Vector:
        """Coriolis, centripetal and gravity forces (nv,) or (t, nv): inverse dynamics at a = 0. Source: system 20."""
        return self.inverse_dynamics(q, v, np.zeros(self.nv))

    def gravity_forces(self, q: ArrayLike) -> Vector:
        """Joint forces (nv,) or (t, nv) that hold the tree at rest against gravity. Source: system 20."""
        return self.inverse_dynamics(q, np.zeros(self.nv), np.zeros(self.nv))

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external: ArrayLike | None = None
    ) -> tuple[Vector, Vector, Vector]:
        """Exact d tau/d q, d tau/d v, d tau/d a = M, each (nv, nv) or (t, nv, nv).

        For the formulas see `_sweeps`. Derivatives by q of a floating joint are along the motions [linear;
        angular] of its body.
        Source: Singh, Russell, Wensing 2022; system 8; D-001-2.
        """
        positions, (speeds, accelerations), wrenches, single = self._states(q, {"v": v, "a": a}, external)
        dq, dv, matrix = (np.zeros((len(positions), self.nv, self.nv)) for _ in range(3))
        kernels.derivative_rows(self.layout, positions, speeds, accelerations, wrenches, dq, dv, matrix)
        return (dq[0], dv[0], matrix[0]) if single else (dq, dv, matrix)

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external: ArrayLike | None = None
    ) -> tuple[Vector, Vector, Vector]:
        """Exact d qdd/d q, d qdd/d v, d qdd/d tau, each (nv, nv) or (t, nv, nv).

        d qdd/d q = -M^-1 d ID/d q at qdd, d qdd/d v = -M^-1 d ID/d v, d qdd/d tau = M^-1. Derivatives by q of a
        floating joint are along the motions [linear; angular] of its body.

        Raises:
            ModelError: a joint has no inertia to accelerate; the message names its body.

        Source: system 8; D-001-2.
        """
        program = self._program if external is None else None
        if program is not None and (answer := program.at("derivatives", q, v, tau)) is not None:
            return answer[0], answer[1], answer[2]
        positions, (speeds, torques), wrenches, single = self._states(q, {"v": v, "tau": tau}, external)
        slopes = np.zeros((3, len(positions), self.nv, self.nv))
        dq, dv, matrix = slopes
        a = np.empty_like(speeds)
        if program is not None:
            program.rows("derivative")(positions, speeds, torques, program.parameters, a, slopes)
        else:
            self._accelerate(positions, speeds, torques, wrenches, a)
            kernels.derivative_rows(self.layout, positions, speeds, read_only(a), wrenches, dq, dv, matrix)
            if not kernels.solve_derivative_rows(dq, dv, matrix):
                raise ModelError(
                    "mass matrix",
                    got="not positive definite after rounding",
                    expected="bodies of comparable inertia, not far from the world's origin",
                )
        return (dq[0], dv[0], matrix[0]) if single else (dq, dv, matrix)

    def jacobian(self, q: ArrayLike, body: int | str) -> Vector:
        """Jacobian (6, nv) of a body in its frame at q (nq,): J v is its velocity [linear; angular].

        Source: system 26.
        """
        position, _ = self._state(q, {})
        return body_jacobian(self.layout, position, self.body(body))

    def propagate_force(self, q: ArrayLike, body: int | str, wrench: ArrayLike) -> Vector:
        """Joint forces (nv,) equivalent to a wrench on a body: +J' wrench.

        To hold the body against an external wrench the joints need the negative of it plus gravity_forces.

        Args:
            q: (nq,).
            body: index or name.
            wrench: (6,) [force; moment] in the body's frame.

        Source: document 002 A.5; D-002-10.
        """
        return self.jacobian(q, body).T @ array("wrench", wrench, (6,))

    def poses(self, q: ArrayLike) -> Vector:
        """Poses (n, 4, 4) of all bodies in the world at q (nq,). Source: system 17."""
        position, _ = self._state(q, {})
        return body_poses(self.layout, position)

    def bodies(self, q: ArrayLike, v: ArrayLike | None = None) -> Bodies:
        """Centre of mass, momentum and energies at q (nq,) and v (nv,), at rest by default. Source: systems 18, 20."""
        position, (speed,) = self._state(q, {"v": np.zeros(self.nv) if v is None else v})
        return Bodies.at(self.layout, position, speed)

    def step(self, q: ArrayLike, v: ArrayLike, dt: float) -> Vector:
        """Positions (nq,) from q (nq,) after `dt` [s] at constant v (nv,), exact on SE(3). Source: system 16."""
        position, (speed,) = self._state(q, {"v": v})
        return step_positions(self.layout, position, speed, scalar("dt", dt))

    def _accelerate(self, q: Vector, v: Vector, tau: Vector, external: Vector, out: Vector) -> None:
        # A copy, because the kernels need writable rotors, such as the steps of the arm pass.
        rotors = self.layout.rotor_inertias.copy()
        self._refuse_stuck(kernels.forward_dynamics_rows(self.layout, rotors, q, v, tau, external, out))

    def _refuse_stuck(self, body: int) -> None:
        if body >= 0:
            raise ModelError(
                f"joint of body '{self.names[body]}'",
                got="an inertia no larger than rounding errors, as if all mass that it carries were on its axis",
                expected="an inertia, or a rotor inertia",
            )

    def _state(self, q: ArrayLike, others: dict[str, ArrayLike]) -> tuple[Vector, list[Vector]]:
        return one_state(self.names, self.layout, (q, self.nq), {k: (x, self.nv) for k, x in others.items()})

    def _states(
        self, q: ArrayLike, others: dict[str, ArrayLike], external: ArrayLike | None
    ) -> tuple[Vector, list[Vector], Vector, bool]:
        return state_rows(
            self.names, self.layout, {"q": (q, self.nq)}, {k: (x, self.nv) for k, x in others.items()}, external
        )


def _carriers(layout: Layout) -> tuple[list[int], Vector, list[int], Vector]:
    """The moving body to which each of n bodies is fixed, -1 for the world, and its pose (n, 4, 4) in that.

    Then the carriers of the parents of moving bodies, and the placements (n, 4, 4) of their joints in these.
    """
    n = len(layout.parents)
    pose, placements = np.tile(np.eye(4), (n, 1, 1)), np.tile(np.eye(4), (n, 1, 1))
    placements[:, :3, :3], placements[:, :3, 3] = layout.rotations, layout.positions
    carrier, parents = [-1] * n, [int(parent) for parent in layout.parents]
    for i in layout.order:
        parent, fixed = int(layout.parents[i]), layout.kinds[i] == FIXED
        carrier[i] = int(i) if not fixed else carrier[parent] if parent >= 0 else -1
        if fixed:
            pose[i] = (pose[parent] if parent >= 0 else np.eye(4)) @ placements[i]
        elif parent >= 0:
            parents[i] = carrier[parent]
            placements[i] = pose[parent] @ placements[i]
    return carrier, pose, parents, placements


def _seen_from(pose: Vector, layout: Layout, i: int) -> tuple[float, Vector, Vector]:
    """Mass, first moment (3,) and inertia (3, 3) of body i about a frame in which its own has the pose (4, 4)."""
    rotation, mass, centre = pose[:3, :3], float(layout.masses[i]), np.zeros(3)
    if mass > 0.0:
        centre = layout.first_moments[i] / mass
    central = layout.inertias[i] - point_inertia(mass, centre)
    moved = rotation @ centre + pose[:3, 3]
    return mass, mass * moved, rotation @ central @ rotation.T + point_inertia(mass, moved)


def without_fixed_joints(tree: Tree) -> Tree:
    """Tree in which every body has a moving joint; q and v keep their order.

    A body fixed to a moving one is merged into it by the parallel-axis theorem. A body fixed to the world is removed;
    the joints that it carries keep their poses. Accelerations and joint forces stay the same.

    Raises:
        ModelError: no joint moves.
    """
    layout = tree.layout
    n = len(layout.parents)
    kept = [i for i in range(n) if layout.kinds[i] != FIXED]
    if not kept:
        raise ModelError("tree", got="only fixed joints", expected="at least one that moves")
    carriers, poses, parents, placements = _carriers(layout)
    masses, first_moments, inertias = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))
    for i in layout.order:
        if (carrier := carriers[i]) >= 0:
            mass, first_moment, inertia = _seen_from(poses[i], layout, i)
            masses[carrier] += mass
            first_moments[carrier] += first_moment
            inertias[carrier] += inertia
    index = {-1: -1} | {old: new for new, old in enumerate(kept)}
    new_parents = np.array([index[parents[i]] for i in kept], dtype=np.int64)
    names = tuple(tree.names[i] for i in kept)
    merged = layout._replace(
        order=parents_first([int(parent) for parent in new_parents], names),
        parents=new_parents,
        kinds=layout.kinds[kept],
        axes=layout.axes[kept],
        rotations=np.ascontiguousarray(placements[kept, :3, :3]),
        positions=np.ascontiguousarray(placements[kept, :3, 3]),
        q_start=layout.q_start[kept],
        v_start=layout.v_start[kept],
        v_count=layout.v_count[kept],
        masses=masses[kept],
        first_moments=first_moments[kept],
        inertias=inertias[kept],
    )
    for each in merged:
        each.setflags(write=False)
    return Tree(
        names,
        tuple(tree.joint_names[i] for i in kept),
        merged,
        tuple(tree.limits[i] for i in kept),
        tuple(tree.damping[i] for i in kept),
        tuple(tree.friction[i] for i in kept),
    )
