"""Response of a base to commanded twists, by output error: dead times, lag, and the droop caused by friction.

`dynamics/driven_base` simulates the recorded commands, and its parameters are fitted so that its poses match the
measured ones. Equation errors would need derivatives of noisy poses. A pure delay model takes friction for delay: on a
slow youBot, friction reduces the motion by 10 mm and more.

Slow drift (slip, varying friction, geometry errors) is not part of the response. Therefore displacements within half a
second are compared instead of poses, and each axis has its own gain.

Four kinds of speed loops are fitted: P or PI, with feedforward torque for the acceleration or a servo on each wheel.
Schwarz's criterion selects one. Priors about the configured values, each as strong as one reading with the deviation of
the prior, stabilise what a drive hardly excites; a value that still ends at a bound is set back to its prior.

Source: system 33.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Flags, Indices, Vector, array
from youbot_dynamics.dynamics.driven_base import STATE_SIZE, DrivenBase, follow
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.delay import negligible_part
from youbot_dynamics.identification.least_squares import (
    BlockSums,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    Rows,
    accumulate,
    fit,
    judge,
    merge,
    undetermined,
    widened,
)
from youbot_dynamics.identification.response._signals import DriveSignals, displacements, has_enough_data, span_of
from youbot_dynamics.identification.response._unknowns import (
    CENTRE,
    DISTURBED,
    FEED,
    GAINS,
    HIGH,
    INNER,
    INTEGRAL,
    LAG,
    LOW,
    NO_INTEGRAL,
    RATE,
    STEPS,
    TOGETHER,
    TURN,
    UNKNOWNS,
    VALUES,
    priors,
    reset_at_bounds,
    value_at_bound,
)

_STEP = 4e-3  # time step of the model [s], twice that of a prediction; it changes estimates by a tenth of their error
_LONGEST_BLOCK, _SHORTEST_BLOCK, _BLOCKS = 2.0, 0.5, 40  # [s], [s], desired number
_FIRST_ROUNDS, _ROUNDS = 5, 25
_CONVERGED = 1e-7  # relative change of the misfit at which the search ends
_WORTHWHILE = 1e-4  # the same below which slopes are computed anew
_ARMS = np.array([1.0, 1.0, 0.3])  # [1, 1, m] of the axes: the last converts yaw to a length
_LEAST_NOISE = 0.1  # smallest noise of an axis relative to the largest
_LAGS = (0.01, 0.03, 0.06)  # start values of the search [s]
_DRIVEN = 0.05  # [m, m, rad] commanded motion of an axis below which it is not fitted
_RULED_OUT = 30.0  # difference of Schwarz's criterion that rules a kind out: about 1 to 150 by the cautious one
_WORST_MISFIT = 0.1  # relative misfit of the displacements above which the model is rejected

_FEW_POSES = Reason(Kind.TOO_LITTLE_DATA, "too few poses while commands were sent")
_NOT_MOVED = Reason(Kind.NOT_EXCITED, "the commands never moved the robot")
_AT_REST = Reason(Kind.NOT_EXCITED, "the base never moved")
_ALIKE = Reason(Kind.CONFUSED, "these drives do not distinguish it from the others")
_SELECTED = Reason(
    Kind.NOT_OF_THE_ROBOT, "this is the kind of speed loops with the smallest residuals, not a fitted value"
)
_OTHER_LOOPS = Reason(
    Kind.OTHER_EXPLANATION, "another kind of speed loops, which these drives do not rule out, gives another value"
)
_DIFFERENT = Reason(
    Kind.UNEXPLAINED, "no kind of speed loops explains all recordings: they are of different robots, or wheels slip"
)


@dataclass(frozen=True)
class _Kind:
    """A kind of speed loops."""

    feed: float  # as in `DrivenBase`
    integral: bool  # PI or P


_KINDS = tuple(_Kind(feed, integral) for feed in (1.0, 0.0) for integral in (False, True))
_FIRST = _Kind(1.0, True)  # the search starts with this kind
_SLOW_INTEGRAL = 0.2


@dataclass(frozen=True, eq=False)
class Candidate:
    """Fit of one kind of loops to some recordings."""

    kind: _Kind
    values: Vector  # (15,) of the unknowns
    free: Indices  # indices of the fitted unknowns
    held: dict[int, Reason]  # indices of excited unknowns that were not fitted, and why
    sums: BlockSums  # of the problem linearised about the values
    misfit: float  # sum of squared residuals, each divided by the scale of its axis [1]
    squares: Vector  # (3,) the same of x, y, yaw [m2, m2, rad2]
    readings: float  # number of displacements used, three residuals each
    span: float  # number of readings within the time of a displacement; this many neighbours are dependent

    @property
    def noise(self) -> float:
        """Variance of independent residuals [1]."""
        return self.span * self.misfit / (3.0 * self.readings)

    @property
    def criterion(self) -> float:
        """Schwarz's criterion: sum over the axes of n ln(variance), plus p ln(3 n), n independent residuals each."""
        n, logarithms, count = self._terms()
        return n * float(np.sum(logarithms)) + count * math.log(3.0 * n)

    @property
    def cautious(self) -> float:
        """The criterion where errors of time act on all axes together: the residuals of an instant count as one."""
        n, logarithms, count = self._terms()
        return n * float(np.mean(logarithms)) + count * math.log(n)

    def _terms(self) -> tuple[float, Vector, int]:
        """Independent instants, logarithms of the variances of the driven axes, and number of unknowns.

        All unknowns that a kind may fit count, also those that ended at a bound.
        """
        count = len(self.free) + len(self.held) - (0 if self.kind.integral else 1)
        return max(2.0, self.readings / self.span), np.log(self.squares[self.squares > 0.0]), count


