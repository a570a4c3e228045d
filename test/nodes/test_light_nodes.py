"""What a node needs not, it does not import: numba alone takes 60 MB of a robot's computer."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rclpy")


LIGHT = ("base_controller", "check_driver", "identification", "recorder", "stop_base", "watch")


@pytest.mark.parametrize("module", [*(f"nodes.{node}" for node in LIGHT), "commands.main", "commands._watch"])
def test_what_computes_little_imports_neither_compiler_nor_scipy(module: str) -> None:
    code = (
        f"import sys, youbot_dynamics.{module}\n"
        "heavy = [name for name in ('numba', 'scipy', 'matplotlib') if name in sys.modules]\n"
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
