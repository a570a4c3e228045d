"""What the nodes rest on holds with either executor: nothing is lost, nothing waits for ever, errors come through."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

import rclpy  # noqa: E402
from rclpy.clock import Clock, ClockType  # noqa: E402
from rclpy.context import Context  # noqa: E402
from rclpy.event_handler import SubscriptionEventCallbacks  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from ros_processes import environment  # noqa: E402
from rosgraph_msgs.msg import Clock as ClockMessage  # noqa: E402
from std_msgs.msg import Int64  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from youbot_dynamics.errors import ParameterError  # noqa: E402
from youbot_dynamics.nodes._runtime import (  # noqa: E402
    EXECUTOR,
    PRIORITY,
    _enlarge_receive_buffers,
    make_executor,
    raise_priority,
)

pytestmark = pytest.mark.ros

MANY = 60_000
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


def steady() -> Clock:
    return Clock(clock_type=ClockType.STEADY_TIME)


class Spun:
    """A node and its executor, in a context of their own."""

    def __init__(self, *nodes: str, **arguments) -> None:
        self.context = Context()
        rclpy.init(context=self.context, signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
        self.nodes = [Node(name, context=self.context, **arguments) for name in nodes or ("spun",)]
        self.node = self.nodes[0]
        self.executor = make_executor(*self.nodes)

    def __enter__(self) -> Spun:
        return self

    def __exit__(self, *reason: object) -> None:
        self.executor.shutdown()
        for node in self.nodes:
            node.destroy_node()
        rclpy.shutdown(context=self.context)

    def until(self, condition: Callable[[], bool], what: str, timeout: float = 60.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, f"waited {timeout} s in vain for {what}"
            self.executor.spin_once(timeout_sec=0.02)


@pytest.fixture(params=["events", "single_threaded"], autouse=True)
def executor(request, monkeypatch):
    monkeypatch.setenv(EXECUTOR, request.param)
    return request.param


def test_each_of_60000_messages_comes_once_and_in_order_and_leaves_no_memory_behind(executor):
    many = MANY if executor == "events" else MANY // 20  # the other one takes ten times as long
    taken: list[int] = []
    sizes = []
    with Spun("hears", "says") as spun:
        spun.node.create_subscription(Int64, "numbers", lambda message: taken.append(message.data), 1000)
        numbers = spun.nodes[1].create_publisher(Int64, "numbers", 1000)
        spun.until(lambda: numbers.get_subscription_count() > 0, "the subscription")
        for first in range(0, many, 500):
            for number in range(first, first + 500):
                numbers.publish(Int64(data=number))
            spun.until(lambda: len(taken) >= first + 500, "500 messages")  # noqa: B023
            if first in (many // 2, many - 500):
                sizes.append(resident())
    assert taken == list(range(many))
    assert sizes[1] - sizes[0] < 4_000  # 30,000 integers in the list take 1,200


def resident() -> int:
    """Memory of this process [kB]."""
    gc.collect()
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def test_steady_timers_tick_as_often_as_they_should_and_no_oftener():
    ticks: list[float] = []
    with Spun() as spun:
        began = time.monotonic()
        spun.node.create_timer(0.01, lambda: ticks.append(time.monotonic()), clock=steady())
        spun.until(lambda: len(ticks) >= 50, "50 ticks")
        assert len(ticks) <= (time.monotonic() - began) / 0.01 + 1


def test_a_cancelled_timer_stands_still_and_a_reset_one_goes_on():
    ticks, beats = [], []
    with Spun() as spun:
        timer = spun.node.create_timer(0.01, lambda: ticks.append(1), clock=steady())
        spun.node.create_timer(0.01, lambda: beats.append(1), clock=steady())
        spun.until(lambda: len(ticks) > 3, "ticks")
        timer.cancel()
        ticks.clear()
        beats.clear()
        spun.until(lambda: len(beats) > 50, "50 beats of the other timer")
        assert len(ticks) <= 1  # that one was due already
        timer.reset()
        spun.until(lambda: len(ticks) > 3, "ticks")


def test_timers_of_ros_follow_a_simulated_clock_and_steady_ones_do_not():
    stamps, beats = [], []
    with Spun(parameter_overrides=[Parameter("use_sim_time", value=True)]) as spun:
        clock = spun.node.create_publisher(ClockMessage, "/clock", 10)
        spun.node.create_timer(0.1, lambda: stamps.append(spun.node.get_clock().now().nanoseconds))
        spun.node.create_timer(0.01, lambda: beats.append(1), clock=steady())
        spun.until(lambda: len(beats) > 20, "beats while the simulated clock stands")
        assert stamps == []
        for tenth in range(1, 11):
            message = ClockMessage()
            message.clock.sec, message.clock.nanosec = 100, tenth * 50_000_000
            clock.publish(message)
            now = 100_000_000_000 + tenth * 50_000_000
            spun.until(lambda: spun.node.get_clock().now().nanoseconds == now, "the clock")  # noqa: B023
            beats.clear()
            spun.until(lambda: len(beats) > 2, "beats")
        # The jump to the start, and 0.45 s in steps of 0.05 s.
        assert 5 <= len(stamps) <= 7 and stamps == sorted(set(stamps))


def test_services_and_parameters_answer():
    with Spun("serves", "asks") as spun:
        spun.node.declare_parameter("size", 1)

        def answer(request, response):
            response.success = True
            return response

        spun.node.create_service(Trigger, "act", answer)
        client = spun.nodes[1].create_client(Trigger, "act")
        spun.until(client.service_is_ready, "the service")
        done: list[bool] = []
        client.call_async(Trigger.Request()).add_done_callback(lambda future: done.append(future.result().success))
        spun.until(lambda: done == [True], "the answer")

        from rclpy.parameter_client import AsyncParameterClient

        parameters = AsyncParameterClient(spun.nodes[1], "serves")
        spun.until(parameters.services_are_ready, "the parameter services")
        future = parameters.set_parameters([Parameter("size", value=7)])
        spun.until(future.done, "the answer")
        assert future.result().results[0].successful and spun.node.get_parameter("size").value == 7


def test_raw_messages_are_bytes():
    taken: list[bytes] = []
    with Spun() as spun:
        spun.node.create_subscription(Int64, "numbers", taken.append, 10, raw=True)
        numbers = spun.node.create_publisher(Int64, "numbers", 10)
        numbers.publish(Int64(data=7))
        spun.until(lambda: taken != [], "a message")
    assert taken == [b"\x00\x01\x00\x00\x07" + bytes(7)]


def refuse(*_: object) -> None:
    raise ValueError("refused")


def in_timer(spun: Spun) -> None:
    spun.node.create_timer(0.01, refuse, clock=steady())


def in_subscription(spun: Spun) -> None:
    spun.node.create_subscription(Int64, "numbers", refuse, 10)
    spun.node.create_publisher(Int64, "numbers", 10).publish(Int64())


def in_service(spun: Spun) -> None:
    spun.node.create_service(Trigger, "act", refuse)
    client = spun.node.create_client(Trigger, "act")
    spun.until(client.service_is_ready, "the service")
    client.call_async(Trigger.Request())


def in_task(spun: Spun) -> None:
    spun.node.executor.create_task(refuse)


def after_an_answer(spun: Spun) -> None:
    spun.node.create_service(Trigger, "act", lambda request, response: response)
    client = spun.node.create_client(Trigger, "act")
    spun.until(client.service_is_ready, "the service")
    client.call_async(Trigger.Request()).add_done_callback(refuse)


@pytest.mark.parametrize("somewhere", [in_timer, in_subscription, in_service, in_task, after_an_answer])
def test_an_error_comes_through(somewhere):
    with Spun() as spun:
        somewhere(spun)
        with pytest.raises(ValueError, match="refused"):
            spun.until(lambda: False, "an error")


def test_a_publisher_that_offers_less_is_told_of_and_a_task_may_change_the_subscription():
    taken, reported = [], []
    with Spun() as spun:

        def incompatible(event) -> None:
            reported.append(event)
            spun.node.executor.create_task(change)

        def change() -> None:
            spun.node.destroy_subscription(subscription)
            spun.node.create_subscription(Int64, "numbers", taken.append, BEST_EFFORT)

        events = SubscriptionEventCallbacks(incompatible_qos=incompatible)
        subscription = spun.node.create_subscription(Int64, "numbers", taken.append, 10, event_callbacks=events)
        numbers = spun.node.create_publisher(Int64, "numbers", BEST_EFFORT)
        spun.until(lambda: reported != [], "the event")

        def heard() -> bool:
            numbers.publish(Int64())
            return taken != []

        spun.until(heard, "a message")


def test_subscriptions_come_and_go_without_leaving_memory_behind():
    sizes = []
    with Spun() as spun:
        numbers = spun.node.create_publisher(Int64, "numbers", 10)
        for cycle in range(200):
            taken: list[Int64] = []
            subscription = spun.node.create_subscription(Int64, "numbers", taken.append, 10)

            def heard() -> bool:
                numbers.publish(Int64())
                return taken != []  # noqa: B023

            spun.until(heard, "a message")
            spun.node.destroy_subscription(subscription)
            if cycle in (100, 199):
                sizes.append(resident())
    assert sizes[1] - sizes[0] < 2_000


def test_a_flood_of_messages_holds_no_timer_up_and_loses_nothing_that_waits():
    """Each message leaves two more: no executor can keep up with them, a timer still can."""
    ticks, taken, waiting = [], [], []
    with Spun("hears", "says") as spun:
        numbers = spun.nodes[1].create_publisher(Int64, "numbers", 1)
        others = spun.nodes[1].create_publisher(Int64, "others", 100)

        def take(message: Int64) -> None:
            taken.append(message.data)
            for more in (1, 2):
                numbers.publish(Int64(data=message.data + more))
            end = time.monotonic() + 0.0005
            while time.monotonic() < end:
                pass

        spun.node.create_subscription(Int64, "numbers", take, 1)
        spun.node.create_subscription(Int64, "others", lambda message: waiting.append(message.data), 100)
        spun.node.create_timer(0.01, lambda: ticks.append(len(taken)), clock=steady())
        spun.until(lambda: numbers.get_subscription_count() + others.get_subscription_count() == 2, "subscriptions")
        numbers.publish(Int64())
        spun.until(lambda: len(ticks) > 20, "20 ticks")
        for number in range(100):
            others.publish(Int64(data=number))
        spun.until(lambda: len(ticks) > 120, "100 ticks")
        # Behind the events of the flood the wait would grow with every tick.
        assert max(after - before for before, after in zip(ticks[20:], ticks[21:], strict=False)) < 1000
        spun.until(lambda: len(waiting) == 100, "what waited")
    assert waiting == list(range(100))


def test_an_unknown_executor_is_refused(monkeypatch):
    monkeypatch.setenv(EXECUTOR, "multi")
    with pytest.raises(ParameterError, match="events or single_threaded"):
        make_executor()


@pytest.mark.parametrize("asked", ["99", "high", "-1", ""])
def test_a_priority_that_is_none_is_refused(monkeypatch, asked):
    monkeypatch.setenv(PRIORITY, asked)
    with pytest.raises(ParameterError, match="0 to 98"):
        raise_priority()


def forbid(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize(("asked", "got"), [(None, 10), ("20", 20)])
def test_all_threads_get_a_real_time_priority_without_being_asked(monkeypatch, asked, got):
    taken = []
    monkeypatch.delenv(PRIORITY, raising=False)
    if asked:
        monkeypatch.setenv(PRIORITY, asked)
    monkeypatch.setattr("os.sched_setscheduler", lambda *what: taken.append(what))
    assert f"priority {got + 1} " in raise_priority(above=1)
    assert {(policy, parameter.sched_priority) for _, policy, parameter in taken} == {(os.SCHED_FIFO, got + 1)}
    assert {thread for thread, *_ in taken} >= {int(thread) for thread in os.listdir("/proc/self/task")}


def test_a_guard_that_may_not_stand_above_the_nodes_it_guards_gets_their_priority(monkeypatch):
    def allow_10(thread, policy, parameter):
        if parameter.sched_priority > 10:
            forbid()

    monkeypatch.delenv(PRIORITY, raising=False)
    monkeypatch.setattr("os.sched_setscheduler", allow_10)
    assert "priority 10 " in raise_priority(above=1)


def test_a_priority_that_the_system_refuses_becomes_a_niceness_or_is_told(monkeypatch):
    taken = []
    monkeypatch.delenv(PRIORITY, raising=False)
    monkeypatch.setattr("os.sched_setscheduler", forbid)
    monkeypatch.setattr("os.setpriority", lambda *what: taken.append(what[1:]))
    monkeypatch.setattr("youbot_dynamics.nodes._runtime.Path.write_text", lambda *_, **__: None)
    assert all(word in raise_priority() for word in ("rtprio of 11", "niceness -10"))
    assert (os.getpid(), -10) in taken
    monkeypatch.setattr("os.setpriority", forbid)
    assert "may delay this node" in raise_priority()


def test_a_priority_of_0_asks_for_nothing(monkeypatch):
    monkeypatch.setenv(PRIORITY, "0")
    for call in ("os.sched_setscheduler", "os.setpriority"):
        monkeypatch.setattr(call, forbid)
    assert "usual priority" in raise_priority()


NODE = """
import signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup may have set it aside for the whole run of the tests
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from youbot_dynamics.nodes._runtime import run
class Ours(Node):
    def __init__(self):
        super().__init__("ours")
        self.create_timer(0.05, self.tick, clock=Clock(clock_type=ClockType.STEADY_TIME))
    def tick(self):
        print("tick", flush=True)
        if "_fail" in self.get_name():
            raise ValueError("refused")
    def stop(self):
        print("last word", flush=True)
