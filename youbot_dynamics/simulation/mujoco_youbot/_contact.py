"""Wheels on a floor in cycles of 1 ms, whatever engine computes the contacts: wheel speeds in, motion out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import cos, sin

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics.planar import wrap
from youbot_dynamics.simulation.arm import filter_share
from youbot_dynamics.simulation.base import drive_wheels
from youbot_dynamics.simulation.mujoco_youbot._model import TIMESTEP, speed_loops
from youbot_dynamics.simulation.truth import BaseTruth

_TOGETHER = 50  # cycles after which the yaw is followed up: far less than half a turn


class ContactPlant(ABC):
    """Wheels driven by the twin's motors (`drive_wheels`); no delay, no noise.

    The methods raise InputError for a wrong shape, a number that is not finite or a motion without bounds.

    Args:
        truth: the base.
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
