"""Whether the roller phases that are known still hold, for whoever only uses them."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.robot import Robot

_PIECE = 0.25  # [s] of which residuals are summed: about a passage of a roller
_MEMORY = 80.0  # pieces
_FEWEST = 30.0  # pieces that say something, before a verdict
_HOLDS = 0.5  # share of the predicted ripple that must be there
_SURE = 3.0  # standard errors


class RollerWatch:
    """Looks for the ripple that known phases predict in the residual that the mean rows leave.

    Over pieces of time, with S the residual sum along the slip direction of the rows with phases and S_mean of the mean
    rows, phases predict p = S_mean - S. The regression of S_mean on p is 1 where they hold and 0 where the rollers are
    anywhere. Wheels off pattern add to S alike whatever p is: they widen the error of the regression, no more.

    Args:
        quantum: of the wheel angles [rad]: predictions below it say nothing.
    """

    def __init__(self, quantum: float) -> None:
        self._quantum = quantum
        self._time = 0.0
        self._with, self._mean = 0.0, 0.0
        self._pieces, self._power, self._product, self._left = 0.0, 0.0, 0.0, 0.0

    @property
    def share(self) -> tuple[float, float]:
        """Share of the predicted ripple that is there, and its standard error; infinite where nothing is known."""
        if self._pieces < _FEWEST or self._power == 0.0:
            return 1.0, float("inf")
        slope = self._product / self._power
        left = max(self._left - slope * self._product, 0.0) / self._pieces
        return slope, sqrt(left / self._power)

    @property
    def lost(self) -> bool:
        """Whether the rollers are surely not where the phases say."""
        share, error = self.share
        return share + _SURE * error < _HOLDS

    def update(self, dt: float, with_phases: Vector, mean: Vector) -> None:
        """Take residuals (m,) [rad] of a step of dt [s] along slip directions: with phases, of the mean rows."""
        self._time += dt
        self._with += float(np.sum(with_phases))
        self._mean += float(np.sum(mean))
        if self._time < _PIECE:
            return
        predicted, seen = self._mean - self._with, self._mean
        if abs(predicted) > 4.0 * self._quantum:
            keep = exp(-1.0 / _MEMORY)
            self._pieces = keep * self._pieces + 1.0
            self._power = keep * self._power + predicted**2
            self._product = keep * self._product + predicted * seen
            self._left = keep * self._left + seen**2
        self._time = self._with = self._mean = 0.0


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
        self._robot = robot
        self._fastest = 2.0 * robot.base.limits.wheel_speed
        self._watch = RollerWatch(robot.driver.position_quantum)
        self._last: tuple[float, Vector] | None = None
        self.lost = "none are known" if self._wheels is None else ""

    def take_phases(self, phases: Vector) -> None:
        """Go on with roller phases (n,) [rad] that were found while driving."""
        self._wheels = self._robot.base.geometry.wheels().at_phases(phases)
        self._watch, self.lost = RollerWatch(self._robot.driver.position_quantum), ""

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
