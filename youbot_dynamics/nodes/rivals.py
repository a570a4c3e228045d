"""Whether another node does already what this one is to do: two of a kind on the same topics would alternate.

On one machine a socket in the name of the topic is claimed, which is certain and takes no time; the kernel frees it
with its process. Other machines, containers and users are seen on the graph, where a process was seen to need four
seconds to be known: so a newcomer keeps looking for a while, and gives way; who was there first goes on.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections import Counter
from collections.abc import Sequence

from rclpy.node import Node

from youbot_dynamics.errors import ResourceError
from youbot_dynamics.nodes.local_socket import address, local_socket
from youbot_dynamics.nodes.topic_graph import ends_of

LOOK = 1.0  # [s] from the birth of a node for which it looks before it speaks
_CREDENTIALS = struct.Struct("3i")  # process, user and group of the other end: SO_PEERCRED in man 7 unix


def address_of(node: Node, kind: str, topic: str) -> str:
    """Name of the socket of a kind of node on a topic, as `node` resolves it."""
    return address(kind, node.context.get_domain_id(), node.resolve_topic_name(topic))


def claim(node: Node, kind: str, topic: str) -> socket.socket:
    """Be the one of a kind on a topic, on this machine, for as long as the socket returned is kept.

    Raises:
        ResourceError: another process is; it is named.
    """
    claimed, name = local_socket(), address_of(node, kind, topic)
    try:
        claimed.bind(name)
    except OSError:
        holder = _holder(name)
        if holder != os.getpid():  # else a node of ours that is gone, and not yet collected
            raise _second(node, topic, f"a {kind} that is there already, process {holder}") from None
        return claimed
    claimed.listen()
    return claimed


def _holder(name: str) -> int:
    """Process that listens at an address; 0 where it has just gone."""
    with local_socket() as line:
        try:
            line.connect(name)
        except OSError:
            return 0
        return int(_CREDENTIALS.unpack(line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0])


def refuse_rivals(node: Node, topic: str, others: Sequence[str], until: float = 0.0, mine: int = 0) -> None:
    """Look, up to the time `until` on the steady clock [s], for nodes that do what this one does.

    Args:
        node: that looks.
        topic: on which a rival publishes,
        others: and on at least one of these too.
        until: end of the look; one look is always taken.
        mine: publishers on `topic` of this node.

    Raises:
        ResourceError: there is one; it is named.
    """
    while True:
        names = rivals(node, topic, others, mine)
        if names:
            raise _second(node, topic, f"{', '.join(names)}, there already")
        if time.monotonic() >= until:
            return
        time.sleep(0.05)


def rivals(node: Node, topic: str, others: Sequence[str], mine: int) -> list[str]:
    """Full names of nodes that publish on a topic and on one of the others, as this one does.

    A second node of the same name counts: it publishes where `mine` publishers are known already.
    """
    count = Counter(end.node for end in ends_of(node, topic).publishers if end.node)
    count[node.get_fully_qualified_name()] -= mine
    names = {name for name, publishers in count.items() if publishers > 0}
    if not names:
        return []
    return sorted(name for name in names if any(name in ends_of(node, other).speakers() for other in others))


def _second(node: Node, topic: str, who: str) -> ResourceError:
    return ResourceError(
        f"topic {node.resolve_topic_name(topic)}",
        got=who,
        expected="nobody else",
        remedy="end the other bringup, or give this one a namespace or a ROS_DOMAIN_ID of its own",
    )
