"""Text logs: columns of numbers that the user describes.

The reader detects the delimiter (``;``, tab, ``,``, ``|`` or blanks), decimal commas between ``;`` or tabs, and the
header lines: the data start at the first line where all described columns are numbers. Numbers and names may be in
double quotes. Empty lines are ignored, and so are those that repeat the line before them in all described columns. An
empty entry or ``nan`` is a value that was not measured, but no time. Infinite entries are errors. A time may be a date
with a time of day (ISO 8601), also in two columns; a zone behind it is ignored. A time since 1970 tells its unit.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Flags, Vector, read_only
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.files import read_bytes
from youbot_dynamics.recording._columns import (
    AXES,
    BASE_ROLES,
    JOINT_ROLES,
    ROLES,
    UNITS,
    Column,
    check_quantity,
    is_number,
    parse_columns,
    units_of,
)
from youbot_dynamics.recording._lines import (
    FORMATS,
    HEADER_LINES,
    LONGEST_LINE,
    encoding_of,
    fields_of,
    is_date,
    is_value,
    seconds_of,
    unit_since_1970,
    value_of,
)
from youbot_dynamics.recording._names import unit_of
from youbot_dynamics.recording._straight_lines import held_between_lines

__all__ = ["AXES", "JOINT_ROLES", "LARGEST", "TextLog", "read_text_log"]

LARGEST = 500_000_000  # [bytes] of a log

_LONGEST = 9e9  # [s] from the first to the last time and 0; more nanoseconds do not fit into 64 bits
_MOTIONS = (*BASE_ROLES, "position")  # roles that tell a motion
_HEAT = "temperature", "housing"  # roles of slow logs
_LONGEST_PERIOD = 1.5  # [s] between lines on a motion: a tracker may write one a second, and most drivers 10 to 500
_LONGEST_WHOLE, _FEWEST_WHOLE = 0.9, 20  # [s] the same of that many whole numbers: they may be milliseconds at 1 kHz
_LONGEST_GUESSED = 0.1  # [s] the same where the times told their unit: those of 10 kHz in the next smaller one
_MANY_REPEATED = 0.05  # share of the lines that repeat the time before them above which it lacks digits
# Largest values without a unit of a motor that a joint may have, and the units to choose from.
_LARGEST_WITHOUT_UNIT = {"current": (100.0, "A", "mA"), "voltage": (1000.0, "V", "mV")}
_FEWEST = 3  # lines on a motion, for its period


@dataclass(frozen=True)
class _Layout:
    """Layout of a file: number of lines before the data, delimiter, decimals, encoding and the columns to read."""

    path: Path
    header_lines: int
    delimiter: str | None
    decimal: str
    encoding: str
    columns: tuple[Column, ...]
    names: tuple[str, ...] = ()  # of all columns, in the header; empty without one

    @property
    def time(self) -> int:
        """Index of the time among the columns."""
        return [column.role for column in self.columns].index("time")

    @property
    def dated(self) -> set[int]:
        """Places of the times that are dates."""
        first = fields_of(next(self.lines())[1], self.delimiter, self.decimal)
        return {one.place for one in self.columns if one.role == "time" and is_date(first[one.place])}

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number (from 1) and text of each data line."""
        with self.path.open(encoding=self.encoding) as file:
            for number, line in enumerate(file, start=1):
                if number > self.header_lines and line.strip():
                    yield number, line[:LONGEST_LINE]


