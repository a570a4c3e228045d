"""Linear least squares from block sums, with intervals and verdicts.

Columns are scaled to equal length, and blocks with large residuals get a small weight. Intervals come from the scatter
between blocks: residuals of a robot are correlated over a good part of a second, and the textbook covariance for
independent samples is several times too small.

Source: system 36; document 003, whose (H'H)^-1 H'b is the unscaled solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.least_squares import _verdict as verdict
from youbot_dynamics.identification.least_squares._block_sums import BlockSums, Rows, accumulate, merge, recordings_of
from youbot_dynamics.identification.least_squares._jackknife import Solution, jackknife, solve
from youbot_dynamics.identification.least_squares._reason import Kind, Reason
from youbot_dynamics.identification.least_squares._recordings import Within, student
from youbot_dynamics.identification.least_squares._verdict import Estimate, Unknown

_SILENT = 1e-4  # share of a regressor's power that its instrument must explain; below it was not excited
_NO_FACTOR = 1e-10  # ratio to the largest singular value of a factor below which a direction is undetermined
_TOLERATED = 3.0  # multiple of the median residual of the blocks up to which a block has the weight 1
_ROUNDS = 50
_SETTLED = 1e-6  # change of a weight at convergence; 1e-12 moves values of a disturbed arm by 1e-7 of their errors


@dataclass(frozen=True, eq=False)
class ScaledModel:
    """Block sums of the excited unknowns, columns divided by their length over the whole recording."""

    squares: Vector  # (k, q + 1, q + 1) of [H b]'[H b]
    products: Vector  # (k, q, q + 1) of Z'[H b]
    rows: NDArray[np.int64]  # (k,) rows in each block
    keys: NDArray[np.int64]  # (k,) keys of the blocks; neighbours in time are adjacent
    used: NDArray[np.intp]  # (q,) indices of the excited unknowns among all p
    lengths: Vector  # (q,) of their columns
    size: int  # p

    @classmethod
    def of(cls, sums: BlockSums) -> ScaledModel:
        """Model of the unknowns that move the regressors, and with instruments are explained by these."""
        squares, products, p = sums.squares(), sums.products(), sums.unknowns
        lengths = np.sqrt(np.einsum("kii->i", squares)[:-1])
        explained = np.einsum("kii->i", products[:, :, :p])
        used = np.flatnonzero((lengths > 0.0) & (explained > _SILENT * lengths**2))
        kept, scale = np.append(used, p), np.append(lengths[used], 1.0)
        return cls(
            squares[:, kept[:, None], kept] / np.outer(scale, scale),
            products[:, used[:, None], kept] / np.outer(lengths[used], scale),
            sums.rows,
            sums.keys,
            used,
            lengths[used],
            p,
        )

    def unscaled(self, values: Vector, missing: float = math.nan) -> Vector:
        """Values (p,) of all unknowns from scaled ones (q,)."""
        full = np.full(self.size, missing)
        full[self.used] = values / self.lengths
        return full

    def unscaled_covariance(self, covariance: Vector) -> Vector:
        """Covariance (p, p) of all unknowns from that of scaled ones (q, q), NaN where not excited."""
        full = np.full((self.size, self.size), math.nan)
        full[np.ix_(self.used, self.used)] = covariance / np.outer(self.lengths, self.lengths)
        return full

    def _total(self, weights: Vector) -> Vector:
        """Weighted sum (q, q + 1) of the products over the blocks, weights (k,)."""
        return np.asarray(np.tensordot(weights, self.products, 1))

    def solve(self, weights: Vector) -> Solution:
        """Solve the weighted equations, weights (k,); undetermined directions stay 0."""
        total = self._total(weights)
        return solve(total[:, :-1], total[:, -1], squared=True)

    def residual_power(self, values: Vector) -> Vector:
        """|H p - b|^2 of each block (k,) for scaled values (q,)."""
        against = np.append(-values, 1.0)
        return np.asarray(np.maximum(self.squares @ against @ against, 0.0))

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

    def covariance(self, weights: Vector, solution: Solution) -> Vector:
        """Covariance (q, q) of the scaled values for weights (k,)."""
        return jackknife(self.products, weights, solution, np.diff(self.keys) == 1)

    def alone(self, weights: Vector, spare: int) -> list[tuple[Vector, Vector]]:
        """Scaled values (q,) and covariance (q, q) from each recording alone, NaN for undetermined ones.

        The blocks have weights (k,). A recording with fewer than `spare` blocks beyond the unknowns is left out. Empty
        for a single recording, which has no other to scatter from.
        """
        numbers = recordings_of(self.keys)
        distinct, fits = np.unique(numbers), []
        for number in distinct if len(distinct) > 1 else ():
            own = numbers == number
            part = replace(
                self,
                squares=self.squares[own],
                products=self.products[own],
                rows=self.rows[own],
                keys=self.keys[own],
            )
            solution = part.solve(weights[own])
            if np.count_nonzero(own) >= solution.rank + spare:
                values = np.where(solution.tied, np.nan, solution.values)
                fits.append((values, part.covariance(weights[own], solution)))
        return fits

    def solve_within(self, weights: Vector, free_values: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector]:
        """Values (q,) within bounds (q,), and the values (q,) before each was set to its bound.

        The unbounded solution, by products or QR, is kept if no value exceeds its bounds. Otherwise values are set to
        their bounds, worst first, and the others are solved again from the products.
        """
        total = self._total(weights)
        values, unbounded = free_values.copy(), free_values.copy()
        free = np.ones(len(values), dtype=bool)
        while True:
            beyond = np.where(free, np.maximum(low - values, values - high), 0.0)
            if not len(values) or np.max(beyond) <= 0.0:
                return values, unbounded
            worst = int(np.argmax(beyond))
            free[worst] = False
            values[worst] = low[worst] if values[worst] < low[worst] else high[worst]
            held = total[free][:, :-1][:, ~free] @ values[~free]
            reduced = solve(total[free][:, :-1][:, free], total[free, -1] - held, squared=True)
            values[free] = reduced.values
            unbounded[free] = reduced.values


def solve_triangular(factor: Vector, count: int) -> Solution:
    """Solve for q = `count` scaled unknowns from the triangular factor of [H b], or of [Z H b].

    With instruments Z = Q1 Rz, H = Q1 Rzh + Q2 (..): Z'H p = Z'b becomes Rzh p = Rzb on the range of Rz. The factor is
    (q + 1, q + 1) or (2 q + 1, 2 q + 1).
    """
    if len(factor) == count + 1:
        return solve(factor[:count, :count], factor[:count, count], _NO_FACTOR, squared=False)
    left, strength, _ = np.linalg.svd(factor[:count, :count])
    kept = left[:, strength > _NO_FACTOR * strength[0]].T if count else left
    matrix, target = np.zeros((count, count)), np.zeros(count)
    matrix[: len(kept)] = kept @ factor[:count, count : 2 * count]
    target[: len(kept)] = kept @ factor[:count, -1]
    return solve(matrix, target, _NO_FACTOR, squared=False)


_CHUNK = 4096  # rows


def _triangular_factor(
    pieces: Iterable[Rows],
    keys: NDArray[np.int64],
    weights: Vector,
    columns: NDArray[np.intp],
    lengths: Vector,
) -> Vector:
    """Factor R of the QR decomposition of [H b], or of [Z H b] with instruments, computed in chunks of rows.

    R'R equals the weighted products of the block sums, but no product is formed. Blocks have keys (k,) and weights
    (k,); rows of other blocks are left out. Only the unknowns `columns` (q,), divided by lengths (q,), take part. R is
    (m, m) with m = q + 1, or 2 q + 1 with instruments.
    """
    factor = np.zeros((len(columns) + 1, len(columns) + 1))
    for piece in pieces:
        numbers = piece.keys()
        places = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
        known = keys[places] == numbers
        share = np.sqrt(weights[places[known]])[:, None]
        parts = [piece.regressors[known][:, columns] / lengths, piece.target[known][:, None]]
        if piece.instruments is not None:
            parts.insert(0, piece.instruments[known][:, columns] / lengths)
        table = np.hstack(parts) * share
        if table.shape[1] != len(factor):  # the first piece with instruments
            factor = np.zeros((table.shape[1], table.shape[1]))
        for first in range(0, len(table), _CHUNK):
            stacked = np.vstack([factor, table[first : first + _CHUNK]])
            factor = np.asarray(np.linalg.qr(stacked, mode="r"), dtype=np.float64)
    return factor


# Scaled condition number of H above which the products H'H (condition squared) are too inaccurate.
_WORST_CONDITION = 1e3
_FEWEST_SPARE_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class Fit(verdict.ByName):
    """Solution of a linear model; arrays are read-only."""

    unknowns: tuple[Unknown, ...]  # p unknowns, with the negligible half-widths of those that are parts of a whole
    estimates: tuple[Estimate, ...]  # one per unknown, with interval and verdict
    values: Vector  # (p,) solution before any bound; NaN if the data do not determine it
    covariance: Vector  # (p, p) from the scatter between blocks and between recordings; NaN if undetermined
    within: Within  # the same without the scatter between recordings, and the estimates of each recording alone
    condition: float  # scaled condition number of H (with instruments, of Z'H) for the excited unknowns
    explained: float  # share of b'b that the model explains
    rows: int  # rows used
    weights: Vector  # (k,) of the blocks, 1 for a usual residual
    freedom: int  # degrees of freedom of Student's t for the intervals
    method: str  # "block sums" or "chunked QR"

    @property
    def correlation(self) -> Vector:
        """Correlation matrix (p, p) of the values."""
        return correlation(self.covariance)

    @property
    def active_bounds(self) -> tuple[str, ...]:
        """Names of the unknowns that were set to a physical bound; the bound hides the value of the data."""
        return tuple(estimate.name for estimate in self.estimates if estimate.bound is not None)

    def error_of(self, row: Vector) -> float:
        """Standard error of row (p,) @ values, including the scatter between recordings of this combination."""
        return self.within.error_of(row) * self.within.widening_of(row)

    def half_width(self, standard_error: float) -> float:
        """Half-width of the 95 % interval for that standard error."""
        return student(self.freedom) * standard_error

    def band(self, table: Vector) -> Vector:
        """Half-width (r,) of the 95 % band of table (r, p) @ values; undetermined unknowns add nothing to it."""
        variance = np.einsum("ri,ij,rj->r", table, np.nan_to_num(self.covariance), table)
        return np.asarray(self.half_width(1.0) * np.sqrt(np.maximum(variance, 0.0)))

    def combination(self, matrix: ArrayLike, unknowns: Sequence[Unknown]) -> tuple[Estimate, ...]:
        """Estimates of m linear combinations, matrix (m, p) @ values, with their own intervals and verdicts.

        A combination is undetermined if it has a nonzero coefficient of an undetermined unknown.

        Raises:
            InputError: a shape that does not fit.
        """
        rows = array("matrix", matrix, (len(unknowns), len(self.unknowns)))
        estimates = []
        for row, unknown in zip(rows, unknowns, strict=True):
            used = row != 0.0
            value = float(row[used] @ self.values[used])
            if not math.isfinite(value):
                lacking = [self.unknowns[int(j)].name for j in np.flatnonzero(used & np.isnan(self.values))]
                reason = Reason(Kind.DEPENDS, f"{', '.join(lacking)} is not determined")
                estimates.append(verdict.undetermined(unknown, reason))
                continue
            error = self.error_of(row)
            estimates.append(verdict.judge(unknown, value, error, self.half_width(error)))
        return tuple(estimates)


def least_squares(
    pieces: Sequence[Rows], unknowns: Sequence[Unknown], *, robust: bool = True, between: bool = True
) -> Fit:
    """Accumulate and fit rows of one model: `fit` of `accumulate`, with QR if needed.

    Raises:
        InputError: pieces of different models, or the number of unknowns differs from the columns.
        IdentificationError: fewer than p + 4 blocks.
    """
    sums = merge([accumulate(piece) for piece in pieces])
    return fit(sums, unknowns, lambda: pieces, robust=robust, between=between)


def fit(
    sums: BlockSums,
    unknowns: Sequence[Unknown],
    rows: Callable[[], Iterable[Rows]] | None = None,
    *,
    robust: bool = True,
    between: bool = True,
) -> Fit:
    """Solve H p = b by least squares, or Z'H p = Z'b with instruments, from sums over blocks.

    Weights: a block whose residual exceeds 3 times the median of all gets the weight (3 median / residual)^2, because a
    slipping wheel or a bump affects about a second, not one sample. Covariance: delete-a-block jackknife; for several
    recordings it is widened by the scatter between their separate estimates (`widening`). Bounds are the last resort,
    because they hide bias: the value is set to its bound, the others are solved again, and the estimate reports it.

    Args:
        sums: of the data.
        unknowns: the p unknowns in the order of the columns.
        rows: yields the data again in pieces; used only if the scaled condition number of H exceeds 1e3, to solve by
            QR. None: use only the sums.
        robust: False gives every block the weight 1.
        between: False leaves the scatter between recordings to the caller.

    Raises:
        InputError: the number of unknowns differs from the columns.
        IdentificationError: fewer than p + 4 blocks.
    """
    _check_size(sums, unknowns)
    model = ScaledModel.of(sums)
    weights = model.robust_weights() if robust else np.ones(len(sums))
    solution, method = model.solve(weights), "block sums"
    if solution.condition > _WORST_CONDITION and rows is not None:
        factor = _triangular_factor(rows(), sums.keys, weights, model.used, model.lengths)
        solution, method = solve_triangular(factor, len(model.used)), "chunked QR"
    values = model.unscaled(np.where(solution.tied, np.nan, solution.values))
    freedom, spare = max(1, len(sums) - len(model.used)), _FEWEST_SPARE_BLOCKS if between else len(sums) + 1
    alone = tuple((model.unscaled(own), model.unscaled_covariance(of)) for own, of in model.alone(weights, spare))
    within = Within(model.unscaled_covariance(model.covariance(weights, solution)), alone, freedom)
    covariance = within.widened()
    low = np.array([unknown.low for unknown in unknowns])[model.used] * model.lengths
    high = np.array([unknown.high for unknown in unknowns])[model.used] * model.lengths
    limited, free = model.solve_within(weights, solution.values, low, high)
    squares = sums.squares()
    unknowns = _resolved(unknowns, squares.sum(axis=0)[:-1, :-1], model.unscaled(limited, 0.0))
    unbounded = np.where(np.isfinite(values), model.unscaled(free), np.nan)
    estimates = _estimates(unknowns, unbounded, covariance, freedom, model.used)
    residual, target = float(weights @ model.residual_power(limited)), float(weights @ squares[:, -1, -1])
    return Fit(
        unknowns,
        estimates,
        read_only(values),
        read_only(covariance),
        within,
        solution.condition,
        1.0 - residual / target if target > 0.0 else math.nan,
        int(sums.rows.sum()),
        read_only(weights),
        freedom,
        method,
    )


def _check_size(sums: BlockSums, unknowns: Sequence[Unknown]) -> None:
    """Refuse another number of unknowns than columns, and too few blocks for them."""
    p, needed = sums.unknowns, sums.unknowns + _FEWEST_SPARE_BLOCKS
    if len(unknowns) != p:
        raise InputError("unknowns", got=f"{len(unknowns)} of them", expected=f"{p}, one per column")
    if len(sums) < needed:
        raise IdentificationError(
            ", ".join(unknown.name for unknown in unknowns),
            got=f"{len(sums)} usable time blocks",
            expected=f"{needed} or more",
            remedy="make a longer recording with more motion",
            kind=Kind.TOO_LITTLE_DATA,
            count=len(sums),
            needed=needed,
        )


def _resolved(unknowns: Sequence[Unknown], gram: Vector, values: Vector) -> tuple[Unknown, ...]:
    """Unknowns with the negligible half-widths of those that are parts of a whole; gram H'H (p, p), values (p,)."""
    resolved = []
    for j, unknown in enumerate(unknowns):
        if unknown.whole and gram[j, j] > 0.0:
            parts = np.array([other.whole == unknown.whole and not other.beside for other in unknowns]) * values
            effect = math.sqrt(max(0.0, float(parts @ gram @ parts)))
            negligible = verdict.NEGLIGIBLE * effect / math.sqrt(gram[j, j])
            # Of a motion that is rare in the data it would be a large width: no more than the unknown's own limit.
            unknown = replace(unknown, resolution=min(negligible, unknown.resolution or math.inf))
        resolved.append(unknown)
    return tuple(resolved)


