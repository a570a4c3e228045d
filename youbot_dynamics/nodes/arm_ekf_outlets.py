"""What node arm_ekf publishes: its topics, and messages that are filled again instead of made anew."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import InertiaStamped, PointStamped
from numpy.typing import NDArray
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import JointState, Temperature
from std_msgs.msg import Float64

from youbot_dynamics.estimation.arm_temperatures import MotorLimits
from youbot_dynamics.estimation.motor_heat import HeatBelief
from youbot_dynamics.estimation.payload import PayloadBelief
from youbot_dynamics.estimation.support import Support
from youbot_dynamics.nodes.messages import to_time
from youbot_dynamics.nodes.runtime import STATE_QOS
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]


class JointOutlet:
    """A topic of joint states whose joints stay the same: one message serves for all.

    Args:
        publisher: of JointState.
        names: of the joints, n.
    """

    def __init__(self, publisher: Publisher, names: Sequence[str]) -> None:
        self._publisher = publisher
        self._message = JointState(name=list(names))

    def publish(
        self, stamp: float, position: Vector | None = None, velocity: Vector | None = None, effort: Vector | None = None
    ) -> None:
        """Publish the fields that are given, each (n,), at a stamp [s]; a topic has the same ones each time."""
        message = self._message
        message.header.stamp = to_time(stamp)
        if position is not None:
            message.position = _numbers(position)
        if velocity is not None:
            message.velocity = _numbers(velocity)
        if effort is not None:
            message.effort = _numbers(effort)
        self._publisher.publish(message)


class ArmOutlets:
    """The topics of the node.

    Args:
        node: that has them.
        robot: whose joints and wheels they tell of.
        frame_prefix: before the names of all frames.
        base_frame: on the floor below the middle of the wheels.

    Attributes:
        estimated: positions, speeds and efforts of the arm.
        friction: efforts.
        feedforward: efforts.
    """

    def __init__(self, node: Node, robot: Robot, frame_prefix: str, base_frame: str) -> None:
        self._node = node
        joints, wheels = robot.driver.arm_joints, robot.driver.wheel_joints
        self._frames = tuple(frame_prefix + name for name in robot.arm.model().tree.names)
        self.estimated = self._joints("arm_1/estimated_joint_states", joints)
        self.friction = self._joints("arm_1/friction", joints)
        self.feedforward = self._joints("arm_1/friction_feedforward", joints)
        self._available = self._joints("arm_1/torque_available", joints)
        self._warmth = [
            tuple(self._publisher(Temperature, f"arm_1/{joint}/{part}_temperature") for part in ("winding", "housing"))
            for joint in joints
        ]
        self._payload = self._publisher(InertiaStamped, "payload")
        self._margin = self._publisher(Float64, "tip_over_margin")
        self._normals = self._joints("wheel_normal_forces", wheels)
        self._centre = self._publisher(PointStamped, "centre_of_mass")
        self._base_frame = frame_prefix + base_frame

    def _publisher(self, kind: type, topic: str) -> Publisher:
        # A publisher's events are looked at before every message; 18 of them cost as much as all estimates. What they
        # tell, a reader whose QoS does not fit, that reader is told as well.
        return self._node.create_publisher(
            kind, topic, STATE_QOS, event_callbacks=PublisherEventCallbacks(use_default_callbacks=False)
        )

    def _joints(self, topic: str, names: Sequence[str]) -> JointOutlet:
        return JointOutlet(self._publisher(JointState, topic), names)

    def publish_payload(self, stamp: float, found: PayloadBelief) -> None:
        """Publish mass and place in the last link's frame, at a stamp [s]."""
        message = InertiaStamped()
        message.header.stamp, message.header.frame_id = to_time(stamp), self._frames[-1]
        message.inertia.m = max(0.0, found.mass)
        com = message.inertia.com
        com.x, com.y, com.z = found.centre.tolist()
        self._payload.publish(message)

    def publish_support(self, stamp: float, found: Support) -> None:
        """Publish margin, normal forces and centre of mass, at a stamp [s]."""
        self._margin.publish(Float64(data=found.margin))
        self._normals.publish(stamp, effort=found.normal_forces)
        message = PointStamped()
        message.header.stamp, message.header.frame_id = to_time(stamp), self._base_frame
        message.point.x, message.point.y, message.point.z = found.centre_of_mass.tolist()
        self._centre.publish(message)

    def publish_heat(self, stamp: float, beliefs: Sequence[HeatBelief], limits: Sequence[MotorLimits]) -> None:
        """Publish the temperatures and torques available of all motors, at a stamp [s]."""
        for publishers, belief, frame in zip(self._warmth, beliefs, self._frames, strict=True):
            told = ((belief.winding, belief.winding_deviation), (belief.housing, belief.housing_deviation))
            for publisher, (temperature, deviation) in zip(publishers, told, strict=True):
                message = Temperature(temperature=temperature, variance=deviation**2)
                message.header.stamp, message.header.frame_id = to_time(stamp), frame
                publisher.publish(message)
        self._available.publish(stamp, effort=np.array([one.torque for one in limits]))


def _numbers(values: Vector) -> array[float]:
    """Numbers (n,) as messages keep them: anything else they copy one by one."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())
