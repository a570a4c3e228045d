"""What a fleet of recordings costs: for each recording, each sample, each worker. Delay and friction of the base.

    python -m bench.bench_fleet                          # measure, print the table of docs/scaling.md
    python -m bench.bench_fleet --write docs/scaling.md  # and put it there

`python -m bench fleet` measures on the one pinned core that cost is linear in the number of samples. Several processes
need several cores, so the table is measured outside of that.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.bag_peers import write_wheel_states
from bench.bench_identification import TRUTH, model
from bench.harness import Candidate, Goal, Item
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.pipeline._extraction import Extracted, HereWorker, Task, Worker
from youbot_dynamics.identification.pipeline._fleet import DaskWorker, _processes
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.robot import load_robot

Vector = NDArray[np.float64]

RATE = 50.0  # [Hz] of the youBot's driver
DELAY = 0.15  # [s]
STAGES = ("delay", "base_friction")
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
ROBOTS, HOURS = 10_000, 1.0  # a day, for each robot [h]


def write_drive(folder: Path, duration: float, seed: int) -> Path:
    """A drive of sums of sines forward, sideways and turning, late by 0.15 s, at 50 Hz."""
    robot, friction = load_robot(), model()
    random = np.random.default_rng(seed)
    stamps = np.arange(0.0, duration, 1.0 / RATE) + 5e-4 * random.standard_normal(round(duration * RATE))
    sines = 0.15 * random.uniform(0.7, 1.3, (3, 2)), random.uniform(0.5, 2.5, (3, 2))

    def twist(at: Vector) -> tuple[Vector, Vector]:
        phase = at[:, None, None] * sines[1]
        return np.sum(sines[0] * np.sin(phase), axis=2), np.sum(sines[0] * sines[1] * np.cos(phase), axis=2)

    motion, rate = twist(stamps - DELAY)
    speeds = motion @ friction.base.inverse_matrix.T
    sideways = np.sign(motion[:, 1:2] + motion[:, 2:3] * friction.base.positions[:, 0])
    still = np.zeros_like(rate)
    table = friction.columns(motion, (still, still), np.sign(speeds), sideways)[:, :, :4]
    unknown = [TRUTH[name] for name in ("viscous_x", "viscous_y", "roller_coulomb", "wheel_coulomb")]
    torques = (table @ unknown + friction.known_force(motion, rate)) @ friction.base.forward_matrix
    torques += 0.05 * random.standard_normal(torques.shape)
    commands = twist(stamps)[0] @ friction.base.inverse_matrix.T @ robot.driver.mecanum().forward_matrix.T
    write_wheel_states(folder, stamps, speeds, torques, robot, commands)
    return folder


def tasks_of(bags: list[Path]) -> list[Task]:
    """What an identification asks of these recordings."""
    robot = load_robot()
    return [Task(bag, k, STAGES, robot, Options()) for k, bag in enumerate(bags)]


def work(worker: Worker, bags: list[Path]) -> list[Extracted]:
    """Extract all; every recording must come out whole."""
    found = worker(tasks_of(bags), lambda name: None)
    assert all(set(one.parts) == set(STAGES) for one in found)
    return found


def linear() -> Item:
    """Cost of a sample by length of the recording."""
    folder = tempfile.TemporaryDirectory(prefix="youbot_bench_")
    sizes = {
        f"{seconds} s": write_drive(Path(folder.name) / f"drive_{seconds}", float(seconds), 1)
        for seconds in (300, 1200)
    }

    def call(bag: Path, kept: tempfile.TemporaryDirectory[str] = folder) -> list[Extracted]:
        return work(HereWorker(kept=0), [bag])

    return Item(
        about="delay and friction of the base out of one recording of 50 Hz: cost of a sample by its length",
        unit="us",
        candidates={
            label: Candidate(partial(call, bag), samples=int(label.split()[0]) * int(RATE))
            for label, bag in sizes.items()
        },
        goals=(Goal("300 s", "1200 s", 0.5), Goal("1200 s", "300 s", 0.5)),
        repeats=5,
    )


ITEMS: dict[str, Callable[[], Item]] = {"fleet-linear": linear}


def timed(worker: Worker, bags: list[Path], used: Callable[[], float]) -> tuple[float, float]:
    """Shortest time [s] and least processor time [s] of two runs; `used` is the processor time so far."""
    wall, processor = float("inf"), float("inf")
    for _ in range(2):
        began, before = time.perf_counter(), used()
        work(worker, bags)
        wall, processor = min(wall, time.perf_counter() - began), min(processor, used() - before)
    return wall, processor


def measured(count: int, lengths: tuple[float, ...] = (60.0, 300.0)) -> str:
    """The table as Markdown, with what 10,000 robots a day take by it."""
    rows, processor = [], {}
    with tempfile.TemporaryDirectory(prefix="youbot_bench_") as folder:
        bags = {
            length: [write_drive(Path(folder) / f"drive_{length:g}_{k}", length, k) for k in range(count)]
            for length in lengths
        }
        work(HereWorker(kept=0), bags[lengths[0]][:1])  # machine code
        for length, of_length in bags.items():
            wall, processor[length] = timed(HereWorker(kept=0), of_length, time.process_time)
            rows.append(row("this process", count, length, wall, processor[length]))
        found = HereWorker(kept=0)(tasks_of(bags[lengths[-1]][:1]), lambda name: None)[0]
        kept = ", ".join(f"{name} {len(pickle.dumps(found.parts[name])) / 1e3:.0f} kB" for name in STAGES)
        for workers in (1, 2, 4, 8):
            if workers > len(os.sched_getaffinity(0)):
                break
            with _processes(workers) as client:
                worker = DaskWorker(client, "bench")
                work(worker, bags[lengths[0]])  # imports, machine code
                for length, of_length in bags.items():
                    figures = timed(worker, of_length, lambda: sum(client.run(time.process_time).values()))
                    rows.append(row(f"{workers} process{'es' if workers > 1 else ''}", count, length, *figures))
    a_robot = processor[lengths[-1]] / (count * lengths[-1]) * HOURS * 3600.0
    head = "| who reads | recordings | each [s] | all [s] | a recording [s] | its processor time [s] | a sample [us] |"
    samples, hours, cores = ROBOTS * HOURS * 3600.0 * RATE, ROBOTS * a_robot / 3600.0, ROBOTS * a_robot / 86400.0
    return "\n".join(
        [
            head,
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            f"Kept of a recording of {lengths[-1]:g} s: {kept}.",
            "",
            f"{ROBOTS:,} robots that drive {HOURS:g} h a day each: {samples:.2g} samples, {a_robot:.1f} s of processor "
            f"time a robot, {hours:.0f} core hours, {cores:.1f} cores all day long.",
        ]
    )


def row(name: str, count: int, length: float, wall: float, processor: float) -> str:
    """One line of the table."""
    sample = processor / (count * length * RATE) * 1e6
    figures = (f"{wall:.2f}", f"{wall / count:.3f}", f"{processor / count:.3f}", f"{sample:.1f}")
    return f"| {name} | {count} | {length:g} | {' | '.join(figures)} |"


def main() -> None:
    """Measure, print, and write where asked."""
    parser = argparse.ArgumentParser(description="cost of a fleet of recordings")
    parser.add_argument("--write", type=Path, help="Markdown file with the marks around the table")
    parser.add_argument("--count", type=int, default=8, help="recordings of each length (default: 8)")
    given = parser.parse_args()
    table = measured(given.count)
    print(table)
    if given.write:
        text = given.write.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        write_atomically(given.write, f"{before}{BEGIN}\n\n{table}\n\n{END}{after}")


if __name__ == "__main__":
    main()
