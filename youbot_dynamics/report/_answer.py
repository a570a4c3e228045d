"""The short answer of an identification, for the terminal and the first screen of the report."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from youbot_dynamics.errors import command_lines, printable, wrapped
from youbot_dynamics.identification.delay.stage import EFFECTIVE
from youbot_dynamics.identification.finding import Finding, asked
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.identification.response.stage import GAIN
from youbot_dynamics.identification.result import Result, next_bringup
from youbot_dynamics.identification.stages import STAGES
from youbot_dynamics.recording.text_columns import SUFFIXES
from youbot_dynamics.report._words import Rows, brief, listed, rounded, shown
from youbot_dynamics.robot import UNNAMED

_FIRST = ("delay", "body")  # stages with delays
_BY_MOTION = {Kind.NOT_EXCITED, Kind.TOO_LITTLE_DATA, Kind.TOO_WIDE, Kind.CONFUSED, Kind.AT_BOUND, Kind.UNTOLD}
_FEW = 3  # more axes, wheels or joints are counted instead of named


class Cell(NamedTuple):
    """One number of a line, as texts."""

    label: str  # its name within the line, "" for the first number
    value: str
    unit: str  # "" for none
    interval: str  # such as "109.3 to 109.7", "" if it is unknown

    @property
    def text(self) -> str:
        """All of it."""
        value = " ".join(filter(None, (self.label, self.value, self.unit)))
        return f"{value} ({self.interval})" if self.interval else value


class Line(NamedTuple):
    """The numbers of one axis, joint or other thing."""

    name: str
    cells: tuple[Cell, ...]


class Block(NamedTuple):
    """The lines of one stage; those of an arm, one for each joint, have a heading."""

    title: str  # of the stage
    heading: str  # of the lines, with the units that they have in common; "" for none
    lines: tuple[Line, ...]


class Refused(NamedTuple):
    """What is not identified for one reason."""

    names: str
    why: str


class Answer(NamedTuple):
    """What was found and what was not."""

    blocks: tuple[Block, ...]
    refused: tuple[Refused, ...]
    briefly: tuple[Refused, ...]  # the same with the kinds of the reasons, in a few words
    without: str  # stages without a result, "" for none


def answer(result: Result) -> Answer:
    """Return what a result says in a few lines; the tables hold the rest.

    A line has the numbers whose rows name it: the gain of a response is told beside the delay. Of a model that is used
    as a whole, and of numbers that are beside the point, only a refusal is told.
    """
    told = [finding for finding in result.findings if finding.row.told]
    told = [finding for finding in told if result.stage_of[finding.name] not in result.missing]
    found = [finding for finding in told if finding.identified and not finding.row.quiet]
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(found, key=lambda finding: result.stage_of[finding.name] not in _FIRST):
        stage, name = result.stage_of[finding.name], finding.row.told[0].format(**finding.row.cases)
        alike.setdefault((stage if STAGES[stage].part == "arm" else "", name), []).append(finding)
    lines: dict[str, list[Line]] = {}
    for (of_arm, name), findings in alike.items():
        cells, row = _cells(findings), findings[0].row
        if cells[0].label and len(cells) == 1 and not of_arm:  # alone, it has a name of its own
            name, cells = row.in_words, (cells[0]._replace(label=""),)
        lines.setdefault(result.stage_of[findings[0].name], []).append(Line(name, cells))
    blocks = tuple(_block(stage, of_stage) for stage, of_stage in lines.items())
    counted = {finding.name for stage in STAGES for finding in asked(result.of_stage(stage))}
    missed = [finding for finding in told if finding.name in counted and not (finding.usable or finding.row.optional)]
    refused, briefly = (tuple(_refused(missed, why)) for why in (attrgetter("text"), _briefly))
    return Answer(blocks, refused, briefly, _without(result))


def line_of(finding: Finding) -> str:
    """What the answer calls a number: the name of its line, and its own within that."""
    return " ".join(part.format(**finding.row.cases) for part in finding.row.told)


def _cells(findings: Sequence[Finding]) -> tuple[Cell, ...]:
    """Numbers of a line; those of all wheels are one, and a gain without an interval comes last."""
    if all("wheel" in finding.row.of for finding in findings):
        return (_cell_of_wheels(findings),)
    cells = [_cell(finding) for finding in findings]
    gains = [finding.details["gain"] for finding in findings if "gain" in finding.details]
    if gains and len(cells) == 1:
        cells.append(Cell("gain", f"about {gains[0]:.3f}", "", ""))
    return tuple(cells)


def _cell_of_wheels(findings: Sequence[Finding]) -> Cell:
    """Shares of all wheels in percent: one bound where they may all be zero."""
    bounds = 100.0 * np.array([finding.estimate.interval for finding in findings])
    if np.all((bounds[:, 0] <= 0.0) & (bounds[:, 1] >= 0.0)):
        return Cell("", "0", "%", f"all within {np.max(np.abs(bounds)):.2g} %")
    half = 0.5 * float(np.max(np.ptp(bounds, axis=1)))
    values = (f"{one.row.of['wheel']} {rounded(100.0 * one.estimate.value, half, 1)}" for one in findings)
    return Cell("", ", ".join(values), "%", f"+-{half:.2g} each")


def _cell(finding: Finding) -> Cell:
    value, low, high, unit = brief(finding.estimate)
    interval = f"{low} to {high}" if low and high else ""
    return Cell("".join(finding.row.told[1:]).format(**finding.row.cases), value, unit, interval)


def _block(stage: str, lines: Sequence[Line]) -> Block:
    """Lines of a stage; of the joints of an arm the units are in the heading, if all joints have the same."""
    about = STAGES[stage]
    if about.part == "base":
        return Block(about.title, "", tuple(_unit_once(line) for line in lines))
    units = dict.fromkeys((cell.label, cell.unit) for line in lines for cell in line.cells)
    if len(units) > len({label for label, _ in units}):
        return Block(about.title, about.title, tuple(lines))
    heading = f"{about.title}, {listed([f'{label} in {unit}' for label, unit in units])}"
    bare = [line._replace(cells=tuple(cell._replace(unit="") for cell in line.cells)) for line in lines]
    return Block(about.title, heading, tuple(bare))


def _unit_once(line: Line) -> Line:
    """The line with a unit that all of several numbers have behind its name."""
    units = {cell.unit for cell in line.cells}
    if len(line.cells) < 2 or len(units) > 1 or "" in units:
        return line
    return Line(f"{line.name} [{units.pop()}]", tuple(cell._replace(unit="") for cell in line.cells))


def _refused(findings: Sequence[Finding], why: Callable[[Reason], str]) -> Iterator[Refused]:
    """What is not identified, one entry for each reason as `why` tells it; of a whole the first reason."""
    lines: dict[str, dict[str, dict[str, str]]] = {}
    seen = set[tuple[str, str]]()
    for finding in findings:
        row, reason = finding.row, finding.estimate.reason
        words = row.words if row.told[1:] else row.told[0]
        key, case = next(((key, case) for key, case in row.cases.items() if f"{{{key}}}" in words), ("", ""))
        if reason is not None and reason.kind is not Kind.NOT_OF_THE_ROBOT and (words, case) not in seen:
            seen.add((words, case))
            lines.setdefault(why(reason), {}).setdefault(words, {})[case] = key
    for text, of_reason in lines.items():
        yield Refused(", ".join(_named(line, cases) for line, cases in of_reason.items()), text)


def _briefly(reason: Reason) -> str:
    """A reason in a few words, but for what has to be mended before anything else."""
    return reason.text if reason.kind is Kind.WRONG_SIGNALS else reason.kind.in_words


def _named(line: str, cases: dict[str, str]) -> str:
    """A line of several axes, wheels or joints, given as case -> key, by one name."""
    keys = {key: [case for case, of in cases.items() if of == key] for key in cases.values()}
    return line.format(**{key: listed(of) if len(of) <= _FEW else f"{len(of)} {key}s" for key, of in keys.items()})


def _without(result: Result) -> str:
    """The stages without a result, by part of the robot: "geometry and friction of the base, motors of the arm"."""
    parts, missing = [], set(result.missing)
    if any(finding.identified for finding in result.of(EFFECTIVE)):  # in another stage
        missing.discard("delay")
    for part in ("base",) if result.robot_id == UNNAMED[0] else ("base", "arm"):
        whats = [about.what for stage, about in STAGES.items() if about.part == part and stage in missing]
        every = len(whats) == sum(about.part == part for about in STAGES.values())
        parts += [f"all of the {part}" if every else f"{listed(whats)} of the {part}"] if whats else []
    return ", ".join(parts)


class NextStep(NamedTuple):
    """What to do with a result."""

    words: str  # such as "Drive with these values:"
    command: str  # "" where the words say all
    at_once: bool = False  # whether the command needs nothing else before or beside it


def next_step(result: Result, result_file: str, robot: str = "--robot real") -> NextStep:
    """What to do with a result in `result_file`, for the `robot` of these options; "" for an arm without a base."""
    values, of_robot = result.parameters(), robot.split(" ", 2)[2:]
    if result.robot_id == UNNAMED[1]:
        return NextStep("give the URDF of the arm with --robot-file: the weight of its links is a guess here", "")
    if result.robot_id == UNNAMED[0]:
        words = "to drive with these values, make the file of this base with youbot new-robot, from a drive with "
        return NextStep(f"{words}joint_states of its wheels, and identify again with --robot-file", "")
    if result.robot_id == UNNAMED[2]:
        words = "make the file of this base, and identify again with --robot-file:"
        return NextStep(words, _new_robot(result, "my_robot.yaml"))
    if not robot:  # nothing to drive
        arm = f"the arm with these values: --robot-file {shlex.quote(str(Path(result_file).parent / 'robot.yaml'))}"
        if len(values) > 1 and _contradicts(result, "arm_friction", "thermal"):
            arm = f"mend what efforts and robot file contradict (see above), or use {arm}"
        return NextStep(arm if len(values) > 1 else _step_without_values(result), "")
    if _contradicts(result, "calibration"):
        return NextStep("mend what wheels and poses contradict, before the base drives, and identify again", "")
    delays = result.of(EFFECTIVE)
    if any(_is(finding, Kind.WRONG_SIGNALS) for finding in delays):
        words = "before you drive, mend what commands and motion contradict (see above)"
        if not result.sources or Path(result.sources[0].path).suffix.lower() in SUFFIXES:  # a text log has no wheels
            return NextStep(words, "")
        return NextStep(f"{words}; order and signs of the wheels by this drive:", _new_robot(result, "checked.yaml"))
    efforts = _contradicts(result, "arm_friction", "thermal", "base_friction")
    if efforts and not any(finding.usable for finding in delays):
        return NextStep("mend the efforts, which contradict the robot (see above), and identify again", "")
    if len(values) > 1:  # more than the robot's name
        mock = " (--robot mock for the simulated robot)" if robot.startswith("--robot real") else ""
        first = "mend the efforts, which contradict the robot (see above), or " if efforts else ""
        words, command = f"{first}drive with these values{mock}", next_bringup(robot, result_file)
        lacking = [finding.row.cases["axis"] for finding in delays if not finding.usable]
        if 0 < len(lacking) < len(delays) and not result.parameters_of("base.response"):
            words += f"; {listed(lacking)}, whose delay is unknown, will use the mean of the others or a configured one"
            return NextStep(f"{words}:", command)
        return NextStep(f"{words}:", command, at_once=not efforts)
    if result.sources and delays and all(_is(finding, Kind.UNEXPLAINED) for finding in delays):
        words = "no axis moves as it was commanded; see which wheel is where and how it turns, by this drive:"
        return NextStep(words, _new_robot(result, "checked.yaml"))
    if result.requested and {"arm_friction", "thermal"}.issuperset(result.requested):
        words = "move the arm with this command, with youbot record in a second terminal:"
        return NextStep(words, " ".join(["youbot play arm_excitation", *of_robot]))
    words = "drive every axis with this command, with youbot record in a second terminal:"
    return NextStep(words, " ".join(["youbot play excitation", *of_robot]))


def _step_without_values(result: Result) -> str:
    """What to do with an arm of which nothing was identified, by the kinds of the reasons."""
    reasons = [finding.estimate.reason for finding in result.findings if finding.row.told]
    kinds = {reason.kind for reason in reasons if reason is not None}
    if Kind.WRONG_SIGNALS in kinds:
        return "mend what efforts and robot file contradict (see above), and identify again"
    if not kinds or kinds & _BY_MOTION:
        return "move each joint in both directions, at several speeds"
    if Kind.NOT_MEASURED in kinds:
        return "record what was not measured (see above)"
    return "mend what is refused (see above), and identify again"


def _new_robot(result: Result, out: str) -> str:
    """Command that makes a robot file of the first recording."""
    return shlex.join(["youbot", "new-robot", "--bag", result.sources[0].path, "--out", out])


def _is(finding: Finding, kind: Kind) -> bool:
    """Whether a finding is refused for a kind of reason."""
    return finding.estimate.reason is not None and finding.estimate.reason.kind is kind


def _contradicts(result: Result, *stages: str) -> bool:
    """Whether signals of some stages contradict each other or the robot."""
    return any(_is(finding, Kind.WRONG_SIGNALS) for stage in stages for finding in result.of_stage(stage))


_MOST_LINES, _WIDTH = 12, 80  # of a short answer: lines of so many characters
_MOST_WARNINGS, _FEW_WARNINGS, _INDENT = 3, 2, 2  # warnings; those of two lines, of which the second is indented


def told(result: Result, width: int, result_file: str = "", robot: str = "", verbose: bool = False) -> list[str]:
    """Return lines of text: warnings, what was found, what was not, for what it is enough, and the next step.

    A warning is one line, and two if there are few. Of more than twelve lines, reasons are told in a few words, then
    counted but for the first, then numbers stand side by side, and then those of the last stages are only counted.

    Args:
        result: what was found.
        width: of a line [characters]; a narrower one than 80 may need more lines.
        result_file: path of the result, for the next step; "" of a command without one and without --verbose.
        robot: options of that command which name the robot; "" for an arm without a base.
        verbose: whether nothing is shortened.
    """
    said, wrap = answer(result), partial(wrapped, width=width)
    first, last, warnings = list[str](), list[str](), _warnings(result)
    more = "--verbose" if result_file else "the report"
    room = (2 if len(warnings) <= _FEW_WARNINGS else 1) * width - _INDENT  # [characters]
    for text in warnings if verbose else warnings[:_MOST_WARNINGS]:
        first += wrap(text if verbose else textwrap.shorten(text, room, placeholder=f" ... ({more})"))
    if len(warnings) > _MOST_WARNINGS and not verbose:
        first += wrap(f"and {len(warnings) - _MOST_WARNINGS} more ({more})")
    known = any(finding.identified for finding in result.of_stage("calibration"))
    if any(finding.identified for finding in result.of(GAIN)) and not known:
        last += wrap("gains are those for the wheel radius and lever in use")
    if result.sources and result.enough_for and said.blocks and not result.warnings:
        last += wrap(result.enough_for)
    if result_file:
        last += _step_lines(next_step(result, result_file, robot), width)
    most = sys.maxsize if verbose else max(_MOST_LINES, _MOST_LINES * _WIDTH // width) - len(first) - len(last)
    return [*first, *_lines(said, wrap, width, most, more), *last]


def _warnings(result: Result) -> list[str]:
    """What may make a result wrong: warnings about the data, and recordings that are damaged or could not be read."""
    lost = (f"{Path(source.path).name}: {source.lost}" for source in result.sources if source.lost)
    skipped = (f"{Path(one.path).name} was skipped: {one.reason}" for one in result.skipped)
    return [f"warning: {printable(text)}" for text in (*result.warnings, *lost, *skipped)]


def _step_lines(following: NextStep, width: int) -> list[str]:
    """The next step; a command that is too long for a line is continued as a shell reads it."""
    lines, first = ([], "next:") if following.at_once else (wrapped(f"next: {following.words}", width), " ")
    return [*lines, *command_lines(following.command, width, first)] if following.command else lines


def _lines(said: Answer, wrap: Callable[[str], list[str]], width: int, most: int, more: str) -> list[str]:
    """An answer in lines of a width, at most `most` as far as possible; `more` tells where the rest is."""
    blocks = [_text(block, wrap, width) for block in said.blocks]
    missed = [wrap(f"not identified: {one.names} ({one.why})") for one in said.refused]
    without = wrap(f"no result: {said.without} (why: {more})") if said.without else []

    def lines() -> list[str]:
        return [*chain(*blocks, *missed), *without]

    if len(lines()) > most:
        missed = [wrap(f"not identified: {one.names} ({one.why})") for one in said.briefly]
    reasons = missed
    for kept in range(len(reasons) - 2, 0, -1):
        if len(lines()) > most:
            others = f"not identified: more values, for {len(reasons) - kept} other reasons (which: {more})"
            missed = [*reasons[:kept], wrap(others)]
    for k in range(len(blocks) - 1, 0, -1):
        if len(lines()) > most and not said.blocks[k].heading:
            beside = (" ".join([line.name, *(cell.text for cell in line.cells)]) for line in said.blocks[k].lines)
            blocks[k] = min(wrap("; ".join(beside)), blocks[k], key=len)
    for k in range(len(blocks) - 1, 0, -1):
        if len(lines()) > most and len(blocks[k]) > 1:
            count = sum(len(line.cells) for line in said.blocks[k].lines)
            blocks[k] = wrap(f"{said.blocks[k].title}: {count} values identified (which: {more})")
    longest = max(blocks, key=len, default=[])
    if 0 < (excess := len(lines()) - most) < len(longest) - 2:
        longest[-excess - 1 :] = [f"and {excess + 1} more (which: {more})"]
    return lines()


def _text(block: Block, wrap: Callable[[str], list[str]], width: int) -> list[str]:
    """A block as lines of text with its numbers in columns, or below each other where these do not fit."""
    names = max(len(line.name) for line in block.lines)
    count = max(len(line.cells) for line in block.lines)
    columns = [max(len(cell.text) for line in block.lines for cell in line.cells[k : k + 1]) for k in range(count)]
    text = wrap(f"{block.heading}:") if block.heading else []
    fits = names + sum(columns) + 2 * count <= width
    for line in block.lines:
        text.append(line.name.ljust(names))
        for cell, size in zip(line.cells, columns, strict=False):
            if not fits and len(text[-1]) + 2 + len(cell.text) > width:
                text.append("")
            text[-1] += f"  {cell.text.ljust(size if fits else 0)}"
    return [part for line in text for part in (wrap(line) if len(line.rstrip()) > width else [line.rstrip()])]


def verdict_tables(result: Result) -> list[tuple[str, Rows]]:
    """Title and table of each stage with a result: value, interval and verdict.

    Of a stage with robot parameters only these are shown, with one delay per axis; the report holds the rest.
    """
    tables, columns = [], ("parameter", "value", result.interval_is, "unit", "verdict")
    for stage in dict.fromkeys(result.stage_of.values()):
        if stage not in result.missing:
            findings = result.of_stage(stage)
            more = len(findings) - len(asked(findings))
            remarks = [STAGES[stage].remark, f"{more} more findings: see the report" if more else ""]
            rows = [_row(finding) for finding in asked(findings)]
            tables.append((STAGES[stage].title, Rows(columns, rows, "; ".join(filter(None, remarks)))))
    return tables


def _row(finding: Finding) -> tuple[str, ...]:
    text, verdict = shown(finding.estimate), finding.estimate.verdict
    interval = f"{text.low} to {text.high}" if text.low and text.high else "-"
    if finding.part_of and not finding.identified:
        verdict = f"used as part of {finding.part_of}; on its own {verdict}"
    return finding.name, text.value or "-", interval, text.unit, verdict
