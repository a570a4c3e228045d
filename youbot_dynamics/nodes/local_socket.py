"""Sockets between the processes of one bringup on one machine; without ROS, so that the bringup can use them.

base_controller sends its heartbeats to stop_base, which guards it, on one. A topic cannot serve: an rclpy callback does
not know the publisher, so that another program or a replayed bag would pass for the controller. Of a socket the kernel
knows the peer, and reports at once that its process has ended. Both find each other by domain and topic, so both must
run on one machine (in one container), as bringup starts them.

The sockets are files in a folder that their user alone can enter. A name without a file, as Linux has them too, can be
taken by any user of the machine, who can also keep the other side busy there.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import socket
import stat
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from youbot_dynamics.errors import ResourceError, printable

if TYPE_CHECKING:
    from rclpy.node import Node

LOST, BACK = "lost", "back"  # what has become of a part of the bringup
_GUARD, _NOTIFICATIONS, _TOPIC = "stop_base for a base_controller", "notifications", "wheel_commands"
_NETWORK = "/proc/self/ns/net"  # two containers with a network each, and a robot in it, may share the folder
_OURS = f"{os.getpid()} {os.urandom(8).hex()}"  # this process: in another container one may have its number
_LONGEST = 2000  # [B] of a notification; a character takes up to 4
_AT_ONCE = 20  # notifications read in one pass
_IDLE, _DRIVING, _GOODBYE, _REPLY = b"i", b"d", b"f", b"a"
_CREDENTIALS = struct.Struct("3i")  # process, user and group, by the kernel
_STARTING = 1.0  # [s] for stop_base to answer, which starts together with base_controller
_HANGING = 5.0  # [s] without a reply of the guard: it reads heartbeats every 0.05 s, a stop may take it 4 s


def _socket(kind: int = socket.SOCK_SEQPACKET) -> socket.socket:
    """Return a socket that keeps messages apart and never waits."""
    return socket.socket(socket.AF_UNIX, kind | socket.SOCK_NONBLOCK)


def _folder() -> Path:
    return Path(os.environ.get("TMPDIR") or "/tmp", f"youbot_dynamics_{os.getuid()}")


def _file(kind: str, domain: int, topic: str) -> str:
    """File of a kind of node, in a domain, on a topic by its full name, in the network of this container."""
    key = f"{os.stat(_NETWORK).st_ino} {domain} {kind} {topic}"
    return str(_folder() / hashlib.sha256(key.encode()).hexdigest()[:16])


def _file_of(node: Node, kind: str, topic: str) -> str:
    return _file(kind, node.context.get_domain_id(), node.resolve_topic_name(topic))


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        folder = str(_folder())
        raise ResourceError(
            "folder of the local sockets",
            got=str(problem) if folder in str(problem) else f"{folder}: {problem}",
            expected=f"one that user {os.getuid()} alone can enter (mode 0700)",
            remedy="let its owner remove it, or set TMPDIR for the whole robot to a folder of yours with a short path",
        ) from None


def check_folder() -> None:
    """Make the folder of the sockets, or check the one that is there: any user may have made one of its name.

    Raises:
        ResourceError: it is not ours alone; its owner is named.
    """
    with _refusing():
        folder = _folder()
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        mode = found.st_mode & 0o777
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or mode != 0o700:
            kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no folder"
            raise PermissionError(f"{folder}, which is {kind} of user {found.st_uid} with mode {mode:04o}")


def claim(node: Node, kind: str, topic: str) -> IO[str]:
    """Be the only node of a kind on a topic, on this machine, for as long as the file returned stays open.

    Raises:
        ResourceError: another process holds it; it is named. Or see `check_folder`.
    """
    check_folder()
    with _refusing():
        file = f"{_file_of(node, kind, topic)}.lock"
        claimed = open(file, "a+", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600))
        try:
            fcntl.flock(claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which the kernel ends with the process
        except BlockingIOError:
            claimed.seek(0)
            holder = claimed.read(40)
            if holder != _OURS:  # else a node of ours that is gone, and not yet collected
                claimed.close()
                raise occupied(node, topic, f"another {kind}, process {holder.partition(' ')[0]}") from None
            return claimed
        claimed.truncate(0)
        claimed.write(_OURS)
        claimed.flush()
        return claimed


def _bound(kind: int, file: str) -> socket.socket:
    """Socket at a file, in place of one that an earlier process left behind; whoever calls this has the claim."""
    with _refusing():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
        bound = _socket(kind)
        bound.bind(file)
        return bound


def _peer(connection: socket.socket) -> int:
    """User of the peer."""
    size = _CREDENTIALS.size
    return int(_CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


def _read(connection: socket.socket) -> bytes:
    """Next message of the peer; empty where it has ended.

    Raises:
        BlockingIOError: nothing has come yet.
    """
    try:
        return connection.recv(1)
    except BlockingIOError:
        raise
    except OSError:
        return b""


def occupied(node: Node, topic: str, owner: str) -> ResourceError:
    """Error of a topic that another node publishes already."""
    return ResourceError(
        f"topic {node.resolve_topic_name(topic)}",
        got=owner,
        expected="no other node",
        remedy="end the other bringup, or give this one its own namespace or ROS_DOMAIN_ID",
    )


def notify(namespace: str, item: str, level: str, text: str) -> None:
    """Let the stop_base of the bringup in a namespace report on /diagnostics that a part of it is LOST or BACK.

    A passive bringup has no stop_base: there the notification is dropped.
    """
    topic = f"/{namespace.strip('/')}/{_TOPIC}".replace("//", "/")
    data = json.dumps([item, level, text[: _LONGEST // 5]], ensure_ascii=False).encode(errors="replace")
    with _socket(socket.SOCK_DGRAM) as sender, contextlib.suppress(OSError):  # no stop_base
        sender.sendto(data, _file(_NOTIFICATIONS, domain_of_environment(), topic))


def domain_of_environment() -> int:
    """Number in ROS_DOMAIN_ID as rcl reads it: 0x2A and 010 are numbers too; 0 where there is none."""
    return int(ctypes.CDLL(None).strtoul(os.fsencode(os.environ.get("ROS_DOMAIN_ID", "")), None, 0))


class GuardSocket:
    """Socket of stop_base: the controller sends its heartbeats to it, the bringup its notifications.

    Attributes:
        driving: whether the controller has sent anything to the driver.
        moving: whether it has since the guard stopped the base, which sets this to False.
        goodbye: whether it has reported that its last zero has arrived.

    Raises:
        ResourceError: another guard is running; it is named. Or see `check_folder`.
    """

    def __init__(self, node: Node) -> None:
        self._claim = claim(node, _GUARD, _TOPIC)
        self._notifications = _bound(socket.SOCK_DGRAM, _file_of(node, _NOTIFICATIONS, _TOPIC))
        self._notifications.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._server = _bound(socket.SOCK_SEQPACKET, _file_of(node, _GUARD, _TOPIC))
        self._server.listen()
        self._connection: socket.socket | None = None
        self._last_heartbeat = float("-inf")
        self.driving = self.moving = self.goodbye = False

    def heartbeat_age(self) -> float:
        """Time since the controller's last heartbeat [s]; infinite where it has ended."""
        with contextlib.suppress(OSError):  # no further peer
            while self._connection is None:
                connection, _ = self._server.accept()
                connection.setblocking(False)
                if _peer(connection) != os.getuid():  # the folder keeps out everybody but root
                    connection.close()
                    continue
                self._connection, self.driving, self.goodbye = connection, False, False
        with contextlib.suppress(BlockingIOError):
            while self._connection is not None:
                heartbeat = _read(self._connection)
                self._last_heartbeat = time.monotonic() if heartbeat else float("-inf")
                if not heartbeat:
                    self._connection.close()
                    self._connection = None
                self.driving |= heartbeat == _DRIVING
                self.moving |= heartbeat == _DRIVING
                self.goodbye |= heartbeat == _GOODBYE
        if self._connection is not None:
            with contextlib.suppress(OSError):  # it hangs, or has ended
                self._connection.send(_REPLY)
        return time.monotonic() - self._last_heartbeat

    def notifications(self) -> dict[str, tuple[str, str]]:
        """Notifications since the last call: item -> level and text."""
        received = {}
        for _ in range(_AT_ONCE):
            try:
                data, ((_, _, sender),), *_ = self._notifications.recvmsg(
                    _LONGEST, socket.CMSG_SPACE(_CREDENTIALS.size)
                )
            except BlockingIOError:
                break
            if _CREDENTIALS.unpack(sender)[1] != os.getuid():  # root
                continue
            with contextlib.suppress(ValueError, TypeError, RecursionError):  # not by `notify`
                item, level, text = (printable(str(field)) for field in json.loads(data))
                if level in (LOST, BACK):
                    received[item] = (level, text)
        return received

    def release(self) -> None:
        """Let the controller know that it is guarded no longer; its heartbeats are still read."""
        self._server.close()
        self._claim.close()  # the next guard need not wait for our end
        if self._connection is not None:
            with contextlib.suppress(OSError):  # it has ended itself
                self._connection.shutdown(socket.SHUT_WR)


