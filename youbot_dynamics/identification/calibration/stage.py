"""Stage `calibration`: geometry and roller phases of the base, from wheel states and a pose topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from youbot_dynamics.arrays import Vector, rms
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.calibration._drift import Drift
from youbot_dynamics.identification.calibration._findings import FINDINGS, TIME_OFFSETS, geometry_findings
from youbot_dynamics.identification.calibration._fit import LEVER, RADIUS, Calibration
from youbot_dynamics.identification.calibration._model import odometry_errors
from youbot_dynamics.identification.calibration._poses import CalibrationSignals, recorded_calibration_signals
from youbot_dynamics.identification.calibration._rollers import RollerPhaseFit, calibrate_with_rollers
from youbot_dynamics.identification.calibration._start import first_guess
from youbot_dynamics.identification.calibration._weights import PoseNoise
from youbot_dynamics.identification.calibration._whole_way import WHEELBASE, calibrate_whole_way, expected_drift
from youbot_dynamics.identification.finding import TWIST_ERROR, Correlation, Finding, StageResult
from youbot_dynamics.identification.least_squares import NORMAL, Estimate, Kind, Reason, Unknown, judge
from youbot_dynamics.identification.reading import Opened
from youbot_dynamics.identification.stages import Taken, within_an_hour
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_base import WHEELS

STAGE = "calibration"
_SPAN = 2.0  # [s] over which the error of odometry is measured
_OWN = 0.0003  # [m] RMS error over `_SPAN` below which poses were computed from the wheels: slip alone causes more
LATE = 5e-3  # [s] by which wheel stamps are later than those of poses before it is said
_EARLY = 0.01  # [s] by which a pose may be received before its stamp, by clocks that are synchronised
_BODY = 1.5e-3  # [s] by which a body lags behind its wheels that creep: 0.3 to 1.2 ms on simulated bases
_NOTABLE = 0.005  # [m] scatter of the poses above which it is told
_OWN_POSES = Reason(
    Kind.WRONG_SIGNALS,
    "the configured geometry already explains these poses to a fraction of a millimetre: they were computed from the "
    "wheels, or there is nothing to calibrate",
)
_NOISY = Reason(Kind.NOT_MEASURED, "the poses scatter more than odometry drifts between them")
_COUNTING = (
    "roller phases are those of the newest recording, and are valid until the driver restarts its count; "
    "odometry detects that"
)
_MISWIRED = (
    "delays, response and friction of the base were computed from the same wheel readings: if wheels are exchanged or "
    "reversed, these values are wrong too"
)


def extract(opened: Opened, robot: Robot) -> CalibrationSignals:
    """Wheels and poses of one recording.

    Raises:
        RecordingError: no wheel states, no poses except odometry, or several candidate topics.
    """
    return recorded_calibration_signals(
        opened.bag(), robot, opened.options.topics, opened.options.pose_topic, opened.number
    )


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Fit the geometry to all recordings together; the tracked body must be in the same place on the robot in all."""
    recordings, notes = within_an_hour(taken, lambda part: part.wheel_time)
    used: list[CalibrationSignals] = [recording.part for recording in recordings]
    geometry = robot.base.geometry
    if geometry.wheelbase > 0.0:
        return _of_steered_wheel(used, robot, notes)
    fitted = calibrate_with_rollers(used, geometry.wheels(), robot.base.wheel_weights())
    notes += _noise_note(fitted.calibration.noise)
    plain = np.vstack([odometry_errors(part, geometry.mecanum(), np.zeros(3), 0.0, _SPAN, 0.0) for part in used])
    own = len(plain) > 0 and rms(plain[:, :2]) < _OWN
    products, drift = {}, None
    if fitted.calibration.wiring:
        notes.append(_MISWIRED)
    if fitted.calibration[LEVER].identified and not own:
        bases = geometry.mecanum(), fitted.calibration.base
        found = fitted.calibration
        place = found.sensor, found.offsets, found.smoothing, found.of_past
        before, after = (_rms_errors(used, base, *place) for base in bases)
        notes.append(_comparison(before, after))
        drift = _drift(used, fitted.calibration)
        notes += _drift_note(drift)
        products = {TWIST_ERROR: after / _SPAN} if np.all(np.isfinite(after)) else {}
    samples = sum(len(signals.poses) for signals in used)
    findings = geometry_findings(fitted.calibration, geometry, samples)
    if drift is not None:
        growths = _growths(drift, fitted.calibration.noise)
        findings += [Finding(FINDINGS.row(growth.name), growth, samples) for growth in growths]
    findings += _late_stamps(used, fitted.calibration.estimates, robot)
    if own:
        findings = [finding.refused(_OWN_POSES) for finding in findings]
    if isinstance(fitted.phases, str):
        notes += [f"roller phases: {fitted.phases}"] if geometry.moves_sideways else []
    else:
        phases = _roller_findings(fitted.phases, len(used[-1].wheel_time))
        findings += [finding.refused(_OWN_POSES) for finding in phases] if own else phases
        if fitted.phases.identified and not own:
            notes.append(_COUNTING)
    return StageResult(
        STAGE,
        tuple(findings),
        correlations=Correlation.of_fit("Geometry of the base", fitted.calibration.fit),
        notes=tuple(notes),
        products=products,
    )


