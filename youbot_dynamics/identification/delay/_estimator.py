"""Effective delay of a channel: the time shift for which the held command best explains the motion.

Source: systems 32, 33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import hypot, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from youbot_dynamics.arrays import Flags, Vector, excerpt, positive_time, real, rms, usual_step
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.delay._channel import Channel
from youbot_dynamics.identification.delay._fopdt import (
    BLOCK,
    CLOCK,
    LEAD,
    LONGEST,
    Fopdt,
    LaggedCommand,
    covariance_in_blocks,
    fit_fopdt,
    identified_together,
    negligible_part,
    refused,
)
from youbot_dynamics.identification.delay._reasons import (
    ADDS_UP,
    CONSTANT,
    CONSTANT_BEFORE,
    NO_INFORMATION,
    OPPOSITE,
    PERIODIC,
    leading,
)
from youbot_dynamics.identification.delay._stops import stop_after_commands
from youbot_dynamics.identification.least_squares import (
    SIGNIFICANT,
    Estimate,
    Kind,
    Reason,
    Unknown,
    Whiteness,
    combined,
    judge,
    reaching,
    search_ended,
    student,
    whiteness,
)
from youbot_dynamics.identification.signals import HeldCommand

_GRID = 5e-3  # step of the coarse search [s]
_INSTANT = 0.1  # window of a speed at an instant, as a share of that of a mean over a step
_EXCLUDED = 1.25  # ratio of the residuals (root mean square) at which a mean, or an instant, is excluded
_FRICTION_LAGS = (0.0, 0.05, 0.15)  # response times of the motor loop to a change of friction [s]
_FEWEST, _FEWEST_BLOCKS = 10, 6  # readings of a channel, and blocks of the jackknife that they span
_LARGEST = 0.01  # half-width above which that of no delay is negligible [s]
_QUICK, _FEWEST_SPANS = 8.0, 5.0  # span [s] of what is slow, and the fewest of them
_LAGS = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # that quick motion may have [s]
_MUCH_WIDER = 2.0  # ratio of errors above which slow motion only spoils
# A second minimum of the misfit nearly as low as the best one: the motion is periodic (delay + period).
_RIVAL_MISFIT = 1.1
_RISE = 1.5  # ratio of the misfit between two minima to the lower one that makes them two
# Improvement of the fit with the opposite sign above which the signs are reported as wrong.
OPPOSITE_MISFIT = 0.5
# Share of the motion that the shifted command must explain; below it, something else or nothing moved the axis.
LEAST_EXPLAINED = 0.9
# Larger readings are corrupt data; their squares would overflow.
_LARGEST_VALUE = 1e9


@dataclass(frozen=True)
class DelayEstimate(Estimate):
    """Effective delay of one channel: dead time + lag where both are identified, else the shift [s]; NaN without a fit.

    Its standard error is from blocks of the residual, since single samples are correlated.
    """

    channel: str = ""  # its name
    gain: float = nan  # motion over command [1]
    residual: float = nan  # RMS of the motion that the shifted command does not explain, in units of the motion
    samples: int = 0  # number of samples used
    fastest: float = 0.0  # largest command in them [unit/s]; the estimate is valid up to it
    dead_time: Estimate | None = None  # time before any motion, with its own verdict; None if it was not requested
    lag: Estimate | None = None  # first-order time constant of the response, likewise
    whiteness: Whiteness | None = None  # of the residual of the model, None if nothing was fitted

    @property
    def effective(self) -> Estimate:
        """The effective delay alone."""
        return Estimate(self.name, self.unit, self.value, self.standard_error, self.interval, self.reason)

    def with_effective(self, one: Estimate) -> DelayEstimate:
        """The same with another effective delay."""
        return replace(
            self, value=one.value, standard_error=one.standard_error, interval=one.interval, reason=one.reason
        )


def estimate_delay(
    command_time: ArrayLike,
    command: ArrayLike,
    measured_time: ArrayLike,
    measured: ArrayLike,
    *,
    model: str = "delay",
    measured_is: str = "velocity",
    channels: Sequence[str] | None = None,
    friction: ArrayLike | None = None,
    longest: float = LONGEST,
) -> tuple[DelayEstimate, ...]:
    """Fit motion(t) = a + g C(t - s) per channel, C the integral of the command held between its samples.

    Least squares over the shift s (sub-sample, since C is exact between samples), offset a and gain g. For a measured
    velocity, C is replaced by its mean slope over one sample interval centred on t. The command before its first sample
    is unknown, so the first `longest` seconds are used only as history; with a constant command no information remains,
    and the verdict says so. The gain is positive, so that half a period of an oscillation is not taken for a delay.
    Every local minimum of the misfit is refined before minima are compared. In 41 s of positions or more, the motion
    without its means over 8 s is fitted as well: what slow errors change is an error, or they are left out.

    Interval: delete-a-block jackknife over 0.8 s blocks of the linearised fit, with Student's t. The part of the
    residual that `friction` explains repeats with the command; it belongs to the effective delay, not to the noise.

    With `model="fopdt"`, dead time and first-order lag are also estimated separately (`fit_fopdt`), if the data allow
    it. Their sum and its interval then replace the shift: that is shorter where the command changes within a lag, by
    some per mille of the delay for positions, and by 0.3 lags for speeds and a step. Where they are not distinguished,
    the interval of the shift reaches the sum that one lag would have. A constant offset between the clocks of command
    and motion adds to the dead time; data that travel in one direction cannot separate the two.

    Args:
        command_time: (n,) when each command was sent [s], increasing.
        command: (n, k) or (n,) commanded velocity of each channel [unit/s]; NaN in rows that lack it.
        measured_time: (m,) stamps [s], increasing.
        measured: (m, k) or (m,) motion of each channel; rows with NaN, infinity or more than 1e9 are left out, of all
            arguments.
        model: "delay" for the effective delay only, or "fopdt" for dead time and lag too.
        measured_is: "velocity" [unit/s] or "position" [unit].
        channels: k names; numbers if not given.
        friction: (n, k) expected friction at each command (any unit), None if unknown.
        longest: largest delay considered [s].

    Returns:
        One estimate per channel.

    Raises:
        InputError: shapes that do not fit, no numbers, times that decrease, or an unknown `model` or `measured_is`.
        IdentificationError: too few samples, or no common time of command and motion.

    Example:
        >>> t = np.arange(0.0, 30.0, 0.02)  # commands, each held for 20 ms: 10 ms late in the mean
        >>> command, motion = (np.sin(1.3 * (t - late)) + np.sin(0.4 * (t - late)) for late in (0.0, 0.2))
        >>> (x,) = yd.estimate_delay(t, command, t, motion)
        >>> round(x.value, 2), x.verdict
        (0.19, 'identified')

    Source: systems 32, 33; document 003, whose estimate cannot be: D-003-3 to D-003-6.
    """
    if not isinstance(measured_is, str) or measured_is not in ("velocity", "position"):
        raise InputError("measured_is", got=excerpt(measured_is), expected="'velocity' or 'position'")
    if not isinstance(model, str) or model not in ("delay", "fopdt"):
        raise InputError("model", got=excerpt(model), expected="'delay' or 'fopdt'")
    longest = positive_time("longest", longest)
    sent, stamps = real("command_time", command_time), real("measured_time", measured_time)
    commands, motions = _columns("command", command, sent), _columns("measured", measured, stamps)
    friction_table = None if friction is None else _columns("friction", friction, sent)
    for name, times in (("command_time", sent), ("measured_time", stamps)):
        _check_order(name, times)
    finite = np.isfinite(stamps)
    stamps, motions = stamps[finite], motions[finite]
    names = [str(k) for k in range(commands.shape[1])] if channels is None else list(channels)
    if not commands.shape[1] == motions.shape[1] == len(names):
        got = f"{commands.shape[1]} commands, {motions.shape[1]} motions and {len(names)} names"
        raise InputError("channels", got=got, expected="equal numbers")
    # Each channel has its own rows: a log may write every command in a row of its own.
    valid = [_plausible(sent, column) for column in commands.T]
    inside = [_covered(sent[rows], stamps, longest) for rows in valid]
    if not any(np.any(rows) for rows in inside):
        known = sent[np.any(valid, axis=0)]
        spans = " and ".join(f"{t[0]:.2f}-{t[-1]:.2f} s" if len(t) else "nothing" for t in (known, stamps))
        raise IdentificationError(
            "delay",
            got=f"command and motion over {spans}",
            expected=f"{_shortest_common_time(longest):g} s or more in common",
            remedy="make a longer recording, with command and motion in one bag",
        )

    made = []
    for k in range(len(names)):
        rows, used = valid[k], inside[k] & _plausible(stamps, motions[:, k])
        tables = (table for table in (commands, friction_table) if table is not None)
        held = [HeldCommand.beside(sent[rows], table[rows, k], stamps[used], measured_is) for table in tables]
        made.append(Channel(stamps[used], motions[used, k], longest, *held))
    # A driver that stops one channel between its commands stops them all, however little the others show it.
    stop = next(filter(None, map(stop_after_commands, made)), None)
    both = model == "fopdt"
    return tuple(_estimate_channel(name, channel, both, stop) for name, channel in zip(names, made, strict=True))


def _shortest_common_time(longest: float) -> float:
    """Shortest time that command and motion of a channel must have in common [s]."""
    return longest + LEAD + _FEWEST_BLOCKS * BLOCK


def _covered(sent: Vector, stamps: Vector, longest: float) -> Flags:
    """Readings (m,) whose commands, sent at (n,) [s], are known for every shift; none if they are too few."""
    none = np.zeros(len(stamps), dtype=bool)
    inside: Flags = (stamps > sent[0] + longest) & (stamps <= sent[-1] - LEAD) if len(sent) else none
    enough = np.count_nonzero(inside) >= _FEWEST and np.ptp(stamps[inside]) >= _FEWEST_BLOCKS * BLOCK
    return inside if enough else none


def _columns(name: str, values: ArrayLike, time: Vector) -> Vector:
    table = real(name, values)
    table = table[:, None] if table.ndim == 1 else table
    if time.ndim != 1 or table.ndim != 2 or len(table) != len(time):
        got = f"shape {table.shape} at times of shape {time.shape}"
        raise InputError(name, got=got, expected="one row for each time", remedy="cut both to the same length")
    return table


def _check_order(name: str, times: Vector) -> None:
    """Raise an InputError that names the row if finite times (n,) decrease."""
    rows = np.flatnonzero(np.isfinite(times))
    decreases = np.flatnonzero(np.diff(times[rows]) < 0.0)
    if len(decreases):
        before, row = rows[decreases[0] : decreases[0] + 2].tolist()
        got = f"a time {times[before] - times[row]:.3g} s before that of row {before}"
        remedy = "sort the rows by time, or cut the recording where its clock jumps"
        raise InputError(f"{name}[{row}]", got=got, expected="times that never decrease", remedy=remedy)


def _plausible(time: Vector, values: Vector) -> Flags:
    """Rows (n,) whose time and value are finite numbers of a plausible size."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(time) & (np.abs(values) < _LARGEST_VALUE))


