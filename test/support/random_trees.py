"""Random trees of bodies as plain arrays, built for the package and, where wanted, for Pinocchio."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from youbot_dynamics.dynamics.tree import Tree

GRAVITY = np.array([0.0, 0.0, -9.81])
SPEEDS = {"fixed": 0, "revolute": 1, "prismatic": 1, "floating": 6}
POSITIONS = {"fixed": 0, "revolute": 1, "prismatic": 1, "floating": 7}


@dataclass(frozen=True, eq=False)
class Description:
    """Arguments of `Tree.from_arrays`."""

    parents: list[int]
    types: list[str]
    axes: np.ndarray
    placements: np.ndarray
    masses: np.ndarray
    centres: np.ndarray
    inertias: np.ndarray
    rotors: np.ndarray
    gravity: np.ndarray

    def tree(self, **changes: Any) -> Tree:
        """Tree of the package, with some of the arrays exchanged."""
        d = replace(self, **changes)
        return Tree.from_arrays(
            d.parents, d.types, d.axes, d.placements, d.masses, d.centres, d.inertias, d.gravity,
            rotor_inertias=d.rotors,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Twin:
    """One tree in both libraries: bodies of `tree`, and their joint and place in the Pinocchio `model`."""

    description: Description
    tree: Tree
    model: Any
    data: Any
    joints: tuple[int, ...]
    places: tuple[Any, ...]


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    matrix, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return matrix * np.sign(np.linalg.det(matrix))


def random_inertia(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia about it of five random points and a bit of a ball: always a real body."""
    points, weights = 0.15 * rng.normal(size=(5, 3)), rng.uniform(0.1, 0.6, 5)
    mass = float(weights.sum())
    centre = weights @ points / mass
    arms = points - centre
    inertia = sum(w * (a @ a * np.eye(3) - np.outer(a, a)) for w, a in zip(weights, arms, strict=True))
    return mass, centre, inertia + 1e-3 * np.eye(3)


def random_description(
    rng: np.random.Generator,
    n: int,
    *,
    branched: bool = True,
    kinds: tuple[str, ...] = ("revolute", "revolute", "prismatic"),
    floating_base: bool = False,
    rotors: bool = True,
) -> Description:
    """n bodies in depth-first order, which Pinocchio wants; the rotors of a floating base are 0."""
    types = [str(rng.choice(kinds)) for _ in range(n)]
    if floating_base:
        types[0] = "floating"
    elif all(kind == "fixed" for kind in types):
        types[-1] = "revolute"
    parents = [-1]
    for i in range(1, n):
        # The body before, or one of those that carry it.
        parent = i - 1
        while branched and parents[parent] >= 0 and rng.uniform() < 0.4:
            parent = parents[parent]
        parents.append(parent)
    placements = np.tile(np.eye(4), (n, 1, 1))
    for placement in placements:
        placement[:3, :3] = random_rotation(rng)
        placement[:3, 3] = 0.3 * rng.normal(size=3)
    masses, centres, inertias = (np.array(x) for x in zip(*(random_inertia(rng) for _ in range(n)), strict=True))
    widths = [SPEEDS[kind] for kind in types]
    inertia = [np.zeros(w) if w == 6 or not rotors else rng.uniform(0.0, 0.1, w) for w in widths]
    return Description(
        parents, types, rng.normal(size=(n, 3)), placements, masses, centres, inertias, np.concatenate(inertia), GRAVITY
    )


def random_tree(rng: np.random.Generator, n: int, **options: Any) -> Tree:
    """Tree of n random bodies; options as for `random_description`."""
    return random_description(rng, n, **options).tree()


def random_twin(rng: np.random.Generator, n: int, **options: Any) -> Twin:
    """The same random bodies in both libraries."""
    return twin_of(random_description(rng, n, **options))


def twin_of(description: Description) -> Twin:
    """Build a description, bodies in depth-first order, in both libraries."""
    import pinocchio as pin

    d = description
    model, joints, places = pin.Model(), [], []
    for i, kind in enumerate(d.types):
        placement = pin.SE3(d.placements[i, :3, :3], d.placements[i, :3, 3])
        parent = d.parents[i]
        carrier, carried_at = (joints[parent], places[parent]) if parent >= 0 else (0, pin.SE3.Identity())
        if kind == "fixed":
            joint, place = carrier, carried_at * placement
        else:
            axis = d.axes[i] / np.linalg.norm(d.axes[i])
            if kind == "floating":
                made = pin.JointModelFreeFlyer()
            else:
                made = {
                    "revolute": pin.JointModelRevoluteUnaligned,
                    "prismatic": pin.JointModelPrismaticUnaligned,
                }[kind](axis)
            joint, place = model.addJoint(carrier, made, carried_at * placement, f"joint_{i}"), pin.SE3.Identity()
        model.appendBodyToJoint(joint, pin.Inertia(d.masses[i], d.centres[i], d.inertias[i]), place)
        joints.append(joint)
        places.append(place)
    model.armature = d.rotors
    model.gravity.linear = d.gravity
    return Twin(description, d.tree(), model, model.createData(), tuple(joints), tuple(places))


def random_state(rng: np.random.Generator, tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Positions with unit quaternions, and speeds."""
    q = rng.uniform(-np.pi, np.pi, tree.nq)
    for i in np.flatnonzero(tree.layout.kinds == 3):
        start = int(tree.layout.q_start[i])
        quaternion = rng.normal(size=4)
        q[start + 3 : start + 7] = quaternion / np.linalg.norm(quaternion)
    return q, rng.normal(size=tree.nv)


def wrenches_of(twin: Twin, external: np.ndarray) -> Any:
    """External wrenches on the bodies (n, 6) as Pinocchio wants them: one on each joint."""
    import pinocchio as pin

    total = [pin.Force.Zero() for _ in range(twin.model.njoints)]
    for joint, place, wrench in zip(twin.joints, twin.places, external, strict=True):
        total[joint] = total[joint] + place.act(pin.Force(wrench))
    listed = pin.StdVec_Force()
    listed.extend(total)
    return listed


def full(upper: np.ndarray) -> np.ndarray:
    """Symmetric matrix of which Pinocchio gives the upper triangle."""
    return np.triu(upper) + np.triu(upper, 1).T


def relative(found: np.ndarray, wanted: np.ndarray) -> float:
    """Largest difference, in parts of the largest number that is wanted."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max(initial=0.0) / max(np.abs(wanted).max(initial=0.0), 1e-300))