@dataclass(frozen=True, eq=False)
class TextLog:
    """A text log in SI units; arrays are read-only."""

    path: Path  # the file
    time: Vector  # (n,) [s], strictly increasing, as in the file
    command: Mapping[str, Vector]  # commanded speed of each channel, (n,) [rad/s, m/s]
    measured: Mapping[str, Vector]  # measured speed of each channel, (n,) [rad/s, m/s]
    measured_position: Mapping[str, Vector]  # measured position of each channel, (n,) [rad, m]
    joints: Mapping[str, Mapping[str, Vector]]  # role of JOINT_ROLES -> joint -> (n,) [rad, rad/s, N m, A, V, degC]
    pose: Mapping[str, Vector]  # of the base, x, y, yaw -> (n,) [m, m, rad]
    sha256: str  # hash of the file, in hexadecimal digits
    commands_are: Mapping[str, str]  # channel -> "held" or "sampled" where the description or the commands tell
    joined: float  # time between commands [s] that the file joined by straight lines; NaN if it did not

    def shows(self, wheels: Collection[str]) -> bool:
        """Whether it has the angle of one of some wheels, or the speeds of all."""
        angles, speeds = (
            {name for name, column in self.joints.get(role, {}).items() if np.any(np.isfinite(column))}
            for role in ("position", "velocity")
        )
        return bool(angles & {*wheels}) or (bool(wheels) and {*wheels} <= speeds)


def read_text_log(path: Path | str, columns: str, rate: float = 0.0) -> TextLog:
    """Read a text log.

    Args:
        path: the file.
        columns: ``name[:unit]`` for each column in file order, such as ``time:ms,_,command.x:rad/s,measured.x``. ``_``
            skips a column. Columns after the last name are not read. Several times, as of seconds and nanoseconds, add
            up. ``name=header[:unit]`` finds a column by its name in the header instead. A value without a unit is in
            SI, but a time since 1970 tells its unit; ``unit/4096`` and ``-0.5*unit`` scale it.
            A commanded position becomes a commanded speed. Commands that the file joins by straight lines, as after
            resampling, become those that were held between the corners.
        rate: lines a second [Hz] of a log without a column with the time; 0 for one with it.

    Raises:
        RecordingError: not a regular file, too large, a description that does not fit the file or the units in its
            header, an entry that is not a number, a time that does not increase, times beyond 9e9 s, or lines on a
            motion more than 1.5 s apart without a unit, or .9 s and whole, as milliseconds read as seconds are. The
            message names file and line or column.
    """
    path = Path(path)
    if not 0.0 <= rate < math.inf:
        raise RecordingError(f"--rate {rate:g}", got="no rate", expected="lines a second [Hz], above 0")
    described, named = parse_columns(columns, timed=rate > 0.0)
    content = read_bytes(path, RecordingError, str(path), "a text log", LARGEST)
    layout = _find_data(path, encoding_of(content), described, named)
    _check_header(layout)
    layout, values = _with_one_time(layout, _load(layout), rate)
    again = _repeating(values)
    _check_values(layout, values, again)
    values = values[~again]
    layout = _since_1970(layout, float(values[0, layout.time]))
    _check_times(layout, values)
    _check_sizes(layout, values)
    roles: dict[str, dict[str, Vector]] = {role: {} for role in ("time", *ROLES)}
    for column, value in zip(layout.columns, values.T, strict=True):
        roles[column.role][column.channel] = read_only(value * column.factor)
    told = {column.channel: column.told for column in layout.columns if column.told}
    untold = {channel: column for channel, column in roles["command"].items() if channel not in told}
    sent, joined = held_between_lines(roles["time"][""], untold)
    if not math.isnan(joined):
        roles["command"] |= {channel: read_only(column) for channel, column in sent.items()}
        told |= dict.fromkeys(sent, "held")
    for channel, position in roles["command_position"].items():
        roles["command"][channel] = read_only(_commanded_speed(roles["time"][""], position))
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
        commands_are=MappingProxyType(told),
        joined=joined,
    )


