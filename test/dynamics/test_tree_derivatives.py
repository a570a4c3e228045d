"""Exact derivatives of inverse and forward dynamics, against Pinocchio and against differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from random_trees import full, random_state, random_tree, random_twin, wrenches_of

from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.tree import Tree

ALL = ("revolute", "revolute", "prismatic", "fixed")


def off(found: np.ndarray, wanted: np.ndarray) -> float:
    """Norm of the difference relative to the norm of what is wanted; a single joint's slope by its speed is 0."""
    wanted = np.asarray(wanted).reshape(found.shape)
    return float(np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-3))


@pytest.mark.parametrize("n", range(1, 31))
def test_derivatives_of_random_trees_are_those_of_pinocchio(n: int) -> None:
    """Wrenches on all bodies, fixed in their frames."""
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(500 + n)
    twin = random_twin(rng, n, kinds=ALL, branched=n % 3 != 0, floating_base=n % 2 == 0)
    tree, model, data = twin.tree, twin.model, twin.data
    q, v = random_state(rng, tree)
    a, tau, external = rng.normal(size=tree.nv), 5.0 * rng.normal(size=tree.nv), rng.normal(size=(n, 6))
    wrenches = wrenches_of(twin, external)
    pin.computeRNEADerivatives(model, data, q, v, a, wrenches)
    wanted = [data.dtau_dq.copy(), data.dtau_dv.copy(), full(pin.crba(model, data, q))]
    for found, one in zip(tree.inverse_dynamics_derivatives(q, v, a, external), wanted, strict=True):
        assert off(found, one) < 1e-9
    if np.linalg.cond(wanted[2]) <= 1e6:
        pin.computeABADerivatives(model, data, q, v, tau, wrenches)
        wanted = [data.ddq_dq.copy(), data.ddq_dv.copy(), full(data.Minv)]
        for found, one in zip(tree.forward_dynamics_derivatives(q, v, tau, external), wanted, strict=True):
            assert off(found, one) < 1e-9


def test_most_random_trees_are_well_enough_conditioned_to_be_compared() -> None:
    """The limit of 1e6 in the test above must not let the comparison slip away."""
    counted = 0
    for n in range(1, 31):
        rng = np.random.default_rng(500 + n)
        tree = random_tree(rng, n, kinds=ALL, branched=n % 3 != 0, floating_base=n % 2 == 0)
        counted += np.linalg.cond(tree.mass_matrix(random_state(rng, tree)[0])) <= 1e6
    assert counted >= 28


def differences(function: Callable[[np.ndarray], np.ndarray], size: int, step: float = 1e-5) -> np.ndarray:
    """Central differences of function(change (size,)) -> (m,) at 0, columns by change."""
    changes = step * np.eye(size)
    return np.array([(function(change) - function(-change)) / (2.0 * step) for change in changes]).T


@pytest.mark.parametrize("floating_base", [False, True])
def test_derivatives_are_the_limits_of_differences(floating_base: bool) -> None:
    """Where no other library is at hand; a floating base moves along its own axes."""
    rng = np.random.default_rng(3)
    tree = random_tree(rng, 7, floating_base=floating_base)
    q, v = random_state(rng, tree)
    tau, external = rng.normal(size=tree.nv), rng.normal(size=(7, 6))
    dq, dv, dtau = tree.forward_dynamics_derivatives(q, v, tau, external)
    n = tree.nv
    assert off(differences(lambda d: tree.forward_dynamics(tree.step(q, d, 1.0), v, tau, external), n), dq) < 1e-7
    assert off(differences(lambda d: tree.forward_dynamics(q, v + d, tau, external), n), dv) < 1e-7
    assert off(differences(lambda d: tree.forward_dynamics(q, v, tau + d, external), n), dtau) < 1e-7
    a = rng.normal(size=n)
    dq, dv, matrix = tree.inverse_dynamics_derivatives(q, v, a, external)
    assert off(differences(lambda d: tree.inverse_dynamics(tree.step(q, d, 1.0), v, a, external), n), dq) < 1e-7
    assert off(differences(lambda d: tree.inverse_dynamics(q, v + d, a, external), n), dv) < 1e-7
    np.testing.assert_allclose(matrix, tree.mass_matrix(q), rtol=0, atol=1e-12)


