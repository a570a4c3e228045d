"""A text log with joints goes through the stages as a bag with the same messages does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from body_runs import ramps, twin_drive
from command_line import exit_code
from stage_bags import ROBOT, nanoseconds, write_rows

from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.identification.signals import HeldCommand
from youbot_dynamics.recording.bag import LogRecording
from youbot_dynamics.recording.message_types import (
    JOINT_STATE,
    POSE_STAMPED,
    TWIST_STAMPED,
    joint_state_cdr,
    pose_stamped_cdr,
    twist_stamped_cdr,
)
from youbot_dynamics.recording.text_log import read_text_log
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import load_truth

WHEELS = ROBOT.driver.wheel_joints
TICKS = 4096
STAGES = ("calibration", "delay", "response")
MERGED = "or merge the file of the commands with that of the motion: docs/identification/text_logs.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A drive of the twin as drive/ and as log.csv, with angles in ticks and one row for each message."""
    folder = tmp_path_factory.mktemp("text")
    plant, driver = BasePlant(load_truth(1), ROBOT.driver, 1), ROBOT.driver
    twists = np.vstack([ramps(1, 40.0), np.zeros((40, 3))])
    rows, lines = [], []
    for k, twist in enumerate(twists):
        time = 1.0 + 0.05 * k
        plant.command_twist(twist)
        rows.append((time, "/cmd_vel", TWIST_STAMPED, twist_stamped_cdr(nanoseconds(time), "base", twist)))
        lines.append((time, [*twist, *[np.nan] * 11]))
        for step in (0.011, 0.031):
            plant.advance(0.05 * k + step)
            read = plant.read()
            stamp, ticks = round(time + step, 9), np.round(read.position * TICKS / (2.0 * np.pi))
            angles = ticks * (2.0 * np.pi / TICKS)
            cdr = joint_state_cdr(nanoseconds(stamp), WHEELS, angles, read.velocity)
            rows.append((stamp, "/driver/joint_states", JOINT_STATE, cdr))
            lines.append((stamp, [*[np.nan] * 3, *ticks, *np.degrees(read.velocity), *[np.nan] * 3]))
        stamp = round(time + 0.04, 9)
        plant.advance(0.05 * k + 0.04)
        rows.append((stamp, "/pose", POSE_STAMPED, pose_stamped_cdr(nanoseconds(stamp), "map", plant.pose)))
        lines.append((stamp, [*[np.nan] * 11, *plant.pose]))
        plant.advance(0.05 * (k + 1))
    assert len(driver.wheel_joints) == 4
    write_rows(folder / "drive", rows)
    table = np.array([[1e3 * time, *values] for time, values in lines])
    heads = ["t", "ux", "uy", "uw", *(f"enc{k}" for k in range(4)), *(f"v{k}" for k in range(4)), "px", "py", "heading"]
    np.savetxt(folder / "log.csv", table, delimiter=",", fmt='"%.17g"', header=",".join(heads), comments="")
    return folder


COLUMNS = ",".join(
    [
        "time=t:ms,command.x=ux,command.y=uy,command.yaw=uw",
        *(f"position.{name}=enc{k}:turn/{TICKS}" for k, name in enumerate(WHEELS)),
        *(f"velocity.{name}=v{k}:deg/s" for k, name in enumerate(WHEELS)),
        "pose.x=px,pose.y=py,pose.yaw=heading",
    ]
)


@pytest.mark.parametrize("stages", [("delay",), pytest.param(STAGES, marks=pytest.mark.slow)], ids=["delay", "all"])
def test_a_stage_finds_in_a_text_log_what_it_finds_in_a_bag(folder, stages):
    bag = identify([folder / "drive"], ROBOT, Options(), only=stages).result
    text = identify([folder / "log.csv"], ROBOT, Options(columns=COLUMNS), only=stages).result
    assert [finding.name for finding in text.findings] == [finding.name for finding in bag.findings]
    assert sum(finding.identified for finding in bag.findings) >= 3 * len(stages)
    for mine, theirs in zip(text.findings, bag.findings, strict=True):
        assert mine.identified == theirs.identified
        slack = max(1e-6, 0.01 * float(np.nan_to_num(theirs.estimate.standard_error, posinf=1.0)))
        assert mine.estimate.value == pytest.approx(theirs.estimate.value, rel=1e-3, abs=slack, nan_ok=True)


def test_the_program_reads_such_a_log(folder, tmp_path):
    words = ["identify", folder / "log.csv", "--columns", COLUMNS, "--out", tmp_path / "found", "--only", "delay"]
    assert exit_code(*words) == 0
    assert "effective_yaw" in (tmp_path / "found" / "result.yaml").read_text()


def test_an_axis_is_held_until_its_next_command_when_each_has_rows_of_its_own(tmp_path):
    nan = np.nan
    rows = [
        (0.0, 0.1, nan, nan),
        (0.1, nan, 0.5, nan),
        (0.2, nan, nan, 0.0),
        (0.3, 0.2, nan, nan),
        (0.4, nan, 0.6, nan),
    ]
    np.savetxt(tmp_path / "log.csv", rows, delimiter=",")
    recording = LogRecording(read_text_log(tmp_path / "log.csv", "time,command.x,command.yaw,measured.x"))
    sent = recording.twists("/cmd_vel")
    np.testing.assert_allclose(sent.twist, [[0.1, 0.0, 0.5], [0.2, 0.0, 0.5], [0.2, 0.0, 0.6]])
    np.testing.assert_allclose(np.diff(sent.stamp), [0.2, 0.1])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("time=t:ms,position.wheel_fl=enc0", "got robot 'unnamed robot', .* expected a robot with its wheels"),
        ("time=t:ms,position.wheel_joint_fl=enc0,pose.x=px", "got pose.x; expected pose.x, pose.y and pose.yaw"),
        (
            "time=t:ms,velocity.wheel_joint_fl=v0",
            "got a text log with the speed of wheel_joint_fl, but no angle; expected .* a text log with position.JOINT",
        ),
        ("time=t:ms,position.wheel_joint_fl=enc0,command.x=ux", "expected messages that name|got no states of"),
        ("time=t:ms,command.x=ux", f"got commands x, motions none.*{MERGED}"),
        ("time=t:ms,measured.x=px", f"got (measured, time|commands none, motions x).*{MERGED}"),
    ],
)
def test_columns_that_lack_something_are_named(folder, columns, words):
    only = () if MERGED in words else ("calibration",)
    for robot in (ROBOT,) if only else (ROBOT, load_robot()):
        with pytest.raises(YoubotDynamicsError, match=words):
            identify([folder / "log.csv"], robot, Options(columns=columns), only=only)


