"""One step of the arm in time with the exact slopes of that step, and the friction the filter believes: compiled code.

The step is `dynamics.arm.plain_step`, driven by torques. It solves for the acceleration a of

    M(q_mid) a = tau - bias(q_mid, v_mid) - tau_f(z, v, v+),    q_mid = q + dt v / 2,  v_mid = v + dt a / 2
    v+ = v + dt a,    q+ = q + dt (v + v+) / 2,    z+ = z+(z, v, v+)  from the exact path exponential

so its slopes follow from the implicit function, not from 1 + A dt: with the slopes of the mean friction torque f_z,
f_start, f_end over z, v and v+, and M' = M + dt diag(f_end),

    (1 - dt/2 D_v) da = D_q dq + (dt/2 D_q + D_v - M'^-1 (f_start + f_end)) dv - M'^-1 f_z dz + M'^-1 dtau

where D_q, D_v, M'^-1 are the slopes of the forward dynamics with M' for M (seed 001 (5)-(7), (12), (13); D-001-2,
D-001-3; system 13). They hold on both sides of v = 0; where a joint turns within the step, the path is cut there.
"""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm import ROW
from youbot_dynamics.dynamics.lugre import friction_torque

JOINTS = 5  # a constant number lets the compiler unroll: steps are twice as fast

# Rows of the mean (4, 5) of the arm's filter: positions [rad], speeds [rad/s], bristles [rad], torque errors [N m].
POSITION, SPEED, BRISTLE, ERROR = range(4)
# Rows of the slopes of the acceleration (4, 5, 5): over q, v, z and the torque.
OVER_POSITION, OVER_SPEED, OVER_BRISTLE, OVER_TORQUE = range(4)

_FASTEST = 1e3  # [rad/s] no joint turns so fast
_SMALLEST_PIVOT = 1e-6
ITERATIONS = 8
CONVERGED = 1e-6  # [rad/s] change of a speed in the last iteration; the error left is about its square


@compiled
def begin_step(mean: Vector, a: Vector, torque: Vector, table: Vector) -> None:
    """Write into the table (22, 5) of a step where it starts: mean (4, 5), a (5,) and torques of the motors (5,)."""
    for i in range(JOINTS):
        table[ROW.position, i], table[ROW.speed, i] = mean[POSITION, i], mean[SPEED, i]
        table[ROW.bristle, i], table[ROW.drive, i] = mean[BRISTLE, i], torque[i] + mean[ERROR, i]
        table[ROW.acceleration, i] = a[i]


@compiled
def total_slopes(derivatives: Vector, table: Vector, dt: float, slopes: Vector) -> bool:
    """Write the slopes (4, 5, 5) of the step's acceleration, see OVER_POSITION, from the dynamics' (3, 1, 5, 5).

    False where the equation at the head of this file has no single answer.
    """
    # Solve (1 - dt/2 D_v) X = [D_q, D_v, M'^-1] in place, without pivoting: the matrix is near 1.
    left = np.empty((JOINTS, JOINTS))
    right = np.empty((JOINTS, 3 * JOINTS))
    for i in range(JOINTS):
        for j in range(JOINTS):
            left[i, j] = (1.0 if i == j else 0.0) - 0.5 * dt * derivatives[1, 0, i, j]
            right[i, j] = derivatives[0, 0, i, j]
            right[i, JOINTS + j] = derivatives[1, 0, i, j]
            right[i, 2 * JOINTS + j] = derivatives[2, 0, i, j]
    for k in range(JOINTS):
        pivot = left[k, k]
        if not pivot > _SMALLEST_PIVOT:
            return False
        scale = 1.0 / pivot
        for j in range(k + 1, JOINTS):
            left[k, j] *= scale
        for j in range(3 * JOINTS):
            right[k, j] *= scale
        for i in range(JOINTS):
            if i != k:
                factor = left[i, k]
                for j in range(k + 1, JOINTS):
                    left[i, j] -= factor * left[k, j]
                for j in range(3 * JOINTS):
                    right[i, j] -= factor * right[k, j]
    for i in range(JOINTS):
        for j in range(JOINTS):
            by_q, by_torque = right[i, j], right[i, 2 * JOINTS + j]
            slopes[OVER_POSITION, i, j] = by_q
            slopes[OVER_SPEED, i, j] = (
                0.5 * dt * by_q
                + right[i, JOINTS + j]
                - by_torque * (table[ROW.friction_start, j] + table[ROW.friction_end, j])
            )
            slopes[OVER_BRISTLE, i, j] = -by_torque * table[ROW.friction_z, j]
            slopes[OVER_TORQUE, i, j] = by_torque
    return True


@compiled
def is_sane(mean: Vector) -> bool:
    """Tell whether the speeds of a mean (4, 5) are those of an arm: numbers, and not beyond all reason."""
    for i in range(JOINTS):
        if not abs(mean[SPEED, i]) < _FASTEST:
            return False
    return True


@compiled
def move(mean: Vector, a: Vector, table: Vector, dt: float) -> None:
    """Move the mean (4, 5) by the step that a table (22, 5) solves; write its accelerations a (5,)."""
    for i in range(JOINTS):
        v = mean[SPEED, i]
        a[i] = table[ROW.acceleration, i]
        mean[POSITION, i] += dt * (v + 0.5 * dt * a[i])
        mean[SPEED, i] = v + dt * a[i]
        mean[BRISTLE, i] = table[ROW.after, i]


@compiled
def friction_share(friction_error: float, load_part: float) -> float:
    """Most likely share of a torque error that is friction's, by its variance beside that of the load [N2 m2]."""
    own = friction_error * friction_error
    return own / (own + load_part) if own > 0.0 else 0.0


@compiled
def friction_rows(joints: Vector, speeds: Vector, bristles: Vector, parts: Vector, torques: Vector) -> None:
    """Write friction torques (t, 5) [N m]: LuGre's (seed 001 (9)) less the part of the torque error that is friction's.

        tau_f = sigma0 z + sigma1 dz/dt + viscous v - w_f;    less, since the error drives and friction brakes

    `joints` (5, 11) are those of `ArmBody`; speeds v [rad/s], NaN where unknown, bristles z [rad] and parts w_f [N m]
    are (t, 5).
    """
    for t in range(len(speeds)):
        for i in range(JOINTS):
            c = joints[i]
            lugre = friction_torque(bristles[t, i], speeds[t, i], c[0], c[1], c[2], c[3], c[4], c[5])
            torques[t, i] = lugre - parts[t, i]
