"""Stage `arm_friction`: friction of the arm's joints, their bristles and the bodies, from positions and efforts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import FAR, ArmFriction, identify_arm_friction
from youbot_dynamics.identification.arm_friction._inertia import consistent_inertia
from youbot_dynamics.identification.arm_friction._joint_fit import JointFit
from youbot_dynamics.identification.arm_friction._load import load_friction
from youbot_dynamics.identification.arm_friction._lugre import fit_bristles
from youbot_dynamics.identification.arm_friction._rows import ArmFrictionModel
from youbot_dynamics.identification.arm_friction._torque_delay import estimate_torque_delay, torque_starts
from youbot_dynamics.identification.finding import BODIES, Correlation, Finding, FitCurve, StageResult
from youbot_dynamics.identification.least_squares import Unknown, refusal, undetermined, whiteness
from youbot_dynamics.identification.reading import Opened
from youbot_dynamics.identification.signals import RecordedArm, recorded_arm
from youbot_dynamics.identification.stages import Taken
from youbot_dynamics.robot import Robot

STAGE = "arm_friction"

_PARAMETERS = ("coulomb", "viscous")  # fitted together with the bodies; sigma0 and sigma1 come from reversals
_LONGEST = 3600.0  # total length of readings fitted together [s]; more adds little information and fills the memory
_FEWEST_FOR_BODIES = 200  # windows, 20 s of one joint sliding
_MOST_POINTS = 3000  # of a curve


@dataclass(frozen=True, eq=False)
class _ArmPart:
    """Arm data of one recording."""

    arm: RecordedArm | None  # its readings, None if they cannot be used
    refusal: str  # why they cannot be used, "" if they can


def extract(opened: Opened, robot: Robot) -> _ArmPart:
    """Readings of one recording; none if the arm was at rest, so that drives of the base cost no memory.

    Raises:
        RecordingError: no states of the arm, or angles that cannot be radians.
        IdentificationError: stamps that decrease.
    """
    arm = recorded_arm(opened.bag(), robot, opened.options.topics, opened.number)
    reason = arm.refusal()
    return _ArmPart(None if reason else arm, reason)


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Friction and bodies from all recordings in which the arm moved."""
    names = tuple(f"joint_{k + 1}" for k in range(len(robot.driver.arm_joints)))
    notes = [f"{one.name}: {one.part.refusal}" for one in taken if one.part.arm is None]
    useful = [one for one in taken if one.part.arm is not None]
    if not useful:
        reason = taken[0].part.refusal
        return StageResult(STAGE, tuple(one for name in names for one in _refused(name, reason)), missing=reason)
    used, left_out = _within_an_hour(useful)
    notes += [f"{one.name} left out: the limit of one hour of readings is reached" for one in left_out]
    signals = [one.part.arm.signals for one in used]
    found = identify_arm_friction(signals, ArmFrictionModel(names, robot.arm.model().tree))
    findings: list[Finding] = []
    for k, name in enumerate(names):
        findings += _of_joint(found[name], name)
        loaded = load_friction(found, name)
        details = {"error_without": loaded.held_out[0], "error_with": loaded.held_out[1]}
        for estimate in (loaded.load, loaded.coulomb) if loaded.load.identified else (loaded.load,):
            findings.append(Finding(f"arm.{name}.friction.{estimate.name}", estimate, details=details))
        bristles = fit_bristles(signals, found, name)
        for estimate in (bristles.sigma0, bristles.sigma1):
            details = {"reversals": float(bristles.reversals)}
            findings.append(Finding(_parameter(name, estimate.name), estimate, bristles.reversals, "", details))
        findings += _torque_delay([one.part.arm for one in used], k, name)
    findings += [
        Finding(f"arm.bodies.{one.name}", one, 0 if found.fit is None else found.fit.rows) for one in found.inertial
    ]
    bodies = None
    if found.fit is not None:
        notes += [_efforts(found)] if found.readings else []
        if max(len(row.time) for row in found.rows) < _FEWEST_FOR_BODIES:
            notes.append(f"bodies of the arm were not identified: no joint slid for {_FEWEST_FOR_BODIES // 10} s")
        else:
            bodies = consistent_inertia(found)
            shares = ", ".join(f"{name} {share:.3f}" for name, share in bodies.explained.items())
            notes.append(
                f"share of the torques explained by physically consistent bodies (R2): {shares}; parameters that the "
                "motion does not determine keep the values of the URDF"
            )
    return StageResult(
        STAGE,
        tuple(findings),
        fits=_curves(found),
        correlations=_correlations(found),
        warnings=(*_wrong_scales(found), *(warning for one in used for warning in _warnings(one))),
        notes=tuple(notes),
        products={} if bodies is None else {BODIES: bodies},
    )


def _parameter(joint: str, what: str) -> str:
    return f"robot.arm.{joint}.friction.{what}"


def _refused(joint: str, reason: str) -> tuple[Finding, ...]:
    units = (("coulomb", "N m"), ("viscous", "N m s/rad"), ("sigma0", "N m/rad"), ("sigma1", "N m s/rad"))
    return tuple(Finding(_parameter(joint, what), undetermined(Unknown(what, unit), reason)) for what, unit in units)


