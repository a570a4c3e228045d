"""Unknowns of the response fit, the range of their search, and their priors."""

from __future__ import annotations

import math

import numpy as np

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.dynamics.mecanum_dynamics import MecanumDynamics
from youbot_dynamics.identification.least_squares import Kind, Reason, Unknown, with_unit

AXES = ("x", "y", "yaw")
DISTURBED = "something else moved the base, or its wheels slipped"  # why drives do not fit
STILL = "the robot hardly moved on this axis"
UNKNOWNS = (
    *(Unknown(f"dead_time_{axis}", "s", low=0.0, unexcited=STILL) for axis in AXES),
    Unknown("lag", "s", low=0.0),
    Unknown("rate", "1/s", low=0.0),
    Unknown("wheel_coulomb", "N m", low=0.0),
    Unknown("roller_coulomb", "N", low=0.0, unexcited="the robot never moved sideways in these data"),
    Unknown("viscous_x", "N s/m", low=0.0, unexcited=STILL),
    Unknown("viscous_y", "N s/m", low=0.0, unexcited=STILL),
    Unknown("turn_factor", "1", low=0.0, unexcited="the robot hardly turned"),
    Unknown("centre_x", "m", unexcited="the robot never moved sideways and turned"),
    *(Unknown(f"gain_{axis}", "1", unexcited=STILL) for axis in AXES),
    Unknown("integral", "1", low=0.0, unexcited="the loops have no integral action"),
)
FEED = Unknown("feed", "1")  # selected with the kind of loops, not fitted
LOW = np.array([0.0, 0.0, 0.0, 1e-3, 2.0, 0.0, 0.0, 0.0, 0.0, 0.1, -0.3, 0.5, 0.5, 0.5, 0.01])
HIGH = np.array([1.0, 1.0, 1.0, 0.5, 500.0, 5.0, 20.0, 500.0, 500.0, 10.0, 0.3, 1.5, 1.5, 1.5, 50.0])
STEPS = np.array([1e-3, 1e-3, 1e-3, 1e-3, 0.3, 0.01, 0.03, 1.0, 1.0, 0.03, 5e-3, 1e-3, 1e-3, 1e-3, 0.03])
LAG, RATE, TURN, CENTRE, INTEGRAL = 3, 4, 9, 10, 14  # indices into UNKNOWNS
GAINS = slice(11, 14)
INNER = (RATE, *range(5, 11), INTEGRAL)  # of the loops and their disturbances
TOGETHER = Reason(Kind.CONFUSED, "only its combination with the other numbers of the loops is determined")
NO_INTEGRAL = Reason(Kind.NOT_OF_THE_ROBOT, "the loops have no integral action")
UNLOADED_WHEELS = Reason(
    Kind.NOT_OF_THE_ROBOT, "the wheels follow their commands whatever the load: friction and loops do not show"
)
_NO_FRICTION = Reason(Kind.AT_BOUND, "these drives show no such friction")
NIL = range(5, 9)  # friction, which may be zero
# Standard deviations of the priors: of ln(2 rate lag), ln(turn_factor), centre_x [m], ln(integral) and gains. Loops
# settle about as fast as they respond; yaw inertia and load of a robot are not known better than this.
_RATE_DEVIATION, _TURN_DEVIATION, _CENTRE_DEVIATION, _INTEGRAL_DEVIATION, _GAIN_DEVIATION = 0.7, 0.3, 0.05, 1.0, 1e-3
# The same for values within the search, whose intervals are judged later.
VALUES = tuple(
    Unknown(unknown.name, unknown.unit, low, high, math.inf, STILL)
    for unknown, low, high in zip(UNKNOWNS, LOW.tolist(), HIGH.tolist(), strict=True)
)


def priors(x: Vector, centre: float) -> tuple[Vector, Vector]:
    """Residuals (7,) of the priors for values (15,), in standard deviations, and their slopes (7, 15).

    They are about speed loops under load: 0 where there are none.
    """
    residuals, slopes = np.zeros(7), np.zeros((7, len(x)))
    if x[RATE] <= 0.0:
        return residuals, slopes
    residuals[0] = math.log(2.0 * x[RATE] * x[LAG]) / _RATE_DEVIATION
    slopes[0, RATE], slopes[0, LAG] = 1.0 / (x[RATE] * _RATE_DEVIATION), 1.0 / (x[LAG] * _RATE_DEVIATION)
    for row, k, deviation in ((1, TURN, _TURN_DEVIATION), (3, INTEGRAL, _INTEGRAL_DEVIATION)):
        if x[k] > 0.0:
            residuals[row], slopes[row, k] = math.log(x[k]) / deviation, 1.0 / (x[k] * deviation)
    residuals[2], slopes[2, CENTRE] = (x[CENTRE] - centre) / _CENTRE_DEVIATION, 1.0 / _CENTRE_DEVIATION
    if x[INTEGRAL] > 0.0:
        return residuals, slopes
    # For P loops viscous friction acts as a gain. Commands and readings use the same geometry, so there is no other.
    residuals[4:] = (x[GAINS] - 1.0) / _GAIN_DEVIATION
    slopes[np.arange(4, 7), np.arange(*GAINS.indices(len(x)))] = 1.0 / _GAIN_DEVIATION
    return residuals, slopes


def reset_at_bounds(x: Vector, free: Indices, dynamics: MecanumDynamics) -> tuple[Vector, dict[int, Reason]]:
    """Values (15,) with those at a bound set back to their prior, and the reason for each of these.

    Friction at 0 is kept, since there may be none. Dead times and gains have no prior; `value_at_bound` refuses them.
    """
    values, reasons = x.copy(), dict[int, Reason]()
    if x[RATE] <= 0.0:  # without loops under load, no lag is as good as any
        return values, reasons
    expected = {LAG: 0.5 / x[RATE], RATE: 0.5 / x[LAG], TURN: 1.0, CENTRE: dynamics.centre_of_mass[0]}
    friction = (dynamics.wheel_coulomb, dynamics.roller_coulomb, dynamics.viscous_x, dynamics.viscous_y)
    expected |= {INTEGRAL: 1.0, **dict(zip(NIL, friction, strict=True))}
    for k in free.tolist():
        if k in NIL and x[k] <= 0.0:
            reasons[k] = _NO_FRICTION
        elif k in expected and not LOW[k] < x[k] < HIGH[k]:
            margin = 0.01 * (HIGH[k] - LOW[k])
            values[k] = min(max(expected[k], LOW[k] + margin), HIGH[k] - margin)
            bound = with_unit(f"{x[k]:g}", UNKNOWNS[k].unit)
            kept = f"the best value is at the bound of the search, {bound}; the configured one is kept"
            reasons[k] = Reason(Kind.AT_BOUND, kept)
    return values, reasons


def value_at_bound(x: Vector, free: Indices) -> Reason | None:
    """Reason of the value without a prior in x (15,) that ended at a bound of the search; None for none."""
    for k in free.tolist():
        if (k < LAG or k in range(*GAINS.indices(len(x)))) and not LOW[k] < x[k] < HIGH[k]:
            unknown = UNKNOWNS[k]
            bound = with_unit(f"{x[k]:g}", unknown.unit)
            return Reason(Kind.AT_BOUND, f"{unknown.name} is at the bound of the search, {bound}: {DISTURBED}")
    return None
