"""What a row of the matrix may do to a running robot: the verbs under `do`, each a function of the same name.

Each takes the attack and its argument from the table. What must be undone afterwards goes onto `attack.undo`.
"""

from __future__ import annotations

import copy
import importlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import second_account
from fault_stack import Stack, straight
from geometry_msgs.msg import Twist
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from ros_processes import Observer, environment, twist_message

from youbot_dynamics.nodes.local_socket import domain_of_environment

_MATCHED = 5.0  # [s] for a new publisher to be heard
_UNMATCHED = 1.5  # [s] after which a publisher of another type counts as there


@dataclass
class Attack:
    """One row while it runs.

    Args:
        stack: the robot, or None for a row without one.
        folder: for files.
        pids: processes before the attack.
        began: `time.time()` of the first action.
        undo: what to do afterwards, the last one first.
        refusal: why the last service, parameter or program said no; empty where it said yes.
        code: exit code of the last program.
        output: what the last program said.
        logged_before: length of the log of the bringup before the attack.
        port: of the last stranger that `answer` started on 127.0.0.1.
    """

    stack: Any
    folder: Path
    pids: dict[str, int | None] = field(default_factory=dict)
    began: float = 0.0
    undo: list[Callable[[], None]] = field(default_factory=list)
    refusal: str = ""
    code: int | None = None
    output: str = ""
    logged_before: int = 0
    port: int = 0

    @property
    def robot(self) -> Stack:
        """The stack of a row that has one."""
        assert isinstance(self.stack, Stack), "this row has no running robot"
        return self.stack


def send_signal(attack: Attack, argument: list[str]) -> None:
    """[node, SIGKILL ...]: to its process; one that is stopped goes on afterwards."""
    name, number = argument[0], signal.Signals[argument[1]]
    pid = attack.pids[name]
    assert pid is not None, f"{name} does not run"
    os.kill(pid, number)
    if number == signal.SIGSTOP:
        attack.undo.append(lambda: _go_on(pid))


