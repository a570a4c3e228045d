"""The robot as one frozen object; its values stand in config/youbot.yaml and in identification results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Parameter, Value, build, check_names, fact, fact_table
from youbot_dynamics.resources import config_path

PREFIX = "robot"
_DRIVER = "youbot/youbot_driver@814989d config/youbot-base.cfg"


@dataclass(frozen=True)
class BaseGeometry:
    """Calibrated geometry of the base: what the wheels really do on the floor."""

    wheel_radius: float = fact("Rolling radius of the wheels.", unit="m", low=0.02, high=0.2, source=_DRIVER)
    half_length: float = fact(
        "Wheel axis to centre, along x.", unit="m", low=0.05, high=1.0, source=f"{_DRIVER}: 0.47 m / 2"
    )
    half_width: float = fact(
        "Wheel centre to centre line, along y.", unit="m", low=0.05, high=1.0, source=f"{_DRIVER}: 0.30 m / 2"
    )
    lateral_factor: float = fact(
        "True over kinematic sideways speed: mean of the wandering roller contact.",
        unit="1",
        low=0.8,
        high=1.1,
        source="sin(pi/n)/(pi/n) for n = 6 rollers a wheel; system 31",
    )

    def mecanum(self) -> MecanumBase:
        """Kinematics of this geometry."""
        return MecanumBase.rectangular(self.wheel_radius, self.half_length, self.half_width, self.lateral_factor)


@dataclass(frozen=True)
class BaseDelay:
    """Effective delay of each axis: the shift that best maps the held command onto the motion of the wheels."""

    effective_x: float = fact(
        "Forward; 0 where it has not been identified.", unit="s", low=0.0, high=1.0, source="youbot identify"
    )
    effective_y: float = fact(
        "Sideways; 0 where it has not been identified.", unit="s", low=0.0, high=1.0, source="youbot identify"
    )
    effective_yaw: float = fact(
        "Turning; 0 where it has not been identified.", unit="s", low=0.0, high=1.0, source="youbot identify"
    )

    def effective(self) -> NDArray[np.float64]:
        """Delays (3,) of x, y, yaw [s]."""
        return np.array([self.effective_x, self.effective_y, self.effective_yaw])


@dataclass(frozen=True)
class BaseLimits:
    """What the base may be asked to do."""

    wheel_speed: float = fact(
        "Largest wheel speed.", unit="rad/s", low=0.1, high=40.0, source="0.8 m/s, youBot specification"
    )
    acceleration: float = fact("Speeding up, along the floor.", unit="m/s2", low=0.01, high=10.0, source="design")
    angular_acceleration: float = fact("Speeding up the turn.", unit="rad/s2", low=0.01, high=50.0, source="design")
    deceleration: float = fact("Slowing down, along the floor.", unit="m/s2", low=0.01, high=10.0, source="design")
    angular_deceleration: float = fact("Slowing down the turn.", unit="rad/s2", low=0.01, high=50.0, source="design")


@dataclass(frozen=True)
class Base:
    """The mobile base."""

    geometry: BaseGeometry
    delay: BaseDelay
    limits: BaseLimits


@dataclass(frozen=True)
class Driver:
    """How the youBot driver speaks: names, its own geometry and its signs (value x sign = ours)."""

    wheel_joints: tuple[str, ...] = fact(
        "Joint names of the wheels FL, FR, RL, RR.", length=4, source="youbot_driver_ros_interface@4c6795f"
    )
    wheel_radius: float = fact("Radius the driver reckons with.", unit="m", low=0.02, high=0.2, source=_DRIVER)
    half_length: float = fact(
        "Half of the wheelbase the driver reckons with.", unit="m", low=0.05, high=1.0, source=_DRIVER
    )
    half_width: float = fact("Half of the track the driver reckons with.", unit="m", low=0.05, high=1.0, source=_DRIVER)
    position_sign: tuple[float, ...] = fact(
        "Sign of the wheel positions: the wrapper flips FL and BL.",
        unit="1",
        low=-1.0,
        high=1.0,
        length=4,
        source="YouBotOODLWrapper.cpp computeOODLSensorReadings",
    )
    velocity_sign: tuple[float, ...] = fact(
        "Sign of the wheel velocities: not flipped by the wrapper.",
        unit="1",
        low=-1.0,
        high=1.0,
        length=4,
        source="YouBotOODLWrapper.cpp computeOODLSensorReadings",
    )
    command_sign: tuple[float, ...] = fact(
        "Sign of the wheel speed commands; seed 003's lab code has the negative of it (D-003-1).",
        unit="1",
        low=-1.0,
        high=1.0,
        length=4,
        source="FourSwedishWheelOmniBaseKinematic.cpp",
    )
    position_quantum: float = fact(
        "Step of the wheel position: 2 pi / (4000 x 9405 / 364).",
        unit="rad",
        low=0.0,
        high=0.1,
        source=_DRIVER,
    )
    velocity_quantum: float = fact(
        "Step of the wheel velocity: 15 motor rpm.", unit="rad/s", low=0.0, high=1.0, source="one tick per ms"
    )
    stamp_jitter: float = fact(
        "Standard deviation of the stamps of the 50 Hz loop.",
        unit="s",
        low=0.0,
        high=0.05,
        source="design: chosen within 0.3-2 ms",
    )

    def mecanum(self) -> MecanumBase:
        """Kinematics the driver itself uses; it knows no lateral factor."""
        return MecanumBase.rectangular(self.wheel_radius, self.half_length, self.half_width)


@dataclass(frozen=True)
class Robot:
    """Everything the package knows of one robot."""

    base: Base
    driver: Driver
    robot_id: str = fact("Name of this robot; results of another one are refused.", source="user")


def robot_table() -> tuple[Parameter, ...]:
    """Parameter table of all robot facts, with the values of config/youbot.yaml as defaults."""
    return fact_table(Robot, PREFIX, read_parameters(config_path("youbot.yaml"), ""))


def robot_from_values(values: dict[str, Value]) -> Robot:
    """Robot of a complete set of dotted names (`robot.base.geometry.wheel_radius`, ...)."""
    return build(Robot, PREFIX, values)


def load_robot(result_file: Path | None = None, params_file: Path | None = None) -> Robot:
    """Robot of config/youbot.yaml < result_file < params_file, each a ROS parameter file.

    Raises:
        ParameterError: a file that rcl would refuse, an unknown robot parameter or one out of range, or a
            result that belongs to another robot.
    """
    table = {parameter.name: parameter for parameter in robot_table()}
    values: dict[str, Value] = {name: parameter.default for name, parameter in table.items()}
    sources: dict[str, dict[str, Value]] = {}
    for role, path in (("result", result_file), ("params", params_file)):
        if path is None:
            continue
        found = read_parameters(path, "")
        robot_values = {name: value for name, value in found.items() if name.split(".")[0] == PREFIX}
        check_names(robot_values, table)
        sources[role] = {name: table[name].check(value) for name, value in robot_values.items()}
        values.update(sources[role])
    name = f"{PREFIX}.robot_id"
    own_id = sources.get("params", {}).get(name, table[name].default)
    result_id = sources.get("result", {}).get(name, own_id)
    if result_id != own_id:
        raise ParameterError(
            f"result file {result_file}",
            got=f"a result of robot '{result_id}'",
            expected=f"one of robot '{own_id}'",
            remedy="identify this robot, or set robot.robot_id in your params file",
        )
    return robot_from_values(values)
