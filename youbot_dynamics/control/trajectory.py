"""Trajectories and programs of the base: sampled poses with feed-forward, and twists held for a time each."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import cos, pi, sin
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, finite_vector, positive_time, read_only, real, scalar
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError, ProgramError, TrajectoryError
from youbot_dynamics.files import read_text
from youbot_dynamics.kinematics import planar
from youbot_dynamics.parameters import Settings, fixed_setting
from youbot_dynamics.robot_base import Base

_quotients = compiled(planar.arc_quotients)


@compiled
def along(x: float, y: float, yaw: float, dx: float, dy: float, turn: float) -> tuple[float, float, float]:
    """Pose reached from (x, y, yaw) by a body displacement (dx, dy, turn) [m, m, rad]; the yaw is not wrapped."""
    a, b = _quotients(turn)
    ahead, left = dx * a - dy * b, dx * b + dy * a
    c, s = cos(yaw), sin(yaw)
    return x + c * ahead - s * left, y + s * ahead + c * left, yaw + turn


@compiled
def between(x: float, y: float, yaw: float, to_x: float, to_y: float, to_yaw: float) -> tuple[float, float, float]:
    """Body displacement [m, m, rad] of the arc from one pose to another; it turns by at most pi."""
    c, s = cos(yaw), sin(yaw)
    ahead, left = c * (to_x - x) + s * (to_y - y), c * (to_y - y) - s * (to_x - x)
    turn = (to_yaw - yaw + pi) % (2.0 * pi) - pi
    a, b = _quotients(turn)
    scale = a * a + b * b
    return (ahead * a + left * b) / scale, (left * a - ahead * b) / scale, turn


FARTHEST = 1e6  # [m, rad, s, ...] beyond which a number is a mistake, and sums lose their digits


class TimedPath(NamedTuple):
    """A trajectory in numbers, for compiled loops; arrays are read-only."""

    times: Vector  # (n,) increasing [s]
    poses: Vector  # (n, 3) [m, m, rad], yaws without jumps
    joints: Vector  # (n - 1, 3) body twists that join them
    rates: Vector  # (n, 3) of x, y, yaw in the fixed frame at the points, which then shape the path; (0, 3) without


@compiled
def write_pose(path: TimedPath, time: float, pose: Vector) -> None:
    """Write the desired pose (3,) at `time` [s]; the yaw is not wrapped."""
    times = path.times
    if not times[0] < time < times[-1]:
        k = 0 if time <= times[0] else len(times) - 1
        for axis in range(3):
            pose[axis] = path.poses[k, axis]
        return
    k = int(np.searchsorted(times, time, side="right")) - 1
    since, begin, end = time - times[k], path.poses[k], path.poses[k + 1]
    if len(path.rates) == 0:
        joint = path.joints[k]
        pose[0], pose[1], pose[2] = along(
            begin[0], begin[1], begin[2], joint[0] * since, joint[1] * since, joint[2] * since
        )
        return
    span = times[k + 1] - times[k]
    s = since / span
    remaining = 1.0 - s
    for axis in range(3):
        pose[axis] = (
            (1.0 + 2.0 * s) * remaining * remaining * begin[axis]
            + s * remaining * remaining * span * path.rates[k, axis]
            + s * s * (3.0 - 2.0 * s) * end[axis]
            - s * s * remaining * span * path.rates[k + 1, axis]
        )


@compiled
def _write_poses(path: TimedPath, times: Vector, poses: Vector) -> None:
    for k in range(len(times)):
        write_pose(path, times[k], poses[k])


@dataclass(frozen=True)
class TrajectoryLimits(Settings):
    """How much of a trajectory is taken: what lies beyond is a mistake, or would hold up everything else."""

    max_points: int = fixed_setting(
        30000,
        "Largest number of points of a trajectory.",
        "1",
        (1.0, 200000.0),
        source="chosen: one a period over the longest duration",
    )
    max_duration: float = fixed_setting(
        600.0,
        "Longest duration of a trajectory.",
        "s",
        (1.0, 3600.0),
        source="chosen: far longer than the test programs, which last 20 s",
    )
    max_start_delay: float = fixed_setting(
        60.0,
        "Longest time until the start of a trajectory.",
        "s",
        (1.0, 3600.0),
        source="chosen: a later start means that a clock is wrong",
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
            if not value <= most:
                expected = f"at most {limit.format(most)}"
                raise TrajectoryError("trajectory", got=got.format(value), expected=expected, remedy=remedy)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Desired pose over time; before the first point it stands there, after the last one it stays.

    Raises:
        TrajectoryError: wrong shapes, no points, numbers that are not finite or beyond 1e6, or times that do not
            increase.

    Example:
        >>> path = yd.Trajectory([0.0, 2.0], [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]])
        >>> path.pose(1.0)
        array([0.25, 0.  , 0.  ])
    """

    times: Vector  # (n,) strictly increasing, from the start of the trajectory [s]
    poses: Vector  # (n, 3) x, y, yaw in one fixed frame [m, m, rad]
    twists: Vector | None = None  # (n, 3) body twists at the points [m/s, m/s, rad/s], or None
    numbers: TimedPath = field(init=False, repr=False)  # the same for compiled loops

    def __post_init__(self) -> None:
        """Check shapes and order, and freeze the arrays."""
        try:
            times, poses = real("times", self.times).copy(), real("poses", self.poses).copy()
            twists = None if self.twists is None else real("twists", self.twists).copy()
        except InputError:
            raise TrajectoryError("trajectory", got="no arrays of numbers", expected="times, poses, twists") from None
        if times.ndim != 1 or len(times) == 0:
            raise TrajectoryError("trajectory", got="no points", expected="one point or more")
        shapes = [poses.shape] + ([] if twists is None else [twists.shape])
        if any(shape != (len(times), 3) for shape in shapes):
            raise TrajectoryError(
                "trajectory", got=f"arrays of shape {shapes}", expected=f"({len(times)}, 3), a row a point"
            )
        rows = np.column_stack([times, poses] + ([] if twists is None else [twists]))
        broken = np.flatnonzero(~(np.abs(rows) <= FARTHEST).all(axis=1))
        if len(broken):
            expected = f"finite numbers up to {FARTHEST:g}"
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

        Raises:
            InputError: no three finite numbers, or a time that is none.
        """
        first, begin = finite_vector("pose", pose, 3), max(0.0, scalar("time", time))
        if self.times[0] <= begin:
            return self
        twists = None if self.twists is None else np.vstack([np.zeros(3), self.twists])
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
            InputError: a ramp or `dt` that is no finite number, or points that are too many.
        """
        span, ramp = float(self.times[-1] - self.times[0]), scalar("ramp", ramp)
        if not 0.0 <= ramp <= span:
            raise TrajectoryError("ramp of a trajectory", got=f"{ramp:g} s", expected=f"0 to {span:g} s, its duration")
        if ramp == 0.0:
            return self
        points = (span + ramp) / positive_time("dt", dt)
        if not points <= FARTHEST:
            raise InputError("dt", got=f"{dt:g} s", expected=f"at least {(span + ramp) / FARTHEST:g} s")
        count = max(2, round(points) + 1)
        times = np.linspace(0.0, span + ramp, count)
        # The integral of b from 0 to u is u^4 (5/2 - 3 u + u^2), a half at u = 1.
        up, down = np.clip(times / ramp, 0.0, 1.0), np.clip((span + ramp - times) / ramp, 0.0, 1.0)
        begun, ending = (ramp * u**4 * (2.5 - 3.0 * u + u * u) for u in (up, down))
        middle = times - 0.5 * ramp
        along = np.where(times < ramp, begun, np.where(times > span, span - ending, middle))
        return Trajectory(self.times[0] + times, self.path(self.times[0] + along))

    def pose(self, time: float) -> Vector:
        """Desired pose (3,) at `time` [s].

        Between two points along the constant twist that joins them (exact for a program); with given twists along
        the cubic that has their velocities at the points.

        Raises:
            InputError: a time that is no finite number.
        """
        pose: Vector = self.path(np.array([scalar("time", time)]))[0]
        return pose

    def path(self, times: ArrayLike) -> Vector:
        """Desired poses (k, 3) at times (k,) [s]: `pose` for many moments at once, its yaw not wrapped.

        Raises:
            InputError: times that are no vector of finite numbers.
        """
        at = array("times", times, (None,))
        poses = np.empty((len(at), 3))
        _write_poses(self.numbers, at, poses)
        return poses

    def mean_twist(self, start: float, end: float) -> Vector:
        """Body twist (3,) [m/s, m/s, rad/s] that a command held from `start` to `end` [s] should have.

        Raises:
            InputError: a time that is no finite number, or an end that is not after the start.
        """
        start, end = scalar("start", start), scalar("end", end)
        return planar.mean_twist(self.pose(start), self.pose(end), end - start)


