"""Facts of the mobile base: geometry, delays, how it answers commands, limits, friction, masses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.parameters import fact

# Every node reads the facts, few need the models: these bring in the compiler, 0.2 s of every start.
if TYPE_CHECKING:
    from youbot_dynamics.dynamics.driven_base import DrivenBase
    from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
    from youbot_dynamics.kinematics.roller_phase import RollingWheels


# Order of all that there is one of for each wheel; of three or two wheels the first names.
WHEELS = ("fl", "fr", "rl", "rr")
_LEAST_LOAD = 0.2  # of a wheel over the mean of all, for its weight: a wheel that hardly stands still counts
_DRIVER = "youbot/youbot_driver@814989d config/youbot-base.cfg"
_MECANUM = "youbot/youbot_driver@814989d FourSwedishWheelOmniBaseKinematic.cpp: four mecanum wheels"
NEUTRAL = "chosen: neutral"  # begins the source of what only an identification can find
_identified = partial(fact, source=f"{NEUTRAL} until `youbot identify` has measured it")
_chosen = partial(fact, source="chosen: no physical figure is published for this base; identify your own")


def _radius_error(wheel: str) -> Any:
    what = (
        f"Radius of the {wheel} wheel divided by the mean radius, minus 1. A driver that takes a Twist uses one radius."
    )
    return _identified(what, "1", (-0.1, 0.1))


def _roller_phase(wheel: str) -> Any:
    what = f"Angle from the bottom of the {wheel} wheel to a roller at encoder count 0, modulo 2 pi / rollers."
    return _identified(what, "rad", (-100.0, 100.0))


def drive_angles_fact() -> Any:
    """Fact of the directions in which the wheels drive."""
    what = "Direction in which each omni wheel drives, from forward: three or four; zeros for the other wheels."
    return fact(what, "rad", (-7.0, 7.0), source=_MECANUM)


def wheel_distance_fact() -> Any:
    """Fact of the circle on which omni wheels stand."""
    what = (
        "Distance from the middle of omni wheels on a circle, each driving along it; 0 for four mecanum wheels in a "
        "rectangle of half_length and half_width."
    )
    return fact(what, "m", (0.0, 1.0), source=_MECANUM)


def track_fact() -> Any:
    """Fact of the two wheels of a differential base."""
    what = "Distance between the left and the right wheel of a differential base, which have no rollers; 0 for others."
    return fact(what, "m", (0.0, 2.0), source=_MECANUM)


def wheelbase_fact() -> Any:
    """Fact of a steered wheel."""
    what = "Distance of a driven and steered wheel ahead of an axle of fixed wheels; 0 for bases without one."
    return fact(what, "m", (0.0, 5.0), source=_MECANUM)


def check_drives(where: str, facts: Any) -> None:
    """Refuse drive angles that fit no base, by the geometry of a base or of its driver.

    Raises:
        ParameterError: a track or a wheelbase and omni or other than two wheels, or both; else neither three nor four
            wheels, or omni wheels without their distance.
    """
    wheel_distance, drive_angles = facts.wheel_distance, facts.drive_angles
    if facts.track > 0.0 and facts.wheelbase > 0.0:
        got, remedy = f"{facts.track:g} with wheelbase {facts.wheelbase:g}", "leave out the track of a steered wheel, "
        remedy += "or the wheelbase of a differential base"
        raise ParameterError(f"{where}.track", got=got, expected="one of the two", remedy=remedy)
    for size, kind in (("track", "for a differential base"), ("wheelbase", "for a steered wheel")):
        if getattr(facts, size) == 0.0:
            continue
        if wheel_distance > 0.0 or tuple(drive_angles) != (0.0, 0.0):
            got = f"{getattr(facts, size):g} with wheel_distance {wheel_distance:g}"
            got += f" and {len(drive_angles)} drive_angles"
            remedy = f"leave both out {kind}, or leave out the {size}"
            raise ParameterError(f"{where}.{size}", got=got, expected="two wheels that drive forward", remedy=remedy)
        return
    if len(drive_angles) not in (3, 4):
        raise ParameterError(f"{where}.drive_angles", got=f"{len(drive_angles)} wheels", expected="three or four")
    if wheel_distance == 0.0 and (any(drive_angles) or len(drive_angles) != len(WHEELS)):
        remedy = "give the distance of the omni wheels from the middle"
        raise ParameterError(f"{where}.wheel_distance", got="0 for omni wheels", expected="above 0", remedy=remedy)


def check_same_wheels(driver: Any, geometry: BaseGeometry, has_arm: bool) -> None:
    """Refuse a driver of other wheels than the base has, and an arm on a base with a steered wheel (ParameterError)."""
    if driver.drive_angles != geometry.drive_angles:
        got, expected = str(driver.drive_angles), f"those of robot.base.geometry, {geometry.drive_angles}"
        raise ParameterError("parameter robot.driver.drive_angles", got=got, expected=expected)
    if (driver.wheelbase > 0.0) != (geometry.wheelbase > 0.0):
        got = f"{driver.wheelbase:g} with {geometry.wheelbase:g} of robot.base.geometry"
        raise ParameterError("parameter robot.driver.wheelbase", got=got, expected="both above 0, or neither")
    if geometry.wheelbase > 0.0 and has_arm:
        got, remedy = "true for a base with a steered wheel", "describe the arm in a robot file of its own"
        raise ParameterError("parameter robot.has_arm", got=got, expected="false", remedy=remedy)


def kinematics_of(facts: Any, lateral_factor: float, radius_errors: ArrayLike) -> MecanumBase:
    """Kinematics by facts of a base: a steered wheel, two fixed, omni on a circle, or a rectangle; errors are (n,)."""
    if facts.wheelbase > 0.0:
        return MecanumBase.tricycle(facts.wheel_radius, facts.wheelbase, getattr(facts, "steering_offset", 0.0))
    if facts.track > 0.0:
        return MecanumBase.differential(facts.wheel_radius, facts.track, radius_errors)
    if facts.wheel_distance > 0.0:
        return MecanumBase.omni_circle(facts.wheel_radius, facts.wheel_distance, facts.drive_angles, radius_errors)
    size = facts.wheel_radius, facts.half_length, facts.half_width
    return MecanumBase.rectangular(*size, lateral_factor, radius_errors)


def _delay(what: str) -> Any:
    return _identified(f"{what}; 0 if not identified.", "s", (0.0, 1.0))


@dataclass(frozen=True)
class BaseGeometry:
    """Calibrated geometry of the base: what the wheels really do on the floor.

    Wheels of different radii turn at different speeds even straight ahead. A driver that takes a Twist assumes one
    radius: of the four wheel speeds it drives what a motion of its equal wheels explains, and the rest is lost.
    """

    wheel_radius: float = fact("Mean rolling radius of the wheels.", "m", (0.02, 0.5), source=_DRIVER)
    half_length: float = fact("Half of the wheelbase, along x.", "m", (0.05, 1.0), source=f"{_DRIVER}: 0.47 m / 2")
    half_width: float = fact("Half of the track width, along y.", "m", (0.05, 1.0), source=f"{_DRIVER}: 0.30 m / 2")
    lateral_factor: float = fact(
        "True sideways speed divided by that of ideal wheels: the contact moves along the rollers.",
        "1",
        (0.8, 1.1),
        source="chosen: sin(pi/n)/(pi/n), mean over an ideal wheel of n = 6 rollers, or of the n of the robot file",
    )
    wheel_radius_error_fl: float = _radius_error("front left")
    wheel_radius_error_fr: float = _radius_error("front right")
    wheel_radius_error_rl: float = _radius_error("rear left")
    wheel_radius_error_rr: float = _radius_error("rear right")
    rollers: float = fact(
        "Rollers of each wheel.", "1", (4.0, 100.0), source="chosen: counted in photographs of the wheel"
    )
    roller_depth: float = fact(
        "Distance of the axis of the roller on the floor below the wheel axis.",
        "m",
        (0.0, 0.5),
        source="chosen: 6 rollers at 45 degrees that just clear each other in a wheel of 0.0475 m",
    )
    roller_phase_fl: float = _roller_phase("front left")
    roller_phase_fr: float = _roller_phase("front right")
    roller_phase_rl: float = _roller_phase("rear left")
    roller_phase_rr: float = _roller_phase("rear right")
    roller_phase_error: float = _identified(
        "Largest standard error of the four phases; 0 if they are unknown. They become invalid when the driver "
        "restarts its count.",
        "rad",
        (0.0, 1.0),
    )
    wheel_distance: float = wheel_distance_fact()
    drive_angles: tuple[float, ...] = drive_angles_fact()
    track: float = track_fact()
    wheelbase: float = wheelbase_fact()
    steering_offset: float = _identified(
        "True angle of a steered wheel minus that of its joint; without effect on other wheels.", "rad", (-0.5, 0.5)
    )

    def __post_init__(self) -> None:
        """Refuse wheels that make no base."""
        check_drives("parameter robot.base.geometry", self)

    @property
    def wheel_names(self) -> tuple[str, ...]:
        """Names of the wheels in the parameters: fl, fr, rl, rr, or the first three or two."""
        return WHEELS[: len(self.drive_angles)]

    @property
    def moves_sideways(self) -> bool:
        """Whether the base can: all but one on wheels without rollers."""
        return self.track + self.wheelbase == 0.0

    def unused(self) -> tuple[str, ...]:
        """How names begin of what other wheels than these have."""
        rectangle, circle = ("half_length", "half_width", "lateral_factor"), ("wheel_distance", "drive_angles")
        if self.wheelbase > 0.0:
            return *rectangle, *circle, "track", "roller", "wheel_radius_error"
        if self.track > 0.0:
            return *rectangle, *circle, "wheelbase", "roller", "steering"
        return *(rectangle if self.wheel_distance > 0.0 else circle), "track", "wheelbase", "steering"

    @property
    def wheel_radius_errors(self) -> NDArray[np.float64]:
        """Radii (n,) of the wheels over the common one, less 1."""
        return np.array([getattr(self, f"wheel_radius_error_{wheel}") for wheel in self.wheel_names])

    @property
    def roller_phases(self) -> NDArray[np.float64] | None:
        """Phases (n,) of the wheels [rad]; None where they are not known."""
        if self.roller_phase_error == 0.0:
            return None
        return np.array([getattr(self, f"roller_phase_{wheel}") for wheel in self.wheel_names])

    def mecanum(self) -> MecanumBase:
        """Kinematics of this geometry, in the mean over the rollers."""
        return kinematics_of(self, self.lateral_factor, self.wheel_radius_errors)

    def wheels(self) -> RollingWheels:
        """Wheels with the rollers they stand on, at phases where these are known."""
        from youbot_dynamics.kinematics.roller_phase import RollingWheels

        base, phases = self.mecanum(), self.roller_phases
        # The depth in a robot file with other wheels may be that of the youBot's. Without phases it has no effect.
        depth = self.roller_depth if phases is not None else min(self.roller_depth, float(base.radii.min()))
        return RollingWheels(base, self.rollers, depth, phases)


@dataclass(frozen=True)
class BaseDelay:
    """How late each axis follows its command.

    The effective delay is the shift that best maps the held command onto the motion of the wheels: dead time, lag and
    a share of friction together. Dead time and lag are given where the data separate them.
    """

    effective_x: float = _delay("Effective delay, forward")
    effective_y: float = _delay("Effective delay, sideways")
    effective_yaw: float = _delay("Effective delay, turning")
    dead_time_x: float = _delay("Dead time, forward")
    dead_time_y: float = _delay("Dead time, sideways")
    dead_time_yaw: float = _delay("Dead time, turning")
    lag_x: float = _delay("Time constant of the first-order lag, forward")
    lag_y: float = _delay("Time constant of the first-order lag, sideways")
    lag_yaw: float = _delay("Time constant of the first-order lag, turning")
    stamps: float = _delay("How much later than it reads them the driver stamps the wheels")

    def effective(self) -> NDArray[np.float64]:
        """Delays (3,) of x, y, yaw [s]."""
        return np.array([self.effective_x, self.effective_y, self.effective_yaw])


def _drift(what: str, unit: str, others: str) -> Any:
    source = f"{NEUTRAL} until `youbot identify` has measured it; four robots of the benchmark OptiOdom have {others}"
    text = (
        f"Standard deviation of {what} of odometry after 1 m of way, turns included; it grows with the root of the way."
    )
    return fact(text, unit, (0.0, 1.0), source=source)


@dataclass(frozen=True)
class BaseResponse:
    """How the base follows the twists it is sent: what `youbot identify` fits of `dynamics/driven_base`.

    Its numbers are of one fit and belong together. While a dead time is 0, the effective delays stand in.
    """

    dead_time_x: float = _identified("Dead time forward.", "s", (0.0, 1.0))
    dead_time_y: float = _identified("Dead time sideways.", "s", (0.0, 1.0))
    dead_time_yaw: float = _identified("Dead time of the turn.", "s", (0.0, 1.0))
    lag: float = _identified("Time constant of the wheels' response to a command.", "s", (0.0, 1.0))
    rate: float = _identified("Half the damping of the speed loops, forward.", "1/s", (0.0, 1e4))
    integral: float = _identified(
        "Integral action of the speed loops: 0 for none (friction reduces the speed), 1 for critical damping.",
        "1",
        (0.0, 100.0),
    )
    feed: float = _identified(
        "1 for speed loops that add the torque for an acceleration, 0 for an independent servo on each wheel.",
        "1",
        (0.0, 1.0),
    )
    wheel_coulomb: float = _identified(
        "Coulomb torque F1 of a wheel in the model of the speed loops, for the mass in this file.", "N m", (0.0, 20.0)
    )
    roller_coulomb: float = _identified(
        "Coulomb torque of the rollers over their radius, F2 / r, in that model, for the mass in this file.",
        "N",
        (0.0, 100.0),
    )
    viscous_x: float = _identified(
        "Viscous friction xi_L, forward, in the model of the speed loops, for the mass in this file.",
        "N s/m",
        (0.0, 2000.0),
    )
    viscous_y: float = _identified(
        "Viscous friction xi_T, sideways, in the model of the speed loops, for the mass in this file.",
        "N s/m",
        (0.0, 2000.0),
    )
    turn_factor: float = _identified(
        "Factor of friction in turns: effective inertia of turns by this file over that of the speed loops' model.",
        "1",
        (0.1, 10.0),
    )

    centre_x: float = _identified(
        "Distance of the centre of mass ahead of the middle, in the model of the speed loops.", "m", (-0.5, 0.5)
    )

    def dead_times(self) -> NDArray[np.float64]:
        """Dead times (3,) of x, y, yaw [s]."""
        return np.array([self.dead_time_x, self.dead_time_y, self.dead_time_yaw])

    @property
    def known(self) -> bool:
        """Whether it has been identified: a base that cannot move sideways has no dead time there."""
        return self.dead_time_x > 0.0 and self.dead_time_yaw > 0.0


@dataclass(frozen=True)
class BaseLimits:
    """What the base may be asked to do."""

    wheel_speed: float = fact(
        "Largest wheel speed.", "rad/s", (0.1, 200.0), source="KUKA youBot specification: 0.8 m/s"
    )
    acceleration: float = fact(
        "Largest acceleration along the floor when the base speeds up.",
        "m/s2",
        (0.01, 10.0),
        source="chosen: an eighth of what rollers grip on a hard floor",
    )
    angular_acceleration: float = fact(
        "Largest angular acceleration when the turn speeds up.",
        "rad/s2",
        (0.01, 50.0),
        source="chosen: 0.77 m/s2 at the wheels, less than in straight motion",
    )
    deceleration: float = fact(
        "Largest deceleration along the floor when the base slows down.",
        "m/s2",
        (0.01, 10.0),
        source="chosen: it must stop sooner than it starts",
    )
    angular_deceleration: float = fact(
        "Largest angular deceleration when the turn slows down.",
        "rad/s2",
        (0.01, 50.0),
        source="chosen: it must stop sooner than it starts",
    )
    steering: float = fact(
        "Largest angle of the steering joint to either side, from 1.571 on turns on the spot; of a steered wheel.",
        "rad",
        (0.1, 3.2),
        source="chosen: a quarter turn, for turns on the spot",
    )
    steering_speed: float = fact(
        "Largest speed of the steering joint; of a steered wheel.",
        "rad/s",
        (0.05, 50.0),
        source="chosen: a quarter turn in a second",
    )


@dataclass(frozen=True)
class BaseFriction:
    """What holds the rolling base back; for each wheel alike."""

    wheel_coulomb: float = _chosen("Coulomb torque F1 of a wheel.", "N m", (0.0, 20.0))
    roller_coulomb: float = _chosen(
        "Coulomb torque of the rollers of a wheel over their radius, F2 / r.", "N", (0.0, 100.0)
    )
    viscous_x: float = _chosen("Viscous friction xi_L, forward.", "N s/m", (0.0, 2000.0))
    viscous_y: float = _chosen("Viscous friction xi_T, sideways.", "N s/m", (0.0, 2000.0))


@dataclass(frozen=True)
class BaseDrift:
    """How uncertain odometry becomes: standard deviations over the square root of the way.

    Turns are way, too: their angle times the distance that the wheels roll in the mean for an angle of 1 rad.
    """

    position: float = _drift("each position axis", "m/sqrt(m)", "0.003 to 0.03")
    yaw: float = _drift("the yaw", "rad/sqrt(m)", "0.015 to 0.05")


@dataclass(frozen=True)
class Base:
    """The mobile base, with all that it carries."""

    geometry: BaseGeometry
    delay: BaseDelay
    response: BaseResponse
    limits: BaseLimits
    friction: BaseFriction
    drift: BaseDrift
    mass: float = fact(
        "Mass of the whole robot, with arm and battery.",
        "kg",
        (0.5, 2000.0),
        source="KUKA youBot manual V6: 20 + 4.0 + 5.69 + 0.245 = 29.935 kg; urdf/youbot.urdf adds up to 29.946",
    )
    yaw_inertia: float = fact(
        "Inertia of the whole robot about the vertical through its centre of mass, wheels not turning.",
        "kg m2",
        (1e-3, 1000.0),
        source="chosen: uniform box and arm; urdf/youbot.urdf has 1.13 folded, 1.15 upright",
    )
    centre_of_mass: tuple[float, ...] = fact(
        "Centre of mass of the robot, x and y from the middle of the wheels, arm folded; arm forward: 0.065, 0.",
        "m",
        (-0.5, 0.5),
        length=2,
        source="urdf/youbot.urdf, rounded: 0.0349, 0.0008",
    )
    wheel_inertia: float = fact(
        "Inertia of a wheel and its reflected rotor about the axle: 0.0016 + 1.35e-5 x (9405 / 364)^2.",
        "kg m2",
        (0.0, 10.0),
        source=f"urdf/youbot.urdf; gear: {_DRIVER}; rotor: maxon EC 45 flat 50 W, assumed of the torque constant",
    )

    def wheel_weights(self) -> NDArray[np.float64]:
        """Weights (n,) of the wheels where they slip against each other: the squares of the loads they bear.

        Driven against each other, all pass on the same force, and those that stand lightly slip first.
        """
        from youbot_dynamics.dynamics.normal_forces import normal_forces

        places = self.geometry.mecanum().positions
        if not self.geometry.moves_sideways:
            return np.ones(len(places))  # what the casters bear is not known, and two wheels cannot contradict
        count = len(places)
        loads = normal_forces(places, np.ones(count), [count, *(count * np.array(self.centre_of_mass))])
        weights: NDArray[np.float64] = np.maximum(loads, _LEAST_LOAD) ** 2
        return weights

    def driven(self) -> DrivenBase:
        """How it follows the twists it is sent: its response, or pure effective delays while that is not known."""
        from youbot_dynamics.dynamics.driven_base import DrivenBase

        felt = self.response
        if not felt.known:
            return DrivenBase(self.dynamics(), self.delay.effective(), 0.0, 0.0)
        dynamics = dataclasses.replace(
            self.dynamics(),
            wheel_coulomb=felt.wheel_coulomb,
            roller_coulomb=felt.roller_coulomb,
            viscous_x=felt.viscous_x,
            viscous_y=felt.viscous_y,
            centre_of_mass=(felt.centre_x, self.centre_of_mass[1]),
        )
        return DrivenBase(dynamics, felt.dead_times(), felt.lag, felt.rate, felt.turn_factor, felt.integral, felt.feed)

    def dynamics(self) -> MecanumDynamics:
        """The base in motion: its kinematics, masses and friction (system 35)."""
        from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics

        return MecanumDynamics(
            self.geometry.mecanum(),
            self.mass,
            self.yaw_inertia,
            self.wheel_inertia,
            centre_of_mass=(self.centre_of_mass[0], self.centre_of_mass[1]),
            **dataclasses.asdict(self.friction),
        )
