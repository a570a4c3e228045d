"""Triangular factor of a tall matrix of rows, chunk by chunk: the condition of H instead of its square."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.identification.fitting.block_sums import Rows

Vector = NDArray[np.float64]

_CHUNK = 4096  # rows


def triangular_factor(
    pieces: Iterable[Rows],
    keys: NDArray[np.int64],
    weights: Vector,
    columns: NDArray[np.intp],
    lengths: Vector,
) -> Vector:
    """Factor R of the QR decomposition of [H b], or of [Z H b] with instruments, one chunk of rows after the other.

    R'R are the weighted products of the block sums, but no product is ever formed.

    Args:
        pieces: all rows, in pieces.
        keys: (k,) block numbers, increasing; rows of other blocks are left out.
        weights: (k,) of the blocks.
        columns: (q,) unknowns that take part.
        lengths: (q,) their columns are divided by these.

    Returns:
        R (m, m) with m = q + 1, or 2 q + 1 with instruments.
    """
    factor: Vector | None = None
    for piece in pieces:
        numbers = piece.keys()
        places = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
        known = keys[places] == numbers
        share = np.sqrt(weights[places[known]])[:, None]
        parts = [piece.regressors[known][:, columns] / lengths, piece.target[known][:, None]]
        if piece.instruments is not None:
            parts.insert(0, piece.instruments[known][:, columns] / lengths)
        table = np.hstack(parts) * share
        width = table.shape[1]
        factor = np.zeros((width, width)) if factor is None else factor
        for first in range(0, len(table), _CHUNK):
            stacked = np.vstack([factor, table[first : first + _CHUNK]])
            factor = np.asarray(np.linalg.qr(stacked, mode="r"), dtype=np.float64)
    if factor is None:
        return np.zeros((len(columns) + 1, len(columns) + 1))
    return factor
