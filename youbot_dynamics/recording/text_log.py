"""Text logs: columns of numbers that the user describes.

The reader detects the delimiter (``;``, tab, ``,``, ``|`` or blanks), decimal commas between ``;`` or tabs, and the
header lines: the data start at the first line where all described columns are numbers. Numbers and names may be in
double quotes. Empty lines are ignored. ``nan`` marks a value that was not measured; it is not allowed as a time. Empty
and infinite entries are errors. A time may be a date with a time of day (ISO 8601); a zone behind it is ignored.
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import read_bytes

LARGEST = 500_000_000  # [bytes] of a log

_TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_UNITS = {  # factor to SI
    "rad": 1.0,
    "deg": math.pi / 180.0,
    "turn": 2.0 * math.pi,
    "rad/s": 1.0,
    "deg/s": math.pi / 180.0,
    "rad/min": 1.0 / 60.0,
    "rpm": math.pi / 30.0,
    "m": 1.0,
    "mm": 1e-3,
    "m/s": 1.0,
    "mm/s": 1e-3,
    "A": 1.0,
    "V": 1.0,
    "mV": 1e-3,
    "Nm": 1.0,
    "mNm": 1e-3,
    "degC": 1.0,
    "1": 1.0,
}
_SCALED = re.compile(r"(?:(?P<times>[^*]+)\*)?(?P<unit>.+?)(?:/(?P<over>-?[\d.][\d.e+-]*))?")
JOINT_ROLES = ("position", "velocity", "effort", "voltage", "temperature")
_BASE_ROLES = ("command", "measured", "measured_position", "pose")
_ROLES = (*_BASE_ROLES, *JOINT_ROLES)
_COMMANDS = {"command_held": "held", "command_sampled": "sampled"}  # roles that also tell what a command is
_EXPECTED = f"time, ROLE.NAME with ROLE of {', '.join((*_ROLES, *_COMMANDS))}, or _ to skip a column"
# Delimiters, None for blanks, with the sign of decimals.
_FORMATS = ((";", "."), (";", ","), ("\t", "."), ("\t", ","), (",", "."), ("|", "."), (None, "."))
_DATE = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?)(Z|[+-]\d\d:?\d\d)?")
_HEADER_LINES = 1000
_LONGEST_LINE = 100_000  # characters
_LONGEST = 9e9  # [s] from the first to the last time and 0; more nanoseconds do not fit into 64 bits
_MOTIONS = (*_BASE_ROLES, "position")  # roles that tell a motion
_LONGEST_PERIOD = 1.5  # [s] between lines on a motion: a tracker may write one a second, and most drivers 10 to 500
_MOST_REPEATED = 0.5  # share of the lines that repeat the time before them above which it lacks digits
_FEWEST = 3  # lines on a motion, for its period


@dataclass(frozen=True)
class _Column:
    """A column to read: its position in the file, role, channel ("" for the time), factor to SI units, unit, header."""

    place: int
    role: str
    channel: str
    factor: float
    unit: str = ""  # as described
    header: str = ""  # its name in the file, "" if it is found by its position
    told: str = ""  # what the values of a command are, "held" until the next row, "sampled" or "" for unknown


@dataclass(frozen=True)
class _Layout:
    """Layout of a file: number of lines before the data, delimiter, decimals, encoding and the columns to read."""

    path: Path
    header_lines: int
    delimiter: str | None
    decimal: str
    encoding: str
    columns: tuple[_Column, ...]

    @property
    def time(self) -> int:
        """Index of the time among the columns."""
        return [column.role for column in self.columns].index("time")

    @property
    def dated(self) -> bool:
        """Whether the times are dates."""
        time = self.columns[self.time]
        return _is_date(_fields(next(self.lines())[1], self.delimiter, self.decimal)[time.place], time)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number (from 1) and text of each data line."""
        with self.path.open(encoding=self.encoding) as file:
            for number, line in enumerate(file, start=1):
                if number > self.header_lines and line.strip():
                    yield number, line[:_LONGEST_LINE]


