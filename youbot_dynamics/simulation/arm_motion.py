"""The arm of the twin in motion at 1 kHz: controllers, bodies, friction, end stops and heat in one compiled loop.

A step is that of `dynamics/arm_step`, of second order and solved by Newton's method, with the torque of the end stops
besides, and with the bodies halfway between where they are and where they will be: so symmetric a step keeps the
energy balance 3 times better. Currents are held over a cycle. Most cycles are one step. One in which a joint is hit so
hard that its speed changes by more than `_SHARP`, or which Newton's method does not solve, is halved until it is not,
down to a sixteenth: blows on the end stops would else cost the balance some 6e-7 of a busy minute.

The ledger keeps the work of every force over every step as mean torque x displacement, so that the energy of the arm
can be audited.
"""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm_step import mean_friction
from youbot_dynamics.dynamics.generated.youbot_arm import forward_dynamics as arm_accelerations
from youbot_dynamics.dynamics.heat_network import heat_rates
from youbot_dynamics.dynamics.layout import Layout
from youbot_dynamics.dynamics.straight_line import ROTOR, STRIDE
from youbot_dynamics.dynamics.tree_kernels import forward_dynamics_rows
from youbot_dynamics.simulation.arm_controller import CURRENT, STEP, control_cycle
from youbot_dynamics.simulation.end_stops import stop_torque

# Columns of the state (n, 7); the acceleration is where the next step begins to look for its own.
POSITION, SPEED, BRISTLE, WINDING, HOUSING, ACCELERATION, TOLD_SPEED = range(7)
STATE_COLUMNS = 7
# Columns of the ledger (n, 3): work [J] done by the motors, taken by the friction and by the end stops.
MOTOR_WORK, FRICTION_WORK, STOP_WORK = range(3)
# Columns of what a step meets (n, 4): torques at the joints [N m], means over the step, and the bristle after it.
_DRIVING, _RESISTING, _STOPPING, _AFTER = range(4)

_ITERATIONS = 12
_CONVERGED = 1e-7  # [rad/s] change of a speed in the last iteration; what is left is some 1e-3 of it
_PARTS = 16  # of a cycle, the shortest step: a power of 2
_SHARP = 0.1  # [rad/s]


@compiled
def solve_step(
    layout: Layout,
    numbers: Vector,
    written_out: bool,
    rotors: Vector,
    frictions: Vector,
    stops: Vector,
    dt: float,
    state: Vector,
    met: Vector,
    rows: Vector,
) -> float:
    """Find the accelerations of one step.

    Args:
        layout: the arm as a tree of n joints.
        numbers: (p,) of the straight-line code; its rotor inertias are changed.
        written_out: whether the straight-line code of the youBot arm holds for this tree.
        rotors: (n,) room for rotor inertias.
        frictions: (n, 6) LuGre constants.
        stops: (n, 4) constants of the end stops.
        dt: [s].
        state: (n, 7) at the start of the step.
        met: (n, 4) in column 0 the torques of the motors, the others written [N m].
        rows: (5, 1, n) room; its last row holds the accelerations to begin with, then those found [rad/s2].

    Returns:
        Largest change of a speed over the step [rad/s]; infinite where there is no answer.
    """
    n = state.shape[0]
    middle, mean_speed, torque, found, a = rows[0], rows[1], rows[2], rows[3], rows[4, 0]
    for _ in range(_ITERATIONS):
        for i in range(n):
            v = state[i, SPEED]
            mean_speed[0, i] = v + 0.5 * dt * a[i]
            middle[0, i] = state[i, POSITION] + 0.5 * dt * mean_speed[0, i]
            met[i, _AFTER], met[i, _RESISTING], slope = mean_friction(
                state[i, BRISTLE], v, v + dt * a[i], dt, frictions[i]
            )
            met[i, _STOPPING], stop_slope = stop_torque(state[i, POSITION], dt * mean_speed[0, i], dt, stops[i])
            stiffness = dt * (slope - stop_slope)
            rotors[i] = layout.rotor_inertias[i] + stiffness
            torque[0, i] = met[i, _DRIVING] - met[i, _RESISTING] + met[i, _STOPPING] + stiffness * a[i]
        if written_out:
            for i in range(n):
                numbers[STRIDE * i + ROTOR] = rotors[i]
            if not arm_accelerations(middle[0], mean_speed[0], torque[0], numbers, found[0]):
                return np.inf
        elif forward_dynamics_rows(layout, rotors, middle, mean_speed, torque, np.zeros((1, n, 6)), found) >= 0:
            return np.inf
        change, fastest = 0.0, 0.0
        for i in range(n):
            if not abs(found[0, i]) < np.inf:
                return np.inf
            change = max(change, abs(found[0, i] - a[i]) * dt)
            fastest = max(fastest, abs(found[0, i]) * dt)
            a[i] = found[0, i]
        if not change < np.inf:
            return np.inf
        if change < _CONVERGED:
            return fastest
    return np.inf


