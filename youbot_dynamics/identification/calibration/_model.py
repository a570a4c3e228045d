"""What wheels of some geometry say about poses, window by window: residuals and their slopes over the geometry.

A tracked body at S = (x, y, yaw) on the robot moves, while the wheels turn by dq, from pose to pose as
    Z(t) = G o P(t),   P(t) = O(t - offset) o S,   O' = O o exp(A^+ diag(R) dq),
with A the rolling constraints of `MecanumBase` (systems 29-31, 34) integrated exactly on SE(2). Where a window begins,
G, is not asked: it is fitted to the poses of each window, so that odometry counts only over its length. What the wheels
turn against each other, (1 - A A^+) diag(R) q, is slip; it stays what it was in a window, but for noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.kinematics.mecanum import MecanumBase

_BASE = np.zeros(3)  # pose of the base on itself
_STEP = 1e-6  # of the slopes, in logarithms, m, rad, s


@dataclass(frozen=True, eq=False)
class Guess:
    """Values of all that is asked for."""

    base: MecanumBase  # kinematics
    sensor: Vector  # (3,) pose of the tracked body on the robot [m, m, rad]
    offsets: Vector  # (r,) what a pose is stamped later than the wheels' reading of the same moment [s], per recording

    def moved(self, change: Vector) -> Guess:
        """Guess with its values changed by (p,), p = n + 5 + r.

        Logarithms of the n radii, of the lever and of the lateral factor, then sensor and offsets.
        """
        n = len(self.base.radii)
        factor = self.base.lateral_factor * float(np.exp(change[n + 1]))
        base = MecanumBase(
            scaled_to(self.base, lever(self.base) * float(np.exp(change[n])), factor),
            self.base.radii * np.exp(change[:n]),
            self.base.roller_angles,
            factor,
        )
        return Guess(base, self.sensor + change[n + 2 : n + 5], self.offsets + change[n + 5 :])


def lever(base: MecanumBase, lateral_factor: float | None = None) -> float:
    """Mean over the wheels of what a turn moves them by, |x tan(d) / lateral_factor - y| [m] (systems 29, 56).

    For the youBot half_length / lateral_factor + half_width: all that its motion tells of the two.
    """
    tangents = np.tan(base.roller_angles) / (lateral_factor or base.lateral_factor)
    return float(np.mean(np.abs(base.positions[:, 0] * tangents - base.positions[:, 1])))


def scaled_to(base: MecanumBase, wanted: float, lateral_factor: float) -> Vector:
    """Positions (n, 2) of the wheels, all by one factor, that have the `wanted` lever [m] with this lateral factor."""
    scaled: Vector = base.positions * (wanted / lever(base, lateral_factor))
    return scaled


@dataclass(frozen=True, eq=False)
class Windows:
    """Poses of one recording, sorted into windows of equal length."""

    signals: CalibrationSignals  # the recording
    rows: Indices  # (m,) which of its poses take part
    starts: Indices  # (w,) place among `rows` at which each of the w windows begins
    keys: Indices  # (w,) number of each window: time over its length
    span: float  # length [s]

    @property
    def counts(self) -> Indices:
        """Poses (w,) in each window."""
        return np.diff(np.append(self.starts, len(self.rows)))

    def sums(self, values: Vector) -> Vector:
        """Sums (w, ...) of values (m, ...) over the windows."""
        total: Vector = np.add.reduceat(values, self.starts, axis=0)
        return total

    def spread(self, values: Vector) -> Vector:
        """Values (w, ...) of the windows, repeated for each of their poses (m, ...)."""
        spread: Vector = np.repeat(values, self.counts, axis=0)
        return spread


def odometry(signals: CalibrationSignals, base: MecanumBase, times: Vector, sensor: Vector = _BASE) -> Vector:
    """Poses (m, 3) [m, m, rad] of a body at `sensor` (3,) on the base, by the wheels at times (m,) [s]; yaw unwrapped.

    The base begins at the origin with the first reading. Constant twist between two readings, exact on SE(2); the same
    beyond the ends.
    """
    steps = np.diff(signals.wheel_angles, axis=0) @ base.forward_matrix.T
    ways = _exponentials(steps)
    poses = np.zeros((len(signals.wheel_time), 3))
    poses[1:, 2] = np.cumsum(steps[:, 2])
    poses[1:, :2] = np.cumsum(turned(ways[:, :2], poses[:-1, 2]), axis=0)
    place, share = _intervals(signals.wheel_time, times)
    part = _exponentials(steps[place] * share[:, None])
    reckoned = poses[place]
    for step in (part, sensor):
        reckoned[:, :2] += turned(step[..., :2], reckoned[:, 2])
        reckoned[:, 2] += step[..., 2]
    return reckoned


def _slips(signals: CalibrationSignals, base: MecanumBase, times: Vector) -> Vector:
    """What the wheels turned against each other (m, n) [rad of a mean wheel] at times (m,) [s].

    Radii count relative to their mean: smaller wheels must not look like less slip.
    """
    rolling = base.inverse_matrix * base.radii[:, None]
    across = np.eye(len(base.radii)) - rolling @ np.linalg.pinv(rolling)
    place, share = _intervals(signals.wheel_time, times)
    angles = signals.wheel_angles
    turned = angles[place] + share[:, None] * (angles[place + 1] - angles[place]) - angles[0]
    slips: Vector = turned @ (across * (base.radii / np.mean(base.radii))).T
    return slips


def residuals(windows: Windows, guess: Guess, offset: float, weights: Vector, scales: Vector) -> Vector:
    """Pose and slip residuals (m, 3 + n) [m, m, rad, rad ..] of the poses of one recording, means of windows taken out.

    Args:
        windows: of the recording.
        guess: what is believed.
        offset: of the clocks [s].
        weights: (m, 2) of the poses and of the slips in the mean of their window.
        scales: (3,) standard deviations of position [m], yaw [rad] and slip [rad], by which they count.
    """
    measured = windows.signals.poses[windows.rows]
    times = windows.signals.pose_time[windows.rows] - offset
    predicted = odometry(windows.signals, guess.base, times, guess.sensor)
    share = weights / np.maximum(windows.spread(windows.sums(weights)), 1e-300)
    pose_share, slip_share = share[:, :1], share[:, 1:]

    def level(values: Vector, by: Vector) -> Vector:
        return values - windows.spread(windows.sums(by * values))

    # Turn of each window: first by the yaws, then what positions and yaws together want on top of it.
    turn = measured[:, 2] - predicted[:, 2]
    heading = np.arctan2(windows.sums(pose_share[:, 0] * np.sin(turn)), windows.sums(pose_share[:, 0] * np.cos(turn)))
    way = level(measured[:, :2], pose_share)
    path = level(predicted[:, :2], pose_share)
    ahead = turned(path, windows.spread(heading))
    aside = np.column_stack([-ahead[:, 1], ahead[:, 0]])
    off_yaw = wrapped(turn - windows.spread(heading))
    wish = np.sum(aside * (way - ahead), axis=1) / scales[0] ** 2 + off_yaw / scales[1] ** 2
    stiffness = np.sum(aside**2, axis=1) / scales[0] ** 2 + 1.0 / scales[1] ** 2
    more = windows.sums(pose_share[:, 0] * wish) / windows.sums(pose_share[:, 0] * stiffness)
    ahead = turned(ahead, windows.spread(more))
    slips = level(_slips(windows.signals, guess.base, times), slip_share)
    return np.column_stack([way - ahead, off_yaw - windows.spread(more), slips])


def slopes(windows: Windows, guess: Guess, place: int, weights: Vector, scales: Vector, asked: Indices) -> Vector:
    """Slopes (m, 3 + n, p) of the `residuals` over the p changes of `Guess.moved`, zero for those not asked for.

    `place` is that of the recording among the offsets.
    """
    n = len(guess.base.radii)
    count = n + 5 + len(guess.offsets)
    found = np.zeros((len(windows.rows), 3 + n, count))
    for k in asked:
        if k >= n + 5 and k != n + 5 + place:
            continue
        change = np.zeros(count)
        change[k] = _STEP
        after, before = guess.moved(change), guess.moved(-change)
        rise = residuals(windows, after, float(after.offsets[place]), weights, scales)
        fall = residuals(windows, before, float(before.offsets[place]), weights, scales)
        found[:, :, k] = (rise - fall) / (2.0 * _STEP)
    # Slips say nothing of the clocks. Interpolated they are less noisy: their misfit drove poses off the readings.
    found[:, 3:, n + 5 :] = 0.0
    return found


def _intervals(stamps: Vector, times: Vector) -> tuple[Indices, Vector]:
    """Interval of the stamps (s,) in which each time (m,) lies, and how far in it; beyond the ends the last ones."""
    place = np.clip(np.searchsorted(stamps, times, side="right") - 1, 0, len(stamps) - 2)
    return place, (times - stamps[place]) / (stamps[place + 1] - stamps[place])


def _exponentials(steps: Vector) -> Vector:
    """Ways (m, 3) of body displacements (m, 3): `planar.exponential` of many."""
    turn = steps[:, 2]
    half = np.sinc(0.5 * turn / np.pi)  # sin(turn/2) / (turn/2): the chord over the arc
    return np.column_stack([turned(steps[:, :2] * half[:, None], 0.5 * turn), turn])


def turned(vectors: Vector, angle: Vector) -> Vector:
    """Vectors (m, 2) or (2,) turned by angles (m,)."""
    c, s = np.cos(angle), np.sin(angle)
    x, y = vectors[..., 0], vectors[..., 1]
    return np.column_stack([c * x - s * y, s * x + c * y])


def wrapped(angle: Vector) -> Vector:
    """Angles (m,) in [-pi, pi)."""
    wrapped: Vector = (angle + np.pi) % (2.0 * np.pi) - np.pi
    return wrapped


_MOVING = 0.02  # [m] or [rad] over the span, below which the robot stands and odometry cannot err


def odometry_errors(
    signals: CalibrationSignals, base: MecanumBase, sensor: Vector, offset: float, span: float = 2.0
) -> Vector:
    """Errors (m, 3) [m, m, rad] of odometry over every `span` in which the robot moves: forward, sideways and in yaw.

    Way and turn from the tracked body's pose at the start of the span to that at its end, by the wheels less by the
    tracker, each seen from the robot at the start (system 28). What the tracker's own noise adds is in them.

    Args:
        signals: the recording.
        base: kinematics, such as the calibrated ones.
        sensor: (3,) pose of the tracked body on the robot [m, m, rad].
        offset: what poses are stamped later than the wheels [s].
        span: over which odometry runs free [s].

    Returns:
        One row for each pose from which another one follows a span later.
    """
    times = signals.pose_time - offset
    inside = np.flatnonzero((times >= signals.wheel_time[0]) & (times <= signals.wheel_time[-1]))
    times, tracked = times[inside], signals.poses[inside]
    ends = np.searchsorted(times, times + span)
    starts = np.flatnonzero(ends < len(times))
    ends = ends[starts]
    usual = float(np.median(np.diff(times))) if len(times) > 1 else 0.0
    sound = np.abs(times[ends] - times[starts] - span) <= 2.0 * usual
    starts, ends = starts[sound], ends[sound]
    reckoned = _ways(odometry(signals, base, times, sensor), starts, ends, float(sensor[2]))
    errors = reckoned - _ways(tracked, starts, ends, float(sensor[2]))
    errors[:, 2] = wrapped(errors[:, 2])
    moving: Vector = errors[np.max(np.abs(reckoned), axis=1) > _MOVING]
    return moving


def _ways(poses: Vector, starts: Indices, ends: Indices, yaw: float) -> Vector:
    """Ways and turns (m, 3) between poses (k, 3) of a body turned by `yaw` on the robot, in the robot's axes then."""
    step = poses[ends] - poses[starts]
    return np.column_stack([turned(step[:, :2], yaw - poses[starts, 2]), step[:, 2]])
