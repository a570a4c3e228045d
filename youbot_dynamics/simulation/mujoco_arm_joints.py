"""The arm's joints in a running MuJoCo model, behind the face `ArmPhysics` of the arm's driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.errors import InputError, ResourceError
from youbot_dynamics.simulation import arm_controller as controller
from youbot_dynamics.simulation.arm_driver import Order, torque_of_current

_AMBIENT = 4  # place of the ambient temperature among the parameters of MuJoCo's motor
_TOGETHER = 50  # cycles after which the housings are followed up: a two-thousandth of their time constants


class ArmJoints:
    """n joints with MuJoCo's motors, and the housings that MuJoCo does not have.

    MuJoCo's motor has one thermal node, its winding, in air of constant temperature. Here that air is the housing: it
    takes the heat of the winding and gives it to the ambient, by the network of `heat_network`, between the steps.

    Args:
        model: of MuJoCo, with the motors of `mujoco_arm`.
        data: its state.
        arm: the arm whose joints they are.
        cycle: moves the whole model on by `arm_controller.STEP`.
        speed_lag: time constant of the speed the driver is told [s].

    Raises:
        ResourceError: a MuJoCo whose motor keeps its parameters elsewhere.
    """

    def __init__(
        self, model: Any, data: Any, arm: ArmModel, cycle: Callable[[], None], *, speed_lag: float = 0.0
    ) -> None:
        self._model, self._data, self._cycle = model, data, cycle
        names = arm.tree.joint_names
        joints = [model.joint(name) for name in names]
        self._positions = np.array([joint.qposadr[0] for joint in joints])
        self._speeds = np.array([joint.dofadr[0] for joint in joints])
        self._motors = np.array([model.actuator(name).id for name in names])
        self._windings = np.array([model.actuator(name).actadr[0] for name in names])
        heats = np.array([motor.motor.heat_constants for motor in arm.motors])
        into, out, capacity = heats[:, 2], heats[:, 3], heats[:, 5]
        self._cold, self._warming, self._ambient = heats[:, 0], heats[:, 1], heats[:, 6]
        if not np.array_equal(model.actuator_dynprm[self._motors, _AMBIENT], self._ambient):
            raise ResourceError(
                "package mujoco",
                got="a dcmotor with other parameters",
                expected="mujoco 3.12 to 4.0",
                remedy="pip install 'mujoco>=3.12,<4.1'",
            )
        self._reference = np.array([motor.motor.resistance for motor in arm.motors])
        self._torque_of_current = torque_of_current(arm)
        self._share = into / (into + out)  # of the winding's temperature in the one the housing tends to
        self._keeps = np.exp(-_TOGETHER * controller.STEP * (into + out) / capacity)
        self._told_share = controller.told_share(speed_lag)
        self._told: Vector = np.zeros(len(names))
        self._housing: Vector = self._ambient.copy()
        self._cycles = 0

    @property
    def position(self) -> Vector:
        """True positions (n,) [rad]."""
        return np.array(self._data.qpos[self._positions])

    @property
    def speed(self) -> Vector:
        """True speeds (n,) [rad/s]."""
        return np.array(self._data.qvel[self._speeds])

    @property
    def told_speed(self) -> Vector:
        """Speeds (n,) behind the lag of the motor controllers [rad/s]."""
        return self._told.copy()

    @property
    def winding(self) -> Vector:
        """True temperatures of the windings (n,) [degC]."""
        return np.array(self._data.act[self._windings]) + self._housing

    @property
    def housing(self) -> Vector:
        """True temperatures of the motor housings (n,) [degC]."""
        return self._housing.copy()

    def place(self, position: ArrayLike) -> None:
        """Put the joints to position (n,) [rad], at rest."""
        self._data.qpos[self._positions] = array("position of the arm", position, (len(self._positions),))
        self._data.qvel[self._speeds] = 0.0

    def run(self, order: Order, controllers: Vector, memory: Vector, steps: int) -> None:
        """Move on by cycles of 1 ms, and with the arm all that is in the model; see `ArmPhysics.run`.

        Args:
            order: what to do.
            controllers: (n, 7) constants of the motor controllers.
            memory: (n, 5) of the motor controllers, changed.
            steps: number of cycles.

        Raises:
            InputError: a motion without bounds.
        """
        mode, times, pieces, last, elapsed = order
        data, back_emf = self._data, self._torque_of_current
        for k in range(steps):
            speed = self.speed
            resistance = self._cold + self._warming * (self.winding - self._ambient)
            controller.control_cycle(
                mode,
                times,
                pieces,
                last,
                elapsed + k * controller.STEP,
                self.position,
                speed,
                back_emf * speed,
                resistance,
                controllers,
                memory,
            )
            self._drive(memory[:, controller.CURRENT], resistance)
            self._cycle()
            self._told += self._told_share * (data.qvel[self._speeds] - self._told)
            self._cycles += 1
            if self._cycles % _TOGETHER == 0:
                self._warm_housings()
        if not np.all(np.isfinite(self.speed)):
            raise InputError("motion of the arm", got="numbers without bounds", expected="a truth an arm can have")

    def _drive(self, current: Vector, resistance: Vector) -> None:
        # MuJoCo's motor takes the voltage for a torque from its cold resistance: warm it would give less current.
        self._data.ctrl[self._motors] = self._torque_of_current * current * resistance / self._reference

    def _warm_housings(self) -> None:
        """Carry the heat of the windings on, exactly while a winding keeps its temperature."""
        winding = self.winding
        tends_to = self._share * winding + (1.0 - self._share) * self._ambient
        self._housing = tends_to + (self._housing - tends_to) * self._keeps
        self._model.actuator_dynprm[self._motors, _AMBIENT] = self._housing
        self._data.act[self._windings] = winding - self._housing
