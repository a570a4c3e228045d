"""Mecanum kinematics against the geometry of the contact, document 003's formulas and the youBot driver's code."""

from __future__ import annotations

from math import atan, cos, pi, sin, tan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.robot import load_robot

R, H, L = 0.0475, 0.235, 0.150
SPEED = st.floats(-2.0, 2.0)
TWISTS = np.random.default_rng(0).uniform(-1.0, 1.0, (100, 3))
YOUBOT = MecanumBase.rectangular(R, H, L)


def three_wheels() -> MecanumBase:
    """Wheels at 0, 120 and 240 degrees with rollers of different angles, none of them like a youBot's."""
    places = np.array([[0.2 * cos(a), 0.2 * sin(a)] for a in (0.0, 2 * pi / 3, 4 * pi / 3)])
    return MecanumBase(places, np.array([0.05, 0.06, 0.04]), np.radians([60.0, -40.0, 15.0]), 0.97)


def six_wheels() -> MecanumBase:
    places = np.array([[x, y] for x in (0.4, 0.0, -0.4) for y in (0.25, -0.25)])
    return MecanumBase(places, np.full(6, 0.08), np.radians([-45.0, 45.0, 45.0, -45.0, -45.0, 45.0]))


ALL = [YOUBOT, MecanumBase.rectangular(0.05, 0.2, 0.3, 0.955), three_wheels(), six_wheels()]


