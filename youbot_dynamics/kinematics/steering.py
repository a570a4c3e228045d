"""A wheel that is driven and steered: what it rolls by its readings, and how to turn it for a wished motion.

Readings and commands have two columns, the angle of the wheel about its axle q and that of its steering a. What the
wheel rolls has two, too, along and across the direction at a = 0: dq cos(a), dq sin(a). In these a base is linear
(`MecanumBase.tricycle`).

Source: Campion, Bastin and d'Andrea-Novel 1996, type (1, 1); Muir and Neuman 1987; document 004.
"""

from __future__ import annotations

from math import atan2, cos, hypot, isfinite, nan, pi, remainder, sin, tan

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, real

_STILL = 1e-9  # [rad/s] of a wheel that need not be turned
_ROUNDING = 1e-3  # [rad] of a limit: 1.57 is a quarter turn


def rolling(speeds: ArrayLike, readings: ArrayLike) -> Vector:
    """Speeds (m, 2) or (2,) [rad/s] along and across, of as many speeds of the joints and readings [rad]."""
    angle = np.asarray(readings, dtype=float)[..., 1:]
    directions: Vector = np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)
    return np.asarray(speeds, dtype=float)[..., :1] * directions


def rolled(readings: ArrayLike) -> Vector:
    """Angles (m, 2) [rad] that the wheel rolled along and across, from 0 at the first of its readings (m, 2) [rad].

    Between two readings their mean steering angle counts; it may be wrapped. A reading that is not finite is NaN.

    Raises:
        InputError: another shape.
    """
    table = real("readings of a steered wheel", readings, (None, 2))
    sound = np.all(np.isfinite(table), axis=1)
    angle, steps = np.unwrap(table[sound, 1]), np.diff(table[sound, 0])
    middles = np.zeros((len(steps), 2))
    middles[:, 1] = 0.5 * (angle[1:] + angle[:-1])
    ways = np.cumsum(rolling(steps[:, None], middles), axis=0)
    out = np.full(table.shape, np.nan)
    out[sound] = np.vstack([np.zeros((1, 2)), ways])[: len(angle)]
    return out


def joint_commands(rolling_speeds: ArrayLike, angle: float | None) -> tuple[Vector, Vector]:
    """Positions (2,) [rad] and speeds (2,) [rad/s] of the joints, for speeds (2,) along and across at a steering angle.

    The position of the wheel and the speed of the steering are 0 and mean nothing; NaN keeps the steering where it is.
    """
    along, across = np.asarray(rolling_speeds, dtype=float).tolist()
    speed = hypot(along, across) if angle is None else along * cos(angle) + across * sin(angle)
    return np.array([0.0, nan if angle is None else angle]), np.array([speed, 0.0])


def joint_orders(rolling_speeds: ArrayLike, limit: float) -> Vector:
    """Speeds [rad/s] and steering angles [rad], (m, 2), of a wheel that is told speeds (m, 2) along and across.

    The steering turns up to the `limit` [rad] to either side: up to a quarter turn, only one angle fits each speed.
    """
    orders, angle = [], 0.0
    for wished in np.asarray(rolling_speeds, dtype=float):
        speed, angle = steered(wished, angle, limit) if np.all(np.isfinite(wished)) else (nan, angle)
        orders.append((speed, angle))
    return np.array(orders).reshape(-1, 2)


class JointMotion:
    """Angle of the wheel [rad] and that of its steering, added up over time [rad s], reading by reading.

    As a twist moves a base, a commanded speed and steering angle move these two: their delays are those of the joints.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._sum = 0.0

    def take(self, time: float, readings: Vector) -> Vector:
        """Motion (2,) after readings (2,) [rad] at a time [s]; NaN for readings that are not finite.

        The steering angle may be wrapped; the first is taken within half a turn of 0.
        """
        angle, steering = readings.tolist()
        if not isfinite(angle + steering):
            return np.full(2, nan)
        before = 0.0 if self._last is None else self._last[1]
        steering = before + remainder(steering - before, 2.0 * pi)
        if self._last is not None:
            self._sum += 0.5 * (steering + self._last[1]) * (time - self._last[0])
        self._last = time, steering
        return np.array([angle, self._sum])


class RolledAngles:
    """Angles that wheels rolled, reading by reading: those of `rolled`, or of wheels that do not steer the readings."""

    def __init__(self, steered: bool) -> None:
        self._steered = steered
        self._last: Vector | None = None
        self._sum: Vector = np.zeros(2)

    def take(self, readings: Vector) -> Vector:
        """Angles (n,) [rad] after readings (n,) [rad]; NaN for readings that are not finite."""
        if not self._steered:
            return readings
        if not np.all(np.isfinite(readings)):
            return np.full(2, np.nan)
        if self._last is not None:
            self._sum = self._sum + rolled([self._last, readings])[1]
        self._last = readings
        return self._sum


def within_steering(wished: ArrayLike, limit: float) -> Vector:
    """Speeds (2,) [rad/s] along and across, those across cut where the steering reaches its limit [rad]."""
    along, across = np.asarray(wished, dtype=float).tolist()
    if limit < 0.5 * pi - _ROUNDING:
        most = abs(along) * tan(limit)
        across = min(max(across, -most), most)
    return np.array([along, across])


def steered(wished: ArrayLike, before: float, limit: float, reach: float = 2.0 * pi) -> tuple[float, float]:
    """Speed [rad/s] and steering angle [rad] of a wheel for speeds (2,) [rad/s] along and across.

    Of the two angles that fit, forward and backward, that nearest to the angle `before` [rad] is taken, forward if both
    are; the angle moves at most by `reach` [rad] towards it. The speed falls with the squared cosine of what is left,
    so that the base hardly drives another way meanwhile, and is 0 from a quarter turn on. A wheel at rest keeps its
    angle.
    """
    along, across = within_steering(wished, limit).tolist()
    if hypot(along, across) < _STILL:
        return 0.0, before
    direct = atan2(across, along)
    ways = (1.0, direct), (-1.0, direct - pi), (-1.0, direct + pi)
    fitting = [(way, min(max(angle, -limit), limit)) for way, angle in ways if abs(angle) <= limit + _ROUNDING]
    way, wanted = min(fitting, key=lambda one: round(abs(one[1] - before), 6))
    angle = before + min(max(wanted - before, -reach), reach)
    return way * hypot(along, across) * max(cos(wanted - angle), 0.0) ** 2, angle
