"""`import youbot_dynamics as yd`: what is needed first, imported when it is used, each with an example that runs."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import youbot_dynamics as yd

FACE = [name for name in yd.__all__ if name != "__version__"]
IN_ORDER = ("drive", "write_bag", "identify", "write_outputs")  # each goes on where the one before it ends
ALONE = [name for name in FACE if name not in IN_ORDER]
LIGHT = """
import sys
before = set(sys.modules)
import youbot_dynamics as yd
heavy = {"numpy", "numba", "scipy", "matplotlib", "rclpy"} & set(sys.modules)
assert not heavy, heavy
ours = {name for name in sys.modules if name.startswith("youbot_dynamics")}
assert ours == {"youbot_dynamics", "youbot_dynamics.interrupts"}
assert "Tree" in dir(yd) and "Tree" not in vars(yd)
yd.MecanumBase
assert "numba" not in sys.modules
yd.Tree
assert "numpy" in sys.modules and "Tree" in vars(yd)
print("fine")
"""


def run_example(name: str, scope: dict[str, Any]) -> None:
    """Run the example in the docstring of a name of the face, in a scope that has `yd`, `np` and `Path`."""
    text = getattr(yd, name).__doc__
    examples = doctest.DocTestParser().get_doctest(text, scope, name, None, None)
    assert examples.examples, f"{name} has no example"
    told: list[str] = []
    failures = doctest.DocTestRunner(verbose=False).run(examples, out=told.append, clear_globs=False).failed
    scope.update(examples.globs)
    assert not failures, "".join(told)


def scope() -> dict[str, Any]:
    return {"yd": yd, "np": np, "Path": Path}


def test_importing_the_package_is_light() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=120)
    assert done.stdout == "fine\n", done.stderr


def test_the_face_has_about_twenty_names_and_refuses_others() -> None:
    assert 18 <= len(FACE) <= 25 and set(FACE) <= set(dir(yd))
    with pytest.raises(AttributeError, match="'youbot_dynamics' has no attribute 'mecanum_base'"):
        _ = yd.mecanum_base


def test_what_types_are_told_is_what_is_imported() -> None:
    told = {}
    for node in ast.walk(ast.parse(Path(yd.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("youbot_dynamics."):
            told |= {alias.asname: node.module.removeprefix("youbot_dynamics.") for alias in node.names}
    assert told == yd._MODULES


@pytest.mark.parametrize("name", ALONE)
def test_the_example_of_a_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_example(name, scope())


@pytest.mark.slow
def test_the_examples_from_a_drive_to_its_result_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shared = scope()
    for name in IN_ORDER:
        run_example(name, shared)
    assert {file.name for file in (tmp_path / "result").iterdir()} >= {"result.yaml", "result.json", "report.html"}
