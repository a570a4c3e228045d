"""Response of one axis of a body to its commanded speed: delay, dead time, lag, gain and dead band, by output error.

Speeds in steps of 0.01 m/s, 20 times a second, are all that some drivers report. The model of an axis is

    lag v' + v = gain u(t - dead time),    u the held command, 0 where its size is within the dead band.

Model and readings are averaged over 1.2 s before they are compared. That leaves delay, gain and slow changes, and
little of quanta and noise. What a response has beyond one lag, a second lag or the overshoot of a servo, is left to two
more terms: with g the gain and d the delay, it is about g exp(-d s) (1 + a s^2 + b s^3).

Source: systems 32, 33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.body._limits import Limits, limits_of
from youbot_dynamics.identification.body._model import (
    BUDGET,
    GRID,
    LONGEST_STEP,
    ROUNDING,
    WINDOW,
    Fit,
    Readings,
    compared,
    excess_of,
    left_by,
)
from youbot_dynamics.identification.delay import (
    CONSTANT,
    LEAD,
    LEAST_EXPLAINED,
    LONGEST,
    OPPOSITE,
    OPPOSITE_MISFIT,
    LaggedCommand,
    identified_together,
    leading,
    stopping,
)
from youbot_dynamics.identification.least_squares import (
    NEGLIGIBLE,
    Estimate,
    Kind,
    Reason,
    Unknown,
    Whiteness,
    judge,
    reaching,
    student,
    undetermined,
    unsettled,
    whiteness,
)
from youbot_dynamics.identification.least_squares import combined as pooled
from youbot_dynamics.identification.signals import HeldCommand, stream_gaps

_LAGS = (0.02, 0.1, 0.3)  # of the coarse search [s]
_SHORTEST, _FEWEST = 20.0, 100  # duration [s], 6 blocks of the scatter, and number of the readings of a fit
_RIVAL_DISTANCE = 0.15  # of a second minimum of the misfit from the best one [s]: the motion is periodic
_LEAST_LIKENESS = 0.3  # the same at the best delay of the coarse search, below which no delay is named
_MOST_BANDS = 60  # tested dead bands
_WIDEST_BAND = 0.5  # largest tested dead band, as a share of the fastest command

KINDS = ("effective", "dead_time", "lag", "gain", "dead_band", "acceleration", "speed")


@dataclass(frozen=True, eq=False)
class BodyAxis:
    """Response of one axis."""

    channel: str  # name of the axis
    # In the order of KINDS: effective delay, dead time, lag [s], gain [1], dead band [unit/s], and the largest
    # acceleration [unit/s2] and speed [unit/s] that commands reach
    estimates: tuple[Estimate, ...]
    samples: int  # number of readings used
    fastest: float  # largest command [unit/s]; the estimates are valid up to it
    time: Vector  # (m,) of the readings [s]
    measured: Vector  # (m,) speed [unit/s]
    modelled: Vector  # (m,) speed of the model [unit/s]; empty if nothing was fitted
    whiteness: Whiteness | None = None  # of their difference, None if nothing was fitted
    stop: Reason | None = None  # why no axis shows a response: this one stops between its commands

    def __getitem__(self, kind: str) -> Estimate:
        """Estimate of one of KINDS."""
        return self.estimates[KINDS.index(kind)]

    def stopped(self, stop: Reason) -> BodyAxis:
        """The same without a response, since an axis of the base stops between its commands."""
        refused = tuple(one.refused(stop) if one.identified else one for one in self.estimates)
        return replace(self, estimates=refused, modelled=np.zeros(0), whiteness=None)

    def read_earlier(self, old: float) -> BodyAxis:
        """The same, of readings that may be older than their stamps by up to a time [s]."""

        def wider(one: Estimate) -> Estimate:
            if one.name not in ("effective", "dead_time"):
                return one
            unknown = Unknown(one.name, one.unit, low=0.0)
            return reaching(one, unknown, (one.interval[0] - old, one.interval[1]), _HELD_IN_ROWS)

        return replace(self, estimates=tuple(wider(one) for one in self.estimates)) if old else self

    def without_curve(self) -> BodyAxis:
        """The same without the readings."""
        nothing = np.zeros(0)
        return replace(self, time=nothing, measured=nothing, modelled=nothing)


def identify_axis(
    channel: str,
    unit: str,
    sent: ArrayLike,
    command: ArrayLike,
    stamps: ArrayLike,
    motion: ArrayLike,
    *,
    measured_is: str = "velocity",
) -> BodyAxis:
    """Fit the response of one axis to its command.

    The effective delay is dead time plus lag, with the share of friction. `fit_fopdt` separates the two.
    The intervals of delay and gain come from the scatter between blocks of readings, in the linearised model. A share
    of the residual, as one standard error, is added for effects that the model lacks. If changes of the command are in
    step with the readings, a short lag leaves their time between two readings unknown; that is added too. The dead band
    is the one with the smallest misfit. Its interval holds all that are not worse, by the scatter between blocks, and
    half a quantum of the readings on each side. The largest acceleration and speed are found likewise, by commands
    limited to them; they are refused if the commands as sent fit as well. A drive that shows the largest acceleration
    does not show the delay: how fast the axis follows smaller changes is unknown. Limits that the data neither show nor
    exclude widen delay and gain.

    Args:
        channel: name of the axis.
        unit: of its speed.
        sent: (n,) times of the commands [s], not decreasing.
        command: (n,) commanded speed, each held until the next [unit/s].
        stamps: (m,) of the readings, on the same clock [s], not decreasing.
        motion: (m,) measured speed, or position along the axis [unit s]; NaN where it was not measured.
        measured_is: "velocity" or "position".

    Returns:
        Estimates with verdicts. They are refused if nothing was measured, the command never changed or the axis does
            not follow it.

    Raises:
        InputError: shapes that do not fit.
        IdentificationError: too little time in common.
    """
    times, commands = _finite("command", sent, command)
    moments, speeds = _finite("motion", stamps, motion)
    known = commands_known(times, moments)
    time, measured = moments[known], speeds[known]
    fastest = float(np.max(np.abs(commands), initial=0.0))
    axis = BodyAxis(channel, _refused(unit, _NOT_MEASURED), len(time), fastest, time, measured, np.zeros(0))
    if len(moments) == 0:
        return axis
    if len(time) < _FEWEST or time[-1] - time[0] < _SHORTEST:
        got = f"{np.ptp(time) if len(time) else 0.0:.3g} s of {np.ptp(moments):.3g} s in which the commands are known"
        raise IdentificationError(
            f"response of {channel}",
            got=f"{got}, with {len(time)} readings",
            expected=f"{_SHORTEST:g} s or more, with {_FEWEST} readings or more",
            remedy="drive longer",
        )
    found: Reason | tuple[tuple[Estimate, ...], Fit]
    if np.ptp(commands[times > time[0] - LONGEST]) <= 1e-9 * max(1.0, fastest):
        found = CONSTANT if fastest else _NOT_COMMANDED
    elif np.ptp(measured) == 0.0:
        found = Reason(Kind.NOT_MEASURED, _STILL.format(fastest=fastest, unit=unit))
    elif stop := stopping(times, commands, time, measured, LONGEST, measured_is):
        return replace(axis, estimates=_refused(unit, stop), stop=stop)
    else:
        readings = Readings(time, measured, measured_is == "velocity")
        if len(readings.at) < _FEWEST:
            edges = np.flatnonzero(np.diff(moments) > LONGEST_STEP) + 1
            longest = max(float(np.ptp(piece)) for piece in np.split(moments, edges))
            got = f"{len(readings.at)} of {len(moments)} readings amid {WINDOW:g} s without a gap of {LONGEST_STEP:g} s"
            raise IdentificationError(
                f"response of {channel}",
                got=f"{got}; the longest piece without one lasts {longest:.3g} s",
                expected=f"{_FEWEST} or more, in pieces of well over {LONGEST + WINDOW:g} s, also of the commands",
                remedy="let the commands, the readings and the recording go on while the base rests",
            )
        found = _fitted(HeldCommand(times, commands, 0.0), readings, readings.quantum, unit)
    if isinstance(found, Reason):
        return replace(axis, estimates=_refused(unit, found))
    estimates, fit = found
    readings, residual = fit.readings, fit.readings.means(fit.solved(fit.responses(fit.command))[1])
    return replace(
        axis,
        estimates=estimates,
        time=readings.at,
        measured=readings.mean,
        modelled=readings.mean - residual,
        whiteness=whiteness(readings.at, residual),
    )


def _refused(unit: str, reason: Reason) -> tuple[Estimate, ...]:
    return tuple(undetermined(Unknown(kind, _unit(kind, unit)), reason) for kind in KINDS)


def _fitted(
    sent: HeldCommand, readings: Readings, quantum: float, unit: str
) -> Reason | tuple[tuple[Estimate, ...], Fit]:
    """Estimates in the order of KINDS and the fit behind them, or why there are none.

    `quantum` is the smallest difference between speeds [unit/s].
    """
    start, reason = _start(sent, readings)
    if reason is not None:
        return reason
    first = Fit(sent, readings, start)
    fit, within, limits, rivals, hides = limits_of(first, quantum, unit)
    start = fit.delay, fit.lag
    others = [Fit(one.applied(sent), readings, start) for _, one in rivals]
    band = _dead_band(fit, sent, within, quantum, unit, others)
    dead_band = band.value if band.identified and band.interval[0] > 0.0 else 0.0
    if dead_band:
        silent = _with_dead_band(sent, dead_band)
        fit = Fit(within.applied(silent), readings, start)
        others = [Fit(one.applied(silent), readings, start) for _, one in rivals]
    if not (first.settled and fit.settled):
        return unsettled(f"{BUDGET} evaluations")
    if fit.explained < LEAST_EXPLAINED:
        return _unexplained(fit.explained)
    response: tuple[Estimate, ...] = fit.estimates(sent)
    if hides is not None:
        delay, dead_time, lag = (undetermined(unknown, hides) for unknown in fit.unknowns[:3])
        response = delay, dead_time, lag, response[3]
    for (kind, _), rival in zip(rivals, others, strict=True):
        alike = rival.estimates(sent)
        triples = zip(response, fit.unknowns, alike, strict=True)
        before, response = response, tuple(_widened(one, unknown, other.value, kind) for one, unknown, other in triples)
        refused = any(old.identified and not new.identified for old, new in zip(before, response, strict=True))
        limits = [_doubtful(limit, kind) if refused else limit for limit in limits]
    return (*response, band, *limits), fit


_STILL = (
    "the axis never moved under commands of up to {fastest:.3g} {unit}: the robot lacks it, its motors were off, or "
    "its driver does not report this speed"
)
_HELD_IN_ROWS = "; readings are held over rows of the log, up to one row before they are shown"
_NOT_MEASURED = Reason(Kind.NOT_MEASURED, "this axis was not measured")
_NOT_COMMANDED = Reason(Kind.NOT_EXCITED, "this axis was never commanded")
_LIMITED = Reason(
    Kind.OTHER_EXPLANATION,
    "the axis may have no dead band but a limit of its acceleration or speed: drive with smaller accelerations",
)
_PERIODIC = Reason(
    Kind.CONFUSED,
    "the motion is periodic: another delay, or the opposite sign with half a period, fits as well",
)


def _unexplained(share: float) -> Reason:
    return Reason(
        Kind.UNEXPLAINED,
        f"the command explains only {share:.0%} of the motion; {LEAST_EXPLAINED:.0%} is needed: the axis was hardly "
        "driven, something else moved it, or axes or columns are exchanged",
    )


def combined(axes: Sequence[BodyAxis]) -> BodyAxis:
    """One axis from several recordings, at least one: random-effects mean of the identified values of each kind."""
    first = axes[0]
    if len(axes) == 1:
        return first
    estimates = [_combined_estimate([axis[kind] for axis in axes]) for kind in KINDS]
    estimates[1:3] = identified_together(estimates[1], estimates[2])
    samples, fastest = sum(axis.samples for axis in axes), max(axis.fastest for axis in axes)
    return replace(first, estimates=tuple(estimates), samples=samples, fastest=fastest)


def _combined_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """Random-effects mean of the identified values; what is unknown in all recordings alike does not average out.

    A limit is refused if another recording reached more than its interval holds; if no recording shows a limit,
    the largest lower bound counts.
    """
    identified = [estimate for estimate in estimates if estimate.identified]
    lower_bounds = [estimate for estimate in estimates if estimate.interval[1] == inf]
    largest_bound = max(lower_bounds, key=lambda estimate: estimate.interval[0], default=None)
    if largest_bound is not None and all(estimate.interval[1] < largest_bound.interval[0] for estimate in identified):
        if not identified or largest_bound.reason is None:
            return largest_bound
        other = f"another recording shows a limit of {identified[0].value:.3g} {identified[0].unit}"
        return largest_bound.refused(Reason(Kind.OTHER_EXPLANATION, f"{largest_bound.reason.text}; {other}"))
    return pooled(estimates, systematic=True)


def _unit(kind: str, unit: str) -> str:
    return {"gain": "1", "dead_band": unit, "acceleration": f"{unit}2", "speed": unit}.get(kind, "s")


def _finite(name: str, times: ArrayLike, values: ArrayLike) -> tuple[Vector, Vector]:
    """Times (n,) and values (n,) without the rows that are not finite."""
    moments, numbers = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if moments.ndim != 1 or moments.shape != numbers.shape:
        raise InputError(name, got=f"shape {numbers.shape} at times of shape {moments.shape}", expected="(n,) of both")
    finite = np.isfinite(moments) & np.isfinite(numbers)
    return moments[finite], numbers[finite]


def commands_known(sent: Vector, stamps: Vector) -> Flags:
    """Readings (m,) for which the commands before them are known: not at the start, nor behind missing commands."""
    if not len(sent):
        return np.zeros(len(stamps), dtype=bool)
    known: Flags = (stamps > sent[0] + LONGEST) & (stamps <= sent[-1])
    for gap in stream_gaps(sent):
        known &= (stamps < sent[gap]) | (stamps > sent[gap + 1] + LONGEST)
    return known


def _with_dead_band(command: HeldCommand, band: float) -> HeldCommand:
    """The command without its values of a size within `band` [unit/s]."""
    values = np.where(np.abs(command.values) > band + ROUNDING, command.values, 0.0)
    return HeldCommand(command.times, values, command.half_window)


def _start(command: HeldCommand, readings: Readings) -> tuple[tuple[float, float], Reason | None]:
    """Delay and lag of the smallest misfit on a grid [s], and why the motion does not determine them, if so."""
    centred = readings.mean - readings.mean.mean()
    total = float(centred @ centred)
    delays = np.arange(-LEAD, LONGEST + GRID / 2.0, GRID)
    misfits = np.full((2, len(_LAGS), len(delays)), total)  # of motion along the command and against it
    for row, lag in enumerate(_LAGS):
        lagged = LaggedCommand(command, lag)
        for k, delay in enumerate(delays.tolist()):
            model = readings.means(lagged.at(readings.time - delay + lag).motion)
            model = model - model.mean()
            product, power = float(model @ centred), float(model @ model)
            if power > 0.0:
                misfits[0 if product > 0.0 else 1, row, k] -= product**2 / power
    along, against = misfits.min(axis=1)
    best = int(np.argmin(along))
    start = max(float(delays[best]), 0.0), _LAGS[int(np.argmin(misfits[0, :, best]))]
    minima = np.flatnonzero((along[1:-1] <= along[:-2]) & (along[1:-1] < along[2:])) + 1
    distant = minima[np.abs(delays[minima] - delays[best]) > _RIVAL_DISTANCE]
    largest_misfit = (1.0 - LEAST_EXPLAINED) * total
    if along[best] < largest_misfit and np.min(np.append(along[distant], against)) < largest_misfit:
        return start, _PERIODIC
    if min(np.min(along), np.min(against)) > (1.0 - _LEAST_LIKENESS) * total:
        return start, _unexplained(1.0 - min(np.min(along), np.min(against)) / total)
    if np.min(against) < OPPOSITE_MISFIT * along[best]:
        return start, OPPOSITE
    if delays[best] < -GRID:
        more = " or more" if best == 0 else ""
        return start, leading(f"{-1e3 * delays[best]:.3g} ms{more}")
    return start, None


def _dead_band(
    fit: Fit, sent: HeldCommand, limits: Limits, quantum: float, unit: str, rivals: Sequence[Fit]
) -> Estimate:
    """Largest command without effect [unit/s], as sent, before any limits: 0 if the data do not show one.

    The misfit changes only where a tested dead band passes the size of a command, so the interval ends at such sizes,
    and half a quantum of the readings beyond them: rounding hides speeds below it. It is refused if one of the rivals,
    with limits but without a dead band, is not excluded beside it.
    """
    sizes = np.unique(np.round(np.abs(sent.values), 6))
    sizes = sizes[sizes > 0.0]
    bands = np.append(0.0, sizes[sizes <= _WIDEST_BAND * sizes[-1]])
    bands = bands[np.unique(np.linspace(0, len(bands) - 1, _MOST_BANDS).round().astype(int))]
    commands = [limits.applied(_with_dead_band(sent, band)) for band in bands.tolist()]
    _, excess, freedom = compared(fit, commands)
    best, admissible = int(np.argmin(excess)), excess <= student(freedom)
    first, last = np.flatnonzero(admissible)[[0, -1]].tolist()
    next_larger = np.append(bands[1:], sizes[sizes > bands[-1]][:1])  # the next larger command has an effect
    low, high = max(0.0, float(bands[first]) - 0.5 * quantum), float(next_larger[last]) + 0.5 * quantum
    value = 0.0 if low == 0.0 else 0.5 * float(bands[best] + next_larger[best])
    half_width = 0.5 * (high - low)
    unknown = Unknown("dead_band", unit, low=0.0, resolution=NEGLIGIBLE * float(sizes[-1]))
    band = judge(unknown, value, half_width / student(freedom), half_width, interval=(low, high))
    if low == 0.0:
        return band
    if limits.braking != 1.0:  # the tested ratios are few: what they leave may look like a dead band
        return band.refused_if_identified(_LIMITED)
    silent = Fit(commands[best], fit.readings, (fit.delay, fit.lag))
    _, excess, freedom = excess_of(fit.readings, [left_by(one, one.command) for one in (silent, *rivals)])
    return band.refused_if_identified(_LIMITED if np.any(excess[1:] <= student(freedom)) else None)


def _widened(estimate: Estimate, unknown: Unknown, other: float, kind: str) -> Estimate:
    """The estimate with `other`, its value under a limit of some kind that the data do not exclude, in its interval."""
    if not estimate.identified or estimate.interval[0] <= other <= estimate.interval[1]:
        return estimate
    interval = min(estimate.interval[0], other), max(estimate.interval[1], other)
    before, half_width = 0.5 * (estimate.interval[1] - estimate.interval[0]), 0.5 * (interval[1] - interval[0])
    error = estimate.standard_error * half_width / before
    if judge(unknown, min(estimate.value, 0.5 * sum(interval)), error, half_width).identified:
        return replace(estimate, interval=interval, standard_error=error)
    exceeded = (
        f"it lies between {interval[0]:.3g} and {interval[1]:.3g} {unknown.unit}: the commands may have exceeded the "
        f"largest {kind} of the axis; drive with smaller ones"
    )
    return undetermined(unknown, Reason(Kind.OTHER_EXPLANATION, exceeded))


def _doubtful(limit: Estimate, kind: str) -> Estimate:
    """A limit, doubtful if it is of the kind that may explain a refused value."""
    if limit.identified or limit.name != kind:
        return limit
    reached = f"; it is at least {limit.interval[0]:.3g} {limit.unit}" if limit.interval[0] > 0.0 else ""
    return limit.refused(Reason(Kind.CONFUSED, f"whether commands exceeded it is open{reached}"))
