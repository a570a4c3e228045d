"""The line between base_controller and the stop_base that guards it: a local socket.

No topic serves: rclpy does not tell a callback who published, so that a stranger or a replayed bag would pass for the
controller. On a socket the kernel knows the other end, and tells at once that its process has ended. Both ends find
each other by domain and topic, so both must run on one machine (in one container), as bringup starts them.
"""

from __future__ import annotations

import contextlib
import socket
import time

from rclpy.node import Node

from youbot_dynamics.nodes.local_socket import local_socket
from youbot_dynamics.nodes.rivals import address_of, claim

_KIND, _TOPIC = "stop_base for a base_controller", "wheel_commands"
_IDLE, _DRIVING = b"i", b"d"


class GuardEnd:
    """The guard's end, at which the controller calls.

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

    def quiet_for(self) -> float:
        """Time since the controller's last beat [s]; infinite where it has ended."""
        with contextlib.suppress(OSError):  # nobody calls
            self._line, _ = self._server.accept()
            self._line.setblocking(False)
            self.driving = False
        try:
            while self._line is not None:
                beat = self._line.recv(1)
                self._heard = time.monotonic() if beat else float("-inf")
                self._line = self._line if beat else None
                self.driving = self.driving or beat == _DRIVING
        except BlockingIOError:
            pass
        except OSError:
            self._line, self._heard = None, float("-inf")
        return time.monotonic() - self._heard

    def leave(self) -> None:
        """Let the controller know that it is guarded no longer, and go on hearing it."""
        self._server.close()
        if self._line is not None:
            with contextlib.suppress(OSError):  # it has ended itself
                self._line.shutdown(socket.SHUT_WR)


class ControllerEnd:
    """The controller's end; a controller that was never guarded drives without a guard.

    Args:
        node: the controller; tells domain and topic.

    Attributes:
        lost: what has become of the guard; empty where all is well.
    """

    def __init__(self, node: Node) -> None:
        self._address = address_of(node, _KIND, _TOPIC)
        self._line: socket.socket | None = None
        self.lost = ""
        self.call()

    def call(self) -> None:
        """Look for a guard where there is none."""
        if self._line is None:
            line = local_socket()
            try:
                line.connect(self._address)
            except OSError:
                line.close()
            else:
                self._line, self.lost = line, ""

    def beat(self, driving: bool) -> None:
        """Tell the guard that commands go on, and see whether it is there; every control period."""
        if self._line is None:
            return
        with contextlib.suppress(OSError):  # it hangs and has not read for long, or is gone: as reading tells
            self._line.send(_DRIVING if driving else _IDLE)
        try:
            self._line.recv(1)
        except BlockingIOError:
            return
        except OSError:
            pass
        self._line.close()
        self._line, self.lost = None, "stop_base, which guards this node, has ended: start it, or this bringup, again"
