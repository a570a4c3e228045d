"""What the driver's 50 Hz loop reports of the arm: quantised, noisy, stamped with jitter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.driver_reports import stamped
from youbot_dynamics.simulation.truth import ArmTruth, generator

FINGERS = 2  # of the gripper; the message carries them behind the arm's joints
CURRENT_QUANTUM = 1e-3  # [A] the motor controllers count currents in mA


@dataclass(frozen=True, eq=False)
class ArmReading:
    """One arm message of the driver: its joints, then both fingers of the gripper, closed and still."""

    stamp: float  # when the driver says the reading was taken [s]
    position: Vector  # (n + 2,) [rad], quantised to ticks of the motor's encoder; fingers [m]
    velocity: Vector  # (n + 2,) [rad/s], 10 ms late and quantised to 15 motor rpm; fingers [m/s]
    effort: Vector  # (n + 2,) Kt N i [N m] with the Kt of the sheets, the current i noisy and quantised to 1 mA


@dataclass(frozen=True, eq=False)
class VoltageReading:
    """Motor voltages of a robot that measures them; the youBot does not."""

    stamp: float  # [s]
    voltage: Vector  # (n,) R(T) i + K N v with noise [V]


@dataclass(frozen=True, eq=False)
class TemperatureReading:
    """Motor temperatures of a robot that measures them; the youBot does not."""

    stamp: float  # [s]
    winding: Vector  # (n,) with noise [degC]
    housing: Vector  # (n,) with noise [degC]


class ArmSampler:
    """The driver's view of an arm of n joints.

    Args:
        truth: the arm as it is: noise and jitter.
        robot: as its sheets say: quanta and the constants the driver turns currents into efforts with.
        seed: of the noise; equal seeds and calls give equal bits.
    """

    def __init__(self, truth: ArmTruth, robot: Robot, seed: int) -> None:
        self._truth = truth
        self._random = generator(seed, 4)
        # Apart, so that a robot that reads them sees the same arm as one that does not.
        self._extra = generator(seed, 5)
        motors = [joint.motor for joint in robot.arm.joints]
        self._effort_of_current = np.array([motor.torque_constant * motor.gear_ratio for motor in motors])
        self._current_noise = truth.effort_noise / self._effort_of_current
        quanta = np.array([*robot.arm_quanta(), np.full(len(motors), CURRENT_QUANTUM)])
        self._exact = quanta == 0.0
        self._quanta = np.where(self._exact, 1.0, quanta)

    def joints(self, time: float, position: Vector, reported_speed: Vector, current: Vector) -> ArmReading:
        """One message of position (n,) [rad], speed (n,) [rad/s] as the controllers filter it and current (n,) [A]."""
        n = len(position)
        noise = self._random.standard_normal(1 + n)
        sensed = np.array([position, reported_speed, current + self._current_noise * noise[1:]])
        counted = np.rint(sensed / self._quanta) * self._quanta
        counted[self._exact] = sensed[self._exact]
        counted[2] *= self._effort_of_current
        values = np.zeros((3, n + FINGERS))
        values[:, :n] = counted
        return ArmReading(self._stamp(time, noise[0]), values[0], values[1], values[2])

    def voltages(self, time: float, voltage: Vector) -> VoltageReading:
        """Motor voltages (n,) [V] with noise, taken at `time` [s]."""
        noise = self._extra.standard_normal(1 + len(voltage))
        return VoltageReading(self._stamp(time, noise[0]), voltage + self._truth.voltage_noise * noise[1:])

    def temperatures(self, time: float, winding: Vector, housing: Vector) -> TemperatureReading:
        """Temperatures of windings (n,) and housings (n,) [degC] with noise, taken at `time` [s]."""
        n = len(winding)
        noise = self._extra.standard_normal(1 + 2 * n)
        error = self._truth.temperature_noise * noise[1:]
        return TemperatureReading(self._stamp(time, noise[0]), winding + error[:n], housing + error[n:])

    def _stamp(self, time: float, normal: float) -> float:
        return stamped(time, float(normal), self._truth.stamp_jitter)
