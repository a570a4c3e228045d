"""Which processes a bringup consists of, with which parameter files and arguments; the identification beside it.

Parameter files are given in the order in which the later one wins: ``config/youbot.yaml``, the robot file, the result
of an identification, the user's own file. A simulated robot reads ``config/mock.yaml`` in place of the result: what
was identified is knowledge about the robot and must not change the robot.

Names, parameters and topics of the driver are those of a2s-institute/youbot_driver_ros_interface, branch foxy-devel.
It subscribes to cmd_vel, publishes odom, base/joint_states and arm_1/joint_states and broadcasts odom -> base_footprint
on /tf.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from youbot_dynamics.bringup_plan._arguments import (
    ARGUMENTS,
    NAME_PART,
    Argument,
    BringupOptions,
    check_choice,
    existing_file,
    existing_results,
    new_folder,
    option_words,
    positive,
    truth,
)
from youbot_dynamics.errors import ParameterError, ResourceError
from youbot_dynamics.identification.stages import STAGES, chosen_stages
from youbot_dynamics.parameter_file import format_value
from youbot_dynamics.parameters import is_unknown
from youbot_dynamics.resources import config_path, robot_path, urdf_path
from youbot_dynamics.robot import ARM_FACTS, PREFIX, ResultFiles, assumptions, load_robot, open_facts, values_of

_RANGE, _DOMAIN = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_DOMAIN_ID"


def network(robot: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to add for the processes of a robot: simulated ones stay on this machine unless it is set."""
    return {_RANGE: "LOCALHOST"} if robot in _PLANTS and not environment.get(_RANGE) else {}


def reach(robot: str, environment: Mapping[str, str]) -> str:
    """One line about the network from which the real robot can be commanded; empty for a simulated one."""
    if robot != "real":
        return ""
    place = f"{_RANGE} {environment.get(_RANGE) or 'SUBNET'}, {_DOMAIN} {environment.get(_DOMAIN) or 0}"
    return f"{place}: every ROS 2 program within can command this robot (docs/security.md)"


RESTART_PAUSE = 2.0  # [s]
RESTARTS = 3
OUR_PACKAGE = "youbot_dynamics"

_NAMESPACE = re.compile(rf"{NAME_PART}(/{NAME_PART})*")


@dataclass(frozen=True)
class Process:
    """One process of a bringup."""

    executable: str
    node_names: tuple[str, ...]  # it contains
    ros_arguments: tuple[str, ...]  # behind --ros-args
    last: bool = False  # it ends after all others: it sends the last command to the robot
    words: tuple[str, ...] = ()  # arguments of its own, before --ros-args
    package: str = OUR_PACKAGE
    vital: bool = True  # its end ends the bringup: it moves or guards the base
    restarts: int = 0  # how often it is started again, where it is not vital
    missed: bool = True  # its end is reported, where it is not vital

    @property
    def arguments(self) -> tuple[str, ...]:
        """Command-line tokens behind the executable."""
        return (*self.words, "--ros-args", *self.ros_arguments)

    @property
    def title(self) -> str:
        """Its name, with those of the further nodes in it."""
        return " with ".join(part for part in (self.executable, ", ".join(self.node_names[1:])) if part)

    def loss(self, code: int | None, restarted: int) -> tuple[str, bool]:
        """Report on its end with an exit code, and whether it is started again after `RESTART_PAUSE`.

        It is not vital, and has been started again `restarted` times.
        """
        again = restarted < self.restarts
        text = f"started again, time {restarted + 1} of {self.restarts}" if again else "its log may say why"
        return f"ended with exit code {code}, and the others continue without it: {text}", again


def file_arguments(*files: Path | None) -> tuple[str, ...]:
    """Tokens that load parameter files, the later one winning."""
    return tuple(token for file in files if file is not None for token in ("--params-file", str(file)))


