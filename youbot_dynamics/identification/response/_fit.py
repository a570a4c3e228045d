"""Response of a base to commanded twists, by output error: dead times, lag, and the droop caused by friction.

`dynamics/driven_base` simulates the recorded commands, and its parameters are fitted so that its poses match the
measured ones. Equation errors would need derivatives of noisy poses. A pure delay model takes friction for delay: on a
slow youBot, friction reduces the motion by 10 mm and more.

Slow drift (slip, varying friction, geometry errors) is not part of the response. Therefore displacements within half a
second are compared instead of poses, and each axis has its own gain.

Four kinds of speed loops are fitted: P or PI, with feedforward torque for the acceleration or a servo on each wheel;
and wheels that follow whatever the load, with a lag or without. Schwarz's criterion selects one. Priors about the
configured values, each as strong as one reading with the deviation of the prior, stabilise what a drive hardly excites;
a value that still ends at a bound is set back to its prior.

Source: system 33.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Flags, Indices, Vector, array
from youbot_dynamics.dynamics.driven_base import DrivenBase
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.delay import negligible_part
from youbot_dynamics.identification.least_squares import (
    BlockSums,
    ByName,
    Estimate,
    Fit,
    Kind,
    Reason,
    Rival,
    accumulate,
    fit,
    judge,
    merge,
    rows_of,
    search_costly,
    undetermined,
    unsettled,
    widened,
)
from youbot_dynamics.identification.response._problem import ARMS, DELAYED, LAGGED, Loops, Problem, base_of
from youbot_dynamics.identification.response._signals import DriveSignals, has_enough_data
from youbot_dynamics.identification.response._unknowns import (
    DISTURBED,
    FEED,
    GAINS,
    INNER,
    INTEGRAL,
    LAG,
    NIL,
    NO_INTEGRAL,
    RATE,
    TOGETHER,
    UNKNOWNS,
    UNLOADED_WHEELS,
    VALUES,
    reset_at_bounds,
    value_at_bound,
)

_LONGEST_BLOCK, _SHORTEST_BLOCK, _BLOCKS = 2.0, 0.5, 40  # [s], [s], desired number
# Simulations of the drives: for a first solution, from each start for a kind of loops, and from the best of these.
_FIRST_BUDGET, _TRIAL, _BUDGET = 100, 200, 500
_LAGS = (0.01, 0.03, 0.06)  # start values of the search [s]
_LONGEST_START = 0.3  # lag at which the search for that of one axis begins at most [s]
_SHORT_LAGS = (1e-3, 2e-3, 4e-3, 8e-3, 0.016, 0.032, 0.064)  # that a base without a lag that shows might have [s]
_DRIVEN = 0.05  # [m, m, rad] commanded motion of an axis below which it is not fitted
_RULED_OUT = 30.0  # difference of Schwarz's criterion that rules a kind out: about 1 to 150 by the cautious one
_STUCK = 4.0  # difference of P loops to those with the other feed above which their search is repeated from these
_HOPELESS = 100.0  # difference that cannot matter: by the cautious criterion 1 to 10^7 and more
_WORST_MISFIT = 0.1  # relative misfit of the displacements above which the model is rejected
_KINDS = (DELAYED, LAGGED, *(Loops(feed, integral) for feed in (1.0, 0.0) for integral in (False, True)))
_FIRST = Loops(1.0, True)  # the search starts with this kind

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
_OWN_LAG = Reason(Kind.OTHER_EXPLANATION, "the axes have different lags, and the response has one of all axes")
_DIFFERENT = Reason(
    Kind.UNEXPLAINED, "no kind of speed loops explains all recordings: they are of different robots, or wheels slip"
)
_SLOW_INTEGRAL = 0.2


@dataclass(frozen=True, eq=False)
class Candidate:
    """Fit of one kind of loops to some recordings."""

    kind: Loops
    values: Vector  # (15,) of the unknowns
    free: Indices  # indices of the fitted unknowns
    held: dict[int, Reason]  # indices of excited unknowns that were not fitted, and why
    squares: Vector  # (3,) sums of squared residuals of x, y, yaw [m2, m2, rad2]
    readings: float  # number of displacements used, three residuals each
    span: float  # number of readings within the time of a displacement; this many neighbours are dependent
    count: int  # of the unknowns that the kind may fit, also those that ended at a bound
    settled: bool = True  # whether the search converged within its budget

    @property
    def criterion(self) -> float:
        """Schwarz's criterion: sum over the axes of n ln(variance), plus p ln(3 n), n independent residuals each."""
        n, logarithms, count = self._terms()
        return n * float(np.sum(logarithms)) + count * math.log(3.0 * n)

    @property
    def cautious(self) -> float:
        """The criterion where errors of time act on all axes together: the residuals of an instant count as one."""
        return self.misfit + self.count * math.log(self._terms()[0])

    @property
    def misfit(self) -> float:
        """The same without the number of unknowns."""
        n, logarithms, _ = self._terms()
        return n * float(np.mean(logarithms))

    def _terms(self) -> tuple[float, Vector, int]:
        """Independent instants, logarithms of the variances of the driven axes, and number of unknowns."""
        return max(2.0, self.readings / self.span), np.log(self.squares[self.squares > 0.0]), self.count


