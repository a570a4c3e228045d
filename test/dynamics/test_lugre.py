"""LuGre friction: the step against scipy's Radau, invariance, slopes, stiction, and what document 001 prints wrong."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_python import numbers_without_numba
from scipy.integrate import solve_ivp

from youbot_dynamics.dynamics.lugre import LuGre, micro_damping
from youbot_dynamics.dynamics.lugre import _bristle as bristle_step
from youbot_dynamics.errors import InputError, ModelError

PLAIN = LuGre(coulomb=1.0, viscous=0.1, sigma0=1e4, sigma1=1.0)
STRIBECK = LuGre(coulomb=1.0, viscous=0.6, sigma0=1e4, sigma1=1.0, static=1.5, stribeck_speed=0.05)


def by_radau(friction: LuGre, z: float, v_start: float, v_end: float, dt: float) -> float:
    """Bristle after a step of linear speed, integrated with rtol 1e-12 and restarted where the speed is zero."""
    coulomb, _, sigma0, _, static, stribeck_speed = friction.constants

    def rate(t: float, y: np.ndarray) -> list[float]:
        v = v_start + (v_end - v_start) * t / dt
        level = coulomb + (static - coulomb) * math.exp(-((v / stribeck_speed) ** 2))
        return [v - sigma0 * abs(v) / level * y[0]]

    cuts = [0.0, dt]
    if v_start * v_end < 0.0:
        cuts.insert(1, dt * v_start / (v_start - v_end))
    for begin, end in zip(cuts, cuts[1:], strict=False):
        z = solve_ivp(rate, (begin, end), [z], "Radau", rtol=1e-12, atol=1e-16 / sigma0).y[0, -1]
    return z


def multi_sine(times: np.ndarray) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * 1.3 * times) + 0.2 * np.cos(2 * np.pi * 7.1 * times + 0.4)


@pytest.mark.parametrize("friction", [PLAIN, STRIBECK])
@pytest.mark.parametrize("factor", [0.3, 4.0])
def test_the_bristle_depends_on_the_ratio_of_friction_and_stiffness_alone(friction: LuGre, factor: float) -> None:
    static = None if friction.static is None else factor * friction.static
    coulomb, sigma0 = factor * friction.coulomb, factor * friction.sigma0
    stronger = dataclasses.replace(friction, coulomb=coulomb, sigma0=sigma0, static=static)
    for v_start, v_end in ((0.2, 0.5), (0.2, -0.1), (-0.02, -0.03), (0.0, 0.01)):
        one, other = (law.advance_jacobians(3e-5, v_start, v_end, 2e-3) for law in (friction, stronger))
        assert dataclasses.astuple(other) == pytest.approx(dataclasses.astuple(one), rel=1e-9, abs=1e-15)
        assert stronger.torque(3e-5, 0.0) == pytest.approx(factor * friction.torque(3e-5, 0.0))


@pytest.mark.parametrize("sigma0", [1e3, 1e4, 1e5])
def test_the_step_without_stribeck_is_exact(sigma0: float) -> None:
    """40 samples with reversals inside steps and, forced, on samples: off by <= 1e-10 N m from Radau."""
    friction = dataclasses.replace(PLAIN, sigma0=sigma0)
    speeds = multi_sine(np.arange(40) * 0.01)
    speeds[[9, 30]] = 0.0
    assert np.sum(speeds[1:] * speeds[:-1] < 0.0) >= 3
    reference = [0.3 / sigma0]
    for v_start, v_end in zip(speeds, speeds[1:], strict=False):
        reference.append(by_radau(friction, reference[-1], v_start, v_end, 1e-3))
    got = friction.follow_speeds(0.3 / sigma0, speeds, 1e-3)
    assert sigma0 * np.max(np.abs(got - reference)) <= 1e-10


@pytest.mark.parametrize("sigma0", [1e3, 1e4, 1e5])
def test_the_position_log_of_a_swing_gives_the_closed_form(sigma0: float) -> None:
    """v = 0.5 cos(2 pi t): on each half-wave the path law holds from its start to any sample."""
    friction = dataclasses.replace(PLAIN, sigma0=sigma0)
    positions = 0.5 * np.sin(2 * np.pi * np.linspace(0.0, 1.0, 1001)) / (2 * np.pi)
    right = np.zeros(1001)
    for begin, end, sign in ((0, 250, 1.0), (250, 750, -1.0), (750, 1000, 1.0)):
        path = np.abs(positions[begin : end + 1] - positions[begin])
        right[begin : end + 1] = sign / sigma0 + (right[begin] - sign / sigma0) * np.exp(-sigma0 * path)
    assert sigma0 * np.max(np.abs(friction.follow_positions(0.0, positions) - right)) <= 1e-12


def test_the_bristle_knows_the_path_but_not_the_time_it_took() -> None:
    speeds = multi_sine(np.arange(300) * 1e-2)
    slow = PLAIN.follow_speeds(0.0, speeds, 1e-3)
    fast = PLAIN.follow_speeds(0.0, 17.0 * speeds, 1e-3 / 17.0)
    assert np.max(np.abs(slow - fast)) * 1e4 <= 1e-12
    one_way = PLAIN.advance(2e-5, 0.01, 0.19, 1e-3)
    assert PLAIN.advance_path(2e-5, 1e-4) == pytest.approx(one_way, rel=1e-13)
    assert PLAIN.advance_path(PLAIN.advance_path(2e-5, 4e-5), 6e-5) == pytest.approx(one_way, rel=1e-13)


def test_motion_turned_round_bends_the_bristle_the_other_way() -> None:
    assert STRIBECK.advance(-3e-5, -0.1, 0.03, 1e-2) == -STRIBECK.advance(3e-5, 0.1, -0.03, 1e-2)
    assert PLAIN.advance_path(-3e-5, 2e-5) == -PLAIN.advance_path(3e-5, -2e-5)


def test_explicit_euler_diverges_where_the_path_law_does_not() -> None:
    """Gain 1 - sigma0 |v| dt / c0 = -9 at 1e5 N m/rad, 0.1 rad/s, 1 N m, 1 ms (system 9)."""
    friction = dataclasses.replace(PLAIN, sigma0=1e5)
    start = 0.9e-5
    euler = exact = start
    for _ in range(20):
        before = euler
        euler += friction.rate(euler, 0.1) * 1e-3
        assert (euler - 1e-5) / (before - 1e-5) == pytest.approx(-9.0, rel=1e-6)
        exact = friction.advance(exact, 0.1, 0.1, 1e-3)
    assert abs(euler) > 1e12
    assert exact == pytest.approx(1e-5, rel=1e-12)


@pytest.mark.parametrize("sigma0", [1e3, 1e5])
def test_with_a_stribeck_curve_the_step_is_off_by_a_thousandth_of_the_rise(sigma0: float) -> None:
    friction = dataclasses.replace(STRIBECK, sigma0=sigma0)
    rng = np.random.default_rng(3)
    for k in range(25):
        v_start = rng.normal() * 10.0 ** rng.uniform(-2.5, 0.0)
        v_end = rng.normal() * 0.3 if k % 3 == 0 else v_start + rng.normal() * 0.02
        z = rng.uniform(-1.0, 1.0) * friction.reach
        off = friction.advance(z, v_start, v_end, 1e-3) - by_radau(friction, z, v_start, v_end, 1e-3)
        assert sigma0 * abs(off) <= 1e-3 * 0.5


def test_with_a_stribeck_curve_the_scheme_is_of_second_order() -> None:
    change = 0.99 * bristle_step.STRIBECK_PART * 0.05  # one part
    off = []
    for pieces in (1, 2, 4):
        z, speeds = 0.5e-4, 0.05 + change * np.linspace(0.0, 1.0, pieces + 1)
        got = STRIBECK.follow_speeds(z, speeds, 2e-3 / pieces)[-1]
        off.append(got - by_radau(STRIBECK, z, speeds[0], speeds[-1], 2e-3))
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.1)
    assert off[1] / off[2] == pytest.approx(4.0, rel=0.1)


def test_at_held_speed_the_stribeck_step_is_exact() -> None:
    for v in (0.0, 0.02, -0.07):
        assert STRIBECK.advance(2e-5, v, v, 1e-3) == pytest.approx(by_radau(STRIBECK, 2e-5, v, v, 1e-3), abs=1e-16)
        assert STRIBECK.advance_path(2e-5, v * 1e-3, speed=v) == pytest.approx(STRIBECK.advance(2e-5, v, v, 1e-3))


@pytest.mark.parametrize("friction", [PLAIN, STRIBECK], ids=["plain", "stribeck"])
@settings(max_examples=300)
@given(share=st.floats(-1, 1), v_start=st.floats(-30, 30), v_end=st.floats(-30, 30), dt=st.floats(0, 10))
def test_a_bristle_within_reach_stays_there(
    friction: LuGre, share: float, v_start: float, v_end: float, dt: float
) -> None:
    after = friction.advance(share * friction.reach, v_start, v_end, dt)
    assert abs(after) <= friction.reach * (1 + 1e-15)


@pytest.mark.parametrize("friction", [PLAIN, STRIBECK], ids=["plain", "stribeck"])
def test_slopes_agree_with_central_differences(friction: LuGre) -> None:
    rng = np.random.default_rng(4)
    z, v = rng.uniform(-1e-4, 1e-4, 50), rng.uniform(0.003, 0.4, 50) * rng.choice([-1, 1], 50)
    slopes = friction.jacobians(z, v)
    dz, dv = 1e-9, 1e-6
    assert slopes.rate_over_bristle == pytest.approx((friction.rate(z + dz, v) - friction.rate(z - dz, v)) / (2 * dz))
    assert slopes.rate_over_speed == pytest.approx(
        (friction.rate(z, v + dv) - friction.rate(z, v - dv)) / (2 * dv), rel=1e-6, abs=1e-6
    )
    assert slopes.torque_over_bristle == pytest.approx(
        (friction.torque(z + dz, v) - friction.torque(z - dz, v)) / (2 * dz)
    )
    assert slopes.torque_over_speed == pytest.approx(
        (friction.torque(z, v + dv) - friction.torque(z, v - dv)) / (2 * dv), rel=1e-6, abs=1e-6
    )


@pytest.mark.parametrize("friction", [PLAIN, STRIBECK], ids=["plain", "stribeck"])
@pytest.mark.parametrize("sigma0", [1e3, 1e5])
def test_slopes_of_a_step_agree_with_central_differences(friction: LuGre, sigma0: float) -> None:
    """Random steps, half of them with a reversal inside; the Stribeck steps have many parts."""
    friction = dataclasses.replace(friction, sigma0=sigma0)
    rng = np.random.default_rng(5)
    dt = 1e-3
    for k in range(60):
        v_start, v_end = rng.uniform(0.01, 0.5, 2) * (1.0, -1.0 if k % 2 else 1.0)
        z = rng.uniform(-1.0, 1.0) * friction.reach
        step = friction.advance_jacobians(z, v_start, v_end, dt)
        assert step.bristle == pytest.approx(friction.advance(z, v_start, v_end, dt), abs=1e-15 * friction.reach * 8)
        dz, dv = 1e-6 * friction.reach, 1e-8
        over_z = (friction.advance(z + dz, v_start, v_end, dt) - friction.advance(z - dz, v_start, v_end, dt)) / 2 / dz
        over_start = friction.advance(z, v_start + dv, v_end, dt) - friction.advance(z, v_start - dv, v_end, dt)
        over_end = friction.advance(z, v_start, v_end + dv, dt) - friction.advance(z, v_start, v_end - dv, dt)
        assert step.over_bristle == pytest.approx(over_z, abs=1e-8)
        assert step.over_start_speed / dt == pytest.approx(over_start / (2 * dv * dt), abs=2e-5)
        assert step.over_end_speed / dt == pytest.approx(over_end / (2 * dv * dt), abs=2e-5)


def test_at_rest_the_slopes_are_the_mean_of_the_one_sided_ones() -> None:
    z, dv = 0.6e-4, 1e-9
    for friction in (PLAIN, STRIBECK):
        slopes = friction.jacobians(z, 0.0)
        ahead = (friction.rate(z, dv) - friction.rate(z, 0.0)) / dv
        back = (friction.rate(z, 0.0) - friction.rate(z, -dv)) / dv
        assert slopes.rate_over_speed == pytest.approx((ahead + back) / 2) == 1.0
        step = friction.advance_jacobians(z, 0.0, 0.0, 1e-3)
        assert (step.bristle, step.over_bristle, step.over_start_speed, step.over_end_speed) == (z, 1.0, 5e-4, 5e-4)


def test_lugre_removes_the_jump_of_coulomb_friction_but_not_its_kink() -> None:
    """Document 001 introduces LuGre because static friction has no derivative: dz/dt over v has none at 0 either."""
    z, dv = 0.6e-4, 1e-9
    assert PLAIN.rate(z, dv) - PLAIN.rate(z, -dv) == pytest.approx(0.0, abs=1e-8)
    ahead = (PLAIN.rate(z, dv) - PLAIN.rate(z, 0.0)) / dv
    back = (PLAIN.rate(z, 0.0) - PLAIN.rate(z, -dv)) / dv
    assert back - ahead == pytest.approx(2 * 1e4 * z / 1.0, rel=1e-6)


def test_d_001_3_the_left_sides_of_12_are_those_of_the_rate() -> None:
    """Read as printed, d z/d z = -sigma0 |v| / c0 is -5000: z would jump away from itself; it is d z-dot/d z."""
    z, v, dt = 0.3e-4, 0.5, 1e-3
    printed_over_z, printed_over_v = -1e4 * v / 1.0, 1.0 - 1e4 / 1.0 * z
    dz, dv = 1e-9, 1e-6
    true_over_z = (PLAIN.advance(z + dz, v, v, dt) - PLAIN.advance(z - dz, v, v, dt)) / (2 * dz)
    true_over_v = (PLAIN.advance(z, v + dv, v + dv, dt) - PLAIN.advance(z, v - dv, v - dv, dt)) / (2 * dv)
    assert true_over_z == pytest.approx(math.exp(-5.0), rel=1e-6)
    assert printed_over_z == -5000.0
    assert printed_over_v / true_over_v > 1e4
    slopes = PLAIN.jacobians(z, v)
    assert (slopes.rate_over_bristle, slopes.rate_over_speed) == pytest.approx((printed_over_z, printed_over_v))
    assert (PLAIN.rate(z + dz, v) - PLAIN.rate(z - dz, v)) / (2 * dz) == pytest.approx(printed_over_z)


def test_a_gear_under_load_rubs_more_by_a_share_of_what_it_transmits() -> None:
    plain = LuGre(coulomb=0.5, viscous=0.1, sigma0=500.0, sigma1=0.05, static=0.7, stribeck_speed=0.1)
    for torque in (-4.0, 4.0):
        loaded = plain.under_load(0.05, torque)
        assert loaded.level(10.0) == pytest.approx(0.7) and loaded.breakaway_torque == pytest.approx(0.9)
        assert loaded.steady_torque(10.0) == pytest.approx(plain.steady_torque(10.0) + 0.2)
    assert plain.under_load(0.05, 0.0) == plain
    with pytest.raises(ModelError, match="load_coefficient"):
        plain.under_load(-0.1, 1.0)


def test_long_sliding_ends_in_the_steady_torque() -> None:
    for friction, v, level in ((PLAIN, 0.2, 1.0), (PLAIN, -0.2, 1.0), (STRIBECK, -0.05, 1.0 + 0.5 / math.e)):
        z = friction.advance(0.7 * friction.reach, v, v, 1.0)
        steady = math.copysign(level, v) + friction.viscous * v
        assert friction.torque(z, v) == pytest.approx(steady, rel=1e-12)
        assert friction.steady_torque(v) == pytest.approx(steady, rel=1e-12)
        assert friction.steady_bristle(v) == pytest.approx(z, rel=1e-12)
        assert friction.level(v) == pytest.approx(level)


def test_at_rest_every_bristle_within_reach_is_an_equilibrium() -> None:
    """Document 001 (15) gives z = 0 at rest; the joint holds any torque up to break-away (system 12)."""
    for torque in np.linspace(-1.5, 1.5, 13):
        z = STRIBECK.holding_bristle(float(torque))
        assert STRIBECK.rate(z, 0.0) == 0.0
        assert STRIBECK.torque(z, 0.0) == pytest.approx(torque, abs=1e-15)
        assert STRIBECK.advance(z, 0.0, 0.0, 10.0) == z
    assert (PLAIN.breakaway_torque, STRIBECK.breakaway_torque) == (1.0, 1.5)
    with pytest.raises(InputError, match=r"torque: got 1.51; expected at most 1.5 \[N m\] to hold"):
        STRIBECK.holding_bristle(-1.51)


def after_step(friction: LuGre, z: float, v_start: float, v_end: float, dt: float) -> tuple[float, float, float]:
    """Bristle [rad], torque [N m] at the end of a step, and the torque's derivative by v_end [N m s/rad]."""
    after, _, _, over_end = bristle_step.advance_with_slopes(z, v_start, v_end, dt, friction.constants)
    over_z, over_v = bristle_step.friction_torque_slopes(after, v_end, friction.constants)
    return after, bristle_step.friction_torque(after, v_end, friction.constants), over_z * over_end + over_v


