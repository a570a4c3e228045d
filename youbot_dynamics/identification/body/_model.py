"""Readings of an axis, the response that is compared with them, and commands that are compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import hypot, sqrt

import numpy as np

from youbot_dynamics.arrays import Indices, Vector, rms, usual_step
from youbot_dynamics.identification.delay import (
    BLOCK,
    LEAST_LAG,
    LONGEST,
    LaggedCommand,
    fit_fopdt,
    identified_together,
    negligible_delay,
    negligible_part,
    orthogonal_size,
)
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Kind,
    Reason,
    Unknown,
    covariance_of_scores,
    judge,
    reaching,
    search,
    search_ended,
    student,
)
from youbot_dynamics.identification.signals import UNITS, UNLIKELY_GAIN, HeldCommand

GRID = 0.02  # step of the coarse search for the delay [s]
WINDOW = 1.2  # over which speeds are averaged [s]
ROUNDING = 1e-6  # of times [s] and speeds
LONGEST_STEP = 0.25  # between readings, over which a speed is interpolated [s]
_DENSEST = 0.008  # mean step of the path between its points [s]; means over 1.2 s need no more
_SHORTEST_LAG = 0.15  # shortest lag that the means distinguish from others, an eighth of their window [s]
_REFINEMENTS = 2  # of the delay
BUDGET = 100  # steps of the search for delay and lag
_BLOCK = 3.0 * WINDOW  # in which means depend little on those of the next [s]
_SAME_RHYTHM = "; readings and commands have the same rhythm, and the lag is short"
_MANY = 0.1  # inverse of the number of changes of one size, above which they are too few to average anything out
_PHASES = 10  # of the steps of readings, on which changes may fall; at more, little stays open
_FAR = 2.0  # largest change between two readings that counts as noise [quanta]
_SETTLING = 0.6  # [s] after a change of the command and its delay, and half of it before, only noise changes a speed
_AVERAGED = 0.4  # standard deviation of rounded readings that averages their rounding [quanta]
HIDDEN = 0.12  # share of the residual that may look like a change of delay or gain after any averaging


class Readings:
    """Readings of an axis, which a model is compared with by mean speeds over `WINDOW` around them, without the gaps.

    The effect of quanta averages out. Faster readings are all integrated, but the path has one point in 8 ms: an hour
    at 1 kHz would otherwise take minutes and gigabytes.

    Readings (n,) at times (n,) that do not decrease are speeds or positions, as `speeds` tells.

    Attributes:
        time: (m,) of the points of the path [s].
        path: (m,) position by the readings; a speed changes evenly from one to the next.
        at: (k,) middles of the windows [s].
        mean: (k,) speeds over them.
        negligible_delay: half-width that suffices for any delay [s].
        step: the usual one between readings [s].
    """

    def __init__(self, time: Vector, motion: Vector, speeds: bool) -> None:
        kept = np.flatnonzero(np.diff(np.floor((time - time[0]) / _DENSEST), prepend=-1.0) > 0.0)
        self.negligible_delay, self.step, self._stamps = negligible_delay(time), usual_step(time), time
        self._speeds, self._motion, self.path = speeds, motion, self._path_of(time, motion, speeds)[kept]
        self.time = time = time[kept]
        self._steps = np.diff(time)
        before, after = time - 0.5 * WINDOW, time + 0.5 * WINDOW
        whole = (before >= time[0] - ROUNDING) & (after <= time[-1] + ROUNDING)
        for gap in np.flatnonzero(self._steps > LONGEST_STEP):
            whole &= (after <= time[gap]) | (before >= time[gap + 1])
        self._ends, self.at = (self._interval_at(before[whole]), self._interval_at(after[whole])), time[whole]
        self.mean = self.means(self.path)

    @staticmethod
    def _path_of(time: Vector, motion: Vector, speeds: bool) -> Vector:
        if not speeds:
            return np.asarray(motion - motion[0])
        return np.append(0.0, np.cumsum(0.5 * (motion[1:] + motion[:-1]) * np.diff(time)))

    def _interval_at(self, query: Vector) -> tuple[Indices, Vector]:
        """Reading before each time of `query` (k,), and the share (k,) of the step to the next that has passed."""
        before = np.clip(np.searchsorted(self.time, query, side="right") - 1, 0, len(self.time) - 2)
        return before, (query - self.time[before]) / np.maximum(self._steps[before], 1e-12)

    def phases(self, query: Vector) -> Vector:
        """Times (k,) in steps of the readings (n,), from the first one on [1]."""
        return np.asarray(np.interp(query, self._stamps, np.arange(float(len(self._stamps)))))

    def means(self, paths: Vector) -> Vector:
        """Mean speeds (k, ...) of paths (m, ...)."""
        before, after = ((paths[k].T * (1.0 - share) + paths[k + 1].T * share).T for k, share in self._ends)
        return (after - before) / WINDOW

    def blocks(self, factors: Vector, path: Vector) -> Vector:
        """Sum of factors (k,) times the means of a path (m,), as the parts (b,) of blocks of time.

        Means overlap; the steps of a path between its readings do not. A block has those within it.
        """
        cumulative = np.append(0.0, np.cumsum(factors))
        middles = self.time[:-1] + 0.5 * self._steps
        near, far = (np.searchsorted(self.at, middles + side * 0.5 * WINDOW) for side in (-1.0, 1.0))
        block = np.floor((middles - self.time[0]) / BLOCK).astype(int)
        sums = np.bincount(block, (cumulative[far] - cumulative[near]) / WINDOW * np.diff(path))
        return np.asarray(sums[np.bincount(block, far - near) > 0], dtype=float)

    @property
    def quantum(self) -> float:
        """Smallest difference between readings, as a speed."""
        smallest = float(np.min(np.diff(np.unique(np.round(self._motion, 6)))))
        return smallest if self._speeds else smallest / WINDOW

    def rounding_error(self, command: HeldCommand, delay: float) -> float:
        """Standard error of a gain by readings that are rounded alike at each speed commanded a delay [s] before [1].

        A steady speed without noise has one and the same error all the time, of a quantum / sqrt(12), which no time
        averages and no scatter shows. Readings that go to and fro, once settled, average it; a standard deviation of
        0.4 quanta suffices. Positions add up speeds: their rounding does not.
        """
        elapsed = self._stamps - delay
        levels, level = np.unique(np.round(command.held(elapsed), 6), return_inverse=True)
        asked = levels[level] - np.mean(levels[level])
        if not self._speeds or len(levels) < 2:
            return 0.0
        quantum = self.quantum
        change = np.clip(np.diff(self._motion), -_FAR * quantum, _FAR * quantum)
        around = [np.round(command.held(elapsed + late), 6) == levels[level] for late in (-_SETTLING, 0.5 * _SETTLING)]
        inside = (around[0] & around[1])[:-2] & (level[:-2] == level[1:-1]) & (level[1:-1] == level[2:])
        there, count = level[2:][inside], len(levels)
        to_and_fro = -np.bincount(there, (change[1:] * change[:-1])[inside], count)  # of white noise: its variance
        variance = to_and_fro / np.maximum(np.bincount(there, minlength=count), 1)
        alike = np.clip(1.0 - variance / (_AVERAGED * quantum) ** 2, 0.0, 1.0)
        weights = np.bincount(level, asked, count) / float(asked @ asked)
        return quantum * float(np.sqrt(np.sum(alike * weights**2) / 12.0))


class Fit:
    """Fit of dead time, lag and gain, and its linearisation; the search for delay and lag [s] begins at `start`.

    Attributes:
        delay, lag: of the best response of one lag [s].
        explained: share of the motion that it explains.
        settled: whether the search converged within its budget.
    """

    def __init__(self, command: HeldCommand, readings: Readings, start: tuple[float, float]) -> None:
        self.command, self.readings, mean = command, readings, readings.mean

        def residual(x: Vector) -> Vector:
            path = LaggedCommand(command, x[1]).at(readings.time - x[0] + x[1]).motion
            return readings.means(self.solved([path])[1])

        bounds = np.array([0.0, LEAST_LAG]), np.array([2.0 * LONGEST, LONGEST])
        best = search(residual, [np.array(start)], bounds, BUDGET, GRID)
        self.settled = best.settled
        self.delay, self.lag = best.values.tolist()
        self.explained = 1.0 - float(np.sum(best.residual**2)) / float(np.sum((mean - mean.mean()) ** 2))
        for _ in range(_REFINEMENTS):
            (_, gain, delay_change, *_), _ = self.solved(self.responses(command))
            self.delay += float(np.clip(delay_change / gain, -_SHORTEST_LAG, _SHORTEST_LAG))

    @property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Effective delay, dead time, lag [s] and gain [1], with what suffices for each."""
        part = negligible_part(self.delay)
        return (
            Unknown("effective", "s", low=0.0, resolution=self.readings.negligible_delay),
            *(Unknown(name, "s", low=0.0, resolution=part) for name in ("dead_time", "lag")),
            Unknown("gain", "1", low=0.0),
        )

    def path(self, command: HeldCommand) -> Vector:
        """Path (m,) of the response to a command."""
        return LaggedCommand(command, self.lag).at(self.readings.time - self.delay + self.lag).motion

    def responses(self, command: HeldCommand) -> list[Vector]:
        """Path (m,) of the response to a command, its derivatives by delay and by lag^2 / 2, and another order of lags.

        Means hardly show a lag much shorter than their window. The last three are of a lag of `_SHORTEST_LAG` or more,
        which keeps them apart.
        """
        elapsed = self.readings.time - self.delay
        lag = max(self.lag, _SHORTEST_LAG)
        motion, rate, widening = LaggedCommand(command, lag).at(elapsed + lag)
        half_lag = lag / sqrt(2.0)
        double_lag = LaggedCommand(command, half_lag).position_twice(elapsed + 2.0 * half_lag)
        return [self.path(command), -rate, widening, double_lag - motion]

    def solved(self, paths: list[Vector]) -> tuple[Vector, Vector]:
        """Factors of a constant speed and of paths (m,), by least squares of the means; the residual path (m,)."""
        columns = np.column_stack([self.readings.time, *paths])
        factors = np.linalg.lstsq(self.readings.means(columns), self.readings.mean, rcond=None)[0]
        return np.asarray(factors), np.asarray(self.readings.path - columns @ factors)

    def estimates(self, sent: HeldCommand) -> tuple[Estimate, Estimate, Estimate, Estimate]:
        """Effective delay, dead time, lag [s] and gain [1], with verdicts; `sent` is the command as it was."""
        paths = self.responses(self.command)
        factors, residual = self.solved(paths)
        gain = float(factors[1])
        columns = self.readings.means(np.column_stack([self.readings.time, *paths]))
        scores = np.column_stack([self.readings.blocks(column, residual) for column in columns.T])
        covariance, freedom = covariance_of_scores(columns, scores)
        hidden = HIDDEN * rms(self.readings.means(residual))
        errors = [hypot(float(np.sqrt(covariance[k, k])), hidden / orthogonal_size(columns, k)) for k in range(4)]
        multiple, scale, unknowns = student(freedom), max(abs(gain), 1e-9), self.unknowns
        squares = self.lag**2 + 2.0 * (float(factors[3]) - multiple * errors[3]) / scale
        aliasing_error = self._aliasing_error(sqrt(max(0.0, squares)), sent)
        windowed = HeldCommand(self.command.times, self.command.values, 0.5 * WINDOW)
        separate = fit_fopdt(windowed, self.readings.at, self.readings.mean, self.delay, None, LONGEST, _BLOCK)[:2]
        error = errors[2] / scale
        gain_error = hypot(errors[1], self.readings.rounding_error(self.command, self.delay))
        estimates = [
            _widened(judge(unknowns[0], self.delay, error, multiple * error), unknowns[0], aliasing_error),
            *(_widened(part, unknown, aliasing_error) for part, unknown in zip(separate, unknowns[1:3], strict=True)),
            judge(unknowns[3], gain, gain_error, multiple * gain_error),
        ]
        if not 1.0 / UNLIKELY_GAIN < gain < UNLIKELY_GAIN:
            unlikely = f"the motion is {gain:.3g} times the command: {UNITS}"
            estimates[3] = estimates[3].refused(Reason(Kind.WRONG_SIGNALS, unlikely))
        if self.lag >= LONGEST:
            estimates = [estimate.refused(search_ended("s", LONGEST)) for estimate in estimates]
        return estimates[0], *identified_together(estimates[1], estimates[2]), estimates[3]

    def _aliasing_error(self, lag: float, sent: HeldCommand) -> float:
        """Largest error of the delay by changes of the command that fall on few phases of the steps of readings [s].

        Speeds at two readings leave no trace of when between them the motion changed; positions count alike. Changes at
        any time average that out, in step with the readings they do not: at h phases, an h-th of a step apart, as much
        of the step stays open. A lag leaves a trace: it damps the frequency h / step, onto which they are folded.
        """
        changes, step = np.diff(sent.values), self.readings.step
        at = sent.times[1:] + self.delay
        moved = (changes != 0.0) & (at >= self.readings.time[0]) & (at <= self.readings.time[-1])
        weights, phases = changes[moved] ** 2, self.readings.phases(at[moved])
        if not len(weights):
            return 0.0
        h = np.arange(1.0, _PHASES + 1.0)
        alike = np.abs(np.exp(2j * np.pi * np.outer(h, phases)) @ weights / np.sum(weights)) ** 2
        chance = float(np.sum(weights**2) / np.sum(weights) ** 2)  # of as many at any time
        alike -= chance if chance < _MANY else 0.0
        folded = 0.5 * step / h * np.sqrt(np.maximum(alike, 0.0)) / np.hypot(1.0, 2.0 * np.pi * lag * h / step)
        return float(np.max(folded))


