"""Odometry from wheel angles: exact SE(2) steps and a covariance that grows with distance and slip.

Source: systems 28, 31.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, isfinite

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.phase_guard import RollerWatch
from youbot_dynamics.estimation.odometry._gyro import GyroTurn
from youbot_dynamics.estimation.odometry._slip import CoherentErrors, SlipReport, SlipSettings, SlipTest
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.roller_phase import RollingWheels
from youbot_dynamics.robot import Robot

_VOTES_FADE = 10.0  # [s] time constant of the votes on signs
_LATE_MEANS_RESTART = 10  # readings in a row
_STEP_SLACK = 0.02  # [s] by which two stamps may be closer than their readings: 4 standard deviations of each
_STANDS_AFTER = 0.5  # [s] without a turn of any wheel by more than
_STANDS_WITHIN = 1e-3  # [rad] 50 um of travel: wheels that motors hold against each other creep, and counts flicker
_OF_GYRO = 2  # constant errors of the gyro: bias and scale
_LEFT_OF_A_REPAIR = 1.0 / 3.0  # standard deviation of a correction, relative to the correction


@dataclass(frozen=True, eq=False)
class OdometryState:
    """Pose and twist of the base after one wheel reading."""

    stamp: float  # of the reading [s]
    pose: Vector  # (3,) in the odometry frame [m, m, rad], yaw in (-pi, pi]
    twist: Vector  # (3,) in the body frame: mean since the last reading [m/s, m/s, rad/s]
    covariance: Vector  # (3, 3) of the pose, in the odometry frame
    twist_covariance: Vector  # (3, 3) in the body frame


class Odometry:
    """Integrates wheel angles, not speeds: their quantum is 3 um of travel, that of the speeds is 3 mm/s.

    The rolling constraints are those of the rollers on the floor if their phases are known, else the constant mean
    rows. The least squares use the weights `Base.wheel_weights`. A wheel that does not fit the others widens the
    covariance by the effect of each single wheel. If gyro and known sign identify the wheel, its error since the start
    of the window is removed from the pose, and the wheel is left out of the steps.

    Args:
        robot: geometry, drift, limits and the driver's resolution.
        wheels: rows and rollers; by default the robot's mean rows, of wheels with ideal rollers at unknown phases.
        slip: settings of the slip test.

    Attributes:
        jumps: number of jumps of encoders or stamps.
        late: number of late readings.
        slips: number of slip alarms.
        slip: report of the last step.
        phases_lost: why known phases are no longer used; "" while they are, or if they never were known.
    """

    def __init__(
        self,
        robot: Robot,
        wheels: RollingWheels | None = None,
        slip: SlipSettings | None = None,
    ) -> None:
        self.wheels = RollingWheels.ideal(robot.base.geometry.mecanum()) if wheels is None else wheels
        self.base = self.wheels.base
        self._drift = robot.base.drift
        # A step beyond twice a wheel's range means a restarted encoder.
        self._fastest_wheel = 2.0 * robot.base.limits.wheel_speed
        self._position_quantum = robot.driver.position_quantum
        self._stamp_jitter = robot.driver.stamp_jitter
        self._slip_settings = SlipSettings() if slip is None else slip
        self._mean = self.wheels.at_phases(None)
        self._watch = RollerWatch(self._position_quantum)
        self._test = self._new_test()
        count = len(self.base.radii)
        self._reach = self.base.reach
        self._weights = robot.base.wheel_weights()
        self._spread = _weighted_inverse(self.base.inverse_matrix, self._weights)
        self._spread_square: Vector = self._spread @ self._spread.T
        plane = _weighted_inverse(self.base.inverse_matrix[:, :2], self._weights)
        self._plane_spread = np.vstack([plane, np.zeros(count)])
        self.slip = SlipReport(False, 0.0, np.zeros(count), None)
        self._left_out: int | None = None
        self.jumps = self.late = self.slips = 0
        self.phases_lost = ""
        self._late_in_a_row = 0
        self._angles: Vector | None = None
        self._stamp, self._moved_at = 0.0, 0.0
        self._moved_angles: Vector = np.zeros(len(self.base.radii))  # wheel angles at the last motion
        self._pose: Vector = np.zeros(3)
        self._coherent = CoherentErrors(count + _OF_GYRO)  # one for each wheel, then the gyro's bias and scale

    @property
    def standing(self) -> bool:
        """Whether the wheels have hardly moved for half a second, so that a gyro shows its bias."""
        return self._angles is not None and self._stamp - self._moved_at >= _STANDS_AFTER

    @property
    def last_stamp(self) -> float | None:
        """Stamp of the reading at which the next step starts [s], for the gyro's turn; None if there is none."""
        return None if self._angles is None else self._stamp

    @property
    def last_angles(self) -> Vector | None:
        """Wheel angles (n,) of that reading [rad]."""
        return self._angles

    def take_phases(self, phases: Vector) -> None:
        """Continue with roller phases (n,) [rad] that were estimated while driving."""
        self.wheels, self.phases_lost = self._mean.at_phases(phases), ""
        self._watch, self._test = RollerWatch(self._position_quantum), self._new_test()

    def reset(self) -> None:
        """Set the pose to the origin without uncertainty; the next reading continues from there."""
        self._pose = np.zeros(3)
        self._coherent = CoherentErrors(len(self.base.radii) + _OF_GYRO)
        if self._late_in_a_row:
            # The last stamp is in doubt, so the next reading starts a new sequence.
            self._angles, self._late_in_a_row = None, 0

    def update(self, stamp: float, wheel_angles: ArrayLike, turn: GyroTurn | None = None) -> OdometryState | None:
        """Process one reading; None for the first one, a late one, and one across a jump of the encoders.

        Args:
            stamp: of the reading [s]; one that is not after the last is ignored and counted in `late`. Ten in a row
                mean another clock, on which odometry restarts.
            wheel_angles: (n,) [rad], positive forward. NaN or a jump is counted in `jumps` and restarts odometry
                without the roller phases, which refer to the encoder counts.
            turn: of the base since `last_stamp` from a gyro, or None; it replaces the turn of the wheels.
        """
        angles = np.array(wheel_angles, dtype=float)
        if self._angles is None:
            if np.all(np.isfinite(angles)):
                self._angles, self._stamp = angles, stamp
                self._moved_at, self._moved_angles = stamp, angles
            return None
        dt = stamp - self._stamp
        if dt <= 0.0:
            self.late += 1
            self._late_in_a_row += 1
            if self._late_in_a_row < _LATE_MEANS_RESTART:
                return None
            # Not late messages but another clock: one stamp far ahead, or a restarted driver.
            self.jumps += 1
            self._start_anew(stamp, None, "the clock of the driver jumped")
            return self.update(stamp, wheel_angles)
        self._late_in_a_row = 0
        step = angles - self._angles
        finite = all(map(isfinite, angles.tolist()))
        if not (finite and max(map(abs, step.tolist())) <= self._fastest_wheel * (dt + _STEP_SLACK)):
            self.jumps += 1
            self._start_anew(stamp, angles if finite else None, "the wheel counts jumped")
            return None
        displacement, errors = self._displacement(dt, angles, step, turn)
        pose = self._coherent.move(self._pose, displacement, errors, self._noise(displacement, turn))
        if self.slip.wheel is not None and self._left_out is None:
            pose = self._put_right(self.slip.wheel, pose)
        if self._watch.lost:
            self._lose_phases("the residual of the wheels does not follow the rollers")
        self._pose = np.array([pose[0], pose[1], planar.wrap(pose[2])])
        if max(map(abs, (angles - self._moved_angles).tolist())) > _STANDS_WITHIN:
            self._moved_at, self._moved_angles = stamp, angles
        self._angles, self._stamp = angles, stamp
        twist, covariance = displacement / dt, self._coherent.covariance(float(self._pose[2]))
        return OdometryState(stamp, self._pose.copy(), twist, covariance, self._twist_covariance(twist, dt))

    def _start_anew(self, stamp: float, angles: Vector | None, reason: str) -> None:
        """Restart from here; encoder counts may have restarted, which invalidates the roller phases."""
        self._angles, self._stamp, self._late_in_a_row = angles, stamp, 0
        self._moved_at = stamp
        if angles is not None:
            self._moved_angles = angles
        self._test.clear()
        self._lose_phases(reason)

    def _lose_phases(self, reason: str) -> None:
        if self.wheels.phases is None:
            return
        self.wheels, self.phases_lost = self._mean, reason
        self._test = self._new_test()

    def _new_test(self) -> SlipTest:
        return SlipTest(self.wheels, self._slip_settings, self._position_quantum, self._stamp_jitter)

    def _displacement(self, dt: float, angles: Vector, step: Vector, turn: GyroTurn | None) -> tuple[Vector, Vector]:
        """Displacement (3,) of one step, with the slip test, and its errors (m, 3) that are equal in all steps."""
        before = angles - step
        known_turn = None if turn is None else turn.angle
        rolled = self.wheels.roll(before, angles, known_turn, self._weights)
        if self.wheels.phases is not None:
            self._watch.update(dt, self.base.slip(rolled.residual), self.base.slip(step))
        slipped = self.slip.alarm
        self.slip = self._test.update(dt, before, step, rolled.displacement, rolled.residual, turn)
        self.slips += self.slip.alarm and not slipped
        if slipped and not self.slip.alarm:
            self._coherent.close(slice(0, -_OF_GYRO))
            self._left_out = None
        displacement = rolled.displacement
        if self._left_out is not None and turn is not None:
            weights = self._weights.copy()
            weights[self._left_out] = 0.0
            displacement = self.wheels.roll(before, angles, known_turn, weights).displacement
        spread = self._spread if turn is None else self._plane_spread
        errors = np.zeros((len(step) + _OF_GYRO, 3))
        if self.slip.alarm and (self._left_out is None or turn is None):
            errors[:-_OF_GYRO] = spread.T * self.slip.excess[:, None]
        if turn is not None:
            errors[-_OF_GYRO:, 2] = turn.bias_error, turn.scale_error
        return displacement, errors

    def _put_right(self, wheel: int, pose: Vector) -> Vector:
        """Pose (3,) without the error of a wheel since the start of the window; the wheel is left out from now on."""
        error = self._coherent.errors[wheel].copy()
        self._coherent.errors[:-_OF_GYRO] = 0.0
        self._coherent.errors[wheel] = _LEFT_OF_A_REPAIR * error
        self._left_out = wheel
        return planar.compose(pose, planar.exponential(-error))

    def _noise(self, displacement: Vector, turn: GyroTurn | None) -> tuple[float, float, float]:
        """Variances of a displacement in the body frame, proportional to the way; the yaw has that of a gyro."""
        way = hypot(displacement[0], displacement[1]) + self._reach * abs(float(displacement[2]))
        position = self._drift.position**2 * way
        return position, position, self._drift.yaw**2 * way if turn is None else turn.variance

    def _twist_covariance(self, twist: Vector, dt: float) -> Vector:
        """Covariance from two readings over dt^2: independent rounding q^2/12 of each wheel, and common stamp jitter.

        A stamp error s changes the whole twist by twist s / dt, and so has no effect at standstill.
        """
        rounding = 2.0 * self._position_quantum**2 / 12.0 / dt**2
        jitter = 2.0 * (self._stamp_jitter / dt) ** 2
        return rounding * self._spread_square + jitter * twist[:, None] * twist


