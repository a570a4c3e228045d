"""Time series read from a recording.

All times are seconds relative to ``Recording.origin`` (nanoseconds, a whole second): a float64 then resolves
them far below a nanosecond over hours, which it would not do with seconds since 1970.
Rows are sorted by receive time and their stamps never decrease: rows that would break this are kept out and
counted in ``rejected``. Values of the messages are passed on as they are, NaN included; infinite ones become NaN.
Arrays are read-only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class _ReadOnlyArrays:
    """Makes the arrays of a frozen dataclass read-only."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


@dataclass(frozen=True, eq=False)
class JointSeries(_ReadOnlyArrays):
    """Joint states, one column per joint.

    Attributes:
        topic: name of the topic.
        names: joints, in the order of the columns.
        stamp: shape (n,), header stamp [s]; NaN throughout if no message was stamped.
        received: shape (n,), receive time [s].
        position: shape (n, k) [rad or m]; NaN where a message had no position.
        velocity: shape (n, k) [rad/s or m/s]; NaN where a message had no velocity.
        effort: shape (n, k) [N m or N]; NaN where a message had no effort.
        skipped: messages without the joints asked for.
        rejected: messages kept out: a stamp that decreases or is missing, a field of the wrong length.
    """

    topic: str
    names: tuple[str, ...]
    stamp: FloatArray
    received: FloatArray
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    skipped: int = 0
    rejected: int = 0


@dataclass(frozen=True, eq=False)
class TwistSeries(_ReadOnlyArrays):
    """Body velocities.

    Attributes:
        topic: name of the topic.
        stamp: shape (n,), header stamp [s]; None for an unstamped type, or if no message was stamped.
        received: shape (n,), receive time [s].
        twist: shape (n, 3), vx, vy [m/s], wz [rad/s].
        rejected: messages kept out because their stamp decreases or is missing.
    """

    topic: str
    stamp: FloatArray | None
    received: FloatArray
    twist: FloatArray
    rejected: int = 0


@dataclass(frozen=True, eq=False)
class PoseSeries(_ReadOnlyArrays):
    """Planar poses.

    Attributes:
        topic: name of the topic.
        frame: frame the poses are given in, from the first message.
        stamp: shape (n,), header stamp [s]; NaN throughout if no message was stamped.
        received: shape (n,), receive time [s].
        pose: shape (n, 3), x, y [m], yaw [rad] in (-pi, pi].
        twist: shape (n, 3), vx, vy [m/s], wz [rad/s] in the body frame (Odometry); None for other types.
        rejected: messages kept out: a stamp that decreases or is missing, a place or quaternion that is none.
    """

    topic: str
    frame: str
    stamp: FloatArray
    received: FloatArray
    pose: FloatArray
    twist: FloatArray | None = None
    rejected: int = 0


@dataclass(frozen=True, eq=False)
class TrajectoryMessage(_ReadOnlyArrays):
    """A planar trajectory as it was sent.

    Attributes:
        topic: name of the topic.
        frame: frame of the poses; the base's own frame means relative to the pose at the start.
        start: header stamp, the time the trajectory begins [s]; NaN if it was not set.
        received: receive time [s].
        time: shape (k,), from the start [s].
        pose: shape (k, 3), x, y [m], yaw [rad] in (-pi, pi].
    """

    topic: str
    frame: str
    start: float
    received: float
    time: FloatArray
    pose: FloatArray
