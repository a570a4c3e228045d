"""Our nodes, or their bare peers, beside a simulated driver, while they drive: processor time, memory, periods."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.process_samples import Usage
from youbot_dynamics.nodes.processes import node_command, stop_all
from youbot_dynamics.resources import config_path

SECONDS = 12.0  # measured
NODES = ("base_controller", "odometry", "stop_base", "recorder", "arm_ekf", "check_driver", "identification")
DRIVING = ("base_controller", "odometry", "stop_base")
PEERS = {"odometry": ("odometry", "trajectory_tracker")}  # nodes of a process, where there is more than one
_READY = 400.0  # [s] for the first start, which compiles

# As `youbot identify` gives it for the twin: delays told apart, and a friction the tracker feeds forward.
IDENTIFIED = """
/**:
  ros__parameters:
    robot:
      base:
        delay:
          effective_x: 0.12
          effective_y: 0.13
          effective_yaw: 0.11
          dead_time_x: 0.06
          dead_time_y: 0.06
          dead_time_yaw: 0.06
          lag_x: 0.06
          lag_y: 0.07
          lag_yaw: 0.05
        response:
          dead_time_x: 0.06
          dead_time_y: 0.06
          dead_time_yaw: 0.06
          lag: 0.05
          rate: 25.0
          wheel_coulomb: 0.12
          roller_coulomb: 0.3
          viscous_x: 15.0
          viscous_y: 20.0
"""


@dataclass(frozen=True)
class Figures:
    """What one drive showed.

    Args:
        cpu: process -> share of a core.
        memory: process -> resident memory [MB].
        private: process -> its part that is not of files, which other processes may share [MB].
        periods: of driver/cmd_vel [s].
        latencies: from a message of the wheels to the next driver/cmd_vel [s].
    """

    cpu: Mapping[str, float]
    memory: Mapping[str, float]
    private: Mapping[str, float]
    periods: Sequence[float]
    latencies: Sequence[float]


def drive(bare: bool, busy: bool = False, nodes: Sequence[str] = NODES) -> Figures:
    """Drive for SECONDS.

    Args:
        bare: with the peers instead of our nodes.
        busy: with a program of niceness 10 on every core beside it.
        nodes: which run.

    Raises:
        RuntimeError: a process ended, or nothing was commanded.
    """
    domain = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": str(40 + os.getpid() % 60)}
    environment = {**os.environ, **domain}
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        environment.pop(f"{library}_NUM_THREADS", None)  # of the benchmarks, not of a user
    with tempfile.TemporaryDirectory() as folder:
        identified = Path(folder) / "result.yaml"
        identified.write_text(IDENTIFIED, encoding="utf-8")
        facts = ["--ros-args", "--params-file", str(config_path("youbot.yaml"))]
        driver = node_command("mock_youbot", [*facts, "--params-file", str(config_path("mock.yaml"))])
        commands = {"mock_youbot": driver} | {
            node: _bare(node) if bare else node_command(node, _arguments(node, facts, identified, folder))
            for node in nodes
        }
        children: dict[str, subprocess.Popen[bytes]] = {}
        burners: list[subprocess.Popen[bytes]] = []
        try:
            for name, command in commands.items():
                with (Path(folder) / f"{name}.log").open("wb") as log:
                    children[name] = _start(command, environment, log.fileno())
            probe = _start([sys.executable, "-m", "bench.live_probe", str(_READY), str(SECONDS)], environment)
            children["probe"] = probe
            assert probe.stdout is not None
            if probe.stdout.readline() != b"driving\n":
                raise RuntimeError("nothing was commanded: " + _last_words(Path(folder)))
            burners = [
                _start(["nice", "-n", "10", sys.executable, "-c", "while True: pass"], environment)
                for _ in range(busy * (os.cpu_count() or 1))
            ]
            time.sleep(2.0)
            usage = {name: Usage(children[name].pid) for name in nodes}
            begin = time.monotonic()
            _sample(usage)
            heard = json.loads(probe.stdout.readline())
            _sample(usage)
        finally:
            stop_all([*burners, *reversed(children.values())])
    cpu = {name: one.cores(begin) for name, one in usage.items()}
    memory = {name: one.resident[-1] / 1024.0 for name, one in usage.items()}
    private = {name: one.private[-1] / 1024.0 for name, one in usage.items()}
    return Figures(cpu, memory, private, heard["periods"], heard["latencies"])


def _sample(usage: Mapping[str, Usage]) -> None:
    now = time.monotonic()
    gone = [name for name, one in usage.items() if not one.sample(now)]
    if gone:
        raise RuntimeError(f"{', '.join(gone)} ended")


def _bare(node: str) -> list[str]:
    return [sys.executable, "-m", "bench.live_peers", *PEERS.get(node, (node,))]


def _arguments(node: str, facts: Sequence[str], identified: Path, folder: str) -> list[str]:
    if node == "recorder":
        return ["--out", f"{folder}/bag"]
    standby = ["-p", "standby:=true"] if node == "stop_base" else []
    return [*facts, "--params-file", str(identified), *standby]


def _start(command: Sequence[str], environment: Mapping[str, str], log: int | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE if log is None else log,
        stderr=None if log is None else subprocess.STDOUT,
        preexec_fn=lambda: os.sched_setaffinity(0, range(os.cpu_count() or 1)),  # the benchmarks are pinned
    )


def _last_words(folder: Path) -> str:
    logs = (path.read_text(encoding="utf-8", errors="replace").splitlines()[-1:] for path in folder.glob("*.log"))
    return " | ".join(line for lines in logs for line in lines)
