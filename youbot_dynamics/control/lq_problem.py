"""What every LQ problem is checked for: matrices that fit, and weights that have a minimum."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import InputError

# A weight may be unsymmetric, or negative along a direction, by this part of its largest element: rounding.
_ROUNDING = 1e-12


def weight(thing: str, value: ArrayLike, size: int, *, definite: bool = False) -> Vector:
    """Weight matrix (size, size) of a cost, symmetric and positive semidefinite; a scalar stands for a 1 x 1 matrix.

    Seed 002 A.4 asks for Q > 0; Q >= 0 is enough, R > 0 is not to be spared.

    Args:
        thing: name of the weight, for the message.
        value: (n, n).
        size: n.
        definite: it must be positive definite.

    Raises:
        InputError: another shape, a number that is not finite, not symmetric, or a negative direction.
    """
    found = matrix(thing, value, (size, size))
    largest = float(np.max(np.abs(found), initial=0.0))
    if np.max(np.abs(found - found.T), initial=0.0) > 1e3 * _ROUNDING * largest:
        raise InputError(thing, got="a matrix that is not symmetric", expected="a symmetric one")
    found = 0.5 * (found + found.T)
    smallest = float(np.linalg.eigvalsh(found)[0]) if size else 0.0
    if smallest < -_ROUNDING * size * largest or (definite and smallest <= _ROUNDING * size * largest):
        wanted = "positive definite" if definite else "positive semidefinite"
        raise InputError(thing, got=f"an eigenvalue of {smallest:g}", expected=f"a {wanted} matrix")
    return found


def matrix(thing: str, value: ArrayLike, shape: tuple[int | None, int | None]) -> Vector:
    """Matrix (n, m) of a shape, None standing for any length; a scalar stands for a 1 x 1 matrix.

    Raises:
        InputError: another shape, or a number that is not finite.
    """
    return array(thing, np.reshape(value, (1, 1)) if np.ndim(value) == 0 else value, shape)


def with_constant(A: Vector, drift: Vector, last: float) -> Vector:
    """Dynamics (n + 1, n + 1) of the state and a constant 1 that feeds the drift (n,) to it.

    Args:
        A: (n, n).
        drift: (n,).
        last: what the constant becomes: 1 in discrete time, its rate 0 in continuous time.
    """
    n = len(A)
    extended = np.zeros((n + 1, n + 1))
    extended[:n, :n], extended[:n, n], extended[n, n] = A, drift, last
    return extended


def error_output(C: Vector, reference: Vector) -> Vector:
    """Matrix (p, n + 1) that forms the negative tracking error C x - z of the state and a constant 1.

    Args:
        C: (p, n).
        reference: (p,) z.
    """
    return np.column_stack([C, -reference])
