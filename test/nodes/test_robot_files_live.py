"""A bringup with a robot file over DDS: the driver's kind of twist, and arrays in its order and signs."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from ros_processes import Observer, Processes  # noqa: E402

from youbot_dynamics.nodes._messages import pose_vector  # noqa: E402

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
