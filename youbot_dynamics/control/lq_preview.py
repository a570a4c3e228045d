"""Optimal tracking over an infinite time, with a preview of the reference (seed 002 A.4 without its end).

The gains are constant; what is known of the future enters through kernels. Beyond the preview the last known values
are taken to hold for ever, so that a reference that ends at rest needs no preview beyond its end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm, solve_continuous_are, solve_discrete_are

from youbot_dynamics.arrays import Vector, array, read_only, scalar
from youbot_dynamics.control.lq_problem import matrix, weight
from youbot_dynamics.errors import InputError

_PANEL = 8  # Gauss points of a panel of the continuous preview


@dataclass(frozen=True, eq=False)
class PreviewGains:
    """Law u = K x + p of constant gains, with p from what is known of the future.

    Args:
        K: (m, n).
        S: (n, n) of the infinite time.
        closed_loop: (n, n) A + B K, stable.
        offsets: (l,) how far ahead each reference is asked for: [s] in continuous time, steps in discrete time.
        reference_kernel: (l, m, p) that weighs them.
        drift_kernel: (l, m, n) that weighs the drifts of steps k to k + l - 1; None in continuous time.
    """

    K: Vector
    S: Vector
    closed_loop: Vector
    offsets: Vector
    reference_kernel: Vector
    drift_kernel: Vector | None

    def feed_forward(self, references: ArrayLike, drifts: ArrayLike | None = None) -> Vector:
        """Feed-forward p (m,).

        Args:
            references: (l, p) reference at each of the `offsets` from now on.
            drifts: (l, n) d of this step and the following ones, in discrete time; none by default.

        Raises:
            InputError: a wrong shape, a number that is not finite, or drifts in continuous time.
        """
        count, inputs, outputs = self.reference_kernel.shape
        found: Vector = np.einsum("lmp,lp->m", self.reference_kernel, array("references", references, (count, outputs)))
        if drifts is not None:
            if self.drift_kernel is None:
                raise InputError("drifts", got="some", expected="none in continuous time")
            found = found + np.einsum("lmn,ln->m", self.drift_kernel, array("drifts", drifts, (count, len(self.S))))
        return found


def preview(A: ArrayLike, B: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike, horizon: float) -> PreviewGains:
    """Gains and preview in continuous time, u(t) = K x(t) + R^-1 B' g(t).

    A'S + S A - S B R^-1 B'S + C'Q C = 0 and g(t) = int_0^T exp(F's) C'Q z(t + s) ds - F'^-1 exp(F'T) C'Q z(t + T) with
    F = A + B K and T the horizon; the integral by Gauss' rule on panels no longer than the loop's fastest mode.

    Args:
        A: (n, n).
        B: (n, m).
        C: (p, n).
        Q: (p, p) weight of the error, symmetric, at least 0.
        R: (m, m) weight of the input, symmetric, above 0.
        horizon: how far ahead the reference is known [s], above 0.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, weights that leave no minimum, a horizon of no
            length, or a system whose unstable modes cannot be steered or do not show in the cost.
    """
    a, b, c, q, r = _checked(A, B, C, Q, R)
    length = scalar("horizon", horizon)
    if not length > 0.0:
        raise InputError("horizon", got=f"{length:g} s", expected="a time above 0")
    S = _solve(solve_continuous_are, a, b, c.T @ q @ c, r)
    K = np.asarray(-np.linalg.solve(r, b.T @ S), dtype=np.float64)
    closed = a + b @ K
    modes = np.linalg.eigvals(closed)
    if not np.max(modes.real) < 0.0:
        raise _unsteered()
    panels = int(np.ceil(length * float(np.max(np.abs(modes)))))
    points, weights = np.polynomial.legendre.leggauss(_PANEL)
    width = length / panels
    offsets = np.append((width * (np.arange(panels)[:, None] + 0.5 + 0.5 * points)).ravel(), length)
    pulls = expm(offsets[:, None, None] * closed.T) @ (c.T @ q)
    pulls[:-1] *= np.tile(0.5 * width * weights, panels)[:, None, None]
    pulls[-1] = -np.linalg.solve(closed.T, pulls[-1])
    kernel = np.asarray(np.linalg.solve(r, b.T) @ pulls, dtype=np.float64)
    return PreviewGains(
        read_only(K), read_only(S), read_only(closed), read_only(offsets), read_only(kernel), drift_kernel=None
    )


def preview_discrete(A: ArrayLike, B: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike, steps: int) -> PreviewGains:
    """Gains and preview in discrete time, u_k = K x_k + H^-1 B'(g_{k+1} - S d_k), H = R + B'S B.

    S solves the discrete Riccati equation, and g_k = C'Q z_k + F'(g_{k+1} - S d_k) with F = A + B K: reference z_{k+j}
    enters by H^-1 B'F'^(j-1) C'Q, drift d_{k+j} by -H^-1 B'F'^j S, j up to `steps`, the last one for all that follow.

    Args:
        A: (n, n).
        B: (n, m).
        C: (p, n).
        Q: (p, p) weight of the error, symmetric, at least 0.
        R: (m, m) weight of the input, symmetric, above 0.
        steps: how many steps ahead the reference is known, 1 or more; those of z_{k+1} ... and of d_k ....

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, weights that leave no minimum, no step, or a
            system whose unstable modes cannot be steered or do not show in the cost.
    """
    a, b, c, q, r = _checked(A, B, C, Q, R)
    if steps < 1:
        raise InputError("steps", got=str(steps), expected="1 or more")
    S = _solve(solve_discrete_are, a, b, c.T @ q @ c, r)
    pull = b.T @ S
    to_input = np.linalg.solve(r + pull @ b, b.T)
    K = -to_input @ S @ a
    closed = a + b @ K
    if not np.max(np.abs(np.linalg.eigvals(closed))) < 1.0:
        raise _unsteered()
    powers = np.empty((steps, *a.shape))
    powers[0] = np.eye(len(a))
    for k in range(1, steps):
        powers[k] = closed.T @ powers[k - 1]
    powers[-1] = np.linalg.solve(np.eye(len(a)) - closed.T, powers[-1])
    of_references, of_drifts = to_input @ powers @ (c.T @ q), -to_input @ powers @ S
    offsets = np.arange(1.0, steps + 1.0)
    return PreviewGains(*(read_only(part) for part in (K, S, closed, offsets, of_references, of_drifts)))


def _checked(A: ArrayLike, B: ArrayLike, C: ArrayLike, Q: ArrayLike, R: ArrayLike) -> tuple[Vector, ...]:
    b = matrix("B", B, (None, None))
    n, m = b.shape
    c = matrix("C", C, (None, n))
    return matrix("A", A, (n, n)), b, c, weight("Q", Q, len(c)), weight("R", R, m, definite=True)


def _solve(solver: Callable[..., Vector], a: Vector, b: Vector, q: Vector, r: Vector) -> Vector:
    try:
        S: Vector = solver(a, b, q, r)
    except np.linalg.LinAlgError:
        raise _unsteered() from None
    return 0.5 * (S + S.T)


def _unsteered() -> InputError:
    return InputError(
        "A, B, C, Q",
        got="a system without a stable optimal law",
        expected="unstable and marginal modes that the inputs reach and the weighted outputs show",
        remedy="weigh an output that shows them, or leave them out",
    )
