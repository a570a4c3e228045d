"""The result as a ROS parameter file, and as JSON with intervals, verdicts and provenance; changes between two."""

from __future__ import annotations

import json
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from youbot_dynamics import __version__
from youbot_dynamics.errors import IdentificationError, ParameterError
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason, recorded_reason, with_unit
from youbot_dynamics.identification.reading import Source
from youbot_dynamics.parameter_file import write_parameters
from youbot_dynamics.parameters import Parameter, Value
from youbot_dynamics.robot import Robot, robot_from_values, robot_table, values_of

SCHEMA_VERSION = 2
_RESPONSE = "robot.base.response."  # numbers of one fit, which belong together


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

    def of_stage(self, stage: str) -> tuple[Finding, ...]:
        """Findings of one stage."""
        return tuple(finding for finding in self.findings if self.stage_of[finding.name] == stage)

    @property
    def interval_is(self) -> str:
        """What the intervals include: the precision of one recording; for several, also the scatter between them."""
        return "95 % interval" if len(self.sources) > 1 else "95 % precision of this recording"

    @property
    def complete(self) -> bool:
        """Whether every requested parameter was identified."""
        for stage in self.requested:
            findings = self.of_stage(stage)
            # If a stage has no robot parameters, all that is listed first counts.
            counted = [finding for finding in findings if finding.is_parameter]
            counted = counted or [finding for finding in findings if not finding.is_part_of_delay]
            if stage in self.missing or not all(finding.usable for finding in counted):
                return False
        return True

    def parameters(self) -> dict[str, Value]:
        """Parameters for a relaunch: identified values, alone or as part of a whole, within the parameter's range.

        A response without the dead time of every axis is left out: beside a configured one it would mix two fits.
        """
        values: dict[str, Value] = {"robot.robot_id": self.robot_id}
        values |= {finding.name: value for finding in self.findings if (value := _written(finding)) is not None}
        if all(f"{_RESPONSE}dead_time_{axis}" in values for axis in ("x", "y", "yaw")):
            return values
        return {name: value for name, value in values.items() if not name.startswith(_RESPONSE)}

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
        _fit_of(finding): Reason(
            Kind.OUT_OF_RANGE,
            f"{finding.name.rpartition('.')[2]} is {with_unit(f'{finding.estimate.value:.4g}', finding.estimate.unit)},"
            " outside the range of this parameter: check the units and scales of the signals",
        )
        for finding in findings
        if finding.usable and finding.is_parameter and _written(finding) is None
    }
    return tuple(
        finding.refused(outside[_fit_of(finding)]) if finding.usable and _fit_of(finding) in outside else finding
        for finding in findings
    )


def _fit_of(finding: Finding) -> str:
    """Name of what a value belongs to, such as base.friction or arm.joint_3.motor."""
    return finding.name.removeprefix("robot.").rpartition(".")[0]


def _written(finding: Finding) -> Value | None:
    """Value for a parameter file; None if it is not usable, no robot parameter, or outside the range of this one."""
    # The joints of every arm have the same parameters, however many there are.
    parameter = _parameters().get(re.sub(r"\.joint_\d+\.", ".joint_1.", finding.name))
    if parameter is None or not finding.usable:
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


def write_result(folder: Path, result: Result) -> None:
    """Write result.yaml and result.json into an existing folder, each completely or not at all."""
    head = [
        f"Identified by youbot_dynamics {__version__}; intervals, verdicts and sources: result.json.",
        "Use: youbot bringup --result-file result.yaml, or ros2 launch ... result_file:=result.yaml",
    ]
    write_parameters(folder / "result.yaml", "/**", result.parameters(), head)
    write_atomically(folder / "result.json", result_json(result))


CHANGED, WITHIN, ONLY_BEFORE, ONLY_AFTER = "changed", "within error", "only before", "only after"


@dataclass(frozen=True)
class Change:
    """One number in two results, identified in at least one of them."""

    before: Finding | None  # None if this result does not list it
    after: Finding | None
    difference: float = math.nan  # later minus earlier value; NaN unless both are identified
    # Half-width of the 95 % interval of the difference: root sum of squares of the half-widths towards each other.
    error: float = math.nan

    @property
    def verdict(self) -> str:
        """Whether the difference exceeds its error, or which result alone identified the number."""
        if math.isnan(self.difference):
            return ONLY_AFTER if self.after is not None and self.after.identified else ONLY_BEFORE
        return CHANGED if abs(self.difference) > self.error else WITHIN


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    """Return the changes between two results of `read_result`, without the values that neither identified.

    Raises:
        IdentificationError: an entry holds invalid numbers.
    """
    old, new = ({entry["name"]: _finding(entry) for entry in result["parameters"]} for result in (before, after))
    compared = (_change(old.get(name), new.get(name)) for name in dict.fromkeys([*old, *new]))
    return tuple(
        change
        for change in compared
        if any(side is not None and side.identified for side in (change.before, change.after))
    )


def _change(before: Finding | None, after: Finding | None) -> Change:
    if before is None or after is None or not (before.identified and after.identified):
        return Change(before, after)
    difference = after.estimate.value - before.estimate.value
    lower, upper = sorted((before.estimate, after.estimate), key=lambda estimate: estimate.value)
    return Change(
        before, after, difference, math.hypot(lower.interval[1] - lower.value, upper.value - upper.interval[0])
    )


def _finding(entry: Mapping[str, Any]) -> Finding:
    try:
        numbers = (entry["value"], entry["standard_error"], *entry["interval_95"])
        value, error, low, high = (math.nan if number is None else float(number) for number in numbers)
        reason = recorded_reason(entry["verdict"], entry.get("kind"))
    except (TypeError, ValueError) as problem:
        got, thing = f"{type(problem).__name__}: {problem}", f"result, entry {entry['name']}"
        raise IdentificationError(thing, got=got, expected="JSON of youbot identify", remedy="fit again") from None
    return Finding(entry["name"], Estimate(entry["name"], str(entry["unit"]), value, error, (low, high), reason))
