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

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from ros_processes import Observer, Processes, end, environment  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Empty  # noqa: E402

pytestmark = pytest.mark.ros

DRIVER = "driver/cmd_vel"
WISH = Twist()
WISH.linear.x, WISH.linear.y, WISH.angular.z = 0.3, -0.1, 0.2


def moving(message: Twist) -> bool:
    return abs(message.linear.x) + abs(message.linear.y) + abs(message.angular.z) > 1e-9


class Operator(Observer):
    """Sends cmd_vel and hears what reaches the driver."""

    def __init__(self) -> None:
        super().__init__("operator")
        self.listen(Twist, DRIVER)
        self.listen(JointState, "wheel_commands")
        self.listen(DiagnosticArray, "/diagnostics")
        self.wish = self.node.create_publisher(Twist, "cmd_vel", 1)

    def drive(self, duration: float, message: Twist = WISH) -> None:
        end_time = time.monotonic() + duration
        while time.monotonic() < end_time:
            self.wish.publish(message)
            self.spin(0.05)

    def start_driving(self) -> None:
        self.wait(lambda: self.wish.get_subscription_count() > 0, "base_controller")
        deadline = time.monotonic() + 15.0
        while not any(moving(message) for message in self.received[DRIVER]):
            assert time.monotonic() < deadline, "nothing reaches the driver"
            self.drive(0.1)
        self.drive(0.6)
        assert moving(self.received[DRIVER][-1])

    def rest(self, duration: float = 0.4) -> Twist:
        """Last driver command once everything sent has arrived."""
        self.spin(duration)
        return self.received[DRIVER][-1]


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
        output = controller.communicate(timeout=10.0)[0]
        assert controller.returncode == 0, output
        assert not moving(operator.rest()), output


def test_an_exception_ends_with_zero_traceback_and_exit_code_1():
    broken = (
        "from youbot_dynamics.nodes import base_controller as b\n"
        "step = b.WheelCommander.step\n"
        "def fail(self, now, period):\n"
        "    self.calls = getattr(self, 'calls', 0) + 1\n"
        "    command = step(self, now, period)\n"
        "    if command is not None and abs(command.twist[0]) > 0.25:\n"
        "        raise RuntimeError('broken on purpose')\n"
        "    return command\n"
        "b.WheelCommander.step = fail\n"
        "b.main()\n"
    )
    with Processes() as processes, Operator() as operator:
        controller = processes.run([sys.executable, "-c", broken])
        operator.wait(lambda: operator.wish.get_subscription_count() > 0, "base_controller")
        while controller.poll() is None:
            operator.drive(0.1)
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
        operator.wait(lambda: not moving(operator.received[DRIVER][-1]), "zero", 5.0)
        print(f"\nzero {operator.times[DRIVER][-1] - killed:.2f} s after SIGKILL")
        assert operator.times[DRIVER][-1] - killed < 1.0
        assert not moving(operator.rest())
        assert "fallen silent" in end(guard)


def test_a_hung_controller_is_answered_with_zero_too():
    with Processes() as processes, Operator() as operator:
        processes.node("stop_base", "-p", "standby:=true")
        controller = processes.node("base_controller")
        operator.start_driving()
        operator.wait(lambda: operator.node.count_publishers(DRIVER) == 2, "stop_base")
        operator.drive(3.0)
        os.kill(controller.pid, signal.SIGSTOP)
        operator.wait(lambda: not moving(operator.received[DRIVER][-1]), "zero", 5.0)
        os.kill(controller.pid, signal.SIGKILL)


def test_commands_that_stop_arriving_brake_at_the_deceleration_limit():
    with Processes() as processes, Operator() as operator:
        processes.node("base_controller")
        operator.start_driving()
        straight = Twist()
        straight.linear.x = 0.45
        operator.drive(1.5, straight)
        last = time.monotonic()
        operator.spin(1.5)
        times = np.array(operator.times[DRIVER])
        speeds = np.array([message.linear.x for message in operator.received[DRIVER]])
        falling = times[(times > last) & (speeds < 0.45 - 1e-6)][0] - last
        zero = times[(times > last) & (np.abs(speeds) < 1e-9)][0] - last
        print(f"\ncommands fall {falling:.3f} s after the last one, reach zero {zero:.3f} s after it")
        assert falling <= 0.55
        # 0.45 m/s at 1.5 m/s2 takes 0.3 s; a control period and the network on top.
        assert zero - falling == pytest.approx(0.45 / 1.5, abs=0.06)
        steps = -np.diff(speeds[times > last])
        assert steps.max() <= 1.5 * 0.02 * 2.0 + 1e-9  # a late tick may make up for one lost


