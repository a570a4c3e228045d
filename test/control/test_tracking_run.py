"""A tracking run: what it takes over, from where it follows it, and why it ends; without ROS and without a clock."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from response_runs import ROBOT
from tracking_runs import informed

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.tracking_run import RunSettings, TrackingRun
from youbot_dynamics.control.trajectory import Program, Trajectory
from youbot_dynamics.control.wheel_commands import BaseDriver, CommanderSettings
from youbot_dynamics.errors import InputError, TrajectoryError
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot

PERIOD = 0.02
PATH = Trajectory([0.0, 2.0], [[0.0, 0.0, 0.0], [0.4, 0.0, 0.0]])
TURNED = np.array([1.0, 2.0, np.pi / 2.0])


def run_at(pose: np.ndarray, stamp: float = 10.0) -> TrackingRun:
    run = TrackingRun(ROBOT, TrackerSettings(), RunSettings(), odom="/odom")
    run.take_odometry(stamp, stamp, pose)
    return run


def test_a_relative_trajectory_begins_where_the_base_stands_when_its_first_command_is_due() -> None:
    run = run_at(np.zeros(3))
    start = run.earliest_start(10.0)
    run.accept(PATH, start, 10.0, relative=True)
    assert run.active and not run.following
    waiting = run.step(10.0 + PERIOD)
    assert waiting is not None and waiting.state is None and not np.any(waiting.twist)
    run.take_odometry(start, start, TURNED)
    first = run.step(start)
    assert first is not None and first.state is not None and run.following
    np.testing.assert_allclose(first.state.error, 0.0, atol=1e-9)
    moment = start + 1.0
    run.take_odometry(moment, moment, TURNED + [0.0, 0.2, 0.0])
    later = run.step(moment)
    assert later is not None and later.state is not None
    np.testing.assert_allclose(later.state.error, 0.0, atol=1e-9)


def test_commands_begin_a_dead_time_before_the_motion_they_are_to_cause() -> None:
    robot = informed(1, 6)
    run = TrackingRun(robot)
    first_command = 11.0 - float(robot.base.driven().dead_times.max())
    assert first_command < 10.9
    run.take_odometry(10.0, 10.0, np.zeros(3))
    run.accept(PATH, 11.0, 10.0, relative=True)
    for moment, due in ((first_command - 2.0 * PERIOD, False), (first_command, True)):
        run.take_odometry(moment, moment, np.zeros(3))
        run.step(moment)
        assert run.following is due


def test_a_trajectory_that_is_followed_to_its_end_is_over() -> None:
    run = run_at(np.zeros(3))
    run.accept(PATH, 10.0, 10.0, relative=False)
    states = []
    for k in range(250):
        moment = 10.0 + PERIOD * k
        run.take_odometry(moment, moment, PATH.pose(moment - 10.0))
        command = run.step(moment)
        if command is None:
            break
        states.append(command.state)
    assert not run.active and command is None
    assert states[-1] is not None and states[-1].finished
    assert len(states) * PERIOD > PATH.duration - 1.0


@pytest.mark.parametrize(("gain", "told"), [(1.0, False), (0.97, False), (0.85, True), (1.15, True)])
def test_a_base_that_moves_otherwise_than_it_was_identified_is_told(gain: float, told: bool) -> None:
    robot = informed(1, 6)
    run = TrackingRun(robot)
    run.take_odometry(10.0, 10.0, np.zeros(3))
    path = Trajectory([0.0, 12.0], [[0.0, 0.0, 0.0], [2.4, 0.0, 0.0]])
    start = run.earliest_start(10.0)
    run.accept(path, start, 10.0, relative=False)
    sent, times, said = [], [], ""
    for k in range(350):
        moment = 10.0 + PERIOD * k
        pose = run.model.path(times, gain * np.array(sent), [moment])[0] if sent else np.zeros(3)
        run.take_odometry(moment, moment, pose)
        command = run.step(moment)
        assert command is not None and not command.given_up
        sent.append(command.twist)
        times.append(moment)
        said = command.unusual
    assert command.state is not None and command.state.gain == pytest.approx(gain, abs=0.03)
    assert bool(said) is told


def test_the_wheels_are_judged_by_the_speeds_that_were_sent() -> None:
    run = run_at(np.zeros(3))
    run.accept(PATH, 10.0, 10.0, relative=False)
    said, moment = "", 10.0
    while not said and moment < 11.0:
        assert run.take_sent(moment, moment, np.zeros(3), np.full(4, 3.0)) == ""
        said = run.take_wheels(moment, [0.0] * 4)
        moment += PERIOD
    assert said.startswith("no wheel follows its command") and not run.active


@pytest.mark.parametrize(
    ("start", "now", "relative", "said"),
    [
        (7.0, 10.0, False, "an end 1.00 s ago"),
        (10.5, 10.6, False, "no recent message on /odom"),
        (9.9, 10.0, True, "a start 0.10 s ago"),
    ],
)
def test_what_is_refused_leaves_the_running_one_as_it_is(start: float, now: float, relative: bool, said: str) -> None:
    run = run_at(np.zeros(3))
    run.accept(PATH, 10.0, 10.0, relative=False)
    run.step(10.0)
    with pytest.raises(TrajectoryError, match=said):
        run.accept(PATH, start, now, relative)
    assert run.following


def test_it_ends_once_and_says_why() -> None:
    run = run_at(np.zeros(3))
    assert run.end("cancelled") == ""
    assert run.step(10.0) is None
    run.accept(PATH, 10.0, 10.0, relative=False)
    assert run.end("cancelled") == "cancelled" and not run.active
    run.accept(PATH, 10.0, 10.0, relative=False)
    run.step(10.0)
    silent = run.step(10.0 + 0.5 + PERIOD + 1e-3)
    assert silent is not None and silent.given_up == "/odom stopped: no new message arrived" and not run.active
    run.accept(PATH, 10.0, 10.0, relative=False)
    assert run.take_clock(0.0, 10.0) == "" and run.take_clock(1.0, 15.0) == "the clock jumped ahead by 4.00 s"
    run.accept(PATH, 10.0, 10.0, relative=False)
    run.take_odometry(10.02, 10.02, [0.0, 0.6, 0.0])
    off = run.step(10.04)
    assert off is not None and off.given_up.startswith("the base is 0.60 m and 0.00 rad off its path")
    assert not np.any(off.twist) and off.state is None


@pytest.mark.parametrize("wild", [np.nan, np.inf, 1e308])
def test_a_pose_that_is_not_finite_or_beyond_every_trajectory_is_no_pose(wild: float) -> None:
    run = run_at(TURNED)
    assert run.take_odometry(10.1, 10.1, [wild, 0.0, 0.0]) == ""
    assert run.pose_stamp == 10.0
    np.testing.assert_array_equal(run.pose, TURNED)


@pytest.mark.filterwarnings("error")
def test_a_line_that_is_seen_farther_than_any_trajectory_leads_moves_no_path() -> None:
    run = TrackingRun(ROBOT, TrackerSettings(tracker="lq"))
    run.take_odometry(10.0, 10.0, np.zeros(3))
    run.accept(PATH, 10.1, 10.0, relative=True)
    for k in range(20):
        moment = 10.0 + k * PERIOD
        run.take_odometry(moment, moment, np.zeros(3))
        run.take_line(moment, 1e308)
        command = run.step(moment + PERIOD)
        assert command is not None and not command.given_up and np.all(np.abs(command.twist) < 1.0)
    assert run.following


def test_rollers_are_reckoned_with_as_long_as_their_phases_hold() -> None:
    robot = informed(1, 6)
    base = BaseDriver(robot, CommanderSettings())
    base.commander.offer("operator", [0.3, 0.0, 0.0], 0.0)
    for k in range(5):
        assert base.take_wheels(PERIOD * k, np.zeros(4)) == ""
        command = base.step(PERIOD * k, PERIOD * k)
    assert command is not None
    assert np.max(np.abs(command.rolling_speeds - command.wheel_speeds)) > 1e-4
    assert base.take_wheels(0.12, np.full(4, 40.0)) == "the wheel counts jumped"
    command = base.step(0.12, 0.12)
    assert command is not None
    np.testing.assert_array_equal(command.rolling_speeds, command.wheel_speeds)


def test_phases_found_while_driving_are_previewed_and_refused_where_nobody_looks_for_them() -> None:
    robot = ROBOT
    base = BaseDriver(robot, CommanderSettings(), find_phases=True)
    base.commander.offer("operator", [0.0, 0.3, 0.0], 0.0)
    asked = []
    for k in range(10):
        base.take_wheels(PERIOD * k, np.zeros(4))
        command = base.step(PERIOD * k, PERIOD * k)
        assert command is not None
        asked.append(float(np.max(np.abs(command.rolling_speeds - command.wheel_speeds))))
        if k == 4:
            base.take_phases(np.array([0.1, -0.4, 0.3, 0.05]))
    assert max(asked[:5]) == 0.0 and asked[-1] > 1e-4
    with pytest.raises(InputError, match="find_phases"):
        BaseDriver(robot, CommanderSettings()).take_phases(np.zeros(4))


def test_without_roller_phases_the_base_driver_does_without_the_compiler() -> None:
    """It is the 60 MB that the node base_controller need not have."""
    code = (
        "import sys\n"
        "from youbot_dynamics.control.wheel_commands import BaseDriver, CommanderSettings\n"
        "from youbot_dynamics.robot import load_robot\n"
        "robot = load_robot()\n"
        "base = BaseDriver(robot, CommanderSettings())\n"
        "base.commander.offer('tracker', [0.1, 0.0, 0.0], 0.0)\n"
        "base.take_wheels(0.0, [0.0] * 4)\n"
        "assert base.step(0.0, 0.0) is not None\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_base_that_cannot_move_sideways_is_not_corrected_and_other_controllers_are_named() -> None:
    robot = load_robot(robot_file=robot_path("turtlebot3_burger"))

    def accepts(trajectory: Trajectory, feedback: bool) -> None:
        run = TrackingRun(robot, TrackerSettings(feedback=feedback), RunSettings())
        run.take_odometry(10.0, 10.0, np.zeros(3))
        run.accept(trajectory, run.earliest_start(10.0), 10.0, relative=True)

    with pytest.raises(TrajectoryError, match=r"feedback false, which .*Nav2's regulated pure pursuit or MPPI"):
        accepts(PATH, feedback=True)
    accepts(PATH, feedback=False)
    turn = np.linspace(0.0, 3.0, 31)
    arc = Trajectory(4.0 * turn, np.column_stack([0.5 * np.sin(turn), 0.5 * (1.0 - np.cos(turn)), turn]))
    accepts(arc, feedback=False)
    aside = Trajectory([0.0, 4.0], [[0.0, 0.0, 0.0], [0.3, 0.2, 0.0]])
    with pytest.raises(TrajectoryError, match=r"got 0\.2 m sideways; expected none.*pure pursuit or MPPI"):
        accepts(aside, feedback=False)


def test_a_base_that_cannot_move_sideways_is_sent_nothing_sideways_by_what_lies_between_points_of_a_path() -> None:
    """The base controller warned that it drops a part of the commands, during motions of this package."""
    robot, times = load_robot(robot_file=robot_path("turtlebot3_burger")), np.arange(0.0, 8.0, PERIOD)
    twists = np.column_stack([0.1 * np.sin(times), 0.0 * times, 0.4 * np.sin(1.7 * times)])
    fine = Program("turns", twists, PERIOD).trajectory()
    run, sent = TrackingRun(robot, TrackerSettings(feedback=False), RunSettings()), []
    run.take_odometry(10.0, 10.0, np.zeros(3))
    run.accept(Trajectory(fine.times[::5], fine.poses[::5]), run.earliest_start(10.0), 10.0, relative=True)
    for k in range(200):
        run.take_odometry(10.0 + k * PERIOD, 10.0 + k * PERIOD, np.zeros(3))
        command = run.step(10.0 + k * PERIOD)
        assert command is not None and not command.given_up
        sent.append(command.twist)
    assert np.any(sent) and not np.any(np.array(sent)[:, 1])
