"""A simulated robot without an arm: the base of the twin alone, for all that concerns driving only."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.arm import ArmReading, TemperatureReading, VoltageReading
from youbot_dynamics.simulation.base import BasePlant, BaseReading, EffortReading
from youbot_dynamics.simulation.truth import BaseTruth


class BaseFace(Protocol):
    """A base behind its driver, with what only a simulation knows."""

    @property
    def pose(self) -> Vector:
        """True pose (3,) in the world [m, m, rad], yaw not wrapped."""

    @property
    def twist(self) -> Vector:
        """True body twist (3,) [m/s, m/s, rad/s]."""

    @property
    def wheel_angles(self) -> Vector:
        """True wheel angles (4,) [rad], positive forward."""

    @property
    def wheel_torques(self) -> Vector:
        """True torques (4,) of the motors at the wheels [N m], positive forward."""

    def command_twist(self, twist: ArrayLike, time: float | None = None) -> None:
        """Twist (3,) [m/s, m/s, rad/s] as the driver's cmd_vel takes it, received at `time` [s] or now."""

    def command_wheels(self, wheel_speeds: ArrayLike, time: float | None = None) -> None:
        """Wheel speeds (4,) [rad/s] in the driver's signs, received at `time` [s] or now."""

    def switch_motors(self, on: bool) -> None:
        """Let the base coast, or take its held command again."""

    def read(self) -> BaseReading:
        """What the driver reports now: one pass of its 50 Hz loop."""

    def read_efforts(self) -> EffortReading:
        """Efforts of the wheels now, for robots whose driver reports them."""


class ArmFace(Protocol):
    """An arm behind its driver, with what only a simulation knows."""

    @property
    def position(self) -> Vector:
        """True positions (5,) [rad]."""

    @property
    def speed(self) -> Vector:
        """True speeds (5,) [rad/s]."""

    @property
    def current(self) -> Vector:
        """True currents of the motors (5,) [A]."""

    @property
    def torque(self) -> Vector:
        """True torques of the motors at the joints (5,) [N m]."""

    @property
    def winding(self) -> Vector:
        """True temperatures of the windings (5,) [degC]."""

    @property
    def housing(self) -> Vector:
        """True temperatures of the motor housings (5,) [degC]."""

    def command_positions(self, position: ArrayLike, time: float | None = None) -> None:
        """Go to positions (5,) [rad] along the ramps, told at `time` [s] or now."""

    def command_velocities(self, velocity: ArrayLike, time: float | None = None) -> None:
        """Turn with speeds (5,) [rad/s], told at `time` [s] or now."""

    def command_torques(self, torque: ArrayLike, time: float | None = None) -> None:
        """Torques (5,) at the joints [N m] by the sheets' constants, told at `time` [s] or now."""

    def command_trajectory(
        self,
        times: ArrayLike,
        positions: ArrayLike,
        velocities: ArrayLike | None = None,
        accelerations: ArrayLike | None = None,
        time: float | None = None,
    ) -> None:
        """Follow knots at times (m,) [s] since the begin, positions (m, 5) [rad], and derivatives where known."""

    def switch_motors(self, on: bool) -> None:
        """Let the arm fall, or hold again."""

    def read(self) -> ArmReading:
        """What the driver reports now: one pass of its 50 Hz loop."""

    def read_voltages(self) -> VoltageReading:
        """Motor voltages now, for robots that measure them."""

    def read_temperatures(self) -> TemperatureReading:
        """Motor temperatures now, for robots that measure them."""


class Plant(Protocol):
    """A simulated robot with base and arm in one simulated time."""

    @property
    def time(self) -> float:
        """Simulated time [s]."""

    @property
    def base(self) -> BaseFace:
        """Its base."""

    @property
    def arm(self) -> ArmFace:
        """Its arm."""

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s]."""


class BaseOnly:
    """A plant with a base and no arm.

    Args:
        truth: the base as it is.
        driver: how its driver speaks.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time [s].

    Attributes:
        base: of the twin.

    Example:
        >>> plant = yd.BaseOnly(yd.load_truth(1), yd.load_robot().driver, seed=1)
        >>> plant.advance(0.1)
        >>> plant.base.pose
        array([0., 0., 0.])
    """

    def __init__(self, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0) -> None:
        self.base = BasePlant(truth, driver, seed, start)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.base.time

    @property
    def arm(self) -> ArmFace:
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError("arm", got="a robot without one", expected="a plant with an arm, such as youbot.Youbot")

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s]."""
        self.base.advance(until)
