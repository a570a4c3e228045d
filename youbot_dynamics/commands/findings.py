"""Tables of what was identified, for the terminal."""

from __future__ import annotations

from math import floor, isfinite, log10

from rich.console import Console
from rich.table import Table

from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.result import Result

_TITLES = {
    "calibration": "geometry of the base",
    "delay": "delays of the base",
    "response": "response of the base",
    "base_friction": "friction of the base",
    "arm_friction": "friction of the arm",
    "thermal": "motors of the arm",
}
_CAPTIONS = {
    "delay": "effective: dead time, lag and a share of friction; interval: the scatter within the recording; on faster "
    "or slower drives friction counts differently",
    "base_friction": "all values scale with the torque constant behind the efforts, which the intervals do not contain",
}
_MILLI = 1.0  # [s] below which times are told in milliseconds
_HUGE = 1e7  # from which digits before the point would only fill the table
_PIPED = 160  # columns where the output is no terminal


def print_findings(result: Result) -> None:
    """Print one table a stage: value, interval and verdict; a stage without any data is one line.

    Of a stage with parameters of the robot only these are shown: the rest stands in the report and in result.json.
    """
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console = Console(soft_wrap=True, width=_PIPED)
    for stage in dict.fromkeys(result.stage_of.values()):
        if stage in result.missing:
            continue
        found = result.of_stage(stage)
        shown = [finding for finding in found if finding.is_parameter] or list(found)
        table = Table(title=_TITLES[stage], caption=_caption(stage, len(found) - len(shown)))
        for column in ("parameter", "value", "95 % interval", "unit"):
            numeric = column in ("value", "95 % interval")
            table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
        table.add_column("verdict")
        for finding in shown:
            table.add_row(*_row(finding))
        console.print(table)
    for stage, reason in result.missing.items():
        console.print(f"{_TITLES[stage]}: nothing to work with: {reason}", highlight=False, markup=False)


def _caption(stage: str, more: int) -> str | None:
    words = [_CAPTIONS[stage]] if stage in _CAPTIONS else []
    words += [f"{more} more findings: see the report"] if more else []
    return "; ".join(words) or None


def _row(finding: Finding) -> tuple[str, str, str, str, str]:
    one = finding.estimate
    small = one.unit == "s" and not abs(one.value) >= _MILLI
    scale, unit = (1e3, "ms") if small else (1.0, one.unit)
    low, high = one.interval
    half = 0.5 * scale * (high - low)
    value = _digits(scale * one.value, half)
    interval = f"{_digits(scale * low, half)} to {_digits(scale * high, half)}" if isfinite(low + high) else "-"
    name = finding.name.removeprefix("robot.").removeprefix("base.").removeprefix("arm.")
    verdict = one.verdict
    if finding.part_of and not finding.identified:
        verdict = f"used as part of {finding.part_of}; by itself {verdict}"
    return name, value, interval, unit, verdict


def _digits(value: float, half: float) -> str:
    """A value with two digits of its half-width; three where that is not known, a dash where the value is not."""
    if not isfinite(value):
        return "-"
    if not isfinite(half) or half <= 0.0 or abs(value) >= _HUGE:
        return f"{value:.3g}"
    return f"{value:.{max(0, 1 - floor(log10(half)))}f}"
