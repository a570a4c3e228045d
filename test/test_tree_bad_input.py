"""Trees that cannot be and states that make no sense: a typed error that says what and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_trees import random_description, random_state

from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import InputError, ModelError

NAMES = ["base", "arm", "hand"]


def build(**changes: Any) -> Tree:
    """Three bodies in a row, with some of the arguments exchanged."""
    arguments: dict[str, Any] = {
        "parents": [-1, 0, 1],
        "joint_types": ["revolute", "prismatic", "revolute"],
        "axes": np.eye(3),
        "placements": np.tile(np.eye(4), (3, 1, 1)),
        "masses": [3.0, 2.0, 1.0],
        "centres_of_mass": 0.1 * np.ones((3, 3)),
        "inertias": np.tile(0.01 * np.eye(3), (3, 1, 1)),
        "names": NAMES,
    }
    return Tree.from_arrays(**{**arguments, **changes})


def exchanged(array: Any, index: Any, value: Any) -> np.ndarray:
    changed = np.array(array, dtype=float)
    changed[index] = value
    return changed


FRAMES, TENSORS = np.tile(np.eye(4), (3, 1, 1)), np.tile(0.01 * np.eye(3), (3, 1, 1))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"parents": [-1, 2, 1]}, "tree at body '(arm|hand)': got a loop: .*(arm <- hand|hand <- arm).*an open tree"),
        ({"parents": [1, 2, 0]}, "a loop: .*base.*cut the loop at one joint"),
        ({"parents": [-1, 1, 1]}, "body 'arm': got a loop: arm <- arm"),
        ({"parents": [-1, 0, 7]}, "parent of body 'hand': got 7; expected -1 for the world or 0 to 2"),
        ({"parents": [-1, 0, -2]}, "parent of body 'hand': got -2"),
        ({"parents": [-1, 0, 0.5]}, "parent of body 'hand': got 0.5"),
        ({"joint_types": ["revolute", "screw", "fixed"]}, "joint of body 'arm': got type 'screw'.*one of fixed, rev"),
        ({"axes": exchanged(np.eye(3), 1, 0.0)}, "axis of the joint of body 'arm'.*expected a direction"),
        ({"placements": exchanged(FRAMES, (2, 0, 0), -1.0)}, "placement of body 'hand': got a left-handed frame"),
        ({"placements": exchanged(FRAMES, (1, 0, 0), 2.0)}, "placement of body 'arm': got a matrix that is not orth"),
        ({"placements": exchanged(FRAMES, (1, 3, 0), 0.3)}, "placement of body 'arm': got last row.*expected 0 0 0 1"),
        ({"masses": [3.0, -2.0, 1.0]}, "mass of body 'arm': got -2"),
        ({"inertias": exchanged(TENSORS, (2, 0, 0), 0.03)}, "inertia of body 'hand'.*sum of the other two"),
        ({"inertias": exchanged(TENSORS, (2, 0, 0), -0.01)}, "inertia of body 'hand'.*none negative"),
        ({"inertias": exchanged(TENSORS, (0, 0, 1), 0.001)}, "inertia of body 'base'.*not symmetric"),
        ({"masses": [3.0, 0.0, 1.0]}, "inertia of body 'arm'.*without any mass"),
        ({"masses": [3.0, 2.0, 0.0], "inertias": exchanged(TENSORS, 2, 0.0)}, "joint of body 'hand': got no mass bey"),
        ({"rotor_inertias": [0.1, -0.2, 0.0]}, r"rotor_inertias\[1\]: got -0.2"),
        ({"names": ["base", "arm", "arm"]}, "name of body 'arm': got two bodies of that name"),
    ],
)
def test_a_tree_that_cannot_be_is_refused_by_the_name_of_the_body(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        build(**changes)


def test_a_tree_needs_a_body() -> None:
    with pytest.raises(ModelError, match="tree: got no body; expected at least one"):
        Tree.from_arrays([], [], np.zeros((0, 3)), np.zeros((0, 4, 4)), [], np.zeros((0, 3)), np.zeros((0, 3, 3)))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"joint_types": ["revolute"]}, "parents, joint_types, names: got 3, 1, 3 of them; expected as many each"),
        ({"names": ["base"]}, "got 3, 3, 1 of them"),
        ({"axes": np.eye(2)}, r"axes: got shape \(2, 2\); expected shape \(3, 3\)"),
        ({"placements": np.eye(4)}, r"placements: got shape \(4, 4\); expected shape \(3, 4, 4\)"),
        ({"masses": [1.0, 2.0]}, r"masses: got shape \(2,\); expected shape \(3,\)"),
        ({"masses": [1.0, np.nan, 2.0]}, r"masses\[1\]: got nan; expected a finite number"),
        ({"centres_of_mass": np.zeros(3)}, r"centres_of_mass: got shape \(3,\); expected shape \(3, 3\)"),
        ({"inertias": np.zeros((3, 6))}, r"inertias: got shape \(3, 6\); expected shape \(3, 3, 3\)"),
        ({"inertias": exchanged(TENSORS, (1, 2, 2), np.inf)}, r"inertias\[1, 2, 2\]: got inf"),
        ({"gravity": [0.0, 9.81]}, r"gravity: got shape \(2,\); expected shape \(3,\)"),
        ({"rotor_inertias": [0.1]}, r"rotor_inertias: got shape \(1,\); expected shape \(3,\)"),
    ],
)
def test_arrays_of_a_wrong_shape_or_not_finite_are_refused_by_name(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        build(**changes)


def test_moving_bodies_may_be_massless_where_they_carry_mass_or_a_rotor() -> None:
    without = {"masses": [3.0, 0.0, 1.0], "inertias": exchanged(TENSORS, 1, 0.0)}
    build(**without)
    build(masses=[3.0, 2.0, 0.0], inertias=exchanged(TENSORS, 2, 0.0), rotor_inertias=[0.0, 0.0, 0.1])


def stuck() -> Tree:
    """The last body's mass lies on the axis of its joint."""
    return build(
        masses=[3.0, 2.0, 1.0],
        inertias=exchanged(TENSORS, 2, 0.0),
        centres_of_mass=[[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.0, 0.0, 0.2]],
    )


