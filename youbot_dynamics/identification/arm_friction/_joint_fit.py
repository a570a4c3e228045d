"""Friction of one joint from the fit of all joints: coefficients, totals at three speeds, and their verdicts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.identification.arm_friction._rows import PARTS, JointRows, stribeck_share
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    Unknown,
    judge,
    strength,
    undetermined,
    values_of,
    widened,
)

_AGAINST = Reason(
    Kind.WRONG_SIGNALS, "the efforts of this joint have the wrong sign relative to its friction: check their sign"
)
_CONSTANT = Reason(
    Kind.NOT_EXCITED,
    "the joint slid at one speed only, which determines only the total friction there; needed: two speeds",
)
_ONE_DIRECTION = Reason(
    Kind.NOT_EXCITED,
    "the joint slid in one direction only, so weight and friction look the same; needed: both directions",
)
_DECREASING = Reason(
    Kind.UNEXPLAINED,
    "friction decreases with speed and no Stribeck curve explains it: friction at low speed is unknown",
)
_NEGATIVE_COULOMB = Reason(
    Kind.UNEXPLAINED,
    "the best fit has a negative Coulomb torque: the model lacks an effect, such as a delay of the efforts",
)
# Friction that falls as a gear warms up begins further from its mean than a straight line does, by about this factor.
_WARMING = 1.25


@dataclass(frozen=True, eq=False)
class JointFit:
    """Fit of one joint."""

    name: str  # of the joint
    estimates: tuple[Estimate, ...]  # Coulomb and viscous friction, Stribeck term if the model has one, and offset
    explained: float  # R^2 of its torque over the windows used
    windows: int  # number of them
    speeds: tuple[float, float]  # smallest and largest speed in them [rad/s]: the valid range of the friction
    # Total friction at three of these speeds, "joint_total_at_0.25"; may be identified when its parts are not
    totals: tuple[Estimate, ...] = ()
    total_speeds: tuple[float, ...] = ()  # [rad/s]

    def __getitem__(self, name: str) -> Estimate:
        """Estimate by its name without that of the joint: "coulomb", "viscous", "stribeck", "offset"."""
        return {estimate.name: estimate for estimate in self.estimates}[f"{self.name}_{name}"]

    def with_rivals(self, fit: Fit, rivals: Sequence[Rival]) -> JointFit:
        """The fit with what rivals change in its errors; `fit` gives the bounds and the width of the intervals."""
        unknowns, multiple = (*fit.unknowns, *(_total(total.name) for total in self.totals)), fit.half_width(1.0)
        estimates, totals = (widened(group, unknowns, rivals, multiple) for group in (self.estimates, self.totals))
        return dataclasses.replace(self, estimates=estimates, totals=totals)

    def changes_to(
        self, values: Mapping[str, float], row: JointRows, added: Callable[[float], float] = lambda speed: 0.0
    ) -> dict[str, float]:
        """What other values change, by name; their total friction at a speed is `added` more than coefficients say.

        `row` is that of the joint in the fit of these values. If that has a further term of friction, they are those
        before any bound: a total is their sum with the term that brings it back.
        """
        changes = {one.name: values.get(one.name, math.nan) - one.value for one in self.estimates}
        for total, speed in zip(self.totals, self.total_speeds, strict=True):
            parts = np.array([values.get(f"{self.name}_{part}", math.nan) for part in PARTS])
            changes[total.name] = float(_total_columns(row, speed) @ np.nan_to_num(parts)) + added(speed) - total.value
        return changes


def _total(name: str) -> Unknown:
    return Unknown(name, "N m", low=0.0)


def _total_columns(row: JointRows, speed: float) -> Vector:
    """Factors (5,) of PARTS in the total friction at a speed."""
    columns = np.zeros(len(PARTS))
    columns[[PARTS.index("coulomb"), PARTS.index("viscous")]] = 1.0, speed
    if row.stribeck_speed > 0.0:
        columns[[PARTS.index("stribeck"), PARTS.index("bend")]] = np.ravel(
            stribeck_share(np.array([speed]), row.stribeck_speed)
        )
    return columns


def refused_joint(joint: str, reason: Reason) -> JointFit:
    """Fit of a joint with every value refused for one reason."""
    units = (("coulomb", "N m"), ("viscous", "N m s/rad"), ("offset", "N m"))
    estimates = tuple(undetermined(Unknown(f"{joint}_{quantity}", unit), reason) for quantity, unit in units)
    return JointFit(joint, estimates, math.nan, 0, (math.nan, math.nan))


def joint_fit(fit: Fit, name: str, row: JointRows, explained: float, first: int, hidden: bool) -> JointFit:
    """Estimates of one joint with verdicts that depend on its motion; `hidden` means that weight hides its friction."""
    estimates = list(fit.estimates[first : first + PARTS.index("bend")])
    speeds = np.abs(row.speed)
    evaluated = [np.mean(speeds)] if row.one_speed else np.quantile(speeds, (0.05, 0.5, 0.95))
    total_speeds = tuple(map(float, evaluated))
    totals = [_total_friction(fit, name, row, speed, first) for speed in total_speeds]
    errors = np.sqrt(np.nan_to_num(np.diag(fit.covariance)[first : first + 2]))
    negative = fit.values[first : first + 2] < -fit.half_width(1.0) * errors
    if hidden:
        estimates, totals = (
            [undetermined(Unknown(estimate.name, estimate.unit), _ONE_DIRECTION) for estimate in group]
            for group in (estimates, totals)
        )
    elif totals[len(totals) // 2].bound is not None:
        # The remaining values were solved for again with this total at its bound.
        estimates[1:3], totals = (
            [estimate.refused_if_identified(_AGAINST) for estimate in group] for group in (estimates[1:3], totals)
        )
        estimates[0] = estimates[0].refused(_AGAINST)
    elif row.one_speed:
        estimates[:2] = [undetermined(Unknown(estimate.name, estimate.unit), _CONSTANT) for estimate in estimates[:2]]
    elif negative[0]:
        estimates[1:2], totals = (
            [estimate.refused(_NEGATIVE_COULOMB) for estimate in group] for group in (estimates[1:2], totals)
        )
    elif row.stribeck_speed == 0.0 and negative[1]:
        estimates[0], totals[0] = (estimate.refused(_DECREASING) for estimate in (estimates[0], totals[0]))
    if row.stribeck_speed == 0.0:
        del estimates[PARTS.index("stribeck")]
    limits = (float(speeds.min()), float(speeds.max()))
    return JointFit(name, tuple(estimates), explained, len(row.time), limits, tuple(totals), total_speeds)


def _total_friction(fit: Fit, name: str, row: JointRows, speed: float, first: int) -> Estimate:
    """Total friction at a speed from coefficients within their bounds; its interval is that without bounds."""
    columns = _total_columns(row, speed)
    part = slice(first, first + len(PARTS))
    columns = np.where(np.isfinite(fit.values[part]), columns, 0.0)
    unknown = _total(f"{name}_total_at_{speed:.3g}")
    if not np.any(columns):
        return undetermined(unknown, _CONSTANT)
    matrix = np.zeros((1, len(fit.unknowns)))
    matrix[0, part] = columns
    unbounded = fit.combination(matrix, [unknown])[0]
    if unbounded.bound is not None or all(estimate.bound is None for estimate in fit.estimates[part]):
        return unbounded
    bounded = float(columns @ np.nan_to_num([estimate.value for estimate in fit.estimates[part]]))
    return judge(unknown, bounded, unbounded.standard_error, fit.half_width(unbounded.standard_error))


def power_rival(joint: JointFit, row: JointRows, other: Fit, term: str, exponent: float) -> Rival:
    """A further term of friction, a power of the speed, whose factor is the unknown `term` of another fit."""
    coefficient, error = values_of(other)[term], other.half_width(other[term].standard_error)
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        "friction does not follow Coulomb + viscous (+ Stribeck): the torques also contain a term of "
        f"{coefficient:.2g} +-{error:.2g} N m times |v|^{exponent:g}, v in rad/s",
    )
    changes = joint.changes_to(values_of(other), row, lambda speed: coefficient * speed**exponent)
    return Rival(reason, changes, strength(other, [term]))


def late_rival(joint: JointFit, row: JointRows, other: Fit, delay: float) -> Rival:
    """Efforts of the joint with a delay [s] of their own, as in another fit."""
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"the efforts of this joint are some {1e3 * delay:.0f} ms {'later' if delay > 0.0 else 'earlier'} than those "
        "of the others: remove their filter, or check the stamps",
    )
    return Rival(reason, joint.changes_to(bounded_values(other), row))


def bounded_values(fit: Fit) -> dict[str, float]:
    """Values of a fit within their bounds, by name; NaN where undetermined."""
    return {one.name: one.value for one in fit.estimates}


def drift_rival(joint: JointFit, other: Fit, term: str, quantity: str) -> Rival:
    """A change of `quantity` during the recordings, from the middle of each to its end the unknown `term`."""
    change, mean = values_of(other)[term], joint[quantity]
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"the {quantity} friction of the joint changes from {mean.value - change:.3g} to {mean.value + change:.3g} "
        f"{mean.unit} within a recording, as when a gear warms up; needed: a recording of the warm joint",
    )
    changes = {mean.name: _WARMING * change}
    for total, speed in zip(joint.totals, joint.total_speeds, strict=True):
        changes[total.name] = _WARMING * change * (1.0 if quantity == "coulomb" else speed)
    return Rival(reason, changes, strength(other, [term]))
