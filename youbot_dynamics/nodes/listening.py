"""Subscriptions to what others publish: reliable, until somebody offers less.

A reliable subscription hears nothing of a best-effort publisher, as many drivers of sensors and some operators are.
One of best effort hears both, but may lose messages of a reliable publisher: so it is asked for only when it must be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rclpy.event_handler import QoSRequestedIncompatibleQoSInfo, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription


@dataclass
class Listener:
    """A subscription that asks for less where it has to; made by `listen`.

    Args:
        subscription: of the moment.
        best_effort: whether it has come to that.
    """

    subscription: Subscription
    best_effort: bool = False


def listen(node: Node, kind: type, topic: str, take: Callable[[Any], None], quality: QoSProfile) -> Listener:
    """Subscribe to a topic of others.

    Args:
        node: that listens.
        kind: of the messages.
        topic: name.
        take: called with each message.
        quality: reliable; its reliability gives way, said once in the log, to a publisher that offers best effort.
    """

    def incompatible(event: QoSRequestedIncompatibleQoSInfo) -> None:
        if not listener.best_effort and node.executor is not None:
            # Not here: this very callback belongs to the subscription that goes.
            node.executor.create_task(give_way)

    def give_way() -> None:
        if listener.best_effort:
            return
        listener.best_effort = True
        name = node.resolve_topic_name(topic)
        node.get_logger().warning(
            f"{name} is published with best effort: taken as it comes, messages may be lost; let its publisher be "
            "reliable where it can"
        )
        node.destroy_subscription(listener.subscription)
        less = QoSProfile(depth=quality.depth, reliability=ReliabilityPolicy.BEST_EFFORT)
        listener.subscription = node.create_subscription(kind, topic, take, less)

    events = SubscriptionEventCallbacks(incompatible_qos=incompatible)
    listener = Listener(node.create_subscription(kind, topic, take, quality, event_callbacks=events))
    return listener
