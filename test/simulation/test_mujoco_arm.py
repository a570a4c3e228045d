"""Two arms of equal parameters by two authors: the twin's, and MuJoCo's with its own friction, motors and heat."""

from __future__ import annotations

import numpy as np
import pytest
from mujoco_arms import HANGING, ROBOT, TORQUE_PERIOD, mujoco_arm, swinging_torques

from youbot_dynamics.dynamics.thermal_motor import heat_step
from youbot_dynamics.errors import InputError
from youbot_dynamics.simulation.arm import ArmPlant, torque_of_current
from youbot_dynamics.simulation.truth import load_arm_truth


def swing(plant, torques: np.ndarray) -> np.ndarray:
    """Positions (k, 5) under torques without feedback."""
    positions = []
    for k, torque in enumerate(torques):
        plant.command_torques(torque)
        plant.advance((k + 1) * TORQUE_PERIOD)
        positions.append(plant.position)
    return np.array(positions)


def worst_of_swing(seed: int, steps: int) -> float:
    truth = load_arm_truth(seed).without_noise()
    twin = ArmPlant(truth, ROBOT, 0, position=HANGING)
    torques = swinging_torques(twin.model, seed, 5.0)
    ours = swing(twin, torques)
    limits = np.array([[limit.lower, limit.upper] for limit in twin.model.tree.limits])
    assert np.all((ours > limits[:, 0]) & (ours < limits[:, 1])), "the stops are made differently"
    assert np.all(np.ptp(ours, axis=0) > 0.5), "all joints shall move"
    return float(np.abs(swing(mujoco_arm(truth, HANGING, steps=steps), torques) - ours).max())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_torques_move_both_arms_alike_for_5_s(seed):
    """1 mrad of swings by up to 2 rad, friction reversing 3 to 7 times a joint; MuJoCo in steps of 0.05 ms."""
    worst = worst_of_swing(seed, 20)
    print(f"seed {seed}: {1e3 * worst:.3f} mrad")
    assert worst < 1e-3


@pytest.mark.parametrize("seed", [0, 1])
def test_what_differs_is_the_step_of_mujoco(seed):
    """Its method is of first order: a fifth of the step leaves a fifth of the difference, until ours of 1 ms shows."""
    coarse, middle, fine = (worst_of_swing(seed, steps) for steps in (1, 5, 25))
    print(f"seed {seed}: {1e3 * coarse:.2f}, {1e3 * middle:.2f}, {1e3 * fine:.3f} mrad at 1, 0.2, 0.04 ms")
    assert coarse < 1e-2
    assert 4.0 < coarse / middle < 6.5
    assert 3.0 < middle / fine < 6.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 13))
def test_torques_move_many_arms_alike_for_5_s(seed):
    worst = worst_of_swing(seed, 100)
    print(f"seed {seed}: {1e3 * worst:.3f} mrad")
    assert worst < 1e-3


def work(seed: int, seconds: float, torques: bool) -> tuple[float, float, float]:
    """Largest difference of windings and housings [K] and largest rise [K] while both arms work on."""
    truth = load_arm_truth(seed).without_noise()
    twin, other = ArmPlant(truth, ROBOT, 0), mujoco_arm(truth)
    random = np.random.default_rng(6)
    limits = np.array([[limit.lower, limit.upper] for limit in twin.model.tree.limits])
    nominal = np.array([limit.effort for limit in twin.model.tree.limits])
    winding = housing = rise = 0.0
    for k in range(round(seconds / 10.0)):
        torque, goal = random.uniform(-nominal, nominal), random.uniform(*limits.T)
        for arm in (twin, other):
            if torques:
                arm.command_torques(torque)
            else:
                arm.command_positions(goal)
        for second in range(1, 11):
            for arm in (twin, other):
                arm.advance(10.0 * k + second)
            winding = max(winding, float(np.abs(twin.winding - other.winding).max()))
            housing = max(housing, float(np.abs(twin.housing - other.housing).max()))
            rise = max(rise, float((twin.winding - truth.ambient_temperature).max()))
    print(f"seed {seed}, {seconds:g} s: windings within {winding:.4f} K, housings {housing:.4f} K, rise {rise:.1f} K")
    return winding, housing, rise


