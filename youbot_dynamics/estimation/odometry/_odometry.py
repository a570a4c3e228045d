"""Odometry from wheel angles: exact SE(2) steps and a covariance that grows with distance and slip (systems 28, 31)."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, hypot, isfinite, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.odometry._gyro import GyroTurn
from youbot_dynamics.estimation.odometry._slip import CoherentErrors, SlipReport, SlipSettings, SlipTest
from youbot_dynamics.estimation.phase_guard import RollerWatch
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.roller_phase import RollingWheels
from youbot_dynamics.parameters import Settings, setting
from youbot_dynamics.robot import Robot

_VOTES_FADE = 10.0  # [s] with which the votes on signs fade
_LATE_MEANS_RESTART = 10  # readings in a row
_STEP_SLACK = 0.02  # [s] two stamps may be this much closer than their readings: 4 standard deviations of each
_STANDS_AFTER = 0.5  # [s] without a turn of any wheel by more than
_STANDS_WITHIN = 1e-3  # [rad] 50 um of travel: wheels that motors hold against each other creep, and counts flicker
_OF_GYRO = 2  # errors of the gyro that last: bias and scale
_LEFT_OF_A_REPAIR = 1.0 / 3.0  # standard deviation of what was put right, over what was put right


@dataclass(frozen=True)
class OdometrySettings(Settings):
    """How fast odometry loses its way: standard deviations per square root of the distance travelled."""

    position_noise: float = setting(
        0.01,
        "Growth of each position axis per metre of travel.",
        "m/sqrt(m)",
        (0.0, 1.0),
        source="chosen: 1 cm after 1 m of clean floor",
    )
    position_noise_turning: float = setting(
        0.005,
        "Growth of each position axis per radian of turn.",
        "m/sqrt(rad)",
        (0.0, 1.0),
        source="chosen: 1 cm after 4 rad of turn",
    )
    yaw_noise: float = setting(
        0.01,
        "Growth of the yaw per metre of travel.",
        "rad/sqrt(m)",
        (0.0, 1.0),
        source="chosen: 0.6 degrees after 1 m of clean floor",
    )
    yaw_noise_turning: float = setting(
        0.02,
        "Growth of the yaw per radian of turn.",
        "rad/sqrt(rad)",
        (0.0, 1.0),
        source="chosen: 3 degrees after one turn",
    )


@dataclass(frozen=True, eq=False)
class OdometryState:
    """Pose and twist of the base after one wheel reading.

    Args:
        stamp: of the reading [s].
        pose: (3,) in the odometry frame [m, m, rad], yaw in (-pi, pi].
        twist: (3,) in the body frame: mean since the last reading [m/s, m/s, rad/s].
        covariance: (3, 3) of the pose, in the odometry frame.
        twist_covariance: (3, 3) in the body frame.
    """

    stamp: float
    pose: Vector
    twist: Vector
    covariance: Vector
    twist_covariance: Vector


class Odometry:
    """Integrates wheel angles, not speeds: their quantum is 3 um of travel, the speed's is 3 mm/s.

    Rows are those of the rollers on the floor where their phases are known, else constant, their mean. In their least
    squares wheels weigh as `Base.wheel_weights` has it. A wheel off
    pattern widens the covariance by what each wheel alone could have done; where gyro and known sign name the wheel,
    its error since the window began is taken out of the pose, and the wheel out of the steps.

    Args:
        robot: geometry, limits and the driver's resolution.
        settings: growth of the uncertainty.
        wheels: rows and rollers; by default the robot's mean rows, of wheels with ideal rollers at unknown phases.
        slip: how wheels off pattern are looked for.

    Attributes:
        jumps: of encoders or stamps.
        late: readings.
        slips: begun.
        slip: report of the last step.
        phases_lost: why known phases are no longer used, "" where they are or never were.
    """

    def __init__(
        self,
        robot: Robot,
        settings: OdometrySettings,
        wheels: RollingWheels | None = None,
        slip: SlipSettings | None = None,
    ) -> None:
        self.wheels = RollingWheels.ideal(robot.base.geometry.mecanum()) if wheels is None else wheels
        self.base = self.wheels.base
        self.settings = settings
        # A step beyond twice what a wheel can do is a restarted encoder, not motion.
        self._fastest_wheel = 2.0 * robot.base.limits.wheel_speed
        self._position_quantum = robot.driver.position_quantum
        self._stamp_jitter = robot.driver.stamp_jitter
        self._slip_settings = SlipSettings() if slip is None else slip
        self._mean = self.wheels.at_phases(None)
        self._watch = RollerWatch(self._position_quantum)
        self._test = self._new_test()
        count = len(self.base.radii)
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
        self._rest: Vector = np.zeros(len(self.base.radii))  # where the wheels were when they last moved
        self._pose: Vector = np.zeros(3)
        self._coherent = CoherentErrors(count + _OF_GYRO)  # one a wheel, then the gyro's bias and scale

    @property
    def standing(self) -> bool:
        """Whether the wheels have hardly moved for half a second: the time to look at the bias of a gyro."""
        return self._angles is not None and self._stamp - self._moved_at >= _STANDS_AFTER

    @property
    def last_stamp(self) -> float | None:
        """Stamp of the reading the next step begins at [s], for the gyro's turn; None where none begins."""
        return None if self._angles is None else self._stamp

    @property
    def last_angles(self) -> Vector | None:
        """Wheel angles (n,) of that reading [rad]."""
        return self._angles

    def take_phases(self, phases: Vector) -> None:
        """Go on with roller phases (n,) [rad] that were found while driving."""
        self.wheels, self.phases_lost = self._mean.at_phases(phases), ""
        self._watch, self._test = RollerWatch(self._position_quantum), self._new_test()

    def retune(self, settings: OdometrySettings, slip: SlipSettings) -> None:
        """Take other settings; those of the test for slip make it begin anew where they changed."""
        self.settings = settings
        if slip != self._slip_settings:
            self._slip_settings = slip
            self._test = self._new_test()

    def reset(self) -> None:
        """Put the pose back to the origin with certainty; the next reading continues from there."""
        self._pose = np.zeros(3)
        self._coherent = CoherentErrors(len(self.base.radii) + _OF_GYRO)
        if self._late_in_a_row:
            # The last stamp is in doubt: the next reading begins anew.
            self._angles, self._late_in_a_row = None, 0

    def update(self, stamp: float, wheel_angles: ArrayLike, turn: GyroTurn | None = None) -> OdometryState | None:
        """Take one reading; None for the first one, a late one, and one across a jump of the encoders.

        Args:
            stamp: of the reading [s]; one not newer than the last is dropped and counted in `late`; ten in
                a row are another clock, on which it starts anew.
            wheel_angles: (n,) [rad], positive forward; NaN or a jump is counted in `jumps` and starts anew,
                without the roller phases, which hang on the count.
            turn: of the base since `last_stamp` by a gyro, if there is one: it takes the place of the wheels' own.
        """
        angles = np.array(wheel_angles, dtype=float)
        if self._angles is None:
            if np.all(np.isfinite(angles)):
                self._angles, self._stamp = angles, stamp
                self._moved_at, self._rest = stamp, angles
            return None
        dt = stamp - self._stamp
        if dt <= 0.0:
            self.late += 1
            self._late_in_a_row += 1
            if self._late_in_a_row < _LATE_MEANS_RESTART:
                return None
            # Not late messages but another clock: one stamp far ahead, or a driver that restarted.
            self.jumps += 1
            self._start_anew(stamp, None, "the clock of the driver jumped")
            return self.update(stamp, wheel_angles)
        self._late_in_a_row = 0
        step = angles - self._angles
        finite = all(map(isfinite, angles.tolist()))
        if not finite or np.abs(step).max() > self._fastest_wheel * (dt + _STEP_SLACK):
            self.jumps += 1
            self._start_anew(stamp, angles if finite else None, "the wheel counts jumped")
            return None
        displacement = self._displacement(dt, angles, step, turn)
        pose = planar.compose(self._pose, planar.exponential(displacement))
        if self.slip.wheel is not None and self._left_out is None:
            pose = self._put_right(self.slip.wheel, pose)
        if self._watch.lost:
            self._lose_phases("the residual of the wheels does not follow the rollers")
        self._pose = np.array([pose[0], pose[1], planar.wrap(pose[2])])
        if np.abs(angles - self._rest).max() > _STANDS_WITHIN:
            self._moved_at, self._rest = stamp, angles
        self._angles, self._stamp = angles, stamp
        twist = displacement / dt
        return OdometryState(stamp, self._pose.copy(), twist, self._covariance(), self._twist_covariance(twist, dt))

    def _start_anew(self, stamp: float, angles: Vector | None, reason: str) -> None:
        """Go on from here; counts may have begun anew, and roller phases with them."""
        self._angles, self._stamp, self._late_in_a_row = angles, stamp, 0
        self._moved_at = stamp
        if angles is not None:
            self._rest = angles
        self._test.clear()
        self._lose_phases(reason)

    def _lose_phases(self, reason: str) -> None:
        if self.wheels.phases is None:
            return
        self.wheels, self.phases_lost = self._mean, reason
        self._test = self._new_test()

    def _new_test(self) -> SlipTest:
        return SlipTest(self.wheels, self._slip_settings, self._position_quantum, self._stamp_jitter)

    def _displacement(self, dt: float, angles: Vector, step: Vector, turn: GyroTurn | None) -> Vector:
        """Displacement (3,) of one step, tested for slip; the covariance grows by it."""
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
        if self._left_out is None or turn is None:
            errors[:-_OF_GYRO] = spread.T * self.slip.excess[:, None]
        if turn is not None:
            errors[-_OF_GYRO:, 2] = turn.bias_error, turn.scale_error
        self._grow(displacement, turn, errors)
        return displacement

    def _put_right(self, wheel: int, pose: Vector) -> Vector:
        """Pose (3,) without what a wheel has done to it since the window began; the wheel is left out from now on."""
        error = self._coherent.errors[wheel].copy()
        self._coherent.errors[:-_OF_GYRO] = 0.0
        self._coherent.errors[wheel] = _LEFT_OF_A_REPAIR * error
        self._left_out = wheel
        return planar.compose(pose, planar.exponential(-error))

    def _grow(self, displacement: Vector, turn: GyroTurn | None, errors: Vector) -> None:
        """Propagate the body-frame covariance: P <- A P A' + B Q B', Q proportional to the distance.

        Where a gyro tells the turn, its noise is the yaw's. Errors (m, 3) of this step that go on the same way are
        kept apart.
        """
        metres = hypot(displacement[0], displacement[1])
        radians = abs(float(displacement[2]))
        settings = self.settings
        position = settings.position_noise**2 * metres + settings.position_noise_turning**2 * radians
        yaw = settings.yaw_noise**2 * metres + settings.yaw_noise_turning**2 * radians
        if turn is not None:
            yaw = turn.variance
        self._coherent.move(*planar.displacement_jacobians(displacement), errors, (position, position, yaw))

    def _covariance(self) -> Vector:
        c, s = cos(self._pose[2]), sin(self._pose[2])
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        rotated = turn @ self._coherent.covariance() @ turn.T
        symmetric: Vector = 0.5 * (rotated + rotated.T)
        return symmetric

    def _twist_covariance(self, twist: Vector, dt: float) -> Vector:
        """Two readings over dt^2: the wheels round independently (q^2/12), the jitter of the stamp is common to them.

        A stamp that is wrong by s makes the whole twist wrong by twist s / dt, so nothing where it does not move.
        """
        rounding = 2.0 * self._position_quantum**2 / 12.0 / dt**2
        jitter = 2.0 * (self._stamp_jitter / dt) ** 2
        covariance: Vector = rounding * self._spread_square + jitter * twist[:, None] * twist
        return covariance


