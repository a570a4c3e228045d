"""PID law on pose errors in the body frame (system 38), with filtered derivative and anti-windup."""

from __future__ import annotations

from dataclasses import dataclass
from math import e, exp

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector


@dataclass(frozen=True)
class PidGains:
    """Gains of one law per axis x, y, yaw: u = -Kp e - Ki int e dt - Kd de/dt, with e = actual - desired.

    Document 003 calls the desired speed a residual and the speed a coordinate: D-003-13.

    Raises:
        ValueError: a negative gain, a derivative gain of 1 or more, or a filter time that is not positive.
    """

    proportional: tuple[float, float, float]  # (3,) [1/s]
    integral: tuple[float, float, float]  # (3,) [1/s2]
    # (3,) [1]; below 1, since with a velocity command the D term is a loop of gain Kd that any delay makes unstable
    # from 1 on (system 38; finding 10)
    derivative: tuple[float, float, float]
    derivative_time: float  # time constant of the filter of the derivative [s]

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not all(gain >= 0.0 for gain in (*self.proportional, *self.integral, *self.derivative)):
            raise ValueError("gains must not be negative: e = actual - desired, the law subtracts")
        if not all(gain < 1.0 for gain in self.derivative):
            raise ValueError("derivative gains must stay below 1: beyond it any delay makes the loop unstable")
        if not self.derivative_time > 0.0:
            raise ValueError("derivative_time must be positive")


def gains_for_delay(delays: ArrayLike, aggressiveness: float, derivative: float, derivative_time: float) -> PidGains:
    """Gains that suit a loop with pure delays.

    A P law on an integrator with delay tau does not overshoot up to Kp tau = 1/e and is stable up to pi/2
    (system 38). Kp = aggressiveness / (e tau); Ki = Kp / (8 tau). At 1 the zero of the PI law lies a
    factor 3.1 below the crossover, costs 18 degrees there, and leaves a phase margin of 50 degrees.

    Args:
        delays: (3,) delay of the whole loop, x, y, yaw [s], positive.
        aggressiveness: multiple of the largest gain of a pure P law without overshoot [1].
        derivative: derivative gain of every axis [1].
        derivative_time: filter of the derivative [s].
    """
    loops = [float(delay) for delay in np.asarray(delays, dtype=float)]
    kp = [aggressiveness / (e * delay) for delay in loops]
    ki = [gain / (8.0 * delay) for gain, delay in zip(kp, loops, strict=True)]
    return PidGains((kp[0], kp[1], kp[2]), (ki[0], ki[1], ki[2]), (derivative, derivative, derivative), derivative_time)


class Pid:
    """The law with its memory."""

    def __init__(self, gains: PidGains) -> None:
        self.gains = gains
        self._integral, self._slope = [0.0] * 3, [0.0] * 3
        self._previous: tuple[float, list[float]] | None = None

    @property
    def slope(self) -> Vector:
        """Filtered rate of the error (3,) [m/s, m/s, rad/s]."""
        return np.array(self._slope)

    def correct(self, error: ArrayLike, time: float, cut: ArrayLike) -> Vector:
        """Twist correction (3,) [m/s, m/s, rad/s]; see `Feedback`.

        Where the limits cut a request, the integral does not grow further in that direction (anti-windup).
        """
        values: list[float] = np.asarray(error, dtype=float).tolist()
        gains, previous = self.gains, self._previous
        if previous is not None and time > previous[0]:
            dt = time - previous[0]
            blend = 1.0 - exp(-dt / gains.derivative_time)
            for axis, lost in enumerate(np.asarray(cut, dtype=float).tolist()):
                step = 0.5 * (values[axis] + previous[1][axis]) * dt
                if lost * step <= 1e-12 * dt:
                    self._integral[axis] += step
                self._slope[axis] += blend * ((values[axis] - previous[1][axis]) / dt - self._slope[axis])
        if previous is None or time > previous[0]:
            self._previous = (time, values)
        terms = zip(
            gains.proportional, values, gains.integral, self._integral, gains.derivative, self._slope, strict=True
        )
        return np.array([-(p * error + i * total + d * slope) for p, error, i, total, d, slope in terms])
