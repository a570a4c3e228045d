"""Digital twin of the youBot: its base and its arm in one simulated time, fast and reproducible."""

from __future__ import annotations

from collections.abc import Iterable

from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.arm import ArmPlant
from youbot_dynamics.simulation.base import BasePlant, SlipEvent
from youbot_dynamics.simulation.truth import ArmTruth, BaseTruth


class Youbot:
    """Base and arm, each behind its part of the driver.

    They do not feel each other: the base carries the arm as a part of its mass, the arm stands on a base at rest. The
    contact simulation, `mujoco_youbot`, knows better. Who needs no arm takes `BasePlant` alone.

    Args:
        base_truth: the base as it is.
        arm_truth: the arm as it is.
        robot: as its sheets describe it.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time [s].
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
        self.base = BasePlant(base_truth, robot.driver, seed, start, slips)
        self.arm = ArmPlant(arm_truth, robot, seed, start)

    @property
    def time(self) -> float:
        """Simulated time [s]; the arm, in whole cycles, may be up to 1 ms behind."""
        return self.base.time

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s]."""
        self.base.advance(until)
        self.arm.advance(until)
