"""The energy of the twin's base: what the motors did is heat or motion, by the base's books and by our own."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from base_drives import DRIVER, busy_twist, cruise, draw_slips, drive_busily

from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

WHEEL_SCALE, ROLLER_SCALE = 0.05, 0.003  # [rad/s], [m/s] over which Coulomb friction rises


def on_rollers(seed: int) -> BaseTruth:
    return dataclasses.replace(load_truth(seed), rollers=6.0)


CASES = {
    "smooth": (load_truth(1), ()),
    "smooth, another": (load_truth(2), ()),
    "rollers": (on_rollers(1), ()),
    "slip": (load_truth(1), draw_slips(1, 0.0, 60.0, per_minute=30.0)),
    "rollers and slip": (on_rollers(3), draw_slips(3, 0.0, 60.0, per_minute=30.0)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_books_of_a_busy_minute_close_to_a_millionth(case: str) -> None:
    truth, slips = CASES[case]
    energy = drive_busily(truth, 1, 60.0, slips).energy()
    print(f"\n{case}: {energy}, gap {energy.gap / energy.work:.1e}")
    assert energy.work > 300.0
    assert abs(energy.gap) < 1e-6 * energy.work
    assert energy.wheel_heat > 0.2 * energy.work and energy.floor_heat > 0.2 * energy.work


def floor_power(truth: BaseTruth, twist: np.ndarray) -> float:
    """Roller friction and viscous friction of system 35, wheel by wheel."""
    positions = truth.mecanum().positions
    along, sideways = twist[0] - twist[2] * positions[:, 1], twist[1] + twist[2] * positions[:, 0]
    rollers = np.sqrt(2.0) * truth.roller_coulomb * np.sum(sideways * np.tanh(sideways / ROLLER_SCALE))
    return float(rollers + np.sum(truth.viscous_x * along**2 + truth.viscous_y * sideways**2) / 4.0)


def test_work_and_heat_in_the_books_are_those_of_the_motion() -> None:
    """Sampled each ms from outside: torque x turn of each wheel, and system 35's powers at the mean speeds."""
    truth = load_truth(4).without_noise()
    plant = BasePlant(truth, DRIVER, 4)
    work = wheels = floor = 0.0
    for k in range(5000):
        if k % 20 == 0:
            plant.command_twist(busy_twist(k * 1e-3))
        angles, twist = plant.wheel_angles, plant.twist
        plant.advance((k + 1) * 1e-3)
        turned = plant.wheel_angles - angles
        work += float(plant.wheel_torques @ turned)
        wheels += float(truth.wheel_coulomb * np.tanh(turned / 1e-3 / WHEEL_SCALE) @ turned)
        floor += 1e-3 * floor_power(truth, 0.5 * (twist + plant.twist))
    energy = plant.energy()
    assert energy.work == pytest.approx(work, rel=1e-9)
    assert energy.wheel_heat == pytest.approx(wheels, rel=2e-3)
    assert energy.floor_heat == pytest.approx(floor, rel=2e-3)
    speeds = plant.wheel_speeds
    vx, vy, wz = plant.twist
    moving = truth.mass * (vx**2 + vy**2) + truth.yaw_inertia * wz**2 + truth.wheel_inertia * speeds @ speeds
    assert energy.stored == pytest.approx(0.5 * moving, rel=1e-12)


def test_a_base_that_coasts_turns_its_motion_into_heat() -> None:
    plant = cruise(load_truth(5), (0.4, 0.2, 0.5))
    before = plant.energy()
    plant.switch_motors(False)
    plant.advance(plant.time + 8.0)
    after = plant.energy()
    assert after.work == before.work and np.all(plant.wheel_torques == 0.0)
    heat = after.wheel_heat + after.floor_heat - before.wheel_heat - before.floor_heat
    assert heat == pytest.approx(before.stored, rel=1e-6)
    assert after.stored < 1e-6 * before.stored


def test_without_friction_spinning_and_drifting_costs_nothing() -> None:
    """The centripetal force turns the speed and does no work."""
    plant = cruise(load_truth(6).without_friction().without_noise(), (0.5, -0.3, 1.5))
    plant.switch_motors(False)
    before = plant.energy().stored
    plant.advance(plant.time + 20.0)
    assert plant.energy().stored == pytest.approx(before, rel=1e-11)
    assert abs(plant.pose[2]) > 20.0


def test_wheels_that_roll_lose_nothing_to_slip() -> None:
    gripping = dataclasses.replace(load_truth(7), floor_friction=5.0)
    assert abs(drive_busily(gripping, 7, 10.0).energy().slip_heat) < 1e-12


def test_slip_only_makes_heat() -> None:
    truth = load_truth(8)
    plant = BasePlant(truth, DRIVER, 8, slips=draw_slips(8, 0.0, 10.0, per_minute=120.0))
    heats = []
    for k in range(500):
        plant.command_twist(busy_twist(k * 0.02))
        plant.advance((k + 1) * 0.02)
        heats.append(plant.energy().slip_heat)
    assert heats[-1] > 0.3
    # A contact takes 20 ms to follow a pull that turns round: meanwhile it may give a little back.
    assert min(np.diff(heats)) > -0.02 * heats[-1]


def test_a_blow_of_one_roller_after_the_other_only_costs() -> None:
    """A plastic impact (Carnot): kinetic energy is lost, never gained; without friction nothing else is."""
    truth = dataclasses.replace(on_rollers(9).without_friction().without_noise())
    plant = cruise(truth, (0.2, 0.1, 1.2))
    plant.switch_motors(False)
    before, lost = plant.energy(), []
    for k in range(400):
        plant.advance(2.0 + (k + 1) * 0.005)
        lost.append(plant.energy().slip_heat)
    steps = np.diff(lost)
    assert np.min(steps) > -1e-6 and np.max(steps) > 1e-4
    after = plant.energy()
    assert after.slip_heat - before.slip_heat == pytest.approx(before.stored - after.stored, abs=1e-5)