def bad(field: str, value: float) -> Twist:
    message = Twist()
    setattr(message.linear if field in ("x", "y", "z") else message.angular, field[-1], value)
    return message


def test_nonsense_changes_nothing_and_is_reported_once():
    with Processes() as processes, Operator() as operator:
        controller = processes.node("base_controller")
        operator.start_driving()
        before = operator.received[DRIVER][-1]
        for message in (bad("x", float("nan")), bad("y", float("inf")), bad("wz", 1e6), bad("z", float("nan"))):
            for _ in range(3):
                operator.wish.publish(message)
                operator.spin(0.06)  # depth 1: the next command would overwrite it
                operator.drive(0.06)
        after = operator.received[DRIVER][-1]
        assert (after.linear.x, after.linear.y, after.angular.z) == pytest.approx(
            (before.linear.x, before.linear.y, before.angular.z), abs=1e-9
        )
        operator.drive(1.2)
        statuses = [
            status
            for array in operator.received["/diagnostics"]
            for status in array.status
            if status.name == "/base_controller: commands"
        ]
        assert "refused" in statuses[-1].message
        values = {entry.key: entry.value for entry in statuses[-1].values}
        assert values["refused"] == "12"
        output = end(controller)
        assert output.count("refused a command") == 1, output


def test_nonsense_alone_never_starts_the_base():
    with Processes() as processes, Operator() as operator:
        processes.node("base_controller")
        operator.wait(lambda: operator.wish.get_subscription_count() > 0, "base_controller")
        operator.drive(1.0, bad("x", float("nan")))
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
        for _ in range(20):
            tracker.publish(opposite)
            operator.drive(0.05)
        assert operator.received[DRIVER][-1].linear.x == pytest.approx(0.3, abs=0.02)


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
        operator.wait(lambda: operator.wish.get_subscription_count() > 0, "base_controller")
        deadline = time.monotonic() + 10.0
        while len(operator.received[topic]) < 50 and time.monotonic() < deadline:
            operator.drive(0.2)
        sent = operator.received[topic][-1]
        ours = operator.received["wheel_commands"][-1].velocity
        values = np.array(sent.velocity if interface == "joint_state" else sent.data)
        signs = [-1.0, 1.0, -1.0, 1.0] if interface == "joint_state" else [1.0] * 4
        assert values == pytest.approx(np.array(ours) * signs, abs=0.2)
        end(controller)
        operator.spin(0.3)
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
        operator.drive(3.0)
        for child in (controller, guard):
            child.send_signal(signal.SIGINT)
        operator.wait(lambda: guard.poll() is not None, "the end of stop_base", 8.0)
        assert len(operator.called) == 1
        zero = next(t for t, m in zip(operator.times[DRIVER], operator.received[DRIVER], strict=True) if not moving(m))
        assert operator.called[0] - zero > 0.4, "time to brake"
        assert not moving(operator.rest())
        assert guard.returncode == 0 and "motors of the base are off" in guard.communicate()[0]


def test_motors_stay_on_unless_asked_and_a_service_that_hangs_holds_up_no_exit():
    with Processes() as processes, MotorService() as operator:
        plain = processes.node("stop_base")
        operator.wait(lambda: plain.poll() is not None, "the end of stop_base", 12.0)
        assert plain.returncode == 0 and operator.called == []
        asked = processes.node("stop_base", "-p", "motors_off:=true", "-p", "wait:=0.0")
        # Nobody spins the service: it never answers.
        begun = time.monotonic()
        output = asked.communicate(timeout=15.0)[0]
        print(f"\nended after {time.monotonic() - begun:.1f} s")
        assert "does not answer: use the emergency stop" in output
        assert operator.called == []


SLOW_START = """
import time
from youbot_dynamics.nodes.runtime import run

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
        assert child.communicate(timeout=5.0)[0] == ""
        assert child.returncode == 0


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
    assert child.communicate("stop\n", timeout=10.0)[0] == ""
