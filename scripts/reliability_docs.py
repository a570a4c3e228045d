"""Write the fault matrix of docs/reliability.md from test/faults/matrix.yaml; `--check` only compares."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from _page import with_part, write

ROOT = Path(__file__).resolve().parents[1]
FAULTS = ROOT / "test" / "faults"
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- matrix: written by scripts/reliability_docs.py -->\n", "<!-- end of the matrix -->\n"


def _in_words(promise: dict[str, Any]) -> str:
    spec = importlib.util.spec_from_file_location("fault_words", FAULTS / "fault_words.py")
    assert spec is not None and spec.loader is not None
    words = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(words)
    return str(words.in_words(promise))


def _matrix() -> Iterator[str]:
    """The rows of the matrix, a table for each of its sections."""
    header = "| fault | during | guarantee | run |\n|---|---|---|---|\n"
    text = (FAULTS / "matrix.yaml").read_text(encoding="utf-8")
    for section in text.split("# ---- ")[1:]:
        title = section.split(" --")[0]
        yield f"\n### {title[0].upper()}{title[1:]}\n\n{header}"
        for row in yaml.safe_load(section.split("\n", 1)[1]):
            run = f"fails: {row['pending']}" if "pending" in row else "always" if row.get("usual") else "`--slow`"
            yield f"| {row['fault']} | {row['during']} | {_in_words(row['promise'])} | {run} |\n"


def page() -> str:
    """The whole page: what is written by hand, and the matrix."""
    return with_part(PAGE, BEGIN, "".join(_matrix()), END)


if __name__ == "__main__":
    write(PAGE, page())
