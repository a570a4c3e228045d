"""The base of the twin on a steered wheel: joints that answer to first order, and rolling without slip.

The speed of the wheel follows its command after the dead time of x with the time constant `lag`, the steering after
that of turns with `steering_lag`. The base moves as `MecanumBase.tricycle` says; it has no forces.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, cos, exp, pi, sin

import numpy as np

from youbot_dynamics.arrays import Vector, made_of, scalar
from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.steering import steered
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.base._dynamics import POSE, STEP, TWIST, SlipEvent, move
from youbot_dynamics.simulation.base._plant import BasePlant, DelayLine, SimulatedBase
from youbot_dynamics.simulation.driver_reports import checked_until
from youbot_dynamics.simulation.truth import BaseTruth

# Layout of the state vector after pose and twist: angles of both joints [rad], the speeds of wheel and steering, and
# both as the motor controllers filter them [rad/s].
_JOINTS, _SPEEDS, _REPORTED = slice(6, 8), slice(8, 10), slice(10, 12)
_PLACES = {
    "pose": POSE,
    "twist": TWIST,
    "wheel_angles": _JOINTS,
    "wheel_speeds": _SPEEDS,
    "reported_wheel_speeds": _REPORTED,
}


@compiled
def _advance(commands: Vector, decays: Vector, forward: Vector, dt: float, state: Vector) -> None:
    """Advance the state by steps of `dt` [s] under commands (steps, 2) of wheel speed [rad/s] and steering [rad].

    Decays (3,) in a step are those of the wheel, the steering and the filter of the speeds; forward is (3, 2).
    """
    gain = np.zeros(3)
    for step in range(len(commands)):
        speed, angle = state[8], state[7]
        state[8] = commands[step, 0] + (speed - commands[step, 0]) * decays[0]
        state[7] = commands[step, 1] + (angle - commands[step, 1]) * decays[1]
        state[9] = (state[7] - angle) / dt
        state[6] += 0.5 * dt * (speed + state[8])
        along, across = state[8] * cos(state[7]), state[8] * sin(state[7])
        for axis in range(3):
            gain[axis] = forward[axis, 0] * along + forward[axis, 1] * across - state[3 + axis]
        move(state, gain, dt)
        for joint in range(2):
            state[10 + joint] = state[8 + joint] + (state[10 + joint] - state[8 + joint]) * decays[2]


class SteeredPlant(SimulatedBase):
    """The base in simulated time, at rest at the origin at first, its steering straight; `start` is in s."""

    def __init__(self, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0) -> None:
        super().__init__(truth, driver, seed)
        self._time = scalar("start", start)
        self._forward = truth.mecanum().forward_matrix.copy()
        self._line = DelayLine([truth.dead_time_x, truth.dead_time_yaw])
        self._state = np.zeros(12)
        self._steering, self._powered = 0.0, True

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._time

    def switch_motors(self, on: bool) -> None:
        """Motors off: the wheel comes to rest; on: it takes the held command."""
        self._powered = on

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in steps of at most 1 ms.

        Raises:
            InputError: a time that is not finite, or more than an hour ahead.
        """
        until = checked_until(until, self.time)
        if (span := until - self.time) <= 0.0:
            return
        steps = max(1, ceil(span / STEP - 1e-9))
        dt, truth = span / steps, self.truth
        commands = self._line.means(self.time, dt, steps)
        commands[:, 0] *= self._powered
        lags = truth.lag, truth.steering_lag, truth.speed_lag
        decays = np.array([exp(-dt / lag) if lag > 0.0 else 0.0 for lag in lags])
        _advance(commands, decays, self._forward, dt, self._state)
        self._time = until

    def _push(self, wheel_speeds: Vector, time: float) -> None:
        speed, self._steering = steered(wheel_speeds, self._steering, pi)
        self._line.push(time, [speed, self._steering])

    def _true(self, quantity: str) -> Vector:
        return np.zeros(2) if quantity == "wheel_torques" else self._state[_PLACES[quantity]].copy()


def base_plant(
    truth: BaseTruth, driver: Driver, seed: int, start: float, slips: Iterable[SlipEvent] = ()
) -> SimulatedBase:
    """The plant of a base; arguments as of `BasePlant`.

    Raises:
        InputError: slips of a steered wheel, which has none.
    """
    made_of("truth", truth, BaseTruth)
    if not truth.wheelbase > 0.0:
        return BasePlant(truth, driver, seed, start, slips)
    if slips:
        raise InputError("slips", got="slips of a steered wheel", expected="none: its base has no forces")
    return SteeredPlant(truth, driver, seed, start)
