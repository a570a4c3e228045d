"""Publisher of commands to the driver of the robot, by its command interfaces, in its geometry, order and signs."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from youbot_dynamics.errors import ParameterError, listed
from youbot_dynamics.kinematics.steering import joint_commands
from youbot_dynamics.nodes._messages import nanoseconds
from youbot_dynamics.nodes._runtime import COMMAND_QOS, acknowledged
from youbot_dynamics.parameters import fixed_parameter
from youbot_dynamics.recording.message_types import joint_state_cdr, twist_cdr, twist_stamped_cdr
from youbot_dynamics.robot import Robot

_TYPES = {
    "twist": (Twist, "driver/cmd_vel"),
    "joint_state": (JointState, "driver/wheel_velocity_command"),
    "float64_multi_array": (Float64MultiArray, "wheel_velocity_controller/commands"),
}
INTERFACES = tuple(_TYPES)
COMMAND_INTERFACE = fixed_parameter(
    "command_interface",
    "twist",
    "Kind of command that the driver takes.",
    choices=INTERFACES,
    source="a2s-institute/youbot_driver_ros_interface@4c6795f: takes Twist alone",
)


def interfaces_of(robot: Robot) -> tuple[str, ...]:
    """Interfaces that the driver of a robot can have: an array of speeds cannot steer."""
    return INTERFACES[:-1] if robot.driver.wheelbase > 0.0 else INTERFACES


class DriverOutput:
    """Sends wheel speeds to a driver, by one of INTERFACES.

    `twist` converts the wheel speeds of our calibrated geometry back by the driver's own, so that calibration reaches a
    driver that takes nothing but a twist: a TwistStamped where `robot.driver.stamped_twist` is set.
    `float64_multi_array` has the order of `robot.driver.array_order`. A steered wheel has its speed and the position of
    its steering in `joint_state`, and no array.

    Raises:
        ParameterError: an array for a steered wheel.
    """

    def __init__(self, node: Node, robot: Robot, interface: str) -> None:
        kind, topic = _TYPES[interface]
        self._stamped = robot.driver.stamped_twist
        if interface == "twist" and self._stamped:
            kind = TwistStamped
        self.interface = interface
        self.publisher: Publisher = node.create_publisher(kind, topic, COMMAND_QOS)
        self._base = robot.driver.mecanum()
        if interface not in (known := interfaces_of(robot)):
            remedy = "an array of speeds cannot steer"
            raise ParameterError("parameter command_interface", got=interface, expected=listed(known), remedy=remedy)
        self._names = robot.driver.wheel_joints
        self._signs = np.array(robot.driver.command_sign)
        self._order = robot.driver.array_places()

    def send(self, wheel_speeds: NDArray[np.float64], stamp: float, steering: float | None = None) -> None:
        """Send wheel speeds (n,) [rad/s], positive forward, at `stamp` [s]; the angle of a steered wheel."""
        speeds = self._signs * wheel_speeds
        if self.interface == "twist":
            twist = self._base.twist(wheel_speeds)
            stamped = twist_stamped_cdr(nanoseconds(stamp), "", twist) if self._stamped else None
            self.publisher.publish(stamped or twist_cdr(twist))
        elif self._base.steered:
            position, velocity = (self._signs * values for values in joint_commands(wheel_speeds, steering))
            self.publisher.publish(joint_state_cdr(nanoseconds(stamp), self._names, position, velocity))
        elif self.interface == "joint_state":
            self.publisher.publish(joint_state_cdr(nanoseconds(stamp), self._names, velocity=speeds))
        else:
            self.publisher.publish(Float64MultiArray(data=speeds[self._order].tolist()))

    def stop(self, stamp: float) -> bool:
        """Send zero and wait until it has arrived; False where no subscriber confirms it."""
        self.send(np.zeros(len(self._names)), stamp)
        return acknowledged(self.publisher)
