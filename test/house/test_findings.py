"""A finding is made from a row of its stage's table, and nobody takes its name apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from named_findings import row_of
from repository import ROOT

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.finding import CASES, Finding, Row
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason
from youbot_dynamics.identification.stages import STAGES, stage_of
from youbot_dynamics.robot import robot_table

PACKAGE = ROOT / "youbot_dynamics"
TYPE = PACKAGE / "identification" / "finding.py"
ROWS = [(stage, row) for stage in STAGES for row in stage_of(stage).FINDINGS.rows]
READERS = [
    path
    for folder in ("identification", "report", "commands", "simulation", "messages")
    for path in sorted((PACKAGE / folder).rglob("*.py"))
    if path != TYPE
]
CUTS = {"split", "rsplit", "partition", "rpartition", "startswith", "endswith", "removeprefix", "removesuffix"}
CUTS |= {"replace", "find", "rfind", "index", "rindex", "strip", "lstrip", "rstrip"}
KEYS = {"axis": "x", "wheel": "fl", "joint": "joint_1", "channel": "any", "speed": "any", "recording": "any"}
KEYS |= {"parameter": "any", "coefficient": "any"}
NAMED = {"finding", "estimate", "one", "change", "row", "scale", "reading", "before", "after"}
# Names of unknowns in a fit, which are no findings.
FITS = {"identification/calibration/_fit.py": 2, "identification/arm_friction/_fit.py": 1}


def is_name(node: ast.AST) -> bool:
    """Whether an expression is the name of a finding: an attribute of one, or a name in a dictionary of parameters."""
    if isinstance(node, ast.Attribute) and node.attr in ("name", "pattern") and isinstance(node.value, ast.Name):
        return node.value.id in NAMED
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value == "name"
    return isinstance(node, ast.Attribute) and node.attr == "name" and isinstance(node.value, ast.Attribute)


def taken_apart(tree: ast.AST) -> Iterator[int]:
    """Lines on which the name of a finding is taken apart, or the names of parameters by how they begin."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CUTS:
            parts = [node.func.value]
            starts = [one.value for one in node.args[:1] if isinstance(one, ast.Constant)]
            if any(str(start).startswith(("robot.base.", "robot.arm.", "base.", "arm.")) for start in starts):
                yield node.lineno
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            text = isinstance(node.left, (ast.Constant, ast.JoinedStr, ast.Name))
            parts = node.comparators if text else []
        elif isinstance(node, ast.Subscript):
            parts = [node.value]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
            parts = node.args
        else:
            continue
        if any(is_name(part) for part in parts):
            yield node.lineno


def test_no_code_takes_the_name_of_a_finding_apart() -> None:
    found = [
        f"{place}:{line}"
        for path in READERS
        for place, lines in [(path.relative_to(PACKAGE).as_posix(), list(taken_apart(ast.parse(path.read_text()))))]
        if len(lines) != FITS.get(place, 0)
        for line in lines
    ]
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        'owner, _, name = finding.name.rpartition(".")',
        'axis = finding.name.removeprefix("robot.base.delay.effective_")',
        'group = re.sub(r"joint_1", "joint_2", finding.name)',
        'difference = "_error_" in finding.name',
        "joint = estimate.name[-1]",
        'one = [name for name in result.parameters() if name.startswith("robot.base.geometry.")]',
        'sent = entry["name"].split(".")',
        "response = change.after.name.startswith(prefix)",
    ],
)
def test_such_a_line_is_found(line: str) -> None:
    assert set(taken_apart(ast.parse(line))) == {1}


def rows_made(path: Path) -> list[int]:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Row"]


def test_a_row_is_made_in_the_table_of_a_stage_only() -> None:
    for path in PACKAGE.rglob("*.py"):
        of_table = path.parent.name in STAGES and path.name in ("stage.py", "_findings.py")
        assert of_table or not rows_made(path), path


def test_a_stage_cannot_give_a_number_or_a_unit_that_its_table_lacks() -> None:
    table = stage_of("base_friction").FINDINGS
    viscous = Estimate("viscous_x", "N s/m", 20.0, 1.0, (18.0, 22.0))
    assert Finding(table.row("viscous_x"), viscous).name == "robot.base.friction.viscous_x"
    with pytest.raises(IdentificationError, match="viscous_z"):
        table.row("viscous_z")
    with pytest.raises(IdentificationError, match="viscous_x.*N m s/rad"):
        Finding(table.row("viscous_x"), replace(viscous, unit="N m s/rad"))


def test_an_optional_parameter_that_is_refused_is_listed_only() -> None:
    row = Row("robot.base.delay.lag_{axis}", "s", "lag {axis}", optional=True).at(axis="x")
    found = Finding(row, Estimate("lag_x", "s", 0.05, 0.001, (0.048, 0.052)))
    refused = found.refused(Reason(Kind.OUT_OF_RANGE, "its delay is out of range"))
    assert found.is_parameter and not refused.is_parameter and refused.name == "base.delay.lag_x"


@pytest.mark.parametrize(("stage", "row"), ROWS, ids=[f"{stage}-{row.pattern}" for stage, row in ROWS])
def test_a_row_has_words_with_its_keys_and_that_of_a_parameter_is_one(stage: str, row: Row) -> None:
    keys = [key for key in KEYS if f"{{{key}}}" in row.pattern]
    assert all(f"{{{key}}}" in row.words for key in keys) and row.unit
    named = row.at(**{key: KEYS[key] for key in keys})
    assert "{" not in named.in_words and "{" not in named.group
    if row.is_parameter:
        parameters = {parameter.name: parameter for parameter in robot_table()}
        unit = row.unit.split(", ")[0]  # of joints that turn; others may slide
        assert parameters[named.pattern.format(**named.of)].unit == unit
    assert row.is_parameter or not (row.needed or row.optional)


def test_a_row_is_found_by_the_name_of_its_number() -> None:
    """Each case of axis and wheel, and whatever other keys stand for."""
    for stage, row in ROWS:
        table = stage_of(stage).FINDINGS
        for key in ("axis", "wheel"):
            for case in CASES[key] if f"{{{key}}}" in row.key else ():
                assert table.row(row.key.format(**{key: case})).of == {key: case}
    arm = stage_of("arm_friction").FINDINGS.row("joint_3_total_at_0.5", "joint_3")
    assert (arm.in_words, arm.group) == ("friction of joint 3 at 0.5 rad/s", "arm.joint_3.friction")
    error = "base.geometry.wheel_radius_error_fl"
    assert row_of(error)[1] and not row_of(f"robot.{error}")[1]
