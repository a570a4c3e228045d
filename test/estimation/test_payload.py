"""The payload out of torque errors: found with honest deviation, and said to be unknown where it is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from arm_runs import NOMINAL, PLACE, SHEETS, drawn_truth, loaded, sensors, swing

from youbot_dynamics.dynamics.rigid_body import point_inertia
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import ModelError
from youbot_dynamics.estimation.arm_ekf import ArmBelief, ArmEkf, ArmEkfTuning
from youbot_dynamics.estimation.payload import Payload, PayloadBelief, PayloadTuning, shown_part, torque_rows
from youbot_dynamics.simulation.truth import ArmTruth

TUNING = ArmEkfTuning()


def felt(truth: ArmTruth, mass: float, seed: int, seconds: float = 10.0) -> PayloadBelief:
    """Belief after swinging about with a payload, seen at 50 Hz by a filter that knows the sheets' empty arm."""
    run = swing(seed, loaded(truth, mass), seconds).every(10)
    ekf, payload = ArmEkf(SHEETS, sensors(), TUNING), Payload(SHEETS, TUNING)
    for stamp, position, effort in zip(run.stamp, run.position, run.effort, strict=True):
        ekf.predict(stamp, effort)
        ekf.update(position)
        payload.add(ekf.state)
    return payload.state


def test_a_payload_is_weighed_and_placed_by_an_arm_that_is_as_its_sheets_say() -> None:
    truth = dataclasses.replace(NOMINAL, stamp_jitter=3e-4)
    empty, full = felt(truth, 0.0, 1), felt(truth, 0.5, 1)
    assert empty.identifiable and full.identifiable
    assert empty.mass == pytest.approx(0.0, abs=0.05)
    assert full.mass == pytest.approx(0.5, abs=0.08)
    assert full.centre == pytest.approx(PLACE, abs=0.02)
    assert empty.centre.tolist() == [0.0, 0.0, 0.07]  # nothing is there to be placed


def scores(seeds: range) -> tuple[np.ndarray, np.ndarray]:
    found = [(felt(drawn_truth(seed), mass, seed), mass) for seed in seeds for mass in (0.0, 0.5)]
    errors = np.array([belief.mass - mass for belief, mass in found])
    return errors, np.array([belief.mass_deviation for belief, _ in found])


def test_its_deviation_is_honest_where_masses_and_friction_are_20_percent_off() -> None:
    errors, deviations = scores(range(3))
    assert np.all(np.abs(errors) < 2.0 * deviations)
    assert np.all(deviations < 0.2)


@pytest.mark.slow
def test_its_deviation_is_honest_over_forty_arms() -> None:
    errors, deviations = scores(range(40))
    print(f"RMSE {np.sqrt(np.mean(errors**2)):.3f} kg, deviation {deviations.mean():.3f} kg")
    assert np.mean(np.abs(errors) < 2.0 * deviations) >= 0.9


def belief(stamp: float, position: np.ndarray, speed: np.ndarray, torque_error: np.ndarray) -> ArmBelief:
    """What a filter would believe that knows torque errors exactly."""
    covariance = np.diag(np.r_[np.full(15, 1e-8), np.full(5, 1e-8)])
    zero = np.zeros(5)
    mean = np.r_[position, speed, zero, torque_error]
    return ArmBelief(stamp, mean, covariance, position, speed, zero, torque_error, zero)


def gravity_of(mass: float, position: np.ndarray) -> np.ndarray:
    """Torque of a hanging point mass at PLACE by virtual work: -m g dz/dq, differences of its height."""

    def height(q: np.ndarray) -> float:
        return float((SHEETS.tree.poses(q)[4] @ np.r_[PLACE, 1.0])[2])

    steps = 1e-6 * np.eye(5)
    return -9.81 * mass * np.array([(height(position + d) - height(position - d)) / 2e-6 for d in steps])