def test_the_torque_after_a_step_has_the_slope_an_implicit_integrator_needs() -> None:
    for friction in (PLAIN, STRIBECK):
        # no change of speed by whole parts: differences across such a one see the scheme change
        for v_start, v_end in ((0.03, 0.051), (0.03, -0.021), (-0.2, -0.101)):
            after, torque, slope = after_step(friction, 4e-5, v_start, v_end, 1e-3)
            assert after == pytest.approx(friction.advance(4e-5, v_start, v_end, 1e-3), rel=1e-12)
            assert torque == pytest.approx(friction.torque(after, v_end), rel=1e-12)
            ends = (v_end - 1e-8, v_end + 1e-8)
            below, above = (friction.torque(friction.advance(4e-5, v_start, v, 1e-3), v) for v in ends)
            assert slope == pytest.approx((above - below) / 2e-8, rel=1e-5)


@pytest.mark.parametrize("faster", [0.01, 100.0])
def test_the_bristle_knows_no_speed_but_that_of_stribeck(faster: float) -> None:
    """dz/dt = v - sigma0 |v| z / g(v / v_s): all speeds times a factor take the same way in less time."""
    other = dataclasses.replace(STRIBECK, stribeck_speed=faster * STRIBECK.stribeck_speed)
    for v_start, v_end in ((0.03, 0.051), (0.03, -0.21), (-0.2, -0.101)):
        after = STRIBECK.advance(4e-5, v_start, v_end, 1e-3)
        step = 4e-5, faster * v_start, faster * v_end, 1e-3 / faster
        assert other.advance(*step) == pytest.approx(after, rel=1e-9)
        assert bristle_step.advance_with_slopes(*step, other.constants)[0] == pytest.approx(after, rel=1e-9)


