"""What base_controller does about others on its topics: a driver that hears the operator itself, the wrong twist."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from geometry_msgs.msg import Twist, TwistStamped  # noqa: E402
from ros_processes import Observer, Processes, end  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402

from youbot_dynamics.estimation.driver_check import DriverFinding, Verdict
from youbot_dynamics.nodes._player import start_first  # noqa: E402
from youbot_dynamics.nodes._topic_graph import (  # noqa: E402
    EVIDENCE,
    STAMPED,
    WATCHED,
    Endpoint,
    TopicEndpoints,
    contradicting_operators,
    driver_nodes,
    driver_on_cmd_vel,
    judge_graph,
    type_mismatch,
)
from youbot_dynamics.resources import config_path  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402

TWIST = "geometry_msgs/msg/Twist"
OK, WARNING, _, ERROR = Verdict


def graph(subscribers: tuple[str, ...], **publishers: tuple[str, ...]) -> dict[str, TopicEndpoints]:
    """Endpoints of cmd_vel with these subscribers, and of the other topics with these publishers; __ for slashes."""
    named = {name.replace("__", "/"): nodes for name, nodes in publishers.items()}
    ends = {
        topic: TopicEndpoints(f"/{topic}", tuple(Endpoint(node, "") for node in named.get(topic, ())))
        for topic in EVIDENCE
    }
    ends["cmd_vel"] = TopicEndpoints("/cmd_vel", (), tuple(Endpoint(node, TWIST) for node in subscribers))
    return ends


OURS = ("/base_controller", "/trajectory_tracker", "/identification", "/recorder")


@pytest.mark.parametrize(
    "publishers",
    [
        {"driver__joint_states": ("/oodl",)},
        {"driver__odom": ("/oodl",)},
        {"base__joint_states": ("/oodl",)},
        {"joint_states": ("/oodl",)},
    ],
)
def test_a_driver_that_listens_on_cmd_vel_is_known_by_what_it_publishes(publishers):
    ends = graph((*OURS, "/oodl"), **publishers)
    problem = driver_on_cmd_vel(ends, ["/base_controller"])
    assert "the driver /oodl listens on /cmd_vel" in problem and "-r cmd_vel:=driver/cmd_vel" in problem
    assert driver_nodes(ends) == {"/oodl"}


def test_the_real_driver_is_known_by_its_name_before_it_publishes_anything():
    assert "youbot_oodl_driver" in driver_on_cmd_vel(graph(("/youbot_oodl_driver",)))


@pytest.mark.parametrize(
    ("subscribers", "publishers"),
    [
        (OURS, {"driver__joint_states": ("/youbot_oodl_driver",), "joint_states": ("/odometry",)}),
        ((*OURS, "/ekf_filter_node"), {"driver__joint_states": ("/mock_youbot",)}),
        ((*OURS, "/rosbag2_recorder", "/foxglove_bridge"), {"joint_states": ("/joint_state_publisher", "/odometry")}),
        ((*OURS, ""), {"driver__joint_states": ("",)}),
    ],
)
def test_others_on_cmd_vel_are_no_driver(subscribers, publishers):
    assert driver_on_cmd_vel(graph(subscribers, **publishers), ["/base_controller"]) == ""


@pytest.mark.parametrize("stamped", [False, True])
def test_an_operator_with_the_other_twist_is_told_the_parameter(stamped):
    ours, other = (STAMPED, TWIST) if stamped else (TWIST, STAMPED)
    problem = type_mismatch(TopicEndpoints("/cmd_vel", (Endpoint("/joy", other), Endpoint("/nav", ours))), stamped)
    assert problem.startswith("/joy sends") and f"enable_stamped_cmd_vel to {str(not stamped).lower()}" in problem
    assert type_mismatch(TopicEndpoints("/cmd_vel", (Endpoint("/nav", ours),)), stamped) == ""


def test_only_several_publishers_contradict_each_other_and_are_named():
    joy, nav = Endpoint("/joy", TWIST), Endpoint("/nav", TWIST)
    assert contradicting_operators(TopicEndpoints("/cmd_vel", (joy,))) == ""
    assert contradicting_operators(TopicEndpoints("/cmd_vel")) == ""
    assert "(/joy, /nav) two contradict" in contradicting_operators(TopicEndpoints("/cmd_vel", (nav, joy)))


def healthy() -> dict[str, TopicEndpoints]:
    """Graph of a bringup beside a driver that is remapped as it should be."""
    driver, ours = Endpoint("/youbot_oodl_driver", ""), Endpoint("/base_controller", TWIST)
    ends = {topic: TopicEndpoints(f"/{topic.lstrip('/')}") for topic in WATCHED}
    for topic in ("driver/joint_states", "driver/odom"):
        ends[topic] = TopicEndpoints(f"/{topic}", (driver,))
    ends["cmd_vel"] = TopicEndpoints("/cmd_vel", (Endpoint("/teleop", TWIST),), (ours, Endpoint("/recorder", TWIST)))
    ends["driver/cmd_vel"] = TopicEndpoints("/driver/cmd_vel", (ours,), (Endpoint("/youbot_oodl_driver", TWIST),))
    ends["joint_states"] = TopicEndpoints("/joint_states", (Endpoint("/odometry", ""),))
    ends["/tf"] = TopicEndpoints("/tf", (Endpoint("/odometry", ""), Endpoint("/robot_state_publisher", "")))
    return ends


def judged(
    servers: tuple[str, ...] = ("/youbot_oodl_driver",), interface: str = "twist", **changes: TopicEndpoints
) -> dict[str, DriverFinding]:
    """Findings by item, on the healthy graph with changes; in their names `__` stands for `/`."""
    ends = {**healthy(), **{name.replace("__", "/"): ends for name, ends in changes.items()}}
    return {finding.item: finding for finding in judge_graph(ends, frozenset(servers), interface=interface)}


def test_a_healthy_graph_is_found_so():
    assert {item: f.verdict for item, f in judged().items() if f.verdict != OK} == {}


def test_a_robot_that_does_not_run_is_started_by_a_command_with_its_file(monkeypatch):
    file, programs = config_path("robots/rosbot_xl.yaml"), ["python3", "/bin/youbot", "play", "combined"]
    own, none = ["--robot-file", "my robot.yaml", "--namespace=r1"], ["--dt", "0.02"]
    for words, robot, expected in (
        (own, load_robot(robot_file=file), "youbot bringup --robot {} --robot-file 'my robot.yaml' --namespace r1"),
        (none, load_robot(), "youbot bringup --robot {}"),
        (none, load_robot(robot_file=file), "youbot bringup --robot {}, with the --robot-file of this robot"),
    ):
        monkeypatch.setattr(sys, "orig_argv", [*programs, *words])
        mock, real = (expected.format(kind) for kind in ("mock", "real"))
        assert start_first(robot) == f"start the robot first, in another terminal: {mock}; for a real robot: {real}"


def test_what_only_the_driver_of_a_youbot_has_is_not_missed_in_another():
    silent = {**healthy(), "driver/joint_states": TopicEndpoints("/driver/joint_states")}
    own, other = ({f.item: f for f in judge_graph(silent, frozenset(), False, kind)} for kind in (True, False))
    assert {*own} - {*other} == {"service that switches the motors off"}
    remedies = [found["publishers of joint states"].remedy for found in (own, other)]
    assert "arm_1/joint_states" in remedies[0]
    assert remedies[1] == "start the driver; remap the driver's: -r joint_states:=driver/joint_states"


DRIVER = Endpoint("/youbot_oodl_driver", TWIST)


@pytest.mark.parametrize(
    ("changes", "item", "verdict", "remedy"),
    [
        ({"cmd_vel": TopicEndpoints("/cmd_vel", (), (DRIVER,))}, "listeners of the operator", ERROR, "-r cmd_vel:="),
        (
            {
                "cmd_vel": TopicEndpoints(
                    "/cmd_vel", (Endpoint("/nav2", STAMPED),), (Endpoint("/base_controller", TWIST),)
                )
            },
            "twist of the operator",
            ERROR,
            "enable_stamped_cmd_vel to true",
        ),
        ({"driver__cmd_vel": TopicEndpoints("/driver/cmd_vel")}, "commands to the driver", ERROR, "-r cmd_vel:="),
        (
            {"driver__cmd_vel": TopicEndpoints("/driver/cmd_vel", (), (Endpoint("/recorder", TWIST),))},
            "commands to the driver",
            ERROR,
            "-r cmd_vel:=",
        ),
        (
            {"driver__cmd_vel": TopicEndpoints("/driver/cmd_vel", (), (Endpoint("/youbot_oodl_driver", STAMPED),))},
            "commands to the driver",
            ERROR,
            "takes Twist",
        ),
        (
            {"driver__joint_states": TopicEndpoints("/driver/joint_states", (DRIVER, Endpoint("/arm_driver", "")))},
            "publishers of joint states",
            WARNING,
            "end one of them",
        ),
        (
            {"joint_states": TopicEndpoints("/joint_states", (DRIVER, Endpoint("/odometry", "")))},
            "publishers of joint states",
            ERROR,
            "base/joint_states:=driver/joint_states",
        ),
        (
            {"driver__odom": TopicEndpoints("/driver/odom", (Endpoint("/youbot_oodl_driver", "", reliable=False),))},
            "delivery of the driver's messages",
            WARNING,
            "reliably",
        ),
        (
            {"__tf": TopicEndpoints("/tf", (DRIVER, Endpoint("/odometry", "")))},
            "broadcasters of tf",
            ERROR,
            "/tf:=driver/tf",
        ),
    ],
)
def test_each_fault_of_the_graph_is_found_with_its_remedy(changes, item, verdict, remedy):
    found = judged(**changes)[item]
    assert found.verdict == verdict and remedy in found.remedy, found


def test_a_missing_motor_service_is_a_warning_and_a_controller_of_ros2_control_takes_commands():
    assert judged(servers=())["service that switches the motors off"].verdict == WARNING
    topic = "wheel_velocity_controller__commands"
    gazebo = {
        topic: TopicEndpoints("/wheel_velocity_controller/commands", (), (Endpoint("/wheel_velocity_controller", ""),))
    }
    silent, item = TopicEndpoints("/driver/cmd_vel"), "commands to the driver"
    assert judged((), "float64_multi_array", driver__cmd_vel=silent, **gazebo)[item].verdict == OK


def test_only_a_listener_on_the_interface_in_use_takes_the_commands():
    item, speeds = "commands to the driver", "driver__wheel_velocity_command"
    takes = {speeds: TopicEndpoints("/driver/wheel_velocity_command", (), (DRIVER,))}
    silent = TopicEndpoints("/driver/cmd_vel")
    assert judged((), "joint_state", driver__cmd_vel=silent, **takes)[item].verdict == OK
    sent = TopicEndpoints("/driver/cmd_vel", (Endpoint("/base_controller", TWIST),))
    for interface, twists in (("twist", silent), ("joint_state", sent)):  # the one that is sent counts
        found = judged((), interface, driver__cmd_vel=twists, **takes)[item]
        assert found.verdict == ERROR
        assert found.text.endswith("; /youbot_oodl_driver listens on /driver/wheel_velocity_command")
        assert found.remedy.startswith("set command_interface: joint_state in the section /**/base_controller")
    none = judged((), "joint_state", driver__cmd_vel=silent)[item]
    assert none.verdict == ERROR and "driver/wheel_velocity_command" in none.remedy


# Over DDS


class Bystander(Observer):
    """Sees what base_controller says and sends."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.listen(DiagnosticArray, "/diagnostics")
        self.listen(Twist, "driver/cmd_vel")

    def status(self) -> tuple[bytes, str]:
        found = [
            (status.level, status.message)
            for array in self.received["/diagnostics"]
            for status in array.status
            if status.name == "/base_controller: commands"
        ]
        return found[-1] if found else (b"", "")

    def moving(self) -> bool:
        sent = self.received["driver/cmd_vel"]
        return bool(sent) and abs(sent[-1].linear.x) > 1e-6


