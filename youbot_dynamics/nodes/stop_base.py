"""Node stop_base: sends zero to the driver; at once, or in standby as soon as the base controller ends or hangs.

Bringup keeps it in standby beside the base controller: a process started only after a crash would first have to
find the driver, which takes DDS up to three seconds [measured], while the driver holds the last command.
"""

from __future__ import annotations

import sys
import time

from rclpy.node import Node
from std_srvs.srv import Empty

from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.nodes._diagnostics import ERROR, OK, WARN, Diagnostics, Status
from youbot_dynamics.nodes._driver import DriverOutput, interfaces_of
from youbot_dynamics.nodes._parameters import NodeParameters
from youbot_dynamics.nodes._runtime import (
    exit_process,
    init,
    leave_imports_out_of_collection,
    make_executor,
    node_time,
    raise_priority,
    without_shared_memory,
)
from youbot_dynamics.nodes.local_socket import LOST, GuardSocket
from youbot_dynamics.nodes.processes import StopFlag
from youbot_dynamics.parameters import fixed_parameter

TABLE = (
    fixed_parameter(
        "standby",
        False,
        "Keep running, and stop the base when base_controller has sent commands and then ends or hangs, or on a"
        " signal.",
        source="chosen: the command line stops at once, a bringup sets it to true",
    ),
    fixed_parameter(
        "silence",
        0.45,
        "Time without a heartbeat after which base_controller counts as hung.",
        unit="s",
        low=0.05,
        high=0.5,
        source="chosen: zero is sent at most 0.55 s after the last command, as when the operator sends nothing more",
    ),
    fixed_parameter(
        "motors_off",
        False,
        "Also switch the motors of the base off, after the zero command has arrived and the base had time to brake.",
        source="chosen: the base coasts when its motors are off",
    ),
    fixed_parameter(
        "wait",
        4.0,
        "How long to look for a driver.",
        unit="s",
        low=0.0,
        high=30.0,
        source="chosen: DDS needs up to 3 s to connect a new process",
    ),
)

_REPEATS = 3
_PAUSE = 0.02  # [s]
_TOGETHER = 0.2  # [s] after a signal in which a controller ends that has got it too; one that goes on must brake
_REMEMBERED = 60.0  # [s] for which /diagnostics warns of a part of the bringup that was lost and is back
_REPLY = 0.05  # [s] between replies to the heartbeats
_BRAKING = 0.5  # [s] from zero to motors that are off: without current the base coasts, and brakes no more
_SERVICE = 1.0  # [s] for the service to appear and to answer
_GOODBYE = 3.0  # [s] to wait for the end of a base controller that ends with us; one that hangs is killed after 2 s


class StopBase(Node):
    """Publishes on all interfaces at once: the driver subscribes to one of them, whichever the controller used."""

    def __init__(self) -> None:
        super().__init__("stop_base")
        self._config = NodeParameters(self, TABLE)
        robot = self._config.robot()
        self._lost: dict[str, tuple[str, str, float]] = {}
        if self._config["standby"]:
            self._diagnostics = Diagnostics(self, self._report)
        self._outputs = [DriverOutput(self, robot, interface) for interface in interfaces_of(robot)]
        self._executor = make_executor(self)

    def _take(self, notifications: dict[str, tuple[str, str]]) -> None:
        for item, (level, text) in notifications.items():
            self._lost[item] = (level, text, time.monotonic())
        if notifications:
            self._diagnostics.publish()

    def _report(self) -> dict[str, Status]:
        """What the bringup has lost: an error as long as it is gone, a warning for a minute once it is back."""
        now, report = time.monotonic(), {}
        for item, (level, text, since) in self._lost.items():
            if level == LOST or now - since < _REMEMBERED:
                values = {"seconds_ago": f"{now - since:.0f}"}
                report[item] = Status(ERROR if level == LOST else WARN, f"{item} {text}", values)
        return report or {"guard": Status(OK, "stands by")}

    def execute(self, flag: StopFlag) -> bool:
        """Wait in standby if asked to, then stop the base.

        Returns:
            False where a zero command was asked for at once and no driver confirmed it.
        """
        if not self._config["standby"]:
            return self._finish(self._config["wait"])
        # Above the controller: one that keeps a core busy must not hold its guard up.
        self.get_logger().info(raise_priority(above=1))
        guard, silence = GuardSocket(self), self._config["silence"]
        while not flag.set:
            self._executor.spin_once(_REPLY)
            self._take(guard.notifications())
            if guard.heartbeat_age() > silence and guard.moving:
                if guard.goodbye:
                    self.get_logger().info("base_controller has stopped the base and ended")
                else:
                    self.get_logger().error("base_controller does not answer: stopping the base")
                self._finish(self._config["wait"])
                self._diagnostics.excuse()
                guard.moving = False  # stay on guard: it may have been held up, and send again
        begun = time.monotonic()
        while guard.heartbeat_age() <= silence and time.monotonic() < begun + _GOODBYE:
            time.sleep(_PAUSE)
            if time.monotonic() > begun + _TOGETHER:
                guard.release()
        # Where our controller never sent a command, another stack drives the base.
        if guard.driving and not self._finish(0.0):
            self.get_logger().info("no driver listens any more")
        return True

    def _finish(self, wait: float) -> bool:
        stopped = self._send_zero(wait)
        if self._config["motors_off"]:
            self._switch_off()
        return stopped

    def _send_zero(self, wait: float) -> bool:
        deadline = time.monotonic() + wait
        while not self._subscribed() and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        for _ in range(_REPEATS):
            confirmed = [output.stop(node_time(self)) for output in self._subscribed()]
            time.sleep(_PAUSE)
        return bool(confirmed) and all(confirmed)

    def destroy_node(self) -> None:
        """Leave the executor first."""
        self._executor.shutdown()
        super().destroy_node()

    def _subscribed(self) -> list[DriverOutput]:
        return [output for output in self._outputs if output.publisher.get_subscription_count() > 0]

    def _switch_off(self) -> None:
        time.sleep(_BRAKING)
        deadline = time.monotonic() + _SERVICE
        client = self.create_client(Empty, "base/switchOffMotors")
        if client.wait_for_service(timeout_sec=_SERVICE):
            answer = client.call_async(Empty.Request())
            while not answer.done() and (remaining := deadline - time.monotonic()) > 0.0:
                self._executor.spin_once(remaining)
            if answer.done():
                self.get_logger().info("the motors of the base are off: base/switchOnMotors switches them on")
                return
        self.get_logger().error(f"{client.srv_name} does not answer: use the emergency stop")


def main() -> None:
    """Stop the base; exit code 1 where no driver confirmed it."""
    try:
        flag = init()
        with without_shared_memory():
            node = StopBase()
        leave_imports_out_of_collection()
        stopped = node.execute(flag)
    except YoubotDynamicsError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
    if not stopped:
        node.get_logger().warning("no driver listens: nothing to stop, or the driver has ended")
    exit_process([node], stopped)


if __name__ == "__main__":
    main()
