"""Stage `arm_friction`: friction of the arm's joints, their bristles and the bodies, from positions and efforts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from youbot_dynamics.errors import IdentificationError, listed
from youbot_dynamics.identification.arm_friction._fit import FAR, ArmFriction, JointFit
from youbot_dynamics.identification.arm_friction._inertia import ConsistentInertia, consistent_inertia
from youbot_dynamics.identification.arm_friction._load import load_friction
from youbot_dynamics.identification.arm_friction._lugre import fit_bristles
from youbot_dynamics.identification.arm_friction._rivals import identify_arm_friction
from youbot_dynamics.identification.arm_friction._rows import MOST_COUPLED, ArmFrictionModel
from youbot_dynamics.identification.arm_friction._scale import EffortScale, effort_scale
from youbot_dynamics.identification.arm_friction._torque_delay import estimate_torque_delay, torque_starts
from youbot_dynamics.identification.finding import (
    BODIES,
    Correlation,
    Finding,
    FitCurve,
    Row,
    StageResult,
    Table,
    joint_words,
)
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason, too_little
from youbot_dynamics.identification.reading import Opened
from youbot_dynamics.identification.signals import RecordedArm, recorded_arm
from youbot_dynamics.identification.stages import Taken, within_an_hour
from youbot_dynamics.robot import Robot

STAGE = "arm_friction"
_QUIET: dict[str, Any] = {"told": ("bristles of {joint}",), "quiet": True}
FINDINGS = Table(
    Row("robot.arm.{joint}.friction.coulomb", "N m, N", "Coulomb torque of {joint}", told=("{joint}", "Coulomb")),
    Row(
        "robot.arm.{joint}.friction.viscous",
        "N m s/rad, N s/m",
        "viscous friction of {joint}",
        told=("{joint}", "viscous"),
    ),
    Row("robot.arm.{joint}.friction.sigma0", "N m/rad, N/m", "stiffness of the bristles of {joint}", **_QUIET),
    Row("robot.arm.{joint}.friction.sigma1", "N m s/rad, N s/m", "damping of the bristles of {joint}", **_QUIET),
    Row("arm.{joint}.friction.stribeck", "N m, N", "extra friction of {joint} at low speed"),
    Row("arm.{joint}.friction.offset", "N m, N", "offset of the efforts of {joint}"),
    Row("arm.{joint}.friction.total_at_{speed}", "N m, N", "friction of {joint} at {speed} rad/s"),
    Row("arm.{joint}.friction.load_coefficient", "1", "friction of {joint} over its load"),
    Row("arm.{joint}.friction.unloaded_coulomb", "N m, N", "Coulomb torque of {joint} without load"),
    Row("arm.{joint}.torque_delay", "s", "delay from torque to motion of {joint}"),
    Row(
        "arm.bodies.{parameter}_combination_change",
        "kg, kg m, kg m2",
        "change of {parameter} and of all parameters that act alike, from the robot file",
    ),
    Row("arm.bodies.{parameter}_change", "kg, kg m, kg m2", "change of {parameter} from the robot file"),
)
_FEWEST_FOR_BODIES = 200  # windows, 20 s of one joint sliding
# Coulomb friction over the largest torque of the motor above which efforts have another unit; the data of a motor may
# be those of a similar one.
_MOST_FRICTION = 3.0
_LEAST_EXPLAINED = 0.9  # share of a joint's torques below which the bodies are suspect; 0.94 to 0.99 on real arms


def extract(opened: Opened, robot: Robot) -> RecordedArm | Reason:
    """Readings of one recording, or why they cannot be used: drives of the base alone cost no memory.

    Raises:
        RecordingError: no states of the arm, or angles that cannot be radians.
        IdentificationError: stamps that decrease.
    """
    arm = recorded_arm(opened.bag(), robot, opened.options.topics, opened.number)
    return arm.refusal() or arm


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Friction and bodies from all recordings in which the arm moved."""
    names = tuple(f"joint_{k + 1}" for k in range(len(robot.driver.arm_joints)))
    notes = [f"{one.name}: {one.part.text}" for one in taken if isinstance(one.part, Reason)]
    usable = [recording for recording in taken if isinstance(recording.part, RecordedArm)]
    if not usable:
        reason = taken[0].part
        return StageResult(
            STAGE, tuple(finding for name in names for finding in _refused(name, reason)), missing=reason.text
        )
    used, left_out = within_an_hour(usable, lambda part: part.signals.time)
    notes += left_out
    signals = [recording.part.signals for recording in used]
    missing = {names[k] for recording in used for k in recording.part.missing}
    if missing:
        absent = ", ".join(robot.driver.arm_joints[names.index(name)] for name in sorted(missing))
        notes.append(
            f"{absent} of the arm {'was' if len(missing) == 1 else 'were'} not recorded: the others count as joints "
            "that each lift a weight of their own, which is true while those stand still"
        )
    # Links of joints whose angles are unknown weigh in an unknown way.
    tree = None if missing or not robot.arm.urdf else robot.arm.tree()
    found = identify_arm_friction(signals, ArmFrictionModel(names, tree))
    findings: list[Finding] = []
    for k, name in enumerate(names):
        joint, loaded = found[name], load_friction(found, name)
        joint = joint if found.fit is None else joint.with_rivals(found.fit, [loaded.rival(joint)])
        findings += _joint_findings(joint, name)
        details = {"error_without": loaded.held_out[0], "error_with": loaded.held_out[1]}
        for estimate in (loaded.load, loaded.coulomb) if loaded.load.identified else (loaded.load,):
            findings.append(Finding(FINDINGS.row(estimate.name, name), estimate, details=details))
        bristles = fit_bristles(signals, found, name)
        for estimate in (bristles.sigma0, bristles.sigma1):
            details = {"reversals": float(bristles.reversals)}
            findings.append(Finding(FINDINGS.row(estimate.name, name), estimate, bristles.reversals, "", details))
        findings += _torque_delay([recording.part for recording in used], k, name)
    findings = [one for one in findings if one.row.of.get("joint") not in missing]
    findings += [
        Finding(FINDINGS.row(estimate.name), estimate, 0 if found.fit is None else found.fit.rows)
        for estimate in (found.inertial if tree is not None else ())
    ]
    relative = {joint: 1.0 + one.value for joint, one in _scales(found).items() if math.isfinite(one.value)}
    scale = effort_scale(found.equations, relative)
    findings = [replace(one, estimate=_in_own_unit(one, found.model)) for one in findings]
    findings = within_motors(scale.judged(findings), robot)
    bodies, note = _bodies(found, scale) if robot.arm.urdf else (None, (_single(robot),))
    called = joint_words(robot.driver.arm_joints)
    notes += [_efforts(found, called)] if found.readings else []
    return StageResult(
        STAGE,
        tuple(findings),
        fits=_curves(found, called),
        # That of the bodies would fill a page.
        correlations=Correlation.of_fit("Friction of the arm", found.fit, len(found.inertial)),
        warnings=(
            *_wrong_scales(found, scale, called),
            *(text for recording in used for text in _warnings(recording)),
        ),
        notes=(*notes, *note),
        products={} if bodies is None else {BODIES: bodies},
    )


