"""Rigid motion in the plane, SE(2): poses (x, y, yaw) [m, m, rad] and body twists (vx, vy, wz) [m/s, m/s, rad/s].

Every function that takes a pose, twist, displacement, path or angle raises InputError for a wrong shape, NaN or
infinity.
Source: document 003, systems 28 and 34; its Euler path is replaced by exact integration on SE(2).
"""

from __future__ import annotations

from math import atan2, cos, isfinite, nan, pi, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, finite_vector, positive_time, real, scalar

# Below this angle [rad] sin(a)/a and (1 - cos(a))/a lose digits; their series are accurate to 1e-16 there.
_SMALL_TURN = 1e-4


def wrap(angle: float) -> float:
    """Return the angle [rad] wrapped to (-pi, pi]."""
    wrapped = (scalar("angle", angle) + pi) % (2.0 * pi) - pi
    return pi if wrapped == -pi else wrapped


def arc_quotients(turn: float) -> tuple[float, float]:
    """Return sin(a)/a and (1 - cos(a))/a for a = turn [rad]."""
    if abs(turn) < _SMALL_TURN:
        return 1.0 - turn * turn / 6.0, turn / 2.0 - turn**3 / 24.0
    # 1 - cos(a) = 2 sin(a/2)^2 avoids cancellation.
    return sin(turn) / turn, 2.0 * sin(0.5 * turn) ** 2 / turn


def exponential(displacement: ArrayLike) -> Vector:
    """Pose reached by a constant body twist over unit time.

    x = dx s - dy c, y = dx c + dy s with s = sin(a)/a, c = (1 - cos(a))/a, a = turn. Document 003 approximates this arc
    by Euler steps.

    Args:
        displacement: (3,) body twist x time [m, m, rad].

    Returns:
        (3,) pose in the start frame [m, m, rad]; the yaw is not wrapped.

    Source: system 28.
    """
    dx, dy, turn = finite_vector("displacement", displacement, 3).tolist()
    s, c = arc_quotients(turn)
    return np.array([dx * s - dy * c, dx * c + dy * s, turn])


def logarithm(pose: ArrayLike) -> Vector:
    """Body displacement whose exponential is `pose`: the inverse of `exponential` for |yaw| <= pi.

    Args:
        pose: (3,) [m, m, rad]; the yaw is wrapped to (-pi, pi].

    Returns:
        (3,) body twist x time [m, m, rad].

    Source: system 28.
    """
    x, y, yaw = finite_vector("pose", pose, 3).tolist()
    turn = wrap(yaw)
    s, c = arc_quotients(turn)
    scale = s * s + c * c
    return np.array([(x * s + y * c) / scale, (y * s - x * c) / scale, turn])


def compose(pose_b_in_a: ArrayLike, pose_c_in_b: ArrayLike) -> Vector:
    """Pose of c in a. Arguments and result (3,) [m, m, rad]; the yaws add up without wrapping. Source: system 34."""
    xa, ya, yaw = finite_vector("pose_b_in_a", pose_b_in_a, 3).tolist()
    xb, yb, turn = finite_vector("pose_c_in_b", pose_c_in_b, 3).tolist()
    c, s = cos(yaw), sin(yaw)
    return np.array([xa + c * xb - s * yb, ya + s * xb + c * yb, yaw + turn])


def between(pose_b_in_a: ArrayLike, pose_c_in_a: ArrayLike) -> Vector:
    """Pose of c in b, from the poses of b and c in a. All (3,) [m, m, rad]; the yaw is wrapped. Source: system 34."""
    xb, yb, yaw_b = finite_vector("pose_b_in_a", pose_b_in_a, 3).tolist()
    xc, yc, yaw_c = finite_vector("pose_c_in_a", pose_c_in_a, 3).tolist()
    c, s = cos(yaw_b), sin(yaw_b)
    dx, dy = xc - xb, yc - yb
    return np.array([c * dx + s * dy, -s * dx + c * dy, wrap(yaw_c - yaw_b)])


def integrate(pose: ArrayLike, twist: ArrayLike, dt: float) -> Vector:
    """Pose after a constant body twist during `dt`; exact on SE(2).

    Document 003 uses explicit Euler steps, x(i) = x(i-1) + dt (Vx cos psi - Vy sin psi). They are of first order: the
    error after 10 s at dt = 0.05 s is 14-18 mm.

    Args:
        pose: (3,) start pose in a fixed frame [m, m, rad].
        twist: (3,) twist in the body frame [m/s, m/s, rad/s].
        dt: duration [s]; a negative one integrates backwards.

    Returns:
        (3,) pose in the fixed frame; the yaw is not wrapped.

    Example:
        >>> yd.integrate([0.0, 0.0, 0.0], [0.3, 0.0, 0.5], 2.0).round(3)
        array([0.505, 0.276, 1.   ])

    Source: system 28.
    """
    return compose(pose, exponential(finite_vector("twist", twist, 3) * scalar("dt", dt)))


