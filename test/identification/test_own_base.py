"""A newcomer's own simulator, with nothing of the twin: its delays and gains, by wheel states and without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_base import OwnBase

import youbot_dynamics as yd
from youbot_dynamics.errors import YoubotDynamicsError
from youbot_dynamics.identification.excitation import base_program
from youbot_dynamics.report import told
from youbot_dynamics.report._answer import next_step
from youbot_dynamics.simulation.scenario import identified_twin

AXES = ("x", "y", "yaw")


@pytest.mark.parametrize(
    "base",
    [
        OwnBase(1, quantum=1e-3),
        OwnBase(2, rate=100.0, quantum=2e-3, differences=True),
        OwnBase(3, dead_time=0.05, lag=0.12),
        OwnBase(4, rate=24.0, wheel_states=False),
        OwnBase(5, ahead=0.35),  # its stamps are later than their reception: they are of another clock
        OwnBase(4, rate=24.0, wheel_states=False, ahead=0.35),
        OwnBase(5, drift=3e-4),  # 18 ms over the drive, half of which were taken for delay
        OwnBase(4, rate=24.0, wheel_states=False, drift=-3e-4),
    ],
    ids=[
        "50 Hz",
        "100 Hz",
        "long lag",
        "no wheel states",
        "clock ahead",
        "clock of odometry ahead",
        "clock drifts",
        "clock of odometry drifts",
    ],
)
def test_the_delay_is_dead_time_plus_lag(base: OwnBase, tmp_path: Path) -> None:
    """By the wheels it was 179.4 (179.1 to 179.7) for 180 ms, beside a response of 120.00 and 60.00."""
    file, bag = base.write(tmp_path)
    stage = "delay" if base.wheel_states else "body"
    result = yd.identify(bag, yd.load_robot(robot_file=file), only=[stage]).result
    for axis in AXES[: 3 if base.wheel_states else 2]:
        low, high = result[f"robot.base.delay.effective_{axis}"].estimate.interval
        assert low <= base.dead_time + base.lag <= high and high - low < 1e-3
        assert high - low > 4e-6, "no clock is better"


@pytest.mark.parametrize("wheel_states", [True, False], ids=["wheels", "odometry"])
def test_readings_that_arrive_in_bursts_are_even_and_what_they_wait_is_told(wheel_states: bool, tmp_path: Path) -> None:
    """ "611275 messages are missing at 5000 Hz" was said, and that pose and twist contradict each other."""
    base = OwnBase(1, wheel_states=wheel_states, bursts=0.1)
    file, bag = base.write(tmp_path)
    result = yd.identify(
        bag, yd.load_robot(robot_file=file), only=["delay", "response"] if wheel_states else ["body"]
    ).result
    (warning,) = result.warnings
    assert "bursts of 5, every 100 ms" in warning and "50 ms that they wait" in warning
    waits = [result[f"robot.base.delay.effective_{axis}"].estimate.value - base.dead_time - base.lag for axis in AXES]
    assert max(waits) - min(waits) < 2e-3 and waits == pytest.approx([0.05] * 3, abs=0.01)  # by the phase of the bursts


def test_dead_times_of_a_response_hold_for_two_lags_in_series(tmp_path: Path) -> None:
    """They were 105.6 (103.6 to 107.6) ms for 50, while the stage `delay` refused them in the same run."""
    base = OwnBase(7, dead_time=0.05, lag=0.1, lags=2)
    file, bag = base.write(tmp_path)
    result = yd.identify(bag, yd.load_robot(robot_file=file), only=["delay", "response"]).result
    for axis in AXES:
        finding = result[f"robot.base.response.dead_time_{axis}"]
        assert finding.usable, "the response as a whole predicts the motion"
        assert not finding.identified or finding.estimate.interval[0] <= base.dead_time


def test_a_gain_by_the_wheels_is_told_to_be_one_for_their_geometry(tmp_path: Path) -> None:
    """It was .96 +-.00001 although nobody knows a wheel radius so well."""
    file, bag = OwnBase(1).write(tmp_path)
    result = yd.identify(bag, yd.load_robot(robot_file=file), only=["delay", "response"]).result
    gain = result["base.response.gain_x"]
    assert gain.estimate.value == pytest.approx(0.96 * 0.06 / 0.0612, abs=1e-4)
    lines = told(result, 80)
    assert any("gain 0.941" in line for line in lines)
    assert "gains are those for the wheel radius and lever in use" in lines


def test_the_identified_robot_is_simulated_as_itself(tmp_path: Path) -> None:
    """A simulated robot was another one, drawn at random."""
    file, bag = OwnBase(1, quantum=1e-3).write(tmp_path)
    robot = yd.load_robot(robot_file=file)
    with pytest.raises(YoubotDynamicsError, match="got no identified delay"):
        identified_twin(robot, yd.load_truth(0, file))
    first = yd.identify(bag, robot).result
    plant = yd.BaseOnly(identified_twin(first.applied_to(robot), yd.load_truth(0, file)), robot.driver, 1)
    program = base_program(robot, 30.0, 1.0, 0.02).trajectory()
    run = yd.drive(program, robot, plant, 1, tracker_settings=yd.TrackerSettings(feedback=False))
    yd.write_bag(run, robot, tmp_path / "again", feedback=False)
    again = yd.identify(tmp_path / "again", robot, only=["delay"]).result
    for axis in AXES:
        delay = f"robot.base.delay.effective_{axis}"
        assert again[delay].estimate.value == pytest.approx(first[delay].estimate.value, abs=1e-3)


def test_wheels_of_a_base_without_a_robot_file_are_named(tmp_path: Path) -> None:
    """Nothing told that the recording holds more than its odometry."""
    _, bag = OwnBase(1).write(tmp_path)
    _, without = OwnBase(2, wheel_states=False).write(tmp_path)
    found = [yd.identify(one, yd.load_robot(), only=["body"]).result for one in (bag, without)]
    steps = [next_step(result, "found/result.yaml") for result in found]
    assert steps[0].command == f"youbot new-robot --bag {bag} --out my_robot.yaml"
    assert not steps[1].command and "from a drive with joint_states" in steps[1].words
    lines = told(found[0], 80)
    text = " ".join(" ".join(lines[:2]).split())
    assert "joints back_left, back_right, front_left, front_right look like wheels: youbot new-robot" in text
    assert not found[1].warnings
