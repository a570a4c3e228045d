"""What others get of a result: only what was identified, and what they read is what we wrote."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mujoco_urdf import in_mujoco
from named_findings import named_finding
from repository import ROOT

from youbot_dynamics.dynamics.arm import arm_tree
from youbot_dynamics.dynamics.tree import read_urdf
from youbot_dynamics.identification.arm_friction import ConsistentInertia, inertial_parameters
from youbot_dynamics.identification.export import _nav2_parameters, _one_node, export_all
from youbot_dynamics.identification.finding import BODIES, TWIST_ERROR, Finding
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason, Unknown, undetermined
from youbot_dynamics.identification.reading import Source
from youbot_dynamics.identification.result import Result, Skipped, write_result
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.resources import robot_path, urdf_path
from youbot_dynamics.robot import Robot, load_robot, values_of
from youbot_dynamics.simulation.scenario import identified_mjcf

ROBOT = load_robot()
SCHEMA = ROOT / "docs" / "result.schema.json"

FOUND = {
    "robot.base.delay.dead_time_x": 0.093,
    "robot.base.delay.dead_time_y": 0.097,
    "robot.base.friction.viscous_x": 17.5,
    "robot.base.friction.wheel_coulomb": 0.137,
    "robot.arm.joint_1.friction.coulomb": 1.31,
    "robot.arm.joint_1.friction.viscous": 1.57,
    "robot.arm.joint_4.friction.coulomb": 0.27,
    "robot.arm.joint_4.friction.viscous": 0.13,
    "robot.arm.joint_4.friction.sigma0": 301.0,
    "robot.arm.joint_4.motor.torque_constant": 0.0497,
    "robot.arm.joint_4.motor.resistance": 4.41,
    "robot.arm.joint_4.motor.winding_housing_resistance": 4.2,
    "robot.arm.joint_4.motor.housing_ambient_resistance": 4.9,
    "robot.arm.joint_4.motor.winding_time_constant": 11.0,
    "robot.arm.joint_4.motor.housing_time_constant": 204.0,
    "robot.arm.joint_5.motor.resistance": 13.1,
}
REFUSED = ("robot.base.friction.viscous_y", "robot.arm.joint_2.friction.viscous", "robot.base.delay.dead_time_yaw")


def finding(name: str, value: float, reason: Reason | None = None) -> Finding:
    error = 0.01 * abs(value)
    return named_finding(
        name, Estimate(name, "SI", value, error, (value - 2 * error, value + 2 * error), reason), 100, "all"
    )


def result_of(found: dict[str, float], refused: tuple[str, ...] = REFUSED) -> Result:
    findings = [finding(name, value) for name, value in found.items()]
    findings += [finding(name, 9.9, Reason(Kind.NOT_EXCITED, "too little motion")) for name in refused]
    source = Source("drive -- 1.mcap", "ab" * 32, "stamps", "a to b", "youbot", "")
    stages = dict.fromkeys([one.name for one in findings], "some")
    return Result("youbot", tuple(findings), ("some",), {}, stages, (source,), (Skipped("x.mcap", "an empty file"),))


RESULT = result_of(FOUND)
BETTER = RESULT.applied_to(ROBOT)


def bodies() -> ConsistentInertia:
    """The arm with bodies somewhat other than drawn, and none that could not be."""
    tree = arm_tree(ROBOT.arm.reflected_rotor_inertia())
    parameters = inertial_parameters(tree).copy()
    scale = np.repeat([1.11, 0.93, 1.07, 1.2, 0.9], 10)
    parameters[:50] *= scale
    return ConsistentInertia(parameters, np.zeros((5, 4)), {})


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    export_all(tmp_path, RESULT, ROBOT, {BODIES: bodies()})
    return tmp_path / "exports"


def test_our_own_parameters_come_back(tmp_path: Path) -> None:
    write_result(tmp_path, RESULT)
    read = load_robot(tmp_path / "result.yaml")
    assert values_of(read) == values_of(BETTER)
    assert {name: values_of(read)[name] for name in FOUND} == FOUND


def test_nav2_gets_the_dead_times_and_no_others(exports: Path) -> None:
    expected = {"FollowPath.model_delay_vx": 0.093, "FollowPath.model_delay_vy": 0.097}
    for namespace in ("", "robot_7"):
        assert read_parameters(exports / "nav2.yaml", "controller_server", namespace) == expected
    assert read_parameters(exports / "nav2.yaml", "planner_server") == {}
    assert "robot 'youbot'" in (exports / "nav2.yaml").read_text()


def test_an_effective_delay_is_no_dead_time(tmp_path: Path) -> None:
    assert export_all(tmp_path, result_of({"robot.base.delay.effective_x": 0.15}), ROBOT, {}) == ()
    assert not (tmp_path / "exports").exists()


def test_a_dead_time_of_the_response_serves_where_no_other_is_known(tmp_path: Path) -> None:
    found = {"robot.base.response.dead_time_x": 0.095, "robot.base.response.dead_time_yaw": 0.07}  # errors of 1 %
    export_all(tmp_path, result_of({**found, "robot.base.delay.dead_time_x": 0.09}, ()), ROBOT, {})
    read = read_parameters(tmp_path / "exports" / "nav2.yaml", "controller_server")
    assert read == {"FollowPath.model_delay_vx": 0.09, "FollowPath.model_delay_wz": 0.07}


def test_of_two_dead_times_nav2_gets_the_surer() -> None:
    vague, sure = finding("robot.base.delay.dead_time_y", 0.24), finding("robot.base.response.dead_time_y", 0.287)
    vague = dataclasses.replace(vague, estimate=dataclasses.replace(vague.estimate, standard_error=0.05))
    result = dataclasses.replace(
        result_of({}, ()), findings=(vague, sure), stage_of={vague.name: "delay", sure.name: "response"}
    )
    assert _nav2_parameters(result) == {"FollowPath.model_delay_vy": 0.287}


def test_a_dead_time_that_only_the_whole_response_makes_useful_is_not_for_nav2(tmp_path: Path) -> None:
    known = finding("robot.base.response.dead_time_x", 0.08)
    part = finding("robot.base.response.dead_time_y", 0.09, Reason(Kind.TOO_WIDE, "the interval is too wide"))
    result = dataclasses.replace(result_of({}, ()), findings=(known, dataclasses.replace(part, together=True)))
    assert _nav2_parameters(result) == {"FollowPath.model_delay_vx": 0.08}


def test_a_dead_time_beside_a_refused_lag_is_not_for_nav2() -> None:
    known = finding("robot.base.response.dead_time_x", 0.08)
    lag = finding("robot.base.response.lag", 0.09, Reason(Kind.TOO_WIDE, "the interval is too wide"))
    assert _nav2_parameters(dataclasses.replace(result_of({}, ()), findings=(known, lag))) == {}


GEOMETRY = {
    "robot.base.geometry.wheel_radius": 0.0491,
    "robot.base.geometry.half_length": 0.2413,
    "robot.base.geometry.half_width": 0.1533,
    "robot.base.geometry.lateral_factor": 0.9317,
}
CONTROLLER = "mecanum_drive_controller"


def of_others(folder: Path, found: dict[str, float], robot: Robot = ROBOT, **products: Any) -> dict[str, Any]:
    """Parameters of mecanum_drive_controller and of the velocity smoother, by name; a file that is missing has none."""
    export_all(folder, result_of(found, ()), robot, products)
    files = {CONTROLLER: f"{CONTROLLER}.yaml", "velocity_smoother": "nav2_velocity_smoother.yaml"}
    paths = {node: folder / "exports" / name for node, name in files.items()}
    return {node: read_parameters(path, node, "robot_7") if path.exists() else {} for node, path in paths.items()}


def documented_wheel_speeds(parameters: dict[str, Any], twist: np.ndarray) -> np.ndarray:
    """Wheel speeds (4,) of FL, FR, RL, RR as mecanum_drive_controller documents its kinematics."""
    vx, vy, wz = twist
    turn = parameters["kinematics.sum_of_robot_center_projection_on_X_Y_axis"] * wz
    rim = np.array([vx - vy - turn, vx + vy + turn, vx + vy - turn, vx - vy + turn])
    return rim / parameters["kinematics.wheels_radius"]


def test_mecanum_drive_controller_turns_the_wheels_as_we_do(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    for factor in (1.0, 0.9317, 1.07):
        found = {**GEOMETRY, "robot.base.geometry.lateral_factor": factor}
        read = of_others(tmp_path, found)[CONTROLLER]
        ours = result_of(found, ()).applied_to(ROBOT).base.geometry.mecanum()
        text = (tmp_path / "exports" / f"{CONTROLLER}.yaml").read_text()
        assert f"sideways at {factor:.4g} of the commanded" in text
        for twist in random.uniform(-1.0, 1.0, (20, 3)):
            theirs = documented_wheel_speeds(read, twist / [1.0, factor, 1.0])
            np.testing.assert_allclose(theirs, ours.wheel_speeds(twist), rtol=1e-12, atol=1e-12)


def test_radii_that_are_not_told_apart_keep_their_identified_mean(tmp_path: Path) -> None:
    geometry = dataclasses.replace(ROBOT.base.geometry, wheel_radius_error_fl=0.02)
    robot = dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, geometry=geometry))
    read = of_others(tmp_path, GEOMETRY, robot)[CONTROLLER]
    radii = result_of(GEOMETRY, ()).applied_to(robot).base.geometry.mecanum().radii
    assert read["kinematics.wheels_radius"] == pytest.approx(np.mean(radii), rel=1e-14)


def test_at_the_exported_speeds_the_wheels_turn_at_their_limit(tmp_path: Path) -> None:
    read = of_others(tmp_path, GEOMETRY)
    controller, smoother = read[CONTROLLER], read["velocity_smoother"]
    ours = result_of(GEOMETRY, ()).applied_to(ROBOT).base.geometry.mecanum()
    for k, axis in enumerate(("linear.x", "linear.y", "angular.z")):
        most = controller[f"{axis}.max_velocity"]
        low, high = smoother["min_velocity"][k], smoother["max_velocity"][k]
        assert controller[f"{axis}.min_velocity"] == low == -high == -most
        speeds = np.abs(ours.wheel_speeds(most * np.eye(3)[k]))
        np.testing.assert_allclose(speeds, ROBOT.base.limits.wheel_speed, rtol=1e-12)
    assert not any("accel" in name for name in [*controller, *smoother])
    for name in (f"{CONTROLLER}.yaml", "nav2_velocity_smoother.yaml"):
        assert "The largest accelerations of all axes are not known" in (tmp_path / "exports" / name).read_text()
    # The largest speed of the wheels may be assumed, and less than a drive reached.
    result = result_of({**GEOMETRY, "robot.base.delay.effective_x": 0.1}, ())
    *others, delay = result.findings
    fast = dataclasses.replace(delay, details={"gain": 0.95, "fastest": 20.0})
    export_all(tmp_path, dataclasses.replace(result, findings=(*others, fast)), ROBOT, {})
    driven = read_parameters(tmp_path / "exports" / f"{CONTROLLER}.yaml", CONTROLLER, "robot_7")
    assert controller["linear.x.max_velocity"] < driven["linear.x.max_velocity"] == pytest.approx(19.0)
    assert driven["linear.y.max_velocity"] == controller["linear.y.max_velocity"]


def test_accelerations_and_speeds_that_a_drive_reached_are_its_limits(tmp_path: Path) -> None:
    reached = {f"base.limits.acceleration_{name}": value for name, value in (("x", 1.1), ("y", 0.9), ("yaw", 2.3))}
    read = of_others(tmp_path, {**GEOMETRY, **reached, "base.limits.speed_y": 0.41})
    controller, smoother = read[CONTROLLER], read["velocity_smoother"]
    assert smoother["max_accel"] == (1.1, 0.9, 2.3) and smoother["max_decel"] == (-1.1, -0.9, -2.3)
    assert smoother["max_velocity"][1] == controller["linear.y.max_velocity"] == 0.41
    assert controller["angular.z.max_acceleration"] == -controller["angular.z.max_deceleration"] == 2.3
    alone = of_others(tmp_path, {"base.limits.acceleration_x": 1.1})  # neither radius nor all axes
    assert alone == {CONTROLLER: {}, "velocity_smoother": {}}


def test_what_was_not_identified_stays_out_with_its_reason(tmp_path: Path) -> None:
    read = of_others(tmp_path, {name: value for name, value in GEOMETRY.items() if name.endswith("radius")})
    assert set(read[CONTROLLER]) == {"kinematics.wheels_radius", "linear.x.max_velocity", "linear.x.min_velocity"}
    assert read["velocity_smoother"] == {}
    text = (tmp_path / "exports" / f"{CONTROLLER}.yaml").read_text()
    assert "half lengths is left out: the lever of turns was not identified" in text
    assert "Covariance of the twist is left out: no recorded poses" in text
    assert of_others(tmp_path, {name: value for name, value in GEOMETRY.items() if not name.endswith("radius")}) == {
        CONTROLLER: {},
        "velocity_smoother": {},
    }


def test_the_covariance_is_that_of_the_measured_twist_and_of_rounded_wheel_speeds(tmp_path: Path) -> None:
    read = of_others(tmp_path, GEOMETRY, **{TWIST_ERROR: np.array([0.003, 0.004, 0.007])})[CONTROLLER]
    radius, lever = 0.0491, 0.2413 / 0.9317 + 0.1533
    along = ROBOT.driver.velocity_quantum**2 / 12.0 * radius**2 / 4.0  # the mean of four rounded wheel speeds
    across, turn = along * 0.9317**2, along / lever**2
    expected = (9e-6 + along, 16e-6 + across, 1e-6, 1e-6, 1e-6, 49e-6 + turn)
    assert read["twist_covariance_diagonal"] == pytest.approx(expected, rel=1e-9)
    assert not any("pose" in name for name in read)


def friction_in_urdf() -> dict[str, tuple[float, float]]:
    """Damping and friction of the joints as they should be."""
    wheel = (17.5 * ROBOT.base.geometry.wheel_radius**2 / 4.0, 0.137)
    arm = {"arm_joint_1": (1.57, 1.31), "arm_joint_4": (0.13, 0.27)}
    return {**arm, **dict.fromkeys(ROBOT.driver.wheel_joints, wheel)}


def test_our_reader_finds_the_friction_and_the_bodies_in_the_urdf(exports: Path) -> None:
    links, drawn = read_urdf(exports / "youbot.urdf"), read_urdf(urdf_path("youbot.urdf"))
    found = {link.joint: (link.damping, link.friction) for link in links if link.damping or link.friction}
    assert found == friction_in_urdf()
    other = {f"arm_link_{k}" for k in range(1, 6)}
    for ours, theirs in zip(links, drawn, strict=True):
        assert (ours.name, ours.joint, ours.joint_type) == (theirs.name, theirs.joint, theirs.joint_type)
        np.testing.assert_array_equal(ours.placement, theirs.placement)
        assert (ours.mass == theirs.mass) == (ours.name not in other)
    read = inertial_parameters(arm_tree(urdf=exports / "youbot.urdf"))[:50]
    np.testing.assert_allclose(read, bodies().parameters[:50], rtol=1e-12, atol=1e-15)
    for link in links:
        if link.name in other:
            moments = np.linalg.eigvalsh(link.inertia)
            assert moments[0] > 0.0 and moments[2] < moments[0] + moments[1]


def test_pinocchio_reads_the_same_friction_and_bodies(exports: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(exports / "youbot.urdf"))
    drawn = pin.buildModelFromUrdf(str(urdf_path("youbot.urdf")))
    for name, (damping, friction) in friction_in_urdf().items():
        place = model.joints[model.getJointId(name)].idx_v
        assert model.damping[place] == pytest.approx(damping, rel=1e-15)
        assert dry_friction(model)[place] == pytest.approx(friction, rel=1e-15)
    assert np.count_nonzero(dry_friction(model)) == np.count_nonzero(model.damping) == len(friction_in_urdf())
    tree = arm_tree(urdf=exports / "youbot.urdf")
    random = np.random.default_rng(1)
    for _ in range(5):
        q, v, a = random.uniform(-2.0, 2.0, (3, 5))
        places = [model.joints[model.getJointId(name)] for name in ROBOT.driver.arm_joints]
        theirs = {m: torque_of_pinocchio(pin, m, places, q, v, a) for m in (model, drawn)}
        ours = tree.inverse_dynamics(q, v, a)
        np.testing.assert_allclose(theirs[model], ours, atol=1e-9)
        assert np.max(np.abs(theirs[drawn] - ours)) > 1e-2


def dry_friction(model) -> np.ndarray:
    """Coulomb friction of Pinocchio's joints; its name changed with version 4."""
    return np.asarray(model.upperDryFrictionLimit if hasattr(model, "upperDryFrictionLimit") else model.friction)


