"""The delay a motion really has behind its command: by brute force, for judging what identification finds."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def effective_delay(
    command_time: ArrayLike, command: ArrayLike, time: ArrayLike, motion: ArrayLike, longest: float = 0.8
) -> float:
    """Shift that best maps a held command onto noise-free motion, by brute force over a grid.

    Least squares of motion(t) - (a + g C(t - shift)), C the integral of the held command; 10 us grid.

    Args:
        command_time: (n,) [s], increasing.
        command: (n,) held from its time on [unit/s].
        time: (m,) [s].
        motion: (m,) true displacement of the axis [unit].
        longest: largest shift searched [s].

    Returns:
        The shift [s].
    """
    t, u = np.asarray(command_time, dtype=float), np.asarray(command, dtype=float)
    at, moved = np.asarray(time, dtype=float), np.asarray(motion, dtype=float)
    corners = np.concatenate([[0.0], np.cumsum(np.diff(t) * u[:-1])])
    inside = at > t[0] + longest
    at, moved = at[inside], moved[inside]

    moved = moved - moved.mean()

    def misfit(shift: float) -> float:
        query = at - shift
        k = np.searchsorted(t, query, side="right") - 1
        model = corners[k] + u[k] * (query - t[k])
        model = model - model.mean()
        return float(moved @ moved - (model @ moved) ** 2 / (model @ model))

    grid = np.arange(0.0, longest, 5e-3)
    for step in (5e-4, 1e-4, 1e-5):
        best = float(grid[int(np.argmin([misfit(shift) for shift in grid]))])
        width = float(grid[1] - grid[0])
        grid = np.arange(max(0.0, best - width), best + width, step)
    return float(grid[int(np.argmin([misfit(shift) for shift in grid]))])
