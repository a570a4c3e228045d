"""Featherstone's recursion as document 002 prints it, and as it holds: systems 21 to 23 and 26."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import Description, random_description, random_state, random_tree, relative
from spatial_reference import Chain

from youbot_dynamics.dynamics.tree import Tree

MOVING = ("revolute", "revolute", "prismatic")


def question(seed: int, n: int, **options: object) -> tuple[Description, Tree, Chain, np.ndarray, np.ndarray]:
    """A tree, its reference at a random state, and torques and wrenches."""
    rng = np.random.default_rng(seed)
    description = random_description(rng, n, **options)
    tree = description.tree()
    q, v = random_state(rng, tree)
    return description, tree, Chain(description, q, v), 3.0 * rng.normal(size=tree.nv), rng.normal(size=(n, 6))


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("floating_base", [False, True])
def test_dynamics_are_those_of_a_recursion_on_6_by_6_matrices(n: int, floating_base: bool) -> None:
    """The only oracle where Pinocchio is missing."""
    _, tree, chain, a, external = question(n, n, floating_base=floating_base, kinds=(*MOVING, "fixed"))
    tau = chain.inverse_dynamics(a, external)
    assert relative(tree.inverse_dynamics(chain.q, chain.v, a, external), tau) < 1e-12
    assert relative(tree.forward_dynamics(chain.q, chain.v, tau, external), a) < 1e-9


@pytest.mark.parametrize("n", [1, 2, 6, 15])
@pytest.mark.parametrize("floating_base", [False, True])
def test_joint_forces_are_articulated_inertia_times_acceleration_plus_bias(n: int, floating_base: bool) -> None:
    """(A.12): f_i = Delta_i a_i + delta_i, with the f_i of Newton and Euler."""
    _, tree, chain, tau, external = question(20 + n, n, floating_base=floating_base, kinds=(*MOVING, "fixed"))
    found = tree.articulation(chain.q, chain.v, tau, external)
    a = tree.forward_dynamics(chain.q, chain.v, tau, external)
    wrenches = np.array(chain.joint_wrenches(a, external))
    motions = np.array(chain.accelerations(a))
    through = np.einsum("nij,nj->ni", found.inertias, motions) + found.biases
    np.testing.assert_allclose(through, wrenches, rtol=0, atol=1e-10 * np.abs(wrenches).max())


def test_articulated_inertias_are_symmetric_positive_and_below_those_of_rigid_bodies() -> None:
    """Joints that give way can only make a body lighter than what it carries rigidly, and never lighter than itself."""
    description, tree, chain, tau, external = question(31, 14)
    found = tree.articulation(chain.q, chain.v, tau, external).inertias
    rigid = [inertia.copy() for inertia in chain.inertias]
    for i in range(13, 0, -1):
        rigid[description.parents[i]] += chain.from_parent[i].T @ rigid[i] @ chain.from_parent[i]
    # A rotor adds to what its joint resists, as if the joint were stiffer, never beyond rigid.
    for inertia, whole, own in zip(found, rigid, chain.inertias, strict=True):
        np.testing.assert_allclose(inertia, inertia.T, rtol=0, atol=1e-12 * np.abs(inertia).max())
        assert np.linalg.eigvalsh(inertia)[0] > 0.0
        assert np.linalg.eigvalsh(whole - inertia)[0] > -1e-9 * np.abs(whole).max()
        assert np.linalg.eigvalsh(inertia - own)[0] > -1e-9 * np.abs(whole).max()


def test_a_floating_root_accelerates_by_its_articulated_inertia_and_bias() -> None:
    """System 23: a_0 = -Delta_0^-1 delta_0, with gravity as an acceleration of the world and no force on the root."""
    _, tree, chain, tau, external = question(32, 8, floating_base=True)
    tau[:6] = 0.0
    found = tree.articulation(chain.q, chain.v, tau, external)
    root = -np.linalg.solve(found.inertias[0], found.biases[0])
    a = tree.forward_dynamics(chain.q, chain.v, tau, external)
    np.testing.assert_allclose(chain.accelerations(a)[0], root, rtol=0, atol=1e-10 * np.abs(root).max())


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def test_d_002_6_the_printed_sign_of_the_torque_term_gives_other_accelerations() -> None:
    """(A.22) with minus: 18 models; with plus the reference is the package's answer to rounding."""
    errors = []
    for k in range(18):
        description, tree, chain, tau, external = question(
            40 + k, 2 + k % 9, branched=k >= 9, kinds=MOVING, rotors=k % 2 == 0
        )
        wanted = tree.forward_dynamics(chain.q, chain.v, tau, external)
        assert error(chain.featherstone(tau, external), wanted) < 1e-9
        errors.append(error(chain.featherstone(tau, external, sign=-1.0), wanted))
        # The corrected answer is the one that needs these torques.
        assert relative(chain.inverse_dynamics(wanted, external), tau) < 1e-8
        assert description.rotors.any() == (k % 2 == 0)
    assert min(errors) > 1e-3
    assert max(errors) > 0.5