def parameter_arguments(**values: str | bool | float | Path) -> tuple[str, ...]:
    """Tokens that set parameters."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    return tuple(token for name, text in texts.items() for token in ("-p", f"{name}:={text}"))


def remap_arguments(rules: dict[str, str]) -> tuple[str, ...]:
    """Tokens that remap names; of several rules for one name the first wins."""
    return tuple(token for name, other in rules.items() for token in ("-r", f"{name}:={other}"))


def robot_arguments(
    robot_file: Path | None, params_file: Path | None, result_file: ResultFiles = None
) -> tuple[str, ...]:
    """Tokens that set what is assumed of another robot than the youBot, whose values the nodes would have without.

    An arm of which friction or motors are unknown is none for the nodes.

    Raises:
        ParameterError: a URDF instead of a robot file, which nodes cannot read.
    """
    if robot_file is not None and robot_file.suffix.lower() == ".urdf":
        remedy = f"write arm: {{urdf: {robot_file.name}}} into a robot file: docs/new_robot.md"
        got, expected = "a URDF alone, which nodes cannot read", "a robot file"
        raise ParameterError(f"robot file {robot_file}", got=got, expected=expected, remedy=remedy)
    youbot = values_of(load_robot())
    assumed = open_facts(robot_file, params_file, result_file)
    if any(map(is_unknown, assumed.values())):
        of_base = {name: value for name, value in assumed.items() if not name.startswith(ARM_FACTS)}
        assumed = {**of_base, f"{PREFIX}.has_arm": False}
    return parameter_arguments(**{name: format_value(v) for name, v in assumed.items() if v != youbot.get(name, v)})


def namespace_arguments(namespace: str) -> tuple[str, ...]:
    """Tokens that put a process and its tf into a namespace, with or without a leading slash; empty for none.

    Raises:
        ParameterError: the namespace is malformed.
    """
    name = namespace.strip("/")
    if not name:
        return ()
    if not _NAMESPACE.fullmatch(name):
        raise ParameterError(
            "namespace",
            got=repr(namespace),
            expected="letters, digits and single underscores, parts joined by /",
            remedy="write for example namespace:=youbot_1",
        )
    return remap_arguments({"__ns": f"/{name}", "/tf": "tf", "/tf_static": "tf_static"})


def _program(package: str, name: str) -> Path | None:
    """Program of a package; None where it is not installed."""
    paths = (prefix / "lib" / package / name for prefix in _prefixes())
    return next((path for path in paths if os.access(path, os.X_OK) and path.is_file()), None)


def needed_program(package: str, name: str, remedy: str) -> Path:
    """Program of a package that the user has asked for.

    Raises:
        ResourceError: it is not installed.
    """
    path = _program(package, name)
    if path is None:
        raise ResourceError(
            f"package {package}",
            got=f"no program {name} of it in any folder of AMENT_PREFIX_PATH",
            expected="the package installed and its setup.bash sourced",
            remedy=remedy,
        )
    return path


def _prefixes() -> Iterator[Path]:
    """Folders that a sourced ROS 2 and its workspaces announce."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(prefix).absolute()


DRIVER = "youbot_driver_ros_interface"  # package and program

# Its topics become those of this package; both JointState topics become one.
DRIVER_REMAPPINGS = {
    "cmd_vel": "driver/cmd_vel",
    "odom": "driver/odom",
    "base/joint_states": "driver/joint_states",
    "arm_1/joint_states": "driver/joint_states",
    "joint_states": "driver/joint_states",
    "/tf": "driver/tf",
}
_CONFIGURATION = "youbot_driver"  # package with youbot-ethercat.cfg, youbot-base.cfg, youbot-manipulator.cfg
_REMEDY = (
    "build a2s-institute/youbot_driver and youbot_driver_ros_interface (branch foxy-devel) in your workspace and "
    "source it, or start a driver yourself and leave driver out"
)


def driver_process(common: tuple[str, ...], arm: bool, params_file: Path | None) -> Process:
    """The driver of a robot with or without arm; the user's file for ``/**/youbot_oodl_driver`` has priority.

    Raises:
        ResourceError: it is not installed.
    """
    needed_program(DRIVER, DRIVER, _REMEDY)
    values: dict[str, str | bool | float] = {"youBotHasBase": True, "youBotHasArms": arm}
    values |= {"youBotBaseName": "youbot-base"} | ({"youBotArmName1": "youbot-manipulator"} if arm else {})
    # Reading the gripper blocks the driver's loop: seldom.
    values |= {"youBotDriverCycleFrequencyInHz": 50.0, "youBotDriverGripperReadingsCycleFrequencyInHz": 1.0}
    shares = (prefix / "share" / _CONFIGURATION for prefix in _prefixes())
    if (share := next((path for path in shares if path.is_dir()), None)) is not None:
        values["youBotConfigurationFilePath"] = str(share / "config")
    return Process(
        DRIVER,
        ("youbot_oodl_driver",),
        # Of two rules for /tf the first wins: the driver's own, before that of a namespace.
        (*remap_arguments(DRIVER_REMAPPINGS), *parameter_arguments(**values), *file_arguments(params_file), *common),
        package=DRIVER,
    )


