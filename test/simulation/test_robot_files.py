"""Robots other than the youBot: each file of config/robots describes one, and its twin is identified and tracked."""

from __future__ import annotations

import numpy as np
import pytest

import youbot_dynamics as yd
from youbot_dynamics.commands._demo import true_values
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.errors import ParameterError, ResourceError
from youbot_dynamics.identification.excitation import base_program
from youbot_dynamics.resources import config_path, program_path, robot_path
from youbot_dynamics.robot import assumptions
from youbot_dynamics.simulation.truth import truth_table

ROBOTS = sorted(path.stem for path in config_path("robots/rosbot_xl.yaml").parent.glob("*.yaml"))
LEVERS = {
    "rosbot_xl": 0.220,
    "dingo_o": 0.4704,
    "ridgeback": 0.59,
    "mirte_master": 0.225,
    "rosmaster_x3": 0.1645,
    "robotino_2": 0.13,
    "turtlebot3_burger": 0.08,
    "create_3": 0.1165,
    "optiodom_tricycle": 0.15,
}
OMNI, DIFFERENTIAL, STEERED = ["robotino_2"], ["create_3", "turtlebot3_burger"], ["optiodom_tricycle"]
SIZES = dict.fromkeys(OMNI, ("wheel_distance",)) | dict.fromkeys(DIFFERENTIAL, ("track",))
SIZES |= dict.fromkeys(STEERED, ("wheelbase",))


@pytest.mark.parametrize("name", ROBOTS)
def test_a_robot_has_the_lever_that_its_maker_gives(name):
    robot = yd.load_robot(robot_file=robot_path(name))
    geometry, driver = robot.base.geometry, robot.driver.mecanum()
    assert robot.robot_id == name
    levers = driver.reach if name in STEERED else np.abs(driver.inverse_matrix[:, 2]) * driver.radii
    np.testing.assert_allclose(levers, LEVERS[name], atol=1e-4)
    np.testing.assert_array_equal(geometry.mecanum().positions, driver.positions)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_truth_of_a_robot_lies_about_its_own_facts(name):
    robot = yd.load_robot(robot_file=robot_path(name))
    table = {parameter.name: parameter.default for parameter in truth_table(robot_path(name))}
    for fact in ("wheel_radius", *SIZES.get(name, ("half_length", "half_width"))):
        nominal, low, high = table[f"truth.{fact}"]
        assert low < nominal < high
        assert nominal == getattr(robot.base.geometry, fact)
    assert table["truth.mass"][0] == robot.base.mass


def test_a_robot_is_found_by_name_or_path_and_a_wrong_name_lists_them_all(tmp_path):
    own = tmp_path / "mine.yaml"
    own.write_text("/**:\n  ros__parameters:\n    robot:\n      base:\n        mass: 6.5\n")
    assert yd.load_robot(robot_file=robot_path(str(own))).base.mass == 6.5
    assert robot_path("") is None
    with pytest.raises(ResourceError, match=f"expected one of {', '.join(ROBOTS)}, or the path of your own file"):
        robot_path("rosbot")
    with pytest.raises(ResourceError, match=r"robot file rosbotxl: got no such robot .*; did you mean rosbot_xl\?$"):
        robot_path("rosbotxl")
    for name, got in ((str(tmp_path / "none.yaml"), "no such file"), (str(tmp_path), "a path that is not a file")):
        with pytest.raises(ResourceError, match=f"robot file {name}: got {got}; expected a robot of the package"):
            robot_path(name)


def test_an_omni_robot_whose_driver_has_no_angles_is_told_what_to_set(tmp_path):
    own = tmp_path / "my_omni.yaml"
    text = robot_path("robotino_2").read_text().replace("robot_id: robotino_2", "robot_id: youbot_2")
    below = text.index("      driver:")
    driver = [line for line in text[below:].splitlines() if not line.strip().startswith(("wheel_dist", "drive_ang"))]
    own.write_text(text[:below] + "\n".join(driver))
    with pytest.raises(
        ParameterError, match=r"wheel_joints: got 3 .*; omni wheels need wheel_distance and drive_angles"
    ):
        yd.load_robot(robot_file=own)
    own.write_text(own.read_text().replace("youbot_2", "another"))  # which has nothing of the youBot
    robot = yd.load_robot(robot_file=own)
    assert robot.driver.drive_angles == robot.base.geometry.drive_angles


def test_a_robot_file_in_the_place_of_a_result_is_told_where_it_belongs():
    with pytest.raises(
        ParameterError, match=r"robotino_2.yaml: got a robot file: it has robot.*give it as robot_file="
    ):
        yd.load_robot(robot_path("robotino_2"))


def test_an_array_that_does_not_name_each_wheel_is_refused(tmp_path):
    own = tmp_path / "mine.yaml"
    names = "[fl, fr, rl, bl]"
    own.write_text(f"/**:\n  ros__parameters:\n    robot:\n      driver:\n        array_order: {names}\n")
    with pytest.raises(ParameterError, match=r"array_order: got .*bl"):
        yd.load_robot(robot_file=own)


