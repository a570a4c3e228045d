"""Stage `body`: response of a base without wheel states, from its commanded Twist and odometry, poses or a gyro.

For a base with wheel states it gives only the largest accelerations and speeds; other stages find its response.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from youbot_dynamics.arrays import usual_step
from youbot_dynamics.errors import IdentificationError, RecordingError
from youbot_dynamics.identification.body._fit import KINDS, BodyAxis, combined, identify_axis
from youbot_dynamics.identification.body._mounting import mounting, on_the_base, with_errors
from youbot_dynamics.identification.delay.stage import DEAD_TIME, EFFECTIVE, LAG
from youbot_dynamics.identification.finding import Finding, FitCurve, Row, StageResult, Table
from youbot_dynamics.identification.reading import ONE_WAY, Opened, find_wheel_states, first_rows
from youbot_dynamics.identification.signals import base_signals, body_signals
from youbot_dynamics.identification.stages import DRAWN, EXCERPT, Taken
from youbot_dynamics.robot import Robot

ACCELERATION = Row(
    "base.limits.acceleration_{axis}",
    "m/s2, rad/s2",
    "largest acceleration {axis}",
    told=("limits {axis}", "acceleration"),
)
SPEED = Row("base.limits.speed_{axis}", "m/s, rad/s", "largest speed {axis}", told=("limits {axis}", "speed"))
FINDINGS = Table(
    *(EFFECTIVE, DEAD_TIME, LAG),
    Row("base.body.gain_{axis}", "1", "gain {axis}", told=("delay {axis}", "gain")),
    Row("base.body.dead_band_{axis}", "m/s, rad/s", "largest command without effect {axis}"),
    *(ACCELERATION, SPEED),
)
_WHEEL_PERIOD = 0.05  # time between the readings of wheels that are used [s]; means over 1.2 s need no more


@dataclass(frozen=True, eq=False)
class _BodyPart:
    """Response of one recording."""

    wheels: bool  # whether it has wheel states
    axes: tuple[BodyAxis, ...]  # without curves
    fits: tuple[FitCurve, ...]  # curves of those with an identified delay
    clock: str  # clock of the times
    signals: str  # topics that were compared
    note: str  # where the tracked body is on the base, "" if at its centre or unknown


def extract(opened: Opened, robot: Robot) -> _BodyPart:
    """Response of one recording.

    Raises:
        RecordingError: the recording lacks a command or a motion.
        IdentificationError: a text log of other channels, or too little time in common.
    """
    if opened.recording is None:
        expected = "a bag with cmd_vel and odom, or columns command.x with measured.x or a pose"
        raise IdentificationError(f"body of {opened.path}", got="a text log of channels", expected=expected)
    chosen, wheels = opened.options.topics, _has_wheels(opened, robot)
    mounted, old = None, 0.0
    if wheels:
        signals = base_signals(opened.bag(), robot, chosen, sent_with=opened.options.sent_with)
        time = signals.measured_time
        stride = max(1, round(_WHEEL_PERIOD / usual_step(time))) if len(time) > 1 else 1
        used = np.flatnonzero(time <= np.min(signals.command_time, initial=np.inf) + EXCERPT)[::stride]
    else:
        signals = body_signals(opened.bag(), chosen, opened.options.pose_topic)
        used = np.flatnonzero(first_rows(signals.measured))
        old = usual_step(signals.measured_time, 0.0) if len(used) < len(signals.measured_time) else 0.0
        mounted = mounting(signals) if signals.tracked else None
        if mounted is not None:
            signals = replace(signals, measured=on_the_base(signals.measured, mounted))
    try:
        axes = [
            identify_axis(
                channel,
                f"{unit}/s",
                signals.command_time,
                signals.command[:, k],
                signals.measured_time[used],
                signals.measured[used, k],
                measured_is=signals.measured_is,
            )
            for k, (channel, unit) in enumerate(zip(signals.channels, signals.units, strict=True))
        ]
    except IdentificationError as short:
        got = f"{short.got} in {opened.path}"
        raise IdentificationError(short.thing, got=got, expected=short.expected, remedy=short.remedy) from None
    axes = [axis.read_earlier(old) for axis in axes]
    # A driver that stops one axis between its commands stops them all, however little the others show it.
    if stop := next((axis.stop for axis in axes if axis.stop), None):
        axes = [axis.stopped(stop) for axis in axes]
    if mounted is not None:
        axes = [*(with_errors(axis, mounted, k) for k, axis in enumerate(axes[:2])), *axes[2:]]
    note = "" if mounted is None or not mounted.clear else f"{opened.path.name}: {mounted.in_words()}"
    drawn = axes if opened.number < DRAWN and not wheels else []
    fits = tuple(_curve(axis, opened.path.name) for axis in drawn if axis["effective"].identified)
    return _BodyPart(wheels, tuple(axis.without_curve() for axis in axes), fits, signals.clock, signals.source, note)


def _has_wheels(opened: Opened, robot: Robot) -> bool:
    with suppress(RecordingError):
        topic = find_wheel_states(opened.bag(), robot.driver.wheel_joints, opened.options.topics)
        opened.bag().joint_states(topic, robot.driver.wheel_joints)  # a topic found by its name may hold the arm alone
        return True
    return False


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Response of each axis, from all recordings together."""
    parts: list[_BodyPart] = [recording.part for recording in taken]
    limits = [finding for axis in _combined(parts) for finding in _findings(axis, KINDS[-2:])]
    response = [
        finding
        for axis in _combined([part for part in parts if not part.wheels])
        for finding in _findings(axis, KINDS[:-2])
    ]
    if not response and not any(finding.identified for finding in limits):
        reached = ", ".join(
            f"{finding.row.in_words} at least {finding.estimate.interval[0]:.3g} {finding.estimate.unit}"
            for finding in limits
            if finding.estimate.interval[0] > 0.0
        )
        if not reached:
            return StageResult("body", missing="; ".join(dict.fromkeys(finding.estimate.verdict for finding in limits)))
        return StageResult("body", missing=f"no command exceeded what the base can do: {reached}")
    fits = tuple(fit for part in parts for fit in part.fits)
    notes = (ONE_WAY, *(part.note for part in parts if part.note)) if response else ()
    return StageResult("body", (*response, *limits), fits=fits, notes=notes)


def _combined(parts: Sequence[_BodyPart]) -> list[BodyAxis]:
    return [combined(axes) for axes in zip(*(part.axes for part in parts), strict=True)]


def _findings(axis: BodyAxis, kinds: Sequence[str]) -> list[Finding]:
    valid = f"commands of up to {axis.fastest:.3g} in SI units of the axis" if axis.fastest else ""
    return [Finding(FINDINGS.row(f"{kind}_{axis.channel}"), axis[kind], axis.samples, valid) for kind in kinds]


def _curve(axis: BodyAxis, name: str) -> FitCurve:
    """Measured and modelled speed of one axis."""
    delay, gain = axis["effective"], axis["gain"]
    return FitCurve(
        title=f"Body {axis.channel}, {name}",
        quantity="speed",
        unit=axis["dead_band"].unit,
        time=axis.time - axis.time[0],
        measured=axis.measured,
        modelled=axis.modelled,
        modelled_is="dead time, lag, gain and dead band on the command",
        whiteness=axis.whiteness,
        caption=f"Means over 1.2 s. Effective delay {1e3 * delay.value:.1f} ms, gain {gain.value:.4f}.",
    )
