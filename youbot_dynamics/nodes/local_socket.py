"""Sockets between the processes of one bringup on one machine; without ROS, so that the bringup can speak on them.

The line between base_controller and the stop_base that guards it is one. No topic serves: rclpy does not tell a
callback who published, so that a stranger or a replayed bag would pass for the controller. On a socket the kernel knows
the other end, and tells at once that its process has ended. Both find each other by domain and topic, so both must run
on one machine (in one container), as bringup starts them.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import socket
import struct
import time
from typing import TYPE_CHECKING

from youbot_dynamics.errors import ResourceError, printable

if TYPE_CHECKING:
    from rclpy.node import Node

LOST, BACK = "lost", "back"  # what has become of a part of the bringup
_GUARD, _NEWS, _TOPIC = "stop_base for a base_controller", "news", "wheel_commands"
_LONGEST = 2000  # [B] of one piece of news; a letter takes up to 4
_AT_ONCE = 20  # pieces of news at one look
_IDLE, _DRIVING, _FAREWELL, _ANSWER = b"i", b"d", b"f", b"a"
_WHO = struct.Struct("3i")  # process, user and group, by the kernel
_HANGING = 5.0  # [s] without an answer of the guard: it looks at the line every 0.05 s, a stop may take it 4 s


def _socket(kind: int = socket.SOCK_SEQPACKET) -> socket.socket:
    """Return a socket that keeps messages apart and never waits."""
    return socket.socket(socket.AF_UNIX, kind | socket.SOCK_NONBLOCK)


def _address(kind: str, domain: int, topic: str) -> str:
    """Name of the socket of a kind of node, in a domain, on a topic by its full name, of this user."""
    whose = f"{os.getuid()} {domain} {kind} {topic}"
    return f"\0youbot_dynamics/{hashlib.sha256(whose.encode()).hexdigest()}"


def _address_of(node: Node, kind: str, topic: str) -> str:
    return _address(kind, node.context.get_domain_id(), node.resolve_topic_name(topic))


def claim(node: Node, kind: str, topic: str) -> socket.socket:
    """Be the one of a kind on a topic, on this machine, for as long as the socket returned is kept.

    Raises:
        ResourceError: another process is; it is named.
    """
    claimed, name = _socket(), _address_of(node, kind, topic)
    try:
        claimed.bind(name)
    except OSError:
        holder = _holder(name)
        if holder != os.getpid():  # else a node of ours that is gone, and not yet collected
            raise occupied(node, topic, f"another {kind}, process {holder}") from None
        return claimed
    claimed.listen()
    return claimed


def _holder(name: str) -> int:
    """Process that listens at an address; 0 where it has just gone."""
    with _socket() as line:
        try:
            line.connect(name)
        except OSError:
            return 0
        return _peer(line)[0]


def _peer(line: socket.socket) -> tuple[int, int, int]:
    """Process, user and group at the other end."""
    process, user, group = _WHO.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _WHO.size))
    return process, user, group


def _read(line: socket.socket) -> bytes:
    """What comes next of the other end; nothing where it has ended.

    Raises:
        BlockingIOError: nothing has come yet.
    """
    try:
        return line.recv(1)
    except BlockingIOError:
        raise
    except OSError:
        return b""


def occupied(node: Node, topic: str, who: str) -> ResourceError:
    """Error of a topic that belongs to another user."""
    return ResourceError(
        f"topic {node.resolve_topic_name(topic)}",
        got=who,
        expected="nobody else",
        remedy="end the other bringup, or give this one its own namespace or ROS_DOMAIN_ID",
    )


def tell(namespace: str, item: str, level: str, text: str) -> None:
    """Let the stop_base of the bringup in a namespace say on /diagnostics that a part of it is LOST or BACK.

    A passive bringup has no stop_base: there nobody hears it.
    """
    topic = f"/{namespace.strip('/')}/{_TOPIC}".replace("//", "/")
    news = json.dumps([item, level, text[: _LONGEST // 5]], ensure_ascii=False).encode(errors="replace")
    with _socket(socket.SOCK_DGRAM) as line, contextlib.suppress(OSError):  # nobody hears
        line.sendto(news, _address(_NEWS, domain_of_environment(), topic))


def domain_of_environment() -> int:
    """Number in ROS_DOMAIN_ID as rcl reads it: 0x2A and 010 are numbers too; 0 where there is none."""
    return int(ctypes.CDLL(None).strtoul(os.fsencode(os.environ.get("ROS_DOMAIN_ID", "")), None, 0))


class GuardEnd:
    """The end of stop_base, at which the controller calls and the bringup tells.

    Attributes:
        driving: whether the controller has sent anything to the driver.
        moving: whether it has since the guard stopped the base, which sets this to False.
        parted: whether it has said that its last zero has arrived.

    Raises:
        ResourceError: another guard is there already; it is named.
    """

    def __init__(self, node: Node) -> None:
        self._server = claim(node, _GUARD, _TOPIC)
        self._news = _socket(socket.SOCK_DGRAM)
        self._news.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._news.bind(_address_of(node, _NEWS, _TOPIC))
        self._line: socket.socket | None = None
        self._heard = float("-inf")
        self.driving = self.moving = self.parted = False

    def quiet_for(self) -> float:
        """Time since the controller's last beat [s]; infinite where it has ended."""
        if self._line is None:  # a second bringup calls too, to see who is there
            with contextlib.suppress(OSError):  # nobody calls
                line, _ = self._server.accept()
                line.setblocking(False)
                if _peer(line)[1] == os.getuid():  # anybody on this machine can call
                    self._line, self.driving, self.parted = line, False, False
        with contextlib.suppress(BlockingIOError):
            while self._line is not None:
                beat = _read(self._line)
                self._heard = time.monotonic() if beat else float("-inf")
                self._line = self._line if beat else None
                self.driving |= beat == _DRIVING
                self.moving |= beat == _DRIVING
                self.parted |= beat == _FAREWELL
        if self._line is not None:
            with contextlib.suppress(OSError):  # it hangs, or has ended
                self._line.send(_ANSWER)
        return time.monotonic() - self._heard

    def news(self) -> dict[str, tuple[str, str]]:
        """What has been told since the last time: item -> level and text."""
        news = {}
        for _ in range(_AT_ONCE):
            try:
                letter, ((_, _, sender),), *_ = self._news.recvmsg(_LONGEST, socket.CMSG_SPACE(_WHO.size))
            except BlockingIOError:
                break
            if _WHO.unpack(sender)[1] != os.getuid():  # anybody on this machine can send
                continue
            with contextlib.suppress(ValueError, TypeError, RecursionError):  # not by `tell`
                item, level, text = (printable(str(word)) for word in json.loads(letter))
                if level in (LOST, BACK):
                    news[item] = (level, text)
        return news

    def leave(self) -> None:
        """Let the controller know that it is guarded no longer, and go on hearing it."""
        self._server.close()
        if self._line is not None:
            with contextlib.suppress(OSError):  # it has ended itself
                self._line.shutdown(socket.SHUT_WR)


