"""Response of one axis of a body to its commanded speed: delay, dead time, lag, gain and dead band, by output error.

Speeds in steps of 0.01 m/s, 20 times a second, are all that some drivers report. The model of an axis is

    lag v' + v = gain u(t - dead time),    u the held command, 0 where its size is within the dead band.

Model and readings are averaged over 1.2 s before they are compared. That leaves delay, gain and slow changes, and
little of quanta, noise and of what a response has beyond one lag: a second lag, or the oscillation of a servo.

Source: systems 32, 33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.delay import BLOCK, LaggedCommand, block_jackknife, fit_fopdt, identified_together
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Unknown,
    Whiteness,
    judge,
    pooled,
    refusal,
    student,
    systematic_interval,
    undetermined,
    whiteness,
)
from youbot_dynamics.identification.signals import HeldCommand, stream_gaps

_LONGEST = 0.8  # largest dead time and lag considered [s]
_LEAD = 0.2  # negative range of the search [s]: motion before its command means wrong clocks or topics
_GRID, _LAGS = 0.02, (0.02, 0.1, 0.3)  # step of the coarse search for the delay, and its lags [s]
_SHORTEST, _FEWEST = 10.0, 100  # duration [s] and number of the readings of a fit
_WINDOW = 1.2  # over which speeds are averaged [s]
_LONGEST_STEP = 0.25  # between readings, over which a speed is interpolated [s]
_RIVAL_DISTANCE = 0.15  # of a second minimum of the misfit from the best one [s]: the motion is periodic
_OPPOSITE_MISFIT = 0.5  # improvement by the opposite sign above which the signs are reported as wrong
_LEAST_EXPLAINED = 0.9  # share of the motion that the model must explain
_LEAST_LAG = 5e-4  # [s]
_MOST_BANDS = 60  # tested dead bands
_WIDEST_BAND = 0.5  # largest tested dead band, as a share of the fastest command
_BAND_RESOLUTION = 0.05  # half-width of the interval of a dead band that suffices, as a share of the fastest command
_HIDDEN = 0.2  # share of the residual that may look like a change of delay or gain after any averaging
_FREEDOM = 30.0  # degrees of freedom of the errors of several recordings

KINDS = ("effective", "dead_time", "lag", "gain", "dead_band")


@dataclass(frozen=True, eq=False)
class BodyAxis:
    """Response of one axis.

    Args:
        channel: name of the axis.
        estimates: effective delay, dead time, lag [s], gain [1] and dead band [unit/s], in the order of KINDS.
        samples: number of readings used.
        fastest: largest command [unit/s]; the estimates are valid up to it.
        time: (m,) of the readings [s].
        measured: (m,) speed [unit/s].
        modelled: (m,) speed of the model [unit/s]; empty if nothing was fitted.
        whiteness: of their difference, None if nothing was fitted.
    """

    channel: str
    estimates: tuple[Estimate, ...]
    samples: int
    fastest: float
    time: Vector
    measured: Vector
    modelled: Vector
    whiteness: Whiteness | None = None

    def __getitem__(self, kind: str) -> Estimate:
        """Estimate of one of KINDS."""
        return self.estimates[KINDS.index(kind)]

    def without_curve(self) -> BodyAxis:
        """The same without the readings."""
        nothing = np.zeros(0)
        return replace(self, time=nothing, measured=nothing, modelled=nothing)


def identify_axis(
    channel: str, unit: str, sent: ArrayLike, command: ArrayLike, stamps: ArrayLike, speed: ArrayLike
) -> BodyAxis:
    """Fit the response of one axis to its command.

    The effective delay is dead time plus lag, with the share of friction. `fit_fopdt` tells the two apart.
    The intervals of delay and gain are those of a jackknife over blocks of the linearised model. A fifth of the
    residual, as one standard error, is added for effects that the model lacks. If readings and commands have the same
    rhythm, a short lag leaves the time of a step between two readings unknown; that is added too. The dead band is the
    one with the smallest misfit. Its interval holds all that are not worse, by the paired differences of the misfits of
    blocks, and half a quantum of the readings on each side.

    Args:
        channel: name of the axis.
        unit: of its speed.
        sent: (n,) times of the commands [s], not decreasing.
        command: (n,) commanded speed, each held until the next [unit/s].
        stamps: (m,) of the readings, on the same clock [s], not decreasing.
        speed: (m,) measured speed [unit/s]; NaN where it was not measured.

    Returns:
        Estimates with verdicts. They are refused if nothing was measured, the command never changed or the axis does
            not follow it.

    Raises:
        InputError: shapes that do not fit.
        IdentificationError: too little time in common.
    """
    times, commands = _finite("command", sent, command)
    moments, speeds = _finite("speed", stamps, speed)
    told = _told(times, moments) if len(times) else np.zeros(len(moments), dtype=bool)
    time, motion = moments[told], speeds[told]
    fastest = float(np.max(np.abs(commands), initial=0.0))

    def refused(reason: str) -> BodyAxis:
        estimates = tuple(undetermined(Unknown(kind, _unit(kind, unit)), reason) for kind in KINDS)
        return BodyAxis(channel, estimates, len(time), fastest, time, motion, np.zeros(0))

    if len(moments) == 0:
        return refused("this axis was not measured")
    if len(time) < _FEWEST or time[-1] - time[0] < _SHORTEST:
        got = f"{len(time)} readings over {np.ptp(time) if len(time) else 0.0:.3g} s while commands are known"
        raise IdentificationError(
            f"response of {channel}", got=got, expected=f"{_FEWEST} or more over {_SHORTEST:g} s", remedy="drive longer"
        )
    if np.ptp(commands[times > time[0] - _LONGEST]) <= 1e-9 * max(1.0, fastest):
        return refused("the command never changed" if fastest else "this axis was never commanded")
    if np.ptp(motion) == 0.0:
        return refused(
            f"the axis never moved under commands of up to {fastest:.3g} {unit}: the robot lacks it, its motors were "
            "off, or its driver does not report this speed"
        )
    held = HeldCommand(times, commands, 0.5 * _WINDOW)
    quantum = float(np.min(np.diff(np.unique(np.round(motion, 6)))))
    time, motion = _averaged(time, motion)
    start, reason = _start(held, time, motion)
    if reason:
        return refused(reason)
    fit = _Fit(held, time, motion, start)
    band = _dead_band(fit, quantum, unit)
    if band.identified and band.interval[0] > 0.0:
        fit = _Fit(_beyond(held, band.value), time, motion, (fit.delay, fit.lag))
    if fit.explained < _LEAST_EXPLAINED:
        return refused(
            f"the command explains only {fit.explained:.0%} of the motion; {_LEAST_EXPLAINED:.0%} is needed: the axis "
            "was hardly driven, or something else moved it"
        )
    estimates = (*fit.estimates(), band)
    colour = whiteness(time, motion - fit.modelled)
    return BodyAxis(channel, estimates, len(time), fastest, time, motion, fit.modelled, colour)


def combined(axes: Sequence[BodyAxis]) -> BodyAxis:
    """One axis from several recordings, at least one: random-effects mean of the identified values of each kind."""
    first = axes[0]
    if len(axes) == 1:
        return first
    estimates = [_together([axis[kind] for axis in axes]) for kind in KINDS]
    estimates[1:3] = identified_together(estimates[1], estimates[2])
    samples, fastest = sum(axis.samples for axis in axes), max(axis.fastest for axis in axes)
    return replace(first, estimates=tuple(estimates), samples=samples, fastest=fastest)


def _together(parts: Sequence[Estimate]) -> Estimate:
    """Random-effects mean of the identified values; what is unknown in all recordings alike does not average out."""
    good = [part for part in parts if part.identified]
    if len(good) <= 1:
        return (good or parts)[0]
    values = np.array([part.value for part in good])
    errors = np.maximum([part.standard_error for part in good], 1e-9)
    value, error = pooled(values, errors**2, _FREEDOM)
    low, high = systematic_interval(
        value, student(_FREEDOM) * error, values, np.array([part.interval for part in good])
    )
    widest = max(0.5 * (part.interval[1] - part.interval[0]) for part in good)
    unknown = Unknown(good[0].name, good[0].unit, low=0.0, resolution=widest)
    found = judge(unknown, value, error, 0.5 * (high - low))
    return replace(found, interval=(max(0.0, low), high), standard_error=0.5 * (high - low) / student(_FREEDOM))


def _unit(kind: str, unit: str) -> str:
    return {"gain": "1", "dead_band": unit}.get(kind, "s")


def _finite(name: str, times: ArrayLike, values: ArrayLike) -> tuple[Vector, Vector]:
    """Times (n,) and values (n,) without the rows that are not finite."""
    moments, numbers = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if moments.ndim != 1 or moments.shape != numbers.shape:
        raise InputError(name, got=f"shape {numbers.shape} at times of shape {moments.shape}", expected="(n,) of both")
    sound = np.isfinite(moments) & np.isfinite(numbers)
    return moments[sound], numbers[sound]


def _told(sent: Vector, stamps: Vector) -> Flags:
    """Readings (m,) for which the commands before them are known: not at the start, nor behind missing commands."""
    told: Flags = (stamps > sent[0] + _LONGEST) & (stamps <= sent[-1])
    for gap in stream_gaps(sent):
        told &= (stamps < sent[gap]) | (stamps > sent[gap + 1] + _LONGEST)
    return told


def _averaged(time: Vector, speed: Vector) -> tuple[Vector, Vector]:
    """Times (k,) and mean speeds (k,) over `_WINDOW` around them, from speeds (m,) at times (m,), without the gaps.

    The effect of quanta, and of what a response has beyond dead time and lag, averages out.
    """
    steps = np.diff(time)
    path = np.append(0.0, np.cumsum(0.5 * (speed[1:] + speed[:-1]) * steps))
    before, after = time - 0.5 * _WINDOW, time + 0.5 * _WINDOW
    whole = (before >= time[0]) & (after <= time[-1])
    for gap in np.flatnonzero(steps > _LONGEST_STEP):
        whole &= (after <= time[gap]) | (before >= time[gap + 1])
    means = (np.interp(after, time, path) - np.interp(before, time, path)) / _WINDOW
    return time[whole], means[whole]


def _beyond(command: HeldCommand, band: float) -> HeldCommand:
    """The command without its values of a size within `band` [unit/s]."""
    values = np.where(np.abs(command.values) > band, command.values, 0.0)
    return HeldCommand(command.times, values, command.half_window)


def _start(command: HeldCommand, time: Vector, motion: Vector) -> tuple[tuple[float, float], str]:
    """Delay and lag of the smallest misfit on a grid [s], and why the motion does not tell them, "" if it does."""
    centred = motion - motion.mean()
    whole = float(centred @ centred)
    delays = np.arange(-_LEAD, _LONGEST + _GRID / 2.0, _GRID)
    misfits = np.full((2, len(_LAGS), len(delays)), whole)  # of motion along the command and against it
    for row, lag in enumerate(_LAGS):
        lagged = LaggedCommand(command, lag)
        for k, delay in enumerate(delays.tolist()):
            model = lagged.at(time - delay + lag).motion
            model = model - model.mean()
            common, power = float(model @ centred), float(model @ model)
            if power > 0.0:
                misfits[0 if common > 0.0 else 1, row, k] -= common**2 / power
    along, against = misfits.min(axis=1)
    best = int(np.argmin(along))
    found = max(float(delays[best]), 0.0), _LAGS[int(np.argmin(misfits[0, :, best]))]
    valleys = np.flatnonzero((along[1:-1] <= along[:-2]) & (along[1:-1] < along[2:])) + 1
    far = valleys[np.abs(delays[valleys] - delays[best]) > _RIVAL_DISTANCE]
    left = (1.0 - _LEAST_EXPLAINED) * whole
    if along[best] < left and np.min(np.append(along[far], against)) < left:
        return found, "the motion is periodic: another delay, or the opposite sign with half a period, fits as well"
    if np.min(against) < _OPPOSITE_MISFIT * along[best]:
        return found, "the motion is opposite to the command: check the signs of the channel"
    if delays[best] < -_GRID:
        return found, f"the motion leads the command by {-1e3 * delays[best]:.3g} ms: check clocks and topics"
    return found, ""


class _Fit:
    """Fit of dead time, lag and gain, and its linearisation.

    Args:
        command: held, with the window of the readings.
        time: (m,) of the readings [s].
        motion: (m,) measured speed [unit/s].
        start: of the search for delay and lag [s].
    """

    def __init__(self, command: HeldCommand, time: Vector, motion: Vector, start: tuple[float, float]) -> None:
        self.command, self.time, self.motion = command, time, motion
        bounds = ((0.0, _LEAST_LAG), (2.0 * _LONGEST, _LONGEST))
        best = least_squares(lambda x: self._modelled(*x)[0] - motion, start, x_scale=_GRID, bounds=bounds)
        self.delay, self.lag = best.x.tolist()
        self.modelled, self.gain = self._modelled(self.delay, self.lag)
        left = motion - self.modelled
        self.explained = 1.0 - float(left @ left) / float(np.sum((motion - motion.mean()) ** 2))

    def answer(self, command: HeldCommand) -> Vector:
        """Response (m,) to a command with this delay and lag and a gain of 1 [unit/s]."""
        return LaggedCommand(command, self.lag).at(self.time - self.delay + self.lag).motion

    def _modelled(self, delay: float, lag: float) -> tuple[Vector, float]:
        """Speed (m,) of the model with the best offset and gain [unit/s], and the gain [1]."""
        answer = LaggedCommand(self.command, lag).at(self.time - delay + lag).motion
        columns = np.column_stack([np.ones(len(answer)), answer])
        offset, gain = np.linalg.lstsq(columns, self.motion, rcond=None)[0].tolist()
        return offset + gain * answer, gain

    def estimates(self) -> tuple[Estimate, Estimate, Estimate, Estimate]:
        """Effective delay, dead time, lag [s] and gain [1], with verdicts."""
        delay, lag = self.delay, self.lag
        # Lags much shorter than the hold time of the command have hardly any effect; use the slopes of a longer lag.
        period = float(np.median(np.diff(self.command.times)))
        longer = max(lag, 0.5 * period)
        slopes = LaggedCommand(self.command, longer).at(self.time - delay + longer)
        changes = [-self.gain * slopes.rate, self.gain * slopes.widening]
        columns = np.column_stack([np.ones(len(self.time)), slopes.motion, *changes])
        left = self.motion - self.modelled
        covariance, freedom = block_jackknife(columns, left, self.time)
        hidden = _HIDDEN * float(np.sqrt(np.mean(left**2)))
        errors = [hypot(float(np.sqrt(covariance[k, k])), hidden / _own_size(columns, k)) for k in range(4)]
        multiple = student(freedom)
        unseen = self._unseen(sqrt(max(0.0, lag**2 - 2.0 * multiple * errors[3])), period)
        apart = fit_fopdt(self.command, self.time, self.motion, delay, None, _LONGEST)[:2]
        found = [
            judge(Unknown("effective", "s", low=0.0, resolution=0.01), delay, errors[2], multiple * errors[2] + unseen),
            *(self._widened(part, unseen) for part in apart),
            judge(Unknown("gain", "1", low=0.0), self.gain, errors[1], multiple * errors[1]),
        ]
        if lag >= _LONGEST:
            reason = refusal(f"the best lag is at the upper bound of the search, {_LONGEST:g} s")
            found = [replace(one, verdict=reason) for one in found]
        return found[0], *identified_together(found[1], found[2]), found[3]

    def _unseen(self, lag: float, period: float) -> float:
        """Largest error of the delay by readings that fall on the same phase of each period of the command [s].

        Such readings fold the edges of the held command onto the motion. Without a lag a step between two readings
        leaves no trace of its time; a lag damps the first of the folded frequencies, 1 / period.
        """
        phase = np.exp(2j * np.pi * self.command.place(self.time)[1] / period)
        return 0.5 * period * float(np.abs(np.mean(phase))) / hypot(1.0, 2.0 * np.pi * lag / period)

    @staticmethod
    def _widened(part: Estimate, more: float) -> Estimate:
        """Dead time or lag with an interval that is longer on both sides by `more` [s]."""
        interval = max(0.0, part.interval[0] - more), part.interval[1] + more
        if part.identified and 0.5 * (interval[1] - interval[0]) > max(0.5 * part.value, 0.005):
            told = "readings and commands have the same rhythm, and the lag is short"
            part = replace(part, verdict=refusal(f"the interval is too wide: {told}"))
        return replace(part, interval=interval)


def _own_size(columns: Vector, k: int) -> float:
    """RMS of the part of column k of (m, p) that no other column explains."""
    others = np.delete(columns, k, axis=1)
    own = columns[:, k] - others @ np.linalg.lstsq(others, columns[:, k], rcond=None)[0]
    return max(float(np.sqrt(np.mean(own**2))), 1e-300)


def _dead_band(fit: _Fit, quantum: float, unit: str) -> Estimate:
    """Largest command without effect [unit/s]: 0 if the data do not show one.

    The misfit changes only where a tested dead band passes the size of a command, so the interval ends at such sizes,
    and half a quantum of the readings beyond them.
    """
    command, time, motion = fit.command, fit.time, fit.motion
    sizes = np.unique(np.abs(command.values[command.values != 0.0]))
    bands = np.append(0.0, sizes[sizes <= _WIDEST_BAND * sizes[-1]])
    bands = bands[np.unique(np.linspace(0, len(bands) - 1, _MOST_BANDS).round().astype(int))]
    block = np.floor((time - time[0]) / BLOCK).astype(int)
    squares = np.empty((len(bands), block[-1] + 1))
    for row, band in zip(squares, bands.tolist(), strict=True):
        moved = _beyond(command, band)
        lost = HeldCommand(moved.times, np.sign(moved.values), moved.half_window)  # speed lost to friction
        answers = [fit.answer(held) for held in (moved, lost)]
        columns = np.column_stack([np.ones(len(time)), *answers])
        left = motion - columns @ np.linalg.lstsq(columns, motion, rcond=None)[0]
        row[:] = np.bincount(block, left**2, len(row))
    best = int(np.argmin(squares.sum(axis=1)))
    worse = squares - squares[best]
    count = worse.shape[1]
    as_good = np.sum(worse, axis=1) <= student(count - 1) * np.sqrt(count) * np.std(worse, axis=1, ddof=1)
    first, last = np.flatnonzero(as_good)[[0, -1]].tolist()
    above = np.append(bands[1:], sizes[sizes > bands[-1]][:1])  # the next larger command has an effect
    low, high = max(0.0, float(bands[first]) - 0.5 * quantum), float(above[last]) + 0.5 * quantum
    value = 0.0 if low == 0.0 else 0.5 * float(bands[best] + above[best])
    reach = 0.5 * (high - low)
    unknown = Unknown("dead_band", unit, low=0.0, resolution=_BAND_RESOLUTION * float(sizes[-1]))
    found = judge(unknown, value, reach / student(count - 1), reach)
    return replace(found, interval=(low, high))
