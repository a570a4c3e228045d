"""Text logs: numbers in columns, with the columns described by the user.

The delimiter (``;``, tab, ``,`` or blanks) and the header lines are found out: the data begin at the first
line whose described columns are all numbers. Empty lines are passed over. ``nan`` stands for a value that was
not measured; it is not allowed as a time, and an empty or infinite entry is refused.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import read_bytes

TIME_UNITS = ("s", "ms", "us")

SI_FACTORS: dict[str, float] = {
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "rad": 1.0,
    "deg": math.pi / 180.0,
    "rad/s": 1.0,
    "deg/s": math.pi / 180.0,
    "rpm": math.pi / 30.0,
    "m": 1.0,
    "mm": 1e-3,
    "m/s": 1.0,
    "mm/s": 1e-3,
    "A": 1.0,
    "V": 1.0,
    "Nm": 1.0,
    "1": 1.0,
}


def si_factor(unit: str, column: str, is_time: bool) -> float:
    """Return what one of a unit is in SI.

    Args:
        unit: such as ``rpm``.
        column: the column it belongs to, for the error.
        is_time: whether the column is the time: it takes units of time, and no other column does.

    Raises:
        RecordingError: no such unit, or one that cannot belong to the column.
    """
    allowed = [name for name in SI_FACTORS if (name in TIME_UNITS) == is_time]
    if unit not in allowed:
        raise RecordingError(
            f"column {column}",
            got=f"unit {unit!r}",
            expected=f"one of {', '.join(allowed)}",
            remedy="write name:unit with one of these",
        )
    return SI_FACTORS[unit]


ROLES = ("command", "measured", "measured_position")
_EXPECTED = "time, command.CHANNEL, measured.CHANNEL, measured_position.CHANNEL or _ to skip a column"


@dataclass(frozen=True)
class Column:
    """A column of a log that is read.

    Attributes:
        place: number of the column in the file, from 0.
        role: ``time``, ``command``, ``measured`` (a speed) or ``measured_position``.
        channel: such as ``x`` or ``arm_joint_1``; "" for the time.
        factor: one of its unit in SI.
    """

    place: int
    role: str
    channel: str
    factor: float


@dataclass(frozen=True)
class Columns:
    """All columns of a description.

    Attributes:
        used: those that are read, in file order.
        named: how many columns the description has, skipped ones included.
    """

    used: tuple[Column, ...]
    named: int

    @property
    def time(self) -> Column:
        """The column of the time."""
        return next(column for column in self.used if column.role == "time")


def parse_columns(description: str) -> Columns:
    """Read the description of the columns of a text log.

    Args:
        description: ``name[:unit]`` for each column in file order, separated by commas. Without a unit a
            value is in SI already.

    Raises:
        RecordingError: an unknown name or unit, a column named twice, or no time.
    """
    used: list[Column] = []
    parts = [part.strip() for part in description.split(",")]
    for place, part in enumerate(parts):
        name, _, unit = part.partition(":")
        if name == "_":
            continue
        role, _, channel = name.partition(".")
        if (role == "time") == bool(channel) or (role != "time" and role not in ROLES):
            raise RecordingError(
                f"column {place + 1} of the description {description!r}",
                got=repr(name),
                expected=_EXPECTED,
                remedy="give each column of the file one of these names, in file order",
            )
        if any((column.role, column.channel) == (role, channel) for column in used):
            raise RecordingError(
                f"column {place + 1} of the description {description!r}",
                got=f"{name} a second time",
                expected="each name once",
                remedy="skip one of them with _",
            )
        factor = si_factor(unit, name, role == "time") if unit else 1.0
        used.append(Column(place, role, channel, factor))
    if not any(column.role == "time" for column in used):
        raise RecordingError(
            f"the description {description!r}",
            got="no column time",
            expected="time and at least one other column",
            remedy="name the column that holds the time, as time:ms if it is in milliseconds",
        )
    if len(used) < 2:
        raise RecordingError(
            f"the description {description!r}",
            got="only the time",
            expected="at least one column of values",
            remedy="add command.CHANNEL or measured.CHANNEL",
        )
    return Columns(tuple(used), len(parts))


_DELIMITERS = (";", "\t", ",", None)
_HEADER_LINES = 1000
_LONGEST_LINE = 100_000  # characters
LARGEST = 500_000_000  # [bytes] of a log


@dataclass(frozen=True, eq=False)
class TextLog:
    """A text log in SI units; arrays are read-only.

    Attributes:
        path: the file.
        time: shape (n,) [s], strictly increasing, as in the file.
        command: commanded speed of each channel, shape (n,) [rad/s, m/s].
        measured: measured speed of each channel, shape (n,) [rad/s, m/s].
        measured_position: measured position of each channel, shape (n,) [rad, m].
        sha256: hash of the file, in hexadecimal digits.
    """

    path: Path
    time: Vector
    command: Mapping[str, Vector]
    measured: Mapping[str, Vector]
    measured_position: Mapping[str, Vector]
    sha256: str


@dataclass(frozen=True)
class _Format:
    """How a file is written: lines before the data, delimiter (None: blanks), encoding."""

    header_lines: int
    delimiter: str | None
    encoding: str


def read_text_log(path: Path | str, columns: str, limit: int = LARGEST) -> TextLog:
    """Read a text log.

    Args:
        path: the file.
        columns: names in file order such as ``time:ms,_,command.x:rad/s,measured.x``; ``_`` skips a column,
            what follows the last name is not read. See `parse_columns`.
        limit: most bytes the file may have, before `files.scaled`.

    Raises:
        RecordingError: no regular file, or one beyond the limit; a description that does not fit the file, an entry
            that is not a number, or a time that does not increase; with file and line.
    """
    path = Path(path)
    described = parse_columns(columns)
    content = read_bytes(path, RecordingError, str(path), "a text log", limit)
    encoding = _encoding(content)
    layout = _find_data(path, encoding, described)
    values = _load(path, layout, described)
    _check_values(path, layout, described, values)
    time = described.used.index(described.time)
    roles: dict[str, dict[str, Vector]] = {role: {} for role in ROLES}
    for place, column in enumerate(described.used):
        values[:, place] *= column.factor
    for place, column in enumerate(described.used):
        if place != time:
            roles[column.role][column.channel] = _read_only(values[:, place])
    return TextLog(
        path,
        _read_only(values[:, time]),
        MappingProxyType(roles["command"]),
        MappingProxyType(roles["measured"]),
        MappingProxyType(roles["measured_position"]),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _read_only(column: Vector) -> Vector:
    copy = column.copy()
    copy.setflags(write=False)
    return copy


def _encoding(content: bytes) -> str:
    """Return an encoding that takes the file: a byte order mark would make the first number a header."""
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8-sig"


def _fields(line: str, delimiter: str | None) -> list[str]:
    fields = [field.strip() for field in line.strip("\r\n").split(delimiter)]
    return fields[:-1] if fields and not fields[-1] else fields


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field


def _find_data(path: Path, encoding: str, columns: Columns) -> _Format:
    """Return where the data begin and how they are separated."""
    widest: tuple[int, str] = (0, "")
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), "")):
            if len(line) == _LONGEST_LINE:
                widest = max(widest, (1, f"a line of {_LONGEST_LINE} characters or more"))
            for delimiter in _DELIMITERS:
                fields = _fields(line, delimiter)
                if fields and all(map(_is_number, fields)):
                    widest = max(widest, (len(fields), f"{len(fields)} columns in line {number + 1}"))
                if len(fields) >= columns.named and all(_is_number(fields[c.place]) for c in columns.used):
                    return _Format(number, delimiter, encoding)
            if widest[0] or number >= _HEADER_LINES:
                break
    raise RecordingError(
        str(path),
        got=widest[1] or "no line of numbers",
        expected=f"at least {columns.named} columns, as many as names are given",
        remedy="give one name for each column of the file, or fewer" if widest[0] else "check file and columns",
    )


def _load(path: Path, layout: _Format, columns: Columns) -> Vector:
    try:
        with path.open(encoding=layout.encoding) as file:  # opened here: numpy would unpack what is named .gz
            values: Vector = np.loadtxt(
                file,
                dtype=np.float64,
                delimiter=layout.delimiter,
                skiprows=layout.header_lines,
                usecols=[column.place for column in columns.used],
                comments=None,
                ndmin=2,
            )
    except ValueError as error:
        for number, line in _data_lines(path, layout):
            fields = _fields(line, layout.delimiter)
            for column in columns.used:
                field = fields[column.place] if column.place < len(fields) else ""
                if not _is_number(field):
                    raise _bad_entry(path, number, line, f"{field!r} in column {column.place + 1}") from None
        raise RecordingError(
            str(path), got=str(error), expected="numbers in columns", remedy="correct the file"
        ) from error
    return values


def _data_lines(path: Path, layout: _Format) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and text of each line of data."""
    with path.open(encoding=layout.encoding) as file:
        for number, line in enumerate(file, start=1):
            if number > layout.header_lines and line.strip():
                yield number, line[:_LONGEST_LINE]


