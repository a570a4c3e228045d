"""Check an installation from outside: are the package, its files and its programs where they belong?"""

from __future__ import annotations

import argparse
import os
import subprocess
from importlib.metadata import distribution
from pathlib import Path

PROGRAMS = ("translation.txt", "rotation.txt", "combined.txt")
PROGRAM_LINES = 1000
EXECUTABLES = {
    "youbot",
    "identify_robot",
    "base_controller",
    "odometry",
    "trajectory_tracker",
    "arm_ekf",
    "mock_youbot",
    "identification",
    "recorder",
    "program_player",
    "stop_base",
    "check_driver",
}


def main() -> None:
    """Check the installation the interpreter sees; the first thing amiss ends with its description."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package-below", type=Path, required=True, help="folder the package must run from")
    parser.add_argument("--scripts", type=Path, required=True, help="folder that must hold the programs")
    arguments = parser.parse_args()
    check_files(arguments.package_below)
    check_programs(arguments.scripts)


def check_files(package_below: Path) -> None:
    """Check that the package runs from below a folder and finds its files; end where something is amiss."""
    from youbot_dynamics import resources

    if not Path(resources.__file__).is_relative_to(package_below):
        raise SystemExit(f"the package runs from {resources.__file__}, expected below {package_below}")
    for name in ("youbot.yaml", "mock.yaml"):
        if not resources.config_path(name).read_text(encoding="utf-8").strip():
            raise SystemExit(f"{resources.config_path(name)} is empty")
    if "<robot" not in resources.urdf_path("youbot.urdf").read_text(encoding="utf-8"):
        raise SystemExit(f"{resources.urdf_path('youbot.urdf')} is no URDF")
    for name in PROGRAMS:
        path = resources.program_path(name)
        text = path.read_text(encoding="utf-8").splitlines()
        lines = [line for line in text if line.strip() and not line.startswith("#")]
        if len(lines) != PROGRAM_LINES:
            raise SystemExit(f"{path} has {len(lines)} lines, expected {PROGRAM_LINES}")
    print("launch file:", resources.launch_path("bringup.launch.py"))


def check_programs(scripts: Path) -> None:
    """Check that every program is declared, can be run from a folder, and ``youbot --help`` answers; end if not."""
    entry_points = distribution("youbot_dynamics").entry_points
    declared = {point.name for point in entry_points if point.group == "console_scripts"}
    if declared != EXECUTABLES:
        raise SystemExit(f"declared programs differ from the expected ones by {declared ^ EXECUTABLES}")
    for name in sorted(EXECUTABLES):
        if not os.access(scripts / name, os.X_OK):
            raise SystemExit(f"program {scripts / name} is missing or cannot be run")
    answer = subprocess.run([str(scripts / "youbot"), "--help"], capture_output=True, text=True)
    if answer.returncode or "youbot" not in answer.stdout:
        raise SystemExit(f"youbot --help: exit {answer.returncode}: {answer.stderr.strip() or answer.stdout}")


if __name__ == "__main__":
    main()
