"""Two robots in one graph, in separate namespaces: neither receives from the other."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rcl_interfaces.srv import GetParameters  # noqa: E402
from ros_processes import Observer, Processes, compile_nodes, end  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from youbot_dynamics.bringup_plan import BringupOptions, plan  # noqa: E402
from youbot_dynamics.commands.identify import recorded
from youbot_dynamics.nodes.processes import node_command  # noqa: E402
from youbot_dynamics.recording.bag import open_bag  # noqa: E402
from youbot_dynamics.resources import urdf_path  # noqa: E402

pytestmark = pytest.mark.ros

ROBOTS = ("yb1", "yb2")
SHARED = ("/diagnostics", "/rosout", "/parameter_events")


@pytest.fixture(scope="module")
def robots(tmp_path_factory):
    """Both robots at rest, each with a parameter file of its own, and who watches them."""
    compile_nodes()
    folder = tmp_path_factory.mktemp("two_robots")
    with Processes() as processes, Observer() as observer:
        for number, name in enumerate(ROBOTS, start=1):
            own = folder / f"{name}.yaml"
            own.write_text(
                f"/**:\n  ros__parameters:\n    robot:\n      robot_id: robot_{name}\n"
                f"/**/mock_youbot:\n  ros__parameters:\n    seed: {number}\n"
                f"/**/odometry:\n  ros__parameters:\n    odom_frame: odom_{number}\n"
            )
            for process in plan(
                BringupOptions(namespace=name, params_file=str(own), estimate_arm=False, description=False)
            ):
                processes.run(node_command(process.executable, process.arguments))
            for kind, topic in (
                (Odometry, "ground_truth"),
                (Odometry, "odom"),
                (JointState, "joint_states"),
                (JointState, "wheel_commands"),
                (Twist, "driver/cmd_vel"),
            ):
                observer.listen(kind, f"/{name}/{topic}")
        for name in ROBOTS:
            for topic in ("odom", "ground_truth", "joint_states"):
                heard = observer.received[f"/{name}/{topic}"]
                observer.wait(lambda heard=heard: len(heard) > 2, f"{topic} of {name}")
        yield observer


def nodes_of(observer: Observer, namespace: str) -> list[str]:
    return [name for name, where in observer.node.get_node_names_and_namespaces() if where == namespace]


def test_only_the_robot_that_is_told_to_moves(robots):
    operator = robots.node.create_publisher(Twist, "/yb1/cmd_vel", 1)
    robots.wait(lambda: operator.get_subscription_count() >= 2, "base_controller and tracker of yb1")
    command = Twist()
    command.linear.x = 0.3
    still = robots.received["/yb2/ground_truth"][-1].pose.pose
    truth = robots.received["/yb1/ground_truth"]
    robots.send(operator, command, lambda: truth[-1].pose.pose.position.x > 0.2, "yb1 to move")
    robots.send(operator, Twist(), lambda: abs(truth[-1].twist.twist.linear.x) < 1e-3, "yb1 to rest")
    robots.hear("/yb2/ground_truth", 50)
    assert robots.received["/yb2/ground_truth"][-1].pose.pose == still
    for topic in ("wheel_commands", "driver/cmd_vel"):
        assert robots.received[f"/yb1/{topic}"], topic
        assert not robots.received[f"/yb2/{topic}"], topic
    assert abs(robots.received["/yb1/odom"][-1].pose.pose.position.x) > 0.15
    assert abs(robots.received["/yb2/odom"][-1].pose.pose.position.x) < 1e-3


def test_a_recorder_keeps_to_the_robot_of_its_namespace(robots, tmp_path):
    with Processes() as processes:
        words = ("--out", str(tmp_path / "bag"), "--ros-args", "-r", "__ns:=/yb1")
        recorder = processes.run(node_command("recorder", words))
        wanted = {"/yb1/odom", "/yb1/driver/joint_states"}
        robots.wait(lambda: wanted <= set(recorded(tmp_path / "bag")), "messages in the bag")
        end(recorder)
    topics = set(open_bag(tmp_path / "bag").topics)
    assert wanted <= topics
    assert not {topic for topic in topics if topic.startswith("/yb2/")}


def test_no_node_speaks_or_listens_outside_its_namespace(robots):
    node = robots.node
    for name in ROBOTS:
        found = nodes_of(robots, f"/{name}")
        assert {"mock_youbot", "base_controller", "odometry", "trajectory_tracker", "stop_base"} <= set(found)
        for one in found:
            topics = node.get_publisher_names_and_types_by_node(one, f"/{name}")
            topics += node.get_subscriber_names_and_types_by_node(one, f"/{name}")
            outside = {topic for topic, _ in topics if not topic.startswith(f"/{name}/")} - set(SHARED)
            assert not outside, f"{one} of {name}"
            services = node.get_service_names_and_types_by_node(one, f"/{name}")
            assert all(service.startswith(f"/{name}/") for service, _ in services)


def test_each_robot_has_its_own_parameter_file(robots):
    for number, name in enumerate(ROBOTS, start=1):
        for node, parameter, wanted in (
            ("base_controller", "robot.robot_id", f"robot_{name}"),
            ("trajectory_tracker", "robot.robot_id", f"robot_{name}"),
            ("odometry", "odom_frame", f"odom_{number}"),
        ):
            request = GetParameters.Request(names=[parameter])
            answer = robots.call(GetParameters, f"/{name}/{node}/get_parameters", request)
            assert answer.values[0].string_value == wanted, f"{node} of {name}"
        assert robots.received[f"/{name}/odom"][-1].header.frame_id == f"odom_{number}"


def test_merged_joint_states_hold_every_moving_joint_of_the_urdf_in_our_signs(robots):
    """robot_state_publisher has nothing to leave out: else RViz shows parts without transforms."""
    joints = ElementTree.parse(urdf_path("youbot.urdf")).getroot().findall("joint")
    moving = {joint.get("name") for joint in joints if joint.get("type") != "fixed"}
    assert len(moving) == 4 + 5 + 2
    messages = robots.received["/yb1/joint_states"]
    assert moving <= {name for message in messages for name in message.name}
    for message in messages:
        assert len(message.position) == len(message.name)
    forward = [m for m in messages if "wheel_joint_fl" in m.name]
    for wheel in ("wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br"):
        k = forward[0].name.index(wheel)
        assert forward[-1].position[k] - forward[0].position[k] > 1.0, f"{wheel}: yb1 drove forward"
        assert max(m.velocity[k] for m in forward) > 1.0, wheel
    publishers = robots.node.get_publishers_info_by_topic("/yb1/joint_states")
    assert [info.node_name for info in publishers] == ["odometry"]
