"""How far odometry with a known geometry is off after a way: what a user may expect, and what `odom` publishes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, fdtri

from youbot_dynamics.identification.least_squares import (
    CONFIDENCE,
    NORMAL,
    Estimate,
    Kind,
    Reason,
    Unknown,
    judge,
    student,
)

_USEFUL_GROWTH = 1.0  # largest useful half-width of the growth of errors, as its share: of five drives
# A tenth of the least growth of five real robots, the four of the benchmark OptiOdom and one of PoliMi
_LEAST_GROWTH = 0.0003, 0.0015  # [m/sqrt(m), rad/sqrt(m)]
_NO_SLIP = Reason(
    Kind.NOT_OF_THE_ROBOT, "odometry drifts ten times less than on any real floor: a simulation without slip?"
)
_BY_YAW = Reason(Kind.CONFUSED, "errors of the yaw explain those of the position")


class Drift(NamedTuple):
    """What odometry does over a drive; turns on the spot are way of the wheels too."""

    position: float  # root mean square error at the end of a drive, over its way [1]
    yaw: float  # the same [rad/m]
    drives: int  # on different paths, by which it is known
    kinds: float  # standard deviation between kinds of motion of what a size seems to be [1]
    # Of each axis, per square root of the way, besides what the yaw makes of it [m/sqrt(m)]; 0 if that is all
    position_growth: float
    yaw_growth: float  # the same of the yaw [rad/sqrt(m)]

    def estimates(self) -> tuple[Estimate, Estimate]:
        """Growth of position and yaw, as `BaseDrift` has it, with the 95 % intervals of standard deviations of drives.

        Both are refused where the yaw grows as on no real floor, and that of the position where the yaw explains it.
        That the growth of the yaw is the largest of several lengths is not in its interval.
        """
        outside = 0.5 * (1.0 - CONFIDENCE)
        low, high = np.sqrt(self.drives / chdtri(self.drives, [outside, 1.0 - outside])).tolist()
        units = ("position", "m/sqrt(m)", self.position_growth), ("yaw", "rad/sqrt(m)", self.yaw_growth)
        position, yaw = (
            judge(
                Unknown(name, unit, share=_USEFUL_GROWTH),
                value,
                value / math.sqrt(2.0 * self.drives),
                0.5 * (high - low) * value,
                interval=(low * value, high * value),
            )
            for name, unit, value in units
        )
        if yaw.value < _LEAST_GROWTH[1]:
            return position.refused(_NO_SLIP), yaw.refused(_NO_SLIP)
        return position if position.value >= _LEAST_GROWTH[0] else position.refused(_BY_YAW), yaw

    def within(self, way: float, turn: float) -> tuple[float, float]:
        """Errors [m, rad] at the end that 95 % of drives do not exceed, also of another kind of motion.

        It is for drives about as long as those by which it is known: slip grows slower than the way.

        Args:
            way: of the wheels, with turns [m].
            turn: of the base, left and right added up [rad].
        """
        more = way * math.sqrt(1.0 + 1.0 / self.drives)
        plane = math.sqrt(fdtri(2, 2 * (self.drives - 1), CONFIDENCE))
        position, yaw = self.position * more * plane, self.yaw * more * student(self.drives - 1)
        return math.hypot(position, NORMAL * self.kinds * way), math.hypot(yaw, NORMAL * self.kinds * turn)
