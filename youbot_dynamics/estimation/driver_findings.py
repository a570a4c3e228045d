"""What a check of the driver comes to: one finding an item, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

OK, WARNING, ERROR, NOT_TOLD = "ok", "warning", "error", "not told"
VERDICTS = (OK, WARNING, ERROR, NOT_TOLD)


@dataclass(frozen=True)
class DriverFinding:
    """One item of the check.

    Args:
        item: what was looked at.
        verdict: one of VERDICTS.
        text: what was seen.
        remedy: what to do next; empty where nothing is.
        values: figures behind it, by name with unit.
    """

    item: str
    verdict: str
    text: str
    remedy: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


def worst(findings: Iterable[DriverFinding]) -> str:
    """Verdict on all: an error before what could not be told, that before warnings."""
    seen = {finding.verdict for finding in findings}
    return next((verdict for verdict in (ERROR, NOT_TOLD, WARNING) if verdict in seen), OK)
