"""Bare rclpy nodes with the topics, rates and message sizes of ours, which compute nothing: what the middleware costs.

`python -m bench.live_peers NAME...` runs the named ones in one process, on the executor of our nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PointStamped, Twist
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState, Temperature
from std_msgs.msg import Float64
from trajectory_msgs.msg import MultiDOFJointTrajectory

from youbot_dynamics.nodes._runtime import run

RATE = 50.0  # [Hz]
WHEELS = [f"wheel_joint_{corner}" for corner in ("fl", "fr", "bl", "br")]
ARM = [f"arm_joint_{number}" for number in range(1, 6)]
ERROR = "trajectory_tracker/error"


def joints(names: Sequence[str], *fields: str) -> JointState:
    """Message that has these fields filled."""
    return JointState(name=names, **{field: [0.1] * len(names) for field in fields})


class Bare(Node):
    """Publishes what it has ready when something comes, or when a timer is due."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        values = [KeyValue(key=f"value_{k}", value="0.123456") for k in range(7)]
        status = DiagnosticStatus(name=f"/{name}: state", message="as it should be", values=values)
        self.every(1.0, ("/diagnostics", DiagnosticArray(status=[status])))

    def speaker(self, *what: tuple[str, Any]) -> Callable[..., None]:
        """Callback that publishes these messages on these topics."""
        pairs = [(self.create_publisher(type(message), topic, 10), message) for topic, message in what]

        def speak(*_: object) -> None:
            for publisher, message in pairs:
                publisher.publish(message)

        return speak

    def every(self, period: float, *what: tuple[str, Any]) -> None:
        """Publish every `period` [s]."""
        self.create_timer(period, self.speaker(*what), clock=Clock(clock_type=ClockType.STEADY_TIME))

    def hear(self, topic: str, kind: type, *what: tuple[str, Any], depth: int = 10, raw: bool = False) -> None:
        """Publish for each message."""
        self.create_subscription(kind, topic, self.speaker(*what), depth, raw=raw)


def base_controller() -> Node:
    """Two commands in, two out."""
    node = Bare("base_controller")
    node.hear("cmd_vel", Twist, depth=1)
    node.hear("trajectory_tracker/cmd_vel", Twist, depth=1)
    node.every(1.0 / RATE, ("driver/cmd_vel", Twist()), ("wheel_commands", joints(WHEELS, "velocity")))
    return node


def odometry() -> Node:
    """Pass on every message of the driver, those of the wheels with odom; answer each wheel command with two."""
    node = Bare("odometry")
    node.hear("imu", Imu)
    error = joints(["x", "y", "yaw"], "position", "velocity")
    node.hear("wheel_commands", JointState, ("trajectory_tracker/cmd_vel", Twist()), (ERROR, error))
    pass_on = node.create_publisher(JointState, "joint_states", 10)
    speak = node.speaker(("odom", Odometry()))

    def take(message: JointState) -> None:
        pass_on.publish(message)
        if message.name[0] == WHEELS[0]:
            speak()

    node.create_subscription(JointState, "driver/joint_states", take, 10)
    return node


def trajectory_tracker() -> Node:
    """Topics that seldom carry a message; what ours does for each wheel command, `odometry` calls."""
    node = Bare("trajectory_tracker")
    node.hear("cmd_vel", Twist, depth=1)
    node.hear("trajectory", MultiDOFJointTrajectory, depth=1)
    node.hear("line_deviation", PointStamped)
    node.every(1.0 / RATE)
    return node


def stop_base() -> Node:
    """Hears nothing: base_controller speaks to ours on a local socket."""
    return Bare("stop_base")


def recorder() -> Node:
    """Every topic of the driving robot and of the arm's filter as bytes."""
    node = Bare("recorder")
    for topic in ("driver/joint_states", "joint_states", "wheel_commands", ERROR, *OF_ARM):
        node.hear(topic, JointState, depth=1000, raw=True)
    for topic in ("odom", "driver/odom", "ground_truth"):
        node.hear(topic, Odometry, depth=1000, raw=True)
    for topic in ("cmd_vel", "driver/cmd_vel", "trajectory_tracker/cmd_vel"):
        node.hear(topic, Twist, depth=1000, raw=True)
    node.hear("/diagnostics", DiagnosticArray, depth=1000, raw=True)
    return node


OF_ARM = ("arm_1/estimated_joint_states", "arm_1/friction", "arm_1/friction_feedforward")


def arm_ekf() -> Node:
    """Three estimates for each message of the arm, and slower ones."""
    node = Bare("arm_ekf")
    node.hear("arm_1/motor_voltage", JointState)
    node.hear("arm_1/motor_temperature", JointState)
    estimates = joints(ARM, "position", "velocity")
    speak = node.speaker((OF_ARM[0], estimates), *((topic, joints(ARM, "effort")) for topic in OF_ARM[1:]))

    def take(message: JointState) -> None:
        if message.name[0] == ARM[0]:
            speak()

    node.create_subscription(JointState, "driver/joint_states", take, 10)
    forces = ("wheel_normal_forces", joints(WHEELS, "effort"))
    node.every(0.1, ("tip_over_margin", Float64()), ("centre_of_mass", PointStamped()), forces)
    heat = [(f"arm_1/{joint}/{part}_temperature", Temperature()) for joint in ARM for part in ("winding", "housing")]
    node.every(0.5, ("arm_1/torque_available", joints(ARM, "effort")), *heat)
    return node


def check_driver() -> Node:
    """Hears the driver."""
    node = Bare("check_driver")
    node.hear("driver/joint_states", JointState)
    node.hear("driver/odom", Odometry)
    return node


def identification() -> Node:
    """Idle: hears nothing."""
    return Bare("identification")


if __name__ == "__main__":
    names, sys.argv[1:] = sys.argv[1:], []
    run(lambda: [globals()[name]() for name in names])
