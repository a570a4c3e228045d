"""One file, urdf/youbot.urdf, loaded as it stands by three readers: Pinocchio, MuJoCo and our tree."""

from __future__ import annotations

import numpy as np
import pytest
from mujoco_urdf import in_mujoco

from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.resources import urdf_path

PATH = urdf_path("youbot.urdf")
TOLERANCE = 1e-9


def in_pinocchio(floating: bool):
    pin = pytest.importorskip("pinocchio")
    if floating:
        return pin, pin.buildModelFromUrdf(str(PATH), pin.JointModelFreeFlyer())
    return pin, pin.buildModelFromUrdf(str(PATH))


TREE = Tree.from_urdf(PATH)
FIXED = ("", "base_footprint_joint", "arm_joint_0", "gripper_palm_joint")
MOVING = [name for name in TREE.joint_names if name not in FIXED]


def poses(count: int = 12) -> list[dict[str, float]]:
    """Places of all joints, at zero first, fingers within their travel, everything else anywhere."""
    random = np.random.default_rng(4)
    drawn = [
        {name: random.uniform(0.0, 0.0115) if "finger" in name else random.uniform(-3.1, 3.1) for name in MOVING}
        for _ in range(count)
    ]
    return [dict.fromkeys(MOVING, 0.0), *drawn]


def of_tree(place: dict[str, float]) -> np.ndarray:
    """Positions (nq,) in the order of our tree."""
    return np.array([place[name] for name in MOVING])


def of_pinocchio(pin, model, place: dict[str, float]) -> np.ndarray:
    """Positions in Pinocchio's order; joints without end stops are a cosine and a sine."""
    q = pin.neutral(model)
    for name, value in place.items():
        joint = model.joints[model.getJointId(name)]
        q[joint.idx_q : joint.idx_q + joint.nq] = [value] if joint.nq == 1 else [np.cos(value), np.sin(value)]
    return q


def test_all_three_know_the_same_joints_and_links():
    _, pinocchio = in_pinocchio(floating=False)
    _, mujoco = in_mujoco(PATH)
    assert len(MOVING) == 4 + 5 + 2
    assert set(MOVING) == set(pinocchio.names) - {"universe"}
    assert set(MOVING) == {mujoco.joint(k).name for k in range(mujoco.njnt)}
    links = {mujoco.body(k).name for k in range(1, mujoco.nbody)}
    frames = {frame.name for frame in pinocchio.frames}
    # The root link is the world to MuJoCo.
    assert set(TREE.names) - links <= {"base_footprint"}
    assert set(TREE.names) <= frames


def test_mass_and_centre_of_mass_are_one():
    pin, pinocchio = in_pinocchio(floating=True)
    mujoco, model = in_mujoco(PATH)
    data, state = pinocchio.createData(), mujoco.MjData(model)
    mass = float(TREE.layout.masses.sum())
    assert model.body_mass.sum() == pytest.approx(mass, abs=TOLERANCE)
    assert pin.computeTotalMass(pinocchio) == pytest.approx(mass, abs=TOLERANCE)
    for place in poses():
        ours = TREE.bodies(of_tree(place), np.zeros(TREE.nv)).centre_of_mass
        for name, value in place.items():
            state.joint(name).qpos = value
        mujoco.mj_kinematics(model, state)
        mujoco.mj_comPos(model, state)
        theirs = pin.centerOfMass(pinocchio, data, of_pinocchio(pin, pinocchio, place))
        np.testing.assert_allclose(ours, state.subtree_com[0], rtol=0, atol=TOLERANCE)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


def test_frames_of_all_links_and_axes_of_all_joints_are_one():
    pin, pinocchio = in_pinocchio(floating=False)
    mujoco, model = in_mujoco(PATH)
    data, state = pinocchio.createData(), mujoco.MjData(model)
    for place in poses():
        ours = dict(zip(TREE.names, TREE.poses(of_tree(place)), strict=True))
        for name, value in place.items():
            state.joint(name).qpos = value
        mujoco.mj_kinematics(model, state)
        pin.framesForwardKinematics(pinocchio, data, of_pinocchio(pin, pinocchio, place))
        for name, pose in ours.items():
            frame = data.oMf[pinocchio.getFrameId(name, pin.BODY)]
            np.testing.assert_allclose(pose, frame.homogeneous, rtol=0, atol=TOLERANCE, err_msg=name)
            if name != "base_footprint":
                body = state.body(name)
                np.testing.assert_allclose(pose[:3, 3], body.xpos, rtol=0, atol=TOLERANCE, err_msg=name)
                np.testing.assert_allclose(pose[:3, :3].ravel(), body.xmat, rtol=0, atol=TOLERANCE, err_msg=name)


def test_mass_matrices_and_gravity_are_one():
    """They hold every mass, centre of mass and inertia."""
    pin, pinocchio = in_pinocchio(floating=False)
    mujoco, model = in_mujoco(PATH)
    data, state = pinocchio.createData(), mujoco.MjData(model)
    to_mujoco = [int(model.joint(name).dofadr[0]) for name in MOVING]
    to_pinocchio = [pinocchio.joints[pinocchio.getJointId(name)].idx_v for name in MOVING]
    assert model.opt.gravity[2] == pinocchio.gravity.linear[2] == -9.81
    for place in poses():
        q, at = of_tree(place), of_pinocchio(pin, pinocchio, place)
        ours = TREE.mass_matrix(q)
        for name, value in place.items():
            state.joint(name).qpos = value
        mujoco.mj_forward(model, state)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, state, full)
        np.testing.assert_allclose(ours, full[np.ix_(to_mujoco, to_mujoco)], rtol=0, atol=TOLERANCE)
        upper = np.triu(pin.crba(pinocchio, data, at))
        whole = upper + np.triu(upper, 1).T
        np.testing.assert_allclose(ours, whole[np.ix_(to_pinocchio, to_pinocchio)], rtol=0, atol=TOLERANCE)
        gravity = TREE.gravity_forces(q)
        np.testing.assert_allclose(gravity, state.qfrc_bias[to_mujoco], rtol=0, atol=TOLERANCE)
        theirs = pin.computeGeneralizedGravity(pinocchio, data, at)
        np.testing.assert_allclose(gravity, theirs[to_pinocchio], rtol=0, atol=TOLERANCE)


def test_limits_are_one():
    _, pinocchio = in_pinocchio(floating=False)
    _, model = in_mujoco(PATH)
    for name, limits in zip(TREE.joint_names, TREE.limits, strict=True):
        if name not in MOVING or name.startswith("wheel"):
            continue
        np.testing.assert_allclose(model.joint(name).range, [limits.lower, limits.upper], rtol=0, atol=TOLERANCE)
        joint = pinocchio.joints[pinocchio.getJointId(name)]
        k, v = joint.idx_q, joint.idx_v
        theirs = [pinocchio.lowerPositionLimit[k], pinocchio.upperPositionLimit[k]]
        np.testing.assert_allclose(theirs, [limits.lower, limits.upper], rtol=0, atol=TOLERANCE)
        assert pinocchio.velocityLimit[v] == limits.velocity
        assert pinocchio.effortLimit[v] == limits.effort
