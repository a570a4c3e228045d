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
from xml.sax.saxutils import escape

import numpy as np

from youbot_dynamics.errors import ModelError
from youbot_dynamics.resources import urdf_path
from youbot_dynamics.robot import Robot, load_robot

Element = ElementTree.Element

ROLLER_FRICTION = 1.0  # [1] along the axis of a roller; the floor of config/gazebo/youbot.sdf holds as much
RATE = 100.0  # [Hz] of the IMU and of the true pose; joint states come as often as the controllers run
_GZ = "http://gazebosim.org/schema"
ElementTree.register_namespace("gz", _GZ)  # gz-physics looks for `gz:` to the letter


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
    urdf = ElementTree.parse(urdf_path("youbot.urdf")).getroot()
    joints = {joint.get("name", ""): joint for joint in urdf.findall("joint")}
    root = _root_link(urdf)
    wheels = [_child(urdf, joints, name) for name in robot.driver.wheel_joints]
    for wheel in wheels:
        _touch_as_sphere(wheel)
    for name in robot.driver.arm_joints:
        _child(urdf, joints, name)
    angles = robot.base.geometry.mecanum().roller_angles
    rollers = {wheel.get("name", ""): float(angle) for wheel, angle in zip(wheels, angles, strict=True)}
    moving = [name for name, joint in joints.items() if joint.get("type") != "fixed"]
    # Wheels take a velocity; the arm a position, as the youBot's driver does.
    commands = {name: "velocity" if name in robot.driver.wheel_joints else "position" for name in moving}
    urdf.extend(ElementTree.fromstring(_extensions(rollers, commands, controllers, namespace, root)))
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


def _extensions(
    rollers: dict[str, float], commands: dict[str, str], controllers: Path, namespace: str, root: str
) -> str:
    """Elements for Gazebo inside a <robot>.

    Friction of the wheels, link -> angle of the roller axis [rad] from the x axis of the link `root`; ros2_control with
    joint -> command interface, where gz_ros2_control holds a joint without a controller; an upright IMU in base_link,
    free of noise and bias; the controller manager; the true pose of the base.
    """
    friction = "".join(
        f"""<gazebo reference="{link}"><collision><surface><friction><ode>
          <mu>{ROLLER_FRICTION}</mu>
          <mu2>0.0</mu2>
          <fdir1 gz:expressed_in="{root}">{np.cos(angle):.12g} {np.sin(angle):.12g} 0</fdir1>
        </ode></friction></surface></collision></gazebo>"""
        for link, angle in rollers.items()
    )
    states = "".join(f'<state_interface name="{state}" />' for state in ("position", "velocity", "effort"))
    joints = "".join(
        f'<joint name="{name}"><command_interface name="{command}" />{states}</joint>'
        for name, command in commands.items()
    )
    return f"""<robot xmlns:gz="{_GZ}">
      {friction}
      <ros2_control name="youbot" type="system">
        <hardware><plugin>gz_ros2_control/GazeboSimSystem</plugin></hardware>
        {joints}
      </ros2_control>
      <gazebo reference="base_link">
        <sensor name="imu" type="imu">
          <always_on>true</always_on>
          <update_rate>{RATE}</update_rate>
          <topic>{_topic(namespace, "imu")}</topic>
          <gz_frame_id>base_link</gz_frame_id>
        </sensor>
      </gazebo>
      <gazebo>
        <plugin filename="gz_ros2_control-system" name="gz_ros2_control::GazeboSimROS2ControlPlugin">
          <parameters>{escape(str(controllers))}</parameters>
          <ros><namespace>/{namespace.strip("/")}</namespace></ros>
        </plugin>
        <plugin filename="gz-sim-odometry-publisher-system" name="gz::sim::systems::OdometryPublisher">
          <odom_frame>odom</odom_frame>
          <robot_base_frame>{root}</robot_base_frame>
          <odom_topic>{_topic(namespace, "ground_truth")}</odom_topic>
          <odom_publish_frequency>{RATE}</odom_publish_frequency>
        </plugin>
      </gazebo>
    </robot>"""


def _topic(namespace: str, name: str) -> str:
    """Topic inside Gazebo, where there are no relative names."""
    return "/".join(("", *filter(None, namespace.split("/")), name))