@dataclass(frozen=True, eq=False)
class Response:
    """Identified response of a base."""

    estimates: tuple[Estimate, ...]  # dead times, lag, rate, friction as seen by the loops, gains
    base: DrivenBase | None = None  # the model with these values; None if there is no fit
    # Linearised fit of all unknowns: intervals, correlation; None if there was nothing to fit
    fit: Fit | None = None
    # RMS residual (3,) of the displacements over half a second [m, m, rad]
    residual: Vector = dataclasses.field(default_factory=lambda: np.full(3, math.nan))
    # Whether all values together predict the motion: the effect of their covariance on a displacement is smaller than
    # the residual of the model
    usable: bool = False
    candidates: tuple[Candidate, ...] = ()  # one per kind of loops
    problem: _Problem | None = None  # of the drives, for `combined_response`

    def __getitem__(self, name: str) -> Estimate:
        """Estimate by its name."""
        return {estimate.name: estimate for estimate in self.estimates}[name]


def identify_response(drives: Sequence[DriveSignals], dynamics: MecanumDynamics, delays: ArrayLike) -> Response:
    """Identify dead times, lag, rate and friction for which the poses of the model match the measured ones.

    Levenberg-Marquardt on the displacements over half a second, from several start lags; intervals from blocks of 2 s
    of the linearised problem. Viscous friction looks like a longer lag, and a short lag like dead time: single values
    may be undetermined while all together predict the motion well. `usable` states whether they do.

    Args:
        drives: signals, each recording with its own number.
        dynamics: inertia and kinematics of the base; its friction is the start value.
        delays: (3,) effective delays of x, y, yaw [s], also start values.

    Returns:
        Estimates with verdicts; axes that were not driven are refused, and all of them if nothing fits.
    """
    first = array("delays", delays, (3,))
    useful = [drive for drive in drives if has_enough_data(drive)]
    if not useful:
        return _refused(_FEW_POSES)
    distance = sum(np.abs(np.diff(drive.sent)) @ np.abs(drive.twists[:-1]) for drive in useful)
    if not np.any(distance > _DRIVEN):
        return _refused(_NOT_MOVED)
    problem = _Problem(useful, dynamics, np.asarray(distance > _DRIVEN))
    starts = [
        np.array(
            [*np.maximum(first - lag, 0.02), lag, 0.5 / lag, *problem.friction, 1.0, problem.centre, 1.0, 1.0, 1.0, 1.0]
        )
        for lag in _LAGS
    ]
    solutions = [_search(problem, _FIRST, start, _FIRST_ROUNDS) for start in starts]
    initial = min(solutions, key=lambda x: float(np.sum(problem.stacked(1.0, x) ** 2)))
    problem.weigh(initial)
    candidates, reasons = list[Candidate](), dict[_Kind, Reason]()
    for kind in _KINDS:
        starts = [_start_of(kind, initial)]
        if kind.integral and candidates and candidates[-1].kind.feed == kind.feed:
            # A slow integral action is closer to none than to that of critically damped loops.
            starts.append(candidates[-1].values.copy())
            starts[-1][INTEGRAL] = _SLOW_INTEGRAL
        results = [_fitted(problem, kind, start) for start in starts]
        fitted = [result for result in results if isinstance(result, Candidate)]
        reasons.update((kind, result) for result in reversed(results) if isinstance(result, Reason))
        candidates += [min(fitted, key=lambda candidate: candidate.criterion)] if fitted else []
    return _selected(tuple(candidates), problem) if candidates else _refused(reasons[_FIRST])


