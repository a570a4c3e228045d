"""Heat model of a motor in the filter: load over its steps, thermal network, and one exact step with its Jacobian.

State (8,): winding, housing and ambient temperature [degC]; logarithms of the factors between the actual and the
data-sheet values of R_wh, R_ha, C_w, C_h and the winding's resistance. The temperatures follow
`dynamics/thermal_motor`. With f the rates of both nodes, A their derivatives and Phi(t) = exp(A t), the derivative by
a constant c is

    dT+/dc = integral of Phi(dt - s) df/dc(T(s)) ds

by Simpson's rule on exact values. Its relative error is (dt / tau_w)^4 / 2880, 1e-7 in steps of a tenth of tau_w.
Source: system 5; D-000-6.
"""

from __future__ import annotations

import math

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.thermal_motor import heat_integral, heat_matrix, heat_rates, heat_step

LAST, BEGUN = range(2)  # elements of the clock (2,): stamp of the last message, start of the sum [s]


@compiled
def gather(
    stamps: Vector, currents: Vector, period: float, clock: Vector, current: Vector, charge: Vector
) -> tuple[int, bool]:
    """Sum i^2 over messages until a period [s] is full; the current is linear between messages.

    Stamps (t,) that are not after the last one change nothing; currents (t, n) [A] that are NaN keep the last value.
    Changed are the clock (2,), see LAST, the last current (n,) [A] and the charge (n,), the integral of i^2 [A^2 s].
    Returns the number of processed messages, and whether the period is full.
    """
    for t in range(len(stamps)):
        elapsed = stamps[t] - clock[LAST]
        if not elapsed > 0.0:
            continue
        for i in range(len(current)):
            before, now = current[i], currents[t, i]
            if not math.isfinite(now):
                now = before
            charge[i] += elapsed * (before * before + before * now + now * now) / 3.0
            current[i] = now
        clock[LAST] = stamps[t]
        if clock[LAST] - clock[BEGUN] >= period:
            return t + 1, True
    return len(stamps), False


@compiled
def average(elapsed: Vector, currents: Vector, time_constant: float, squares: Vector, weights: Vector) -> None:
    """Update an average of i^2 with exponential forgetting over messages; a NaN changes nothing.

    `elapsed` (t,) is the time since the previous message [s], `currents` (t, n) are in A, `time_constant` is that of
    the forgetting [s]. `squares` over `weights` (n,), both changed, is the average [A^2].
    """
    for t in range(len(elapsed)):
        fading = -math.expm1(-elapsed[t] / time_constant)
        for i in range(len(squares)):
            now = currents[t, i]
            if math.isfinite(now):
                squares[i] += fading * (now * now - squares[i])
                weights[i] += fading * (1.0 - weights[i])


# Indices of the state.
WINDING, HOUSING, AMBIENT, TO_HOUSING, TO_AMBIENT, WINDING_CAPACITY, HOUSING_CAPACITY, RESISTANCE = range(8)
STATES = 8
# Indices of a motor's data-sheet constants (7,).
(
    REFERENCE_RESISTANCE,  # [Ohm]
    COEFFICIENT,  # [1/K]
    REFERENCE_TEMPERATURE,  # [degC]
    SHEET_TO_HOUSING,  # [K/W]
    SHEET_TO_AMBIENT,  # [K/W]
    SHEET_WINDING_CAPACITY,  # [J/K]
    SHEET_HOUSING_CAPACITY,  # [J/K]
) = range(7)


