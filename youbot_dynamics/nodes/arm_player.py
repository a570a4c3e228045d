"""Node arm_player: moves the arm along the recommended excitation by a joint trajectory.

It uses the action FollowJointTrajectory, as the youBot's driver does, where control_msgs is installed and a server
runs; else the topic of the simulated robot and of ros2_control's trajectory controller. Without control_msgs,
`youbot play arm_excitation --write FILE` makes a goal that another program can send.
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
from youbot_dynamics.nodes._player import DISCOVERY_TIMEOUT, Player, play_once, start_first
from youbot_dynamics.nodes._runtime import COMMAND_QOS, DRIVER_QOS, acknowledged, parse
from youbot_dynamics.nodes.processes import StopFlag

TOPIC = "arm_1/arm_controller/joint_trajectory"
ACTION = "arm_1/arm_controller/follow_joint_trajectory"
_ANSWER = 1.0  # [s] a server has to answer when the arm is stopped


class _TopicInterface:
    """Commands the arm by a message; an empty one stops it."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(JointTrajectory, TOPIC, COMMAND_QOS)
        self.name = f"topic {self._publisher.topic_name}"

    def ready(self) -> bool:
        """Whether a subscriber takes trajectories."""
        return self._publisher.get_subscription_count() > 0

    def send(self, trajectory: JointTrajectory) -> None:
        """Send a trajectory."""
        self._publisher.publish(trajectory)

    def problem(self) -> str:
        """Empty: a topic reports no failure."""
        return ""

    def stop(self) -> str:
        """Stop the arm, and wait until that has arrived; why it failed, or empty."""
        self._publisher.publish(JointTrajectory())
        return "" if acknowledged(self._publisher) else "the trajectory that stops the arm was not confirmed"


class ActionInterface:
    """Commands the arm by a `client` of FollowJointTrajectory with goals of `make_goal`; cancelling one stops it."""

    def __init__(self, node: Node, client: Any, make_goal: Any) -> None:
        self._node, self._client, self._make_goal = node, client, make_goal
        self._sent: Any = None
        self._result: Any = None
        self.name = f"action {node.resolve_topic_name(ACTION)}"

    def ready(self) -> bool:
        """Whether a server takes trajectories."""
        return bool(self._client.server_is_ready())

    def send(self, trajectory: JointTrajectory) -> None:
        """Send a goal; `problem` checks for its result."""
        goal = self._make_goal()
        goal.trajectory = trajectory
        self._sent, self._result = self._client.send_goal_async(goal), None

    def problem(self) -> str:
        """Why the goal failed; empty while it has not."""
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
        """Stop the arm, and wait for the answer, not for the end, which the youBot's driver never reports."""
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
    """Interfaces whose packages are installed, the better one first."""
    topic = _TopicInterface(node)
    if importlib.util.find_spec("control_msgs") is None:
        return (topic,)
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionClient

    client = ActionClient(node, FollowJointTrajectory, ACTION)
    return ActionInterface(node, client, FollowJointTrajectory.Goal), topic


_GRACE = 1.0  # [s] for an action server beside a topic: it is discovered later, and preferred
_PATH_TOLERANCE = 0.3  # [rad] error of a joint
_TOLERANCE_TIME = 1.0  # [s] beyond the tolerance before the arm is stopped
_SETTLE = 0.5  # [s] after the end


class ArmPlayer(Player):
    """Plays one trajectory of the arm, and stops it where the arm does not follow."""

    def __init__(self) -> None:
        super().__init__("arm_player")
        self.robot = NodeParameters(self, ()).robot()
        self.position: Vector | None = None
        self._interfaces = _interfaces_of(self)
        self._active: ActionInterface | _TopicInterface | None = None
        listen(self, JointState, "driver/joint_states", self._on_states, DRIVER_QOS)

    def _on_states(self, message: JointState) -> None:
        position = values_of(message, message.position, self.robot.driver.arm_joints)
        self.position = self.position if position is None else position

    def motion(self, given: argparse.Namespace) -> ArmExcitation:
        """The recommended excitation."""
        print("choosing the motion", file=sys.stderr)
        return arm_motion(self.robot, given.duration)

    def play(self, motion: ArmExcitation, flag: StopFlag) -> bool:
        """Move to its start slowly, then along it; False if a signal came first. Raises as `Player.play`."""
        if not self.wait(lambda: self.position is not None, DISCOVERY_TIMEOUT, flag) and not flag.set:
            raise TrajectoryError(
                f"topic {self.resolve_topic_name('driver/joint_states')}",
                got="no states of the arm",
                remedy=start_first(self.robot),
            )
        interface = self._find_interface(flag)
        if self.position is None or interface is None:
            return False
        fastest = [limit.velocity for limit in self.robot.arm.model().tree.limits]
        trajectory = from_here(motion, self.position, fastest)
        duration = float(trajectory.times[-1])
        print(f"moving the arm for {duration:.1f} s by the {interface.name}", file=sys.stderr)
        print("keep clear of it; Ctrl-C stops it", file=sys.stderr)
        self._active = interface
        interface.send(self._message(trajectory))
        start = last_within = time.monotonic()
        while not flag.set and time.monotonic() - start < duration + _SETTLE:
            rclpy.spin_once(self, timeout_sec=0.05)
            if problem := interface.problem():
                raise TrajectoryError(interface.name, got=problem)
            now = time.monotonic()
            desired = [np.interp(now - start, trajectory.times, column) for column in trajectory.positions.T]
            error = float(np.max(np.abs(self.position - desired)))
            last_within = now if error < _PATH_TOLERANCE else last_within
            if now - last_within > _TOLERANCE_TIME:
                got = f"{error:.2f} rad off its path"
                raise TrajectoryError("arm", got=got, remedy="see the log of its driver")
        return not flag.set

    def _find_interface(self, flag: StopFlag) -> ActionInterface | _TopicInterface | None:
        """Best interface with a subscriber or server; None after a signal."""
        self.wait(lambda: any(interface.ready() for interface in self._interfaces), DISCOVERY_TIMEOUT, flag)
        self.wait(self._interfaces[0].ready, _GRACE, flag)
        if flag.set:
            return None
        for interface in self._interfaces:
            if interface.ready():
                return interface
        missing = "" if len(self._interfaces) > 1 else "control_msgs is not installed, so the action was not tried; "
        raise TrajectoryError(
            f"action {self.resolve_topic_name(ACTION)}, topic {self.resolve_topic_name(TOPIC)}",
            got="no node that takes trajectories",
            expected="the driver of the arm, the simulated robot, or ros2_control's trajectory controller",
            remedy=f"{missing}to send it in another way, write a goal with youbot play arm_excitation --write FILE",
        )

    def cancel(self) -> None:
        """Stop the arm, if a trajectory was sent."""
        if self._active is not None and (problem := self._active.stop()):
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
    sys.exit(play_once(ArmPlayer, parse(parser, arguments)))


if __name__ == "__main__":
    main()
