"""The base of the twin behind its driver: command it, advance it, read it, audit its energy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, excerpt, made_of, scalar
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.roller_phase import contact_angles
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.base import _dynamics as dynamics
from youbot_dynamics.simulation.base._dynamics import SlipEvent, counted_wheel_speeds, lost_shares
from youbot_dynamics.simulation.base._readings import BaseSampler, EffortReading
from youbot_dynamics.simulation.driver_reports import BaseReading, checked_until
from youbot_dynamics.simulation.truth import BaseTruth

_MEMORY = 4096  # commands there is room for at first; at 50 Hz far more than the longest dead time

# Parts of the state of the compiled loop that each wheel has.
_OF_WHEELS = {
    "wheel_angles": dynamics.WHEELS,
    "wheel_speeds": dynamics.SPEEDS,
    "reported_wheel_speeds": dynamics.REPORTED,
    "wheel_torques": dynamics.MOTORS,
}


@compiled
def _held_means(
    times: Vector,
    values: Vector,
    integrals: Vector,
    count: int,
    dead_times: Vector,
    start: float,
    dt: float,
    means: Vector,
) -> None:
    """Fill `means` (steps, k): mean of the delayed held command over each interval, from its exact integral."""
    for axis in range(means.shape[1]):
        corner = np.searchsorted(times[:count], start - dead_times[axis], side="right")
        before = 0.0
        for edge in range(means.shape[0] + 1):
            query = start + edge * dt - dead_times[axis]
            while corner < count and times[corner] <= query:
                corner += 1
            reached = 0.0
            if corner > 0:
                k = corner - 1
                reached = integrals[k, axis] + values[k, axis] * (query - times[k])
            if edge > 0:
                means[edge - 1, axis] = (reached - before) / dt
            before = reached


class DelayLine:
    """Commands held from their time on, each axis delayed by its own dead time; zero before the first.

    Commands are forgotten when room gets short and the last `means` was past them, dead times and all.

    Args:
        dead_times: (k,) [s], not negative.
    """

    def __init__(self, dead_times: ArrayLike) -> None:
        self.dead_times = np.array(dead_times, dtype=float)
        axes = len(self.dead_times)
        self._count = 0
        self._needed = -math.inf  # no earlier command is needed any more [s]
        self._times = np.zeros(_MEMORY)
        self._values = np.zeros((_MEMORY, axes))
        self._integrals = np.zeros((_MEMORY, axes))

    def push(self, time: float, command: ArrayLike) -> None:
        """Hold `command` (k,) from `time` [s] on, finite (else InputError); one before the last counts as the last."""
        time = scalar("time of a command", time)
        if self._count > 0 and time <= self._times[self._count - 1]:
            self._values[self._count - 1] = command  # the last one never was held
            return
        if self._count == len(self._times):
            self._make_room()
        k = self._count
        if k > 0:
            held = self._values[k - 1] * (time - self._times[k - 1])
            self._integrals[k] = self._integrals[k - 1] + held
        self._times[k] = time
        self._values[k] = command
        self._count = k + 1

    def means(self, start: float, dt: float, steps: int) -> Vector:
        """Mean of the delayed command over each of `steps` intervals of `dt` [s] from `start` on: (steps, k).

        The means, not samples, so that a step of the command inside an interval keeps its exact time.
        """
        self._needed = start - float(self.dead_times.max())
        means = np.empty((steps, len(self.dead_times)))
        _held_means(self._times, self._values, self._integrals, self._count, self.dead_times, start, dt, means)
        return means

    def _make_room(self) -> None:
        first = max(0, int(np.searchsorted(self._times, self._needed, side="right")) - 1)
        kept = self._count - first
        more = max(0, 2 * kept - len(self._times))
        self._times, self._values, self._integrals = (
            np.concatenate([track[first:], np.zeros((first + more, *track.shape[1:]))])
            for track in (self._times, self._values, self._integrals)
        )
        self._count = kept


@dataclass(frozen=True)
class BaseEnergy:
    """Where the energy went since the start [J]: work = wheel_heat + floor_heat + slip_heat + stored."""

    work: float  # done by the motors at the wheels
    wheel_heat: float  # lost in the wheels' friction
    floor_heat: float  # lost in the rollers' friction and the viscous friction of the base
    slip_heat: float  # lost where wheels slip or slide, and in the blows of one roller after the other
    stored: float  # in motion

    @property
    def gap(self) -> float:
        """What the balance misses [J]; 0 but for the error of the integration."""
        return self.work - self.wheel_heat - self.floor_heat - self.slip_heat - self.stored


class SimulatedBase(ABC):
    """A base behind its driver, with what only a simulation knows.

    Commands are held for ever. They take the `time` of their reception [s], now if not given; an InputError refuses a
    wrong shape or a number that is not finite.

    Args:
        truth: the base as it is.
        driver: how its driver speaks.
        seed: of the noise; equal seeds and calls give equal bits.
    """

    def __init__(self, truth: BaseTruth, driver: Driver, seed: int) -> None:
        made_of("truth", truth, BaseTruth)
        made_of("driver", driver, Driver)
        self.truth = truth
        self.driver = driver
        self._driver_base = driver.mecanum()
        self._sampler = BaseSampler(truth, driver, seed)

    @property
    @abstractmethod
    def time(self) -> float:
        """Simulated time [s]."""

    @property
    def pose(self) -> Vector:
        """True pose (3,) in the world [m, m, rad], yaw not wrapped."""
        return self._true("pose")

    @property
    def twist(self) -> Vector:
        """True body twist (3,) [m/s, m/s, rad/s]."""
        return self._true("twist")

    @property
    def wheel_angles(self) -> Vector:
        """True wheel angles (n,) [rad], positive forward."""
        return self._true("wheel_angles")

    @property
    def wheel_speeds(self) -> Vector:
        """True wheel speeds (n,) [rad/s], positive forward."""
        return self._true("wheel_speeds")

    @property
    def wheel_torques(self) -> Vector:
        """True torques (n,) of the motors at the wheels over the last step [N m], positive forward."""
        return self._true("wheel_torques")

    def command_twist(self, twist: ArrayLike, time: float | None = None) -> None:
        """Twist (3,) [m/s, m/s, rad/s] as the driver's cmd_vel takes it, turned into wheel speeds by *its* geometry."""
        self._push(self._driver_base.wheel_speeds(array("twist", twist, (3,))), self.time if time is None else time)

    def command_wheels(self, wheel_speeds: ArrayLike, time: float | None = None) -> None:
        """Wheel speeds (n,) [rad/s] in the driver's signs; those that no motion explains make the wheels slip."""
        speeds = array("wheel_speeds", wheel_speeds, (len(self._driver_base.radii),))
        self._push(speeds * np.array(self.driver.command_sign), self.time if time is None else time)

    @abstractmethod
    def switch_motors(self, on: bool) -> None:
        """Motors off: no torque, the base coasts to rest against its friction; on: it takes the held command."""

    @abstractmethod
    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in steps of at most 1 ms."""

    def read(self) -> BaseReading:
        """What the driver reports now: one pass of its 50 Hz loop."""
        return self._sampler.wheels(self.time, self.wheel_angles, self._true("reported_wheel_speeds"))

    def read_efforts(self) -> EffortReading:
        """Efforts of the wheels now, for robots whose driver reports them."""
        return self._sampler.efforts(self.time, self.wheel_torques)

    @abstractmethod
    def _push(self, wheel_speeds: Vector, time: float) -> None:
        """Take a command (n,) [rad/s], positive forward, received at `time` [s]."""

    @abstractmethod
    def _true(self, quantity: str) -> Vector:
        """A quantity of the motion, as a copy: one of the properties, or the speeds reported to the driver."""


class BasePlant(SimulatedBase):
    """The base in simulated time, at rest at the origin at first.

    Args, besides those of `SimulatedBase`:
        start: simulated time [s].
        slips: events in which wheels lose grip.
    """

    def __init__(
        self, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0, slips: Iterable[SlipEvent] = ()
    ) -> None:
        super().__init__(truth, driver, seed)
        if not isinstance(slips, Iterable):
            raise InputError("slips", got=excerpt(slips), expected="a list of SlipEvent, empty for none")
        self._time = scalar("start", start)
        self._true_base = truth.mecanum()
        self._constants = dynamics.constants_of(truth)
        self._line = DelayLine(truth.dead_times())
        self._count = len(self._true_base.radii)
        self._places = {"pose": dynamics.POSE, "twist": dynamics.TWIST}
        self._places |= {name: dynamics.of_wheels(part, self._count) for name, part in _OF_WHEELS.items()}
        self._state = np.zeros(dynamics.state_size(self._count))
        self._ledger = np.zeros(dynamics.LEDGER_SIZE)
        self._powered = True
        self._slips = tuple(slips)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._time

    @property
    def roller_angles(self) -> Vector:
        """True angles (n,) off the bottom of the rollers on the floor [rad], growing as wheels roll forward.

        Zeros where the contact does not wander.
        """
        return contact_angles(self._constants.rows, self.wheel_angles)

    def switch_motors(self, on: bool) -> None:
        """Motors off: the base coasts; on: it takes the held command."""
        self._powered = on

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in steps of at most 1 ms.

        Raises:
            InputError: a time that is not finite, or more than an hour ahead.
        """
        until = checked_until(until, self.time)
        span = until - self.time
        if span <= 0.0:
            return
        steps = max(1, ceil(span / dynamics.STEP - 1e-9))
        dt = span / steps
        dynamics.advance(
            self._constants,
            self._line.means(self.time, dt, steps) @ self._true_base.inverse_matrix.T,
            self._sampler.random.standard_normal((steps, self._count)),
            lost_shares(self._slips, self._count, self.time, dt, steps),
            dt,
            self._powered,
            self._state,
            self._ledger,
        )
        self._time = until

    def energy(self) -> BaseEnergy:
        """Where the energy went since the start."""
        truth, (vx, vy, wz), speeds = self.truth, self.twist, self.wheel_speeds
        body = truth.mass * (vx * vx + vy * vy) + truth.yaw_inertia * wz * wz
        stored = 0.5 * float(body + truth.wheel_inertia * speeds @ speeds)
        work, wheels, floor, slip = self._ledger.tolist()
        return BaseEnergy(work, wheels, floor, slip, stored)

    def _push(self, wheel_speeds: Vector, time: float) -> None:
        # Wheels of the driver's opinion roll on the true floor: that is the twist that they command.
        self._line.push(time, self._true_base.twist(counted_wheel_speeds(self.driver, wheel_speeds)))

    def _true(self, quantity: str) -> Vector:
        return self._state[self._places[quantity]].copy()
