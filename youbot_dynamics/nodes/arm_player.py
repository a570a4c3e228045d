"""Node arm_player: moves the arm along the recommended excitation by a joint trajectory.

It goes by the action FollowJointTrajectory, as the youBot's driver takes it, where control_msgs is installed and a
server is there; else by the topic of the simulated robot and of ros2_control's trajectory controller. Without
control_msgs, `youbot play arm_excitation --write FILE` makes a goal that others can send.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import rclpy
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import TrajectoryError
from youbot_dynamics.identification.excitation import ArmExcitation, arm_motion, from_here
from youbot_dynamics.nodes._listening import listen
from youbot_dynamics.nodes._messages import values_of
from youbot_dynamics.nodes._parameters import NodeParameters
from youbot_dynamics.nodes._player import DISCOVERY_TIMEOUT, Player, play_once
from youbot_dynamics.nodes._runtime import COMMAND_QOS, DRIVER_QOS, acknowledged, parse
from youbot_dynamics.nodes.processes import StopFlag

TOPIC = "arm_1/arm_controller/joint_trajectory"
ACTION = "arm_1/arm_controller/follow_joint_trajectory"
_ANSWER = 1.0  # [s] a server has to answer when the arm is stopped


class _TopicInterface:
    """To the arm by a message; an empty one stops it."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(JointTrajectory, TOPIC, COMMAND_QOS)
        self.name = f"topic {self._publisher.topic_name}"

    def ready(self) -> bool:
        """Whether somebody takes trajectories."""
        return self._publisher.get_subscription_count() > 0

    def send(self, trajectory: JointTrajectory) -> None:
        """Send the arm off."""
        self._publisher.publish(trajectory)

    def problem(self) -> str:
        """Why it was not carried out: a topic has no answer."""
        return ""

    def stop(self) -> str:
        """Stop the arm, and wait until that has arrived; what went wrong with it, or nothing."""
        self._publisher.publish(JointTrajectory())
        return "" if acknowledged(self._publisher) else "the trajectory that stops the arm was not confirmed"


class ActionInterface:
    """To the arm by a `client` of FollowJointTrajectory; cancelling its goal, which `make_goal` makes, stops it."""

    def __init__(self, node: Node, client: Any, make_goal: Any) -> None:
        self._node, self._client, self._make_goal = node, client, make_goal
        self._sent: Any = None
        self._result: Any = None
        self.name = f"action {node.resolve_topic_name(ACTION)}"

    def ready(self) -> bool:
        """Whether somebody takes trajectories."""
        return bool(self._client.server_is_ready())

    def send(self, trajectory: JointTrajectory) -> None:
        """Send the arm off; the answer is awaited by `problem`."""
        goal = self._make_goal()
        goal.trajectory = trajectory
        self._sent, self._result = self._client.send_goal_async(goal), None

    def problem(self) -> str:
        """Why it was not carried out; empty while nothing is wrong."""
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
        text = getattr(result, "error_string", "")
        return f"the goal ended with error {result.error_code}{f': {text}' if text else ''}"

    def stop(self) -> str:
        """Stop the arm, and wait for the answer, not for the end: the youBot's driver never tells that."""
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


def _interfaces_of(node: Node) -> tuple[ActionInterface | _TopicInterface, ...]:
    """Ways this machine has the packages for, the better one first."""
    topic = _TopicInterface(node)
    if importlib.util.find_spec("control_msgs") is None:
        return (topic,)
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionClient

    client = ActionClient(node, FollowJointTrajectory, ACTION)
    return ActionInterface(node, client, FollowJointTrajectory.Goal), topic


_GRACE = 1.0  # [s] for an action server beside a topic: it is found later, and answers
_ASTRAY = 0.3  # [rad] from where it should be
_TOO_LONG = 1.0  # [s] astray before it is stopped
_SETTLE = 0.5  # [s] after the end


