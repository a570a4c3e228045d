"""Odometry from wheel angles: exact SE(2) steps and a covariance that grows with the distance (system 28)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.kinematics import planar
from youbot_dynamics.parameters import setting
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

_LATE_MEANS_RESTART = 10  # readings in a row
_STEP_SLACK = 0.02  # [s] two stamps may be this much closer than their readings: 4 standard deviations of each


@dataclass(frozen=True)
class OdometrySettings:
    """How fast odometry loses its way: standard deviations per square root of the distance travelled."""

    position_noise: float = setting(
        0.01,
        "Growth of each position axis per metre of travel.",
        unit="m/sqrt(m)",
        low=0.0,
        high=1.0,
        source="chosen: 1 cm after 1 m of clean floor",
    )
    position_noise_turning: float = setting(
        0.005,
        "Growth of each position axis per radian of turn.",
        unit="m/sqrt(rad)",
        low=0.0,
        high=1.0,
        source="chosen",
    )
    yaw_noise: float = setting(
        0.01, "Growth of the yaw per metre of travel.", unit="rad/sqrt(m)", low=0.0, high=1.0, source="chosen"
    )
    yaw_noise_turning: float = setting(
        0.02,
        "Growth of the yaw per radian of turn.",
        unit="rad/sqrt(rad)",
        low=0.0,
        high=1.0,
        source="chosen",
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

    Args:
        robot: geometry, limits and the driver's resolution.
        settings: growth of the uncertainty.
    """

    def __init__(self, robot: Robot, settings: OdometrySettings) -> None:
        self.base = robot.base.geometry.mecanum()
        self.settings = settings
        # A step beyond twice what a wheel can do is a restarted encoder, not motion.
        self._fastest_wheel = 2.0 * robot.base.limits.wheel_speed
        self._position_quantum = robot.driver.position_quantum
        self._stamp_jitter = robot.driver.stamp_jitter
        self.jumps = 0
        self.late = 0
        self._late_in_a_row = 0
        self._angles: Vector | None = None
        self._stamp = 0.0
        self._pose: Vector = np.zeros(3)
        self._body_covariance: Vector = np.zeros((3, 3))

    def reset(self) -> None:
        """Put the pose back to the origin with certainty; the next reading continues from there."""
        self._pose = np.zeros(3)
        self._body_covariance = np.zeros((3, 3))
        if self._late_in_a_row:
            # The last stamp is in doubt: the next reading begins anew.
            self._angles, self._late_in_a_row = None, 0

    def update(self, stamp: float, wheel_angles: ArrayLike) -> OdometryState | None:
        """Take one reading; None for the first one, a late one, and one across a jump of the encoders.

        Args:
            stamp: of the reading [s]; one not newer than the last is dropped and counted in `late`; ten in
                a row are another clock, on which it starts anew.
            wheel_angles: (n,) [rad], positive forward; NaN or a jump is counted in `jumps` and starts anew.
        """
        angles = np.array(wheel_angles, dtype=float)
        if self._angles is None:
            if np.all(np.isfinite(angles)):
                self._angles, self._stamp = angles, stamp
            return None
        dt = stamp - self._stamp
        if dt <= 0.0:
            self.late += 1
            self._late_in_a_row += 1
            if self._late_in_a_row < _LATE_MEANS_RESTART:
                return None
            # Not late messages but another clock: one stamp far ahead, or a driver that restarted.
            self.jumps += 1
            self._angles, self._stamp, self._late_in_a_row = None, stamp, 0
            return self.update(stamp, wheel_angles)
        self._late_in_a_row = 0
        step = angles - self._angles
        if not np.all(np.isfinite(angles)) or np.max(np.abs(step)) > self._fastest_wheel * (dt + _STEP_SLACK):
            self.jumps += 1
            self._angles = angles if np.all(np.isfinite(angles)) else None
            self._stamp = stamp
            return None
        displacement = self.base.twist(step)
        pose = planar.compose(self._pose, planar.exponential(displacement))
        self._grow(displacement)
        self._pose = np.array([pose[0], pose[1], planar.wrap(pose[2])])
        self._angles, self._stamp = angles, stamp
        twist = displacement / dt
        return OdometryState(stamp, self._pose.copy(), twist, self._covariance(), self._twist_covariance(twist, dt))

    def _grow(self, displacement: Vector) -> None:
        """Propagate the body-frame covariance: P <- A P A' + B Q B', Q proportional to the distance."""
        metres = float(np.hypot(displacement[0], displacement[1]))
        turn = abs(float(displacement[2]))
        settings = self.settings
        position = settings.position_noise**2 * metres + settings.position_noise_turning**2 * turn
        yaw = settings.yaw_noise**2 * metres + settings.yaw_noise_turning**2 * turn
        a, b = planar.displacement_jacobians(displacement)
        self._body_covariance = a @ self._body_covariance @ a.T + b @ np.diag([position, position, yaw]) @ b.T

    def _covariance(self) -> Vector:
        turn = np.eye(3)
        turn[:2, :2] = planar.rotation(self._pose[2])
        rotated = turn @ self._body_covariance @ turn.T
        symmetric: Vector = 0.5 * (rotated + rotated.T)
        return symmetric

    def _twist_covariance(self, twist: Vector, dt: float) -> Vector:
        """Two readings over dt^2: the wheels round independently (q^2/12), the jitter of the stamp is common to them.

        A stamp that is wrong by s makes the whole twist wrong by twist s / dt, so nothing where it does not move.
        """
        forward = self.base.forward_matrix
        rounding = 2.0 * self._position_quantum**2 / 12.0 / dt**2
        jitter = 2.0 * (self._stamp_jitter / dt) ** 2
        covariance: Vector = rounding * forward @ forward.T + jitter * np.outer(twist, twist)
        return covariance


class SignCheck:
    """Compares d(position)/dt with the velocity channel: catches the driver's sign trap (system 30).

    Args:
        joints: names of the wheels, for the report.
        slowest: mean wheel speed below which a reading says nothing [rad/s].
        needed: readings of one wheel that must agree on a verdict.
    """

    def __init__(self, joints: tuple[str, ...], slowest: float = 0.5, needed: int = 10) -> None:
        self.joints = joints
        self.slowest = slowest
        self.needed = needed
        self._votes = np.zeros((len(joints), 2), dtype=int)
        self._last: tuple[float, Vector] | None = None

    def update(self, stamp: float, position: ArrayLike, velocity: ArrayLike) -> None:
        """Take one reading in our signs: (n,) angles [rad] and speeds [rad/s]."""
        angles, speeds = np.asarray(position, dtype=float), np.asarray(velocity, dtype=float)
        if self._last is not None and stamp > self._last[0]:
            slope = (angles - self._last[1]) / (stamp - self._last[0])
            moving = (np.abs(slope) > self.slowest) & (np.abs(speeds) > self.slowest)
            agree = np.sign(slope) == np.sign(speeds)
            self._votes[:, 0] += moving & agree
            self._votes[:, 1] += moving & ~agree
        self._last = (stamp, angles)

    def contradicting(self) -> tuple[str, ...]:
        """Joints whose position and velocity move in opposite directions."""
        against = (self._votes[:, 1] >= self.needed) & (self._votes[:, 1] > 4 * self._votes[:, 0])
        return tuple(name for name, bad in zip(self.joints, against, strict=True) if bad)
