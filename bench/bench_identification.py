"""Least squares of the identification beside numpy and scipy: friction of the base from raw columns t, w1..4, M1..4.

`friction-bag` begins with the file: a million wheel states in a bag, read by the package, and by mcap-ros2-support
where that can be imported (`pip install --target DIR mcap-ros2-support`, then PYTHONPATH=DIR); else there is no ratio.

Peers do what a user would write after document 003, put right (R/4, effective mass, signs by wheel): two rows a sample
with four unknowns, accelerations by central differences, windows of rest left out. Ours sums windows instead of
samples, has rows for the turn, three unknowns more, and gives intervals and verdicts; its rows are therefore not those
of the peers, and the accuracy of each stands beside its time.
"""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares as scipy_least_squares

from bench.bag_peers import TOPIC, read_with_mcap_ros2, write_wheel_states
from bench.clean_drive import write_clean_drive
from bench.harness import AccuracyGoal, Candidate, Goal, Item, TimeGoal
from bench.ten_minutes import write_ten_minutes
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.identification.base_friction import (
    WHEEL_DEADBAND,
    FrictionModel,
    FrictionSignals,
    estimate_base_friction,
)
from youbot_dynamics.identification.base_friction._signals import recorded_wheel_signals
from youbot_dynamics.identification.least_squares import Rows, Unknown, accumulate, fit
from youbot_dynamics.messages.drive_bag import write_bag
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.scenario import drive
from youbot_dynamics.simulation.truth import load_truth
from youbot_dynamics.simulation.youbot import BaseOnly

Vector = NDArray[np.float64]

STEP = 1e-3  # [s] the EtherCAT cycle of the youBot
TRUTH = {"viscous_x": 15.0, "viscous_y": 20.0, "wheel_coulomb": 0.12, "roller_coulomb": 0.3}
SPEED_NOISE, TORQUE_NOISE = 0.05, 0.05  # [rad/s], [N m]
PROCESS, PEAK = "processor time, imports included", "peak memory [MB]"
WHOLE = "`youbot identify`, processor time"
READ_AND_FIT = """
import sys, time
from pathlib import Path
import numpy as np
from youbot_dynamics.identification.base_friction import FrictionModel, estimate_base_friction
from youbot_dynamics.identification.base_friction._signals import recorded_wheel_signals
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.robot import load_robot
robot = load_robot()
base = robot.base
model = FrictionModel(base.geometry.mecanum(), base.mass, base.yaw_inertia, base.wheel_inertia)
signals = recorded_wheel_signals(open_bag(sys.argv[1]), robot, {}, np.zeros(3))
assert all(estimate_base_friction([signals], model)[name].identified for name in ("viscous_x", "wheel_coulomb"))
# Not ru_maxrss, which begins with the peak of the process that started this one.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
print(time.process_time(), int(peak.split()[1]) / 1e3)
"""
BAG_OURS, BAG_PEER = "open_bag and one pass", "mcap-ros2-support and lstsq"
OURS, LSTSQ, SCIPY = "one pass over windows", "np.linalg.lstsq", "scipy least_squares"
CALIBRATION = "calibration: numpy sums"


def model() -> FrictionModel:
    """The youBot's base."""
    base = load_robot().base
    return FrictionModel(base.geometry.mecanum(), base.mass, base.yaw_inertia, base.wheel_inertia)


def columns(count: int, friction: FrictionModel) -> tuple[Vector, Vector, Vector]:
    """Times (n,), noisy wheel speeds (n, 4) and torques (n, 4) of a base that drives sines forward and sideways."""
    random = np.random.default_rng(1)
    time = np.arange(count) * STEP
    twist, rate = np.zeros((count, 3)), np.zeros((count, 3))
    for axis, sines in enumerate((((0.30, 0.7), (0.22, 1.9)), ((0.28, 0.9), (0.17, 2.3)))):
        for amplitude, pace in sines:
            twist[:, axis] += amplitude * np.sin(pace * time)
            rate[:, axis] += amplitude * pace * np.cos(pace * time)
    base = friction.base
    speeds = twist @ base.inverse_matrix.T
    rollers = np.repeat(np.sign(twist[:, 1:2]), 4, axis=1)
    unknown = [TRUTH["viscous_x"], TRUTH["viscous_y"], TRUTH["roller_coulomb"], TRUTH["wheel_coulomb"]]
    torques = np.empty_like(speeds)
    for first in range(0, count, 100_000):
        piece = slice(first, first + 100_000)
        still = np.zeros_like(rate[piece])
        table = friction.columns(twist[piece], (still, still), np.sign(speeds[piece]), rollers[piece])
        force = table[:, :, :4] @ unknown + friction.known_force(twist[piece], rate[piece])
        torques[piece] = force @ base.forward_matrix
    speeds += SPEED_NOISE * random.standard_normal(speeds.shape)
    torques += TORQUE_NOISE * random.standard_normal(torques.shape)
    return time, speeds, torques


