"""Robots whose wheels have speed servos of other families than the twin's own, driven by what one drive tells.

Families, drawn by the seed (`with_servo`): a P servo on each wheel of 1.5 to 8 N m s/rad, the same with an integral of
0.03 to 0.5 s reset time, loops that know the inertia; Coulomb friction of 0.03 to 0.15 N m.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from delay_runs import calibrated_truth
from response_runs import (
    PROGRAMS,
    drive_program,
    errors_of,
    excitation,
    response_of,
    with_response,
    with_servo,
)
from tracking_runs import drive_in_mujoco, identified_in_mujoco
from tracking_runs import errors_of as contact_errors_of

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.identification.response._unknowns import HIGH, LOW, UNKNOWNS
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.truth import BaseTruth

# Standard deviations asked for, x and y [mm], yaw [mrad].
ASKED = {"translation": (0.5, 0.5, 0.4), "rotation": (0.3, 0.3, 0.8), "combined": (0.6, 0.6, 0.8)}
MEAN = 0.4


def steady(seed: int) -> BaseTruth:
    """Drawn robot on drawn servos, without the torque that wanders."""
    return dataclasses.replace(with_servo(calibrated_truth(seed), seed), torque_noise=0.0)


def identified(truth: BaseTruth, seed: int) -> Robot:
    return with_response(*response_of(excitation(), truth, seed))


def check_twin(seed: int) -> None:
    truth = steady(seed)
    robot = identified(truth, seed + 1000)
    for law in ("pid", "lq"):
        for name in PROGRAMS:
            errors = 1e3 * errors_of(drive_program(name, robot, truth, seed + 2000, TrackerSettings(tracker=law)))
            print(f"\n{seed} {law} {name}: std {errors.std(axis=0).round(3)} mean {errors.mean(axis=0).round(3)}")
            assert np.all(errors.std(axis=0) <= ASKED[name]), (law, name)
            assert np.all(np.abs(errors.mean(axis=0)) <= MEAN), (law, name)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_robot_of_each_family_is_held_to_half_a_millimetre(seed: int) -> None:
    check_twin(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 10))
def test_ten_robots_of_all_families_are_held_to_half_a_millimetre(seed: int) -> None:
    check_twin(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_drawn_servos_are_tracked_on_contact_physics(seed: int) -> None:
    robot = identified_in_mujoco(seed, 6, servo=True).robot
    for law in ("pid", "lq"):
        for name in PROGRAMS:
            settings = TrackerSettings(tracker=law)
            run = drive_in_mujoco(name, robot, seed, 6, settings=settings, interface="wheels", servo=True)
            errors = 1e3 * contact_errors_of(run).truth
            print(f"\n{seed} {law} {name}: std {errors.std(axis=0).round(3)} mean {errors.mean(axis=0).round(3)}")
            # 0.3 mm are asked for in the rotation and means of 0.4: docs/tracking.md says what is missed, and why.
            assert np.all(errors.std(axis=0) <= np.maximum(ASKED[name], 0.5)), (law, name)
            assert np.all(np.abs(errors.mean(axis=0)) <= 0.8), (law, name)


def test_p_servos_turn_as_commanded_once_their_droop_is_known() -> None:
    """Fitted as PI loops, a droop of 0.1 rad/s of the wheels left 5 mrad in the rotation."""
    truth = dataclasses.replace(steady(3), servo_gain=1.5, servo_reset=0.0, wheel_coulomb=0.15)
    robot = identified(truth, 3)
    assert robot.base.response.feed == 0.0 and robot.base.response.integral == 0.0
    response = dataclasses.replace(robot.base.response, integral=1.0)
    blind = dataclasses.replace(robot, base=dataclasses.replace(robot.base, response=response))
    known, unknown = (
        1e3 * errors_of(drive_program("rotation", one, truth, 5)).std(axis=0)[2] for one in (robot, blind)
    )
    assert known < 0.2 and unknown > 1.5


def ordinary(name: str) -> Program:
    """A drive that nobody made for identification."""
    return read_program(program_path(name), 0.02)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_an_ordinary_drive_gives_no_absurd_response(name: str, seed: int) -> None:
    """They gave turn factors of 0.1 and centres of mass 0.3 m ahead, both at the end of the search."""
    found, _ = response_of(ordinary(name), with_servo(calibrated_truth(seed), seed), seed)
    for k, unknown in enumerate(UNKNOWNS):
        one = found[unknown.name]
        nil = one.value == 0.0 and not one.identified
        assert np.isnan(one.value) or nil or LOW[k] < one.value < HIGH[k], unknown.name
    values = {one.name: one.value for one in found.estimates}
    if np.isfinite(values["turn_factor"]):
        assert 0.4 < values["turn_factor"] < 2.5
    if np.isfinite(values["centre_x"]):
        assert abs(values["centre_x"]) < 0.1
