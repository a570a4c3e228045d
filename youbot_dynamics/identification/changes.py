"""Compare two results value by value, and decide whether their intervals explain the difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.least_squares import Estimate

CHANGED, WITHIN, ONLY_BEFORE, ONLY_AFTER = "changed", "within error", "only before", "only after"


@dataclass(frozen=True)
class Change:
    """One number in two results, identified in at least one of them."""

    before: Finding | None  # None if this result does not list it
    after: Finding | None
    difference: float = math.nan  # later minus earlier value; NaN unless both are identified
    # Half-width of the 95 % interval of the difference: root sum of squares of the half-widths towards each other.
    error: float = math.nan

    @property
    def verdict(self) -> str:
        """Whether the difference exceeds its error, or which result alone identified the number."""
        if math.isnan(self.difference):
            return ONLY_AFTER if self.after is not None and self.after.identified else ONLY_BEFORE
        return CHANGED if abs(self.difference) > self.error else WITHIN


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the changes between two results of `read_result`, without the values that neither identified.

    Raises:
        IdentificationError: an entry holds invalid numbers.
    """
    old, new = ({entry["name"]: _finding(entry) for entry in result["parameters"]} for result in (before, after))
    found = (_change(old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new]))
    return tuple(one for one in found if any(side is not None and side.identified for side in (one.before, one.after)))


def _change(before: Finding | None, after: Finding | None) -> Change:
    if before is None or after is None or not (before.identified and after.identified):
        return Change(before, after)
    difference = after.estimate.value - before.estimate.value
    lower, upper = sorted((before.estimate, after.estimate), key=lambda estimate: estimate.value)
    return Change(
        before, after, difference, math.hypot(lower.interval[1] - lower.value, upper.value - upper.interval[0])
    )


def _finding(entry: Mapping[str, Any]) -> Finding:
    try:
        numbers = (entry["value"], entry["standard_error"], *entry["interval_95"])
        value, error, low, high = (math.nan if number is None else float(number) for number in numbers)
    except (TypeError, ValueError) as problem:
        got, thing = f"{type(problem).__name__}: {problem}", f"result, entry {entry['name']}"
        raise IdentificationError(thing, got=got, expected="JSON of youbot identify", remedy="fit again") from None
    return Finding(
        entry["name"], Estimate(entry["name"], str(entry["unit"]), value, error, (low, high), entry["verdict"])
    )
