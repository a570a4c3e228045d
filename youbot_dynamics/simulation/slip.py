"""Slip events: a wheel whose contact loses grip for a while."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector, number
from youbot_dynamics.errors import InputError

WHEELS = 4


@dataclass(frozen=True)
class SlipEvent:
    """One wheel creeps over the floor, in proportion to the torque it passes on (linear creep).

    While it carries its part of the base's load at steady speed, `share` of its turn moves nobody: it turns
    1 / (1 - share) times as far as it rolls. Wheels with grip relieve it, then it slips by less; speeding up by more;
    braked it turns less than it rolls; without torque it rolls. The motors know their wheels only: they keep these to
    the command, and the base comes short of it.

    Args:
        wheel: 0 to 3: FL, FR, RL, RR.
        share: 0 to 0.95.
        start: simulated time [s].
        end: simulated time, not before start [s].

    Raises:
        InputError: no wheel of this robot, or numbers out of range.
    """

    wheel: int
    share: float
    start: float
    end: float

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.wheel not in range(WHEELS):
            raise InputError("wheel of a slip event", got=str(self.wheel), expected=f"0 to {WHEELS - 1}")
        if not 0.0 <= self.share <= 0.95:
            raise InputError("share of a slip event", got=f"{self.share:g}", expected="0 to 0.95")
        if not self.start <= self.end:
            raise InputError("end of a slip event", got=f"{self.end:g} s", expected=f"not before {self.start:g} s")


def lost_shares(events: Iterable[SlipEvent], start: float, dt: float, steps: int) -> Vector:
    """Mean share (steps, 4) lost by each wheel over each of `steps` intervals of `dt` [s] from `start` [s] on.

    Of events at one time the largest counts.
    """
    shares = np.zeros((steps, WHEELS))
    for event in events:
        if event.start < start + steps * dt and event.end > start:
            edges = start + dt * np.arange(steps + 1)
            inside = np.minimum(edges[1:], event.end) - np.maximum(edges[:-1], event.start)
            lost = event.share * np.maximum(inside, 0.0) / dt
            shares[:, event.wheel] = np.maximum(shares[:, event.wheel], lost)
    return shares


def draw_slips(
    seed: int, start: float, end: float, per_minute: float = 2.0, longest: float = 1.0, largest_share: float = 0.3
) -> tuple[SlipEvent, ...]:
    """Slip events at random times (Poisson) of random wheels, lengths and shares, all even, reproducibly.

    Args:
        seed: equal seeds give equal events.
        start: simulated time from which events begin [s].
        end: simulated time before which they begin [s].
        per_minute: mean number of events.
        longest: event [s].
        largest_share: of an event.

    Raises:
        InputError: numbers out of range.
    """
    mean_gap = 60.0 / float(number("per_minute", per_minute, above=0.0))
    random = np.random.default_rng([seed, 7])
    events, time = [], start + random.exponential(mean_gap)
    while time < end:
        share, length = largest_share * random.random(), longest * random.random()
        events.append(SlipEvent(int(random.integers(WHEELS)), share, time, time + length))
        time += random.exponential(mean_gap)
    return tuple(events)
