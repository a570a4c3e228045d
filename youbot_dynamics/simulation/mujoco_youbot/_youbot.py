"""The youBot in MuJoCo behind its driver, with the face of the twin `youbot.Youbot`: wheels of free rollers, an arm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.robot import Driver, Robot
from youbot_dynamics.simulation.arm import FOLDED, ArmDriver, reachable
from youbot_dynamics.simulation.base import BaseReading, BaseSampler, DelayLine, EffortReading, counted_wheel_speeds
from youbot_dynamics.simulation.mujoco_youbot._model import TIMESTEP, ContactBase
from youbot_dynamics.simulation.mujoco_youbot._plant import MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._view import open_window, picture
from youbot_dynamics.simulation.truth import ArmTruth, BaseTruth


class MujocoBase:
    """The face of the twin's base (`BasePlant`) on the wheels of a `MujocoPlant`, whose time it keeps.

    Commands come late by the truth's dead times, in twist space as in the twin. What the wheels do on the floor is up
    to MuJoCo: the truth's lateral factor and wandering torque have no place here, they come of the rollers.

    Args:
        plant: what moves.
        truth: the base as it is.
        driver: how its driver speaks.
        seed: of the noise.
        start: simulated time [s].
    """

    def __init__(self, plant: MujocoPlant, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0) -> None:
        self.truth = truth
        self.driver = driver
        self._plant = plant
        self._start, self._cycle = start, 0
        self._driver_base = driver.mecanum()
        # A twist, and what the wheels do beside one.
        self._line = DelayLine([*truth.dead_times(), *[truth.dead_time_x] * 4])
        self._sampler = BaseSampler(truth, driver, seed)

    @property
    def time(self) -> float:
        """Simulated time [s]: at most 1 ms before the one last asked for."""
        return self._start + self._cycle * TIMESTEP

    @property
    def pose(self) -> Vector:
        """True pose (3,) in the world [m, m, rad], yaw not wrapped."""
        return self._plant.pose

    @property
    def twist(self) -> Vector:
        """True body twist (3,) [m/s, m/s, rad/s]."""
        return self._plant.twist

    @property
    def wheel_angles(self) -> Vector:
        """True wheel angles (4,) [rad], positive forward."""
        return self._plant.wheel_angles

    @property
    def wheel_speeds(self) -> Vector:
        """True wheel speeds (4,) [rad/s], positive forward."""
        return self._plant.wheel_speeds

    @property
    def wheel_torques(self) -> Vector:
        """True torques (4,) of the motors at the wheels [N m], positive forward."""
        return self._plant.wheel_torques

    def command_twist(self, twist: ArrayLike, time: float | None = None) -> None:
        """Twist as the driver's cmd_vel takes it: held for ever, turned into wheel speeds by *its* geometry.

        Args:
            twist: (3,) [m/s, m/s, rad/s].
            time: of reception [s], now if not given.

        Raises:
            InputError: a wrong shape or a number that is not finite.
        """
        self._push(self._driver_base.wheel_speeds(array("twist", twist, (3,))), time)

    def command_wheels(self, wheel_speeds: ArrayLike, time: float | None = None) -> None:
        """Wheel speeds (4,) [rad/s] in the driver's signs; those that no motion explains make the rollers slip.

        Args:
            wheel_speeds: (4,) of FL, FR, RL, RR.
            time: of reception [s], now if not given.

        Raises:
            InputError: a wrong shape or a number that is not finite.
        """
        self._push(array("wheel_speeds", wheel_speeds, (4,)) * np.array(self.driver.command_sign), time)

    def switch_motors(self, on: bool) -> None:
        """Motors of the wheels off: no torque, the base coasts to rest against its friction."""
        self._plant.switch_motors(on)

    def advance(self, until: float) -> None:
        """Simulate a robot whose arm is held up to `until` [s], in whole cycles of 1 ms."""
        cycles = self.cycles_until(until)
        self.ask(cycles)
        for _ in range(cycles):
            self._plant.cycle()

    def cycles_until(self, until: float) -> int:
        """Number of whole cycles of 1 ms up to `until` [s], 0 for the past."""
        return max(0, int(np.floor((until - self._start) / TIMESTEP + 1e-6)) - self._cycle)

    def ask(self, cycles: int) -> None:
        """Hand the plant the delayed commands of its next cycles, and count these as done."""
        if cycles == 0:
            return
        means = self._line.means(self.time, TIMESTEP, cycles)
        self._plant.ask_wheels(means[:, :3] @ self._driver_base.inverse_matrix.T + means[:, 3:])
        self._cycle += cycles

    def read(self) -> BaseReading:
        """What the driver reports now: one pass of its 50 Hz loop."""
        return self._sampler.wheels(self.time, self._plant.wheel_angles, self._plant.told_wheel_speeds)

    def read_efforts(self) -> EffortReading:
        """Torques of the wheels' motors now, for robots whose driver reports them."""
        return self._sampler.efforts(self.time, self._plant.wheel_torques)

    def _push(self, wheel_speeds: Vector, time: float | None) -> None:
        counted = counted_wheel_speeds(self.driver, wheel_speeds)
        twist = self._driver_base.twist(counted)
        beside = counted - self._driver_base.wheel_speeds(twist)
        self._line.push(self.time if time is None else time, [*twist, *beside])


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
        """Picture (height, width, 3) of the robot as it stands; see `picture` for what it needs."""
        return picture(self.plant.model, self.plant.data, width, height)
