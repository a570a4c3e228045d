"""Calibration with a tape measure: exact where readings are, intervals that hold, refusals with reasons."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from named_findings import named_estimates
from scipy.stats import binom
from stage_bags import nanoseconds, write_rows

from youbot_dynamics.commands.main import main
from youbot_dynamics.errors import InputError, ModelError, RecordingError
from youbot_dynamics.identification.calibration import (
    TapeLeg,
    calibrate_by_tape,
    read_distance,
    read_turn,
    recorded_legs,
    standstill,
    tape_findings,
    tape_program,
)
from youbot_dynamics.identification.calibration._tape import FORWARD, SIDEWAYS, TURN
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.recording.message_types import joint_state_cdr
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

ROBOT = load_robot()
BASE = ROBOT.base.geometry.mecanum()
TRUE = MecanumBase.rectangular(0.0483, 0.23, 0.152, 0.949)
WAYS = {FORWARD: (0.3, 0.0, 0.0), SIDEWAYS: (0.0, 0.3, 0.0), TURN: (0.0, 0.0, 0.8)}
ERRORS = {FORWARD: 0.002, SIDEWAYS: 0.002, TURN: np.radians(1.0)}


@pytest.mark.parametrize(
    ("text", "metres"),
    [
        ("1.512", 1.512),
        (" 151.2 cm ", 1.512),
        ("1512mm", 1.512),
        ("48.25 in", 1.22555),
        ('48.25"', 1.22555),
        ("5ft", 1.524),
    ],
)
def test_a_distance_is_read_with_its_unit(text, metres):
    assert read_distance(text) == pytest.approx(metres, rel=1e-12)


@pytest.mark.parametrize("text", ["", "0", "-1", "1,512", "1.5 kg", "nan", "inf", "1e400", "1.5 m 2"])
def test_what_is_no_distance_is_refused(text):
    with pytest.raises(InputError, match="metres or a unit"):
        read_distance(text)


@pytest.mark.parametrize(("text", "degrees"), [("1074", 1074), ("1074 deg", 1074), ("3 -6", 1074), ("-1 -3.5", -363.5)])
def test_a_turn_is_read_in_degrees_or_as_turns_and_degrees(text, degrees):
    assert np.degrees(read_turn(text)) == pytest.approx(degrees, rel=1e-12)


@pytest.mark.parametrize("text", ["", "3", "1.5 0", "3 turns", "3 4 5", "3 400", "nan"])
def test_what_is_no_turn_or_may_be_a_number_of_turns_is_refused(text):
    with pytest.raises(InputError, match="such as 1074, or whole turns"):
        read_turn(text)


VALUES = ("wheel_radius", "lever", "lateral_factor")


def leg(kind: str, base: MecanumBase = TRUE, seconds: float = 5.0, off: float = 0.0) -> TapeLeg:
    """A leg of a base that moves just as its wheels say, read with an error."""
    twist = np.array(WAYS[kind])
    angles = np.linspace(0.0, seconds, 200)[:, None] * base.wheel_speeds(twist)
    return TapeLeg(kind, angles, float(np.linalg.norm(twist)) * seconds + off, ERRORS[kind])


def lever_of(base: MecanumBase) -> float:
    return float(np.mean(np.abs(base.inverse_matrix[:, 2]) * base.radii))


def true_values(base: MecanumBase) -> np.ndarray:
    return np.array([np.mean(base.radii), lever_of(base), base.lateral_factor])


def test_exact_readings_give_the_exact_base():
    found = calibrate_by_tape([leg(kind) for kind in WAYS], BASE)
    assert [found[name].verdict for name in VALUES] == ["identified"] * 3
    np.testing.assert_allclose([found[name].value for name in VALUES], true_values(TRUE), rtol=1e-9)
    np.testing.assert_allclose(found.base.forward_matrix, TRUE.forward_matrix, rtol=1e-6, atol=1e-9)


def test_omni_wheels_need_no_leg_forward_and_have_no_lateral_factor():
    angles = np.radians([150.0, 270.0, 30.0])
    configured = MecanumBase.omni_circle(0.04, 0.13, angles, np.zeros(3))
    true = MecanumBase.omni_circle(0.0407, 0.133, angles, np.zeros(3))
    found = calibrate_by_tape([leg(SIDEWAYS, true), leg(TURN, true)], configured)
    assert found["wheel_radius"].value == pytest.approx(0.0407, rel=1e-9)
    assert found["lever"].value == pytest.approx(0.133, rel=1e-9)
    assert "omni wheels have none" in found["lateral_factor"].verdict
    robot = load_robot(robot_file=robot_path("robotino_2"))
    true = robot.base.geometry.mecanum()
    findings = tape_findings([leg(FORWARD, true), leg(SIDEWAYS, true), leg(TURN, true)], robot)
    asked = [one.row.key for one in findings if one.is_parameter and not one.row.folded]
    assert "wheel_distance" in asked and "lateral_factor" not in asked  # or the program would end with an error


def test_a_differential_base_needs_a_leg_forward_and_turns_and_none_sideways():
    robot, true = load_robot(robot_file=robot_path("turtlebot3_burger")), MecanumBase.differential(0.0325, 0.164)
    found = {one.name: one for one in tape_findings([leg(FORWARD, true), leg(TURN, true)], robot)}
    assert found["robot.base.geometry.wheel_radius"].estimate.value == pytest.approx(0.0325, rel=1e-9)
    assert found["robot.base.geometry.track"].estimate.value == pytest.approx(0.164, rel=1e-9)
    assert all(one.identified for one in found.values()) and len(found) == 2
    with pytest.raises(InputError, match="leg 1: .* expected a straight motion sideways"):
        tape_findings([leg(SIDEWAYS, true)], robot)


def test_an_error_of_a_reading_shows_in_the_interval():
    exact, off = (calibrate_by_tape([leg(FORWARD, off=one)], BASE)["wheel_radius"] for one in (0.0, 0.003))
    share = 0.003 / 1.5
    assert off.value / exact.value == pytest.approx(1.0 + share, rel=1e-6)
    # 2 mm, the rollers' 0.5 mm and creep of 0.0004 of 1.5 m.
    error = np.sqrt(0.002**2 + 0.0005**2 + (0.0004 * 1.5) ** 2) / 1.5
    assert exact.standard_error / exact.value == pytest.approx(error, rel=1e-3)


@pytest.mark.parametrize(
    ("kinds", "known", "words"),
    [
        ((TURN,), (), "no leg forward"),
        ((SIDEWAYS, TURN), (), "no leg forward"),
        ((FORWARD,), ("wheel_radius",), "no (turn|leg sideways) was measured"),
        ((FORWARD, TURN), ("wheel_radius", "lever"), "no leg sideways"),
        ((FORWARD, SIDEWAYS), ("wheel_radius", "lateral_factor"), "no turn"),
    ],
)
def test_what_was_not_measured_stays_unknown_with_the_reason(kinds, known, words):
    found = calibrate_by_tape([leg(kind) for kind in kinds], BASE)
    assert tuple(name for name in VALUES if found[name].identified) == known
    for name in set(VALUES) - set(known):
        np.testing.assert_equal(found[name].value, np.nan)
        assert re.search(words, found[name].verdict)


def test_radii_of_single_wheels_and_the_halves_of_the_lever_are_never_claimed():
    found = calibrate_by_tape([leg(kind) for kind in WAYS], BASE)
    named = named_estimates(found, ROBOT.base.geometry)
    assert not any("wheel_radius_" in name for name in named)
    halves = [named[f"robot.base.geometry.half_{part}"] for part in ("length", "width")]
    assert not any(half.identified for half in halves)
    factor = found["lateral_factor"].value
    assert halves[0].value / factor + halves[1].value == pytest.approx(found["lever"].value, rel=1e-9)


def test_readings_that_contradict_each_other_are_refused():
    legs = [leg(kind) for kind in WAYS]
    found = calibrate_by_tape([*legs, leg(FORWARD, off=0.05)], BASE)
    assert not any(found[name].identified for name in VALUES)
    assert "contradict each other" in found["wheel_radius"].verdict
    np.testing.assert_array_equal(found.base.inverse_matrix, BASE.inverse_matrix)
    again = calibrate_by_tape([*legs, leg(FORWARD, off=0.002)], BASE)
    assert again["wheel_radius"].standard_error < 0.8 * calibrate_by_tape(legs, BASE)["wheel_radius"].standard_error


@pytest.mark.parametrize(("factor", "unit"), [(100.0, "centimetres"), (39.37, "inches"), (1000.0, "millimetres")])
def test_a_reading_in_another_unit_is_refused_with_the_unit_it_may_have(factor: float, unit: str):
    wrong = dataclasses.replace(leg(SIDEWAYS, seconds=3.0), measured=0.9 * factor)
    with pytest.raises(InputError, match=f"leg 2: .*about 0.89.* m, as the wheels rolled.*were these {unit}"):
        calibrate_by_tape([leg(FORWARD), wrong], BASE)


def test_a_turn_in_radians_is_refused_as_such():
    one = leg(TURN)
    with pytest.raises(InputError, match="leg 1: got a reading of 4 degrees turn; .*were these radians"):
        calibrate_by_tape([dataclasses.replace(one, measured=np.radians(one.measured))], BASE)


def test_readings_forward_and_sideways_that_were_exchanged_are_refused():
    forward, sideways = leg(FORWARD, seconds=5.0), leg(SIDEWAYS, seconds=5.0 * TRUE.lateral_factor)
    right = calibrate_by_tape([forward, sideways], BASE)
    assert right["lateral_factor"].identified
    exchanged = [
        dataclasses.replace(forward, measured=sideways.measured),
        dataclasses.replace(sideways, measured=forward.measured),
    ]
    found = calibrate_by_tape(exchanged, BASE)
    assert not any(estimate.identified for estimate in found.estimates)
    assert "forward and sideways were exchanged" in found["lateral_factor"].verdict


def test_numbers_that_no_leg_can_have_are_refused():
    for change, words in (
        ({"kind": "diagonal"}, "kind of a leg: got diagonal"),
        ({"measured": -1.0}, "measured forward: got -1"),
        ({"error": 0.0}, "error of the measured forward: got 0"),
        ({"measured": 1e308}, "measured forward: got 1e.308; expected .* at most 1000 .m"),
        ({"error": 1e308}, "error of the measured forward: got 1e.308; expected .* at most 1000 .m"),
        ({"error": 1e-320}, "error of the measured forward: got .*; expected .* at least 1e-06"),
        ({"wheel_angles": np.zeros((1, 4))}, "expected at least 2"),
    ):
        with pytest.raises((InputError, ModelError), match=words):
            dataclasses.replace(leg(FORWARD), **change)
    with pytest.raises(InputError, match="legs: got wheels no leg"):
        calibrate_by_tape([], BASE)


def test_the_program_of_a_leg_ends_where_it_should_and_keeps_the_limits():
    for kind, amount in ((FORWARD, 1.5), (SIDEWAYS, -1.0), (TURN, 4.0 * np.pi)):
        program = tape_program(kind, amount, ROBOT.base, 0.02)
        program.check(ROBOT.base)
        end = program.trajectory().poses[-1]
        expected = amount * np.array([kind == FORWARD, kind == SIDEWAYS, kind == TURN], dtype=float)
        np.testing.assert_allclose(end, expected, atol=1e-9)
        # From rest to rest at 0.3 m/s or 0.8 rad/s, with half of the largest acceleration.
        speeds = np.abs(program.twists).sum(axis=1)
        assert speeds.max() == pytest.approx(0.8 if kind == TURN else 0.3, rel=0.02)
        limits = ROBOT.base.limits
        fastest = limits.angular_acceleration if kind == TURN else limits.acceleration
        changes = np.abs(np.diff([0.0, *speeds, 0.0])) / 0.02
        assert changes.max() == pytest.approx(0.5 * fastest, rel=0.03)


def measured_leg(kind: str, amount: float, truth: BaseTruth, robot: Robot, random: np.random.Generator) -> TapeLeg:
    """A leg of the twin, open loop, with readings of 2 mm and 1 degree."""
    plant = BasePlant(truth, robot.driver, int(random.integers(2**31)))
    ours, driver = robot.base.geometry.mecanum(), robot.driver.mecanum()
    readings = [plant.read().position]
    twists = tape_program(kind, amount, robot.base, 0.02).twists
    for k, twist in enumerate(np.vstack([twists, np.zeros((75, 3))])):
        plant.command_twist(driver.twist(ours.wheel_speeds(twist)))
        plant.advance((k + 1) * 0.02)
        readings.append(plant.read().position)
    angles = np.array(readings) * np.array(robot.driver.position_sign)
    x, y, yaw = plant.pose
    read = (yaw if kind == TURN else np.hypot(x, y)) + ERRORS[kind] * random.standard_normal()
    return TapeLeg(kind, angles, float(read), ERRORS[kind])


def held(name: str | None, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Whether each interval of each twin holds its truth, and the errors in own standard errors."""
    inside, off = [], []
    file = None if name is None else robot_path(name)
    robot = load_robot(robot_file=file)
    for seed in seeds:
        truth, random = load_truth(seed, file), np.random.default_rng([seed, 11])
        plan = ((FORWARD, 1.5), (SIDEWAYS, 1.5), (TURN, 6.0 * np.pi))
        found = calibrate_by_tape(
            [measured_leg(kind, amount, truth, robot, random) for kind, amount in plan], robot.base.geometry.mecanum()
        )
        known = [found[value] for value in VALUES if found[value].identified]
        true = true_values(truth.mecanum())[: len(known)]
        inside.append([one.interval[0] <= value <= one.interval[1] for one, value in zip(known, true, strict=True)])
        off.append([(one.value - value) / one.standard_error for one, value in zip(known, true, strict=True)])
    return np.array(inside), np.array(off)


