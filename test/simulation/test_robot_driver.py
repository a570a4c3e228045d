"""The driver of a simulated robot and what is not fit for it: absurd, late, many and wrong commands."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from repository import ROOT
from simple_plant import DRIVER, PERIOD, ROBOT, SimplePlant

from youbot_dynamics.errors import InputError
from youbot_dynamics.simulation.arm._controller import JointTrajectory
from youbot_dynamics.simulation.base import DelayLine
from youbot_dynamics.simulation.faults import parse_faults
from youbot_dynamics.simulation.robot_driver import RobotDriver
from youbot_dynamics.simulation.truth import load_arm_truth, load_truth
from youbot_dynamics.simulation.youbot import Youbot

FASTEST_WHEEL = DRIVER.wheel_speed_limit
SIGNS = np.array(DRIVER.command_sign)
HUGE = (1e6, 1e300, 1e308)


def driver_of_twin(seed=0):
    return RobotDriver(Youbot(load_truth(seed), load_arm_truth(seed), ROBOT, 1), DRIVER, 1)


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_wheels_are_cut_each_for_itself_at_the_speed_of_the_specification():
    plant = SimplePlant()
    driver = RobotDriver(plant, DRIVER, 1)
    driver.command_wheels([1e90, -20.0, 5.0, -5.0], 0.0)
    assert plant.base.calls[-1] == ("wheels", [FASTEST_WHEEL, -FASTEST_WHEEL, 5.0, -5.0])
    driver.command_twist([0.5, 0.0, 1.5], 0.0)
    commanded = DRIVER.mecanum().wheel_speeds([0.5, 0.0, 1.5])
    assert commanded.max() > FASTEST_WHEEL > np.abs(commanded.min())
    assert plant.base.speeds == pytest.approx(np.minimum(commanded, FASTEST_WHEEL), abs=1e-12)
    # What the specification promises passes as it is, and so in whole rpm of the motors.
    driver.command_twist([0.8, 0.0, 0.0], 0.0)
    assert plant.base.calls[-1] == ("twist", [0.8, 0.0, 0.0])
    assert FASTEST_WHEEL * 0.0475 == pytest.approx(0.8, abs=1e-4)
    assert driver.refused == 0


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("axis", range(3))
def test_no_finite_twist_moves_the_twin_faster_than_its_motors(size, axis):
    driver = driver_of_twin()
    driver.command_twist(size * np.eye(3)[axis], 0.0)
    driver.advance(0.5)
    assert np.abs(driver.plant.base.wheel_speeds).max() < 1.05 * FASTEST_WHEEL
    driver.command_twist(np.zeros(3), driver.plant.time)
    driver.advance(2.5)
    driver.command_twist([0.2, 0.0, 0.0], driver.plant.time)
    driver.advance(4.5)
    assert driver.plant.base.twist == pytest.approx([0.2, 0.0, 0.0], abs=0.02)


@pytest.mark.parametrize("size", HUGE)
def test_no_finite_wheel_speeds_end_the_simulation(size):
    driver = driver_of_twin()
    for k in range(50):
        driver.command_wheels(size * SIGNS, driver.plant.time)
        driver.advance((k + 1) * PERIOD)
        driver.read()
    assert np.abs(driver.plant.base.wheel_speeds).max() < 1.05 * FASTEST_WHEEL


def test_a_twist_whose_wheels_overflow_is_refused_and_not_kept():
    plant = SimplePlant()
    driver = RobotDriver(plant, DRIVER, 1)
    driver.command_twist([1e308, 1e308, 1e308], 0.0)
    assert driver.refused == 1 and "base command" in driver.last_refusal
    driver.set_faults(parse_faults("dead_wheel joint=wheel_joint_fl", DRIVER))
    driver.advance(PERIOD)
    assert not plant.base.speeds.any()


@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("kind", ["velocities", "accelerations", "times"])
def test_absurd_trajectories_are_refused_when_they_come(kind, size):
    driver = driver_of_twin()
    rest = driver.plant.arm.position
    knots = {"velocities": np.zeros((2, 5)), "accelerations": np.zeros((2, 5))}
    times = np.array([0.0, 1.0])
    if kind == "times":
        times, knots["velocities"] = np.array([0.0, size]), np.full((2, 5), 1.0)
        knots["accelerations"] = np.full((2, 5), 1.0)
    else:
        knots[kind][0, 2] = size
    goal = np.array([rest + 0.5 * np.sign([1, 1, -1, 1, 1])] * 2)
    driver.command_arm(lambda arm, time: arm.command_trajectory(times, goal, **knots, time=time), 0.0)
    assert driver.refused == 1 and any(word in driver.last_refusal for word in ("rad/s", "at most 1e+100"))
    driver.advance(0.5)
    assert driver.plant.arm.position == pytest.approx(rest, abs=5e-3)


@pytest.mark.parametrize("call", ["command_velocities", "command_torques"])
@pytest.mark.parametrize("size", HUGE)
def test_no_finite_speeds_or_torques_of_the_arm_end_the_simulation(call, size):
    driver = driver_of_twin()
    driver.command_arm(lambda arm, time: getattr(arm, call)(np.full(5, size), time), 0.0)
    driver.advance(0.3)
    assert np.isfinite(driver.plant.arm.position).all()


def test_speeds_between_knots_are_those_of_the_pieces():
    calm = JointTrajectory(np.array([0.0, 1e-3]), np.array([[0.0], [0.99]]))
    calm.check_speeds([0.0])
    with pytest.raises(InputError, match=r"joint 1 on the way to 0\.001 s: got speeds of up to 1\.01e\+03"):
        JointTrajectory(np.array([0.0, 1e-3]), np.array([[0.0], [1.01]])).check_speeds([0.0])
    # From where it stands to the first knot, too.
    late = JointTrajectory(np.array([1e-3]), np.array([[1.0]]))
    late.check_speeds([0.1])
    with pytest.raises(InputError, match="rad/s"):
        late.check_speeds([-0.1])


def test_a_command_that_falls_due_while_the_driver_restarts_is_lost():
    plant = SimplePlant()
    driver = RobotDriver(plant, DRIVER, 1)
    driver.set_faults(parse_faults("late delay=0.1 of=commands; restart after=0.155 lasting=0.2", DRIVER))
    driver.command_twist([0.1, 0.0, 0.0], 0.052)  # due just before, in the pass that stops the base
    driver.command_twist([0.2, 0.0, 0.0], 0.1)  # due while it is deaf
    for k in range(20):
        driver.advance((k + 1) * PERIOD)
    assert plant.base.calls == [("twist", [0.1, 0.0, 0.0]), ("twist", [0.0, 0.0, 0.0])]
    assert not plant.base.speeds.any()


def test_incomplete_commands_are_counted_but_by_a_deaf_driver():
    driver = RobotDriver(SimplePlant(), DRIVER, 1)
    driver.skip("lacks joints")
    assert (driver.incomplete, driver.refused, driver.last_refusal) == (1, 0, "lacks joints")
    driver.set_faults(parse_faults("restart", DRIVER))
    driver.advance(PERIOD)
    driver.skip("another")
    assert driver.incomplete == 1


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, math.nan])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(InputError, match="seed"):
        RobotDriver(SimplePlant(), DRIVER, seed)


@pytest.mark.parametrize("time", [math.nan, math.inf, -math.inf])
def test_times_are_finite(time):
    driver, line = RobotDriver(SimplePlant(), DRIVER, 1), DelayLine([0.1])
    for call in (
        driver.advance,
        lambda time: driver.command_twist(np.zeros(3), time),
        lambda time: driver.command_wheels(np.zeros(4), time),
        lambda time: driver.command_arm(lambda arm, now: None, time),
        lambda time: line.push(time, [0.0]),
    ):
        with pytest.raises(InputError, match="^(until|.*time)"):
            call(time)


@pytest.mark.parametrize("value", [[1.0] * 3, [1.0] * 5, "fast", None, [1.0, 2.0, 3.0, math.nan]])
def test_wheel_commands_of_another_shape_are_refused(value):
    driver = driver_of_twin()
    driver.command_wheels(value, 0.0)
    assert driver.refused == 1 and "base command" in driver.last_refusal


def test_a_flood_of_commands_keeps_what_the_dead_time_still_holds_back():
    line = DelayLine([0.15])
    line.push(0.0, [0.1])
    line.means(0.0, 1e-3, 1)
    for k in range(5000):
        line.push(1.0 + 1e-5 * k, [0.1])
    assert line.means(1.0, 1e-3, 50) == pytest.approx(np.full((50, 1), 0.1), abs=1e-9)


def test_a_long_history_is_as_good_as_one_with_room_for_all(monkeypatch):
    """Bit by bit: what is forgotten was not needed any more."""
    from youbot_dynamics.simulation.base import _plant as delay_line

    short = DelayLine([0.05, 0.15])
    monkeypatch.setattr(delay_line, "_MEMORY", 1 << 15)
    long = DelayLine([0.05, 0.15])
    random = np.random.default_rng(3)
    for k in range(10_000):
        time, command = 2e-3 * k, random.normal(size=2)
        for line in (short, long):
            line.push(time, command)
        if k % 10 == 0:
            assert short.means(time, 1e-3, 20).tobytes() == long.means(time, 1e-3, 20).tobytes()
    assert len(short._times) == 4096


def test_of_commands_at_one_time_the_last_one_holds():
    line = DelayLine([0.0])
    for _ in range(10_000):
        line.push(1.0, [9.0])
    line.push(0.5, [2.0])
    assert line.means(1.0, 0.1, 2) == pytest.approx(np.full((2, 1), 2.0))
    assert len(line._times) == 4096


def test_mujoco_says_so_where_its_state_has_no_bounds():
    pytest.importorskip("mujoco")
    from youbot_dynamics.simulation.mujoco_youbot import MujocoYoubot

    robot = MujocoYoubot(load_truth(0), load_arm_truth(0), ROBOT, 1)
    driver = RobotDriver(robot, DRIVER, 1)
    driver.command_twist([1e6, 0.0, 0.0], 0.0)
    driver.advance(0.3)
    assert np.abs(robot.base.wheel_speeds).max() < 1.2 * FASTEST_WHEEL
    robot.plant.data.qvel[0] = 1e30
    with pytest.raises(InputError, match="MuJoCo"):
        driver.advance(0.4)


def test_bringup_finds_a_mujoco_that_cannot_be_imported_before_it_starts_anything(tmp_path):
    pytest.importorskip("rclpy")
    (tmp_path / "mujoco").mkdir()
    (tmp_path / "mujoco" / "__init__.py").write_text("raise RuntimeError('no OpenGL here')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "youbot_dynamics.commands.main", "bringup", "--robot", "mujoco"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "started" not in done.stderr + done.stdout
    assert "no OpenGL here" in done.stderr and len(done.stderr.splitlines()) == 1


def test_bursts_of_refusals_are_logged_once(monkeypatch):
    pytest.importorskip("rclpy")
    from youbot_dynamics.nodes import _diagnostics

    refusals, now = _diagnostics.Growth(), 0.0
    monkeypatch.setattr(_diagnostics, "time", SimpleNamespace(monotonic=lambda: now))
    counts = {0.0: 0, 1.0: 1, 1.1: 1, 1.2: 300, 6.0: 301, 10.9: 302, 16.0: 302, 16.1: 303, 17.0: 0, 30.0: 1}
    logged = []
    for now, count in counts.items():  # noqa: B020
        if refusals.update(count, pause=5.0):
            logged.append(now)
    assert logged == [1.0, 16.1, 30.0]
