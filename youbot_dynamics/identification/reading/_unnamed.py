"""The robot of recordings that name none: an arm of which no more is known than its joints, or a base."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from youbot_dynamics.errors import RecordingError, YoubotDynamicsError, listed
from youbot_dynamics.identification.reading._logs import NAMELESS
from youbot_dynamics.identification.reading._opened import Opened, find_arm_states, find_odometry, find_topic
from youbot_dynamics.identification.reading._whose import named_joints, of_wheels
from youbot_dynamics.recording.text_columns import Columns
from youbot_dynamics.recording.text_log import AXES, JOINT_ROLES
from youbot_dynamics.robot import UNNAMED, Robot, unnamed_robot

_OF_BASES = ("cmd_vel", "driver_cmd_vel", "wheel_commands")  # roles


def robot_of(logs: Sequence[Columns | None], robot: Robot, opened: Callable[[int], Opened]) -> Robot:
    """The robot of recordings: an unnamed one of which nothing is known, where no file names it, nor a joint does.

    Args:
        logs: columns of each recording, None for a bag.
        robot: as the user gave it.
        opened: opens the recording of a number. Bags are looked at until one is not that of an arm alone.

    Raises:
        RecordingError: bags of an arm without a single effort.
    """
    if robot.robot_id != NAMELESS or not logs:
        return robot
    texts = [log.roles for log in logs if log is not None]
    joints = tuple(dict.fromkeys(name for of in texts for role in JOINT_ROLES for name in of.get(role, ())))
    if {*joints} & {*robot.driver.wheel_joints, *robot.driver.arm_joints}:
        return robot
    for number in (k for k, log in enumerate(logs) if log is None):
        if (found := _arm_alone(opened, number, robot)) is None:
            return robot
        joints = tuple(dict.fromkeys((*joints, *found)))
    if not joints and None in logs:
        bag = opened(logs.index(None)).bag()
        got = f"joint states without efforts, of {listed(sorted(named_joints(bag, ())))}"
        expected = "efforts for the friction of an arm, or cmd_vel for the delay of a base"
        remedy = "of an arm, record its efforts, and give its URDF as --robot-file; of a base, record its commands: "
        remedy += "youbot identify takes another name with --topic cmd_vel=NAME"
        raise RecordingError(f"{bag.path}", got=got, expected=expected, remedy=remedy)
    moved = {name for of in texts for role in ("command", "measured", "pose") for name in of.get(role, ())}
    return unnamed_robot(UNNAMED[bool(joints)], joints, has_base=bool(moved & {*AXES}))


def _arm_alone(opened: Callable[[int], Opened], number: int, robot: Robot) -> tuple[str, ...] | None:
    """Joints with efforts of a bag of an arm alone that names neither its robot nor a joint of `robot`, else None."""
    try:
        recording = opened(number)
        bag, chosen = recording.bag(), recording.options.topics
        based = any(find_topic(bag, role, chosen) for role in _OF_BASES) or find_odometry(bag, chosen)
        if recording.robot_id or based:
            return None
        found = named_joints(bag, robot.driver.wheel_joints)
        if not found or of_wheels(found) or found & {*robot.driver.wheel_joints, *robot.driver.arm_joints}:
            return None
        topic = find_arm_states(bag, (), chosen)
        layouts = sorted(bag.joint_names(topic), key=lambda names: (-len(names), names))
        names = list(dict.fromkeys(name for layout in layouts for name in layout))
        measured = np.any(np.isfinite(bag.joint_states(topic, names).effort), axis=0)
    except YoubotDynamicsError:  # which the stages report
        return None
    return tuple(name for name, has in zip(names, measured, strict=True) if has)
