"""The mecanum base of system 35: effective inertia, friction, and the same base wheel by wheel."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wheeled_bases import wheel

from youbot_dynamics.dynamics.mecanum_dynamics import (
    ROLLER_SPEED_SCALE,
    WHEEL_SPEED_SCALE,
    MecanumDynamics,
    effective_inertia,
)
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.source_systems.wheeled_base import WheeledBase

RADIUS, LENGTH, WIDTH = 0.0475, 0.235, 0.15
KINEMATICS = MecanumBase.rectangular(RADIUS, LENGTH, WIDTH)
YOUBOT = MecanumDynamics(KINEMATICS, 29.9, 1.1, 0.0106, 0.05, 0.12, 0.3, 15.0, 20.0)
SMOOTH = MecanumDynamics(KINEMATICS, 29.9, 1.1, 0.0106)
TWIST = st.tuples(st.floats(-0.8, 0.8), st.floats(-0.8, 0.8), st.floats(-2.0, 2.0))


def test_wheels_and_rollers_add_to_the_mass_as_the_formula_says() -> None:
    """m + 4 J_w/R^2 forward and sideways, 8 J_r/r^2 more sideways (D-003-10)."""
    inertia = effective_inertia(KINEMATICS, 29.9, 1.1, 0.0106, 0.05)
    assert inertia[0, 0] == pytest.approx(29.9 + 4 * 0.0106 / RADIUS**2)
    assert inertia[1, 1] == pytest.approx(29.9 + 4 * 0.0106 / RADIUS**2 + 8 * 0.05)
    assert inertia[2, 2] == pytest.approx(1.1 + 4 * 0.0106 * (LENGTH + WIDTH) ** 2 / RADIUS**2 + 8 * 0.05 * LENGTH**2)
    np.testing.assert_allclose(inertia - np.diag(np.diag(inertia)), 0.0, atol=1e-12)
    print(f"wheels and rotors add {4 * 0.0106 / RADIUS**2:.1f} kg to 29.9 kg")


def of_free_parts(dynamics: MecanumDynamics, twist: np.ndarray, torques: np.ndarray) -> np.ndarray:
    """Body (3) and four wheels as free bodies, joined by the rolling constraints with multipliers."""
    j = dynamics.base.inverse_matrix
    mass = np.diag([dynamics.mass, dynamics.mass, dynamics.yaw_inertia, *[dynamics.wheel_inertia] * 4])
    joined = np.hstack([j, -np.eye(4)])
    vx, vy, wz = twist
    force = np.array([dynamics.mass * wz * vy, -dynamics.mass * wz * vx, 0.0])
    system = np.block([[mass, joined.T], [joined, np.zeros((4, 4))]])
    return np.linalg.solve(system, np.concatenate([force, torques, np.zeros(4)]))[:3]


@pytest.mark.parametrize("seed", range(5))
def test_the_reduced_equation_is_that_of_body_and_wheels(seed: int) -> None:
    random = np.random.default_rng(seed)
    twist, torques = random.normal(size=3), random.normal(size=4)
    found, expected = SMOOTH.acceleration(twist, torques), of_free_parts(SMOOTH, twist, torques)
    np.testing.assert_allclose(found, expected, atol=3e-15 * np.max(np.abs(expected)) * 10)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_wheeled_base_with_mecanum_wheels_that_roll(seed: int) -> None:
    """With the centre of mass anywhere: seed 0 has it in the middle, seed 1 where the youBot has it."""
    random = np.random.default_rng(seed)
    centre = [(0.0, 0.0), (0.035, 0.0)][seed] if seed < 2 else tuple(random.normal(size=2) * 0.05)
    smooth = dataclasses.replace(SMOOTH, centre_of_mass=centre)
    same = {"radius": RADIUS, "spin_inertia": 0.0106, "steering_inertia": 0.0}
    angles = np.array([-1.0, 1.0, 1.0, -1.0]) * np.pi / 4
    wheels = [
        wheel(str(k), "mecanum", place, roller_angle=angles[k], **same) for k, place in enumerate(KINEMATICS.positions)
    ]
    base = WheeledBase(tuple(wheels), 29.9, 1.1, (*centre, 0.02))
    state, torques = base.rolling_state(random.normal(size=3)), random.normal(size=4)
    np.testing.assert_allclose(state.wheel_speeds, KINEMATICS.wheel_speeds(state.twist))
    motion = base.motion(state, torques, rolling=[True] * 4)
    np.testing.assert_allclose(motion.twist_rate, smooth.acceleration(state.twist, torques), atol=1e-12)


def test_a_load_ahead_of_the_centre_makes_turning_heavier_and_pulls_it_along() -> None:
    """Steiner's theorem, m x^2, on top of the yaw inertia about the centre of mass; a turn swings the load outward."""
    ahead = dataclasses.replace(SMOOTH, centre_of_mass=(0.035, 0.0))
    more = ahead.effective_inertia - SMOOTH.effective_inertia
    assert more[2, 2] == pytest.approx(29.9 * 0.035**2)
    assert 0.005 < more[2, 2] / SMOOTH.effective_inertia[2, 2] < 0.015
    assert more[1, 2] == more[2, 1] == pytest.approx(29.9 * 0.035)
    turning = ahead.acceleration([0.0, 0.0, 1.5], np.zeros(4))
    assert turning[0] * ahead.effective_inertia[0, 0] == pytest.approx(29.9 * 1.5**2 * 0.035)


