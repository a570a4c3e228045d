"""A base so high that wheels lift: the floor never pulls, and never brakes harder than friction allows (system 54)."""

from __future__ import annotations

import dataclasses
from typing import NoReturn

import numpy as np
import pytest
from scipy.optimize import nnls
from wheeled_bases import LAYOUTS, RING, base_of, contact_points, rolling_state, rotation, sliding_state, wheel

from youbot_dynamics.dynamics.normal_forces import Plate
from youbot_dynamics.errors import InputError
from youbot_dynamics.source_systems.wheeled_base import (
    BaseMotion,
    BaseState,
    WheeledBase,
    contacts,
    plate_with_lifted_wheels,
    simulate,
    step,
)
from youbot_dynamics.source_systems.wheeled_base._regimes import BaseEquations, on_pressed_wheels

GRIP, WEIGHT = 0.7, 60.0 * 9.81


def tall(name: str, height: float) -> WheeledBase:
    return base_of(LAYOUTS[name], centre_of_mass=(0.03, -0.02, height))


def obeys_the_floor(motion: BaseMotion) -> None:
    """N >= 0 with the sum m g, |T| <= mu N, and nothing at all on a wheel that has lifted."""
    sizes = np.linalg.norm(motion.tangential_forces, axis=1)
    assert np.all(motion.normal_forces >= 0.0)
    assert motion.normal_forces.sum() == pytest.approx(WEIGHT, rel=1e-9)
    assert np.all(sizes <= GRIP * motion.normal_forces * (1.0 + 1e-8) + 1e-7)
    np.testing.assert_array_equal(sizes[motion.lifted], 0.0)
    np.testing.assert_array_equal(motion.normal_forces[motion.lifted], 0.0)
    assert motion.tips_over == motion.lifted.any()
    assert np.linalg.norm(motion.tangential_forces.sum(axis=0)) <= GRIP * WEIGHT * (1.0 + 1e-8)


@pytest.mark.parametrize("height", [0.3, 0.5, 0.8, 2.0])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_skid_at_any_height_obeys_the_law_of_friction(name: str, height: float) -> None:
    base, lifted = tall(name, height), 0
    for seed in range(12):
        state = sliding_state(base, seed)
        motion = base.motion(state, np.zeros(len(base.wheels)))
        obeys_the_floor(motion)
        found = contacts(base.wheels, state)
        velocities = np.zeros((len(base.wheels), 2))
        np.add.at(velocities, found.owner, found.velocities[:, None] * found.directions)
        against = velocities / np.linalg.norm(velocities, axis=1)[:, None]
        expected = -GRIP * motion.normal_forces[:, None] * against
        np.testing.assert_allclose(motion.tangential_forces, expected, atol=1e-8 * WEIGHT)
        lifted += motion.tips_over
    assert lifted > 0 or height < 0.5


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_rolling_base_that_tips_obeys_the_law_of_friction(name: str) -> None:
    base, random = tall(name, 0.9), np.random.default_rng(3)
    for seed in range(8):
        motion = base.motion(rolling_state(base, seed), random.normal(size=len(base.wheels)) * 30.0)
        obeys_the_floor(motion)
        assert not np.any(motion.rolling & motion.lifted)


@pytest.mark.parametrize("height", [0.3, 0.6, 0.8, 3.0])
def test_blocked_wheels_brake_with_mu_g_however_high_the_load(height: float) -> None:
    """A friction that the balance of moments would demand of lifted wheels too is none: 0.8 m gave it no limit."""
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, height), product_xz=0.0, product_yz=0.0)
    base = dataclasses.replace(
        base, wheels=tuple(dataclasses.replace(one, spin_inertia=1e9) for one in base.wheels)
    )  # the blocked wheels take up no spin
    state = BaseState([1.0, 0.0, 0.0], np.zeros(4))
    motion = base.motion(state, np.zeros(4))
    assert motion.twist_rate[0] == pytest.approx(-GRIP * 9.81, rel=1e-6)
    now = step(base, state, np.zeros(4))
    assert (now.state.twist[0] - 1.0) / 1e-3 == pytest.approx(-GRIP * 9.81, rel=1e-6)
    assert motion.tips_over == now.tips_over == (GRIP * height > 0.25)
    if motion.tips_over:
        np.testing.assert_array_equal(motion.lifted, [False, False, True, True])  # the rear
        np.testing.assert_allclose(motion.normal_forces[:2], WEIGHT / 2, rtol=1e-9)
        np.testing.assert_array_equal(now.lifted, motion.lifted)


