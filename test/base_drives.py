"""Drives of the twin's base for the tests of its physics."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base_plant import BasePlant
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.slip import SlipEvent

DRIVER = load_robot().driver


def busy_twist(time: float) -> np.ndarray:
    """A command that changes direction about once a second, all axes at once, with jumps."""
    jumps = np.random.default_rng(int(time / 0.8)).uniform(-1.0, 1.0, 3) * [0.5, 0.5, 1.5]
    return jumps + [0.1 * np.sin(time), 0.1 * np.cos(2.0 * time), 0.3 * np.sin(3.0 * time)]


def drive_busily(truth: BaseTruth, seed: int, seconds: float, slips: tuple[SlipEvent, ...] = ()) -> BasePlant:
    plant = BasePlant(truth, DRIVER, seed, slips=slips)
    for k in range(round(seconds / 0.02)):
        plant.command_twist(busy_twist(k * 0.02))
        plant.advance((k + 1) * 0.02)
    return plant


def cruise(truth: BaseTruth, twist: tuple, seconds: float = 2.0, slips: tuple[SlipEvent, ...] = ()) -> BasePlant:
    """Drive on with one command from the start."""
    plant = BasePlant(truth, DRIVER, 1, slips=slips)
    plant.command_twist(twist)
    plant.advance(seconds)
    return plant
