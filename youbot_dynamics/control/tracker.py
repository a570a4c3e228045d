"""Trajectory stabilisation: feed-forward that starts one delay early, plus a PID law in the body frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.control.pid import Pid, PidGains, gains_for_delay
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.kinematics import planar
from youbot_dynamics.parameters import setting

Vector = NDArray[np.float64]

# Differences of sent and requested twist below this are rounding, not limits [m/s, rad/s].
_CUT_FLOOR = 1e-6


@dataclass(frozen=True)
class TrackerSettings:
    """Behaviour of the tracker that can be tuned."""

    feedback: bool = setting(True, "Correct the measured error; false drives the feed-forward alone.")
    aggressiveness: float = setting(
        1.5,
        "Proportional gain over 1 / (e delay), the largest of a pure P law that does not overshoot.",
        unit="1",
        low=0.0,
        high=2.0,
        source="system 38",
    )
    derivative: float = setting(
        0.25,
        "Derivative gain; with a velocity command it must stay below 1.",
        unit="1",
        low=0.0,
        high=0.7,
        source="system 38",
    )
    derivative_time: float = setting(0.1, "Filter of the derivative.", unit="s", low=0.01, high=5.0)
    assumed_delay: float = setting(
        0.3, "Delay the gains are made for while none is identified.", unit="s", low=0.02, high=1.0
    )
    settle: float = setting(1.0, "How long the feedback goes on after the last point.", unit="s", low=0.0, high=60.0)

    position_tolerance: float = setting(
        0.5, "Distance from the desired pose at which a trajectory is given up.", unit="m", low=0.01, high=100.0
    )
    yaw_tolerance: float = setting(
        0.8, "Angle from the desired pose at which a trajectory is given up.", unit="rad", low=0.01, high=4.0
    )

    def tolerates(self, error: ArrayLike) -> bool:
        """Whether an error (3,) [m, m, rad] is within the tolerances: beyond them something is wrong, not late."""
        ex, ey, eyaw = (float(value) for value in np.asarray(error, dtype=float))
        return float(np.hypot(ex, ey)) <= self.position_tolerance and abs(eyaw) <= self.yaw_tolerance

    def gains(self, effective_delay: ArrayLike, period: float) -> PidGains | None:
        """Gains for effective delays (3,) [s], None without feedback.

        The loop also waits for the next command (one period) and holds it (half a period, and as much again
        until the next measurement).
        """
        if not self.feedback:
            return None
        delays = np.asarray(effective_delay, dtype=float)
        loop = np.where(delays > 0.0, delays, self.assumed_delay) + 2.0 * period
        return gains_for_delay(loop, self.aggressiveness, self.derivative, self.derivative_time)


@dataclass(frozen=True, eq=False)
class TrackerState:
    """What the tracker knows after one step.

    Args:
        twist: (3,) commanded twist [m/s, m/s, rad/s].
        error: (3,) actual - desired in the body frame, yaw wrapped [m, m, rad].
        error_rate: (3,) filtered [m/s, m/s, rad/s].
        finished: the trajectory and the time to settle after it are over.
    """

    twist: Vector
    error: Vector
    error_rate: Vector
    finished: bool


class Tracker:
    """Follows one trajectory with a robot that answers each axis `preview` seconds late.

    The command sent at s and held for h takes effect from s + tau on, so its feed-forward is the mean desired
    twist from s + tau to s + tau + h, each axis with its own tau. The correction is the PID law of system 38 on
    e = actual - desired, rotated into the body frame, with the yaw wrapped. (Seed 003 defines dX as ideal - real
    and then subtracts it: used together, that is positive feedback; D-003-11. It also drops the feed-forward for
    a constant reference speed, which leaves a steady lag; D-003-12.)

    Args:
        trajectory: desired poses in the odometry frame.
        start: time at which the trajectory begins, in the clock of the odometry stamps [s].
        preview: (3,) delay of x, y, yaw that the feed-forward makes up for [s].
        gains: of the feedback, None for feed-forward alone.
        hold: how long a command is held [s].
        settle: how long the feedback goes on after the last point [s].
    """

    def __init__(
        self,
        trajectory: Trajectory,
        start: float,
        preview: ArrayLike,
        gains: PidGains | None,
        hold: float,
        settle: float = 0.0,
    ) -> None:
        self.trajectory = trajectory
        self.start = start
        self.preview = np.array(preview, dtype=float)
        self.hold = hold
        self.settle = settle
        self._pid = Pid(gains) if gains is not None else None
        self._request: Vector = np.zeros(3)
        self._cut: Vector = np.zeros(3)

    def desired_pose(self, time: float) -> Vector:
        """Desired pose (3,) at a stamp [s]."""
        return self.trajectory.pose(time - self.start)

    def observe_sent(self, twist: ArrayLike) -> None:
        """Learn what became of the last request: the limited twist (3,) that was really sent."""
        cut = np.asarray(twist, dtype=float) - self._request
        self._cut = np.where(np.abs(cut) > _CUT_FLOOR, cut, 0.0)

    def step(self, send_time: float, pose_time: float, pose: ArrayLike) -> TrackerState:
        """Command to be sent at `send_time`, from the pose measured at `pose_time`.

        Args:
            send_time: when the command leaves for the driver [s].
            pose_time: stamp of the pose [s].
            pose: (3,) measured pose in the odometry frame [m, m, rad].
        """
        feed_forward = np.zeros(3)
        for axis in range(3):
            begin = send_time + self.preview[axis] - self.start
            feed_forward[axis] = self.trajectory.mean_twist(begin, begin + self.hold)[axis]
        actual = np.asarray(pose, dtype=float)
        desired = self.desired_pose(pose_time)
        offset = planar.rotation(actual[2]).T @ (actual[:2] - desired[:2])
        error = np.array([offset[0], offset[1], planar.wrap(actual[2] - desired[2])])
        request = feed_forward
        rate = np.zeros(3)
        if self._pid is not None:
            request = feed_forward + self._pid.correct(error, pose_time, self._cut)
            rate = self._pid.slope
        finished = send_time - self.start >= self.trajectory.duration + self.settle
        self._request = np.zeros(3) if finished else request
        return TrackerState(self._request.copy(), error, rate, finished)
