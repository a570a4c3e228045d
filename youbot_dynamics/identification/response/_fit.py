"""How a base follows the twists it is sent, by output error: dead times, lag, and the droop of friction (system 33).

`dynamics/driven_base` is run on the recorded commands, and its parameters are moved until its poses are those that were
measured. Equation errors would need derivatives of noisy poses, and a delay alone takes friction for delay: on a slow
youBot friction holds the base back by 10 mm and more.

What drifts (a wheel that slips, friction that wanders, geometry a little off) is no matter of the response: poses are
compared by how far they go within half a second, and each axis has a gain of its own.

Four kinds of loops are fitted: P or PI, fed the torque for an acceleration or a servo on each wheel. The data choose by
Schwarz's criterion. What a drive hardly shows is held by priors about the configured values, as strong as one reading
of the quantity with the prior's deviation; a value that ends at a bound all the same is put back to its prior.
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
from youbot_dynamics.identification.least_squares import (
    BlockSums,
    Estimate,
    Fit,
    Rows,
    accumulate,
    fit,
    judge,
    merge,
    refusal,
    undetermined,
)
from youbot_dynamics.identification.response._signals import DriveSignals, displacements, span_of, tells
from youbot_dynamics.identification.response._unknowns import (
    CENTRE,
    FEED,
    GAINS,
    HIGH,
    INNER,
    INTEGRAL,
    LAG,
    LOW,
    NIL,
    RATE,
    STEPS,
    STILL,
    TOGETHER,
    TURN,
    UNKNOWNS,
    VALUES,
    priors,
)

_STEP = 4e-3  # [s] of the model: twice that of a prediction moves the estimates by a tenth of their error
_LONGEST_BLOCK, _SHORTEST_BLOCK, _BLOCKS = 2.0, 0.5, 40  # [s], [s], number wanted
_FIRST_ROUNDS, _ROUNDS = 5, 25
_SETTLED = 1e-7  # relative change of the misfit at which the search ends
_ARM = 0.3  # [m] that turns the yaw into a length
_LEAST_NOISE = 0.1  # of an axis, as a share of the largest
_LAGS = (0.01, 0.03, 0.06)  # [s] the search starts from
_DRIVEN = 0.05  # [m, m, rad] way of the commands on an axis below which nothing is asked of it
_RULED_OUT = 20.0  # of Schwarz's criterion: odds of 1 to 20,000
_WORST_MISFIT = 0.1  # of the displacements, as a share of them, above which the model is not believed


@dataclass(frozen=True)
class _Kind:
    """A kind of speed loops."""

    feed: float  # as in `DrivenBase`
    integral: bool  # PI or P


_KINDS = tuple(_Kind(feed, integral) for feed in (1.0, 0.0) for integral in (False, True))
_FIRST = _Kind(1.0, True)  # with which the search begins
_DISTURBED = "moved by something else, or slipping"  # why drives do not fit
_SLOW_INTEGRAL = 0.2


@dataclass(frozen=True, eq=False)
class Candidate:
    """What one kind of loops makes of some recordings.

    Args:
        kind: of loops.
        values: (15,) of the unknowns.
        free: places of those that were fitted.
        held: places of those that were not though the drives excite them, and why.
        sums: of the problem linearised about the values.
        misfit: sum of the squares left, each over its axis' scale [1].
        squares: (3,) the same of x, y, yaw [m2, m2, rad2].
        readings: displacements that count, three residuals each.
        span: readings within the time of a displacement: as many neighbours say the same.
    """

    kind: _Kind
    values: Vector
    free: Indices
    held: dict[int, str]
    sums: BlockSums
    misfit: float
    squares: Vector
    readings: float
    span: float

    @property
    def noise(self) -> float:
        """Variance of a residual that is independent of the others [1]."""
        return self.span * self.misfit / (3.0 * self.readings)

    @property
    def criterion(self) -> float:
        """Schwarz's: sum over the axes of n ln(variance), and p ln(3 n), with n the independent residuals of each."""
        n = max(2.0, self.readings / self.span)
        # What a kind was allowed counts, also where it ended at a bound.
        count = len(self.free) + len(self.held) - (0 if self.kind.integral else 1)
        return n * float(np.sum(np.log(self.squares[self.squares > 0.0]))) + count * math.log(3.0 * n)


