"""The base of the twin behind its driver: command it, advance it, read it, audit its energy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation import base_dynamics as dynamics
from youbot_dynamics.simulation.base_commands import counted_wheel_speeds
from youbot_dynamics.simulation.base_readings import BaseReading, BaseSampler, EffortReading
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.delay_line import DelayLine
from youbot_dynamics.simulation.slip import SlipEvent, lost_shares


@dataclass(frozen=True)
class BaseEnergy:
    """Where the energy went since the start [J]: work = wheel_heat + floor_heat + slip_heat + stored.

    Args:
        work: done by the motors at the wheels.
        wheel_heat: lost in the wheels' friction.
        floor_heat: lost in the rollers' friction and the viscous friction of the base.
        slip_heat: lost where wheels slip or slide, and in the blows of one roller after the other.
        stored: in motion.
    """

    work: float
    wheel_heat: float
    floor_heat: float
    slip_heat: float
    stored: float

    @property
    def gap(self) -> float:
        """What the balance misses [J]; 0 but for the error of the integration."""
        return self.work - self.wheel_heat - self.floor_heat - self.slip_heat - self.stored


class BasePlant:
    """The base in simulated time, at rest at the origin at first.

    Args:
        truth: the base as it is.
        driver: how its driver speaks.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time [s].
        slips: events in which wheels lose grip; more can be told later.
    """

    def __init__(
        self, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0, slips: Iterable[SlipEvent] = ()
    ) -> None:
        self.truth = truth
        self.driver = driver
        self.time = start
        self._driver_base = driver.mecanum()
        self._true_base = truth.mecanum()
        self._constants = dynamics.constants_of(truth)
        self._line = DelayLine(truth.dead_times())
        self._sampler = BaseSampler(truth, driver, seed)
        self._state = np.zeros(dynamics.STATE_SIZE)
        self._ledger = np.zeros(dynamics.LEDGER_SIZE)
        self._powered = True
        self._slips = list(slips)

    @property
    def pose(self) -> Vector:
        """True pose (3,) in the world [m, m, rad], yaw not wrapped."""
        return self._state[dynamics.POSE].copy()

    @property
    def twist(self) -> Vector:
        """True body twist (3,) [m/s, m/s, rad/s]."""
        return self._state[dynamics.TWIST].copy()

    @property
    def wheel_angles(self) -> Vector:
        """True wheel angles (4,) [rad], positive forward."""
        return self._state[dynamics.WHEELS].copy()

    @property
    def wheel_speeds(self) -> Vector:
        """True wheel speeds (4,) [rad/s], positive forward."""
        return self._state[dynamics.SPEEDS].copy()

    @property
    def wheel_torques(self) -> Vector:
        """True torques (4,) of the motors at the wheels over the last step [N m], positive forward."""
        return self._state[dynamics.MOTORS].copy()

    @property
    def roller_angles(self) -> Vector:
        """True angles (4,) off the bottom of the rollers on the floor [rad], growing as wheels roll forward.

        Zeros where the contact does not wander.
        """
        return dynamics.roller_angles(self._constants, self.wheel_angles)

    def command_twist(self, twist: ArrayLike, time: float | None = None) -> None:
        """Twist as the driver's cmd_vel takes it: held for ever, turned into wheel speeds by *its* geometry.

        Args:
            twist: (3,) [m/s, m/s, rad/s].
            time: of reception [s], now if not given.
        """
        self._push(self._driver_base.wheel_speeds(twist), time)

    def command_wheels(self, wheel_speeds: ArrayLike, time: float | None = None) -> None:
        """Wheel speeds (4,) [rad/s] in the driver's signs; the part that no motion explains is lost in slip."""
        self._push(np.asarray(wheel_speeds, dtype=float) * np.array(self.driver.command_sign), time)

    def switch_motors(self, on: bool) -> None:
        """Motors off: no torque, the base coasts to rest against its friction; on: it takes the held command."""
        self._powered = on

    def add_slip(self, event: SlipEvent) -> None:
        """Let a wheel lose grip; what of the event lies in the past is left out."""
        self._slips = [known for known in self._slips if known.end > self.time]
        self._slips.append(event)

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in steps of at most 1 ms."""
        span = until - self.time
        if span <= 0.0:
            return
        steps = max(1, ceil(span / dynamics.STEP - 1e-9))
        dt = span / steps
        dynamics.advance(
            self._constants,
            self._line.means(self.time, dt, steps) @ self._true_base.inverse_matrix.T,
            self._sampler.random.standard_normal((steps, 4)),
            lost_shares(self._slips, self.time, dt, steps),
            dt,
            self._powered,
            self._state,
            self._ledger,
        )
        self.time = until

    def read(self) -> BaseReading:
        """What the driver reports now: one pass of its 50 Hz loop."""
        return self._sampler.wheels(self.time, self.wheel_angles, self._state[dynamics.TOLD])

    def read_efforts(self) -> EffortReading:
        """Efforts of the wheels now, for robots whose driver reports them."""
        return self._sampler.efforts(self.time, self.wheel_torques)

    def energy(self) -> BaseEnergy:
        """Where the energy went since the start."""
        work, wheels, floor, slip = (float(heat) for heat in self._ledger)
        return BaseEnergy(work, wheels, floor, slip, self._stored())

    def _push(self, wheel_speeds: Vector, time: float | None) -> None:
        # Wheels of the driver's opinion roll on the true floor: that is the twist the base is really asked for.
        asked = self._true_base.twist(counted_wheel_speeds(self.driver, wheel_speeds))
        self._line.push(self.time if time is None else time, asked)

    def _stored(self) -> float:
        truth, (vx, vy, wz), wheels = self.truth, self.twist, self.wheel_speeds
        body = truth.mass * (vx * vx + vy * vy) + truth.yaw_inertia * wz * wz
        return 0.5 * float(body + truth.wheel_inertia * wheels @ wheels)
