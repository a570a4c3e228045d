"""Node mock_youbot over DDS: base and arm of either plant, faults at run time, its own clock."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from ros_processes import ROOT, Observer, Processes, end, environment, joint_message  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Empty, Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from youbot_dynamics.nodes._messages import pose_vector, seconds  # noqa: E402
from youbot_dynamics.resources import config_path  # noqa: E402

pytestmark = pytest.mark.ros

ARM = [f"arm_joint_{k}" for k in range(1, 6)]
FINGERS = ["gripper_finger_joint_l", "gripper_finger_joint_r"]
STATES = "driver/joint_states"


class Robot(Observer):
    """Listens to all that the mock says, and tells it what to do."""

    def __init__(self) -> None:
        super().__init__()
        for topic in (STATES, "ground_truth/arm", "ground_truth/winding_temperature"):
            self.listen(JointState, topic)
        for topic in ("driver/odom", "ground_truth"):
            self.listen(Odometry, topic)
        self.listen(DiagnosticArray, "/diagnostics")
        self.twist = self.node.create_publisher(Twist, "driver/cmd_vel", 1)
        kinds = ("position", "velocity", "torque")
        self.arm = {k: self.node.create_publisher(JointState, f"arm_1/joint_{k}_command", 1) for k in kinds}
        self.path = self.node.create_publisher(JointTrajectory, "arm_1/arm_controller/joint_trajectory", 1)

    def ready(self) -> None:
        heard = ("ground_truth", "ground_truth/arm", "ground_truth/winding_temperature")
        self.wait(lambda: all(self.received[topic] for topic in heard), "the robot")
        self.wait(lambda: self.states("wheel_joint_fl") and self.states("arm_joint_1"), "its joints")
        publishers = (self.twist, self.path, *self.arm.values())
        self.wait(lambda: all(p.get_subscription_count() > 0 for p in publishers), "the robot's ears")

    def states(self, first: str) -> list[JointState]:
        return [m for m in self.received[STATES] if m.name and m.name[0] == first]

    def pass_by(self, duration: float) -> None:
        """Wait until so much time [s] has passed on the robot's clock."""
        self.follow("ground_truth", duration)

    def truth(self) -> np.ndarray:
        return np.array(self.received["ground_truth/arm"][-1].position)

    def driver_statuses(self) -> list:
        """Of the driver, all that were reported."""
        arrays = self.received["/diagnostics"]
        return [s for array in arrays for s in array.status if s.name == "/mock_youbot: driver"]

    def value(self, key: str) -> str:
        """Its newest value, "" before the first."""
        found = self.driver_statuses()
        return {pair.key: pair.value for pair in found[-1].values}[key] if found else ""

    def set_fault(self, text: str):
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=text)
        request = SetParameters.Request(parameters=[Parameter(name="fault", value=value)])
        return self.call(SetParameters, "mock_youbot/set_parameters", request).results[0]

    def drive(self, vx: float) -> None:
        message = Twist()
        message.linear.x = vx
        self.twist.publish(message)


def test_the_loop_keeps_its_rhythm_on_a_machine_that_wakes_it_late(monkeypatch):
    """Late by 3 ms, held up for 90 ms, and early once: no pass is missing, none is twice."""
    from youbot_dynamics.nodes import mock_youbot

    now = [100.0]
    monkeypatch.setattr(mock_youbot.time, "monotonic", lambda: now[0])
    loop, taken = mock_youbot._MachineTime(None, 0.02), []
    for wake in (0.004, 0.02, 0.043, 0.061, 0.15, 0.1601, 0.18, 0.2, 5.0, 5.02):
        now[0] = 100.0 + wake
        taken += loop.passes()
        assert taken[-1] <= now[0]
    steps = np.diff(taken)
    made_up = steps[:-2]
    np.testing.assert_allclose(made_up[1:], 0.02, atol=1e-9)
    assert made_up[0] == pytest.approx(0.016) and len(taken) == 13
    assert steps[-2] > 4.0, "it does not make up for seconds"