def _of_steered_wheel(used: Sequence[CalibrationSignals], robot: Robot, notes: list[str]) -> StageResult:
    """Geometry of a base with a steered wheel, over whole drives.

    Raises:
        IdentificationError: too few drives with motion in which the poses are known.
    """
    base = robot.base.geometry.mecanum()
    fitted = calibrate_whole_way(used, base, first_guess(used, base).offsets, clocks=True)
    estimates, products = fitted.estimates, {}
    notes += _noise_note(fitted.noise)
    before, after = (_rms_errors(used, one, fitted.sensor, fitted.offsets) for one in (base, fitted.wheels))
    if rms(before[:2]) < _OWN:
        estimates = tuple(estimate.refused(_OWN_POSES) for estimate in estimates)
    elif fitted[RADIUS].identified and fitted[WHEELBASE].identified:
        notes += [_comparison(before, after), *_drift_note(fitted.drift)]
        estimates += _growths(fitted.drift, fitted.noise)
        products = {TWIST_ERROR: after / _SPAN} if np.all(np.isfinite(after)) else {}
    samples = sum(len(signals.poses) for signals in used)
    findings = [Finding(FINDINGS.row(estimate.name), estimate, samples) for estimate in estimates]
    findings += _late_stamps(used, estimates, robot)
    return StageResult(STAGE, tuple(findings), notes=tuple(notes), products=products)


def _late_stamps(used: Sequence[CalibrationSignals], estimates: Sequence[Estimate], robot: Robot) -> list[Finding]:
    """How much later than they are read the driver stamps the wheels; nothing where the recordings do not show it.

    Wheels that are stamped later than poses of the same motion leave open whose stamps are wrong. Poses that arrive
    soon after their stamps are of no earlier moment: then those of the wheels are late, by that time less at most.
    """
    offsets = [one for one in estimates if FINDINGS.row(one.name).key in TIME_OFFSETS]
    pairs = list(zip(offsets, (part.travel for part in used), strict=False))
    sure = all(one.identified and one.interval[1] + max(travel, -_EARLY) < -LATE for one, travel in pairs)
    if not pairs or not sure or any(not -_EARLY <= travel for _, travel in pairs):
        return []
    before = robot.base.delay.stamps
    low = before - max(one.interval[1] + max(travel, 0.0) for one, travel in pairs)
    high = before - min(one.interval[0] for one, _ in pairs) + _BODY
    value = before - float(np.mean([one.value for one, _ in pairs]))
    unknown, half_width = Unknown("stamps", "s", low=0.0), 0.5 * (high - low)
    late = judge(unknown, value, half_width / NORMAL, half_width, interval=(low, high))
    return [Finding(FINDINGS.row(late.name), late, sum(len(part.wheel_time) for part in used))]


