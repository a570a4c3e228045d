"""Stage `response`: response of the base to commanded twists, with dead times, lag and friction together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.delay import LONGEST, stopping
from youbot_dynamics.identification.finding import Correlation, Finding, FitCurve, Row, StageResult, Table
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.identification.reading import Opened
from youbot_dynamics.identification.response._fit import (
    Response,
    combined_response,
    fitted_again,
    identify_response,
    left_out,
    refused,
)
from youbot_dynamics.identification.response._problem import base_of
from youbot_dynamics.identification.response._signals import DriveSignals, rolled_path
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.identification.stages import DRAWN, EXCERPT, Taken
from youbot_dynamics.robot import Robot

_WHOLE = "the response of the base"
_QUIET: dict[str, Any] = {"told": ("response of the base",), "quiet": True}
_ROLLERS = _QUIET | {"sideways": True}
DEAD_TIME = Row(
    "robot.base.response.dead_time_{axis}",
    "s",
    "dead time {axis} of the response",
    _WHOLE,
    True,
    since_command=True,
    **_QUIET,
)
LAG = Row("robot.base.response.lag", "s", "lag of the response", _WHOLE, **_QUIET)
_LEVERS = ("lever", "wheel_distance", "track")
GAIN = Row(
    "base.response.gain_{axis}",
    "1",
    "gain {axis}, for the geometry in use",
    told=("delay {axis}", "gain"),
    scales={"x": ("wheel_radius",), "y": ("wheel_radius", "lateral_factor"), "yaw": ("wheel_radius", *_LEVERS)},
)
FINDINGS = Table(
    *(DEAD_TIME, LAG),
    Row("robot.base.response.rate", "1/s", "half the damping of the speed loops", _WHOLE, **_QUIET),
    Row("robot.base.response.wheel_coulomb", "N m", "Coulomb torque of a wheel in the response", _WHOLE, **_QUIET),
    Row("robot.base.response.roller_coulomb", "N", "Coulomb force of the rollers in the response", _WHOLE, **_ROLLERS),
    Row("robot.base.response.viscous_x", "N s/m", "viscous friction forward in the response", _WHOLE, **_QUIET),
    Row("robot.base.response.viscous_y", "N s/m", "viscous friction sideways in the response", _WHOLE, **_ROLLERS),
    Row("robot.base.response.turn_factor", "1", "factor of friction in turns", _WHOLE, **_QUIET),
    Row("robot.base.response.centre_x", "m", "centre of mass ahead of the middle", _WHOLE, **_ROLLERS),
    Row("robot.base.response.integral", "1", "integral action of the speed loops", _WHOLE, **_QUIET),
    Row("robot.base.response.feed", "1", "torque for accelerations in the speed loops", _WHOLE, **_QUIET),
    # The calibration identifies the gains; here they only keep the other values unbiased.
    GAIN,
)
_NOT_USED = "is not used"
_AXES = (("x", "m"), ("y", "m"), ("yaw", "rad"))


@dataclass(frozen=True, eq=False)
class _ResponsePart:
    """Response of one recording."""

    response: Response  # identified from this recording alone
    fits: tuple[FitCurve, ...]  # its curves
    samples: int  # readings
    left_out: Vector  # (2,) as `left_out` of its second half
    fastest: Vector  # largest commanded twist (3,) [m/s, m/s, rad/s]


def extract(opened: Opened, robot: Robot) -> _ResponsePart:
    """Response of one recording: commands against wheel odometry, both with their stamps.

    Raises:
        RecordingError: command or wheel states are missing.
        IdentificationError: the recording is a text log without wheel states.
    """
    if opened.recording is None:
        raise IdentificationError(f"response of {opened.path}", got="a text log", expected="a bag with wheel states")
    robot.base.geometry.mecanum().refuse_steered("response of the base")
    signals = base_signals(opened.bag(), robot, opened.options.topics, sent_with=opened.options.sent_with)
    sent, twists = signals.command_time, signals.command
    # From rest, because the model has no earlier state.
    begin = float(sent[0]) if len(sent) else 0.0
    inside = (signals.measured_time >= begin) & (signals.measured_time <= begin + EXCERPT)
    inside &= np.all(np.isfinite(signals.measured), axis=1)
    stamps = signals.measured_time[inside]
    drive = DriveSignals(sent, twists, stamps, rolled_path(signals.measured[inside]), opened.number)
    delays = robot.base.delay.effective()
    start_delays = np.where(delays > 0.0, delays, 0.15)
    axes = zip(twists.T, signals.measured[inside].T, strict=True)
    stops = (stopping(sent, command, stamps, motion, LONGEST) for command, motion in axes)
    stop = next((reason for reason in stops if reason), None)
    response = refused(stop) if stop else identify_response([drive], robot.base.dynamics(), start_delays)
    fits: tuple[FitCurve, ...] = ()
    squares = np.full(2, math.nan)
    if response.base is not None and opened.number < DRAWN:
        held_out, squares = _held_out(response, drive, opened.path.name)
        fits = _curves(response, drive, opened.path.name) + held_out
    return _ResponsePart(response, fits, len(drive.stamps), squares, np.max(np.abs(twists), axis=0, initial=0.0))


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Response of all recordings together."""
    parts: list[_ResponsePart] = [recording.part for recording in taken]
    response = combined_response([part.response for part in parts])
    samples = sum(part.samples for part in parts)
    fastest = np.max([part.fastest for part in parts], axis=0)
    valid = f"twists of up to {fastest[0]:.3g} m/s, {fastest[1]:.3g} m/s, {fastest[2]:.3g} rad/s"
    own, delays = np.sqrt(np.nansum([part.left_out for part in parts], axis=0))
    worse = response.usable and own > delays
    axes = [axis for axis, _ in _AXES if axis != "y" or robot.base.geometry.moves_sideways]
    dead_times = {axis: response[f"dead_time_{axis}"].value for axis in axes} if response.usable else {}
    unknown = [axis for axis, value in dead_times.items() if not value > 0.0]  # then BaseResponse.known is false
    instead = "the configured response or, without one, the effective delays are used instead"
    why = f"it needs the dead time of every axis, and that of {' and '.join(unknown)} was not found"
    if worse:
        why = (
            f"it predicts no better than delays alone: {own / delays:.2f} times their error in second halves of drives"
        )
    findings = []
    for estimate in response.estimates:
        row, whole = FINDINGS.row(estimate.name), bool(dead_times) and not unknown
        together = whole and row.part_of == _WHOLE and math.isfinite(estimate.value)
        finding = Finding(row, estimate, samples, valid, together=together)
        findings.append(finding.refused(Reason(Kind.UNEXPLAINED, f"{_WHOLE} {_NOT_USED}: {why}")) if worse else finding)
    return StageResult(
        "response",
        tuple(findings),
        fits=tuple(fit for part in parts for fit in part.fits),
        correlations=Correlation.of_fit("Response of the base", response.fit),
        notes=(f"{_WHOLE} {_NOT_USED}: {why}; {instead}",) if unknown or worse else (),
    )


