"""Units a text log may be written in, and what one of each is in SI."""

from __future__ import annotations

import math

from youbot_dynamics.errors import RecordingError

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
