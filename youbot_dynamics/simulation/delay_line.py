"""A held command that arrives late: transport delay per axis, exact between steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.compiled import compiled

Vector = NDArray[np.float64]

_MEMORY = 4096  # commands kept; at 50 Hz far more than the longest dead time


@compiled
def _held_means(
    times: Vector,
    values: Vector,
    integrals: Vector,
    count: int,
    dead_times: Vector,
    start: float,
    dt: float,
    means: Vector,
) -> None:
    """Fill `means` (steps, k): mean of the delayed held command over each interval, from its exact integral."""
    for axis in range(means.shape[1]):
        corner = np.searchsorted(times[:count], start - dead_times[axis], side="right")
        before = 0.0
        for edge in range(means.shape[0] + 1):
            query = start + edge * dt - dead_times[axis]
            while corner < count and times[corner] <= query:
                corner += 1
            reached = 0.0
            if corner > 0:
                k = corner - 1
                reached = integrals[k, axis] + values[k, axis] * (query - times[k])
            if edge > 0:
                means[edge - 1, axis] = (reached - before) / dt
            before = reached


class DelayLine:
    """Commands held from their time on, each axis delayed by its own dead time; zero before the first.

    Args:
        dead_times: (k,) [s], not negative.
    """

    def __init__(self, dead_times: ArrayLike) -> None:
        self.dead_times = np.array(dead_times, dtype=float)
        axes = len(self.dead_times)
        self._count = 0
        self._times = np.zeros(_MEMORY)
        self._values = np.zeros((_MEMORY, axes))
        self._integrals = np.zeros((_MEMORY, axes))

    def push(self, time: float, command: ArrayLike) -> None:
        """Hold `command` (k,) from `time` [s] on; a time before the last one counts as the last one."""
        if self._count == _MEMORY:
            half = _MEMORY // 2
            for track in (self._times, self._values, self._integrals):
                track[:half] = track[half:]
            self._count = half
        k = self._count
        if k > 0:
            time = max(time, float(self._times[k - 1]))
            held = self._values[k - 1] * (time - self._times[k - 1])
            self._integrals[k] = self._integrals[k - 1] + held
        self._times[k] = time
        self._values[k] = command
        self._count = k + 1

    def means(self, start: float, dt: float, steps: int) -> Vector:
        """Mean of the delayed command over each of `steps` intervals of `dt` [s] from `start` on: (steps, k).

        The means, not samples, so that a step of the command inside an interval keeps its exact time.
        """
        means = np.empty((steps, len(self.dead_times)))
        _held_means(self._times, self._values, self._integrals, self._count, self.dead_times, start, dt, means)
        return means