run(lambda: [Ours()])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_node_after_its_last_word(number):
    with subprocess.Popen([sys.executable, "-c", NODE], env=environment(), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "tick\n"
        child.send_signal(number)
        rest = child.communicate(timeout=30.0)[0]
        assert child.returncode == 0
        assert rest.endswith("last word\n")


def test_an_error_ends_a_node_after_its_last_word():
    command = [sys.executable, "-c", NODE, "--ros-args", "-r", "__node:=ours_fail"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60.0)
    assert done.returncode == 1
    assert done.stdout.endswith("last word\n") and "ValueError: refused" in done.stderr


HUNG = """
import ctypes
from rclpy.node import Node
from youbot_dynamics.nodes._runtime import run
class Ours(Node):
    def __init__(self):
        super().__init__("ours")
        self.create_timer(0.05, self.tick)
    def tick(self):
        raise ValueError("the end begins")
    def stop(self):
        print("last word", flush=True)
    def destroy_node(self):
        ctypes.PyDLL(None).sleep(1000)  # nothing of Python runs meanwhile
run(lambda: [Ours()])
"""


def test_a_middleware_that_hangs_at_the_end_does_not_keep_the_process(executor):
    command = [sys.executable, "-c", HUNG]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300.0)
    assert done.returncode == 1
    assert done.stdout == "last word\n"


