"""Stiffness of a joint's bristles from reversals, and their damping where readings come fast enough (systems 9, 10).

While a joint turns round, its friction follows the way it went, not the time: from +coulomb to -coulomb along
coulomb (1 - 2 exp(-sigma0 x / coulomb)), x the way since the reversal. That is where sigma0 shows, and nowhere else.
sigma1 acts on the rate of the deflection, for some milliseconds: at 50 readings a second nothing of it is seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar, nnls

from youbot_dynamics.errors import IdentificationError
from youbot_dynamics.identification.arm.arm_windows import ArmSignals
from youbot_dynamics.identification.arm.reversals import Reversals, near_reversals
from youbot_dynamics.identification.arm_friction import ArmFriction
from youbot_dynamics.identification.fitting.block_sums import Rows
from youbot_dynamics.identification.fitting.verdict import Estimate, Unknown, judge, undetermined
from youbot_dynamics.identification.least_squares import least_squares

Vector = NDArray[np.float64]

SLOWEST_RATE = 500.0  # [1/s] of readings below which sigma1 is not looked for
_STEEPEST, _FLATTEST = 3e5, 30.0  # [1/rad] sigma0 / coulomb that are tried
_END = 1.01  # of the softest that are tried: the search stopped there, not at a least misfit
_FEWEST_IN_TRANSITION = 2.0  # readings, on average over the reversals, while the bristles bend over
_TRANSITION = 3.0  # lengths coulomb / sigma0 that this takes
_SMOOTHING = 0.05
_SIGMA0, _SIGMA1 = Unknown("sigma0", "N m/rad", low=0.0), Unknown("sigma1", "N m s/rad", low=0.0)


@dataclass(frozen=True, eq=False)
class Bristles:
    """Bristles of a joint as identified.

    Args:
        sigma0: stiffness [N m/rad].
        sigma1: damping [N m s/rad].
        coulomb: Coulomb torque at these reversals [N m].
        reversals: number of them.
        in_transition: readings while the bristles bend over, on average over the reversals.
    """

    sigma0: Estimate
    sigma1: Estimate
    coulomb: float = math.nan
    reversals: int = 0
    in_transition: float = 0.0


def fit_bristles(recordings: Sequence[ArmSignals], found: ArmFriction, joint: str) -> Bristles:
    """sigma0, and sigma1 where the rate allows, of one joint.

    The torque near each reversal, less weight, inertia and viscous friction as identified, is coulomb times a function
    of the way with one unknown, sigma0 / coulomb, which is searched; each reversal has a constant of its own for what
    the bodies leave over. Blocks of the intervals are reversals.

    Args:
        recordings: that `found` was identified from, or others of the same arm.
        found: friction and bodies.
        joint: its name.
    """
    places = [k for k, row in enumerate(found.rows) if found.model.joint_names[row.joint] == joint]
    if not places or found.fit is None:
        return _refused(found[joint].estimates[0].verdict.removeprefix("not identifiable: "))
    near = near_reversals(recordings, found, places[0])
    if near is None:
        return _refused("the joint never turned round while it slid")

    def misfit(log: float) -> float:
        table = _columns(near, math.exp(log))
        left = near.torque - table @ _solved(table, near.torque)
        return float(left @ left)

    grid = np.linspace(math.log(_FLATTEST), math.log(_STEEPEST), 40)
    k = int(np.argmin([misfit(float(log)) for log in grid]))
    bounds = (float(grid[max(0, k - 1)]), float(grid[min(len(grid) - 1, k + 1)]))
    steepness = math.exp(float(minimize_scalar(misfit, bounds=bounds, method="bounded").x))
    seen = near.readings_within(_TRANSITION / steepness)
    if seen < _FEWEST_IN_TRANSITION or k == len(grid) - 1:
        reason = f"the bristles bend over within {seen:.1f} readings: turn round more slowly, or read faster"
        return _refused(reason, near.count, seen)
    if not _solved(_columns(near, steepness), near.torque)[0] > 0.0:
        return _refused("the torque at the reversals shows no friction, or its sign is wrong", near.count, seen)
    if steepness < _FLATTEST * _END:
        reason = f"they are softer than {_FLATTEST:g} times the Coulomb torque a radian, the end of the search"
        return _refused(reason, near.count, seen)
    try:
        return _about(near, steepness, seen)
    except IdentificationError:
        asked = steepness * _solved(_columns(near, steepness), near.torque)[0]
        reason = f"{near.count} reversals are too few to judge by; they ask for {asked:.3g} N m/rad"
        return _refused(reason, near.count, seen)


def _columns(near: Reversals, steepness: float) -> Vector:
    """Columns (r, 2) of the Coulomb torque and of sigma1.

    The damping of the bristles weighs as much as their stiffness where they swing back quickly: left out, sigma0 came
    out up to three times too large. So it is always fitted, though only fast readings say how large it is.
    """
    share, rate = near.bent(steepness)
    table: Vector = np.column_stack([share, rate / steepness])
    return table


def _solved(table: Vector, torque: Vector) -> Vector:
    """Coulomb torque and sigma1 (2,) for columns (r, 2) and torques (r,); neither can be negative."""
    return np.asarray(nnls(table, torque)[0], dtype=np.float64)


def _about(near: Reversals, steepness: float, seen: float) -> Bristles:
    """Estimates from the fit that is linear about the solution."""
    table, step = _columns(near, steepness), 1e-3
    values = _solved(table, near.torque)
    steeper, flatter = (_columns(near, steepness * math.exp(sign * step)) @ values for sign in (1.0, -1.0))
    unknowns = [Unknown("coulomb", "N m"), _SIGMA1, Unknown("logarithm of the steepness", "1")]
    columns = np.column_stack([table, (steeper - flatter) / (2.0 * step)])
    fit = least_squares([Rows(near.number.astype(np.float64) + 0.5, columns, near.torque)], unknowns, robust=False)
    # sigma0 = coulomb x steepness: the relative changes add up.
    coulomb, errors = float(values[0]), fit.covariance[np.ix_([0, 2], [0, 2])]
    relative, sigma0 = np.array([1.0 / coulomb, 1.0]), coulomb * steepness
    # What reversals have in common, the scatter between them hides: half a reading more or less in the transition, and
    # the smoothing of the positions, a twentieth. Measured on simulated arms whose bristles are known.
    common = max(_SMOOTHING, 0.5 / seen)
    error = sigma0 * math.hypot(math.sqrt(float(relative @ errors @ relative)), common)
    stiffness = judge(_SIGMA0, sigma0, error, fit.reach(error))
    error = math.hypot(math.sqrt(float(fit.covariance[1, 1])), common * float(values[1]))
    damping = judge(_SIGMA1, float(values[1]), error, fit.reach(error))
    if near.rate < 0.95 * SLOWEST_RATE:
        slow = f"{near.rate:.0f} readings a second, its effect lasts milliseconds: {SLOWEST_RATE:.0f} are needed"
        damping = undetermined(_SIGMA1, slow)
    return Bristles(stiffness, damping, coulomb, near.count, seen)


def _refused(reason: str, reversals: int = 0, in_transition: float = 0.0) -> Bristles:
    pair = undetermined(_SIGMA0, reason), undetermined(_SIGMA1, reason)
    return Bristles(*pair, reversals=reversals, in_transition=in_transition)
