"""How the base answers its commands while it drives: delay, gain and lag of each axis beside the identified ones."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import Robot

_BLOCK = 1.5  # [s] of readings that are judged together
_BLOCKS = 6  # of an axis that are kept: 9 s in which it was driven
_FEWEST_BLOCKS = 4
_OLDEST = 120.0  # [s] age of a block that still counts
_GAP = 0.2  # [s] without a reading or a command after which a block begins anew
_LATE_MEANS_RESTART = 10  # readings in a row that are older than the newest: another clock
_STEP = 0.02  # [s] between the shifts that are looked at
_READINGS = 5  # over which motions are taken: over one, a late stamp would be half of the speed
_SPREAD = 2  # steps on each side over which derivatives of the command are taken
_REACH = 0.4  # [s] by which a delay is looked for beyond the identified one
_MOST = 2000  # readings or commands that are kept: those of a driver of 500 Hz
_FASTEST = 1e3  # [m/s, rad/s] beyond which a command is damage
_HISTORY = 1.0  # [s] before a block from which on the identified response is followed, so that its start has passed
_LEAST_SPEED = 0.04  # [m/s] rms of a command at the rim, in a block that drives an axis
_LEAST_CHANGE, _LEAST_CURVE = 0.03, 0.3  # [m/s2], [m/s3] rms at the rim: a constant speed shows no delay, a ramp no lag
_LEAST_GAIN, _TINY = 1e-3, 1e-12  # against division by nothing
_LEAST_EXPLAINED = 0.9  # share of the motion that the command must explain, as identification asks
_SURE = 3.0  # standard deviations
# By how much the answer may leave the identified one: a response is right within a third of that. An effective delay is
# another in each drive against friction.
_DELAY_OFF, _GAIN_OFF, _LAG_OFF = 0.025, 0.1, 0.04  # [s], [1], [s]
_EFFECTIVE_OFF = 0.035  # [s] where no response is identified
_DROOP = 0.015  # [m/s] by which friction may hold the wheels back, beside _GAIN_OFF
# Deviations above these say nothing: a change that matters would not show.
_DELAY_KNOWN, _GAIN_KNOWN, _LAG_KNOWN = 0.008, 0.05, 0.015  # [s], [1], [s]


@dataclass(frozen=True)
class Figure:
    """One figure of the running drive."""

    value: float  # as measured
    deviation: float  # standard deviation, from the scatter between blocks of the drive
    identified: float  # what the identified response has under the same commands; NaN where none is identified
    valid: bool  # whether the drive shows it
    off: bool  # whether it is valid and left the identified one


@dataclass(frozen=True)
class AxisResponse:
    """How one axis answered in the last 9 s in which it was driven."""

    delay: Figure  # effective: the shift that best maps the held command onto the motion of the wheels [s]
    gain: Figure  # motion over command [1]
    lag: Figure  # root of the second moment of the answer about its delay, a first-order lag's time constant [s]
    stamp: float  # of the newest reading in it [s]; -inf before the first


_NOTHING = Figure(nan, nan, nan, False, False)


class ResponseMonitor:
    """Compares the twists that were sent with those the wheels report, each axis where it is driven.

    Motion over a few readings is regressed on the mean of the held command over the same time some shift s earlier,
    c(s), and its derivatives by the time, in the least squares over a few blocks of 1.5 s (systems 32, 33):

        motion = g c(s) + g (s - delay) c'(s) + g ((s - delay)^2 + lag^2) / 2 c''(s)

    with s the best of a grid. So answers any linear response to commands slower than itself; for one of first order
    `lag` is the time constant, and `delay` dead time and lag together. Friction delays a base further where it starts,
    stops and turns back, in each drive differently: the identified response is therefore followed under the same
    commands and regressed in the same way. The deviation is that of a delete-a-block jackknife on the difference.

    Args:
        robot: geometry, limits, and the identified response or effective delays, where there are any.
    """

    def __init__(self, robot: Robot) -> None:
        base, self._response_known = robot.base.geometry.mecanum(), robot.base.response.known
        self._model = robot.base.driven()
        self._known = self._model.dead_times > 0.0
        self._shifts: Vector = np.arange(0.0, _REACH + float(self._model.dead_times.max()), _STEP)
        self._forward: Vector = np.array(base.forward_matrix)
        self._levers = 1.0, 1.0, float(np.abs(base.positions[0]).sum())  # [m/s] of a wheel over the speed of an axis
        # A step beyond twice what a wheel can do is a restarted encoder, not motion.
        self._fastest_wheel = 2.0 * robot.base.limits.wheel_speed
        self._commands: deque[tuple[float, Vector]] = deque(maxlen=_MOST)
        self._readings: list[tuple[float, Vector]] = []
        self._late = 0
        # Per axis, of each block: stamp, and mean products (k, k) of c at each shift, motion and identified motion.
        self._blocks: tuple[deque[tuple[float, Vector]], ...] = tuple(deque(maxlen=_BLOCKS) for _ in range(3))
        self.axes = tuple(AxisResponse(_NOTHING, _NOTHING, _NOTHING, -inf) for _ in range(3))

    def sent(self, stamp: float, twist: ArrayLike) -> None:
        """Take a twist (3,) [m/s, m/s, rad/s] that was sent at a stamp [s]; one beyond reason begins anew."""
        values = np.array(twist, dtype=float)
        step = stamp - self._commands[-1][0] if self._commands else _STEP
        if -_GAP < step <= 0.0:
            return
        sound = float(np.abs(values).max()) < _FASTEST
        if abs(step) > _GAP or not sound:
            self._commands.clear()
        if not sound:
            return
        self._commands.append((stamp, values))
        while stamp - self._commands[0][0] > _HISTORY + _BLOCK + 2.0 * _GAP + self._shifts[-1]:
            self._commands.popleft()

    def age(self, axis: int) -> float:
        """How long ago an axis was last judged, by the stamps of the readings [s]; infinite before the first time."""
        return self._readings[-1][0] - self.axes[axis].stamp if self._readings else inf

    def read(self, stamp: float, angles: ArrayLike) -> None:
        """Take wheel angles (n,) [rad], positive forward, read at a stamp [s]; every 1.5 s `axes` become new."""
        now = np.array(angles, dtype=float)
        if self._readings:
            dt = stamp - self._readings[-1][0]
            if -_GAP < dt <= 0.0 and self._late < _LATE_MEANS_RESTART:
                self._late += 1
                return
            reach = self._fastest_wheel * (dt + _STEP)
            within = 0.0 < dt <= _GAP and len(self._readings) < _MOST
            if not (within and float(np.abs(now - self._readings[-1][1]).max()) <= reach):
                self._readings.clear()  # also of a NaN
        self._late = 0
        self._readings.append((stamp, now))
        if stamp - self._readings[0][0] >= _BLOCK:
            self._close_block()
            del self._readings[:-1]

    def _close_block(self) -> None:
        """Judge the readings of a block, where commands are known for all of it and before."""
        times = np.array([time for time, _ in self._readings])
        if not self._commands or len(times) < 4 * _READINGS:
            return
        sent = np.array([time for time, _ in self._commands])
        if sent[0] > times[0] - self._shifts[-1] or sent[-1] < times[-1] - _GAP:
            return
        twists = np.array([twist for _, twist in self._commands])
        angles = np.array([angles for _, angles in self._readings])
        steps = planar.steps_of_path(self._model.path(sent, twists, times))
        travel = np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
        motion, identified = (_speeds(times, way) for way in (angles @ self._forward.T, travel))
        corners = np.vstack([np.zeros(3), np.cumsum(np.diff(sent)[:, None] * twists[:-1], axis=0)])
        # Also after the last command, which is held.
        sent = np.append(sent, sent[-1] + _BLOCK)
        corners = np.vstack([corners, corners[-1] + _BLOCK * twists[-1]])
        at = times[:, None] - self._shifts
        for axis in range(3):
            columns = _speeds(times, np.interp(at, sent, corners[:, axis]))
            if sqrt(float(np.mean(columns[:, 0] ** 2))) * self._levers[axis] < _LEAST_SPEED:
                continue
            table = np.column_stack([columns, motion[:, axis], identified[:, axis]])
            blocks = self._blocks[axis]
            blocks.append((float(times[-1]), table.T @ table / len(table)))
            while times[-1] - blocks[0][0] > _OLDEST:
                blocks.popleft()
            self.axes = tuple(self._judged(k) if k == axis else one for k, one in enumerate(self.axes))

    def _judged(self, axis: int) -> AxisResponse:
        """Figures of an axis, from all its blocks and from all but each one of them."""
        blocks = self._blocks[axis]
        stamp, count = blocks[-1][0], len(blocks)
        if count < _FEWEST_BLOCKS:
            return AxisResponse(_NOTHING, _NOTHING, _NOTHING, stamp)
        single = np.array([products for _, products in blocks])
        sums = np.concatenate([single.sum(axis=0)[None], single.sum(axis=0) - single]) / count
        measured, explained, changes = self._regressed(sums, -2)
        identified = self._regressed(sums, -1)[0]
        if not self._known[axis]:
            identified[:] = nan
        elif not self._response_known:
            identified[:, 2] = nan
        apart = np.where(np.isnan(identified), measured, measured - identified)
        deviations = np.sqrt((count - 1) / count * np.sum((apart[1:] - apart[1:].mean(axis=0)) ** 2, axis=0)).tolist()
        values, expected = (np.array(found[0]) for found in (measured, identified))
        for found in (values, expected):
            found[2] = sqrt(max(found[2], 0.0)) if found[2] == found[2] else nan
        deviations[2] /= 2.0 * max(values[2], _LAG_KNOWN)  # of the root of a moment
        speed, lever = sqrt(float(sums[0, 0, 0])), self._levers[axis]
        delay_off = _DELAY_OFF if self._response_known else _EFFECTIVE_OFF
        allowed = delay_off, _GAIN_OFF + _DROOP / (lever * speed), _LAG_OFF
        seen = lever * changes[0] >= _LEAST_CHANGE, True, lever * changes[1] >= _LEAST_CURVE
        figures = []
        for k, limit in enumerate((_DELAY_KNOWN, _GAIN_KNOWN, _LAG_KNOWN)):
            valid = bool(explained >= _LEAST_EXPLAINED and seen[k] and deviations[k] <= limit)
            off = valid and bool(abs(values[k] - expected[k]) > allowed[k] + _SURE * deviations[k])
            figures.append(Figure(float(values[k]), float(deviations[k]), float(expected[k]), valid, off))
        return AxisResponse(figures[0], figures[1], figures[2], stamp)

    def _regressed(self, sums: Vector, target: int) -> tuple[Vector, float, Vector]:
        """Regress the motion in column `target` of products (b, k, k) on the command.

        Returns:
            Delay [s], gain and second moment [s2] (b, 3); then, of the first, the share of the motion that is explained
            and the rms of c' and c'' (2,).
        """
        inner = slice(_SPREAD, len(self._shifts) - _SPREAD)
        along = np.maximum(sums[:, inner, target], 0.0)
        explained = along**2 / np.maximum(np.einsum("bkk->bk", sums)[:, inner], _TINY)
        best, pick = np.argmax(explained, axis=1) + _SPREAD, np.arange(len(sums))
        # c, c' and c'' out of the columns of the shifts; the derivative by the shift is against that by the time.
        width = _SPREAD * _STEP
        mix = np.zeros((len(sums), 3, sums.shape[1]))
        mix[pick, 0, best] = 1.0
        mix[pick, 1, best - _SPREAD], mix[pick, 1, best + _SPREAD] = 0.5 / width, -0.5 / width
        mix[pick, 2, best - _SPREAD] = mix[pick, 2, best + _SPREAD] = 1.0 / width**2
        mix[pick, 2, best] = -2.0 / width**2
        normal = mix @ sums @ mix.transpose(0, 2, 1) + _TINY * np.eye(3)
        right = mix @ sums[:, :, target, None]
        # Without c'' the gain is that of all speeds, and delay and gain do not hang on how well c'' is seen.
        gain, slope = np.linalg.solve(normal[:, :2, :2], right[:, :2])[:, :, 0].T
        level, tilt, curve = np.linalg.solve(normal, right)[:, :, 0].T
        gain, level = np.maximum(gain, _LEAST_GAIN), np.maximum(level, _LEAST_GAIN)
        moment = 2.0 * curve / level - (tilt / level) ** 2
        found = np.column_stack([self._shifts[best] - slope / gain, gain, moment])
        share = float(explained[0].max() / max(sums[0, target, target], _TINY))
        return found, share, np.sqrt(np.maximum(np.diag(normal[0])[1:], 0.0))


def _speeds(times: Vector, way: Vector) -> Vector:
    """Mean rates (m - 5, k) of what grows (m, k), over every five readings at times (m,)."""
    return (way[_READINGS:] - way[:-_READINGS]) / (times[_READINGS:] - times[:-_READINGS])[:, None]