def torque_of_pinocchio(pin, model, places, q, v, a) -> np.ndarray:
    whole = [pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)]
    for k, joint in enumerate(places):
        whole[0][joint.idx_q] = q[k]
        whole[1][joint.idx_v], whole[2][joint.idx_v] = v[k], a[k]
    torque = pin.rnea(model, model.createData(), *whole)
    return np.array([torque[joint.idx_v] for joint in places])


def test_mujoco_reads_the_same_friction_and_bodies(exports: Path) -> None:
    mujoco, model = in_mujoco(exports / "youbot.urdf")
    expected = friction_in_urdf()
    for k in range(model.njnt):
        joint = model.joint(k)
        damping, friction = expected.get(joint.name, (0.0, 0.0))
        assert np.ravel(joint.damping)[0] == pytest.approx(damping, rel=1e-12)
        assert np.ravel(joint.frictionloss)[0] == pytest.approx(friction, rel=1e-12)
    data = mujoco.MjData(model)
    tree = arm_tree(urdf=exports / "youbot.urdf")
    q = np.array([0.7, 1.1, -1.9, 0.8, 2.0])
    for name, value in zip(ROBOT.driver.arm_joints, q, strict=True):
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_forward(model, data)
    held = [data.qfrc_bias[model.joint(name).dofadr[0]] for name in ROBOT.driver.arm_joints]
    np.testing.assert_allclose(held, tree.inverse_dynamics(q, np.zeros(5), np.zeros(5)), atol=1e-9)


