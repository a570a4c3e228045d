"""Tables of the hidden truth, config/mock.yaml, and the robots drawn from them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import pi, sin
from pathlib import Path
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.arm import ArmModel, arm_tree
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import ModelError, ParameterError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Parameter, Value, check_names, fact, facts_of
from youbot_dynamics.resources import config_path
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_arm import Arm, ArmJoint
from youbot_dynamics.robot_base import BaseGeometry

Four = tuple[float, ...]

_FACTS = "chosen: spread about the values of docs/robot_facts.md"
_FEWEST_ROLLERS = 4  # with fewer the barrels end in a point


@dataclass(frozen=True)
class BaseTruth:
    """One base as it really is; what is said of four wheels is drawn for each of them.

    Its order is the order of the draws: what is added at its end leaves the robots of old seeds as they were.

    Dead time and `lag` are not the whole delay. The motor loop holds its answer against friction by feedback of the
    bandwidth 1 / lag, so weakly that a slow loop lets friction hold the motion back. On sums of slow sines, what the
    effective delay has beyond dead time and lag was found, in x, y, yaw, as 2.4, 2.9, 4.1 ms for seed 0 (lag 20 ms);
    14, 13, 18 for seed 3 (37 ms); 22, 24, 36 for seed 9 (48 ms); 31, 31, 42 for seed 1 (57 ms). Without friction it
    is below 1 ms.

    Raises:
        ModelError: rollers no wheel has.
    """

    dead_time_x: float = fact("Transport delay forward.", unit="s", low=0.0, high=1.0, source=_FACTS)
    dead_time_y: float = fact("Transport delay sideways.", unit="s", low=0.0, high=1.0, source=_FACTS)
    dead_time_yaw: float = fact("Transport delay of the turn.", unit="s", low=0.0, high=1.0, source=_FACTS)
    lag: float = fact(
        "First-order response of the motor loop, without friction.", unit="s", low=1e-3, high=1.0, source=_FACTS
    )
    stamp_jitter: float = fact(
        "Standard deviation of the driver's stamps.", unit="s", low=0.0, high=0.005, source=_FACTS
    )
    wheel_radius: float = fact("Rolling radius common to the wheels.", unit="m", low=0.02, high=0.2, source=_FACTS)
    half_length: float = fact("Wheel axis to centre, along x.", unit="m", low=0.05, high=1.0, source=_FACTS)
    half_width: float = fact("Wheel centre to centre line.", unit="m", low=0.05, high=1.0, source=_FACTS)
    lateral_factor: float = fact("True over kinematic sideways speed.", unit="1", low=0.8, high=1.1, source=_FACTS)
    mass: float = fact("Whole robot.", unit="kg", low=5.0, high=100.0, source=_FACTS)
    yaw_inertia: float = fact("Whole robot about the vertical.", unit="kg m2", low=0.1, high=10.0, source=_FACTS)
    wheel_inertia: float = fact(
        "Wheel and reflected rotor about the axle: 0.0016 + 0.0090.",
        unit="kg m2",
        low=0.0,
        high=0.1,
        source="chosen: as robot.base.wheel_inertia",
    )
    torque_noise: float = fact(
        "Standard deviation of a torque that wanders as the wheel rolls (rollers, floor), correlated over 0.3 rad.",
        unit="N m",
        low=0.0,
        high=1.0,
        source="chosen: about a third of the Coulomb torque; none published",
    )
    wheel_coulomb: float = fact("Coulomb torque F1 of each wheel.", unit="N m", low=0.0, high=2.0, source=_FACTS)
    roller_coulomb: float = fact(
        "Coulomb torque over radius of the rollers, F2 / r, of each wheel.",
        unit="N",
        low=0.0,
        high=10.0,
        source=_FACTS,
    )
    viscous_x: float = fact("Viscous friction xi_L, forward.", unit="N s/m", low=0.0, high=200.0, source=_FACTS)
    viscous_y: float = fact("Viscous friction xi_T, sideways.", unit="N s/m", low=0.0, high=200.0, source=_FACTS)
    wheel_radius_error: Four = fact(
        "Radius of each wheel over the common one, less 1.", unit="1", low=-0.2, high=0.2, length=4, source=_FACTS
    )
    speed_lag: float = fact(
        "First-order lag of the speeds the driver is told.",
        unit="s",
        low=0.0,
        high=0.1,
        source="chosen: filter of a speed counted in ticks per ms",
    )
    effort_noise: float = fact(
        "Standard deviation of the wheels' efforts, where a robot reports them.",
        unit="N m",
        low=0.0,
        high=1.0,
        source="chosen: as at the arm; the youBot's driver reports none",
    )
    rollers: float = fact(
        "Rollers a wheel, between which its contact wanders; 0 for smooth wheels with the mean lateral factor.",
        unit="1",
        low=0.0,
        high=100.0,
        source="chosen: 0 for smooth wheels; the youBot's have 6 by photographs",
    )
    roller_depth: float = fact(
        "Axis of the roller on the floor below the wheel's; moves nothing on smooth wheels.",
        unit="m",
        low=0.0,
        high=0.2,
        source="chosen: 6 rollers at 45 degrees that just clear each other in a wheel of 0.0475 m",
    )
    roller_phase: Four = fact(
        "Where each wheel's roller begins: its angle off the bottom over the angle from roller to roller.",
        unit="1",
        low=-0.5,
        high=0.5,
        length=4,
        source="chosen: every phase is as likely",
    )
    wheel_torque_constant: Four = fact(
        "Torque constant of each wheel's motor over the nominal one, by which efforts are told.",
        unit="1",
        low=0.5,
        high=1.5,
        length=4,
        source="chosen: tolerance of the arm's motors",
    )
    floor_friction: float = fact(
        "Largest friction over normal force between roller and floor.",
        unit="1",
        low=0.05,
        high=5.0,
        source="chosen: rubber on a hard floor; none published",
    )

    def __post_init__(self) -> None:
        """Refuse parts of rollers, and wheels of too few."""
        if self.rollers != 0.0 and (self.rollers < _FEWEST_ROLLERS or self.rollers != round(self.rollers)):
            raise ModelError(
                "rollers a wheel", got=f"{self.rollers:g}", expected=f"0, or a whole number from {_FEWEST_ROLLERS} on"
            )

    def dead_times(self) -> tuple[float, float, float]:
        """Transport delays of x, y, yaw [s]."""
        return self.dead_time_x, self.dead_time_y, self.dead_time_yaw

    def wheel_radii(self) -> Vector:
        """Rolling radii (4,) of FL, FR, RL, RR [m]."""
        return self.wheel_radius * (1.0 + np.array(self.wheel_radius_error))

    def mecanum(self) -> MecanumBase:
        """True kinematics; where the contact wanders, their mean."""
        return MecanumBase.rectangular(
            self.wheel_radius, self.half_length, self.half_width, self.lateral_factor, self.wheel_radius_error
        )

    def wander_scale(self) -> float:
        """Sideways part of a row over that of an ideal roller in its middle; its mean is then the lateral factor.

        An ideal wheel of n rollers has the factor sin(pi/n) / (pi/n) (system 31); 1 where this base has it too.
        """
        if self.rollers == 0.0:
            return 1.0 / self.lateral_factor
        return sin(pi / self.rollers) / (pi / self.rollers) / self.lateral_factor

    def with_geometry(self, geometry: BaseGeometry) -> BaseTruth:
        """Same robot with just this geometry: one whose calibration is perfect."""
        return dataclasses.replace(
            self,
            wheel_radius=geometry.wheel_radius,
            half_length=geometry.half_length,
            half_width=geometry.half_width,
            lateral_factor=geometry.lateral_factor,
            wheel_radius_error=tuple(geometry.wheel_radius_errors.tolist()),
        )

    def without_friction(self) -> BaseTruth:
        """Same robot without Coulomb and viscous friction, and so without the part that wanders; its grip stays."""
        return dataclasses.replace(self, wheel_coulomb=0.0, roller_coulomb=0.0, viscous_x=0.0, viscous_y=0.0)

    def without_noise(self) -> BaseTruth:
        """Same robot with exact stamps and efforts and steady friction; quanta and lag of the speeds stay."""
        return dataclasses.replace(self, stamp_jitter=0.0, torque_noise=0.0, effort_noise=0.0)


Five = tuple[float, ...]

# Drawn evenly in its logarithm: a stiffness nobody has measured, within powers of ten.
LOGARITHMIC = ("sliding_travel",)

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
        source="Rajagopal 2018 (MSc thesis, H-BRS), logs of torque steps: 7-16 ms to first motion, less 2 ms",
    )
    loop_phase: float = fact(
        "When the driver's 50 Hz loop takes commands, all but torques wait for it; when it reads, the mock's clock and "
        "a scenario's seed say apart.",
        unit="s",
        low=0.0,
        high=0.02,
        source="chosen: every phase is as likely",
    )
    stamp_jitter: float = fact(
        "Standard deviation of the driver's stamps.", unit="s", low=0.0, high=0.005, source=_FACTS
    )
    speed_lag: float = fact(
        "First-order lag of the speeds the driver is told.",
        unit="s",
        low=0.0,
        high=0.1,
        source="chosen: filter of a speed counted in ticks per ms",
    )
    effort_noise: float = fact("Standard deviation of the efforts.", unit="N m", low=0.0, high=1.0, source=_FACTS)
    voltage_noise: float = fact(
        "Standard deviation of motor voltages, where a robot has them.",
        unit="V",
        low=0.0,
        high=1.0,
        source="chosen: the youBot reports none",
    )
    temperature_noise: float = fact(
        "Standard deviation of motor temperatures, where a robot has them.",
        unit="K",
        low=0.0,
        high=10.0,
        source="chosen: the youBot reports none",
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


PREFIX = "truth"
ARM_PREFIX = f"{PREFIX}.arm"


def truth_table(path: Path | None = None) -> tuple[Parameter, ...]:
    """Parameters `truth.*` of the base, then `truth.arm.*`, each (nominal, lowest, highest), from config/mock.yaml.

    Raises:
        ParameterError: a missing or unknown quantity, or values out of range.
    """
    file = config_path("mock.yaml") if path is None else path
    values = {
        name: value for name, value in read_parameters(file, "mock_youbot").items() if name.split(".")[0] == PREFIX
    }
    leaves = (*facts_of(BaseTruth, PREFIX), *facts_of(ArmTruth, ARM_PREFIX))
    check_names(values, (name for name, _, _ in leaves))
    table = []
    for name, _, metadata in leaves:
        if name not in values:
            raise ParameterError(f"parameter {name} in {file}", got="no value", expected="nominal, lowest, highest")
        parameter = Parameter(name, values[name], read_only=True, **{**metadata, "length": 3})
        parameter.check(values[name])
        table.append(parameter)
    return tuple(table)


def draw_truth(values: dict[str, Value], seed: int) -> BaseTruth:
    """Base of one seed.

    Args:
        values: complete `truth.*` table, each (nominal, lowest, highest).
        seed: 0 for the nominal robot, else each quantity of each wheel evenly between its bounds, reproducibly.

    Raises:
        ParameterError: a lowest value above its highest.
        ModelError: a robot that cannot be.
    """
    return BaseTruth(**_draw(BaseTruth, PREFIX, values, seed, np.random.default_rng(seed)))


def draw_arm_truth(values: dict[str, Value], seed: int) -> ArmTruth:
    """Arm of one seed; its draws leave those of the base as they are.

    Args:
        values: complete `truth.*` table, each (nominal, lowest, highest).
        seed: 0 for the nominal arm, else each quantity of each joint between its bounds, reproducibly.

    Raises:
        ParameterError: a lowest value above its highest.
    """
    return ArmTruth(**_draw(ArmTruth, ARM_PREFIX, values, seed, np.random.default_rng([seed, 3])))


def load_truth(seed: int, path: Path | None = None) -> BaseTruth:
    """Base of one seed from config/mock.yaml, or from a file of that form.

    Example:
        >>> yd.load_truth(0).dead_time_x  # seed 0 is the nominal robot
        0.15
    """
    return draw_truth(_defaults(path), seed)


def load_arm_truth(seed: int, path: Path | None = None) -> ArmTruth:
    """Arm of one seed from config/mock.yaml, or from a file of that form.

    Example:
        >>> yd.load_arm_truth(0).coulomb  # factors on the facts of config/youbot.yaml
        (1.0, 1.0, 1.0, 1.0, 1.0)
    """
    return draw_arm_truth(_defaults(path), seed)


def _defaults(path: Path | None) -> dict[str, Value]:
    return {parameter.name: parameter.default for parameter in truth_table(path)}


def _draw(
    cls: type, prefix: str, values: dict[str, Value], seed: int, generator: np.random.Generator
) -> dict[str, Any]:
    """Quantities of a truth in the order of its fields; lists are drawn for each of their elements."""
    drawn: dict[str, Any] = {}
    for item in dataclasses.fields(cls):
        nominal, low, high = _spread(values, f"{prefix}.{item.name}")
        shares = generator.random(item.metadata["length"] or 1)
        if seed == 0:
            numbers = np.full(len(shares), nominal)
        elif item.name in LOGARITHMIC:
            numbers = low * (high / low) ** shares
        else:
            numbers = low + shares * (high - low)
        drawn[item.name] = tuple(numbers.tolist()) if item.metadata["length"] else float(numbers[0])
    return drawn


def _spread(values: dict[str, Value], name: str) -> tuple[float, float, float]:
    nominal, low, high = (float(number) for number in values[name])  # type: ignore[union-attr]
    if low > high:
        raise ParameterError(f"parameter {name}", got=f"lowest {low:g} above highest {high:g}")
    return nominal, low, high
