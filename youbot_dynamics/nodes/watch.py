"""Node watch: pose, tracking error and statuses of the nodes for a live view; it only subscribes."""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from youbot_dynamics.arrays import Vector
from youbot_dynamics.nodes._messages import pose_vector, values_of
from youbot_dynamics.nodes._runtime import STATE_QOS, make_executor

AXES = ("x", "y", "yaw")
_SHOW = 0.2  # [s] between two views
_SPACING = 0.02  # [m] between points of the path
_JUMP = 0.5  # [m] between two poses after which the path starts again, as after a reset of the odometry
_POINTS = 600  # of the path: 12 m
_ERRORS = 300  # tracking errors: one minute, one per view
_STATUSES = 200  # names of statuses that are kept
_STUDENT = 2.57  # 97.5 % quantile of Student's t, 5 degrees of freedom: the response monitor averages six blocks
_FIGURE = re.compile(r"([\d.]+) \+- ([\d.]+) ms")


@dataclass(frozen=True)
class ReceivedStatus:
    """One status of /diagnostics and when it was received, by the steady clock [s]."""

    level: int
    message: str
    values: Mapping[str, str]
    received: float


class Watch(Node):
    """Keeps the newest pose, path, tracking error and statuses of the nodes of one namespace.

    Attributes:
        pose: (3,) x, y, yaw [m, m, rad]; NaN before the first.
        pose_at: when it was received, by the steady clock [s]; -inf before the first.
        path: positions (x, y) [m], 20 mm apart.
        desired: the same of the trajectory that is followed: pose less tracking error.
        error: (3,) tracking error x, y, yaw [m, m, rad]; NaN before the first.
        error_at: when it was received [s]; -inf before the first.
        errors: (time [s], distance [m], heading [rad]) of the errors, one per view.
        statuses: name, such as "odometry: response" -> status.
    """

    def __init__(self) -> None:
        super().__init__("watch")
        self.pose: Vector = np.full(3, np.nan)
        self.error: Vector = np.full(3, np.nan)
        self.pose_at = self.error_at = -np.inf
        self.path: deque[tuple[float, float]] = deque(maxlen=_POINTS)
        self.desired: deque[tuple[float, float]] = deque(maxlen=_POINTS)
        self.errors: deque[tuple[float, float, float]] = deque(maxlen=_ERRORS)
        self.statuses: dict[str, ReceivedStatus] = {}
        self._prefix = f"{self.get_namespace().rstrip('/')}/"
        self.create_subscription(Odometry, "odom", self._on_odometry, STATE_QOS)
        self.create_subscription(JointState, "trajectory_tracker/error", self._on_error, STATE_QOS)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, 10)

    def _on_odometry(self, message: Odometry) -> None:
        pose = pose_vector(message.pose.pose)
        if not np.all(np.isfinite(pose)):
            return
        self.pose, self.pose_at = pose, time.monotonic()
        _extend(self.path, float(pose[0]), float(pose[1]))

    def _on_error(self, message: JointState) -> None:
        error = values_of(message, message.position, AXES)
        if error is not None and np.all(np.isfinite(error)):
            self.error, self.error_at = error, time.monotonic()
            if np.isfinite(self.pose_at):
                x, y, yaw = self.pose.tolist()
                c, s = math.cos(yaw), math.sin(yaw)  # the error is in the body frame
                _extend(self.desired, x - c * error[0] + s * error[1], y - s * error[0] - c * error[1])
            if not self.errors or self.error_at - self.errors[-1][0] >= _SHOW:
                self.errors.append((self.error_at, float(np.hypot(error[0], error[1])), float(error[2])))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        now = time.monotonic()
        for status in message.status:
            name = status.name.removeprefix(self._prefix)
            own = name != status.name and "/" not in name.split(":")[0]
            if own and (name in self.statuses or len(self.statuses) < _STATUSES):
                values = {value.key: value.value for value in status.values}
                self.statuses[name] = ReceivedStatus(status.level[0], status.message, values, now)


def _extend(path: deque[tuple[float, float]], x: float, y: float) -> None:
    """Add a position [m] to a path, unless it is near its end; a jump begins a new one."""
    step = math.dist((x, y), path[-1]) if path else math.inf
    if step > _JUMP:
        path.clear()
    if step > _SPACING:
        path.append((float(x), float(y)))


def live_delays(statuses: Mapping[str, ReceivedStatus]) -> dict[str, str]:
    """Return axis -> delay with its 95 % interval as text, for the axes that the response monitor reports so far."""
    delays = {}
    response = statuses.get("odometry: response")
    for axis in AXES:
        figure = None if response is None else _FIGURE.match(response.values.get(f"{axis}_delay", ""))
        if figure is not None:
            value, half = float(figure[1]), _STUDENT * float(figure[2])
            delays[axis] = f"{value:.0f} ms (95 % interval {value - half:.0f} to {value + half:.0f} ms)"
    return delays


def watch(ended: Callable[[], bool], show: Callable[[Watch], None], ros_arguments: Sequence[str] = ()) -> None:
    """Subscribe until `ended`, and `show` the node five times a second and at the end; Ctrl-C is the caller's."""
    rclpy.init(args=list(ros_arguments), signal_handler_options=SignalHandlerOptions.NO)
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