def _estimates(
    unknowns: Sequence[Unknown], unbounded: Vector, covariance: Vector, freedom: int, used: NDArray[np.intp]
) -> tuple[Estimate, ...]:
    """Judged estimates of p unknowns with covariance (p, p).

    `unbounded` (p,) is the solution, other values within their bounds, NaN if undetermined; the data depend on
    the unknowns with indices `used` (q,).
    """
    excited = np.isin(np.arange(len(unknowns)), used)
    relatives = verdict.alike([unknown.name for unknown in unknowns], correlation(covariance))
    mixed = [unknown.name for j, unknown in enumerate(unknowns) if excited[j] and not np.isfinite(unbounded[j])]
    estimates = []
    for j, unknown in enumerate(unknowns):
        if not excited[j]:
            estimates.append(verdict.undetermined(unknown))
        elif not np.isfinite(unbounded[j]):
            others = ", ".join(name for name in mixed if name != unknown.name)
            reason = Reason(Kind.CONFUSED, f"it cannot be distinguished from {others} in these data")
            estimates.append(verdict.undetermined(unknown, reason))
        else:
            error = math.sqrt(float(covariance[j, j]))
            half_width = student(freedom) * error
            hint = verdict.confused(relatives[j])
            estimates.append(verdict.judge(unknown, float(unbounded[j]), error, half_width, hint))
    return tuple(estimates)


def correlation(covariance: Vector) -> Vector:
    """Correlation matrix (p, p) of a covariance (p, p); NaN where a variance is not finite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.sqrt(np.diag(covariance))
        return np.asarray(covariance / np.outer(errors, errors))