def mean_twist(pose_start: ArrayLike, pose_end: ArrayLike, dt: float) -> Vector:
    """Constant body twist (3,) [m/s, m/s, rad/s] that leads from one pose to another in `dt` [s] > 0.

    Raises:
        InputError: a time that is not positive and finite.

    Source: system 28.
    """
    return logarithm(between(pose_start, pose_end)) / positive_time("dt", dt)


def move_path(pose: ArrayLike, path: ArrayLike) -> Vector:
    """Poses (n, 3) in the fixed frame, from poses (n, 3) in a frame that has the pose `pose` (3,) in the fixed frame.

    The yaws add up without wrapping.
    Source: system 34.
    """
    x, y, yaw = finite_vector("pose", pose, 3).tolist()
    poses = array("path", path, (None, 3))
    c, s = cos(yaw), sin(yaw)
    moved = np.empty_like(poses)
    moved[:, 0] = x + c * poses[:, 0] - s * poses[:, 1]
    moved[:, 1] = y + s * poses[:, 0] + c * poses[:, 1]
    moved[:, 2] = yaw + poses[:, 2]
    return moved


def turned(vectors: Vector, angle: Vector) -> Vector:
    """Vectors (m, 2) or (2,) turned by angles (m,) [rad]."""
    c, s = np.cos(angle), np.sin(angle)
    x, y = vectors[..., 0], vectors[..., 1]
    return np.column_stack([c * x - s * y, s * x + c * y])


def steps_of_path(path: ArrayLike) -> Vector:
    """Body displacements (n - 1, 3) from each pose of a path (n, 3) to the next, by `logarithm`. Source: system 28."""
    poses = array("path", path, (None, 3))
    step = np.diff(poses, axis=0)
    x, y = turned(step[:, :2], -poses[:-1, 2]).T
    turn = (step[:, 2] + pi) % (2.0 * pi) - pi
    small = np.abs(turn) < _SMALL_TURN
    safe = np.where(small, 1.0, turn)
    a = np.where(small, 1.0 - turn**2 / 6.0, np.sin(safe) / safe)
    b = np.where(small, turn / 2.0 - turn**3 / 24.0, (1.0 - np.cos(safe)) / safe)
    scale = a * a + b * b
    return np.column_stack([(x * a + y * b) / scale, (y * a - x * b) / scale, turn])


def rotation(yaw: float) -> Vector:
    """Matrix (2, 2) from body to fixed coordinates. Source: system 34; D-003-8."""
    c, s = cos(scalar("yaw", yaw)), sin(yaw)
    return np.array([[c, -s], [s, c]])


def yaw_of_quaternion(x: float, y: float, z: float, w: float) -> float:
    """Heading [rad] in (-pi, pi] of a quaternion (x, y, z, w) of any length; NaN for zero or what is not finite."""
    if x == y == z == w == 0.0:
        return nan
    sine, cosine = 2.0 * (w * z + x * y), w * w + x * x - y * y - z * z
    return atan2(sine, cosine) if isfinite(sine) and isfinite(cosine) else nan


def yaws_of_quaternions(quaternions: ArrayLike) -> Vector:
    """Headings (n,) [rad] of quaternions (n, 4), as `yaw_of_quaternion`.

    Raises:
        InputError: they are not made of real numbers, or have another shape.
    """
    table = real("quaternions", quaternions, (None, 4))
    x, y, z, w = table.T
    with np.errstate(over="ignore", invalid="ignore"):
        sine, cosine = 2.0 * (w * z + x * y), w * w + x * x - y * y - z * z
    known = np.isfinite(sine) & np.isfinite(cosine) & table.any(axis=1)
    return np.where(known, np.arctan2(sine, cosine), nan)


# Variance of what a planar base does not do, in the diagonal: z, roll, pitch.
_PLANAR_COVARIANCE = 1e-6 * np.eye(6).ravel()
_PLANAR_PLACES = np.array([6 * row + column for row in (0, 1, 5) for column in (0, 1, 5)])


def covariance_in_space(covariance: Vector) -> Vector:
    """Covariance (36,) of x, y, z, roll, pitch, yaw, by rows, from that of x, y, yaw (3, 3)."""
    full = _PLANAR_COVARIANCE.copy()
    full[_PLANAR_PLACES] = covariance.ravel()
    return full
