"""`youbot replay`: run the filters of the arm over a recorded log; write a table, a report and a bag of estimates."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from youbot_dynamics import __version__
from youbot_dynamics.commands._terminal import announce, print_rows, steps
from youbot_dynamics.errors import ParameterError, RecordingError
from youbot_dynamics.estimation.arm_settings import ArmSettings
from youbot_dynamics.estimation.replay import ArmLog, ArmReplay, MotorReadings, replay_arm
from youbot_dynamics.files import check_folder, lying_in, write_atomically, written_together
from youbot_dynamics.identification.reading import (
    Opened,
    Options,
    columns_of,
    efforts_of,
    excess_of_angles,
    find_arm_states,
    motor_readings,
    named_topics,
    open_recording,
    times_of,
)
from youbot_dynamics.messages.arm import ArmMessages, Message
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Value, check_names, settings_from_values, settings_table
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.report import JOINT_COLUMNS, Rows, joint_cells, replay_page
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import (
    PREFIX,
    ResultFiles,
    Robot,
    assumptions,
    load_robot,
    result_files,
    robot_from_values,
    robot_table,
    values_of,
)

_TOPIC_ROLES = ("arm_states", "motor_voltage", "motor_temperature")
LEFT_OUT = "messages left out while reading: stamp decreases or is missing, or a field has the wrong length"

_MANY = 0.05  # share of rejected messages that causes a warning
_BAG = "estimates"
_NODE = "arm_ekf"
# Parameters of the node that do not apply to a log: frames, and those that ROS gives to every node.
_ELSEWHERE = ("base_frame", "frame_prefix", "use_sim_time", "start_type_description_service")


@dataclass(frozen=True, eq=False)
class _OpenedLog:
    """A log as read."""

    arm: ArmLog
    origin: int  # time 0 of its messages [ns since 1970]; 0 if the log does not give it
    provenance: Mapping[str, str]
    warnings: tuple[str, ...]  # what could not be read


def open_log(
    path: Path, robot: Robot, columns: str, topics: Mapping[str, str], inverted: Sequence[str] = (), rate: float = 0.0
) -> _OpenedLog:
    """Read a bag, or a text log.

    Args:
        path: rosbag2 folder, .mcap, .db3, .bag, or a text file.
        robot: robot whose joints are read.
        columns: of a text log, such as ``time:ms,position.arm_joint_1:deg,effort.arm_joint_1``; "" for a bag, and to
            find them by the header.
        topics: role -> name, given by the user.
        inverted: joints whose efforts change sign.
        rate: lines a second [Hz] of a text log without times; 0 for one with them.

    Raises:
        RecordingError: the path does not exist, or there are no arm states, no efforts, or angles not in radians.
        ParameterError: the bag is of another robot, or the robot does not have a joint to invert.
    """
    joints = robot.driver.arm_joints
    for name in inverted:
        if name not in joints:
            raise ParameterError(f"--invert-effort {name}", expected=f"one of {', '.join(joints)}")
    log = columns_of(path, columns, rate, robot)
    if log is not None and log.told:
        announce(f"note: {log.told}")
    source = open_recording(path, 0, robot, Options(topics, columns, rate=rate))
    opened = _read(source.bag(), robot, topics) if log is None else _of_text(source, robot, topics, log.description)
    signs = np.where([name in inverted for name in joints], -1.0, 1.0)
    opened = dataclasses.replace(opened, arm=dataclasses.replace(opened.arm, effort=opened.arm.effort * signs))
    _check(path, opened.arm, robot)
    return opened


def _read(recording: Recording, robot: Robot, topics: Mapping[str, str]) -> _OpenedLog:
    joints = robot.driver.arm_joints
    states = recording.joint_states(find_arm_states(recording, joints, topics), joints)
    read = {role: motor_readings(recording, role, joints, topics) for role in _TOPIC_ROLES[1:]}
    motors = {role: MotorReadings(*one[1:]) for role, one in read.items() if one is not None}
    stamped = bool(np.all(np.isfinite(states.stamp)))
    arm = ArmLog(
        joints,
        times_of(states),
        states.received,
        states.position,
        states.velocity,
        efforts_of(states, recording.path, robot),
        motors.get("motor_voltage"),
        motors.get("motor_temperature"),
        {LEFT_OUT: states.rejected},
    )
    warnings = [recording.lost] if recording.lost else []
    if not stamped:
        warnings.append(f"messages of {states.topic} have no stamp: their receive times are used instead")
    if states.rejected > _MANY * (states.rejected + len(arm.stamp)):
        warnings.append(
            f"{states.rejected} of {states.rejected + len(arm.stamp)} messages of {states.topic} were left out because "
            "their stamps decrease or are missing: check whether the clock was set, or whether two nodes publish it"
        )
    provenance = {
        "log": str(recording.path),
        "SHA-256": recording.sha256,
        "states of the arm": states.topic,
        **{role.replace("_", " "): one[0] for role, one in read.items() if one is not None},
        "clock": "header stamps" if stamped else "receive times",
    }
    return _OpenedLog(arm, recording.origin, provenance, tuple(warnings))


def _of_text(source: Opened, robot: Robot, topics: Mapping[str, str], columns: str) -> _OpenedLog:
    """Read a text log with these columns, a position of each joint among them."""
    known, joints = source.log.joints.get("position", {}) if source.log else {}, robot.driver.arm_joints
    if missing := [name for name in joints if name not in known]:
        raise RecordingError(
            f"--columns of {source.path}",
            got=f"no position of {', '.join(missing)}",
            expected=f"position.JOINT for each of {', '.join(joints)}",
            remedy="name these columns; a joint at rest needs a column too",
        )
    opened = _read(source.bag(), robot, topics)
    source_facts = {name: opened.provenance[name] for name in ("log", "SHA-256")}
    # The topics of a text log are one second late, so that no stamp is 0; the estimates have the times of the log.
    return dataclasses.replace(
        opened, origin=opened.origin - 1_000_000_000, provenance={**source_facts, "columns": columns}
    )


def _check(path: Path, arm: ArmLog, robot: Robot) -> None:
    """Reject a log from which the filter cannot compute correct estimates."""
    if not np.isfinite(arm.effort).any():
        raise RecordingError(
            f"{path}",
            got="states of the arm without efforts",
            expected="efforts [N m] of its joints: without them friction and heat cannot be estimated",
            remedy="use a driver that reports effort; in a text log name effort.JOINT",
        )
    if not np.isfinite(arm.position).all(axis=1).any():
        raise RecordingError(
            f"{path}",
            got="no message with the positions of all joints",
            expected="positions [rad] that are numbers",
            remedy="check the driver and its encoders",
        )
    excess_of_angles(str(path), arm.position, robot)


def _write_estimates(folder: Path, replay: ArmReplay, robot: Robot, origin: int) -> None:
    """Write a rosbag2 folder with the topics, types and rates of node arm_ekf.

    The folder is new or empty; `origin` is time 0 of the log [ns since 1970].

    Raises:
        RecordingError: the folder is not empty or cannot be written.
        ResourceError: rosbags or mcap is not installed.
    """
    messages = sorted(
        _estimates(replay, ArmMessages(robot, replay.settings, "", "base_footprint", origin)), key=lambda row: row[0]
    )
    with BagWriter(folder, {"youbot_dynamics": __version__, "robot_id": robot.robot_id}) as bag:
        for ns, topic, type_name, cdr in messages:
            bag.add_topic(f"/{topic}", type_name)
            bag.write(f"/{topic}", cdr, ns)


def _estimates(replay: ArmReplay, messages: ArmMessages) -> Iterator[Message]:
    """Messages of a replay; a payload only where it is known, wheel loads where the arm's URDF has a base."""
    log, track, heat, support = replay.log, replay.track, replay.heat, replay.support
    for row in np.flatnonzero(track.taken & np.isfinite(track.position).all(axis=1)).tolist():
        estimates = track.position[row], track.speed[row], log.effort[row], track.friction_torque[row]
        yield from messages.states(float(log.stamp[row]), *estimates)
    temperatures = np.stack([heat.winding, heat.winding_deviation, heat.housing, heat.housing_deviation], axis=2)
    for stamp, rows in zip(heat.time.tolist(), temperatures.tolist(), strict=True):
        yield from messages.temperatures(stamp, rows)
    for stamp, torque in zip(heat.limit_time.tolist(), heat.torque, strict=True):
        yield messages.torques(stamp, torque)
    for row, stamp in enumerate(support.time.tolist()):
        if np.isfinite(support.normal_forces[row]).all():
            yield from messages.support(stamp, support.normal_forces[row], support.centre_of_mass[row].tolist())
        if not np.isnan(mass := float(support.payload[row])):
            yield from messages.payload(stamp, mass, support.payload_centre[row].tolist())


