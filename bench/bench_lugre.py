"""LuGre bristle over a second of v = 0.5 cos(2 pi t) at 1 ms: the path exponential beside scipy's LSODA.

Coulomb torque 1 N m, sigma0 = 1e3, 1e4, 1e5 N m/rad. The reference is the solution on each half-wave, in closed form:
v keeps its sign there, so the path law holds from its start to any sample. Accuracy is max |sigma0 (z - z_ref)|.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import odeint, solve_ivp

from bench.harness import AccuracyGoal, Candidate, Goal, Item
from youbot_dynamics.dynamics.lugre import LuGre

TIMES = np.linspace(0.0, 1.0, 1001)  # [s]
SPEEDS = 0.5 * np.cos(2.0 * np.pi * TIMES)  # [rad/s]
POSITIONS = 0.5 * np.sin(2.0 * np.pi * TIMES) / (2.0 * np.pi)  # [rad]
REVERSALS = [250, 750]  # samples
LARGEST_STEP = 0.01  # [s]
OURS = "path exponential"


def closed_form(reach: float) -> NDArray[np.float64]:
    """Bristle at each sample, from the start of its half-wave in one go."""
    z = np.zeros_like(TIMES)
    start = 0
    for end, sign in zip((*REVERSALS, 1000), (1.0, -1.0, 1.0), strict=True):
        path = np.abs(POSITIONS[start : end + 1] - POSITIONS[start])
        z[start : end + 1] = sign * reach + (z[start] - sign * reach) * np.exp(-path / reach)
        start = end
    return z


def _item(sigma0: float, at_least: float) -> Item:
    friction = LuGre(coulomb=1.0, viscous=0.1, sigma0=sigma0, sigma1=0.0)

    def rate(t: float, z: NDArray[np.float64]) -> list[float]:
        v = 0.5 * math.cos(2.0 * math.pi * t)
        return [v - sigma0 * abs(v) * z[0]]

    def by_solve_ivp(tolerance: float) -> NDArray[np.float64]:
        limits = {"rtol": tolerance, "atol": tolerance / sigma0, "max_step": LARGEST_STEP}
        return solve_ivp(rate, (0.0, 1.0), [0.0], "LSODA", TIMES, **limits).y[0]

    def by_odeint(tolerance: float) -> NDArray[np.float64]:
        limits = {"rtol": tolerance, "atol": tolerance / sigma0, "tcrit": TIMES[REVERSALS]}
        return odeint(rate, [0.0], TIMES, tfirst=True, **limits)[:, 0]

    solved = {
        OURS: lambda: friction.follow_positions(0.0, POSITIONS),
        "LSODA 1e-6": lambda: by_solve_ivp(1e-6),
        "LSODA 1e-9": lambda: by_solve_ivp(1e-9),
        "odeint 1e-6, reversals told": lambda: by_odeint(1e-6),
        "odeint 1e-9, reversals told": lambda: by_odeint(1e-9),
    }
    right = closed_form(1.0 / sigma0)
    off = {f"{label} [N m]": float(sigma0 * np.max(np.abs(call() - right))) for label, call in solved.items()}
    candidates = {label: Candidate(call) for label, call in solved.items()}
    candidates["path exponential by linear speeds"] = Candidate(lambda: friction.follow_speeds(0.0, SPEEDS, 1e-3))
    return Item(
        about=f"LuGre bristle, 1 s at 1 ms, sigma0 = {sigma0:g} N m/rad",
        candidates=candidates,
        accuracy=off,
        goals=(
            Goal(OURS, "LSODA 1e-6", at_least),
            Goal(OURS, "LSODA 1e-9", at_least),
            AccuracyGoal(f"{OURS} [N m]", 1e-10),
        ),
        note=f"LSODA: solve_ivp with steps of at most {LARGEST_STEP:g} s; without that limit it steps over the "
        "reversals and is off by 2 N m. odeint is told when they are.",
    )


def _items(prefix: str, at_least: float) -> dict[str, Callable[[], Item]]:
    return {f"{prefix}-{label}": partial(_item, float(label), at_least) for label in ("1e3", "1e4", "1e5")}


ITEMS = _items("lugre", 300.0)
ITEMS_WITHOUT_NUMBA = _items("lugre-plain", 12.0)