@compiled
def take_step(dt: float, accelerations: Vector, met: Vector, state: Vector, ledger: Vector) -> None:
    """Move by a step that is solved.

    Args:
        dt: [s].
        accelerations: (n,) found [rad/s2].
        met: (n, 4) by `solve_step`.
        state: (n, 7), changed.
        ledger: (n, 3), added to.
    """
    for i in range(len(state)):
        a, v = accelerations[i], state[i, SPEED]
        moved = dt * (v + 0.5 * dt * a)
        ledger[i, MOTOR_WORK] += met[i, _DRIVING] * moved
        ledger[i, FRICTION_WORK] += met[i, _RESISTING] * moved
        ledger[i, STOP_WORK] -= met[i, _STOPPING] * moved
        state[i, POSITION] += moved
        state[i, SPEED] = v + dt * a
        state[i, BRISTLE] = met[i, _AFTER]
        state[i, ACCELERATION] = a


@compiled
def warmer(heat: Vector, winding: float, housing: float, current: float) -> tuple[float, float]:
    """Temperatures [degC] of winding and housing a cycle later, by the midpoint rule.

    A cycle is 2.4e-4 of the shortest time constant that can be drawn, of a winding of least resistance and capacity,
    1.2e-4 of the nominal one: the rule is off by less than 1e-8 of a rise, at a tenth of the cost of the exact
    `heat_step`.

    Args:
        heat: (7,) constants of the thermal network.
        winding: [degC].
        housing: [degC].
        current: [A].
    """
    square = current * current
    of_winding, of_housing = heat_rates(heat, winding, housing, square, 0.0)
    half = 0.5 * STEP
    of_winding, of_housing = heat_rates(heat, winding + half * of_winding, housing + half * of_housing, square, 0.0)
    return winding + STEP * of_winding, housing + STEP * of_housing


@compiled
def advance(
    layout: Layout,
    parameters: Vector,
    written_out: bool,
    frictions: Vector,
    torque_of_current: Vector,
    heats: Vector,
    stops: Vector,
    told: float,
    controllers: Vector,
    mode: int,
    times: Vector,
    pieces: Vector,
    last: Vector,
    elapsed: float,
    cycles: int,
    state: Vector,
    memory: Vector,
    ledger: Vector,
) -> int:
    """Advance an arm of n joints by some cycles of 1 ms under one order.

    Args:
        layout: the arm as a tree of n joints.
        parameters: (p,) of the straight-line code; read where there is some.
        written_out: whether the straight-line code of the youBot arm holds for this tree.
        frictions: (n, 6) LuGre constants.
        torque_of_current: (n,) N K of the true motors [N m/A].
        heats: (n, 7) constants of the thermal networks.
        stops: (n, 4) constants of the end stops.
        told: share of `arm_controller.told_share`.
        controllers: (n, 7) constants.
        mode: of the controllers.
        times: (m,) knots of the trajectory [s], any in other modes.
        pieces: (m - 1, n, 6) of the trajectory.
        last: (n,) its last knot [rad].
        elapsed: time since its start [s].
        cycles: how many.
        state: (n, 7), changed.
        memory: (n, 5) of the controllers, changed.
        ledger: (n, 3), added to.

    Returns:
        Number of cycles done; fewer than `cycles` where a motion has no bounds.
    """
    n = state.shape[0]
    numbers, rotors, rows, met = parameters.copy(), np.zeros(n), np.zeros((5, 1, n)), np.zeros((n, 4))
    back_emf, resistance = np.zeros(n), np.zeros(n)
    for k in range(cycles):
        for i in range(n):
            back_emf[i] = torque_of_current[i] * state[i, SPEED]
            resistance[i] = heats[i, 0] + heats[i, 1] * (state[i, WINDING] - heats[i, 6])
        now = elapsed + k * STEP
        position, speed = state[:, POSITION], state[:, SPEED]
        control_cycle(mode, times, pieces, last, now, position, speed, back_emf, resistance, controllers, memory)
        for i in range(n):
            met[i, _DRIVING] = torque_of_current[i] * memory[i, CURRENT]
        left, size = _PARTS, _PARTS
        while left > 0:
            for i in range(n):
                rows[4, 0, i] = state[i, ACCELERATION]
            dt = STEP * size / _PARTS
            change = solve_step(layout, numbers, written_out, rotors, frictions, stops, dt, state, met, rows)
            if change > _SHARP and size > 1:
                size //= 2
            elif change < np.inf:
                take_step(dt, rows[4, 0], met, state, ledger)
                left -= size
            else:
                return k
        for i in range(n):
            state[i, WINDING], state[i, HOUSING] = warmer(
                heats[i], state[i, WINDING], state[i, HOUSING], memory[i, CURRENT]
            )
            state[i, TOLD_SPEED] += told * (state[i, SPEED] - state[i, TOLD_SPEED])
    return cycles