def test_its_equation_is_virtual_work() -> None:
    sure = ArmEkfTuning(load_error=1e-6, friction_error=0.02)
    payload = Payload(SHEETS, sure, PayloadTuning(model_noise=1e-3, memory=1e6))
    random = np.random.default_rng(3)
    for k in range(40):
        position = np.array([3.0, 1.1, -2.5, 1.8, 2.9]) + random.uniform(-1.0, 1.0, 5)
        speed = random.choice([-0.05, 0.05], 5)
        payload.add(belief(2.0 * k, position, speed, gravity_of(0.3, position)))
    assert payload.state.mass == pytest.approx(0.3, abs=0.001)
    assert payload.state.centre == pytest.approx(PLACE, abs=0.001)


def with_point(mass: float, centre: np.ndarray) -> Tree:
    """The arm with a point in its gripper."""
    layout = SHEETS.tree.layout
    masses, first, inertias = layout.masses.copy(), layout.first_moments.copy(), layout.inertias.copy()
    masses[4] += mass
    first[4] += mass * centre
    inertias[4] += point_inertia(mass, centre)
    changed = layout._replace(masses=masses, first_moments=first, inertias=inertias)
    return dataclasses.replace(SHEETS.tree, layout=changed)


def test_a_payload_in_motion_drives_the_joints_as_inverse_dynamics_say() -> None:
    """Linear in mass and first moment: what is odd in the centre is left of a point on either side of the joint."""
    random, tree = np.random.default_rng(5), SHEETS.tree
    for _ in range(10):
        q, v, a = random.uniform(-1.5, 1.5, 5), random.uniform(-1.5, 1.5, 5), random.uniform(-5.0, 5.0, 5)
        rows = torque_rows(tree.layout, tree.poses(q), v, a)
        empty = tree.inverse_dynamics(q, v, a)
        here, there = (with_point(0.4, sign * PLACE).inverse_dynamics(q, v, a) - empty for sign in (1.0, -1.0))
        at_joint = with_point(0.4, np.zeros(3)).inverse_dynamics(q, v, a) - empty
        np.testing.assert_allclose(-rows[:, 0] * 0.4, at_joint, atol=1e-9)
        np.testing.assert_allclose(-rows[:, 1:4] @ (0.4 * PLACE), 0.5 * (here - there), atol=1e-9)
        # All links and rotors together are the arm itself.
        np.testing.assert_allclose(-rows[:, 4:14].sum(axis=1), empty, atol=1e-9)
        np.testing.assert_array_equal(rows[:, 14:], np.hstack([-np.diag(np.sign(v)), -np.diag(v)]))


def weighed(truth: ArmTruth, mass: float, seed: int, payload: Payload, begin: float, seconds: float = 12.0) -> float:
    """Mass that is believed after a swing at 50 Hz that begins at a stamp [s]."""
    run = swing(seed, loaded(truth, mass), seconds).every(10)
    ekf = ArmEkf(SHEETS, sensors(), TUNING)
    for stamp, position, effort in zip(begin + run.stamp, run.position, run.effort, strict=True):
        ekf.predict(stamp, effort)
        ekf.update(position)
        payload.add(ekf.state)
    return payload.state.mass


def check_weights(seeds: range, masses: tuple[float, ...]) -> None:
    """Each within a tenth, by an arm that is as its sheets say, each seed swinging another way through other poses."""
    truth = dataclasses.replace(NOMINAL, stamp_jitter=3e-4)
    for seed in seeds:
        for mass in masses:
            found = weighed(truth, mass, seed, Payload(SHEETS, TUNING), 0.0)
            print(f"seed {seed}: {mass} kg weighed as {found:.3f}, {found / mass - 1.0:+.1%}")
            assert found == pytest.approx(mass, rel=0.1)


def test_a_payload_is_weighed_within_a_tenth() -> None:
    check_weights(range(2), (0.3,))


@pytest.mark.slow
def test_payloads_of_200_to_500_g_are_weighed_within_a_tenth_by_eight_swings() -> None:
    check_weights(range(8), (0.2, 0.3, 0.5))


