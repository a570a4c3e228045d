"""Each example prints what its docstring says, and what it prints is true of the physics it shows."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from repository import ROOT

EXAMPLES = ROOT / "examples"
LONGEST = 300.0  # [s]; the first run compiles
SLOW = ("identify_and_track", "lift_a_load", "own_robot_dynamics", "stand_up")
NAMES = [
    pytest.param(path.stem, marks=pytest.mark.slow) if path.stem in SLOW else path.stem
    for path in sorted(EXAMPLES.glob("*.py"))
]
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?|#+")


@cache
def docs() -> ModuleType:
    """The script that writes the docstrings and the table of the examples."""
    spec = importlib.util.spec_from_file_location("example_docs", ROOT / "scripts" / "example_docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def printed(name: str) -> str:
    """Output of an example, run once for all tests."""
    out, wrong = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(wrong):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    # On a busy computer an example may wait for another test that compiles the same function, and says so.
    said = [line for line in wrong.getvalue().splitlines() if not line.startswith("another process compiles ")]
    assert not said
    return out.getvalue()


def number(text: str, pattern: str) -> float:
    """First number behind a text."""
    match = re.search(pattern + r"\s*(-?[\d.]+(?:e[-+]?\d+)?)", text)
    assert match, f"{pattern!r} not in {text!r}"
    return float(match[1])


def numbers(text: str, pattern: str) -> list[float]:
    """All numbers in the line behind a text."""
    match = re.search(pattern + r"(.*)", text)
    assert match, f"{pattern!r} not in {text!r}"
    return [float(found) for found in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", match[1])]


def differences(told: str, text: str) -> list[str]:
    """What differs between two outputs; the last digit of a number may differ by one, as may the length of a bar."""
    words, other_words = (" ".join(NUMBER.sub("0", output).split()) for output in (told, text))
    if words != other_words:
        return [f"{words!r} is not {other_words!r}"]
    found = []
    for one, other in zip(NUMBER.findall(told), NUMBER.findall(text), strict=True):
        a, b = (float(len(each)) if "#" in each else float(each) for each in (one, other))
        if abs(a - b) > 1.01 * 10.0 ** -len(one.partition(".")[2]):
            found.append(f"{one} is not {other}")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_docstring_says_and_leaves_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = docs().output(EXAMPLES / f"{name}.py")
    wrong = differences(told, printed(name))
    assert told and not wrong, f"scripts/example_docs.py --run {name} writes what it prints now: {wrong}"
    assert not list(tmp_path.iterdir())


def test_outputs_that_differ_are_told_apart_but_for_the_last_digit() -> None:
    assert differences("1.25 m ## a", "1.26 m   ### a") == []
    assert differences("1.25 m", "1.27 m") == ["1.25 is not 1.27"]
    assert differences("5 m", "-5 m") == ["5 is not -5"]
    assert len(differences("1.25 m", "1.25 mm")) == 1
    assert len(differences("1 2", "1")) == 1


def test_the_table_of_the_examples_is_that_of_their_docstrings() -> None:
    page = docs().page()
    assert docs().PAGE.read_text(encoding="utf-8") == page, "run scripts/example_docs.py"
    paths = list(EXAMPLES.glob("*.py"))
    assert len(paths) >= 20
    for path in paths:
        assert f"(../examples/{path.name})" in page, f"give {path.stem} a group in scripts/example_docs.py"
        assert "?" in docs().docstring(path).splitlines()[0], f"{path.stem} asks no question"


def test_an_example_runs_as_a_program_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "mecanum_odometry.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == printed("mecanum_odometry")


def test_odometry_of_a_turning_square_comes_back_to_its_start() -> None:
    off, turned = numbers(printed("mecanum_odometry"), "and one turn:")
    assert off < 0.1 and turned < 0.001  # [mm], [mrad]


@pytest.mark.slow
def test_the_weight_of_the_own_robot_is_right() -> None:
    text = printed("own_robot_dynamics")
    assert number(text, "arm level:") == pytest.approx(9.81 * (2.0 * 0.25 + 1.0 * (0.5 + 0.2)), abs=1e-3)


@pytest.mark.slow
def test_what_is_identified_makes_the_twin_track_ten_times_closer() -> None:
    text = printed("identify_and_track")
    open_loop, tracked = numbers(text, "position error:")
    assert tracked < 5.0 and open_loop > 10.0 * tracked  # [mm]
    assert 50.0 < number(text, "effective delay yaw:") < 400.0  # [ms]
    assert "result.yaml" in text


def test_the_delay_of_the_log_is_within_its_interval() -> None:
    text = printed("delay_of_a_log")
    true = numbers(text, "true: dead time")
    for part, value in (("dead_time", true[0]), ("lag", true[1])):
        assert number(text, f"{part}:") == pytest.approx(value, abs=2.0)
        low, high = number(text, rf"{part}: .* from"), number(text, rf"{part}: .* to")
        assert high - low < 10.0 and low <= value <= high, text  # one lag or nearly so: the log shows it to a few ms


def test_the_friction_in_the_csv_file_is_recovered() -> None:
    text = printed("arm_friction_from_csv")
    for part in ("coulomb", "viscous"):
        true = number(text, rf"{part}: .*\(true")
        assert number(text, f"{part}:") == pytest.approx(true, rel=0.01)
    assert "not identifiable" not in text


def test_the_motor_warms_towards_its_steady_rise() -> None:
    text = printed("motor_heat")
    first, later, last, air = numbers(text, "after 1, 5, 30 min:")
    ends = air + number(text, "the winding ends")
    assert air < first < later < last == pytest.approx(ends, abs=0.5)
    winding, housing = number(text, "the winding ends"), number(text, "the housing")
    assert winding / housing == pytest.approx((5.3 + 3.9) / 3.9, abs=0.01)  # one heat through both resistances
    assert number(text, "beyond") > 2.0  # [A]


@pytest.mark.slow
def test_the_work_of_the_lift_is_stored_or_lost_in_friction() -> None:
    text = printed("lift_a_load")
    work, stored, heat = numbers(text, "work")
    assert work == pytest.approx(stored + heat, abs=0.02)
    assert stored > 0.5 * 9.81 * number(text, "raised by")  # the links rise as well


@pytest.mark.slow
def test_the_work_of_standing_up_is_stored() -> None:
    text = printed("stand_up")
    work, stored = numbers(text, "work")
    assert work == pytest.approx(stored, abs=0.02)
    assert stored > 0.678 * 75.0 * 9.81 * number(text, "raised by")  # the legs rise as well


def test_casters_swing_round_and_the_work_becomes_motion() -> None:
    text = printed("base_with_casters")
    assert [abs(angle) for angle in numbers(text, "casters stand at")] == pytest.approx([180.0, 180.0], abs=5.0)
    work, gained, lost = numbers(text, "work of the motors")
    assert work == pytest.approx(gained + lost, abs=0.02) and 0.0 <= lost < 0.02 * work


def test_intervals_contain_what_was_hidden() -> None:
    found = 0
    for name in ("arm_friction_from_csv", "larger_wheel", "only_cmd_vel_and_odom", "tape_measure"):
        for low, high, true in re.findall(r"95 % from ([\d.]+) to ([\d.]+).*\(true ([\d.]+)\)", printed(name)):
            assert float(low) <= float(true) <= float(high), printed(name)
            found += 1
    assert found == 11


def test_three_omni_wheels_are_fastest_where_two_of_them_share_the_motion() -> None:
    text, rim = printed("omni_top_speed"), 23.56 * 0.04  # [m/s]
    slowest, _, fastest, _ = numbers(text, "slowest")
    assert (slowest, fastest) == pytest.approx((rim, rim / 0.75**0.5), abs=1e-3)
    assert number(text, "on the spot:") == pytest.approx(rim / 0.13, abs=0.01)


def test_the_way_to_rest_is_that_of_time_out_dead_time_and_braking() -> None:
    text = printed("stopping_distance")
    for speed in (0.2, 0.4, 0.6, 0.8):
        way = speed * (0.5 + 0.15) + speed**2 / (2.0 * 1.5)  # [m], without the lag of the motors
        assert way - 0.01 < number(text, f"{speed} m/s:") < way + 0.1 * speed


def test_a_gyro_keeps_the_heading_of_odometry() -> None:
    across, heading, across_with, heading_with = numbers(printed("odometry_after_ten_metres"), "after 10 m:")
    assert heading == pytest.approx(1e3 * 0.02 * 10.0**0.5, abs=1.0)  # [mrad] robot.base.drift.yaw of 0.02 rad/sqrt(m)
    assert across_with < 0.5 * across and heading_with < 0.5 * heading


def test_slip_and_a_dead_wheel_are_reported_within_half_a_second() -> None:
    assert 0.0 < number(printed("slipping_wheel"), "slip is reported") < 0.5
    assert "wheel_joint_fl" in printed("dead_wheel")
    assert 0.0 < number(printed("dead_wheel"), "given up") < 0.5


def test_the_delay_and_feedback_both_bring_the_base_nearer_to_its_path() -> None:
    ignored, compensated = (numbers(printed("late_base"), f"delay {what}:") for what in ("ignored", "compensated"))
    assert compensated[1] < compensated[0] < ignored[0] and compensated[1] < ignored[1] < ignored[0]


def test_the_reversed_encoder_is_named_and_put_right() -> None:
    text = printed("miswired_wheel")
    assert "if the readings of fl were reversed" in text and "mm, identified" in text


def test_only_the_axis_that_the_driver_delays_has_changed() -> None:
    text = printed("what_changed")
    later, error = re.search(r"effective_y: .* by \+([\d.]+) \+- ([\d.]+) ms: changed", text).groups()
    assert abs(float(later) - 25.0) < float(error) and text.count(": changed") == 1


def test_the_filter_of_the_arm_is_better_than_its_sensors_and_weighs_the_load() -> None:
    text = printed("joint_speed")
    differences_, driver, filtered = (numbers(text, what)[:5] for what in ("differences", "driver", "filter"))
    for row in zip(filtered, driver, differences_, strict=True):
        assert row[0] < row[1] < row[2]
    mass, deviation = re.search(r"after 16 s: (\d+) \+- (\d+) g", printed("payload_in_gripper")).groups()
    assert abs(float(mass) - 300.0) < 2.0 * float(deviation) < 300.0


def test_a_load_far_out_takes_the_weight_off_the_wheel_behind_it() -> None:
    text = printed("will_it_tip")
    rest, braking = (number(text, rf"arm to the left {how}: rr") for how in ("at rest", "braking"))
    assert 0.0 < braking < rest < number(text, "arm folded +at rest: rl")
    assert number(text, "a wheel lifts from") > 2.0  # [kg], where all wheels still stood


def test_an_interval_shrinks_with_the_root_of_the_duration() -> None:
    text = printed("how_long_to_record")
    halves = [number(text, rf" {seconds} s: [\d.]+ \+-") for seconds in (10, 20, 40, 80, 160)]
    assert halves == sorted(halves, reverse=True)
    assert 0.1 < halves[-1] / halves[0] < 0.4  # a quarter


def test_a_hot_motor_has_less_torque_left_and_a_slower_path_fits() -> None:
    joint_2, share_2, joint_3, share_3 = numbers(printed("torque_left_when_hot"), "for a minute: ")[:4]
    assert (joint_2, joint_3) == (2.0, 3.0) and 0.0 < share_2 < share_3 < 100.0
    text = printed("path_within_limits")
    assert number(text, "fastest wheel") / number(text, "its limit") == pytest.approx(
        number(text, r"rad/s\n"), abs=0.02
    )
