"""Odometry and the watch of the wheels on three omni wheels, which leave no residual to find a slipping one by."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from youbot_dynamics.control.wheel_watch import WheelWatch
from youbot_dynamics.errors import InputError, ModelError, ParameterError
from youbot_dynamics.estimation.odometry import BaseEstimator
from youbot_dynamics.estimation.odometry._gyro import GyroTurn
from youbot_dynamics.estimation.odometry._slip import SlipSettings, SlipTest
from youbot_dynamics.kinematics import planar
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant, SlipEvent
from youbot_dynamics.simulation.truth import load_truth

ROBOT = load_robot(robot_file=robot_path("robotino_2"))
BASE = ROBOT.base.geometry.mecanum()
PERIOD = 0.02


def twists(count: int) -> np.ndarray:
    t = PERIOD * np.arange(count)
    return np.column_stack([0.3 * np.sin(t), 0.2 * np.cos(0.7 * t), 0.8 * np.sin(0.4 * t)])


def test_three_wheels_are_integrated_exactly_and_raise_no_alarm():
    estimator = BaseEstimator(ROBOT)
    pose, angles, state = np.zeros(3), np.zeros(3), None
    estimator.take_wheels(0.0, angles)
    for k, twist in enumerate(twists(500)):
        pose, angles = planar.integrate(pose, twist, PERIOD), angles + PERIOD * BASE.wheel_speeds(twist)
        state = estimator.take_wheels((k + 1) * PERIOD, angles)
    assert state is not None
    np.testing.assert_allclose(state.pose[:2], pose[:2], atol=1e-9)
    assert planar.wrap(state.pose[2] - pose[2]) == pytest.approx(0.0, abs=1e-9)
    assert estimator.odometry.slips == 0 and not estimator.odometry.slip.alarm
    assert np.all(np.isfinite(state.covariance)) and np.all(np.linalg.eigvalsh(state.covariance) >= 0.0)


def level(slipping: int, gyro: bool) -> float:
    """Level of the slip test after a wheel turned 20 % too far for a second."""
    test = SlipTest(ROBOT.base.geometry.wheels(), SlipSettings(), ROBOT.driver.position_quantum, 1e-3)
    step, highest = PERIOD * BASE.wheel_speeds([0.3, 0.1, 0.0]), 0.0
    counted = step.copy()
    counted[slipping] *= 1.2
    for k in range(50):
        turn = GyroTurn(0.0, 1e-10, 1e-6) if gyro else None
        rolled = ROBOT.base.geometry.wheels().roll(k * counted, (k + 1) * counted, 0.0 if gyro else None)
        report = test.update(PERIOD, k * counted, counted, rolled.displacement, rolled.residual, turn)
        highest = max(highest, report.level)
    return highest


def test_roller_phases_of_omni_wheels_are_refused():
    with pytest.raises(ModelError, match="omni wheels"):
        BaseEstimator(ROBOT, find_phases=True)


def test_a_slipping_omni_wheel_is_seen_with_a_gyro_alone():
    assert level(0, gyro=True) > 1.0
    assert level(0, gyro=False) == 0.0


def test_a_dead_omni_wheel_is_named_by_its_joint():
    watch, angles, said = WheelWatch(ROBOT), np.zeros(3), ""
    speeds = BASE.wheel_speeds([0.3, 0.1, 0.2])
    for k in range(100):
        watch.sent(k * PERIOD, speeds.tolist())
        angles = angles + PERIOD * speeds * [0.0, 1.0, 1.0]
        said = watch.read(k * PERIOD, angles.tolist())
    assert said.startswith("wheel_joint_0 stands still")


def test_a_wheel_that_a_base_does_not_have_cannot_slip():
    plant = BasePlant(load_truth(0, robot_path("robotino_2")), ROBOT.driver, 0, slips=[SlipEvent(3, 0.2, 0.0, 1.0)])
    with pytest.raises(InputError, match="wheel of a slip event: got 3; expected 0 to 2"):
        plant.advance(0.1)


def test_wheels_that_fit_no_base_are_refused():
    geometry, driver = ROBOT.base.geometry, ROBOT.driver
    with pytest.raises(ParameterError, match=r"wheel_distance: got 0 for omni wheels"):
        dataclasses.replace(geometry, wheel_distance=0.0)
    with pytest.raises(ParameterError, match=r"drive_angles: got 2 wheels; expected three or four"):
        dataclasses.replace(geometry, drive_angles=(0.0, 1.0))
    with pytest.raises(ParameterError, match=r"position_sign: got 4 elements; expected 3"):
        dataclasses.replace(driver, position_sign=(1.0,) * 4)
    with pytest.raises(ParameterError, match=r"driver.drive_angles: .*those of robot.base.geometry"):
        dataclasses.replace(ROBOT, driver=dataclasses.replace(driver, drive_angles=(0.0, 2.1, 4.2)))
    with pytest.raises(ModelError, match="8 of omni wheels"):
        dataclasses.replace(load_truth(0, robot_path("robotino_2")), rollers=8.0)
