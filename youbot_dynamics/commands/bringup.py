"""`youbot bringup`: the processes of the launch file, for installations without `ros2 launch`."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path

from youbot_dynamics.bringup_plan import plan
from youbot_dynamics.commands.progress import announce
from youbot_dynamics.errors import ResourceError
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
    interrupted = StopFlag()
    running = {p.executable: start(node_command(p.executable, p.arguments)) for p in processes}
    announce(f"started {', '.join(p.executable for p in processes)}; Ctrl-C stops them")
    ended = ""
    while not interrupted.set and not ended:
        time.sleep(_LOOK)
        for name, child in running.items():
            if child.poll() is not None:
                # A bringup without one of its parts is no bringup: better none than half of one.
                ended = name
                announce(f"{name} ended with exit code {child.returncode}: stopping the others")
    last = [running.pop(p.executable) for p in processes if p.last]
    # The robot's ear must outlive those who tell it to stop.
    listeners = [running.pop(name) for name in ("mock_youbot",) if name in running]
    for group in (list(running.values()), last, listeners):
        stop_all(group)
    return 1 if ended else 0


def check_files(values: Mapping[str, str]) -> None:
    """Read the parameter files as the nodes will, so that a mistake is said once, before anything starts.

    Raises:
        ParameterError: a file that rcl would refuse, an unknown robot parameter, a result of another robot.
    """
    files = {k: Path(values[k]).expanduser() if values[k] else None for k in ("result_file", "params_file")}
    load_robot(files["result_file"], files["params_file"])
