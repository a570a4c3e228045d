"""Node arm_player: moves the arm along the recommended excitation by a joint trajectory.

The simulated robot and ros2_control's trajectory controller take the topic. The youBot driver takes the action
FollowJointTrajectory and brics messages instead, and no torques from anybody: `youbot play arm_excitation --write FILE`
makes a goal for it.
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
from youbot_dynamics.nodes.driver_messages import values_of
from youbot_dynamics.nodes.parameters import NodeParameters
from youbot_dynamics.nodes.runtime import COMMAND_QOS, STATE_QOS, acknowledged, init, parse
from youbot_dynamics.nodes.stop_flag import StopFlag

Vector = NDArray[np.float64]

TOPIC = "arm_1/arm_controller/joint_trajectory"
_LOOK = 5.0  # [s] to find the arm and who takes trajectories
_ASTRAY = 0.3  # [rad] from where it should be
_TOO_LONG = 1.0  # [s] astray before it is stopped
_SETTLE = 0.5  # [s] after the end


class ArmPlayer(Node):
    """Plays one trajectory of the arm, and stops it where the arm does not follow."""

    def __init__(self) -> None:
        super().__init__("arm_player")
        self.robot = NodeParameters(self, ()).robot()
        self.position: Vector | None = None
        self._sent = False
        self._trajectory = self.create_publisher(JointTrajectory, TOPIC, COMMAND_QOS)
        self.create_subscription(JointState, "driver/joint_states", self._on_states, STATE_QOS)

    def _on_states(self, message: JointState) -> None:
        found = values_of(message, message.position, self.robot.driver.arm_joints)
        self.position = self.position if found is None else found

    def play(self, motion: ArmExcitation, flag: StopFlag) -> bool:
        """Go to its start slowly, then along it; False if a signal came first.

        Raises:
            TrajectoryError: no arm, nobody who takes trajectories, or an arm that does not follow.
        """
        if not self._wait(lambda: self.position is not None, _LOOK, flag) and not flag.set:
            raise TrajectoryError(
                f"topic {self.resolve_topic_name('driver/joint_states')}",
                got="no states of the arm",
                remedy="start the robot first: youbot bringup --robot mock",
            )
        if not self._wait(lambda: self._trajectory.get_subscription_count() > 0, _LOOK, flag) and not flag.set:
            raise TrajectoryError(
                f"topic {self.resolve_topic_name(TOPIC)}",
                got="nobody who takes trajectories",
                expected="the simulated robot, or ros2_control's trajectory controller",
                remedy="the youBot driver takes an action: write its goal with youbot play arm_excitation --write FILE",
            )
        if flag.set or self.position is None:
            return False
        fastest = [limit.velocity for limit in self.robot.arm.model().tree.limits]
        whole = from_here(motion, self.position, fastest)
        lasts = float(whole.times[-1])
        print(f"moving the arm for {lasts:.1f} s; keep clear of it; Ctrl-C stops it", file=sys.stderr)
        self._trajectory.publish(self._message(whole))
        self._sent = True
        begun = close = time.monotonic()
        while not flag.set and time.monotonic() - begun < lasts + _SETTLE:
            rclpy.spin_once(self, timeout_sec=0.05)
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

    def cancel(self) -> None:
        """Stop the arm with an empty trajectory, if it was sent off."""
        if self._sent:
            self._trajectory.publish(JointTrajectory())
            acknowledged([self._trajectory])

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
