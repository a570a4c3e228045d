"""Motion programs: the frozen ones, the reader, the limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from repository import ROOT

from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.control.wheel_commands import limit_acceleration
from youbot_dynamics.errors import ProgramError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.robot_base import Base

PROGRAMS = ROOT / "config" / "programs"
BASE = load_robot().base
DT = 0.02


def formula(name: str) -> np.ndarray:
    """Issue 2, item 7."""
    t = np.arange(1000) * DT
    s = np.clip(np.minimum(t, 20.0 - t) / 1.0, 0.0, 1.0)
    r = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    vx, vy = 0.2 * np.sin(0.63 * t), 0.15 * np.cos(0.5 * t)
    nothing = np.zeros_like(t)
    twists = {
        "translation": [vx, vy, nothing],
        "rotation": [nothing, nothing, 0.4 * np.sin(0.5 * t)],
        "combined": [vx, vy, 0.3 * np.sin(0.4 * t)],
    }
    return np.column_stack(twists[name]) * r[:, None]


@pytest.mark.parametrize("name", ["translation", "rotation", "combined"])
def test_the_frozen_programs_equal_their_formulas(name: str) -> None:
    path = PROGRAMS / f"{name}.txt"
    program = read_program(path, DT)
    assert program.twists.shape == (1000, 3)
    assert len([line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]) == 1000
    np.testing.assert_allclose(program.twists, formula(name), rtol=0, atol=1e-9)
    assert (program.name, program.duration) == (name, pytest.approx(20.0))
    assert np.all(program.twists[0] == 0.0)


@pytest.mark.parametrize("name", ["translation", "rotation", "combined"])
def test_the_frozen_programs_are_within_the_limits(name: str) -> None:
    read_program(PROGRAMS / f"{name}.txt", DT).check(BASE)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "p.txt"
    path.write_text(text)
    return path


def test_comments_and_empty_lines_do_not_count(tmp_path: Path) -> None:
    program = read_program(write(tmp_path, "# head\n\n0.1 0 0 # forward\n  0.1\t0 -0.2  \n"), 0.5)
    np.testing.assert_allclose(program.twists, [[0.1, 0.0, 0.0], [0.1, 0.0, -0.2]])
    assert program.duration == 1.0


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_program_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProgramError, match=r"p\.txt: got no lines; expected lines Vx Vy Omega"):
        read_program(write(tmp_path, text), DT)


@pytest.mark.parametrize("line", ["0.1 0", "0.1 0 0 0", "a b c", "0.1, 0, 0", "nan 0 0", "0 inf 0", "0 0 1e400"])
def test_a_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(ProgramError, match=r"p\.txt, line 3: got .*expected three numbers: Vx Vy Omega") as caught:
        read_program(write(tmp_path, f"# head\n0 0 0\n{line}\n0 0 0\n"), DT)
    assert "\n" not in str(caught.value)


def test_a_missing_file_a_folder_and_a_binary_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"absent\.txt: got No such file"):
        read_program(tmp_path / "absent.txt", DT)
    with pytest.raises(ProgramError, match="got a folder"):
        read_program(tmp_path, DT)
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(ProgramError, match="got not a UTF-8 text"):
        read_program(tmp_path / "b.txt", DT)


@pytest.mark.parametrize("dt", [0.0, -1.0, float("nan")])
def test_a_time_step_that_is_not_positive_is_refused(tmp_path: Path, dt: float) -> None:
    with pytest.raises(ProgramError, match="--dt"):
        read_program(write(tmp_path, "0 0 0\n"), dt)


def smooth(vx: float, vy: float, wz: float, duration: float) -> Program:
    t = np.arange(round(duration / DT)) * DT
    bump = np.sin(np.pi * t / duration) ** 2
    return Program("bump", np.outer(bump, [vx, vy, wz]), DT)


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (smooth(2.0, 0.0, 0.0, 20.0), "wheel speed"),
        (smooth(0.5, 0.5, 1.5, 20.0), "wheel speed"),
        (smooth(0.6, 0.0, 0.0, 1.0), "an acceleration"),
        (smooth(0.0, 0.0, 1.5, 1.0), "angular acceleration"),
        (Program("step", np.tile([0.1, 0.0, 0.0], (50, 1)), DT), "an acceleration"),
        (smooth(3.0, 0.0, 0.0, 2.0), "wheel speed"),
    ],
)
def test_a_program_beyond_the_limits_is_refused_with_a_time_scale_that_fits(program: Program, what: str) -> None:
    with pytest.raises(ProgramError, match=what) as caught:
        program.check(BASE)
    scale = float(str(caught.value).rsplit("--time-scale", 1)[1])
    assert scale > 1.0
    program.scaled(scale).check(BASE)
    with pytest.raises(ProgramError):
        program.scaled(scale * 0.98).check(BASE)


def test_a_program_that_stops_abruptly_is_refused_at_its_last_line() -> None:
    ramp = np.minimum(np.arange(100) * 0.01, 0.3)
    with pytest.raises(ProgramError, match="line 100: got a deceleration of 15 m/s2; expected at most 1.5 m/s2"):
        Program("cliff", np.outer(ramp, [1.0, 0.0, 0.0]), DT).check(BASE)


def up_and_down(axis: int, up: float, down: float, backwards: bool = False) -> Program:
    """Speed along one axis grows by `up` [1/s2 of its unit], then fades by `down`."""
    rising, falling = round(10.0 * down), round(10.0 * up)
    speed = DT * np.append(up * np.arange(rising), down * np.arange(falling, 0, -1))
    return Program("ramps", np.outer(-speed if backwards else speed, np.eye(3)[axis]), DT)


# It may speed up by 1 m/s2 and 2 rad/s2 and brake by 1.5 m/s2 and 3 rad/s2; this one may brake by 0.5 of both.
SOFT = replace(BASE, limits=replace(BASE.limits, deceleration=0.5, angular_deceleration=0.5))


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("axis", "up", "down"), [(0, 0.8, 1.4), (1, 0.8, 1.4), (2, 1.8, 2.8)])
def test_a_program_may_brake_harder_than_it_may_speed_up(axis: int, up: float, down: float, backwards: bool) -> None:
    up_and_down(axis, up, down, backwards).check(BASE)
    with pytest.raises(ProgramError, match="acceleration of"):
        up_and_down(axis, down, up, backwards).check(BASE)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("axis", "what"), [(0, "a deceleration"), (1, "a deceleration"), (2, "an angular deceleration")]
)
def test_a_program_that_brakes_harder_than_the_deceleration_is_refused(axis: int, what: str, backwards: bool) -> None:
    program = up_and_down(axis, 0.4, 0.8, backwards)
    with pytest.raises(ProgramError, match=f"got {what} of 0.8 .*; expected at most 0.5 ") as caught:
        program.check(SOFT)
    program.scaled(float(str(caught.value).rsplit("--time-scale", 1)[1])).check(SOFT)
    up_and_down(axis, 0.8, 0.4, backwards).check(SOFT)


@pytest.mark.parametrize("base", [BASE, SOFT], ids=["youbot", "soft"])
def test_the_check_refuses_what_the_commander_would_hold_back(base: Base) -> None:
    random = np.random.default_rng(0)
    verdicts = []
    for size in np.geomspace(0.002, 0.06, 200):
        program = Program("random", size * random.standard_normal((2, 3)), DT)
        lines = np.vstack([np.zeros(3), program.twists, np.zeros(3)])
        followed = all(
            np.allclose(limit_acceleration(line, before, base.limits, DT), line, rtol=0.0, atol=1e-12)
            for before, line in pairwise(lines)
        )
        try:
            program.check(base)
            passed = True
        except ProgramError:
            passed = False
        assert passed == followed, lines
        verdicts.append(passed)
    assert 20 < sum(verdicts) < 180


@pytest.mark.parametrize("scale", [0.5, 2.0, 3.7])
def test_scaling_in_time_keeps_the_path(scale: float) -> None:
    program = read_program(PROGRAMS / "combined.txt", DT)
    slow = program.scaled(scale)
    assert slow.duration == pytest.approx(20.0 * scale)
    np.testing.assert_allclose(slow.trajectory().poses, program.trajectory().poses, atol=1e-12)


def test_the_trajectory_of_a_program_is_driven_exactly_by_its_lines() -> None:
    program = read_program(PROGRAMS / "combined.txt", DT)
    trajectory = program.trajectory()
    pose = np.zeros(3)
    for k, twist in enumerate(program.twists):
        np.testing.assert_allclose(trajectory.mean_twist(k * DT, (k + 1) * DT), twist, atol=1e-11)
        pose = planar.integrate(pose, twist, DT)
    np.testing.assert_allclose(trajectory.pose(20.0), pose, atol=1e-12)


def test_the_advised_time_scale_fits_also_for_a_program_that_is_scaled_already() -> None:
    import re

    import numpy as np

    from youbot_dynamics.control.trajectory import Program
    from youbot_dynamics.errors import ProgramError
    from youbot_dynamics.robot import load_robot

    base = load_robot().base
    written = Program("fast", np.tile([0.9, 0.0, 0.0], (5, 1)), 1.0)
    with pytest.raises(ProgramError) as refused:
        written.scaled(1.05).check(base)
    advised = float(re.search(r"--time-scale ([0-9.]+)", str(refused.value)).group(1))
    written.scaled(advised).check(base)


def test_a_program_that_moves_sideways_names_its_line_on_a_base_that_cannot():
    base = load_robot(robot_file=robot_path("turtlebot3_burger")).base
    Program("ahead", np.array([[0.01, 0.0, 0.01]] * 3), 0.02).check(base)
    twists = np.array([[0.01, 0.0, 0.0], [0.01, 0.002, 0.0]])
    with pytest.raises(
        ProgramError, match="program aside, line 2: got a motion sideways; expected 0: this base cannot"
    ):
        Program("aside", twists, 0.02).check(base)