def push(friction: LuGre, torque: float, seconds: float) -> tuple[float, float, float]:
    """Position, speed and bristle of a joint of 0.05 kg m2 pushed from rest, implicit in its speed at 1 ms."""
    inertia, dt = 0.05, 1e-3
    position = v = z = 0.0
    for _ in range(round(seconds / dt)):
        v_end = v
        for _ in range(20):
            after, friction_torque, slope = after_step(friction, z, v, v_end, dt)
            change = (inertia * (v_end - v) - dt * (torque - friction_torque)) / (inertia + dt * slope)
            v_end -= change
            if abs(change) < 1e-15:
                break
        position += 0.5 * dt * (v + v_end)
        z, v = after, v_end
    return position, v, z


def test_a_joint_holds_below_and_slides_above_the_breakaway_torque() -> None:
    friction = LuGre(coulomb=1.0, viscous=0.1, sigma0=1e5, sigma1=micro_damping(1.0, 0.05, 1e5, 0.1))
    position, v, z = push(friction, 0.95, 2.0)
    assert abs(v) < 1e-9
    assert z == pytest.approx(friction.holding_bristle(0.95), rel=1e-6)
    assert position < 10 * friction.reach
    position, v, _ = push(friction, 1.05, 20.0)
    assert v == pytest.approx(0.5, rel=1e-3)  # (1.05 - 1.0) / viscous
    assert position > 1.0