def _commanded_speed(time: Vector, position: Vector) -> Vector:
    """Speeds (n,) that are held from row to row and lead to positions (n,) that were held so, NaN where there is none.

    From the middle of one step to that of the next: the path of a held position passes there at the time of its row.
    """
    rows = np.flatnonzero(np.isfinite(position))
    speed = np.full(len(time), np.nan)
    if len(rows) > 1:
        steps = np.diff(position[rows])
        between = 0.5 * (np.append(steps, 0.0) + np.insert(steps, 0, 0.0))
        periods = np.diff(time[rows])
        speed[rows] = between / np.append(periods, periods[-1])
    return speed


def _find_data(path: Path, encoding: str, columns: tuple[Column, ...], named: int) -> _Layout:
    """Find the first data line, the delimiter and the sign of decimals."""
    by_header = bool(columns[0].header)
    placed: dict[str | None, tuple[Column, ...]] = {}
    placed |= dict.fromkeys((delimiter for delimiter, _ in FORMATS), () if by_header else columns)
    widest: tuple[int, str] = (0, "")
    heads: list[str] = []
    nearest = math.inf, ""  # entries that are not numbers in the line with the fewest, and which is the first
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), "")):
            if len(line) == LONGEST_LINE:
                widest = max(widest, (1, f"a line of {LONGEST_LINE} characters or more"))
            for delimiter, decimal in FORMATS:
                fields = fields_of(line, delimiter, decimal)
                count = len(fields) - (fields[-1:] == [""])  # a delimiter may end the line
                if count and all(map(is_number, fields[:count])):
                    widest = max(widest, (count, f"{count} columns in line {number + 1}"))
                found = placed[delimiter]
                needed = max((column.place + 1 for column in found), default=0) if by_header else named
                if not needed or len(fields) < needed:
                    continue
                wrong = [column for column in found if not is_value(fields[column.place], column)]
                if not wrong and any(fields[column.place] for column in found):
                    names = next((names for head in reversed(heads) if (names := _names(head, delimiter))), [])
                    return _Layout(path, number, delimiter, decimal, encoding, found, tuple(names))
                if not wrong:
                    continue
                said = f", {fields[wrong[0].place]!r} in column {wrong[0].place + 1} of line {number + 1}"
                nearest = min(nearest, (len(wrong), said), key=lambda one: one[0])
            if widest[0] or number >= HEADER_LINES:
                break
            heads.append(line)
            if by_header:
                placed |= {delimiter: places for delimiter in placed if (places := _placed(columns, line, delimiter))}
    if by_header and not any(placed.values()):
        raise _no_header(path, heads, columns)
    wanted = "numbers below the header" if by_header else f"at least {named} columns, one for each name given"
    raise RecordingError(
        str(path),
        got=widest[1] or f"no line of numbers{nearest[1]}",
        expected=f"{wanted}; a time in seconds, or as 2026-11-28T14:05:00.25",
        remedy="give at most one name for each column of the file" if widest[0] else "check file and columns",
    )


def _no_header(path: Path, heads: Sequence[str], columns: tuple[Column, ...]) -> RecordingError:
    """Error of a file without a line that has all names: the line with the most of them, and those that it lacks."""
    head = max(heads, key=lambda line: sum(column.header in line for column in columns), default="").strip()
    lacking = ", ".join(column.header for column in columns if column.header not in head)
    return RecordingError(
        str(path),
        got=f"header {head[:80]!r}{lacking and f' without {lacking}'}" if head else "no header",
        expected=f"a line with the names {', '.join(column.header for column in columns)}, and numbers below it",
        remedy="write the names as they are in the file",
    )


def _placed(columns: tuple[Column, ...], head: str, delimiter: str | None) -> tuple[Column, ...]:
    """Columns at the places of their names in a header line; empty if it lacks one."""
    names = _names(head, delimiter)
    if not all(column.header in names for column in columns):
        return ()
    twice = next((column.header for column in columns if names.count(column.header) > 1), "")
    if twice:
        remedy = "rename one of them in the file, or give --columns by position"
        raise RecordingError(f"header {head.strip()[:80]!r}", got=f"{twice!r} twice", expected="once", remedy=remedy)
    return tuple(replace(column, place=names.index(column.header)) for column in columns)


