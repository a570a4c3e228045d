"""Rotations and poses, as vectors and their rates; twists and wrenches between frames; the motion of a body's points.

A pose (4, 4) [[R, p], [0, 1]] gives the body frame in another frame: the columns of R are the body's axes, p [m] is its
origin. Spatial vectors (6,) are ordered [linear; angular]. All functions raise InputError for a wrong shape, NaN or
infinity, and ModelError for an invalid rotation or pose. `kinematics.so3` and `kinematics.se3` have the exponentials.

The rate of a rotation matrix, and position, velocity and acceleration of the points of a body: `rotation` (3, 3) maps
body to fixed coordinates. `arm` (3,) [m] is the vector, in the body frame, from a reference point Q of the body to the
point in question. Positions, velocities, omega [rad/s] and alpha [rad/s2], all (3,), are in the fixed frame.
Source: document 002 (A.1) to (A.11), which treats R and p separately; systems 14-17.
"""

from __future__ import annotations

from math import atan2, hypot, tan

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import so3
from youbot_dynamics.kinematics.rotations import check_rotation, skew

# Below this angle [rad] the quotient of the series loses digits; two terms are accurate to 1e-16 there.
_SMALL_ANGLE = 1e-4


def unskew(matrix: ArrayLike) -> Vector:
    """Vector (3,) whose `skew` is the matrix (3, 3).

    Raises:
        InputError: not antisymmetric to 1e-9 of its largest element.

    Source: system 14.
    """
    m = array("matrix", matrix, (3, 3))
    symmetric = float(np.max(np.abs(m + m.T)))
    if not symmetric <= 2e-9 * float(np.max(np.abs(m))):
        raise InputError("matrix", got=f"a symmetric part of {0.5 * symmetric:.3g}", expected="an antisymmetric matrix")
    return np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]) / 2.0


def rotation_logarithm(rotation: ArrayLike) -> Vector:
    """Rotation vector (3,) [rad] of a rotation (3, 3), length in [0, pi]: inverse of `so3.exponential`.

    It is computed from the quaternion and so stays accurate near 0 and near pi. At pi either sign of the axis is right.
    Source: system 16.
    """
    x, y, z, w = so3.matrix_to_quaternion(rotation).tolist()
    half_sine = hypot(x, y, z)
    scale = 2.0 if half_sine == 0.0 else 2.0 * atan2(half_sine, w) / half_sine
    return scale * np.array([x, y, z])


def left_jacobian_inverse(rotation_vector: ArrayLike) -> Vector:
    """Inverse (3, 3) of `so3.left_jacobian`: 1 - S/2 + ((1 - (a/2) cot(a/2))/a^2) S^2.

    Args:
        rotation_vector: (3,) [rad], of length at most pi as from `rotation_logarithm`, else InputError.

    Source: system 16.
    """
    v = array("rotation_vector", rotation_vector, (3,), float(np.finfo(float).max))
    s, angle = skew(v), hypot(*v.tolist())
    if angle > np.pi * (1.0 + 1e-9):
        raise InputError("rotation_vector", got=f"a turn of {angle:.6g} rad", expected="at most pi")
    if angle < _SMALL_ANGLE:
        second = 1.0 / 12.0 + angle**2 / 720.0
    else:
        second = (1.0 - 0.5 * angle / tan(0.5 * angle)) / angle**2
    return np.eye(3) - 0.5 * s + second * (s @ s)


def pose_of(rotation: ArrayLike, position: ArrayLike) -> Vector:
    """Pose (4, 4) of a frame with rotation (3, 3) and origin (3,) [m]. Source: document 002 eq. (A.8), system 17."""
    pose = np.eye(4)
    pose[:3, :3] = check_rotation(rotation)
    pose[:3, 3] = array("position", position, (3,))
    return pose


def check_pose(pose: ArrayLike) -> Vector:
    """Return a matrix (4, 4) as an array if it is a pose: a rotation, an origin, last row 0, 0, 0, 1.

    Source: system 15; D-002-1.
    """
    t = array("pose", pose, (4, 4))
    if t[3].tolist() != [0.0, 0.0, 0.0, 1.0]:
        raise ModelError("pose", got=f"a last row {t[3].tolist()}", expected="[0, 0, 0, 1]")
    check_rotation(t[:3, :3], "pose")
    return t


