"""Optimal tracking of a known reference by a linear system in discrete time, and the problem both solvers share.

J = e_N' Sf e_N + sum_{k<N} e_k'Q e_k + (u_k - w_k)'R (u_k - w_k) with e = z - C x, x_{k+1} = A x_k + B u_k + d_k:
the problem of continuous time for held commands, where a transport delay is exact. As in continuous time the constant 1
is appended to the state, and one Riccati recursion gives S, g and the cost.

Source: document 002 A.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

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
    if np.max(np.abs(checked - checked.T), initial=0.0) > 1e3 * _ROUNDING * largest:
        raise InputError(thing, got="a matrix that is not symmetric", expected="a symmetric one")
    checked = 0.5 * (checked + checked.T)
    smallest = float(np.linalg.eigvalsh(checked)[0]) if size else 0.0
    if smallest < -_ROUNDING * size * largest or (definite and smallest <= _ROUNDING * size * largest):
        wanted = "positive definite" if definite else "positive semidefinite"
        raise InputError(thing, got=f"an eigenvalue of {smallest:g}", expected=f"a {wanted} matrix")
    return checked


def matrix(thing: str, value: ArrayLike, shape: tuple[int | None, int | None]) -> Vector:
    """Matrix (n, m) of a shape, None standing for any length; a scalar stands for a 1 x 1 matrix.

    Raises:
        InputError: another shape, or a number that is not finite.
    """
    return array(thing, np.reshape(value, (1, 1)) if np.ndim(value) == 0 else value, shape)


def with_constant(A: Vector, drift: Vector, last: float) -> Vector:
    """Dynamics (n + 1, n + 1) of the state, A (n, n), and a constant 1 that feeds the drift (n,) to it.

    `last` is what the constant becomes: 1 in discrete time, its rate 0 in continuous time.
    """
    n = len(A)
    extended = np.zeros((n + 1, n + 1))
    extended[:n, :n], extended[:n, n], extended[n, n] = A, drift, last
    return extended


def error_output(C: Vector, reference: Vector) -> Vector:
    """Matrix (p, n + 1) that forms the negative error C x - z of the state and a constant 1; C (p, n), z (p,)."""
    return np.column_stack([C, -reference])


@dataclass(frozen=True, eq=False)
class DiscreteGains:
    """Optimal law u_k = K_k x_k + p_k of N steps, as `track_discrete` finds it (D-002-8)."""

    K: Vector  # (N, m, n)
    p: Vector  # (N, m)
    S: Vector  # (N + 1, n, n)
    g: Vector  # (N + 1, n)
    c: Vector  # (N + 1,); the least cost from step k on is x'S x - 2 g'x + c

    def command(self, step: int, state: ArrayLike) -> Vector:
        """Optimal input (m,) of a step from its state (n,)."""
        optimal: Vector = self.K[step] @ array("state", state, (self.K.shape[2],)) + self.p[step]
        return optimal

    def cost(self, step: int, state: ArrayLike) -> float:
        """Least cost from a step and its state (n,) on."""
        x = array("state", state, (self.K.shape[2],))
        return float(x @ self.S[step] @ x - 2.0 * self.g[step] @ x + self.c[step])


def track_discrete(
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    Q: ArrayLike,
    R: ArrayLike,
    Sf: ArrayLike,
    reference: ArrayLike,
    *,
    drift: ArrayLike | None = None,
    nominal: ArrayLike | None = None,
) -> DiscreteGains:
    """Optimal tracking of z_0 ... z_N, by Riccati's recursion backwards from the last one.

    H = R + B'S B, K = -H^-1 B'S A, p = w + H^-1 B'(g - S (d + B w)) with S and g of the next step; then
    S_k = C'Q C + (A + B K)'S (A + B K) + K'R K, the sum of squares that keeps S positive whatever the rounding.

    Args:
        A: (n, n), or (N, n, n), one for each step as all of the next four.
        B: (n, m).
        C: (p, n); the last of N also weighs the end.
        Q: (p, p) weight of the error, symmetric, at least 0.
        R: (m, m) weight of the input, symmetric, above 0.
        Sf: (p, p) weight of the error at the end, symmetric, at least 0.
        reference: (N + 1, p) z.
        drift: (N, n) d; none by default.
        nominal: (N, m) w; 0 by default.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, weights that leave no minimum, or no step.

    Source: document 002 A.4, D-002-8.
    """
    z = array("reference", reference, (None, None))
    steps, outputs = len(z) - 1, z.shape[1]
    if steps < 1:
        raise InputError("reference", got=f"{len(z)} rows", expected="2 or more: the state of each step and of the end")
    inputs_of = _stack("B", B, steps, (None, None))
    n, m = inputs_of.shape[1:]
    rates_of = _stack("A", A, steps, (n, n))
    outputs_of = _stack("C", C, steps, (outputs, n))
    errors_weight = _weights("Q", Q, steps, outputs)
    inputs_weight = _weights("R", R, steps, m, definite=True)
    known = np.zeros((steps, n)) if drift is None else array("drift", drift, (steps, n))
    wanted = np.zeros((steps, m)) if nominal is None else array("nominal", nominal, (steps, m))

    laws = np.empty((steps, m, n + 1))
    values = np.empty((steps + 1, n + 1, n + 1))
    errors = error_output(outputs_of[-1], z[-1])
    values[-1] = errors.T @ weight("Sf", Sf, outputs) @ errors
    for k in range(steps - 1, -1, -1):
        moved = with_constant(rates_of[k], known[k] + inputs_of[k] @ wanted[k], 1.0)
        steered = np.vstack([inputs_of[k], np.zeros((1, m))])
        pull = steered.T @ values[k + 1]
        laws[k] = -np.linalg.solve(inputs_weight[k] + pull @ steered, pull @ moved)
        closed = moved + steered @ laws[k]
        errors = error_output(outputs_of[k], z[k])
        value = errors.T @ errors_weight[k] @ errors + laws[k].T @ inputs_weight[k] @ laws[k]
        value += closed.T @ values[k + 1] @ closed
        values[k] = 0.5 * (value + value.T)
    parts = laws[:, :, :-1], laws[:, :, -1] + wanted, values[:, :-1, :-1], -values[:, :-1, -1], values[:, -1, -1]
    return DiscreteGains(*(read_only(part.copy()) for part in parts))


def _stack(thing: str, value: ArrayLike, steps: int, shape: tuple[int | None, int | None]) -> Vector:
    """One matrix for each step, (steps, a, b), of a matrix (a, b) for all of them or of a stack."""
    if np.ndim(value) == 3:
        return array(thing, value, (steps, *shape))
    constant = matrix(thing, value, shape)
    return np.broadcast_to(constant, (steps, *constant.shape))


def _weights(thing: str, value: ArrayLike, steps: int, size: int, *, definite: bool = False) -> Vector:
    """One checked weight for each step, (steps, a, a)."""
    if np.ndim(value) == 3:
        each = array(thing, value, (steps, size, size))
        return np.array([weight(f"{thing}[{k}]", of_step, size, definite=definite) for k, of_step in enumerate(each)])
    return np.broadcast_to(weight(thing, value, size, definite=definite), (steps, size, size))
