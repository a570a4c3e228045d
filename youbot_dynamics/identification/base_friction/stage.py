"""Stage `base_friction`: friction of the base, from wheel speeds and torques, or from coasting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.base_friction._fit import (
    BaseFriction,
    coast_sums,
    fit_coast_down,
    friction_of,
    friction_sums,
    most_general,
    no_friction,
)
from youbot_dynamics.identification.base_friction._rows import FrictionModel, friction_rows
from youbot_dynamics.identification.base_friction._signals import FrictionSignals, recorded_wheel_signals
from youbot_dynamics.identification.finding import Correlation, Finding, FitCurve, Row, StageResult, Table
from youbot_dynamics.identification.least_squares import BlockSums, Estimate, Kind, Reason, Rows, merge
from youbot_dynamics.identification.reading import Opened
from youbot_dynamics.identification.stages import Taken
from youbot_dynamics.robot import Robot

STAGE = "base_friction"
WHEEL_COULOMB = Row("base.friction.wheel_coulomb_{wheel}", "N m", "Coulomb torque of the {wheel} wheel")
WHEEL_VISCOUS = Row("base.friction.wheel_viscous_{wheel}", "N m s", "viscous friction of the {wheel} wheel")
_FORCE = Row("base.friction.constant_force_{axis}", "N, N m", "force {axis} that does not depend on the motion")
FINDINGS = Table(
    Row("robot.base.friction.viscous_x", "N s/m", "viscous friction forward", told=("viscous friction", "forward")),
    Row(
        "robot.base.friction.viscous_y",
        "N s/m",
        "viscous friction sideways",
        told=("viscous friction", "sideways"),
        sideways=True,
    ),
    Row(
        "robot.base.friction.roller_coulomb",
        "N",
        "Coulomb force of the rollers of a wheel",
        told=("Coulomb friction", "rollers"),
        sideways=True,
    ),
    Row("robot.base.friction.wheel_coulomb", "N m", "Coulomb torque of a wheel", told=("Coulomb friction", "wheel")),
    *(WHEEL_COULOMB, WHEEL_VISCOUS),
    # The others keep the friction unbiased.
    Row("base.friction.missed_inertia_{axis}", "kg, kg m2", "inertia {axis} beyond that of the robot file"),
    Row("base.friction.missed_impulse_{axis}", "kg s, kg m2 s", "effort {axis} out of phase with the commands"),
    _FORCE,
    Row(
        "base.friction.{coefficient}_over_mass",
        "1/s, m/s2, m2/s2",
        "{coefficient} over the effective mass",
        told=("{coefficient} over mass",),
    ),
)
# Coulomb torques that differ between the wheels, by motors or loads, would be taken for rollers or viscous friction if
# all wheels had the same torque. These coefficients come from the fit with a torque for each wheel.
_FROM_WHEEL_FIT = ("viscous_x", "viscous_y", "roller_coulomb")
# Bounds of the mass that a load or efforts out of phase add, as shares of the mass in the robot file, and the standard
# errors beyond them. Efforts that are read in phase with the commands may miss the whole push of the motors. Where even
# that is not enough, and beyond the last bound, twice the mass, no friction is identified.
_HEAVIEST, _LIGHTEST, _CLEAR, _IMPOSSIBLE = 0.8, -1.2, 4.0, 1.0
_AXES = (("forward", "N"), ("sideways", "N"), ("turning", "N m"))
_COASTING_NOTE = (
    "friction over effective mass, from coasting; multiply it by the effective mass (body and reflected inertia "
    "of the wheels) to get friction, with the error of that mass"
)

_NOT_A_PARAMETER = Reason(
    Kind.NOT_OF_THE_ROBOT,
    "it depends on the time between commands and effort readings in this recording; it keeps this effect out of the "
    "friction and is not a property of the robot",
)
_CONSTANT = Reason(
    Kind.NOT_OF_THE_ROBOT,
    "it is a zero error of the efforts or a slope of the floor in this recording; it keeps this effect out of the "
    "friction and is not a property of the robot",
)


@dataclass(frozen=True, eq=False)
class _FrictionPart:
    """Friction data of one recording."""

    sums: BlockSums | Reason  # of the most general model with friction of each wheel, or why its efforts are unusable
    coast: BlockSums | None  # of its spans with the motors off, None without spans or rolling wheels
    fastest: float  # largest wheel speed in the recording [rad/s]


def friction_model(robot: Robot, each_wheel: bool = False) -> FrictionModel:
    """Friction model of a robot's base."""
    base = robot.base
    return FrictionModel(base.geometry.mecanum(), base.mass, base.yaw_inertia, base.wheel_inertia, each_wheel)


