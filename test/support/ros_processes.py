"""Nodes in processes of their own, and an observer in this one, for the tests over DDS.

What a test may judge, whatever else the machine does: stamps in messages, what was sent, and that something happens at
all. It waits for events, never for a time: `wait`, `hear`, `follow`, `send`, `drain`. Where a time is the promise, the
test takes it from stamps and allows what the machine held up in that very run: `held_up`.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import rclpy
from geometry_msgs.msg import Twist
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from repository import ROOT
from sensor_msgs.msg import JointState

from youbot_dynamics.nodes import _runtime
from youbot_dynamics.nodes._messages import seconds, to_time
from youbot_dynamics.nodes.processes import node_command
from youbot_dynamics.resources import config_path
from youbot_dynamics.warm_up import NODES, use_node

PATIENCE = 300.0  # [s] for an event: a first start that compiles took 180 s beside ten programs on two cores

# What peers may offer or ask for.
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
KEEPING = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def twist_message(twist: Sequence[float]) -> Twist:
    """Planar twist (3,) as a message."""
    message = Twist()
    message.linear.x, message.linear.y, message.angular.z = (float(value) for value in twist)
    return message


def joint_message(
    stamp: float,
    names: Sequence[str],
    position: Iterable[float] = (),
    velocity: Iterable[float] = (),
    effort: Iterable[float] = (),
) -> JointState:
    """Joint state with the given fields; the others stay empty."""
    message = JointState(name=list(names))
    message.header.stamp = to_time(stamp)
    # As arrays: rclpy checks each value of a list.
    message.position, message.velocity = array("d", position), array("d", velocity)
    message.effort = array("d", effort)
    return message


def environment() -> dict[str, str]:
    """Of the children: this code, this domain."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


@functools.cache
def compile_nodes() -> None:
    """Let what the nodes run on be in the compiler's cache, which takes a minute, before a node is waited for."""
    for name in NODES:
        use_node(name)


class Processes:
    """Children that are gone when the block ends."""

    def __init__(self) -> None:
        self.children: list[subprocess.Popen] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, failure: type[BaseException] | None, *more: object) -> None:
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stdout is not None and not child.stdout.closed:
                if failure is not None:
                    print(f"--- {' '.join(map(str, child.args))[-200:]}: {child.returncode}\n{child.stdout.read()}")
                child.stdout.close()

    def run(self, command: list[str]) -> subprocess.Popen:
        child = subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.children.append(child)
        return child

    def node(self, name: str, *ros_arguments: str) -> subprocess.Popen:
        compile_nodes()
        files = ["--params-file", str(config_path("youbot.yaml"))]
        if name == "mock_youbot":
            files += ["--params-file", str(config_path("mock.yaml"))]
        return self.run(node_command(name, ["--ros-args", *files, *ros_arguments]))

    def youbot(self, *words: str) -> subprocess.Popen:
        return self.run([sys.executable, "-m", "youbot_dynamics.commands.main", *words])


class Observer:
    """A node of the test's own, in its own context or that of another one.

    Two contexts of a process deliver to each other within it. Where other processes are killed meanwhile, the end of a
    publisher can then wait for ever (Fast-DDS issue 6502): there, one context serves all nodes of the test.
    """

    def __init__(self, name: str = "observer", beside: Observer | None = None) -> None:
        self.context = Context() if beside is None else beside.context
        self._owns_context = beside is None
        if self._owns_context:
            rclpy.init(context=self.context, signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
        self.node = Node(name, context=self.context)
        _runtime._enlarge_receive_buffers()  # a busy test lost messages, and waited up to 3 s for their repetition
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.received: dict[str, list] = {}
        self.times: dict[str, list[float]] = {}

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *reason: object) -> None:
        # It keeps what it waited for: the node and its publishers stayed in the domain until Python collected them.
        self.executor.shutdown()
        self.node.destroy_node()
        if self._owns_context:
            rclpy.shutdown(context=self.context)

    def listen(self, kind, topic: str, qos=10) -> None:
        self.received[topic], self.times[topic] = [], []

        def take(message) -> None:
            self.received[topic].append(message)
            self.times[topic].append(time.monotonic())

        self.node.create_subscription(kind, topic, take, qos)

    def spin(self, duration: float, until: Callable[[], object] = lambda: False) -> None:
        """Let time pass, or less if something happens; what has arrived is taken in meanwhile."""
        end = time.monotonic() + duration
        while time.monotonic() < end and not until():
            self.executor.spin_once(timeout_sec=0.01)

    def wait(self, condition: Callable[[], object], what: str, timeout: float = PATIENCE) -> None:
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {timeout} s in vain for {what}")
            self.executor.spin_once(timeout_sec=0.01)

    def hear(self, topic: str, count: int = 1) -> list:
        """Wait for so many messages more; these."""
        heard, begin = self.received[topic], len(self.received[topic])
        self.wait(lambda: len(heard) >= begin + count, f"{count} more messages of {topic}")
        return heard[begin:]

    def stamps(self, topic: str) -> np.ndarray:
        """Stamps of what was heard (n,) [s]."""
        return np.array([seconds(message.header.stamp) for message in self.received[topic]])

    def follow(self, topic: str, duration: float) -> list:
        """Wait until the stamps of a topic are so much [s] ahead of its next message; the messages since."""
        begin, heard = len(self.received[topic]), self.hear(topic)
        goal = seconds(heard[0].header.stamp) + duration
        heard = self.received[topic]
        self.wait(lambda: seconds(heard[-1].header.stamp) >= goal, f"{duration} s of {topic}")
        return heard[begin:]

    def send(self, publisher, message, until: Callable[[], object], what: str, period: float = 0.05) -> None:
        """Publish a message again and again until something happens."""
        end = time.monotonic() + PATIENCE
        while not until():
            assert time.monotonic() < end, f"sent {PATIENCE} s in vain, waiting for {what}"
            publisher.publish(message)
            self.spin(period, until)

    def drain(self, *topics: str) -> None:
        """Take in what is under way: until nothing of these topics has come for half a second."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            before = [len(self.received[topic]) for topic in topics]
            self.spin(0.5)
            if before == [len(self.received[topic]) for topic in topics]:
                return
        raise AssertionError(f"waited {PATIENCE} s in vain for silence on {', '.join(topics)}")

    def held_up(self, topic: str, since: float, period: float = 0.02) -> float:
        """How much [s] this machine held up a periodic topic, by when it was sent and by its way to us.

        About 0.001 where the machine does nothing else; what a process was not run for is no fault of its own.

        Args:
            topic: stamped when it is sent; else only its arrivals tell.
            since: moment of time.monotonic() from which on this is looked at [s].
            period: of the topic [s].
        """
        arrived = np.array(self.times[topic])
        late = arrived >= since
        if not hasattr(self.received[topic][-1], "header"):
            return float(max(0.0, np.max(np.diff(arrived[late])) - period))
        sent = self.stamps(topic)[late] - time.time() + time.monotonic()
        return float(max(0.0, np.max(np.diff(sent)) - period) + np.max(arrived[late] - sent))

    def call(self, kind, service: str, request):
        client = self.node.create_client(kind, service)
        assert client.wait_for_service(timeout_sec=PATIENCE), service
        future = client.call_async(request)
        self.wait(future.done, f"the answer of {service}")
        return future.result()


def end(child: subprocess.Popen, number: int = signal.SIGINT, timeout: float = PATIENCE) -> str:
    """Signal a child; its output once it has ended."""
    child.send_signal(number)
    return child.communicate(timeout=timeout)[0]
