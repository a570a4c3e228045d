"""Status of a node on /diagnostics, once a second and at once when it gets worse."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from youbot_dynamics.nodes._runtime import steady_timer

OK = DiagnosticStatus.OK
WARN = DiagnosticStatus.WARN
ERROR = DiagnosticStatus.ERROR

_PERIOD = 1.0  # [s]
_LATE = 0.25  # [s] by which a callback may be late: half of the time-outs
MEMORY = 30.0  # [s] for which a past event keeps the status at WARN; its counters stay


@dataclass(frozen=True)
class Status:
    """One line of /diagnostics: level, cause with remedy, figures, and when it was judged, by the steady clock [s]."""

    level: bytes
    message: str
    values: Mapping[str, str] = field(default_factory=dict)
    made: float = field(default_factory=time.monotonic)

    def faded(self) -> Status:
        """With its age; OK once that is beyond `MEMORY`, with the same message."""
        age = time.monotonic() - self.made
        values = {**self.values, "age_s": f"{age:.0f}", "window_s": f"{MEMORY:.0f}"}
        return Status(self.level if age < MEMORY else OK, self.message, values, self.made)


class Growth:
    """When a counter last grew, to the accuracy of the updates."""

    def __init__(self) -> None:
        self._count, self._at = 0, -np.inf

    @property
    def age(self) -> float:
        """Time since the counter grew [s]; inf for never."""
        return time.monotonic() - self._at

    def update(self, count: int, pause: float = 0.0) -> bool:
        """Read the counter; whether it grew after a pause [s], so that each burst is logged once."""
        grown, self._count = count > self._count, count
        new_burst = grown and self.age > pause
        self._at = time.monotonic() if grown else self._at
        return new_burst


class Diagnostics:
    """Publishes what `report` returns once a second, name of each item -> status, under the node's full name."""

    def __init__(self, node: Node, report: Callable[[], Mapping[str, Status]]) -> None:
        self._node = node
        self._report = report
        # Global on purpose: aggregators listen there whatever the namespace.
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._timer = steady_timer(node, _PERIOD, self._on_timer)
        self._called, self._late = np.inf, Status(OK, "", made=-np.inf)

    def _on_timer(self) -> None:
        """Publish; a call that comes late has waited behind other callbacks, or for a processor."""
        now, ahead = time.monotonic(), self._timer.time_until_next_call()
        late = max(_PERIOD - 1e-9 * (ahead or 0), now - self._called - _PERIOD)
        if late > _LATE and self._called < now:
            text = f"callbacks ran {late:.2f} s late: more messages come than this process can take, or the computer is"
            self._late = Status(WARN, f"{text} busy; end other programs, or give this one priority")
        self._called = now
        self.publish()

    def excuse(self) -> None:
        """Do not count as late what this node has kept waiting itself."""
        self._called = np.inf

    def publish(self) -> None:
        """Publish now."""
        message = DiagnosticArray()
        message.header.stamp = self._node.get_clock().now().to_msg()
        name, robot = self._node.get_fully_qualified_name(), self._node.get_parameter("robot.robot_id").value
        recent = {"load of this process": self._late.faded()} if time.monotonic() - self._late.made < MEMORY else {}
        for item, status in {**self._report(), **recent}.items():
            values = [KeyValue(key=key, value=value) for key, value in status.values.items()]
            fields = {"level": status.level, "message": status.message, "values": values}
            message.status.append(DiagnosticStatus(name=f"{name}: {item}", hardware_id=robot, **fields))
        self._publisher.publish(message)
