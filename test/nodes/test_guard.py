"""stop_base believes its base_controller alone, base_controller brakes without it, and no node runs twice."""

from __future__ import annotations

import os
import signal
import socket
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import Twist  # noqa: E402
from operators import COMMAND, DRIVER, Operator, moving  # noqa: E402
from ros_processes import Observer, Processes, end  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from youbot_dynamics.nodes.local_socket import LOST, ControllerSocket, GuardSocket, domain_of_environment, notify  # noqa: E402

pytestmark = pytest.mark.ros

STANDBY = ("-p", "standby:=true")


class OtherPublisher:
    """Publishes what a controller publishes on wheel_commands, as a replayed bag does too."""

    def __init__(self, operator: Operator) -> None:
        self._publisher = operator.node.create_publisher(JointState, "wheel_commands", 10)
        names = ["wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br"]
        message = JointState(name=names, velocity=[6.0, 6.0, 6.0, 6.0])

        def publish() -> None:
            message.header.stamp = operator.node.get_clock().now().to_msg()
            self._publisher.publish(message)

        operator.node.create_timer(0.02, publish)


def guarded_drive(processes: Processes, operator: Operator):
    """Start both, drive, and wait until the driver would hear stop_base."""
    guard = processes.node("stop_base", *STANDBY)
    controller = processes.node("base_controller")
    operator.start_driving()
    operator.wait(lambda: operator.node.count_publishers(DRIVER) == 2, "stop_base")
    operator.drive(1.0)  # both have known of each other for long, by DDS and by their socket
    return guard, controller


@pytest.mark.parametrize("begins", ["before the controller", "when it hangs"])
def test_another_publisher_of_wheel_commands_does_not_pass_for_a_controller_that_hangs(begins):
    with Processes() as processes, Operator() as operator:
        if begins == "before the controller":
            OtherPublisher(operator)
            operator.spin(0.5)
        _, controller = guarded_drive(processes, operator)
        if begins == "when it hangs":
            OtherPublisher(operator)
        os.kill(controller.pid, signal.SIGSTOP)
        operator.wait(lambda: not moving(operator.received[DRIVER][-1]), "zero", 5.0)
        operator.drive(1.0)
        assert not moving(operator.received[DRIVER][-1])


def test_a_controller_that_goes_on_after_a_pause_drives_and_is_guarded_again():
    with Processes() as processes, Operator() as operator:
        _, controller = guarded_drive(processes, operator)
        for _ in range(2):
            os.kill(controller.pid, signal.SIGSTOP)
            operator.wait(lambda: not moving(operator.received[DRIVER][-1]), "zero", 5.0)
            os.kill(controller.pid, signal.SIGCONT)
            operator.start_driving()
            operator.drive(1.5)
            assert moving(operator.received[DRIVER][-1])


def test_a_controller_that_is_started_again_is_guarded_again():
    with Processes() as processes, Operator() as operator:
        _, controller = guarded_drive(processes, operator)
        for _ in range(2):
            controller.kill()
            operator.wait(lambda: not moving(operator.received[DRIVER][-1]), "zero", 5.0)
            operator.spin(0.3)
            controller = processes.node("base_controller")
            operator.received[DRIVER].clear()
            operator.start_driving()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_base_brakes_when_its_guard_ends(number):
    with Processes() as processes, Operator() as operator:
        guard, controller = guarded_drive(processes, operator)
        guard.send_signal(number)
        ended = operator.node.get_clock().now().nanoseconds
        operator.drive(1.0)  # the operator goes on
        rows = [(1e-9 * (stamp(m) - ended), np.abs(m.velocity).max()) for m in operator.received["wheel_commands"]]
        zero = next(time for time, speed in rows if time > 0.0 and speed < 1e-6)
        print(f"\nzero {zero:.2f} s after the end of stop_base")
        assert zero < 0.6 + 0.35  # 0.3 m/s at 1.5 m/s2 takes 0.2 s, and 0.2 rad/s less
        assert not moving(operator.received[DRIVER][-1])
        assert "has ended" in end(controller)