def _widened(estimate: Estimate, unknown: Unknown, margin: float) -> Estimate:
    """Dead time or lag with an interval that is longer on both sides by `margin` [s]."""
    low, high = estimate.interval
    side = max(estimate.value - low, high - estimate.value) + margin  # an end may be cut at 0
    return reaching(estimate, unknown, (estimate.value - side, estimate.value + side), _SAME_RHYTHM)


def compared(fit: Fit, commands: Iterable[HeldCommand]) -> tuple[Vector, Vector, float]:
    """Squared residuals (n,) of commands, their excess over the least in standard errors (n,), degrees of freedom.

    If a command is the true one and has the residual r, its squares exceed those of the best command by 2 d' r - d' d,
    d the means of its residual less those of the best. The sum of d' r has the scatter that its parts in blocks show,
    with the residual of the best command for r. Of r, a share of `HIDDEN` may be what the model lacks and look like d,
    which no scatter shows: it is added. Friction reduces speed: a term that adds speed is omitted, since it
    would look like a limit.
    """
    return excess_of(fit.readings, [left_by(fit, command) for command in commands])


def left_by(fit: Fit, command: HeldCommand) -> Vector:
    """Residual path (m,) of a command in the response of a fit, less what friction takes from its speed."""
    friction = HeldCommand(command.times, np.sign(command.values), 0.0)
    responses = fit.responses(command)
    factors, path = fit.solved([*responses, fit.path(friction)])
    return path if factors[-1] < 0.0 else fit.solved(responses)[1]  # friction does not add speed


def excess_of(readings: Readings, residuals: Sequence[Vector]) -> tuple[Vector, Vector, float]:
    """The same as `compared`, of residual paths (m,)."""
    means = [readings.means(path) for path in residuals]
    squares = np.array([float(mean @ mean) for mean in means])
    best = int(np.argmin(squares))
    parts = np.array([readings.blocks(mean - means[best], residuals[best]) for mean in means])
    sizes = np.array([float(np.linalg.norm(mean - means[best])) for mean in means])
    scatter = 2.0 * np.hypot(np.sqrt(np.sum(parts**2, axis=1)), HIDDEN * sqrt(squares[best]) * sizes)
    return squares, (squares - squares[best]) / np.maximum(scatter, 1e-300), float(max(1, parts.shape[1] - 1))