@given(twist=TWIST)
@settings(max_examples=60)
def test_without_friction_and_torque_a_load_off_the_centre_keeps_its_energy(twist: tuple) -> None:
    ahead = dataclasses.replace(SMOOTH, centre_of_mass=(0.065, -0.02))
    change = np.array(twist) @ ahead.effective_inertia @ ahead.acceleration(twist, np.zeros(4))
    assert change == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("coulomb", "verdict"), [(0.12, "creeps"), (0.7, "creeps"), (1.0, "rings"), (1.5, "stays")])
def test_explicit_steps_come_to_rest_up_to_the_wheel_friction_that_is_said(coulomb: float, verdict: str) -> None:
    """Slope of the friction over the effective inertia: below 1 / step no sign changes, above 2 / step no rest."""
    base = MecanumDynamics(
        KINEMATICS, 29.946, 1.1, 0.0106, wheel_coulomb=coulomb, roller_coulomb=0.3, viscous_x=15.0, viscous_y=20.0
    )
    twist, ways = np.array([0.0, 0.0, 1e-6]), []
    for _ in range(3000):
        twist = twist + 1e-3 * base.acceleration(twist, np.zeros(4))
        ways.append(twist[2])
    way = np.array(ways)
    assert bool(np.all(way >= -1e-15)) == (verdict == "creeps")
    assert bool(abs(way[-1]) < 1e-12) == (verdict != "stays")


def test_rolling_wheels_add_no_centripetal_force() -> None:
    """Lagrange with the effective mass in body velocities would turn J_w/R^2 too: 16 kg more; energy would not mind."""
    twist = np.array([0.5, 0.2, 1.5])
    rate = SMOOTH.acceleration(twist, np.zeros(4))
    assert SMOOTH.effective_inertia[0, 0] * rate[0] == pytest.approx(29.9 * 1.5 * 0.2)
    heavy = SMOOTH.effective_inertia[0, 0]
    assert abs(heavy * 1.5 * 0.2 / heavy - rate[0]) > 0.1


@given(twist=TWIST)
@settings(max_examples=60)
def test_friction_is_odd_and_takes_power_in_every_motion(twist: tuple) -> None:
    assert YOUBOT.dissipation(twist) >= 0.0
    np.testing.assert_allclose(YOUBOT.friction(twist), -YOUBOT.friction(-np.array(twist)), atol=1e-12)
    rate = YOUBOT.acceleration(twist, np.zeros(4))
    change = np.array(twist) @ YOUBOT.effective_inertia @ rate
    assert change == pytest.approx(-YOUBOT.dissipation(twist), abs=1e-10)


def test_friction_far_from_rest_is_that_of_the_document() -> None:
    """Forward 4 F1/R + xi_L V; sideways also 4 sqrt(2) F2/r: all four wheels brake (D-003-9)."""
    forward, sideways = YOUBOT.friction([0.5, 0.0, 0.0]), YOUBOT.friction([0.0, 0.5, 0.0])
    assert forward[0] == pytest.approx(4 * 0.12 / RADIUS + 15.0 * 0.5)
    assert sideways[1] == pytest.approx(4 * 0.12 / RADIUS + 4 * np.sqrt(2.0) * 0.3 + 20.0 * 0.5)
    np.testing.assert_allclose([forward[1:], sideways[[0, 2]]], 0.0, atol=1e-12)
    power = 4 * 0.12 * 0.5 / RADIUS + 4 * np.sqrt(2.0) * 0.3 * 0.5 + 20.0 * 0.25
    assert YOUBOT.dissipation([0.0, 0.5, 0.0]) == pytest.approx(power)


def test_d_003_9_the_transverse_row_without_its_sum_loses_friction() -> None:
    """Printed F1/R (sign w): one sign gives a quarter of the force, the bare sum of all four gives none."""
    signs = np.sign(KINEMATICS.wheel_speeds([0.0, 0.5, 0.0]))
    only_wheels = dataclasses.replace(YOUBOT, roller_coulomb=0.0, viscous_y=0.0)
    true = only_wheels.friction([0.0, 0.5, 0.0])[1]
    assert abs(0.12 / RADIUS * signs[0]) == pytest.approx(true / 4)
    assert signs.sum() == 0.0


