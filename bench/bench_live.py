"""What the nodes take while they drive at 50 Hz, beside bare rclpy nodes with the same topics on the same executor.

One drive measures all processes at once; a drive of ours and one of the bare nodes take turns. A figure of 10 ms a
second is 1 % of a core.
"""

from __future__ import annotations

import functools
import itertools
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from bench.harness import AccuracyGoal, Candidate, Goal, Item, TimeGoal
from bench.live_stack import DRIVING, NODES, Figures, drive

DRIVES = 3
OURS, BARE = "ours", "bare nodes"
SHARES = {"recorder": 0.07, "arm_ekf": 0.06, "check_driver": 0.02, "identification": 0.02}  # of a core, at most
TOGETHER, MEMORY, DEAREST = 0.15, 250.0, 1.5  # of a core; [MB]; times the bare nodes

Column = Callable[[Figures], float]


@functools.cache
def drives(busy: bool) -> tuple[list[Figures], list[Figures]]:
    """Drives of ours and of the bare nodes, in turns."""
    pairs = [(drive(False, busy), drive(True, busy)) for _ in range(1 if busy else DRIVES)]
    return [ours for ours, _ in pairs], [bare for _, bare in pairs]


def share(nodes: Sequence[str], figures: Figures) -> float:
    """Share of a core that these processes take together."""
    return sum(figures.cpu[node] for node in nodes)


def processor(about: str, nodes: Sequence[str], most: float) -> Item:
    """Processor time of some processes [s] in a second of driving."""
    ours, bare = (itertools.cycle([share(nodes, figures) for figures in side]) for side in drives(False))
    return Item(
        about=about,
        unit="ms",
        candidates={OURS: Candidate(partial(next, ours), timed=True), BARE: Candidate(partial(next, bare), timed=True)},
        goals=(TimeGoal(OURS, most, says=f"{100.0 * most:g} % of a core"), Goal(OURS, BARE, round(1.0 / DEAREST, 3))),
        repeats=DRIVES,
        note="a second of driving; ratios are bare over ours",
    )


def memory() -> Item:
    """Resident memory of the driving processes, from the drives."""
    ours, bare = drives(False)
    label = f"{' + '.join(DRIVING)}: resident [MB]"
    each = {f"{node}: resident [MB]": ours[0].memory[node] for node in NODES}
    once = f"{' + '.join(DRIVING)}: with pages of files once [MB]"
    accuracy = {label: together(ours), f"bare, {label}": together(bare), once: counted_once(ours)} | each
    seconds = iter(itertools.repeat(share(DRIVING, ours[0])))
    candidates = {OURS: Candidate(partial(next, seconds), timed=True)}
    goals = (AccuracyGoal(label, MEMORY),)
    return Item("memory of the driving processes", candidates, "ms", accuracy, goals, repeats=1)


def together(side: Sequence[Figures]) -> float:
    """Resident memory of the driving processes [MB], median over the drives."""
    return statistics.median(sum(figures.memory[node] for node in DRIVING) for figures in side)


def counted_once(side: Sequence[Figures]) -> float:
    """Memory that the driving processes occupy together [MB], median over the drives.

    Pages of libraries are in memory once, however many processes use them: those of the process with most are counted.
    """
    return statistics.median(
        sum(figures.private[node] for node in DRIVING)
        + max(figures.memory[node] - figures.private[node] for node in DRIVING)
        for figures in side
    )


def times(busy: bool) -> Item:
    """Periods of driver/cmd_vel and latencies from the wheels to it."""
    ours, bare = drives(busy)
    accuracy = {}
    for label, side in ((OURS, ours), (BARE, bare)):
        for what, column in (("period", "periods"), ("wheels to command", "latencies")):
            values = 1e3 * np.concatenate([getattr(figures, column) for figures in side])
            for name, percent in (("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)):
                accuracy[f"{label}: {what} {name} [ms]"] = float(np.percentile(values, percent))
    seconds: Iterator[float] = itertools.cycle([share(DRIVING, figures) for figures in ours])
    state = f"{os.cpu_count()} cores busy with niced programs" if busy else "nothing else of ours runs"
    return Item(
        f"driver/cmd_vel at 50 Hz, {state}",
        {OURS: Candidate(partial(next, seconds), timed=True)},
        "ms",
        accuracy,
        repeats=1,
        note="the sums of processor time stand in live-driving; times of the machine as it is",
    )


ITEMS = {
    "live-driving": partial(
        processor, "base_controller + odometry + trajectory_tracker + stop_base", DRIVING, TOGETHER
    ),
    **{f"live-{node.replace('_', '-')}": partial(processor, node, (node,), most) for node, most in SHARES.items()},
    "live-memory": memory,
    "live-times": partial(times, False),
    "live-times-busy": partial(times, True),
}