TRANSPORTS = "FASTDDS_BUILTIN_TRANSPORTS"
LARGEST_BUFFER = 2 * min(4 << 20, int(Path("/proc/sys/net/core/rmem_max").read_text()))  # the kernel doubles it
SEGMENTS = f"""
import os
import socket
from pathlib import Path
from rclpy.node import Node
from youbot_dynamics.nodes._runtime import init, without_shared_memory
init()
with without_shared_memory():
    node = Node("ours")
mapped = Path("/proc/self/maps").read_text().splitlines()
print(sum("/dev/shm/fast" in line for line in mapped), node.get_node_names())
print(os.environ["{TRANSPORTS}"], flush=True)
for entry in os.listdir("/proc/self/fd"):
    try:
        opened = socket.socket(fileno=int(entry))
    except OSError:
        continue
    if opened.type == socket.SOCK_DGRAM and opened.family == socket.AF_INET:
        print(opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("chosen", ["", "LARGE_DATA"])
def test_a_node_does_without_shared_memory_unless_the_user_chose_transports(chosen):
    surroundings = {name: value for name, value in environment().items() if name != TRANSPORTS}
    surroundings |= {TRANSPORTS: chosen} if chosen else {}
    command = [sys.executable, "-c", SEGMENTS]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=60.0)
    segments, transports, *buffers = done.stdout.splitlines()  # and no complaint of the middleware
    assert chosen or buffers and set(buffers) == {str(LARGEST_BUFFER)}
    count, names = segments.split(maxsplit=1)
    assert transports == (chosen or "UDPv4") and names == "['ours']"
    assert (int(count) > 0) == bool(chosen)


def test_enlarging_receive_buffers_leaves_no_descriptor_open():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        _enlarge_receive_buffers()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_first_start_of_an_installation_leaves_its_compiled_modules_whole(tmp_path):
    surroundings = {name: value for name, value in environment().items() if name != TRANSPORTS}
    surroundings |= {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}  # nothing is compiled yet
    command = [sys.executable, "-c", SEGMENTS]
    for _ in range(2):  # the second start reads what the first one wrote
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=120.0)
        assert done.returncode == 0, done.stderr
    assert any(tmp_path.rglob("_runtime.cpython-*.pyc"))
