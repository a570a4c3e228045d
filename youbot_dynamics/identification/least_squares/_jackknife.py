"""Solution of normal equations, and its covariance from the scatter between blocks of time.

Residuals of a robot are correlated over a good part of a second: the textbook covariance for independent samples is
several times too small. This is the only covariance of the identification that comes from data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.identification.least_squares._block_sums import Rows, accumulate

_NO_PRODUCT = 1e-12  # ratio to the largest singular value of products below which a direction is undetermined
_TIED = 0.05  # component in an undetermined direction above which an unknown is undetermined
# Weight of the covariance of neighbouring blocks: equivalent to blocks taken in pairs, averaged over both pairings.
_NEIGHBOUR = 0.5
_CARRIER = 0.5  # leverage of a block above which the other blocks are checked for information
_NOTHING_LEFT = 1e-6  # relative smallest singular value below which the other blocks hold no information


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of the scaled equations."""

    values: Vector  # (q,) scaled
    tied: Flags  # (q,) whether an unknown is part of an undetermined direction
    rank: int  # number of determined directions
    condition: float  # scaled condition number of H


def solve(matrix: Vector, target: Vector, nothing: float = _NO_PRODUCT, *, squared: bool) -> Solution:
    """Minimum-norm solution of matrix (q, q) p = target (q,); `squared` if matrix is a product H'H.

    Directions whose singular value is below `nothing` times the largest are undetermined.
    """
    if not len(target):
        return Solution(np.zeros(0), np.zeros(0, dtype=bool), 0, 1.0)
    left, strength, right = np.linalg.svd(matrix)
    measured = strength > nothing * strength[0]
    tied = np.any(np.abs(right[~measured]) > _TIED, axis=0)
    values = right[measured].T @ ((left[:, measured].T @ target) / strength[measured])
    ratio = float(strength[0] / strength[-1]) if strength[-1] > 0.0 else math.inf
    condition = math.sqrt(ratio) if squared else ratio
    return Solution(values, tied, int(np.count_nonzero(measured)), condition)


def jackknife(products: Vector, weights: Vector, solution: Solution, neighbours: Flags) -> Vector:
    """Covariance (q, q) of the scaled values: solve without each block in turn, for weights (k,).

    (k - 1)/k times the sum of squared changes of the values, plus half of the products of neighbouring blocks
    (Bartlett weights), since residuals are correlated across block borders. Infinite if one block carries all
    information, NaN for tied unknowns.

    Args:
        products: (k, q, q + 1) of Z'[H b] of the blocks, or H'[H b].
        weights: (k,) of the blocks.
        solution: of the weighted sum of the products.
        neighbours: (k - 1,) whether residuals are correlated across the border between a block and the next.
    """
    squares, targets = products[:, :, :-1], products[:, :, -1]
    left, strength, right = np.linalg.svd(np.tensordot(weights, squares, 1))
    left, right = left[:, : solution.rank], right[: solution.rank].T
    # Directions that QR resolves but the products do not: their uncertainty is large.
    lost = strength[: solution.rank] < _NO_PRODUCT * strength[:1]
    infinite = np.any(np.abs(right[:, lost]) > _TIED, axis=1)
    left, right = left[:, ~lost], right[:, ~lost]
    matrices = weights[:, None, None] * (left.T @ squares @ right)
    scores = (weights[:, None] * (targets - squares @ solution.values)) @ left
    whole = matrices.sum(axis=0)
    leverage = np.linalg.solve(whole, matrices)
    others = whole - matrices
    carriers = np.flatnonzero(np.trace(leverage, axis1=1, axis2=2) > _CARRIER)
    rest = np.eye(len(whole)) - leverage[carriers]
    empty = np.any(np.linalg.svd(rest, compute_uv=False) < _NOTHING_LEFT, axis=1)
    for k, matrix in zip(carriers[empty], rest[empty], strict=True):
        _, left_over, directions = np.linalg.svd(matrix)
        for direction in directions[left_over < _NOTHING_LEFT]:
            infinite |= np.abs(right @ direction) > _TIED
            others[k] = whole
    moved = np.linalg.solve(others, scores[:, :, None])[:, :, 0] @ right.T
    count = len(weights)
    covariance: Vector = moved.T @ moved
    pairs = np.flatnonzero(neighbours)
    shared = moved[pairs].T @ moved[pairs + 1]
    covariance = (covariance + _NEIGHBOUR * (shared + shared.T)) * ((count - 1) / count)
    covariance[infinite, infinite] = math.inf
    covariance[solution.tied, :] = covariance[:, solution.tied] = math.nan
    return covariance


def block_covariance(rows: Rows) -> tuple[Vector, int]:
    """Covariance (p, p) of the solution of rows whose blocks are independent of each other, and degrees of freedom.

    Infinite throughout if the rows do not determine a value, or only one block does.
    """
    sums = accumulate(rows)
    count, size = len(sums), sums.unknowns
    lengths = np.linalg.norm(rows.regressors, axis=0)
    if np.all(lengths > 0.0):
        products = sums.products() / np.outer(lengths, np.append(lengths, 1.0))
        total = products.sum(axis=0)
        solution = solve(total[:, :-1], total[:, -1], squared=True)
        covariance = jackknife(products, np.ones(count), solution, np.zeros(count - 1, dtype=bool))
        if np.all(np.isfinite(covariance)):
            return covariance / np.outer(lengths, lengths), max(1, count - size)
    return np.full((size, size), np.inf), 1


def covariance_of_scores(columns: Vector, scores: Vector) -> tuple[Vector, int]:
    """Covariance (p, p) of a fit by columns (n, p) whose rows overlap in time, and degrees of freedom.

    Overlapping rows belong to no block, but the b blocks have parts of the scores columns'residual, scores (b, p).
    Infinite throughout if there are as few blocks as values: their scatter lacks directions, and is 0 there.
    """
    count, size = scores.shape
    freedom = max(1, count - size)
    if count <= size:
        return np.full((size, size), np.inf), freedom
    lengths = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    scaled = columns / lengths
    influence = (scores / lengths) @ np.linalg.pinv(scaled.T @ scaled)
    covariance: Vector = count / freedom * (influence.T @ influence) / np.outer(lengths, lengths)
    return covariance, freedom
