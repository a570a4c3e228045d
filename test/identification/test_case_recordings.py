"""Recordings of other simulators that were once read wrongly; they are skipped where they are absent."""

from __future__ import annotations

from pathlib import Path

import pytest
from repository import CASES, ROOT

from youbot_dynamics.commands.main import main
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.least_squares import Kind
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.robot import Robot, load_robot

ROBOT = load_robot(robot_file=ROOT / "config" / "robots" / "rosbot_xl.yaml")
TRUE = 0.1095  # [s] delay at the wheels of every axis
AXES = ("x", "y", "yaw")


def identified(name: str, stage: str, options: Options | None = None, robot: Robot = ROBOT):
    case = CASES / "base" / name
    if not case.exists():
        pytest.skip(f"{case} is absent")
    return identify(case, robot, options, only=(stage,))


def homemade(folder: Path, lateral_factor: str = "") -> Robot:
    """The robot of the file `homemade.yaml`, with another line about its lateral factor."""
    file = CASES / "base" / "homemade.yaml"
    if not file.exists():
        pytest.skip(f"{file} is absent")
    own = folder / file.name
    own.write_text(file.read_text().replace("half_length: 0.14", f"half_length: 0.14\n          {lateral_factor}", 1))
    return load_robot(robot_file=own)


def test_wheels_that_follow_exactly_have_a_dead_time_and_no_lag(tmp_path):
    robot = homemade(tmp_path, "lateral_factor: 1.0")
    result = identified("pure_dead_time_20hz", "response", robot=robot).result
    for axis in AXES:
        estimate = result[f"robot.base.response.dead_time_{axis}"].estimate
        assert estimate.identified and estimate.value == pytest.approx(0.18, abs=2e-3)
        assert estimate.interval[0] <= 0.18 <= estimate.interval[1]


def test_the_lateral_factor_of_a_homemade_base_is_that_of_its_own_rollers(tmp_path):
    assert homemade(tmp_path).base.geometry.lateral_factor == pytest.approx(0.9836, abs=1e-4)
    assert homemade(tmp_path, "lateral_factor: 0.97").base.geometry.lateral_factor == 0.97


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("stop_commands_unstamped", ""),
        ("wrapped_10hz", "start again after 6.283 rad"),
        ("rollover_16bit", "start again after 201.1 rad"),
        ("velocities_only", ""),
        ("stamps_since_boot", "are from different clocks"),
    ],
)
def test_the_delay_holds_however_a_driver_reports_its_wheels_and_stamps(name, told):
    found = identified(name, "delay")
    for axis in AXES:
        estimate = found.result[f"robot.base.delay.effective_{axis}"].estimate
        assert estimate.identified and estimate.value == pytest.approx(TRUE, abs=3e-3)
        late = 0.0025 if name == "stamps_since_boot" else 0.0  # readings are received 2.5 ms after they are taken
        assert estimate.interval[0] <= TRUE + late <= estimate.interval[1]
    assert any(told in note for note in (*found.notes, *found.warnings))


def test_a_base_that_stops_between_its_commands_has_no_delay_of_held_commands():
    found = identified("deadman_4hz", "delay")
    for axis in AXES:
        estimate = found.result[f"robot.base.delay.effective_{axis}"].estimate
        assert estimate.reason.kind is Kind.UNEXPLAINED and "s after each command" in estimate.verdict
    response = identified("deadman_4hz", "response").result.findings
    assert all(one.estimate.reason and not one.usable for one in response)
    assert all("s after each command" in one.estimate.verdict for one in response)


def test_wheels_that_stiff_loops_turn_alike_are_told_apart_by_the_poses():
    case = CASES / "base" / "radii_left_bigger"
    if not case.exists():
        pytest.skip(f"{case} is absent")
    found = identify(case, ROBOT, Options(pose_topic="/mocap/base"), only=("calibration",))
    for wheel, error in {"fl": 0.0148, "fr": -0.0148, "rl": 0.0148, "rr": -0.0148}.items():
        estimate = found.result[f"robot.base.geometry.wheel_radius_error_{wheel}"].estimate
        assert estimate.identified and estimate.value == pytest.approx(error, rel=0.03)
        assert estimate.interval[0] <= error <= estimate.interval[1]


def test_odometry_whose_pose_turns_half_as_far_as_its_twist_says_is_named():
    warnings = identified("odom_pose_half_heading", "body").warnings
    assert any("pose and twist contradict each other" in warning and "in yaw 0.5;" in warning for warning in warnings)


def test_times_that_were_written_with_too_few_digits_are_named():
    options = Options(columns="time=t,command.x=cx,measured.x=vx")
    with pytest.raises(RecordingError, match="write the times with all their digits"):
        identified("time_g.csv", "delay", options)


def test_tape_readings_in_inches_are_told_as_such(capsys):
    case = CASES / "base" / "tape_inches"
    if not case.exists():
        pytest.skip(f"{case} is absent")
    readings = ("--forward", "48.25", "--sideways", "49.2", "--turn", "727.7")
    with pytest.raises(SystemExit) as end:
        main(["calibrate", "--tape", "--bag", str(case), *readings, "--robot-file", "rosbot_xl"])
    assert end.value.code == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "about 1.2 m, as the wheels rolled" in line and "were these inches?" in line
