"""A robot that is no youBot: nothing of the youBot is in its numbers or in what is said about it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command_line import exit_code
from homemade import LEAST, WHEELS, drive_of, write_least

import youbot_dynamics as yd
from youbot_dynamics.bringup_plan import BringupOptions, plan
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.robot import assumptions, values_of
from youbot_dynamics.simulation.truth import truth_table

YOUBOT = yd.load_robot()


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `homemade.yaml` and `drive_1`, a drive of its twin."""
    folder = tmp_path_factory.mktemp("owner")
    drive_of(write_least(folder), folder / "drive_1")
    return folder


def test_six_lines_make_a_robot_with_neutral_signs_and_masses_of_its_own_size(tmp_path: Path) -> None:
    robot = yd.load_robot(robot_file=write_least(tmp_path))
    driver, base = robot.driver, robot.base
    assert not robot.has_arm and not robot.is_youbot and YOUBOT.is_youbot
    assert driver.position_sign == driver.velocity_sign == driver.command_sign == (1.0,) * 4
    assert (driver.wheel_radius, driver.half_length, driver.half_width) == (0.05, 0.14, 0.16)
    assert base.geometry.lateral_factor == 1.0 and base.centre_of_mass == (0.0, 0.0)
    assert base.mass == pytest.approx(29.9 * 0.14 * 0.16 / (0.235 * 0.15), rel=1e-3)
    assert base.limits.wheel_speed * 0.05 == pytest.approx(YOUBOT.base.limits.wheel_speed * 0.0475, rel=1e-3)
    assert YOUBOT.driver.velocity_sign == (-1.0, 1.0, -1.0, 1.0)


def test_a_youbot_with_a_name_of_its_own_keeps_what_it_has(tmp_path: Path) -> None:
    own = tmp_path / "youbot_2.yaml"
    own.write_text("/**: {ros__parameters: {robot: {robot_id: youbot_2, base: {mass: 26.0}}}}")
    robot, params = yd.load_robot(robot_file=own), tmp_path / "params.yaml"
    assert robot.driver == YOUBOT.driver and robot.has_arm and assumptions(own) == ""
    params.write_text("/**: {ros__parameters: {robot: {robot_id: fred}}}")  # as the docs tell owners of a youBot
    assert yd.load_robot(params_file=params).driver == YOUBOT.driver and assumptions(None, params) == ""


def test_what_is_assumed_is_listed_with_its_value_and_only_that(tmp_path: Path) -> None:
    least = write_least(tmp_path)
    text, few = assumptions(least, most=99), assumptions(least)
    assert (
        few.count(";") == 2 and f"; and {text.count(';') - 1} more, which youbot identify lists with --verbose" in few
    )
    assert "homemade.yaml does not say: " in text and "; base.mass 19; " in text and "velocity_sign 1, 1, 1, 1" in text
    assert not any(
        name in text for name in ("wheel_joints", "geometry.wheel_radius", "arm", "dead_time", "drive_angles")
    )
    whole = tmp_path / "whole.yaml"
    whole.write_text(LEAST.replace("driver: {", "driver: {rate: 20.0, "))
    assert "rate" in text and "rate" not in assumptions(whole, most=99)
    assert assumptions("rosbot_xl") == assumptions("robotino_2") == assumptions("") == ""


def test_the_nodes_have_what_the_library_has_and_an_identified_value_wins(tmp_path: Path) -> None:
    least, found = write_least(tmp_path), tmp_path / "result.yaml"
    found.write_text("/**: {ros__parameters: {robot: {robot_id: homemade, base: {mass: 7.5}}}}")
    process = next(
        one
        for one in plan(BringupOptions(robot_file=str(least), result_file=str(found)))
        if one.executable == "base_controller"
    )
    words = process.arguments
    files = [Path(words[k + 1]) for k, word in enumerate(words) if word == "--params-file"]
    given = {name: value for file in files for name, value in read_parameters(file, "").items()}
    set_by_name = dict(words[k + 1].split(":=", 1) for k, word in enumerate(words) if word == "-p")
    assert "robot.base.mass" not in set_by_name and given["robot.base.mass"] == 7.5
    for name, value in values_of(yd.load_robot(found, None, least)).items():
        if name in set_by_name:
            assert (
                set_by_name[name].strip("[]").split(", ")[0]
                == str(value[0] if isinstance(value, tuple) else value).lower()
            )
        else:
            assert given[name] == value, name


