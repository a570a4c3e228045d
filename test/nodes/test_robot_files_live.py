"""A bringup with a robot file over DDS: the driver's kind of twist, arrays in its order and signs, two fixed wheels."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from ros_processes import PATIENCE, Observer, Processes, twist_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

import youbot_dynamics as yd  # noqa: E402
from youbot_dynamics.commands._demo import true_values  # noqa: E402
from youbot_dynamics.nodes._messages import pose_vector  # noqa: E402
from youbot_dynamics.resources import robot_path  # noqa: E402

pytestmark = pytest.mark.ros

ARRAY = """/**/base_controller:
  ros__parameters:
    command_interface: float64_multi_array
"""
SIGNS = """/**:
  ros__parameters:
    robot:
      driver:
        command_sign: [-1.0, 1.0, -1.0, 1.0]
"""


@pytest.mark.parametrize(
    ("name", "settings"),
    [("rosmaster_x3", ""), ("dingo_o", ARRAY), ("dingo_o", SIGNS + ARRAY)],
    ids=["TwistStamped", "array in another order", "array with signs"],
)
def test_a_robot_drives_sideways_as_its_operator_wants(name, settings, tmp_path):
    (tmp_path / "own.yaml").write_text("/**/mock_youbot:\n  ros__parameters:\n    geometry: known\n" + settings)
    with Processes() as processes, Observer() as observer:
        observer.listen(Odometry, "odom")
        observer.listen(Odometry, "ground_truth")
        own = str(tmp_path / "own.yaml")
        processes.youbot("bringup", "--robot", "mock", "--robot-file", name, "--params-file", own)
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: observer.received["odom"] and observer.received["ground_truth"], "odom")
        observer.wait(lambda: cmd_vel.get_subscription_count() > 1, "the controller")
        message = Twist()
        message.linear.y = 0.2
        patience = time.monotonic() + 60.0
        while pose_vector(observer.received["ground_truth"][-1].pose.pose)[1] < 0.2:
            assert time.monotonic() < patience, "the robot does not obey"
            cmd_vel.publish(message)
            observer.spin(0.05)
        x, y, yaw = pose_vector(observer.received["ground_truth"][-1].pose.pose)
        assert abs(x) < 0.02 and abs(yaw) < 0.05 and y > 0.0
        # No node of the arm, for none of these robots has one.
        assert "/arm_ekf" not in {f"/{node}" for node in observer.node.get_node_names()}


@pytest.mark.slow
def test_a_differential_robot_is_recorded_identified_and_driven_with_the_result(tmp_path):
    """From its file to odometry; its sideways commands are dropped, and nothing of them reaches the wheels."""
    own, bag, file = tmp_path / "own.yaml", tmp_path / "bag", robot_path("turtlebot3_burger")
    own.write_text("/**/mock_youbot:\n  ros__parameters:\n    seed: 2\n")
    words = ("--robot", "mock", "--robot-file", "turtlebot3_burger", "--params-file", str(own))
    with Processes() as processes, Observer() as observer:
        observer.listen(Odometry, "odom")
        running = processes.youbot("bringup", *words, "--record", str(bag))
        observer.wait(lambda: observer.received["odom"], "odom")
        played = processes.youbot("play", "excitation", "--robot-file", "turtlebot3_burger", "--duration", "30")
        assert played.wait(PATIENCE) == 0
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 0
    found = yd.identify([bag], yd.load_robot(robot_file=file), yd.Options())
    values, true = found.result.parameters(), true_values(2, bag, file)
    for fact in ("wheel_radius", "track"):
        name = f"robot.base.geometry.{fact}"
        assert values[name] == pytest.approx(true[name], rel=5e-3)
    for axis in ("x", "yaw"):
        name = f"robot.base.delay.effective_{axis}"
        assert values[name] == pytest.approx(true[name], abs=5e-3)
    yd.write_outputs(tmp_path / "found", found, (), "a differential robot")

    with Processes() as processes, Observer() as observer:
        for topic in ("odom", "ground_truth"):
            observer.listen(Odometry, topic)
        observer.listen(JointState, "wheel_commands")
        processes.youbot("bringup", *words, "--result-file", str(tmp_path / "found" / "result.yaml"))
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: observer.received["odom"] and observer.received["ground_truth"], "odom")
        observer.wait(lambda: cmd_vel.get_subscription_count() > 1, "the controller")
        message = twist_message([0.15, 0.3, 0.3])
        patience = time.monotonic() + 60.0
        while pose_vector(observer.received["ground_truth"][-1].pose.pose)[2] < 2.0:
            assert time.monotonic() < patience, "the robot does not obey"
            cmd_vel.publish(message)
            observer.spin(0.05)
        begin = len(observer.received["odom"])
        observer.wait(lambda: len(observer.received["odom"]) > begin + 40, "rest")
        ends = [pose_vector(observer.received[topic][-1].pose.pose) for topic in ("odom", "ground_truth")]
        assert np.allclose(*ends, atol=[4e-3, 4e-3, 8e-3])
        speeds = np.array([one.velocity for one in observer.received["wheel_commands"]])
        base = yd.load_robot(tmp_path / "found" / "result.yaml", robot_file=file).base.geometry.mecanum()
        assert np.allclose(speeds, base.wheel_speeds(base.twist(speeds)), atol=1e-9)
        assert np.abs(base.twist(speeds)[:, 0]).max() == pytest.approx(0.15, rel=1e-3), "not scaled down for the rest"