@dataclass(frozen=True, eq=False)
class Response:
    """Response of a base as identified."""

    estimates: tuple[Estimate, ...]  # dead times, lag, rate, friction as the loops feel it, gains
    base: DrivenBase | None = None  # the model with these values; None where they were not found
    # linear about the solution, of all unknowns: intervals, correlation; None where there was nothing to fit
    fit: Fit | None = None
    # root mean square of the displacements over half a second that are left (3,) [m, m, rad]
    residual: Vector = dataclasses.field(default_factory=lambda: np.full(3, math.nan))
    # whether all values together say how the base moves: what their covariance adds to a displacement is less
    # than what the model leaves over anyway
    usable: bool = False
    candidates: tuple[Candidate, ...] = ()  # one a kind of loops
    problem: _Problem | None = None  # of the drives, for `combined_response`

    def __getitem__(self, name: str) -> Estimate:
        """Estimate by its name."""
        return {estimate.name: estimate for estimate in self.estimates}[name]


def identify_response(drives: Sequence[DriveSignals], dynamics: MecanumDynamics, delays: ArrayLike) -> Response:
    """Dead times, lag, rate and friction that make the model's poses those that were measured.

    Levenberg-Marquardt on the displacements over half a second, from several lags; intervals from blocks of 2 s of the
    problem linearised about the solution. Viscous friction looks much like a longer lag, and a short lag like dead
    time: one by one they may stay open while together they say well how the base moves. `usable` tells that.

    Args:
        drives: signals, each recording with another number.
        dynamics: inertia and kinematics of the base; its friction is where the search starts.
        delays: (3,) effective delays of x, y, yaw [s]: where it starts as well.

    Returns:
        Estimates with verdicts; axes that were not driven are refused, and all of them where nothing fits.
    """
    first = array("delays", delays, (3,))
    useful = [one for one in drives if tells(one)]
    if not useful:
        return _refused("too few poses while commands were sent")
    way = sum(np.abs(np.diff(one.sent)) @ np.abs(one.twists[:-1]) for one in useful)
    if not np.any(way > _DRIVEN):
        return _refused("the robot was never asked to move")
    problem = _Problem(useful, dynamics, np.asarray(way > _DRIVEN))
    starts = [
        np.array(
            [*np.maximum(first - lag, 0.02), lag, 0.5 / lag, *problem.friction, 1.0, problem.centre, 1.0, 1.0, 1.0, 1.0]
        )
        for lag in _LAGS
    ]
    tried = [_search(problem, _FIRST, start, _FIRST_ROUNDS) for start in starts]
    begun = min(tried, key=lambda x: float(np.sum(problem.stacked(1.0, x) ** 2)))
    problem.weigh(begun)
    candidates, reasons = list[Candidate](), dict[_Kind, str]()
    for kind in _KINDS:
        starts = [_start_of(kind, begun)]
        if kind.integral and candidates and candidates[-1].kind.feed == kind.feed:
            # A slow integral is nearer to none than to that of loops that are critically damped.
            starts.append(candidates[-1].values.copy())
            starts[-1][INTEGRAL] = _SLOW_INTEGRAL
        ended = [_settled(problem, kind, start) for start in starts]
        settled = [one for one in ended if isinstance(one, Candidate)]
        reasons[kind] = next((one for one in ended if isinstance(one, str)), "")
        candidates += [min(settled, key=lambda one: one.criterion)] if settled else []
    return _chosen(tuple(candidates), problem) if candidates else _refused(reasons[_FIRST])


