"""Simulated drives that the tests keep on disk: found again, and never where what makes them has changed."""

from __future__ import annotations

from pathlib import Path

import kept
import numpy as np
import pytest

made: list[int] = []


@kept.kept
def simulated(seed: int, rows: int = 2) -> np.ndarray:
    made.append(seed)
    return np.full(rows, seed)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept, "_folder", lambda: tmp_path)
    made.clear()
    return tmp_path


def test_a_drive_is_simulated_once_for_its_arguments_and_nobody_can_change_it() -> None:
    simulated(3)[:] = 0
    np.testing.assert_array_equal(simulated(3), [3, 3])
    assert made == [3]
    assert len(simulated(3, rows=4)) == 4 and simulated(4)[0] == 4
    assert made == [3, 3, 4]


def test_what_an_interrupted_run_has_left_is_simulated_again(folder: Path) -> None:
    simulated(3)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:20])
    assert simulated(3)[0] == 3 and made == [3, 3]


def test_any_file_that_it_is_made_of_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    texts = {
        "test/support/runs.py": "from more_runs import one\n",
        "test/support/more_runs.py": "from youbot_dynamics.plant import (\n    motor,\n)\n",
        "youbot_dynamics/plant/__init__.py": "",
        "youbot_dynamics/plant/motor.py": "STEP = 1\n",
        "youbot_dynamics/unused.py": "STEP = 1\n",
        "config/robot.yaml": "mass: 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    def version() -> str:
        kept.version.cache_clear()
        return kept.version(tmp_path / "test/support/runs.py")

    before = version()
    for name in texts:
        (tmp_path / name).write_text(texts[name] + "# changed\n", encoding="utf-8")
        assert (version() == before) == (name == "youbot_dynamics/unused.py"), name
        (tmp_path / name).write_text(texts[name], encoding="utf-8")
    assert version() == before
    kept.version.cache_clear()