def ros_arguments(namespace: str, robot_file: str, params_file: Path | None) -> list[str]:
    """Words that give one of our programs the namespace, files and assumed facts of a robot; none for the youBot.

    Raises:
        ParameterError, ResourceError: a malformed namespace, or a file that does not exist or is refused.
    """
    robot = robot_path(robot_file)
    own = existing_file("params_file", str(params_file)) if params_file is not None else None
    tokens = [*namespace_arguments(namespace), *file_arguments(robot, own), *robot_arguments(robot, own)]
    return ["--ros-args", *tokens] if tokens else []


STATE_PUBLISHER = "robot_state_publisher"


def description_process(common: tuple[str, ...], frame_prefix: str) -> Process | None:
    """robot_state_publisher, for robot_description and the tf of the links; None where not installed."""
    if _program(STATE_PUBLISHER, STATE_PUBLISHER) is None:
        return None
    # A value is read as YAML: quoted as in JSON it stays one text, whatever the URDF contains.
    text = json.dumps(urdf_path("youbot.urdf").read_text(encoding="utf-8"))
    values = parameter_arguments(robot_description=text)
    values += parameter_arguments(frame_prefix=json.dumps(frame_prefix)) if frame_prefix else ()
    name = STATE_PUBLISHER
    return Process(name, (name,), (*common, *values), package=name, vital=False, restarts=RESTARTS)


def rviz_process(common: tuple[str, ...], frame_prefix: str) -> Process:
    """RViz; closing its window ends nothing else.

    Raises:
        ResourceError: RViz or its layout is not installed.
    """
    needed_program("rviz2", "rviz2", "sudo apt install ros-jazzy-rviz2, or leave rviz out")
    fixed_frame = ("-f", f"{frame_prefix}odom") if frame_prefix else ()
    words = ("-d", str(config_path("youbot.rviz")), *fixed_frame)
    return Process("rviz2", ("rviz2",), common, words=words, package="rviz2", vital=False, missed=False)


_PLANTS = {"mock": "twin", "identified": "twin", "mujoco": "mujoco"}  # the robots of mock_youbot, and their plants
_OF_MOCK = ("cmd_vel", "odom", "joint_states")  # topics of a driver without remapping
# Not names that end like the other stack's: a bag with both would have two of a kind.
_PASSIVE_OUTPUT = {"odom": "passive_odom", "joint_states": "passive_joint_states"}


@dataclass(frozen=True)
class _Nodes:
    """ROS arguments and parameter files of the nodes of one bringup."""

    common: tuple[str, ...]  # ROS arguments of every node: namespace, time, log level
    files: tuple[Path | None, ...]  # parameter files of our nodes, the later one winning
    own_file: Path | None  # the user's file alone
    frame_prefix: str
    robot_file: Path | None

    def of(self, *more: str, frames: bool = False) -> tuple[str, ...]:
        """ROS arguments of one of our nodes; `frames`: it takes a frame_prefix."""
        prefix = parameter_arguments(frame_prefix=json.dumps(self.frame_prefix)) if frames and self.frame_prefix else ()
        return (*file_arguments(*self.files), *self.common, *prefix, *more)


def plan(options: BringupOptions | None = None) -> tuple[Process, ...]:
    """Processes of a bringup in the order of their start; by the default options where none are given.

    Gazebo itself is none of them: its launch file is included beside them. The end of a vital one ends the bringup.
    ``stop_base`` stands by from the start: it sends zero when ``base_controller`` falls silent, killed or hung.

    Raises:
        ParameterError: a malformed namespace.
        ResourceError: a parameter file or a package that was asked for does not exist, or the bag's folder does.
    """
    given = BringupOptions() if options is None else options
    sim_time = given.use_sim_time or given.robot == "gazebo"
    results, own = existing_results(given.result_file), existing_file("params_file", given.params_file)
    bag = new_folder("record", given.record)
    gazebo = config_path("gazebo/youbot_gazebo.yaml") if given.robot == "gazebo" else None
    common = namespace_arguments(given.namespace) + parameter_arguments(use_sim_time=sim_time)
    common, robot = (*common, "--log-level", given.log_level), robot_path(given.robot_file)
    own_common = common + robot_arguments(robot, own, results)
    facts = load_robot(results, own, robot)
    fixed = None if facts.base.geometry.moves_sideways else config_path("fixed_wheels.yaml")
    files = config_path("youbot.yaml"), fixed, robot, gazebo, *results, own
    if facts.arm.urdf != load_robot().arm.urdf:  # else each node would resolve a relative path by itself
        own_common += parameter_arguments(**{f"{PREFIX}.arm.urdf": facts.arm.urdf})
    if given.robot != "real":  # simulated drivers stamp when they read
        own_common += parameter_arguments(**{f"{PREFIX}.base.delay.stamps": 0.0})
    nodes = _Nodes(own_common, files, own, given.frame_prefix, robot)
    given = replace(given, estimate_arm=given.estimate_arm and facts.has_arm and facts.arm.is_known)
    if not facts.has_base:
        got, remedy = "an arm alone", "ros2 run youbot_dynamics arm_ekf with its parameters: docs/interface.md"
        raise ParameterError(f"robot file {robot}", got=got, expected="a robot with a base", remedy=remedy)

    processes = [_mock(nodes, given, sim_time)] if given.robot in _PLANTS else []
    if given.driver == "start":
        processes.append(driver_process(common, facts.has_arm, own))
    if given.passive:
        processes += _passive(nodes, given)
    else:
        processes += _driving(nodes, given)
        if given.robot == "real":
            processes.append(_optional("check_driver", nodes.of(*_gyro(given))))
        if given.identification:
            processes.append(_optional("identification", nodes.of()))
    if _describes(given):
        process = description_process(common, given.frame_prefix)
        processes += [process] if process is not None else []
    if bag is not None:
        # Not started again: it would have to write over its bag, and a full disk stays full.
        processes.append(Process("recorder", ("recorder",), common, words=("--out", str(bag)), vital=False))
    if given.rviz:
        processes.append(rviz_process(common, given.frame_prefix))
    return tuple(processes)


