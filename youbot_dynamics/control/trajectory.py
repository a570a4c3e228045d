"""Planar trajectories: timed poses joined by constant body twists, with an optional feed-forward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import TrajectoryError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.arcs import along
from youbot_dynamics.parameters import setting

_LARGEST = 1e6  # [m, rad, s, ...] beyond which a number is a mistake, and sums lose their digits


class TimedPath(NamedTuple):
    """A trajectory in numbers, for compiled loops; arrays are read-only.

    Args:
        times: (n,) increasing [s].
        poses: (n, 3) [m, m, rad], yaws without jumps.
        joints: (n - 1, 3) body twists that join them.
        rates: (n, 3) of x, y, yaw in the fixed frame at the points, which then shape the path; (0, 3) without.
    """

    times: Vector
    poses: Vector
    joints: Vector
    rates: Vector


@compiled
def write_pose(path: TimedPath, time: float, pose: Vector) -> None:
    """Write the desired pose (3,) at `time` [s]; the yaw is not wrapped."""
    times = path.times
    # By halving: the last point that is not later, but one with a point behind it.
    k, high = 0, max(1, len(times) - 1)
    while high - k > 1:
        middle = (k + high) // 2
        if times[middle] <= time:
            k = middle
        else:
            high = middle
    if time <= times[0] or time >= times[-1]:
        k = 0 if time <= times[0] else len(times) - 1
        for axis in range(3):
            pose[axis] = path.poses[k, axis]
        return
    since, begin, end = time - times[k], path.poses[k], path.poses[k + 1]
    if len(path.rates) == 0:
        joint = path.joints[k]
        pose[0], pose[1], pose[2] = along(
            begin[0], begin[1], begin[2], joint[0] * since, joint[1] * since, joint[2] * since
        )
        return
    span = times[k + 1] - times[k]
    s = since / span
    rest = 1.0 - s
    for axis in range(3):
        pose[axis] = (
            (1.0 + 2.0 * s) * rest * rest * begin[axis]
            + s * rest * rest * span * path.rates[k, axis]
            + s * s * (3.0 - 2.0 * s) * end[axis]
            - s * s * rest * span * path.rates[k + 1, axis]
        )


@compiled
def _write_poses(path: TimedPath, times: Vector, poses: Vector) -> None:
    for k in range(len(times)):
        write_pose(path, times[k], poses[k])


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

    def check(self, *, points: int = 1, duration: float = 0.0, delay: float = 0.0) -> None:
        """Refuse too many points, a duration [s] that is too long, or a start that is still too far away [s].

        Raises:
            TrajectoryError: beyond `max_points`, `max_duration` or `max_start_delay`.
        """
        clocks = "check header.stamp and the clocks of both machines"
        for value, most, got, limit, remedy in (
            (points, self.max_points, "{} points", "{} (max_points)", ""),
            (duration, self.max_duration, "a duration of {:.10g} s", "{:g} s (max_duration)", ""),
            (delay, self.max_start_delay, "a start in {:.10g} s", "{:g} s (max_start_delay)", clocks),
        ):
            if value > most:
                expected = f"at most {limit.format(most)}"
                raise TrajectoryError("trajectory", got=got.format(value), expected=expected, remedy=remedy)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Desired pose over time; before the first point it stands there, after the last one it stays.

    Args:
        times: (n,) strictly increasing, from the start of the trajectory [s].
        poses: (n, 3) x, y, yaw in one fixed frame [m, m, rad].
        twists: (n, 3) body twists at the points [m/s, m/s, rad/s], or None.

    Attributes:
        numbers: the same for compiled loops.

    Raises:
        TrajectoryError: wrong shapes, no points, numbers that are not finite or beyond 1e6, or times that do not
            increase.
    """

    times: Vector
    poses: Vector
    twists: Vector | None = None
    numbers: TimedPath = field(init=False, repr=False)

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
        rates = np.empty((0, 3)) if twists is None else _fixed_rates(poses, twists)
        numbers = TimedPath(*(read_only(np.ascontiguousarray(part)) for part in (times, poses, joints, rates)))
        kept = None if twists is None else read_only(twists)
        for name, part in (("numbers", numbers), ("times", numbers.times), ("poses", numbers.poses), ("twists", kept)):
            object.__setattr__(self, name, part)

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def joined_from(self, pose: ArrayLike, time: float = 0.0) -> Trajectory:
        """Same trajectory, led to from `pose` (3,) at time 0, or at `time` [s] if that is later.

        A first point that does not come later than that leaves the trajectory as it is.
        """
        begin = max(0.0, time)
        if self.times[0] <= begin:
            return self
        twists = None if self.twists is None else np.vstack([np.zeros(3), self.twists])
        first = np.asarray(pose, dtype=float)
        return Trajectory(np.append(begin, self.times), np.vstack([first, self.poses]), twists)

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
        pose: Vector = self.path(np.array([time], dtype=float))[0]
        return pose

    def path(self, times: ArrayLike) -> Vector:
        """Desired poses (k, 3) at times (k,) [s]: `pose` for many moments at once, its yaw not wrapped."""
        at = np.ascontiguousarray(times, dtype=float)
        poses = np.empty((len(at), 3))
        _write_poses(self.numbers, at, poses)
        return poses

    def mean_twist(self, start: float, end: float) -> Vector:
        """Body twist (3,) [m/s, m/s, rad/s] that a command held from `start` to `end` [s] should have.

        It is the constant twist that joins the two desired poses, so that held commands reproduce them exactly.
        """
        return planar.mean_twist(self.pose(start), self.pose(end), end - start)


def _fixed_rates(poses: Vector, twists: Vector) -> Vector:
    """Rates of x, y, yaw (n, 3) in the fixed frame from body twists (n, 3) at poses (n, 3)."""
    c, s = np.cos(poses[:, 2]), np.sin(poses[:, 2])
    return np.column_stack([c * twists[:, 0] - s * twists[:, 1], s * twists[:, 0] + c * twists[:, 1], twists[:, 2]])
