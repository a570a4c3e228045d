"""A radius for each wheel: found from a bag, written, taken up again, and used by whoever reckons with the wheels."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from acceptance_bags import bag_of_twin
from calibration_runs import BASE, ROBOT, calibrated, drawn_run, drawn_tracker, track
from friction_runs import multi_sine
from named_findings import named_estimates

from youbot_dynamics.errors import InputError
from youbot_dynamics.identification.calibration import calibrate
from youbot_dynamics.identification.calibration._fit import WHEELS
from youbot_dynamics.identification.calibration._weights import shrinkage
from youbot_dynamics.identification.least_squares import Kind
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.result import write_result
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.robot_base import BaseGeometry
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.scenario import identified_model
from youbot_dynamics.simulation.truth import load_truth

SEED = 3
ERRORS = [f"robot.base.geometry.wheel_radius_error_{wheel}" for wheel in WHEELS]
FOUR = dict(zip([f"wheel_radius_error_{wheel}" for wheel in WHEELS], [0.01, -0.005, 0.02, -0.025], strict=True))


def with_four(**changes: float) -> BaseGeometry:
    return dataclasses.replace(ROBOT.base.geometry, **FOUR, **changes)


def test_each_wheel_has_its_radius_in_kinematics_rollers_dynamics_and_twin() -> None:
    geometry = with_four()
    expected = 0.0475 * np.array([1.01, 0.995, 1.02, 0.975])
    np.testing.assert_allclose(geometry.mecanum().radii, expected)
    np.testing.assert_allclose(geometry.wheels().constants.radii, expected)
    robot = dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, geometry=geometry))
    np.testing.assert_allclose(robot.base.dynamics().base.radii, expected)
    np.testing.assert_allclose(identified_model(robot).wheel_radii(), expected)
    np.testing.assert_allclose(load_truth(1).with_geometry(geometry).wheel_radii(), expected)


def test_straight_ahead_a_larger_wheel_turns_slower() -> None:
    speeds = with_four().mecanum().wheel_speeds([0.3, 0.0, 0.0])
    np.testing.assert_allclose(speeds * [1.01, 0.995, 1.02, 0.975], np.full(4, 0.3 / 0.0475))


def test_errors_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match="radius_errors"):
        MecanumBase.rectangular(0.0475, 0.235, 0.15, radius_errors=[0.0, 0.0, 0.01])


@pytest.mark.parametrize("twist", [(0.3, 0.0, 0.0), (0.0, 0.3, 0.0), (0.1, 0.1, 0.8)])
def test_a_driver_with_one_radius_loses_only_what_no_motion_explains(twist: tuple[float, float, float]) -> None:
    """Of radii 1 % apart it loses 1 % of a wheel's speed, of the motion the square of that."""
    geometry = dataclasses.replace(
        ROBOT.base.geometry, wheel_radius_error_fl=0.01, wheel_radius_error_fr=0.004, wheel_radius_error_rr=-0.01
    )
    ours, driver = geometry.mecanum(), ROBOT.driver.mecanum()
    speeds = ours.wheel_speeds(twist)
    driven = driver.wheel_speeds(driver.twist(speeds))
    moved = np.abs(ours.twist(driven) - twist) / np.linalg.norm(twist)
    of_one_radius = np.abs(ours.twist(BASE.wheel_speeds(twist)) - twist) / np.linalg.norm(twist)
    print(f"wheels off by {np.abs(driven / speeds - 1).max():.2e}, motion {moved}, with one radius {of_one_radius}")
    assert np.max(moved) < 2e-4 < 2e-3 < np.max(of_one_radius)


def test_a_second_calibration_tells_the_same_errors_and_adds_nothing_to_the_first() -> None:
    first, true = calibrated(SEED)
    geometry = dataclasses.replace(
        ROBOT.base.geometry,
        **{
            name.removeprefix("robot.base.geometry."): one.value
            for name, one in named_estimates(first, ROBOT.base.geometry).items()
            if name.startswith("robot.")
        },
    )
    np.testing.assert_allclose(geometry.mecanum().radii, first.base.radii, rtol=1e-12)
    other = drawn_run(SEED, drawn_tracker(SEED), twists=multi_sine(60.0, 40)).signals()
    second = calibrate([other], geometry.mecanum())
    for wheel in WHEELS:
        found = second[f"wheel_radius_error_{wheel}"]
        assert found.identified and abs(true[found.name] - found.value) < 4.0 * found.standard_error
    again = named_estimates(second, geometry)
    mean = again["robot.base.geometry.wheel_radius"].value
    errors = np.array([again[name].value for name in ERRORS])
    np.testing.assert_allclose(mean * (1.0 + errors), second.base.radii, rtol=1e-12)
    assert abs(np.sum(errors)) < 1e-12


