"""Sets of angles against the laws of rotations, scipy and document 003 as printed."""

from __future__ import annotations

from itertools import product
from math import atan, cos, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.rotations import check_rotation, rotation_x, rotation_y, rotation_z, rpy_to_matrix
from youbot_dynamics.source_systems import angles as sets
from youbot_dynamics.source_systems.angles import (
    krylov_to_matrix,
    matrix_to_krylov,
    matrix_to_rpy,
    matrix_to_zyz,
    zyz_to_matrix,
)
from youbot_dynamics.source_systems.rigid_motion import unskew

ANGLE = st.floats(-pi, pi)
NUMBER = st.floats(-10.0, 10.0)
VECTOR = st.tuples(NUMBER, NUMBER, NUMBER)
RANDOM = Rotation.random(200, rng=np.random.default_rng(5)).as_matrix()
ANGLES = st.tuples(ANGLE, ANGLE, ANGLE)


GRID = list(product(np.linspace(-3.0, 3.0, 9), np.linspace(-1.5, 1.5, 7), np.linspace(-3.0, 3.0, 9)))


SETS = {
    "krylov": (krylov_to_matrix, matrix_to_krylov, "ZXY", pi / 2, 2, 0),
    "rpy": (rpy_to_matrix, matrix_to_rpy, "xyz", pi / 2, 0, 2),
    "zyz": (zyz_to_matrix, matrix_to_zyz, "ZYZ", 0.0, 2, 0),
}


every_set = pytest.mark.parametrize("name", SETS)


def worst(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))))


@every_set
@given(angles=ANGLES)
@settings(max_examples=100)
def test_three_angles_give_the_matrix_of_scipy_and_come_back(name: str, angles: tuple) -> None:
    there, back, order, _, _, _ = SETS[name]
    matrix = there(*angles)
    np.testing.assert_allclose(matrix, Rotation.from_euler(order, angles).as_matrix(), atol=1e-14)
    check_rotation(matrix, tolerance=1e-14)
    np.testing.assert_allclose(there(*back(matrix)), matrix, atol=3e-12)


@every_set
def test_angles_of_random_rotations_lie_in_their_ranges_and_agree_with_scipy(name: str) -> None:
    there, back, order, lock, _, _ = SETS[name]
    low, high = (0.0, pi) if lock == 0.0 else (-pi / 2, pi / 2)
    for matrix in RANDOM:
        angles = back(matrix)
        np.testing.assert_allclose(angles, Rotation.from_matrix(matrix).as_euler(order), atol=1e-12)
        assert low <= angles[1] <= high
        assert all(-pi <= angle <= pi for angle in angles)


def test_the_products_are_those_of_the_elementary_rotations() -> None:
    for a, b, c in GRID[::7]:
        np.testing.assert_allclose(krylov_to_matrix(a, b, c), rotation_z(a) @ rotation_x(b) @ rotation_y(c), atol=1e-15)
        np.testing.assert_allclose(rpy_to_matrix(a, b, c), rotation_z(c) @ rotation_y(b) @ rotation_x(a), atol=1e-15)
        np.testing.assert_allclose(zyz_to_matrix(a, b, c), rotation_z(a) @ rotation_y(b) @ rotation_z(c), atol=1e-15)


@every_set
@pytest.mark.parametrize("end", [0, 1])
@given(first=ANGLE, last=ANGLE)
@settings(max_examples=50)
def test_in_gimbal_lock_the_last_angle_is_zero_and_the_matrix_is_kept(
    name: str, end: int, first: float, last: float
) -> None:
    there, back, _, lock, zeroed, other = SETS[name]
    middle = lock + pi * end if lock == 0.0 else (lock, -lock)[end]
    matrix = there(first, middle, last)
    angles = back(matrix)
    assert angles[zeroed] == 0.0
    assert angles[1] == pytest.approx(middle, abs=1e-15)
    assert -pi <= angles[other] <= pi
    np.testing.assert_allclose(there(*angles), matrix, rtol=0, atol=1e-15)


