"""Tables of the hidden truth, config/mock.yaml, and the robots drawn from them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from youbot_dynamics.arrays import Vector, excerpt
from youbot_dynamics.errors import InputError, ModelError, ParameterError
from youbot_dynamics.kinematics.mecanum import FEWEST_ROLLERS, MecanumBase, mean_factor
from youbot_dynamics.parameter_file import read_parameters
from youbot_dynamics.parameters import Parameter, Value, check_names, facts_of
from youbot_dynamics.resources import config_path
from youbot_dynamics.robot import PREFIX, load_robot
from youbot_dynamics.robot_base import WHEELS, BaseGeometry, kinematics_of
from youbot_dynamics.simulation._arm_truth import EVEN, FILTER, OF_JOINTS, drawn
from youbot_dynamics.simulation._arm_truth import ArmTruth as ArmTruth
from youbot_dynamics.simulation._own_truth import PREFIX as _PREFIX
from youbot_dynamics.simulation._own_truth import given_truth, other_robot, truth_about
from youbot_dynamics.simulation._own_truth import own_stream as own_stream

Four: TypeAlias = tuple[float, ...]

_MECANUM = "chosen: the youBot has mecanum wheels"
# Drawn evenly in the logarithm: what has not been measured, within powers of ten.
_LOGARITHMIC = ("sliding_travel", "servo_gain", "servo_reset")
# Share of the robots that have none of it, 0, where its bounds differ.
_WITHOUT = {"servo_gain": 1.0 / 3.0, "servo_reset": 0.5}


@dataclass(frozen=True)
class BaseTruth:
    """One base as it really is; what is said of four wheels is drawn for each of them.

    Its order is the order of the draws: what is added at its end leaves the robots of old seeds as they were.

    Dead time and `lag` are not the whole delay. The motor loop holds its answer against friction by feedback of the
    bandwidth 1 / lag, so weakly that a slow loop lets friction hold the motion back. On sums of slow sines, what the
    effective delay has beyond dead time and lag was found, in x, y, yaw, as 2.4, 2.9, 4.1 ms for seed 0 (lag 20 ms);
    14, 13, 18 for seed 3 (37 ms); 22, 24, 36 for seed 9 (48 ms); 31, 31, 42 for seed 1 (57 ms), all on loops that use
    the inertia (`servo_gain` 0). Without friction it is below 1 ms.

    Raises:
        ModelError: rollers no wheel has.
    """

    dead_time_x: float = drawn("Transport delay forward.", "s", (0.0, 1.0))
    dead_time_y: float = drawn("Transport delay sideways.", "s", (0.0, 1.0))
    dead_time_yaw: float = drawn("Transport delay in yaw.", "s", (0.0, 1.0))
    lag: float = drawn("First-order response of the motor loop, without friction.", "s", (1e-3, 1.0))
    stamp_jitter: float = drawn("Standard deviation of the driver's stamps.", "s", (0.0, 0.005))
    wheel_radius: float = drawn("Rolling radius common to the wheels.", "m", (0.02, 0.5))
    half_length: float = drawn("Wheel axis to centre, along x.", "m", (0.05, 1.0))
    half_width: float = drawn("Wheel centre to centre line.", "m", (0.05, 1.0))
    lateral_factor: float = drawn("True sideways speed divided by the kinematic one.", "1", (0.8, 1.1))
    mass: float = drawn("Mass of the whole robot.", "kg", (0.5, 2000.0))
    yaw_inertia: float = drawn("Whole robot about the vertical.", "kg m2", (1e-3, 1000.0))
    wheel_inertia: float = drawn(
        "Wheel and reflected rotor about the axle: 0.0016 + 0.0090.",
        "kg m2",
        (0.0, 1.0),
        "chosen: as robot.base.wheel_inertia",
    )
    torque_noise: float = drawn(
        "Standard deviation of a random torque that varies as the wheel rolls (rollers, floor), correlated over"
        " 0.3 rad.",
        "N m",
        (0.0, 1.0),
        "chosen: about a third of the Coulomb torque; none published",
    )
    wheel_coulomb: float = drawn("Coulomb torque F1 of each wheel.", "N m", (0.0, 20.0))
    roller_coulomb: float = drawn(
        "Coulomb torque over radius of the rollers, F2 / r, of each wheel.", "N", (0.0, 100.0)
    )
    viscous_x: float = drawn("Viscous friction xi_L, forward.", "N s/m", (0.0, 2000.0))
    viscous_y: float = drawn("Viscous friction xi_T, sideways.", "N s/m", (0.0, 2000.0))
    wheel_radius_error: Four = drawn(
        "Radius of each wheel divided by the common one, minus 1.", "1", (-0.2, 0.2), length=4
    )
    speed_lag: float = drawn("First-order lag of the speeds that the driver reads.", "s", (0.0, 0.1), FILTER)
    effort_noise: float = drawn(
        "Standard deviation of the wheels' efforts, where a robot reports them.",
        "N m",
        (0.0, 1.0),
        "chosen: as for the arm; the youBot's driver reports none",
    )
    rollers: float = drawn(
        "Rollers of each wheel, along which its contact moves; 0 for smooth wheels with the mean lateral factor.",
        "1",
        (0.0, 100.0),
        "chosen: 0 for smooth wheels; the youBot's have 6 by photographs",
    )
    roller_depth: float = drawn(
        "Distance of the axis of the roller on the floor below the wheel axis; without effect on smooth wheels.",
        "m",
        (0.0, 0.5),
        "chosen: 6 rollers at 45 degrees that just clear each other in a wheel of 0.0475 m",
    )
    roller_phase: Four = drawn(
        "Initial roller phase of each wheel: angle of a roller from the bottom, divided by the angle between rollers.",
        "1",
        (-0.5, 0.5),
        length=4,
        source=EVEN,
    )
    wheel_torque_constant: Four = drawn(
        "Torque constant of each wheel's motor divided by the nominal one, with which efforts are reported.",
        "1",
        (0.5, 1.5),
        length=4,
        source="chosen: tolerance of the arm's motors",
    )
    floor_friction: float = drawn(
        "Friction coefficient between roller and floor.",
        "1",
        (0.05, 5.0),
        "chosen: rubber on a hard floor; none published",
    )
    servo_gain: float = drawn(
        "Gain of an independent speed servo on each wheel; 0, as in a third of the random robots, for speed loops that "
        "use the robot's inertia.",
        "N m s/rad",
        (0.0, 100.0),
        "chosen: wheels that lose 0.1 to 3 % of 5 rad/s to Coulomb friction",
    )
    servo_reset: float = drawn(
        "Reset time of that servo's integral; 0, as in half of the random robots, for no integral, so that friction "
        "reduces the speed. Without effect where servo_gain is 0.",
        "s",
        (0.0, 10.0),
        "chosen: from the time a servo takes to answer to that of a slow correction",
    )
    wheel_distance: float = drawn(
        "Distance of omni wheels from the middle; 0 for mecanum wheels in a rectangle.",
        "m",
        (0.0, 1.0),
        _MECANUM,
    )
    track: float = drawn(
        "Distance between the two wheels of a differential base; 0 for others.", "m", (0.0, 2.0), _MECANUM
    )
    wheelbase: float = drawn(
        "Distance of the steered wheel ahead of the fixed axle; 0 without one. Its steering has the dead time of yaw.",
        "m",
        (0.0, 5.0),
        _MECANUM,
    )
    steering_offset: float = drawn(
        "True angle of the steered wheel minus that of its joint.",
        "rad",
        (-0.5, 0.5),
        "chosen: 1.2 degrees by motion capture of the tricycle of the benchmark OptiOdom",
    )
    steering_lag: float = drawn(
        "First-order response of the steering joint.",
        "s",
        (1e-3, 1.0),
        "chosen: slower than a wheel, faster than a base",
    )
    drive_angles: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)  # of the wheels [rad], as the facts of the robot say

    def __post_init__(self) -> None:
        """Refuse parts of rollers, wheels of too few, and rollers of wheels whose contact stays where it is."""
        if self.rollers != 0.0 and (self.rollers < FEWEST_ROLLERS or self.rollers != round(self.rollers)):
            raise ModelError(
                "rollers a wheel", got=f"{self.rollers:g}", expected=f"0, or a whole number from {FEWEST_ROLLERS} on"
            )
        if self.rollers != 0.0 and self.wheel_distance + self.track + self.wheelbase > 0.0:
            got = f"{self.rollers:g} of omni wheels or ones without rollers"
            raise ModelError("rollers a wheel", got=got, expected="0: smooth wheels")

    def dead_times(self) -> tuple[float, float, float]:
        """Transport delays of x, y, yaw [s]."""
        return self.dead_time_x, self.dead_time_y, self.dead_time_yaw

    def wheel_radii(self) -> Vector:
        """Rolling radii (n,) of the wheels [m]; of a steered wheel its own, without a radius error."""
        if self.wheelbase > 0.0:
            return np.full(1, self.wheel_radius)
        return self.wheel_radius * (1.0 + np.array(self.wheel_radius_error[: len(self.drive_angles)]))

    def mecanum(self) -> MecanumBase:
        """True kinematics; where the contact wanders, their mean."""
        return kinematics_of(self, self.lateral_factor, self.wheel_radius_error[: len(self.drive_angles)])

    def wander_scale(self) -> float:
        """Sideways part of a row over that of an ideal roller in its middle; its mean is then the lateral factor.

        An ideal wheel has the factor `mean_factor`; 1 where this base has it too.
        """
        return (mean_factor(self.rollers) if self.rollers > 0.0 else 1.0) / self.lateral_factor

    def as_found(self) -> dict[str, float]:
        """What an identification can find of it, by the names of its findings; a wandering contact by its mean.

        A servo on each wheel has no `lag`. Effective delays are of a drive, not of a robot: `true_delays`; those of a
        steered wheel are of its two joints.
        """
        radii = self.wheel_radii()
        wheels = dict(zip(WHEELS, radii.tolist(), strict=False))
        sizes = {"wheel_distance": self.wheel_distance, "track": self.track, "wheelbase": self.wheelbase}
        steers, delay = self.wheelbase > 0.0, "robot.base.delay.effective"
        sizes |= {"steering_offset": self.steering_offset} if steers else {}
        mean, response, geometry = float(np.mean(radii)), "robot.base.response", "robot.base.geometry"
        axes = zip(("x", "y", "yaw"), self.dead_times(), strict=True)
        return {
            f"{geometry}.wheel_radius": mean,
            **{f"{geometry}.wheel_radius_error_{wheel}": radius / mean - 1.0 for wheel, radius in wheels.items()},
            **{f"base.geometry.wheel_radius_{wheel}": radius for wheel, radius in wheels.items()},
            **({f"{geometry}.{name}": one for name, one in sizes.items() if one} or self._rectangle(geometry)),
            **({} if steers else {f"{response}.dead_time_{axis}": dead_time for axis, dead_time in axes}),
            **({} if self.servo_gain or steers else {f"{response}.lag": self.lag}),
            **({f"{delay}_x": self.dead_time_x + self.lag} if steers else {}),
            **({f"{delay}_yaw": self.dead_time_yaw + self.steering_lag} if steers else {}),
        }

    def _rectangle(self, geometry: str) -> dict[str, float]:
        return {
            "base.geometry.lever": self.half_length / self.lateral_factor + self.half_width,
            f"{geometry}.half_length": self.half_length,
            f"{geometry}.half_width": self.half_width,
            f"{geometry}.lateral_factor": self.lateral_factor,
        }

    def with_geometry(self, geometry: BaseGeometry) -> BaseTruth:
        """Same robot with just this geometry: one whose calibration is perfect."""
        return dataclasses.replace(
            self,
            wheel_radius=geometry.wheel_radius,
            half_length=geometry.half_length,
            half_width=geometry.half_width,
            lateral_factor=geometry.lateral_factor,
            wheel_radius_error=tuple(geometry.wheel_radius_errors.tolist()),
            wheel_distance=geometry.wheel_distance,
            track=geometry.track,
            wheelbase=geometry.wheelbase,
            steering_offset=geometry.steering_offset,
            drive_angles=geometry.drive_angles,
        )

    def without_friction(self) -> BaseTruth:
        """Same robot without Coulomb and viscous friction, and so without the part that wanders; its grip stays."""
        return dataclasses.replace(self, wheel_coulomb=0.0, roller_coulomb=0.0, viscous_x=0.0, viscous_y=0.0)

    def without_noise(self) -> BaseTruth:
        """Same robot with exact stamps and efforts and steady friction; quanta and lag of the speeds stay."""
        return dataclasses.replace(self, stamp_jitter=0.0, torque_noise=0.0, effort_noise=0.0)


_ARM_PREFIX = f"{_PREFIX}.arm"


def truth_table(path: Path | None = None) -> tuple[Parameter, ...]:
    """Parameters `truth.*` of the base, then `truth.arm.*`, each (nominal, lowest, highest).

    They are those of config/mock.yaml, and of a robot file at `path` where it gives them. What the file of a robot that
    is no youBot leaves open is about that robot's facts, as far from them as the youBot's from its own.

    Raises:
        ParameterError: a missing or unknown quantity, or values out of range.
    """
    youbots = config_path("mock.yaml")
    values = given_truth(youbots)
    if path is not None:
        robot = other_robot(path)
        bounds = {name: about for name, _, about in facts_of(BaseTruth, None)}
        values |= ({} if robot is None else truth_about(robot, values, bounds)) | given_truth(path)
    leaves = (*facts_of(BaseTruth, _PREFIX), *facts_of(ArmTruth, _ARM_PREFIX))
    check_names(values, (name for name, _, _ in leaves))
    table = []
    for name, _, metadata in leaves:
        if name not in values:
            raise ParameterError(f"parameter {name} in {youbots}", got="no value", expected="nominal, lowest, highest")
        parameter = Parameter(name, values[name], read_only=True, **{**metadata, "length": 3})
        parameter.check(values[name])
        table.append(parameter)
    return tuple(table)


def draw_truth(
    values: dict[str, Value], seed: int, drive_angles: tuple[float, ...] = (0.0,) * 4, stream: tuple[int, ...] = ()
) -> BaseTruth:
    """Base of one seed: 0 is the nominal robot; else each quantity of each wheel is even between its bounds.

    Args:
        values: complete `truth.*` table, each (nominal, lowest, highest).
        seed: equal seeds give equal robots.
        drive_angles: of the wheels [rad], which are not drawn.
        stream: `own_stream` of the robot's file.

    Raises:
        ParameterError: a lowest value above its highest.
        ModelError: a robot that cannot be.
    """
    return BaseTruth(**_draw(BaseTruth, _PREFIX, values, seed, generator(seed, *stream)), drive_angles=drive_angles)


def draw_arm_truth(values: dict[str, Value], seed: int, joints: int = 5) -> ArmTruth:
    """Arm of one seed and a number of joints, as `draw_truth`; its draws leave those of the base as they are."""
    return ArmTruth(**_draw(ArmTruth, _ARM_PREFIX, values, seed, generator(seed, 3), joints))


def generator(seed: int, *stream: int) -> np.random.Generator:
    """Random numbers of one seed, for one purpose.

    Raises:
        InputError: a seed that is no whole number of at least 0.
    """
    if not (isinstance(seed, (int, np.integer)) and seed >= 0):
        raise InputError("seed", got=excerpt(seed), expected="a whole number of at least 0")
    return np.random.default_rng([seed, *stream])


def load_truth(seed: int, path: Path | None = None) -> BaseTruth:
    """Random true values of a simulated base; equal seeds give equal robots.

    Args:
        seed: selects the robot; 0 is the nominal one.
        path: robot file whose bounds replace those of config/mock.yaml; None for the youBot.

    Raises:
        ParameterError: a robot file with an unknown parameter, or with bounds in the wrong order.

    Example:
        >>> yd.load_truth(0).dead_time_x  # seed 0 is the nominal robot
        0.15
    """
    given = {} if path is None else read_parameters(path, "")
    robot = None if path is None else other_robot(path)
    named = given.get(f"{PREFIX}.base.geometry.drive_angles", (0.0,) * len(WHEELS))
    angles = named if robot is None else robot.base.geometry.drive_angles
    return draw_truth(_defaults(path), seed, angles, own_stream(path))  # type: ignore[arg-type]


def load_arm_truth(seed: int, path: Path | None = None) -> ArmTruth:
    """Random true values of a simulated arm of n joints; equal seeds give equal arms.

    Args:
        seed: selects the arm; 0 is the nominal one.
        path: robot file whose bounds replace those of config/mock.yaml; None for the youBot.

    Raises:
        ParameterError: as `load_truth`.

    Example:
        >>> yd.load_arm_truth(0).coulomb  # factors on the facts of config/youbot.yaml
        (1.0, 1.0, 1.0, 1.0, 1.0)
    """
    return draw_arm_truth(_defaults(path), seed, len(load_robot(robot_file=path).arm.joints))


def _defaults(path: Path | None) -> dict[str, Value]:
    return {parameter.name: parameter.default for parameter in truth_table(path)}


def _draw(
    cls: type, prefix: str, values: dict[str, Value], seed: int, generator: np.random.Generator, joints: int = 0
) -> dict[str, Any]:
    """Quantities of a truth in the order of its fields; lists are drawn for each of their elements."""
    drawn: dict[str, Any] = {}
    for item in dataclasses.fields(cls):
        if not item.metadata:
            continue
        name = f"{prefix}.{item.name}"
        nominal, low, high = (float(number) for number in values[name])  # type: ignore[union-attr]
        if low > high:
            raise ParameterError(f"parameter {name}", got=f"lowest {low:g} above highest {high:g}")
        if item.name in _LOGARITHMIC and low <= 0.0 < high:
            raise ParameterError(
                f"parameter {name}", got=f"lowest {low:g}", expected="above 0, or bounds that are equal"
            )
        length = joints if item.metadata["length"] == OF_JOINTS else item.metadata["length"]
        shares = generator.random(length or 1)
        numbers = np.full(len(shares), nominal) if seed == 0 else _between(item.name, low, high, shares)
        drawn[item.name] = tuple(numbers.tolist()) if length else float(numbers[0])
    return drawn


def _between(name: str, low: float, high: float, shares: Vector) -> Vector:
    """Values of a quantity for shares of its robots in [0, 1), ordered; the last ones of `_WITHOUT` have none."""
    if low == high:
        return np.full(len(shares), low)
    places = shares / (1.0 - _WITHOUT.get(name, 0.0))
    values = low * (high / low) ** places if name in _LOGARITHMIC else low + places * (high - low)
    return np.where(places < 1.0, values, 0.0)
