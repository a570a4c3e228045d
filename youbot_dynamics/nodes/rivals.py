"""Whether another node does already what this one is to do: two of a kind on the same topics would alternate.

On one machine a socket in the name of the topic is claimed (`local_socket.claim`), which is certain and takes no time;
the kernel frees it with its process. Other machines, containers and users are seen on the graph, where a process was
seen to need four seconds to be known: so a newcomer keeps looking for a while, and gives way; who was there first goes
on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from rclpy.node import Node

from youbot_dynamics.nodes.local_socket import occupied
from youbot_dynamics.nodes.topic_graph import ends_of

LOOK = 1.0  # [s] from the birth of a node for which it looks before it speaks


def refuse_rivals(node: Node, topic: str, others: Sequence[str], until: float = 0.0, mine: int = 0) -> None:
    """Look, up to the time `until` on the steady clock [s], for nodes that do what this one does.

    A rival publishes on `topic` and on one at least of `others`; `mine` of the publishers on `topic` are of this node.
    One look is always taken. A second node of the same name counts.

    Raises:
        ResourceError: there is one; it is named.
    """
    while True:
        count = Counter(end.node for end in ends_of(node, topic).publishers if end.node)
        count[node.get_fully_qualified_name()] -= mine
        names = {name for name, publishers in count.items() if publishers > 0}
        if names:
            names &= {name for other in others for name in ends_of(node, other).speakers()}
        if names:
            raise occupied(node, topic, f"{', '.join(sorted(names))}, there already")
        if time.monotonic() >= until:
            return
        time.sleep(0.05)
