"""The dynamics of random trees, and of the arm, against Pinocchio and MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import Description, Twin, full, random_state, random_twin, relative, twin_of, wrenches_of

from youbot_dynamics.dynamics.tree import Tree, without_fixed_joints
from youbot_dynamics.resources import urdf_path

pin = pytest.importorskip("pinocchio")

ALL = ("revolute", "revolute", "prismatic", "fixed")
SIZES = range(1, 31)


def twin_number(n: int) -> tuple[Twin, np.random.Generator]:
    """n bodies: chains and branched trees, on the world and floating."""
    rng = np.random.default_rng(100 + n)
    return random_twin(rng, n, kinds=ALL, branched=n % 3 != 0, floating_base=n % 2 == 0), rng


def pinocchio_jacobian(twin: Twin, q: np.ndarray, body: int) -> np.ndarray:
    pin.computeJointJacobians(twin.model, twin.data, q)
    joint = twin.joints[body]
    if joint == 0:
        return np.zeros((6, twin.model.nv))
    columns = np.array(pin.getJointJacobian(twin.model, twin.data, joint, pin.LOCAL)).reshape(6, twin.model.nv)
    return twin.places[body].inverse().toActionMatrix() @ columns


@pytest.mark.parametrize("n", SIZES)
def test_dynamics_of_random_trees_with_wrenches_on_all_bodies(n: int) -> None:
    twin, rng = twin_number(n)
    tree, model, data = twin.tree, twin.model, twin.data
    for _ in range(3):
        q, v = random_state(rng, tree)
        a, tau, external = rng.normal(size=tree.nv), 5.0 * rng.normal(size=tree.nv), rng.normal(size=(n, 6))
        wrenches = wrenches_of(twin, external)
        assert relative(tree.inverse_dynamics(q, v, a, external), pin.rnea(model, data, q, v, a, wrenches)) < 1e-10
        assert relative(tree.bias_forces(q, v), pin.nonLinearEffects(model, data, q, v)) < 1e-10
        assert relative(tree.gravity_forces(q), pin.computeGeneralizedGravity(model, data, q)) < 1e-10
        assert relative(tree.mass_matrix(q), full(pin.crba(model, data, q))) < 1e-10
        for body in {0, n // 2, n - 1}:
            assert relative(tree.jacobian(q, body), pinocchio_jacobian(twin, q, body)) < 1e-10
        found = tree.forward_dynamics(q, v, tau, external)
        scale = np.abs(tau).max() + np.abs(tree.bias_forces(q, v)).max()
        assert np.abs(tree.inverse_dynamics(q, v, found, external) - tau).max() <= 1e-10 * scale
        assert relative(found, pin.aba(model, data, q, v, tau, wrenches)) < 1e-9


@pytest.mark.parametrize("n", SIZES)
def test_poses_centre_of_mass_momentum_and_energies_of_random_trees(n: int) -> None:
    twin, rng = twin_number(n)
    tree, model, data = twin.tree, twin.model, twin.data
    q, v = random_state(rng, tree)
    pin.forwardKinematics(model, data, q, v)
    for pose, joint, place in zip(tree.poses(q), twin.joints, twin.places, strict=True):
        np.testing.assert_allclose(pose, (data.oMi[joint] * place).homogeneous, rtol=0, atol=1e-11)
    whole = tree.bodies(q, v)
    # Pinocchio's own sums leave out what is fixed to the world.
    placed = [data.oMi[j] * place for j, place in zip(twin.joints, twin.places, strict=True)]
    masses = tree.layout.masses
    centres = [place.act(c) for place, c in zip(placed, twin.description.centres, strict=True)]
    assert whole.mass == pytest.approx(masses.sum(), rel=1e-14)
    np.testing.assert_allclose(whole.centre_of_mass, masses @ centres / masses.sum(), rtol=0, atol=1e-11)
    assert whole.potential_energy == pytest.approx(9.81 * masses @ np.array(centres)[:, 2], rel=1e-10)
    assert whole.kinetic_energy == pytest.approx(0.5 * v @ full(pin.crba(model, data, q)) @ v, rel=1e-10)
    pin.computeCentroidalMomentum(model, data, q, v)
    if 0 not in twin.joints:
        np.testing.assert_allclose(whole.momentum, data.hg.np, rtol=0, atol=1e-10 * np.abs(data.hg.np).max())
    np.testing.assert_allclose(whole.momentum[:3], data.hg.linear, rtol=0, atol=1e-10 * np.abs(data.hg.np).max())


@pytest.mark.parametrize("n", range(2, 31, 4))
def test_free_bodies_may_hang_on_others_and_on_the_world(n: int) -> None:
    """Floating joints anywhere: a swarm."""
    rng = np.random.default_rng(n)
    twin = random_twin(rng, n, kinds=("floating", "revolute", "fixed"))
    tree = twin.tree
    q, v = random_state(rng, tree)
    tau, external = rng.normal(size=tree.nv), rng.normal(size=(n, 6))
    found = tree.forward_dynamics(q, v, tau, external)
    assert relative(found, pin.aba(twin.model, twin.data, q, v, tau, wrenches_of(twin, external))) < 1e-9
    assert relative(tree.mass_matrix(q), full(pin.crba(twin.model, twin.data, q))) < 1e-10


def test_quaternion_of_a_little_wrong_length_counts_as_its_direction() -> None:
    rng = np.random.default_rng(5)
    tree = random_twin(rng, 4, floating_base=True).tree
    q, v = random_state(rng, tree)
    longer = q.copy()
    longer[3:7] *= 1.0005
    tau = rng.normal(size=tree.nv)
    assert relative(tree.forward_dynamics(longer, v, tau), tree.forward_dynamics(q, v, tau)) < 1e-10


def arm(rotors: list[float]) -> Tree:
    fingers = ["gripper_finger_joint_l", "gripper_finger_joint_r"]
    whole = Tree.from_urdf(urdf_path("youbot.urdf"), root="arm_link_0", locked=fingers, rotor_inertias=rotors)
    return without_fixed_joints(whole)


ROTORS = [0.33, 0.22, 0.034, 0.018, 0.017]


def test_arm_accelerates_as_in_mujoco() -> None:
    """The whole robot in MuJoCo, base fixed; wheels and fingers hold still under constraint forces of their own."""
    mujoco = pytest.importorskip("mujoco")
    text = urdf_path("youbot.urdf").read_text(encoding="utf-8")
    compiler = '<mujoco><compiler fusestatic="false" balanceinertia="false" discardvisual="true"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(text.replace('<robot name="youbot">', f'<robot name="youbot">{compiler}'))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    joints = [model.joint(f"arm_joint_{k}") for k in range(1, 6)]
    places, speeds = [int(j.qposadr[0]) for j in joints], [int(j.dofadr[0]) for j in joints]
    model.dof_armature[speeds] = ROTORS
    others = [k for k in range(model.nv) if k not in speeds]
    model.dof_armature[others] = 1e12  # wheels and fingers stay where they are
    tree = arm(ROTORS)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v, tau = rng.uniform(-3, 3, 5), 2.0 * rng.normal(size=5), 10.0 * rng.normal(size=5)
        data.qpos[places], data.qvel[speeds], data.qfrc_applied[speeds] = q, v, tau
        mujoco.mj_forward(model, data)
        assert relative(tree.forward_dynamics(q, v, tau), data.qacc[speeds]) < 1e-9
        assert relative(tree.bias_forces(q, v), data.qfrc_bias[speeds]) < 1e-9


def test_arm_accelerates_as_in_pinocchio() -> None:
    whole = pin.buildModelFromUrdf(str(urdf_path("youbot.urdf")))
    names = [f"arm_joint_{k}" for k in range(1, 6)]
    locked = [whole.getJointId(name) for name in whole.names[1:] if name not in names]
    model = pin.buildReducedModel(whole, locked, pin.neutral(whole))
    model.armature = np.array(ROTORS)
    data, tree = model.createData(), arm(ROTORS)
    assert list(tree.joint_names) == list(model.names[1:])
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, v, tau = rng.uniform(-3, 3, 5), 2.0 * rng.normal(size=5), 10.0 * rng.normal(size=5)
        assert relative(tree.forward_dynamics(q, v, tau), pin.aba(model, data, q, v, tau)) < 1e-9
        assert relative(tree.inverse_dynamics(q, v, tau), pin.rnea(model, data, q, v, tau)) < 1e-10
        assert relative(tree.mass_matrix(q), full(pin.crba(model, data, q))) < 1e-10


def test_one_joint_and_a_tree_without_gravity() -> None:
    """Smallest tree there is, and the largest share of zeros."""
    rng = np.random.default_rng(8)
    twin = random_twin(rng, 1)
    still = Description(**{**vars(twin.description), "gravity": np.zeros(3)})
    for one in (twin, twin_of(still)):
        q, v = random_state(rng, one.tree)
        tau = rng.normal(size=1)
        assert relative(one.tree.forward_dynamics(q, v, tau), pin.aba(one.model, one.data, q, v, tau)) < 1e-10
    assert not np.any(twin_of(still).tree.gravity_forces(np.array([0.3])))
