"""Serialised messages of any topic, as the topics appear on the network."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from youbot_dynamics.nodes._runtime import steady_timer
from youbot_dynamics.recording.mcap_writer import TopicQos
from youbot_dynamics.recording.message_types import is_known

_DISCOVERY = 0.25  # [s] between searches for new topics
_THOROUGH = 20  # each so-many-th search queries every publisher, the others where their number has changed
_DEPTH = 1000
IGNORED = ("/rosout", "/parameter_events")

Sink = Callable[[str, str, TopicQos, bytes], None]  # of topic, type, quality of service and CDR bytes


class TopicRecorder:
    """Subscribes to topics once they have a publisher and passes on every message serialized.

    `wanted` selects topics by their resolved names; `past`: whether latched messages from before are recorded.
    """

    def __init__(self, node: Node, wanted: Callable[[str], bool], sink: Sink, past: bool = True) -> None:
        self._node, self._wanted, self._sink, self._past = node, wanted, sink, past
        self._ignored: set[str] = set(IGNORED)
        self.topics: dict[str, str] = {}
        self._subscribed: dict[str, TopicQos] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._counts: dict[str, int] = {}
        self._searches = 0
        self._discover()
        self._timer = steady_timer(node, _DISCOVERY, self._discover)

    def skip(self) -> None:
        """Drop messages that were received and not passed on yet."""
        for subscription in self._subscriptions.values():
            with subscription.handle:
                while subscription.handle.take_message(subscription.msg_type, True) is not None:
                    pass

    def close(self) -> None:
        """End all subscriptions."""
        self._node.destroy_timer(self._timer)
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.popitem()[1])

    def _discover(self) -> None:
        self._searches += 1
        if self._searches % _THOROUGH == 0:
            self._counts.clear()
        for topic, _ in self._node.get_topic_names_and_types():
            if topic in self._ignored or not self._wanted(topic):
                continue
            count = self._node.count_publishers(topic)
            if count == self._counts.get(topic, 0):
                continue
            publishers = self._node.get_publishers_info_by_topic(topic)
            self._counts[topic] = len(publishers)
            if not publishers:
                continue
            # A subscriber or a later publisher may have another type: a bag has one type for each topic.
            kind = self.topics.get(topic, publishers[0].topic_type)
            offered = [info.qos_profile for info in publishers if info.topic_type == kind]
            quality = TopicQos(
                reliable=all(qos.reliability == ReliabilityPolicy.RELIABLE for qos in offered),
                transient_local=all(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for qos in offered),
            )
            before = self._subscribed.get(topic)
            if before is None:
                self._subscribe(topic, kind, quality)
            elif (before.reliable and not quality.reliable) or (before.transient_local and not quality.transient_local):
                # A new publisher offers less than was requested.
                self._node.destroy_subscription(self._subscriptions[topic])
                self._subscribe(topic, kind, quality)

    def _subscribe(self, topic: str, type_name: str, quality: TopicQos) -> None:
        kind = _message_class(type_name)
        if kind is None:
            self._ignored.add(topic)
            text = f"not recorded: {topic}, its type {type_name} is not installed or unknown to the bag library"
            self._node.get_logger().warning(text)
            return
        latched = quality.transient_local and self._past
        profile = QoSProfile(
            depth=_DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if quality.reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )

        self.topics[topic] = type_name
        self._subscribed[topic] = quality
        self._subscriptions[topic] = self._node.create_subscription(
            kind, topic, lambda data: self._sink(topic, type_name, quality, data), profile, raw=True
        )


def _message_class(type_name: str):
    """Class of a message type such as `sensor_msgs/msg/JointState`; None where it is not installed, or unknown to bags.

    An unknown one is not imported: its name comes from the network.
    """
    package, _, name = type_name.partition("/msg/")
    if not is_known(type_name):
        return None
    try:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    except (ImportError, AttributeError):
        return None