def _weighted_inverse(rows: Vector, weights: Vector) -> Vector:
    """Matrix (m, n) of the weighted least squares of rows (n, m) x = b with weights (n,)."""
    roots = np.sqrt(weights)
    return np.asarray(np.linalg.pinv(roots[:, None] * rows) * roots, dtype=np.float64)


class SignCheck:
    """Compares d(position)/dt with the reported velocity; detects sign errors of the driver.

    Votes are forgotten, so that a corrected driver is accepted after half a minute.

    Args:
        joints: names of the wheels, for the report.
        slowest: mean wheel speed below which a reading is ignored [rad/s].
        needed: number of agreeing readings of one wheel for a verdict.

    Source: system 30.
    """

    def __init__(self, joints: tuple[str, ...], slowest: float = 0.5, needed: int = 10) -> None:
        self.joints = joints
        self.slowest = slowest
        self.needed = needed
        self._votes = [[0.0, 0.0] for _ in joints]  # for and against
        self._last: tuple[float, Sequence[float]] | None = None

    def update(self, stamp: float, angles: Sequence[float], speeds: Sequence[float]) -> None:
        """Process one reading in our signs: (n,) angles [rad] and speeds [rad/s]."""
        if self._last is not None and stamp > self._last[0]:
            dt, slowest = stamp - self._last[0], self.slowest
            fade = max(0.0, 1.0 - dt / _VOTES_FADE)
            for votes, angle, before, speed in zip(self._votes, angles, self._last[1], speeds, strict=True):
                votes[:] = fade * votes[0], fade * votes[1]
                slope = (angle - before) / dt
                if abs(slope) > slowest and abs(speed) > slowest:
                    votes[int((slope > 0.0) != (speed > 0.0))] += 1
        self._last = (stamp, angles)

    def contradicting(self) -> tuple[str, ...]:
        """Joints whose position and velocity move in opposite directions."""
        pairs = zip(self.joints, self._votes, strict=True)
        return tuple(name for name, (agreed, against) in pairs if against >= self.needed and against > 4 * agreed)
