"""The robot as made for MuJoCo: its masses, its wheels, its arm; and MuJoCo that is missing or too old."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mujoco_arms import fixed_arm_model, with_rollers
from repository import ROOT

from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.thermal_motor import GearedMotor
from youbot_dynamics.errors import ModelError, ResourceError
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.mujoco_youbot import engine
from youbot_dynamics.simulation.mujoco_youbot._bodies import arm_motors
from youbot_dynamics.simulation.mujoco_youbot._model import contact_model
from youbot_dynamics.simulation.truth import BaseTruth, load_arm_truth, load_truth

ROBOT = load_robot()
ARM = ROBOT.arm.model()
TRUTH = load_truth(0)
RADII = np.array([0.0475, 0.0478, 0.0471, 0.0475])


def loaded(truth: BaseTruth, arm: ArmModel = ARM, **more):
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(contact_model(truth, arm, **more))
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return mujoco, model, data


def lowest_points(mujoco, model, data) -> np.ndarray:
    """Heights (4,) above the floor of the lowest spheres of the wheels."""
    mujoco.mj_kinematics(model, data)
    heights = {name: np.inf for name in ("fl", "fr", "bl", "br")}
    for k in range(model.ngeom):
        body = model.body(model.geom_bodyid[k]).name
        if "_roller_" in body:
            wheel = body.split("_roller_")[0].removeprefix("wheel_link_")
            heights[wheel] = min(heights[wheel], data.geom_xpos[k, 2] - model.geom_size[k, 0])
    return np.array(list(heights.values()))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_whole_robot_has_the_mass_and_yaw_inertia_of_the_truth(seed):
    truth, arm = load_truth(seed), load_arm_truth(seed).model(ROBOT)
    for with_arm in (False, True):
        mujoco, model, data = loaded(truth, arm, with_arm=with_arm)
        assert model.body_mass.sum() == pytest.approx(truth.mass, rel=1e-12)
        centre = data.subtree_com[0]
        found = 0.0
        for k in range(1, model.nbody):
            turned = data.ximat[k].reshape(3, 3)
            found += (turned @ np.diag(model.body_inertia[k]) @ turned.T)[2, 2]
            found += model.body_mass[k] * np.sum((data.xipos[k] - centre)[:2] ** 2)
        assert found == pytest.approx(truth.yaw_inertia, rel=1e-9)


def test_a_held_arm_leaves_the_mass_of_one_that_moves_where_it_is():
    position = np.array([2.5, 1.2, -2.0, 1.5, 2.0])
    centres = []
    for with_arm in (False, True):
        mujoco, model, data = loaded(TRUTH, with_arm=with_arm, position=position)
        if with_arm:
            for name, angle in zip(ARM.tree.joint_names, position, strict=True):
                data.joint(name).qpos = angle
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        centres.append(data.subtree_com[0].copy())
    np.testing.assert_allclose(*centres, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rollers", [6, 9])
def test_a_wheel_of_rollers_weighs_what_its_link_does(rollers):
    _, model, data = loaded(dataclasses.replace(with_rollers(TRUTH, rollers), roller_phase=(0.0, 0.1, 0.2, -0.3)))
    for name in ("fl", "fr", "bl", "br"):
        body = model.body(f"wheel_link_{name}").id
        parts = [k for k in range(model.nbody) if model.body(k).name.startswith(f"wheel_link_{name}")]
        assert len(parts) == 1 + rollers
        assert model.body_subtreemass[body] == pytest.approx(1.4, rel=1e-12)
        whole = np.zeros((3, 3))
        for k in parts:
            turned, off = data.ximat[k].reshape(3, 3), data.xipos[k] - data.xpos[body]
            whole += turned @ np.diag(model.body_inertia[k]) @ turned.T
            whole += model.body_mass[k] * (off @ off * np.eye(3) - np.outer(off, off))
        np.testing.assert_allclose(np.diag(whole), [0.001463554, 0.001579375, 0.001463554], rtol=1e-9)
        rotor = model.dof_armature[model.joint(f"wheel_joint_{name}").dofadr[0]]
        assert whole[1, 1] + rotor == pytest.approx(TRUTH.wheel_inertia, rel=1e-9)


@pytest.mark.parametrize("rollers", [6, 9])
def test_wheels_of_any_radii_and_phases_roll_on_circles_of_their_radii(rollers):
    """All four lowest points stay on the floor whatever the angle of the wheels, lower at most by the spheres' gaps."""
    errors = tuple((RADII / TRUTH.wheel_radius - 1.0).tolist())
    truth = dataclasses.replace(TRUTH, wheel_radius_error=errors, roller_phase=(0.0, 0.1, -0.2, 0.3))
    mujoco, model, data = loaded(with_rollers(truth, rollers))
    names = ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")
    gap = 0.0
    for angle in np.linspace(0.0, 2.0 * np.pi / rollers, 97):
        for name in names:
            data.joint(name).qpos = angle
        heights = lowest_points(mujoco, model, data)
        assert np.all(heights > -1e-12)
        gap = max(gap, float(heights.max()))
    assert 1e-7 < gap < 4e-6