def test_where_the_wheels_are_not_told_apart_the_robot_keeps_its_errors_and_gets_the_mean() -> None:
    """Wheel angles off by a quarter of a radian: equal wheels would do as well."""
    uneven = with_four(wheel_radius=0.047)
    uneven = dataclasses.replace(uneven, wheel_radius_error_rr=0.0)
    run = drawn_run(SEED, drawn_tracker(SEED), 40.0)
    noise = 0.25 * np.random.default_rng(1).standard_normal(run.angles.shape)
    found = calibrate([dataclasses.replace(run, angles=run.angles + noise).signals()], uneven.mecanum())
    assert found["wheel_radius"].identified
    named = named_estimates(found, uneven)
    assert not set(ERRORS) & set(named)
    refused = [named[name.removeprefix("robot.")] for name in ERRORS]
    assert {estimate.reason.kind for estimate in refused} <= {Kind.TOO_WIDE, Kind.OTHER_EXPLANATION}
    kept = dataclasses.replace(uneven, wheel_radius=named["robot.base.geometry.wheel_radius"].value)
    np.testing.assert_allclose(kept.mecanum().radii, found.base.radii, rtol=1e-12)
    assert np.mean(found.base.radii) == pytest.approx(found["wheel_radius"].value, rel=1e-12)


def shrunk(errors: list[float], deviations: list[float], mean: float = -3.0) -> np.ndarray:
    """Errors (n,) of radii whose logarithms were found with independent errors, as they are believed."""
    logarithms = mean + np.array(errors)
    believed = logarithms + shrinkage(logarithms, np.diag(np.square(deviations)))
    return believed - np.mean(believed)


def test_radii_are_shrunk_towards_their_mean_by_how_little_they_differ() -> None:
    even = [1e-4] * 4
    np.testing.assert_allclose(shrunk([0.02, -0.02, 0.02, -0.02], even), [0.02, -0.02, 0.02, -0.02], rtol=1e-3)
    assert np.max(np.abs(shrunk([5e-4, -1e-4, -6e-4, 2e-4], [4e-4] * 4))) < 0.3 * 6e-4
    np.testing.assert_allclose(shrunk([0.0] * 4, even), 0.0, atol=1e-12)
    kept = [shrunk([size, 0.0, -size, 0.0], even)[0] / size for size in np.geomspace(3e-4, 0.03, 30)]
    assert np.all(np.diff(kept) >= -1e-9) and kept[-1] > 0.999


def test_a_wheel_that_is_hardly_known_changes_none_that_are_known() -> None:
    """All errors were shrunk by one factor: -0.55 % was told as -0.03 +-0.012 % because of another wheel."""
    logarithms = -3.0 + np.array([-0.004, 0.012, -0.0055])
    changes = shrinkage(logarithms, np.diag(np.square([6e-5, 0.015, 6e-5])))
    assert np.max(np.abs(changes[[0, 2]])) < 6e-5 and changes[1] < -0.005


@pytest.mark.parametrize("size", [8e-4, 1.5e-3])
def test_small_differences_of_the_radii_are_not_lost(size: float) -> None:
    """Wheels that were set equal below a mean difference of 0.1 %: up to 1,600 ppm were lost.

    Seen by motion capture: the poses alone tell the radii.
    """
    errors = size * np.array([1.0, -1.0, 1.0, -1.0])
    truth = dataclasses.replace(load_truth(SEED), wheel_radius_error=tuple(errors.tolist()))
    tracker = dataclasses.replace(drawn_tracker(SEED), place_noise=0.0005, yaw_noise=0.001)
    run = track(BasePlant(truth, ROBOT.driver, SEED), multi_sine(60.0, SEED), SEED, tracker)
    found = calibrate([run.signals()], BASE)
    left = found.base.radii / np.mean(found.base.radii) - 1.0 - errors
    print(f"left of {1e6 * size:.0f} ppm: {1e6 * left} ppm")
    assert np.max(np.abs(left)) < 0.5 * size
    assert all(found[f"wheel_radius_error_{wheel}"].identified for wheel in WHEELS)


# Through a bag


def relaunched(folder: Path, robot: Robot, seed: int) -> Robot:
    """What a relaunch with the result of a minute's drive knows."""
    bag = bag_of_twin(folder / f"drive_{seed}", SEED, multi_sine(60.0, seed), None)
    found = identify([bag], robot, Options(), only=("calibration",))
    assert found.result.complete
    write_result(folder, found.result)
    return load_robot(folder / "result.yaml")


def test_a_bag_with_a_pose_tells_the_radii_of_a_relaunch_and_a_second_one_the_same(tmp_path: Path) -> None:
    true = load_truth(SEED).wheel_radii()
    first = relaunched(tmp_path, ROBOT, 1)
    second = relaunched(tmp_path, first, 2)
    for robot in (first, second):
        geometry = robot.base.geometry
        np.testing.assert_allclose(geometry.mecanum().radii / true, 1.0, atol=2e-3)
        errors = true / np.mean(true) - 1.0
        np.testing.assert_allclose(geometry.wheel_radius_errors, errors, atol=1e-3)
