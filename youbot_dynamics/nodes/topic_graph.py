"""Who publishes and who subscribes on a topic, as plain values: what nodes judge the ROS graph by.

Two nodes of a kind on the same topics would alternate, so the second refuses to start (`refuse_rivals`). On one machine
`local_socket.claim` notices it at once; other machines, containers and users are seen on the graph, where a process was
seen to need four seconds to be known: so a newcomer keeps looking for a while, and gives way.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo

from youbot_dynamics.nodes.local_socket import occupied

LOOK = 1.0  # [s] from the birth of a node for which it looks before it speaks
_AGE = 10.0  # [s] after which ends are asked for anew though their numbers are the same
_UNKNOWN = "_NODE_NAME_UNKNOWN_"  # rmw's name of a node whose endpoint was heard of before the node itself


@dataclass(frozen=True)
class Endpoint:
    """One publisher or subscription."""

    node: str  # full name of the node that has it; empty while it is not known
    kind: str  # message type, such as geometry_msgs/msg/Twist
    reliable: bool = True  # it offers, or asks for, reliable delivery
    latched: bool = False  # it keeps, or asks for, the last messages for late joiners (transient local)


@dataclass(frozen=True)
class TopicEnds:
    """A topic, by its resolved name, and its ends."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscriptions: tuple[Endpoint, ...] = ()

    def speakers(self) -> frozenset[str]:
        """Names of the nodes that publish."""
        return frozenset(end.node for end in self.publishers if end.node)

    def listeners(self) -> frozenset[str]:
        """Names of the nodes that subscribe."""
        return frozenset(end.node for end in self.subscriptions if end.node)


def ends_of(node: Node, topic: str) -> TopicEnds:
    """Ends of a topic as `node` sees them; the name is resolved as for the node's own topics, remappings included."""
    name = node.resolve_topic_name(topic)
    sides = node.get_publishers_info_by_topic(name), node.get_subscriptions_info_by_topic(name)
    return TopicEnds(name, *(tuple(map(_endpoint, side)) for side in sides))


def _endpoint(info: TopicEndpointInfo) -> Endpoint:
    return Endpoint(
        "" if info.node_name == _UNKNOWN else f"{info.node_namespace.rstrip('/')}/{info.node_name}",
        info.topic_type,
        info.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
        info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
    )


class EndsWatch:
    """Ends of some topics as a node sees them, asked for anew where their number changed: to count them is cheap."""

    def __init__(self, node: Node, topics: Sequence[str]) -> None:
        self._node = node
        self._names = {topic: node.resolve_topic_name(topic) for topic in topics}
        self._kept: dict[str, tuple[tuple[int, int], TopicEnds]] = {}
        self._begun = time.monotonic()

    def ends(self) -> dict[str, TopicEnds]:
        """Ends of each topic, by the names that were given."""
        now = time.monotonic()
        if now - self._begun >= _AGE:
            self._begun, self._kept = now, {}
        for topic, name in self._names.items():
            numbers = self._node.count_publishers(name), self._node.count_subscribers(name)
            kept = self._kept.get(topic)
            ends = ends_of(self._node, topic) if kept is None or kept[0] != numbers else kept[1]
            # The node of an end may be heard of later than the end.
            unknown = any(not end.node for end in (*ends.publishers, *ends.subscriptions))
            self._kept[topic] = ((-1, -1) if unknown else numbers, ends)
        return {topic: ends for topic, (_, ends) in self._kept.items()}


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
