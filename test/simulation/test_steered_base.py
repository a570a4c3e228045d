"""A base with a steered wheel from its file to an identified twin: what moves it, what finds it, what refuses it."""

from __future__ import annotations

from dataclasses import replace
from math import exp, hypot

import numpy as np
import pytest

import youbot_dynamics as yd
from youbot_dynamics.commands._demo import true_values
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import InputError, ModelError, ParameterError, ProgramError, TrajectoryError
from youbot_dynamics.estimation.response_monitor import ResponseMonitor
from youbot_dynamics.identification.calibration import CalibrationSignals, calibrate
from youbot_dynamics.identification.excitation import base_program
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.identification.until_narrow import read_wish
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.steering import JointMotion
from youbot_dynamics.messages.drive_bag import EPOCH
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, joint_state_cdr
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import assumptions
from youbot_dynamics.simulation.base import SlipEvent, base_plant

NAME = "optiodom_tricycle"
FILE = robot_path(NAME)
ROBOT = yd.load_robot(robot_file=FILE)
OPEN_LOOP = yd.TrackerSettings(feedback=False)


def excite(tmp_path, seed: int, duration: float = 60.0):
    """A drive of the excitation, what was identified from it, and what is true."""
    plant = yd.BaseOnly(yd.load_truth(seed, FILE), ROBOT.driver, seed)
    run = yd.drive(
        base_program(ROBOT, duration, 1.0, 0.02).trajectory(), ROBOT, plant, seed, tracker_settings=OPEN_LOOP
    )
    yd.write_bag(run, ROBOT, tmp_path / "drive", feedback=False)
    return run, yd.identify([tmp_path / "drive"], ROBOT, yd.Options()), true_values(seed, tmp_path / "drive", FILE)


@pytest.mark.parametrize("seed", [5, pytest.param(3, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)])
def test_its_twin_is_identified_and_odometry_ends_where_the_base_is(seed: int, tmp_path) -> None:
    run, found, true = excite(tmp_path, seed)
    np.testing.assert_array_equal(run.true_twist[:, 1], 0.0)
    values = found.result.parameters()
    estimates = {one.name: one.estimate for stage in found.stages for one in stage.findings}
    for fact, tolerance in (
        ("geometry.wheel_radius", {"rel": 5e-3}),
        ("geometry.wheelbase", {"rel": 5e-3}),
        ("geometry.steering_offset", {"abs": 1e-3}),
        ("delay.effective_x", {"abs": 5e-3}),
        ("delay.effective_yaw", {"abs": 5e-3}),
    ):
        key = f"robot.base.{fact}"
        assert values[key] == pytest.approx(true[key], **tolerance)
        assert estimates[key].interval[0] <= true[key] <= estimates[key].interval[1]
    assert {"response", "base_friction"} <= found.result.missing.keys()
    ends = [
        robot.base.geometry.wheels().path(robot.base.geometry.mecanum().rolled(run.wheel_angle))[-1]
        for robot in (found.robot, found.result.applied_to(found.robot))
    ]
    before, after = (np.linalg.norm((end - run.true_pose[-1])[:2]) for end in ends)
    assert after < 0.1 * before
    yd.write_outputs(tmp_path / "found", found, (), "a tricycle")
    exports = tmp_path / "found" / "exports"
    assert f"wheelbase: {values['robot.base.geometry.wheelbase']}" in (exports / "tricycle_controller.yaml").read_text()
    assert not (exports / "diff_drive_controller.yaml").exists()


def test_a_held_command_leads_to_the_arc_of_its_steering_and_the_joints_answer_to_first_order() -> None:
    truth = yd.load_truth(3, FILE)
    base = base_plant(truth, ROBOT.driver, 3, 0.0)
    base.command_twist([0.1, 0.0, 0.3])
    start = truth.dead_time_x
    base.advance(start + truth.lag)
    speed = hypot(0.1, 0.3 * 0.15) / 0.0325
    assert base.wheel_speeds[0] == pytest.approx(speed * (1.0 - exp(-1.0)), rel=1e-3)
    base.advance(truth.dead_time_yaw + truth.steering_lag)
    steering = np.arctan2(0.3 * 0.15, 0.1)
    assert base.wheel_angles[1] == pytest.approx(steering * (1.0 - exp(-1.0)), rel=1e-3)
    base.advance(3.0)
    pose = base.pose
    base.advance(4.0)
    radius = truth.wheelbase / np.tan(steering + truth.steering_offset)
    turn = truth.wheel_radius * speed * np.sin(steering + truth.steering_offset) / truth.wheelbase
    assert planar.compose(pose, planar.exponential([turn * radius, 0.0, turn])) == pytest.approx(base.pose, abs=1e-6)
    base.switch_motors(False)
    base.advance(5.0)
    assert base.twist == pytest.approx(np.zeros(3), abs=1e-6)
    with pytest.raises(InputError, match="slips of a steered wheel"):
        base_plant(truth, ROBOT.driver, 3, 0.0, [SlipEvent(0, 0.5, 0.0, 1.0)])


def test_the_monitor_sees_the_delay_of_each_joint_though_they_differ() -> None:
    truth = yd.load_truth(5, FILE)  # 85 ms of the wheel, 261 ms of the steering
    base, monitor, motion = base_plant(truth, ROBOT.driver, 5, 0.0), ResponseMonitor(ROBOT), JointMotion()
    ours = ROBOT.base.geometry.mecanum()
    for k in range(1500):
        now = 0.02 * k
        speed, steering = 3.0 * np.sin(0.9 * now), 0.6 * np.sin(1.3 * now)
        base.command_wheels(ours.rolling([speed, 0.0], [0.0, steering]), now)
        monitor.sent(now, ours.of_joints([speed, steering]))
        base.advance(now + 0.01)
        monitor.read(now + 0.01, ours.of_joints(motion.take(now + 0.01, base.wheel_angles)))
    x, _, yaw = monitor.axes
    assert x.delay.valid and yaw.delay.valid
    assert x.delay.value == pytest.approx(truth.dead_time_x + truth.lag, abs=0.01)
    assert yaw.delay.value == pytest.approx(truth.dead_time_yaw + truth.steering_lag, abs=0.015)


