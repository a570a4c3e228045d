"""However base_controller ends, the last thing the driver hears is zero; seen by an independent subscriber."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import Twist  # noqa: E402
from operators import BASE, COMMAND, DRIVER, DRIVER_TWIST, Operator, moving  # noqa: E402
from rclpy.duration import Duration  # noqa: E402
from ros_processes import PATIENCE, Processes, end, environment  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Empty  # noqa: E402

from youbot_dynamics.nodes._messages import twist_vector  # noqa: E402
from youbot_dynamics.nodes.processes import node_command  # noqa: E402

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    "signals",
    [
        (signal.SIGINT,),
        (signal.SIGTERM,),
        (signal.SIGINT, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGINT, signal.SIGINT),
    ],
    ids=["SIGINT", "SIGTERM", "both", "three"],
)
def test_signals_end_with_zero_and_exit_code_0(signals):
    with Processes() as processes, Operator() as operator:
        controller = processes.node("base_controller")
        operator.start_driving()
        for number in signals:
            controller.send_signal(number)
        output = controller.communicate(timeout=PATIENCE)[0]
        assert controller.returncode == 0, output
        assert not moving(operator.rest()), output


def test_an_exception_ends_with_zero_traceback_and_exit_code_1():
    broken = (
        "from youbot_dynamics.nodes import base_controller as b\n"
        "step = b.BaseDriver.step\n"
        "def fail(self, now, stamp):\n"
        "    self.calls = getattr(self, 'calls', 0) + 1\n"
        "    command = step(self, now, stamp)\n"
        "    if command is not None and abs(command.twist[0]) > 0.25:\n"
        "        raise RuntimeError('broken on purpose')\n"
        "    return command\n"
        "b.BaseDriver.step = fail\n"
        "b.main()\n"
    )
    with Processes() as processes, Operator() as operator:
        controller = processes.run([sys.executable, "-c", broken])
        operator.wait(lambda: operator.cmd_vel.get_subscription_count() > 0, "base_controller")
        operator.send(operator.cmd_vel, COMMAND, lambda: controller.poll() is not None, "the end of base_controller")
        output = controller.communicate()[0]
        assert controller.returncode == 1
        assert "broken on purpose" in output
        assert any(moving(message) for message in operator.received[DRIVER])
        assert not moving(operator.rest()), output


def test_sigkill_is_answered_with_zero_by_stop_base_within_a_second():
    with Processes() as processes, Operator() as operator:
        guard = processes.node("stop_base", "-p", "standby:=true")
        controller = processes.node("base_controller")
        operator.start_driving()
        operator.wait(lambda: operator.node.count_publishers(DRIVER) == 2, "stop_base")
        operator.drive(3.0)  # time for DDS to connect stop_base
        controller.kill()
        killed = time.monotonic()
        operator.wait(operator.stopped, "zero")
        after, held_up = operator.times[DRIVER][-1] - killed, operator.held_up("wheel_commands", killed - 2.0)
        print(f"\nzero {after:.2f} s after SIGKILL, 1 s is promised; this machine held up {held_up:.3f} s")
        assert after < 1.0 + held_up
        assert not moving(operator.rest())
        assert "does not answer: stopping the base" in end(guard)


def test_a_hung_controller_is_answered_with_zero_too():
    with Processes() as processes, Operator() as operator:
        processes.node("stop_base", "-p", "standby:=true")
        controller = processes.node("base_controller")
        operator.start_driving()
        operator.wait(lambda: operator.node.count_publishers(DRIVER) == 2, "stop_base")
        operator.drive(1.0)
        os.kill(controller.pid, signal.SIGSTOP)
        operator.wait(operator.stopped, "zero")
        os.kill(controller.pid, signal.SIGKILL)


def test_commands_that_stop_arriving_brake_at_the_deceleration_limit():
    """Promised: the base is braked 0.55 s after the last command, at 1.5 m/s2; judged by the stamps of what is sent."""
    limit, period, speed = 1.5, 0.02, 0.45
    with Processes() as processes, Operator() as operator:
        processes.node("base_controller")
        operator.start_driving()
        straight = Twist()
        straight.linear.x = speed
        operator.drive(1.5, straight)
        operator.cmd_vel.publish(straight)
        last, since = time.time(), time.monotonic() - 1.0
        operator.wait(operator.stopped, "rest")
        operator.hear("wheel_commands", 5)  # zero is sent on and on
        assert operator.stopped()
        stamps, sent = operator.stamps("wheel_commands"), operator.received["wheel_commands"]
        speeds = np.array([BASE.twist(message.velocity)[0] for message in sent])
        held_up = operator.held_up("wheel_commands", since)
        whole = np.flatnonzero(speeds > speed - 1e-6)[-1]
        rest = whole + np.flatnonzero(speeds[whole:] < 1e-9)[0]
        falling, braking = stamps[whole + 1] - last, stamps[rest] - stamps[whole]
        print(f"\ncommands fall {falling:.3f} s after the last one, reach zero {braking:.3f} s later")
        print(f"this machine held up {held_up:.3f} s")
        assert 0.5 <= falling <= 0.55 + held_up
        # The last period is seldom whole.
        assert speed / limit - period - held_up <= braking <= speed / limit + 2.0 * period + held_up
        gaps, steps = np.diff(stamps[whole : rest + 1]), -np.diff(speeds[whole : rest + 1])
        assert np.all(steps >= 0.0)
        # A late tick makes up for no more than one lost; a message that was lost has its step in the next one.
        assert np.all(steps <= limit * np.maximum(2.0 * period, gaps + period) + 1e-9)


def bad(field: str, value: float) -> Twist:
    message = Twist()
    setattr(message.linear if field in ("x", "y", "z") else message.angular, field[-1], value)
    return message


def test_nonsense_changes_nothing_and_is_reported_once():
    with Processes() as processes, Operator() as operator:
        controller = processes.node("base_controller")
        operator.start_driving()
        begin = len(operator.received[DRIVER])
        for message in (bad("x", float("nan")), bad("y", float("inf")), bad("wz", 1e6), bad("z", float("nan"))):
            for _ in range(3):
                operator.cmd_vel.publish(message)
                # Depth 1: the next command would overwrite it.
                assert operator.cmd_vel.wait_for_all_acked(Duration(seconds=PATIENCE))
                operator.hear(DRIVER, 3)
                operator.drive(0.06)
        for after in operator.received[DRIVER][begin:]:
            np.testing.assert_allclose(twist_vector(after), DRIVER_TWIST, atol=1e-9)
        counted = [""]

        def reported() -> bool:
            statuses = [status for array in operator.received["/diagnostics"] for status in array.status]
            last = [status for status in statuses if status.name == "/base_controller: commands"][-1]
            counted.append({entry.key: entry.value for entry in last.values}["refused"])
            return "refused" in last.message and counted[-1] == "12"

        operator.send(operator.cmd_vel, COMMAND, reported, "12 refusals in the diagnostics")
        output = end(controller)
        assert output.count("refused a command") == 1, output


def test_nonsense_alone_never_starts_the_base():
    with Processes() as processes, Operator() as operator:
        processes.node("base_controller")
        operator.wait(lambda: operator.cmd_vel.get_subscription_count() > 0, "base_controller")
        nonsense = bad("x", float("nan"))

        def reported() -> bool:
            statuses = [status for array in operator.received["/diagnostics"] for status in array.status]
            return sum("refused" in status.message for status in statuses) > 1

        operator.send(operator.cmd_vel, nonsense, reported, "refusals in the diagnostics")
        assert operator.received[DRIVER] == []
        assert operator.received["wheel_commands"] == []


def test_operator_wins_over_the_tracker():
    with Processes() as processes, Operator() as operator:
        processes.node("base_controller")
        operator.start_driving()
        tracker = operator.node.create_publisher(Twist, "trajectory_tracker/cmd_vel", 1)
        operator.wait(lambda: tracker.get_subscription_count() > 0, "base_controller")
        opposite = Twist()
        opposite.linear.x = -0.3
        begin = len(operator.received[DRIVER])
        for _ in range(20):
            tracker.publish(opposite)
            operator.cmd_vel.publish(COMMAND)
            operator.hear(DRIVER, 2)
        for sent in operator.received[DRIVER][begin:]:
            np.testing.assert_allclose(twist_vector(sent), DRIVER_TWIST, atol=1e-9)


@pytest.mark.parametrize("interface", ["joint_state", "float64_multi_array"])
def test_other_command_interfaces_speak_to_their_driver(interface):
    from std_msgs.msg import Float64MultiArray

    topics = {
        "joint_state": (JointState, "driver/wheel_velocity_command"),
        "float64_multi_array": (Float64MultiArray, "wheel_velocity_controller/commands"),
    }
    kind, topic = topics[interface]
    with Processes() as processes, Operator() as operator:
        operator.listen(kind, topic)
        controller = processes.node("base_controller", "-p", f"command_interface:={interface}")
        operator.wait(lambda: operator.cmd_vel.get_subscription_count() > 0, "base_controller")
        whole = BASE.wheel_speeds([COMMAND.linear.x, COMMAND.linear.y, COMMAND.angular.z])
        signs = [-1.0, 1.0, -1.0, 1.0]

        def driven() -> bool:
            sent, ours = operator.received[topic], operator.received["wheel_commands"]
            if not sent or not ours:
                return False
            values = np.array(sent[-1].velocity if interface == "joint_state" else sent[-1].data)
            return np.allclose(values, whole * signs, atol=1e-6) and np.allclose(ours[-1].velocity, whole, atol=1e-6)

        operator.send(operator.cmd_vel, COMMAND, driven, "the whole speed on both topics")
        end(controller)
        operator.drain(topic)
        last = operator.received[topic][-1]
        assert not np.any(last.velocity if interface == "joint_state" else last.data)
        assert operator.received[DRIVER] == []


class MotorService(Operator):
    """Offers the service that switches the motors off; it answers or not, as long as it is spun."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[float] = []
        self.node.create_service(Empty, "base/switchOffMotors", self._switch)

    def _switch(self, request: Empty.Request, response: Empty.Response) -> Empty.Response:
        self.called.append(time.monotonic())
        return response


