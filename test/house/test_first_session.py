"""The commands of docs/first_session.md exist, with their flags; its tables agree with the code."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest
from repository import ROOT

from youbot_dynamics.bringup_plan import DRIVER
from youbot_dynamics.bringup_plan._plan import DRIVER_REMAPPINGS
from youbot_dynamics.commands.main import parser
from youbot_dynamics.estimation.driver_check import gyro_heard, joints_heard, judge_driver, odometry_heard
from youbot_dynamics.robot import load_robot

PAGE = (ROOT / "docs" / "first_session.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.S)
    for line in block.replace("\\\n", " ").splitlines()
]
OURS = [words[1:] for words in COMMANDS if words[0] == "youbot"]
OF_ROS = [words for words in COMMANDS if words[0] == "ros2"]


def test_every_verb_of_the_hour_is_used():
    assert {words[0] for words in OURS} == {"check-driver", "bringup", "play", "record", "identify"}
    assert len(OURS) >= 8 and len(OF_ROS) >= 5


@pytest.mark.parametrize("words", OURS, ids=" ".join)
def test_the_program_takes_its_commands(words):
    parser().parse_args(words)


def test_the_driver_is_started_with_the_remaps_of_the_bringup():
    started = next(words for words in OF_ROS if DRIVER in words)
    rules = [word for flag, word in zip(started, started[1:], strict=False) if flag == "-r"]
    assert {rule.partition(":=")[0] for rule in rules} >= {"cmd_vel", "odom", "base/joint_states", "/tf"}
    assert all(DRIVER_REMAPPINGS[name] == target for name, _, target in (rule.partition(":=") for rule in rules))


def test_topics_and_services_are_those_of_the_contract():
    named = {word for words in OF_ROS for word in words[:6] if word.startswith("/")}
    assert named == {"/cmd_vel", "/base/switchOffMotors", "/base/switchOnMotors"}


def test_its_parameter_file_names_the_robot(tmp_path):
    text = re.search(r"```yaml\n(.*?)```", PAGE, re.S).group(1)
    (tmp_path / "my_robot.yaml").write_text(text, encoding="utf-8")
    assert load_robot(None, tmp_path / "my_robot.yaml").robot_id == "youbot_1"


@pytest.mark.parametrize(("axis", "twist"), [("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))])
def test_wheels_turn_as_its_table_says(axis, twist):
    row = re.search(rf"^\| {axis} \| (.) \| (.) \| (.) \| (.) \|$", PAGE, re.M).groups()
    speeds = load_robot().driver.mecanum().wheel_speeds(np.array(twist, dtype=float))
    assert ["+" if speed > 0.0 else "-" for speed in speeds] == list(row)


def test_rows_it_explains_are_rows_of_the_check():
    driver = load_robot().driver
    none = judge_driver(
        joints_heard(driver.wheel_joints, []),
        joints_heard(driver.arm_joints, []),
        odometry_heard([]),
        gyro_heard([]),
        [],
        driver,
    )
    items = {finding.item for finding in none} | {
        "listeners of the operator",
        "commands to the driver",
        "publishers of joint states",
        "broadcasters of tf",
    }
    explained = re.findall(r"^\| ([a-z][^|]+?) \| [^|]+\|$", PAGE, re.M)
    for row in explained:
        if row not in ("row", "command"):
            first = row.split(",")[0]
            assert first in items, row
