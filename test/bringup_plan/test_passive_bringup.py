"""passive:=true beside a stack of somebody else's: our nodes hear it, estimate, and command nothing."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from ros_processes import Observer, Processes, compile_nodes  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from youbot_dynamics.bringup_plan import BringupOptions, plan  # noqa: E402
from youbot_dynamics.nodes._messages import seconds  # noqa: E402
from youbot_dynamics.nodes.processes import node_command  # noqa: E402
from youbot_dynamics.recording.bag import open_bag  # noqa: E402

pytestmark = pytest.mark.ros

OURS = {"odometry", "arm_ekf", "identification"}
# Whatever a youBot's driver, a controller of ros2_control or one of our own nodes takes orders from.
COMMANDS = ("cmd_vel", "wheel_commands", "trajectory", "joint_trajectory", "commands", "command", "tf", "tf_static")
ORDERS = ("Twist", "TwistStamped", "JointTrajectory", "MultiDOFJointTrajectory", "Float64MultiArray", "TFMessage")


def test_passive_nodes_follow_somebody_elses_robot_and_command_nothing(tmp_path):
    compile_nodes()
    own = tmp_path / "own.yaml"
    own.write_text(f"/**/identification:\n  ros__parameters:\n    output_folder: {tmp_path / 'found'}\n")
    with Processes() as processes, Observer() as observer:
        # The simulated robot has the topics of a plain driver: it plays the other stack.
        children = {
            process.executable: processes.run(node_command(process.executable, process.arguments))
            for process in plan(BringupOptions(robot="mock", passive=True, params_file=str(own)))
        }
        assert set(children) == OURS | {"mock_youbot"}
        observer.listen(Odometry, "passive_odom")
        observer.listen(JointState, "arm_1/estimated_joint_states")
        observer.listen(Odometry, "ground_truth")
        operator = observer.node.create_publisher(Twist, "cmd_vel", 1)
        for topic in ("passive_odom", "arm_1/estimated_joint_states"):
            observer.wait(lambda topic=topic: len(observer.received[topic]) > 2, topic)
        observer.wait(lambda: observer.received["ground_truth"], "the truth")

        node = observer.node

        def present() -> set[str]:
            return {name for name, _ in node.get_node_names_and_namespaces()}

        observer.wait(lambda: present() >= OURS, "the names of our nodes")
        found = present()
        assert not found & {"base_controller", "stop_base", "trajectory_tracker"}
        for name in OURS:
            for topic, kinds in node.get_publisher_names_and_types_by_node(name, "/"):
                assert topic.rsplit("/", 1)[-1] not in COMMANDS, f"{name} commands {topic}"
                assert topic not in ("/odom", "/joint_states"), f"{name} takes the other stack's {topic}"
                assert not [kind for kind in kinds if kind.rsplit("/", 1)[-1] in ORDERS], f"{name}: {topic}"
            assert not node.get_client_names_and_types_by_node(name, "/"), f"{name} calls services"

        assert observer.call(Trigger, "/identification/start", Trigger.Request()).success
        observer.wait(lambda: operator.get_subscription_count() > 1, "the other stack's driver, and identification")
        command = Twist()
        command.linear.x = 0.3
        truth, odom = observer.received["ground_truth"], observer.received["passive_odom"]

        def at_rest() -> bool:
            return abs(truth[-1].twist.twist.linear.x) < 1e-3

        observer.send(operator, command, lambda: truth[-1].pose.pose.position.x > 0.2, "the other stack to drive")
        observer.send(operator, Twist(), at_rest, "the other stack to rest")
        true, stopped = truth[-1].pose.pose.position.x, seconds(truth[-1].header.stamp)
        observer.wait(lambda: seconds(odom[-1].header.stamp) > stopped, "odom of the rest")
        assert observer.call(Trigger, "/identification/stop", Trigger.Request()).success
        assert odom[-1].pose.pose.position.x == pytest.approx(true, abs=0.1 * true)
        assert all(child.poll() is None for child in children.values())
    (bag,) = (tmp_path / "found").glob("recording_*")
    topics = open_bag(bag).topics
    for topic in ("/cmd_vel", "/joint_states", "/odom"):
        assert topics[topic].count > 0, f"identification did not hear {topic}"
