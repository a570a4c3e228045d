"""Columns of a text log, proposed from the names in its header."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path

from youbot_dynamics.errors import RecordingError, listed
from youbot_dynamics.recording._columns import AXES, Column, is_number, parse_columns
from youbot_dynamics.recording._lines import (
    FORMATS,
    HEADER_LINES,
    LONGEST_LINE,
    encoding_of,
    fields_of,
    is_date,
    is_value,
    unit_since_1970,
)
from youbot_dynamics.recording._names import (
    Meaning,
    beside,
    commands_of_messages,
    forward_axes,
    is_base,
    joint_in,
    meaning_of,
    numbered_alike,
    one_joint,
    unit_of,
)

SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".log")
_START = 1_000_000  # bytes that tell the encoding
_PART = re.compile("nano|nsec", re.IGNORECASE)
_FROM_ZERO = re.compile(r"(?<!\d)0+$")
_ANY_TIME = Column(0, "time", "", 1.0)
_FIRST = ", such as time,position.joint,effort.joint or time:ms,command.x,measured.x"
_FROM_HEADER, _FROM_ECHO = "as its header says", "as `ros2 topic echo --csv` writes a JointState"
_ECHOED = {1: ("position",), 3: ("position", "velocity", "effort")}  # roles by the numbers of each joint


@dataclass(frozen=True)
class Columns:
    """What the columns of a text log are."""

    description: str  # as `read_text_log` takes it
    rate: float = 0.0  # lines a second [Hz] of a log without times; 0 for one with times
    told: str = ""  # for the reader: role and unit of those that the header tells, or those behind the described ones

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """Role -> joints or channels that have it; RecordingError for a description that is none."""
        roles: dict[str, tuple[str, ...]] = {}
        for column in parse_columns(self.description, self.rate > 0.0)[0]:
            roles[column.role] = (*roles.get(column.role, ()), column.channel)
        return roles

    @property
    def as_efforts(self) -> str:
        """The description with efforts of K N m for each ampere in place of currents."""
        parts = self.description.split(",")
        for column in parse_columns(self.description, self.rate > 0.0)[0]:
            if column.role == "current":
                header = f"={column.header}" if column.header else ""
                over = f"/{1.0 / column.factor:g}" if column.factor != 1.0 else ""
                parts[column.place] = f"effort.{column.channel}{header}:K*Nm{over}"
        return ",".join(parts)


def propose_columns(path: Path, joints: Sequence[str] = (), rate: float = 0.0, known: Collection[str] = ()) -> Columns:
    """Columns of a text log by the names in its header.

    Args:
        path: the file.
        joints: names of the joints of the robot's arm, in their order; numbered joints of another name are these if
            there are as many. Empty for those of the file.
        rate: lines a second [Hz] of a log without a column with the time; 0 for one with it.
        known: names of all joints of the robot; where the file names one of them, its other joints are not read.

    Raises:
        RecordingError: no header, no time, nothing that the names tell, two columns of one meaning, or a motion or
            command that may be another; with what may be given as `--columns`.
    """
    names, first, source = _header(path)
    named = any(joint_in(name, known) for name in names)
    meanings = _own_joints(beside(_whole_poses(_meanings(names, known))), joints, known, named)
    meanings = _one_time(meanings, names, first)
    if rate > 0.0:
        meanings = [Meaning() if one.role == "time" else one for one in meanings]
    guesses = [name for name, one in zip(names, meanings, strict=True) if one.guess]
    sure = {(one.role, one.channel) for one in meanings}
    likely = [one if (one.guess, one.channel) in sure else replace(one, role=one.role or one.guess) for one in meanings]
    described = [_described(one) for one in likely]
    seen: dict[str, str] = {}
    twice: list[tuple[str, str, str]] = []
    for k, (name, one) in enumerate(zip(names, meanings, strict=True)):
        key = f"{one.role.replace('command_position', 'command')}.{one.channel}"
        if one.role and one.role != "time" and key in seen:
            twice.append((key, seen[key], name))
            described[k] = "_"
        seen.setdefault(key, name)
    columns = ",".join(described[: max((k + 1 for k, of in enumerate(described) if of != "_"), default=0)])
    unclear = "; ".join(f"{name!r} ({one.why})" for name, one in zip(names, meanings, strict=True) if one.why)
    if twice:
        (key, former, other), *_ = twice
        remedy = f"choose with --columns '{columns}', where _ skips a column"
        raise RecordingError(f"{path}", got=f"{former!r} and {other!r}, both {key}", expected="one", remedy=remedy)
    if not (rate > 0.0 or any(one.role == "time" for one in meanings)):
        remedy = "add --rate HZ, its lines a second, or name the time in --columns"
        raise RecordingError(f"{path}", got=f"no time among the columns {listed(names)}", remedy=remedy)
    if all(one.role in ("", "time") for one in meanings):
        got, expected = (
            f"columns {listed(names)}, whose names do not tell what they are",
            "names such as q1, joint1_torque",
        )
        remedy = f"give --columns in file order, with _ for those not to read{_FIRST}"
        raise RecordingError(f"{path}", got=got, expected=unclear or f"{expected} or cmd_vx", remedy=remedy)
    if guesses:
        remedy = f"choose with --columns '{columns}', where _ skips a column"
        raise RecordingError(f"{path}", got=f"columns of more than one meaning: {unclear}", remedy=remedy)
    unused = [name for name, one in zip(names, meanings, strict=True) if name and not (one.role or one.why)]
    used = [f"{name} = {of}" for name, of in zip(names, described, strict=True) if of not in ("_", name)]
    told = f"{path.name}: {', '.join(used) or 'columns'}, {source}, in SI units where none is named"
    times = [field for field, of in zip(first, described, strict=False) if of == "time" and is_number(field)]
    units = [unit for field in times if (unit := unit_since_1970(float(field))) not in ("", "s")]
    told += "".join(f", and the time since 1970 in {unit}" for unit in units)
    told += f"; unclear: {unclear}" if unclear else ""
    told += f"; not used: {listed(unused)}" if unused else ""
    otherwise = f"change --columns '{columns}'" if used else "give --columns"
    return Columns(columns, rate, f"{told}; to read it otherwise, {otherwise}")


def _meanings(names: Sequence[str], known: Collection[str]) -> list[Meaning]:
    """Meanings of the columns with some names, of which those of `known` joints come first."""
    own = [joint_in(name, known) for name in names]
    others = ["" if joint else name for name, joint in zip(names, own, strict=True)]
    base, axes, commands = is_base(others), forward_axes(others), commands_of_messages(others)
    meanings = [meaning_of(name, base, axis, joint) for name, axis, joint in zip(names, axes, own, strict=True)]
    sent = [name in commands and one.role == "measured" for name, one in zip(names, meanings, strict=True)]
    return [replace(one, role="command") if of else one for one, of in zip(meanings, sent, strict=True)]


def _whole_poses(meanings: Sequence[Meaning]) -> list[Meaning]:
    """The meanings without a pose that lacks an axis, such as one whose heading is a quaternion."""
    lacking = {*AXES} - {one.channel for one in meanings if one.role == "pose"}
    why = f"a pose only with {' and '.join(f'pose.{axis}' for axis in AXES if axis in lacking)}"
    return [Meaning(why=why) if lacking and one.role == "pose" else one for one in meanings]


def described_columns(path: Path, description: str, rate: float = 0.0) -> Columns:
    """Columns of a text log as they are described; those behind the last of them are told.

    Raises:
        RecordingError: a description that is none.
    """
    count, row = parse_columns(description, rate > 0.0)[1], [""]
    with suppress(RecordingError):  # which the reader of the file explains
        row = _first_row(path)[0]
    more = len(row) - (row[-1] == "") - count
    if "=" in description or more <= 0:
        return Columns(description, rate)
    return Columns(
        description,
        rate,
        f"{path.name}: the {more} columns behind the first {count}, which --columns describes, are not read",
    )


def _header(path: Path) -> tuple[list[str], list[str], str]:
    """Names of the columns of a file, its first entries, and what tells the names.

    Raises:
        RecordingError: no numbers, or no names above them.
    """
    row, delimiter, heads = _first_row(path)
    above = [fields_of(head.lstrip("#% "), delimiter) for head in heads]
    names = above[-1] if above else []
    if len(above) == 2 and any(names) and all(unit_of(f"[{unit}]") for unit in names if unit):
        names = [f"{name} [{unit}]" for name, unit in zip(*above, strict=False)]
    if len(names) != len(row) - (row[-1] == "" and len(names) < len(row)) or any(map(_is_entry, names)):
        if echoed := _echoed_names(row):
            return echoed, row, _FROM_ECHO
        remedy = f"give --columns in file order{_FIRST}"
        raise RecordingError(f"{path}", got="no header with a name of each column", remedy=remedy)
    return names, row, _FROM_HEADER


def _echoed_names(row: Sequence[str]) -> list[str]:
    """Names of columns that `ros2 topic echo --csv` writes of a JointState without a header; empty of another file.

    They are sec, nanosec, frame, the names of the joints, and one number or three of each joint.
    """
    joints = list(takewhile(lambda field: not _is_entry(field), row[3:]))
    each, rest = divmod(len(row) - 3 - len(joints), max(len(joints), 1))
    if not all(map(str.isdigit, row[:2])) or not all(joints) or not joints or rest or each not in _ECHOED:
        return []
    readings = [f"{role}.{name}" for role in _ECHOED[each] for name in joints]
    return ["sec", "nanosec", *[""] * (1 + len(joints)), *readings]


def _first_row(path: Path) -> tuple[list[str], str | None, list[str]]:
    """Entries of the first line of numbers, its delimiter, and up to two lines above it.

    Raises:
        RecordingError: no numbers.
    """
    try:
        with path.open("rb") as file:
            encoding = encoding_of(file.read(_START).rsplit(b"\n", 1)[0])
        with path.open(encoding=encoding, errors="replace") as file:
            lines = [
                line for line in islice(iter(lambda: file.readline(LONGEST_LINE), ""), HEADER_LINES) if line.strip()
            ]
    except OSError as problem:
        raise RecordingError(str(path), got=str(problem.strerror), expected="a text log that can be read") from None
    for k, line in enumerate(lines):
        rows = [fields_of(line, *form) for form in FORMATS]
        row = max(rows, key=lambda fields: sum(map(_is_entry, fields)))
        entries = sum(map(_is_entry, row))
        if entries > 1 and 2 * entries >= sum(map(bool, row)):
            return row, FORMATS[rows.index(row)][0], lines[max(0, k - 2) : k]
    remedy = "check the file, or give --columns"
    raise RecordingError(f"{path}", got="no line of numbers", expected="a text log with numbers", remedy=remedy)


def _is_entry(field: str) -> bool:
    return bool(field) and is_value(field, _ANY_TIME)


def _own_joints(
    meanings: Sequence[Meaning], joints: Sequence[str], known: Collection[str], named: bool
) -> list[Meaning]:
    """The meanings with the names of the robot's joints, and without other joints beside them.

    `named` tells whether the header itself has such a name; numbers alone become names too.
    """
    alike = numbered_alike(meanings, {*known})
    meanings = [replace(one, channel=alike.get(one.channel, one.channel)) for one in meanings]
    found = list(dict.fromkeys(one.channel for one in meanings if one.channel and one.channel not in AXES))
    names = one_joint(found)
    found = list(dict.fromkeys(names.get(name, name) for name in found))
    numbered = len(found) == len(joints) and len({re.sub(r"\d+", "", name) for name in found}) == 1
    # Joints of q[0], q[1], ... are not the ones of these numbers of a robot that counts from 1.
    from_zero = numbered and not named and any(_FROM_ZERO.search(name) for name in {*found} - {*known})
    if {*found} & {*known} and not from_zero:
        renamed = [replace(one, channel=names.get(one.channel, one.channel)) for one in meanings]
        return [one if one.channel in ("", *AXES, *known) else Meaning() for one in renamed]
    if numbered:
        own = dict(zip(sorted(found, key=lambda name: (len(name), name)), joints, strict=True))
        names = {**own, **{name: own[one] for name, one in names.items()}}
    return [replace(one, channel=names.get(one.channel, one.channel)) for one in meanings]


def _one_time(meanings: Sequence[Meaning], names: Sequence[str], first: Sequence[str]) -> list[Meaning]:
    """The meanings with the first time alone, or with both of seconds and nanoseconds, of a date and a time of day."""
    times = [k for k, one in enumerate(meanings) if one.role == "time"]
    parted = [k for k in times if meanings[k].unit == "ns" and _PART.search(names[k])] if len(times) == 2 else []
    # A whole clock in nanoseconds beside another one is no part of it.
    parted = parted if all(first[k].isdigit() and (k not in parted or len(first[k]) < 10) for k in times) else []
    dated = len(times) == 2 and all(is_date(first[k]) and ("-" in first[k]) != (":" in first[k]) for k in times)
    kept = times if len(parted) == 1 or dated else times[:1]
    return [one if k in kept or one.role != "time" else Meaning() for k, one in enumerate(meanings)]


def _described(one: Meaning) -> str:
    if not one.role:
        return "_"
    name = f"{one.role}.{one.channel}" if one.channel else one.role
    return f"{name}:{one.unit}" if one.unit else name
