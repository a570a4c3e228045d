"""The path of a recorded drive: what was wanted, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.base_signals import MotionSignals
from youbot_dynamics.identification.comparison import (
    FEEDBACK,
    OPEN_LOOP,
    relative_path,
    restored_path,
    sample_poses,
)
from youbot_dynamics.identification.topics import find_topic
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
    """

    label: str
    desired: Trajectory
    time: Vector
    actual: Vector
    stamps: Vector
    poses: Vector
    truth: str

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
    topic = exact or find_topic(recording, "odom", chosen)
    if topic is None:
        return None
    poses = recording.poses(topic)
    moments = poses.stamp if np.all(np.isfinite(poses.stamp)) else poses.received
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
    origin = sample_poses(stamps, poses.pose, [0.0])[0]
    unwrapped = np.array(poses.pose)
    unwrapped[:, 2] = np.unwrap(unwrapped[:, 2])
    relative = relative_path(unwrapped, origin)
    label = FEEDBACK if json.loads(recording.metadata.get("feedback", "null")) else OPEN_LOOP
    truth = "ground truth" if exact else "odometry"
    return RecordedPath(label, desired, time, sample_poses(stamps, relative, time), stamps, relative, truth)


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
