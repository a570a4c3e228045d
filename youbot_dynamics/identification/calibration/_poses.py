"""Prepare wheel angles and poses of a body on the robot, from a recording or a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.errors import InputError, RecordingError
from youbot_dynamics.identification.reading import (
    clocks_apart,
    find_pose_topic,
    find_wheel_states,
    on_clock_of_receiver,
)
from youbot_dynamics.identification.signals import advancing, even_stamps
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.robot import Robot

_ONE_CLOCK = 0.5  # [s] difference of stamps above which the clocks were not synchronised
_GAP = 5.0  # multiple of the usual interval of wheel readings above which the motion between them is unknown
_AVERAGING_TIME = 0.02  # averaging interval of poses [s]
_FAST = 8.0  # multiple of the 99 % quantile of the speed that means a reset counter


@dataclass(frozen=True, eq=False)
class CalibrationSignals:
    """Input of the geometry calibration; arrays are read-only.

    Raises:
        InputError: shapes that do not fit, values that are not finite, or times that do not increase.
    """

    wheel_time: Vector  # (s,) of the wheels' readings [s], increasing
    wheel_angles: Vector  # (s, n) [rad], positive when a wheel rolls the robot forward
    pose_time: Vector  # (k,) of the poses [s], increasing, on the same clock except for a constant
    poses: Vector  # (k, 3) of the tracked body in a fixed frame [m, m, rad], yaw wrapped or unwrapped
    recording: int = 0  # number of the recording, distinct for each
    # From the stamp of a pose to its reception [s]; NaN unless wheels and poses have stamps of the recorder's clock
    travel: float = nan

    def __post_init__(self) -> None:
        """Check the shapes and store read-only copies."""
        wheel_time = array("wheel_time", self.wheel_time, (None,))
        pose_time = array("pose_time", self.pose_time, (None,))
        checked = {
            "wheel_time": wheel_time,
            "wheel_angles": array("wheel_angles", self.wheel_angles, (len(wheel_time), None)),
            "pose_time": pose_time,
            "poses": array("poses", self.poses, (len(pose_time), 3)),
        }
        for name, value in checked.items():
            if value.ndim == 1 and np.any(np.diff(value) <= 0.0):
                raise InputError(name, got="times that do not increase", expected="increasing times")
            object.__setattr__(self, name, read_only(value.copy()))

    @property
    def since_start(self) -> Vector:
        """Times (k,) of the poses since the whole second nearest to the first [s].

        A bag has times since its first second, a text log its own: both are cut into the same windows and blocks.
        Rounding keeps the last digits of times since 1970 out of it.
        """
        return np.round(self.pose_time - np.floor(self.pose_time[:1] + 0.5), 6)

    def angles_at(self, times: Vector) -> Vector:
        """Wheel angles (m, n) [rad] at times (m,), interpolated."""
        if not len(times):
            return np.zeros((0, self.wheel_angles.shape[1]))
        return np.column_stack([np.interp(times, self.wheel_time, column) for column in self.wheel_angles.T])

    def gaps(self) -> NDArray[np.bool_]:
        """Intervals (s - 1,) between two wheel readings in which the motion is unknown."""
        spans = np.diff(self.wheel_time)
        speed = np.max(np.abs(np.diff(self.wheel_angles, axis=0)), axis=1) / spans
        return np.asarray((spans > _GAP * np.median(spans)) | (speed > _FAST * np.quantile(speed, 0.99)))


def calibration_signals(
    wheel_time: Vector, wheel_angles: Vector, pose_time: Vector, poses: Vector, recording: int = 0
) -> CalibrationSignals:
    """Make signals from raw columns; rows that are not finite or do not advance in time are left out.

    Wheel stamps are smoothed if that makes the motion smoother (`even_stamps`). A pose that is bit-identical to the one
    before is left out: the tracker lost its body and repeats itself. Poses faster than 50 Hz are averaged over 20 ms.
    Shapes, (s,), (s, n), (k,) and (k, 3), and units are those of `CalibrationSignals`.
    """
    wheels, known = advancing(wheel_time, wheel_angles), advancing(pose_time, poses)
    changed = np.ones(len(known), dtype=bool)
    changed[1:] = np.any(np.diff(poses[known], axis=0) != 0.0, axis=1)
    known = known[changed]
    angles = wheel_angles[wheels]
    times, means = _thinned(pose_time[known], poses[known])
    return CalibrationSignals(even_stamps(wheel_time[wheels], angles), angles, times, means, recording)


def _thinned(time: Vector, poses: Vector) -> tuple[Vector, Vector]:
    """Means of times (k,) and poses (k, 3) over every 20 ms of nearly straight motion: fewer rows, same information."""
    if not len(time):
        return time, poses
    starts = np.flatnonzero(np.diff(np.floor(time / _AVERAGING_TIME), prepend=-np.inf))
    counts = np.diff(np.append(starts, len(time)))
    columns = np.column_stack([time, poses[:, :2], np.cos(poses[:, 2]), np.sin(poses[:, 2])])
    means = np.add.reduceat(columns, starts, axis=0) / counts[:, None]
    return means[:, 0], np.column_stack([means[:, 1:3], np.arctan2(means[:, 4], means[:, 3])])


def recorded_calibration_signals(
    recording: Recording, robot: Robot, chosen: Mapping[str, str], pose_topic: str = "", number: int = 0
) -> CalibrationSignals:
    """Signals of a bag with the states of the wheels and any pose topic.

    Stamps are used if both topics have them, otherwise the receive times of both. If one clock jumps or drifts against
    the other, both are put on that of the recorder. For clocks that were not synchronised, the difference to the
    receive times is removed; the remaining offset is estimated. Stamps of the wheels are earlier by
    `robot.base.delay.stamps`. `chosen` is role ->
    topic, given by the user; `pose_topic` is "" to find it; each recording has its own `number`.

    Raises:
        RecordingError: no wheel states or positions, no pose topic, several candidates, or odometry of the wheels.
    """
    joints = robot.driver.wheel_joints
    states = recording.joint_states(find_wheel_states(recording, joints, chosen), joints)
    if not np.any(np.isfinite(states.position)):
        raise RecordingError(
            f"topic {states.topic} in {recording.path}", got="no positions", expected="wheel angles [rad]"
        )
    topic = find_pose_topic(recording, chosen, pose_topic)
    namespace = states.topic.removesuffix("joint_states").removesuffix("driver/")
    if topic in (f"{namespace}odom", f"{namespace}driver/odom"):
        raise RecordingError(
            f"poses of {topic} in {recording.path}",
            got="odometry, which is computed from the wheels and would only repeat the geometry that its program uses",
            expected="motion capture, tags, AMCL or another measurement that does not use the wheels",
            remedy="record such poses; odometry of a camera or lidar needs another name than odom",
        )
    poses = recording.poses(topic)
    stamped = bool(np.all(np.isfinite(states.stamp)) and np.all(np.isfinite(poses.stamp)))
    wheel_time, pose_time = (states.stamp, poses.stamp) if stamped else (states.received, poses.received)
    travel = nan
    clocks = (states.stamp, poses.stamp), (states.received, poses.received)
    if stamped and clocks_apart(*clocks).moving:
        wheel_time, pose_time = map(on_clock_of_receiver, *clocks)
    elif stamped:
        clock_difference = float(np.median(poses.received - poses.stamp) - np.median(states.received - states.stamp))
        if abs(clock_difference) > _ONE_CLOCK:
            pose_time = pose_time + clock_difference
        else:
            travel = float(np.median(poses.received - poses.stamp))
    if stamped:
        wheel_time = wheel_time - robot.base.delay.stamps
    angles = robot.base.geometry.mecanum().rolled(states.position * np.array(robot.driver.position_sign))
    return replace(calibration_signals(wheel_time, angles, pose_time, poses.pose, number), travel=travel)
