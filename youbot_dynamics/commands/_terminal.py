"""Terminal output of the commands: progress, error lines, tables of the identified values."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from youbot_dynamics.bringup_plan import option_words
from youbot_dynamics.errors import OutputError, printable
from youbot_dynamics.files import place_to_write
from youbot_dynamics.identification.finding import Finding, asked
from youbot_dynamics.identification.result import Result
from youbot_dynamics.identification.stages import STAGES
from youbot_dynamics.report import Rows, shown
from youbot_dynamics.resources import short_path

CONSOLE = Console(stderr=True)


class Steps:
    """Shows the current step of a command, and a progress bar while recordings are read."""

    def __init__(self, title: str, progress: Progress) -> None:
        self._title = title
        self._progress = progress
        self._row = progress.add_task(title, total=None, counted="")

    def __call__(self, message: str) -> None:
        """Show the name of the step."""
        self._progress.update(self._row, description=printable(f"{self._title}: {message}"))

    def count(self, finished: int, total: int) -> None:
        """Update the bar."""
        self._progress.update(self._row, completed=finished, total=total, counted=f"{finished} of {total}")


@contextmanager
def steps(title: str) -> Iterator[Steps]:
    """Show the current step if the output is a terminal; yield the object that names the step and updates the bar."""
    texts = [TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[counted]}")]
    columns = (SpinnerColumn(), texts[0], BarColumn(20), texts[1])
    progress = Progress(*columns, console=CONSOLE, transient=True)
    with progress if CONSOLE.is_terminal else nullcontext():
        yield Steps(title, progress)


def new_file(option: str, path: Path, overwrite: bool) -> None:
    """Check before any work that a file may be written where an option names it.

    Raises:
        OutputError: there is something that is no regular file, or a file that is not to be replaced.
    """
    if place_to_write(path).exists() and not overwrite:
        remedy = "name another one, or add --overwrite"
        raise OutputError(f"{option} {path}", got="an existing file", expected="a new one", remedy=remedy)


def announce(message: str) -> None:
    """Print a permanent line, on a terminal and in a log; a full disk or a closed pipe does not end the command."""
    with suppress(OSError, SystemExit):  # rich raises SystemExit for a closed pipe
        CONSOLE.print(printable(message), highlight=False, soft_wrap=True, markup=False)


def robot_words(given: argparse.Namespace, robot: str = "real") -> str:
    """Options of a command that bring up, as `robot`, the robot of this command's options."""
    files = {name: short_path(getattr(given, name)) for name in ("robot_file", "params_file")}
    return shlex.join(option_words(robot=robot, **files))


def table_console(soft_wrap: bool = True) -> Console:
    """Console for a table; 160 columns wide if the output is not a terminal."""
    console = Console(soft_wrap=soft_wrap)
    return console if console.is_terminal else Console(soft_wrap=soft_wrap, width=160)


def print_findings(result: Result, by_hand: bool = False) -> None:
    """Print one table per stage: value, interval and verdict. Stages that lack data for one reason are one line.

    If a stage has robot parameters, only these are shown, with one delay per axis; the report and result.json hold the
    rest. Of measurements `by_hand`, whose errors are known, all findings are shown: there is no report.
    """
    console = table_console()
    for stage in dict.fromkeys(result.stage_of.values()):
        if stage in result.missing:
            continue
        findings = result.of_stage(stage)
        listed = findings if by_hand else asked(findings)
        interval = "95 % interval" if by_hand else result.interval_is
        more = len(findings) - len(listed)
        remarks = [STAGES[stage].remark, f"{more} more findings: see the report" if more else ""]
        table = Table(title=STAGES[stage].title, caption="; ".join(filter(None, remarks)) or None)
        for column in ("parameter", "value", interval, "unit"):
            numeric = column in ("value", interval)
            table.add_column(column, justify="right" if numeric else "left", no_wrap=True)
        table.add_column("verdict")
        for finding in listed:
            table.add_row(*(Text(printable(cell)) for cell in _row(finding)))
        console.print(table)
    lacking: dict[str, list[str]] = {}
    for stage, reason in result.missing.items():
        lacking.setdefault(reason, []).append(STAGES[stage].title)
    for reason, titles in lacking.items():
        console.print(printable(f"{', '.join(titles)}: nothing found: {reason}"), highlight=False, markup=False)


def print_rows(title: str, shown: Rows, numbers: bool = False) -> None:
    """Print a table of texts, whose first column is never wrapped; `numbers`: the others hold numbers alone."""
    table = Table(title=printable(title), caption=shown.summary or None)
    for k, column in enumerate(shown.columns):
        table.add_column(column, no_wrap=k == 0, justify="right" if numbers and k > 0 else "left")
    for row in shown.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    table_console().print(table)


def _row(finding: Finding) -> tuple[str, str, str, str, str]:
    text = shown(finding.estimate)
    interval = f"{text.low} to {text.high}" if text.low and text.high else "-"
    verdict = finding.estimate.verdict
    if finding.part_of and not finding.identified:
        verdict = f"used together with others; on its own {verdict}"
    return finding.name, text.value or "-", interval, text.unit, verdict
