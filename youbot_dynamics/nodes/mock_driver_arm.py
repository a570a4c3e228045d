"""The arm's interface of the real driver, on machines that have its message packages: brics topics, trajectory action.

Neither package is among the pip packages of ROS: with those, the arm is commanded by the topics of `mock_arm` alone.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from youbot_dynamics.nodes.driver_messages import trajectory_knots
from youbot_dynamics.nodes.runtime import COMMAND_QOS

Vector = NDArray[np.float64]
Command = Callable[[Callable[[Any, float], None]], None]

POSITION_UNIT, VELOCITY_UNIT = "rad", "s^-1 rad"  # as boost writes them; the driver skips every other


class BricsCommands:
    """Positions and velocities for any of the joints; the others go on with what they do.

    Args:
        joints: names of the arm's joints.
        command: takes a command for the arm of the moment, and does not `forget`.
    """

    def __init__(self, joints: tuple[str, ...], command: Command) -> None:
        self._joints, self._command = joints, command
        self._last: tuple[str, Vector] | None = None

    def on_positions(self, message: Any) -> None:
        """A brics_actuator/JointPositions."""
        self._pass_on("command_positions", named_values(message.positions, POSITION_UNIT))

    def on_velocities(self, message: Any) -> None:
        """A brics_actuator/JointVelocities."""
        self._pass_on("command_velocities", named_values(message.velocities, VELOCITY_UNIT))

    def forget(self) -> None:
        """Something else has moved the arm: joints that are not named hold from now on what they then have."""
        self._last = None

    def _pass_on(self, call: str, named: Mapping[str, float]) -> None:
        def send(arm: Any, time: float) -> None:
            if self._last is not None and self._last[0] == call:
                values = self._last[1].copy()
            elif call == "command_positions":
                # A joint that rests on its stop is a little beyond its limit, where no command may send it.
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


def named_values(values: Iterable[Any], unit: str) -> dict[str, float]:
    """Values by the names of their joints; those in another unit are skipped, as the driver does."""
    return {value.joint_uri: value.value for value in values if value.unit == unit}


class TrajectoryGoals:
    """Goals of FollowJointTrajectory as the driver takes them: refused if incomplete, reached when their time is over.

    Args:
        joints: names of the arm's joints.
        command: takes a command for the arm of the moment.
        now: time of the plant [s].
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
        """Send the arm off with a goal handle's trajectory; it is executed, as rclpy says, when its time is over."""
        trajectory = goal.request.trajectory
        # The driver gives the values to its joints in their own order, whatever the order of the names.
        trajectory.joint_names = list(self._joints)
        knots = trajectory_knots(trajectory, self._joints)
        assert knots is not None
        self._command(lambda arm, time: arm.command_trajectory(*knots, time))
        self._running.append((self._now() + float(knots[0][-1]), goal))

    def advance(self) -> None:
        """End the goals whose time is over, and those that were cancelled: the arm stops then."""
        now, left = self._now(), []
        for end, goal in self._running:
            if goal.is_cancel_requested:
                self._command(lambda arm, time: arm.command_velocities(np.zeros(len(self._joints)), time))
            if goal.is_cancel_requested or now >= end:
                goal.execute()
            else:
                left.append((end, goal))
        self._running = left


def serve(
    node: Node, joints: tuple[str, ...], brics: BricsCommands, command: Command, now: Callable[[], float]
) -> TrajectoryGoals | None:
    """Offer what this machine has the packages for, and say once what it lacks; the goals to advance, if any."""
    missing = [name for name in ("brics_actuator", "control_msgs") if importlib.util.find_spec(name) is None]
    if missing:
        node.get_logger().info(
            f"{' and '.join(missing)} not installed: without these commands of the real driver's arm"
        )
    if "brics_actuator" not in missing:
        from brics_actuator.msg import JointPositions, JointVelocities

        for kind, name, take in (
            (JointPositions, "position", brics.on_positions),
            (JointVelocities, "velocity", brics.on_velocities),
        ):
            node.create_subscription(kind, f"arm_1/arm_controller/{name}_command", take, COMMAND_QOS)
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
