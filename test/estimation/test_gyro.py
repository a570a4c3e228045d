"""Turns by a gyro: bias from standstill, rates added up between any stamps, honest about both."""

from __future__ import annotations

import numpy as np
import pytest

from youbot_dynamics.estimation.odometry import BaseEstimator, GyroSettings
from youbot_dynamics.estimation.odometry._gyro import GyroYaw
from youbot_dynamics.robot import load_robot

RATE = 100.0  # [Hz]


def stood(seconds: float = 4.0, bias: float = 0.02, noise: float = 0.0, seed: int = 0, **settings: float) -> GyroYaw:
    """Gyro of a base that has stood since 0."""
    gyro, random = GyroYaw(GyroSettings(**settings)), np.random.default_rng(seed)
    for k in range(round(seconds * RATE)):
        gyro.update(k / RATE, bias + noise * np.sqrt(RATE) * float(random.standard_normal()), True)
    return gyro


def test_the_bias_is_found_at_standstill() -> None:
    known = stood(noise=2e-4).bias
    assert known is not None
    bias, deviation = known
    assert bias == pytest.approx(0.02, abs=4.0 * deviation)
    # Mean of white noise over 4 s: density / sqrt(4).
    assert deviation == pytest.approx(2e-4 / 2.0, rel=0.2)


def test_nothing_is_told_before_it_has_stood_long_enough() -> None:
    assert stood(0.9).turn(0.2, 0.4) is None and stood(0.9).bias is None
    assert stood(1.2).turn(0.2, 0.4) is not None
    moving = GyroYaw(GyroSettings())
    for k in range(500):
        moving.update(k / RATE, 0.3, False)
    assert moving.turn(1.0, 2.0) is None


def test_turns_are_the_integral_of_rates_between_any_two_stamps() -> None:
    gyro = stood(2.0)
    times = np.arange(2.0, 5.0, 1.0 / RATE)
    for time in times.tolist():
        gyro.update(time, 0.02 + np.sin(3.0 * (time - 2.0)), False)
    for start, end in ((2.503, 2.5231), (3.0, 4.0), (2.0041, 4.9)):
        found = gyro.turn(start, end)
        assert found is not None
        expected = (np.cos(3.0 * (start - 2.0)) - np.cos(3.0 * (end - 2.0))) / 3.0
        assert found.angle == pytest.approx(expected, abs=1e-4)


def test_turns_add_up() -> None:
    gyro = stood(3.0, noise=1e-3)
    stamps = np.cumsum(np.random.default_rng(1).uniform(0.005, 0.03, 60)) + 1.0
    parts = [gyro.turn(a, b) for a, b in zip(stamps[:-1].tolist(), stamps[1:].tolist(), strict=True)]
    whole = gyro.turn(float(stamps[0]), float(stamps[-1]))
    assert whole is not None and all(part is not None for part in parts)
    assert sum(part.angle for part in parts if part) == pytest.approx(whole.angle, abs=1e-12)
    assert sum(part.variance for part in parts if part) == pytest.approx(whole.variance)
    assert sum(part.bias_error for part in parts if part) == pytest.approx(whole.bias_error)


def test_a_turn_has_the_errors_of_its_noise_bias_and_scale() -> None:
    gyro = stood(2.0, gyro_noise=3e-4, gyro_scale_error=0.01)
    for k in range(50):
        gyro.update(2.0 + k / RATE, 0.52, False)
    turn = gyro.turn(2.1, 2.4)
    assert turn is not None and gyro.bias is not None
    assert turn.variance == pytest.approx(0.3 * 3e-4**2)
    assert turn.bias_error == pytest.approx(0.3 * gyro.bias[1])
    assert turn.scale_error == pytest.approx(0.01 * turn.angle) and turn.angle == pytest.approx(0.15, rel=1e-3)


def test_the_deviation_is_that_of_two_hundred_gyros() -> None:
    """4 s at rest for the bias, then 10 s of turn: noise as a random walk, the bias the same way all along."""
    normalised = []
    for seed in range(200):
        random = np.random.default_rng([seed, 3])
        gyro = stood(4.0, noise=2e-4, seed=seed)
        angle = variance = bias_error = 0.0
        for k in range(1, 501):
            for part in range(2):
                rate = 0.52 + 2e-4 * np.sqrt(RATE) * float(random.standard_normal())
                gyro.update(4.0 + (2 * k - 2 + part) / RATE, rate, False)
            turn = gyro.turn(4.0 + (k - 1) / 50.0, 4.0 + k / 50.0)
            assert turn is not None
            angle, variance, bias_error = angle + turn.angle, variance + turn.variance, bias_error + turn.bias_error
        normalised.append((angle - 5.0) / np.sqrt(variance + bias_error**2))
    assert np.mean(np.square(normalised)) == pytest.approx(1.0, abs=0.4)


