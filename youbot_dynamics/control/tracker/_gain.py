"""Gain of the base that drifts: how far it moves for its commands, over what its model says.

A battery that sags, or a load, changes the motion of all axes by one factor. A feedback on the pose alone always lags
behind that where the speed changes.
"""

from __future__ import annotations

from math import copysign, exp, log

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.driven_base import DrivenBase

_TIME, _DELAYS = 1.0, 3.0  # [s] over which motion is compared; at least so many dead times, lest it oscillate
_UNSEEN = 0.01  # logarithm of a gain that is none: identified robots show up to 0.0035 by their model and stamps
_MOST = log(1.3)  # of its logarithm: beyond it something else is wrong
_SLOW = 0.02  # [m/s] of the rim of the base below which its motion tells nothing


class GainDrift:
    """Learns the gain from measured against predicted displacements, by normalised least mean squares.

    A displacement that was predicted as d and was d + e has the gain 1 + d' W e / d' W d, where W weighs turns by the
    lever of the wheels. As the predictor moves by a share `trust` of what it is off, o, the new part of o is
    e = o - (1 - trust) o of the reading before.

    Args:
        base: its model.
        trust: of the predictor. With 1 the model is not known, and nothing is learned.

    Source: Widrow and Hoff 1960, normalised.
    """

    def __init__(self, base: DrivenBase, trust: float) -> None:
        lever = float(np.abs(base.dynamics.base.positions[0]).sum())
        self._weights: Vector = np.array([1.0, 1.0, lever**2])
        self._left, self._time = 1.0 - trust, max(_TIME, _DELAYS * float(base.dead_times.max()))
        self._off: Vector = np.zeros(3)
        self._moving = 0.0  # [s] of motion: in the first `_time` a faulty wheel is to be named, not corrected
        self._logarithm, self._power = 0.0, 0.0  # of the gain; mean d' W d / dt^2 [m2/s2]

    @property
    def gain(self) -> float:
        """Motion over that of the model [1]; 1 at the start, and while the difference may be that of the model."""
        beyond = max(0.0, abs(self._logarithm) - _UNSEEN)
        used = min(1.0, max(0.0, self._moving / self._time - 1.0))
        return exp(copysign(used * beyond, self._logarithm))

    def learn(self, moved: Vector, off: Vector, dt: float) -> None:
        """Take a predicted displacement (3,) and what the pose was off after it (3,) [m, m, rad], over `dt` [s]."""
        new, self._off = off - self._left * self._off, off
        if self._left <= 0.0:
            return
        share = min(1.0, dt / self._time)
        weighed = self._weights * moved / dt
        self._power += share * (float(weighed @ moved) / dt - self._power)
        self._moving += dt if weighed @ moved > _SLOW**2 * dt else 0.0
        applied = log(self.gain)
        power = max(self._power, float(weighed @ moved) / dt, _SLOW**2)
        told = float(weighed @ new) / dt + float(weighed @ moved) / dt * (applied - self._logarithm)
        self._logarithm = min(_MOST, max(-_MOST, self._logarithm + share * told / power))