@compiled
def network(sheet: Vector, mean: Vector) -> Vector:
    """Constants (7,) for `heat_step`, from a motor's data sheet (7,) and the filter's state (8,)."""
    out = np.empty(7)
    resistance = sheet[REFERENCE_RESISTANCE] * math.exp(mean[RESISTANCE])
    out[0] = resistance * (1.0 + sheet[COEFFICIENT] * (mean[AMBIENT] - sheet[REFERENCE_TEMPERATURE]))
    out[1] = resistance * sheet[COEFFICIENT]
    out[2] = 1.0 / (sheet[SHEET_TO_HOUSING] * math.exp(mean[TO_HOUSING]))
    out[3] = 1.0 / (sheet[SHEET_TO_AMBIENT] * math.exp(mean[TO_AMBIENT]))
    out[4] = sheet[SHEET_WINDING_CAPACITY] * math.exp(mean[WINDING_CAPACITY])
    out[5] = sheet[SHEET_HOUSING_CAPACITY] * math.exp(mean[HOUSING_CAPACITY])
    out[6] = mean[AMBIENT]
    return out


@compiled
def rate_slopes(constants: Vector, winding: float, housing: float, square: float, out: Vector) -> None:
    """Write the derivatives (2, 6) of both rates by the ambient temperature [1/s] and the five logarithms [K/s].

    `constants` (7,) are from `network`, `winding` and `housing` in degC, `square` is the mean square current [A^2].
    """
    of_winding, of_housing = heat_rates(constants, winding, housing, square, 0.0)
    flow = (winding - housing) * constants[2]
    loss = (constants[0] + constants[1] * (winding - constants[6])) * square
    out[:] = 0.0
    out[1, 0] = constants[3] / constants[5]
    out[0, 1] = flow / constants[4]
    out[1, 1] = -flow / constants[5]
    out[1, 2] = (housing - constants[6]) * constants[3] / constants[5]
    out[0, 3] = -of_winding
    out[1, 4] = -of_housing
    out[0, 5] = loss / constants[4]


@compiled
def transition(constants: Vector, square: float, dt: float, out: Vector) -> None:
    """Write Phi(dt) = 1 + G A (2, 2) of both nodes into out; constants (7,), square [A^2], dt [s]."""
    g11, g12, g21, g22 = heat_integral(constants, square, dt)
    a11, a12, a21, a22 = heat_matrix(constants, square)
    out[0, 0] = 1.0 + g11 * a11 + g12 * a21
    out[0, 1] = g11 * a12 + g12 * a22
    out[1, 0] = g21 * a11 + g22 * a21
    out[1, 1] = 1.0 + g21 * a12 + g22 * a22


@compiled
def warm(sheet: Vector, mean: Vector, square: float, dt: float, jacobian: Vector) -> None:
    """Advance the mean (8,) by dt at a mean square current [A^2]; multiply the Jacobian (8, 8) by that of the step.

    dt [s] must be short against the winding's time constant; `sheet` are the constants (7,).
    """
    constants = network(sheet, mean)
    winding, housing = mean[WINDING], mean[HOUSING]
    half_winding, half_housing = heat_step(constants, winding, housing, square, 0.0, 0.5 * dt)
    mean[WINDING], mean[HOUSING] = heat_step(constants, winding, housing, square, 0.0, dt)
    whole, half = np.empty((2, 2)), np.empty((2, 2))
    transition(constants, square, dt, whole)
    transition(constants, square, 0.5 * dt, half)
    start, middle, end = np.empty((2, 6)), np.empty((2, 6)), np.empty((2, 6))
    rate_slopes(constants, winding, housing, square, start)
    rate_slopes(constants, half_winding, half_housing, square, middle)
    rate_slopes(constants, mean[WINDING], mean[HOUSING], square, end)
    rows = np.empty((2, STATES))
    for i in range(2):
        rows[i, 0], rows[i, 1] = whole[i, 0], whole[i, 1]
        for c in range(6):
            from_start = whole[i, 0] * start[0, c] + whole[i, 1] * start[1, c]
            from_middle = half[i, 0] * middle[0, c] + half[i, 1] * middle[1, c]
            rows[i, 2 + c] = dt / 6.0 * (from_start + 4.0 * from_middle + end[i, c])
    # The ambient also affects the loss: R is that at ambient plus its increase, and their sum does not depend on it.
    before = jacobian.copy()
    for i in range(2):
        for j in range(STATES):
            total = 0.0
            for k in range(STATES):
                total += rows[i, k] * before[k, j]
            jacobian[i, j] = total