def _estimate_channel(name: str, channel: Channel, separate: bool, stop: Reason | None) -> DelayEstimate:
    """Delay of a channel, dead time and lag if they are wanted `separate`; none if it may `stop` between commands."""
    command, time = channel.command, channel.time
    recent = command.values[command.times > time[0] - channel.longest] if len(time) else command.values[:0]
    fastest = float(np.max(np.abs(recent), initial=0.0))
    nothing = DelayEstimate(
        f"effective_{name}", "s", nan, nan, (nan, nan), channel=name, samples=len(time), fastest=fastest
    )

    def without_fit(reason: Reason) -> DelayEstimate:
        dead_time, lag = refused(reason) if separate else (None, None)
        return replace(nothing, reason=reason, dead_time=dead_time, lag=lag)

    if len(time) < _FEWEST:
        condition = f"{_shortest_common_time(channel.longest):g} s or more of its commands are known"
        few = f"{len(time)} readings while {condition}; {_FEWEST} are needed"
        return without_fit(Reason(Kind.TOO_LITTLE_DATA, few))
    if np.ptp(recent) <= 1e-9 * max(1.0, fastest):
        return without_fit(CONSTANT)
    if stop is not None:
        return without_fit(stop)
    whole = _best_shift(channel)
    if whole is None:
        return without_fit(CONSTANT_BEFORE)
    shift = _without_slow_errors(channel, whole)
    value, error, residual, reason = shift.value, shift.error, shift.residual, shift.reason
    half_width = student(shift.freedom) * error
    interval = (value - half_width, value + half_width)
    inseparable = reason or (ADDS_UP if _apart(shift, whole) else None)
    dead_time, lag = refused(inseparable) if separate and inseparable else (None, None)
    if separate and not inseparable:
        start = max(0.0, value)
        dead_time, lag, both, residual = _dead_time_and_lag(channel, start)
        if both is not None and dead_time.identified and lag.identified:
            value, error, interval = both.value, both.standard_error, both.interval
            half_width = 0.5 * (interval[1] - interval[0])
        else:
            lagging = _with_lag(channel, value)
            interval = min(interval[0], lagging - half_width), max(interval[1], lagging + half_width)
            error *= 0.5 * (interval[1] - interval[0]) / half_width
            half_width = 0.5 * (interval[1] - interval[0])
    if reason is None:
        value, interval = max(0.0, value), (max(0.0, interval[0]), interval[1])
        unknown = Unknown("delay", "s", resolution=negligible_delay(time))
        reason = judge(unknown, value, error, half_width).reason
    return replace(
        nothing.with_effective(Estimate(nothing.name, "s", value, error, interval, reason)),
        gain=shift.gain,
        residual=rms(shift.residual),
        dead_time=dead_time,
        lag=lag,
        whiteness=whiteness(time, residual),
    )