def test_rates_that_come_behind_the_wheels_leave_no_error_of_their_own_in_the_sum() -> None:
    """Held for 40 ms, a rate that grows by 2 rad/s2 is 1.6 mrad off: once, not anew in each of a hundred turns."""
    gyro, summed = GyroYaw(GyroSettings()), 0.0
    for k in range(-200, 0):
        gyro.update(0.01 * k, 0.0, True)
    begin = 0.02
    for k in range(200):
        gyro.update(0.01 * k, 0.02 * k, False)
        if k % 2 == 0:
            end = 0.01 * k + 0.04
            turn = gyro.turn(begin, end)
            assert turn is not None
            summed, begin = summed + turn.angle, end
    # From 0.02 s, told before its rate had come, to 2.02 s.
    assert summed == pytest.approx(2.02**2, abs=6e-3)


def test_the_newest_rate_is_held_for_a_short_while_only() -> None:
    gyro = stood(2.0, bias=0.0)
    gyro.update(2.0, 0.5, False)
    held = gyro.turn(2.0, 2.05)
    assert held is not None and held.angle == pytest.approx(0.025, abs=1e-6)
    assert gyro.turn(2.0, 2.2) is None


def test_a_gap_is_counted_and_no_turn_is_told_across_it() -> None:
    gyro = stood(2.0)
    for k in range(50):
        gyro.update(2.5 + k / RATE, 0.02, False)
    assert gyro.gaps == 1
    assert gyro.turn(1.9, 2.6) is None and gyro.turn(2.6, 2.7) is not None


def test_late_rates_are_dropped_and_another_clock_is_taken_on() -> None:
    gyro = stood(2.0)
    gyro.update(1.5, 9.0, False)
    assert gyro.late == 1 and gyro.turn(1.0, 1.9) is not None
    for k in range(30):
        gyro.update(0.1 + k / RATE, 0.52, False)  # 0.5 rad/s behind the bias
    assert gyro.late == 10  # the tenth in a row begins the other clock
    first, last = 0.1 + 8 / RATE, 0.1 + 29 / RATE
    turn = gyro.turn(first, last)
    assert turn is not None and turn.angle == pytest.approx(0.5 * (last - first), rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rates_that_are_no_numbers_change_nothing(bad: float) -> None:
    gyro = stood(2.0)
    before = gyro.turn(1.0, 1.9)
    gyro.update(2.0, bad, True)
    assert gyro.turn(1.0, 1.9) == before


def test_a_base_that_is_turned_by_hand_does_not_spoil_the_bias() -> None:
    gyro = stood(3.0, noise=2e-4)
    for k in range(100):
        gyro.update(3.0 + k / RATE, 0.4, True)
    assert gyro.refused == 100 and gyro.bias is not None
    assert gyro.bias[0] == pytest.approx(0.02, abs=1e-3)


def test_the_bias_is_followed_when_it_drifts() -> None:
    gyro = stood(4.0, gyro_bias_drift=1e-3)
    for k in range(2000):
        gyro.update(4.0 + k / RATE, 0.02 + 5e-5 * k / RATE, True)
    assert gyro.bias is not None and gyro.bias[0] == pytest.approx(0.021, abs=2e-4)


@pytest.mark.parametrize("bad", [20.0, -1e6, 1e150, 1e308, np.inf, np.nan])
def test_a_rate_no_base_turns_at_is_lost_and_told(bad: float) -> None:
    """A base that stands for 2 s, turns there and back, then goes straight on; one rate of its gyro is impossible."""
    robot, angles, state = load_robot(), np.zeros(4), None
    estimator, speeds = BaseEstimator(robot), robot.base.geometry.mecanum().wheel_speeds
    for k in range(-240, 400):
        turn = 0.6 * ((k >= -40) - 2.0 * (k >= -20) + (k >= 0))
        angles = angles + speeds([0.3 * (k > 200), 0.0, turn]) / RATE * (k != -240)
        estimator.take_rate(k / RATE, bad if k == 300 else 0.02 + turn)
        state = estimator.take_wheels(k / RATE, angles)
        if k == 100:
            estimator.reset()
    assert state is not None and estimator.gyro_used
    np.testing.assert_allclose(state.pose, [0.3 * 1.99, 0.0, 0.0], atol=1e-3)
    assert np.all(np.isfinite(state.covariance)) and np.trace(state.covariance) < 0.01
    (told,) = estimator.complaints()
    assert told.startswith("gyro: 0 steps") and "0 gaps" in told and "1 impossible rates" in told


def turned(scale: float, motions: list[tuple[list[float], float]]) -> tuple[BaseEstimator, float]:
    """Estimator after motions (twist of the wheels [m/s, m/s, rad/s], seconds), and by what its yaw is off [rad].

    The gyro shows `scale` times the turn of the wheels.
    """
    robot = load_robot()
    estimator, angles, now, true, state = BaseEstimator(robot), np.zeros(4), 0.0, 0.0, None
    for twist, seconds in [([0.0, 0.0, 0.0], 3.0), *motions]:
        speeds = robot.base.geometry.mecanum().wheel_speeds(twist)
        for _ in range(round(seconds * RATE)):
            now, angles, true = now + 1.0 / RATE, angles + speeds / RATE, true + twist[2] / RATE
            estimator.take_rate(now, scale * twist[2])
            state = estimator.take_wheels(now, angles, speeds)
    assert state is not None
    return estimator, float(state.pose[2]) - true


FAULTS = [
    (-1.0, "it turns against the wheels"),
    (0.12, "its scale is wrong"),
    (0.0, "it does not turn with the base"),
    (57.3, "its scale is that of degrees"),
]


@pytest.mark.parametrize(("scale", "words"), FAULTS)
@pytest.mark.parametrize("before", [[], [([0.4, 0.1, 0.0], 6.0)]], ids=["turning", "after a straight way"])
def test_a_gyro_of_another_sign_scale_or_axis_is_left_out_and_named(scale, words, before) -> None:
    """It turned the odometry by -2 for +2 rad, and a wheel was blamed although the four agreed."""
    rate = 0.05 if scale > 1.0 else 0.8
    estimator, off = turned(scale, [*before, ([0.0, 0.0, rate], 2.0 / rate), ([0.2, 0.0, 0.0], 2.0)])
    assert off == pytest.approx(0.0, abs=1e-6)
    assert not estimator.gyro_used and estimator.odometry.slips == 0
    complaints = estimator.complaints()
    assert len(complaints) == 1 and f"gyro: left out, since {words}: its turn is {scale:.2g} times" in complaints[0]


@pytest.mark.parametrize(("scale", "_"), FAULTS)
def test_a_gyro_that_is_wrong_never_turns_the_pose_far_from_that_of_the_wheels(scale: float, _: str) -> None:
    for seconds in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0):
        estimator, off = turned(scale, [([0.1, 0.0, 0.4], seconds)])
        assert abs(off) <= 0.02
        assert not any("wheel" in text for text in estimator.complaints() if not text.startswith("gyro"))


