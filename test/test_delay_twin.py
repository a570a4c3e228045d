"""The effective delay on the twin, whose truth the estimator never sees: error and honesty of the interval."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from delay_runs import calibrated_truth, drive_open_loop, estimates, true_delays

from youbot_dynamics.control.program import Program, read_program
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import load_robot

RUNS = 200
ROBOT = load_robot()


def program(name: str) -> Program:
    return read_program(program_path(name), 0.02)


def report(title: str, errors: np.ndarray, inside: np.ndarray) -> None:
    worst = 1e3 * np.abs(errors).max(axis=0)
    print(f"\n{title}: coverage x, y, yaw {inside.mean(axis=0)}, worst error [ms] {np.round(worst, 2)}")


def within(run_estimates, truth) -> list[bool]:
    return [e.interval[0] <= t <= e.interval[1] for e, t in zip(run_estimates, truth, strict=True)]


def test_with_friction_the_interval_holds_the_noise_free_shift_of_the_run():
    errors, inside = [], []
    for seed in range(1, RUNS + 1):
        truth = calibrated_truth(seed)
        found = estimates(drive_open_loop(program("combined"), ROBOT, truth, seed), ROBOT)
        shift = true_delays(drive_open_loop(program("combined"), ROBOT, truth.without_noise(), seed))
        assert all(estimate.identified for estimate in found), found
        errors.append([estimate.value - true for estimate, true in zip(found, shift, strict=True)])
        inside.append(within(found, shift))
    errors, inside = np.array(errors), np.array(inside)
    report("with friction", errors, inside)
    assert np.abs(errors).max() <= 5e-3
    assert np.all((inside.mean(axis=0) >= 0.90) & (inside.mean(axis=0) <= 0.99))


def test_without_friction_the_interval_holds_dead_time_plus_lag():
    errors, inside = [], []
    for seed in range(1, RUNS + 1):
        truth = calibrated_truth(seed)
        found = estimates(drive_open_loop(program("combined"), ROBOT, truth.without_friction(), seed), ROBOT)
        total = np.array(truth.dead_times()) + truth.lag
        errors.append([estimate.value - true for estimate, true in zip(found, total, strict=True)])
        inside.append(within(found, total))
    errors, inside = np.array(errors), np.array(inside)
    report("without friction", errors, inside)
    assert np.abs(errors).max() <= 5e-3
    assert np.all((inside.mean(axis=0) >= 0.90) & (inside.mean(axis=0) <= 0.99))


@pytest.mark.parametrize("dead_times", [(0.05, 0.05, 0.05), (0.30, 0.30, 0.30), (0.05, 0.30, 0.15)])
def test_each_axis_keeps_its_own_delay_at_the_ends_of_the_range(dead_times):
    truth = dataclasses.replace(
        calibrated_truth(0).without_friction(),
        dead_time_x=dead_times[0],
        dead_time_y=dead_times[1],
        dead_time_yaw=dead_times[2],
    )
    found = estimates(drive_open_loop(program("combined"), ROBOT, truth, 5), ROBOT)
    assert [e.value for e in found] == pytest.approx(np.array(dead_times) + truth.lag, abs=2e-3)


def test_axes_that_do_not_move_are_not_identifiable():
    found = estimates(drive_open_loop(program("translation"), ROBOT, calibrated_truth(1), 1), ROBOT)
    assert [e.identified for e in found] == [True, True, False]
    assert found[2].verdict == "not identifiable: the command never changed"


def test_constant_velocity_is_refused_although_the_base_moves():
    steady = Program("steady", np.tile([0.1, -0.05, 0.1], (1000, 1)), 0.02)
    run = drive_open_loop(steady, ROBOT, calibrated_truth(1), 1)
    keep = slice(200, 900)
    run = dataclasses.replace(
        run,
        command_time=run.command_time[keep],
        twist=run.twist[keep],
        wheel_speeds=run.wheel_speeds[keep],
        stamps=run.stamps[keep],
        positions=run.positions[keep],
    )
    found = estimates(run, ROBOT)
    assert not any(e.identified for e in found)
    assert all("never changed" in e.verdict for e in found)
