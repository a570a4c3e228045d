"""Solve small symmetric positive definite systems in place: M = L D L'."""

from __future__ import annotations

from typing import Any

from youbot_dynamics.compiled import compiled

# A pivot no larger than this part of what it was taken from is rounding: about 4 digits would be left of it.
ROUNDING = 1e-12


@compiled
def factor(matrix: Any, n: int) -> bool:
    """Replace the leading n x n part of matrix (m, m) by its factors: L below the diagonal, D on it.

    Cholesky's recursion without square roots.

    Returns:
        False where a pivot is not positive, beyond rounding of its diagonal element; the matrix is then half done.
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
    """Replace the first n elements of vector (m,) by M^-1 vector, factors (m, m) from `factor`: two substitutions."""
    for row in range(n):
        for k in range(row):
            vector[row] -= factors[row, k] * vector[k]
    for row in range(n):
        vector[row] /= factors[row, row]
    for row in range(n - 1, -1, -1):
        for k in range(row + 1, n):
            vector[row] -= factors[k, row] * vector[k]
