"""A tree of bodies as arrays, with checks of its input."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Indices, Vector, array
from youbot_dynamics.dynamics.rigid_body import check_inertia, point_inertia
from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics.rotations import check_rotation

FIXED, REVOLUTE, PRISMATIC, FLOATING = 0, 1, 2, 3
JOINT_TYPES = {"fixed": FIXED, "revolute": REVOLUTE, "prismatic": PRISMATIC, "floating": FLOATING}
# Number of elements of each joint in q and in v; the orientation of a floating joint is a quaternion (x, y, z, w).
POSITIONS_OF = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, FLOATING: 7}
SPEEDS_OF = {FIXED: 0, REVOLUTE: 1, PRISMATIC: 1, FLOATING: 6}
_FINITE = sys.float_info.max  # an axis may have any length; of a body the products count, which are checked below


class Layout(NamedTuple):
    """n bodies, each with the joint that carries it; nv speeds in all. In m, kg, rad.

    Source: systems 18, 22.
    """

    order: Indices  # (n,) bodies with every parent before its children
    parents: Indices  # (n,) parent of each body, -1 for the world
    kinds: Indices  # (n,) FIXED, REVOLUTE, PRISMATIC or FLOATING
    axes: Vector  # (n, 3) unit axis of the joint in the body's frame; unused for joints without an axis
    rotations: Vector  # (n, 3, 3) joint frame at q = 0 to the parent's frame
    positions: Vector  # (n, 3) origin of the joint frame in the parent's frame
    q_start: Indices  # (n,) first element of the joint in q
    v_start: Indices  # (n,) first element of the joint in v
    v_count: Indices  # (n,) number of speeds of the joint
    subspace: Vector  # (nv, 6) motion [linear; angular] of the body, in its frame, for each unit speed
    masses: Vector  # (n,)
    first_moments: Vector  # (n, 3) mass times centre of mass, in the body's frame
    inertias: Vector  # (n, 3, 3) about the origin of the body's frame
    # (nv,) inertia of the motor reflected to the joint, added to the diagonal of the mass matrix
    rotor_inertias: Vector
    gravity: Vector  # (3,) in the world [m/s2]


def parents_first(parents: Sequence[int], names: Sequence[str]) -> Indices:
    """Order (n,) of the bodies in which every parent comes before its children; parents [n], -1 for the world.

    Raises:
        ModelError: a parent that does not exist, or a loop; the message names its bodies.
    """
    n = len(parents)
    for i, parent in enumerate(parents):
        if not isinstance(parent, (int, np.integer)) or not -1 <= parent < n:
            raise ModelError(
                f"parent of body '{names[i]}'", got=str(parent), expected=f"-1 for the world or 0 to {n - 1}"
            )
    order: list[int] = []
    state = [0] * n  # 1 while on the path to the root, 2 when placed
    for start in range(n):
        path = []
        i = start
        while i >= 0 and state[i] == 0:
            state[i] = 1
            path.append(i)
            i = parents[i]
        if i >= 0 and state[i] == 1:
            loop = [names[k] for k in path[path.index(i) :]]
            raise ModelError(
                f"tree at body '{names[i]}'",
                got=f"a loop: {' <- '.join([*loop, loop[0]])}",
                expected="an open tree",
                remedy="cut the loop at one joint",
            )
        for k in reversed(path):
            state[k] = 2
            order.append(k)
    return np.array(order, dtype=np.int64)


def _kinds_of(joint_types: Sequence[str], names: Sequence[str]) -> Indices:
    """Codes (n,) of the joint types; ModelError for an unknown one."""
    for name, kind in zip(names, joint_types, strict=True):
        if kind not in JOINT_TYPES:
            raise ModelError(
                f"joint of body '{name}'", got=f"type '{kind}'", expected=f"one of {', '.join(JOINT_TYPES)}"
            )
    return np.array([JOINT_TYPES[kind] for kind in joint_types], dtype=np.int64)


def _unit_axes(axes: Vector, kinds: Indices, names: Sequence[str]) -> Vector:
    """Axes (n, 3) scaled to length 1, 0 for joints without an axis; ModelError for an axis of length zero."""
    scaled = np.zeros_like(axes)
    for i, kind in enumerate(kinds):
        if kind in (REVOLUTE, PRISMATIC):
            _, exponent = np.frexp(np.max(np.abs(axes[i])))
            near_one = np.ldexp(axes[i], -exponent)  # exact, and its square does not overflow
            if np.ldexp(np.linalg.norm(near_one), exponent) < 1e-9:
                raise ModelError(f"axis of the joint of body '{names[i]}'", got=str(axes[i]), expected="a direction")
            scaled[i] = near_one / np.linalg.norm(near_one)
    return scaled


def _subspaces(kinds: Indices, axes: Vector) -> Vector:
    """Columns (nv, 6) of the motions [linear; angular] that the joints allow; axes (n, 3). Source: system 21."""
    rows: list[Vector] = []
    for kind, axis in zip(kinds, axes, strict=True):
        if kind == REVOLUTE:
            rows.append(np.concatenate([np.zeros(3), axis]))
        elif kind == PRISMATIC:
            rows.append(np.concatenate([axis, np.zeros(3)]))
        elif kind == FLOATING:
            rows.extend(np.eye(6))
    return np.array(rows).reshape(-1, 6)


def _check_carried_masses(layout: Layout, names: Sequence[str]) -> None:
    """Refuse with a ModelError a moving joint that carries no mass and has no rotor: its acceleration is undefined."""
    carried = np.array(layout.masses)
    for i in reversed(layout.order):
        if layout.parents[i] >= 0:
            carried[layout.parents[i]] += carried[i]
    for i in layout.order:
        start, count = layout.v_start[i], layout.v_count[i]
        if count and carried[i] == 0.0 and not np.all(layout.rotor_inertias[start : start + count] > 0.0):
            raise ModelError(
                f"joint of body '{names[i]}'",
                got="no mass beyond it",
                expected="a mass, or a rotor inertia",
                remedy="give the body its inertia or fix the joint",
            )


def _check_bodies(names: Sequence[str], frames: Vector, masses: Vector, inertias: Vector) -> None:
    """Refuse with a ModelError placements (n, 4, 4) that are none, and inertias (n, 3, 3) that no body can have."""
    for name, frame, mass, inertia in zip(names, frames, masses.tolist(), inertias, strict=True):
        if not np.array_equal(frame[3], (0.0, 0.0, 0.0, 1.0)):
            raise ModelError(f"placement of body '{name}'", got=f"last row {frame[3]}", expected="0 0 0 1")
        check_rotation(frame[:3, :3], f"placement of body '{name}'")
        check_inertia(name, mass, inertia)


def _moments(names: Sequence[str], masses: Vector, centres: Vector, inertias: Vector) -> tuple[Vector, Vector]:
    """Mass times centre (n, 3) [kg m] and inertias (n, 3, 3) about the joint frames, of those about the centres (n, 3).

    Raises:
        ModelError: values whose products overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        first_moments = masses[:, None] * centres
        about_joint: Vector = inertias + [point_inertia(mass, at) for mass, at in zip(masses, centres, strict=True)]
    for i, name in enumerate(names):
        if not (np.isfinite(first_moments[i]).all() and np.isfinite(about_joint[i]).all()):
            raise ModelError(
                f"body '{name}'",
                got=f"mass {masses[i]:g} kg with its centre at {centres[i]} m",
                expected="values whose products are finite",
            )
    return first_moments, about_joint


