"""Whose recording it is, by the joints that it names."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.message_types import JOINT_TYPES
from youbot_dynamics.robot import UNNAMED, Robot

_REMEDY = "give robot.driver.wheel_joints of its robot file the names of the recording, front left first"
_MOST_LISTED = 12  # joints in a message
_WHEEL = re.compile(r"wheel|(front|rear|back).*(left|right)|(left|right).*(front|rear|back)|^[fbr][lr]$", re.IGNORECASE)
_FEWEST_WHEELS = 3  # of a base that moves in all directions


def unnamed(recording: Recording, robot: Robot) -> str:
    """Name of the robot of a recording that names no joint of the robot, "" of another recording.

    Raises:
        RecordingError: it names some of the wheels, and others instead of the rest.
    """
    wheels, arm = robot.driver.wheel_joints, {*robot.driver.arm_joints}
    found = named_joints(recording, wheels)
    some = found & {*wheels}
    if some and len(some) < len(wheels) <= len(found) and not (robot.is_youbot or found & arm):
        thing, got = f"joints of {recording.path}", ", ".join(sorted(found)[:_MOST_LISTED])
        expected = f"{', '.join(wheels)}, the wheels of robot '{robot.robot_id}'"
        raise RecordingError(thing, got=got, expected=expected, remedy=_REMEDY)
    return "" if found & {*wheels, *arm} else UNNAMED[2 if found else 0]


def other_joints(recording: Recording, robot: Robot) -> str:
    """Warning about joints that are neither the wheels nor the arm of a robot; "" without any.

    Fewer joints than wheels may be of anything, and more may be of another arm. Without a robot file, those count that
    are named as wheels are.
    """
    wheels = robot.driver.wheel_joints
    found = named_joints(recording, wheels)
    if robot.is_youbot and not found & {*wheels, *robot.driver.arm_joints}:
        if not of_wheels(found):
            return ""
        names = ", ".join(sorted(filter(_WHEEL.search, found))[:_MOST_LISTED])
        return f"joints {names} look like wheels: youbot new-robot makes a robot file of them"
    if robot.is_youbot or found & {*wheels, *robot.driver.arm_joints} or len(found) < len(wheels):
        return ""
    return (
        f"it has joints {', '.join(sorted(found)[:_MOST_LISTED])}, and none of {', '.join(wheels)}, the wheels of "
        f"robot '{robot.robot_id}': if wheels are among them, {_REMEDY}"
    )


def of_wheels(joints: Collection[str]) -> bool:
    """Whether enough of some joints are named as the wheels of a base are."""
    return sum(_WHEEL.search(name) is not None for name in joints) >= _FEWEST_WHEELS


def named_joints(recording: Recording, enough: Collection[str]) -> set[str]:
    """Joints that a recording names, as far as those that are enough; all if these are none."""
    found = set[str]()
    for topic in recording.topics.values():
        if topic.type in JOINT_TYPES and topic.count:
            with suppress(RecordingError):  # which the stage that needs the topic reports
                found.update(*recording.joint_names(topic.name))
        if enough and found.issuperset(enough):
            break
    return found