def test_friction_by_the_sign_of_the_position_supplies_energy() -> None:
    """The text of document 001 has break-away depend on sign(q); at q > 0 and v < 0 such a torque drives the joint."""
    q, v = 0.3, -0.2
    assert math.copysign(1.0, q) * v < 0.0
    assert PLAIN.steady_torque(v) * v > 0.0


def test_micro_damping_gives_the_damping_ratio_of_a_sticking_joint() -> None:
    sigma1 = micro_damping(0.7, 0.05, 1e4, 0.2)
    friction = LuGre(1.0, 0.2, 1e4, sigma1)
    slopes = friction.jacobians(0.0, 0.0)
    roots = np.roots([0.05, slopes.torque_over_speed, slopes.torque_over_bristle])
    assert -roots[0].real / abs(roots[0]) == pytest.approx(0.7, rel=1e-12)
    with pytest.raises(ModelError, match="damping_ratio: got 0.001; expected at least 0.00447214, that of viscous"):
        micro_damping(0.001, 0.05, 1e4, 0.2)
    with pytest.raises(ModelError, match="damping_ratio"):
        micro_damping(0.0, 1e308, 1e308, 0.0)  # 0 times an infinite damping is NaN


def test_arrays_give_what_numbers_give() -> None:
    z, v = np.linspace(-1e-4, 1e-4, 5), np.linspace(-0.2, 0.2, 5)
    for method in (STRIBECK.rate, STRIBECK.torque, STRIBECK.dissipation):
        assert method(z, v).tolist() == [method(float(a), float(b)) for a, b in zip(z, v, strict=True)]
    ends = STRIBECK.advance(z, v, 0.1 - v, 1e-3)
    one_by_one = zip(z.tolist(), v.tolist(), (0.1 - v).tolist(), strict=True)
    assert ends.tolist() == [STRIBECK.advance(*one, 1e-3) for one in one_by_one]
    assert STRIBECK.clamp(5.0 * z).tolist() == pytest.approx([-1.5e-4, -1.5e-4, 0.0, 1.5e-4, 1.5e-4])
    step = STRIBECK.advance_jacobians(z.reshape(5, 1), v, v, 1e-3)
    assert step.over_end_speed.shape == (5, 5)
    assert step.over_end_speed[1, 2] == STRIBECK.advance_jacobians(float(z[1]), 0.0, 0.0, 1e-3).over_end_speed


