"""Scatter and weights of the rows of a calibration, and the rows that keep radii that no pose shows nearly equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.calibration._model import Guess, Windows
from youbot_dynamics.identification.calibration._start import TURNING_RADIUS
from youbot_dynamics.identification.least_squares import Rows
from youbot_dynamics.kinematics.mecanum import MecanumBase

UNEQUAL = 0.005  # chosen: standard deviation of the radii of one robot's wheels over their mean
_FAR = 4.0  # standard deviations above which the weight of a pose decreases
_MEDIAN_TO_DEVIATION = 1.4826  # of normal residuals
_SMALLEST = 1e-4  # smallest plausible scatter [m] or [rad]
_HARDLY = 0.1  # weight of a pose below which it hardly counts


class PoseNoise(NamedTuple):
    """How far poses lie from odometry that starts at the best place in each window."""

    position: float  # standard deviation along an axis [m]
    yaw: float  # the same [rad]
    outlying: float  # share of the poses that lie so much farther off that they hardly count
    span: float  # length of a window [s]


def pose_noise(windows: Sequence[Windows], scales: Vector, weights: Sequence[Vector]) -> PoseNoise:
    """Noise of poses by standard deviations `scales` (3,) [m, rad, rad] and the weights (m, 2) of each recording."""
    outlying = float(np.mean(np.concatenate([pair[:, 0] for pair in weights]) < _HARDLY))
    return PoseNoise(float(scales[0]), float(scales[1]), outlying, windows[0].span)


def motion_in(windows: Sequence[Windows]) -> float:
    """Root mean square distance [m] of the poses from the middle of their window, with turns."""
    displacements = []
    for part in windows:
        poses = part.signals.poses
        positions = np.column_stack([poses[:, :2], TURNING_RADIUS * np.unwrap(poses[:, 2])])[part.rows]
        displacements.append(positions - part.spread(part.sums(positions) / part.counts[:, None]))
    return math.sqrt(float(np.mean(np.sum(np.vstack(displacements) ** 2, axis=1))))


def nearly_equal(
    windows: Sequence[Windows], base: MecanumBase, configured: MecanumBase, count: int, block: float
) -> list[Rows]:
    """Rows, spread over all windows, that keep the ratios of the radii near the configured ones, for `count` unknowns.

    Together they are as strong as one reading of each radius with the standard deviation `UNEQUAL`. `block` is the
    duration of the blocks [s].
    """
    n, total = len(base.radii), sum(len(part.starts) for part in windows)
    regressors = np.pad(np.eye(n) - 1.0 / n, ((0, 0), (0, count - n))) / (UNEQUAL * math.sqrt(total))
    target = -regressors[:, :n] @ np.log(base.radii / configured.radii)
    return [
        Rows(
            np.repeat(part.middles, n),
            np.tile(regressors, (len(part.starts), 1)),
            np.tile(target, len(part.starts)),
            recording=k,
            block=block,
        )
        for k, part in enumerate(windows)
    ]


def scatter(residual_tables: Sequence[Vector]) -> Vector:
    """Standard deviations (3,) of position [m], yaw and slip [rad]."""
    groups = (slice(0, 2), slice(2, 3), slice(3, None))
    return np.array([deviation([table[:, columns] for table in residual_tables]) for columns in groups])


def deviation(tables: Sequence[Vector]) -> float:
    """Standard deviation of all values of tables (m, n), from their median, which is robust to outliers."""
    values = np.abs(np.concatenate([table.ravel() for table in tables]))
    return max(_MEDIAN_TO_DEVIATION * float(np.median(values)), _SMALLEST)


def shrinkage(errors: Vector, variance: float) -> float:
    """Factor from 0 to 1 by which radius errors (n,) are shrunk towards 0 by empirical Bayes.

    The radii are modelled as random about their mean. Their variance is estimated by moments: sum of e^2 / (n - 1)
    minus the variance of one error.

    Source: Efron and Morris 1975, with n - 1 instead of n - 3.
    """
    return float(min(1.0, variance * (len(errors) - 1) / max(float(errors @ errors), 1e-300)))


def outlier_weights(part: Windows, pose: Vector, slip: Vector, guess: Guess, slip_scale: float) -> Vector:
    """Weights (m, 2) of poses and slips: 1, and (4 / deviations)^4 beyond 4 deviations.

    A wheel that slips by e leaves a slip of e / 2 and moves the base by e / 4 along each axis. The effect is
    not symmetric, so radii fitted to it are 0.1 % too small. Poses are weighted as if half the slip of
    their window added to their scatter.

    Args:
        part: windows of a recording.
        pose: (m, 3) residuals, in standard deviations.
        slip: (m, n) of the wheels that their radii do not explain, in standard deviations.
        guess: current values.
        slip_scale: standard deviation of the slip [rad] over that of the position [m].
    """
    largest = np.column_stack([np.max(np.abs(pose), axis=1), np.max(np.abs(slip), axis=1)])
    weights = np.asarray((_FAR / np.maximum(largest, _FAR)) ** 4)
    distance = 0.5 * np.mean(guess.base.radii) * slip_scale
    distances = distance * np.sqrt(part.sums(np.sum(slip**2, axis=1)) / part.counts)
    weights[:, 0] /= 1.0 + part.spread(distances) ** 2
    return weights