def rows_of_samples(friction: FrictionModel, time: Vector, speeds: Vector, torques: Vector) -> tuple[Vector, Vector]:
    """H (2 n, 4) and b (2 n,) of document 003, put right."""
    base = friction.base
    twist = speeds @ base.forward_matrix.T
    rate = np.gradient(twist, STEP, axis=0)
    force = torques @ base.inverse_matrix - friction.known_force(twist, rate)
    signs = np.sign(speeds)
    table = np.zeros((len(time), 2, 4))
    table[:, 0, 0], table[:, 1, 1] = twist[:, 0], twist[:, 1]
    table[:, :, 2] = signs @ base.inverse_matrix[:, :2]
    table[:, 1, 3] = 4.0 * np.sqrt(2.0) * np.sign(twist[:, 1])
    rolling = np.all(np.abs(speeds) > WHEEL_DEADBAND, axis=1)
    return table[rolling].reshape(-1, 4), force[rolling, :2].ravel()


def by_numpy(friction: FrictionModel, time: Vector, speeds: Vector, torques: Vector) -> Vector:
    """xi_L, xi_T, F1, F2/r (4,) by lstsq on all rows."""
    return np.linalg.lstsq(*rows_of_samples(friction, time, speeds, torques), rcond=None)[0]


def by_scipy(friction: FrictionModel, time: Vector, speeds: Vector, torques: Vector) -> Vector:
    """The same by scipy's least_squares with its exact Jacobian."""
    table, target = rows_of_samples(friction, time, speeds, torques)
    return scipy_least_squares(lambda p: table @ p - target, np.zeros(4), jac=lambda p: table).x


def by_us(friction: FrictionModel, time: Vector, speeds: Vector, torques: Vector) -> Vector:
    """The same by one pass, with intervals and verdicts."""
    found = estimate_base_friction([FrictionSignals(time, speeds, torques)], friction)
    return np.array([found[name].value for name in TRUTH])


def calibration() -> Candidate:
    """What the machine does at the moment: sums of as many numbers as a sample has, by its memory and its arithmetic.

    Peers write gigabytes, and take half or twice as long as the system is slow or quick to hand out memory. This one
    does not. So the ratios to the peers are reported, and no goal.
    """
    count = 1_000_000
    numbers = np.ones(9 * count)
    return Candidate(lambda: (numbers @ numbers, numbers.sum()), samples=count)


def worst(values: Vector) -> float:
    """Largest relative error of the four."""
    return float(np.max(np.abs(values / list(TRUTH.values()) - 1.0)))


def from_columns(count: int, *, against_scipy: bool) -> Item:
    """Friction from raw columns."""
    friction = model()
    data = columns(count, friction)
    ways = {OURS: by_us, LSTSQ: by_numpy} | ({SCIPY: by_scipy} if against_scipy else {})
    candidates = {label: Candidate(partial(way, friction, *data), samples=count) for label, way in ways.items()}
    if against_scipy:
        candidates[CALIBRATION] = calibration()
    return Item(
        about=f"friction of the base from raw columns, {count:.0e} samples at 1 kHz",
        unit="ns",
        candidates=candidates,
        accuracy={f"{label} [1]": worst(way(friction, *data)) for label, way in ways.items()},
        repeats=5 if count > 1_000_000 else None,
    )


def linear() -> Item:
    """The cost of a sample does not depend on how many there are."""
    friction = model()
    data = columns(4_000_000, friction)
    sizes = {"1e6 samples": 1_000_000, "4e6 samples": 4_000_000, "2.5e5 samples": 250_000}
    pieces = {label: [column[:count] for column in data] for label, count in sizes.items()}
    return Item(
        about="friction from raw columns: cost of a sample by number of samples",
        unit="ns",
        candidates={
            label: Candidate(partial(by_us, friction, *pieces[label]), samples=count) for label, count in sizes.items()
        },
        goals=(Goal("1e6 samples", "4e6 samples", 0.7), Goal("4e6 samples", "1e6 samples", 0.7)),
        repeats=15,
    )


def block_sums() -> Item:
    """Rows that are at hand: the same solution as numpy's."""
    random = np.random.default_rng(2)
    count = 1_000_000
    table = random.standard_normal((count, 4))
    target = table @ [1.0, 2.0, 3.0, 4.0] + random.standard_normal(count)
    rows = Rows(np.arange(count) * STEP, table, target)
    unknowns = [Unknown(name, "1") for name in "abcd"]

    def ours() -> Vector:
        return fit(accumulate(rows), unknowns, robust=False).values

    expected = np.linalg.lstsq(table, target, rcond=None)[0]
    return Item(
        about="1e6 rows x 4 unknowns: sums over blocks of 1 s, intervals included",
        unit="ns",
        candidates={
            "block sums and fit": Candidate(ours, samples=count),
            "np.linalg.lstsq": Candidate(lambda: np.linalg.lstsq(table, target, rcond=None), samples=count),
            "np.linalg.pinv": Candidate(lambda: np.linalg.pinv(table) @ target, samples=count),
        },
        accuracy={"block sums and fit, off lstsq [1]": float(np.max(np.abs(ours() - expected)))},
        goals=(AccuracyGoal("block sums and fit, off lstsq [1]", 1e-9),),
        repeats=9,
    )


