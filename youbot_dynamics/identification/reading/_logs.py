"""Text logs of a robot: their columns and joints."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from youbot_dynamics.arrays import Vector, read_only, usual_step
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.recording.text_columns import SUFFIXES, Columns, described_columns, propose_columns
from youbot_dynamics.recording.text_log import TextLog, read_text_log
from youbot_dynamics.robot import Robot

_BAG_FILES = (".mcap", ".db3", ".bag")
# Remedy where a text log has commands or motions alone.
MERGED = "or merge the file of the commands with that of the motion: docs/identification/text_logs.md"
_OF_MOTION = "position", "velocity"  # roles of joints
NAMELESS = "youbot"  # robot that is assumed where no file names one


def columns_of(path: Path, columns: str, rate: float, robot: Robot) -> Columns | None:
    """Columns of a text log, as they are described or by the names in its header; None for a bag.

    Raises:
        RecordingError: names that do not tell enough, or that are ambiguous.
    """
    if not path.is_file() or path.suffix in _BAG_FILES or not (columns or path.suffix.lower() in SUFFIXES):
        return None
    arm = robot.driver.arm_joints
    joints = () if robot.robot_id == NAMELESS else arm
    known = (*robot.driver.wheel_joints, *arm)
    return described_columns(path, columns, rate) if columns else propose_columns(path, joints, rate, known)


def _joints(robot: Robot) -> tuple[str, ...]:
    """Names of the joints that a robot has."""
    wheels = robot.driver.wheel_joints if robot.has_base else ()
    return (*wheels, *(robot.driver.arm_joints if robot.has_arm else ()))


def read_log(path: Path, columns: Columns, robot: Robot) -> TextLog:
    """A text log whose joints are the robot's, with the efforts of its currents.

    Raises:
        RecordingError: it cannot be read, names another joint, or has currents of a motor of which nothing is known.
    """
    log = read_text_log(path, columns.description, columns.rate)
    known = _joints(robot)
    for role, joints in log.joints.items():
        if other := next((name for name in joints if name not in known), ""):
            expected = f"{role}.JOINT with JOINT of {', '.join(known)}"
            remedy = (
                "name the joints as the robot does; NAME=HEADER reads a column of another name; or name another robot "
            )
            remedy += "with --robot-file"
            raise RecordingError(f"--columns of {path}", got=f"{role}.{other}", expected=expected, remedy=remedy)
    efforts = dict(log.joints.get("effort", {}))
    for name, current in log.joints.get("current", {}).items():
        if name not in efforts:
            remedy = "put torque constant times gear ratio, the torque at the joint for each ampere [N m/A], "
            remedy += f"in place of K (_ skips a column): --columns '{columns.as_efforts}'"
            efforts[name] = read_only(_torque_of_ampere(name, path, robot, remedy) * current)
    return replace(log, joints=MappingProxyType({**log.joints, "effort": efforts})) if efforts else log


def untold_rows(log: TextLog | None) -> dict[str, float]:
    """Time between the rows [s] of each channel of which a log does not tell when its commands were sent.

    A command that is logged in a row of the motion may have been sent with it, or up to a row earlier. One in a row of
    its own has the time at which it was sent.
    """
    if log is None:
        return {}
    tables = log.measured, log.measured_position, log.pose, *(log.joints.get(role, {}) for role in _OF_MOTION)
    motions = [column for table in tables for column in table.values()]
    moving = np.any(np.isfinite(motions), axis=0) if motions else np.zeros(len(log.time), dtype=bool)
    sent = {name: np.isfinite(column) for name, column in log.command.items() if name not in log.commands_are}
    return {name: usual_step(log.time[rows]) for name, rows in sent.items() if np.any(rows & moving) and rows.sum() > 1}


def efforts_of(states: JointSeries, path: Path, robot: Robot) -> Vector:
    """Efforts (n, k) of joint states; of a joint that has only currents, those of its currents.

    Raises:
        RecordingError: currents of a motor of which nothing is known.
    """
    if (current := states.interfaces.get("current")) is None:
        return states.effort
    effort = states.effort.copy()
    only = np.isfinite(current).any(axis=0) & ~np.isfinite(effort).any(axis=0)
    for k in np.flatnonzero(only):
        effort[:, k] = _torque_of_ampere(states.names[k], path, robot) * current[:, k]
    return effort


def _torque_of_ampere(name: str, path: Path, robot: Robot, remedy: str = "add them to its robot file") -> float:
    """Torque at a joint for each ampere [N m/A]."""
    motors = dict(zip(robot.driver.arm_joints, robot.arm.joints, strict=False))
    motor = motors[name].motor if name in motors else None
    torque = motor.torque_constant * motor.gear_ratio if motor else math.nan
    if name in robot.driver.wheel_joints:
        torque = robot.driver.wheel_torque_constant or math.nan
    if not math.isfinite(torque):
        got, expected = "no torque constant and gear ratio of its motor", "both in a robot file, or efforts"
        raise RecordingError(f"current of {name} in {path}", got=got, expected=expected, remedy=remedy)
    return torque
