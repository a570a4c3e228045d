"""Time of a simulated robot: the machine's, or its own on /clock."""

from __future__ import annotations

import time

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage

from youbot_dynamics.nodes.messages import to_time
from youbot_dynamics.nodes.runtime import COMMAND_QOS


class MachineTime:
    """The plant runs on the steady clock, its stamps are those of the node's clock."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def now(self) -> float:
        """Time of the plant [s]."""
        return time.monotonic()

    def next(self) -> float:
        """Time up to which to simulate in this pass of the loop [s]."""
        return self.now()

    def shift(self) -> float:
        """From the plant's time to that of the stamps [s]."""
        return 1e-9 * self._node.get_clock().now().nanoseconds - time.monotonic()


class OwnTime:
    """The plant is the clock: whole periods of its loop, as many a second as asked for, or as it can.

    Args:
        node: that publishes /clock.
        period: of the loop, in simulated time [s].
        factor: simulated time over real time.
    """

    def __init__(self, node: Node, period: float, factor: float) -> None:
        self._publisher = node.create_publisher(ClockMessage, "/clock", COMMAND_QOS)
        self._period, self._factor = period, factor
        # It begins as the machine's, so that bags need not start in 1970; a jump back by a fault stays positive.
        self._start = float(int(Clock(clock_type=ClockType.SYSTEM_TIME).now().nanoseconds * 1e-9))
        self._passes = 0
        self._since = time.monotonic()

    def now(self) -> float:
        """Time of the plant [s]: within the running period, where the machine says."""
        inside = min(self._factor * (time.monotonic() - self._since), self._period)
        return self._passes * self._period + inside

    def next(self) -> float:
        """Time up to which to simulate in this pass of the loop [s]; goes out on /clock."""
        self._passes += 1
        self._since = time.monotonic()
        self._publisher.publish(ClockMessage(clock=to_time(self._start + self._passes * self._period)))
        return self._passes * self._period

    def shift(self) -> float:
        """From the plant's time to that of the stamps [s]."""
        return self._start
