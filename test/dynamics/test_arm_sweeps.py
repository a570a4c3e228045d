"""Sweeps of arms whose joints have one speed each: the same torques, mass matrix and derivatives as any tree's."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import random_description

from youbot_dynamics.dynamics.tree import bias_at, derivative_rows, mass_matrix_at, room_in, room_size, slopes_at


@pytest.mark.parametrize("branched", [False, True])
def test_the_sweeps_of_an_arm_are_those_of_the_tree(branched: bool) -> None:
    random = np.random.default_rng(4)
    for n in (1, 2, 5, 7, 9):
        tree = random_description(random, n, branched=branched).tree()
        layout, none = tree.layout, np.zeros((1, n, 6))
        room = room_in(np.zeros(room_size(n)), n)
        for _ in range(5):  # in the same room: nothing is left over
            q, v, a = random.uniform(-3.0, 3.0, n), random.normal(size=n), random.normal(size=n)
            matrix, dq, dv = np.full((3, n, n), np.nan)
            bias, torque = np.full((2, n), np.nan)
            mass_matrix_at(layout, q, room, matrix)
            bias_at(layout, v, room, bias)
            slopes_at(layout, v, a, room, torque, dq, dv)
            by_q, by_v, by_a = np.zeros((3, 1, n, n))
            derivative_rows(layout, q[None], v[None], a[None], none, by_q, by_v, by_a)
            zero = np.zeros(n)
            for found, expected in (
                (matrix, by_a[0]),
                (dq, by_q[0]),
                (dv, by_v[0]),
                (bias, tree.inverse_dynamics(q, v, zero)),
                (torque + layout.rotor_inertias * a, tree.inverse_dynamics(q, v, a)),
            ):
                np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max() + 1e-15)
