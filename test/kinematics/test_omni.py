"""Omni wheels against the geometry of the contact: wheels at any place that drive in any direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.kinematics.roller_phase import RollingWheels

ANGLES = np.radians([150.0, 270.0, 30.0])
CIRCLE = MecanumBase.omni_circle(0.04, 0.13, ANGLES, (0.0, 0.0, 0.0))
TWIST = st.tuples(*[st.floats(-2.0, 2.0)] * 3)


def drawn_base(seed: int, count: int) -> MecanumBase:
    random = np.random.default_rng([seed, count])
    places = random.uniform(-0.4, 0.4, (count, 2))
    return MecanumBase.omni(places, random.uniform(-np.pi, np.pi, count), random.uniform(0.03, 0.1, count))


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([3, 4, 6]), TWIST)
def test_an_omni_wheel_rolls_along_its_drive_as_fast_as_its_centre_moves_there(seed, count, twist):
    base, (vx, vy, wz) = drawn_base(seed, count), twist
    for (x, y), radius, angle, speed in zip(
        base.positions, base.radii, base.drive_angles, base.wheel_speeds(twist), strict=True
    ):
        centre = np.array([vx, vy, 0.0]) + np.cross([0.0, 0.0, wz], [x, y, 0.0])
        axle = np.array([-np.sin(angle), np.cos(angle), 0.0])
        slides = centre + np.cross(speed * axle, [0.0, 0.0, -radius])
        # Its rollers turn about the drive: what is left points across it.
        assert abs(slides @ [np.cos(angle), np.sin(angle), 0.0]) < 1e-12


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([3, 4, 6]), TWIST)
def test_the_twist_of_the_speeds_of_a_twist_is_that_twist_on_omni_wheels(seed, count, twist):
    base = drawn_base(seed, count)
    strength = np.linalg.svd(base.inverse_matrix, compute_uv=False)
    np.testing.assert_allclose(base.twist(base.wheel_speeds(twist)), twist, atol=1e-12 * strength[0] / strength[-1])
    assert base.slip(base.wheel_speeds(twist)).shape == (count - 3,)


def test_wheels_have_no_lateral_factor_unless_one_is_given():
    youbot = MecanumBase.rectangular(0.05, 0.2, 0.15)
    base = MecanumBase(youbot.positions, youbot.radii, youbot.roller_angles)
    np.testing.assert_allclose(base.wheel_speeds([0.0, 0.1, 0.0]), [-2.0, 2.0, 2.0, -2.0], rtol=1e-12)


def test_wheels_on_a_circle_keep_their_own_radii():
    base = MecanumBase.omni_circle(0.04, 0.13, ANGLES, (0.01, -0.02, 0.0))
    np.testing.assert_allclose(base.radii, [0.0404, 0.0392, 0.04], rtol=1e-15)
    np.testing.assert_allclose(base.wheel_speeds([0.0, 0.0, 1.0]), 0.13 / base.radii, rtol=1e-12)


def test_wheels_that_drive_across_are_taken_and_do_not_turn_ahead():
    across = np.pi / 2.0
    base = MecanumBase.omni([[0.2, 0.0], [0.0, 0.2], [-0.2, 0.0], [0.0, -0.2]], [across, 0.0, across, 0.0], [0.05] * 4)
    np.testing.assert_allclose(base.wheel_speeds([0.1, 0.0, 0.0]), [0.0, 2.0, 0.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(base.wheel_speeds([0.0, 0.1, 0.0]), [2.0, 0.0, 2.0, 0.0], atol=1e-12)


def test_a_wheel_with_slanted_rollers_may_drive_in_any_direction():
    """A youBot whose front is called left: the same wheels, seen from a frame turned by a quarter."""
    youbot = MecanumBase.rectangular(0.0475, 0.235, 0.15)
    quarter, turn = np.array([[0.0, -1.0], [1.0, 0.0]]), np.pi / 2.0
    turned = MecanumBase(youbot.positions @ quarter.T, youbot.radii, youbot.roller_angles + turn, 1.0, np.full(4, turn))
    twist = np.array([0.3, -0.2, 0.5])
    seen = np.array([*(quarter @ twist[:2]), twist[2]])
    np.testing.assert_allclose(turned.wheel_speeds(seen), youbot.wheel_speeds(twist), atol=1e-12)
    np.testing.assert_allclose(turned.roller_gains, youbot.roller_gains, atol=1e-12)


def test_wheels_that_all_drive_forward_give_the_same_bits_with_and_without_their_angles():
    places, angles = (
        [[0.2, 0.1], [0.2, -0.1], [-0.2, 0.1], [-0.2, -0.1]],
        np.pi / 4.0 * np.array([-1.0, 1.0, 1.0, -1.0]),
    )
    without = MecanumBase(places, [0.05] * 4, angles, 0.955)
    with_them = MecanumBase(places, [0.05] * 4, angles, 0.955, np.zeros(4))
    np.testing.assert_array_equal(without.inverse_matrix, with_them.inverse_matrix)


def test_omni_wheels_have_no_lateral_factor_and_no_roller_phases():
    with pytest.raises(ModelError, match=r"lateral_factor: got 0\.955 for wheels that do not all drive forward"):
        MecanumBase(CIRCLE.positions, CIRCLE.radii, ANGLES, 0.955, ANGLES)
    assert RollingWheels(CIRCLE, 8.0, 0.03).constants.pitch == 0.0
    with pytest.raises(ModelError, match="roller phases.*omni wheels"):
        RollingWheels(CIRCLE, 8.0, 0.03, np.zeros(3))


@pytest.mark.parametrize(
    ("angles", "words"),
    [
        (np.array([150.0, 270.0, 30.0]), r"angles\[0\]: got 150; expected at most a full turn"),
        (np.zeros(3), "rank 2; .* undetermined"),
        (ANGLES[:2], r"got shape \(2,\)"),
    ],
)
def test_drives_that_no_base_can_have_are_refused(angles, words):
    with pytest.raises(ModelError, match=words):
        MecanumBase.omni(CIRCLE.positions, angles, CIRCLE.radii)


def test_a_roller_axis_across_its_drive_is_refused():
    with pytest.raises(ModelError, match=r"roller_angles\[0\]: .* across the drive"):
        MecanumBase(CIRCLE.positions, CIRCLE.radii, ANGLES + [np.pi / 2.0, 0.0, 0.0], 1.0, ANGLES)


def test_three_wheels_take_every_turn_of_theirs_for_motion():
    wheels = RollingWheels(CIRCLE, 8.0, 0.03)
    rolled = wheels.roll(np.zeros(3), [0.3, -0.1, 0.2])
    np.testing.assert_allclose(rolled.displacement, CIRCLE.twist([0.3, -0.1, 0.2]), atol=1e-15)
    np.testing.assert_allclose(rolled.residual, 0.0, atol=1e-15)


@pytest.mark.parametrize("wrong", [None, "1", np.nan, 0.0, -0.1, 10**400, [0.1, 0.2]])
def test_a_radius_or_a_distance_that_is_none_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(ModelError, match="^wheel_radius: got .*; expected a finite number above 0 .m"):
        MecanumBase.omni_circle(wrong, 0.13, ANGLES, (0.0, 0.0, 0.0))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="^distance: got .*; expected a finite number above 0 .m"):
        MecanumBase.omni_circle(0.04, wrong, ANGLES, (0.0, 0.0, 0.0))  # type: ignore[arg-type]