def _single(robot: Robot) -> str:
    """Note on joints of an arm without a URDF."""
    names = {f"joint_{k}": name for k, name in enumerate(robot.driver.arm_joints, 1)}
    joints = "".join(f"{number} is {name}; " for number, name in names.items() if name not in ("joint", number))
    others = ": its friction holds while the joints behind it stand still, or weigh little"
    if len(names) <= MOST_COUPLED:
        others = ", which depends on the angles of the others where the efforts show it"
    return f"{joints}without a robot file with a URDF, each has an inertia and a weight of its own{others}"


def _bodies(found: ArmFriction, scale: EffortScale) -> tuple[ConsistentInertia | None, tuple[str, ...]]:
    """Bodies of the arm, None if the data do not give them, and a note on them; none without a fit."""
    if found.fit is None:
        return None, ()
    lacking = "" if scale.gives_bodies else "the efforts do not fit the robot file, see the warnings"
    if max(len(row.time) for row in found.rows) < _FEWEST_FOR_BODIES:
        lacking = f"no joint slid for {_FEWEST_FOR_BODIES // 10} s"
    if found.model.tree is None:
        lacking = "some joints were not recorded"
    if lacking:
        return None, (f"bodies of the arm were not identified: {lacking}",)
    bodies = consistent_inertia(found)
    shares = ", ".join(f"{name} {share:.3f}" for name, share in bodies.explained.items())
    stopped = f"; the search stopped after {bodies.steps} steps, before it converged" if bodies.steps else ""
    consistent = f"share of the torques explained by physically consistent bodies (R2): {shares}"
    return bodies, (
        f"{consistent}; parameters that the motion does not determine keep the values of the URDF{stopped}",
    )


