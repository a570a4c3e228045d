"""Subscriptions to topics of other programs: reliable, until a publisher offers best effort only.

A reliable subscription is incompatible with a best-effort publisher, as many drivers of sensors and some operators are.
One of best effort receives from both, but may lose messages of a reliable publisher: so it is the second choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rclpy.event_handler import QoSRequestedIncompatibleQoSInfo, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState

from youbot_dynamics.nodes._messages import seconds
from youbot_dynamics.recording.message_types import LAST_STAMP
from youbot_dynamics.recording.series import JointSample, JointSamples

# Best effort, as drivers of IMUs publish: it is also compatible with a reliable one. A second of 200 Hz is kept.
_IMU_QOS = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
_NO_RATES = -1.0  # first element of the covariance in a message without them, by the definition of sensor_msgs/Imu

TakeJoints = Callable[[float, tuple[str, ...], Sequence[float], Sequence[float], Sequence[float]], None]


def listen(
    node: Node, kind: type, topic: str, take: Callable[[Any], None], quality: QoSProfile, raw: bool = False
) -> None:
    """Subscribe with a reliable `quality`; a best-effort publisher lowers it, with one warning.

    `raw`: the serialized bytes are passed on, since rclpy decodes slowly.
    """
    best_effort = QoSProfile(depth=quality.depth, reliability=ReliabilityPolicy.BEST_EFFORT)

    def incompatible(event: QoSRequestedIncompatibleQoSInfo) -> None:
        if node.executor is not None:
            # As a task: this callback belongs to the subscription that is destroyed.
            node.executor.create_task(subscribe_again)

    def subscribe_again() -> None:
        if subscription not in node.subscriptions:
            return
        name = node.resolve_topic_name(topic)
        node.get_logger().warning(
            f"{name} is published with best effort: messages may be lost; make its publisher reliable if possible"
        )
        node.destroy_subscription(subscription)
        node.create_subscription(kind, topic, take, best_effort, raw=raw)

    events = SubscriptionEventCallbacks(incompatible_qos=incompatible)
    subscription = node.create_subscription(kind, topic, take, quality, event_callbacks=events, raw=raw)


def joint_samples() -> Callable[[bytes], JointSample | None]:
    """Make a decoder of serialized joint states, faster than rclpy's.

    It returns None for bytes that are none, and for a stamp that no message could pass on: one of 2**32 - 1 ns beyond
    the last second is a legal message.
    """
    samples = JointSamples(lambda data: deserialize_message(data, JointState))

    def decode(data: bytes) -> JointSample | None:
        try:
            sample = samples(data)
        except RuntimeError:  # rclpy does not export its RMWError
            return None
        return sample if sample.stamp <= LAST_STAMP else None

    return decode


def listen_joints(node: Node, topic: str, take: TakeJoints, quality: QoSProfile) -> None:
    """Subscribe to joint states; what `joint_samples` does not decode is dropped.

    `take` gets stamp [s], names, positions, velocities and efforts.
    """
    samples = joint_samples()

    def decode(data: bytes) -> None:
        if (sample := samples(data)) is not None:
            names, stamp, *fields = sample
            seconds, nanoseconds = divmod(stamp, 1_000_000_000)
            take(seconds + 1e-9 * nanoseconds, names, *(memoryview(field).cast("d") for field in fields))

    listen(node, JointState, topic, decode, quality, raw=True)


def listen_yaw_rate(node: Node, take: Callable[[float, float], None]) -> None:
    """Subscribe to the gyro of an upright IMU on `imu`; `take` gets stamp [s] and angular_velocity.z [rad/s]."""

    def decode(message: Imu) -> None:
        if message.angular_velocity_covariance[0] != _NO_RATES:
            take(seconds(message.header.stamp), message.angular_velocity.z)

    node.create_subscription(Imu, "imu", decode, _IMU_QOS)
