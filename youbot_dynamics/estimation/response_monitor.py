"""Response of the base to its commands while driving: delay, gain and lag of each axis."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.kinematics import planar
from youbot_dynamics.robot import Robot

_BLOCK = 1.5  # [s] of readings in one regression block
_BLOCKS = 6  # stored blocks of an axis: 9 s of driving
_FEWEST_BLOCKS = 4
_OLDEST = 120.0  # [s] largest age of a block in use
_GAP = 0.2  # [s] without a reading or a command after which a new block starts
_LATE_MEANS_RESTART = 10  # readings in a row that are older than the newest: another clock
_STEP = 0.02  # [s] between the tested shifts
_READINGS = 5  # in one motion: over a single one, a late stamp would change the speed by half
_SPREAD = 2  # steps on each side for derivatives of the command
_REACH = 0.4  # [s] search range of a delay above the identified one
_MOST = 2000  # largest number of stored readings or commands: those of a driver of 500 Hz
_FASTEST = 1e3  # [m/s, rad/s] above which a command is corrupt
_HISTORY = 1.0  # [s] simulated before a block, so that initial transients of the identified response have decayed
_LEAST_SPEED = 0.04  # [m/s] rms of the rim speed of a command, in a block that drives an axis
_LEAST_CHANGE, _LEAST_CURVE = 0.03, 0.3  # [m/s2], [m/s3] rms at the rim: a constant speed shows no delay, a ramp no lag
_LEAST_GAIN, _TINY = 1e-3, 1e-12  # against division by zero
_LEAST_EXPLAINED = 0.9  # fraction of the motion that the command must explain, as in identification
_SURE = 3.0  # standard deviations
# Largest difference from the identified response; an unchanged response is within a third of it. With friction the
# effective delay differs from drive to drive.
_DELAY_OFF, _GAIN_OFF, _LAG_OFF = 0.025, 0.1, 0.04  # [s], [1], [s]
_EFFECTIVE_OFF = 0.035  # [s] if no response is identified
_DROOP = 0.015  # [m/s] loss of speed due to friction, in addition to _GAIN_OFF
# Figures with larger deviations are invalid: a relevant change would not be visible.
_DELAY_KNOWN, _GAIN_KNOWN, _LAG_KNOWN = 0.008, 0.05, 0.015  # [s], [1], [s]


@dataclass(frozen=True)
class Figure:
    """One figure of the drive in progress."""

    value: float  # as measured
    deviation: float  # standard deviation, from the scatter between blocks of the drive
    identified: float  # of the identified response under the same commands; NaN if none is identified
    valid: bool  # whether the drive determines it
    off: bool  # whether it is valid and differs from the identified one


@dataclass(frozen=True)
class AxisResponse:
    """Response of one axis in the last 9 s in which it was driven."""

    delay: Figure  # effective: the shift that best fits the held command to the motion of the wheels [s]
    gain: Figure  # motion over command [1]
    lag: Figure  # root of the second moment of the response about its delay; time constant of a first-order lag [s]
    stamp: float  # of the newest reading in it [s]; -inf before the first


_NOTHING = Figure(nan, nan, nan, False, False)


class ResponseMonitor:
    """Compares the commanded twists with those of the wheels, for each driven axis.

    Motion over a few readings is regressed on the mean of the held command over the same time, shifted by s, c(s), and
    on its time derivatives, by least squares over a few blocks of 1.5 s:

        motion = g c(s) + g (s - delay) c'(s) + g ((s - delay)^2 + lag^2) / 2 c''(s)

    with s the best of a grid. This holds for any linear response to commands slower than itself. For a first-order
    response `lag` is the time constant and `delay` is dead time plus lag. Friction adds delay at starts, stops and
    reversals, differently in each drive. Therefore the identified response is simulated under the same commands and
    regressed in the same way. The deviation is that of a delete-a-block jackknife on the difference.

    Args:
        robot: geometry, limits, and the identified response or effective delays, if there are any.

    Source: systems 32, 33.
    """

    def __init__(self, robot: Robot) -> None:
        base, self._response_known = robot.base.geometry.mecanum(), robot.base.response.known
        self._model = robot.base.driven()
        self._known = self._model.dead_times > 0.0
        self._shifts: Vector = np.arange(0.0, _REACH + float(self._model.dead_times.max()), _STEP)
        # Those of a steered wheel are of its joints, which `MecanumBase.of_joints` makes of its readings and commands.
        self._forward: Vector = np.eye(3) if base.steered else np.array(base.forward_matrix)
        self._levers = 1.0, 1.0, float(np.abs(base.positions[0]).sum())  # [m/s] of a wheel over the speed of an axis
        # A step beyond twice a wheel's range means a restarted encoder.
        self._fastest_wheel = 2.0 * robot.base.limits.wheel_speed
        self._commands: deque[tuple[float, Vector]] = deque(maxlen=_MOST)
        self._readings: list[tuple[float, Vector]] = []
        self._late = 0
        # For each axis and block: stamp, and mean products (k, k) of c at each shift, motion and identified motion.
        self._blocks: tuple[deque[tuple[float, Vector]], ...] = tuple(deque(maxlen=_BLOCKS) for _ in range(3))
        self.axes = tuple(AxisResponse(_NOTHING, _NOTHING, _NOTHING, -inf) for _ in range(3))

    def sent(self, stamp: float, twist: ArrayLike) -> None:
        """Process a commanded twist (3,) [m/s, m/s, rad/s] with its stamp [s]; an invalid one resets the monitor."""
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
        """Time since the last regression of an axis, by the stamps of the readings [s]; infinite before the first."""
        return self._readings[-1][0] - self.axes[axis].stamp if self._readings else inf

    def read(self, stamp: float, angles: ArrayLike) -> None:
        """Process wheel angles (n,) [rad], positive forward, read at a stamp [s]; updates `axes` every 1.5 s.

        Of a steered wheel they are `MecanumBase.of_joints` (3,) of a `JointMotion`.
        """
        now = np.array(angles, dtype=float)
        if self._readings:
            dt = stamp - self._readings[-1][0]
            if -_GAP < dt <= 0.0 and self._late < _LATE_MEANS_RESTART:
                self._late += 1
                return
            largest_step = self._fastest_wheel * (dt + _STEP)
            within = 0.0 < dt <= _GAP and len(self._readings) < _MOST
            if not (within and float(np.abs(now - self._readings[-1][1]).max()) <= largest_step):
                self._readings.clear()  # also for a NaN
        self._late = 0
        self._readings.append((stamp, now))
        if stamp - self._readings[0][0] >= _BLOCK:
            self._close_block()
            del self._readings[:-1]

    def _close_block(self) -> None:
        """Add the readings of a block, if commands are known for the block and before it."""
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
        motion, identified = (_speeds(times, path) for path in (angles @ self._forward.T, travel))
        corners = np.vstack([np.zeros(3), np.cumsum(np.diff(sent)[:, None] * twists[:-1], axis=0)])
        # The last command continues.
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
            self.axes = tuple(self._judged(k) if k == axis else response for k, response in enumerate(self.axes))

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
        values, expected = (np.array(row[0]) for row in (measured, identified))
        change, sure = abs(values[2] - expected[2]), _SURE * deviations[2]  # of the moments
        for row in (values, expected):
            row[2] = sqrt(max(row[2], 0.0)) if row[2] == row[2] else nan
        deviations[2] /= 2.0 * max(values[2], _LAG_KNOWN)  # error of the root of a moment
        speed, lever = sqrt(float(sums[0, 0, 0])), self._levers[axis]
        delay_off = _DELAY_OFF if self._response_known else _EFFECTIVE_OFF
        allowed = delay_off, _GAIN_OFF + _DROOP / (lever * speed), _LAG_OFF
        seen = lever * changes[0] >= _LEAST_CHANGE, True, lever * changes[1] >= _LEAST_CURVE
        figures = []
        for k, limit in enumerate((_DELAY_KNOWN, _GAIN_KNOWN, _LAG_KNOWN)):
            valid = bool(explained >= _LEAST_EXPLAINED and seen[k] and deviations[k] <= limit)
            off = valid and bool(abs(values[k] - expected[k]) > allowed[k] + _SURE * deviations[k])
            if k == 2:  # a lag of almost 0 is the root of a moment that scatters about 0: the moments are compared
                off = off and bool(change > (expected[2] + _LAG_OFF) ** 2 - expected[2] ** 2 + sure)
            figures.append(Figure(float(values[k]), float(deviations[k]), float(expected[k]), valid, off))
        return AxisResponse(figures[0], figures[1], figures[2], stamp)

    def _regressed(self, sums: Vector, target: int) -> tuple[Vector, float, Vector]:
        """Regress the motion in column `target` of products (b, k, k) on the command.

        Gives delay [s], gain and second moment [s2] (b, 3); for the first, the fraction of the motion that is explained
        and the rms of c' and c'' (2,).
        """
        inner = slice(_SPREAD, len(self._shifts) - _SPREAD)
        along = np.maximum(sums[:, inner, target], 0.0)
        explained = along**2 / np.maximum(np.einsum("bkk->bk", sums)[:, inner], _TINY)
        best, pick = np.argmax(explained, axis=1) + _SPREAD, np.arange(len(sums))
        # c, c' and c'' from the columns of the shifts; the derivative by the shift is minus that by time.
        width = _SPREAD * _STEP
        mix = np.zeros((len(sums), 3, sums.shape[1]))
        mix[pick, 0, best] = 1.0
        mix[pick, 1, best - _SPREAD], mix[pick, 1, best + _SPREAD] = 0.5 / width, -0.5 / width
        mix[pick, 2, best - _SPREAD] = mix[pick, 2, best + _SPREAD] = 1.0 / width**2
        mix[pick, 2, best] = -2.0 / width**2
        normal = mix @ sums @ mix.transpose(0, 2, 1) + _TINY * np.eye(3)
        right = mix @ sums[:, :, target, None]
        # Without c'' the gain is that of all speeds, and delay and gain do not depend on the quality of c''.
        gain, slope = np.linalg.solve(normal[:, :2, :2], right[:, :2])[:, :, 0].T
        level, tilt, curve = np.linalg.solve(normal, right)[:, :, 0].T
        gain, level = np.maximum(gain, _LEAST_GAIN), np.maximum(level, _LEAST_GAIN)
        moment = 2.0 * curve / level - (tilt / level) ** 2
        regressed = np.column_stack([self._shifts[best] - slope / gain, gain, moment])
        share = float(explained[0].max() / max(sums[0, target, target], _TINY))
        return regressed, share, np.sqrt(np.maximum(np.diag(normal[0])[1:], 0.0))


def _speeds(times: Vector, positions: Vector) -> Vector:
    """Mean rates (m - 5, k) of positions (m, k), over every five readings at times (m,)."""
    return (positions[_READINGS:] - positions[:-_READINGS]) / (times[_READINGS:] - times[:-_READINGS])[:, None]
