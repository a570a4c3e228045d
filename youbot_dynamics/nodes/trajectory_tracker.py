"""Node trajectory_tracker: follows a planar trajectory with delay preview and PID stabilisation."""

from __future__ import annotations

import time

import numpy as np
from geometry_msgs.msg import PointStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.tracking_run import RunSettings, TrackingRun
from youbot_dynamics.control.trajectory import Trajectory, TrajectoryLimits
from youbot_dynamics.control.wheel_commands import REFUSAL_FACTOR
from youbot_dynamics.errors import TrajectoryError
from youbot_dynamics.kinematics.steering import RolledAngles
from youbot_dynamics.nodes import _messages as messages
from youbot_dynamics.nodes._diagnostics import ERROR, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes._listening import listen
from youbot_dynamics.nodes._messages import answer, joint_positions, seconds
from youbot_dynamics.nodes._parameters import FRAME_TABLE, STAMPED_CMD_VEL, NodeParameters
from youbot_dynamics.nodes._runtime import (
    COMMAND_QOS,
    DRIVER_QOS,
    STATE_QOS,
    acknowledged,
    node_time,
    run,
    steady_timer,
)
from youbot_dynamics.nodes._trajectory_message import (
    GIVEN_UP,
    OF_STAMP,
    TrajectoryMessage,
    read_trajectory,
    stamp_text,
)
from youbot_dynamics.parameters import settings_table
from youbot_dynamics.recording.message_types import joint_state_cdr, twist_cdr
from youbot_dynamics.warm_up import first_use, use_tracker

TABLE = (
    *settings_table(TrackerSettings),
    *settings_table(TrajectoryLimits),
    *settings_table(RunSettings),
    STAMPED_CMD_VEL,
    *FRAME_TABLE,
)

_AXES = ("x", "y", "yaw")