def replay_command(given: argparse.Namespace) -> int:
    """Run the command.

    Raises:
        YoubotDynamicsError: a log, option or folder cannot be used; nothing was written.
    """
    topics = named_topics(given.topic, _TOPIC_ROLES)
    if given.out is not None:
        present = lying_in(given.out, _BAG, "report.html")
        got, expected = f"a folder with {' and '.join(present)} in it", "a folder without an earlier result"
        remedy = "choose another --out, or move these away"
        refusal = RecordingError(f"--out {given.out}", got=got, expected=expected, remedy=remedy)
        check_folder(given.out, bool(present), refusal)
    given.result_file = tuple(given.result_file)
    robot, settings = read_node(given.result_file, given.params_file, robot_path(given.robot_file))
    with steps("youbot replay") as step:
        step("reading")
        opened = open_log(given.log, robot, given.columns, topics, given.invert_effort, given.rate)
        replay = replay_arm(opened.arm, robot, settings, step)
        if given.out is not None:
            step("drawing the report")
            provenance = {**opened.provenance, "youbot_dynamics": __version__, **_files(given)}
            page = replay_page(f"Replay of {given.log.name}", replay, robot, provenance, opened.warnings)
            step("writing the estimates")
            with written_together(given.out) as draft:
                _write_estimates(draft / _BAG, replay, robot, opened.origin)
                write_atomically(draft / "report.html", page)
    if given.json:
        sys.stdout.write(as_json(replay, opened))
    else:
        _print(replay, opened)
        if assumed := assumptions(given.robot_file, given.params_file, given.result_file):
            announce(f"note: {assumed}")
        if given.out is not None:
            announce(f"wrote {given.out / 'report.html'} and {given.out / _BAG}, a bag")
    return 0


