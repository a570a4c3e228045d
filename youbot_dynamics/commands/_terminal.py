"""Terminal output of the commands: progress, error lines, tables of the identified values."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from youbot_dynamics.bringup_plan import option_words
from youbot_dynamics.errors import OutputError, command_lines, printable, wrapped
from youbot_dynamics.files import place_to_write
from youbot_dynamics.identification.result import Result
from youbot_dynamics.identification.stages import STAGES
from youbot_dynamics.report import Rows, told, verdict_tables
from youbot_dynamics.resources import short_path

CONSOLE = Console(stderr=True)
_PIPE = 160  # width of a table where the output is no terminal [characters]
_GAP = 2  # between columns [characters]
_NARROWEST = 24  # least width of a column that is wrapped [characters]


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
        OutputError: there is something that is no regular file, a file that is not to be replaced, or no such folder.
    """
    place = place_to_write(path)
    if not place.parent.is_dir():
        remedy = "make the folder, or correct the path"
        raise OutputError(f"{option} {path}", got="no such folder", expected="one that exists", remedy=remedy)
    if place.exists() and not overwrite:
        remedy = "name another one, or add --overwrite"
        raise OutputError(f"{option} {path}", got="an existing file", expected="a new one", remedy=remedy)


def announce(message: str, *commands: str) -> None:
    """Print a message and the commands that it suggests, in lines of a terminal or as one line of a log.

    A full disk or a closed pipe ends no command.
    """
    lines = [printable(f"{message} {', or '.join(commands)}" if commands else message)]
    if CONSOLE.is_terminal:
        lines = wrapped(message, CONSOLE.width)
        lines += [line for command in commands for line in command_lines(command, CONSOLE.width)]
    with suppress(OSError, SystemExit):  # rich raises SystemExit for a closed pipe
        for line in lines:
            CONSOLE.print(line, highlight=False, soft_wrap=True, markup=False)


def robot_words(given: argparse.Namespace, robot: str = "real") -> str:
    """Options of a command that bring up, as `robot`, the robot of this command's options."""
    files = {name: short_path(getattr(given, name)) for name in ("robot_file", "params_file")}
    return shlex.join(option_words(robot=robot, **files))


def table_console(soft_wrap: bool = True) -> Console:
    """Console for a table; 160 columns wide if the output is not a terminal."""
    console = Console(soft_wrap=soft_wrap)
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(soft_wrap=soft_wrap, width=_PIPE)


def print_answer(result: Result, result_file: str = "", robot: str = "", verbose: bool = False) -> None:
    """Print the answer of `told` in `report/_answer.py`; if `verbose`, also tables, and why stages have no result."""
    _print_lines(told(result, Console().width, result_file, robot, verbose))
    if not verbose:
        return
    for title, table in verdict_tables(result):
        print_rows(title, table, numbers=2)
    lacking: dict[str, list[str]] = {}
    for stage, reason in result.missing.items():
        lacking.setdefault(reason, []).append(STAGES[stage].title)
    for reason, titles in lacking.items():
        _print_lines(wrapped(f"no result for {', '.join(titles)}: {reason}", table_console().width))


def _print_lines(lines: Sequence[str]) -> None:
    for line in lines:
        Console(soft_wrap=True, highlight=False).print(Text(line))


def print_rows(title: str, shown: Rows, numbers: int = 0) -> None:
    """Print a table of texts, of which `numbers` columns after the first hold numbers alone.

    Only the last column is wrapped, unless it holds numbers. Where that leaves it too little room, each row becomes a
    paragraph of its own.
    """
    console, cells = table_console(soft_wrap=False), [[printable(cell) for cell in row] for row in shown.rows]
    sizes = [max(map(len, column)) for column in zip(shown.columns, *cells, strict=True)]
    wraps = numbers < len(sizes) - 1
    least = [*sizes[:-1], min(sizes[-1], _NARROWEST) if wraps else sizes[-1]]
    if cells and sum(least) + _GAP * (len(sizes) - 1) <= console.width:
        table = Table(title=printable(title), box=None, padding=(0, _GAP, 0, 0), pad_edge=False, title_justify="left")
        for k, column in enumerate(shown.columns):
            table.add_column(
                column, no_wrap=not wraps or k + 1 < len(sizes), justify="right" if 0 < k <= numbers else "left"
            )
        for row in cells:
            table.add_row(*map(Text, row))
        console.print(table)
    elif cells:
        _print_lines(wrapped(f"{title}:", console.width))
        for first, *others in cells:
            pairs = [(name, cell) for name, cell in zip(shown.columns[1:], others, strict=True) if cell.strip("-")]
            texts = [f"{name} {cell}" if len(others) > 1 else cell for name, cell in pairs]
            _print_lines(wrapped(f"{first}: {', '.join(texts)}", console.width))
    _print_lines(wrapped(shown.summary, console.width))