def test_in_gimbal_lock_psi_is_the_sum_or_the_difference_of_the_two_turns() -> None:
    assert matrix_to_krylov(krylov_to_matrix(0.7, pi / 2, 0.4)) == pytest.approx((1.1, pi / 2, 0.0))
    assert matrix_to_krylov(krylov_to_matrix(0.7, -pi / 2, 0.4)) == pytest.approx((0.3, -pi / 2, 0.0))
    assert matrix_to_rpy(rpy_to_matrix(0.4, pi / 2, 0.7)) == pytest.approx((0.0, pi / 2, 0.3))
    assert matrix_to_zyz(zyz_to_matrix(0.7, 0.0, 0.4)) == pytest.approx((1.1, 0.0, 0.0))


@every_set
@pytest.mark.parametrize("off", [1e-15, 1e-13, 1e-12, 1e-11, 1e-9, 1e-7, 1e-4])
def test_next_to_gimbal_lock_the_angles_still_give_the_matrix(name: str, off: float) -> None:
    """Where the first angle hangs on rounding errors the last one must fit it, to the error of the lock itself."""
    there, back, _, lock, _, _ = SETS[name]
    for first, last in ((0.7, -2.1), (-3.0, 0.1), (1.0, 1.0)):
        for middle in (lock - off, lock + off):
            matrix = RANDOM[7].T @ (RANDOM[7] @ there(first, middle, last))  # with the rounding of a product
            assert worst(there(*back(matrix)), matrix) < 2e-15 + 2.1e-12 * (off <= 1e-12)


def printed_zyz(phi: float, theta: float, psi: float) -> np.ndarray:
    """Document 003 eq. (P1.20), as printed: C phi S psi in the first element."""
    c1, s1, c2, s2, c3, s3 = cos(phi), sin(phi), cos(theta), sin(theta), cos(psi), sin(psi)
    return np.array(
        [
            [c1 * c2 * c3 - c1 * s3, -c1 * c2 * s3 - s1 * c3, c1 * s2],
            [s1 * c2 * c3 + c1 * s3, -s1 * c2 * s3 + c1 * c3, s1 * s2],
            [-s2 * c3, s2 * s3, c2],
        ]
    )


def test_d_003_14_the_printed_euler_matrix_is_not_orthogonal() -> None:
    defects, errors = [], []
    for angles in GRID:
        printed = printed_zyz(*angles)
        defects.append(worst(printed.T @ printed, np.eye(3)))
        difference = np.abs(printed - zyz_to_matrix(*angles))
        errors.append(difference[0, 0])
        difference[0, 0] = 0.0
        assert np.max(difference) < 1e-15  # only this element is misprinted
    assert max(defects) > 1.6 and np.median(defects) > 0.3
    assert 1.3 < max(errors) <= sqrt(2.0)
    with pytest.raises(ModelError, match="not orthogonal"):
        check_rotation(printed_zyz(0.5, 0.3, 0.7))


def test_d_003_14_the_printed_label_names_another_rotation() -> None:
    """R_z R_y R_x is announced; the factors written out are R_z R_y R_z."""
    for phi, theta, psi in ((0.5, 0.3, 0.7), (-1.0, 0.8, 2.0)):
        labelled = rotation_z(phi) @ rotation_y(theta) @ rotation_x(psi)
        assert worst(labelled, zyz_to_matrix(phi, theta, psi)) > 0.5
        np.testing.assert_allclose(labelled, rpy_to_matrix(psi, theta, phi), atol=1e-15)
        np.testing.assert_allclose(labelled[:, 0], zyz_to_matrix(phi, theta, 0.0)[:, 0], atol=1e-15)


def printed_krylov(psi: float, theta: float, phi: float) -> np.ndarray:
    """Document 003 eq. (3.13), as printed: a minus in the element (2, 1)."""
    matrix = krylov_to_matrix(psi, theta, phi)
    matrix[1, 0] = sin(psi) * cos(phi) - cos(psi) * sin(theta) * sin(phi)
    return matrix


