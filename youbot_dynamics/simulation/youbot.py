"""Digital twins in one simulated time, fast and reproducible: base and arm, or a base alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from youbot_dynamics.arrays import made_of
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Driver, Robot
from youbot_dynamics.simulation.arm import ArmDriver, ArmPlant
from youbot_dynamics.simulation.base import SimulatedBase, SlipEvent, base_plant
from youbot_dynamics.simulation.truth import ArmTruth, BaseTruth


class Plant(Protocol):
    """A simulated robot with base and arm in one simulated time."""

    @property
    def time(self) -> float:
        """Simulated time [s]."""

    @property
    def base(self) -> SimulatedBase:
        """Its base."""

    @property
    def arm(self) -> ArmDriver:
        """Its arm."""

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s]."""


class BaseOnly:
    """A plant with a base and no arm.

    Args:
        truth: true values of the base, such as those of `load_truth`.
        driver: what its driver reports and takes, such as `load_robot().driver`.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time at the start [s].

    Attributes:
        base: the simulated base, with its true `pose` (3,) [m, m, rad] and `twist` (3,) [m/s, m/s, rad/s].

    Example:
        >>> plant = yd.BaseOnly(yd.load_truth(1), yd.load_robot().driver, seed=1)
        >>> plant.advance(0.1)
        >>> plant.base.pose
        array([0., 0., 0.])
    """

    def __init__(self, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0) -> None:
        self.base = base_plant(truth, driver, seed, start)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.base.time

    @property
    def arm(self) -> ArmDriver:
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError("arm", got="a robot without one", expected="a plant with an arm, such as youbot.Youbot")

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s]."""
        self.base.advance(until)


class Youbot:
    """Base and arm, each behind its part of the driver.

    They do not feel each other: the base carries the arm as a part of its mass, the arm stands on a base at rest. The
    contact simulation, `mujoco_youbot`, knows better. Who needs no arm takes `BaseOnly`.

    Args:
        base_truth: true values of the base, such as those of `load_truth`.
        arm_truth: true values of the arm, such as those of `load_arm_truth`.
        robot: its data sheets: the true values of the arm are factors on them.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time at the start [s].
        slips: events in which wheels lose grip.

    Example:
        >>> twin = yd.Youbot(yd.load_truth(1), yd.load_arm_truth(1), yd.load_robot(), seed=1)
        >>> twin.advance(0.1)
        >>> twin.arm.position.shape
        (5,)
    """

    def __init__(
        self,
        base_truth: BaseTruth,
        arm_truth: ArmTruth,
        robot: Robot,
        seed: int,
        start: float = 0.0,
        slips: Iterable[SlipEvent] = (),
    ) -> None:
        made_of("robot", robot, Robot)
        self.base = base_plant(base_truth, robot.driver, seed, start, slips)
        self.arm = ArmPlant(arm_truth, robot, seed, start)

    @property
    def time(self) -> float:
        """Simulated time [s]; the arm, in whole cycles, may be up to 1 ms behind."""
        return self.base.time

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s]."""
        self.base.advance(until)
        self.arm.advance(until)