class _Problem:
    """Displacements of model and readings, weighted by the noise of their axis, for the unknowns that are excited."""

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
        self.spans = [span_of(one) for one in drives]
        self.told = [one.commands_known(span) for one, span in zip(drives, self.spans, strict=True)]
        self.readings = max(1.0, float(sum(np.sum(told) for told in self.told)))
        self.span = float(np.mean(self.spans))
        # [m, m, rad] what a residual is divided by; of an axis that was not driven nothing is asked
        self.scale = np.where(driven, [1.0, 1.0, 1.0 / _ARM], np.inf)

    def weigh(self, x: Vector) -> None:
        """Weigh the axes by what the first kind of loops leaves of each at a first solution (15,)."""
        self.scale = np.ones(3)
        left = np.sqrt(np.sum(np.concatenate(self.residuals(_FIRST.feed, x)) ** 2, axis=0) / self.readings)
        # An axis that hardly moved has little noise, and errors of the model all the same.
        arms = np.array([1.0, 1.0, _ARM])
        largest = float(np.max(left[self.driven] * arms[self.driven]))
        scale = np.maximum(left, _LEAST_NOISE * largest / arms) if largest > 0.0 else 1.0 / arms
        self.scale = np.where(self.driven, scale, np.inf)

    def residuals(self, feed: float, x: Vector) -> list[Vector]:
        """Measured less modelled displacement (k, 3) of each drive in the body frame, over the scale of its axis."""
        base = _base_of(x, feed, self.dynamics)
        found = []
        for one, span, told in zip(self.drives, self.spans, self.told, strict=True):
            poses = np.zeros((len(one.stamps), 3))
            twists = np.ascontiguousarray(one.twists * x[GAINS])
            begin, end, state = float(one.sent[0]), float(one.stamps[-1]) + _STEP, np.zeros(STATE_SIZE)
            follow(base.constants, state, begin, end, _STEP, one.sent, twists, one.stamps, poses)
            off = displacements(one.poses, span) - displacements(poses, span)
            found.append(off * told[:, None] / self.scale)
        return found

    def stacked(self, feed: float, x: Vector) -> Vector:
        """All residuals (r,)."""
        return np.concatenate([part.ravel() for part in self.residuals(feed, x)])


def _base_of(x: Vector, feed: float, dynamics: MecanumDynamics) -> DrivenBase:
    """Model with the numbers (15,)."""
    felt = dataclasses.replace(
        dynamics,
        wheel_coulomb=x[5],
        roller_coulomb=x[6],
        viscous_x=x[7],
        viscous_y=x[8],
        centre_of_mass=(float(x[CENTRE]), dynamics.centre_of_mass[1]),
    )
    return DrivenBase(felt, x[:3], float(x[LAG]), float(x[RATE]), float(x[TURN]), float(x[INTEGRAL]), feed)


def _search(problem: _Problem, kind: _Kind, start: Vector, rounds: int, free: Indices | None = None) -> Vector:
    """Solution (15,) of Levenberg and Marquardt within the bounds, of the unknowns that are `free`; default: all."""
    free = problem.free if free is None else free
    low, high = LOW[free], HIGH[free]
    x = start.copy()
    x[free] = np.clip(start[free], low, high)
    residual, damping = problem.stacked(kind.feed, x), 1e-3
    for _ in range(rounds):
        slopes = _slopes(problem, kind, x, residual, free)
        if not np.any(slopes) or not np.all(np.isfinite(slopes)):
            break  # at rest wherever the commands are known, or a motion without bounds
        misfit = float(residual @ residual)
        noise = problem.span * misfit / (3.0 * problem.readings)
        left, turns = priors(x, problem.centre)
        turns = turns[:, free]
        normal = slopes.T @ slopes + noise * turns.T @ turns
        moment = slopes.T @ residual + noise * turns.T @ left
        misfit += noise * float(left @ left)
        scale = np.diag(normal) + 1e-12 * np.max(np.diag(normal))
        gained = 0.0
        while damping < 1e8:
            trial = x.copy()
            trial[free] = np.clip(x[free] - np.linalg.solve(normal + damping * np.diag(scale), moment), low, high)
            after = problem.stacked(kind.feed, trial)
            prior = priors(trial, problem.centre)[0]
            gained = misfit - float(after @ after) - noise * float(prior @ prior)
            if gained > 0.0:
                x, residual = trial, after
                damping = max(damping / 5.0, 1e-9)
                break
            damping *= 5.0
        if gained < _SETTLED * misfit:
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


def _put_back(x: Vector, free: Indices, dynamics: MecanumDynamics) -> tuple[Vector, dict[int, str]]:
    """Values (15,) with those at a bound back at what is expected, and the reason for each of these.

    Friction at 0 stays: there is none to be seen. Dead times and gains are expected nowhere; `_end_of_search` refuses
    them.
    """
    found, reasons = x.copy(), dict[int, str]()
    expected = {LAG: 0.5 / x[RATE], RATE: 0.5 / x[LAG], TURN: 1.0, CENTRE: dynamics.centre_of_mass[0]}
    friction = (dynamics.wheel_coulomb, dynamics.roller_coulomb, dynamics.viscous_x, dynamics.viscous_y)
    expected |= {INTEGRAL: 1.0, **dict(zip(NIL, friction, strict=True))}
    for k in free.tolist():
        if k in NIL and x[k] <= 0.0:
            reasons[k] = "these drives show none"
        elif k in expected and not LOW[k] < x[k] < HIGH[k]:
            inside = 0.01 * (HIGH[k] - LOW[k])
            found[k] = min(max(expected[k], LOW[k] + inside), HIGH[k] - inside)
            found_at = f"{x[k]:g} {UNKNOWNS[k].unit}"
            reasons[k] = f"the best value lies at the end of the search, {found_at}; the expected one is kept"
    return found, reasons


