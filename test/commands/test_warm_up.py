"""`youbot warm-up`: after it nodes have nothing to compile, neither at their start nor in a drive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

pytest.importorskip("numba")
pytest.importorskip("rclpy")

from ros_processes import environment  # noqa: E402

from youbot_dynamics import compiled as shim  # noqa: E402
from youbot_dynamics.commands import _warm_up as warm_up  # noqa: E402
from youbot_dynamics.errors import ResourceError  # noqa: E402
from youbot_dynamics.resources import config_path  # noqa: E402
from youbot_dynamics.warm_up import first_use  # noqa: E402

pytestmark = pytest.mark.ros

NODES = """
import sys
import rclpy
from geometry_msgs.msg import Transform, Twist
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint
from youbot_dynamics.warm_up import first_use

with first_use(print) as compiled:
    from youbot_dynamics.nodes.arm_ekf import ArmEkfNode
    from youbot_dynamics.nodes.base_controller import BaseController
    from youbot_dynamics.nodes.mock_youbot import MockYoubot
    from youbot_dynamics.nodes.odometry import OdometryNode
    from youbot_dynamics.nodes.trajectory_tracker import TrajectoryTracker
    rclpy.init(args=sys.argv)
    kinds = (MockYoubot, BaseController, OdometryNode, TrajectoryTracker, ArmEkfNode)
    nodes = [kind() for kind in kinds]
    seen = {"trajectory_tracker/error": 0, "arm_1/estimated_joint_states": 0}
    def count(topic):
        seen[topic] += 1
    executor = SingleThreadedExecutor()
    for node in nodes:
        executor.add_node(node)
    for topic in seen:
        nodes[0].create_subscription(JointState, topic, lambda message, topic=topic: count(topic), 10)
    path = nodes[0].create_publisher(MultiDOFJointTrajectory, "trajectory", 1)
    message = MultiDOFJointTrajectory(joint_names=["base_footprint"])
    message.header.frame_id = "base_footprint"
    for k in range(61):
        point = MultiDOFJointTrajectoryPoint(transforms=[Transform()])
        point.transforms[0].translation.x = 0.01 * k
        point.transforms[0].rotation.w = 1.0
        point.time_from_start = Duration(seconds=k + 1).to_msg()
        message.points.append(point)
    asked = 0
    while min(seen.values()) < 20:
        executor.spin_once(timeout_sec=0.05)
        # Once more where a busy machine has made the tracker give up.
        if seen["arm_1/estimated_joint_states"] > 50 * (asked + 1):
            path.publish(message)
            asked += 1
print(len(nodes), "nodes", compiled)
"""


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def warmed() -> None:
    run("-m", "youbot_dynamics.commands.main", "warm-up")


def test_a_second_time_there_is_nothing_to_compile(warmed: None) -> None:
    assert "all code is compiled already" in run("-m", "youbot_dynamics.commands.main", "warm-up")


def test_nodes_of_a_new_process_start_and_drive_without_compiling(warmed: None) -> None:
    files = [word for name in ("youbot", "mock") for word in ("--params-file", str(config_path(f"{name}.yaml")))]
    assert run("-c", NODES, "--ros-args", *files).splitlines()[-1] == "5 nodes []"


def test_the_reason_for_a_slow_start_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "_folder_of", lambda file: None)  # nothing is kept: each compiles

    def unheard(x: float) -> float:
        return x + 1.0

    unheard.__module__ = "youbot_dynamics.unheard"
    said: list[str] = []
    monkeypatch.setattr(shim, "kept_in", lambda: tmp_path)
    for _ in range(2):  # as two nodes of a bringup
        function = shim.compiled(unheard)
        with first_use(said.append):
            function(1.0)
            function(1)
    assert len(said) == 1
    assert "warm-up" in said[0] and "a minute" in said[0]
    os.utime(tmp_path / "announced", (0.0, 0.0))  # for an earlier version, long ago
    with first_use(said.append):
        shim.compiled(unheard)(1.0)
    assert len(said) == 2


def full_disk(name: str) -> tuple[int, str]:
    return 3, "No space left on device"


def killed(name: str) -> tuple[int, str]:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0, ""


@pytest.mark.parametrize(("node", "said"), [(full_disk, "No space left on device"), (killed, "processes was killed")])
def test_a_warm_up_that_kept_nothing_says_so_in_one_line(node, said, monkeypatch, capfd) -> None:
    monkeypatch.setattr(warm_up, "use_node", node)
    monkeypatch.setattr(warm_up, "get_context", lambda kind: get_context("fork"))  # which knows this module
    with pytest.raises(ResourceError, match=said):
        warm_up.warm_up()
    assert "kept in" not in "".join(capfd.readouterr())
