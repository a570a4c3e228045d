"""Checks whether known roller phases are still valid, for users of the phases other than odometry."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.robot import Robot

_PIECE = 0.25  # [s] over which residuals are summed: about the passage of one roller
_MEMORY = 80.0  # pieces
_FEWEST = 30.0  # pieces with information before a verdict
_HOLDS = 0.5  # smallest fraction of the predicted ripple for valid phases
_SURE = 3.0  # standard errors


class RollerWatch:
    """Looks in the residual of the mean rows for the ripple that known phases predict.

    Over pieces of time, with S the residual sum along the slip direction of the rows with phases and S_mean that of the
    mean rows, the phases predict p = S_mean - S. The regression of S_mean on p gives 1 for valid phases and 0 for
    rollers at other phases. A slipping wheel adds to S independently of p and only increases the error of the
    regression.

    Args:
        quantum: of the wheel angles [rad]: smaller predictions are ignored.
    """

    def __init__(self, quantum: float) -> None:
        self._quantum = quantum
        self._time = 0.0
        self._with, self._mean = 0.0, 0.0
        self._pieces, self._power, self._product, self._seen_power = 0.0, 0.0, 0.0, 0.0

    @property
    def share(self) -> tuple[float, float]:
        """Fraction of the predicted ripple that is present, and its standard error; infinite if unknown."""
        if self._pieces < _FEWEST or self._power == 0.0:
            return 1.0, float("inf")
        slope = self._product / self._power
        variance = max(self._seen_power - slope * self._product, 0.0) / self._pieces
        return slope, sqrt(variance / self._power)

    @property
    def lost(self) -> bool:
        """Whether the rollers are certainly at other phases."""
        share, error = self.share
        return share + _SURE * error < _HOLDS

    def update(self, dt: float, with_phases: Vector, mean: Vector) -> None:
        """Process residuals (m,) [rad] of a step of dt [s] along slip directions: with phases, and of the mean rows."""
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
            self._seen_power = keep * self._seen_power + seen**2
        self._time = self._with = self._mean = 0.0


_STAMP_SLACK = 0.02  # [s] by which two stamps may be closer than their readings


class PhaseGuard:
    """Monitors the wheel counts: phases refer to them, and are lost after a jump of a count.

    Args:
        robot: geometry, phases, limits and the driver's resolution.

    Attributes:
        lost: why the phases are no longer known; "" while they are; "none are known" if they never were.
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
        """Continue with roller phases (n,) [rad] that were estimated while driving."""
        self._wheels = self._robot.base.geometry.wheels().at_phases(phases)
        self._watch, self.lost = RollerWatch(self._robot.driver.position_quantum), ""

    def update(self, stamp: float, wheel_angles: ArrayLike) -> str:
        """Process one reading, (n,) [rad] in our signs at its stamp [s]; returns `lost`."""
        angles = np.array(wheel_angles, dtype=float)
        last, self._last = self._last, (stamp, angles)
        if self._wheels is None or self.lost:
            return self.lost
        if not np.all(np.isfinite(angles)):
            self.lost = "a wheel has no angle"
        elif last is not None and stamp > last[0]:
            dt, step = stamp - last[0], angles - last[1]
            if not np.max(np.abs(step)) <= self._fastest * (dt + _STAMP_SLACK):
                self.lost = "the wheel counts jumped"
                return self.lost
            residual = self._wheels.roll(last[1], angles).residual
            self._watch.update(dt, self._wheels.base.slip(residual), self._wheels.base.slip(step))
            if self._watch.lost:
                self.lost = "the residual of the wheels does not follow the rollers"
        return self.lost