def test_a_log_may_have_steps_of_its_own() -> None:
    speeds = multi_sine(np.arange(30) * 0.01)
    steps = np.linspace(1e-3, 3e-3, 29)
    z = 1e-5
    for k in range(29):
        z = STRIBECK.advance(z, speeds[k], speeds[k + 1], steps[k])
    assert STRIBECK.follow_speeds(1e-5, speeds, steps)[-1] == z
    assert STRIBECK.follow_speeds(1e-5, [0.3], 1e-3).tolist() == [1e-5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coulomb": 0.0}, r"LuGre coulomb: got 0; expected a finite number above 0 \[N m\]"),
        ({"viscous": -0.1}, "LuGre viscous: got -0.1; expected a finite number of at least 0"),
        ({"sigma0": math.nan}, "LuGre sigma0: got nan"),
        ({"sigma1": -1.0}, "LuGre sigma1: got -1"),
        ({"static": 0.9, "stribeck_speed": 0.1}, "LuGre static: got 0.9; expected a finite number of at least 1"),
        ({"static": 1.2}, "LuGre stribeck_speed: got none; expected a number, since static is given"),
        ({"stribeck_speed": 0.1}, "LuGre static: got none; expected a number, since stribeck_speed is given"),
        ({"static": 1.2, "stribeck_speed": 0.0}, "LuGre stribeck_speed: got 0; expected a finite number above 0"),
    ],
)
def test_constants_no_friction_has_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        dataclasses.replace(PLAIN, **change)


