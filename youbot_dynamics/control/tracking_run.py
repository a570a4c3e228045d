"""A tracking run, as the node trajectory_tracker and `scenario.drive` run it: which twist is next, or why it ended.

There is no clock in here. Times called stamps are those of odometry and of wheel commands; times called steady are of
a clock that never jumps, and serve to find out whether stamps do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.tracker import Tracker, TrackerSettings, TrackerState
from youbot_dynamics.control.trajectory import FARTHEST, Trajectory
from youbot_dynamics.control.wheel_commands import limit_speed
from youbot_dynamics.control.wheel_watch import WheelWatch
from youbot_dynamics.errors import InputError, TrajectoryError
from youbot_dynamics.parameters import Settings, fixed_setting
from youbot_dynamics.robot import Robot

LEAD = 0.1  # [s] from accepting a trajectory to its first command, besides the preview
_AHEAD = 0.1  # [s] by which a stamp may be younger than any before: late messages only ever make stamps older
_BACK = 0.05  # [s] by which a stamp may be before the last one: jitter of stamps, not their clock
_ASIDE = 0.02, 0.01  # share of the way ahead, and [m], that points of a path without sideways motion may leave of it
_USUAL = 0.95, 1.05  # gains between which the base moves as when it was identified
_SLEW = 1e-3  # by which a clock may be slower than the steady one while it is set right: twice what NTP does


class StampWatch:
    """Looks for jumps of the stamps that come in, which would make a tracker chase its clock.

    The age of a stamp, steady time less stamp, is never less than that of the promptest message before, since messages
    can be held up and not come early; and stamps of one source come in their order. What is not so is a jump.
    Jumps ahead by less than 0.1 s, and back by less than 0.05 s plus the time nothing came, pass as jitter and delay.

    Attributes:
        delay: of the last message behind the promptest one before [s]; negative where it was prompter.
    """

    def __init__(self) -> None:
        self.delay = 0.0
        self._last: tuple[float, float] | None = None
        self._least = 0.0  # age of the promptest message [s], on two clocks that need have no common zero

    def take(self, steady: float, stamp: float) -> str:
        """Take a stamp; how it jumped, such as "jumped ahead by 2.00 s", "" where it did not. A jump resets it.

        Args:
            steady: when it came, by a clock that never jumps [s].
            stamp: [s].
        """
        age = steady - stamp
        if self._last is None:
            self._last, self._least = (steady, stamp), age
            return ""
        came, before = self._last
        self._last = (steady, stamp)
        least = self._least + _SLEW * (steady - came)
        self._least, self.delay = min(age, least), age - least
        if not age >= least - _AHEAD:
            return f"jumped ahead by {least - age:.2f} s"
        if not stamp >= before - _BACK:
            self._least, self.delay = age, 0.0
            return f"went back by {before - stamp:.2f} s"
        return ""


@dataclass(frozen=True)
class RunSettings(Settings):
    """Rhythm of a tracking run, and how long it goes on without odometry."""

    rate: float = fixed_setting(
        50.0,
        "Commands per second; equal to that of base_controller.",
        "Hz",
        (5.0, 500.0),
        source="chosen: that of the driver's loop",
    )
    odom_timeout: float = fixed_setting(
        0.5,
        "Age of odom at which a trajectory is given up.",
        "s",
        (0.05, 0.5),
        source="chosen: as the base controller's time-out of commands",
    )


@dataclass(frozen=True, eq=False)
class TrackerCommand:
    """What a step of a run sends to the base controller."""

    # (3,) within the limits [m/s, m/s, rad/s]; zero before the start and where the trajectory is given up
    twist: Vector
    pose_stamp: float  # of the pose it corrects [s]
    state: TrackerState | None = None  # of the tracker; None before the start and where the trajectory is given up
    given_up: str = ""  # why the trajectory is given up, "" where it is not
    unusual: str = ""  # what is told of a base that moves otherwise than it was identified, "" where it does not


class TrackingRun:
    """Follows one trajectory at a time, and ends it where it should not go on.

    Methods that take a message return why they ended the trajectory, "" where they did not.

    Args:
        robot: what is believed of it.
        tracker: feedback and its gains; may be replaced at any time as `tracker_settings`, for what comes then.
        settings: rate and time-out.
        odom: name of odometry in what is said.
        wheel_commands: name of the wheel commands in what is said.
    """

    def __init__(
        self,
        robot: Robot,
        tracker: TrackerSettings | None = None,
        settings: RunSettings | None = None,
        odom: str = "odom",
        wheel_commands: str = "wheel_commands",
    ) -> None:
        self.tracker_settings = tracker or TrackerSettings()
        self.settings = settings or RunSettings()
        self.period = 1.0 / self.settings.rate
        self.model = robot.base.driven()
        if (
            robot.base.geometry.wheelbase > 0.0
        ):  # one lead for both joints: another angle at another speed is another path
            self.model = replace(self.model, dead_times=np.full(3, self.model.dead_times[[0, 2]].mean()))
        self.pose, self.pose_stamp = np.zeros(3), -np.inf  # newest of odometry
        self._base, self._limits = robot.base.geometry.mecanum(), robot.base.limits
        self._preview = float(self.model.dead_times.max())
        self._wheels, self._odom, self._wheel_commands = WheelWatch(robot), odom, wheel_commands
        self._stamps = {name: StampWatch() for name in ("odom", "wheel_commands", "clock")}
        # Trajectory, start, relative: waits until its first command is due; only then a start pose is taken.
        self._waiting: tuple[Trajectory, float, bool] | None = None
        self._tracker: Tracker | None = None

    @property
    def active(self) -> bool:
        """Whether a trajectory is followed or waits for its start."""
        return self._tracker is not None or self._waiting is not None

    @property
    def following(self) -> bool:
        """Whether its tracker commands the base, since its start has come."""
        return self._tracker is not None

    def earliest_start(self, now: float) -> float:
        """When a trajectory that comes now can begin: the base moves a dead time after its first command [s]."""
        return now + self._preview + LEAD

    def accept(self, trajectory: Trajectory, start: float, now: float, relative: bool) -> None:
        """Take a trajectory over; the running one goes on where the new one is refused.

        Args:
            trajectory: poses in the frame of odometry, or relative to the pose at the start.
            start: when it begins, on the clock of the stamps [s].
            now: on that clock [s].
            relative: to the pose at the start.

        Raises:
            TrajectoryError: a time that does not fit, no odometry to start from, or a base that cannot move sideways,
                which only follows without feedback what needs no sideways motion.
        """
        if not self._base.free_axes[1]:
            self._refuse_sideways(trajectory)
        if not start + trajectory.duration > now:
            got = f"an end {now - start - trajectory.duration:.2f} s ago"
            raise TrajectoryError("trajectory", got=got, remedy="check header.stamp")
        if not abs(now - self.pose_stamp) <= self.settings.odom_timeout:
            remedy = "wait until odometry and the driver, or the simulated robot, are up"
            raise TrajectoryError("trajectory", got=f"no recent message on {self._odom}", remedy=remedy)
        if relative and start < now:
            raise TrajectoryError(
                "trajectory",
                got=f"a start {now - start:.2f} s ago, relative to an old pose",
                expected="a start in the future, or header.stamp 0",
            )
        self._waiting, self._tracker = (trajectory, start, relative), None

    def _refuse_sideways(self, trajectory: Trajectory) -> None:
        """Refuse to correct what the base cannot, and a path that it cannot follow (TrajectoryError)."""
        remedy = "let a controller for such bases follow it: Nav2's regulated pure pursuit or MPPI"
        if self.tracker_settings.feedback:
            got, expected = "feedback for a base that cannot move sideways", "feedback false, which drives open loop"
            raise TrajectoryError("trajectory", got=got, expected=expected, remedy=f"or {remedy}")
        ways = np.abs(trajectory.numbers.joints * np.diff(trajectory.times)[:, None]).sum(axis=0)
        if ways[1] > _ASIDE[0] * ways[0] + _ASIDE[1]:
            expected = "none: this base cannot move sideways"
            raise TrajectoryError("trajectory", got=f"{ways[1]:.2g} m sideways", expected=expected, remedy=remedy)

    def end(self, reason: str) -> str:
        """End the trajectory; returns the reason, "" where there was none to end."""
        ended = reason if self.active else ""
        self._waiting = self._tracker = None
        return ended

    def take_odometry(self, steady: float, stamp: float, pose: ArrayLike) -> str:
        """Take a pose (3,) [m, m, rad]; one that is not finite, or farther than any trajectory, changes nothing."""
        taken = np.asarray(pose, dtype=float)
        if not np.all(np.abs(taken) <= FARTHEST):
            return ""
        self.pose, self.pose_stamp = taken, stamp
        jump = self._stamps["odom"].take(steady, stamp)
        return self.end(f"stamps of {self._odom} {jump}") if jump else ""

    def take_wheels(self, stamp: float, angles: Sequence[float]) -> str:
        """Take wheel angles (n,) [rad], positive forward."""
        fault = self._wheels.read(stamp, angles)
        return self.end(fault) if fault else ""

    def take_sent(self, steady: float, stamp: float, twist: Vector, wheel_speeds: Vector) -> str:
        """Take what the base controller sent: a twist (3,) [m/s, m/s, rad/s] as wheel speeds (n,) [rad/s]."""
        if self._tracker is not None:
            self._tracker.observe_sent(stamp, twist)
        self._wheels.sent(stamp, wheel_speeds.tolist())
        jump = self._stamps["wheel_commands"].take(steady, stamp)
        return self.end(f"stamps of {self._wheel_commands} {jump}") if jump else ""

    def take_clock(self, steady: float, now: float) -> str:
        """Take the time on the clock of the stamps [s]."""
        jump = self._stamps["clock"].take(steady, now)
        return self.end(f"the clock {jump}") if jump else ""

    def take_line(self, stamp: float, deviation: float) -> None:
        """Take how far the robot is to the left of a line it should follow [m]: see `Tracker.observe_line`."""
        if self._tracker is not None and abs(deviation) <= FARTHEST:
            self._tracker.observe_line(stamp, deviation)

    def step(self, send_time: float) -> TrackerCommand | None:
        """Command to be sent at `send_time` [s]; None without a trajectory."""
        if not self.active:
            return None
        if not abs(send_time - self.pose_stamp) <= self.settings.odom_timeout + self.period:
            return self._given_up(f"{self._odom} stopped: no new message arrived")
        try:
            tracker = self._tracker or self._start(send_time)
            if tracker is None:
                return TrackerCommand(np.zeros(3), self.pose_stamp)
            state = tracker.step(send_time, self.pose_stamp, self.pose)
        except TrajectoryError as problem:
            return self._given_up(str(problem))
        except InputError as problem:
            return self._given_up(f"stamps, poses or wheel_commands out of range: {problem}")
        if not self.tracker_settings.tolerates(state.error):
            distance, turn = np.hypot(*state.error[:2]), abs(state.error[2])
            text = f"the base is {distance:.2f} m and {turn:.2f} rad off its path: blocked, disabled, or odom jumped"
            return self._given_up(text)
        if state.finished:
            self._tracker = None
        # Within the limits already here: a wild command would be refused, not scaled, by the base controller.
        # What rounding leaves along an axis on which it cannot move is no part of the path.
        twist = limit_speed(np.where(self._base.free_axes, state.twist, 0.0), self._base, self._limits)
        return TrackerCommand(twist, self.pose_stamp, state, unusual=_unusual(state.gain))

    def _start(self, send_time: float) -> Tracker | None:
        """Place the waiting trajectory once its first command is due."""
        assert self._waiting is not None
        trajectory, start, relative = self._waiting
        if send_time < start - self._preview - self.period:
            return None
        placed = (trajectory.anchored(self.pose) if relative else trajectory).joined_from(self.pose, send_time - start)
        self._tracker = self.tracker_settings.for_trajectory(placed, start, self.model, self.period)
        self._waiting = None
        return self._tracker

    def _given_up(self, reason: str) -> TrackerCommand:
        return TrackerCommand(np.zeros(3), self.pose_stamp, given_up=self.end(reason))


def _unusual(gain: float) -> str:
    if _USUAL[0] <= gain <= _USUAL[1]:
        return ""
    return (
        f"the base moves {gain:.2f} times as far for a command as when it was identified, which is corrected: check "
        "battery, load and floor"
    )
