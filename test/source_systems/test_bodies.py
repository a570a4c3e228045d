"""Point masses, poles, lines and the equations of one rigid body, against clouds of points; systems 18 to 20."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_trees import random_inertia

from youbot_dynamics.dynamics.rigid_body import check_inertia, inertia_about
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.source_systems.bodies import (
    inertia_between_poles,
    moment_about_line,
    moment_of_forces,
    point_masses,
    wrench_about_pole,
)


def cloud(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Masses (n,) and positions (n, 3) of points about a centre that is not the origin."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1.0, n), 0.3 * rng.normal(size=(n, 3)) + rng.normal(size=3)


def inertia_of(masses: np.ndarray, positions: np.ndarray, pole: np.ndarray) -> np.ndarray:
    """Point by point, moments and products apart."""
    total = np.zeros((3, 3))
    for m, (x, y, z) in zip(masses, positions - pole, strict=True):
        total += m * np.array(
            [[y * y + z * z, -x * y, -x * z], [-x * y, x * x + z * z, -y * z], [-x * z, -y * z, x * x + y * y]]
        )
    return total


@pytest.mark.parametrize("seed", range(20))
def test_point_masses_have_the_centre_and_inertia_of_their_sums(seed: int) -> None:
    masses, positions = cloud(seed)
    mass, centre, inertia = point_masses(masses, positions)
    assert mass == pytest.approx(sum(masses))
    np.testing.assert_allclose(centre, sum(m * p for m, p in zip(masses, positions, strict=True)) / mass, rtol=1e-12)
    np.testing.assert_allclose(inertia, inertia_of(masses, positions, centre), rtol=0, atol=1e-12)
    check_inertia("cloud", mass, inertia)


def test_d_002_2_the_moment_about_a_line_counts_the_distance_from_the_line() -> None:
    """Printed is the distance from the pole: one number for all lines, and never less than the true one."""
    for seed in range(20):
        masses, positions = cloud(seed)
        inertia = inertia_of(masses, positions, np.zeros(3))
        printed = float(masses @ np.sum(positions**2, axis=1))
        ratios = []
        for line in np.random.default_rng(seed).normal(size=(10, 3)):
            unit = line / np.linalg.norm(line)
            true = float(masses @ np.sum(np.cross(unit, positions) ** 2, axis=1))
            assert moment_about_line(inertia, line) == pytest.approx(true, rel=1e-12)
            ratios.append(printed / true)
        assert min(ratios) >= 1.0
        assert max(ratios) > 1.3
        assert printed == pytest.approx(0.5 * np.trace(inertia))


@pytest.mark.parametrize("seed", range(20))
def test_inertia_moves_from_pole_to_pole_with_all_its_products(seed: int) -> None:
    masses, positions = cloud(seed)
    mass, centre, central = point_masses(masses, positions)
    old, new = np.random.default_rng(seed).normal(size=(2, 3))
    wanted = inertia_of(masses, positions, new)
    np.testing.assert_allclose(inertia_about(central, mass, centre - new), wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(inertia_about(central, mass, new - centre), wanted, rtol=0, atol=1e-12)
    at_old = inertia_of(masses, positions, old)
    moved = inertia_between_poles(at_old, mass, centre - old, centre - new)
    np.testing.assert_allclose(moved, wanted, rtol=0, atol=1e-11)


def test_d_002_3_a_scalar_added_to_the_inertia_misses_its_products_and_is_too_large() -> None:
    """I_0 + m |p1 - p0|^2, to every element or to the diagonal only, even from the centre of mass: 20 clouds."""
    for seed in range(20):
        masses, positions = cloud(seed)
        mass, centre, central = point_masses(masses, positions)
        wanted = inertia_of(masses, positions, np.zeros(3))
        printed = central + mass * centre @ centre
        on_diagonal = central + mass * centre @ centre * np.eye(3)
        size = np.linalg.norm(wanted)
        assert np.linalg.norm(printed - wanted) > 0.2 * size
        assert np.linalg.norm(on_diagonal - wanted) > 0.2 * size
        products = np.triu(np.ones((3, 3)), 1) > 0
        assert np.abs((on_diagonal - wanted)[products]).max() > 0.01 * size
        # The line through both poles: moving along it adds nothing.
        assert moment_about_line(wanted, centre) == pytest.approx(moment_about_line(central, centre), rel=1e-9)
        assert moment_about_line(on_diagonal, centre) > 1.5 * moment_about_line(central, centre)


def test_d_002_3_the_distance_of_two_poles_counts_from_the_centre_of_mass_only() -> None:
    """Between poles neither of which is the centre, even the tensor of their distance is wrong."""
    for seed in range(20):
        masses, positions = cloud(seed)
        mass, centre, _ = point_masses(masses, positions)
        old = np.random.default_rng(seed).normal(size=3)
        at_old, at_centre = inertia_of(masses, positions, old), inertia_of(masses, positions, centre)
        printed = inertia_about(at_old, mass, centre - old)  # should make it smaller, makes it larger
        assert np.trace(printed) > np.trace(at_old) > np.trace(at_centre)
        right = inertia_between_poles(at_old, mass, centre - old, np.zeros(3))
        np.testing.assert_allclose(right, at_centre, rtol=0, atol=1e-11)


def motion(seed: int) -> tuple[np.ndarray, ...]:
    """Angular velocity, angular acceleration and acceleration of the pole, each (3,)."""
    return tuple(np.random.default_rng(100 + seed).normal(size=(3, 3)))


def wrench_of_points(masses: np.ndarray, positions: np.ndarray, seed: int) -> np.ndarray:
    """Newton for every point of a rigid cloud; force and moment about the origin."""
    w, alpha, a = motion(seed)
    accelerations = a + np.cross(alpha, positions) + np.cross(w, np.cross(w, positions))
    forces = masses[:, None] * accelerations
    return np.concatenate([forces.sum(axis=0), np.cross(positions, forces).sum(axis=0)])


def test_newton_and_euler_about_any_pole_are_newton_for_every_point() -> None:
    for seed in range(20):
        masses, positions = cloud(seed)
        mass, centre, central = point_masses(masses, positions)
        found = wrench_about_pole(mass, inertia_about(central, mass, centre), centre, *motion(seed))
        wanted = wrench_of_points(masses, positions, seed)
        np.testing.assert_allclose(
            found, wrench_of_points(masses, positions, seed), rtol=0, atol=1e-11 * np.abs(wanted).max()
        )


def test_newton_and_euler_are_those_of_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(0)
    for seed in range(20):
        mass, centre, central = random_inertia(rng)
        w, alpha, a = motion(seed)
        body = pin.Inertia(mass, centre, central)
        # Velocity of the pole 0: then the spatial acceleration is the ordinary one.
        velocity = pin.Motion(np.zeros(3), w)
        wanted = (body * pin.Motion(a, alpha) + body.vxiv(velocity)).vector
        found = wrench_about_pole(mass, inertia_about(central, mass, centre), centre, w, alpha, a)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_d_002_4_about_a_pole_that_is_not_the_centre_the_moment_lacks_a_term() -> None:
    """I_O alpha + w x I_O w alone holds at the centre of mass, or where the pole does not accelerate."""
    errors = []
    for seed in range(20):
        masses, positions = cloud(seed)
        mass, centre, central = point_masses(masses, positions)
        w, alpha, a = motion(seed)
        about_pole = inertia_about(central, mass, centre)
        printed = about_pole @ alpha + np.cross(w, about_pole @ w)
        wanted = wrench_of_points(masses, positions, seed)[3:]
        errors.append(np.linalg.norm(printed - wanted) / np.linalg.norm(wanted))
        np.testing.assert_allclose(printed + mass * np.cross(centre, a), wanted, rtol=0, atol=1e-10)
        at_rest = wrench_about_pole(mass, about_pole, centre, w, alpha, np.zeros(3))
        np.testing.assert_allclose(at_rest[3:], printed, rtol=0, atol=1e-10)
        own = wrench_about_pole(mass, central, np.zeros(3), w, alpha, a)
        np.testing.assert_allclose(own[3:], central @ alpha + np.cross(w, central @ w), rtol=0, atol=1e-12)
    assert min(errors) > 0.02
    assert max(errors) > 0.5


def test_d_002_5_the_printed_moment_turns_the_other_way() -> None:
    """f x r is minus r x f: with it, the power of the resultant is not the power of the forces."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        forces, points, couples = rng.normal(size=(3, 6, 3))
        wrench = moment_of_forces(forces, points, couples)
        velocity, w = rng.normal(size=(2, 3))
        power = np.sum(forces * (velocity + np.cross(w, points))) + couples.sum(axis=0) @ w
        assert wrench @ np.concatenate([velocity, w]) == pytest.approx(power, rel=1e-10, abs=1e-10)
        printed = np.cross(forces, points).sum(axis=0)
        np.testing.assert_allclose(printed, -(wrench[3:] - couples.sum(axis=0)), rtol=0, atol=1e-12)
        wrong = wrench[:3] @ velocity + (printed + couples.sum(axis=0)) @ w
        assert wrong - power == pytest.approx(2.0 * printed @ w, rel=1e-9)
    push = moment_of_forces([[0.0, 1.0, 0.0]], [[2.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(push, [0.0, 1.0, 0.0, 0.0, 0.0, 2.0])  # pushed left in front: turns left


def test_point_masses_refuse_what_is_no_cloud() -> None:
    with pytest.raises(ModelError, match="masses: got -1"):
        point_masses([2.0, -1.0], np.zeros((2, 3)))
    with pytest.raises(ModelError, match="sum above 0"):
        point_masses([0.0, 0.0], np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"masses\[0\]: got 1e\+308; expected a number of at most 1e\+100"):
        point_masses([1e308, 1e308], np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"positions: got shape \(3, 3\); expected shape \(2, 3\)"):
        point_masses([1.0, 1.0], np.zeros((3, 3)))
    with pytest.raises(InputError, match=r"positions\[1, 2\]: got nan"):
        point_masses([1.0, 1.0], [[0.0, 0.0, 0.0], [0.0, 0.0, np.nan]])


def test_a_line_may_be_given_at_any_length() -> None:
    inertia = np.diag([1.0, 2.0, 2.5])
    for length in (1e-200, 1.0, 1e200):
        assert moment_about_line(inertia, [0.0, length, length]) == pytest.approx(2.25)


ONE, ZERO = np.eye(3), np.zeros(3)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: inertia_between_poles(ONE, 1.0, ZERO, [0.0, np.inf, 0.0]), r"offset\[1\]: got inf"),
        (lambda: moment_about_line(ONE, ZERO), "direction: got length 0; expected a direction"),
        (lambda: moment_about_line(ONE, [1.0, 2.0]), r"direction: got shape \(2,\)"),
        (lambda: wrench_about_pole(1.0, ONE, [0.0, 0.0], ZERO, ZERO, ZERO), r"offset: got shape \(2,\)"),
        (lambda: wrench_about_pole(1.0, ONE, ZERO, [0.0, 0.0, np.nan], ZERO, ZERO), r"angular_velocity\[2\]: got nan"),
        (lambda: wrench_about_pole(1.0, ONE, ZERO, ZERO, np.zeros(2), ZERO), r"angular_acceleration: got shape \(2,\)"),
        (lambda: wrench_about_pole(1.0, ONE, ZERO, ZERO, ZERO, np.zeros((3, 1))), r"^acceleration: got shape \(3, 1\)"),
        (lambda: moment_of_forces([[1, 2, 3]], [[0, 0, 1], [1, 1, 1]], [[0, 0, 0]]), r"points: got shape \(2, 3\); ex"),
        (lambda: moment_of_forces([[1, 2, 3]], [[0, 0, 1]], [0, 0, 0]), r"couples: got shape \(3,\)"),
        (lambda: moment_of_forces([1, 2, 3], [[0, 0, 1]], [[0, 0, 0]]), r"forces: got shape \(3,\)"),
    ],
)
def test_arguments_of_a_wrong_shape_or_not_finite_are_refused_by_name(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ask()


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: moment_about_line(np.diag([1.0, 1.0, -1.0]), [1.0, 0.0, 0.0]), "inertia: .*none negative"),
        (lambda: moment_about_line(np.triu(np.ones((3, 3))), [1.0, 0.0, 0.0]), "inertia: .*not symmetric"),
        (lambda: wrench_about_pole(-1.0, ONE, ZERO, ZERO, ZERO, ZERO), "mass: got -1"),
        (
            lambda: wrench_about_pole(5.0, ONE, [0.0, 0.0, 0.5], ZERO, ZERO, ZERO),
            "inertia: got a moment 0.25 kg m2 below that of the mass in its centre; expected the inertia about",
        ),
        (lambda: inertia_between_poles(ONE, 5.0, [0.0, 0.0, 0.5], ZERO), "inertia: got a moment 0.25 kg m2 below"),
    ],
)
def test_bodies_that_cannot_be_are_refused(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        ask()
