"""The answer of an identification: twelve lines of a terminal with intervals and refusals; --verbose has the rest."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import exit_code
from homemade import drive_of, write_least
from named_findings import named_finding

import youbot_dynamics as yd
from youbot_dynamics.commands._terminal import print_answer, print_rows
from youbot_dynamics.identification.finding import Finding, asked
from youbot_dynamics.identification.least_squares import Estimate, Kind, Reason
from youbot_dynamics.identification.reading import Options, Source
from youbot_dynamics.identification.result import Result, Skipped
from youbot_dynamics.report import Rows

ROBOT = ("found/result.yaml", "--robot real --robot-file homemade.yaml")
WATCHDOG = Reason(Kind.UNEXPLAINED, "the motion stops soon after each command: send commands more often")
SOURCE = Source("drive_1", "", "", "", "", "")


def found(name: str, value: float, half: float, unit: str, reason: Reason | None = None, **more: object) -> Finding:
    return named_finding(name, Estimate(name, unit, value, half / 2.0, (value - half, value + half), reason), **more)


def result(missing: dict[str, str], *stages: tuple[str, list[Finding]], recordings: int = 1) -> Result:
    findings = tuple(finding for _, of_stage in stages for finding in of_stage)
    stage_of = {finding.name: stage for stage, of_stage in stages for finding in of_stage}
    return Result("homemade", findings, tuple(dict(stages)), missing, stage_of, (SOURCE,) * recordings)


def whole_arm(joints: int, motors: bool = True) -> Result:
    """Friction of joints, with their motors or not; the bristles are refused."""
    friction, thermal = list[Finding](), list[Finding]()
    few = Reason(Kind.TOO_LITTLE_DATA, "0 readings show how the torque turns round when the joint reverses")
    for k in range(1, joints + 1):
        place = f"robot.arm.joint_{k}"
        friction.append(found(f"{place}.friction.coulomb", 25.0, 0.011, "N m"))
        friction.append(found(f"{place}.friction.viscous", 22.0, 0.014, "N m s/rad"))
        friction += [found(f"{place}.friction.sigma{i}", np.nan, np.nan, "N m/rad", few) for i in range(2)]
        thermal.append(found(f"{place}.motor.resistance", 1.03, 0.05, "Ohm"))
        thermal.append(found(f"{place}.motor.torque_constant", 0.034, 0.004, "N m/A"))
    missing = dict.fromkeys(("calibration", "delay", "body", "response", "base_friction"), "got no wheels")
    stages = [("arm_friction", friction), *([("thermal", thermal)] if motors else [])]
    return result(missing if motors else missing | {"thermal": "got no voltages"}, *stages)


def refusals() -> Result:
    """One axis is refused for a reason of its own, and so is the whole response."""
    still = Reason(Kind.NOT_EXCITED, "never driven sideways")
    delays = [found(f"robot.base.delay.effective_{axis}", 0.1095, 0.0002, "s") for axis in ("x", "yaw")]
    delays.append(found("robot.base.delay.effective_y", np.nan, np.nan, "s", still))
    response = [found(f"robot.base.response.{name}", 0.05, 0.01, "s", WATCHDOG) for name in ("dead_time_x", "lag")]
    missing = {"calibration": "got no poses", "body": "no limit was reached", "base_friction": "got no efforts"}
    return result(missing, ("delay", delays), ("response", response))


def efforts_in_ampere() -> Result:
    """An arm whose efforts contradict the weight of its links; what else is refused has reasons of its own."""
    scale = "the efforts are 0.19 times what the links in the robot file need: check their unit and order, the torque"
    wrong = Reason(Kind.WRONG_SIGNALS, f"{scale} constant and gear ratio, the masses of the links, and the load")
    kinds = (Kind.TOO_LITTLE_DATA, Kind.NOT_EXCITED, Kind.TOO_WIDE, Kind.UNEXPLAINED, Kind.CONFUSED, Kind.AT_BOUND)
    others = [Reason(kind, f"{kind.value}, which is told at some length") for kind in kinds]
    arm = [found("robot.arm.torque_delay", 0.01, 0.001, "s")]
    for joint, reason in enumerate((wrong, *others), start=1):
        for name, unit in (("coulomb", "N m"), ("viscous", "N m s/rad"), ("sigma0", "N m/rad")):
            arm.append(found(f"robot.arm.joint_{joint}.friction.{name}", np.nan, np.nan, unit, reason))
    return result({"delay": "got no wheels"}, ("arm_friction", arm))


def log_of_two_axes(folder: Path) -> Path:
    """A text log in which one axis follows its command by 0.15 s and the other is not driven."""
    time = np.arange(0.0, 40.0, 0.02)
    command, late = (np.sin(1.3 * t) + np.sin(0.4 * t) for t in (time, time - 0.15))
    columns = [time, command, late, np.zeros(len(time)), 1e-3 * np.random.default_rng(1).normal(size=len(time))]
    log = folder / "log.csv"
    np.savetxt(log, np.column_stack(columns), delimiter=",")
    return log


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Identified recordings of three kinds: a whole base, a text log with a refusal, and arms."""
    folder = tmp_path_factory.mktemp("recordings")
    drive, robot = drive_of(write_least(folder), folder / "drive_1"), yd.load_robot(robot_file=folder / "homemade.yaml")
    columns = Options(columns="time,command.x,measured.x,command.y,measured.y")
    return {
        "base": yd.identify(drive, robot).result,
        "text log": yd.identify(log_of_two_axes(folder), robot, columns, only=("delay",)).result,
        "six joints": whole_arm(6, motors=False),
        "six joints with motors": whole_arm(6),
        "refusals": refusals(),
        "efforts in ampere": efforts_in_ampere(),
    }


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """What is printed of a result at a width."""

    def lines(of: Result, columns: int, *, warnings: tuple[str, ...] = (), verbose: bool = False) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        capsys.readouterr()
        print_answer(replace(of, warnings=warnings), *ROBOT, verbose=verbose)
        return capsys.readouterr().out.splitlines()

    return lines


