"""Who publishes and who subscribes on a topic, as plain values: what nodes judge the ROS graph by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo

_UNKNOWN = "_NODE_NAME_UNKNOWN_"  # rmw's name of a node whose endpoint was heard of before the node itself


@dataclass(frozen=True)
class Endpoint:
    """One publisher or subscription.

    Args:
        node: full name of the node that has it; empty while it is not known.
        kind: message type, such as `geometry_msgs/msg/Twist`.
        reliable: whether it offers, or asks for, reliable delivery.
        latched: whether it keeps, or asks for, the last messages for late joiners (transient local).
        depth: of its queue; 0 where the middleware does not tell.
    """

    node: str
    kind: str
    reliable: bool = True
    latched: bool = False
    depth: int = 0


@dataclass(frozen=True)
class TopicEnds:
    """A topic and its ends.

    Args:
        name: resolved.
        publishers: of the topic.
        subscriptions: to the topic.
    """

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
    return TopicEnds(
        name,
        _endpoints(node.get_publishers_info_by_topic(name)),
        _endpoints(node.get_subscriptions_info_by_topic(name)),
    )


def _endpoints(found: Sequence[TopicEndpointInfo]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            "" if info.node_name == _UNKNOWN else f"{info.node_namespace.rstrip('/')}/{info.node_name}",
            info.topic_type,
            info.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
            info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
            info.qos_profile.depth,
        )
        for info in found
    )
