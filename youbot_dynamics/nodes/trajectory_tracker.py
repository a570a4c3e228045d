"""Node trajectory_tracker: follows a planar trajectory with delay preview and PID stabilisation."""

from __future__ import annotations

import time

import numpy as np
from geometry_msgs.msg import PointStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from youbot_dynamics.control.stamp_watch import StampWatch
from youbot_dynamics.control.tracker import Tracker, TrackerSettings
from youbot_dynamics.control.trajectory import Trajectory, TrajectoryLimits
from youbot_dynamics.control.wheel_commands import limit_speed
from youbot_dynamics.errors import InputError, TrajectoryError
from youbot_dynamics.estimation.wheel_watch import WheelWatch
from youbot_dynamics.nodes.diagnostics import ERROR, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes.listening import listen
from youbot_dynamics.nodes.messages import (
    joint_message,
    joint_positions,
    pose_vector,
    seconds,
    twist_message,
    twist_vector,
)
from youbot_dynamics.nodes.parameters import FRAME_TABLE, STAMPED_CMD_VEL, NodeParameters
from youbot_dynamics.nodes.runtime import COMMAND_QOS, STATE_QOS, acknowledged, run
from youbot_dynamics.nodes.trajectory_message import (
    REFUSED,
    REFUSED_STAMP,
    TrajectoryMessage,
    read_trajectory,
    stamp_text,
)
from youbot_dynamics.parameters import Parameter, settings_table
from youbot_dynamics.warm_up import first_use, use_tracker

TABLE = (
    *settings_table(TrackerSettings),
    *settings_table(TrajectoryLimits),
    Parameter(
        "rate",
        50.0,
        "Commands per second; the same as the base controller's.",
        unit="Hz",
        low=5.0,
        high=500.0,
        read_only=True,
    ),
    Parameter("odom_timeout", 0.5, "Age of odom at which a trajectory is given up.", unit="s", low=0.05, high=5.0),
    STAMPED_CMD_VEL,
    *FRAME_TABLE,
)

LEAD = 0.1  # [s] from reception to the first command of a trajectory without a start time
_AXES = ("x", "y", "yaw")


