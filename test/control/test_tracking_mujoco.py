"""Stabilised drives on contact physics, with all parameters identified from another drive; ground truth judges."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tracking_runs import Errors, drive_in_mujoco, errors_of, identified_in_mujoco, informed, summary, with_geometry

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot

pytest.importorskip("mujoco")

PROGRAMS = ("translation", "rotation", "combined")
# Standard deviations held [m, m, rad]: the targets. With a gyro 1 mrad is missed where rollers that nobody
# knows rock the heading within the dead time, and the means 0.4 mm by the slip of the drives (docs/tracking.md).
KNOWN = {
    "translation": [0.0005, 0.0005, 0.0004],
    "rotation": [0.0003, 0.0003, 0.0008],
    "combined": [0.0006, 0.0006, 0.0008],
}
# LQ is slower than PID: one robot of ten, whose servos take 0.24 s to integrate, is 0.41 mm off in its rotation.
ROTATION_WITH_LQ = [0.00045, 0.00045, 0.0008]
WITH_GYRO = {
    "translation": [0.003, 0.003, 0.0022],
    "rotation": [0.0005, 0.0005, 0.001],
    "combined": [0.003, 0.003, 0.0015],
}


def run(name: str, robot: Robot, seed: int, rollers: int, **options: object) -> Errors:
    """Drive, and print what is off."""
    drive = drive_in_mujoco(name, robot, seed, rollers, **options)
    errors = errors_of(drive)
    law = getattr(options.get("settings"), "tracker", "pid")
    print(f"\nseed {seed}, {rollers} rollers, {law} {name}: {summary(errors)} [mm, mm, mrad]")
    assert not drive.complaints, drive.complaints
    return errors


def check(errors: Errors, largest: list[float], mean: float) -> None:
    assert np.all(errors.truth.std(axis=0) <= largest)
    assert np.all(np.abs(errors.truth.mean(axis=0)) <= mean)


def short(seconds: float) -> Program:
    """Begin of the combined program."""
    program = read_program(program_path("combined"), 0.02)
    return Program("short", program.twists[: round(seconds / 0.02)], 0.02)


def test_the_rollers_that_are_known_are_worth_a_factor() -> None:
    """One cell, quick: response and phases as they are. Without the phases the same drive is several times worse."""
    robot = informed(0, 6)
    trajectory = short(6.0).trajectory()
    known = run("combined", robot, 0, 6, trajectory=trajectory, interface="wheels")
    unknown = run("combined", with_geometry(robot, roller_phase_error=0.0), 0, 6, trajectory=trajectory)
    assert np.all(known.truth.std(axis=0) <= [0.0005, 0.0005, 0.0008])
    assert np.linalg.norm(unknown.truth[:, :2].std(axis=0)) > 2.0 * np.linalg.norm(known.truth[:, :2].std(axis=0))


# Odometry drifts by slip: with the true geometry and phases by .52 mm, .73 mrad (seed 2), .50 mm, .62 mrad (seed 0).
MISSED = {
    (6, 2, "combined"): "mean of x 0.73 mm: the identified radius is 0.1 % too small, by slip",
    (6, 0, "combined"): "mean of yaw 0.67 mrad with LQ: slip within the drive",
}
CELLS = [
    pytest.param(
        *cell,
        marks=[pytest.mark.xfail(reason=MISSED.get(cell, ""), strict=True, raises=AssertionError)] * (cell in MISSED),
    )
    for cell in itertools.product((6, 9), range(10), PROGRAMS)
]


@pytest.mark.slow
@pytest.mark.parametrize("rollers, seed, name", CELLS)
def test_phases_identified_from_one_drive_hold_the_next_one_to_half_a_millimetre(
    name: str, rollers: int, seed: int
) -> None:
    found = identified_in_mujoco(seed, rollers)
    assert found.phases is not None and found.phases.identified
    for law in ("pid", "lq") if rollers == 6 else ("pid",):
        settings = TrackerSettings(tracker=law)
        errors = run(name, found.robot, seed, rollers, interface="wheels", settings=settings)
        check(errors, ROTATION_WITH_LQ if (law, name) == ("lq", "rotation") else KNOWN[name], 0.0006)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_gyro_holds_the_heading_where_phases_are_unknown(name: str, rollers: int, seed: int) -> None:
    robot = identified_in_mujoco(seed, rollers).without_phases()
    check(run(name, robot, seed, rollers, gyro=True), WITH_GYRO[name], 0.003)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_a_gyro_finds_the_phases_and_the_rest_of_the_drive_is_as_with_known_ones(seed: int) -> None:
    robot = with_geometry(informed(seed, 6), roller_phase_error=0.0)
    errors = run("combined", robot, seed, 6, gyro=True, interface="wheels", find_phases=True)
    assert np.all(errors.truth[400:].std(axis=0) <= 0.0005)


@pytest.mark.slow
def test_a_floor_that_is_tilted_by_a_degree_keeps_the_deviations_within_their_targets() -> None:
    """The loops hold the weight along the floor; its creep moves the base by .65 mm that no wheel shows."""
    tilt, course = np.radians(1.0), 0.5
    along, down = 9.81 * np.sin(tilt), 9.81 * np.cos(tilt)
    gravity = [-along * np.cos(course), -along * np.sin(course), -down]
    errors = run("combined", identified_in_mujoco(1, 6).robot, 1, 6, interface="wheels", gravity=gravity)
    assert np.all(errors.truth.std(axis=0) <= KNOWN["combined"])
    assert np.all(np.abs(errors.truth.mean(axis=0)) <= 0.001)


@pytest.mark.slow
def test_a_driver_that_takes_twists_lets_the_wheels_fight_and_creep() -> None:
    """What four wheels do beside a motion has no place in a twist: the heading drifts several times as far."""
    robot = identified_in_mujoco(0, 6).robot
    twist, wheels = (run("translation", robot, 0, 6, interface=one).drift.std(axis=0)[2] for one in ("twist", "wheels"))
    assert twist > 2.0 * wheels
