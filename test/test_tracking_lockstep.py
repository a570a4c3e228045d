"""Stabilised against open loop on the lock-step twin, delays identified from another drive."""

from __future__ import annotations

import numpy as np
import pytest
from delay_runs import calibrated_truth, drive_open_loop, estimates

from youbot_dynamics.control.program import read_program
from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.identification.comparison import error_statistics, path_errors, sample_poses
from youbot_dynamics.identification.pipeline import with_delays
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base_only import BaseOnly
from youbot_dynamics.simulation.scenario import drive, identified_model

PROGRAMS = ("translation", "rotation", "combined")
ROBOT = load_robot()
OPEN_LOOP = TrackerSettings(feedback=False)


def trajectory(name):
    return read_program(program_path(name), 0.02).trajectory()


def statistics(drive):
    """Errors against ground truth over the whole program."""
    time = np.arange(0.0, drive.desired.duration + 1e-9, 0.02)
    desired = np.array([drive.desired.pose(moment) for moment in time])
    return error_statistics(path_errors(sample_poses(drive.reading_time - drive.start, drive.true_pose, time), desired))


def identified(truth, seed):
    program = read_program(program_path("combined"), 0.02)
    return with_delays(ROBOT, estimates(drive_open_loop(program, ROBOT, truth, seed), ROBOT))


def run(trajectory, robot, truth, seed, *settings):
    return drive(trajectory, robot, BaseOnly(truth, robot.driver, seed), seed, *settings)


def check(seed: int, name: str) -> None:
    truth = calibrated_truth(seed)
    robot = identified(truth, seed)
    before = statistics(run(trajectory(name), ROBOT, truth, seed + 1000, OPEN_LOOP))
    after = statistics(run(trajectory(name), robot, truth, seed + 1000))
    print(
        f"\nseed {seed} {name}: position {1e3 * before.position_rmse:.2f} -> {1e3 * after.position_rmse:.2f} mm, "
        f"heading {1e3 * before.heading_rmse:.2f} -> {1e3 * after.heading_rmse:.2f} mrad"
    )
    assert after.position_rmse <= max(before.position_rmse / 8.0, 2e-3)
    assert after.heading_rmse <= max(before.heading_rmse / 8.0, 2e-3)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_feedback_cuts_the_error_to_an_eighth(seed, name):
    check(seed, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("seed", range(4, 30))
def test_feedback_cuts_the_error_to_an_eighth_on_many_robots(seed, name):
    check(seed, name)


def test_preview_alone_removes_the_delay_of_a_robot_without_friction():
    truth = calibrated_truth(3).without_friction().without_noise()
    robot = with_delays(
        ROBOT, estimates(drive_open_loop(read_program(program_path("combined"), 0.02), ROBOT, truth, 3), ROBOT)
    )
    late = statistics(run(trajectory("combined"), ROBOT, truth, 3, OPEN_LOOP))
    compensated = statistics(run(trajectory("combined"), robot, truth, 3, OPEN_LOOP))
    assert late.position_rmse > 0.03
    assert compensated.position_rmse < 1e-3


def test_equal_seeds_give_equal_bits_and_other_seeds_do_not():
    first, again, other = (run(trajectory("combined"), ROBOT, calibrated_truth(2), seed) for seed in (5, 5, 6))
    assert np.array_equal(first.true_pose, again.true_pose)
    assert [m.report.stamp for m in first.messages] == [m.report.stamp for m in again.messages]
    assert not np.array_equal(first.true_pose, other.true_pose)


def test_feedback_recovers_from_a_wrong_delay():
    truth = calibrated_truth(0)
    wrong = with_delays(ROBOT, [])
    after = statistics(run(trajectory("combined"), wrong, truth, 1))
    before = statistics(run(trajectory("combined"), wrong, truth, 1, OPEN_LOOP))
    assert after.position_rmse < before.position_rmse


def test_the_identified_model_tracks_like_the_twin_it_was_identified_from():
    truth = calibrated_truth(2)
    robot = identified(truth, 2)
    simulated = statistics(run(trajectory("combined"), robot, identified_model(robot), 0))
    assert simulated.position_rmse < 2e-3
    assert simulated.heading_rmse < 2e-3
