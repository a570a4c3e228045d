"""A page of docs of which a script writes one part."""

from __future__ import annotations

import sys
from pathlib import Path


def with_part(page: Path, begin: str, part: str, end: str) -> str:
    """The whole page: what is written by hand, and the part between the lines `begin` and `end`."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    return before + begin + part + "\n" + end + rest.split(end)[1]


def write(page: Path, text: str) -> None:
    """Write a page; with `--check` end with 1 if it has another text."""
    if "--check" in sys.argv:
        sys.exit(0 if page.is_file() and page.read_text(encoding="utf-8") == text else 1)
    page.write_text(text, encoding="utf-8")
