"""A held command that arrives late: transport delay per axis, exact between steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.compiled import compiled
from youbot_dynamics.errors import InputError

Vector = NDArray[np.float64]

_MEMORY = 4096  # commands there is room for at first; at 50 Hz far more than the longest dead time


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

    Commands are forgotten when room gets short and the last `means` was past them, dead times and all.

    Args:
        dead_times: (k,) [s], not negative.
    """

    def __init__(self, dead_times: ArrayLike) -> None:
        self.dead_times = np.array(dead_times, dtype=float)
        axes = len(self.dead_times)
        self._count = 0
        self._needed = -math.inf  # no earlier command is asked for any more [s]
        self._times = np.zeros(_MEMORY)
        self._values = np.zeros((_MEMORY, axes))
        self._integrals = np.zeros((_MEMORY, axes))

    def push(self, time: float, command: ArrayLike) -> None:
        """Hold `command` (k,) from `time` [s] on; a time before the last one counts as the last one.

        Raises:
            InputError: a time that is not finite.
        """
        if not math.isfinite(time):
            raise InputError("time of a command", got=f"{time}", expected="a finite number [s]")
        if self._count > 0 and time <= self._times[self._count - 1]:
            self._values[self._count - 1] = command  # the last one never was held
            return
        if self._count == len(self._times):
            self._make_room()
        k = self._count
        if k > 0:
            held = self._values[k - 1] * (time - self._times[k - 1])
            self._integrals[k] = self._integrals[k - 1] + held
        self._times[k] = time
        self._values[k] = command
        self._count = k + 1

    def means(self, start: float, dt: float, steps: int) -> Vector:
        """Mean of the delayed command over each of `steps` intervals of `dt` [s] from `start` on: (steps, k).

        The means, not samples, so that a step of the command inside an interval keeps its exact time.
        """
        self._needed = start - float(self.dead_times.max())
        means = np.empty((steps, len(self.dead_times)))
        _held_means(self._times, self._values, self._integrals, self._count, self.dead_times, start, dt, means)
        return means

    def _make_room(self) -> None:
        first = max(0, int(np.searchsorted(self._times, self._needed, side="right")) - 1)
        kept = self._count - first
        more = max(0, 2 * kept - len(self._times))
        self._times, self._values, self._integrals = (
            np.concatenate([track[first:], np.zeros((first + more, *track.shape[1:]))])
            for track in (self._times, self._values, self._integrals)
        )
        self._count = kept
