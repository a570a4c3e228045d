"""The robot as one frozen object; its values stand in config/youbot.yaml and in identification results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.parameter_file import read_checked, read_parameters
from youbot_dynamics.parameters import Parameter, Value, build, fact, fact_table, facts_of
from youbot_dynamics.resources import config_path
from youbot_dynamics.robot_arm import Arm

if TYPE_CHECKING:
    from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics

PREFIX = "robot"
_DRIVER = "youbot/youbot_driver@814989d config/youbot-base.cfg"
_CHOSEN = "chosen: none is published but seed 003's, which are unphysical; identify it"


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
class BaseFriction:
    """What holds the rolling base back; for each wheel alike."""

    wheel_coulomb: float = fact("Coulomb torque F1 of a wheel.", unit="N m", low=0.0, high=2.0, source=_CHOSEN)
    roller_coulomb: float = fact(
        "Coulomb torque of the rollers of a wheel over their radius, F2 / r.",
        unit="N",
        low=0.0,
        high=10.0,
        source=_CHOSEN,
    )
    viscous_x: float = fact("Viscous friction xi_L, forward.", unit="N s/m", low=0.0, high=200.0, source=_CHOSEN)
    viscous_y: float = fact("Viscous friction xi_T, sideways.", unit="N s/m", low=0.0, high=200.0, source=_CHOSEN)


@dataclass(frozen=True)
class Base:
    """The mobile base, with all that it carries."""

    geometry: BaseGeometry
    delay: BaseDelay
    limits: BaseLimits
    friction: BaseFriction
    mass: float = fact(
        "Whole robot, arm and battery included.",
        unit="kg",
        low=5.0,
        high=100.0,
        source="KUKA youBot manual V6: 20 + 4.0 + 5.69 + 0.245 = 29.935 kg; urdf/youbot.urdf adds up to 29.946",
    )
    yaw_inertia: float = fact(
        "Whole robot about the vertical through its centre of mass, wheels not turning.",
        unit="kg m2",
        low=0.1,
        high=10.0,
        source="uniform box and arm; urdf/youbot.urdf has 1.13 folded, 1.15 upright",
    )
    centre_of_mass: tuple[float, ...] = fact(
        "Whole robot, x and y from the middle of the wheels, arm folded; the arm stretched forward makes it 0.065, 0.",
        unit="m",
        low=-0.5,
        high=0.5,
        length=2,
        source="urdf/youbot.urdf, rounded: 0.0349, 0.0008",
    )
    wheel_inertia: float = fact(
        "A wheel with its reflected rotor about the axle: 0.0016 + 1.35e-5 x (9405 / 364)^2.",
        unit="kg m2",
        low=0.0,
        high=0.1,
        source=f"urdf/youbot.urdf; gear: {_DRIVER}; rotor: maxon EC 45 flat 50 W, assumed of the torque constant",
    )

    def dynamics(self) -> MecanumDynamics:
        """The base in motion: its kinematics, masses and friction (system 35)."""
        from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics

        friction = self.friction
        return MecanumDynamics(
            self.geometry.mecanum(),
            self.mass,
            self.yaw_inertia,
            self.wheel_inertia,
            wheel_coulomb=friction.wheel_coulomb,
            roller_coulomb=friction.roller_coulomb,
            viscous_x=friction.viscous_x,
            viscous_y=friction.viscous_y,
            centre_of_mass=(self.centre_of_mass[0], self.centre_of_mass[1]),
        )


@dataclass(frozen=True)
class Driver:
    """How the youBot driver speaks: names, its own geometry and its signs (value x sign = ours)."""

    wheel_joints: tuple[str, ...] = fact(
        "Joint names of the wheels FL, FR, RL, RR.", length=4, source="youbot_driver_ros_interface@4c6795f"
    )
    arm_joints: tuple[str, ...] = fact(
        "Names of the arm's joints from the base on.", length=5, source="youbot_driver_ros_interface@4c6795f"
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
    motor_position_quantum: float = fact(
        "Step of a motor's position, before the gear: 2 pi / 4000.", unit="rad", low=0.0, high=1.0, source=_DRIVER
    )
    motor_velocity_quantum: float = fact(
        "Step of a motor's speed, before the gear: 15 rpm.",
        unit="rad/s",
        low=0.0,
        high=10.0,
        source="one tick per ms; seen at arm joints 4 and 5 in the logs of the H-BRS thesis 2018",
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
    arm: Arm
    driver: Driver
    robot_id: str = fact("Name of this robot; results of another one are refused.", source="user")

    def arm_quanta(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps of the arm's positions (5,) [rad] and velocities (5,) [rad/s], as the driver reports them."""
        ratios = np.array([joint.motor.gear_ratio for joint in self.arm.joints])
        return self.driver.motor_position_quantum / ratios, self.driver.motor_velocity_quantum / ratios


def robot_table() -> tuple[Parameter, ...]:
    """Parameter table of all robot facts, with the values of config/youbot.yaml as defaults."""
    return fact_table(Robot, PREFIX, read_parameters(config_path("youbot.yaml"), ""))


def robot_from_values(values: dict[str, Value]) -> Robot:
    """Robot of a complete set of dotted names (`robot.base.geometry.wheel_radius`, ...)."""
    return build(Robot, PREFIX, values)


def values_of(robot: Robot) -> dict[str, Value]:
    """Dotted names and values of a robot, the inverse of `robot_from_values`."""
    found: dict[str, Value] = {}
    for name, _, _ in facts_of(Robot, PREFIX):
        value: Any = robot
        for part in name.split(".")[1:]:
            value = getattr(value, part)
        found[name] = value
    return found


def load_robot(result_file: Path | None = None, params_file: Path | None = None) -> Robot:
    """Robot of config/youbot.yaml < result_file < params_file, each a ROS parameter file.

    Raises:
        ParameterError: a file that rcl would refuse, an unknown robot parameter or one out of range, or a
            result that belongs to another robot; names the file, and the line of a parameter.
    """
    table = {parameter.name: parameter for parameter in robot_table()}
    values: dict[str, Value] = {name: parameter.default for name, parameter in table.items()}
    sources: dict[str, dict[str, Value]] = {}
    for role, path in (("result", result_file), ("params", params_file)):
        if path is None:
            continue
        sources[role] = read_checked(path, PREFIX, table)
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
