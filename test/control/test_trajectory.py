"""Trajectories: what is refused, the pose between points, and the twist that a held command needs."""

from __future__ import annotations

import numpy as np
import pytest

from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.errors import InputError, TrajectoryError
from youbot_dynamics.kinematics import planar

POSES = np.array([[0.0, 0.0, 0.0], [0.3, 0.1, 0.4], [0.5, 0.4, 1.1], [0.4, 0.6, 1.0]])
TIMES = np.array([0.0, 0.5, 1.2, 2.0])
TRAJECTORY = Trajectory(TIMES, POSES)


@pytest.mark.parametrize(
    ("times", "poses", "twists", "words"),
    [
        ([], np.zeros((0, 3)), None, "no points"),
        (0.0, POSES, None, "no points"),
        ("now", POSES, None, "no arrays of numbers"),
        (10**400, POSES, None, "no arrays of numbers"),
        (TIMES, [[10**400] * 3] * 4, None, "no arrays of numbers"),
        (TIMES, [[0.0], [1.0, 2.0]], None, "no arrays of numbers"),
        (TIMES, POSES[:3], None, "a row a point"),
        (TIMES, POSES[:, :2], None, "a row a point"),
        (TIMES, POSES, POSES[:3], "a row a point"),
        (TIMES, np.where(POSES == 0.5, np.nan, POSES), None, "finite"),
        (np.array([0.0, 0.5, np.inf, 2.0]), POSES, None, "finite"),
        (TIMES, POSES, np.full((4, 3), np.nan), "finite"),
        (np.array([0.0, 0.5, 0.5, 2.0]), POSES, None, "point 2: got time 0.5 s after 0.5 s"),
        (np.array([0.0, 1.5, 0.5, 2.0]), POSES, None, "strictly increasing"),
    ],
)
def test_what_cannot_be_followed_is_refused(times, poses, twists, words) -> None:
    with pytest.raises(TrajectoryError, match=words):
        Trajectory(times, poses, twists)


@pytest.mark.parametrize("wrong", [None, "1", np.nan, np.inf, 10**400, [[0.1, 0.2]], 1j])
def test_times_and_poses_that_are_none_are_refused_by_name(wrong: object) -> None:
    for name, refused in (
        ("pose", lambda: TRAJECTORY.joined_from(wrong)),
        ("pose", lambda: Trajectory(TIMES + 1.0, POSES).joined_from(wrong)),
        ("time", lambda: TRAJECTORY.joined_from(POSES[0], wrong)),
        ("time", lambda: TRAJECTORY.pose(wrong)),
        ("times", lambda: TRAJECTORY.path(wrong)),
        ("start", lambda: TRAJECTORY.mean_twist(wrong, 1.0)),
        ("end", lambda: TRAJECTORY.mean_twist(0.0, wrong)),
        ("ramp", lambda: TRAJECTORY.eased(wrong)),
        ("dt", lambda: TRAJECTORY.eased(0.5, wrong)),
    ):
        with pytest.raises(InputError, match=rf"^{name}(\[.*\])?: got .*; expected "):
            refused()


def test_a_trajectory_is_not_eased_in_more_points_than_fit_into_memory() -> None:
    for dt in (1e-9, 5e-324):
        with pytest.raises(InputError, match="dt: got .* s; expected at least 2.5e-06 s"):
            TRAJECTORY.eased(0.5, dt)


def test_every_point_is_reached_at_its_time() -> None:
    for time, pose in zip(TIMES, POSES, strict=True):
        np.testing.assert_allclose(TRAJECTORY.pose(time), pose, atol=1e-12)


def test_before_and_after_it_stands() -> None:
    assert np.array_equal(TRAJECTORY.pose(-1.0), POSES[0]) and np.array_equal(TRAJECTORY.pose(9.0), POSES[-1])
    np.testing.assert_allclose(TRAJECTORY.mean_twist(-2.0, -1.0), 0.0, atol=1e-15)
    np.testing.assert_allclose(TRAJECTORY.mean_twist(3.0, 4.0), 0.0, atol=1e-15)
    assert TRAJECTORY.duration == 2.0


