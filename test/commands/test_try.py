"""`youbot try`: the delay live and the hidden truth in one terminal; a browser only where there is a display."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from nav_msgs.msg import Odometry
from ros_processes import Observer, environment

from youbot_dynamics.commands import _demo as command
from youbot_dynamics.nodes.watch import ReceivedStatus, Watch, live_delays, watch


def test_a_live_delay_has_its_interval_and_one_that_is_not_shown_is_left_out() -> None:
    values = {"x_delay": "264.1 +- 2.0 ms, none identified", "y_delay": "not determined by this drive"}
    statuses = {"odometry: response": values, "odometry: wheels": {"x_delay": "1.0 +- 1.0 ms"}}
    delays = live_delays({name: ReceivedStatus(0, "", values, 0.0) for name, values in statuses.items()})
    assert delays == {"x": "264 ms (95 % interval 259 to 269 ms)"}
    assert live_delays({}) == {}


@pytest.mark.parametrize("display", [True, False])
def test_the_report_is_opened_where_there_is_a_display_and_named_elsewhere(
    display: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(command.webbrowser, "open", lambda page: opened.append(page) or True)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0") if display else monkeypatch.delenv("DISPLAY", raising=False)
    command._open(tmp_path / "report.html")
    assert opened == ([(tmp_path / "report.html").as_uri()] if display else [])
    assert ("report.html" in "".join(capfd.readouterr()).replace("\n", "")) != display


@pytest.mark.ros
def test_the_view_keeps_the_newest_pose_and_values() -> None:
    with Observer() as observer:
        odometry = observer.node.create_publisher(Odometry, "odom", 10)
        diagnostics = observer.node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        pose, statuses = Odometry(), DiagnosticArray()
        pose.pose.pose.position.x, pose.pose.pose.orientation.w = 1.5, 1.0
        value = KeyValue(key="x_delay", value="264.1 +- 2.0 ms")
        names = ("/odometry: response", "/robot_1/odometry: response")
        statuses.status = [DiagnosticStatus(name=name, values=[value]) for name in names]
        seen: list[tuple[float, dict]] = []

        def show(node: Watch) -> None:
            odometry.publish(pose)
            diagnostics.publish(statuses)
            seen.append((float(node.pose[0]), dict(node.statuses)))

        watch(lambda: bool(seen) and seen[-1][0] == 1.5 and "odometry: response" in seen[-1][1], show)
        assert set(seen[-1][1]) == {"odometry: response"}
        assert seen[-1][1]["odometry: response"].values == {"x_delay": "264.1 +- 2.0 ms"}


@pytest.mark.ros
@pytest.mark.slow  # a minute
def test_a_minute_shows_the_delay_live_and_then_the_truth(tmp_path: Path) -> None:
    quiet = {key: value for key, value in environment().items() if "DISPLAY" not in key}
    words = [sys.executable, "-m", "youbot_dynamics.commands.main", "try", "--out", str(tmp_path / "twin")]
    done = subprocess.run(words, env=quiet, capture_output=True, text=True, timeout=600)
    said = done.stdout + done.stderr
    assert done.returncode in (0, 3), said
    # How many axes the monitor shows depends on how busy the machine was.
    assert "live estimate at the end: delay of " in said and "; truth over the whole drive: " in said
    assert all(f"delay {axis}" in done.stdout for axis in ("forward", "sideways", "in yaw"))
    assert "the hidden truth of twin 1" in said and "have the truth within their interval" in said
    page = tmp_path / "twin" / "report.html"
    assert str(page) in said.replace("\n", "")
    assert "The hidden truth" in page.read_text()
