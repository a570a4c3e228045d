"""From recordings to a result and a report: read, fit, judge, compare."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from youbot_dynamics.errors import ParameterError, RecordingError
from youbot_dynamics.identification.base_signals import MotionSignals, base_signals, text_signals
from youbot_dynamics.identification.comparison import (
    FEEDBACK,
    OPEN_LOOP,
    RESTORED,
    SIMULATED,
    PathComparison,
    relative_path,
    sample_poses,
)
from youbot_dynamics.identification.delay import DelayEstimate, combine, estimate_delay
from youbot_dynamics.identification.held_command import HeldCommand
from youbot_dynamics.identification.recorded_path import RecordedPath, recorded_path
from youbot_dynamics.identification.report import ChannelFit, Report, write_report
from youbot_dynamics.identification.result import Result, Source, versions, write_result
from youbot_dynamics.recording.bag import Recording, open_bag
from youbot_dynamics.recording.text_log import read_text_log
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.base_only import BaseOnly
from youbot_dynamics.simulation.scenario import drive, identified_model

_MOST_FIT_POINTS = 4000


@dataclass(frozen=True, eq=False)
class Identification:
    """What came out.

    Args:
        result: parameters with intervals and verdicts.
        fits: curves of the delay fits.
        paths: recorded drives by the name of their recording.
        notes: what the reader of the report should know.
    """

    result: Result
    fits: tuple[ChannelFit, ...]
    paths: Mapping[str, RecordedPath]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Options:
    """How recordings are read.

    Args:
        topics: role -> topic, where the user overrides.
        columns: description of the columns of text logs, "" if only bags are expected.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    columns: str = ""


def _silent(message: str) -> None:
    """Progress nobody watches."""


def identify(
    paths: Sequence[Path], robot: Robot, options: Options, progress: Callable[[str], None] = _silent
) -> Identification:
    """Identify the effective delays of the base from recordings.

    Args:
        paths: bags (rosbag2 folders, .mcap, .db3, .bag), folders of bags, or text logs with `options.columns`.
        robot: geometry, names and signs.
        options: how to read them.
        progress: told what is done, a line a step.

    Raises:
        RecordingError: a recording that cannot be read or lacks what is needed.
        IdentificationError: too little data.
        ParameterError: recordings of another robot.
    """
    estimates: dict[str, list[DelayEstimate]] = {}
    fits: list[ChannelFit] = []
    sources: list[Source] = []
    drives: dict[str, RecordedPath] = {}
    notes: list[str] = []
    for path in expand(paths):
        progress(f"reading {path}")
        signals, source, recording = _read(path, robot, options)
        _check_robot(source, robot)
        sources.append(source)
        if source.lost:
            notes.append(f"{path}: {source.lost}")
        progress(f"fitting the delays of {', '.join(signals.channels)}")
        found = estimate_delay(
            signals.command_time,
            signals.command,
            signals.measured_time,
            signals.measured,
            measured_is=signals.measured_is,
            channels=signals.channels,
            friction=signals.friction,
        )
        for k, estimate in enumerate(found):
            estimates.setdefault(estimate.channel, []).append(estimate)
            if estimate.identified:
                fits.append(_fit_curves(signals, k, estimate))
        if recording is not None:
            _add_path(path.name, recording, signals, options, drives, notes)
    for channel, of_channel in estimates.items():
        if any(estimate.identified for estimate in of_channel):
            refused = [estimate.verdict for estimate in of_channel if not estimate.identified]
            notes.extend(f"channel {channel}, left out of one recording: {verdict}" for verdict in refused)
    delays = tuple(combine(of_channel) for of_channel in estimates.values())
    result = Result(robot.robot_id, delays, tuple(sources))
    return Identification(result, tuple(fits), drives, tuple(notes))


def _add_path(
    name: str,
    recording: Recording,
    signals: MotionSignals,
    options: Options,
    drives: dict[str, RecordedPath],
    notes: list[str],
) -> None:
    """Add the path of a recording; one that cannot be drawn is a note, since the delays stand without it."""
    try:
        path = recorded_path(recording, signals, options.topics)
    except RecordingError as problem:
        notes.append(f"no path in the report: {problem}")
        return
    if path is not None:
        drives[name] = path


