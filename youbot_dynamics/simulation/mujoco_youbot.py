"""The youBot in MuJoCo behind its driver, with the face of the twin `youbot.Youbot`: wheels of free rollers, an arm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.arm_driver import FOLDED, ArmDriver, reachable
from youbot_dynamics.simulation.arm_truth import ArmTruth
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.mujoco_base import MujocoBase
from youbot_dynamics.simulation.mujoco_model import ContactBase
from youbot_dynamics.simulation.mujoco_plant import MujocoPlant
from youbot_dynamics.simulation.mujoco_view import open_window, picture


class MujocoYoubot:
    """Base and arm in simulated time: command them, advance them, read them.

    Base and arm are one mechanism: the arm that swings pushes the base, the base that brakes throws the arm. Time runs
    in whole cycles of 1 ms. Who needs no arm takes `MujocoBase` alone.

    Args:
        base_truth: the base as it is.
        arm_truth: the arm as it is.
        robot: as its sheets describe it.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time at rest at the origin [s].
        position: (5,) of the arm at the start [rad], folded by default.
        contact: the base on its floor; made of the truth by default.

    Attributes:
        base: the base behind its driver.
        arm: the arm behind its driver.
        plant: what moves, with MuJoCo's `model` and `data`.

    Raises:
        InputError: a wrong shape, or a position beyond the limits.
        ModelError: constants no robot has.
        ResourceError: MuJoCo is not installed.
    """

    def __init__(
        self,
        base_truth: BaseTruth,
        arm_truth: ArmTruth,
        robot: Robot,
        seed: int,
        start: float = 0.0,
        *,
        position: ArrayLike | None = None,
        contact: ContactBase | None = None,
    ) -> None:
        model = arm_truth.model(robot)
        at = reachable("position", FOLDED if position is None else position, model)
        self.plant = MujocoPlant(
            ContactBase.of_truth(base_truth) if contact is None else contact,
            model,
            position=at,
            speed_lag=base_truth.speed_lag,
            arm_speed_lag=arm_truth.speed_lag,
        )
        self.base = MujocoBase(self.plant, base_truth, robot.driver, seed, start)
        self.arm = ArmDriver(arm_truth, robot, model, self.plant.joints, seed, start)
        self._window: Any = None

    @property
    def time(self) -> float:
        """Simulated time [s]: at most 1 ms before the one last asked for."""
        return self.base.time

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in whole cycles of 1 ms.

        Raises:
            InputError: a motion without bounds.
        """
        self.base.ask(self.base.cycles_until(until))
        self.arm.advance(until)
        if self._window is not None and self._window.is_running():
            self._window.sync()

    def open_window(self) -> None:
        """Show the robot in MuJoCo's viewer from now on; a window that is closed stops nothing."""
        self._window = open_window(self.plant.model, self.plant.data)

    def picture(self, width: int = 960, height: int = 640) -> NDArray[np.uint8]:
        """Picture (height, width, 3) of the robot as it stands; see `mujoco_view.picture` for what it needs."""
        return picture(self.plant.model, self.plant.data, width, height)
