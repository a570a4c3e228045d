"""Findings and estimates as text: convenient units, meaningful digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.least_squares import Estimate

_NOT_AVAILABLE = "\u2013"
_HUGE = 1e7  # larger numbers are too long for a table
_MILLI = 1.0  # [s] shorter times are shown in milliseconds


class Shown(NamedTuple):
    """An estimate as text."""

    value: str  # digits according to its interval, "" if there is none
    low: str  # lower end of the 95 % interval, "" if there is none
    high: str  # upper end
    unit: str  # unit of the three, "" for none


class Rows(NamedTuple):
    """A table as texts, for the terminal and for a page."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    summary: str
    notes: tuple[str, ...] = ()


def shown(estimate: Estimate) -> Shown:
    """Value and interval of an estimate as text, with a plain hyphen for minus."""
    half = 0.5 * (estimate.interval[1] - estimate.interval[0])
    value, low, high = (in_its_unit(estimate, number, half) for number in (estimate.value, *estimate.interval))
    return Shown(value, low, high, _unit(estimate)[1])


def brief(estimate: Estimate) -> Shown:
    """As `shown`, with one digit of the half-width of the interval."""
    scale, unit = _unit(estimate)
    half = 0.5 * scale * (estimate.interval[1] - estimate.interval[0])
    value, low, high = (rounded(scale * number, half, 1) for number in (estimate.value, *estimate.interval))
    return Shown(value, low, high, unit)


def in_its_unit(estimate: Estimate, value: float, half: float) -> str:
    """Format a value in the unit in which an estimate is shown, with digits according to a half-width."""
    scale, _ = _unit(estimate)
    return rounded(scale * value, scale * half)


def _unit(estimate: Estimate) -> tuple[float, str]:
    """Factor and name of the unit in which an estimate is shown."""
    small = estimate.unit == "s" and not abs(estimate.value) >= _MILLI
    return (1e3, "ms") if small else (1.0, estimate.unit if estimate.unit != "1" else "")


def facts(finding: Finding) -> list[str]:
    """Further facts about a finding: what it relies on, where it is valid, other numbers."""
    known = [f"{finding.samples} samples"] if finding.samples else []
    known += [f"valid for {finding.valid_for}"] if finding.valid_for else []
    for name, value in finding.details.items():
        text = str(value) if isinstance(value, str) else f"{value:g}" if value.is_integer() else significant(value)
        known += [f"{name} {text}"] if text not in ("", _NOT_AVAILABLE) else []
    return known


def rounded(value: float, half: float, digits: int = 2) -> str:
    """A value with two digits of the half-width of its interval; three digits if that is unknown; "" for NaN."""
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "inf" if value > 0.0 else "-inf"
    if not math.isfinite(half) or half <= 0.0 or abs(value) >= _HUGE:
        return f"{value:.3g}"
    return _unsigned_zero(f"{value:.{max(0, digits - 1 - math.floor(math.log10(half)))}f}")


def number(value: float, decimals: int) -> str:
    """A number with that many decimals and a minus sign; a dash if it is NaN."""
    return _NOT_AVAILABLE if math.isnan(value) else minus(_unsigned_zero(f"{value:.{decimals}f}"))


def significant(value: float, digits: int = 3) -> str:
    """A number with `digits` significant digits and no exponent, down to 1e-6."""
    if not math.isfinite(value) or value == 0.0:
        return number(value, 0)
    return number(value, min(8, max(0, digits - 1 - math.floor(math.log10(abs(value))))))


def minus(digits: str) -> str:
    """Digits for a page: true minus and infinity signs; a dash if there are none."""
    return digits.replace("inf", "\u221e").replace("-", "\u2212") or _NOT_AVAILABLE


def _unsigned_zero(digits: str) -> str:
    return digits[1:] if digits.startswith("-") and not digits.strip("-0.") else digits


def listed(parts: Sequence[str]) -> str:
    """Words joined by commas and a final "and"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def sentence(words: str) -> str:
    """Words with an initial capital."""
    return words[:1].upper() + words[1:]
