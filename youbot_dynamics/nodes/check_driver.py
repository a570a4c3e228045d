"""Node check_driver: checks the driver against what the other nodes expect; findings with remedies on /diagnostics.

It only subscribes. `youbot check-driver` runs the same check for some seconds and prints it.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import rclpy
from nav_msgs.msg import Odometry
from rclpy.node import Node

from youbot_dynamics.errors import doubled
from youbot_dynamics.estimation import driver_check
from youbot_dynamics.estimation.driver_check import DriverFinding, Verdict, gyro_heard, joints_heard, odometry_heard
from youbot_dynamics.nodes._diagnostics import ERROR, MEMORY, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes._driver import COMMAND_INTERFACE
from youbot_dynamics.nodes._listening import listen, listen_joints, listen_yaw_rate
from youbot_dynamics.nodes._messages import stamped_twist
from youbot_dynamics.nodes._parameters import NodeParameters, value_for
from youbot_dynamics.nodes._runtime import DRIVER_QOS, init, make_executor, node_time, run, without_shared_memory
from youbot_dynamics.nodes._topic_graph import JOINT_STATES, WATCHED, EndpointCache, judge_graph
from youbot_dynamics.parameters import Parameter

TABLE = (
    Parameter(
        "window",
        10.0,
        "How long messages are kept for the findings.",
        unit="s",
        low=2.0,
        high=120.0,
        read_only=True,
        source="chosen: 500 messages of a 50 Hz driver",
    ),
)

_SETTLE = 3.0  # [s] that DDS may take for discovery: nothing is judged before
_AGAIN = 2.0  # [s] between judgements: each uses the messages of five times as long
_RATE = 250.0  # [Hz] largest rate of the messages that are kept
_LEVELS = {Verdict.OK: OK, Verdict.NOT_TOLD: OK, Verdict.WARNING: WARN, Verdict.ERROR: ERROR}
_MOTORS_OFF = "base/switchOffMotors"
_KINDS = 16  # lists of joint names that are cached


class CheckDriver(Node):
    """Keeps the messages of a window, and judges them together with the graph.

    Args:
        publishes: whether the findings go out on /diagnostics, and what is wrong to the log, once.
    """

    def __init__(self, publishes: bool = False) -> None:
        super().__init__("check_driver")
        config = NodeParameters(self, TABLE)
        robot = config.robot()
        self._driver, self._has_arm, self._is_youbot = robot.driver, robot.has_arm, robot.is_youbot
        self._interface = str(value_for(self, "base_controller", COMMAND_INTERFACE))
        self._window: float = config["window"]
        depth = int(_RATE * self._window)
        self._wheels: deque[tuple] = deque(maxlen=depth)
        self._arm: deque[tuple] = deque(maxlen=depth)
        self._odometry: deque[tuple] = deque(maxlen=depth)
        self._gyro: deque[tuple] = deque(maxlen=depth)
        self._published: dict[str, tuple[DriverFinding, float]] = {}  # with the time of the judgement [s]
        self._logged: set[tuple[str, Verdict]] = set()
        self._begun = time.monotonic()
        self._judged, self._statuses = -np.inf, dict[str, Status]()
        self._endpoints = EndpointCache(self, WATCHED)
        self._motors_off: frozenset[str] = frozenset()
        # Per list of names: indices of the joints of wheels and arm in it; and when it was last received [s].
        self._indices: dict[tuple[str, ...], list[tuple[deque[tuple], list[int]]]] = {}
        self._received: dict[tuple[str, ...], float] = {}
        listen_joints(self, "driver/joint_states", self._on_joints, DRIVER_QOS)
        self._elsewhere: set[tuple[str, ...]] = set()  # lists of joint names on `joint_states`
        if not publishes:  # beside a bringup, its own nodes publish there
            listen_joints(self, JOINT_STATES, self._on_other_joints, DRIVER_QOS)
        listen(self, Odometry, "driver/odom", self._on_odometry, DRIVER_QOS, raw=True)
        listen_yaw_rate(self, lambda stamp, rate: self._gyro.append((*self._times(stamp), rate)))
        if publishes:
            Diagnostics(self, self._report)

    @property
    def silent(self) -> bool:
        """Whether nothing has been received yet."""
        return not (self._received or self._odometry)

    def _times(self, stamp: float) -> tuple[float, float, float]:
        return stamp, node_time(self), time.monotonic()

    def _on_joints(self, stamp: float, names: tuple[str, ...], *fields: Sequence[float]) -> None:
        times = self._times(stamp)
        for rows, indices in self._indices_in(names):
            rows.append((*times, *([f[k] if k < len(f) else np.nan for k in indices] for f in fields)))
        self._received[names] = times[2]

    def _indices_in(self, names: tuple[str, ...]) -> list[tuple[deque[tuple], list[int]]]:
        """Indices of the joints of wheels and arm in messages with these names; each group must be complete."""
        if names not in self._indices:
            groups = ((self._wheels, self._driver.wheel_joints), (self._arm, self._driver.arm_joints))
            known = set() if doubled(names) else set(names)
            if len(self._indices) == _KINDS:
                self._indices.clear()
                self._received.clear()
            self._indices[names] = [
                (rows, [names.index(j) for j in joints]) for rows, joints in groups if set(joints) <= known
            ]
        return self._indices[names]

    def _on_other_joints(self, stamp: float, names: tuple[str, ...], *fields: Sequence[float]) -> None:
        if len(self._elsewhere) < _KINDS:
            self._elsewhere.add(names)

    def _strangers(self) -> list[str]:
        """Joints on `joint_states`, if none of them is the robot's: a robot without its file."""
        names = {name for kind in self._elsewhere for name in kind}
        return [] if names & {*self._driver.wheel_joints, *self._driver.arm_joints} else sorted(names)

    def _on_odometry(self, data: bytes) -> None:
        if (twist := stamped_twist(data)) is not None:
            self._odometry.append((*self._times(twist[0]), twist[1]))

    def findings(self) -> tuple[DriverFinding, ...]:
        """Findings on the messages within the window, and on the present graph."""
        oldest = time.monotonic() - self._window
        for rows in (self._wheels, self._arm, self._odometry, self._gyro):
            while rows and rows[0][2] < oldest:
                rows.popleft()
        driver, kinds = self._driver, [names for names, last in self._received.items() if last >= oldest]
        findings = driver_check.judge_driver(
            joints_heard(driver.wheel_joints, list(self._wheels)),
            joints_heard(driver.arm_joints, list(self._arm)) if self._has_arm else None,
            odometry_heard(list(self._odometry)),
            gyro_heard(list(self._gyro)),
            kinds,
            driver,
            strangers := self._strangers(),
            self.resolve_topic_name(JOINT_STATES),
        )
        ends, servers = self._endpoints.endpoints(), self._motor_services()
        is_youbot = self._is_youbot and not strangers
        return (*findings, *judge_graph(ends, servers, driver.stamped_twist, is_youbot, self._interface))

    def _motor_services(self) -> frozenset[str]:
        """Nodes that switch motors off, queried anew where their number changed."""
        wanted = self.resolve_service_name(_MOTORS_OFF)
        if self.count_services(wanted) == len(self._motors_off):
            return self._motors_off
        nodes = set()
        for name, namespace in self.get_node_names_and_namespaces():
            try:
                services = self.get_service_names_and_types_by_node(name, namespace)
            except rclpy.node.NodeNameNonExistentError:
                continue  # it has just ended
            if any(service == wanted for service, _ in services):
                nodes.add(f"{namespace.rstrip('/')}/{name}")
        self._motors_off = frozenset(nodes)
        return self._motors_off

    def _report(self) -> dict[str, Status]:
        if time.monotonic() - self._begun < _SETTLE:
            return {"driver": Status(OK, "listening")}
        now = time.monotonic()
        if now - self._judged < _AGAIN - 0.5:
            return self._statuses
        self._judged, self._statuses = now, {}
        for finding in self.findings():
            shown, since = finding, now
            # A verdict that needs motion holds for a while.
            before = self._published.get(finding.item)
            if finding.verdict is Verdict.NOT_TOLD and before is not None and now - before[1] <= MEMORY:
                shown, since = before
            self._published[finding.item] = shown, since
            text = "; ".join(part for part in (shown.text, shown.remedy) if part)
            if (shown.item, shown.verdict) not in self._logged:
                self._logged.add((shown.item, shown.verdict))
                if _LEVELS[shown.verdict] == ERROR:
                    self.get_logger().error(f"{shown.item}: {text}")
                elif _LEVELS[shown.verdict] == WARN:
                    self.get_logger().warning(f"{shown.item}: {text}")
            values = {name: f"{value:.6g}" for name, value in shown.values.items()}
            values |= {"verdict": shown.verdict.value, "text": text}
            values |= {"window_s": f"{self._window:g}", "age_s": f"{now - since:.0f}"}
            self._statuses[shown.item] = Status(_LEVELS[shown.verdict], f"{shown.verdict.value}: {text}", values)
        return self._statuses


