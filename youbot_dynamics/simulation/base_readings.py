"""What the driver's 50 Hz loop reports of the base: quantised, late, stamped with jitter, in the driver's signs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.wheel_motors import TORQUE_CONSTANT

EFFORT_QUANTUM = 1e-3 * TORQUE_CONSTANT  # [N m] the motor controllers count currents in mA

# Stamps are drawn from a normal distribution cut here, so that they stay in order at 50 Hz.
_WORST_JITTER = 4.0


@dataclass(frozen=True, eq=False)
class BaseReading:
    """One base message of the driver, in the driver's signs.

    Args:
        stamp: when the driver says the reading was taken [s].
        position: (4,) wheel angles FL, FR, RL, RR [rad], quantised.
        velocity: (4,) wheel speeds [rad/s], 10 ms late and quantised to 15 motor rpm.
        odometry: (3,) pose the driver itself reckons, with the heading after each step [m, m, rad].
        twist: (3,) twist the driver itself reckons [m/s, m/s, rad/s].
    """

    stamp: float
    position: Vector
    velocity: Vector
    odometry: Vector
    twist: Vector


@dataclass(frozen=True, eq=False)
class EffortReading:
    """Torques of the wheels' motors, of a robot whose driver reports them; the youBot's does not.

    Args:
        stamp: [s].
        effort: (4,) Kt N i at the wheels with the Kt of the sheets [N m], noisy and quantised to 1 mA, in the driver's
            signs of the velocity.
    """

    stamp: float
    effort: Vector


class BaseSampler:
    """The driver's view of a base of four wheels, whatever plant it is.

    Args:
        truth: the base as it is: jitter and noise.
        driver: how its driver speaks: signs, quanta and the geometry it reckons with.
        seed: of the noise; equal seeds and calls give equal bits.

    Attributes:
        random: stream of the noise of this base; what its plant makes noisy is drawn from it too.
    """

    def __init__(self, truth: BaseTruth, driver: Driver, seed: int) -> None:
        self._truth, self._driver = truth, driver
        self._base = driver.mecanum()
        self.random = np.random.default_rng([seed, 1])
        # Apart, so that a robot that reads efforts is the same as one that does not.
        self._extra = np.random.default_rng([seed, 6])
        self._last_angles = np.zeros(4)
        self._odometry = np.zeros(3)

    def wheels(self, time: float, angles: Vector, reported_speeds: Vector) -> BaseReading:
        """One message.

        Args:
            time: of the sample [s].
            angles: (4,) of the wheels [rad], positive forward.
            reported_speeds: (4,) as the motor controllers filter them [rad/s], positive forward: behind the true ones
                by the truth's `speed_lag`, to first order.
        """
        stamp = self._stamp(time, self.random)
        counted = _quantised(angles, self._driver.position_quantum)
        speeds = _quantised(reported_speeds, self._driver.velocity_quantum)
        step = self._base.twist(counted - self._last_angles)
        self._last_angles = counted
        # The driver adds each step with the heading *after* it: its odometry is off by wz dt / 2 (system 28).
        yaw = self._odometry[2] + step[2]
        self._odometry[:2] += planar.rotation(yaw) @ step[:2]
        self._odometry[2] = yaw
        return BaseReading(
            stamp=stamp,
            position=counted * np.array(self._driver.position_sign),
            velocity=speeds * np.array(self._driver.velocity_sign),
            odometry=self._odometry.copy(),
            twist=self._base.twist(speeds),
        )

    def efforts(self, time: float, torques: Vector) -> EffortReading:
        """Efforts of motors that give torques (4,) at the wheels [N m], positive forward, with noise, at `time` [s].

        A driver knows currents, and of the torque constants the nominal one.
        """
        stamp = self._stamp(time, self._extra)
        noisy = torques / np.array(self._truth.wheel_torque_constant)
        noisy += self._truth.effort_noise * self._extra.standard_normal(4)
        return EffortReading(stamp, _quantised(noisy, EFFORT_QUANTUM) * np.array(self._driver.velocity_sign))

    def _stamp(self, time: float, random: np.random.Generator) -> float:
        return time + float(np.clip(random.normal(), -_WORST_JITTER, _WORST_JITTER)) * self._truth.stamp_jitter


def _quantised(values: Vector, quantum: float) -> Vector:
    return np.round(values / quantum) * quantum if quantum > 0.0 else values.copy()
