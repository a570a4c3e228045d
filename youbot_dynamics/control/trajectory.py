"""Planar trajectories: timed poses joined by constant body twists, with an optional feed-forward."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.errors import TrajectoryError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.parameters import setting

Vector = NDArray[np.float64]

_LARGEST = 1e6  # [m, rad, s, ...] beyond which a number is a mistake, and sums lose their digits


@dataclass(frozen=True)
class TrajectoryLimits:
    """How much of a trajectory is taken: what lies beyond is a mistake, or would hold up everything else."""

    max_points: int = setting(
        30000,
        "Points of a trajectory at most.",
        unit="1",
        low=1.0,
        high=200000.0,
        source="chosen: one a period over the longest duration",
    )
    max_duration: float = setting(
        600.0,
        "Time of the last point of a trajectory at most.",
        unit="s",
        low=1.0,
        high=3600.0,
        source="chosen: ten times the lab's longest program",
    )
    max_start_delay: float = setting(
        60.0,
        "How far in the future a trajectory may begin at most.",
        unit="s",
        low=1.0,
        high=3600.0,
        source="chosen: a start further off is a clock that is wrong",
    )

    def check_count(self, count: int) -> None:
        """Refuse too many points.

        Raises:
            TrajectoryError: more than `max_points`.
        """
        if count > self.max_points:
            raise TrajectoryError(
                "trajectory", got=f"{count} points", expected=f"at most {self.max_points} (max_points)"
            )

    def check_duration(self, duration: float) -> None:
        """Refuse what lasts too long [s].

        Raises:
            TrajectoryError: longer than `max_duration`.
        """
        if duration > self.max_duration:
            limit = f"at most {self.max_duration:g} s (max_duration)"
            raise TrajectoryError("trajectory", got=f"a duration of {duration:.10g} s", expected=limit)

    def check_start(self, delay: float) -> None:
        """Refuse a start that is still `delay` [s] away.

        Raises:
            TrajectoryError: further off than `max_start_delay`.
        """
        if delay > self.max_start_delay:
            limit = f"at most {self.max_start_delay:g} s (max_start_delay)"
            remedy = "check header.stamp and the clocks of both machines"
            raise TrajectoryError("trajectory", got=f"a start in {delay:.10g} s", expected=limit, remedy=remedy)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Desired pose over time; before the first point it stands there, after the last one it stays.

    Args:
        times: (n,) strictly increasing, from the start of the trajectory [s].
        poses: (n, 3) x, y, yaw in one fixed frame [m, m, rad].
        twists: (n, 3) body twists at the points [m/s, m/s, rad/s], or None.

    Raises:
        TrajectoryError: wrong shapes, no points, numbers that are not finite or beyond 1e6, or times that do not
            increase.
    """

    times: Vector
    poses: Vector
    twists: Vector | None = None
    _joints: Vector = field(init=False, repr=False)
    _rates: Vector | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check shapes and order, and freeze the arrays."""
        times = np.array(self.times, dtype=float)
        poses = np.array(self.poses, dtype=float)
        twists = None if self.twists is None else np.array(self.twists, dtype=float)
        if times.ndim != 1 or len(times) == 0:
            raise TrajectoryError("trajectory", got="no points", expected="one point or more")
        shapes = [poses.shape] + ([] if twists is None else [twists.shape])
        if any(shape != (len(times), 3) for shape in shapes):
            raise TrajectoryError(
                "trajectory", got=f"arrays of shape {shapes}", expected=f"({len(times)}, 3), a row a point"
            )
        rows = np.column_stack([times, poses] + ([] if twists is None else [twists]))
        broken = np.flatnonzero(~(np.abs(rows) <= _LARGEST).all(axis=1))
        if len(broken):
            expected = f"finite numbers up to {_LARGEST:g}"
            raise TrajectoryError(f"trajectory point {int(broken[0])}", got=f"{rows[broken[0]]}", expected=expected)
        backwards = np.flatnonzero(np.diff(times) <= 0.0)
        if len(backwards):
            k = int(backwards[0])
            raise TrajectoryError(
                f"trajectory point {k + 1}",
                got=f"time {times[k + 1]:g} s after {times[k]:g} s",
                expected="strictly increasing times",
            )
        joints = planar.steps_of_path(poses) / np.diff(times)[:, None]
        poses[:, 2] = np.unwrap(poses[:, 2])
        rates = None if twists is None else _fixed_rates(poses, twists)
        for name, value in (
            ("_rates", rates),
            ("times", times),
            ("poses", poses),
            ("twists", twists),
            ("_joints", joints),
        ):
            if value is not None:
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def joined_from(self, pose: ArrayLike) -> Trajectory:
        """Same trajectory, led to from `pose` (3,) at time 0 where its first point comes later."""
        if self.times[0] <= 0.0:
            return self
        twists = None if self.twists is None else np.vstack([np.zeros(3), self.twists])
        first = np.asarray(pose, dtype=float)
        return Trajectory(np.append(0.0, self.times), np.vstack([first, self.poses]), twists)

    def anchored(self, start_pose: ArrayLike) -> Trajectory:
        """Same motion in the frame in which `start_pose` (3,) is where its own origin lies."""
        return Trajectory(self.times, planar.move_path(start_pose, self.poses), self.twists)

    def eased(self, ramp: float, dt: float = 0.02) -> Trajectory:
        """Same path with a smooth start and stop: the speed along it grows and fades over `ramp` [s].

        The path is gone along at the rate s'(t) = b(t / ramp), b(u) = u^3 (10 - 15 u + 6 u^2), up to 1 and back, so
        that neither speed nor acceleration jumps where the trajectory began or ended in motion. It takes `ramp` longer.

        Args:
            ramp: [s], at most the duration; 0 changes nothing.
            dt: spacing of the new points [s].

        Raises:
            TrajectoryError: a ramp that is negative or longer than the trajectory.
        """
        span = float(self.times[-1] - self.times[0])
        if not 0.0 <= ramp <= span:
            raise TrajectoryError("ramp of a trajectory", got=f"{ramp:g} s", expected=f"0 to {span:g} s, its duration")
        if ramp == 0.0:
            return self
        count = max(2, round((span + ramp) / dt) + 1)
        times = np.linspace(0.0, span + ramp, count)
        # The integral of b from 0 to u is u^4 (5/2 - 3 u + u^2), a half at u = 1.
        up, down = np.clip(times / ramp, 0.0, 1.0), np.clip((span + ramp - times) / ramp, 0.0, 1.0)
        begun, left = (ramp * u**4 * (2.5 - 3.0 * u + u * u) for u in (up, down))
        middle = times - 0.5 * ramp
        along = np.where(times < ramp, begun, np.where(times > span, span - left, middle))
        return Trajectory(self.times[0] + times, self.path(self.times[0] + along))

    def pose(self, time: float) -> Vector:
        """Desired pose (3,) at `time` [s].

        Between two points along the constant twist that joins them (exact for a program); with given twists along
        the cubic that has their velocities at the points.
        """
        if time <= self.times[0]:
            return np.array(self.poses[0])
        if time >= self.times[-1]:
            return np.array(self.poses[-1])
        k = int(np.searchsorted(self.times, time, side="right")) - 1
        if self._rates is None:
            return planar.integrate(self.poses[k], self._joints[k], time - self.times[k])
        span = float(self.times[k + 1] - self.times[k])
        s = (time - float(self.times[k])) / span
        pose: Vector = (
            (1.0 + 2.0 * s) * (1.0 - s) ** 2 * self.poses[k]
            + s * (1.0 - s) ** 2 * span * self._rates[k]
            + s**2 * (3.0 - 2.0 * s) * self.poses[k + 1]
            + s**2 * (s - 1.0) * span * self._rates[k + 1]
        )
        return pose

    def path(self, times: ArrayLike) -> Vector:
        """Desired poses (k, 3) at times (k,) [s]: `pose` for many moments at once, its yaw not wrapped."""
        at = np.clip(np.asarray(times, dtype=float), self.times[0], self.times[-1])
        k = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, max(0, len(self.times) - 2))
        if len(self.times) == 1:
            return np.tile(self.poses[0], (len(at), 1))
        since = at - self.times[k]
        if self._rates is None:
            return planar.move_each(self.poses[k], self._joints[k] * since[:, None])
        span = (self.times[k + 1] - self.times[k])[:, None]
        s = since[:, None] / span
        path: Vector = (
            (1.0 + 2.0 * s) * (1.0 - s) ** 2 * self.poses[k]
            + s * (1.0 - s) ** 2 * span * self._rates[k]
            + s**2 * (3.0 - 2.0 * s) * self.poses[k + 1]
            + s**2 * (s - 1.0) * span * self._rates[k + 1]
        )
        return path

    def mean_twist(self, start: float, end: float) -> Vector:
        """Body twist (3,) [m/s, m/s, rad/s] that a command held from `start` to `end` [s] should have.

        It is the constant twist that joins the two desired poses, so that held commands reproduce them exactly.
        """
        return planar.mean_twist(self.pose(start), self.pose(end), end - start)


def _fixed_rates(poses: Vector, twists: Vector) -> Vector:
    """Rates of x, y, yaw (n, 3) in the fixed frame from body twists (n, 3) at poses (n, 3)."""
    c, s = np.cos(poses[:, 2]), np.sin(poses[:, 2])
    return np.column_stack([c * twists[:, 0] - s * twists[:, 1], s * twists[:, 0] + c * twists[:, 1], twists[:, 2]])
