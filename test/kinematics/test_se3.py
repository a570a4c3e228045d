"""Exponentials and quaternions in space, against scipy."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import se3, so3
from youbot_dynamics.kinematics.rotations import check_rotation, skew

RNG = np.random.default_rng(8)
AXES = [axis / np.linalg.norm(axis) for axis in [*np.eye(3), *RNG.normal(size=(5, 3)), np.array([1.0, 1e-9, -1e-5])]]
TURNS = [0.0, 1e-300, 1e-12, 1e-8, 9.99e-5, 1.01e-4, 1e-3, 0.3, 1.7, 3.0, pi - 1e-4, pi - 1e-8, pi - 1e-13]
RANDOM = Rotation.random(100, rng=RNG).as_matrix()


def twist_matrix(displacement: np.ndarray) -> np.ndarray:
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = skew(displacement[3:])
    matrix[:3, 3] = displacement[:3]
    return matrix


# --- SO(3)


@pytest.mark.parametrize("turn", [*TURNS, pi, 5.0, 20.0])
def test_the_exponential_of_a_rotation_vector_is_that_of_its_matrix(turn: float) -> None:
    for axis in AXES:
        rotation = so3.exponential(turn * axis)
        np.testing.assert_allclose(rotation, expm(turn * skew(axis)), rtol=0, atol=1e-13)
        np.testing.assert_allclose(rotation @ axis, axis, atol=1e-14)
        check_rotation(rotation, tolerance=3e-15)


@pytest.mark.parametrize("turn", [0.0, 1e-7, 9.9e-5, 1.1e-4, 1e-2, 1.0, 3.1])
def test_the_left_jacobian_is_the_derivative_of_the_exponential(turn: float) -> None:
    h = 1e-6
    for axis in AXES[:5]:
        v, back = turn * axis, so3.exponential(turn * axis).T
        for unit in np.eye(3):
            rate = (so3.exponential(v + h * unit) - so3.exponential(v - h * unit)) @ back / (2 * h)
            np.testing.assert_allclose(skew(so3.left_jacobian(v) @ unit), rate, atol=1e-9)


# --- quaternions


def test_quaternions_are_those_of_scipy_and_come_back() -> None:
    for rotation in RANDOM:
        quaternion = so3.matrix_to_quaternion(rotation)
        expected = Rotation.from_matrix(rotation).as_quat(canonical=True)
        np.testing.assert_allclose(quaternion, expected, atol=1e-14)
        np.testing.assert_allclose(so3.quaternion_to_matrix(quaternion), rotation, atol=2e-15)
        np.testing.assert_allclose(so3.quaternion_to_matrix(-quaternion), rotation, atol=2e-15)


@pytest.mark.parametrize("axis", [*AXES, *-np.eye(3)])
def test_a_half_turn_has_a_quaternion(axis: np.ndarray) -> None:
    """The trace is -1 there, where the form that divides by w breaks down."""
    rotation = 2.0 * np.outer(axis, axis) - np.eye(3)
    quaternion = so3.matrix_to_quaternion(rotation)
    assert quaternion[3] == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(so3.quaternion_to_matrix(quaternion), rotation, atol=2e-15)


@pytest.mark.parametrize("length", [1e-200, 1e-9, 1.0, 7.0, 1e200])
def test_the_length_of_a_quaternion_does_not_matter(length: float) -> None:
    quaternion = so3.matrix_to_quaternion(RANDOM[1])
    np.testing.assert_allclose(so3.quaternion_to_matrix(length * quaternion), RANDOM[1], atol=1e-14)


def test_an_empty_quaternion_is_refused() -> None:
    with pytest.raises(InputError, match=r"quaternion: got \(0, 0, 0, 0\)"):
        so3.quaternion_to_matrix(np.zeros(4))
    with pytest.raises(InputError, match=r"quaternion\[3\]: got nan"):
        so3.quaternion_to_matrix([0.0, 0.0, 0.0, np.nan])


# --- SE(3)


@pytest.mark.parametrize("turn", [*TURNS, pi, 5.0])
def test_the_exponential_of_a_displacement_is_that_of_its_matrix(turn: float) -> None:
    for axis in AXES:
        displacement = np.concatenate([[0.7, -0.4, 1.3], turn * axis])
        found = se3.exponential(displacement)
        np.testing.assert_allclose(found, expm(twist_matrix(displacement)), rtol=0, atol=1e-13)


def test_steps_of_a_constant_twist_add_up_exactly() -> None:
    twist = np.array([0.4, -0.2, 0.1, 0.3, 1.1, -0.7])
    step = se3.exponential(twist * 0.01)
    np.testing.assert_allclose(np.linalg.matrix_power(step, 300), se3.exponential(twist * 3.0), atol=1e-12)


def test_what_is_no_twist_is_refused() -> None:
    with pytest.raises(InputError, match=r"got shape \(3,\); expected shape \(6,\)"):
        se3.exponential(np.zeros(3))
    with pytest.raises(InputError, match=r"\[4\]: got inf"):
        se3.exponential([0.0, 0.0, 0.0, 0.0, np.inf, 0.0])


@pytest.mark.parametrize("function", [so3.exponential, so3.left_jacobian])
def test_what_is_no_rotation_vector_is_refused(function) -> None:
    with pytest.raises(InputError, match=r"rotation_vector: got shape \(4,\)"):
        function(np.zeros(4))
    with pytest.raises(InputError, match=r"rotation_vector\[0\]: got nan"):
        function([np.nan, 0.0, 0.0])


@pytest.mark.parametrize("long", [[1e308, 1e308, 0.0], [1.5e308] * 3, [0.0, 0.0, 1e16]])
def test_a_turn_too_long_for_a_double_to_tell_is_refused(long: list[float]) -> None:
    for function in (so3.exponential, so3.left_jacobian, lambda v: se3.exponential([0.0, 0.0, 0.0, *v])):
        with pytest.raises(InputError, match=r"rotation_vector: got a turn of .* rad; expected at most 2\^52 rad"):
            function(long)


@pytest.mark.parametrize("turn", [0.0, 5e-324, 1e-310, 1e-300, 1e-200])
def test_the_smallest_turns_are_turns(turn: float) -> None:
    expected = np.eye(3)
    expected[1, 2], expected[2, 1] = -turn, turn
    np.testing.assert_array_equal(so3.exponential([turn, 0.0, 0.0]), expected)


def test_long_turns_are_rotations() -> None:
    rotation = so3.exponential([3e15, -2e15, 1e15])
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-14)


def test_the_quaternion_of_a_reflection_is_refused() -> None:
    with pytest.raises(ModelError, match="left-handed"):
        so3.matrix_to_quaternion(-np.eye(3))