def test_wheels_told_apart_keep_their_own_friction(tmp_path: Path) -> None:
    found = {"robot.base.friction.wheel_coulomb": 0.13, "base.friction.wheel_coulomb_fr": 0.2}
    found |= {"base.friction.wheel_viscous_rl": 0.004}
    export_all(tmp_path, result_of(found), ROBOT, {})
    read = {link.joint: (link.damping, link.friction) for link in read_urdf(tmp_path / "exports" / "youbot.urdf")}
    assert [read[name] for name in ROBOT.driver.wheel_joints] == [(0.0, 0.13), (0.0, 0.2), (0.004, 0.13), (0.0, 0.13)]


def motors_in_mujoco(exports: Path, armature: float = 0.0):
    """The motors on the arm of the exported URDF, without what else that holds of friction."""
    mujoco = pytest.importorskip("mujoco")
    joints = "".join(
        f'<body><joint name="{name}" axis="0 0 1" armature="{armature}"/><geom size="0.05" mass="1"/></body>'
        for name in ROBOT.driver.arm_joints
    )
    text = f'<mujoco><option gravity="0 0 0"/><worldbody>{joints}</worldbody><include file="motors.xml"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(text, {"motors.xml": (exports / "motors.xml").read_bytes()})
    return mujoco, model, mujoco.MjData(model)


