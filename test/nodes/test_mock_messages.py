"""The messages of the simulated robot, field by field beside those of the real driver as read in its code."""

from __future__ import annotations

from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from repository import ROOT

pytest.importorskip("rclpy")

from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rclpy.serialization import deserialize_message  # noqa: E402
from ros_processes import joint_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Header  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from youbot_dynamics.nodes._messages import pose_vector, seconds, trajectory_knots, values_of  # noqa: E402
from youbot_dynamics.nodes._mock_arm import ArmTopics, BricsCommands, TrajectoryGoals  # noqa: E402
from youbot_dynamics.nodes.mock_youbot import report_message  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402
from youbot_dynamics.simulation.faults import ARM, BASE, ODOMETRY  # noqa: E402
from youbot_dynamics.simulation.robot_driver import RobotDriver  # noqa: E402
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth  # noqa: E402

FIXTURE = yaml.safe_load((ROOT / "test" / "support" / "driver_messages.yaml").read_text(encoding="utf-8"))
ROBOT = load_robot()
SHIFT = 1_700_000_000.0
LEFT_WHEELS = [0, 2]
KINDS = {BASE: JointState, ARM: JointState, ODOMETRY: Odometry}


def plant(kind: str):
    truth = load_truth(0).with_geometry(ROBOT.base.geometry), load_arm_truth(0), ROBOT, 1
    if kind == "mujoco":
        pytest.importorskip("mujoco")
        from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot

        return MujocoYoubot(*truth)
    from youbot_dynamics.simulation.youbot import Youbot

    return Youbot(*truth)


def passes(kind: str, twist=(0.2, 0.0, 0.0), duration=1.0, **options):
    """Messages of each pass of the loop, while the base drives and the arm turns."""
    driver = RobotDriver(plant(kind), ROBOT.driver, 1, **options)
    driver.command_twist(twist, 0.0)
    driver.command_arm(lambda arm, time: arm.command_velocities([0.3, 0.3, -0.3, 0.3, 0.3], time), 0.0)
    out = []
    for k in range(round(duration / 0.02)):
        driver.advance((k + 1) * 0.02)
        found = driver.read()
        assert [channel for channel, _ in found] == FIXTURE["order"]
        messages = {c: report_message(report, SHIFT, ("odom", "base_footprint")) for c, report in found}
        out.append({c: deserialize_message(data, KINDS[c]) for c, data in messages.items()})
    return out


@pytest.fixture(scope="module", params=["twin", "mujoco"])
def drive(request):
    return passes(request.param)


def whole(values, quantum):
    steps = np.asarray(values) / quantum
    return np.abs(steps - np.round(steps)).max() < 1e-6


def test_fixture_speaks_of_every_field_there_is():
    fields = set(JointState.get_fields_and_field_types())
    assert fields == {"header", "name", "position", "velocity", "effort"}
    assert set(Header.get_fields_and_field_types()) == {"stamp", "frame_id"}
    assert set(Odometry.get_fields_and_field_types()) == {"header", "child_frame_id", "pose", "twist"}
    assert set(Twist.get_fields_and_field_types()) == {"linear", "angular"}


@pytest.mark.parametrize("which", [BASE, ARM])
def test_joint_messages_have_the_drivers_names_lengths_and_zeros(drive, which):
    expected = FIXTURE[which]
    for messages in drive:
        message = messages[which]
        assert message.header.frame_id == expected["frame_id"]
        assert list(message.name) == expected["name"]
        assert {field: len(getattr(message, field)) for field in expected["lengths"]} == expected["lengths"]
        for field, places in expected["always_zero"].items():
            assert [getattr(message, field)[k] for k in places] == [0.0] * len(places)


def test_all_messages_of_a_pass_have_one_stamp_and_passes_come_at_50_hz(drive):
    stamps = []
    for messages in drive:
        assert messages[BASE].header.stamp == messages[ODOMETRY].header.stamp == messages[ARM].header.stamp
        stamps.append(seconds(messages[BASE].header.stamp))
    steps = np.diff(stamps)
    assert steps.mean() == pytest.approx(0.02, abs=2e-4)
    assert 1e-4 < steps.std() < 4e-3
    assert stamps[0] == pytest.approx(SHIFT + 0.02, abs=0.01)


