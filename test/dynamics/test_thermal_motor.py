"""The thermal motor by its laws: power, heat, steady states, exact steps; document 000's printed forms proved wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_python import numbers_without_numba
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from youbot_dynamics.dynamics.thermal_motor import GearedMotor, ThermalMotor, drivable_current
from youbot_dynamics.errors import InputError, ModelError

CONSTANTS = {  # joints 1 to 3 of the youBot (EC 45 flat 50 W), with a rotor friction that shows in the heat
    "torque_constant": 0.0335,
    "resistance": 1.03,
    "temperature_coefficient": 0.00393,
    "rotor_inertia": 1.35e-5,
    "rotor_friction": 2e-6,
    "winding_housing_resistance": 5.3,
    "housing_ambient_resistance": 3.9,
    "winding_time_constant": 11.7,
    "housing_time_constant": 212.0,
    "reference_temperature": 25.0,
    "ambient_temperature": 25.0,
}
MOTOR = ThermalMotor(**CONSTANTS)
WARM_ROOM = replace(MOTOR, ambient_temperature=40.0)
K, R0, ALPHA, J, D = MOTOR.torque_constant, MOTOR.resistance, MOTOR.temperature_coefficient, 1.35e-5, 2e-6
RTH, T_A = 5.3 + 3.9, 25.0
QUADRANTS = {
    "stall": (0.0, 6.0),
    "motor": (300.0, 20.0),
    "no load": (24.0 / K, 24.0),
    "generator": (400.0, 10.0),
    "counter-current brake": (-300.0, 12.0),
}


@pytest.mark.parametrize("winding", [-20.0, 25.0, 120.0])
@pytest.mark.parametrize("case", QUADRANTS)
def test_the_terminals_give_what_turns_and_what_heats(case: str, winding: float) -> None:
    speed, voltage = QUADRANTS[case]
    current, torque, back_emf = MOTOR.observe([speed, winding, 30.0], voltage)
    loss = MOTOR.resistance_at(winding) * current**2
    assert voltage * current == pytest.approx(torque * speed + loss, rel=1e-12, abs=1e-12)
    assert torque * speed == pytest.approx(back_emf * current, rel=1e-14)
    if case == "no load":
        assert current == 0.0
    if case == "generator":
        assert voltage * current < 0.0 < loss


def test_heat_raises_the_resistance_and_lowers_the_stall_torque() -> None:
    temperatures = np.linspace(-50.0, 150.0, 41)
    assert np.all(np.diff([MOTOR.resistance_at(t) for t in temperatures]) > 0.0)
    assert np.all(np.diff([MOTOR.observe([0.0, t, 25.0], 24.0).torque for t in temperatures]) < 0.0)
    assert MOTOR.resistance_at(T_A) == R0


def test_a_voltage_and_the_current_it_drives_are_the_same_motor() -> None:
    rng = np.random.default_rng(1)
    for state in rng.uniform([-500.0, 0.0, 0.0], [500.0, 120.0, 80.0], (20, 3)):
        voltage, load = rng.uniform([-24.0, -0.1], [24.0, 0.1])
        driven = MOTOR.derivative_from_current(state, MOTOR.observe(state, voltage).current, load)
        np.testing.assert_array_equal(MOTOR.derivative(state, voltage, load), driven)


def power_balance(state: np.ndarray, voltage: float, load: float) -> tuple[float, float]:
    """Power in at the terminals, and what becomes of it by the rates of the model."""
    speed, _, housing = state
    rates = MOTOR.derivative(state, voltage, load)
    stored = J * speed * rates[0] + MOTOR.winding_capacity * rates[1] + MOTOR.housing_capacity * rates[2]
    return voltage * MOTOR.observe(state, voltage).current, stored + load * speed + (housing - T_A) / 3.9


def test_power_in_is_power_stored_delivered_and_lost_to_the_ambient() -> None:
    """The friction of the rotor included: it heats the housing."""
    rng = np.random.default_rng(2)
    for state in rng.uniform([-700.0, -20.0, -20.0], [700.0, 150.0, 90.0], (100, 3)):
        power_in, power_out = power_balance(state, *rng.uniform([-24.0, -0.1], [24.0, 0.1]))
        assert power_in == pytest.approx(power_out, rel=1e-12, abs=1e-11)


def energy_error(friction: float) -> tuple[float, float]:
    """Energies of 600 s with a swinging current: what the balance misses, and what went in [J]."""
    motor = replace(MOTOR, rotor_friction=friction)

    def rates(time: float, state: np.ndarray) -> list[float]:
        current = 1.0 + 0.5 * math.sin(0.3 * time)
        load = K * current - 6e-4 + 5e-4 * math.cos(0.3 * time)  # leaves little for the light rotor
        speed, winding, housing = state[:3]
        terminals = (motor.resistance_at(winding) * current + K * speed) * current
        now = motor.derivative_from_current(state[:3], current, load)
        return [*now, terminals, load * speed, (housing - T_A) / 3.9]

    done = solve_ivp(rates, (0.0, 600.0), [0.0, T_A, T_A, 0.0, 0.0, 0.0], "DOP853", rtol=1e-13, atol=1e-13)
    speed, winding, housing, terminals, delivered, lost = done.y[:, -1]
    heat = motor.winding_capacity * (winding - T_A) + motor.housing_capacity * (housing - T_A)
    return terminals - (0.5 * J * speed**2 + heat + delivered + lost), terminals


def test_the_energy_balance_closes_over_600_s() -> None:
    for friction in (5e-6, 2e-5):
        missing, put_in = energy_error(friction)
        assert put_in > 1000.0
        assert abs(missing) <= 2e-11


@pytest.mark.parametrize("current", [0.0, 1.0, -2.47, 4.0, 5.0])
def test_a_held_current_settles_at_maxons_formula(current: float) -> None:
    formula = RTH * R0 * current**2 / (1.0 - ALPHA * RTH * R0 * current**2)
    rise = MOTOR.steady_state_rise(current)
    assert rise.winding == pytest.approx(formula, rel=1e-12)
    assert rise.housing == pytest.approx(formula * 3.9 / RTH, rel=1e-12)


@pytest.mark.parametrize("motor", [MOTOR, WARM_ROOM, replace(MOTOR, ambient_temperature=-10.0)])
def test_the_state_stands_still_at_the_steady_rises(motor: ThermalMotor) -> None:
    ambient, held, speed = motor.ambient_temperature, 3.0, 400.0
    rise = motor.steady_state_rise(held, speed)
    state = [speed, ambient + rise.winding, ambient + rise.housing]
    load = K * held - D * speed
    np.testing.assert_allclose(motor.derivative_from_current(state, held, load), 0.0, atol=1e-12)
    locked = motor.locked_rise(6.0)
    state = [0.0, ambient + locked.winding, ambient + locked.housing]
    stall = motor.observe(state, 6.0).torque
    np.testing.assert_allclose(motor.derivative(state, 6.0, stall), 0.0, atol=1e-12)


def test_above_the_runaway_current_nothing_settles() -> None:
    assert MOTOR.runaway_current == pytest.approx(1.0 / math.sqrt(ALPHA * RTH * R0), rel=1e-14)
    assert WARM_ROOM.runaway_current == MOTOR.runaway_current
    for current in (MOTOR.runaway_current, -7.0):
        with pytest.raises(InputError, match=r"current: .*run-away current 5.18"):
            MOTOR.steady_state_rise(current)
    above = MOTOR.heat_history(25.0, 25.0, np.full(4000, 1.02 * MOTOR.runaway_current), 10.0)
    later = np.diff(above[1000:, 0])
    assert np.all(later > 0.0)
    assert np.all(np.diff(later) > 0.0)
    below = MOTOR.heat_history(25.0, 25.0, np.full(9000, 0.98 * MOTOR.runaway_current), 10.0)
    assert below[-1, 0] - 25.0 == pytest.approx(MOTOR.steady_state_rise(0.98 * MOTOR.runaway_current).winding, rel=1e-9)


def test_without_a_temperature_coefficient_nothing_runs_away() -> None:
    cold = replace(MOTOR, temperature_coefficient=0.0)
    assert cold.runaway_current == math.inf
    assert cold.steady_state_rise(30.0).winding == pytest.approx(RTH * R0 * 900.0)
    assert cold.locked_rise(5.0).winding == pytest.approx(RTH * 25.0 / R0)


@pytest.mark.parametrize("voltage", [0.5, 6.0, 24.0, 1000.0])
def test_a_locked_rotor_at_constant_voltage_never_runs_away(voltage: float) -> None:
    formula = (-1.0 + math.sqrt(1.0 + 4.0 * ALPHA * RTH * voltage**2 / R0)) / (2.0 * ALPHA)
    assert MOTOR.locked_rise(voltage).winding == pytest.approx(formula, rel=1e-11)

    def heating(_: float, temperatures: np.ndarray) -> np.ndarray:
        return MOTOR.derivative([0.0, *temperatures], voltage, 0.0)[1:]

    done = solve_ivp(heating, (0.0, 6000.0), [25.0, 25.0], "LSODA", rtol=1e-10, atol=1e-9)
    assert done.y[0, -1] - 25.0 == pytest.approx(formula, rel=1e-8)


def test_a_hot_motor_cools_monotonously_to_the_ambient() -> None:
    hot = WARM_ROOM.heat_history(140.0, 70.0, np.zeros(3000), 1.0)
    assert np.all(np.diff(hot[:, 0]) < 0.0)
    after_peak = hot[np.argmax(hot[:, 1]) :, 1]  # the housing first takes the heat of the winding
    assert np.all(np.diff(after_peak) < 0.0)
    assert np.all(hot > 40.0)
    np.testing.assert_allclose(hot[-1], 40.0, atol=1e-4)


def reference_step(motor: ThermalMotor, start: np.ndarray, current: float, dt: float, speed: float) -> np.ndarray:
    """The same step by a general matrix exponential, from the rates of the motor."""

    def rates(winding: float, housing: float) -> np.ndarray:
        return motor.derivative_from_current([speed, winding, housing], current, 0.0)[1:]

    ambient = motor.ambient_temperature
    origin = rates(ambient, ambient)
    system = np.zeros((3, 3))
    system[:2, 0], system[:2, 1] = rates(ambient + 1.0, ambient) - origin, rates(ambient, ambient + 1.0) - origin
    system[:2, 2] = origin
    return (expm(system * dt) @ np.array([*(start - ambient), 1.0]))[:2] + ambient


@pytest.mark.parametrize("dt", [1e-6, 1e-3, 1.0, 30.0, 300.0])
@pytest.mark.parametrize("current", [0.0, 2.47, MOTOR.runaway_current, 7.0, 15.0])
def test_the_heat_step_is_the_matrix_exponential(current: float, dt: float) -> None:
    start = np.array([80.0, 35.0])
    for speed in (0.0, 500.0):
        found = WARM_ROOM.advance_heat(*start, current**2, dt, speed)
        np.testing.assert_allclose(found, reference_step(WARM_ROOM, start, current, dt, speed), rtol=1e-9)


@settings(max_examples=60)
@given(
    st.floats(0.0, 100.0), st.floats(0.0, 300.0), st.floats(0.0, 300.0), st.floats(-20.0, 150.0), st.floats(-20.0, 90.0)
)
def test_two_heat_steps_are_one(square: float, first: float, second: float, winding: float, housing: float) -> None:
    halfway = MOTOR.advance_heat(winding, housing, square, first, 100.0)
    twice = MOTOR.advance_heat(*halfway, square, second, 100.0)
    once = MOTOR.advance_heat(winding, housing, square, first + second, 100.0)
    np.testing.assert_allclose(twice, once, rtol=1e-10, atol=1e-10)


def test_a_log_is_the_sequence_of_its_steps() -> None:
    rng = np.random.default_rng(3)
    current, dt, speed = rng.normal(0.0, 3.0, 50), rng.uniform(0.0, 2.0, 50), rng.uniform(0.0, 600.0, 50)
    temperatures = MOTOR.heat_history(30.0, 28.0, current, dt, speed)
    now = (30.0, 28.0)
    for k in range(50):
        now = MOTOR.advance_heat(*now, current[k] ** 2, dt[k], speed[k])
        np.testing.assert_allclose(temperatures[k], now, rtol=1e-13)
    assert MOTOR.heat_history(30.0, 28.0, [], 0.1).shape == (0, 2)


GEAR = GearedMotor(MOTOR, 156.0, 0.8)


@pytest.mark.parametrize("current", [2.0, -2.0])
@pytest.mark.parametrize("joint_speed", [0.5, -0.5])
def test_the_gear_loses_power_in_all_four_quadrants(current: float, joint_speed: float) -> None:
    at_rotor = K * current * GEAR.motor_speed(joint_speed)
    at_joint = GEAR.joint_torque(current, joint_speed) * joint_speed
    fed = max(at_rotor, -at_joint)  # the side where power enters
    assert at_rotor - at_joint == pytest.approx(0.2 * fed, rel=1e-12)
    assert GEAR.current(GEAR.joint_torque(current, joint_speed), joint_speed) == pytest.approx(current, rel=1e-14)


def test_an_ideal_gear_multiplies_torque_and_reflects_the_rotor() -> None:
    ideal = GearedMotor(MOTOR, 156.0)
    assert ideal.joint_torque(1.0, 0.3) == pytest.approx(5.226)
    assert ideal.reflected_inertia == pytest.approx(0.32854, abs=1e-5)
    assert GEAR.joint_torque(1.0, 0.0) == pytest.approx(0.8 * 5.226)
    # The joint's load on the rotor, put into the rotor equation, balances the current that holds it.
    load = GEAR.motor_torque(3.0, 1.0)
    no_friction = replace(MOTOR, rotor_friction=0.0)
    rates = no_friction.derivative_from_current([156.0, 25.0, 25.0], GEAR.current(3.0, 1.0), load)
    assert rates[0] == pytest.approx(0.0, abs=1e-9)


def test_a_load_opposes_a_positive_speed() -> None:
    assert MOTOR.derivative([100.0, 25.0, 25.0], 5.0, 0.1)[0] < MOTOR.derivative([100.0, 25.0, 25.0], 5.0, 0.0)[0]


def mujoco_rises(locked: bool, friction: float, schedule: list[tuple[float, float]], timestep: float) -> list[float]:
    """Winding rises of MuJoCo's dcmotor, which has one thermal node, after each (voltage, seconds)."""
    mujoco = pytest.importorskip("mujoco")
    inertia = 1e12 if locked else J
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco><option timestep="{timestep}" gravity="0 0 0" integrator="RK4"/>
      <worldbody><body><joint name="rotor" type="hinge" axis="0 0 1" damping="{friction}"/>
      <inertial pos="0 0 0" mass="1" diaginertia="{inertia} {inertia} {inertia}"/></body></worldbody>
      <actuator><dcmotor joint="rotor" motorconst="{K} {K}" resistance="{R0}" thermal="5.3 0 11.7 {ALPHA} 25 40"/>
      </actuator></mujoco>""")
    data = mujoco.MjData(model)
    rises = []
    for voltage, seconds in schedule:
        data.ctrl[0] = voltage
        for _ in range(round(seconds / timestep)):
            mujoco.mj_step(model, data)
        rises.append(float(data.act[0]))
    return rises


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "turning"])
def test_mujocos_dcmotor_warms_alike(locked: bool) -> None:
    """A housing with hardly any resistance to the ambient leaves one node, as MuJoCo has it."""
    friction = 1e-6
    schedule = (
        [(4.0, 10.0), (0.0, 5.0), (-3.0, 10.0)] if locked else [(12.0, 1.0), (-12.0, 1.0), (6.0, 0.5), (0.0, 1.0)]
    )
    single = replace(WARM_ROOM, rotor_friction=friction, housing_ambient_resistance=1e-9, housing_time_constant=1.0)
    state = np.array([0.0, 40.0, 40.0])
    rises = []
    for voltage, seconds in schedule:

        def rates(_: float, now: np.ndarray, voltage: float = voltage) -> np.ndarray:
            found = single.derivative(now, voltage, 0.0)
            found[0] *= not locked
            return found

        state = solve_ivp(rates, (0.0, seconds), state, "DOP853", rtol=1e-10, atol=1e-11).y[:, -1]
        rises.append(state[1] - 40.0)
    oracle = mujoco_rises(locked, friction, schedule, 5e-2 if locked else 5e-4)
    np.testing.assert_allclose(rises, oracle, rtol=1e-6)


ALL_POSITIVE = [name for name in CONSTANTS if name.split("_")[0] in ("torque", "resistance", "winding", "housing")]
OUT_OF_RANGE = [
    *((name, value) for name in ALL_POSITIVE for value in (0.0, -1.0)),
    *((name, -1e-9) for name in ("temperature_coefficient", "rotor_inertia", "rotor_friction")),
    *((name, -300.0) for name in ("reference_temperature", "ambient_temperature")),
    *((name, math.nan) for name in CONSTANTS),
]


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_a_constant_no_motor_has_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ModelError, match=f"^{name}: got"):
        ThermalMotor(**{**CONSTANTS, name: value})


def test_a_rotor_of_unknown_inertia_has_heat_but_no_motion_of_its_own() -> None:
    motor = ThermalMotor(**{**CONSTANTS, "rotor_inertia": 0.0})
    assert motor.steady_state_rise(1.0).winding > 0.0
    with pytest.raises(ModelError, match="rotor_inertia: got 0"):
        motor.derivative([0.0, 25.0, 25.0], 1.0, 0.0)


@pytest.mark.parametrize(("name", "value"), [("ratio", 0.0), ("efficiency", 1.1), ("efficiency", 0.0)])
def test_a_gear_that_cannot_be_is_refused(name: str, value: float) -> None:
    with pytest.raises(ModelError, match=f"^{name}: got"):
        GearedMotor(MOTOR, **{"ratio": 100.0, name: value})


def test_a_winding_without_resistance_is_refused_with_its_temperature() -> None:
    limit = T_A - 1.0 / ALPHA
    assert MOTOR.resistance_at(limit + 1e-6) > 0.0
    calls: list[Callable[[], object]] = [
        lambda: MOTOR.resistance_at(-240.0),
        lambda: MOTOR.observe([0.0, -240.0, 25.0], 1.0),
        lambda: MOTOR.derivative([0.0, -240.0, 25.0], 1.0, 0.0),
        lambda: MOTOR.derivative_from_current([0.0, -240.0, 25.0], 1.0, 0.0),
        lambda: MOTOR.advance_heat(-240.0, 25.0, 1.0, 1.0),
        lambda: replace(MOTOR, ambient_temperature=-240.0),
    ]
    for call in calls:
        with pytest.raises(ModelError, match=r"winding temperature -240 degC: got resistance -.*above .* = -229.453"):
            call()


BAD_CALLS: dict[str, tuple[str, Callable[[], object]]] = {
    "state NaN": (r"state\[1\]: got nan", lambda: MOTOR.derivative([0.0, math.nan, 25.0], 1.0, 0.0)),
    "state shape": (r"state: got shape \(2,\); expected shape \(3,\)", lambda: MOTOR.observe([0.0, 25.0], 1.0)),
    "voltage": ("voltage: got inf", lambda: MOTOR.observe([0.0, 25.0, 25.0], math.inf)),
    "load": ("load: got nan", lambda: MOTOR.derivative([0.0, 25.0, 25.0], 1.0, math.nan)),
    "current": ("current: got nan", lambda: MOTOR.derivative_from_current([0.0, 25.0, 25.0], math.nan, 0.0)),
    "steady current": ("current: got nan", lambda: MOTOR.steady_state_rise(math.nan)),
    "square": ("mean_square_current: got -1", lambda: MOTOR.advance_heat(25.0, 25.0, -1.0, 1.0)),
    "dt": ("dt: got -1", lambda: MOTOR.advance_heat(25.0, 25.0, 1.0, -1.0)),
    "dt in a log": ("dt: got -1", lambda: MOTOR.heat_history(25.0, 25.0, [1.0, 1.0], [1.0, -1.0])),
    "speed of a log": ("speed: got shape", lambda: MOTOR.heat_history(25.0, 25.0, [1.0, 1.0], 1.0, [1.0])),
    "current of a log": (r"current\[1\]: got nan", lambda: MOTOR.heat_history(25.0, 25.0, [1.0, math.nan], 1.0)),
    "burnt": ("winding temperature: got 100 A.2 held", lambda: MOTOR.advance_heat(25.0, 25.0, 100.0, 1e9)),
    "burnt in a log": ("step 2 of the log", lambda: MOTOR.heat_history(25.0, 25.0, [1, 1, 50], [1, 1, 1e9])),
    "gear": ("joint_torque: got nan", lambda: GEAR.current(math.nan, 0.0)),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_a_value_that_is_no_value_is_refused_by_name(case: str) -> None:
    message, call = BAD_CALLS[case]
    with pytest.raises(InputError, match=message):
        call()


def test_the_constants_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        MOTOR.resistance = 2.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        MOTOR.heat_constants[0] = 2.0


def heated_and_refused() -> np.ndarray:
    with pytest.raises(InputError):
        MOTOR.advance_heat(25.0, 25.0, 100.0, 1e9)
    return np.ravel(MOTOR.heat_history(30.0, 28.0, [1.0, 6.0, 0.0], 5.0))


def test_without_numba_the_temperatures_are_the_same() -> None:
    np.testing.assert_allclose(numbers_without_numba(heated_and_refused), heated_and_refused(), rtol=1e-13)


# ------------------------------------------------------------------ the printed forms of document 000

VOLT, OHM, NEWTON_METRE = np.array([1, 2, -3, -1]), np.array([1, 2, -3, -2]), np.array([1, 2, -2, 0])  # kg, m, s, A
AMPERE, PER_SECOND, INERTIA = np.array([0, 0, 0, 1]), np.array([0, 0, -1, 0]), np.array([1, 2, 0, 0])


def printed_resistance(temperature: float) -> float:
    """R as the rotor row of document 000 has it, twice."""
    return R0 * (1.0 - ALPHA * (temperature - T_A))


def printed_rotor_row(voltage: float, speed: float, temperature: float, load: float) -> float:
    resistance = printed_resistance(temperature)
    return K * voltage / (J * resistance) - (K / (J * resistance) + D / J) * speed - load / J


def printed_temperature_row(voltage: float, speed: float, temperature: float) -> float:
    square = (voltage - K * speed) ** 2
    return RTH * square / ((1.0 + ALPHA * (temperature - T_A)) * R0 - ALPHA * RTH * square)


def test_d_000_1_the_printed_current_is_a_torque_and_makes_energy() -> None:
    unit_of_constant = NEWTON_METRE - AMPERE
    assert np.array_equal(unit_of_constant + VOLT - OHM, NEWTON_METRE)  # K V / R: not an ampere
    assert np.array_equal(VOLT - OHM, AMPERE)
    speed, voltage = QUADRANTS["no load"]
    printed = K * voltage / R0
    loss = R0 * printed**2
    # At no-load speed the machine takes no current; the printed one takes power that nothing accounts for.
    assert MOTOR.observe([speed, T_A, T_A], voltage).current == 0.0
    assert printed == pytest.approx(0.781, abs=1e-3)
    assert abs(voltage * printed - (K * printed * speed + loss)) == pytest.approx(loss, rel=1e-9)
    assert MOTOR.observe([0.0, T_A, T_A], voltage).current / printed == pytest.approx(1.0 / K)


def test_d_000_2_the_printed_resistance_of_copper_falls_when_it_warms() -> None:
    assert printed_resistance(100.0) < printed_resistance(T_A)
    assert MOTOR.resistance_at(100.0) / printed_resistance(100.0) == pytest.approx(1.84, abs=0.005)
    printed_stall = printed_rotor_row(24.0, 0.0, 100.0, 0.0) * J
    assert printed_stall / MOTOR.observe([0.0, 100.0, 25.0], 24.0).torque == pytest.approx(1.84, abs=0.005)
    assert printed_resistance(T_A + 1.01 / ALPHA) < 0.0  # a hot motor would feed the battery


def test_d_000_3_the_printed_back_emf_term_lacks_the_torque_constant() -> None:
    constant = NEWTON_METRE - AMPERE
    assert not np.array_equal(constant - INERTIA - OHM, PER_SECOND)
    assert np.array_equal(2 * constant - INERTIA - OHM, PER_SECOND)
    speed, voltage = 300.0, 20.0
    power = K * MOTOR.observe([speed, T_A, T_A], voltage).current * speed  # what the armature turns into motion
    for rate, closes in (
        (MOTOR.derivative([speed, T_A, T_A], voltage, 0.01)[0], True),
        (printed_rotor_row(voltage, speed, T_A, 0.01), False),
    ):
        balance = J * speed * rate + D * speed**2 + 0.01 * speed
        assert (balance == pytest.approx(power, rel=1e-12)) is closes
    frictionless_top_speed = 24.0 * K / R0 / (K / R0)  # of the printed row; V / K = 716 rad/s is right
    assert frictionless_top_speed == pytest.approx(24.0)
    assert (24.0 / K) / frictionless_top_speed == pytest.approx(29.85, abs=0.01)


# Of the c-parameter form, c_0 to c_10 in the numbering of its equations.
CORRECT_C = (
    K,
    J * R0 * (1.0 - ALPHA * T_A),
    J * R0 * ALPHA,
    -(K * K + D * R0 * (1.0 - ALPHA * T_A)),
    -D * R0 * ALPHA,
    -1.0 / J,
    RTH,
    K,
    R0 * (1.0 - ALPHA * T_A),
    ALPHA * R0,
    -ALPHA * RTH,
)
PRINTED_C = (  # the table's c_1 to c_11, moved to the numbering of the equations
    K,
    J * R0 * (1.0 + T_A * ALPHA),
    -J * R0 * ALPHA,
    K + D * R0 + D * R0 * ALPHA * T_A,
    -D * R0 * ALPHA,
    -1.0 / J,
    RTH,
    -K,
    R0 - ALPHA * T_A * R0,
    ALPHA * R0,
    -ALPHA * RTH,
)


def c_form(c: tuple[float, ...], voltage: float, speed: float, temperature: float, load: float) -> tuple[float, float]:
    """Rotor row and temperature row of the c-parameter form as its equations are printed."""
    divisor = c[1] + c[2] * temperature
    rotor = c[0] / divisor * voltage + (c[3] + c[4] * temperature) / divisor * speed + c[5] * load
    square = (voltage - c[7] * speed) ** 2
    return rotor, c[6] * square / (c[8] + c[9] * temperature + c[10] * square)


POINTS = np.random.default_rng(4).uniform([-24.0, -600.0, -20.0, -0.1], [24.0, 600.0, 150.0, 0.1], (40, 4))


def test_the_corrected_c_form_is_the_direct_form_at_40_points() -> None:
    for voltage, speed, temperature, load in POINTS:
        rotor, rise = c_form(CORRECT_C, voltage, speed, temperature, load)
        assert rotor == pytest.approx(MOTOR.derivative([speed, temperature, T_A], voltage, load)[0], rel=1e-9)
        assert rise == pytest.approx(printed_temperature_row(voltage, speed, temperature), rel=1e-9)


def test_d_000_4_the_table_is_one_index_off_the_equations() -> None:
    """With the table's own numbers the equations ask for a c_0 it lacks and mean another constant each time."""
    table = {k + 1: value for k, value in enumerate(CORRECT_C)}
    assert set(range(11)) - set(table) == {0}
    as_numbered = (0.0, *CORRECT_C[:10])
    errors = []
    for voltage, speed, temperature, load in POINTS:
        right = MOTOR.derivative([speed, temperature, T_A], voltage, load)[0]
        errors.append(abs(c_form(as_numbered, voltage, speed, temperature, load)[0] - right) / abs(right))
    assert min(errors) > 0.3
    assert np.median(errors) > 0.9
    divisor_unit, table_unit = INERTIA + OHM, NEWTON_METRE - AMPERE  # c_1 divides K V; the table has K there
    assert not np.array_equal(divisor_unit, table_unit)