KINDS = ("base", "text log", "six joints", "six joints with motors", "refusals", "efforts in ampere")


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_twelve_lines_of_eighty_characters_and_fits_a_terminal_of_another_width(
    kind: str, columns: int, recordings, said
) -> None:
    lines = said(recordings[kind], columns)
    assert len(lines) <= 12 or columns < 80, lines
    assert lines == [line.rstrip() for line in lines] and not any("\u2502" in line or "nan" in line for line in lines)
    for verbose in (False, True):
        lines = said(recordings[kind], columns, verbose=verbose)
        # A name of a parameter may be longer than a narrow terminal: it is not broken.
        assert all(len(line) <= columns or len(line.split()) == 1 for line in lines), lines
        assert not re.search(r"\b(\w )\1*\w\b \w \w\b", " ".join(lines).replace("N m s", ""))  # no letter a line


def test_delays_gains_and_geometry_have_intervals_but_a_gain_of_the_delay_fit_alone(recordings, said) -> None:
    text = said(recordings["base"], 80)
    for axis in ("forward", "sideways", "in yaw"):
        (line,) = (line for line in text if line.startswith(f"delay {axis}"))
        value, low, high = map(float, re.findall(r"  ([\d.]+) ms \(([\d.]+) to ([\d.]+)\) +gain ", line)[0])
        assert low <= value <= high and 0.8 < float(re.findall(r"gain (?:about )?([\d.]+)", line)[0]) < 1.2
    for name in ("mean wheel radius", "lever of a turn", "sideways speed factor"):
        (line,) = (line for line in text if line.startswith(name))
        assert re.search(r" [\d.]+(?: m)? \([\d.]+ to [\d.]+\)$", line)
    assert "no result: limits and friction of the base (why: --verbose)" in text
    assert "used" not in " ".join(text).replace("to use", "")
    assert re.fullmatch(
        r"delay forward +1[45][\d.]+ ms \([\d.]+ to [\d.]+\)  gain about 1\.0\d\d", said(recordings["text log"], 80)[0]
    )
    still = Reason(Kind.OTHER_EXPLANATION, "the motion may have stopped by itself")
    delay = found("robot.base.delay.effective_x", 0.1, 0.01, "s", still)
    only = [delay, found("base.body.gain_x", 0.92, 0.035, "1"), found("base.limits.speed_yaw", 5.0, 1.0, "rad/s")]
    lines = said(result({}, ("body", only)), 80)
    assert lines[0] == "gain forward          0.92 (0.89 to 0.96)"
    assert lines[1] == "largest speed in yaw  5 rad/s (4 to 6)"


def test_an_unnamed_base_hears_nothing_of_an_arm(said) -> None:
    missing = {"arm_friction": "no arm", "thermal": "no motors", "base_friction": "got no efforts"}
    base = result(missing, ("body", [found("base.body.gain_x", 0.92, 0.035, "1")]))
    assert "arm" in " ".join(said(base, 80))
    assert "arm" not in " ".join(said(replace(base, robot_id="unnamed base"), 80))