@pytest.mark.parametrize("name", ["wheel_coulomb", "roller_coulomb", "viscous_x", "viscous_y", "roller_mass"])
def test_negative_friction_is_refused(name: str) -> None:
    """Document 003 reports xi_L = -127.7 and F2 = -0.34: such a base drives itself."""
    with pytest.raises(ModelError, match=f"{name} of the base: got -0.34"):
        dataclasses.replace(YOUBOT, **{name: -0.34})


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ModelError, match="mass of the base"):
        dataclasses.replace(YOUBOT, mass=0.0)
    with pytest.raises(InputError, match=r"centre_of_mass: got shape \(3,\)"):
        dataclasses.replace(YOUBOT, centre_of_mass=(0.0, 0.0, 0.1))
    with pytest.raises(InputError, match=r"twist: got shape \(2,\); expected shape \(3,\)"):
        YOUBOT.friction([0.0, 1.0])
    with pytest.raises(InputError, match=r"wheel_torques\[3\]: got nan"):
        YOUBOT.acceleration([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, np.nan])
    with pytest.raises(ValueError, match="read-only"):
        YOUBOT.effective_inertia[0, 0] = 1.0


def three_omni_wheels() -> MecanumDynamics:
    base = MecanumBase.omni_circle(0.04, 0.13, np.radians([150.0, 270.0, 30.0]), (0.0, 0.0, 0.0))
    friction = {"wheel_coulomb": 0.05, "roller_coulomb": 0.2, "viscous_x": 6.0, "viscous_y": 6.0}
    return MecanumDynamics(base, 12.5, 0.2, 0.004, roller_mass=0.1, **friction)


def test_a_symmetric_base_on_three_omni_wheels_feels_the_same_after_a_third_of_a_turn() -> None:
    model, third = three_omni_wheels(), 2.0 * np.pi / 3.0
    c, s = np.cos(third), np.sin(third)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    for twist in np.random.default_rng(1).uniform(-0.5, 0.5, (20, 3)):
        np.testing.assert_allclose(model.friction(turn @ twist), turn @ model.friction(twist), atol=1e-12)
    np.testing.assert_allclose(turn @ model.effective_inertia @ turn.T, model.effective_inertia, atol=1e-12)


def test_friction_of_omni_wheels_dissipates_what_each_wheel_and_roller_does() -> None:
    """Power of F1 at the wheels, of F2 / r at the rollers, which turn by the speed across the drive, and of xi."""
    model = three_omni_wheels()
    for vx, vy, wz in np.random.default_rng(2).uniform(-0.5, 0.5, (20, 3)):
        power = 0.0
        for (x, y), angle in zip(model.base.positions, model.base.drive_angles, strict=True):
            at_wheel = np.array([vx - wz * y, vy + wz * x])
            along = at_wheel @ [np.cos(angle), np.sin(angle)]
            across = at_wheel @ [-np.sin(angle), np.cos(angle)]
            power += 0.05 * np.tanh(along / 0.04 / WHEEL_SPEED_SCALE) * along / 0.04
            power += 0.2 * np.tanh(across / ROLLER_SPEED_SCALE) * across + 6.0 / 3.0 * at_wheel @ at_wheel
        assert model.dissipation([vx, vy, wz]) == pytest.approx(power, rel=1e-12)


# Fixed wheels


@pytest.mark.parametrize("seed", range(5))
def test_a_differential_base_is_body_wheels_and_a_floor_that_holds_it_sideways(seed: int) -> None:
    """Lagrange's multipliers of rolling and of no sideways slip, for a centre of mass ahead of the axle."""
    random = np.random.default_rng(seed)
    base, ahead = MecanumBase.differential(0.033, 0.16), 0.03
    dynamics = MecanumDynamics(base, 1.0, 0.004, 2e-4, centre_of_mass=(ahead, 0.0))
    (vx, _, wz), torques = twist = base.motions @ random.normal(size=2), random.normal(size=2)
    body = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, ahead], [0.0, ahead, 0.004 + ahead**2]])
    mass = np.zeros((5, 5))
    mass[:3, :3], mass[3:, 3:] = body, 2e-4 * np.eye(2)
    joined = np.vstack([np.hstack([base.inverse_matrix, -np.eye(2)]), [[0.0, 1.0, 0.0, 0.0, 0.0]]])
    force = np.array([wz * wz * ahead, -wz * vx, -wz * vx * ahead, *torques])
    system = np.block([[mass, joined.T], [joined, np.zeros((3, 3))]])
    expected = np.linalg.solve(system, np.concatenate([force, np.zeros(3)]))[:3]
    np.testing.assert_allclose(dynamics.acceleration(twist[0], torques), expected, atol=1e-12 * np.abs(expected).max())
