"""Friction of the arm with its rivals: other windows, coarser readings, and other laws that the data do not exclude."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from youbot_dynamics.arrays import Vector, smallest_change
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._effort_delay import with_prompt_efforts
from youbot_dynamics.identification.arm_friction._fit import (
    ArmFriction,
    JointFit,
    bounded_values,
    fitted_arm,
    refused_joint,
    with_stribeck,
)
from youbot_dynamics.identification.arm_friction._rows import (
    MOST_COUPLED,
    PARTS,
    ArmEquations,
    ArmFrictionModel,
    JointRows,
    arm_equations,
    further_term,
    noise_weight,
)
from youbot_dynamics.identification.arm_friction._windows import noise_of, shortest
from youbot_dynamics.identification.least_squares import (
    POWERS,
    SIGNIFICANT,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    admitted,
    strength,
    values_of,
    widened,
)
from youbot_dynamics.identification.signals import ArmSignals

# Largest change of a value with windows of half the length, in combined standard errors and relative to the value.
_LARGEST_CHANGE, _LARGEST_RELATIVE_CHANGE = 2.0, 0.01
_COUPLED = 0.7  # unexplained torque of a joint with the effect of others over that without, below which it is shown
_ALIKE = 0.002  # [s] by which the efforts of joints may be apart
# Friction that falls as a gear warms up begins further from its mean than a straight line does, by about this factor.
_WARMING = 1.25
_BY_DIRECTION = 0.1  # share of Coulomb friction by which it may differ by direction where the weight hides it
_NOISIEST = 1.5e-3  # [rad] of angles of which friction is told: at twice as much it was a quarter off
_FEW_LEVELS, _RARE = 2, 0.05  # efforts of a joint in one direction, and the share of readings that does not count
_DIFFERENT_WAYS = Reason(Kind.OTHER_EXPLANATION, "viscous friction differs by direction")
_COARSE = Reason(
    Kind.OTHER_EXPLANATION,
    "it depends on the steps of the readings: one more step of the angles, and twice the steps of the efforts, change "
    "it too much; needed: finer readings, or faster motion",
)


def identify_arm_friction(recordings: Sequence[ArmSignals], model: ArmFrictionModel) -> ArmFriction:
    """Identify friction, weight and inertia of n joints; each recording has its own number.

    A joint that never slid, or has no effort, is refused with that reason. Unless the model gives Stribeck speeds,
    joints get a Stribeck curve if the data support it, see `with_stribeck`. Windows are halved until no friction
    changes by more than 2 combined standard errors; a value that still changes with the shortest windows is refused.
    The last change counts as an error. Slow readings begin with wider windows, so that there are shorter ones.
    """
    least = shortest(recordings)
    if 2.0 * least > 1.5 * model.half_width:
        model = replace(model, half_width=2.0 * least)
    equations = _coupled(recordings, arm_equations(recordings, model))
    recordings, found = with_prompt_efforts(recordings, equations)
    delay, late = found.taken_back, found.late
    while True:
        found = found if model.stribeck_speeds else with_stribeck(found)
        half_width = max(0.5 * found.model.half_width, least)
        if half_width >= found.model.half_width:
            break
        finer = fitted_arm(arm_equations(recordings, replace(found.model, half_width=half_width)))
        if changed := _window_dependent(found, finer):  # more than the steps of the encoders explain?
            changed = _window_dependent(*(_with_reading_errors(one, recordings) for one in (found, finer)))
        if not changed:
            found = _with_window_errors(found, finer)
            break
        if half_width == least:
            found = _refuse_estimates(_with_window_errors(finer, found), changed)
            break
        found = finer
    found = replace(_with_reading_errors(found, recordings), taken_back=delay, late=late)
    return _refuse_noisy(_refuse_late(_with_hidden_offsets(_with_shape_errors(found))), recordings)


def _coupled(recordings: Sequence[ArmSignals], equations: ArmEquations) -> ArmEquations:
    """The equations, of joints without a tree with their effect on each other if the torques show it."""
    model = equations.model
    if model.tree is not None or not model.weighed or not 1 < len(model.joint_names) <= MOST_COUPLED:
        return equations
    other = arm_equations(recordings, replace(model, coupled=True))
    shown = np.any(other.unexplained() < _COUPLED * equations.unexplained())
    return other if shown else equations


def _window_dependent(coarser: ArmFriction, finer: ArmFriction) -> dict[str, Reason]:
    """Names of identified values in `finer` that differ from those in `coarser`, with the reason to refuse them.

    Combinations of inertial parameters of a tree are not included, because other windows may determine other
    combinations.
    """
    before, after = (
        [*(one.inertial if one.base is None else ()), *(value for joint in one.joints for value in joint.estimates)]
        for one in (coarser, finer)
    )
    known, reasons = {estimate.name: estimate for estimate in before}, {}
    for new in after:
        old = known.get(new.name, new)
        errors = math.hypot(old.standard_error, new.standard_error)
        tolerance = max(_LARGEST_CHANGE * errors, _LARGEST_RELATIVE_CHANGE * abs(new.value))
        # A value that only the shorter windows determine cannot be compared.
        if new.identified and not abs(old.value - new.value) <= tolerance:
            result = f"give {old.value:.3g} {old.unit}" if math.isfinite(old.value) else "do not determine it"
            reasons[new.name] = Reason(
                Kind.OTHER_EXPLANATION,
                f"windows of +-{1e3 * coarser.model.half_width:.0f} ms {result}, windows of "
                f"+-{1e3 * finer.model.half_width:.0f} ms give {new.value:.3g}; needed: a higher rate of readings, or "
                "slower motion",
            )
    return reasons


def _with_reading_errors(found: ArmFriction, recordings: Sequence[ArmSignals]) -> ArmFriction:
    """The fit with the bias by noise and steps of encoders, and steps of efforts, added to each value's error.

    Noise of the accelerations makes inertias too small, and steps of the efforts that exceed the friction make it any
    multiple of them; the scatter of the residual shows neither. The fit is repeated with positions that have as much
    noise again, or errors of one more step, and with efforts in steps twice as large: to first order the change is the
    bias. Where a joint that slides shows no more than two efforts, both round to the same, and the error of rounding
    itself is added.

    Source: simulation extrapolation, Cook and Stefanski 1994.
    """
    random, coarser = np.random.default_rng(0), []
    for signals in recordings:
        position_step, torque_step = smallest_change(signals.position), smallest_change(signals.torque)
        error = random.uniform(-0.5, 0.5, signals.position.shape) * position_step
        error += _noise_beside_steps(signals) * random.standard_normal(error.shape)
        double = np.where(torque_step > 0.0, 2.0 * torque_step, 1.0)
        torque = np.where(torque_step > 0.0, double * np.round(signals.torque / double), signals.torque)
        coarser.append(replace(signals, position=signals.position + error, torque=torque))
    found, joints = _with_window_errors(found, fitted_arm(arm_equations(coarser, found.model)), _COARSE), []
    for joint, rounding in zip(found.joints, _lasting_rounding(recordings), strict=True):
        rival = Rival(_COARSE, {level.name: rounding for level in (*joint.estimates[:1], *joint.totals)})
        joints.append(joint if found.fit is None else joint.with_rivals(found.fit, [rival]))
    return replace(found, joints=tuple(joints))


def _noise_beside_steps(signals: ArmSignals) -> Vector:
    """Standard deviations (n,) of the noise of the angles [rad] without what the steps of their encoders explain."""
    return np.sqrt(np.maximum(noise_of(signals) ** 2 - smallest_change(signals.position) ** 2 / 12.0, 0.0))


def _lasting_rounding(recordings: Sequence[ArmSignals]) -> Vector:
    """Standard error (n,) of efforts in steps h, h / sqrt(12), where they change too little for it to average out.

    That is where a joint that moves in a direction shows no more than two efforts, but for a few readings, in every
    recording in which it moves.
    """
    found = np.full((len(recordings), recordings[0].torque.shape[1]), np.inf)
    for number, signals in enumerate(recordings):
        speed = np.diff(signals.position, axis=0)
        for joint, step in enumerate(smallest_change(signals.torque)):
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


def _with_window_errors(found: ArmFriction, other: ArmFriction, reason: Reason | None = None) -> ArmFriction:
    """The fit with the change in another one, as by shorter windows, added to each value's error.

    `reason`, if given, is that of a refusal; otherwise the other fit and the width of the interval give it.
    """
    if found.fit is None or (other.fit is None and reason is None):
        return found
    joints, rows = [], {row.name: row for row in other.rows}
    for joint in found.joints:
        if other.fit is None or joint.name not in rows:  # refused by the other fit
            refused = None if reason is None or not joint.windows else refused_joint(joint.name, reason, found.model)
            joints.append(refused or other[joint.name])
            continue
        rival = Rival(reason, joint.changes_to(bounded_values(other.fit), rows[joint.name]))
        joints.append(joint.with_rivals(found.fit, [rival]))
    return _with_bodies_of(replace(found, joints=tuple(joints)), other, reason)


def _with_bodies_of(found: ArmFriction, other: ArmFriction, reason: Reason | None) -> ArmFriction:
    """The fit with the change of the bodies in another one added to their errors."""
    if found.fit is None or other.fit is None:
        return found
    values = found.inertial_of(other)
    rival = Rival(reason, {one.name: values.get(one.name, math.nan) - one.value for one in found.inertial})
    return replace(found, inertial=widened(found.inertial, found.fit.unknowns, [rival], found.fit.half_width(1.0)))


def _with_shape_errors(found: ArmFriction) -> ArmFriction:
    """The fit with the error of the friction law itself, where the torques contradict that law.

    The fit is repeated with one more term for each joint: a power of its speed, viscous friction that differs by
    direction, a drift of its friction, or a delay of its efforts that differs from that of the others. Each that the
    data show is a rival.
    """
    equations, rows = found.equations, found.rows
    if found.fit is None:
        return found
    common = float(found.reading_values[-1]) if equations.scaled else 0.0
    own = replace(equations, scaled=(*equations.scaled[:-1], False) if equations.scaled else ())
    try:
        late = own.solution([-row.slew for row in rows])
        by_direction = equations.solution([row.by_direction() for row in rows])
        powers = {power: equations.solution([row.power(power) for row in rows]) for power in POWERS}
        drifts = {part: equations.solution([row.drift(part) for row in rows]) for part in PARTS[:2]}
    except IdentificationError:  # too short for more unknowns
        return found
    joints = list(found.joints)
    for row in rows:
        joint, own_rivals = joints[row.joint], list[Rival]()
        term = further_term(joint.name)
        delay = values_of(late)[term] - common
        if not found.late and abs(delay) > max(_ALIKE, SIGNIFICANT * late[term].standard_error):
            own_rivals.append(_late_rival(joint, row, late, delay, len(rows) > 1 and bool(own.scaled)))
            joint = replace(joint, late=own_rivals[-1].reason)
        own_rivals += admitted([_power_rival(joint, row, other, power) for power, other in powers.items()])
        single = [_drift_rival(joint, other, part) for part, other in drifts.items()]
        single += [_direction_rival(joint, row, by_direction), _offset_rival(joint)]
        own_rivals += [rival for rival in single if rival.strength > SIGNIFICANT]
        joints[row.joint] = joint.with_rivals(found.fit, own_rivals)
    others = []
    if strength(by_direction, [further_term(row.name) for row in rows]) > SIGNIFICANT:
        others.append((_DIFFERENT_WAYS, by_direction))
    others += [(joint.late, late) for joint in joints if joint.late is not None][:1]
    rivals = [
        Rival(reason, {one.name: values_of(other)[one.name] - one.value for one in found.inertial})
        for reason, other in others
    ]
    inertial = widened(found.inertial, found.fit.unknowns, rivals, found.fit.half_width(1.0))
    return replace(found, joints=tuple(joints), inertial=inertial)


def _with_hidden_offsets(found: ArmFriction) -> ArmFriction:
    """The fit with the error of offsets that the weight hides: bodies and friction explain them, wrongly.

    An offset is half the difference of Coulomb friction by direction, a tenth of it unless the data tell more. Its
    mean and deviation, given both, are one rival of each joint.
    """
    fit = found.fit
    # An offset is an unknown of the others; of a joint that slid one way it is friction.
    hidden = [row for row in found.rows if not row.offset and not row.one_way]
    if fit is None or not hidden:
        return found
    columns = [np.full(len(row.time), float(row in hidden)) for row in found.rows]
    try:
        told = found.equations.solution(columns)
    except IdentificationError:  # too short for more unknowns
        return found
    rivals, known, joints = list[Rival](), bounded_values(fit), list(found.joints)
    for row, slopes in zip(found.rows, _by_offsets(found.equations, columns).T, strict=True):
        if row in hidden:
            size = _size(told[further_term(row.name)], _BY_DIRECTION * known[f"{row.name}_coulomb"])
            differs = f"differs by direction by {2.0 * size:.2g} {found.model.unit(row.name, 'N m')}"
            text = (
                f"Coulomb friction of {row.name} that {differs} would look like weight; needed: a wider range of angles"
            )
            changes = dict(zip(known, size * slopes, strict=True))
            rivals.append(Rival(Reason(Kind.OTHER_EXPLANATION, text), changes))
    for row in found.rows:
        joint = joints[row.joint]
        others = [{name: known[name] + change for name, change in rival.changes.items()} for rival in rivals]
        own = [
            replace(rival, changes=joint.changes_to(other, row)) for rival, other in zip(rivals, others, strict=True)
        ]
        joints[row.joint] = joint.with_rivals(fit, own)
    inertial = widened(found.inertial, fit.unknowns, rivals, fit.half_width(1.0))
    return replace(found, joints=tuple(joints), inertial=inertial)


def _by_offsets(equations: ArmEquations, columns: Sequence[Vector]) -> Vector:
    """Change (p, k) of all values by 1 N m of an offset of each joint in the rows of its column (r,)."""
    tables, offsets = [], []
    for k, (row, column) in enumerate(zip(equations.rows, columns, strict=True)):
        table = equations.table(k)
        weight = noise_weight(table, row.torque - row.known)
        tables.append(weight * table)
        offsets.append(np.zeros((len(column), len(columns))))
        offsets[-1][:, k] = weight * column
    stacked = np.vstack(tables)
    lengths = np.linalg.norm(stacked, axis=0)
    lengths[lengths == 0.0] = 1.0
    return np.asarray(np.linalg.lstsq(stacked / lengths, np.vstack(offsets), rcond=1e-9)[0] / lengths[:, None])


def _size(told: Estimate, expected: float) -> float:
    """Root mean square of a value that is 0 +-`expected` before the data and `told` by them."""
    error = told.standard_error
    if not math.isfinite(error):
        return expected
    share = expected**2 / max(expected**2 + error**2, 1e-30)
    return math.hypot(share * told.value, math.sqrt(share) * error)


def _power_rival(joint: JointFit, row: JointRows, other: Fit, exponent: float) -> Rival:
    """A further term of friction, a power of the speed."""
    term = further_term(joint.name)
    coefficient, error = values_of(other)[term], other.half_width(other[term].standard_error)
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        "friction does not follow Coulomb + viscous (+ Stribeck): the torques also contain a term of "
        f"{coefficient:.2g} +-{error:.2g} N m times |v|^{exponent:g}, v in rad/s",
    )
    changes = joint.changes_to(values_of(other), row, lambda speed: coefficient * speed**exponent)
    return Rival(reason, changes, strength(other, [term]))


def _direction_rival(joint: JointFit, row: JointRows, other: Fit) -> Rival:
    """Viscous friction that differs by direction: the interval then contains that of both."""
    values, changes = values_of(other), joint.changes_to(values_of(other), row)
    mean, half = values[f"{joint.name}_viscous"], values[further_term(joint.name)]
    both = f"{mean + half:.3g} {joint['viscous'].unit} while the angle grows, {mean - half:.3g} while it falls"
    text = f"viscous friction differs by direction: {both}; the robot has one value for both"
    reason = Reason(Kind.OTHER_EXPLANATION, text)
    speeds = {f"{joint.name}_viscous": 1.0}
    speeds |= {total.name: speed for total, speed in zip(joint.totals, joint.total_speeds, strict=True)}
    changes |= {name: abs(changes[name]) + abs(half) * speed for name, speed in speeds.items()}
    return Rival(reason, changes, strength(other, [further_term(joint.name)]))


def _offset_rival(joint: JointFit) -> Rival:
    """A constant of the efforts is no error of theirs, but half the difference of Coulomb friction by direction."""
    offset, mean = joint["offset"], joint["coulomb"].value
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"Coulomb friction may differ by direction: {mean + offset.value:.3g} {offset.unit} while the angle grows, "
        f"{mean - offset.value:.3g} while it falls; or the efforts have an offset of {offset.value:.2g} {offset.unit}",
    )
    changes = {one.name: offset.value for one in (joint["coulomb"], *joint.totals)}
    possible = offset.identified and abs(offset.value) < mean  # friction in both directions opposes the motion
    return Rival(reason, changes, abs(offset.value) / offset.standard_error if possible else 0.0)


def _late_rival(joint: JointFit, row: JointRows, other: Fit, delay: float, beside: bool) -> Rival:
    """Efforts of the joint with a delay [s] of their own, `beside` one of all, if they have it."""
    later, than = "later" if delay > 0.0 else "earlier", "those of the others" if beside else "the motion"
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"the efforts of this joint seem to be some {abs(1e3 * delay):.0f} ms {later} than {than}: remove their "
        "filter, or check the stamps; friction that grows with load looks alike",
    )
    return Rival(reason, joint.changes_to(bounded_values(other), row))


def _drift_rival(joint: JointFit, other: Fit, quantity: str) -> Rival:
    """A change of `quantity` during the recordings, from the middle of each to its end the further term."""
    term, mean = further_term(joint.name), joint[quantity]
    change = values_of(other)[term]
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"the {quantity} friction of the joint changes from {mean.value - change:.3g} to {mean.value + change:.3g} "
        f"{mean.unit} within a recording, as when a gear warms up; needed: a recording of the warm joint",
    )
    changes = {mean.name: _WARMING * change}
    for total, speed in zip(joint.totals, joint.total_speeds, strict=True):
        changes[total.name] = _WARMING * change * (1.0 if quantity == "coulomb" else speed)
    return Rival(reason, changes, strength(other, [term]))


def _refuse_late(found: ArmFriction) -> ArmFriction:
    """The fit with the viscous friction refused where the efforts are later than it can represent."""
    reason = Reason(
        Kind.OTHER_EXPLANATION,
        f"the efforts are {1e3 * found.late:.0f} ms behind the motion, which looks like viscous friction: remove "
        "the filter of the efforts, or check the stamps",
    )
    return _refuse_estimates(found, {f"{joint.name}_viscous": reason for joint in found.joints if found.late})


def _refuse_noisy(found: ArmFriction, recordings: Sequence[ArmSignals]) -> ArmFriction:
    """The fit without the friction of joints whose angles are too noisy to tell where they turn back."""
    noises, refusals = np.max([_noise_beside_steps(signals) for signals in recordings], axis=0), dict[str, Reason]()
    for row in found.rows:
        if (noise := float(noises[row.joint])) > _NOISIEST:
            text = (
                f"noise of {1e3 * noise:.2g} mrad of the angles hides where the joint turns back; needed: finer angles"
            )
            reason = Reason(Kind.TOO_LITTLE_DATA, text)
            refusals |= {f"{row.name}_{part}": reason for part in ("coulomb", "viscous")}
    return _refuse_estimates(found, refusals)


def _refuse_estimates(found: ArmFriction, refusals: Mapping[str, Reason]) -> ArmFriction:
    """The fit with the estimates in `refusals` and the total friction of their joints refused."""

    def refused(estimates: Sequence[Estimate], default: Reason | None = None) -> tuple[Estimate, ...]:
        return tuple(one.refused_if_identified(refusals.get(one.name, default)) for one in estimates)

    joints = []
    for joint in found.joints:
        reason = next((refusals[estimate.name] for estimate in joint.estimates if estimate.name in refusals), None)
        joints.append(replace(joint, estimates=refused(joint.estimates), totals=refused(joint.totals, reason)))
    return replace(found, joints=tuple(joints), inertial=refused(found.inertial))