def test_between_two_points_the_body_twist_is_constant() -> None:
    h = 1e-6
    twists = [planar.mean_twist(TRAJECTORY.pose(t - h), TRAJECTORY.pose(t + h), 2 * h) for t in (0.6, 0.8, 1.0, 1.15)]
    np.testing.assert_allclose(twists - twists[0], 0.0, atol=1e-8)


@pytest.mark.parametrize(("start", "end"), [(0.1, 0.3), (0.4, 0.9), (-0.1, 0.1), (1.9, 2.3), (0.0, 2.0)])
def test_a_command_with_the_mean_twist_joins_the_desired_poses(start: float, end: float) -> None:
    reached = planar.integrate(TRAJECTORY.pose(start), TRAJECTORY.mean_twist(start, end), end - start)
    np.testing.assert_allclose(reached, TRAJECTORY.pose(end), atol=1e-12)


def test_given_twists_shape_path_and_feed_forward_alike() -> None:
    # x = 0.05 t^2 with its own velocities: points a second apart, yet exact between them.
    times = np.arange(5.0)
    still = np.zeros(5)
    poses = np.column_stack([0.05 * times**2, still, still])
    trajectory = Trajectory(times, poses, np.column_stack([0.1 * times, still, still]))
    for moment in (0.3, 1.7, 3.9):
        assert trajectory.pose(moment)[0] == pytest.approx(0.05 * moment**2, abs=1e-12)
        assert trajectory.mean_twist(moment, moment + 0.02)[0] == pytest.approx(0.1 * (moment + 0.01), abs=1e-12)
    np.testing.assert_allclose(trajectory.mean_twist(5.0, 5.1), 0.0)


def test_given_twists_are_body_twists() -> None:
    # A quarter of a circle at constant body twist, radius 1 m: the cubic through its ends stays within 1 mm.
    times = np.linspace(0.0, np.pi / 2.0, 4)
    poses = np.array([planar.integrate(np.zeros(3), [0.8, 0.6, 1.0], moment) for moment in times])
    trajectory = Trajectory(times, poses, np.tile([0.8, 0.6, 1.0], (4, 1)))
    for moment in np.linspace(0.0, times[-1], 50):
        exact = planar.integrate(np.zeros(3), [0.8, 0.6, 1.0], moment)
        np.testing.assert_allclose(trajectory.pose(moment), exact, atol=1e-3)


def test_anchoring_moves_the_scene_and_keeps_the_twists() -> None:
    start = np.array([2.0, -1.0, 2.5])
    anchored = TRAJECTORY.anchored(start)
    np.testing.assert_allclose(anchored.pose(0.8), planar.compose(start, TRAJECTORY.pose(0.8)), atol=1e-12)
    np.testing.assert_allclose(anchored.mean_twist(0.3, 0.9), TRAJECTORY.mean_twist(0.3, 0.9), atol=1e-12)


def test_a_trajectory_is_frozen_and_owns_its_arrays() -> None:
    times = TIMES.copy()
    trajectory = Trajectory(times, POSES)
    times[0] = 99.0
    assert trajectory.times[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        trajectory.poses[0] = 1.0


def test_one_point_is_a_place_to_stand() -> None:
    point = Trajectory([0.0], [[1.0, 2.0, 3.0]])
    assert np.array_equal(point.pose(5.0), [1.0, 2.0, 3.0])
    np.testing.assert_allclose(point.mean_twist(0.0, 0.02), 0.0)


def test_a_late_first_point_is_led_to_and_not_jumped_to() -> None:
    goal = Trajectory([4.0], [[1.0, 0.0, 0.0]]).joined_from([0.0, 0.0, 0.0])
    np.testing.assert_allclose(goal.mean_twist(1.0, 1.02), [0.25, 0.0, 0.0], atol=1e-12)
    assert TRAJECTORY.joined_from([9.0, 9.0, 9.0]) is TRAJECTORY
