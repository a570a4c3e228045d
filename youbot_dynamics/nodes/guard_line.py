"""The line between base_controller and the stop_base that guards it: a local socket on which both beat.

No topic serves: rclpy does not tell a callback who published, so that a stranger or a replayed bag would pass for the
controller. On a socket the kernel knows the other end, and tells at once that its process has ended. Both ends find
each other by domain and topic, so both must run on one machine (in one container), as bringup starts them.
"""

from __future__ import annotations

import socket
import time

from rclpy.node import Node

from youbot_dynamics.nodes.rivals import address, claim, local_socket

_KIND, _TOPIC = "stop_base", "wheel_commands"
_IDLE, _DRIVING, _GUARDING, _ENDING = b"i", b"d", b"g", b"e"
_HUNG = 1.0  # [s] without a beat after which the guard counts as hung


def _exchange(line: socket.socket, beat: bytes) -> tuple[bytes, bool]:
    """Send a beat; return the last one that has come, empty where none has, and whether the other end is there."""
    last = b""
    try:
        line.send(beat)
    except OSError:
        pass  # it hangs, and what it has not read yet suffices; or it is gone, which reading tells
    try:
        while heard := line.recv(1):
            last = heard
    except BlockingIOError:
        return last, True
    except OSError:
        pass
    return last, False


class GuardEnd:
    """The guard's end, at which one controller at a time may call.

    Args:
        node: the guard; tells domain and topic.

    Attributes:
        driving: whether the controller has sent anything to the driver.

    Raises:
        ResourceError: another guard is there already; it is named.
    """

    def __init__(self, node: Node) -> None:
        self._server = claim(node, _KIND, _TOPIC)
        self._line: socket.socket | None = None
        self._heard = float("-inf")
        self.driving = False

    def beat(self, ending: bool = False) -> None:
        """Tell the controller that it is guarded, or no longer, and hear it; to be called at least every 0.1 s."""
        if self._line is not None:
            heard, there = _exchange(self._line, _ENDING if ending else _GUARDING)
            if heard:
                self._heard = time.monotonic()
                self.driving = self.driving or heard == _DRIVING
            if not there:
                self._line, self._heard = None, float("-inf")
        try:
            caller, _ = self._server.accept()
        except BlockingIOError:
            return
        if self._line is None or self.quiet_for() > _HUNG:
            caller.setblocking(False)
            self._line, self.driving = caller, False

    def quiet_for(self) -> float:
        """Time since the controller's last beat [s]; infinite where it has ended."""
        return time.monotonic() - self._heard


class ControllerEnd:
    """The controller's end; a controller to whom no guard ever answers drives without one.

    Args:
        node: the controller; tells domain and topic.

    Attributes:
        lost: what has become of the guard; empty where all is well.
    """

    def __init__(self, node: Node) -> None:
        self._address = address(node, _KIND, _TOPIC)
        self._line: socket.socket | None = None
        self._heard = 0.0
        self.lost = ""

    def call(self) -> None:
        """Look for a guard where there is none."""
        if self._line is not None:
            return
        line = local_socket()
        try:
            line.connect(self._address)
        except OSError:
            line.close()
        else:
            self._line, self._heard = line, time.monotonic()

    def beat(self, driving: bool) -> None:
        """Tell the guard that commands go on, and hear whether it is there; every control period."""
        if self._line is None:
            return
        heard, there = _exchange(self._line, _DRIVING if driving else _IDLE)
        if heard == _ENDING or not there:
            self._line = self._line if there else None
            self.lost = "stop_base, which guards this node, has ended: start it, or this bringup, again"
        elif heard:
            self._heard, self.lost = time.monotonic(), ""
        elif time.monotonic() - self._heard > _HUNG:
            self.lost = "stop_base, which guards this node, hangs: end it, and start this bringup again"
