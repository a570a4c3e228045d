"""What is asked of a fit, what came out, and whether it can be trusted: the verdict comes from the interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector

IDENTIFIED = "identified"
# Of the intervals of all stages but the thermal one, whose errors are known: `_REACH` there.
CONFIDENCE = 0.95
# A half-width beyond this share of the value says nothing useful.
WIDEST_SHARE = 0.5
# Estimates that correlate more than this are named in a refusal: the data told their sum, not each.
_ALIKE = 0.9
_HOPELESS = 10.0  # times the interval that is needed, beyond which longer data of the same kind are no advice


@dataclass(frozen=True)
class Unknown:
    """An unknown of a linear model."""

    name: str  # as the result calls it, e.g. "viscous_y"
    unit: str  # of its value
    low: float = -math.inf  # smallest physical value; a fit beyond it is put there and said to be
    high: float = math.inf  # largest physical value
    resolution: float = 0.0  # a half-width below this is good enough however small the value is: friction may be nil
    # Why its regressor may be zero throughout, said of what the robot did
    unexcited: str = "nothing in the data depends on it"


@dataclass(frozen=True)
class Estimate:
    """Value of one unknown.

    Args:
        name: of the unknown.
        unit: of value, standard_error and interval.
        value: NaN where the data do not determine it.
        standard_error: from the scatter between blocks; infinite or NaN where nothing is known.
        interval: 95 % interval.
        verdict: "identified", or "not identifiable: " and the reason.
        bound: the physical bound the value was put at, None where it was free.
    """

    name: str
    unit: str
    value: float
    standard_error: float
    interval: tuple[float, float]
    verdict: str
    bound: float | None = None

    @property
    def identified(self) -> bool:
        """The verdict as a switch."""
        return self.verdict == IDENTIFIED


def refusal(reason: str) -> str:
    """Verdict that something cannot be identified, and why."""
    return f"not identifiable: {reason}"


def undetermined(unknown: Unknown, reason: str) -> Estimate:
    """Estimate of an unknown that the data leave open."""
    nan = math.nan
    return Estimate(unknown.name, unknown.unit, nan, nan, (nan, nan), refusal(reason))


def judge(unknown: Unknown, value: float, standard_error: float, reach: float, alike: Sequence[str] = ()) -> Estimate:
    """Estimate with its verdict: identified where the half-width of value +-reach is at most half the value.

    A value outside the physical range is put at its bound, and never counts as identified. `alike` are the unknowns
    whose estimates correlate strongly with this one.
    """
    interval = (value - reach, value + reach)
    limited = min(max(value, unknown.low), unknown.high)
    bound = None if unknown.low <= value <= unknown.high else limited
    clipped = (max(interval[0], min(unknown.low, limited)), min(interval[1], max(unknown.high, limited)))
    if bound is not None:
        clipped = (min(max(interval[0], unknown.low), unknown.high), min(max(interval[1], unknown.low), unknown.high))
    reason = _reason(unknown, value, reach, bound, alike)
    verdict = refusal(reason) if reason else IDENTIFIED
    return Estimate(unknown.name, unknown.unit, limited, standard_error, clipped, verdict, bound)


def _reason(unknown: Unknown, value: float, reach: float, bound: float | None, alike: Sequence[str]) -> str:
    """Why an estimate is useless, "" where it is useful."""
    if not math.isfinite(reach):
        return "only one block of the recording contains information on it, several are needed"
    if bound is not None:
        inside = abs(value - bound) <= reach
        hint = "" if inside else ": the model lacks something, or a signal has the wrong sign"
        return f"the data ask for {value:.3g} +-{reach:.2g} {unknown.unit}, beyond its physical bound {bound:g}{hint}"
    wanted = max(WIDEST_SHARE * abs(value), unknown.resolution)
    if reach <= wanted:
        return ""
    told = f"; it cannot be distinguished from {', '.join(alike)} in these data" if alike else ""
    wide = f"the interval of +-{reach:.2g} {unknown.unit} is too wide for a value of {value:.3g}"
    return wide + needed(reach, wanted) + told


def needed(reach: float, wanted: float) -> str:
    """What an interval of +-reach lacks to be +-wanted: its width goes with the root of the length of the data."""
    longer = f", some {(reach / wanted) ** 2:.2g} times these data" if 0.0 < reach < _HOPELESS * wanted else ""
    return f"; +-{wanted:.2g} or less is needed{longer}"


def alike(names: Sequence[str], correlation: Vector) -> list[list[str]]:
    """For each of p estimates the names of the others that correlate with it above 0.9; correlation (p, p)."""
    strong = np.abs(np.nan_to_num(correlation)) > _ALIKE
    return [[name for j, name in enumerate(names) if row[j] and j != i] for i, row in enumerate(strong)]