def _dead_time_and_lag(channel: Channel, start: float) -> Fopdt:
    """Fit of dead time and lag from an effective delay [s] on.

    A speed may be the mean over the step between two readings, which looks like a longer lag, or that at an instant.
    What fits better is used; the intervals hold those of the other, unless it fits much worse.
    """
    command, time, motion = channel.command, channel.time, channel.motion
    fits = [fit_fopdt(command, time, motion, start, channel.friction, channel.longest)]
    if command.half_window > 0.0:
        instant = HeldCommand(command.times, command.values, _INSTANT * command.half_window)
        value = fits[0].dead_time.value + fits[0].lag.value
        fits.append(fit_fopdt(instant, time, motion, value, channel.friction, channel.longest))
    found, *others = sorted(fits, key=lambda fit: rms(fit.residual))
    if found.whole is None:
        return found
    for other in others:
        if other.whole is not None and rms(other.residual) <= _EXCLUDED * rms(found.residual):
            pairs = (found.dead_time, other.dead_time), (found.lag, other.lag), (found.whole, other.whole)
            dead_time, lag, whole = (_holding(*pair, negligible_part(found.whole.value)) for pair in pairs)
            return Fopdt(*identified_together(dead_time, lag), whole, found.residual)
    return found


def _holding(one: Estimate, other: Estimate, negligible: float) -> Estimate:
    """An estimate [s] whose interval holds that of another, judged anew."""
    interval = min(one.interval[0], other.interval[0]), max(one.interval[1], other.interval[1])
    return reaching(one, Unknown(one.name, one.unit, low=0.0, resolution=negligible), interval)


