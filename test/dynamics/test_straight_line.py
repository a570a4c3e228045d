"""Straight-line code of the arm: what the recursions write, equal to the loops, and used only where it holds."""

from __future__ import annotations

import copy
import itertools
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from plain_python import numbers_without_numba
from random_trees import random_description, random_inertia, random_rotation, random_state, relative
from repository import ROOT

from youbot_dynamics.arrays import read_only
from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.dynamics.tree._straight_line import regrouped
from youbot_dynamics.errors import InputError


def by_loops(tree: Tree) -> Tree:
    """The same tree without its straight-line code."""
    generic = copy.copy(tree)
    object.__setattr__(generic, "_program", None)
    return generic


def arm_with(rng: np.random.Generator, gravity: np.ndarray | None = None, rotors: bool = True, **changes: Any) -> Tree:
    """The geometry of the arm with random bodies and rotors."""
    d = arm_tree().layout
    placements = np.tile(np.eye(4), (5, 1, 1))
    placements[:, :3, :3], placements[:, :3, 3] = d.rotations, d.positions
    masses, centres, inertias = (np.array(x) for x in zip(*(random_inertia(rng) for _ in range(5)), strict=True))
    arguments = {
        "parents": [-1, 0, 1, 2, 3],
        "joint_types": ["revolute"] * 5,
        "axes": d.axes,
        "placements": placements,
        "masses": masses,
        "centres_of_mass": centres,
        "inertias": inertias,
        "gravity": np.array([0.0, 0.0, -9.81]) if gravity is None else gravity,
        "rotor_inertias": rng.uniform(0.0, 0.3, 5) if rotors else None,
    }
    return Tree.from_arrays(**{**arguments, **changes})


