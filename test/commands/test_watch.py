"""`youbot watch`: what was heard is on the page, on this machine only, and what is missing is said."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy")

from browser import CHROMIUM, looks
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from nav_msgs.msg import Odometry
from ros_processes import Observer, Processes, end
from sensor_msgs.msg import JointState

from youbot_dynamics.commands import _watch
from youbot_dynamics.commands._watch import Server, view
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.nodes.watch import ReceivedStatus
from youbot_dynamics.report._drawing import PALETTE

NOW = 1000.0


def checked(level: int, verdict: str, text: str) -> ReceivedStatus:
    """A finding as check_driver publishes it; its text has a colon, as some do."""
    return ReceivedStatus(level, f"{verdict}: {text}", {"verdict": verdict, "text": text}, NOW - 2.0)


STATUSES = {
    "odometry: response": ReceivedStatus(0, "measured: x", {"x_delay": "264.1 +- 2.0 ms, none identified"}, NOW - 1.0),
    "odometry: wheels": ReceivedStatus(1, "slips", {}, NOW - 1.0),
    "arm_ekf: temperatures": ReceivedStatus(
        0,
        "all windings below their limits",
        {
            "arm_joint_1.winding_degC": "41.5 +- 3.2",
            "arm_joint_1.housing_degC": "33.0 +- 2.0",
            "arm_joint_1.seconds_to_limit": "95",
            "arm_joint_2.winding_degC": "25.0 +- 5.0",
            "arm_joint_2.seconds_to_limit": "inf",
        },
        NOW - 1.0,
    ),
    "check_driver: signs of the wheels": checked(0, "not checked", "they stood still; drive"),
    "check_driver: clock of the wheels": checked(2, "error", "4 s off: use chrony"),
    "check_driver: driver": ReceivedStatus(0, "listening", {}, NOW - 2.0),
    "base_controller: limits": ReceivedStatus(2, "long ago", {}, NOW - 60.0),
}


def heard(**changes: Any) -> Any:
    """What a node has heard: all is well, a trajectory runs."""
    known = {
        "pose": np.array([1.23456, -0.5, 3.1]),
        "pose_at": NOW - 0.1,
        "path": deque([(0.0, 0.0), (1.23444, -0.5)]),
        "desired": deque([(0.0, 0.0), (1.2, -0.5004)]),
        "error": np.array([0.0015, -0.002, 0.0101]),
        "error_at": NOW - 0.1,
        "errors": deque([(NOW - 61.0, 0.5, 0.5), (NOW - 1.0, 0.0025, 0.0101)]),
        "statuses": STATUSES,
        "get_namespace": lambda: "/robot_1",
    }
    return SimpleNamespace(**{**known, **changes})


def test_the_view_holds_what_was_heard() -> None:
    seen = view(heard(), NOW)
    assert seen["pose"] == [1.2346, -0.5, 3.1] and not seen["pose_is_old"]
    assert seen["path"] == [[0.0, 0.0], [1.234, -0.5]] and seen["desired"] == [[0.0, 0.0], [1.2, -0.5]]
    assert view(heard(error_at=NOW - 60.0), NOW)["desired"] == []  # no trajectory is followed
    assert seen["error"] == [1.5, -2.0, 10.1]
    assert seen["errors"] == [[-1.0, 2.5, 10.1]]
    assert seen["delays"] == {"x": "264 ms (95 % interval 259 to 269 ms)"}
    assert seen["temperatures"] == [
        ["arm_joint_1", "41.5 +- 3.2", "33.0 +- 2.0", "95"],
        ["arm_joint_2", "25.0 +- 5.0", "", "not reached at this load"],
    ]
    assert seen["driver"] == [
        ["signs of the wheels", "not checked", "they stood still; drive"],
        ["clock of the wheels", "error", "4 s off: use chrony"],
    ]
    assert seen["warnings"] == ["odometry: wheels: slips"]
    assert seen["missing"] == ""
    json.dumps(seen, allow_nan=False)


def test_what_is_missing_is_said_with_domain_and_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "37")
    never = {"pose": np.full(3, np.nan), "pose_at": -np.inf, "error_at": -np.inf}
    nothing = view(heard(**never, path=deque(), errors=deque(), statuses={}), NOW)
    assert "no bringup on ROS domain 37 in namespace /robot_1" in nothing["missing"]
    assert nothing["pose"] is None and nothing["error"] is None and nothing["delays"] == {}
    assert "No pose arrives on odom" in view(heard(**never), NOW)["missing"]
    stopped = view(heard(), NOW + 10.0)
    assert stopped["pose_is_old"] and stopped["pose"] == [1.2346, -0.5, 3.1]  # the last one, in grey
    assert stopped["error"] is None and stopped["temperatures"] == [] and "no bringup" in stopped["missing"]
    json.dumps(nothing, allow_nan=False)


def test_a_port_that_is_taken_or_reserved_is_refused_with_a_remedy() -> None:
    server = Server(0)
    try:
        with pytest.raises(ParameterError, match=rf"port {server.server_port}: .*another port with --port"):
            Server(server.server_port)
    finally:
        server.server_close()
    with pytest.raises(ParameterError, match="expected 1024 to 65535"):
        Server(80)


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server(0)
    threading.Thread(target=one.serve_forever, daemon=True).start()
    yield one
    one.end()


def answer(server: Server, path: str, host: str = "127.0.0.1", method: str = "GET") -> tuple[int, str, str]:
    """Status, content security policy and text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20.0)
    connection.request(method, path, headers={"Host": f"{host}:{server.server_port}"})
    got = connection.getresponse()
    return got.status, got.headers.get("Content-Security-Policy", ""), got.read().decode()


