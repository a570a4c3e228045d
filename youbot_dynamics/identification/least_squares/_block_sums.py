"""Sums of a linear model H p = b over blocks of time: computed in one pass, mergeable, small.

A block of 1 s stores H'H, H'b and b'b instead of its rows. The sums of parts of a recording, or of several recordings,
add up to the sums of the whole in any order. The blocks are kept separate, because residuals within a block are
correlated and only the scatter between blocks shows the uncertainty of an estimate (`least_squares`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Indices, Vector, array
from youbot_dynamics.compiled import HAVE_NUMBA, compiled
from youbot_dynamics.errors import InputError

BLOCK = 1.0  # [s]
_BLOCKS_A_RECORDING = 1 << 40  # keeps the keys of two recordings distinct


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a linear model H p = b; several rows may share a time.

    Raises:
        InputError: shapes that do not fit, values that are not finite, or a block that is not positive.
    """

    time: Vector  # (n,) time of each row [s], on any clock of the recording; determines its block
    regressors: Vector  # (n, p) H
    target: Vector  # (n,) b
    # (n, p) instruments Z, correlated with H but not with its noise: p then solves Z'H p = Z'b. None for Z = H
    instruments: Vector | None = None
    recording: int = 0  # number of the recording, so that blocks of two recordings stay separate
    # Duration of a block [s], the same for all rows of a recording: several correlation times of the residual
    block: float = BLOCK

    def __post_init__(self) -> None:
        """Check the shapes."""
        regressors = array("regressors", self.regressors, (None, None))
        n, p = regressors.shape
        checked = {
            "regressors": regressors,
            "time": array("time", self.time, (n,)),
            "target": array("target", self.target, (n,)),
        }
        if self.instruments is not None:
            checked["instruments"] = array("instruments", self.instruments, (n, p))
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not self.block > 0.0:
            raise InputError("block", got=f"{self.block:g}", expected="a positive duration [s]")

    def keys(self) -> Indices:
        """Key (n,) of the block of each row, see `recordings_of`."""
        return np.floor(self.time / self.block).astype(np.int64) + self.recording * _BLOCKS_A_RECORDING