def _refused(joint: str, reason: Reason) -> tuple[Finding, ...]:
    return tuple(FINDINGS.row(name, joint).refused(reason) for name in ("coulomb", "viscous", "sigma0", "sigma1"))


def _joint_findings(fitted: JointFit, joint: str) -> list[Finding]:
    """Findings of one joint: its parameters and the additional values of the fit."""
    slow, fast = fitted.speeds
    valid = f"joint speeds of {slow:.2g} to {fast:.2g} rad/s" if fitted.windows else ""
    details = {"explained": fitted.explained}
    return [
        Finding(FINDINGS.row(estimate.name, joint), estimate, fitted.windows, valid, details)
        for estimate in (*fitted.estimates, *fitted.totals)
    ]


def within_motors(findings: Sequence[Finding], robot: Robot) -> list[Finding]:
    """The findings with those of a joint refused whose friction is far beyond the torque of its motor.

    Where the motor is unknown, the limit of the URDF counts, if it has one.
    """
    checked = list(findings)
    for coulomb in (one for one in findings if one.identified and one.row.key == "coulomb"):
        joint, friction = coulomb.row.of["joint"], coulomb.estimate.value
        k = int(joint.removeprefix("joint_")) - 1
        torque, of, where = robot.arm.joints[k].motor.largest_torque, "the motor", "the motor in the robot file"
        if math.isnan(torque) and robot.arm.urdf:  # an unknown motor
            torque, of, where = (
                robot.arm.tree().limits[k].effort or math.inf,
                "its limit",
                "the <limit effort> in the URDF",
            )
        if friction > _MOST_FRICTION * torque:
            unit = coulomb.estimate.unit
            text = f"a Coulomb friction of {friction:.4g} {unit} is far beyond the {torque:.3g} {unit} of {of}"
            remedy = f"check the unit of the efforts, and {where}"
            reason = Reason(Kind.WRONG_SIGNALS, f"{text}: {remedy}")
            checked = [one.refused(reason) if one.row.of.get("joint") == joint else one for one in checked]
    return checked


def _in_own_unit(finding: Finding, model: ArmFrictionModel) -> Estimate:
    """The estimate in the unit of its joint, which may slide."""
    estimate, joint = finding.estimate, finding.row.of.get("joint", "")
    return replace(estimate, unit=model.unit(joint, estimate.unit)) if joint else estimate


def _torque_delay(arms: Sequence[RecordedArm], k: int, joint: str) -> list[Finding]:
    """Delay from the commanded torque of a joint to its motion; empty without torque commands."""
    if all(arm.torque_commands is None for arm in arms):
        return []
    row = FINDINGS.row("torque_delay", joint)
    starts = [start for arm in arms for start in torque_starts(arm, k)]
    try:
        result = estimate_torque_delay(starts)
    except IdentificationError as problem:
        return [row.refused(too_little(problem))]
    details, reason = {"starts": float(result.starts)}, result.delay.reason
    # The fit is linearised about a delay that the data may not support; then its interval is meaningless too.
    finding = Finding(row, result.delay) if reason is None else row.refused(reason)
    return [replace(finding, samples=result.fit.rows, details=details)]


def _scales(found: ArmFriction) -> dict[str, Estimate]:
    """Scale of the efforts of each joint, relative to one of them."""
    names = (row.name for row in found.rows)
    return dict(zip(names, found.readings[:-1], strict=False))  # there are none without a fit


