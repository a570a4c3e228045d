"""Facts of the arm's joints: friction and motors. Links, inertias and limits stand in its URDF."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import ModelError, ResourceError
from youbot_dynamics.parameters import Value, fact, is_unknown, values_in
from youbot_dynamics.resources import urdf_path

# Every node reads the facts, few need the models: these bring in the compiler, 0.2 s of every start.
if TYPE_CHECKING:
    from youbot_dynamics.dynamics.arm import ArmModel
    from youbot_dynamics.dynamics.lugre import LuGre
    from youbot_dynamics.dynamics.thermal_motor import GearedMotor
    from youbot_dynamics.dynamics.tree import Tree

_WHOLE_TURNS = 4.0 * math.pi  # [rad] of a joint that may turn as far as it likes, and of one of unknown limits
_REACH = 0.4  # share of the room of a joint that an excitation uses on either side of its middle
_DRIVER = "youbot/youbot_driver@814989d config/youbot-manipulator.cfg"
_SHEET = "maxon sheets as quoted by Meka M3 configurations: EC 45 flat 50 W (1-3), 339281 (4), 267121 (5)"
_of_sheet = partial(fact, source=_SHEET)
_LUH = "LUHbots/luh_youbot_os@d1479e9, tuned by hand"


@dataclass(frozen=True)
class JointFriction:
    """LuGre friction of a joint; gear and rotor losses are in it, since it is fitted on effort = Kt N i.

    Published Coulomb torques of a joint differ by up to 30 %, viscous coefficients of joint 5 by a factor of 5; joint 4
    showed 0.45, 0.39 and 0.24 N m at 0.1, 0.65 and 0.9 rad/s in logs of Rajagopal 2018: identify your own.
    Spreads to simulate with, 40 % (Coulomb) and 50 % (viscous), are a choice (docs/robot_facts.md). Without
    Stribeck effect: the published static torques break its condition of passivity, viscous >=
    sigma1 (static / coulomb - 1) (system 10), so the Coulomb torque is the only one here.
    """

    coulomb: float = fact(
        "Coulomb torque at the joint; all friction of a joint that slides is in N, N s/m and N/m.",
        "N m",
        (1e-4, 1e3),
        source=f"{_LUH}, mean of both directions (1-3); Rajagopal 2018, kinetic (4), fit of its steady torques (5)",
    )
    viscous: float = fact(
        "Viscous friction at the joint.",
        "N m s/rad",
        (0.0, 1e4),
        source=f"{_LUH} (1-4); fit of the steady torques of Rajagopal 2018 (5)",
    )
    sigma0: float = fact(
        "LuGre stiffness of the bristles: Coulomb torque divided by the travel before sliding.",
        "N m/rad",
        (1.0, 1e6),
        source="chosen: coulomb / 1 mrad; none published",
    )
    sigma1: float = fact(
        "LuGre damping of the bristles.",
        "N m s/rad",
        (0.0, 1e4),
        source="chosen: 2 x 0.7 sqrt(sigma0 J) - viscous, damping ratio 0.7; J = rotor + mean over all arm poses",
    )

    def lugre(self) -> LuGre:
        """Friction model of the joint; ModelError for constants that make energy."""
        from youbot_dynamics.dynamics.lugre import LuGre

        return LuGre(self.coulomb, self.viscous, self.sigma0, self.sigma1)


@dataclass(frozen=True)
class JointMotor:
    """Motor and gear of a joint. Thermal values differ by up to 35 % between editions of the sheets."""

    torque_constant: float = fact(
        "Torque for each ampere, at the rotor; equal to the back-EMF constant.", "N m/A", (1e-3, 1.0), source=_DRIVER
    )
    gear_ratio: float = fact("Turns of the motor for one of the joint.", "1", (1.0, 1e3), source=_DRIVER)
    rotor_inertia: float = _of_sheet("Inertia of the rotor; 0 where it is unknown.", "kg m2", (0.0, 1e-2))
    resistance: float = _of_sheet(
        "Resistance of the winding, terminal to terminal, at the reference temperature.", "Ohm", (1e-2, 1e2)
    )
    nominal_current: float = fact(
        "Continuous current of the data sheet, not enforced; simulated windings get too hot at 1.1 to 1.2 times it.",
        "A",
        (1e-2, 50.0),
        source=f"Rajagopal 2018, table 3.1: 0.0827 N m / 0.0335 N m/A (1-3); {_SHEET}",
    )
    current_limit: float = fact(
        "Current limit of the motor controller.",
        "A",
        (1e-2, 50.0),
        source="LUHbots/luh_youbot_os@d1479e9 torque_controller.cpp, comments; set for each robot",
    )
    winding_housing_resistance: float = _of_sheet("Thermal resistance, winding to housing.", "K/W", (0.1, 1e2))
    housing_ambient_resistance: float = _of_sheet("Thermal resistance, housing to ambient.", "K/W", (0.1, 1e2))
    winding_time_constant: float = _of_sheet("Thermal time constant of the winding.", "s", (0.1, 1e3))
    housing_time_constant: float = fact(
        "Thermal time constant of the housing.", "s", (1.0, 1e4), source=f"{_SHEET}; of 339286, the same frame (1-3)"
    )
    winding_temperature_limit: float = _of_sheet("Highest permitted temperature of the winding.", "degC", (50.0, 250.0))

    @property
    def largest_torque(self) -> float:
        """Torque at the joint at the current limit [N m]."""
        return self.current_limit * self.torque_constant * self.gear_ratio


@dataclass(frozen=True)
class ArmJoint:
    """One joint of the arm."""

    friction: JointFriction
    motor: JointMotor


@dataclass(frozen=True)
class Arm:
    """The joints of the arm, from the base to the gripper, and what their motors share.

    The parameters of `joints` are joint_1, joint_2, ..., as many as `robot.driver.arm_joints` has names.
    """

    joints: tuple[ArmJoint, ...]
    urdf: str = fact(
        "URDF with the links of the arm: a file beside the robot file, one of the package, or an absolute path.",
        source="a2s-institute/youbot_description@71f51fc",
    )
    root_link: str = fact(
        "Link of the URDF that carries the first joint; the axis z of its frame is upright.",
        source="a2s-institute/youbot_description@71f51fc",
    )
    tip_link: str = fact(
        "Last link of the arm. Movable joints that are not between both links, such as a gripper's, are locked.",
        source="a2s-institute/youbot_description@71f51fc",
    )
    rest_position: tuple[float, ...] = fact(
        "Positions of the joints in which the arm rests: it starts there in simulation.",
        "rad",
        (-10.0, 10.0),
        source="youbot/youbot_driver@814989d config/youbot-manipulator.cfg: where the limits let the arm fold itself",
    )
    excitation_centre: tuple[float, ...] = fact(
        "Positions of the joints about which the arm swings for its identification.",
        "rad",
        (-10.0, 10.0),
        source="chosen: the upright pose of urdf/youbot.urdf",
    )
    excitation_reach: tuple[float, ...] = fact(
        "Largest deviation from there; clear the space that the arm reaches.",
        "rad",
        (0.01, 10.0),
        source="chosen: free of the base in the upright pose",
    )
    supply_voltage: float = fact(
        "Voltage of the supply of the motors.", "V", (1.0, 1000.0), source="KUKA youBot manual V6: batteries of 24 V"
    )
    payload: float = fact(
        "Largest permitted payload: the uncertainty with which arm_ekf starts.",
        "kg",
        (0.01, 1000.0),
        source="KUKA youBot manual V6",
    )
    grip_point: tuple[float, ...] = fact(
        "Where the centre of a payload is expected, in the frame of tip_link.",
        "m",
        (-2.0, 2.0),
        source="chosen: between the fingers",
        length=3,
    )
    temperature_coefficient: float = fact(
        "Growth of the winding's resistance with its temperature.",
        "1/K",
        (0.0, 0.01),
        source="IEC 60028: annealed copper",
    )
    reference_temperature: float = fact(
        "Temperature at which the windings have their `resistance`.",
        "degC",
        (0.0, 50.0),
        source="maxon sheets: values at 25 degC",
    )
    ambient_temperature: float = fact(
        "Temperature of the air around the motors.", "degC", (-20.0, 60.0), source="chosen: a warm room"
    )

    @property
    def is_known(self) -> bool:
        """Whether friction and motors of all joints are known."""
        return not any(map(is_unknown, values_in(self, "").values()))

    def friction(self) -> tuple[LuGre, ...]:
        """Friction model of each joint; ModelError for constants that make energy, or are unknown."""
        for k, joint in enumerate(self.joints):
            _check_known(f"joint_{k + 1}.friction", joint.friction)
        return tuple(joint.friction.lugre() for joint in self.joints)

    def motors(self) -> tuple[GearedMotor, ...]:
        """Thermal motor behind its gear, for each joint; ModelError for constants no motor has, or that are unknown.

        The rotor turns freely: its friction is in the joint's.
        """
        for k, joint in enumerate(self.joints):
            _check_known(f"joint_{k + 1}.motor", joint.motor)
        return tuple(self._geared_motor(joint.motor) for joint in self.joints)

    def reflected_rotor_inertia(self) -> NDArray[np.float64]:
        """Inertia N^2 J (n,) of the rotors at the joints [kg m2], 0 where it is unknown.

        The youBot's, 0.33 to 0.018, exceed its links' own.
        """
        return np.array(
            [np.nan_to_num(joint.motor.gear_ratio) ** 2 * joint.motor.rotor_inertia for joint in self.joints]
        )

    def urdf_file(self) -> Path:
        """Path of the URDF.

        Raises:
            ResourceError: a relative path that is none of the package's files.
        """
        return Path(self.urdf) if Path(self.urdf).is_absolute() else urdf_path(self.urdf)

    def joint_names(self) -> tuple[str, ...]:
        """Names of its joints in the URDF, from the base on.

        Raises:
            ModelError: a file that is not a URDF with these links.
            ResourceError: there is no such file.
        """
        from youbot_dynamics.dynamics.tree import read_urdf

        links = read_urdf(self.urdf_file(), self.root_link, tip=self.tip_link)
        return tuple(link.joint for link in links[1:] if link.joint_type != "fixed")

    def tree(self) -> Tree:
        """Bodies and joints of the URDF, with these rotors.

        Raises:
            ModelError: a file that is not a URDF of an arm of this number of joints.
            ResourceError: there is no such file.
        """
        from youbot_dynamics.dynamics.arm import arm_tree

        return arm_tree(self.reflected_rotor_inertia(), urdf=self.urdf_file(), root=self.root_link, tip=self.tip_link)

    def model(self) -> ArmModel:
        """The arm in motion: bodies of its URDF, these frictions and motors.

        Raises:
            ModelError: as for `tree`, or constants that make energy, or that no motor has.
            ResourceError: there is no such URDF.
        """
        from youbot_dynamics.dynamics.arm import ArmModel

        return ArmModel(self.tree(), self.friction(), self.motors())

    def _geared_motor(self, motor: JointMotor) -> GearedMotor:
        from youbot_dynamics.dynamics.thermal_motor import GearedMotor, ThermalMotor

        thermal = ThermalMotor(
            torque_constant=motor.torque_constant,
            resistance=motor.resistance,
            temperature_coefficient=self.temperature_coefficient,
            rotor_inertia=motor.rotor_inertia,
            rotor_friction=0.0,
            winding_housing_resistance=motor.winding_housing_resistance,
            housing_ambient_resistance=motor.housing_ambient_resistance,
            winding_time_constant=motor.winding_time_constant,
            housing_time_constant=motor.housing_time_constant,
            reference_temperature=self.reference_temperature,
            ambient_temperature=self.ambient_temperature,
        )
        return GearedMotor(thermal, motor.gear_ratio)


def _check_known(what: str, facts: JointFriction | JointMotor) -> None:
    """Refuse a model with facts that are unknown.

    Raises:
        ModelError: it names them.
    """
    if unknown := [name.removeprefix(".") for name, value in values_in(facts, "").items() if is_unknown(value)]:
        got, remedy = f"no {', '.join(unknown)}", f"identify them, or give them in the robot file as robot.arm.{what}"
        raise ModelError(f"{what} of the arm", got=got, expected="values of this joint", remedy=remedy)


def check_arm(urdf: Path) -> None:
    """Refuse a file that is no URDF with an arm; ModelError."""
    from youbot_dynamics.dynamics.tree import arm_chain

    arm_chain(urdf)


def defaults_of_urdf(urdf: str, root: object, tip: object, joints: object) -> dict[str, Value]:
    """Facts of an arm and its driver that its URDF gives or that are assumed, by their names below `robot`.

    The arm is the chain from the root of the URDF until it branches, as into fingers.

    Args:
        urdf: absolute path; "" for an arm of which only the joints are known.
        root: link that carries the first joint, if a file names it.
        tip: last link, if a file names it.
        joints: names of the joints, if a file gives them; those of the URDF otherwise.
    """
    limits: list[tuple[float, float]] = []
    names = tuple(map(str, joints)) if isinstance(joints, tuple) else ()
    if urdf:
        from youbot_dynamics.dynamics.tree import arm_chain, read_urdf

        with suppress(ModelError, ResourceError):  # named where the arm is used: a base has no need of it
            root, tip = arm_chain(Path(urdf), root if isinstance(root, str) else None) if tip is None else (root, tip)
            moving = [one for one in read_urdf(Path(urdf), str(root), tip=str(tip))[1:] if one.joint_type != "fixed"]
            names = names or tuple(link.joint for link in moving)
            limits = [(link.limits.lower, link.limits.upper) for link in moving]
    limits = limits if len(limits) == len(names) else [(-math.inf, math.inf)] * len(names)
    ends = [(low, high) if high - low < _WHOLE_TURNS else (-1.0, 1.0) for low, high in limits]
    middle = tuple(0.5 * (low + high) for low, high in ends)
    facts: dict[str, Value] = {
        "driver.arm_joints": names or ("joint_1",),
        "arm.root_link": str(root or ""),
        "arm.tip_link": str(tip or ""),
        "arm.rest_position": tuple(min(max(0.0, low), high) for low, high in ends),
        "arm.excitation_centre": middle,
        "arm.excitation_reach": tuple(max(0.01, min(1.0, _REACH * (high - low))) for low, high in ends),
        "arm.payload": 1.0,
        "arm.grip_point": (0.0, 0.0, 0.0),
    }
    return facts
