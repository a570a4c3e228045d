"""What was heard of a driver for some seconds, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector


@dataclass(frozen=True, eq=False)
class Times:
    """Times of n messages of one kind.

    Args:
        stamp: (n,) of their headers [s].
        received: (n,) by the clock of this machine [s]; that of the stamps where both are set.
        arrived: (n,) by the steady clock, which never jumps [s].
    """

    stamp: Vector
    received: Vector
    arrived: Vector

    @property
    def count(self) -> int:
        """How many messages."""
        return len(self.stamp)

    def rate(self) -> float:
        """Messages a second; 0 where fewer than two were heard."""
        lasted = float(self.arrived[-1] - self.arrived[0]) if self.count > 1 else 0.0
        return (self.count - 1) / lasted if lasted > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class JointsHeard:
    """n messages on k joints, in the driver's signs; NaN where a message says nothing.

    Args:
        joints: names, k.
        times: of the messages.
        position: (n, k) [rad].
        velocity: (n, k) [rad/s].
        effort: (n, k) [N m].
    """

    joints: tuple[str, ...]
    times: Times
    position: Vector
    velocity: Vector
    effort: Vector


@dataclass(frozen=True, eq=False)
class OdometryHeard:
    """n messages of the driver's own odometry.

    Args:
        times: of the messages.
        twist: (n, 3) in the body frame [m/s, m/s, rad/s].
    """

    times: Times
    twist: Vector


def joints_heard(
    joints: Sequence[str], rows: Sequence[tuple[float, float, float, Sequence[float], Sequence[float], Sequence[float]]]
) -> JointsHeard:
    """Joint messages from rows (stamp, received, arrived, position (k,), velocity (k,), effort (k,)) in SI units."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    fields = [np.array(column, dtype=float).reshape(len(rows), len(joints)) for column in columns[3:]]
    return JointsHeard(tuple(joints), Times(*(np.array(c, dtype=float) for c in columns[:3])), *fields)


def odometry_heard(rows: Sequence[tuple[float, float, float, Vector]]) -> OdometryHeard:
    """Odometry from rows (stamp, received, arrived, twist (3,)) in SI units."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    times = Times(*(np.array(column, dtype=float) for column in columns[:3]))
    return OdometryHeard(times, np.array(columns[3], dtype=float).reshape(len(rows), 3))
