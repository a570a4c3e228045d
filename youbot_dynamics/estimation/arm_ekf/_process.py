"""One time step of the arm with its exact derivatives, and the friction estimate of the filter: compiled code.

The step is `dynamics.arm.plain_step`, driven by torques. It solves for the acceleration a of

    M(q_mid) a = tau - bias(q_mid, v_mid) - tau_f(z, v, v+),    q_mid = q + dt v / 2,  v_mid = v + dt a / 2
    v+ = v + dt a,    q+ = q + dt (v + v+) / 2,    z+ = z+(z, v, v+)  from the exact path exponential

so its derivatives follow from the implicit function theorem, not from 1 + A dt. With the derivatives of the mean
friction torque f_z, f_start, f_end by z, v and v+, and M' = M + dt diag(f_end),

    (1 - dt/2 D_v) da = D_q dq + (dt/2 D_q + D_v - M'^-1 (f_start + f_end)) dv - M'^-1 f_z dz + M'^-1 dtau

where D_q, D_v, M'^-1 are the derivatives of the forward dynamics with M' instead of M. They hold on both sides of
v = 0; a step with a reversal is split there.
Source: document 001 (5)-(7), (12), (13), system 13; D-001-2, D-001-3.
"""

from __future__ import annotations

from typing import TypeAlias

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