def speed_along_roller_axis(base: MecanumBase, twist: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """Contact velocity of each wheel projected on its roller axis; the lateral factor turns the axis."""
    vx, vy, wz = twist
    result = []
    for (x, y), radius, angle, speed in zip(base.positions, base.radii, base.roller_angles, speeds, strict=True):
        spin = np.cross([0.0, speed, 0.0], [0.0, 0.0, -radius])  # rolls forward about +y
        contact = np.array([vx, vy, 0.0]) + np.cross([0.0, 0.0, wz], [x, y, 0.0]) + spin
        effective = atan(tan(angle) / base.lateral_factor)
        result.append(contact @ [cos(effective), sin(effective), 0.0])
    return np.array(result)


@pytest.mark.parametrize("base", ALL)
def test_twist_of_the_wheel_speeds_of_a_twist_is_that_twist(base: MecanumBase) -> None:
    for twist in TWISTS:
        np.testing.assert_allclose(base.twist(base.wheel_speeds(twist)), twist, atol=1e-12)
        np.testing.assert_allclose(base.slip(base.wheel_speeds(twist)), 0.0, atol=1e-12)


@pytest.mark.parametrize("base", ALL)
def test_no_contact_slides_along_its_roller_axis(base: MecanumBase) -> None:
    for twist in TWISTS:
        along = speed_along_roller_axis(base, twist, base.wheel_speeds(twist))
        np.testing.assert_allclose(along, 0.0, atol=1e-14)


@pytest.mark.parametrize("twist", TWISTS[:5])
def test_the_youbot_has_the_four_formulas_of_seed_003(twist: np.ndarray) -> None:
    vl, vt, omega = twist
    expected = [
        (vl - vt - (L + H) * omega) / R,
        (vl + vt + (L + H) * omega) / R,
        (vl + vt - (L + H) * omega) / R,
        (vl - vt + (L + H) * omega) / R,
    ]
    np.testing.assert_allclose(YOUBOT.wheel_speeds(twist), expected, rtol=1e-13)


@pytest.mark.parametrize("twist", TWISTS[:5])
def test_the_sign_map_gives_what_the_youbot_driver_computes(twist: np.ndarray) -> None:
    """FourSwedishWheelOmniBaseKinematic::cartesianVelocityToWheelVelocities, order FL, FR, BL, BR."""
    driver = load_robot().driver
    vx, vy, wz = twist
    lz = (L + H) * wz
    of_driver = np.array([-vx + vy + lz, vx + vy + lz, -vx - vy + lz, vx - vy + lz]) / R
    ours = driver.mecanum().wheel_speeds(twist) * np.array(driver.command_sign)
    np.testing.assert_allclose(ours, of_driver, rtol=1e-13)


def test_forward_kinematics_inverts_the_formula_by_radius_over_four() -> None:
    expected = R / 4 * np.array([[1, 1, 1, 1], [-1, 1, 1, -1], np.array([-1, 1, -1, 1]) / (L + H)])
    np.testing.assert_allclose(YOUBOT.forward_matrix, expected, atol=1e-15)


def test_the_printed_forward_kinematics_is_wrong_by_443() -> None:
    """Document 003, friction section: V_L = 1/(4R) (w1 + w2 + w3 + w4); D-003-2."""
    speeds = YOUBOT.wheel_speeds([0.3, 0.0, 0.0])
    printed = speeds.sum() / (4 * R)
    assert YOUBOT.twist(speeds)[0] == pytest.approx(0.3)
    assert printed / 0.3 == pytest.approx(443.2, abs=0.1)
    assert printed > 100.0  # [m/s]


def test_the_printed_forward_kinematics_has_no_turn() -> None:
    """The two printed rows cannot tell turning on the spot from standing; D-003-2."""
    speeds = YOUBOT.wheel_speeds([0.0, 0.0, 1.0])
    printed = np.array([[1, 1, 1, 1], [-1, 1, 1, -1]]) / (4 * R) @ speeds
    np.testing.assert_allclose(printed, 0.0, atol=1e-12)
    assert YOUBOT.twist(speeds)[2] == pytest.approx(1.0)


def test_lateral_factor_is_the_true_over_the_kinematic_sideways_speed() -> None:
    true = MecanumBase.rectangular(R, H, L, 0.955)
    speeds = YOUBOT.wheel_speeds([0.2, 0.4, 0.0])
    np.testing.assert_allclose(true.twist(speeds), [0.2, 0.955 * 0.4, 0.0], atol=1e-13)


def test_lateral_factor_changes_the_turn_only_by_the_arm_in_x() -> None:
    """Row of system 31: R w = vx + t vy + (x t - y) wz with t = tan(d) / factor."""
    true = MecanumBase.rectangular(R, H, L, 0.955)
    assert true.wheel_speeds([0.0, 0.0, 1.0])[1] == pytest.approx((H / 0.955 + L) / R)


def test_slip_is_the_part_along_the_null_vector_of_system_31() -> None:
    null = np.array([1.0, 1.0, -1.0, -1.0]) / 2
    np.testing.assert_allclose([YOUBOT.slip(wheel)[0] for wheel in np.eye(4)], null, atol=1e-12)
    np.testing.assert_allclose(YOUBOT.twist(null), 0.0, atol=1e-15)
    speeds = YOUBOT.wheel_speeds([0.3, -0.1, 0.5]) + 0.7 * null
    assert YOUBOT.slip(speeds) == pytest.approx([0.7])
    np.testing.assert_allclose(YOUBOT.twist(speeds), [0.3, -0.1, 0.5], atol=1e-13)


@given(speeds=st.lists(SPEED, min_size=6, max_size=6))
@settings(max_examples=50)
def test_wheel_speeds_split_into_motion_and_slip_of_any_base(speeds: list[float]) -> None:
    for base in ALL:
        n = len(base.radii)
        wheels = np.array(speeds[:n])
        slip = base.slip(wheels)
        assert slip.shape == (n - 3,)
        moving = base.wheel_speeds(base.twist(wheels))
        assert moving @ moving + slip @ slip == pytest.approx(wheels @ wheels, abs=1e-9)


def test_least_squares_twist_beats_every_neighbour() -> None:
    base, wheels = six_wheels(), np.random.default_rng(1).normal(size=6)
    best = base.twist(wheels)
    error = np.linalg.norm(base.wheel_speeds(best) - wheels)
    for nudge in np.vstack([np.eye(3), -np.eye(3)]) * 1e-3:
        assert np.linalg.norm(base.wheel_speeds(best + nudge) - wheels) > error


SQUARE = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
ANGLES = np.array([-pi / 4, pi / 4, pi / 4, -pi / 4])


@pytest.mark.parametrize(
    ("positions", "radii", "angles", "factor", "words"),
    [
        (SQUARE[:3], np.ones(4), ANGLES, 1.0, r"positions: got shape \(3, 2\); expected shape \(4, 2\)"),
        (SQUARE, np.ones(4), ANGLES[:3], 1.0, r"roller_angles: got shape \(3,\); expected shape \(4,\)"),
        (SQUARE[:2], np.ones(2), ANGLES[:2], 1.0, "got 2 wheels; expected at least 3"),
        (SQUARE.T, np.ones(4), ANGLES, 1.0, r"positions: got shape \(2, 4\)"),
        (SQUARE, np.array([1.0, 1.0, 0.0, 1.0]), ANGLES, 1.0, r"radii\[2\]: got 0; expected a finite number above 0"),
        (SQUARE, np.array([1.0, -1.0, 1.0, 1.0]), ANGLES, 1.0, r"radii\[1\]: got -1"),
        (SQUARE, np.array([1.0, 1.0, np.nan, 1.0]), ANGLES, 1.0, r"radii\[2\]: got nan"),
        (SQUARE, ["wide", 1.0, 1.0, 1.0], ANGLES, 1.0, "radii: got .*; expected numbers"),
        (np.where(SQUARE > 0, SQUARE, np.inf), np.ones(4), ANGLES, 1.0, r"positions\[1, 1\]: got inf"),
        (SQUARE, np.ones(4), ANGLES * np.array([1.0, 1.0, 1.0, np.nan]), 1.0, r"roller_angles\[3\]: got nan"),
        (SQUARE, np.ones(4), ANGLES, 0.0, "lateral_factor: got 0"),
        (SQUARE, np.ones(4), ANGLES, -1.0, "lateral_factor: got -1"),
        (SQUARE, np.ones(4), ANGLES, np.inf, "lateral_factor: got inf"),
        (SQUARE, np.ones(4), np.array([pi / 2, pi / 4, pi / 4, -pi / 4]), 1.0, r"roller_angles\[0\]: .* along y"),
        (SQUARE, np.ones(4), np.zeros(4), 1.0, "rank 2; .* undetermined"),
        (np.zeros((4, 2)), np.ones(4), ANGLES, 1.0, "rank 2; .* undetermined"),
    ],
)
def test_wheels_that_cannot_carry_a_base_are_refused(positions, radii, angles, factor, words) -> None:
    with pytest.raises(ModelError, match=words):
        MecanumBase(positions, radii, angles, factor)


@pytest.mark.parametrize("name", ["half_length", "half_width"])
@pytest.mark.parametrize("value", [-0.15, 0.0, np.nan])
def test_a_base_without_length_or_width_or_with_its_wheels_swapped_is_refused(name: str, value: float) -> None:
    lengths = {"half_length": H, "half_width": L, name: value}
    with pytest.raises(ModelError, match=rf"^{name}: got {value:g}; expected a finite number above 0 \[m\]"):
        MecanumBase.rectangular(R, **lengths)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_whether_wheels_determine_the_motion_does_not_depend_on_the_unit_of_length(unit: float) -> None:
    base = MecanumBase(SQUARE * unit, np.full(4, 0.1 * unit), ANGLES)
    twist = np.array([0.3 * unit, -0.2 * unit, 0.5])
    np.testing.assert_allclose(base.twist(base.wheel_speeds(twist)), twist, rtol=1e-12)
    with pytest.raises(ModelError, match="rank 2"):
        MecanumBase(SQUARE * unit, np.full(4, 0.1 * unit), np.full(4, pi / 4))


@pytest.mark.parametrize(
    ("twist", "words"),
    [
        ([0.1, 0.2], r"twist: got shape \(2,\); expected shape \(3,\)"),
        (np.zeros((1, 2)), r"twist: got shape \(1, 2\)"),
        (0.3, r"twist: got shape \(\)"),
        (np.array([0.1, np.nan, 0.0]), r"twist\[1\]: got nan"),
        ([0.1, 0.0, np.inf], r"twist\[2\]: got inf"),
        ("fast", "twist: got 'fast'; expected numbers"),
    ],
)
def test_a_twist_that_is_none_is_refused(twist, words) -> None:
    with pytest.raises(InputError, match=words):
        YOUBOT.wheel_speeds(twist)


@pytest.mark.parametrize("method", ["twist", "slip"])
@pytest.mark.parametrize(
    ("speeds", "words"),
    [
        (np.zeros(3), r"wheel_speeds: got shape \(3,\); expected shape \(4,\)"),
        (np.eye(5), r"wheel_speeds: got shape \(5, 5\)"),
        (np.array([0.0, 0.0, np.nan, 0.0]), r"wheel_speeds\[2\]: got nan"),
        ([np.inf, -np.inf, 0.0, 0.0], r"wheel_speeds\[0\]: got inf"),
    ],
)
def test_wheel_speeds_that_are_none_are_refused(method: str, speeds, words: str) -> None:
    with pytest.raises(InputError, match=words):
        getattr(YOUBOT, method)(speeds)


def test_whole_numbers_and_lists_are_as_good_as_arrays() -> None:
    as_array = YOUBOT.wheel_speeds(np.array([1.0, -2.0, 3.0]))
    np.testing.assert_array_equal(YOUBOT.wheel_speeds([1, -2, 3]), as_array)
    np.testing.assert_array_equal(YOUBOT.wheel_speeds(np.array([1, -2, 3])), as_array)


def test_a_base_is_frozen_to_the_last_number() -> None:
    for array in (YOUBOT.positions, YOUBOT.radii, YOUBOT.inverse_matrix, YOUBOT.forward_matrix):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        YOUBOT.lateral_factor = 2.0  # type: ignore[misc]


def test_a_base_leaves_the_arrays_it_was_made_from_alone() -> None:
    positions, radii = SQUARE.copy(), np.ones(4)
    base = MecanumBase(positions, radii, ANGLES)
    positions[0], radii[0] = 9.0, 9.0
    np.testing.assert_array_equal(base.positions, SQUARE)
    assert base.radii[0] == 1.0


@pytest.mark.parametrize("base", ALL)
def test_a_batch_is_the_loop_over_its_vectors(base: MecanumBase) -> None:
    n = len(base.radii)
    speeds = np.random.default_rng(3).normal(size=(5, 4, n))
    for method, batch in ((base.wheel_speeds, TWISTS.reshape(4, 25, 3)), (base.twist, speeds), (base.slip, speeds)):
        looped = [[method(vector) for vector in row] for row in batch]
        np.testing.assert_allclose(method(batch), looped, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(method(batch[0].tolist()), method(batch[0]))
        assert method(batch[:0]).shape == (0, *np.shape(looped)[1:])


def test_one_vector_gives_the_product_of_the_matrix_to_the_bit() -> None:
    for twist in TWISTS:
        np.testing.assert_array_equal(YOUBOT.wheel_speeds(twist), YOUBOT.inverse_matrix @ twist)
        np.testing.assert_array_equal(
            YOUBOT.twist(YOUBOT.wheel_speeds(twist)), YOUBOT.forward_matrix @ (YOUBOT.inverse_matrix @ twist)
        )


def test_a_batch_with_a_wrong_row_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match=r"twist: got shape \(2, 4\); expected shape \(n, 3\)"):
        YOUBOT.wheel_speeds(np.zeros((2, 4)))
    with pytest.raises(InputError, match=r"wheel_speeds\[1, 2\]: got nan"):
        YOUBOT.twist([[0.0] * 4, [0.0, 0.0, float("nan"), 0.0]])
    with pytest.raises(InputError, match="wheel_speeds"):
        YOUBOT.slip([[0.0] * 4, [0.0] * 3])