def test_the_next_command_runs_as_it_stands_and_a_command_without_one_points_to_the_report(said, capsys) -> None:
    for columns in (40, 80, 200):
        lines = said(whole_arm(3), columns)
        (first,) = (k for k, line in enumerate(lines) if line.startswith("next: "))
        command = "\n".join(lines[first:]).removeprefix("next: ").replace("\\\n", "")
        assert shlex.split(command) == shlex.split(f"youbot bringup {ROBOT[1]} --result-file {ROBOT[0]}")
    capsys.readouterr()
    print_answer(whole_arm(6))
    text = capsys.readouterr().out
    assert "(why: the report)" in text and "--verbose" not in text and "next: " not in text


def test_wheels_that_contradict_the_poses_are_told_in_full_and_nobody_is_sent_to_drive(said) -> None:
    swapped = Reason(Kind.WRONG_SIGNALS, "the poses would follow the wheels if the readings of fl were those of fr")
    geometry = [
        found(f"robot.base.geometry.{name}", 0.1, 0.001, "m", swapped) for name in ("wheel_radius", "lateral_factor")
    ]
    delays = [found(f"robot.base.delay.effective_{axis}", 0.1095, 0.0002, "s") for axis in ("x", "y", "yaw")]
    told = " ".join(" ".join(said(result({}, ("calibration", geometry), ("delay", delays)), 40)).split())
    assert swapped.text in told and "bringup" not in told and "next: mend what wheels and poses contradict" in told


def test_what_is_refused_is_told_with_its_reason_and_what_is_left_out_is_counted(recordings, said) -> None:
    for columns in (40, 80):
        text = " ".join(" ".join(said(refusals(), columns)).split())
        assert "not identified: delay sideways (never driven sideways)" in text
        assert f"not identified: response of the base ({WATCHDOG.text})" in text
        assert "no result: geometry, limits and friction of the base (why: --verbose)" in text
        assert "in yaw" in text and "109.5 ms (109.3 to 109.7)" in text
    assert "(the command never changed)" in " ".join(said(recordings["text log"], 80))
    joints = said(whole_arm(6, motors=False), 80)
    assert "friction of the arm, Coulomb in N m and viscous in N m s/rad:" in joints
    assert "joint 6  Coulomb 25.00 (24.99 to 25.01)  viscous 22.00 (21.99 to 22.01)" in joints
    assert "not identified: bristles of 6 joints (too little data)" in joints
    with_motors = said(whole_arm(6), 80)
    assert "joint 4  Coulomb 25.00 (24.99 to 25.01)  viscous 22.00 (21.99 to 22.01)" in with_motors
    assert "and 2 more (which: --verbose)" in with_motors
    assert "motors of the arm: 12 values identified (which: --verbose)" in with_motors
    assert any("resistance 1.03 (0.98 to 1.08)" in line for line in said(whole_arm(6), 80, verbose=True))


def test_numbers_stand_side_by_side_before_they_are_only_counted(said) -> None:
    """The radius that a drive was made for was one of "3 values identified" beside two warnings."""
    delays = [found(f"robot.base.delay.effective_{axis}", 0.1095, 0.0002, "s") for axis in ("x", "y", "yaw")]
    radius, factor = (f"robot.base.geometry.{name}" for name in ("wheel_radius", "lateral_factor"))
    sizes = (radius, 0.05, 1e-4, "m"), ("base.geometry.lever", 0.4, 1e-3, "m"), (factor, 0.97, 1e-3, "1")
    geometry = [found(name, *numbers) for name, *numbers in sizes]
    whole = result({"body": "no limit"}, ("delay", delays), ("calibration", geometry))
    lines = said(whole, 80, warnings=tuple(f"a warning of two lines: {10 * 'so it is told. '}" for _ in range(2)))
    text = " ".join(" ".join(lines).split())
    assert "mean wheel radius 0.0500 m" in text and "; lever of a turn 0.400 m" in text, lines
    assert "values identified (which" not in text


@pytest.mark.parametrize("count", [1, 4])
def test_warnings_and_lost_recordings_stay_in_sight_before_the_numbers(count: int, said) -> None:
    warning = "the stamps of the wheels are 12 ms late: " + 20 * "where both clocks agree, the delays contain it; "
    warnings = tuple(f"{k}: {warning}" for k in range(count))
    lines = said(whole_arm(3), 80, warnings=warnings)
    assert len(lines) <= 12
    told = [line for line in lines if line.startswith("warning: ")]
    assert told == lines[:1] if count == 1 else (*told, "and 1 more (--verbose)") == tuple(lines[:4])
    assert all("the stamps of the wheels are 12 ms late" in line for line in told)
    assert "to compare robots" not in " ".join(lines)  # the warning comes first
    assert (
        " ".join(" ".join(said(whole_arm(3), 80, warnings=warnings, verbose=True)).split()).count("contain it")
        == 20 * count
    )
    whole = whole_arm(3)
    damaged = replace(whole, sources=(replace(whole.sources[0], lost="no footer: the last 3 s are missing"),))
    assert said(damaged, 80)[0] == "warning: drive_1: no footer: the last 3 s are missing"
    skipped = tuple(Skipped(f"days/drive_{k}", "got no messages") for k in range(9))
    lines = said(replace(whole, skipped=skipped), 80)
    assert lines[:2] == [f"warning: drive_{k} was skipped: got no messages" for k in range(2)]
    assert lines[3] == "and 6 more (--verbose)" and len(lines) <= 14  # no number is left out for them