def expand(paths: Sequence[Path]) -> list[Path]:
    """Replace a folder that holds bags, but is none itself, by its bags.

    Raises:
        RecordingError: a path that does not exist.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise RecordingError(str(path), got="no such file or folder", remedy="check the path of the recording")
        inner = _bags_inside(path) if path.is_dir() and not _is_bag(path) else []
        found.extend(inner or [path])
    return found


def _is_bag(folder: Path) -> bool:
    return folder.is_dir() and any(child.suffix in (".mcap", ".db3") for child in folder.iterdir())


def _bags_inside(folder: Path) -> list[Path]:
    children = sorted(folder.iterdir())
    return [c for c in children if _is_bag(c)] + [c for c in children if c.is_file() and c.suffix == ".bag"]


def _read(path: Path, robot: Robot, options: Options) -> tuple[MotionSignals, Source, Recording | None]:
    if options.columns and path.is_file() and path.suffix not in (".mcap", ".db3", ".bag"):
        log = read_text_log(path, options.columns)
        signals = text_signals(log)
        return signals, Source(str(path), log.sha256, signals.clock, signals.source, "", ""), None
    recording = open_bag(path)
    signals = base_signals(recording, robot, options.topics)
    source = Source(
        str(path),
        recording.sha256,
        signals.clock,
        signals.source,
        recording.metadata.get("robot_id", ""),
        recording.lost,
    )
    return signals, source, recording


def _check_robot(source: Source, robot: Robot) -> None:
    if source.robot_id and source.robot_id != robot.robot_id:
        raise ParameterError(
            f"recording {source.path}",
            got=f"robot '{source.robot_id}'",
            expected=f"robot '{robot.robot_id}'",
            remedy="identify it with the parameter file of its own robot: --params-file",
        )


def _fit_curves(signals: MotionSignals, k: int, estimate: DelayEstimate) -> ChannelFit:
    """Commanded, shifted and measured motion of one channel, about the same mean."""
    inside = (signals.measured_time > signals.command_time[0]) & (signals.measured_time <= signals.command_time[-1])
    time = signals.measured_time[inside][:: max(1, int(np.count_nonzero(inside) / _MOST_FIT_POINTS))]
    motion = signals.measured[inside, k][:: max(1, int(np.count_nonzero(inside) / _MOST_FIT_POINTS))]
    half = 0.5 * float(np.median(np.diff(time))) if signals.measured_is == "velocity" else 0.0
    command = HeldCommand(signals.command_time, signals.command[:, k], half)
    commanded, shifted = command.motion(time), estimate.gain * command.motion(time - estimate.value)
    level = float(np.mean(motion - shifted))
    first = motion[0] if signals.measured_is == "position" else 0.0
    unit = signals.units[k] if signals.measured_is == "position" else f"{signals.units[k]}/s"
    return ChannelFit(
        channel=estimate.channel,
        unit=unit,
        time=time - time[0],
        commanded=commanded,
        shifted=shifted + level - first,
        measured=motion - first,
    )


def with_delays(robot: Robot, delays: Sequence[DelayEstimate]) -> Robot:
    """Same robot with the identified delays in place of its own."""
    values = {f"effective_{delay.channel}": delay.value for delay in delays if delay.identified}
    known = {name: value for name, value in values.items() if hasattr(robot.base.delay, name)}
    delay = dataclasses.replace(robot.base.delay, **known)
    return dataclasses.replace(robot, base=dataclasses.replace(robot.base, delay=delay))


def compare(name: str, drives: Sequence[RecordedPath], robot: Robot) -> PathComparison:
    """Drives of one program side by side, with the restored and the simulated one.

    Args:
        name: of the program.
        drives: recorded drives of the same program.
        robot: with the identified delays.
    """
    shortest = min(drives, key=lambda path: len(path.time))
    time, desired = shortest.time, shortest.desired_poses()
    actual = {path.label: path.actual[: len(time)] for path in drives}
    for path in drives:
        if path.label == OPEN_LOOP:
            actual[RESTORED] = path.restored(robot.base.delay.effective())[: len(time)]
    plant = BaseOnly(identified_model(robot), robot.driver, seed=0)
    simulated = drive(shortest.desired, robot, plant, seed=0)
    origin = np.zeros(3)
    poses = relative_path(simulated.true_pose, origin)
    actual[SIMULATED] = sample_poses(simulated.reading_time - simulated.start, poses, time)
    ordered = {label: actual[label] for label in (OPEN_LOOP, RESTORED, SIMULATED, FEEDBACK) if label in actual}
    return PathComparison(name, time, desired, ordered, shortest.truth)


def write_outputs(
    folder: Path, identification: Identification, comparisons: Sequence[PathComparison], title: str
) -> None:
    """Write result.yaml, result.json and report.html into a folder, made if needed; each file whole or not at all."""
    result = identification.result
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_result(folder, result)
        provenance = {f"recording {k + 1}": s.path for k, s in enumerate(result.sources)}
        provenance |= {f"clock {k + 1}": s.clock for k, s in enumerate(result.sources)}
        provenance |= {f"sha256 {k + 1}": s.sha256 for k, s in enumerate(result.sources)}
        report = Report(
            title=title,
            robot_id=result.robot_id,
            delays=result.delays,
            fits=identification.fits,
            paths=tuple(comparisons),
            provenance={**provenance, **versions()},
            notes=identification.notes,
        )
        write_report(folder / "report.html", report)
    except OSError as problem:
        raise RecordingError(
            f"output folder {folder}", got=str(problem.strerror), expected="a folder that can be written"
        ) from None
