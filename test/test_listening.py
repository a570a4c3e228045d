"""Peers of every quality of service: what others publish is heard, reliable or not; nothing old is obeyed."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist, TwistStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402
from ros_processes import Observer, Processes, end  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from youbot_dynamics.commands.identify_robot import recorded  # noqa: E402
from youbot_dynamics.nodes.listening import listen  # noqa: E402
from youbot_dynamics.recording.bag import open_bag  # noqa: E402

pytestmark = pytest.mark.ros

BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
KEEPING = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FORWARD = Twist()
FORWARD.linear.x = 0.2


def test_an_old_wish_that_an_operator_kept_moves_nothing_that_starts_later():
    with Processes() as processes, Observer("operator") as operator:
        operator.listen(Twist, "driver/cmd_vel")
        keeping = operator.node.create_publisher(Twist, "cmd_vel", KEEPING)
        keeping.publish(FORWARD)
        processes.node("base_controller")
        operator.wait(lambda: keeping.get_subscription_count() > 0, "base_controller")
        operator.listen(DiagnosticArray, "/diagnostics")
        operator.hear("/diagnostics", 2)  # the controller says once a second that it waits for a first command
        assert operator.received["driver/cmd_vel"] == []
        keeping.publish(FORWARD)
        operator.wait(lambda: operator.received["driver/cmd_vel"], "a command to the driver")


# Inputs that others publish, and by whom they must be heard whatever quality is offered.
INPUTS = (
    ("base_controller", "cmd_vel", Twist, ()),
    ("base_controller", "cmd_vel", TwistStamped, ("-p", "enable_stamped_cmd_vel:=true")),
    ("check_driver", "driver/joint_states", JointState, ()),
    ("odometry", "driver/joint_states", JointState, ("-p", "stabilize:=false")),
    ("arm_ekf", "driver/joint_states", JointState, ()),
)
MORE_INPUTS = (
    ("check_driver", "driver/odom", Odometry, ()),
    ("odometry", "odom", Odometry, ()),
    ("odometry", "cmd_vel", Twist, ()),
    ("arm_ekf", "arm_1/motor_voltage", JointState, ()),
    ("arm_ekf", "arm_1/motor_temperature", JointState, ()),
)


@pytest.mark.parametrize(
    ("node", "topic", "kind", "arguments"),
    [*INPUTS, *(pytest.param(*one, marks=pytest.mark.slow) for one in MORE_INPUTS)],
)
def test_inputs_are_heard_of_best_effort_publishers_and_of_reliable_ones_beside(node, topic, kind, arguments):
    with Processes() as processes, Observer("peer") as peer:
        reliable = peer.node.create_publisher(kind, topic, RELIABLE)
        child = processes.node(node, *arguments)
        peer.wait(lambda: reliable.get_subscription_count() == 1, "the subscription")
        weak = peer.node.create_publisher(kind, topic, BEST_EFFORT)
        peer.wait(lambda: weak.get_subscription_count() == 1, "a subscription that asks for less")
        peer.wait(lambda: reliable.get_subscription_count() == 1, "the reliable one again")
        assert end(child).count("published with best effort") == 1


def test_a_listener_loses_nothing_of_a_reliable_publisher_until_it_has_to_ask_for_less():
    with Observer("ear") as ear, Observer("mouth") as mouth:
        heard: list[str] = []
        listener = listen(ear.node, JointState, "states", lambda m: heard.append(m.header.frame_id), RELIABLE)
        reliable = mouth.node.create_publisher(JointState, "states", RELIABLE)

        def say(publisher, word: str) -> None:
            message = JointState()
            message.header.frame_id = word
            publisher.publish(message)
            ear.wait(lambda: word in heard, word)

        ear.wait(lambda: reliable.get_subscription_count() == 1, "a match")
        say(reliable, "first")
        assert not listener.best_effort
        weak = mouth.node.create_publisher(JointState, "states", BEST_EFFORT)
        ear.wait(lambda: listener.best_effort and weak.get_subscription_count() == 1, "less")
        ear.wait(lambda: reliable.get_subscription_count() == 1, "both")
        say(weak, "second")
        say(reliable, "third")
        assert heard == ["first", "second", "third"]


def test_commands_of_a_best_effort_operator_drive_the_base():
    with Processes() as processes, Observer("joystick") as operator:
        operator.listen(Twist, "driver/cmd_vel")
        wish = operator.node.create_publisher(Twist, "cmd_vel", BEST_EFFORT)
        processes.node("base_controller")
        operator.wait(lambda: wish.get_subscription_count() == 1, "base_controller")
        sent = operator.received["driver/cmd_vel"]
        operator.send(wish, FORWARD, lambda: sent and sent[-1].linear.x > 0.05, "a base that drives")


def test_the_recorder_takes_best_effort_and_reliable_publishers(tmp_path):
    with Processes() as processes, Observer("peer") as peer:
        for name, quality in (("weak", BEST_EFFORT), ("strong", RELIABLE), ("kept", KEEPING)):
            publisher = peer.node.create_publisher(JointState, name, quality)
            if name == "kept":
                publisher.publish(JointState(name=["before"]))
            setattr(peer, name, publisher)
        child = processes.youbot("record", "--out", str(tmp_path / "bag"))
        peer.wait(
            lambda: peer.weak.get_subscription_count() + peer.strong.get_subscription_count() == 2, "the recorder"
        )
        wanted = {"/weak", "/strong", "/kept"}

        def in_the_bag() -> bool:
            # A match on this side is none on the other yet, and best effort may lose a message.
            for name in ("weak", "strong"):
                getattr(peer, name).publish(JointState(name=[name]))
            peer.spin(0.2)
            return wanted <= set(recorded(tmp_path / "bag"))

        peer.wait(in_the_bag, "messages of all three in the bag")
        end(child)
    assert wanted <= set(open_bag(tmp_path / "bag").topics)