class _Shift(NamedTuple):
    """Shift of the command that explains the motion best."""

    value: float  # [s]
    error: float  # standard error [s]
    freedom: int  # its degrees of freedom
    gain: float  # of the shifted command
    residual: Vector  # (m,) of the motion
    reason: Reason | None  # why the motion does not show a delay, None if it does


def _best_shift(channel: Channel) -> _Shift | None:
    """Shift that fits the motion of a channel best, with its error; None if the command was constant before."""
    command, time, centred, longest = channel.command, channel.time, channel.centred, channel.longest
    total = float(centred @ centred)
    grid = np.arange(-LEAD, longest + _GRID / 2.0, _GRID)
    explained = np.array([channel.explained(centred, shift) for shift in grid.tolist()])
    misfits = total - np.maximum(explained, 0.0)
    minima = _local_minima(lambda shift: total - max(0.0, channel.explained(centred, shift)), grid, misfits)
    value, misfit = min(minima, key=lambda minimum: minimum[1])
    model = channel.quick(command.motion(time - value))
    power = float(np.sum(model**2))
    if power == 0.0:
        return None
    gain = float(model @ centred / power)
    columns = np.column_stack([np.ones(len(time)), model, -gain * channel.quick(command.rate(time - value))])
    residual = centred - gain * model
    noise = _without_friction(residual, columns, channel, time - value)
    covariance, freedom = covariance_in_blocks(columns, noise, time)
    rough = [abs(other - value) for other, left in minima if left <= _RIVAL_MISFIT * misfit]
    error = hypot(float(np.sqrt(covariance[-1, -1])), CLOCK, max(rough, default=0.0))
    reason = None
    if not np.isfinite(error):
        reason = NO_INFORMATION
    elif total + min(0.0, float(np.min(explained))) < OPPOSITE_MISFIT * misfit:
        reason = OPPOSITE
    elif other := _not_shown(channel, centred, minima, (grid, misfits)):
        reason = other
    elif value + student(freedom) * error < 0.0:
        reason = leading(f"{-1e3 * value:.3g} ms")
    elif value >= longest - _GRID:
        reason = search_ended("s", longest)
    return _Shift(value, error, freedom, gain, residual, reason)


