"""The arm of the twin: the compiled loop of `_motion` behind the driver, and the audit of its energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.arm import ArmModel, ArmState, arm_body, stop_energy
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.arm import _controller as controller
from youbot_dynamics.simulation.arm import _motion as motion
from youbot_dynamics.simulation.arm._driver import FOLDED, ArmDriver, Order, reachable, torque_of_current
from youbot_dynamics.simulation.truth import ArmTruth

_STOP_TRAVEL = 2e-3  # [rad] an end stop gives way under the largest torque of the motor: chosen
_STOP_DAMPING = 1.0  # [s/rad] chosen: most of a blow at full speed is lost


@dataclass(frozen=True)
class ArmEnergy:
    """Where the energy went since the start [J]: work = friction_heat + stop_heat + stored.

    Args:
        work: done by the motors at the joints.
        friction_heat: lost in the joints' friction.
        stop_heat: lost in the end stops.
        stored: gained by motion, height, bristles and end stops.
    """

    work: float
    friction_heat: float
    stop_heat: float
    stored: float

    @property
    def gap(self) -> float:
        """What the balance misses [J]; 0 but for the error of the integration."""
        return self.work - self.friction_heat - self.stop_heat - self.stored


class MovingArm:
    """The arm's state in the compiled loop, an `ArmPhysics`; end stops stand at the limits of its tree.

    Args:
        model: the arm as it is.
        position: (n,) at the start, at rest [rad].
        temperature: of its motors at the start [degC].
        strongest: (n,) largest torques of the motors [N m]; they set the stiffness of the stops.
        speed_lag: time constant of the speeds the driver is told [s].
    """

    def __init__(
        self, model: ArmModel, position: Vector, temperature: float, strongest: Vector, speed_lag: float
    ) -> None:
        limits = np.array([[limit.lower, limit.upper] for limit in model.tree.limits])
        self.stops = np.column_stack([limits, strongest / _STOP_TRAVEL, np.full(len(limits), _STOP_DAMPING)])
        self.state = np.zeros((len(limits), motion.STATE_COLUMNS))
        self.state[:, motion.POSITION] = position
        self.state[:, motion.WINDING] = self.state[:, motion.HOUSING] = temperature
        self.ledger = np.zeros((len(limits), 3))
        self._mover = motion.Mover(
            arm_body(model.tree, np.array([friction.constants for friction in model.friction]), self.stops),
            torque_of_current(model),
            np.array([geared.motor.heat_constants for geared in model.motors]),
            controller.told_share(speed_lag),
        )

    @property
    def position(self) -> Vector:
        """True positions (n,) [rad]."""
        return self.state[:, motion.POSITION].copy()

    @property
    def speed(self) -> Vector:
        """True speeds (n,) [rad/s]."""
        return self.state[:, motion.SPEED].copy()

    @property
    def told_speed(self) -> Vector:
        """Speeds (n,) behind the lag of the motor controllers [rad/s]."""
        return self.state[:, motion.TOLD_SPEED].copy()

    @property
    def winding(self) -> Vector:
        """True temperatures of the windings (n,) [degC]."""
        return self.state[:, motion.WINDING].copy()

    @property
    def housing(self) -> Vector:
        """True temperatures of the motor housings (n,) [degC]."""
        return self.state[:, motion.HOUSING].copy()

    def run(self, order: Order, controllers: Vector, memory: Vector, steps: int) -> None:
        """Move on by cycles of 1 ms; see `ArmPhysics.run`.

        Args:
            order: what to do.
            controllers: (n, 7) constants of the motor controllers.
            memory: (n, 5) of the motor controllers, changed.
            steps: number of cycles.

        Raises:
            InputError: a motion without bounds.
        """
        done = motion.advance(self._mover, order, controllers, steps, self.state, memory, self.ledger)
        if done < steps:
            raise InputError("motion of the arm", got="numbers without bounds", expected="a truth an arm can have")


class ArmPlant(ArmDriver):
    """The twin's arm on a base that stands still, behind its driver: command it, advance it, read it, audit it.

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
        limits = np.array([joint.motor.current_limit for joint in robot.arm.joints])
        self._moving = MovingArm(
            model, at, truth.ambient_temperature, torque_of_current(model) * limits, truth.speed_lag
        )
        super().__init__(truth, robot, model, self._moving, seed, start)
        self._energy_at_start = self._stored()

    @property
    def state(self) -> ArmState:
        """The true state as `model` takes it."""
        return ArmState(*(self._moving.state[:, column].copy() for column in range(5)))

    def energy(self) -> ArmEnergy:
        """Where the energy went since the start."""
        work, taken, lost = self._moving.ledger.sum(axis=0)
        bristles, springs = self._bristles(), self._springs()
        return ArmEnergy(
            work=float(work),
            friction_heat=float(taken) - bristles,
            stop_heat=float(lost) - springs,
            stored=self._stored() - self._energy_at_start,
        )

    def _stored(self) -> float:
        return self.model.energy(self.state) + self._springs()

    def _bristles(self) -> float:
        stiffness = np.array([friction.sigma0 for friction in self.model.friction])
        return float(0.5 * stiffness @ self._moving.state[:, motion.BRISTLE] ** 2)

    def _springs(self) -> float:
        moving = self._moving
        return float(sum(stop_energy(q, stop) for q, stop in zip(moving.position, moving.stops, strict=True)))
