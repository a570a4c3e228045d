"""Steps of an arm in time: rigid bodies, LuGre friction and warm motors together, stable at 1 ms.

With q+ = q + dt (v + v+) / 2 and v+ = v + dt a, a step of second order solves for the acceleration

    M(q + dt v / 2) a = tau_m(v_mid) - bias(q + dt v / 2, v_mid) - tau_f,    v_mid = v + dt a / 2
    tau_f = sigma0 (z + z+) / 2 + sigma1 (z+ - z) / dt + viscous v_mid,      z+ from the exact path exponential

by Newton's method. The slopes of friction and back-EMF over a act on single joints and never help a motion, so they
stand beside the rotor inertias on the diagonal of M: each iteration is one call of the forward dynamics, and no
stiffness or damping makes the step unstable. The rotor inertias are needed all the same: without them the back-EMF of
a voltage-driven motor works on the bare links, 1e-4 kg m2 at the last joint.
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
from youbot_dynamics.dynamics.tree_kernels import forward_dynamics_rows

_ITERATIONS = 12
_CONVERGED = 1e-10  # [rad/s] change of a speed in the last iteration

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
    """Current [A], torque at the joint [N m] and its slope over the joint's speed [N m s/rad] (systems 1, 2).

    Args:
        drive: current [A], or voltage [V].
        by_voltage: which of both.
        speed: of the joint [rad/s].
        winding: temperature [degC].
        motor: (6,) torque constant [N m/A], ratio, efficiency, resistance [Ohm], temperature coefficient [1/K],
            reference temperature [degC].
    """
    at_joint = motor[0] * motor[1]
    current, slope = drive, 0.0
    if by_voltage:
        resistance = motor[3] * (1.0 + motor[4] * (winding - motor[5]))
        current = (drive - at_joint * speed) / resistance
        slope = -at_joint * at_joint / resistance
    through = motor[2] if current * speed >= 0.0 else 1.0 / motor[2]
    return current, through * at_joint * current, through * slope


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
) -> int:
    """Advance an arm of n joints by t steps.

    Args:
        layout: the arm as a tree of n revolute or prismatic joints.
        parameters: (p,) of the straight-line code; read where there is some.
        written_out: whether the straight-line code of the youBot arm holds for this tree.
        frictions: (n, 6) LuGre constants.
        motors: (n, 6) as `motor_torque` takes them.
        heats: (n, 7) constants of the thermal networks.
        drives: (t, n) currents [A] or voltages [V], held over each step.
        by_voltage: which of both.
        dt: step [s].
        state: (n, 5), changed: columns POSITION, SPEED, BRISTLE, WINDING, HOUSING.
        states: (t, n, 5) written: after each step.
        means: (t, n, 3) written: columns CURRENT, MOTOR_TORQUE, FRICTION_TORQUE, means over each step.

    Returns:
        Number of steps done; fewer than t where a step has no answer (a joint without inertia, or numbers without
        bounds).
    """
    n = state.shape[0]
    rotors = layout.rotor_inertias.copy()
    numbers = parameters.copy()
    external = np.zeros((1, n, 6))
    middle, mean_speed, torque, found = np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, n)), np.zeros((1, n))
    a, after = np.zeros(n), np.zeros(n)
    for t in range(drives.shape[0]):
        for i in range(n):
            middle[0, i] = state[i, POSITION] + 0.5 * dt * state[i, SPEED]
        for _ in range(_ITERATIONS):
            for i in range(n):
                v = state[i, SPEED]
                mean_speed[0, i] = v + 0.5 * dt * a[i]
                after[i], resisting, slope = mean_friction(state[i, BRISTLE], v, v + dt * a[i], dt, frictions[i])
                current, driving, motor_slope = motor_torque(
                    drives[t, i], by_voltage, mean_speed[0, i], state[i, WINDING], motors[i]
                )
                means[t, i, CURRENT] = current
                means[t, i, MOTOR_TORQUE] = driving
                means[t, i, FRICTION_TORQUE] = resisting
                # Slopes over a: v+ answers with dt, the mean speed with dt / 2.
                stiffness = dt * slope - 0.5 * dt * motor_slope
                rotors[i] = layout.rotor_inertias[i] + stiffness
                torque[0, i] = driving - resisting + stiffness * a[i]
            if written_out:
                for i in range(n):
                    numbers[STRIDE * i + ROTOR] = rotors[i]
                if not arm_accelerations(middle[0], mean_speed[0], torque[0], numbers, found[0]):
                    return t
            elif forward_dynamics_rows(layout, rotors, middle, mean_speed, torque, external, found) >= 0:
                return t
            change = 0.0
            for i in range(n):
                change = max(change, abs(found[0, i] - a[i]) * dt)
                a[i] = found[0, i]
            if not change < np.inf:
                return t
            if change < _CONVERGED:
                break
        for i in range(n):
            v = state[i, SPEED]
            after[i], _, _ = mean_friction(state[i, BRISTLE], v, v + dt * a[i], dt, frictions[i])
            current = means[t, i, CURRENT]
            winding, housing = heat_step(heats[i], state[i, WINDING], state[i, HOUSING], current * current, 0.0, dt)
            state[i, POSITION] += dt * (v + 0.5 * dt * a[i])
            state[i, SPEED] = v + dt * a[i]
            state[i, BRISTLE] = after[i]
            state[i, WINDING] = winding
            state[i, HOUSING] = housing
            for column in range(5):
                states[t, i, column] = state[i, column]
    return len(drives)


def rows_of(values: Any, width: int) -> Vector:
    """Stack tuples of constants into an array (n, width)."""
    return np.array([tuple(value) for value in values], dtype=np.float64).reshape(-1, width)
