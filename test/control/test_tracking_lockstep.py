"""Stabilised drives on the lock-step twin, with a response identified from another drive; ground truth judges."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from delay_runs import PERIOD, calibrated_truth
from response_runs import PROGRAMS, ROBOT, drive_program, errors_of, excitation, response_of, with_response
from tracking_runs import knowing

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Trajectory, read_program
from youbot_dynamics.dynamics.driven_base import DrivenBase
from youbot_dynamics.identification.comparison import error_statistics
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.scenario import drive, identified_model
from youbot_dynamics.simulation.truth import BaseTruth
from youbot_dynamics.simulation.youbot import BaseOnly

OPEN_LOOP = TrackerSettings(feedback=False)


def identified(truth: BaseTruth, seed: int) -> Robot:
    """Our robot with what one drive of 60 s told."""
    response, delays = response_of(excitation(), truth, seed)
    assert response.usable
    return with_response(response, delays)


def check(seed: int) -> None:
    """The lab's feedback reached 0.0075 m and 0.002-0.004 rad: ten times better, means included.

    Wandering torque of the rolling wheels, within half a second of dead time and lag, is what remains: on a robot
    without it the errors are below 0.1 mm, 0.1 mrad. It also leaves a mean of up to 0.12 mrad in one drive of seed 4,
    with the twin's own response, which changes its sign between drives: a mean over three drives, each with torques of
    its own, tells what the controller leaves.
    """
    truth = calibrated_truth(seed)
    robot = identified(truth, seed)
    means = []
    for k, name in enumerate(PROGRAMS):
        errors = errors_of(drive_program(name, robot, truth, seed + 1000 * (k + 1)))
        means.append(errors.mean(axis=0))
        deviation = errors.std(axis=0)
        print(f"\nseed {seed} {name}: deviation {1e3 * deviation} mean {1e3 * means[-1]} [mm, mm, mrad]")
        assert np.all(deviation <= 0.0003)
    assert np.all(np.abs(np.mean(means, axis=0)) <= 0.0001)


@pytest.mark.parametrize("seed", [1])
def test_tracking_beats_the_lab_by_ten(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 6, 7, 8, 9])
def test_tracking_beats_the_lab_by_ten_on_many_robots(seed: int) -> None:
    check(seed)


class SaggingBase(BaseOnly):
    """A base whose battery sags evenly by a share over `span` [s]; its wheels turn as much slower for a command."""

    def __init__(self, truth: BaseTruth, seed: int, share: float, span: float) -> None:
        super().__init__(truth, ROBOT.driver, seed)
        command = self.base.command_twist

        def weaker(twist: np.ndarray, time: float | None = None) -> None:
            command((1.0 - share * min(1.0, self.base.time / span)) * np.asarray(twist), time)

        self.base.command_twist = weaker  # type: ignore[method-assign]


# Deviations [m, m, rad] of `combined` without the gain that is learned.
UNCORRECTED = {"pid": [0.00288, 0.00491, 0.00274], "lq": [0.00443, 0.00767, 0.00429]}


@pytest.mark.parametrize("law", ["pid", "lq"])
def test_a_battery_that_sags_by_a_tenth_costs_less_than_half_of_what_it_did_and_is_told(law: str) -> None:
    truth = calibrated_truth(1)
    robot, path = identified(truth, 1), read_program(program_path("combined"), PERIOD).trajectory()
    settings = TrackerSettings(tracker=law)
    run = drive(path, robot, SaggingBase(truth, 1001, 0.1, path.duration), 1001, settings)
    deviation = errors_of(run).std(axis=0)
    print(f"\n{law}: deviation {1e3 * deviation} [mm, mm, mrad], gain {run.tracker_requests[-1].state.gain:.3f}")
    assert np.all(deviation < 0.5 * np.array(UNCORRECTED[law]))
    assert run.tracker_requests[-1].state.gain == pytest.approx(0.9, abs=0.02)
    usual = drive(path, robot, BaseOnly(truth, ROBOT.driver, 1001), 1001, settings)
    assert {request.state.gain for request in usual.tracker_requests} == {1.0}


def exact(truth: BaseTruth) -> Robot:
    """Our robot with the twin's own response."""
    robot = knowing(ROBOT, truth)
    return dataclasses.replace(robot, base=dataclasses.replace(robot.base, centre_of_mass=(0.0, 0.0)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_left_is_the_wandering_friction(name: str) -> None:
    truth = calibrated_truth(1).without_noise()
    errors = errors_of(drive_program(name, exact(truth), truth, 1))
    assert np.all(errors.std(axis=0) < [5e-5, 5e-5, 1.5e-4])


def test_the_model_without_feedback_already_removes_delay_lag_and_friction() -> None:
    truth = calibrated_truth(1).without_noise()
    known, unknown = (
        error_statistics(errors_of(drive_program("combined", robot, truth, 1, OPEN_LOOP)))
        for robot in (exact(truth), ROBOT)
    )
    assert unknown.position_rmse > 0.03
    assert known.position_rmse < 1e-3


FAST = [("pid", 1.5, 0.5), ("lq", 1.5, 1.5)]
CORNERS = pytest.mark.parametrize(
    "law, delay_share, gain_share",
    [
        pytest.param(law, delay, gain, marks=[] if (law, delay, gain) in FAST else [pytest.mark.slow])
        for law in ("pid", "lq")
        for delay in (0.5, 1.5)
        for gain in (0.5, 1.5)
    ],
)


def corner(delay_share: float, gain_share: float) -> tuple[BaseTruth, Robot]:
    """A robot whose dead times and whose motion for a command are not those that were identified, by these shares."""
    truth = calibrated_truth(0)
    robot = exact(truth)
    felt = robot.base.response
    wrong = {f"dead_time_{axis}": getattr(felt, f"dead_time_{axis}") / delay_share for axis in ("x", "y", "yaw")}
    base = dataclasses.replace(robot.base, response=dataclasses.replace(felt, **wrong))
    # Twists are folded for the driver with its radius: a wrong one makes all its motions larger or smaller.
    driver = dataclasses.replace(robot.driver, wheel_radius=robot.driver.wheel_radius / gain_share)
    return truth, dataclasses.replace(robot, base=base, driver=driver)


@CORNERS
def test_with_delay_and_gain_wrong_by_half_it_still_returns_to_its_path(
    law: str, delay_share: float, gain_share: float
) -> None:
    truth, robot = corner(delay_share, gain_share)
    aside = Trajectory([0.0, 20.0], [[0.03, -0.03, 0.05]] * 2)
    run = drive(aside, robot, BaseOnly(truth, ROBOT.driver, 1), 1, TrackerSettings(tracker=law))
    errors = errors_of(run)
    swing = [np.ptp(errors[begin : begin + 250], axis=0) for begin in (0, 250, 500, 750)]
    print(
        f"\n{law}, delay x {delay_share}, gain x {gain_share}: swings {1e3 * np.array(swing).round(5)} [mm, mm, mrad]"
    )
    assert np.all(swing[-1] <= [0.002, 0.002, 0.004])
    assert np.all(np.abs(errors[-100:]) <= [0.003, 0.003, 0.006])


@CORNERS
def test_with_delay_and_gain_wrong_by_half_the_drive_stays_bounded(
    law: str, delay_share: float, gain_share: float
) -> None:
    truth, robot = corner(delay_share, gain_share)
    errors = errors_of(drive_program("combined", robot, truth, 1, TrackerSettings(tracker=law)))
    print(
        f"\n{law}, delay x {delay_share}, gain x {gain_share}: worst {1e3 * np.abs(errors).max(axis=0)} [mm, mm, mrad]"
    )
    # Half of the feed-forward is missing or too much all the way; the LQ law answers that more slowly.
    assert np.all(np.abs(errors) < ([0.1, 0.1, 0.15] if law == "pid" else [0.12, 0.12, 0.16]))


def test_equal_seeds_give_equal_bits_and_other_seeds_do_not() -> None:
    truth = calibrated_truth(2)
    first, again, other = (drive_program("combined", ROBOT, truth, seed) for seed in (5, 5, 6))
    assert np.array_equal(first.true_pose, again.true_pose)
    assert [m.report.stamp for m in first.messages] == [m.report.stamp for m in again.messages]
    assert not np.array_equal(first.true_pose, other.true_pose)


def test_feedback_helps_where_nothing_is_identified() -> None:
    truth = calibrated_truth(0)
    after = error_statistics(errors_of(drive_program("combined", ROBOT, truth, 1)))
    before = error_statistics(errors_of(drive_program("combined", ROBOT, truth, 1, OPEN_LOOP)))
    assert after.position_rmse < before.position_rmse


def test_an_effective_delay_alone_is_made_up_for() -> None:
    truth = calibrated_truth(0)
    delay = dataclasses.replace(ROBOT.base.delay, effective_x=0.172, effective_y=0.173, effective_yaw=0.174)
    robot = dataclasses.replace(ROBOT, base=dataclasses.replace(ROBOT.base, delay=delay))
    assert isinstance(robot.base.driven(), DrivenBase) and robot.base.driven().lag == 0.0
    after = error_statistics(errors_of(drive_program("combined", robot, truth, 1)))
    before = error_statistics(errors_of(drive_program("combined", ROBOT, truth, 1, OPEN_LOOP)))
    assert after.position_rmse < before.position_rmse / 15.0


@pytest.mark.parametrize(
    ("seed", "program"),
    [(1, "rotation"), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((2, "combined"), (1, "translation")))],
)
def test_the_identified_model_tracks_like_the_twin_it_was_identified_from(seed: int, program: str) -> None:
    """Seed 1 has much friction: a model without it would be driven by what is ahead of friction that is not there."""
    robot = identified(calibrated_truth(seed), seed)
    simulated = error_statistics(errors_of(drive_program(program, robot, identified_model(robot), 0)))
    assert simulated.position_rmse < 2e-3
    assert simulated.heading_rmse < 2e-3
