"""A linear system behind a transport delay, sampled exactly: held commands on their way are part of its state."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from youbot_dynamics.arrays import Vector, read_only, scalar
from youbot_dynamics.control.lq_problem import matrix
from youbot_dynamics.errors import InputError

# A delay is a whole number of periods if it is one to this part of a period.
_WHOLE = 1e-9


@dataclass(frozen=True, eq=False)
class DelayedSystem:
    """Sampled system xx_{k+1} = A xx_k + B u_k with xx = [x; u_{k-1}; ... u_{k-h}], the h commands still to act.

    Args:
        A: (n + h m, n + h m).
        B: (n + h m, m).
        states: n, those of the system without its delay.
        held: h.
    """

    A: Vector
    B: Vector
    states: int
    held: int


def delayed_system(A: ArrayLike, B: ArrayLike, delay: float, period: float) -> DelayedSystem:
    """Exact samples of x' = A x + B u(t - delay), u held for a period from each sample on.

    delay = (j + f) period with 0 <= f < 1: within a step u_{k-j-1} acts for f, then u_{k-j}; so that j commands are on
    their way, and one more where the delay is no whole number of periods. x_{k+1} = E(T) x_k + E((1-f) T) G(f T)
    u_{k-j-1} + G((1-f) T) u_{k-j} with E(t) = exp(A t), G(t) = int_0^t E(s) ds B.

    Args:
        A: (n, n) [1/s].
        B: (n, m).
        delay: [s], not negative.
        period: T [s], above 0.

    Raises:
        InputError: shapes that do not fit, numbers that are not finite, a negative delay or no period.
    """
    b = matrix("B", B, (None, None))
    n, m = b.shape
    a = matrix("A", A, (n, n))
    late, step = scalar("delay", delay), scalar("period", period)
    if late < 0.0:
        raise InputError("delay", got=f"{late:g} s", expected="0 or more")
    if not step > 0.0:
        raise InputError("period", got=f"{step:g} s", expected="a time above 0")
    whole = floor(late / step + _WHOLE)
    part = max(0.0, late / step - whole)
    if part < _WHOLE:
        part = 0.0
    held = whole + (1 if part else 0)
    early_motion, early_push = _sampled(a, b, part * step)
    late_motion, late_push = _sampled(a, b, (1.0 - part) * step)
    pushes = np.zeros((n, (held + 1) * m))  # by u_k, u_{k-1} ... u_{k-held}
    pushes[:, whole * m : (whole + 1) * m] = late_push
    if part:
        pushes[:, held * m :] = late_motion @ early_push
    size = n + held * m
    moved, steered = np.zeros((size, size)), np.zeros((size, m))
    moved[:n, :n] = late_motion @ early_motion
    moved[:n, n:], steered[:n] = pushes[:, m:], pushes[:, :m]
    if held:
        steered[n : n + m] = np.eye(m)
        moved[n + m :, n:-m] = np.eye((held - 1) * m)
    return DelayedSystem(read_only(moved), read_only(steered), n, held)


def _sampled(a: Vector, b: Vector, time: float) -> tuple[Vector, Vector]:
    """exp(A t) (n, n) and int_0^t exp(A s) ds B (n, m)."""
    n, m = b.shape
    both = np.zeros((n + m, n + m))
    both[:n, :n], both[:n, n:] = a, b
    grown: Vector = expm(both * time)
    return grown[:n, :n], grown[:n, n:]