def _without_slow_errors(channel: Channel, whole: _Shift) -> _Shift:
    """Shift of quick motion alone, if slow errors spoil that of the `whole` motion; else the latter, with both errors.

    Positions add up what a limit, a slope or a gain that is not constant does to the speed. On long legs that looks
    like a shift, alike in many blocks of the jackknife. Subtracting means over some seconds leaves it out. What half
    that time changes is an error too, and what a lag does: of quick motion, the shift is shorter than dead time + lag.
    """
    if channel.command.half_window > 0.0 or whole.reason or np.ptp(channel.time) < _FEWEST_SPANS * _QUICK:
        return whole
    quick, quicker = (_best_shift(replace(channel, span=span)) for span in (_QUICK, 0.5 * _QUICK))
    if quick is None or quicker is None or quick.reason:
        return whole
    lagging = _with_lag(replace(channel, span=_QUICK), quick.value)
    quick = quick._replace(error=hypot(quick.error, quicker.value - quick.value, lagging - quick.value))
    if _apart(quick, whole) or whole.error > _MUCH_WIDER * quick.error:
        return quick
    return whole._replace(error=hypot(whole.error, quick.value - whole.value))


def _with_lag(channel: Channel, shift: float) -> float:
    """Dead time + lag [s] of the one lag, of some or none, that explains the quick motion best; `shift` is for none."""
    centred = channel.centred

    def misfit(dead_time: float, command: LaggedCommand | HeldCommand) -> float:
        return -channel.explained(centred, dead_time, command)

    found = [(misfit(shift, channel.command), shift)]
    for lag in _LAGS if shift > 0.0 else ():
        bounds = (max(0.0, shift - 2.0 * lag), shift)  # a dead time is not negative
        best = minimize_scalar(misfit, bounds=bounds, args=(LaggedCommand(channel.command, lag),), method="bounded")
        found.append((float(best.fun), float(best.x) + lag))
    return min(found)[1]


def _apart(one: _Shift, other: _Shift) -> bool:
    """Whether two shifts contradict each other."""
    return bool(abs(one.value - other.value) > SIGNIFICANT * np.hypot(one.error, other.error))


def _not_shown(
    channel: Channel, centred: Vector, minima: Sequence[tuple[float, float]], searched: tuple[Vector, Vector]
) -> Reason | None:
    """Why the motion (m,), `centred`, does not show a delay; None if it does.

    `minima` are of `_local_minima`; the misfit was `searched` at shifts (g,), (g,). Minima without a rise between them
    are one, rough at its bottom, as of an axis with a largest speed or acceleration: only others mean a period.
    """
    total = float(centred @ centred)
    value, misfit = min(minima, key=lambda minimum: minimum[1])
    if misfit > (1.0 - LEAST_EXPLAINED) * total:
        share = f"the command explains only {1.0 - misfit / total:.0%} of the motion; {LEAST_EXPLAINED:.0%} is needed"
        return Reason(Kind.UNEXPLAINED, f"{share}: the axis was hardly driven, or something else moved it")
    grid, misfits = searched

    def apart(shift: float) -> bool:
        between = misfits[(grid > min(shift, value)) & (grid < max(shift, value))]
        return bool(np.max(between, initial=0.0) > _RISE * misfit)

    rivals = [shift for shift, other in minima if other <= _RIVAL_MISFIT * misfit and abs(shift - value) > 2.0 * _GRID]
    return PERIODIC if any(map(apart, rivals)) else None


