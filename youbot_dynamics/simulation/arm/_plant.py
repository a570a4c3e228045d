"""The arm of the twin: its compiled loop behind the driver, and the audit of its energy.

The loop runs at 1 kHz: controllers, bodies, friction, end stops and heat.
A step is the `arm_step` of an arm with end stops, the bodies halfway between where they are and where they will
be. Currents are held over a cycle. Most cycles are one step. One in which a joint is hit so hard that its speed changes
by more than `_SHARP`, or which plain iterations of Newton's method do not solve, is halved until it is not, down to a
sixteenth: blows on the end stops would else cost the balance some 6e-7 of a busy minute.

The ledger keeps the work of every force over every step as mean torque x displacement, so that the energy of the arm
can be audited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, made_of
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import (
    DONE,
    ROW,
    ArmBody,
    ArmState,
    arm_body,
    arm_step,
    step_work,
    stop_energy,
)
from youbot_dynamics.dynamics.thermal_motor import heat_rates
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.arm import _controller as controller
from youbot_dynamics.simulation.arm._controller import CURRENT, STEP, Order, control_cycle
from youbot_dynamics.simulation.arm._driver import ArmDriver, reachable, torque_of_current
from youbot_dynamics.simulation.truth import ArmTruth

# Columns of the state (n, 7); the acceleration is where the next step begins to look for its own.
POSITION, SPEED, BRISTLE, WINDING, HOUSING, ACCELERATION, REPORTED_SPEED = range(7)
STATE_COLUMNS = 7
# Columns of the ledger (n, 3): work [J] done by the motors, taken by the friction and by the end stops.
MOTOR_WORK, FRICTION_WORK, STOP_WORK = range(3)

_ITERATIONS = 12
_CONVERGED = 1e-7  # [rad/s] change of a speed in the last iteration; what remains is some 1e-3 of it
_PARTS = 16  # of a cycle, the shortest step: a power of 2
_SHARP = 0.1  # [rad/s]


class Mover(NamedTuple):
    """What moves an arm of n joints."""

    body: ArmBody  # bodies, friction and end stops
    torque_of_current: Vector  # (n,) N K of the true motors [N m/A]
    heats: Vector  # (n, 7) constants of the thermal networks
    filter_share: float  # share of `filter_share`


@compiled
def move(dt: float, table: Vector, state: Vector, ledger: Vector) -> None:
    """Move the state (n, 7) by a step of `dt` [s] that is solved in `table` (22, n); add to the ledger (n, 3)."""
    for i in range(len(state)):
        a, v = table[ROW.acceleration, i], state[i, SPEED]
        moved = dt * (v + 0.5 * dt * a)
        ledger[i, MOTOR_WORK] += table[ROW.driving, i] * moved
        ledger[i, FRICTION_WORK] += table[ROW.friction, i] * moved
        ledger[i, STOP_WORK] -= table[ROW.stopping, i] * moved
        state[i, POSITION] += moved
        state[i, SPEED] = v + dt * a
        state[i, BRISTLE] = table[ROW.after, i]
        state[i, ACCELERATION] = a


@compiled
def warmer(heat: Vector, winding: float, housing: float, current: float) -> tuple[float, float]:
    """Temperatures [degC] of winding and housing a cycle later, by the midpoint rule; heat (7,) is their network.

    A cycle is 2.4e-4 of the shortest time constant that can be drawn, of a winding of least resistance and capacity,
    1.2e-4 of the nominal one: the rule is off by less than 1e-8 of a rise, at a tenth of the cost of the exact
    `heat_step`.
    """
    square = current * current
    of_winding, of_housing = heat_rates(heat, winding, housing, square, 0.0)
    half = 0.5 * STEP
    of_winding, of_housing = heat_rates(heat, winding + half * of_winding, housing + half * of_housing, square, 0.0)
    return winding + STEP * of_winding, housing + STEP * of_housing


@compiled
def advance(
    mover: Mover, order: Order, controllers: Vector, cycles: int, state: Vector, memory: Vector, ledger: Vector
) -> int:
    """Advance an arm of n joints by some cycles of 1 ms under one order; returns how many were done.

    They are fewer where a motion has no bounds. The controllers' constants are (n, 8), their memory (n, 5) is changed,
    as the state (n, 7) is; the ledger (n, 3) is added to.
    """
    n = state.shape[0]
    torque_of_current, heats = mover.torque_of_current, mover.heats
    work = step_work(mover.body)
    table, layout, joints, halfway = work.table, mover.body.layout, mover.body.joints, mover.body.halfway
    position, speed = state[:, POSITION], state[:, SPEED]
    back_emf, resistance = np.zeros(n), np.zeros(n)
    for k in range(cycles):
        for i in range(n):
            back_emf[i] = torque_of_current[i] * state[i, SPEED]
            resistance[i] = heats[i, 0] + heats[i, 1] * (state[i, WINDING] - heats[i, 6])
        now = order.elapsed + k * STEP
        control_cycle(order, now, position, speed, back_emf, resistance, controllers, memory)
        remaining, size = _PARTS, _PARTS
        while remaining > 0:
            for i in range(n):
                table[ROW.position, i], table[ROW.speed, i] = state[i, POSITION], state[i, SPEED]
                table[ROW.bristle, i], table[ROW.acceleration, i] = state[i, BRISTLE], state[i, ACCELERATION]
                table[ROW.drive, i] = torque_of_current[i] * memory[i, CURRENT]
            dt = STEP * size / _PARTS
            end = arm_step(layout, joints, halfway, _ITERATIONS, _CONVERGED, False, dt, False, work)
            sharpest = 0.0
            for i in range(n):
                sharpest = max(sharpest, abs(table[ROW.acceleration, i]) * dt)
            if end == DONE and (sharpest <= _SHARP or size == 1):
                move(dt, table, state, ledger)
                remaining -= size
            elif size > 1:
                size //= 2
            else:
                return k
        for i in range(n):
            state[i, WINDING], state[i, HOUSING] = warmer(
                heats[i], state[i, WINDING], state[i, HOUSING], memory[i, CURRENT]
            )
            state[i, REPORTED_SPEED] += mover.filter_share * (state[i, SPEED] - state[i, REPORTED_SPEED])
    return cycles


_STOP_TRAVEL = 2e-3  # [rad] an end stop gives way under the largest torque of the motor: chosen
_STOP_DAMPING = 1.0  # [s/rad] chosen: most of a blow at full speed is lost
# Columns of the state of the compiled loop.
_COLUMNS = {
    "position": POSITION,
    "speed": SPEED,
    "winding": WINDING,
    "housing": HOUSING,
    "reported_speed": REPORTED_SPEED,
}


@dataclass(frozen=True)
class ArmEnergy:
    """Where the energy went since the start [J]: work = friction_heat + stop_heat + stored."""

    work: float  # done by the motors at the joints
    friction_heat: float  # lost in the joints' friction
    stop_heat: float  # lost in the end stops
    stored: float  # gained by motion, height, bristles and end stops

    @property
    def gap(self) -> float:
        """What the balance misses [J]; 0 but for the error of the integration."""
        return self.work - self.friction_heat - self.stop_heat - self.stored


class ArmPlant(ArmDriver):
    """The twin's arm on a base that stands still: command it, advance it, read it, audit it.

    End stops stand at the limits of its tree; their stiffness comes of the largest torques of the motors.

    Args, besides those of `ArmDriver` but for its `model`:
        position: (n,) at the start [rad], the resting position by default.

    Raises:
        InputError: a wrong shape, or a position beyond the limits.
    """

    def __init__(
        self, truth: ArmTruth, robot: Robot, seed: int, start: float = 0.0, position: ArrayLike | None = None
    ) -> None:
        made_of("arm_truth", truth, ArmTruth)
        made_of("robot", robot, Robot)
        model = truth.model(robot)
        at = reachable("position", robot.arm.rest_position if position is None else position, model)
        n = len(at)
        strongest = torque_of_current(model) * [joint.motor.current_limit for joint in robot.arm.joints]
        limits = np.array([[limit.lower, limit.upper] for limit in model.tree.limits])
        self._stops = np.column_stack([limits, strongest / _STOP_TRAVEL, np.full(n, _STOP_DAMPING)])
        self._state = np.zeros((n, STATE_COLUMNS))
        self._state[:, POSITION] = at
        self._state[:, WINDING] = self._state[:, HOUSING] = truth.ambient_temperature
        self._ledger = np.zeros((n, 3))
        self._mover = Mover(
            arm_body(model.tree, np.array([friction.constants for friction in model.friction]), self._stops),
            torque_of_current(model),
            np.array([geared.motor.heat_constants for geared in model.motors]),
            controller.filter_share(truth.speed_lag),
        )
        super().__init__(truth, robot, model, seed, start)
        self._energy_at_start = self._stored()

    @property
    def state(self) -> ArmState:
        """The true state as `model` takes it."""
        return ArmState(*(self._state[:, column].copy() for column in range(5)))

    def energy(self) -> ArmEnergy:
        """Where the energy went since the start."""
        work, taken, lost = self._ledger.sum(axis=0)
        stiffness = np.array([friction.sigma0 for friction in self.model.friction])
        bristles = float(0.5 * stiffness @ self._state[:, BRISTLE] ** 2)
        return ArmEnergy(
            work=float(work),
            friction_heat=float(taken) - bristles,
            stop_heat=float(lost) - self._springs(),
            stored=self._stored() - self._energy_at_start,
        )

    def _true(self, quantity: str) -> Vector:
        return self._state[:, _COLUMNS[quantity]].copy()

    def _run(self, order: Order, controllers: Vector, memory: Vector, steps: int) -> bool:
        return advance(self._mover, order, controllers, steps, self._state, memory, self._ledger) == steps

    def _stored(self) -> float:
        return self.model.energy(self.state) + self._springs()

    def _springs(self) -> float:
        return float(sum(stop_energy(q, stop) for q, stop in zip(self.position, self._stops, strict=True)))
