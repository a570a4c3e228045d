"""Arguments of a tree: rows of states, names of bodies, fixed joints merged, steps along SE(3)."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import random_description, random_state, random_tree, relative
from scipy.linalg import expm

from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.tree import Tree, without_fixed_joints
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.resources import urdf_path

ALL = ("revolute", "revolute", "prismatic", "fixed")


def states(tree: Tree, t: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Positions, speeds, torques and wrenches in t rows."""
    rng = np.random.default_rng(seed)
    pairs = [random_state(rng, tree) for _ in range(t)]
    q, v = (np.array(x) for x in zip(*pairs, strict=True))
    return q, v, 3.0 * rng.normal(size=(t, tree.nv)), rng.normal(size=(t, len(tree.names), 6))


@pytest.mark.parametrize("floating_base", [False, True])
@pytest.mark.parametrize("with_wrenches", [False, True])
def test_rows_answer_what_single_calls_answer(floating_base: bool, with_wrenches: bool) -> None:
    """To the last bit."""
    tree = random_tree(np.random.default_rng(1), 8, kinds=ALL, floating_base=floating_base)
    q, v, tau, external = states(tree, 6)
    for ask in (tree.inverse_dynamics, tree.forward_dynamics):
        rows = ask(q, v, tau, external if with_wrenches else None)
        assert rows.shape == (6, tree.nv)
        for k in range(6):
            single = ask(q[k], v[k], tau[k], external[k] if with_wrenches else None)
            np.testing.assert_array_equal(single, rows[k])
    for ask in (tree.inverse_dynamics_derivatives, tree.forward_dynamics_derivatives):
        slopes = ask(q, v, tau, external if with_wrenches else None)
        for k in range(6):
            singles = ask(q[k], v[k], tau[k], external[k] if with_wrenches else None)
            for single, rows in zip(singles, slopes, strict=True):
                assert rows.shape == (6, tree.nv, tree.nv)
                np.testing.assert_array_equal(single, rows[k])
    for rows, ask in ((tree.mass_matrix(q), tree.mass_matrix), (tree.gravity_forces(q), tree.gravity_forces)):
        for k in range(6):
            np.testing.assert_array_equal(ask(q[k]), rows[k])
    bias = tree.bias_forces(q, v)
    for k in range(6):
        np.testing.assert_array_equal(tree.bias_forces(q[k], v[k]), bias[k])


def test_rows_of_the_arm_answer_what_single_calls_answer() -> None:
    """Its straight-line code is compiled once for one state and once for rows."""
    tree = arm_tree([0.3, 0.2, 0.03, 0.02, 0.02])
    q, v, tau, external = states(tree, 12)
    for wrenches in (None, external):
        for ask in (tree.inverse_dynamics, tree.forward_dynamics):
            rows = ask(q, v, tau, wrenches)
            singles = [ask(q[k], v[k], tau[k], None if wrenches is None else wrenches[k]) for k in range(12)]
            assert relative(rows, np.array(singles)) < 1e-13
        slopes = tree.forward_dynamics_derivatives(q, v, tau, wrenches)
        for k in range(12):
            singles = tree.forward_dynamics_derivatives(q[k], v[k], tau[k], None if wrenches is None else wrenches[k])
            for single, rows in zip(singles, slopes, strict=True):
                assert relative(rows[k], single) < 1e-13
    assert relative(tree.mass_matrix(q), np.array([tree.mass_matrix(one) for one in q])) < 1e-13


@pytest.mark.parametrize("tree", [arm_tree(), random_tree(np.random.default_rng(2), 5)], ids=["arm", "random"])
def test_what_comes_once_stands_in_every_row(tree: Tree) -> None:
    q, v, tau, external = states(tree, 4)
    wanted = tree.forward_dynamics(np.tile(q[0], (4, 1)), v, tau)
    np.testing.assert_array_equal(tree.forward_dynamics(q[0], v, tau), wanted)
    wanted = tree.forward_dynamics(q, np.tile(v[0], (4, 1)), np.tile(tau[0], (4, 1)), external)
    np.testing.assert_array_equal(tree.forward_dynamics(q, v[0], tau[0], external), wanted)
    wanted = tree.inverse_dynamics(q, v, tau, np.tile(external[0], (4, 1, 1)))
    np.testing.assert_array_equal(tree.inverse_dynamics(q, v, tau, external[0]), wanted)
    # Rows of wrenches alone make rows of answers.
    rows = tree.forward_dynamics(q[0], v[0], tau[0], external)
    for k in range(4):
        np.testing.assert_array_equal(rows[k], tree.forward_dynamics(q[0], v[0], tau[0], external[k]))
    assert tree.forward_dynamics(q[:0], v[:0], tau[:0]).shape == (0, tree.nv)