def test_a_log_of_the_arm_alone_gives_its_friction_and_one_line_for_what_the_base_lacks(tmp_path, capsys):
    time = np.arange(0.0, 40.0, 0.02)
    sweep = np.sin(0.6 * time + 6.0 * np.sin(0.1 * time))
    joints, columns, heads = ROBOT.driver.arm_joints, [time], ["t"]
    for k, (centre, joint) in enumerate(zip(ROBOT.arm.excitation_centre, joints, strict=True)):
        angle = centre + 0.4 * sweep
        speed = np.gradient(angle, time)
        noise = 0.02 * np.random.default_rng(k).normal(size=len(time))
        columns += [np.degrees(angle), 0.5 * np.sign(speed) + 0.3 * speed + noise]
        heads += [f"position.{joint}=p{k}:deg", f"effort.{joint}=e{k}"]
    names = ["t", *(f"{kind}{k}" for k in range(len(joints)) for kind in "pe")]
    log = tmp_path / "arm.csv"
    np.savetxt(log, np.column_stack(columns), delimiter=",", header=",".join(names), comments="")
    words = ["--columns", ",".join(["time=t", *heads[1:]]), "--out", tmp_path / "found", "--verbose"]
    assert exit_code("identify", log, *words) == 3  # the stiffness of the bristles is refused
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("expected messages that name wheel_joint_fl") == 1 and "got wheel states" not in said
    arm = load_robot(tmp_path / "found" / "result.yaml").arm
    assert [joint.friction.coulomb for joint in arm.joints] == pytest.approx([0.5] * len(joints), rel=0.05)


def test_joints_of_the_arm_do_not_hide_a_base_without_wheel_states(tmp_path):
    drive, log = twin_drive(1, ramps(1, 40.0)), tmp_path / "drive.csv"
    rows = [[time, *twist, *[np.nan] * 3, *[np.nan] * 5] for time, twist in zip(drive.sent, drive.twists, strict=True)]
    rows += [[time, *[np.nan] * 3, *speed, *[0.1] * 5] for time, speed in zip(drive.stamps, drive.speeds, strict=True)]
    np.savetxt(log, sorted(rows, key=lambda row: row[0]), delimiter=",")
    axes = [f"{kind}.{axis}" for kind in ("command", "measured") for axis in ("x", "y", "yaw")]
    columns = ",".join(["time", *axes, *(f"position.{joint}" for joint in ROBOT.driver.arm_joints)])
    found = identify([log], ROBOT, Options(columns=columns), only=("body",)).result
    assert found["robot.base.delay.effective_x"].identified


@pytest.mark.parametrize("period", [0.02, 0.1])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("told", ["command", "command_held", "command_sampled"])
def test_a_logged_command_may_be_held_or_sampled_and_the_delay_holds_both_unless_told(tmp_path, period, sampled, told):
    """A motor follows 120 ms late what its log says: of a command that changes between rows, half a row more."""
    time, delay = np.arange(0.0, 60.0, period), 0.12

    def command(at: np.ndarray) -> np.ndarray:
        return np.sin(1.3 * at) + np.sin(0.41 * at)

    held = HeldCommand(time, command(time), 0.0)
    motion = -np.cos(1.3 * (time - delay)) / 1.3 - np.cos(0.41 * (time - delay)) / 0.41
    motion = motion if sampled else held.motion(time - delay)
    log = tmp_path / "log.csv"
    motion = motion + 1e-4 * np.random.default_rng(1).standard_normal(len(time))
    np.savetxt(log, np.column_stack([time, command(time), motion]), delimiter=",")
    found = identify([log], ROBOT, Options(columns=f"time,{told}.a,measured_position.a"), only=("delay",))
    estimate = found.result["delay.effective_a"].estimate
    assert estimate.identified
    right = told == "command" or (told == "command_sampled") == sampled
    assert (estimate.interval[0] - 1e-3 <= delay <= estimate.interval[1] + 1e-3) == right
    assert any("commands of a are taken to be sent with the row" in note for note in found.notes) == (told == "command")
    if told != "command" and right:
        assert estimate.value == pytest.approx(delay, abs=2e-3)


def test_a_sampled_twist_of_a_base_is_half_a_row_earlier(tmp_path):
    log = tmp_path / "log.csv"
    np.savetxt(log, np.column_stack([0.1 * np.arange(50), np.sin(np.arange(50.0)), np.arange(50.0)]), delimiter=",")
    held, sampled = (
        LogRecording(read_text_log(log, f"time,{role}.x,position.wheel_joint_fl")).twists("/cmd_vel")
        for role in ("command", "command_sampled")
    )
    np.testing.assert_allclose(held.stamp - sampled.stamp, 0.05, atol=1e-9)
    np.testing.assert_array_equal(held.twist, sampled.twist)