@dataclass(frozen=True, eq=False)
class Response(ByName):
    """Identified response of a base."""

    estimates: tuple[Estimate, ...]  # dead times, lag, rate, friction as seen by the loops, gains
    base: DrivenBase | None = None  # the model with these values; None if there is no fit
    # Linearised fit of all unknowns: intervals, correlation; None if there was nothing to fit
    fit: Fit | None = None
    # RMS residual (3,) of the displacements over half a second [m, m, rad]
    residual: Vector = field(default_factory=lambda: np.full(3, math.nan))
    # Whether all values together predict the motion: the effect of their covariance on a displacement is smaller than
    # the residual of the model
    usable: bool = False
    candidates: tuple[Candidate, ...] = ()  # one per kind of loops
    problem: Problem | None = None  # of the drives, for `combined_response`


def identify_response(
    drives: Sequence[DriveSignals],
    dynamics: MecanumDynamics,
    delays: ArrayLike,
) -> Response:
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
        return refused(_FEW_POSES)
    problem = Problem(useful, dynamics, _driven(useful))
    if not np.any(problem.driven):
        return refused(_NOT_MOVED)
    starts = [
        np.array(
            [*np.maximum(first - lag, 0.02), lag, 0.5 / lag, *problem.friction, 1.0, problem.centre, 1.0, 1.0, 1.0, 1.0]
        )
        for lag in _LAGS
    ]
    nearest = min(starts, key=lambda start: float(np.sum(problem.stacked(_FIRST, start) ** 2)))
    initial = search_costly(problem.model(_FIRST), nearest, problem.free, _FIRST_BUDGET).values
    problem.weigh(_FIRST, initial)
    candidates, reasons = list[Candidate](), dict[Loops, Reason]()
    for kind in _KINDS:
        best = _best_of_kind(problem, kind, initial, candidates)
        if isinstance(best, Candidate):
            candidates.append(best)
        else:
            reasons[kind] = best
    if not candidates:
        return refused(reasons[_FIRST])
    best = min(candidates, key=lambda candidate: candidate.criterion)
    for k, other in enumerate(candidates):
        proportional = [one.kind.loaded and not one.kind.integral for one in (best, other)]
        if all(proportional) and other.criterion > best.criterion + _STUCK:
            # P loops with and without feed explain most drives alike, without it by a time constant of servos more.
            again = _fitted(problem, other.kind, _with_feed(best, other.kind), _TRIAL, best.criterion)
            candidates[k] = again if isinstance(again, Candidate) and again.criterion < other.criterion else other
    return _selected(tuple(candidates), problem)


def _best_of_kind(problem: Problem, kind: Loops, initial: Vector, others: Sequence[Candidate]) -> Candidate | Reason:
    """Best fit of a kind of loops, from a first solution (15,) of PI loops and from `others`; or why there is none."""
    starts = [_start_of(kind, initial)]
    if kind.integral and (alike := [one for one in others if one.kind.integral and one.settled]):
        starts = [_with_feed(alike[-1], kind)]
    elif kind.integral and others and others[-1].kind.feed == kind.feed:
        # A slow integral action is closer to none than to that of critically damped loops.
        starts.append(others[-1].values.copy())
        starts[-1][INTEGRAL] = _SLOW_INTEGRAL
    least = min((candidate.criterion for candidate in others), default=math.inf)
    budget = _BUDGET if len(starts) == 1 else _TRIAL
    results = list[Candidate | Reason]()
    for start in starts:
        results.append(_fitted(problem, kind, start, budget, least))
        if isinstance(results[-1], Candidate) and results[-1].settled:
            break
    trials = [result for result in results if isinstance(result, Candidate)]
    best = min(trials, key=lambda trial: trial.criterion, default=results[0])
    if isinstance(best, Candidate) and not best.settled and budget < _BUDGET:
        if best.criterion < least + _HOPELESS:
            best = _fitted(problem, kind, best.values, _BUDGET, least)
    return best