def test_constants_are_kept_as_the_numbers_they_are() -> None:
    odd = LuGre(np.array(1.0), Fraction(1, 10), 10_000, np.float32(1.0))  # type: ignore[arg-type]
    assert odd == PLAIN and hash(odd) == hash(PLAIN)
    assert all(type(getattr(odd, name)) is float for name in ("coulomb", "viscous", "sigma0", "sigma1"))
    curved = LuGre(1, 0.6, 10_000, 1, np.array(1.5), np.array(0.05))  # type: ignore[arg-type]
    assert curved == STRIBECK and hash(curved) == hash(STRIBECK)
    with pytest.raises(ModelError, match="LuGre sigma0: got '1e4'"):
        LuGre(1.0, 0.1, "1e4", 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "friction"),
    [
        ("coulomb", (1e-200, 0.1, 1e200, 0.0)),
        ("sigma0", (1.0, 0.1, 1e300, 0.0)),
        ("static", (1.0, 0.1, 1e4, 0.0, 1e300, 0.1)),
        ("stribeck_speed", (1.0, 0.1, 1e4, 0.0, 1.5, 5e-324)),
    ],
)
def test_constants_whose_products_are_no_numbers_are_refused(name: str, friction: tuple[float, ...]) -> None:
    """A reach of coulomb / sigma0 = 0 has been divided by."""
    with pytest.raises(ModelError, match=f"LuGre {name}: got .*; expected a number from 1e-50 to 1e"):
        LuGre(*friction)


