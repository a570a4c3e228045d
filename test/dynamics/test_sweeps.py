"""Sweeps through a tree: torques, mass matrix and derivatives, against the recursion and Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import full, random_state, random_twin, wrenches_of

from youbot_dynamics.dynamics.tree import Tree, bias_at, mass_matrix_at, room_in, room_size, slopes_at

ALL = ("revolute", "revolute", "prismatic", "fixed")
OPTIONS = {
    "arm": {"branched": False},
    "branched": {"branched": True},
    "floating": {"kinds": ALL, "branched": True, "floating_base": True},
}


def swept(
    tree: Tree, q: np.ndarray, v: np.ndarray, a: np.ndarray, external: np.ndarray | None, space: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Mass matrix, bias torques, torques of a with external wrenches, and their derivatives by q and v."""
    layout, n, nv = tree.layout, len(tree.names), tree.nv
    room = room_in(space, n, nv)
    matrix, dq, dv = np.full((3, nv, nv), np.nan)
    bias, torque = np.full((2, nv), np.nan)
    mass_matrix_at(layout, q, room.placed, matrix)
    bias_at(layout, v, room, bias)
    slopes_at(layout, v, a, room.none if external is None else external, room, torque, dq, dv)
    return matrix, bias, torque, dq, dv


@pytest.mark.parametrize("kind", OPTIONS)
def test_sweeps_are_the_recursion_and_its_differences(kind: str) -> None:
    """Each column of the mass matrix is the torque of a unit acceleration, less the bias."""
    random = np.random.default_rng(4)
    for n in (1, 2, 5, 7, 9):
        tree = random_twin(random, n, **OPTIONS[kind]).tree
        nv, space = tree.nv, np.zeros(room_size(n, tree.nv))
        for k in range(5):  # in the same room: nothing is left over
            q, v = random_state(random, tree)
            a, external = random.normal(size=nv), random.normal(size=(n, 6)) if k % 2 else None
            matrix, bias, torque, dq, dv = swept(tree, q, v, a, external, space)
            free = tree.inverse_dynamics(q, v, np.zeros(nv))
            columns = [tree.inverse_dynamics(q, v, unit) - free for unit in np.eye(nv)]
            for found, expected in (
                (matrix, np.array(columns).reshape(nv, nv)),
                (bias, free),
                (torque + tree.layout.rotor_inertias * a, tree.inverse_dynamics(q, v, a, external)),
            ):
                scale = np.abs(expected).max(initial=0.0) + np.abs(free).max(initial=0.0)
                np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * scale + 1e-15)
            step = 1e-5
            for slope, at in (
                (dq, lambda d: tree.inverse_dynamics(tree.step(q, d, 1.0), v, a, external)),  # noqa: B023
                (dv, lambda d: tree.inverse_dynamics(q, v + d, a, external)),  # noqa: B023
            ):
                differences = [(at(step * unit) - at(-step * unit)) / (2.0 * step) for unit in np.eye(nv)]
                expected = np.array(differences).reshape(nv, nv).T
                np.testing.assert_allclose(slope, expected, rtol=0.0, atol=1e-7 * max(1.0, np.abs(dq).max(initial=0.0)))


@pytest.mark.parametrize("kind", OPTIONS)
def test_sweeps_are_those_of_pinocchio(kind: str) -> None:
    pin = pytest.importorskip("pinocchio")
    random = np.random.default_rng(4)
    for n in (1, 2, 5, 7, 9):
        twin = random_twin(random, n, **OPTIONS[kind])
        tree, model, data = twin.tree, twin.model, twin.data
        space = np.zeros(room_size(n, tree.nv))
        for _ in range(5):
            q, v = random_state(random, tree)
            a, external = random.normal(size=tree.nv), random.normal(size=(n, 6))
            matrix, _, _, dq, dv = swept(tree, q, v, a, external, space)
            pin.computeRNEADerivatives(model, data, q, v, a, wrenches_of(twin, external))
            for found, expected in ((matrix, full(pin.crba(model, data, q))), (dq, data.dtau_dq), (dv, data.dtau_dv)):
                scale = max(1.0, np.abs(expected).max(initial=0.0))
                np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * scale)
