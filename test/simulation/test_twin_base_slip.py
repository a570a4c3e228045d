"""Wheels of the twin that lose grip: what they do, what the driver sees of it, and what it cannot see."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from base_drives import DRIVER, busy_steps, cruise

from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant, SlipEvent, counted_wheel_speeds
from youbot_dynamics.simulation.base._dynamics import lost_shares
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

TRUTH = load_truth(0).without_noise()
BASE = TRUTH.mecanum()
FORWARD = (0.3, 0.0, 0.0)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_wheel_that_pulls_creeps_in_proportion_to_its_torque(share: float) -> None:
    plant = cruise(TRUTH, FORWARD, 12.0, (SlipEvent(1, share, 1.0, 99.0),))
    (vx, vy, wz), rolling = plant.twist, BASE.wheel_speeds(plant.twist)
    np.testing.assert_allclose(plant.wheel_speeds[[0, 2, 3]], rolling[[0, 2, 3]], rtol=1e-12)
    floor = np.zeros(3)
    for x, y in BASE.positions:
        along, sideways = TRUTH.viscous_x / 4.0 * (vx - wz * y), TRUTH.viscous_y / 4.0 * (vy + wz * x)
        sideways += np.sqrt(2.0) * TRUTH.roller_coulomb * np.tanh((vy + wz * x) / 0.003)
        floor += [along, sideways, x * sideways - y * along]
    part = np.linalg.lstsq(BASE.inverse_matrix.T, floor, rcond=None)[0][1]
    passed = plant.wheel_torques[1] - TRUTH.wheel_coulomb
    lost = 1.0 - rolling[1] / plant.wheel_speeds[1]
    assert lost == pytest.approx(share * passed / part, rel=1e-4)
    # Wheels with grip relieve it.
    assert 0.5 * share < lost < share


def test_a_wheel_that_brakes_turns_less_than_it_rolls() -> None:
    plant = BasePlant(TRUTH, DRIVER, 0, slips=(SlipEvent(2, 0.02, 0.0, 9.0),))
    plant.command_twist((0.6, 0.0, 0.0))
    plant.advance(2.0)
    plant.command_twist((0.0, 0.0, 0.0))
    plant.advance(2.17)
    assert plant.wheel_torques[2] < -0.2
    assert 0.0 < plant.wheel_speeds[2] < 0.99 * BASE.wheel_speeds(plant.twist)[2]


def test_motors_keep_their_wheels_to_the_command_and_the_base_comes_short() -> None:
    plant = cruise(TRUTH, FORWARD, 6.0, (SlipEvent(0, 0.2, 1.0, 9.0),))
    commanded = BASE.twist(DRIVER.mecanum().wheel_speeds(FORWARD))
    np.testing.assert_allclose(BASE.twist(plant.wheel_speeds), commanded, atol=1e-3)
    assert plant.twist[0] < 0.97 * commanded[0] and abs(plant.twist[2]) > 0.01
    # One number of four wheels' speeds tells that something is wrong.
    assert np.max(np.abs(BASE.slip(plant.wheel_speeds))) > 0.3


def test_wheels_that_all_slip_alike_cannot_be_told_from_wheels_that_roll() -> None:
    slips = tuple(SlipEvent(wheel, 0.2, 1.0, 99.0) for wheel in range(4))
    plant = cruise(TRUTH, FORWARD, 8.0, slips)
    commanded = BASE.twist(counted_wheel_speeds(DRIVER, DRIVER.mecanum().wheel_speeds(FORWARD)))
    np.testing.assert_allclose(plant.wheel_speeds, BASE.wheel_speeds(commanded), rtol=1e-5)
    np.testing.assert_allclose(BASE.slip(plant.wheel_speeds), 0.0, atol=1e-9)
    assert plant.twist[0] == pytest.approx(0.8 * commanded[0], rel=1e-5)


def states(truth: BaseTruth, slips: tuple[SlipEvent, ...], seconds: float = 3.0) -> np.ndarray:
    steps = busy_steps(truth, 3, seconds, slips)
    return np.array([[*plant.pose, *plant.wheel_angles, *plant.wheel_speeds] for plant in steps])


def test_an_event_changes_nothing_before_it_and_nothing_remains_of_it() -> None:
    truth = load_truth(3)
    event = SlipEvent(3, 0.4, 1.0, 1.5)
    with_event, without = states(truth, (event,)), states(truth, ())
    np.testing.assert_array_equal(with_event[:50], without[:50])
    assert np.max(np.abs(with_event[50:75] - without[50:75])) > 0.01
    plant = cruise(truth, FORWARD, 2.0, (event,))
    np.testing.assert_allclose(plant.wheel_speeds, truth.mecanum().wheel_speeds(plant.twist), atol=1e-12)


def test_a_base_at_rest_does_not_slip() -> None:
    plant = cruise(TRUTH, (0.0, 0.0, 0.0), 2.0, (SlipEvent(0, 0.9, 0.0, 2.0),))
    np.testing.assert_array_equal(plant.pose, np.zeros(3))


def test_slip_on_rollers_is_slip_beside_their_wandering() -> None:
    truth = dataclasses.replace(TRUTH, rollers=6.0)
    plant = BasePlant(truth, DRIVER, 1, slips=(SlipEvent(1, 0.2, 1.0, 9.0),))
    plant.command_twist((0.6, 0.0, 0.0))
    plant.advance(2.0)
    before, off = plant.wheel_angles, []
    for k in range(200):
        plant.advance(2.0 + (k + 1) * 0.01)
        off.append(BASE.slip(plant.wheel_speeds)[0])
    turned = plant.wheel_angles - before
    others = turned[2] + turned[3] - turned[0]  # what wheel 1 would turn on the mean pattern
    assert 1.05 < turned[1] / others < 1.0 / 0.8
    assert np.std(off) > 1e-3


def test_the_share_of_a_step_is_what_of_it_the_event_covers() -> None:
    events = (SlipEvent(0, 0.4, 0.0105, 0.0125), SlipEvent(0, 0.2, 0.0, 1.0), SlipEvent(2, 0.3, 5.0, 6.0))
    shares = lost_shares(events, 4, 0.010, 1e-3, 4)
    np.testing.assert_allclose(shares[:, 0], [0.2, 0.4, 0.2, 0.2], atol=1e-12)
    np.testing.assert_array_equal(shares[:, 1:], 0.0)


@pytest.mark.parametrize(
    ("arguments", "thing"),
    [
        ((4, 0.1, 0.0, 1.0), "wheel"),
        ((0, 1.0, 0.0, 1.0), "share"),
        ((0, 0.1, 1.0, 0.0), "end"),
        ((0, np.nan, 0, 1), "share"),
    ],
)
def test_events_that_cannot_be_are_refused(arguments: tuple, thing: str) -> None:
    with pytest.raises(InputError, match=f"{thing} of a slip event"):
        SlipEvent(*arguments)


def test_slips_that_are_no_list_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="slips: got None; expected a list of SlipEvent"):
        BasePlant(load_truth(1), load_robot().driver, 1, slips=None)  # type: ignore[arg-type]
