"""urdf/youbot.urdf with what Gazebo (Harmonic) wants besides: mecanum wheels, ros2_control, an IMU, the true pose.

Links, masses and joints stay those of the URDF; here they get tags only, and the wheels another shape to touch the
floor with. A mecanum wheel is a sphere whose friction has a direction: along the axis of the roller on the floor it
holds (mu), across it, where the roller rolls, it does not (mu2 = 0). That is the rolling constraint of
`MecanumBase` with lateral factor 1, cos(d) R w = cos(d) vx + sin(d) vy + ..., where d is the angle of the axis. A
sphere touches the floor in one point below its centre however it has turned; a cylinder would touch along its width.

The direction must not turn with the wheel, so it is expressed in another link. It must be one that remains after fixed
joints are lumped, the root: gz-physics looks a body up by that name (gz-physics7 dartsim/src/SDFFeatures.cc), and where
it finds none, as for base_link, the direction silently turns with the wheel.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from youbot_dynamics.errors import ModelError
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import Robot, load_robot

Element = ElementTree.Element

ROLLER_FRICTION = 1.0  # [1] along the axis of a roller; the floor of config/gazebo/youbot.sdf holds as much
RATE = 100.0  # [Hz] of the IMU and of the true pose; joint states come as often as the controllers run

_STATES = ("position", "velocity", "effort")


def gazebo_urdf(controllers: Path, namespace: str = "", robot: Robot | None = None) -> str:
    """Text of the URDF for Gazebo with gz_ros2_control.

    Args:
        controllers: parameter file of the controllers, config/gazebo/controllers.yaml.
        namespace: of the robot: of its controller manager, and of its topics inside Gazebo; empty for none.
        robot: names of the joints and places of the wheels; that of config/youbot.yaml where none is given.

    Returns:
        The URDF. Gazebo's topics are `imu` and `ground_truth`, in the namespace.

    Raises:
        ModelError: the URDF lacks a joint of the robot, or a wheel is no cylinder.
    """
    robot = load_robot() if robot is None else robot
    # Of the namespaces of XML ElementTree makes names of its own, and gz-physics looks for `gz:` to the letter.
    urdf = ElementTree.parse(urdf_path("youbot.urdf")).getroot()
    urdf.set("xmlns:gz", "http://gazebosim.org/schema")
    joints = {joint.get("name", ""): joint for joint in urdf.findall("joint")}
    root = _root_link(urdf)
    angles = robot.base.geometry.mecanum().roller_angles
    for name, angle in zip(robot.driver.wheel_joints, angles, strict=True):
        wheel = _child(urdf, joints, name)
        _touch_as_sphere(wheel)
        urdf.append(_roller_friction(wheel.get("name", ""), root, float(angle)))
    for name in robot.driver.arm_joints:
        _child(urdf, joints, name)
    moving = [name for name, joint in joints.items() if joint.get("type") != "fixed"]
    # Command interfaces: wheels velocity; the arm position, as the youBot's driver does.
    urdf.append(_hardware({name: "velocity" if name in robot.driver.wheel_joints else "position" for name in moving}))
    urdf.append(_imu(_topic(namespace, "imu")))
    urdf.append(_plugins(controllers, namespace, root))
    ElementTree.indent(urdf)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(urdf, encoding="unicode") + "\n"


def _root_link(urdf: Element) -> str:
    """Name of the link that is no joint's child."""
    children = {child.get("link") for child in urdf.findall("joint/child")}
    return next(link.get("name", "") for link in urdf.findall("link") if link.get("name") not in children)


def _child(urdf: Element, joints: dict[str, Element], name: str) -> Element:
    """Link a joint moves."""
    if name not in joints:
        raise ModelError(
            f"joint {name}",
            got=f"none of {', '.join(sorted(joints))}",
            expected="a joint of urdf/youbot.urdf",
            remedy="check robot.driver.wheel_joints and arm_joints",
        )
    child = joints[name].find("child")
    wanted = None if child is None else child.get("link")
    return next(link for link in urdf.findall("link") if link.get("name") == wanted)