class TrajectoryTracker(Node):
    """Commands the base controller, and only while it follows a trajectory: messages to and from a `TrackingRun`.

    It computes when a wheel command has just been sent, so that its own command is new when the next one is sent, one
    period later; where wheel_commands has no publisher a timer takes over.

    Args:
        fed: the odometry node of this process calls `take_odometry`, `take_wheels` and `take_sent`. By subscriptions,
            each of these messages would come over DDS and be decoded once more.
    """

    def __init__(self, fed: bool = False) -> None:
        super().__init__("trajectory_tracker")
        self._config = NodeParameters(self, TABLE)
        self._robot = self._config.robot()
        self._base = self._robot.base.geometry.mecanum()
        self._rolled = RolledAngles(self._base.steered)
        self._run = TrackingRun(
            self._robot,
            self._config.settings(TrackerSettings),
            self._config.settings(RunSettings),
            odom=self.resolve_topic_name("odom"),
            wheel_commands=self.resolve_topic_name("wheel_commands"),
        )
        self._config.on_change(self._retune)
        with first_use(self.get_logger().info):
            use_tracker(self._run.model, self._run.period)
        self._frame, self._child = self._config.frames()
        self._last_wheel_command = -np.inf
        self._status, self._accepted = Status(OK, "idle"), ""  # stamp of the last trajectory that was accepted
        self._commands = self.create_publisher(Twist, "~/cmd_vel", COMMAND_QOS)
        self._error = self.create_publisher(JointState, "~/error", STATE_QOS)
        self.create_service(Trigger, "~/cancel", self._on_cancel)
        self.create_subscription(MultiDOFJointTrajectory, "trajectory", self._on_trajectory, COMMAND_QOS, raw=True)
        if not fed:
            listen(self, Odometry, "odom", self._on_odom, STATE_QOS)
            listen(self, JointState, "driver/joint_states", self._on_wheels, DRIVER_QOS)
            self.create_subscription(JointState, "wheel_commands", self._on_wheel_commands, STATE_QOS)
        self.create_subscription(PointStamped, "line_deviation", self._on_line, STATE_QOS)
        stamped = self._config["enable_stamped_cmd_vel"]
        listen(self, TwistStamped if stamped else Twist, "cmd_vel", self._on_operator, COMMAND_QOS)
        self._diagnostics = Diagnostics(self, lambda: {"trajectory": self._status.faded()})
        steady_timer(self, self._run.period, self._on_timer)

    def _retune(self) -> None:
        self._run.tracker_settings = self._config.settings(TrackerSettings)

    @property
    def active(self) -> bool:
        """Whether a trajectory is followed or waits for its start."""
        return self._run.active

    def take_odometry(self, stamp: float, pose: Vector) -> None:
        """Take a pose in odom (3,) [m, m, rad] of `stamp` [s]."""
        self._ended(self._run.take_odometry(time.monotonic(), stamp, pose))

    def take_wheels(self, stamp: float, angles: Vector) -> None:
        """Take wheel angles (n,) [rad] of `stamp` [s], positive forward."""
        self._ended(self._run.take_wheels(stamp, angles.tolist()), ERROR)

    def take_sent(self, stamp: float, speeds: Vector) -> None:
        """Take wheel speeds (n,) [rad/s] sent at `stamp` [s] and compute the next command; absurd ones are dropped."""
        if not np.all(np.abs(speeds) <= REFUSAL_FACTOR * self._robot.base.limits.wheel_speed):
            return
        self._last_wheel_command = now = time.monotonic()
        self._ended(self._run.take_sent(now, stamp, self._base.twist(speeds), speeds))
        self._step(stamp + self._run.period)

    def _on_odom(self, message: Odometry) -> None:
        self.take_odometry(seconds(message.header.stamp), messages.pose_vector(message.pose.pose))

    def _on_wheels(self, message: JointState) -> None:
        driver = self._robot.driver
        picked = joint_positions(message, driver.wheel_joints)
        if picked is not None:
            angles = self._rolled.take(picked[0] * np.array(driver.position_sign))
            self.take_wheels(seconds(message.header.stamp), angles)

    def _on_wheel_commands(self, message: JointState) -> None:
        picked = joint_positions(message, self._robot.driver.wheel_joints)
        if picked is not None:
            self.take_sent(seconds(message.header.stamp), self._base.rolling(picked[1], picked[0]))

    def _on_line(self, message: PointStamped) -> None:
        """Take the lateral deviation from a line, left positive: point.y, where a camera sees one."""
        self._run.take_line(seconds(message.header.stamp), float(message.point.y))

    def _on_operator(self, message: Twist | TwistStamped) -> None:
        if np.all(np.isfinite(messages.twist_vector(message))):
            self._ended(self._run.end("an operator's cmd_vel took over"))

    def _on_cancel(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        ended = self._run.end("cancelled")
        self._ended(ended)
        return answer(response, True, ended or "nothing to cancel")

    def _on_trajectory(self, data: bytes) -> None:
        try:
            message = read_trajectory(data, self._config.settings(TrajectoryLimits))
            if message.trajectory is not None:
                self._accept(message, message.trajectory)
                self._accepted = stamp_text(data)
            else:
                self._ended(self._run.end("an empty trajectory stopped it"))
        except TrajectoryError as problem:
            self._status = Status(WARN, f"refused: {problem}", {OF_STAMP: stamp_text(data)})
            self.get_logger().error(self._status.message)
            self._diagnostics.publish()

    def _accept(self, message: TrajectoryMessage, trajectory: Trajectory) -> None:
        """Follow a new trajectory; the running one goes on where the new one is refused.

        Raises:
            TrajectoryError: frames or times that do not fit, or no odometry to start from.
        """
        if message.joints not in ((), (self._child,)):
            got, expected = str(list(message.joints)), f"['{self._child}']"
            raise TrajectoryError("trajectory joint_names", got=got, expected=expected)
        if message.frame not in (self._child, self._frame):
            expected = f"{self._child} (relative) or {self._frame} (absolute)"
            raise TrajectoryError("trajectory frame_id", got=repr(message.frame), expected=expected)
        now = node_time(self)
        start = message.stamp if message.stamp > 0.0 else self._run.earliest_start(now)
        self._config.settings(TrajectoryLimits).check(delay=start - now)
        self._run.accept(trajectory, start, now, relative=message.frame == self._child)
        self._status = Status(OK, "following a trajectory")
        self.get_logger().info(f"trajectory of {trajectory.duration:.2f} s begins in {start - now:.2f} s")

    def _on_timer(self) -> None:
        steady, now = time.monotonic(), node_time(self)
        self._ended(self._run.take_clock(steady, now))
        if steady - self._last_wheel_command > 1.5 * self._run.period:
            self._step(now + self._run.period)

    def _step(self, send_time: float) -> None:
        if self._run.following and self._commands.get_subscription_count() == 0:
            self._ended(self._run.end(f"no node listens on {self._commands.topic_name}: start base_controller"))
        command = self._run.step(send_time)
        if command is None:
            return
        if command.given_up:
            self._ended(command.given_up)
            return
        self._commands.publish(twist_cdr(command.twist))
        if (state := command.state) is None:
            return
        stamp = messages.nanoseconds(command.pose_stamp)
        self._error.publish(joint_state_cdr(stamp, _AXES, position=state.error, velocity=state.error_rate))
        if command.unusual and self._status.level == OK:
            self._status = Status(WARN, f"following a trajectory: {command.unusual}")
            self.get_logger().warning(command.unusual)
        if state.finished:
            values = {"gain": f"{state.gain:.3f}"}
            self._status = Status(OK, "the last trajectory was followed to its end", values)
            self.get_logger().info("trajectory finished")

    def _ended(self, reason: str, level: bytes = WARN) -> None:
        """Command zero and log why the trajectory was given up; without a reason it was not."""
        if reason:
            self._commands.publish(Twist())
            self._status = Status(level, f"{GIVEN_UP}: {reason}", {OF_STAMP: self._accepted})
            self.get_logger().warning(self._status.message)
            self._diagnostics.publish()

    def stop(self) -> None:
        """Send zero if a trajectory was being followed."""
        if self._run.active:
            self._commands.publish(Twist())
            acknowledged(self._commands)


def main() -> None:
    """Run the tracker alone, behind another odometry source."""
    run(lambda: [TrajectoryTracker()], driving=True)


if __name__ == "__main__":
    main()
