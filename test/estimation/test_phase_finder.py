"""Roller phases found from the ripple of a gyro while the base drives, refused where nothing shows them."""

from __future__ import annotations

import numpy as np
import pytest
from roller_drives import PERIOD, ROBOT, RollerDrive, twin_drive

from youbot_dynamics.estimation.odometry import BaseEstimator
from youbot_dynamics.estimation.odometry._estimator import PhaseFinder
from youbot_dynamics.kinematics.roller_phase import RollingWheels

GYRO_NOISE = 1e-4  # [rad/s/sqrt(Hz)]


def find(
    drive: RollerDrive, wheels: RollingWheels, seed: int = 0
) -> tuple[PhaseFinder, list[tuple[float, np.ndarray]]]:
    """The finder at the end, and when [s] it told which phases."""
    finder, random, found = PhaseFinder(wheels, ROBOT.base.wheel_weights()), np.random.default_rng(seed), []
    noise = GYRO_NOISE * np.sqrt(PERIOD)
    for k in range(1, len(drive.time)):
        turn = float(drive.pose[k, 2] - drive.pose[k - 1, 2] + noise * random.standard_normal())
        before = drive.position[k - 1]
        phases = finder.update(before, drive.position[k] - before, turn, noise**2)
        if phases is not None:
            found.append((float(drive.time[k]), phases))
    return finder, found


def off(phases: np.ndarray, wheels: RollingWheels) -> np.ndarray:
    return (phases - wheels.phases + 0.5 * wheels.pitch) % wheels.pitch - 0.5 * wheels.pitch


@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_gyro_shows_the_phases_within_seconds_of_a_motion_that_goes_all_ways(seed: int, rollers: int) -> None:
    drive = twin_drive("combined", seed, rollers=rollers)
    wheels = RollingWheels(drive.wheels.base, rollers, drive.wheels.depth, drive.wheels.phases)
    finder, found = find(drive, wheels, seed)
    print(f"seed {seed}, {rollers} rollers: {[(time, off(phases, wheels).round(4)) for time, phases in found]}")
    assert found[0][0] < (6.0 if rollers == 6 else 11.0)
    assert all(np.max(np.abs(off(phases, wheels))) < wheels.pitch / 15.0 for _, phases in found)
    assert np.all(np.abs(off(found[-1][1], wheels)) < 4.0 * np.maximum(finder.errors, 2e-3))


def test_motion_that_goes_one_way_shows_none() -> None:
    """Wheels of a diagonal turn alike when the base moves straight on: which of them ripples does not show."""
    drive = twin_drive("rotation", 1)
    finder, found = find(drive, drive.wheels)
    assert not found and np.max(finder.errors) > drive.wheels.pitch / 20.0


@pytest.mark.parametrize("rollers", [0, 9])
def test_smooth_wheels_and_another_number_of_rollers_have_no_phases(rollers: int) -> None:
    drive = twin_drive("combined", 1, rollers=rollers, repeats=2)
    assert not find(drive, ROBOT.base.geometry.wheels())[1]


def test_odometry_goes_on_with_what_is_found_until_the_counts_jump() -> None:
    drive = twin_drive("combined", 1, standing=4.0)
    estimator = BaseEstimator(ROBOT, find_phases=True)
    random = np.random.default_rng(1)
    for k, time in enumerate(drive.time.tolist()):
        for part, rate in enumerate(drive.rate[k].tolist()):
            noise = GYRO_NOISE / np.sqrt(0.5 * PERIOD) * float(random.standard_normal())
            estimator.take_rate(time + 0.5 * PERIOD * (part - 1), 0.01 + rate + noise)
        estimator.take_wheels(time, drive.position[k], drive.velocity[k])
    found = estimator.found_phases
    assert found is not None and np.max(np.abs(off(found, drive.wheels))) < drive.wheels.pitch / 15.0
    assert np.array_equal(estimator.odometry.wheels.phases, found)
    assert not estimator.complaints()
    estimator.take_wheels(time + 0.02, drive.position[-1] + 5.0)
    assert estimator.odometry.wheels.phases is None and "jumped" in estimator.odometry.phases_lost
    for k in range(2, 152):
        estimator.take_wheels(time + 0.02 * k, drive.position[-1] + 5.0)
    assert any("jumped 3 s ago" in text for text in estimator.complaints())
