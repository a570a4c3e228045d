"""Convert decoded messages to columns; only this module knows the fields of the message types."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.recording.message_types import IMU, ODOMETRY, POSE_STAMPED, TRANSFORM_STAMPED, TWIST
from youbot_dynamics.recording.series import JointSample, stamp_of

IntArray = NDArray[np.int64]
Messages = Iterable[tuple[int, Any]]  # receive time [ns] and message


def longest_nondecreasing(values: IntArray) -> IntArray:
    """Return the rows (m,) of a longest subsequence of values (n,) that never decreases.

    A single stamp far in the future would make a running maximum reject everything after it. The longest subsequence
    loses only that row.
    """
    if values.size < 2 or bool(np.all(values[1:] >= values[:-1])):
        return np.arange(values.size)
    # For each length: the smallest last value of a subsequence and its row; for each row: the row before it.
    tails: list[int] = []
    tail_rows: list[int] = []
    previous = np.full(values.size, -1, dtype=np.int64)
    for row, value in enumerate(values.tolist()):
        length = bisect_right(tails, value)
        if length:
            previous[row] = tail_rows[length - 1]
        tails[length : length + 1] = [value]
        tail_rows[length : length + 1] = [row]
    rows = [tail_rows[-1]]
    while (row := int(previous[rows[-1]])) >= 0:
        rows.append(row)
    return np.array(rows[::-1], dtype=np.int64)


def rows_in_order(received: IntArray, stamp: IntArray, sound: Flags | None = None) -> IntArray:
    """Return the rows to keep, sorted by receive time: those whose stamps never decrease, or all if none is stamped.

    Times are (n,) [ns], a stamp is 0 where the sender left it empty; `sound` (n,) messages may be kept, None for all.
    """
    order = np.argsort(received, kind="stable")
    if sound is not None:
        order = order[sound[order]]
    stamped: IntArray = order[stamp[order] != 0]
    return stamped[longest_nondecreasing(stamp[stamped])] if stamped.size else order


def seconds(nanoseconds: IntArray, origin: int) -> Vector:
    """Times (n,) [s] after an origin [ns]."""
    return np.asarray((nanoseconds - np.int64(origin)) * 1e-9, dtype=np.float64)


def stamp_seconds(stamp: IntArray, origin: int) -> Vector:
    """Stamps (n,) [s] after an origin [ns]; all NaN if none is set."""
    return seconds(stamp, origin) if np.any(stamp) else np.full(stamp.size, np.nan)


@dataclass(frozen=True, eq=False)
class JointLayout:
    """The messages of a topic that name the same joints."""

    names: tuple[str, ...]  # joints in the order of the columns
    received: IntArray  # (n,) receive time [ns]
    stamp: IntArray  # (n,) header stamp [ns], 0 if not set
    values: Vector  # (3, n, k) position, velocity and effort, NaN where absent


def joint_layouts(samples: Iterable[tuple[int, JointSample]], type_name: str) -> tuple[list[JointLayout], int]:
    """Group joint states by the joints they name, in order of appearance; also return the number of rejected messages.

    A message is rejected if a field has neither one value per joint nor none. Values are collected as bytes, because
    keeping objects would cost more than decoding them.
    """
    groups: dict[tuple[tuple[str, ...], int, int, int], tuple[list[int], list[int], bytearray, bytearray, bytearray]]
    groups = {}
    rejected = 0
    for received, (names, stamp, position, velocity, effort) in samples:
        key = (names, len(position), len(velocity), len(effort))
        group = groups.get(key)
        if group is None:
            if any(size not in (0, 8 * len(names)) for size in key[1:]):
                rejected += 1
                continue
            group = groups[key] = ([], [], bytearray(), bytearray(), bytearray())
        group[0].append(received)
        group[1].append(stamp)
        group[2].extend(position)
        group[3].extend(velocity)
        group[4].extend(effort)
    layouts = []
    for (names, *_), (times, stamps, *fields) in groups.items():
        values = np.full((3, len(times), len(names)), np.nan)
        for target, field in zip(values, fields, strict=True):
            if field:
                target[:] = np.frombuffer(field).reshape(target.shape)
        layouts.append(JointLayout(names, np.array(times, np.int64), np.array(stamps, np.int64), values))
    return layouts, rejected


def _columns(
    messages: Messages, stamped: bool, row_of: Callable[[Any], tuple[float, ...]], width: int
) -> tuple[IntArray, IntArray, Vector]:
    """Return receive times (n,) [ns], stamps (n,) [ns] (0 if unstamped) and rows (n, width) of messages."""
    received, stamp, rows = [], [], []
    for time, message in messages:
        received.append(time)
        stamp.append(stamp_of(message) if stamped else 0)
        rows.append(row_of(message))
    table = np.array(rows, dtype=np.float64).reshape(-1, width)
    return np.array(received, dtype=np.int64), np.array(stamp, dtype=np.int64), table


def twist_columns(messages: Messages, type_name: str) -> tuple[IntArray, IntArray, Vector]:
    """Return receive times (n,) [ns], stamps (n,) [ns] (0 for a Twist) and twists (n, 3) [m/s, m/s, rad/s].

    `type_name` is Twist, TwistStamped, Odometry, or Imu, which has no linear velocity: NaN.
    """

    def row_of(message: Any) -> tuple[float, ...]:
        if type_name == IMU:
            return nan, nan, message.angular_velocity.z
        twist = message.twist.twist if type_name == ODOMETRY else message.twist if stamped else message
        return twist.linear.x, twist.linear.y, twist.angular.z

    stamped = type_name != TWIST
    return _columns(messages, stamped, row_of, 3)


def yaw_of(quaternions: Vector) -> Vector:
    """Return yaw angles (n,) [rad] in (-pi, pi] of quaternions (n, 4) x, y, z, w; NaN where far from unit length."""
    x, y, z, w = quaternions.T
    yaw: Vector = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    yaw[yaw == -np.pi] = np.pi
    length = np.linalg.norm(quaternions, axis=1)
    yaw[~(np.abs(length - 1.0) < 0.1)] = np.nan
    return yaw


def _place_row(place: Any, turn: Any) -> tuple[float, ...]:
    return place.x, place.y, turn.x, turn.y, turn.z, turn.w


def _planar(rows: Vector) -> Vector:
    """Return poses (n, 3) from rows (n, 6) of `_place_row`."""
    return np.column_stack((rows[:, :2], yaw_of(rows[:, 2:])))


def pose_columns(messages: Messages, type_name: str) -> tuple[set[str], IntArray, IntArray, Vector]:
    """Return the body names of transforms, receive times (n,) [ns], stamps (n,) [ns] and poses (n, 3) [m, m, rad].

    `type_name` is Odometry, PoseStamped, PoseWithCovarianceStamped or TransformStamped.
    """
    bodies: set[str] = set()

    def row_of(message: Any) -> tuple[float, ...]:
        if type_name == TRANSFORM_STAMPED:
            bodies.add(message.child_frame_id)
            return _place_row(message.transform.translation, message.transform.rotation)
        pose = message.pose if type_name == POSE_STAMPED else message.pose.pose
        return _place_row(pose.position, pose.orientation)

    received, stamp, rows = _columns(messages, True, row_of, 6)
    return bodies, received, stamp, _planar(rows)


def trajectory_rows(messages: Messages, type_name: str) -> list[tuple[int, Vector, Vector]]:
    """Return the stamp [ns], times (k,) [s] and poses (k, 3) of each trajectory.

    Points without a transform are left out: an empty trajectory has no rows.
    """
    trajectories = []
    for _, message in messages:
        points = [point for point in message.points if len(point.transforms)]
        moments = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points]
        rows = [_place_row(point.transforms[0].translation, point.transforms[0].rotation) for point in points]
        poses = _planar(np.array(rows, dtype=np.float64).reshape(-1, 6))
        trajectories.append((stamp_of(message), np.array(moments, dtype=np.float64), poses))
    return trajectories
