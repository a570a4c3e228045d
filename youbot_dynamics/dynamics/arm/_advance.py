"""Motion of an arm over many steps, driven by currents or voltages, with the heat of its motors: compiled code."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm._step import (
    DONE,
    ROW,
    UNBOUNDED,
    ArmBody,
    arm_step,
    friction_over_step,
    step_work,
)
from youbot_dynamics.dynamics.thermal_motor import heat_step, winding_resistance

_PLAIN_ITERATIONS = 12
_CONVERGED = 1e-10  # [rad/s] change of a speed in the last iteration

FROZEN = 3  # result code of `advance`, beside those of a step
# Columns of a state (n, 5) of n joints.
POSITION, SPEED, BRISTLE, WINDING, HOUSING = range(5)
# Columns of the other results of `advance` (n, 3), means over the step.
CURRENT, MOTOR_TORQUE, FRICTION_TORQUE = range(3)


@compiled
def advance(
    body: ArmBody,
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
        body: the arm.
        motors: (n, 5) torque constant [N m/A], ratio, resistance [Ohm], temperature coefficient [1/K], reference
            temperature [degC].
        heats: (n, 7) constants of the thermal networks.
        drives: (t, n) currents [A] or voltages [V], constant over each step.
        by_voltage: whether `drives` are voltages.
        dt: step [s].
        state: (n, 5), changed: columns POSITION, SPEED, BRISTLE, WINDING, HOUSING.
        states: (t, n, 5) output: state after each step.
        means: (t, n, 3) output: columns CURRENT, MOTOR_TORQUE, FRICTION_TORQUE, means over each step.

    Returns:
        Number of steps done, and DONE if that is t. Otherwise the reason why the next step failed: UNBOUNDED (numbers
        without bounds or a joint without inertia), UNSOLVED by Newton's method, or FROZEN (a winding so cold that its
        resistance is not positive).
    """
    work = step_work(body)
    table, layout, joints, halfway = work.table, body.layout, body.joints, body.halfway
    for t in range(drives.shape[0]):
        for i in range(len(state)):
            at_joint = motors[i, 0] * motors[i, 1]
            table[ROW.position, i], table[ROW.speed, i] = state[i, POSITION], state[i, SPEED]
            table[ROW.bristle, i] = state[i, BRISTLE]
            table[ROW.drive, i] = at_joint * drives[t, i]
            if by_voltage:
                resistance = winding_resistance(state[i, WINDING], motors[i, 2], motors[i, 3], motors[i, 4])
                table[ROW.drive, i] /= resistance
                table[ROW.back_emf, i] = at_joint * at_joint / resistance
        end = arm_step(layout, joints, halfway, _PLAIN_ITERATIONS, _CONVERGED, True, dt, False, work)
        if end != DONE:
            return t, end
        for i in range(len(state)):
            v, a = state[i, SPEED], table[ROW.acceleration, i]
            current = table[ROW.driving, i] / (motors[i, 0] * motors[i, 1]) if by_voltage else drives[t, i]
            winding, housing = heat_step(heats[i], state[i, WINDING], state[i, HOUSING], current * current, 0.0, dt)
            if not (winding < np.inf and housing < np.inf):
                return t, UNBOUNDED
            if not winding_resistance(winding, motors[i, 2], motors[i, 3], motors[i, 4]) > 0.0:
                return t, FROZEN
            means[t, i, CURRENT], means[t, i, MOTOR_TORQUE] = current, table[ROW.driving, i]
            means[t, i, FRICTION_TORQUE] = table[ROW.friction, i]
            state[i, POSITION] += dt * (v + 0.5 * dt * a)
            state[i, SPEED] = v + dt * a
            state[i, BRISTLE] = friction_over_step(state[i, BRISTLE], v, v + dt * a, dt, joints[i])[0]
            state[i, WINDING], state[i, HOUSING] = winding, housing
            for column in range(5):
                states[t, i, column] = state[i, column]
    return len(drives), DONE
