"""Soak: a whole bringup drives programs in a loop beside its driver, is recorded, and is measured from outside.

Exit code 1 where a process grows by 100 kB/min or more after warm-up, a period of driver/cmd_vel or odom is longer
than 60 ms, a trajectory is given up, or something ends by itself. With two or more busy loops beside it (--load), a
period may be 300 ms long, and 1 trajectory of 25 may be given up. A machine that stands still holds up everything: a
process on each core that only sleeps measures that, and its delays are subtracted from the periods they fall into.
What measures runs before everything else, for which it must be root; else its own delays count.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("YOUBOT_PRIORITY", "10")  # tests have none, but this measures what a user gets
sys.path[:0] = [str(ROOT), str(ROOT / "test"), str(ROOT / "test" / "support")]

import conftest  # noqa: E402, F401  (this machine alone, and a domain that no test has)
import numpy as np  # noqa: E402
import rclpy  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from ros_processes import Observer, compile_nodes, environment  # noqa: E402

from bench.process_samples import Usage, children, periods  # noqa: E402
from youbot_dynamics.nodes.processes import node_command, start, stop, stop_all  # noqa: E402
from youbot_dynamics.resources import config_path  # noqa: E402

PROGRAMS = ("translation", "rotation", "combined")
GROWTH = 100.0  # [kB/min] a process may grow by, less than that
PERIOD, PERIOD_UNDER_LOAD = 60.0, 300.0  # [ms] longest period
GIVEN_UP_UNDER_LOAD = 1.0 / 25.0  # of the drives, at most
_FIRST = 50  # real-time priority of what measures
WARM_UP = 120.0  # [s] at most a third of the whole
_READY = 300.0  # [s] for the first start, which compiles
_WATCHED = {"driver/cmd_vel": Twist, "odom": Odometry}
_SLEEPER = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
if os.geteuid() == 0:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(sys.argv[2])))
last = time.monotonic()
while True:
    time.sleep(0.005)
    now = time.monotonic()
    if now - last > 0.015:
        print(last, now - 0.005, flush=True)
    last = now
"""


