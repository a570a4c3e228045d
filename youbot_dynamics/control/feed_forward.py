"""Twists that make a driven base follow a trajectory: sent one dead time early, lag and friction made up for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.compiled import compiled
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.dynamics.driven_base import DriveConstants, DrivenBase, droop, resistance
from youbot_dynamics.kinematics import planar

Vector = NDArray[np.float64]

_GRID = 2e-3  # [s] between the points at which the corrections are kept
_BEFORE = 0.1  # [s] of rest before the first point
_FADED = 20.0  # time constants of lag and loop after which nothing remains of a motion


class FeedForward:
    """Inverse of `DrivenBase` along a trajectory.

    With V the desired body twist and e the droop under a(V), the answer must be r = V - e' and the command
    u = r + lag r', one dead time early, each axis with its own. A command held over h is the mean of u over h: that of
    V joins two desired poses, the rest is the change of lag r - e over the time it is held.

    Args:
        base: model of the robot.
        trajectory: desired poses.
        hold: how long a command is held [s].
    """

    def __init__(self, base: DrivenBase, trajectory: Trajectory, hold: float) -> None:
        self.base = base
        self.trajectory = trajectory
        self.hold = hold
        slowest = base.lag + (1.0 / base.rate if base.rate > 0.0 else 0.0)
        count = int(np.ceil((trajectory.duration + _FADED * slowest + 2.0 * _BEFORE) / _GRID)) + 2
        self._first = -_BEFORE
        grid = self._first + _GRID * np.arange(count)
        self._corrections: Vector | None = None
        if slowest > 0.0:
            twists = planar.steps_of_path(trajectory.path(grid)) / _GRID
            self._corrections = _corrections(base.constants, np.ascontiguousarray(twists), _GRID)

    def twist(self, time: float) -> Vector:
        """Twist (3,) to be sent at `time` since the trajectory began [s], and held."""
        found = np.empty(3)
        for axis in range(3):
            begin = time + float(self.base.dead_times[axis])
            found[axis] = self.trajectory.mean_twist(begin, begin + self.hold)[axis]
            found[axis] += (self._correction(begin + self.hold, axis) - self._correction(begin, axis)) / self.hold
        return found

    def _correction(self, time: float, axis: int) -> float:
        """Value of lag r - e [m or rad], linear between the points of the grid."""
        if self._corrections is None:
            return 0.0
        place = min(max((time - self._first) / _GRID, 0.0), len(self._corrections) - 1.0)
        k = min(int(place), len(self._corrections) - 2)
        low, high = self._corrections[k, axis], self._corrections[k + 1, axis]
        return float(low + (place - k) * (high - low))


@compiled
def _corrections(constants: DriveConstants, twists: Vector, dt: float) -> Vector:
    """Values lag r - e (n + 1, 3) at the points between which a base moves with body twists (n, 3), dt [s] apart."""
    count = len(twists)
    found = np.zeros((count + 1, 3))
    none = np.zeros(max(3, len(constants.positions)))
    forces, pull = np.zeros(3), np.zeros(3)
    held_back, speed = np.zeros(3), np.zeros(3)
    for k in range(count):
        if constants.rate > 0.0:
            resistance(constants, twists[k], forces, none, pull)
        for axis in range(3):
            old = held_back[axis]
            if constants.rate > 0.0:
                held_back[axis], speed[axis] = droop(constants.rate, pull[axis], dt, old, speed[axis])
            answer = twists[k, axis] - (held_back[axis] - old) / dt
            # At a point the answer is the mean of those before and behind it.
            found[k, axis] += 0.5 * constants.lag * answer
            found[k + 1, axis] += 0.5 * constants.lag * answer - held_back[axis]
    return found