class TrajectoryTracker(Node):
    """Commands the base controller, and only while it follows a trajectory.

    It computes when a wheel command has just been sent, so that its own command is fresh when the next one
    leaves, one period later; where nobody publishes wheel_commands a timer takes over.
    """

    def __init__(self) -> None:
        super().__init__("trajectory_tracker")
        self._config = NodeParameters(self, TABLE)
        self._robot = self._config.robot()
        self._base = self._robot.base.geometry.mecanum()
        self._model = self._robot.base.driven()
        self._period = 1.0 / self._config["rate"]
        with first_use(self.get_logger().info):
            use_tracker(self._model, self._period)
        self._frame, self._child = self._config.frames()
        self._tracker: Tracker | None = None
        # Trajectory, start time, relative: waits here until its first command is due; only then a start pose is taken.
        self._waiting: tuple[Trajectory, float, bool] | None = None
        self._pose = np.zeros(3)
        self._pose_stamp = -np.inf
        self._woken = -np.inf
        self._odom_stamps, self._command_stamps, self._clock_stamps = StampWatch(), StampWatch(), StampWatch()
        self._status = Status(OK, "idle")
        self._commands = self.create_publisher(Twist, "~/cmd_vel", COMMAND_QOS)
        self._error = self.create_publisher(JointState, "~/error", STATE_QOS)
        self.create_service(Trigger, "~/cancel", self._on_cancel)
        self.create_subscription(MultiDOFJointTrajectory, "trajectory", self._on_trajectory, COMMAND_QOS, raw=True)
        self._wheels = WheelWatch(self._robot)
        listen(self, Odometry, "odom", self._on_odom, STATE_QOS)
        listen(self, JointState, "driver/joint_states", self._on_wheels, STATE_QOS)
        self.create_subscription(JointState, "wheel_commands", self._on_wheel_commands, STATE_QOS)
        self.create_subscription(PointStamped, "line_deviation", self._on_line, STATE_QOS)
        stamped = self._config["enable_stamped_cmd_vel"]
        listen(self, TwistStamped if stamped else Twist, "cmd_vel", self._on_operator, COMMAND_QOS)
        self._diagnostics = Diagnostics(self, lambda: {"trajectory": self._status.faded()})
        self.create_timer(self._period, self._on_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _now(self) -> float:
        return 1e-9 * self.get_clock().now().nanoseconds

    def _active(self) -> bool:
        return self._tracker is not None or self._waiting is not None

    def _on_odom(self, message: Odometry) -> None:
        pose = pose_vector(message.pose.pose)
        if not np.all(np.isfinite(pose)):
            return
        self._pose, self._pose_stamp = pose, seconds(message.header.stamp)
        jump = self._odom_stamps.take(time.monotonic(), self._pose_stamp)
        if jump and self._active():
            self._give_up(f"{self.resolve_topic_name('odom')} fell silent on this clock: its stamps {jump}")

    def _on_wheels(self, message: JointState) -> None:
        driver = self._robot.driver
        picked = joint_positions(message, driver.wheel_joints)
        if picked is None:
            return
        angles = [sign * angle for sign, angle in zip(driver.position_sign, picked[0].tolist(), strict=True)]
        fault = self._wheels.read(seconds(message.header.stamp), angles)
        if fault and self._active():
            self._give_up(fault, ERROR)

    def _on_line(self, message: PointStamped) -> None:
        """Take how far the robot is to the left of a line it should follow: point.y, where a camera sees one."""
        if self._tracker is not None and np.isfinite(message.point.y):
            self._tracker.observe_line(seconds(message.header.stamp), float(message.point.y))

    def _on_operator(self, message: Twist | TwistStamped) -> None:
        twist = message.twist if isinstance(message, TwistStamped) else message
        if self._active() and np.all(np.isfinite(twist_vector(twist))):
            self._give_up("an operator's cmd_vel took over")

    def _on_cancel(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = True
        response.message = "cancelled" if self._active() else "nothing to cancel"
        if self._active():
            self._give_up("cancelled")
        return response

    def _on_trajectory(self, data: bytes) -> None:
        try:
            message = read_trajectory(data, self._config.settings(TrajectoryLimits))
            if message.trajectory is not None:
                self._accept(message, message.trajectory)
            elif self._active():
                self._give_up("an empty trajectory stopped it")
        except TrajectoryError as problem:
            self._status = Status(WARN, f"{REFUSED}{problem}", {REFUSED_STAMP: stamp_text(data)})
            self.get_logger().error(self._status.message)
            self._diagnostics.publish()

    def _accept(self, message: TrajectoryMessage, trajectory: Trajectory) -> None:
        """Take a trajectory over; the running one goes on where the new one is refused.

        Raises:
            TrajectoryError: frames or times that do not fit, or no odometry to start from.
        """
        if message.joints not in ((), (self._child,)):
            raise TrajectoryError(
                "trajectory joint_names", got=str(list(message.joints)), expected=f"['{self._child}']"
            )
        now, stamp = self._now(), message.stamp
        start = stamp if stamp > 0.0 else now + float(self._model.dead_times.max()) + LEAD
        self._config.settings(TrajectoryLimits).check(delay=start - now)
        if start + trajectory.duration <= now:
            raise TrajectoryError(
                "trajectory",
                got=f"an end {now - start - trajectory.duration:.2f} s ago",
                remedy="check header.stamp",
            )
        if abs(now - self._pose_stamp) > self._config["odom_timeout"]:
            raise TrajectoryError(
                "trajectory",
                got=f"no {self.resolve_topic_name('odom')} to follow it by",
                remedy="wait until odometry and the driver, or the simulated robot, are up",
            )
        if message.frame not in (self._child, self._frame):
            raise TrajectoryError(
                "trajectory frame_id",
                got=repr(message.frame),
                expected=f"{self._child} (relative) or {self._frame} (absolute)",
            )
        if message.frame == self._child and start < now:
            raise TrajectoryError(
                "trajectory",
                got=f"a start {now - start:.2f} s ago, relative to a pose that is gone",
                expected="a start to come, or header.stamp 0",
            )
        self._waiting, self._tracker = (trajectory, start, message.frame == self._child), None
        self._status = Status(OK, "following a trajectory")
        self.get_logger().info(f"trajectory of {trajectory.duration:.2f} s begins in {start - now:.2f} s")

    def _parameters_now(self) -> TrackerSettings:
        settings: TrackerSettings = self._config.settings(TrackerSettings)
        return settings

    def _make_tracker(self, trajectory: Trajectory, start: float) -> Tracker:
        return self._parameters_now().for_trajectory(trajectory, start, self._model, self._period)

    def _on_wheel_commands(self, message: JointState) -> None:
        picked = joint_positions(message, self._robot.driver.wheel_joints)
        if picked is None or not np.all(np.isfinite(picked[1])):
            return
        self._woken = time.monotonic()
        if self._tracker is not None:
            self._tracker.observe_sent(self._base.twist(picked[1]))
        stamp = seconds(message.header.stamp)
        self._wheels.sent(stamp, picked[1].tolist())
        jump = self._command_stamps.take(self._woken, stamp)
        if jump and self._active():
            self._give_up(f"stamps of {self.resolve_topic_name('wheel_commands')} {jump}")
        self._step(stamp + self._period)

    def _on_timer(self) -> None:
        steady, now = time.monotonic(), self._now()
        jump = self._clock_stamps.take(steady, now)
        if jump and self._active():
            self._give_up(f"the clock {jump}")
        if steady - self._woken > 1.5 * self._period:
            self._step(now + self._period)

    def _step(self, send_time: float) -> None:
        if not self._active():
            return
        if abs(send_time - self._pose_stamp) > self._config["odom_timeout"] + self._period:
            self._give_up(f"{self.resolve_topic_name('odom')} fell silent")
            return
        if self._waiting is not None:
            trajectory, start, relative = self._waiting
            if send_time < start - float(self._model.dead_times.max()) - self._period:
                self._commands.publish(Twist())
                return
            try:
                placed = trajectory.anchored(self._pose) if relative else trajectory
                placed = placed.joined_from(self._pose, send_time - start)
            except TrajectoryError as problem:
                self._give_up(str(problem))
                return
            self._waiting, self._tracker = None, self._make_tracker(placed, start)
        assert self._tracker is not None
        if self._commands.get_subscription_count() == 0:
            self._give_up(f"nobody listens on {self._commands.topic_name}: start base_controller")
            return
        try:
            state = self._tracker.step(send_time, self._pose_stamp, self._pose)
        except InputError as problem:
            self._give_up(f"stamps, poses or wheel_commands beyond reason: {problem}")
            return
        if not self._parameters_now().tolerates(state.error):
            distance, turn = float(np.hypot(state.error[0], state.error[1])), abs(float(state.error[2]))
            self._give_up(f"the base is {distance:.2f} m and {turn:.2f} rad off: blocked, disabled, or odom jumped")
            return
        # Within the limits already here: a wild wish would be refused, not scaled, by the base controller.
        wish = limit_speed(state.twist, self._base, self._robot.base.limits)
        self._commands.publish(twist_message(wish))
        self._error.publish(joint_message(self._pose_stamp, _AXES, position=state.error, velocity=state.error_rate))
        if state.finished:
            self._tracker = None
            self._status = Status(OK, "the last trajectory was followed to its end")
            self.get_logger().info("trajectory finished")

    def _give_up(self, reason: str, level: bytes = WARN) -> None:
        self._tracker = self._waiting = None
        self._commands.publish(Twist())
        self._status = Status(level, f"trajectory given up: {reason}")
        self.get_logger().warning(self._status.message)

    def stop(self) -> None:
        """Send zero if a trajectory was being followed."""
        if self._active():
            self._commands.publish(Twist())
            acknowledged([self._commands])


def main() -> None:
    """Run the tracker alone, behind another odometry source."""
    run(lambda: [TrajectoryTracker()], driving=True)


if __name__ == "__main__":
    main()
