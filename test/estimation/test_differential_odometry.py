"""Odometry, the gyro and the watch of the wheels on two wheels without rollers, which always agree with each other."""

from __future__ import annotations

import numpy as np
import pytest

from youbot_dynamics.control.wheel_watch import WheelWatch
from youbot_dynamics.errors import ModelError
from youbot_dynamics.estimation.odometry import BaseEstimator
from youbot_dynamics.estimation.odometry._gyro import GyroTurn
from youbot_dynamics.estimation.odometry._slip import SlipReport, SlipSettings, SlipTest
from youbot_dynamics.kinematics import planar
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot

ROBOT = load_robot(robot_file=robot_path("turtlebot3_burger"))
BASE = ROBOT.base.geometry.mecanum()
PERIOD = 0.05


@pytest.mark.parametrize("gyro", [False, True])
def test_two_wheels_are_integrated_exactly_and_raise_no_alarm(gyro: bool) -> None:
    estimator = BaseEstimator(ROBOT)
    pose, angles, state = np.zeros(3), np.zeros(2), None
    if gyro:  # at rest, for its bias
        for stamp in np.arange(-3.0, 0.0, 0.01):
            estimator.take_rate(stamp, 0.02)
            estimator.take_wheels(stamp, angles)
    estimator.take_wheels(0.0, angles)
    for k in range(200):
        t = PERIOD * k
        twist = np.array([0.1 * np.sin(t), 0.0, 0.8 * np.sin(0.4 * t)])
        for part in (0.25, 0.5, 0.75, 1.0) if gyro else ():
            estimator.take_rate(t + part * PERIOD, twist[2] + 0.02)
        pose, angles = planar.integrate(pose, twist, PERIOD), angles + PERIOD * BASE.wheel_speeds(twist)
        state = estimator.take_wheels(t + PERIOD, angles)
    assert state is not None and estimator.gyro_used == gyro
    np.testing.assert_allclose(state.pose[:2], pose[:2], atol=1e-2 if gyro else 1e-9)
    assert abs(planar.wrap(state.pose[2] - pose[2])) < (1e-2 if gyro else 1e-9)
    assert state.twist[1] == 0.0
    assert estimator.odometry.slips == 0 and not estimator.complaints()
    assert np.all(np.linalg.eigvalsh(state.covariance) > 0.0)


def slipped(slipping: int, gyro: bool) -> list[SlipReport]:
    """Reports of the slip test while a wheel turns 20 % too far for a second, straight ahead, and a second later."""
    wheels, angles, reports = ROBOT.base.geometry.wheels(), np.zeros(2), []
    test = SlipTest(wheels, SlipSettings(), ROBOT.driver.position_quantum, 1e-3)
    for k in range(100):
        counted = 0.02 * BASE.wheel_speeds([0.2, 0.0, 0.0])
        counted[slipping] *= 1.2 if k < 50 else 1.0
        turn = GyroTurn(0.0, 1e-10, 1e-6) if gyro else None
        rolled = wheels.roll(angles, angles + counted, 0.0 if gyro else None)
        reports.append(test.update(0.02, angles, counted, rolled.displacement, rolled.residual, turn))
        angles = angles + counted
    return reports


def level(slipping: int, gyro: bool) -> float:
    """Largest level of the slip test then."""
    return max(report.level for report in slipped(slipping, gyro))


def test_a_slipping_wheel_is_seen_with_a_gyro_alone() -> None:
    assert level(0, gyro=True) > 1.0 and level(1, gyro=True) > 1.0
    assert level(0, gyro=False) == 0.0


def test_of_two_wheels_the_turn_by_the_gyro_is_compared_and_told_with_the_largest_level_of_the_alarm() -> None:
    """A wheel "does not fit the other wheels" was said of two, at 0.2 of the bound once the slip was over."""
    reports = slipped(0, gyro=True)
    last, highest = reports[-1], max(report.level for report in reports)
    assert last.alarm and last.level < 1.0 < last.highest == highest
    text = last.text(ROBOT.driver.wheel_joints)
    assert text.startswith("the turn by the wheels does not fit that by the gyro")
    assert f"up to {highest:.1f} times the bound" in text and "other wheels" not in text


def test_a_dead_wheel_is_named_by_its_joint() -> None:
    watch, angles, said = WheelWatch(ROBOT), np.zeros(2), ""
    speeds = BASE.wheel_speeds([0.15, 0.0, 0.2])
    for k in range(100):
        watch.sent(k * PERIOD, speeds.tolist())
        angles = angles + PERIOD * speeds * [1.0, 0.0]
        said = watch.read(k * PERIOD, angles.tolist())
    assert said.startswith("wheel_right_joint stands still")


def test_wheels_without_rollers_have_no_roller_phases_to_find() -> None:
    with pytest.raises(ModelError, match="find_roller_phases"):
        BaseEstimator(ROBOT, find_phases=True)
