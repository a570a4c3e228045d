"""Errors of a driven path, with mean and standard deviation as in the laboratory works.

Source: system 37; document 003.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, rms
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.reading import find_topic, times_of
from youbot_dynamics.identification.signals import MotionSignals
from youbot_dynamics.kinematics import planar
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.robot_base import BaseGeometry

# Rows of the error table, in the order of the laboratory works.
OPEN_LOOP = "open loop"
RESTORED = "restored"
SIMULATED = "simulated feedback"
FEEDBACK = "feedback"
ROWS = (OPEN_LOOP, RESTORED, SIMULATED, FEEDBACK)


@dataclass(frozen=True, eq=False)
class ErrorStatistics:
    """Statistics of e = actual - desired over a run, X and Y in the fixed frame, psi wrapped."""

    mean: Vector  # (3,) [m, m, rad]
    deviation: Vector  # (3,) standard deviation with divisor n, as in the laboratory works [m, m, rad]
    position_rmse: float  # of the distance [m]
    heading_rmse: float  # of psi [rad]
    position_worst: float  # largest distance [m]


@dataclass(frozen=True)
class Footprint:
    """Outline of a base for drawings; default values are those of the youBot."""

    half_length: float = 0.235  # wheel axis to centre, along x [m]
    half_width: float = 0.15  # wheel centre to centre line, along y [m]
    wheel_radius: float = 0.0475  # of the wheels [m]
    wheels: tuple[tuple[float, float, float], ...] = ()  # x, y [m] and drive [rad] of each; () for four corners


def footprint_of(geometry: BaseGeometry) -> Footprint:
    """Outline of a base of this geometry."""
    base = geometry.mecanum()
    distance = float(np.max(np.hypot(*base.positions.T)))
    if base.all_forward:
        return Footprint(geometry.half_length, geometry.half_width, geometry.wheel_radius)
    wheels = zip(*base.positions.T.tolist(), geometry.drive_angles, strict=True)
    return Footprint(distance, distance, geometry.wheel_radius, tuple(wheels))


@dataclass(frozen=True, eq=False)
class PathComparison:
    """Several drives of one program."""

    name: str  # of the program
    time: Vector  # (n,) from the start of the program [s]
    desired: Vector  # (n, 3) poses in the fixed frame that coincides with the base at the start [m, m, rad]
    actual: Mapping[str, Vector]  # label (one of ROWS) -> (n, 3) poses in the same frame
    truth: str  # what the actual poses were measured with, such as "ground truth" or "odometry"
    # Label -> (n, 3) odometry poses in the same frame, for drives with a better source of actual poses
    estimated: Mapping[str, Vector] = field(default_factory=dict)
    footprint: Footprint = field(default_factory=Footprint)  # of the base that drove

    def errors(self, label: str) -> Vector:
        """Errors (n, 3) of one drive: actual - desired; X, Y in the fixed frame, psi wrapped."""
        return path_errors(self.actual[label], self.desired)

    def seen_errors(self, label: str) -> Vector:
        """Odometry - desired (n, 3) of one drive: the errors that feedback on odometry sees."""
        return path_errors(self.estimated[label], self.desired)

    def unseen_errors(self, label: str) -> Vector:
        """Actual - odometry (n, 3) of one drive: the errors that feedback on odometry cannot see."""
        return path_errors(self.actual[label], self.estimated[label])

    def statistics(self, label: str) -> ErrorStatistics:
        """Statistics of one drive."""
        return error_statistics(self.errors(label))


def path_errors(actual: ArrayLike, desired: ArrayLike) -> Vector:
    """Errors (n, 3) = actual - desired of poses (n, 3); the yaw error is wrapped to (-pi, pi]."""
    errors: Vector = np.array(actual, dtype=float) - np.asarray(desired, dtype=float)
    errors[:, 2] = np.pi - (np.pi - errors[:, 2]) % (2.0 * np.pi)
    return errors


def error_statistics(errors: ArrayLike) -> ErrorStatistics:
    """Statistics of errors (n, 3) [m, m, rad].

    Mean M = sum V / n and standard deviation sigma = sqrt(sum (x - M)^2 / n). The samples of a path are correlated, so
    the mean does not have a standard error of sigma / sqrt(n).

    Source: document 003.
    """
    values = np.asarray(errors, dtype=float)
    distance = np.hypot(values[:, 0], values[:, 1])
    return ErrorStatistics(
        mean=values.mean(axis=0),
        deviation=values.std(axis=0),
        position_rmse=rms(distance),
        heading_rmse=rms(values[:, 2]),
        position_worst=float(distance.max()),
    )


def sample_poses(stamps: ArrayLike, poses: ArrayLike, at: ArrayLike) -> Vector:
    """Poses (m, 3) at times `at` (m,), interpolated between samples (n, 3) at `stamps` (n,), with the yaw unwrapped.

    Outside the stamps the first or last pose is used.
    """
    time, query, values = np.asarray(stamps, dtype=float), np.asarray(at, dtype=float), np.array(poses, dtype=float)
    values[:, 2] = np.unwrap(values[:, 2])
    return np.column_stack([np.interp(query, time, column) for column in values.T])


def relative_path(poses: ArrayLike, start: ArrayLike) -> Vector:
    """Poses (n, 3) relative to the pose `start` (3,); the yaw keeps its full turns."""
    x, y, yaw = (float(value) for value in np.asarray(start, dtype=float))
    moved = planar.move_path(planar.between((x, y, yaw), (0.0, 0.0, 0.0)), poses)
    moved[:, 2] = np.asarray(poses, dtype=float)[:, 2] - yaw  # `between` wraps the yaw
    return moved


def restored_path(stamps: ArrayLike, poses: ArrayLike, at: ArrayLike, delays: ArrayLike) -> Vector:
    """Shift the recorded motion forward in time by the delay: X(t + tau), the motion without the delay.

    The recorded body motion of each axis is taken tau later and integrated, with tau from another recording. The
    restoration of document 003, X_vost = X_rf + Vx_id dtzap + int dVx dt, equals the ideal path by construction and so
    proves nothing.

    Args:
        stamps: (n,) increasing [s].
        poses: (n, 3) recorded poses [m, m, rad].
        at: (m,) times of the program [s], increasing.
        delays: (3,) effective delay of x, y, yaw [s].

    Returns:
        Poses (m, 3), starting at the recorded pose at time at[0] + delay.

    Source: D-003-7.
    """
    query = np.asarray(at, dtype=float)
    # Body displacement of each axis over its own shifted interval.
    shifted = [sample_poses(stamps, poses, query + delay) for delay in np.asarray(delays, dtype=float)]
    path = [np.array([shifted[0][0, 0], shifted[1][0, 1], shifted[2][0, 2]])]
    for k in range(len(query) - 1):
        step = np.array([planar.logarithm(planar.between(s[k], s[k + 1]))[a] for a, s in enumerate(shifted)])
        path.append(planar.compose(path[-1], planar.exponential(step)))
    return np.array(path)


STEP = 0.02  # interval between the compared poses [s]
_LONGEST = 3600.0  # longest path computed from commands alone [s]


@dataclass(frozen=True, eq=False)
class RecordedPath:
    """One drive of a recording."""

    label: str  # OPEN_LOOP or FEEDBACK
    desired: Trajectory  # desired path, relative to the pose at the start
    time: Vector  # (n,) from the start [s]
    actual: Vector  # (n, 3) poses relative to the pose at the start [m, m, rad]
    stamps: Vector  # (m,) of all poses, from the start [s]
    poses: Vector  # (m, 3) all poses, relative to the pose at the start
    truth: str  # which poses these are: "ground truth" or "odometry"
    # (n, 3) odometry poses at `time`, relative to the first one, if the bag holds ground truth and odometry over the
    # whole drive; None otherwise
    estimated: Vector | None = None

    def desired_poses(self) -> Vector:
        """Desired poses (n, 3) at `time`."""
        return np.array([self.desired.pose(float(moment)) for moment in self.time])

    def restored(self, delays: Vector) -> Vector:
        """The recorded motion (n, 3), shifted forward by delays (3,) [s] from another recording."""
        return restored_path(self.stamps, self.poses, self.time, delays)


def recorded_path(recording: Recording, signals: MotionSignals, chosen: Mapping[str, str]) -> RecordedPath | None:
    """Path of the last trajectory of a bag; without a trajectory, the path of the commanded twists.

    Without poses that are numbers there is no path. The signals are those of the same bag; `chosen` is role -> topic,
    given by the user.
    """
    exact = find_topic(recording, "ground_truth", chosen)
    odometry = find_topic(recording, "odom", chosen)
    topic = exact or odometry
    if topic is None:
        return None
    moments, poses = _poses(recording, topic)
    if not len(moments):
        return None
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
    return RecordedPath(
        FEEDBACK if recording.metadata.get("feedback") == "true" else OPEN_LOOP,
        desired,
        time,
        sample_poses(stamps, relative, time),
        stamps,
        relative,
        truth="ground truth" if exact else "odometry",
        estimated=_estimated(recording, odometry, start, time) if exact and odometry else None,
    )


def _poses(recording: Recording, topic: str) -> tuple[Vector, Vector]:
    """Times (n,) [s] and poses (n, 3) of a topic."""
    series = recording.poses(topic)
    return times_of(series), series.pose


def _from_start(stamps: Vector, poses: Vector) -> Vector:
    """Poses (n, 3) relative to the one at stamp 0; the yaw keeps its full turns."""
    unwrapped = np.array(poses)
    unwrapped[:, 2] = np.unwrap(unwrapped[:, 2])
    return relative_path(unwrapped, sample_poses(stamps, poses, [0.0])[0])


def _estimated(recording: Recording, topic: str, start: float, time: Vector) -> Vector | None:
    """Odometry poses (n, 3) at the times (n,) after `start` [s]; None unless they cover the whole drive.

    The last odometry message may be one period older than the last true pose.
    """
    moments, poses = _poses(recording, topic)
    stamps = moments - start
    if not len(stamps) or stamps[0] > 0.0 or stamps[-1] < time[-1] - STEP:
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
    # Relative to its first pose, whether it was sent in the frame of the base or of the odometry.
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
