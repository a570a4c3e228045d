"""What a simulated robot is to its driver, and one without an arm: the base of the twin, for driving alone."""

from __future__ import annotations

from typing import Protocol

from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.arm import ArmDriver
from youbot_dynamics.simulation.base import BasePlant, SimulatedBase
from youbot_dynamics.simulation.truth import BaseTruth


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
    def arm(self) -> ArmDriver:
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError("arm", got="a robot without one", expected="a plant with an arm, such as youbot.Youbot")

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s]."""
        self.base.advance(until)