class _Problem:
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
        self.scale = np.where(driven, 1.0 / _ARMS, np.inf)

    def weigh(self, x: Vector) -> None:
        """Set the weights of the axes from the residuals of the first kind of loops at a first solution (15,)."""
        self.scale = np.ones(3)
        rms = np.sqrt(np.sum(np.concatenate(self.residuals(_FIRST.feed, x)) ** 2, axis=0) / self.readings)
        # An axis that hardly moved has little noise, but still has model errors.
        largest = float(np.max(rms[self.driven] * _ARMS[self.driven]))
        scale = np.maximum(rms, _LEAST_NOISE * largest / _ARMS) if largest > 0.0 else 1.0 / _ARMS
        self.scale = np.where(self.driven, scale, np.inf)

    def residuals(self, feed: float, x: Vector) -> list[Vector]:
        """Measured minus modelled displacement (k, 3) of each drive in the body frame, over the scale of its axis."""
        base = _base_of(x, feed, self.dynamics)
        parts = []
        for drive, span, known, moved in zip(self.drives, self.spans, self.known, self.moved, strict=True):
            poses = np.zeros((len(drive.stamps), 3))
            twists = np.ascontiguousarray(drive.twists * x[GAINS])
            begin, end, state = float(drive.sent[0]), float(drive.stamps[-1]) + _STEP, np.zeros(STATE_SIZE)
            follow(base.constants, state, begin, end, _STEP, drive.sent, twists, drive.stamps, poses)
            parts.append((moved - displacements(poses, span)) * known[:, None] / self.scale)
        return parts

    def stacked(self, feed: float, x: Vector) -> Vector:
        """All residuals (r,)."""
        return np.concatenate([part.ravel() for part in self.residuals(feed, x)])


def _base_of(x: Vector, feed: float, dynamics: MecanumDynamics) -> DrivenBase:
    """Model with the values (15,)."""
    adjusted = dataclasses.replace(
        dynamics,
        wheel_coulomb=x[5],
        roller_coulomb=x[6],
        viscous_x=x[7],
        viscous_y=x[8],
        centre_of_mass=(float(x[CENTRE]), dynamics.centre_of_mass[1]),
    )
    return DrivenBase(adjusted, x[:3], float(x[LAG]), float(x[RATE]), float(x[TURN]), float(x[INTEGRAL]), feed)


def _search(problem: _Problem, kind: _Kind, start: Vector, rounds: int, free: Indices | None = None) -> Vector:
    """Levenberg-Marquardt solution (15,) within the bounds for the `free` unknowns; default: all.

    An unknown at a bound that the gradient pushes outwards stays there, and the others are solved for without it. After
    a step, Broyden's (1965) rank-one update corrects the slopes; they are computed anew where they no longer help.
    """
    free = problem.free if free is None else free
    low, high = LOW[free], HIGH[free]
    x = start.copy()
    x[free] = np.clip(start[free], low, high)
    residual, damping = problem.stacked(kind.feed, x), 1e-3
    for _ in range(rounds):
        slopes, updated = _slopes(problem, kind, x, residual, free), False
        if not np.any(slopes) or not np.all(np.isfinite(slopes)):
            break  # at rest while the commands are known, or an unbounded motion
        while True:
            misfit = float(residual @ residual)
            noise = problem.span * misfit / (3.0 * problem.readings)
            prior_residual, prior_slopes = priors(x, problem.centre)
            prior_slopes = prior_slopes[:, free]
            normal = slopes.T @ slopes + noise * prior_slopes.T @ prior_slopes
            moment = slopes.T @ residual + noise * prior_slopes.T @ prior_residual
            misfit += noise * float(prior_residual @ prior_residual)
            scale = np.diag(normal) + 1e-12 * np.max(np.diag(normal))
            moving = np.flatnonzero(~((x[free] <= low) & (moment > 0.0) | (x[free] >= high) & (moment < 0.0)))
            decrease = 0.0
            while damping < 1e8 and len(moving):
                trial, damped = x.copy(), normal + damping * np.diag(scale)
                change = np.linalg.solve(damped[np.ix_(moving, moving)], moment[moving])
                trial[free[moving]] = np.clip(x[free[moving]] - change, low[moving], high[moving])
                trial_residual = problem.stacked(kind.feed, trial)
                trial_prior = priors(trial, problem.centre)[0]
                decrease = misfit - float(trial_residual @ trial_residual) - noise * float(trial_prior @ trial_prior)
                if decrease > 0.0 or updated:
                    break
                damping *= 5.0
            if decrease > 0.0:
                step = trial[free] - x[free]
                missed = trial_residual - residual - slopes @ step
                slopes = slopes + np.outer(missed, scale * step) / float(step @ (scale * step))
                x, residual = trial, trial_residual
                damping = max(damping / 5.0, 1e-9)
            if decrease < _WORTHWHILE * misfit:
                break
            updated = True
        if decrease < _CONVERGED * misfit and not updated:
            break
    return x