def stuck_arm() -> Tree:
    """The youBot arm with a gripper that is a point on the axis of joint 5: straight-line code would divide by 0."""
    d = arm_tree().layout
    placements = np.tile(np.eye(4), (5, 1, 1))
    placements[:, :3, :3], placements[:, :3, 3] = d.rotations, d.positions
    centres = d.first_moments / d.masses[:, None]
    centres[4] = [0.0, 0.0, -0.02]
    inertias = exchanged(np.tile(0.001 * np.eye(3), (5, 1, 1)), 4, 0.0)
    types = ["revolute"] * 5
    return Tree.from_arrays(d.parents, types, d.axes, placements, d.masses, centres, inertias, names=[*"abcd", "hand"])


@pytest.mark.parametrize("make", [stuck, stuck_arm])
def test_a_joint_with_all_mass_on_its_axis_cannot_be_accelerated(make: Callable[[], Tree]) -> None:
    tree = make()
    rest = np.zeros(tree.nv)
    says = "joint of body 'hand': got no inertia about it.*expected an inertia, or a rotor inertia"
    for ask in (tree.forward_dynamics, tree.forward_dynamics_derivatives, tree.articulation):
        with pytest.raises(ModelError, match=says):
            ask(rest, rest, rest)
    with pytest.raises(ModelError, match=says):
        tree.forward_dynamics(np.zeros((3, tree.nv)), rest, rest)
    assert np.isfinite(tree.inverse_dynamics(rest, rest, rest)).all()
    assert tree.mass_matrix(rest)[-1, -1] == pytest.approx(0.0, abs=1e-15)