def test_d_000_5_the_printed_c_drive_the_rotor_instead_of_braking_it() -> None:
    negated = tuple(-value if k in (3, 4) else value for k, value in enumerate(PRINTED_C))
    for voltage, speed, temperature, load in POINTS:
        row = printed_rotor_row(voltage, speed, temperature, load)
        assert c_form(negated, voltage, speed, temperature, load)[0] == pytest.approx(row, rel=1e-9)
    # Without voltage and load a turning rotor must slow down; the printed c make it faster.
    assert c_form(PRINTED_C, 0.0, 100.0, T_A, 0.0)[0] * 100.0 > 0.0
    assert c_form(CORRECT_C, 0.0, 100.0, T_A, 0.0)[0] * 100.0 < 0.0
    # c_7 = -K turns V - K w into V + K w: at no-load speed, where nothing heats, four times the stall loss.
    speed, voltage = QUADRANTS["no load"]
    at_speed = (voltage - PRINTED_C[7] * speed) ** 2
    assert at_speed / voltage**2 == pytest.approx(4.0)
    assert voltage - CORRECT_C[7] * speed == pytest.approx(0.0, abs=1e-12)


def test_d_000_6_the_printed_temperature_row_never_cools_and_has_a_pole() -> None:
    for speed in (-150.0, -1.0, 1.0, 150.0):
        assert printed_temperature_row(0.0, speed, 150.0) > 0.0  # coasting without voltage warms
    assert printed_temperature_row(0.0, 0.0, 150.0) == 0.0
    assert MOTOR.derivative([0.0, 150.0, 60.0], 0.0, 0.0)[1] < -1.0
    pole = math.sqrt(R0 / (ALPHA * RTH))
    assert pole == pytest.approx(5.337, abs=1e-3)  # a quarter of the supply
    assert printed_temperature_row(0.999 * pole, 0.0, T_A) > 1e4
    assert printed_temperature_row(1.001 * pole, 0.0, T_A) < -1e4
    # A rise that no capacity divides: K, not K/s. It is Maxon's steady state with I = U / R_ref.
    for voltage in (1.0, 3.0, 5.0):
        steady = MOTOR.steady_state_rise(voltage / R0).winding
        assert printed_temperature_row(voltage, 0.0, T_A) == pytest.approx(steady, rel=1e-12)


def test_d_000_6_the_printed_temperature_row_counts_the_copper_twice() -> None:
    """Taken as a rise, T - T_A = row(T) is solved by R_th U^2 / R_ref: the feedback has cancelled out."""
    voltage = 3.0
    without_feedback = RTH * voltage**2 / R0
    assert printed_temperature_row(voltage, 0.0, T_A + without_feedback) == pytest.approx(without_feedback, rel=1e-12)
    assert MOTOR.locked_rise(voltage).winding < 0.85 * without_feedback
    held = MOTOR.steady_state_rise(voltage / R0).winding
    assert held > 1.3 * without_feedback


def test_a_fast_motor_gets_no_more_current_than_24_v_drive() -> None:
    assert drivable_current(5.0, 6.0, 24.0, 20.0, 1.0) == pytest.approx(4.0)
    assert drivable_current(-5.0, 6.0, 24.0, 20.0, 1.0) == -5.0  # braking: the back-EMF helps
    assert drivable_current(5.0, 6.0, 24.0, 30.0, 1.0) == -6.0  # driven faster than 24 V can turn it
    assert drivable_current(1.0, 6.0, 24.0, 10.0, 1.0) == 1.0
