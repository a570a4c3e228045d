"""`youbot play excitation --until`: drive until intervals are narrow enough."""

from __future__ import annotations

import argparse
import shlex

from youbot_dynamics.bringup_plan import new_folder
from youbot_dynamics.commands._ros import need_ros, node_words
from youbot_dynamics.commands._terminal import announce, robot_words
from youbot_dynamics.identification.until_narrow import Bounds, look, read_wish
from youbot_dynamics.resources import robot_path, short_path
from youbot_dynamics.robot import load_robot


def until_command(given: argparse.Namespace) -> int:
    """Run the command; return 3 if the wish was not met.

    Raises:
        ParameterError, ProgramError: a wish that is not understood, or a bound out of range.
        RecordingError: the folder of the recording is not new.
        ResourceError: ROS is missing.
    """
    new_folder("--out", str(given.out))
    Bounds(given.duration, given.room)
    read_wish(given.until, load_robot(params_file=given.params_file, robot_file=robot_path(given.robot_file)).base)
    ros = node_words(given)
    need_ros()
    from youbot_dynamics.nodes.until_player import play_until

    code = play_until(given, ros, look)
    if given.out.exists():
        words = f"{shlex.quote(short_path(given.out))} --out found {robot_words(given, robot='')}"
        announce("all that it shows:", f"youbot identify {words}".rstrip())
    return code
