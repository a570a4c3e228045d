"""Which processes a bringup consists of, with which parameter files and arguments.

Parameter files are given in the order in which the later one wins: ``config/youbot.yaml``, the result of an
identification, the user's own file. A simulated robot reads ``config/mock.yaml`` in place of the result: what
was identified is knowledge about the robot and must not change the robot.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from youbot_dynamics.bringup_plan.arguments import check_choice, existing_file, new_folder, truth
from youbot_dynamics.bringup_plan.driver import DRIVER_REMAPPINGS, driver_process
from youbot_dynamics.bringup_plan.process import (
    RESTARTS,
    Process,
    file_arguments,
    namespace_arguments,
    parameter_arguments,
    remap_arguments,
)
from youbot_dynamics.bringup_plan.shown import STATE_PUBLISHER, description_process, rviz_process
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.resources import config_path

PLANTS = {"mock": "twin", "mujoco": "mujoco"}  # the robots that mock_youbot simulates, and by which plant
_WITH_VIEWER = ("mujoco", "gazebo")
_OF_MOCK = ("cmd_vel", "odom", "joint_states")  # what a driver that nobody has remapped calls its topics
# Not by names that end like the other stack's: a bag with both would have two of a kind.
_PASSIVE_OUTPUT = {"odom": "passive_odom", "joint_states": "passive_joint_states"}


@dataclass(frozen=True)
class _Nodes:
    """What the nodes of one bringup are started with.

    Args:
        common: ROS arguments of every node: namespace, time, log level.
        files: parameter files of our nodes, the later one winning.
        own_file: the user's file alone, or None.
        frame_prefix: put before the names of all frames.
    """

    common: tuple[str, ...]
    files: tuple[Path | None, ...]
    own_file: Path | None
    frame_prefix: str

    def of(self, *more: str, frames: bool = False) -> tuple[str, ...]:
        """ROS arguments of one of our nodes; `frames`: it takes a frame_prefix."""
        prefix = parameter_arguments(frame_prefix=json.dumps(self.frame_prefix)) if frames and self.frame_prefix else ()
        return (*file_arguments(*self.files), *self.common, *prefix, *more)


def plan(
    robot: str = "mock",
    namespace: str = "",
    params_file: str = "",
    result_file: str = "",
    use_sim_time: str | bool = False,
    log_level: str = "info",
    stabilize: str | bool = True,
    estimate_arm: str | bool = True,
    identification: str | bool = False,
    passive: str | bool = False,
    joint_states: str = "joint_states",
    driver: str = "none",
    motors_off: str | bool = False,
    record: str = "",
    description: str | bool = True,
    rviz: str | bool = False,
    frame_prefix: str = "",
    viewer: str | bool = False,
) -> tuple[Process, ...]:
    """List the processes of a bringup; the arguments are those of ``ARGUMENTS``, where each is described.

    Gazebo itself is none of them: its launch file is included beside them.

    Args:
        robot: ``mock``, ``mujoco``, ``gazebo`` or ``real``.
        namespace: namespace of all nodes, with or without a leading slash; empty for none.
        params_file: ROS parameter file that wins over the others; empty for none.
        result_file: result of an identification; empty for none.
        use_sim_time: whether the nodes take their time from ``/clock``; a simulated robot then publishes it.
        log_level: ``debug``, ``info``, ``warn``, ``error`` or ``fatal``.
        stabilize: whether the trajectory tracker runs beside the odometry.
        estimate_arm: whether the arm's filter runs.
        identification: whether the node identification listens.
        passive: whether nothing is commanded.
        joint_states: topic with the driver's joint states, of a passive bringup.
        driver: ``none`` or ``start``, of the real robot.
        motors_off: whether the motors of the base are switched off at the end.
        record: folder of a new bag; empty for none.
        description: whether robot_state_publisher runs.
        rviz: whether RViz is opened.
        frame_prefix: put before the names of all frames.
        viewer: whether a window of the simulation shows the robot.

    Returns:
        The processes in the order of their start; the end of a vital one ends the bringup. ``stop_base``
        stands by from the start: it sends zero when ``base_controller`` falls silent, killed or hung.

    Raises:
        ParameterError: when an argument is none of its choices, the namespace is malformed, or arguments exclude
            each other.
        ResourceError: when a parameter file does not exist, the bag's folder does, or a package that was asked for
            is not installed.
    """
    for name, value in (("robot", robot), ("log_level", log_level), ("driver", driver)):
        check_choice(name, value)
    is_passive, shown = truth("passive", passive), truth("viewer", viewer)
    _check_together(robot, is_passive, shown, driver, frame_prefix)
    with_arm = truth("estimate_arm", estimate_arm)
    sim_time = truth("use_sim_time", use_sim_time) or robot == "gazebo"
    result, own = existing_file("result_file", result_file), existing_file("params_file", params_file)
    bag = new_folder("record", record)
    gazebo = config_path("gazebo/youbot_gazebo.yaml") if robot == "gazebo" else None
    common = (*namespace_arguments(namespace), *parameter_arguments(use_sim_time=sim_time), "--log-level", log_level)
    nodes = _Nodes(common, (config_path("youbot.yaml"), gazebo, result, own), own, frame_prefix)

    processes = []
    if robot in PLANTS:
        processes.append(_mock(nodes, robot, sim_time, shown, is_passive))
    if driver == "start":
        processes.append(driver_process(common, with_arm, own))
    if is_passive:
        processes += _listening(nodes, joint_states, with_arm)
    else:
        processes += _driving(nodes, truth("stabilize", stabilize), with_arm, truth("motors_off", motors_off))
        if robot == "real":
            processes.append(_optional("check_driver", nodes.of()))
        if truth("identification", identification):
            processes.append(_optional("identification", nodes.of()))
    if truth("description", description) and _describes(robot, is_passive):
        process = description_process(common, frame_prefix)
        processes += [process] if process is not None else []
    if bag is not None:
        # Not started again: it would have to write over its bag, and a full disk stays full.
        processes.append(Process("recorder", ("recorder",), common, words=("--out", str(bag)), vital=False))
    if truth("rviz", rviz):
        processes.append(rviz_process(common, frame_prefix))
    return tuple(processes)


def left_out(processes: tuple[Process, ...], robot: str, passive: str | bool, description: str | bool) -> str:
    """Say what of a bringup is left out since it is not installed.

    Args:
        processes: the plan.
        robot: as in ``plan``.
        passive: as in ``plan``.
        description: as in ``plan``.

    Returns:
        One line to tell the user once; empty where nothing is left out.
    """
    wanted = truth("description", description) and _describes(robot, truth("passive", passive))
    if not wanted or any(process.executable == STATE_PUBLISHER for process in processes):
        return ""
    return (
        f"{STATE_PUBLISHER} is not installed: no robot_description and no tf of the links "
        "(sudo apt install ros-jazzy-robot-state-publisher; or leave it out with description false)"
    )


def _describes(robot: str, passive: bool) -> bool:
    """Whether nobody else publishes a description: the other stack, or the launch file of Gazebo."""
    return not passive and robot != "gazebo"


def _check_together(robot: str, passive: bool, shown: bool, driver: str, frame_prefix: str) -> None:
    """Refuse arguments that exclude each other."""
    if shown and robot not in _WITH_VIEWER:
        raise ParameterError(
            "viewer", got=f"robot {robot}", expected="robot mujoco or gazebo", remedy="leave viewer out"
        )
    if driver == "start" and robot != "real":
        raise ParameterError(
            "driver", got=f"start with robot {robot}", expected="robot real", remedy="leave driver out"
        )
    if driver == "start" and passive:
        raise ParameterError(
            "driver", got="start with passive", expected="somebody else's driver", remedy="leave driver or passive out"
        )
    if robot == "gazebo" and frame_prefix:
        raise ParameterError(
            "frame_prefix", got="robot gazebo", expected="real, mock or mujoco", remedy="give a namespace instead"
        )
    if robot == "gazebo" and passive:
        raise ParameterError("passive", got="robot gazebo", expected="real, mock or mujoco", remedy="leave passive out")


def _mock(nodes: _Nodes, robot: str, sim_time: bool, shown: bool, passive: bool) -> Process:
    """The simulated robot; beside passive nodes it is a driver that nobody has remapped."""
    own_names = {DRIVER_REMAPPINGS[name]: name for name in _OF_MOCK}
    more = remap_arguments(own_names) if passive else ()
    more += parameter_arguments(plant=PLANTS[robot])
    more += parameter_arguments(publish_clock=True) if sim_time else ()
    more += parameter_arguments(viewer=True) if shown else ()
    files = (config_path("youbot.yaml"), config_path("mock.yaml"), nodes.own_file)
    of_mock = _Nodes(nodes.common, files, nodes.own_file, nodes.frame_prefix).of(*more, frames=True)
    return Process("mock_youbot", ("mock_youbot",), of_mock)


def _driving(nodes: _Nodes, stabilized: bool, with_arm: bool, motors_off: bool) -> list[Process]:
    """The processes that command the robot and know its state."""
    standby = parameter_arguments(standby=True) + (parameter_arguments(motors_off=True) if motors_off else ())
    processes = [
        Process("stop_base", ("stop_base",), nodes.of(*standby), last=True),
        Process("base_controller", ("base_controller",), nodes.of()),
        Process("odometry", ("odometry", "trajectory_tracker"), nodes.of(frames=True)),
    ]
    if not stabilized:
        # Not `odometry:stabilize`: rcl does not match such a prefix inside a namespace.
        alone = nodes.of(*parameter_arguments(stabilize=False), frames=True)
        processes[-1] = Process("odometry", ("odometry",), alone)
    if with_arm:
        processes.append(_optional("arm_ekf", nodes.of(frames=True)))
    return processes


def _optional(name: str, ros_arguments: tuple[str, ...]) -> Process:
    """One of our nodes that does not move the base."""
    return Process(name, (name,), ros_arguments, vital=False, restarts=RESTARTS)


def _listening(nodes: _Nodes, joint_states: str, with_arm: bool) -> list[Process]:
    """The processes beside somebody else's stack: none of them commands or broadcasts tf."""
    heard = {"driver/joint_states": joint_states}
    of_odometry = remap_arguments({**heard, **_PASSIVE_OUTPUT})
    of_odometry += parameter_arguments(stabilize=False, publish_tf=False)
    processes = [Process("odometry", ("odometry",), nodes.of(*of_odometry, frames=True))]
    if with_arm:
        processes.append(_optional("arm_ekf", nodes.of(*remap_arguments(heard), frames=True)))
    processes.append(_optional("identification", nodes.of(*remap_arguments(heard))))
    return processes
