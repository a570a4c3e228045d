"""Largest acceleration and speed that the commands of an axis reach, if its motion shows them.

A limited axis follows its command as if that were limited: first its speed, then its acceleration, as drivers do. A lag
looks a little like a limit of the acceleration where all commands have one size, so a lag with and without a limit are
compared, each at its best. Each limit is found beside the best of the other: a speed limit alone leaves to the lag
what a limited acceleration does. An axis may brake faster or slower than it speeds up, which looks like a dead band.

Source: system 33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Flags, Vector, usual_step
from youbot_dynamics.compiled import compiled
from youbot_dynamics.identification.body._model import Fit, compared, excess_of, left_by
from youbot_dynamics.identification.least_squares import (
    Estimate,
    Kind,
    Reason,
    Unknown,
    judge,
    student,
    undetermined,
)
from youbot_dynamics.identification.signals import HeldCommand

_LIMITS = np.geomspace(0.05, 1.0, 40)  # tested limits, as shares of the largest command
_FIRST = slice(4, 38, 2)  # with each of which a lag is fitted: the best one is narrow
_BRAKING = (0.5, 2.0, 3.0)  # tested ratios of the largest deceleration to the largest acceleration, beside 1
_UNEQUAL = slice(4, 38, 3)  # of the limits tested with them
_PASSES = 4  # of the search for both limits
_SHORT_LAG = 0.05  # [s] at which its search begins
_ACCELERATION_TIME = 0.2  # time over which a commanded acceleration counts [s]
_RAMP_STEP = 0.01  # of a command with limited acceleration [s]
_LEAST_IMPROVEMENT = 4.0  # standard errors by which a limit must improve the fit
_MOST_UNEXPLAINED = 0.5  # largest share of the squares that a limit may leave: overshoot looks a little like a limit


@dataclass(frozen=True)
class Limits:
    """Limits of an axis, the same forward and backward; infinite for none."""

    acceleration: float = inf  # [unit/s2]
    speed: float = inf  # [unit/s]
    braking: float = 1.0  # largest deceleration, as a multiple of the acceleration

    def applied(self, command: HeldCommand) -> HeldCommand:
        """The command as the axis follows it."""
        clipped = _clipped(command, self.speed) if self.speed < inf else command
        return _ramped(clipped, self.acceleration, self.braking) if self.acceleration < inf else clipped


class Limited(NamedTuple):
    """An axis within its limits."""

    fit: Fit
    limits: Limits  # that the motion shows and the fit has
    estimates: list[Estimate]  # largest acceleration and speed
    # Other limits that the data do not exclude: the ends of the interval of an identified one, or the best and the
    # smallest of one that is not identified, each with its kind
    rivals: list[tuple[str, Limits]]
    hides: Reason | None  # why the delay is hidden, None if no limit of the acceleration shows


class _Fits:
    """Fits of the response to a command within limits, each once, with their own delay and lag."""

    def __init__(self, fit: Fit) -> None:
        self.sent, self._first, self._known = fit.command, fit, {Limits(): fit}
        self.accelerations = _largest_acceleration(self.sent) * _LIMITS
        self.speeds = float(np.max(np.abs(self.sent.values))) * _LIMITS

    def of(self, limits: Limits) -> Fit:
        """The fit with some limits."""
        if limits not in self._known:
            late, lag = self._first.delay, self._first.lag
            start = (late, lag) if limits.acceleration == inf else (max(0.5 * late, _SHORT_LAG), _SHORT_LAG)
            self._known[limits] = Fit(limits.applied(self.sent), self._first.readings, start)
        return self._known[limits]

    def with_speeds(self, limits: Limits) -> list[Limits]:
        """The limits with each of the speeds (n,), the last of which is the largest command."""
        return [replace(limits, speed=speed) for speed in (*self.speeds[:-1].tolist(), inf)]

    def with_accelerations(self, limits: Limits) -> list[Limits]:
        """The limits with each of the accelerations (n,), the last of which is the largest of the command."""
        return [replace(limits, acceleration=limit) for limit in (*self.accelerations[:-1].tolist(), inf)]

    def commands(self, limits: Sequence[Limits]) -> list[HeldCommand]:
        """The command within each of the limits (n,)."""
        return [one.applied(self.sent) for one in limits]

    def best(self) -> Limits:
        """Limits of acceleration and speed that together leave least, found in turn from no limit on."""
        limits = Limits()
        for _ in range(_PASSES):
            before, tried = limits, self.with_accelerations(limits)
            tried = [*tried[_FIRST], tried[-1]]
            left = [_squares(self.of(one)) for one in tried]
            tried = self.with_speeds(tried[int(np.argmin(left))])
            beside = self.of(replace(tried[-1], speed=limits.speed))
            limits = tried[int(np.argmin(compared(beside, self.commands(tried))[0]))]
            if limits == before:
                break
        return limits


def limits_of(fit: Fit, quantum: float, unit: str) -> Limited:
    """Fit with the largest acceleration and speed of the axis, where commands exceed them, and these two limits.

    A speed that is held is rounded to a quantum of the readings in the same way every time, which no scatter shows.
    """
    fits = _Fits(fit)
    best = fits.best()

    def speed_limit(beside: Limits) -> tuple[Estimate, list[tuple[str, Limits]]]:
        tried = fits.with_speeds(beside)
        base, found = fits.of(tried[-1]), fits.of(replace(beside, speed=best.speed))
        if _surely_better(base, [found])[0][0]:
            base = found
        rounding = quantum / max(float(base.solved(base.responses(base.command))[0][1]), 1e-9)
        speed, rivals = _limit(base, Unknown("speed", unit, low=0.0), fits.speeds, fits.commands(tried), rounding)
        return speed, [("speed", replace(beside, speed=limit)) for limit in rivals]

    speed, speed_rivals = speed_limit(Limits(best.acceleration))
    limits = Limits(speed=speed.value) if speed.identified else Limits()
    tried = fits.with_accelerations(limits)
    base, least = _with_own_lag(fits, tried)
    unknown = Unknown("acceleration", f"{unit}2", low=0.0)
    acceleration, others = _limit(base, unknown, fits.accelerations, fits.commands(tried), least=least)
    rivals = [("acceleration", replace(limits, acceleration=limit)) for limit in others]
    if acceleration.identified:
        limits = replace(limits, acceleration=acceleration.value)
    elif best.acceleration < inf:  # the speed was found beside an acceleration that does not show
        speed, speed_rivals = speed_limit(Limits())
        limits = Limits(speed=speed.value) if speed.identified else Limits()
    fit = fits.of(limits)
    hides = _EXCEEDED.format(acceleration.value, unit) if acceleration.identified else ""
    unequal, shown = _unequal(fits, limits)
    if shown:
        fit, limits = fits.of(unequal[0]), unequal[0]
        why = _OTHERWISE.format(limits.acceleration, f"{unit}2", limits.braking)
        acceleration = undetermined(unknown, Reason(Kind.OTHER_EXPLANATION, why))
        hides = why
    rivals += [*speed_rivals, *(("acceleration", one) for one in unequal)]
    return Limited(
        fit,
        limits,
        [acceleration, speed],
        [(kind, one) for kind, one in rivals if not _proportional(one.applied(fits.sent), fit.command)],
        Reason(Kind.OTHER_EXPLANATION, f"{hides}, which hides its delay; drive with smaller accelerations")
        if hides
        else None,
    )


_EXCEEDED = "the commands exceeded {:.3g} {}2, the largest acceleration of the axis"
_OTHERWISE = "the axis speeds up by at most about {:.2g} {} and brakes by about {:g} times that"


def _squares(fit: Fit) -> float:
    """Squares that a fit leaves."""
    means = fit.readings.means(left_by(fit, fit.command))
    return float(means @ means)


def _surely_better(fit: Fit, others: Sequence[Fit]) -> tuple[Flags, Vector, float]:
    """Which other fits (n,) leave much less than `fit`, none unless the best of them does so surely.

    Also the excess (n + 1,) of all over the best in standard errors, the last of `fit`, and degrees of freedom.
    """
    squares, excess, freedom = excess_of(fit.readings, [left_by(one, one.command) for one in (*others, fit)])
    better = (squares[:-1] <= _MOST_UNEXPLAINED * squares[-1]) & (excess[-1] >= _LEAST_IMPROVEMENT)
    return better, excess, freedom


def _unequal(fits: _Fits, limits: Limits) -> tuple[list[Limits], bool]:
    """Limits of an axis that brakes otherwise than it speeds up, the best first, and whether the motion shows them.

    It is the best if that fits better than the limits found; where the motion shows it, also those of other ratios that
    fit much better, since the true ratio lies between the tested ones.
    """
    steepest = fits.with_accelerations(limits)[_UNEQUAL]
    tried = [replace(one, braking=braking) for braking in _BRAKING for one in steepest]
    better, excess, _ = _surely_better(fits.of(limits), [fits.of(one) for one in tried])
    best = int(np.argmin(excess[:-1]))
    if not better[best]:
        return ([tried[best]] if excess[best] < excess[-1] else []), False
    each = [k + int(np.argmin(excess[k : k + len(steepest)])) for k in range(0, len(tried), len(steepest))]
    return [tried[best], *(tried[k] for k in each if better[k] and k != best)], True


def _with_own_lag(fits: _Fits, limits: Sequence[Limits]) -> tuple[Fit, int]:
    """The fit with the last of some limits (n,), or with another if with its own lag it surely leaves less.

    Also the number of the smallest limit that with its own lag is not excluded, n - 1 if all are.
    """
    fit, others = fits.of(limits[-1]), [fits.of(one) for one in limits[_FIRST]]
    better, excess, freedom = _surely_better(fit, others)
    best = int(np.argmin(excess[:-1]))
    numbers = (*range(len(limits) - 1)[_FIRST], len(limits) - 1)
    return others[best] if better[best] else fit, numbers[int(np.flatnonzero(excess <= student(freedom))[0])]


def _proportional(first: HeldCommand, second: HeldCommand) -> bool:
    """Whether a command is a multiple of another: a drive at one speed shows the gain at that speed."""
    if len(first.values) != len(second.values):
        return False
    common = float(first.values @ second.values) ** 2
    return common > (1.0 - 1e-9) * float(first.values @ first.values) * float(second.values @ second.values)


def _limit(
    fit: Fit,
    unknown: Unknown,
    limits: Vector,
    commands: Sequence[HeldCommand],
    rounding: float = 0.0,
    least: int | None = None,
) -> tuple[Estimate, tuple[float, ...]]:
    """Largest commanded value that the axis reaches, and other limits that the data do not exclude, see `limits_of`.

    It is one of the limits (n,), the last of which is the largest command. `commands` are those with each of the
    limits. They are compared in the response of `fit`. If another limit is best there, they are
    also compared in the response fitted with it, since delay and lag depend on the limit. `rounding` is the difference
    between two limits that rounded readings may make; the limit with the number `least` is not excluded either.
    """
    squares, excess, freedom = compared(fit, commands)
    admissible, best = np.flatnonzero(excess <= student(freedom)), int(np.argmin(squares))
    better = excess[-1] >= _LEAST_IMPROVEMENT and np.min(squares) <= _MOST_UNEXPLAINED * squares[-1]
    if better and limits[-1] - limits[best] > rounding:
        low = max(0.0, float(limits[admissible[0] - 1]) - 0.5 * rounding) if admissible[0] > 0 else 0.0
        high = float(min(limits[min(admissible[-1] + 1, len(limits) - 1)] + 0.5 * rounding, limits[-1]))
        half_width = 0.5 * (high - low)
        estimate = judge(unknown, low + half_width, half_width / student(freedom), half_width)
        return estimate, (max(low, float(limits[0])), high)  # an axis that is limited to 0 would not move
    kind, why = Kind.NOT_EXCITED, f"the commands never exceeded the largest {unknown.name} of the axis"
    if excess[-1] > student(freedom):
        kind, why = Kind.CONFUSED, "a limit fits better, but not significantly"
    rivals = {int(admissible[0]), best} | ({least} if least is not None else set())
    if best < len(limits) - 1:
        _, excess, freedom = compared(Fit(commands[best], fit.readings, (fit.delay, fit.lag)), commands)
        rivals.add(int(np.flatnonzero(excess <= student(freedom))[0]))
    low = float(limits[min(rivals) - 1]) if min(rivals) > 0 else 0.0
    reason = Reason(kind, f"{why}, at least {low:.3g} {unknown.unit}")
    refused = replace(undetermined(unknown, reason), interval=(low, inf))
    return refused, tuple(float(limits[k]) for k in sorted(rivals) if k < len(limits) - 1)


def _largest_acceleration(command: HeldCommand) -> float:
    times = np.arange(command.times[0], command.times[-1], _RAMP_STEP)
    change = np.abs(command.held(times + _ACCELERATION_TIME) - command.held(times))
    # A command that rises every period may have one rise more within this time.
    return float(np.max(change)) / (_ACCELERATION_TIME + min(usual_step(command.times), _ACCELERATION_TIME))


def _clipped(command: HeldCommand, fastest: float) -> HeldCommand:
    """The command within a largest speed [unit/s]."""
    return HeldCommand(command.times, np.clip(command.values, -fastest, fastest), command.half_window)


def _ramped(command: HeldCommand, steepest: float, braking: float) -> HeldCommand:
    """The command as an axis follows it that accelerates by at most `steepest` [unit/s2], in steps of `_RAMP_STEP`.

    Towards rest it changes by up to `braking` times as much.
    """
    times = np.arange(command.times[0], command.times[-1] + _RAMP_STEP, _RAMP_STEP)
    speeds = _rate_limited(command.held(times), float(command.values[0]), steepest * _RAMP_STEP, braking)
    return HeldCommand(times, speeds, command.half_window)


@compiled
def _rate_limited(goals: Vector, speed: float, largest_change: float, braking: float) -> Vector:
    """Mean speeds (n,) in steps to goals (n,) that change by at most `largest_change`, to rest by `braking` times."""
    speeds = np.empty_like(goals)
    for k in range(len(goals)):
        change = goals[k] - speed
        most = largest_change * braking if change * speed < 0.0 else largest_change
        change = min(max(change, -most), most)
        speeds[k] = speed + 0.5 * change
        speed += change
    return speeds
