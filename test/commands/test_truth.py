"""The truth that `youbot demo` and `youbot try` print is that of the twin they have started."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from acceptance_bags import bag_of_twin, base_run, drawn_base, truths_of_delay, truths_of_geometry
from delay_runs import ramps
from named_findings import named_finding

from youbot_dynamics.commands._demo import folder_of_demo, print_truth, same_twin, true_values
from youbot_dynamics.commands.main import parser
from youbot_dynamics.identification.least_squares import Estimate, Unknown, undetermined
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.report import write_outputs
from youbot_dynamics.report._answer import _row
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant

SEED = 4


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    twists = ramps(SEED, 40.0).twists
    return bag_of_twin(tmp_path_factory.mktemp("drive") / "drive", SEED, twists, None), twists


def test_the_truth_told_is_that_of_the_twin_and_of_its_exact_motion(drive: tuple[Path, np.ndarray]) -> None:
    bag, twists = drive
    values, truth = true_values(SEED, bag), drawn_base(SEED)
    assert {name: values[name] for name in truths_of_geometry(truth)} == pytest.approx(truths_of_geometry(truth))
    assert values["robot.base.response.dead_time_y"] == truth.dead_time_y
    plant = BasePlant(truth, load_robot().driver, SEED)
    # By brute force, and in the axes of our own geometry: the twin's differs by up to a twentieth.
    delays = truths_of_delay(base_run(plant, plant.advance, twists, SEED), twists)
    assert {name: values[name] for name in delays} == pytest.approx(delays, abs=2e-3)


def test_terminal_and_page_show_the_truth_beside_what_was_found(
    drive: tuple[Path, np.ndarray], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = identify([drive[0]], load_robot(), Options(), only=("calibration", "delay"))
    truth = true_values(SEED, drive[0])
    print_truth(found.result, truth, SEED)
    said = capsys.readouterr().out
    assert f"truth of twin {SEED}" in said
    write_outputs(tmp_path, found, (), "a twin", truth)
    page = (tmp_path / "report.html").read_text()
    assert 'id="truth"' in page
    (count,) = (line for line in said.splitlines() if "identified values have the truth within" in line)
    assert count.strip() in page
    assert "delay forward" in said and " hit" in said and max(map(len, said.splitlines())) <= 80
    assert "robot.base.delay.effective_x" in page
    write_outputs(tmp_path, found, (), "a robot")
    assert 'id="truth"' not in (tmp_path / "report.html").read_text()


def test_the_page_of_a_demo_offers_the_bringup_of_the_same_twin(tmp_path: Path) -> None:
    words = shlex.split(same_twin(tmp_path / "a demo", Path("x3.yaml")))
    given = vars(parser().parse_args(["bringup", *words]))
    assert (given["robot"], given["robot_file"]) == ("mock", "x3.yaml")
    with folder_of_demo(tmp_path / "a demo", 7):
        assert read_parameters(Path(given["params_file"]), "mock_youbot")["seed"] == 7


def test_a_number_without_a_unit_has_none_in_the_table() -> None:
    estimate = Estimate("factor", "1", 0.95, 0.01, (0.93, 0.97))
    assert _row(named_finding("robot.base.geometry.lateral_factor", estimate))[3] == ""
    unknown = undetermined(Unknown("factor", "1", unexcited="the base did not move sideways"))
    assert _row(named_finding("factor", unknown))[1:4] == ("-", "-", "")


def test_the_pose_of_what_reports_the_poses_is_judged_too(drive: tuple[Path, np.ndarray]) -> None:
    values = true_values(SEED, drive[0])
    of_sensor = ("sensor_x", "sensor_y", "sensor_yaw", "time_offset", "pose_smoothing")
    assert [values[f"base.geometry.{name}"] for name in of_sensor] == [0.0] * 5
