"""What lets a person see the robot: robot_state_publisher with our URDF, and RViz."""

from __future__ import annotations

import json

from youbot_dynamics.bringup_plan.process import RESTARTS, Process, parameter_arguments
from youbot_dynamics.bringup_plan.ros_packages import needed_program, program
from youbot_dynamics.resources import config_path, urdf_path

STATE_PUBLISHER = "robot_state_publisher"


def description_process(common: tuple[str, ...], frame_prefix: str) -> Process | None:
    """Describe robot_state_publisher: it reads joint_states and publishes robot_description and the tf of the links.

    Args:
        common: ROS arguments of every node: namespace, log level, time.
        frame_prefix: put before the names of the links.

    Returns:
        The process, or None where robot_state_publisher is not installed.
    """
    if program(STATE_PUBLISHER, STATE_PUBLISHER) is None:
        return None
    # A value is read as YAML: quoted as in JSON it stays one text, whatever the URDF contains.
    text = json.dumps(urdf_path("youbot.urdf").read_text(encoding="utf-8"))
    values = parameter_arguments(robot_description=text)
    values += parameter_arguments(frame_prefix=json.dumps(frame_prefix)) if frame_prefix else ()
    arguments = (*common, *values)
    return Process(
        STATE_PUBLISHER, (STATE_PUBLISHER,), arguments, package=STATE_PUBLISHER, vital=False, restarts=RESTARTS
    )


def rviz_process(common: tuple[str, ...], frame_prefix: str) -> Process:
    """Describe RViz; closing its window ends nothing else.

    Args:
        common: ROS arguments of every node: namespace, log level, time.
        frame_prefix: put before the names of the frames.

    Returns:
        The process.

    Raises:
        ResourceError: when RViz or its layout is not installed.
    """
    needed_program("rviz2", "rviz2", "sudo apt install ros-jazzy-rviz2, or leave rviz out")
    fixed_frame = ("-f", f"{frame_prefix}odom") if frame_prefix else ()
    words = ("-d", str(config_path("youbot.rviz")), *fixed_frame)
    return Process("rviz2", ("rviz2",), common, words=words, package="rviz2", vital=False, missed=False)
