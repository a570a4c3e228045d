"""Trees that cannot be and states that make no sense: a typed error that says what and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_trees import random_description, random_state

from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.dynamics.tree._articulated_body import carried_sizes
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


def test_a_tree_of_nothing_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="parents: got None; expected a list"):
        Tree.from_arrays(None, [], [], [], [], [], [])  # type: ignore[arg-type]


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
    says = (
        "joint of body 'hand': got an inertia no larger than rounding errors.*expected an inertia, or a rotor inertia"
    )
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
        ((REST, REST, REST, np.zeros(6)), r"^external: got shape .*; expected shape \(.*5, 6\)"),
        ((REST, REST, REST, np.zeros((4, 6))), r"^external: got shape .*; expected shape \(.*5, 6\)"),
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


def single(joint_type: str, axis: Any, centre: Any, inertia: Any) -> Tree:
    """One body of 1 kg, carried by a body that resists."""
    return Tree.from_arrays(
        [-1, 0],
        ["revolute", joint_type],
        [[0.0, 0.0, 1.0], axis],
        FRAMES[:2],
        [1.0, 1.0],
        [[0.3, 0.0, 0.0], centre],
        [0.1 * np.eye(3), inertia],
        names=["base", "hand"],
    )


@pytest.mark.parametrize("seed", range(40))
def test_inertia_that_is_rounding_does_not_accelerate_a_joint(seed: int) -> None:
    """Points and rods on slanted axes: what cancels leaves 1e-17 of it, of either sign."""
    rng = np.random.default_rng(seed)
    axis, size = rng.normal(size=3), 10.0 ** rng.uniform(-4, 4)
    unit = axis / np.linalg.norm(axis)
    rod = 0.1 * size**2 * (np.eye(3) - np.outer(unit, unit))
    for joint_type, centre, inertia in (
        ("revolute", size * unit, np.zeros((3, 3))),
        ("revolute", size * unit, rod),
        ("floating", size * unit, np.zeros((3, 3))),
        ("floating", size * unit, rod),
    ):
        tree = single(joint_type, axis, centre, inertia)
        q, rest = np.zeros(tree.nq), np.zeros(tree.nv)
        q[-1] = 1.0 if joint_type == "floating" else 0.2
        for ask in (tree.forward_dynamics, tree.forward_dynamics_derivatives, tree.articulation):
            with pytest.raises(ModelError, match="joint of body 'hand': got an inertia no larger than rounding errors"):
                ask(q, rest, rest)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_is_measured_by_no_less_than_what_a_body_carries(seed: int) -> None:
    """Mass and second moment sum m |r|^2 = tr(I) / 2 of all that hangs on each body, about its origin, at any angle."""
    rng = np.random.default_rng(seed)
    tree = random_description(rng, 8, kinds=("revolute",)).tree()
    layout, n = tree.layout, 8
    masses, bounds = np.zeros(n), np.zeros(n)
    carried_sizes(layout, layout.positions, masses, bounds)
    for _ in range(20):
        poses = tree.poses(rng.uniform(-np.pi, np.pi, tree.nq))
        weight, moment = np.zeros(n), np.zeros(n)
        for body in range(n):
            below = body
            while below >= 0:
                turn, place = poses[body, :3, :3], poses[body, :3, 3] - poses[below, :3, 3]
                weight[below] += layout.masses[body]
                moment[below] += np.trace(layout.inertias[body]) / 2 + layout.masses[body] * place @ place
                moment[below] += 2 * place @ turn @ layout.first_moments[body]
                below = layout.parents[below]
        np.testing.assert_allclose(masses, weight, rtol=1e-12)
        assert np.all(moment <= bounds * (1 + 1e-12))
        leaves = np.setdiff1d(np.arange(n), layout.parents)
        np.testing.assert_allclose(bounds[leaves], moment[leaves], rtol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_joints_on_one_axis_without_inertia_between_them_are_refused(seed: int) -> None:
    """Two, or four through one point: after the first the rest has rounding left, of the size of what was taken."""
    rng = np.random.default_rng(seed)
    for count in (2, 4):
        axes = np.tile(rng.normal(size=3), (2, 1)) if count == 2 else rng.normal(size=(4, 3))
        masses, inertias = np.zeros(count), np.zeros((count, 3, 3))
        masses[-1], inertias[-1] = 1.0, np.diag([0.2, 0.3, 0.4])
        centres = np.tile([0.1, 0.2, 0.3], (count, 1))
        frames, types = np.tile(np.eye(4), (count, 1, 1)), ["revolute"] * count
        tree = Tree.from_arrays(range(-1, count - 1), types, axes, frames, masses, centres, inertias)
        q = np.zeros(count)
        with pytest.raises(ModelError, match="joint of body 'body_0': got an inertia no larger than rounding errors"):
            tree.forward_dynamics(q, q, q)


def test_a_slide_with_its_mass_far_out_on_the_axis_of_a_turn_is_refused() -> None:
    """The scale of rounding grows with the slide: at its start the body is a point in the axis."""
    axis = np.array([0.3, -0.5, 0.8])
    for out in (0.0, 1.0, 1e4):
        tree = Tree.from_arrays(
            [-1, 0],
            ["revolute", "prismatic"],
            [axis, axis],
            FRAMES[:2],
            [0.0, 1.0],
            np.zeros((2, 3)),
            np.zeros((2, 3, 3)),
        )
        with pytest.raises(ModelError, match="joint of body 'body_0': got an inertia no larger"):
            tree.forward_dynamics([0.2, out], [0.0, 0.0], [0.0, 0.0])


def test_light_bodies_that_resist_are_not_taken_for_rounding() -> None:
    """A grain of 1 ug at the end of the arm, a rotor of 1e-9 of the body it turns, a body far from its joint."""
    light = build(masses=[3.0, 2.0, 1e-9], inertias=exchanged(TENSORS, 2, 1e-15 * np.eye(3)))
    rest = np.zeros(3)
    assert np.isfinite(light.forward_dynamics(rest, rest, rest)).all()
    rod = single("revolute", [0.0, 0.0, 1.0], [0.0, 0.0, 0.3], np.diag([1.0, 1.0, 0.0]))
    layout = rod.layout._replace(rotor_inertias=np.array([0.0, 1e-9]))
    layout.rotor_inertias.setflags(write=False)
    turned = Tree(rod.names, rod.joint_names, layout, rod.limits, rod.damping, rod.friction)
    # Only its own torque and the base's acceleration turn it, whatever it weighs.
    base, own = turned.forward_dynamics(rest[:2], rest[:2], [0.0, 1e-9])
    assert own == pytest.approx(1.0, rel=1e-6)
    assert base == pytest.approx(0.0, abs=1e-6)
    far = single("revolute", [0.0, 1.0, 0.0], [1e3, 0.0, 0.0], np.zeros((3, 3)))
    assert np.isfinite(far.forward_dynamics(rest[:2], rest[:2], rest[:2])).all()


def test_a_tree_a_trillion_trillion_times_lighter_accelerates_alike() -> None:
    """Torque over inertia: no mass is small by itself, but beside what the same joint carries."""
    tree, light = (build(masses=[3.0 * s, 2.0 * s, s], inertias=s * TENSORS, gravity=np.zeros(3)) for s in (1.0, 1e-24))
    q, v, tau = np.array([0.2, 0.1, -0.4]), np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(light.forward_dynamics(q, v, 1e-24 * tau), tree.forward_dynamics(q, v, tau), rtol=1e-9)


def test_an_arm_whose_hand_resists_by_rounding_has_no_straight_line_code() -> None:
    """It divides unchecked: 1e-15 of the hand's size must count as nothing, a rotor as something."""
    d = arm_tree().layout
    thin, point = np.diag([0.1, 0.1, 1e-17]), np.zeros((3, 3))
    for hand, rotor, written_out in ((point, 0.0, False), (thin, 0.0, False), (thin, 1e-15, False), (thin, 1e-5, True)):
        placements = np.tile(np.eye(4), (5, 1, 1))
        placements[:, :3, :3], placements[:, :3, 3] = d.rotations, d.positions
        inertias = exchanged(np.tile(0.001 * np.eye(3), (5, 1, 1)), 4, hand)
        tree = Tree.from_arrays(
            d.parents, ["revolute"] * 5, d.axes, placements, d.masses, np.zeros((5, 3)), inertias,
            rotor_inertias=[0.1, 0.1, 0.1, 0.1, rotor],
        )  # fmt: skip
        assert tree.is_written_out is written_out
        if not written_out:
            with pytest.raises(
                ModelError, match="joint of body 'body_4': got an inertia no larger than rounding errors"
            ):
                tree.forward_dynamics(REST, REST, REST)


