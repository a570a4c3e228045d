"""The robot under attack: a driver, a whole bringup beside it, and an observer that hears and stamps what they do."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Transform, Twist
from nav_msgs.msg import Odometry
from ros_processes import Observer, compile_nodes, environment
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from youbot_dynamics.bringup_plan import BringupOptions, plan
from youbot_dynamics.nodes.processes import node_command, start, stop_all
from youbot_dynamics.resources import config_path

SPEED = 0.3  # [m/s] at which the operator drives
TRACKED = 0.2  # [m/s] of the trajectory that is tracked
STANDS = 0.02  # [m/s, rad/s] below which the base stands
DRIVER = "driver"  # the process that plays the youBot's driver
CRASH = re.compile(
    r"Traceback \(most recent call last\)|Fatal Python error|Segmentation fault|terminate called|Exception ignored in"
)
_UP = 600.0  # [s] for a stack to be ready: the first one compiles
_TRACE = 40  # lines of a log that a failure shows
_OPERATED = 0.05  # [s] between commands of the operator
_BEAT = 0.01  # [s] between looks at how late this machine runs what is due
_HOPS = 3  # processes in a row that each may be run so late: who notices, who acts, who reports
_ERROR = "trajectory_tracker/error"
_KINDS = {
    "ground_truth": Odometry,
    "odom": Odometry,
    "driver/cmd_vel": Twist,
    _ERROR: JointState,
    "/diagnostics": DiagnosticArray,
}


def straight(duration: float, speed: float = TRACKED, points: int = 0) -> MultiDOFJointTrajectory:
    """A straight trajectory ahead from where the base stands, with a ramp of a second at its begin and end."""
    times = np.linspace(0.0, duration, points) if points else np.arange(0.0, duration + 0.05, 0.1)
    speeds = speed * np.clip(np.minimum(times, times[-1] - times), 0.0, 1.0)
    places = np.concatenate(([0.0], np.cumsum(0.5 * (speeds[1:] + speeds[:-1]) * np.diff(times))))
    message = MultiDOFJointTrajectory()
    message.header.frame_id = "base_footprint"
    message.joint_names = ["base_footprint"]
    for moment, place, fast in zip(times, places, speeds, strict=True):
        point = MultiDOFJointTrajectoryPoint(transforms=[Transform()], velocities=[Twist()])
        point.transforms[0].translation.x, point.transforms[0].rotation.w = float(place), 1.0
        point.velocities[0].linear.x = float(fast)
        point.time_from_start.sec = int(moment)
        point.time_from_start.nanosec = int(round((moment % 1.0) * 1e9)) % 1_000_000_000
        message.points.append(point)
    return message


class Stack:
    """A driver, `youbot bringup --robot real` with all its nodes beside it, and who watches.

    Args:
        folder: for logs, the bag and what identification writes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.own = folder / "own.yaml"
        self.own.write_text(
            f"/**/identification:\n  ros__parameters:\n    output_folder: {folder / 'identified'}\n", encoding="utf-8"
        )
        self.bag = folder / "bag"
        words = ["--robot", "real", "--identification", "true", "--description", "false"]
        words += ["--record", str(self.bag), "--params-file", str(self.own)]
        files = [word for name in ("youbot.yaml", "mock.yaml") for word in ("--params-file", str(config_path(name)))]
        compile_nodes()
        driver = node_command("mock_youbot", ["--ros-args", *files, "-p", "geometry:=known"])
        bringup = [sys.executable, "-m", "youbot_dynamics.commands.main", "bringup", *words]
        self._log_files: list[Any] = []
        self.children = {DRIVER: self._start(DRIVER, driver), "bringup": self._start("bringup", bringup)}
        # Which process a node lives in, from the same plan that the bringup follows.
        planned = plan(
            BringupOptions(robot="real", identification=True, record=str(folder / "another"), description=False)
        )
        self._executables = {node: process.executable for process in planned for node in process.node_names}
        self.observer = Observer("witness")
        self._records: dict[str, list[tuple[float, Any]]] = {}
        for topic, kind in _KINDS.items():
            self._records[topic] = []
            self.observer.node.create_subscription(kind, topic, self._keep(topic), 10)
        self.cmd_vel = self.observer.node.create_publisher(Twist, "cmd_vel", 1)
        self.trajectory = self.observer.node.create_publisher(MultiDOFJointTrajectory, "trajectory", 1)
        self.wish: Twist | None = None
        self._sent: float | None = None  # when the operator sent the last command of this drive
        self._late: list[tuple[float, float]] = []
        self._stood: list[tuple[float, float]] = []
        self.observer.node.create_timer(_OPERATED, self._operate)
        self._waits: dict[int, float] = {}  # of the processes of the robot
        self._over = threading.Event()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._spin, self._beat)]
        for thread in self._threads:
            thread.start()

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("ab")
        self._log_files.append(log)
        return start(command, environment(), log.fileno())

    def _keep(self, topic: str) -> Any:
        records = self._records[topic]
        return lambda message: records.append((time.time(), message))

    def _operate(self) -> None:
        before, self._sent = self._sent, None
        if self.wish is not None:
            self.cmd_vel.publish(self.wish)
            self._sent = time.time()
            self._stood.append((self._sent, 0.0 if before is None else self._sent - before - _OPERATED))

    def _spin(self) -> None:
        while not self._over.is_set():
            self.observer.executor.spin_once(timeout_sec=0.05)

    def _beat(self) -> None:
        while not self._over.is_set():
            due = time.monotonic() + _BEAT
            time.sleep(_BEAT)
            self._late.append((time.time(), time.monotonic() - due))
            self._stood.append((time.time(), max(map(self._waited, list(self._waits)), default=0.0)))

    def _waited(self, pid: int) -> float:
        """How long the main thread of a process was ready and not run [s], since the last look at it."""
        with contextlib.suppress(OSError):
            total = 1e-9 * float(Path(f"/proc/{pid}/schedstat").read_text(encoding="utf-8").split()[1])
            before, self._waits[pid] = self._waits[pid], total
            return total - before if before else 0.0
        return 0.0

    def stood_still(self, since: float) -> float:
        """Longest time after a moment that the machine did not run a process that was ready to [s].

        Of the robot's processes by the kernel's count, of the operator by the pauses between its commands.
        """
        return max((waited for when, waited in list(self._stood) if when > since), default=0.0)

    def held_up(self, since: float) -> float:
        """What this machine may add to a promised time since `since` [s]: a few ms where it has nothing else to do."""
        return _HOPS * max((late for when, late in list(self._late) if when > since), default=0.0)

    def heard(self, topic: str, since: float = 0.0) -> list[tuple[float, Any]]:
        """What came on a topic after a moment of `time.time()`: when, and the message."""
        records = self._records[topic]
        k = len(records)
        while k > 0 and records[k - 1][0] > since:
            k -= 1
        return records[k:]

    def speeds(self, since: float) -> np.ndarray:
        """True speed of the base (n, 2): stamp [s], the larger of translation [m/s] and rotation [rad/s]."""
        rows = []
        for _, message in self.heard("ground_truth", since):
            stamp, twist = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec, message.twist.twist
            if stamp > since:
                rows.append((stamp, max(float(np.hypot(twist.linear.x, twist.linear.y)), abs(twist.angular.z))))
        return np.array(rows).reshape(-1, 2)

    def told(self, since: float) -> list[tuple[float, int, str]]:
        """Diagnostics after a moment: when, level, and "name: message" with the values behind it."""
        return [
            (
                when,
                status.level[0],
                f"{status.name}: {status.message} { ({v.key: v.value for v in status.values}) }",
            )
            for when, array in self.heard("/diagnostics", since)
            for status in array.status
        ]

    def wait(self, condition: Any, what: str, timeout: float) -> None:
        """Wait for an event while the observer goes on hearing."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {timeout} s in vain for {what}\n{self.end_of_logs()}")
            time.sleep(0.01)

    def call(self, kind: Any, service: str, request: Any, timeout: float = 15.0) -> Any:
        """Call a service; its answer."""
        client = self.observer.node.create_client(kind, service)
        try:
            self.wait(client.service_is_ready, f"service {service}", timeout)
            future = client.call_async(request)
            self.wait(future.done, f"the answer of {service}", timeout)
            return future.result()
        finally:
            self.observer.node.destroy_client(client)

    def pid(self, node: str) -> int | None:
        """Process of a node, or of the driver; None where it is gone."""
        if node in self.children:
            child = self.children[node]
            return child.pid if child.poll() is None else None
        module = f"youbot_dynamics.nodes.{self._executables.get(node, node)}".encode()
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                status = (place / "stat").read_text().rsplit(")", 1)[1].split()
                if int(status[1]) == self.children["bringup"].pid and status[0] != "Z":
                    if module in (place / "cmdline").read_bytes().split(b"\0"):
                        return int(place.name)
        return None

    def pids(self) -> dict[str, int | None]:
        """Processes by the names of what runs in them."""
        return {name: self.pid(name) for name in (DRIVER, "bringup", *self._executables, "recorder")}

    def log(self, name: str) -> str:
        """Text of a log so far."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def logs(self) -> dict[str, str]:
        """Every log of this stack, those of the programs that were run beside it too."""
        return {path.stem: self.log(path.stem) for path in sorted(self.folder.glob("*.log"))}

    def end_of_logs(self) -> str:
        """What a failure shows."""
        ends = {name: "\n".join(text.splitlines()[-_TRACE:]) for name, text in self.logs().items()}
        return "\n".join(f"--- {name}\n{text}" for name, text in ends.items())

    def wait_until_ready(self) -> None:
        """Wait until every node speaks and hears, and the bag grows."""
        watched = ("base_controller", "odometry", "trajectory_tracker", "arm_ekf", "identification", "check_driver")

        def ready() -> bool:
            ended = [name for name, child in self.children.items() if child.poll() is not None]
            assert not ended, f"{ended} ended\n{self.end_of_logs()}"
            texts = {text.split(":")[0] for _, _, text in self.told(time.time() - 3.0)}
            return (
                {f"/{name}" for name in watched} <= texts
                and bool(self.heard("odom", time.time() - 1.0))
                and self.cmd_vel.get_subscription_count() >= 2
                and self.trajectory.get_subscription_count() >= 1
                and self.observer.node.count_publishers("driver/cmd_vel") >= 2
                and "recording /odom" in self.log("bringup")
            )

        self.wait(ready, "a stack that is ready", _UP)
        self._waits = {pid: 0.0 for pid in self.pids().values() if pid is not None}

    def start_again(self, stopped: str) -> None:
        """End the bringup and start another one, with a node that is stopped (SIGSTOP) while it still imports."""
        stop_all([self.children["bringup"]])
        words = ["--robot", "real", "--description", "false", "--estimate-arm", "false"]
        command = [sys.executable, "-m", "youbot_dynamics.commands.main", "bringup", *words]
        self.children["bringup"] = self._start("bringup", command)
        self.wait(lambda: self.pid(stopped), stopped, 60.0)
        pid, begun = self.pid(stopped), time.time()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        self.wait(
            lambda: (
                any("/base_controller: " in text for _, _, text in self.told(begun))
                and self.cmd_vel.get_subscription_count() >= 2
            ),
            "a base_controller that listens",
            60.0,
        )

    def stands(self, since: float | None = None) -> bool:
        """Whether the base has stood for the last 0.3 s."""
        speeds = self.speeds(time.time() - 0.3 if since is None else since)
        return len(speeds) > 5 and bool(np.all(speeds[:, 1] < STANDS))

    def set_driving(self, twist: tuple[float, float, float] = (SPEED, 0.0, 0.0)) -> None:
        """Let the operator drive at 20 Hz, and wait until the base does."""
        self.wish = Twist()
        self.wish.linear.x, self.wish.linear.y, self.wish.angular.z = twist
        self.wait(lambda: self._fast(0.85 * SPEED), "a base that drives", 20.0)

    def set_tracking(self) -> None:
        """Let the tracker follow a straight line of a minute, and wait until the base does."""
        self.trajectory.publish(straight(60.0))
        self.wait(
            lambda: self._fast(0.85 * TRACKED) and self.heard(_ERROR, time.time() - 0.2),
            "a base that follows a trajectory",
            20.0,
        )

    def _fast(self, speed: float) -> bool:
        speeds = self.speeds(time.time() - 0.3)
        return len(speeds) > 5 and bool(np.all(speeds[:, 1] > speed))

    def rest(self) -> None:
        """Operator silent, trajectory cancelled, base at rest."""
        self.wish = None
        if self.heard(_ERROR, time.time() - 0.5):
            self.call(Trigger, "trajectory_tracker/cancel", Trigger.Request())
        self.wait(self.stands, "a base that stands", 10.0)

    def close(self) -> None:
        """End everything; the driver last."""
        self.wish = None
        for name in self._executables:
            pid = self.pid(name)
            if pid is not None:
                os.kill(pid, signal.SIGCONT)
        self._over.set()
        for thread in self._threads:
            thread.join()
        for name in ("bringup", DRIVER):
            stop_all([self.children[name]])
        self.observer.__exit__()
        for log in self._log_files:
            log.close()