def _parse_columns(description: str) -> tuple[tuple[_Column, ...], int]:
    """Parse a description (see `read_text_log`); return the columns to read and the number of all columns it names.

    Raises:
        RecordingError: an unknown name or unit, a column named twice, or no time.
    """
    columns: list[_Column] = []
    parts = [part.strip() for part in description.split(",")]
    for place, part in enumerate(parts):
        named, _, unit = part.partition(":")
        if named == "_":
            continue
        name, equals, header = (word.strip() for word in named.partition("="))
        role, _, channel = name.partition(".")
        told = _COMMANDS.get(role, "")
        role = "command" if told else role
        thing = f"column {place + 1} of the description {description!r}"
        if (role == "time") == bool(channel) or (role != "time" and role not in _ROLES):
            remedy = "give each column of the file one of these names, in file order, or write NAME=HEADER"
            raise RecordingError(thing, got=repr(name), expected=_EXPECTED, remedy=remedy)
        if bool(equals) != ("=" in parts[0]) or bool(equals) != bool(header):
            expected = "NAME=HEADER for each column or for none"
            raise RecordingError(thing, got=repr(part), expected=expected, remedy="name the header of every column")
        if role != "time" and any((column.role, column.channel) == (role, channel) for column in columns):
            remedy = "skip one of them with _"
            raise RecordingError(thing, got=f"{name} a second time", expected="each name once", remedy=remedy)
        columns.append(_Column(place, role, channel, _factor(name, role, unit), unit, header, told))
    timed = any(column.role == "time" for column in columns)
    if not timed or len(columns) < 2:
        raise RecordingError(
            f"the description {description!r}",
            got="only the time" if timed else "no column time",
            expected="time and at least one other column",
            remedy="add command.CHANNEL or measured.CHANNEL"
            if timed
            else "name the column that holds the time, as time:ms if it is in milliseconds",
        )
    return tuple(columns), len(parts)


def _factor(name: str, role: str, unit: str) -> float:
    """Factor to SI of UNIT, FACTOR*UNIT, UNIT/DIVISOR or both, such as turn/4096 for 4096 ticks a turn."""
    units = _TIME_UNITS if role == "time" else _UNITS
    if not unit:
        return 1.0
    if unit in units:
        return units[unit]
    match = _SCALED.fullmatch(unit)
    factor = math.nan
    if match is not None and match["unit"] in units:
        numbers = [match["times"] or "1", match["over"] or "1"]
        times, over = (float(number) if _is_number(number) else math.nan for number in numbers)
        factor = units[match["unit"]] * times / over if over else math.nan
    if not math.isfinite(factor) or factor == 0.0:
        raise RecordingError(
            f"column {name}",
            got=f"unit {unit!r}",
            expected=f"one of {', '.join(units)}",
            remedy="write name:unit with one of these, also scaled as -0.5*unit or unit/4096",
        )
    return factor


@dataclass(frozen=True, eq=False)
class TextLog:
    """A text log in SI units; arrays are read-only."""

    path: Path  # the file
    time: Vector  # (n,) [s], strictly increasing, as in the file
    command: Mapping[str, Vector]  # commanded speed of each channel, (n,) [rad/s, m/s]
    measured: Mapping[str, Vector]  # measured speed of each channel, (n,) [rad/s, m/s]
    measured_position: Mapping[str, Vector]  # measured position of each channel, (n,) [rad, m]
    joints: Mapping[str, Mapping[str, Vector]]  # role of JOINT_ROLES -> joint -> (n,) [rad, rad/s, N m, V, degC]
    pose: Mapping[str, Vector]  # of the base, x, y, yaw -> (n,) [m, m, rad]
    sha256: str  # hash of the file, in hexadecimal digits
    commands_are: Mapping[str, str]  # channel -> "held" or "sampled" where the description tells


def read_text_log(path: Path | str, columns: str) -> TextLog:
    """Read a text log.

    Args:
        path: the file.
        columns: ``name[:unit]`` for each column in file order, such as ``time:ms,_,command.x:rad/s,measured.x``. ``_``
            skips a column. Columns after the last name are not read. Several times, as of seconds and nanoseconds, add
            up. ``name=header[:unit]`` finds a column by its name
            in the header instead. A value without a unit is in SI; ``unit/4096`` and ``-0.5*unit`` scale it.

    Raises:
        RecordingError: not a regular file, too large, a description that does not fit the file, an entry that is not a
            number, a time that does not increase, times beyond 9e9 s, or lines on a motion more than 1.5 s apart
            without a unit, as milliseconds read as seconds are. The message names file and line or column.
    """
    path = Path(path)
    described, named = _parse_columns(columns)
    content = read_bytes(path, RecordingError, str(path), "a text log", LARGEST)
    layout = _find_data(path, _encoding(content), described, named)
    layout, values = _with_one_time(layout, _load(layout))
    _check_values(layout, values)
    _check_times(layout, values)
    roles: dict[str, dict[str, Vector]] = {role: {} for role in ("time", *_ROLES)}
    for column, value in zip(layout.columns, values.T, strict=True):
        roles[column.role][column.channel] = read_only(value * column.factor)
    views = {role: MappingProxyType(table) for role, table in roles.items()}
    return TextLog(
        path,
        roles["time"][""],
        views["command"],
        views["measured"],
        views["measured_position"],
        joints=MappingProxyType({role: views[role] for role in JOINT_ROLES if views[role]}),
        pose=views["pose"],
        sha256=hashlib.sha256(content).hexdigest(),
        commands_are=MappingProxyType({column.channel: column.told for column in layout.columns if column.told}),
    )


