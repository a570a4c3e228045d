"""Topics, actions and services of the simulated arm: those of this package, and those of the youBot's ROS driver.

The driver's brics topics and trajectory action need message packages that are not on pip: without them only our own
topics command the arm.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Empty
from trajectory_msgs.msg import JointTrajectory

from youbot_dynamics.arrays import Vector
from youbot_dynamics.nodes._messages import nanoseconds, trajectory_knots, values_of
from youbot_dynamics.nodes._runtime import COMMAND_QOS, DRIVER_QOS, STATE_QOS
from youbot_dynamics.recording.message_types import joint_state_cdr

# The plants bring in the compiler: 0.2 s of every start.
if TYPE_CHECKING:
    from youbot_dynamics.simulation.robot_driver import RobotDriver

Command = Callable[[Callable[[Any, float], None]], None]

_TEMPERATURE_PASSES = 25  # passes of the 50 Hz loop from one temperature to the next: 2 Hz
_POSITION_UNIT, _VELOCITY_UNIT = "rad", "s^-1 rad"  # as boost writes them; the driver skips every other
_COMMANDS = {  # kind in the topic's name -> field of the message, method of the arm
    "position": ("position", "command_positions"),
    "velocity": ("velocity", "command_velocities"),
    "torque": ("effort", "command_torques"),
}


class BricsCommands:
    """Positions and velocities for any of the joints; the others keep their last command.

    `command` sends a command to the present arm, and does not `forget`.
    """

    def __init__(self, joints: tuple[str, ...], command: Command) -> None:
        self._joints, self._command = joints, command
        self._last: tuple[str, Vector] | None = None

    def on_positions(self, message: Any) -> None:
        """A brics_actuator/JointPositions."""
        self._pass_on("command_positions", message.positions, _POSITION_UNIT)

    def on_velocities(self, message: Any) -> None:
        """A brics_actuator/JointVelocities."""
        self._pass_on("command_velocities", message.velocities, _VELOCITY_UNIT)

    def forget(self) -> None:
        """Another command has moved the arm: joints that are not named hold their position at the next one."""
        self._last = None

    def _pass_on(self, call: str, values: Iterable[Any], unit: str) -> None:
        """Values in another unit are skipped, as the driver does."""
        named = {value.joint_uri: value.value for value in values if value.unit == unit}

        def send(arm: Any, time: float) -> None:
            if self._last is not None and self._last[0] == call:
                values = self._last[1].copy()
            elif call == "command_positions":
                # A joint at its stop is a little beyond its limit, to which no command may send it.
                limits = arm.model.tree.limits
                values = np.clip(arm.position, [limit.lower for limit in limits], [limit.upper for limit in limits])
            else:
                values = np.zeros(len(self._joints))
            for k, name in enumerate(self._joints):
                values[k] = named.get(name, values[k])
            getattr(arm, call)(values, time)
            self._last = call, values

        if any(name in self._joints for name in named):
            self._command(send)


class TrajectoryGoals:
    """Goals of FollowJointTrajectory as the driver takes them: refused if incomplete, reached when their time is over.

    `command` sends a command to the present arm; `now` returns the time of the plant [s].
    """

    def __init__(self, joints: tuple[str, ...], command: Command, now: Callable[[], float]) -> None:
        self._joints, self._command, self._now = joints, command, now
        self._running: list[tuple[float, Any]] = []

    def fits(self, trajectory: JointTrajectory) -> bool:
        """Whether it names the joints and no other, and each point has positions, velocities and accelerations."""
        if len(trajectory.joint_names) != len(self._joints):
            return False
        knots = trajectory_knots(trajectory, self._joints)
        return knots is not None and knots[2] is not None and knots[3] is not None

    def accept(self, goal: Any) -> None:
        """Start a goal handle's trajectory; the goal is executed, in the terms of rclpy, when its time is over."""
        trajectory = goal.request.trajectory
        # The driver gives the values to its joints in their own order, whatever the order of the names.
        trajectory.joint_names = list(self._joints)
        knots = trajectory_knots(trajectory, self._joints)
        assert knots is not None
        self._command(lambda arm, time: arm.command_trajectory(*knots, time))
        self._running.append((self._now() + float(knots[0][-1]), goal))

    def advance(self) -> None:
        """End the goals whose time is over, and those that were cancelled: the arm stops then."""
        now, running = self._now(), []
        for end, goal in self._running:
            if goal.is_cancel_requested:
                self._command(stop_arm)
            if goal.is_cancel_requested or now >= end:
                goal.execute()
            else:
                running.append((end, goal))
        self._running = running