def extract(opened: Opened, robot: Robot) -> _FrictionPart:
    """Block sums of one recording.

    Spans with the motors off, if the user gave any, are used for coasting only; the efforts are used elsewhere.

    Raises:
        RecordingError: no wheel states, or wheel angles in degrees.
    """
    signals = _signals(opened, robot)
    off = _motors_off_spans(opened, signals)
    coast = coast_sums(signals, off, friction_model(robot)) if off else None
    driven = signals.without(off)
    sums = driven.refusal() or friction_sums(driven, most_general(friction_model(robot, each_wheel=True)))
    return _FrictionPart(sums, coast, signals.fastest)


def _signals(opened: Opened, robot: Robot) -> FrictionSignals:
    delays = robot.base.delay.effective()
    return recorded_wheel_signals(opened.bag(), robot, opened.options.topics, delays, opened.number)


def _motors_off_spans(opened: Opened, signals: FrictionSignals) -> tuple[tuple[float, float], ...]:
    """Spans with the motors off on the clock of the signals [s]."""
    if not len(signals.time):
        return ()
    first, last = float(signals.time[0]), float(signals.time[-1])
    spans = tuple((first + begin, first + end) for begin, end in opened.options.motors_off)
    for begin, end in spans:
        if end <= first or begin >= last:
            raise RecordingError(
                f"--motors-off {begin - first:g},{end - first:g} in {opened.path}",
                got=f"a recording of {last - first:.1f} s",
                expected="seconds after its first wheel state",
            )
    return spans


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Fit the friction to all recordings with efforts together; without any, to the coasting spans."""
    model = friction_model(robot)
    usable = [recording for recording in taken if isinstance(recording.part.sums, BlockSums)]
    notes = [f"{one.name}: {one.part.sums.text}" for one in taken if isinstance(one.part.sums, Reason)]
    fastest = max((recording.part.fastest for recording in usable), default=0.0)
    coasts = [recording.part.coast for recording in taken if recording.part.coast is not None]
    coasting = fit_coast_down(coasts, model)
    coasting_findings: tuple[Finding, ...] = ()
    if coasts:
        coasting_findings = _findings(coasting, coasting.estimates, max(recording.part.fastest for recording in taken))
        notes.append(_COASTING_NOTE)
    if not usable:
        if coasts:
            return StageResult(
                STAGE, coasting_findings, correlations=Correlation.of_fit("Coasting", coasting.fit), notes=tuple(notes)
            )
        reason = taken[0].part.sums
        refused = no_friction(model, reason)
        return StageResult(STAGE, _findings(refused, refused.estimates, fastest), missing=reason.text)

    def driven(recording: Taken) -> FrictionSignals:
        opened = reopen(recording.number)
        signals = _signals(opened, robot)
        return signals.without(_motors_off_spans(opened, signals))

    def model_rows(selected: FrictionModel) -> Iterable[Rows]:
        for recording in usable:
            yield from friction_rows(selected, driven(recording))

    wheel_model = friction_model(robot, each_wheel=True)
    sums = merge([recording.part.sums for recording in usable])
    friction, wheel_friction = (
        friction_of(sums, wheel_model, selected, partial(model_rows, selected)) for selected in (model, wheel_model)
    )
    rows = list(friction_rows(model, driven(usable[0])))
    fitted_estimates = () if friction.fit is None else friction.fit.estimates
    missed_effects = [_refuse_recording_effect(estimate) for estimate in fitted_estimates[model.coefficients :]]
    warnings, wrong = _wrong_scale(fitted_estimates, model)
    of_wheels = [one for one in wheel_friction.estimates if "wheel" in FINDINGS.row(one.name).of]
    common = [
        wheel_friction[one.name] if one.identified and one.name in _FROM_WHEEL_FIT else one
        for one in friction.estimates
    ]
    coefficients, wheels = ([one.refused_if_identified(wrong) for one in group] for group in (common, of_wheels))
    return StageResult(
        STAGE,
        (
            *_findings(friction, (*coefficients, *missed_effects), fastest),
            *_findings(wheel_friction, wheels, fastest),
            *coasting_findings,
        ),
        fits=_curves(friction, rows, usable[0].name),
        correlations=Correlation.of_fit("Friction of the base", friction.fit),
        notes=tuple(notes),
        warnings=tuple(warnings),
    )


def _wrong_scale(estimates: Iterable[Estimate], model: FrictionModel) -> tuple[list[str], Reason | None]:
    """Warnings if efforts and accelerations show another mass than any load or late effort explains.

    The second value is the reason to refuse all friction, None if there is none.
    """
    warnings, reason = [], None
    inertia = effective_inertia(model.base, model.mass, model.yaw_inertia, model.wheel_inertia)
    effective = {f"missed_inertia_{axis}": (axis, float(inertia[k, k])) for k, axis in enumerate("xy")}
    for estimate in estimates:
        share = estimate.value / model.mass
        error = _CLEAR * estimate.standard_error / model.mass
        if estimate.name in effective and (share - error > _HEAVIEST or share + error < _LIGHTEST):
            axis, known = effective[estimate.name]
            shown = (
                f"along {axis}, efforts and accelerations show {known + estimate.value:.3g} kg, but the "
                f"robot file has {known:.3g} kg, wheels and rotors included"
            )
            warnings.append(
                f"{shown}: the friction is wrong by a similar factor if an effort has another unit, torque constant or "
                "gear ratio, or the wheels another radius"
            )
            if share - error > _IMPOSSIBLE or share < 0.0:
                checks = "check the units of efforts, angles and stamps, then the mass"
                reason = Reason(Kind.WRONG_SIGNALS, f"{shown}: {checks}")
    return warnings, reason


def _refuse_recording_effect(estimate: Estimate) -> Estimate:
    """Refuse a missed inertia, missed impulse or constant force (`FrictionModel`): it belongs to the recording."""
    reason = _CONSTANT if FINDINGS.row(estimate.name).pattern == _FORCE.pattern else _NOT_A_PARAMETER
    return estimate.refused_if_identified(reason)


def _findings(friction: BaseFriction, estimates: Iterable[Estimate], fastest: float) -> tuple[Finding, ...]:
    """Findings of a fit, robot parameters first."""
    rows = 0 if friction.fit is None else friction.fit.rows
    valid = f"wheel speeds of up to {fastest:.3g} rad/s" if rows else ""
    findings = [Finding(FINDINGS.row(estimate.name), estimate, rows, valid) for estimate in estimates]
    return tuple(sorted(findings, key=lambda finding: not finding.is_parameter))


def _curves(friction: BaseFriction, pieces: Sequence[Rows], name: str) -> tuple[FitCurve, ...]:
    """Friction force along each axis of one recording, measured and modelled."""
    fit = friction.fit
    if fit is None or not np.all(np.isfinite(fit.values[: friction.model.coefficients])):
        return ()
    time = np.concatenate([piece.time for piece in pieces])
    table = np.concatenate([piece.regressors for piece in pieces])
    target = np.concatenate([piece.target for piece in pieces])
    modelled, half_width = table @ np.nan_to_num(fit.values), fit.band(table)
    # Roller friction has no effect on the rows of x, viscous_x none on those of y, see `FrictionModel.columns`.
    acts = {unknown.name: table[:, k] != 0.0 for k, unknown in enumerate(fit.unknowns)}
    along = ~acts["viscous_y"] & ~acts["roller_coulomb"]
    across = ~acts["viscous_x"] & ~along
    curves = []
    for rows, (direction, unit) in zip((along, across, ~along & ~across), _AXES, strict=True):
        shown = np.flatnonzero(rows)
        if len(shown) < 2:
            continue
        curves.append(
            FitCurve(
                title=f"Base {direction}, {name}",
                quantity="force" if unit == "N" else "torque",
                unit=unit,
                time=time[shown] - time[shown[0]],
                measured=target[shown],
                modelled=modelled[shown],
                modelled_is="identified friction",
                band=half_width[shown],
                caption="Friction: wheel torques minus the torques that accelerate body and wheels, while all wheels "
                f"turn in one direction. The model explains {fit.explained:.1%} of its sum of squares in all rows.",
            )
        )
    return tuple(curves)
