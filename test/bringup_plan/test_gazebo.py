"""The robot in Gazebo is ours: its bodies, rolling constraints, names and topics. Gazebo itself does not run here."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import Twist
from launch_files import loaded
from nav_msgs.msg import Odometry
from ros_processes import Observer, Processes
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import ModelError
from youbot_dynamics.estimation.odometry import BaseEstimator
from youbot_dynamics.gazebo_description import gazebo_urdf
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.kinematics.planar import integrate
from youbot_dynamics.nodes._driver import _TYPES
from youbot_dynamics.nodes._messages import pose_vector
from youbot_dynamics.nodes.base_controller import TABLE
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.resources import config_path, urdf_path
from youbot_dynamics.robot import load_robot

CONTROLLERS = config_path("gazebo/controllers.yaml")
OURS = config_path("gazebo/youbot_gazebo.yaml")
DRIVER = load_robot().driver


@pytest.fixture(scope="module")
def gazebo() -> ElementTree.Element:
    return ElementTree.fromstring(gazebo_urdf(CONTROLLERS, "robot_1"))


@pytest.fixture(scope="module")
def drawn() -> ElementTree.Element:
    return ElementTree.parse(urdf_path("youbot.urdf")).getroot()


def texts(element: ElementTree.Element) -> list[object]:
    """An element without the white space between its parts."""
    return [element.tag, dict(element.attrib), (element.text or "").strip(), *(texts(child) for child in element)]


def by_name(urdf: ElementTree.Element, tag: str) -> dict[str, ElementTree.Element]:
    return {element.attrib["name"]: element for element in urdf.findall(tag)}


def root_link(urdf: ElementTree.Element) -> str:
    children = {joint.find("child").attrib["link"] for joint in urdf.findall("joint")}
    (root,) = set(by_name(urdf, "link")) - children
    return root


def test_links_and_joints_are_those_of_the_urdf(gazebo, drawn):
    wheels = {drawn.find(f"joint[@name='{name}']/child").attrib["link"] for name in DRIVER.wheel_joints}
    for tag in ("link", "joint", "material"):
        ours, theirs = by_name(drawn, tag), by_name(gazebo, tag)
        assert list(ours) == list(theirs)
        for name, element in ours.items():
            parts = [part for part in element if not (name in wheels and part.tag == "collision")]
            others = [part for part in theirs[name] if not (name in wheels and part.tag == "collision")]
            assert [texts(part) for part in parts] == [texts(part) for part in others]


def test_the_bodies_move_like_ours():
    """All of the dynamics, not only the numbers written down: the same mass matrix and gravity."""
    trees = [Tree.from_urdf(source, floating_base=True) for source in (urdf_path("youbot.urdf"), gazebo_urdf(OURS))]
    joints = np.random.default_rng(3).uniform(-1.0, 1.0, trees[0].nq - 7)
    q = np.concatenate([[0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], joints])
    assert np.array_equal(trees[0].mass_matrix(q), trees[1].mass_matrix(q))
    assert np.array_equal(trees[0].gravity_forces(q), trees[1].gravity_forces(q))


def wheel_contacts(gazebo: ElementTree.Element) -> list[tuple[np.ndarray, float, np.ndarray, ElementTree.Element]]:
    """Place, radius, axis and friction of every wheel, in the frame of its friction, from the text alone."""
    joints, links = by_name(gazebo, "joint"), by_name(gazebo, "link")
    found = []
    for name in DRIVER.wheel_joints:
        joint, place = joints[name], np.zeros(3)
        link = links[joint.find("child").attrib["link"]]
        at: ElementTree.Element | None = joint
        while at is not None:
            assert np.allclose(numbers(at.find("origin").attrib["rpy"]), 0.0)
            place = place + numbers(at.find("origin").attrib["xyz"])
            parent = at.find("parent").attrib["link"]
            at = next((j for j in joints.values() if j.find("child").attrib["link"] == parent), None)
        radius = float(link.find("collision/geometry/sphere").attrib["radius"])
        (surface,) = gazebo.findall(f"gazebo[@reference='{link.attrib['name']}']")
        found.append((place, radius, numbers(joint.find("axis").attrib["xyz"]), surface.find(".//ode")))
    return found


def numbers(text: str) -> np.ndarray:
    return np.array([float(part) for part in text.split()])


def test_wheels_stand_on_the_floor(gazebo):
    for place, radius, _, _ in wheel_contacts(gazebo):
        assert place[2] == pytest.approx(radius, abs=1e-12)


def rolling_constraints(gazebo: ElementTree.Element) -> np.ndarray:
    """Wheel speeds of a twist (4, 3), out of the text: no slip along fdir1 at the point of contact."""
    rows = []
    for place, radius, axis, ode in wheel_contacts(gazebo):
        held = numbers(ode.find("fdir1").text)
        contact = place - [0.0, 0.0, radius]
        of_wheel = held @ np.cross(axis, contact - place)  # speed of the contact along fdir1, for 1 rad/s
        assert abs(of_wheel) > 0.5 * radius
        moves = [held @ v for v in ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], np.cross([0.0, 0.0, 1.0], contact))]
        rows.append(-np.array(moves) / of_wheel)
    return np.array(rows)


def test_friction_holds_along_the_rollers_as_in_mecanum_base(gazebo):
    base = load_robot(params_file=OURS).base.geometry
    assert base.lateral_factor == 1.0
    expected = MecanumBase.rectangular(base.wheel_radius, base.half_length, base.half_width).inverse_matrix
    assert np.allclose(rolling_constraints(gazebo), expected, rtol=1e-9, atol=1e-9)
    assert np.allclose(base.mecanum().inverse_matrix, expected)


def test_friction_is_held_along_and_free_across_the_rollers(gazebo):
    floor = world().find("model[@name='floor']").find(".//friction/ode")
    for _, _, _, ode in wheel_contacts(gazebo):
        assert float(ode.find("mu").text) == 1.0 <= float(floor.find("mu").text)
        assert float(ode.find("mu2").text) == 0.0
        assert np.linalg.norm(numbers(ode.find("fdir1").text)) == pytest.approx(1.0)


def test_friction_is_told_in_a_link_that_gazebo_keeps():
    """Links on fixed joints are lumped into their parents; one that is gone lets the direction turn with the wheel."""
    text = gazebo_urdf(CONTROLLERS)
    frames = re.findall(r"<fdir1 gz:expressed_in=\"(\w+)\">", text)
    assert frames == [root_link(ElementTree.fromstring(text))] * 4
    # gz-physics asks for the attribute by these letters, so ElementTree must not rename its prefix.
    assert 'xmlns:gz="http://gazebosim.org/schema"' in text.split(">", 2)[1] + ">"
    assert "ns0:" not in text


def test_every_moving_joint_is_commanded_as_its_controller_does(gazebo):
    control = gazebo.find("ros2_control")
    assert control.findtext("hardware/plugin") == "gz_ros2_control/GazeboSimSystem"
    moving = [name for name, joint in by_name(gazebo, "joint").items() if joint.attrib["type"] != "fixed"]
    joints = by_name(control, "joint")
    assert list(joints) == moving
    for name, joint in joints.items():
        (command,) = (interface.attrib["name"] for interface in joint.findall("command_interface"))
        assert command == ("velocity" if name in DRIVER.wheel_joints else "position")
        states = [interface.attrib["name"] for interface in joint.findall("state_interface")]
        assert states == ["position", "velocity", "effort"]


def read_yaml(name: str):
    return yaml.safe_load(config_path(f"gazebo/{name}").read_text(encoding="utf-8"))


def controllers() -> dict[str, dict]:
    sections = read_yaml("controllers.yaml").items()
    return {key.removeprefix("/**/"): value["ros__parameters"] for key, value in sections}


def test_controllers_know_the_drivers_joints_in_its_order():
    sections = controllers()
    assert sections["wheel_velocity_controller"]["joints"] == list(DRIVER.wheel_joints)
    assert sections["arm_controller"]["joints"] == list(DRIVER.arm_joints)
    types = {name: value["type"] for name, value in sections["controller_manager"].items() if name != "update_rate"}
    assert types["wheel_velocity_controller"] == "velocity_controllers/JointGroupVelocityController"
    assert sorted(types) == sorted(loaded("gazebo.launch.py").CONTROLLERS)


def test_topics_are_those_of_the_contract():
    topics = loaded("gazebo.launch.py").TOPICS
    assert topics["joint_states"] == "driver/joint_states"
    assert topics["arm_controller/joint_trajectory"] == "arm_1/arm_controller/joint_trajectory"
    # gz_ros2_control's controller is called so that its own topic is already the one base_controller sends on.
    assert _TYPES["float64_multi_array"][1] == "wheel_velocity_controller/commands"
    assert "wheel_velocity_controller" in controllers()


@pytest.mark.parametrize("namespace", ["", "robot_1", "/hall/robot_1"])
def test_gazebos_topics_and_the_bridges_agree(namespace):
    gazebo = ElementTree.fromstring(gazebo_urdf(CONTROLLERS, namespace))
    prefix = f"/{namespace.strip('/')}" if namespace else ""
    inside = {gazebo.findtext(".//sensor/topic"): Imu, gazebo.findtext(".//odom_topic"): Odometry}
    entries = read_yaml("bridge.yaml")
    kinds = {f"{prefix}/{entry['topic_name']}": entry["ros_type_name"] for entry in entries}
    assert kinds == {topic: f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}" for topic, kind in inside.items()}
    assert {entry["direction"] for entry in entries} == {"GZ_TO_ROS"}
    assert gazebo.findtext(".//ros/namespace") == (prefix or "/")
    (clock,) = read_yaml("clock_bridge.yaml")
    assert (clock["topic_name"], clock["ros_type_name"]) == ("/clock", "rosgraph_msgs/msg/Clock")


def test_the_true_pose_is_told_in_the_frames_of_odom(gazebo):
    assert gazebo.findtext(".//odom_frame") == "odom"
    assert gazebo.findtext(".//robot_base_frame") == "base_footprint" == root_link(gazebo)
    links = by_name(gazebo, "link")
    assert gazebo.findtext(".//sensor/gz_frame_id") in links
    assert {element.attrib["reference"] for element in gazebo.findall("gazebo[@reference]")} <= set(links)


def test_our_nodes_read_gazebos_wheels_with_their_signs(gazebo):
    robot = load_robot(params_file=OURS)
    # A wheel that turns about +y moves the point that touches the floor backwards: it rolls forward.
    forward = [-np.cross(axis, [0.0, 0.0, -radius])[0] for _, radius, axis, _ in wheel_contacts(gazebo)]
    for signs in (robot.driver.position_sign, robot.driver.velocity_sign, robot.driver.command_sign):
        assert np.array_equal(np.sign(forward), signs)
    interface = read_parameters(OURS, "base_controller")["command_interface"]
    (parameter,) = (parameter for parameter in TABLE if parameter.name == "command_interface")
    assert interface in parameter.choices and interface == "float64_multi_array"


@pytest.mark.parametrize("twist", [[0.3, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.6], [0.2, -0.1, 0.4]])
def test_odometry_of_gazebos_wheels_is_the_way_driven(twist):
    robot = load_robot(params_file=OURS)
    estimator = BaseEstimator(robot)
    speeds = robot.base.geometry.mecanum().wheel_speeds(twist)
    for step in range(101):
        state = estimator.take_wheels(0.01 * step, 0.01 * step * speeds, speeds)
    assert np.allclose(state.pose, integrate(np.zeros(3), np.array(twist), 1.0), atol=1e-9)
    assert not estimator.contradictions()


def world() -> ElementTree.Element:
    return ElementTree.parse(config_path("gazebo/youbot.sdf")).getroot().find("world")


def test_the_world_has_the_systems_the_robot_needs():
    """Systems of the world and plugins of the robot together: physics, spawning, IMU."""
    systems = {
        plugin.attrib["name"].rpartition("::")[2]: plugin.attrib["filename"] for plugin in world().iter("plugin")
    }
    assert set(systems) == {"Physics", "UserCommands", "SceneBroadcaster", "Imu"}
    for name, library in systems.items():
        words = re.findall("[A-Z][a-z]+", name)
        assert library == f"gz-sim-{'-'.join(words).lower()}-system"


def test_controllers_run_at_whole_steps_of_the_world():
    step = float(world().findtext("physics/max_step_size"))
    steps = 1.0 / controllers()["controller_manager"]["update_rate"] / step
    assert steps == pytest.approx(round(steps)) and round(steps) >= 1


def test_an_unknown_joint_is_named():
    robot = load_robot()
    driver = dataclasses.replace(robot.driver, arm_joints=(*DRIVER.arm_joints[:4], "arm_joint_6"))
    with pytest.raises(ModelError, match="joint arm_joint_6: got none of arm_joint_0"):
        gazebo_urdf(CONTROLLERS, robot=dataclasses.replace(robot, driver=driver))


def test_a_wheel_without_a_cylinder_is_refused(monkeypatch, tmp_path, drawn):
    path = Path(tmp_path, "youbot.urdf")
    path.write_text(
        re.sub(r'<cylinder radius="0.0475"[^>]*/>', '<box size="1 1 1"/>', urdf_path("youbot.urdf").read_text())
    )
    monkeypatch.setattr("youbot_dynamics.gazebo_description.urdf_path", lambda name: path)
    with pytest.raises(ModelError, match="link wheel_link_fl: got no cylinder"):
        gazebo_urdf(CONTROLLERS)


class StandIn:
    """Gazebo's place in the graph: wheels that turn as commanded, on a floor that holds them along their rollers."""

    def __init__(self, observer: Observer, gazebo: ElementTree.Element) -> None:
        self.names = sorted(by_name(gazebo.find("ros2_control"), "joint"))
        self.order = controllers()["wheel_velocity_controller"]["joints"]
        self.twist_of = np.linalg.pinv(rolling_constraints(gazebo))
        self.speeds, self.angles, self.pose = np.zeros(4), np.zeros(4), np.zeros(3)
        self.clock = observer.node.get_clock()
        self.states = observer.node.create_publisher(JointState, "driver/joint_states", 10)
        observer.node.create_subscription(Float64MultiArray, "wheel_velocity_controller/commands", self.take, 1)
        observer.node.create_timer(0.01, self.step)

    def take(self, message: Float64MultiArray) -> None:
        self.speeds = np.array(message.data)

    def step(self) -> None:
        self.angles = self.angles + 0.01 * self.speeds
        self.pose = integrate(self.pose, self.twist_of @ self.speeds, 0.01)
        message = JointState(name=self.names)
        message.header.stamp = self.clock.now().to_msg()
        turned = dict(zip(self.order, zip(self.angles, self.speeds, strict=True), strict=True))
        message.position = [float(turned.get(name, (0.0, 0.0))[0]) for name in self.names]
        message.velocity = [float(turned.get(name, (0.0, 0.0))[1]) for name in self.names]
        message.effort = [0.0] * len(self.names)
        self.states.publish(message)