class ControllerEnd:
    """The controller's end; a controller that was never guarded drives without a guard.

    Attributes:
        lost: what has become of the guard; empty where all is well.
    """

    def __init__(self, node: Node) -> None:
        self._address = _address_of(node, _GUARD, _TOPIC)
        self._line: socket.socket | None = None
        self._answered = 0.0
        self.lost = ""
        self.call()

    def call(self) -> None:
        """Look for a guard where there is none."""
        if self._line is not None:
            return
        line = _socket()
        with contextlib.suppress(OSError):  # nobody is there
            line.connect(self._address)
            if _peer(line)[1] == os.getuid():
                self._line, self.lost, self._answered = line, "", time.monotonic()
                return
        line.close()

    def beat(self, driving: bool) -> None:
        """Tell the guard that commands go on, and see whether it is there; every control period."""
        self._say(_DRIVING if driving else _IDLE)
        if self._line is None:
            return
        with contextlib.suppress(BlockingIOError):
            while _read(self._line):
                self._answered = time.monotonic()
            self._line.close()
            self._line = None
            self.lost = "stop_base, which guards this node, has ended: start it, or this bringup, again"

    def silence(self) -> str:
        """Complaint about a guard that is there and does not answer; empty where it does, or where there is none."""
        silent = time.monotonic() - self._answered
        if self._line is None or silent < _HANGING:
            return ""
        return f"stop_base, which guards this node, has not answered for {silent:.0f} s: start this bringup again"

    def part(self) -> None:
        """Tell the guard that the base stands and this node ends."""
        self._say(_FAREWELL)

    def _say(self, beat: bytes) -> None:
        if self._line is not None:
            with contextlib.suppress(OSError):  # the guard hangs and has not read for long, or is gone: reading tells
                self._line.send(beat)
