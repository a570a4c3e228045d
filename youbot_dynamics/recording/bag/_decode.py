"""Decoded messages to columns: the only place that knows the fields of the message types."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.recording.message_types import ODOMETRY, POSE_STAMPED
from youbot_dynamics.recording.series import JointSample

IntArray = NDArray[np.int64]


def longest_nondecreasing(values: IntArray) -> IntArray:
    """Return the rows of a longest subsequence that never decreases.

    One stamp far in the future would make a running maximum reject everything after it; the longest
    subsequence loses that one row only.

    Args:
        values: shape (n,).

    Returns:
        Shape (m,), increasing row numbers; all of them when the values never decrease.
    """
    if values.size < 2 or bool(np.all(values[1:] >= values[:-1])):
        return np.arange(values.size)
    tails: list[int] = []
    tail_rows: list[int] = []
    previous = np.full(values.size, -1, dtype=np.int64)
    for row, value in enumerate(values.tolist()):
        length = bisect_right(tails, value)
        if length:
            previous[row] = tail_rows[length - 1]
        if length == len(tails):
            tails.append(value)
            tail_rows.append(row)
        else:
            tails[length] = value
            tail_rows[length] = row
    rows = np.empty(len(tails), dtype=np.int64)
    row = tail_rows[-1]
    for place in range(len(tails) - 1, -1, -1):
        rows[place] = row
        row = int(previous[row])
    return rows


def ordered_rows(stamp: IntArray) -> IntArray:
    """Return the rows to keep: stamped ones that do not decrease, or every row if none is stamped.

    Args:
        stamp: shape (n,) [ns], 0 where the sender left the stamp empty.
    """
    stamped = np.flatnonzero(stamp)
    if stamped.size == 0:
        return np.arange(stamp.size)
    rows: IntArray = stamped[longest_nondecreasing(stamp[stamped])]
    return rows


def seconds(nanoseconds: IntArray, origin: int) -> Vector:
    """Return times relative to an origin.

    Args:
        nanoseconds: shape (n,) [ns].
        origin: [ns].

    Returns:
        Shape (n,) [s].
    """
    return np.asarray((nanoseconds - np.int64(origin)) * 1e-9, dtype=np.float64)


def stamp_seconds(stamp: IntArray, origin: int) -> Vector:
    """Return stamps relative to an origin, NaN throughout if none is set.

    Args:
        stamp: shape (n,) [ns], 0 where the sender left the stamp empty.
        origin: [ns].

    Returns:
        Shape (n,) [s].
    """
    return seconds(stamp, origin) if np.any(stamp) else np.full(stamp.size, np.nan)


Messages = Iterable[tuple[int, Any]]


@dataclass(frozen=True, eq=False)
class JointLayout:
    """The messages of a topic that name the same joints.

    Attributes:
        names: joints in the order of the columns.
        received: shape (n,), receive time [ns].
        stamp: shape (n,), header stamp [ns], 0 if not set.
        values: position, velocity and effort, each of shape (n, k), NaN where absent.
    """

    names: tuple[str, ...]
    received: IntArray
    stamp: IntArray
    values: tuple[Vector, Vector, Vector]

    def columns(self, joints: Sequence[str]) -> tuple[Vector, Vector, Vector]:
        """Return position, velocity and effort of some joints, NaN for those not named here.

        Args:
            joints: k names.

        Returns:
            Three arrays of shape (n, k).
        """
        chosen = [np.full((self.received.size, len(joints)), np.nan) for _ in self.values]
        for column, joint in enumerate(joints):
            if joint in self.names:
                for target, source in zip(chosen, self.values, strict=True):
                    target[:, column] = source[:, self.names.index(joint)]
        return chosen[0], chosen[1], chosen[2]


class _Group:
    """Collects the messages of one layout as bytes: kept objects would cost more than decoding them."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.stamp: list[int] = []
        self.position = bytearray()
        self.velocity = bytearray()
        self.effort = bytearray()

    def layout(self, names: tuple[str, ...]) -> JointLayout:
        shape = (len(self.received), len(names))
        position, velocity, effort = (
            np.frombuffer(collected, dtype=np.float64).reshape(shape) if collected else np.full(shape, np.nan)
            for collected in (self.position, self.velocity, self.effort)
        )
        return JointLayout(
            names,
            np.array(self.received, dtype=np.int64),
            np.array(self.stamp, dtype=np.int64),
            (position, velocity, effort),
        )


