"""The path of a recorded drive: what was wanted, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.base.base_signals import MotionSignals
from youbot_dynamics.identification.comparison import (
    FEEDBACK,
    OPEN_LOOP,
    relative_path,
    restored_path,
    sample_poses,
)
from youbot_dynamics.identification.reading.topics import find_topic
from youbot_dynamics.kinematics import planar
from youbot_dynamics.recording.bag import Recording

Vector = NDArray[np.float64]

STEP = 0.02  # [s] between the compared poses
_LONGEST = 3600.0  # [s] of a path taken from commands alone


@dataclass(frozen=True, eq=False)
class RecordedPath:
    """One drive of a recording.

    Args:
        label: OPEN_LOOP or FEEDBACK.
        desired: what was wanted, relative to the pose at the start.
        time: (n,) from the start [s].
        actual: (n, 3) poses relative to the pose at the start [m, m, rad].
        stamps: (m,) of all poses, from the start [s].
        poses: (m, 3) all poses, relative to the pose at the start.
        truth: which poses these are: "ground truth" or "odometry".
        estimated: (n, 3) poses of the odometry at `time`, relative to its own at the start, where the bag holds a
            ground truth and an odometry over the whole drive; None otherwise.
    """

    label: str
    desired: Trajectory
    time: Vector
    actual: Vector
    stamps: Vector
    poses: Vector
    truth: str
    estimated: Vector | None = None

    def desired_poses(self) -> Vector:
        """Desired poses (n, 3) at `time`."""
        return np.array([self.desired.pose(float(moment)) for moment in self.time])

    def restored(self, delays: Vector) -> Vector:
        """The recorded motion, moved forward by delays (3,) [s] from another recording: (n, 3)."""
        return restored_path(self.stamps, self.poses, self.time, delays)


def recorded_path(recording: Recording, signals: MotionSignals, chosen: Mapping[str, str]) -> RecordedPath | None:
    """Path of the last trajectory of a bag; without one, the commanded twists count as what was wanted.

    Args:
        recording: a bag of a base.
        signals: command and motion of the same bag.
        chosen: role -> topic, where the user overrides.

    Returns:
        The path, or None where the bag holds no poses.
    """
    exact = find_topic(recording, "ground_truth", chosen)
    odometry = find_topic(recording, "odom", chosen)
    topic = exact or odometry
    if topic is None:
        return None
    moments, poses = _poses(recording, topic)
    desired, start = _trajectory(recording, chosen) or _commanded(signals, float(moments[0]))
    stamps = moments - start
    time = np.arange(0.0, min(desired.duration, float(stamps[-1])) + STEP / 2.0, STEP)
    if len(time) < 2 or stamps[0] > 0.0:
        raise RecordingError(
            f"topic {topic} in {recording.path}",
            got=f"poses from {stamps[0]:.2f} to {stamps[-1]:.2f} s after the start of the drive",
            expected=f"0 to {desired.duration:.2f} s",
            remedy="start the recording before the drive and stop it after",
        )
    relative = _from_start(stamps, poses)
    label = FEEDBACK if recording.metadata.get("feedback") == "true" else OPEN_LOOP
    return RecordedPath(
        label,
        desired,
        time,
        sample_poses(stamps, relative, time),
        stamps,
        relative,
        truth="ground truth" if exact else "odometry",
        estimated=_estimated(recording, odometry, start, time) if exact and odometry else None,
    )


def _poses(recording: Recording, topic: str) -> tuple[Vector, Vector]:
    """Moments (n,) [s] and poses (n, 3) of a topic."""
    series = recording.poses(topic)
    return series.stamp if np.all(np.isfinite(series.stamp)) else series.received, series.pose


def _from_start(stamps: Vector, poses: Vector) -> Vector:
    """Poses (n, 3) seen from the one at stamp 0, the yaw with its turns."""
    unwrapped = np.array(poses)
    unwrapped[:, 2] = np.unwrap(unwrapped[:, 2])
    return relative_path(unwrapped, sample_poses(stamps, poses, [0.0])[0])


def _estimated(recording: Recording, topic: str, start: float, time: Vector) -> Vector | None:
    """Poses (n, 3) of the odometry at the times (n,) after `start` [s]; None where it does not last from 0 to the end.

    Its last message may be one period older than the last true pose.
    """
    moments, poses = _poses(recording, topic)
    stamps = moments - start
    if stamps[0] > 0.0 or stamps[-1] < time[-1] - STEP:
        return None
    return sample_poses(stamps, _from_start(stamps, poses), time)


def _trajectory(recording: Recording, chosen: Mapping[str, str]) -> tuple[Trajectory, float] | None:
    topic = find_topic(recording, "trajectory", chosen)
    if topic is None:
        return None
    timed = [t for t in recording.trajectories(topic) if len(t.time) > 1 and np.isfinite(t.start)]
    if not timed:
        return None
    poses = np.array(timed[-1].pose)
    poses[:, 2] = np.unwrap(poses[:, 2])
    # Relative to its own first pose, whether it was sent relative to the base or to the odometry frame.
    return Trajectory(timed[-1].time, relative_path(poses, poses[0])), timed[-1].start


def _commanded(signals: MotionSignals, first_pose: float) -> tuple[Trajectory, float]:
    """Path of the commanded twists, from the first command that the poses cover."""
    later = signals.command_time[signals.command_time >= first_pose]
    start = float(later[0]) if len(later) else float(signals.command_time[-1])
    keep = (signals.command_time >= start) & (signals.command_time - start < _LONGEST)
    times, twists = signals.command_time[keep] - start, signals.command[keep]
    increasing = np.concatenate([[True], np.diff(times) > 0.0])
    times, twists = times[increasing], twists[increasing]
    poses = [np.zeros(3)]
    for k in range(len(times) - 1):
        poses.append(planar.integrate(poses[-1], twists[k], float(times[k + 1] - times[k])))
    return Trajectory(times, np.array(poses)), start
