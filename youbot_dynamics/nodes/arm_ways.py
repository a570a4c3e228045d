"""The ways to send an arm along a trajectory: the action of the youBot's driver, and the topic of everybody else.

The youBot's driver (and ros2_control beside its topic) takes the action FollowJointTrajectory of control_msgs, a
package that is not among the pip packages of ROS. The simulated robot takes the topic, and the action where it can.
"""

from __future__ import annotations

import importlib.util
import time
from typing import Any, Protocol

import rclpy
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from youbot_dynamics.nodes.runtime import COMMAND_QOS, acknowledged

TOPIC = "arm_1/arm_controller/joint_trajectory"
ACTION = "arm_1/arm_controller/follow_joint_trajectory"
_ANSWER = 1.0  # [s] a server has to answer when the arm is stopped


class Way(Protocol):
    """How a trajectory gets to the arm."""

    name: str

    def ready(self) -> bool:
        """Whether somebody takes trajectories."""

    def send(self, trajectory: JointTrajectory) -> None:
        """Send the arm off."""

    def problem(self) -> str:
        """Why it was not carried out; empty while nothing is wrong."""

    def stop(self) -> str:
        """Stop the arm; what went wrong with that, or nothing."""


class TopicWay:
    """By a message; an empty one stops the arm.

    Args:
        node: that publishes.
    """

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(JointTrajectory, TOPIC, COMMAND_QOS)
        self.name = f"topic {self._publisher.topic_name}"

    def ready(self) -> bool:
        """Whether somebody subscribes."""
        return self._publisher.get_subscription_count() > 0

    def send(self, trajectory: JointTrajectory) -> None:
        """Publish it."""
        self._publisher.publish(trajectory)

    def problem(self) -> str:
        """Nothing: a topic has no answer."""
        return ""

    def stop(self) -> str:
        """Publish an empty trajectory and wait until it has arrived."""
        self._publisher.publish(JointTrajectory())
        return "" if acknowledged([self._publisher]) else "nobody confirmed the trajectory that stops the arm"


class ActionWay:
    """By a goal of FollowJointTrajectory; cancelling it stops the arm.

    Args:
        node: that calls.
        client: of the action.
        goal: makes an empty goal.
    """

    def __init__(self, node: Node, client: Any, goal: Any) -> None:
        self._node, self._client, self._make_goal = node, client, goal
        self._sent: Any = None
        self._result: Any = None
        self.name = f"action {node.resolve_topic_name(ACTION)}"

    def ready(self) -> bool:
        """Whether there is a server."""
        return bool(self._client.server_is_ready())

    def send(self, trajectory: JointTrajectory) -> None:
        """Send it as a goal; the answer is awaited by `problem`."""
        goal = self._make_goal()
        goal.trajectory = trajectory
        self._sent, self._result = self._client.send_goal_async(goal), None

    def problem(self) -> str:
        """Whether the goal was rejected, or ended without success."""
        if self._sent is None or not self._sent.done():
            return ""
        handle = self._sent.result()
        if not handle.accepted:
            return "the goal was rejected: see the log of the driver; are its joints named as robot.driver.arm_joints?"
        if self._result is None:
            self._result = handle.get_result_async()
        if not self._result.done():
            return ""
        result = self._result.result().result
        if result.error_code == result.SUCCESSFUL:
            return ""
        told = getattr(result, "error_string", "")
        return f"the goal ended with error {result.error_code}{f': {told}' if told else ''}"

    def stop(self) -> str:
        """Cancel the goal, and wait for the answer; not for the end: the youBot's driver never tells that."""
        if self._sent is None:
            return ""
        deadline = time.monotonic() + _ANSWER
        self._await(self._sent, deadline)
        if self._sent.done() and not self._sent.result().accepted:
            return ""
        if self._sent.done():
            cancelled = self._sent.result().cancel_goal_async()
            self._await(cancelled, deadline)
            if cancelled.done():
                return ""
        return "the driver did not answer when its goal was cancelled: use the emergency stop if the arm moves"

    def _await(self, future: Any, deadline: float) -> None:
        while not future.done() and time.monotonic() < deadline:
            rclpy.spin_once(self._node, timeout_sec=0.02)


def ways_of(node: Node) -> tuple[Way, ...]:
    """Ways this machine has the packages for, the better one first."""
    topic = TopicWay(node)
    if importlib.util.find_spec("control_msgs") is None:
        return (topic,)
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionClient

    client = ActionClient(node, FollowJointTrajectory, ACTION)
    return ActionWay(node, client, FollowJointTrajectory.Goal), topic
