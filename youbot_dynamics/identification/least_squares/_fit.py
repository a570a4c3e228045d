"""Linear least squares from block sums, with intervals and verdicts.

Columns are scaled to equal length, and blocks with large residuals get a small weight. Intervals come from the scatter
between blocks: residuals of a robot are correlated over a good part of a second, and the textbook covariance for
independent samples is several times too small.

Source: system 36; document 003, whose (H'H)^-1 H'b is the unscaled solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector, array, read_only
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.least_squares import _verdict as verdict
from youbot_dynamics.identification.least_squares._block_sums import BlockSums, Rows, accumulate, merge
from youbot_dynamics.identification.least_squares._recordings import Within, student
from youbot_dynamics.identification.least_squares._scaled_model import ScaledModel, solve_triangular
from youbot_dynamics.identification.least_squares._verdict import Estimate, Unknown

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
_SILENT = 1e-4  # share of a regressor's power that its instrument must explain; below it was not excited
_FEWEST_SPARE_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class Fit:
    """Solution of a linear model; arrays are read-only."""

    unknowns: tuple[Unknown, ...]  # p unknowns
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

    def __getitem__(self, name: str) -> Estimate:
        """Estimate of one unknown by its name."""
        return {estimate.name: estimate for estimate in self.estimates}[name]

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

    def reach(self, standard_error: float) -> float:
        """Half-width of the 95 % interval for that standard error."""
        return student(self.freedom) * standard_error

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
                estimates.append(verdict.undetermined(unknown, f"{', '.join(lacking)} is not determined"))
                continue
            error = self.error_of(row)
            estimates.append(verdict.judge(unknown, value, error, self.reach(error)))
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
    because they hide bias: the value is set to its bound, the other values are solved again, and the estimate reports
    it.

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
    p = sums.unknowns
    if len(unknowns) != p:
        raise InputError("unknowns", got=f"{len(unknowns)} of them", expected=f"{p}, one per column")
    if len(sums) < p + _FEWEST_SPARE_BLOCKS:
        raise IdentificationError(
            ", ".join(unknown.name for unknown in unknowns),
            got=f"{len(sums)} usable time blocks",
            expected=f"{p + _FEWEST_SPARE_BLOCKS} or more",
            remedy="make a longer recording with more motion",
        )
    squares, products = sums.squares(), sums.products()
    lengths = np.sqrt(np.einsum("kii->i", squares)[:-1])
    explained = np.einsum("kii->i", products[:, :, :p])
    excited = (lengths > 0.0) & (explained > _SILENT * lengths**2)
    used = np.flatnonzero(excited)
    kept, scale = np.append(used, p), np.append(lengths[used], 1.0)
    model = ScaledModel(
        squares[:, kept[:, None], kept] / np.outer(scale, scale),
        products[:, used[:, None], kept] / np.outer(lengths[used], scale),
        sums.rows,
        sums.keys,
    )
    weights = model.robust_weights() if robust else np.ones(len(sums))
    solution = model.solve(weights)
    method = "block sums"
    if solution.condition > _WORST_CONDITION and rows is not None:
        factor = _triangular_factor(rows(), sums.keys, weights, used, lengths[used])
        solution, method = solve_triangular(factor, len(used)), "chunked QR"
    values = np.full(p, np.nan)
    values[used] = np.where(solution.tied, np.nan, solution.values / lengths[used])
    freedom, spare = max(1, len(sums) - len(used)), _FEWEST_SPARE_BLOCKS if between else len(sums) + 1
    alone = []
    for own_values, own in [(solution.values, model.jackknife(weights, solution)), *model.alone(weights, spare)]:
        full_values, full = np.full(p, np.nan), np.full((p, p), np.nan)
        full_values[used] = own_values / lengths[used]
        full[np.ix_(used, used)] = own / np.outer(lengths[used], lengths[used])
        alone.append((full_values, full))
    within = Within(alone[0][1], tuple(alone[1:]), freedom)
    wider = np.array([within.widening_of(row) for row in np.eye(p)])
    covariance = within.covariance * np.outer(wider, wider)
    low = np.array([unknown.low for unknown in unknowns])[used] * lengths[used]
    high = np.array([unknown.high for unknown in unknowns])[used] * lengths[used]
    limited, scaled = model.solve_within(weights, solution.values, low, high)
    asked = np.full(p, np.nan)
    asked[used] = scaled / lengths[used]
    estimates = _estimates(unknowns, np.where(np.isfinite(values), asked, np.nan), covariance, freedom, excited)
    left, target = float(weights @ model.residual_power(limited)), float(weights @ squares[:, -1, -1])
    return Fit(
        tuple(unknowns),
        estimates,
        read_only(values),
        read_only(covariance),
        within,
        solution.condition,
        1.0 - left / target if target > 0.0 else math.nan,
        int(sums.rows.sum()),
        read_only(weights),
        freedom,
        method,
    )


def _estimates(
    unknowns: Sequence[Unknown], asked: Vector, covariance: Vector, freedom: int, excited: NDArray[np.bool_]
) -> tuple[Estimate, ...]:
    """Judged estimates of p unknowns with covariance (p, p).

    `asked` (p,) is the unbounded solution, other values within their bounds, NaN if undetermined; `excited` (p,) tells
    whether the data depend on each unknown.
    """
    relatives = verdict.alike([unknown.name for unknown in unknowns], correlation(covariance))
    mixed = [unknown.name for j, unknown in enumerate(unknowns) if excited[j] and not np.isfinite(asked[j])]
    estimates = []
    for j, unknown in enumerate(unknowns):
        if not excited[j]:
            estimates.append(verdict.undetermined(unknown, unknown.unexcited))
        elif not np.isfinite(asked[j]):
            others = ", ".join(name for name in mixed if name != unknown.name)
            estimates.append(verdict.undetermined(unknown, f"it cannot be distinguished from {others} in these data"))
        else:
            error = math.sqrt(float(covariance[j, j]))
            reach = student(freedom) * error
            estimates.append(verdict.judge(unknown, float(asked[j]), error, reach, relatives[j]))
    return tuple(estimates)


def correlation(covariance: Vector) -> Vector:
    """Correlation matrix (p, p) of a covariance (p, p); NaN where a variance is not finite."""
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.sqrt(np.diag(covariance))
        matrix: Vector = covariance / np.outer(errors, errors)
    return matrix
