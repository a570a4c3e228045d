"""Verdict table of the report: every number that was looked for, stage by stage, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.page.words import (
    NOT_AVAILABLE,
    PLUS_MINUS,
    STAGE_REMARKS,
    STAGE_TITLES,
    minus,
    scroller,
    sentence,
    shown,
    significant,
    text,
)
from youbot_dynamics.identification.result import Result

_LONG = 12  # rows beyond which a table can be folded
_COLUMNS = ("Parameter", "Value", "95&nbsp;% interval", "Unit", "Verdict")


def verdict_tables(result: Result) -> str:
    """One table a stage; a stage for which the recordings hold nothing is one line with the reason."""
    used = [stage for stage in STAGE_TITLES if stage in result.missing or result.of_stage(stage)]
    return "".join(_stage(stage, result) for stage in used) or "<p>Nothing was looked for.</p>"


def asked_and_beside(findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Findings of a stage that are parameters of the robot, all where it has none, and those found beside them."""
    asked = [finding for finding in findings if finding.is_parameter] or list(findings)
    return asked, [finding for finding in findings if finding not in asked]


def _identified(findings: Sequence[Finding]) -> int:
    return sum(finding.identified for finding in findings)


def _stage(stage: str, result: Result) -> str:
    title = text(sentence(STAGE_TITLES[stage]))
    if stage in result.missing:
        reason = text(result.missing[stage])
        return f"<h3>{title}</h3><p>{_MARK_REFUSED} <strong>nothing to work with</strong>: {reason}</p>"
    findings = result.of_stage(stage)
    asked, beside = asked_and_beside(findings)
    count = f"{_identified(asked)} of {len(asked)} identified"
    count += f", and {_identified(beside)} of {len(beside)} beside them" if beside else ""
    table = _table(title, findings)
    if len(findings) > _LONG:
        table = f"<details open><summary>{count}</summary>{table}</details>"
    else:
        table = f'<p class="note">{count}</p>{table}'
    remark = STAGE_REMARKS.get(stage, "")
    remarks = [*_shared(findings), *([remark] if remark else [])]
    note = "".join(f"{text(sentence(words))}. " for words in remarks).strip()
    return f"<h3>{title}</h3>{table}" + (f'<p class="note">{note}</p>' if note else "")


# The roles say what the tags say: on a phone the rows become blocks, and browsers then forget the tags.
def _table(title: str, findings: Sequence[Finding]) -> str:
    shared = _shared(findings)
    head = "".join(f'<th scope="col" role="columnheader">{column}</th>' for column in _COLUMNS)
    asked, beside = asked_and_beside(findings)
    groups = [("", asked)] + ([("Beside them, no parameters of the robot", beside)] if beside else [])
    rows = "".join(_group(words, of_group, shared) for words, of_group in groups)
    return scroller(
        f"Verdicts: {title}",
        f'<table class="verdicts" role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>{rows}</table>',
    )


def _group(words: str, findings: Sequence[Finding], shared: Sequence[str]) -> str:
    """Rows under a heading, "" for none."""
    heading = f'<tr role="row"><th colspan="5" scope="rowgroup" class="group">{words}</th></tr>' if words else ""
    rows = "".join(_row(finding, shared) for finding in findings)
    return f'<tbody role="rowgroup">{heading}{rows}</tbody>'


def _row(finding: Finding, shared: Sequence[str]) -> str:
    one = shown(finding)
    interval = f"{minus(one.low)} to {minus(one.high)}" if one.low and one.high else ""
    facts = [fact for fact in _facts(finding) if fact not in shared]
    small = f'<br><span class="note">{text("; ".join(facts))}</span>' if facts else ""
    state = "" if finding.identified else ' class="refused"'
    return (
        f'<tr role="row"{state}><th scope="row" role="rowheader">{text(one.name)}</th>'
        f'<td role="cell" class="value">{minus(one.value)}</td><td role="cell" class="interval">{interval}</td>'
        f'<td role="cell" class="unit">{text(one.unit)}</td>'
        f'<td role="cell" class="words">{_verdict(finding)}{small}</td></tr>'
    )


_MARK_REFUSED = '<span class="mark" aria-hidden="true">\u2717</span>'
_MARK_IDENTIFIED = '<span class="mark" aria-hidden="true">\u2713</span>'


def _verdict(finding: Finding) -> str:
    """The verdict with a mark that shows without colour, and whether the value was put at a bound."""
    one = finding.estimate
    tags = "" if one.bound is None else f' <span class="tag">at bound {minus(f"{one.bound:g}")}</span>'
    if finding.identified:
        return f"{_MARK_IDENTIFIED} {text(one.verdict)}{tags}"
    tags += f' <span class="tag">used as part of {text(finding.part_of)}</span>' if finding.part_of else ""
    head, _, reason = one.verdict.partition(": ")
    return f"{_MARK_REFUSED} <strong>{text(head)}</strong>{tags}" + (
        f": {text(reason.replace('+-', PLUS_MINUS))}" if reason else ""
    )


def _facts(finding: Finding) -> list[str]:
    """What else is known of a finding: what it rests on, where it holds, further numbers."""
    facts = [f"{finding.samples} samples"] if finding.samples else []
    facts += [f"holds for {finding.valid_for}"] if finding.valid_for else []
    for name, value in finding.details.items():
        said = str(value) if isinstance(value, str) else f"{value:g}" if value.is_integer() else significant(value)
        facts += [f"{name} {said}"] if said not in ("", NOT_AVAILABLE) else []
    return facts


def _shared(findings: Sequence[Finding]) -> list[str]:
    """Facts that hold for every finding of a stage: said once, below the table."""
    if len(findings) < 2:
        return []
    others = [_facts(finding) for finding in findings[1:]]
    return [fact for fact in _facts(findings[0]) if all(fact in other for other in others)]
