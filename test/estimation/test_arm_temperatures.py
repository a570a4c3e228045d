"""Motor temperatures from what a running robot says: efforts, voltages, sensors, and clocks that jump."""

from __future__ import annotations

import math

import numpy as np
import pytest

from youbot_dynamics.dynamics.thermal_motor import heat_step
from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation.motor_heat import ArmTemperatures, HeatTuning
from youbot_dynamics.robot import load_robot

ARM = load_robot().arm
MOTORS = ARM.motors()
SCALE = np.array([motor.ratio * motor.motor.torque_constant for motor in MOTORS])
NOMINAL = np.array([joint.motor.nominal_current for joint in ARM.joints]) * SCALE


def hold(motors: ArmTemperatures, effort: np.ndarray, seconds: float, dt: float = 0.02) -> None:
    for _ in range(round(seconds / dt)):
        motors.add(dt, effort)


def test_windings_warm_as_the_motor_model_says() -> None:
    motors = ArmTemperatures(ARM, 25.0)
    hold(motors, 0.8 * NOMINAL, 60.0)
    for k, belief in enumerate(motors.state):
        square = float((0.8 * NOMINAL[k] / SCALE[k]) ** 2)
        winding, housing = heat_step(MOTORS[k].motor.heat_constants, 25.0, 25.0, square, 0.0, 60.0)
        assert belief.winding == pytest.approx(winding, abs=0.5)
        assert belief.housing == pytest.approx(housing, abs=0.5)
        assert belief.winding_deviation > 1.0


def test_each_motor_gets_the_mean_square_of_its_current() -> None:
    motors = ArmTemperatures(ARM, 25.0)
    current = np.sin(0.06 * np.arange(1, 2001))[:, None] * NOMINAL / SCALE
    steps = sum(motors.add(0.02, i * SCALE) for i in current)
    assert 75 <= steps <= 80
    for k, belief in enumerate(motors.state):
        alone = MOTORS[k].motor.heat_history(25.0, 25.0, current[:, k], 0.02)
        assert belief.winding == pytest.approx(alone[round(belief.stamp / 0.02) - 1, 0], abs=0.05)


def test_a_gap_of_ages_is_answered_with_steady_temperatures() -> None:
    motors = ArmTemperatures(ARM, 80.0)
    motors.add(1e12, np.zeros(5))  # in steps of a second that would never end
    assert [belief.winding for belief in motors.state] == pytest.approx([25.0] * 5, abs=0.5)


def test_time_that_does_not_pass_changes_nothing() -> None:
    motors = ArmTemperatures(ARM, 60.0)
    before = motors.state
    for elapsed in (0.0, -5.0, math.nan):
        assert not motors.add(elapsed, 5.0 * NOMINAL)
    assert motors.state == before


def test_missing_efforts_hold_the_last_current() -> None:
    told, silent = ArmTemperatures(ARM, 25.0), ArmTemperatures(ARM, 25.0)
    hold(told, NOMINAL, 10.0)
    hold(silent, NOMINAL, 5.0)
    hold(silent, np.full(5, np.nan), 5.0)
    assert silent.state[1].winding == pytest.approx(told.state[1].winding, abs=1e-9)
    assert [one.load for one in silent.limits(60.0, 0.0)] != [0.0] * 5


def test_limits_follow_load_and_temperature_and_keep_the_winding_below_its_limit() -> None:
    cold, warm = ArmTemperatures(ARM, 25.0), ArmTemperatures(ARM, 90.0)
    for motors in (cold, warm):
        hold(motors, 1.6 * NOMINAL, 2.0)
    for k, (before, after) in enumerate(zip(cold.limits(30.0, 0.0), warm.limits(30.0, 0.0), strict=True)):
        assert after.torque < before.torque <= ARM.joints[k].motor.current_limit * SCALE[k] + 1e-9
        assert 0.0 <= after.seconds < before.seconds < math.inf
        # What it says can be held is held by the model, and no more than that.
        belief = warm.state[k]
        square = (after.torque / SCALE[k]) ** 2
        inside, times = MOTORS[k].motor.heat_constants, np.linspace(0.5, 30.0, 60)
        hottest = max(heat_step(inside, belief.winding, belief.housing, square, 0.0, t)[0] for t in times)
        assert hottest == pytest.approx(125.0, abs=0.5)
    unsure = cold.limits(30.0, 2.0)
    assert all(one.torque < sure.torque for one, sure in zip(unsure, cold.limits(30.0, 0.0), strict=True))


def test_an_idle_arm_never_reaches_its_limit() -> None:
    motors = ArmTemperatures(ARM, 40.0)
    hold(motors, np.zeros(5), 1.0)
    assert all(one.seconds == math.inf and one.load == 0.0 for one in motors.limits(60.0, 2.0))


def voltages(motors: ArmTemperatures, resistance: float, seconds: float) -> None:
    """Joint 1 at its nominal current to and fro; its winding has `resistance` times the sheet's."""
    random, true = np.random.default_rng(0), [25.0, 25.0]
    inside = MOTORS[0].motor
    for k in range(round(seconds / 0.02)):
        speed = 0.3 * math.cos(0.5 * k * 0.02)
        effort = np.r_[NOMINAL[0] * (1.0 if speed > 0.0 else -1.0), np.zeros(4)]
        current = effort[0] / SCALE[0]
        true = heat_step(inside.heat_constants, *true, current**2, 0.0, 0.02)
        volts = resistance * inside.resistance_at(true[0]) * current + SCALE[0] * speed + 0.05 * random.normal()
        told = np.r_[volts, np.full(4, np.nan)] if k % 5 else np.full(5, np.nan)
        motors.add(0.02, effort)
        motors.add_voltage(told, effort, np.full(5, speed))


