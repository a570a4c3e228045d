"""Progress on a terminal; nothing where the output is piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from youbot_dynamics.errors import printable

CONSOLE = Console(stderr=True)


class Steps:
    """Tells what a command is doing, with a bar while recordings are counted.

    Args:
        title: of the command.
        progress: rich's, None where nobody watches.
    """

    def __init__(self, title: str, progress: Progress | None) -> None:
        self._title = title
        self._progress = progress
        self._row = None if progress is None else progress.add_task(title, total=None, counted="")

    def __call__(self, message: str) -> None:
        """Name the step."""
        if self._progress is not None and self._row is not None:
            self._progress.update(self._row, description=printable(f"{self._title}: {message}"))

    def count(self, finished: int, total: int) -> None:
        """Move the bar."""
        if self._progress is not None and self._row is not None:
            self._progress.update(self._row, completed=finished, total=total, counted=f"{finished} of {total}")


@contextmanager
def steps(title: str) -> Iterator[Steps]:
    """Show what is being done; yields what names the step and moves the bar."""
    if not CONSOLE.is_terminal:
        yield Steps(title, None)
        return
    texts = [TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[counted]}")]
    columns = (SpinnerColumn(), texts[0], BarColumn(20), texts[1])
    with Progress(*columns, console=CONSOLE, transient=True) as progress:
        yield Steps(title, progress)


def announce(message: str) -> None:
    """Print a line that stays, on a terminal and in a log; a full disk or a closed pipe there ends nothing."""
    with suppress(OSError, SystemExit):  # rich makes the second of a closed pipe
        CONSOLE.print(printable(message), highlight=False, soft_wrap=True, markup=False)
