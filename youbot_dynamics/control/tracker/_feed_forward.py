"""The model of the base in its tracker: motion of commands on their way, and commands for a path."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.control.trajectory import TimedPath, Trajectory, between, write_pose
from youbot_dynamics.dynamics.driven_base import (
    POSE,
    STATE_SIZE,
    STEP,
    DriveConstants,
    DrivenBase,
    follow,
    write_inverse_droop,
)
from youbot_dynamics.dynamics.mecanum_dynamics import accelerate, friction_forces
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
        # Those kept are from `_first` on, before `_next`: the rest is spare.
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

    def withdraw(self, time: float) -> None:
        """Forget the last command where it was to leave at `time` [s]: it left at another."""
        self._next -= self._next > self._first and bool(self._times[self._next - 1] == time)

    def commands(self, planned: int) -> tuple[Vector, Vector]:
        """Times (c,) [s] and twists (c, 3) of the commands; the last `planned` rows are free and not remembered."""
        if self._next + planned > len(self._times):
            kept, room = slice(self._first, self._next), self.kept + planned + _ROOM
            self._times = np.concatenate([self._times[kept], np.zeros(room)])
            self._twists = np.concatenate([self._twists[kept], np.zeros((room, 3))])
            self._first, self._next = 0, self.kept
        rows = slice(self._first, self._next + planned)
        return self._times[rows], self._twists[rows]

    def observe(self, stamp: float, pose: ArrayLike) -> tuple[Vector, Vector, float] | None:
        """Take a measured pose (3,) [m, m, rad] at its stamp [s]; one that is not newer than the last changes nothing.

        The first one is believed as it is.

        Returns:
            Displacement that was predicted (3,), how far the measured pose is off it (3,) [m, m, rad], and the time
            since the last pose [s]; None for the first pose and for one that changes nothing.
        """
        measured = np.asarray(pose, dtype=float)
        if self.time == -np.inf:
            self.state[POSE], self.time = measured, stamp
            return None
        if stamp <= self.time:
            return None
        before, dt = self.state[POSE].copy(), stamp - self.time
        follow(self.base.constants, self.state, self.time, stamp, STEP, *self.commands(0), _NO_TIMES, _NO_POSES)
        self.time, moved = stamp, self.state[POSE] - before
        off = measured - self.state[POSE]
        off[2] = planar.wrap(float(off[2]))
        self.state[POSE] += self.trust * off
        return moved, off, dt

    def poses(self, moments: ArrayLike, planned: ArrayLike, twists: ArrayLike) -> Vector:
        """Poses (k, 3) at moments (k,) [s] to come, under the commands sent and those planned.

        Moments come in any order; one before the last reading gives the pose then. `planned` (c,) [s] increase,
        `twists` (c, 3) are theirs [m/s, m/s, rad/s].
        """
        at = np.maximum(np.asarray(moments, dtype=float), self.time)
        order = np.argsort(at)
        sent, commands = self.commands(len(np.asarray(planned)))
        sent[self.kept :], commands[self.kept :] = planned, np.reshape(twists, (-1, 3))
        poses, rows = np.empty((len(at), 3)), np.tile(self.state[POSE], (len(at), 1))
        last = float(at[order[-1]])
        follow(self.base.constants, self.state.copy(), self.time, last, STEP, sent, commands, at[order], rows)
        poses[order] = rows
        return poses


_GRID = 2e-3  # [s] between the points at which the corrections are kept
_BEFORE = 0.1  # [s] of rest before the first point
_FADED = 20.0  # time constants of lag and loop after which nothing remains of a motion


class Inverse(NamedTuple):
    """A feed-forward in numbers: what it inverts, and the corrections it has worked out so far.

    Corrections are worked out on a grid when they are first needed, from rest before the trajectory on or, where
    they are first needed in its midst, from as long before as a motion is felt.
    """

    path: TimedPath  # to be followed
    drive: DriveConstants  # that follows it
    hold: float  # how long a command is held [s]
    memory: int  # points of the grid for which a motion is felt
    corrections: Vector  # (n, 3) lag r - e at the points of the grid [m, m, rad]; changed
    held_back: Vector  # (2, 3) e and e' at the last point reached; changed
    reached: NDArray[np.int64]  # (2,) first point that is right, and the one from which to go on; changed


@compiled
def _write_twist(path: TimedPath, time: float, span: float, before: Vector, after: Vector, twist: Vector) -> None:
    """Write the mean twist (3,) of a path over a span from `time` on [s]; poses (3,) are work arrays."""
    write_pose(path, time, before)
    write_pose(path, time + span, after)
    twist[0], twist[1], twist[2] = between(before[0], before[1], before[2], after[0], after[1], after[2])
    for axis in range(3):
        twist[axis] /= span


@compiled
def _reach(inverse: Inverse, first: int, last: int) -> None:
    """Work out the corrections from point `first` to point `last`."""
    reached, corrections, held_back = inverse.reached, inverse.corrections, inverse.held_back
    if first < reached[0] or first > reached[1] + inverse.memory:
        begin = max(0, first - inverse.memory)
        reached[0], reached[1] = first if begin > 0 else 0, begin
        corrections[begin], held_back[:] = 0.0, 0.0
    drive = inverse.drive
    lag, damping, stiffness, unfed, inertia = (
        drive.lag,
        drive.damping,
        drive.stiffness,
        drive.unfed,
        drive.inverse_inertia,
    )
    mass, centre, rows, places, drives, gains = (
        drive.mass,
        drive.centre,
        drive.wheels_of_twist,
        drive.positions,
        drive.drives,
        drive.roller_gains,
    )
    of_wheels, of_rollers, viscous = drive.wheel_coulomb, drive.roller_coulomb, drive.viscous
    droops, fed = damping[0] > 0.0, unfed[0, 0] == 0.0
    none, forces, pull = np.zeros(3), np.zeros(3), np.zeros(3)
    before, after, twist, earlier, later = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    rows_of_droop = np.zeros((3, 2, 3))
    if droops:
        for axis in range(3):
            write_inverse_droop(damping[axis], stiffness[axis], fed, _GRID, rows_of_droop[axis])
    # A point is right when the steps on both its sides are done; after the last one the base rests.
    for k in range(reached[1], min(last + 1, len(corrections) - 1)):
        time = k * _GRID - _BEFORE
        _write_twist(inverse.path, time, _GRID, before, after, twist)
        if droops and not fed:
            # Commands are held: of programs, whose speed is held as well, an acceleration has no meaning within that.
            middle = time + 0.5 * _GRID
            _write_twist(inverse.path, middle - inverse.hold, inverse.hold, before, after, earlier)
            _write_twist(inverse.path, middle, inverse.hold, before, after, later)
        if droops:
            friction_forces(twist, rows, places, drives, gains, of_wheels, of_rollers, viscous, forces)
            accelerate(twist, inertia, mass, centre, none, forces, pull)
        for axis in range(3):
            held, rate = held_back[0, axis], held_back[1, axis]
            if droops:
                against = -pull[axis]
                for other in range(3):
                    against += unfed[axis, other] * (later[other] - earlier[other]) / inverse.hold
                row = rows_of_droop[axis]
                held_back[0, axis] = row[0, 0] * held + row[0, 1] * rate + row[0, 2] * against
                held_back[1, axis] = row[1, 0] * held + row[1, 1] * rate + row[1, 2] * against
            answer = twist[axis] - (held_back[0, axis] - held) / _GRID
            # At a point the answer is the mean of those before and behind it.
            corrections[k, axis] += 0.5 * lag * answer
            corrections[k + 1, axis] = 0.5 * lag * answer - held_back[0, axis]
        reached[1] = k + 1


@compiled
def _correction(inverse: Inverse, time: float, axis: int) -> float:
    """Value of lag r - e [m or rad], linear between the points of the grid."""
    last = len(inverse.corrections) - 1
    place = min(max((time + _BEFORE) / _GRID, 0.0), float(last))
    k = min(int(place), last - 1)
    low, high = inverse.corrections[k, axis], inverse.corrections[k + 1, axis]
    value: float = low + (place - k) * (high - low)
    return value


@compiled
def feed_forward(inverse: Inverse, time: float, count: int, twists: Vector) -> None:
    """Write twists (n, 3), n = `count`, to be sent at `time` since the trajectory began [s] and each `hold` after it.

    What had to be worked out for that is kept in `inverse`.
    """
    dead, hold = inverse.drive.dead_times, inverse.hold
    corrected = len(inverse.corrections) > 1
    if corrected:
        last = len(inverse.corrections) - 2
        low = (time + min(dead[0], dead[1], dead[2]) + _BEFORE) / _GRID
        high = (time + max(dead[0], dead[1], dead[2]) + count * hold + _BEFORE) / _GRID
        _reach(inverse, int(min(max(low, 0.0), last)), int(min(max(high, 0.0), last)) + 1)
    begin, end = np.zeros(3), np.zeros(3)
    for k in range(count):
        for axis in range(3):
            acts = time + k * hold + dead[axis]
            write_pose(inverse.path, acts, begin)
            write_pose(inverse.path, acts + hold, end)
            move = between(begin[0], begin[1], begin[2], end[0], end[1], end[2])
            change = 0.0
            if corrected:
                change = _correction(inverse, acts + hold, axis) - _correction(inverse, acts, axis)
            twists[k, axis] = (move[axis] + change) / hold


class FeedForward:
    """Inverse of `DrivenBase` along a trajectory, for commands held for `hold` [s].

    With V the desired body twist and e the droop under a(V), the answer must be r = V - e' and the command u = r + lag
    r', one dead time early, each axis with its own. A command held over h is the mean of u over h: that of V joins two
    desired poses, the rest is the change of lag r - e over the time it is held.

    Attributes:
        numbers: the same for compiled loops.
    """

    def __init__(self, base: DrivenBase, trajectory: Trajectory, hold: float) -> None:
        slowest = base.lag + base.memory
        felt = ceil(_FADED * slowest / _GRID)
        count = ceil((trajectory.duration + 2.0 * _BEFORE) / _GRID) + felt + 2 if slowest > 0.0 else 0
        reached = np.zeros(2, np.int64)
        self.numbers = Inverse(
            trajectory.numbers, base.constants, float(hold), felt, np.zeros((count, 3)), np.zeros((2, 3)), reached
        )

    def twist(self, time: float) -> Vector:
        """Twist (3,) to be sent at `time` since the trajectory began [s], and held."""
        twist: Vector = np.empty((1, 3))
        feed_forward(self.numbers, float(time), 1, twist)
        return twist.reshape(3)
