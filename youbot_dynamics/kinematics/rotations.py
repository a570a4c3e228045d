"""Rotation matrices and sets of angles. A rotation matrix (3, 3) maps body to fixed coordinates.

There are three sets of angles, named by their intrinsic order: Krylov (Z-X-Y), roll-pitch-yaw (Z-Y-X, the rpy of a
URDF) and Euler's Z-Y-Z. In gimbal lock the first and the third axis coincide and only the sum or difference of their
angles is defined. The last angle is then 0 and the first takes the whole value, so the angles still give the matrix.
scipy's `Rotation` does this already within 1e-7 rad of the lock, where the inverse loses digits.

The maps between the rates of Krylov angles and the angular velocity have the determinant +-cos theta. At
theta = +-pi/2 no rates give an angular velocity off the plane of the axes. Document 003 does not give these maps.

All functions raise InputError for a wrong shape, NaN or infinity, and ModelError for a matrix that is not a rotation.
Source: documents 002 and 003, systems 14-16, 39-41.
"""

from __future__ import annotations

from math import atan2, cos, hypot, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, read_only, scalar
from youbot_dynamics.errors import InputError, ModelError

_IDENTITY = read_only(np.eye(3))

# Sine of the angle between the first and the third axis below which the axes count as equal.
_LOCK = 1e-12


def skew(vector: ArrayLike) -> Vector:
    """Matrix (3, 3) of the cross product with a vector (3,): S b = a x b.

    Source: document 002 (A.1), (A.2), system 14.
    """
    x, y, z = array("vector", vector, (3,)).tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


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


def rotation_x(angle: float) -> Vector:
    """Rotation (3, 3) about x by an angle [rad], right-hand rule. Source: document 003 eq. (1), system 40."""
    return _about(0, "angle", angle)


def rotation_y(angle: float) -> Vector:
    """Rotation (3, 3) about y by an angle [rad], right-hand rule. Source: document 003 eq. (2), system 40."""
    return _about(1, "angle", angle)


def rotation_z(angle: float) -> Vector:
    """Rotation (3, 3) about z by an angle [rad], right-hand rule. Source: document 003 eq. (3), system 40."""
    return _about(2, "angle", angle)


def _about(axis: int, thing: str, angle: float) -> Vector:
    value, turned = scalar(thing, angle), np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turned[i, i] = turned[j, j] = cos(value)
    turned[j, i] = sin(value)
    turned[i, j] = -turned[j, i]
    return turned


def check_rotation(rotation: ArrayLike, thing: str = "rotation", tolerance: float = 1e-6) -> Vector:
    """Return a matrix (3, 3) as an array if it is a rotation: R'R = 1 and det R = +1.

    The determinant between two right-handed frames is +1; -1 is a reflection, which no rigid body can perform.

    Args:
        rotation: (3, 3).
        thing: name of the matrix in the message.
        tolerance: largest accepted |R'R - 1| of an element.

    Raises:
        ModelError: not orthogonal, or left-handed (det = -1).

    Source: document 002, system 15; D-002-1.
    """
    r = array(thing, rotation, (3, 3))
    defect = float(np.abs(r.T @ r - _IDENTITY).max())
    if not defect <= tolerance:
        raise ModelError(
            thing,
            got=f"a matrix that is not orthogonal: R'R differs from 1 by {defect:.3g}",
            expected=f"a rotation, to {tolerance:g}",
            remedy="nearest_rotation() corrects rounded matrices",
        )
    if not _determinant(r) >= 0.0:
        raise ModelError(
            thing,
            got="a left-handed frame (det = -1): a reflection",
            expected="a rotation between right-handed frames, det = +1",
            remedy="reverse the sign of one column",
        )
    return r


def nearest_rotation(matrix: ArrayLike) -> Vector:
    """Rotation (3, 3) closest to a matrix (3, 3) in least squares: U diag(1, 1, det UV') V' of its SVD.

    Raises:
        ModelError: the determinant is not positive: the matrix is singular or left-handed.

    Source: D-002-1.
    """
    m = array("matrix", matrix, (3, 3))
    u, stretch, vt = np.linalg.svd(m)
    if not (stretch[2] > 1e-9 * stretch[0] and _determinant(m) >= 0.0):
        raise ModelError("matrix", got=f"a determinant of {_determinant(m):.3g}", expected="a positive one, near 1")
    nearest: Vector = u @ vt
    return nearest


def krylov_to_matrix(psi: float, theta: float, phi: float) -> Vector:
    """Rotation R = R_z(psi) R_x(theta) R_y(phi) (3, 3): turns [rad] about z, then the new x, then the newest y.

    Element (2, 1) is sin psi cos phi + cos psi sin theta sin phi; document 003 eq. (3.13) prints a wrong sign. Its
    eq. (3.4) lacks sines and cosines, (3.8) a transpose, and (3.10), (3.11), (3.13) give the factors in a wrong order.
    Document 003 treats a ship with y up, so its psi is trim and phi yaw. Here z is up and psi is the heading.
    Source: document 003 eq. (3.13), system 41; D-003-15, D-003-16.
    """
    return _about(2, "psi", psi) @ _about(0, "theta", theta) @ _about(1, "phi", phi)


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


def rpy_to_matrix(roll: float, pitch: float, yaw: float) -> Vector:
    """Rotation R_z(yaw) R_y(pitch) R_x(roll) (3, 3), angles in rad: intrinsic Z-Y-X, fixed X-Y-Z, the rpy of a URDF."""
    return _about(2, "yaw", yaw) @ _about(1, "pitch", pitch) @ _about(0, "roll", roll)


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
    return _about(2, "phi", phi) @ _about(1, "theta", theta) @ _about(2, "psi", psi)


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


def _determinant(r: Vector) -> float:
    (a, b, c), (d, e, f), (g, h, i) = r.tolist()
    return float(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g))


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
