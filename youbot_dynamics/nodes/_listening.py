"""Subscriptions to what others publish: reliable, until somebody offers less.

A reliable subscription hears nothing of a best-effort publisher, as many drivers of sensors and some operators are.
One of best effort hears both, but may lose messages of a reliable publisher: so it is asked for only when it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rclpy.event_handler import QoSRequestedIncompatibleQoSInfo, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from youbot_dynamics.recording.series import JointSamples

TakeJoints = Callable[[float, tuple[str, ...], Sequence[float], Sequence[float], Sequence[float]], None]


@dataclass
class Listener:
    """A subscription that asks for less where it has to; made by `listen`."""

    subscription: Subscription
    best_effort: bool = False


def listen(
    node: Node, kind: type, topic: str, take: Callable[[Any], None], quality: QoSProfile, raw: bool = False
) -> Listener:
    """Subscribe to a topic of others.

    The reliable `quality` gives way, said once in the log, to a publisher that offers best effort. A `raw` one hands
    over the bytes that came: decoding takes longer than all else.
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
            f"{name} is published with best effort: messages may be lost; make its publisher reliable if possible"
        )
        node.destroy_subscription(listener.subscription)
        less = QoSProfile(depth=quality.depth, reliability=ReliabilityPolicy.BEST_EFFORT)
        listener.subscription = node.create_subscription(kind, topic, take, less, raw=raw)

    events = SubscriptionEventCallbacks(incompatible_qos=incompatible)
    listener = Listener(node.create_subscription(kind, topic, take, quality, event_callbacks=events, raw=raw))
    return listener


def listen_joints(node: Node, topic: str, take: TakeJoints, quality: QoSProfile) -> Listener:
    """Subscribe to joint states of others, decoded faster than rclpy does it; bytes that are none are dropped.

    `take` gets stamp [s], names, positions, velocities and efforts.
    """
    samples = JointSamples(lambda data: deserialize_message(data, JointState))

    def decode(data: bytes) -> None:
        try:
            names, stamp, *fields = samples(data)
        except RuntimeError:  # rclpy does not export its RMWError
            return
        seconds, rest = divmod(stamp, 1_000_000_000)
        take(seconds + 1e-9 * rest, names, *(memoryview(field).cast("d") for field in fields))

    return listen(node, JointState, topic, decode, quality, raw=True)