def _with_feed(other: Candidate, kind: Loops) -> Vector:
    """Start values (15,) from those with the other feed, which differ by the time constant of a servo."""
    start = other.values.copy()
    times = [0, 1, 2, LAG]
    start[times] = np.maximum(start[times] + 0.5 * (0.5 - other.kind.feed) / start[RATE], 0.0)
    return start


def _start_of(kind: Loops, initial: Vector) -> Vector:
    """Start values (15,) of the search for a kind of loops, from a first solution of PI loops with feedforward."""
    start = initial.copy()
    if kind.feed == 0.0:
        # Half of the lag is the time constant of the servos, the other half the response to a command.
        start[LAG], start[RATE] = 0.5 * initial[LAG], 1.0 / initial[LAG]
    if not kind.integral:
        start[INTEGRAL] = 0.0
    if not kind.loaded:
        start[[RATE, *NIL]] = 0.0
    if kind == DELAYED:
        start[:LAG] += start[LAG]
        start[LAG] = 0.0
    return start


def _fitted(problem: Problem, kind: Loops, start: Vector, budget: int, least: float = math.inf) -> Candidate | Reason:
    """Fit of a kind of loops to the drives, from `start` (15,), in at most `budget` simulations; or why there is none.

    `least` is the criterion of another kind: the search is stopped where this one is hopelessly worse.
    """
    free, left = problem.excited(kind), budget
    n, count = max(2.0, problem.readings / problem.span), len(free)
    model = problem.model(kind, (least + _HOPELESS - count * math.log(3.0 * n)) / n)
    held = {} if kind.loaded else dict.fromkeys(INNER, UNLOADED_WHEELS)
    if not kind.integral:
        held[INTEGRAL] = NO_INTEGRAL
    while True:
        solution = search_costly(model, start, free, left)
        left -= solution.evaluations
        x = solution.values
        start, reasons = reset_at_bounds(x, free, problem.dynamics)
        settled = solution.settled and not reasons
        if settled or not solution.settled or left <= len(free):
            break
        held |= reasons
        free = np.array([k for k in free if k not in reasons], dtype=np.int64)
    at_bound, unexplained = value_at_bound(x, free), _unexplained(problem, problem.squares(solution.residual))
    if not settled and unexplained:
        return unsettled(f"{budget - left} simulations of the drives")
    if at_bound and unexplained:
        return Reason(unexplained.kind, f"{unexplained.text}; {at_bound.text}")
    if settled and (reason := at_bound or unexplained):
        return reason
    # One that is not settled still counts as another explanation.
    squares = problem.squares(solution.residual)
    return Candidate(kind, x, free, held, squares, problem.readings, problem.span, count, settled)


def _with_short_lag(problem: Problem, best: Candidate) -> Candidate:
    """Fit with the lag that moves the dead times of a base without one most, weighted by its odds.

    Of a lag that is over before the next reading, the data may tell hardly anything.
    """
    farthest, most = best, 0.0
    for lag in _SHORT_LAGS:
        start = best.values.copy()
        start[:LAG], start[LAG] = np.maximum(start[:LAG] - lag, 0.0), lag
        trial = _fitted(problem, DELAYED, start, _TRIAL)
        moved = lag * math.exp(0.25 * (best.cautious - trial.cautious)) if isinstance(trial, Candidate) else 0.0
        if isinstance(trial, Candidate) and moved > most:
            farthest, most = trial, moved
    return farthest


def _unexplained(problem: Problem, squares: Vector) -> Reason | None:
    """Why sums (3,) of squared residuals are too large for a model, None if they are not."""
    power = 0.0
    for moved, known in zip(problem.moved, problem.known, strict=True):
        power += float(np.sum((moved * known[:, None] * ARMS)[:, problem.driven] ** 2))
    if power == 0.0:
        return _AT_REST
    share = math.sqrt(float(squares @ ARMS**2) / power)
    if share <= _WORST_MISFIT:
        return None
    return Reason(Kind.UNEXPLAINED, f"the model leaves {share:.0%} of the motion unexplained: {DISTURBED}")