def _go_on(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


def sleep(attack: Attack, argument: float) -> None:
    """Seconds between two actions."""
    time.sleep(argument)


def drive(attack: Attack, argument: dict[str, Any]) -> None:
    """{twist, rate, lasting}: further messages on cmd_vel, from the operator's publisher; 0.5 s at 20 Hz.

    A controller that is held up for 0.2 s, of which the promises allow, hears none of those of 0.25 s: it keeps one.
    """
    message = twist_message([float(value) for value in argument["twist"]])
    pause, end = 1.0 / argument.get("rate", 20.0), time.monotonic() + argument.get("lasting", 0.5)
    while True:
        attack.robot.cmd_vel.publish(message)
        if time.monotonic() >= end:
            return
        time.sleep(pause)


def let_go(attack: Attack, argument: bool) -> None:
    """The operator falls silent."""
    attack.robot.wish = None


def take_over(attack: Attack, argument: list[float]) -> None:
    """The operator begins to drive by this twist."""
    attack.robot.wish = Twist()
    wish = attack.robot.wish
    wish.linear.x, wish.linear.y, wish.angular.z = (float(value) for value in argument)


def publish(attack: Attack, argument: dict[str, Any]) -> None:
    """{topic, type, fields, rate, lasting, stamp, best_effort, unheard}: by a stranger, in the background.

    `stamp`: seconds off the clock, or `frozen`. `unheard`: nobody can hear that type, so nobody is waited for.
    """
    package, name = argument["type"].split("/")
    kind = getattr(importlib.import_module(f"{package}.msg"), name)
    reliability = ReliabilityPolicy.BEST_EFFORT if argument.get("best_effort") else ReliabilityPolicy.RELIABLE
    # One context has one type for a topic.
    stranger = Observer("stranger", beside=None if argument.get("unheard") else attack.robot.observer)
    publisher = stranger.node.create_publisher(kind, argument["topic"], QoSProfile(depth=10, reliability=reliability))
    message = _filled(kind(), argument.get("fields", {}))
    if argument.get("unheard"):
        time.sleep(_UNMATCHED)
    else:
        attack.robot.wait(lambda: publisher.get_subscription_count() > 0, f"ears on {argument['topic']}", _MATCHED)
        time.sleep(0.3)
    over = threading.Event()
    first = time.time()

    def send() -> None:
        end = time.monotonic() + argument.get("lasting", 1.0)
        while not over.is_set() and time.monotonic() < end:
            if hasattr(message, "header"):
                frozen = argument.get("stamp") == "frozen"
                moment = first if frozen else time.time() + float(argument.get("stamp", 0.0))
                message.header.stamp.sec, message.header.stamp.nanosec = int(moment), int(moment % 1.0 * 1e9)
            publisher.publish(message)
            over.wait(1.0 / argument.get("rate", 50.0))

    thread = threading.Thread(target=send, daemon=True)
    attack.began = time.time()
    thread.start()

    def end_it() -> None:
        over.set()
        thread.join()
        stranger.__exit__()

    attack.undo.append(end_it)


def _filled(message: Any, fields: dict[str, Any]) -> Any:
    for name, value in fields.items():
        setattr(message, name, _filled(getattr(message, name), value) if isinstance(value, dict) else value)
    return message


def crowd(attack: Attack, argument: dict[str, int]) -> None:
    """{hanging, running}: so many more subscribers of driver/cmd_vel and wheel_commands, in two processes (crowd.py).

    That of the hanging ones is stopped (SIGSTOP) once all of them are heard.
    """
    seen = attack.robot.observer.node
    wanted = seen.count_subscribers("driver/cmd_vel") + sum(argument.values())
    log = (attack.folder / "crowd.log").open("wb")
    command = [sys.executable, str(Path(__file__).with_name("crowd.py"))]
    children = [
        subprocess.Popen([*command, str(argument[kind])], env=environment(), stdout=log, stderr=log)
        for kind in ("hanging", "running")
    ]

    def end_it() -> None:
        for child in children:
            child.kill()
            child.wait()
        log.close()

    attack.undo.append(end_it)
    attack.robot.wait(lambda: seen.count_subscribers("driver/cmd_vel") >= wanted, "the subscribers", 60.0)
    children[0].send_signal(signal.SIGSTOP)
    time.sleep(_MATCHED)  # their leases go on: what is sent to them is kept, and repeated
    attack.began = time.time()


def driver_fault(attack: Attack, argument: str) -> None:
    """A fault of the simulated driver (docs/mock_youbot.md), ended afterwards."""
    attack.undo.append(lambda: _driver_parameter(attack, ""))
    _driver_parameter(attack, argument)
    attack.began = time.time()


def _driver_parameter(attack: Attack, text: str) -> None:
    _set(attack, "mock_youbot", "fault", text)
    assert not attack.refusal, attack.refusal


def set_parameter(attack: Attack, argument: list[Any]) -> None:
    """[node, name, value]: over DDS, as `ros2 param set` does; keeps why it was refused."""
    _set(attack, *argument)


def _set(attack: Attack, node: str, name: str, value: Any) -> None:
    request = SetParametersAtomically.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    answer = attack.robot.call(SetParametersAtomically, f"{node}/set_parameters_atomically", request)
    attack.refusal = "" if answer.result.successful else answer.result.reason or "no reason given"


def call(attack: Attack, argument: list[str]) -> None:
    """[service, type]: keeps why it was refused."""
    package, name = argument[1].split("/")
    kind = getattr(importlib.import_module(f"{package}.srv"), name)
    answer = attack.robot.call(kind, argument[0], kind.Request())
    attack.refusal = "" if getattr(answer, "success", True) else answer.message or "no reason given"


def trajectory(attack: Attack, argument: dict[str, Any]) -> None:
    """A trajectory of `seconds` and `points` (3 s, one each 0.1 s), with what is wrong with it.

    empty; frame; joint; start: seconds from now; repeat: a point's time stands twice; last: time of the last point
    [s]; nan: a point's x; rotation: of a point, x y z w; jump: [m] between two points; bare: a point without transform.
    """
    message = straight(float(argument.get("seconds", 3.0)), points=int(argument.get("points", 0)))
    middle = len(message.points) // 2
    if argument.get("empty"):
        message.points = []
    message.header.frame_id = argument.get("frame", message.header.frame_id)
    if "joint" in argument:
        message.joint_names = argument["joint"]
    if "start" in argument:
        moment = time.time() + argument["start"]
        message.header.stamp.sec, message.header.stamp.nanosec = int(moment), int(moment % 1.0 * 1e9)
    if argument.get("repeat"):
        message.points[middle].time_from_start = copy.copy(message.points[middle - 1].time_from_start)
    if "last" in argument:
        message.points[-1].time_from_start.sec = int(argument["last"])
    if argument.get("nan"):
        message.points[middle].transforms[0].translation.x = float("nan")
    if "rotation" in argument:
        turned = message.points[middle].transforms[0].rotation
        turned.x, turned.y, turned.z, turned.w = (float(value) for value in argument["rotation"])
    for point in message.points[middle:] if "jump" in argument else ():
        point.transforms[0].translation.x += argument["jump"]
    if argument.get("bare"):
        message.points[middle].transforms = []
    data = serialize_message(message)  # a second and more of 100,000 points: no part of what is measured
    attack.began = time.time()
    attack.robot.trajectory.publish(data)


def second_account_attacks(attack: Attack, argument: bool) -> None:
    """Another account of this machine tries every way to take the guard away, again and again (second_account.py)."""
    if os.getuid() != 0:
        pytest.skip("only root may become a second account")
    pids = [pid for name in ("stop_base", "base_controller", "bringup") if (pid := attack.pids[name]) is not None]
    stranger = second_account.start(*second_account.targets(domain_of_environment()), pids, forever=True)

    def end_it() -> None:
        stranger.kill()
        stranger.communicate()

    attack.undo.append(end_it)
    assert stranger.stdout is not None and "round" in stranger.stdout.readline(), "it ended"
    attack.began = time.time()


def bringup_again(attack: Attack, argument: dict[str, str]) -> None:
    """{stopped: node}: end the bringup and start another one, in which that node is stopped before it does anything."""
    attack.robot.start_again(argument["stopped"])
    attack.began = time.time()


def file_size(attack: Attack, argument: list[Any]) -> None:
    """[node, bytes]: no file of its process may grow beyond that; writing then fails, as on a full disk."""
    pid = attack.pids[argument[0]]
    assert pid is not None
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (argument[1], argument[1]))


