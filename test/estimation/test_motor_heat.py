"""Temperatures nobody senses: the slow filter against the motor it models, its honesty, voltage, limits."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from youbot_dynamics.dynamics.thermal_motor import GearedMotor, heat_step
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.estimation.ekf import TAKEN
from youbot_dynamics.estimation.motor_heat import HeatTuning, MotorHeat
from youbot_dynamics.estimation.motor_heat import _model as model
from youbot_dynamics.robot import load_robot

ROBOT = load_robot()
MOTORS = ROBOT.arm.motors()
NOMINAL = [joint.motor.nominal_current for joint in ROBOT.arm.joints]
AIR = 25.0
LIMIT = 125.0


def drawn(motor: GearedMotor, seed: int, share: float = 0.2, air: float = AIR) -> GearedMotor:
    """Thermal resistances, capacities and winding resistance `share` above or below the sheet."""
    s = 1.0 + share * np.random.default_rng([seed, 8]).choice([-1.0, 1.0], 5)
    m = motor.motor
    to_housing, to_air = m.winding_housing_resistance * s[0], m.housing_ambient_resistance * s[1]
    inside = dataclasses.replace(
        m,
        winding_housing_resistance=to_housing,
        housing_ambient_resistance=to_air,
        winding_time_constant=to_housing * m.winding_capacity * s[2],
        housing_time_constant=to_air * m.housing_capacity * s[3],
        resistance=m.resistance * s[4],
        ambient_temperature=air,
    )
    return GearedMotor(inside, motor.ratio)


def heated(
    joint: int,
    seed: int,
    share: float,
    *,
    air: float = AIR,
    hotter: float = 0.0,
    voltage: bool = False,
    known_air: float = 5.0,
) -> tuple[float, float]:
    """Ten minutes at 0.8 of the nominal current: error of the winding at the end [K], and its published deviation."""
    random = np.random.default_rng([seed, 9])
    true = drawn(MOTORS[joint], seed, share, air)
    current = 0.8 * NOMINAL[joint]
    winding = housing = air + hotter
    heat = MotorHeat(MOTORS[joint], 0.0, AIR if hotter else None, HeatTuning(ambient_deviation=known_air))
    for k in range(1, 1201):
        winding, housing = heat_step(true.motor.heat_constants, winding, housing, current**2, 0.0, 0.5)
        heat.predict(0.5 * k, current**2 * (1.0 + 0.01 * random.normal()))
        if voltage:
            there = true.motor.resistance_at(winding) * current + 0.05 * random.normal()
            heat.update_voltage(there, current * (1.0 + 0.002 * random.normal()), 0.0)
    return heat.state.winding - winding, heat.state.winding_deviation


@pytest.mark.parametrize("dt", [0.1, 0.5, 5.0])
def test_its_jacobian_is_that_of_its_step(dt: float) -> None:
    heat = MotorHeat(MOTORS[0], 0.0)
    random = np.random.default_rng(0)
    for square in (0.0, 4.0, 30.0):
        mean = np.r_[60.0, 40.0, 25.0, 0.2 * random.normal(size=5)]
        jacobian = heat._step(mean.copy(), dt, square).jacobian
        for k in range(model.STATES):
            change = np.zeros(model.STATES)
            change[k] = 1e-5
            up, down = heat._step(mean + change, dt, square).mean, heat._step(mean - change, dt, square).mean
            np.testing.assert_allclose(jacobian[:, k], (up - down) / 2e-5, atol=1e-6 * np.abs(jacobian).max())


def test_its_mean_warms_as_the_motor_does() -> None:
    heat = MotorHeat(MOTORS[3], 0.0, 30.0)
    winding = housing = 30.0
    for k in range(1, 400):
        square = 1.5 if k % 100 < 50 else 0.0
        winding, housing = heat_step(MOTORS[3].motor.heat_constants, winding, housing, square, 0.0, 0.5)
        heat.predict(0.5 * k, square)
    assert heat.state.winding == pytest.approx(winding, abs=1e-9)
    assert heat.state.housing == pytest.approx(housing, abs=1e-9)


@pytest.mark.parametrize("joint", [0, 3, 4])
def test_with_true_constants_the_winding_is_known_to_a_kelvin_and_ten_kelvin_are_forgotten(joint: int) -> None:
    assert abs(heated(joint, 1, 0.0)[0]) <= 1.0
    assert abs(heated(joint, 1, 0.0, hotter=10.0)[0]) <= 3.0


def coverage(seeds: int) -> float:
    """Share of runs whose error stays below two published deviations; constants 20 % and the air 5 K off."""
    inside = []
    for seed in range(seeds):
        for joint in (0, 4):
            error, deviation = heated(joint, seed, 0.2, air=AIR + (5.0 if seed % 2 else -5.0))
            inside.append(abs(error) < 2.0 * deviation)
    return float(np.mean(inside))


def test_the_published_deviation_is_honest_where_the_constants_are_20_percent_off() -> None:
    assert coverage(8) >= 0.9


@pytest.mark.slow
def test_the_published_deviation_is_honest_over_a_hundred_motors() -> None:
    assert coverage(100) >= 0.9


def test_voltage_after_a_cold_start_finds_the_winding_to_3_kelvin_where_all_else_is_off() -> None:
    errors = [heated(joint, seed, 0.2, voltage=True, known_air=1.0)[0] for seed in range(4) for joint in (0, 4)]
    assert np.sqrt(np.mean(np.square(errors))) <= 3.0
    blind = [heated(joint, seed, 0.2, known_air=1.0)[0] for seed in range(4) for joint in (0, 4)]
    assert np.sqrt(np.mean(np.square(blind))) > 6.0


def test_voltage_tells_the_rise_and_not_the_air() -> None:
    """R grows with T: with a cold start its ratio gives the rise; air that is 5 K off stays so, and is published."""
    error, deviation = heated(0, 0, 0.2, air=30.0, voltage=True)
    assert -8.0 < error < -3.0 and abs(error) < 2.0 * deviation


def test_back_emf_is_taken_off_a_voltage() -> None:
    heat = MotorHeat(MOTORS[0], 0.0)
    motor = MOTORS[0].motor
    for k in range(1, 100):
        heat.predict(0.5 * k, 0.01)
        found = heat.update_voltage(motor.resistance * 0.1 + motor.torque_constant * MOTORS[0].ratio * 0.5, 0.1, 0.5)
        assert found.fate == TAKEN and abs(found.difference[0]) < 0.01


def test_a_sensed_temperature_corrects_and_its_absence_does_not() -> None:
    heat = MotorHeat(MOTORS[0], 0.0)
    for _ in range(20):
        heat.update_temperature(50.0, math.nan, 1.0)
    state = heat.state
    assert state.winding == pytest.approx(50.0, abs=1.5) and state.winding_deviation < 0.5
    assert state.resistance > MOTORS[0].motor.resistance


def test_seconds_to_the_limit_are_those_until_it_is_reached() -> None:
    heat = MotorHeat(MOTORS[0], 0.0, 60.0)
    square = (1.5 * NOMINAL[0]) ** 2
    seconds = heat.seconds_to(LIMIT, square)
    winding, _ = heat_step(MOTORS[0].motor.heat_constants, 60.0, 60.0, square, 0.0, seconds)
    assert 1.0 < seconds < 200.0 and winding == pytest.approx(LIMIT, abs=1e-3)
    assert heat.seconds_to(LIMIT, square, deviations=2.0) < seconds
    soon, _ = heat_step(MOTORS[0].motor.heat_constants, 60.0, 60.0, square, 0.0, 0.5)
    assert heat.seconds_to(soon, square) == pytest.approx(0.5, abs=1e-3)
    assert heat.seconds_to(50.0, square) == 0.0
    assert math.isinf(heat.seconds_to(LIMIT, 0.0))


def test_the_torque_available_brings_the_winding_just_to_its_limit() -> None:
    heat = MotorHeat(MOTORS[0], 0.0, 80.0)
    limit = ROBOT.arm.joints[0].motor.current_limit
    at_joint = MOTORS[0].ratio * MOTORS[0].motor.torque_constant
    torque = heat.torque_available(LIMIT, 30.0, limit)
    assert 0.0 < torque < limit * at_joint
    winding, _ = heat_step(MOTORS[0].motor.heat_constants, 80.0, 80.0, (torque / at_joint) ** 2, 0.0, 30.0)
    assert winding == pytest.approx(LIMIT, abs=0.1)
    assert heat.torque_available(LIMIT, 0.01, limit) == pytest.approx(limit * at_joint)
    assert heat.torque_available(LIMIT, 30.0, limit, deviations=2.0) < torque
    assert heat.torque_available(70.0, 30.0, limit) == pytest.approx(0.0, abs=1e-9)


def test_what_cannot_be_is_refused() -> None:
    heat = MotorHeat(MOTORS[0], 0.0)
    with pytest.raises(InputError, match="mean_square_current"):
        heat.predict(1.0, -1.0)
    with pytest.raises(InputError, match="mean_square_current"):
        heat.predict(1.0, math.nan)
    with pytest.raises(ModelError, match="ambient"):
        HeatTuning(ambient_deviation=0.0)
    for stamp, square in ((math.nan, 1.0), (1e12, 1.0), (1.0, 1e300), (3600.0, 1e4)):
        before = heat.state
        with pytest.raises(InputError, match="stamp|mean_square_current"):
            heat.predict(stamp, square)
        assert heat.state == before
    for values in ((math.nan, 4.0), (100.0, math.nan), (100.0, 4.0, math.nan)):
        with pytest.raises(InputError, match="limit|mean_square_current|deviations"):
            heat.seconds_to(*values)
    for values in ((math.nan, 1.0, 5.0), (100.0, 0.0, 5.0), (100.0, 1.0, math.inf), (100.0, 1.0, 5.0, math.nan)):
        with pytest.raises(InputError, match="limit|seconds|deviations"):
            heat.torque_available(*values)
    for deviation in (0.0, -1.0, math.nan):
        with pytest.raises(ModelError, match="deviation"):
            heat.update_temperature(30.0, math.nan, deviation)


@pytest.mark.parametrize("wrong", [None, "25", 10**400, [25.0, 25.0], 1j, math.inf])
def test_readings_that_are_no_numbers_are_refused_and_change_nothing(wrong: object) -> None:
    heat = MotorHeat(MOTORS[0], 0.0)
    before = heat.state
    for name, refused in (
        ("motor", lambda: MotorHeat(wrong, 0.0)),
        ("stamp", lambda: MotorHeat(MOTORS[0], wrong)),
        ("temperature", lambda: MotorHeat(MOTORS[0], 0.0, [wrong])),
        ("voltage", lambda: heat.update_voltage(wrong, 1.0, 0.0)),
        ("current", lambda: heat.update_voltage(5.0, wrong, 0.0)),
        ("joint_speed", lambda: heat.update_voltage(5.0, 1.0, wrong)),
        ("winding", lambda: heat.update_temperature(wrong, 25.0, 1.0)),
        ("housing", lambda: heat.update_temperature(25.0, wrong, 1.0)),
    ):
        with pytest.raises(InputError, match=f"^{name}: got .*; expected "):
            refused()
    assert heat.state == before
