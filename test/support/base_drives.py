"""Drives of the twin's base for the tests of its physics."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant, SlipEvent
from youbot_dynamics.simulation.truth import BaseTruth

DRIVER = load_robot().driver


def draw_slips(
    seed: int, start: float, end: float, per_minute: float = 2.0, longest: float = 1.0, largest_share: float = 0.3
) -> tuple[SlipEvent, ...]:
    """Slip events from start to end [s] at random times (Poisson), of random wheels, lengths [s] and shares."""
    mean_gap = 60.0 / per_minute
    random = np.random.default_rng([seed, 7])
    events, time = [], start + random.exponential(mean_gap)
    while time < end:
        share, length = largest_share * random.random(), longest * random.random()
        events.append(SlipEvent(int(random.integers(4)), share, time, time + length))
        time += random.exponential(mean_gap)
    return tuple(events)


def busy_twist(time: float) -> np.ndarray:
    """A command that changes direction about once a second, all axes at once, with jumps."""
    jumps = np.random.default_rng(int(time / 0.8)).uniform(-1.0, 1.0, 3) * [0.5, 0.5, 1.5]
    return jumps + [0.1 * np.sin(time), 0.1 * np.cos(2.0 * time), 0.3 * np.sin(3.0 * time)]


def busy_steps(truth: BaseTruth, seed: int, seconds: float, slips: tuple[SlipEvent, ...] = ()) -> Iterator[BasePlant]:
    """One robot that is driven so, after each period of the driver."""
    plant = BasePlant(truth, DRIVER, seed, slips=slips)
    for k in range(round(seconds / 0.02)):
        plant.command_twist(busy_twist(k * 0.02))
        plant.advance((k + 1) * 0.02)
        yield plant


def drive_busily(truth: BaseTruth, seed: int, seconds: float, slips: tuple[SlipEvent, ...] = ()) -> BasePlant:
    *_, plant = busy_steps(truth, seed, seconds, slips)
    return plant


def cruise(truth: BaseTruth, twist: tuple, seconds: float = 2.0, slips: tuple[SlipEvent, ...] = ()) -> BasePlant:
    """Drive on with one command from the start."""
    plant = BasePlant(truth, DRIVER, 1, slips=slips)
    plant.command_twist(twist)
    plant.advance(seconds)
    return plant
