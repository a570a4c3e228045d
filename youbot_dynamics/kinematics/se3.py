"""Rigid motion in space, SE(3): poses (4, 4) and spatial vectors (6,) ordered [linear; angular].

A pose [[R, p], [0, 1]] gives the body frame in another frame: the columns of R are the body's axes, p [m] is its
origin. All functions raise InputError for a wrong shape, NaN or infinity, and ModelError for an invalid rotation or
pose.

The rate of a rotation matrix, and position, velocity and acceleration of the points of a body: `rotation` (3, 3) maps
body to fixed coordinates. `arm` (3,) [m] is the vector, in the body frame, from a reference point Q of the body to the
point in question. Positions, velocities, omega [rad/s] and alpha [rad/s2], all (3,), are in the fixed frame.
Source: document 002 (A.4) to (A.11), which treats R and p separately; systems 14-17.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics import so3
from youbot_dynamics.kinematics.rotations import check_rotation, skew


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


def exponential(displacement: ArrayLike) -> Vector:
    """Pose (4, 4) reached by a constant body twist over unit time: the matrix exponential of [[skew(w), v], [0, 0]].

    This solves R' = R skew(w), p' = R v.

    Args:
        displacement: (6,) body twist x time, [v; w] in m and rad; InputError for a turn of more than 2^52 rad.

    Source: document 002 eq. (A.7), (A.10), systems 16, 17.
    """
    d = array("displacement", displacement, (6,), float(np.finfo(float).max))
    pose = np.eye(4)
    pose[:3, :3] = so3.exponential(d[3:])
    pose[:3, 3] = so3.left_jacobian(d[3:]) @ d[:3]
    return pose


def logarithm(pose: ArrayLike) -> Vector:
    """Body twist x time (6,) [v; w] whose `exponential` is the pose (4, 4), turn in [0, pi]. Source: systems 16, 17."""
    t = check_pose(pose)
    turn = so3.logarithm(t[:3, :3])
    return np.concatenate([so3.left_jacobian_inverse(turn) @ t[:3, 3], turn])


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
