"""identify.launch.py and its session: record, drive, fit, write; every failure in one line, nothing half done."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from youbot_dynamics.bringup_plan import IDENTIFY_ARGUMENTS
from youbot_dynamics.resources import config_path, launch_path

pytest.importorskip("rclpy")

from ros_processes import PATIENCE, Processes, environment  # noqa: E402

SESSION = [sys.executable, "-m", "youbot_dynamics.commands.identify"]
ROS = ["--ros-args", "--params-file", str(config_path("youbot.yaml"))]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [*SESSION, *words, *ROS]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE)


def test_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "result.yaml").write_text("kept")
    done = run("--out", str(tmp_path))
    assert done.returncode == 1
    assert f"error: --out: got {tmp_path}, which is not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["result.yaml"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--only", "dealy"), "error: --only: got 'dealy'; expected names from"),
        (("--wait", "nan"), "error: --wait: got nan; expected a finite number above 0"),
        (("--duration", "-1"), "error: --duration: got -1; expected a finite number above 0"),
        (("--duration", "5"), "error: --duration: got 5 s; expected 20 to 600 s"),
        (("--room", "0.1"), "error: --room: got 0.1 m; expected 0.3 to 10 m"),
    ],
)
def test_options_that_cannot_be_used_are_refused_before_the_drive(tmp_path, words, expected):
    done = run("--out", str(tmp_path / "found"), *words)
    assert done.returncode == 1 and expected in done.stderr
    assert not (tmp_path / "found").exists()


@pytest.mark.ros
def test_without_a_robot_it_says_what_it_waited_for(tmp_path):
    done = run("--out", str(tmp_path / "found"), "--namespace", "yb1", "--wait", "1.0")
    assert done.returncode == 1
    assert "got nothing on /yb1/driver/joint_states or /yb1/odom; expected a running robot" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.ros
def test_signal_ends_it_and_the_bag_is_whole(tmp_path):
    found = tmp_path / "found"
    with Processes() as processes:
        child = processes.run([*SESSION, "--out", str(found), *ROS])
        while not (found / "recording" / "metadata.yaml").exists():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        output = child.communicate(timeout=PATIENCE)[0]
    assert child.returncode == 1
    assert "Traceback" not in output
    assert not (found / "result.yaml").exists()


@pytest.mark.ros
@pytest.mark.slow
def test_robot_is_recorded_driven_and_identified(tmp_path):
    from youbot_dynamics.bringup_plan import BringupOptions, plan
    from youbot_dynamics.nodes.processes import node_command
    from youbot_dynamics.recording.bag import open_bag
    from youbot_dynamics.robot import load_robot

    found = tmp_path / "found"
    with Processes() as processes:
        for process in plan(BringupOptions(namespace="yb1", estimate_arm=False, description=False)):
            processes.run(node_command(process.executable, process.arguments))
        words = ["--out", str(found), "--namespace", "yb1", "--duration", "20.0", "--only", "delay"]
        child = processes.run([*SESSION, *words, *ROS, "-r", "__ns:=/yb1"])
        output = child.communicate(timeout=180.0)[0]
    assert child.returncode in (0, 3), output
    assert {"/yb1/wheel_commands", "/yb1/odom", "/yb1/trajectory"} <= set(open_bag(found / "recording").topics)
    assert load_robot(found / "result.yaml").base.delay.effective_x > 0.05
    assert (found / "report.html").stat().st_size > 10_000


LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import ExecuteProcess, GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

path, *arguments = sys.argv[1:]
include = IncludeLaunchDescription(
    PythonLaunchDescriptionSource(path), launch_arguments=[a.split(":=", 1) for a in arguments]
)
# Its 4 s begin with the failure in the log of launch: how long the session takes to fail is the machine's affair.
failed = "until grep -rqs 'identification [f]ailed' \\"$ROS_LOG_DIR\\"; do sleep 0.2; done"
beside = ExecuteProcess(cmd=["sh", "-c", failed + "; sleep 4; echo went on"], output="screen")
service = LaunchService(noninteractive=True)
service.include_launch_description(LaunchDescription([GroupAction([include]), beside]))
sys.exit(service.run())
"""


def launched(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The launch file, with the programs installed in a folder as colcon does."""
    command = [sys.executable, "-c", LAUNCH, str(launch_path("identify.launch.py")), *arguments]
    program = folder / "lib" / "youbot_dynamics" / "identify_robot"
    index = folder / "share" / "ament_index" / "resource_index" / "packages" / "youbot_dynamics"
    for path in (program, index):
        path.parent.mkdir(parents=True)
        path.touch(0o755)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m youbot_dynamics.commands.identify "$@"\n')
    prefixes = os.pathsep.join([str(folder), os.environ.get("AMENT_PREFIX_PATH", "")])
    where = {**environment(), "ROS_LOG_DIR": str(folder / "log"), "AMENT_PREFIX_PATH": prefixes}
    where.pop("ROS_NAMESPACE", None)
    return subprocess.run(command, env=where, capture_output=True, text=True, timeout=PATIENCE, cwd=os.sep)


def test_every_argument_is_declared_with_description_and_choices():
    pytest.importorskip("launch_ros", reason="launch_ros is not installed")
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    description = get_launch_description_from_python_launch_file(str(launch_path("identify.launch.py")))
    declared = {argument.name: argument for argument in description.get_launch_arguments()}
    assert list(declared) == [argument.name for argument in IDENTIFY_ARGUMENTS]
    for argument in IDENTIFY_ARGUMENTS:
        assert declared[argument.name].description.startswith(argument.description)
        assert tuple(declared[argument.name].choices or ()) == argument.choices


def test_missing_folder_ends_the_launch_with_status_1(tmp_path):
    pytest.importorskip("launch_ros", reason="launch_ros is not installed")
    done = launched("robot:=none", folder=tmp_path)
    assert done.returncode == 1
    assert "out: got no folder; expected where to write the result" in done.stdout + done.stderr


@pytest.mark.ros
@pytest.mark.parametrize("shutdown", ["true", "false"])
def test_failure_ends_the_launch_with_status_1_unless_it_shall_go_on(tmp_path, shutdown):
    pytest.importorskip("launch_ros", reason="launch_ros is not installed")
    words = ("robot:=none", f"out:={tmp_path / 'found'}", "wait:=1.0", f"shutdown:={shutdown}")
    done = launched(*words, folder=tmp_path)
    output = done.stdout + done.stderr
    assert "identification failed with exit code 1" in output
    assert done.returncode == (1 if shutdown == "true" else 0), output
    assert ("[sh-2] went on" in output) == (shutdown == "false")
