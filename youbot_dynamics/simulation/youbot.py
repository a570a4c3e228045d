"""Digital twin of the youBot behind its driver: delayed, lagging, rubbing base; quantised, jittery readings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation import base_dynamics as dynamics
from youbot_dynamics.simulation.delay_line import DelayLine
from youbot_dynamics.simulation.truth import BaseTruth

Vector = NDArray[np.float64]

# Stamps are drawn from a normal distribution cut here, so that they stay in order at 50 Hz.
_WORST_JITTER = 4.0


@dataclass(frozen=True, eq=False)
class BaseReading:
    """One base message of the driver, in the driver's signs.

    Args:
        stamp: when the driver says the reading was taken [s].
        position: (4,) wheel angles FL, FR, RL, RR [rad], quantised.
        velocity: (4,) wheel speeds [rad/s], quantised to 15 motor rpm.
        odometry: (3,) pose the driver itself reckons, with the heading after each step [m, m, rad].
        twist: (3,) twist the driver itself reckons [m/s, m/s, rad/s].
    """

    stamp: float
    position: Vector
    velocity: Vector
    odometry: Vector
    twist: Vector


class Youbot:
    """The base in simulated time: command it, advance it, read it.

    Args:
        truth: the robot as it is.
        driver: how its driver speaks.
        seed: of the noise; equal seeds and calls give equal bits.
        start: simulated time at rest at the origin [s].
    """

    def __init__(self, truth: BaseTruth, driver: Driver, seed: int, start: float = 0.0) -> None:
        self.truth = truth
        self.driver = driver
        self.time = start
        self._random = np.random.default_rng([seed, 1])
        self._driver_base = driver.mecanum()
        self._true_base = truth.mecanum()
        self._inertia = dynamics.effective_inertia(truth)
        self._viscous = np.array([truth.viscous_x, truth.viscous_y])
        self._line = DelayLine(truth.dead_times())
        self._state = np.zeros(dynamics.STATE_SIZE)
        self._powered = True
        self._odometry = np.zeros(3)
        self._last_angles = self._quantised_angles()

    @property
    def pose(self) -> Vector:
        """True pose (3,) in the world [m, m, rad], yaw not wrapped."""
        return self._state[dynamics.POSE].copy()

    @property
    def twist(self) -> Vector:
        """True body twist (3,) [m/s, m/s, rad/s]."""
        return self._state[dynamics.TWIST].copy()

    @property
    def wheel_angles(self) -> Vector:
        """True wheel angles (4,) [rad], positive forward."""
        return self._state[dynamics.WHEELS].copy()

    def command_twist(self, twist: ArrayLike, time: float | None = None) -> None:
        """Twist as the driver's cmd_vel takes it: held for ever, turned into wheel speeds by *its* geometry.

        Args:
            twist: (3,) [m/s, m/s, rad/s].
            time: of reception [s], now if not given.
        """
        # Wheels of the driver's opinion roll on the true floor: that is the twist the base is really asked for.
        asked = self._true_base.twist(self._driver_base.wheel_speeds(twist))
        self._line.push(self.time if time is None else time, asked)

    def command_wheels(self, wheel_speeds: ArrayLike, time: float | None = None) -> None:
        """Wheel speeds (4,) [rad/s] in the driver's signs; the part that no motion explains is lost in slip."""
        ours = np.asarray(wheel_speeds, dtype=float) * np.array(self.driver.command_sign)
        self._line.push(self.time if time is None else time, self._true_base.twist(ours))

    def switch_motors(self, on: bool) -> None:
        """Motors off: no torque, the base coasts to rest against its friction."""
        self._powered = on

    def advance(self, until: float) -> None:
        """Simulate up to `until` [s], in steps of at most 1 ms."""
        span = until - self.time
        if span <= 0.0:
            return
        steps = max(1, round(span / dynamics.STEP))
        dt = span / steps
        truth = self.truth
        dynamics.advance(
            self._state,
            self._line.means(self.time, dt, steps),
            self._random.standard_normal((steps, 4)),
            dt,
            self._inertia,
            self._true_base.inverse_matrix,
            self._true_base.positions,
            truth.mass,
            truth.lag,
            truth.torque_noise,
            truth.wheel_coulomb,
            truth.roller_coulomb,
            self._viscous,
            self._powered,
        )
        self.time = until

    def read(self) -> BaseReading:
        """What the driver reports now: one pass of its 50 Hz loop."""
        jitter = float(np.clip(self._random.normal(), -_WORST_JITTER, _WORST_JITTER)) * self.truth.stamp_jitter
        angles = self._quantised_angles()
        quantum = self.driver.velocity_quantum
        speeds = self._true_base.wheel_speeds(self.twist)
        speeds = np.round(speeds / quantum) * quantum if quantum > 0.0 else speeds
        step = self._driver_base.twist(angles - self._last_angles)
        self._last_angles = angles
        # The driver adds each step with the heading *after* it: its odometry is off by wz dt / 2 (system 28).
        yaw = self._odometry[2] + step[2]
        self._odometry[:2] += planar.rotation(yaw) @ step[:2]
        self._odometry[2] = yaw
        return BaseReading(
            stamp=self.time + jitter,
            position=angles * np.array(self.driver.position_sign),
            velocity=speeds * np.array(self.driver.velocity_sign),
            odometry=self._odometry.copy(),
            twist=self._driver_base.twist(speeds),
        )

    def _quantised_angles(self) -> Vector:
        quantum = self.driver.position_quantum
        angles = self._state[dynamics.WHEELS]
        return np.round(angles / quantum) * quantum if quantum > 0.0 else angles.copy()


def effective_delay(
    command_time: ArrayLike, command: ArrayLike, time: ArrayLike, motion: ArrayLike, longest: float = 0.8
) -> float:
    """Shift that best maps a held command onto noise-free motion, by brute force over a grid.

    Least squares of motion(t) - (a + g C(t - shift)), C the integral of the held command; 10 us grid.

    Args:
        command_time: (n,) [s], increasing.
        command: (n,) held from its time on [unit/s].
        time: (m,) [s].
        motion: (m,) true displacement of the axis [unit].
        longest: largest shift searched [s].

    Returns:
        The shift [s].
    """
    t, u = np.asarray(command_time, dtype=float), np.asarray(command, dtype=float)
    at, moved = np.asarray(time, dtype=float), np.asarray(motion, dtype=float)
    corners = np.concatenate([[0.0], np.cumsum(np.diff(t) * u[:-1])])
    inside = at > t[0] + longest
    at, moved = at[inside], moved[inside]

    moved = moved - moved.mean()

    def misfit(shift: float) -> float:
        query = at - shift
        k = np.searchsorted(t, query, side="right") - 1
        model = corners[k] + u[k] * (query - t[k])
        model = model - model.mean()
        return float(moved @ moved - (model @ moved) ** 2 / (model @ model))

    grid = np.arange(0.0, longest, 5e-3)
    for step in (5e-4, 1e-4, 1e-5):
        best = float(grid[int(np.argmin([misfit(shift) for shift in grid]))])
        width = float(grid[1] - grid[0])
        grid = np.arange(max(0.0, best - width), best + width, step)
    return float(grid[int(np.argmin([misfit(shift) for shift in grid]))])
