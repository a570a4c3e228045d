"""Where a base will be when a command that leaves now takes effect: a model carried along, corrected by readings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.driven_base import POSE, STATE_SIZE, STEP, DrivenBase, follow
from youbot_dynamics.kinematics import planar

_ROOM = 64  # commands by which the memory grows
_NO_TIMES, _NO_POSES = np.zeros(0), np.zeros((0, 3))


class BasePredictor:
    """State of a `DrivenBase` under the commands that were sent.

    Each pose that is measured moves the state's pose by a share of how far it is off. The share
    weighs readings, whose stamps jitter by a millisecond, against a model that is a fraction of a millimetre off.

    Args:
        base: model of the robot.
        trust: share of the difference to a measured pose that is believed, 0 to 1.

    Attributes:
        time: of the last reading [s], -inf before the first.
        state: (12,) then.
    """

    def __init__(self, base: DrivenBase, trust: float) -> None:
        self.base = base
        self.trust = trust
        self.time = -np.inf
        self.state: Vector = np.zeros(STATE_SIZE)
        self._latest = float(np.max(base.dead_times))
        # Those kept are from `_first` on, before `_next`: behind them is room.
        self._times, self._twists = np.zeros(0), np.zeros((0, 3))
        self._first = self._next = 0

    @property
    def kept(self) -> int:
        """Number of commands that are remembered."""
        return self._next - self._first

    def sent(self, time: float, twist: ArrayLike) -> None:
        """Keep a twist (3,) that left at `time` [s]; one that is not newer than the last replaces it."""
        times = self._times
        while self._next > self._first and times[self._next - 1] >= time:
            self._next -= 1
        # The last reading may be long ago, and each command acts until the next one does; without any it may come now.
        acting = (time if self.time == -np.inf else min(time, self.time)) - self._latest
        while self._first + 1 < self._next and times[self._first + 1] <= acting:
            self._first += 1
        times, twists = self.commands(1)
        times[-1], twists[-1] = time, twist
        self._next += 1

    def commands(self, planned: int) -> tuple[Vector, Vector]:
        """Times (c,) [s] and twists (c, 3) of the commands, the last rows free for those planned.

        Args:
            planned: how many rows are free; they are not remembered.
        """
        if self._next + planned > len(self._times):
            kept, room = slice(self._first, self._next), self.kept + planned + _ROOM
            self._times = np.concatenate([self._times[kept], np.zeros(room)])
            self._twists = np.concatenate([self._twists[kept], np.zeros((room, 3))])
            self._first, self._next = 0, self.kept
        rows = slice(self._first, self._next + planned)
        return self._times[rows], self._twists[rows]

    def observe(self, stamp: float, pose: ArrayLike) -> None:
        """Take a measured pose (3,) [m, m, rad] at its stamp [s]; one that is not newer than the last changes nothing.

        The first one is believed as it is.
        """
        measured = np.asarray(pose, dtype=float)
        if self.time == -np.inf:
            self.state[POSE], self.time = measured, stamp
            return
        if stamp <= self.time:
            return
        follow(self.base.constants, self.state, self.time, stamp, STEP, *self.commands(0), _NO_TIMES, _NO_POSES)
        self.time = stamp
        off = measured - self.state[POSE]
        off[2] = planar.wrap(float(off[2]))
        self.state[POSE] += self.trust * off

    def poses(self, moments: ArrayLike, planned: ArrayLike, twists: ArrayLike) -> Vector:
        """Poses (k, 3) at moments (k,) [s] to come, under the commands sent and those planned.

        Args:
            moments: in any order; one before the last reading gives the pose then.
            planned: (c,) times of the commands to come, increasing [s].
            twists: (c, 3) of them [m/s, m/s, rad/s].
        """
        at = np.maximum(np.asarray(moments, dtype=float), self.time)
        order = np.argsort(at)
        sent, commands = self.commands(len(np.asarray(planned)))
        sent[self.kept :], commands[self.kept :] = planned, np.reshape(twists, (-1, 3))
        found, rows = np.empty((len(at), 3)), np.tile(self.state[POSE], (len(at), 1))
        last = float(at[order[-1]])
        follow(self.base.constants, self.state.copy(), self.time, last, STEP, sent, commands, at[order], rows)
        found[order] = rows
        return found
