"""The frames of two robots in one graph, each on the tf of its own namespace.

tf2_msgs is in no wheel. A double stands in for it: its TFMessage sends the one transform it carries as the message
geometry_msgs/TransformStamped, so that topic, namespace and frames are real, and only the wrapping is not.
"""

from __future__ import annotations

import importlib.util
import os
import time

import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import TransformStamped  # noqa: E402
from ros_processes import Observer, Processes  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from youbot_dynamics.bringup_plan import BringupOptions, plan  # noqa: E402
from youbot_dynamics.nodes.processes import node_command  # noqa: E402

pytestmark = pytest.mark.ros

ROBOTS = ("yb1", "yb2")
DOUBLE = """
from geometry_msgs.msg import TransformStamped

type(TransformStamped).__import_type_support__()


class Instances(type(TransformStamped)):
    def __instancecheck__(cls, message):
        return isinstance(message, TransformStamped)


class TFMessage(TransformStamped, metaclass=Instances):
    def __new__(cls, transforms):
        (only,) = transforms
        return only
"""


@pytest.mark.parametrize("kind", ["double", "tf2_msgs"])
def test_each_robot_broadcasts_its_frames_on_its_own_tf(kind, tmp_path, monkeypatch):
    if kind == "double":
        (tmp_path / "tf2_msgs").mkdir()
        (tmp_path / "tf2_msgs" / "__init__.py").touch()
        (tmp_path / "tf2_msgs" / "msg.py").write_text(DOUBLE)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
        message_kind = TransformStamped
    else:
        if importlib.util.find_spec("tf2_msgs") is None:
            pytest.skip("tf2_msgs is not installed")
        from tf2_msgs.msg import TFMessage as message_kind
    with Processes() as processes, Observer("tf_observer") as observer:
        for name, prefix in (("yb1", ""), ("yb2", "yb2/")):
            whole = plan(
                BringupOptions(robot="real", namespace=name, frame_prefix=prefix, stabilize=False, description=False)
            )
            odometry = next(process for process in whole if process.executable == "odometry")
            processes.run(node_command("odometry", odometry.arguments))
        for topic in ("/yb1/tf", "/yb2/tf", "/tf"):
            observer.listen(message_kind, topic, 100)
        drivers = {
            name: observer.node.create_publisher(JointState, f"/{name}/driver/joint_states", 10) for name in ROBOTS
        }
        wheels = ["wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br"]

        def heard() -> bool:
            # Only the first robot rolls.
            for name, speed in zip(ROBOTS, (2.0, 0.0), strict=True):
                now = observer.node.get_clock().now()
                signs = (-1.0, 1.0, -1.0, 1.0)  # the driver's: velocity flipped on the left, position not
                message = JointState(name=wheels, velocity=[sign * speed for sign in signs])
                message.position = [1e-9 * speed * (now.nanoseconds % 10**12)] * 4
                message.header.stamp = now.to_msg()
                drivers[name].publish(message)
            time.sleep(0.02)
            return all(len(observer.received[f"/{name}/tf"]) > 20 for name in ROBOTS)

        observer.wait(heard, "tf of both")
    assert not observer.received["/tf"]
    for name, frames in (("yb1", ("odom", "base_footprint")), ("yb2", ("yb2/odom", "yb2/base_footprint"))):
        messages = observer.received[f"/{name}/tf"]
        transforms = messages if kind == "double" else [t for message in messages for t in message.transforms]
        assert {(t.header.frame_id, t.child_frame_id) for t in transforms} == {frames}
        moved = abs(transforms[-1].transform.translation.x)
        assert moved > 0.01 if name == "yb1" else moved == 0.0, (name, moved, len(transforms))
