"""The docs say what the code does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_parameter_page_equals_the_tables():
    pytest.importorskip("rclpy")
    spec = importlib.util.spec_from_file_location("parameter_docs", ROOT / "scripts" / "parameter_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = ROOT / "docs" / "parameters.md"
    assert page.read_text(encoding="utf-8") == module.page(), "run scripts/parameter_docs.py"


def test_readme_names_every_node_and_verb():
    from youbot_dynamics.commands.main import _parser

    verbs = _parser()._subparsers._group_actions[0].choices
    for verb in verbs:
        assert f"youbot {verb}" in README, verb
    nodes = re.search(r"NODES = \(([^)]*)\)", (ROOT / "setup.py").read_text(encoding="utf-8")).group(1)
    for node in re.findall(r'"(\w+)"', nodes):
        assert f"`{node}`" in README, node


def test_links_of_the_docs_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_library_example_of_the_readme_runs():
    code = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    scope: dict[str, object] = {}
    exec(code, scope)
    assert scope["base"].wheel_speeds([0.2, 0.0, 0.0])[0] == pytest.approx(0.2 / 0.0475)