def negligible_delay(stamps: Vector) -> float:
    """Half-width [s] that suffices for any delay of a motion read at (m,) [s]: a quarter of the period."""
    return min(0.25 * usual_step(stamps), _LARGEST)


def _without_friction(residual: Vector, columns: Vector, channel: Channel, query: Vector) -> Vector:
    """Residual (m,) without the part that friction at a few lags explains."""
    if channel.friction is None:
        return residual
    displaced = [channel.quick(channel.friction.held(query - lag)) for lag in _FRICTION_LAGS]
    table = np.column_stack([columns, *displaced])
    norms = np.linalg.norm(table, axis=0)
    table = table[:, norms > 0.0] / norms[norms > 0.0]
    return np.asarray(residual - table @ np.linalg.lstsq(table, residual, rcond=None)[0])


def _local_minima(misfit: Callable[[float], float], grid: Vector, misfits: Vector) -> list[tuple[float, float]]:
    """Refined local minima of a misfit, known on a grid (g,), including its ends: (shift [s], misfit) of each.

    They are refined before the comparison: half a grid step away, the misfit exceeds the noise.
    """
    padded = np.concatenate([[np.inf], misfits, [np.inf]])
    minima = []
    for k in np.flatnonzero((padded[1:-1] <= padded[:-2]) & (padded[1:-1] < padded[2:])).tolist():
        bounds = (float(grid[max(0, k - 1)]), float(grid[min(len(grid) - 1, k + 1)]))
        refined = minimize_scalar(misfit, bounds=bounds, method="bounded", options={"xatol": 1e-7})
        minima.append((float(refined.x), float(refined.fun)))
    return minima or [(float(grid[int(np.argmin(misfits))]), float(misfits.min()))]


def combine(estimates: Sequence[DelayEstimate]) -> DelayEstimate:
    """One estimate of a channel from several recordings: random-effects mean of the identified ones.

    Its interval includes the scatter between the recordings; for a single one, the scatter within it. If none is
    identified, the first refusal is returned. Where dead time and lag are identified, it is by those recordings that
    show both. Dead time and lag are combined in the same way, with intervals that are
    never narrower than those of the recordings: the order of the speed loop is unknown in all of them alike. The
    whiteness is that of the least white residual. There must be at least one estimate.
    """
    identified = [estimate for estimate in estimates if estimate.identified]
    together = (identified or estimates)[0].with_effective(combined(estimates))
    if len(identified) > 1:
        whiteness_tests = [estimate.whiteness for estimate in identified if estimate.whiteness is not None]
        together = replace(
            together,
            gain=float(np.mean([estimate.gain for estimate in identified])),
            residual=float(np.sqrt(np.mean([estimate.residual**2 for estimate in identified]))),
            samples=sum(estimate.samples for estimate in identified),
            fastest=max(estimate.fastest for estimate in identified),
            whiteness=min(whiteness_tests, key=lambda whiteness_test: whiteness_test.uneven_p_value, default=None),
        )
    dead_times = [estimate.dead_time for estimate in estimates if estimate.dead_time is not None]
    lags = [estimate.lag for estimate in estimates if estimate.lag is not None]
    if not dead_times or not lags:
        return together
    dead_time, lag = identified_together(combined(dead_times, systematic=True), combined(lags, systematic=True))
    sums = [one for one in identified if one.dead_time and one.dead_time.identified and one.lag and one.lag.identified]
    if dead_time.identified and sums:
        together = together.with_effective(combined(sums))
    return replace(together, dead_time=dead_time, lag=lag)
