"""Rates of the Krylov angles (psi, theta, phi), intrinsic Z-X-Y, and angular velocity (system 41).

Seed 003 gives the angles without these. The maps have the determinant +-cos theta: at theta = +-pi/2 the turns psi and
phi share their axis, and an angular velocity off that plane has no rates at all.
"""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import array
from youbot_dynamics.errors import InputError

Vector = NDArray[np.float64]

# |cos theta| below which rates of Krylov angles, which grow as 1/cos theta, are refused.
_RATE_LOCK = 1e-6


def krylov_rates_to_body_omega(angles: ArrayLike, rates: ArrayLike) -> Vector:
    """Angular velocity in the body frame (3,) [rad/s] of Krylov angles that change.

    omega = [[-sin phi cos theta, cos phi, 0], [sin theta, 0, 1], [cos phi cos theta, sin phi, 0]] rates; the
    determinant is cos theta (system 41).

    Args:
        angles: (3,) psi, theta, phi [rad].
        rates: (3,) their rates [rad/s].

    Raises:
        InputError: wrong shape, or not finite.
    """
    _, theta, phi = array("angles", angles, (3,)).tolist()
    r1, r2, r3 = array("rates", rates, (3,)).tolist()
    about_z = cos(theta) * r1
    c, s = cos(phi), sin(phi)
    return np.array([c * r2 - s * about_z, sin(theta) * r1 + r3, s * r2 + c * about_z])


def body_omega_to_krylov_rates(angles: ArrayLike, omega: ArrayLike) -> Vector:
    """Rates (3,) [rad/s] of psi, theta, phi for an angular velocity in the body frame (system 41).

    Args:
        angles: (3,) psi, theta, phi [rad].
        omega: (3,) angular velocity, body frame [rad/s].

    Raises:
        InputError: wrong shape, not finite, or |cos theta| < 1e-6: at theta = +-pi/2 the rates are not defined.
    """
    _, theta, phi = array("angles", angles, (3,)).tolist()
    wx, wy, wz = array("omega", omega, (3,)).tolist()
    c, s = cos(phi), sin(phi)
    psi_rate = (c * wz - s * wx) / _away_from_lock(theta)
    return np.array([psi_rate, c * wx + s * wz, wy - sin(theta) * psi_rate])


def krylov_rates_to_fixed_omega(angles: ArrayLike, rates: ArrayLike) -> Vector:
    """Angular velocity in the fixed frame (3,) [rad/s] of Krylov angles that change (system 41).

    Args:
        angles: (3,) psi, theta, phi [rad].
        rates: (3,) their rates [rad/s].

    Raises:
        InputError: wrong shape, or not finite.
    """
    psi, theta, _ = array("angles", angles, (3,)).tolist()
    r1, r2, r3 = array("rates", rates, (3,)).tolist()
    about_y = cos(theta) * r3
    c, s = cos(psi), sin(psi)
    return np.array([c * r2 - s * about_y, s * r2 + c * about_y, r1 + sin(theta) * r3])


def fixed_omega_to_krylov_rates(angles: ArrayLike, omega: ArrayLike) -> Vector:
    """Rates (3,) [rad/s] of psi, theta, phi for an angular velocity in the fixed frame (system 41).

    Args:
        angles: (3,) psi, theta, phi [rad].
        omega: (3,) angular velocity, fixed frame [rad/s].

    Raises:
        InputError: wrong shape, not finite, or |cos theta| < 1e-6: at theta = +-pi/2 the rates are not defined.
    """
    psi, theta, _ = array("angles", angles, (3,)).tolist()
    wx, wy, wz = array("omega", omega, (3,)).tolist()
    c, s = cos(psi), sin(psi)
    phi_rate = (c * wy - s * wx) / _away_from_lock(theta)
    return np.array([wz - sin(theta) * phi_rate, c * wx + s * wy, phi_rate])


def _away_from_lock(theta: float) -> float:
    """Return cos theta, refused where it is as good as zero."""
    c = cos(theta)
    if abs(c) < _RATE_LOCK:
        raise InputError(
            "theta",
            got=f"{theta:.9g} rad: gimbal lock, where Krylov angles have no rates",
            expected=f"|cos theta| of at least {_RATE_LOCK:g}",
            remedy="integrate the matrix or a quaternion instead",
        )
    return c