def _encoding(content: bytes) -> str:
    """Return the encoding of the file; a byte order mark would otherwise make the first number look like a header."""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if wide else "utf-8-sig"
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return "latin-1"
    return encoding


def _fields(line: str, delimiter: str | None, decimal: str = ".") -> list[str]:
    text = line.strip("\r\n").replace(decimal, ".")
    parts = text.split(delimiter)
    if '"' in text:  # a delimiter in quotes does not count; one blank of several is no field
        parts = next(csv.reader([text if delimiter else " ".join(parts)], delimiter=delimiter or " "), [])
    fields = [field.strip() for field in parts]
    return fields[:-1] if fields and not fields[-1] else fields


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def _is_value(field: str, column: _Column) -> bool:
    return _is_number(field) or _is_date(field, column)


def _is_date(field: str, column: _Column) -> bool:
    return column.role == "time" and column.factor == 1.0 and _DATE.fullmatch(field) is not None


def _seconds(field: str) -> float:
    """Time [s]: a number, or a date with a time of day, as seconds since 1970."""
    date = _DATE.fullmatch(field.strip())
    return float(field) if date is None else int(np.datetime64(date[1], "ns").astype(np.int64)) / 1e9


def _find_data(path: Path, encoding: str, columns: tuple[_Column, ...], named: int) -> _Layout:
    """Find the first data line, the delimiter and the sign of decimals."""
    by_header = bool(columns[0].header)
    placed: dict[str | None, tuple[_Column, ...]] = {}
    placed |= dict.fromkeys((delimiter for delimiter, _ in _FORMATS), () if by_header else columns)
    widest: tuple[int, str] = (0, "")
    heads: list[str] = []
    nearest = math.inf, ""  # entries that are not numbers in the line with the fewest, and which is the first
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), "")):
            if len(line) == _LONGEST_LINE:
                widest = max(widest, (1, f"a line of {_LONGEST_LINE} characters or more"))
            for delimiter, decimal in _FORMATS:
                fields = _fields(line, delimiter, decimal)
                if fields and all(map(_is_number, fields)):
                    widest = max(widest, (len(fields), f"{len(fields)} columns in line {number + 1}"))
                found = placed[delimiter]
                needed = max((column.place + 1 for column in found), default=0) if by_header else named
                if not needed or len(fields) < needed:
                    continue
                wrong = [column for column in found if not _is_value(fields[column.place], column)]
                if not wrong:
                    return _Layout(path, number, delimiter, decimal, encoding, found)
                said = f", {fields[wrong[0].place]!r} in column {wrong[0].place + 1} of line {number + 1}"
                nearest = min(nearest, (len(wrong), said), key=lambda one: one[0])
            if widest[0] or number >= _HEADER_LINES:
                break
            heads.append(line)
            if by_header:
                placed |= {delimiter: places for delimiter in placed if (places := _placed(columns, line, delimiter))}
    if by_header and not any(placed.values()):
        raise _no_header(path, heads, columns)
    names = "numbers below the header" if by_header else f"at least {named} columns, one for each name given"
    raise RecordingError(
        str(path),
        got=widest[1] or f"no line of numbers{nearest[1]}",
        expected=f"{names}; a time in seconds, or as 2026-11-28T14:05:00.25",
        remedy="give at most one name for each column of the file" if widest[0] else "check file and columns",
    )


def _no_header(path: Path, heads: Sequence[str], columns: tuple[_Column, ...]) -> RecordingError:
    """Error of a file without a line that has all names: the line with the most of them, and those that it lacks."""
    head = max(heads, key=lambda line: sum(column.header in line for column in columns), default="").strip()
    lacking = ", ".join(column.header for column in columns if column.header not in head)
    return RecordingError(
        str(path),
        got=f"header {head[:80]!r}{lacking and f' without {lacking}'}" if head else "no header",
        expected=f"a line with the names {', '.join(column.header for column in columns)}, and numbers below it",
        remedy="write the names as they are in the file",
    )


def _placed(columns: tuple[_Column, ...], head: str, delimiter: str | None) -> tuple[_Column, ...]:
    """Columns at the places of their names in a header line; empty if it lacks one."""
    names = _fields(head.lstrip("#% "), delimiter)
    if not all(column.header in names for column in columns):
        return ()
    twice = next((column.header for column in columns if names.count(column.header) > 1), "")
    if twice:
        remedy = "rename one of them in the file, or give --columns by position"
        raise RecordingError(f"header {head.strip()[:80]!r}", got=f"{twice!r} twice", expected="once", remedy=remedy)
    return tuple(replace(column, place=names.index(column.header)) for column in columns)


