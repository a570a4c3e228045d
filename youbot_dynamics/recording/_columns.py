"""Columns of a text log as they are described: roles, names, units with their factors to SI."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from youbot_dynamics.errors import RecordingError

_TIME_UNITS = {"s": ("time", 1.0), "ms": ("time", 1e-3), "us": ("time", 1e-6), "ns": ("time", 1e-9)}
UNITS = {  # quantity, and factor to SI
    "rad": ("angle", 1.0),
    "mrad": ("angle", 1e-3),
    "deg": ("angle", math.pi / 180.0),
    "turn": ("angle", 2.0 * math.pi),
    "rad/s": ("angular speed", 1.0),
    "mrad/s": ("angular speed", 1e-3),
    "deg/s": ("angular speed", math.pi / 180.0),
    "rad/min": ("angular speed", 1.0 / 60.0),
    "turn/s": ("angular speed", 2.0 * math.pi),
    "rpm": ("angular speed", math.pi / 30.0),
    "m": ("length", 1.0),
    "cm": ("length", 1e-2),
    "mm": ("length", 1e-3),
    "m/s": ("speed", 1.0),
    "km/h": ("speed", 1.0 / 3.6),
    "cm/s": ("speed", 1e-2),
    "mm/s": ("speed", 1e-3),
    "A": ("current", 1.0),
    "mA": ("current", 1e-3),
    "V": ("voltage", 1.0),
    "mV": ("voltage", 1e-3),
    "Nm": ("torque", 1.0),
    "Ncm": ("torque", 1e-2),
    "mNm": ("torque", 1e-3),
    "N": ("force", 1.0),
    "degC": ("temperature", 1.0),
    "1": ("number", 1.0),
}
_SCALED = re.compile(r"(?:(?P<times>[^*]+)\*)?(?P<unit>.+?)(?:/(?P<over>-?[\d.][\d.e+-]*))?")
# Roles of a joint, and the quantities that they may have.
JOINT_ROLES = {
    "position": ("angle", "length"),
    "velocity": ("angular speed", "speed"),
    "effort": ("torque", "force"),
    "current": ("current",),
    "voltage": ("voltage",),
    "temperature": ("temperature",),
    "housing": ("temperature",),
}
AXES = ("x", "y", "yaw")  # of the base
BASE_ROLES = ("command", "command_position", "measured", "measured_position", "pose")
ROLES = (*BASE_ROLES, *JOINT_ROLES)
COMMANDS = {"command_held": "held", "command_sampled": "sampled"}  # roles that also tell what a command is
_EXPECTED = f"time, ROLE.NAME with ROLE of {', '.join((*ROLES, *COMMANDS))}, or _ to skip a column"


@dataclass(frozen=True)
class Column:
    """A column to read: its position in the file, role, channel ("" for the time), factor to SI units, unit, header."""

    place: int
    role: str
    channel: str
    factor: float
    unit: str = ""  # as described
    header: str = ""  # its name in the file, "" if it is found by its position
    told: str = ""  # what the values of a command are, "held" until the next row, "sampled" or "" for unknown

    @property
    def name(self) -> str:
        """As it is described."""
        return f"{self.role}.{self.channel}" if self.channel else self.role

    @property
    def quantities(self) -> tuple[str, ...]:
        """What it may hold; empty for any: a channel may command a voltage and measure a speed."""
        if self.role in ("command", "measured") and self.channel in AXES:
            return ("angular speed", "speed") if self.channel == "yaw" else ("speed", "angular speed")
        return JOINT_ROLES.get(self.role, ())


def parse_columns(description: str, timed: bool = False) -> tuple[tuple[Column, ...], int]:
    """Parse a description (see `read_text_log`); return the columns to read and the number of all columns it names.

    Args:
        description: `name[:unit]` of each column.
        timed: whether the times follow from the rate of the lines, so that there is no column with them.

    Raises:
        RecordingError: an unknown name or unit, a unit of another quantity, a column named twice, or no time.
    """
    columns: list[Column] = []
    parts = [part.strip() for part in description.split(",")]
    for place, part in enumerate(parts):
        named, _, unit = part.partition(":")
        if named == "_":
            continue
        name, equals, header = (word.strip() for word in named.partition("="))
        role, _, channel = name.partition(".")
        told = COMMANDS.get(role, "")
        role = "command" if told else role
        thing = f"column {place + 1} of the description {description!r}"
        if (role == "time") == bool(channel) or (role != "time" and role not in ROLES):
            remedy = "give each column of the file one of these names, in file order, or write NAME=HEADER"
            raise RecordingError(thing, got=repr(name), expected=_EXPECTED, remedy=remedy)
        if bool(equals) != ("=" in parts[0]) or bool(equals) != bool(header):
            expected = "NAME=HEADER for each column or for none"
            raise RecordingError(thing, got=repr(part), expected=expected, remedy="name the header of every column")
        alike = (role, *(other for other in ("command", "command_position") if role.startswith("command")))
        if role != "time" and any(column.role in alike and column.channel == channel for column in columns):
            remedy = "skip one of them with _"
            raise RecordingError(thing, got=f"{name} a second time", expected="each name once", remedy=remedy)
        quantity, factor = _quantity(name, role, unit)
        column = Column(place, role, channel, factor, unit, header, told)
        if unit:
            check_quantity(f"column {name}", f"unit {unit!r}", quantity, column)
        columns.append(column)
    _check_time(description, columns, timed)
    return tuple(columns), len(parts)


def _check_time(description: str, columns: list[Column], timed: bool) -> None:
    """Refuse a description without a time or anything else, or with a time where a rate gives it."""
    has_time = any(column.role == "time" for column in columns)
    thing = f"the description {description!r}"
    if timed and has_time:
        raise RecordingError(thing, got="a column time, and --rate", expected="one of both", remedy="leave out --rate")
    if not (timed or has_time):
        remedy = (
            "name the column that holds the time, as time:ms if it is in milliseconds; give --rate HZ if there is none"
        )
        raise RecordingError(thing, got="no column time", expected="time and at least one other column", remedy=remedy)
    if all(column.role == "time" for column in columns):
        remedy = "add command.CHANNEL or measured.CHANNEL"
        raise RecordingError(thing, got="only the time", expected="at least one other column", remedy=remedy)


def check_quantity(thing: str, got: str, quantity: str, column: Column) -> None:
    """Refuse a quantity that the role of a column cannot be, such as a current as an effort; a pure number passes.

    Raises:
        RecordingError: names the `thing` and what was `got`.
    """
    allowed = column.quantities
    if not allowed or quantity in (*allowed, "number"):
        return
    units = [unit for unit, (of, _) in UNITS.items() if of in allowed]
    remedy = f"write {column.name}:UNIT, or give the column another name"
    if (column.role, quantity) == ("effort", "current"):
        remedy = (
            f"write current.{column.channel}:A, which the torque constant and gear ratio of a robot file convert, or "
            f"effort.{column.channel}:K*Nm with K N m for each ampere"
        )
    raise RecordingError(thing, got=f"{got} ({quantity})", expected=" or ".join(units), remedy=remedy)


def units_of(role: str) -> dict[str, tuple[str, float]]:
    """Units that a role may have, each with its quantity and factor to SI."""
    return _TIME_UNITS if role == "time" else UNITS


def _quantity(name: str, role: str, unit: str) -> tuple[str, float]:
    """Quantity and factor to SI of UNIT, FACTOR*UNIT, UNIT/DIVISOR or both, such as turn/4096 for 4096 ticks a turn."""
    units = units_of(role)
    if not unit:
        return "number", 1.0
    if unit in units:
        return units[unit]
    match = _SCALED.fullmatch(unit)
    quantity, factor = "number", math.nan
    if match is not None and match["unit"] in units:
        numbers = [match["times"] or "1", match["over"] or "1"]
        times, over = (float(number) if is_number(number) else math.nan for number in numbers)
        quantity, factor = units[match["unit"]]
        factor = factor * times / over if over else math.nan
    if not math.isfinite(factor) or factor == 0.0:
        raise RecordingError(
            f"column {name}",
            got=f"unit {unit!r}",
            expected=f"one of {', '.join(units)}",
            remedy="write name:unit with one of these, also scaled as -0.5*unit or unit/4096",
        )
    return quantity, factor


def is_number(field: str) -> bool:
    """Whether a text is a number as `float` reads it, without underscores."""
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