def _growths(drift: Drift, noise: PoseNoise | None) -> tuple[Estimate, Estimate]:
    """Growth of the errors of odometry; poses that scatter more than it drifts do not show it."""
    position, yaw = drift.estimates()
    return (position.refused(_NOISY), yaw.refused(_NOISY)) if noise is not None and noise.coarse else (position, yaw)


def _rms_errors(
    recordings: Sequence[CalibrationSignals],
    base: MecanumBase,
    sensor: Vector,
    offsets: Vector,
    smoothing: float = 0.0,
    of_past: bool = False,
) -> Vector:
    """RMS errors (3,) [m, m, rad] of odometry with a geometry over `_SPAN`; NaN if no pose has another one later."""
    pairs = zip(recordings, offsets.tolist(), strict=True)
    errors = np.vstack(
        [odometry_errors(part, base, sensor, offset, _SPAN, smoothing, of_past) for part, offset in pairs]
    )
    return np.sqrt(np.mean(errors**2, axis=0)) if len(errors) else np.full(3, np.nan)


def _noise_note(noise: PoseNoise | None) -> list[str]:
    """What was found of the poses, in words; nothing for those of motion capture."""
    if noise is None or not (noise.coarse or noise.position > _NOTABLE):
        return []
    jumps = f", and {100.0 * noise.outlying:.2g} % jump so far off that they hardly count" if noise.outlying else ""
    return [f"the poses scatter by {1e3 * noise.position:.1f} mm and {np.degrees(noise.yaw):.2g} degrees{jumps}"]


def _drift(recordings: Sequence[CalibrationSignals], calibration: Calibration) -> Drift | None:
    """What odometry does over whole drives; None where there are too few."""
    try:
        return expected_drift(recordings, calibration.base, calibration.sensor, calibration.offsets.tolist())
    except IdentificationError:
        return None


def _drift_note(drift: Drift | None) -> list[str]:
    """The same in words."""
    if drift is None:
        return []
    return [
        "at the end of drives like these, expect odometry with the identified geometry to be off by "
        f"{100.0 * drift.position:.2g} % of the way of the wheels and {np.degrees(drift.yaw):.2g} degrees a metre of "
        f"it (root mean square of {drift.drives} drives or parts of drives, with the noise of the poses; turns on the "
        "spot are way too); straight ahead, or in circles one way, it may be several times that"
    ]


def _comparison(before: Vector, after: Vector) -> str:
    """The RMS errors (3,) [m, m, rad] of odometry before and after the calibration, in words."""
    texts = [
        f"{1e3 * x:.1f} mm forward, {1e3 * y:.1f} mm sideways, {1e3 * yaw:.1f} mrad" for x, y, yaw in (before, after)
    ]
    return (
        f"the RMS error of odometry over {_SPAN:g} s is {texts[0]} with the configured geometry and {texts[1]} with the"
        " identified one; both include the noise of the poses"
    )


def _roller_findings(fit: RollerPhaseFit, samples: int) -> list[Finding]:
    """Phases as robot parameters if all are identified; otherwise as additional findings: a robot needs no phases."""
    phases = [
        Finding(FINDINGS.row(f"roller_phase_{wheel}"), estimate, samples, listed=not fit.identified)
        for wheel, estimate in zip(WHEELS, fit.estimates, strict=True)
    ]
    if not fit.identified:
        return phases
    error = max(estimate.standard_error for estimate in fit.estimates)
    largest = Estimate("roller_phase_error", "rad", error, 0.0, (error, error))
    return [*phases, Finding(FINDINGS.row(largest.name), largest, samples)]
