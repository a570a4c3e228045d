"""Gauss-Newton solution of the calibration: steps of a least-squares fit to the innovations of a Kalman filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.identification.calibration._filter import (
    LASTING,
    Noise,
    Poses,
    Track,
    fitted_noise,
    innovations,
    track,
    trust_by,
    trusted,
)
from youbot_dynamics.identification.calibration._model import STEP, Guess, Windows, residuals
from youbot_dynamics.identification.calibration._slip import Slip, SlipErrors, slip_errors, slip_of
from youbot_dynamics.identification.calibration._start import Excitation
from youbot_dynamics.identification.calibration._weights import (
    UNEQUAL,
    PoseNoise,
    deviation,
    nearly_equal,
    outlier_weights,
    pose_noise,
    scatter,
)
from youbot_dynamics.identification.least_squares import Fit, Rows, Unknown, accumulate, fit, merge

_LEAST_LEFT = 1e-3  # share of the error of a window that the fit leaves of it at least
ROUNDS = 30
_CONVERGED = 0.02  # the fit has converged if no unknown changes by more [standard errors]
_NOTHING = 1e-10  # negligible change of an unknown [1, m, rad, s]
_CURVED = 0.5  # change up to which the slopes of the previous iteration are reused [standard errors]
_NOISE_ROUNDS = 5  # steps after each of which the noise is found anew
# By unit: standard error for white residuals above which a step is damped.
_WIDTHS = {"1": 0.05, "m": 0.2, "rad": 0.1, "s": 0.1, "s2": 0.02}
_UNMODELLED = 0.05  # share of the effect of the smoothing, standard deviation: of 1 % of the radius, 0.05 % were left


@dataclass(frozen=True, eq=False)
class Solved:
    """Converged fit: the solution, the fit of the last step, noise of the poses."""

    guess: Guess
    fit: Fit
    noise: PoseNoise
    assumed: Vector  # (p, n) changes of the unknowns by one standard deviation `UNEQUAL` of each radius
    influence: Vector  # (p, w) changes of the unknowns by the errors of each part of `LASTING`
    slip: SlipErrors
    settled: bool  # whether the steps became small within their budget

    @property
    def unmodelled(self) -> Vector:
        """Errors (p,) by a share of what the smoothing changed: higher derivatives of the poses are not modelled."""
        along, variance = self.fit.covariance[:, -1], float(self.fit.covariance[-1, -1])
        known = 0.0 < variance < math.inf
        return _UNMODELLED * self.guess.smoothing * np.nan_to_num(along / variance) if known else np.zeros(len(along))


def solve(
    pieces: Sequence[Windows],
    windows: Sequence[Windows],
    start: Guess,
    free: Indices,
    unknowns: Sequence[Unknown],
    excited: Excitation,
) -> Solved:
    """Gauss-Newton iterations over the pieces without gaps; the first ones also find the noise.

    Raises:
        IdentificationError: too few blocks of data.
    """
    guess, noise = start, Noise()
    recordings = [Poses.of(part) for part in pieces]
    trust = trusted(recordings, start)
    largest_change = math.inf  # change in the last iteration, in standard errors
    for round_ in range(ROUNDS):
        if round_ < _NOISE_ROUNDS:
            noise = fitted_noise(recordings, guess, noise, trust)
            of_each = zip(recordings, guess.offsets.tolist(), trust, strict=True)
            tracks = [track(poses, guess, offset, own) for poses, offset, own in of_each]
        if largest_change > _CURVED:
            slopes = [
                _slopes(poses, along, guess, k, noise, free)
                for k, (poses, along) in enumerate(zip(recordings, tracks, strict=True))
            ]
        found = [
            innovations(along, [poses.path(guess, offset)], noise)
            for poses, along, offset in zip(recordings, tracks, guess.offsets.tolist(), strict=True)
        ]
        pieces_of = zip(recordings, tracks, slopes, found, strict=True)
        rows = [
            _rows(poses, along, slope, shown[0], k, excited.span)
            for k, (poses, along, slope, (shown, _)) in enumerate(pieces_of)
        ]
        if round_ < _NOISE_ROUNDS - 1:
            trust = [trust_by(weights) for _, weights in found]
        equal = nearly_equal(windows, guess.base, start.base, len(unknowns), excited.span)
        linear_fit, change, inverse, block_weights = _step([*equal, *rows], unknowns)
        guess = guess.moved(change)
        errors = np.sqrt(np.diag(linear_fit.covariance))
        known = np.isfinite(errors) & (np.abs(change) > _NOTHING)
        with np.errstate(divide="ignore"):
            largest_change = float(np.max(np.abs(change[known]) / errors[known], initial=0.0))
        if largest_change <= _CONVERGED:
            break
    n = len(start.base.radii)
    assumed = inverse[:, :n] @ (np.eye(n) - 1.0 / n) / UNEQUAL
    root, influences = np.linalg.cholesky(inverse), []
    for piece in rows:
        weighted, part_of = piece.regressors * block_weights(piece)[:, None], np.floor(piece.time / LASTING)
        for own in (part_of == number for number in np.unique(part_of)):
            taken, axes = np.linalg.eigh(root.T @ weighted[own].T @ piece.regressors[own] @ root)
            left = axes.T @ root.T @ weighted[own].T @ piece.target[own]
            influences.append(root @ axes @ (left / np.sqrt(np.maximum(1.0 - taken, _LEAST_LEFT))))
    slip, of_poses = _left(windows, recordings, guess, noise, [weights for _, weights in found])
    covariance = linear_fit.covariance[:n, :n] + assumed[:n] @ assumed[:n].T
    slip_error = slip_errors(slip, guess.base, covariance, excited.sufficient)
    settled = largest_change <= _CONVERGED
    return Solved(guess, linear_fit, of_poses, assumed, np.vstack(influences).T, slip_error, settled)


def _slopes(poses: Poses, along: Track, guess: Guess, number: int, noise: Noise, free: Indices) -> Vector:
    """Slopes (m, 3, p) of the `innovations` of one recording, by its number, over the changes of `Guess.moved`.

    They are zero for changes that are not in `free`.
    """
    n, count = len(guess.base.radii), len(guess.base.radii) + 6 + len(guess.offsets)
    used = [k for k in free if not n + 5 <= k < count - 1 or k == n + 5 + number]
    paths = [poses.path(guess, float(guess.offsets[number]))]
    for k in used:
        for sign in (1.0, -1.0):
            other = guess.moved(sign * STEP * np.eye(count)[k])
            paths.append(poses.path(other, float(other.offsets[number]), smooth=k < n + 5))
    shown, _ = innovations(along, paths, noise)
    table = np.zeros((*shown.shape[1:], count))
    table[:, :, used] = np.moveaxis(shown[1::2] - shown[2::2], 0, -1) / (2.0 * STEP)
    return table


def _rows(poses: Poses, along: Track, slope: Vector, shown: Vector, number: int, block: float) -> Rows:
    """Rows of the linearised model of one recording by its number: innovations (m, 3) with their slopes (m, 3, p)."""
    known = ~along.begins
    regressors = -slope[known].reshape(-1, slope.shape[2])
    return Rows(np.repeat(poses.time[known], 3), regressors, shown[known].ravel(), recording=number, block=block)


def _left(
    windows: Sequence[Windows], recordings: Sequence[Poses], guess: Guess, noise: Noise, weights: Sequence[Vector]
) -> tuple[Slip, PoseNoise]:
    """Slip of the wheels, and how far the poses lie from odometry, over windows; with weights (m,) of the poses."""
    scales = np.hypot([noise.position, noise.yaw], [noise.wander_position, noise.wander_yaw])
    both = []
    for part, poses, own in zip(windows, recordings, weights, strict=True):
        of_all = np.ones(len(part.signals.pose_time))
        of_all[poses.part.rows] = poses.spread(own)
        both.append(np.column_stack([of_all[part.rows], np.ones(len(part.rows))]))
    for _ in range(2):
        pairs = zip(windows, guess.offsets.tolist(), both, strict=True)
        tables = [residuals(part, guess, offset, pair, scales) for part, offset, pair in pairs]
        slip = slip_of(windows, guess, [table[:, 3:] for table in tables], [pair[:, 1] for pair in both])
        spread = deviation(slip.left)
        for pair, left in zip(both, slip.left, strict=True):
            pair[:, 1] = outlier_weights(left / spread)
    return slip, pose_noise(windows, scatter(tables), [pair[:, 0] for pair in both])


def _step(pieces: Sequence[Rows], unknowns: Sequence[Unknown]) -> tuple[Fit, Vector, Vector, Callable[[Rows], Vector]]:
    """Fit the linearised model; return the fit, the damped change (p,) of the guess, and the inverse (p, p) for it.

    The last is the weight of each row of a piece, that of its block.

    Levenberg damping: it converges to the same solution as undamped steps, and does not diverge along undetermined
    directions.

    Raises:
        IdentificationError: too few windows.
    """
    sums = merge([accumulate(piece) for piece in pieces])
    linear_fit = fit(sums, unknowns, lambda: pieces)
    normal = np.einsum("k,kij->ij", linear_fit.weights, sums.products())
    damping = np.diag([_WIDTHS[unknown.unit] ** -2 for unknown in unknowns])
    inverse = np.linalg.inv(normal[:, :-1] + damping)

    def block_weights(piece: Rows) -> Vector:
        return np.asarray(linear_fit.weights[np.searchsorted(sums.keys, piece.keys())])

    return linear_fit, inverse @ normal[:, -1], inverse, block_weights
