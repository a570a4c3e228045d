"""The two thermal nodes of a motor, winding and housing, with exact time steps.

With the rises x = T_w - T_amb and y = T_h - T_amb above the ambient, the mean square current q and the friction power
P_f that heats the housing,

    C_w x' = (R_a + R' x) q - (x - y) / R_wh
    C_h y' = (x - y) / R_wh - y / R_ha + P_f

where R_a is the resistance at ambient temperature and R' = dR/dT. For constant q the equations are linear,
(x, y)' = A (x, y) + b, and are solved in closed form. The coupling terms of A are positive, so its two eigenvalues are
real and distinct; one of them is positive above the run-away current.

The kernels take a motor as the array `constants` (7,) = R_a [Ohm], R' [Ohm/K], 1/R_wh [W/K], 1/R_ha [W/K], C_w [J/K],
C_h [J/K], T_amb [degC]: `ThermalMotor.heat_constants`. They check nothing and can be called from compiled loops.
Source: document 000, T row; system 5; D-000-6.
"""

from __future__ import annotations

import math

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled

# exp of more than this overflows a float64; plain Python would raise where numba returns infinity.
_LARGEST_EXPONENT = 700.0


@compiled
def _mean_growth(exponent: float) -> float:
    """Mean of exp(s exponent) over s in 0..1, (exp(exponent) - 1) / exponent, accurate near zero."""
    if exponent == 0.0:
        return 1.0
    if exponent > _LARGEST_EXPONENT:
        return math.inf
    return math.expm1(exponent) / exponent


@compiled
def heat_matrix(constants: Vector, mean_square_current: float) -> tuple[float, float, float, float]:
    """System matrix A [1/s] of the rises, row by row, from `constants` (7,) and the mean square current [A^2]."""
    growth, exchange, loss = constants[1] * mean_square_current, constants[2], constants[3]
    winding, housing = constants[4], constants[5]
    return (growth - exchange) / winding, exchange / winding, exchange / housing, -(exchange + loss) / housing


@compiled
def heat_integral(constants: Vector, mean_square_current: float, dt: float) -> tuple[float, float, float, float]:
    """Matrix G = integral of exp(A s) over s in 0..dt [s], row by row; valid for any dt and for a growing mode.

    G = sum over the eigenvalues l of A of dt (exp(l dt) - 1) / (l dt) times the projector onto the mode. This needs no
    inverse of A, which is singular at the run-away current. exp(A dt) = 1 + G A.

    Args:
        constants: (7,) of the motor.
        mean_square_current: q [A^2], constant over the step.
        dt: [s], any length, not negative.
    """
    a, b, c, d = heat_matrix(constants, mean_square_current)
    exchange, loss = constants[2], constants[3]
    # a d - b c loses all digits near the run-away current; in this expanded form the large terms cancel exactly.
    determinant = exchange * loss - constants[1] * mean_square_current * (exchange + loss)
    determinant /= constants[4] * constants[5]
    middle, half_difference = 0.5 * (a + d), 0.5 * (a - d)
    half_gap = math.sqrt(half_difference**2 + b * c)
    # Of each pair, the value that would suffer cancellation is computed from the product of the two.
    if middle <= 0.0:
        fast = middle - half_gap
        slow = determinant / fast
    else:
        slow = middle + half_gap
        fast = determinant / slow
    larger = half_gap + abs(half_difference)
    smaller = b * c / larger
    of_winding, of_housing = (larger, smaller) if half_difference >= 0.0 else (smaller, larger)
    slow_part = dt * _mean_growth(slow * dt) / (2.0 * half_gap)
    fast_part = dt * _mean_growth(fast * dt) / (2.0 * half_gap)
    return (
        slow_part * of_winding + fast_part * of_housing,
        (slow_part - fast_part) * b,
        (slow_part - fast_part) * c,
        slow_part * of_housing + fast_part * of_winding,
    )


@compiled
def heat_rates(
    constants: Vector, winding: float, housing: float, mean_square_current: float, friction_power: float
) -> tuple[float, float]:
    """Rates [K/s] of the winding and housing temperature [degC]; `constants` (7,), current [A^2], friction heat [W]."""
    ambient = constants[6]
    copper_loss = (constants[0] + constants[1] * (winding - ambient)) * mean_square_current
    flow = (winding - housing) * constants[2]
    return (copper_loss - flow) / constants[4], (
        flow - (housing - ambient) * constants[3] + friction_power
    ) / constants[5]


@compiled
def heat_step(
    constants: Vector, winding: float, housing: float, mean_square_current: float, friction_power: float, dt: float
) -> tuple[float, float]:
    """Winding and housing temperature [degC] a time dt later: T(dt) = T(0) + G T'(0), exact and stable for any dt.

    Args:
        constants: (7,) of the motor.
        winding: [degC].
        housing: [degC].
        mean_square_current: [A^2], constant over the step.
        friction_power: heat put into the housing [W], constant over the step.
        dt: [s], not negative.
    """
    of_winding, of_housing = heat_rates(constants, winding, housing, mean_square_current, friction_power)
    g11, g12, g21, g22 = heat_integral(constants, mean_square_current, dt)
    return winding + g11 * of_winding + g12 * of_housing, housing + g21 * of_winding + g22 * of_housing


@compiled
def heat_history(
    constants: Vector, winding: float, housing: float, current: Vector, friction_power: Vector, dt: Vector, out: Vector
) -> None:
    """Step a whole log; row k of `out` has the temperatures [degC] after its step k.

    Args:
        constants: (7,) of the motor.
        winding: at the start [degC].
        housing: at the start [degC].
        current: (n,) [A], constant over each step.
        friction_power: (n,) heat put into the housing [W].
        dt: (n,) [s].
        out: (n, 2) output.
    """
    for k in range(len(current)):
        winding, housing = heat_step(constants, winding, housing, current[k] ** 2, friction_power[k], dt[k])
        out[k, 0] = winding
        out[k, 1] = housing
