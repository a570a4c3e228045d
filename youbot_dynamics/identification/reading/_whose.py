"""Whose recording it is, by the joints that it names."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.message_types import JOINT_TYPES
from youbot_dynamics.robot import Robot

UNNAMED = "unnamed base"  # robot of recordings that name none and have no joint of the youBot
_MOST_LISTED = 12  # joints in a message


def of_known_joints(recording: Recording, robot: Robot) -> bool:
    """Whether a recording names a joint of the robot.

    Raises:
        RecordingError: the robot has a file of its own, and the joints of the recording are neither its wheels nor its
            arm; fewer joints than wheels may be of anything.
    """
    wheels, arm = robot.driver.wheel_joints, {*robot.driver.arm_joints}
    found = _joints(recording, wheels)
    if not (robot.is_youbot or found.issuperset(wheels) or found & arm) and len(found) >= len(wheels):
        raise RecordingError(
            f"joints of {recording.path}",
            got=", ".join(sorted(found)[:_MOST_LISTED]),
            expected=f"{', '.join(wheels)}, the wheels of robot '{robot.robot_id}'",
            remedy="give robot.driver.wheel_joints of its robot file the names of the recording, front left first",
        )
    return bool(found & {*wheels, *arm})


def _joints(recording: Recording, enough: Collection[str]) -> set[str]:
    """Joints that a recording names, as far as those that are enough."""
    found = set[str]()
    for topic in recording.topics.values():
        if topic.type in JOINT_TYPES and topic.count:
            with suppress(RecordingError):  # which the stage that needs the topic reports
                found.update(*recording.joint_names(topic.name))
        if found.issuperset(enough):
            break
    return found
