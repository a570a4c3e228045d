"""The calibration names exchanged and reversed wheels and poses with a wrong sign, and blames no others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from calibration_runs import BASE, drawn_run, drawn_tracker
from friction_runs import multi_sine

from youbot_dynamics.identification.calibration import CalibrationSignals, _fit, calibrate
from youbot_dynamics.identification.calibration._start import first_guess
from youbot_dynamics.identification.calibration._wiring import miswired
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase

FL, FR, RL, RR = range(4)
IN_ORDER, UPRIGHT = (FL, FR, RL, RR), (1, 1, 1, 1)

# What column i of the readings really is: wheel order[i], with the sign signs[i].
WIRINGS = {
    "the readings of fl were reversed": (IN_ORDER, (-1, 1, 1, 1)),
    "the readings of rr were reversed": (IN_ORDER, (1, 1, 1, -1)),
    "the readings of fr were reversed, the readings of rr were reversed": (IN_ORDER, (1, -1, 1, -1)),
    "all readings were reversed": (IN_ORDER, (-1, -1, -1, -1)),
    "the readings of fl were those of fr, the readings of fr were those of fl": ((FR, FL, RL, RR), UPRIGHT),
    "the readings of fl were those of rr, the readings of rr were those of fl": ((RR, FR, RL, FL), UPRIGHT),
    "the readings of rl were those of rr, the readings of rr were those of rl reversed": (
        (FL, FR, RR, RL),
        (1, 1, 1, -1),
    ),
}
USUAL = (
    "the readings of fl were reversed",
    "the readings of rl were those of rr, the readings of rr were those of rl reversed",
)
EACH = pytest.mark.parametrize(
    "words", [*USUAL, *(pytest.param(w, marks=pytest.mark.slow) for w in WIRINGS if w not in USUAL)]
)
HANDS = {
    "the poses had z up": (1.0, -1.0, -1.0),
    "yaw had the opposite sign": (1.0, 1.0, -1.0),
    "y had the opposite sign": (1.0, -1.0, 1.0),
}


def wired(signals: CalibrationSignals, order: tuple[int, ...], signs: tuple[int, ...]) -> CalibrationSignals:
    return replace(signals, wheel_angles=signals.wheel_angles[:, list(order)] * np.array(signs))


def blamed(signals: CalibrationSignals, base: MecanumBase = BASE) -> str:
    reason = miswired([signals], first_guess([signals], base))
    return "" if reason is None else reason.text


def foreign(seed: int) -> tuple[MecanumBase, CalibrationSignals]:
    """A base of another make, 10 % off its configuration, wheels that slip, and a tracker that jumps."""
    random = np.random.default_rng([seed, 21])
    half_length, half_width, radius = random.uniform([0.15, 0.15, 0.03], [0.6, 0.45, 0.15])
    configured = MecanumBase.rectangular(radius, half_length, half_width)
    off = random.uniform(0.9, 1.1, 4)
    true = MecanumBase(off[0] * configured.positions, radius * off, configured.roller_angles, random.uniform(0.9, 1.0))
    sensor, pose, angles = random.uniform([-0.4, -0.4, -0.6], [0.4, 0.4, 0.6]), np.zeros(3), np.zeros(4)
    poses, turned = [], []
    for twist in multi_sine(40.0, seed):
        poses.append(planar.compose(pose, sensor))
        turned.append(angles)
        pose = planar.integrate(pose, twist * (1.0 + 0.05 * random.normal(size=3)), 0.02)
        angles = angles + true.wheel_speeds(twist) * 0.02 * (1.0 + 0.1 * random.normal(size=4))
    seen = np.array(poses) + random.normal(size=(len(poses), 3)) * [0.003, 0.003, 0.01]
    seen[500:520] += [1.0, -2.0, 0.5]
    time = np.arange(len(seen)) * 0.02
    return configured, CalibrationSignals(time, np.array(turned), time + random.uniform(-0.3, 0.3), seen)


@EACH
def test_the_calibration_names_the_wheels_that_are_exchanged_or_reversed(words):
    wiring = WIRINGS[words]
    tracker = replace(drawn_tracker(3), sensor=(0.1, -0.05, 0.4))
    found = calibrate([wired(drawn_run(3, tracker, 30.0).signals(), *wiring)], BASE)
    verdict = found["wheel_radius"].verdict
    assert f"{words} and the tracked body turned by 23 deg on the robot" in verdict
    assert ("wheel_joints" in verdict) == (wiring[0] != IN_ORDER)
    assert ("position_sign" in verdict) == (wiring[1] != UPRIGHT)
    assert not any(estimate.identified for estimate in found.estimates)


@EACH
def test_no_value_of_wrong_wheels_is_identified_even_where_none_can_be_named(words, monkeypatch):
    monkeypatch.setattr(_fit, "miswired", lambda recordings, start: "")
    found = calibrate([wired(drawn_run(3, drawn_tracker(3), 30.0).signals(), *WIRINGS[words])], BASE)
    assert not any(estimate.identified for estimate in found.estimates)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_wheels_of_robots_of_another_make_are_named_too(seed):
    base, signals = foreign(seed)
    assert blamed(signals, base) == ""
    for words, wiring in WIRINGS.items():
        assert words in blamed(wired(signals, *wiring), base)


@pytest.mark.parametrize("noise", [0.0, 0.001, 0.01])
@pytest.mark.parametrize("place", [(0.0, 0.0, 0.0), (0.3, -0.1, 0.5)])
def test_wheels_and_poses_of_a_differential_base_are_named_although_it_never_moves_sideways(noise, place):
    random, base, time = np.random.default_rng(4), MecanumBase.differential(0.08, 0.4), np.arange(0.0, 60.0, 0.05)
    twists = np.column_stack([0.3 * np.sin(0.7 * time), np.zeros(len(time)), 0.8 * np.sin(0.31 * time + 1.0)])
    pose, poses, angles = np.zeros(3), [], 0.05 * np.cumsum([base.wheel_speeds(twist) for twist in twists], axis=0)
    for twist in twists:
        pose = planar.integrate(pose, twist, 0.05)
        poses.append(planar.compose(pose, np.array(place)))
    signals = CalibrationSignals(time, angles, time, np.array(poses) + noise * random.normal(size=(len(time), 3)))
    assert blamed(signals, base) == ""
    exchanged = blamed(replace(signals, wheel_angles=angles[:, ::-1]), base)
    assert f"those of fr, the readings of fr were those of fl and the tracked body {turned(place[2])}" in exchanged
    assert "all readings were reversed and the tracked body turned by" in exchanged, "a body mounted backwards too"
    reversed_left = blamed(replace(signals, wheel_angles=angles * [-1.0, 1.0]), base)
    assert f"if the readings of fl were reversed and the tracked body {turned(place[2])}" in reversed_left
    both = blamed(replace(signals, wheel_angles=-angles), base)
    assert f"if all readings were reversed and the tracked body {turned(place[2])}" in both
    assert "if the poses had z up" in blamed(replace(signals, poses=signals.poses * [1.0, -1.0, -1.0]), base)
    assert "if yaw had the opposite sign" in blamed(replace(signals, poses=signals.poses * [1.0, 1.0, -1.0]), base)


def test_poses_without_a_yaw_tell_nothing_of_two_wheels():
    base, time = MecanumBase.differential(0.08, 0.4), np.arange(0.0, 60.0, 0.05)
    twists = np.column_stack([0.3 * np.sin(0.7 * time), np.zeros(len(time)), 0.8 * np.sin(0.31 * time + 1.0)])
    angles = 0.05 * np.cumsum([base.wheel_speeds(twist) for twist in twists], axis=0)
    poses = np.column_stack([0.05 * np.cumsum(twists[:, 0]), np.zeros((len(time), 2))])
    assert blamed(CalibrationSignals(time, angles, time, poses), base) == ""


def turned(yaw: float) -> str:
    return f"turned by {round(np.degrees(yaw))} deg on the robot"


@pytest.mark.parametrize("words", HANDS)
def test_poses_with_a_wrong_sign_are_named(words):
    signals = drawn_run(5, replace(drawn_tracker(5), sensor=(0.1, 0.0, 0.2)), 30.0).signals()
    found = calibrate([replace(signals, poses=signals.poses * HANDS[words])], BASE)
    assert words in found["wheel_radius"].verdict


def test_a_quarter_turn_of_the_tracked_body_is_no_fault_of_the_wheels():
    run = drawn_run(4, replace(drawn_tracker(4), sensor=(0.0, 0.1, np.pi / 2)), 30.0)
    assert blamed(run.signals()) == ""
    assert calibrate([run.signals()], BASE)["wheel_radius"].identified


@pytest.mark.parametrize("axes", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 0)])
def test_without_motion_along_all_axes_no_wheel_is_accused(axes):
    twists = multi_sine(40.0, 1, axes=axes)
    run = drawn_run(1, replace(drawn_tracker(1), sensor=(0.0, 0.0, 0.0)), twists=twists)
    for wiring in WIRINGS.values():
        assert blamed(wired(run.signals(), *wiring)) == ""


@pytest.mark.parametrize("offset", [0.3, -0.7])
def test_a_motion_to_and_fro_with_an_offset_of_the_clocks_is_no_reversed_wheel(offset):
    time = np.arange(0.0, 90.0, 0.02)
    wave = 0.4 * np.sin(2.0 * np.pi * time / 1.5)
    twists = np.where((time[:, None] // 30.0) == np.arange(3), wave[:, None], 0.0)
    pose, angles, poses, turned = np.zeros(3), np.zeros(4), [], []
    for twist in twists:
        poses.append(pose)
        turned.append(angles)
        pose = planar.integrate(pose, twist, 0.02)
        angles = angles + BASE.wheel_speeds(twist) * 0.02
    seen = np.array(poses) + np.random.default_rng(1).normal(size=(len(poses), 3)) * [1e-3, 1e-3, 3e-3]
    signals = CalibrationSignals(time, np.array(turned), time + offset, seen)
    assert blamed(signals) == ""
    assert calibrate([signals], BASE)["wheel_radius"].identified


def test_recordings_without_common_time_blame_nobody(recwarn):
    signals = drawn_run(1, drawn_tracker(1), 10.0).signals()
    assert blamed(replace(signals, pose_time=signals.pose_time + 1000.0)) == ""
    assert not [warning for warning in recwarn if "empty" in str(warning.message)]


def test_poses_of_another_robot_accuse_no_wheel():
    mine, other = (drawn_run(seed, drawn_tracker(seed), 40.0).signals() for seed in (6, 7))
    found = calibrate([replace(mine, pose_time=other.pose_time, poses=other.poses)], BASE)
    assert "the poses do not follow the wheels" in found["wheel_radius"].verdict


def test_three_omni_wheels_are_named_and_more_than_four_are_not_tried():
    base = MecanumBase.omni_circle(0.05, 0.2, np.radians([60.0, 180.0, 300.0]), np.zeros(3))
    twists = multi_sine(40.0)
    poses, angles = [np.zeros(3)], [np.zeros(3)]
    for twist in twists:
        poses.append(planar.integrate(poses[-1], twist, 0.02))
        angles.append(angles[-1] + base.wheel_speeds(twist) * 0.02)
    time = np.arange(len(poses)) * 0.02
    signals = CalibrationSignals(time, np.array(angles) * [1.0, -1.0, 1.0], time, np.array(poses))
    assert "the readings of fr were reversed" in blamed(signals, base)
    six = MecanumBase.omni_circle(0.05, 0.2, np.radians(np.arange(6) * 60.0), np.zeros(6))
    assert blamed(replace(signals, wheel_angles=np.zeros((len(time), 6))), six) == ""
