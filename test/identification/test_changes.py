"""What changed between two results: a difference counts where it exceeds the errors of both values together."""

from __future__ import annotations

from typing import Any

import pytest

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.result import Verdict, changes


def entry(name: str, value: float | None, low: float | None, high: float | None, verdict: str = "identified") -> dict:
    return {
        "name": name,
        "value": value,
        "unit": "s",
        "standard_error": None,
        "interval_95": [low, high],
        "verdict": verdict,
    }


def result(*entries: dict) -> dict[str, Any]:
    return {"robot_id": "youbot", "parameters": list(entries)}


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((1.0, 0.97, 1.03), (1.049, 1.009, 1.089), Verdict.WITHIN),  # errors of 0.03 and 0.04 together are 0.05
        ((1.0, 0.97, 1.03), (1.051, 1.011, 1.091), Verdict.CHANGED),
        ((1.051, 1.011, 1.091), (1.0, 0.97, 1.03), Verdict.CHANGED),
        # Of intervals that are not in the middle the sides towards each other count.
        ((1.0, 0.5, 1.03), (1.051, 1.011, 1.5), Verdict.CHANGED),
        ((1.051, 1.011, 1.5), (1.0, 0.5, 1.03), Verdict.CHANGED),
        ((1.0, 0.99, 1.5), (1.051, 1.011, 1.5), Verdict.WITHIN),
    ],
)
def test_a_difference_counts_beyond_both_errors_together(before: tuple, after: tuple, verdict: Verdict) -> None:
    (change,) = changes(result(entry("a", *before)), result(entry("a", *after)))
    assert change.verdict is verdict
    assert change.difference == pytest.approx(after[0] - before[0])


def test_what_one_result_alone_identified_is_said_and_what_none_did_is_left_out() -> None:
    no = "not identifiable: too little"
    before = result(entry("a", 1.0, 0.9, 1.1), entry("b", 1.0, 0.1, 1.9, no), entry("c", None, None, None, no))
    after = result(entry("b", 1.0, 0.9, 1.1), entry("c", None, None, None, no), entry("d", 1.0, 0.9, 1.1))
    verdicts = {(c.before or c.after).name: c.verdict for c in changes(before, after)}  # type: ignore[union-attr]
    assert verdicts == {"a": Verdict.ONLY_BEFORE, "b": Verdict.ONLY_AFTER, "d": Verdict.ONLY_AFTER}


@pytest.mark.parametrize("value", ["fast", [1.0], {}])
def test_a_number_that_is_none_is_refused_by_name(value: object) -> None:
    with pytest.raises(IdentificationError, match="entry speed"):
        changes(result(entry("speed", value, 0.0, 1.0)), result())  # type: ignore[arg-type]
