"""What commands that are nodes need of ROS."""

from __future__ import annotations

import argparse
import importlib.util
import sys

from youbot_dynamics.bringup_plan import ros_arguments
from youbot_dynamics.errors import missing_package


def need_ros() -> None:
    """Raise an error that says how to install ROS if it is missing."""
    if importlib.util.find_spec("rclpy") is None:
        raise missing_package("rclpy", "this command", "ROS 2 Jazzy or Kilted")


def node_words(given: argparse.Namespace) -> list[str]:
    """Arguments of a node of this command's robot; says what is assumed of it."""
    robot_file, params_file = getattr(given, "robot_file", ""), getattr(given, "params_file", None)
    if robot_file or params_file:  # rcl takes a text for a file without parameters: the youBot
        from youbot_dynamics.robot import assumptions

        if assumed := assumptions(robot_file, params_file):
            print(f"note: {assumed}", file=sys.stderr)
    return ros_arguments(given.namespace, robot_file, params_file)