def test_three_wheels_that_span_the_load_still_balance_it() -> None:
    """Load towards the front left: the rear right wheel lifts, the three others hold all moments."""
    base = base_of(["fixed"] * 4, centre_of_mass=(0.2, 0.12, 0.1))
    state = BaseState(np.zeros(3), np.zeros(4))
    motion = base.motion(state, np.zeros(4))
    np.testing.assert_array_equal(motion.lifted, [False, False, True, False])
    assert motion.tips_over and motion.smallest_normal_force == 0.0
    np.testing.assert_allclose(motion.normal_forces @ RING[:4], WEIGHT * np.array([0.2, 0.12]), rtol=1e-12)
    np.testing.assert_allclose(motion.twist_rate, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", LAYOUTS)
def test_wheels_that_span_an_area_carry_all_moments_of_the_motion(name: str) -> None:
    base, met = tall(name, 0.4), 0
    for seed in range(30):
        state = sliding_state(base, seed)
        motion = base.motion(state, np.zeros(len(base.wheels)))
        points = contact_points(base, state)[~motion.lifted]
        if len(points) < 3 or np.linalg.matrix_rank(points - points[0], tol=1e-6) < 2:
            continue
        equations = base.equations(state, np.zeros(len(base.wheels)))
        (vx, vy, w), rate = state.twist, motion.twist_rate
        chassis = rate + [-w * vy, w * vx, 0.0]
        swings = (motion.steering_accelerations + chassis[2])[base.steerable]
        load = equations.floor_load + equations.floor_load_of_motion @ np.concatenate(
            [chassis, swings, motion.wheel_accelerations]
        )
        arms = contact_points(base, state) - base.centre_of_mass[:2]
        np.testing.assert_allclose(motion.normal_forces @ arms, load[1:], atol=1e-9 * WEIGHT)
        met += 1
    assert met > 3


def least_energy(points: np.ndarray, springs: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Non-negative forces of least spring energy that carry the weight and as much of the moments as they can."""
    rows = np.vstack([1e7 * np.ones(len(points)), 1e4 * points.T, np.diag(springs**-0.5)])
    return nnls(rows, np.concatenate([[1e7 * load[0]], 1e4 * load[1:], np.zeros(len(points))]))[0]


@pytest.mark.parametrize("n", [3, 4, 6, 7])
def test_springs_that_only_push_share_any_load_with_the_least_energy(n: int) -> None:
    """Inside the wheels and outside, where the moment beyond the edge is left over: scipy's NNLS as the oracle."""
    random, outside = np.random.default_rng(n), 0
    for _ in range(60):
        points, springs = random.normal(size=(n, 2)), random.uniform(0.5, 3.0, n)
        load = 100.0 * np.array([1.0, *random.normal(size=2)])
        wheels = np.rec.fromarrays([springs, *points.T, np.zeros(n)], names="stiffness, point_x, point_y, carries")
        l0, lx, ly = plate_with_lifted_wheels(*load, wheels)
        heights = springs * (l0 + points @ [lx, ly])
        found = np.maximum(heights, 0.0)
        np.testing.assert_allclose(found, least_energy(points, springs, load), atol=2e-3)
        assert found.sum() == pytest.approx(100.0, rel=1e-10)
        plate = Plate(points, springs, np.zeros(2), heights > 0.0)
        np.testing.assert_allclose(plate.forces_of_load @ load, found, atol=1e-9)
        np.testing.assert_array_equal(plate.presses(load), plate.carrying)
        outside += np.sum(found > 0.0) < 3
    assert 5 < outside < 60


@pytest.mark.parametrize(("ahead", "rear"), [(0.0, True), (0.24, True), (0.26, False)])
def test_a_plate_left_on_its_front_wheels_falls_to_the_side_of_the_load(ahead: float, rear: bool) -> None:
    """The front wheels stand at 0.25 m: a load behind them brings the rear wheels back to the floor."""
    front = Plate(RING[:4], np.ones(4), np.zeros(2), np.array([True, True, False, False]))
    np.testing.assert_array_equal(front.presses(WEIGHT * np.array([1.0, ahead, 0.0])), [True, True, rear, rear])


@pytest.mark.parametrize("height", [0.3, 0.8])
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_simulated_floor_neither_pulls_nor_brakes_more_than_it_can(name: str, height: float) -> None:
    base, n, dt = tall(name, height), len(LAYOUTS[name]), 1e-3
    for seed in range(3):
        run = simulate(base, sliding_state(base, seed), np.zeros((200, n)), dt=dt)
        assert np.all(run.normal_forces >= 0.0)
        np.testing.assert_allclose(run.normal_forces.sum(axis=1), WEIGHT, rtol=1e-9)
        np.testing.assert_array_equal(run.normal_forces[run.lifted], 0.0)
        assert run.tips_over == run.lifted.any()
        centre = np.array(
            [
                rotation(yaw) @ (twist[:2] + twist[2] * np.array([-base.centre_of_mass[1], base.centre_of_mass[0]]))
                for yaw, twist in zip(run.poses[:, 2], run.twists, strict=True)
            ]
        )
        accelerations = np.linalg.norm(np.diff(centre, axis=0), axis=1) / dt
        assert np.max(accelerations) <= GRIP * 9.81 * 1.02  # the turn within a step is first order


def test_a_simulated_tall_base_stops_in_the_distance_of_a_block() -> None:
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, 0.8), product_xz=0.0, product_yz=0.0)
    heavy = tuple(dataclasses.replace(one, spin_inertia=1e9) for one in base.wheels)
    run = simulate(
        dataclasses.replace(base, wheels=heavy),
        BaseState([1.0, 0.0, 0.0], np.zeros(4)),
        np.zeros((600, 4)),
        slip_speed=1e-3,
    )
    assert run.tips_over
    assert run.poses[-1, 0] == pytest.approx(1.0 / (2 * GRIP * 9.81), rel=0.02)