def write(attack: Attack, argument: dict[str, str]) -> None:
    """{name: text}: files for a program that is run next; {folder} in its words is where they are.

    {deep} in a text stands for 100,000 brackets.
    """
    for name, text in argument.items():
        (attack.folder / name).write_text(text.replace("{deep}", "[" * 100_000), encoding="utf-8")


def answer(attack: Attack, argument: str) -> None:
    """A program on this machine that sends this text to whoever connects to its port."""
    server = socket.create_server(("127.0.0.1", 0))
    attack.port = server.getsockname()[1]

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection = server.accept()[0]
                connection.sendall(argument.encode())
                connection.close()

    threading.Thread(target=serve, daemon=True).start()
    attack.undo.append(lambda: server.shutdown(socket.SHUT_RDWR))


def youbot(attack: Attack, argument: str) -> None:
    """Words of `youbot`, with {folder} and {port}, run to its end, two minutes at most."""
    words = argument.format(folder=attack.folder, port=attack.port).split()
    log = attack.folder / f"youbot_{words[0]}_{time.monotonic_ns()}.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "youbot_dynamics.commands.main", *words]
        child = subprocess.Popen(command, env=environment(), stdout=output, stderr=subprocess.STDOUT, cwd=attack.folder)
        try:
            attack.code = child.wait(120.0)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            child.wait(15.0)
            attack.code = None
    attack.output = log.read_text(encoding="utf-8", errors="replace")
    attack.refusal = attack.output if attack.code == 1 else ""


ACTIONS: dict[str, Callable[[Attack, Any], None]] = {
    "signal": send_signal,
    **{
        action.__name__: action
        for action in (
            sleep,
            drive,
            let_go,
            take_over,
            publish,
            crowd,
            driver_fault,
            set_parameter,
            call,
            trajectory,
            second_account_attacks,
            bringup_again,
            file_size,
            write,
            answer,
            youbot,
        )
    },
}
