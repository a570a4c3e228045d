"""Stage `delay`: effective delay of each axis of the base, and dead time and lag if they can be separated."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from youbot_dynamics.arrays import usual_step
from youbot_dynamics.errors import IdentificationError, RecordingError
from youbot_dynamics.identification.delay._estimator import DelayEstimate, combine, estimate_delay
from youbot_dynamics.identification.finding import CASES, Finding, FitCurve, Row, StageResult, Table
from youbot_dynamics.identification.least_squares import Estimate, Unknown, reaching
from youbot_dynamics.identification.reading import MERGED, ONE_WAY, Opened
from youbot_dynamics.identification.signals import (
    UNITS,
    UNLIKELY_GAIN,
    HeldCommand,
    MotionSignals,
    base_signals,
    stream_gaps,
)
from youbot_dynamics.identification.stages import DRAWN, Taken
from youbot_dynamics.recording.text_log import TextLog
from youbot_dynamics.robot import Robot

EFFECTIVE = Row("robot.base.delay.effective_{axis}", "s", "delay {axis}", told=("delay {axis}",), since_command=True)
DEAD_TIME = Row(
    "robot.base.delay.dead_time_{axis}", "s", "dead time {axis}", optional=True, folded=True, since_command=True
)
LAG = Row("robot.base.delay.lag_{axis}", "s", "lag {axis}", optional=True, folded=True)
FINDINGS = Table(
    *(EFFECTIVE, DEAD_TIME, LAG),
    Row("delay.effective_{channel}", "s", "delay of {channel}", told=("delay of {channel}",), since_command=True),
    Row("delay.dead_time_{channel}", "s", "dead time of {channel}", folded=True, since_command=True),
    Row("delay.lag_{channel}", "s", "lag of {channel}", folded=True),
)
_SHORTEST_PIECE, _FEWEST = 6.0, 100  # smallest duration [s] and number of readings of a piece between gaps
_BETWEEN_READINGS = "; how the steering moves between two readings is not told"
# Share of the time between two readings by which a delay of the steering may be off; the angle of a wheel adds up, but
# that of its steering is read at instants. Chosen: of 20 twins at 20 Hz, the largest error was 1.2 ms, 0.023 of it.
_AT_INSTANTS = 0.025
_DETAIL_DELAYS = 14.0  # length of the detail of a curve, in delays


@dataclass(frozen=True, eq=False)
class _DelayPart:
    """Delays of one recording."""

    estimates: tuple[DelayEstimate, ...]  # one per channel and piece; gaps in the commands separate pieces
    fits: tuple[FitCurve, ...]  # curves of the identified ones
    clock: str  # clock of the times
    signals: str  # topics that were compared
    from_logged_speeds: bool  # whether the motion is a column of speeds in a text log


def extract(opened: Opened, robot: Robot) -> _DelayPart:
    """Delays of one recording.

    Raises:
        RecordingError: command or motion are missing.
        IdentificationError: too few samples in common.
    """
    channel_log = opened.log is not None and not opened.log.shows(robot.driver.wheel_joints)
    steered = not channel_log and robot.base.geometry.wheelbase > 0.0
    options = opened.options
    if opened.log is not None and channel_log:
        signals = text_signals(opened.log)
    else:
        signals = base_signals(opened.bag(), robot, options.topics, of_joints=True, sent_with=options.sent_with)
    parts = [_piece_estimates(part, "fopdt") for part in (_of_joints(signals) if steered else (signals,))]
    fits: tuple[FitCurve, ...] = ()
    if opened.number < DRAWN:
        fits = tuple(
            _curve(piece, k, estimate, opened.path.name)
            for (piece, longest_estimates), *_ in parts
            for k, estimate in enumerate(longest_estimates)
            if estimate.identified
        )
    estimates = tuple(one for part in parts for _, piece_estimates in part for one in piece_estimates)
    if steered:
        by = _AT_INSTANTS * usual_step(signals.measured_time, 0.0)
        estimates = tuple(_changed(one, partial(_wider, by=by)) if one.channel == "yaw" else one for one in estimates)
    if opened.log is not None and channel_log:
        known = {name: opened.log.time[np.isfinite(opened.log.command[name])] for name in signals.channels}
        halves = {name: 0.5 * usual_step(times) for name, times in known.items() if len(times) > 1}
        told = opened.log.commands_are
        sampled = {name: half for name, half in halves.items() if told.get(name) == "sampled"}
        estimates = tuple(_changed(one, partial(_later, by=sampled.get(one.channel, 0.0))) for one in estimates)
    from_logged_speeds = channel_log and signals.measured_is == "velocity"
    return _DelayPart(estimates, fits, signals.clock, signals.source, from_logged_speeds)


def text_signals(log: TextLog) -> MotionSignals:
    """Command and motion of the channels of a text log: speeds, else positions, else those of joints of these names.

    Raises:
        RecordingError: no channel has both a command and a motion.
    """
    speed = {**log.joints.get("velocity", {}), **log.measured}
    place = {**log.joints.get("position", {}), **log.measured_position}
    both = [name for name in log.command if name in speed or name in place]
    if not both:
        got = f"commands {', '.join(log.command) or 'none'}, motions {', '.join({**speed, **place}) or 'none'}"
        remedy = "name them in --columns as command.NAME and measured.NAME"
        remedy += "" if log.command and {**speed, **place} else f", {MERGED}"
        raise RecordingError(f"{log.path}", got=got, expected="a channel with both", remedy=remedy)
    speeds = all(name in log.measured for name in both) or not any(name in place for name in both)
    motion = [speed[name] if speeds else place.get(name, np.full(len(log.time), np.nan)) for name in both]
    return MotionSignals(
        channels=tuple(both),
        units=("1",) * len(both),
        command_time=log.time,
        command=np.column_stack([log.command[name] for name in both]),
        measured_time=log.time,
        measured=np.column_stack(motion),
        measured_is="velocity" if speeds else "position",
        friction=None,
        clock="time column",
        source="command to measured columns",
    )


def _of_joints(signals: MotionSignals) -> list[MotionSignals]:
    """Way of a steered wheel, and its angle, to which its command stands as a speed to a speed."""
    parts = (0, "x", "m", "position"), (2, "yaw", "rad s", "velocity")
    return [
        MotionSignals(
            (name,),
            (unit,),
            signals.command_time,
            signals.command[:, [k]],
            signals.measured_time,
            signals.measured[:, [k]],
            kind,
            None,
            signals.clock,
            signals.source,
        )
        for k, name, unit, kind in parts
    ]


def effective_delays(signals: MotionSignals) -> dict[str, float]:
    """Effective delay of each channel [s], from the pieces that the stage uses; NaN if it is refused."""
    pieces = [estimates for _, estimates in _piece_estimates(signals, "delay")]
    return {
        channel_estimates[0].channel: combine(channel_estimates).value
        for channel_estimates in zip(*pieces, strict=True)
    }


def _piece_estimates(signals: MotionSignals, model: str) -> list[tuple[MotionSignals, tuple[DelayEstimate, ...]]]:
    """Pieces without gaps, the longest first, and the delays in each.

    Raises:
        IdentificationError: too little in every piece; a single such piece is left out.
    """
    results: list[tuple[MotionSignals, tuple[DelayEstimate, ...]]] = []
    errors: list[IdentificationError] = []
    for piece in _pieces_without_gaps(signals):
        try:
            estimates = estimate_delay(
                piece.command_time,
                piece.command,
                piece.measured_time,
                piece.measured,
                model=model,
                measured_is=piece.measured_is,
                channels=piece.channels,
                friction=piece.friction,
            )
        except IdentificationError as error:
            errors.append(error)
        else:
            results.append((piece, estimates))
    if not results:
        raise errors[0]
    return results


def _pieces_without_gaps(signals: MotionSignals) -> list[MotionSignals]:
    """Pieces without gaps in the stream of commands, the longest first; the whole recording if there are no gaps."""
    gaps = stream_gaps(signals.command_time)
    if not len(gaps):
        return [signals]
    edges = [0, *(gaps + 1).tolist(), len(signals.command_time)]
    pieces = []
    for begin, end in itertools.pairwise(edges):
        sent = signals.command_time[begin:end]
        inside = (signals.measured_time >= sent[0]) & (signals.measured_time <= sent[-1])
        if sent[-1] - sent[0] < _SHORTEST_PIECE or np.count_nonzero(inside) < _FEWEST:
            continue
        pieces.append(
            replace(
                signals,
                command_time=sent,
                command=signals.command[begin:end],
                measured_time=signals.measured_time[inside],
                measured=signals.measured[inside],
                friction=None if signals.friction is None else signals.friction[begin:end],
            )
        )
    return sorted(pieces, key=lambda piece: len(piece.command_time), reverse=True) or [signals]


def finish(taken: Sequence[Taken], robot: Robot, reopen: Callable[[int], Opened]) -> StageResult:
    """Delays of all recordings together: one weighted mean per channel.

    Those of speeds alone are provisional: the shift that fits speeds best may be shorter than the delay of the path,
    which the stage `body` finds, by a fifth of a lag and more.
    """
    estimates: dict[str, list[DelayEstimate]] = {}
    notes: list[str] = []
    for _, _, part in taken:
        for estimate in part.estimates:
            estimates.setdefault(estimate.channel, []).append(estimate)
    for channel, channel_estimates in estimates.items():
        if any(estimate.identified for estimate in channel_estimates):
            refused = [estimate.verdict for estimate in channel_estimates if not estimate.identified]
            notes.extend(f"channel {channel}, left out of one recording: {verdict}" for verdict in refused)
    recordings = Counter(
        channel
        for recording in taken
        for channel in {estimate.channel for estimate in recording.part.estimates if estimate.identified}
    )
    findings = tuple(
        finding
        for channel_estimates in estimates.values()
        for finding in _findings(combine(channel_estimates), recordings)
    )
    warnings = tuple(
        f"{recording.name}: along {axis}, the base moves {gain:.3g} times as far as commanded: {UNITS}, and the wheel "
        "radius; the delay is right all the same"
        for recording in taken
        for axis, gain in _gains(recording.part).items()
        if axis in CASES["axis"] and not 1.0 / UNLIKELY_GAIN < gain < UNLIKELY_GAIN
    )
    fits = tuple(fit for recording in taken for fit in recording.part.fits)
    from_logged_speeds = all(recording.part.from_logged_speeds for recording in taken)
    return StageResult(
        "delay", findings, fits=fits, warnings=warnings, notes=(*notes, ONE_WAY), provisional=from_logged_speeds
    )


def _changed(delay: DelayEstimate, change: Callable[[Estimate], Estimate]) -> DelayEstimate:
    """The delay of a channel with its dead time changed as the whole; its lag is not."""
    dead_time = delay.dead_time and change(delay.dead_time)
    return replace(delay.with_effective(change(delay.effective)), dead_time=dead_time)


def _later(one: Estimate, by: float) -> Estimate:
    """An estimate later by a time [s]."""
    return replace(one, value=one.value + by, interval=(one.interval[0] + by, one.interval[1] + by))


def _wider(one: Estimate, by: float) -> Estimate:
    """An estimate whose interval is wider by a time [s] on both sides."""
    low, high = one.interval
    return reaching(one, Unknown(one.name, one.unit), (low - by, high + by), _BETWEEN_READINGS)


def _gains(part: _DelayPart) -> dict[str, float]:
    """Motion over command of each channel, from its longest piece."""
    return {estimate.channel: estimate.gain for estimate in reversed(part.estimates) if estimate.identified}


def _findings(delay: DelayEstimate, recordings: Mapping[str, int]) -> list[Finding]:
    """Effective delay of one channel from that many recordings; dead time and lag as additional findings."""
    valid = f"commands of up to {delay.fastest:.3g} in SI units of the channel" if delay.samples else ""
    details = {"gain": delay.gain, "residual": delay.residual, "fastest": delay.fastest}
    details["recordings"] = float(recordings[delay.channel])
    findings = [Finding(FINDINGS.row(delay.effective.name), delay.effective, delay.samples, valid, details)]
    for kind, estimate in (("dead_time", delay.dead_time), ("lag", delay.lag)):
        if estimate is not None:
            findings.append(Finding(FINDINGS.row(f"{kind}_{delay.channel}"), estimate, delay.samples, valid))
    return findings


def _curve(signals: MotionSignals, k: int, estimate: DelayEstimate, name: str) -> FitCurve:
    """Commanded, shifted and measured motion of one channel, about the same mean."""
    inside = (signals.measured_time > signals.command_time[0]) & (signals.measured_time <= signals.command_time[-1])
    inside &= np.isfinite(signals.measured[:, k])
    time, motion = signals.measured_time[inside], signals.measured[inside, k]
    command = HeldCommand.beside(signals.command_time, signals.command[:, k], time, signals.measured_is)
    commanded, shifted = command.motion(time), estimate.gain * command.motion(time - estimate.value)
    offset = float(np.mean(motion - shifted))
    first = motion[0] if signals.measured_is == "position" else 0.0
    return FitCurve(
        title=f"Channel {estimate.channel}, {name}",
        quantity="motion",
        unit=signals.units[k] if signals.measured_is == "position" else f"{signals.units[k]}/s",
        time=time - time[0],
        measured=motion - first,
        modelled=shifted + offset - first,
        modelled_is="shifted by the delay",
        reference=commanded,
        detail=_DETAIL_DELAYS * estimate.value,
        whiteness=estimate.whiteness,
        caption=f"Effective delay {1e3 * estimate.value:.2f} ms.",
    )
