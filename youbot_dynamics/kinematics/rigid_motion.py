"""Motion of a rigid body: the rate of its rotation matrix, and position, velocity, acceleration of its points.

`rotation` (3, 3) maps body to fixed coordinates. `arm` (3,) [m] is the vector, in the body frame, from a reference
point Q of the body to the point in question. Positions, velocities, omega [rad/s] and alpha [rad/s2], all (3,), are in
the fixed frame. All functions raise InputError for a wrong shape, NaN or infinity, and ModelError for a matrix that is
not a rotation.
Source: document 002 (A.6) to (A.11), systems 16, 17.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.kinematics.rotations import check_rotation, skew


def rotation_rate(rotation: ArrayLike, omega: ArrayLike) -> Vector:
    """Rate (3, 3) [1/s] of a rotation: skew(omega) R, omega in the fixed frame.

    Source: document 002 (A.6), system 16.
    """
    rate: Vector = skew(omega) @ check_rotation(rotation)
    return rate


def rotation_rate_from_body_omega(rotation: ArrayLike, omega: ArrayLike) -> Vector:
    """Rate (3, 3) [1/s] of a rotation: R skew(omega), omega in the body frame.

    Source: document 002 (A.7), system 16.
    """
    rate: Vector = check_rotation(rotation) @ skew(omega)
    return rate


def point_position(reference: ArrayLike, rotation: ArrayLike, arm: ArrayLike) -> Vector:
    """Position of a body's point (3,) [m]: p = p_Q + R arm.

    Source: document 002 eq. (A.8), (A.9), system 17.
    """
    position: Vector = array("reference", reference, (3,)) + _turned(rotation, arm)
    return position


def point_velocity(reference_velocity: ArrayLike, omega: ArrayLike, rotation: ArrayLike, arm: ArrayLike) -> Vector:
    """Velocity of a body's point (3,) [m/s]: v = v_Q + omega x R arm. Source: document 002 eq. (A.10), system 17."""
    velocity: Vector = array("reference_velocity", reference_velocity, (3,)) + skew(omega) @ _turned(rotation, arm)
    return velocity


def point_acceleration(
    reference_acceleration: ArrayLike, omega: ArrayLike, alpha: ArrayLike, rotation: ArrayLike, arm: ArrayLike
) -> Vector:
    """Acceleration of a body's point (3,) [m/s2]: a = a_Q + alpha x R arm + omega x (omega x R arm).

    Source: document 002 eq. (A.11), system 17.
    """
    along = _turned(rotation, arm)
    spin = skew(omega)
    acceleration: Vector = (
        array("reference_acceleration", reference_acceleration, (3,)) + skew(alpha) @ along + spin @ (spin @ along)
    )
    return acceleration


def _turned(rotation: ArrayLike, arm: ArrayLike) -> Vector:
    turned: Vector = check_rotation(rotation) @ array("arm", arm, (3,))
    return turned
