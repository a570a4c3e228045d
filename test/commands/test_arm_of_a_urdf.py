"""An arm of which only the URDF is known: its friction is identified, and what else needs a value says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import exit_code
from repository import ROOT

from youbot_dynamics.bringup_plan import BringupOptions, plan
from youbot_dynamics.errors import ModelError, ParameterError
from youbot_dynamics.identification.excitation import arm_motion
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, joint_state_cdr
from youbot_dynamics.robot import assumptions, load_robot, values_of

YOUBOT = load_robot()
COULOMB, VISCOUS = (1.5, 0.6), (0.8, 0.3)
LEAST = """\
/**:
  ros__parameters:
    robot:
      robot_id: bench
      arm: {urdf: bench.urdf}
"""
FINGERS = "".join(
    f'<link name="{side}"/><joint name="{side}_finger" type="prismatic"><parent link="l2"/><child link="{side}"/>'
    '<limit lower="0" upper="0.02" velocity="1" effort="5"/></joint>'
    for side in ("left", "right")
)


def urdf(folder: Path, more: str = FINGERS) -> Path:
    """An arm of two joints on a fixed pedestal, with two fingers at its end."""
    links = "".join(
        f'<link name="l{k}"><inertial><origin xyz="{0.15 * k} 0 0"/><mass value="{mass}"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.02"/></inertial></link>'
        for k, mass in ((1, 3.0), (2, 1.5))
    )
    joints = "".join(
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="l{k}"/><origin xyz="{x} 0 0"/>'
        f'<axis xyz="0 1 0"/><limit lower="{low}" upper="2" velocity="3" effort="40"/></joint>'
        for k, (name, parent, x, low) in enumerate((("shoulder", "stand", 0.0, -2), ("elbow", "l1", 0.3, 0.5)), 1)
    )
    stand = '<link name="floor"/><link name="stand"/><joint name="bolts" type="fixed"><parent link="floor"/>'
    file = folder / "bench.urdf"
    file.write_text(f'<robot name="r">{stand}<child link="stand"/></joint>{links}{joints}{more}</robot>')
    return file


@pytest.mark.parametrize("in_yaml", [False, True])
def test_the_urdf_alone_is_a_robot_file(tmp_path: Path, in_yaml: bool) -> None:
    file = urdf(tmp_path)
    if in_yaml:
        file = tmp_path / "bench.yaml"
        file.write_text(LEAST)
    robot = load_robot(robot_file=file)
    assert (robot.robot_id, robot.has_arm, robot.has_base) == ("bench", True, False)
    assert robot.driver.arm_joints == ("shoulder", "elbow")  # the chain ends where it branches into fingers
    assert (robot.arm.root_link, robot.arm.tip_link) == ("floor", "l2")
    assert robot.arm.rest_position == (0.0, 0.5) and robot.arm.excitation_centre == (0.0, 1.25)
    assert robot.arm.tree().joint_names == ("shoulder", "elbow")
    assert not robot.arm.is_known and YOUBOT.arm.is_known
    told = assumptions(file)
    assert "unknown until identified or given: friction and motor of its joints" in told and "nan" not in told
    assert "wheel" not in told and "base." not in told


def test_a_rotor_without_its_gear_is_told_to_count_as_none(tmp_path: Path) -> None:
    urdf(tmp_path)
    file = tmp_path / "bench.yaml"
    for motor, told in (("rotor_inertia: 1.0e-5", True), ("rotor_inertia: 1.0e-5, gear_ratio: 50.0", False)):
        file.write_text(LEAST.replace("{urdf: bench.urdf}", f"{{urdf: bench.urdf, joint_2: {{motor: {{{motor}}}}}}}"))
        assert ("rotor_inertia of joint_2 counts as 0: it needs the gear_ratio" in assumptions(file)) == told


def test_a_value_of_a_joint_that_is_given_is_known_and_the_others_are_not(tmp_path: Path) -> None:
    urdf(tmp_path)
    file = tmp_path / "bench.yaml"
    file.write_text(LEAST.replace("{urdf: bench.urdf}", "{urdf: bench.urdf, joint_2: {friction: {coulomb: 0.5}}}"))
    first, second = load_robot(robot_file=file).arm.joints
    assert np.isnan(first.friction.coulomb) and second.friction.coulomb == 0.5
    assert first.motor.rotor_inertia == 0.0
    with pytest.raises(ModelError, match="joint_1.friction of the arm: got no coulomb, viscous, sigma0, sigma1"):
        load_robot(robot_file=file).arm.friction()
    with pytest.raises(ModelError, match="joint_1.motor of the arm: got no torque_constant, gear_ratio"):
        load_robot(robot_file=file).arm.motors()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("t,q1,tau1", "bench.urdf: got no XML"),
        ('<robot name="r"><link name="box"/></robot>', "no arm behind link 'box'.*name root_link and tip_link"),
    ],
)
def test_a_urdf_without_an_arm_is_refused_at_once(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "bench.urdf"
    file.write_text(text)
    with pytest.raises(ModelError, match=says):
        load_robot(robot_file=file)


@pytest.mark.parametrize(
    ("file", "tip", "joints"),
    [("test/robots/panda.urdf", "panda_link7", 7), ("test/robots/ur5e.urdf", "wrist_3_link", 6)],
)
def test_the_arm_of_a_urdf_ends_where_fingers_begin(file: str, tip: str, joints: int) -> None:
    arm = load_robot(robot_file=ROOT / file).arm
    assert arm.tip_link == tip and len(arm.joints) == joints == arm.tree().nv


def test_the_arm_on_a_base_with_wheels_is_the_longest_branch(tmp_path: Path) -> None:
    wheels = "".join(
        f'<link name="w{k}"/><joint name="w{k}" type="continuous"><parent link="floor"/><child link="w{k}"/></joint>'
        for k in range(4)
    )
    assert load_robot(robot_file=urdf(tmp_path, FINGERS + wheels)).driver.arm_joints == ("shoulder", "elbow")


def motion(folder: Path) -> Path:
    """Log of the arm: torques by the Lagrangian of two rods about horizontal axes, Coulomb and viscous friction."""
    time = np.arange(0.0, 60.0, 0.01)
    q = np.column_stack([0.9 * np.sin(0.6 * time + 6.0 * np.sin(0.1 * time)), 1.2 + 0.6 * np.sin(0.9 * time + 4.0)])
    v = np.gradient(q, time, axis=0)
    a = np.gradient(v, time, axis=0)
    (m1, c1), (m2, c2), reach, inertia, g = (3.0, 0.15), (1.5, 0.30), 0.3, 0.02, 9.81
    both, cos, sin = q[:, 0] + q[:, 1], np.cos(q[:, 1]), np.sin(q[:, 1])
    h = m2 * reach * c2
    own, far = inertia + m1 * c1**2, inertia + m2 * c2**2
    first = (own + far + m2 * reach**2 + 2.0 * h * cos) * a[:, 0] + (far + h * cos) * a[:, 1]
    first -= h * sin * (2.0 * v[:, 0] * v[:, 1] + v[:, 1] ** 2)
    second = (far + h * cos) * a[:, 0] + far * a[:, 1] + h * sin * v[:, 0] ** 2
    # The axes point along y: a positive angle lowers the rods.
    first -= g * ((m1 * c1 + m2 * reach) * np.cos(q[:, 0]) + m2 * c2 * np.cos(both))
    second -= g * m2 * c2 * np.cos(both)
    torque = np.column_stack([first, second]) + np.array(COULOMB) * np.tanh(v / 0.002) + np.array(VISCOUS) * v
    torque += 0.03 * np.random.default_rng(1).standard_normal(torque.shape)
    log = folder / "log.csv"
    np.savetxt(
        log, np.column_stack([time, q, torque]), delimiter=",", header="t,q1,q2,tau1,tau2", comments="", fmt="%.6f"
    )
    return log


def test_its_friction_is_identified_and_travels_in_a_robot_file(tmp_path: Path, capsys) -> None:
    file, out = urdf(tmp_path), tmp_path / "found"
    log = motion(tmp_path)
    assert exit_code("identify", log, "--out", out, "--robot-file", file) == 3  # sigma0 needs more readings
    said = "".join(capsys.readouterr())
    assert "q1 = position.shoulder, q2 = position.elbow" in said
    assert "nothing found" not in said  # of a base that it has not, or motors without readings
    assert "the arm with these values: --robot-file" in " ".join(said.split())
    assert not any(
        "bringup" in text for text in (said, (out / "result.yaml").read_text())
    )  # which refuses an arm alone
    entries = {entry["name"]: entry for entry in json.loads((out / "result.json").read_text())["parameters"]}
    for k, (coulomb, viscous) in enumerate(zip(COULOMB, VISCOUS, strict=True), 1):
        for name, true in (("coulomb", coulomb), ("viscous", viscous)):
            entry = entries[f"robot.arm.joint_{k}.friction.{name}"]
            assert entry["verdict"] == "identified" and entry["value"] == pytest.approx(true, rel=0.03)
    found = load_robot(robot_file=out / "robot.yaml")
    assert found.arm.joints[0].friction.coulomb == pytest.approx(1.5, rel=0.03)
    assert (found.has_base, found.driver.arm_joints) == (False, ("shoulder", "elbow"))
    assert not any(name in (out / "robot.yaml").read_text() for name in ("half_", "wheel_", "nan", "_sign", "geometry"))
    for robot, lacks in ((file, "no coulomb, viscous, sigma0"), (out / "robot.yaml", "no sigma0, sigma1")):
        assert exit_code("replay", log, "--robot-file", robot) == 1
        assert f"joint_1.friction of the arm: got {lacks}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("elbow", "code", "says"),
    [
        (np.nan, 3, "every effort of this joint is exactly 0 or"),
        (
            None,
            1,
            "6000 messages with fewer or more values than names; expected a position, velocity and effort of each",
        ),
    ],
    ids=["nan", "no value"],
)
def test_a_bag_whose_efforts_lack_a_joint(tmp_path: Path, capsys, elbow, code: int, says: str) -> None:
    file, bag = urdf(tmp_path), tmp_path / "bag"
    with BagWriter(bag, {}) as writer:
        writer.add_topic("/joint_states", JOINT_STATE)
        for time, *angles, torque, _ in np.loadtxt(motion(tmp_path), delimiter=",", skiprows=1):
            ns = 1_700_000_000_000_000_000 + round(time * 1e9)
            efforts = [torque] if elbow is None else [torque, elbow]
            writer.write("/joint_states", joint_state_cdr(ns, ("shoulder", "elbow"), angles, (), efforts), ns)
    assert exit_code("identify", bag, "--out", tmp_path / "found", "--robot-file", file, "--verbose") == code
    said = "".join(capsys.readouterr())
    assert says in said and "wheel" not in said and "youbot_" not in said.replace("youbot_dynamics", "")
    if code == 3:
        friction = load_robot(robot_file=tmp_path / "found" / "robot.yaml").arm.joints[0].friction
        assert (friction.coulomb, friction.viscous) == pytest.approx((COULOMB[0], VISCOUS[0]), rel=0.03)


def test_an_excitation_for_it_stays_within_the_limits_of_the_urdf(tmp_path: Path) -> None:
    motion = arm_motion(load_robot(robot_file=urdf(tmp_path)), 20.0, tries=3)
    assert np.all(np.isfinite(motion.positions)) and np.ptp(motion.positions[:, 0]) > 0.3
    assert motion.positions[:, 1].min() > 0.5 and motion.positions[:, 1].max() < 2.0


def test_nodes_get_the_base_of_a_robot_whose_arm_is_unknown_and_refuse_an_arm_alone(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="bench.urdf: got a URDF alone, which nodes cannot read"):
        plan(BringupOptions(robot="mock", robot_file=str(urdf(tmp_path))))
    file = tmp_path / "bench.yaml"
    file.write_text(LEAST)
    with pytest.raises(ParameterError, match="got an arm alone; expected a robot with a base"):
        plan(BringupOptions(robot="mock", robot_file=str(file)))
    file.write_text(f"{LEAST}      base: {{geometry: {{wheel_radius: 0.05}}}}\n")
    processes = {process.executable: process for process in plan(BringupOptions(robot="mock", robot_file=str(file)))}
    assert "arm_ekf" not in processes
    assert "robot.has_arm:=false" in processes["mock_youbot"].arguments
    assert not any("nan" in word or "arm.rest" in word for word in processes["mock_youbot"].arguments)


def test_nothing_of_an_arm_without_a_urdf_value_is_the_youbots(tmp_path: Path) -> None:
    own, youbots = values_of(load_robot(robot_file=urdf(tmp_path))), values_of(YOUBOT)
    of_joints = [name for name in own if ".joint_" in name]
    assert of_joints and all(np.isnan(own[name]) or own[name] == 0.0 for name in of_joints)
    for name in ("rest_position", "excitation_centre", "grip_point", "payload"):
        assert own[f"robot.arm.{name}"] != youbots[f"robot.arm.{name}"]