def test_a_controller_that_has_stopped_the_base_says_goodbye():
    with Processes() as processes, Operator() as operator:
        guard, controller = guarded_drive(processes, operator)
        assert "ERROR" not in end(controller)
        assert not moving(operator.rest())
        output = end(guard)
        assert "base_controller has stopped the base and ended" in output
        assert "ERROR" not in output


def test_a_second_guard_disturbs_no_drive():
    with Processes() as processes, Operator() as operator:
        _, controller = guarded_drive(processes, operator)
        second = processes.node("stop_base", *STANDBY)
        operator.send(operator.cmd_vel, COMMAND, lambda: second.poll() is not None, "its refusal")
        operator.drive(1.0)
        assert "ERROR" not in end(controller)


def test_a_parameter_file_does_not_take_away_the_guard_of_a_bringup(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("/base_controller: {ros__parameters: {guarded: false}}", encoding="utf-8")
    with Processes() as processes, Operator() as operator:
        processes.node("base_controller", "--params-file", str(file), "-p", "guarded:=true")
        operator.wait(lambda: operator.cmd_vel.get_subscription_count() > 0, "base_controller")
        heard = operator.received["/diagnostics"]

        def waits() -> bool:
            statuses = [status for message in heard for status in message.status]
            return any("waits for stop_base" in status.message for status in statuses)

        operator.send(operator.cmd_vel, COMMAND, waits, "its complaint")
        assert operator.received[DRIVER] == []


def test_malformed_notifications_do_the_guard_no_harm():
    with Observer("guard") as observer:
        guard = GuardSocket(observer.node)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for text in (b"x", b"[]", b"[[], 1, {}]", b'["a", "b", "c"]', b"[" * 1990, b"\xff\xfe", b""):
                sender.sendto(text, guard._notifications.getsockname())
            sender.sendto(rb'["odometry", "lost", "\ud800"]', guard._notifications.getsockname())
        notify("", "recorder", LOST, "\u0436" * 3000)
        assert guard.notifications() == {"odometry": (LOST, r"\ud800"), "recorder": (LOST, "\u0436" * 400)}


def test_a_controller_that_dies_with_its_first_command_is_noticed():
    with Observer("guard") as observer:
        guard, controller = GuardSocket(observer.node), ControllerSocket(observer.node, guarded=True)
        controller.heartbeat(True)
        controller._connection.close()
        assert guard.heartbeat_age() == float("inf") and guard.moving


def test_the_base_stops_when_the_controller_dies_right_after_its_first_command():
    with Processes() as processes, Operator() as operator:
        processes.node("stop_base", *STANDBY)
        controller = processes.node("base_controller", "-p", "rate:=5.0")
        operator.wait(lambda: operator.node.count_publishers(DRIVER) == 2, "stop_base")
        operator.spin(1.0)  # as above
        operator.wait(lambda: operator.cmd_vel.get_subscription_count() > 0, "base_controller")
        commands = operator.received[DRIVER]
        operator.send(operator.cmd_vel, COMMAND, lambda: bool(commands) and moving(commands[-1]), "its first command")
        controller.kill()
        operator.wait(lambda: not moving(operator.received[DRIVER][-1]), "zero", 5.0)


@pytest.mark.parametrize("text", ["", "7", "0x2A", "010", " 12"])
def test_notifications_go_to_the_domain_that_rcl_reads(text, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", text)
    with Observer("guard") as observer:
        assert domain_of_environment() == observer.context.get_domain_id()


def test_a_guard_that_hangs_is_reported_and_the_drive_goes_on():
    with Processes() as processes, Operator() as operator:
        guard, _ = guarded_drive(processes, operator)

        def complains() -> bool:
            operator.cmd_vel.publish(COMMAND)
            statuses = [status for message in operator.received["/diagnostics"][-3:] for status in message.status]
            return any("stop_base, which guards this node, has not answered" in s.message for s in statuses)

        assert not complains()
        os.kill(guard.pid, signal.SIGSTOP)
        operator.wait(complains, "a complaint")
        assert moving(operator.received[DRIVER][-1])
        os.kill(guard.pid, signal.SIGCONT)
        operator.wait(lambda: not complains(), "its end")
        assert moving(operator.received[DRIVER][-1])


def test_a_base_whose_guard_is_started_again_drives_again():
    with Processes() as processes, Operator() as operator:
        guard, _ = guarded_drive(processes, operator)
        guard.kill()
        operator.wait(lambda: not moving(operator.received[DRIVER][-1]), "zero", 5.0)
        processes.node("stop_base", *STANDBY)
        operator.received[DRIVER].clear()
        operator.start_driving()


def stamp(message: JointState) -> int:
    return message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec


@pytest.mark.parametrize(
    "name, more, topic",
    [
        ("base_controller", (), "/wheel_commands"),
        ("stop_base", STANDBY, "/wheel_commands"),
        ("mock_youbot", (), "/driver/joint_states"),
    ],
)
def test_a_second_one_of_a_kind_refuses_and_names_the_first(name, more, topic):
    with Processes() as processes, Observer() as observer:
        first = processes.node(name, *more)
        observer.wait(lambda: (name, "/") in observer.node.get_node_names_and_namespaces(), "the first", 60.0)
        observer.spin(0.5)
        second = processes.node(name, *more)
        output = second.communicate(timeout=60.0)[0]
        assert second.returncode == 1, output
        line = next(line for line in output.splitlines() if line.startswith("error: "))
        assert topic in line and f"process {first.pid}" in line
        assert "Traceback" not in output
        assert first.poll() is None
        other = processes.node(name, *more, "-r", "__ns:=/yb2")
        observer.wait(lambda: (name, "/yb2") in observer.node.get_node_names_and_namespaces(), "another robot", 60.0)
        observer.spin(2.0)
        assert other.poll() is None


def test_a_newcomer_gives_way_to_a_controller_of_another_machine():
    """Another user's or machine's is seen on the graph alone; here it is a node of the test."""
    with Processes() as processes, Operator() as operator:
        other = Observer("base_controller")
        with other:
            other.node.create_publisher(Twist, DRIVER, 1)
            other.node.create_publisher(JointState, "wheel_commands", 10)
            controller = processes.node("base_controller")
            operator.wait(lambda: controller.poll() is not None, "its end")
            assert controller.returncode == 1
            assert "/base_controller, which runs already" in controller.communicate()[0]
        assert not any(moving(message) for message in operator.received[DRIVER])


def briefly_new(processes: Processes):
    """A base_controller that is a newcomer, which gives way to others, for 3 s instead of 10."""
    program = "from youbot_dynamics.nodes import base_controller as b; b._NEWCOMER = 3.0; b.main()"
    return processes.run([sys.executable, "-c", program])


def test_a_controller_that_was_killed_is_not_in_the_way_of_the_next():
    """DDS goes on telling of it for as long as its lease: those that knew it, not a newcomer."""
    with Processes() as processes, Operator() as operator:
        first = processes.node("base_controller")
        operator.start_driving()
        first.kill()
        first.wait()
        second = briefly_new(processes)
        operator.start_driving()
        operator.drive(4.0)  # past the time in which a newcomer gives way
        assert second.poll() is None
        assert moving(operator.received[DRIVER][-1])


def test_a_controller_that_drives_goes_on_when_another_appears():
    with Processes() as processes, Operator() as operator:
        controller = briefly_new(processes)
        operator.start_driving()
        operator.drive(3.0)
        with Observer("base_controller") as other:
            other.node.create_publisher(Twist, DRIVER, 1)
            other.node.create_publisher(JointState, "wheel_commands", 10)
            operator.drive(3.0)
            assert controller.poll() is None
            assert moving(operator.received[DRIVER][-1])
