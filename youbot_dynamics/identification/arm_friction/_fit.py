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
from youbot_dynamics.identification.arm_friction._joint_fit import (
    JointFit,
    bounded_values,
    drift_rival,
    joint_fit,
    late_rival,
    power_rival,
    refused_joint,
)
from youbot_dynamics.identification.arm_friction._regressors import (
    BaseParameters,
    inertial_parameters,
)
from youbot_dynamics.identification.arm_friction._rows import (
    PARTS,
    ArmFrictionModel,
    JointRows,
    determined_bodies,
    further_term,
    joint_refusal,
    joint_regressors,
    joint_rows,
    joint_solution,
)
from youbot_dynamics.identification.arm_friction._windows import shortest
from youbot_dynamics.identification.least_squares import (
    SIGNIFICANT,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    admitted,
    values_of,
)
from youbot_dynamics.identification.signals import ArmSignals

# Largest half-widths of the intervals of scales and delay of the efforts [1, s], and the largest delay [s], for which
# they are fitted; otherwise bodies and friction of the joint explain the torques equally well. A delay that is not
# fitted although it is longer than this [s] looks like viscous friction.
_LARGEST_HALF_WIDTHS, _LONGEST_DELAY, _LATE = (0.05, 0.005), 0.05, 0.02
_WIDEST_SCALE = 0.25  # largest half-width of a scale, as a share of it: masses that other joints do not carry follow it
FAR = 0.2  # scale, less 1, that is further off than torque constants scatter
_ITERATIONS, _FINAL_ITERATIONS = 6, 2  # number of fits, and of the last fits without the scales that are undetermined
# Largest change of a value with windows of half the length, in combined standard errors and relative to the value.
_LARGEST_CHANGE, _LARGEST_RELATIVE_CHANGE = 2.0, 0.01
_EXPONENTS = (-1.0, 0.5, 2.0)  # powers of the speed that are tried as a further term of friction
_ALIKE = 0.002  # [s] by which the efforts of joints may be apart


@dataclass(frozen=True, eq=False)
class ArmFriction:
    """Identified friction and bodies of an arm of n joints."""

    model: ArmFrictionModel  # what was fitted
    joints: tuple[JointFit, ...]  # [n]
    # Combinations of inertial parameters that the data determine, as differences from the nominal tree; without a tree,
    # inertia and weight of each joint
    inertial: tuple[Estimate, ...] = ()
    readings: tuple[Estimate, ...] = ()  # scale of the efforts of each joint, and their delay; empty without a tree
    base: BaseParameters | None = None  # definition of these combinations; None without a tree
    fit: Fit | None = None  # of all unknowns; None if there was nothing to fit
    rows: tuple[JointRows, ...] = ()  # fitted rows, for `_inertia` and for plots
    # (p,) values of the unknowns, within their bounds, 0 if undetermined
    values: Vector = dataclasses.field(default_factory=lambda: np.zeros(0))
    offsets: tuple[bool, ...] = ()  # whether each joint in `rows` has an offset
    scaled: tuple[bool, ...] = ()  # whether each joint in `rows` has a scale, and whether there is a delay
    late: float = 0.0  # delay of the efforts that the fit cannot represent [s]

    def __getitem__(self, name: str) -> JointFit:
        """Fit of one joint by its name."""
        return {joint.name: joint for joint in self.joints}[name]

    @property
    def parameters(self) -> Vector:
        """Inertial parameters (10 n + nv,): nominal ones plus identified differences. Empty without a tree.

        They predict the torques of these data but may be unphysical; `_inertia` computes physical ones.
        """
        if self.model.tree is None or self.base is None or not len(self.values):
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
        if tree is None or self.fit is None:
            return {}
        links = inertial_parameters(tree)
        links[-tree.nv :] = 0.0  # friction of a joint that is fast resembles the inertia of its rotor
        rows = sorted(self.rows, key=lambda row: -float(np.mean(row.nominal**2)))
        return {self.model.joint_names[row.joint]: row.factor_of(row.body @ links) for row in rows}

    @property
    def reading_values(self) -> Vector:
        """Scale of each joint's efforts less 1 (k,), then their delay [s]; 0 where unknown, empty without a tree."""
        first = len(self.values) - len(PARTS) * len(self.rows)
        return self.values[first - len(self.readings) : first]

    def modelled(self, k: int) -> tuple[Vector, Vector]:
        """Torque (r,) of the rows of the k-th joint in `rows`, and the half-width (r,) of its 95 % band [N m].

        The band is that of the model, from the covariance of its values; readings also have their own noise.
        """
        row = self.rows[k]
        table = joint_regressors(self.rows, k, row, self.base, self.offsets, self.scaled)
        assert self.fit is not None  # rows exist only with a fit
        return row.known + table @ self.values, self.fit.band(table)


