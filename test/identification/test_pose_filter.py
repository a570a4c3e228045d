"""The filter of the calibration against the joint distribution of all poses, and the noise that it finds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from calibration_runs import errands, held, localised

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
