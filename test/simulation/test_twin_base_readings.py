"""What the driver tells of the base: late speeds, efforts where a robot has them; and base and arm as one robot."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from base_drives import DRIVER, busy_twist, cruise
from scipy.signal import lsim

from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant, BaseSampler
from youbot_dynamics.simulation.base._readings import EFFORT_QUANTUM
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
from youbot_dynamics.simulation.youbot import Plant, Youbot

FINE = dataclasses.replace(DRIVER, position_quantum=0.0, velocity_quantum=0.0)
QUIET = load_truth(0).without_noise()


def test_reported_speeds_are_ten_milliseconds_late() -> None:
    plant = BasePlant(dataclasses.replace(QUIET, lag=0.1), FINE, 0)
    plant.command_twist((0.5, 0.0, 0.0))
    sign, reported, true = np.array(DRIVER.velocity_sign), [], []
    for k in range(600):
        plant.advance((k + 1) * 1e-3)
        reported.append(plant.read().velocity * sign)
        true.append(plant.wheel_speeds)
    reported, true = np.array(reported), np.array(true)
    # scipy's view of a first-order lag of 10 ms.
    late = lsim(([1.0], [0.01, 1.0]), true[:, 0], np.arange(1, 601) * 1e-3)[1]
    np.testing.assert_allclose(reported[:, 0], late, atol=0.05)
    assert np.max((true - reported)[:, 0]) > 0.5


def test_without_a_lag_of_its_readings_the_twin_reports_the_speeds_of_its_wheels() -> None:
    plant = BasePlant(dataclasses.replace(QUIET, speed_lag=0.0), FINE, 0)
    plant.command_twist((0.5, 0.1, 0.2))
    for k in range(400):
        plant.advance((k + 1) * 1e-3)
        read = plant.read().velocity * np.array(DRIVER.velocity_sign)
        np.testing.assert_allclose(read, plant.wheel_speeds, rtol=1e-9, atol=1e-9)
    assert np.max(np.abs(read)) > 1.0


def test_efforts_are_the_motors_torques_in_the_drivers_signs_counted_in_milliamperes() -> None:
    plant = cruise(QUIET, (0.3, 0.0, 0.0))
    reading = plant.read_efforts()
    np.testing.assert_allclose(reading.effort / EFFORT_QUANTUM, np.round(reading.effort / EFFORT_QUANTUM), atol=1e-6)
    ours = reading.effort * np.array(DRIVER.velocity_sign)
    assert np.max(np.abs(ours - plant.wheel_torques)) <= 0.5 * EFFORT_QUANTUM * (1 + 1e-9)
    force = 4.0 * QUIET.wheel_coulomb / QUIET.wheel_radius + QUIET.viscous_x * plant.twist[0]
    assert np.sum(ours) / QUIET.wheel_radius == pytest.approx(force, rel=0.02)


def test_efforts_are_as_noisy_as_the_truth_says() -> None:
    truth = dataclasses.replace(load_truth(1), effort_noise=0.025)
    sampler = BaseSampler(truth, DRIVER, 1)
    efforts = np.array([sampler.efforts(0.0, np.zeros(4)).effort for _ in range(2000)])
    np.testing.assert_allclose(np.std(efforts, axis=0), 0.025, rtol=0.06)
    np.testing.assert_allclose(np.mean(efforts, axis=0), 0.0, atol=0.003)


def test_reading_efforts_changes_nothing_else() -> None:
    def run(efforts: bool) -> list[float]:
        plant, numbers = BasePlant(load_truth(2), DRIVER, 2), []
        for k in range(50):
            plant.command_twist(busy_twist(k * 0.02))
            plant.advance((k + 1) * 0.02)
            if efforts:
                plant.read_efforts()
            reading = plant.read()
            numbers += [reading.stamp, *reading.position, *reading.velocity]
        return [float(number) for number in numbers]

    assert run(True) == run(False)


def test_base_and_arm_are_one_robot_in_one_time_and_equal_to_each_alone() -> None:
    robot = load_robot()
    whole: Plant = Youbot(load_truth(3), load_arm_truth(3), robot, 3, start=2.0)
    alone = BasePlant(load_truth(3), robot.driver, 3, start=2.0)
    for plant in (whole.base, alone):
        plant.command_twist([0.2, 0.1, 0.3])
    whole.arm.command_velocities([0.2, 0.2, -0.2, 0.2, 0.2])
    for k in range(25):
        whole.advance(2.0 + (k + 1) * 0.02)
        alone.advance(2.0 + (k + 1) * 0.02)
    assert whole.time == alone.time == pytest.approx(2.5)
    np.testing.assert_array_equal(whole.base.pose, alone.pose)
    assert np.all(np.abs(whole.arm.speed) > 0.05)
    assert np.all(whole.arm.winding > 0.0) and whole.base.read().stamp == pytest.approx(2.5, abs=0.01)
