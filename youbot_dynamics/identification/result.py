"""The result as a ROS parameter file, and as JSON with intervals, verdicts and provenance; changes between two."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from youbot_dynamics import __version__
from youbot_dynamics.errors import IdentificationError, ParameterError, listed
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.finding import Finding, Row, asked
from youbot_dynamics.identification.least_squares import ENOUGH, Estimate, Kind, Reason, recorded_reason, with_unit
from youbot_dynamics.identification.reading import Source
from youbot_dynamics.parameter_file import other_sections, write_parameters
from youbot_dynamics.parameters import Parameter, Value, is_unknown
from youbot_dynamics.robot import ARM_FACTS, BASE_FACTS, PREFIX, Robot, robot_from_values, robot_table, values_of

SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Skipped:
    """A recording that could not be read."""

    path: str  # as given
    reason: str  # the error, in one line


@dataclass(frozen=True)
class Result:
    """The result of one identification."""

    robot_id: str  # of the robot
    findings: tuple[Finding, ...]  # one for each estimated number
    requested: tuple[str, ...]  # names of the stages that count for `complete`
    missing: Mapping[str, str]  # stage -> what the recordings lack for it
    stage_of: Mapping[str, str]  # name of a finding -> its stage
    sources: tuple[Source, ...]  # the recordings used
    skipped: tuple[Skipped, ...] = ()  # the recordings that could not be read
    warnings: tuple[str, ...] = ()  # about the data

    def __getitem__(self, name: str) -> Finding:
        """Finding by its name."""
        return {finding.name: finding for finding in self.findings}[name]

    def of(self, row: Row) -> tuple[Finding, ...]:
        """Findings of a row: of every axis, wheel, joint, ..., or of the one that it is `at`."""
        alike = [finding for finding in self.findings if finding.row.pattern == row.pattern]
        return tuple(one for one in alike if one.row.of | row.of == row.of | one.row.of)

    def of_stage(self, stage: str) -> tuple[Finding, ...]:
        """Findings of one stage."""
        return tuple(finding for finding in self.findings if self.stage_of[finding.name] == stage)

    @property
    def interval_is(self) -> str:
        """What the intervals include: the precision of one recording; for several, also the scatter between them."""
        return "95 % interval" if len(self.sources) > 1 else "95 % precision of this recording"

    @property
    def enough_for(self) -> str:
        """For what this number of recordings is enough, and for what it is not; "" for enough of them."""
        count = len(self.sources)
        known = "1 recording is" if count <= 1 else f"{count} recordings are"
        return f"{known} enough to use these values; to compare robots, take {ENOUGH}" if count < ENOUGH else ""

    @property
    def complete(self) -> bool:
        """Whether every requested parameter was identified."""
        for stage in self.requested:
            if stage in self.missing or not all(finding.usable for finding in asked(self.of_stage(stage))):
                return False
        return True

    def parameters(self) -> dict[str, Value]:
        """Parameters for a relaunch: identified values, alone or as part of a whole, within the parameter's range."""
        return {"robot.robot_id": self.robot_id, **{finding.name: value for finding, value in self._written()}}

    def parameters_of(self, group: str) -> dict[str, Value]:
        """Those of a group, such as "arm.joint_3.motor", by the last part of their names."""
        return {finding.row.key: value for finding, value in self._written() if finding.row.group == group}

    def _written(self) -> list[tuple[Finding, Value]]:
        """Parameters and their values, without a model that lacks a needed one: a configured one is of another fit."""
        found = [(finding, _written(finding)) for finding in self.findings]
        incomplete = {finding.row.part_of for finding, value in found if finding.row.needed and value is None}
        return [(one, value) for one, value in found if value is not None and one.row.part_of not in incomplete]

    def applied_to(self, robot: Robot) -> Robot:
        """The same robot with the identified values."""
        return robot_from_values({**values_of(robot), **self.parameters()})

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; numbers that are not finite become null."""
        return {
            "schema_version": SCHEMA_VERSION,
            "robot_id": self.robot_id,
            "parameters": [
                {"stage": self.stage_of[finding.name], "interval_is": self.interval_is, **_entry(finding)}
                for finding in self.findings
            ],
            "missing": dict(self.missing),
            "sources": [vars(source) for source in self.sources],
            "skipped": [vars(skipped) for skipped in self.skipped],
            "warnings": list(self.warnings),
            "versions": versions(),
        }


def versions() -> Mapping[str, str]:
    """Versions of the packages that may influence a result."""
    return {
        "youbot_dynamics": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def within_ranges(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of a stage; values outside the range of their parameter are refused, and all others of the same fit.

    A wrong unit or scale of a signal scales several values, of which some may remain within their ranges.
    """
    outside = {
        finding.row.group: Reason(
            Kind.OUT_OF_RANGE,
            f"{finding.row.in_words} is {with_unit(f'{finding.estimate.value:.4g}', finding.estimate.unit)},"
            " outside the range of this parameter: check the units and scales of the signals",
        )
        for finding in findings
        if finding.usable and finding.is_parameter and _written(finding) is None
    }
    return tuple(
        finding.refused(outside[finding.row.group]) if finding.usable and finding.row.group in outside else finding
        for finding in findings
    )


def _written(finding: Finding) -> Value | None:
    """Value for a parameter file; None if it is not usable, no robot parameter, or outside the range of this one."""
    # The joints of every arm have the same parameters, however many there are.
    first = {key: "joint_1" if key == "joint" else one for key, one in finding.row.of.items()}
    parameter = _parameters().get(finding.row.pattern.format(**first))
    if parameter is None or not (finding.is_parameter and finding.usable):
        return None
    try:
        return parameter.check(float(finding.estimate.value))
    except ParameterError:
        return None