def named(model) -> list[str]:
    return [model.actuator(k).name for k in range(model.nu)]


def test_mujoco_turns_with_the_torque_of_our_motors(exports: Path) -> None:
    mujoco, model, data = motors_in_mujoco(exports)
    assert named(model) == ["arm_joint_1", "arm_joint_4", "arm_joint_5"]
    random = np.random.default_rng(2)
    for _ in range(20):
        speeds, voltages = random.uniform(-1.5, 1.5, 3), random.uniform(-24.0, 24.0, 3)
        rise = random.uniform(0.0, 90.0)
        mujoco.mj_resetData(model, data)
        data.ctrl[:] = voltages
        for k, name in enumerate(named(model)):
            data.qvel[model.joint(name).dofadr[0]] = speeds[k]
        winding = int(model.actuator("arm_joint_4").actadr[0])
        data.act[winding] = rise
        bristles = {"arm_joint_1": int(model.actuator("arm_joint_1").actadr[0]), "arm_joint_4": winding + 1}
        deflection = {name: random.uniform(-5e-4, 5e-4) for name in bristles}  # at the joint [rad]
        for name, place in bristles.items():
            data.act[place] = deflection[name] * BETTER.arm.motors()[int(name[-1]) - 1].ratio
        mujoco.mj_forward(model, data)
        for k, name in enumerate(named(model)):
            j = int(name[-1]) - 1
            geared = BETTER.arm.motors()[j]
            temperature = rise + geared.motor.ambient_temperature if name == "arm_joint_4" else 25.0
            armature = geared.motor.observe([geared.motor_speed(speeds[k]), temperature, 25.0], voltages[k])
            torque = geared.joint_torque(armature.current, speeds[k])
            passive = 0.0
            if name in bristles:
                coulomb, viscous, sigma0, sigma1, _, _ = BETTER.arm.friction()[j].constants
                z = deflection[name]
                z_rate = speeds[k] - sigma0 * abs(speeds[k]) / coulomb * z
                torque -= sigma0 * z + sigma1 * z_rate
                passive = -viscous * speeds[k]
            dof = model.joint(name).dofadr[0]
            assert data.qfrc_actuator[dof] == pytest.approx(torque, rel=1e-10, abs=1e-12)
            assert data.qfrc_passive[dof] == pytest.approx(passive, rel=1e-10, abs=1e-12)