@pytest.mark.slow
def test_a_tricycle_is_recorded_identified_and_driven_with_the_result(tmp_path):
    """From its file to odometry with the result: recorded by twists, driven by speed and angle of its joints."""
    own, bag, file = tmp_path / "own.yaml", tmp_path / "bag", robot_path("optiodom_tricycle")
    own.write_text("/**/mock_youbot:\n  ros__parameters:\n    seed: 5\n")
    words = ("--robot", "mock", "--robot-file", "optiodom_tricycle", "--params-file", str(own))
    with Processes() as processes, Observer() as observer:
        observer.listen(Odometry, "odom")
        running = processes.youbot("bringup", *words, "--record", str(bag))
        observer.wait(lambda: observer.received["odom"], "odom")
        played = processes.youbot("play", "excitation", "--robot-file", "optiodom_tricycle", "--duration", "60")
        assert played.wait(PATIENCE) == 0
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 0
    found = yd.identify([bag], yd.load_robot(robot_file=file), yd.Options())
    values, true = found.result.parameters(), true_values(5, bag, file)
    for fact, tolerance in (
        ("geometry.wheel_radius", {"rel": 5e-3}),
        ("geometry.wheelbase", {"rel": 5e-3}),
        ("geometry.steering_offset", {"abs": 2e-3}),
        ("delay.effective_x", {"abs": 5e-3}),
        ("delay.effective_yaw", {"abs": 5e-3}),
    ):
        print(fact, values[f"robot.base.{fact}"], true[f"robot.base.{fact}"])
        assert values[f"robot.base.{fact}"] == pytest.approx(true[f"robot.base.{fact}"], **tolerance)
    yd.write_outputs(tmp_path / "found", found, (), "a tricycle")

    own.write_text(own.read_text() + ARRAY.replace("float64_multi_array", "joint_state"))
    with Processes() as processes, Observer() as observer:
        for topic in ("odom", "ground_truth"):
            observer.listen(Odometry, topic)
        observer.listen(JointState, "wheel_commands")
        processes.youbot("bringup", *words, "--result-file", str(tmp_path / "found" / "result.yaml"))
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: observer.received["odom"] and observer.received["ground_truth"], "odom")
        observer.wait(lambda: cmd_vel.get_subscription_count() > 1, "the controller")
        message = twist_message([0.1, 0.3, 0.4])
        patience = time.monotonic() + 60.0
        while pose_vector(observer.received["ground_truth"][-1].pose.pose)[2] < 2.0:
            assert time.monotonic() < patience, "the robot does not obey"
            cmd_vel.publish(message)
            observer.spin(0.05)
        turning = observer.received["ground_truth"][-1].twist.twist
        assert [turning.linear.x, turning.angular.z] == pytest.approx([0.1, 0.4], rel=5e-3)  # as the floor has it
        begin = len(observer.received["odom"])
        observer.wait(lambda: len(observer.received["odom"]) > begin + 40, "rest")
        ends = [pose_vector(observer.received[topic][-1].pose.pose) for topic in ("odom", "ground_truth")]
        print(*ends)
        assert np.allclose(*ends, atol=[4e-3, 4e-3, 8e-3])
        fastest = max(observer.received["wheel_commands"], key=lambda one: one.velocity[0])
        base = yd.load_robot(tmp_path / "found" / "result.yaml", robot_file=file).base.geometry.mecanum()
        assert base.twist(base.rolling(fastest.velocity, fastest.position)) == pytest.approx([0.1, 0.0, 0.4], abs=1e-6)