def identify_arm_friction(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> ArmFriction:
    """Identify friction, weight and inertia of n joints; each recording has its own number.

    A joint that never slid, or has no effort, is refused with that reason. Unless the model gives Stribeck speeds,
    joints get a Stribeck curve if the data support it, see `with_stribeck`. Windows are halved until no friction
    changes by more than 2 combined standard errors; a value that still changes with the shortest windows is refused.
    The last change counts as an error. Slow readings begin with wider windows, so that there are shorter ones.
    """
    shortest_half_width = shortest(recordings)
    if 2.0 * shortest_half_width > 1.5 * model.half_width:
        model = dataclasses.replace(model, half_width=2.0 * shortest_half_width)

    def with_other_errors(found: ArmFriction) -> ArmFriction:
        found = _with_shape_errors(_with_reading_errors(found, recordings))
        reason = Reason(
            Kind.OTHER_EXPLANATION,
            f"the efforts are {1e3 * found.late:.0f} ms behind the motion, which looks like viscous friction: remove "
            "the filter of the efforts, or check the stamps",
        )
        return _refuse_estimates(found, {f"{joint.name}_viscous": reason for joint in found.joints if found.late})

    identification = _identify(recordings, model)
    while True:
        if not model.stribeck_speeds:
            identification = with_stribeck(identification)
        half_width = max(0.5 * identification.model.half_width, shortest_half_width)
        if half_width >= identification.model.half_width:
            return with_other_errors(identification)
        finer = _identify(recordings, dataclasses.replace(identification.model, half_width=half_width))
        if changed := _window_dependent(identification, finer):  # more than the steps of the encoders explain?
            both = (_with_reading_errors(found, recordings) for found in (identification, finer))
            changed = _window_dependent(*both)
        if not changed:
            return with_other_errors(_with_window_errors(identification, finer))
        if half_width == shortest_half_width:
            return with_other_errors(_refuse_estimates(_with_window_errors(finer, identification), changed))
        identification = finer


def _window_dependent(coarser: ArmFriction, finer: ArmFriction) -> dict[str, Reason]:
    """Names of identified values in `finer` that differ from those in `coarser`, with the reason to refuse them.

    Combinations of inertial parameters of a tree are not included, because other windows may determine other
    combinations.
    """
    before, after = (
        [
            *(identification.inertial if identification.base is None else ()),
            *(estimate for joint in identification.joints for estimate in joint.estimates),
        ]
        for identification in (coarser, finer)
    )
    known, reasons = {estimate.name: estimate for estimate in before}, {}
    for finer_estimate in after:
        estimate = known.get(finer_estimate.name, finer_estimate)
        tolerance = max(
            _LARGEST_CHANGE * math.hypot(estimate.standard_error, finer_estimate.standard_error),
            _LARGEST_RELATIVE_CHANGE * abs(finer_estimate.value),
        )
        # A value that only the shorter windows determine cannot be compared.
        if finer_estimate.identified and not abs(estimate.value - finer_estimate.value) <= tolerance:
            result = (
                f"give {estimate.value:.3g} {estimate.unit}" if math.isfinite(estimate.value) else "do not determine it"
            )
            reasons[finer_estimate.name] = Reason(
                Kind.OTHER_EXPLANATION,
                f"windows of +-{1e3 * coarser.model.half_width:.0f} ms {result}, windows of "
                f"+-{1e3 * finer.model.half_width:.0f} ms give {finer_estimate.value:.3g}; needed: a higher rate of "
                "readings, or slower motion",
            )
    return reasons


_COARSE = Reason(
    Kind.OTHER_EXPLANATION,
    "it depends on the steps of the readings: one more step of the angles, and twice the steps of the efforts, change "
    "it too much; needed: finer readings, or faster motion",
)
_FEW_LEVELS, _RARE = 2, 0.05  # efforts of a joint in one direction, and the share of readings that does not count


def _with_reading_errors(identification: ArmFriction, recordings: Sequence[ArmSignals]) -> ArmFriction:
    """The identification with the bias by the steps of encoders and efforts added to each friction value's error.

    Noise of the accelerations makes inertias too small, and steps of the efforts that exceed the friction make it any
    multiple of them; the scatter of the residual shows neither. The fit is repeated with errors of one more step in
    the positions and with efforts in steps twice as large: to first order the change is the bias. Where a joint that
    slides shows no more than two efforts, both round to the same, and the error of rounding itself is added.

    Source: simulation extrapolation, Cook and Stefanski 1994.
    """
    random, coarser = np.random.default_rng(0), []
    for signals in recordings:
        position_step, torque_step = _smallest_change(signals.position), _smallest_change(signals.torque)
        error = random.uniform(-0.5, 0.5, signals.position.shape) * position_step
        double = np.where(torque_step > 0.0, 2.0 * torque_step, 1.0)
        torque = np.where(torque_step > 0.0, double * np.round(signals.torque / double), signals.torque)
        coarser.append(dataclasses.replace(signals, position=signals.position + error, torque=torque))
    found, joints = _with_window_errors(identification, _identify(coarser, identification.model), _COARSE), []
    for joint, rounding in zip(found.joints, _lasting_rounding(recordings), strict=True):
        rival = Rival(_COARSE, {level.name: rounding for level in (*joint.estimates[:1], *joint.totals)})
        joints.append(joint if found.fit is None else joint.with_rivals(found.fit, [rival]))
    return dataclasses.replace(found, joints=tuple(joints))


def _lasting_rounding(recordings: Sequence[ArmSignals]) -> Vector:
    """Standard error (n,) of efforts in steps h, h / sqrt(12), where they change too little for it to average out.

    That is where a joint that moves in a direction shows no more than two efforts, but for a few readings, in every
    recording in which it moves.
    """
    found = np.full((len(recordings), len(_smallest_change(recordings[0].torque))), np.inf)
    for number, signals in enumerate(recordings):
        speed = np.diff(signals.position, axis=0)
        for joint, step in enumerate(_smallest_change(signals.torque)):
            levels = [
                _most_frequent(signals.torque[1:, joint][moving])
                for moving in (speed[:, joint] > 0.0, speed[:, joint] < 0.0)
                if np.any(moving)
            ]
            if levels:
                found[number, joint] = step / math.sqrt(12.0) if min(levels) <= _FEW_LEVELS else 0.0
    least: Vector = np.min(found, axis=0)
    return np.where(np.isfinite(least), least, 0.0)


def _most_frequent(readings: Vector) -> int:
    """Number of distinct readings (m,) that make up all but a few of them."""
    counts = np.sort(np.unique(readings, return_counts=True)[1])[::-1]
    return int(np.searchsorted(np.cumsum(counts), (1.0 - _RARE) * len(readings))) + 1


def _smallest_change(readings: Vector) -> Vector:
    """Smallest change (n,) between consecutive readings (s, n) that differ; 0 for those that never change."""
    changes = np.abs(np.diff(readings, axis=0))
    smallest = np.min(np.where(changes > 0.0, changes, np.inf), axis=0, initial=np.inf)
    return np.where(np.isfinite(smallest), smallest, 0.0)


def _with_window_errors(identification: ArmFriction, finer: ArmFriction, reason: Reason | None = None) -> ArmFriction:
    """The identification with the change in another fit, as by shorter windows, added to each value's error.

    `reason`, if given, is that of a refusal; otherwise the other fit and the width of the interval give it.
    """
    if identification.fit is None or (finer.fit is None and reason is None):
        return identification
    joints = []
    rows = {finer.model.joint_names[row.joint]: row for row in (finer.rows if finer.fit is not None else ())}
    for joint in identification.joints:
        if finer.fit is None or joint.name not in rows:  # refused by the other fit
            refused = None if reason is None or not joint.windows else refused_joint(joint.name, reason)
            joints.append(refused or finer[joint.name])
            continue
        rival = Rival(reason, joint.changes_to(bounded_values(finer.fit), rows[joint.name]))
        joints.append(joint.with_rivals(identification.fit, [rival]))
    return dataclasses.replace(identification, joints=tuple(joints))


def _with_shape_errors(identification: ArmFriction) -> ArmFriction:
    """The identification with the error of the friction law itself, where the torques contradict that law.

    The fit is repeated with one more term for each joint: a power of its speed, a drift of its friction, or a delay of
    its efforts that differs from that of the others. Each that the data show is a rival.
    """
    rows, fit, scaled = identification.rows, identification.fit, identification.scaled
    found = (identification.model, identification.base, identification.offsets, scaled)
    common = float(identification.reading_values[-1]) if scaled else 0.0
    own = (*found[:3], (*scaled[:-1], False) if scaled else ())
    if fit is None:
        return identification
    try:
        late = joint_solution(rows, *own, [-row.slew for row in rows])
        powers = {power: joint_solution(rows, *found, [row.power(power) for row in rows]) for power in _EXPONENTS}
        drifts = {part: joint_solution(rows, *found, [row.drift(part) for row in rows]) for part in PARTS[:2]}
    except IdentificationError:  # too short for more unknowns
        return identification
    joints = list(identification.joints)
    for row in rows:
        joint, rivals = joints[row.joint], list[Rival]()
        term = further_term(joint.name)
        delay = values_of(late)[term] - common
        if not identification.late and abs(delay) > max(_ALIKE, SIGNIFICANT * late[term].standard_error):
            rivals.append(late_rival(joint, row, late, delay))
        rivals += admitted([power_rival(joint, row, other, term, power) for power, other in powers.items()])
        rivals += [
            rival
            for part, other in drifts.items()
            if (rival := drift_rival(joint, other, term, part)).strength > SIGNIFICANT
        ]
        joints[row.joint] = joint.with_rivals(fit, rivals)
    return dataclasses.replace(identification, joints=tuple(joints))


def _refuse_estimates(identification: ArmFriction, refusals: Mapping[str, Reason]) -> ArmFriction:
    """The identification with the estimates in `refusals` and the total friction of their joints refused."""

    def refused(estimates: Sequence[Estimate], default: Reason | None = None) -> tuple[Estimate, ...]:
        return tuple(one.refused_if_identified(refusals.get(one.name, default)) for one in estimates)

    joints = []
    for joint in identification.joints:
        reason = next((refusals[estimate.name] for estimate in joint.estimates if estimate.name in refusals), None)
        joints.append(
            dataclasses.replace(joint, estimates=refused(joint.estimates), totals=refused(joint.totals, reason))
        )
    return dataclasses.replace(identification, joints=tuple(joints), inertial=refused(identification.inertial))


def _identify(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> ArmFriction:
    """Identification with the windows and Stribeck curves of the model."""
    windows = model.windows(recordings)
    names = model.joint_names
    reasons = [joint_refusal(recordings, windows, j) for j in range(len(names))]
    refused = {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}
    excluded = {name: refused_joint(name, reason) for name, reason in refused.items()}
    if len(excluded) == len(names):
        return ArmFriction(model, tuple(excluded.values()))
    rows = tuple(row for row in joint_rows(model, windows) if names[row.joint] not in refused)
    identification = _identify_joints(model, excluded, rows)
    correct_sign = {scale.name.removesuffix("_scale") for scale in identification.readings if scale.value > -1.0}
    fitted = {joint.name: joint["coulomb"].reason for joint in identification.joints if joint.name not in correct_sign}
    wrong_sign = {name: one for name, one in fitted.items() if one and one.kind is Kind.WRONG_SIGNALS}
    if model.tree is None or not wrong_sign or len(wrong_sign) == len(rows):
        return identification
    # Joints with the wrong sign bias the bodies, which all joints share.
    excluded |= {name: refused_joint(name, reason) for name, reason in wrong_sign.items()}
    return _identify_joints(model, excluded, tuple(row for row in rows if names[row.joint] not in wrong_sign))


def _identify_joints(
    model: ArmFrictionModel, excluded: Mapping[str, JointFit], rows: tuple[JointRows, ...]
) -> ArmFriction:
    """Identification from the rows of all joints that are not excluded."""
    if model.tree is None:
        return _solve(model, excluded, rows, None, (), 1)
    base, loads = determined_bodies(model.tree, rows), [float(np.mean(row.known**2)) for row in rows]

    def with_reference(reference: int) -> ArmFriction:
        scaled = (*(k != reference for k in range(len(rows))), True)
        return _solve(model, excluded, rows, base, scaled, _ITERATIONS)

    reference = int(np.argmax(loads))
    identification = with_reference(reference)
    scales = [estimate.value for estimate in identification.readings[:-1] if math.isfinite(estimate.value)]
    if len(scales) < 2 or np.count_nonzero(np.abs(scales) > FAR) <= 0.5 * len(scales):
        return identification
    loads[reference] = 0.0  # most joints differ from the reference: its own scale is wrong
    return with_reference(int(np.argmax(loads)))


def _solve(
    model: ArmFrictionModel,
    excluded: Mapping[str, JointFit],
    rows: tuple[JointRows, ...],
    base: BaseParameters | None,
    scaled: tuple[bool, ...],
    iterations: int,
) -> ArmFriction:
    """Identification from the rows of all joints that are not excluded, with a number of iterations for the scales."""
    late = 0.0
    offsets = tuple(row.has_offset(row.body if base is None else row.body[:, base.columns]) for row in rows)
    try:
        fit = joint_solution(rows, model, base, offsets, scaled)
        for remaining in reversed(range(iterations - 1)):  # a scale times a change of the bodies is not linear
            assert base is not None
            readings, before = fit.estimates[len(base.columns) : len(base.columns) + len(scaled)], scaled
            scaled = scaled if remaining >= _FINAL_ITERATIONS else _determined(fit, readings)
            delay = readings[-1]
            if before[-1] and not scaled[-1] and abs(delay.value) - fit.half_width(delay.standard_error) > _LATE:
                late = delay.value
            scales = np.nan_to_num([estimate.value for estimate in readings]) * scaled
            values = np.nan_to_num(fit.values)
            rows = tuple(row.linearised(base.columns, values, scales[k]) for k, row in enumerate(rows))
            fit = joint_solution(rows, model, base, offsets, scaled)
    except IdentificationError as problem:
        reason = Reason(Kind.TOO_LITTLE_DATA, f"only {problem.got}; needed: {problem.expected}")
        joints = tuple(excluded.get(name) or refused_joint(name, reason) for name in model.joint_names)
        return ArmFriction(model, joints, base=base, rows=rows)
    values = np.nan_to_num([estimate.value for estimate in fit.estimates])
    first = len(values) - len(PARTS) * len(rows)
    bodies = first - len(scaled)
    fitted = dict(excluded)
    for k, row in enumerate(rows):
        name, table = model.joint_names[row.joint], joint_regressors(rows, k, row, base, offsets, scaled)
        hidden = row.hidden_by_weight(row.body if base is None else row.body[:, base.columns])
        fitted[name] = joint_fit(fit, name, row, row.explained(table @ values), first + len(PARTS) * k, hidden)
    joints = tuple(fitted[name] for name in model.joint_names)
    inertial, readings = fit.estimates[:bodies], fit.estimates[bodies:first]
    return ArmFriction(model, joints, inertial, readings, base, fit, rows, values, offsets, scaled, late)


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


def with_stribeck(identification: ArmFriction) -> ArmFriction:
    """Add a Stribeck curve to the joints with torques that it explains better.

    (coulomb + stribeck exp(-(v/v_s)^2)) sign v; v_s is nonlinear and is searched on a grid, joint after joint, and then
    solved for; its error is an unknown of the fit, and so part of the intervals of the remaining unknowns. A curve is
    accepted if it removes at least a tenth of the unexplained torque of the joint, with friction within its physical
    bounds. Static friction at zero speed is then coulomb + stribeck; the verdicts state whether the two are
    identifiable separately. `identification` has no Stribeck curves.
    """
    best, sliding = identification, {identification.model.joint_names[row.joint] for row in identification.rows}
    excluded = {joint.name: joint for joint in identification.joints if joint.name not in sliding}
    for k, row in enumerate(identification.rows if identification.fit is not None else ()):
        name = identification.model.joint_names[row.joint]
        slowest, fastest = np.quantile(np.abs(row.speed), (0.05, 1.0))
        previous = best

        def with_speed(speed: float, joint: int = row.joint, start: ArmFriction = previous) -> ArmFriction:
            speeds = [start.model.stribeck_speed(j) for j in range(len(start.model.joint_names))]
            speeds[joint] = speed
            model = dataclasses.replace(start.model, stribeck_speeds=tuple(speeds))
            rows = tuple(dataclasses.replace(row, stribeck_speed=speeds[row.joint]) for row in start.rows)
            return dataclasses.replace(_solve(model, excluded, rows, start.base, start.scaled, 1), late=start.late)

        candidates = [with_speed(speed) for speed in _SPEEDS if slowest <= speed <= _LARGEST_SPEED_RATIO * fastest]
        candidate = max(candidates, key=lambda trial: trial[name].explained, default=best)
        if 1.0 - candidate[name].explained < _LARGEST_REMAINDER * (1.0 - best[name].explained):
            best = candidate
            for _ in range(_NEWTON_STEPS):
                values = best.values[len(best.values) - len(PARTS) * (len(best.rows) - k) :]
                stribeck, bend = values[PARTS.index("stribeck")], values[PARTS.index("bend")]
                step = float(np.clip(bend / stribeck, -_LARGEST_STEP, _LARGEST_STEP)) if stribeck > 0.0 else 0.0
                speed = best.model.stribeck_speed(row.joint) * math.exp(step)
                best = with_speed(float(np.clip(speed, slowest, _LARGEST_SPEED_RATIO * fastest)))
    return best