def test_a_gyro_that_has_turned_with_the_wheels_counts_from_the_start() -> None:
    """The wheels turn the base by 30 % too much, so theirs counts at first: from a turn on it is the gyro's."""
    _, early = turned(0.7, [([0.0, 0.0, 0.4], 0.2)])
    estimator, late = turned(0.7, [([0.0, 0.0, 0.4], 0.5)])
    assert early == pytest.approx(0.0, abs=1e-9) and estimator.gyro_used
    assert late == pytest.approx(-0.3 * 0.2, abs=2e-3)


def test_a_gyro_that_is_right_is_used_whatever_the_wheels_do_later() -> None:
    """At first the base turns as its wheels do; then they all spin, and the base stays where it is."""
    robot = load_robot()
    estimator, off = turned(1.0, [([0.0, 0.0, 0.5], 2.0), ([0.3, 0.0, -0.5], 2.0)])
    assert off == pytest.approx(0.0, abs=5e-3) and estimator.gyro_used and not estimator.complaints()
    angles, speeds = np.zeros(4), robot.base.geometry.mecanum().wheel_speeds([0.0, 0.0, 0.5])
    angles = angles + estimator.odometry.last_angles
    for k in range(300):
        now = 7.0 + (k + 1) / RATE
        estimator.take_rate(now, 0.0)
        state = estimator.take_wheels(now, angles + speeds * (k + 1) / RATE)
    assert state is not None and estimator.gyro_used and state.pose[2] == pytest.approx(0.0, abs=5e-3)


@pytest.mark.parametrize("turns", [False, True])
def test_wheels_of_unequal_radii_are_no_doubt_of_a_gyro(turns: bool) -> None:
    """Right wheels 2 % larger than known turn the odometry on a straight way, on which the gyro shows nothing."""
    robot = load_robot()
    estimator, _ = turned(1.0, [([0.0, 0.0, 0.5], 1.0)] if turns else [])
    angles = estimator.odometry.last_angles
    assert angles is not None
    speeds = robot.base.geometry.mecanum().wheel_speeds([0.4, 0.0, 0.0]) * np.array([1.0, 1.02, 1.0, 1.02])
    for k in range(3000):
        angles = angles + (speeds / RATE if k > 300 else 0.0)
        estimator.take_rate(5.0 + k / RATE, 0.0)
        estimator.take_wheels(5.0 + k / RATE, angles)
    assert estimator.gyro_used == turns and not any("gyro: left" in text for text in estimator.complaints())


def test_a_new_pose_is_not_turned_by_what_a_wrong_gyro_did_before() -> None:
    estimator, _ = turned(-1.0, [([0.0, 0.0, 0.5], 0.5)])
    estimator.reset()
    speeds, now = load_robot().base.geometry.mecanum().wheel_speeds([0.0, 0.0, 0.5]), 3.5
    angles = estimator.odometry.last_angles
    for k in range(200):
        estimator.take_rate(now + (k + 1) / RATE, -0.5)
        state = estimator.take_wheels(now + (k + 1) / RATE, angles + speeds * (k + 1) / RATE)
    assert state is not None and not estimator.gyro_used
    assert state.pose[2] == pytest.approx(1.0, abs=0.02)
