"""The truth of a simulated robot beside what was found of it: hit or miss, and no claim where nothing was found."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from named_findings import named_finding

from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason
from youbot_dynamics.report import reveal


def finding(name: str, value: float, half: float, reason: Reason | None = None) -> Finding:
    return named_finding(name, Estimate(name, "s", value, half / 2.0, (value - half, value + half), reason))


FOUND = (
    finding("inside", 0.15, 0.004),
    finding("outside", 0.15, 0.004),
    finding("refused", 0.15, 0.004, Reason(Kind.TOO_LITTLE_DATA, "too little")),
    finding("without a truth", 0.15, 0.004),
)


def test_a_truth_within_the_interval_is_a_hit_and_one_outside_a_miss() -> None:
    table = reveal(
        SimpleNamespace(findings=FOUND), {"inside": 0.1534, "outside": 0.1548, "refused": 0.15, "other": 1.0}
    )
    assert [row[0] for row in table.rows] == ["inside", "outside", "refused"]
    assert [row[3] for row in table.rows] == ["153.4", "154.8", "150.0"]
    assert [row[-1] for row in table.rows] == [
        "hit",
        "miss by 10 % of the interval's width",
        "refused: no value given",
    ]
    assert table.summary == "1 of 2 identified values have the truth within their interval"


def test_a_value_without_an_interval_is_not_judged() -> None:
    nothing = replace(FOUND[0], estimate=replace(FOUND[0].estimate, value=float("nan"), interval=(float("nan"),) * 2))
    assert reveal(SimpleNamespace(findings=(nothing,)), {"inside": 0.15}).rows == []
