"""The robot on a floor in cycles of 1 ms: wheel speeds and arm currents in, motion out; no delay, no noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import cos, sin
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.errors import InputError, ResourceError
from youbot_dynamics.kinematics.planar import wrap, yaw_of_quaternion
from youbot_dynamics.simulation.arm import Order, filter_share, torque_of_current
from youbot_dynamics.simulation.arm import _controller as controller
from youbot_dynamics.simulation.base import drive_wheels
from youbot_dynamics.simulation.mujoco_youbot._model import TIMESTEP, contact_model, speed_loops
from youbot_dynamics.simulation.mujoco_youbot._view import engine
from youbot_dynamics.simulation.truth import BaseTruth

_AMBIENT = 4  # place of the ambient temperature among the parameters of MuJoCo's motor
# Cycles after which yaw and housings are followed up: far less than half a turn, 1/2000 of their time constants.
_TOGETHER = 50


class ArmJoints:
    """n joints with MuJoCo's motors, and the housings that MuJoCo does not have.

    MuJoCo's motor has one thermal node, its winding, in air of constant temperature. Here that air is the housing: it
    takes the heat of the winding and gives it to the ambient, by `dynamics.thermal_motor.heat_step`, between the steps.

    Args:
        model: of MuJoCo, with the motors of `_bodies`.
        data: its state.
        arm: the arm whose joints they are.
        cycle: moves the whole model on by `STEP`.
        speed_lag: time constant of the speeds reported to the driver [s].

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
        self._filter_share = filter_share(speed_lag)
        self._reported: Vector = np.zeros(len(names))
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
    def reported_speed(self) -> Vector:
        """Speeds (n,) behind the lag of the motor controllers [rad/s]."""
        return self._reported.copy()

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

    def run(self, order: Order, controllers: Vector, memory: Vector, steps: int) -> bool:
        """Move on by cycles of 1 ms, and with the arm all that is in the model; see `ArmDriver`.

        Constants (n, 8) of the motor controllers; their memory (n, 5), changed.
        """
        for k in range(steps):
            speed = self.speed
            resistance = self._cold + self._warming * (self.winding - self._ambient)
            controller.control_cycle(
                order,
                order.elapsed + k * controller.STEP,
                self.position,
                speed,
                self._torque_of_current * speed,
                resistance,
                controllers,
                memory,
            )
            # MuJoCo's motor takes the voltage for a torque from its cold resistance: warm it would give less current.
            torque = self._torque_of_current * memory[:, controller.CURRENT]
            self._data.ctrl[self._motors] = torque * resistance / self._reference
            self._cycle()
            self._reported += self._filter_share * (self.speed - self._reported)
            self._cycles += 1
            if self._cycles % _TOGETHER == 0:
                self._warm_housings()
        return bool(np.all(np.isfinite(self.speed)))

    def _warm_housings(self) -> None:
        """Carry the heat of the windings on, exactly while a winding keeps its temperature."""
        winding = self.winding
        tends_to = self._share * winding + (1.0 - self._share) * self._ambient
        self._housing = tends_to + (self._housing - tends_to) * self._keeps
        self._model.actuator_dynprm[self._motors, _AMBIENT] = self._housing
        self._data.act[self._windings] = winding - self._housing


