"""`scripts/test.sh --changed` runs every test that a change can reach, and few others."""

from __future__ import annotations

from pathlib import Path

import pytest
from reached_tests import Reached, changed_files
from repository import ROOT

FILES = {
    "youbot_dynamics/__init__.py": '_MODULES = {"law": "room"}\ndef __getattr__(name): ...\n',
    "youbot_dynamics/room/__init__.py": "from youbot_dynamics.room._law import law\n",
    "youbot_dynamics/room/_law.py": "CONSTANT = 2\ndef law(): return CONSTANT\n",
    "youbot_dynamics/room/other.py": "def apart(): ...\n",
    "youbot_dynamics/stages/__init__.py": (
        'import importlib\ndef load(name): return importlib.import_module(f"{__package__}.{name}.stage")\n'
    ),
    "youbot_dynamics/stages/heat/__init__.py": "",
    "youbot_dynamics/stages/heat/stage.py": "def finish(): ...\n",
    "youbot_dynamics/nodes/__init__.py": "",
    "youbot_dynamics/nodes/driver.py": "def main(): ...\n",
    "test/support/shared.py": "from youbot_dynamics.room import law\ndef helper(): return law()\ndef free(): ...\n",
    "test/room/test_law.py": (
        "import pytest, shared, youbot_dynamics as yd\n"
        "from youbot_dynamics.room import law as renamed, other\n"
        "from youbot_dynamics.stages import load\n"
        "@pytest.fixture\ndef made(): return renamed()\n"
        "def test_by_name(): renamed()\n"
        "def test_by_fixture(made): ...\n"
        "def test_by_support(): shared.helper()\n"
        "def test_by_the_face(): yd.law()\n"
        "def test_of_another_function(): shared.free()\n"
        "def test_by_module(): other.apart()\n"
        "def test_of_a_module_as_a_whole(monkeypatch): monkeypatch.setattr(other, 'apart', None)\n"
        "def test_by_a_name_in_a_text(): load('heat')\n"
        "def test_in_a_process(): run('from youbot_dynamics.room import law')\n"
        "def test_with_a_node(): start('driver')\n"
        "def test_that_only_writes(): 'youbot_dynamics.room._law'\n"
    ),
    "test/house/test_rules.py": "def test_rule(): ...\n",
    "test/house/test_examples.py": "def test_example(): ...\n",
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def reached(root: Path, *changed: str) -> set[str]:
    """Names of the reached tests; those of the house's rules always come too."""
    found = Reached(root).tests([root / name for name in changed])
    assert found.pop(0) == "test/house/test_rules.py"
    return {name.removeprefix("test/room/test_law.py::test_") for name in found}


def test_a_changed_function_reaches_those_that_use_it_on_any_way(small: Path) -> None:
    expected = {"by_name", "by_fixture", "by_support", "by_the_face", "in_a_process"}
    assert reached(small, "youbot_dynamics/room/_law.py") == expected


def test_a_module_reaches_its_users_by_name_or_as_a_whole(small: Path) -> None:
    assert reached(small, "youbot_dynamics/room/other.py") == {"by_module", "of_a_module_as_a_whole"}


def test_what_is_imported_or_started_by_a_text_is_reached(small: Path) -> None:
    assert reached(small, "youbot_dynamics/stages/heat/stage.py") == {"by_a_name_in_a_text"}
    assert reached(small, "youbot_dynamics/nodes/driver.py") == {"with_a_node"}


def test_a_removed_module_reaches_those_that_import_it(small: Path) -> None:
    (small / "youbot_dynamics/room/other.py").unlink()
    assert "by_module" in reached(small, "youbot_dynamics/room/other.py")


def test_a_changed_test_runs_and_one_of_the_house_that_runs_programs_only_then(small: Path) -> None:
    assert len(reached(small, "test/room/test_law.py")) == FILES["test/room/test_law.py"].count("def test_")
    assert reached(small) == reached(small, "docs/page.md") == set()
    assert reached(small, "test/house/test_examples.py") == {"test/house/test_examples.py::test_example"}


@pytest.mark.parametrize(
    "name", ["test/conftest.py", "pytest.ini", "setup.py", "config/youbot.yaml", "urdf/youbot.urdf"]
)
def test_what_all_depend_on_runs_everything(small: Path, name: str) -> None:
    assert Reached(small).tests([small / name]) == ["everything"]


def test_a_stage_of_identification_reaches_its_tests_and_those_of_whole_results_but_no_drives_over_dds() -> None:
    found = Reached().tests([ROOT / "youbot_dynamics" / "identification" / "thermal" / "_fit.py"])
    files = {name.partition("::")[0].removeprefix("test/") for name in found}
    assert {"identification/test_thermal_identification.py", "identification/test_pipeline.py"} <= files
    assert not files & {"nodes/test_guard.py", "bringup_plan/test_launch_bringup.py", "faults/test_fault_matrix.py"}
    # The rooms that use whole results are reached with most of their tests, of all others only a few are.
    others = [name for name in found if name.split("/")[1] not in ("identification", "report", "commands")]
    assert len(others) < 50 and len(found) < 400


def test_an_unknown_revision_is_told() -> None:
    with pytest.raises(SystemExit, match="no_such_revision"):
        changed_files("no_such_revision")
