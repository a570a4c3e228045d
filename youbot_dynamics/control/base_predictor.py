"""Where a base will be when a command that leaves now takes effect: a model carried along, corrected by readings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.dynamics.driven_base import POSE, STATE_SIZE, STEP, DrivenBase, follow
from youbot_dynamics.kinematics import planar

Vector = NDArray[np.float64]


class BasePredictor:
    """State of a `DrivenBase` under the commands that were sent.

    Each pose that is measured moves the state's pose by a share of how far it is off. The share
    weighs readings, whose stamps jitter by a millisecond, against a model that is a fraction of a millimetre off.

    Args:
        base: model of the robot.
        trust: share of the difference to a measured pose that is believed, 0 to 1.
    """

    def __init__(self, base: DrivenBase, trust: float) -> None:
        self.base = base
        self.trust = trust
        self._state: Vector = np.zeros(STATE_SIZE)
        self._time = -np.inf
        self._sent: Vector = np.zeros(0)
        self._twists: Vector = np.zeros((0, 3))

    def sent(self, time: float, twist: ArrayLike) -> None:
        """Keep a twist (3,) that left at `time` [s]; one that is not newer than the last replaces it."""
        values = np.asarray(twist, dtype=float)[None, :]
        old = int(np.searchsorted(self._sent, time))
        # The last reading may be long ago, and each command acts until the next one does; without any it may come now.
        since = time if self._time == -np.inf else min(time, self._time)
        acting = since - float(np.max(self.base.dead_times))
        first = max(0, int(np.searchsorted(self._sent[:old], acting, side="right")) - 1)
        self._sent = np.append(self._sent[first:old], time)
        self._twists = np.concatenate([self._twists[first:old], values])

    def observe(self, stamp: float, pose: ArrayLike) -> None:
        """Take a measured pose (3,) [m, m, rad] at its stamp [s]; one that is not newer than the last changes nothing.

        The first one is believed as it is.
        """
        measured = np.asarray(pose, dtype=float)
        if self._time == -np.inf:
            self._state[POSE], self._time = measured, stamp
            return
        if stamp <= self._time:
            return
        nowhere = np.zeros(0)
        follow(
            self.base.constants,
            self._state,
            self._time,
            stamp,
            STEP,
            self._sent,
            self._twists,
            nowhere,
            np.zeros((0, 3)),
        )
        self._time = stamp
        off = measured - self._state[POSE]
        off[2] = planar.wrap(float(off[2]))
        self._state[POSE] += self.trust * off

    def poses(self, moments: ArrayLike, planned: ArrayLike, twists: ArrayLike) -> Vector:
        """Poses (k, 3) at moments (k,) [s] to come, under the commands sent and those planned.

        Args:
            moments: in any order; one before the last reading gives the pose then.
            planned: (c,) times of the commands to come, increasing [s].
            twists: (c, 3) of them [m/s, m/s, rad/s].
        """
        asked = np.asarray(moments, dtype=float)
        at = np.maximum(asked, self._time)
        order = np.argsort(at)
        found = np.empty((len(at), 3))
        state = self._state.copy()
        times = np.concatenate([self._sent, np.asarray(planned, dtype=float)])
        commands = np.concatenate([self._twists, np.asarray(twists, dtype=float).reshape(-1, 3)])
        rows = np.tile(self._state[POSE], (len(at), 1))
        last = float(at[order[-1]])
        follow(self.base.constants, state, self._time, last, STEP, times, commands, at[order], rows)
        found[order] = rows
        return found
