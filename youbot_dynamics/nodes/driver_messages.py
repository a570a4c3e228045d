"""Messages of the youBot driver from its reports, field by field."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from youbot_dynamics.arrays import Vector
from youbot_dynamics.nodes.messages import joint_message, odometry_message
from youbot_dynamics.simulation.driver_reports import JointReport, OdometryReport


def report_message(
    report: JointReport | OdometryReport, shift: float, frames: tuple[str, str]
) -> JointState | Odometry:
    """Message of a report; `shift` from the plant's clock to that of the stamps [s], odometry and base frame."""
    stamp = report.stamp + shift
    if isinstance(report, JointReport):
        return joint_message(stamp, report.names, report.position, report.velocity, report.effort)
    return odometry_message(stamp, *frames, report.pose, report.twist)


def values_of(message: JointState, values: Sequence[float], joints: Sequence[str]) -> Vector | None:
    """One field of a joint message in the order of `joints` (n,); None where it lacks one of them."""
    by_name = dict(zip(message.name, values, strict=False))
    return np.array([by_name[name] for name in joints]) if by_name.keys() >= set(joints) else None


def trajectory_knots(
    message: JointTrajectory, joints: Sequence[str]
) -> tuple[Vector, Vector, Vector | None, Vector | None] | None:
    """Knots of a trajectory in the order of `joints`: times (m,) [s], positions, velocities, accelerations (m, n).

    What no point has is None. None altogether where a joint is not in it, or the points are not alike.
    """
    if not set(joints) <= set(message.joint_names) or not message.points:
        return None
    columns = [list(message.joint_names).index(name) for name in joints]
    times = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
    fields: list[Vector | None] = []
    for field in ("positions", "velocities", "accelerations"):
        rows = [getattr(point, field) for point in message.points]
        if all(len(row) == 0 for row in rows):
            fields.append(None)
        elif all(len(row) == len(message.joint_names) for row in rows):
            fields.append(np.array([[row[k] for k in columns] for row in rows], dtype=float))
        else:
            return None
    positions, velocities, accelerations = fields
    return None if positions is None else (np.array(times), positions, velocities, accelerations)
