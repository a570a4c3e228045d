"""Text logs of a robot: their columns and joints, and the robot of logs that name none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from youbot_dynamics.arrays import read_only
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.reading._whose import UNNAMED
from youbot_dynamics.recording.text_columns import is_text_log, propose_columns
from youbot_dynamics.recording.text_log import AXES, JOINT_ROLES, TextLog, described_columns, read_text_log
from youbot_dynamics.robot import Robot, unnamed_robot

_BAG_FILES = (".mcap", ".db3", ".bag")
_NAMELESS = "youbot"  # robot that is assumed where no file names one


@dataclass(frozen=True)
class Described:
    """What the columns of a text log are."""

    columns: str  # description of them
    rate: float  # lines a second [Hz] of a log without times; 0 for one with times
    told: str = ""  # one line on columns that were found by the header; "" for described ones

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """Role -> joints or channels that have it."""
        return described_columns(self.columns, self.rate > 0.0)


def described(path: Path, columns: str, rate: float, robot: Robot) -> Described | None:
    """Columns of a text log, as they are described or by the names in its header; None for a bag.

    Raises:
        RecordingError: names that do not tell enough, or that are ambiguous.
    """
    if columns:
        return Described(columns, rate) if path.is_file() and path.suffix not in _BAG_FILES else None
    if not is_text_log(path):
        return None
    joints = () if robot.robot_id == _NAMELESS else robot.driver.arm_joints
    proposal = propose_columns(path, joints, rate)
    return Described(proposal.columns, rate, proposal.told)


def robot_of(logs: Sequence[Described | None], robot: Robot) -> Robot:
    """The robot of recordings: an unnamed one of which nothing is known, where no file names it, nor a joint does.

    Args:
        logs: columns of each recording, None for a bag.
        robot: as the user gave it.
    """
    columns = [log for log in logs if log is not None]
    if robot.robot_id != _NAMELESS or not columns or len(columns) < len(logs):
        return robot
    roles = [log.roles for log in columns]
    joints = tuple(dict.fromkeys(name for of in roles for role in JOINT_ROLES for name in of.get(role, ())))
    moved = {name for of in roles for role in ("command", "measured", "pose") for name in of.get(role, ())}
    if {*joints} & {*robot.driver.wheel_joints, *robot.driver.arm_joints}:
        return robot
    return unnamed_robot(UNNAMED[bool(joints)], joints, has_base=bool(moved & {*AXES}))


def read_log(path: Path, columns: Described, robot: Robot) -> TextLog:
    """A text log whose joints are the robot's, with the efforts of its currents.

    Raises:
        RecordingError: it cannot be read, names another joint, or has currents of a motor of which nothing is known.
    """
    log = read_text_log(path, columns.columns, columns.rate)
    known = (*robot.driver.wheel_joints, *robot.driver.arm_joints)
    for role, joints in log.joints.items():
        for name in joints:
            if name not in known:
                raise RecordingError(
                    f"--columns of {path}",
                    got=f"{role}.{name}",
                    expected=f"{role}.JOINT with JOINT of {', '.join(known)}",
                    remedy="name the joints as the robot does; NAME=HEADER reads a column of another name; or name "
                    "another robot with --robot-file",
                )
    efforts = dict(log.joints.get("effort", {}))
    for name, current in log.joints.get("current", {}).items():
        if name not in efforts:
            efforts[name] = read_only(_torque_of_ampere(path, name, robot) * current)
    return replace(log, joints=MappingProxyType({**log.joints, "effort": efforts})) if efforts else log


def _torque_of_ampere(path: Path, joint: str, robot: Robot) -> float:
    """Torque at a joint for each ampere of its motor [N m/A].

    Raises:
        RecordingError: the robot file does not give its torque constant and gear ratio.
    """
    torque = math.nan
    if joint in robot.driver.arm_joints:
        motor = robot.arm.joints[robot.driver.arm_joints.index(joint)].motor
        torque = motor.torque_constant * motor.gear_ratio
    if not math.isfinite(torque):
        raise RecordingError(
            f"current of {joint} in {path}",
            got="no torque constant and gear ratio of its motor",
            expected="both in a robot file, or efforts",
            remedy=f"give the column as effort.{joint}:K*Nm, with the torque K at the joint for each ampere [N m/A]: "
            "torque constant times gear ratio; or leave it out with _",
        )
    return torque
