"""The processes a bringup may start: ours, the driver, what shows the robot, and how far they are heard.

Names, parameters and topics of the driver are those of a2s-institute/youbot_driver_ros_interface, branch foxy-devel.
It listens on cmd_vel, publishes odom, base/joint_states and arm_1/joint_states and broadcasts odom -> base_footprint
on /tf.
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
NAME_PART = r"(?!\w*__)[A-Za-z_][A-Za-z0-9_]*"
_NAMESPACE = re.compile(rf"{NAME_PART}(/{NAME_PART})*")


@dataclass(frozen=True)
class Process:
    """One process of a bringup."""

    executable: str
    node_names: tuple[str, ...]  # it contains
    ros_arguments: tuple[str, ...]  # behind --ros-args
    last: bool = False  # it ends after all others: it has the last word to the robot
    words: tuple[str, ...] = ()  # arguments of its own, before --ros-args
    package: str = OUR_PACKAGE
    vital: bool = True  # its end ends the bringup: the base moves by it, or is watched by it
    restarts: int = 0  # how often it is started again, where it is not vital
    missed: bool = True  # its end is told, where it is not vital

    @property
    def arguments(self) -> tuple[str, ...]:
        """Command-line tokens behind the executable."""
        return (*self.words, "--ros-args", *self.ros_arguments)

    def loss(self, code: int | None, restarted: int) -> tuple[str, bool]:
        """What is told of its end with an exit code, and whether it is started again after `RESTART_PAUSE`.

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
        ResourceError: it is not installed; tells the remedy.
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
    """The driver of a robot with or without arm; what the user's file says for ``/**/youbot_oodl_driver`` wins.

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


STATE_PUBLISHER = "robot_state_publisher"


def description_process(common: tuple[str, ...], frame_prefix: str) -> Process | None:
    """What reads joint_states and publishes robot_description and the tf of the links; None where not installed."""
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