class Parts(NamedTuple):
    """What a tree of n bodies with nv speeds is made of; each body's frame is its joint's frame."""

    names: Sequence[str]  # [n] of the bodies, for messages
    parents: Sequence[int]  # [n], -1 for the world
    joint_types: Sequence[str]  # [n]
    axes: ArrayLike  # (n, 3) of the joints, of any length but 0
    placements: ArrayLike  # (n, 4, 4) joint frame in the parent's, at q = 0
    masses: ArrayLike  # (n,) [kg]
    centres_of_mass: ArrayLike  # (n, 3) [m]
    inertias: ArrayLike  # (n, 3, 3) about the centres of mass [kg m2]
    gravity: ArrayLike  # (3,) in the world [m/s2]
    rotor_inertias: ArrayLike | None  # (nv,) reflected to the joints [kg m2], None for none


def make_layout(parts: Parts) -> Layout:
    """Return the checked layout of a tree; errors as `Tree.from_arrays`.

    Raises:
        ModelError: also for no body, or a duplicate name.

    Source: systems 18, 22.
    """
    names = parts.names
    n = len(names)
    if n == 0:
        raise ModelError("tree", got="no body", expected="at least one")
    for name in names:
        if list(names).count(name) > 1:
            raise ModelError(f"name of body '{name}'", got="two bodies of that name", expected="one")
    order = parents_first(parts.parents, names)
    kinds = _kinds_of(parts.joint_types, names)
    units = _unit_axes(array("axes", parts.axes, (n, 3), _FINITE), kinds, names)
    frames = array("placements", parts.placements, (n, 4, 4))
    weights = array("masses", parts.masses, (n,), _FINITE)
    centres = array("centres_of_mass", parts.centres_of_mass, (n, 3), _FINITE)
    central = array("inertias", parts.inertias, (n, 3, 3))
    _check_bodies(names, frames, weights, central)
    counts = np.array([SPEEDS_OF[int(kind)] for kind in kinds], dtype=np.int64)
    widths = np.array([POSITIONS_OF[int(kind)] for kind in kinds], dtype=np.int64)
    nv = int(counts.sum())
    rotors = np.zeros(nv) if parts.rotor_inertias is None else array("rotor_inertias", parts.rotor_inertias, (nv,))
    if np.any(rotors < 0.0):
        raise ModelError(
            f"rotor_inertias[{int(np.argmin(rotors))}]", got=f"{rotors.min():g}", expected="0 or more [kg m2]"
        )
    first_moments, about_joint = _moments(names, weights, centres, central)
    layout = Layout(
        order=order,
        parents=np.array(parts.parents, dtype=np.int64),
        kinds=kinds,
        axes=units,
        rotations=frames[:, :3, :3].copy(),
        positions=frames[:, :3, 3].copy(),
        q_start=np.cumsum(widths) - widths,
        v_start=np.cumsum(counts) - counts,
        v_count=counts,
        subspace=_subspaces(kinds, units),
        masses=weights.copy(),
        first_moments=first_moments,
        inertias=about_joint,
        rotor_inertias=rotors.copy(),
        gravity=array("gravity", parts.gravity, (3,)).copy(),
    )
    _check_carried_masses(layout, names)
    for field in layout:
        field.setflags(write=False)
    return layout
