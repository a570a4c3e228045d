"""Arithmetic of a least squares fit on block sums: column scaling, robust weights, jackknife, bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.least_squares._block_sums import recordings_of

# Ratio to the largest singular value below which a direction is undetermined: of products, of a factor.
_NO_PRODUCT = 1e-12
_NO_FACTOR = 1e-10
_TIED = 0.05  # component in an undetermined direction above which an unknown is undetermined
_TOLERATED = 3.0  # multiple of the median residual of the blocks up to which a block has the weight 1
# Weight of the covariance of neighbouring blocks: equivalent to blocks taken in pairs, averaged over both pairings.
_NEIGHBOUR = 0.5
_ROUNDS = 50
_SETTLED = 1e-9  # largest change of a weight at convergence
_CARRIER = 0.5  # leverage of a block above which the other blocks are checked for information
_NOTHING_LEFT = 1e-6  # relative smallest singular value below which the other blocks hold no information


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of the scaled equations."""

    values: Vector  # (q,) scaled
    tied: NDArray[np.bool_]  # (q,) whether an unknown is part of an undetermined direction
    rank: int  # number of determined directions
    condition: float  # scaled condition number of H


@dataclass(frozen=True, eq=False)
class ScaledModel:
    """Block sums of the excited unknowns, columns divided by their length over the whole recording."""

    squares: Vector  # (k, q + 1, q + 1) of [H b]'[H b]
    products: Vector  # (k, q, q + 1) of Z'[H b]
    rows: NDArray[np.int64]  # (k,) rows in each block
    keys: NDArray[np.int64]  # (k,) keys of the blocks; neighbours in time are adjacent

    def _total(self, weights: Vector) -> Vector:
        """Weighted sum (q, q + 1) of the products over the blocks, weights (k,)."""
        total: Vector = np.einsum("k,kij->ij", weights, self.products)
        return total

    def solve(self, weights: Vector) -> Solution:
        """Solve the weighted equations, weights (k,); undetermined directions stay 0."""
        total = self._total(weights)
        return _solve(total[:, :-1], total[:, -1], _NO_PRODUCT, squared=True)

    def residual_power(self, values: Vector) -> Vector:
        """|H p - b|^2 of each block (k,) for scaled values (q,)."""
        against = np.append(-values, 1.0)
        power: Vector = np.maximum(np.einsum("i,kij,j->k", against, self.squares, against, optimize=True), 0.0)
        return power

    def robust_weights(self) -> Vector:
        """Weights (k,): 1 up to 3 times the median residual of the blocks, then its inverse square; iterated."""
        weights = np.ones(len(self.rows))
        for _ in range(_ROUNDS):
            residual = np.sqrt(self.residual_power(self.solve(weights).values) / self.rows)
            fair = _TOLERATED * float(np.median(residual))
            with np.errstate(divide="ignore"):
                better = np.minimum(1.0, (fair / residual) ** 2) if fair > 0.0 else np.ones(len(residual))
            change = float(np.max(np.abs(better - weights)))
            weights = better
            if change < _SETTLED:
                break
        return weights

    def jackknife(self, weights: Vector, solution: Solution) -> Vector:
        """Covariance (q, q) of the scaled values: solve without each block in turn, for weights (k,).

        (k - 1)/k times the sum of squared changes of the values, plus half of the products of neighbouring blocks
        (Bartlett weights), since residuals are correlated across block borders. Infinite if one block carries all
        information, NaN for tied unknowns.
        """
        products, targets = self.products[:, :, :-1], self.products[:, :, -1]
        left, strength, right = np.linalg.svd(np.einsum("k,kij->ij", weights, products))
        left, right = left[:, : solution.rank], right[: solution.rank].T
        # Directions that QR resolves but the products do not: their uncertainty is large.
        lost = strength[: solution.rank] < _NO_PRODUCT * strength[:1]
        infinite = np.any(np.abs(right[:, lost]) > _TIED, axis=1)
        left, right = left[:, ~lost], right[:, ~lost]
        matrices = np.einsum("k,ia,kij,jb->kab", weights, left, products, right, optimize=True)
        scores = (weights[:, None] * (targets - products @ solution.values)) @ left
        whole = matrices.sum(axis=0)
        leverage = np.linalg.solve(whole, matrices)
        rest = whole - matrices
        for k in np.flatnonzero(np.trace(leverage, axis1=1, axis2=2) > _CARRIER):
            _, left_over, directions = np.linalg.svd(np.eye(len(whole)) - leverage[k])
            for direction in directions[left_over < _NOTHING_LEFT]:
                infinite |= np.abs(right @ direction) > _TIED
                rest[k] = whole
        moved = np.linalg.solve(rest, scores[:, :, None])[:, :, 0] @ right.T
        count = len(weights)
        covariance: Vector = moved.T @ moved
        neighbours = np.flatnonzero(np.diff(self.keys) == 1)
        shared = moved[neighbours].T @ moved[neighbours + 1]
        covariance = (covariance + _NEIGHBOUR * (shared + shared.T)) * ((count - 1) / count)
        covariance[infinite, infinite] = math.inf
        covariance[solution.tied, :] = covariance[:, solution.tied] = math.nan
        return covariance

    def alone(self, weights: Vector, spare: int) -> list[tuple[Vector, Vector]]:
        """Scaled values (q,) and covariance (q, q) from each recording alone, NaN for undetermined ones.

        Args:
            weights: (k,) of the blocks.
            spare: smallest number of blocks beyond the unknowns for a recording to be included.
        """
        numbers = recordings_of(self.keys)
        found = []
        for number in np.unique(numbers):
            own = numbers == number
            part = ScaledModel(self.squares[own], self.products[own], self.rows[own], self.keys[own])
            solution = part.solve(weights[own])
            if np.count_nonzero(own) >= solution.rank + spare:
                values = np.where(solution.tied, np.nan, solution.values)
                found.append((values, part.jackknife(weights[own], solution)))
        return found

    def solve_within(self, weights: Vector, free_values: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        """Values (q,) within bounds (q,), and the values (q,) before each was set to its bound.

        The unbounded solution, by products or QR, is kept if no value exceeds its bounds. Otherwise values are set to
        their bounds, worst first, and the others are solved again from the products.
        """
        total = self._total(weights)
        values, asked = free_values.copy(), free_values.copy()
        free = np.ones(len(values), dtype=bool)
        while True:
            beyond = np.where(free, np.maximum(low - values, values - high), 0.0)
            if not len(values) or np.max(beyond) <= 0.0:
                return values, asked
            worst = int(np.argmax(beyond))
            free[worst] = False
            values[worst] = low[worst] if values[worst] < low[worst] else high[worst]
            held = total[free][:, :-1][:, ~free] @ values[~free]
            reduced = _solve(total[free][:, :-1][:, free], total[free, -1] - held, _NO_PRODUCT, squared=True)
            values[free] = reduced.values
            asked[free] = reduced.values


def solve_triangular(factor: Vector, count: int) -> Solution:
    """Solve for q = `count` scaled unknowns from the triangular factor of [H b], or of [Z H b].

    With instruments Z = Q1 Rz, H = Q1 Rzh + Q2 (..): Z'H p = Z'b becomes Rzh p = Rzb on the range of Rz. The factor is
    (q + 1, q + 1) or (2 q + 1, 2 q + 1).
    """
    if len(factor) == count + 1:
        return _solve(factor[:count, :count], factor[:count, count], _NO_FACTOR, squared=False)
    left, strength, _ = np.linalg.svd(factor[:count, :count])
    kept = left[:, strength > _NO_FACTOR * strength[0]].T if count else left
    matrix, target = np.zeros((count, count)), np.zeros(count)
    matrix[: len(kept)] = kept @ factor[:count, count : 2 * count]
    target[: len(kept)] = kept @ factor[:count, -1]
    return _solve(matrix, target, _NO_FACTOR, squared=False)


def _solve(matrix: Vector, target: Vector, nothing: float, *, squared: bool) -> Solution:
    """Minimum-norm solution of matrix (q, q) p = target (q,); `squared` if matrix is a product H'H."""
    if not len(target):
        return Solution(np.zeros(0), np.zeros(0, dtype=bool), 0, 1.0)
    left, strength, right = np.linalg.svd(matrix)
    measured = strength > nothing * strength[0]
    tied = np.any(np.abs(right[~measured]) > _TIED, axis=0)
    values = right[measured].T @ ((left[:, measured].T @ target) / strength[measured])
    ratio = float(strength[0] / strength[-1]) if strength[-1] > 0.0 else math.inf
    condition = math.sqrt(ratio) if squared else ratio
    return Solution(values, tied, int(np.count_nonzero(measured)), condition)