@pytest.mark.parametrize("torques", [True, False], ids=["torques", "positions"])
def test_motors_of_both_arms_warm_alike(torques):
    """New torques up to the nominal ones, the arm resting at its stops; or new places, held against gravity."""
    winding, housing, rise = work(0, 60.0, torques)
    assert winding < 0.5 and housing < 0.1
    assert rise > (10.0 if torques else 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("torques", [True, False], ids=["torques", "positions"])
@pytest.mark.parametrize("seed", [0, 1])
def test_motors_of_both_arms_warm_alike_for_ten_minutes(seed, torques):
    winding, housing, rise = work(seed, 600.0, torques)
    assert winding < 0.5 and housing < 0.1
    assert rise > (20.0 if torques else 2.0)


def test_a_held_torque_warms_winding_and_housing_as_the_heat_network_says():
    """A minute at nine tenths of the nominal current, the arm resting: MuJoCo's one node and our housing."""
    truth = load_arm_truth(0).without_noise()
    arm = mujoco_arm(truth)
    torque = -0.9 * np.array([limit.effort for limit in arm.model.tree.limits])
    arm.command_torques(torque)
    arm.advance(60.0)
    for k, geared in enumerate(arm.model.motors):
        current = torque[k] / (geared.ratio * geared.motor.torque_constant)
        warmed = 60.0 - truth.command_delay
        winding, housing = heat_step(geared.motor.heat_constants, 25.0, 25.0, current**2, 0.0, warmed)
        assert arm.winding[k] == pytest.approx(winding, abs=0.05)
        assert arm.housing[k] == pytest.approx(housing, abs=0.05)


def test_places_along_the_ramps_are_reached_alike():
    """With the controllers of the driver, which are one for both, MuJoCo's step of 1 ms is enough."""
    truth = load_arm_truth(1).without_noise()
    arms = [ArmPlant(truth, ROBOT, 0), mujoco_arm(truth)]
    for arm in arms:
        arm.command_positions([2.5, 1.2, -2.0, 1.5, 2.0], 0.0)
    for k in range(200):
        for arm in arms:
            arm.advance(0.02 * (k + 1))
        np.testing.assert_allclose(arms[0].position, arms[1].position, rtol=0, atol=2e-3)
    np.testing.assert_allclose(arms[1].position, [2.5, 1.2, -2.0, 1.5, 2.0], rtol=0, atol=2e-3)
    for one, other in zip(*(vars(arm.read()).values() for arm in arms), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1.5)
        assert np.shape(one) == np.shape(other)


def test_a_warm_motor_still_gives_the_torque_of_its_current():
    """MuJoCo would answer with the current of a cold winding; the driver controls currents, not voltages."""
    mujoco = pytest.importorskip("mujoco")
    truth = load_arm_truth(2).without_noise()
    arm = mujoco_arm(truth)
    arm.command_torques(-0.9 * np.array([limit.effort for limit in arm.model.tree.limits]))
    arm.advance(30.0)
    model, data = arm._joints._model, arm._joints._data
    forces = []
    for control in (data.ctrl.copy(), np.zeros(5)):
        data.ctrl[:] = control
        mujoco.mj_forward(model, data)
        forces.append(data.qfrc_actuator.copy())  # friction is in both
    assert np.all(arm.winding - truth.ambient_temperature > 5.0)
    np.testing.assert_allclose(forces[0] - forces[1], arm.current * torque_of_current(arm.model), rtol=1e-5)


def test_the_arm_falls_without_current_and_rests_at_its_stops():
    truth = load_arm_truth(0).without_noise()
    arm = mujoco_arm(truth, np.array([2.95, 1.6, -2.5482, 1.79, 2.92]))
    arm.switch_motors(False)
    arm.advance(6.0)
    assert np.all(arm.current == 0.0)
    assert arm.position[1] > 2.0
    limits = arm.model.tree.limits
    assert all(limit.lower - 0.02 < q < limit.upper + 0.02 for q, limit in zip(arm.position, limits, strict=True))
    assert np.abs(arm.speed).max() < 1e-2


def test_what_no_arm_can_do_is_refused():
    arm = mujoco_arm(load_arm_truth(0))
    with pytest.raises(InputError, match="position"):
        arm.command_positions([9.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(InputError, match="torque"):
        arm.command_torques([np.nan, 0.0, 0.0, 0.0, 0.0])