def _end_of_search(x: Vector, free: Indices) -> str:
    """Which value without a prior ended at the end of the search, "" for none."""
    for k in free.tolist():
        if (k < LAG or k in range(*GAINS.indices(len(x)))) and not LOW[k] < x[k] < HIGH[k]:
            one = UNKNOWNS[k]
            return f"{one.name} lies at the end of the search, {x[k]:g} {one.unit}: {_DISTURBED}"
    return ""


def _start_of(kind: _Kind, begun: Vector) -> Vector:
    """Where the search of a kind of loops starts (15,), from a first solution of fed PI loops."""
    start = begun.copy()
    if kind.feed == 0.0:
        # The servos' own time constant makes half of the lag, the answer to a command the other.
        start[LAG], start[RATE] = 0.5 * begun[LAG], 1.0 / begun[LAG]
    if not kind.integral:
        start[INTEGRAL] = 0.0
    return start


def _settled(problem: _Problem, kind: _Kind, start: Vector) -> Candidate | str:
    """What a kind of loops makes of the drives, searched from `start` (15,); the reason where that is nothing."""
    free, held = problem.free, dict[int, str]()
    if not kind.integral:
        free, held = free[free != INTEGRAL], {INTEGRAL: "the loops have no integral action"}
    while True:
        x = _search(problem, kind, start, _ROUNDS, free)
        start, reasons = _put_back(x, free, problem.dynamics)
        if not reasons:
            break
        held |= reasons
        free = np.array([k for k in free if k not in reasons], dtype=np.int64)
    found = _linear(problem, kind, x, free, held)
    ended = _end_of_search(x, free)
    if isinstance(found, str):
        return f"{found}; {ended}" if ended else found
    return ended or found


def _linear(problem: _Problem, kind: _Kind, x: Vector, free: Indices, held: dict[int, str]) -> Candidate | str:
    """The problem linearised about a solution (15,), also in what was held: the others depend on it."""
    residual = problem.stacked(kind.feed, x)
    slopes = np.zeros((len(residual), len(UNKNOWNS)))
    excited = problem.free if kind.integral else problem.free[problem.free != INTEGRAL]
    slopes[:, excited] = -_slopes(problem, kind, x, residual, excited)
    arms = np.array([1.0, 1.0, _ARM])
    pieces, row, power = [], 0, 0.0
    duration = sum(float(np.ptp(one.stamps)) for one in problem.drives)
    block = min(max(duration / _BLOCKS, _SHORTEST_BLOCK), _LONGEST_BLOCK)
    for one, span, told in zip(problem.drives, problem.spans, problem.told, strict=True):
        moments = np.repeat(one.stamps[span:], 3)
        part = slice(row, row + len(moments))
        row += len(moments)
        # Linear in the values themselves, not in their changes: so recordings add up, each about its own solution.
        target = residual[part] + slopes[part] @ x
        pieces.append(Rows(moments, slopes[part], target, recording=one.recording, block=block))
        moved = displacements(one.poses, span) * told[:, None]
        power += float(np.sum((moved * arms)[:, problem.driven] ** 2))
    if power == 0.0:
        return "the base never moved"
    squares = np.zeros(3)
    asked = problem.driven
    squares[asked] = np.sum(residual.reshape(-1, 3)[:, asked] ** 2, axis=0) * problem.scale[asked] ** 2
    left = float(squares @ arms**2)
    if left > _WORST_MISFIT**2 * power:
        return f"the model leaves {math.sqrt(left / power):.0%} of the motion unexplained: {_DISTURBED}"
    sums = merge([accumulate(piece) for piece in pieces])
    return Candidate(kind, x, free, held, sums, float(residual @ residual), squares, problem.readings, problem.span)


