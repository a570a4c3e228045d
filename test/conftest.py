"""What holds for every test: no robot within reach, and no skip without an allowed reason."""

from __future__ import annotations

import os
import socket

import pytest

# A test may be skipped only where one of these is absent; any other skip fails the session.
ALLOWED_SKIP_REASONS = (
    "argcomplete",
    "casadi",
    "chromium",
    "data folder",
    "drake",
    "launch_ros",
    "numba",
    "mujoco",
    "pinocchio",
    "tf2_msgs",
)

os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"


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

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.refused:
            terminalreporter.section("skips without an allowed reason", red=True)
            for line in self.refused:
                terminalreporter.line(line)
            terminalreporter.line(f"allowed: a reason that contains one of {', '.join(ALLOWED_SKIP_REASONS)}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SkipGuard(), "skip_guard")
