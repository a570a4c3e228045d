"""The youBot in MuJoCo behind its driver, with the face of the twin `youbot.Youbot`: wheels of free rollers, an arm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.robot import Driver, Robot
from youbot_dynamics.simulation.arm import ArmDriver, Order, reachable
from youbot_dynamics.simulation.base import DelayLine, SimulatedBase, counted_wheel_speeds
from youbot_dynamics.simulation.driver_reports import checked_until
from youbot_dynamics.simulation.mujoco_youbot._model import TIMESTEP
from youbot_dynamics.simulation.mujoco_youbot._plant import ArmJoints, ContactPlant, MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._view import open_window, picture
from youbot_dynamics.simulation.truth import ArmTruth, BaseTruth


class MujocoBase(SimulatedBase):
    """The wheels of a `ContactPlant` as a base behind its driver.

    Commands come late by the truth's dead times, in twist space as in the twin. What the wheels do on the floor is up
    to the engine: the truth's lateral factor and wandering torque have no place here, they come of the rollers.

    Args:
        plant: what moves; the other arguments are those of `BasePlant`.
    """

    def __init__(self, plant: ContactPlant, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0) -> None:
        super().__init__(truth, driver, seed)
        self._plant = plant
        self._start, self._cycle = start, 0
        # A twist, and what the wheels do beside one.
        self._line = DelayLine([*truth.dead_times(), *[truth.dead_time_x] * 4])

    @property
    def time(self) -> float:
        """Simulated time [s]: at most 1 ms before the requested time."""
        return self._start + self._cycle * TIMESTEP

    def switch_motors(self, on: bool) -> None:
        """Motors of the wheels off: no torque, the base coasts to rest against its friction."""
        self._plant.switch_motors(on)

    def advance(self, until: float) -> None:
        """Simulate a robot whose arm is held up to `until` [s], in whole cycles of 1 ms."""
        for _ in range(self.pass_commands(until)):
            self._plant.cycle()

    def pass_commands(self, until: float) -> int:
        """Hand the plant the delayed commands of its whole cycles up to `until` [s]; their number, counted as done."""
        cycles = max(0, int(np.floor((checked_until(until, self.time) - self._start) / TIMESTEP + 1e-6)) - self._cycle)
        if cycles > 0:
            means = self._line.means(self.time, TIMESTEP, cycles)
            self._plant.take_commands(means[:, :3] @ self._driver_base.inverse_matrix.T + means[:, 3:])
            self._cycle += cycles
        return cycles

    def _push(self, wheel_speeds: Vector, time: float) -> None:
        counted = counted_wheel_speeds(self.driver, wheel_speeds)
        twist = self._driver_base.twist(counted)
        self._line.push(time, [*twist, *(counted - self._driver_base.wheel_speeds(twist))])

    def _true(self, quantity: str) -> Vector:
        true: Vector = getattr(self._plant, quantity)
        return true


class MujocoArm(ArmDriver):
    """Joints in MuJoCo as an arm behind its driver; arguments as there."""

    def __init__(
        self, joints: ArmJoints, truth: ArmTruth, robot: Robot, model: ArmModel, seed: int, start: float = 0.0
    ) -> None:
        self._joints = joints
        super().__init__(truth, robot, model, seed, start)

    def _true(self, quantity: str) -> Vector:
        true: Vector = getattr(self._joints, quantity)
        return true

    def _run(self, order: Order, controllers: Vector, memory: Vector, steps: int) -> bool:
        return self._joints.run(order, controllers, memory, steps)


class MujocoYoubot:
    """Base and arm in simulated time: command them, advance them, read them.

    Base and arm are one mechanism: the arm that swings pushes the base, the base that brakes throws the arm. Time runs
    in whole cycles of 1 ms. Who needs no arm takes `MujocoBase` alone.

    Args, besides those of `youbot.Youbot`:
        position: (5,) of the arm at the start [rad], folded by default.

    Attributes:
        base: the base behind its driver.
        arm: the arm behind its driver.
        plant: what moves, with MuJoCo's `model` and `data`.

    Raises:
        InputError: a wrong shape, a position beyond the limits, or a motion without bounds.
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
    ) -> None:
        model = arm_truth.model(robot)
        at = reachable("position", robot.arm.rest_position if position is None else position, model)
        self.plant = MujocoPlant(base_truth, model, position=at, arm_speed_lag=arm_truth.speed_lag)
        self.base = MujocoBase(self.plant, base_truth, robot.driver, seed, start)
        self.arm = MujocoArm(self.plant.joints, arm_truth, robot, model, seed, start)
        self._window: Any = None

    @property
    def time(self) -> float:
        """Simulated time [s]: at most 1 ms before the requested time."""
        return self.base.time

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in whole cycles of 1 ms."""
        self.base.pass_commands(until)
        self.arm.advance(until)
        if self._window is not None and self._window.is_running():
            self._window.sync()

    def open_window(self) -> None:
        """Show the robot in MuJoCo's viewer from now on; a window that is closed stops nothing."""
        self._window = open_window(self.plant.model, self.plant.data)

    def picture(self, width: int = 960, height: int = 640) -> NDArray[np.uint8]:
        """Picture (height, width, 3) of the robot as it stands; see `picture` for what it needs."""
        return picture(self.plant.model, self.plant.data, width, height)
