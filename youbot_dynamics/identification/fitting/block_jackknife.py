"""Covariance of a linear least-squares fit whose residual is correlated in time: leave out block after block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

BLOCK = 0.8  # [s] several times the memory of the residual (0.1-0.3 s): blocks are taken as independent
_WORST_CONDITION = 1e10  # of the normal equations with scaled columns


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Spread of the coefficients of a fit.

    Args:
        covariance: (p, p), infinite throughout where a block carries all there is to know of a coefficient.
        freedom: degrees of freedom for Student's t.
    """

    covariance: Vector
    freedom: int


def block_jackknife(columns: Vector, residual: Vector, time: Vector, length: float = BLOCK) -> Jackknife:
    """Covariance (B - 1) / B sum_b (x_b - x)(x_b - x)', x_b the fit without block b of B.

    Plain covariances take samples as independent and are several times too small on correlated residuals.

    Args:
        columns: (m, p) linearised model.
        residual: (m,).
        time: (m,) [s], not decreasing.
        length: of a block [s].
    """
    size = columns.shape[1]
    unknown = Jackknife(np.full((size, size), np.inf), 1)
    norms = np.linalg.norm(columns, axis=0)
    if np.any(norms == 0.0):
        return unknown
    scaled = columns / norms
    block = np.floor((time - time[0]) / length).astype(int)
    # A last block of a few samples would count like a full one.
    block = np.minimum(block, max(1, round((time[-1] - time[0]) / length)) - 1)
    ends = np.concatenate([[0], np.flatnonzero(np.diff(block)) + 1, [len(block)]])
    normals, moments = [], []
    for first, last in zip(ends[:-1], ends[1:], strict=True):
        part = scaled[first:last]
        normals.append(part.T @ part)
        moments.append(part.T @ residual[first:last])
    normal, moment = np.sum(normals, axis=0), np.sum(moments, axis=0)
    rest = normal - np.array(normals)
    if np.linalg.cond(normal) > _WORST_CONDITION or np.max(np.linalg.cond(rest)) > _WORST_CONDITION:
        return unknown
    without = np.linalg.solve(rest, (moment - np.array(moments))[:, :, None])[:, :, 0]
    spread = without - np.linalg.solve(normal, moment)
    count = len(normals)
    covariance = (count - 1) / count * (spread.T @ spread) / np.outer(norms, norms)
    return Jackknife(covariance, max(1, count - size))
