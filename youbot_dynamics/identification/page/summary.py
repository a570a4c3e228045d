"""The report in one sentence: how much was identified, the delays, and what feedback does to the errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, PathComparison
from youbot_dynamics.identification.page.error_table import statistics
from youbot_dynamics.identification.page.verdicts import asked_and_beside
from youbot_dynamics.identification.page.words import STAGE_TITLES, listed, minus, sentence, shown
from youbot_dynamics.identification.result import Result

_NEGLIGIBLE = 2e-3  # [m, rad] RMSE below which how many times smaller it became means nothing
_EFFECTIVE = "robot.base.delay.effective_"


def summary(result: Result, paths: Sequence[PathComparison]) -> str:
    """One sentence."""
    clauses = [*_counts(result), *_delays(result), *_changes(paths)]
    return sentence("; ".join(clauses) or "nothing was identified") + "."


def _counts(result: Result) -> list[str]:
    """How many of the numbers of each stage were identified."""
    counts: list[str] = []
    for stage, title in STAGE_TITLES.items():
        findings = () if stage in result.missing else result.of_stage(stage)
        if findings:
            asked, _ = asked_and_beside(findings)
            what = f"{sum(finding.identified for finding in asked)} of {len(asked)}"
            counts.append(f"{what}{'' if counts else ' numbers'} for the {title}")
    return [f"identified: {listed(counts)}"] if counts else []


def _delays(result: Result) -> list[str]:
    """The effective delays of the base."""
    found: list[str] = []
    missing = []
    for finding in result.findings:
        if not finding.name.startswith(_EFFECTIVE):
            continue
        axis = finding.name.removeprefix(_EFFECTIVE)
        if not finding.identified:
            missing.append(axis)
            continue
        one = shown(finding)
        lead = "" if found else "95 % interval "
        found.append(f"{minus(one.value)} {one.unit} in {axis} ({lead}{minus(one.low)} to {minus(one.high)})")
    clauses = [f"the base follows its commands after {listed(found)}"] if found else []
    if missing:
        clauses.append(f"the delay{'s' * (len(missing) > 1)} in {listed(missing)} could not be identified")
    return clauses


def _changes(paths: Sequence[PathComparison]) -> list[str]:
    """What feedback does to the RMSE of position and heading."""
    tables = [(path.name, statistics(path)) for path in paths]
    clauses = []
    for quantity, unit in (("position", "mm"), ("heading", "mrad")):
        changes = []
        for name, table in tables:
            if OPEN_LOOP in table and FEEDBACK in table:
                before, after = (getattr(table[row], f"{quantity}_rmse") for row in (OPEN_LOOP, FEEDBACK))
                changes.append(f"{_change(before, after, unit)} on {name}")
        if changes:
            lead = "with feedback instead of open loop " if quantity == "position" else ""
            clauses.append(f"{lead}the {quantity} RMSE is {listed(changes)}")
    return clauses


def _change(before: float, after: float, unit: str) -> str:
    """How many times smaller (or larger) an RMSE [m or rad] became; unit: of its thousandth."""
    if not (np.isfinite(before) and np.isfinite(after)):
        return "unknown"
    if before < _NEGLIGIBLE:
        both = after < _NEGLIGIBLE
        return f"below {1e3 * _NEGLIGIBLE:g} {unit} both times" if both else f"up to {1e3 * after:.3g} {unit}"
    ratio = before / max(after, 1e-9)
    word, ratio = ("smaller", ratio) if ratio >= 1.0 else ("larger", 1.0 / ratio)
    return f"{ratio:.{0 if ratio >= 10.0 else 1}f} times {word}"