def test_motors_go_off_on_exit_if_asked_after_the_zero_command():
    with Processes() as processes, MotorService() as operator:
        guard = processes.node("stop_base", "-p", "standby:=true", "-p", "motors_off:=true")
        controller = processes.node("base_controller")
        operator.start_driving()
        operator.wait(lambda: operator.node.count_publishers(DRIVER) == 2, "stop_base")
        operator.drive(1.0)
        for child in (controller, guard):
            child.send_signal(signal.SIGINT)
        operator.wait(lambda: guard.poll() is not None, "the end of stop_base")
        assert len(operator.called) == 1
        zero = next(t for t, m in zip(operator.times[DRIVER], operator.received[DRIVER], strict=True) if not moving(m))
        assert operator.called[0] - zero > 0.4, "time to brake"
        assert not moving(operator.rest())
        assert guard.returncode == 0 and "motors of the base are off" in guard.communicate()[0]


def test_motors_stay_on_unless_asked_and_a_service_that_hangs_holds_up_no_exit():
    with Processes() as processes, MotorService() as operator:
        plain = processes.node("stop_base", "-p", "wait:=30.0")  # a busy machine connects it late
        operator.wait(lambda: plain.poll() is not None, "the end of stop_base")
        assert plain.returncode == 0 and operator.called == []
        asked = processes.node("stop_base", "-p", "motors_off:=true", "-p", "wait:=0.0")
        # Nobody spins the service: it never answers.
        begun = time.monotonic()
        output = asked.communicate(timeout=PATIENCE)[0]
        print(f"\nended after {time.monotonic() - begun:.1f} s")
        assert "does not answer: use the emergency stop" in output
        assert operator.called == []


