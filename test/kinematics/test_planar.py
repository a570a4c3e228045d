"""Motion in the plane against the matrix exponential, an ODE solver and its own group laws."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from youbot_dynamics.errors import InputError
from youbot_dynamics.kinematics import planar

LENGTH = st.floats(-3.0, 3.0)
POSE = st.tuples(LENGTH, LENGTH, st.floats(-3.1, 3.1))
TURNS = [0.0, 1e-12, 1e-6, 9.99e-5, 1.01e-4, 1e-3, 0.3, -1.7, 3.0, -pi, 5.0]


def matrix(pose: np.ndarray) -> np.ndarray:
    x, y, yaw = pose
    return np.array([[cos(yaw), -sin(yaw), x], [sin(yaw), cos(yaw), y], [0.0, 0.0, 1.0]])


def twist_matrix(twist: np.ndarray) -> np.ndarray:
    vx, vy, wz = twist
    return np.array([[0.0, -wz, vx], [wz, 0.0, vy], [0.0, 0.0, 0.0]])


def euler_path(twists: np.ndarray, dt: float) -> np.ndarray:
    """Document 003, velocity file: x(i) = x(i-1) + dt (Vx cos psi - Vy sin psi), ..."""
    pose = np.zeros(3)
    path = [pose]
    for vx, vy, wz in twists:
        c, s = cos(pose[2]), sin(pose[2])
        pose = pose + dt * np.array([vx * c - vy * s, vy * c + vx * s, wz])
        path.append(pose)
    return np.array(path)


def exact_path(twists: np.ndarray, dt: float) -> np.ndarray:
    path = [np.zeros(3)]
    for twist in twists:
        path.append(planar.integrate(path[-1], twist, dt))
    return np.array(path)


@pytest.mark.parametrize("turn", TURNS)
def test_exponential_is_the_matrix_exponential_of_the_twist(turn: float) -> None:
    displacement = np.array([0.7, -0.4, turn])
    found = matrix(planar.exponential(displacement))
    np.testing.assert_allclose(found, expm(twist_matrix(displacement)), rtol=0, atol=1e-14)


@pytest.mark.parametrize("turn", TURNS)
def test_integrate_solves_the_differential_equation_of_a_constant_body_twist(turn: float) -> None:
    start, twist, dt = np.array([0.3, -1.2, 0.8]), np.array([0.7, -0.4, turn / 1.5]), 1.5

    def rate(_: float, pose: np.ndarray) -> np.ndarray:
        velocity = planar.rotation(pose[2]) @ twist[:2]
        return np.array([velocity[0], velocity[1], twist[2]])

    solved = solve_ivp(rate, (0.0, dt), start, rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]
    np.testing.assert_allclose(planar.integrate(start, twist, dt), solved, rtol=0, atol=1e-11)


@given(pose=POSE)
@settings(max_examples=100)
def test_logarithm_and_exponential_undo_each_other(pose: tuple[float, float, float]) -> None:
    np.testing.assert_allclose(planar.exponential(planar.logarithm(pose)), pose, atol=1e-12)
    np.testing.assert_allclose(planar.logarithm(planar.exponential(pose)), pose, atol=1e-12)


@pytest.mark.parametrize("yaw", [pi, -pi, pi - 1e-9])
def test_a_half_turn_has_a_logarithm(yaw: float) -> None:
    back = planar.exponential(planar.logarithm([0.5, -0.2, yaw]))
    np.testing.assert_allclose(matrix(back), matrix(np.array([0.5, -0.2, yaw])), atol=1e-12)


@given(a=POSE, b=POSE, c=POSE)
@settings(max_examples=50)
def test_composition_is_associative_and_multiplies_the_matrices(a: tuple, b: tuple, c: tuple) -> None:
    left = planar.compose(planar.compose(a, b), c)
    right = planar.compose(a, planar.compose(b, c))
    np.testing.assert_allclose(left, right, atol=1e-12)
    np.testing.assert_allclose(matrix(left), matrix(a) @ matrix(b) @ matrix(c), atol=1e-12)


@given(a=POSE, b=POSE)
@settings(max_examples=50)
def test_between_is_the_pose_that_composition_needs(a: tuple, b: tuple) -> None:
    found = planar.between(a, b)
    np.testing.assert_allclose(matrix(planar.compose(a, found)), matrix(b), atol=1e-12)
    assert -pi < found[2] <= pi


@given(frame=POSE, pose=POSE, twist=POSE)
@settings(max_examples=50)
def test_motion_does_not_depend_on_the_frame_it_is_described_in(frame: tuple, pose: tuple, twist: tuple) -> None:
    moved_scene = planar.integrate(planar.compose(frame, pose), twist, 0.7)
    np.testing.assert_allclose(moved_scene, planar.compose(frame, planar.integrate(pose, twist, 0.7)), atol=1e-11)


@pytest.mark.parametrize("steps", [1, 7, 400])
def test_a_circle_closes_whatever_the_step(steps: int) -> None:
    wz = 0.8
    path = exact_path(np.tile([0.3, 0.1, wz], (steps, 1)), 2.0 * pi / wz / steps)
    np.testing.assert_allclose(path[-1], [0.0, 0.0, 2.0 * pi], atol=1e-12)


def test_running_backwards_returns_to_the_start() -> None:
    start, twist = np.array([1.0, 2.0, 0.5]), np.array([0.4, -0.3, 1.1])
    np.testing.assert_allclose(planar.integrate(planar.integrate(start, twist, 0.9), twist, -0.9), start, atol=1e-14)


def test_the_euler_sum_of_seed_003_is_of_first_order_where_integrate_is_exact() -> None:
    twist, duration = np.array([0.5, 0.2, 1.2]), 7.5
    end = planar.integrate(np.zeros(3), twist, duration)
    errors = []
    for steps in (75, 150, 300):
        twists = np.tile(twist, (steps, 1))
        errors.append(np.hypot(*(euler_path(twists, duration / steps)[-1] - end)[:2]))
        np.testing.assert_allclose(exact_path(twists, duration / steps)[-1], end, atol=1e-12)
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    np.testing.assert_allclose(orders, 1.0, atol=0.1)


def worst_distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.hypot(*(a - b)[:, :2].T)))


def test_the_euler_sum_is_off_by_the_figures_of_system_28() -> None:
    for duration, turn in ((7.5, 0.8), (10.0, 0.5)):
        twists = np.tile([0.3, 0.1, turn], (round(duration / 0.05), 1))
        assert 0.014 < worst_distance(euler_path(twists, 0.05), exact_path(twists, 0.05)) < 0.018
    fast = np.tile([0.4, 0.0, 6.0], (75, 1))
    assert worst_distance(euler_path(fast, 0.1), exact_path(fast, 0.1)) == pytest.approx(0.041, abs=0.003)


@given(angle=st.floats(-1e4, 1e4))
@settings(max_examples=200)
def test_wrap_keeps_the_direction_and_lands_in_the_half_open_range(angle: float) -> None:
    wrapped = planar.wrap(angle)
    assert -pi < wrapped <= pi
    assert abs(cos(wrapped) - cos(angle)) < 1e-9 and abs(sin(wrapped) - sin(angle)) < 1e-9


@pytest.mark.parametrize(("angle", "wrapped"), [(pi, pi), (-pi, pi), (3 * pi, pi), (0.0, 0.0), (2 * pi, 0.0)])
def test_wrap_takes_the_upper_end_of_its_range(angle: float, wrapped: float) -> None:
    assert planar.wrap(angle) == pytest.approx(wrapped, abs=1e-12)


@given(start=POSE, twist=st.tuples(LENGTH, LENGTH, st.floats(-1.0, 1.0)))
@settings(max_examples=50)
def test_mean_twist_is_the_twist_that_was_held(start: tuple, twist: tuple) -> None:
    np.testing.assert_allclose(planar.mean_twist(start, planar.integrate(start, twist, 1.3), 1.3), twist, atol=1e-11)


@pytest.mark.parametrize("yaw", [-3.0, -0.2, 0.0, 1.5, pi])
def test_heading_of_a_quaternion(yaw: float) -> None:
    assert planar.yaw_of_quaternion(0.0, 0.0, sin(yaw / 2), cos(yaw / 2)) == pytest.approx(yaw)


@pytest.mark.parametrize("tilt", [(0.0, 0.0), (0.4, 0.0), (0.0, -0.5), (-0.3, 0.6)])
@pytest.mark.parametrize("yaw", [-2.5, -0.2, 0.0, 1.5])
def test_heading_of_a_tilted_body_is_that_of_its_x_axis(yaw: float, tilt: tuple[float, float]) -> None:
    turn = Rotation.from_euler("ZYX", [yaw, *tilt])
    assert planar.yaw_of_quaternion(*turn.as_quat()) == pytest.approx(yaw, abs=1e-12)


@pytest.mark.parametrize("dt", [1e-3, 0.02, 7.0])
def test_mean_twist_of_any_duration(dt: float) -> None:
    twist = np.array([0.3, -0.1, 0.4])
    np.testing.assert_allclose(
        planar.mean_twist([1.0, 2.0, 3.0], planar.integrate([1.0, 2.0, 3.0], twist, dt), dt), twist, atol=1e-9
    )


FUNCTIONS_OF_ONE = ["exponential", "logarithm"]
FUNCTIONS_OF_TWO = ["compose", "between", "move_path"]


@pytest.mark.parametrize("name", FUNCTIONS_OF_ONE + FUNCTIONS_OF_TWO)
def test_what_is_no_pose_is_refused(name: str) -> None:
    function = getattr(planar, name)
    others = [np.zeros((2, 3)) if name == "move_path" else np.zeros(3)] if name in FUNCTIONS_OF_TWO else []
    with pytest.raises(InputError, match=r"got shape \(2,\); expected shape \(3,\)"):
        function(np.zeros(2), *others)
    with pytest.raises(InputError, match=r"\[2\]: got nan; expected a finite number"):
        function(np.array([0.0, 1.0, np.nan]), *others)
    with pytest.raises(InputError, match="got 'here'; expected numbers"):
        function("here", *others)


@pytest.mark.parametrize("turn", [1e-9, 3e-5, 0.99e-4, 1.01e-4, 0.99e-3, 1.01e-3, 0.1])
def test_a_small_arc_goes_sideways_by_its_sagitta_to_the_last_digits(turn: float) -> None:
    """(1 - cos a) / a = 2 sin(a/2)^2 / a, relative to itself: it is 1e-10 of the way where the turn is."""
    assert planar.exponential([1.0, 0.0, turn])[1] == pytest.approx(
        2.0 * np.sin(turn / 2.0) ** 2 / turn, rel=1e-13, abs=0.0
    )


def test_what_is_no_motion_is_refused() -> None:
    with pytest.raises(InputError, match=r"twist: got shape \(6,\); expected shape \(3,\)"):
        planar.integrate(np.zeros(3), np.zeros(6), 0.1)
    for wrong in (np.nan, "1"):
        with pytest.raises(InputError, match="^dt: got "):
            planar.integrate(np.zeros(3), np.zeros(3), wrong)
    with pytest.raises(InputError, match=r"path: got shape \(3,\); expected shape \(n, 3\)"):
        planar.steps_of_path(np.zeros(3))
    with pytest.raises(InputError, match=r"path\[1, 2\]: got inf"):
        planar.move_path(np.zeros(3), [[0.0, 0.0, 0.0], [1.0, 0.0, np.inf]])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_angles_that_are_not_finite_are_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="angle: got .*expected a finite number"):
        planar.wrap(wrong)
    with pytest.raises(InputError, match="yaw: got .*expected a finite number"):
        planar.rotation(wrong)


@pytest.mark.parametrize("wrong", [0.0, -0.1, np.nan, np.inf, None, "1", 10**400, [0.1]])
def test_a_mean_twist_needs_a_positive_time(wrong: float) -> None:
    with pytest.raises(
        InputError, match="dt: got .*; expected (a time above 0|a finite number|numbers? of shape|shape)"
    ):
        planar.mean_twist([0.0, 0.0, 0.0], [0.1, 0.0, 0.0], wrong)


def test_a_moved_path_is_the_composition_with_each_of_its_poses() -> None:
    path = np.array([[0.0, 0.0, 0.0], [0.4, -0.3, 0.2], [1.0, 0.7, -2.0]])
    pose = (0.5, -1.5, 0.7)
    np.testing.assert_allclose(planar.move_path(pose, path), [planar.compose(pose, each) for each in path], atol=1e-15)


def test_turned_vectors_keep_their_length_and_turn_counterclockwise() -> None:
    angles = np.array([0.0, 0.3, -2.0, pi / 2])
    vectors = np.array([[1.0, 2.0], [-0.5, 0.7], [3.0, -1.0], [1.0, 2.0]])
    expected = [Rotation.from_euler("z", a).apply([*v, 0.0])[:2] for a, v in zip(angles, vectors, strict=True)]
    np.testing.assert_allclose(planar.turned(vectors, angles), expected, atol=1e-15)
    np.testing.assert_allclose(
        planar.turned(np.array([1.0, 2.0]), angles)[[0, 3]], [[1.0, 2.0], [-2.0, 1.0]], atol=1e-15
    )


def test_headings_of_many_quaternions_are_those_of_their_x_axes() -> None:
    quaternions = 3.0 * np.random.default_rng(2).normal(size=(50, 4))
    x_axes = Rotation.from_quat(quaternions).apply([1.0, 0.0, 0.0])
    expected = np.arctan2(x_axes[:, 1], x_axes[:, 0])
    np.testing.assert_allclose(planar.yaws_of_quaternions(quaternions), expected, atol=1e-12)
    odd = [[0.0, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 1.0], [0.0, 0.0, np.inf, 0.0], [0.0, 0.0, 0.0, 2.0]]
    np.testing.assert_array_equal(planar.yaws_of_quaternions(odd), [np.nan, np.nan, np.nan, 0.0])


def test_a_planar_covariance_stands_at_its_places_in_space_and_leaves_the_rest_small_and_certain() -> None:
    planar_one = np.array([[4.0, 0.1, 0.2], [0.1, 5.0, 0.3], [0.2, 0.3, 6.0]])
    full = planar.covariance_in_space(planar_one).reshape(6, 6)
    np.testing.assert_array_equal(full[np.ix_([0, 1, 5], [0, 1, 5])], planar_one)
    np.testing.assert_array_equal(full[np.ix_([2, 3, 4], [2, 3, 4])], 1e-6 * np.eye(3))
    np.testing.assert_array_equal(full[np.ix_([0, 1, 5], [2, 3, 4])], np.zeros((3, 3)))
    np.testing.assert_array_equal(full, full.T)
