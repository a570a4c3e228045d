"""`youbot watch`: a live page for a browser on this machine."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import youbot_dynamics
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.nodes.local_socket import domain_of_environment
from youbot_dynamics.nodes.processes import StopFlag

if TYPE_CHECKING:
    from youbot_dynamics.nodes.watch import ReceivedStatus, Watch

_ASSETS = Path(youbot_dynamics.__file__).parent / "report" / "assets"  # importing the folder would load matplotlib
_FILES = {
    "/": ("watch.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/watch.css": ("watch.css", "text/css"),
    "/watch.js": ("watch.js", "text/javascript"),
}
_POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:"
_OLD = 3.0  # [s] after which a topic counts as silent; /diagnostics comes once a second
_AT_LEAST = 2.0  # [s] between two events if nothing changes, so that the server notices a closed page
_REQUEST = 5.0  # [s] for a request and its answer; of a live page, for each event
_MOST = 32  # connections at a time, each of which takes a thread: an open page keeps one
_DRIVER_CHECK = "check_driver: "  # begin of the names of its findings
_WINDING = ".winding_degC"  # end of a key of the status of arm_ekf


def watch_command(port: int, ros_arguments: Sequence[str]) -> int:
    """Serve the page on this machine only, until Ctrl-C.

    Raises:
        ParameterError: the port is out of range or in use.
    """
    flag = StopFlag()
    server = Server(port)
    from youbot_dynamics.nodes.watch import watch

    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"open http://127.0.0.1:{server.server_port} in a browser on this machine; Ctrl-C ends", file=sys.stderr)
    try:
        watch(lambda: flag.set, server.show, ros_arguments)
    finally:
        server.end()
    return 0


def view(node: Watch, now: float) -> dict[str, Any]:
    """What the page shows `now`, by the steady clock [s], as plain data for JSON."""
    from youbot_dynamics.nodes.watch import live_delays

    fresh = {name: status for name, status in node.statuses.items() if now - status.received < _OLD}
    has_pose, follows = now - node.pose_at < _OLD, now - node.error_at < _OLD
    return {
        "robot": f"ROS domain {domain_of_environment()}, namespace {node.get_namespace()}",
        "missing": _missing(node, has_pose, bool(fresh)),
        "pose": [round(float(value), 4) for value in node.pose] if np.isfinite(node.pose_at) else None,
        "pose_is_old": not has_pose,
        "path": [[round(x, 3), round(y, 3)] for x, y in node.path],
        "desired": [[round(x, 3), round(y, 3)] for x, y in node.desired] if follows else [],
        "error": [round(1e3 * float(value), 2) for value in node.error] if follows else None,
        "errors": [
            [round(at - now, 1), round(1e3 * distance, 2), round(1e3 * heading, 2)]
            for at, distance, heading in node.errors
            if now - at < 60.0
        ],
        "tracker": _message(fresh.get("trajectory_tracker: trajectory")),
        "delays": live_delays(fresh),
        "response": _message(fresh.get("odometry: response")),
        "temperatures": _temperatures(fresh.get("arm_ekf: temperatures")),
        "driver": _verdicts(fresh),
        "warnings": [
            f"{name}: {status.message}"
            for name, status in sorted(fresh.items())
            if status.level > 0 and not name.startswith(_DRIVER_CHECK)
        ],
    }


def _missing(node: Watch, has_pose: bool, has_status: bool) -> str:
    """What does not arrive and what to do, in one sentence; "" if poses arrive."""
    if has_pose:
        return ""
    if not has_status:
        return (
            f"No messages: there is no bringup on ROS domain {domain_of_environment()} in namespace "
            f"{node.get_namespace()}. Start one (youbot bringup), or end this command and set ROS_DOMAIN_ID or "
            "--namespace as the robot has them."
        )
    return "No pose arrives on odom: does the driver publish joint states, and does the node odometry run?"


def _message(status: ReceivedStatus | None) -> str:
    return "" if status is None else status.message


def _temperatures(status: ReceivedStatus | None) -> list[list[str]]:
    """Joint, winding and housing temperature [degC] with their standard deviations, and seconds to the limit."""
    values = {} if status is None else status.values
    rows = []
    for joint in [key.removesuffix(_WINDING) for key in values if key.endswith(_WINDING)]:
        seconds = values.get(f"{joint}.seconds_to_limit", "")
        seconds = "not reached at this load" if seconds == "inf" else seconds
        rows.append([joint, values[f"{joint}{_WINDING}"], values.get(f"{joint}.housing_degC", ""), seconds])
    return rows


def _verdicts(fresh: dict[str, ReceivedStatus]) -> list[list[str]]:
    """Item, verdict and text of each finding of the driver check."""
    return [
        [name.removeprefix(_DRIVER_CHECK), status.values["verdict"], status.values["text"]]
        for name, status in fresh.items()
        if name.startswith(_DRIVER_CHECK) and "verdict" in status.values
    ]


class Server(ThreadingHTTPServer):
    """Serves the page and its live data on the loopback address.

    Raises:
        ParameterError: the port is out of range or in use.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        if port != 0 and not 1024 <= port <= 65535:
            raise ParameterError("--port", got=str(port), expected="1024 to 65535, or 0 for any free one")
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as problem:
            raise ParameterError(
                f"port {port}",
                got=(problem.strerror or "no access").lower(),
                expected="a free port",
                remedy="end the other program (another youbot watch?), or choose another port with --port",
            ) from None
        self._changed = threading.Condition()
        self._text, self._count, self._ended, self._sent = "", 0, False, 0.0
        self.readers = 0  # open pages
        self._until: dict[socket.socket, float] = {}  # when a connection is closed, by the steady clock [s]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Take a connection if there are not too many."""
        if len(self._until) >= _MOST:
            return False
        self._until[request] = time.monotonic() + _REQUEST
        return True

    def service_actions(self) -> None:
        """Close what has taken too long, in whatever small pieces; `serve_forever` calls this twice a second."""
        for request, until in list(self._until.items()):
            if time.monotonic() > until:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._until.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about a connection that the other end broke."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def show(self, node: Watch) -> None:
        """Send the live data to the open pages."""
        if not self.readers:
            return
        now = time.monotonic()
        text = json.dumps(view(node, now), allow_nan=False)
        with self._changed:
            if text != self._text or now - self._sent > _AT_LEAST:
                self._text, self._count, self._sent = text, self._count + 1, now
                self._changed.notify_all()

    def join(self, request: Any) -> int:
        """Count one more open page, whose connection stays; the number of the last event."""
        self._until[request] = np.inf
        with self._changed:
            self.readers, self._text = self.readers + 1, ""
            return self._count

    def leave(self) -> None:
        """Count one open page less."""
        with self._changed:
            self.readers -= 1

    def next(self, count: int) -> tuple[str, int]:
        """Wait for an event after the one with this number; its text and number, "" at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._count > count)
            return "" if self._ended else self._text, self._count

    def end(self) -> None:
        """Close the pages and the port."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the files of the page and for /live, a stream of server-sent events."""

    server: Server
    timeout = _REQUEST

    def do_GET(self) -> None:
        # A page of another name that resolves to this address (DNS rebinding) must not read the data.
        if self.headers.get("Host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            self.send_error(403)
        elif self.path == "/live":
            self._stream()
        elif self.path in _FILES:
            name, kind = _FILES[self.path]
            self._head(f"{kind}; charset=utf-8")
            self.wfile.write((_ASSETS / name).read_bytes())
        else:
            self.send_error(404)

    def _head(self, kind: str) -> None:
        self.send_response(200)
        headers = {"Content-Type": kind, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        for name, value in {**headers, "Content-Security-Policy": _POLICY}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self) -> None:
        self._head("text/event-stream")
        count = self.server.join(self.connection)
        try:
            while True:
                text, count = self.server.next(count)
                if not text:
                    return
                self.wfile.write(f"data: {text}\n\n".encode())
        except OSError:
            return  # the page was closed
        finally:
            self.server.leave()

    def log_message(self, *words: object) -> None:
        """Print nothing: each request would be a line."""
