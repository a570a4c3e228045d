"""Sockets between the processes of one bringup on one machine; without ROS, so that the bringup can speak on them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket

LOST, BACK = "lost", "back"  # what has become of a part of the bringup
_NEWS = "news"
_LONGEST = 2000  # [B] of one piece of news


def local_socket(kind: int = socket.SOCK_SEQPACKET) -> socket.socket:
    """Return a socket that keeps messages apart and never waits."""
    return socket.socket(socket.AF_UNIX, kind | socket.SOCK_NONBLOCK)


def address(kind: str, domain: int, topic: str) -> str:
    """Name of the socket of a kind of node, in a domain, on a topic by its full name, of this user."""
    whose = f"{os.getuid()} {domain} {kind} {topic}"
    return f"\0youbot_dynamics/{hashlib.sha256(whose.encode()).hexdigest()}"


def tell(namespace: str, item: str, level: str, text: str) -> None:
    """Let the stop_base of a bringup say on /diagnostics what has become of a part of it.

    A passive bringup has no stop_base: there nobody hears it.

    Args:
        namespace: of the bringup.
        item: what it is about.
        level: LOST or BACK.
        text: of the status.
    """
    topic = f"/{namespace.strip('/')}/wheel_commands".replace("//", "/")
    news = json.dumps([item, level, text]).encode()[:_LONGEST]
    with local_socket(socket.SOCK_DGRAM) as line, contextlib.suppress(OSError):
        line.sendto(news, address(_NEWS, int(os.environ.get("ROS_DOMAIN_ID") or 0), topic))


class News:
    """Hears what `tell` tells.

    Args:
        domain: of the node that hears.
        topic: its wheel_commands, by the full name.
    """

    def __init__(self, domain: int, topic: str) -> None:
        self._line = local_socket(socket.SOCK_DGRAM)
        self._line.bind(address(_NEWS, domain, topic))

    def read(self) -> dict[str, tuple[str, str]]:
        """What has been told since the last time: item -> level and text."""
        news = {}
        with contextlib.suppress(BlockingIOError):
            while True:
                item, level, text = json.loads(self._line.recv(_LONGEST))
                news[item] = (level, text)
        return news
