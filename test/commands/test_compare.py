"""`youbot compare`: terminal and page say the same of two results, and bad ones are refused in one line."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest
from command_line import exit_code

from youbot_dynamics.identification.result_file import read_result

ENTRY = {
    "stage": "delay",
    "interval_is": "95 % precision of this recording",
    "name": "robot.base.delay.effective_x",
    "verdict": "identified",
    "value": 0.15,
    "unit": "s",
    "standard_error": 0.001,
    "interval_95": [0.148, 0.152],
    "samples": 9,
    "valid_for": "",
}


@pytest.fixture
def results(tmp_path: Path) -> tuple[Path, Path]:
    """Two results: one value moved by 20 ms, one stayed."""
    same = {**ENTRY, "name": "robot.base.delay.effective_y"}
    before = {"robot_id": "youbot", "parameters": [ENTRY, same], "missing": {}, "warnings": []}
    after = copy.deepcopy(before)
    after["parameters"][0] |= {"value": 0.17, "interval_95": [0.168, 0.172]}
    folders = tmp_path / "found", tmp_path / "found_2"
    for folder, content in zip(folders, (before, after), strict=True):
        folder.mkdir()
        (folder / "result.json").write_text(json.dumps(content))
    return folders


def test_terminal_and_page_show_what_changed(
    results: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert exit_code("compare", *results, "--out", tmp_path / "compared", "--verbose") == 0
    said, page = capsys.readouterr(), (tmp_path / "compared" / "report.html").read_text()
    rows = {line.split()[0]: line for line in said.out.splitlines() if "robot.base" in line}
    assert "+20.0 +- 2.8" in rows["robot.base.delay.effective_x"] and "changed" in rows["robot.base.delay.effective_x"]
    assert "within error" in rows["robot.base.delay.effective_y"]
    assert "1 of 2 values changed by more than their combined 95 % error" in said.out
    assert "single recording" in said.err
    page = re.sub("<[^>]*>", "", page)
    for text in ("1 of 2 values changed", "robot.base.delay.effective_x", "150.0 (148.0 to 152.0)", "+20.0 ± 2.8"):
        assert text in page, text
    assert "single recording" in page and "same recording" not in page


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_what_changed_fits_the_terminal_and_is_all_that_is_told(
    results: tuple[Path, Path],
    columns: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = read_result(results[1] / "result.json")
    content["parameters"][0] |= {"words": "delay forward"}
    (results[1] / "result.json").write_text(json.dumps(content))
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(tmp_path)
    assert exit_code("compare", "found", "found_2") == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= int(columns)
    words = " ".join(said.split())
    for text in ("delay forward", "150 -> 170 ms (+20.0 +- 2.8)", "1 of 2 values changed"):
        assert text in words
    assert "effective_y" not in said and "..." not in said and "\u2026" not in said
    assert exit_code("compare", "found", "found_2", "--verbose") == 0
    said = capsys.readouterr().out
    assert "effective_y" in said and "within error" in " ".join(said.split()) and "\u2026" not in said


def test_a_recording_in_both_results_is_told_and_nothing_in_common_too(
    results: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, sources in zip(results, ([{"sha256": "1"}, {"sha256": "2"}], [{"sha256": "2"}]), strict=True):
        content = read_result(folder / "result.json") | {"sources": sources}
        (folder / "result.json").write_text(json.dumps(content))
    assert exit_code("compare", *results, "--out", tmp_path / "compared") == 0
    assert "both results use the same recording" in capsys.readouterr().err
    (results[1] / "result.json").write_text(json.dumps(content | {"parameters": []}))
    assert exit_code("compare", *results, "--out", tmp_path / "compared") == 0
    assert "no value can be compared; 2 identified only before" in capsys.readouterr().out


def test_a_result_json_may_be_named_itself(results: tuple[Path, Path], tmp_path: Path) -> None:
    files = [folder / "result.json" for folder in results]
    assert all(read_result(file) for file in files)
    assert exit_code("compare", *files, "--out", tmp_path / "compared") == 0


def test_what_is_no_result_is_refused_in_one_line(
    results: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("compare", results[0], tmp_path / "absent", "--out", tmp_path / "compared") == 1
    assert "absent" in capsys.readouterr().err
    whole = read_result(results[1] / "result.json")
    for content in ({}, whole | {"sources": None}, whole | {"sources": [{"sha256": 5}]}):
        (results[1] / "result.json").write_text(json.dumps(content))
        assert exit_code("compare", *results, "--out", tmp_path / "compared") == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "found_2" in line and "youbot identify" in line
    assert not (tmp_path / "compared").exists()