def test_a_process_that_was_stopped_for_hours_goes_on_from_now(monkeypatch):
    """Neither the loop nor a command that arrives before its next pass jumps ahead; stamps stay those of the clock."""
    from youbot_dynamics.nodes import mock_youbot

    now, said = [100.0], []
    monkeypatch.setattr(mock_youbot.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(mock_youbot, "node_time", lambda node: now[0] + 1e9)
    node = SimpleNamespace(get_logger=lambda: SimpleNamespace(warning=said.append))
    loop = mock_youbot._MachineTime(node, 0.02)
    (last,) = loop.passes()
    for stop in (7200.0, 1e6):
        now[0] += stop
        assert loop.now() == pytest.approx(last + 0.02)
        (new,) = loop.passes()
        assert new == pytest.approx(last + 0.02)
        assert new + loop.shift() == pytest.approx(now[0] + 1e9)
        now[0] += 0.02
        (last,) = loop.passes()
        assert last == pytest.approx(new + 0.02)
    assert [text.split(":")[0] for text in said] == [
        "this process stood still for 7200 s", "this process stood still for 1000000 s"
    ]  # fmt: skip


def test_base_and_arm_of_the_twin_with_faults_at_run_time():
    with Processes() as processes, Robot() as robot:
        processes.node("mock_youbot", "-p", "seed:=0", "-p", "motor_sensors:=true")
        robot.listen(JointState, "arm_1/motor_voltage")
        robot.listen(JointState, "arm_1/motor_temperature")
        robot.ready()
        rest = robot.truth()
        documented = (ROOT / "docs" / "mock_youbot.md").read_text(encoding="utf-8")
        node, standard = robot.node, ("param", "rosout", "type_description")
        # The name of a node comes after the endpoints that it has.
        robot.wait(lambda: ("mock_youbot", "/") in node.get_node_names_and_namespaces(), "the name of mock_youbot")
        for ask in (
            node.get_publisher_names_and_types_by_node,
            node.get_subscriber_names_and_types_by_node,
            node.get_service_names_and_types_by_node,
        ):
            own = [name for name, _ in ask("mock_youbot", "/") if not any(w in name for w in standard)]
            own = [name.removeprefix("/").replace("mock_youbot/", "~/") for name in own]
            assert not [name for name in own if f"{name}`" not in documented]

        # Positions by name, in any order; an incomplete command and one beyond the limits change nothing.
        goal = rest + np.array([0.2, 0.2, -0.2, 0.2, 0.2])
        robot.arm["position"].publish(joint_message(0.0, ARM[::-1], position=goal[::-1]))
        robot.wait(lambda: np.abs(robot.truth() - goal).max() < 0.02, "the arm to arrive")
        robot.arm["position"].publish(joint_message(0.0, ARM[:4], position=rest[:4]))
        robot.wait(lambda: robot.value("incomplete_commands") == "1", "the count of it")
        robot.arm["position"].publish(joint_message(0.0, ARM, position=[99.0] * 5))
        robot.pass_by(0.5)
        assert robot.truth() == pytest.approx(goal, abs=0.02)
        message = robot.states("arm_joint_1")[-1]
        assert list(message.name) == ARM + FINGERS and len(message.effort) == 7
        assert message.position[:5] == pytest.approx(goal, abs=0.02)
        assert robot.received["ground_truth/winding_temperature"][-1].effort[1] > 24.0
        assert len(robot.received["arm_1/motor_voltage"][-1].effort) == 5
        assert robot.received["arm_1/motor_temperature"][-1].effort[0] == pytest.approx(25.0, abs=6.0)

        robot.arm["velocity"].publish(joint_message(0.0, ARM, velocity=[0.2, 0.0, 0.0, 0.0, 0.0]))
        arm = robot.received["ground_truth/arm"]
        robot.wait(lambda: abs(arm[-1].velocity[0] - 0.2) < 0.05, "the speed asked for")
        path = JointTrajectory(joint_names=ARM)
        for time, position in ((0, robot.truth()), (1, goal)):
            path.points.append(JointTrajectoryPoint(positions=position.tolist(), velocities=[0.0] * 5))
            path.points[-1].time_from_start.sec = time
        robot.path.publish(path)
        robot.pass_by(1.2)
        robot.wait(lambda: np.abs(robot.truth() - goal).max() < 0.02, "the end of the path")

        # Without current it falls, for it has no brakes; a command takes it up again.
        robot.call(Empty, "arm_1/switchOffMotors", Empty.Request())
        robot.wait(lambda: not np.any(arm[-1].effort), "an arm without torque")
        robot.call(Empty, "arm_1/switchOnMotors", Empty.Request())
        robot.wait(lambda: np.any(arm[-1].effort), "torque again")

        refused = robot.set_fault("frozen_encodr joint=wheel_joint_fl")
        assert not refused.successful and "did you mean frozen_encoder?" in refused.reason
        assert robot.set_fault("frozen_encoder joint=wheel_joint_fl; missing_effort; clock_jump size=5").successful
        robot.drive(0.2)
        robot.wait(lambda: robot.states("wheel_joint_fl")[-1].position[1] > 1.0, "the other wheels to turn")
        robot.hear("ground_truth")
        robot.wait(lambda: len(robot.states("arm_joint_1")[-1].effort) == 0, "states without effort")
        base, arm = robot.states("wheel_joint_fl")[-1], robot.states("arm_joint_1")[-1]
        assert base.position[0] == robot.states("wheel_joint_fl")[-20].position[0]
        assert len(arm.effort) == 0
        # 5 s ahead of the truth that arrived beside it.
        arrived = robot.times[STATES][robot.received[STATES].index(base)]
        beside = np.argmin(np.abs(np.array(robot.times["ground_truth"]) - arrived))
        assert seconds(base.header.stamp) - robot.stamps("ground_truth")[beside] == pytest.approx(5.0, abs=0.3)
        assert robot.set_fault("restart lasting=3.0").successful
        robot.drain(STATES)
        robot.hear(STATES, 2)
        assert robot.states("wheel_joint_fl")[-1].position[1] == pytest.approx(0.0, abs=0.5)

        assert robot.call(Trigger, "mock_youbot/reset", Trigger.Request()).success
        truth = robot.received["ground_truth"]
        robot.wait(lambda: np.abs(pose_vector(truth[-1].pose.pose)).max() < 1e-6, "a base at its beginning")
        robot.hear("ground_truth/arm", 2)
        assert robot.truth() == pytest.approx(rest, abs=1e-3)
        found = robot.driver_statuses()
        values = {pair.key: pair.value for status in found for pair in status.values}
        assert values["plant"] == "twin"
        assert any("position[0]" in status.message for status in found)


def test_absurd_and_incomplete_commands_are_told_once_and_end_nothing():
    with Processes() as processes, Robot() as robot:
        child = processes.node("mock_youbot", "-p", "seed:=0")
        wheels = robot.node.create_publisher(JointState, "driver/wheel_velocity_command", 1)
        robot.ready()
        robot.wait(lambda: wheels.get_subscription_count() > 0, "the wheels' ear")
        rest = robot.truth()
        names = [f"wheel_joint_{place}" for place in ("fl", "fr", "bl", "br")]

        path = JointTrajectory(joint_names=ARM)
        for time in (0, 1):
            path.points.append(JointTrajectoryPoint(positions=rest.tolist(), velocities=[1e308] * 5))
            path.points[-1].time_from_start.sec = time
        for k in range(3):
            robot.path.publish(path)
            wheels.publish(joint_message(0.0, names[:3], velocity=[1.0] * 3))
            robot.wait(lambda k=k: robot.value("incomplete_commands") == str(k + 1), "the count of it")
            robot.wait(lambda k=k: int(robot.value("refused_commands")) >= k + 1, "the other count")
        robot.arm["velocity"].publish(joint_message(0.0, ARM, velocity=[0.0, 0.0, 0.0, 0.0, 1e308]))
        wheels.publish(joint_message(0.0, names, velocity=[1e300] * 4))
        robot.hear("/diagnostics", 2)
        robot.drive(1e308)
        robot.hear("/diagnostics", 2)
        assert child.poll() is None
        assert robot.value("incomplete_commands") == "3" and 3 <= int(robot.value("refused_commands")) <= 6
        assert np.abs(robot.states(names[0])[-1].velocity[:4]).max() < 18.0

        assert robot.call(Trigger, "mock_youbot/reset", Trigger.Request()).success
        counts = ("incomplete_commands", "refused_commands")
        robot.wait(lambda: [robot.value(key) for key in counts] == ["0", "0"], "counts that begin anew")

        # The same text is another fault of the same kind.
        for _ in range(2):
            assert robot.set_fault("restart lasting=2.0").successful
            robot.drain(STATES)
            robot.hear(STATES)
        output = end(child)
        assert child.returncode == 0, output
        assert output.count("a command was refused") == 1 and "RuntimeWarning" not in output
        assert "[mock_youbot]: ready" in output, "the README tells to wait for it"


def in_whole_passes(times: list[float]) -> bool:
    """Whether simulated times are whole passes of the loop apart, mostly one: on a busy machine DDS loses some."""
    passes = np.diff(times) / 0.02
    return np.abs(passes - np.round(passes)).max() < 1e-3 and passes.min() > 0.5 and np.median(passes) < 1.5


def test_contact_simulation_serves_the_same_topics_on_its_own_clock():
    pytest.importorskip("mujoco")
    with Processes() as processes, Robot() as robot:
        robot.listen(Clock, "/clock")
        options = ("plant:=mujoco", "seed:=0", "publish_clock:=true", "use_sim_time:=true", "real_time_factor:=2.0")
        processes.node("mock_youbot", *(word for option in options for word in ("-p", option)))
        robot.ready()
        rest = robot.truth()
        robot.arm["position"].publish(joint_message(0.0, ARM, position=rest + 0.3 * np.array([1, 1, -1, 1, 1])))
        robot.drive(0.2)
        begin = len(robot.received["/clock"])
        robot.wait(lambda: len(robot.received["/clock"]) > begin + 125, "2.5 simulated seconds")
        ticks = [seconds(m.clock) for m in robot.received["/clock"][begin:]]
        assert in_whole_passes(ticks)
        assert ticks[-1] - ticks[0] < 2.2 * (robot.times["/clock"][-1] - robot.times["/clock"][begin])
        stamp = seconds(robot.states("wheel_joint_fl")[-1].header.stamp)
        assert stamp == pytest.approx(ticks[-1], abs=0.05)
        truth = robot.received["ground_truth"]
        assert pose_vector(truth[-1].pose.pose)[0] > 0.15
        assert np.abs(robot.truth() - rest) == pytest.approx(0.3, abs=0.05)
        assert in_whole_passes([seconds(m.header.stamp) for m in truth])


DIVERGING = """
import rclpy
from youbot_dynamics.errors import InputError
from youbot_dynamics.nodes.mock_youbot import MockYoubot

rclpy.init(args=["--ros-args", "-p", "plant:=mujoco", *{files!r}])
node = MockYoubot()
node._driver.plant.plant.data.qvel[0] = 1e30
try:
    node._driver.advance(node._driver.plant.time + 0.02)
except InputError as problem:
    print("refused:", problem)
node.destroy_node()
"""


def test_a_contact_simulation_that_diverges_says_so_and_leaves_no_file(tmp_path):
    pytest.importorskip("mujoco")
    files = [word for name in ("youbot", "mock") for word in ("--params-file", str(config_path(f"{name}.yaml")))]
    command = [sys.executable, "-c", DIVERGING.format(files=files)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert "refused: motion in MuJoCo" in done.stdout, done.stderr
    assert "MuJoCo: Nan, Inf or huge value in QVEL" in done.stderr
    assert not list(tmp_path.iterdir())


def test_bringup_of_the_contact_simulation_drives_on_simulated_time(tmp_path):
    pytest.importorskip("mujoco")
    # Of the sheets' geometry: odometry cannot see what an uncalibrated one mis-measures.
    (tmp_path / "known.yaml").write_text("/**/mock_youbot:\n  ros__parameters:\n    geometry: known\n")
    with Processes() as processes, Observer() as observer:
        observer.listen(Odometry, "odom")
        observer.listen(Odometry, "ground_truth")
        observer.listen(Clock, "/clock")
        known = str(tmp_path / "known.yaml")
        child = processes.youbot("bringup", "--robot", "mujoco", "--use-sim-time", "--params-file", known)
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: observer.received["odom"] and observer.received["ground_truth"], "odom")
        observer.wait(lambda: cmd_vel.get_subscription_count() > 1, "the controller")
        message = Twist()
        message.linear.x = 0.2
        patience = time.monotonic() + 60.0
        while pose_vector(observer.received["ground_truth"][-1].pose.pose)[0] < 0.25:
            assert time.monotonic() < patience, "the robot does not obey"
            cmd_vel.publish(message)
            observer.spin(0.05)
        truth = observer.received["ground_truth"][-1]
        observer.wait(lambda: observer.stamps("odom")[-1] >= seconds(truth.header.stamp), "odometry of that moment")
        odom = observer.received["odom"][-1]
        # Simulated time counts from 0: a stamp of the system's clock is far off.
        assert abs(seconds(odom.header.stamp) - seconds(observer.received["/clock"][-1].clock)) < 10.0
        moved = pose_vector(truth.pose.pose)
        then = np.argmin(np.abs(observer.stamps("odom") - seconds(truth.header.stamp)))
        assert pose_vector(observer.received["odom"][then].pose.pose) == pytest.approx(moved, abs=0.03)
        output = end(child)
        assert child.returncode == 0, output
