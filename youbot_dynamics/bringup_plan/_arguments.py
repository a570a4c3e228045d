"""The arguments of a bringup, of the launch file and of `youbot bringup` alike, and how their values are checked."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from youbot_dynamics.errors import ParameterError, ResourceError, did_you_mean
from youbot_dynamics.files import check_folder, occupied

TRUTH_VALUES = ("true", "false")
# rcl takes no two underscores in a row.
NAME_PART = r"(?!\w*__)[A-Za-z_][A-Za-z0-9_]*"
_WITH_VIEWER = ("mujoco", "gazebo")
_TOPIC = re.compile(rf"(~?/)?{NAME_PART}(/{NAME_PART})*")
# Arguments that launch itself and its Node actions take.
_OF_LAUNCH = ("launch-prefix", "launch-prefix-filter", "sigterm_timeout", "sigkill_timeout", "emulate_tty")


@dataclass(frozen=True)
class Argument:
    """An argument of a launch file and of the command line; without `choices` any text is allowed."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()

    def declaration(self) -> dict[str, Any]:
        """What `DeclareLaunchArgument` of launch takes."""
        choices = list(self.choices) or None
        return {"name": self.name, "default_value": self.default, "description": self.description, "choices": choices}


def _option(default: str | bool, description: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"description": description, "choices": choices})


@dataclass(frozen=True)
class BringupOptions:
    """What is started, and how; the launch file and `youbot bringup` take their arguments from these fields.

    Raises:
        ParameterError: a value that is none of its choices, or values that exclude each other.
    """

    robot: str = _option(
        "mock",
        "Robot to drive: `mock` starts the embedded digital twin, a random one of this kind of robot; `identified` "
        "starts it with the values that were identified; `mujoco` starts a simulation of wheels and rollers in contact "
        "with the floor (extra `sim`); `gazebo` starts Gazebo with the robot (ros2 launch only); `real` starts no "
        "robot: you start its driver, unless the argument driver is start.",
        choices=("real", "mock", "identified", "mujoco", "gazebo"),
    )
    namespace: str = _option("", "Namespace of all nodes and of tf; empty for none.")
    robot_file: str = _option(
        "",
        "Robot, by the name of a file in config/robots, such as rosbot_xl, or the path of your own; empty for the "
        "youBot.",
    )
    params_file: str = _option("", "ROS parameter file with priority over all others; empty for none.")
    result_file: str = _option(
        "",
        "Result of an identification (result.yaml), with priority over config/youbot.yaml but not over "
        "params_file; several with a colon between them, empty for none.",
    )
    use_sim_time: bool = _option(
        False,
        "Whether the nodes use the time on /clock, which a simulated robot then publishes; with Gazebo they always do.",
    )
    log_level: str = _option("info", "Log level of all nodes.", choices=("debug", "info", "warn", "error", "fatal"))
    stabilize: bool = _option(True, "Whether trajectory_tracker runs, which follows trajectories with feedback.")
    estimate_arm: bool = _option(
        True,
        "Whether arm_ekf runs, which estimates joint states, friction, payload and motor temperatures of the "
        "arm; without effect if the robot has no arm.",
    )
    identification: bool = _option(
        False,
        "Whether the node identification runs, which records and identifies when its services are called; with "
        "passive it always runs.",
    )
    passive: bool = _option(
        False,
        "Whether only odometry (without tf), arm_ekf and identification run, next to another stack. They send no"
        " commands, and publish odom and joint_states as passive_odom and passive_joint_states. A simulated "
        "robot then has the topics of a driver without remapping.",
    )
    joint_states: str = _option(
        "joint_states",
        "Topic with the driver's joint states; used with passive only. Write driver/joint_states next to another"
        " bringup of this package.",
    )
    imu: str = _option("imu", "Topic with the messages of a gyro (sensor_msgs/Imu), if there is one; for odometry.")
    driver: str = _option(
        "none",
        "Driver of the real robot: with `none` you start it yourself, with cmd_vel, odom and joint_states "
        "remapped to driver/cmd_vel, driver/odom and driver/joint_states, and with its /tf remapped to another "
        "topic; `start` starts the package youbot_driver_ros_interface with these remappings.",
        choices=("none", "start"),
    )
    motors_off: bool = _option(
        False, "Whether stop_base also switches the motors of the base off at the end, if the base has driven."
    )
    record: str = _option("", "Folder of a new bag (mcap) that records every topic; empty for no recording.")
    description: bool = _option(
        True,
        "Whether robot_state_publisher, if it is installed, publishes our URDF and the tf of the links; write "
        "false if another one runs. Without effect with passive, with gazebo and with a robot_file.",
    )
    rviz: bool = _option(False, "Whether to open RViz with config/youbot.rviz; needs rviz2.")
    frame_prefix: str = _option(
        "",
        "Prefix of the names of all frames, for example youbot_1/; needed only if the tf of several robots is "
        "combined in one tree.",
    )
    viewer: bool = _option(
        False, "Whether a window of the simulation shows the robot; for robot `mujoco` and `gazebo` only."
    )

    def __post_init__(self) -> None:
        """Check choices, and what excludes each other."""
        for argument in ARGUMENTS:
            if argument.choices:
                check_choice(argument.name, getattr(self, argument.name))
        for name in ("joint_states", "imu"):
            if not _TOPIC.fullmatch(topic := getattr(self, name)):
                remedy = f"write for example {name}:=sensors/{name}"
                raise ParameterError(name, got=repr(topic), expected="the name of a topic", remedy=remedy)
        if self.viewer and self.robot not in _WITH_VIEWER:
            raise _excluded("viewer", f"robot {self.robot}", "robot mujoco or gazebo")
        if self.driver == "start" and self.robot != "real":
            raise _excluded("driver", f"start with robot {self.robot}", "robot real")
        if self.driver == "start" and self.passive:
            raise _excluded("driver", "start with passive", "a driver that runs already", "leave driver or passive out")
        if self.robot == "gazebo" and self.frame_prefix:
            raise _excluded(
                "frame_prefix", "robot gazebo", "real, mock, identified or mujoco", "give a namespace instead"
            )
        if self.robot in ("mujoco", "gazebo") and self.robot_file:
            raise _excluded("robot_file", f"robot {self.robot}", "real, mock or identified")
        if self.robot == "gazebo" and self.passive:
            raise _excluded("passive", "robot gazebo", "real, mock, identified or mujoco")

    @classmethod
    def read(cls, values: Mapping[str, str | bool | list[str]]) -> BringupOptions:
        """Options by name as launch, the command line or YAML give them: truth values also as texts, files as a list.

        Raises:
            ParameterError: as the class; a text that is no truth value.
        """
        truths = {item.name for item in fields(cls) if isinstance(item.default, bool)}
        texts = {name: os.pathsep.join(v) if isinstance(v, list) else v for name, v in values.items()}
        typed = {name: truth(name, value) if name in truths else value for name, value in texts.items()}
        return cls(**typed)  # type: ignore[arg-type]


