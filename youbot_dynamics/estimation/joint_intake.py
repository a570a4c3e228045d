"""The arm's joints picked out of joint messages by their names; whatever is wrong with a message is counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.robot import doubled

Indices = NDArray[np.int64]

# What is counted.
OTHERS = "messages of other joints"
FOREIGN = "messages without a known joint"
PARTIAL = "messages that lack a joint"
TWICE = "messages that name a joint twice"
UNSTAMPED = "messages without a stamp"
NO_EFFORT = "messages without efforts"
NAN_EFFORT = "messages with an effort that is no number"
NAN_POSITION = "messages with a position that is missing or no number"

KINDS = (OTHERS, FOREIGN, PARTIAL, TWICE, UNSTAMPED, NO_EFFORT, NAN_EFFORT, NAN_POSITION)
REFUSALS = (OTHERS, FOREIGN, PARTIAL, TWICE, UNSTAMPED)  # those of which nothing is taken

# Beyond these a number is none that a joint can have, such as memory that nobody has written to.
_FARTHEST = 1e6  # [rad]; a wheel of the youBot has gone 47 km then
_FASTEST = 1e4  # [rad/s]
_STRONGEST = 1e4  # [N m]; of motors, in their place, [V] or [degC]

_ALL_KNOWN = 50  # orders of names kept: a robot has two


@dataclass(frozen=True, eq=False)
class JointReading:
    """One message on n joints; NaN where it says nothing.

    Args:
        stamp: [s].
        position: (n,) [rad].
        velocity: (n,) [rad/s].
        effort: (n,) [N m].
    """

    stamp: float
    position: Vector
    velocity: Vector
    effort: Vector


class JointIntake:
    """Reads messages of any joints in any order.

    Args:
        joints: names of those wanted, n.
        others: names that belong to the robot as well and are no surprise: wheels, fingers.
    """

    def __init__(self, joints: Sequence[str], others: Sequence[str] = ()) -> None:
        self.joints = tuple(joints)
        self._others = frozenset(others)
        self._places: dict[tuple[str, ...], Indices | None] = {}
        self._counts = dict.fromkeys(KINDS, 0)
        self._names: dict[str, tuple[str, ...]] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """What was seen of each kind."""
        return dict(self._counts)

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Of the last message of a kind: the names of one without a known joint, the joints it lacks or has twice."""
        return dict(self._names)

    def take(
        self,
        stamp: float,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> JointReading | None:
        """Reading of a message; None where it has no stamp, lacks one of the joints, or names any joint twice.

        Args:
            stamp: [s]; 0, or what is no time, counts as none.
            names: of its joints.
            position: of each name, or fewer.
            velocity: of each name, or fewer.
            effort: of each name, or fewer.
        """
        places = self._find(tuple(names))
        if places is None:
            return None
        if not (math.isfinite(stamp) and stamp != 0.0):
            self._counts[UNSTAMPED] += 1
            return None
        reading = JointReading(
            stamp,
            _picked(position, places, _FARTHEST),
            _picked(velocity, places, _FASTEST),
            _picked(effort, places, _STRONGEST),
        )
        if np.isnan(reading.position).any():
            self._counts[NAN_POSITION] += 1
        if np.isnan(reading.effort).any():
            self._counts[NO_EFFORT if len(effort) <= places.min() else NAN_EFFORT] += 1
        return reading

    def _find(self, names: tuple[str, ...]) -> Indices | None:
        """Places of the joints in a message; None, and counted, where one is missing or stands twice."""
        if names not in self._places:
            if len(self._places) >= _ALL_KNOWN:
                self._places.clear()
            there = set(self.joints) <= set(names) and not doubled(names)
            self._places[names] = np.array([names.index(joint) for joint in self.joints]) if there else None
        places = self._places[names]
        if places is None:
            missing = tuple(joint for joint in self.joints if joint not in names)
            if not missing:
                self._counts[TWICE] += 1
                self._names[TWICE] = doubled(names)
            elif len(missing) < len(self.joints):
                self._counts[PARTIAL] += 1
                self._names[PARTIAL] = missing
            elif self._others.isdisjoint(names):
                self._counts[FOREIGN] += 1
                self._names[FOREIGN] = names
            else:
                self._counts[OTHERS] += 1
        return places


def _picked(values: Sequence[float], places: Indices, most: float) -> Vector:
    """Values (n,) at the places (n,), NaN where there are none or their magnitude is not `most` at most."""
    told = np.asarray(values, dtype=np.float64)
    try:
        found: Vector = told[places]
    except IndexError:
        found = np.array([told[k] if k < len(told) else np.nan for k in places])
    found[~(np.abs(found) <= most)] = np.nan
    return found
