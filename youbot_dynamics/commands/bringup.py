"""`youbot bringup`: start the processes of the launch file without `ros2 launch`."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from youbot_dynamics.bringup_plan import (
    DRIVER,
    OUR_PACKAGE,
    RESTART_PAUSE,
    BringupOptions,
    Process,
    assumed_by,
    left_out,
    needed_program,
    network,
    plan,
    reach,
)
from youbot_dynamics.commands._terminal import announce
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.nodes.local_socket import BACK, LOST, check_folder, notify
from youbot_dynamics.nodes.processes import StopFlag, node_command, start, stop_all
from youbot_dynamics.simulation.mujoco_youbot import engine

_LOOK = 0.05  # interval between checks of the processes [s]


def bringup(options: BringupOptions) -> int:
    """Run until Ctrl-C (returns 0) or until a vital process ends by itself (returns 1).

    Raises:
        YoubotDynamicsError: an argument or a file is invalid; nothing was started.
    """
    if options.robot == "gazebo":
        remedy = "ros2 launch youbot_dynamics bringup.launch.py robot:=gazebo"
        raise ParameterError("robot", got="gazebo", expected="real, mock, identified or mujoco here", remedy=remedy)
    processes = plan(options)
    if not options.passive:
        check_folder()
    if options.robot == "mujoco":
        engine()  # checks that MuJoCo is installed, recent enough and finds OpenGL
    for remark in (assumed_by(options), left_out(processes, options), reach(options.robot, os.environ)):
        if remark:
            announce(remark)
    environment = {**os.environ, **network(options.robot, os.environ)}
    interrupted = StopFlag()
    fleet = _Fleet(processes, environment, options.namespace)
    announce(f"started {', '.join(p.title for p in processes)}; Ctrl-C stops them")
    ended = ""
    while not interrupted.set and not ended:
        time.sleep(_LOOK)
        ended = fleet.look()
    running = fleet.running
    last = [running.pop(p.executable) for p in processes if p.last]
    # The driver or the simulated robot must outlive the nodes that send it the stop command.
    listeners = [running.pop(name) for name in ("mock_youbot", DRIVER) if name in running]
    for group in (list(running.values()), last, listeners):
        stop_all(group)
    return 1 if ended else 0


class _Fleet:
    """The processes of a bringup; restarts a process that is not vital a few times if it ends."""

    def __init__(self, processes: Sequence[Process], environment: Mapping[str, str], namespace: str) -> None:
        self._processes = processes
        self._environment = environment
        self._namespace = namespace
        self._restarts: Counter[str] = Counter()
        self._due: dict[str, float] = {}  # restart time of each process
        self.running = {p.executable: start(_command(p), environment) for p in processes}

    def look(self) -> str:
        """Return the name of a vital process that has ended, which ends the bringup; "" while all run."""
        for process in self._processes:
            name, child = process.executable, self.running.get(process.executable)
            if child is None:
                if time.monotonic() > self._due.get(name, math.inf):
                    self._restart(process)
            elif child.poll() is not None:
                if process.vital:
                    announce(f"{name} ended with exit code {child.returncode}: stopping the others")
                    return name
                del self.running[name]
                if process.missed:
                    self._lose(process, child.returncode)
        return ""

    def _lose(self, process: Process, code: int) -> None:
        text, again = process.loss(code, self._restarts[process.executable])
        notify(self._namespace, process.executable, LOST, text)
        announce(f"{process.executable} {text}")
        if again:
            self._due[process.executable] = time.monotonic() + RESTART_PAUSE

    def _restart(self, process: Process) -> None:
        del self._due[process.executable]
        self._restarts[process.executable] += 1
        try:
            self.running[process.executable] = start(_command(process), self._environment)
        except OSError as problem:  # for example too little memory
            self._lose(process, problem.errno or 1)
            return
        notify(self._namespace, process.executable, BACK, "had ended and was restarted")


def _command(process: Process) -> list[str]:
    """Return the command line of a process of this or another package."""
    if process.package == OUR_PACKAGE:
        return node_command(process.executable, process.arguments)
    return [str(needed_program(process.package, process.executable, "install it")), *process.arguments]
