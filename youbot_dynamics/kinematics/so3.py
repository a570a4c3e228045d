"""Rotations as vectors and quaternions, SO(3): exponential and its Jacobian.

A rotation vector (3,) is axis x angle [rad]. Quaternions (4,) are x, y, z, w and map body to fixed coordinates. All
functions raise InputError for a wrong shape, NaN, infinity or a vector longer than 2^52 rad, where a double no longer
resolves the angle, and ModelError for a matrix that is not a rotation.
Source: document 002 (A.1) to (A.7), extended to finite turns; systems 15, 16.
"""

from __future__ import annotations

from math import copysign, hypot, sin, sqrt

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.rotations import check_rotation, skew

# Below this angle [rad] the quotients of the series lose digits; two terms are accurate to 1e-16 there.
_SMALL_ANGLE = 1e-4

# Angle [rad] beyond which a double no longer resolves the turn: neighbouring doubles are a radian apart.
_LOST_ANGLE = 2.0**52

# Below this angle [rad] half of it may underflow to 0; the second-order term is omitted.
_TINY_ANGLE = 1e-300


def exponential(rotation_vector: ArrayLike) -> Vector:
    """Rotation (3, 3) about a vector (3,) [rad] by its length: the matrix exponential of its `skew`.

    R = 1 + (sin a / a) S + ((1 - cos a) / a^2) S^2 with S = skew(rotation_vector), a its length (Rodrigues). A body
    that turns for dt with a constant angular velocity goes from R to exponential(omega_fixed dt) R = R
    exponential(omega_body dt).
    Source: document 002 eq. (A.6), system 16.
    """
    s, angle = _turn(rotation_vector)
    if angle < _TINY_ANGLE:
        return np.eye(3) + s
    half = sin(0.5 * angle) / (0.5 * angle)
    return np.eye(3) + (sin(angle) / angle) * s + (0.5 * half * half) * (s @ s)


def _turn(rotation_vector: ArrayLike) -> tuple[Vector, float]:
    """Matrix skew(v) (3, 3) and length [rad] of a rotation vector v (3,)."""
    v = array("rotation_vector", rotation_vector, (3,), float(np.finfo(float).max))
    angle = hypot(*v.tolist())
    if not angle <= _LOST_ANGLE:
        raise InputError(
            "rotation_vector",
            got=f"a turn of {angle:.6g} rad",
            expected="at most 2^52 rad",
            remedy="check its unit",
        )
    return skew(v), angle


def left_jacobian(rotation_vector: ArrayLike) -> Vector:
    """Jacobian J (3, 3): exponential(v + d) = exponential(J d) exponential(v) to first order in d; v (3,) [rad].

    J = 1 + ((1 - cos a)/a^2) S + ((a - sin a)/a^3) S^2. J also maps a constant velocity in a turning body frame to the
    displacement (`se3.exponential`).
    Source: system 16.
    """
    s, angle = _turn(rotation_vector)
    if angle < _SMALL_ANGLE:
        first, second = 0.5 - angle**2 / 24.0, 1.0 / 6.0 - angle**2 / 120.0
    else:
        half = sin(0.5 * angle) / (0.5 * angle)
        first, second = 0.5 * half * half, (1.0 - sin(angle) / angle) / angle**2
    return np.eye(3) + first * s + second * (s @ s)


def quaternion_to_matrix(quaternion: ArrayLike) -> Vector:
    """Rotation (3, 3) of a quaternion (4,) x, y, z, w of any length but zero.

    Raises:
        InputError: a zero quaternion, as in a ROS message whose orientation was never set.

    Source: system 15.
    """
    q = array("quaternion", quaternion, (4,), float(np.finfo(float).max))
    largest = float(np.max(np.abs(q)))
    if largest == 0.0:
        raise InputError(
            "quaternion", got="(0, 0, 0, 0)", expected="x, y, z, w of a rotation; (0, 0, 0, 1) is the identity"
        )
    q = q / largest
    x, y, z, w = (q / sqrt(float(q @ q))).tolist()
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
            [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
            [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )


def matrix_to_quaternion(rotation: ArrayLike) -> Vector:
    """Unit quaternion (4,) x, y, z, w of a rotation (3, 3); of the two, the one with w >= 0.

    The largest component is computed first and divides the others, which avoids loss of digits.
    Source: system 15.
    """
    r = check_rotation(rotation)
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = r.tolist()
    # Row k is 4 q_k times the quaternion.
    rows = np.array(
        [
            [1.0 + xx - yy - zz, xy + yx, xz + zx, zy - yz],
            [xy + yx, 1.0 - xx + yy - zz, yz + zy, xz - zx],
            [xz + zx, yz + zy, 1.0 - xx - yy + zz, yx - xy],
            [zy - yz, xz - zx, yx - xy, 1.0 + xx + yy + zz],
        ]
    )
    q = rows[int(np.argmax(np.diag(rows)))]
    quaternion: Vector = q * (copysign(1.0, q[3]) / sqrt(float(q @ q)))
    return quaternion