def read_node(
    result_file: ResultFiles, params_file: Path | None, robot_file: Path | None = None
) -> tuple[Robot, ArmSettings]:
    """Return the robot and settings that node arm_ekf would have without a namespace.

    The parameter file overrides the result file, which overrides the robot file. Its
    sections `/**`, `/**/arm_ekf` and `/arm_ekf` apply.

    Raises:
        ParameterError: as `load_robot`; a parameter that the node does not have (the message names the nearest), or a
            value that it rejects.
    """
    robot = load_robot(result_file, params_file, robot_file)
    table = {parameter.name: parameter for parameter in (*robot_table(values_of(robot)), *settings_table(ArmSettings))}
    given: dict[str, Value] = {}
    for path in (robot_file, *result_files(result_file), params_file):
        if path is None or path.suffix.lower() == ".urdf":
            continue
        for name, value in read_parameters(path, _NODE).items():
            if name in _ELSEWHERE or name.startswith("qos_overrides."):
                continue
            try:
                check_names([name], list(table))
                given[name] = table[name].check(value)
            except ParameterError as refused:
                place = f"parameter file {path}, node {_NODE}: {refused.thing}"
                raise ParameterError(place, got=refused.got, expected=refused.expected, remedy=refused.remedy) from None
    # Its path is resolved: a relative one begins at the file that gives it.
    own = {name: v for name, v in given.items() if name.split(".")[0] == PREFIX and name != f"{PREFIX}.arm.urdf"}
    return robot_from_values({**values_of(robot), **own}), settings_from_values(ArmSettings, given)


def as_json(replay: ArmReplay, opened: _OpenedLog) -> str:
    """Summary, findings and counts as JSON; a number that is not finite becomes null."""

    def number(value: float | str) -> float | str | None:
        return value if isinstance(value, str) or math.isfinite(value) else None

    joints = [{key: number(v) for key, v in dataclasses.asdict(joint).items()} for joint in replay.summary]
    summary = {
        "joints": joints,
        "findings": [dataclasses.asdict(finding) for finding in replay.findings],
        "warnings": list(opened.warnings),
        "counts": dict(replay.counts),
        "provenance": dict(opened.provenance),
    }
    return json.dumps(summary, indent=2) + "\n"


def _files(given: argparse.Namespace) -> dict[str, str]:
    results = ", ".join(map(str, given.result_file)) or None
    named = {"parameter file": given.params_file, "result file": results}
    chosen = {name: str(path) for name, path in named.items() if path is not None}
    inverted = {"efforts inverted": ", ".join(given.invert_effort)} if given.invert_effort else {}
    return {**chosen, **inverted}


def _print(replay: ArmReplay, opened: _OpenedLog) -> None:
    rows = [(j.joint, *("-" if "nan" in cell else cell for cell in joint_cells(j))) for j in replay.summary]
    print_rows("arm state estimates", Rows(("joint", *JOINT_COLUMNS), rows, ""), numbers=len(JOINT_COLUMNS))
    for name, count in replay.counts.items():
        if count:
            announce(f"{name}: {count}")
    for warning in opened.warnings:
        announce(f"warning: {warning}")
    for finding in replay.findings:
        announce(f"{finding.level}: {finding}")
