"""gazebo.launch.py starts Gazebo, one robot and its topics. Gazebo's programs are stand-ins that say how they began."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("launch_ros", reason="launch_ros is not installed")

from youbot_dynamics.gazebo_description import gazebo_urdf  # noqa: E402
from youbot_dynamics.resources import config_path, launch_path  # noqa: E402

PROGRAMS = {
    "ros_gz_sim": ("create",),
    "ros_gz_bridge": ("parameter_bridge",),
    "robot_state_publisher": ("robot_state_publisher",),
    "controller_manager": ("spawner",),
    "gz_ros2_control": (),
    "joint_state_broadcaster": (),
    "velocity_controllers": (),
    "joint_trajectory_controller": (),
}
# Launch deletes the parameter files it writes, so they are copied.
STAND_IN = """#!/usr/bin/env bash
line="$(basename "$0")"
for token in "$@"; do
    [[ -f "$token" ]] && cp "$token" "{log}.$$.$((++count))" && token="{log}.$$.$count"
    line+=" $token"
done
echo "$line" >>"{log}"
trap 'exit 0' INT TERM
while true; do sleep 0.05; done
"""
GAZEBO = """
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction

def write(context):
    with open("{log}", "a") as log:
        values = context.launch_configurations
        print("gz_sim", values["gz_args"], "on_exit_shutdown:=" + values["on_exit_shutdown"], file=log)

def generate_launch_description():
    return LaunchDescription([DeclareLaunchArgument("gz_args", default_value=""), OpaqueFunction(function=write)])
"""
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import GroupAction, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import PushRosNamespace

path, pushed, *arguments = sys.argv[1:]
include = IncludeLaunchDescription(
    PythonLaunchDescriptionSource(path), launch_arguments=[a.split(":=", 1) for a in arguments]
)
service = LaunchService(noninteractive=True)
push = [PushRosNamespace(pushed)] if pushed else []
service.include_launch_description(LaunchDescription([GroupAction([*push, include])]))
sys.exit(service.run())
"""


def started(folder: Path, count: int, *arguments: str, pushed: str = "", without: str = "") -> tuple[list[str], str]:
    """Lines the stand-ins wrote, waited for until there are `count`, and what the launch printed."""
    log, index = folder / "log", folder / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    for package, programs in PROGRAMS.items():
        if package != without:
            (index / package).touch()
        for program in programs:
            path = folder / "lib" / package / program
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(STAND_IN.format(log=log))
            path.chmod(0o755)
    share = folder / "share" / "ros_gz_sim" / "launch"
    share.mkdir(parents=True)
    (share / "gz_sim.launch.py").write_text(GAZEBO.format(log=log))
    environment = {**os.environ, "AMENT_PREFIX_PATH": str(folder), "ROS_LOG_DIR": str(folder / "logs")}
    command = [sys.executable, "-c", LAUNCH, str(launch_path("gazebo.launch.py")), pushed, *arguments]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    deadline, lines = time.monotonic() + 15.0, []
    while process.poll() is None and time.monotonic() < deadline:
        lines = log.read_text().splitlines() if log.exists() else []
        if len(lines) >= count:
            break
        time.sleep(0.05)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=20.0)
    return lines, printed


def of(lines: list[str], program: str) -> str:
    (line,) = (line for line in lines if line.startswith(f"{program} "))
    return line


def parameters(line: str) -> dict[str, object]:
    """What the parameter files on a command line say."""
    found: dict[str, object] = {}
    for path in re.findall(r"--params-file (\S+)", line):
        for section in yaml.safe_load(Path(path).read_text(encoding="utf-8")).values():
            found |= section["ros__parameters"]
    return found


def test_gazebo_a_robot_and_its_topics_are_started(tmp_path):
    lines, printed = started(tmp_path, 6, "headless:=true", "x:=1.5", "yaw:=0.5")
    assert len(lines) == 6, printed
    assert of(lines, "gz_sim") == f"gz_sim -r -s {config_path('gazebo/youbot.sdf')} on_exit_shutdown:=true"
    create = of(lines, "create")
    assert "-topic robot_description -name youbot -x 1.5 -y 0.0 -Y 0.5 " in create
    assert "-r __ns:=/" in create
    spawner = of(lines, "spawner")
    assert "spawner joint_state_broadcaster wheel_velocity_controller arm_controller --controller-ros-args" in spawner
    assert "-r joint_states:=driver/joint_states -r arm_controller/joint_trajectory:=" in spawner
    publisher = of(lines, "robot_state_publisher")
    description = gazebo_urdf(config_path("gazebo/controllers.yaml"))
    assert parameters(publisher) == {"robot_description": description, "use_sim_time": True}
    assert "tf:=" not in publisher
    bridges = [line for line in lines if line.startswith("parameter_bridge")]
    (clock,) = (line for line in bridges if "__node:=clock_bridge" in line)
    (topics,) = (line for line in bridges if "__node:=gazebo_bridge" in line)
    assert parameters(clock) == {"config_file": str(config_path("gazebo/clock_bridge.yaml"))}
    opened = {"config_file": str(config_path("gazebo/bridge.yaml")), "expand_gz_topic_names": True}
    assert parameters(topics) == {**opened, "use_sim_time": True}


def test_a_second_robot_joins_in_its_namespaces_with_its_own_tf(tmp_path):
    lines, printed = started(tmp_path, 4, "namespace:=robot_2", "server:=false", "y:=2.0", pushed="hall")
    assert len(lines) == 4, printed
    assert "-name hall_robot_2 -x 0.0 -y 2.0 " in of(lines, "create")
    for program in ("create", "spawner", "robot_state_publisher", "parameter_bridge"):
        assert "-r __ns:=/hall/robot_2" in of(lines, program)
    publisher = of(lines, "robot_state_publisher")
    assert "-r /tf:=tf -r /tf_static:=tf_static" in publisher
    description = parameters(publisher)["robot_description"]
    assert description == gazebo_urdf(config_path("gazebo/controllers.yaml"), "hall/robot_2")


def test_what_is_not_installed_is_named_with_its_remedy(tmp_path):
    lines, printed = started(tmp_path, 1, without="gz_ros2_control")
    assert not lines
    assert "packages that are not installed: sudo apt install ros-jazzy-gz-ros2-control" in printed


def test_every_argument_is_described():
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    described = get_launch_description_from_python_launch_file(str(launch_path("gazebo.launch.py")))
    arguments = {argument.name: argument for argument in described.get_launch_arguments()}
    assert set(arguments) == {"namespace", "headless", "use_sim_time", "world", "server", "x", "y", "yaw"}
    assert all(". " in f"{argument.description} " for argument in arguments.values())
    choices = {name for name, argument in arguments.items() if argument.choices}
    assert choices == {"headless", "use_sim_time", "server"}
