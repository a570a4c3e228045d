"""A simulated robot without an arm: the base of the twin alone, for all that concerns driving only."""

from __future__ import annotations

from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.base_plant import BasePlant
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.plant import ArmFace


class BaseOnly:
    """A plant with a base and no arm.

    Args:
        truth: the base as it is.
        driver: how its driver speaks.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time [s].

    Attributes:
        base: of the twin.
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