def test_its_commands_are_those_of_its_joints_and_a_wrapped_steering_angle_goes_on(tmp_path) -> None:
    """A recording that begins with the wheel rolling backwards at a quarter turn, as that of a turn on the spot."""
    time = np.arange(0.0, 20.0, 0.05)
    steering = np.where(time < 1.0, np.pi / 2, 0.6 * np.sin(1.3 * time))
    speed = np.where(time < 1.0, -1.0, 3.0)
    joints, angle = ROBOT.driver.wheel_joints, np.cumsum(speed) * 0.05
    with BagWriter(tmp_path / "bag", {}) as bag:
        for topic in (commands := "/wheel_commands", states := "/driver/joint_states"):
            bag.add_topic(topic, JOINT_STATE)
        for now, a, v, q in zip(EPOCH + time, steering, speed, angle, strict=True):
            stamp = int(1e9 * now)
            bag.write(commands, joint_state_cdr(stamp, joints, [0.0, a], [v, 0.0]), stamp)
            bag.write(states, joint_state_cdr(stamp, joints, [q, a % (2.0 * np.pi)]), stamp)
    signals = base_signals(open_bag(tmp_path / "bag"), ROBOT, {}, of_joints=True)
    assert signals.command[:, 0] == pytest.approx(ROBOT.driver.wheel_radius * speed)
    assert signals.command[:, 2] == pytest.approx(steering)
    assert signals.measured[:, 2] == pytest.approx(steering)


def test_six_lines_are_a_tricycle_and_what_does_not_fit_is_named(tmp_path) -> None:
    own, text = tmp_path / "homemade.yaml", (
        "/**:\n  ros__parameters:\n    robot:\n      robot_id: homemade\n"
        "      base: {geometry: {wheel_radius: 0.1, wheelbase: 0.8}}\n      driver: {wheel_joints: [wheel, steering]}\n"
    )  # fmt: skip
    own.write_text(text)
    robot = yd.load_robot(robot_file=own)
    assert robot.driver.mecanum().twist([1.0, 2.0]).tolist() == pytest.approx([0.1, 0.0, 0.25])
    assumed = assumptions(own, most=99)
    assert "limits.steering 1.571" in assumed
    assert not [word for word in ("half_", "drive_angles", "rollers", "track", "radius_error") if word in assumed]
    for before, after, message in (
        (
            "wheelbase: 0.8",
            "wheelbase: 0.8, track: 0.3",
            r"track: got 0\.3 with wheelbase 0\.8.*leave out the track of a steer",
        ),
        ("wheelbase: 0.8", "wheelbase: -0.8", r"robot\.base\.geometry\.wheelbase: got -0\.8; expected 0 to 5"),
        ("0.8}", "0.8, steering_offset: 1.2}", r"steering_offset: got 1\.2; expected -0\.5 to 0\.5"),
        ("[wheel, steering]", "[wheel]", r"wheel_joints: got 1 elements; expected 2.*a steered wheel its wheelbase"),
        ("homemade\n", "homemade\n      has_arm: true\n", "has_arm: got true for a base with a steered wheel"),
    ):
        own.write_text(text.replace(before, after))
        with pytest.raises(ParameterError, match=message):
            yd.load_robot(robot_file=own)
    with pytest.raises(ParameterError, match=r"driver.wheelbase: got 0 with 0\.15"):
        replace(ROBOT, driver=yd.load_robot(robot_file="turtlebot3_burger").driver)


def test_the_tracker_refuses_it_as_other_bases_that_cannot_move_sideways() -> None:
    path = base_program(ROBOT, 20.0, 1.0, 0.02).trajectory()
    with pytest.raises(TrajectoryError, match="Nav2's regulated pure pursuit or MPPI"):
        yd.drive(path, ROBOT, yd.BaseOnly(yd.load_truth(0, FILE), ROBOT.driver, 0), 0)


def test_a_program_beyond_the_steering_is_refused_and_no_time_scale_is_proposed(tmp_path) -> None:
    own = tmp_path / "car.yaml"
    own.write_text(FILE.read_text().replace("steering: 1.571", "steering: 0.5"))
    car = yd.load_robot(robot_file=own).base
    Program("arc", np.tile([0.01, 0.0, 0.01], (50, 1)), 0.1).check(car)
    with pytest.raises(ProgramError, match=r"a steering angle of 1\.57 rad; expected at most 0\.5 rad$"):
        Program("spot", np.tile([0.0, 0.0, 0.01], (50, 1)), 0.1).check(car)
    base_program(yd.load_robot(robot_file=own), 20.0, 1.0, 0.02)  # within its limit


def test_what_does_not_know_a_steered_wheel_refuses_it() -> None:
    base = ROBOT.base.geometry.mecanum()
    with pytest.raises(ModelError, match="--until: got a base with a steered wheel"):
        read_wish("radius 1 %", ROBOT.base)
    signals = CalibrationSignals(np.arange(3.0), np.zeros((3, 2)), np.arange(3.0), np.zeros((3, 3)))
    with pytest.raises(ModelError, match="calibrate: got a base with a steered wheel"):
        calibrate([signals], base)
