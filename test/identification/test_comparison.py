"""Errors of a path, the lab's table of them, and the path without its delay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from youbot_dynamics.identification.comparison import (
    PathComparison,
    error_statistics,
    path_errors,
    relative_path,
    restored_path,
    sample_poses,
)
from youbot_dynamics.kinematics import planar

RNG = np.random.default_rng(8)
TIME = np.arange(0.0, 10.0, 0.02)


def path(twist_at, times: np.ndarray, steps: int = 10) -> np.ndarray:
    """Poses of a body that moves with twist_at(t), by midpoint arcs far below the sample time."""
    poses, pose = [np.zeros(3)], np.zeros(3)
    for start, end in zip(times[:-1], times[1:], strict=True):
        h = (end - start) / steps
        for k in range(steps):
            pose = planar.integrate(pose, twist_at(start + (k + 0.5) * h), h)
        poses.append(pose)
    return np.array(poses)


def test_errors_are_actual_less_desired_with_the_heading_wrapped() -> None:
    errors = path_errors([[1.0, 2.0, 3.1], [0.0, 0.0, -3.1]], [[0.5, 2.5, -3.1], [0.0, 0.0, 3.1]])
    np.testing.assert_allclose(errors, [[0.5, -0.5, 6.2 - 2 * np.pi], [0.0, 0.0, 2 * np.pi - 6.2]])


def test_arguments_are_left_as_they_were() -> None:
    actual = np.array([[0.0, 0.0, 7.0]])
    path_errors(actual, [[0.0, 0.0, 0.0]])
    sample_poses([0.0], actual, [0.0])
    relative_path(actual, [1.0, 1.0, 1.0])
    assert actual[0, 2] == 7.0


def test_mean_and_deviation_are_the_formulas_of_the_lab() -> None:
    """M = sum V / n and sigma = sqrt(sum (x - M)^2 / n): the population's, divisor n (system 37)."""
    values = RNG.normal(size=(7, 3))
    found = error_statistics(values)
    mean = sum(values) / 7
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.deviation, np.sqrt(sum((values - mean) ** 2) / 7))
    assert not np.allclose(found.deviation, np.std(values, axis=0, ddof=1))


@given(errors=st.lists(st.tuples(*[st.floats(-2.0, 2.0)] * 3), min_size=1, max_size=30))
@settings(max_examples=50)
def test_the_mean_square_is_the_square_of_the_mean_and_of_the_deviation(errors: list) -> None:
    found = error_statistics(np.array(errors))
    square = found.mean**2 + found.deviation**2
    assert found.position_rmse**2 == pytest.approx(square[0] + square[1], abs=1e-12)
    assert found.heading_rmse**2 == pytest.approx(square[2], abs=1e-12)
    assert found.position_worst >= found.position_rmse - 1e-12


def test_the_figures_of_the_lab_give_the_rms_errors_of_system_37() -> None:
    """LR3 with and without feedback: X .0307 -> .0074, psi .163 -> .026."""
    for mean, deviation, rms in ((-0.0048, 0.0303, 0.0307), (-0.1453, 0.0739, 0.163), (-0.0260, 0.0034, 0.026)):
        two_values = np.array([[mean + deviation, 0.0, 0.0], [mean - deviation, 0.0, 0.0]])
        assert error_statistics(two_values).position_rmse == pytest.approx(rms, rel=0.01)


def test_a_comparison_measures_each_drive_against_the_same_path() -> None:
    desired = np.zeros((3, 3))
    actual = {"open loop": desired + [0.3, 0.4, 0.1], "feedback": desired}
    comparison = PathComparison("p", np.arange(3.0), desired, actual, "odometry")
    assert comparison.statistics("open loop").position_rmse == pytest.approx(0.5)
    assert comparison.statistics("feedback").position_worst == 0.0


def test_sampling_is_linear_unwraps_the_heading_and_holds_the_ends() -> None:
    poses = [[0.0, 0.0, 3.0], [1.0, 2.0, -3.0], [2.0, 2.0, -2.8]]
    found = sample_poses([1.0, 2.0, 3.0], poses, [0.0, 1.5, 2.5, 9.0])
    turn = 2 * np.pi - 6.0
    np.testing.assert_allclose(found[:, 0], [0.0, 0.5, 1.5, 2.0])
    np.testing.assert_allclose(found[:, 2], [3.0, 3.0 + turn / 2, 3.1 + turn, 3.2 + turn])


@pytest.mark.parametrize("frame", [(1.0, 2.0, 0.7), (-3.0, 0.5, -2.9)])
def test_a_relative_path_does_not_depend_on_the_frame(frame: tuple) -> None:
    poses = RNG.normal(size=(6, 3))
    moved = np.array([planar.compose(frame, pose) for pose in poses])
    np.testing.assert_allclose(relative_path(moved, moved[0]), relative_path(poses, poses[0]), atol=1e-12)
    np.testing.assert_allclose(relative_path(moved, frame), poses, atol=1e-12)


def twist_with_delay(delays: np.ndarray):
    def twist(time: float) -> np.ndarray:
        t = time - delays
        speeds = np.array([0.2 * np.sin(0.63 * t[0]), 0.15 * np.sin(0.9 * t[1]), 0.3 * np.sin(0.4 * t[2])])
        return np.where(t > 0.0, speeds, 0.0)

    return twist


@pytest.mark.parametrize("delays", [(0.2, 0.2, 0.2), (0.08, 0.15, 0.26)])
def test_the_restored_path_is_the_path_without_the_delay(delays: tuple) -> None:
    longer = np.arange(0.0, 10.4, 0.02)
    ideal = path(twist_with_delay(np.zeros(3)), TIME)
    late = path(twist_with_delay(np.array(delays)), longer)
    restored = restored_path(longer, late, TIME, delays)
    before, after = np.abs(late[: len(TIME)] - ideal).max(), np.abs(restored - ideal).max()
    assert before > 0.02
    assert after < 3e-4


def test_a_wrong_delay_does_not_restore_the_path() -> None:
    """So the restored path can fail, unlike the printed one (D-003-7)."""
    delays = (0.2, 0.2, 0.2)
    longer = np.arange(0.0, 10.6, 0.02)
    ideal = path(twist_with_delay(np.zeros(3)), TIME)
    late = path(twist_with_delay(np.array(delays)), longer)
    for wrong in (0.0, 0.1, 0.4):
        restored = restored_path(longer, late, TIME, [wrong] * 3)
        assert np.abs(restored - ideal).max() > 0.01


def test_without_delay_the_restored_path_is_the_recorded_one() -> None:
    recorded = path(twist_with_delay(np.zeros(3)), TIME) + [0.0, 0.0, 1.0]
    np.testing.assert_allclose(restored_path(TIME, recorded, TIME, np.zeros(3)), recorded, atol=1e-9)