def _names(head: str, delimiter: str | None) -> list[str]:
    """Names of the columns in a header line; empty for a blank one."""
    text = head.lstrip("#% ")
    return fields_of(text, delimiter) if text.strip() else []


def _check_header(layout: _Layout) -> None:
    """Refuse a column without a unit whose name in the header tells another one than SI.

    Raises:
        RecordingError: it names the column, and the unit to write behind it.
    """
    for column in layout.columns:
        name = layout.names[column.place] if column.place < len(layout.names) else ""
        unit, units = "" if column.unit else unit_of(name), units_of(column.role)
        thing = f"{layout.path} column {name!r}"
        if unit in UNITS:
            check_quantity(thing, f"{column.name} with that name", UNITS[unit][0], column)
        if unit in units and units[unit][1] != 1.0:
            described = f"{column.name}={name}:{unit}" if column.header else f"{column.name}:{unit}"
            raise RecordingError(thing, got=f"{column.name} without a unit", remedy=f"write {described} in --columns")


def _load(layout: _Layout) -> Vector:
    """Values (n, columns) as in the file.

    Raises:
        RecordingError: an entry that is none; names its line and column.
    """
    delimiter, decimal = layout.delimiter, layout.decimal
    try:
        return _table(layout, empty=False)
    except ValueError:  # converters are slow: they are used where entries are empty
        pass
    try:
        return _table(layout, empty=True)
    except ValueError as error:
        for number, line in layout.lines():
            fields = fields_of(line, delimiter, decimal)
            for column in layout.columns:
                field = fields[column.place] if column.place < len(fields) else ""
                if column.place >= len(fields) or not is_value(field, column):
                    got = f"{field!r} in column {column.place + 1}"
                    raise _bad_entry(layout.path, number, line, got) from None
        raise RecordingError(
            str(layout.path), got=str(error), expected="numbers in columns", remedy="correct the file"
        ) from error


def _table(layout: _Layout, empty: bool) -> Vector:
    """Values (n, columns) as in the file, of which some may be `empty`; ValueError for an entry that is none."""
    converters: dict[int | str, Callable[[str], Any]] = {
        column.place: value_of for column in layout.columns if empty and column.role != "time"
    }
    converters |= dict.fromkeys(layout.dated, seconds_of)
    with layout.path.open(encoding=layout.encoding) as file:  # numpy would unpack a file named .gz
        values: Vector = np.loadtxt(
            file if layout.decimal == "." else (line.replace(layout.decimal, ".") for line in file),
            dtype=np.float64,
            delimiter=layout.delimiter,
            converters=converters or None,
            encoding=None,
            skiprows=layout.header_lines,
            usecols=[column.place for column in layout.columns],
            comments=None,
            quotechar='"',
            ndmin=2,
        )
    return values


def _with_one_time(layout: _Layout, values: Vector, rate: float) -> tuple[_Layout, Vector]:
    """The columns with one time: the sum of all, as those of seconds and nanoseconds of a stamp, or by the rate."""
    if rate > 0.0:
        columns = (Column(-1, "time", "", 1.0, "s"), *layout.columns)
        return replace(layout, columns=columns), np.column_stack([np.arange(len(values)) / rate, values])
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


def _repeating(values: Vector) -> Flags:
    """Whether each of some rows (n, columns) repeats the one before it, its time included, (n,)."""
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    repeating: Flags = np.append([False], np.all(same, axis=1))
    return repeating