def _fixed_rates(poses: Vector, twists: Vector) -> Vector:
    """Rates of x, y, yaw (n, 3) in the fixed frame from body twists (n, 3) at poses (n, 3)."""
    c, s = np.cos(poses[:, 2]), np.sin(poses[:, 2])
    return np.column_stack([c * twists[:, 0] - s * twists[:, 1], s * twists[:, 0] + c * twists[:, 1], twists[:, 2]])


LARGEST = 5_000_000  # [bytes] of a program file
_SHORTEST_HOLD, _LONGEST_HOLD = 1e-3, 60.0  # [s]


@dataclass(frozen=True, eq=False)
class Program:
    """Body twists, each held for `dt`."""

    name: str  # what it is called in messages and reports
    twists: Vector  # (n, 3) [m/s, m/s, rad/s]
    dt: float  # time each line is held [s]
    time_scale: float = 1.0  # how many times slower than written this already is [1]

    @property
    def duration(self) -> float:
        """Length [s]."""
        return len(self.twists) * self.dt

    def trajectory(self) -> Trajectory:
        """Poses reached by the held twists from the origin: exact on SE(2), not the lab's Euler sum."""
        poses: list[Vector] = [np.zeros(3)]
        for twist in self.twists:
            poses.append(planar.integrate(poses[-1], twist, self.dt))
        return Trajectory(np.arange(len(poses), dtype=float) * self.dt, np.array(poses))

    def scaled(self, time_scale: float) -> Program:
        """Same path in `time_scale` times the time: every line is held longer and driven slower."""
        return Program(self.name, self.twists / time_scale, self.dt * time_scale, self.time_scale * time_scale)

    def check(self, base: Base) -> None:
        """Refuse a program that the base cannot follow.

        Raises:
            ProgramError: names the line, what it needs of the base, and the time scale that fits; or a motion along an
                axis along which the base cannot move.
        """
        barred = np.any(self.twists[:, ~base.geometry.mecanum().free_axes], axis=1)
        if np.any(barred):
            got, line = "a motion sideways", int(np.argmax(barred)) + 1
            raise ProgramError(f"program {self.name}, line {line}", got=got, expected="0: this base cannot do it")
        needs = self._needs(base)
        for what, values, limit, unit, power in needs:
            line = int(np.argmax(values))
            if not values[line] <= limit * (1.0 + 1e-9):
                raise ProgramError(
                    f"program {self.name}, line {min(line + 1, len(self.twists))}",
                    got=f"{what} of {values[line]:.3g} {unit}",
                    expected=f"at most {limit:g} {unit}",
                    remedy=f"drive it slower with --time-scale {self.fitting_time_scale(base):.4g}" if power else "",
                )

    def fitting_time_scale(self, base: Base) -> float:
        """Smallest time scale, in hundredths and at least the present one, at which the base can follow."""
        slower = max(float((values.max() / limit) ** power) for _, values, limit, _, power in self._needs(base))
        return float(np.ceil(self.time_scale * max(slower - 1e-9, 1.0) * 100.0) / 100.0)

    def _needs(self, base: Base) -> tuple[tuple[str, Vector, float, str, float], ...]:
        """What it needs of the base: name, values, limit, unit, power of the slowdown by which the values fall.

        A change between two lines brakes where `wheel_commands.limit_acceleration` says so.
        """
        limits = base.limits
        kinematics = base.geometry.mecanum()
        rolling = kinematics.wheel_speeds(self.twists)
        angle = np.arctan2(*np.abs(rolling[:, :2]).T[::-1]) if kinematics.steered else np.zeros(len(rolling))
        twists = np.vstack([np.zeros(3), self.twists, np.zeros(3)])
        steps = np.diff(twists, axis=0) / self.dt
        linear, angular = np.hypot(steps[:, 0], steps[:, 1]), np.abs(steps[:, 2])
        along = twists[:-1] * steps
        slows, slows_turn = along[:, 0] + along[:, 1] < 0.0, along[:, 2] < 0.0
        return (
            ("a wheel speed", kinematics.fastest(rolling), limits.wheel_speed, "rad/s", 1.0),
            ("a steering angle", angle, limits.steering, "rad", 0.0),
            ("an acceleration", np.where(slows, 0.0, linear), limits.acceleration, "m/s2", 0.5),
            ("a deceleration", np.where(slows, linear, 0.0), limits.deceleration, "m/s2", 0.5),
            ("an angular acceleration", np.where(slows_turn, 0.0, angular), limits.angular_acceleration, "rad/s2", 0.5),
            ("an angular deceleration", np.where(slows_turn, angular, 0.0), limits.angular_deceleration, "rad/s2", 0.5),
        )


