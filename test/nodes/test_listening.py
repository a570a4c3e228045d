"""Peers of every quality of service: what others publish is heard, reliable or not; nothing old is obeyed."""

from __future__ import annotations

import gc
import math
import struct
from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist, TwistStamped  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rclpy.event_handler import PublisherEventCallbacks  # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from ros_processes import BEST_EFFORT, KEEPING, RELIABLE, Observer, Processes, end  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from youbot_dynamics.commands.identify import recorded
from youbot_dynamics.nodes._listening import listen, listen_joints  # noqa: E402
from youbot_dynamics.nodes._messages import stamped_twist, twist_vector  # noqa: E402
from youbot_dynamics.recording.bag import open_bag  # noqa: E402
from youbot_dynamics.recording.message_types import odometry_cdr  # noqa: E402

pytestmark = pytest.mark.ros

FORWARD = Twist()
FORWARD.linear.x = 0.2


def test_an_old_command_that_an_operator_kept_moves_nothing_that_starts_later():
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
    ("trajectory_tracker", "odom", Odometry, ()),
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
    with Observer("subscriber") as subscriber, Observer("publishing") as publishing:
        received: list[str] = []
        listen(subscriber.node, JointState, "states", lambda m: received.append(m.header.frame_id), RELIABLE)
        (first,) = (s for s in subscriber.node.subscriptions if s.topic_name == "/states")
        reliable = publishing.node.create_publisher(JointState, "states", RELIABLE)

        def say(publisher, word: str) -> None:
            message = JointState()
            message.header.frame_id = word
            publisher.publish(message)
            subscriber.wait(lambda: word in received, word)

        subscriber.wait(lambda: reliable.get_subscription_count() == 1, "a match")
        say(reliable, "first")
        assert first in subscriber.node.subscriptions
        weak = publishing.node.create_publisher(JointState, "states", BEST_EFFORT)
        subscriber.wait(
            lambda: first not in subscriber.node.subscriptions and weak.get_subscription_count() == 1, "best effort"
        )
        subscriber.wait(lambda: reliable.get_subscription_count() == 1, "both")
        say(weak, "second")
        say(reliable, "third")
        assert received == ["first", "second", "third"]


def test_an_observer_that_ended_is_gone_from_the_domain():
    """Whatever it waited for last: here an event, which its executor would keep, and the node with it."""
    with Observer("staying") as staying:
        staying.listen(Twist, "asked", RELIABLE)
        gc.disable()
        try:
            with Observer("ended") as ended:
                told: list = []
                callbacks = PublisherEventCallbacks(incompatible_qos=told.append)
                ended.node.create_publisher(Twist, "asked", BEST_EFFORT, event_callbacks=callbacks)
                ended.wait(lambda: told, "word of the quality that does not fit")
            staying.wait(lambda: "ended" not in staying.node.get_node_names(), "its end")
        finally:
            gc.enable()


def test_commands_of_a_best_effort_operator_drive_the_base():
    with Processes() as processes, Observer("joystick") as operator:
        operator.listen(Twist, "driver/cmd_vel")
        cmd_vel = operator.node.create_publisher(Twist, "cmd_vel", BEST_EFFORT)
        processes.node("base_controller")
        operator.wait(lambda: cmd_vel.get_subscription_count() == 1, "base_controller")
        sent = operator.received["driver/cmd_vel"]
        operator.send(cmd_vel, FORWARD, lambda: sent and sent[-1].linear.x > 0.05, "a base that drives")


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


def test_joint_states_are_read_from_their_bytes_and_bytes_that_are_none_are_dropped():
    taken = []
    full = JointState(name=["b", "a"], position=[1.0, 2.0], velocity=[3.0, math.nan], effort=[5.0, 6.0])
    full.header.stamp.sec, full.header.stamp.nanosec = 1_700_000_000, 123_456_789
    partly = JointState(name=["c"], velocity=[0.5])
    with Observer("subscriber") as subscriber, Observer("publishing") as publishing:

        def take(stamp: float, names: tuple[str, ...], *fields: Sequence[float]) -> None:
            taken.append([stamp, names, *map(list, fields)])

        listen_joints(subscriber.node, "states", take, RELIABLE)
        publisher = publishing.node.create_publisher(JointState, "states", RELIABLE)
        subscriber.wait(lambda: publisher.get_subscription_count() == 1, "a match")
        whole = serialize_message(full)
        # Bytes that are none, and a stamp that overflows if it is passed on.
        head, late = b"\x00\x01\x00\x00", struct.pack("<iI", 2**31 - 1, 2**32 - 1)
        dropped = b"", whole[:40], head + b"\xff" * 60, head + late + whole[12:]
        for data in (*dropped, whole, whole, serialize_message(partly)):
            publisher.publish(data)
        subscriber.wait(lambda: len(taken) == 3, "the messages")
    assert taken[0][:3] == [1_700_000_000 + 1e-9 * 123_456_789, ("b", "a"), [1.0, 2.0]]
    np.testing.assert_array_equal(taken[0][3], [3.0, math.nan])
    assert taken[0][4] == [5.0, 6.0]
    assert str(taken[1]) == str(taken[0])
    assert taken[2] == [0.0, ("c",), [], [0.5], []]


@pytest.mark.parametrize("frames", [("", ""), ("odom", "base_footprint"), ("a_frame_of_another_length", "b")])
@pytest.mark.parametrize("bad", [False, True])
def test_the_twist_of_an_odometry_is_read_from_its_bytes(frames: tuple[str, str], bad: bool):
    data = odometry_cdr(12_500_000_000, *frames, np.array([1.0, 2.0, 0.3]), np.array([0.1, -0.2, 0.3]))
    message = deserialize_message(data, Odometry)
    message.twist.twist.linear.z = math.inf if bad else 7.0
    data = serialize_message(message)
    decoded = stamped_twist(data)
    assert decoded is not None
    assert decoded[0] == 12.5
    np.testing.assert_array_equal(decoded[1], twist_vector(message.twist.twist))
    assert stamped_twist(data[:700]) is None
