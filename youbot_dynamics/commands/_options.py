"""Options that several commands of `youbot` have."""

from __future__ import annotations

import argparse
from pathlib import Path

ROBOT_FILE = "robot: a name in config/robots, such as rosbot_xl, or a path of a robot file or URDF; a youBot needs none"
COLUMNS = (
    "columns of text logs in file order: time, ROLE.NAME, or _ to skip a column, each with :UNIT if it is not in SI; "
    "ROLE is position, velocity, effort, current, voltage, temperature (of the winding) or housing (temperature) of a "
    "joint, command, command_position, measured or measured_position of an axis, joint or channel, or pose (x, y, yaw);"
    " NAME=HEADER:UNIT finds a column by its header; a factor scales a unit, as in turn/4096 or -0.5*V "
    "(default: by the header)"
)


def add_verb(verbs, name: str, text: str, examples: str) -> argparse.ArgumentParser:
    """Add the parser of a command to the subparsers `verbs`; its help is a sentence without its full stop."""
    return verbs.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def path_of(text: str) -> Path:
    """Parse a path.

    Raises:
        argparse.ArgumentTypeError: an empty one.
    """
    if not text:
        raise argparse.ArgumentTypeError("an empty path; is a shell variable not set?")
    return Path(text)


def add_number(parser: argparse.ArgumentParser, name: str, default: float, text: str) -> None:
    """Add an option that takes a number of the kind of its default, which the help gives too."""
    parser.add_argument(name, type=type(default), default=default, help=f"{text} (default: {default:g})")


def add_repeated(parser: argparse.ArgumentParser, name: str, metavar: str, text: str) -> None:
    """Add an option that may be given several times."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=text)


def add_namespace(parser: argparse.ArgumentParser) -> None:
    """Add the option for the namespace of the robot."""
    parser.add_argument("--namespace", default="", metavar="NS", help="namespace of the robot (default: none)")


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe text logs."""
    parser.add_argument("--columns", default="", help=COLUMNS)
    add_number(parser, "--rate", 0.0, "lines a second [Hz] of text logs without a column with the time")


def add_robot_files(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add the options for the files of the robot; `more` is what else the parameter file is for."""
    parser.add_argument("--robot-file", default="", metavar="NAME", help=ROBOT_FILE)
    parser.add_argument("--params-file", type=path_of, metavar="FILE", help=f"parameter file of the robot{more}")
