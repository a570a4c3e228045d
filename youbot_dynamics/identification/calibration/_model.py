"""Predict poses from wheel angles in windows: residuals and their slopes over the geometry.

A tracked body at S = (x, y, yaw) on the robot moves, while the wheels turn by dq, from pose to pose as
    Z(t) = G o (P + c P'')(t),   P(t) = O(t - offset) o S,   O' = O o exp(A^+ diag(R) dq),
with A the rolling constraints of `MecanumBase`, integrated exactly on SE(2). c is half the variance of the times over
which the tracker averages; it is 0 without a filter, and negative for a filter that estimates speeds too. A low-pass
averages over the past alone, with a density that falls exponentially: its mean age is a part of the offset.
What the slip (1 - A A^+) diag(R) q of the wheels against each other tells is in `_slip`.

Source: systems 29-31, 34.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from youbot_dynamics.arrays import Indices, Vector, usual_step
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase

_BASE = np.zeros(3)  # pose of the base relative to itself
AROUND = 0.16  # [s] from a pose to the farthest ones that give its acceleration
# Ages and weights of an average over the past, with the density exp(-age) of mean and variance 1
_AGES, _SHARES = np.polynomial.laguerre.laggauss(5)
STEP = 1e-6  # step of the numerical slopes, in logarithms, m, rad, s


@dataclass(frozen=True, eq=False)
class Guess:
    """Current values of all unknowns."""

    base: MecanumBase  # kinematics
    sensor: Vector  # (3,) pose of the tracked body on the robot [m, m, rad]
    offsets: Vector  # (r,) pose stamp minus wheel stamp of the same moment, per recording [s]
    smoothing: float = 0.0  # c of the tracker [s2]
    of_past: bool = False  # whether it averages over the past, exponentially, else over the times around each

    def moved(self, change: Vector) -> Guess:
        """The guess with its values changed by (p,), p = n + 6 + r.

        The changes are logarithms of the n radii, the lever and the lateral factor, then sensor, offsets and smoothing.
        """
        n = len(self.base.radii)
        factor = self.base.lateral_factor * float(np.exp(change[n + 1]))
        base = replace(
            self.base,
            positions=scaled_to(self.base, lever(self.base) * float(np.exp(change[n])), factor),
            radii=self.base.radii * np.exp(change[:n]),
            lateral_factor=factor,
        )
        sensor, offsets = self.sensor + change[n + 2 : n + 5], self.offsets + change[n + 5 : -1]
        return Guess(base, sensor, offsets, self.smoothing + float(change[-1]), self.of_past)

    def change_to(self, other: Guess) -> Vector:
        """Change (p,) that makes `moved` lead to another guess."""
        radii, levers = np.log(other.base.radii / self.base.radii), lever(other.base) / lever(self.base)
        factors = other.base.lateral_factor / self.base.lateral_factor
        places = other.sensor - self.sensor, other.offsets - self.offsets, [other.smoothing - self.smoothing]
        return np.concatenate([radii, np.log([levers, factors]), *places])


def lever(base: MecanumBase, lateral_factor: float | None = None) -> float:
    """Mean over the wheels of |x tan(d) / lateral_factor - y| [m], the rolling distance per angle of a turn.

    For the youBot it is half_length / lateral_factor + half_width; the motion determines only this combination. Omni
    wheels that drive along a circle have their distance from its middle.

    Source: systems 29, 56.
    """
    slants = base.slants / (lateral_factor or base.lateral_factor)
    return float(np.mean(np.abs(base.positions[:, 0] * slants - base.positions[:, 1] * base.along)))


def ratios(fitted: MecanumBase, configured: MecanumBase) -> dict[str, float]:
    """Fitted over configured wheel radius, lever and lateral factor, by their names in words."""
    return {
        "wheel radius": float(np.mean(fitted.radii / configured.radii)),
        "lever of a turn": lever(fitted) / lever(configured),
        "lateral factor": fitted.lateral_factor / configured.lateral_factor,
    }


def scaled_to(base: MecanumBase, target: float, lateral_factor: float) -> Vector:
    """Wheel positions (n, 2), scaled by a common factor, that have the lever `target` [m] with this lateral factor."""
    return base.positions * (target / lever(base, lateral_factor))


@dataclass(frozen=True, eq=False)
class Windows:
    """Poses of one recording, grouped into windows."""

    signals: CalibrationSignals  # the recording
    rows: Indices  # (m,) indices of the poses used
    starts: Indices  # (w,) index into `rows` at which each of the w windows starts
    span: float  # length [s]; shorter before and after a gap

    @property
    def counts(self) -> Indices:
        """Poses (w,) in each window."""
        return np.diff(np.append(self.starts, len(self.rows)))

    @property
    def middles(self) -> Vector:
        """Mean times (w,) of the poses of each window, as `since_start` [s]."""
        return np.asarray(self.sums(self.signals.since_start[self.rows]) / self.counts)

    def sums(self, values: Vector) -> Vector:
        """Sums (w, ...) of values (m, ...) over the windows."""
        return np.add.reduceat(values, self.starts, axis=0)

    def spread(self, values: Vector) -> Vector:
        """Values (w, ...) of the windows, repeated for each of their poses (m, ...)."""
        return np.repeat(values, self.counts, axis=0)


def odometry(signals: CalibrationSignals, base: MecanumBase, times: Vector, sensor: Vector = _BASE) -> Vector:
    """Odometry poses (m, 3) [m, m, rad] of a body at `sensor` (3,) on the base at times (m,) [s]; yaw unwrapped.

    The base starts at the origin with the first reading. The twist is constant between two readings and integrated
    exactly on SE(2); beyond the ends it is extrapolated.
    """
    steps = np.diff(signals.wheel_angles, axis=0) @ base.forward_matrix.T
    displacements = _exponentials(steps)
    poses = np.zeros((len(signals.wheel_time), 3))
    poses[1:, 2] = np.cumsum(steps[:, 2])
    poses[1:, :2] = np.cumsum(planar.turned(displacements[:, :2], poses[:-1, 2]), axis=0)
    index, share = _intervals(signals.wheel_time, times)
    part = _exponentials(steps[index] * share[:, None])
    path = poses[index]
    for step in (part, sensor):
        path[:, :2] += planar.turned(step[..., :2], path[:, 2])
        path[:, 2] += step[..., 2]
    return path


def tracked(
    signals: CalibrationSignals,
    base: MecanumBase,
    times: Vector,
    sensor: Vector,
    smoothing: float,
    of_past: bool = False,
) -> Vector:
    """Poses (m, 3) as `odometry`, with `smoothing` [s2] times their second derivative: as a tracker shows them.

    The derivative is without the pose itself: the error of a coarse encoder, in it and in the residual, would look like
    smoothing. Where the average is `of_past`, poses of the past have exponential weights of that variance about their
    mean age, by the five nodes of Gauss and Laguerre.

    A straight line between two readings of the wheels, h apart, is an average too: at a share s of its time, s (1 - s)
    h^2 / 2 of the smoothing is its own, and a twelfth of h^2 where poses of the past are anywhere in it.
    """
    if of_past and (own := smoothing - usual_step(signals.wheel_time, 0.0) ** 2 / 12.0) > 0.0:
        shifts = math.sqrt(2.0 * own) * (1.0 - _AGES)
        poses = odometry(signals, base, np.add.outer(shifts, times).ravel(), sensor)
        return np.asarray(np.tensordot(_SHARES, poses.reshape(len(shifts), -1, 3), 1))
    index, share = _intervals(signals.wheel_time, times)
    apart, share = np.diff(signals.wheel_time)[index], np.clip(share, 0.0, 1.0)
    left = smoothing - 0.5 * share * (1.0 - share) * apart**2
    shifts = AROUND * np.array([0.0, -1.0, -0.5, 0.5, 1.0])
    poses = odometry(signals, base, np.add.outer(shifts, times).ravel(), sensor)
    path, first, before, after, last = np.split(poses, len(shifts))
    return path + left[:, None] / (0.75 * AROUND**2) * (first - before - after + last)


def _rotations(signals: CalibrationSignals, times: Vector) -> Vector:
    """Turns (m, n) [rad] of the wheels from their first reading to times (m,) [s], extrapolated beyond the ends."""
    angles = signals.wheel_angles
    if not len(times):
        return np.zeros((0, angles.shape[1]))
    index, share = _intervals(signals.wheel_time, times)
    return np.asarray(angles[index] + share[:, None] * (angles[index + 1] - angles[index]) - angles[0])


def slips_of_wheels(signals: CalibrationSignals, base: MecanumBase, times: Vector) -> Vector:
    """Slip (m, n) of the wheels against each other at times (m,) [s], in rad of a mean wheel.

    Radii are relative to their mean, so that smaller wheels do not look like less slip.
    """
    rolling = base.inverse_matrix * base.radii[:, None]
    slip_projection = np.eye(len(base.radii)) - rolling @ np.linalg.pinv(rolling)
    return np.asarray(_rotations(signals, times) @ (slip_projection * (base.radii / np.mean(base.radii))).T)


def motions(signals: CalibrationSignals, base: MecanumBase, times: Vector) -> Vector:
    """Forward, sideways [m] and turn [rad] (m, 3) of the wheels from the first reading to times (m,) [s]."""
    return np.asarray(_rotations(signals, times) @ base.forward_matrix.T)


def residuals(windows: Windows, guess: Guess, offset: float, weights: Vector, scales: Vector) -> Vector:
    """Pose and slip residuals (m, 3 + n) [m, m, rad, rad ..] of one recording, without the means of the windows.

    `offset` is that of the clocks [s], `weights` (m, 2) are those of the poses and of the slips in the mean of their
    window, `scales` (3,) the standard deviations of position [m], yaw [rad] and slip [rad].
    """
    measured = windows.signals.poses[windows.rows]
    times = windows.signals.pose_time[windows.rows] - offset
    predicted = tracked(windows.signals, guess.base, times, guess.sensor, guess.smoothing, guess.of_past)
    share = weights / np.maximum(windows.spread(windows.sums(weights)), 1e-300)
    pose_share, slip_share = share[:, :1], share[:, 1:]

    def centred(values: Vector, weight: Vector) -> Vector:
        return values - windows.spread(windows.sums(weight * values))

    # Rotation of each window: first from the yaws, then a correction from positions and yaws together.
    turn = measured[:, 2] - predicted[:, 2]
    heading = np.arctan2(windows.sums(pose_share[:, 0] * np.sin(turn)), windows.sums(pose_share[:, 0] * np.cos(turn)))
    measured_path = centred(measured[:, :2], pose_share)
    predicted_path = centred(predicted[:, :2], pose_share)
    rotated = planar.turned(predicted_path, windows.spread(heading))
    tangent = np.column_stack([-rotated[:, 1], rotated[:, 0]])
    yaw_residual = wrapped(turn - windows.spread(heading))
    moment = np.sum(tangent * (measured_path - rotated), axis=1) / scales[0] ** 2 + yaw_residual / scales[1] ** 2
    stiffness = np.sum(tangent**2, axis=1) / scales[0] ** 2 + 1.0 / scales[1] ** 2
    correction = windows.sums(pose_share[:, 0] * moment) / windows.sums(pose_share[:, 0] * stiffness)
    rotated = planar.turned(rotated, windows.spread(correction))
    slips = centred(slips_of_wheels(windows.signals, guess.base, times), slip_share)
    return np.column_stack([measured_path - rotated, yaw_residual - windows.spread(correction), slips])


def _intervals(stamps: Vector, times: Vector) -> tuple[Indices, Vector]:
    """Interval of the stamps (s,) that contains each time (m,) and the position in it; the last one beyond the ends."""
    index = np.clip(np.searchsorted(stamps, times, side="right") - 1, 0, len(stamps) - 2)
    return index, (times - stamps[index]) / (stamps[index + 1] - stamps[index])


def _exponentials(steps: Vector) -> Vector:
    """SE(2) exponentials (m, 3) of body displacements (m, 3), as `planar.exponential`."""
    turn = steps[:, 2]
    half = np.sinc(0.5 * turn / np.pi)  # sin(turn/2) / (turn/2): the chord over the arc
    return np.column_stack([planar.turned(steps[:, :2] * half[:, None], 0.5 * turn), turn])


def wrapped(angle: Vector) -> Vector:
    """Angles (m,) in [-pi, pi)."""
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


MOVING = 0.02  # [m] or [rad] motion over a span or a window below which the robot is at rest


def odometry_errors(
    signals: CalibrationSignals,
    base: MecanumBase,
    sensor: Vector,
    offset: float,
    span: float = 2.0,
    smoothing: float = 0.0,
    of_past: bool = False,
) -> Vector:
    """Errors (m, 3) [m, m, rad] of odometry over each `span` with motion: forward, sideways and in yaw.

    Displacement over the span [s] by the wheels minus that of the tracked body, in the robot frame at the start, for
    each pose with another pose one span later. The noise of the tracker is included. `sensor` (3,), `offset` and
    the filter of the tracker, which is no error of odometry, are as in `Guess`.

    Source: system 28.
    """
    times = signals.pose_time - offset
    inside = np.flatnonzero((times >= signals.wheel_time[0]) & (times <= signals.wheel_time[-1]))
    times, measured = times[inside], signals.poses[inside]
    ends = np.searchsorted(times, times + span)
    starts = np.flatnonzero(ends < len(times))
    ends = ends[starts]
    period = usual_step(times, 0.0)
    valid = np.abs(times[ends] - times[starts] - span) <= 2.0 * period
    starts, ends = starts[valid], ends[valid]
    rolled = _displacements(tracked(signals, base, times, sensor, smoothing, of_past), starts, ends, float(sensor[2]))
    errors = rolled - _displacements(measured, starts, ends, float(sensor[2]))
    errors[:, 2] = wrapped(errors[:, 2])
    return np.asarray(errors[np.max(np.abs(rolled), axis=1) > MOVING])


def _displacements(poses: Vector, starts: Indices, ends: Indices, yaw: float) -> Vector:
    """Displacements (m, 3) between poses (k, 3) of a body turned by `yaw` on the robot, in the robot's start frame."""
    step = poses[ends] - poses[starts]
    return np.column_stack([planar.turned(step[:, :2], yaw - poses[starts, 2]), step[:, 2]])
