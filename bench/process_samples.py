"""What running processes take, from /proc: processor time, memory and how it grows; periods of what they publish."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

_TICK = os.sysconf("SC_CLK_TCK")
_NODES = "youbot_dynamics.nodes."


def children(parent: int) -> dict[str, int]:
    """Node processes of a bringup, by executable: its direct children that run a node of this package."""
    processes = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().decode(errors="replace").split("\0")
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        names = [word.removeprefix(_NODES) for word in words if word.startswith(_NODES)]
        if names and int(fields[1]) == parent and fields[0] != "Z":
            processes[names[0]] = int(place.name)
    return processes


@dataclass
class Usage:
    """Samples of one process.

    Args:
        pid: the process.
    """

    pid: int
    times: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)
    private: list[float] = field(default_factory=list)

    def sample(self, now: float) -> bool:
        """Take a sample at `now` [s]; False where the process has ended."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return False
        sizes = {line.split(":")[0]: float(line.split()[1]) for line in status.splitlines() if line.startswith("Rss")}
        if not sizes:
            return False
        self.times.append(now)
        self.processor.append((int(stat[11]) + int(stat[12])) / _TICK)
        self.resident.append(sum(sizes.values()))
        self.private.append(sizes["RssAnon"])
        return True

    def since(self, begin: float) -> np.ndarray:
        """Which samples are younger than `begin` [s], as a mask."""
        return np.array(self.times) >= begin

    def cores(self, begin: float) -> float:
        """Processor time over time since `begin` [s]: 1.0 is a whole core."""
        later = self.since(begin)
        if np.count_nonzero(later) < 2:
            return float("nan")
        times, used = np.array(self.times)[later], np.array(self.processor)[later]
        return float((used[-1] - used[0]) / (times[-1] - times[0]))

    def growth(self, begin: float) -> float:
        """Growth of the private memory since `begin` [s] [kB/min], by least squares."""
        later = self.since(begin)
        if np.count_nonzero(later) < 3:
            return float("nan")
        return float(np.polyfit(np.array(self.times)[later] / 60.0, np.array(self.private)[later], 1)[0])


def periods(times: Sequence[float]) -> dict[str, float]:
    """Periods between moments [s]: p50, p99, p99.9 and worst [ms]; NaN where there are too few."""
    steps = 1e3 * np.diff(np.asarray(times, dtype=float))
    if len(steps) == 0:
        return dict.fromkeys(("p50", "p99", "p99.9", "worst"), float("nan"))
    values = np.percentile(steps, (50.0, 99.0, 99.9, 100.0))
    return dict(zip(("p50", "p99", "p99.9", "worst"), (float(value) for value in values), strict=True))
