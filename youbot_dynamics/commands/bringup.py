"""`youbot bringup`: the processes of the launch file, for installations without `ros2 launch`."""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Mapping
from pathlib import Path

from youbot_dynamics.bringup_plan import Process, left_out, network, plan, reach
from youbot_dynamics.bringup_plan.driver import PACKAGE as DRIVER
from youbot_dynamics.bringup_plan.process import OUR_PACKAGE
from youbot_dynamics.bringup_plan.ros_packages import needed_program
from youbot_dynamics.commands.progress import announce
from youbot_dynamics.errors import ParameterError, ResourceError
from youbot_dynamics.nodes.processes import node_command, start, stop_all
from youbot_dynamics.nodes.stop_flag import StopFlag
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.mujoco_engine import engine

_LOOK = 0.05  # [s] between looks at the processes


def bringup(values: Mapping[str, str]) -> int:
    """Run until Ctrl-C, or until a process ends that the others cannot do without.

    Args:
        values: the arguments of `bringup_plan.ARGUMENTS`.

    Returns:
        Exit code: 0 after Ctrl-C, 1 where a process ended by itself.

    Raises:
        YoubotDynamicsError: an argument or a file that cannot be used; nothing has been started then.
    """
    if values["robot"] == "gazebo":
        remedy = "ros2 launch youbot_dynamics bringup.launch.py robot:=gazebo"
        raise ParameterError("robot", got="gazebo", expected="real, mock or mujoco here", remedy=remedy)
    processes = plan(**values)
    check_files(values)
    if importlib.util.find_spec("rclpy") is None:
        raise ResourceError(
            "rclpy",
            got="not installed",
            expected="ROS 2 Jazzy",
            remedy="source /opt/ros/jazzy/setup.bash, or pip install 'youbot_dynamics[ros]'",
        )
    if values["robot"] == "mujoco":
        engine()  # found, new enough, and with the OpenGL it looks for
    for remark in (
        left_out(processes, values["robot"], values["passive"], values["description"]),
        reach(values["robot"], os.environ),
    ):
        if remark:
            announce(remark)
    environment = {**os.environ, **network(values["robot"], os.environ)}
    interrupted = StopFlag()
    vital = {p.executable for p in processes if p.vital}
    running = {p.executable: start(_command(p), environment) for p in processes}
    announce(f"started {', '.join(p.executable for p in processes)}; Ctrl-C stops them")
    ended = ""
    while not interrupted.set and not ended:
        time.sleep(_LOOK)
        for name, child in running.items():
            if name in vital and child.poll() is not None:
                # A bringup without one of its parts is no bringup: better none than half of one.
                ended = name
                announce(f"{name} ended with exit code {child.returncode}: stopping the others")
    last = [running.pop(p.executable) for p in processes if p.last]
    # The robot's ear must outlive those who tell it to stop.
    listeners = [running.pop(name) for name in ("mock_youbot", DRIVER) if name in running]
    for group in (list(running.values()), last, listeners):
        stop_all(group)
    return 1 if ended else 0


def _command(process: Process) -> list[str]:
    """Command line of a process, of this installation or of another package."""
    if process.package == OUR_PACKAGE:
        return node_command(process.executable, process.arguments)
    found = needed_program(process.package, process.executable, "install it")
    return [str(found), *process.arguments]


def check_files(values: Mapping[str, str]) -> None:
    """Read the parameter files as the nodes will, so that a mistake is said once, before anything starts.

    Raises:
        ParameterError: a file that rcl would refuse, an unknown robot parameter, a result of another robot.
    """
    files = {k: Path(values[k]).expanduser() if values[k] else None for k in ("result_file", "params_file")}
    load_robot(files["result_file"], files["params_file"])
