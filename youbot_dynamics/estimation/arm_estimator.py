"""All estimators of an arm, from readings to estimates, for node arm_ekf, `youbot replay` and `youbot warm-up`.

There is no clock in here. Stamps are those of the messages; steady times are of a clock that never jumps.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.stamp_rhythm import RateLimiter
from youbot_dynamics.estimation.arm_ekf import ArmBelief, ArmEkf, ArmSensors
from youbot_dynamics.estimation.arm_health import (
    REFUSALS,
    VOLTAGES_OFF_CLOCK,
    ArmHealth,
    Finding,
    JointIntake,
    JointReading,
    heat_findings,
)
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.motor_heat import ArmTemperatures, HeatBelief, MotorLimits
from youbot_dynamics.estimation.payload import Payload, PayloadBelief
from youbot_dynamics.estimation.support import Support, SupportEstimator, supports
from youbot_dynamics.robot import Robot

SAME_TIME = 0.01  # [s] by which stamps of a voltage and an effort may differ
_LONGEST_GAP = 1.0  # [s] between stamps; a longer one is a jump of the clock
_WAITING = 100  # voltages at most that wait for their efforts: two seconds of the driver
LOST = 50  # voltages in a row without an effort, a second of the driver: more are no lost messages but another clock
_NIS_SHARE = 0.02  # of a message in the mean NIS
_SUPPORT_RATE = 10.0  # [Hz]


def elapsed(by_stamp: ArrayLike, by_arrival: ArrayLike) -> Vector:
    """Times (t,) since the message before [s]: differences of stamps (t,), of arrivals (t,) where the stamps jump."""
    stamps = np.asarray(by_stamp, dtype=np.float64)
    return np.where((stamps > 0.0) & (stamps <= _LONGEST_GAP), stamps, np.maximum(by_arrival, 0.0))


class ArmTemperatureEstimates(NamedTuple):
    """What the motors are like at a stamp."""

    stamp: float  # [s]
    rows: Sequence[Sequence[float]]  # as of `ArmEstimator.temperature_rows`
    torque: Vector  # (n,) available [N m]


class ArmEstimates(NamedTuple):
    """What a reading of the joints changed in the estimates; None where nothing is new or nothing is known."""

    temperatures: ArmTemperatureEstimates | None = None
    belief: ArmBelief | None = None
    effort: Vector | None = None  # (n,) measured, of the belief [N m]
    payload: PayloadBelief | None = None  # of the belief, if it is identifiable
    support: Support | None = None  # wheel loads at the belief


class ArmEstimator:
    """States, friction, payload and motor temperatures of an arm of n joints, and what the wheels of its robot carry.

    Args:
        robot: parameters of arm, driver and base.
        settings: of the estimators.
        source: name of the joint states in findings.
        steps: of positions (n,) [rad] and velocities (n,) [rad/s]; those of the robot's driver if not given.
    """

    def __init__(
        self,
        robot: Robot,
        settings: ArmSettings | None = None,
        source: str = "the joint states",
        steps: tuple[Vector, Vector] | None = None,
    ) -> None:
        used, joints, wheels = settings or ArmSettings(), robot.driver.arm_joints, robot.driver.wheel_joints
        self.robot, self.settings, self.arm = robot, used, robot.arm.model()
        self._signs = np.array(robot.driver.position_sign), np.array(robot.driver.velocity_sign)
        self._of_arm, self._of_motors = JointIntake(joints, wheels), JointIntake(joints, wheels)
        self._of_wheels = JointIntake(wheels, joints)
        self.health = ArmHealth(joints, np.array([friction.coulomb for friction in self.arm.friction]), source)
        sensor = used.temperature_sensor, used.temperature_noise
        self.temperatures = ArmTemperatures(robot.arm, used.first_temperature, used.heat, *sensor)
        self.limits = self.limits_now()  # at the last step of the temperatures
        self._counts_before: Counter[str] = Counter()  # of filters before a reset
        self._intended_starts = 1
        self._unpaired = self._unpaired_in_row = self._off_clock = (
            0  # voltages without an effort: all, in a row now, after `LOST` in a row
        )
        self._voltages: deque[JointReading] = deque()  # for their efforts
        self._efforts: deque[tuple[float, Vector, Vector]] = deque(maxlen=_WAITING)  # stamps, efforts, speeds
        self._effort, self._last = np.zeros(len(joints)), (math.nan, math.nan)  # stamp and steady time [s]
        self._support_limiter = RateLimiter(_SUPPORT_RATE)
        self.lowest: Support | None = None  # until its reader removes it
        self._steps = robot.arm_quanta() if steps is None else steps
        self._begin()

    def _begin(self) -> None:
        robot, used = self.robot, self.settings
        sensors = ArmSensors(*self._steps, np.asarray(used.effort_noise), robot.driver.stamp_jitter)
        self.ekf = ArmEkf(self.arm, sensors, used.filter)
        self.payload = Payload(self.arm, used.filter, used.payload.of_arm(robot.arm))
        self.support = SupportEstimator(robot, used.support_lag) if supports(robot) else None
        self.belief, self.nis = self.ekf.state, math.nan  # the last estimate, and the mean NIS of a reading

    @property
    def counts_of_filter(self) -> Mapping[str, int]:
        """Numbers of messages and readings of the joints' filter by outcome, also before a reset."""
        counts = self._counts_before + Counter(self.ekf.counts)
        late = max(0, counts["starts"] - self._intended_starts)
        return {name: counts[name] for name in self.ekf.counts if name != "starts"} | {"starts after a gap": late}

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers of all messages and readings by outcome."""
        refused = sum(self._of_motors.counts[name] for name in REFUSALS)
        voltages = {"voltages without an effort": self._unpaired, VOLTAGES_OFF_CLOCK: self._off_clock}
        others = {"motor messages refused": refused, **voltages}
        return {**self.counts_of_filter, **self._of_arm.counts, **self.temperatures.counts, **others}

    def reset(self) -> None:
        """Restart the filters of joints, payload and support; the counts remain."""
        self._counts_before.update(self.ekf.counts)
        self._intended_starts += self.ekf.counts["starts"] > 0
        self._begin()

    def retune(self, settings: ArmSettings) -> bool:
        """Use other settings from now on; returns whether the filter of the joints restarted for them."""
        before, self.settings = self.settings, settings
        restarts = (before.filter, before.effort_noise) != (settings.filter, settings.effort_noise)
        if restarts:
            self.reset()
        self.payload.tuning = settings.payload.of_arm(self.robot.arm)
        if before.support_lag != settings.support_lag and self.support is not None:
            self.support = SupportEstimator(self.robot, settings.support_lag)
        return restarts

    def take_states(
        self, stamp: float, names: Sequence[str], fields: Sequence[Sequence[float]], now: float, clock: float
    ) -> ArmEstimates:
        """Process joint states of wheels or arm at a stamp [s]; returns the new estimates.

        Args:
            stamp: [s].
            names: of joints, in any order.
            fields: positions [rad], velocities [rad/s] and efforts [N m] as of the driver; each may be short or empty.
            now: steady time [s].
            clock: time that the stamp should have [s].
        """
        position, velocity, effort = fields
        wheels = self._of_wheels.take(stamp, names, position, velocity, ())
        if wheels is not None and self.support is not None:
            self.support.take_wheels(stamp, self._signs[0] * wheels.position, self._signs[1] * wheels.velocity)
        reading = self._of_arm.take(stamp, names, position, velocity, effort)
        if reading is None or not self.ekf.predict(stamp, reading.effort):
            return ArmEstimates()
        self.health.hear(reading, now, clock)
        innovation = self.ekf.update(reading.position)
        if innovation.count:
            share = innovation.nis / innovation.count
            self.nis = share if math.isnan(self.nis) else self.nis + _NIS_SHARE * (share - self.nis)
        warm = self._warm(reading, now)
        belief = self.belief = self.ekf.state
        if math.isnan(belief.stamp):
            return ArmEstimates(warm)
        self.health.compare(self._effort, belief.torque_error, belief.speed)
        self._efforts.append((belief.stamp, self._effort, belief.speed))
        self._pair()
        payload = self.payload.state if self.weigh(belief) else None
        support = self.support_at(belief) if self._support_limiter.due(belief.stamp) else None
        if support is not None and (self.lowest is None or support.margin < self.lowest.margin):
            self.lowest = support
        known = payload if payload is not None and payload.identifiable else None
        return ArmEstimates(warm, belief, self._effort, known, support)

    def _warm(self, reading: JointReading, now: float) -> ArmTemperatureEstimates | None:
        passed = elapsed(reading.stamp - self._last[0], now - self._last[1])
        self._last = reading.stamp, now
        self._effort = np.where(np.isnan(reading.effort), self._effort, reading.effort)
        if not self.temperatures.add(float(passed), reading.effort):
            return None
        self.limits = self.limits_now()
        torque = np.array([limit.torque for limit in self.limits])
        return ArmTemperatureEstimates(reading.stamp, self.temperature_rows(), torque)

    def weigh(self, belief: ArmBelief) -> bool:
        """Process an estimate for payload and wheel loads; returns whether it contained information on the payload."""
        if self.support is not None:
            self.support.take_arm(belief.stamp, belief.speed)
        return self.payload.add(belief)

    def support_at(self, belief: ArmBelief) -> Support | None:
        """Wheel loads with the payload, at an estimate after `weigh`; None where the arm's URDF has no base."""
        if self.support is None:
            return None
        self.support.carry(self.payload.state)
        return self.support.support(belief.stamp, belief.position, belief.speed)

    def limits_now(self) -> tuple[MotorLimits, ...]:
        """Remaining capability of each motor at its temperature and load."""
        return self.temperatures.limits(self.settings.hold_time, self.settings.heat_deviations)

    def temperature_rows(self) -> list[tuple[float, float, float, float]]:
        """Temperature of each winding and its deviation, of the housing and its deviation [degC, K, degC, K]."""
        return [(b.winding, b.winding_deviation, b.housing, b.housing_deviation) for b in self.temperatures.state]

    def take_voltages(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        """Process voltages of the motors [V] at a stamp [s], the last of the fields of joint states."""
        if (reading := self._of_motors.take(stamp, names, (), (), fields[-1])) is None:
            return
        if len(self._voltages) == _WAITING:
            self._voltages.popleft()
            self._leave_out()
        self._voltages.append(reading)
        self._pair()

    def _pair(self) -> None:
        """Match voltages with the effort of the same time; on a busy machine either topic may arrive first."""
        while self._voltages and self._efforts and self._voltages[0].stamp <= self._efforts[-1][0] + SAME_TIME:
            reading = self._voltages.popleft()
            for stamp, effort, speed in reversed(self._efforts):
                if abs(stamp - reading.stamp) <= SAME_TIME:
                    self.temperatures.add_voltage(reading.effort, effort, speed)
                    self._unpaired_in_row = 0
                    break
            else:
                self._leave_out()

    def _leave_out(self) -> None:
        self._unpaired += 1
        self._unpaired_in_row += 1
        self._off_clock += self._unpaired_in_row > LOST

    def take_temperatures(self, stamp: float, names: Sequence[str], *fields: Sequence[float]) -> None:
        """Process temperatures of the motors' sensors [degC] at a stamp [s], the last of the fields of joint states."""
        if (reading := self._of_motors.take(stamp, names, (), (), fields[-1])) is not None:
            self.temperatures.add_temperature(reading.effort)

    def findings(self, now: float) -> tuple[Finding, ...]:
        """Findings on the messages at steady time `now` [s], the worst first."""
        self.health.count(self.counts, now)
        known = not math.isnan(self.belief.stamp)
        load = self.arm.tree.gravity_forces(self.belief.position) if known else np.full(len(self._effort), np.nan)
        return self.health.findings(now, load, self._of_arm.names)

    def heat_findings(self, beliefs: Sequence[HeatBelief], seconds: Sequence[float]) -> tuple[Finding, ...]:
        """Findings on motors at temperatures, with the times [s] until they reach their limits."""
        limits = [joint.motor.winding_temperature_limit for joint in self.robot.arm.joints]
        return heat_findings(self.robot.driver.arm_joints, beliefs, limits, seconds, self.settings.hot_margin)
