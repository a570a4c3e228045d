"""Drive the robot of the Gazebo files in DART, Gazebo's physics engine, and compare with the twists commanded.

    sudo apt install python3-numpy python3-scipy python3-yaml    # Debian 12
    sudo apt install g++ pkg-config libeigen3-dev libignition-physics-dev libignition-plugin-dev
    python3 scripts/gazebo_dart.py

Debian 12 has the libraries of Gazebo Fortress, two releases before Harmonic. Compiles scripts/gazebo_dart.cc with
them and writes a table. Exits with 1 where a twist is missed, or where a description that must fail drives as well.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from youbot_dynamics.gazebo_description import gazebo_urdf  # noqa: E402
from youbot_dynamics.resources import config_path  # noqa: E402
from youbot_dynamics.robot import load_robot  # noqa: E402

LIBRARIES = ("ignition-physics5", "ignition-physics5-sdf", "ignition-plugin1-loader", "eigen3")
PLUGIN = "ign-physics-5/engine-plugins/libignition-physics-dartsim-plugin.so"
LINK = "base_footprint"
START, SECONDS = 1.0, 3.0  # [s] of which the first do not count
TWISTS = ([0.3, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.5], [0.2, -0.1, 0.3], [-0.15, 0.15, -0.4])
BOUNDS = np.array([3e-4, 3e-4, 1e-6])  # [m/s, m/s, rad/s]


def said(*command: str) -> str:
    """What a program prints; one that fails ends this one with its own words."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit(f"no program {command[0]}; the first lines of this script say what it needs")
    if done.returncode:
        sys.exit(f"{command[0]} failed; the first lines of this script say what it needs")
    return done.stdout


def compiled(folder: Path) -> Path:
    """The program scripts/gazebo_dart.cc."""
    flags = said("pkg-config", "--cflags", "--libs", *LIBRARIES).split()
    plugin = Path(said("pkg-config", "--variable=libdir", "ignition-physics5").strip(), PLUGIN)
    program, source = folder / "gazebo_dart", ROOT / "scripts" / "gazebo_dart.cc"
    said("g++", "-std=c++17", "-O1", f'-DDARTSIM_PLUGIN="{plugin}"', str(source), "-o", str(program), *flags)
    return program


def adapted(text: str) -> str:
    """A file of Gazebo Harmonic for the libraries of Debian, which know older names and an older SDF."""
    text = text.replace("gz:expressed_in", "ignition:expressed_in").replace("xmlns:gz", "xmlns:ignition")
    return text.replace("http://gazebosim.org/schema", "http://ignitionrobotics.org/schema").replace(
        '<sdf version="1.11">', '<sdf version="1.9">'
    )


def missed_by(program: Path, world: Path, urdf: Path, twist: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Mean twist (3,) of a drive and its largest deviation (3,) from the one commanded as wheel speeds."""
    robot = load_robot(params_file=config_path("gazebo/youbot_gazebo.yaml"))
    speeds = robot.base.geometry.mecanum().wheel_speeds(twist)
    wheels = [f"{name}={speed!r}" for name, speed in zip(robot.driver.wheel_joints, speeds.tolist(), strict=True)]
    lines = said(str(program), str(world), str(urdf), LINK, str(SECONDS), *wheels).splitlines()
    rows = np.array([line.split() for line in lines], dtype=float)
    rows = rows[rows[:, 0] > START]
    moves = rows[:, 4:]
    # That the clock of the drive is ours: the way driven is the way told.
    way, told = (
        np.hypot(*np.diff(rows[:, 1:3], axis=0).T).sum(),
        np.hypot(*moves[1:, :2].T).sum() * np.diff(rows[:2, 0]),
    )
    assert abs(way - told) < 1e-3 * max(way, 0.1), (way, told)
    return moves.mean(axis=0), np.abs(moves - twist).max(axis=0)


def main() -> int:
    """Table of all drives."""
    text = adapted(gazebo_urdf(config_path("gazebo/controllers.yaml")))
    descriptions = {
        "as written": text,
        "fdir1 in base_link": text.replace(f'expressed_in="{LINK}"', 'expressed_in="base_link"'),
        "fdir1 mirrored": re.sub(r"(<fdir1[^>]*>)(\S+) (\S+) 0<", lambda m: f"{m[1]}{m[2]} {-float(m[3])!r} 0<", text),
    }
    assert len(set(descriptions.values())) == 3
    wrong = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        program, world = compiled(folder), folder / "world.sdf"
        world.write_text(adapted(config_path("gazebo/youbot.sdf").read_text(encoding="utf-8")), encoding="utf-8")
        print(f"DART {said('pkg-config', '--modversion', 'dart').strip()}; asked and driven in m/s, m/s, rad/s")
        for what, description in descriptions.items():
            urdf = folder / "robot.urdf"
            urdf.write_text(description, encoding="utf-8")
            held = []
            for twist in TWISTS:
                found, off = missed_by(program, world, urdf, twist)
                held.append(bool(np.all(off < BOUNDS)))
                missed = f"off by {1e3 * off[0]:.2g}, {1e3 * off[1]:.2g} mm/s, {off[2]:.2g} rad/s"
                print(f"{what:20s} {twist}: driven {found.round(4).tolist()}, {missed}")
            wrong += all(held) != (what == "as written")
    print("held" if not wrong else "NOT held")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