def plain() -> Item:
    """Without numba."""
    item = from_columns(1_000_000, against_scipy=False)
    return Item(item.about, item.candidates, item.unit, item.accuracy, (Goal(OURS, LSTSQ, 5.0),), 9)


def from_bag(count: int) -> Item:
    """Friction from a bag."""
    friction, robot = model(), load_robot()
    folder = tempfile.TemporaryDirectory(prefix="youbot_bench_")
    file = write_wheel_states(Path(folder.name) / "bag", *columns(count, friction), robot)
    chosen, delays = {"wheel_states": TOPIC}, np.zeros(3)

    def ours(kept: tempfile.TemporaryDirectory[str] = folder) -> Vector:
        found = estimate_base_friction([recorded_wheel_signals(open_bag(file), robot, chosen, delays)], friction)
        return np.array([found[name].value for name in TRUTH])

    def peer() -> Vector:
        return by_numpy(friction, *read_with_mcap_ros2(file, robot))

    ways = {BAG_OURS: ours}
    there = importlib.util.find_spec("mcap_ros2") is not None
    if there:
        ways[BAG_PEER] = peer
    return Item(
        about=f"friction of the base from an mcap file of {count:.0e} wheel states, reading included",
        unit="us",
        candidates={label: Candidate(way, samples=count) for label, way in ways.items()},
        accuracy={f"{label} [1]": worst(way()) for label, way in ways.items()},
        goals=[Goal(BAG_OURS, BAG_PEER, 3.0)] if there else [],
        repeats=3,
        note="" if there else "no ratio: mcap-ros2-support is not installed; see the head of bench_identification.py",
    )


def identify_whole(write: Callable[[Path], object], about: str, at_most: float) -> Item:
    """What a user waits for: processor time of `youbot identify` with all stages, for the bag that `write` makes."""
    folder = tempfile.TemporaryDirectory(prefix="youbot_bench_")
    bag, out = Path(folder.name) / "bag", Path(folder.name) / "out"
    write(bag)

    def identify(kept: tempfile.TemporaryDirectory[str] = folder) -> float:
        arguments = ["identify", str(bag), "--out", str(out), "--overwrite"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "youbot_dynamics.commands.main", *arguments], capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not (out / "result.json").exists():
            raise RuntimeError(f"`youbot identify` wrote no result for {bag}")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    identify()  # compiles
    goals = (TimeGoal(WHOLE, at_most, says="imports and report included"),)
    return Item(about=about, unit="s", candidates={WHOLE: Candidate(identify, timed=True)}, goals=goals, repeats=3)


def write_drive(folder: Path) -> None:
    """A drive of 20 s as those of the demo, on its digital twin."""
    robot = load_robot()
    trajectory = read_program(program_path("combined"), 0.02).trajectory()
    write_bag(drive(trajectory, robot, BaseOnly(load_truth(0), robot.driver, 0), 0), robot, folder)


def ten_minutes() -> Item:
    """What a user waits for: processor time and memory of a process that reads a bag and fits friction."""
    folder = tempfile.TemporaryDirectory(prefix="youbot_bench_")
    bag = write_ten_minutes(Path(folder.name) / "bag")
    peaks: list[float] = []

    def read_and_fit(kept: tempfile.TemporaryDirectory[str] = folder) -> float:
        command = [sys.executable, "-c", READ_AND_FIT, str(bag)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seconds, megabytes = map(float, done.stdout.split())
        peaks.append(megabytes)
        return seconds

    read_and_fit()  # compiles
    peaks.clear()
    read_and_fit()
    return Item(
        about="a bag of ten minutes and 1e6 messages (600,000 of wheels, 160,000 of the arm, 120,000 each of odometry "
        "and motion capture; no commands): read, friction of the base fitted, in a process of its own",
        unit="s",
        candidates={PROCESS: Candidate(read_and_fit, timed=True)},
        accuracy={PEAK: peaks[0]},
        goals=(TimeGoal(PROCESS, 6.0, says="imports included"), AccuracyGoal(PEAK, 300.0)),
        repeats=3,
    )


ITEMS: dict[str, Callable[[], Item]] = {
    "friction-columns-1e7": partial(from_columns, 10_000_000, against_scipy=True),
    "friction-columns-1e6": partial(from_columns, 1_000_000, against_scipy=True),
    "friction-columns-linear": linear,
    "bag-of-ten-minutes": ten_minutes,
    "identify-clean-minute": partial(
        identify_whole,
        write_clean_drive,
        "a minute at 50 Hz without noise, as of a simulator: all stages, with the report",
        10.0,
    ),
    "identify-drive-of-demo": partial(
        identify_whole, write_drive, "a drive of 20 s of the demo: all stages, with the report", 4.0
    ),
    "friction-bag-1e5": partial(from_bag, 100_000),
    "friction-bag-1e6": partial(from_bag, 1_000_000),
    "least-squares-rows": block_sums,
}
ITEMS_WITHOUT_NUMBA: dict[str, Callable[[], Item]] = {"friction-columns-plain": plain}
