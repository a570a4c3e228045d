"""Readings of one channel, and how well a shifted command explains them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.identification.delay._fopdt import LaggedCommand
from youbot_dynamics.identification.signals import HeldCommand


@dataclass(frozen=True, eq=False)
class Channel:
    """Readings of one channel, and the command that moved it."""

    time: Vector  # (m,) [s]
    motion: Vector  # (m,)
    longest: float  # largest delay considered [s]
    command: HeldCommand
    friction: HeldCommand | None = None  # expected at each command, None if unknown
    span: float = field(default=inf, kw_only=True)  # of the means that are subtracted [s]: it leaves out what is slower

    def quick(self, values: Vector) -> Vector:
        """Values (m,) less their mean, over a `span` around each."""
        centred: Vector = values - values.mean()
        if self.span == inf:
            return centred
        first, last = self._around
        sums = np.concatenate([[0.0], np.cumsum(centred)])
        return np.asarray(centred - (sums[last] - sums[first]) / (last - first))

    @cached_property
    def _around(self) -> tuple[Indices, Indices]:
        """First reading of the `span` around each (m,), and the first one behind it."""
        ends = self.time + 0.5 * self.span
        return np.searchsorted(self.time, ends - self.span), np.searchsorted(self.time, ends, side="right")

    @property
    def centred(self) -> Vector:
        """The quick part (m,) of the motion."""
        return self.quick(self.motion)

    def explained(self, centred: Vector, shift: float, command: HeldCommand | LaggedCommand | None = None) -> float:
        """Squares of the motion (m,), `centred`, that a shifted command explains; negative if against it."""
        model = self.quick((command or self.command).motion(self.time - shift))
        product, power = float(model @ centred), float(model @ model)
        return product * abs(product) / power if power > 0.0 else 0.0