def error(run, path: yd.Trajectory) -> np.ndarray:
    """Root mean square errors [m, rad] of the true pose."""
    during = (run.reading_time >= run.start) & (run.reading_time <= run.start + path.duration)
    off = run.true_pose[during] - path.path(run.reading_time[during] - run.start)
    return np.sqrt([np.mean(np.sum(off[:, :2] ** 2, axis=1)), np.mean(off[:, 2] ** 2)])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ROBOTS if name not in (*DIFFERENTIAL, *STEERED)])
def test_its_twin_is_identified_and_follows_five_times_closer(name, tmp_path):
    file = robot_path(name)
    sheets = yd.load_robot(robot_file=file)

    def drive(path: yd.Trajectory, robot: yd.Robot, **settings):
        plant = yd.BaseOnly(yd.load_truth(3, file), sheets.driver, 3)
        return yd.drive(path, robot, plant, 3, tracker_settings=yd.TrackerSettings(**settings))

    program = read_program(program_path("combined"), dt=0.02)
    path = program.scaled(program.fitting_time_scale(sheets.base)).trajectory()
    excitation = base_program(sheets, 60.0, 1.0, 0.02).trajectory()
    yd.write_bag(drive(excitation, sheets, feedback=False), sheets, tmp_path / "drive", feedback=False)
    found = yd.identify([tmp_path / "drive"], sheets, yd.Options()).result
    found_of, true = found.parameters(), true_values(3, tmp_path / "drive", file)
    for fact in ("wheel_radius", *(("wheel_distance",) if name in OMNI else ("lateral_factor",))):
        key = f"robot.base.geometry.{fact}"
        assert found_of[key] == pytest.approx(true[key], rel=5e-3)
    for axis in ("x", "y", "yaw"):
        key = f"robot.base.delay.effective_{axis}"
        assert found_of[key] == pytest.approx(true[key], abs=5e-3)
    before, after = error(drive(path, sheets, feedback=False), path), error(drive(path, found.applied_to(sheets)), path)
    print(name, 1e3 * before, 1e3 * after, found.applied_to(sheets).base.delay.effective())
    assert np.all(after <= np.maximum(before / 5.0, 2e-3))


def differential(name: str, seed: int, tmp_path, duration: float):
    """A drive of the excitation, what was identified from it, and what is true."""
    file = robot_path(name)
    sheets = yd.load_robot(robot_file=file)
    plant = yd.BaseOnly(yd.load_truth(seed, file), sheets.driver, seed)
    path = base_program(sheets, duration, 1.0, 0.02).trajectory()
    run = yd.drive(path, sheets, plant, seed, tracker_settings=yd.TrackerSettings(feedback=False))
    yd.write_bag(run, sheets, tmp_path / "drive", feedback=False)
    found = yd.identify([tmp_path / "drive"], sheets, yd.Options())
    return run, found, true_values(seed, tmp_path / "drive", file)


@pytest.mark.parametrize("name", DIFFERENTIAL)
def test_a_differential_twin_is_identified_and_nothing_is_said_of_sideways_motion(name, tmp_path):
    run, found, true = differential(name, 3, tmp_path, 40.0)
    np.testing.assert_array_equal(run.true_twist[:, 1], 0.0)
    values = found.result.parameters()
    for fact in ("wheel_radius", "track"):
        key = f"robot.base.geometry.{fact}"
        assert values[key] == pytest.approx(true[key], rel=5e-3)
    for axis in ("x", "yaw"):
        key = f"robot.base.delay.effective_{axis}"
        assert values[key] == pytest.approx(true[key], abs=5e-3)
    names = {finding.name for stage in found.stages for finding in stage.findings}
    assert not [
        one for one in names if one.endswith(("_y", "lateral_factor")) and "sensor" not in one or "roller" in one
    ]

    # Wheels of the identified size end where the base is.
    geometries = [robot.base.geometry for robot in (found.robot, found.result.applied_to(found.robot))]
    ends = [geometry.wheels().path(run.wheel_angle)[-1] for geometry in geometries]
    before, after = (np.linalg.norm((end - run.true_pose[-1])[:2]) for end in ends)
    assert after < 0.1 * before


def test_six_lines_are_a_differential_robot(tmp_path):
    own = tmp_path / "homemade.yaml"
    own.write_text(
        "/**:\n  ros__parameters:\n    robot:\n      robot_id: homemade\n"
        "      base: {geometry: {wheel_radius: 0.05, track: 0.3}}\n      driver: {wheel_joints: [left, right]}\n"
    )
    robot = yd.load_robot(robot_file=own)
    assert robot.driver.mecanum().twist([2.0, 4.0]).tolist() == pytest.approx([0.15, 0.0, 1.0 / 3.0])
    assert robot.base.geometry.wheel_names == ("fl", "fr")
    assumed = assumptions(own, most=99)
    assert "driver.track 0.3" in assumed
    assert not [word for word in ("half_", "drive_angles", "rollers", "wheel_distance", "lateral") if word in assumed]
    own.write_text(own.read_text().replace("[left, right]", "[left, right, rear]"))
    with pytest.raises(
        ParameterError, match=r"wheel_joints: got 3 elements; expected 2.*differential base their track"
    ):
        yd.load_robot(robot_file=own)
    own.write_text(own.read_text().replace("track: 0.3", "track: 0.3, wheel_distance: 0.2"))
    with pytest.raises(ParameterError, match=r"track: got 0\.3 with wheel_distance 0\.2.*leave out the track"):
        yd.load_robot(robot_file=own)
