"""Drive until it is narrow enough: wishes, the choice of stretches, their motion, and simulated robots without DDS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from acceptance_bags import base_motion
from command_line import exit_code
from stage_bags import ROBOT
from stretch_runs import PERIOD, StretchRun

from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import ParameterError, ProgramError, RecordingError
from youbot_dynamics.identification.calibration._findings import FINDINGS as GEOMETRY
from youbot_dynamics.identification.delay.stage import EFFECTIVE
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.until_narrow import (
    AXES,
    Bounds,
    Drive,
    Next,
    Wished,
    check_signals,
    drive_until,
    free_axes,
    plan,
    read_wish,
    stretch,
    time_of,
)
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import load_robot

BASE = ROBOT.base
WISH = "delay 2 %, radius 0.1 %"
OUT = ("--out", "drive_1")
RADIUS = GEOMETRY.row("wheel_radius")
DRIVEN = [Drive("x", 10.0), Drive("y", 5.0), Drive("yaw", 5.0), Drive("x", 5.0, 0.8), Drive("y", 5.0, 0.8)]  # 60 s


def seen(wished: Wished, share: float, kind: Kind | None = None) -> Wished:
    """A wished value whose interval is that share of it wide to either side."""
    row = RADIUS if wished.name == "radius" else EFFECTIVE.at(axis=wished.axis)
    reason = None if kind is None else Reason(kind, "the test says so")
    one = Estimate(row.key, row.unit, 2.0, share, (2.0 * (1.0 - share), 2.0 * (1.0 + share)), reason)
    return wished.with_findings([Finding(row, one)])


def test_a_wish_is_one_share_for_each_value_that_the_base_has():
    wished = read_wish(" delay 2 %,radius .1%, lever 1 %", BASE)
    assert [(one.name, one.axis, one.most) for one in wished] == [
        *(("delay", axis, pytest.approx(0.02)) for axis in ("x", "y", "yaw")),
        ("radius", "x", pytest.approx(0.001)),
        ("lever", "yaw", pytest.approx(0.01)),
    ]
    differential = load_robot(robot_file=robot_path("turtlebot3_burger")).base
    assert [one.axis for one in read_wish("delay 2 %", differential)] == ["x", "yaw"]
    assert [one.keys for one in read_wish("track 1 %", differential)] == [("track",)]


@pytest.mark.parametrize(
    ("robot_file", "lacking", "names"),
    [
        ("turtlebot3_burger", "lateral", "delay, radius, lever, track;"),
        ("robotino_2", "lateral", "delay, radius, lever;"),  # the factor is of slanted rollers
        ("rosbot_xl", "track", "delay, radius, lever, lateral;"),
    ],
)
def test_a_wish_for_what_the_base_lacks_is_refused_with_the_names_that_it_has(robot_file, lacking, names):
    with pytest.raises(ParameterError, match=f"{names}.* this base has no {lacking}"):
        read_wish(f"delay 2 %, {lacking} 1 %", load_robot(robot_file=robot_path(robot_file)).base)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("radus 1 %", "did you mean radius?"),
        ("radius 0.1", "got 'radius 0.1'; expected NAME NUMBER %"),
        ("delay 2 ms", "got 'delay 2 ms'"),
        ("delay 2 %, delay 1 %", "each NAME once"),
        ("delay 0 %", "--until delay: got 0 %; expected 0.001 to 50 %"),
        ("", "got ''"),
    ],
)
def test_a_wish_that_is_not_understood_is_refused_before_a_robot_is_looked_for(capsys, wish, expected):
    assert exit_code("play", "excitation", "--until", wish, "--out", "drive_1") == 1
    error = capsys.readouterr().err
    assert expected in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("combined", "--until", WISH, *OUT), "--until: got the program combined; expected excitation"),
        (("excitation", "--until", WISH, *OUT, "--write", "drive.txt"), "--until: got --write too"),
        (("excitation", "--until", WISH, *OUT, "--duration", "5"), "--duration: got 5 s"),
        (("excitation", "--until", WISH, *OUT, "--room", "0.1"), "--room: got 0.1 m"),
        (("excitation", "--pose-topic", "/pose"), "--pose-topic: got no --until"),
        (("excitation", *OUT), "--out: got no --until"),
        (("excitation", "--until", WISH), "--until: got no --out"),
        (("excitation", "--until", WISH, "--out", str(Path(__file__).parent)), "which is not empty"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(capsys, words, expected):
    assert exit_code("play", *words) == 1
    assert expected in capsys.readouterr().err


def test_the_value_farthest_from_its_wish_gets_the_motion_that_shows_it():
    x, y, yaw = read_wish("delay 2 %", BASE)
    following = plan([seen(x, 0.01), seen(y, 0.03), seen(yaw, 0.015)], DRIVEN, 600.0, AXES)
    assert following.next is Next.DRIVE and {(drive.axis, drive.turn) for drive in following.drives} == {("y", 0.0)}
    # The half-width falls with the square root of the time: 1.5 times too wide needs 2.25 times the time.
    assert following.left == pytest.approx(20.0 * (1.5**2 - 1.0))
    (radius,) = read_wish("radius 0.1 %", BASE)
    following = plan([seen(radius, 0.0015), seen(y, 0.021)], DRIVEN, 600.0, AXES)
    assert following.left == pytest.approx(20.0 * (1.5**2 - 1.0)) and all(drive.turn for drive in following.drives)
    both = plan([seen(radius, 0.0011), seen(y, 0.03)], DRIVEN, 600.0, AXES).drives
    assert {bool(drive.turn) for drive in both} == {True, False} and {drive.axis for drive in both} == {"x", "y"}


def test_arcs_turn_to_both_sides_in_turn():
    (radius,) = read_wish("radius 0.1 %", BASE)
    first = plan([radius], [], 600.0, AXES).drives
    turns = [drive.turn for drive in first if drive.axis == "x"]
    assert sum(turns) == 0.0 and {drive.axis for drive in first} == {"x", "y"}
    third = plan([seen(radius, 0.0011)], first, 600.0, AXES).drives
    fourth = plan([seen(radius, 0.0011)], [*first, *third], 600.0, AXES).drives
    assert third[0].turn == -fourth[0].turn != 0.0


def test_the_delay_in_yaw_of_two_wheels_is_that_of_a_turn_on_the_spot_too():
    base = load_robot(robot_file=robot_path("turtlebot3_burger")).base
    wished, axes = read_wish(WISH, base), free_axes(base)
    first = plan(wished, [], 600.0, axes).drives
    assert [drive.turn for drive in first if drive.axis == "yaw"] == [0.0]
    radius = wished[-1]
    for following in (
        plan([radius], [], 600.0, axes),
        plan([seen(radius, 0.0011)], first, 600.0, axes),
        plan(read_wish(WISH, BASE), [], 600.0, AXES),
    ):
        assert following.drives and "yaw" not in {drive.axis for drive in following.drives}


def test_a_wish_is_met_only_by_identified_values():
    (radius,) = read_wish("radius 0.1 %", BASE)
    assert plan([seen(radius, 0.0009)], DRIVEN, 600.0, AXES).next is Next.MET
    assert plan([seen(radius, 0.0009, Kind.NOT_EXCITED)], DRIVEN, 600.0, AXES).next is Next.DRIVE
    for kind in (Kind.WRONG_SIGNALS, Kind.NOT_OF_THE_ROBOT):
        assert plan([seen(radius, 0.0009, kind)], DRIVEN, 600.0, AXES).next is Next.NOT_OBSERVABLE
    assert plan([radius], [], 600.0, AXES).next is Next.DRIVE


def test_a_wish_that_takes_too_long_ends_the_drive_but_not_by_the_first_intervals():
    (radius,) = read_wish("radius 0.1 %", BASE)
    following = plan([seen(radius, 0.01)], DRIVEN, 600.0, AXES)
    assert following.next is Next.TOO_SLOW and following.left > 600.0
    assert plan([seen(radius, 0.01)], DRIVEN[:-1], 600.0, AXES).next is Next.DRIVE
    assert plan([radius], DRIVEN, 60.0, AXES).next is Next.TOO_SLOW


def test_an_early_interval_asks_for_no_long_stretch():
    (radius,) = read_wish("radius 0.1 %", BASE)
    following = plan([seen(radius, 0.05)], DRIVEN, 1e6, AXES)
    assert 0.0 < time_of(following.drives) <= 0.5 * time_of(DRIVEN)


@pytest.mark.parametrize(("room", "scale"), [(1.0, 1.0), (0.3, 1.0), (2.0, 1.5)])
@pytest.mark.parametrize("robot_file", ["", "turtlebot3_burger", "robotino_2"])
def test_a_stretch_ends_at_rest_where_it_began_and_stays_in_the_room(robot_file, room, scale):
    base = load_robot(robot_file=robot_path(robot_file)).base if robot_file else BASE
    axes = free_axes(base)
    drives = [*plan(read_wish(WISH, base), [], 600.0, axes).drives, *(Drive(axis, 2.6) for axis in axes)]
    program = stretch(drives, base, Bounds(600.0, room, 0.02, scale))
    poses = program.trajectory().poses
    np.testing.assert_allclose(poses[-1], poses[0], atol=1e-9)
    assert not program.twists[-1].any() and np.abs(poses[:, :2]).max() <= room * 1.001
    # A robot that is slow needs less room; the youBot uses half of it at least.
    assert robot_file or np.abs(poses[:, 0]).max() > 0.5 * min(room, 1.0)
    program.check(base)


def test_bounds_out_of_range_are_refused():
    with pytest.raises(ProgramError, match="--room"):
        Bounds(600.0, 50.0)


def test_after_an_interruption_nothing_is_driven_or_fitted():
    wished, calls = read_wish(WISH, BASE), []

    def drive(program: Program) -> bool:
        calls.append("drive")
        return len(calls) < 3

    def see() -> Sequence[Wished]:
        calls.append("see")
        return wished

    assert drive_until(wished, BASE, Bounds(600.0), drive, see) is None
    assert calls == ["drive", "see", "drive"]
    assert drive_until(wished, BASE, Bounds(600.0), lambda program: True, lambda: None) is None


def test_a_simulated_robot_drives_until_its_intervals_are_narrow_and_they_hold(tmp_path):
    run, wished, lines = StretchRun(1, tmp_path), read_wish("delay 0.6 %, radius 0.03 %", BASE), []
    ended = drive_until(wished, BASE, Bounds(600.0), run.drive, run.seeing(wished), lines.append)
    assert ended is not None and ended.next is Next.MET
    assert len(lines) == len(run.stretches) > 1, "the first stretch is not enough for this wish"
    assert "; next " in lines[0] and lines[-1].endswith("the wish is met")
    true = run.truths()
    for one in run.seeing(wished)():
        assert one.met and one.finding is not None
        low, high = one.finding.estimate.interval
        assert low <= true[one.finding.name] <= high
    poses = np.array(run.poses)
    assert np.abs(poses[:, :2]).max() < 1.1
    assert np.hypot(*poses[-1, :2]) < 0.3, "it came back, as far as a robot does without a tracker"


def test_a_wish_beyond_reach_says_when_it_would_be_met(tmp_path):
    run, wished, lines = StretchRun(1, tmp_path), read_wish("radius 0.01 %", BASE), []
    ended = drive_until(wished, BASE, Bounds(120.0), run.drive, run.seeing(wished), lines.append)
    assert ended is not None and ended.next is Next.TOO_SLOW
    assert sum(program.duration for program in run.stretches) < 120.0
    assert "s: it takes about" in lines[-1] and "at most 120 s are allowed" in lines[-1]


def test_a_robot_without_poses_is_refused_before_it_moves(tmp_path):
    run = StretchRun(1, tmp_path, poses=False)
    run.drive(Program("rest", np.zeros((50, 3)), PERIOD))
    check_signals(run.bag(), ROBOT, read_wish("delay 2 %", BASE), Options())
    with pytest.raises(RecordingError, match="no topic with poses besides odometry"):
        check_signals(run.bag(), ROBOT, read_wish(WISH, BASE), Options())


def test_another_robot_than_that_of_the_robot_file_is_refused_before_it_moves(tmp_path):
    run, other = StretchRun(1, tmp_path), replace(load_robot(robot_file=robot_path("rosbot_xl")), robot_id="youbot")
    run.drive(Program("rest", np.zeros((50, 3)), PERIOD))
    with pytest.raises(RecordingError, match="got joints wheel_joint_fl.* expected .* fl_wheel_joint.* --robot-file"):
        check_signals(run.bag(), other, read_wish("delay 2 %", other.base), Options())


@pytest.mark.slow
def test_twenty_robots_are_known_sooner_than_by_the_fixed_excitation(tmp_path):
    """The fixed excitation lasts 60 s, whatever is wished."""
    times, held = [], []
    for seed in range(100, 120):
        run, wished = StretchRun(seed, tmp_path / str(seed)), read_wish(WISH, BASE)
        ended = drive_until(wished, BASE, Bounds(600.0), run.drive, run.seeing(wished))
        assert ended is not None
        times.append(run.time if ended.next is Next.MET else math.inf)
        true = run.truths()
        for one in run.seeing(wished)():
            low, high = one.finding.estimate.interval if one.finding else (math.nan, math.nan)
            held.append(one.finding is not None and low <= true[one.finding.name] <= high)
        poses = np.array(run.poses)
        assert np.abs(poses[:, :2]).max() < 1.1
    assert np.isfinite(times).sum() >= 19
    assert np.median(times) <= 0.6 * base_motion(60.0).shape[0] * PERIOD
    assert len(held) == 80 and sum(held) >= 72, "stopping when it is narrow must not select lucky intervals"
