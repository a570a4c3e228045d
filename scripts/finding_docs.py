"""Write the tables of findings in docs/identification/findings.md from those of the stages; `--check` only compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from _page import with_part, write

from youbot_dynamics.identification.finding import Row
from youbot_dynamics.identification.stages import STAGES, stage_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "identification" / "findings.md"
BEGIN, END = "<!-- findings: written by scripts/finding_docs.py -->\n", "<!-- end of the findings -->\n"


def _use(row: Row) -> str:
    """Whether a number is a parameter of the robot, and with which others it is used."""
    parameter = "if identified" if row.optional else "yes" if row.is_parameter else ""
    return f"{parameter}, as part of {row.part_of}" if row.part_of else parameter


def _tables() -> Iterator[str]:
    """A table for each stage; a row that two stages share is in both."""
    for stage in STAGES:
        yield f"\n`{stage}`\n\n| name | unit | in words | parameter |\n|---|---|---|---|\n"
        for row in stage_of(stage).FINDINGS.rows:
            words = row.words.replace("{", "*").replace("}", "*")
            yield f"| `{row.pattern}` | {row.unit} | {words} | {_use(row)} |\n"


def page() -> str:
    """The whole page: what is written by hand, and the tables."""
    return with_part(PAGE, BEGIN, "".join(_tables()), END)


if __name__ == "__main__":
    write(PAGE, page())
