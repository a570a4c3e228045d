"""Changes between two results, for the terminal and the page of `youbot compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from youbot_dynamics.identification.least_squares import Estimate
from youbot_dynamics.identification.result import Change, Verdict, changes
from youbot_dynamics.report._page import page
from youbot_dynamics.report._words import Rows, brief, in_its_unit, shown

_COLUMNS = ("Parameter", "Before (95 %)", "After (95 %)", "Unit", "Difference", "Verdict")
_FEW_COLUMNS = ("changed", "before -> after (difference, 95 %)")
_ONE_DRIVE = "precision"  # name of the interval of a single recording
_NOTES = {
    "always": "these are 95 % intervals: on average, 1 of 20 unchanged values is reported as changed",
    "one drive": "the intervals of a single recording do not include the scatter between drives: a change may come from"
    " the drive, its speeds or the floor; identify several recordings together to include it",
    "shared": "both results use the same recording: values within their errors do not confirm each other",
}


def changes_shown(before: Mapping[str, Any], after: Mapping[str, Any], few: bool = False) -> Rows:
    """Table of the changes between two results of `read_result`; a `few`: of what changed alone, in words."""
    differences, notes = changes(before, after), [_NOTES["always"]]
    counts = Counter(change.verdict for change in differences)
    common = counts[Verdict.CHANGED] + counts[Verdict.WITHIN]
    summary = f"{counts[Verdict.CHANGED]} of {common} values changed by more than their combined 95 % error"
    summary = summary if common else "no value can be compared"
    for verdict in (Verdict.ONLY_BEFORE, Verdict.ONLY_AFTER):
        summary += f"; {counts[verdict]} identified {verdict.value}" if counts[verdict] else ""
    if any(_ONE_DRIVE in str(entry.get("interval_is")) for result in (before, after) for entry in result["parameters"]):
        notes.append(_NOTES["one drive"])
    if _recordings(before) & _recordings(after):
        notes.append(_NOTES["shared"])
    if before["robot_id"] != after["robot_id"]:
        notes.append(f"the results are of two robots, {before['robot_id']} and {after['robot_id']}")
    if few:
        words = {entry["name"]: entry.get("words", entry["name"]) for entry in after["parameters"]}
        return Rows(_FEW_COLUMNS, _changed(differences, words), summary, tuple(notes[1:]))
    return Rows(_COLUMNS, [_cells(change) for change in differences], summary, tuple(notes))


def _changed(differences: Iterable[Change], words: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The changed values, by their words."""
    rows: list[tuple[str, ...]] = []
    for change in differences:
        if change.verdict is Verdict.CHANGED and change.before and change.after:
            old, new = (brief(side) for side in (change.before, change.after))
            values = " ".join([old.value, *([old.unit] if old.unit != new.unit else []), "->", new.value, new.unit])
            rows.append((words[change.after.name], f"{values.strip()} ({_difference(change, change.after)})"))
    return rows


def changes_page(before: Mapping[str, Any], after: Mapping[str, Any], places: tuple[str, str]) -> str:
    """Return the changes between the results at two places as an HTML document."""
    table = changes_shown(before, after)
    return page(
        "changes.html.j2",
        title=f"What changed from {places[0]} to {places[1]}",
        robot_id=after["robot_id"],
        summary=f"{table.summary}.",
        sections={"changes": "Changes", "notes": "How to read them"},
        moving=False,
        table=table,
        changed=Verdict.CHANGED.value,
    )


def _recordings(result: Mapping[str, Any]) -> set[str]:
    """Hashes of the recordings of a result of `read_result`, as far as it names them."""
    return {source["sha256"] for source in result.get("sources", [])} - {""}


def _cells(change: Change) -> tuple[str, ...]:
    estimate = change.after or change.before
    assert estimate is not None
    difference, unit = _difference(change, estimate), shown(estimate).unit
    return estimate.name, _side(change.before), _side(change.after), unit, difference, change.verdict.value


def _difference(change: Change, estimate: Estimate) -> str:
    """Difference and its error in the unit of an estimate, "" if there is none."""
    value, error = (in_its_unit(estimate, number, change.error) for number in (change.difference, change.error))
    return f"{'+' if change.difference > 0.0 else ''}{value} +- {error}" if value else ""


def _side(estimate: Estimate | None) -> str:
    if estimate is None or not estimate.identified:
        return "not identified" if estimate else "not estimated"
    text = shown(estimate)
    return f"{text.value} ({text.low} to {text.high})"
