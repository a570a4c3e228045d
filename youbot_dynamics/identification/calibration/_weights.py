"""Scatter and weights of the rows of a calibration, and the rows that keep radii that no pose shows nearly equal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.calibration._model import Windows
from youbot_dynamics.identification.calibration._start import TURNING_RADIUS
from youbot_dynamics.identification.least_squares import Rows
from youbot_dynamics.kinematics.mecanum import MecanumBase

UNEQUAL = 0.005  # chosen: standard deviation of the radii of one robot's wheels over their mean
_FAR = 4.0  # standard deviations above which the weight of a slip decreases
MEDIAN_TO_DEVIATION = 1.4826  # of normal residuals
_SMALLEST = 1e-4  # smallest plausible scatter [m] or [rad]
HARDLY = 0.1  # weight of a pose below which it hardly counts
_COARSE = 0.01  # scatter of positions over the motion in a window above which they show no drift of odometry


class PoseNoise(NamedTuple):
    """How far poses lie from odometry that starts at the best place in each window of some seconds."""

    position: float  # standard deviation along an axis [m]
    yaw: float  # the same [rad]
    slip: float  # the same of the wheels against each other [rad]
    outlying: float  # share of the poses that lie so much farther off that they hardly count
    motion: float  # root mean square distance of the poses from the middle of their window, with turns [m]

    @property
    def coarse(self) -> bool:
        """Whether the poses scatter more than odometry drifts within a window."""
        return self.position > _COARSE * self.motion


def pose_noise(windows: Sequence[Windows], scales: Vector, weights: Sequence[Vector]) -> PoseNoise:
    """Noise of poses by standard deviations `scales` (3,) [m, rad, rad] and the weights (m,) in each recording."""
    outlying = float(np.mean(np.concatenate(weights) < HARDLY))
    position, yaw, slip = scales.tolist()
    return PoseNoise(position, yaw, slip, outlying, _motion_in(windows))


def _motion_in(windows: Sequence[Windows]) -> float:
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
    return max(MEDIAN_TO_DEVIATION * float(np.median(values)), _SMALLEST)


def shrinkage(logarithms: Vector, covariance: Vector) -> Vector:
    """Changes (n,) of the logarithms (n,) of radii towards each other, by empirical Bayes, for a covariance (n, n).

    The radii are modelled as random about their mean. The variance of that is the most likely one for the differences
    of the wheels. What the data show well stays; what they leave open follows the others.

    Source: Efron and Morris 1975, with unequal variances.
    """
    n = len(logarithms)
    apart = np.linalg.svd(np.eye(n) - 1.0 / n)[0][:, : n - 1]  # orthonormal differences
    variances, axes = np.linalg.eigh(apart.T @ covariance @ apart)
    variances, directions = np.maximum(variances, 1e-300), apart @ axes
    squares = (directions.T @ logarithms) ** 2

    def unlikely(spread: float) -> float:
        return float(np.sum(np.log(spread + variances) + squares / (spread + variances)))

    tried = np.append(0.0, np.geomspace(1e-12, 1.0, 400))
    spread = float(tried[int(np.argmin([unlikely(value) for value in tried.tolist()]))])
    return np.asarray(-covariance @ directions @ (directions.T @ logarithms / (spread + variances)))


def outlier_weights(slip: Vector) -> Vector:
    """Weights (m,) of slips (m, n) in standard deviations: 1, and (4 / deviations)^4 beyond 4 of any wheel."""
    return np.asarray((_FAR / np.maximum(np.max(np.abs(slip), axis=1), _FAR)) ** 4)
