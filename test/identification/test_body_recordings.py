"""Recordings of bases without wheel states: topics of other names, and what is said when nothing can be identified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from body_runs import Plant, ramps
from command_line import exit_code
from repository import DATA
from stage_bags import ROBOT, nanoseconds, write_rows

from youbot_dynamics.errors import RecordingError, YoubotDynamicsError
from youbot_dynamics.identification.body import identify_axis
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.recording.message_types import (
    JOINT_STATE,
    ODOMETRY,
    TWIST,
    joint_state_cdr,
    odometry_cdr,
    twist_cdr,
)

PLANT = Plant(dead_time=0.08, lag=0.12)
COMMAND = ramps(1)[:, 0]


def rows_of(command: str, odometry: str, *, moves: float = 1.0, until: float = 60.0) -> list[tuple]:
    """Messages of a base that drives forward; `moves` multiplies what its odometry reports."""
    sent, stamps, speeds = PLANT.drive(COMMAND, 1)
    rows = [(t, command, TWIST, twist_cdr([u, 0.0, 0.0])) for t, u in zip(sent.tolist(), COMMAND, strict=True)]
    for stamp, speed in zip(stamps.tolist(), moves * speeds, strict=True):
        cdr = odometry_cdr(nanoseconds(stamp), "odom", "base_link", np.zeros(3), [speed, 0.0, 0.0])
        rows.append((stamp + 0.002, odometry, ODOMETRY, cdr))
    return [row for row in rows if row[0] < until]


def refusal(bag: Path) -> str:
    with pytest.raises(YoubotDynamicsError) as caught:
        identify([bag], ROBOT, Options())
    return str(caught.value)


def test_the_only_odometry_counts_whatever_its_name_is(tmp_path):
    bag = write_rows(tmp_path / "bag", rows_of("/cmd_vel", "/odometry/filtered"))
    found = identify([bag], ROBOT, Options()).result
    delay = found["robot.base.delay.effective_x"].estimate
    assert delay.identified and delay.interval[0] <= PLANT.delay <= delay.interval[1]
    assert "/odometry/filtered" in found.sources[0].signals


def test_of_several_odometries_without_the_usual_name_one_is_to_be_chosen(tmp_path):
    rows = rows_of("/cmd_vel", "/odometry/filtered")
    rows += [(time, "/odometry/wheels", *rest) for time, topic, *rest in rows if topic == "/odometry/filtered"]
    bag = write_rows(tmp_path / "bag", rows)
    assert "several topics of odometry: /odometry/filtered, /odometry/wheels" in refusal(bag)
    chosen = Options({"odom": "/odometry/wheels"})
    assert identify([bag], ROBOT, chosen).result["robot.base.delay.effective_x"].identified


def test_the_only_twist_that_is_called_a_command_is_the_command(tmp_path):
    result = identify([write_rows(tmp_path / "bag", rows_of("/base/commands/velocity", "/odom"))], ROBOT).result
    delay = result["robot.base.delay.effective_x"].estimate
    assert delay.identified and delay.interval[0] <= PLANT.delay <= delay.interval[1]
    assert "/base/commands/velocity" in result.sources[0].signals


def test_twists_that_may_be_measured_and_one_of_several_commands_are_proposed(tmp_path):
    told = refusal(write_rows(tmp_path / "twist", rows_of("/base/velocity", "/odom")))
    assert "no command" in told and "--topic cmd_vel=/base/velocity" in told
    rows = rows_of("/pad/cmd_vel_out", "/odom")
    rows += [(time, "/nav/cmd_vel_out", *rest) for time, topic, *rest in rows if topic == "/pad/cmd_vel_out"]
    assert "--topic cmd_vel=/nav/cmd_vel_out or /pad/cmd_vel_out" in refusal(write_rows(tmp_path / "several", rows))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"moves": 0.0}, "the axis never moved"), ({"moves": -1.0}, "the motion is opposite to the command")],
)
def test_what_a_base_without_wheels_refuses_is_shown_as_a_result(tmp_path, changes, words):
    bag = write_rows(tmp_path / "bag", rows_of("/cmd_vel", "/odom", **changes))
    found = identify([bag], ROBOT, Options())
    assert words in found.result["robot.base.delay.effective_x"].estimate.verdict
    assert "got no states of joints (no JointState topic" in found.result.missing["delay"]
    assert not any("wheel_joint_fl" in note for note in found.notes)  # once is enough
    assert exit_code("identify", bag, "--out", tmp_path / "found") == 3


def test_the_reason_of_a_base_without_wheels_comes_first(tmp_path):
    short = refusal(write_rows(tmp_path / "short", rows_of("/cmd_vel", "/odom", until=15.0)))
    assert f" readings in {tmp_path / 'short'}; expected 20 s or more, with 100 readings or more; drive longer" in short
    assert short.startswith("response of x: got ") and "drive longer; for a response of the wheels: " in short
    alone = [row for row in rows_of("/cmd_vel", "/odom") if row[1] == "/odom"]
    assert "got no command (topics: /odom); expected cmd_vel" in refusal(write_rows(tmp_path / "alone", alone))


def test_wheels_of_other_names_are_listed(tmp_path):
    names = ("front_left", "front_right", "rear_left", "rear_right")
    rows = [
        (0.02 * k, "/wheel_states", JOINT_STATE, joint_state_cdr(nanoseconds(0.02 * k), names, [0.1 * k] * 4))
        for k in range(1, 100)
    ]
    with pytest.raises(RecordingError) as caught:
        identify([write_rows(tmp_path / "bag", rows)], ROBOT, Options(), only=("calibration",))
    assert f"JointState topics: /wheel_states with {', '.join(names)})" in str(caught.value)
    assert "--topic wheel_states=NAME, and another robot with --robot-file" in str(caught.value)


def test_speeds_of_the_base_in_a_text_log_give_the_delay_of_its_path(tmp_path):
    """The shift that fits the speeds best is 20 ms shorter, for they jump; dead time and lag together are not."""
    sent, stamps, speeds = PLANT.drive(COMMAND, 1)
    held = COMMAND[np.searchsorted(sent, stamps, side="right") - 1]
    since = float(np.mean(stamps - sent[np.searchsorted(sent, stamps, side="right") - 1]))  # logged later than sent
    np.savetxt(tmp_path / "log.csv", np.column_stack([stamps, held, speeds]), delimiter=",")
    columns = Options(columns="time,command.x,measured.x")
    delay = identify([tmp_path / "log.csv"], ROBOT, columns).result["robot.base.delay.effective_x"].estimate
    assert delay.identified and delay.value == pytest.approx(PLANT.delay - since, abs=0.01)
    alone = identify([tmp_path / "log.csv"], ROBOT, columns, only=("delay",)).result
    estimate = alone["robot.base.delay.effective_x"].estimate
    assert estimate.identified and estimate.interval[0] < PLANT.delay - since < estimate.interval[1]


@pytest.mark.parametrize(("command", "motion", "gain"), [("cx", "mx", 0.91), ("cw", "gyro", 0.48)])
def test_of_steps_that_may_exceed_the_largest_acceleration_no_row_says_that_they_never_did(command, motion, gain):
    """A skid-steered base: a plain regression of its steps gives these gains."""
    file = DATA / "drive_warthog" / "warthog.csv"
    if not file.exists():
        pytest.skip(f"{file} is absent")
    table = np.genfromtxt(file, delimiter=",", names=True)[:2000]
    found = identify_axis("x", "m/s", table["t"], table[command], table["t"], table[motion])
    assert "may have exceeded the largest acceleration" in found["effective"].verdict
    assert "whether commands exceeded it is open" in found["acceleration"].verdict
    assert found["gain"].identified and found["gain"].interval[0] <= gain <= found["gain"].interval[1]
