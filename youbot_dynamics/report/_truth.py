"""The true values of a simulated robot beside the findings: hit or miss."""

from __future__ import annotations

from collections.abc import Mapping

from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.result import Result
from youbot_dynamics.report._words import Rows, in_its_unit, shown

_COLUMNS = ("Parameter", "Found", "95 %", "Truth", "Unit", "Verdict")
_HIT, _REFUSED = "hit", "refused, no value claimed"


def reveal(result: Result, truth: Mapping[str, float]) -> Rows:
    """Compare the findings that have an interval with the truth, name -> value, and count the hits."""
    rows = [_cells(finding, truth[finding.name]) for finding in result.findings if finding.name in truth]
    claimed = [row[-1] for row in rows if row[-1] != _REFUSED]
    summary = f"{claimed.count(_HIT)} of {len(claimed)} identified values have the truth within their interval"
    return Rows(_COLUMNS, [row for row in rows if row[1]], summary)


def _cells(finding: Finding, truth: float) -> tuple[str, ...]:
    said, (low, high) = shown(finding), finding.estimate.interval
    verdict = _REFUSED
    if finding.identified:
        beyond = max(low - truth, truth - high) / (high - low)
        verdict = _HIT if beyond <= 0.0 else f"miss by {100.0 * beyond:.2g} % of the interval's width"
    value = said.value if said.low else ""
    true = in_its_unit(finding, truth, 0.5 * (high - low))
    return said.name, value, f"{said.low} to {said.high}", true, said.unit, verdict
