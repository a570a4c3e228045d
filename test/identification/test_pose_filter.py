"""The filter of the calibration against the joint distribution of all poses, and the noise that it finds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from calibration_runs import PERIOD, errands, held, localised

from youbot_dynamics.identification.calibration import CalibrationSignals, calibrate
from youbot_dynamics.identification.calibration._filter import (
    Noise,
    Poses,
    Track,
    fitted_noise,
    innovations,
    track,
    trusted,
)
from youbot_dynamics.identification.calibration._model import Guess, Windows
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase

NOISE = Noise(0.03, 2e-3, 3e-3, 1.5e-3, 2.5e-3, 1.7)
STEP, COUNT = 0.1, 40  # [m] and [s] between poses; poses
BASE = MecanumBase.differential(0.042, 0.2)


def of_straight_drive(random: np.random.Generator) -> tuple[Track, np.ndarray, np.ndarray]:
    """Poses of a straight drive, as far off as noise and slip make them, its path, and their covariance.

    The covariance is that of (x, y, yaw) of all poses, from a start that is known.
    """
    steps = np.tri(COUNT, k=-1)[:, : COUNT - 1]  # which of the steps each pose has behind it
    walk = NOISE.slip**2 * STEP
    arms = STEP * np.maximum(np.arange(COUNT)[:, None] - np.arange(1, COUNT), 0.0)  # [m] of a turn after each step
    apart = np.abs(np.subtract.outer(np.arange(COUNT), np.arange(COUNT))) * STEP
    lasting = np.exp(-apart / NOISE.wander_time)

    def of_pose(white: float, wander: float) -> np.ndarray:
        return white**2 * np.eye(COUNT) + wander**2 * lasting

    place, angle = of_pose(NOISE.position, NOISE.wander_position), of_pose(NOISE.yaw, NOISE.wander_yaw)
    straight, zero = 0.01 * walk * steps @ steps.T, np.zeros((COUNT, COUNT))
    covariance = np.block(
        [
            [place + straight, zero, zero],
            [zero, place + straight + walk * arms @ arms.T, walk * arms @ steps.T],
            [zero, walk * steps @ arms.T, angle + walk * steps @ steps.T],
        ]
    )
    # A hundredth of the usual size: no pose is far off, and angles are small.
    off = 0.01 * np.linalg.cholesky(covariance) @ random.standard_normal(3 * COUNT)
    path = np.column_stack([STEP * np.arange(COUNT), np.zeros((COUNT, 2))])
    ways = np.full(COUNT, STEP)
    along = Track(
        path + off.reshape(3, COUNT).T, np.arange(COUNT) == 0, ways, ways, np.zeros(COUNT), np.ones(COUNT), 0.1
    )
    return along, path, covariance


def test_innovations_weigh_poses_as_their_joint_distribution_does() -> None:
    """Nothing is known of the start, so what counts are the poses relative to the first one."""
    along, path, covariance = of_straight_drive(np.random.default_rng(1))
    shown, weights = innovations(along, [path], NOISE)
    assert np.all(weights == 1.0)
    off = (along.poses - path).T.ravel()
    turned = path[:, 0] - path[0, 0]  # what a turn of the start moves sideways
    starts = np.zeros((3, COUNT, 3))
    starts[0, :, 0] = starts[1, :, 1] = starts[2, :, 2] = 1.0
    starts[1, :, 2] = turned
    starts = starts.reshape(3 * COUNT, 3)
    precision = np.linalg.inv(covariance)
    best = np.linalg.solve(starts.T @ precision @ starts, starts.T @ precision @ off)
    left = off - starts @ best
    assert np.sum(shown**2) == pytest.approx(left @ precision @ left, rel=1e-3)


def test_slopes_follow_the_gains_of_the_first_guess() -> None:
    along, path, _ = of_straight_drive(np.random.default_rng(2))
    longer = path * [1.001, 1.0, 1.0]
    both, _ = innovations(along, [path, longer], NOISE)
    alone, _ = innovations(along, [path], NOISE)
    np.testing.assert_allclose(both[0], alone[0], atol=1e-12)
    assert np.all(both[1, 1:, 0] < both[0, 1:, 0])  # all poses lie behind a path that is longer


def localised_drive(seed: int, jump: float = 0.0) -> tuple[Poses, Guess]:
    """Five minutes without slip under a localisation of 2 cm and 0.02 rad at 5 Hz; it jumps for 8 s."""
    drive = held(BASE, errands(300.0, seed, (0.3, 0.0, 0.8)))
    times = np.arange(0.5, 299.5, 0.2)
    moved = np.column_stack([np.interp(times, drive.wheel_time, column) for column in drive.poses.T])
    seen = localised(moved, 0.2, (0.02, 0.02), 0)  # the seed of a localisation without jumps of its own
    seen[500:540, 0] += jump
    signals = dataclasses.replace(drive, pose_time=times, poses=seen)
    windows = Windows(signals, np.arange(len(times)), np.array([0]), np.inf)
    return Poses.of(0, windows), Guess(BASE, np.zeros(3), np.zeros(1))


def test_noise_of_poses_is_found_with_its_parts_and_its_time() -> None:
    poses, guess = localised_drive(3)
    noise = fitted_noise([poses], guess, Noise(), [np.ones(len(poses.poses))])
    each = 0.02 / np.sqrt(2.0)
    assert noise[1:5] == pytest.approx([each] * 4, rel=0.3)
    assert 1.0 < noise.wander_time < 4.0
    assert noise.slip < 0.005


def test_poses_of_a_jump_are_not_trusted_and_all_others_are() -> None:
    poses, guess = localised_drive(4, jump=0.5)
    _, (trust,) = trusted([poses], guess)
    assert np.all(trust[500:540] < 0.01)
    assert np.mean(np.delete(trust, np.arange(500, 540)) == 1.0) > 0.97


def test_means_of_poses_keep_the_gaps_and_begin_anew_after_them() -> None:
    poses, guess = localised_drive(5)
    part = poses.part
    cut = Windows(part.signals, np.delete(part.rows, np.arange(700, 760)), np.array([0, 700]), part.span)
    means = Poses.of(0, cut)
    assert np.flatnonzero(means.begins).tolist() == [0, int(np.flatnonzero(np.diff(means.time) > 1.0)[0]) + 1]
    along = track(means, guess, np.ones(len(means.poses)))
    assert np.sum(along.begins) == 2


def seen_of(poses: Poses, change: str) -> CalibrationSignals:
    """The drive, seen by a localisation with another map for a time, or by wheels that count anew."""
    signals = poses.part.signals
    seen, angles = signals.poses.copy(), signals.wheel_angles.copy()
    first, end = {"for good": (700, len(seen)), "at first": (0, 4)}.get(change, (0, 0))
    turned = planar.turned(seen[first:end, :2], np.full(end - first, 0.8))
    seen[first:end] = np.column_stack([turned + [1.5, -0.7], seen[first:end, 2] + 0.8])
    if change == "flipped":
        seen[::7, 2] += np.pi
    if change == "counted anew":
        angles[7000:] -= 5000.0
    return dataclasses.replace(signals, poses=seen, wheel_angles=angles)


@pytest.mark.parametrize("change", ["none", "for good", "at first", "flipped", "counted anew"])
def test_another_map_flipped_yaws_or_a_new_count_cost_no_more_than_their_poses(change: str) -> None:
    poses, _ = localised_drive(6)
    found = calibrate([seen_of(poses, change)], BASE)
    for name, true in (("wheel_radius", 0.042), ("lever", 0.1)):
        assert found[name].identified
        assert found[name].value == pytest.approx(true, rel=0.005)
        low, high = found[name].interval
        assert low - 0.5 * (high - low) < true < high + 0.5 * (high - low)


def test_a_base_that_is_shaken_faster_than_instruments_follow_is_calibrated() -> None:
    """Wheel angles that were averaged so that they turn round gave a radius 9 % off, identified."""
    time = PERIOD * np.arange(6000)
    shaken = np.column_stack([0.3 * np.sin(19.0 * time), np.zeros(6000), 1.5 * np.sin(17.5 * time + 2.0)])
    drive = held(BASE, shaken + 0.5 * errands(120.0, 3, (0.3, 0.0, 0.8))[:6000])
    noise = np.random.default_rng(3).normal(size=drive.poses.shape) * (0.001, 0.001, 0.001)
    found = calibrate([dataclasses.replace(drive, poses=drive.poses + noise)], BASE)
    assert found["wheel_radius"].value == pytest.approx(0.042, rel=0.002)
    assert found["lever"].value == pytest.approx(0.1, rel=0.002)


def test_a_recording_without_wheels_or_poses_costs_the_others_nothing() -> None:
    poses, _ = localised_drive(7)
    good = poses.part.signals
    alone = calibrate([good], BASE)
    empty = dataclasses.replace(good, wheel_time=np.zeros(0), wheel_angles=np.zeros((0, 2)), recording=1)
    unseen = dataclasses.replace(good, pose_time=np.zeros(0), poses=np.zeros((0, 3)), recording=1)
    for other in (empty, unseen):
        both = calibrate([good, other], BASE)
        assert both["wheel_radius"].value == pytest.approx(alone["wheel_radius"].value, rel=1e-6)