def _within_an_hour(useful: Sequence[Taken]) -> tuple[list[Taken], list[Taken]]:
    """Recordings of up to an hour in total (at least one), and the rest."""
    used: list[Taken] = []
    left_out: list[Taken] = []
    total = 0.0
    for one in useful:
        time = one.part.arm.signals.time
        duration = float(time[-1] - time[0])
        fits = not used or total + duration <= _LONGEST
        total += duration if fits else 0.0
        (used if fits else left_out).append(one)
    return used, left_out


def _of_joint(fitted: JointFit, joint: str) -> list[Finding]:
    """Findings of one joint: its parameters and the additional values of the fit."""
    slow, fast = fitted.speeds
    valid = f"joint speeds of {slow:.2g} to {fast:.2g} rad/s" if fitted.windows else ""
    details = {"explained": fitted.explained}
    found = []
    for estimate in (*fitted.estimates, *fitted.totals):
        what = estimate.name.removeprefix(f"{joint}_")
        name = _parameter(joint, what) if what in _PARAMETERS else f"arm.{joint}.friction.{what}"
        found.append(Finding(name, estimate, fitted.windows, valid, details))
    return found


def _torque_delay(arms: Sequence[RecordedArm], k: int, joint: str) -> list[Finding]:
    """Delay from the commanded torque of a joint to its motion; empty without torque commands."""
    if all(arm.torque_commands is None for arm in arms):
        return []
    name, unknown = f"arm.{joint}.torque_delay", Unknown("torque_delay", "s")
    starts = [start for arm in arms for start in torque_starts(arm, k)]
    try:
        found = estimate_torque_delay(starts)
    except IdentificationError as none:
        return [Finding(name, undetermined(unknown, f"{none.got}; needed: {none.expected}"))]
    delay = found.delay
    if not delay.identified:
        # The fit is linearised about a delay that the data do not support, so its interval is meaningless too.
        delay = undetermined(unknown, delay.verdict.removeprefix(refusal("")))
    return [Finding(name, delay, found.fit.rows, "", {"starts": float(found.starts)})]


def _efforts(found: ArmFriction) -> str:
    """What the efforts show of themselves: scales relative to the joint with the largest torques, and their delay."""
    *scales, delay = found.readings
    off = [
        f"{one.name.removesuffix('_scale')} {100.0 * one.value:+.1f} +- {100.0 * one.standard_error:.1f} %"
        for one in scales
        if np.isfinite(one.value)
    ]
    if np.isfinite(delay.value):
        off.append(f"all {1e3 * delay.value:.1f} +- {1e3 * delay.standard_error:.1f} ms behind the motion")
    return f"efforts, relative to those of the joint with the largest: {', '.join(off) or 'nothing is known'}"


def _wrong_scales(found: ArmFriction) -> list[str]:
    """Warnings of joints whose efforts are further off than torque constants scatter."""
    return [
        f"efforts of {one.name.removesuffix('_scale')} are {100.0 * one.value:+.0f} % off, relative to those of the "
        "joint with the largest: check the torque constants and gear ratios of both"
        for one in found.readings[:-1]
        if abs(one.value) > FAR
    ]


def _curves(found: ArmFriction) -> tuple[FitCurve, ...]:
    """Torque of each joint in the recording with most of its rows, measured and modelled."""
    if found.fit is None:
        return ()
    curves = []
    for k, row in enumerate(found.rows):
        joint = found.model.joint_names[row.joint]
        modelled, half = found.modelled(k)
        numbers, counts = np.unique(row.recording, return_counts=True)
        shown = np.flatnonzero(row.recording == numbers[np.argmax(counts)])
        shown = shown[np.argsort(row.time[shown], kind="stable")][:: 1 + len(shown) // _MOST_POINTS]
        fitted = found[joint]
        left = row.torque[shown] - modelled[shown]
        curves.append(
            FitCurve(
                title=f"Arm {joint}",
                quantity="torque",
                unit="N m",
                time=row.time[shown] - row.time[shown[0]],
                measured=row.torque[shown],
                modelled=modelled[shown],
                modelled_is="identified bodies and friction",
                band=half[shown],
                whiteness=whiteness(row.time[shown], left),
                caption=f"Means over {1e3 * found.model.half_width:.0f} ms windows in which the joint slides; "
                f"R2 {fitted.explained:.4f} over {fitted.windows} of them.",
            )
        )
    return tuple(curves)


def _correlations(found: ArmFriction) -> tuple[Correlation, ...]:
    """Correlation of the friction of all joints; that of the bodies would fill a page."""
    fit = found.fit
    if fit is None:
        return ()
    first = len(found.inertial)
    names = tuple(unknown.name for unknown in fit.unknowns)
    friction = [k for k in range(first, len(names)) if np.isfinite(fit.values[k])]
    matrix = fit.correlation[np.ix_(friction, friction)]
    shown = tuple(names[k] for k in friction)
    return (Correlation("Friction of the arm", shown, matrix, fit.condition, fit.method, fit.active_bounds),)


def _warnings(one: Taken) -> list[str]:
    arm: RecordedArm = one.part.arm
    told = []
    if arm.left_out:
        told.append(f"{one.name}: {arm.left_out} readings of {arm.topic} left out: a value in them is not a number")
    if arm.beyond:
        told.append(
            f"{one.name}: angles of {arm.topic} exceed the limits of their joints by {arm.beyond:.2f} rad: with zeros "
            "other than those of urdf/youbot.urdf the weight is wrong"
        )
    return told