def test_a_feather_that_carries_a_wheel_on_its_own_axis_is_refused() -> None:
    """1e-20 of what it carries: of that the mass matrix keeps nothing."""
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
    for ask in (tree.forward_dynamics, tree.forward_dynamics_derivatives):
        with pytest.raises(ModelError, match="joint of body 'body_0': got an inertia no larger than rounding errors"):
            ask(rest, rest, rest)


def test_a_mass_matrix_that_rounding_has_made_singular_is_said_so() -> None:
    """Derivatives are taken about the world's origin: 1e9 m away a body's own inertia is lost in m |p|^2."""
    tree = Tree.from_arrays([-1], ["floating"], np.eye(3)[:1], FRAMES[:1], [1.0], np.zeros((1, 3)), [0.01 * np.eye(3)])
    rest, far = np.zeros(6), np.array([1e9, 2e9, -3e9, 0.1, 0.3, 0.5, 0.8])
    far[3:] /= np.linalg.norm(far[3:])
    assert np.isfinite(tree.forward_dynamics(far, rest, rest)).all()
    with pytest.raises(ModelError, match="mass matrix: got not positive definite after rounding"):
        tree.forward_dynamics_derivatives(far, rest, rest)


@pytest.mark.parametrize(("mass", "centre"), [(1e308, 1e10), (1.0, 1e200)])
def test_a_body_whose_moments_overflow_is_refused_by_name(mass: float, centre: float) -> None:
    changes = {"masses": [3.0, mass, 1.0], "centres_of_mass": exchanged(np.zeros((3, 3)), (1, 0), centre)}
    with pytest.raises(ModelError, match="body 'arm': got mass .* kg with its centre at .*products are finite"):
        build(**changes)
