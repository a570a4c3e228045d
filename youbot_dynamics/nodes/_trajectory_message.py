"""Decode a serialized trajectory: rclpy takes half a second to make objects of 30,000 points."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.trajectory import Trajectory, TrajectoryLimits
from youbot_dynamics.errors import TrajectoryError
from youbot_dynamics.kinematics.planar import yaws_of_quaternions

GIVEN_UP = "trajectory given up"  # how the tracker's status begins where it does not go on
OF_STAMP = "header_stamp"  # in the diagnostics of the tracker: identifies a trajectory that was refused or given up

_LITTLE_ENDIAN = b"\x00\x01"  # plain CDR, as every ROS 2 middleware writes it on today's machines
_PARTS = ("transforms", "velocities", "accelerations")


@dataclass(frozen=True, eq=False)
class TrajectoryMessage:
    """A trajectory_msgs/MultiDOFJointTrajectory of one planar base."""

    stamp: float  # [s]
    frame: str
    joints: tuple[str, ...]
    trajectory: Trajectory | None  # None where it has no points


class _Reader:
    """Reads the fields before the points; each is aligned to its size, counted from behind the first 4 bytes."""

    def __init__(self, data: bytes) -> None:
        if data[:2] != _LITTLE_ENDIAN:
            raise _unreadable("another byte order or encoding")
        self.data, self.at = data[4:], 0

    def number(self, kind: str = "I") -> int:
        self.at += -self.at % 4
        return int(struct.unpack(f"<{kind}", self._take(4))[0])

    def text(self) -> str:
        return self._take(self.number()).rstrip(b"\x00").decode("utf-8", "replace")

    def _take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise _unreadable("a message that ends too early")
        self.at += size
        return self.data[self.at - size : self.at]


def stamp_text(data: bytes) -> str:
    """Stamp in the header of a serialized message, such as 12.000000034, which identifies the trajectory."""
    return "{}.{:09d}".format(*struct.unpack_from("<iI", data.ljust(12, b"\x00"), 4))


def read_trajectory(data: bytes, limits: TrajectoryLimits) -> TrajectoryMessage:
    """Decode a serialized trajectory, its points in one pass; the limits are checked before.

    Raises:
        TrajectoryError: bytes that are no such message, several joints, points that have not one transform and the same
            kinds of rates each, or a trajectory beyond the limits or that is none.
    """
    reader = _Reader(data)
    stamp = reader.number("i") + 1e-9 * reader.number()
    frame = reader.text()
    names = reader.number()
    if names > 1:
        raise TrajectoryError("trajectory joint_names", got=f"{names} names", expected="one, the base frame")
    joints = tuple(reader.text() for _ in range(names))
    count = reader.number()
    if count == 0:
        return TrajectoryMessage(stamp, frame, joints, None)
    limits.check(points=count)
    points = _points(reader, count)
    times = points["sec"] + 1e-9 * points["nanosec"]
    limits.check(duration=float(times[-1]))
    if times[0] < 0.0:
        raise TrajectoryError("trajectory point 0", got=f"time {times[0]:g} s", expected="0 s or later")
    pose = points["transforms"]
    poses = np.column_stack([pose[:, :2], yaws_of_quaternions(pose[:, 3:])])
    twists: Vector | None = None
    if "velocities" in (points.dtype.names or ()):
        rates = points["velocities"]
        twists = np.where(np.isfinite(rates).all(axis=1)[:, None], rates[:, [0, 1, 5]], np.nan)
    return TrajectoryMessage(stamp, frame, joints, Trajectory(times, poses, twists))


def _points(reader: _Reader, count: int) -> np.ndarray:
    """Points (count,) as records; each has the layout of the first one, else it is refused.

    A record begins with the numbers of a transform, at a multiple of 8 bytes, and ends with the `count` of transforms
    of the next point, so that all are equally long.
    """
    head = reader.number()
    if head != 1:
        raise _odd(0, "transforms", head, 1)
    begin = reader.at + -reader.at % 8
    reader.at = begin + 8 * 7
    fields, expected = [("transforms", "(7,)<f8", 0)], [1]  # names, formats and places; counts
    for part in _PARTS[1:]:
        number = reader.number()
        if number > 1:
            raise _odd(0, part, number, 1)
        expected.append(number)
        fields.append((f"n_{part}", "<u4", reader.at - 4 - begin))
        if number:
            reader.at += -reader.at % 8
            fields.append((part, "(6,)<f8", reader.at - begin))
            reader.at += 8 * 6
    end = reader.at - begin
    fields += [("sec", "<i4", end), ("nanosec", "<u4", end + 4), ("n_transforms", "<u4", end + 8)]
    names, formats, offsets = (list(column) for column in zip(*fields, strict=True))
    size = end + 12 + (-(end + 12)) % 8
    layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})
    received = max(0, min(count, (len(reader.data) - begin + size - end - 8) // size))
    padded = reader.data[begin : begin + received * size].ljust(received * size, b"\x00")
    points = np.frombuffer(padded, layout, received)
    # In the order in which they were read: behind the first odd point no field is where it seems.
    heads = np.append(1, points["n_transforms"])[:received]
    counts = np.column_stack([heads, *(points[f"n_{part}"] for part in _PARTS[1:])])
    odd = np.argwhere(counts != expected)
    if len(odd):
        k, part = odd[0]
        raise _odd(int(k), _PARTS[part], int(counts[k, part]), expected[part])
    if received < count:
        raise _unreadable(f"{received} of {count} points")
    return points


def _odd(point: int, part: str, got: int, expected: int) -> TrajectoryError:
    like = "" if part == "transforms" else ", as in the first point" if point else " at most"
    return TrajectoryError(f"trajectory point {point}", got=f"{got} {part}", expected=f"{expected}{like}")


def _unreadable(got: str) -> TrajectoryError:
    return TrajectoryError("trajectory message", got=got, expected="a whole trajectory_msgs/MultiDOFJointTrajectory")
