"""Friction of the joints of an arm, together with weight and inertia, from positions and torques.

tau = Y(q, v, a) parameters + (coulomb + stribeck exp(-(v/v_s)^2)) sign v + viscous v + offset, for every joint while it
slides with settled friction. Near rest the bristle torque has any value between plus and minus the Coulomb torque, so
such windows are left out. The offset is the difference of friction between the two directions plus any constant error
of the efforts; if the weight hides it, it is set to 0.

Source: systems 7, 9, 12.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._regressors import BaseParameters, inertial_parameters
from youbot_dynamics.identification.arm_friction._rows import (
    PARTS,
    ArmEquations,
    ArmFrictionModel,
    JointRows,
    stribeck_share,
)
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
_TOO_FAST = Reason(
    Kind.NOT_EXCITED,
    "friction falls with speed, but the joint hardly moved slowly enough to show how far; needed: slower motion",
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
    late: Reason | None = None  # why its efforts are taken to be later than those of the others, None if they are not

    def __getitem__(self, name: str) -> Estimate:
        """Estimate by its name without that of the joint: "coulomb", "viscous", "stribeck", "offset"."""
        return {estimate.name: estimate for estimate in self.estimates}[f"{self.name}_{name}"]

    def with_rivals(self, fit: Fit, rivals: Sequence[Rival]) -> JointFit:
        """The fit with what rivals change in its errors; `fit` gives the bounds and the width of the intervals."""
        unknowns = (*fit.unknowns, *(_total(total.name, total.unit) for total in self.totals))
        multiple = fit.half_width(1.0)
        estimates, totals = (widened(group, unknowns, rivals, multiple) for group in (self.estimates, self.totals))
        return replace(self, estimates=estimates, totals=totals)

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


def _total(name: str, unit: str) -> Unknown:
    return Unknown(name, unit, low=0.0)


def _total_columns(row: JointRows, speed: float) -> Vector:
    """Factors (5,) of PARTS in the total friction at a speed."""
    columns = np.zeros(len(PARTS))
    columns[[PARTS.index("coulomb"), PARTS.index("viscous")]] = 1.0, speed
    if row.stribeck_speed > 0.0:
        shares = stribeck_share(np.full(1, speed), row.stribeck_speed)
        columns[[PARTS.index("stribeck"), PARTS.index("bend")]] = np.ravel(shares)
    return columns


def refused_joint(joint: str, reason: Reason, model: ArmFrictionModel) -> JointFit:
    """Fit of a joint with every value refused for one reason."""
    units = (("coulomb", "N m"), ("viscous", "N m s/rad"), ("offset", "N m"))
    unknowns = (Unknown(f"{joint}_{quantity}", model.unit(joint, unit)) for quantity, unit in units)
    estimates = tuple(undetermined(unknown, reason) for unknown in unknowns)
    return JointFit(joint, estimates, math.nan, 0, (math.nan, math.nan))


def _joint_fit(fit: Fit, row: JointRows, part: slice, explained: float) -> JointFit:
    """Estimates of the joint of `row`, at places `part` of all unknowns, with verdicts that depend on its motion."""
    estimates = list(fit.estimates[part][: PARTS.index("bend")])
    speeds = np.abs(row.speed)
    evaluated = [np.mean(speeds)] if row.one_speed else np.quantile(speeds, (0.05, 0.5, 0.95))
    total_speeds = tuple(float(f"{speed:.3g}") for speed in evaluated)  # as in the names of the totals
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
        estimates[1:3] = [estimate.refused_if_identified(_AGAINST) for estimate in estimates[1:3]]
        estimates[0], *totals = (estimate.refused(_AGAINST) for estimate in (estimates[0], *totals))
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
    elif row.stribeck_speed <= _SLOWEST * _stribeck_speeds(row)[0]:
        # v_s may be smaller still: at zero speed the curve is then extrapolated.
        place = PARTS.index("stribeck")
        estimates[place] = estimates[place].refused_if_identified(_TOO_FAST)
    limits = (float(speeds.min()), float(speeds.max()))
    return JointFit(row.name, tuple(estimates), explained, len(row.time), limits, tuple(totals), total_speeds)


def _total_friction(fit: Fit, row: JointRows, part: slice, speed: float) -> Estimate:
    """Total friction at a speed from coefficients within their bounds; its interval holds that without bounds."""
    columns = np.where(np.isfinite(fit.values[part]), _total_columns(row, speed), 0.0)
    unknown = _total(f"{row.name}_total_at_{speed:.3g}", fit.unknowns[part.start].unit)
    if not np.any(columns):
        return undetermined(unknown, _CONSTANT)
    matrix = np.zeros((1, len(fit.unknowns)))
    matrix[0, part] = columns
    unbounded = fit.combination(matrix, [unknown])[0]
    if unbounded.bound is not None or all(estimate.bound is None for estimate in fit.estimates[part]):
        return unbounded
    bounded = float(columns @ np.nan_to_num([estimate.value for estimate in fit.estimates[part]]))
    error = math.hypot(unbounded.standard_error, bounded - unbounded.value)
    return judge(unknown, bounded, error, fit.half_width(error))


# Largest half-widths of the intervals of scales and delay of the efforts [1, s], and the largest delay [s], for which
# they are fitted; otherwise bodies and friction of the joint explain the torques equally well.
_LARGEST_HALF_WIDTHS, _LONGEST_DELAY = (0.05, 0.005), 0.05
_WIDEST_SCALE = 0.25  # largest half-width of a scale, as a share of it: masses that other joints do not carry follow it
FAR = 0.2  # scale, less 1, that is further off than torque constants scatter
_ITERATIONS, _FINAL_ITERATIONS = 6, 2  # number of fits, and of the last fits without the scales that are undetermined


@dataclass(frozen=True, eq=False)
class ArmFriction:
    """Identified friction and bodies of an arm of n joints."""

    equations: ArmEquations  # what was fitted
    joints: tuple[JointFit, ...]  # [n]
    fit: Fit | None = None  # of all unknowns; None if there was nothing to fit
    # Combinations of inertial parameters that the data determine, as differences from the nominal tree; without a tree,
    # inertia and weight of each joint
    inertial: tuple[Estimate, ...] = ()
    late: float = 0.0  # delay of the efforts beyond those that are looked for [s], 0 for none
    reference: str = ""  # joint that the scales of the efforts are relative to
    taken_back: float = 0.0  # delay of the efforts that was taken from the recordings before the fit [s]

    def __getitem__(self, name: str) -> JointFit:
        """Fit of one joint by its name."""
        return {joint.name: joint for joint in self.joints}[name]

    @property
    def model(self) -> ArmFrictionModel:
        """What was fitted."""
        return self.equations.model

    @property
    def rows(self) -> tuple[JointRows, ...]:
        """Rows of the fitted joints."""
        return self.equations.rows if self.fit else ()

    @property
    def base(self) -> BaseParameters | None:
        """Definition of the combinations of inertial parameters; None without a tree or a fit."""
        return self.equations.base if self.fit else None

    @property
    def readings(self) -> tuple[Estimate, ...]:
        """Scale of the efforts of each fitted joint, less 1, and their delay [s]; empty without a tree."""
        return self.fit.estimates[self.equations.readings] if self.fit else ()

    @property
    def effort_delay(self) -> float:
        """Delay of the efforts behind the motion [s]: what was taken back, and what the fit found beside it."""
        return self.taken_back + (float(self.reading_values[-1]) if self.readings else 0.0)

    @property
    def reading_values(self) -> Vector:
        """The same as values (k + 1,), 0 where unknown."""
        return np.nan_to_num([estimate.value for estimate in self.readings])

    @functools.cached_property
    def values(self) -> Vector:
        """Values (p,) of the unknowns within their bounds, 0 if undetermined."""
        return np.nan_to_num([estimate.value for estimate in self.fit.estimates]) if self.fit else np.zeros(0)

    @property
    def friction(self) -> Vector:
        """Values of PARTS (k, 5) of the fitted joints, 0 if undetermined."""
        return self.values[len(self.values) - len(PARTS) * len(self.rows) :].reshape(-1, len(PARTS))

    @property
    def parameters(self) -> Vector:
        """Inertial parameters (10 n + nv,): nominal ones plus identified differences. Empty without a tree.

        They predict the torques of these data but may be unphysical; `_inertia` computes physical ones.
        """
        if self.model.tree is None or self.base is None:
            return np.zeros(0)
        parameters = inertial_parameters(self.model.tree)
        parameters[self.base.columns] += self.values[: len(self.base.columns)]
        return parameters

    def inertial_of(self, other: ArmFriction) -> dict[str, float]:
        """What another fit says of the inertial values of this one, by name, whatever combinations it determines."""
        tree = self.model.tree
        if tree is None or self.base is None:
            return {one.name: one.value for one in other.inertial}
        values = self.base.combination @ (other.parameters - inertial_parameters(tree))
        return dict(zip((one.name for one in self.inertial), values.tolist(), strict=True))

    def modelled(self, k: int) -> tuple[Vector, Vector]:
        """Torque (r,) of the rows of the k-th joint in `rows`, and the half-width (r,) of its 95 % band [N m].

        The band is that of the model, from the covariance of its values; readings also have their own noise.
        """
        assert self.fit is not None  # rows exist only with a fit
        table = self.equations.table(k)
        return self.rows[k].known + table @ self.values, self.fit.band(table)


def fitted_arm(equations: ArmEquations) -> ArmFriction:
    """Fit of all joints; those with efforts of the wrong sign bias the bodies, which all joints share: fit without."""
    found = _with_reference(equations)
    scales = {row.name: scale.value for row, scale in zip(equations.rows, found.readings, strict=False)}
    wrong = {
        joint.name: reason
        for joint in found.joints
        if not scales.get(joint.name, math.nan) > -1.0
        and (reason := joint["coulomb"].reason)
        and reason.kind is Kind.WRONG_SIGNALS
    }
    if equations.base is None or not wrong or len(wrong) == len(equations.rows):
        return found
    return _with_reference(equations.without(wrong))


def _with_reference(equations: ArmEquations) -> ArmFriction:
    """Fit of all joints; with a tree, scales of the efforts are relative to the joint with the largest torque."""
    if equations.base is None:
        return _solved(equations)

    def with_reference(reference: int) -> ArmFriction:
        scaled = (*(k != reference for k in range(len(equations.rows))), True)
        return replace(
            _solved(replace(equations, scaled=scaled), _ITERATIONS), reference=equations.rows[reference].name
        )

    loads = [float(np.mean(row.known**2)) for row in equations.rows]
    reference = int(np.argmax(loads))
    found = with_reference(reference)
    scales = [estimate.value for estimate in found.readings[:-1] if math.isfinite(estimate.value)]
    if len(scales) < 2 or np.count_nonzero(np.abs(scales) > FAR) <= 0.5 * len(scales):
        return found
    loads[reference] = 0.0  # most joints differ from the reference: its own scale is wrong
    return with_reference(int(np.argmax(loads)))


def _solved(equations: ArmEquations, iterations: int = 1) -> ArmFriction:
    """Fit with a number of iterations for the scales."""
    model = equations.model
    names = model.joint_names
    joints = {name: refused_joint(name, reason, model) for name, reason in equations.refused.items()}
    if not equations.rows:
        return ArmFriction(equations, tuple(joints.values()))
    try:
        fit = equations.solution()
        for remaining in reversed(range(iterations - 1)):
            readings, scaled = fit.estimates[equations.readings], equations.scaled
            if remaining < _FINAL_ITERATIONS:
                scaled = _determined(fit, readings)
            equations = equations.linearised(fit, scaled)
            fit = equations.solution()
    except IdentificationError as problem:
        reason = Reason(Kind.TOO_LITTLE_DATA, f"only {problem.got}; needed: {problem.expected}")
        return ArmFriction(equations, tuple(joints.get(name) or refused_joint(name, reason, model) for name in names))
    found = ArmFriction(equations, (), fit, fit.estimates[equations.bodies])
    for k, row in enumerate(equations.rows):
        explained = row.explained(equations.table(k) @ found.values)
        joints[row.name] = _joint_fit(fit, row, equations.friction(k), explained)
    return replace(found, joints=tuple(joints[name] for name in names))


def _determined(fit: Fit, readings: Sequence[Estimate]) -> tuple[bool, ...]:
    """Whether the interval of each scale, then of the delay, is narrow enough; a delay must also be plausible.

    A scale may have any size: a wrong torque constant or gear ratio of one joint must not bias the bodies of all. One
    that may be 0 is none: it would leave the joint's torque to the bodies that only this joint feels.
    """
    *scales, delay = readings
    half_widths = [fit.half_width(scale.standard_error) for scale in scales]
    narrow = [
        half_width <= max(_LARGEST_HALF_WIDTHS[0] * max(1.0, abs(1.0 + scale.value)), abs(scale.value) - FAR)
        and half_width <= _WIDEST_SCALE * abs(1.0 + scale.value)
        for scale, half_width in zip(scales, half_widths, strict=True)
    ]
    prompt = fit.half_width(delay.standard_error) <= _LARGEST_HALF_WIDTHS[1] and abs(delay.value) <= _LONGEST_DELAY
    return (*map(bool, narrow), bool(prompt))


_SPEEDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.8)  # values of v_s tried [rad/s]
# Largest v_s over the fastest speed; above it, or below the slowest speed, part of the curve is missing.
_LARGEST_SPEED_RATIO = 0.5
_LARGEST_REMAINDER = 0.9  # share of the unexplained torque that may remain if a curve is accepted
_SLOWEST = 1.01  # ratio to the smallest v_s within which it is at its bound
_NEWTON_STEPS, _LARGEST_STEP = 2, 0.3  # steps from the best value to the solution, and the largest of them in log(v_s)


def with_stribeck(found: ArmFriction) -> ArmFriction:
    """Add a Stribeck curve to the joints with torques that it explains better.

    (coulomb + stribeck exp(-(v/v_s)^2)) sign v; v_s is nonlinear and is searched on a grid, joint after joint, and then
    solved for; its error is an unknown of the fit, and so part of the intervals of the remaining unknowns. A curve is
    accepted if it removes at least a tenth of the unexplained torque of the joint, with friction within its physical
    bounds. Static friction at zero speed is then coulomb + stribeck; the verdicts state whether the two are
    identifiable separately. `found` has no Stribeck curves.
    """
    for k, row in enumerate(found.rows):
        slowest, fastest = _stribeck_speeds(row)
        tried = [_with_speed(found, row, speed) for speed in _SPEEDS if slowest <= speed <= fastest]
        best = max(tried, key=lambda trial: trial[row.name].explained, default=found)
        if not 1.0 - best[row.name].explained < _LARGEST_REMAINDER * (1.0 - found[row.name].explained):
            continue
        for _ in range(_NEWTON_STEPS):
            stribeck, bend = best.friction[k, [PARTS.index("stribeck"), PARTS.index("bend")]]
            step = float(np.clip(bend / stribeck, -_LARGEST_STEP, _LARGEST_STEP)) if stribeck > 0.0 else 0.0
            speed = best.model.stribeck_speed(row.joint) * math.exp(step)
            best = _with_speed(best, row, float(np.clip(speed, slowest, fastest)))
        found = best
    return found


def _stribeck_speeds(row: JointRows) -> tuple[float, float]:
    """Smallest and largest v_s [rad/s] that the motion of a joint can show."""
    slow, fast = np.quantile(np.abs(row.speed), (0.05, 1.0)).tolist()
    return slow, _LARGEST_SPEED_RATIO * fast


def _with_speed(found: ArmFriction, row: JointRows, speed: float) -> ArmFriction:
    """The fit with another v_s [rad/s] of one joint."""
    names = found.model.joint_names
    speeds = tuple(speed if j == row.joint else found.model.stribeck_speed(j) for j in range(len(names)))
    rows = tuple(replace(one, stribeck_speed=speeds[one.joint]) for one in found.rows)
    model = replace(found.model, stribeck_speeds=speeds)
    return replace(_solved(replace(found.equations, model=model, rows=rows)), reference=found.reference)
