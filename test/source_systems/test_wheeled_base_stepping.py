"""Steps with exact Coulomb friction: conservation, dissipation, and rest without chatter."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from wheeled_bases import LAYOUTS, base_of, rotation, sliding_state, wheel

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.source_systems.wheeled_base import BaseState, WheeledBase, simulate, step
from youbot_dynamics.source_systems.wheeled_base._contact import one_contact

STILL = np.zeros(4)


@pytest.mark.parametrize("seed", range(10))
def test_one_contact_sticks_or_slides_against_its_motion(seed: int) -> None:
    random = np.random.default_rng(seed)
    root = random.normal(size=(2, 2))
    mobility, free = root @ root.T + 0.01 * np.eye(2), random.normal(size=2)
    holding = np.linalg.norm(np.linalg.solve(mobility, free))
    stuck = np.array(one_contact(*mobility.reshape(-1), *free, 1.01 * holding))
    np.testing.assert_allclose(mobility @ stuck + free, 0.0, atol=1e-12)
    for bound in (0.99 * holding, 0.1 * holding, 1e-6 * holding):
        force = np.array(one_contact(*mobility.reshape(-1), *free, bound))
        motion = mobility @ force + free
        assert np.linalg.norm(force) == pytest.approx(bound, rel=1e-12)
        assert force @ motion == pytest.approx(-bound * np.linalg.norm(motion), rel=1e-9)
    assert one_contact(*mobility.reshape(-1), *free, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name not in ("differential", "three steered")])
def test_friction_never_does_work_and_the_base_comes_to_roll(name: str) -> None:
    base = base_of(LAYOUTS[name])
    state, n = sliding_state(base, 6), len(base.wheels)
    before = base.energy(state)
    for _ in range(250):
        now = step(base, state, np.zeros(n))
        assert now.friction_work <= 1e-12
        state, after = now.state, base.energy(now.state)
        assert after <= before * (1.0 + 2e-4)  # of the explicit velocity products
        before = after
    assert after < 0.9 * base.energy(sliding_state(base, 6))


def test_a_braked_base_stops_in_the_distance_of_a_block_and_stays_there() -> None:
    """Blocked wheels: v^2 / (2 mu g); then no chatter, not one bit of motion (D-004-7)."""
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, 0.1), product_xz=0.0, product_yz=0.0)
    heavy = tuple(dataclasses.replace(one, spin_inertia=1e9) for one in base.wheels)
    base = dataclasses.replace(base, wheels=heavy)
    state, places = BaseState([1.0, 0.0, 0.0], STILL), []
    for _ in range(300):
        state = step(base, state, STILL).state
        places.append(state.pose)
    assert places[-1][0] == pytest.approx(1.0 / (2 * 0.7 * 9.81), rel=0.02)
    stop = int(1.0 / (0.7 * 9.81) / 1e-3) + 2
    np.testing.assert_allclose(np.array(places[stop:]), np.tile(places[-1], (300 - stop, 1)), atol=1e-10)
    np.testing.assert_allclose(state.twist, 0.0, atol=1e-10)


def test_a_wheel_that_slides_grips_again() -> None:
    """Started at rest on wheels that spin, the base ends in rolling, at the speed of the momentum about the contact."""
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, 0.1), product_xz=0.0, product_yz=0.0)
    state = BaseState(np.zeros(3), np.full(4, 30.0))
    slips = []
    for _ in range(400):
        now = step(base, state, STILL)
        state = now.state
        slips.append(np.max(np.abs(now.contact_velocities)))
    assert slips[0] > 2.0 and max(slips[-50:]) < 1e-12
    inertia = 4 * 0.012 / 0.08
    expected = inertia * 30.0 / (base.mass + inertia / 0.08)
    assert state.twist[0] == pytest.approx(expected, rel=1e-9)
    assert base.motion(state, STILL).rolling.all()


def test_momentum_is_the_sum_of_the_impulses_of_the_floor() -> None:
    base = base_of(LAYOUTS["four casters"], centre_of_mass=(0.0, 0.0, 0.15))
    state, impulse, dt = sliding_state(base, 1), np.zeros(2), 1e-3
    start = rotation(state.pose[2]) @ state.twist[:2]
    for _ in range(150):
        now = step(base, state, np.ones(4), dt=dt)
        state = now.state
        impulse += dt * rotation(state.pose[2]) @ now.tangential_forces.sum(axis=0)
        assert now.normal_forces.sum() == pytest.approx(base.mass * 9.81, rel=1e-12)
    end = rotation(state.pose[2]) @ state.twist[:2]
    np.testing.assert_allclose(base.mass * (end - start), impulse, atol=1e-9)
    assert np.linalg.norm(impulse) > 1.0


def test_the_first_step_has_the_acceleration_of_the_state() -> None:
    base = base_of(LAYOUTS["car"])
    state, torques = sliding_state(base, 2), np.array([1.0, -0.5, 0.3, 0.8])
    motion, h = base.motion(state, torques), 1e-7
    now = step(base, state, torques, dt=h)
    np.testing.assert_allclose((now.state.twist - state.twist) / h, motion.twist_rate, atol=1e-4)
    np.testing.assert_allclose(now.tangential_forces, motion.tangential_forces, atol=1e-3)


def test_it_agrees_with_the_regularised_simulation_to_first_order_while_all_slides() -> None:
    base = base_of(LAYOUTS["car"])
    errors = []
    for dt in (1e-3, 2.5e-4):
        steps = round(0.02 / dt)
        state = sliding_state(base, 2)
        run = simulate(base, state, np.zeros((steps, 4)), dt=dt, slip_speed=1e-5)
        for _ in range(steps):
            state = step(base, state, STILL, dt=dt).state
        errors.append(np.max(np.abs(run.twists[-1] - state.twist)))
    assert errors[1] < 0.35 * errors[0] < 0.01


@pytest.mark.parametrize("bound", [1e-300, 1e-150, 9e-108, 1e-20, 1e-15, 1e-8])
def test_friction_next_to_nothing_still_opposes_the_motion(bound: float) -> None:
    mobility, free = np.array([[111.8, 0.2], [0.2, 6.2]]), np.array([675.6, -1.76])
    force = np.array(one_contact(*mobility.reshape(-1), *free, bound))
    assert np.linalg.norm(force / bound) == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(force / bound, -free / np.linalg.norm(free), atol=1e-6)


def test_a_contact_that_nothing_moves_needs_no_force() -> None:
    assert one_contact(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0) == (0.0, 0.0)
    assert one_contact(2.0, 0.1, 0.1, 3.0, 1e-200, -1e-200, 5.0) == (0.0, 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_a_tall_base_is_stepped_or_refused_with_the_reason(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(12):
        n = int(random.choice([3, 4, 6]))
        turns = 2.0 * np.pi * np.arange(n) / n
        places = np.column_stack([0.25 * np.cos(turns), 0.2 * np.sin(turns)])
        grips = random.choice([0.0, 0.1, 0.8, 1.5], size=n)
        inertias = 10.0 ** random.uniform(-6.0, -2.0, n)
        wheels = [
            wheel(str(i), "fixed", places[i], radius=0.05, spin_inertia=inertias[i], friction_coefficient=grips[i])
            for i in range(n)
        ]
        mass = 10.0 ** random.uniform(-1.0, 2.0)
        base = WheeledBase(tuple(wheels), mass, 1.0, (*random.uniform(-0.05, 0.05, 2), random.choice([0.3, 1.0, 3.0])))
        state = BaseState(random.choice([0.0, 1.0]) * random.normal(size=3), np.zeros(n))
        try:
            after = step(base, state, random.normal(size=n))
        except InputError as error:
            assert "no set of wheels" in str(error)
            continue
        sizes = np.linalg.norm(after.tangential_forces, axis=1)
        assert after.normal_forces.sum() == pytest.approx(9.81 * mass, rel=1e-9)
        assert np.all(sizes <= grips * after.normal_forces * (1.0 + 1e-6) + 1e-6 * mass)
        assert after.friction_work <= 1e-9


def test_a_step_that_is_none_is_refused() -> None:
    base = base_of(["fixed"] * 4)
    with pytest.raises(ModelError, match="dt"):
        step(base, BaseState(np.zeros(3), STILL), STILL, dt=0.0)
