"""Detects dead, stuck or reversed wheels from commands and encoder counts alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import hypot

import numpy as np

from youbot_dynamics.robot import Robot

_SPAN = 0.15  # [s] of one speed: stamps that scatter by a fifth of a period change it by 4 %
_GAP = 0.2  # [s] between readings, after which the watch restarts
_COMMANDED = 0.08  # [m/s] of a wheel's rim above which it must turn: stiction can hold it at less
_STANDS = 0.02  # [m/s] of the rim below which it does not follow
_ANSWER = 0.5  # [s] longest response of a robot: 0.3 s of delay, the loops' lag, friction
_LAGS = 5.0  # time constants of the loops until they have responded
_LASTING = 0.2  # [s] that a fault must last
_NOTHING = 0.02  # [rad/s] below which a wheel does not turn at all
_OFF_PATTERN = 0.015  # [m/s] and
_OFF_PATTERN_SHARE = 0.15  # of the fastest wheel: residual that slip causes, but no error of the geometry
_FITS = 0.15  # largest remaining fraction of the residual with the sign of the faulty wheel reversed


class WheelWatch:
    """Compares the motion of the wheels of a mecanum base with their commands.

    A wheel is dead, stuck or reversed if it stands or turns backwards 0.5 s after a forward command and ever since. No
    delay, lag or friction of a healthy robot lasts so long. If the driver reverses a wheel in commands *and* in
    readings, that wheel alone shows nothing. But on a floor that holds them, the speeds of the four wheels then fit no
    motion of the base, and fit one when the sign of that wheel is reversed.

    Args:
        robot: geometry, names of the wheels, limits, and its response to commands if identified; the watch waits at
            least 0.5 s.

    Source: system 31.
    """

    def __init__(self, robot: Robot) -> None:
        base, model = robot.base.geometry.mecanum(), robot.base.driven()
        n = len(base.radii)
        self._joints = robot.driver.wheel_joints
        self._answer = max(_ANSWER, float(model.dead_times.max()) + _LAGS * model.lag)
        # A step beyond twice a wheel's range is a jump of the count.
        self._fastest = 2.0 * robot.base.limits.wheel_speed
        self._least = [_COMMANDED / float(radius) for radius in base.radii]
        self._slow = [_STANDS / float(radius) for radius in base.radii]
        null = np.linalg.svd(base.inverse_matrix)[0][:, 3:]  # (n, n - 3), orthonormal
        self._null: list[list[float]] = null.T.tolist()
        self._moving = np.eye(n) - null @ null.T
        self._off = _OFF_PATTERN / float(np.min(base.radii))
        self._commands = [0.0] * n
        self._since = [np.inf] * n  # [s] when the command in this direction became fast enough
        self._newest = -np.inf
        self._readings: deque[tuple[float, list[float]]] = deque()
        self._suspected: dict[tuple[str, int], float] = {}  # (fault, wheel): start time [s]

    def sent(self, stamp: float, speeds: Sequence[float]) -> None:
        """Process commanded wheel speeds (n,) [rad/s], positive forward, with their stamp [s]."""
        for i, speed in enumerate(speeds):
            if abs(speed) < self._least[i]:
                self._since[i] = np.inf
            elif self._since[i] == np.inf or speed * self._commands[i] <= 0.0:
                self._since[i] = stamp
            self._commands[i] = float(speed)
        self._newest = stamp

    def read(self, stamp: float, angles: Sequence[float]) -> str:
        """Process wheel angles (n,) [rad] read at a stamp [s]; return the faults of wheels as text, "" for none."""
        readings, now = self._readings, [float(angle) for angle in angles]
        if readings:
            dt = stamp - readings[-1][0]
            largest_step = self._fastest * (dt + 0.02)
            # A NaN is no valid step, either.
            if not (
                0.0 < dt <= _GAP and all(abs(a - b) <= largest_step for a, b in zip(now, readings[-1][1], strict=True))
            ):
                readings.clear()
                self._suspected.clear()
        readings.append((stamp, now))
        while len(readings) > 2 and stamp - readings[1][0] >= _SPAN:
            readings.popleft()
        begin, before = readings[0]
        if stamp - begin < 0.7 * _SPAN:
            return ""
        speeds = [(a - b) / (stamp - begin) for a, b in zip(now, before, strict=True)]
        suspects = self._not_following(min(stamp, self._newest), speeds)
        reversed_one = self._reversed(speeds)
        if reversed_one is not None:
            suspects.append(("reversed", reversed_one))
        self._suspected = {suspect: self._suspected.get(suspect, stamp) for suspect in suspects}
        return self._text([what for what, since in self._suspected.items() if stamp - since >= _LASTING])

    def _not_following(self, moment: float, speeds: list[float]) -> list[tuple[str, int]]:
        suspects = []
        for i, speed in enumerate(speeds):
            if moment - self._since[i] < self._answer:
                continue
            along = speed if self._commands[i] > 0.0 else -speed
            if along < self._slow[i]:
                suspects.append(("backwards" if along < -self._slow[i] else "stands", i))
        return suspects

    def _reversed(self, speeds: list[float]) -> int | None:
        """Wheel whose reversed sign would make the speeds (n,) consistent with one motion of the base."""
        standing = (
            abs(v) < _NOTHING and abs(c) >= low for v, c, low in zip(speeds, self._commands, self._least, strict=True)
        )
        if not self._null or any(standing):
            return None  # the residual is that of a wheel with a dead encoder
        residual = [sum(c * speed for c, speed in zip(row, speeds, strict=True)) for row in self._null]
        off = hypot(*residual)
        if off < max(self._off, _OFF_PATTERN_SHARE * max(map(abs, speeds))):
            return None
        fitting = [
            i
            for i, speed in enumerate(speeds)
            if speed * self._commands[i] > 0.0
            and hypot(*(r - 2.0 * row[i] * speed for r, row in zip(residual, self._null, strict=True))) < _FITS * off
        ]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        # Several wheels fit: take the one whose reversal the commands predict.
        return min(fitting, key=lambda i: float(np.linalg.norm(self._driven(i) - speeds)))

    def _driven(self, wheel: int) -> np.ndarray:
        """Speeds (n,) that the commands produce, on a floor that holds the wheels, with one wheel reversed."""
        signs = np.ones(len(self._commands))
        signs[wheel] = -1.0
        driven: np.ndarray = signs * (self._moving @ (signs * self._commands))
        return driven

    def _text(self, sure: list[tuple[str, int]]) -> str:
        if len({wheel for _, wheel in sure}) == len(self._joints):
            return "no wheel follows its command: motors off, emergency stop, or the base is blocked"
        texts = {
            "stands": "stands still though commanded: it is dead or stuck, or its encoder does not count",
            "backwards": "turns against its command: it is reversed",
            "reversed": "drives against the others: it is reversed, in commands and in readings",
        }
        return "; ".join(f"{self._joints[wheel]} {texts[what]}" for what, wheel in sure)
