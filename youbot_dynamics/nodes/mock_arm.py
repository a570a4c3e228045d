"""The arm's topics of mock_youbot: commands, motor services, optional motor sensors, and the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Empty
from trajectory_msgs.msg import JointTrajectory

from youbot_dynamics.nodes.driver_messages import trajectory_knots, values_of
from youbot_dynamics.nodes.messages import joint_message
from youbot_dynamics.nodes.mock_driver_arm import BricsCommands, serve
from youbot_dynamics.nodes.runtime import COMMAND_QOS, STATE_QOS

# The plants bring in the compiler: 0.2 s of every start.
if TYPE_CHECKING:
    from youbot_dynamics.simulation.arm_driver import ArmDriver
    from youbot_dynamics.simulation.robot_driver import RobotDriver

_SLOWLY = 25  # passes of the 50 Hz loop from one temperature to the next: 2 Hz


class ArmTopics:
    """Topics under arm_1/ and ground_truth/.

    Args:
        node: that has them.
        joints: names of the arm's joints.
        driver: the simulated driver of the moment.
        now: time of the plant [s].
        motor_sensors: whether voltages and temperatures go out, which the youBot does not have.
    """

    def __init__(
        self,
        node: Node,
        joints: tuple[str, ...],
        driver: Callable[[], RobotDriver],
        now: Callable[[], float],
        motor_sensors: bool,
    ) -> None:
        self._joints, self._driver, self._now = joints, driver, now
        self._passes = 0
        self._brics = BricsCommands(joints, self._send)
        for kind in ("position", "velocity", "torque"):
            node.create_subscription(
                JointState, f"arm_1/joint_{kind}_command", lambda m, kind=kind: self._on_command(kind, m), COMMAND_QOS
            )
        trajectory = "arm_1/arm_controller/joint_trajectory"
        node.create_subscription(JointTrajectory, trajectory, self._on_trajectory, COMMAND_QOS)
        node.create_service(Empty, "arm_1/switchOffMotors", lambda q, a: self._switch(False, a))
        node.create_service(Empty, "arm_1/switchOnMotors", lambda q, a: self._switch(True, a))
        self._goals = serve(node, joints, self._brics, self._command, now)
        self._truth = node.create_publisher(JointState, "ground_truth/arm", STATE_QOS)
        self._true_winding = node.create_publisher(JointState, "ground_truth/winding_temperature", STATE_QOS)
        self._true_housing = node.create_publisher(JointState, "ground_truth/housing_temperature", STATE_QOS)
        self._voltage = self._winding = self._housing = None
        if motor_sensors:
            self._voltage = node.create_publisher(JointState, "arm_1/motor_voltage", STATE_QOS)
            self._winding = node.create_publisher(JointState, "arm_1/motor_temperature", STATE_QOS)
            self._housing = node.create_publisher(JointState, "arm_1/housing_temperature", STATE_QOS)

    def begin_anew(self) -> None:
        """Another arm is in place of the former one."""
        self._brics.forget()

    def publish(self, shift: float) -> None:
        """One pass of the loop; `shift` [s] from the plant's time to that of the stamps."""
        from youbot_dynamics.simulation.arm_driver import torque_of_current

        if self._goals is not None:
            self._goals.advance()
        plant = self._driver().plant
        arm = cast("ArmDriver", plant.arm)  # of the twin as of MuJoCo
        stamp = plant.time + shift
        torque = torque_of_current(arm.model) * arm.current
        self._truth.publish(joint_message(stamp, self._joints, arm.position, arm.speed, torque))
        if self._voltage is not None:
            reading = arm.read_voltages()
            self._voltage.publish(joint_message(reading.stamp + shift, self._joints, effort=reading.voltage))
        if self._passes % _SLOWLY == 0:
            self._true_winding.publish(joint_message(stamp, self._joints, effort=arm.winding))
            self._true_housing.publish(joint_message(stamp, self._joints, effort=arm.housing))
            if self._winding is not None and self._housing is not None:
                warm = arm.read_temperatures()
                self._winding.publish(joint_message(warm.stamp + shift, self._joints, effort=warm.winding))
                self._housing.publish(joint_message(warm.stamp + shift, self._joints, effort=warm.housing))
        self._passes += 1

    def _on_command(self, kind: str, message: JointState) -> None:
        values = {"position": message.position, "velocity": message.velocity, "torque": message.effort}[kind]
        found = values_of(message, values, self._joints)
        if found is None:
            self._driver().skip(f"arm_1/joint_{kind}_command lacks joints or values")
            return
        call = {"position": "command_positions", "velocity": "command_velocities", "torque": "command_torques"}[kind]
        self._command(lambda arm, time: getattr(arm, call)(found, time))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        if not message.points:
            # As ros2_control's controllers take it: stop.
            self._command(lambda arm, time: arm.command_velocities(np.zeros(len(self._joints)), time))
            return
        knots = trajectory_knots(message, self._joints)
        if knots is None:
            self._driver().skip("arm_1/arm_controller/joint_trajectory lacks joints, or its points are not alike")
            return
        self._command(lambda arm, time: arm.command_trajectory(*knots, time))

    def _command(self, command: Callable[[Any, float], None]) -> None:
        def carry_out(arm: Any, time: float) -> None:
            command(arm, time)
            self._brics.forget()

        self._send(carry_out)

    def _send(self, command: Callable[[Any, float], None]) -> None:
        self._driver().command_arm(command, self._now())

    def _switch(self, on: bool, response: Empty.Response) -> Empty.Response:
        self._driver().switch_arm(on)
        self._brics.forget()
        return response
