"""Rotation matrices against the laws of rotations and scipy."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.rotations import (
    check_rotation,
    nearest_rotation,
    rotation_x,
    rotation_y,
    rotation_z,
    rpy_to_matrix,
    skew,
)

ANGLE = st.floats(-pi, pi)
NUMBER = st.floats(-10.0, 10.0)
VECTOR = st.tuples(NUMBER, NUMBER, NUMBER)
RANDOM = Rotation.random(200, rng=np.random.default_rng(5)).as_matrix()
ELEMENTARY = [rotation_x, rotation_y, rotation_z]


# --- the cross product as a matrix (system 14)


@given(a=VECTOR, b=VECTOR, c=VECTOR)
@settings(max_examples=60)
def test_skew_is_the_cross_product_and_obeys_jacobi(a: tuple, b: tuple, c: tuple) -> None:
    np.testing.assert_allclose(skew(a) @ b, np.cross(a, b), atol=1e-13)
    np.testing.assert_allclose(skew(a) @ b, -skew(b) @ a, atol=1e-13)
    cycle = skew(a) @ skew(b) @ c + skew(b) @ skew(c) @ a + skew(c) @ skew(a) @ b
    np.testing.assert_allclose(cycle, 0.0, atol=1e-11)
    np.testing.assert_allclose(skew(skew(a) @ b), skew(a) @ skew(b) - skew(b) @ skew(a), atol=1e-12)


@pytest.mark.parametrize("rotation", RANDOM[:20])
def test_the_cross_product_turns_with_its_frame(rotation: np.ndarray) -> None:
    a = np.array([0.3, -1.2, 2.0])
    np.testing.assert_allclose(skew(rotation @ a), rotation @ skew(a) @ rotation.T, atol=1e-14)


# --- elementary rotations (system 40)


@pytest.mark.parametrize("k", range(3))
def test_an_elementary_rotation_turns_by_the_right_hand_rule(k: int) -> None:
    """A quarter turn about one axis takes the next axis into the one after it."""
    axes = np.eye(3)
    turned = ELEMENTARY[k](pi / 2)
    np.testing.assert_allclose(turned @ axes[k], axes[k], atol=1e-16)
    np.testing.assert_allclose(turned @ axes[(k + 1) % 3], axes[(k + 2) % 3], atol=1e-16)


@pytest.mark.parametrize("k", range(3))
@given(a=ANGLE, b=ANGLE)
@settings(max_examples=40)
def test_elementary_rotations_are_orthogonal_add_up_and_are_exponentials(k: int, a: float, b: float) -> None:
    turn = ELEMENTARY[k]
    check_rotation(turn(a), tolerance=1e-15)
    np.testing.assert_allclose(turn(a) @ turn(b), turn(a + b), atol=1e-15)
    np.testing.assert_allclose(turn(-a), turn(a).T, atol=0)
    np.testing.assert_allclose(turn(a), expm(a * skew(np.eye(3)[k])), atol=1e-14)


@pytest.mark.parametrize("angles", [(0.3, -1.1, 2.0), (-2.5, 0.4, -0.7), (3.0, 1.5, 0.0)])
def test_roll_pitch_and_yaw_turn_about_fixed_axes_in_this_order(angles: tuple[float, float, float]) -> None:
    np.testing.assert_allclose(rpy_to_matrix(*angles), Rotation.from_euler("xyz", angles).as_matrix(), atol=1e-15)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, "right", [0.1, 0.2]])
def test_an_angle_that_is_none_is_refused_by_name(wrong) -> None:
    with pytest.raises(InputError, match=r"^angle: got"):
        rotation_x(wrong)
    for name in ("roll", "pitch", "yaw"):
        with pytest.raises(InputError, match=f"^{name}: got"):
            rpy_to_matrix(**(dict(roll=0.1, pitch=0.1, yaw=0.1) | {name: wrong}))


# --- what is a rotation (system 15)


def test_rotations_between_right_handed_frames_are_accepted() -> None:
    for matrix in RANDOM:
        assert check_rotation(matrix, tolerance=1e-13) is not None
        assert np.linalg.det(matrix) == pytest.approx(1.0)


def test_d_002_1_the_determinant_does_not_depend_on_the_handedness_of_the_frames() -> None:
    """Two frames of the same hand, be it the left one, lie a rotation apart: det = +1 where the seed allows -1."""
    mirror = np.diag([1.0, 1.0, -1.0])
    for a, b in zip(RANDOM[:50], RANDOM[50:100], strict=True):
        first, second = a @ mirror, b @ mirror  # columns: the axes of two left-handed frames
        assert np.linalg.det(first) == pytest.approx(-1.0) and np.linalg.det(second) == pytest.approx(-1.0)
        between = first.T @ second
        assert np.linalg.det(between) == pytest.approx(1.0)
        check_rotation(between)


@pytest.mark.parametrize("mirror", [np.diag([1.0, 1.0, -1.0]), -np.eye(3), np.eye(3)[[1, 0, 2]]])
def test_d_002_1_a_reflection_is_refused_in_its_own_words(mirror: np.ndarray) -> None:
    for matrix in (mirror, RANDOM[0] @ mirror):
        with pytest.raises(ModelError, match=r"base frame: got a left-handed frame \(det = -1\): a reflection"):
            check_rotation(matrix, "base frame")
    with pytest.raises(ModelError, match="determinant of -1"):
        nearest_rotation(mirror)


def test_d_002_1_a_reflection_taken_for_a_rotation_turns_angular_velocities_round() -> None:
    """Seen through det = -1 the cross product changes its sign: M (a x b) = -(M a) x (M b)."""
    omega, arm, mirror = np.array([0.2, -0.5, 1.0]), np.array([1.0, 0.3, -0.4]), -RANDOM[3]
    velocity = np.cross(omega, arm)
    wrong = np.cross(mirror @ omega, mirror @ arm)
    np.testing.assert_allclose(wrong, -(mirror @ velocity), atol=1e-15)
    assert np.linalg.norm(wrong - mirror @ velocity) == pytest.approx(2.0 * np.linalg.norm(velocity))


@pytest.mark.parametrize(
    ("matrix", "error", "words"),
    [
        (np.zeros((3, 3)), ModelError, "not orthogonal: R'R differs from 1 by 1"),
        (2.0 * np.eye(3), ModelError, "not orthogonal: R'R differs from 1 by 3"),
        (np.eye(3) + 1e-5, ModelError, "not orthogonal"),
        (np.ones((3, 3)), ModelError, "not orthogonal"),
        (np.eye(4), InputError, r"rotation: got shape \(4, 4\); expected shape \(3, 3\)"),
        (np.diag([1.0, np.nan, 1.0]), InputError, r"rotation\[1, 1\]: got nan; expected a finite number"),
        ("turn", InputError, "expected numbers"),
    ],
)
def test_what_is_no_rotation_is_refused(matrix, error, words: str) -> None:
    with pytest.raises(error, match=words):
        check_rotation(matrix)


def test_the_nearest_rotation_is_a_rotation_and_beats_its_neighbours() -> None:
    rng = np.random.default_rng(2)
    for rotation in RANDOM[:20]:
        noisy = rotation + rng.normal(scale=0.05, size=(3, 3))
        nearest = nearest_rotation(noisy)
        check_rotation(nearest, tolerance=1e-14)
        distance = np.linalg.norm(nearest - noisy)
        assert distance <= np.linalg.norm(rotation - noisy)
        for axis in np.vstack([np.eye(3), -np.eye(3)]):
            assert np.linalg.norm(nearest @ expm(1e-3 * skew(axis)) - noisy) > distance
        np.testing.assert_allclose(nearest_rotation(rotation), rotation, atol=1e-14)


@pytest.mark.parametrize("matrix", [np.zeros((3, 3)), np.diag([1.0, 1.0, 0.0]), -np.eye(3)])
def test_a_matrix_without_a_nearest_rotation_is_refused(matrix: np.ndarray) -> None:
    with pytest.raises(ModelError, match="matrix: got a determinant of"):
        nearest_rotation(matrix)
