"""Quality of service of every topic of a running robot, as the contract has it; peers of every kind; late joiners."""

from __future__ import annotations

import functools

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from ros_processes import BEST_EFFORT, KEEPING, RELIABLE, Observer, Processes  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from youbot_dynamics.nodes import _runtime as runtime  # noqa: E402
from youbot_dynamics.nodes._topic_graph import TopicEndpoints, endpoints_of  # noqa: E402

pytestmark = pytest.mark.ros

NODES = ("mock_youbot", "base_controller", "odometry", "arm_ekf", "identification", "stop_base")
OF_ROS = ("/rosout", "/parameter_events")
LATCHED = {"/identification/result"}
COMMANDS = {"/driver/cmd_vel", "/driver/wheel_velocity_command", "/trajectory_tracker/cmd_vel"}
# What runs all the time on a robot that drives, by what a peer would subscribe to.
STREAMS = {
    "driver/joint_states": JointState,
    "driver/odom": Odometry,
    "driver/cmd_vel": Twist,
    "wheel_commands": JointState,
    "odom": Odometry,
    "joint_states": JointState,
    "arm_1/estimated_joint_states": JointState,
    "/diagnostics": DiagnosticArray,
}
FORWARD = Twist()
FORWARD.linear.x = 0.2


@pytest.fixture(scope="module")
def robot():
    """A running robot and an observer that drives it; every node has been found."""
    with Processes() as processes, Observer("operator") as observer:
        for name in NODES:
            processes.node(name, *(("-p", "standby:=true") if name == "stop_base" else ()))
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        wanted = {*NODES, "trajectory_tracker"}
        observer.wait(lambda: wanted <= set(observer.node.get_node_names()), "the nodes")
        spoken = (*STREAMS, *LATCHED, *COMMANDS)
        observer.wait(
            lambda: all(endpoints_of(observer.node, topic).publishers for topic in spoken), "a publisher of every topic"
        )
        observer.wait(lambda: cmd_vel.get_subscription_count() >= 2, "both listeners of cmd_vel")
        for topic, kind in STREAMS.items():
            observer.listen(kind, topic)
        observer.drive = functools.partial(observer.send, cmd_vel, FORWARD)
        observer.drive(lambda: all(observer.received[topic] for topic in STREAMS), "every stream")
        yield observer


@pytest.fixture(scope="module")
def topics(robot) -> list[TopicEndpoints]:
    """Every topic of the robot's own nodes, with its ends."""
    found = [endpoints_of(robot.node, name) for name, _ in robot.node.get_topic_names_and_types() if name not in OF_ROS]
    assert len(found) > 25
    return found


def test_everything_the_nodes_publish_is_reliable_and_only_the_result_is_kept_for_late_joiners(topics):
    kept, weak = set(), set()
    for topic in topics:
        for publisher in topic.publishers:
            if publisher.node == "/operator":
                continue
            kept |= {topic.name} if publisher.latched else set()
            weak |= set() if publisher.reliable else {topic.name}
    assert weak == set()
    assert kept == LATCHED


def test_no_node_asks_for_what_was_said_before_it_came(topics):
    asking = {topic.name for topic in topics for end in topic.subscriptions if end.latched and end.node != "/operator"}
    assert asking == set()


def test_queues_are_as_the_contract_has_them():
    depths = {name: getattr(runtime, name).depth for name in ("COMMAND_QOS", "STATE_QOS", "DRIVER_QOS", "TF_QOS")}
    assert depths == {"COMMAND_QOS": 1, "STATE_QOS": 10, "DRIVER_QOS": 100, "TF_QOS": 100}


def test_one_type_a_topic(topics):
    mixed = {t.name: {e.kind for e in (*t.publishers, *t.subscriptions)} for t in topics}
    assert {name: kinds for name, kinds in mixed.items() if len(kinds) > 1} == {}


def test_best_effort_and_reliable_peers_hear_every_stream_and_latched_ones_are_not_matched(robot):
    heard: dict[tuple[str, str], int] = {}

    def counter(key: tuple[str, str]):
        def take(message) -> None:
            heard[key] += 1

        return take

    subscriptions = []
    for topic, kind in STREAMS.items():
        for name, quality in (("best effort", BEST_EFFORT), ("reliable", RELIABLE), ("latched", KEEPING)):
            heard[topic, name] = 0
            subscriptions.append(robot.node.create_subscription(kind, topic, counter((topic, name)), quality))
    robot.drive(lambda: all(count for key, count in heard.items() if key[1] != "latched"), f"all of {sorted(heard)}")
    for subscription in subscriptions:
        robot.node.destroy_subscription(subscription)
    assert {key for key, count in heard.items() if count > 0 and key[1] == "latched"} == set()


def test_a_late_joiner_is_told_nothing_stale(robot):
    sent = robot.received["driver/cmd_vel"]
    robot.drive(lambda: sent[-1].linear.x > 0.1, "a base that drives")
    robot.wait(lambda: sent[-1] == Twist(), "the base to brake, since the operator has fallen silent")
    with Observer("late") as late:
        for topic in ("driver/cmd_vel", "trajectory_tracker/cmd_vel"):
            late.listen(Twist, topic)
        late.hear("driver/cmd_vel", 25)
        assert all(message == Twist() for message in late.received["driver/cmd_vel"])
        assert late.received["trajectory_tracker/cmd_vel"] == []