def recorded(folder, plan: tuple[tuple[str, float], ...], rest: float = 2.0, begin: float = 0.0, end: float = np.inf):
    """Bag of the legs of a twin whose geometry is known, with a rest between them, and what lies in an interval."""
    truth = load_truth(2).with_geometry(ROBOT.base.geometry)
    plant, driver = BasePlant(truth, ROBOT.driver, 5), ROBOT.driver
    still, between = (np.zeros((round(time / 0.02), 3)) for time in (2.0, rest))
    twists = np.vstack([still, *(part for kind, amount in plan for part in (_twists(kind, amount), between)), still])
    rows = []
    for k, twist in enumerate(twists):
        plant.command_twist(driver.mecanum().twist(ROBOT.base.geometry.mecanum().wheel_speeds(twist)))
        plant.advance((k + 1) * 0.02)
        reading = plant.read()
        data = joint_state_cdr(nanoseconds(reading.stamp), driver.wheel_joints, reading.position, reading.velocity)
        if begin <= k * 0.02 <= end:
            rows.append(((k + 1) * 0.02, "/driver/joint_states", data))
    return write_rows(folder, rows)


def _twists(kind: str, amount: float) -> np.ndarray:
    return tape_program(kind, amount, ROBOT.base, 0.02).twists


@pytest.mark.parametrize("part", [{"begin": 3.0}, {"end": 15.0}])
def test_a_motion_that_is_cut_off_is_no_leg(tmp_path, part):
    bag = recorded(tmp_path / "legs", ((FORWARD, 1.0), (SIDEWAYS, 1.0), (TURN, 2.0 * np.pi)), **part)
    with pytest.raises(RecordingError, match="got 2 whole legs between"):
        recorded_legs(open_bag(bag), ROBOT, 3)


