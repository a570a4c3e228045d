"""The driver of a simulated youBot: commands in, the messages of its loop out, faults on demand between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, excerpt, scalar
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.steering import RolledAngles
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation import faults
from youbot_dynamics.simulation.driver_reports import (
    BaseReading,
    JointReport,
    OdometryReport,
    arm_report,
    base_report,
    checked_until,
    dead_reckoned,
)
from youbot_dynamics.simulation.faults import ARM, BASE, ODOMETRY, ActiveFaults, Fault
from youbot_dynamics.simulation.truth import generator

if TYPE_CHECKING:
    from youbot_dynamics.simulation.youbot import Plant

Report = JointReport | OdometryReport


class RobotDriver:
    """What stands between a plant and the world, as the youBot driver does on the robot.

    Like that, it has no watchdog, and a command after motors-off switches them on again. Speeds of wheels are cut at
    `driver.wheel_speed_limit`, each for itself as its motor controller does: a base that is commanded too much leaves
    its path.

    Commands take the time of their reception [s], which must be finite (else InputError).

    Args:
        plant: base and arm.
        driver: how the driver speaks.
        seed: of the faults.
        arm: whether the robot has its arm; without, the plant's is held and nothing is said of it.
        gripper: whether the arm has one.
        wheel_effort: whether the base reports efforts; the youBot does not.

    Attributes:
        refused: how many commands were refused.
        incomplete: how many could not be given at all, for they lacked joints or values.
        last_refusal: why the last of these was.

    Raises:
        InputError: a seed that is no whole number from 0 on.
    """

    def __init__(
        self,
        plant: Plant,
        driver: Driver,
        seed: int,
        *,
        arm: bool = True,
        gripper: bool = True,
        wheel_effort: bool = False,
    ) -> None:
        generator(seed)  # refuses it where it is none
        self.plant = plant
        self.refused = self.incomplete = 0
        self.last_refusal = ""
        self._driver = driver
        self._base = driver.mecanum()
        self._arm, self._gripper, self._wheel_effort = arm, gripper, wheel_effort
        self._active = ActiveFaults((), plant.time)
        self._encoders = faults.Encoders(seed)
        self._mail: dict[str, faults.Mail[Any]] = {
            name: faults.Mail(name, seed) for name in (*faults.CHANNELS, faults.COMMANDS)
        }
        self._command: tuple[bool, Vector] = (True, np.zeros(3))
        self._factors = np.ones(len(driver.wheel_joints))
        self._deaf = False
        self._motors_off = False
        self._angles: Vector
        self._start_reckoning()

    def set_faults(self, chosen: tuple[Fault, ...]) -> None:
        """Put faults in place of the former ones; their time begins now."""
        self._active = ActiveFaults(chosen, self.plant.time)
        self._encoders.set(self._active)

    def command_twist(self, twist: ArrayLike, time: float) -> None:
        """Twist (3,) [m/s, m/s, rad/s] for the base; refused where it or its wheel speeds are not finite."""
        self._take(time, lambda now: self._command_base(True, twist, now))

    def command_wheels(self, wheel_speeds: ArrayLike, time: float) -> None:
        """Wheel speeds (n,) [rad/s] in the driver's signs; as command_twist."""
        self._take(time, lambda now: self._command_base(False, wheel_speeds, now))

    def command_arm(self, command: Callable[[Any, float], None], time: float) -> None:
        """A command for the arm: given the plant's arm and the time [s] it arrives; its InputError is a refusal."""
        self._take(time, lambda now: command(self.plant.arm, now))

    def skip(self, reason: str) -> None:
        """Count a command that could not be given, with the reason."""
        if not self._deaf:
            self.incomplete += 1
            self.last_refusal = reason

    def switch_base(self, on: bool) -> None:
        """Motors of the base off: it coasts; on: it is held still."""
        if not self._deaf:
            self.plant.base.switch_motors(on)
            self._motors_off = not on
            self._command = (True, np.zeros(3))
            if on:
                self._drive(self.plant.time)

    def switch_arm(self, on: bool) -> None:
        """Motors of the arm off: it falls; on: it is held where it is."""
        if self._arm and not self._deaf:
            self.plant.arm.switch_motors(on)

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s].

        Raises:
            InputError: a time that is not finite or more than an hour ahead, or a plant whose motion has no bounds.
        """
        until = checked_until(until, self.plant.time)
        # What arrived before a restart must not undo its stop.
        self._carry_out_until(until)
        deaf = self._active.deaf(until)
        if deaf and not self._deaf:
            self._command_base(True, np.zeros(3), self.plant.time)
        if self._deaf and not deaf:
            self._encoders.restart(self._driver.wheel_joints)
            self._start_reckoning()
        self._deaf = deaf
        factors = self._active.driven(until, self._driver)
        if np.any(factors != self._factors):
            self._factors = factors
            if not self._motors_off:
                # What is held was sent before this fault came or went.
                self._drive(self.plant.time)
        self.plant.advance(until)

    def read(self) -> list[tuple[str, Report]]:
        """Messages that go out now, in the driver's order, each with its channel."""
        time = self.plant.time
        reading = self.plant.base.read()
        effort = self.plant.base.read_efforts().effort if self._wheel_effort else None
        base = self._encoders.report(time, base_report(reading, self._driver, effort))
        reports: list[tuple[str, Report]] = [(ODOMETRY, self._reckon(reading, base))]
        reports.append((BASE, faults.with_wrong_fields(time, base, self._active)))
        if self._arm:
            arm = arm_report(self.plant.arm.read(), self._driver, reading.stamp, self._gripper)
            arm = self._encoders.report(time, arm)
            reports.append((ARM, faults.with_wrong_fields(time, arm, self._active)))
        out: list[tuple[str, Report]] = []
        for channel, report in reports:
            stamp = self._active.stamp(time, report.stamp)
            if not self._deaf:
                self._mail[channel].send(time, replace(report, stamp=stamp), self._active)
            out += [(channel, item) for _, item in self._mail[channel].due(time)]
        return out

    def _take(self, time: float, command: Callable[[float], None]) -> None:
        received = scalar("time of a command", time)
        if not self._active.deaf(received):
            self._mail[faults.COMMANDS].send(received, command, self._active)
            self._carry_out_until(received)

    def _carry_out_until(self, time: float) -> None:
        for arrival, command in self._mail[faults.COMMANDS].due(time):
            if self._active.deaf(arrival):
                continue
            try:
                command(arrival)
            except InputError as problem:
                self.refused += 1
                self.last_refusal = str(problem)

    def _command_base(self, as_twist: bool, value: ArrayLike, time: float) -> None:
        command = array("base command", value, (3 if as_twist else len(self._angles),))
        with np.errstate(over="ignore", invalid="ignore"):
            speeds = self._speeds(as_twist, command)
        if not np.isfinite(speeds).all():
            raise InputError("base command", got=excerpt(command.tolist()), expected="finite speeds of the wheels")
        fastest = self._driver.wheel_speed_limit
        if self._base.steered:
            cut = speeds * min(1.0, fastest / max(float(self._base.fastest(speeds)), 1e-9))
        else:
            cut = np.clip(speeds, -fastest, fastest)
        reached = bool(np.all(cut == speeds))
        self._command = (as_twist, command) if reached else (False, cut)
        self._factors = self._active.driven(time, self._driver)
        self._drive(time)

    def _drive(self, time: float) -> None:
        as_twist, value = self._command
        base = self.plant.base
        if self._motors_off:
            base.switch_motors(True)
            self._motors_off = False
        if as_twist and np.all(self._factors == 1.0):
            base.command_twist(value, time)
        else:
            factors = self._factors[0] if self._base.steered else self._factors
            base.command_wheels(self._speeds(as_twist, value) * factors, time)

    def _speeds(self, as_twist: bool, value: Vector) -> Vector:
        """Wheel speeds (n,) [rad/s] in the driver's signs."""
        return np.array(self._driver.command_sign) * self._base.wheel_speeds(value) if as_twist else value

    def _reckon(self, reading: BaseReading, base: JointReport) -> OdometryReport:
        """The driver's odometry: of its own wheels, wrong as they may be."""
        count = len(self._driver.wheel_joints)
        position = base.position[:count] * np.array(self._driver.position_sign)
        angles = self._rolled.take(position)
        step, self._angles = self._base.twist(angles - self._angles), angles
        if not self._encoders.wrong:
            self._odometry = reading.odometry
            return OdometryReport(reading.stamp, reading.odometry, reading.twist)
        self._odometry = dead_reckoned(self._odometry, step)
        speeds = base.velocity[:count] * np.array(self._driver.velocity_sign)
        return OdometryReport(reading.stamp, self._odometry, self._base.twist(self._base.rolling(speeds, position)))

    def _start_reckoning(self) -> None:
        """Wheels at 0 and odometry at the origin."""
        self._rolled, self._angles = RolledAngles(self._base.steered), np.zeros(len(self._driver.wheel_joints))
        self._odometry = np.zeros(3)