@pytest.mark.parametrize("kind", ["twin", "mujoco"])
@pytest.mark.parametrize("name", list(FIXTURE["base"]["signs"]))
def test_wheels_have_the_drivers_signs_position_of_the_left_ones_flipped(kind, name):
    case = FIXTURE["base"]["signs"][name]
    message = passes(kind, case["twist"])[-1][BASE]
    assert np.sign(message.position[:4]).tolist() == case["position"]
    assert np.sign(message.velocity[:4]).tolist() == case["velocity"]
    assert np.abs(message.position[:4]).min() > 0.1
    # The trap: position and velocity of the same left wheel contradict each other.
    product = np.array(message.position[:4]) * np.array(message.velocity[:4])
    assert [k for k in range(4) if product[k] < 0.0] == LEFT_WHEELS


def test_wheels_are_counted_in_ticks_and_speeds_in_15_motor_rpm(drive):
    quantum = FIXTURE["base"]["quantum"]
    position = np.array([messages[BASE].position[:4] for messages in drive])
    velocity = np.array([messages[BASE].velocity[:4] for messages in drive])
    assert whole(position, quantum["position"]) and whole(velocity, quantum["velocity"])
    assert np.abs(velocity).max() > 3.0


def test_arm_is_counted_in_ticks_15_motor_rpm_and_milliamperes(drive):
    expected = FIXTURE["arm"]
    gear = np.array(expected["gear"])
    position, velocity, effort = (
        np.array([getattr(messages[ARM], field)[:5] for messages in drive])
        for field in ("position", "velocity", "effort")
    )
    assert whole(position, expected["motor_quantum"]["position"] / gear)
    assert whole(velocity, expected["motor_quantum"]["velocity"] / gear)
    counts = effort / np.array(expected["effort_quantum"])
    assert np.abs(counts - np.round(counts)).max() < 0.02
    assert np.abs(counts).max() > 100.0
    # Joints turn as commanded, in the signs of the URDF.
    assert np.sign(velocity[-1]).tolist() == [1, 1, -1, 1, 1]


def test_arm_without_gripper_still_sends_seven_efforts():
    expected = FIXTURE["arm_without_gripper"]
    for messages in passes("twin", duration=0.1, gripper=False):
        message = messages[ARM]
        assert message.header.frame_id == expected["frame_id"] and list(message.name) == expected["name"]
        assert {field: len(getattr(message, field)) for field in expected["lengths"]} == expected["lengths"]
        assert [message.effort[k] for k in expected["always_zero"]["effort"]] == [0.0, 0.0]


def test_base_effort_is_there_for_a_robot_that_has_it():
    message = passes("twin", duration=1.0, wheel_effort=True)[-1][BASE]
    assert len(message.effort) == 8 and not np.any(message.effort[4:])
    # In the signs of the velocity: what drives the wheels forward.
    assert np.sign(message.effort[:4]).tolist() == np.sign(message.velocity[:4]).tolist()


def test_odometry_has_the_drivers_frames_and_fills_neither_covariance_nor_height(drive):
    expected = FIXTURE["odom"]
    for messages in drive:
        message = messages[ODOMETRY]
        assert message.header.frame_id == expected["frame_id"]
        assert message.child_frame_id == expected["child_frame_id"]
        for covariance in (message.pose.covariance, message.twist.covariance):
            assert len(covariance) == 36 and np.all(covariance == expected["covariance"])
        for field in expected["always_zero"]:
            assert attrgetter(field)(message) == 0.0, field
    assert pose_vector(drive[-1][ODOMETRY].pose.pose)[0] > 0.05
    assert message.twist.twist.linear.x == pytest.approx(0.2, abs=0.05)


