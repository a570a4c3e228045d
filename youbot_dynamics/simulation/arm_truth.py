"""The hidden truth of the twin's arm: how far each joint, link and motor is from what its sheets say."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.arm import ArmModel, arm_tree
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.parameters import fact
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_arm import Arm, ArmJoint

Five = tuple[float, ...]

# Drawn evenly in its logarithm: a stiffness nobody has measured, within powers of ten.
LOGARITHMIC = ("sliding_travel",)

_FACTS = "youbot facts, section 5"
_DAMPING_RATIO = 0.7  # of the bristles whose sigma1 stands in config/youbot.yaml


def _factor(description: str, high: float = 2.0, source: str = _FACTS) -> Five:
    five: Five = fact(description, unit="1", low=0.0, high=high, length=5, source=source)
    return five


def _offset(axis: str) -> Five:
    five: Five = fact(
        f"Centre of mass of each link beside the nominal one, along {axis} of its joint's frame.",
        unit="m",
        low=-0.05,
        high=0.05,
        length=5,
        source=_FACTS,
    )
    return five


@dataclass(frozen=True)
class ArmTruth:
    """One arm as it really is; what is said of five joints, links or motors is drawn for each of them."""

    coulomb: Five = _factor("Coulomb torque of each joint over the nominal one.")
    viscous: Five = _factor("Viscous friction of each joint over the nominal one.")
    sliding_travel: Five = fact(
        "Coulomb torque over sigma0 of each joint: travel of its bristles.",
        unit="rad",
        low=1e-5,
        high=0.1,
        length=5,
        source=_FACTS,
    )
    damping_ratio: Five = _factor("Damping ratio of the bristles on each joint's inertia, which gives sigma1.")
    link_mass: Five = _factor("Mass and inertia of each link over the nominal ones.")
    centre_x: Five = _offset("x")
    centre_y: Five = _offset("y")
    centre_z: Five = _offset("z")
    rotor_inertia: Five = _factor("Inertia of each rotor over the nominal one.")
    torque_constant: Five = _factor("Torque constant of each motor over the nominal one.")
    resistance: Five = _factor("Resistance of each winding over the nominal one.")
    winding_housing_resistance: Five = _factor("Thermal resistance, winding to housing, over the nominal one.")
    housing_ambient_resistance: Five = _factor("Thermal resistance, housing to ambient, over the nominal one.")
    winding_capacity: Five = _factor("Heat capacity of each winding over the nominal one.")
    housing_capacity: Five = _factor("Heat capacity of each housing over the nominal one.")
    ambient_temperature: float = fact("Air around the motors.", unit="degC", low=-20.0, high=60.0, source=_FACTS)
    command_delay: float = fact(
        "From a command's arrival in the driver's 1 kHz loop to the current that answers it; the encoder tells of it "
        "some 2 ms later.",
        unit="s",
        low=0.0,
        high=0.1,
        source="H-BRS thesis 2018, logs of torque steps: 7-16 ms to first motion, less 2 ms; youbot facts, section 2.4",
    )
    loop_phase: float = fact(
        "When the driver's 50 Hz loop takes commands, all but torques wait for it; when it reads, the mock's clock and "
        "a scenario's seed say apart.",
        unit="s",
        low=0.0,
        high=0.02,
        source="any; youbot facts, section 2.4",
    )
    stamp_jitter: float = fact(
        "Standard deviation of the driver's stamps.", unit="s", low=0.0, high=0.005, source=_FACTS
    )
    speed_lag: float = fact(
        "First-order lag of the speeds the driver is told.", unit="s", low=0.0, high=0.1, source="issue 4: 10 ms"
    )
    effort_noise: float = fact("Standard deviation of the efforts.", unit="N m", low=0.0, high=1.0, source=_FACTS)
    voltage_noise: float = fact(
        "Standard deviation of motor voltages, where a robot has them.",
        unit="V",
        low=0.0,
        high=1.0,
        source="chosen; the youBot reports none",
    )
    temperature_noise: float = fact(
        "Standard deviation of motor temperatures, where a robot has them.",
        unit="K",
        low=0.0,
        high=10.0,
        source="chosen; the youBot reports none",
    )

    def model(self, robot: Robot) -> ArmModel:
        """The true arm: the nominal one of `robot` with these factors and offsets.

        Args:
            robot: as its sheets describe it, not as identified: else the truth would move with what is found.

        Raises:
            ModelError: a truth no arm can have.
        """
        arm = self._arm(robot.arm)
        return ArmModel(self._tree(arm.reflected_rotor_inertia()), arm.friction(), arm.motors())

    def without_noise(self) -> ArmTruth:
        """Same arm, read with exact stamps, efforts, voltages and temperatures; quanta and lag stay."""
        return dataclasses.replace(self, stamp_jitter=0.0, effort_noise=0.0, voltage_noise=0.0, temperature_noise=0.0)

    def _tree(self, rotor_inertias: Vector) -> Tree:
        """Links of urdf/youbot.urdf with other masses and centres of mass; central inertias grow with the mass."""
        tree = arm_tree(rotor_inertias)
        layout = tree.layout
        masses = layout.masses * np.array(self.link_mass)
        centres = layout.first_moments / layout.masses[:, None]
        moved = centres + np.column_stack([self.centre_x, self.centre_y, self.centre_z])
        point = np.zeros((3, 3))
        inertias = np.array(
            [
                factor * (about - inertia_about(point, mass, centre)) + inertia_about(point, factor * mass, other)
                for factor, about, mass, centre, other in zip(
                    self.link_mass, layout.inertias, layout.masses, centres, moved, strict=True
                )
            ]
        )
        changed = layout._replace(masses=masses, first_moments=masses[:, None] * moved, inertias=inertias)
        for field in (changed.masses, changed.first_moments, changed.inertias):
            field.setflags(write=False)
        return dataclasses.replace(tree, layout=changed)

    def _arm(self, nominal: Arm) -> Arm:
        joints: dict[str, Any] = {f"joint_{k + 1}": self._joint(joint, k) for k, joint in enumerate(nominal.joints)}
        return dataclasses.replace(nominal, ambient_temperature=self.ambient_temperature, **joints)

    def _joint(self, nominal: ArmJoint, k: int) -> ArmJoint:
        friction, motor = nominal.friction, nominal.motor
        coulomb, viscous = friction.coulomb * self.coulomb[k], friction.viscous * self.viscous[k]
        sigma0 = coulomb / self.sliding_travel[k]
        # sigma1 = 2 ratio sqrt(sigma0 J) - viscous, as the nominal one was made: J need not be known.
        damping = (friction.sigma1 + friction.viscous) * self.damping_ratio[k] / _DAMPING_RATIO
        sigma1 = max(0.0, damping * np.sqrt(sigma0 / friction.sigma0) - viscous)
        return ArmJoint(
            dataclasses.replace(friction, coulomb=coulomb, viscous=viscous, sigma0=sigma0, sigma1=sigma1),
            dataclasses.replace(
                motor,
                torque_constant=motor.torque_constant * self.torque_constant[k],
                rotor_inertia=motor.rotor_inertia * self.rotor_inertia[k],
                resistance=motor.resistance * self.resistance[k],
                winding_housing_resistance=motor.winding_housing_resistance * self.winding_housing_resistance[k],
                housing_ambient_resistance=motor.housing_ambient_resistance * self.housing_ambient_resistance[k],
                # A time constant is resistance x capacity.
                winding_time_constant=motor.winding_time_constant
                * self.winding_housing_resistance[k]
                * self.winding_capacity[k],
                housing_time_constant=motor.housing_time_constant
                * self.housing_ambient_resistance[k]
                * self.housing_capacity[k],
            ),
        )
