"""How a rigid body moves: the rate of its rotation matrix and the motion of its points (systems 16, 17)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.kinematics.rotations import check_rotation, skew


def rotation_rate(rotation: ArrayLike, omega: ArrayLike) -> Vector:
    """Rate (3, 3) [1/s] of a rotation: skew(omega) R, omega in the fixed frame (seed 002 eq. (A.6), (A.7); system 16).

    Args:
        rotation: (3, 3) body to fixed.
        omega: (3,) angular velocity, fixed frame [rad/s].

    Raises:
        InputError: wrong shape, or not finite.
        ModelError: not a rotation.
    """
    rate: Vector = skew(omega) @ check_rotation(rotation)
    return rate


def rotation_rate_from_body_omega(rotation: ArrayLike, omega: ArrayLike) -> Vector:
    """Rate (3, 3) [1/s] of a rotation: R skew(omega), omega in the body frame (seed 002 eq. (A.7); system 16).

    Args:
        rotation: (3, 3) body to fixed.
        omega: (3,) angular velocity, body frame [rad/s].

    Raises:
        InputError: wrong shape, or not finite.
        ModelError: not a rotation.
    """
    rate: Vector = check_rotation(rotation) @ skew(omega)
    return rate


def point_position(reference: ArrayLike, rotation: ArrayLike, arm: ArrayLike) -> Vector:
    """Position of a body's point (3,) [m]: p = p_Q + R arm (seed 002 eq. (A.8), (A.9); system 17).

    Args:
        reference: (3,) position of a reference point Q of the body, fixed frame [m].
        rotation: (3, 3) body to fixed.
        arm: (3,) from Q to the point, body frame [m]; for Q the body's origin this is the point's place in the body.

    Raises:
        InputError: wrong shape, or not finite.
        ModelError: not a rotation.
    """
    position: Vector = array("reference", reference, (3,)) + _turned(rotation, arm)
    return position


def point_velocity(reference_velocity: ArrayLike, omega: ArrayLike, rotation: ArrayLike, arm: ArrayLike) -> Vector:
    """Velocity of a body's point (3,) [m/s]: v = v_Q + omega x R arm (seed 002 eq. (A.10); system 17).

    Args:
        reference_velocity: (3,) velocity of a reference point Q of the body, fixed frame [m/s].
        omega: (3,) angular velocity, fixed frame [rad/s].
        rotation: (3, 3) body to fixed.
        arm: (3,) from Q to the point, body frame [m].

    Raises:
        InputError: wrong shape, or not finite.
        ModelError: not a rotation.
    """
    velocity: Vector = array("reference_velocity", reference_velocity, (3,)) + skew(omega) @ _turned(rotation, arm)
    return velocity


def point_acceleration(
    reference_acceleration: ArrayLike, omega: ArrayLike, alpha: ArrayLike, rotation: ArrayLike, arm: ArrayLike
) -> Vector:
    """Acceleration of a body's point (3,) [m/s^2]: a = a_Q + alpha x R arm + omega x (omega x R arm).

    Seed 002 eq. (A.11); system 17.

    Args:
        reference_acceleration: (3,) acceleration of a reference point Q of the body, fixed frame [m/s^2].
        omega: (3,) angular velocity, fixed frame [rad/s].
        alpha: (3,) angular acceleration, fixed frame [rad/s^2].
        rotation: (3, 3) body to fixed.
        arm: (3,) from Q to the point, body frame [m].

    Raises:
        InputError: wrong shape, or not finite.
        ModelError: not a rotation.
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