@pytest.mark.parametrize(
    "friction", [(1e-50, 0.1, 1e50, 0.0), (1e50, 0.1, 1e-50, 0.0), (1.0, 0.1, 1.0, 0.0, 1.5, 1e-50)]
)
def test_the_most_extreme_constants_give_numbers(friction: tuple[float, ...]) -> None:
    law = LuGre(*friction)
    for v_start, v_end in ((0.0, 0.0), (0.3, 0.3), (1e3, 2e3), (-0.3, 0.2), (1e-30, -1e-30)):
        step = law.advance_jacobians(0.5 * law.reach, v_start, v_end, 1e-3)
        slopes = law.jacobians(0.5 * law.reach, v_start)
        assert all(math.isfinite(x) for x in (*vars(step).values(), *vars(slopes).values()))
        assert abs(law.advance(0.5 * law.reach, v_start, v_end, 1e-3)) <= law.reach * (1 + 1e-15)


def test_one_way_steps_agree_with_the_general_ones() -> None:
    """Without a Stribeck curve a step of one part has formulas of its own."""
    rng = np.random.default_rng(6)
    for _ in range(300):
        v_start, v_end = rng.choice([-1.0, 1.0]) * rng.choice([0.0, 1e-3, 0.1, 3.0], 2) * rng.uniform(0.5, 1.0, 2)
        z, dt = rng.uniform(-1.0, 1.0) * PLAIN.reach, 10.0 ** rng.uniform(-6.0, 0.0)
        one_way = bristle_step.one_way_part(z, v_start, v_end, dt, PLAIN.constants)
        general = bristle_step.exponential_part(z, v_start, v_end, dt, PLAIN.constants)
        assert one_way == general[:4] == bristle_step.advance_with_slopes(z, v_start, v_end, dt, PLAIN.constants)