@pytest.mark.parametrize("tree", [arm_tree(), random_tree(np.random.default_rng(3), 5)], ids=["arm", "random"])
def test_lists_integers_and_slices_are_as_good_as_arrays(tree: Tree) -> None:
    q, v, tau, _ = states(tree, 2)
    wanted = tree.forward_dynamics(q[0], v[0], tau[0])
    spread = np.repeat(q[0], 3)[::3]
    assert not spread.flags.contiguous
    for one in (q[0].tolist(), tuple(q[0]), spread):
        np.testing.assert_allclose(tree.forward_dynamics(one, v[0], tau[0]), wanted, rtol=1e-12)
    ones = np.ones(5, dtype=np.int32)
    np.testing.assert_allclose(
        tree.forward_dynamics(ones, ones, ones), tree.forward_dynamics(ones * 1.0, ones * 1.0, ones * 1.0), rtol=1e-12
    )
    single = q[0].astype(np.float32)
    np.testing.assert_allclose(
        tree.forward_dynamics(single, v[0], tau[0]), tree.forward_dynamics(single * 1.0, v[0], tau[0]), rtol=1e-12
    )


@pytest.mark.parametrize("tree", [arm_tree(), random_tree(np.random.default_rng(3), 5)], ids=["arm", "random"])
def test_questions_leave_their_arguments_as_they_are(tree: Tree) -> None:
    q, v, tau, external = states(tree, 3)
    kept = [x.copy() for x in (q, v, tau, external)]
    tree.forward_dynamics(q, v, tau, external)
    tree.forward_dynamics_derivatives(q, v, tau)
    tree.inverse_dynamics(q[0], v[0], tau[0], external[0])
    tree.step(q[0], v[0], 0.1)
    tree.articulation(q[0], v[0], tau[0], external[0])
    for before, after in zip(kept, (q, v, tau, external), strict=True):
        np.testing.assert_array_equal(before, after)
    assert not any(array.flags.writeable for array in tree.layout)


def test_a_tree_does_not_change_with_the_arrays_it_was_made_of() -> None:
    rng = np.random.default_rng(4)
    description = random_description(rng, 5)
    tree = description.tree()
    q, v = random_state(rng, tree)
    before = tree.bias_forces(q, v)
    for array in (description.axes, description.placements, description.masses, description.centres):
        array *= 1.5
    description.inertias[:] = 0.0
    description.gravity[...] = description.gravity  # shared by all descriptions: left as it is
    np.testing.assert_array_equal(tree.bias_forces(q, v), before)


def test_bodies_go_by_index_or_name() -> None:
    tree = arm_tree()
    assert tree.names == tuple(f"arm_link_{k}" for k in range(1, 6))
    assert tree.joint_names == tuple(f"arm_joint_{k}" for k in range(1, 6))
    q = np.full(5, 0.3)
    np.testing.assert_array_equal(tree.jacobian(q, "arm_link_5"), tree.jacobian(q, 4))
    assert tree.body(np.int64(3)) == 3


@pytest.mark.parametrize("n", [4, 8, 15])
@pytest.mark.parametrize("floating_base", [False, True])
def test_merging_fixed_joints_changes_no_motion(n: int, floating_base: bool) -> None:
    """Payloads, brackets, and bodies bolted to the world: torques, accelerations and kept bodies stay the same."""
    rng = np.random.default_rng(n)
    tree = random_description(
        rng, n, kinds=("revolute", "prismatic", "fixed", "fixed"), floating_base=floating_base
    ).tree()
    merged = without_fixed_joints(tree)
    assert len(merged.names) < n
    assert "fixed" not in merged.layout.kinds
    assert (merged.nq, merged.nv) == (tree.nq, tree.nv)
    q, v = random_state(rng, tree)
    tau = rng.normal(size=tree.nv)
    a = tree.forward_dynamics(q, v, tau)
    assert relative(merged.forward_dynamics(q, v, tau), a) < 1e-10
    assert relative(merged.inverse_dynamics(q, v, tau), tree.inverse_dynamics(q, v, tau)) < 1e-11
    assert relative(merged.mass_matrix(q), tree.mass_matrix(q)) < 1e-11
    for name in merged.names:
        np.testing.assert_allclose(merged.jacobian(q, name), tree.jacobian(q, name), rtol=0, atol=1e-12)
        pose = merged.poses(q)[merged.body(name)]
        np.testing.assert_allclose(pose, tree.poses(q)[tree.body(name)], rtol=0, atol=1e-12)
    whole, same = tree.bodies(q, v), merged.bodies(q, v)
    assert same.kinetic_energy == pytest.approx(whole.kinetic_energy, rel=1e-11)
    for found, wanted in zip(
        merged.forward_dynamics_derivatives(q, v, tau), tree.forward_dynamics_derivatives(q, v, tau), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * max(1.0, np.abs(wanted).max()))


def test_a_tree_of_fixed_joints_only_cannot_be_merged() -> None:
    tree = random_description(np.random.default_rng(0), 2).tree(types=["fixed", "fixed"], rotors=np.zeros(0))
    with pytest.raises(ModelError, match="only fixed joints; expected at least one that moves"):
        without_fixed_joints(tree)