def _slopes(problem: _Problem, kind: _Kind, x: Vector, residual: Vector, free: Indices) -> Vector:
    """Slopes (r, f) of the residuals over the free unknowns."""
    columns = []
    for k in free:
        moved = x.copy()
        size = STEPS[k] if x[k] + STEPS[k] <= HIGH[k] else -STEPS[k]
        moved[k] += size
        columns.append((problem.stacked(kind.feed, moved) - residual) / size)
    return np.column_stack(columns)


def _start_of(kind: _Kind, initial: Vector) -> Vector:
    """Start values (15,) of the search for a kind of loops, from a first solution of PI loops with feedforward."""
    start = initial.copy()
    if kind.feed == 0.0:
        # Half of the lag is the time constant of the servos, the other half the response to a command.
        start[LAG], start[RATE] = 0.5 * initial[LAG], 1.0 / initial[LAG]
    if not kind.integral:
        start[INTEGRAL] = 0.0
    return start


def _fitted(problem: _Problem, kind: _Kind, start: Vector) -> Candidate | Reason:
    """Fit of a kind of loops to the drives, from `start` (15,); the reason if there is none."""
    free, held = problem.free, dict[int, Reason]()
    if not kind.integral:
        free, held = free[free != INTEGRAL], {INTEGRAL: NO_INTEGRAL}
    while True:
        x = _search(problem, kind, start, _ROUNDS, free)
        start, reasons = reset_at_bounds(x, free, problem.dynamics)
        if not reasons:
            break
        held |= reasons
        free = np.array([k for k in free if k not in reasons], dtype=np.int64)
    candidate = _linearised(problem, kind, x, free, held)
    at_bound = value_at_bound(x, free)
    if isinstance(candidate, Reason) and at_bound is not None:
        return Reason(candidate.kind, f"{candidate.text}; {at_bound.text}")
    return at_bound or candidate


def _linearised(
    problem: _Problem, kind: _Kind, x: Vector, free: Indices, held: dict[int, Reason]
) -> Candidate | Reason:
    """The problem linearised about a solution (15,), including the held unknowns, on which the others depend."""
    residual = problem.stacked(kind.feed, x)
    slopes = np.zeros((len(residual), len(UNKNOWNS)))
    excited = problem.free if kind.integral else problem.free[problem.free != INTEGRAL]
    slopes[:, excited] = -_slopes(problem, kind, x, residual, excited)
    pieces, row, power = [], 0, 0.0
    duration = sum(float(np.ptp(drive.stamps)) for drive in problem.drives)
    block = min(max(duration / _BLOCKS, _SHORTEST_BLOCK), _LONGEST_BLOCK)
    for k, (drive, span) in enumerate(zip(problem.drives, problem.spans, strict=True)):
        moments = np.repeat(drive.stamps[span:], 3)
        part = slice(row, row + len(moments))
        row += len(moments)
        # Linear in the values, not in their changes, so that recordings with different solutions add up.
        target = residual[part] + slopes[part] @ x
        pieces.append(Rows(moments, slopes[part], target, recording=drive.recording, block=block))
        displacement = problem.moved[k] * problem.known[k][:, None]
        power += float(np.sum((displacement * _ARMS)[:, problem.driven] ** 2))
    if power == 0.0:
        return _AT_REST
    squares = np.zeros(3)
    driven = problem.driven
    squares[driven] = np.sum(residual.reshape(-1, 3)[:, driven] ** 2, axis=0) * problem.scale[driven] ** 2
    unexplained = float(squares @ _ARMS**2)
    if unexplained > _WORST_MISFIT**2 * power:
        left = f"the model leaves {math.sqrt(unexplained / power):.0%} of the motion unexplained: {DISTURBED}"
        return Reason(Kind.UNEXPLAINED, left)
    sums = merge([accumulate(piece) for piece in pieces])
    return Candidate(kind, x, free, held, sums, float(residual @ residual), squares, problem.readings, problem.span)