@pytest.mark.parametrize("friction", [PLAIN, STRIBECK], ids=["plain", "stribeck"])
@pytest.mark.parametrize("speeds", [(0.1, math.nan), (math.nan, 0.1), (0.1, math.inf), (-math.inf, math.inf)])
def test_the_walk_along_the_bristle_ends_for_speeds_that_are_none(friction: LuGre, speeds: tuple[float, float]) -> None:
    """Unchecked inside compiled loops, it went on forever where the last speed is NaN."""
    walk = (
        "from youbot_dynamics.dynamics.lugre._bristle import advance_with_slopes\n"
        "from math import inf, nan\n"
        f"advance_with_slopes(0.0, *{speeds}, 1e-3, {friction.constants})"
    )
    done = subprocess.run([sys.executable, "-c", walk], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="v: got nan; expected a finite number"):
        PLAIN.torque(0.0, math.nan)
    with pytest.raises(InputError, match=r"v\[1\]: got inf; expected a finite number"):
        PLAIN.torque(np.zeros(2), np.array([0.0, math.inf]))
    with pytest.raises(InputError, match=r"z and v: got shapes \(2,\) and \(3,\); expected numbers, or arrays"):
        PLAIN.torque(np.zeros(2), np.zeros(3))
    with pytest.raises(InputError, match="one element at least"):
        PLAIN.jacobians(np.zeros(0), np.zeros(0))
    with pytest.raises(InputError, match="dt: got -0.001; expected a finite time of at least 0"):
        PLAIN.advance(0.0, 0.0, 0.0, -1e-3)
    with pytest.raises(InputError, match="dt: got -1; expected times"):
        PLAIN.follow_speeds(0.0, [0.0, 1.0], [-1.0])
    with pytest.raises(InputError, match=r"dt: got shape \(2,\); expected shape \(1,\)"):
        PLAIN.follow_speeds(0.0, [0.0, 1.0], [1.0, 1.0])
    with pytest.raises(InputError, match="positions: got no sample"):
        PLAIN.follow_positions(0.0, [])
    with pytest.raises(InputError, match="z: got nan"):
        PLAIN.follow_positions(math.nan, [0.0])
    with pytest.raises(InputError, match="z: got rows of different lengths"):
        PLAIN.torque([[0.0], [0.0, 1.0]], 0.0)  # type: ignore[type-var]
    for wrong in ("a", None, math.nan, [[1.0], [1.0, 2.0]]):
        with pytest.raises(InputError, match="torque"):
            PLAIN.holding_bristle(wrong)  # type: ignore[type-var]
        with pytest.raises(InputError, match="dt"):
            PLAIN.follow_speeds(0.0, [0.0, 1.0, 2.0], wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="z"):
            PLAIN.follow_positions(wrong, [0.0, 1.0])  # type: ignore[arg-type]
    for wrong in (10**400, ""):
        with pytest.raises(InputError, match="v: got .*; expected numbers"):
            PLAIN.torque(0.0, wrong)
        with pytest.raises(InputError, match="dt: got .*; expected numbers"):
            PLAIN.advance(0.0, 0.0, 0.0, wrong)
    for friction in (PLAIN, STRIBECK):
        with pytest.raises(InputError, match="speed"):
            friction.advance_path(0.0, 1e-4, speed="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="advance_path without a speed: got a Stribeck curve; .*; give the speed"):
        STRIBECK.advance_path(0.0, 1e-4)
    with pytest.raises(InputError, match="follow_positions: got a Stribeck curve; .*; use follow_speeds"):
        STRIBECK.follow_positions(0.0, [0.0, 1.0])


def followed() -> np.ndarray:
    speeds = 0.4 * np.sin(0.37 * np.arange(200))
    return np.concatenate([friction.follow_speeds(1e-5, speeds, 1e-3) for friction in (PLAIN, STRIBECK)])


def test_without_numba_the_bristle_is_the_same() -> None:
    assert np.max(np.abs(followed() - numbers_without_numba(followed))) * 1e4 <= 1e-12
