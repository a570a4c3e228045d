"""Convert decoded messages to columns; only this module knows the fields of the message types."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.recording import message_types as types
from youbot_dynamics.recording.series import stamp_of

IntArray = NDArray[np.int64]
Links = dict[tuple[str, str], tuple[IntArray, IntArray, Vector]]  # by frame and child frame
Key = tuple[Any, ...]  # what messages must have in common to be rows of one table
Decode = Callable[[bytes], Any]
RowOf = Callable[[Any], tuple[Key, Sequence[float]]]  # key and numbers of a message

# What a DynamicJointState may hold, by its names in ros2_control, which are free.
INTERFACES = {
    "position": ("position",),
    "velocity": ("velocity",),
    "effort": ("effort", "torque"),
    "current": ("current",),
    "voltage": ("voltage",),
    "winding": ("winding_temperature", "motor_temperature"),
    "housing": ("housing_temperature", "case_temperature"),
    "temperature": ("temperature",),  # of any part
}
_AT_ONCE = 4096  # messages decoded together
_MOST_LAYOUTS = 8  # of messages of one size
_HEAD, _STAMPED_HEAD = 4, 12  # bytes before the numbers: encapsulation; and stamp
_MARK = 0.123456789  # written in place of a number to find it; as a length it is too large for any message


class Messages(NamedTuple):
    """The messages of a topic, not yet decoded."""

    decode: Decode
    raw: Iterable[tuple[int, bytes]]  # receive time [ns] and bytes


class _Layout(NamedTuple):
    """Where the numbers of messages are that are alike but for their numbers."""

    key: Key
    row: Vector  # (k,) numbers of an example
    places: IntArray  # (k,) byte of each number, -1 for one that is always the same
    example: NDArray[np.uint8]  # (bytes,)
    fixed: NDArray[np.uint8]  # (bytes,) 255 for a byte that must be that of the example, else 0


def _find_layout(raw: bytes, decode: Decode, row_of: RowOf, stamped: bool) -> _Layout:
    """Find the numbers of a message: write a mark in each place where CDR may have one, and see where it comes out.

    A place may hold anything if a mark in it changes nothing but numbers that it is. One that holds a length changes
    what follows, or is an error.
    """
    key, numbers = row_of(decode(raw))
    row = np.array(numbers, dtype=np.float64)
    places, fixed = np.full(len(row), -1), np.full(len(raw), 255, dtype=np.uint8)
    number = next(mark for mark in count(_MARK) if mark not in row)
    mark = np.float64(number).tobytes()
    fixed[_HEAD:_STAMPED_HEAD] = 0 if stamped else 255
    for place in range(_STAMPED_HEAD if stamped else _HEAD, len(raw) - 7, 8):
        try:
            found, values = row_of(decode(raw[:place] + mark + raw[place + 8 :]))
        except Exception:  # of many types: what was replaced was no number
            continue
        changed = np.array(values) == number
        if found == key and np.array_equal(np.where(changed, row, values), row, equal_nan=True):
            fixed[place : place + 8] = 0
            places[changed] = place
    return _Layout(key, row, places, np.frombuffer(raw, dtype=np.uint8), fixed)


def _decoded(
    raw: Sequence[bytes], layouts: dict[int, list[_Layout]], decode: Decode, row_of: RowOf, stamped: bool
) -> Iterator[tuple[Key, IntArray, IntArray, Vector]]:
    """Yield key, places (m,) in `raw`, stamps (m,) [ns] and rows (m, k) of messages that are alike.

    `layouts` are those known so far by the size of a message; new ones are added.
    """
    sizes = np.array([len(data) for data in raw])
    for size in np.unique(sizes):
        left, known = np.flatnonzero(sizes == size), layouts.setdefault(int(size), [])
        for number in range(_MOST_LAYOUTS):
            # Only for many messages: the search decodes one for each 8 bytes.
            if number == len(known) and len(left) >= size and raw[int(left[0])][:4] == types.LITTLE_ENDIAN:
                known.append(_find_layout(bytes(raw[int(left[0])]), decode, row_of, stamped))
            if number == len(known) or not len(left):
                break
            layout, data = known[number], b"".join([raw[k] for k in left.tolist()])
            table = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
            alike = ~np.any((table ^ layout.example) & layout.fixed, axis=1)
            rows = np.tile(layout.row, (len(table), 1))
            for column in np.flatnonzero(layout.places >= 0):
                rows[:, column] = np.ndarray(len(table), "<f8", data, layout.places[column], (size,))
            stamps = np.zeros(len(table), dtype=np.int64)
            if stamped:
                stamps += np.ndarray(len(table), "<i4", data, 4, (size,)) * np.int64(1_000_000_000)
                stamps += np.ndarray(len(table), "<u4", data, 8, (size,))
            yield layout.key, left[alike], stamps[alike], rows[alike]
            left = left[~alike]
        for k in left.tolist():
            message = decode(raw[k])
            key, numbers = row_of(message)
            yield key, np.array([k]), np.array([stamp_of(message) if stamped else 0]), np.array([numbers], dtype=float)


def _tables(messages: Messages, row_of: RowOf, stamped: bool) -> dict[Key, tuple[IntArray, IntArray, Vector]]:
    """Decode messages: for each key, in order of appearance, receive times (n,), stamps (n,) [ns] and rows (n, k).

    The stamps are 0 for a type without. Messages that differ in nothing but numbers are decoded together.
    """
    layouts: dict[int, list[_Layout]] = {}
    grown: dict[Key, tuple[bytearray, bytearray, bytearray]] = {}  # columns, which grow without a copy
    raw = iter(messages.raw)
    while batch := list(islice(raw, _AT_ONCE)):
        received, stamps = np.array([time for time, _ in batch], dtype=np.int64), np.zeros(len(batch), dtype=np.int64)
        found: dict[Key, tuple[Flags, Vector]] = {}  # which messages of the batch have this key, and their rows
        for key, places, stamp, rows in _decoded(
            [data for _, data in batch], layouts, messages.decode, row_of, stamped
        ):
            blank = np.zeros(len(batch), dtype=bool), np.empty((len(batch), rows.shape[1]))
            have, table = found.setdefault(key, blank)
            have[places], stamps[places], table[places] = True, stamp, rows
        for key, (have, table) in sorted(found.items(), key=lambda item: int(np.argmax(item[1][0]))):
            columns = grown.setdefault(key, (bytearray(), bytearray(), bytearray()))
            for column, values in zip(columns, (received, stamps, table), strict=True):
                column += values[have].tobytes()
    tables = {}
    for key, (times, stamped_at, numbers) in grown.items():
        rows = np.frombuffer(numbers).reshape(len(times) // 8, -1)
        tables[key] = np.frombuffer(times, np.int64), np.frombuffer(stamped_at, np.int64), rows
    return tables


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


def filled_stamps(received: IntArray, stamp: IntArray) -> IntArray:
    """Stamps (n,) [ns] in which those that are 0 among others are the receive time less the usual time of travel.

    A command that is left out, such as the stop that a teleoperation sends without a stamp, would seem to be held.
    """
    empty = stamp == 0
    if not np.any(empty) or np.all(empty):
        return stamp
    filled: IntArray = np.where(empty, received + np.int64(np.median((stamp - received)[~empty])), stamp)
    order = np.argsort(received, kind="stable")
    stamped = order[~empty[order]]
    sound = stamped[longest_nondecreasing(stamp[stamped])]  # the only ones that will be kept
    after = np.searchsorted(received[sound], received[empty], side="right")
    limits = np.concatenate([[np.iinfo(np.int64).min], stamp[sound], [np.iinfo(np.int64).max]])
    filled[empty] = np.clip(filled[empty], limits[after], limits[after + 1])
    return filled


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
    values: Vector  # (f, n, k) position, velocity, effort, of a DynamicJointState all INTERFACES, NaN where absent


def joint_layouts(messages: Messages, type_name: str) -> tuple[list[JointLayout], int]:
    """Group joint states by the joints they name, in order of appearance; also return the number of rejected messages.

    A message is rejected if a field has neither one value per joint nor none.
    """

    def row_of(message: Any) -> tuple[Key, Sequence[float]]:
        if type_name == types.JOINT_STATE:
            names, fields = message.name, [message.position, message.velocity, message.effort]
        else:
            joints = [dict(zip(one.interface_names, one.values, strict=False)) for one in message.interface_values]
            names, fields = message.joint_names, [_interface(joints, called) for called in INTERFACES.values()]
        return (tuple(names), *map(len, fields)), [value for field in fields for value in field]

    layouts, rejected = [], 0
    tables = _tables(messages, row_of, True)
    for key in list(tables):
        received, stamp, rows = tables.pop(key)
        names, *lengths = key
        if any(length not in (0, len(names)) for length in lengths):
            rejected += len(rows)
            continue
        if 0 in lengths:
            values = np.full((len(lengths), len(rows), len(names)), np.nan)
            for k in np.flatnonzero(lengths):
                values[k] = rows[:, sum(lengths[:k]) : sum(lengths[: k + 1])]
        else:  # no copy: many readings fill the memory
            values = rows.reshape(len(rows), len(lengths), len(names)).transpose(1, 0, 2)
        layouts.append(JointLayout(names, received, stamp, values))
    return layouts, rejected


def _interface(joints: Sequence[Mapping[str, float]], names: Sequence[str]) -> list[float]:
    """One interface of a DynamicJointState by one of its names, NaN for a joint that lacks it; empty if all do."""
    found = [next((joint[name] for name in names if name in joint), None) for joint in joints]
    return [] if all(value is None for value in found) else [nan if value is None else value for value in found]


def twist_columns(messages: Messages, type_name: str) -> tuple[IntArray, IntArray, Vector]:
    """Return receive times (n,) [ns], stamps (n,) [ns] (0 for a Twist) and twists (n, 3) [m/s, m/s, rad/s].

    `type_name` is Twist, TwistStamped, Odometry, or Imu, which has no linear velocity: NaN.
    """

    def row_of(message: Any) -> tuple[Key, Sequence[float]]:
        if type_name == types.IMU:
            return (), (nan, nan, message.angular_velocity.z)
        twist = message.twist.twist if type_name == types.ODOMETRY else message.twist if stamped else message
        return (), (twist.linear.x, twist.linear.y, twist.angular.z)

    stamped = type_name != types.TWIST
    return _tables(messages, row_of, stamped).get((), _no_rows(3))


def _no_rows(width: int) -> tuple[IntArray, IntArray, Vector]:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, width))


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

    def row_of(message: Any) -> tuple[Key, Sequence[float]]:
        if type_name == types.TRANSFORM_STAMPED:
            return (message.child_frame_id,), _place_row(message.transform.translation, message.transform.rotation)
        pose = message.pose if type_name == types.POSE_STAMPED else message.pose.pose
        return (), _place_row(pose.position, pose.orientation)

    tables = _tables(messages, row_of, True)
    bodies = {body for key in tables for body in key}
    # The reader refuses several bodies.
    received, stamp, rows = next(iter(tables.values()), _no_rows(6))
    return bodies, received, stamp, _planar(rows)


def links(messages: Messages, _: str) -> Links:
    """Return receive times (n,), stamps (n,) [ns] and poses (n, 3) of each link of a tree of transforms."""
    rows: dict[tuple[str, str], list[tuple[int, int, tuple[float, ...]]]] = {}
    for received, data in messages.raw:
        for one in messages.decode(data).transforms:
            place = _place_row(one.transform.translation, one.transform.rotation)
            link = one.header.frame_id.lstrip("/"), one.child_frame_id.lstrip("/")
            rows.setdefault(link, []).append((received, stamp_of(one), place))
    tables = {}
    for link, found in rows.items():
        times, stamps, places = zip(*found, strict=True)
        tables[link] = np.array(times, np.int64), np.array(stamps, np.int64), _planar(np.array(places))
    return tables


def trajectory_rows(messages: Messages, type_name: str) -> list[tuple[int, Vector, Vector]]:
    """Return the stamp [ns], times (k,) [s] and poses (k, 3) of each trajectory.

    Points without a transform are left out: an empty trajectory has no rows.
    """
    trajectories = []
    for _, data in messages.raw:
        message = messages.decode(data)
        points = [point for point in message.points if len(point.transforms)]
        moments = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points]
        rows = [_place_row(point.transforms[0].translation, point.transforms[0].rotation) for point in points]
        poses = _planar(np.array(rows, dtype=np.float64).reshape(-1, 6))
        trajectories.append((stamp_of(message), np.array(moments, dtype=np.float64), poses))
    return trajectories
