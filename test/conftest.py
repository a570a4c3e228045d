"""What holds for every test: no robot within reach, no skip without an allowed reason, no session without a test."""

from __future__ import annotations

import importlib
import os
import signal
import socket
from collections.abc import Generator
from functools import cache
from pathlib import Path

import hypothesis
import pytest
from machine_watch import MachineWatch

# A test may be skipped only where one of these is absent; any other skip fails the session.
ALLOWED_SKIP_REASONS = (
    "argcomplete",
    "casadi",
    "chromium",
    "colcon",
    "data folder",
    "drake",
    "launch_ros",
    "numba",
    "mujoco",
    "pinocchio",
    "rerunfailures",
    "second account",
    "tf2_msgs",
)

# No test claims a time: on a busy machine an example of a millisecond took 0.7 s, beyond the usual limit of 0.2.
hypothesis.settings.register_profile("any time", deadline=None)
hypothesis.settings.load_profile("any time")
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
# What is promised holds without a priority, which most users may not set, and which root would get here.
os.environ.setdefault("YOUBOT_PRIORITY", "0")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # In a shell's background Ctrl-C is ignored, also by the processes that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def own_domain() -> int:
    """A domain that no other run of these tests on this machine has, until this process ends.

    An abstract socket of its number keeps it: such a socket lives where the loopback network lives, and as long as its
    process.
    """
    for k in range(101):
        domain = 1 + (os.getpid() + k) % 101
        with socket.socket(socket.AF_UNIX) as keeper:
            try:
                keeper.bind(f"\0youbot_dynamics test domain {domain}")
            except OSError:
                continue
            keeper.detach()
        return domain
    raise RuntimeError("101 other runs of these tests are under way: no domain is left")


os.environ["ROS_DOMAIN_ID"] = str(own_domain())
for variable in ("ROS_LOCALHOST_ONLY", "ROS_DISCOVERY_SERVER", "ROS_STATIC_PEERS"):
    os.environ.pop(variable, None)


# Rooms whose tests only compute: they run at low priority beside those over DDS, which leave processors idle.
# Programs that they start get no time limit: beside busy ones 2 s of work took a minute (a hang ends the session).
COMPUTING = ("control", "dynamics", "estimation", "identification", "kinematics", "simulation")
WITH_PROCESSES = ("test_fleet.py",)  # whose processes watch each other by the clock


def computes(path: Path) -> bool:
    """Whether the tests of a file only compute, but for those over DDS."""
    return path.parent.name in COMPUTING and path.name not in WITH_PROCESSES


@cache
def marks_ros(path: Path) -> bool:
    """Whether a file may have tests over DDS."""
    return "mark.ros" in path.read_text(encoding="utf-8")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Each worker of a step of scripts/test.sh imports only files that may have its tests: all take half a minute."""
    step = config.option.markexpr.rpartition(" and ")[2]
    if collection_path.suffix != ".py" or step not in ("ros", "computes", "not computes"):
        return None
    if step == "ros":
        return not marks_ros(collection_path) or None
    return computes(collection_path) != (step == "computes") or None


@pytest.hookimpl(tryfirst=True)  # before the choice by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # colcon waits for ever once a line is longer than 65,536 characters.
        assert len(item.nodeid) < 1000, f"{item.nodeid[:200]}...: give its case an id"
        if item.get_closest_marker("ros"):
            assert marks_ros(item.path), f"{item.nodeid}: its file must name mark.ros, or no step runs it"
        elif computes(item.path):
            item.add_marker(pytest.mark.computes)


class SkipGuard:
    """Collects the skips whose reason is not allowed and fails the session because of them."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def _look_at(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        longrepr = report.longrepr
        reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
        if not any(allowed in reason for allowed in ALLOWED_SKIP_REASONS):
            self.refused.append(f"{report.nodeid}: {reason.removeprefix('Skipped: ')}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._look_at(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._look_at(report)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self.refused and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        chosen = session.config.args_source is pytest.Config.ArgsSource.ARGS or session.config.option.keyword
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and not chosen:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # colcon takes the other code for a success

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.refused:
            terminalreporter.section("skips without an allowed reason", red=True)
            for line in self.refused:
                terminalreporter.line(line)
            terminalreporter.line(f"allowed: a reason that contains one of {', '.join(ALLOWED_SKIP_REASONS)}")


class StallGuard:
    """Runs a failed test again, at most twice, if this machine stood still during it; the summary says which."""

    def __init__(self) -> None:
        self._watch = MachineWatch()
        self._lates: list[str] = []

    def stood_still(self) -> bool:
        self._lates += self._watch.lates()
        return bool(self._lates)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        # Ubuntu's pytest-rerunfailures 12 takes a callable for true; all versions evaluate a text after the failure.
        condition = "config.pluginmanager.get_plugin('stall_guard').stood_still()"
        for item in items:
            item.add_marker(pytest.mark.flaky(reruns=2, condition=condition))

    def pytest_runtest_logstart(self) -> None:
        self._watch.lates()
        self._lates.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and self.stood_still():
            report.sections.append(("this machine stood still", "\n".join(self._lates)))
        return report

    def pytest_unconfigure(self) -> None:
        self._watch.close()


@pytest.hookimpl(trylast=True)  # behind that of pytest-rerunfailures
def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SkipGuard(), "skip_guard")
    if config.pluginmanager.hasplugin("rerunfailures"):
        config.pluginmanager.register(StallGuard(), "stall_guard")
        if hasattr(config, "workerinput"):
            # A worker asks the main process before each test whether one crashed: 40 ms, and a crash has failed.
            # Closed at the end: version 12 reads a closed socket again and again, which took most of a processor.
            config.add_cleanup(config.failures_db.sock.close)
            config.failures_db = importlib.import_module("pytest_rerunfailures").StatusDB()
