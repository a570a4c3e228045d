"""What no tree of bodies can break: energy, momentum, power, and that frames and numbering are a matter of choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_trees import Description, random_description, random_rotation, random_state, random_tree, relative
from scipy.spatial.transform import Rotation

from youbot_dynamics.dynamics.tree import Tree

ALL = ("revolute", "revolute", "prismatic", "fixed")


def energy(tree: Tree, q: np.ndarray, v: np.ndarray) -> float:
    whole = tree.bodies(q, v)
    return whole.kinetic_energy + whole.potential_energy


def runge_kutta(tree: Tree, state: np.ndarray, tau: np.ndarray, dt: float) -> np.ndarray:
    """State (q, v, work) of a tree without floating joints after dt; work is that of the torques."""
    n = tree.nv

    def rate(x: np.ndarray) -> np.ndarray:
        a = tree.forward_dynamics(x[:n], x[n : 2 * n], tau)
        return np.concatenate([x[n : 2 * n], a, [tau @ x[n : 2 * n]]])

    k1 = rate(state)
    k2 = rate(state + 0.5 * dt * k1)
    k3 = rate(state + 0.5 * dt * k2)
    k4 = rate(state + dt * k3)
    return state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


@pytest.mark.parametrize("driven", [False, True])
def test_energy_changes_by_the_work_of_the_torques_and_by_nothing_else(driven: bool) -> None:
    """The defect falls with the fourth power of the step, as the integrator's error does."""
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 6)
    q, v = random_state(rng, tree)
    tau = 5.0 * rng.normal(size=6) if driven else np.zeros(6)
    defects = []
    for steps in (200, 400):
        state = np.concatenate([q, v, [0.0]])
        for _ in range(steps):
            state = runge_kutta(tree, state, tau, 0.4 / steps)
        defects.append(abs(energy(tree, state[:6], state[6:12]) - energy(tree, q, v) - state[12]))
    moved = abs(tree.bodies(state[:6], state[6:12]).kinetic_energy - tree.bodies(q, v).kinetic_energy)
    assert moved > 0.1  # energy went to and fro
    assert defects[1] < 1e-7 * moved
    assert defects[1] < defects[0] / 8.0 or defects[1] < 1e-12


def power(tree: Tree, q: np.ndarray, v: np.ndarray, a: np.ndarray, step: float = 1e-5) -> float:
    """Rate of the energy along a motion, by central differences."""
    after = energy(tree, tree.step(q, v, step), v + step * a)
    before = energy(tree, tree.step(q, v, -step), v - step * a)
    return (after - before) / (2.0 * step)


@pytest.mark.parametrize("floating_base", [False, True])
def test_power_of_torques_and_wrenches_is_the_rate_of_energy(floating_base: bool) -> None:
    rng = np.random.default_rng(2)
    for _ in range(5):
        tree = random_tree(rng, 8, kinds=ALL, floating_base=floating_base)
        q, v = random_state(rng, tree)
        tau, external = 3.0 * rng.normal(size=tree.nv), rng.normal(size=(8, 6))
        a = tree.forward_dynamics(q, v, tau, external)
        given = tau @ v + sum(external[i] @ (tree.jacobian(q, i) @ v) for i in range(8))
        assert power(tree, q, v, a) == pytest.approx(given, rel=1e-6, abs=1e-6 * np.abs(tau).max())


