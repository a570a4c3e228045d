"""What is said of a robot that is no youBot has no word of the youBot but the names of the program and the package."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from arm_runs import JITTER
from command_line import exit_code
from homemade import drive_of, write_least
from other_arms import FILES, ROBOTS, swing_of, truth_of
from replay_logs import write_log

import youbot_dynamics as yd
from youbot_dynamics.bringup_plan import BringupOptions, left_out, plan
from youbot_dynamics.estimation.driver_check import JointsHeard, OdometryHeard, Times, Verdict, gyro_heard, judge_driver
from youbot_dynamics.resources import config_path, robot_path

SHIPPED = sorted(path.stem for path in config_path("robots/rosbot_xl.yaml").parent.glob("*.yaml"))
COMMANDS = "bringup|calibrate|check-driver|compare|demo|identify|new-robot|play|record|replay|try|warm-up|watch"
# Programs, nodes and the package; a tag or the end of a line may separate a program from its command.
OWN_NAMES = re.compile(rf"youbot_dynamics|mock_youbot|\byoubot\s+(?={COMMANDS})")


def foreign_words(text: str) -> list[str]:
    """What is around each word of the youBot in a text or page."""
    plain = re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL)
    return re.findall(r".{0,60}youbot.{0,40}", OWN_NAMES.sub("", plain), flags=re.IGNORECASE)


def said_by(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """Output of a command, whatever its exit code."""
    exit_code(*words)
    said = capsys.readouterr()
    return said.out + said.err


@pytest.mark.parametrize("name", [*SHIPPED, "homemade"])
def test_a_base_is_identified_and_driven_in_its_own_words(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, found = robot_path(name) if name in SHIPPED else write_least(tmp_path), tmp_path / "found"
    assert file is not None
    drive_of(file, tmp_path / "combined", duration=20.0)  # the name of a drive of which a youBot's report exists
    robot = ("--robot-file", name if name in SHIPPED else file)
    said = said_by(capsys, "identify", tmp_path / "combined", "--out", found, *robot)
    assert (found / "report.html").exists()
    said += said_by(capsys, "play", "excitation", "--duration", 20, "--write", tmp_path / "program.txt", *robot)
    said += said_by(capsys, "play", "arm_excitation", "--write", tmp_path / "goal.yaml", *robot)
    said += said_by(
        capsys, "identify", tmp_path / "combined", "--out", found, "--only", "thermal", "--overwrite", *robot
    )
    written = "".join(
        path.read_text() for path in found.rglob("*") if path.suffix in (".html", ".yaml", ".json", ".xml")
    )
    assert foreign_words(said + written + (tmp_path / "program.txt").read_text()) == []
    options = BringupOptions(robot_file=str(file), description=True)
    assert foreign_words(left_out(plan(options), options)) == []


@pytest.mark.parametrize("efforts", [True, False])
def test_an_arm_is_replayed_and_identified_in_its_own_words(
    efforts: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = swing_of("ur5e", truth_of("ur5e", jitter=JITTER), 1, 8.0, 20)
    effort = run.effort if efforts else np.zeros((len(run.stamp), 0))
    bag = write_log(tmp_path / "bag", run, names=ROBOTS["ur5e"].driver.arm_joints, effort=effort, robot_id="ur5e")
    robot = ("--robot-file", FILES["ur5e"])
    said = said_by(capsys, "replay", bag, *robot)
    for stage in ("arm_friction", "thermal"):
        said += said_by(capsys, "identify", bag, "--out", tmp_path / stage, "--only", stage, *robot)
    said += said_by(capsys, "play", "arm_excitation", "--duration", 20, "--write", tmp_path / "goal.yaml", *robot)
    assert "ur5e" in said or "shoulder" in said
    assert foreign_words(said) == []


@pytest.mark.parametrize("rate", [12.0, 20.0, 50.0])
def test_a_driver_is_judged_by_the_rate_of_its_robot_and_in_its_own_words(rate: float) -> None:
    robot = yd.load_robot(robot_file="rosbot_xl")  # 20 Hz
    driver, count = robot.driver, 100
    stamp = 1e9 + np.arange(count) / rate
    times = Times(stamp, stamp + 0.004, stamp - 9e8)
    speeds = np.tile(driver.mecanum().wheel_speeds(np.array([0.2, 0.1, 0.3])), (count, 1))
    angles = 1.3 * speeds * (stamp - stamp[0])[:, None]  # a gear ratio that is wrong
    wheels = JointsHeard(driver.wheel_joints, times, angles, speeds, np.full((count, 4), np.nan))
    nothing = np.full((0, 5), np.nan)
    arm = JointsHeard(driver.arm_joints, Times(*(np.zeros(0),) * 3), nothing, nothing, nothing)
    odometry = OdometryHeard(times, np.tile([0.5, 0.1, 0.3], (count, 1)))
    findings = judge_driver(wheels, arm, odometry, gyro_heard([]), [driver.wheel_joints], driver)
    assert (findings[0].verdict is Verdict.OK) == (rate == driver.rate)
    assert foreign_words(" ".join(f"{finding.text} {finding.remedy}" for finding in findings)) == []
