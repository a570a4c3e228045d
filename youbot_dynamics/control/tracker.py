"""Trajectory stabilisation: feed-forward that starts one delay early, plus a PID law in the body frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.control.pid import Pid, PidGains
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.kinematics import planar

Vector = NDArray[np.float64]

# Differences of sent and requested twist below this are rounding, not limits [m/s, rad/s].
_CUT_FLOOR = 1e-6


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
