"""How far odometry is off after a span of time, against the poses of a tracker: what a calibration is worth."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.base.calibration_model import Integers, predicted_poses
from youbot_dynamics.identification.base.calibration_poses import CalibrationSignals
from youbot_dynamics.kinematics.mecanum import MecanumBase

_MOVING = 0.02  # [m] or [rad] over the span, below which the robot stands and odometry cannot err


def odometry_errors(
    signals: CalibrationSignals, base: MecanumBase, sensor: Vector, offset: float, span: float = 2.0
) -> Vector:
    """Errors (m, 3) [m, m, rad] of odometry over every `span` in which the robot moves: forward, sideways and in yaw.

    Way and turn from the tracked body's pose at the start of the span to that at its end, by the wheels less by the
    tracker, each seen from the robot at the start (system 28). What the tracker's own noise adds is in them.

    Args:
        signals: the recording.
        base: kinematics, such as the calibrated ones.
        sensor: (3,) pose of the tracked body on the robot [m, m, rad].
        offset: what poses are stamped later than the wheels [s].
        span: over which odometry runs free [s].

    Returns:
        One row for each pose from which another one follows a span later.
    """
    times = signals.pose_time - offset
    inside = np.flatnonzero((times >= signals.wheel_time[0]) & (times <= signals.wheel_time[-1]))
    times, tracked = times[inside], signals.poses[inside]
    ends = np.searchsorted(times, times + span)
    starts = np.flatnonzero(ends < len(times))
    ends = ends[starts]
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    sound = np.abs(times[ends] - times[starts] - span) <= 2.0 * usual
    starts, ends = starts[sound], ends[sound]
    reckoned = _ways(predicted_poses(signals, base, sensor, times), starts, ends, float(sensor[2]))
    errors = reckoned - _ways(tracked, starts, ends, float(sensor[2]))
    errors[:, 2] = (errors[:, 2] + np.pi) % (2.0 * np.pi) - np.pi
    moving: Vector = errors[np.max(np.abs(reckoned), axis=1) > _MOVING]
    return moving


def _ways(poses: Vector, starts: Integers, ends: Integers, yaw: float) -> Vector:
    """Ways and turns (m, 3) between poses (k, 3) of a body turned by `yaw` on the robot, in the robot's axes then."""
    step = poses[ends] - poses[starts]
    heading = poses[starts, 2] - yaw
    c, s = np.cos(heading), np.sin(heading)
    return np.column_stack([c * step[:, 0] + s * step[:, 1], c * step[:, 1] - s * step[:, 0], step[:, 2]])
