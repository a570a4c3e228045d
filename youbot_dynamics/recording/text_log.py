"""Text logs: columns of numbers that the user describes.

The reader detects the delimiter (``;``, tab, ``,`` or blanks) and the header lines: the data start at the first line
where all described columns are numbers. Empty lines are ignored. ``nan`` marks a value that was not measured; it is
not allowed as a time. Empty and infinite entries are errors.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType

import numpy as np

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import read_bytes

LARGEST = 500_000_000  # [bytes] of a log

_TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_UNITS = {  # factor to SI
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
_ROLES = ("command", "measured", "measured_position")
_EXPECTED = "time, command.CHANNEL, measured.CHANNEL, measured_position.CHANNEL or _ to skip a column"
_DELIMITERS = (";", "\t", ",", None)  # None: blanks
_HEADER_LINES = 1000
_LONGEST_LINE = 100_000  # characters


@dataclass(frozen=True)
class _Column:
    """A column to read: its position in the file, role, channel ("" for the time) and factor to SI units."""

    place: int
    role: str
    channel: str
    factor: float


@dataclass(frozen=True)
class _Layout:
    """Layout of a file: number of lines before the data, delimiter, encoding and the columns to read."""

    path: Path
    header_lines: int
    delimiter: str | None
    encoding: str
    columns: tuple[_Column, ...]

    @property
    def time(self) -> int:
        """Index of the time among the columns."""
        return [column.role for column in self.columns].index("time")

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
        name, _, unit = part.partition(":")
        if name == "_":
            continue
        role, _, channel = name.partition(".")
        thing = f"column {place + 1} of the description {description!r}"
        if (role == "time") == bool(channel) or (role != "time" and role not in _ROLES):
            remedy = "give each column of the file one of these names, in file order"
            raise RecordingError(thing, got=repr(name), expected=_EXPECTED, remedy=remedy)
        if any((column.role, column.channel) == (role, channel) for column in columns):
            remedy = "skip one of them with _"
            raise RecordingError(thing, got=f"{name} a second time", expected="each name once", remedy=remedy)
        units = _TIME_UNITS if role == "time" else _UNITS
        if unit and unit not in units:
            expected, remedy = f"one of {', '.join(units)}", "write name:unit with one of these"
            raise RecordingError(f"column {name}", got=f"unit {unit!r}", expected=expected, remedy=remedy)
        columns.append(_Column(place, role, channel, units[unit] if unit else 1.0))
    if not any(column.role == "time" for column in columns):
        raise RecordingError(
            f"the description {description!r}",
            got="no column time",
            expected="time and at least one other column",
            remedy="name the column that holds the time, as time:ms if it is in milliseconds",
        )
    if len(columns) < 2:
        raise RecordingError(
            f"the description {description!r}",
            got="only the time",
            expected="at least one column of values",
            remedy="add command.CHANNEL or measured.CHANNEL",
        )
    return tuple(columns), len(parts)


@dataclass(frozen=True, eq=False)
class TextLog:
    """A text log in SI units; arrays are read-only."""

    path: Path  # the file
    time: Vector  # (n,) [s], strictly increasing, as in the file
    command: Mapping[str, Vector]  # commanded speed of each channel, (n,) [rad/s, m/s]
    measured: Mapping[str, Vector]  # measured speed of each channel, (n,) [rad/s, m/s]
    measured_position: Mapping[str, Vector]  # measured position of each channel, (n,) [rad, m]
    sha256: str  # hash of the file, in hexadecimal digits


def read_text_log(path: Path | str, columns: str, limit: int = LARGEST) -> TextLog:
    """Read a text log.

    Args:
        path: the file.
        columns: ``name[:unit]`` for each column in file order, such as ``time:ms,_,command.x:rad/s,measured.x``. ``_``
            skips a column. Columns after the last name are not read. A value without a unit is in SI.
        limit: largest size of the file [bytes], before `files.scaled`.

    Raises:
        RecordingError: not a regular file, too large, a description that does not fit the file, an entry that is not a
            number, or a time that does not increase. The message names file and line.
    """
    path = Path(path)
    described, named = _parse_columns(columns)
    content = read_bytes(path, RecordingError, str(path), "a text log", limit)
    layout = _find_data(path, _encoding(content), described, named)
    values = _load(layout)
    _check_values(layout, values)
    roles: dict[str, dict[str, Vector]] = {role: {} for role in ("time", *_ROLES)}
    for column, value in zip(described, values.T, strict=True):
        roles[column.role][column.channel] = read_only(value * column.factor)
    return TextLog(
        path,
        roles["time"][""],
        MappingProxyType(roles["command"]),
        MappingProxyType(roles["measured"]),
        MappingProxyType(roles["measured_position"]),
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _encoding(content: bytes) -> str:
    """Return the encoding of the file; a byte order mark would otherwise make the first number look like a header."""
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


def _find_data(path: Path, encoding: str, columns: tuple[_Column, ...], named: int) -> _Layout:
    """Find the first data line and the delimiter."""
    widest: tuple[int, str] = (0, "")
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), "")):
            if len(line) == _LONGEST_LINE:
                widest = max(widest, (1, f"a line of {_LONGEST_LINE} characters or more"))
            for delimiter in _DELIMITERS:
                fields = _fields(line, delimiter)
                if fields and all(map(_is_number, fields)):
                    widest = max(widest, (len(fields), f"{len(fields)} columns in line {number + 1}"))
                if len(fields) >= named and all(_is_number(fields[column.place]) for column in columns):
                    return _Layout(path, number, delimiter, encoding, columns)
            if widest[0] or number >= _HEADER_LINES:
                break
    raise RecordingError(
        str(path),
        got=widest[1] or "no line of numbers",
        expected=f"at least {named} columns, one for each name given",
        remedy="give at most one name for each column of the file" if widest[0] else "check file and columns",
    )


def _load(layout: _Layout) -> Vector:
    try:
        with layout.path.open(encoding=layout.encoding) as file:  # numpy would unpack a file named .gz
            values: Vector = np.loadtxt(
                file,
                dtype=np.float64,
                delimiter=layout.delimiter,
                skiprows=layout.header_lines,
                usecols=[column.place for column in layout.columns],
                comments=None,
                ndmin=2,
            )
    except ValueError as error:
        for number, line in layout.lines():
            fields = _fields(line, layout.delimiter)
            for column in layout.columns:
                field = fields[column.place] if column.place < len(fields) else ""
                if not _is_number(field):
                    got = f"{field!r} in column {column.place + 1}"
                    raise _bad_entry(layout.path, number, line, got) from None
        raise RecordingError(
            str(layout.path), got=str(error), expected="numbers in columns", remedy="correct the file"
        ) from error
    return values


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
        raise _bad_entry(layout.path, number, line, "nan as time" if math.isnan(time[row]) else "an infinite value")
    stuck = np.flatnonzero(np.diff(time) <= 0.0)
    if stuck.size:
        row = int(stuck[0]) + 1
        number, _ = next(islice(layout.lines(), row, None))
        raise RecordingError(
            f"{layout.path} line {number}",
            got=f"time {time[row]:.9g} after {time[row - 1]:.9g}",
            expected="times that increase from line to line",
            remedy="correct the file, or name the column that holds the time",
        )
