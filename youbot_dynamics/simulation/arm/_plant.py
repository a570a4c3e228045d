"""The arm of the twin: the compiled loop of `_motion` behind the driver, and the audit of its energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.arm import ArmState, arm_body, stop_energy
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.arm import _controller as controller
from youbot_dynamics.simulation.arm import _motion as motion
from youbot_dynamics.simulation.arm._controller import Order
from youbot_dynamics.simulation.arm._driver import FOLDED, ArmDriver, reachable, torque_of_current
from youbot_dynamics.simulation.truth import ArmTruth

_STOP_TRAVEL = 2e-3  # [rad] an end stop gives way under the largest torque of the motor: chosen
_STOP_DAMPING = 1.0  # [s/rad] chosen: most of a blow at full speed is lost
# Columns of the state of the compiled loop.
_COLUMNS = {
    "position": motion.POSITION,
    "speed": motion.SPEED,
    "winding": motion.WINDING,
    "housing": motion.HOUSING,
    "told_speed": motion.TOLD_SPEED,
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

    Args:
        truth: the arm as it is.
        robot: as its sheets describe it: gains of the controllers, constants and quanta of the driver.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time [s].
        position: (5,) at the start [rad], folded by default.

    Raises:
        InputError: a wrong shape, or a position beyond the limits.
    """

    def __init__(
        self, truth: ArmTruth, robot: Robot, seed: int, start: float = 0.0, position: ArrayLike | None = None
    ) -> None:
        model = truth.model(robot)
        at = reachable("position", FOLDED if position is None else position, model)
        n = len(at)
        strongest = torque_of_current(model) * [joint.motor.current_limit for joint in robot.arm.joints]
        limits = np.array([[limit.lower, limit.upper] for limit in model.tree.limits])
        self._stops = np.column_stack([limits, strongest / _STOP_TRAVEL, np.full(n, _STOP_DAMPING)])
        self._state = np.zeros((n, motion.STATE_COLUMNS))
        self._state[:, motion.POSITION] = at
        self._state[:, motion.WINDING] = self._state[:, motion.HOUSING] = truth.ambient_temperature
        self._ledger = np.zeros((n, 3))
        self._mover = motion.Mover(
            arm_body(model.tree, np.array([friction.constants for friction in model.friction]), self._stops),
            torque_of_current(model),
            np.array([geared.motor.heat_constants for geared in model.motors]),
            controller.told_share(truth.speed_lag),
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
        bristles = float(0.5 * stiffness @ self._state[:, motion.BRISTLE] ** 2)
        return ArmEnergy(
            work=float(work),
            friction_heat=float(taken) - bristles,
            stop_heat=float(lost) - self._springs(),
            stored=self._stored() - self._energy_at_start,
        )

    def _true(self, quantity: str) -> Vector:
        return self._state[:, _COLUMNS[quantity]].copy()

    def _run(self, order: Order, controllers: Vector, memory: Vector, steps: int) -> None:
        done = motion.advance(self._mover, order, controllers, steps, self._state, memory, self._ledger)
        if done < steps:
            raise InputError("motion of the arm", got="numbers without bounds", expected="a truth an arm can have")

    def _stored(self) -> float:
        return self.model.energy(self.state) + self._springs()

    def _springs(self) -> float:
        return float(sum(stop_energy(q, stop) for q, stop in zip(self.position, self._stops, strict=True)))
