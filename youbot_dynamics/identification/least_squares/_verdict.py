"""Unknowns and estimates of a fit, and the verdict that follows from the interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from youbot_dynamics.arrays import Vector

IDENTIFIED = "identified"
# Probability of the intervals of all stages. Where the scatter between blocks gives the errors, quantiles are of
# Student's t; where they are known, as in the thermal stage, of the normal distribution.
CONFIDENCE = 0.95
# A value with a larger relative half-width is not useful.
WIDEST_SHARE = 0.5
# Estimates with a larger correlation are named in a refusal: the data determine only a combination of them.
_ALIKE = 0.9
_HOPELESS = 10.0  # multiple of the required interval above which more data of the same kind are not advised


@dataclass(frozen=True)
class Unknown:
    """An unknown of a linear model."""

    name: str  # name in the result, such as "viscous_y"
    unit: str  # of its value
    low: float = -math.inf  # smallest physical value; a smaller estimate is set to it and reported
    high: float = math.inf  # largest physical value
    resolution: float = 0.0  # a smaller half-width is sufficient for any value, since friction may be zero
    # Why its regressor may be zero throughout, in terms of the motion
    unexcited: str = "nothing in the data depends on it"


@dataclass(frozen=True)
class Estimate:
    """Value of one unknown."""

    name: str  # of the unknown
    unit: str  # of value, standard_error and interval
    value: float  # NaN if the data do not determine it
    standard_error: float  # from the scatter between blocks; infinite or NaN if unknown
    interval: tuple[float, float]  # 95 % interval
    verdict: str  # "identified", or "not identifiable: " and the reason
    bound: float | None = None  # the physical bound the value was set to, None if no bound was active

    @property
    def identified(self) -> bool:
        """Whether the verdict is "identified"."""
        return self.verdict == IDENTIFIED

    @property
    def reason(self) -> str:
        """Why it is not identifiable, "" if it is identified."""
        return "" if self.identified else self.verdict.removeprefix(refusal(""))

    def refused(self, reason: str) -> Estimate:
        """The same with the verdict "not identifiable" for a reason."""
        return replace(self, verdict=refusal(reason))


def with_unit(number: str, unit: str) -> str:
    """A number with its unit; one of unit "1" stands alone."""
    return number if unit == "1" else f"{number} {unit}"


def refusal(reason: str) -> str:
    """Verdict "not identifiable" with its reason."""
    return f"not identifiable: {reason}"


def unsettled(budget: str) -> str:
    """Reason to refuse the values of a search that spent its budget, such as "400 evaluations", without converging."""
    return f"the search was stopped after {budget}, before it converged: record longer, with motion that varies more"


def undetermined(unknown: Unknown, reason: str) -> Estimate:
    """Estimate of an unknown that the data do not determine."""
    nan = math.nan
    return Estimate(unknown.name, unknown.unit, nan, nan, (nan, nan), refusal(reason))


def judge(
    unknown: Unknown, value: float, standard_error: float, half_width: float, alike: Sequence[str] = ()
) -> Estimate:
    """Estimate with its verdict: identified if the half-width of value +-half_width is at most half the value.

    A value outside the physical range is set to its bound and never counts as identified. `alike` are the unknowns
    whose estimates correlate strongly with this one.
    """
    low, limited, high = (
        min(max(end, unknown.low), unknown.high) for end in (value - half_width, value, value + half_width)
    )
    bound = None if unknown.low <= value <= unknown.high else limited
    reason = _reason(unknown, value, half_width, bound, alike)
    verdict = refusal(reason) if reason else IDENTIFIED
    return Estimate(unknown.name, unknown.unit, limited, standard_error, (low, high), verdict, bound)


def _reason(unknown: Unknown, value: float, half_width: float, bound: float | None, alike: Sequence[str]) -> str:
    """Why an estimate is not useful, "" if it is."""
    if not math.isfinite(half_width):
        return "only one block of the recording contains information on it; several are needed"
    if bound is not None:
        inside = abs(value - bound) <= half_width
        hint = "" if inside else ": the model lacks an effect, or a signal has the wrong sign"
        estimate = with_unit(f"{value:.3g} +-{half_width:.2g}", unknown.unit)
        return f"the fit gives {estimate}, beyond its physical bound {bound:g}{hint}"
    wanted = max(WIDEST_SHARE * abs(value), unknown.resolution)
    if half_width <= wanted:
        return ""
    confused = f"; it cannot be distinguished from {', '.join(alike)} in these data" if alike else ""
    wide = f"the interval of +-{with_unit(f'{half_width:.2g}', unknown.unit)} is too wide for a value of {value:.3g}"
    return wide + needed(half_width, wanted) + confused


def needed(half_width: float, wanted: float) -> str:
    """The interval required and the amount of data for it: the width decreases with the square root of the data."""
    longer = (
        f", about {(half_width / wanted) ** 2:.2g} times these data" if 0.0 < half_width < _HOPELESS * wanted else ""
    )
    return f"; +-{wanted:.2g} or less is needed{longer}"


def alike(names: Sequence[str], correlation: Vector) -> list[list[str]]:
    """For each of p estimates, the names of the others that correlate with it above 0.9; correlation (p, p)."""
    strong = np.abs(np.nan_to_num(correlation)) > _ALIKE
    return [[name for j, name in enumerate(names) if row[j] and j != i] for i, row in enumerate(strong)]
