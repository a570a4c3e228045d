"""Which processes a bringup consists of, with which parameter files and arguments.

The one description that ``launch/bringup.launch.py`` and ``youbot bringup`` both start from, without ROS.
Parameter files are given in the order in which the later one wins: ``config/youbot.yaml``, the result of an
identification, the user's own file. A simulated robot reads ``config/mock.yaml`` in place of the result: what
was identified is knowledge about the robot and must not change the robot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from youbot_dynamics.errors import ParameterError, ResourceError
from youbot_dynamics.resources import config_path

TRUTH_VALUES = ("true", "false")
PLANTS = {"mock": "twin", "mujoco": "mujoco"}  # the robots that mock_youbot simulates, and by which plant

_NAMESPACE = re.compile(r"(/?[A-Za-z_][A-Za-z0-9_]*)+")
_TF_REMAPPINGS = ("/tf:=tf", "/tf_static:=tf_static")


@dataclass(frozen=True)
class Argument:
    """An argument of a bringup.

    Args:
        name: name, the same in the launch file and on the command line.
        default: value where none is given.
        description: one sentence for ``--show-args`` and ``--help``.
        choices: the allowed values; empty where any text is allowed.
    """

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()


ARGUMENTS = (
    Argument(
        "robot",
        "mock",
        "What is driven: `mock` starts the embedded digital twin; `mujoco` a simulation of wheels and rollers in "
        "contact with the floor (extra `sim`); `real` starts no driver: start the youBot driver beside this, its "
        "topics cmd_vel, odom and joint_states remapped to driver/cmd_vel, driver/odom and driver/joint_states, its "
        "tf remapped away.",
        ("real", "mock", "mujoco"),
    ),
    Argument("namespace", "", "Namespace of all nodes and of tf; empty for none."),
    Argument("params_file", "", "ROS parameter file that wins over all others; empty for none."),
    Argument(
        "result_file",
        "",
        "Result of an identification (result.yaml): wins over config/youbot.yaml, loses to params_file; "
        "empty for none.",
    ),
    Argument(
        "use_sim_time",
        "false",
        "Whether the nodes take their time from /clock, which a simulated robot then publishes: true or false.",
    ),
    Argument("log_level", "info", "Log level of all nodes.", ("debug", "info", "warn", "error", "fatal")),
    Argument(
        "stabilize",
        "true",
        "Whether the trajectory_tracker (PID stabilisation) runs beside the odometry: true or false.",
    ),
    Argument(
        "estimate_arm",
        "true",
        "Whether arm_ekf runs, for joint states, friction, payload and motor temperatures of the arm; leave it out "
        "where a robot has none: true or false.",
    ),
    Argument("viewer", "false", "Whether a window shows the robot; of robot `mujoco` only: true or false."),
)


@dataclass(frozen=True)
class Process:
    """One process of a bringup.

    Args:
        executable: console script of this package.
        node_names: nodes the process contains.
        ros_arguments: what follows ``--ros-args`` on its command line.
        last: whether it ends after all others: it has the last word to the robot.
    """

    executable: str
    node_names: tuple[str, ...]
    ros_arguments: tuple[str, ...]
    last: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """Command-line tokens behind the executable."""
        return ("--ros-args", *self.ros_arguments)


def plan(
    robot: str = "mock",
    namespace: str = "",
    params_file: str = "",
    result_file: str = "",
    use_sim_time: str | bool = False,
    log_level: str = "info",
    stabilize: str | bool = True,
    estimate_arm: str | bool = True,
    viewer: str | bool = False,
) -> tuple[Process, ...]:
    """List the processes of a bringup; the arguments are those of ``ARGUMENTS``.

    Args:
        robot: ``mock``, ``mujoco`` or ``real``.
        namespace: namespace of all nodes, with or without a leading slash; empty for none.
        params_file: ROS parameter file that wins over the others; empty for none.
        result_file: result of an identification; empty for none.
        use_sim_time: whether the nodes take their time from ``/clock``; a simulated robot then publishes it.
        log_level: ``debug``, ``info``, ``warn``, ``error`` or ``fatal``.
        stabilize: whether the trajectory tracker runs beside the odometry.
        estimate_arm: whether the arm's filter runs.
        viewer: whether a window shows the robot.

    Returns:
        The processes in the order of their start; the end of any of them ends the bringup. ``stop_base``
        stands by from the start: it sends zero when ``base_controller`` falls silent, killed or hung.

    Raises:
        ParameterError: when an argument is none of its choices, the namespace is malformed, or a robot without a
            viewer shall be shown.
        ResourceError: when a parameter file does not exist.
    """
    check_choice("robot", robot)
    check_choice("log_level", log_level)
    sim_time, stabilized = truth("use_sim_time", use_sim_time), truth("stabilize", stabilize)
    youbot = config_path("youbot.yaml")
    result, own = existing_file("result_file", result_file), existing_file("params_file", params_file)
    common = (
        *namespace_arguments(namespace),
        "-p",
        f"use_sim_time:={str(sim_time).lower()}",
        "--log-level",
        log_level,
    )
    of_nodes = (*_file_arguments(youbot, result, own), *common)
    processes = []
    shown = truth("viewer", viewer)
    if shown and robot != "mujoco":
        raise ParameterError("viewer", got=f"robot {robot}", expected="robot mujoco", remedy="leave viewer out")
    if robot in PLANTS:
        of_mock = (*_file_arguments(youbot, config_path("mock.yaml"), own), *common, "-p", f"plant:={PLANTS[robot]}")
        of_mock += ("-p", "publish_clock:=true") if sim_time else ()
        of_mock += ("-p", "viewer:=true") if shown else ()
        processes.append(Process("mock_youbot", ("mock_youbot",), of_mock))
    odometry = Process("odometry", ("odometry", "trajectory_tracker"), of_nodes)
    if not stabilized:
        # Not `odometry:stabilize`: rcl does not match such a prefix inside a namespace.
        odometry = Process("odometry", ("odometry",), (*of_nodes, "-p", "stabilize:=false"))
    stop = Process("stop_base", ("stop_base",), (*of_nodes, "-p", "standby:=true"), last=True)
    processes += [stop, Process("base_controller", ("base_controller",), of_nodes), odometry]
    if truth("estimate_arm", estimate_arm):
        processes.append(Process("arm_ekf", ("arm_ekf",), of_nodes))
    return tuple(processes)


def truth(name: str, value: str | bool) -> bool:
    """Read a truth value as launch and YAML write it.

    Args:
        name: the argument's name, for the error text.
        value: ``true`` or ``false`` in any case, or the truth value itself.

    Returns:
        The truth value.

    Raises:
        ParameterError: when the value is neither.
    """
    text = str(value).lower()
    if text not in TRUTH_VALUES:
        raise ParameterError(name, got=repr(value), expected="true or false", remedy=f"write {name}:=true")
    return text == "true"


def check_choice(name: str, value: str) -> None:
    """Refuse a value that is none of the choices of an argument.

    Args:
        name: name of an argument in ``ARGUMENTS``.
        value: what the user gave.

    Raises:
        ParameterError: when the value is none of the choices.
    """
    argument = next(argument for argument in ARGUMENTS if argument.name == name)
    if value not in argument.choices:
        raise ParameterError(
            name,
            got=repr(value),
            expected=f"one of {', '.join(argument.choices)}",
            remedy=f"write {name}:={argument.default}",
        )


def existing_file(name: str, value: str) -> Path | None:
    """Return the absolute path of a parameter file the user named, or nothing for an empty name.

    Args:
        name: the argument's name, for the error text.
        value: path of the file, ``~`` allowed; empty for none.

    Returns:
        Absolute path of the file, or None.

    Raises:
        ResourceError: when there is no such file.
    """
    if not value:
        return None
    path = Path(value).expanduser().absolute()
    if not path.is_file():
        raise ResourceError(
            name,
            got=f"{path}, which {'is a folder' if path.is_dir() else 'does not exist'}",
            expected="a ROS parameter file",
            remedy=f"give an existing file or leave {name} out",
        )
    return path


def _file_arguments(*files: Path | None) -> tuple[str, ...]:
    """Return the tokens that load parameter files, the later one winning."""
    return tuple(token for file in files if file is not None for token in ("--params-file", str(file)))


def namespace_arguments(namespace: str) -> tuple[str, ...]:
    """Return the tokens that put a process and its tf into a namespace."""
    name = namespace.strip("/")
    if not name:
        return ()
    if not _NAMESPACE.fullmatch(name):
        raise ParameterError(
            "namespace",
            got=repr(namespace),
            expected="letters, digits and underscores, parts joined by /",
            remedy="write for example namespace:=youbot_1",
        )
    remappings = (f"__ns:=/{name}", *_TF_REMAPPINGS)
    return tuple(token for rule in remappings for token in ("-r", rule))
