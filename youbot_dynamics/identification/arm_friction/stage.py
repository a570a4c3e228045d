"""Stage `arm_friction`: friction of the arm's joints, its bristles and bodies, from positions and efforts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm_friction._fit import ArmFriction, JointFit, identify_arm_friction
from youbot_dynamics.identification.arm_friction._inertia import consistent_inertia
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

_PARAMETERS = ("coulomb", "viscous")  # of those fitted with the bodies; sigma0 and sigma1 come from reversals
_LONGEST = 3600.0  # [s] of readings that are fitted together: more teaches little and fills the memory
_FEWEST_FOR_BODIES = 200  # windows: 20 s of one joint sliding
_MOST_POINTS = 3000  # of a curve


@dataclass(frozen=True, eq=False)
class _ArmPart:
    """The arm of one recording."""

    arm: RecordedArm | None  # its readings, None where nothing can be learnt of them
    refusal: str  # why, "" where something can


def extract(opened: Opened, robot: Robot) -> _ArmPart:
    """Readings of one recording; none of one in which the arm stood, so that drives of the base cost nothing.

    Raises:
        RecordingError: no states of the arm, or angles that cannot be radians.
        IdentificationError: stamps that go back.
    """
    arm = recorded_arm(opened.bag(), robot, opened.options.topics, opened.number)
    reason = arm.refusal()
    return _ArmPart(None if reason else arm, reason)


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Friction and bodies of all recordings in which the arm moved."""
    names = tuple(f"joint_{k + 1}" for k in range(len(robot.driver.arm_joints)))
    notes = [f"{one.name}: {one.part.refusal}" for one in taken if one.part.arm is None]
    useful = [one for one in taken if one.part.arm is not None]
    if not useful:
        reason = taken[0].part.refusal
        return StageResult(STAGE, tuple(one for name in names for one in _refused(name, reason)), missing=reason)
    used, left_out = _within_an_hour(useful)
    notes += [f"{one.name} left out: an hour of readings is fitted together" for one in left_out]
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
        if max(len(row.time) for row in found.rows) < _FEWEST_FOR_BODIES:
            notes.append(f"bodies of the arm were not looked for: no joint slid for {_FEWEST_FOR_BODIES // 10} s")
        else:
            bodies = consistent_inertia(found)
            shares = ", ".join(f"{name} {share:.3f}" for name, share in bodies.explained.items())
            notes.append(
                f"share of the torques explained by physically possible bodies (R2): {shares}; what the motion does "
                "not determine has the values of the URDF"
            )
    return StageResult(
        STAGE,
        tuple(findings),
        fits=_curves(found),
        correlations=_correlations(found),
        warnings=tuple(warning for one in used for warning in _warnings(one)),
        notes=tuple(notes),
        products={} if bodies is None else {BODIES: bodies},
    )


def _parameter(joint: str, what: str) -> str:
    return f"robot.arm.{joint}.friction.{what}"


def _refused(joint: str, reason: str) -> tuple[Finding, ...]:
    units = (("coulomb", "N m"), ("viscous", "N m s/rad"), ("sigma0", "N m/rad"), ("sigma1", "N m s/rad"))
    return tuple(Finding(_parameter(joint, what), undetermined(Unknown(what, unit), reason)) for what, unit in units)


def _within_an_hour(useful: Sequence[Taken]) -> tuple[list[Taken], list[Taken]]:
    """Recordings of up to an hour together, one at least, and the rest."""
    used: list[Taken] = []
    left_out: list[Taken] = []
    total = 0.0
    for one in useful:
        time = one.part.arm.signals.time
        total += float(time[-1] - time[0])
        (used if not used or total <= _LONGEST else left_out).append(one)
    return used, left_out


def _of_joint(fitted: JointFit, joint: str) -> list[Finding]:
    """Findings of one joint: its parameters, and beside them what keeps them honest."""
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
    """Delay from the torque asked of a joint to its motion; nothing where no torques were asked for."""
    if all(arm.asked is None for arm in arms):
        return []
    name, unknown = f"arm.{joint}.torque_delay", Unknown("torque_delay", "s")
    starts = [start for arm in arms for start in torque_starts(arm, k)]
    try:
        found = estimate_torque_delay(starts)
    except IdentificationError as none:
        return [Finding(name, undetermined(unknown, f"{none.got}; needed: {none.expected}"))]
    delay = found.delay
    if not delay.identified:
        # Linear about a delay the data do not hold, its interval says nothing either.
        delay = undetermined(unknown, delay.verdict.removeprefix(refusal("")))
    return [Finding(name, delay, found.fit.rows, "", {"starts": float(found.starts)})]


def _curves(found: ArmFriction) -> tuple[FitCurve, ...]:
    """Torque of each joint in the recording that holds most of it, measured and modelled."""
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
                modelled_is="bodies and friction as identified",
                band=half[shown],
                whiteness=whiteness(row.time[shown], left),
                caption=f"Means over {1e3 * found.model.half_width:.0f} ms windows in which the joint slides; "
                f"R2 {fitted.explained:.4f} over {fitted.windows} of them.",
            )
        )
    return tuple(curves)


def _correlations(found: ArmFriction) -> tuple[Correlation, ...]:
    """Of the friction of all joints; how the bodies hang together would fill a page of its own."""
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
        told.append(f"{one.name}: {arm.left_out} readings of {arm.topic} left out, a value in them is no number")
    if arm.beyond:
        told.append(
            f"{one.name}: angles of {arm.topic} go {arm.beyond:.2f} rad beyond the limits of their joints: "
            "another zero than that of urdf/youbot.urdf makes the weight wrong"
        )
    return told
