"""How well a path was followed: errors, and the lab's table of their mean and standard deviation (system 37)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.kinematics import planar

Vector = NDArray[np.float64]

# Rows of the lab's table, in its order.
OPEN_LOOP = "open loop"
RESTORED = "restored"
SIMULATED = "simulated feedback"
FEEDBACK = "feedback"
ROWS = (OPEN_LOOP, RESTORED, SIMULATED, FEEDBACK)


@dataclass(frozen=True, eq=False)
class ErrorStatistics:
    """Statistics of e = actual - desired over a run, X and Y in the fixed frame, psi wrapped.

    Args:
        mean: (3,) [m, m, rad].
        deviation: (3,) population standard deviation, ddof = 0, as in the lab [m, m, rad].
        position_rmse: of the distance [m].
        heading_rmse: of psi [rad].
        position_worst: largest distance [m].
    """

    mean: Vector
    deviation: Vector
    position_rmse: float
    heading_rmse: float
    position_worst: float


@dataclass(frozen=True)
class Footprint:
    """What of a base is drawn on the floor; the youBot's where nothing else is said.

    Args:
        half_length: wheel axis to centre, along x [m].
        half_width: wheel centre to centre line, along y [m].
        wheel_radius: of the wheels [m].
    """

    half_length: float = 0.235
    half_width: float = 0.15
    wheel_radius: float = 0.0475


@dataclass(frozen=True, eq=False)
class PathComparison:
    """Several drives of one program.

    Args:
        name: of the program.
        time: (n,) from the start of the program [s].
        desired: (n, 3) poses in the fixed frame that coincides with the base at the start [m, m, rad].
        actual: label (one of ROWS) -> (n, 3) poses in the same frame.
        truth: what the actual poses were measured with, such as "ground truth" or "odometry".
        estimated: label -> (n, 3) poses of the odometry in the same frame, of drives whose actual poses are better
            than that.
        footprint: of the base that drove.
    """

    name: str
    time: Vector
    desired: Vector
    actual: Mapping[str, Vector]
    truth: str
    estimated: Mapping[str, Vector] = field(default_factory=dict)
    footprint: Footprint = field(default_factory=Footprint)

    def errors(self, label: str) -> Vector:
        """Errors (n, 3) of one drive: actual - desired; X, Y fixed, psi wrapped."""
        return path_errors(self.actual[label], self.desired)

    def seen_errors(self, label: str) -> Vector:
        """Odometry - desired (n, 3) of one drive with an estimate: what feedback on odometry sees of its errors."""
        return path_errors(self.estimated[label], self.desired)

    def unseen_errors(self, label: str) -> Vector:
        """Actual - odometry (n, 3) of one drive with an estimate: what feedback on odometry cannot see."""
        return path_errors(self.actual[label], self.estimated[label])

    def statistics(self, label: str) -> ErrorStatistics:
        """Statistics of one drive."""
        return error_statistics(self.errors(label))


def path_errors(actual: ArrayLike, desired: ArrayLike) -> Vector:
    """Errors (n, 3) = actual - desired of poses (n, 3); the yaw error is wrapped to (-pi, pi]."""
    errors: Vector = np.array(actual, dtype=float) - np.asarray(desired, dtype=float)
    errors[:, 2] = np.pi - (np.pi - errors[:, 2]) % (2.0 * np.pi)
    return errors


def error_statistics(errors: ArrayLike) -> ErrorStatistics:
    """Statistics of errors (n, 3) [m, m, rad].

    Mean and deviation are the lab's M = sum V / n and sigma = sqrt(sum (x - M)^2 / n) (seed 003); the samples of
    a path are correlated, so neither has a standard error of sigma / sqrt(n).
    """
    values = np.asarray(errors, dtype=float)
    distance = np.hypot(values[:, 0], values[:, 1])
    return ErrorStatistics(
        mean=values.mean(axis=0),
        deviation=values.std(axis=0),
        position_rmse=float(np.sqrt(np.mean(distance**2))),
        heading_rmse=float(np.sqrt(np.mean(values[:, 2] ** 2))),
        position_worst=float(distance.max()),
    )


def sample_poses(stamps: ArrayLike, poses: ArrayLike, at: ArrayLike) -> Vector:
    """Poses (m, 3) at the times `at` (m,), linear between the samples, yaw unwrapped across them.

    Args:
        stamps: (n,) increasing [s].
        poses: (n, 3) [m, m, rad].
        at: (m,) [s]; outside the stamps the first or last pose stands.
    """
    t, values = np.asarray(stamps, dtype=float), np.array(poses, dtype=float)
    values[:, 2] = np.unwrap(values[:, 2])
    query = np.asarray(at, dtype=float)
    return np.column_stack([np.interp(query, t, values[:, axis]) for axis in range(3)])


def relative_path(poses: ArrayLike, start: ArrayLike) -> Vector:
    """Poses (n, 3) seen from the pose `start` (3,); the yaw keeps its turns."""
    x, y, yaw = (float(value) for value in np.asarray(start, dtype=float))
    back = planar.between((x, y, yaw), (0.0, 0.0, 0.0))
    moved = planar.move_path(back, poses)
    # `between` wraps the yaw; the turns of the path itself are kept.
    moved[:, 2] = np.asarray(poses, dtype=float)[:, 2] - yaw
    return moved


def restored_path(stamps: ArrayLike, poses: ArrayLike, at: ArrayLike, delays: ArrayLike) -> Vector:
    """What the run would have been without the delay: the recorded motion, moved forward, X(t + tau).

    Seed 003 restores X_vost = X_rf + Vx_id dtzap + int dVx dt, which equals the ideal path by construction and
    proves nothing (D-003-7). Here the recorded body motion of each axis is taken tau later and integrated, with
    tau from another recording.

    Args:
        stamps: (n,) increasing [s].
        poses: (n, 3) recorded poses [m, m, rad].
        at: (m,) times of the program [s], increasing.
        delays: (3,) effective delay of x, y, yaw [s].

    Returns:
        Poses (m, 3) that start where the recording stands at at[0] + delay.
    """
    query = np.asarray(at, dtype=float)
    tau = np.asarray(delays, dtype=float)
    # Body displacements over the same interval, each axis from its own shifted interval.
    shifted = [sample_poses(stamps, poses, query + delay) for delay in tau]
    path = [np.array([shifted[0][0, 0], shifted[1][0, 1], shifted[2][0, 2]])]
    for k in range(len(query) - 1):
        step = np.array([planar.logarithm(planar.between(s[k], s[k + 1]))[a] for a, s in enumerate(shifted)])
        path.append(planar.compose(path[-1], planar.exponential(step)))
    return np.array(path)
