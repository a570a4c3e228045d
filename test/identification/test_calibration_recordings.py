"""Geometry of a real four-mecanum-wheel robot under motion capture, from its encoders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from repository import DATA

from youbot_dynamics.identification.calibration import Calibration, CalibrationSignals, calibrate
from youbot_dynamics.identification.calibration._fit import WHEELS
from youbot_dynamics.identification.calibration._model import odometry_errors
from youbot_dynamics.identification.calibration._poses import calibration_signals, recorded_calibration_signals
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.robot import Robot, load_robot

FOLDER = DATA / "mecanum_polimi"
NOMINAL = MecanumBase.rectangular(wheel_radius=0.07, half_length=0.2, half_width=0.169)
GEAR = 5.0

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="data folder absent")


def robot() -> Robot:
    """The robot's names and signs: it flips none."""
    own = load_robot()
    wheels = ("front_left", "front_right", "rear_left", "rear_right")
    return replace(own, driver=replace(own.driver, wheel_joints=wheels, position_sign=(1.0,) * 4))


def ticks(number: int) -> CalibrationSignals:
    """Signals of a bag as they come: the positions are ticks of the encoders."""
    return recorded_calibration_signals(open_bag(FOLDER / f"bag{number}.bag"), robot(), {}, number=number)


def turns(number: int, radians_a_tick: float) -> CalibrationSignals:
    raw = ticks(number)
    return replace(raw, wheel_angles=raw.wheel_angles * radians_a_tick)


@pytest.fixture(scope="module")
def radians_a_tick() -> float:
    """Angle of a wheel a tick of its motor, by the motors' own speeds, which the bags hold in rad/min.

    42 ticks a turn, as the sheets of the course have it, do not fit these: 37.5 do.
    """
    whole, square = 0.0, 0.0
    for number in (1, 3):
        states = open_bag(FOLDER / f"bag{number}.bag").joint_states("/wheel_states", robot().driver.wheel_joints)
        speed = states.velocity / 60.0
        turned = np.sum(0.5 * (speed[1:] + speed[:-1]) * np.diff(states.stamp)[:, None], axis=0)
        counted = states.position[-1] - states.position[0]
        whole, square = whole + float(turned @ counted), square + float(counted @ counted)
    print(f"{2.0 * np.pi * square / whole:.2f} ticks a turn of the motor")
    return whole / square / GEAR


@pytest.fixture(scope="module")
def found(radians_a_tick: float) -> Calibration:
    return calibrate([turns(1, radians_a_tick), turns(3, radians_a_tick)], NOMINAL)


def errors(number: int, radians_a_tick: float, base: MecanumBase, sensor: np.ndarray) -> np.ndarray:
    """Root mean square (3,) of the odometry's error over 2 s; the clocks of each bag are its own."""
    signals = turns(number, radians_a_tick)
    offset = float(calibrate([signals], NOMINAL).offsets[0])
    return np.sqrt(np.mean(odometry_errors(signals, base, sensor, offset, 2.0) ** 2, axis=0))


def test_two_bags_tell_radius_and_size(found):
    for estimate in found.estimates:
        print(f"{estimate.name} {estimate.value:.5f} +-{estimate.standard_error:.5f} {estimate.unit}")
    errors_of_radii = [estimate for estimate in found.estimates if estimate.name.startswith("wheel_radius_error")]
    singles = [estimate for estimate in found.estimates if estimate.name.startswith("wheel_radius_")]
    assert not all(estimate.identified for estimate in errors_of_radii)
    # How the body is turned differs between the bags by about as much as may be called identified.
    assert all(
        estimate.identified for estimate in found.estimates if estimate not in singles and estimate.name != "sensor_yaw"
    )
    low, high = found["sensor_yaw"].interval
    assert -0.07 < low < -0.042 < high < -0.015
    assert found["wheel_radius"].value == pytest.approx(0.0674, abs=0.0005)
    assert float(np.mean(np.sum(np.abs(found.base.positions), axis=1))) == pytest.approx(0.3605, abs=0.004)


def test_wheels_that_one_bag_does_not_tell_apart_are_kept_equal(radians_a_tick):
    """What is known of their radii is more than half of what they differ by; another bag agrees with them as well."""
    only = calibrate([turns(3, radians_a_tick)], NOMINAL)
    names = [f"wheel_radius_{wheel}" for wheel in WHEELS]
    assert not all(only[name.replace("radius", "radius_error")].identified for name in names)
    np.testing.assert_allclose(only.base.radii, only["wheel_radius"].value)
    apart = np.array([only[name].value for name in names])
    four = MecanumBase(only.base.positions, apart, only.base.roller_angles, only.base.lateral_factor)
    off, off_of_four = (errors(1, radians_a_tick, base, only.sensor) for base in (only.base, four))
    print(f"bag 1 after bag 3: [m, m, rad] {off.round(5)} with equal wheels, {off_of_four.round(5)} with four radii")
    assert np.all(np.abs(off_of_four / off - 1.0) < 0.15)


def test_two_seconds_of_odometry_are_off_by_millimetres(found, radians_a_tick):
    for number in (1, 3):
        off = errors(number, radians_a_tick, found.base, found.sensor)
        as_configured = errors(number, radians_a_tick, NOMINAL, found.sensor)
        print(f"bag {number}: [m, m, rad] {off.round(5)}, as configured {as_configured.round(5)}")
        assert off[0] <= 0.0075 and off[1] <= 0.0075
        assert np.all(off[:2] < as_configured[:2])


def test_a_bag_that_was_not_trained_on_is_followed_as_well(radians_a_tick):
    """Bag 3 holds every kind of motion; bag 1 only straight ones, so that it cannot stand for it."""
    only = calibrate([turns(3, radians_a_tick)], NOMINAL)
    off = errors(1, radians_a_tick, only.base, only.sensor)
    print(f"bag 1 after bag 3: [m, m, rad] {off.round(5)}")
    assert off[0] <= 0.011 and off[1] <= 0.007


@pytest.mark.skipif(not (FOLDER / "bag2.bag").is_file(), reason="data folder without bag2.bag")
def test_the_second_bag_is_followed_after_training_on_the_others(found, radians_a_tick):
    off = errors(2, radians_a_tick, found.base, found.sensor)
    print(f"bag 2 after bags 1 and 3: [m, m, rad] {off.round(5)}")
    assert off[0] <= 0.011 and off[1] <= 0.007


def test_the_bag_without_turns_leaves_the_size_open(radians_a_tick):
    straight = calibrate([turns(1, radians_a_tick)], NOMINAL)
    assert straight["lever"].verdict.endswith("the robot never turned in these data")
    assert straight["wheel_radius"].value == pytest.approx(0.0674, abs=0.0005)
    assert straight.size_factor == 1.0


def test_ticks_taken_for_radians_are_told(capsys):
    taken = calibrate([ticks(3)], NOMINAL)
    assert not any(estimate.identified for estimate in taken.estimates)
    assert "check that the wheel positions are in rad" in taken["wheel_radius"].verdict


def test_wrapped_yaws_and_bursts_of_stamps_are_read_as_they_are():
    signals = ticks(3)
    assert np.all(np.diff(signals.pose_time) > 0.0)
    again = calibration_signals(
        signals.wheel_time, signals.wheel_angles, signals.pose_time, signals.poses, signals.recording
    )
    assert len(again.pose_time) == len(signals.pose_time)
