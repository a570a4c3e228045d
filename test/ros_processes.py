"""Nodes in processes of their own, and an observer in this one, for the tests over DDS."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from youbot_dynamics.nodes.processes import node_command
from youbot_dynamics.resources import config_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
from youbot_dynamics.simulation.youbot import Youbot

ROOT = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """Of the children: this code, this domain."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


@functools.cache
def compile_twin() -> None:
    """Let the twin be in the compiler's cache, which takes half a minute, before a node is waited for."""
    robot = load_robot()
    twin = Youbot(load_truth(0), load_arm_truth(0), robot, 0)
    twin.advance(0.02)
    twin.base.read()
    twin.arm.read()


class Processes:
    """Children that are gone when the block ends."""

    def __init__(self) -> None:
        self.children: list[subprocess.Popen] = []

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *reason: object) -> None:
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()

    def run(self, command: list[str]) -> subprocess.Popen:
        child = subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.children.append(child)
        return child

    def node(self, name: str, *ros_arguments: str) -> subprocess.Popen:
        files = ["--params-file", str(config_path("youbot.yaml"))]
        if name == "mock_youbot":
            compile_twin()
            files += ["--params-file", str(config_path("mock.yaml"))]
        return self.run(node_command(name, ["--ros-args", *files, *ros_arguments]))

    def youbot(self, *words: str) -> subprocess.Popen:
        return self.run([sys.executable, "-m", "youbot_dynamics.commands.main", *words])


class Observer:
    """A node of the test's own, in its own context."""

    def __init__(self, name: str = "observer") -> None:
        self.context = Context()
        rclpy.init(context=self.context, signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
        self.node = Node(name, context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.received: dict[str, list] = {}
        self.times: dict[str, list[float]] = {}

    def __enter__(self) -> Observer:
        return self

    def __exit__(self, *reason: object) -> None:
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def listen(self, kind, topic: str, qos=10) -> None:
        self.received[topic], self.times[topic] = [], []

        def take(message) -> None:
            self.received[topic].append(message)
            self.times[topic].append(time.monotonic())

        self.node.create_subscription(kind, topic, take, qos)

    def spin(self, duration: float) -> None:
        end = time.monotonic() + duration
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.01)

    def wait(self, condition: Callable[[], bool], what: str, timeout: float = 15.0) -> None:
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {timeout} s in vain for {what}")
            self.executor.spin_once(timeout_sec=0.01)

    def call(self, kind, service: str, request):
        client = self.node.create_client(kind, service)
        assert client.wait_for_service(timeout_sec=10.0), service
        future = client.call_async(request)
        self.wait(future.done, f"the answer of {service}")
        return future.result()


def end(child: subprocess.Popen, number: int = signal.SIGINT, timeout: float = 10.0) -> str:
    """Signal a child; its output once it has ended."""
    child.send_signal(number)
    return child.communicate(timeout=timeout)[0]
