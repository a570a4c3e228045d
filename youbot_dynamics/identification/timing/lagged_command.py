"""A held command behind a first-order lag: the exact answer between the samples, and how it changes with the lag."""

from __future__ import annotations

from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.compiled import compiled
from youbot_dynamics.identification.timing.held_command import HeldCommand

Vector = NDArray[np.float64]


class Answer(NamedTuple):
    """What a lagging robot shows at some times, and its derivatives.

    Attributes:
        motion: (m,) position, or mean speed over the window of the command.
        rate: (m,) its time derivative.
        widening: (m,) its derivative by lag^2 / 2 while dead time + lag stays the same.
    """

    motion: Vector
    rate: Vector
    widening: Vector


@compiled
def _corners(times: Vector, values: Vector, lag: float) -> tuple[Vector, Vector]:
    """Answer y (n,) and dy/dlag (n,) at each command sent at `times` (n,); settled at the first."""
    answer, change = np.empty_like(values), np.empty_like(values)
    answer[0], change[0] = values[0], 0.0
    for k in range(len(times) - 1):
        held = times[k + 1] - times[k]
        decay, off = exp(-held / lag), answer[k] - values[k]
        answer[k + 1] = values[k] + off * decay
        change[k + 1] = (change[k] + off * held / (lag * lag)) * decay
    return answer, change


class LaggedCommand:
    """Answer of lag y' + y = u to a held command u, settled at its first sample.

    Args:
        command: the held command.
        lag: time constant [s], above 0.
    """

    def __init__(self, command: HeldCommand, lag: float) -> None:
        self.command = command
        self.lag = lag
        self._answer, self._change = _corners(command.times, command.values, lag)

    def at(self, query: ArrayLike) -> Answer:
        """Motion and its derivatives at `query` (m,) [s].

        y = u_k + (y_k - u_k) exp(-r / lag), r the time since sample k. The integral of y is that of u less
        lag (y - y_0): no sum over steps, no error of a rule.
        """
        at, half = np.asarray(query, dtype=float), self.command.half_window
        if half == 0.0:
            return self._position(at)
        late, early = self._position(at + half), self._position(at - half)
        return Answer(*((a - b) / (2.0 * half) for a, b in zip(late, early, strict=True)))

    def twice(self, query: ArrayLike) -> Vector:
        """What two such lags in a row make of the held values at `query` (m,): 1 / (1 + lag s)^2 = y + lag dy/dlag.

        Over the window of the command, where it has one, the mean rate of change.
        """
        at, half = np.asarray(query, dtype=float), self.command.half_window
        if half == 0.0:
            answer, change = self._held_answer(at)
            return answer + self.lag * change
        late, early = self._held_answer(at + half), self._held_answer(at - half)
        return (late[0] - early[0] + self.lag * (late[1] - early[1])) / (2.0 * half)

    def _position(self, query: Vector) -> Answer:
        answer, change = self._held_answer(query)
        return Answer(self.command.integral(query) - self.lag * answer, answer, -change)

    def _held_answer(self, query: Vector) -> tuple[Vector, Vector]:
        """Answer y and dy/dlag at `query`, (m,) each."""
        k, since = self.command.place(query)
        # Before the first sample nothing is known: the command is taken to have been the same.
        decay = np.exp(-np.maximum(since, 0.0) / self.lag)
        held, off = self.command.values[k], (self._answer - self.command.values)[k]
        return held + off * decay, (self._change[k] + off * since / self.lag**2) * decay