def test_the_one_thermal_node_keeps_the_end_and_the_area_of_both() -> None:
    motor = BETTER.arm.motors()[3].motor
    motor = dataclasses.replace(motor, temperature_coefficient=0.0)  # the laws are of the linear network
    resistance, capacity = _one_node(motor)
    step, current = 0.5, 1.1
    count = int(40.0 * resistance * capacity / step)
    ambient = motor.ambient_temperature
    both = motor.heat_history(ambient, ambient, np.full(count, current), step)[:, 0] - ambient
    end = resistance * motor.resistance * current**2
    alone = end * (1.0 - np.exp(-step * np.arange(1, count + 1) / (resistance * capacity)))
    assert both[-1] == pytest.approx(end, rel=1e-9)
    lag = float(np.sum(end - both)) * step
    assert float(np.sum(end - alone)) * step == pytest.approx(lag, rel=2e-3)  # of the sums over steps
    assert np.max(np.abs(both - alone)) > 0.02 * end  # it is another course, and the text says so


def test_mujocos_winding_ends_as_warm_as_ours(tmp_path: Path) -> None:
    electric = {name: value for name, value in FOUND.items() if "joint_4.motor" in name}
    export_all(tmp_path, result_of(electric), ROBOT, {})
    mujoco, model, data = motors_in_mujoco(tmp_path / "exports", armature=1e9)  # the joints stand
    voltage = 2.0
    model.opt.timestep = 1.0
    data.ctrl[0] = voltage
    for _ in range(20_000):
        mujoco.mj_step(model, data)
    assert data.act[0] == pytest.approx(BETTER.arm.motors()[3].motor.locked_rise(voltage).winding, rel=1e-6)


