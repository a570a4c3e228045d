"""Currents of motors from message to message, summed up for the slow heat filters: compiled code for `motor_heat`."""

from __future__ import annotations

import math

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled

LAST, BEGUN = range(2)  # places of the clock (2,): stamp of the last message, begin of the sum [s]


@compiled
def gather(
    stamps: Vector, currents: Vector, period: float, clock: Vector, current: Vector, charge: Vector
) -> tuple[int, bool]:
    """Sum up i^2 over messages until a period is full; a current runs straight from message to message.

    Args:
        stamps: (t,) [s]; one not after the last changes nothing.
        currents: (t, n) [A]; where one is NaN, the last goes on.
        period: [s].
        clock: (2,) changed, see LAST.
        current: (n,) of the last message [A], changed.
        charge: (n,) integral of i^2 [A^2 s], changed.

    Returns:
        Number of messages taken, and whether the period is full.
    """
    for t in range(len(stamps)):
        elapsed = stamps[t] - clock[LAST]
        if not elapsed > 0.0:
            continue
        for i in range(len(current)):
            before, now = current[i], currents[t, i]
            if not math.isfinite(now):
                now = before
            charge[i] += elapsed * (before * before + before * now + now * now) / 3.0
            current[i] = now
        clock[LAST] = stamps[t]
        if clock[LAST] - clock[BEGUN] >= period:
            return t + 1, True
    return len(stamps), False


@compiled
def average(elapsed: Vector, currents: Vector, time_constant: float, squares: Vector, weights: Vector) -> None:
    """Let an average of i^2 forget and learn over messages; a NaN changes nothing.

    Args:
        elapsed: (t,) since the message before [s].
        currents: (t, n) [A].
        time_constant: of forgetting [s].
        squares: (n,) changed; over weights it is the average [A^2].
        weights: (n,) changed [1].
    """
    for t in range(len(elapsed)):
        fading = -math.expm1(-elapsed[t] / time_constant)
        for i in range(len(squares)):
            now = currents[t, i]
            if math.isfinite(now):
                squares[i] += fading * (now * now - squares[i])
                weights[i] += fading * (1.0 - weights[i])
