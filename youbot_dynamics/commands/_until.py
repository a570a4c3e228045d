"""`youbot play excitation --until`: drive until intervals are narrow enough."""

from __future__ import annotations

import argparse

from youbot_dynamics.commands._ros import need_ros, node_words
from youbot_dynamics.commands._terminal import announce
from youbot_dynamics.identification.until_narrow import Bounds, look, read_wish
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot


def until_command(given: argparse.Namespace) -> int:
    """Run the command; return 3 if the wish was not met.

    Raises:
        ParameterError, ProgramError: a wish that is not understood, or a bound out of range.
        ResourceError: ROS is missing.
    """
    Bounds(given.duration, given.room)
    read_wish(given.until, load_robot(params_file=given.params_file, robot_file=robot_path(given.robot_file)).base)
    ros = node_words(given)
    need_ros()
    announce("note: nothing of the drive is kept: run youbot record --out drive_1 beside it to identify it later")
    from youbot_dynamics.nodes.until_player import play_until

    return play_until(given, ros, look)
