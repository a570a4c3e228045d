"""Largest acceleration and speed that the commands of an axis reach, if its motion shows them.

A limited axis follows its command as if that were limited. A lag looks a little like a limit of the acceleration where
all commands have one size, so a lag with and without a limit are compared, each at its best.

Source: system 33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from youbot_dynamics.arrays import Vector, usual_step
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
_SHORT_LAG = 0.05  # [s] at which its search begins
_ACCELERATION_TIME = 0.2  # time over which a commanded acceleration counts [s]
_RAMP_STEP = 0.01  # of a command with limited acceleration [s]
_LEAST_IMPROVEMENT = 4.0  # standard errors by which a limit must improve the fit
_MOST_UNEXPLAINED = 0.5  # largest share of the squares that a limit may leave: overshoot looks a little like a limit


def limits_of(fit: Fit, quantum: float, unit: str) -> tuple[Fit, list[Estimate], list[tuple[str, HeldCommand]]]:
    """Fit with the largest acceleration and speed of the axis, where commands exceed them, and these two limits.

    Also the commands with other limits that the data do not exclude: the ends of the interval of an identified limit,
    or the best and the smallest of a limit that is not identified. Each limit is the same for both directions. A speed
    that is held is rounded to a quantum of the readings in the same way every time, which no scatter shows.
    """
    sent, fastest = fit.command, inf

    def fitted(acceleration: Estimate) -> Fit:
        ramped = _ramped(sent, acceleration.value) if acceleration.identified else sent
        return Fit(_clipped(ramped, fastest), fit.readings, (fit.delay, fit.lag))

    def acceleration_limit() -> tuple[Estimate, tuple[float, ...]]:
        limits = _largest_acceleration(sent) * _LIMITS
        commands = [_clipped(_ramped(sent, limit), fastest) for limit in limits[:-1].tolist()]
        base, least = _with_own_lag(fit, commands)
        return _limit(base, Unknown("acceleration", f"{unit}2", low=0.0), limits, [*commands, fit.command], least=least)

    acceleration, acceleration_rivals = acceleration_limit()
    fit = fitted(acceleration) if acceleration.identified else fit
    ramped = fit.command
    limits = float(np.max(np.abs(ramped.values))) * _LIMITS
    commands = [_clipped(ramped, limit) for limit in limits[:-1].tolist()]
    rounding = quantum / max(float(fit.solved(fit.responses(ramped))[0][1]), 1e-9)
    speed, speed_rivals = _limit(fit, Unknown("speed", unit, low=0.0), limits, [*commands, ramped], rounding)
    if speed.identified:
        fastest = speed.value
        fit = fitted(acceleration)
        if not acceleration.identified:  # a limited speed that the model lacks hides it
            acceleration, acceleration_rivals = acceleration_limit()
            fit = fitted(acceleration) if acceleration.identified else fit
    rivals = [("acceleration", _clipped(_ramped(sent, limit), fastest)) for limit in acceleration_rivals]
    rivals += [("speed", _clipped(ramped, limit)) for limit in speed_rivals]
    return (
        fit,
        [acceleration, speed],
        [(kind, command) for kind, command in rivals if not _proportional(command, fit.command)],
    )


def _with_own_lag(fit: Fit, limited: Sequence[HeldCommand]) -> tuple[Fit, int]:
    """The fit, or that of one of the limited commands (n,) if with its own lag it surely leaves less.

    Also the number of the smallest limit that with its own lag is not excluded, n if all are.
    """
    late = max(0.5 * fit.delay, _SHORT_LAG)
    others = [Fit(command, fit.readings, (late, _SHORT_LAG)) for command in limited[_FIRST]]
    squares, excess, freedom = excess_of(fit.readings, [left_by(one, one.command) for one in (*others, fit)])
    best = int(np.argmin(squares))
    better = excess[-1] >= _LEAST_IMPROVEMENT and squares[best] <= _MOST_UNEXPLAINED * squares[-1]
    numbers = (*range(len(limited))[_FIRST], len(limited))
    return others[best] if better else fit, numbers[int(np.flatnonzero(excess <= student(freedom))[0])]


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


def _ramped(command: HeldCommand, steepest: float) -> HeldCommand:
    """The command as an axis follows it that accelerates by at most `steepest` [unit/s2], in steps of `_RAMP_STEP`."""
    times = np.arange(command.times[0], command.times[-1] + _RAMP_STEP, _RAMP_STEP)
    speeds = _rate_limited(command.held(times), float(command.values[0]), steepest * _RAMP_STEP)
    return HeldCommand(times, speeds, command.half_window)


@compiled
def _rate_limited(goals: Vector, speed: float, largest_change: float) -> Vector:
    """Mean speeds (n,) during steps towards goals (n,) that change `speed` by at most `largest_change`."""
    speeds = np.empty_like(goals)
    for k in range(len(goals)):
        change = min(max(goals[k] - speed, -largest_change), largest_change)
        speeds[k] = speed + 0.5 * change
        speed += change
    return speeds