def test_a_load_that_tips_over_many_wheels_is_soon_found_on_few() -> None:
    turns = np.arange(40.0)
    places = np.column_stack([np.cos(turns), np.sin(turns)])
    wheels = tuple(
        wheel(str(i), "fixed", places[i], radius=0.05, spin_inertia=1e-3, friction_coefficient=0.8) for i in range(40)
    )
    base = WheeledBase(wheels, 20.0, 1.0, (0.0, 0.0, 5.0))
    motion = base.motion(BaseState(np.zeros(3), np.zeros(40)), np.full(40, 5.0))
    assert motion.tips_over
    assert np.sum(motion.normal_forces > 0.0) <= 3
    assert motion.normal_forces.sum() == pytest.approx(20.0 * 9.81, rel=1e-9)


def test_the_search_for_the_wheels_that_carry_ends() -> None:
    equations = tall("six", 0.9).equations(sliding_state(tall("six", 0.9), 1), np.zeros(6))
    many = base_of(["fixed"] * 12, [(np.cos(k), np.sin(k)) for k in range(12)])
    of_many = many.equations(BaseState(np.zeros(3), np.zeros(12)), np.zeros(12))
    for subject, tries in ((equations, 63), (of_many, 255)):
        tried = []

        def refuse(on_these: BaseEquations, tried: list[bytes] = tried) -> NoReturn:
            tried.append(on_these.plate.carrying.tobytes())
            raise InputError("friction", got="none")

        with pytest.raises(InputError, match="no set of wheels"):
            on_pressed_wheels(subject, refuse)
        assert len(tried) == len(set(tried)) == tries


def test_wheels_told_to_roll_do_so_and_their_lifting_is_said() -> None:
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, 0.8))
    state = base.rolling_state([0.5, 0.0, 0.0])
    motion = base.motion(state, np.full(4, -40.0), rolling=[True] * 4)
    assert motion.tips_over and motion.rolling.all()
    assert np.all(motion.normal_forces >= 0.0) and motion.normal_forces.sum() == pytest.approx(WEIGHT)
