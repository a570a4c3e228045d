"""Mass, inertia and the equations of one rigid body, against clouds of points; systems 18 to 20."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_trees import random_rotation

from youbot_dynamics.dynamics.rigid_body import check_inertia, inertia_about, point_inertia
from youbot_dynamics.errors import InputError, ModelError


def test_an_inertia_about_a_pole_is_that_of_the_body_and_of_its_mass_in_its_centre() -> None:
    """Two points, moments and products one by one."""
    masses, points = np.array([1.0, 3.0]), np.array([[1.0, 2.0, -1.0], [5.0, -2.0, 3.0]])
    centre = masses @ points / 4.0
    central = sum(point_inertia(m, p - centre) for m, p in zip(masses, points, strict=True))
    (a, b, c), (d, e, f) = points
    about_origin = [
        [b * b + c * c + 3 * (e * e + f * f), -a * b - 3 * d * e, -a * c - 3 * d * f],
        [-a * b - 3 * d * e, a * a + c * c + 3 * (d * d + f * f), -b * c - 3 * e * f],
        [-a * c - 3 * d * f, -b * c - 3 * e * f, a * a + b * b + 3 * (d * d + e * e)],
    ]
    np.testing.assert_allclose(inertia_about(central, 4.0, centre), about_origin, rtol=1e-12)


def test_rods_and_points_are_bodies_though_their_inertia_is_not_positive_definite() -> None:
    """Document 002 asks for a positive definite inertia; a rod has none about its own axis, a point none at all."""
    rod = point_inertia(1.0, [0.0, 0.0, 0.1]) + point_inertia(2.0, [0.0, 0.0, 0.5])
    assert np.linalg.eigvalsh(rod)[0] == 0.0
    check_inertia("rod", 3.0, rod)
    check_inertia("point", 3.0, np.zeros((3, 3)))
    check_inertia("nothing", 0.0, np.zeros((3, 3)))


@settings(max_examples=50)
@given(st.lists(st.floats(0.01, 2.0), min_size=3, max_size=3), st.integers(0, 10**6))
def test_every_cloud_of_points_passes_and_every_broken_triangle_does_not(squares: list[float], seed: int) -> None:
    """Moments of a distribution with variances s are (s2 + s3, s1 + s3, s1 + s2); whatever its axes."""
    x, y, z = squares
    turn = random_rotation(np.random.default_rng(seed))
    check_inertia("body", 1.0, turn @ np.diag([y + z, x + z, x + y]) @ turn.T)
    broken = turn @ np.diag([y + z, x + z, x + y + 2 * z + 1e-3]) @ turn.T
    with pytest.raises(ModelError, match="body 'body'.*sum of the other two"):
        check_inertia("body", 1.0, broken)


@pytest.mark.parametrize(
    ("mass", "inertia", "says"),
    [
        (-1.0, np.eye(3), "mass of body 'lid': got -1"),
        (np.nan, np.eye(3), "mass of body 'lid': got nan"),
        (1.0, np.diag([1.0, 1.0, -0.5]), "inertia of body 'lid': got principal moments -0.5.*none negative"),
        (1.0, np.diag([1.0, 1.0, 2.5]), "inertia of body 'lid'.*1, 1, 2.5.*sum of the other two"),
        (1.0, np.eye(3) + [[0, 0.1, 0], [0, 0, 0], [0, 0, 0]], "inertia of body 'lid'.*not symmetric"),
        (0.0, np.eye(3), "inertia of body 'lid'.*without any mass"),
    ],
)
def test_an_inertia_no_body_has_is_refused_by_name(mass: float, inertia: np.ndarray, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        check_inertia("lid", mass, inertia)


ONE, ZERO = np.eye(3), np.zeros(3)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: point_inertia(1.0, [0.0, 0.0]), r"offset: got shape \(2,\); expected shape \(3,\)"),
        (lambda: inertia_about(ONE, 1.0, [np.nan, 0.0, 0.0]), r"offset\[0\]: got nan"),
        (lambda: inertia_about(np.eye(2), 1.0, ZERO), r"inertia: got shape \(2, 2\); expected shape \(3, 3\)"),
        (lambda: check_inertia("lid", 1.0, np.eye(2)), r"inertia of body 'lid': got shape \(2, 2\)"),
        (lambda: check_inertia("lid", 1.0, np.nan * ONE), r"inertia of body 'lid'\[0, 0\]: got nan"),
    ],
)
def test_arguments_of_a_wrong_shape_or_not_finite_are_refused_by_name(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ask()


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: point_inertia(-1.0, ZERO), "mass: got -1; expected a finite number of at least 0"),
        (lambda: inertia_about(ONE, np.inf, ZERO), "mass: got inf"),
        (lambda: inertia_about(np.diag([1.0, 1.0, 3.0]), 1.0, ZERO), "inertia: got principal moments 1, 1, 3"),
    ],
)
def test_bodies_that_cannot_be_are_refused(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        ask()
