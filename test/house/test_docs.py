"""The docs say what the code does."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from repository import ROOT

import youbot_dynamics as yd
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.resources import program_path

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE_OF_SYSTEMS = (ROOT / "docs" / "source_systems" / "systems.md").read_text(encoding="utf-8")
SYSTEMS = re.findall(r"^\| (\d+) \| (\d{3}) \| (.+) \| (.+) \|$", PAGE_OF_SYSTEMS, re.M)


@pytest.mark.parametrize(
    ("script", "page"),
    [
        ("parameter_docs", "parameters.md"),
        ("command_docs", "command_line.md"),
        ("reliability_docs", "reliability.md"),
        ("finding_docs", "identification/findings.md"),
    ],
)
def test_generated_pages_equal_the_code(script: str, page: str, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("rclpy")
    monkeypatch.syspath_prepend(ROOT / "scripts")
    written = importlib.import_module(script).page()
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == written, f"run scripts/{script}.py"


SOURCED = re.compile(
    r"^chosen: \w|@[0-9a-f]{7}|\b(19|20)\d\d\b|KUKA youBot (manual|specification)|maxon|IEC \d|REP-\d|Nav2 doc|^urdf/"
)
UNKNOWN_TO_USERS = re.compile(r"\b(issue|seed|system|document)s? \d|\bdesign\b|youbot facts", re.I)


def test_every_parameter_names_a_source_that_a_user_can_open():
    """A publication, a data sheet, a file of the driver, or `chosen:` with the reason."""
    pytest.importorskip("rclpy")
    from youbot_dynamics.robot import robot_table
    from youbot_dynamics.simulation.truth import truth_table

    nodes = [path.stem for path in (ROOT / "youbot_dynamics" / "nodes").glob("*.py")]
    tables = [getattr(importlib.import_module(f"youbot_dynamics.nodes.{node}"), "TABLE", ()) for node in nodes]
    assert sum(map(len, tables)) > 80
    for parameter in [*robot_table(), *truth_table(), *(parameter for table in tables for parameter in table)]:
        assert SOURCED.search(parameter.source), f"{parameter.name}: {parameter.source}"
        assert not UNKNOWN_TO_USERS.search(parameter.source + parameter.description), parameter.name
        for page in re.findall(r"\b(?:docs|urdf)/[\w.]+", parameter.source):
            assert (ROOT / page).is_file(), f"{parameter.name}: {page}"


def test_readme_names_every_node_and_verb():
    from youbot_dynamics.commands.main import parser

    verbs = parser()._subparsers._group_actions[0].choices
    for verb in verbs:
        assert f"youbot {verb}" in README, verb
    nodes = re.search(r"NODES = \(([^)]*)\)", (ROOT / "setup.py").read_text(encoding="utf-8")).group(1)
    for node in re.findall(r'"(\w+)"', nodes):
        assert f"`{node}`" in README, node


def test_links_of_the_docs_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def run_examples(page: Path) -> dict[str, object]:
    """Run the Python of a page, block after block as a reader would, and return its names."""
    scope: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        exec(compile(code, page.name, "exec"), scope)
    return scope


PRIVATE = re.compile(r"\b(reckon\w*|feigns?|cannot be told|tells? apart|told apart|begins? anew|seeds? 00\d)\b", re.I)


def test_pages_and_help_texts_use_the_words_of_the_field():
    """A seed is a random seed; what data do not show is not identifiable. One page explains the documents' numbers."""
    from youbot_dynamics.commands.main import parser

    verbs = parser()._subparsers._group_actions[0].choices
    texts = {f"youbot {name} --help": verb.format_help() for name, verb in verbs.items()}
    texts |= {
        page.name: page.read_text(encoding="utf-8") for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    }
    for where, text in texts.items():
        assert not (found := PRIVATE.search(" ".join(text.split()))), f"{where}: {found.group()}"


# Folders of the package whose docstrings, comments and messages are rewritten in plain English.
PLAIN = (
    "bringup_plan",
    "commands",
    "control",
    "dynamics",
    "estimation",
    "identification",
    "kinematics",
    "nodes",
    "recording",
    "report",
    "simulation",
    "source_systems",
)


@pytest.mark.parametrize("folder", PLAIN)
def test_docstrings_and_messages_use_the_words_of_the_field(folder: str):
    """A seed is a random seed: source documents are `document 003`, cited in a last line `Source: ...`."""
    for path, text in package_sources(f"{folder}/**/*.py").items():
        assert not (found := PRIVATE.search(text)), f"{path}: {found.group()}"
        tree = ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        for node in (node for node in tree if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)):
            after = re.split(r"\bSource: ", ast.get_docstring(node) or "")[1:]
            assert not any("\n\n" in rest for rest in after), f"{path}: a source is not in the last line: {after}"


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_the_library_example_of_the_readme_identifies_a_recorded_drive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    robot, seed = yd.load_robot(), 1
    path = read_program(program_path("combined"), 0.02).trajectory()
    plant = yd.BaseOnly(yd.load_truth(seed), robot.driver, seed)
    settings = yd.TrackerSettings(feedback=False)
    yd.write_bag(yd.drive(path, robot, plant, seed, settings), robot, tmp_path / "drive_1", feedback=False)
    found = run_examples(ROOT / "README.md")["better"].base.delay.effective()
    truth = yd.load_truth(seed)
    beyond = found - truth.dead_times() - truth.lag  # what friction and the servos add
    assert np.all((beyond > -0.01) & (beyond < 0.08)), beyond


