"""Steps of an arm in time: rigid bodies, LuGre friction and warm motors together, stable at 1 ms.

With q+ = q + dt (v + v+) / 2 and v+ = v + dt a, a step of second order solves for the acceleration

    M(q + dt v / 2) a = tau_m(v_mid) - bias(q + dt v / 2, v_mid) - tau_f,    v_mid = v + dt a / 2
    tau_f = sigma0 (z + z+) / 2 + sigma1 (z+ - z) / dt + viscous v_mid,      z+ from the exact path exponential

by Newton's method. The slopes of friction and back-EMF over a act on single joints and stand beside the rotor inertias
on the diagonal of M, so each iteration is one call of the forward dynamics. The rotor inertias are needed all the
same: without them the back-EMF of a voltage-driven motor works on the bare links, 1e-4 kg m2 at the last joint.

Stiff bristles make the torque of a joint a step at one acceleration, over which plain Newton jumps to and fro. But M is
positive definite and no torque grows with a, so but for the velocity forces, which a changes little, the equations are
the slopes of a convex function: from the fourth iteration on each stride is cut where that function is smallest along
it (`shortened`). Steps of 0.1 to 10 ms are solved that way at 250 to 1e6 N m/rad. A Stribeck curve falls with speed and
breaks the argument; a step that is not solved is reported, never returned.

Stable is not exact. The order holds where a step resolves the bristle, sigma0 |v| dt below the Coulomb torque around a
reversal; where it does not, the mean of sigma0 z between both ends is off for that one step of a reversal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.bristle_step import advance_with_slopes
from youbot_dynamics.dynamics.generated.youbot_arm import forward_dynamics as arm_accelerations
from youbot_dynamics.dynamics.heat_network import heat_step
from youbot_dynamics.dynamics.layout import Layout
from youbot_dynamics.dynamics.straight_line import ROTOR, STRIDE
from youbot_dynamics.dynamics.thermal_motor import winding_resistance
from youbot_dynamics.dynamics.tree_kernels import forward_dynamics_rows, mass_matrix_rows

_PLAIN_ITERATIONS = 3  # more are needed where the friction of a joint turns within the step
_ITERATIONS = 60
_CUTS = 60  # of a stride
_CONVERGED = 1e-10  # [rad/s] change of a speed in the last iteration
_FASTEST = 1e6  # [rad/s or m/s] no joint moves so fast; far beyond, products overflow to NaN

# How `advance` ends.
DONE, UNBOUNDED, UNSOLVED, FROZEN = range(4)

# Columns of a state (n, 5) of n joints.
POSITION, SPEED, BRISTLE, WINDING, HOUSING = range(5)
# Columns of what a step hands out beside the state (n, 3), means over the step.
CURRENT, MOTOR_TORQUE, FRICTION_TORQUE = range(3)


@compiled
def mean_friction(z: float, v_start: float, v_end: float, dt: float, constants: Vector) -> tuple[float, float, float]:
    """Bristle after a step, mean torque over it [N m], and the slope of that over v_end [N m s/rad].

    The mean of sigma1 dz/dt is exact, sigma1 (z+ - z) / dt; that of sigma0 z is taken between both ends.

    Args:
        z: bristle at the start [rad].
        v_start: [rad/s].
        v_end: [rad/s].
        dt: [s].
        constants: (6,) coulomb, viscous, sigma0, sigma1, static, stribeck_speed.
    """
    coulomb, viscous, sigma0, sigma1 = constants[0], constants[1], constants[2], constants[3]
    after, _, _, slope = advance_with_slopes(z, v_start, v_end, dt, coulomb, sigma0, constants[4], constants[5])
    torque = 0.5 * sigma0 * (z + after) + sigma1 * (after - z) / dt + 0.5 * viscous * (v_start + v_end)
    return after, torque, (0.5 * sigma0 + sigma1 / dt) * slope + 0.5 * viscous


@compiled
def motor_torque(
    drive: float, by_voltage: bool, speed: float, winding: float, motor: Vector
) -> tuple[float, float, float]:
    """Current [A], torque N K i at the joint [N m] and its slope over the joint's speed [N m s/rad] (systems 1, 2).

    Args:
        drive: current [A], or voltage [V].
        by_voltage: which of both.
        speed: of the joint [rad/s].
        winding: temperature [degC].
        motor: (5,) torque constant [N m/A], ratio, resistance [Ohm], temperature coefficient [1/K], reference
            temperature [degC].
    """
    at_joint = motor[0] * motor[1]
    if not by_voltage:
        return drive, at_joint * drive, 0.0
    resistance = winding_resistance(winding, motor[2], motor[3], motor[4])
    current = (drive - at_joint * speed) / resistance
    return current, at_joint * current, -at_joint * at_joint / resistance


@compiled
def shortened(
    state: Vector,
    a: Vector,
    stride: Vector,
    opposing: Vector,
    stiffness: Vector,
    matrix: Vector,
    drives: Vector,
    by_voltage: bool,
    dt: float,
    frictions: Vector,
    motors: Vector,
) -> float:
    """Share of a stride of Newton's method after which the convex function behind the step no longer falls, up to 1.

    At a + s p the slope of that function along the stride p is, with the velocity forces held,

        g(s) = p' (s - 1) M p + p' (phi(a + s p) - phi(a) - D p),    phi = friction less motor torque of each joint

    below 0 at s = 0. Its zero is found by false position with halved weights, to a tenth of g(0).

    Args:
        state: (n, 5) at the start of the step.
        a: (n,) accelerations p starts from.
        stride: (n,) p.
        opposing: (n,) phi(a).
        stiffness: (n,) D, the slopes of phi that Newton's method took, at least 0.
        matrix: (n, n) M.
        drives: (n,) currents [A] or voltages [V].
        by_voltage: which of both.
        dt: [s].
        frictions: (n, 6).
        motors: (n, 5).
    """
    n = len(a)
    quadratic, fixed = 0.0, 0.0
    for i in range(n):
        fixed -= stride[i] * (opposing[i] + stiffness[i] * stride[i])
        for j in range(n):
            quadratic += stride[i] * matrix[i, j] * stride[j]
    start = -quadratic
    for i in range(n):
        start -= stride[i] * stiffness[i] * stride[i]
    low, high, below, above, share, side = 0.0, 1.0, start, 0.0, 1.0, 0
    for _ in range(_CUTS):
        slope = fixed + (share - 1.0) * quadratic
        for i in range(n):
            v, there = state[i, SPEED], a[i] + share * stride[i]
            _, resisting, _ = mean_friction(state[i, BRISTLE], v, v + dt * there, dt, frictions[i])
            _, driving, _ = motor_torque(drives[i], by_voltage, v + 0.5 * dt * there, state[i, WINDING], motors[i])
            slope += stride[i] * (resisting - driving)
        if abs(slope) <= -0.1 * start or (share == 1.0 and slope < 0.0):
            break
        if slope < 0.0:
            low, below = share, slope
            above *= 0.5 if side == -1 else 1.0
            side = -1
        else:
            high, above = share, slope
            below *= 0.5 if side == 1 else 1.0
            side = 1
        share = (low * above - high * below) / (above - below)
    return share


@compiled
def advance(
    layout: Layout,
    parameters: Vector,
    written_out: bool,
    frictions: Vector,
    motors: Vector,
    heats: Vector,
    drives: Vector,
    by_voltage: bool,
    dt: float,
    state: Vector,
    states: Vector,
    means: Vector,
) -> tuple[int, int]:
    """Advance an arm of n joints by t steps.

    Args:
        layout: the arm as a tree of n revolute or prismatic joints.
        parameters: (p,) of the straight-line code; read where there is some.
        written_out: whether the straight-line code of the youBot arm holds for this tree.
        frictions: (n, 6) LuGre constants.
        motors: (n, 5) as `motor_torque` takes them.
        heats: (n, 7) constants of the thermal networks.
        drives: (t, n) currents [A] or voltages [V], held over each step.
        by_voltage: which of both.
        dt: step [s].
        state: (n, 5), changed: columns POSITION, SPEED, BRISTLE, WINDING, HOUSING.
        states: (t, n, 5) written: after each step.
        means: (t, n, 3) written: columns CURRENT, MOTOR_TORQUE, FRICTION_TORQUE, means over each step.

    Returns:
        Number of steps done, and DONE where that is t; else why the next one has no answer: UNBOUNDED numbers or a
        joint without inertia, UNSOLVED by Newton's method, or a winding FROZEN to where its resistance ends.
    """
    n = state.shape[0]
    rotors = layout.rotor_inertias.copy()
    numbers = parameters.copy()
    external = np.zeros((1, n, 6))
    middle, mean_speed, torque, found = np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, n))
    a, stride, opposing, stiffness = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    matrix = np.zeros((1, n, n))
    for t in range(drives.shape[0]):
        for i in range(n):
            middle[0, i] = state[i, POSITION] + 0.5 * dt * state[i, SPEED]
        change = np.inf
        for iteration in range(_ITERATIONS):
            plain = iteration < _PLAIN_ITERATIONS
            for i in range(n):
                v = state[i, SPEED]
                mean_speed[0, i] = v + 0.5 * dt * a[i]
                _, resisting, slope = mean_friction(state[i, BRISTLE], v, v + dt * a[i], dt, frictions[i])
                current, driving, motor_slope = motor_torque(
                    drives[t, i], by_voltage, mean_speed[0, i], state[i, WINDING], motors[i]
                )
                means[t, i, CURRENT] = current
                means[t, i, MOTOR_TORQUE] = driving
                means[t, i, FRICTION_TORQUE] = resisting
                opposing[i] = resisting - driving
                # Slopes over a: v+ answers with dt, the mean speed with dt / 2.
                slope = dt * slope - 0.5 * dt * motor_slope
                stiffness[i] = slope if plain else max(slope, 0.0)
                rotors[i] = layout.rotor_inertias[i] + stiffness[i]
                torque[0, i] = stiffness[i] * a[i] - opposing[i]
            if written_out:
                for i in range(n):
                    numbers[STRIDE * i + ROTOR] = rotors[i]
                if not arm_accelerations(middle[0], mean_speed[0], torque[0], numbers, found[0]):
                    return t, UNBOUNDED
            elif forward_dynamics_rows(layout, rotors, middle, mean_speed, torque, external, found) >= 0:
                return t, UNBOUNDED
            change = 0.0
            for i in range(n):
                if not abs(state[i, SPEED] + dt * found[0, i]) < _FASTEST:  # NaN neither
                    return t, UNBOUNDED
                stride[i] = found[0, i] - a[i]
                change = max(change, abs(stride[i]) * dt)
            share = 1.0
            if not plain and change >= _CONVERGED:
                if iteration == _PLAIN_ITERATIONS:
                    matrix[:] = 0.0
                    mass_matrix_rows(layout, middle, matrix)
                share = shortened(
                    state, a, stride, opposing, stiffness, matrix[0], drives[t], by_voltage, dt, frictions, motors
                )
                if not np.isfinite(share):
                    return t, UNBOUNDED
            for i in range(n):
                a[i] += share * stride[i]
            if change < _CONVERGED:
                break
        if change >= _CONVERGED:
            return t, UNSOLVED
        for i in range(n):
            v = state[i, SPEED]
            after, _, _ = mean_friction(state[i, BRISTLE], v, v + dt * a[i], dt, frictions[i])
            current = means[t, i, CURRENT]
            winding, housing = heat_step(heats[i], state[i, WINDING], state[i, HOUSING], current * current, 0.0, dt)
            if not (winding < np.inf and housing < np.inf):
                return t, UNBOUNDED
            if not winding_resistance(winding, motors[i, 2], motors[i, 3], motors[i, 4]) > 0.0:
                return t, FROZEN
            state[i, POSITION] += dt * (v + 0.5 * dt * a[i])
            state[i, SPEED] = v + dt * a[i]
            state[i, BRISTLE] = after
            state[i, WINDING] = winding
            state[i, HOUSING] = housing
            for column in range(5):
                states[t, i, column] = state[i, column]
    return len(drives), DONE


def rows_of(values: Any, width: int) -> Vector:
    """Stack tuples of constants into an array (n, width)."""
    return np.array([tuple(value) for value in values], dtype=np.float64).reshape(-1, width)
