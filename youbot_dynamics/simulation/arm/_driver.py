"""The arm's driver: takes commands, drives the motor controllers in cycles of 1 ms, reports at 50 Hz.

It is one for every plant; what moves behind it is the twin's compiled loop, or MuJoCo.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, scalar
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.arm import _controller as controller
from youbot_dynamics.simulation.arm._controller import FASTEST, JointTrajectory, Order
from youbot_dynamics.simulation.driver_reports import ArmReading, checked_until, stamped
from youbot_dynamics.simulation.truth import ArmTruth, generator

FINGERS = 2  # of the gripper; the message carries them behind the arm's joints
CURRENT_QUANTUM = 1e-3  # [A] the motor controllers count currents in mA


@dataclass(frozen=True, eq=False)
class VoltageReading:
    """Motor voltages of a robot that measures them; the youBot does not."""

    stamp: float  # [s]
    voltage: Vector  # (n,) R(T) i + K N v with noise [V]


@dataclass(frozen=True, eq=False)
class TemperatureReading:
    """Motor temperatures of a robot that measures them; the youBot does not."""

    stamp: float  # [s]
    winding: Vector  # (n,) with noise [degC]
    housing: Vector  # (n,) with noise [degC]


class ArmSampler:
    """The driver's view of an arm of n joints.

    Args:
        truth: the arm as it is: noise and jitter.
        robot: as its sheets say: quanta and the constants the driver turns currents into efforts with.
        seed: of the noise; equal seeds and calls give equal bits.

    Attributes:
        effort_of_current: (n,) Kt N of the sheets [N m/A].
    """

    def __init__(self, truth: ArmTruth, robot: Robot, seed: int) -> None:
        self._truth = truth
        self._random = generator(seed, 4)
        # Apart, so that a robot that reads them sees the same arm as one that does not.
        self._extra = generator(seed, 5)
        motors = [joint.motor for joint in robot.arm.joints]
        self.effort_of_current = np.array([motor.torque_constant * motor.gear_ratio for motor in motors])
        self._current_noise = truth.effort_noise / self.effort_of_current
        quanta = np.array([*robot.arm_quanta(), np.full(len(motors), CURRENT_QUANTUM)])
        self._exact = quanta == 0.0
        self._quanta = np.where(self._exact, 1.0, quanta)

    def joints(self, time: float, position: Vector, reported_speed: Vector, current: Vector) -> ArmReading:
        """One message of position (n,) [rad], speed (n,) [rad/s] as the controllers filter it and current (n,) [A]."""
        n = len(position)
        noise = self._random.standard_normal(1 + n)
        sensed = np.array([position, reported_speed, current + self._current_noise * noise[1:]])
        counted = np.rint(sensed / self._quanta) * self._quanta
        counted[self._exact] = sensed[self._exact]
        counted[2] *= self.effort_of_current
        values = np.zeros((3, n + FINGERS))
        values[:, :n] = counted
        return ArmReading(self._stamp(time, noise[0]), values[0], values[1], values[2])

    def voltages(self, time: float, voltage: Vector) -> VoltageReading:
        """Motor voltages (n,) [V] with noise, taken at `time` [s]."""
        noise = self._extra.standard_normal(1 + len(voltage))
        return VoltageReading(self._stamp(time, noise[0]), voltage + self._truth.voltage_noise * noise[1:])

    def temperatures(self, time: float, winding: Vector, housing: Vector) -> TemperatureReading:
        """Temperatures of windings (n,) and housings (n,) [degC] with noise, taken at `time` [s]."""
        n = len(winding)
        noise = self._extra.standard_normal(1 + 2 * n)
        error = self._truth.temperature_noise * noise[1:]
        return TemperatureReading(self._stamp(time, noise[0]), winding + error[:n], housing + error[n:])

    def _stamp(self, time: float, normal: float) -> float:
        return stamped(time, float(normal), self._truth.stamp_jitter)


_LOOP = 0.02  # [s] period of the driver's loop over ROS


class ArmDriver(ABC):
    """The arm behind its driver, in simulated time; it holds its position from the start.

    Time runs in whole cycles of 1 ms: what happens does not depend on how `advance` is called. A command takes effect
    after the truth's `command_delay`; all but torques wait for the driver's 50 Hz loop before. It holds until the
    next one: the driver has no watchdog. Signs and zeros are those of the arm's URDF.

    Commands take the `time` of their reception [s], now if not given; an InputError refuses a wrong shape, a number
    that is not finite, or what is beyond the limits. It also ends a motion without bounds.

    Args:
        truth: the arm as it is.
        robot: as its sheets describe it: gains of the controllers, constants and quanta of the driver.
        model: `truth.model(robot)`.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time [s].
    """

    def __init__(self, truth: ArmTruth, robot: Robot, model: ArmModel, seed: int, start: float = 0.0) -> None:
        self.truth = truth
        self.model = model
        self._start = scalar("start", start)
        self._cycle = 0
        self._sampler = ArmSampler(truth, robot, seed)
        self._controllers = controller.controllers_of(robot)
        self._one_rpm = 2.0 * math.pi / 60.0 / np.array([joint.motor.gear_ratio for joint in robot.arm.joints])
        n = model.tree.nv
        self._memory = np.zeros((n, 5))
        # It has been holding itself for long: the integral carries its weight.
        at = self.position
        self._memory[:, controller.CURRENT] = model.tree.gravity_forces(at) / torque_of_current(model)
        self._memory[:, controller.INTEGRAL] = self._memory[:, controller.CURRENT]
        self._pending: deque[tuple[int, int, Any]] = deque()
        self._mode = controller.POSITION_MODE
        self._trajectory = JointTrajectory(np.zeros(1), at[None])
        self._pieces = self._trajectory.pieces()
        self._trajectory_cycle = 0
        self._hold()

    @property
    def time(self) -> float:
        """Simulated time [s]: at most 1 ms before the requested time."""
        return self._start + self._cycle * controller.STEP

    @property
    def position(self) -> Vector:
        """True positions (n,) [rad]."""
        return self._true("position")

    @property
    def speed(self) -> Vector:
        """True speeds (n,) [rad/s]."""
        return self._true("speed")

    @property
    def winding(self) -> Vector:
        """True temperatures of the windings (n,) [degC]."""
        return self._true("winding")

    @property
    def housing(self) -> Vector:
        """True temperatures of the motor housings (n,) [degC]."""
        return self._true("housing")

    @property
    def current(self) -> Vector:
        """True currents of the motors (n,) [A], held over the last cycle."""
        return self._memory[:, controller.CURRENT].copy()

    @property
    def torque(self) -> Vector:
        """True torques of the motors at the joints (n,) [N m]."""
        return torque_of_current(self.model) * self.current

    @property
    def reference(self) -> Vector:
        """Where ramp or trajectory want the joints now (n,) [rad]; of old in other modes."""
        return self._memory[:, controller.REFERENCE].copy()

    def command_positions(self, position: ArrayLike, time: float | None = None) -> None:
        """Go to positions (n,) [rad] along the ramps; as the driver, it refuses one beyond the limits as a whole."""
        self._queue(controller.POSITION_MODE, reachable("position", position, self.model), time)

    def command_velocities(self, velocity: ArrayLike, time: float | None = None) -> None:
        """Turn with speeds (n,) [rad/s], reached by the ramps and cut at the joints' largest; counted in motor rpm."""
        clipped = np.clip(self._finite("velocity", velocity), -FASTEST, FASTEST)  # else the counting overflows
        counted = np.rint(clipped / self._one_rpm) * self._one_rpm
        self._queue(controller.VELOCITY, counted, time)

    def command_torques(self, torque: ArrayLike, time: float | None = None) -> None:
        """Torques (n,) [N m] by the sheets' constants, Kt N i: the true motors give up to 3 % more or less.

        They are cut where the currents have their limit.
        """
        self._queue(controller.TORQUE, self._finite("torque", torque) / self._sampler.effort_of_current, time)

    def command_trajectory(
        self,
        times: ArrayLike,
        positions: ArrayLike,
        velocities: ArrayLike | None = None,
        accelerations: ArrayLike | None = None,
        time: float | None = None,
    ) -> None:
        """Follow a trajectory, then rest at its end; it begins when the command takes effect.

        Args:
            times: (m,) since its begin [s]; where the first is above 0, it starts from where the arm then is.
            positions: (m, n) [rad].
            velocities: (m, n) [rad/s].
            accelerations: (m, n) [rad/s2].
            time: of reception [s].

        Raises:
            InputError: knots that are no trajectory, beyond the limits, or joined by absurd speeds.
        """
        checked = JointTrajectory(times, positions, velocities, accelerations)  # type: ignore[arg-type]
        for k, row in enumerate(checked.positions):
            reachable(f"positions[{k}]", row, self.model)
        checked.check_speeds(self.position)
        self._queue(controller.TRAJECTORY, checked, time)

    def switch_motors(self, on: bool) -> None:
        """Motors off: no current, the arm falls, for there are no brakes; a later command or on: it holds again.

        As in the driver, off is a command of no current, at once; what was commanded before is forgotten.
        """
        self._pending.clear()
        if on:
            if self._mode == controller.TORQUE:
                self._apply(controller.POSITION_MODE, None)
        else:
            self._apply(controller.TORQUE, np.zeros(len(self._memory)))

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in whole cycles of 1 ms.

        Raises:
            InputError: a time that is not finite or more than an hour ahead, or a motion without bounds.
        """
        goal = math.floor((checked_until(until, self.time + controller.STEP) - self._start) / controller.STEP + 1e-6)
        while self._cycle < goal:
            while self._pending and self._pending[0][0] <= self._cycle:
                _, mode, what = self._pending.popleft()
                self._apply(mode, what)
            steps = goal - self._cycle
            if self._pending:
                steps = min(steps, self._pending[0][0] - self._cycle)
            order = Order(
                self._mode,
                self._trajectory.times,
                self._pieces,
                self._trajectory.positions[-1],
                (self._cycle - self._trajectory_cycle) * controller.STEP,
            )
            if not self._run(order, self._controllers, self._memory, steps):
                expected = "true parameters that are physically possible"
                raise InputError("motion of the arm", got="values without bounds", expected=expected)
            self._cycle += steps

    def read(self) -> ArmReading:
        """What the driver reports now: one pass of its 50 Hz loop."""
        reported_speed, current = self._true("reported_speed"), self._memory[:, controller.CURRENT]
        return self._sampler.joints(self.time, self.position, reported_speed, current)

    def read_voltages(self) -> VoltageReading:
        """Motor voltages now, for robots that measure them."""
        resistance = [
            geared.motor.resistance_at(float(winding))
            for geared, winding in zip(self.model.motors, self.winding, strict=True)
        ]
        voltage = resistance * self.current + torque_of_current(self.model) * self.speed
        return self._sampler.voltages(self.time, voltage)

    def read_temperatures(self) -> TemperatureReading:
        """Motor temperatures now, for robots that measure them."""
        return self._sampler.temperatures(self.time, self.winding, self.housing)

    @abstractmethod
    def _true(self, quantity: str) -> Vector:
        """The position, speed, winding or housing (n,), or `reported_speed`, behind the lag of the motor controllers.

        The array is the caller's to keep.
        """

    @abstractmethod
    def _run(self, order: Order, controllers: Vector, memory: Vector, steps: int) -> bool:
        """Move on by cycles of 1 ms; before each, `control_cycle` sets the currents, held over the cycle.

        False where the motion has no bounds.

        Args:
            order: what to do; its `elapsed` is that at the first cycle.
            controllers: (n, 8) constants of the motor controllers.
            memory: (n, 5) of the motor controllers, changed; its column CURRENT holds the currents [A].
            steps: number of cycles.
        """

    def _hold(self) -> None:
        """Let the ramps begin where the joints are, and end there."""
        at = self.position
        self._memory[:, controller.COMMAND] = at
        self._memory[:, controller.REFERENCE] = at
        self._memory[:, controller.RAMP_SPEED] = self.speed

    def _apply(self, mode: int, what: Any) -> None:
        if mode == controller.TRAJECTORY:
            self._trajectory = what.beginning_at(self.position)
            self._pieces = self._trajectory.pieces()
            self._trajectory_cycle = self._cycle
        else:
            if mode != self._mode:
                self._hold()
            if what is not None:
                self._memory[:, controller.COMMAND] = what
        self._mode = mode

    def _queue(self, mode: int, what: Any, time: float | None) -> None:
        received = self.time if time is None else scalar("time", time)
        if mode != controller.TORQUE:
            phase = self.truth.loop_phase
            received = phase + _LOOP * math.ceil((received - phase) / _LOOP - 1e-6)
        cycle = math.ceil((received + self.truth.command_delay - self._start) / controller.STEP - 1e-6)
        if self._pending:
            cycle = max(cycle, self._pending[-1][0])
        self._pending.append((cycle, mode, what))

    def _finite(self, thing: str, value: ArrayLike) -> Vector:
        return array(thing, value, (len(self._memory),)).copy()


def torque_of_current(model: ArmModel) -> Vector:
    """Torque of each joint over the current of its motor (n,), N K [N m/A]; also its back-EMF over the speed."""
    return np.array([geared.ratio * geared.motor.torque_constant for geared in model.motors])


def reachable(thing: str, position: ArrayLike, model: ArmModel) -> Vector:
    """The position (n,) [rad], called `thing` in messages, of an arm whose limits it must keep.

    Raises:
        InputError: a wrong shape, a number that is not finite, or a position beyond the limits.
    """
    checked = array(thing, position, (model.tree.nv,)).copy()
    for k, (q, limit) in enumerate(zip(checked, model.tree.limits, strict=True)):
        if not limit.lower <= q <= limit.upper:
            raise InputError(f"{thing}[{k}]", got=f"{q:g}", expected=f"{limit.lower:g} to {limit.upper:g} [rad]")
    return checked