TREES = {
    "arm": arm_tree(),
    "random": random_description(np.random.default_rng(0), 5).tree(),
}
REST = np.zeros(5)
BROKEN = [exchanged(REST, k, value) for k in (0, 4) for value in (np.nan, np.inf, -np.inf)]


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_states_that_are_not_finite_are_refused_by_element(tree: Tree, broken: np.ndarray) -> None:
    """Also an angle about the vertical, on which no acceleration depends."""
    place = int(np.flatnonzero(~np.isfinite(broken))[0])
    for ask, third in (
        (tree.forward_dynamics, "tau"),
        (tree.forward_dynamics_derivatives, "tau"),
        (tree.inverse_dynamics, "a"),
        (tree.inverse_dynamics_derivatives, "a"),
    ):
        for name, arguments in (
            ("q", (broken, REST, REST)),
            ("v", (REST, broken, REST)),
            (third, (REST, REST, broken)),
        ):
            with pytest.raises(InputError, match=rf"^{name}\[{place}\]: got -?(nan|inf); expected a finite number"):
                ask(*arguments)
            rows = [np.array([REST, one]) for one in arguments]
            with pytest.raises(InputError, match=rf"^{name}\[1, {place}\]: got"):
                ask(*rows)
    for ask in (tree.mass_matrix, tree.gravity_forces, tree.poses, tree.bodies, lambda q: tree.jacobian(q, 0)):
        with pytest.raises(InputError, match=rf"^q\[{place}\]: got"):
            ask(broken)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((np.zeros(4), REST, REST), r"^q: got shape \(4,\); expected shape \(5,\)"),
        ((REST, np.zeros(6), REST), r"^v: got shape \(6,\); expected shape \(5,\)"),
        ((REST, REST, np.zeros((3, 4))), r"^tau: got shape \(3, 4\); expected shape \(n, 5\)"),
        ((np.zeros((1, 1, 5)), REST, REST), r"^q: got shape \(1, 1, 5\)"),
        ((0.0, REST, REST), r"^q: got shape \(\); expected shape \(5,\)"),
        ((REST, ["a"] * 5, REST), "^v: got .*expected numbers"),
        (([[0.0] * 5, [0.0]], REST, REST), "^q: got rows of different lengths"),
        ((np.zeros((2, 5)), np.zeros((3, 5)), REST), "^q, v, tau: got 2 and 3 rows; expected the same number"),
        ((REST, REST, REST, np.zeros(6)), r"^external: got shape .*; expected shape \(n, 5, 6\)"),
        ((REST, REST, REST, np.zeros((4, 6))), r"^external: got shape .*; expected shape \(n, 5, 6\)"),
        ((REST, REST, REST, exchanged(np.zeros((5, 6)), (2, 1), np.nan)), "^external.*got nan"),
        ((np.zeros((2, 5)), REST, REST, np.zeros((3, 5, 6))), "got 2 and 3 rows"),
    ],
)
def test_states_of_a_wrong_shape_are_refused_with_both_shapes(
    tree: Tree, arguments: tuple[Any, ...], says: str
) -> None:
    for ask in (tree.forward_dynamics, tree.forward_dynamics_derivatives):
        with pytest.raises(InputError, match=says):
            ask(*arguments)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_what_is_about_one_state_refuses_rows(tree: Tree) -> None:
    """It would answer for the first row alone."""
    rows = np.zeros((3, 5))
    for ask in (
        lambda: tree.jacobian(rows, 0),
        lambda: tree.propagate_force(rows, 0, np.zeros(6)),
        lambda: tree.poses(rows),
        lambda: tree.bodies(rows),
        lambda: tree.step(rows, REST, 0.1),
        lambda: tree.articulation(rows, REST, REST),
    ):
        with pytest.raises(InputError, match=r"^q: got shape \(3, 5\); expected shape \(5,\)"):
            ask()
    with pytest.raises(InputError, match="^dt: got nan"):
        tree.step(REST, REST, float("nan"))


def test_a_quaternion_must_be_unit() -> None:
    rng = np.random.default_rng(1)
    tree = random_description(rng, 3, floating_base=True).tree()
    q, v = random_state(rng, tree)
    longer = q.copy()
    longer[3:7] *= 2.0
    says = "quaternion x y z w of body 'body_0' in q: got length 2; expected length 1"
    for ask in (
        lambda: tree.forward_dynamics(longer, v, v),
        lambda: tree.forward_dynamics(np.array([q, longer]), v, v),
        lambda: tree.step(longer, v, 0.1),
        lambda: tree.jacobian(longer, 0),
    ):
        with pytest.raises(InputError, match=says):
            ask()
    with pytest.raises(InputError, match="got length 0"):
        tree.bias_forces(np.zeros(tree.nq), v)


def test_an_unknown_body_is_refused_with_those_there_are() -> None:
    tree = build()
    for body, says in (
        ("foot", "body: got 'foot'; expected one of base, arm, hand"),
        (3, "body: got 3; expected 0 to 2"),
        (-1, "body: got -1; expected 0 to 2"),
        (1.5, "body: got 1.5; expected 0 to 2"),
    ):
        with pytest.raises(InputError, match=says):
            tree.jacobian(np.zeros(3), body)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"wrench: got shape \(3,\); expected shape \(6,\)"):
        tree.propagate_force(np.zeros(3), "hand", [1.0, 2.0, 3.0])


def test_a_mass_matrix_that_rounding_has_made_singular_is_said_so() -> None:
    """A feather that carries a wheel on the same axis: the recursion still divides, the matrix has lost the feather."""
    tree = Tree.from_arrays(
        [-1, 0],
        ["revolute", "revolute"],
        [[0.0, 0.0, 1.0]] * 2,
        FRAMES[:2],
        [1e-20, 1.0],
        np.zeros((2, 3)),
        [1e-20 * np.eye(3), np.eye(3)],
    )
    rest = np.zeros(2)
    assert np.isfinite(tree.forward_dynamics(rest, rest, [1.0, 0.0])).all()
    with pytest.raises(ModelError, match="mass matrix: got not positive definite after rounding"):
        tree.forward_dynamics_derivatives(rest, rest, rest)