def test_inverse_and_forward_derivatives_belong_together() -> None:
    """d qdd/d q = -M^-1 d ID/d q at qdd, d qdd/d v alike, d qdd/d tau = M^-1 (system 8)."""
    rng = np.random.default_rng(4)
    tree = random_tree(rng, 9, floating_base=True)
    q, v = random_state(rng, tree)
    tau, external = rng.normal(size=tree.nv), rng.normal(size=(9, 6))
    dq, dv, matrix = tree.inverse_dynamics_derivatives(q, v, tree.forward_dynamics(q, v, tau, external), external)
    fq, fv, ftau = tree.forward_dynamics_derivatives(q, v, tau, external)
    for found, wanted in ((-matrix @ fq, dq), (-matrix @ fv, dv), (matrix @ ftau, np.eye(tree.nv))):
        assert off(found, wanted) < 1e-10


def arm_state() -> tuple[Tree, np.ndarray, np.ndarray, np.ndarray]:
    tree = arm_tree([0.33, 0.22, 0.034, 0.018, 0.017])
    rng = np.random.default_rng(1)
    return tree, rng.uniform(-2, 2, 5), rng.normal(size=5), 5.0 * rng.normal(size=5)


def test_d_001_2_differences_are_not_needed_and_lose_digits() -> None:
    """Document 001 (5), (6): differences of (3), here central; the exact slopes are nearer to Pinocchio's."""
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(12)
    twin = random_twin(rng, 5, branched=False, kinds=("revolute",))
    tree = twin.tree
    q, v = random_state(rng, tree)
    tau = rng.normal(size=5)
    pin.computeABADerivatives(twin.model, twin.data, q, v, tau)
    dq, dv, dtau = tree.forward_dynamics_derivatives(q, v, tau)
    wanted = twin.data.ddq_dq.copy(), twin.data.ddq_dv.copy(), full(twin.data.Minv)
    assert max(off(*pair) for pair in zip((dq, dv, dtau), wanted, strict=True)) < 1e-12
    errors = [
        off(differences(lambda d: tree.forward_dynamics(q + d, v, tau), 5, step), wanted[0])
        for step in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    ]
    assert 1e3 * off(dq, wanted[0]) < min(errors) < 1e-7  # the best step is not known beforehand
    assert max(errors) > 1e-7


def test_d_001_2_the_left_side_of_5_is_a_slope_by_position_not_by_acceleration() -> None:
    """Printed is d/da with a nowhere defined; read as acceleration, the slope of (2) by it is (7), the mass matrix."""
    tree, q, v, tau = arm_state()
    a = tree.forward_dynamics(q, v, tau)
    by_q, _, _ = tree.inverse_dynamics_derivatives(q, v, a)
    by_a = differences(lambda d: tree.inverse_dynamics(q, v, a + d), 5, 1e-2)
    assert off(by_a, tree.mass_matrix(q)) < 1e-10
    assert off(by_a, by_q) > 0.5


def test_d_001_2_the_filter_needs_the_inverse_of_the_slope_7() -> None:
    """(7) is the mass matrix; what a torque does to the acceleration is its inverse."""
    tree, q, v, tau = arm_state()
    _, _, dtau = tree.forward_dynamics_derivatives(q, v, tau)
    by_tau = differences(lambda d: tree.forward_dynamics(q, v, tau + d), 5, 1e-2)
    assert off(dtau, by_tau) < 1e-9
    assert off(dtau @ tree.mass_matrix(q), np.eye(5)) < 1e-10
    assert off(tree.mass_matrix(q), by_tau) > 0.9


def test_arm_derivatives_are_those_of_pinocchio_for_rows_too() -> None:
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(6)
    tree, _, _, _ = arm_state()
    d = tree.layout
    model = pin.Model()
    for i in range(5):
        made = pin.JointModelRevoluteUnaligned(d.axes[i])
        joint = model.addJoint(i, made, pin.SE3(d.rotations[i], d.positions[i]), f"joint_{i}")
        centre = d.first_moments[i] / d.masses[i]
        arm = d.masses[i] * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        model.appendBodyToJoint(joint, pin.Inertia(d.masses[i], centre, d.inertias[i] - arm), pin.SE3.Identity())
    model.armature = np.array(d.rotor_inertias)
    data = model.createData()
    q, v, tau = rng.uniform(-3, 3, (20, 5)), rng.normal(size=(20, 5)), 5.0 * rng.normal(size=(20, 5))
    rows = tree.forward_dynamics_derivatives(q, v, tau)
    for k in range(20):
        pin.computeABADerivatives(model, data, q[k], v[k], tau[k])
        wanted = data.ddq_dq, data.ddq_dv, full(data.Minv)
        single = tree.forward_dynamics_derivatives(q[k], v[k], tau[k])
        for one, row, right in zip(single, rows, wanted, strict=True):
            assert off(one, right) < 1e-9
            assert off(row[k], right) < 1e-9
