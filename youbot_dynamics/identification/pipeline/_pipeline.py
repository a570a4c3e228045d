"""From recordings to a result: read, fit stage by stage, judge, compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from youbot_dynamics.arrays import excerpt
from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.errors import IdentificationError, RecordingError, YoubotDynamicsError, listed
from youbot_dynamics.identification import comparison
from youbot_dynamics.identification.comparison import PathComparison, RecordedPath
from youbot_dynamics.identification.finding import StageResult, joint_words
from youbot_dynamics.identification.known_errors import (
    with_errors_of_orders,
    with_errors_of_scales,
    with_errors_of_stamps,
    with_untold_rows,
    without_sideways_motion,
    without_what_limits_hide,
)
from youbot_dynamics.identification.least_squares import Kind
from youbot_dynamics.identification.pipeline._extraction import (
    FAILURES,
    Extracted,
    HereWorker,
    Task,
    Worker,
    expand,
    named_error,
)
from youbot_dynamics.identification.reading import MERGED, Opened, Options, Source, columns_of, robot_of
from youbot_dynamics.identification.result import Result, Skipped, within_ranges
from youbot_dynamics.identification.signals import base_signals
from youbot_dynamics.identification.stages import PHASES, STAGES, Taken, chosen_stages, stage_of
from youbot_dynamics.recording.text_columns import Columns
from youbot_dynamics.robot import UNNAMED, Robot
from youbot_dynamics.simulation.scenario import drive, identified_model
from youbot_dynamics.simulation.youbot import BaseOnly

_MOST_LISTED = 4  # problems of the data listed in a refusal
_MOST_PATHS = 12  # recordings whose paths are drawn; those of a fleet would fill the report
_TIME_OFFSETS = ("time_offset", "time_offset_{recording}")  # of the poses ahead of the wheels
_LATE = 5e-3  # [s] by which wheel stamps are later than those of poses before it is said


@dataclass(frozen=True, eq=False)
class Identification:
    """The outcome of `identify`."""

    result: Result  # parameters with intervals and verdicts
    stages: tuple[StageResult, ...]  # findings of each stage, with curves and correlations
    paths: dict[str, RecordedPath]  # recorded drives by the name of their recording
    notes: tuple[str, ...]  # for the reader of the report
    warnings: tuple[str, ...]  # about the data
    robot: Robot  # as known before

    @property
    def products(self) -> dict[str, object]:
        """Further products of the stages by name, see `StageResult.products`."""
        return {name: product for stage in self.stages for name, product in stage.products.items()}


def identify(
    paths: Sequence[Path | str] | Path | str,
    robot: Robot,
    options: Options | None = None,
    progress: Callable[[str], None] = lambda message: None,
    *,
    only: Sequence[str] = (),
    worker: Worker | None = None,
) -> Identification:
    """Identify what the recordings determine about a robot, or only the requested stages.

    A worker extracts the data of each stage from every recording. This process fits them together in the order of the
    recordings, so that the result does not depend on the worker.

    Args:
        paths: bags (rosbag2 folders, .mcap, .db3, .bag), folders of bags, or text logs with `options.columns`;
            one, or several.
        robot: geometry, names, signs and what is known so far.
        options: how to read them, if they need to be described.
        progress: called with one line per step.
        only: names of stages; all if empty. In that case a stage without data is not an error.
        worker: reads the recordings; this process if None.

    Returns:
        Parameters with intervals and verdicts in `result`, and what reports and exports need.

    Raises:
        RecordingError: no recording can be read, they hold no data for the requested stages, or none of them has a
            topic or time span of `options`.
        IdentificationError: too little data for every requested stage.
        ParameterError: recordings of another robot.

    Example:
        >>> found = yd.identify("drive_of_twin_0", robot)  # both of the `write_bag` example
        >>> bool(0.1 < found.result.applied_to(robot).base.delay.effective_x < 0.3)
        True
    """
    options = Options() if options is None else options
    only = chosen_stages("only", only if isinstance(only, str) else ",".join(only))
    try:
        files = expand([Path(path) for path in ([paths] if isinstance(paths, (str, Path)) else paths)])
    except TypeError:
        raise RecordingError("recordings", got=excerpt(paths), expected="a list of paths") from None
    if not files:
        raise RecordingError("recordings", got="none", expected="one or more")
    logs = [columns_of(file, options.columns, options.rate, robot) for file in files]
    here = worker if isinstance(worker, HereWorker) else HereWorker()
    work = worker or here
    given, as_given = robot, options
    robot = robot_of(logs, robot, lambda number: here.opened(files[number], number, given, as_given))
    if robot.has_base and options.sent_with is None:  # later stages know what earlier ones found, the driver did not
        options = replace(options, sent_with=robot.base.geometry.mecanum())
    requested = _requested(only, robot, logs, str(files[0]) if len(files) == 1 else "the recordings")

    def reopen(number: int) -> Opened:
        return here.opened(files[number], number, robot, options)

    known, named = robot, robot
    stages: list[StageResult] = []
    lacking: dict[str, YoubotDynamicsError] = {}
    repeated: set[str] = set()  # stages with parameters that another one gave
    extracted: list[Extracted] = []
    sound, copies = list(range(len(files))), list[str]()
    for names in PHASES:
        wanted = tuple(name for name in names if name in requested)
        if not wanted:
            continue
        read = f"{len(sound)} recordings" if len(sound) > 1 else str(files[sound[0]])
        progress(f"reading {read} for {', '.join(wanted)}")
        tasks = [Task(files[k], k, wanted, known, options, inspect=not extracted) for k in sound]
        extracts = work(tasks, lambda name: progress(f"read {name}"))
        if not extracted:
            extracts, copies = _without_copies(extracts)
            _check_choices(extracts)
        sound = [data.number for data in extracts if data.broken is None]
        if not sound:
            raise next(data.broken for data in extracts if data.broken is not None)
        others = {data.unnamed for data in extracts if data.broken is None}
        if not extracted and robot.is_youbot and all(others):
            named = replace(robot, robot_id=next(name for name in UNNAMED if name in others))
        extracted += extracts
        for name in wanted:
            progress(f"fitting {name}")
            outcome = _finish(name, extracts, known, reopen)
            if isinstance(outcome, YoubotDynamicsError):
                lacking[name] = outcome
                continue
            for with_errors in (with_errors_of_scales, with_errors_of_stamps, with_errors_of_orders):
                outcome = with_errors(outcome, stages)
            repeated |= _add(stages, outcome)
            known = _result(robot, stages, (), {}, extracted).applied_to(robot)
    stages = [with_untold_rows(stage, _untold_rows(stage.stage, extracted)) for stage in stages]
    stages = without_what_limits_hide(stages)
    if named.robot_id in UNNAMED:
        stages = without_sideways_motion(stages)
    _check_found(only, stages, lacking, extracted)
    missing = {name: str(problem) for name, problem in lacking.items()}
    missing |= {stage.stage: stage.missing for stage in stages if stage.missing}
    counted = tuple(name for name in requested if name in only or not (name in missing or name in repeated))
    result = _result(named, stages, counted, missing, extracted)
    told = {data.number for data in extracted if "delay" in lacking and data.lacking.get("delay") is lacking["delay"]}
    drives, undrawn = _paths({k: files[k] for k in sound}, robot, options, reopen, told)
    notes = _notes(result, stages, [*undrawn, *copies])
    warnings = _late_stamps(stages)
    warnings += tuple(warning for data in extracted for warning in data.warnings)
    warnings += tuple(warning for stage in stages for warning in stage.warnings)
    result = replace(result, warnings=warnings)
    return Identification(result, tuple(stages), drives, notes, warnings, named)


_SIGNALS = {  # stage -> roles of which a text log has one if the stage can find anything
    "delay": {"command", "command_position"},
    "body": {"command", "command_position"},
    "arm_friction": {"effort", "current"},
    "thermal": {"voltage", "temperature", "housing"},
}


def _requested(only: tuple[str, ...], robot: Robot, logs: Sequence[Columns | None], thing: str) -> tuple[str, ...]:
    """Stages to run: the user's, or those of the parts of the robot; without known wheels, those with signals in logs.

    A `thing` is what the logs are called in an error.

    Raises:
        IdentificationError: a stage of a part that the robot lacks.
        RecordingError: text logs without signals of any stage.
    """
    known = robot.has_base and robot.robot_id not in UNNAMED
    lacking = {part for part, has in (("arm", robot.has_arm), ("base", robot.has_base), ("wheels", known)) if not has}
    if without := [name for name in only if STAGES[name].of in lacking]:
        part, remedy = STAGES[without[0]].of, "describe it with its joints in a robot file: docs/new_robot.md"
        got = f"robot '{robot.robot_id}', which has none that is known"
        raise IdentificationError(", ".join(without), got=got, expected=f"a robot with its {part}", remedy=remedy)
    names = only or tuple(name for name, about in STAGES.items() if about.of not in lacking)
    if only or known:
        return names
    roles = {role for log in logs if log is not None for role in log.roles}
    found = tuple(name for name in names if roles & _SIGNALS[name] or (None in logs and STAGES[name].of))
    if not found:
        expected = "command with a motion for a delay, or position with effort for friction"
        got, remedy = ", ".join(sorted(roles)), f"name these columns with --columns, {MERGED}"
        raise RecordingError(f"columns of {thing}", got=got, expected=expected, remedy=remedy)
    return found


def _add(stages: list[StageResult], outcome: StageResult) -> set[str]:
    """Add a stage's findings to those of earlier stages; return the names of stages that lose a finding to another.

    Recordings with wheel states and without may give the same number; the earlier stage knows it better, unless it is
    provisional.
    """
    repeated, given = set[str](), {finding.name for finding in outcome.findings}
    for k, stage in enumerate(stages):
        kept = tuple(finding for finding in stage.findings if finding.name not in given)
        if stage.provisional and len(kept) < len(stage.findings):
            stages[k] = replace(stage, findings=kept)
            repeated.add(stage.stage)
    taken = {finding.name for stage in stages for finding in stage.findings}
    unknown = tuple(finding for finding in outcome.findings if finding.name not in taken)
    stages.append(replace(outcome, findings=unknown))
    return repeated | ({outcome.stage} if len(unknown) < len(outcome.findings) else set())


def _late_stamps(stages: Sequence[StageResult]) -> tuple[str, ...]:
    """Warnings of wheel stamps that are later than those of poses of the same motion: delays are as much too long.

    Poses that are late themselves, as of a camera that needs time, say nothing about the wheels.
    """
    findings = {stage.stage: [finding for finding in stage.findings if finding.identified] for stage in stages}
    stamps = next((one.estimate for one in findings.get("calibration", ()) if one.row.key == "stamps"), None)
    if stamps is not None:
        low, high = (f"{1e3 * end:.3g}" for end in stamps.interval)
        return (
            f"the driver stamps the wheels {low} to {high} ms later than it reads them: poses of the same motion are "
            "received soon after their stamps, so that these are right; delays are without this time, which odometry "
            "takes off with robot.base.delay.stamps",
        )
    offsets = [finding.estimate for finding in findings.get("calibration", ()) if finding.row.key in _TIME_OFFSETS]
    late = [offset for offset in offsets if offset.interval[1] < -_LATE]
    if not late or not findings.get("delay"):
        return ()
    by = " or ".join(f"{-1e3 * offset.value:.3g} +-{500.0 * np.ptp(offset.interval):.2g} ms" for offset in late)
    return (
        f"wheels are stamped {by} later than the poses of the same motion: either their clocks differ, and delays are "
        "right, or the driver stamps its readings that late, and delays by these stamps contain it; check the clocks, "
        "and stamp readings when they are taken",
    )


def _notes(result: Result, stages: Sequence[StageResult], others: Sequence[str]) -> tuple[str, ...]:
    """Notes for the reader: what was lost, the `others`, how far to trust a number of recordings, those of stages."""
    return (
        *(f"{source.path}: {source.lost}" for source in result.sources if source.lost),
        *others,
        *([f"{result.enough_for}: fewer do not show how much drives differ"] if result.enough_for else []),
        *(f"{stage.stage}: {note}" for stage in stages for note in stage.notes),
        *(f"{skipped.path} was skipped: {skipped.reason}" for skipped in result.skipped),
    )


def _check_found(
    only: Sequence[str],
    stages: Sequence[StageResult],
    lacking: Mapping[str, YoubotDynamicsError],
    extracted: Sequence[Extracted],
) -> None:
    """Raise the error of a requested stage, or the first one to correct if no stage told anything."""
    for name in only:
        if name in lacking:
            raise _explained(lacking[name], extracted)
    estimates = [finding.estimate for stage in stages for finding in stage.findings]
    # Signals that contradict each other are the first to correct: their findings tell, whatever else is lacking.
    contradicted = any(one.reason is not None and one.reason.kind is Kind.WRONG_SIGNALS for one in estimates)
    if not only and not contradicted and not any(one.identified for one in estimates):
        # Every drive should determine the delay, of the wheels or of a base without them: the first error to correct.
        # What a body or an arm in motion lacks is told by its findings.
        moved = (stage.findings and not stage.missing for stage in stages if stage.stage in ("body", "arm_friction"))
        if "delay" in lacking and not any(moved):
            raise _explained(
                _either(lacking["body"], lacking["delay"]) if "body" in lacking else lacking["delay"], extracted
            )
        if not stages:
            raise _explained(next(iter(lacking.values())), extracted)
        if all(stage.missing for stage in stages):
            raise IdentificationError("recordings", got="; ".join(stage.missing for stage in stages))


def _without_copies(extracts: Sequence[Extracted]) -> tuple[list[Extracted], list[str]]:
    """Recordings without those with the same data as an earlier one, and which these are: a copy is no other drive."""
    first: dict[str, str] = {}
    kept, copies = [], []
    for data in extracts:
        if data.broken is None and data.sha256 in first:
            copies.append(f"{data.path} has the same data as {first[data.sha256]}: they count once")
        else:
            kept.append(data)
            first |= {data.sha256: data.path} if data.broken is None else {}
    return kept, copies


def _check_choices(extracts: Sequence[Extracted]) -> None:
    """Refuse a topic or time span of the user that no recording has; what only some lack is their own failure."""
    read = [data for data in extracts if data.broken is None]
    for option, problem in read[0].refused.items() if read else ():
        if all(option in data.refused for data in read):
            others = f" and {len(read) - 1} more recordings" if len(read) > 1 else ""
            raise type(problem)(
                f"{problem.thing}{others}", got=problem.got, expected=problem.expected, remedy=problem.remedy
            )


def _untold_rows(name: str, extracts: Sequence[Extracted]) -> dict[str, float]:
    """Axis or channel -> longest time [s] as of `untold_rows`, of the recordings that a stage used."""
    pairs = [pair for data in extracts if name in data.parts for pair in data.untold.items()]
    return {channel: max(row for other, row in pairs if other == channel) for channel, _ in pairs}


def _finish(
    name: str, extracts: Sequence[Extracted], robot: Robot, reopen: Callable[[int], Opened]
) -> StageResult | YoubotDynamicsError:
    """Fit of one stage, or the reason why no recording has data for it."""
    taken = [Taken(data.number, Path(data.path).name, data.parts[name]) for data in extracts if name in data.parts]
    if not taken:
        return next(data.lacking[name] for data in extracts if name in data.lacking)

    try:
        result = stage_of(name).finish(taken, robot, reopen)
    except FAILURES as problem:
        return named_error(name, problem)
    left_out = tuple(
        f"{Path(data.path).name} left out: {data.lacking[name]}" for data in extracts if name in data.lacking
    )
    sideways = robot.base.geometry.moves_sideways
    called = joint_words(robot.driver.arm_joints)
    findings = tuple(
        replace(finding, row=replace(finding.row, called=called))
        for finding in result.findings
        if sideways or not finding.row.of_sideways
    )
    return replace(result, findings=within_ranges(findings), notes=(*result.notes, *left_out))


def _either(body: YoubotDynamicsError, wheels: YoubotDynamicsError) -> YoubotDynamicsError:
    """Error of recordings that lack a response of the body, with what they lack for one of the wheels."""
    if str(body) == str(wheels):
        return wheels
    told = f"for a response of the wheels: {wheels}"
    remedy = f"{body.remedy}; {told}" if body.remedy else told
    return type(body)(body.thing, got=body.got, expected=body.expected, remedy=remedy)


def _explained(problem: YoubotDynamicsError, extracted: Sequence[Extracted]) -> YoubotDynamicsError:
    """Add the problems of the recordings to a refusal, since they may be its cause and no report is written."""
    lost = dict.fromkeys(f"{Path(data.path).name} is damaged: {data.lost}" for data in extracted if data.lost)
    problems = [*lost, *dict.fromkeys(warning for data in extracted for warning in data.warnings)]
    if not problems:
        return problem
    also = f"also check: {listed(problems, '; ', _MOST_LISTED)}"
    remedy = f"{problem.remedy}; {also}" if problem.remedy else also
    return type(problem)(problem.thing, got=problem.got, expected=problem.expected, remedy=remedy)


def _result(
    robot: Robot,
    stages: Sequence[StageResult],
    requested: tuple[str, ...],
    missing: dict[str, str],
    extracted: Sequence[Extracted],
) -> Result:
    """Result of the stages so far."""
    findings = tuple(finding for stage in stages for finding in stage.findings)
    stage_of_finding = {finding.name: stage.stage for stage in stages for finding in stage.findings}
    sources: dict[int, Source] = {}
    skipped: dict[int, Skipped] = {}
    for data in extracted:
        if data.broken is not None:
            skipped[data.number] = Skipped(data.path, str(data.broken))
            continue
        part = data.parts.get("delay") or data.parts.get("body")
        before = sources.get(data.number)
        clock, signals = (part.clock, part.signals) if part else (before.clock, before.signals) if before else ("", "")
        sources[data.number] = Source(data.path, data.sha256, clock, signals, data.robot_id, data.lost)
    ordered = tuple(sources[k] for k in sorted(sources) if k not in skipped)
    return Result(
        robot.robot_id,
        findings,
        requested,
        missing,
        stage_of_finding,
        ordered,
        tuple(skipped[k] for k in sorted(skipped)),
    )


def _paths(
    files: Mapping[int, Path], robot: Robot, options: Options, reopen: Callable[[int], Opened], told: Set[int]
) -> tuple[dict[str, RecordedPath], list[str]]:
    """Paths of a few recordings; a path that cannot be drawn is a note, since the numbers do not need it.

    The result tells already of `told` recordings why their base signals cannot be read.
    """
    drives: dict[str, RecordedPath] = {}
    notes: list[str] = []
    if len(files) > _MOST_PATHS or not robot.has_base:
        return drives, notes
    for number, file in files.items():
        try:
            opened, signals = reopen(number), None
            if opened.log is not None:
                continue
            recording = opened.bag()
            signals = base_signals(recording, robot, options.topics, sent_with=options.sent_with)
            path = comparison.recorded_path(recording, signals, options.topics)
        except FAILURES as problem:
            if signals is not None or number not in told:
                notes.append(f"no path in the report: {named_error(f'path of {file}', problem)}")
            continue
        if path is not None:
            drives[file.name] = path
    return drives, notes


def compare(name: str, drives: Sequence[RecordedPath], robot: Robot) -> PathComparison:
    """Recorded drives of the program `name` side by side, with the restored and the simulated drive.

    Both use the identified delays of the robot. Feedback is not simulated for a base that cannot move sideways, since
    the tracker gives it none.
    """
    shortest = min(drives, key=lambda path: len(path.time))
    time, desired = shortest.time, shortest.desired_poses()
    actual = {path.label: path.actual[: len(time)] for path in drives}
    for path in drives:
        if path.label == comparison.OPEN_LOOP:
            actual[comparison.RESTORED] = path.restored(robot.base.delay.effective())[: len(time)]
    if robot.base.geometry.moves_sideways:
        plant = BaseOnly(identified_model(robot), robot.driver, seed=0)
        simulated = drive(shortest.desired, robot, plant, 0, TrackerSettings())
        poses = comparison.relative_path(simulated.true_pose, np.zeros(3))
        actual[comparison.SIMULATED] = comparison.sample_poses(simulated.reading_time - simulated.start, poses, time)
    ordered = {label: actual[label] for label in comparison.ROWS if label in actual}
    estimated = {path.label: path.estimated[: len(time)] for path in drives if path.estimated is not None}
    base = robot.base.geometry
    footprint = comparison.footprint_of(base)
    return PathComparison(name, time, desired, ordered, shortest.truth, estimated, footprint)