@pytest.mark.slow
def test_an_arm_that_is_20_percent_off_weighs_better_once_it_was_tared() -> None:
    errors = {"as it is": [], "tared": []}
    for seed in range(8):
        truth = drawn_truth(seed)
        for tared, found in zip((False, True), errors.values(), strict=True):
            payload = Payload(SHEETS, TUNING)
            if tared:
                weighed(truth, 0.0, seed + 100, payload, 0.0, 20.0)
                assert payload.tare()
            found.append(weighed(truth, 0.5, seed, payload, 30.0) / 0.5 - 1.0)
    for name, found in errors.items():
        print(f"{name}: RMS {np.sqrt(np.mean(np.square(found))):.1%}, worst {np.abs(found).max():.1%}")
    as_it_is, tared = (np.sqrt(np.mean(np.square(found))) for found in errors.values())
    assert tared < 0.5 * as_it_is and tared < 0.06


def test_taring_turns_what_was_felt_into_errors_of_the_model() -> None:
    payload, empty = Payload(SHEETS, TUNING), Payload(SHEETS, TUNING)
    assert not empty.tare()  # nothing was felt
    positions = [np.array([2.9, 1.8, -2.0, 1.9, 2.9]) + 0.5 * np.sin(k * np.arange(1.0, 6.0)) for k in range(120)]
    for k, position in enumerate(positions):
        speed = 0.05 * np.random.default_rng(k).choice([-1.0, 1.0], 5)
        wrong = -0.15 * SHEETS.tree.gravity_forces(position)
        if k == 60:
            assert payload.tare()
            assert payload.state.mass == 0.0 and payload.state.mass_deviation == pytest.approx(0.5)
        payload.add(belief(2.0 * k, position, speed, wrong + (gravity_of(0.3, position) if k >= 60 else 0.0)))
    assert payload.state.mass == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("noise", [0.01, 0.3, 3.0])
def test_the_part_of_a_lasting_error_that_a_fading_state_shows_is_that_of_a_filter_run_to_its_end(noise: float) -> None:
    """A filter of one state, step by step in 1 ms: memory 0.5 s, prior variance 0.7."""
    dt, memory, prior = 1e-3, 0.5, 0.7
    left, mean, variance = np.exp(-dt / memory), 0.0, prior
    for _ in range(20000):
        mean, variance = left * mean, left**2 * variance + (1.0 - left**2) * prior
        gain = variance / (variance + noise / dt)
        mean, variance = mean + gain * (1.0 - mean), (1.0 - gain) * variance
    assert shown_part(prior, variance) == pytest.approx(mean, rel=0.01)


def test_friction_that_is_off_is_not_taken_for_a_payload_and_a_shy_filter_not_for_a_light_one() -> None:
    positions = [np.array([2.9, 1.8, -2.0, 1.9, 2.9]) + 0.5 * np.sin(k * np.arange(1.0, 6.0)) for k in range(60)]
    coulomb = np.array([friction.coulomb for friction in SHEETS.friction])
    rubbing, shy = Payload(SHEETS, TUNING), Payload(SHEETS, TUNING)
    for k, position in enumerate(positions):
        speed = 0.2 * np.random.default_rng(k).choice([-1.0, 1.0], 5)
        rubbing.add(belief(2.0 * k, position, speed, -0.3 * coulomb * np.sign(speed)))
        pull = gravity_of(0.5, position)
        own = (0.2 * coulomb) ** 2
        load = -SHEETS.tree.gravity_forces(position)
        left = 0.4 * (own + (0.2 * (load + pull)) ** 2)
        shown = shown_part(1.0, 0.4)
        # The load is reckoned from the shrunken error, so that the part is not exactly undone.
        told = belief(2.0 * k, position, speed, shown * pull)
        covariance = told.covariance.copy()
        covariance[15:, 15:] = np.diag(left)
        shy.add(dataclasses.replace(told, covariance=covariance))
    assert rubbing.state.mass == pytest.approx(0.0, abs=0.02)
    assert shy.state.mass == pytest.approx(0.5, abs=0.1)


