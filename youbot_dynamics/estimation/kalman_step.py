"""Compiled steps of a Kalman filter that keep a covariance symmetric and positive."""

from __future__ import annotations

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled


@compiled
def correct(covariance: Vector, row: Vector, variance: float, shift: Vector, gain: Vector) -> None:
    """Update of Joseph by one number: P+ = (1 - k h) P (1 - k h)' + k r k', k = P h' / s, s = h P h' + r.

    In this form rounding, or a gain that is not quite right, leaves P+ positive; seed 001 gives none (system 13).

    Args:
        covariance: P (m, m), changed.
        row: h (m,).
        variance: r, above 0.
        shift: P h' (m,), which the caller has.
        gain: k (m,), which the caller has.
    """
    m = len(gain)
    for i in range(m):
        factor = gain[i]
        for j in range(m):
            covariance[i, j] -= factor * shift[j]
    for i in range(m):
        left = 0.0
        for j in range(m):
            left += covariance[i, j] * row[j]
        left -= gain[i] * variance
        for j in range(m):
            covariance[i, j] -= left * gain[j]
    even_out(covariance, m)


@compiled
def correct_sparsely(
    covariance: Vector, first: int, weight: float, second: int, variance: float, shift: Vector, gain: Vector
) -> None:
    """`correct` for a row h that is 1 at `first`, `weight` at `second` and 0 elsewhere.

    It leaves P symmetric but for rounding: `even_out` is the caller's, once a message.

    Args:
        covariance: P (m, m), changed.
        first: place of the 1.
        weight: the other number.
        second: its place.
        variance: r, above 0.
        shift: P h' (m,).
        gain: k (m,).
    """
    m = len(gain)
    for i in range(m):
        a = covariance[i, first] - gain[i] * shift[first]
        b = covariance[i, second] - gain[i] * shift[second]
        # k (P h')' and the rest of Joseph's form in one, since P h' = k s.
        both = shift[i] + a + weight * b - gain[i] * variance
        for j in range(m):
            covariance[i, j] -= both * gain[j]


@compiled
def even_out(covariance: Vector, m: int) -> None:
    """Make the leading m rows and columns of P (n, n) exactly symmetric."""
    for i in range(m):
        for j in range(i):
            mean = 0.5 * (covariance[i, j] + covariance[j, i])
            covariance[i, j] = mean
            covariance[j, i] = mean
