"""The package installs in every supported way; scripts/install_matrix.sh does the work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from repository import ROOT

MATRIX = ROOT / "scripts" / "install_matrix.sh"


def run(*rows: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "INSTALL_MATRIX_PYTHON": sys.executable}
    return subprocess.run(["bash", str(MATRIX), *rows], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    "row",
    ["wheel", *(pytest.param(row, marks=pytest.mark.slow) for row in ("editable", "target", "editable-no-isolation"))],
)
def test_pip_install_finds_its_files_from_elsewhere(row):
    answer = run(row)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split()[:2] == [row, "passed"]


@pytest.mark.slow
@pytest.mark.parametrize("row", ["colcon", "colcon-symlink"])
def test_colcon_install_finds_its_files_where_colcon_is(row):
    answer = run(row)
    assert answer.returncode == 0, answer.stderr
    if "not available" in answer.stdout:
        pytest.skip("no colcon")
    assert answer.stdout.split()[:2] == [row, "passed"]


def test_unknown_row_is_refused():
    answer = run("snap")
    assert answer.returncode == 1
    assert "no row 'snap'" in answer.stderr
