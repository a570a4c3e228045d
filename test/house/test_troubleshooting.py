"""Every message that docs/troubleshooting.md quotes is one the code writes."""

from __future__ import annotations

import ast
import re
from functools import cache

from repository import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^### ([^\n]+)\n\n```text\n(.*?)```", PAGE, re.M | re.S))
HOLE = "\0"  # where a text of the code gets a value
SHORTEST = 8  # letters a quoted piece must have to show anything
SOURCES = [*(ROOT / "youbot_dynamics").rglob("*.py")]


def texts_of(source: str) -> list[str]:
    """All texts in a Python source, with a hole for each value."""
    texts = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else HOLE for part in node.values]
            texts.append("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return texts


@cache
def written() -> str:
    """All texts of the package, a line each, and the script that makes the environment."""
    texts = [text for path in SOURCES for text in texts_of(path.read_text(encoding="utf-8"))]
    return "\n".join([*texts, (ROOT / "scripts" / "environment.sh").read_text(encoding="utf-8")])


def pieces_of(line: str) -> list[str]:
    """Pieces of a quoted line between its `...`."""
    return [piece.strip(" ();:,") for piece in line.split("...") if piece.strip(" ();:,'")]


def unknown_pieces(message: str) -> list[str]:
    """Pieces of a message that no text of the code has, and lines that are too short to show anything."""
    wrong = []
    for line in message.splitlines():
        pieces = pieces_of(line)
        if max(map(len, pieces), default=0) < SHORTEST:
            wrong.append(line)
        wrong += [piece for piece in pieces if piece.replace("'", "") and piece not in written()]
    return wrong


def test_the_page_has_at_least_25_entries_each_with_its_message():
    assert len(ENTRIES) >= 25
    assert len(ENTRIES) == len(re.findall(r"^### ", PAGE, re.M)), "an entry without a message"


def test_texts_of_the_code_are_found_with_holes_and_across_lines():
    assert "got \0 of them" in texts_of('f"got {x} " "of them"')
    assert unknown_pieces("a message that nobody writes") == ["a message that nobody writes"]
    assert unknown_pieces("... s") == ["... s"]


def test_a_quoted_message_exists_in_the_code():
    wrong = {symptom: unknown_pieces(message) for symptom, message in ENTRIES.items()}
    assert not {symptom: pieces for symptom, pieces in wrong.items() if pieces}
