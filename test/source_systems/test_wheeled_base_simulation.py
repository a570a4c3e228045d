"""The fast simulation against a dense solution of the same step, scipy, and the laws of mechanics."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from plain_python import numbers_without_numba
from scipy.integrate import solve_ivp
from wheeled_bases import LAYOUTS, base_of, contact_points, rolling_state, rotation, sliding_state, wheel

from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.source_systems.wheeled_base import BaseState, WheeledBase, simulate
from youbot_dynamics.source_systems.wheeled_base._simulation import SLIP_SPEED


def torques_over(base: WheeledBase, steps: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    steers = np.array([one.steerable for one in base.wheels])
    time = np.arange(steps)[:, None] * 1e-3
    wheels = 2.0 * np.sin(time * random.uniform(1.0, 20.0, len(steers)))
    return wheels, np.cos(time * random.uniform(1.0, 20.0, len(steers))) * steers


def dense_run(base: WheeledBase, state: BaseState, drive: np.ndarray, steer: np.ndarray, dt: float) -> np.ndarray:
    """All accelerations and forces as unknowns of one linear system a step; twist and wheel speeds of every step."""
    n, steerable = len(base.wheels), base.steerable
    normals = base.equations(dataclasses.replace(state, twist=np.zeros(3), wheel_speeds=np.zeros(n),
                                                 steering_rates=np.zeros(n)), np.zeros(n)).free_normals  # fmt: skip
    moments = None
    rows = [np.concatenate([state.twist, state.wheel_speeds, state.steering_rates])]
    for torque, swing in zip(drive, steer, strict=True):
        equations = base.equations(state, torque, swing)
        contact = equations.contact
        arms = contact_points(base, state) - base.centre_of_mass[:2]
        plate = np.column_stack([np.ones(n), arms])
        if moments is not None:
            springs = np.array([one.stiffness for one in base.wheels])
            normals = springs * (plate @ np.linalg.solve(plate.T @ (springs[:, None] * plate), moments))
        squares = np.bincount(contact.owner, contact.velocities**2, n)
        mu = np.array([one.friction_coefficient for one in base.wheels])
        kappa = (mu * np.maximum(normals, 0.0) / np.sqrt(squares + SLIP_SPEED**2))[contact.owner]
        m, r = len(equations.mass), len(contact.owner)
        system = np.zeros((m + r, m + r))
        system[:m, :m], system[:m, m:] = equations.mass, -contact.rows.T
        system[m:, :m], system[m:, m:] = dt * kappa[:, None] * contact.rows, np.eye(r)
        right = np.concatenate([equations.load, -kappa * (contact.velocities + dt * contact.drift)])
        u = np.linalg.solve(system, right)[:m]
        true = equations.normals(u)  # of this step, felt in the next one
        moments = plate.T @ true
        moments[0] = base.mass * base.gravity
        turn = dt * (state.twist[2] + 0.5 * dt * u[2])
        rates = state.steering_rates.copy()
        rates[steerable] += dt * (u[3 : 3 + len(steerable)] - u[2])
        state = BaseState(
            twist=[*(rotation(-turn) @ (state.twist[:2] + dt * u[:2])), state.twist[2] + dt * u[2]],
            wheel_speeds=state.wheel_speeds + dt * u[-n:],
            steering_angles=state.steering_angles + 0.5 * dt * (state.steering_rates + rates),
            steering_rates=rates,
            pose=state.pose + [0.0, 0.0, turn],
        )
        rows.append(np.concatenate([state.twist, state.wheel_speeds, state.steering_rates]))
    return np.array(rows)


def numbers(run) -> np.ndarray:
    return np.hstack([run.twists, run.wheel_speeds, run.steering_rates])


@pytest.mark.parametrize("name", LAYOUTS)
def test_elimination_by_hand_equals_the_dense_solution(name: str) -> None:
    base = base_of(LAYOUTS[name])
    for seed in range(2):
        state, torques = sliding_state(base, seed), torques_over(base, 200, seed)
        found, dense = numbers(simulate(base, state, *torques)), dense_run(base, state, *torques, 1e-3)
        np.testing.assert_allclose(found, dense, atol=2e-12 * np.max(np.abs(dense)), rtol=0)


@pytest.mark.parametrize("name", ["car", "four casters", "youBot"])
def test_it_converges_to_the_solution_of_the_regularised_equations(name: str) -> None:
    """First order in dt, against LSODA on the same friction law with normal forces that answer at once."""
    base = base_of(LAYOUTS[name], centre_of_mass=(0.03, -0.02, 0.05))
    fast, n = rolling_state(base, 3), len(base.wheels)
    state = base.rolling_state(0.3 * fast.twist, fast.steering_angles, fast.pose)
    state = dataclasses.replace(state, twist=state.twist * [1.0, 1.0, 1.1])
    drive, slip = np.linspace(0.5, -1.0, n), 0.05
    mu = np.array([one.friction_coefficient for one in base.wheels])
    steerable = base.steerable
    exists = np.concatenate([np.ones(6 + n), *[[one.steerable for one in base.wheels]] * 2])

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        y = y * exists
        now = BaseState(y[3:6], y[6 : 6 + n], y[6 + n : 6 + 2 * n], y[6 + 2 * n :], y[:3])
        equations = base.equations(now, drive)
        contact = equations.contact
        smooth = np.sqrt(np.bincount(contact.owner, contact.velocities**2, n) + slip**2)
        push = np.zeros((len(contact.owner), n))
        push[np.arange(len(contact.owner)), contact.owner] = -(mu / smooth)[contact.owner] * contact.velocities
        through = contact.rows.T @ push
        u = np.linalg.solve(
            equations.mass - through @ equations.normals_of_motion, equations.load + through @ equations.free_normals
        )
        swing = np.zeros(n)
        swing[steerable] = u[3 : 3 + len(steerable)] - u[2]
        body = u[:3] + [y[5] * y[4], -y[5] * y[3], 0.0]
        return np.concatenate([rotation(y[2]) @ y[3:5], [y[5]], body, u[-n:], y[6 + 2 * n :], swing])

    start = np.concatenate([state.pose, state.twist, state.wheel_speeds, state.steering_angles, state.steering_rates])
    exact = solve_ivp(rate, (0.0, 0.2), start, method="LSODA", rtol=1e-9, atol=1e-10).y[:, -1]
    errors = []
    for dt in (2e-4, 5e-5):
        run = simulate(base, state, np.tile(drive, (round(0.2 / dt), 1)), dt=dt, slip_speed=slip)
        errors.append(np.max(np.abs(np.concatenate([run.poses[-1], run.twists[-1]]) - exact[:6])))
    assert not run.tips_over
    assert errors[1] < 0.4 * errors[0] < 0.02


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_floor_carries_the_weight_all_along(name: str) -> None:
    base = base_of(LAYOUTS[name])
    run = simulate(base, sliding_state(base, 1), *torques_over(base, 300))
    np.testing.assert_allclose(run.normal_forces.sum(axis=1), base.mass * 9.81, rtol=1e-11)
    assert run.smallest_normal_force == np.min(run.normal_forces)
    assert run.tips_over == run.lifted.any()


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_base_left_alone_loses_energy(name: str) -> None:
    base = base_of(LAYOUTS[name])
    run = simulate(base, sliding_state(base, 4), np.zeros((400, len(base.wheels))))
    energies = np.array([base.energy(run.state(k)) for k in range(0, 401, 10)])
    assert np.all(np.diff(energies) < 2e-3 * energies[0]) and energies[-1] < energies[0]


@pytest.mark.parametrize("kind", ["fixed", "steered", "mecanum"])
def test_braking_to_rest_does_not_chatter(kind: str) -> None:
    """Explicit friction would be unstable here: mu N R^2 dt / (2 J_W slip_speed) > 1."""
    base = base_of([kind] * 4, product_xz=0.0, product_yz=0.0)
    light = tuple(dataclasses.replace(one, spin_inertia=1e-3) for one in base.wheels)
    base = dataclasses.replace(base, wheels=light)
    assert 0.7 * base.mass * 9.81 / 4 * 0.08**2 * 1e-3 / (2 * 1e-3 * SLIP_SPEED) > 1.0
    run = simulate(base, base.rolling_state([1.0, 0.0, 0.0]), np.full((2000, 4), -1.0))
    stop = int(np.argmax(run.twists[:, 0] < 0.0))
    assert 0 < stop < 2000
    assert np.max(np.diff(run.twists[:stop, 0])) < 1e-9
    # Standing: torques below the grip of the floor are held but for a creep, and nothing oscillates.
    still = simulate(base, BaseState(np.zeros(3), np.zeros(4)), np.zeros((500, 4)))
    np.testing.assert_allclose(still.twists, 0.0, atol=1e-15)


@pytest.mark.parametrize("share", [0.1, 0.6, 0.9])
def test_a_contact_held_by_regularised_friction_creeps_as_its_law_says(share: float) -> None:
    """slip_speed x / sqrt(1 - x^2) under x mu N: twice the slip speed for x = 0.9, no mere share of it."""
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, 0.0), product_xz=0.0, product_yz=0.0)
    torque = share * 0.7 * base.mass * 9.81 / 4 * 0.08
    against = np.tile([torque, torque, -torque, -torque], (3000, 1))  # front against rear: the body stands
    run = simulate(base, BaseState(np.zeros(3), np.zeros(4)), against)
    creep = 0.08 * run.wheel_speeds[-1, 0] - run.twists[-1, 0]
    assert creep == pytest.approx(SLIP_SPEED * share / np.sqrt(1.0 - share**2), rel=1e-6)


def test_blocked_wheels_stop_like_a_block() -> None:
    base = base_of(["fixed"] * 4, centre_of_mass=(0.0, 0.0, 0.1), product_xz=0.0, product_yz=0.0)
    heavy = tuple(dataclasses.replace(one, spin_inertia=1e9) for one in base.wheels)
    base = dataclasses.replace(base, wheels=heavy)
    run = simulate(base, BaseState([1.0, 0.0, 0.0], np.zeros(4)), np.zeros((600, 4)), slip_speed=1e-3)
    assert run.poses[-1, 0] == pytest.approx(1.0 / (2 * 0.7 * 9.81), rel=0.02)
    assert np.all(np.diff(run.twists[:, 0]) <= 0.0) and np.all(run.twists[:, 0] >= 0.0)
    assert run.twists[-1, 0] < 1e-9


def test_on_ice_the_body_flies_on_while_it_turns() -> None:
    base = base_of(LAYOUTS["youBot"], centre_of_mass=(0.0, 0.0, 0.1))
    ice = tuple(dataclasses.replace(one, friction_coefficient=0.0) for one in base.wheels)
    run = simulate(dataclasses.replace(base, wheels=ice), BaseState([0.4, -0.2, 1.5], np.ones(4)), np.zeros((2000, 4)))
    np.testing.assert_allclose(run.poses[-1], [0.8, -0.4, 3.0], atol=1e-11)
    np.testing.assert_allclose(run.wheel_angles[-1], 2.0, atol=1e-11)
    np.testing.assert_allclose(run.twists[:, 2], 1.5, rtol=1e-13)


def test_the_direction_and_place_of_the_scene_do_not_matter() -> None:
    base = base_of(LAYOUTS["mixed"])
    state, torques = sliding_state(base, 5), torques_over(base, 300)
    moved = dataclasses.replace(state, pose=[3.0, -1.0, state.pose[2] + 2.0])
    one, other = simulate(base, state, *torques), simulate(base, moved, *torques)
    np.testing.assert_allclose(other.twists, one.twists, atol=1e-10)
    turned = (one.poses[:, :2] - state.pose[:2]) @ rotation(2.0).T + [3.0, -1.0]
    np.testing.assert_allclose(other.poses[:, :2], turned, atol=1e-10)


def test_a_mecanum_base_that_grips_moves_as_the_base_without_slip() -> None:
    kinematics = MecanumBase.rectangular(0.08, 0.25, 0.2)
    base = base_of(["mecanum"] * 4, centre_of_mass=(0.0, 0.0, 0.1), product_xz=0.0, product_yz=0.0)
    reduced = MecanumDynamics(kinematics, base.mass, base.yaw_inertia + 4 * 0.03, 0.012)
    torques = np.array([1.0, 0.2, 0.5, 0.8])  # ring order
    run = simulate(base, BaseState(np.zeros(3), np.zeros(4)), np.tile(torques, (500, 1)), slip_speed=1e-4)
    twist, dt = np.zeros(3), 1e-4
    for _ in range(5000):
        twist = twist + dt * reduced.acceleration(twist, torques[[0, 1, 3, 2]])
    np.testing.assert_allclose(run.twists[-1], twist, atol=5e-3 * np.max(np.abs(twist)))


def test_a_run_can_be_cut_and_taken_up_again() -> None:
    base = base_of(LAYOUTS["youBot"], centre_of_mass=(0.0, 0.0, 0.0), product_xz=0.0, product_yz=0.0)
    drive, _ = torques_over(base, 200)
    whole = simulate(base, sliding_state(base, 3), drive)
    first = simulate(base, sliding_state(base, 3), drive[:100])
    second = simulate(base, first.state(), drive[100:])
    # The normal forces start again from the weight at rest: only the first step after the cut feels it.
    np.testing.assert_allclose(second.twists[-1], whole.twists[-1], atol=2e-2)
    np.testing.assert_array_equal(first.twists, whole.twists[:101])


def a_run_of_each_kind() -> np.ndarray:
    parts = []
    for name in ("mixed", "six", "differential"):
        low = base_of(LAYOUTS[name])
        base = dataclasses.replace(low, centre_of_mass=(0.03, -0.02, 0.8)) if name == "six" else low  # wheels lift
        run = simulate(base, sliding_state(base, 2), *torques_over(base, 100))
        parts += [run.poses, run.twists, run.wheel_speeds, run.wheel_angles, run.steering_angles, run.normal_forces]
    return np.concatenate([part.reshape(-1) for part in parts])


def test_without_numba_the_base_moves_alike() -> None:
    plain = numbers_without_numba(a_run_of_each_kind)
    np.testing.assert_allclose(plain, a_run_of_each_kind(), rtol=1e-9, atol=1e-9)


def rollers(kind: str) -> WheeledBase:
    """20 kg on four wheels of 5 cm; casters trail by 3 cm."""
    changes = {"radius": 0.05, "spin_inertia": 1e-3, "friction_coefficient": 0.8, "steering_inertia": 1e-3}
    changes |= {"offset": 0.03} if kind == "caster" else {}
    places = [(0.2, 0.15), (0.2, -0.15), (-0.2, 0.15), (-0.2, -0.15)]
    return WheeledBase(tuple(wheel(str(i), kind, p, **changes) for i, p in enumerate(places)), 20.0, 1.0, (0, 0, 0.1))


@pytest.mark.parametrize(
    ("kind", "dt"), [("caster", 0.05), ("caster", 0.1), ("caster", 1.0), ("steered", 1.0), ("fixed", 100.0)]
)
def test_steps_too_long_are_refused_and_make_no_energy(kind: str, dt: float) -> None:
    with pytest.raises(InputError, match="motion of the base: got a motion without bounds; .*shorten dt"):
        simulate(rollers(kind), BaseState([1.0, 0.3, 0.5], np.zeros(4)), np.zeros((200, 4)), dt=dt)


@pytest.mark.parametrize("dt", [0.001, 0.01, 0.02])
@pytest.mark.parametrize("kind", ["caster", "steered", "fixed"])
def test_steps_short_enough_for_casters_lose_energy(kind: str, dt: float) -> None:
    base = rollers(kind)
    run = simulate(base, BaseState([1.0, 0.3, 0.5], np.zeros(4)), np.zeros((200, 4)), dt=dt)
    energy = [base.energy(run.state(k)) for k in range(201)]
    assert max(energy) <= energy[0] * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("twist", "torque"), [([0.0, 0.0, 0.0], 1e100), ([1e80, 0.0, 1e80], 0.0), ([0.0, 0.0, 0.0], -1e100)]
)
def test_numbers_that_overflow_are_no_motion(twist: list[float], torque: float) -> None:
    with pytest.raises(InputError, match="motion of the base: got a motion without bounds"):
        simulate(rollers("fixed"), BaseState(twist, np.zeros(4)), np.tile([torque, -torque], (50, 2)))


@pytest.mark.parametrize("torque", [0.0, 1e-9, 0.3, 50.0, 1e4])
def test_a_base_set_in_motion_by_its_motors_is_within_bounds(torque: float) -> None:
    for kind in ("fixed", "steered", "caster"):
        base = rollers(kind)
        steer = np.full((300, 4), 1e-2 * torque) if kind != "fixed" else None
        run = simulate(base, BaseState(np.zeros(3), np.zeros(4)), np.full((300, 4), torque), steer)
        assert np.isfinite(run.twists).all()


def test_arguments_that_do_not_fit_are_refused() -> None:
    base = base_of(LAYOUTS["car"])
    state = BaseState(np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match=r"wheel_torques: got shape \(4,\); expected shape \(n, 4\)"):
        simulate(base, state, np.zeros(4))
    with pytest.raises(InputError, match=r"steering_torques: got shape \(5, 4\); expected shape \(6, 4\)"):
        simulate(base, state, np.zeros((6, 4)), np.zeros((5, 4)))
    with pytest.raises(InputError, match="steering torque of wheel w2"):
        simulate(base, state, np.zeros((6, 4)), np.tile([0.0, 0.0, 1.0, 0.0], (6, 1)))
    with pytest.raises(InputError, match=r"wheel_torques\[2, 1\]: got nan"):
        simulate(base, state, np.where(np.arange(24).reshape(6, 4) == 9, np.nan, 0.0))
    with pytest.raises(InputError, match="wheel_speeds"):
        simulate(base, BaseState(np.zeros(3), np.zeros(3)), np.zeros((6, 4)))
    for wrong in ({"dt": 0.0}, {"slip_speed": -1.0}):
        with pytest.raises(ModelError, match=next(iter(wrong))):
            simulate(base, state, np.zeros((6, 4)), **wrong)