def _check_values(layout: _Layout, values: Vector, again: Flags) -> None:
    """Refuse infinite values and times that are nan or do not increase, but for rows `again`, naming the line."""
    time = values[:, layout.time]
    bad = np.isinf(values).any(axis=1) | np.isnan(time)
    if bad.any():
        row = int(np.argmax(bad))
        number, line = next(islice(layout.lines(), row, None))
        wrong = int(np.argmax(np.isinf(values[row]))) if not math.isnan(time[row]) else layout.time
        what = "nan as time" if math.isnan(time[row]) else "an infinite value"
        raise _bad_entry(layout.path, number, line, f"{what} in column {layout.columns[wrong].place + 1}")
    stuck = np.flatnonzero((np.diff(time) <= 0.0) & ~again[1:])
    if stuck.size:
        row = int(stuck[0]) + 1
        number, _ = next(islice(layout.lines(), row, None))
        steps = np.diff(time)
        repeats = np.count_nonzero(steps == 0.0)
        repeated = np.all(steps >= 0.0) and repeats > _MANY_REPEATED * len(time)
        rounded = f"write the times with all their digits: {repeats} of {len(time)} lines repeat that before them"
        raise RecordingError(
            f"{layout.path} line {number}",
            got=f"time {time[row]:.12g} after {time[row - 1]:.12g}",
            expected="times that increase from line to line",
            remedy=rounded if repeated else "correct the file, or name the column that holds the time",
        )


def _since_1970(layout: _Layout, first: float) -> _Layout:
    """The layout with the unit that a first time since 1970 tells, if none was named."""
    time = layout.columns[layout.time]
    unit = "" if time.unit else unit_since_1970(first)
    if not unit:
        return layout
    columns = list(layout.columns)
    columns[layout.time] = replace(time, factor=units_of("time")[unit][1])
    return replace(layout, columns=tuple(columns))


def _check_times(layout: _Layout, values: Vector) -> None:
    """Refuse times in another unit: too large for nanoseconds, or too far apart for a motion, if none was named."""
    time = layout.columns[layout.time]
    seconds = values[:, layout.time] * time.factor
    first, last = float(seconds[0]), float(seconds[-1])
    motion = [k for k, column in enumerate(layout.columns) if column.role in _MOTIONS]
    moments = seconds[np.isfinite(values[:, motion]).any(axis=1)]
    named = time.unit or layout.dated
    period = 0.0 if named or len(moments) < _FEWEST else float(np.median(np.diff(moments)))
    # A log of a motor's heat has one line a second where it has temperatures; its motion is not what it is about.
    heat = any(column.role in _HEAT for column in layout.columns)
    whole = len(moments) >= _FEWEST_WHOLE and not heat and not np.any(moments % 1.0)
    longest = _LONGEST_WHOLE if whole else _LONGEST_PERIOD
    if time.factor != 1.0:  # microseconds since a boot look like milliseconds since 1970, a thousand times too slow
        longest = _LONGEST_GUESSED
    if max(0.0, last) - min(0.0, first) > _LONGEST:
        got, expected = "a time beyond 9e9 s", "seconds"
    elif period > longest:
        got, expected = f"a line every {period:.4g} s", f"seconds, and motion at least every {longest:g} s"
    else:
        return
    raise RecordingError(
        f"{layout.path} column time",
        got=f"{first:.9g} to {last:.9g} s, {got}",
        expected=expected,
        remedy="name its unit: time:ms, time:us, time:ns or time:s",
    )


def _check_sizes(layout: _Layout, values: Vector) -> None:
    """Refuse currents and voltages without a unit that are too large for SI units: they may be in thousandths."""
    for column, value in zip(layout.columns, values.T, strict=True):
        if column.unit or column.role not in _LARGEST_WITHOUT_UNIT:
            continue
        largest, *units = _LARGEST_WITHOUT_UNIT[column.role]
        size = float(np.nanmax(np.abs(value), initial=0.0))
        if size > largest:
            raise RecordingError(
                f"{layout.path} column {column.name}",
                got=f"values of up to {size:.4g} without a unit",
                expected=f"up to {largest:g} {units[0]}",
                remedy=f"name its unit: {' or '.join(f'{column.name}:{unit}' for unit in units)}",
            )
