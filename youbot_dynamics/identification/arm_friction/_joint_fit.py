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
    undetermined,
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
            parts = np.nan_to_num([values.get(f"{self.name}_{part}", math.nan) for part in PARTS])
            changes[total.name] = float(_total_columns(row, speed) @ parts) + added(speed) - total.value
        return changes


def bounded_values(fit: Fit) -> dict[str, float]:
    """Values of a fit within their bounds, by name; NaN where undetermined."""
    return {one.name: one.value for one in fit.estimates}


def _total(name: str) -> Unknown:
    return Unknown(name, "N m", low=0.0)


def _total_columns(row: JointRows, speed: float) -> Vector:
    """Factors (5,) of PARTS in the total friction at a speed."""
    columns = np.zeros(len(PARTS))
    columns[[PARTS.index("coulomb"), PARTS.index("viscous")]] = 1.0, speed
    if row.stribeck_speed > 0.0:
        shares = stribeck_share(np.full(1, speed), row.stribeck_speed)
        columns[[PARTS.index("stribeck"), PARTS.index("bend")]] = np.ravel(shares)
    return columns


def refused_joint(joint: str, reason: Reason) -> JointFit:
    """Fit of a joint with every value refused for one reason."""
    units = (("coulomb", "N m"), ("viscous", "N m s/rad"), ("offset", "N m"))
    estimates = tuple(undetermined(Unknown(f"{joint}_{quantity}", unit), reason) for quantity, unit in units)
    return JointFit(joint, estimates, math.nan, 0, (math.nan, math.nan))


def joint_fit(fit: Fit, row: JointRows, part: slice, explained: float) -> JointFit:
    """Estimates of the joint of `row`, at places `part` of all unknowns, with verdicts that depend on its motion."""
    estimates = list(fit.estimates[part][: PARTS.index("bend")])
    speeds = np.abs(row.speed)
    evaluated = [np.mean(speeds)] if row.one_speed else np.quantile(speeds, (0.05, 0.5, 0.95))
    total_speeds = tuple(map(float, evaluated))
    totals = [_total_friction(fit, row, part, speed) for speed in total_speeds]
    errors = np.sqrt(np.nan_to_num(np.diag(fit.covariance)[part]))
    negative = fit.values[part] < -fit.half_width(1.0) * errors
    if row.hidden_by_weight:
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
    return JointFit(row.name, tuple(estimates), explained, len(row.time), limits, tuple(totals), total_speeds)


def _total_friction(fit: Fit, row: JointRows, part: slice, speed: float) -> Estimate:
    """Total friction at a speed from coefficients within their bounds; its interval is that without bounds."""
    columns = np.where(np.isfinite(fit.values[part]), _total_columns(row, speed), 0.0)
    unknown = _total(f"{row.name}_total_at_{speed:.3g}")
    if not np.any(columns):
        return undetermined(unknown, _CONSTANT)
    matrix = np.zeros((1, len(fit.unknowns)))
    matrix[0, part] = columns
    unbounded = fit.combination(matrix, [unknown])[0]
    if unbounded.bound is not None or all(estimate.bound is None for estimate in fit.estimates[part]):
        return unbounded
    bounded = float(columns @ np.nan_to_num([estimate.value for estimate in fit.estimates[part]]))
    return judge(unknown, bounded, unbounded.standard_error, fit.half_width(unbounded.standard_error))