def test_only_what_was_identified_of_a_motor_is_written(tmp_path: Path) -> None:
    text_of = {}
    for what, value in (("friction.viscous", 0.2), ("friction.coulomb", 0.3), ("motor.resistance", 5.0)):
        export_all(tmp_path, result_of({f"robot.arm.joint_4.{what}": value}), ROBOT, {})
        text_of[what] = (tmp_path / "exports" / "motors.xml").read_text()
        assert "identified " + what.rpartition(".")[2] in text_of[what]
    for what, attribute in (("viscous", "damping="), ("coulomb", "lugre=")):
        for name, text in text_of.items():
            assert (attribute in text) == name.endswith(what)
    assert not any("thermal=" in text for text in text_of.values())
    assert "the robot's own torque_constant" in text_of["motor.resistance"]


def test_files_of_an_earlier_result_go(exports: Path) -> None:
    assert {path.name for path in exports.iterdir()} == {"nav2.yaml", "youbot.urdf", "motors.xml"}
    written = export_all(exports.parent, result_of({"robot.base.delay.dead_time_x": 0.1}), ROBOT, {})
    assert list(written) == list(exports.iterdir()) == [exports / "nav2.yaml"]
    (exports / "mine.txt").touch()
    export_all(exports.parent, result_of({}), ROBOT, {})
    assert [path.name for path in exports.iterdir()] == ["mine.txt"]


