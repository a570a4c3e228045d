"""Progress on a terminal; nothing where the output is piped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

CONSOLE = Console(stderr=True)


@contextmanager
def steps(title: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done behind a spinner; yields the function that names the step."""
    if not CONSOLE.is_terminal:
        yield lambda message: None
        return
    with CONSOLE.status(title) as status:
        yield lambda message: status.update(f"{title}: {message}")


def announce(message: str) -> None:
    """Print a line that stays, on a terminal and in a log."""
    CONSOLE.print(message, highlight=False, soft_wrap=True, markup=False)
