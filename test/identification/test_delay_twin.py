"""The effective delay on the twin, whose truth the estimator never sees: error and honesty of the interval."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from delay_runs import calibrated_truth, drive_open_loop, estimates, ramps, true_delays
from response_runs import with_own_loops

from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.truth import BaseTruth

RUNS = 200
ROBOT = load_robot()


def program(name: str) -> Program:
    return read_program(program_path(name), 0.02)


def report(title: str, errors: np.ndarray, inside: np.ndarray) -> None:
    worst = 1e3 * np.abs(errors).max(axis=0)
    print(f"\n{title}: coverage x, y, yaw {inside.mean(axis=0)}, worst error [ms] {np.round(worst, 2)}")


def within(run_estimates, truth) -> list[bool]:
    return [e.interval[0] <= t <= e.interval[1] for e, t in zip(run_estimates, truth, strict=True)]


def drawn(seed: int, friction: bool) -> BaseTruth:
    """Drawn robot, or one that answers by dead time and lag and nothing else."""
    truth = calibrated_truth(seed)
    return truth if friction else with_own_loops(truth).without_friction()


def judge_delays(runs: int, friction: bool) -> tuple[np.ndarray, np.ndarray]:
    """Errors (runs, 3) [s] and whether the intervals hold the truth (runs, 3), of x, y, yaw.

    With friction the truth is the noise-free shift of the run; without it, on the twin's own loops, dead time plus lag.
    """
    errors, inside = [], []
    for seed in range(1, runs + 1):
        truth = drawn(seed, friction)
        found = estimates(drive_open_loop(program("combined"), ROBOT, truth, seed), ROBOT)
        shift = np.array(truth.dead_times()) + truth.lag
        if friction:
            shift = true_delays(drive_open_loop(program("combined"), ROBOT, truth.without_noise(), seed))
        assert all(estimate.identified for estimate in found), found
        errors.append([estimate.value - true for estimate, true in zip(found, shift, strict=True)])
        inside.append(within(found, shift))
    report(f"{'with' if friction else 'without'} friction", np.array(errors), np.array(inside))
    return np.array(errors), np.array(inside)


@pytest.mark.parametrize("friction", [False, True])
def test_the_interval_holds_the_effective_delay_of_a_few_robots(friction):
    errors, inside = judge_delays(3, friction)
    assert np.abs(errors).max() <= 5e-3
    assert inside.mean() >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("friction", [False, True])
def test_the_interval_holds_the_effective_delay_of_two_hundred_robots(friction):
    errors, inside = judge_delays(RUNS, friction)
    assert np.abs(errors).max() <= 5e-3
    assert np.all((inside.mean(axis=0) >= 0.90) & (inside.mean(axis=0) <= 0.99))


def judge_parts(name: str, runs: int, friction: bool) -> tuple[float, float]:
    """Shares of dead times and lags inside their intervals, and within 3 standard errors; of the worse of the two.

    On the twin's own loops: a servo on each wheel answers by more than one lag.
    """
    inside, near, identified, errors = [], [], [], []
    for seed in range(1, runs + 1):
        truth = with_own_loops(drawn(seed, friction))
        drive = ramps(seed) if name == "ramps" else program(name)
        found = estimates(drive_open_loop(drive, ROBOT, truth, seed), ROBOT, "fopdt")
        for estimate, dead_time in zip(found, truth.dead_times(), strict=True):
            parts = ((estimate.dead_time, dead_time), (estimate.lag, truth.lag))
            inside.append([part.interval[0] <= true <= part.interval[1] for part, true in parts])
            near.append([abs(part.value - true) <= 3.0 * part.standard_error for part, true in parts])
            identified.append([part.identified for part, _ in parts])
            errors.append([1e3 * abs(part.value - true) for part, true in parts])
    inside, near, told = np.array(inside), np.array(near), np.array(identified)
    print(f"\n{name}, {'with' if friction else 'without'} friction; of dead time and lag:")
    median = np.median(errors, axis=0)
    print(f"identified {told.mean(axis=0)}, median error [ms] {median}, worst {np.max(errors, axis=0)}")
    for k, part in enumerate(("dead time", "lag")):
        for which, rows in (("all", np.ones(len(told), bool)), ("identified", told[:, k])):
            if rows.any():
                print(f"{part}, {which}: coverage {inside[rows, k].mean():.3f}, within 3 {near[rows, k].mean():.3f}")
    return float(inside.mean(axis=0).min()), float(near.mean(axis=0).min())


@pytest.mark.parametrize("friction", [False, True])
def test_dead_time_and_lag_of_ramps_lie_within_their_errors(friction):
    inside, near = judge_parts("ramps", 2, friction)
    assert inside >= 0.9 and near >= 0.97


def test_dead_time_and_lag_of_servos_on_each_wheel_are_refused():
    for seed in (1, 2):  # a P and a PI servo
        found = estimates(drive_open_loop(ramps(seed), ROBOT, calibrated_truth(seed), seed), ROBOT, "fopdt")
        assert not any(one.dead_time.identified or one.lag.identified for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("friction", [False, True])
@pytest.mark.parametrize("name", ["ramps", "combined"])
def test_dead_time_and_lag_of_two_hundred_robots_lie_within_their_errors(name, friction):
    inside, near = judge_parts(name, RUNS, friction)
    assert inside >= 0.9 and near >= 0.97


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
    both = estimates(run, ROBOT, "fopdt")
    assert not any(e.dead_time.identified or e.lag.identified for e in both)