def test_d_003_15_the_printed_krylov_matrix_is_not_orthogonal() -> None:
    errors = []
    for psi, theta, phi in GRID:
        printed = printed_krylov(psi, theta, phi)
        errors.append(krylov_to_matrix(psi, theta, phi)[1, 0] - printed[1, 0])
        assert errors[-1] == pytest.approx(2.0 * sin(phi) * sin(theta) * cos(psi), abs=1e-15)
        if abs(errors[-1]) > 0.1:
            with pytest.raises(ModelError, match="not orthogonal"):
                check_rotation(printed)
    assert max(np.abs(errors)) > 1.9  # of at most 2, where a rotation has at most 1


def test_d_003_16_the_printed_second_turn_stretches_space() -> None:
    """Document 003 eq. (3.4): x1 = x2, y1 = y2 - z2, z1 = y2 + z2, without its sines and cosines."""
    printed = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, 1.0, 1.0]])
    assert np.linalg.det(printed) == pytest.approx(2.0)
    for theta in (0.2, 1.0, pi / 4):
        assert worst(printed, rotation_x(theta)) > 0.29
    np.testing.assert_allclose(printed, sqrt(2.0) * rotation_x(pi / 4) + np.diag([1 - sqrt(2.0), 0, 0]), atol=1e-15)


def test_d_003_16_without_its_transpose_the_third_turn_runs_backwards() -> None:
    """Document 003 eq. (3.8) has {a}, (3.7) and (3.9) its transpose."""
    phi = 0.6
    spelled_out = np.array([[cos(phi), 0.0, sin(phi)], [0.0, 1.0, 0.0], [-sin(phi), 0.0, cos(phi)]])  # (3.7)
    printed = spelled_out.T
    np.testing.assert_allclose(krylov_to_matrix(0.0, 0.0, phi), spelled_out, atol=1e-16)
    assert matrix_to_krylov(printed) == pytest.approx((0.0, 0.0, -phi))


def test_d_003_16_the_labels_name_the_turns_in_an_order_they_do_not_have() -> None:
    """Eq. (3.10)-(3.13) name turns about axes 3, 2, 1; written out are 3 (z), 1 (x), 2 (y)."""
    psi, theta, phi = 0.4, 0.7, -0.9
    labelled = rotation_z(psi) @ rotation_y(phi) @ rotation_x(theta)
    assert worst(labelled, krylov_to_matrix(psi, theta, phi)) > 0.4
    ship = krylov_to_matrix(psi, theta, 0.0)  # (3.13a), which is printed right
    np.testing.assert_allclose(ship[0], [cos(psi), -sin(psi) * cos(theta), sin(psi) * sin(theta)], atol=1e-16)


def test_d_003_16_the_printed_arctan_loses_the_quadrant() -> None:
    """Theta = arctan(z1 / y1) of the axis y2 in the frame 1: beyond a quarter turn it is off by pi."""
    for theta in (2.0, -2.5, 3.0):
        _, y1, z1 = rotation_x(theta)[:, 1]
        printed = atan(z1 / y1)
        assert abs(abs(printed - theta) - pi) < 1e-12
        assert worst(rotation_x(printed), rotation_x(theta)) > 0.8
        np.testing.assert_allclose(
            krylov_to_matrix(*matrix_to_krylov(rotation_x(theta))), rotation_x(theta), atol=1e-15
        )


def angles_at(t: float) -> np.ndarray:
    return np.array([0.4 + 1.3 * t, 0.9 * sin(1.1 * t + 0.3), -1.0 + 0.7 * t * t])


def angle_rates_at(t: float) -> np.ndarray:
    return np.array([1.3, 0.99 * cos(1.1 * t + 0.3), 1.4 * t])


@pytest.mark.parametrize("t", [-1.5, -0.4, 0.0, 0.7, 2.0])
def test_angle_rates_give_the_angular_velocity_of_the_turning_matrix(t: float) -> None:
    h = 1e-5
    r = krylov_to_matrix(*angles_at(t))
    r_dot = (krylov_to_matrix(*angles_at(t + h)) - krylov_to_matrix(*angles_at(t - h))) / (2 * h)
    body, fixed = r.T @ r_dot, r_dot @ r.T
    angles, rates = angles_at(t), angle_rates_at(t)
    of_body = sets.krylov_rates_to_body_omega(angles, rates)
    of_fixed = sets.krylov_rates_to_fixed_omega(angles, rates)
    np.testing.assert_allclose(of_body, unskew((body - body.T) / 2), atol=1e-8)
    np.testing.assert_allclose(of_fixed, unskew((fixed - fixed.T) / 2), atol=1e-8)
    np.testing.assert_allclose(r @ of_body, of_fixed, atol=1e-14)