def test_a_strange_name_of_a_robot_spoils_no_file(tmp_path: Path) -> None:
    robot: Robot = dataclasses.replace(ROBOT, robot_id="a -- b\n</robot>: 'c'")
    result = dataclasses.replace(RESULT, robot_id=robot.robot_id)
    export_all(tmp_path, result, robot, {})
    exports = tmp_path / "exports"
    assert read_parameters(exports / "nav2.yaml", "controller_server")["FollowPath.model_delay_vx"] == 0.093
    assert len(read_urdf(exports / "youbot.urdf")) == len(read_urdf(urdf_path("youbot.urdf")))
    motors_in_mujoco(exports)


KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def problems(value: Any, schema: dict[str, Any], where: str = "result") -> list[str]:
    """What of a value breaks a JSON schema, of the few words that ours uses."""
    unknown = set(schema) - {"type", "enum", "required", "properties", "additionalProperties", "items", "pattern"}
    assert unknown <= {"$schema", "title", "description", "minItems", "maxItems"}, unknown
    found = []
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_flag = isinstance(value, bool)
    if kinds and not any(isinstance(value, KINDS[kind]) and (is_flag == (kind == "boolean")) for kind in kinds):
        return [f"{where}: {value!r} is no {' or '.join(kinds)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{where}: {value!r}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
            found.append(f"{where}: {len(value)} items")
        found += [p for k, item in enumerate(value) for p in problems(item, schema.get("items", {}), f"{where}[{k}]")]
    if isinstance(value, dict):
        found += [f"{where}: no {name}" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            rule = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            found += [f"{where}: {name} unknown"] if rule is False else problems(item, rule, f"{where}.{name}")
    return found


def test_result_json_keeps_to_its_schema(tmp_path: Path) -> None:
    unknown = named_finding("robot.base.friction.viscous_y", undetermined(Unknown("y", "N s/m", unexcited="?")))
    more = {"gain": 0.98, "residual": math.inf, "remark": "none"}
    told = dataclasses.replace(RESULT.findings[0], details=more)
    stages = {**RESULT.stage_of, unknown.name: "some"}
    write_result(
        tmp_path, dataclasses.replace(RESULT, findings=(told, *RESULT.findings[1:-3], unknown), stage_of=stages)
    )
    schema = json.loads(SCHEMA.read_text())
    strict = {"parse_constant": pytest.fail}
    content = json.loads((tmp_path / "result.json").read_text(), **strict)
    assert problems(content, schema) == []
    assert content["parameters"][-1]["value"] is None
    broken = [
        {**content, "schema_version": 99},
        {**content, "robot_id": 7},
        {key: value for key, value in content.items() if key != "sources"},
        {**content, "extra": 1},
        {**content, "sources": [{**content["sources"][0], "sha256": "abc"}]},
        {**content, "parameters": [{**content["parameters"][0], "verdict": "maybe"}]},
        {**content, "parameters": [{**content["parameters"][0], "interval_95": [1.0]}]},
        {**content, "parameters": [{**content["parameters"][0], "at_bound": 1}]},
    ]
    assert all(len(problems(one, schema)) == 1 for one in broken)


def test_mujoco_loads_the_whole_robot_with_the_identified_values(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    found = {**FOUND, **GEOMETRY, "robot.base.friction.viscous_y": 23.0}
    better = result_of(found, ()).applied_to(ROBOT)
    export_all(tmp_path, result_of(found, ()), ROBOT, {BODIES: bodies()}, identified_mjcf)
    path = tmp_path / "exports" / "youbot.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    base = data.body("base_link").xpos
    for name, (x, y) in zip(("fl", "fr", "bl", "br"), better.base.geometry.mecanum().positions, strict=True):
        np.testing.assert_allclose((data.body(f"wheel_link_{name}").xpos - base)[:2], (x, y), atol=1e-12)
        assert np.ravel(model.joint(f"wheel_joint_{name}").frictionloss)[0] == 0.137
        roller = model.body(f"wheel_link_{name}_roller_0")
        spheres = roller.geomadr[0] + np.arange(roller.geomnum[0])
        lowest = np.min(data.geom_xpos[spheres, 2] - model.geom_size[spheres, 0])
        assert data.body(f"wheel_link_{name}").xpos[2] - lowest == pytest.approx(0.0491, abs=1e-9)
    assert model.body_mass.sum() == pytest.approx(better.base.mass, rel=1e-12)
    assert [model.actuator(f"drag_{axis}").biasprm[2] for axis in "xy"] == [-17.5, -23.0]
    for k, name in enumerate(arm_tree(urdf=tmp_path / "exports" / "youbot.urdf").names):
        assert model.body(name).mass[0] == pytest.approx(bodies().parameters[10 * k], rel=1e-12)
    for joint, viscous in (("arm_joint_1", 1.57), ("arm_joint_4", 0.13)):
        assert np.ravel(model.joint(joint).damping)[0] == viscous
    motors = {one.get("name"): one for one in ElementTree.parse(path).getroot().iter("dcmotor")}
    bristles = [float(word) for word in motors["arm_joint_4"].get("lugre", "").split()]
    assert bristles[0] == 301.0 and bristles[2] == 0.27
    assert "robot.base.geometry.half_length" in path.read_text().split("<mujoco")[0]


def test_a_robot_that_is_none_of_the_urdf_gets_no_whole_model(tmp_path: Path) -> None:
    robot = load_robot(robot_file=robot_path("rosbot_xl"))
    export_all(tmp_path, result_of(GEOMETRY, ()), robot, {}, identified_mjcf)
    assert not (tmp_path / "exports" / "youbot.xml").exists()
    export_all(tmp_path, result_of({"robot.base.delay.dead_time_x": 0.09}, ()), ROBOT, {}, identified_mjcf)
    assert not (tmp_path / "exports" / "youbot.xml").exists()


def test_a_differential_base_has_the_parameters_of_its_controller_and_none_sideways(tmp_path: Path) -> None:
    robot = load_robot(robot_file=robot_path("turtlebot3_burger"))
    size = {"wheel_radius": 0.0325, "track": 0.158, "wheel_radius_error_fl": 0.004, "wheel_radius_error_fr": -0.004}
    found = {f"robot.base.geometry.{name}": value for name, value in size.items()}
    found |= {"robot.base.delay.dead_time_x": 0.12, "robot.base.delay.dead_time_yaw": 0.2}
    names = {path.name for path in export_all(tmp_path, result_of(found, ()), robot, {})}
    assert names == {"diff_drive_controller.yaml", "nav2.yaml", "nav2_velocity_smoother.yaml"}
    read = read_parameters(tmp_path / "exports" / "diff_drive_controller.yaml", "diff_drive_controller")
    assert read == pytest.approx(
        {
            "wheel_radius": 0.0325,
            "wheel_separation": 0.158,
            "wheel_separation_multiplier": 1.0,
            "left_wheel_radius_multiplier": 1.004,
            "right_wheel_radius_multiplier": 0.996,
        }
    )
    delays = read_parameters(tmp_path / "exports" / "nav2.yaml", "controller_server")
    assert delays == {"FollowPath.model_delay_vx": 0.12, "FollowPath.model_delay_wz": 0.2}
    limits = read_parameters(tmp_path / "exports" / "nav2_velocity_smoother.yaml", "velocity_smoother")
    fastest = 6.667 * 0.0325 * np.array([0.996, 0.996 * 2.0 / 0.158])
    assert limits["max_velocity"] == pytest.approx((fastest[0], 0.0, fastest[1]))