def test_examples_of_the_library_page_run_and_their_arm_falls():
    scope = run_examples(ROOT / "docs" / "library.md")
    assert scope["base"].wheel_speeds([0.2, 0.0, 0.0])[0] == pytest.approx(0.2 / 0.0475)
    arm, q = scope["arm"], scope["q"]
    fallen = arm.simulate(arm.at_rest(q), 1e-3, torque=np.zeros((1000, 5))).position[-1]
    assert np.max(np.abs(fallen - q)) > 0.5


def test_the_drive_without_ros_writes_its_bag(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(ROOT / "docs" / "mock_youbot.md")
    assert (tmp_path / "drive_of_twin_1" / "metadata.yaml").exists()


def test_examples_of_the_estimation_page_run():
    scope = run_examples(ROOT / "docs" / "estimation.md")
    assert np.all(np.abs(scope["ekf"].state.speed) < 1e-3)
    assert 50.0 < scope["heat"].state.winding < 90.0


def test_examples_of_the_dynamics_page_run():
    scope = run_examples(ROOT / "docs" / "dynamics.md")
    assert np.all(np.isfinite(scope["motion"].position))
    assert np.all(scope["now"].normal_forces > 0.0)


def package_sources(pattern: str = "**/*.py") -> dict[str, str]:
    """Text of every file of the package that fits the pattern, its lines joined, by path."""
    files = (ROOT / "youbot_dynamics").glob(pattern)
    return {str(file.relative_to(ROOT)): " ".join(file.read_text(encoding="utf-8").split()) for file in files}


def cited_systems(text: str) -> set[int]:
    """Numbers behind `system` or `systems`: lists and ranges such as `1-3, 5 and 7`."""
    cited: set[int] = set()
    for numbers in re.findall(r"\b[Ss]ystems? (\d+(?:(?:-| to |, | and )\d+)*)", text):
        for first, last in re.findall(r"(\d+)(?:(?:-| to )(\d+))?", numbers):
            cited |= set(range(int(first), int(last or first) + 1))
    return cited


def test_citations_are_read_as_they_are_written():
    text = "one (system 5; D-000-6), two (systems 1-3, 8 and 11), Systems 20 to 22, but no system of 7 equations"
    assert cited_systems(text) == {5, 1, 2, 3, 8, 11, 20, 21, 22}


def test_every_system_stands_once_in_the_table():
    assert [int(number) for number, *_ in SYSTEMS] == list(range(1, 57))


def test_a_system_lives_where_the_table_says():
    found = [
        (number, name) for number, _, _, where in SYSTEMS for name in where.split(", ") if where != "not built yet"
    ]
    for number, name in found:
        assert re.fullmatch(r"`[\w.]+`", name), f"system {number}: {name}"
        parts = name.strip("`").split(".")
        depth = next(
            n
            for n in range(len(parts), 0, -1)
            if (ROOT / "youbot_dynamics" / "/".join(parts[:n])).with_suffix(".py").is_file()
            or (ROOT / "youbot_dynamics" / "/".join(parts[:n]) / "__init__.py").is_file()
        )
        place = importlib.import_module(".".join(["youbot_dynamics", *parts[:depth]]))
        assert depth < len(parts), f"system {number}: {name} names no class or function"
        for part in parts[depth:]:
            place = getattr(place, part)


def test_every_system_and_document_the_package_cites_is_in_the_table():
    sources = package_sources()
    known, documents = {int(number) for number, *_ in SYSTEMS}, {document for _, document, *_ in SYSTEMS}
    assert documents == {"000", "001", "002", "003", "004"}
    everything: set[int] = set()
    for path, text in sources.items():
        cited = cited_systems(text)
        assert cited <= known, f"{path}: systems {sorted(cited - known)}"
        unknown = set(re.findall(r"\b(?:[Ss]eed|[Dd]ocument)s? (\d{3})\b", text)) - documents
        assert not unknown, f"{path}: documents {sorted(unknown)}"
        everything |= cited
    assert len(everything) > 40


def test_a_system_that_is_not_built_is_claimed_by_no_file():
    missing = {int(number) for number, _, _, where in SYSTEMS if where == "not built yet"}
    for path, text in package_sources().items():
        assert not cited_systems(text) & missing, f"{path}: systems {sorted(cited_systems(text) & missing)}"
