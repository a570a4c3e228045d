"""A command that is held between its samples, and its exact integral."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


class HeldCommand:
    """Zero-order hold of a sampled velocity command.

    Args:
        times: (n,) when each value was sent, increasing [s].
        values: (n,) commanded velocity [unit/s].
        half_window: 0 compares with positions; above 0, with velocities averaged over twice this time [s].
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, half_window: float) -> None:
        self.times: Vector = np.asarray(times, dtype=float)
        self.values: Vector = np.asarray(values, dtype=float)
        self.half_window = half_window
        self._corners = np.concatenate([[0.0], np.cumsum(np.diff(self.times) * self.values[:-1])])

    def place(self, query: ArrayLike) -> tuple[NDArray[np.intp], Vector]:
        """Sample (m,) that is held at each time of `query` (m,), and the time (m,) since it was sent [s].

        Before the first sample the first one is taken, and the time is negative.
        """
        at = np.asarray(query, dtype=float)
        k = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, None)
        return k, at - self.times[k]

    def held(self, query: ArrayLike) -> Vector:
        """Value held at each time of `query` (m,)."""
        return self.values[self.place(query)[0]]

    def integral(self, query: ArrayLike) -> Vector:
        """Integral of the held command from its first sample to each time of `query` (m,)."""
        k, since = self.place(query)
        return self._corners[k] + self.values[k] * since

    def motion(self, query: ArrayLike) -> Vector:
        """What a perfect robot would show at `query` (m,): the integral, or its mean slope over the window."""
        at = np.asarray(query, dtype=float)
        if self.half_window == 0.0:
            return self.integral(at)
        span = self.integral(at + self.half_window) - self.integral(at - self.half_window)
        return span / (2.0 * self.half_window)

    def rate(self, query: ArrayLike) -> Vector:
        """Time derivative of `motion` at `query` (m,)."""
        at = np.asarray(query, dtype=float)
        if self.half_window == 0.0:
            return self.held(at)
        return (self.held(at + self.half_window) - self.held(at - self.half_window)) / (2.0 * self.half_window)
