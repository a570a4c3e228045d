"""Recording beside others: types nobody knows, nodes that have our names, and a bag that reaches its size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, Twist
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_processes import Observer, Processes
from std_srvs.srv import Trigger

from youbot_dynamics.nodes.taps import _message_class
from youbot_dynamics.recording.bag import open_bag

pytestmark = pytest.mark.ros

# A recorder whose bag library knows no Point.
WITHOUT_POINT = """
import sys
from youbot_dynamics.recording.message_types import jazzy_types
jazzy_types().fielddefs.pop("geometry_msgs/msg/Point")
from youbot_dynamics.nodes.recorder import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("name", ["os/path/join", "antigravity/msg/X", "x", "", "a/b/c/d", "geometry_msgs/msg/Nothing"])
def test_a_type_nobody_knows_is_not_imported(name: str) -> None:
    before = set(sys.modules)
    assert _message_class(name) is None
    assert "antigravity" not in set(sys.modules) - before
    assert _message_class("geometry_msgs/msg/Point") is Point


def test_the_recorder_passes_over_unknown_types_and_foreign_nodes(tmp_path: Path) -> None:
    with Processes() as processes, Observer("odometry") as stranger:
        points = stranger.node.create_publisher(Point, "points", 10)
        twists = stranger.node.create_publisher(Twist, "cmd_vel", 10)
        recorder = processes.run([sys.executable, "-c", WITHOUT_POINT, "--out", str(tmp_path / "bag")])
        stranger.wait(lambda: twists.get_subscription_count(), "the recorder")
        # Asks the stranger for parameters of ours meanwhile.
        for number in range(40):
            points.publish(Point())
            twists.publish(Twist())
            stranger.spin(0.1)
            assert recorder.poll() is None, f"ended after {number} messages: {recorder.communicate()[0]}"
        processes.node("base_controller")
        bag = tmp_path / "bag" / "metadata.yaml"
        stranger.wait(lambda: 'robot_id: "youbot' in bag.read_text(), "the parameters of our own node in the bag", 60.0)
        recorder.terminate()
        told = recorder.communicate(timeout=30.0)[0]
    assert recorder.returncode == 0 and "Traceback" not in told, told
    assert told.count("not recorded: /points, its type geometry_msgs/msg/Point") == 1
    recording = open_bag(tmp_path / "bag")
    assert "/points" not in recording.topics and recording.topics["/cmd_vel"].count > 10
    assert recording.metadata["robot_id"].startswith("youbot")


def test_the_bag_of_identification_ends_at_its_size_and_its_folder_stays(tmp_path: Path) -> None:
    from rcl_interfaces.msg import Parameter, ParameterValue
    from rcl_interfaces.srv import SetParameters

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    with Processes() as processes, Observer() as observer:
        processes.node("identification", "-p", f"output_folder:={tmp_path / 'mine'}", "-p", "max_bag_size:=0.02")
        observer.listen(DiagnosticArray, "identification/result", latched)
        twists = observer.node.create_publisher(Twist, "cmd_vel", 10)
        observer.wait(lambda: twists.get_subscription_count(), "the node")
        text = ParameterValue(type=4, string_value=str(tmp_path / "other"))
        request = SetParameters.Request(parameters=[Parameter(name="output_folder", value=text)])
        assert not observer.call(SetParameters, "identification/set_parameters", request).results[0].successful
        assert observer.call(Trigger, "identification/start", Trigger.Request()).success

        def told() -> bool:
            twists.publish(Twist())
            return bool(observer.received["identification/result"])

        observer.wait(told, "the end of the bag", 60.0)
        status = observer.received["identification/result"][-1].status[0]
        assert "max_bag_size of 0.02 MB reached" in status.message and status.level != b"\x00"
        answer = observer.call(Trigger, "identification/stop", Trigger.Request())
        assert not answer.success
    (bag,) = (tmp_path / "mine").iterdir()
    assert not (tmp_path / "other").exists()
    assert 20_000 <= sum(file.stat().st_size for file in bag.iterdir()) < 2_000_000
    assert not open_bag(bag).lost
