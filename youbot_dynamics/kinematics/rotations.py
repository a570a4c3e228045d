"""Rotation matrices (3, 3), which map body to fixed coordinates; Krylov's and Euler's angles: `source_systems.angles`.

All functions raise InputError for a wrong shape, NaN or infinity, and ModelError for a matrix that is not a rotation.
Source: documents 002 and 003, systems 14, 15, 40.
"""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, read_only, scalar
from youbot_dynamics.errors import ModelError

_IDENTITY = read_only(np.eye(3))


def skew(vector: ArrayLike) -> Vector:
    """Matrix (3, 3) of the cross product with a vector (3,): S b = a x b.

    Source: document 002 (A.1), (A.2), system 14.
    """
    x, y, z = array("vector", vector, (3,)).tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_x(angle: float, thing: str = "angle") -> Vector:
    """Rotation (3, 3) about x by an angle [rad], right-hand rule. Source: document 003 eq. (1), system 40."""
    return _about(0, thing, angle)


def rotation_y(angle: float, thing: str = "angle") -> Vector:
    """Rotation (3, 3) about y by an angle [rad], right-hand rule. Source: document 003 eq. (2), system 40."""
    return _about(1, thing, angle)


def rotation_z(angle: float, thing: str = "angle") -> Vector:
    """Rotation (3, 3) about z by an angle [rad], right-hand rule. Source: document 003 eq. (3), system 40."""
    return _about(2, thing, angle)


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


def rpy_to_matrix(roll: float, pitch: float, yaw: float) -> Vector:
    """Rotation R_z(yaw) R_y(pitch) R_x(roll) (3, 3), angles in rad: intrinsic Z-Y-X, fixed X-Y-Z, the rpy of a URDF."""
    return rotation_z(yaw, "yaw") @ rotation_y(pitch, "pitch") @ rotation_x(roll, "roll")


def _determinant(r: Vector) -> float:
    (a, b, c), (d, e, f), (g, h, i) = r.tolist()
    return float(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g))
