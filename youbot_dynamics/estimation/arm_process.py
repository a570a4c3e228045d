"""One step of the arm in time with the exact slopes of that step: compiled code for the filter of `arm_ekf`.

The step is that of `dynamics/arm_step`, driven by torques. It solves for the acceleration a of

    M(q_mid) a = tau - bias(q_mid, v_mid) - tau_f(z, v, v+),    q_mid = q + dt v / 2,  v_mid = v + dt a / 2
    v+ = v + dt a,    q+ = q + dt (v + v+) / 2,    z+ = z+(z, v, v+)  from the exact path exponential

so its slopes follow from the implicit function, not from 1 + A dt: with the slopes of the mean friction torque f_z,
f_start, f_end over z, v and v+, and M' = M + dt diag(f_end),

    (1 - dt/2 D_v) da = D_q dq + (dt/2 D_q + D_v - M'^-1 (f_start + f_end)) dv - M'^-1 f_z dz + M'^-1 dtau

where D_q, D_v, M'^-1 are the slopes of the forward dynamics with M' for M (seed 001 (5)-(7), (12), (13); D-001-2,
D-001-3; system 13). They hold on both sides of v = 0; where a joint turns within the step, the path is cut there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics import arm_step
from youbot_dynamics.dynamics.bristle_step import advance_with_slopes
from youbot_dynamics.dynamics.generated.youbot_arm import derivative_rows as arm_derivatives
from youbot_dynamics.dynamics.generated.youbot_arm import forward_dynamics_rows as arm_accelerations
from youbot_dynamics.dynamics.layout import Layout
from youbot_dynamics.dynamics.straight_line import ROTOR, STRIDE
from youbot_dynamics.dynamics.tree_kernels import derivative_rows, solve_derivative_rows

JOINTS = 5  # a constant number lets the compiler unroll: steps are twice as fast

# Rows of the mean (4, 5) of the arm's filter: positions [rad], speeds [rad/s], bristles [rad], torque errors [N m].
POSITION, SPEED, BRISTLE, ERROR = range(4)
# Rows of the friction over a step (8, 5): bristle after it and its slopes over z, v, v+; mean torque and its slopes.
AFTER, AFTER_Z, AFTER_START, AFTER_END, TORQUE, TORQUE_Z, TORQUE_START, TORQUE_END = range(8)
# Rows of the slopes of the acceleration (4, 5, 5): over q, v, z and the torque.
OVER_POSITION, OVER_SPEED, OVER_BRISTLE, OVER_TORQUE = range(4)

_ITERATIONS = 8
_NEAR = 1e-2  # [rad/s] an iteration that starts from so small a change is likely the last
_FASTEST = 1e3  # [rad/s] no joint turns so fast
_SMALLEST_PIVOT = 1e-6
_CONVERGED = 1e-6  # [rad/s] change of a speed in the last iteration; the error left is about its square


class Body(NamedTuple):
    """An arm of five joints as compiled code takes it.

    Args:
        layout: its tree.
        numbers: (p,) of the straight-line code; read where there is some.
        written_out: whether the straight-line code of the youBot arm holds for this tree.
        rotors: (5,) rotor inertias [kg m2].
        frictions: (5, 6) LuGre constants.
    """

    layout: Layout
    numbers: Vector
    written_out: bool
    rotors: Vector
    frictions: Vector


class Room(NamedTuple):
    """Memory a step works in; nothing in it outlives the step.

    Args:
        numbers: (p,) copy of `Body.numbers` with other rotors.
        middle: (1, 5) positions in the middle of the step [rad].
        mean_speed: (1, 5) [rad/s].
        load: (1, 5) right side of Newton's method [N m].
        found: (1, 5) accelerations [rad/s2].
        friction: (8, 5), see AFTER.
        derivatives: (3, 1, 5, 5) of the forward dynamics.
        slopes: (4, 5, 5) of the acceleration after a step, see OVER_POSITION.
    """

    numbers: Vector
    middle: Vector
    mean_speed: Vector
    load: Vector
    found: Vector
    friction: Vector
    derivatives: Vector
    slopes: Vector


def room_for(body: Body) -> Room:
    """Memory for steps of an arm."""
    return Room(
        body.numbers.copy() if body.written_out else np.zeros(STRIDE * JOINTS),
        np.zeros((1, JOINTS)),
        np.zeros((1, JOINTS)),
        np.zeros((1, JOINTS)),
        np.zeros((1, JOINTS)),
        np.zeros((8, JOINTS)),
        np.zeros((3, 1, JOINTS, JOINTS)),
        np.zeros((4, JOINTS, JOINTS)),
    )


@compiled
def friction_over_step(
    z: float, v_start: float, v_end: float, dt: float, frictions: Vector, i: int, out: Vector
) -> None:
    """Write column i of `out` (8, 5): bristle after a step, mean torque as `arm_step.mean_friction`, and all slopes.

    Args:
        z: bristle at the start [rad].
        v_start: [rad/s].
        v_end: [rad/s].
        dt: [s].
        frictions: (5, 6) LuGre constants.
        i: the joint.
        out: (8, 5), written.
    """
    coulomb, viscous, sigma0, sigma1 = frictions[i, 0], frictions[i, 1], frictions[i, 2], frictions[i, 3]
    if frictions[i, 4] == coulomb and v_start * v_end > 0.0:
        reach = coulomb / sigma0
        sign = 1.0 if v_start > 0.0 else -1.0
        left = math.exp(-0.5 * dt * sign * (v_start + v_end) / reach)
        after = sign * reach + (z - sign * reach) * left
        over_z = left
        over_start = 0.5 * dt * left * (1.0 - sign * z / reach)
        over_end = over_start
    else:
        after, over_z, over_start, over_end = advance_with_slopes(
            z, v_start, v_end, dt, coulomb, sigma0, frictions[i, 4], frictions[i, 5]
        )
    stiff = 0.5 * sigma0 + sigma1 / dt
    out[AFTER, i] = after
    out[AFTER_Z, i] = over_z
    out[AFTER_START, i] = over_start
    out[AFTER_END, i] = over_end
    out[TORQUE, i] = 0.5 * sigma0 * (z + after) + sigma1 * (after - z) / dt + 0.5 * viscous * (v_start + v_end)
    out[TORQUE_Z, i] = 0.5 * sigma0 - sigma1 / dt + stiff * over_z
    out[TORQUE_START, i] = stiff * over_start + 0.5 * viscous
    out[TORQUE_END, i] = stiff * over_end + 0.5 * viscous


@compiled
def load_step(
    rotors: Vector,
    frictions: Vector,
    mean: Vector,
    a: Vector,
    torque: Vector,
    dt: float,
    numbers: Vector,
    middle: Vector,
    mean_speed: Vector,
    load: Vector,
    friction: Vector,
) -> None:
    """Write the frictions of a step that ends with accelerations a, and with them Newton's next equation.

    Args:
        rotors: (5,).
        frictions: (5, 6).
        mean: (4, 5).
        a: (5,) [rad/s2].
        torque: (5,) of the motors [N m].
        dt: [s].
        numbers: (p,) written: rotors with the stiffness of the friction.
        middle: (1, 5) written.
        mean_speed: (1, 5) written.
        load: (1, 5) written.
        friction: (8, 5) written.
    """
    for i in range(JOINTS):
        v = mean[SPEED, i]
        friction_over_step(mean[BRISTLE, i], v, v + dt * a[i], dt, frictions, i, friction)
        stiffness = dt * friction[TORQUE_END, i]
        middle[0, i] = mean[POSITION, i] + 0.5 * dt * v
        mean_speed[0, i] = v + 0.5 * dt * a[i]
        load[0, i] = torque[i] + mean[ERROR, i] - friction[TORQUE, i] + stiffness * a[i]
        numbers[STRIDE * i + ROTOR] = rotors[i] + stiffness


@compiled
def newton(
    rotors: Vector,
    frictions: Vector,
    mean: Vector,
    a: Vector,
    torque: Vector,
    dt: float,
    numbers: Vector,
    middle: Vector,
    mean_speed: Vector,
    load: Vector,
    found: Vector,
    friction: Vector,
    derivatives: Vector,
) -> bool:
    """Solve a step by Newton's method on the straight-line code; its last iteration takes the slopes along.

    Args:
        rotors: (5,).
        frictions: (5, 6).
        mean: (4, 5).
        a: (5,) to begin with, then the solution [rad/s2].
        torque: (5,) of the motors [N m].
        dt: [s].
        numbers: (p,) room.
        middle: (1, 5) room.
        mean_speed: (1, 5) room.
        load: (1, 5) room.
        found: (1, 5) room.
        friction: (8, 5) written.
        derivatives: (3, 1, 5, 5) written: slopes of the forward dynamics with the friction's stiffness.

    Returns:
        False where it is not solved.
    """
    change = np.inf
    for _ in range(_ITERATIONS):
        load_step(rotors, frictions, mean, a, torque, dt, numbers, middle, mean_speed, load, friction)
        last = change < _NEAR  # the slopes cost as much as another iteration
        if last:
            arm_derivatives(middle, mean_speed, load, numbers, found, derivatives)  # type: ignore[no-untyped-call]
        else:
            arm_accelerations(middle, mean_speed, load, numbers, found)  # type: ignore[no-untyped-call]
        change, total = 0.0, 0.0
        for i in range(JOINTS):
            change = max(change, abs(found[0, i] - a[i]) * dt)
            total += found[0, i]
            a[i] = found[0, i]
        if not math.isfinite(total):
            return False
        if last and change < _CONVERGED:
            return True
    return False


@compiled
def step_slowly(body: Body, room: Room, mean: Vector, a: Vector, torque: Vector, dt: float) -> bool:
    """Solve a step that `newton` does not, or of another tree, by the cut strides of `arm_step.advance`.

    Args:
        body: the arm.
        room: its `friction` and `derivatives` are written.
        mean: (4, 5).
        a: (5,) written [rad/s2].
        torque: (5,) of the motors [N m].
        dt: [s].

    Returns:
        False where it is not solved.
    """
    state, states = np.zeros((JOINTS, 5)), np.zeros((1, JOINTS, 5))
    means, drives = np.zeros((1, JOINTS, 3)), np.zeros((1, JOINTS))
    # Motors whose current is their torque, and which stay cold.
    motors, heats = np.ones((JOINTS, 5)), np.ones((JOINTS, 7))
    for i in range(JOINTS):
        state[i, 0], state[i, 1], state[i, 2] = mean[POSITION, i], mean[SPEED, i], mean[BRISTLE, i]
        drives[0, i] = torque[i] + mean[ERROR, i]
        motors[i, 3] = 0.0
        heats[i, 0] = heats[i, 1] = 0.0
    done, _ = arm_step.advance(
        body.layout,
        body.numbers,
        body.written_out,
        body.frictions,
        motors,
        heats,
        drives,
        False,
        dt,
        state,
        states,
        means,
    )
    if done == 0:
        return False
    for i in range(JOINTS):
        a[i] = (state[i, 1] - mean[SPEED, i]) / dt
    load_step(
        body.rotors,
        body.frictions,
        mean,
        a,
        torque,
        dt,
        room.numbers,
        room.middle,
        room.mean_speed,
        room.load,
        room.friction,
    )
    room.found[0] = a
    room.derivatives[:] = 0.0
    over_q, over_v, matrix = room.derivatives[0], room.derivatives[1], room.derivatives[2]
    external = np.zeros((1, JOINTS, 6))
    derivative_rows(body.layout, room.middle, room.mean_speed, room.found, external, over_q, over_v, matrix)
    for i in range(JOINTS):
        matrix[0, i, i] += dt * room.friction[TORQUE_END, i]
    return solve_derivative_rows(over_q, over_v, matrix)


@compiled
def total_slopes(derivatives: Vector, friction: Vector, dt: float, slopes: Vector) -> bool:
    """Turn the slopes of the forward dynamics into those of the step's acceleration.

    Args:
        derivatives: (3, 1, 5, 5).
        friction: (8, 5).
        dt: [s].
        slopes: (4, 5, 5) written, see OVER_POSITION.

    Returns:
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
                - by_torque * (friction[TORQUE_START, j] + friction[TORQUE_END, j])
            )
            slopes[OVER_BRISTLE, i, j] = -by_torque * friction[TORQUE_Z, j]
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
def move(mean: Vector, a: Vector, friction: Vector, dt: float) -> None:
    """Move the mean (4, 5) by a step whose accelerations a (5,) and frictions (8, 5) are known."""
    for i in range(JOINTS):
        v = mean[SPEED, i]
        mean[POSITION, i] += dt * (v + 0.5 * dt * a[i])
        mean[SPEED, i] = v + dt * a[i]
        mean[BRISTLE, i] = friction[AFTER, i]