@cache
def _parameters() -> dict[str, Parameter]:
    return {parameter.name: parameter for parameter in robot_table()}


def _entry(finding: Finding) -> dict[str, Any]:
    estimate = finding.estimate
    return {
        "name": finding.name,
        "words": finding.row.in_words,
        "value": _finite(estimate.value),
        "unit": estimate.unit,
        "standard_error": _finite(estimate.standard_error),
        "interval_95": [_finite(bound) for bound in estimate.interval],
        "verdict": estimate.verdict,
        "kind": None if estimate.reason is None else estimate.reason.kind.value,
        "at_bound": estimate.bound is not None,
        "samples": finding.samples,
        "valid_for": finding.valid_for,
        "part_of": finding.part_of,
        **{key: _finite(value) if isinstance(value, float) else value for key, value in finding.details.items()},
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def result_json(result: Result) -> str:
    """The result as JSON text."""
    return json.dumps(result.as_dict(), indent=2) + "\n"


def next_bringup(robot: str, result_file: str) -> str:
    """Command that drives with a result: options that name the robot, such as `--robot real`, and path of the file."""
    return f"youbot bringup {robot} --result-file {shlex.quote(result_file)}"


def write_result(folder: Path, result: Result, command: str = "") -> None:
    """Write result.yaml and result.json into an existing folder, each completely or not at all.

    The head of result.yaml names the command that uses it.
    """
    head = [f"Identified by youbot_dynamics {__version__}; intervals, verdicts and sources: result.json."]
    head += [f"Use: {command}"] if command else []
    write_parameters(folder / "result.yaml", "/**", result.parameters(), head)
    write_atomically(folder / "result.json", result_json(result))


def write_robot(folder: Path, result: Result, robot: Robot, files: Sequence[Path] = ()) -> None:
    """Write robot.yaml into an existing folder: all facts of the robot, and where those of the result are from.

    It is a robot file that needs no result beside it. Of a part that the robot lacks, and of what is unknown, it says
    nothing. What the `files` of the robot say to its nodes, such as how its driver is commanded, it says too.

    Raises:
        ParameterError: a file that ROS would refuse.
    """
    found, drives = result.parameters(), listed([Path(source.path).name for source in result.sources])
    notes = {}
    for finding in result.findings:
        if finding.name in found:
            low, high = (f"{bound:.6g}" for bound in finding.estimate.interval)
            alone = f"identified, {low} to {high}" if finding.identified else "used together with others"
            notes[finding.name] = f"{alone}, from {drives}"
    facts = values_of(dataclasses.replace(robot, robot_id=result.robot_id)) | found
    absent = (*(() if robot.has_arm else ARM_FACTS), *(() if robot.has_base else BASE_FACTS))
    facts = {name: one for name, one in facts.items() if not (name.startswith(absent) or is_unknown(one))}
    head = [
        f"Robot '{result.robot_id}', identified by youbot_dynamics {__version__}: a robot file that needs no result.",
        "Values without a remark were given or assumed before the identification.",
    ]
    others = other_sections([path for path in files if path.suffix.lower() != ".urdf"], PREFIX)
    write_parameters(folder / "robot.yaml", "/**", facts, head, notes, others)


class Verdict(Enum):
    """What became of a number from one result to another; the values are the words for it."""

    CHANGED = "changed"
    WITHIN = "within error"
    ONLY_BEFORE = "only before"
    ONLY_AFTER = "only after"


@dataclass(frozen=True)
class Change:
    """One number in two results, identified in at least one of them."""

    before: Estimate | None  # by its name in the result; None if this result does not list it
    after: Estimate | None
    difference: float = math.nan  # later minus earlier value; NaN unless both are identified
    # Half-width of the 95 % interval of the difference: root sum of squares of the half-widths towards each other.
    error: float = math.nan

    @property
    def verdict(self) -> Verdict:
        """Whether the difference exceeds its error, or which result alone identified the number."""
        if math.isnan(self.difference):
            return Verdict.ONLY_AFTER if self.after is not None and self.after.identified else Verdict.ONLY_BEFORE
        return Verdict.CHANGED if abs(self.difference) > self.error else Verdict.WITHIN


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the changes between two results of `read_result`, without the values that neither identified.

    Raises:
        IdentificationError: an entry holds invalid numbers.
    """
    old, new = ({entry["name"]: _recorded(entry) for entry in result["parameters"]} for result in (before, after))
    compared = (_change(old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new]))
    return tuple(
        change
        for change in compared
        if any(side is not None and side.identified for side in (change.before, change.after))
    )


def _change(before: Estimate | None, after: Estimate | None) -> Change:
    if before is None or after is None or not (before.identified and after.identified):
        return Change(before, after)
    difference = after.value - before.value
    lower, upper = sorted((before, after), key=lambda estimate: estimate.value)
    return Change(
        before, after, difference, math.hypot(lower.interval[1] - lower.value, upper.value - upper.interval[0])
    )


def _recorded(entry: Mapping[str, Any]) -> Estimate:
    try:
        numbers = (entry["value"], entry["standard_error"], *entry["interval_95"])
        value, error, low, high = (math.nan if number is None else float(number) for number in numbers)
        reason = recorded_reason(entry["verdict"], entry.get("kind"))
    except (TypeError, ValueError) as problem:
        got, thing = f"{type(problem).__name__}: {problem}", f"result, entry {entry['name']}"
        raise IdentificationError(thing, got=got, expected="JSON of youbot identify", remedy="fit again") from None
    return Estimate(entry["name"], str(entry["unit"]), value, error, (low, high), reason)
