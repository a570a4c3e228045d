"""The driver's two accounts of a wheel, position and speed, against each other: sign, scale and lag (system 30)."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, read_only

_PIECE = 0.4  # [s] over which speeds are summed
_MEMORY = 10.0  # [s] with which what was seen fades: after three of it a twentieth is left
_LONGEST_STEP = 0.2  # [s] between readings
_FEWEST = 10  # pieces in motion before anything is said
_MOTION = 0.02  # [rad] or [rad/s] in a piece: less tells nothing, and must not make the rest look sure
_SURE = 3.0  # standard errors
_SCALE_OFF = 0.1  # share by which a speed may differ from the slope of the position
_LAG_OFF = 0.02  # [s] by which the speed may be later than expected


@dataclass(frozen=True, eq=False)
class SpeedChannels:
    """How the speeds of the wheels go with their positions; arrays are read-only, NaN where nothing is known yet.

    Args:
        scale: (n,) speed told over slope of the position [1]: 1 where both are right, -1 in the driver's sign trap.
        scale_error: (n,) standard error.
        lag: (n,) by which speeds come behind positions [s].
        lag_error: (n,) standard error [s].
    """

    scale: Vector
    scale_error: Vector
    lag: Vector
    lag_error: Vector


class SpeedChannelCheck:
    """Fits how the speed told goes with the position, for each wheel, over pieces of time.

        position(t2) - position(t1) = (sum of speed dt + lag (speed(t2) - speed(t1))) / scale

    That is the integral of a speed that is scale times the slope of the position, a lag ago, to first order; sums of
    speeds know no slopes, in which the stamps' jitter would drown the lag. What was seen fades with 10 s, so that one
    jump of an encoder is no wrong gear ratio for ever.

    Args:
        joints: names of the wheels, for the report.
        expected_lag: of the motor controllers' filter [s].
    """

    def __init__(self, joints: tuple[str, ...], expected_lag: float = 0.01) -> None:
        n = len(joints)
        self.joints = joints
        self.expected_lag = expected_lag
        self._pieces = np.zeros(n)
        # Per wheel: products of the regressors, with the turn, and of the turn with itself.
        self._squares, self._products, self._power = np.zeros((n, 2, 2)), np.zeros((n, 2)), np.zeros(n)
        self._last: tuple[float, list[float], list[float]] | None = None
        self._start: tuple[float, list[float], list[float]] | None = None
        self._sum = [0.0] * n

    def update(self, stamp: float, position: ArrayLike, velocity: ArrayLike) -> None:
        """Take one reading in our signs: (n,) angles [rad] and speeds [rad/s]; a gap or a NaN begins a new piece."""
        angles: list[float] = np.asarray(position, dtype=float).tolist()
        speeds: list[float] = np.asarray(velocity, dtype=float).tolist()
        if not all(map(isfinite, (*angles, *speeds))):
            self._last = self._start = None
            return
        last, self._last = self._last, (stamp, angles, speeds)
        if self._start is None or last is None or not 0.0 < stamp - last[0] <= _LONGEST_STEP:
            self._start, self._sum = self._last, [0.0] * len(self.joints)
            return
        half = 0.5 * (stamp - last[0])
        self._sum = [total + half * (a + b) for total, a, b in zip(self._sum, last[2], speeds, strict=True)]
        if stamp - self._start[0] >= _PIECE:
            self._add(np.subtract(angles, self._start[1]), np.subtract(speeds, self._start[2]))
            self._start, self._sum = self._last, [0.0] * len(self.joints)

    def _add(self, turned: Vector, gained: Vector) -> None:
        fade = np.exp(-_PIECE / _MEMORY)
        for sums in (self._squares, self._products, self._power, self._pieces):
            sums *= fade
        columns = np.column_stack([self._sum, gained])
        self._squares += columns[:, :, None] * columns[:, None, :]
        self._products += columns * turned[:, None]
        self._power += turned**2
        self._pieces += (np.abs(columns) > _MOTION).any(axis=1)

    def channels(self) -> SpeedChannels:
        """What is known by now."""
        n = len(self.joints)
        scale, scale_error, lag, lag_error = (np.full(n, np.nan) for _ in range(4))
        for k in range(n):
            squares = self._squares[k]
            if self._pieces[k] < _FEWEST or np.linalg.det(squares) <= 1e-9 * squares[0, 0] * squares[1, 1]:
                continue
            inverse, late = np.linalg.solve(squares, self._products[k]).tolist()
            left = max(float(self._power[k] - self._products[k] @ [inverse, late]), 0.0) / (self._pieces[k] - 2)
            errors = np.sqrt(np.diag(np.linalg.inv(squares)) * left)
            if inverse == 0.0:
                continue
            scale[k], scale_error[k] = 1.0 / inverse, errors[0] / inverse**2
            lag[k], lag_error[k] = late / inverse, errors[1] / abs(inverse)
        return SpeedChannels(*(read_only(values) for values in (scale, scale_error, lag, lag_error)))

    def complaints(self) -> tuple[str, ...]:
        """One text for each wheel whose channels do not go together, for the diagnostics."""
        found = []
        known = self.channels()
        for k, name in enumerate(self.joints):
            scale, lag = float(known.scale[k]), float(known.lag[k])
            if abs(scale - 1.0) > _SCALE_OFF + _SURE * known.scale_error[k]:
                cause = "one of them has the wrong sign" if scale < 0.0 else "a gear ratio or unit is wrong"
                found.append(f"{name}: speed over slope of the position is {scale:.2f}, expected 1: {cause}")
            elif abs(lag - self.expected_lag) > _LAG_OFF + _SURE * known.lag_error[k]:
                found.append(
                    f"{name}: speed comes {1e3 * lag:.0f} ms behind, expected {1e3 * self.expected_lag:.0f} ms"
                )
        return tuple(found)
