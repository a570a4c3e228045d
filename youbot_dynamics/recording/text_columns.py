"""The description of the columns of a text log: ``time:ms,_,command.x:rad/s,measured.x``."""

from __future__ import annotations

from dataclasses import dataclass

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.units import si_factor

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
