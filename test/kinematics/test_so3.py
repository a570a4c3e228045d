"""Turns that are almost none, to their last digits."""

from __future__ import annotations

from math import sin

import numpy as np
import pytest

from youbot_dynamics.kinematics import so3


@pytest.mark.parametrize("turn", [1e-12, 3e-6, 9.9e-5, 1.01e-4])
def test_the_jacobian_of_a_small_turn_keeps_its_digits(turn: float) -> None:
    """(1 - cos a) / a beside the diagonal, computed without a difference."""
    jacobian = so3.left_jacobian([turn, 0.0, 0.0])
    exact = 2.0 * sin(0.5 * turn) ** 2 / turn
    np.testing.assert_allclose([jacobian[2, 1], -jacobian[1, 2]], exact, rtol=1e-13)
    np.testing.assert_allclose(1.0 - np.diag(jacobian), [0.0, turn**2 / 6.0, turn**2 / 6.0], atol=2e-16)