def _efforts(found: ArmFriction, called: Mapping[str, str]) -> str:
    """Note on the efforts: scales relative to one joint, and their delay."""
    delay = found.readings[-1]
    deviations = [
        f"{called[joint]} {100.0 * scale.value:+.1f} +- {100.0 * scale.standard_error:.1f} %"
        for joint, scale in _scales(found).items()
        if np.isfinite(scale.value)
    ]
    if np.isfinite(delay.value) or found.taken_back != 0.0:
        whose = "all" if all(joint.late is None for joint in found.joints) else "on the whole"
        error = f" +- {max(1e3 * delay.standard_error, 0.1):.1f}" if np.isfinite(delay.value) else ""
        deviations.append(f"{whose} {1e3 * found.effort_delay:.1f}{error} ms behind the motion")
    relative = f"efforts, relative to those of {called.get(found.reference, 'one joint')}"
    return f"{relative}: {', '.join(deviations) or 'nothing is known'}"


def _wrong_scales(found: ArmFriction, scale: EffortScale, called: Mapping[str, str]) -> list[str]:
    """Warnings of efforts that the bodies of the robot file do not explain."""
    whole = (
        f"the efforts show {scale.overall:.3g} times the weight and inertia of the links in the robot file: "
        "friction is wrong by the same factor if they are in another unit than N m, or a torque constant or gear ratio "
        "is wrong; or the arm carried a load, or its joints have another order"
    )
    if scale.overall < 0.0:
        whole = (
            f"the efforts show {scale.overall:.3g} times the weight and inertia of the links in the robot file: they "
            "have the other sign, or the arm hangs upside down, other than its URDF says"
        )
    if scale.wrong:
        return [whole]
    warnings = [
        f"efforts of {called[joint]} are {100.0 * relative.value:+.0f} % off, relative to those of "
        f"{called.get(found.reference, 'one joint')}: check the torque constants and gear ratios of both"
        for joint, relative in _scales(found).items()
        if abs(relative.value) > FAR
    ]
    if scale.suspect:
        warnings.append(whole)
    if scale.weightless:
        warnings.append(
            f"the efforts of {listed([called[joint] for joint in scale.weightless])} do not show the weight of the "
            "links in the robot file: check the order of joints and efforts, that the driver reports whole torques, "
            "without compensation of the weight, and that the arm is mounted as its URDF says"
        )
    warnings += [
        f"bodies and friction explain only {max(joint.explained, 0.0):.0%} of the torques of {called[joint.name]}: "
        "check the order of joints and efforts, the zeros of the angles and the noise; other values may be wrong too"
        for joint in found.joints
        if found.base is not None and joint.explained < _LEAST_EXPLAINED
    ]
    return warnings


def _curves(found: ArmFriction, called: Mapping[str, str]) -> tuple[FitCurve, ...]:
    """Torque of each joint in the recording with most of its rows, measured and modelled."""
    if found.fit is None:
        return ()
    curves = []
    for k, row in enumerate(found.rows):
        modelled, half_width = found.modelled(k)
        numbers, counts = np.unique(row.recording, return_counts=True)
        shown = np.flatnonzero(row.recording == numbers[np.argmax(counts)])
        shown = shown[np.argsort(row.time[shown], kind="stable")]
        fitted = found[row.name]
        curves.append(
            FitCurve(
                title=f"Arm, {called[row.name]}",
                quantity="torque",
                unit="N m",
                time=row.time[shown] - row.time[shown[0]],
                measured=row.torque[shown],
                modelled=modelled[shown],
                modelled_is="identified bodies and friction",
                band=half_width[shown],
                caption=f"Means over {1e3 * found.model.half_width:.0f} ms windows in which the joint slides; "
                f"R2 {fitted.explained:.4f} over {fitted.windows} of them.",
            )
        )
    return tuple(curves)


def _warnings(recording: Taken) -> list[str]:
    arm: RecordedArm = recording.part
    warnings = []
    if arm.left_out:
        warnings.append(
            f"{recording.name}: {arm.left_out} readings of {arm.topic} left out: a value in them is not a number"
        )
    if arm.repeats > 1:
        warnings.append(
            f"{recording.name}: each reading of {arm.topic} comes {arm.repeats} times, as from a driver that publishes "
            "faster than it reads: the first of each is used"
        )
    if arm.beyond:
        warnings.append(
            f"{recording.name}: angles of {arm.topic} exceed the limits of their joints by {arm.beyond:.2f} rad: with "
            "zeros other than those of the arm's URDF the weight is wrong"
        )
    return warnings