def test_efforts_that_contradict_the_robot_come_before_any_drive(said) -> None:
    warnings = ("the efforts show 0.192 times the weight and inertia of the links in the robot file: " + 9 * "x ",)
    lines = said(efforts_in_ampere(), 80, warnings=warnings)
    text = " ".join(" ".join(lines).split())
    assert len(lines) <= 12 and "the efforts are 0.19 times" in text and "other reasons (which: --verbose)" in text
    assert "next: mend the efforts, which contradict the robot" in text and "bringup" not in text
    delay = found("robot.base.delay.effective_x", 0.1, 0.001, "s")
    both = replace(efforts_in_ampere(), findings=(delay, *efforts_in_ampere().findings))
    text = " ".join(" ".join(said(replace(both, stage_of=both.stage_of | {delay.name: "delay"}), 80)).split())
    assert "next: mend the efforts, which contradict the robot (see above), or drive with these values" in text


def test_several_recordings_are_said_to_be_enough_or_not(said) -> None:
    delay = ("delay", [found("robot.base.delay.effective_x", 0.1095, 0.0002, "s")])
    for count, told in ((1, "1 recording is enough"), (4, "4 recordings are enough"), (5, "")):
        text = " ".join(said(result({}, delay, recordings=count), 80))
        assert f"{told} to use these values; to compare robots, take 5" in text if told else "enough" not in text


def test_equal_wheels_are_one_number_and_others_are_four(said) -> None:
    def wheels(*errors: float) -> Result:
        names = [f"robot.base.geometry.wheel_radius_error_{wheel}" for wheel in ("fl", "fr", "rl", "rr")]
        radii = [found(name, error, 3e-4, "1") for name, error in zip(names, errors, strict=True)]
        return result({}, ("calibration", [found("robot.base.geometry.wheel_radius", 0.05, 1e-5, "m"), *radii]))

    assert "radius errors      0 % (all within 0.031 %)" in said(wheels(0.0, 1e-5, -1e-5, 0.0), 80)
    unequal = said(wheels(0.0148, -0.0148, 0.0148, -0.0021), 80)
    assert "radius errors      fl 1.48, fr -1.48, rl 1.48, rr -0.21 % (+-0.03 each)" in unequal


def test_verbose_has_every_verdict_and_every_reason(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    drive_of(write_least(tmp_path), tmp_path / "drive_1", duration=20.0)
    words = ("identify", "drive_1", "--out", "found", "--robot-file", "homemade.yaml", "--overwrite")
    assert exit_code(*words) in (0, 3)
    brief = capsys.readouterr()
    assert len(brief.out.splitlines()) <= 12 and brief.out.isascii() and "robot.base" not in brief.out
    assert brief.err.splitlines()[-1].endswith("(more: --verbose)")
    assert exit_code(*words, "--verbose") in (0, 3)
    whole = capsys.readouterr()
    assert brief.out.splitlines()[:6] == whole.out.splitlines()[:6]
    identification = yd.identify("drive_1", yd.load_robot(robot_file="homemade.yaml"))
    plain, noted = (" ".join(text.split()) for text in (whole.out, whole.err))
    stages = set(identification.result.stage_of.values()) - set(identification.result.missing)
    shown = [finding for stage in stages for finding in asked(identification.result.of_stage(stage))]
    assert len(shown) > 15 and all(finding.name in plain for finding in shown)
    assert all(" ".join(finding.estimate.verdict.split()) in plain for finding in shown)
    assert all(" ".join(reason.split()) in plain for reason in identification.result.missing.values())
    assert all(" ".join(note.split()) in noted for note in identification.notes)


def test_a_table_that_is_too_wide_becomes_paragraphs_and_loses_nothing(monkeypatch, capsys) -> None:
    table = Rows(("name", "value", "verdict"), [("a" * 30, "-0.0012", "not identifiable: it hardly moved")], "1 row")
    for columns in (40, 60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_rows("a table", table)
        text = capsys.readouterr().out
        assert max(len(line.rstrip()) for line in text.splitlines()) <= columns
        words = " ".join(text.split())
        assert all(part in words for part in ("a" * 30, "-0.0012", "1 row")) and "\u2026" not in text
        assert all(word in words for word in "not identifiable: it hardly moved".split())