def test_driver_adds_each_step_with_the_heading_after_it():
    found = passes("twin", (0.3, 0.0, 1.0), duration=3.0)
    base, pose = ROBOT.driver.mecanum(), np.zeros(3)
    signs, last = np.array(ROBOT.driver.position_sign), np.zeros(4)
    for messages in found:
        angles = signs * np.array(messages[BASE].position[:4])
        dx, dy, turn = base.twist(angles - last)
        yaw, last = pose[2] + turn, angles
        pose += [np.cos(yaw) * dx - np.sin(yaw) * dy, np.sin(yaw) * dx + np.cos(yaw) * dy, turn]
    assert pose_vector(found[-1][ODOMETRY].pose.pose) == pytest.approx(pose, abs=1e-9)


def test_commands_for_the_arm_are_read_by_name():
    message = joint_message(0.0, ["b", "x", "a"], position=[2.0, 9.0, 1.0], velocity=[4.0])
    assert values_of(message, message.position, ["a", "b"]).tolist() == [1.0, 2.0]
    assert values_of(message, message.velocity, ["a", "b"]) is None
    assert values_of(message, message.position, ["a", "c"]) is None


def point(time, **fields):
    found = JointTrajectoryPoint(**fields)
    found.time_from_start.sec, found.time_from_start.nanosec = int(time), round(time % 1 * 1e9)
    return found


def test_trajectories_are_read_by_name_and_must_be_of_one_form():
    names = ["b", "a"]
    message = JointTrajectory(joint_names=names)
    assert trajectory_knots(message, ["a", "b"]) is None
    message.points = [point(0.5, positions=[1.0, 2.0]), point(1.25, positions=[3.0, 4.0])]
    times, positions, velocities, accelerations = trajectory_knots(message, ["a", "b"])
    assert times.tolist() == [0.5, 1.25] and positions.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert velocities is None and accelerations is None
    assert trajectory_knots(message, ["a", "c"]) is None
    message.points[1].velocities = [0.0, 0.0]
    assert trajectory_knots(message, ["a", "b"]) is None
    message.points[0].velocities = [5.0, 6.0]
    assert trajectory_knots(message, ["a", "b"])[2].tolist() == [[6.0, 5.0], [0.0, 0.0]]
    message.points[0].positions = [1.0]
    assert trajectory_knots(message, ["a", "b"]) is None


class FakeArm:
    """An arm that records its commands."""

    def __init__(self):
        self.position, self.commands, self.time = np.array([0.1, 0.2]), [], 0.0
        self.model = SimpleNamespace(tree=SimpleNamespace(limits=[SimpleNamespace(lower=-9.0, upper=9.0)] * 2))

    def __getattr__(self, name):
        return lambda *values: self.commands.append((name, [np.asarray(v).tolist() for v in values[:-1]]))

    def take(self, command):
        command(self, self.time)


def brics(unit, **values):
    return [SimpleNamespace(joint_uri=name, unit=unit, value=value) for name, value in values.items()]


def test_brics_commands_reach_the_joints_they_name_in_the_drivers_units():
    arm = FakeArm()
    commands = BricsCommands(("a", "b"), arm.take)
    commands.on_positions(SimpleNamespace(positions=brics("rad", b=1.0)))
    commands.on_positions(SimpleNamespace(positions=brics("rad", a=2.0, other=9.0)))
    commands.on_positions(SimpleNamespace(positions=[*brics("deg", a=3.0), *brics("rad", other=9.0)]))
    commands.on_velocities(SimpleNamespace(velocities=brics("s^-1 rad", b=0.5)))
    assert arm.commands == [
        ("command_positions", [[0.1, 1.0]]),
        ("command_positions", [[2.0, 1.0]]),
        ("command_velocities", [[0.0, 0.5]]),
    ]


def test_brics_commands_hold_a_joint_that_rests_on_its_stop():
    driver = RobotDriver(plant("twin"), ROBOT.driver, 1)
    arm = driver.plant.arm
    driver.command_arm(lambda arm, time: arm.command_velocities([0.0, -0.3, 0.0, 0.0, 0.0], time), 0.0)
    driver.advance(1.0)
    lower = arm.model.tree.limits[1].lower
    assert arm.position[1] < lower
    commands = BricsCommands(ROBOT.driver.arm_joints, lambda command: driver.command_arm(command, 1.0))
    commands.on_positions(SimpleNamespace(positions=brics("rad", arm_joint_1=0.3)))
    assert (driver.refused, driver.last_refusal) == (0, "")
    driver.advance(2.5)
    assert arm.position[:2] == pytest.approx([0.3, lower], abs=0.02)
    # What is asked for itself is not moved into the limits.
    commands.on_positions(SimpleNamespace(positions=brics("rad", arm_joint_2=lower - 0.0021)))
    assert driver.refused == 1


