"""Scatter and weights of the rows of a calibration, and the rows that keep radii that no pose shows nearly equal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.calibration._model import Guess, Windows
from youbot_dynamics.identification.least_squares import Rows
from youbot_dynamics.kinematics.mecanum import MecanumBase

UNEQUAL = 0.005  # chosen: standard deviation of the radii of one robot's wheels over their mean
_FAR = 4.0  # standard deviations above which the weight of a pose decreases
_MEDIAN_TO_DEVIATION = 1.4826  # of normal residuals
_SMALLEST = 1e-4  # smallest plausible scatter [m] or [rad]


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