def _selected(candidates: tuple[Candidate, ...], problem: _Problem) -> Response:
    """Response of the kind of loops that the data prefer.

    The errors include the differences to other likely kinds, and the effect of the priors. Friction appears only
    through the gains of the loops, and these only through their time constants, which act like dead time and lag. The
    single values of the loops are therefore never identified.
    """
    best = min(candidates, key=lambda candidate: candidate.criterion)
    x, names = best.values, [unknown.name for unknown in UNKNOWNS]
    rivals = []
    for candidate in candidates:
        odds = min(1.0, math.exp(0.5 * (best.cautious - candidate.cautious)))
        changes = math.sqrt(odds) * (candidate.values - x)
        rivals.append(Rival(_OTHER_LOOPS, dict(zip(names, changes.tolist(), strict=True))))
    try:
        # Without their scatter between recordings: each alone has undetermined directions with arbitrary values.
        linear = fit(best.sums, VALUES, between=False)
    except IdentificationError as exception:
        return _refused(Reason(Kind.TOO_LITTLE_DATA, exception.got))
    # Of dead times and lag, parts of a delay; the other values are never judged.
    resolution = negligible_part(float(np.min(x[:LAG][problem.driven]) + x[LAG]))
    known = [dataclasses.replace(unknown, resolution=resolution) for unknown in UNKNOWNS]
    excited = np.array([one.reason is None or one.reason.kind is not Kind.NOT_EXCITED for one in linear.estimates])
    estimates = []
    for k, unknown in enumerate(known):
        prior_shift = float(linear.values[k] - x[k])
        error = math.hypot(math.sqrt(float(linear.covariance[k, k])), prior_shift)
        judged = judge(unknown, float(x[k]), error, linear.half_width(error))
        if k in best.held:
            estimates.append(judged.refused(best.held[k]))
        elif not excited[k]:
            estimates.append(undetermined(unknown))
        elif not math.isfinite(error):
            estimates.append(dataclasses.replace(undetermined(unknown, _ALIKE), value=float(x[k])))
        else:
            estimates.append(judged.refused(TOGETHER) if k in INNER else judged)
    estimates = list(widened(estimates, known, rivals, linear.half_width(1.0)))
    estimate = undetermined(FEED, _SELECTED)
    estimates.append(dataclasses.replace(estimate, value=best.kind.feed))
    squares = best.sums.squares().sum(axis=0)
    augmented = np.append(-x, 1.0)
    uncertainty = float(
        np.sum(squares[:-1, :-1][np.ix_(excited, excited)] * linear.covariance[np.ix_(excited, excited)])
    )
    return Response(
        tuple(estimates),
        _base_of(x, best.kind.feed, problem.dynamics),
        linear,
        np.sqrt(best.squares / best.readings),
        uncertainty < float(augmented @ squares @ augmented),
        candidates,
        problem,
    )


def combined_response(responses: Sequence[Response]) -> Response:
    """Combine the responses of several recordings by one fit of all their drives.

    Only the kinds of loops that no recording rules out are fitted again. (Weighting by inverse covariances would make
    intervals three times too narrow, because the poorly determined directions differ by chance between recordings.)
    There must be at least one response; each recording has its own number.
    """
    fitted = [response for response in responses if response.candidates]
    if len(fitted) <= 1:
        return fitted[0] if fitted else responses[0]
    problems = [response.problem for response in fitted if response.problem is not None]
    driven = np.any([problem.driven for problem in problems], axis=0)
    joint = _Problem([drive for problem in problems for drive in problem.drives], problems[0].dynamics, driven)
    scales = np.ma.masked_invalid([problem.scale for problem in problems])
    joint.scale = np.sqrt((scales**2).mean(axis=0)).filled(np.inf)
    totals, least = [], math.inf
    for kind in _KINDS:
        same_kind = [candidate for response in fitted for candidate in response.candidates if candidate.kind == kind]
        if len(same_kind) == len(fitted):
            totals.append((sum(candidate.criterion for candidate in same_kind), same_kind))
            least = min(least, totals[-1][0])
    candidates = []
    for criterion, same_kind in totals:
        if criterion <= least + _RULED_OUT:
            joint_candidate = _fitted(
                joint, same_kind[0].kind, np.mean([candidate.values for candidate in same_kind], axis=0)
            )
            candidates += [joint_candidate] if isinstance(joint_candidate, Candidate) else []
    if not candidates:
        return _refused(_DIFFERENT)
    return _selected(tuple(candidates), joint)


def _refused(reason: Reason) -> Response:
    return Response(tuple(undetermined(unknown, reason) for unknown in (*UNKNOWNS, FEED)))