def test_a_tree_of_fixed_joints_only_has_answers_without_elements() -> None:
    tree = random_description(np.random.default_rng(0), 2).tree(types=["fixed", "fixed"], rotors=np.zeros(0))
    nothing = np.zeros(0)
    assert tree.forward_dynamics(nothing, nothing, nothing).shape == (0,)
    assert tree.mass_matrix(nothing).shape == (0, 0)
    assert tree.jacobian(nothing, 1).shape == (6, 0)


def test_a_step_moves_a_floating_body_along_its_twist_exactly() -> None:
    """Pose times the matrix exponential of the twist; many small steps lead to the same place, the quaternion unit."""
    rng = np.random.default_rng(5)
    tree = random_description(rng, 3, floating_base=True).tree(placements=np.tile(np.eye(4), (3, 1, 1)))
    q, v = random_state(rng, tree)
    v[3:6] *= 3.0
    once, often = tree.step(q, v, 0.7), q
    for _ in range(70):
        often = tree.step(often, v, 0.01)
    x, y, z, wx, wy, wz = v[:6]
    twist = np.array([[0, -wz, wy, x], [wz, 0, -wx, y], [-wy, wx, 0, z], [0, 0, 0, 0]])
    wanted = tree.poses(q)[0] @ expm(0.7 * twist)
    for end in (once, often):
        np.testing.assert_allclose(tree.poses(end)[0], wanted, rtol=0, atol=1e-12)
        assert np.linalg.norm(end[3:7]) == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(end[7:], q[7:] + 0.7 * v[6:], rtol=0, atol=1e-12)


def test_a_step_back_undoes_a_step() -> None:
    rng = np.random.default_rng(6)
    tree = random_tree(rng, 4, floating_base=True)
    q, v = random_state(rng, tree)
    back = tree.step(tree.step(q, v, 0.2), v, -0.2)
    np.testing.assert_allclose(back[[0, 1, 2, 7, 8, 9]], q[[0, 1, 2, 7, 8, 9]], rtol=0, atol=1e-13)
    assert abs(back[3:7] @ q[3:7]) == pytest.approx(1.0, abs=1e-14)


def test_a_massless_tree_at_rest_by_its_rotors_has_its_centre_at_the_origin() -> None:
    """A rotor alone may resist a joint: a driven axis without anything on it."""
    tree = Tree.from_arrays(
        [-1], ["revolute"], [[0, 0, 1]], [np.eye(4)], [0.0], [[0, 0, 0]], [np.zeros((3, 3))], rotor_inertias=[0.5]
    )
    np.testing.assert_allclose(tree.forward_dynamics([0.1], [2.0], [3.0]), [6.0])
    whole = tree.bodies([0.1], [2.0])
    assert (whole.mass, whole.kinetic_energy, whole.potential_energy) == (0.0, 1.0, 0.0)
    np.testing.assert_array_equal(whole.centre_of_mass, np.zeros(3))


def test_slots_and_neutral_positions_find_their_way_in_q():
    tree = Tree.from_urdf(urdf_path("youbot.urdf"), floating_base=True)
    q = tree.neutral()
    assert q.shape == (tree.nq,)
    np.testing.assert_array_equal(q[:7], [0, 0, 0, 0, 0, 0, 1])
    assert not np.any(q[7:])
    in_q, in_v = tree.slots("arm_joint_2")
    assert (in_q.stop - in_q.start, in_v.stop - in_v.start) == (1, 1)
    v = np.zeros(tree.nv)
    v[in_v] = 1.0
    np.testing.assert_allclose(tree.step(q, v, 0.1)[in_q], 0.1)
    assert tree.slots(0) == (slice(0, 7), slice(0, 6))
    fixed = tree.joint_names.index("base_footprint_joint")
    assert q[tree.slots(fixed)[0]].size == 0
    with pytest.raises(InputError, match=r"joint: got 'arm_joint_9'; expected one of .*arm_joint_1"):
        tree.slots("arm_joint_9")
    assert repr(tree) == f"Tree({len(tree.names)} bodies, nq={tree.nq}, nv={tree.nv})"


def test_a_floating_body_with_six_fixed_ones_needs_a_quaternion_too():
    n = 7
    tree = Tree.from_arrays(
        [-1, *range(n - 1)],
        ["floating", *["fixed"] * (n - 1)],
        np.tile([0.0, 0.0, 1.0], (n, 1)),
        np.tile(np.eye(4), (n, 1, 1)),
        np.ones(n),
        np.zeros((n, 3)),
        np.tile(0.1 * np.eye(3), (n, 1, 1)),
    )
    assert tree.nq == n
    with pytest.raises(InputError, match="quaternion"):
        tree.forward_dynamics(np.zeros(7), np.zeros(6), np.zeros(6))
