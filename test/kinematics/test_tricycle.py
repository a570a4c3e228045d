"""A tricycle: arcs of the textbook, steering that is measured with an offset, and values that no tricycle has."""

from __future__ import annotations

from math import pi, tan

import numpy as np
import pytest

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.tricycle import Tricycle

RADIUS, LENGTH = 0.0325, 0.15


def test_a_steered_wheel_drives_the_arc_about_the_point_where_all_axles_meet() -> None:
    steering, tricycle = 0.4, Tricycle(RADIUS, LENGTH)
    rolled = tricycle.rolled([0.0, 2.0], [steering, steering])
    dx, dy, turn = tricycle.forward_matrix @ (rolled[1] - rolled[0])
    assert dy == 0.0
    assert dx / turn == pytest.approx(LENGTH / tan(steering), rel=1e-12)  # radius of the arc of the axle's middle
    front = planar.compose(planar.exponential([dx, dy, turn]), [LENGTH, 0.0, 0.0])[:2]
    centre = np.array([0.0, LENGTH / tan(steering)])
    assert np.hypot(*(front - centre)) == pytest.approx(np.hypot(*([LENGTH, 0.0] - centre)), rel=1e-12)


@pytest.mark.parametrize("steering", [-1.2, 0.0, 0.3, pi / 2])
def test_the_driven_wheel_rolls_its_reading_and_does_not_slip_across(steering: float) -> None:
    dx, dy, turn = Tricycle(RADIUS, LENGTH).forward_matrix @ Tricycle.rolled([0.0, 0.7], [steering] * 2)[1]
    at_wheel = np.array([dx, dy + LENGTH * turn])
    along, across = np.array([np.cos(steering), np.sin(steering)]), np.array([-np.sin(steering), np.cos(steering)])
    assert at_wheel @ along == pytest.approx(RADIUS * 0.7, abs=1e-15)
    assert at_wheel @ across == pytest.approx(0.0, abs=1e-15)


def test_an_offset_of_the_steering_is_as_if_the_reading_were_larger() -> None:
    measured = np.linspace(-0.5, 0.8, 20)
    angles = np.linspace(0.0, 6.0, 20)
    with_offset = Tricycle.rolled(angles, measured) @ Tricycle(RADIUS, LENGTH, 0.1).forward_matrix.T
    without = Tricycle.rolled(angles, measured + 0.1) @ Tricycle(RADIUS, LENGTH).forward_matrix.T
    assert with_offset == pytest.approx(without, abs=1e-15)


@pytest.mark.parametrize(
    ("values", "named"),
    [((0.0, LENGTH), "wheel_radius"), ((RADIUS, -1.0), "wheelbase"), ((RADIUS, LENGTH, 57.0), "is it in rad")],
)
def test_values_that_no_tricycle_has_are_refused(values: tuple[float, ...], named: str) -> None:
    with pytest.raises(ModelError, match=named):
        Tricycle(*values)


def test_readings_of_other_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="steering"):
        Tricycle.rolled([0.0, 1.0], [0.0])


def test_a_steering_angle_that_wraps_is_continued() -> None:
    rolled = Tricycle.rolled([0.0, 0.1, 0.2], [3.1, -3.1, 3.1])
    assert rolled[:, 0] == pytest.approx([0.0, -0.1, -0.2], abs=1e-3)
