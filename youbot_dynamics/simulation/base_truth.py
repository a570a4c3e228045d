"""The hidden truth of a base: what identification must find and must never read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import pi, sin

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.parameters import fact
from youbot_dynamics.robot_base import BaseGeometry

Four = tuple[float, ...]

_FACTS = "youbot facts, section 5"
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
        source="youbot facts, sections 2.1 and 2.2",
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
        "First-order lag of the speeds the driver is told.", unit="s", low=0.0, high=0.1, source="issue 4: 10 ms"
    )
    effort_noise: float = fact(
        "Standard deviation of the wheels' efforts, where a robot reports them.",
        unit="N m",
        low=0.0,
        high=1.0,
        source=f"{_FACTS}, of the arm; the youBot's driver reports none",
    )
    rollers: float = fact(
        "Rollers a wheel, between which its contact wanders; 0 for smooth wheels with the mean lateral factor.",
        unit="1",
        low=0.0,
        high=100.0,
        source="6 by pictures of the wheel; system 31",
    )
    roller_depth: float = fact(
        "Axis of the roller on the floor below the wheel's; moves nothing on smooth wheels.",
        unit="m",
        low=0.0,
        high=0.2,
        source="derived: 6 rollers at 45 degrees that just clear each other in a wheel of 0.0475 m",
    )
    roller_phase: Four = fact(
        "Where each wheel's roller begins: its angle off the bottom over the angle from roller to roller.",
        unit="1",
        low=-0.5,
        high=0.5,
        length=4,
        source="any",
    )
    wheel_torque_constant: Four = fact(
        "Torque constant of each wheel's motor over the nominal one, by which efforts are told.",
        unit="1",
        low=0.5,
        high=1.5,
        length=4,
        source=f"{_FACTS}, of the arm's motors",
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
