"""The hidden truth of an arm: factors on the facts of its robot, and offsets."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from youbot_dynamics.arrays import read_only
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.parameters import fact
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_arm import ArmJoint

Each: TypeAlias = tuple[float, ...]
OF_JOINTS = -1  # length of a list of one number for each joint of the arm

_FACTS = "chosen: spread about the values of docs/robot_facts.md"
FILTER = "chosen: filter of a speed counted in ticks per ms"
EVEN = "chosen: every phase is equally likely"
_UNREPORTED = "chosen: the youBot reports none"
_DAMPING_RATIO = 0.7  # of the bristles whose sigma1 stands in config/youbot.yaml
_MOTOR_FACTORS = (
    "torque_constant",
    "rotor_inertia",
    "resistance",
    "winding_housing_resistance",
    "housing_ambient_resistance",
)


def drawn(
    description: str, unit: str, bounds: tuple[float, float], source: str = _FACTS, length: int | None = None
) -> Any:
    """Fact of a hidden quantity: in words, its unit and its bounds, its source, and the number of its values."""
    return fact(description, unit, bounds, source=source, length=length)


def _factor(description: str) -> Any:
    return drawn(description, "1", (0.0, 2.0), length=OF_JOINTS)


def _offset(axis: str) -> Any:
    what = f"Offset of each link's centre of mass from the nominal one, along {axis} of its joint's frame."
    return drawn(what, "m", (-0.05, 0.05), length=OF_JOINTS)


@dataclass(frozen=True)
class ArmTruth:
    """One arm as it really is; what is said of its n joints, links or motors is drawn for each of them."""

    coulomb: Each = _factor("Coulomb torque of each joint over the nominal one.")
    viscous: Each = _factor("Viscous friction of each joint over the nominal one.")
    sliding_travel: Each = drawn(
        "Coulomb torque over sigma0 of each joint: travel of its bristles.", "rad", (1e-5, 0.1), length=OF_JOINTS
    )
    damping_ratio: Each = _factor("Damping ratio of the bristles on each joint's inertia, which gives sigma1.")
    link_mass: Each = _factor("Mass and inertia of each link over the nominal ones.")
    centre_x: Each = _offset("x")
    centre_y: Each = _offset("y")
    centre_z: Each = _offset("z")
    rotor_inertia: Each = _factor("Inertia of each rotor over the nominal one.")
    torque_constant: Each = _factor("Torque constant of each motor over the nominal one.")
    resistance: Each = _factor("Resistance of each winding over the nominal one.")
    winding_housing_resistance: Each = _factor("Thermal resistance, winding to housing, over the nominal one.")
    housing_ambient_resistance: Each = _factor("Thermal resistance, housing to ambient, over the nominal one.")
    winding_capacity: Each = _factor("Heat capacity of each winding over the nominal one.")
    housing_capacity: Each = _factor("Heat capacity of each housing over the nominal one.")
    ambient_temperature: float = drawn("Temperature of the air around the motors.", "degC", (-20.0, 60.0))
    command_delay: float = drawn(
        "Time from a command's arrival in the driver's 1 kHz loop to the current that it causes; the encoder "
        "shows the motion some 2 ms later.",
        "s",
        (0.0, 0.1),
        "Rajagopal 2018 (MSc thesis, H-BRS), logs of torque steps: 7-16 ms to first motion, less 2 ms",
    )
    loop_phase: float = drawn(
        "Phase of the driver's 50 Hz loop, at which it takes commands other than torques; the mock's clock, or "
        "a scenario's random seed, sets when the loop reads.",
        "s",
        (0.0, 0.02),
        EVEN,
    )
    stamp_jitter: float = drawn("Standard deviation of the driver's stamps.", "s", (0.0, 0.005))
    speed_lag: float = drawn("First-order lag of the speeds that the driver reads.", "s", (0.0, 0.1), FILTER)
    effort_noise: float = drawn("Standard deviation of the efforts.", "N m", (0.0, 1.0))
    voltage_noise: float = drawn(
        "Standard deviation of motor voltages, where a robot has them.", "V", (0.0, 1.0), _UNREPORTED
    )
    temperature_noise: float = drawn(
        "Standard deviation of motor temperatures, where a robot has them.", "K", (0.0, 10.0), _UNREPORTED
    )

    def model(self, robot: Robot) -> ArmModel:
        """The true arm: the nominal one of `robot` with these factors and offsets.

        Args:
            robot: as its sheets describe it, not as identified: else the truth would move with what is found.

        Raises:
            ModelError: a truth no arm can have.
        """
        joints = tuple(self._joint(joint, k) for k, joint in enumerate(robot.arm.joints))
        arm = dataclasses.replace(robot.arm, ambient_temperature=self.ambient_temperature, joints=joints)
        return ArmModel(self._moved(arm.tree()), arm.friction(), arm.motors())

    def without_noise(self) -> ArmTruth:
        """Same arm, read with exact stamps, efforts, voltages and temperatures; quanta and lag stay."""
        return dataclasses.replace(self, stamp_jitter=0.0, effort_noise=0.0, voltage_noise=0.0, temperature_noise=0.0)

    def _moved(self, tree: Tree) -> Tree:
        """Tree with other masses and centres of mass; central inertias grow with the mass."""
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
        changed = layout._replace(
            masses=read_only(masses), first_moments=read_only(masses[:, None] * moved), inertias=read_only(inertias)
        )
        return dataclasses.replace(tree, layout=changed)

    def _joint(self, nominal: ArmJoint, k: int) -> ArmJoint:
        friction, motor = nominal.friction, nominal.motor
        scaled = {name: getattr(motor, name) * getattr(self, name)[k] for name in _MOTOR_FACTORS}
        coulomb, viscous = friction.coulomb * self.coulomb[k], friction.viscous * self.viscous[k]
        sigma0 = coulomb / self.sliding_travel[k]
        # sigma1 = 2 ratio sqrt(sigma0 J) - viscous, as the nominal one was made: J need not be known.
        damping = (friction.sigma1 + friction.viscous) * self.damping_ratio[k] / _DAMPING_RATIO
        sigma1 = max(0.0, damping * np.sqrt(sigma0 / friction.sigma0) - viscous)
        return ArmJoint(
            dataclasses.replace(friction, coulomb=coulomb, viscous=viscous, sigma0=sigma0, sigma1=sigma1),
            dataclasses.replace(
                motor,
                **scaled,
                # A time constant is resistance x capacity.
                winding_time_constant=motor.winding_time_constant
                * self.winding_housing_resistance[k]
                * self.winding_capacity[k],
                housing_time_constant=motor.housing_time_constant
                * self.housing_ambient_resistance[k]
                * self.housing_capacity[k],
            ),
        )
