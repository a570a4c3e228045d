"""Stage `body`: response of a base without wheel states, from its commanded Twist and odometry or a gyro."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.body._fit import KINDS, BodyAxis, combined, identify_axis
from youbot_dynamics.identification.finding import Finding, FitCurve, StageResult
from youbot_dynamics.identification.reading import ONE_WAY, Opened
from youbot_dynamics.identification.signals import body_signals
from youbot_dynamics.identification.stages import DRAWN, Taken
from youbot_dynamics.robot import Robot

_DELAYS = ("effective", "dead_time", "lag")
_MOST_POINTS = 4000  # of a curve


@dataclass(frozen=True, eq=False)
class _BodyPart:
    """Response of one recording."""

    axes: tuple[BodyAxis, ...]  # without curves
    fits: tuple[FitCurve, ...]  # curves of those with an identified delay
    clock: str  # clock of the times
    signals: str  # topics that were compared


def extract(opened: Opened, robot: Robot) -> _BodyPart:
    """Response of one recording.

    Raises:
        RecordingError: the recording lacks a command, a motion or a common clock.
        IdentificationError: wheel states, a text log, or too little time in common.
    """
    if opened.recording is None:
        raise IdentificationError(f"body of {opened.path}", got="a text log", expected="a bag with cmd_vel and odom")
    signals = body_signals(opened.bag(), robot, opened.options.topics)
    axes = [
        identify_axis(
            channel,
            f"{unit}/s",
            signals.command_time,
            signals.command[:, k],
            signals.measured_time,
            signals.measured[:, k],
        )
        for k, (channel, unit) in enumerate(zip(signals.channels, signals.units, strict=True))
    ]
    drawn = axes if opened.number < DRAWN else []
    fits = tuple(_curve(axis, opened.path.name) for axis in drawn if axis["effective"].identified)
    return _BodyPart(tuple(axis.without_curve() for axis in axes), fits, signals.clock, signals.source)


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Response of each axis, from all recordings together."""
    parts: list[_BodyPart] = [one.part for one in taken]
    axes = [combined(of_axis) for of_axis in zip(*(part.axes for part in parts), strict=True)]
    findings = tuple(finding for axis in axes for finding in _findings(axis))
    fits = tuple(fit for part in parts for fit in part.fits)
    return StageResult("body", findings, fits=fits, notes=(ONE_WAY,))


def _findings(axis: BodyAxis) -> list[Finding]:
    valid = f"commands of up to {axis.fastest:.3g} in SI units of the axis" if axis.fastest else ""
    found = []
    for kind in KINDS:
        estimate = replace(axis[kind], name=f"{kind}_{axis.channel}")
        # Dead time and lag are additional to the effective delay: it is no failure if they cannot be separated.
        parameter = kind == "effective" or (kind in _DELAYS and estimate.identified)
        place = "robot.base.delay" if parameter else "base.delay" if kind in _DELAYS else "base.body"
        found.append(Finding(f"{place}.{estimate.name}", estimate, axis.samples, valid))
    return found


def _curve(axis: BodyAxis, name: str) -> FitCurve:
    """Measured and modelled speed of one axis."""
    every = max(1, len(axis.time) // _MOST_POINTS)
    delay, gain = axis["effective"], axis["gain"]
    return FitCurve(
        title=f"Body {axis.channel}, {name}",
        quantity="speed",
        unit=axis["dead_band"].unit,
        time=axis.time[::every] - axis.time[0],
        measured=axis.measured[::every],
        modelled=axis.modelled[::every],
        modelled_is="dead time, lag, gain and dead band on the command",
        whiteness=axis.whiteness,
        caption=f"Means over 1.2 s. Effective delay {1e3 * delay.value:.1f} ms, gain {gain.value:.4f}.",
    )