def test_its_twin_is_drawn_about_its_own_facts_with_delays_of_its_own(tmp_path: Path) -> None:
    least = write_least(tmp_path)
    table = {item.name: item.default for item in truth_table(least)}
    assert table["truth.wheel_radius"] == pytest.approx((0.05, 0.0475, 0.0525))
    assert table["truth.mass"][0] == yd.load_robot(robot_file=least).base.mass  # type: ignore[index]
    nominal, one, youbots = yd.load_truth(0, least), yd.load_truth(1, least), yd.load_truth(1)
    assert nominal.half_width == 0.16 and nominal.lateral_factor == 1.0
    assert one == yd.load_truth(1, least) and one != yd.load_truth(2, least)
    assert not np.any(np.isclose(one.dead_times(), youbots.dead_times()))
    other = tmp_path / "other.yaml"
    other.write_text(LEAST.replace("homemade", "other"))
    assert not np.any(np.isclose(one.dead_times(), yd.load_truth(1, other).dead_times()))


def test_its_twin_is_identified_without_a_word_about_an_arm(owner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--robot-file", owner / "homemade.yaml", "--only", "calibration,delay")
    assert exit_code("identify", owner / "drive_1", "--out", owner / "found", *words) in (0, 3)
    said = capsys.readouterr()
    assert said.err.count("does not say: ") == 1
    values, truth = read_parameters(owner / "found" / "result.yaml", ""), yd.load_truth(1, owner / "homemade.yaml")
    assert values["robot.base.geometry.wheel_radius"] == pytest.approx(np.mean(truth.wheel_radii()), abs=1e-4)
    assert 0.0 < values["robot.base.delay.effective_x"] - truth.dead_time_x < 0.05  # type: ignore[operator]
    robot = yd.load_robot(robot_file=owner / "homemade.yaml")
    stages = yd.identify([owner / "drive_1"], robot, only=("delay",)).result.missing
    assert not stages
    refused = exit_code("identify", owner / "drive_1", "--out", owner / "no", "--only", "thermal", *words[:2])
    assert refused == 1 and "thermal: got robot 'homemade', which has none" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["fl", "wheel_1"])
def test_wrong_names_of_wheels_end_with_the_names_that_are_there(
    owner: Path, capsys: pytest.CaptureFixture[str], wrong: str
) -> None:
    other = owner / "wrong.yaml"
    other.write_text(LEAST.replace("front_left", wrong))
    assert exit_code("identify", owner / "drive_1", "--out", owner / "none", "--robot-file", other) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert all(name in line for name in (*WHEELS, f"expected {wrong}, front_right", "wheel_joints"))
    assert not (owner / "none").exists()


def test_a_recording_without_any_of_the_wheels_is_warned_of(owner: Path) -> None:
    """Its joints may be those of another machine on the base, whose odometry is good."""
    other = owner / "others.yaml"
    other.write_text(re.sub(r"wheel_joints: \[.*\]", "wheel_joints: [a, b, c, d]", LEAST))
    assert other.read_text() != LEAST
    found = yd.identify([owner / "drive_1"], yd.load_robot(robot_file=other), only=("body",))
    assert any("none of a, b, c, d" in warning and "wheel_joints" in warning for warning in found.warnings)


def test_a_recording_that_names_no_robot_is_one_of_an_unnamed_base(owner: Path) -> None:
    unnamed = owner / "unnamed"
    drive_of(owner / "homemade.yaml", unnamed, named=False)
    found = yd.identify([unnamed], YOUBOT, only=("body",))
    assert found.result.robot_id == found.robot.robot_id == "unnamed base with joints"
