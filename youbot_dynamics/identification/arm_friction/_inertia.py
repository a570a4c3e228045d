"""Physically consistent inertial parameters, as close as possible to the torques.

Least squares ignores physical constraints: masses become negative, inertias violate the triangle inequality, and the
mass matrix may not be positive definite. Inertial parameters are physical exactly if the pseudo-inertia
[[S, m c], [m c', m]], S the second moments of the mass, is positive definite. Here it is L L', with the logarithms of
the diagonal of L as unknowns, so that every step of the search is physical. Undetermined parameters stay near their
nominal values.

Source: system 18.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction
from youbot_dynamics.identification.arm_friction._regressors import OF_BODY, inertial_parameters, uncertainty
from youbot_dynamics.identification.arm_friction._rows import PARTS

_LOWER = np.tril_indices(4)
_DIAGONAL = np.flatnonzero(_LOWER[0] == _LOWER[1])  # indices of the logarithms among the ten unknowns of a body
_FARTHEST = 12.0  # largest distance of a logarithm from its nominal value
_FLAT = 1e-6  # share of the second moments added to a nominal rod or point mass, which has no finite logarithm
_SMALLEST = 1e-12  # the same for a body without inertia [kg m2]
# Steps of the search, usually 25. Bodies of a log without weight would shrink for thousands of steps, minutes, and
# improve R2 by less than 0.001; every step is physical, so the search may end at any.
_MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class ConsistentInertia:
    """Physically consistent bodies and friction that explain the torques."""

    parameters: Vector  # (10 n + nv,) inertial parameters of the arm with these bodies
    friction: Vector  # PARTS (k, 5) of the fitted joints
    explained: dict[str, float]  # R^2 of the torque of each fitted joint


def pseudo_inertia(parameters: Vector) -> Vector:
    """Pseudo-inertia (4, 4) of a body with inertial parameters (10,): m, m c, inertia about the origin."""
    m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    matrix = np.empty((4, 4))
    matrix[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    matrix[:3, 3] = matrix[3, :3] = x, y, z
    matrix[3, 3] = m
    return matrix


def body_parameters(pseudo: Vector) -> Vector:
    """Inertial parameters (10,) of the body with a pseudo-inertia (4, 4)."""
    second = pseudo[:3, :3]
    inertia = np.trace(second) * np.eye(3) - second
    return np.array([pseudo[3, 3], *pseudo[:3, 3], *inertia[np.triu_indices(3)]])


def consistent_inertia(found: ArmFriction) -> ConsistentInertia:
    """Physically consistent bodies and dissipative friction for the torques of an identification.

    Minimises the weighted squares of the torque errors, each joint in units of its own residual, plus the squares of
    the differences from the nominal parameters in units of `uncertainty`.

    Raises:
        IdentificationError: an identification without a tree or without data.
    """
    tree = found.model.tree
    if tree is None or found.fit is None:
        raise IdentificationError(
            "bodies of the arm", got="no fit of a tree", expected="an identification with one, and joints that slid"
        )
    factor, target = _triangle(found)
    nominal, known = inertial_parameters(tree), uncertainty(tree)
    n, width = len(tree.names), len(nominal)
    bodies = OF_BODY * n
    each = len(PARTS)
    free = found.values[len(found.values) - each * len(found.rows) :]
    start = np.concatenate([_logarithms(nominal, n), np.log(nominal[bodies:] + 1e-9), free])
    lower = np.full(len(start), -np.inf)
    lower[width:].reshape(-1, each)[:, :3] = 0.0  # friction dissipates energy
    start[width:] = np.maximum(start[width:], lower[width:] + 1e-6)
    # Bounds on the logarithms keep a long step finite: no body of this arm has e^12 times its nominal values.
    upper = np.full(len(start), np.inf)
    logarithms = np.concatenate([_DIAGONAL + OF_BODY * body for body in range(n)] + [np.arange(bodies, width)])
    lower[logarithms], upper[logarithms] = start[logarithms] - _FARTHEST, start[logarithms] + _FARTHEST

    def parameters(x: Vector) -> Vector:
        spread = [_from_logarithms(row)[0] for row in x[:bodies].reshape(n, OF_BODY)]
        return np.concatenate([*spread, np.exp(x[bodies:width]), x[width:]])

    def residual(x: Vector) -> Vector:
        at = parameters(x)
        return np.concatenate([factor @ at - target, (at[:width] - nominal) / known])

    def slope(x: Vector) -> Vector:
        inner = np.zeros((len(x), len(x)))
        for body in range(n):
            part = slice(OF_BODY * body, OF_BODY * (body + 1))
            inner[part, part] = _from_logarithms(x[part])[1]
        inner[range(bodies, width), range(bodies, width)] = np.exp(x[bodies:width])
        inner[range(width, len(x)), range(width, len(x))] = 1.0
        return np.vstack([factor @ inner, inner[:width] / known[:, None]])

    best = least_squares(
        residual, start, slope, bounds=(lower, upper), x_scale="jac", ftol=1e-5, xtol=1e-6, max_nfev=_MOST_STEPS
    )
    at = parameters(best.x)
    friction, shares = at[width:].reshape(-1, each), {}
    scales, delay = 1.0 + found.reading_values[:-1], found.reading_values[-1]
    for row, scale, values, offset in zip(found.rows, scales, friction, found.offsets, strict=True):
        modelled = scale * (row.body @ at[:width]) - row.known - delay * row.slew
        modelled += (row.friction() * _used(offset)) @ values
        shares[found.model.joint_names[row.joint]] = row.explained(modelled)
    return ConsistentInertia(at[:width], friction, shares)


def _triangle(found: ArmFriction) -> tuple[Vector, Vector]:
    """Triangular factor (r, p) and target (r,) of the weighted rows: all inertial parameters, then friction."""
    assert found.base is not None  # with a tree
    stacks: list[Vector] = []
    scales, delay = 1.0 + found.reading_values[:-1], found.reading_values[-1]
    for k, (row, offset) in enumerate(zip(found.rows, found.offsets, strict=True)):
        friction = np.zeros((len(row.time), len(PARTS) * len(found.rows)))
        friction[:, len(PARTS) * k : len(PARTS) * (k + 1)] = row.friction() * _used(offset)
        left = row.torque - found.modelled(k)[0]
        weight = 1.0 / max(float(np.sqrt(np.mean(left**2))), 1e-3)
        stacks.append(weight * np.column_stack([scales[k] * row.body, friction, row.torque + delay * row.slew]))
    upper: Vector = np.linalg.qr(np.vstack(stacks))[1]
    return upper[:, :-1], upper[:, -1]


def _used(offset: bool) -> Vector:
    """Factors (5,) of the friction columns of a joint: 0 for an offset that it does not have."""
    return np.array([float(offset or part != "offset") for part in PARTS])


def _logarithms(nominal: Vector, n: int) -> Vector:
    """Unknowns (10 n,) of the nominal bodies."""
    rows = []
    for parameters in nominal[: OF_BODY * n].reshape(n, OF_BODY):
        matrix = pseudo_inertia(parameters)
        spread = max(_FLAT * float(np.trace(matrix[:3, :3])), _SMALLEST)
        matrix[:3, :3] += spread * np.eye(3)
        matrix[3, 3] = max(matrix[3, 3], _SMALLEST)
        lower = np.linalg.cholesky(matrix)
        lower[range(4), range(4)] = np.log(np.diag(lower))
        rows.append(lower[_LOWER])
    return np.concatenate(rows)


def _from_logarithms(unknowns: Vector) -> tuple[Vector, Vector]:
    """Inertial parameters (10,) from the unknowns (10,) of a body, and their slopes (10, 10)."""
    lower = np.zeros((4, 4))
    lower[_LOWER] = unknowns
    diagonal = np.exp(np.diag(lower))
    lower[range(4), range(4)] = diagonal
    slopes = np.empty((OF_BODY, OF_BODY))
    for k, (i, j) in enumerate(zip(*_LOWER, strict=True)):
        one = np.zeros((4, 4))
        one[i, j] = diagonal[i] if i == j else 1.0
        change = one @ lower.T
        slopes[:, k] = body_parameters(change + change.T)
    return body_parameters(lower @ lower.T), slopes
