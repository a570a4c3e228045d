"""Searches for the values of a nonlinear model, within bounds and a budget, and its linearisation for `least_squares`.

`search` is scipy's trust-region method. `search_costly` is for models that take long to evaluate, that have priors, or
whose bounds depend on each other: after a step it corrects the slopes instead of computing them anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.identification.least_squares._block_sums import Rows

_AS_EXPECTED = 0.25  # share of the expected decrease of the misfit below which slopes are computed anew
_LARGEST_DAMPING = 1e8
_OPTIMISM, _PATIENCE = 4.0, 100  # multiple of the expected decrease that may be reached, within these evaluations


@dataclass(frozen=True, eq=False)
class Searched:
    """End of a search."""

    values: Vector  # (p,)
    residual: Vector  # (r,) of the values
    evaluations: int  # of the residual, used
    settled: bool  # whether the values are the best ones; else the search was stopped before


def search(
    residual: Callable[[Vector], Vector],
    starts: Sequence[Vector],
    bounds: tuple[Vector, Vector],
    budget: int,
    scale: float = 1.0,
) -> Searched:
    """Values (p,) with the smallest sum of squared residuals (r,): the best from several starts (p,).

    Args:
        residual: of values (p,).
        starts: at least one; moved within the bounds.
        bounds: lowest and highest values, (p,) each.
        budget: evaluations of the residual from each start, without those for slopes.
        scale: of a change of any value that matters.
    """
    from scipy.optimize import least_squares  # only here: every reader of a bag would need 40 MB more

    found = [
        least_squares(residual, np.clip(start, *bounds), x_scale=scale, bounds=bounds, max_nfev=budget)
        for start in starts
    ]
    best = min(found, key=lambda one: float(one.cost))
    return Searched(best.x, best.fun, best.nfev, best.status > 0)


def slopes_of(
    residual: Callable[[Vector], Vector],
    values: Vector,
    steps: Vector,
    at: Vector | None = None,
    high: Vector | float = math.inf,
) -> Vector:
    """Slopes (r, q) of a residual (r,) over the q of the values (p,) with a step, by differences; steps (p,) or 0.

    They are central or, for half the evaluations, from the residual `at` the values on: down where a step up would
    exceed `high` (p,).
    """
    columns, up = [], np.where(values + steps <= high, 1.0, -1.0)
    for k in np.flatnonzero(steps).tolist():
        change = np.zeros(len(values))
        change[k] = step = float(steps[k] * (up[k] if at is not None else 1.0))
        after = residual(values + change)
        columns.append((after - residual(values - change)) / (2.0 * step) if at is None else (after - at) / step)
    return np.column_stack(columns)


def rows_of(
    slopes: Vector, target: Vector, times: Sequence[Vector], block: float, recordings: Sequence[int] | None = None
) -> list[Rows]:
    """Rows of a linearised model, of each recording: slopes (r, p) and target (r,), stacked as the times (m,) [s].

    `block` [s] is that of `Rows`, `recordings` are the numbers of the recordings, 0, 1 and so on if None.
    """
    ends = np.cumsum([len(part) for part in times])[:-1]
    parts = zip(times, np.split(slopes, ends), np.split(target, ends), recordings or range(len(times)), strict=True)
    return [Rows(time, table, wanted, recording=number, block=block) for time, table, wanted, number in parts]


def _no_priors(values: Vector) -> tuple[Vector, Vector]:
    return np.zeros(0), np.zeros((0, len(values)))


@dataclass(frozen=True, eq=False)
class Model:
    """Model of p unknowns for `search_costly`."""

    residual: Callable[[Vector], Vector]  # (r,) of values (p,)
    slopes: Callable[[Vector, Vector, Indices], Vector]  # (r, f) at values with a residual, over some unknowns
    low: Vector  # (p,) bounds of the search
    high: Vector
    noise: Callable[[float], float]  # variance of an independent residual, of the sum of squared residuals
    settled: float  # distance of the best values, in standard errors, at which the search ends
    # Residuals (k,) of values (p,) to their priors, in standard deviations, and their slopes (k, p)
    priors: Callable[[Vector], tuple[Vector, Vector]] = _no_priors
    # Whether a residual stays too large although this share of its squares is all that will remain
    hopeless: Callable[[Vector, float], bool] = lambda residual, remaining: False
    feasible: Callable[[Vector], Vector] = lambda values: values  # nearest values, where bounds depend on each other


class _Expansion(NamedTuple):
    """Misfit about some values, with the priors: misfit + 2 moment's + s'normal s for a step s (f,) of the free."""

    misfit: float
    noise: float  # variance of an independent residual
    moment: Vector  # (f,)
    normal: Vector  # (f, f)

    @classmethod
    def of(cls, model: Model, values: Vector, residual: Vector, slopes: Vector, free: Indices) -> _Expansion:
        """Expansion about values (p,) with a residual (r,) and slopes (r, f) of it."""
        misfit = float(residual @ residual)
        noise = model.noise(misfit)
        from_priors, prior_slopes = model.priors(values)
        prior_slopes = prior_slopes[:, free]
        return cls(
            misfit + noise * float(from_priors @ from_priors),
            noise,
            slopes.T @ residual + noise * prior_slopes.T @ from_priors,
            slopes.T @ slopes + noise * prior_slopes.T @ prior_slopes,
        )

    def expected(self, step: Vector) -> float:
        """Decrease of the misfit by a step (f,)."""
        return -float(step @ (2.0 * self.moment + self.normal @ step))


def search_costly(model: Model, start: Vector, free: Indices, budget: int) -> Searched:
    """Levenberg-Marquardt from `start` (p,) for the `free` unknowns (f,), in at most `budget` evaluations.

    After a step, Broyden's (1965) rank-one update corrects the slopes; they are computed anew where they no longer
    help. The search ends where the linear model expects a decrease of the misfit that is less than that of
    `model.settled`, or no step decreases it.
    """
    low, high = model.low[free], model.high[free]
    x = start.copy()
    x[free] = np.clip(start[free], low, high)
    residual, damping = model.residual(x), 1e-3
    evaluations, fresh, renew = 1, False, True
    slopes = np.zeros((len(residual), len(free)))
    while True:
        if renew:
            if evaluations + len(free) > budget:
                return Searched(x, residual, evaluations, False)
            slopes, fresh = model.slopes(x, residual, free), True
            evaluations += len(free)
            if not np.any(slopes) or not np.all(np.isfinite(slopes)):
                break  # nothing moves the model, or it is unbounded
        about = _Expansion.of(model, x, residual, slopes, free)
        scale = np.diag(about.normal) + 1e-12 * np.max(np.diag(about.normal))
        room, least = (low - x[free], high - x[free]), model.settled**2 * about.noise
        reachable = about.expected(_bounded_step(about.normal + 1e-9 * np.diag(scale), about.moment, *room))
        remaining = 1.0 if evaluations > _PATIENCE else 1.0 - _OPTIMISM * reachable / max(about.misfit, 1e-300)
        if fresh and remaining > 0.0 and model.hopeless(residual, remaining):
            return Searched(x, residual, evaluations, False)
        decrease, growth = 0.0, 4.0
        while reachable > least and damping < _LARGEST_DAMPING:
            if evaluations == budget:
                return Searched(x, residual, evaluations, False)
            trial = x.copy()
            trial[free] += _bounded_step(about.normal + damping * np.diag(scale), about.moment, *room)
            trial[free] = np.clip(trial[free], low, high)
            trial = model.feasible(trial)
            trial_residual, trial_priors = model.residual(trial), model.priors(trial)[0]
            evaluations += 1
            with np.errstate(over="ignore"):  # a trial may be far beyond what a light robot can stand: it is no better
                misfit = float(trial_residual @ trial_residual)
            decrease = about.misfit - misfit - about.noise * float(trial_priors @ trial_priors)
            if decrease > 0.0 or not fresh:
                break
            damping, growth = damping * growth, 2.0 * growth
        if decrease > 0.0:
            step = trial[free] - x[free]
            as_expected = decrease > _AS_EXPECTED * about.expected(step)
            missed = trial_residual - residual - slopes @ step
            slopes = slopes + np.outer(missed, scale * step) / float(step @ (scale * step))
            x, residual = trial, trial_residual
            damping = max(damping / 5.0, 1e-9)
        if fresh and decrease <= least:
            break
        renew = decrease <= least or not as_expected
        fresh = False
    return Searched(x, residual, evaluations, True)


def _bounded_step(normal: Vector, moment: Vector, low: Vector, high: Vector) -> Vector:
    """Step s (f,) from `low` to `high` for which 2 moment's + s'normal s is least, normal (f, f) positive definite.

    On the way to the solution, an unknown that reaches a bound stays there, and the others are solved for again.
    """
    step, inside = np.zeros(len(moment)), np.ones(len(moment), dtype=bool)
    while np.any(inside):
        target = -moment[inside] - normal[np.ix_(inside, ~inside)] @ step[~inside]
        way = np.zeros(len(moment))
        way[inside] = np.linalg.solve(normal[np.ix_(inside, inside)], target) - step[inside]
        room = np.where(way > 0.0, high, low) - step
        share = np.divide(room, way, out=np.ones(len(way)), where=np.abs(way) > np.abs(room))
        step += np.min(share) * way
        if np.min(share) == 1.0:
            break
        inside &= share > np.min(share)
    return step