class Ears:
    """A node that notes what listens to which topic."""

    def __init__(self):
        self.of = {}

    def create_subscription(self, kind, topic, take, qos):
        self.of[topic] = take

    def create_service(self, kind, name, serve):
        self.of[name] = lambda: serve(None, None)

    def create_publisher(self, *_):
        return None

    def get_logger(self):
        return SimpleNamespace(info=lambda text: None)


@pytest.mark.parametrize("by", ["trajectory", "topic", "switch", "reset", "refused", "incomplete"])
def test_brics_commands_go_on_from_where_others_have_moved_the_arm(by):
    driver, node = RobotDriver(plant("twin"), ROBOT.driver, 1), Ears()
    names = ROBOT.driver.arm_joints
    topics = ArmTopics(node, names, lambda: driver, lambda: driver.plant.time, False)
    commands = []
    arm = driver.plant.arm
    arm.command_positions = lambda values, time: commands.append(np.asarray(values).tolist())
    topics._brics.on_positions(SimpleNamespace(positions=brics("rad", arm_joint_1=0.5)))
    rest = arm.position
    path = JointTrajectory(joint_names=names, points=[point(1.0, positions=rest.tolist())])
    if by == "trajectory":
        node.of["arm_1/arm_controller/joint_trajectory"](path)
    elif by == "topic":
        node.of["arm_1/joint_velocity_command"](joint_message(0.0, names, velocity=[0.1] * 5))
    elif by == "switch":
        node.of["arm_1/switchOffMotors"]()
    elif by == "reset":
        topics.reset()
    elif by == "refused":
        path.points[0].positions[0] = 99.0
        node.of["arm_1/arm_controller/joint_trajectory"](path)
    else:
        node.of["arm_1/joint_velocity_command"](joint_message(0.0, names[:4], velocity=[0.1] * 4))
    topics._brics.on_positions(SimpleNamespace(positions=brics("rad", arm_joint_2=0.6)))
    moved = by not in ("refused", "incomplete")
    assert commands[-1][:2] == [rest[0] if moved else 0.5, 0.6]
    assert (driver.refused, driver.incomplete) == (int(by == "refused"), int(by == "incomplete"))


class Goal:
    def __init__(self, trajectory):
        self.request, self.is_cancel_requested, self.executed = SimpleNamespace(trajectory=trajectory), False, False

    def execute(self):
        self.executed = True


def test_goals_must_be_complete_and_are_reached_when_their_time_is_over():
    arm = FakeArm()
    goals = TrajectoryGoals(("a", "b"), arm.take, lambda: arm.time)
    whole = {"positions": [1.0, 2.0], "velocities": [0.0, 0.0], "accelerations": [0.0, 0.0]}
    good = JointTrajectory(joint_names=["b", "a"], points=[point(1.5, **whole)])
    assert goals.fits(good)
    for lacking in ("velocities", "accelerations"):
        fewer = {name: value for name, value in whole.items() if name not in (lacking, "accelerations")}
        assert not goals.fits(JointTrajectory(joint_names=["a", "b"], points=[point(1.5, **fewer)]))
    three = {name: [*value, 0.0] for name, value in whole.items()}
    assert not goals.fits(JointTrajectory(joint_names=["a", "b", "c"], points=[point(1.5, **three)]))
    first, second = Goal(good), Goal(good)
    goals.accept(first)
    # A defect of the driver: it does not look which name stands where.
    assert arm.commands[0][1][1] == [[1.0, 2.0]]
    arm.time = 1.0
    goals.accept(second)
    goals.advance()
    assert not first.executed
    arm.time, second.is_cancel_requested = 1.6, True
    goals.advance()
    assert first.executed and second.executed
    assert arm.commands[-1] == ("command_velocities", [[0.0, 0.0]])
