"""Whether the roller phases that are known still hold, for whoever only uses them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.estimation.roller_watch import RollerWatch
from youbot_dynamics.robot import Robot

_STAMP_SLACK = 0.02  # [s] two stamps may be this much closer than their readings


class PhaseGuard:
    """Follows the wheel counts: phases hang on them, and are gone for good with a count that jumped.

    Args:
        robot: geometry, phases, limits and the driver's resolution.

    Attributes:
        lost: why the phases are no longer known; "" while they are. "none are known" from the start where they are not.
    """

    def __init__(self, robot: Robot) -> None:
        geometry = robot.base.geometry
        self._wheels = geometry.wheels() if geometry.roller_phases is not None else None  # needs the compiler
        self._fastest = 2.0 * robot.base.limits.wheel_speed
        self._watch = RollerWatch(robot.driver.position_quantum)
        self._last: tuple[float, Vector] | None = None
        self.lost = "none are known" if self._wheels is None else ""

    def update(self, stamp: float, wheel_angles: ArrayLike) -> str:
        """Take one reading, (n,) [rad] in our signs at its stamp [s]; returns `lost`."""
        angles = np.array(wheel_angles, dtype=float)
        last, self._last = self._last, (stamp, angles)
        if self._wheels is None or self.lost:
            return self.lost
        if not np.all(np.isfinite(angles)):
            self.lost = "a wheel has no angle"
        elif last is not None and stamp > last[0]:
            dt, step = stamp - last[0], angles - last[1]
            if np.max(np.abs(step)) > self._fastest * (dt + _STAMP_SLACK):
                self.lost = "the wheel counts jumped"
                return self.lost
            residual = self._wheels.roll(last[1], angles).residual
            self._watch.update(dt, self._wheels.base.slip(residual), self._wheels.base.slip(step))
            if self._watch.lost:
                self.lost = "the residual of the wheels does not follow the rollers"
        return self.lost