def _touch_as_sphere(wheel: Element) -> None:
    """Replace the cylinder a wheel collides with by the sphere around it."""
    geometry = wheel.find("collision/geometry")
    cylinder = None if geometry is None else geometry.find("cylinder")
    if geometry is None or cylinder is None:
        raise ModelError(f"link {wheel.get('name')}", got="no cylinder in its <collision>", expected="a wheel")
    radius = cylinder.get("radius", "")
    geometry.clear()
    ElementTree.SubElement(geometry, "sphere", {"radius": radius})


def _roller_friction(link: str, root: str, angle: float) -> Element:
    """Friction of a wheel that holds along its roller axis at `angle` [rad] from the x axis of the link `root`."""
    gazebo = Element("gazebo", {"reference": link})
    friction = _nested(gazebo, "collision", "surface", "friction", "ode")
    _text(friction, "mu", repr(ROLLER_FRICTION))
    _text(friction, "mu2", "0.0")
    direction = _text(friction, "fdir1", f"{np.cos(angle):.12g} {np.sin(angle):.12g} 0")
    direction.set("gz:expressed_in", root)
    return gazebo


def _hardware(commands: dict[str, str]) -> Element:
    """Element <ros2_control>; a joint without a controller is held where it is by gz_ros2_control."""
    control = Element("ros2_control", {"name": "youbot", "type": "system"})
    _text(_nested(control, "hardware"), "plugin", "gz_ros2_control/GazeboSimSystem")
    for name, command in commands.items():
        joint = ElementTree.SubElement(control, "joint", {"name": name})
        ElementTree.SubElement(joint, "command_interface", {"name": command})
        for state in _STATES:
            ElementTree.SubElement(joint, "state_interface", {"name": state})
    return control


def _imu(topic: str) -> Element:
    """An upright IMU in base_link, free of noise and bias."""
    gazebo = Element("gazebo", {"reference": "base_link"})
    sensor = ElementTree.SubElement(gazebo, "sensor", {"name": "imu", "type": "imu"})
    _text(sensor, "always_on", "true")
    _text(sensor, "update_rate", repr(RATE))
    _text(sensor, "topic", topic)
    _text(sensor, "gz_frame_id", "base_link")
    return gazebo


def _plugins(controllers: Path, namespace: str, root: str) -> Element:
    """The controller manager, and the true pose of the base."""
    gazebo = Element("gazebo")
    controlled = {"filename": "gz_ros2_control-system", "name": "gz_ros2_control::GazeboSimROS2ControlPlugin"}
    manager = ElementTree.SubElement(gazebo, "plugin", controlled)
    _text(manager, "parameters", str(controllers))
    _text(_nested(manager, "ros"), "namespace", "/" + namespace.strip("/"))
    publisher = {"filename": "gz-sim-odometry-publisher-system", "name": "gz::sim::systems::OdometryPublisher"}
    truth = ElementTree.SubElement(gazebo, "plugin", publisher)
    _text(truth, "odom_frame", "odom")
    _text(truth, "robot_base_frame", root)
    _text(truth, "odom_topic", _topic(namespace, "ground_truth"))
    _text(truth, "odom_publish_frequency", repr(RATE))
    return gazebo


def _topic(namespace: str, name: str) -> str:
    """Topic inside Gazebo, where there are no relative names."""
    return "/".join(("", *filter(None, namespace.split("/")), name))


def _nested(parent: Element, *tags: str) -> Element:
    """Append elements, each inside the one before; returns the innermost."""
    for tag in tags:
        parent = ElementTree.SubElement(parent, tag)
    return parent


def _text(parent: Element, tag: str, text: str) -> Element:
    element = ElementTree.SubElement(parent, tag)
    element.text = text
    return element