def _chosen(candidates: tuple[Candidate, ...], problem: _Problem) -> Response:
    """Response of the kind of loops that the data prefer.

    Errors hold what other likely kinds make of a value, and what the priors moved it by. Friction shows over the gains
    of the loops only, and these as their own time constants, which the model has in common with dead time and lag: the
    numbers of the loops are never identified one by one.
    """
    best = min(candidates, key=lambda one: one.criterion)
    x, spread = best.values, np.zeros(len(UNKNOWNS))
    for one in candidates:
        spread += math.exp(0.5 * (best.criterion - one.criterion)) * (one.values - x) ** 2
    try:
        # Not with their scatter between recordings: alone each leaves directions open, along which it may lie anywhere.
        linear = fit(best.sums, VALUES, between=False)
    except IdentificationError as too_little:
        return _refused(too_little.got)
    estimates = []
    for k, unknown in enumerate(UNKNOWNS):
        pulled = float(linear.values[k] - x[k])
        error = math.sqrt(float(linear.covariance[k, k]) + float(spread[k]) + pulled * pulled)
        if k in best.held:
            kept = judge(unknown, float(x[k]), error, linear.reach(error))
            estimates.append(dataclasses.replace(kept, verdict=refusal(best.held[k])))
        elif linear.estimates[k].verdict == refusal(STILL):
            estimates.append(undetermined(unknown, unknown.unexcited))
        elif not math.isfinite(error):
            kept = undetermined(unknown, "these drives do not distinguish it from the others")
            estimates.append(dataclasses.replace(kept, value=float(x[k])))
        else:
            judged = judge(unknown, float(x[k]), error, linear.reach(error))
            if k in INNER and judged.identified:
                judged = dataclasses.replace(judged, verdict=refusal(TOGETHER))
            estimates.append(judged)
    kept = undetermined(FEED, "of the kinds of speed loops that were tried this one has the smallest residuals")
    estimates.append(dataclasses.replace(kept, value=best.kind.feed))
    squares = best.sums.squares().sum(axis=0)
    against = np.append(-x, 1.0)
    told = np.array([one.verdict != refusal(STILL) for one in linear.estimates])
    doubt = float(np.sum(squares[:-1, :-1][np.ix_(told, told)] * linear.covariance[np.ix_(told, told)]))
    return Response(
        tuple(estimates),
        _base_of(x, best.kind.feed, problem.dynamics),
        linear,
        np.sqrt(best.squares / best.readings),
        doubt < float(against @ squares @ against),
        candidates,
        problem,
    )


def combined_response(responses: Sequence[Response]) -> Response:
    """One response from those of several recordings: the fit of all their drives at once.

    Of the kinds of loops those are searched anew that the recordings one by one do not rule out. (Weights by inverse
    covariances would make intervals three times too narrow: the directions that a recording hardly tells differ from
    one to the next by chance, and each would seem to tell what the other leaves open.)

    Args:
        responses: of one robot, at least one, each of a recording with another number.
    """
    found = [one for one in responses if one.candidates]
    if len(found) <= 1:
        return found[0] if found else responses[0]
    problems = [one.problem for one in found if one.problem is not None]
    driven = np.any([one.driven for one in problems], axis=0)
    joint = _Problem([drive for one in problems for drive in one.drives], problems[0].dynamics, driven)
    scales = np.ma.masked_invalid([one.scale for one in problems])
    joint.scale = np.sqrt((scales**2).mean(axis=0)).filled(np.inf)
    ended, least = [], math.inf
    for kind in _KINDS:
        own = [candidate for one in found for candidate in one.candidates if candidate.kind == kind]
        if len(own) == len(found):
            ended.append((sum(one.criterion for one in own), own))
            least = min(least, ended[-1][0])
    candidates = []
    for criterion, own in ended:
        if criterion <= least + _RULED_OUT:
            together = _settled(joint, own[0].kind, np.mean([one.values for one in own], axis=0))
            candidates += [together] if isinstance(together, Candidate) else []
    if not candidates:
        return _refused("no kind of speed loops explains all recordings: they are not of one robot, or wheels slip")
    return _chosen(tuple(candidates), joint)


def _refused(reason: str) -> Response:
    return Response(tuple(undetermined(unknown, reason) for unknown in (*UNKNOWNS, FEED)))
