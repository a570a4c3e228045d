"""What a simulated robot really is, beside what was found of it: hit or miss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.result import Result
from youbot_dynamics.report._words import Shown, shown

HIT = "hit"
REFUSED = "refused, no value claimed"


class Revealed(NamedTuple):
    """A finding with its truth, as they are written down."""

    found: Shown
    truth: str  # in the unit of the finding, with its digits
    verdict: str  # `HIT`, by how much it missed, or `REFUSED`

    @property
    def hit(self) -> bool:
        """Whether the interval holds the truth, of a value that was identified."""
        return self.verdict == HIT


def reveal(result: Result, truth: Mapping[str, float]) -> list[Revealed]:
    """Findings with a value of which the truth is known (name -> value), in their order."""
    known = [finding for finding in result.findings if finding.name in truth]
    rows = [_revealed(finding, truth[finding.name]) for finding in known]
    return [row for row in rows if row.found.value and row.found.low]


def score(rows: list[Revealed]) -> str:
    """How many of the identified values hit."""
    claimed = [row for row in rows if row.verdict != REFUSED]
    hits = sum(row.hit for row in claimed)
    return f"{hits} of {len(claimed)} identified values have the truth within their interval"


def _revealed(finding: Finding, truth: float) -> Revealed:
    found = shown(finding)
    estimate = finding.estimate
    low, high = estimate.interval
    if not finding.identified:
        verdict = REFUSED
    elif low <= truth <= high:
        verdict = HIT
    else:
        beyond = max(low - truth, truth - high) / (high - low)
        verdict = f"miss by {100.0 * beyond:.2g} % of the interval's width"
    return Revealed(found, shown(finding, truth).value, verdict)
