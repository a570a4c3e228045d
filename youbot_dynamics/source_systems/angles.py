"""Sets of three angles of a rotation: Krylov's, roll-pitch-yaw and Euler's, and the rates of Krylov's angles.

The sets are named by their intrinsic order: Krylov (Z-X-Y), roll-pitch-yaw (Z-Y-X, the rpy of a URDF, see
`kinematics.rotations.rpy_to_matrix`) and Euler's Z-Y-Z. In gimbal lock the first and the third axis coincide and only
the sum or difference of their angles is defined. The last angle is then 0 and the first takes the whole value, so the
angles still give the matrix. scipy's `Rotation` does this already within 1e-7 rad of the lock, where the inverse loses
digits.

The maps between the rates of Krylov angles and the angular velocity have the determinant +-cos theta. At
theta = +-pi/2 no rates give an angular velocity off the plane of the axes. Document 003 does not give these maps.

All functions raise InputError for a wrong shape, NaN or infinity, and ModelError for a matrix that is not a rotation.
Source: document 003, systems 39, 41.
"""

from __future__ import annotations

from math import atan2, cos, hypot, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.rotations import check_rotation, rotation_x, rotation_y, rotation_z

# Sine of the angle between the first and the third axis below which the axes count as equal.
_LOCK = 1e-12


def krylov_to_matrix(psi: float, theta: float, phi: float) -> Vector:
    """Rotation R = R_z(psi) R_x(theta) R_y(phi) (3, 3): turns [rad] about z, then the new x, then the newest y.

    Element (2, 1) is sin psi cos phi + cos psi sin theta sin phi; document 003 eq. (3.13) prints a wrong sign. Its
    eq. (3.4) lacks sines and cosines, (3.8) a transpose, and (3.10), (3.11), (3.13) give the factors in a wrong order.
    Document 003 treats a ship with y up, so its psi is trim and phi yaw. Here z is up and psi is the heading.
    Source: document 003 eq. (3.13), system 41; D-003-15, D-003-16.
    """
    return rotation_z(psi, "psi") @ rotation_x(theta, "theta") @ rotation_y(phi, "phi")


def matrix_to_krylov(rotation: ArrayLike) -> tuple[float, float, float]:
    """Krylov angles (psi, theta, phi) [rad] of a rotation (3, 3): the inverse of `krylov_to_matrix`.

    psi and phi lie in (-pi, pi], theta in [-pi/2, pi/2]. At theta = +-pi/2, phi is 0 and psi is the sum (at -pi/2 the
    difference) of the two. All angles use atan2; the arctan of document 003 loses the quadrant.
    Source: system 41; D-003-16.
    """
    return _angles_about_three_axes(rotation, 2, 0, 1)


def _angles_about_three_axes(rotation: ArrayLike, i: int, j: int, k: int) -> tuple[float, float, float]:
    """Angles (a, b, c) [rad] of a rotation R_i(a) R_j(b) R_k(c) (3, 3) about three different axes of 0, 1, 2."""
    r = check_rotation(rotation).tolist()
    parity = 1.0 if (i + 1) % 3 == j else -1.0
    middle = hypot(r[j][k], r[k][k])
    second = atan2(parity * r[i][k], middle)
    if middle < _LOCK:
        return atan2(parity * r[k][j], r[j][j]), second, 0.0
    first = atan2(-parity * r[j][k], r[k][k])
    # The last angle comes from the matrix with the first removed, not from row i: near the lock it must match an
    # inexact first angle.
    c, s = cos(first), parity * sin(first)
    return first, second, atan2(parity * c * r[j][i] + parity * s * r[k][i], c * r[j][j] + s * r[k][j])


def matrix_to_rpy(rotation: ArrayLike) -> tuple[float, float, float]:
    """Angles (roll, pitch, yaw) [rad] of a rotation (3, 3): the inverse of `rpy_to_matrix`.

    roll and yaw lie in (-pi, pi], pitch in [-pi/2, pi/2]. At pitch = +-pi/2, roll is 0 and yaw takes the whole turn.
    """
    yaw, pitch, roll = _angles_about_three_axes(rotation, 2, 1, 0)
    return roll, pitch, yaw


def zyz_to_matrix(phi: float, theta: float, psi: float) -> Vector:
    """Rotation R_z(phi) R_y(theta) R_z(psi) (3, 3), Euler's angles [rad], intrinsic Z-Y-Z.

    Document 003 calls this product R_z R_y R_x and prints cos phi sin psi for sin phi sin psi in element (1, 1).
    Source: document 003 eq. (P1.20), system 39; D-003-14.
    """
    return rotation_z(phi, "phi") @ rotation_y(theta, "theta") @ rotation_z(psi, "psi")


