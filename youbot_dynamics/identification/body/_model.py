"""Readings of an axis, the response that is compared with them, and commands that are compared with each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import hypot, sqrt

import numpy as np
from scipy.optimize import least_squares

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.identification.delay import BLOCK, LaggedCommand, fit_fopdt, identified_together
from youbot_dynamics.identification.least_squares import Estimate, Unknown, judge, refusal, student
from youbot_dynamics.identification.signals import HeldCommand

LONGEST = 0.8  # largest dead time and lag considered [s]
GRID = 0.02  # step of the coarse search for the delay [s]
WINDOW = 1.2  # over which speeds are averaged [s]
ROUNDING = 1e-6  # of times [s] and speeds
LONGEST_STEP = 0.25  # between readings, over which a speed is interpolated [s]
_LEAST_LAG = 5e-4  # [s]
_SHORTEST_LAG = 0.15  # whose response the means tell from others, an eighth of their window [s]
_REFINEMENTS = 2  # of the delay
_BLOCK = 3.0 * WINDOW  # in which means depend little on those of the next [s]
_HIDDEN = 0.12  # share of the residual that may look like a change of delay or gain after any averaging


class Readings:
    """Readings of an axis, which a model is compared with by mean speeds over `WINDOW` around them, without the gaps.

    The effect of quanta averages out.

    Args:
        time: (m,) [s], not decreasing.
        motion: (m,) speed, or position.
        speeds: whether it is a speed.

    Attributes:
        path: (m,) position by the readings; a speed changes evenly from one to the next.
        at: (k,) middles of the windows [s].
        mean: (k,) speeds over them.
    """

    def __init__(self, time: Vector, motion: Vector, speeds: bool) -> None:
        self.time, self._speeds, self._steps = time, speeds, np.diff(time)
        before, after = time - 0.5 * WINDOW, time + 0.5 * WINDOW
        whole = (before >= time[0] - ROUNDING) & (after <= time[-1] + ROUNDING)
        for gap in np.flatnonzero(self._steps > LONGEST_STEP):
            whole &= (after <= time[gap]) | (before >= time[gap + 1])
        self._ends, self.at = (self._place(before[whole]), self._place(after[whole])), time[whole]
        self.path = self._path_of(motion)
        self.mean = self.means(self.path)

    def _path_of(self, motion: Vector) -> Vector:
        if not self._speeds:
            return np.asarray(motion - motion[0])
        return np.append(0.0, np.cumsum(0.5 * (motion[1:] + motion[:-1]) * self._steps))

    def _place(self, query: Vector) -> tuple[Indices, Vector]:
        """Reading before each time of `query` (k,), and the share (k,) of the step to the next that has passed."""
        before = np.clip(np.searchsorted(self.time, query, side="right") - 1, 0, len(self.time) - 2)
        return before, (query - self.time[before]) / np.maximum(self._steps[before], 1e-12)

    def means(self, paths: Vector) -> Vector:
        """Mean speeds (k, ...) of paths (m, ...)."""
        before, after = ((paths[k].T * (1.0 - share) + paths[k + 1].T * share).T for k, share in self._ends)
        means: Vector = (after - before) / WINDOW
        return means

    def blocks(self, factors: Vector, path: Vector) -> Vector:
        """Sum of factors (k,) times the means of a path (m,), as the parts (b,) of blocks of time.

        Means overlap; the steps of a path between its readings do not. A block has those within it.
        """
        total = np.append(0.0, np.cumsum(factors))
        middles = self.time[:-1] + 0.5 * self._steps
        near, far = (np.searchsorted(self.at, middles + side * 0.5 * WINDOW) for side in (-1.0, 1.0))
        block = np.floor((middles - self.time[0]) / BLOCK).astype(int)
        sums = np.bincount(block, (total[far] - total[near]) / WINDOW * np.diff(path))
        return np.asarray(sums[np.bincount(block, far - near) > 0], dtype=float)

    def quantum(self, motion: Vector) -> float:
        """Smallest difference between readings (m,), as a speed."""
        smallest = float(np.min(np.diff(np.unique(np.round(motion, 6)))))
        return smallest if self._speeds else smallest / WINDOW


class Fit:
    """Fit of dead time, lag and gain, and its linearisation.

    Args:
        command: held.
        readings: of the motion.
        start: of the search for delay and lag [s].

    Attributes:
        delay, lag: of the best response of one lag [s].
        explained: share of the motion that it explains.
    """

    def __init__(self, command: HeldCommand, readings: Readings, start: tuple[float, float]) -> None:
        self.command, self.readings, mean = command, readings, readings.mean

        def left(x: Vector) -> Vector:
            path = LaggedCommand(command, x[1]).at(readings.time - x[0] + x[1]).motion
            return readings.means(self.solved([path])[1])

        bounds = ((0.0, _LEAST_LAG), (2.0 * LONGEST, LONGEST))
        best = least_squares(left, np.clip(start, *bounds), x_scale=GRID, bounds=bounds)
        self.delay, self.lag = best.x.tolist()
        self.explained = 1.0 - float(np.sum(left(best.x) ** 2)) / float(np.sum((mean - mean.mean()) ** 2))
        for _ in range(_REFINEMENTS):
            (_, gain, later, *_), _ = self.solved(self.responses(command))
            self.delay += float(np.clip(later / gain, -_SHORTEST_LAG, _SHORTEST_LAG))

    def responses(self, command: HeldCommand) -> list[Vector]:
        """Path (m,) of the response to a command, its derivatives by delay and by lag^2 / 2, and another order of lags.

        Means hardly show a lag much shorter than their window. The last three are of a lag of `_SHORTEST_LAG` or more,
        which keeps them apart.
        """
        since = self.readings.time - self.delay
        path = LaggedCommand(command, self.lag).at(since + self.lag).motion
        lag = max(self.lag, _SHORTEST_LAG)
        motion, rate, widening = LaggedCommand(command, lag).at(since + lag)
        half = lag / sqrt(2.0)
        twice = LaggedCommand(command, half).position_twice(since + 2.0 * half)
        return [path, -rate, widening, twice - motion]

    def solved(self, paths: list[Vector]) -> tuple[Vector, Vector]:
        """Factors of a constant speed and of paths (m,), by least squares of the means; the path (m,) that is left."""
        columns = np.column_stack([self.readings.time, *paths])
        factors = np.linalg.lstsq(self.readings.means(columns), self.readings.mean, rcond=None)[0]
        return np.asarray(factors), np.asarray(self.readings.path - columns @ factors)

    def estimates(self, sent: HeldCommand) -> tuple[Estimate, Estimate, Estimate, Estimate]:
        """Effective delay, dead time, lag [s] and gain [1], with verdicts; `sent` is the command as it was."""
        paths = self.responses(self.command)
        factors, left = self.solved(paths)
        gain = float(factors[1])
        columns = self.readings.means(np.column_stack([self.readings.time, *paths]))
        covariance, freedom = _covariance(self.readings, columns, left)
        hidden = _HIDDEN * float(np.sqrt(np.mean(self.readings.means(left) ** 2)))
        errors = [hypot(float(np.sqrt(covariance[k, k])), hidden / _own_size(columns, k)) for k in range(4)]
        multiple, scale = student(freedom), max(abs(gain), 1e-9)
        squares = self.lag**2 + 2.0 * (float(factors[3]) - multiple * errors[3]) / scale
        unseen = self._unseen(sqrt(max(0.0, squares)), sent)
        windowed = HeldCommand(self.command.times, self.command.values, 0.5 * WINDOW)
        apart = fit_fopdt(windowed, self.readings.at, self.readings.mean, self.delay, None, LONGEST, _BLOCK)[:2]
        error = errors[2] / scale
        found = [
            judge(Unknown("effective", "s", low=0.0, resolution=0.01), self.delay, error, multiple * error + unseen),
            *(self._widened(part, unseen) for part in apart),
            judge(Unknown("gain", "1", low=0.0), gain, errors[1], multiple * errors[1]),
        ]
        if self.lag >= LONGEST:
            reason = refusal(f"the best lag is at the upper bound of the search, {LONGEST:g} s")
            found = [replace(one, verdict=reason) for one in found]
        return found[0], *identified_together(found[1], found[2]), found[3]

    def _unseen(self, lag: float, sent: HeldCommand) -> float:
        """Largest error of the delay by readings that fall on the same phase of each period of the command [s].

        Such readings fold the edges of the held command onto the motion. Without a lag a step between two readings
        leaves no trace of its time; a lag damps the first of the folded frequencies, 1 / period.
        """
        period = float(np.median(np.diff(sent.times)))
        phase = np.exp(2j * np.pi * sent.place(self.readings.at)[1] / period)
        return 0.5 * period * float(np.abs(np.mean(phase))) / hypot(1.0, 2.0 * np.pi * lag / period)

    @staticmethod
    def _widened(part: Estimate, more: float) -> Estimate:
        """Dead time or lag with an interval that is longer on both sides by `more` [s]."""
        interval = max(0.0, part.interval[0] - more), part.interval[1] + more
        if part.identified and 0.5 * (interval[1] - interval[0]) > max(0.5 * part.value, 0.005):
            told = "readings and commands have the same rhythm, and the lag is short"
            part = replace(part, verdict=refusal(f"the interval is too wide: {told}"))
        return replace(part, interval=interval)


def _covariance(readings: Readings, columns: Vector, left: Vector) -> tuple[Vector, int]:
    """Covariance (p, p) of a fit of the means by columns (k, p) that leaves a path (m,), and degrees of freedom.

    By the scatter of the scores between blocks of `BLOCK` of the readings themselves: those of means, which overlap,
    would depend on their neighbours.
    """
    norms = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    scaled = columns / norms
    scores = np.column_stack([readings.blocks(column, left) for column in scaled.T])
    moved = scores @ np.linalg.pinv(scaled.T @ scaled)
    count, size = scores.shape
    freedom = max(1, count - size)
    covariance: Vector = count / freedom * (moved.T @ moved) / np.outer(norms, norms)
    # The scatter of as few blocks as values lacks directions: it is 0 there, whatever the errors are.
    return (covariance if count > size else np.full_like(covariance, np.inf)), freedom


def _own_size(columns: Vector, k: int) -> float:
    """RMS of the part of column k of (m, p) that no other column explains."""
    others = np.delete(columns, k, axis=1)
    own = columns[:, k] - others @ np.linalg.lstsq(others, columns[:, k], rcond=None)[0]
    return max(float(np.sqrt(np.mean(own**2))), 1e-300)


def compared(fit: Fit, commands: Iterable[HeldCommand]) -> tuple[Vector, Vector, float]:
    """Squares (n,) left by each of some commands, by how many standard errors they exceed the least; their freedom.

    If a command is the true one and leaves r, its squares exceed those of the best one by 2 d' r - d' d, d the means of
    its residual less those of the best. The sum of d' r has the scatter that its parts in blocks show, with what the
    best one leaves for r. Friction takes speed away: a term that adds speed is left out, else it looks like a limit.
    """
    readings = fit.readings
    left = []
    for command in commands:
        lost = HeldCommand(command.times, np.sign(command.values), 0.0)  # speed lost to friction
        responses = fit.responses(command)
        factors, path = fit.solved([*responses, fit.responses(lost)[0]])
        left.append(path if factors[-1] < 0.0 else fit.solved(responses)[1])  # friction does not add speed
    means = [readings.means(path) for path in left]
    squares = np.array([float(mean @ mean) for mean in means])
    best = int(np.argmin(squares))
    parts = np.array([readings.blocks(mean - means[best], left[best]) for mean in means])
    scatter = 2.0 * np.sqrt(np.sum(parts**2, axis=1))
    return squares, (squares - squares[best]) / np.maximum(scatter, 1e-300), float(max(1, parts.shape[1] - 1))