def stamp_of(message: Any) -> int:
    """Return the header stamp of a message [ns]."""
    stamp = message.header.stamp
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def joint_layouts(samples: Iterable[tuple[int, JointSample]]) -> tuple[list[JointLayout], int]:
    """Sort joint states by the joints they name.

    Args:
        samples: receive time [ns] and sample, in any order.

    Returns:
        The layouts, in order of appearance, and the number of messages rejected because a field has
        neither one value per joint nor none.
    """
    groups: dict[tuple[tuple[str, ...], int, int, int], _Group] = {}
    rejected = 0
    for received, (names, stamp, position, velocity, effort) in samples:
        key = (names, len(position), len(velocity), len(effort))
        group = groups.get(key)
        if group is None:
            if any(size not in (0, 8 * len(names)) for size in key[1:]):
                rejected += 1
                continue
            group = groups[key] = _Group()
        group.received.append(received)
        group.stamp.append(stamp)
        group.position += position
        group.velocity += velocity
        group.effort += effort
    return [group.layout(key[0]) for key, group in groups.items()], rejected


def twist_row(twist: Any) -> tuple[float, float, float]:
    """Return vx, vy [m/s], wz [rad/s] of a Twist."""
    return twist.linear.x, twist.linear.y, twist.angular.z


def twist_columns(messages: Messages, stamped: bool) -> tuple[IntArray, IntArray, Vector]:
    """Return receive times (n,) [ns], stamps (n,) [ns] and twists (n, 3) [m/s, m/s, rad/s].

    Args:
        messages: receive time [ns] and Twist or TwistStamped.
        stamped: whether they are TwistStamped; stamps are 0 otherwise.
    """
    received, stamp, rows = [], [], []
    for time, message in messages:
        received.append(time)
        stamp.append(stamp_of(message) if stamped else 0)
        rows.append(twist_row(message.twist if stamped else message))
    return (
        np.array(received, dtype=np.int64),
        np.array(stamp, dtype=np.int64),
        np.array(rows, dtype=np.float64).reshape(-1, 3),
    )


def yaw_of(quaternions: Vector) -> Vector:
    """Return the heading of rotations, NaN where a quaternion is far from unit length.

    Args:
        quaternions: shape (n, 4), x, y, z, w.

    Returns:
        Shape (n,) [rad] in (-pi, pi].
    """
    x, y, z, w = quaternions.T
    yaw: Vector = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    yaw[yaw == -np.pi] = np.pi
    length = np.linalg.norm(quaternions, axis=1)
    yaw[~(np.abs(length - 1.0) < 0.1)] = np.nan
    return yaw


def pose_columns(messages: Messages, type_name: str) -> tuple[str, IntArray, IntArray, Vector, Vector]:
    """Return frame, receive times (n,) [ns], stamps (n,) [ns], poses (n, 3) [m, m, rad] and twists (n, 3).

    Args:
        messages: receive time [ns] and messages of the type.
        type_name: Odometry, PoseStamped or PoseWithCovarianceStamped; only the first has twists, the others
            get NaN.
    """
    received, stamp, places, quaternions, twists = [], [], [], [], []
    frame = ""
    for time, message in messages:
        frame = frame or message.header.frame_id
        pose = message.pose if type_name == POSE_STAMPED else message.pose.pose
        turn = pose.orientation
        received.append(time)
        stamp.append(stamp_of(message))
        places.append((pose.position.x, pose.position.y))
        quaternions.append((turn.x, turn.y, turn.z, turn.w))
        twists.append(twist_row(message.twist.twist) if type_name == ODOMETRY else (np.nan,) * 3)
    yaw = yaw_of(np.array(quaternions, dtype=np.float64).reshape(-1, 4))
    place = np.array(places, dtype=np.float64).reshape(-1, 2)
    return (
        frame,
        np.array(received, dtype=np.int64),
        np.array(stamp, dtype=np.int64),
        np.column_stack((place, yaw)),
        np.array(twists, dtype=np.float64).reshape(-1, 3),
    )


def trajectory_rows(messages: Messages) -> list[tuple[int, int, str, Vector, Vector]]:
    """Return receive time [ns], stamp [ns], frame, times (k,) [s] and poses (k, 3) of each trajectory.

    Points without a transform are left out: an empty trajectory has no rows.
    """
    found = []
    for received, message in messages:
        points = [point for point in message.points if len(point.transforms)]
        moments = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points]
        shifts = [point.transforms[0].translation for point in points]
        turns = [point.transforms[0].rotation for point in points]
        yaw = yaw_of(np.array([(q.x, q.y, q.z, q.w) for q in turns], dtype=np.float64).reshape(-1, 4))
        place = np.array([(shift.x, shift.y) for shift in shifts], dtype=np.float64).reshape(-1, 2)
        poses = np.column_stack((place, yaw))
        times = np.array(moments, dtype=np.float64)
        found.append((received, stamp_of(message), message.header.frame_id, times, poses))
    return found
