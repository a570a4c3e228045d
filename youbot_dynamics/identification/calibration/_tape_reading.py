"""What a person reads off a tape and writes down: distances with a unit, turns in degrees or as turns and degrees."""

from __future__ import annotations

import re
from math import inf, pi, radians

from youbot_dynamics.errors import InputError

_METRES = {"": 1.0, "m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254, '"': 0.0254, "ft": 0.3048}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)"
_DISTANCE = re.compile(rf"({_NUMBER})\s*(m|cm|mm|in|\"|ft|)")
_TURN = re.compile(rf"(?:([-+]?\d+)\s+)?({_NUMBER})\s*(?:deg)?")
_LEAST_TURN = 90.0  # [degrees]: 3 alone is more likely meant as three turns


def read_distance(text: str) -> float:
    """Distance [m] that a text such as `1.512`, `151.2 cm`, `1512 mm`, `59.53 in` or `4.96 ft` gives.

    Raises:
        InputError: another text, or a distance that is not positive.
    """
    found = _DISTANCE.fullmatch(text.strip())
    distance = float(found[1]) * _METRES[found[2]] if found else 0.0
    if not 0.0 < distance < inf:
        raise InputError("distance", got=text.strip(), expected="metres or a unit, such as 1.512, 151.2 cm or 59.53 in")
    return distance


def read_turn(text: str) -> float:
    """Turn to the left [rad] that a text such as `1074`, `1074 deg`, or `3 -6`, turns and degrees beyond them, gives.

    Raises:
        InputError: another text, or a single number that may be one of turns.
    """
    found = _TURN.fullmatch(text.strip())
    alone = found is not None and found[1] is None
    if found is None or not (abs(float(found[2])) >= _LEAST_TURN if alone else abs(float(found[2])) < 360.0):
        expected = "degrees of the whole turn, such as 1074, or whole turns and the degrees beyond them, such as 3 -6"
        raise InputError("turn to the left", got=text.strip(), expected=expected)
    return 2.0 * pi * int(found[1] or 0) + radians(float(found[2]))