def left_out(processes: tuple[Process, ...], options: BringupOptions) -> str:
    """One line about what the plan leaves out: what is not installed, or feedback; empty where it is nothing."""
    if not load_robot(None, options.params_file or None, robot_path(options.robot_file)).base.geometry.moves_sideways:
        return "without feedback, since this base cannot move sideways: follow paths by Nav2's pure pursuit or MPPI"
    if not _describes(options) or any(process.executable == STATE_PUBLISHER for process in processes):
        return ""
    return (
        f"{STATE_PUBLISHER} is not installed: no robot_description and no tf of the links "
        "(sudo apt install ros-jazzy-robot-state-publisher; or leave it out with description false)"
    )


def assumed_by(options: BringupOptions) -> str:
    """One line about what is assumed of the robot; empty where it is nothing."""
    own, results = existing_file("params_file", options.params_file), existing_results(options.result_file)
    return assumptions(options.robot_file, own, results)


def _describes(options: BringupOptions) -> bool:
    """Whether a description is wanted, which neither another stack nor the launch file of Gazebo publishes."""
    return options.description and not options.passive and options.robot != "gazebo" and not options.robot_file


def _mock(nodes: _Nodes, given: BringupOptions, sim_time: bool) -> Process:
    """The simulated robot; beside passive nodes it is a driver without remapping."""
    own_names = {DRIVER_REMAPPINGS[name]: name for name in _OF_MOCK}
    more = remap_arguments(own_names) if given.passive else ()
    more += parameter_arguments(plant=_PLANTS[given.robot], identified=given.robot == "identified")
    more += parameter_arguments(publish_clock=True) if sim_time else ()
    more += parameter_arguments(viewer=True) if given.viewer else ()
    more += parameter_arguments(robot_file=nodes.robot_file) if nodes.robot_file is not None else ()
    truth_file = config_path("mock.yaml") if nodes.robot_file is None else None  # else as its own file says
    known = nodes.files[1:] if given.robot == "identified" else (nodes.robot_file, nodes.own_file)
    files = (config_path("youbot.yaml"), truth_file, *known)
    return Process("mock_youbot", ("mock_youbot",), replace(nodes, files=files).of(*more, frames=True))


def _driving(nodes: _Nodes, given: BringupOptions) -> list[Process]:
    """The processes that command the robot and estimate its state."""
    standby = parameter_arguments(standby=True) + (parameter_arguments(motors_off=True) if given.motors_off else ())
    # Not `odometry:stabilize`: rcl does not match such a prefix inside a namespace.
    alone = () if given.stabilize else parameter_arguments(stabilize=False)
    in_odometry = ("odometry", "trajectory_tracker") if given.stabilize else ("odometry",)
    processes = [
        Process("stop_base", ("stop_base",), nodes.of(*standby), last=True),
        Process("base_controller", ("base_controller",), nodes.of(*parameter_arguments(guarded=True))),
        Process("odometry", in_odometry, nodes.of(*alone, *_gyro(given), frames=True)),
    ]
    if given.estimate_arm:
        processes.append(_optional("arm_ekf", nodes.of(frames=True)))
    return processes


def _gyro(given: BringupOptions) -> tuple[str, ...]:
    return remap_arguments({"imu": given.imu}) if given.imu != "imu" else ()