@pytest.mark.parametrize(
    ("twists", "kind"),
    [
        (((0.0, 0.0, 0.8),), FORWARD),
        (((0.3, 0.0, 0.0),), SIDEWAYS),
        (((0.0, 0.3, 0.0),), TURN),
        (((0.3, 0.0, 0.0), (0.0, 0.3, 0.0)), FORWARD),  # round a corner
        (((0.3, 0.0, 0.0), (-0.15, 0.0, 0.0)), FORWARD),  # there and half of the way back
        (((0.0, 0.0, -0.8),), TURN),  # to the other side than was measured
    ],
)
def test_wheels_that_show_another_motion_than_was_measured_are_refused(twists, kind):
    """Any of them would give some radius or lever."""
    steps = np.vstack([np.full((200, 3), twist) for twist in twists]) * 0.025
    odd = TapeLeg(kind, np.cumsum(steps @ TRUE.inverse_matrix.T, axis=0), 1.5, ERRORS[kind])
    expected = "a turn of 86 degrees on the spot" if kind == TURN else f"a straight motion {kind}"
    with pytest.raises(InputError, match=f"leg 3: got wheels that end .* expected {expected}"):
        calibrate_by_tape([*(leg(other) for other in WAYS if other != kind), odd], BASE)


@pytest.mark.parametrize("name", [None, "robotino_2", "rosbot_xl"])
def test_legs_backward_and_to_the_right_are_legs_and_exchanged_wheels_are_none(name):
    base = load_robot(robot_file=robot_path(name) if name else None).base.geometry.mecanum()
    ways = {FORWARD: (-0.3, 0.0, 0.0), SIDEWAYS: (0.0, -0.3, 0.0), TURN: (0.0, 0.0, -0.8)}
    times = np.linspace(0.0, 5.0, 200)[:, None]
    legs = [
        TapeLeg(kind, times * base.wheel_speeds(twist), -4.0 if kind == TURN else 1.5, ERRORS[kind])
        for kind, twist in ways.items()
    ]
    found = calibrate_by_tape(legs, base)
    assert found["wheel_radius"].identified and found["lever"].identified
    order = [1, 0, *range(2, len(base.radii))]
    exchanged = [dataclasses.replace(one, wheel_angles=one.wheel_angles[:, order]) for one in legs]
    reversed_rear = np.where(np.arange(len(base.radii)) < 2, 1.0, -1.0)
    turned = [dataclasses.replace(one, wheel_angles=one.wheel_angles * reversed_rear) for one in legs]
    for wrong in (exchanged, turned):
        with pytest.raises(InputError, match="order and signs of the wheels"):
            calibrate_by_tape(wrong, base)


