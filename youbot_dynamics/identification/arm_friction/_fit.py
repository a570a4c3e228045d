"""Friction of the joints of an arm, together with weight and inertia, from positions and torques.

tau = Y(q, v, a) parameters + (coulomb + stribeck exp(-(v/v_s)^2)) sign v + viscous v + offset, for every joint while it
slides with settled friction. Near rest the bristle torque has any value between plus and minus the Coulomb torque, so
such windows are left out. The offset is the difference of friction between the two directions plus any constant error
of the efforts; if the weight hides it, it is set to 0.

Source: systems 7, 9, 12.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._joint_fit import (
    AGAINST,
    TOTAL,
    JointFit,
    joint_fit,
    refused_joint,
    total_friction,
)
from youbot_dynamics.identification.arm_friction._regressors import (
    BaseParameters,
    felt_parameters,
    inertial_parameters,
    uncertainty,
)
from youbot_dynamics.identification.arm_friction._rows import (
    PARTS,
    ArmFrictionModel,
    JointRows,
    block_length,
    joint_rows,
    refusal_of,
    regressors_of,
)
from youbot_dynamics.identification.arm_friction._windows import shortest
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Fit,
    Rows,
    Unknown,
    judge,
    least_squares,
    refusal,
)
from youbot_dynamics.identification.signals import ArmSignals

# Effect on the torques below which a combination of inertial parameters is not included in the first fit [N m].
_ROUGHLY = 0.005
# Smallest ratio of its effect to the residual's standard error over all rows. Combinations left out keep their nominal
# values, which biases the friction of a small joint.
_CLEARLY = 5.0
# Largest half-widths of the intervals of scales and delay of the efforts [1, s], and the largest delay [s], with which
# they are taken into account; else bodies and friction of the joint explain as much.
_WIDEST, _LONGEST_DELAY = (0.05, 0.005), 0.05
FAR = 0.2  # scale, less 1, that is further off than torque constants scatter
_MEASURE = "it is the measure of the others, or these data do not tell its scale"
_ROUNDS, _LAST = 6, 2  # fits in all, and how many of them are without the scales that are not known
# Combined standard errors, and share of a value, by which it may change with windows of half the length.
_MOVED, _ALIKE = 2.0, 0.01


@dataclass(frozen=True, eq=False)
class ArmFriction:
    """Identified friction and bodies of an arm of n joints."""

    model: ArmFrictionModel  # what was fitted
    joints: tuple[JointFit, ...]  # [n]
    # Combinations of inertial parameters that the data determine, as differences from the nominal tree; without a tree
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
        changed = inertial_parameters(self.model.tree)
        changed[self.base.columns] += self.values[: len(self.base.columns)]
        return changed

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
        table = regressors_of(self.rows, k, row, self.base, self.offsets, self.scaled)
        assert self.fit is not None  # rows exist only with a fit
        covariance = np.nan_to_num(self.fit.covariance)
        variance = np.einsum("ri,ij,rj->r", table, covariance, table)
        half = self.fit.half_width(1.0) * np.sqrt(np.maximum(variance, 0.0))
        return row.known + table @ self.values, half

    def explained_in(self, recordings: Sequence[ArmSignals]) -> dict[str, float]:
        """R^2 of the torque of each joint in other recordings, or other parts of them, for validation."""
        tables = joint_rows(self.model, self.model.windows(recordings))
        shares = {}
        for k, fitted in enumerate(self.rows):
            row = tables[fitted.joint]
            if self.base is not None:
                row = row.linearised(self.base.columns, self.values, self.reading_values[k])
            table = regressors_of(self.rows, k, row, self.base, self.offsets, self.scaled)
            shares[self.model.joint_names[fitted.joint]] = row.explained(table @ self.values)
        return shares


def identify_arm_friction(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> ArmFriction:
    """Identify friction, weight and inertia of n joints; each recording has its own number.

    A joint that never slid, or has no effort, is refused with that reason. Unless the model gives Stribeck speeds,
    joints get a Stribeck curve if the data support it, see `with_stribeck`. Windows are halved until no friction
    changes by more than 2 combined standard errors; a value that still changes with the shortest windows is refused.
    The last change counts as an error. Slow readings begin with wider windows, so that there are shorter ones.
    """
    least = shortest(recordings)
    if 2.0 * least > 1.5 * model.half_width:
        model = dataclasses.replace(model, half_width=2.0 * least)
    found = _identify(recordings, model)
    while True:
        if not model.stribeck_speeds:
            found = with_stribeck(found)
        half = max(0.5 * found.model.half_width, least)
        if half >= found.model.half_width:
            return found
        finer = _identify(recordings, dataclasses.replace(found.model, half_width=half))
        moved = _moved(found, finer)
        if not moved:
            return _widened(found, finer)
        if half == least:
            return _without(finer, moved)
        found = finer


def _moved(found: ArmFriction, finer: ArmFriction) -> dict[str, str]:
    """Names of identified values in `finer` that differ from `found`, with the reason to refuse them.

    Combinations of inertial parameters of a tree are not included, because other windows may determine other
    combinations.
    """
    before, after = (
        [*(one.inertial if one.base is None else ()), *(each for joint in one.joints for each in joint.estimates)]
        for one in (found, finer)
    )
    known, moved = {one.name: one for one in before}, {}
    for other in after:
        one = known.get(other.name, other)
        near = max(_MOVED * math.hypot(one.standard_error, other.standard_error), _ALIKE * abs(other.value))
        # A value that only the shorter windows determine cannot be compared.
        if other.identified and not abs(one.value - other.value) <= near:
            told = f"give {one.value:.3g} {one.unit}" if math.isfinite(one.value) else "do not determine it"
            moved[other.name] = (
                f"windows of +-{1e3 * found.model.half_width:.0f} ms {told}, windows of "
                f"+-{1e3 * finer.model.half_width:.0f} ms give {other.value:.3g}; needed: a higher rate of readings, "
                "or slower motion"
            )
    return moved


def _widened(found: ArmFriction, finer: ArmFriction) -> ArmFriction:
    """The identification with what windows of half the length change as an error of each friction value."""
    if found.fit is None or finer.fit is None:
        return found
    fit, joints = found.fit, []
    unknowns = {unknown.name: unknown for unknown in fit.unknowns}
    after = {estimate.name: estimate.value for joint in finer.joints for estimate in joint.estimates}
    rows = {finer.model.joint_names[row.joint]: (k, row) for k, row in enumerate(finer.rows)}
    first = len(finer.values) - len(PARTS) * len(rows)

    def widened(one: Estimate, unknown: Unknown, other: float) -> Estimate:
        if not (one.identified and math.isfinite(other)):
            return one
        error = math.hypot(one.standard_error, one.value - other)
        return judge(unknown, one.value, error, fit.half_width(error))

    for joint in found.joints:
        if joint.name not in rows:  # refused by the shorter windows
            joints.append(finer[joint.name])
            continue
        estimates = tuple(
            widened(one, unknowns.get(one.name, Unknown(one.name, one.unit)), after.get(one.name, math.nan))
            for one in joint.estimates
        )
        totals = []
        for one in joint.totals:
            (k, row), speed = rows[joint.name], float(one.name.rsplit("_", 1)[1])
            other = total_friction(finer.fit, joint.name, row, speed, first + len(PARTS) * k)
            totals.append(widened(one, Unknown(one.name, one.unit, low=0.0, resolution=TOTAL), other.value))
        joints.append(dataclasses.replace(joint, estimates=estimates, totals=tuple(totals)))
    return dataclasses.replace(found, joints=tuple(joints))


def _without(found: ArmFriction, moved: Mapping[str, str]) -> ArmFriction:
    """The identification without the estimates in `moved`, and without the total friction of their joints."""

    def refused(estimates: Sequence[Estimate], reason: str = "") -> tuple[Estimate, ...]:
        reasons = [moved.get(one.name, reason) for one in estimates]
        return tuple(
            dataclasses.replace(one, verdict=refusal(why)) if why and one.identified else one
            for one, why in zip(estimates, reasons, strict=True)
        )

    joints = []
    for joint in found.joints:
        why = next((moved[one.name] for one in joint.estimates if one.name in moved), "")
        joints.append(dataclasses.replace(joint, estimates=refused(joint.estimates), totals=refused(joint.totals, why)))
    return dataclasses.replace(found, joints=tuple(joints), inertial=refused(found.inertial))


def _identify(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> ArmFriction:
    """Identification with the windows and Stribeck curves of the model."""
    windows = model.windows(recordings)
    refused = {name: refusal_of(recordings, windows, j) for j, name in enumerate(model.joint_names)}
    if all(refused.values()):
        return ArmFriction(model, tuple(refused_joint(*pair) for pair in refused.items()))
    names = model.joint_names
    rows = tuple(row for row in joint_rows(model, windows) if not refused[names[row.joint]])
    found = _of_joints(model, {name: refused_joint(name, reason) for name, reason in refused.items() if reason}, rows)
    right = {one.name.removesuffix("_scale") for one in found.readings if one.value > -1.0}
    wrong = {joint.name: AGAINST for joint in found.joints if joint["coulomb"].verdict == refusal(AGAINST)}
    wrong = {name: reason for name, reason in wrong.items() if name not in right}
    if model.tree is None or not wrong or len(wrong) == len(rows):
        return found
    # The other joints share their bodies with these, which bend them.
    left_out = {name: refused_joint(name, reason) for name, reason in (refused | wrong).items() if reason}
    return _of_joints(model, left_out, tuple(row for row in rows if names[row.joint] not in wrong))


def _of_joints(model: ArmFrictionModel, left_out: Mapping[str, JointFit], rows: tuple[JointRows, ...]) -> ArmFriction:
    """Identification from rows of all joints but those that are left out."""
    if model.tree is None:
        return _solved(model, left_out, rows, None, (), 1)
    base, loads = _felt(model.tree, rows), [float(np.mean(row.known**2)) for row in rows]

    def relative_to(measure: int) -> ArmFriction:
        scaled = (*(k != measure for k in range(len(rows))), True)
        return _solved(model, left_out, rows, base, scaled, _ROUNDS)

    measure = int(np.argmax(loads))
    found = relative_to(measure)
    scales = [one.value for one in found.readings[:-1] if math.isfinite(one.value)]
    if len(scales) < 2 or np.count_nonzero(np.abs(scales) > FAR) <= 0.5 * len(scales):
        return found
    loads[measure] = 0.0  # most joints differ from it: it is the one that is off
    return relative_to(int(np.argmax(loads)))


def _solved(
    model: ArmFrictionModel,
    left_out: Mapping[str, JointFit],
    rows: tuple[JointRows, ...],
    base: BaseParameters | None,
    scaled: tuple[bool, ...],
    rounds: int,
) -> ArmFriction:
    """Identification from rows of all joints but those that are left out, in a number of rounds for the scales."""
    offsets = tuple(row.has_offset(row.body if base is None else row.body[:, base.columns]) for row in rows)
    try:
        fit = _fit(rows, model, base, offsets, scaled)
        for left in reversed(range(rounds - 1)):  # a scale times a change of the bodies is not linear
            assert base is not None
            readings = fit.estimates[len(base.columns) : len(base.columns) + len(scaled)]
            scaled = scaled if left >= _LAST else _known(fit, readings)
            scales = np.nan_to_num([one.value for one in readings]) * scaled
            values = np.nan_to_num(fit.values)
            rows = tuple(row.linearised(base.columns, values, scales[k]) for k, row in enumerate(rows))
            fit = _fit(rows, model, base, offsets, scaled)
    except IdentificationError as few:
        little = f"only {few.got}; needed: {few.expected}"
        joints = tuple(left_out.get(name) or refused_joint(name, little) for name in model.joint_names)
        return ArmFriction(model, joints, base=base, rows=rows)
    values = np.nan_to_num([estimate.value for estimate in fit.estimates])
    first = len(values) - len(PARTS) * len(rows)
    bodies = first - len(scaled)
    fitted = dict(left_out)
    for k, row in enumerate(rows):
        name, table = model.joint_names[row.joint], regressors_of(rows, k, row, base, offsets, scaled)
        hidden = row.hidden_by_weight(row.body if base is None else row.body[:, base.columns])
        fitted[name] = joint_fit(fit, name, row, row.explained(table @ values), first + len(PARTS) * k, hidden)
    joints = tuple(fitted[name] for name in model.joint_names)
    inertial, readings = fit.estimates[:bodies], fit.estimates[bodies:first]
    return ArmFriction(model, joints, inertial, readings, base, fit, rows, values, offsets, scaled)


def _known(fit: Fit, readings: Sequence[Estimate]) -> tuple[bool, ...]:
    """Whether each scale and the delay, which come last, are known well enough; a delay must be plausible besides.

    A scale may have any size: a wrong torque constant or gear ratio of one joint must not bend the bodies of all.
    """
    *scales, delay = readings
    reaches = [fit.half_width(one.standard_error) for one in scales]
    narrow = [
        reach <= max(_WIDEST[0] * max(1.0, abs(1.0 + one.value)), abs(one.value) - FAR)
        for one, reach in zip(scales, reaches, strict=True)
    ]
    prompt = fit.half_width(delay.standard_error) <= _WIDEST[1] and abs(delay.value) <= _LONGEST_DELAY
    return (*map(bool, narrow), bool(prompt))


def _felt(tree: Tree, rows: Sequence[JointRows]) -> BaseParameters:
    """Combinations of inertial parameters whose effect exceeds the unexplained torque of the rows."""
    rough = felt_parameters(tree, np.concatenate([row.body for row in rows]), _ROUGHLY)
    weighted = []
    for row in rows:
        table = np.hstack([row.body[:, rough.columns], row.friction()])
        weighted.append(_noise_weight(table, row.torque - row.known) * row.body)
    together = np.concatenate(weighted)
    return felt_parameters(tree, together, _CLEARLY / math.sqrt(len(together)))


def _unknowns(model: ArmFrictionModel, names: Sequence[str], base: BaseParameters | None) -> list[Unknown]:
    unknowns = []
    if base is not None and model.tree is not None:
        known = uncertainty(model.tree)[base.columns]
        for name, unit, size in zip(base.names, base.units, known, strict=True):
            unknowns.append(Unknown(f"{name}_change", unit, resolution=float(size)))
        unknowns += [Unknown(f"{name}_scale", "1", resolution=0.05, unexcited=_MEASURE) for name in names]
        unknowns.append(Unknown("effort_delay", "s", resolution=0.01, unexcited="these data do not tell it"))
    else:
        for name in names:
            unknowns.append(Unknown(f"{name}_inertia", "kg m2", low=0.0, unexcited="the joint never changed its speed"))
            if model.weighed:
                unknowns += [Unknown(f"{name}_weight_{part}", "N m", resolution=0.02) for part in ("sin", "cos")]
    for name in names:
        unknowns += [
            Unknown(f"{name}_coulomb", "N m", low=0.0, resolution=0.01),
            Unknown(f"{name}_viscous", "N m s/rad", low=0.0, resolution=0.02),
            Unknown(f"{name}_stribeck", "N m", low=0.0, resolution=0.02, unexcited="no Stribeck speed was given"),
            Unknown(f"{name}_offset", "N m", resolution=0.05, unexcited="weight or friction hide it in these data"),
            Unknown(f"{name}_bend", "N m", unexcited="no Stribeck speed was given"),
        ]
    return unknowns


def _fit(
    rows: Sequence[JointRows],
    model: ArmFrictionModel,
    base: BaseParameters | None,
    offsets: Sequence[bool],
    scaled: Sequence[bool],
) -> Fit:
    """One fit of all joints together, since they share the bodies."""
    unknowns = _unknowns(model, [model.joint_names[row.joint] for row in rows], base)
    block = block_length(rows, len(unknowns))
    pieces = []
    for k, row in enumerate(rows):
        table, target = regressors_of(rows, k, row, base, offsets, scaled), row.torque - row.known
        weight = _noise_weight(table, target)
        for number in np.unique(row.recording):
            of = row.recording == number
            pieces.append(Rows(row.time[of], weight * table[of], weight * target[of], None, int(number), block))
    return least_squares(pieces, unknowns)


def _noise_weight(table: Vector, target: Vector) -> float:
    """1 / residual of a joint fitted alone [1/(N m)], so that a large joint does not dominate a small one."""
    lengths = np.linalg.norm(table, axis=0)
    scaled = table[:, lengths > 0.0] / lengths[lengths > 0.0]
    left = target - scaled @ np.linalg.lstsq(scaled, target, rcond=1e-6)[0]
    return 1.0 / max(float(np.sqrt(np.mean(left**2))), 1e-3)


_SPEEDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2, 1.8)  # values of v_s tried [rad/s]
_SEEN = 0.5  # largest v_s over the fastest speed; above it, or below the slowest speed, part of the curve is missing
_WORTH = 0.9  # share of the unexplained torque that may remain if a curve is accepted
_CORRECTIONS, _FARTHEST = 2, 0.3  # steps from the best value to the solution, and the largest of them in log(v_s)


def with_stribeck(found: ArmFriction) -> ArmFriction:
    """Add a Stribeck curve to those joints whose torque it explains better.

    (coulomb + stribeck exp(-(v/v_s)^2)) sign v; v_s is nonlinear and is tried in steps, joint after joint, and then
    solved for; its error is an unknown of the fit, and so part of the intervals of the others. A curve is kept if it
    removes at least a tenth of the unexplained torque of the joint, with friction within its physical bounds. Static
    friction at zero speed is then coulomb + stribeck; the verdicts state whether the two are identifiable separately.
    `found` was identified without Stribeck curves.
    """
    best, rubbing = found, {found.model.joint_names[row.joint] for row in found.rows}
    left_out = {joint.name: joint for joint in found.joints if joint.name not in rubbing}
    for k, row in enumerate(found.rows if found.fit is not None else ()):
        name = found.model.joint_names[row.joint]
        slowest, fastest = np.quantile(np.abs(row.speed), (0.05, 1.0))
        without = best

        def tried(speed: float, joint: int = row.joint, plain: ArmFriction = without) -> ArmFriction:
            speeds = [plain.model.stribeck_speed(j) for j in range(len(plain.model.joint_names))]
            speeds[joint] = speed
            model = dataclasses.replace(plain.model, stribeck_speeds=tuple(speeds))
            rows = tuple(dataclasses.replace(one, stribeck_speed=speeds[one.joint]) for one in plain.rows)
            return _solved(model, left_out, rows, plain.base, plain.scaled, 1)

        steps = [tried(speed) for speed in _SPEEDS if slowest <= speed <= _SEEN * fastest]
        better = max(steps, key=lambda one: one[name].explained, default=best)
        if 1.0 - better[name].explained < _WORTH * (1.0 - best[name].explained):
            best = better
            for _ in range(_CORRECTIONS):
                own = best.values[len(best.values) - len(PARTS) * (len(best.rows) - k) :]
                rise, bend = own[PARTS.index("stribeck")], own[PARTS.index("bend")]
                step = float(np.clip(bend / rise, -_FARTHEST, _FARTHEST)) if rise > 0.0 else 0.0
                speed = best.model.stribeck_speed(row.joint) * math.exp(step)
                best = tried(float(np.clip(speed, slowest, _SEEN * fastest)))
    return best