def test_phases_turn_the_rollers_on_as_rolling_forward_does():
    """A wheel that begins a quarter of a pitch on is one that has turned so far."""
    pitch = 2.0 * np.pi / 6.0
    truth = dataclasses.replace(TRUTH, rollers=6.0, roller_phase=(0.0, 0.25, -0.25, 0.1))
    mujoco, model, data = loaded(truth)
    _, zero, turned = loaded(dataclasses.replace(truth, roller_phase=(0.0, 0.0, 0.0, 0.0)))
    for name, share in zip(("fl", "fr", "bl", "br"), truth.roller_phase, strict=True):
        turned.joint(f"wheel_joint_{name}").qpos = share * pitch
    mujoco.mj_kinematics(zero, turned)
    for name in ("fl", "fr", "bl", "br"):
        for k in range(6):
            body = f"wheel_link_{name}_roller_{k}"
            np.testing.assert_allclose(data.body(body).xpos, turned.body(body).xpos, rtol=0, atol=1e-12)


def test_the_arm_has_the_mass_matrix_gravity_and_limits_of_our_tree():
    mujoco = pytest.importorskip("mujoco")
    arm = load_arm_truth(2).model(ROBOT)
    model = mujoco.MjModel.from_xml_string(fixed_arm_model(arm, 1e-3))
    data = mujoco.MjData(model)
    random = np.random.default_rng(3)
    np.testing.assert_allclose(model.jnt_range, [[limit.lower, limit.upper] for limit in arm.tree.limits])
    model.dof_damping[:] = 0.0
    for _ in range(5):
        q = random.uniform(*model.jnt_range.T)
        v, a = random.normal(size=(2, 5))
        data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(data.qfrc_inverse, arm.tree.inverse_dynamics(q, v, a), atol=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"wheel_radius_error": (0.0, 0.0, 0.0)}, "radius_errors"),
        ({"wheel_radius_error": (0.0, 0.0, -3.0, 0.0)}, "radii[2]"),
        ({"roller_phase": (0.0, np.nan, 0.0, 0.0)}, "roller_phase[1]"),
        ({"mass": 0.0}, "mass"),
        ({"viscous_x": -1.0}, "viscous_x"),
        ({"lag": float("nan")}, "lag"),
    ],
)
def test_a_base_that_cannot_be_is_refused(change, words):
    with pytest.raises(ValueError) as caught:
        contact_model(dataclasses.replace(TRUTH, **change), ARM)
    assert words in str(caught.value)


@pytest.mark.parametrize(("change", "words"), [({"mass": 8.0}, "more than its parts"), ({"yaw_inertia": 0.2}, "yaw")])
def test_a_robot_lighter_than_its_parts_is_refused(change, words):
    with pytest.raises(ModelError, match=words):
        contact_model(dataclasses.replace(TRUTH, **change), ARM)


def test_rollers_that_make_no_wheel_are_refused():
    with pytest.raises(ModelError, match="from 4 on"):
        with_rollers(TRUTH, 3)
    with pytest.raises(ModelError, match="less than the wheel"):
        contact_model(dataclasses.replace(TRUTH, wheel_radius=0.15), ARM)


def test_a_gear_with_losses_of_its_own_is_refused():
    lossy = tuple(GearedMotor(motor.motor, motor.ratio, 0.8) for motor in ARM.motors)
    with pytest.raises(ModelError, match="efficiency.*0.8"):
        arm_motors(dataclasses.replace(ARM, motors=lossy))


def run_without(tmp_path: Path, fake: str, code: str) -> str:
    (tmp_path / "mujoco.py").write_text(fake)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CALL = """
from youbot_dynamics.errors import ResourceError
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
try:
    MujocoYoubot(load_truth(0), load_arm_truth(0), load_robot(), 0)
except ResourceError as problem:
    print(problem)
"""


def test_without_mujoco_a_typed_error_says_how_to_get_it(tmp_path):
    """Everything else is imported and made without it."""
    said = run_without(tmp_path, "raise ImportError('no module')", CALL)
    assert "package mujoco: got no Python package mujoco" in said and "pip install 'youbot_dynamics[sim]'" in said


def test_an_old_mujoco_is_refused(monkeypatch):
    old = type(sys)("mujoco")
    old.__version__ = "3.11.0"
    monkeypatch.setitem(sys.modules, "mujoco", old)
    with pytest.raises(ResourceError, match="version 3.11.0; expected 3.12"):
        engine()


PICTURE = """
import sys
from youbot_dynamics.errors import ResourceError
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
try:
    robot = MujocoYoubot(load_truth(0), load_arm_truth(0), load_robot(), 0)
    found = getattr(robot, sys.argv[1])()
except ResourceError as problem:
    print(problem)
else:
    print(found.shape, int(found.max()) - int(found.min()) > 100)
"""


def seen(what: str, folder: Path, gl: str) -> str:
    """What a process without a screen prints; MuJoCo may write a log into its folder."""
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment |= {"MUJOCO_GL": gl, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PICTURE, what]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_picture_is_drawn_without_a_screen_or_refused_with_the_remedy(tmp_path):
    pytest.importorskip("mujoco")
    said = seen("picture", tmp_path, "egl")
    assert "(640, 960, 3) True" in said or "MUJOCO_GL" in said, said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mujoco opens windows elsewhere in another way")
@pytest.mark.parametrize("what", ["open_window", "picture"])
def test_without_a_screen_windows_are_refused_not_fatal(what, tmp_path):
    """MuJoCo's own viewer ends the process there."""
    pytest.importorskip("mujoco")
    assert "got no screen" in seen(what, tmp_path, "")
    assert not list(tmp_path.iterdir()), "MuJoCo wrote its log of errors"
