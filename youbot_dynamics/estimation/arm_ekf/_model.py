"""Mean and covariance of the arm's filter over a step and a measurement: compiled code for `arm_ekf`.

The covariance (m, m) has blocks of n rows, one for each joint: positions, speeds, then bristles and torque errors if
they are estimated (m = 2 n to 4 n). A spare row and column are for the jitter of a stamp. With A the derivatives of the
step's acceleration (`_process`) and Y = F X for any X of m rows,

    T = A X,  Y_v = X_v + dt T,  Y_q = X_q + dt (X_v + Y_v) / 2,  Y_z = z_z X_z + z_start X_v + z_end Y_v,  Y_w = e X_w

so F P F' = F (F P)' costs two passes of n m^2 products instead of m^3. Document 001 has no discretisation.
Source: system 13.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import ROW
from youbot_dynamics.estimation.arm_ekf._process import (
    OVER_BRISTLE,
    OVER_POSITION,
    OVER_SPEED,
    OVER_TORQUE,
    SPEED,
    Each,
)

# Rows of the joints' constants (9, n).
(
    REACH,  # largest bristle [rad]
    READING,  # variance of a position reading [rad2]
    TOLD,  # variance of a speed reading [rad2/s2]
    DRIVE,  # variance of the effort at low frequencies [N2 m2]
    SWING,  # error of the mean of two efforts, relative to their difference [1]
    BENDING,  # variance rate of a bristle [rad2/s]
    FRICTION_ERROR,  # standard deviation of the friction's part of the torque error [N m]
    LOAD_ERROR,  # standard deviation of the load's part, relative to the torque on the rigid bodies [1]
    UNSEEN,  # variance of a missing effort [N2 m2]
) = range(9)
JOINT_ROWS = 9
DOUBT = 9.0  # a speed within 3 standard deviations of 0 may have either sign
LEAST_DOUBT = 1e-6
# Minimum growth rates of variances, so that no state ever counts as exactly known [rad2/s, rad2/s3].
POSITION_FLOOR, SPEED_FLOOR = 1e-14, 1e-10


class Rules(NamedTuple):
    """Constants of the filter."""

    each: Each  # [n] see `Each`
    joints: Vector  # (9, n) constants of the joints, see REACH
    bristles: int  # first row of the bristles in the covariance, 0 if they are not estimated
    errors: int  # first row of the torque errors, 0 if there are none
    size: int  # number of states m
    jitter: float  # standard deviation of a message's stamp [s]
    lag: float  # time constant of the speed readings [s]
    memory: float  # time constant of the torque errors [s]
    gate: float  # squared innovation over its variance above which a reading is refused
    longest_step: float  # [s]
    longest_gap: float  # time without messages after which the filter restarts [s]
    start_speed: float  # standard deviation of an unknown initial speed [rad/s]
    patience: int  # number of refusals of a joint's readings in a row after which the joint restarts


class Work(NamedTuple):
    """Work arrays of the covariance; their content is not kept between steps."""

    slopes: Vector  # (4, n, n) derivatives of the acceleration after a step, see `OVER_POSITION`
    first: Vector  # (m, m)
    second: Vector
    shift: Vector  # (m + 1,)
    gain: Vector
    correction: Vector
    noise: Vector  # (n,) variances of the torque over a step [N2 m2]
    torque: Vector  # (n,) [N m]


def work_for(rules: Rules) -> Work:
    """Allocate the work arrays of a filter."""
    n, size = len(rules.each), rules.size
    return Work(
        np.zeros((4, n, n)),
        np.zeros((size, size)),
        np.zeros((size, size)),
        np.zeros(size + 1),
        np.zeros(size + 1),
        np.zeros(size + 1),
        np.zeros(n),
        np.zeros(n),
    )


@compiled
def apply_step(
    each: Each,
    slopes: Vector,
    table: Vector,
    bristles: int,
    errors: int,
    remaining: float,
    dt: float,
    x: Vector,
    size: int,
    upper: bool,
    y: Vector,
) -> None:
    """Write Y = (F X)' (m, m) for the Jacobian F of a step and the leading (m, m) of X; equations as in the module.

    With `upper` only the blocks on and above the diagonal are computed, for a symmetric F X. `slopes` (4, n, n) are the
    derivatives of the acceleration, `table` (22, n) that of the step; `remaining` is the fraction of a torque error
    that is left.
    """
    row = np.empty((2, size))
    n = len(each)
    end_q, end_v, end_z = (n, 2 * n, bristles + n) if upper else (size, size, size)
    # Columns that need the change of speed.
    wide = max(end_v, end_z)
    for i in range(n):
        for c in range(wide):
            row[0, c] = 0.0
        for k in range(n):
            by_q, by_v = slopes[OVER_POSITION, i, k], slopes[OVER_SPEED, i, k]
            for c in range(wide):
                row[0, c] += by_q * x[k, c] + by_v * x[n + k, c]
        if bristles > 0:
            for k in range(n):
                by_z = slopes[OVER_BRISTLE, i, k]
                for c in range(wide):
                    row[0, c] += by_z * x[bristles + k, c]
        if errors > 0:
            for k in range(n):
                by_w = slopes[OVER_TORQUE, i, k]
                for c in range(wide):
                    row[0, c] += by_w * x[errors + k, c]
        for c in range(wide):
            row[1, c] = x[n + i, c] + dt * row[0, c]
        for c in range(end_q):
            y[c, i] = x[i, c] + 0.5 * dt * (x[n + i, c] + row[1, c])
        for c in range(end_v):
            y[c, n + i] = row[1, c]
        if bristles > 0:
            over_z, over_start, over_end = table[ROW.after_z, i], table[ROW.after_start, i], table[ROW.after_end, i]
            for c in range(end_z):
                y[c, bristles + i] = over_z * x[bristles + i, c] + over_start * x[n + i, c] + over_end * row[1, c]
        if errors > 0:
            for c in range(size):
                y[c, errors + i] = remaining * x[errors + i, c]


@compiled
def spread(
    slopes: Vector,
    table: Vector,
    rules: Rules,
    noise: Vector,
    load: Vector,
    remaining: float,
    dt: float,
    mean: Vector,
    covariance: Vector,
    first: Vector,
    second: Vector,
) -> None:
    """Propagate the covariance: F P F' + Q, written into the leading (m, m) of P.

    Q contains the torque noise and its effect on every block, bristle noise, noise of the torque errors, and lower
    bounds that keep P positive definite. `noise` (n,) are the variances of the mean torque over the step [N2 m2],
    `load` (n,) the torques on the rigid bodies [N m], `mean` (4, n) that after the step; `first` and `second` (m, m)
    are work space.
    """
    n, size = len(rules.each), len(first)
    joints, bristles, errors = rules.joints, rules.bristles, rules.errors
    apply_step(rules.each, slopes, table, bristles, errors, remaining, dt, covariance, size, False, first)
    # Blocks below the diagonal are not written: F P F' is symmetric.
    apply_step(rules.each, slopes, table, bristles, errors, remaining, dt, first, size, True, second)
    # Torque noise is equivalent to noise of a speed: its part of every block follows that of the speed.
    by_torque = slopes[OVER_TORQUE]
    for i in range(n):
        for j in range(i + 1):
            shared = 0.0
            for k in range(n):
                shared += by_torque[i, k] * noise[k] * by_torque[j, k]
            shared *= dt * dt
            first[i, j] = shared
            first[j, i] = shared
    half = 0.5 * dt
    for i in range(n):
        for j in range(n):
            shared = first[i, j]
            second[i, j] += half * half * shared
            second[i, n + j] += half * shared
            second[n + i, n + j] += shared
    if bristles > 0:
        for i in range(n):
            over_end = table[ROW.after_end, i]
            for j in range(n):
                bent = over_end * first[i, j]
                second[j, bristles + i] += half * bent
                second[n + j, bristles + i] += bent
                second[bristles + i, bristles + j] += bent * table[ROW.after_end, j]
    for i in range(n):
        second[i, i] += POSITION_FLOOR * dt
        second[n + i, n + i] += SPEED_FLOOR * dt
        if bristles > 0:
            # If the sign of the speed is uncertain, so is the sign of the bristle.
            unlikely = mean[SPEED, i] ** 2 / (2.0 * DOUBT * second[n + i, n + i])
            doubt = math.exp(-unlikely) if unlikely < 20.0 else 0.0
            second[bristles + i, bristles + i] += joints[BENDING, i] * (doubt + LEAST_DOUBT) * dt
        if errors > 0:
            of_load = (joints[LOAD_ERROR, i] * load[i]) ** 2
            second[errors + i, errors + i] += (joints[FRICTION_ERROR, i] ** 2 + of_load) * (1.0 - remaining * remaining)
    for i in range(size):
        for j in range(i + 1):
            covariance[i, j] = second[j, i]
            covariance[j, i] = second[j, i]
