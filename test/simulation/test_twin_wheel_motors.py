"""What the wheels of the twin can do: currents, supply, grip; and what the driver counts and tells of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from base_drives import DRIVER, cruise, drive_busily

from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.base import _plant as base_plant
from youbot_dynamics.simulation.base._readings import CURRENT_LIMIT, EFFORT_QUANTUM, TORQUE_CONSTANT
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

GRAVITY = 9.81
ONE_RPM = 2.0 * np.pi / 60.0 * 364.0 / 9405.0  # [rad/s] of the motor, at the wheel


def constants(truth: BaseTruth) -> np.ndarray:
    return TORQUE_CONSTANT * np.array(truth.wheel_torque_constant)


def step_to(truth: BaseTruth, speed: float, seconds: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Forward speeds (k,) and wheel torques (k, 4) each ms after a command; dead time included."""
    plant = BasePlant(truth, DRIVER, 1)
    plant.command_twist([speed, 0.0, 0.0])
    speeds, torques = [], []
    for k in range(round(seconds / 1e-3)):
        plant.advance((k + 1) * 1e-3)
        speeds.append(plant.twist[0])
        torques.append(plant.wheel_torques)
    return np.array(speeds), np.array(torques)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_a_step_to_full_speed_takes_no_more_current_than_a_controller_gives(seed: int) -> None:
    """Without a limit it took 26 to 53 A a wheel: forces that no floor and no battery gives."""
    truth = load_truth(seed)
    speeds, torques = step_to(truth, 0.8)
    largest = np.abs(torques / constants(truth)).max()
    assert 0.99 * CURRENT_LIMIT < largest <= CURRENT_LIMIT * (1 + 1e-12)
    # The integral waits while a current is cut: it would wind up by 0.8 m/s x 0.1 s.
    assert speeds.max() < 1.05 * speeds[-200:].mean()


def test_wheels_turn_no_faster_than_the_batteries_drive_them() -> None:
    truth = load_truth(0).without_noise()
    plant = cruise(truth, (5.0, 0.0, 0.0), 4.0)
    idle = 24.0 / TORQUE_CONSTANT
    drop = plant.wheel_torques / constants(truth) * 1.03 / TORQUE_CONSTANT
    np.testing.assert_allclose(plant.wheel_speeds, idle - drop, rtol=1e-6)
    assert 0.9 * idle < plant.wheel_speeds.min() and plant.twist[0] < 1.32
    plant.command_twist([0.5, 0.0, 0.0])
    plant.advance(5.5)
    assert plant.twist[0] == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("friction", [0.4, 0.8])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_floor_brakes_a_base_on_free_rollers_by_mu_g_cos_45(axis: int, friction: float) -> None:
    truth = dataclasses.replace(load_truth(0).without_noise().without_friction(), floor_friction=friction, lag=0.005)
    fast = np.zeros(3)
    fast[axis] = 0.8
    plant = cruise(truth, tuple(fast), 3.0)
    plant.command_twist([0.0, 0.0, 0.0])
    speeds, heats = [], []
    for k in range(700):
        plant.advance(3.0 + (k + 1) * 1e-3)
        speeds.append(plant.twist[axis])
        heats.append(plant.energy().slip_heat)
    # The axis of the roller, 45 degrees but for the lateral factor.
    along = np.array([truth.lateral_factor, 1.0]) / np.hypot(truth.lateral_factor, 1.0)
    hardest = -np.diff(speeds).min() / 1e-3
    assert hardest == pytest.approx(friction * GRAVITY * along[axis], rel=1e-6)
    assert hardest == pytest.approx(friction * GRAVITY * np.cos(np.pi / 4), rel=0.03)
    assert np.diff(heats).min() > -1e-9 and heats[-1] - heats[0] > 1.0
    energy = plant.energy()
    assert abs(energy.gap) < 1e-12 * energy.work
    assert abs(speeds[-1]) < 1e-3
    np.testing.assert_allclose(plant.wheel_speeds, truth.mecanum().wheel_speeds(plant.twist), atol=1e-12)


def test_wheels_with_grip_roll_and_others_slide() -> None:
    slow, fast = dataclasses.replace(load_truth(3), floor_friction=0.2), dataclasses.replace(load_truth(3), lag=0.05)
    lost = [drive_busily(truth, 3, 10.0).energy() for truth in (slow, dataclasses.replace(fast, floor_friction=5.0))]
    assert lost[0].slip_heat > 0.1 * lost[0].work
    assert abs(lost[0].gap) < 1e-10 * lost[0].work
    assert abs(lost[1].slip_heat) < 1e-10


def test_friction_never_drives_however_it_wanders() -> None:
    """A wandering torque above F1 would: of seed 24 it is; here three times."""
    truth = load_truth(24)
    truth = dataclasses.replace(truth, torque_noise=3.0 * truth.wheel_coulomb)
    plant = cruise(truth, (0.3, 0.0, 0.0), 1.5)
    plant.switch_motors(False)
    heats = []
    for k in range(1500):
        plant.advance(1.5 + (k + 1) * 1e-3)
        heats.append(plant.energy().wheel_heat)
    assert np.diff(heats).min() >= 0.0


@pytest.mark.parametrize("span", [0.4e-3, 1e-3, 1.4e-3, 1.49e-3, 20e-3, 20.4e-3])
def test_no_step_is_longer_than_a_millisecond(span: float, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, steps = BasePlant(load_truth(0), DRIVER, 0), []
    whole = base_plant.dynamics.advance

    def spy(*arguments):
        steps.append((len(arguments[1]), arguments[4]))
        return whole(*arguments)

    monkeypatch.setattr(base_plant.dynamics, "advance", spy)
    plant.advance(span)
    count, dt = steps[0]
    assert dt <= 1e-3 * (1 + 1e-9) and count * dt == pytest.approx(span) and count < span / 1e-3 + 1.0


def test_commands_are_counted_in_rpm_of_the_motor() -> None:
    """Facts 1.4: for a command of 0.1 mm/s a wheel turns with 1 rpm, 0.19 mm/s; for 0.09, not at all."""
    truth = load_truth(0).without_noise().without_friction()
    for commanded, counted in ((1e-4, 1), (0.9e-4, 0), (0.2, 1039)):
        plant = cruise(truth, (commanded, 0.0, 0.0), 3.0)
        np.testing.assert_allclose(plant.wheel_speeds / ONE_RPM, counted, rtol=1e-3)
    plant = BasePlant(truth, DRIVER, 0)
    plant.command_wheels(np.array([1.4, -0.6, -0.6, 1.4]) * ONE_RPM * np.array(DRIVER.command_sign))
    plant.advance(3.0)
    np.testing.assert_allclose(plant.wheel_speeds / ONE_RPM, [1.0, -1.0, -1.0, 1.0], rtol=1e-3)


def test_efforts_are_told_by_the_nominal_torque_constant() -> None:
    """So friction identified from wheel efforts is off by what the motors are off, as on the robot."""
    factors = (1.03, 0.97, 1.01, 0.99)
    truth = dataclasses.replace(load_truth(0).without_noise(), wheel_torque_constant=factors)
    plant = cruise(truth, (0.3, 0.1, 0.0))
    reported = plant.read_efforts().effort * np.array(DRIVER.velocity_sign)
    np.testing.assert_allclose(reported, plant.wheel_torques / factors, atol=0.5 * EFFORT_QUANTUM * (1 + 1e-9))
    drawn = np.array([load_truth(seed).wheel_torque_constant for seed in range(1, 40)])
    assert np.abs(drawn - 1.0).max() <= 0.03 and np.ptp(drawn) > 0.055
