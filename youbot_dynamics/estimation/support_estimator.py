"""What the wheels carry while robot and arm move: the tree of `support`, fed with what the driver tells of both."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.arm_health import ERROR, WARNING, Finding
from youbot_dynamics.estimation.payload import PayloadBelief
from youbot_dynamics.estimation.speed_rate import SpeedRate
from youbot_dynamics.estimation.support import SIDES, Carried, Support, SupportModel
from youbot_dynamics.robot import Robot

_SILENT = 0.5  # [s] after the last message of the wheels the base counts as standing
_SAME_MASS = 1e-3  # [kg] below which another payload is not worth another tree
_SAME_PLACE = 1e-3  # [m]


class SupportEstimator:
    """Accelerations of base and arm out of their speeds, and the support that follows.

    A payload counts where it is known; else the gripper counts as empty. The wheels are taken to roll: where they
    slip, the base accelerates less than they say.

    Args:
        robot: whose masses and wheels these are.
        lag: time constant of the accelerations [s].

    Raises:
        ModelError: as `SupportModel`.
    """

    def __init__(self, robot: Robot, lag: float = 0.1) -> None:
        self._model = SupportModel(robot)
        self._base = robot.base.geometry.mecanum()
        self._carried = Carried()
        self._angles: Vector | None = None
        self._twist, self._twist_rate, self._heard = np.zeros(3), np.zeros(3), -math.inf
        self._acceleration: Vector = np.zeros(5)
        self._of_base, self._of_arm = SpeedRate(lag), SpeedRate(lag)

    def take_wheels(self, stamp: float, angles: ArrayLike, speeds: ArrayLike) -> None:
        """Take in a message of the wheels in our signs.

        Args:
            stamp: [s].
            angles: (4,) [rad].
            speeds: (4,) [rad/s]; with one that is no number the message says nothing.
        """
        told, turned = np.asarray(speeds, dtype=np.float64), np.asarray(angles, dtype=np.float64)
        if not (np.isfinite(told).all() and np.isfinite(turned).all()):
            return
        self._angles, self._twist, self._heard = turned, self._base.twist(told), stamp
        self._twist_rate = self._of_base.take(stamp, self._twist)

    def take_arm(self, stamp: float, speed: ArrayLike) -> None:
        """Take in speeds (5,) [rad/s] of the arm at a stamp [s]."""
        self._acceleration = self._of_arm.take(stamp, speed)

    def carry(self, payload: PayloadBelief) -> None:
        """Take up what is believed of the payload."""
        mass = max(0.0, payload.mass) if payload.identifiable else 0.0
        moved = float(np.abs(payload.centre - self._carried.centre).max()) if mass > 0.0 else 0.0
        if abs(mass - self._carried.mass) > _SAME_MASS or moved > _SAME_PLACE:
            self._carried = Carried(mass, payload.centre)
            self._model.carry(self._carried)

    def support(self, stamp: float, position: ArrayLike, speed: ArrayLike) -> Support:
        """What carries the robot at a stamp [s], with the arm at positions (5,) [rad] and speeds (5,) [rad/s]."""
        drives = abs(stamp - self._heard) < _SILENT
        twist, rate = (self._twist, self._twist_rate) if drives else (np.zeros(3), np.zeros(3))
        return self._model.support(position, speed, self._acceleration, twist, rate, self._angles)


def support_findings(support: Support, wheels: Sequence[str], low_share: float) -> tuple[Finding, ...]:
    """Findings on wheels that hardly press on the floor any more.

    Args:
        support: of the robot.
        wheels: names of the four.
        low_share: share of the mean normal force below which a wheel counts as nearly lifted.
    """
    remedy = "fold the arm or move it over the base, put the payload down, or accelerate less"
    side = int(np.argmin(support.side_loads))
    if support.side_loads[side] < 0.0:
        cause = f"the robot falls over: its {SIDES[side]} wheels carry nothing"
        return (Finding("tip-over", ERROR, cause, remedy),)
    weakest, mean = int(np.argmin(support.normal_forces)), float(support.load[0]) / len(wheels)
    if support.margin < 0.0:
        return (Finding("lifted wheel", ERROR, f"{wheels[weakest]} lifts off the floor", remedy),)
    if support.margin < low_share * mean:
        cause = f"{wheels[weakest]} carries {support.margin:.0f} N, less than {low_share:.0%} of the mean {mean:.0f} N"
        return (Finding("light wheel", WARNING, cause, remedy),)
    return ()
