"""Friction of the joints of an arm, together with weight and inertia, from positions and torques.

tau = Y(q, v, a) parameters + (coulomb + stribeck exp(-(v/v_s)^2)) sign v + viscous v + offset, for every joint while it
slides with settled friction. Near rest the bristle torque has any value between plus and minus the Coulomb torque, so
such windows are left out. The offset is the difference of friction between the two directions plus any constant error
of the efforts; if the weight hides it, it is set to 0.

Source: systems 7, 9, 12.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._equations import ArmEquations, arm_equations
from youbot_dynamics.identification.arm_friction._joint_fit import JointFit, joint_fit, refused_joint
from youbot_dynamics.identification.arm_friction._regressors import BaseParameters, inertial_parameters
from youbot_dynamics.identification.arm_friction._rows import PARTS, ArmFrictionModel, JointRows, joint_rows
from youbot_dynamics.identification.least_squares import Estimate, Fit, Kind, Reason
from youbot_dynamics.identification.signals import ArmSignals

# Largest half-widths of the intervals of scales and delay of the efforts [1, s], and the largest delay [s], for which
# they are fitted; otherwise bodies and friction of the joint explain the torques equally well. A delay that is not
# fitted although it is longer than this [s] looks like viscous friction.
_LARGEST_HALF_WIDTHS, _LONGEST_DELAY, _LATE = (0.05, 0.005), 0.05, 0.02
_WIDEST_SCALE = 0.25  # largest half-width of a scale, as a share of it: masses that other joints do not carry follow it
FAR = 0.2  # scale, less 1, that is further off than torque constants scatter
_ITERATIONS, _FINAL_ITERATIONS = 6, 2  # number of fits, and of the last fits without the scales that are undetermined


@dataclass(frozen=True, eq=False)
class ArmFriction:
    """Identified friction and bodies of an arm of n joints."""

    model: ArmFrictionModel  # what was fitted
    joints: tuple[JointFit, ...]  # [n]
    equations: ArmEquations | None = None  # of the fitted joints, for `_inertia` and for plots; None without a fit
    fit: Fit | None = None  # of all unknowns; None if there was nothing to fit
    # Combinations of inertial parameters that the data determine, as differences from the nominal tree; without a tree,
    # inertia and weight of each joint
    inertial: tuple[Estimate, ...] = ()
    late: float = 0.0  # delay of the efforts that the fit cannot represent [s]

    def __getitem__(self, name: str) -> JointFit:
        """Fit of one joint by its name."""
        return {joint.name: joint for joint in self.joints}[name]

    @property
    def rows(self) -> tuple[JointRows, ...]:
        """Rows of the fitted joints."""
        return self.equations.rows if self.equations else ()

    @property
    def base(self) -> BaseParameters | None:
        """Definition of the combinations of inertial parameters; None without a tree."""
        return self.equations.base if self.equations else None

    @property
    def readings(self) -> tuple[Estimate, ...]:
        """Scale of the efforts of each fitted joint, less 1, and their delay [s]; empty without a tree."""
        return self.fit.estimates[self.equations.readings] if self.fit and self.equations else ()

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

    @functools.cached_property
    def link_factors(self) -> dict[str, tuple[float, float]]:
        """Factor of the torque of each joint over that of its nominal links, and rms of the latter over the former.

        Sorted by the torque of the nominal links, the largest first; empty without a tree or a fit.
        """
        tree = self.model.tree
        if tree is None:
            return {}
        links = inertial_parameters(tree)
        links[-tree.nv :] = 0.0  # friction of a joint that is fast resembles the inertia of its rotor
        rows = sorted(self.rows, key=lambda row: -float(np.mean(row.nominal**2)))
        return {row.name: row.factor_of(row.body @ links) for row in rows}

    def modelled(self, k: int) -> tuple[Vector, Vector]:
        """Torque (r,) of the rows of the k-th joint in `rows`, and the half-width (r,) of its 95 % band [N m].

        The band is that of the model, from the covariance of its values; readings also have their own noise.
        """
        assert self.fit is not None and self.equations is not None  # rows exist only with a fit
        table = self.equations.table(k)
        return self.rows[k].known + table @ self.values, self.fit.band(table)


def fitted_arm(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> ArmFriction:
    """Fit of n joints with the windows and Stribeck curves of the model; each recording has its own number.

    A joint that never slid, or has no effort, is refused with that reason.
    """
    rows, reasons = joint_rows(recordings, model)
    refused = {name: refused_joint(name, reason) for name, reason in reasons.items()}
    if not rows:
        return ArmFriction(model, tuple(refused.values()))
    found = _with_reference(arm_equations(model, rows), refused)
    scales = {row.name: scale.value for row, scale in zip(rows, found.readings, strict=False)}
    backward = [joint for joint in found.joints if not scales.get(joint.name, math.nan) > -1.0]
    wrong = {
        joint.name: refused_joint(joint.name, reason)
        for joint in backward
        if (reason := joint["coulomb"].reason) and reason.kind is Kind.WRONG_SIGNALS
    }
    if model.tree is None or not wrong or len(wrong) == len(rows):
        return found
    # Joints with the wrong sign bias the bodies, which all joints share.
    right = [row for row in rows if row.name not in wrong]
    return _with_reference(arm_equations(model, right), refused | wrong)


def _with_reference(equations: ArmEquations, refused: Mapping[str, JointFit]) -> ArmFriction:
    """Fit of the joints in the equations; with a tree, scales are relative to the joint with the largest torque."""
    if equations.base is None:
        return _solved(equations, refused)

    def with_reference(reference: int) -> ArmFriction:
        scaled = (*(k != reference for k in range(len(equations.rows))), True)
        return _solved(dataclasses.replace(equations, scaled=scaled), refused, _ITERATIONS)

    loads = [float(np.mean(row.known**2)) for row in equations.rows]
    reference = int(np.argmax(loads))
    found = with_reference(reference)
    scales = [estimate.value for estimate in found.readings[:-1] if math.isfinite(estimate.value)]
    if len(scales) < 2 or np.count_nonzero(np.abs(scales) > FAR) <= 0.5 * len(scales):
        return found
    loads[reference] = 0.0  # most joints differ from the reference: its own scale is wrong
    return with_reference(int(np.argmax(loads)))


def _solved(equations: ArmEquations, refused: Mapping[str, JointFit], iterations: int = 1) -> ArmFriction:
    """Fit of the joints in the equations, with a number of iterations for the scales."""
    model, late = equations.model, 0.0
    try:
        fit = equations.solution()
        for remaining in reversed(range(iterations - 1)):
            readings, scaled = fit.estimates[equations.readings], equations.scaled
            if remaining < _FINAL_ITERATIONS:
                scaled, delay = _determined(fit, readings), readings[-1]
                if equations.scaled[-1] and not scaled[-1] and _surely_late(fit, delay):
                    late = delay.value
            equations = equations.linearised(fit, scaled)
            fit = equations.solution()
    except IdentificationError as problem:
        reason = Reason(Kind.TOO_LITTLE_DATA, f"only {problem.got}; needed: {problem.expected}")
        return ArmFriction(model, tuple(refused.get(name) or refused_joint(name, reason) for name in model.joint_names))
    found = ArmFriction(model, (), equations, fit, fit.estimates[equations.bodies], late)
    joints = dict(refused)
    for k, row in enumerate(equations.rows):
        explained = row.explained(equations.table(k) @ found.values)
        joints[row.name] = joint_fit(fit, row, equations.friction(k), explained)
    return dataclasses.replace(found, joints=tuple(joints[name] for name in model.joint_names))


def _surely_late(fit: Fit, delay: Estimate) -> bool:
    return abs(delay.value) - fit.half_width(delay.standard_error) > _LATE


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
        slowest, fastest = np.quantile(np.abs(row.speed), (0.05, 1.0)) * (1.0, _LARGEST_SPEED_RATIO)
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


def _with_speed(found: ArmFriction, row: JointRows, speed: float) -> ArmFriction:
    """The fit with another v_s [rad/s] of one joint."""
    assert found.equations is not None  # there are rows
    names = found.model.joint_names
    speeds = tuple(speed if j == row.joint else found.model.stribeck_speed(j) for j in range(len(names)))
    rows = tuple(dataclasses.replace(one, stribeck_speed=speeds[one.joint]) for one in found.rows)
    model = dataclasses.replace(found.model, stribeck_speeds=speeds)
    sliding = {one.name for one in rows}
    refused = {joint.name: joint for joint in found.joints if joint.name not in sliding}
    equations = dataclasses.replace(found.equations, model=model, rows=rows)
    return dataclasses.replace(_solved(equations, refused), late=found.late)
