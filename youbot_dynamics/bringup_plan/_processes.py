"""The processes a bringup may start: ours, the driver, what shows the robot, and how far they are heard.

The ROS 2 driver of the real youBot as a process of the bringup.

Names, parameters and topics are those of a2s-institute/youbot_driver_ros_interface, branch foxy-devel. It listens on
cmd_vel, publishes odom, base/joint_states and arm_1/joint_states and broadcasts odom -> base_footprint on /tf.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from youbot_dynamics.errors import ParameterError, ResourceError
from youbot_dynamics.resources import config_path, urdf_path

_RANGE, _DOMAIN = "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_DOMAIN_ID"


def network(robot: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables to add for the processes of a robot: `mock` and `mujoco` stay on this machine unless told otherwise."""
    return {_RANGE: "LOCALHOST"} if robot in ("mock", "mujoco") and not environment.get(_RANGE) else {}


def reach(robot: str, environment: Mapping[str, str]) -> str:
    """Who can command the real robot, in one line; empty for a simulated one."""
    if robot != "real":
        return ""
    place = f"{_RANGE} {environment.get(_RANGE) or 'SUBNET'}, {_DOMAIN} {environment.get(_DOMAIN) or 0}"
    return f"{place}: every ROS 2 program within can command this robot (docs/security.md)"


RESTART_PAUSE = 2.0  # [s]
RESTARTS = 3
OUR_PACKAGE = "youbot_dynamics"

# rcl takes no two underscores in a row.
_PART = r"(?!\w*__)[A-Za-z_][A-Za-z0-9_]*"
_NAMESPACE = re.compile(rf"{_PART}(/{_PART})*")
_TF_REMAPPINGS = ("/tf:=tf", "/tf_static:=tf_static")


@dataclass(frozen=True)
class Process:
    """One process of a bringup.

    Args:
        executable: console script of the package.
        node_names: nodes the process contains.
        ros_arguments: what follows ``--ros-args`` on its command line.
        last: whether it ends after all others: it has the last word to the robot.
        words: arguments of its own, before ``--ros-args``.
        package: the package it belongs to.
        vital: whether its end ends the bringup: the base moves by it, or is watched by it.
        restarts: how often it is started again, where it is not vital.
        missed: whether its end is told, where it is not vital.
    """

    executable: str
    node_names: tuple[str, ...]
    ros_arguments: tuple[str, ...]
    last: bool = False
    words: tuple[str, ...] = ()
    package: str = OUR_PACKAGE
    vital: bool = True
    restarts: int = 0
    missed: bool = True

    @property
    def arguments(self) -> tuple[str, ...]:
        """Command-line tokens behind the executable."""
        return (*self.words, "--ros-args", *self.ros_arguments)

    def loss(self, code: int | None, restarted: int) -> tuple[str, bool]:
        """Say what the end of a process means that is not vital.

        Args:
            code: its exit code.
            restarted: how often it has been started again.

        Returns:
            What is told, and whether it is started again, after `RESTART_PAUSE`.
        """
        again = restarted < self.restarts
        text = f"started again, time {restarted + 1} of {self.restarts}" if again else "its log may say why"
        return f"ended with exit code {code}, and the rest goes on without it: {text}", again


def file_arguments(*files: Path | None) -> tuple[str, ...]:
    """Return the tokens that load parameter files, the later one winning."""
    return tuple(token for file in files if file is not None for token in ("--params-file", str(file)))


def parameter_arguments(**values: str | bool | float) -> tuple[str, ...]:
    """Return the tokens that set parameters."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in values.items()}
    return tuple(token for name, text in texts.items() for token in ("-p", f"{name}:={text}"))


def remap_arguments(rules: dict[str, str]) -> tuple[str, ...]:
    """Return the tokens that remap names; of several rules for one name the first wins."""
    return tuple(token for name, other in rules.items() for token in ("-r", f"{name}:={other}"))


def namespace_arguments(namespace: str) -> tuple[str, ...]:
    """Return the tokens that put a process and its tf into a namespace.

    Args:
        namespace: with or without a leading slash; empty for none.

    Returns:
        Tokens for ``--ros-args``.

    Raises:
        ParameterError: when the namespace is malformed.
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
    remappings = (f"__ns:=/{name}", *_TF_REMAPPINGS)
    return tuple(token for rule in remappings for token in ("-r", rule))