def test_the_page_is_complete_and_loads_nothing_from_elsewhere(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    status, policy, page = answer(server, "/")
    assert status == 200 and policy.startswith("default-src 'none'")
    loaded = re.findall(r'(?:href|src)="([^"#][^"]*)"', page)
    assert set(loaded) == {"page.css", "watch.css", "watch.js", "data:,"}
    for name in loaded[:2] + ["watch.js"]:
        status, _, text = answer(server, f"/{name}")
        assert status == 200 and "//" not in text.replace("http://www.w3.org", "")


def test_other_names_other_files_and_other_methods_are_refused(server: Server) -> None:
    assert answer(server, "/", host="robot.example")[0] == 403  # DNS rebinding
    assert answer(server, "/live", host="robot.example")[0] == 403
    assert answer(server, "/../_page.py")[0] == answer(server, "/animation.js")[0] == 404
    assert answer(server, "/", method="POST")[0] == 501


def test_the_colours_are_those_of_the_report(server: Server) -> None:
    light, dark = answer(server, "/watch.css")[2].splitlines()[:2]
    for role in re.findall(r"--(\w+):", light):
        assert f"--{role}:{PALETTE[role][0]}" in light and f"--{role}:{PALETTE[role][1]}" in dark


def events(port: int) -> Iterator[dict[str, Any]]:
    """What /live sends."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60.0)
    connection.request("GET", "/live")
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_a_page_that_is_opened_gets_the_view_at_once_and_a_closed_server_ends_it(server: Server) -> None:
    got: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: got.extend(events(server.server_port)), daemon=True)
    reader.start()
    while not got:
        server.show(heard())
    server.end()
    reader.join(20.0)
    assert not reader.is_alive() and got[0]["path"][1] == [1.234, -0.5]


def slow_connection(server: Server) -> socket.socket:
    """One whose request never ends."""
    slow = socket.create_connection(("127.0.0.1", server.server_port), timeout=20.0)
    slow.sendall(b"GET / HTTP/1.1\r\nX: ")
    return slow


def test_connections_are_few_and_end_where_a_request_does_not_come(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_watch, "_REQUEST", 1.0)
    before = threading.active_count()
    connections = []
    for _ in range(100):
        with contextlib.suppress(OSError):  # refused, by being closed
            connections.append(slow_connection(server))
    assert threading.active_count() - before <= 40
    for _ in range(20):  # in small pieces it does not last longer
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.sendall(b"x")
        time.sleep(0.1)
    for connection in connections:
        with contextlib.suppress(ConnectionError):
            assert connection.recv(1) == b""
        connection.close()
    assert answer(server, "/")[0] == 200
    assert threading.active_count() - before <= 5


def test_an_open_page_lasts_longer_than_a_request(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watch, "_REQUEST", 0.5)
    got: list[dict[str, Any]] = []
    threading.Thread(target=lambda: got.extend(events(server.server_port)), daemon=True).start()
    begun = time.monotonic()
    while time.monotonic() - begun < 3.0:
        server.show(heard())
        time.sleep(0.1)
    count = len(got)
    while len(got) < count + 2:
        server.show(heard(pose=np.array([float(len(got)), 0.0, time.monotonic()])))
        time.sleep(0.05)
        assert time.monotonic() - begun < 30.0


@pytest.mark.ros
def test_what_is_published_is_on_the_page_and_ctrl_c_ends_it() -> None:
    with Processes() as processes, Observer() as observer:
        shown = processes.youbot("watch", "--port", "0", "--namespace", "robot_1")
        assert shown.stdout is not None
        port = int(re.findall(r"http://127\.0\.0\.1:(\d+)", shown.stdout.readline())[0])
        create = observer.node.create_publisher
        odometry = create(Odometry, "/robot_1/odom", 10)
        error = create(JointState, "/robot_1/trajectory_tracker/error", 10)
        diagnostics = create(DiagnosticArray, "/diagnostics", 10)
        pose = Odometry()
        pose.pose.pose.position.x, pose.pose.pose.position.y = 1.5, -0.25
        pose.pose.pose.orientation.z = pose.pose.pose.orientation.w = float(np.sqrt(0.5))
        values = [KeyValue(key="yaw_delay", value="187.0 +- 3.0 ms, identified 180.0")]
        own = DiagnosticStatus(name="/robot_1/odometry: response", values=values)
        others = DiagnosticStatus(name="/odometry: response", level=DiagnosticStatus.WARN, message="theirs")
        seen: dict[str, Any] = {}
        for seen in events(port):
            odometry.publish(pose)
            # In the order of the sender, not in ours.
            error.publish(JointState(name=["yaw", "x", "y"], position=[0.03, 0.01, -0.02]))
            diagnostics.publish(DiagnosticArray(status=[own, others]))
            if seen["pose"] and seen["desired"] and seen["delays"]:
                break
        assert seen["pose"] == [1.5, -0.25, pytest.approx(np.pi / 2.0, abs=1e-4)]
        assert seen["error"] == [10.0, -20.0, 30.0]
        assert seen["desired"][0] == [1.48, -0.26]  # the error is in the body frame, which is turned by 90 degrees
        assert seen["errors"][-1][1:] == [pytest.approx(22.36, abs=0.005), 30.0]
        assert seen["delays"] == {"yaw": "187 ms (95 % interval 179 to 195 ms)"}
        assert "namespace /robot_1" in seen["robot"] and seen["warnings"] == []
        assert end(shown) == "" and shown.returncode == 0


HOSTILE = '<img src="https://example.org/a.png" onerror="alert(1)">'
LOOK = """
      out: all("main *").filter((box) => !inside(box) && !box.closest(".scroll") && !box.closest("svg")).length,
      frames: all(".scroll[aria-label]").filter((box) => box.tabIndex === 0).length,
      words: all("#verdicts .words").filter((cell) => !inside(cell)).length,
      named: all("svg[role=img]").filter((plot) => plot.getAttribute("aria-label")).length,
      images: all("img").length,
      text: page.body.innerText,
      line: all("#ground polyline")[0].getAttribute("points"),
      desired: all("#ground polyline")[1].getAttribute("points"),
      base: all("#ground .base")[0].getAttribute("transform"),
"""


def still_page(server: Server, seen: dict[str, Any]) -> str:
    """The page as one file that has got one event."""
    page = answer(server, "/")[2]
    styles = "".join(f"<style>{answer(server, name)[2]}</style>" for name in ("/page.css", "/watch.css"))
    stub = "class EventSource { set onmessage(take) { take({data: JSON.stringify(SEEN)}); } }"
    data = json.dumps(seen).replace("<", "\\u003c")
    script = f"<script>const SEEN = {data}; {stub}\n{answer(server, '/watch.js')[2]}</script>"
    page = re.sub(r'<link rel="stylesheet".*?>|<script src.*?</script>', "", page)
    return page.replace("</head>", f"{styles}</head>").replace("</body>", f"{script}</body>")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_the_page_shows_the_values_fits_a_phone_and_runs_nothing_it_was_sent(server: Server, tmp_path: Path) -> None:
    seen = view(heard(), NOW)
    seen["driver"].append(["signs", "error", HOSTILE])
    seen["warnings"].append(HOSTILE)
    for look in looks(tmp_path, still_page(server, seen), LOOK).values():
        assert look["scroll"] <= look["width"] and look["out"] == look["words"] == 0, look["width"]
        assert look["frames"] == 2 and look["named"] == 2 and look["unscoped"] == 0
        assert look["levels"][0] == 1 and set(look["levels"][1:]) == {2}
        assert look["images"] == 0 and look["text"].count(HOSTILE) == 2
        assert look["line"] == "0,0 1.234,0.5 1.2346,0.5"  # y is up
        assert look["desired"] == "0,0 1.2,0.5" and "Dashed: the desired path." in look["text"]
        assert look["base"] == f"translate(1.2346 0.5) rotate({-180.0 / np.pi * 3.1})"
        for value in ("1.235 m", "-0.500 m", "3.100 rad", "1.50 mm", "10.10 mrad", "264 ms", "41.5 +- 3.2", "4 s off"):
            assert value in look["text"], value