FORWARD = Twist()
FORWARD.linear.x = 0.2


@pytest.mark.ros
def test_it_refuses_to_drive_while_the_driver_listens_on_cmd_vel_and_resumes_when_that_is_mended():
    with Processes() as processes, Bystander("fake_driver") as driver, Observer("operator") as operator:
        states = driver.node.create_publisher(JointState, "driver/joint_states", 1)
        subscription = driver.node.create_subscription(Twist, "cmd_vel", lambda message: None, 10)
        cmd_vel = operator.node.create_publisher(Twist, "cmd_vel", 1)
        controller = processes.node("base_controller")
        driver.wait(lambda: driver.status()[0] == DiagnosticStatus.ERROR, "the refusal")
        assert "/fake_driver listens on /cmd_vel" in driver.status()[1]
        assert "-r cmd_vel:=driver/cmd_vel" in driver.status()[1]
        count = len(driver.received["/diagnostics"])
        driver.send(cmd_vel, FORWARD, lambda: len(driver.received["/diagnostics"]) > count + 1, "diagnostics")
        assert driver.received["driver/cmd_vel"] == []
        answer = driver.call(SetBool, "base_controller/enable", SetBool.Request(data=True))
        assert not answer.success and "listens on /cmd_vel" in answer.message

        driver.node.destroy_subscription(subscription)
        driver.wait(lambda: driver.status()[0] == DiagnosticStatus.OK, "the all-clear")
        driver.send(cmd_vel, FORWARD, driver.moving, "a base that drives")

        # It comes back in mid-drive: the base is braked.
        driver.node.create_subscription(Twist, "cmd_vel", lambda message: None, 10)
        driver.wait(lambda: driver.status()[0] == DiagnosticStatus.ERROR, "the second refusal")
        driver.send(cmd_vel, FORWARD, lambda: not driver.moving(), "a base at rest")
        count = len(driver.received["/diagnostics"])
        driver.send(cmd_vel, FORWARD, lambda: len(driver.received["/diagnostics"]) > count + 1, "diagnostics")
        assert not driver.moving()
        driver.node.destroy_publisher(states)
        output = end(controller)
        assert output.count("listens on /cmd_vel itself") == 2, output


@pytest.mark.ros
@pytest.mark.parametrize("stamped", [False, True])
def test_an_operator_with_the_other_twist_is_told_of(stamped):
    kinds = (TwistStamped, Twist) if stamped else (Twist, TwistStamped)
    with Processes() as processes, Bystander("operator") as operator:
        wrong = operator.node.create_publisher(kinds[1], "cmd_vel", 1)
        controller = processes.node("base_controller", "-p", f"enable_stamped_cmd_vel:={str(stamped).lower()}")
        operator.wait(lambda: operator.status()[0] == DiagnosticStatus.ERROR, "the remedy")
        assert f"enable_stamped_cmd_vel to {str(not stamped).lower()}" in operator.status()[1]
        operator.node.destroy_publisher(wrong)
        right = operator.node.create_publisher(kinds[0], "cmd_vel", 1)
        operator.wait(lambda: operator.status()[0] == DiagnosticStatus.OK, "the all-clear")
        operator.wait(lambda: right.get_subscription_count() > 0, "base_controller")
        operator.send(right, TwistStamped(twist=FORWARD) if stamped else FORWARD, operator.moving, "a base that drives")
        assert end(controller).count("enable_stamped_cmd_vel") == 1
