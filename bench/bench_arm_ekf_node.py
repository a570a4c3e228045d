"""CPU that node arm_ekf takes for each message of the arm, beside a subscriber that does nothing with it.

Talker and listeners are processes on localhost with a domain of their own. All three candidates hear the same number of
messages; a second of a node at f Hz costs f times the figure. What the operating system has counted is taken from the
kernel's clock ticks of 10 ms, so each sample lasts for seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial

from bench.harness import Candidate, Item
from youbot_dynamics.nodes.processes import node_command
from youbot_dynamics.resources import config_path

SECONDS = 8.0  # of listening
_READY = 60.0  # [s] a process may take to start, at most: it may have to compile

ECHO = """
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
rclpy.init()
node = Node("echo")
node.create_subscription(JointState, "driver/joint_states", lambda message: None, 10)
rclpy.spin(node)
"""
LOOK = """
import sys, time
import rclpy
from rclpy.node import Node
rclpy.init()
node, until = Node("look"), time.monotonic() + float(sys.argv[1])
while not node.count_subscribers("driver/joint_states"):
    time.sleep(0.1)
    if time.monotonic() > until:
        sys.exit(1)
"""
TALKER = """
import sys, time
import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
from youbot_dynamics.robot import load_robot
period, arm = 1.0 / float(sys.argv[1]), load_robot().arm.model()
rclpy.init()
node = Node("talker")
out = node.create_publisher(JointState, "driver/joint_states", 10)
message = JointState(name=[*arm.tree.joint_names, "gripper_finger_joint_l", "gripper_finger_joint_r"])
middle, size, fingers = np.array([2.95, 1.2, -2.4, 1.8, 2.9]), 0.3, [0.0, 0.0]
due = time.monotonic()
while True:
    t = time.monotonic()
    message.header.stamp = node.get_clock().now().to_msg()
    q, v, a = (f * np.ones(5) for f in (size * np.sin(t), size * np.cos(t), -size * np.sin(t)))
    resisting = [friction.coulomb * np.tanh(50.0 * v[0]) + friction.viscous * v[0] for friction in arm.friction]
    message.position = [*(middle + q), *fingers]
    message.velocity = [*v, *fingers]
    message.effort = [*(arm.tree.inverse_dynamics(middle + q, v, a) + resisting), *fingers]
    out.publish(message)
    due += period
    time.sleep(max(0.0, due - time.monotonic()))
"""


def cpu_of(pid: int) -> float:
    """CPU seconds a process has used so far, user and system."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_ear(environment: dict[str, str], listener: subprocess.Popen[bytes]) -> None:
    """Wait until the listener has subscribed and a second of messages has come to it.

    Raises:
        RuntimeError: it has not within the time it may take.
    """
    asked = subprocess.run([sys.executable, "-c", LOOK, str(_READY)], env=environment)
    if asked.returncode or listener.poll() is not None:
        raise RuntimeError(f"no ear on driver/joint_states after {_READY:g} s")
    time.sleep(1.0)


def listen(command: list[str], rate: float) -> float:
    """CPU seconds a listener takes in SECONDS of messages at `rate` [Hz], its start not counted.

    Raises:
        RuntimeError: the listener is not there.
    """
    environment = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": "93"}
    talker = subprocess.Popen([sys.executable, "-c", TALKER, str(rate)], env=environment)
    listener = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for_ear(environment, listener)
        began = cpu_of(listener.pid)
        time.sleep(SECONDS)
        return cpu_of(listener.pid) - began
    finally:
        for child in (listener, talker):
            child.send_signal(signal.SIGINT if child is listener else signal.SIGKILL)
        for child in (listener, talker):
            try:
                child.wait(5.0)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def node_at(rate: float) -> Item:
    """The node and an echo at `rate` [Hz]."""
    node = node_command("arm_ekf", ["--ros-args", "--params-file", str(config_path("youbot.yaml"))])
    echo = [sys.executable, "-c", ECHO]
    samples = round(rate * SECONDS)
    return Item(
        about=f"arm_ekf over DDS, {rate:.0f} messages a second: CPU for each",
        unit="us",
        candidates={
            "node arm_ekf": Candidate(partial(listen, node, rate), samples, timed=True),
            "bare echo": Candidate(partial(listen, echo, rate), samples, timed=True),
        },
        repeats=3,
        note=f"100 us a message are {0.01 * rate:.1f} % of a core",
    )


ITEMS = {"arm-ekf-node-50hz": partial(node_at, 50.0), "arm-ekf-node-200hz": partial(node_at, 200.0)}
