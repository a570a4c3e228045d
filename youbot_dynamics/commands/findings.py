"""Tables of what was identified, for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from youbot_dynamics.errors import printable
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.page.words import STAGE_REMARKS, STAGE_TITLES, shown
from youbot_dynamics.identification.result import Result

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
        asked = [finding for finding in found if finding.is_parameter] or list(found)
        table = Table(title=STAGE_TITLES[stage], caption=_caption(stage, len(found) - len(asked)))
        for column in ("parameter", "value", "95 % interval", "unit"):
            numeric = column in ("value", "95 % interval")
            table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
        table.add_column("verdict")
        for finding in asked:
            table.add_row(*(Text(printable(cell)) for cell in _row(finding)))
        console.print(table)
    for stage, reason in result.missing.items():
        text = printable(f"{STAGE_TITLES[stage]}: nothing to work with: {reason}")
        console.print(text, highlight=False, markup=False)


def _caption(stage: str, more: int) -> str | None:
    words = [STAGE_REMARKS[stage]] if stage in STAGE_REMARKS else []
    words += [f"{more} more findings: see the report"] if more else []
    return "; ".join(words) or None


def _row(finding: Finding) -> tuple[str, str, str, str, str]:
    said = shown(finding)
    interval = f"{said.low} to {said.high}" if said.low and said.high else "-"
    name = said.name.removeprefix("base.").removeprefix("arm.")
    verdict = finding.estimate.verdict
    if finding.part_of and not finding.identified:
        verdict = f"used as part of {finding.part_of}; by itself {verdict}"
    return name, said.value or "-", interval, said.unit or "1", verdict