class ControllerSocket:
    """Socket of base_controller.

    Args:
        node: base_controller.
        guarded: whether it may drive only once a guard has answered; else one that was never guarded drives without.

    Attributes:
        missing: what has become of the guard; empty where it has answered and runs, or is not needed.
    """

    def __init__(self, node: Node, guarded: bool) -> None:
        self._file = _file_of(node, _GUARD, _TOPIC)
        self._connection: socket.socket | None = None
        self._last_reply = self._born = time.monotonic()
        self._urgent = guarded  # until the first answer
        self.missing = "stop_base, which guards this node, starts" if guarded else ""
        self.connect()

    def connect(self) -> None:
        """Look for a guard where there is none."""
        if self._connection is not None:
            return
        connection = _socket()
        with contextlib.suppress(OSError):  # no guard
            connection.connect(self._file)
            if _peer(connection) == os.getuid():
                self._connection, self._last_reply = connection, time.monotonic()
                return
        connection.close()

    def heartbeat(self, driving: bool) -> None:
        """Send a heartbeat to the guard, and check that it runs; every control period."""
        if self._urgent:
            self.connect()
            if time.monotonic() > self._born + _STARTING:
                self.missing = "waits for stop_base, which guards this node: start this bringup again if this goes on"
        self._send(_DRIVING if driving else _IDLE)
        if self._connection is None:
            return
        with contextlib.suppress(BlockingIOError):
            while _read(self._connection):
                self._last_reply = time.monotonic()
                self._urgent, self.missing = False, ""
            self._connection.close()
            self._connection = None
            self._urgent = False
            self.missing = "stop_base, which guards this node, has ended: start it, or this bringup, again"

    def timeout(self) -> str:
        """Warning about a guard that runs and does not reply; empty where it does, or where there is none."""
        silent = time.monotonic() - self._last_reply
        if self._connection is None or silent < _HANGING:
            return ""
        return f"stop_base, which guards this node, has not answered for {silent:.0f} s: start this bringup again"

    def goodbye(self) -> None:
        """Report to the guard that the base stands and this node ends."""
        self._send(_GOODBYE)

    def _send(self, message: bytes) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):  # the guard hangs, or has ended, which reading shows
                self._connection.send(message)