def test_wheels_stand_by_what_was_read_and_not_while_readings_are_missing():
    time = np.arange(0.0, 5.0, 0.02)
    angles = np.column_stack(4 * [np.clip(time, 1.0, 3.0)])
    assert standstill(time, angles) == pytest.approx(2.0, abs=0.15)
    assert standstill(time[:51], angles[:51]) == pytest.approx(1.0, abs=0.05)
    known = (time < 1.0) | (time > 4.5)  # lost while they turned
    assert standstill(time[known], angles[known]) == pytest.approx(0.5, abs=0.05)
    assert standstill(time[:1], angles[:1]) == standstill(time[:0], angles[:0]) == 0.0


def test_legs_of_a_recording_are_what_lies_between_two_rests(tmp_path, capsys):
    bag = recorded(tmp_path / "legs", ((FORWARD, 1.0), (SIDEWAYS, 1.0), (TURN, 2.0 * np.pi)))
    legs = recorded_legs(open_bag(bag), ROBOT, 3)
    ways = [BASE.twist(angles[-1] - angles[0]) for angles in legs]
    np.testing.assert_allclose(ways, np.diag([1.0, 1.0, 2.0 * np.pi]), atol=0.02)
    # Each begins and ends at rest, a moment before and after its motion.
    assert all(np.ptp(angles[part], axis=0).max() < 0.01 for angles in legs for part in (slice(10), slice(-10, None)))
    with pytest.raises(RecordingError, match="got 3 whole legs between rests of 1 s; expected 2"):
        recorded_legs(open_bag(bag), ROBOT, 2)
    words = ["calibrate", "--tape", "--bag", str(bag), "--forward", "1.0", "--sideways", "1.0", "--turn", "360"]
    with pytest.raises(SystemExit) as end:
        main([*words, "--write", str(tmp_path / "geometry.yaml")])
    assert end.value.code == 0
    known = load_robot(tmp_path / "geometry.yaml").base.geometry
    assert known.wheel_radius == pytest.approx(0.0475, rel=0.01)
    assert known.lateral_factor == pytest.approx(0.955, rel=0.01)
    assert lever_of(known.mecanum()) == pytest.approx(lever_of(BASE), rel=0.02)
    assert "the radius is the mean of the wheels" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main([*words, "--write", str(tmp_path / "geometry.yaml")])
    assert end.value.code == 1 and "name another one, or add --overwrite" in capsys.readouterr().err
    one = recorded(tmp_path / "one", ((FORWARD, 1.0),))
    with pytest.raises(SystemExit) as end:
        main([*words[:3], str(one), "--forward", "1.0"])
    assert end.value.code == 3  # without a leg sideways and turns, much stays unknown