def matrix_to_zyz(rotation: ArrayLike) -> tuple[float, float, float]:
    """Angles (phi, theta, psi) [rad] of a rotation (3, 3): the inverse of `zyz_to_matrix`.

    phi and psi lie in (-pi, pi], theta in [0, pi]. At theta = 0 or pi, psi is 0 and phi takes the whole turn.
    Source: system 39.
    """
    r = check_rotation(rotation).tolist()
    middle = hypot(r[0][2], r[1][2])
    theta = atan2(middle, r[2][2])
    if middle < _LOCK:
        return atan2(-r[0][1], r[1][1]), theta, 0.0
    phi = atan2(r[1][2], r[0][2])
    c, s = cos(phi), sin(phi)
    return phi, theta, atan2(c * r[1][0] - s * r[0][0], c * r[1][1] - s * r[0][1])


# |cos theta| below which rates of Krylov angles are refused; they grow as 1/cos theta.
_RATE_LOCK = 1e-6


def krylov_rates_to_body_omega(angles: ArrayLike, rates: ArrayLike) -> Vector:
    """Angular velocity in the body frame (3,) [rad/s] of Krylov angles (3,) [rad] with rates (3,) [rad/s].

    omega = [[-sin phi cos theta, cos phi, 0], [sin theta, 0, 1], [cos phi cos theta, sin phi, 0]] rates. The
    determinant is cos theta.
    Source: system 41.
    """
    _, theta, phi = array("angles", angles, (3,)).tolist()
    r1, r2, r3 = array("rates", rates, (3,)).tolist()
    about_z = cos(theta) * r1
    c, s = cos(phi), sin(phi)
    return np.array([c * r2 - s * about_z, sin(theta) * r1 + r3, s * r2 + c * about_z])


def body_omega_to_krylov_rates(angles: ArrayLike, omega: ArrayLike) -> Vector:
    """Rates (3,) [rad/s] of Krylov angles (3,) [rad] for an angular velocity (3,) in the body frame.

    Raises:
        InputError: |cos theta| < 1e-6: at theta = +-pi/2 the rates are not defined.

    Source: system 41.
    """
    _, theta, phi = array("angles", angles, (3,)).tolist()
    wx, wy, wz = array("omega", omega, (3,)).tolist()
    c, s = cos(phi), sin(phi)
    psi_rate = (c * wz - s * wx) / _away_from_lock(theta)
    return np.array([psi_rate, c * wx + s * wz, wy - sin(theta) * psi_rate])


def krylov_rates_to_fixed_omega(angles: ArrayLike, rates: ArrayLike) -> Vector:
    """Fixed-frame angular velocity (3,) [rad/s] of Krylov angles (3,) [rad] with rates (3,) [rad/s].

    Source: system 41.
    """
    psi, theta, _ = array("angles", angles, (3,)).tolist()
    r1, r2, r3 = array("rates", rates, (3,)).tolist()
    about_y = cos(theta) * r3
    c, s = cos(psi), sin(psi)
    return np.array([c * r2 - s * about_y, s * r2 + c * about_y, r1 + sin(theta) * r3])


def fixed_omega_to_krylov_rates(angles: ArrayLike, omega: ArrayLike) -> Vector:
    """Rates (3,) [rad/s] of Krylov angles (3,) [rad] for an angular velocity (3,) in the fixed frame.

    Raises:
        InputError: |cos theta| < 1e-6: at theta = +-pi/2 the rates are not defined.

    Source: system 41.
    """
    psi, theta, _ = array("angles", angles, (3,)).tolist()
    wx, wy, wz = array("omega", omega, (3,)).tolist()
    c, s = cos(psi), sin(psi)
    phi_rate = (c * wy - s * wx) / _away_from_lock(theta)
    return np.array([wz - sin(theta) * phi_rate, c * wx + s * wy, phi_rate])


def _away_from_lock(theta: float) -> float:
    """Return cos theta; refuse it near zero."""
    c = cos(theta)
    if abs(c) < _RATE_LOCK:
        raise InputError(
            "theta",
            got=f"{theta:.9g} rad: gimbal lock, where Krylov angles have no rates",
            expected=f"|cos theta| of at least {_RATE_LOCK:g}",
            remedy="integrate the matrix or a quaternion instead",
        )
    return c
