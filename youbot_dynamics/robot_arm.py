"""Facts of the arm's joints: friction and motors. Links, inertias and limits stand in urdf/youbot.urdf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.parameters import fact

# Every node reads the facts, few need the models: these bring in the compiler, 0.2 s of every start.
if TYPE_CHECKING:
    from youbot_dynamics.dynamics.arm import ArmModel
    from youbot_dynamics.dynamics.lugre import LuGre
    from youbot_dynamics.dynamics.thermal_motor import GearedMotor

_DRIVER = "youbot/youbot_driver@814989d config/youbot-manipulator.cfg"
_SHEET = "maxon sheets as quoted by Meka M3 configurations: EC 45 flat 50 W (1-3), 339281 (4), 267121 (5)"
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
        "Coulomb torque at the joint.",
        "N m",
        (1e-4, 20.0),
        source=f"{_LUH}, mean of both directions (1-3); Rajagopal 2018, kinetic (4), fit of its steady torques (5)",
    )
    viscous: float = fact(
        "Viscous friction at the joint.",
        "N m s/rad",
        (0.0, 20.0),
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
        """Friction model of the joint.

        Raises:
            ModelError: constants that make energy.
        """
        from youbot_dynamics.dynamics.lugre import LuGre

        return LuGre(self.coulomb, self.viscous, self.sigma0, self.sigma1)


@dataclass(frozen=True)
class JointMotor:
    """Motor and gear of a joint. Thermal values differ by up to 35 % between editions of the sheets."""

    torque_constant: float = fact(
        "Torque for each ampere, at the rotor; equal to the back-EMF constant.", "N m/A", (1e-3, 1.0), source=_DRIVER
    )
    gear_ratio: float = fact("Turns of the motor for one of the joint.", "1", (1.0, 1e3), source=_DRIVER)
    rotor_inertia: float = fact("Inertia of the rotor.", "kg m2", (1e-8, 1e-2), source=_SHEET)
    resistance: float = fact(
        "Winding, terminal to terminal, at the reference temperature.", "Ohm", (1e-2, 1e2), source=_SHEET
    )
    nominal_current: float = fact(
        "Continuous current of the data sheet, not enforced; our windings reach their limit at 1.1 to 1.2 times it.",
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
    winding_housing_resistance: float = fact(
        "Thermal resistance, winding to housing.", "K/W", (0.1, 1e2), source=_SHEET
    )
    housing_ambient_resistance: float = fact(
        "Thermal resistance, housing to ambient.", "K/W", (0.1, 1e2), source=_SHEET
    )
    winding_time_constant: float = fact("Thermal time constant of the winding.", "s", (0.1, 1e3), source=_SHEET)
    housing_time_constant: float = fact(
        "Thermal time constant of the housing.", "s", (1.0, 1e4), source=f"{_SHEET}; of 339286, the same frame (1-3)"
    )
    winding_temperature_limit: float = fact(
        "Highest permitted temperature of the winding.", "degC", (50.0, 250.0), source=_SHEET
    )


@dataclass(frozen=True)
class ArmJoint:
    """One joint of the arm."""

    friction: JointFriction
    motor: JointMotor


@dataclass(frozen=True)
class Arm:
    """The joints of the arm, from the base to the gripper, and what their motors share."""

    joint_1: ArmJoint
    joint_2: ArmJoint
    joint_3: ArmJoint
    joint_4: ArmJoint
    joint_5: ArmJoint
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
    def joints(self) -> tuple[ArmJoint, ...]:
        """The five joints in order."""
        return self.joint_1, self.joint_2, self.joint_3, self.joint_4, self.joint_5

    def friction(self) -> tuple[LuGre, ...]:
        """Friction model of each joint.

        Raises:
            ModelError: constants that make energy.
        """
        return tuple(joint.friction.lugre() for joint in self.joints)

    def motors(self) -> tuple[GearedMotor, ...]:
        """Thermal motor behind its gear, for each joint; the rotor turns freely: its friction is in the joint's.

        Raises:
            ModelError: constants no motor has.
        """
        return tuple(self._geared_motor(joint.motor) for joint in self.joints)

    def reflected_rotor_inertia(self) -> NDArray[np.float64]:
        """Inertia N^2 J (5,) of the rotors at the joints [kg m2]: 0.33 to 0.018, more than the links' own.

        Raises:
            ModelError: constants no motor has.
        """
        return np.array([motor.reflected_inertia for motor in self.motors()])

    def model(self) -> ArmModel:
        """The arm in motion: bodies of urdf/youbot.urdf, these frictions and motors.

        Raises:
            ModelError: constants that make energy, or that no motor has.
        """
        from youbot_dynamics.dynamics.arm import ArmModel, arm_tree

        return ArmModel(arm_tree(self.reflected_rotor_inertia()), self.friction(), self.motors())

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
