"""Unknowns and estimates of a fit, and the verdict that follows from the interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.least_squares._reason import Kind, Reason, verdict_of

# Probability of the intervals of all stages. Where the scatter between blocks gives the errors, quantiles are of
# Student's t; where they are known, as in the thermal stage, of the normal distribution.
CONFIDENCE = 0.95
NORMAL = float(ndtri(0.5 + CONFIDENCE / 2.0))  # half-width of an interval in standard errors, where these are known
# The rule of all verdicts. A half-width suffices if it is at most this share of the value, or if it is negligible.
WIDEST_SHARE = 0.5
# Share of what the data span below which a half-width is negligible: its effect on the data, as a share of the effect
# of the whole to which the value belongs, such as the friction of a joint. A part of it may be zero.
NEGLIGIBLE = 0.05
# Estimates with a larger correlation are named in a refusal: the data determine only a combination of them.
_ALIKE = 0.9
_HOPELESS = 10.0  # multiple of the required interval above which more data of the same kind are not advised


@dataclass(frozen=True)
class Unknown:
    """An unknown of a model, and what its interval must show."""

    name: str  # name in the result, such as "viscous_y"
    unit: str  # of its value
    low: float = -math.inf  # smallest physical value; a smaller estimate is set to it and reported
    high: float = math.inf  # largest physical value
    # Negligible half-width; of a part of a whole its limit, 0 for none. Infinite for values that are judged later.
    resolution: float = 0.0
    # Why its regressor may be zero throughout, in terms of the motion
    unexcited: str = "nothing in the data depends on it"
    whole: str = ""  # of which it is a part: `fit` then finds its resolution
    beside: bool = False  # whether it is no part of this whole, but negligible where its effect is, such as an offset
    share: float = WIDEST_SHARE  # largest half-width, as a share of the value


@dataclass(frozen=True)
class Estimate:
    """Value of one unknown."""

    name: str  # of the unknown
    unit: str  # of value, standard_error and interval
    value: float  # NaN if the data do not determine it
    standard_error: float  # from the scatter between blocks; infinite or NaN if unknown
    interval: tuple[float, float]  # 95 % interval
    reason: Reason | None = None  # why it is not identifiable, None if it is identified
    bound: float | None = None  # the physical bound the value was set to, None if no bound was active

    @property
    def identified(self) -> bool:
        """Whether it is identified."""
        return self.reason is None

    @property
    def verdict(self) -> str:
        """Verdict for people: "identified", or "not identifiable: " and the reason."""
        return verdict_of(self.reason)

    def refused(self, reason: Reason) -> Estimate:
        """The same, not identifiable for a reason."""
        return replace(self, reason=reason)

    def refused_if_identified(self, reason: Reason | None) -> Estimate:
        """The same, refused if it is identified and there is a reason; an earlier reason stays."""
        return self if self.reason is not None or reason is None else self.refused(reason)


class ByName:
    """A result whose estimates are found by their names: result["viscous_y"]."""

    estimates: tuple[Estimate, ...]

    def __getitem__(self, name: str) -> Estimate:
        """Estimate of one value by its name."""
        return {estimate.name: estimate for estimate in self.estimates}[name]


def with_unit(number: str, unit: str) -> str:
    """A number with its unit; one of unit "1" stands alone."""
    return number if unit == "1" else f"{number} {unit}"


def unsettled(budget: str) -> Reason:
    """Reason to refuse the values of a search that spent its budget, such as "400 evaluations", without converging."""
    text = f"the search was stopped after {budget}, before it converged: try other drives, with motion that varies more"
    return Reason(Kind.NOT_CONVERGED, text)


def undetermined(unknown: Unknown, reason: Reason | None = None) -> Estimate:
    """Estimate of an unknown that the data do not determine, without a reason because they do not depend on it."""
    nan = math.nan
    reason = reason or Reason(Kind.NOT_EXCITED, unknown.unexcited)
    return Estimate(unknown.name, unknown.unit, nan, nan, (nan, nan), reason)


def judge(
    unknown: Unknown,
    value: float,
    standard_error: float,
    half_width: float,
    hint: str = "",
    interval: tuple[float, float] | None = None,
) -> Estimate:
    """Estimate with its verdict: identified if its half-width is at most a share of the value, or negligible.

    A value outside the physical range is set to its bound and never counts as identified.

    Args:
        unknown: range of the value, and what its interval must show.
        value: of the fit.
        standard_error: of it.
        half_width: of its 95 % interval.
        hint: what else to say of an interval that is too wide, such as `confused`.
        interval: where it is not value +-half_width.
    """
    ends = interval or (value - half_width, value + half_width)
    low, limited, high = (min(max(end, unknown.low), unknown.high) for end in (ends[0], value, ends[1]))
    bound = None if unknown.low <= value <= unknown.high else limited
    reason = _reason(unknown, value, half_width, bound, hint)
    return Estimate(unknown.name, unknown.unit, limited, standard_error, (low, high), reason, bound)


def _reason(unknown: Unknown, value: float, half_width: float, bound: float | None, hint: str) -> Reason | None:
    """Why an estimate is not useful, None if it is."""
    if not math.isfinite(half_width):
        one = "only one block of the recording contains information on it; several are needed"
        return Reason(Kind.TOO_LITTLE_DATA, one)
    if bound is not None:
        inside = abs(value - bound) <= half_width
        more = "" if inside else ": the model lacks an effect, or a signal has the wrong sign"
        estimate = with_unit(f"{value:.3g} +-{half_width:.2g}", unknown.unit)
        return Reason(Kind.AT_BOUND, f"the fit gives {estimate}, beyond its physical bound {bound:g}{more}")
    wanted = max(unknown.share * abs(value), unknown.resolution)
    if half_width <= wanted:
        return None
    wide = f"the interval of +-{with_unit(f'{half_width:.2g}', unknown.unit)} is too wide for a value of {value:.3g}"
    # The width decreases with the square root of the data.
    near = 0.0 < half_width < _HOPELESS * wanted
    longer = f", about {max((half_width / wanted) ** 2, 1.1):.2g} times these data" if near else ""
    return Reason(Kind.TOO_WIDE, f"{wide}; +-{wanted:.2g} or less is needed{longer}{hint}")


def confused(names: Sequence[str]) -> str:
    """Hint that the data determine only combinations with others, "" for none."""
    return f"; it cannot be distinguished from {', '.join(names)} in these data" if names else ""


def search_ended(unit: str, bound: float) -> Reason:
    """Reason of a value whose search ended at a bound."""
    return Reason(Kind.AT_BOUND, f"the search ended at its bound, {with_unit(f'{bound:.3g}', unit)}")


def alike(names: Sequence[str], correlation: Vector) -> list[list[str]]:
    """For each of p estimates, the names of the others that correlate with it above 0.9; correlation (p, p)."""
    strong = np.abs(np.nan_to_num(correlation)) > _ALIKE
    return [[name for j, name in enumerate(names) if row[j] and j != i] for i, row in enumerate(strong)]