class ContactPlant(ABC):
    """Wheels driven by the twin's motors (`drive_wheels`), whatever engine computes the contacts.

    The methods raise InputError for a wrong shape, a number that is not finite or a motion without bounds.
    """

    def __init__(self, truth: BaseTruth) -> None:
        self._filter_share = filter_share(truth.speed_lag)
        self._loops = speed_loops(truth)
        self._reference, self._lagging, self._torques = np.zeros(4), np.zeros(4), np.zeros(4)
        self._reported, self._powered = np.zeros(4), True
        self._commands, self._cycles = np.zeros((1, 4)), 0
        self._yaw = 0.0

    @property
    @abstractmethod
    def wheel_angles(self) -> Vector:
        """Angles (4,) of FL, FR, RL, RR [rad], positive forward."""

    @property
    @abstractmethod
    def wheel_speeds(self) -> Vector:
        """Speeds (4,) [rad/s]."""

    @abstractmethod
    def _in_plane(self) -> tuple[Vector, Vector]:
        """Pose (3,) of the point between the wheels [m, m, rad], yaw wrapped, and its speed (3,), both in the world."""

    @abstractmethod
    def _move(self, torques: Vector) -> None:
        """Move on by one cycle with torques (4,) of the motors at the wheels [N m]."""

    @property
    def pose(self) -> Vector:
        """Pose (3,) in the world of the point between the wheels [m, m, rad], yaw not wrapped."""
        (x, y, heading), _ = self._in_plane()
        self._yaw += wrap(heading - self._yaw)
        return np.array([x, y, self._yaw])

    @property
    def twist(self) -> Vector:
        """Body twist (3,) [m/s, m/s, rad/s]."""
        (_, _, yaw), (vx, vy, turn) = self._in_plane()
        return np.array([cos(yaw) * vx + sin(yaw) * vy, cos(yaw) * vy - sin(yaw) * vx, turn])

    @property
    def reported_wheel_speeds(self) -> Vector:
        """Speeds (4,) behind the lag of the motor controllers [rad/s]."""
        return self._reported.copy()

    @property
    def wheel_torques(self) -> Vector:
        """Torques (4,) of the motors at the wheels [N m]."""
        return self._torques.copy()

    def switch_motors(self, on: bool) -> None:
        """Motors of the wheels off: no torque; on again they hold what speed the wheels then have."""
        if on and not self._powered:
            self._reference, self._lagging = self.wheel_speeds, np.zeros(4)
        self._powered = on

    def take_commands(self, wheel_speeds: ArrayLike) -> None:
        """Take the commanded wheel speeds (k, 4) of the next k cycles [rad/s]; the last row holds after them."""
        self._commands, self._cycles = array("wheel_speeds", wheel_speeds, (None, 4)), 0
        if len(self._commands) == 0:
            raise InputError("wheel_speeds", got="no row", expected="one for each cycle")

    def cycle(self) -> None:
        """Move the whole robot on by 1 ms."""
        if self._cycles % _TOGETHER == 0:
            _ = self.pose
        if self._powered:
            command, speeds = self._commands[min(self._cycles, len(self._commands) - 1)], self.wheel_speeds
            drive_wheels(self._loops, command, speeds, TIMESTEP, self._reference, self._lagging, self._torques)
        else:
            self._torques = np.zeros(4)
        self._move(self._torques)
        self._reported += self._filter_share * (self.wheel_speeds - self._reported)
        self._cycles += 1

    def advance(self, wheel_speeds: ArrayLike) -> None:
        """Move on by k cycles with commanded wheel speeds (k, 4) [rad/s], an arm that moves without current."""
        self.take_commands(wheel_speeds)
        for _ in range(len(self._commands)):
            self.cycle()


_WHEELS = ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")


class MujocoPlant(ContactPlant):
    """Base and arm on a floor, at rest at the origin.

    Args, besides those of `contact_model`, whose `position` is also where an arm that moves begins:
        arm_speed_lag: time constant of the arm's speeds reported to the driver [s].

    Attributes:
        model: MuJoCo's `MjModel`.
        data: its `MjData`.

    Raises:
        ModelError: constants no robot has.
        ResourceError: MuJoCo is not installed.
    """

    def __init__(
        self,
        truth: BaseTruth,
        arm: ArmModel,
        *,
        with_arm: bool = True,
        position: ArrayLike | None = None,
        arm_speed_lag: float = 0.0,
    ) -> None:
        self._engine = engine()
        at = np.zeros(arm.tree.nv) if position is None else position
        text = contact_model(truth, arm, with_arm=with_arm, position=at)
        super().__init__(truth)
        self.model = self._engine.MjModel.from_xml_string(text)
        self.data = self._engine.MjData(self.model)
        self._joints: ArmJoints | None = None
        if with_arm:
            self._joints = ArmJoints(self.model, self.data, arm, self.cycle, speed_lag=arm_speed_lag)
            self._joints.place(at)
        joints = [self.model.joint(name) for name in _WHEELS]
        self._angles = np.array([joint.qposadr[0] for joint in joints])
        self._speeds = np.array([joint.dofadr[0] for joint in joints])
        self._motors = np.array([self.model.actuator(name).id for name in _WHEELS])
        kinds = self._engine.mjtWarning
        wrong = (kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC, kinds.mjWARN_BADCTRL)
        self._alarms = [self.data.warning[kind] for kind in wrong]
        self._engine.mj_forward(self.model, self.data)

    @property
    def joints(self) -> ArmJoints:
        """The joints of the arm.

        Raises:
            InputError: the arm is held.
        """
        if self._joints is None:
            raise InputError("arm", got="an arm that is held", expected="one that moves", remedy="set with_arm")
        return self._joints

    @property
    def wheel_angles(self) -> Vector:
        """Angles (4,) of FL, FR, RL, RR [rad], positive forward."""
        return np.array(self.data.qpos[self._angles])

    @property
    def wheel_speeds(self) -> Vector:
        """Speeds (4,) [rad/s]."""
        return np.array(self.data.qvel[self._speeds])

    def _in_plane(self) -> tuple[Vector, Vector]:
        x, y, _, qw, qx, qy, qz = self.data.qpos[:7].tolist()
        heading = yaw_of_quaternion(qx, qy, qz, qw)
        return np.array([x, y, heading]), np.array(self.data.qvel[[0, 1, 5]])

    def _move(self, torques: Vector) -> None:
        self.data.ctrl[self._motors] = torques
        self._engine.mj_step(self.model, self.data)
        if any(alarm.number for alarm in self._alarms):
            # MuJoCo has put the robot back to where it began, or dropped its commands.
            raise InputError("motion in MuJoCo", got="a state without bounds", expected="a finite motion")
