"""Gauss-Newton solution of the calibration: steps of a least-squares fit to the innovations of a Kalman filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
    trusted,
    unlikeliness,
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
_NOISE_ROUNDS = 5  # least number of steps before each of which the noise is found again
# By unit: standard error for white residuals above which a step is damped.
_WIDTHS = {"1": 0.05, "m": 0.2, "rad": 0.1, "s": 0.1, "s2": 0.02}
_FILTERED, _CLEARLY = 3.0, 5.0  # smoothing in standard errors, and difference of logarithms of likelihoods, that show
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
    unlikely: float  # minus the logarithm of the likelihood of the poses
    other: Vector  # (p,) changes to the solution with another filter of the tracker, if that is as likely; else 0

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
    """Solution for poses as they are or with a filter: over the times around each, or the past alone, as is likelier.

    Raises:
        IdentificationError: too few blocks of data.
    """
    around = _solved(pieces, windows, start, free, unknowns, excited)
    if not around.guess.smoothing > _FILTERED * math.sqrt(float(around.fit.covariance[-1, -1])):
        return around
    low_pass = replace(around.guess, base=start.base, of_past=True)
    past = _solved(pieces, windows, low_pass, free, unknowns, excited)
    if not past.settled:
        return around
    better, worse = (around, past) if around.unlikely <= past.unlikely else (past, around)
    if worse.unlikely - better.unlikely > _CLEARLY:
        return better
    return replace(better, other=better.guess.change_to(worse.guess))


def _solved(
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
    guess, noise, n = start, Noise(), len(start.base.radii)
    whole = [Poses.of(k, part) for k, part in enumerate(pieces) if len(part.rows)]
    recordings, trust = whole, [np.ones(len(poses.poses)) for poses in whole]
    largest_change = math.inf  # change in the last iteration, in standard errors
    for round_ in range(ROUNDS):
        searched = round_ < _NOISE_ROUNDS or (largest_change > _CURVED and round_ < ROUNDS // 2)
        if searched and round_ > 0:  # of a guess that is far off, most poses lie elsewhere
            recordings, trust = trusted(whole, guess)
        if searched:
            noise = fitted_noise(recordings, guess, noise, trust)
            tracks = [track(poses, guess, own) for poses, own in zip(recordings, trust, strict=True)]
        pairs = list(zip(recordings, tracks, strict=True))
        if searched or largest_change > _CURVED:
            slopes = _slopes(pairs, guess, noise, free)
        found = [innovations(along, [poses.path(guess)], noise) for poses, along in pairs]
        rows = [
            _rows(poses, along, slope, shown[0], excited.span)
            for (poses, along), slope, (shown, _) in zip(pairs, slopes, found, strict=True)
        ]
        equal = nearly_equal(windows, guess.base, start.base, len(unknowns), excited.span)
        linear_fit, change, inverse, block_weights = _step([*equal, *rows], unknowns)
        guess = guess.moved(change)
        errors = np.sqrt(np.diag(linear_fit.covariance))
        known = np.isfinite(errors) & (np.abs(change) > _NOTHING)
        if round_ > ROUNDS // 2:  # a clock offset that a short recording leaves open holds up nothing
            known[n + 5 :] = False
        with np.errstate(divide="ignore"):
            largest_change = float(np.max(np.abs(change[known]) / errors[known], initial=0.0))
        if largest_change <= _CONVERGED:
            break
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
    settled, unlikely = largest_change <= _CONVERGED, unlikeliness(pairs, guess, noise)
    by_parts = np.vstack(influences).T
    return Solved(
        guess, linear_fit, of_poses, assumed, by_parts, slip_error, settled, unlikely, np.zeros(len(unknowns))
    )


def _slopes(pairs: Sequence[tuple[Poses, Track]], guess: Guess, noise: Noise, free: Indices) -> list[Vector]:
    """Slopes (m, 3, p) of the `innovations` of each recording over the changes of `Guess.moved`, as instruments show.

    They are zero for changes that are not in `free`. Instruments Z are slopes by smoothed wheel angles, of clock
    offsets and smoothing the slopes X themselves; what they show of X is Z (Z'Z)^-1 Z'X (two-stage least squares).
    """
    n, count = len(guess.base.radii), len(guess.base.radii) + 6 + len(guess.offsets)
    plain, smooth = list[Vector](), list[Vector]()
    for poses, along in pairs:
        used = [k for k in free if not n + 5 <= k < count - 1 or k == n + 5 + poses.number]
        by_wheels = [k for k in used if k < n + 5]
        changed = [guess.moved(sign * STEP * np.eye(count)[k]) for k in used for sign in (1.0, -1.0)]
        paths = [poses.path(guess), *(poses.path(other) for other in changed)]
        paths += [poses.path(other, smooth=True) for other in changed[: 2 * len(by_wheels)]]
        shown, _ = innovations(along, paths, noise)
        rises = np.moveaxis(shown[1::2] - shown[2::2], 0, -1) / (2.0 * STEP)
        table = np.zeros((*shown.shape[1:], count))
        table[:, :, used] = rises[:, :, : len(used)]
        plain.append(table)
        smooth.append(table.copy())
        smooth[-1][:, :, by_wheels] = rises[:, :, len(used) :]
    squares = sum(np.einsum("mai,maj->ij", table, table) for table in smooth)
    products = sum(np.einsum("mai,maj->ij", table, other) for table, other in zip(smooth, plain, strict=True))
    size = np.sqrt(np.maximum(np.diag(squares), 1e-300))
    shares = (np.linalg.pinv(squares / np.outer(size, size), hermitian=True) @ (products / size[:, None])) / size[
        :, None
    ]
    return [table @ shares for table in smooth]


def _rows(poses: Poses, along: Track, slope: Vector, shown: Vector, block: float) -> Rows:
    """Rows of the linearised model of one recording: innovations (m, 3) with their slopes (m, 3, p)."""
    known = ~along.begins
    regressors, times = -slope[known].reshape(-1, slope.shape[2]), np.repeat(poses.time[known], 3)
    return Rows(times, regressors, shown[known].ravel(), recording=poses.number, block=block)


def _left(
    windows: Sequence[Windows], recordings: Sequence[Poses], guess: Guess, noise: Noise, weights: Sequence[Vector]
) -> tuple[Slip, PoseNoise]:
    """Slip of the wheels, and how far the poses lie from odometry, over windows; with weights (m,) of the poses."""
    scales = np.hypot([noise.position, noise.yaw], [noise.wander_position, noise.wander_yaw])
    both = []
    of_poses = {poses.number: (poses, own) for poses, own in zip(recordings, weights, strict=True)}
    for k, part in enumerate(windows):
        of_all = np.ones(len(part.signals.pose_time))
        if k in of_poses:
            poses, own = of_poses[k]
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