@pytest.mark.ros
def test_our_nodes_drive_it_as_they_drive_the_robot(gazebo):
    """From cmd_vel to odom over DDS, with Gazebo's parameter file: the path driven is the path reported."""
    with Processes() as processes, Observer() as observer:
        for node in ("base_controller", "odometry"):
            processes.node(node, "--params-file", str(OURS))
        robot = StandIn(observer, gazebo)
        observer.listen(Odometry, "odom")
        command = observer.node.create_publisher(Twist, "cmd_vel", 1)
        observer.wait(lambda: command.get_subscription_count() > 1 and bool(observer.received["odom"]), "our nodes")
        observer.wait(lambda: robot.states.get_subscription_count() > 0, "the odometry")
        start, asked = pose_vector(observer.received["odom"][-1].pose.pose), Twist()
        asked.linear.x, asked.linear.y, asked.angular.z = 0.15, 0.1, 0.3
        for _ in range(60):
            command.publish(asked)
            observer.spin(0.05)
        assert np.allclose(robot.twist_of @ robot.speeds, [0.15, 0.1, 0.3], atol=1e-6)
        observer.wait(lambda: not np.any(robot.speeds), "the watchdog of base_controller")
        rest = robot.clock.now().nanoseconds * 1e-9
        observer.wait(lambda: observer.stamps("odom")[-1] > rest, "odometry of the base at rest")
        assert np.allclose(start, 0.0)
        assert np.linalg.norm(robot.pose[:2]) > 0.2
        assert np.allclose(pose_vector(observer.received["odom"][-1].pose.pose), robot.pose, atol=2e-3)
