"""Logarithms of rotations and poses, twists and wrenches in other frames, the motion of a body's points."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import se3, so3
from youbot_dynamics.kinematics.rotations import skew
from youbot_dynamics.source_systems import rigid_motion as rigid
from youbot_dynamics.source_systems.angles import krylov_to_matrix

RNG = np.random.default_rng(8)
AXES = [axis / np.linalg.norm(axis) for axis in [*np.eye(3), *RNG.normal(size=(5, 3)), np.array([1.0, 1e-9, -1e-5])]]
TURNS = [0.0, 1e-300, 1e-12, 1e-8, 9.99e-5, 1.01e-4, 1e-3, 0.3, 1.7, 3.0, pi - 1e-4, pi - 1e-8, pi - 1e-13]
RANDOM = Rotation.random(100, rng=RNG).as_matrix()
LENGTH = st.floats(-3.0, 3.0)


VECTOR = st.tuples(LENGTH, LENGTH, LENGTH)


POSES = [rigid.pose_of(rotation, RNG.normal(size=3)) for rotation in RANDOM[:30]]


def twist_matrix(displacement: np.ndarray) -> np.ndarray:
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = skew(displacement[3:])
    matrix[:3, 3] = displacement[:3]
    return matrix


@given(vector=VECTOR)
def test_the_vector_of_a_cross_product_comes_back(vector: tuple) -> None:
    np.testing.assert_array_equal(rigid.unskew(skew(vector)), vector)


def test_unskew_refuses_what_no_cross_product_is() -> None:
    with pytest.raises(InputError, match="matrix: got a symmetric part of 0.5; expected an antisymmetric matrix"):
        rigid.unskew([[0.0, -1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with pytest.raises(InputError, match="antisymmetric"):
        rigid.unskew(np.eye(3))
    np.testing.assert_array_equal(rigid.unskew(np.zeros((3, 3))), np.zeros(3))


@pytest.mark.parametrize("turn", TURNS)
def test_logarithm_returns_the_vector_to_full_digits_next_to_0_and_next_to_pi(turn: float) -> None:
    for axis in AXES:
        found = rigid.rotation_logarithm(so3.exponential(turn * axis))
        if turn < 1.0:  # relative to the turn itself, however small
            assert np.linalg.norm(found - turn * axis) <= 4e-16 * turn + 1e-12 * turn**2
        np.testing.assert_allclose(found, turn * axis, rtol=0, atol=3e-15)


def test_a_half_turn_has_a_logarithm_of_either_sign() -> None:
    for axis in AXES:
        found = rigid.rotation_logarithm(so3.exponential(pi * axis))
        assert np.linalg.norm(found) == pytest.approx(pi, abs=1e-15)
        assert min(np.linalg.norm(found - pi * axis), np.linalg.norm(found + pi * axis)) < 1e-14


@pytest.mark.parametrize("turn", [pi + 1e-9, 4.0, 2 * pi - 1e-6, 9.0])
def test_a_turn_beyond_pi_comes_back_as_the_short_way_round(turn: float) -> None:
    for axis in AXES:
        found = rigid.rotation_logarithm(so3.exponential(turn * axis))
        assert np.linalg.norm(found) <= pi
        np.testing.assert_allclose(so3.exponential(found), so3.exponential(turn * axis), atol=1e-14)


def test_logarithms_of_random_rotations_are_those_of_scipy() -> None:
    for rotation in RANDOM:
        np.testing.assert_allclose(
            rigid.rotation_logarithm(rotation), Rotation.from_matrix(rotation).as_rotvec(), atol=1e-13
        )


@pytest.mark.parametrize("turn", [0.0, 1e-7, 9.9e-5, 1.1e-4, 1e-2, 1.0, 3.1])
def test_the_left_jacobian_has_its_inverse(turn: float) -> None:
    h = 1e-6
    for axis in AXES[:5]:
        v = turn * axis
        back = so3.exponential(v).T
        columns = [
            (
                rigid.rotation_logarithm(so3.exponential(v + h * unit) @ back)
                - rigid.rotation_logarithm(so3.exponential(v - h * unit) @ back)
            )
            / (2 * h)
            for unit in np.eye(3)
        ]
        jacobian = so3.left_jacobian(v)
        np.testing.assert_allclose(jacobian, np.column_stack(columns), atol=1e-9)
        np.testing.assert_allclose(jacobian @ rigid.left_jacobian_inverse(v), np.eye(3), atol=1e-14)


@pytest.mark.parametrize("turn", TURNS)
def test_logarithm_and_exponential_of_a_displacement_undo_each_other(turn: float) -> None:
    for axis in AXES:
        displacement = np.concatenate([[0.7, -0.4, 1.3], turn * axis])
        np.testing.assert_allclose(rigid.logarithm(se3.exponential(displacement)), displacement, rtol=0, atol=1e-14)


def test_a_half_turn_with_a_translation_comes_back() -> None:
    for axis in AXES:
        pose = se3.exponential(np.concatenate([[0.7, -0.4, 1.3], pi * axis]))
        np.testing.assert_allclose(se3.exponential(rigid.logarithm(pose)), pose, atol=1e-14)


def test_logarithms_of_poses_are_those_of_scipy() -> None:
    for pose in POSES:
        np.testing.assert_allclose(twist_matrix(rigid.logarithm(pose)), logm(pose).real, atol=1e-11)


def test_pinocchio_has_the_same_exponential_logarithm_and_adjoint() -> None:
    pin = pytest.importorskip("pinocchio")
    for pose, other in zip(POSES, POSES[::-1], strict=True):
        theirs = pin.SE3(pose[:3, :3], pose[:3, 3])
        np.testing.assert_allclose(rigid.logarithm(pose), pin.log6(theirs).vector, atol=1e-12)
        twist = rigid.logarithm(other)
        np.testing.assert_allclose(se3.exponential(twist), pin.exp6(pin.Motion(twist)).homogeneous, atol=1e-13)
        np.testing.assert_allclose(rigid.adjoint(pose), theirs.action, atol=1e-15)
        np.testing.assert_allclose(rigid.bracket(twist), pin.Motion(twist).action, atol=1e-15)
        np.testing.assert_allclose(rigid.inverse(pose), theirs.inverse().homogeneous, atol=1e-15)


def test_poses_form_a_group() -> None:
    for a, b in zip(POSES, POSES[1:], strict=False):
        np.testing.assert_allclose(rigid.inverse(a) @ a, np.eye(4), atol=1e-15)
        np.testing.assert_allclose(rigid.adjoint(a @ b), rigid.adjoint(a) @ rigid.adjoint(b), atol=1e-14)
        np.testing.assert_allclose(rigid.adjoint(rigid.inverse(a)), np.linalg.inv(rigid.adjoint(a)), atol=1e-14)


@given(linear=VECTOR, angular=VECTOR)
@settings(max_examples=40)
def test_the_bracket_generates_the_adjoint(linear: tuple, angular: tuple) -> None:
    twist = np.array([*linear, *angular])
    np.testing.assert_allclose(rigid.adjoint(se3.exponential(twist)), expm(rigid.bracket(twist)), atol=1e-11)


def test_a_displacement_seen_from_another_frame_is_the_adjoint_of_it() -> None:
    """Frame invariance: T exp(d) = exp(Ad_T d) T."""
    for pose, other in zip(POSES, POSES[::-1], strict=True):
        twist = rigid.logarithm(other)
        moved = se3.exponential(rigid.adjoint(pose) @ twist) @ pose
        np.testing.assert_allclose(pose @ se3.exponential(twist), moved, atol=1e-13)


def test_power_does_not_depend_on_the_frame() -> None:
    for pose in POSES:
        twist, wrench = RNG.normal(size=6), RNG.normal(size=6)
        in_other, in_body = rigid.adjoint(pose) @ twist, rigid.adjoint(pose).T @ wrench
        assert wrench @ in_other == pytest.approx(in_body @ twist, abs=1e-12)
        force, moment = in_body[:3], in_body[3:]
        rotation, position = pose[:3, :3], pose[:3, 3]
        np.testing.assert_allclose(rotation @ force, wrench[:3], atol=1e-13)
        np.testing.assert_allclose(rotation @ moment + np.cross(position, wrench[:3]), wrench[3:], atol=1e-13)


@pytest.mark.parametrize(
    ("pose", "error", "words"),
    [
        (np.eye(3), InputError, r"pose: got shape \(3, 3\); expected shape \(4, 4\)"),
        (np.where(np.eye(4) > 0, np.eye(4), np.nan), InputError, r"pose\[0, 1\]: got nan"),
        (np.eye(4) + np.eye(4)[:, [3, 0, 1, 2]], ModelError, "last row"),
        (np.diag([1.0, 1.0, 1.0, 2.0]), ModelError, r"pose: got a last row \[0.0, 0.0, 0.0, 2.0\]"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), ModelError, "pose: got a left-handed frame"),
        (np.diag([1.0, 2.0, 1.0, 1.0]), ModelError, "pose: got a matrix that is not orthogonal"),
    ],
)
@pytest.mark.parametrize("function", [rigid.check_pose, rigid.inverse, rigid.logarithm, rigid.adjoint])
def test_what_is_no_pose_is_refused(function, pose, error, words: str) -> None:
    with pytest.raises(error, match=words):
        function(pose)


def test_what_is_no_twist_is_refused() -> None:
    with pytest.raises(InputError, match=r"got shape \(3,\); expected shape \(6,\)"):
        rigid.bracket(np.zeros(3))
    with pytest.raises(InputError, match=r"\[4\]: got inf"):
        rigid.bracket([0.0, 0.0, 0.0, 0.0, np.inf, 0.0])


def test_what_is_no_rotation_vector_has_no_jacobian() -> None:
    with pytest.raises(InputError, match=r"rotation_vector: got shape \(4,\)"):
        rigid.left_jacobian_inverse(np.zeros(4))
    with pytest.raises(InputError, match=r"rotation_vector\[0\]: got nan"):
        rigid.left_jacobian_inverse([np.nan, 0.0, 0.0])


def test_the_inverse_jacobian_is_refused_beyond_a_half_turn() -> None:
    with pytest.raises(InputError, match="got a turn of 3.2 rad; expected at most pi"):
        rigid.left_jacobian_inverse([0.0, 3.2, 0.0])


@pytest.mark.parametrize("function", [rigid.rotation_logarithm])
def test_logarithm_and_quaternion_of_a_reflection_are_refused(function) -> None:
    with pytest.raises(ModelError, match="left-handed"):
        function(-np.eye(3))


def angles_at(t: float) -> np.ndarray:
    return np.array([0.4 + 1.3 * t, 0.9 * np.sin(1.1 * t), -1.0 + 0.7 * t * t])


def rotation_at(t: float) -> np.ndarray:
    return krylov_to_matrix(*angles_at(t))


def origin_at(t: float) -> np.ndarray:
    return np.array([np.cos(2.0 * t), 0.3 * t**2, np.sin(t) - t])


def difference(function, t: float, h: float = 1e-4) -> np.ndarray:
    """First derivative by four values; its error falls with h^4."""
    return (8.0 * (function(t + h) - function(t - h)) - (function(t + 2 * h) - function(t - 2 * h))) / (12.0 * h)


def fixed_omega_at(t: float) -> np.ndarray:
    """From the logarithm of the rotation between two instants: an independent way to the angular velocity."""
    return difference(lambda s: rigid.rotation_logarithm(rotation_at(s) @ rotation_at(t).T), t)


INSTANTS = [-1.2, 0.0, 0.6, 1.9]


ARM = np.array([0.3, -0.8, 0.5])


@pytest.mark.parametrize("t", INSTANTS)
def test_both_forms_of_the_rate_of_a_rotation_are_its_derivative(t: float) -> None:
    rotation, omega = rotation_at(t), fixed_omega_at(t)
    derivative = difference(rotation_at, t)
    np.testing.assert_allclose(rigid.rotation_rate(rotation, omega), derivative, atol=1e-9)
    of_body = rigid.rotation_rate_from_body_omega(rotation, rotation.T @ omega)
    np.testing.assert_allclose(of_body, derivative, atol=1e-9)


@pytest.mark.parametrize("t", INSTANTS)
def test_the_frame_of_the_angular_velocity_matters(t: float) -> None:
    rotation, omega = rotation_at(t), fixed_omega_at(t)
    mixed_up = rigid.rotation_rate_from_body_omega(rotation, omega)
    assert np.max(np.abs(mixed_up - difference(rotation_at, t))) > 0.1


@pytest.mark.parametrize("t", INSTANTS)
def test_a_point_moves_as_the_differences_of_its_path(t: float) -> None:
    def path(s: float) -> np.ndarray:
        return rigid.point_position(origin_at(s), rotation_at(s), ARM)

    def velocity(s: float) -> np.ndarray:
        return rigid.point_velocity(difference(origin_at, s), fixed_omega_at(s), rotation_at(s), ARM)

    alpha, origin_acceleration = difference(fixed_omega_at, t, 1e-2), difference(lambda s: difference(origin_at, s), t)
    acceleration = rigid.point_acceleration(origin_acceleration, fixed_omega_at(t), alpha, rotation_at(t), ARM)
    np.testing.assert_allclose(velocity(t), difference(path, t), atol=1e-9)
    np.testing.assert_allclose(acceleration, difference(velocity, t, 1e-2), atol=1e-6)


@pytest.mark.parametrize("t", INSTANTS)
def test_any_point_of_the_body_may_be_the_reference(t: float) -> None:
    """Document 002 eq. (A.9): the point seen from Q as from the origin."""
    to_q = np.array([-0.2, 0.4, 1.1])
    rotation, omega, alpha = rotation_at(t), fixed_omega_at(t), np.array([0.5, -2.0, 0.7])
    state = (np.array([1.0, 2.0, 3.0]), np.array([0.1, -0.4, 0.2]), np.array([0.0, 0.3, -9.0]))

    def motion(position, velocity, acceleration, arm):
        return (
            rigid.point_position(position, rotation, arm),
            rigid.point_velocity(velocity, omega, rotation, arm),
            rigid.point_acceleration(acceleration, omega, alpha, rotation, arm),
        )

    for direct, by_q in zip(motion(*state, ARM), motion(*motion(*state, to_q), ARM - to_q), strict=True):
        np.testing.assert_allclose(direct, by_q, atol=1e-13)


@given(omega=VECTOR, a=VECTOR, b=VECTOR)
@settings(max_examples=40)
def test_points_of_a_rigid_body_keep_their_distance(omega: tuple, a: tuple, b: tuple) -> None:
    rotation, still = RANDOM[4], np.zeros(3)
    apart = rigid.point_position(still, rotation, a) - rigid.point_position(still, rotation, b)
    closing = rigid.point_velocity(still, omega, rotation, a) - rigid.point_velocity(still, omega, rotation, b)
    assert apart @ closing == pytest.approx(0.0, abs=1e-11)


def test_a_uniform_turn_accelerates_towards_its_axis() -> None:
    found = rigid.point_acceleration(np.zeros(3), [0.0, 0.0, 2.0], np.zeros(3), np.eye(3), [0.5, 0.0, 3.0])
    np.testing.assert_allclose(found, [-2.0, 0.0, 0.0], atol=1e-15)


def test_the_motion_of_a_point_refuses_what_it_cannot_take() -> None:
    with pytest.raises(InputError, match=r"arm: got shape \(2,\)"):
        rigid.point_position(np.zeros(3), np.eye(3), [1.0, 2.0])
    with pytest.raises(InputError, match=r"reference_velocity\[2\]: got nan"):
        rigid.point_velocity([0.0, 0.0, np.nan], np.zeros(3), np.eye(3), np.zeros(3))
    with pytest.raises(ModelError, match="left-handed"):
        rigid.point_acceleration(np.zeros(3), np.zeros(3), np.zeros(3), -np.eye(3), np.zeros(3))