def _load(layout: _Layout) -> Vector:
    time, delimiter, decimal = layout.columns[layout.time], layout.delimiter, layout.decimal
    try:
        with layout.path.open(encoding=layout.encoding) as file:  # numpy would unpack a file named .gz
            values: Vector = np.loadtxt(
                file if decimal == "." else (line.replace(decimal, ".") for line in file),
                dtype=np.float64,
                delimiter=delimiter,
                converters={time.place: _seconds} if layout.dated else None,
                encoding=None,
                skiprows=layout.header_lines,
                usecols=[column.place for column in layout.columns],
                comments=None,
                quotechar='"',
                ndmin=2,
            )
    except ValueError as error:
        for number, line in layout.lines():
            fields = _fields(line, delimiter, decimal)
            for column in layout.columns:
                field = fields[column.place] if column.place < len(fields) else ""
                if not _is_value(field, column):
                    got = f"{field!r} in column {column.place + 1}"
                    raise _bad_entry(layout.path, number, line, got) from None
        raise RecordingError(
            str(layout.path), got=str(error), expected="numbers in columns", remedy="correct the file"
        ) from error
    return values


def _with_one_time(layout: _Layout, values: Vector) -> tuple[_Layout, Vector]:
    """The columns with one time, the sum of all, such as those of seconds and nanoseconds of a stamp."""
    first, *others = (k for k, column in enumerate(layout.columns) if column.role == "time")
    for k in others:
        values[:, first] += values[:, k] * layout.columns[k].factor / layout.columns[first].factor
    columns = tuple(column for k, column in enumerate(layout.columns) if k not in others)
    return replace(layout, columns=columns), np.delete(values, others, axis=1)


def _bad_entry(path: Path, number: int, line: str, got: str) -> RecordingError:
    return RecordingError(
        f"{path} line {number}",
        got=f"{got}: {line.strip()[:80]!r}",
        expected="finite numbers, or nan for a value that was not measured",
        remedy="correct or remove the line",
    )


def _check_values(layout: _Layout, values: Vector) -> None:
    """Refuse infinite values and times that are nan or do not increase, naming the line."""
    time = values[:, layout.time]
    bad = np.isinf(values).any(axis=1) | np.isnan(time)
    if bad.any():
        row = int(np.argmax(bad))
        number, line = next(islice(layout.lines(), row, None))
        wrong = int(np.argmax(np.isinf(values[row]))) if not math.isnan(time[row]) else layout.time
        what = "nan as time" if math.isnan(time[row]) else "an infinite value"
        raise _bad_entry(layout.path, number, line, f"{what} in column {layout.columns[wrong].place + 1}")
    stuck = np.flatnonzero(np.diff(time) <= 0.0)
    if stuck.size:
        row = int(stuck[0]) + 1
        number, _ = next(islice(layout.lines(), row, None))
        repeated = np.all(np.diff(time) >= 0.0) and len(stuck) > _MOST_REPEATED * len(time)
        rounded = "write the times with all their digits: most lines repeat that of the line before"
        raise RecordingError(
            f"{layout.path} line {number}",
            got=f"time {time[row]:.12g} after {time[row - 1]:.12g}",
            expected="times that increase from line to line",
            remedy=rounded if repeated else "correct the file, or name the column that holds the time",
        )


def _check_times(layout: _Layout, values: Vector) -> None:
    """Refuse times in another unit: too large for nanoseconds, or too far apart for a motion, if none was named."""
    time = layout.columns[layout.time]
    seconds = values[:, layout.time] * time.factor
    first, last = float(seconds[0]), float(seconds[-1])
    motion = [k for k, column in enumerate(layout.columns) if column.role in _MOTIONS]
    moments = seconds[np.isfinite(values[:, motion]).any(axis=1)]
    named = time.unit or layout.dated
    period = 0.0 if named or len(moments) < _FEWEST else float(np.median(np.diff(moments)))
    if max(0.0, last) - min(0.0, first) > _LONGEST:
        got, expected = "a time beyond 9e9 s", "seconds"
    elif period > _LONGEST_PERIOD:
        got, expected = f"a line every {period:.4g} s", f"seconds, and motion at least every {_LONGEST_PERIOD:g} s"
    else:
        return
    raise RecordingError(
        f"{layout.path} column time",
        got=f"{first:.9g} to {last:.9g} s, {got}",
        expected=expected,
        remedy="name its unit: time:ms, time:us, time:ns or time:s",
    )
