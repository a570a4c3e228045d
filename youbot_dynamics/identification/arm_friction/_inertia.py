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
from scipy.optimize import OptimizeResult, least_squares

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction
from youbot_dynamics.identification.arm_friction._regressors import OF_BODY, inertial_parameters, uncertainty
from youbot_dynamics.identification.arm_friction._rows import PARTS

_ROW, _COLUMN = np.tril_indices(4)  # of the ten unknowns of a body
_DIAGONAL = np.flatnonzero(_ROW == _COLUMN)  # indices of the logarithms among the ten unknowns of a body
_LARGEST_CHANGE = 12.0  # largest distance of a logarithm from its nominal value
# Share of the second moments added to those of a nominal rod or point mass, which has no finite logarithm.
_REGULARISATION = 1e-6
_ROTOR_START = 1e-3  # start value of an unknown rotor inertia, as a share of its uncertainty
_SMALLEST = 1e-12  # least addition, for a body without inertia [kg m2]
# Steps of the search, usually 25. Bodies of a log without weight would shrink for thousands of steps, minutes, and
# improve R2 by less than 0.001; every step is physical, so the search may end at any step.
_MOST_STEPS = 200


@dataclass(frozen=True, eq=False)
class ConsistentInertia:
    """Physically consistent bodies and friction that explain the torques."""

    parameters: Vector  # (10 n + nv,) inertial parameters of the arm with these bodies
    friction: Vector  # PARTS (k, 5) of the fitted joints
    explained: dict[str, float]  # R^2 of the torque of each fitted joint
    steps: int = 0  # of a search that spent its budget; 0 if it converged


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
    """Inertial parameters (10,) of the body with a pseudo-inertia (4, 4); of several in any leading shape."""
    second = pseudo[..., :3, :3]
    inertia = np.trace(second, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - second
    i, j = np.triu_indices(3)
    return np.concatenate([pseudo[..., 3:, 3], pseudo[..., :3, 3], inertia[..., i, j]], axis=-1)


def consistent_inertia(identification: ArmFriction) -> ConsistentInertia:
    """Physically consistent bodies and dissipative friction for the torques of an identification.

    Minimises the weighted squares of the torque errors, each joint in units of its own residual, plus the squares of
    the differences from the nominal parameters in units of `uncertainty`.

    Raises:
        IdentificationError: an identification without a tree or without data.
    """
    tree = identification.model.tree
    if tree is None or identification.fit is None:
        raise IdentificationError(
            "bodies of the arm", got="no fit of a tree", expected="an identification with one, and joints that slid"
        )
    factor, target = _triangular_factor(identification)
    nominal, uncertainties = inertial_parameters(tree), uncertainty(tree)
    n, width = len(tree.names), len(nominal)
    bodies = OF_BODY * n
    rotors = np.maximum(nominal[bodies:], _ROTOR_START * uncertainties[bodies:])  # 0, of a URDF, has no logarithm
    count = len(PARTS)
    friction_start = identification.values[len(identification.values) - count * len(identification.rows) :]
    start = np.concatenate([_logarithms(nominal, n), np.log(rotors), friction_start])
    lower = np.full(len(start), -np.inf)
    lower[width:].reshape(-1, count)[:, :3] = 0.0  # friction dissipates energy
    start[width:] = np.maximum(start[width:], lower[width:] + 1e-6)
    # Bounds on the logarithms keep a long step finite: no body of this arm has e^12 times its nominal values.
    upper = np.full(len(start), np.inf)
    logarithms = np.concatenate([_DIAGONAL + OF_BODY * body for body in range(n)] + [np.arange(bodies, width)])
    lower[logarithms], upper[logarithms] = start[logarithms] - _LARGEST_CHANGE, start[logarithms] + _LARGEST_CHANGE

    def parameters(x: Vector) -> Vector:
        factors = _factors(x[:bodies].reshape(n, OF_BODY))
        of_bodies = body_parameters(factors @ factors.swapaxes(1, 2))
        return np.concatenate([of_bodies.ravel(), np.exp(x[bodies:width]), x[width:]])

    def residual(x: Vector) -> Vector:
        solution = parameters(x)
        return np.concatenate([factor @ solution - target, (solution[:width] - nominal) / uncertainties])

    def jacobian(x: Vector) -> Vector:
        slopes = np.zeros((len(x), len(x)))
        for body, own in enumerate(_body_slopes(x[:bodies].reshape(n, OF_BODY))):
            part = slice(OF_BODY * body, OF_BODY * (body + 1))
            slopes[part, part] = own
        slopes[range(bodies, width), range(bodies, width)] = np.exp(x[bodies:width])
        slopes[range(width, len(x)), range(width, len(x))] = 1.0
        return np.vstack([factor @ slopes, slopes[:width] / uncertainties[:, None]])

    def search(solver: str) -> OptimizeResult:
        return least_squares(
            residual,
            start,
            jacobian,
            bounds=(lower, upper),
            x_scale="jac",
            ftol=1e-5,
            xtol=1e-6,
            max_nfev=_MOST_STEPS,
            tr_solver=solver,
        )

    try:
        best = search("exact")
    except np.linalg.LinAlgError:  # LAPACK's singular values need not converge, seen with a rotor near its bound
        best = search("lsmr")
    solution = parameters(best.x)
    friction, shares = solution[width:].reshape(-1, count), {}
    scales, delay = 1.0 + identification.reading_values[:-1], identification.reading_values[-1]
    for row, scale, values, offset in zip(identification.rows, scales, friction, identification.offsets, strict=True):
        modelled = scale * (row.body @ solution[:width]) - row.known - delay * row.slew
        modelled += (row.friction() * _friction_mask(offset)) @ values
        shares[identification.model.joint_names[row.joint]] = row.explained(modelled)
    return ConsistentInertia(solution[:width], friction, shares, _MOST_STEPS if best.status == 0 else 0)


def _triangular_factor(identification: ArmFriction) -> tuple[Vector, Vector]:
    """Triangular factor (r, p) and target (r,) of the weighted rows: all inertial parameters, then friction."""
    assert identification.base is not None  # with a tree
    stacks: list[Vector] = []
    scales, delay = 1.0 + identification.reading_values[:-1], identification.reading_values[-1]
    for k, (row, offset) in enumerate(zip(identification.rows, identification.offsets, strict=True)):
        friction = np.zeros((len(row.time), len(PARTS) * len(identification.rows)))
        friction[:, len(PARTS) * k : len(PARTS) * (k + 1)] = row.friction() * _friction_mask(offset)
        residual = row.torque - identification.modelled(k)[0]
        weight = 1.0 / max(float(np.sqrt(np.mean(residual**2))), 1e-3)
        stacks.append(weight * np.column_stack([scales[k] * row.body, friction, row.torque + delay * row.slew]))
    upper: Vector = np.linalg.qr(np.vstack(stacks))[1]
    return upper[:, :-1], upper[:, -1]


def _friction_mask(offset: bool) -> Vector:
    """Factors (5,) of the friction columns of a joint: 0 for an offset that it does not have."""
    return np.array([float(offset or part != "offset") for part in PARTS])


def _logarithms(nominal: Vector, n: int) -> Vector:
    """Unknowns (10 n,) of the nominal bodies."""
    rows = []
    for parameters in nominal[: OF_BODY * n].reshape(n, OF_BODY):
        matrix = pseudo_inertia(parameters)
        added = max(_REGULARISATION * float(np.trace(matrix[:3, :3])), _SMALLEST)
        matrix[:3, :3] += added * np.eye(3)
        matrix[3, 3] = max(matrix[3, 3], _SMALLEST)
        lower = np.linalg.cholesky(matrix)
        lower[range(4), range(4)] = np.log(np.diag(lower))
        rows.append(lower[_ROW, _COLUMN])
    return np.concatenate(rows)


def _factors(unknowns: Vector) -> Vector:
    """Factors L (n, 4, 4) of the bodies with unknowns (n, 10)."""
    lower = np.zeros((len(unknowns), 4, 4))
    lower[:, _ROW, _COLUMN] = unknowns
    lower[:, range(4), range(4)] = np.exp(unknowns[:, _DIAGONAL])
    return lower


def _body_slopes(unknowns: Vector) -> Vector:
    """Slopes (n, 10, 10) of the inertial parameters of bodies over their unknowns (n, 10)."""
    lower = _factors(unknowns)
    units = np.zeros((len(unknowns), OF_BODY, 4, 4))
    units[:, range(OF_BODY), _ROW, _COLUMN] = 1.0
    units[:, _DIAGONAL, range(4), range(4)] = lower[:, range(4), range(4)]
    change = units @ lower[:, None].swapaxes(2, 3)
    return body_parameters(change + change.swapaxes(2, 3)).swapaxes(1, 2)
