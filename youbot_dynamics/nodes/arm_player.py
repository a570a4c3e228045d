"""Node arm_player: moves the arm along the recommended excitation by a joint trajectory.

It goes by the action FollowJointTrajectory, as the youBot's driver takes it, where control_msgs is installed and a
server is there; else by the topic of the simulated robot and of ros2_control's trajectory controller. Without
control_msgs, `youbot play arm_excitation --write FILE` makes a goal that others can send.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import rclpy
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from youbot_dynamics.errors import TrajectoryError, YoubotDynamicsError
from youbot_dynamics.identification.excitation import ArmExcitation
from youbot_dynamics.identification.recommended import arm_motion, from_here
from youbot_dynamics.nodes.arm_ways import ACTION, TOPIC, Way, ways_of
from youbot_dynamics.nodes.driver_messages import values_of
from youbot_dynamics.nodes.listening import listen
from youbot_dynamics.nodes.parameters import NodeParameters
from youbot_dynamics.nodes.runtime import STATE_QOS, init, parse
from youbot_dynamics.nodes.stop_flag import StopFlag

Vector = NDArray[np.float64]

_LOOK = 10.0  # [s] to find the arm and who takes trajectories
_GRACE = 1.0  # [s] for an action server beside a topic: it is found later, and answers
_ASTRAY = 0.3  # [rad] from where it should be
_TOO_LONG = 1.0  # [s] astray before it is stopped
_SETTLE = 0.5  # [s] after the end


class ArmPlayer(Node):
    """Plays one trajectory of the arm, and stops it where the arm does not follow."""

    def __init__(self) -> None:
        super().__init__("arm_player")
        self.robot = NodeParameters(self, ()).robot()
        self.position: Vector | None = None
        self._ways = ways_of(self)
        self._used: Way | None = None
        listen(self, JointState, "driver/joint_states", self._on_states, STATE_QOS)

    def _on_states(self, message: JointState) -> None:
        found = values_of(message, message.position, self.robot.driver.arm_joints)
        self.position = self.position if found is None else found

    def play(self, motion: ArmExcitation, flag: StopFlag) -> bool:
        """Go to its start slowly, then along it; False if a signal came first.

        Raises:
            TrajectoryError: no arm, nobody who takes trajectories, a refusal, or an arm that does not follow.
        """
        if not self._wait(lambda: self.position is not None, _LOOK, flag) and not flag.set:
            raise TrajectoryError(
                f"topic {self.resolve_topic_name('driver/joint_states')}",
                got="no states of the arm",
                remedy="start the robot first: youbot bringup --robot mock",
            )
        way = self._find_way(flag)
        if flag.set or self.position is None or way is None:
            return False
        fastest = [limit.velocity for limit in self.robot.arm.model().tree.limits]
        whole = from_here(motion, self.position, fastest)
        lasts = float(whole.times[-1])
        print(f"moving the arm for {lasts:.1f} s by the {way.name}", file=sys.stderr)
        print("keep clear of it; Ctrl-C stops it", file=sys.stderr)
        self._used = way
        way.send(self._message(whole))
        begun = close = time.monotonic()
        while not flag.set and time.monotonic() - begun < lasts + _SETTLE:
            rclpy.spin_once(self, timeout_sec=0.05)
            if problem := way.problem():
                raise TrajectoryError(way.name, got=problem)
            now = time.monotonic()
            wanted = [np.interp(now - begun, whole.times, column) for column in whole.positions.T]
            away = float(np.max(np.abs(self.position - wanted)))
            close = now if away < _ASTRAY else close
            if now - close > _TOO_LONG:
                raise TrajectoryError(
                    "arm", got=f"{away:.2f} rad from where it should be", remedy="see the log of its driver"
                )
        return not flag.set

    def _wait(self, condition: Callable[[], bool], timeout: float, flag: StopFlag) -> bool:
        deadline = time.monotonic() + timeout
        while not condition() and time.monotonic() < deadline and not flag.set:
            rclpy.spin_once(self, timeout_sec=0.05)
        return condition()

    def _find_way(self, flag: StopFlag) -> Way | None:
        """Best way that somebody takes trajectories by; None after a signal."""
        self._wait(lambda: any(way.ready() for way in self._ways), _LOOK, flag)
        self._wait(self._ways[0].ready, _GRACE, flag)
        way = next((way for way in self._ways if way.ready()), None)
        if way is None and not flag.set:
            lacks = "" if len(self._ways) > 1 else "control_msgs is not installed, so the action was not tried; "
            raise TrajectoryError(
                f"action {self.resolve_topic_name(ACTION)}, topic {self.resolve_topic_name(TOPIC)}",
                got="nobody who takes trajectories",
                expected="the youBot driver, the simulated robot, or ros2_control's trajectory controller",
                remedy=f"{lacks}a goal to send otherwise is written by youbot play arm_excitation --write FILE",
            )
        return way

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
    given = parse(parser, arguments)
    done = False
    player: ArmPlayer | None = None
    try:
        flag = init()
        player = ArmPlayer()
        print("choosing the motion", file=sys.stderr)
        done = player.play(arm_motion(player.robot, given.duration), flag)
        print("followed to its end" if done else "stopped", file=sys.stderr)
    except YoubotDynamicsError as problem:
        print(f"error: {problem}", file=sys.stderr)
    if player is not None:
        if not done:
            # Whatever went wrong here, the arm must not move on unwatched.
            player.cancel()
        player.destroy_node()
    if rclpy.ok():
        rclpy.try_shutdown()
    sys.exit(0 if done else 1)


if __name__ == "__main__":
    main()