def _bad_entry(path: Path, number: int, line: str, got: str) -> RecordingError:
    return RecordingError(
        f"{path} line {number}",
        got=f"{got}: {line.strip()[:80]!r}",
        expected="finite numbers, or nan for a value that was not measured",
        remedy="correct or remove the line",
    )


def _check_values(path: Path, layout: _Format, columns: Columns, values: Vector) -> None:
    """Refuse infinite values and times that are nan or do not increase, naming the line."""
    time = values[:, columns.used.index(columns.time)]
    bad = np.isinf(values).any(axis=1) | np.isnan(time)
    if bad.any():
        row = int(np.argmax(bad))
        number, line = _line_of(path, layout, row)
        raise _bad_entry(path, number, line, "nan as time" if math.isnan(time[row]) else "an infinite value")
    stuck = np.flatnonzero(np.diff(time) <= 0.0)
    if stuck.size:
        row = int(stuck[0]) + 1
        number, _ = _line_of(path, layout, row)
        raise RecordingError(
            f"{path} line {number}",
            got=f"time {time[row]:.9g} after {time[row - 1]:.9g}",
            expected="times that increase from line to line",
            remedy="correct the file, or name the column that holds the time",
        )


def _line_of(path: Path, layout: _Format, row: int) -> tuple[int, str]:
    return next(line for place, line in enumerate(_data_lines(path, layout)) if place == row)
