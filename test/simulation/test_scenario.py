"""Lock-step drives of whole robots, and the bags they leave."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest
from tracking_runs import knowing

from youbot_dynamics.control.tracker import Tracker, TrackerSettings
from youbot_dynamics.control.trajectory import Trajectory, read_program
from youbot_dynamics.errors import InputError, RecordingError
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.pipeline._pipeline import Options
from youbot_dynamics.messages.drive_bag import EPOCH, write_bag
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import load_robot, robot_from_values, robot_table, values_of
from youbot_dynamics.simulation.faults import parse_faults
from youbot_dynamics.simulation.scenario import Gyro, drive
from youbot_dynamics.simulation.scenario._drive import ArmOrder, Drive
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
from youbot_dynamics.simulation.youbot import BaseOnly, Youbot

ROBOT = load_robot()
TRUTH = load_truth(1).with_geometry(ROBOT.base.geometry)
RAISED = np.array(ROBOT.arm.rest_position) + [0.5, 0.6, -0.4, 0.5, 0.3]


def whole_robot(seed: int = 1) -> Youbot:
    return Youbot(TRUTH, load_arm_truth(1), ROBOT, seed)


def order(time: float, name: str, value) -> ArmOrder:
    return ArmOrder(time, lambda arm, now: getattr(arm, name)(value, now))


def combined(seed: int = 1, **options) -> Drive:
    trajectory = read_program(program_path("combined"), 0.02).trajectory()
    orders = [order(1.0, "command_positions", RAISED), order(8.0, "command_velocities", [0.1, 0.0, 0.0, 0.0, 0.2])]
    return drive(trajectory, ROBOT, whole_robot(seed), seed, arm_orders=orders, **options)


@pytest.fixture(scope="module")
def run() -> Drive:
    return combined()


@pytest.fixture(scope="module")
def bag(run: Drive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bags") / "combined"
    write_bag(run, ROBOT, folder)
    return folder


def digest(run: Drive) -> str:
    numbers = [run.true_pose, run.odometry_pose, run.wheel_angle, run.arm.position, run.arm.winding]
    stamps = np.array([message.report.stamp for message in run.messages])
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in (*numbers, stamps))).hexdigest()


def test_two_runs_with_one_seed_are_equal_to_the_bit_and_their_bags_to_the_byte(run, bag, tmp_path):
    again = combined()
    assert digest(again) == digest(run)
    assert digest(combined(seed=2)) != digest(run)
    write_bag(again, ROBOT, tmp_path / "combined")
    for name in ("combined_0.mcap", "metadata.yaml"):
        assert (tmp_path / "combined" / name).read_bytes() == (bag / name).read_bytes(), name


def test_base_and_arm_move_as_told(run):
    at = np.searchsorted(run.reading_time, 7.9)
    np.testing.assert_allclose(run.arm.position[at], RAISED, atol=5e-3)
    assert np.all(run.arm.speed[-1, [0, 4]] > 0.05)
    assert np.linalg.norm(run.true_pose[-1] - run.odometry_pose[-1]) < 0.02


def test_the_base_drives_alike_with_and_without_an_arm(run):
    alone = drive(run.desired, ROBOT, BaseOnly(TRUTH, ROBOT.driver, 1), 1)
    np.testing.assert_array_equal(alone.true_pose, run.true_pose)
    assert alone.arm is None
    with pytest.raises(InputError, match="arm: got a robot without one"):
        _ = BaseOnly(TRUTH, ROBOT.driver, 1).arm


# Topics of `youbot record` beside the mock, a drive with its trajectory; diagnostics and parameter events apart.
LIVE = {
    "/driver/cmd_vel": "geometry_msgs/msg/Twist",
    "/driver/joint_states": "sensor_msgs/msg/JointState",
    "/driver/odom": "nav_msgs/msg/Odometry",
    "/ground_truth": "nav_msgs/msg/Odometry",
    "/ground_truth/arm": "sensor_msgs/msg/JointState",
    "/ground_truth/housing_temperature": "sensor_msgs/msg/JointState",
    "/ground_truth/winding_temperature": "sensor_msgs/msg/JointState",
    "/joint_states": "sensor_msgs/msg/JointState",
    "/odom": "nav_msgs/msg/Odometry",
    "/trajectory": "trajectory_msgs/msg/MultiDOFJointTrajectory",
    "/trajectory_tracker/cmd_vel": "geometry_msgs/msg/Twist",
    "/trajectory_tracker/error": "sensor_msgs/msg/JointState",
    "/wheel_commands": "sensor_msgs/msg/JointState",
}


def test_the_bag_has_the_topics_and_numbers_of_a_live_one(run, bag):
    recording = open_bag(bag)
    assert {info.name: info.type for info in recording.topics.values()} == LIVE
    poses = recording.poses("/ground_truth")
    np.testing.assert_allclose(poses.pose[:, :2], run.true_pose[:, :2], atol=1e-12)
    np.testing.assert_allclose(poses.stamp, run.reading_time, atol=1e-6)
    assert recording.origin == EPOCH * 1_000_000_000
    base = recording.joint_states("/driver/joint_states", ROBOT.driver.wheel_joints)
    arm = recording.joint_states("/driver/joint_states", ROBOT.driver.arm_joints)
    assert len(base.stamp) == len(arm.stamp) == len(run.reading_time)
    ours = recording.joint_states("/joint_states", ROBOT.driver.wheel_joints)
    np.testing.assert_allclose(ours.velocity, base.velocity * np.array(ROBOT.driver.velocity_sign))
    np.testing.assert_allclose(arm.position, run.arm.position, atol=1e-3)


def test_identification_reads_the_bag_as_a_live_one(bag):
    result = identify([bag], ROBOT, Options()).result
    found = {axis: result[f"robot.base.delay.effective_{axis}"].estimate for axis in ("x", "yaw")}
    assert found["x"].identified and found["yaw"].identified
    assert 0.02 < found["x"].value < 0.5


def test_a_folder_that_holds_something_is_left_as_it_is(run, tmp_path):
    (tmp_path / "precious").write_text("data")
    with pytest.raises(RecordingError, match="already exists"):
        write_bag(run, ROBOT, tmp_path)
    assert (tmp_path / "precious").read_text() == "data"


def test_faults_reach_the_controllers_and_the_bag(run):
    frozen = combined(faults=parse_faults("frozen_encoder joint=wheel_joint_fl after=5", ROBOT.driver))
    column = [m.report.position[0] for m in frozen.messages if m.channel == "base" and m.received > 6.0]
    assert len(set(column)) == 1
    assert np.linalg.norm(frozen.odometry_pose[-1] - frozen.true_pose[-1]) > 0.05


def test_listeners_hear_every_message_in_order():
    heard = []
    result = combined(listeners=[heard.append])
    assert tuple(heard) == result.messages
    assert {message.channel for message in heard} == {"odom", "base", "arm"}


def test_values_of_a_robot_make_the_same_robot():
    table = {parameter.name: parameter.default for parameter in robot_table()}
    assert set(values_of(ROBOT)) == set(table)
    assert robot_from_values(values_of(ROBOT)) == ROBOT


def test_odometry_of_the_bag_does_not_wait_for_a_late_message_of_the_arm(tmp_path):
    late = combined(faults=parse_faults("late delay=0.5 of=arm", ROBOT.driver))
    write_bag(late, ROBOT, tmp_path / "late")
    series = open_bag(tmp_path / "late").poses("/odom")
    assert np.max(series.received - series.stamp) < 0.1


def test_a_plant_that_was_used_before_is_refused():
    plant = whole_robot()
    plant.advance(0.5)
    with pytest.raises(InputError, match="time of the plant: got 0.5 s"):
        drive(read_program(program_path("combined"), 0.02).trajectory(), ROBOT, plant, 1)


def test_orders_the_arm_refuses_are_told():
    program = read_program(program_path("combined"), 0.02).trajectory()
    orders = [order(0.5, "command_positions", np.full(5, 9.0))]
    run = drive(program, ROBOT, whole_robot(), 1, arm_orders=orders)
    assert len(run.refusals) == 1
    assert "position[0]: got 9" in run.refusals[0]


def test_another_command_interface_is_refused_and_both_move_alike():
    program = read_program(program_path("combined"), 0.02).trajectory()
    with pytest.raises(InputError, match="interface: got serial"):
        drive(program, ROBOT, BaseOnly(TRUTH, ROBOT.driver, 1), 1, interface="serial")
    twist, wheels = (
        drive(program, ROBOT, BaseOnly(TRUTH, ROBOT.driver, 1), 1, interface=one).true_pose[-1]
        for one in ("twist", "wheels")
    )
    np.testing.assert_allclose(twist, wheels, atol=1e-3)


def test_a_gyro_tells_the_turn_once_its_bias_was_seen_and_it_has_turned_with_the_wheels():
    """Wheels that count too much turn odometry, but not with a gyro."""
    program = read_program(program_path("combined"), 0.02).trajectory()
    truth = TRUTH.with_geometry(ROBOT.base.geometry)
    small = dataclasses.replace(truth, wheel_radius_error=(0.03, 0.0, 0.03, 0.0))
    plain, helped = (
        drive(program, ROBOT, BaseOnly(small, ROBOT.driver, 1), 1, gyro=gyro, rest=5.0) for gyro in (None, Gyro(1))
    )
    drift = [np.max(np.abs(run.true_pose[:, 2] - run.odometry_pose[:, 2])) for run in (plain, helped)]
    assert drift[0] > 0.01
    assert drift[1] < 0.004


def test_what_is_beyond_the_limits_is_cut_and_made_up_for_without_swinging():
    """0.5 m in half a second: the base does what it can, and comes to rest where it should be."""
    leap = Trajectory([0.0, 1.0, 1.5, 12.0], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.45, 0.1, 0.3], [0.45, 0.1, 0.3]])
    run = drive(leap, knowing(ROBOT, TRUTH), BaseOnly(TRUTH, ROBOT.driver, 1), 1)
    assert run.given_up == ""
    speeds = np.array([sent.wheel_speeds for sent in run.sent])
    assert np.max(np.abs(speeds)) <= ROBOT.base.limits.wheel_speed + 1e-9
    path = run.true_pose[:, 0]
    assert np.max(path) < 0.45 + 0.1
    np.testing.assert_allclose(run.true_pose[-1], [0.45, 0.1, 0.3], atol=5e-3)


@pytest.mark.parametrize(
    "fault, reason",
    [
        ("lost share=1.0 of=base after=5", "odom stopped"),
        ("clock_jump size=2 after=5", "jumped ahead by 2.0"),
        ("clock_jump size=-2 after=5", "went back by 1."),
    ],
)
def test_without_odometry_or_with_a_clock_that_jumps_the_base_is_stopped(fault, reason):
    program = read_program(program_path("combined"), 0.02).trajectory()
    faults = parse_faults(fault, ROBOT.driver)
    run = drive(program, ROBOT, BaseOnly(TRUTH, ROBOT.driver, 1), 1, faults=faults)
    assert reason in run.given_up
    at = np.searchsorted(run.reading_time, 8.0)
    assert np.max(np.abs(run.true_twist[at:])) < 1e-3


@pytest.mark.parametrize("wrong", [None, "youbot", 1.0, np.zeros(3)])
def test_what_is_no_robot_truth_driver_or_trajectory_is_refused_by_name(wrong):
    path, truth = Trajectory([0.0, 1.0], np.zeros((2, 3))), load_arm_truth(1)
    base, settings = ROBOT.base.driven(), TrackerSettings()
    for name, kind, refused in (
        ("trajectory", "Trajectory", lambda: drive(wrong, ROBOT, BaseOnly(TRUTH, ROBOT.driver, 1), 1)),
        ("robot", "Robot", lambda: drive(path, wrong, BaseOnly(TRUTH, ROBOT.driver, 1), 1)),
        ("truth", "BaseTruth", lambda: BaseOnly(wrong, ROBOT.driver, 1)),
        ("driver", "Driver", lambda: BaseOnly(TRUTH, wrong, 1)),
        ("truth", "BaseTruth", lambda: Youbot(wrong, truth, ROBOT, 1)),
        ("arm_truth", "ArmTruth", lambda: Youbot(TRUTH, wrong, ROBOT, 1)),
        ("robot", "Robot", lambda: Youbot(TRUTH, truth, wrong, 1)),
        ("trajectory", "Trajectory", lambda: settings.for_trajectory(wrong, 0.0, base, 0.02)),
        ("base", "DrivenBase", lambda: settings.for_trajectory(path, 0.0, wrong, 0.02)),
        ("trajectory", "Trajectory", lambda: Tracker(wrong, 0.0, base, None, 0.02)),
    ):
        with pytest.raises(InputError, match=rf"^{name}: got .*; expected a youbot_dynamics.*\.{kind}$"):
            refused()


def test_a_bag_of_no_drive_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="drive: got None"):
        write_bag(None, load_robot(), tmp_path / "bag")  # type: ignore[arg-type]
    assert not any(tmp_path.iterdir())