def program(package: str, name: str) -> Path | None:
    """Find a program of an installed package.

    Args:
        package: name of the package.
        name: name of the program.

    Returns:
        Absolute path of the program, or None where the package or its program is not installed.
    """
    for prefix in _prefixes():
        path = prefix / "lib" / package / name
        if os.access(path, os.X_OK) and path.is_file():
            return path
    return None


def needed_program(package: str, name: str, remedy: str) -> Path:
    """Find a program that the user has asked for.

    Args:
        package: name of the package.
        name: name of the program.
        remedy: what to do where it is not installed.

    Returns:
        Absolute path of the program.

    Raises:
        ResourceError: when it is not installed.
    """
    path = program(package, name)
    if path is None:
        raise ResourceError(
            f"package {package}",
            got=f"no program {name} of it in any folder of AMENT_PREFIX_PATH",
            expected="the package installed and its setup.bash sourced",
            remedy=remedy,
        )
    return path


def share_folder(package: str) -> Path | None:
    """Find the folder with the data of an installed package; None where it is not installed."""
    for prefix in _prefixes():
        path = prefix / "share" / package
        if path.is_dir():
            return path
    return None


def _prefixes() -> Iterator[Path]:
    """Yield the folders that a sourced ROS 2 and its workspaces announce."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(prefix).absolute()


PACKAGE = "youbot_driver_ros_interface"

# Its topics become those that the design gives a driver; both JointState topics become one.
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
    """Describe the process of the driver.

    Args:
        common: ROS arguments of every node: namespace, log level, time.
        arm: whether the robot has an arm.
        params_file: the user's file; what it says for ``/**/youbot_oodl_driver`` wins.

    Returns:
        The process.

    Raises:
        ResourceError: when the driver is not installed.
    """
    needed_program(PACKAGE, PACKAGE, _REMEDY)
    values: dict[str, str | bool | float] = {"youBotHasBase": True, "youBotHasArms": arm}
    values |= {"youBotBaseName": "youbot-base"} | ({"youBotArmName1": "youbot-manipulator"} if arm else {})
    # Reading the gripper blocks the driver's loop: seldom.
    values |= {"youBotDriverCycleFrequencyInHz": 50.0, "youBotDriverGripperReadingsCycleFrequencyInHz": 1.0}
    configuration = share_folder(_CONFIGURATION)
    if configuration is not None:
        values["youBotConfigurationFilePath"] = str(configuration / "config")
    return Process(
        PACKAGE,
        ("youbot_oodl_driver",),
        # Of two rules for /tf the first wins: the driver's own, before that of a namespace.
        (*remap_arguments(DRIVER_REMAPPINGS), *parameter_arguments(**values), *file_arguments(params_file), *common),
        package=PACKAGE,
    )


STATE_PUBLISHER = "robot_state_publisher"


def description_process(common: tuple[str, ...], frame_prefix: str) -> Process | None:
    """Describe robot_state_publisher: it reads joint_states and publishes robot_description and the tf of the links.

    Args:
        common: ROS arguments of every node: namespace, log level, time.
        frame_prefix: put before the names of the links.

    Returns:
        The process, or None where robot_state_publisher is not installed.
    """
    if program(STATE_PUBLISHER, STATE_PUBLISHER) is None:
        return None
    # A value is read as YAML: quoted as in JSON it stays one text, whatever the URDF contains.
    text = json.dumps(urdf_path("youbot.urdf").read_text(encoding="utf-8"))
    values = parameter_arguments(robot_description=text)
    values += parameter_arguments(frame_prefix=json.dumps(frame_prefix)) if frame_prefix else ()
    arguments = (*common, *values)
    return Process(
        STATE_PUBLISHER, (STATE_PUBLISHER,), arguments, package=STATE_PUBLISHER, vital=False, restarts=RESTARTS
    )


def rviz_process(common: tuple[str, ...], frame_prefix: str) -> Process:
    """Describe RViz; closing its window ends nothing else.

    Args:
        common: ROS arguments of every node: namespace, log level, time.
        frame_prefix: put before the names of the frames.

    Returns:
        The process.

    Raises:
        ResourceError: when RViz or its layout is not installed.
    """
    needed_program("rviz2", "rviz2", "sudo apt install ros-jazzy-rviz2, or leave rviz out")
    fixed_frame = ("-f", f"{frame_prefix}odom") if frame_prefix else ()
    words = ("-d", str(config_path("youbot.rviz")), *fixed_frame)
    return Process("rviz2", ("rviz2",), common, words=words, package="rviz2", vital=False, missed=False)