def _held_out(whole: Response, drive: DriveSignals, name: str) -> tuple[tuple[FitCurve, ...], Vector]:
    """Poses of the second half of a drive, predicted from its commands by a fit of the first half only; `left_out`.

    Only the kind of the speed loops is that which the whole drive shows.
    Both start at the same pose. The model runs from the beginning, so that its loops have the same state as the
    robot's.
    """
    middle = 0.5 * float(drive.stamps[0] + drive.stamps[-1])
    early, later = drive.sent < middle, drive.stamps >= middle
    first = DriveSignals(drive.sent[early], drive.twists[early], drive.stamps[~later], drive.poses[~later])
    again = fitted_again(whole, first)
    squares = left_out(whole, again, first, middle)
    if again is None or whole.problem is None:
        return (), squares
    modelled = base_of(again.values, again.kind, whole.problem.dynamics).path(drive.sent, drive.twists, drive.stamps)[
        later
    ]
    measured, time = drive.poses[later], drive.stamps[later] - drive.stamps[later][0]
    turn = measured[0, 2] - modelled[0, 2]
    c, s = math.cos(turn), math.sin(turn)
    moved = modelled - modelled[0]
    moved[:, :2] = moved[:, :2] @ np.array([[c, s], [-s, c]])
    predicted = "predicted from the commands by a fit of the first half"
    curves = _axis_curves("Second half", name, predicted, time, measured, moved + measured[0], held_out=True)
    return curves, squares


def _curves(response: Response, drive: DriveSignals, name: str) -> tuple[FitCurve, ...]:
    """Poses of the wheels and of the model over time, axis by axis."""
    assert response.base is not None
    modelled = response.base.path(drive.sent, drive.twists, drive.stamps)
    measured = drive.poses - drive.poses[0] + modelled[0]
    alone, why = "model run on the commands alone", "differences come from varying friction, slip or geometry."
    caption = f"The model uses the commands and no measurement; {why}"
    return _axis_curves("Response", name, alone, drive.stamps - drive.stamps[0], measured, modelled, caption=caption)


def _axis_curves(
    title: str, name: str, modelled_is: str, time: Vector, measured: Vector, modelled: Vector, **more: Any
) -> tuple[FitCurve, ...]:
    """Measured and modelled poses (s, 3) over times (s,), axis by axis."""
    return tuple(
        FitCurve(
            title=f"{title} {label}, {name}",
            quantity="position" if axis < 2 else "heading",
            unit=unit,
            time=time,
            measured=measured[:, axis],
            modelled=modelled[:, axis],
            modelled_is=modelled_is,
            **more,
        )
        for axis, (label, unit) in enumerate(_AXES)
    )
