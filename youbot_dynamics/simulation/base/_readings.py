"""What the driver's 50 Hz loop reports of the base: quantised, late, stamped with jitter, in the driver's signs.

The motors of the wheels, for every plant: what their speed loops want, and what current and supply let them have.

Each motor turns its wheel through 9405/364. The limit of its current is chosen as that of the arm's joints 1 and 2,
which have the same motor and controller; youbot/youbot_applications@6ca1861, joint_configurator/config/base.cfg, sets
3.564 A.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.thermal_motor import drivable_current
from youbot_dynamics.kinematics.steering import RolledAngles
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.driver_reports import BaseReading, dead_reckoned, stamped
from youbot_dynamics.simulation.truth import BaseTruth, generator

GEAR_RATIO = 9405.0 / 364.0  # youbot-base.cfg
TORQUE_CONSTANT = 0.0335 * GEAR_RATIO  # [N m/A] at the wheel, also [V s/rad]: docs/robot_facts.md
RESISTANCE = 1.03  # [Ohm] of the winding at 25 degC: docs/robot_facts.md, motor of joints 1 to 3 and the wheels
SUPPLY = 24.0  # [V] of the batteries: KUKA youBot manual
CURRENT_LIMIT = 5.768  # [A] chosen, see above: 5 N m at the wheel


class WheelLoop(NamedTuple):
    """The speed loops of n wheels and their motors in numbers."""

    inertia: Vector  # (n, n) torques of the motors over accelerations of the wheels, as the loops assume [kg m2]
    lag: float  # time constant of the answer to a command [s]
    torque_constants: Vector  # (n,) of the true motors, at the wheels [N m/A]
    gain: float  # kv of a servo on each wheel alone [N m s/rad]; 0 for loops that know the inertia
    integral: float  # ki of such a servo [N m/rad]


def loop_of(inertia: ArrayLike, truth: BaseTruth) -> WheelLoop:
    """Loops of one robot; inertia (n, n) as in `WheelLoop`."""
    matrix = np.ascontiguousarray(inertia, dtype=float)
    return WheelLoop(
        matrix,
        float(truth.lag),
        TORQUE_CONSTANT * np.asarray(truth.wheel_torque_constant[: len(matrix)], dtype=float),
        float(truth.servo_gain),
        float(truth.servo_gain / truth.servo_reset) if truth.servo_reset > 0.0 else 0.0,
    )


@compiled
def drive_wheels(
    loop: WheelLoop,
    command: Vector,
    speeds: Vector,
    dt: float,
    reference: Vector,
    lagging: Vector,
    torques: Vector,
) -> None:
    """Advance the speed loops by one step and write the torques of the motors at the wheels.

    The loops take what a command makes of wr to first order (time constant `lag`). Those that know the inertia J answer
    just so and hold wr against friction with a PI law of the same bandwidth:

        torques = J (dwr/dt + (wr - w) / lag + int (wr - w) / (4 lag^2))

    A servo on each wheel alone gives kv (wr - w) + ki int (wr - w). Both as far as currents of `CURRENT_LIMIT` and 24 V
    against the back-EMF give them. A wheel that lacks current lets its integral wait. So weak a feedback lets friction
    add to the delay; how much, `BaseTruth` says.

    Args:
        loop: the loops.
        command: (n,) mean over the step [rad/s].
        speeds: (n,) of the wheels now [rad/s].
        dt: step [s].
        reference: (n,) answer wr [rad/s]; changed.
        lagging: (n,) integral of wr - w [rad]; changed.
        torques: (n,) written, held over the step [N m].
    """
    decay, lag = exp(-dt / loop.lag), loop.lag
    torques[:] = 0.0
    for k in range(len(command)):
        if loop.gain > 0.0:
            torques[k] = loop.gain * (reference[k] - speeds[k]) + loop.integral * lagging[k]
            continue
        answer = command[k] + (reference[k] - command[k]) * decay
        pull = (answer - reference[k]) / dt + (reference[k] - speeds[k]) / lag + lagging[k] / (4.0 * lag * lag)
        for i in range(len(command)):
            torques[i] += loop.inertia[i, k] * pull
    for i in range(len(command)):
        constant = loop.torque_constants[i]
        wanted = torques[i] / constant
        current = drivable_current(wanted, CURRENT_LIMIT, SUPPLY, constant * speeds[i], RESISTANCE)
        if current == wanted:
            lagging[i] += (reference[i] - speeds[i]) * dt
        else:
            torques[i] = constant * current
        reference[i] = command[i] + (reference[i] - command[i]) * decay


EFFORT_QUANTUM = 1e-3 * TORQUE_CONSTANT  # [N m] the motor controllers count currents in mA


@dataclass(frozen=True, eq=False)
class EffortReading:
    """Torques of the wheels' motors, of a robot whose driver reports them; the youBot's does not."""

    stamp: float  # [s]
    # (n,) Kt N i at the wheels with the Kt of the sheets [N m], noisy and quantised to 1 mA, in the driver's signs of
    # the velocity.
    effort: Vector


class BaseSampler:
    """The driver's view of the wheels of a base, whatever plant it is.

    Args:
        truth: the base as it is: jitter and noise.
        driver: how its driver speaks: signs, quanta and the geometry it uses.
        seed: of the noise; equal seeds and calls give equal bits.

    Attributes:
        random: stream of the noise of this base; what its plant makes noisy is drawn from it too.
    """

    def __init__(self, truth: BaseTruth, driver: Driver, seed: int) -> None:
        self._truth, self._driver = truth, driver
        self._base = driver.mecanum()
        self.random = generator(seed, 1)
        # Apart, so that a robot that reads efforts is the same as one that does not.
        self._extra = generator(seed, 6)
        self._rolled, self._last_angles = RolledAngles(self._base.steered), np.zeros(len(self._base.radii))
        self._odometry = np.zeros(3)

    def wheels(self, time: float, angles: Vector, reported_speeds: Vector) -> BaseReading:
        """One message of angles (n,) [rad] and speeds (n,) [rad/s] as the controllers filter them, at `time` [s].

        Both positive forward; the speeds are behind the true ones by the truth's `speed_lag`, to first order.
        """
        stamp = stamped(time, self.random.normal(), self._truth.stamp_jitter)
        counted = quantised(angles, self._driver.position_quantum)
        speeds = quantised(reported_speeds, self._driver.velocity_quantum)
        rolled = self._rolled.take(counted)
        step, self._last_angles = self._base.twist(rolled - self._last_angles), rolled
        self._odometry = dead_reckoned(self._odometry, step)
        return BaseReading(
            stamp=stamp,
            position=counted * np.array(self._driver.position_sign),
            velocity=speeds * np.array(self._driver.velocity_sign),
            odometry=self._odometry,
            twist=self._base.twist(self._base.rolling(speeds, counted)),
        )

    def efforts(self, time: float, torques: Vector) -> EffortReading:
        """Efforts of motors that give torques (n,) at the wheels [N m], positive forward, with noise, at `time` [s].

        A driver knows currents, and of the torque constants the nominal one.
        """
        stamp = stamped(time, self._extra.normal(), self._truth.stamp_jitter)
        count = len(torques)
        noisy = torques / np.array(self._truth.wheel_torque_constant[:count])
        noisy += self._truth.effort_noise * self._extra.standard_normal(count)
        return EffortReading(stamp, quantised(noisy, EFFORT_QUANTUM) * np.array(self._driver.velocity_sign))


def quantised(values: Vector, quantum: float) -> Vector:
    """Values (n,) rounded to whole quanta; as they are where there is none."""
    return np.round(values / quantum) * quantum if quantum > 0.0 else values.copy()