def _argument(item: Field[Any]) -> Argument:
    default: Any = item.default
    if isinstance(default, bool):
        text = item.metadata["description"].removesuffix(".")
        return Argument(item.name, str(default).lower(), f"{text}: true or false.")
    return Argument(item.name, default, **item.metadata)


ARGUMENTS = tuple(_argument(item) for item in fields(BringupOptions))


def _excluded(name: str, got: str, expected: str, remedy: str = "") -> ParameterError:
    return ParameterError(name, got=got, expected=expected, remedy=remedy or f"leave {name} out")


def check_words(words: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a misspelt argument in words ``NAME:=VALUE``, which launch would pass over in silence.

    Raises:
        ParameterError: an unknown name; the nearest known one is in the remedy.
    """
    names = [*known, *_OF_LAUNCH]
    for word in words:
        name = word.split(":=")[0]
        if name not in names:
            hint = did_you_mean(name, names) or "see --show-args"
            raise ParameterError(f"argument {name}", got="no such argument", remedy=hint)


def option_words(**values: object) -> list[str]:
    """Words of the options that have a value; of one that is true its name alone."""
    given = {f"--{name.replace('_', '-')}": v for name, v in values.items() if v not in (None, "") and v is not False}
    return [word for name, v in given.items() for word in ((name,) if v is True else (name, str(v)))]


def truth(name: str, value: str | bool) -> bool:
    """Read a truth value as launch and YAML write it: ``true`` or ``false`` in any case, or the truth value itself.

    Raises:
        ParameterError: the value of the argument `name` is neither.
    """
    text = str(value).lower()
    if text not in TRUTH_VALUES:
        raise ParameterError(name, got=repr(value), expected="true or false", remedy=f"write {name}:=true")
    return text == "true"


def positive(name: str, value: str | float) -> float:
    """Read the value of the argument `name`; raise ParameterError unless it is a finite number above 0."""
    with suppress(ValueError):
        if 0.0 < (number := float(value)) < math.inf:
            return number
    raise ParameterError(name, got=str(value), expected="a finite number above 0")


def check_choice(name: str, value: str) -> None:
    """Refuse a value that is none of the choices of an argument of a bringup.

    Raises:
        ParameterError: it is none of them.
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
    """Absolute path of the parameter file that the argument `name` names, ``~`` allowed; None where it is empty.

    Raises:
        ResourceError: there is no such file.
    """
    if not value:
        return None
    path = Path(value).expanduser().absolute()
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "does not exist"
        raise ResourceError(
            name,
            got=f"{path}, which {kind}",
            expected="a ROS parameter file",
            remedy=f"give an existing file or leave {name} out",
        )
    return path


def existing_results(value: str) -> tuple[Path, ...]:
    """Paths of the files that the argument `result_file` names, several with a colon between them.

    Raises:
        ResourceError: one of them does not exist.
    """
    texts = [value] if Path(value).expanduser().is_file() else value.split(os.pathsep)
    return tuple(path for text in texts if (path := existing_file("result_file", text)) is not None)


def new_folder(name: str, value: str) -> Path | None:
    """Absolute path of the folder that is to be made by the argument `name`, ``~`` allowed; None where it is empty.

    Raises:
        ResourceError: something is there already, or no folder can be made there.
    """
    if not value:
        return None
    path = Path(value).expanduser().absolute()
    got, remedy = f"{path}, which is not empty", "choose another one, so that no recording is lost"
    refusal = ResourceError(name, got=got, expected="a folder that is new or empty", remedy=remedy)
    check_folder(path, occupied(path), refusal)
    return path
