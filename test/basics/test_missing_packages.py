"""An optional package that is missing ends in one line that names its extra, by a way its Python allows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from youbot_dynamics import errors

# Runs the program with a package that cannot be imported.
WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from youbot_dynamics.commands.main import main
main(sys.argv[2:])
"""
# The same of a node's executable.
NODE = """
import sys
sys.modules[sys.argv[1]] = None
sys.argv = ["/somewhere/lib/youbot_dynamics/odometry"]
from youbot_dynamics.nodes.odometry import main
"""


def answer(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("package", "extra", "verb"),
    [
        ("rich", "program", ("identify", "drive_1", "--out", "found")),
        ("rclpy", "ros", ("demo",)),
        ("rclpy", "ros", ("bringup",)),
        ("rclpy", "ros", ("record", "--out", "drive_1")),
    ],
)
def test_a_verb_names_the_extra_it_lacks_in_one_line(package: str, extra: str, verb: tuple[str, ...]) -> None:
    done = answer("-c", WITHOUT, package, *verb)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1
    assert f"no Python package {package}" in done.stderr and f"youbot_dynamics[{extra}]" in done.stderr


def test_a_node_without_ros_names_the_extra_in_one_line() -> None:
    done = answer("-c", NODE, "rclpy")
    assert done.returncode == 1
    assert done.stderr.startswith("error: this node: got no Python package rclpy")
    assert len(done.stderr.splitlines()) == 1 and "youbot_dynamics[ros]" in done.stderr


def test_where_pip_is_refused_the_way_around_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """PEP 668: Python of Ubuntu 24.04, outside of a virtual environment."""
    marker = tmp_path / "EXTERNALLY-MANAGED"
    marker.touch()
    monkeypatch.setattr(errors, "_EXTERNALLY_MANAGED", marker)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    bags = str(errors.missing_package("rosbags", "bags"))
    assert "venv --system-site-packages" in bags and "pip install 'youbot_dynamics[bags]'" in bags
    assert "sudo apt install python3-rich, or " in str(errors.missing_package("rich", "a table"))
    monkeypatch.setattr(sys, "prefix", "/somewhere/else")
    in_environment = str(errors.missing_package("rosbags", "bags"))
    assert in_environment == "bags: got no Python package rosbags; pip install 'youbot_dynamics[bags]'"
    assert "apt" not in str(errors.missing_package("rich", "a table"))