SLOW_START = """
import time
from youbot_dynamics.nodes._runtime import run

def make():
    print("getting ready", flush=True)
    while True:
        try:
            time.sleep(0.01)
        except BaseException:
            pass  # as the compiler was seen to do

run(make)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_node_that_is_still_getting_ready(number):
    with Processes() as processes:
        child = processes.run([sys.executable, "-c", SLOW_START])
        assert child.stdout.readline() == "getting ready\n"
        child.send_signal(number)
        assert child.communicate(timeout=PATIENCE)[0] == ""
        assert child.returncode == 0


def test_ctrl_c_ends_a_node_that_still_imports_without_a_traceback():
    with Processes() as processes:
        command = [sys.executable, "-X", "importtime", *node_command("base_controller", [])[1:]]
        child = processes.run(command)
        while "youbot_dynamics.nodes" not in child.stdout.readline():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        output = child.communicate(timeout=PATIENCE)[0]
        assert "KeyboardInterrupt" not in output and child.returncode == 0, output


BRINGUP_STOPS = """
import sys, time
from youbot_dynamics.nodes.processes import start, stop_all

child = start([sys.executable, "-c", "print('importing', flush=True); import time; time.sleep(60)"])
sys.stdin.readline()
stop_all([child])
"""


def test_a_process_that_still_imports_is_stopped_without_a_traceback():
    child = subprocess.Popen(
        [sys.executable, "-c", BRINGUP_STOPS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    assert child.stdout.readline() == "importing\n"
    assert child.communicate("stop\n", timeout=PATIENCE)[0] == ""
