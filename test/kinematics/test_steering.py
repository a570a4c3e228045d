"""A driven and steered wheel: arcs of the textbook, an offset of the steering, and how it is turned for a motion."""

from __future__ import annotations

from math import cos, pi, sin, tan

import numpy as np
import pytest

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.kinematics.steering import JointMotion, RolledAngles, joint_orders, rolled, rolling, steered

RADIUS, LENGTH = 0.0325, 0.15
TRICYCLE = MecanumBase.tricycle(RADIUS, LENGTH)
LIMIT = pi / 2


def test_a_steered_wheel_drives_the_arc_about_the_point_where_all_axles_meet() -> None:
    steering = 0.4
    dx, dy, turn = TRICYCLE.twist(rolled([[0.0, steering], [2.0, steering]])[1])
    assert dy == 0.0
    assert dx / turn == pytest.approx(LENGTH / tan(steering), rel=1e-12)  # radius of the arc of the axle's middle
    front = planar.compose(planar.exponential([dx, dy, turn]), [LENGTH, 0.0, 0.0])[:2]
    centre = np.array([0.0, LENGTH / tan(steering)])
    assert np.hypot(*(front - centre)) == pytest.approx(np.hypot(*([LENGTH, 0.0] - centre)), rel=1e-12)


@pytest.mark.parametrize("steering", [-1.2, 0.0, 0.3, pi / 2])
def test_the_driven_wheel_rolls_its_reading_and_does_not_slip_across(steering: float) -> None:
    dx, dy, turn = TRICYCLE.twist(rolling([0.7, 0.0], [0.0, steering]))
    at_wheel = np.array([dx, dy + LENGTH * turn])
    along, across = np.array([cos(steering), sin(steering)]), np.array([-sin(steering), cos(steering)])
    assert at_wheel @ along == pytest.approx(RADIUS * 0.7, abs=1e-15)
    assert at_wheel @ across == pytest.approx(0.0, abs=1e-15)


def test_an_offset_of_the_steering_is_as_if_the_reading_were_larger() -> None:
    readings = np.column_stack([np.linspace(0.0, 6.0, 20), np.linspace(-0.5, 0.8, 20)])
    offset = MecanumBase.tricycle(RADIUS, LENGTH, 0.1)
    assert offset.steering_offset == 0.1
    assert offset.twist(rolled(readings)) == pytest.approx(TRICYCLE.twist(rolled(readings + [0.0, 0.1])), abs=1e-15)
    turned = offset.wheel_speeds([0.1, 0.0, 0.5])
    speed, angle = steered(turned, 0.0, LIMIT)
    assert [speed * cos(angle + 0.1), speed * sin(angle + 0.1)] == pytest.approx([0.1 / RADIUS, 0.5 * LENGTH / RADIUS])


def test_orders_of_twists_never_reverse_a_wheel_that_turns_a_quarter_turn_to_either_side() -> None:
    """From 1.4 rad on one side to 1.4 on the other, the wheel backward would be nearer, beyond its steering."""
    twists = [[0.05, 0.0, sign * 0.05 * tan(1.4) / LENGTH] for sign in (1.0, -1.0)]
    wished = np.array([TRICYCLE.wheel_speeds(twist) for twist in twists])
    np.testing.assert_allclose(joint_orders(wished, LIMIT)[:, 1], [1.4, -1.4], atol=1e-12)
    assert np.all(joint_orders(wished, LIMIT)[:, 0] > 0.0)
    np.testing.assert_allclose(joint_orders(wished, pi)[:, 1], [1.4, pi - 1.4], atol=1e-12)


def test_the_base_has_no_sideways_axis_and_its_wheel_the_speed_of_its_rim() -> None:
    assert TRICYCLE.free_axes.tolist() == [True, False, True]
    assert TRICYCLE.reach == pytest.approx(LENGTH)
    assert TRICYCLE.fastest(TRICYCLE.wheel_speeds([0.3, 0.0, 2.0])) == pytest.approx(np.hypot(0.3, 0.3) / RADIUS)
    assert len(TRICYCLE.slip([1.0, 2.0])) == 0


@pytest.mark.parametrize(
    ("values", "named"),
    [((0.0, LENGTH), "wheel_radius"), ((RADIUS, -1.0), "wheelbase"), ((RADIUS, LENGTH, 57.0), "is it in rad")],
)
def test_values_that_no_tricycle_has_are_refused(values: tuple[float, ...], named: str) -> None:
    with pytest.raises(ModelError, match=named):
        MecanumBase.tricycle(*values)


def test_readings_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match="steered wheel"):
        rolled([0.0, 1.0])


def test_a_steering_angle_that_wraps_is_continued_and_a_missing_reading_is_left_out() -> None:
    readings = np.array([[0.0, 3.1], [0.1, -3.1], [np.nan, 0.0], [0.2, 3.1]])
    ways = rolled(readings)
    assert ways[[0, 1, 3], 0] == pytest.approx([0.0, -0.1, -0.2], abs=1e-3)
    assert np.all(np.isnan(ways[2]))
    one_by_one = RolledAngles(True)
    assert np.array([one_by_one.take(reading) for reading in readings]) == pytest.approx(ways, abs=1e-12, nan_ok=True)


def test_the_wheel_takes_the_nearer_of_two_angles_and_keeps_it_at_rest() -> None:
    assert steered([1.0, 1.0], 0.0, LIMIT) == pytest.approx((np.sqrt(2.0), pi / 4))
    assert steered([-1.0, 1.0], -1.0, LIMIT) == pytest.approx((-np.sqrt(2.0), -pi / 4))  # backwards
    assert steered([0.0, 1.0], 0.3, LIMIT) == pytest.approx((1.0, pi / 2))
    assert steered([0.0, 1.0], -0.3, LIMIT) == pytest.approx((-1.0, -pi / 2))
    assert steered([0.0, 0.0], 0.7, LIMIT) == (0.0, 0.7)


def test_a_limit_cuts_the_turn_and_keeps_the_way_and_forbids_turns_on_the_spot() -> None:
    speed, angle = steered([2.0, 5.0], 0.0, 0.5)
    assert (angle, speed * cos(angle)) == pytest.approx((0.5, 2.0))
    assert steered([0.0, 5.0], 0.2, 0.5) == (0.0, 0.2)


def test_a_wheel_that_turns_slowly_hardly_rolls_before_it_has_its_angle() -> None:
    speed, angle = steered([0.0, 2.0], 0.0, LIMIT, 0.1)
    assert (speed, angle) == pytest.approx((2.0 * sin(0.1) ** 2, 0.1))
    assert steered([-0.1, -2.0], 1.4, 1.5, 0.1)[0] < 0.0, "backwards"
    assert steered([0.1, -2.0], 1.4, 1.5, 0.1)[0] == 0.0, "it waits: its limit keeps it from going on"


def test_a_wrapped_steering_angle_adds_up_as_one_that_goes_on() -> None:
    angles = 0.3 * np.sin(np.arange(40))
    plain, wrapped = JointMotion(), JointMotion()
    for k, angle in enumerate(angles.tolist()):
        told = wrapped.take(0.02 * k, np.array([1.0, angle % (2.0 * pi)]))
        assert told == pytest.approx(plain.take(0.02 * k, np.array([1.0, angle])))
