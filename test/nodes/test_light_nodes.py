"""What a node needs not, it does not import: numba alone takes 60 MB of a robot's computer."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("rclpy")


LIGHT = ("base_controller", "check_driver", "identification", "recorder", "stop_base", "watch")


def run_python(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", [*(f"nodes.{node}" for node in LIGHT), "commands.main", "commands._watch"])
def test_what_computes_little_imports_neither_compiler_nor_scipy(module: str) -> None:
    code = (
        f"import sys, youbot_dynamics.{module}\n"
        "heavy = [name for name in ('numba', 'scipy', 'matplotlib') if name in sys.modules]\n"
        "sys.exit(f'imports {heavy}' if heavy else 0)"
    )
    run_python(code)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("nodes.arm_ekf", "scipy.optimize"),
        ("nodes.program_player", "youbot_dynamics.identification"),
        ("commands.identify", "scipy.stats"),
    ],
)
def test_no_start_waits_for_what_only_some_motions_and_recordings_need(module: str, heavy: str) -> None:
    run_python(f"import sys, youbot_dynamics.{module}\nsys.exit('imports it' if '{heavy}' in sys.modules else 0)")


def test_stop_base_does_not_load_masked_arrays() -> None:
    run_python(
        "import sys\n"
        "from youbot_dynamics.nodes import stop_base\n"
        "from youbot_dynamics.robot import load_robot\n"
        "load_robot().driver.mecanum()\n"
        "sys.exit('imports numpy.ma' if 'numpy.ma' in sys.modules else 0)"
    )


def test_compiler_is_unmapped_and_still_compiles() -> None:
    pytest.importorskip("numba")
    run_python(
        "import numba, pathlib\n"
        "from youbot_dynamics.nodes._runtime import release_compiler\n"
        "def mapped():\n"
        "    lines = pathlib.Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('RssFile'))\n"
        "double = numba.njit(lambda x: 2 * x)\n"
        "assert double(2) == 4\n"
        "before = mapped()\n"
        "release_compiler()\n"
        "assert mapped() < before - 30_000, (before, mapped())\n"
        "assert double(3) == 6 and double(0.5) == 1.0\n"
        "assert numba.njit(lambda x: x / 2)(3) == 1.5"
    )
