"""Spatial algebra on scalars and small arrays, and the solution of small symmetric systems.

Spatial vectors are [linear; angular]. The functions take numbers or any objects that add and multiply, so the same
recursions run compiled and can be traced into straight-line code.
"""

from __future__ import annotations

from typing import Any

from youbot_dynamics.compiled import compiled

Scalars = tuple[Any, Any, Any]


@compiled
def cross(ax: Any, ay: Any, az: Any, bx: Any, by: Any, bz: Any) -> Scalars:
    """Cross product a x b of two vectors given by components. Source: document 002 (A.1)."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@compiled
def rotate(rotations: Any, i: int, x: Any, y: Any, z: Any) -> Scalars:
    """Components in the parent's frame of a vector given in frame i; rotations (n, 3, 3). Source: system 15."""
    return (
        rotations[i, 0, 0] * x + rotations[i, 0, 1] * y + rotations[i, 0, 2] * z,
        rotations[i, 1, 0] * x + rotations[i, 1, 1] * y + rotations[i, 1, 2] * z,
        rotations[i, 2, 0] * x + rotations[i, 2, 1] * y + rotations[i, 2, 2] * z,
    )


@compiled
def rotate_back(rotations: Any, i: int, x: Any, y: Any, z: Any) -> Scalars:
    """Components in frame i of a vector given in the parent's frame; rotations (n, 3, 3). Source: system 15."""
    return (
        rotations[i, 0, 0] * x + rotations[i, 1, 0] * y + rotations[i, 2, 0] * z,
        rotations[i, 0, 1] * x + rotations[i, 1, 1] * y + rotations[i, 2, 1] * z,
        rotations[i, 0, 2] * x + rotations[i, 1, 2] * y + rotations[i, 2, 2] * z,
    )


@compiled
def motion_to_child(rotations: Any, positions: Any, i: int, motions: Any, parent: int, out: Any) -> None:
    """Write to out[i] the motion (6,) motions[parent] transformed to frame i: R'(v + w x p), R' w.

    rotations (n, 3, 3) and positions (n, 3) are the pose of frame i in its parent; motions and out are (n, 6).
    Source: system 17.
    """
    wx, wy, wz = motions[parent, 3], motions[parent, 4], motions[parent, 5]
    sx, sy, sz = cross(wx, wy, wz, positions[i, 0], positions[i, 1], positions[i, 2])
    out[i, 0], out[i, 1], out[i, 2] = rotate_back(
        rotations, i, motions[parent, 0] + sx, motions[parent, 1] + sy, motions[parent, 2] + sz
    )
    out[i, 3], out[i, 4], out[i, 5] = rotate_back(rotations, i, wx, wy, wz)


@compiled
def add_force_to_parent(rotations: Any, positions: Any, i: int, forces: Any, parent: int) -> None:
    """Add to forces[parent] (6,) the wrench forces[i] transformed to the parent's frame: R f, R m + p x R f.

    rotations (n, 3, 3) and positions (n, 3) are the pose of frame i in its parent; forces is (n, 6).
    Source: document 002 lemma A.1; D-002-5.
    """
    fx, fy, fz = rotate(rotations, i, forces[i, 0], forces[i, 1], forces[i, 2])
    mx, my, mz = rotate(rotations, i, forces[i, 3], forces[i, 4], forces[i, 5])
    sx, sy, sz = cross(positions[i, 0], positions[i, 1], positions[i, 2], fx, fy, fz)
    forces[parent, 0] += fx
    forces[parent, 1] += fy
    forces[parent, 2] += fz
    forces[parent, 3] += mx + sx
    forces[parent, 4] += my + sy
    forces[parent, 5] += mz + sz


@compiled
def momentum_of(masses: Any, first_moments: Any, inertias: Any, i: int, motions: Any, row: int) -> Any:
    """Product of inertia i and motions[row]: [m v + w x h; h x v + I w], as six scalars.

    masses (n,), first_moments (n, 3) h = m times centre, inertias (n, 3, 3) about the frame's origin, motions (n, 6).
    Source: systems 18, 20.
    """
    vx, vy, vz = motions[row, 0], motions[row, 1], motions[row, 2]
    wx, wy, wz = motions[row, 3], motions[row, 4], motions[row, 5]
    hx, hy, hz = first_moments[i, 0], first_moments[i, 1], first_moments[i, 2]
    ax, ay, az = cross(wx, wy, wz, hx, hy, hz)
    bx, by, bz = cross(hx, hy, hz, vx, vy, vz)
    cx, cy, cz = rotate(inertias, i, wx, wy, wz)
    return masses[i] * vx + ax, masses[i] * vy + ay, masses[i] * vz + az, bx + cx, by + cy, bz + cz


@compiled
def add_motion_cross(v: Any, m: Any, out: Any) -> None:
    """Add to out (6,) the motion product v x m = [w x m_lin + v_lin x m_ang; w x m_ang] of motions v, m (6,).

    It is the rate of a motion fixed in a body that moves with v.
    Source: Featherstone 2008; system 17.
    """
    ax, ay, az = cross(v[3], v[4], v[5], m[0], m[1], m[2])
    bx, by, bz = cross(v[0], v[1], v[2], m[3], m[4], m[5])
    cx, cy, cz = cross(v[3], v[4], v[5], m[3], m[4], m[5])
    out[0] += ax + bx
    out[1] += ay + by
    out[2] += az + bz
    out[3] += cx
    out[4] += cy
    out[5] += cz


@compiled
def add_force_cross(v: Any, f: Any, out: Any) -> None:
    """Add to out (6,) the force product v x* f = [w x f_lin; w x f_ang + v_lin x f_lin] of motion v, force f (6,).

    It is the rate of a wrench fixed in a body that moves with v.
    Source: Featherstone 2008; system 20.
    """
    ax, ay, az = cross(v[3], v[4], v[5], f[0], f[1], f[2])
    bx, by, bz = cross(v[3], v[4], v[5], f[3], f[4], f[5])
    cx, cy, cz = cross(v[0], v[1], v[2], f[0], f[1], f[2])
    out[0] += ax
    out[1] += ay
    out[2] += az
    out[3] += bx + cx
    out[4] += by + cy
    out[5] += bz + cz


# A pivot below this fraction of its original diagonal element is rounding: it has about 4 correct digits or fewer.
ROUNDING = 1e-12


@compiled
def factor(matrix: Any, n: int) -> bool:
    """Replace the leading n x n part of matrix (m, m) by its factors: L below the diagonal, D on it.

    This is Cholesky's recursion without square roots.

    Returns:
        False if a pivot is not positive beyond the rounding of its diagonal element; the factors are then incomplete.
    """
    for column in range(n):
        smallest = max(0.0, ROUNDING * matrix[column, column])
        for row in range(column, n):
            entry = matrix[row, column]
            for k in range(column):
                entry -= matrix[row, k] * matrix[column, k] * matrix[k, k]
            matrix[row, column] = entry
        if not matrix[column, column] > smallest:
            return False
        for row in range(column + 1, n):
            matrix[row, column] /= matrix[column, column]
    return True


@compiled
def solve(factors: Any, n: int, vector: Any) -> None:
    """Replace the first n elements of vector (m,) by M^-1 vector, with factors (m, m) from `factor`."""
    for row in range(n):
        for k in range(row):
            vector[row] -= factors[row, k] * vector[k]
    for row in range(n):
        vector[row] /= factors[row, row]
    for row in range(n - 1, -1, -1):
        for k in range(row + 1, n):
            vector[row] -= factors[k, row] * vector[k]
