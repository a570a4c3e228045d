"""The way to the youBot driver: the three command interfaces, in its geometry and signs."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Twist
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from youbot_dynamics.nodes._messages import joint_message, twist_message
from youbot_dynamics.nodes._runtime import COMMAND_QOS, acknowledged
from youbot_dynamics.robot import Robot

_TYPES = {
    "twist": (Twist, "driver/cmd_vel"),
    "joint_state": (JointState, "driver/wheel_velocity_command"),
    "float64_multi_array": (Float64MultiArray, "wheel_velocity_controller/commands"),
}
INTERFACES = tuple(_TYPES)


class DriverOutput:
    """Sends wheel speeds to a driver, by one of INTERFACES.

    `twist` folds the wheel speeds of our calibrated geometry back with the driver's own, so that calibration reaches a
    driver that takes nothing but a Twist.
    """

    def __init__(self, node: Node, robot: Robot, interface: str) -> None:
        kind, topic = _TYPES[interface]
        self.interface = interface
        self.publisher: Publisher = node.create_publisher(kind, topic, COMMAND_QOS)
        self._base = robot.driver.mecanum()
        self._names = robot.driver.wheel_joints
        self._signs = np.array(robot.driver.command_sign)

    def send(self, wheel_speeds: NDArray[np.float64], stamp: float) -> None:
        """Send wheel speeds (4,) [rad/s] (ours: positive rolls forward) at `stamp` [s]."""
        if self.interface == "twist":
            self.publisher.publish(twist_message(self._base.twist(wheel_speeds)))
        elif self.interface == "joint_state":
            speeds = self._signs * wheel_speeds
            self.publisher.publish(joint_message(stamp, self._names, velocity=speeds))
        else:
            self.publisher.publish(Float64MultiArray(data=[float(value) for value in wheel_speeds]))

    def stop(self, stamp: float) -> bool:
        """Send zero and wait until it has arrived; False where nobody confirms it."""
        self.send(np.zeros(4), stamp)
        return acknowledged(self.publisher)
