"""Messages to arrays and back; the only place that knows their layout."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite, nan
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose, Twist, TwistStamped
from sensor_msgs.msg import JointState

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import doubled
from youbot_dynamics.kinematics.planar import yaw_of_quaternion
from youbot_dynamics.recording.message_types import LAST_STAMP

if TYPE_CHECKING:
    from trajectory_msgs.msg import JointTrajectory

Answer = TypeVar("Answer")  # of a service: Trigger.Response, SetBool.Response

_SHORTEST_ODOMETRY = 4 + 8 + 2 * 8 + 8 * (7 + 36 + 6 + 36)  # [bytes], its frames without names


def answer(response: Answer, success: bool, message: str) -> Answer:
    """Fill in the answer of a service."""
    response.success, response.message = success, message  # type: ignore[attr-defined]
    return response


def seconds(stamp: Time) -> float:
    """Stamp in seconds; float64 keeps 0.3 us at today's date."""
    return stamp.sec + 1e-9 * stamp.nanosec


def nanoseconds(stamp: float) -> int:
    """Seconds as whole nanoseconds, at most what a stamp can hold, for messages that are made as bytes."""
    whole = int(stamp // 1)
    return min(1_000_000_000 * whole + round((stamp - whole) * 1e9), LAST_STAMP)


def to_time(stamp: float) -> Time:
    """Seconds as a message."""
    sec, nanosec = divmod(nanoseconds(stamp), 1_000_000_000)
    return Time(sec=sec, nanosec=nanosec)


def twist_vector(message: Twist | TwistStamped) -> Vector:
    """Planar part (vx, vy, wz); NaN throughout where any of the six fields is not finite."""
    twist = message.twist if isinstance(message, TwistStamped) else message
    linear, angular = twist.linear, twist.angular
    values = (linear.x, linear.y, linear.z, angular.x, angular.y, angular.z)
    return np.array([linear.x, linear.y, angular.z]) if all(map(isfinite, values)) else np.full(3, np.nan)


def stamped_twist(data: bytes) -> tuple[float, Vector] | None:
    """Stamp [s] and planar twist (3,) of a serialised Odometry, as `twist_vector`; None for bytes that are none.

    Only the covariance follows the twist, so that the length of the frames' names does not matter.
    """
    if data[:2] != b"\x00\x01" or len(data) < _SHORTEST_ODOMETRY:
        return None
    sec, nanosec = struct.unpack_from("<iI", data, 4)
    values = struct.unpack_from("<6d", data, len(data) - 8 * (6 + 36))
    twist = [values[0], values[1], values[5]] if all(map(isfinite, values)) else [nan] * 3
    return sec + 1e-9 * nanosec, np.array(twist)


def pose_vector(pose: Pose) -> Vector:
    """Planar part (x, y, yaw) of a pose."""
    q = pose.orientation
    return np.array([pose.position.x, pose.position.y, yaw_of_quaternion(q.x, q.y, q.z, q.w)])


def twice(names: Sequence[str]) -> str:
    """Problem with the names of joints in one message of which some occur twice; "" where none does."""
    repeated = doubled(names)
    return f"{', '.join(repeated)} named twice in one message, which is refused" if repeated else ""


def frame_of(data: bytes) -> str:
    """Frame in the header of a serialised message."""
    (size,) = struct.unpack_from("<I" if data[1] & 1 else ">I", data, 12)
    return data[16 : 15 + size].decode("utf-8", "replace")


def joint_positions(message: JointState, joints: Iterable[str]) -> tuple[Vector, Vector] | None:
    """Positions and velocities of the named joints, NaN where absent; None if it lacks one or `twice` names one."""
    fields = of_joints(tuple(message.name), tuple(joints), message.position, message.velocity)
    return None if fields is None else (fields[0], fields[1])


def of_joints(names: tuple[str, ...], joints: tuple[str, ...], *fields: Sequence[float]) -> tuple[Vector, ...] | None:
    """Values (n,) of `joints` in each field of a message with these names, as `joint_positions`."""
    indices = _indices(names, joints)
    if indices is None:
        return None
    return tuple(np.array([field[k] if k < len(field) else nan for k in indices]) for field in fields)


@lru_cache(maxsize=16)
def _indices(names: tuple[str, ...], joints: tuple[str, ...]) -> list[int] | None:
    if len(set(names)) < len(names) or not set(joints) <= set(names):
        return None
    return [names.index(name) for name in joints]


def values_of(message: JointState, values: Sequence[float], joints: Sequence[str]) -> Vector | None:
    """One field of a joint message in the order of `joints` (n,); None where it lacks one of them."""
    by_name = dict(zip(message.name, values, strict=False))
    return np.array([by_name[name] for name in joints]) if by_name.keys() >= set(joints) else None


def trajectory_knots(
    message: JointTrajectory, joints: Sequence[str]
) -> tuple[Vector, Vector, Vector | None, Vector | None] | None:
    """Knots of a trajectory in the order of `joints`: times (m,) [s], positions, velocities, accelerations (m, n).

    A field that no point has is None. The result is None where a joint is missing, or the points have unequal fields.
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