def test_what_a_shy_filter_shows_counts_as_a_measurement_of_its_variance_over_the_square_of_that_part() -> None:
    """One joint moves; a filter that leaves half the variance, and a sure one with as much noise of its model."""
    position, speed = np.array([2.9, 2.4, -2.0, 1.9, 2.9]), np.array([0.0, 0.2, 0.0, 0.0, 0.0])
    coulomb, pull = SHEETS.friction[1].coulomb, gravity_of(0.3, position)
    part = shown_part(1.0, 0.5)
    load = -SHEETS.tree.gravity_forces(position) + part * pull
    left = 0.5 * ((TUNING.friction_error * coulomb) ** 2 + (TUNING.load_error * load) ** 2)
    told = belief(0.0, position, speed, part * pull)
    covariance = told.covariance.copy()
    covariance[15:, 15:] = 0.999 * np.diag(left)  # short of half: beyond it nothing is said
    model_noise = np.sqrt(0.1**2 + left[1] / part**2 / coulomb**2)
    shy = Payload(SHEETS, TUNING, PayloadTuning(model_noise=0.1))
    sure = Payload(SHEETS, TUNING, PayloadTuning(model_noise=model_noise))
    assert shy.add(dataclasses.replace(told, covariance=covariance))
    assert sure.add(belief(0.0, position, speed, pull))
    assert shy.state.mass_deviation < 0.49
    assert shy.state.mass_deviation == pytest.approx(sure.state.mass_deviation, rel=1e-3)
    assert shy.state.mass == pytest.approx(sure.state.mass, rel=1e-2)


def test_an_arm_that_stands_or_hangs_upright_tells_no_mass() -> None:
    standing, upright = Payload(SHEETS, TUNING), Payload(SHEETS, TUNING)
    straight = np.array([2.96706, 1.13446, -2.54818, 1.78896, 2.92343])
    for k in range(60):
        standing.add(belief(1.0 * k, straight + 0.5, np.zeros(5), np.full(5, 0.5)))
        upright.add(belief(1.0 * k, straight, np.full(5, 0.2 if k % 2 else -0.2), np.zeros(5)))
    assert not standing.state.identifiable and "move the arm" in standing.state.reason
    assert not upright.state.identifiable and "both ways" in upright.state.reason
    assert standing.state.mass_deviation == pytest.approx(0.5)


def test_a_payload_is_forgotten_and_reset_forgets_at_once() -> None:
    payload = Payload(SHEETS, TUNING)
    reach = np.array([2.96, 2.2, -2.0, 1.9, 2.9])
    for k in range(60):
        payload.add(belief(1.0 * k, reach + 0.3 * np.sin(k), np.full(5, 0.2 if k % 2 else -0.2), np.zeros(5)))
    sure = payload.state.mass_deviation
    payload.add(belief(600.0, reach, np.zeros(5), np.zeros(5)))
    assert sure < 0.2 < payload.state.mass_deviation
    payload.reset()
    assert payload.state.mass_deviation == pytest.approx(0.5) and not payload.state.identifiable


def test_beliefs_without_torque_errors_or_too_soon_say_nothing() -> None:
    payload = Payload(SHEETS, TUNING)
    q, v = np.array([2.96, 2.0, -2.0, 1.8, 2.9]), np.full(5, 0.2)
    assert payload.add(belief(1.0, q, v, np.zeros(5)))
    assert not payload.add(belief(1.2, q, v, np.zeros(5)))
    assert payload.add(belief(1.5, q, v, np.zeros(5)))
    assert not payload.add(belief(np.nan, q, v, np.zeros(5)))
    short = belief(9.0, q, v, np.zeros(5))
    assert not payload.add(dataclasses.replace(short, mean=short.mean[:15]))
    assert payload.add(belief(0.2, q, v, np.zeros(5)))  # the clock was set back


def test_values_that_make_no_sense_are_refused() -> None:
    for name in ("mass_deviation", "grip_deviation", "memory", "model_noise", "payload_share"):
        with pytest.raises(ModelError, match=name):
            PayloadTuning(**{name: 0.0})
        assert getattr(PayloadTuning(**{name: 1e-3}), name) == 1e-3
    with pytest.raises(ModelError, match="grip_point.y"):
        PayloadTuning(grip_point=(0.0, float("nan"), 0.0))
