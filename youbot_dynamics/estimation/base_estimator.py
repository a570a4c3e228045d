"""Where the base is, from all that tells it: wheels, rollers, gyro; and what of it contradicts itself."""

from __future__ import annotations

from math import inf

from numpy.typing import ArrayLike

from youbot_dynamics.estimation.gyro import GyroSettings, GyroYaw
from youbot_dynamics.estimation.odometry import Odometry, OdometrySettings, OdometryState, SignCheck
from youbot_dynamics.estimation.slip import SlipSettings
from youbot_dynamics.estimation.speed_channel import SpeedChannelCheck
from youbot_dynamics.robot import Robot

_WINDOW = 30.0  # [s] for which is complained of a gyro that is well again


class BaseEstimator:
    """Odometry with the roller phases that are known and a gyro while there is one, and the checks beside it.

    The same object in the node `odometry` and in lock-step drives.

    Args:
        robot: geometry, roller phases where they are known, joints and resolution of the driver.
        odometry: growth of the uncertainty.
        slip: how wheels off pattern are looked for.
        gyro: what is expected of it.

    Attributes:
        odometry: of the wheels.
        gyro: its rates and its bias.
        gyro_used: whether the newest step turned by the gyro.
        gyro_missed: steps without it although its bias was known: its stamps are too old, or of another clock.
    """

    def __init__(
        self,
        robot: Robot,
        odometry: OdometrySettings | None = None,
        slip: SlipSettings | None = None,
        gyro: GyroSettings | None = None,
    ) -> None:
        wheels = robot.base.geometry.wheels()
        self.odometry = Odometry(robot, odometry or OdometrySettings(), wheels, slip)
        self.gyro = GyroYaw(gyro or GyroSettings())
        self.gyro_used, self.gyro_missed = False, 0
        self._joints = robot.driver.wheel_joints
        # Stamps [s]: of now, of the gyro's last fault, and of the last reading with roller phases.
        self._now, self._faulty_at, self._lost_at = 0.0, -inf, -inf
        self._faults = 0
        self._signs = SignCheck(self._joints)
        self._speeds = SpeedChannelCheck(self._joints)

    def take_wheels(self, stamp: float, position: ArrayLike, velocity: ArrayLike | None = None) -> OdometryState | None:
        """Take one reading of the wheels; None where it makes no step (see `Odometry.update`).

        Args:
            stamp: [s].
            position: (n,) angles in our signs [rad].
            velocity: (n,) speeds in our signs [rad/s], where the driver tells them; only checked.
        """
        if velocity is not None:
            self._signs.update(stamp, position, velocity)
            self._speeds.update(stamp, position, velocity)
        begin = self.odometry.last_stamp
        turn = None if begin is None else self.gyro.turn(begin, stamp)
        state = self.odometry.update(stamp, position, turn)
        if state is not None:
            self.gyro_used = turn is not None
            self.gyro_missed += turn is None and self.gyro.bias is not None
        self._now, faults = stamp, self.gyro_missed + self.gyro.gaps + self.gyro.late
        if faults > self._faults:
            self._faults, self._faulty_at = faults, stamp
        if not self.odometry.phases_lost:
            self._lost_at = stamp
        return state

    def retune(self, odometry: OdometrySettings, slip: SlipSettings, gyro: GyroSettings) -> None:
        """Take other settings, keeping the pose, the bias of the gyro and what was learned of the channels."""
        self.odometry.retune(odometry, slip)
        self.gyro.settings = gyro

    def take_rate(self, stamp: float, rate: float) -> None:
        """Take a yaw rate [rad/s] of the gyro, positive to the left, at its stamp [s] on the clock of the wheels."""
        self.gyro.update(stamp, rate, self.odometry.standing)

    def contradictions(self) -> tuple[str, ...]:
        """Wheels whose position and velocity move in opposite directions: names of joints."""
        return self._signs.contradicting()

    def complaints(self) -> tuple[str, ...]:
        """What is wrong or less good than it could be, one text each, the worst first.

        What the gyro did is told for 30 s; roller phases that were lost stay lost, and that is told all the time.
        """
        odometry, gyro = self.odometry, self.gyro
        found = [odometry.slip.text(self._joints)] if odometry.slip.alarm else []
        if odometry.phases_lost:
            found.append(
                f"roller phases are lost: {odometry.phases_lost}; rows are their mean now: drive for a bag with a pose"
                f" and identify them again; so for {self._now - self._lost_at:.0f} s"
            )
        found.extend(self._speeds.complaints())
        if 0.0 <= (age := self._now - self._faulty_at) < _WINDOW:
            found.append(
                f"gyro: {self.gyro_missed} steps without its turn, {gyro.gaps} gaps, {gyro.late} late rates: are its"
                f" stamps on the clock of the wheels, and does it keep its rate? the last of it {age:.0f} s ago"
            )
        return tuple(found)