def off(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def compare(tree: Tree, seed: int, limit: float = 1e-12) -> None:
    """All answers of a tree with those of the loops, one state and rows."""
    rng, generic = np.random.default_rng(seed), by_loops(tree)
    q, v, tau = rng.uniform(-np.pi, np.pi, (8, 5)), 2.0 * rng.normal(size=(8, 5)), 5.0 * rng.normal(size=(8, 5))
    for rows in (slice(None), 0, 5):
        state = q[rows], v[rows], tau[rows]
        assert off(tree.inverse_dynamics(*state), generic.inverse_dynamics(*state)) < limit
        assert off(tree.forward_dynamics(*state), generic.forward_dynamics(*state)) < limit
        assert off(tree.mass_matrix(q[rows]), generic.mass_matrix(q[rows])) < limit
        assert off(tree.bias_forces(*state[:2]), generic.bias_forces(*state[:2])) < limit
        assert off(tree.gravity_forces(q[rows]), generic.gravity_forces(q[rows])) < limit
        for found, wanted in zip(
            tree.forward_dynamics_derivatives(*state), generic.forward_dynamics_derivatives(*state), strict=True
        ):
            assert off(found, wanted) < limit


def test_the_arm_has_straight_line_code_equal_to_the_loops() -> None:
    tree = arm_tree([0.33, 0.22, 0.034, 0.018, 0.017])
    assert tree.is_written_out
    assert not by_loops(tree).is_written_out
    compare(tree, 0)


def test_bare_links_without_rotors_agree_too() -> None:
    """The mass matrix then has a condition number of thousands; rounding grows with it."""
    tree = arm_tree()
    assert tree.is_written_out
    compare(tree, 1, 1e-10)


@pytest.mark.parametrize("seed", range(12))
def test_masses_inertias_rotors_and_the_size_of_gravity_stay_free(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = [9.81, 1.62, 25.0][seed % 3]
    tree = arm_with(rng, np.array([0.0, 0.0, -size]))
    assert tree.is_written_out
    compare(tree, seed)
    heavier = arm_with(np.random.default_rng(seed), np.array([0.0, 0.0, -2.0 * size]))
    q = rng.uniform(-2, 2, 5)
    np.testing.assert_allclose(heavier.gravity_forces(q), 2.0 * tree.gravity_forces(q), rtol=1e-12, atol=1e-12)


def test_other_directions_of_gravity_and_other_geometry_go_the_long_way_and_agree_with_a_turned_arm() -> None:
    rng = np.random.default_rng(3)
    d = arm_tree().layout
    shifted = np.tile(np.eye(4), (5, 1, 1))
    shifted[:, :3, :3], shifted[:, :3, 3] = d.rotations, d.positions
    shifted[2, 0, 3] += 1e-6
    wrist = np.array([[0.0, 0.0, 1.0] if k == 4 else axis for k, axis in enumerate(d.axes)])
    types = ["revolute", "revolute", "prismatic", "revolute", "revolute"]
    for tree in (
        arm_tree(gravity=(0.0, 0.0, 9.81)),
        arm_tree(gravity=(0.0, 0.0, 0.0)),
        arm_tree(gravity=(0.3, 0.0, -9.8)),
        arm_with(rng, placements=shifted),
        arm_with(rng, axes=wrist),
        arm_with(rng, joint_types=types),
        arm_with(rng, parents=[-1, 0, 1, 2, 2]),
        random_description(rng, 5, kinds=("revolute",)).tree(),
    ):
        assert not tree.is_written_out
    # A tilted floor is gravity turned the other way.
    turn = random_rotation(rng)
    level = arm_with(np.random.default_rng(5))
    placements = np.tile(np.eye(4), (5, 1, 1))
    placements[:, :3, :3], placements[:, :3, 3] = d.rotations, d.positions
    scene = np.eye(4)
    scene[:3, :3] = turn
    placements[0] = scene @ placements[0]
    tilted = arm_with(np.random.default_rng(5), turn @ [0.0, 0.0, -9.81], placements=placements)
    assert level.is_written_out
    assert not tilted.is_written_out
    q, v, tau = rng.normal(size=(3, 5))
    assert relative(tilted.forward_dynamics(q, v, tau), level.forward_dynamics(q, v, tau)) < 1e-11


def test_wrenches_on_bodies_go_the_long_way_and_add_their_share() -> None:
    rng = np.random.default_rng(6)
    tree = arm_tree([0.3, 0.2, 0.03, 0.02, 0.02])
    q, v = random_state(rng, tree)
    tau, external = rng.normal(size=5), rng.normal(size=(5, 6))
    share = sum(tree.propagate_force(q, i, external[i]) for i in range(5))
    assert relative(tree.forward_dynamics(q, v, tau, external), tree.forward_dynamics(q, v, tau + share)) < 1e-11


def test_regrouping_moves_inertia_down_without_changing_any_torque() -> None:
    """Masses, and two more numbers of each body, vanish; what is left moves the joints alike."""
    rng = np.random.default_rng(7)
    tree = by_loops(arm_with(rng))
    other = copy.copy(tree)
    # Locked as layouts are: numba compiles anew for arrays that can be written.
    locked = [read_only(np.array(array)) for array in regrouped(tree.layout)]
    object.__setattr__(other, "layout", type(tree.layout)(*locked))
    assert not other.layout.masses.any()
    assert tree.layout.masses.all()
    for _ in range(5):
        q, v, a = rng.normal(size=(3, 5))
        assert off(other.inverse_dynamics(q, v, a), tree.inverse_dynamics(q, v, a)) < 1e-12
        assert off(other.mass_matrix(q), tree.mass_matrix(q)) < 1e-12


def test_the_shipped_file_is_what_the_recursions_write() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "write_straight_line.py"), "--check"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def answers() -> Iterator[np.ndarray]:
    """Of the arm and of a floating tree, on single calls and on rows; what makes no sense the arm refuses."""
    rng = np.random.default_rng(0)
    kinds = ("revolute", "prismatic", "fixed")
    trees = [arm_tree([0.3, 0.2, 0.03, 0.02, 0.02]), random_description(rng, 5, kinds=kinds, floating_base=True).tree()]
    for tree in trees:
        states = [random_state(rng, tree) for _ in range(3)]
        q, v = (np.array(x) for x in zip(*states, strict=True))
        tau, external = rng.normal(size=(3, tree.nv)), rng.normal(size=(3, len(tree.names), 6))
        for rows in (slice(None), 1):
            state = q[rows], v[rows], tau[rows]
            for wrenches in (None, external[rows]):
                yield tree.inverse_dynamics(*state, wrenches)
                yield tree.forward_dynamics(*state, wrenches)
                yield from tree.forward_dynamics_derivatives(*state, wrenches)
                yield from tree.inverse_dynamics_derivatives(*state, wrenches)
            yield tree.mass_matrix(q[rows])
        yield tree.jacobian(q[0], 2)
        yield tree.poses(q[0])
        yield tree.step(q[0], v[0], 0.1)
        yield tree.bodies(q[0], v[0]).momentum
        yield tree.articulation(q[0], v[0], tau[0]).inertias
    arm, zero = trees[0], np.zeros(5)
    for place, value in itertools.product((0, 4), (np.nan, np.inf)):
        bad = np.zeros(5)
        bad[place] = value
        for arguments in ((bad, zero, zero), (zero, bad, zero), (zero, zero, bad)):
            for ask in (arm.forward_dynamics, arm.inverse_dynamics, arm.forward_dynamics_derivatives):
                with pytest.raises(InputError):
                    ask(*arguments)
        with pytest.raises(InputError):
            arm.mass_matrix(bad)


def numbers_of_answers() -> np.ndarray:
    return np.concatenate([np.ravel(answer) for answer in answers()])


def test_without_numba_everything_answers_the_same() -> None:
    wanted = [np.ravel(answer) for answer in answers()]
    assert len(wanted) > 70
    ends = np.cumsum([len(answer) for answer in wanted])[:-1]
    found = np.split(np.array(numbers_without_numba(numbers_of_answers)), ends)
    for plain, own in zip(found, wanted, strict=True):
        assert relative(plain, own) < 1e-10