def _optional(name: str, ros_arguments: tuple[str, ...]) -> Process:
    """One of our nodes that does not move the base."""
    return Process(name, (name,), ros_arguments, vital=False, restarts=RESTARTS)


def _passive(nodes: _Nodes, given: BringupOptions) -> list[Process]:
    """The processes beside another stack: none of them commands or broadcasts tf."""
    joint_states = {"driver/joint_states": given.joint_states}
    of_odometry = remap_arguments({**joint_states, "imu": given.imu, **_PASSIVE_OUTPUT})
    of_odometry += parameter_arguments(stabilize=False, publish_tf=False)
    processes = [Process("odometry", ("odometry",), nodes.of(*of_odometry, frames=True))]
    if given.estimate_arm:
        processes.append(_optional("arm_ekf", nodes.of(*remap_arguments(joint_states), frames=True)))
    processes.append(_optional("identification", nodes.of(*remap_arguments(joint_states))))
    return processes


_SIMULATED = (*_PLANTS, "gazebo")  # they publish the true pose of the base
NO_BRINGUP = "none"

# Handed on to the bringup as they are.
PASSED_ON = (
    "namespace",
    "robot_file",
    "params_file",
    "result_file",
    "use_sim_time",
    "log_level",
    "driver",
    "frame_prefix",
    "viewer",
)

IDENTIFY_ARGUMENTS = (
    Argument(
        "robot",
        "mock",
        "Robot to identify: one that bringup.launch.py starts here, or `none` for one whose bringup already runs.",
        ("real", *_SIMULATED, NO_BRINGUP),
    ),
    *(argument for argument in ARGUMENTS if argument.name in PASSED_ON),
    Argument("out", "", "Folder for the bag, result.yaml, result.json and report.html; new or empty. Required."),
    Argument("duration", "60.0", "How long each excitation lasts [s]."),
    Argument(
        "room", "1.0", "Largest distance of the base from its start [m]: keep that much space free in every direction."
    ),
    Argument(
        "wait",
        "120.0",
        "How long to wait for the robot's first messages [s]; the first start compiles code for half a minute.",
    ),
    Argument("arm", "false", "Whether to move and identify the arm too: true or false."),
    Argument("only", "", f"What to identify, of: {', '.join(STAGES)}; separated by commas, empty for all."),
    Argument(
        "pose_topic",
        "",
        "Topic with a measured pose of the base; empty for none, or for the pose of a simulated robot.",
    ),
    Argument(
        "shutdown",
        "true",
        "Whether the end of the identification ends the whole launch, with exit status 1 if it failed; write "
        "false if you include this in a launch that continues: true or false.",
    ),
)


def identify_command(values: Mapping[str, str]) -> list[str]:
    """Words behind the program ``identify_robot``, ROS arguments at the end.

    Args:
        values: value of each of ``IDENTIFY_ARGUMENTS``; the namespace complete.

    Raises:
        IdentificationError: an unknown stage.
        ParameterError: a malformed value.
        ProgramError: an excitation longer, shorter, larger or smaller than there is one.
        ResourceError: no folder, or one with something in it; a parameter file that does not exist.
    """
    from youbot_dynamics.identification.excitation import check_size  # only here: it takes a second

    check_choice("log_level", values["log_level"])
    chosen_stages("only", values["only"])
    duration, room, _ = (positive(name, values[name]) for name in ("duration", "room", "wait"))
    check_size(duration, room)
    out = new_folder("out", values["out"])
    if out is None:
        raise ResourceError("out", got="no folder", expected="where to write the result", remedy="write out:=found")
    own, results = existing_file("params_file", values["params_file"]), existing_results(values["result_file"])
    pose = values["pose_topic"] or ("ground_truth" if values["robot"] in _SIMULATED else "")
    robot, arm = robot_path(values["robot_file"]), truth("arm", values["arm"])
    as_given = {name: values[name] for name in ("duration", "room", "wait", "namespace", "frame_prefix", "only")}
    words = option_words(out=out, **as_given, arm=arm, pose_topic=pose, params_file=own, robot_file=robot)
    sim_time = truth("use_sim_time", values["use_sim_time"]) or values["robot"] == "gazebo"
    gazebo = config_path("gazebo/youbot_gazebo.yaml") if values["robot"] == "gazebo" else None
    ros = (
        *file_arguments(config_path("youbot.yaml"), robot, gazebo, *results, own),
        *namespace_arguments(values["namespace"]),
        *robot_arguments(robot, own, results),
        *parameter_arguments(use_sim_time=sim_time),
        "--log-level",
        values["log_level"],
    )
    return [*words, "--ros-args", *ros]