def _linearised(problem: Problem, candidate: Candidate) -> BlockSums:
    """The problem linearised about the values, including the held unknowns, on which the others depend."""
    x, kind = candidate.values, candidate.kind
    residual, excited = problem.stacked(kind, x), problem.excited(kind)
    slopes = np.zeros((len(residual), len(UNKNOWNS)))
    slopes[:, excited] = -problem.slopes(kind, x, residual, excited)
    duration = sum(float(np.ptp(drive.stamps)) for drive in problem.drives)
    block = min(max(duration / _BLOCKS, _SHORTEST_BLOCK), _LONGEST_BLOCK)
    times = [np.repeat(drive.stamps[span:], 3) for drive, span in zip(problem.drives, problem.spans, strict=True)]
    # Linear in the values, not in their changes, so that recordings with different solutions add up.
    target = residual + slopes @ x
    pieces = rows_of(slopes, target, times, block, [drive.recording for drive in problem.drives])
    return merge([accumulate(piece) for piece in pieces])


def _own_lags(problem: Problem, best: Candidate) -> Rival:
    """A dead time and a lag of each axis instead of one lag of all, where the motion of any axis surely shows them."""
    changes, n, x, shown = dict[str, float](), max(2.0, problem.readings / problem.span), best.values, False
    several = best.kind.lagged and np.count_nonzero(problem.driven) > 1
    for axis in np.flatnonzero(problem.driven).tolist() if several else ():
        alone = Problem(problem.drives, problem.dynamics, np.arange(3) == axis)
        alone.scale = np.where(alone.driven, problem.scale, np.inf)
        whole, start = float(x[axis] + x[LAG] + (1.0 / x[RATE] if best.kind.loaded else 0.0)), _start_of(LAGGED, x)
        start[LAG] = min(0.5 * whole, _LONGEST_START)
        start[axis] = whole - start[LAG]
        own = np.array([axis, LAG, GAINS.start + axis])
        found = search_costly(alone.model(LAGGED), start, own, _TRIAL)
        before, after = float(best.squares[axis]), float(alone.squares(found.residual)[axis])
        shown |= n * math.log(max(before, 1e-300) / max(after, 1e-300)) > math.log(n) + _STUCK
        changes[UNKNOWNS[axis].name] = float(found.values[axis] - x[axis])
        changes[UNKNOWNS[LAG].name] = max(float(found.values[LAG] - x[LAG]), changes.get("lag", 0.0), key=abs)
    return Rival(_OWN_LAG, changes if shown else {})