class ArmPlayer(Player):
    """Plays one trajectory of the arm, and stops it where the arm does not follow."""

    def __init__(self) -> None:
        super().__init__("arm_player")
        self.robot = NodeParameters(self, ()).robot()
        self.position: Vector | None = None
        self._interfaces = _interfaces_of(self)
        self._used: ActionInterface | _TopicInterface | None = None
        listen(self, JointState, "driver/joint_states", self._on_states, DRIVER_QOS)

    def _on_states(self, message: JointState) -> None:
        position = values_of(message, message.position, self.robot.driver.arm_joints)
        self.position = self.position if position is None else position

    def motion(self, given: argparse.Namespace) -> ArmExcitation:
        """The recommended excitation."""
        print("choosing the motion", file=sys.stderr)
        return arm_motion(self.robot, given.duration)

    def play(self, motion: ArmExcitation, flag: StopFlag) -> bool:
        """Go to its start slowly, then along it; False if a signal came first.

        Raises:
            TrajectoryError: no arm, no node that takes trajectories, a refusal, or an arm that does not follow.
        """
        if not self.wait(lambda: self.position is not None, DISCOVERY_TIMEOUT, flag) and not flag.set:
            raise TrajectoryError(
                f"topic {self.resolve_topic_name('driver/joint_states')}",
                got="no states of the arm",
                remedy="start the robot first: youbot bringup --robot mock",
            )
        interface = self._find_interface(flag)
        if self.position is None or interface is None:
            return False
        fastest = [limit.velocity for limit in self.robot.arm.model().tree.limits]
        whole = from_here(motion, self.position, fastest)
        lasts = float(whole.times[-1])
        print(f"moving the arm for {lasts:.1f} s by the {interface.name}", file=sys.stderr)
        print("keep clear of it; Ctrl-C stops it", file=sys.stderr)
        self._used = interface
        interface.send(self._message(whole))
        begun = close = time.monotonic()
        while not flag.set and time.monotonic() - begun < lasts + _SETTLE:
            rclpy.spin_once(self, timeout_sec=0.05)
            if problem := interface.problem():
                raise TrajectoryError(interface.name, got=problem)
            now = time.monotonic()
            wanted = [np.interp(now - begun, whole.times, column) for column in whole.positions.T]
            away = float(np.max(np.abs(self.position - wanted)))
            close = now if away < _ASTRAY else close
            if now - close > _TOO_LONG:
                raise TrajectoryError(
                    "arm", got=f"{away:.2f} rad from where it should be", remedy="see the log of its driver"
                )
        return not flag.set

    def _find_interface(self, flag: StopFlag) -> ActionInterface | _TopicInterface | None:
        """Best interface that somebody takes trajectories by; None after a signal."""
        self.wait(lambda: any(interface.ready() for interface in self._interfaces), DISCOVERY_TIMEOUT, flag)
        self.wait(self._interfaces[0].ready, _GRACE, flag)
        if flag.set:
            return None
        interface = next((interface for interface in self._interfaces if interface.ready()), None)
        if interface is None:
            lacks = "" if len(self._interfaces) > 1 else "control_msgs is not installed, so the action was not tried; "
            raise TrajectoryError(
                f"action {self.resolve_topic_name(ACTION)}, topic {self.resolve_topic_name(TOPIC)}",
                got="no node that takes trajectories",
                expected="the youBot driver, the simulated robot, or ros2_control's trajectory controller",
                remedy=f"{lacks}to send it in another way, write a goal with youbot play arm_excitation --write FILE",
            )
        return interface

    def cancel(self) -> None:
        """Stop the arm, if it was sent off."""
        problem = self._used.stop() if self._used is not None else ""
        if problem:
            self.get_logger().error(problem)

    def _message(self, motion: ArmExcitation) -> JointTrajectory:
        message = JointTrajectory(joint_names=list(self.robot.driver.arm_joints))
        rows = zip(motion.times, motion.positions, motion.velocities, motion.accelerations, strict=True)
        for moment, position, velocity, acceleration in rows:
            point = JointTrajectoryPoint(
                positions=position.tolist(), velocities=velocity.tolist(), accelerations=acceleration.tolist()
            )
            point.time_from_start = Duration(nanoseconds=round(float(moment) * 1e9)).to_msg()
            message.points.append(point)
        return message


def main(arguments: Sequence[str] | None = None) -> None:
    """Move the arm once; exit code 0 when it went to the end."""
    parser = argparse.ArgumentParser(prog="arm_player", description="Move the arm along the recommended excitation.")
    parser.add_argument("--duration", type=float, default=60.0, help="of the excitation [s]")
    play_once(ArmPlayer, parse(parser, arguments))


if __name__ == "__main__":
    main()
