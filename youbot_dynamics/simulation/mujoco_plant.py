"""The robot in MuJoCo in cycles of 1 ms: wheel speeds and arm currents in, motion out; no delay, no noise."""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.planar import wrap, yaw_of_quaternion
from youbot_dynamics.simulation.arm_controller import told_share
from youbot_dynamics.simulation.mujoco_arm_joints import ArmJoints
from youbot_dynamics.simulation.mujoco_engine import engine
from youbot_dynamics.simulation.mujoco_model import TIMESTEP, WHEEL_GROUP, ContactBase, contact_model, speed_loops
from youbot_dynamics.simulation.wheel_motors import drive_wheels

_WHEELS = ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br")
_TOGETHER = 50  # cycles after which the yaw is followed up: far less than half a turn


class MujocoPlant:
    """Base and arm on a floor, at rest at the origin.

    Args:
        base: the base.
        arm: bodies, friction and motors of the arm.
        with_arm: whether the arm moves; else it is held as it lies, part of the base.
        position: (n,) of the arm at the start [rad], folded to the stops by default.
        speed_lag: time constant of the wheels' speeds that the driver is told [s].
        arm_speed_lag: that of the arm's.

    Attributes:
        model: MuJoCo's `MjModel`.
        data: its `MjData`.

    Raises:
        ModelError: constants no robot has.
        ResourceError: MuJoCo is not installed.
    """

    def __init__(
        self,
        base: ContactBase,
        arm: ArmModel,
        *,
        with_arm: bool = True,
        position: ArrayLike | None = None,
        speed_lag: float = 0.0,
        arm_speed_lag: float = 0.0,
    ) -> None:
        self._engine = engine()
        at = np.zeros(arm.tree.nv) if position is None else position
        text = contact_model(base, arm, with_arm=with_arm, position=at)
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
        self._told_share = told_share(speed_lag)
        self._loops = speed_loops(base)
        self._reference, self._lagging, self._torques = np.zeros(4), np.zeros(4), np.zeros(4)
        self._told = np.zeros(4)
        self._asked, self._cycles = np.zeros((1, 4)), 0
        self._yaw = 0.0
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
    def pose(self) -> Vector:
        """Pose (3,) in the world of the point between the wheels [m, m, rad], yaw not wrapped."""
        self._follow_yaw()
        return np.array([self.data.qpos[0], self.data.qpos[1], self._yaw])

    @property
    def twist(self) -> Vector:
        """Body twist (3,) [m/s, m/s, rad/s]."""
        vx, vy, turn = self.data.qvel[0], self.data.qvel[1], self.data.qvel[5]
        yaw = self._heading()
        return np.array([cos(yaw) * vx + sin(yaw) * vy, cos(yaw) * vy - sin(yaw) * vx, turn])

    @property
    def wheel_angles(self) -> Vector:
        """Angles (4,) of FL, FR, RL, RR [rad], positive forward."""
        return np.array(self.data.qpos[self._angles])

    @property
    def wheel_speeds(self) -> Vector:
        """Speeds (4,) [rad/s]."""
        return np.array(self.data.qvel[self._speeds])

    @property
    def told_wheel_speeds(self) -> Vector:
        """Speeds (4,) behind the lag of the motor controllers [rad/s]."""
        return self._told.copy()

    @property
    def wheel_torques(self) -> Vector:
        """Torques (4,) of the motors at the wheels [N m]."""
        return np.array(self.data.actuator_force[self._motors])

    def switch_motors(self, on: bool) -> None:
        """Motors of the wheels off: no torque; on again they hold what speed the wheels then have."""
        powered = not self.model.opt.disableactuator & (1 << WHEEL_GROUP)
        if on and not powered:
            self.model.opt.disableactuator &= ~(1 << WHEEL_GROUP)
            self._reference, self._lagging = self.wheel_speeds, np.zeros(4)
        elif not on:
            self.model.opt.disableactuator |= 1 << WHEEL_GROUP

    def ask_wheels(self, wheel_speeds: ArrayLike) -> None:
        """Take the commanded wheel speeds (k, 4) of the next k cycles [rad/s]; the last row holds after them."""
        self._asked, self._cycles = array("wheel_speeds", wheel_speeds, (None, 4)), 0
        if len(self._asked) == 0:
            raise InputError("wheel_speeds", got="no row", expected="one for each cycle")

    def cycle(self) -> None:
        """Move the whole robot on by 1 ms, the wheels driven by the twin's motors (`wheel_motors`).

        Raises:
            InputError: a motion without bounds.
        """
        command = self._asked[min(self._cycles, len(self._asked) - 1)]
        drive_wheels(self._loops, command, self.wheel_speeds, TIMESTEP, self._reference, self._lagging, self._torques)
        self.data.ctrl[self._motors] = self._torques
        self._engine.mj_step(self.model, self.data)
        if any(alarm.number for alarm in self._alarms):
            # MuJoCo has put the robot back to where it began, or dropped its commands.
            raise InputError("motion in MuJoCo", got="a state without bounds", expected="a finite motion")
        self._told += self._told_share * (self.data.qvel[self._speeds] - self._told)
        self._cycles += 1
        if self._cycles % _TOGETHER == 0:
            self._follow_yaw()

    def advance(self, wheel_speeds: ArrayLike) -> None:
        """Move on by k cycles with commanded wheel speeds (k, 4) [rad/s], an arm that moves without current.

        Raises:
            InputError: a wrong shape or a number that is not finite.
        """
        self.ask_wheels(wheel_speeds)
        for _ in range(len(self._asked)):
            self.cycle()

    def _follow_yaw(self) -> None:
        self._yaw += wrap(self._heading() - self._yaw)

    def _heading(self) -> float:
        w, x, y, z = self.data.qpos[3:7].tolist()
        return yaw_of_quaternion(x, y, z, w)
