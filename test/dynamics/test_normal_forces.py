"""Weight shared by a plate on springs: balance, the patterns of document 004 where they hold, and where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from wheeled_bases import RING

from youbot_dynamics.dynamics.normal_forces import normal_forces, support_matrix
from youbot_dynamics.errors import InputError

WEIGHT = 60.0 * 9.81
TRAPEZOID = np.array([[0.25, 0.15], [0.25, -0.15], [-0.25, -0.25], [-0.25, 0.25]])


def pattern_of_the_document(contacts: np.ndarray, load: np.ndarray) -> np.ndarray:
    """mg/n +-Nx +-Ny in ring order FL, FR, RR, RL (ML, MR), Nx and Ny from the two balances of moments."""
    n = len(contacts)
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1], [0, 1], [0, -1]])[:n]
    even = np.full(n, load[0] / n)
    unknown = np.linalg.solve(contacts.T @ signs, load[1:] - contacts.T @ even)
    return even + signs @ unknown


def loads(seed: int) -> np.ndarray:
    """Weight of a centre of mass somewhere between the wheels."""
    x, y = np.random.default_rng(seed).uniform(-0.08, 0.08, 2)
    return WEIGHT * np.array([1.0, x, y])


def test_moments_are_about_the_origin_where_no_pole_is_given() -> None:
    contacts = RING[:4] + [0.3, -0.1]
    forces = WEIGHT * support_matrix(contacts, np.ones(4)) @ [1.0, 0.25, -0.05]
    np.testing.assert_allclose([forces.sum(), *(contacts.T @ forces)], WEIGHT * np.array([1.0, 0.25, -0.05]))
    np.testing.assert_allclose(normal_forces(contacts, np.ones(4), WEIGHT * np.array([1.0, 0.25, -0.05])), forces)


@pytest.mark.parametrize("n", [4, 6])
def test_in_a_rectangle_the_plate_gives_the_pattern_of_the_document(n: int) -> None:
    for seed in range(20):
        load = loads(seed)
        found = normal_forces(RING[:n], np.ones(n), load)
        np.testing.assert_allclose(found, pattern_of_the_document(RING[:n], load), atol=1e-11)


def plate_is_flat(contacts: np.ndarray, forces: np.ndarray) -> float:
    plane = np.column_stack([np.ones(len(contacts)), contacts])
    return float(np.max(np.abs(plane @ np.linalg.lstsq(plane, forces, rcond=None)[0] - forces)))


def test_in_a_trapezoid_the_pattern_of_the_document_bends_the_plate() -> None:
    worst = 0.0
    for seed in range(60):
        load = loads(seed)
        found, printed = normal_forces(TRAPEZOID, np.ones(4), load), pattern_of_the_document(TRAPEZOID, load)
        np.testing.assert_allclose(plate_is_flat(TRAPEZOID, found), 0.0, atol=1e-10)
        worst = max(worst, np.max(np.abs(found - printed)))
    print(f"trapezoid: up to {worst:.1f} N")
    assert worst > 3.0 and plate_is_flat(TRAPEZOID, printed) > 0.5


def test_six_wheels_need_the_middle_ones_half_way_and_on_the_same_track() -> None:
    contacts = RING.copy()
    contacts[4:] = [[0.08, 0.26], [0.08, -0.26]]
    differences = []
    for seed in range(60):
        found, printed = (
            normal_forces(contacts, np.ones(6), loads(seed)),
            pattern_of_the_document(contacts, loads(seed)),
        )
        differences.append(np.max(np.abs(found - printed)))
    print(f"six wheels: up to {max(differences):.1f} N")
    assert max(differences) > 3.0


def test_the_ring_order_matters() -> None:
    """In the order of document 003 (FL, FR, RL, RR) the same pattern solves no balance: its moments contradict."""
    rows = RING[[0, 1, 3, 2]]
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    assert abs(np.linalg.det(RING[:4].T @ signs)) > 0.1
    assert np.linalg.matrix_rank(rows.T @ signs) < 2


@pytest.mark.parametrize("n", [3, 4, 5, 7])
def test_any_layout_carries_the_load_with_the_least_energy_in_its_springs(n: int) -> None:
    random = np.random.default_rng(n)
    contacts, springs = random.normal(size=(n, 2)), random.uniform(0.5, 3.0, n)
    load, pole = random.normal(size=3) * 100.0, random.normal(size=2)
    forces = normal_forces(contacts, springs, load, pole)
    balance = np.vstack([np.ones(n), (contacts - pole).T])
    np.testing.assert_allclose(balance @ forces, load, atol=1e-9)
    assert support_matrix(contacts, springs, pole).shape == (n, 3)
    # Least sum of N^2 / k under the balance: Castigliano.
    weighted = balance @ np.diag(springs) @ balance.T
    np.testing.assert_allclose(forces, springs * (balance.T @ np.linalg.solve(weighted, load)), atol=1e-9)


def test_a_load_outside_the_wheels_would_need_a_pull() -> None:
    forces = normal_forces(RING[:4], np.ones(4), [WEIGHT, 0.4 * WEIGHT, 0.0])
    assert np.min(forces) < 0.0 and forces.sum() == pytest.approx(WEIGHT)


def test_layouts_that_carry_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="one line"):
        support_matrix([[0.0, 0.0], [0.1, 0.1], [0.3, 0.3]], np.ones(3))
    with pytest.raises(InputError, match="fewer than three"):
        support_matrix(RING[:2], np.ones(2))
    with pytest.raises(InputError, match=r"stiffness\[1\]: got -1"):
        support_matrix(RING[:3], [1.0, -1.0, 1.0])
    with pytest.raises(InputError, match=r"stiffness: got shape \(3,\); expected shape \(4,\)"):
        support_matrix(RING[:4], np.ones(3))
    with pytest.raises(InputError, match=r"load\[2\]: got nan"):
        normal_forces(RING[:4], np.ones(4), [1.0, 0.0, np.nan])