def test_d_002_6_the_printed_torque_term_is_a_number_where_a_wrench_is_needed() -> None:
    """Without T Delta S P the term has the shape and unit of a joint's acceleration."""
    _, tree, chain, tau, external = question(40, 2, branched=False, kinds=("revolute",), rotors=False)
    found = tree.articulation(chain.q, chain.v, tau, external)
    selection, transform = chain.selections[1][:, 0], chain.from_parent[1]
    divisor = selection @ found.inertias[1] @ selection
    printed = (tau[1] - selection @ found.biases[1]) / divisor
    assert np.ndim(printed) == 0
    gain = found.inertias[1] @ selection
    left = found.inertias[1] - np.outer(gain, gain) / divisor
    rest = chain.own_forces(external)[0] + transform.T @ (found.biases[1] + left @ chain.products[1])
    np.testing.assert_allclose(found.biases[0], rest + transform.T @ gain * printed, rtol=0, atol=1e-12)


def branched_with_three_children(seed: int) -> tuple[Tree, Chain, np.ndarray, np.ndarray]:
    """A body that carries three others, one of which carries two more; wrenches on all of them."""
    rng = np.random.default_rng(seed)
    whole = random_description(rng, 6, kinds=MOVING)
    description = Description(**{**vars(whole), "parents": [-1, 0, 1, 1, 0, 0]})
    tree = description.tree()
    q, v = random_state(rng, tree)
    return tree, Chain(description, q, v), rng.normal(size=6), rng.normal(size=(6, 6))


@pytest.mark.parametrize("slip", ["bias_once", "own_selection", "own_denominator"])
def test_d_002_7_each_printed_slip_of_the_branched_form_gives_other_accelerations(slip: str) -> None:
    """F_i inside the sum over m = 3 children; P_i for P_{i,j}; Delta_{i+1} in the denominator of every child."""
    errors = []
    for seed in range(10):
        tree, chain, tau, external = branched_with_three_children(seed)
        wanted = tree.forward_dynamics(chain.q, chain.v, tau, external)
        assert error(chain.featherstone(tau, external), wanted) < 1e-9
        errors.append(error(chain.featherstone(tau, external, **{slip: False}), wanted))
    assert min(errors) > 1e-3
    assert max(errors) > 0.05


def test_d_002_7_counting_the_bias_of_a_body_for_every_child_puts_its_load_there_three_times() -> None:
    """At rest the first joint then carries a wrench on its body as often as the body has children."""
    _, chain, tau, _ = branched_with_three_children(0)
    chain = Chain(chain.description, chain.q, np.zeros(6))
    tree = chain.description.tree()
    pushed = np.zeros((6, 6))
    pushed[0] = tree.jacobian(chain.q, 0)[:, 0]
    free = chain.featherstone(tau, np.zeros((6, 6)))
    once = chain.featherstone(tau, pushed) - free
    thrice = chain.featherstone(tau, pushed, bias_once=False) - free
    np.testing.assert_allclose(thrice, 3.0 * once, rtol=1e-8)


def test_d_002_10_force_propagation_is_the_transpose_of_the_jacobian() -> None:
    """A.14 joint by joint down to the root equals +J' f; the Jacobian itself has neither its shape nor its unit."""
    rng = np.random.default_rng(70)
    description = random_description(rng, 10, kinds=(*MOVING, "fixed"))
    tree = description.tree()
    q, _ = random_state(rng, tree)
    chain = Chain(description, q, np.zeros(tree.nv))
    for body in range(10):
        wrench = rng.normal(size=6)
        found, at, carried = np.zeros(tree.nv), body, wrench
        while at >= 0:
            found[chain.speeds[at]] = chain.selections[at].T @ carried
            carried, at = chain.from_parent[at].T @ carried, description.parents[at]
        np.testing.assert_allclose(tree.propagate_force(q, body, wrench), found, rtol=0, atol=1e-12)
        np.testing.assert_allclose(tree.jacobian(q, body).T @ wrench, found, rtol=0, atol=1e-12)
        assert tree.jacobian(q, body).shape == (6, tree.nv)


def test_d_002_10_joints_hold_a_wrench_by_minus_its_propagation_and_gravity_besides() -> None:
    """tau = J' F_mb = -J' F_ext holds the tree at rest only together with the gravity forces; the other sign never."""
    rng = np.random.default_rng(71)
    tree = random_tree(rng, 6)
    q, _ = random_state(rng, tree)
    rest, external = np.zeros(6), np.zeros((6, 6))
    external[5] = 10.0 * rng.normal(size=6)
    share, gravity = tree.propagate_force(q, 5, external[5]), tree.gravity_forces(q)
    assert np.abs(tree.forward_dynamics(q, rest, gravity - share, external)).max() < 1e-9
    assert np.abs(tree.forward_dynamics(q, rest, -share, external)).max() > 1.0
    assert np.abs(tree.forward_dynamics(q, rest, gravity + share, external)).max() > 1.0
    np.testing.assert_allclose(tree.inverse_dynamics(q, rest, rest, external), gravity - share, rtol=0, atol=1e-11)


def test_d_002_10_the_wrench_must_stand_in_the_frame_of_the_jacobian() -> None:
    """The same arrow given in the world's axes is another load."""
    rng = np.random.default_rng(72)
    tree = random_tree(rng, 5)
    q, _ = random_state(rng, tree)
    wrench, turn = rng.normal(size=6), tree.poses(q)[4, :3, :3]
    in_world = np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])
    assert relative(tree.propagate_force(q, 4, in_world), tree.propagate_force(q, 4, wrench)) > 0.1
