"""Friction of one joint as the fit of all tells it: coefficients, totals at three speeds, and their verdicts."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.identification.arm_friction._rows import PARTS, JointRows, stribeck_share
from youbot_dynamics.identification.least_squares import Estimate, Fit, Unknown, judge, refusal, undetermined

AGAINST = "the efforts of this joint have the wrong sign relative to its friction: check their sign"

_CONSTANT = "the joint slid at one speed only, which determines only the total friction there; needed: two speeds"
_ONE_WAY = "the joint slid in one direction only, so weight and friction look the same; needed: both directions"
_FALLING = "friction decreases with speed and no Stribeck curve explains it: friction at low speed is unknown"
_BEYOND = "the best fit has a negative Coulomb torque: the model lacks an effect, such as a delay of the efforts"
TOTAL = 0.01  # [N m] interval that is narrow enough for any total friction


@dataclass(frozen=True, eq=False)
class JointFit:
    """Fit of one joint."""

    name: str  # of the joint
    estimates: tuple[Estimate, ...]  # Coulomb and viscous friction and offset, and more if the model has them
    explained: float  # R^2 of its torque over the windows used
    windows: int  # number of them
    speeds: tuple[float, float]  # smallest and largest speed in them [rad/s]: the valid range of the friction
    # Total friction at three of these speeds, "joint_total_at_0.25"; may be identified when its parts are not
    totals: tuple[Estimate, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        """Estimate by its name without that of the joint: "coulomb", "viscous", "stribeck", "offset"."""
        return {estimate.name: estimate for estimate in self.estimates}[f"{self.name}_{name}"]


def refused_joint(joint: str, reason: str) -> JointFit:
    """A joint without any identified value."""
    units = (("coulomb", "N m"), ("viscous", "N m s/rad"), ("offset", "N m"))
    estimates = tuple(undetermined(Unknown(f"{joint}_{what}", unit), reason) for what, unit in units)
    return JointFit(joint, estimates, math.nan, 0, (math.nan, math.nan))


def joint_fit(found: Fit, name: str, row: JointRows, explained: float, first: int, hidden: bool) -> JointFit:
    """Estimates of one joint with verdicts that depend on its motion; `hidden` means that weight hides its friction."""
    estimates = list(found.estimates[first : first + PARTS.index("bend")])
    speeds = np.abs(row.speed)
    at = [np.mean(speeds)] if row.one_speed else [np.quantile(speeds, share) for share in (0.05, 0.5, 0.95)]
    totals = [total_friction(found, name, row, float(speed), first) for speed in at]
    errors = np.sqrt(np.nan_to_num(np.diag(found.covariance)[first : first + 2]))
    beyond = found.values[first : first + 2] < -found.half_width(1.0) * errors
    if hidden:
        estimates, totals = (
            [undetermined(Unknown(one.name, one.unit), _ONE_WAY) for one in group] for group in (estimates, totals)
        )
    elif totals[len(at) // 2].bound is not None:
        # The others were solved again with this one at its bound.
        estimates[1:3], totals = (
            [dataclasses.replace(one, verdict=refusal(AGAINST)) if one.identified else one for one in group]
            for group in (estimates[1:3], totals)
        )
        estimates[0] = dataclasses.replace(estimates[0], verdict=refusal(AGAINST))
    elif row.one_speed:
        estimates[:2] = [undetermined(Unknown(one.name, one.unit), _CONSTANT) for one in estimates[:2]]
    elif beyond[0]:
        estimates[1:2], totals = (
            [dataclasses.replace(one, verdict=refusal(_BEYOND)) for one in group] for group in (estimates[1:2], totals)
        )
    elif row.stribeck_speed == 0.0 and beyond[1]:
        estimates[0], totals[0] = (
            dataclasses.replace(one, verdict=refusal(_FALLING)) for one in (estimates[0], totals[0])
        )
    if row.stribeck_speed == 0.0:
        del estimates[PARTS.index("stribeck")]
    limits = (float(speeds.min()), float(speeds.max()))
    return JointFit(name, tuple(estimates), explained, len(row.time), limits, tuple(totals))


def total_friction(found: Fit, name: str, row: JointRows, speed: float, first: int) -> Estimate:
    """Total friction at a speed, coefficients within their bounds; the interval is that without bounds."""
    one = np.array([1.0, speed, 0.0, 0.0, 0.0])
    if row.stribeck_speed > 0.0:
        one[[PARTS.index("stribeck"), PARTS.index("bend")]] = np.ravel(
            stribeck_share(np.array([speed]), row.stribeck_speed)
        )
    own = slice(first, first + len(PARTS))
    one = np.where(np.isfinite(found.values[own]), one, 0.0)
    unknown = Unknown(f"{name}_total_at_{speed:.3g}", "N m", low=0.0, resolution=TOTAL)
    if not np.any(one):
        return undetermined(unknown, _CONSTANT)
    matrix = np.zeros((1, len(found.unknowns)))
    matrix[0, own] = one
    free = found.combination(matrix, [unknown])[0]
    if free.bound is not None or all(estimate.bound is None for estimate in found.estimates[own]):
        return free
    bounded = float(one @ np.nan_to_num([estimate.value for estimate in found.estimates[own]]))
    return judge(unknown, bounded, free.standard_error, found.half_width(free.standard_error))
