"""Friction of one joint from the fit of all joints: coefficients, totals at three speeds, and their verdicts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.identification.arm_friction._rows import PARTS, JointRows, stribeck_share
from youbot_dynamics.identification.least_squares import Estimate, Fit, Kind, Reason, Unknown, judge, undetermined

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
_ANY_TOTAL = 0.01  # [N m] interval that is narrow enough for any total friction


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

    def __getitem__(self, name: str) -> Estimate:
        """Estimate by its name without that of the joint: "coulomb", "viscous", "stribeck", "offset"."""
        return {estimate.name: estimate for estimate in self.estimates}[f"{self.name}_{name}"]

    def widened(self, fit: Fit, values: Mapping[str, float], reason: Reason | None = None) -> JointFit:
        """The fit with the differences from other `values` by name in its errors, see `Fit.widened`."""

        def wider(estimate: Estimate, unknown: Unknown) -> Estimate:
            return fit.widened(estimate, unknown, values.get(estimate.name, math.nan) - estimate.value, reason)

        unknowns = {unknown.name: unknown for unknown in fit.unknowns}
        estimates = tuple(
            wider(estimate, unknowns.get(estimate.name, Unknown(estimate.name, estimate.unit)))
            for estimate in self.estimates
        )
        totals = tuple(wider(total, _total(total.name)) for total in self.totals)
        return dataclasses.replace(self, estimates=estimates, totals=totals)


def _total(name: str) -> Unknown:
    return Unknown(name, "N m", low=0.0, resolution=_ANY_TOTAL)


def speed_of(total: Estimate) -> float:
    """Speed of a total friction [rad/s]."""
    return float(total.name.rsplit("_", 1)[1])


def refused_joint(joint: str, reason: Reason) -> JointFit:
    """Fit of a joint with every value refused for one reason."""
    units = (("coulomb", "N m"), ("viscous", "N m s/rad"), ("offset", "N m"))
    estimates = tuple(undetermined(Unknown(f"{joint}_{quantity}", unit), reason) for quantity, unit in units)
    return JointFit(joint, estimates, math.nan, 0, (math.nan, math.nan))


def joint_fit(fit: Fit, name: str, row: JointRows, explained: float, first: int, hidden: bool) -> JointFit:
    """Estimates of one joint with verdicts that depend on its motion; `hidden` means that weight hides its friction."""
    estimates = list(fit.estimates[first : first + PARTS.index("bend")])
    speeds = np.abs(row.speed)
    evaluated = [np.mean(speeds)] if row.one_speed else [np.quantile(speeds, share) for share in (0.05, 0.5, 0.95)]
    totals = [total_friction(fit, name, row, float(speed), first) for speed in evaluated]
    errors = np.sqrt(np.nan_to_num(np.diag(fit.covariance)[first : first + 2]))
    negative = fit.values[first : first + 2] < -fit.half_width(1.0) * errors
    if hidden:
        estimates, totals = (
            [undetermined(Unknown(estimate.name, estimate.unit), _ONE_DIRECTION) for estimate in group]
            for group in (estimates, totals)
        )
    elif totals[len(evaluated) // 2].bound is not None:
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
    return JointFit(name, tuple(estimates), explained, len(row.time), limits, tuple(totals))


def total_friction(fit: Fit, name: str, row: JointRows, speed: float, first: int) -> Estimate:
    """Total friction at a speed from coefficients within their bounds; its interval is that without bounds."""
    columns = np.zeros(len(PARTS))
    columns[[PARTS.index("coulomb"), PARTS.index("viscous")]] = 1.0, speed
    if row.stribeck_speed > 0.0:
        columns[[PARTS.index("stribeck"), PARTS.index("bend")]] = np.ravel(
            stribeck_share(np.array([speed]), row.stribeck_speed)
        )
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


def with_power(joint: JointFit, row: JointRows, other: Fit, term: int, exponent: float) -> JointFit:
    """The joint with the changes by a power of the speed, unknown number `term` < 0 of another fit, in its errors."""
    coefficient, error = other.values[term], other.half_width(math.sqrt(other.covariance[term, term]))
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        "friction does not follow Coulomb + viscous (+ Stribeck): the torques also contain a term of "
        f"{coefficient:.2g} +-{error:.2g} N m times |v|^{exponent:g}, v in rad/s",
    )
    return _with_changes(joint, row, other, reason, lambda speed: coefficient * speed**exponent)


def with_own_delay(joint: JointFit, row: JointRows, other: Fit, delay: float) -> JointFit:
    """The joint with the changes in another fit, in which its efforts have a delay [s] of their own, in its errors."""
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"the efforts of this joint are some {1e3 * delay:.0f} ms {'later' if delay > 0.0 else 'earlier'} than those "
        "of the others: remove their filter, or check the stamps",
    )
    return _with_changes(joint, row, other, reason, lambda speed: 0.0)


def _with_changes(
    joint: JointFit, row: JointRows, other: Fit, reason: Reason, added: Callable[[float], float]
) -> JointFit:
    """The joint with the changes of its values in another fit, whose total friction has `added` at a speed more."""
    names = [unknown.name for unknown in other.unknowns]
    values = dict(zip(names, other.values.tolist(), strict=True))
    for total in joint.totals:
        speed = speed_of(total)
        rest = total_friction(other, joint.name, row, speed, names.index(joint.estimates[0].name))
        values[total.name] = rest.value + added(speed)
    return joint.widened(other, values, reason)


def with_drift(joint: JointFit, other: Fit, term: int, quantity: str) -> JointFit:
    """The joint with the change of `quantity` during the recordings, unknown number `term` < 0 of another fit.

    That unknown is the change from the middle of each recording to its end.
    """
    change = float(other.values[term])
    begin, end = (joint[quantity].value + sign * change for sign in (-1.0, 1.0))
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"the {quantity} friction of the joint changes from {begin:.3g} to {end:.3g} {joint[quantity].unit} within a "
        "recording, as when a gear warms up; needed: a recording of the warm joint",
    )
    values = {joint[quantity].name: joint[quantity].value + _WARMING * change}
    for total in joint.totals:
        values[total.name] = total.value + _WARMING * change * (1.0 if quantity == "coulomb" else speed_of(total))
    return joint.widened(other, values, reason)
