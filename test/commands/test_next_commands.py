"""Commands that are suggested run as they stand: with the robot's file and the paths as they were given."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command_line import exit_code
from homemade import drive_of, write_least

from youbot_dynamics.bringup_plan import BringupOptions, plan
from youbot_dynamics.commands.main import parser
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.robot import assumptions, load_robot

RADIUS, DELAY = "robot.base.geometry.wheel_radius", "robot.base.delay.effective_x"


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with `homemade.yaml` and `drive_1`."""
    monkeypatch.chdir(tmp_path)
    drive_of(write_least(tmp_path), tmp_path / "drive_1", duration=20.0)
    return tmp_path


def started_by(command: str) -> BringupOptions:
    """Options of a bringup as a shell would give them to the program; the robot's file and its result fit."""
    given = vars(parser().parse_args(shlex.split(command.removeprefix("youbot "))))
    options = BringupOptions.read({name: value for name, value in given.items() if name != "verb"})
    assert plan(options)
    return options


def test_page_and_head_of_a_result_bring_up_the_robot_of_the_recording(
    owner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--robot-file", "homemade.yaml", "--only", "delay")
    assert exit_code("identify", "drive_1", "--out", "found", *words) == 0
    command = "youbot bringup --robot real --robot-file homemade.yaml --result-file found/result.yaml"
    assert f"# Use: {command}\n" in (owner / "found" / "result.yaml").read_text()
    (block,) = re.findall(r'<code class="command".*?</code>', (owner / "found" / "report.html").read_text())
    assert re.sub(r"<[^>]*>", "", block) == command
    assert started_by(command).robot == "real"
    capsys.readouterr()
    assert exit_code("bringup", "--robot", "mock", "--result-file", "found/result.yaml") == 1
    assert "give the file that names robot 'homemade': --robot-file" in capsys.readouterr().err


def test_the_robot_file_beside_a_result_is_all_that_the_next_command_needs(owner: Path) -> None:
    words = ("--only", "calibration,delay")
    nodes = "/**/base_controller:\n  ros__parameters:\n    command_interface: 'joint_state'  # speeds of the wheels\n"
    (owner / "homemade.yaml").write_text((owner / "homemade.yaml").read_text() + nodes)
    assert exit_code("identify", "drive_1", "--out", "found", "--robot-file", "homemade.yaml", *words) in (0, 3)
    assert (owner / "found" / "robot.yaml").read_text().endswith(nodes)
    text, values = (owner / "found" / "robot.yaml").read_text(), read_parameters(owner / "found" / "robot.yaml", "")
    (line,) = (line for line in text.splitlines() if line.strip().startswith("effective_x: "))
    low, high = map(float, re.findall(r"# identified, ([\d.]+) to ([\d.]+), from drive_1$", line)[0])
    assert low < values[DELAY] < high  # type: ignore[operator]
    assert assumptions("found/robot.yaml") == "" and ".arm." not in " ".join(values)
    known = load_robot(robot_file=owner / "homemade.yaml")
    whole = load_robot(robot_file=owner / "found" / "robot.yaml")
    assert whole == load_robot("found/result.yaml", robot_file=owner / "homemade.yaml")
    assert whole.driver == known.driver and whole.base.mass == known.base.mass
    (owner / "homemade.yaml").unlink()
    assert exit_code("identify", "drive_1", "--out", "again", "--robot-file", "found/robot.yaml", *words) in (0, 3)
    again = load_robot(robot_file=owner / "again" / "robot.yaml")
    assert (owner / "again" / "robot.yaml").read_text().endswith(nodes)
    # The poses of the same drive have nothing to say against its geometry.
    assert again.base.geometry == whole.base.geometry
    assert again.base.delay.effective() == pytest.approx(whole.base.delay.effective(), abs=1e-3)
    assert started_by("youbot bringup --robot mock --robot-file found/robot.yaml")


def test_a_program_is_played_on_the_robot_for_which_it_was_written(
    owner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("play", "excitation", "--write", "a drive.txt", "--robot-file", "homemade.yaml") == 0
    command = "youbot play 'a drive.txt' --dt 0.02 --robot-file homemade.yaml"
    assert f"play it with: {command}\n" in capsys.readouterr().err
    assert (owner / "a drive.txt").read_text().splitlines()[0].endswith(f": {command}")
    given = parser().parse_args(shlex.split(command)[1:])
    assert (given.program, given.dt, given.robot_file) == ("a drive.txt", 0.02, "homemade.yaml")


def test_an_unnamed_base_is_not_brought_up_but_identified_again_with_a_file(owner: Path) -> None:
    drive_of(owner / "homemade.yaml", owner / "log 2", duration=20.0, named=False)
    assert exit_code("identify", "log 2", "--out", "found", "--only", "body") in (0, 3)
    page = re.sub(r"<[^>]*>", "", (owner / "found" / "report.html").read_text())
    command = "youbot new-robot --bag 'log 2' --out my_robot.yaml"
    assert command in page.replace("&#39;", "'") and "bringup" not in page
    assert "bringup" not in (owner / "found" / "result.yaml").read_text()
    sizes = ("--wheel-radius", "0.05", "--wheelbase", "0.4", "--track", "0.3")
    assert exit_code(*shlex.split(command)[1:], *sizes) == 0
    again = ("log 2", "--robot-file", "my_robot.yaml", "--out", "found", "--overwrite", "--only", "body")
    assert exit_code("identify", *again) in (0, 3)


def test_tape_and_delays_are_used_together_and_a_value_in_both_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    least = write_least(tmp_path)
    for name, leaf in (("tape", "geometry: {wheel_radius: 0.049}"), ("found", "delay: {effective_x: 0.1}")):
        text = f"/**: {{ros__parameters: {{robot: {{robot_id: homemade, base: {{{leaf}}}}}}}}}\n"
        Path(f"{name}.yaml").write_text(text)
    robot = load_robot(("tape.yaml", "found.yaml"), robot_file=least)
    assert (robot.base.geometry.wheel_radius, robot.base.delay.effective_x) == (0.049, 0.1)
    assert robot.driver.wheel_radius == 0.05  # that of the driver is no result
    files = "--result-file tape.yaml --result-file found.yaml"
    options = started_by(f"youbot bringup --robot mock --robot-file homemade.yaml {files}")
    words = next(one for one in plan(options) if one.executable == "base_controller").arguments
    given: dict[str, object] = {}
    for k, word in enumerate(words):
        given |= read_parameters(Path(words[k + 1]), "") if word == "--params-file" else {}
    assert (given[RADIUS], given[DELAY]) == (0.049, 0.1)
    Path("again.yaml").write_text(Path("tape.yaml").read_text())
    with pytest.raises(
        ParameterError, match=r"result files tape\.yaml and again\.yaml: got robot\.base.*radius in both"
    ):
        load_robot(("tape.yaml", "found.yaml", "again.yaml"), robot_file=least)
    assert started_by("youbot bringup --robot mock").result_file == ""
