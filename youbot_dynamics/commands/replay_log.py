"""Reads what `youbot replay` filters: the arm's messages of a bag, or the columns of a text log."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import ParameterError, RecordingError
from youbot_dynamics.estimation.arm_log import ArmLog, MotorReadings
from youbot_dynamics.identification.arm.arm_signals import joint_limits, times_of
from youbot_dynamics.identification.reading.topics import find_arm_states, find_topic
from youbot_dynamics.identification.reading.units import angles_beyond
from youbot_dynamics.recording.bag import Recording, open_bag
from youbot_dynamics.recording.text_log import TextLog, read_text_log
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

TOPIC_ROLES = ("arm_states", "motor_voltage", "motor_temperature")
COLUMN_ROLES = ("position", "velocity", "effort", "voltage", "temperature")
LEFT_OUT = "messages left out while reading: a stamp that goes back or is missing, or a field of the wrong length"

_BAG_FILES = (".mcap", ".db3", ".bag")
_NO_RADIANS = 6.5  # [rad] beyond a limit: more than a turn, which no zero is set wrong by
_MANY = 0.05  # share of the messages


@dataclass(frozen=True, eq=False)
class OpenedLog:
    """A log that was read.

    Args:
        arm: its messages.
        origin: time 0 of them [ns since 1970]; 0 where the log does not say.
        provenance: where they come from.
        warnings: what could not be read.
    """

    arm: ArmLog
    origin: int
    provenance: Mapping[str, str]
    warnings: tuple[str, ...]


def open_log(
    path: Path, robot: Robot, columns: str, topics: Mapping[str, str], inverted: Sequence[str] = ()
) -> OpenedLog:
    """Read a bag, or a text log where its columns are described.

    Args:
        path: rosbag2 folder, .mcap, .db3, .bag, or a text file with `columns`.
        robot: whose joints are looked for.
        columns: of a text log, such as ``time:ms,position.arm_joint_1:deg,effort.arm_joint_1``; "" for a bag.
        topics: role of TOPIC_ROLES -> name, where the user overrides.
        inverted: joints whose efforts are turned round.

    Raises:
        RecordingError: nothing there, no states of the arm, no efforts, or angles that cannot be radians.
        ParameterError: a bag of another robot, or a joint to invert that the robot has not.
    """
    joints = robot.driver.arm_joints
    for name in inverted:
        if name not in joints:
            raise ParameterError(f"--invert-effort {name}", expected=f"one of {', '.join(joints)}")
    if columns and path.is_file() and path.suffix not in _BAG_FILES:
        opened = _of_text(path, joints, columns)
    else:
        opened = _of_bag(open_bag(path), robot, topics)
    signs = np.where([name in inverted for name in joints], -1.0, 1.0)
    opened = dataclasses.replace(opened, arm=dataclasses.replace(opened.arm, effort=opened.arm.effort * signs))
    _check(path, opened.arm, robot)
    return opened


def _of_bag(recording: Recording, robot: Robot, topics: Mapping[str, str]) -> OpenedLog:
    own = recording.metadata.get("robot_id", "")
    if own and own != robot.robot_id:
        raise ParameterError(
            f"recording {recording.path}",
            got=f"robot '{own}'",
            expected=f"robot '{robot.robot_id}'",
            remedy="replay it with the parameter file of its own robot: --params-file",
        )
    joints = robot.driver.arm_joints
    states = recording.joint_states(find_arm_states(recording, joints, topics), joints)
    names = {role: find_topic(recording, role, topics) for role in TOPIC_ROLES[1:]}
    motors = {role: _motor_readings(recording, name, joints) for role, name in names.items() if name is not None}
    stamped = bool(np.all(np.isfinite(states.stamp)))
    arm = ArmLog(
        joints,
        times_of(states),
        states.received,
        states.position,
        states.velocity,
        states.effort,
        motors.get("motor_voltage"),
        motors.get("motor_temperature"),
        {LEFT_OUT: states.rejected},
    )
    warnings = [recording.lost] if recording.lost else []
    if not stamped:
        warnings.append(f"messages of {states.topic} have no stamp: the times at which they were received are used")
    if states.rejected > _MANY * (states.rejected + len(arm.stamp)):
        warnings.append(
            f"{states.rejected} of {states.rejected + len(arm.stamp)} messages of {states.topic} were left out, for "
            "their stamps go back or are missing: look for a clock that was set, or for two publishers"
        )
    provenance = {
        "log": str(recording.path),
        "SHA-256": recording.sha256,
        "states of the arm": states.topic,
        **{role.replace("_", " "): name for role, name in names.items() if name is not None},
        "clock": "header stamps" if stamped else "receive times",
    }
    return OpenedLog(arm, recording.origin, provenance, tuple(warnings))


def _motor_readings(recording: Recording, topic: str, joints: tuple[str, ...]) -> MotorReadings:
    states = recording.joint_states(topic, joints)
    return MotorReadings(times_of(states), states.effort)


def _of_text(path: Path, joints: tuple[str, ...], columns: str) -> OpenedLog:
    log = read_text_log(path, _as_measured(columns, joints))
    tables = {role: _table(log, role, joints) for role in COLUMN_ROLES}
    if not np.isfinite(tables["position"]).any(axis=0).all():
        missing = [name for name in joints if f"position.{name}" not in log.measured]
        raise RecordingError(
            f"--columns of {path}",
            got=f"no position of {', '.join(missing)}" if missing else "positions that are all nan",
            expected=f"position.JOINT for each of {', '.join(joints)}",
            remedy="name these columns; a joint that rests needs a column too",
        )
    motors = {
        role: MotorReadings(log.time, tables[role]) if np.isfinite(tables[role]).any() else None
        for role in COLUMN_ROLES[3:]
    }
    arm = ArmLog(
        joints,
        log.time,
        log.time,
        tables["position"],
        tables["velocity"],
        tables["effort"],
        motors["voltage"],
        motors["temperature"],
    )
    # Stamps of messages cannot be before 1970: a log that begins at negative times is moved by whole seconds.
    origin = max(0, -int(np.floor(log.time[0]))) * 1_000_000_000
    return OpenedLog(arm, origin, {"log": str(path), "SHA-256": log.sha256, "columns": columns}, ())


def _as_measured(columns: str, joints: tuple[str, ...]) -> str:
    """The description with each ROLE.JOINT as a measured channel of that name, which is how text logs are read."""
    parts = []
    for place, part in enumerate(columns.split(",")):
        name, colon, unit = part.strip().partition(":")
        if name in ("time", "_"):
            parts.append(part.strip())
            continue
        role, _, joint = name.partition(".")
        if role not in COLUMN_ROLES or joint not in joints:
            raise RecordingError(
                f"column {place + 1} of --columns",
                got=repr(name),
                expected=f"time, _ or ROLE.JOINT, ROLE of {', '.join(COLUMN_ROLES)}, JOINT of {', '.join(joints)}",
                remedy="give each column of the file one of these names, in file order; _ skips one",
            )
        parts.append(f"measured.{name}{colon}{unit}")
    return ",".join(parts)


def _table(log: TextLog, role: str, joints: tuple[str, ...]) -> Vector:
    missing = np.full(len(log.time), np.nan)
    return np.column_stack([log.measured.get(f"{role}.{name}", missing) for name in joints])


def _check(path: Path, arm: ArmLog, robot: Robot) -> None:
    """Refuse a log of which the filter could make nothing that is right."""
    if not np.isfinite(arm.effort).any():
        raise RecordingError(
            f"{path}",
            got="states of the arm without efforts",
            expected="efforts [N m] of its joints: without them friction and heat cannot be told",
            remedy="record a driver that reports effort, as the youBot's does; in a text log name effort.JOINT columns",
        )
    if not np.isfinite(arm.position).all(axis=1).any():
        raise RecordingError(
            f"{path}",
            got="not one message with the positions of all joints",
            expected="positions [rad] that are numbers",
            remedy="check the driver and its encoders",
        )
    beyond = angles_beyond(arm.position, *joint_limits(robot))
    if beyond > _NO_RADIANS:
        raise RecordingError(
            f"{path}",
            got=f"angles up to {beyond:.4g} beyond the limits of their joints: they look like degrees",
            expected="angles [rad] counted as urdf/youbot.urdf does",
            remedy="record the driver's own states; in a text log write position.JOINT:deg",
        )
