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

from youbot_dynamics.arrays import Vector, rms
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
    nominal, uncertainties = inertial_parameters(tree), uncertainty(tree)
    problem = _Problem(*_triangular_factor(found), nominal, uncertainties, len(tree.names))
    best = problem.search(found.friction.ravel())
    width = len(nominal)
    solution = problem.parameters(best.x)
    friction, shares = solution[width:].reshape(-1, len(PARTS)), {}
    scales, delay = 1.0 + found.reading_values[:-1], found.reading_values[-1]
    for row, scale, values in zip(found.rows, scales, friction, strict=True):
        modelled = scale * (row.body @ solution[:width]) - row.known - delay * row.slew
        shares[row.name] = row.explained(modelled + row.friction() @ values)
    return ConsistentInertia(solution[:width], friction, shares, _MOST_STEPS if best.status == 0 else 0)


def _triangular_factor(found: ArmFriction) -> tuple[Vector, Vector]:
    """Triangular factor (r, p) and target (r,) of the weighted rows: all inertial parameters, then friction."""
    stacks: list[Vector] = []
    scales, delay = 1.0 + found.reading_values[:-1], found.reading_values[-1]
    for k, row in enumerate(found.rows):
        friction = np.zeros((len(row.time), len(PARTS) * len(found.rows)))
        friction[:, len(PARTS) * k : len(PARTS) * (k + 1)] = row.friction()
        residual = row.torque - found.modelled(k)[0]
        weight = 1.0 / max(rms(residual), 1e-3)
        stacks.append(weight * np.column_stack([scales[k] * row.body, friction, row.torque + delay * row.slew]))
    upper: Vector = np.linalg.qr(np.vstack(stacks))[1]
    return upper[:, :-1], upper[:, -1]


@dataclass(frozen=True, eq=False)
class _Problem:
    """Least squares of physical bodies; unknowns x are those of the bodies, logarithms of rotors, and friction."""

    factor: Vector  # (r, p) of the parameters: inertial ones, then friction
    target: Vector  # (r,)
    nominal: Vector  # (10 n + nv,) inertial parameters
    uncertainties: Vector  # (10 n + nv,)
    n: int  # number of bodies

    def parameters(self, x: Vector) -> Vector:
        """Parameters (p,) of unknowns (p,)."""
        bodies, width = OF_BODY * self.n, len(self.nominal)
        factors = _factors(x[:bodies].reshape(self.n, OF_BODY))
        of_bodies = body_parameters(factors @ factors.swapaxes(1, 2))
        return np.concatenate([of_bodies.ravel(), np.exp(x[bodies:width]), x[width:]])

    def residual(self, x: Vector) -> Vector:
        """Errors (r + 10 n + nv,) of the torques and of the inertial parameters."""
        solution = self.parameters(x)
        change = (solution[: len(self.nominal)] - self.nominal) / self.uncertainties
        return np.concatenate([self.factor @ solution - self.target, change])

    def jacobian(self, x: Vector) -> Vector:
        """Its slopes (r + 10 n + nv, p)."""
        bodies, width = OF_BODY * self.n, len(self.nominal)
        slopes = np.zeros((len(x), len(x)))
        for body, own in enumerate(_body_slopes(x[:bodies].reshape(self.n, OF_BODY))):
            part = slice(OF_BODY * body, OF_BODY * (body + 1))
            slopes[part, part] = own
        slopes[range(bodies, width), range(bodies, width)] = np.exp(x[bodies:width])
        slopes[range(width, len(x)), range(width, len(x))] = 1.0
        return np.vstack([self.factor @ slopes, slopes[:width] / self.uncertainties[:, None]])

    def search(self, friction: Vector) -> OptimizeResult:
        """Best unknowns, from the nominal bodies and friction (5 k,) on."""
        bodies, width = OF_BODY * self.n, len(self.nominal)
        # 0, of a URDF, has no logarithm
        rotors = np.maximum(self.nominal[bodies:], _ROTOR_START * self.uncertainties[bodies:])
        start = np.concatenate([_logarithms(self.nominal, self.n), np.log(rotors), friction])
        lower, upper = np.full(len(start), -np.inf), np.full(len(start), np.inf)
        lower[width:].reshape(-1, len(PARTS))[:, :3] = 0.0  # friction dissipates energy
        start[width:] = np.maximum(start[width:], lower[width:] + 1e-6)
        # Bounds on the logarithms keep a long step finite: no body of this arm has e^12 times its nominal values.
        of_bodies = np.add.outer(OF_BODY * np.arange(self.n), _DIAGONAL).ravel()
        logarithms = np.concatenate([of_bodies, np.arange(bodies, width)])
        lower[logarithms], upper[logarithms] = start[logarithms] - _LARGEST_CHANGE, start[logarithms] + _LARGEST_CHANGE
        given = {"bounds": (lower, upper), "x_scale": "jac", "ftol": 1e-5, "xtol": 1e-6, "max_nfev": _MOST_STEPS}
        try:
            return least_squares(self.residual, start, self.jacobian, tr_solver="exact", **given)
        except np.linalg.LinAlgError:  # LAPACK's singular values need not converge, seen with a rotor near its bound
            return least_squares(self.residual, start, self.jacobian, tr_solver="lsmr", **given)


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