def _selected(candidates: tuple[Candidate, ...], problem: Problem) -> Response:
    """Response of the kind of loops that the data prefer.

    The errors include the differences to other likely kinds, and the effect of the priors. Friction appears only
    through the gains of the loops, and these only through their time constants, which act like dead time and lag. The
    single values of the loops are therefore never identified.
    """
    best = min(candidates, key=lambda candidate: candidate.criterion)
    x, names = best.values, [unknown.name for unknown in UNKNOWNS]
    others, rivals = list(candidates), []
    if best.kind == DELAYED:
        others = [one for one in candidates if one.kind != LAGGED] + [_with_short_lag(problem, best)]
    for candidate in others:
        # Every base has inertia and friction: the number of unknowns does not rule out loops under load.
        loaded = candidate.kind.loaded and not best.kind.loaded
        better = best.misfit - candidate.misfit if loaded else best.cautious - candidate.cautious
        odds = math.exp(0.5 * min(better, 0.0))
        changes = math.sqrt(odds) * (candidate.values - x)
        rivals.append(Rival(_OTHER_LOOPS, dict(zip(names, changes.tolist(), strict=True))))
    rivals.append(_own_lags(problem, best))
    try:
        # Without their scatter between recordings: each alone has undetermined directions with arbitrary values.
        sums = _linearised(problem, best)
        linear = fit(sums, VALUES, between=False)
    except IdentificationError as exception:
        return refused(Reason(Kind.TOO_LITTLE_DATA, exception.got))
    # Of dead times and lag, parts of a delay; the other values are never judged.
    resolution = negligible_part(float(np.min(x[:LAG][problem.driven]) + x[LAG]))
    known = [replace(unknown, resolution=resolution) for unknown in UNKNOWNS]
    excited = np.array([one.reason is None or one.reason.kind is not Kind.NOT_EXCITED for one in linear.estimates])
    estimates = []
    for k, unknown in enumerate(known):
        prior_shift = float(linear.values[k] - x[k])
        error = math.hypot(math.sqrt(float(linear.covariance[k, k])), prior_shift)
        if k == LAG and not best.kind.lagged:
            error = 0.0  # but for that of kinds with a lag
        judged = judge(unknown, float(x[k]), error, linear.half_width(error))
        if k in best.held:
            estimates.append(judged.refused(best.held[k]))
        elif not excited[k] and not math.isfinite(error):
            estimates.append(undetermined(unknown))
        elif not math.isfinite(error):
            estimates.append(replace(undetermined(unknown, _ALIKE), value=float(x[k])))
        else:
            estimates.append(judged.refused(TOGETHER) if k in INNER else judged)
    estimates = list(widened(estimates, known, rivals, linear.half_width(1.0)))
    likely = [candidate for candidate in candidates if candidate.criterion <= best.criterion + _RULED_OUT]
    settled = all(candidate.settled for candidate in likely)
    for k in () if settled else problem.free.tolist():
        estimates[k] = estimates[k].refused(unsettled(f"{_BUDGET} simulations of the drives"))
    estimates.append(replace(undetermined(FEED, _SELECTED), value=best.kind.feed))
    squares, augmented, both = sums.squares().sum(axis=0), np.append(-x, 1.0), np.ix_(excited, excited)
    uncertainty = float(np.sum(squares[:-1, :-1][both] * linear.covariance[both]))
    return Response(
        tuple(estimates),
        base_of(x, best.kind, problem.dynamics),
        linear,
        np.sqrt(best.squares / best.readings),
        best.settled and uncertainty < float(augmented @ squares @ augmented),
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
    joint = Problem([drive for problem in problems for drive in problem.drives], problems[0].dynamics, driven)
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
                joint, same_kind[0].kind, np.mean([candidate.values for candidate in same_kind], axis=0), _BUDGET
            )
            candidates += [joint_candidate] if isinstance(joint_candidate, Candidate) else []
    if not candidates:
        return refused(_DIFFERENT)
    return _selected(tuple(candidates), joint)


def fitted_again(response: Response, drive: DriveSignals, kind: Loops | None = None) -> Candidate | None:
    """Fit of a kind of loops, that of a response if None, to another drive; None if the drive does not determine it.

    It must drive the same axes: of others, the values would be those of the response.

    The search begins at the values of the response: only where it converges, it does not depend on these.
    """
    if response.problem is None or not has_enough_data(drive):
        return None
    best = min(response.candidates, key=lambda candidate: candidate.criterion)
    driven = response.problem.driven
    if not np.all(_driven([drive])[driven]):
        return None
    problem = Problem([drive], response.problem.dynamics, driven)
    problem.scale = response.problem.scale
    start = best.values if kind in (None, best.kind) else _start_of(kind, best.values)
    found = _fitted(problem, kind or best.kind, start, _BUDGET)
    return found if isinstance(found, Candidate) and found.settled else None


def left_out(response: Response, first: Candidate | None, drive: DriveSignals, middle: float) -> Vector:
    """Sums (2,) of the squares [m2] of what predictions of a drive after `middle` [s] leave; NaN where unknown.

    The predictions are by a response `fitted_again` to the part `drive` before, `first`, and by delays alone.
    """
    delays = first if first is None or first.kind == DELAYED else fitted_again(response, drive, DELAYED)
    if first is None or delays is None or response.problem is None:
        return np.full(2, math.nan)
    problem = response.problem
    later = problem.drives[0].stamps[: -problem.spans[0]] >= middle
    residuals = [problem.stacked(one.kind, one.values).reshape(-1, 3)[later] for one in (first, delays)]
    return np.array([float(problem.squares(residual) @ ARMS**2) for residual in residuals])


def _driven(drives: Sequence[DriveSignals]) -> Flags:
    """Whether each axis (3,) was driven."""
    distance = sum(np.abs(np.diff(drive.sent)) @ np.abs(drive.twists[:-1]) for drive in drives)
    return np.asarray(distance > _DRIVEN)


def refused(reason: Reason) -> Response:
    """Response without any value, for a reason."""
    return Response(tuple(undetermined(unknown, reason) for unknown in (*UNKNOWNS, FEED)))
