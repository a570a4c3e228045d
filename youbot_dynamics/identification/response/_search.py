"""Search for the values of the response within bounds, with a budget of simulations of the drives."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Flags, Indices, Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.driven_base import STATE_SIZE, DrivenBase, follow
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.identification.response._signals import DriveSignals, displacements, span_of
from youbot_dynamics.identification.response._unknowns import (
    CENTRE,
    GAINS,
    HIGH,
    INTEGRAL,
    LAG,
    LOW,
    RATE,
    STEPS,
    TURN,
    priors,
)

_STEP = 4e-3  # time step of the model [s], twice that of a prediction; it changes estimates by a tenth of their error
ARMS = np.array([1.0, 1.0, 0.3])  # [1, 1, m] of the axes: the last converts yaw to a length
_LEAST_NOISE = 0.1  # smallest noise of an axis relative to the largest
_RESOLVED = 1e-5  # RMS residual [m] that no reading resolves: the noise is never taken to be smaller
_SETTLED = 5e-3  # distance of the best values, in standard errors, at which the search ends
_AS_EXPECTED = 0.25  # share of the expected decrease of the misfit below which slopes are computed anew
_LARGEST_DAMPING = 1e8
_OPTIMISM, _PATIENCE = 4.0, 100  # multiple of the expected decrease that may be reached, within these simulations


@dataclass(frozen=True)
class Loops:
    """A kind of speed loops."""

    feed: float  # as in `DrivenBase`
    integral: bool  # PI or P


class Problem:
    """Displacements of model and readings, weighted by the noise of their axis, for the excited unknowns."""

    def __init__(self, drives: Sequence[DriveSignals], dynamics: MecanumDynamics, driven: Flags) -> None:
        self.drives = drives
        self.dynamics = dynamics
        self.driven = driven
        self.friction = (dynamics.wheel_coulomb, dynamics.roller_coulomb, dynamics.viscous_x, dynamics.viscous_y)
        self.centre = float(dynamics.centre_of_mass[0])
        x, y, yaw = driven.tolist()
        coulomb, turning = [True, y or yaw], [yaw and (x or y), yaw and y]
        # In the order of UNKNOWNS: dead times; lag and rate; Coulomb and viscous friction; turn and centre; gains.
        self.free = np.flatnonzero([x, y, yaw, True, True, *coulomb, x, y, *turning, x, y, yaw, True])
        self.spans = [span_of(drive) for drive in drives]
        self.moved = [displacements(drive.poses, span) for drive, span in zip(drives, self.spans, strict=True)]
        self.known = [drive.commands_known(span) for drive, span in zip(drives, self.spans, strict=True)]
        self.readings = max(1.0, float(sum(np.sum(known) for known in self.known)))
        self.span = float(np.mean(self.spans))
        # [m, m, rad] scale of the residuals; infinite for an axis that was not driven
        self.scale = np.where(driven, 1.0 / ARMS, np.inf)

    def excited(self, kind: Loops) -> Indices:
        """Indices (f,) of the unknowns that the drives of a base with loops of this kind depend on."""
        return self.free if kind.integral else self.free[self.free != INTEGRAL]

    def weigh(self, kind: Loops, x: Vector) -> None:
        """Set the weights of the axes from the residuals of a kind of loops at a first solution (15,)."""
        self.scale = np.ones(3)
        rms = np.sqrt(np.sum(self.stacked(kind, x).reshape(-1, 3) ** 2, axis=0) / self.readings)
        # An axis that hardly moved has little noise, but still has model errors.
        largest = float(np.max(rms[self.driven] * ARMS[self.driven]))
        scale = np.maximum(rms, _LEAST_NOISE * largest / ARMS) if largest > 0.0 else 1.0 / ARMS
        self.scale = np.where(self.driven, scale, np.inf)

    def stacked(self, kind: Loops, x: Vector) -> Vector:
        """Measured minus modelled displacements (r,) of all drives, in the body frame, over the scale of their axis."""
        constants = base_of(x, kind, self.dynamics).constants
        parts = []
        for drive, known, moved in zip(self.drives, self.known, self.moved, strict=True):
            poses, residual = np.zeros((len(drive.stamps), 3)), np.empty_like(moved)
            twists = np.ascontiguousarray(drive.twists * x[GAINS])
            begin, end, state = float(drive.sent[0]), float(drive.stamps[-1]) + _STEP, np.zeros(STATE_SIZE)
            follow(constants, state, begin, end, _STEP, drive.sent, twists, drive.stamps, poses)
            _write_residual(moved, poses, known, self.scale, residual)
            parts.append(residual.ravel())
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def squares(self, residual: Vector) -> Vector:
        """Sums (3,) of the squared residuals of x, y, yaw [m2, m2, rad2], 0 for an axis that was not driven."""
        sums, driven = np.zeros(3), self.driven
        sums[driven] = np.sum(residual.reshape(-1, 3)[:, driven] ** 2, axis=0) * self.scale[driven] ** 2
        return sums

    def noise(self, misfit: float) -> float:
        """Variance of independent residuals [1] for a sum of squared residuals; never less than readings resolve."""
        resolved = self.readings * float(np.sum((_RESOLVED / ARMS / self.scale) ** 2))
        return self.span * max(misfit, resolved) / (3.0 * self.readings)


@compiled
def _write_residual(moved: Vector, poses: Vector, known: Vector, scale: Vector, residual: Vector) -> None:
    """Write measured displacements (k, 3) minus those between poses (k + span, 3), where known, over their scale."""
    span = len(poses) - len(moved)
    for k in range(len(moved)):
        x, y = poses[k + span, 0] - poses[k, 0], poses[k + span, 1] - poses[k, 1]
        c, s = np.cos(poses[k, 2]), np.sin(poses[k, 2])
        residual[k, 0] = (moved[k, 0] - (c * x + s * y)) * known[k] / scale[0]
        residual[k, 1] = (moved[k, 1] - (c * y - s * x)) * known[k] / scale[1]
        residual[k, 2] = (moved[k, 2] - (poses[k + span, 2] - poses[k, 2])) * known[k] / scale[2]


def base_of(x: Vector, kind: Loops, dynamics: MecanumDynamics) -> DrivenBase:
    """Model with the values (15,)."""
    adjusted = dataclasses.replace(
        dynamics,
        wheel_coulomb=x[5],
        roller_coulomb=x[6],
        viscous_x=x[7],
        viscous_y=x[8],
        centre_of_mass=(float(x[CENTRE]), dynamics.centre_of_mass[1]),
    )
    return DrivenBase(adjusted, x[:3], float(x[LAG]), float(x[RATE]), float(x[TURN]), float(x[INTEGRAL]), kind.feed)


@dataclass(frozen=True, eq=False)
class Solution:
    """End of a search."""

    values: Vector  # (15,)
    residual: Vector  # (r,) of the values
    simulations: int  # used
    settled: bool  # whether the values are the best ones; else the search was stopped before


def search(
    problem: Problem, kind: Loops, start: Vector, free: Indices, budget: int, worst: float = math.inf
) -> Solution:
    """Levenberg-Marquardt from `start` (15,) for the `free` unknowns (f,), in at most `budget` simulations.

    After a step, Broyden's (1965) rank-one update corrects the slopes; they are computed anew where they no longer
    help. The search ends where the linear model expects a decrease of the misfit by less than that of a two-hundredth
    of a standard error, or no step decreases it. It is stopped where the sum of the logarithms of `Problem.squares`
    will hardly fall below `worst`.
    """
    low, high = LOW[free], HIGH[free]
    x = start.copy()
    x[free] = np.clip(start[free], low, high)
    residual, damping = problem.stacked(kind, x), 1e-3
    simulations, fresh, renew = 1, False, True
    slopes = np.zeros((len(residual), len(free)))
    while True:
        if renew:
            if simulations + len(free) > budget:
                return Solution(x, residual, simulations, False)
            slopes, fresh = slopes_of(problem, kind, x, residual, free), True
            simulations += len(free)
            if not np.any(slopes) or not np.all(np.isfinite(slopes)):
                break  # at rest while the commands are known, or an unbounded motion
        misfit = float(residual @ residual)
        noise = problem.noise(misfit)
        prior_residual, prior_slopes = priors(x, problem.centre)
        prior_slopes = prior_slopes[:, free]
        normal = slopes.T @ slopes + noise * prior_slopes.T @ prior_slopes
        moment = slopes.T @ residual + noise * prior_slopes.T @ prior_residual
        misfit += noise * float(prior_residual @ prior_residual)
        scale = np.diag(normal) + 1e-12 * np.max(np.diag(normal))
        least = _SETTLED**2 * noise
        change = _bounded_step(normal + 1e-9 * np.diag(scale), moment, low - x[free], high - x[free])
        reachable = -float(change @ (2.0 * moment + normal @ change))
        decrease = 0.0
        remaining = 1.0 if simulations > _PATIENCE else 1.0 - _OPTIMISM * reachable / max(misfit, 1e-300)
        if fresh and remaining > 0.0:
            squares = problem.squares(residual)[problem.driven] * remaining
            if np.sum(np.log(np.maximum(squares, 1e-300))) > worst:
                return Solution(x, residual, simulations, False)
        if reachable > least:
            growth = 4.0
            while damping < _LARGEST_DAMPING:
                if simulations == budget:
                    return Solution(x, residual, simulations, False)
                change = _bounded_step(normal + damping * np.diag(scale), moment, low - x[free], high - x[free])
                trial = x.copy()
                trial[free] = np.clip(x[free] + change, low, high)
                trial_residual = problem.stacked(kind, trial)
                trial_prior = priors(trial, problem.centre)[0]
                simulations += 1
                decrease = misfit - float(trial_residual @ trial_residual) - noise * float(trial_prior @ trial_prior)
                if decrease > 0.0 or not fresh:
                    break
                damping, growth = damping * growth, 2.0 * growth
        if decrease > 0.0:
            step = trial[free] - x[free]
            as_expected = decrease > -_AS_EXPECTED * float(step @ (2.0 * moment + normal @ step))
            missed = trial_residual - residual - slopes @ step
            slopes = slopes + np.outer(missed, scale * step) / float(step @ (scale * step))
            x, residual = trial, trial_residual
            damping = max(damping / 5.0, 1e-9)
        if fresh and decrease <= least:
            break
        renew = decrease <= least or not as_expected
        fresh = False
    return Solution(x, residual, simulations, True)


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


def slopes_of(problem: Problem, kind: Loops, x: Vector, residual: Vector, unknowns: Indices) -> Vector:
    """Slopes (r, f) of a residual (r,) over some unknowns, at values (15,)."""
    columns = np.empty((len(residual), len(unknowns)))
    for column, k in enumerate(unknowns.tolist()):
        moved = x.copy()
        size = STEPS[k] if x[k] + STEPS[k] <= HIGH[k] else -STEPS[k]
        moved[k] += size
        columns[:, column] = (problem.stacked(kind, moved) - residual) / size
    return columns
