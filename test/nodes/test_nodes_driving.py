"""Twin, odometry, tracker and recorder as processes over DDS: quirks of the driver, life of a trajectory."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.duration import Duration  # noqa: E402
from ros_processes import PATIENCE, Observer, Processes, end, environment, twist_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import Empty, Trigger  # noqa: E402

from youbot_dynamics.commands.identify import recorded
from youbot_dynamics.nodes._messages import pose_vector, seconds  # noqa: E402
from youbot_dynamics.nodes._topic_graph import endpoints_of  # noqa: E402

pytestmark = pytest.mark.ros

WHEELS = ["wheel_joint_fl", "wheel_joint_fr", "wheel_joint_bl", "wheel_joint_br"]


def drive(observer: Observer, publisher, twist: tuple[float, float, float], duration: float, topic: str) -> None:
    """Send a command for so long [s] by the stamps of a topic that is heard."""
    heard = observer.received[topic]
    goal = seconds(heard[-1].header.stamp) + duration
    observer.send(publisher, twist_message(twist), lambda: seconds(heard[-1].header.stamp) > goal, f"{duration} s")


def swing(observer: Observer, publisher, yaw: float) -> None:
    """Drive to and fro for 14 s by the stamps of wheel_commands."""
    heard = observer.received["wheel_commands"]
    observer.send(publisher, twist_message((0.01, 0.0, 0.0)), lambda: heard, "wheel_commands")
    begin = seconds(heard[-1].header.stamp)
    while (t := seconds(heard[-1].header.stamp) - begin) < 14.0:
        publisher.publish(twist_message((0.2 * np.sin(1.5 * t), 0.15 * np.sin(1.1 * t), yaw * np.sin(0.9 * t))))
        observer.hear("wheel_commands", 2)


def of_base(messages: list[JointState]) -> list[JointState]:
    """Those of the wheels: the driver speaks of the arm in messages of its own."""
    return [message for message in messages if WHEELS[0] in message.name]


def test_twin_speaks_like_the_driver_quirks_included():
    with Processes() as processes, Observer() as observer:
        processes.node("mock_youbot", "-p", "seed:=0")
        observer.listen(JointState, "driver/joint_states")
        observer.listen(Odometry, "driver/odom")
        observer.listen(Odometry, "ground_truth")
        command = observer.node.create_publisher(Twist, "driver/cmd_vel", 1)
        observer.wait(lambda: len(observer.received["ground_truth"]) > 10, "the twin")
        observer.wait(lambda: command.get_subscription_count() > 0, "the twin's ear")
        observer.wait(lambda: of_base(observer.received["driver/joint_states"]), "its wheels")
        observer.wait(lambda: observer.received["driver/odom"], "its odometry")
        drive(observer, command, (0.2, 0.0, 0.0), 1.5, "ground_truth")
        states = of_base(observer.received["driver/joint_states"])
        assert states[-1].name[:4] == WHEELS and len(states[-1].name) == 8
        assert len(states[-1].effort) == 0
        assert not np.any(states[-1].position[4:])
        # Position of the left wheels is flipped to ours, their velocity is not.
        assert np.all(np.array(states[-1].position[:4]) > 0.5)
        assert np.sign(states[-1].velocity[:4]).tolist() == [-1.0, 1.0, -1.0, 1.0]
        steps = np.array(states[-1].velocity[:4]) / 0.0608
        assert np.abs(steps - np.round(steps)).max() < 1e-6
        # 50 Hz by the stamps; what the machine holds up has them further apart, and never nearer.
        period = np.median(np.diff([seconds(state.header.stamp) for state in states[-50:]]))
        held_up = observer.held_up("ground_truth", observer.times["ground_truth"][-50])
        assert 0.018 < period < 0.022 + held_up
        assert not np.any(observer.received["driver/odom"][-1].pose.covariance)
        # No watchdog: without any command it drives on.
        alone = observer.follow("ground_truth", 1.0)
        took = seconds(alone[-1].header.stamp) - seconds(alone[0].header.stamp)
        moved = pose_vector(alone[-1].pose.pose)[0] - pose_vector(alone[0].pose.pose)[0]
        assert moved / took == pytest.approx(0.2, abs=0.04)
        observer.call(Empty, "base/switchOffMotors", Empty.Request())
        observer.follow("ground_truth", 2.0)
        assert abs(observer.received["ground_truth"][-1].twist.twist.linear.x) < 0.01


def test_odometry_follows_the_truth_and_its_covariance_grows():
    with Processes() as processes, Observer() as observer:
        processes.node("mock_youbot", "-p", "seed:=3", "-p", "geometry:=known")
        processes.node("base_controller")
        processes.node("odometry", "-p", "stabilize:=false")
        for kind, topic in ((Odometry, "odom"), (Odometry, "ground_truth"), (JointState, "joint_states")):
            observer.listen(kind, topic)
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: observer.received["odom"] and observer.received["ground_truth"], "odom")
        observer.wait(lambda: cmd_vel.get_subscription_count() > 0, "base_controller")
        observer.wait(lambda: of_base(observer.received["joint_states"]), "joint_states")

        def at_rest() -> bool:
            poses = [pose_vector(m.pose.pose) for m in observer.follow("ground_truth", 0.3)]
            return np.ptp(poses, axis=0).max() < 1e-4

        def where() -> list[np.ndarray]:
            """By odometry and in truth, at rest: so no stamp matters."""
            observer.wait(at_rest, "the base to rest")
            observer.follow("odom", 0.1)
            return [pose_vector(observer.received[t][-1].pose.pose) for t in ("odom", "ground_truth")]

        start = where()
        drive(observer, cmd_vel, (0.3, 0.1, 0.4), 4.0, "ground_truth")
        moved = [b - a for a, b in zip(start, where(), strict=True)]
        assert abs(moved[1][2]) > 0.8
        assert moved[0] == pytest.approx(moved[1], abs=0.01)
        first, last = (np.reshape(observer.received["odom"][k].pose.covariance, (6, 6)) for k in (0, -1))
        assert np.trace(last) > np.trace(first)
        assert np.linalg.eigvalsh(last).min() > 0.0
        assert last[2, 2] == last[3, 3] == last[4, 4] == 1e-6
        states = of_base(observer.received["joint_states"])
        assert len(states) > 150 and states[0].name[:4] == WHEELS
        # In our signs a wheel's position and velocity move the same way, whatever the driver does to them.
        position = np.array([m.position[:4] for m in states])
        velocity = np.array([m.velocity[:4] for m in states])
        period = np.diff([seconds(m.header.stamp) for m in states])[:, None]
        slope = np.diff(position, axis=0) / period
        # Where readings are lost while the base brakes, the slow wheel can turn back in between.
        steady = (np.abs(velocity[1:]) > 1.0) & (np.abs(velocity[:-1]) > 1.0) & (np.abs(slope) > 0.5) & (period < 0.05)
        assert np.count_nonzero(steady) > 100
        assert np.all(np.sign(slope[steady]) == np.sign(velocity[1:][steady]))


def test_trajectory_is_refused_cancelled_by_the_operator_and_by_service():
    with Processes() as processes, Observer() as observer:
        for name in ("mock_youbot", "base_controller", "odometry"):
            processes.node(name)
        observer.listen(JointState, "trajectory_tracker/error")
        observer.listen(DiagnosticArray, "/diagnostics")
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: observer.node.count_publishers("trajectory_tracker/error") > 0, "the tracker")
        observer.wait(lambda: cmd_vel.get_subscription_count() >= 2, "both listeners of cmd_vel")

        def status() -> str:
            found = [
                s.message
                for array in observer.received["/diagnostics"]
                for s in array.status
                if s.name == "/trajectory_tracker: trajectory"
            ]
            return found[-1] if found else ""

        def tracking() -> bool:
            """Whether it has gone on since it was asked last."""
            before, asked[0] = asked[0], len(observer.received["trajectory_tracker/error"])
            return asked[0] > before

        asked = [0]

        player = processes.youbot("play", "combined")
        observer.wait(tracking, "a tracked trajectory")
        observer.hear("trajectory_tracker/error", 10)
        # Odometry and tracker share a process: none of their messages takes the way over DDS twice.
        inputs = ("wheel_commands", "driver/joint_states")
        observer.wait(lambda: all(observer.node.count_subscribers(topic) for topic in inputs), "their subscribers")
        heard = [observer.node.count_subscribers(topic) for topic in ("odom", *inputs)]
        assert heard == [0, 1, 1]
        refused = observer.call(Trigger, "odometry/reset_odometry", Trigger.Request())
        assert not refused.success and "cancel it first" in refused.message
        nonsense = Twist()
        nonsense.linear.x = float("nan")
        cmd_vel.publish(nonsense)
        assert cmd_vel.wait_for_all_acked(Duration(seconds=PATIENCE))
        observer.hear("trajectory_tracker/error", 25)
        cmd_vel.publish(Twist())
        observer.wait(lambda: "operator" in status(), "the cancellation")
        assert player.wait(PATIENCE) == 1
        assert "followed" in player.communicate()[0]

        observer.drain("trajectory_tracker/error")
        tracking()
        player = processes.youbot("play", "combined")
        observer.wait(tracking, "a second trajectory")
        assert observer.call(Trigger, "trajectory_tracker/cancel", Trigger.Request()).success
        assert player.wait(PATIENCE) == 1
        observer.drain("trajectory_tracker/error")
        tracking()
        observer.hear("/diagnostics", 3)
        assert not tracking()
        assert observer.call(Trigger, "odometry/reset_odometry", Trigger.Request()).success

        player = processes.youbot("play", "combined")
        observer.wait(tracking, "a third trajectory")
        end(player, signal.SIGINT)
        observer.wait(lambda: "empty trajectory" in status(), "the end in the diagnostics")
        observer.drain("trajectory_tracker/error")
        tracking()
        observer.hear("/diagnostics", 3)
        assert not tracking()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("lost share=1.0 of=base", "no new message arrived"), ("clock_jump size=-3", "stamps of /odom went back by ")],
)
def test_a_trajectory_is_given_up_where_odometry_falls_silent_or_its_clock_jumps_back(fault, reason):
    with Processes() as processes, Observer() as observer:
        for name in ("mock_youbot", "base_controller", "odometry"):
            processes.node(name)
        observer.listen(JointState, "trajectory_tracker/error")
        observer.listen(DiagnosticArray, "/diagnostics")
        observer.listen(Twist, "driver/cmd_vel")
        observer.wait(lambda: observer.node.count_publishers("trajectory_tracker/error") > 0, "the tracker")
        players = [processes.youbot("play", "combined")]

        def tracked() -> bool:
            if players[-1].poll() is not None:  # given up where this machine held up the odometry
                players.append(processes.youbot("play", "combined"))
            return len(observer.received["trajectory_tracker/error"]) > 100

        observer.wait(tracked, "a tracked trajectory")
        observer.received["/diagnostics"].clear()
        assert observer.received["driver/cmd_vel"][-1] != Twist()
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=fault)
        request = SetParameters.Request(parameters=[Parameter(name="fault", value=value)])
        assert observer.call(SetParameters, "mock_youbot/set_parameters", request).results[0].successful

        def gave_up() -> bool:
            entries = [s for array in observer.received["/diagnostics"] for s in array.status]
            return any("given up" in s.message and reason in s.message for s in entries)

        observer.wait(gave_up, "the tracker to give up")
        observer.wait(lambda: observer.received["driver/cmd_vel"][-1] == Twist(), "a base at rest")


def test_a_killed_recording_reopens_and_identifies(tmp_path):
    with Processes() as processes, Observer() as observer:
        for name in ("mock_youbot", "base_controller", "odometry"):
            processes.node(name)
        recorder = processes.youbot("record", "--out", str(tmp_path / "bag"))
        observer.listen(JointState, "wheel_commands")
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: cmd_vel.get_subscription_count() >= 2, "both listeners of cmd_vel")
        bag = tmp_path / "bag"
        observer.wait(lambda: set(recorded(bag)) >= {"/odom", "/driver/joint_states"}, "a recording under way")
        swing(observer, cmd_vel, 0.4)
        recorder.kill()
        recorder.wait()
    words = [sys.executable, "-m", "youbot_dynamics.commands.main", "identify"]
    done = subprocess.run(
        [*words, str(tmp_path / "bag"), "--out", str(tmp_path / "found"), "--only", "delay", "--verbose"],
        env=environment(),
        capture_output=True,
        text=True,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "messages over" in done.stdout and "recovered" in done.stdout  # what was lost
    made = {p.name for p in (tmp_path / "found").iterdir()}
    assert made - {"exports"} == {"result.yaml", "robot.yaml", "result.json", "report.html"}


def test_identification_node_records_fits_in_a_child_and_publishes(tmp_path):
    from rclpy.qos import DurabilityPolicy, QoSProfile

    with Processes() as processes, Observer() as observer:
        for name in ("mock_youbot", "base_controller", "odometry"):
            processes.node(name)
        processes.node("identification", "-p", f"output_folder:={tmp_path}")
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        observer.listen(DiagnosticArray, "identification/result", latched)
        cmd_vel = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: cmd_vel.get_subscription_count() >= 1, "the listener of cmd_vel")

        def call(name: str):
            return observer.call(Trigger, f"identification/{name}", Trigger.Request())

        assert not call("fit").success
        assert not call("stop").success
        wanted = ("wheel_commands", "driver/joint_states", "odom")

        def heard() -> list[bool]:
            return ["/identification" in endpoints_of(observer.node, topic).subscriber_nodes() for topic in wanted]

        axes = [f"robot.base.delay.effective_{axis}" for axis in "xy"]
        observer.listen(JointState, "wheel_commands")

        def drive_and_fit() -> dict[str, str]:
            """Verdicts by the names of the values."""
            assert not any(heard())
            assert call("start").success
            observer.wait(lambda: all(heard()), "identification at the ends of its topics")
            assert not call("start").success
            observer.received["wheel_commands"].clear()
            swing(observer, cmd_vel, 0.0)
            assert call("stop").success
            observer.wait(lambda: not any(heard()), "identification to hear nothing more")
            observer.received["identification/result"].clear()
            answer = call("fit")
            assert answer.success, answer.message
            busy = call("fit")
            assert not busy.success and "running already" in busy.message
            observer.wait(lambda: observer.received["identification/result"], "the result")
            return {status.name: status.message for status in observer.received["identification/result"][-1].status}

        # A machine that holds up the twin in a drive makes another one necessary.
        drives = (drive_and_fit() for _ in range(3))
        verdicts = next((one for one in drives if all(one[axis] == "identified" for axis in axes)), None)
        assert verdicts is not None, "no drive of three identified the delays"
        assert verdicts["robot.base.geometry.half_length"].startswith("not identifiable")  # it never turned
        with Observer("late") as late:
            late.listen(DiagnosticArray, "identification/result", latched)
            late.wait(lambda: late.received["identification/result"], "the result for a late joiner")
            assert late.received["identification/result"] == observer.received["identification/result"][-1:]