def inverse(pose: ArrayLike) -> Vector:
    """Inverse (4, 4) of a pose (4, 4): [[R', -R'p], [0, 1]]. Source: systems 15, 17."""
    t = check_pose(pose)
    back = np.eye(4)
    back[:3, :3] = t[:3, :3].T
    back[:3, 3] = -t[:3, :3].T @ t[:3, 3]
    return back


def logarithm(pose: ArrayLike) -> Vector:
    """Body twist x time (6,) [v; w] whose `se3.exponential` is the pose (4, 4), turn in [0, pi].

    Source: systems 16, 17.
    """
    t = check_pose(pose)
    turn = rotation_logarithm(t[:3, :3])
    return np.concatenate([left_jacobian_inverse(turn) @ t[:3, 3], turn])


def adjoint(pose: ArrayLike) -> Vector:
    """Matrix (6, 6) from a twist [v; w] in the body frame to the same twist in the other: [[R, skew(p) R], [0, R]].

    The pose (4, 4) is that of the body frame in the other. The transpose maps a wrench [force; moment] from the other
    frame to the body frame, so that the power is the same.
    Source: document 002 eq. (A.10), system 17.
    """
    t = check_pose(pose)
    result = np.zeros((6, 6))
    result[:3, :3] = result[3:, 3:] = t[:3, :3]
    result[:3, 3:] = skew(t[:3, 3]) @ t[:3, :3]
    return result


def bracket(twist: ArrayLike) -> Vector:
    """Matrix (6, 6) of the cross product of twists (6,): [[skew(w), skew(v)], [0, skew(w)]], the rate of `adjoint`.

    Source: document 002 (A.10), (A.11), systems 14, 17.
    """
    t = array("twist", twist, (6,))
    result = np.zeros((6, 6))
    result[:3, :3] = result[3:, 3:] = skew(t[3:])
    result[:3, 3:] = skew(t[:3])
    return result


def rotation_rate(rotation: ArrayLike, omega: ArrayLike) -> Vector:
    """Rate (3, 3) [1/s] of a rotation: skew(omega) R, omega in the fixed frame.

    Source: document 002 (A.6), system 16.
    """
    return skew(omega) @ check_rotation(rotation)


def rotation_rate_from_body_omega(rotation: ArrayLike, omega: ArrayLike) -> Vector:
    """Rate (3, 3) [1/s] of a rotation: R skew(omega), omega in the body frame.

    Source: document 002 (A.7), system 16.
    """
    return check_rotation(rotation) @ skew(omega)


def point_position(reference: ArrayLike, rotation: ArrayLike, arm: ArrayLike) -> Vector:
    """Position of a body's point (3,) [m]: p = p_Q + R arm.

    Source: document 002 eq. (A.8), (A.9), system 17.
    """
    return array("reference", reference, (3,)) + _turned(rotation, arm)


def point_velocity(reference_velocity: ArrayLike, omega: ArrayLike, rotation: ArrayLike, arm: ArrayLike) -> Vector:
    """Velocity of a body's point (3,) [m/s]: v = v_Q + omega x R arm. Source: document 002 eq. (A.10), system 17."""
    return array("reference_velocity", reference_velocity, (3,)) + skew(omega) @ _turned(rotation, arm)


def point_acceleration(
    reference_acceleration: ArrayLike, omega: ArrayLike, alpha: ArrayLike, rotation: ArrayLike, arm: ArrayLike
) -> Vector:
    """Acceleration of a body's point (3,) [m/s2]: a = a_Q + alpha x R arm + omega x (omega x R arm).

    Source: document 002 eq. (A.11), system 17.
    """
    along = _turned(rotation, arm)
    spin = skew(omega)
    return array("reference_acceleration", reference_acceleration, (3,)) + skew(alpha) @ along + spin @ (spin @ along)


def _turned(rotation: ArrayLike, arm: ArrayLike) -> Vector:
    return check_rotation(rotation) @ array("arm", arm, (3,))
