"""Whether roller phases still hold: counts that were lost leave rollers elsewhere than the rows believe."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np

from youbot_dynamics.arrays import Vector

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
        """Take the residuals of one step.

        Args:
            dt: [s].
            with_phases: (m,) along the slip directions, of the rows with phases [rad].
            mean: (m,) of the mean rows [rad].
        """
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
