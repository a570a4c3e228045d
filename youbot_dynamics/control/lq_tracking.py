"""Optimal tracking by a linear system with constant gains, in discrete time: the law of the tracker's LQ feedback.

The same over a finite time, and in continuous time: `source_systems.optimal_tracking`.
Source: document 002 A.4 over an infinite time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_discrete_are

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.errors import InputError

# A weight may be unsymmetric, or negative along a direction, by this part of its largest element: rounding.
_ROUNDING = 1e-12


def weight(thing: str, value: ArrayLike, size: int, *, definite: bool = False) -> Vector:
    """Weight matrix (n, n) of a cost, n = `size`, symmetric and positive semidefinite; a scalar is a 1 x 1 matrix.

    Document 002 A.4 asks for Q > 0. Q >= 0 is enough; R > 0 (`definite`) is necessary.

    Raises:
        InputError: another shape, a number that is not finite, not symmetric, or a negative direction.
    """
    checked = matrix(thing, value, (size, size))
    largest = float(np.max(np.abs(checked), initial=0.0))
    if not np.max(np.abs(checked - checked.T), initial=0.0) <= 1e3 * _ROUNDING * largest:
        raise InputError(thing, got="a matrix that is not symmetric", expected="a symmetric one")
    checked = 0.5 * (checked + checked.T)
    smallest = float(np.linalg.eigvalsh(checked)[0]) if size else 0.0
    rounding = _ROUNDING * size * largest
    if not (smallest > rounding if definite else smallest >= -rounding):
        wanted = "positive definite" if definite else "positive semidefinite"
        raise InputError(thing, got=f"an eigenvalue of {smallest:g}", expected=f"a {wanted} matrix")
    return checked


def matrix(thing: str, value: ArrayLike, shape: tuple[int | None, int | None]) -> Vector:
    """Matrix (n, m) of a shape, None standing for any length; a scalar stands for a 1 x 1 matrix.

    Raises:
        InputError: another shape, or a number that is not finite.
    """
    return array(thing, np.reshape(value, (1, 1)) if np.ndim(value) == 0 else value, shape)


@dataclass(frozen=True, eq=False)
class PreviewGains:
    """Law u_k = K x_k + p_k of constant gains, with p_k from what is known of the next l steps."""

    K: Vector  # (m, n)
    S: Vector  # (n, n) of the infinite time
    reference_kernel: Vector  # (l, m, p) that weighs the references z_{k+1} to z_{k+l}
    drift_kernel: Vector  # (l, m, n) that weighs the drifts d_k to d_{k+l-1}


def preview_discrete(A: ArrayLike, B: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike, steps: int) -> PreviewGains:
    """Gains and preview u_k = K x_k + H^-1 B'(g_{k+1} - S d_k), H = R + B'S B.

    S solves the discrete Riccati equation, and g_k = C'Q z_k + F'(g_{k+1} - S d_k) with F = A + B K: reference z_{k+j}
    enters by H^-1 B'F'^(j-1) C'Q, drift d_{k+j} by -H^-1 B'F'^j S, j up to `steps`, the last one for all that follow.

    Args:
        A: (n, n).
        B: (n, m).
        C: (p, n).
        Q: (p, p) weight of the error, symmetric, at least 0.
        R: (m, m) weight of the input, symmetric, above 0.
        steps: for how many steps the reference z_{k+1} ... and the drift d_k ... are known, 1 or more.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, weights that leave no minimum, no step, or a
            system whose unstable modes cannot be steered or do not show in the cost.
    """
    a, b, c, q, r = linear_problem(A, B, C, Q, R)
    if steps < 1:
        raise InputError("steps", got=str(steps), expected="1 or more")
    S = riccati(solve_discrete_are, a, b, c.T @ q @ c, r)
    pull = b.T @ S
    to_input = np.linalg.solve(r + pull @ b, b.T)
    K = -to_input @ S @ a
    closed = a + b @ K
    if not np.max(np.abs(np.linalg.eigvals(closed))) < 1.0:
        raise unsteered()
    powers = np.empty((steps, *a.shape))
    powers[0] = np.eye(len(a))
    for k in range(1, steps):
        powers[k] = closed.T @ powers[k - 1]
    powers[-1] = np.linalg.solve(np.eye(len(a)) - closed.T, powers[-1])
    of_references, of_drifts = to_input @ powers @ (c.T @ q), -to_input @ powers @ S
    return PreviewGains(*(read_only(part) for part in (K, S, of_references, of_drifts)))


def linear_problem(A: ArrayLike, B: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike) -> tuple[Vector, ...]:
    """A (n, n), B (n, m), C (p, n), Q (p, p) and R (m, m) of a constant problem, checked.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, or weights that leave no minimum.
    """
    b = matrix("B", B, (None, None))
    n, m = b.shape
    c = matrix("C", C, (None, n))
    return matrix("A", A, (n, n)), b, c, weight("Q", Q, len(c)), weight("R", R, m, definite=True)


def riccati(solver: Callable[..., Vector], a: Vector, b: Vector, q: Vector, r: Vector) -> Vector:
    """S (n, n) of scipy's `solver` for A (n, n), B (n, m), C'Q C (n, n) and R (m, m).

    Raises:
        InputError: a system whose unstable modes cannot be steered or do not show in the cost.
    """
    try:
        S: Vector = solver(a, b, q, r)
    except np.linalg.LinAlgError:
        raise unsteered() from None
    return 0.5 * (S + S.T)


def unsteered() -> InputError:
    """The error of a system without a stable optimal law."""
    return InputError(
        "A, B, C, Q",
        got="a system without a stable optimal law",
        expected="unstable and marginal modes that are controllable, and observable in the weighted outputs",
        remedy="weight an output in which they appear, or remove them from the system",
    )
