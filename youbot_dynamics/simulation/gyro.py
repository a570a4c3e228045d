"""A gyro on a simulated robot: yaw rates with noise and a bias, on a clock of its own."""

from __future__ import annotations

from math import sqrt

import numpy as np

from youbot_dynamics.arrays import number


class Gyro:
    """Readings of the yaw rate at a fixed rate.

    Args:
        seed: of the noise and the bias; equal seeds give equal bits.
        rate: readings per second [Hz].
        noise: density [rad/s/sqrt(Hz)]; 0.006 deg/s/sqrt(Hz) by default, as small MEMS gyros have.
        bias: standard deviation of the constant bias that is drawn [rad/s].

    Attributes:
        next_time: of the next reading [s].

    Raises:
        ModelError: a rate that is not positive, negative noise or bias.
    """

    def __init__(self, seed: int, rate: float = 200.0, noise: float = 1e-4, bias: float = 0.02) -> None:
        self._random = np.random.default_rng([seed, 11])
        self._period = 1.0 / number("rate of the gyro", rate, "Hz", above=0.0)
        self._noise = number("noise of the gyro", noise, "rad/s/sqrt(Hz)", low=0.0) / sqrt(self._period)
        self._bias = number("bias of the gyro", bias, "rad/s", low=0.0) * float(self._random.standard_normal())
        self._count = 0

    @property
    def next_time(self) -> float:
        """When the next reading is due [s]."""
        return self._count * self._period

    def read(self, time: float, yaw_rate: float) -> tuple[float, float]:
        """Stamp [s] and what it reads of a true yaw rate [rad/s]; the next reading is due a period later."""
        self._count += 1
        return time, yaw_rate + self._bias + self._noise * float(self._random.standard_normal())