def check_once(duration: float, ros_arguments: list[str], announce: Callable[[str], None]) -> tuple[DriverFinding, ...]:
    """Listen for a duration [s], then judge; no findings where a signal came first. `announce` prints a line.

    The duration begins with the first message, or where none comes after the time of DDS discovery.

    Raises:
        ParameterError: ROS arguments or parameters that cannot be used.
    """
    sys.argv = [sys.argv[0], *ros_arguments, *(() if ros_arguments else ("--ros-args",))]
    sys.argv += ["-p", f"window:={max(2.0, min(duration, 120.0)):.1f}"]
    flag = init()
    with without_shared_memory():
        node = CheckDriver()
    announce(f"listening for {duration:g} s; turn the wheels by hand or drive meanwhile, to have their signs checked")
    begun = time.monotonic()
    until = begun + duration
    with make_executor(node) as executor:
        while time.monotonic() < until and not flag.set:
            executor.spin_once(timeout_sec=0.05)
            if node.silent and time.monotonic() < begun + _SETTLE:
                until = time.monotonic() + duration
    findings = () if flag.set else node.findings()
    node.destroy_node()
    rclpy.try_shutdown()
    return findings


def main() -> None:
    """Run the node."""
    run(lambda: [CheckDriver(publishes=True)])


if __name__ == "__main__":
    main()