@pytest.mark.slow
@pytest.mark.parametrize("name", [None, "robotino_2"])
def test_intervals_hold_on_drawn_twins_with_readings_of_2_mm_and_1_degree(name):
    inside, off = held(name, range(1, 201) if name is None else range(1, 61))
    print(name or "youbot", 100.0 * inside.mean(axis=0), off.mean(axis=0), off.std(axis=0))
    low, high = binom.interval(0.998, len(inside), 0.95)
    assert np.all(inside.sum(axis=0) >= low) and np.all(inside.sum(axis=0) <= high)
    if name is None:
        assert np.all((inside.mean(axis=0) >= 0.90) & (inside.mean(axis=0) <= 0.99))


def test_a_twin_is_calibrated_within_its_intervals():
    inside, off = held(None, range(3, 5))
    assert np.all(np.abs(off) < 4.0) and inside.shape == (2, 3)


def test_the_path_of_a_leg_bends_no_reading():
    """A base that turns a little on its way: the tape shows the chord, and so does the model."""
    twist = np.array([0.3, 0.0, 0.02])
    end = planar.exponential(5.0 * twist)
    angles = np.linspace(0.0, 5.0, 200)[:, None] * TRUE.wheel_speeds(twist)
    bent = TapeLeg(FORWARD, angles, float(np.hypot(end[0], end[1])), 0.002)
    straight_and_turn = [bent, leg(SIDEWAYS), leg(TURN)]
    found = calibrate_by_tape(straight_and_turn, BASE)
    assert found["wheel_radius"].value == pytest.approx(0.0483, rel=1e-9)