def _weighted_inverse(rows: Vector, weights: Vector) -> Vector:
    """Matrix (m, n) that solves rows (n, m) x = b by least squares with weights (n,)."""
    roots = np.sqrt(weights)
    return np.asarray(np.linalg.pinv(roots[:, None] * rows) * roots, dtype=np.float64)


class SignCheck:
    """Compares d(position)/dt with the velocity channel: catches the driver's sign trap (system 30).

    What was seen fades, so that a driver put right is believed after half a minute.

    Args:
        joints: names of the wheels, for the report.
        slowest: mean wheel speed below which a reading says nothing [rad/s].
        needed: readings of one wheel that must agree on a verdict.
    """

    def __init__(self, joints: tuple[str, ...], slowest: float = 0.5, needed: int = 10) -> None:
        self.joints = joints
        self.slowest = slowest
        self.needed = needed
        self._votes = [[0.0, 0.0] for _ in joints]  # for and against
        self._last: tuple[float, list[float]] | None = None

    def update(self, stamp: float, position: ArrayLike, velocity: ArrayLike) -> None:
        """Take one reading in our signs: (n,) angles [rad] and speeds [rad/s]."""
        angles: list[float] = np.asarray(position, dtype=float).tolist()
        if self._last is not None and stamp > self._last[0]:
            dt, slowest = stamp - self._last[0], self.slowest
            speeds = np.asarray(velocity, dtype=float).tolist()
            fade = max(0.0, 1.0 - dt / _VOTES_FADE)
            for votes, angle, before, speed in zip(self._votes, angles, self._last[1], speeds, strict=True):
                votes[:] = fade * votes[0], fade * votes[1]
                slope = (angle - before) / dt
                if abs(slope) > slowest and abs(speed) > slowest:
                    votes[(slope > 0.0) != (speed > 0.0)] += 1
        self._last = (stamp, angles)

    def contradicting(self) -> tuple[str, ...]:
        """Joints whose position and velocity move in opposite directions."""
        pairs = zip(self.joints, self._votes, strict=True)
        return tuple(name for name, (agreed, against) in pairs if against >= self.needed and against > 4 * agreed)
