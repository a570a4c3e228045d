"""How a base follows the twists it is sent, by output error: dead times, lag, and the droop of friction (system 33).

`dynamics/driven_base` is run on the recorded commands, and its parameters are moved until its poses are those that were
measured. Equation errors would need derivatives of noisy poses, and a delay alone takes friction for delay: on a slow
youBot friction holds the base back by 10 mm and more.

What drifts (a wheel that slips, friction that wanders, geometry a little off) is no matter of the response: poses are
compared by how far they go within half a second, and each axis has a gain of its own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Flags, Vector, array, read_only
from youbot_dynamics.dynamics.driven_base import STATE_SIZE, DrivenBase, follow
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.errors import IdentificationError, InputError
from youbot_dynamics.identification.least_squares import (
    BlockSums,
    Estimate,
    Fit,
    Rows,
    Unknown,
    accumulate,
    fit,
    judge,
    merge,
    refusal,
    undetermined,
)
from youbot_dynamics.identification.signals import stream_gaps
from youbot_dynamics.kinematics import planar

_MEMORY = 0.5  # [s] for which a base goes on doing what it was told


@dataclass(frozen=True, eq=False)
class DriveSignals:
    """Commands and poses of one drive from rest.

    Raises:
        InputError: commands or poses and their times that differ in number.
    """

    sent: Vector  # (c,) times of the commands [s], increasing
    twists: Vector  # (c, 3) body twists that were sent, each held until the next [m/s, m/s, rad/s]
    stamps: Vector  # (m,) of the poses, on the same clock [s]
    poses: Vector  # (m, 3) in any fixed frame [m, m, rad]: ground truth, or what the wheels have rolled
    recording: int = 0  # number of the recording, another one for each

    def __post_init__(self) -> None:
        """Check the shapes, leave out what is not finite or not newer, and keep the arrays read-only."""
        # A command that cannot be read is not one to stop: the one before it is taken to hold.
        sent, twists = _sound_rows("twists", "command", self.sent, self.twists)
        stamps, poses = _sound_rows("poses", "stamp", self.stamps, self.poses)
        inside = (stamps >= sent[0]) & (stamps <= sent[-1] + 1.0) if len(sent) else np.zeros(len(stamps), dtype=bool)
        stamps, poses = stamps[inside], poses[inside]
        poses[:, 2] = np.unwrap(poses[:, 2])
        for name, value in (("sent", sent), ("twists", twists), ("stamps", stamps), ("poses", poses)):
            object.__setattr__(self, name, read_only(np.ascontiguousarray(value)))

    def commands_known(self, span: int) -> Vector:
        """Which displacements over `span` readings have their commands: (m - span,), 1 or 0.

        0 where messages of a stream are missing, a second of a damaged bag say: what the base was told then is lost.
        """
        known = np.ones(len(self.stamps) - span)
        usual = float(np.median(np.diff(self.sent)))
        for gap in stream_gaps(self.sent):
            begin, end = self.sent[gap] + usual, self.sent[gap + 1] + _MEMORY
            known[(self.stamps[span:] > begin) & (self.stamps[:-span] < end)] = 0.0
        return known


def _sound_rows(name: str, owner: str, times: ArrayLike, table: ArrayLike) -> tuple[Vector, Vector]:
    """Times (n,) and rows (n, 3) that are finite, each later than the one before it.

    Raises:
        InputError: times and rows that differ in number.
    """
    moments, rows = np.asarray(times, dtype=float), np.asarray(table, dtype=float)
    if rows.shape != (len(moments), 3):
        raise InputError(name, got=f"shape {rows.shape}", expected=f"({len(moments)}, 3), one a {owner}")
    sound = np.isfinite(moments) & np.all(np.isfinite(rows), axis=1)
    moments, rows = moments[sound], rows[sound]
    later = np.diff(moments, prepend=-np.inf) > 0.0
    return moments[later], rows[later]


def rolled_path(body_positions: ArrayLike) -> Vector:
    """Poses (m, 3) that a body rolled, from sums of its body displacements (m, 3): odometry on SE(2), from the origin.

    Args:
        body_positions: (m, 3) wheel angles through the forward kinematics [m, m, rad].
    """
    sums = array("body_positions", body_positions, (None, 3))
    poses = np.zeros((len(sums), 3))
    for k, step in enumerate(np.diff(sums, axis=0)):
        poses[k + 1] = planar.compose(poses[k], planar.exponential(step))
    return poses


_STEP = 4e-3  # [s] of the model: twice that of a prediction moves the estimates by a tenth of their error
_SPAN = 0.5  # [s] over which displacements are compared: several times lag and loop, less than friction wanders over
_LONGEST_BLOCK, _SHORTEST_BLOCK, _BLOCKS = 2.0, 0.5, 40  # [s], [s], number wanted
_FIRST_ROUNDS, _ROUNDS = 5, 25
_SETTLED = 1e-7  # relative change of the misfit at which the search ends
_ARM = 0.3  # [m] that turns the yaw into a length
_FEWEST = 200  # readings
_AXES = ("x", "y", "yaw")
_STILL = "the robot hardly moved on this axis"
_UNKNOWNS = (
    *(Unknown(f"dead_time_{axis}", "s", low=0.0, resolution=0.005, unexcited=_STILL) for axis in _AXES),
    Unknown("lag", "s", low=0.0, resolution=0.005),
    Unknown("rate", "1/s", low=0.0),
    Unknown("wheel_coulomb", "N m", low=0.0, resolution=0.02),
    Unknown("roller_coulomb", "N", low=0.0, resolution=0.1, unexcited="the robot never moved sideways in these data"),
    Unknown("viscous_x", "N s/m", low=0.0, resolution=5.0, unexcited=_STILL),
    Unknown("viscous_y", "N s/m", low=0.0, resolution=5.0, unexcited=_STILL),
    Unknown("turn_factor", "1", low=0.0, resolution=0.3, unexcited="the robot hardly turned"),
    Unknown("centre_x", "m", resolution=0.05, unexcited="the robot never moved sideways and turned"),
    *(Unknown(f"gain_{axis}", "1", unexcited=_STILL) for axis in _AXES),
)
_LOW = np.array([0.0, 0.0, 0.0, 1e-3, 2.0, 0.0, 0.0, 0.0, 0.0, 0.1, -0.3, 0.5, 0.5, 0.5])
_HIGH = np.array([1.0, 1.0, 1.0, 0.5, 500.0, 5.0, 20.0, 500.0, 500.0, 10.0, 0.3, 1.5, 1.5, 1.5])
_STEPS = np.array([1e-3, 1e-3, 1e-3, 1e-3, 0.3, 0.01, 0.03, 1.0, 1.0, 0.03, 5e-3, 1e-3, 1e-3, 1e-3])
_GAINS = slice(11, 14)  # places in _UNKNOWNS
# The same as values within the search, whose intervals are judged later.
_VALUES = tuple(
    Unknown(one.name, one.unit, low, high, math.inf, _STILL)
    for one, low, high in zip(_UNKNOWNS, _LOW.tolist(), _HIGH.tolist(), strict=True)
)
_LAGS = (0.01, 0.03, 0.06)  # [s] the search starts from
_DRIVEN = 0.05  # [m, m, rad] way of the commands on an axis below which nothing is asked of it
_WORST_MISFIT = 0.1  # of the displacements, as a share of them, above which the model is not believed


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
    sums: BlockSums | None = None  # of the linear problem, for `combined_response`

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
    useful = [one for one in drives if _tells(one)]
    if not useful:
        return _refused("too few poses while commands were sent")
    way = sum(np.abs(np.diff(one.sent)) @ np.abs(one.twists[:-1]) for one in useful)
    if not np.any(way > _DRIVEN):
        return _refused("the robot was never asked to move")
    problem = _Problem(useful, dynamics, np.asarray(way > _DRIVEN))
    centre = dynamics.centre_of_mass[0]
    friction = (dynamics.wheel_coulomb, dynamics.roller_coulomb, dynamics.viscous_x, dynamics.viscous_y)
    starts = [
        np.array([*np.maximum(first - lag, 0.02), lag, 0.5 / lag, *friction, 1.0, centre, 1.0, 1.0, 1.0])
        for lag in _LAGS
    ]
    _, begun = min((_search(problem, start, _FIRST_ROUNDS) for start in starts), key=lambda ended: ended[0])
    return _judged(problem, _search(problem, begun, _ROUNDS)[1])


def _span(one: DriveSignals) -> int:
    """Readings within `_SPAN`."""
    return max(1, round(_SPAN / float(np.median(np.diff(one.stamps)))))


def _tells(one: DriveSignals) -> bool:
    """Whether enough is left of a drive: of 1 kHz for a blink, or with most of its commands lost, nothing is."""
    if len(one.stamps) < _FEWEST or len(one.sent) <= 1:
        return False
    span = _span(one)
    return span < len(one.stamps) and float(np.sum(one.commands_known(span))) >= _FEWEST / 2


class _Problem:
    """Displacements of model and readings, weighted, for the unknowns that the drives excite."""

    def __init__(self, drives: Sequence[DriveSignals], dynamics: MecanumDynamics, driven: Flags) -> None:
        self.drives = drives
        self.dynamics = dynamics
        x, y, yaw = driven.tolist()
        coulomb, turning = [True, y or yaw], [yaw and (x or y), yaw and y]
        # In the order of _UNKNOWNS: dead times; lag and rate; Coulomb and viscous friction; turn and centre; gains.
        self.free = np.flatnonzero([x, y, yaw, True, True, *coulomb, x, y, *turning, x, y, yaw])
        self.spans = [_span(one) for one in drives]
        self.told = [one.commands_known(span) for one, span in zip(drives, self.spans, strict=True)]

    def residuals(self, x: Vector) -> list[Vector]:
        """Measured less modelled displacement (k, 3) of each drive in the body frame, the yaw as a length."""
        base = _base_of(x, self.dynamics)
        found = []
        for one, span, told in zip(self.drives, self.spans, self.told, strict=True):
            poses = np.zeros((len(one.stamps), 3))
            twists = np.ascontiguousarray(one.twists * x[_GAINS])
            begin, end, state = float(one.sent[0]), float(one.stamps[-1]) + _STEP, np.zeros(STATE_SIZE)
            follow(base.constants, state, begin, end, _STEP, one.sent, twists, one.stamps, poses)
            found.append((displacements(one.poses, span) - displacements(poses, span)) * told[:, None])
        return found

    def stacked(self, x: Vector) -> Vector:
        """All residuals (r,)."""
        return np.concatenate([part.ravel() for part in self.residuals(x)])


def _base_of(x: Vector, dynamics: MecanumDynamics) -> DrivenBase:
    """Model with the numbers (14,)."""
    felt = dataclasses.replace(
        dynamics,
        wheel_coulomb=x[5],
        roller_coulomb=x[6],
        viscous_x=x[7],
        viscous_y=x[8],
        centre_of_mass=(float(x[10]), dynamics.centre_of_mass[1]),
    )
    return DrivenBase(felt, x[:3], float(x[3]), float(x[4]), float(x[9]))


def displacements(poses: Vector, span: int) -> Vector:
    """How far each pose (m, 3) is from that `span` readings before, in the frame of that one: (m - span, 3) [m]."""
    before, after = poses[:-span], poses[span:]
    c, s = np.cos(before[:, 2]), np.sin(before[:, 2])
    x, y = (after - before)[:, :2].T
    return np.column_stack([c * x + s * y, c * y - s * x, _ARM * (after[:, 2] - before[:, 2])])


def _search(problem: _Problem, start: Vector, rounds: int) -> tuple[float, Vector]:
    """Misfit and solution (14,) of Levenberg and Marquardt within the bounds."""
    free, low, high = problem.free, _LOW[problem.free], _HIGH[problem.free]
    x = start.copy()
    x[free] = np.clip(start[free], low, high)
    residual = problem.stacked(x)
    misfit, damping = float(residual @ residual), 1e-3
    for _ in range(rounds):
        slopes = _slopes(problem, x, residual)
        if not np.any(slopes):
            break  # at rest wherever the commands are known
        normal, moment = slopes.T @ slopes, slopes.T @ residual
        scale = np.diag(normal) + 1e-12 * np.max(np.diag(normal))
        better = None
        while damping < 1e8:
            step = np.linalg.solve(normal + damping * np.diag(scale), -moment)
            trial = x.copy()
            trial[free] = np.clip(x[free] + step, low, high)
            left = problem.stacked(trial)
            if float(left @ left) < misfit:
                better = (trial, left)
                damping = max(damping / 5.0, 1e-9)
                break
            damping *= 5.0
        if better is None:
            break
        gained = misfit - float(better[1] @ better[1])
        x, residual = better
        misfit -= gained
        if gained < _SETTLED * misfit:
            break
    return misfit, x


def _slopes(problem: _Problem, x: Vector, residual: Vector) -> Vector:
    """Slopes (r, f) of the residuals over the free unknowns."""
    columns = []
    for k in problem.free:
        moved = x.copy()
        size = _STEPS[k] if x[k] + _STEPS[k] <= _HIGH[k] else -_STEPS[k]
        moved[k] += size
        columns.append((problem.stacked(moved) - residual) / size)
    return np.column_stack(columns)


def _judged(problem: _Problem, x: Vector) -> Response:
    """Estimates with intervals about a solution (14,)."""
    residual = problem.stacked(x)
    slopes = np.zeros((len(residual), len(_UNKNOWNS)))
    slopes[:, problem.free] = -_slopes(problem, x, residual)
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
        power += float(np.sum(moved * moved))
    if power == 0.0:
        return _refused("the base never moved")
    if float(residual @ residual) > _WORST_MISFIT**2 * power:
        share = math.sqrt(float(residual @ residual) / power)
        return _refused(f"the model leaves {share:.0%} of the motion unexplained: moved by others, or slipping")
    sums = merge([accumulate(piece) for piece in pieces])
    try:
        linear = fit(sums, _VALUES)
    except IdentificationError as too_little:
        return _refused(too_little.got)
    rows = max(1.0, float(np.sum(np.concatenate(problem.told))))
    rms = np.sqrt(np.sum(np.concatenate(problem.residuals(x)) ** 2, axis=0) / rows) / np.array([1.0, 1.0, _ARM])
    return _response(x, linear, sums, problem.dynamics, rms)


def _response(x: Vector, linear: Fit, sums: BlockSums, dynamics: MecanumDynamics, residual: Vector) -> Response:
    """Response with the values (14,), their intervals by the linear fit of `sums`; residual (3,) as in `Response`."""
    estimates = []
    for k, unknown in enumerate(_UNKNOWNS):
        error = math.sqrt(float(linear.covariance[k, k]))
        if linear.estimates[k].verdict == refusal(_STILL):
            estimates.append(undetermined(unknown, unknown.unexcited))
        elif not math.isfinite(error):
            estimates.append(undetermined(unknown, "these drives do not tell it from the others"))
        else:
            estimates.append(_within_search(k, judge(unknown, float(x[k]), error, linear.reach(error))))
    squares = sums.squares().sum(axis=0)
    against = np.append(-x, 1.0)
    told = np.array([one.verdict != refusal(_STILL) for one in linear.estimates])
    doubt = float(np.sum(squares[:-1, :-1][np.ix_(told, told)] * linear.covariance[np.ix_(told, told)]))
    return Response(
        tuple(estimates), _base_of(x, dynamics), linear, residual, doubt < float(against @ squares @ against), sums
    )


def combined_response(responses: Sequence[Response]) -> Response:
    """One response from those of several recordings: the fit of all of them together, each linear about its solution.

    Sums of their squares add up, so what one recording leaves open the others tell; intervals come from the blocks of
    all. (Weights by inverse covariances would make intervals three times too narrow: the directions that a recording
    hardly tells differ from one to the next by chance, and each would seem to tell what the other leaves open.)

    Args:
        responses: of one robot, at least one, each of a recording with another number.
    """
    told = [one for one in responses if one.sums is not None]
    if len(told) <= 1:
        return told[0] if told else responses[0]
    sums = merge([one.sums for one in told if one.sums is not None])
    linear = fit(sums, _VALUES)
    first = told[0].base
    assert first is not None  # it has sums
    found = np.array([estimate.value for estimate in linear.estimates])
    x = np.where(np.isfinite(found), found, _numbers(first))
    residual = np.sqrt(np.mean([one.residual**2 for one in told], axis=0))
    return _response(x, linear, sums, first.dynamics, residual)


def _numbers(base: DrivenBase) -> Vector:
    """Values (14,) of a model, gains of 1 beside them."""
    own = base.dynamics
    friction = (own.wheel_coulomb, own.roller_coulomb, own.viscous_x, own.viscous_y)
    return np.array(
        [*base.dead_times, base.lag, base.rate, *friction, base.turn_factor, own.centre_of_mass[0], 1.0, 1.0, 1.0]
    )


def _within_search(k: int, estimate: Estimate) -> Estimate:
    """Estimate of the k-th unknown, refused where the search ended at one of its ends instead of at a least misfit.

    At 0, and at the shortest lag, a physical end is meant: what lies beyond is none.
    """
    ends = [_HIGH[k]] if _LOW[k] <= _UNKNOWNS[k].resolution else [_LOW[k], _HIGH[k]]
    if not np.any(np.isclose(estimate.value, ends, rtol=1e-6, atol=0.0)):
        return estimate
    reason = f"the best value lies at the end of the search, {estimate.value:g} {estimate.unit}"
    return dataclasses.replace(estimate, verdict=refusal(reason))


def _refused(reason: str) -> Response:
    return Response(tuple(undetermined(unknown, reason) for unknown in _UNKNOWNS))