class Soak:
    """A driver, a bringup with all nodes and a recorder, and the times at which commands and odometry come.

    Args:
        plant: twin or mujoco.
        folder: of logs and of the bags.
        load: number of busy loops beside it.
        records: whether each drive is recorded, too, by a `youbot record` of its own.
    """

    def __init__(self, plant: str, folder: Path, load: int, records: bool) -> None:
        self.folder, self.load, self._records = folder, load, records
        self.environment = environment()
        files = [word for name in ("youbot.yaml", "mock.yaml") for word in ("--params-file", str(config_path(name)))]
        driver = node_command("mock_youbot", ["--ros-args", *files, "-p", f"plant:={plant}"])
        words = ["bringup", "--robot", "real", "--identification", "true", "--description", "false"]
        bringup = [sys.executable, "-m", "youbot_dynamics.commands.main", *words, "--record", str(folder / "bag")]
        compile_nodes()
        self.driver, self.bringup = self._start("driver", driver), self._start("bringup", bringup)
        self.times: dict[str, list[float]] = {topic: [] for topic in _WATCHED}
        self.observer = Observer("soak")
        for topic, kind in _WATCHED.items():
            self.observer.node.create_subscription(kind, topic, self._keep(topic), 10, raw=True)
        self.sleepers = [
            self._start(f"sleeper_{core}", [sys.executable, "-c", _SLEEPER, str(core), str(_FIRST + 1)])
            for core in os.sched_getaffinity(0)
        ]
        self._loops: list[subprocess.Popen[bytes]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()
        if os.geteuid() == 0:
            for thread in os.listdir("/proc/self/task"):  # not what is started from here on
                policy, rank = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_FIRST)
                os.sched_setscheduler(int(thread), policy, rank)
        self.drives, self.failed, self.ended = 0, 0, math.inf

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            return start(command, self.environment, log.fileno())

    def _keep(self, topic: str):
        times = self.times[topic]
        return lambda data: times.append(time.monotonic())

    def _spin(self) -> None:
        while not self._over.is_set():
            self.observer.executor.spin_once(timeout_sec=0.1)

    def log(self) -> str:
        """What the bringup has said so far."""
        return (self.folder / "bringup.log").read_text(encoding="utf-8", errors="replace")

    def standstills(self) -> np.ndarray:
        """Spans (n, 2) of the monotonic clock [s] in which a sleeper of each core was late: the machine stood still."""
        late = []
        for path in sorted(self.folder.glob("sleeper_*.log")):
            spans = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
            late.append([(float(begin), float(end)) for begin, end in spans])
        common = late[0]
        for other in late[1:]:
            pairs = ((max(a, c), min(b, d)) for a, b in common for c, d in other if c < b and a < d)
            common = [(begin, end) for begin, end in pairs if end > begin]
        return np.array(common).reshape(-1, 2)

    def wait_until_ready(self) -> None:
        """Wait for odometry and the recorder."""
        end = time.monotonic() + _READY
        while not (self.times["odom"] and "recording /odom" in self.log()):
            self.check()
            if time.monotonic() > end:
                raise TimeoutError(f"no odom within {_READY:g} s: see {self.folder}")
            time.sleep(0.2)
        time.sleep(3.0)  # DDS connects the rest

    def check(self) -> None:
        """Raise where the driver or the bringup has ended.

        Raises:
            ChildProcessError: which of them.
        """
        for name, child in (("driver", self.driver), ("bringup", self.bringup)):
            if child.poll() is not None:
                raise ChildProcessError(f"the {name} ended with exit code {child.returncode}: see {self.folder}")

    def run(self, seconds: float, drives: int) -> list[tuple[str, Usage]]:
        """Drive in a loop for so long, and until so many drives are done; samples of each process."""
        usage = {"driver": Usage(self.driver.pid)}
        usage |= {name: Usage(pid) for name, pid in sorted(children(self.bringup.pid).items())}
        for k in range(self.load):
            self._loops.append(self._start(f"loop_{k}", [sys.executable, "-c", "while True: pass"]))
        recorder: list[subprocess.Popen[bytes]] = []
        end, player, k = time.monotonic() + seconds, None, 0
        while time.monotonic() < end or self.drives < drives:
            self.check()
            now = time.monotonic()
            ended = [name for name, sampled in usage.items() if not sampled.sample(now)]
            if ended:
                raise ChildProcessError(f"{', '.join(ended)} ended: see {self.folder}")
            if player is not None and player.poll() is not None:
                self.drives, self.failed = self.drives + 1, self.failed + (player.returncode != 0)
                player = None
                stop_all(recorder)
            if player is None:
                player = self._youbot(f"play_{k}", "play", PROGRAMS[k % len(PROGRAMS)])
                if self._records:
                    recorder = [self._youbot(f"record_{k}", "record", "--out", str(self.folder / f"drive_{k}"))]
                k += 1
            time.sleep(1.0)
        # What this process does from here on, importing and printing, holds up its own reading of the topics.
        self.ended = time.monotonic()
        if player is not None:
            stop(player)
        stop_all([*recorder, *self._loops])
        return list(usage.items())

    def _youbot(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        return self._start(name, [sys.executable, "-m", "youbot_dynamics.commands.main", *words])

    def close(self) -> None:
        """End everything; the driver last."""
        self._over.set()
        self._thread.join()
        self.observer.__exit__()
        for child in (*self._loops, self.bringup, self.driver, *self.sleepers):
            stop_all([child])


def report(soak: Soak, usage: list[tuple[str, Usage]], begin: float) -> list[str]:
    """Print what was measured since `begin` [s]; what was not as promised."""
    console, complaints = Console(width=100), []
    table = Table("process", "% of a core", "resident, MB", "growth, kB/min")
    for name, sampled in usage:
        growth = sampled.growth(begin)
        table.add_row(name, f"{100 * sampled.cores(begin):.1f}", f"{sampled.resident[-1] / 1024:.0f}", f"{growth:.0f}")
        if not growth < GROWTH:
            complaints.append(f"{name} grows by {growth:.0f} kB/min")
    console.print(table)
    still, busy = soak.standstills(), soak.load > 1
    longest_period = PERIOD_UNDER_LOAD if busy else PERIOD
    table = Table("topic, period in ms", "messages", "p50", "p99", "p99.9", "worst", "without standstills")
    for topic, times in soak.times.items():
        later = np.array([moment for moment in times if begin <= moment <= soak.ended])
        figures = periods(later)
        overlaps = np.minimum(later[1:, None], still[:, 1]) - np.maximum(later[:-1, None], still[:, 0])
        own = 1e3 * float((np.diff(later) - np.maximum(overlaps, 0.0).sum(axis=1)).max())
        table.add_row(topic, str(len(later)), *(f"{value:.1f}" for value in figures.values()), f"{own:.1f}")
        if not own <= longest_period:
            complaints.append(f"{topic}: a period of {own:.0f} ms, not counting standstills of the machine")
    console.print(table)
    late = still[still[:, 0] >= begin]
    longest = 1e3 * float((late[:, 1] - late[:, 0]).max(initial=0.0))
    console.print(f"the machine stood still {len(late)} times, for {longest:.0f} ms at most")
    given_up = re.findall(r"trajectory given up: .*", soak.log())
    # The last drive may be cut short by the end of the soak.
    given_up = [line for line in given_up if "cancel" not in line and "empty" not in line]
    console.print(f"load: {soak.load} busy loops; /proc/loadavg {' '.join(map(str, os.getloadavg()))}")
    console.print(f"{soak.drives} drives, {len(given_up)} given up, {soak.failed} players that failed")
    allowed = GIVEN_UP_UNDER_LOAD * soak.drives if busy else 0.0
    complaints += (given_up if len(given_up) > allowed else []) + (
        [f"{soak.failed} players failed"] if soak.failed > allowed else []
    )
    return complaints + ([] if soak.drives else ["no drive was finished"])


def main() -> None:
    """Soak, print tables, and exit by what was measured."""
    parser = argparse.ArgumentParser(prog="soak.sh", description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to drive [s] (default: 600)")
    parser.add_argument("--drives", type=int, default=0, help="go on until so many drives are done (default: 0)")
    parser.add_argument("--plant", choices=("twin", "mujoco"), default="twin", help="what moves (default: twin)")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="busy loops beside it (default: 0)")
    parser.add_argument("--record", action="store_true", help="record each drive, too, by a `youbot record` of its own")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder for logs and bag (default: a temporary one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        soak = Soak(given.plant, folder, given.load, given.record)
        try:
            soak.wait_until_ready()
            # What collects here would be measured as a gap there.
            gc.collect()
            gc.freeze()
            gc.disable()
            begin = time.monotonic() + min(WARM_UP, given.seconds / 3.0)
            usage = soak.run(given.seconds, given.drives)
            complaints = report(soak, usage, begin)
        except (ChildProcessError, TimeoutError) as problem:
            print(soak.log()[-3000:], file=sys.stderr)
            sys.exit(f"error: {problem}")
        finally:
            soak.close()
            rclpy.try_shutdown()
    for line in complaints:
        print(f"NOT AS PROMISED: {line}")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
