"""The numerical core where numba is not installed: the same tests, as plain Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

CORE = (
    "angles arm bodies driven_base featherstone gyro lugre lugre_energy mecanum mecanum_dynamics normal_forces planar "
    "rigid_body rigid_motion roller_phase rotations se3 straight_line thermal_motor tracker tree "
    "tree_against_pinocchio tree_bad_input tree_derivatives tree_laws urdf_reading wheeled_base "
    "wheeled_base_simulation wheeled_base_stepping wheeled_base_tipping"
).split()


@pytest.mark.slow
def test_the_core_passes_its_tests_without_numba(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('as on a machine without numba')\n", encoding="utf-8")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    files = [str(path) for name in CORE for path in (ROOT / "test").rglob(f"test_{name}.py")]
    assert len(files) == len(CORE)
    done = subprocess.run([*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    counted = re.search(r"(\d+) passed", done.stdout)
    assert counted is not None and int(counted[1]) > 1000
    plain = "from youbot_dynamics.compiled import HAVE_NUMBA; print(HAVE_NUMBA)"
    said = subprocess.run([sys.executable, "-c", plain], env=environment, capture_output=True, text=True, cwd=ROOT)
    assert said.stdout == "False\n"
