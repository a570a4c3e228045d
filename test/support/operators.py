"""An operator who drives the base by cmd_vel over DDS and receives what reaches the driver."""

from __future__ import annotations

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from ros_processes import Observer
from sensor_msgs.msg import JointState

from youbot_dynamics.nodes._messages import seconds, twist_vector
from youbot_dynamics.robot import load_robot

DRIVER = "driver/cmd_vel"
ROBOT = load_robot()
BASE = ROBOT.base.geometry.mecanum()
COMMAND = Twist()
COMMAND.linear.x, COMMAND.linear.y, COMMAND.angular.z = 0.3, -0.1, 0.2
# What the driver receives then: a twist in its own geometry.
DRIVER_TWIST = ROBOT.driver.mecanum().twist(BASE.wheel_speeds(twist_vector(COMMAND)))


def moving(message: Twist) -> bool:
    return abs(message.linear.x) + abs(message.linear.y) + abs(message.angular.z) > 1e-9


class Operator(Observer):
    """Sends cmd_vel and receives what reaches the driver."""

    def __init__(self) -> None:
        super().__init__("operator")
        self.listen(Twist, DRIVER)
        self.listen(JointState, "wheel_commands")
        self.listen(DiagnosticArray, "/diagnostics")
        self.cmd_vel = self.node.create_publisher(Twist, "cmd_vel", 1)

    def drive(self, duration: float, message: Twist = COMMAND) -> None:
        """Send a command for so long [s] by the stamps of what is sent to the wheels."""
        begin = len(self.received["wheel_commands"])

        def driven() -> bool:
            stamps = [seconds(sent.header.stamp) for sent in self.received["wheel_commands"][begin:]]
            return len(stamps) > 1 and stamps[-1] - stamps[0] >= duration

        self.send(self.cmd_vel, message, driven, f"{duration} s of wheel_commands")

    def start_driving(self) -> None:
        self.wait(lambda: self.cmd_vel.get_subscription_count() > 0, "base_controller")
        self.send(self.cmd_vel, COMMAND, self.at_whole_speed, "the whole speed")

    def at_whole_speed(self) -> bool:
        sent = self.received[DRIVER]
        return bool(sent) and np.allclose(twist_vector(sent[-1]), DRIVER_TWIST, rtol=0.0, atol=1e-9)

    def rest(self) -> Twist:
        """Last driver command once everything sent has arrived."""
        self.drain(DRIVER)
        return self.received[DRIVER][-1]

    def stopped(self) -> bool:
        return not moving(self.received[DRIVER][-1])
