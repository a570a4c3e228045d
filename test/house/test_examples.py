"""Each example runs by itself, and what it prints is true of the physics it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

EXAMPLES = ROOT / "examples"
LONGEST = 1500.0  # [s]; the first run compiles


def printed(name: str, tmp_path: Path) -> str:
    """Output of an example, run in a folder of its own."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
    return done.stdout


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


def test_odometry_of_a_turning_square_comes_back_to_its_start(tmp_path: Path) -> None:
    text = printed("mecanum_odometry", tmp_path)
    off, turned = numbers(text, "and one turn:")
    assert off < 0.1 and turned < 0.001  # [mm], [mrad]
    assert number(text, "no motion explains:") < 1e-12


@pytest.mark.slow
def test_the_weight_of_the_own_robot_and_its_derivatives_are_right(tmp_path: Path) -> None:
    text = printed("own_robot_dynamics", tmp_path)
    assert number(text, "arm level:") == pytest.approx(9.81 * (2.0 * 0.25 + 1.0 * (0.5 + 0.2)), abs=1e-3)
    assert number(text, "forward dynamics: off by") < 1e-10
    assert number(text, "differences: off by") < 1e-4


@pytest.mark.slow
def test_what_is_identified_makes_the_twin_track_ten_times_closer(tmp_path: Path) -> None:
    text = printed("identify_and_track", tmp_path)
    open_loop, tracked = numbers(text, "position error:")
    assert tracked < 5.0 and open_loop > 10.0 * tracked  # [mm]
    assert 50.0 < number(text, "effective delay yaw:") < 400.0  # [ms]
    assert "result.yaml" in text


def test_the_delay_of_the_log_is_within_its_interval(tmp_path: Path) -> None:
    text = printed("delay_of_a_log", tmp_path)
    true = numbers(text, "true: dead time")
    for part, value in (("dead_time", true[0]), ("lag", true[1])):
        assert number(text, f"{part}:") == pytest.approx(value, abs=2.0)
        low, high = number(text, rf"{part}: .* from"), number(text, rf"{part}: .* to")
        assert high - low < 10.0 and low <= value <= high, text  # one lag or nearly so: the log shows it to a few ms


def test_the_friction_in_the_csv_file_is_recovered(tmp_path: Path) -> None:
    text = printed("arm_friction_from_csv", tmp_path)
    for part in ("coulomb", "viscous"):
        true = number(text, rf"{part}: .*\(true")
        assert number(text, f"{part}:") == pytest.approx(true, rel=0.01)
    assert "not identifiable" not in text


def test_the_motor_warms_towards_its_steady_rise(tmp_path: Path) -> None:
    text = printed("motor_heat", tmp_path)
    first, later, last, air = numbers(text, "after 1, 5, 30 min:")
    ends = air + number(text, "the winding ends")
    assert air < first < later < last == pytest.approx(ends, abs=0.5)
    winding, housing = number(text, "the winding ends"), number(text, "the housing")
    assert winding / housing == pytest.approx((5.3 + 3.9) / 3.9, abs=0.01)  # one heat through both resistances
    assert number(text, "beyond") > 2.0  # [A]


@pytest.mark.slow
def test_the_work_of_the_lift_is_stored_or_lost_in_friction(tmp_path: Path) -> None:
    text = printed("lift_a_load", tmp_path)
    work, stored, heat = numbers(text, "work")
    assert work == pytest.approx(stored + heat, abs=0.02)
    assert stored > 0.5 * 9.81 * number(text, "raised by")  # the links rise as well


@pytest.mark.slow
def test_the_work_of_standing_up_is_stored(tmp_path: Path) -> None:
    text = printed("stand_up", tmp_path)
    work, stored = numbers(text, "work")
    assert work == pytest.approx(stored, abs=0.02)
    assert stored > 0.678 * 75.0 * 9.81 * number(text, "raised by")  # the legs rise as well


def test_casters_swing_round_and_the_work_becomes_motion(tmp_path: Path) -> None:
    text = printed("base_with_casters", tmp_path)
    assert [abs(angle) for angle in numbers(text, "casters stand at")] == pytest.approx([180.0, 180.0], abs=5.0)
    work, gained, lost = numbers(text, "work of the motors")
    assert work == pytest.approx(gained + lost, abs=0.02) and 0.0 <= lost < 0.02 * work


def test_every_example_has_a_test() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    for example in EXAMPLES.glob("*.py"):
        assert f'printed("{example.stem}"' in text, example.name