def recordings_of(keys: Indices) -> Indices:
    """Numbers (k,) of the recordings of blocks with keys (k,)."""
    return (keys + _BLOCKS_A_RECORDING // 2) // _BLOCKS_A_RECORDING


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums over the k blocks of some rows with p unknowns; arrays are read-only."""

    keys: Indices  # (k,) block numbers, increasing
    rows: Indices  # (k,) rows in each block
    gram: Vector  # (k, (p + 1)(p + 2)/2) upper triangles, row by row, of [H b]'[H b]
    cross: Vector | None = None  # (k, p, p + 1) Z'[H b] of the instruments, None without instruments

    def __post_init__(self) -> None:
        """Lock the arrays."""
        for value in (self.keys, self.rows, self.gram, self.cross):
            if value is not None:
                value.setflags(write=False)

    def __len__(self) -> int:
        """Number of blocks k."""
        return len(self.keys)

    @property
    def unknowns(self) -> int:
        """Number p of unknowns."""
        return (math.isqrt(8 * self.gram.shape[1] + 1) - 3) // 2  # a triangle of w rows has w (w + 1) / 2 numbers

    def squares(self) -> Vector:
        """Matrices (k, p + 1, p + 1) of [H b]'[H b]."""
        width = self.unknowns + 1
        full = np.empty((len(self), width, width))
        for place, (i, j) in enumerate(zip(*np.triu_indices(width), strict=True)):
            full[:, i, j] = full[:, j, i] = self.gram[:, place]
        return full

    def products(self) -> Vector:
        """Matrices (k, p, p + 1) of Z'[H b]; of H'[H b] without instruments."""
        return self.squares()[:, :-1] if self.cross is None else self.cross

    def combined(self, matrix: Vector) -> BlockSums:
        """Sums of the same rows for q unknowns whose columns, and instruments, are H @ matrix, (p, q)."""
        p, q = matrix.shape
        bordered = np.zeros((p + 1, q + 1))
        bordered[:p, :q], bordered[p, q] = matrix, 1.0
        squares = np.einsum("pi,kpr,rj->kij", bordered, self.squares(), bordered, optimize=True)
        i, j = np.triu_indices(q + 1)
        cross = None
        if self.cross is not None:
            cross = np.einsum("pi,kpr,rj->kij", matrix, self.cross, bordered, optimize=True)
        return BlockSums(self.keys, self.rows, squares[:, i, j], cross)


@compiled
def _add_outer(places: Indices, left: Vector, right: Vector, triangle: bool, sums: Vector) -> None:
    """Add left[i] right[i]' to row places[i] of sums (k, m), in place: the whole matrix or its upper triangle."""
    for i in range(left.shape[0]):
        total = sums[places[i]]
        place = 0
        for j in range(left.shape[1]):
            factor = left[i, j]
            for c in range(j if triangle else 0, right.shape[1]):
                total[place] += factor * right[i, c]
                place += 1


def accumulate(rows: Rows) -> BlockSums:
    """Sums of rows in one pass and any order; `merge` joins a block that is split between two pieces."""
    keys, places = _sorted_out(rows.keys())
    table = np.column_stack([rows.regressors, rows.target])
    upper = np.triu_indices(table.shape[1])
    counts = np.bincount(places, minlength=len(keys)).astype(np.int64)
    gram = np.zeros((len(keys), len(upper[0])))
    shape = (len(keys), rows.regressors.shape[1], table.shape[1])
    cross = None if rows.instruments is None else np.zeros(shape)
    if HAVE_NUMBA:
        _add_outer(places, table, table, True, gram)
        if cross is not None and rows.instruments is not None:
            _add_outer(places, rows.instruments, table, False, cross.reshape(shape[0], shape[1] * shape[2]))
        return BlockSums(keys, counts, gram, cross)
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(counts)
    for k, (first, last) in enumerate(zip(ends - counts, ends, strict=True)):
        members = order[first:last]
        part = table[members]
        gram[k] = (part.T @ part)[upper]
        if cross is not None and rows.instruments is not None:
            cross[k] = rows.instruments[members].T @ part
    return BlockSums(keys, counts, gram, cross)


def _sorted_out(keys: Indices) -> tuple[Indices, NDArray[np.intp]]:
    """Distinct keys, increasing, and the index (n,) of each of `keys` (n,) among them; sorts only if not in order."""
    steps = np.diff(keys)
    if np.any(steps < 0):
        distinct, places = np.unique(keys, return_inverse=True)
        return distinct, places
    begins = np.concatenate([np.ones(min(1, len(keys)), dtype=bool), steps > 0])
    return keys[begins], np.cumsum(begins) - 1


def merge(parts: Sequence[BlockSums]) -> BlockSums:
    """Sums of all the rows behind `parts`, in any order and grouping.

    Raises:
        InputError: no parts, or sums of different models.
    """
    kinds = {(part.gram.shape[1], part.cross is None) for part in parts}
    if len(kinds) != 1:
        raise InputError("parts", got=f"sums of {len(kinds)} models", expected="sums of one model, at least one")
    keys, places = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    rows = np.zeros(len(keys), dtype=np.int64)
    np.add.at(rows, places, np.concatenate([part.rows for part in parts]))
    gram = _added(places, len(keys), [part.gram for part in parts])
    crosses = [part.cross for part in parts if part.cross is not None]
    cross = _added(places, len(keys), crosses) if crosses else None
    return BlockSums(keys, rows, gram, cross)


def _added(places: NDArray[np.intp], count: int, parts: Sequence[Vector]) -> Vector:
    """Add up the stacked rows of the parts by their index."""
    stacked = np.concatenate(parts)
    total = np.zeros((count, *stacked.shape[1:]))
    np.add.at(total, places, stacked)
    return total
