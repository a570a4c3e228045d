"""Time series read from a recording.

All times are seconds relative to ``Recording.origin``, a whole second given in nanoseconds. A float64 then resolves
far less than a nanosecond over hours, which seconds since 1970 would not.
Rows are sorted by receive time and their stamps never decrease. Rows that violate this are rejected and counted in
``rejected``. Values are those of the messages, including NaN; infinite values become NaN, and
wrapped angles are put together. Arrays are read-only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.recording.message_types import LITTLE_ENDIAN, joint_state_cdr

_NAMES_AT = 12  # offset after the encapsulation and the stamp; the frame follows, then the names
_MOST_LAYOUTS = 8

_stamp = struct.Struct("<iI").unpack_from


def stamp_of(message: Any) -> int:
    """Header stamp of a message [ns]."""
    stamp = message.header.stamp
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


class JointSample(NamedTuple):
    """One JointState message."""

    names: tuple[str, ...]  # k joints
    stamp: int  # header stamp [ns]
    position: bytes  # k float64 values [rad or m] as bytes, or empty
    velocity: bytes  # the same [rad/s or m/s]
    effort: bytes  # the same [N m or N]


class _Layout(NamedTuple):
    """Byte offsets in a message: spans of its three value fields; counts of the last two and their offsets."""

    names: tuple[str, ...]
    size: int
    head: bytes
    counts: tuple[tuple[int, bytes], ...]
    spans: tuple[tuple[int, int], ...]


class JointSamples:
    """Decodes JointState messages of one topic, five times as fast as the general decoder.

    Messages of one topic usually differ only in stamp and values. The general decoder decodes the first message of each
    kind. The offsets of its values are found by writing it again, and are checked against that result. Later messages
    with the same names and lengths are sliced at these offsets.

    Args:
        decode: the general decoder.
    """

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        self._decode = decode
        self._layouts: list[_Layout] = []

    def __call__(self, raw: bytes) -> JointSample:
        """Return the sample of one message."""
        for names, size, head, ((v_at, v_count), (e_at, e_count)), spans in self._layouts:
            if (
                len(raw) == size
                and raw[_NAMES_AT : _NAMES_AT + len(head)] == head
                and raw[:4] == LITTLE_ENDIAN
                and raw[v_at : v_at + 4] == v_count
                and raw[e_at : e_at + 4] == e_count
            ):
                sec, nanosec = _stamp(raw, 4)
                (p, p_end), (v, v_end), (e, e_end) = spans
                return JointSample(names, sec * 1_000_000_000 + nanosec, raw[p:p_end], raw[v:v_end], raw[e:e_end])
        message = self._decode(raw)
        fields = [
            np.asarray(values, dtype=np.float64).tobytes()
            for values in (message.position, message.velocity, message.effort)
        ]
        sample = JointSample(tuple(message.name), stamp_of(message), *fields)
        if raw[:4] == LITTLE_ENDIAN and len(self._layouts) < _MOST_LAYOUTS:
            layout = _layout(bytes(raw), message.header.frame_id, sample)
            if [raw[start:end] for start, end in layout.spans] == fields:
                self._layouts.append(layout)
        return sample


def _layout(raw: bytes, frame: str, sample: JointSample) -> _Layout:
    """Find the byte offsets of the fields of a message: a field ends where a message without the later ones ends."""
    p, v, e = (np.frombuffer(field) for field in sample[2:])
    parts = [(None, None, None), (p, None, None), (p, v, None), (p, v, e)]
    lengths = [len(joint_state_cdr(0, sample.names, *part, frame)) for part in parts]
    head_end, *ends = (length - 4 * (3 - k) for k, length in enumerate(lengths))  # the later ones have a count of 0
    counts = tuple((end, raw[end : end + 4]) for end in ends[:2])
    spans = tuple((end - len(field), end) for end, field in zip(ends, sample[2:], strict=True))
    return _Layout(sample.names, len(raw), raw[_NAMES_AT : head_end + 4], counts, spans)


class _ReadOnlyArrays:
    """Makes the arrays of a frozen dataclass read-only."""

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


@dataclass(frozen=True, eq=False)
class JointSeries(_ReadOnlyArrays):
    """Joint states, one column per joint."""

    topic: str  # name of the topic
    names: tuple[str, ...]  # joints, in the order of the columns
    stamp: Vector  # (n,), header stamp [s]; NaN throughout if no message was stamped
    received: Vector  # (n,), receive time [s]
    position: Vector  # (n, k) [rad or m]; NaN where a message had no position
    velocity: Vector  # (n, k) [rad/s or m/s]; NaN where a message had no velocity
    effort: Vector  # (n, k) [N m or N]; NaN where a message had no effort
    # What else a DynamicJointState has, (n, k) each, the same: current [A], voltage [V]; temperature [degC] of the
    # winding, of the housing, or of a part that its name does not tell
    interfaces: Mapping[str, Vector] = field(default_factory=dict)
    rejected: int = 0  # messages rejected: stamp decreases or is missing, or a field has the wrong length
    ranges: tuple[float, ...] = ()  # of positions that were wrapped, put together in `position` [rad]; 0 for others


@dataclass(frozen=True, eq=False)
class TwistSeries(_ReadOnlyArrays):
    """Body velocities."""

    topic: str  # name of the topic
    stamp: Vector | None  # (n,), header stamp [s]; None for an unstamped type, or if no message was stamped
    received: Vector  # (n,), receive time [s]
    twist: Vector  # (n, 3), vx, vy [m/s], wz [rad/s]
    rejected: int = 0  # messages rejected because their stamp decreases


@dataclass(frozen=True, eq=False)
class PoseSeries(_ReadOnlyArrays):
    """Planar poses."""

    topic: str  # name of the topic
    stamp: Vector  # (n,), header stamp [s]; NaN throughout if no message was stamped
    received: Vector  # (n,), receive time [s]
    pose: Vector  # (n, 3), x, y [m], yaw [rad] in (-pi, pi]
    rejected: int = 0  # messages rejected: stamp decreases or is missing, or position or quaternion is invalid


@dataclass(frozen=True, eq=False)
class TrajectoryMessage(_ReadOnlyArrays):
    """A planar trajectory as it was sent."""

    start: float  # header stamp, the start time of the trajectory [s]; NaN if not set
    time: Vector  # (k,), from the start [s]
    pose: Vector  # (k, 3), x, y [m], yaw [rad] in (-pi, pi]
