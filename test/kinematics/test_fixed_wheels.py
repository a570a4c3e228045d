"""Wheels with plain tyres: they roll along their drive and do not slip across it, so a base cannot move sideways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.kinematics.roller_phase import RollingWheels

RADIUS, TRACK = 0.033, 0.16
BURGER = MecanumBase.differential(RADIUS, TRACK)


def drawn_base(seed: int, count: int) -> MecanumBase:
    """Fixed wheels on one line through any point in any direction, and an omni wheel if there are three."""
    random = np.random.default_rng([seed, count])
    drive, radii = random.uniform(-np.pi, np.pi), random.uniform(0.03, 0.2, count)
    axle = np.array([-np.sin(drive), np.cos(drive)])
    places = random.uniform(-0.3, 0.3, 2) + np.linspace(-0.4, 0.5, count)[:, None] * axle
    fixed, drives = np.arange(count) < 2, np.full(count, drive)
    if count == 3:
        places[2], drives[2] = random.uniform(-0.4, 0.4, 2), random.uniform(-np.pi, np.pi)
    return MecanumBase(places, radii, drives, 1.0, drives, fixed)


@pytest.mark.parametrize(("left", "right"), [(1.0, 1.0), (-2.0, 2.0), (0.0, 3.0), (5.0, -1.5)])
def test_a_differential_base_has_the_twist_of_the_textbook(left, right):
    expected = [RADIUS * (right + left) / 2.0, 0.0, RADIUS * (right - left) / TRACK]
    np.testing.assert_allclose(BURGER.twist([left, right]), expected, atol=1e-15)
    np.testing.assert_allclose(BURGER.wheel_speeds(expected), [left, right], atol=1e-12)


def test_wheels_of_their_own_radii_turn_a_differential_base_that_is_driven_straight():
    base = MecanumBase.differential(RADIUS, TRACK, (0.01, -0.01))
    np.testing.assert_allclose(base.radii, [0.03333, 0.03267], rtol=1e-12)
    assert base.twist([1.0, 1.0])[2] == pytest.approx(-0.02 * RADIUS / TRACK)


def test_a_differential_base_moves_ahead_and_turns_but_never_sideways():
    assert BURGER.free_axes.tolist() == [True, False, True]
    np.testing.assert_array_equal(BURGER.wheel_speeds([0.0, 0.3, 0.0]), 0.0)
    assert BURGER.twist([1.0, -4.0])[1] == 0.0
    assert BURGER.slip([1.0, -4.0]).shape == (0,)
    assert not BURGER.all_forward
    np.testing.assert_array_equal(BURGER.roller_gains, 0.0)


def test_bases_with_rollers_alone_move_along_all_axes():
    for base in (
        MecanumBase.rectangular(0.05, 0.2, 0.15),
        MecanumBase.omni_circle(0.04, 0.13, [2.6, 4.7, 0.5], [0.0] * 3),
    ):
        assert base.free_axes.tolist() == [True, True, True]
        np.testing.assert_array_equal(base.motions, np.eye(3))


@settings(max_examples=80)
@given(st.integers(0, 10_000), st.sampled_from([2, 3]))
def test_fixed_wheels_roll_without_slip_in_every_motion_they_allow(seed, count):
    base, random = drawn_base(seed, count), np.random.default_rng(seed)
    assert base.motions.shape == (3, 2)
    vx, vy, wz = twist = base.motions @ random.normal(size=2)
    for k in np.flatnonzero(base.fixed):
        (x, y), angle = base.positions[k], base.drive_angles[k]
        centre = np.array([vx - wz * y, vy + wz * x])
        assert abs(centre @ [-np.sin(angle), np.cos(angle)]) < 1e-12
        rim = centre @ [np.cos(angle), np.sin(angle)]
        assert base.wheel_speeds(twist)[k] * base.radii[k] == pytest.approx(rim, abs=1e-12)
    np.testing.assert_allclose(base.twist(base.wheel_speeds(twist)), twist, atol=1e-10)
    assert base.slip(base.wheel_speeds(twist)) == pytest.approx(np.zeros(count - 2), abs=1e-10)


@settings(max_examples=60)
@given(st.integers(0, 10_000))
def test_speeds_of_three_wheels_split_into_a_motion_and_one_slip(seed):
    base, speeds = drawn_base(seed, 3), np.random.default_rng(seed).normal(size=3)
    moving, slip = base.wheel_speeds(base.twist(speeds)), base.slip(speeds)
    assert slip.shape == (1,)
    assert moving @ moving + slip @ slip == pytest.approx(speeds @ speeds, rel=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_wheels_that_roll_a_step_move_the_base_by_the_same_twist(seed):
    """Two wheels on the y axis, and one that drives at an angle."""
    random = np.random.default_rng(seed)
    places = np.array([[0.0, 0.2], [0.0, -0.3], *random.uniform(0.2, 0.4, (1, 2))])
    drives, radii, step = np.array([0.0, 0.0, random.uniform(-3.0, 3.0)]), [0.05, 0.06, 0.03], random.normal(size=3)
    base = MecanumBase(places, radii, drives, 1.0, drives, [True, True, False])
    rolled = RollingWheels(base, 6.0, 0.02).roll(np.zeros(3), step)
    np.testing.assert_allclose(rolled.displacement, base.twist(step), atol=1e-12)
    np.testing.assert_allclose(rolled.residual, step - base.wheel_speeds(base.twist(step)), atol=1e-12)


def test_an_axle_behind_the_middle_swings_it_sideways_in_a_turn():
    base = MecanumBase([[-0.1, 0.2], [-0.1, -0.2]], [0.05, 0.05], [0.0, 0.0], fixed=[True, True])
    np.testing.assert_allclose(base.twist([-1.0, 1.0]), [0.0, 0.1 * 0.25, 0.25], atol=1e-12)
    assert base.free_axes.tolist() == [True, False, False]
    with pytest.raises(ModelError, match="fixed wheels off its y axis.*in the middle between"):
        RollingWheels(base, 6.0, 0.02)


def test_a_turn_from_a_gyro_takes_the_place_of_that_of_two_wheels():
    rolled = RollingWheels(BURGER, 6.0, 0.02).roll([0.0, 0.0], [1.0, 1.2], turn=0.03)
    np.testing.assert_allclose(rolled.displacement, [RADIUS * 1.1, 0.0, 0.03], atol=1e-12)
    np.testing.assert_allclose(rolled.residual, [-0.1 + 0.03 * TRACK / 2 / RADIUS, 0.1 - 0.03 * TRACK / 2 / RADIUS])


def test_a_path_of_two_wheels_is_the_arc_about_the_centre_of_the_turn():
    angles = np.linspace(0.0, 1.0, 50)[:, None] * [10.0, 30.0]
    end = RollingWheels(BURGER, 6.0, 0.02).path(angles)[-1]
    turn, way = RADIUS * 20.0 / TRACK, RADIUS * 20.0
    np.testing.assert_allclose(end, [way / turn * np.sin(turn), way / turn * (1.0 - np.cos(turn)), turn], atol=1e-9)


def test_fixed_wheels_of_two_axles_are_refused_since_they_slip_in_turns():
    corners = np.array([[0.2, 0.15], [0.2, -0.15], [-0.2, 0.15], [-0.2, -0.15]])
    with pytest.raises(ModelError, match="skid steering.*effective track"):
        MecanumBase(corners, [0.05] * 4, [0.0] * 4, fixed=[True] * 4)


def test_wheels_that_leave_a_motion_open_are_refused():
    with pytest.raises(ModelError, match="got 1 wheels; expected at least 2"):
        MecanumBase([[0.0, 0.1]], [0.05], [0.0], fixed=[True])
    with pytest.raises(ModelError, match="rank 1; expected rank 2"):
        MecanumBase([[0.0, 0.1], [0.0, 0.1]], [0.05] * 2, [0.0] * 2, fixed=[True] * 2)
    with pytest.raises(ModelError, match=r"lateral_factor: got 0\.95 for wheels that have no rollers"):
        MecanumBase(BURGER.positions, BURGER.radii, [0.0, 0.0], 0.95, fixed=[True] * 2)
    with pytest.raises(InputError, match="radius_errors"):
        MecanumBase.differential(0.05, 0.4, (0.0, 0.0, 0.0))
    with pytest.raises(ModelError, match="track"):
        MecanumBase.differential(0.05, 0.0)
    with pytest.raises(ModelError, match="roller phases.*no rollers"):
        RollingWheels(BURGER, 6.0, 0.02, [0.0, 0.0])