@given(psi=ANGLE, theta=st.floats(-1.57, 1.57), phi=ANGLE, omega=VECTOR)
@settings(max_examples=100)
def test_angle_rates_and_angular_velocity_undo_each_other(psi: float, theta: float, phi: float, omega: tuple) -> None:
    angles = np.array([psi, theta, phi])
    size = 1e-14 * (1.0 + float(np.linalg.norm(omega))) / cos(theta)
    rates = sets.body_omega_to_krylov_rates(angles, omega)
    np.testing.assert_allclose(sets.krylov_rates_to_body_omega(angles, rates), omega, rtol=0, atol=size)
    rates = sets.fixed_omega_to_krylov_rates(angles, omega)
    np.testing.assert_allclose(sets.krylov_rates_to_fixed_omega(angles, rates), omega, rtol=0, atol=size)


@pytest.mark.parametrize("to_omega", ["krylov_rates_to_body_omega", "krylov_rates_to_fixed_omega"])
def test_the_map_of_the_rates_has_the_determinant_cos_theta(to_omega: str) -> None:
    """The singular set of system 41: at theta = +-pi/2 one direction cannot be reached."""
    for angles in (*GRID[::11], (0.3, pi / 2, 1.0), (0.3, -pi / 2, 1.0)):
        columns = [getattr(sets, to_omega)(angles, unit) for unit in np.eye(3)]
        assert abs(np.linalg.det(np.array(columns))) == pytest.approx(abs(cos(angles[1])), abs=1e-14)


@pytest.mark.parametrize("to_rates", ["body_omega_to_krylov_rates", "fixed_omega_to_krylov_rates"])
@pytest.mark.parametrize("theta", [pi / 2, -pi / 2, pi / 2 - 5e-7, 3 * pi / 2])
def test_rates_in_gimbal_lock_are_refused_with_the_angle(to_rates: str, theta: float) -> None:
    with pytest.raises(InputError, match=r"theta: got -?\d.\d+ rad: gimbal lock") as refused:
        getattr(sets, to_rates)([0.1, theta, 0.2], [1.0, 0.0, 0.0])
    assert "quaternion" in str(refused.value)
    beside = getattr(sets, to_rates)([0.1, pi / 2 - 2e-6, 0.2], [1.0, 0.0, 0.0])
    assert np.all(np.isfinite(beside))


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
@pytest.mark.parametrize("function", [matrix_to_krylov, matrix_to_rpy, matrix_to_zyz])
def test_what_is_no_rotation_is_refused(function, matrix, error, words: str) -> None:
    with pytest.raises(error, match=words):
        function(matrix)


@pytest.mark.parametrize("name", ["krylov_to_matrix", "zyz_to_matrix"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, "right", [0.1, 0.2]])
def test_an_angle_that_is_none_is_refused_by_name(name: str, wrong) -> None:
    function = getattr(sets, name)
    for place, argument in enumerate(function.__code__.co_varnames[:3]):
        angles = [0.1] * 3
        angles[place] = wrong
        with pytest.raises(InputError, match=f"^{argument}: got"):
            function(*angles)


@pytest.mark.parametrize("function", [f for n, f in vars(sets).items() if "omega" in n])
def test_rates_and_angular_velocities_of_the_wrong_shape_are_refused(function) -> None:
    with pytest.raises(InputError, match=r"angles: got shape \(2,\); expected shape \(3,\)"):
        function([0.1, 0.2], [0.0, 0.0, 0.0])
    with pytest.raises(InputError, match=r"(rates|omega)\[1\]: got nan"):
        function([0.1, 0.2, 0.3], [0.0, np.nan, 0.0])