def stop_arm(arm: Any, time: float) -> None:
    """Command the arm to stop."""
    arm.command_velocities(np.zeros(len(arm.position)), time)


def serve(
    node: Node, joints: tuple[str, ...], brics: BricsCommands, command: Command, now: Callable[[], float]
) -> TrajectoryGoals | None:
    """Offer the interfaces whose packages are installed, and log the missing ones; the goals to advance, if any."""
    missing = [name for name in ("brics_actuator", "control_msgs") if importlib.util.find_spec(name) is None]
    if missing:
        node.get_logger().info(
            f"{' and '.join(missing)} not installed: without these commands of the real driver's arm"
        )
    if "brics_actuator" not in missing:
        from brics_actuator.msg import JointPositions, JointVelocities

        topic = "arm_1/arm_controller/{}_command"
        node.create_subscription(JointPositions, topic.format("position"), brics.on_positions, COMMAND_QOS)
        node.create_subscription(JointVelocities, topic.format("velocity"), brics.on_velocities, COMMAND_QOS)
    if "control_msgs" in missing:
        return None
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionServer, CancelResponse, GoalResponse

    goals = TrajectoryGoals(joints, command, now)

    def conclude(goal: Any) -> Any:
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.succeed()
        return FollowJointTrajectory.Result(error_code=FollowJointTrajectory.Result.SUCCESSFUL)

    ActionServer(
        node,
        FollowJointTrajectory,
        "arm_1/arm_controller/follow_joint_trajectory",
        execute_callback=conclude,
        goal_callback=lambda goal: GoalResponse.ACCEPT if goals.fits(goal.trajectory) else GoalResponse.REJECT,
        handle_accepted_callback=goals.accept,
        cancel_callback=lambda goal: CancelResponse.ACCEPT,
    )
    return goals


class ArmTopics:
    """Topics under arm_1/ and ground_truth/.

    `driver` is the present simulated driver, `now` returns the time of the plant [s]; `motor_sensors`: whether voltages
    and temperatures are published, which the youBot does not have.
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
        for kind in _COMMANDS:
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
        self._motor_sensors = motor_sensors
        if motor_sensors:
            self._voltage = node.create_publisher(JointState, "arm_1/motor_voltage", DRIVER_QOS)
            self._winding = node.create_publisher(JointState, "arm_1/motor_temperature", DRIVER_QOS)
            self._housing = node.create_publisher(JointState, "arm_1/housing_temperature", DRIVER_QOS)

    def reset(self) -> None:
        """Forget the former arm: another one has replaced it."""
        self._brics.forget()

    def publish(self, shift: float) -> None:
        """Publish one pass of the loop; `shift` [s] from the plant's time to that of the stamps."""
        if self._goals is not None:
            self._goals.advance()
        plant = self._driver().plant
        arm = plant.arm
        stamp = nanoseconds(plant.time + shift)
        self._truth.publish(joint_state_cdr(stamp, self._joints, arm.position, arm.speed, arm.torque))
        if self._motor_sensors:
            voltages = arm.read_voltages()
            at = nanoseconds(voltages.stamp + shift)
            self._voltage.publish(joint_state_cdr(at, self._joints, effort=voltages.voltage))
        if self._passes % _TEMPERATURE_PASSES == 0:
            self._true_winding.publish(joint_state_cdr(stamp, self._joints, effort=arm.winding))
            self._true_housing.publish(joint_state_cdr(stamp, self._joints, effort=arm.housing))
            if self._motor_sensors:
                measured = arm.read_temperatures()
                at = nanoseconds(measured.stamp + shift)
                self._winding.publish(joint_state_cdr(at, self._joints, effort=measured.winding))
                self._housing.publish(joint_state_cdr(at, self._joints, effort=measured.housing))
        self._passes += 1

    def _on_command(self, kind: str, message: JointState) -> None:
        field, call = _COMMANDS[kind]
        values = values_of(message, getattr(message, field), self._joints)
        if values is None:
            self._driver().skip(f"arm_1/joint_{kind}_command lacks joints or values")
        else:
            self._command(lambda arm, time: getattr(arm, call)(values, time))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        if not message.points:
            self._command(stop_arm)  # as ros2_control's controllers take it
            return
        knots = trajectory_knots(message, self._joints)
        if knots is None:
            self._driver().skip(
                "arm_1/arm_controller/joint_trajectory lacks joints, or its points have different fields"
            )
        else:
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