def read_program(path: Path | str, dt: float) -> Program:
    """Read a program file; empty lines and lines that begin with # are skipped.

    Args:
        path: text file, three numbers a line: Vx Vy Omega [m/s, m/s, rad/s].
        dt: time each line is held [s].

    Raises:
        ProgramError: missing file, one beyond `LARGEST` bytes, no lines, or a line that is not three finite numbers.
    """
    if not _SHORTEST_HOLD <= dt <= _LONGEST_HOLD:
        raise ProgramError("--dt", got=f"{dt:g} s", expected=f"{_SHORTEST_HOLD:g} to {_LONGEST_HOLD:g} s")
    text = read_text(path, ProgramError, f"program {path}", "a text file with lines Vx Vy Omega", LARGEST)
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].split()
        if not content:
            continue
        try:
            row = [float(word) for word in content]
        except ValueError:
            row = []
        if len(row) != 3 or not np.all(np.isfinite(row)):
            raise ProgramError(
                f"program {path}, line {number}", got=repr(line.strip()[:60]), expected="three numbers: Vx Vy Omega"
            )
        rows.append(row)
    if not rows:
        raise ProgramError(f"program {path}", got="no lines", expected="lines Vx Vy Omega, one a time step")
    return Program(Path(path).stem, np.array(rows), dt)
