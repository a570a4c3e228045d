"""Rivals: other explanations that the data do not exclude, which widen the interval of a value or refuse it.

A rival is another fit to the same data: shorter windows, coarser readings, a further term of friction, late efforts, a
drift, brushes, another kind of loop. What it changes counts as an independent error of each value, so explanations of
one cause are one rival. If that makes the interval too wide, the rival that changes the value most is the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from youbot_dynamics.identification.least_squares._fit import Fit
from youbot_dynamics.identification.least_squares._reason import Kind, Reason
from youbot_dynamics.identification.least_squares._verdict import Estimate, Unknown, judge

SIGNIFICANT = 3.0  # standard errors of its own term above which the data show a rival
POWERS = (-1.0, 0.5, 2.0)  # of the speed, of friction that contradicts Coulomb + viscous friction
_COMPARABLE = 0.7  # share of the standard errors of the most significant one above which another one counts as well
_MAIN = 0.5  # share of an error above which its rival is the reason of a width that is too large without it, too
_UNDETERMINED = Reason(Kind.OTHER_EXPLANATION, "another explanation of the data leaves it undetermined")


@dataclass(frozen=True)
class Rival:
    """Another explanation of the data."""

    reason: Reason | None  # of a value that it refuses; None where the width of the interval says enough
    # Name of an estimate -> what it changes, not finite where the rival leaves it undetermined; no entry for one that
    # is not a part of it
    changes: Mapping[str, float]
    strength: float = math.inf  # largest of its own terms [standard errors]; infinite where it counts anyway


def strength(fit: Fit, names: Iterable[str]) -> float:
    """Largest of the unknowns with these names [standard errors], 0 if none is determined."""
    errors = {unknown.name: fit.covariance[k, k] ** 0.5 for k, unknown in enumerate(fit.unknowns)}
    values = values_of(fit)
    return max((abs(values[name]) / errors[name] for name in names if errors[name] > 0.0), default=0.0)


def values_of(fit: Fit) -> dict[str, float]:
    """Values of a fit before any bound, by the names of its unknowns; NaN where undetermined."""
    return dict(zip((unknown.name for unknown in fit.unknowns), fit.values.tolist(), strict=True))


def admitted(rivals: Sequence[Rival]) -> list[Rival]:
    """Rivals of one kind that the data show, and others that are nearly as significant as the strongest."""
    least = max([SIGNIFICANT, *(_COMPARABLE * rival.strength for rival in rivals)])
    return [rival for rival in rivals if rival.strength >= least]


def widened(
    estimates: Iterable[Estimate], unknowns: Iterable[Unknown], rivals: Sequence[Rival], multiple: float
) -> tuple[Estimate, ...]:
    """The estimates with what the rivals change in their errors, judged anew.

    A value that is refused already keeps its reason, unless that is a width to which a rival contributes most. One at a
    bound keeps its interval, since the bound hides the value.

    Args:
        estimates: of any values, by name.
        unknowns: of them; an estimate without one has no bounds, and no width suffices for any value.
        rivals: other explanations.
        multiple: half-width of an interval in standard errors.
    """
    known = {unknown.name: unknown for unknown in unknowns}
    return tuple(_widened(one, known.get(one.name, Unknown(one.name, one.unit)), rivals, multiple) for one in estimates)


def reaching(estimate: Estimate, unknown: Unknown, interval: tuple[float, float], hint: str = "") -> Estimate:
    """The estimate with an interval that holds its own, its standard error in proportion, judged anew.

    One that is refused keeps its reason. `hint` is as of `judge`.
    """
    before, half_width = (0.5 * (high - low) for low, high in (estimate.interval, interval))
    if not 0.0 < before < half_width:
        return estimate
    wider = judge(unknown, estimate.value, estimate.standard_error * half_width / before, half_width, hint, interval)
    return wider if estimate.identified else replace(wider, reason=estimate.reason)


def _widened(estimate: Estimate, unknown: Unknown, rivals: Sequence[Rival], multiple: float) -> Estimate:
    changes = [(abs(rival.changes.get(estimate.name, 0.0)), rival.reason) for rival in rivals]
    for change, reason in changes:
        if not math.isfinite(change):
            return estimate.refused_if_identified(reason or _UNDETERMINED)
    changes = [(change, reason) for change, reason in changes if change > 0.0]
    extra = math.hypot(*(change for change, _ in changes))
    error = math.hypot(estimate.standard_error, extra)
    if not changes or estimate.bound is not None or not math.isfinite(error):
        return estimate
    # The interval may be wider than its standard error tells, or longer on one side.
    value, (low, high) = estimate.value, estimate.interval
    below, above = (math.hypot(side, multiple * extra) for side in (value - low, high - value))
    wider = judge(unknown, value, error, max(below, above, multiple * error), interval=(value - below, value + above))
    change, reason = max(changes, key=lambda item: item[0])
    too_wide = estimate.reason is not None and estimate.reason.kind is Kind.TOO_WIDE and change > _MAIN * error
    if wider.identified or not (estimate.identified or too_wide):
        return replace(wider, reason=estimate.reason)
    return replace(wider, reason=reason or wider.reason)
