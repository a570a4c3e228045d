"""How the cost of one call grows with its size; candidates are sizes, so a ratio is how many times a call costs more.

Goals hold the order of the growth with a margin: linear work of 8 times the size may cost 16 times as much.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bench.bench_base import PERIOD, identified
from bench.harness import Candidate, Goal, Item
from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.identification.delay import estimate_delay

JOINTS = (1, 2, 4, 8, 16, 32, 64)
SECONDS = (15, 30, 60, 120)  # of a recording
PATHS = (10, 20, 40, 80, 160, 320)  # [s] of a trajectory
STEPS = (100, 1000, 10_000, 100_000)
DELAY, RATE = 0.15, 50.0  # [s], [Hz]


def chain(count: int) -> Callable[[], object]:
    """Accelerations of a chain of rods."""
    tree = Tree.from_arrays(
        parents=range(-1, count - 1),
        joint_types=["revolute"] * count,
        axes=np.tile([0.0, 1.0, 0.0], (count, 1)),
        placements=np.tile(np.eye(4), (count, 1, 1)),
        masses=np.ones(count),
        centres_of_mass=np.tile([0.0, 0.0, 0.1], (count, 1)),
        inertias=np.tile(0.01 * np.eye(3), (count, 1, 1)),
    )
    q = np.linspace(0.1, 0.5, count)
    return partial(tree.forward_dynamics, q, np.zeros(count), np.zeros(count))


def drive(seconds: int) -> Callable[[], object]:
    """Delay of three axes from a recording of this length."""
    time = np.arange(0.0, seconds, 1.0 / RATE)
    paces = np.array([0.7, 1.1, 1.7])
    command = 0.2 * np.sin(time[:, None] * paces)
    motion = 0.2 * np.sin((time[:, None] - DELAY) * paces)
    return partial(estimate_delay, time, command, time, motion)


def path(seconds: int) -> Callable[[], object]:
    """A step of the tracker in the middle of a trajectory of this length."""
    count = round(seconds / PERIOD)
    trajectory = Program("arc", np.tile([0.1, 0.0, 0.1], (count, 1)), PERIOD).trajectory()
    tracker = TrackerSettings().for_trajectory(trajectory, 0.4, identified().base.driven(), PERIOD)
    now = 0.5 * seconds
    desired = tracker.desired_pose(now)
    return lambda: tracker.step(now + PERIOD, now - 0.008, desired)


def slide(count: int) -> Callable[[], object]:
    """The bristle of a joint over this many readings."""
    friction = LuGre(coulomb=1.0, viscous=0.1, sigma0=1e4, sigma1=0.0)
    return partial(friction.follow_positions, 0.0, 0.1 * np.sin(np.linspace(0.0, 6.0, count)))


def item(about: str, make: Callable[[int], Callable[[], object]], sizes: tuple[int, ...], most: float) -> Item:
    """One item: a candidate for each size; eight times the size at `most` times the cost, by first and last."""
    goal = Goal(str(sizes[-1]), str(sizes[0]), 1.0 / most)
    return Item(
        about=about,
        candidates={str(size): Candidate(make(size), samples=1) for size in reversed(sizes)},
        goals=(goal,),
    )


ITEMS = {
    "growth-joints": partial(item, "accelerations of a chain, by number of joints", chain, JOINTS, 64.0),
    "growth-delay": partial(item, "delay of three axes, by length of the recording [s]", drive, SECONDS, 32.0),
    "growth-path": partial(item, "a step of the tracker, by length of its trajectory [s]", path, PATHS, 2.0),
    "growth-friction": partial(item, "LuGre friction over a record, by number of readings", slide, STEPS, 2000.0),
}
