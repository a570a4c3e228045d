"""One time step of the arm with its exact derivatives, and the covariance of its filter over it: compiled code.

The step is `dynamics.arm.arm_step`, driven by torques. It solves for the acceleration a of

    M(q_mid) a = tau - bias(q_mid, v_mid) - tau_f(z, v, v+),    q_mid = q + dt v / 2,  v_mid = v + dt a / 2
    v+ = v + dt a,    q+ = q + dt (v + v+) / 2,    z+ = z+(z, v, v+)  from the exact path exponential

so its derivatives follow from the implicit function theorem, not from 1 + A dt. With the derivatives of the mean
friction torque f_z, f_start, f_end by z, v and v+, and M' = M + dt diag(f_end),

    (1 - dt/2 D_v) da = D_q dq + (dt/2 D_q + D_v - M'^-1 (f_start + f_end)) dv - M'^-1 f_z dz + M'^-1 dtau

where D_q, D_v, M'^-1 are the derivatives of the forward dynamics with M' instead of M. They hold on both sides of
v = 0; a step with a reversal is split there.

The covariance (m, m) has blocks of n rows, one for each joint: positions, speeds, then bristles and torque errors if
they are estimated (m = 2 n to 4 n). A spare row and column are for the jitter of a stamp. With A the derivatives of the
step's acceleration and Y = F X for any X of m rows,

    T = A X,  Y_v = X_v + dt T,  Y_q = X_q + dt (X_v + Y_v) / 2,  Y_z = z_z X_z + z_start X_v + z_end Y_v,  Y_w = e X_w

so F P F' = F (F P)' costs two passes of n m^2 products instead of m^3. Document 001 has no discretisation.
Source: document 001 (5)-(7), (12), (13), system 13; D-001-2, D-001-3.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import ROW
from youbot_dynamics.dynamics.lugre import friction_torque

# An empty tuple for each joint, ((), ..., ()). Its type tells the compiler how many there are, so it unrolls the loops
# over them: steps are twice as fast as with the length of an array. Each number of joints is compiled once.
Each: TypeAlias = tuple[tuple[()], ...]

# Rows of the mean (4, n) of the arm's filter: positions [rad], speeds [rad/s], bristles [rad], torque errors [N m].
POSITION, SPEED, BRISTLE, ERROR = range(4)
# Derivatives of the acceleration (4, n, n): by q, v, z and the torque.
OVER_POSITION, OVER_SPEED, OVER_BRISTLE, OVER_TORQUE = range(4)

_FASTEST = 1e3  # [rad/s] above the speed of any joint
_SMALLEST_PIVOT = 1e-6
ITERATIONS = 8
CONVERGED = 1e-6  # [rad/s] change of a speed in the last iteration; the remaining error is about its square


@compiled
def begin_step(each: Each, mean: Vector, a: Vector, torque: Vector, table: Vector) -> None:
    """Write the start of a step into its table (22, n): mean (4, n), a (n,) and torques of the motors (n,)."""
    for i in range(len(each)):
        table[ROW.position, i], table[ROW.speed, i] = mean[POSITION, i], mean[SPEED, i]
        table[ROW.bristle, i], table[ROW.drive, i] = mean[BRISTLE, i], torque[i] + mean[ERROR, i]
        table[ROW.acceleration, i] = a[i]


@compiled
def total_slopes(each: Each, derivatives: Vector, table: Vector, dt: float, slopes: Vector) -> bool:
    """Write the derivatives (4, n, n) of the step's acceleration, see OVER_POSITION, from those of the dynamics.

    The latter are (3, 1, n, n). Returns False if the equation in the docstring of the module is singular.
    """
    # Solve (1 - dt/2 D_v) X = [D_q, D_v, M'^-1] in place, without pivoting: the matrix is near 1.
    n = len(each)
    matrix = np.empty((n, n))
    right = np.empty((n, 3 * n))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = (1.0 if i == j else 0.0) - 0.5 * dt * derivatives[1, 0, i, j]
            right[i, j] = derivatives[0, 0, i, j]
            right[i, n + j] = derivatives[1, 0, i, j]
            right[i, 2 * n + j] = derivatives[2, 0, i, j]
    for k in range(n):
        pivot = matrix[k, k]
        if not pivot > _SMALLEST_PIVOT:
            return False
        scale = 1.0 / pivot
        for j in range(k + 1, n):
            matrix[k, j] *= scale
        for j in range(3 * n):
            right[k, j] *= scale
        for i in range(n):
            if i != k:
                factor = matrix[i, k]
                for j in range(k + 1, n):
                    matrix[i, j] -= factor * matrix[k, j]
                for j in range(3 * n):
                    right[i, j] -= factor * right[k, j]
    for i in range(n):
        for j in range(n):
            by_q, by_torque = right[i, j], right[i, 2 * n + j]
            slopes[OVER_POSITION, i, j] = by_q
            slopes[OVER_SPEED, i, j] = (
                0.5 * dt * by_q
                + right[i, n + j]
                - by_torque * (table[ROW.friction_start, j] + table[ROW.friction_end, j])
            )
            slopes[OVER_BRISTLE, i, j] = -by_torque * table[ROW.friction_z, j]
            slopes[OVER_TORQUE, i, j] = by_torque
    return True


@compiled
def is_sane(each: Each, mean: Vector) -> bool:
    """Whether the speeds of a mean (4, n) are numbers within the range of an arm."""
    for i in range(len(each)):
        if not abs(mean[SPEED, i]) < _FASTEST:
            return False
    return True


@compiled
def move(each: Each, mean: Vector, a: Vector, table: Vector, dt: float) -> None:
    """Advance the mean (4, n) by the step solved in a table (22, n); write its accelerations a (n,)."""
    for i in range(len(each)):
        v = mean[SPEED, i]
        a[i] = table[ROW.acceleration, i]
        mean[POSITION, i] += dt * (v + 0.5 * dt * a[i])
        mean[SPEED, i] = v + dt * a[i]
        mean[BRISTLE, i] = table[ROW.after, i]


@compiled
def friction_share(friction_error: float, load_part: float) -> float:
    """Most likely fraction of a torque error that is friction, from its variance and that of the load [N2 m2]."""
    own = friction_error * friction_error
    return own / (own + load_part) if own > 0.0 else 0.0


@compiled
def friction_rows(joints: Vector, speeds: Vector, bristles: Vector, parts: Vector, torques: Vector) -> None:
    """Write friction torques (t, n) [N m]: LuGre torque minus the part of the torque error that is friction.

        tau_f = sigma0 z + sigma1 dz/dt + viscous v - w_f;    minus, because the error drives and friction brakes

    `joints` (n, 11) are those of `ArmBody`; speeds v [rad/s], NaN if unknown, bristles z [rad] and parts w_f [N m]
    are (t, n).
    Source: document 001 (9).
    """
    for t in range(len(speeds)):
        for i in range(len(joints)):
            c = joints[i]
            lugre = friction_torque(bristles[t, i], speeds[t, i], (c[0], c[1], c[2], c[3], c[4], c[5]))
            torques[t, i] = lugre - parts[t, i]


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