def midpoint(tree: Tree, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Second-order step of a tree that floats: velocities are those of the body, positions move on SE(3)."""
    middle = tree.step(q, v, 0.5 * dt)
    between = v + 0.5 * dt * tree.forward_dynamics(q, v, tau)
    return tree.step(q, between, dt), v + dt * tree.forward_dynamics(middle, between, tau)


def test_momentum_of_a_free_tree_in_space_is_constant_whatever_its_joints_do() -> None:
    """Linear and angular about the centre of mass; the defect falls with the square of the step."""
    rng = np.random.default_rng(3)
    description = random_description(rng, 6, floating_base=True, rotors=False)
    tree = description.tree(gravity=np.zeros(3))
    q0, v0 = random_state(rng, tree)
    tau = np.concatenate([np.zeros(6), 2.0 * rng.normal(size=tree.nv - 6)])
    start = tree.bodies(q0, v0)
    defects = []
    for steps in (150, 300):
        q, v = q0, v0
        for _ in range(steps):
            q, v = midpoint(tree, q, v, tau, 0.3 / steps)
        end = tree.bodies(q, v)
        straight = start.centre_of_mass + 0.3 * start.momentum[:3] / start.mass
        defects.append(max(np.abs(end.momentum - start.momentum).max(), np.abs(end.centre_of_mass - straight).max()))
    assert np.abs(v - v0).max() > 0.5
    assert defects[1] < 1e-4 * np.abs(start.momentum).max()
    assert defects[1] < defects[0] / 3.0


def test_momentum_changes_by_weight_and_external_wrenches() -> None:
    """About the centre of mass, forces inside the tree do not count, gravity does not turn."""
    rng = np.random.default_rng(4)
    for n in (1, 5, 12):
        tree = random_tree(rng, n, floating_base=True, rotors=False)
        q, v = random_state(rng, tree)
        tau = np.concatenate([np.zeros(6), rng.normal(size=tree.nv - 6)])
        external = rng.normal(size=(n, 6))
        a = tree.forward_dynamics(q, v, tau, external)
        step, whole, poses = 1e-5, tree.bodies(q, v), tree.poses(q)
        after = tree.bodies(tree.step(q, v, step), v + step * a).momentum
        before = tree.bodies(tree.step(q, v, -step), v - step * a).momentum
        force = whole.mass * np.array([0.0, 0.0, -9.81])
        moment = np.zeros(3)
        for pose, wrench in zip(poses, external, strict=True):
            turn = pose[:3, :3]
            force = force + turn @ wrench[:3]
            moment += turn @ wrench[3:] + np.cross(pose[:3, 3] - whole.centre_of_mass, turn @ wrench[:3])
        np.testing.assert_allclose(
            (after - before) / (2 * step), [*force, *moment], rtol=0, atol=1e-6 * whole.mass * 9.81
        )


@pytest.mark.parametrize("floating_base", [False, True])
def test_turning_the_whole_scene_changes_no_acceleration(floating_base: bool) -> None:
    rng = np.random.default_rng(5)
    description = random_description(rng, 8, kinds=ALL, floating_base=floating_base)
    turn, shift = random_rotation(rng), rng.normal(size=3)
    scene = np.eye(4)
    scene[:3, :3], scene[:3, 3] = turn, shift
    placements = description.placements.copy()
    placements[0] = scene @ placements[0]
    tree = description.tree()
    turned = description.tree(placements=placements, gravity=turn @ description.gravity)
    q, v = random_state(rng, tree)
    tau, external = rng.normal(size=tree.nv), rng.normal(size=(8, 6))
    a = tree.forward_dynamics(q, v, tau, external)
    assert relative(turned.forward_dynamics(q, v, tau, external), a) < 1e-10
    assert relative(turned.inverse_dynamics(q, v, a, external), tree.inverse_dynamics(q, v, a, external)) < 1e-10
    assert relative(turned.mass_matrix(q), tree.mass_matrix(q)) < 1e-10
    np.testing.assert_allclose(turned.poses(q), scene @ tree.poses(q), rtol=0, atol=1e-12)
    here, there = tree.bodies(q, v), turned.bodies(q, v)
    np.testing.assert_allclose(there.centre_of_mass, turn @ here.centre_of_mass + shift, rtol=0, atol=1e-12)
    np.testing.assert_allclose(there.momentum[3:], turn @ here.momentum[3:], rtol=0, atol=1e-11)
    # Without turning gravity along, the scene is another one.
    assert relative(description.tree(placements=placements).forward_dynamics(q, v, tau, external), a) > 1e-3


def test_a_floating_tree_turned_by_its_own_state_accelerates_alike_in_its_own_axes() -> None:
    rng = np.random.default_rng(6)
    description = random_description(rng, 5, floating_base=True)
    description.placements[0] = np.eye(4)
    tree = description.tree()
    q, v = random_state(rng, tree)
    turn, tau = random_rotation(rng), rng.normal(size=tree.nv)
    moved = q.copy()
    moved[:3] = turn @ q[:3]
    moved[3:7] = (Rotation.from_matrix(turn) * Rotation.from_quat(q[3:7])).as_quat()
    turned = description.tree(gravity=turn @ description.gravity)
    assert relative(turned.forward_dynamics(moved, v, tau), tree.forward_dynamics(q, v, tau)) < 1e-10


def renumbered(description: Description, order: np.ndarray) -> Description:
    """The same bodies, body order[k] first named k; parents may then come after their children."""
    place = {int(old): new for new, old in enumerate(order)}
    parents = [place[description.parents[old]] if description.parents[old] >= 0 else -1 for old in order]
    fields = {name: getattr(description, name)[order] for name in ("axes", "placements", "masses", "centres")}
    rotors = description.rotors[speeds_in(description, order)]
    return replace(
        description,
        parents=parents,
        types=[description.types[old] for old in order],
        inertias=description.inertias[order],
        rotors=rotors,
        **fields,
    )


def speeds_in(description: Description, order: np.ndarray) -> list[int]:
    """Elements of v as they stand in a tree of bodies in another order."""
    layout = description.tree(rotors=None).layout
    return [int(s) for old in order for s in range(layout.v_start[old], layout.v_start[old] + layout.v_count[old])]


@pytest.mark.parametrize("seed", range(5))
def test_bodies_may_be_numbered_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    description = random_description(rng, 9, kinds=ALL)
    order = rng.permutation(9)
    tree, other = description.tree(), renumbered(description, order).tree()
    assert any(parent > k for k, parent in enumerate(other.layout.parents))
    joints = speeds_in(description, order)
    q, v = random_state(rng, tree)
    tau, external = rng.normal(size=tree.nv), rng.normal(size=(9, 6))
    a = tree.forward_dynamics(q, v, tau, external)
    state = q[joints], v[joints]
    assert relative(other.forward_dynamics(*state, tau[joints], external[order]), a[joints]) < 1e-10
    assert relative(other.inverse_dynamics(*state, a[joints], external[order]), tau[joints]) < 1e-10
    assert relative(other.mass_matrix(q[joints]), tree.mass_matrix(q)[np.ix_(joints, joints)]) < 1e-12
    for new, old in enumerate(order):
        assert np.abs(other.jacobian(q[joints], new) - tree.jacobian(q, int(old))[:, joints]).max() < 1e-12
    found = tree.forward_dynamics_derivatives(q, v, tau, external)
    for mine, same in zip(other.forward_dynamics_derivatives(*state, tau[joints], external[order]), found, strict=True):
        assert relative(mine, same[np.ix_(joints, joints)]) < 1e-9
    assert np.abs(other.poses(q[joints]) - tree.poses(q)[order]).max() < 1e-12
    assert other.bodies(*state).kinetic_energy == pytest.approx(tree.bodies(q, v).kinetic_energy, rel=1e-12)


def test_wrenches_superpose() -> None:
    """On one body and on several branches: what they do together is the sum of what each does."""
    rng = np.random.default_rng(7)
    tree = random_tree(rng, 10)
    q, v = random_state(rng, tree)
    tau, none = rng.normal(size=tree.nv), np.zeros((10, 6))
    one, two = rng.normal(size=(2, 10, 6))
    a = [tree.forward_dynamics(q, v, tau, wrenches) for wrenches in (one, two, one + two, none)]
    np.testing.assert_allclose(a[0] + a[1] - a[3], a[2], rtol=0, atol=1e-9 * np.abs(a[2]).max())
    shares = sum(tree.propagate_force(q, i, one[i]) for i in range(10))
    difference = tree.inverse_dynamics(q, v, tau) - tree.inverse_dynamics(q, v, tau, one)
    np.testing.assert_allclose(difference, shares, rtol=0, atol=1e-11 * np.abs(shares).max())


@pytest.mark.parametrize("floating_base", [False, True])
def test_the_jacobian_gives_velocities_and_virtual_power(floating_base: bool) -> None:
    """J v is how the body's pose changes, and (J' f).v = f.(J v)."""
    rng = np.random.default_rng(8)
    tree = random_tree(rng, 7, kinds=ALL, floating_base=floating_base)
    q, v = random_state(rng, tree)
    step = 1e-6
    after, before, here = tree.poses(tree.step(q, v, step)), tree.poses(tree.step(q, v, -step)), tree.poses(q)
    for body in range(7):
        rate = np.linalg.inv(here[body]) @ (after[body] - before[body]) / (2 * step)
        twist = tree.jacobian(q, body) @ v
        seen = [*rate[:3, 3], rate[2, 1], rate[0, 2], rate[1, 0]]
        np.testing.assert_allclose(twist, seen, rtol=0, atol=1e-8 * max(1.0, np.abs(twist).max()))
        wrench = rng.normal(size=6)
        assert tree.propagate_force(q, body, wrench) @ v == pytest.approx(wrench @ twist, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("floating_base", [False, True])
def test_the_mass_matrix_is_symmetric_positive_and_the_slope_of_torque_by_acceleration(floating_base: bool) -> None:
    rng = np.random.default_rng(9)
    for n in (1, 4, 11):
        tree = random_tree(rng, n, kinds=ALL, floating_base=floating_base)
        q, v = random_state(rng, tree)
        matrix, bias = tree.mass_matrix(q), tree.bias_forces(q, v)
        np.testing.assert_array_equal(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix)[0] > 0.0
        columns = [tree.inverse_dynamics(q, v, unit) - bias for unit in np.eye(tree.nv)]
        np.testing.assert_allclose(np.array(columns).T, matrix, rtol=0, atol=1e-11 * np.abs(matrix).max())
        assert 0.5 * v @ matrix @ v == pytest.approx(tree.bodies(q, v).kinetic_energy, rel=1e-12)


def test_rotors_add_to_the_diagonal_and_weigh_nothing() -> None:
    rng = np.random.default_rng(10)
    description = random_description(rng, 6)
    bare, tree = description.tree(rotors=np.zeros(6)), description.tree()
    q, v = random_state(rng, tree)
    np.testing.assert_allclose(tree.mass_matrix(q) - bare.mass_matrix(q), np.diag(description.rotors), atol=1e-12)
    np.testing.assert_array_equal(tree.bias_forces(q, v), bare.bias_forces(q, v))
    spin = 0.5 * description.rotors @ v**2
    assert tree.bodies(q, v).kinetic_energy - bare.bodies(q, v).kinetic_energy == pytest.approx(spin)


@pytest.mark.parametrize("floating_base", [False, True])
def test_gravity_forces_are_the_slope_of_the_potential_energy(floating_base: bool) -> None:
    rng = np.random.default_rng(11)
    description = random_description(rng, 8, kinds=ALL, floating_base=floating_base)
    tree = description.tree(gravity=np.array([1.0, -2.0, -9.0]))
    q, _ = random_state(rng, tree)
    slope = [
        (
            tree.bodies(tree.step(q, unit, 1e-5)).potential_energy
            - tree.bodies(tree.step(q, unit, -1e-5)).potential_energy
        )
        / 2e-5
        for unit in np.eye(tree.nv)
    ]
    gravity = tree.gravity_forces(q)
    np.testing.assert_allclose(slope, gravity, rtol=0, atol=1e-8 * np.abs(gravity).max())


def test_speed_dependent_forces_do_no_work_of_their_own() -> None:
    """With C half the slope of the bias by speed (Christoffel), M' - 2 C is skew: C + C' = M' along the motion."""
    rng = np.random.default_rng(12)
    tree = random_tree(rng, 7)
    q, v = random_state(rng, tree)
    _, slope, _ = tree.inverse_dynamics_derivatives(q, v, np.zeros(7))
    rate = (tree.mass_matrix(q + 1e-6 * v) - tree.mass_matrix(q - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(0.5 * (slope + slope.T), rate, rtol=0, atol=1e-7 * np.abs(rate).max())
    np.testing.assert_allclose(
        0.5 * slope @ v, tree.bias_forces(q, v) - tree.gravity_forces(q), rtol=0, atol=1e-10 * np.abs(slope).max()
    )
    assert 0.5 * v @ rate @ v == pytest.approx(v @ (tree.bias_forces(q, v) - tree.gravity_forces(q)), rel=1e-6)
