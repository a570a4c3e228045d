"""The mecanum base of system 35: effective inertia, friction, and the same base wheel by wheel."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wheeled_bases import wheel

from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics, effective_inertia
from youbot_dynamics.dynamics.wheeled_base import WheeledBase
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase

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
    random = np.random.default_rng(seed)
    same = {"radius": RADIUS, "spin_inertia": 0.0106, "steering_inertia": 0.0}
    angles = np.array([-1.0, 1.0, 1.0, -1.0]) * np.pi / 4
    wheels = [
        wheel(str(k), "mecanum", place, roller_angle=angles[k], **same) for k, place in enumerate(KINEMATICS.positions)
    ]
    base = WheeledBase(tuple(wheels), 29.9, 1.1, (0.0, 0.0, 0.15))
    state, torques = base.rolling_state(random.normal(size=3)), random.normal(size=4)
    np.testing.assert_allclose(state.wheel_speeds, KINEMATICS.wheel_speeds(state.twist))
    motion = base.motion(state, torques, rolling=[True] * 4)
    np.testing.assert_allclose(motion.twist_rate, SMOOTH.acceleration(state.twist, torques), atol=1e-12)


def test_rolling_wheels_add_no_centripetal_force() -> None:
    """Lagrange with the effective mass in body velocities would turn J_w/R^2 too: 16 kg more; energy would not mind."""
    twist = np.array([0.5, 0.2, 1.5])
    rate = SMOOTH.acceleration(twist, np.zeros(4))
    assert SMOOTH.effective_inertia[0, 0] * rate[0] == pytest.approx(29.9 * 1.5 * 0.2)
    heavy = SMOOTH.effective_inertia[0, 0]
    assert abs(heavy * 1.5 * 0.2 / heavy - rate[0]) > 0.1


@given(twist=TWIST)
@settings(max_examples=60, deadline=None)
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
    """Seed 003 reports xi_L = -127.7 and F2 = -0.34: such a base drives itself."""
    with pytest.raises(ModelError, match=f"{name} of the base: got -0.34"):
        dataclasses.replace(YOUBOT, **{name: -0.34})


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ModelError, match="mass of the base"):
        dataclasses.replace(YOUBOT, mass=0.0)
    with pytest.raises(InputError, match=r"twist: got shape \(2,\); expected shape \(3,\)"):
        YOUBOT.friction([0.0, 1.0])
    with pytest.raises(InputError, match=r"wheel_torques\[3\]: got nan"):
        YOUBOT.acceleration([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, np.nan])
    with pytest.raises(ValueError, match="read-only"):
        YOUBOT.effective_inertia[0, 0] = 1.0