def test_voltages_tell_resistance_from_a_cold_start_whichever_way_the_current_flows() -> None:
    motors = ArmTemperatures(ARM, tuning=HeatTuning(ambient_deviation=1.0))
    voltages(motors, 1.15, 120.0)
    belief, without = motors.state[0], ArmTemperatures(ARM, tuning=HeatTuning(ambient_deviation=1.0))
    hold(without, np.r_[NOMINAL[0], np.zeros(4)], 120.0)
    inside = MOTORS[0].motor
    assert belief.resistance == pytest.approx(1.15 * inside.resistance_at(belief.winding), rel=0.03)
    assert belief.winding_deviation < 0.5 * without.state[0].winding_deviation
    assert motors.counts["motor sensor readings beyond the gate"] == 0
    assert motors.state[1].resistance == pytest.approx(without.state[1].resistance)


@pytest.mark.parametrize("part", ["winding", "housing"])
def test_a_temperature_sensor_is_followed(part: str) -> None:
    motors = ArmTemperatures(ARM, sensor=part)
    for _ in range(20):
        hold(motors, np.zeros(5), 0.5)
        motors.add_temperature([33.0, math.nan, 33.0, 33.0, 33.0])
    followed = [getattr(belief, part) for belief in motors.state]
    assert followed[0] == pytest.approx(33.0, abs=1.0) and followed[1] == pytest.approx(25.0, abs=1.0)


def test_a_sensor_that_insists_is_believed_in_the_end() -> None:
    motors = ArmTemperatures(ARM)
    told = np.array([110.0, 25.0, 25.0, 25.0, 25.0])
    for _ in range(9):
        hold(motors, np.zeros(5), 0.5)
        motors.add_temperature(told)
    assert motors.state[0].winding < 60.0
    motors.add_temperature(told)
    assert motors.state[0].winding == pytest.approx(110.0, abs=1.0)
    assert motors.counts == {"motor sensor readings beyond the gate": 10, "motors restarted": 1}


@pytest.mark.parametrize("broken", [-1e4, -273.15, 850.0, 3276.7, 1e300])
def test_a_reading_that_no_motor_can_have_is_never_believed(broken: float) -> None:
    """A sensor that is torn off or short-circuited: the model goes on alone, and counts it."""
    motors, alone = ArmTemperatures(ARM), ArmTemperatures(ARM)
    for _ in range(30):
        for estimate in (motors, alone):
            hold(estimate, NOMINAL, 0.5)
        motors.add_temperature([broken, math.nan, math.nan, math.nan, math.nan])
    assert motors.state == alone.state
    assert motors.counts == {"motor sensor readings beyond the gate": 30, "motors restarted": 0}


@pytest.mark.parametrize(("part", "healthy"), [("winding", 0.0), ("winding", 60.0), ("housing", 0.0)])
def test_a_sensor_that_is_stuck_at_a_likely_temperature_is_not_believed(part: str, healthy: float) -> None:
    """Of a motor whose winding warms by more than 40 K and whose housing by more than 20 K."""
    motors, measured = ArmTemperatures(ARM, sensor=part), int(part == "housing")
    true, last = np.array([25.0, 25.0]), 25.0
    heat, square = MOTORS[0].motor.heat_constants, float((NOMINAL[0] / SCALE[0]) ** 2)
    for k in range(1800):
        hold(motors, NOMINAL, 0.5, 0.1)
        true = np.array(heat_step(heat, *true, square, 0.0, 0.5))
        last = true[measured] if 0.5 * k < healthy else last
        motors.add_temperature([last, math.nan, math.nan, math.nan, math.nan])
    belief = motors.state[0]
    assert abs(belief.winding - true[0]) < 3.0 * belief.winding_deviation
    assert abs(belief.housing - true[1]) < 3.0 * belief.housing_deviation
    assert motors.counts["motor sensor readings beyond the gate"] > 100
    motors.add_temperature([float(true[measured]), math.nan, math.nan, math.nan, math.nan])
    assert motors.state[0] != belief  # a sensor that shows something else counts again


def test_a_coarse_sensor_is_not_taken_for_a_stuck_one() -> None:
    """Whole degrees every second, of a motor with other resistances and capacities than in the data sheet."""
    motors, true, reading = ArmTemperatures(ARM), np.array([25.0, 25.0]), 25.0
    heat = MOTORS[0].motor.heat_constants * np.array([1.1, 1.0, 1.0, 0.8, 1.2, 1.2, 0.8])
    for k in range(4800):
        load = NOMINAL * (1.0 if k // 600 % 2 == 0 else 0.1)
        hold(motors, load, 0.5, 0.1)
        true = np.array(heat_step(heat, *true, float((load[0] / SCALE[0]) ** 2), 0.0, 0.5))
        reading = float(np.round(true[0])) if k % 2 == 0 else reading
        motors.add_temperature([reading, math.nan, math.nan, math.nan, math.nan])
    assert motors.counts == {"motor sensor readings beyond the gate": 0, "motors restarted": 0}
    assert motors.state[0].winding == pytest.approx(true[0], abs=1.5)


def test_wrong_shapes_are_refused_by_name() -> None:
    motors = ArmTemperatures(ARM)
    with pytest.raises(InputError, match="temperature"):
        motors.add_temperature([20.0])
    with pytest.raises(InputError, match="voltage"):
        motors.add_voltage([20.0], np.zeros(5), np.zeros(5))
