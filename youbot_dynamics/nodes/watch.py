"""Node watch: where the base is and what the nodes report, for a live view; it only listens."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from youbot_dynamics.arrays import Vector
from youbot_dynamics.nodes._messages import pose_vector
from youbot_dynamics.nodes._runtime import STATE_QOS, make_executor

_SHOW = 0.2  # [s] between two views


class Watch(Node):
    """Keeps the newest pose (x, y, yaw) and the newest values of each status: name of the status -> key -> text."""

    def __init__(self) -> None:
        super().__init__("watch")
        self.pose: Vector = np.full(3, np.nan)
        self.values: dict[str, dict[str, str]] = {}
        self.create_subscription(Odometry, "odom", self._on_odometry, STATE_QOS)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_odometry(self, message: Odometry) -> None:
        self.pose = pose_vector(message.pose.pose)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.values[status.name] = {value.key: value.value for value in status.values}


def watch(ended: Callable[[], bool], show: Callable[[Watch], None]) -> None:
    """Listen until `ended`, and `show` what was heard five times a second and at the end; Ctrl-C is the caller's."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node, shown = Watch(), 0.0
    try:
        with make_executor(node) as executor:
            while not ended():
                executor.spin_once(timeout_sec=0.05)
                if time.monotonic() - shown > _SHOW:
                    shown = time.monotonic()
                    show(node)
        show(node)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()
