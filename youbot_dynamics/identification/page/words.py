"""Findings in words: names of the stages, units worth reading, digits worth writing, text safe in HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import NamedTuple

from youbot_dynamics.errors import printable
from youbot_dynamics.identification.finding import Finding

# In the order of the stages.
STAGE_TITLES = {
    "calibration": "geometry of the base",
    "delay": "delays of the base",
    "response": "response of the base",
    "base_friction": "friction of the base",
    "arm_friction": "friction of the arm",
    "thermal": "motors of the arm",
}
STAGE_REMARKS = {
    "delay": "effective: dead time, lag and a share of friction; interval: the scatter within the recording; on faster "
    "or slower drives friction counts differently",
    "base_friction": "all values scale with the torque constant behind the efforts, which the intervals do not contain",
}
NOT_AVAILABLE = "\u2013"
PLUS_MINUS = "\u00b1"
_HUGE = 1e7  # from which digits before the point would only fill the table
_MILLI = 1.0  # [s] below which times are told in milliseconds


class Shown(NamedTuple):
    """A finding as it is written down.

    Args:
        name: without the prefix of the robot's parameters.
        value: with the digits its interval is worth, "" where there is none.
        low: end of the 95 % interval, "" where there is none.
        high: other end.
        unit: of the three, "" for none.
    """

    name: str
    value: str
    low: str
    high: str
    unit: str


def shown(finding: Finding) -> Shown:
    """Name, value and interval of a finding as text, with a plain hyphen for minus."""
    one = finding.estimate
    small = one.unit == "s" and not abs(one.value) >= _MILLI
    scale, unit = (1e3, "ms") if small else (1.0, one.unit if one.unit != "1" else "")
    half = 0.5 * scale * (one.interval[1] - one.interval[0])
    value, low, high = (rounded(scale * number, half) for number in (one.value, *one.interval))
    return Shown(finding.name.removeprefix("robot."), value, low, high, unit)


def rounded(value: float, half: float) -> str:
    """A value with two digits of the half-width of its interval; three where that is not known; "" for NaN."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "inf" if value > 0.0 else "-inf"
    if not math.isfinite(half) or half <= 0.0 or abs(value) >= _HUGE:
        return f"{value:.3g}"
    return _unsigned_zero(f"{value:.{max(0, 1 - math.floor(math.log10(half)))}f}")


def number(value: float, decimals: int) -> str:
    """A number with that many decimals and a true minus sign; a dash where there is none."""
    return NOT_AVAILABLE if math.isnan(value) else minus(_unsigned_zero(f"{value:.{decimals}f}"))


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits and no exponent, down to 1e-6."""
    if not math.isfinite(value) or value == 0.0:
        return number(value, 0)
    return number(value, min(8, max(0, digits - 1 - math.floor(math.log10(abs(value))))))


def minus(digits: str) -> str:
    """Digits as a page writes them: a true minus sign and a true sign of infinity; a dash where there are none."""
    return digits.replace("inf", "\u221e").replace("-", "\u2212") or NOT_AVAILABLE


def _unsigned_zero(digits: str) -> str:
    return digits[1:] if digits.startswith("-") and not digits.strip("-0.") else digits


def listed(parts: Sequence[str]) -> str:
    """Words joined by commas and a final "and"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def sentence(words: str) -> str:
    """Words with a capital at the front."""
    return words[:1].upper() + words[1:]


def text(value: object) -> str:
    """Anything as text that HTML takes for text, in an attribute too."""
    return html.escape(printable(str(value)))


def scroller(label: str, table: str) -> str:
    """A wide table in a frame of its own that scrolls, with the keyboard too."""
    return f'<div class="scroll" role="region" aria-label="{text(label)}" tabindex="0">{table}</div>'
