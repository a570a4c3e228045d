"""Steps of an arm in time: rigid bodies, LuGre friction, end stops and motors together, stable at 1 ms.

With q+ = q + dt (v + v+) / 2 and v+ = v + dt a, a step of second order solves for the acceleration

    M(q_mid) a = tau_m - N v_mid - bias(q_mid, v_mid) - tau_f + tau_s,    v_mid = v + dt a / 2
    tau_f = sigma0 (z + z+) / 2 + sigma1 (z+ - z) / dt + viscous v_mid,      z+ from the exact path exponential

by Newton's method; tau_m is what the motors give at rest, N their back-EMF, tau_s the end stops'. The bodies stand at
q_mid = q + dt v / 2, which is fixed, or halfway between both ends, q + dt v_mid / 2: so symmetric a step keeps the
energy balance 3 times better. The slopes of friction, stops and back-EMF over a act on single joints and stand beside
the rotor inertias on the diagonal of M, so each iteration is one call of the forward dynamics. The rotor inertias are
needed all the same: without them the back-EMF of a voltage-driven motor works on the bare links, 1e-4 kg m2 at the
last joint.

Stiff bristles make the torque of a joint a step at one acceleration, over which plain Newton jumps to and fro. But M is
positive definite and no torque grows with a, so but for the velocity forces, which a changes little, the equations are
the slopes of a convex function: after the plain iterations each stride is cut where that function is smallest along
it (`shortened`). Steps of 0.1 to 10 ms are solved that way at 250 to 1e6 N m/rad. A Stribeck curve falls with speed and
breaks the argument; a step that is not solved is reported, never returned.

Stable is not exact. The order holds where a step resolves the bristle, sigma0 |v| dt below the Coulomb torque around a
reversal; where it does not, the mean of sigma0 z between both ends is off for that one step of a reversal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm._stops import stop_torque
from youbot_dynamics.dynamics.generated.youbot_arm import derivative_rows as arm_derivatives
from youbot_dynamics.dynamics.generated.youbot_arm import forward_dynamics as arm_accelerations
from youbot_dynamics.dynamics.lugre import advance_with_slopes
from youbot_dynamics.dynamics.thermal_motor import heat_step, winding_resistance
from youbot_dynamics.dynamics.tree import (
    ROTOR,
    STRIDE,
    Layout,
    Tree,
    derivative_rows,
    forward_dynamics_rows,
    mass_matrix_rows,
    parameters_of,
    solve_derivative_rows,
)

_NEAR = 1e-2  # [rad/s] an iteration that starts from so small a change is likely the last
_PLAIN_ITERATIONS = 12  # of straight-line code
_UNCUT, _ITERATIONS = 3, 60  # the others
_CONVERGED = 1e-10  # [rad/s] change of a speed in the last iteration
_CUTS = 60  # of a stride
_FASTEST = 1e6  # [rad/s or m/s] no joint moves so fast; far beyond, products overflow to NaN

# Columns of a joint's constants from which those of its end stops stand, and of its rotor inertia.
_STOP, _ROTOR = 6, 10

# How a step, and `advance`, ends.
DONE, UNBOUNDED, UNSOLVED, FROZEN = range(4)

# Columns of a state (n, 5) of n joints.
POSITION, SPEED, BRISTLE, WINDING, HOUSING = range(5)
# Columns of what `advance` hands out beside the state (n, 3), means over the step.
CURRENT, MOTOR_TORQUE, FRICTION_TORQUE = range(3)


class ArmBody(NamedTuple):
    """An arm of n joints as compiled steps take it.

    Args:
        layout: the arm as a tree of n revolute or prismatic joints.
        parameters: (p,) of the straight-line code; read where there is some.
        written_out: whether the straight-line code of the youBot arm holds for this tree.
        joints: (n, 11) LuGre constants coulomb, viscous, sigma0, sigma1, static, stribeck_speed; constants of the end
            stops, see `stop_torque`; rotor inertia [kg m2]. One array, for each that is handed on costs some 10 ns.
        halfway: whether the bodies stand halfway between both ends of a step, not where the first speed leads.
    """

    layout: Layout
    parameters: Vector
    written_out: bool
    joints: Vector
    halfway: bool


def arm_body(tree: Tree, frictions: Vector, stops: Vector | None = None) -> ArmBody:
    """An arm as compiled steps take it; one with end stops moves halfway.

    Args:
        tree: n revolute or prismatic joints.
        frictions: (n, 6) LuGre constants.
        stops: (n, 4) constants of the end stops.
    """
    n, layout = len(frictions), tree.layout
    free = np.tile([-np.inf, np.inf, 0.0, 0.0], (n, 1))
    joints = np.column_stack([frictions, free if stops is None else stops, layout.rotor_inertias])
    parameters = parameters_of(layout) if tree.is_written_out else np.zeros(1)
    return ArmBody(layout, read_only(parameters), tree.is_written_out, read_only(joints), stops is not None)


class Rows(NamedTuple):
    """Rows of a step's table (22, n); n joints, torques are means over the step [N m].

    Args:
        position: at the start [rad].
        speed: at the start [rad/s].
        bristle: at the start [rad].
        drive: what the motors give at rest.
        back_emf: what they lose of it with speed [N m s/rad].
        acceleration: to begin with, then the solution [rad/s2].
        driving: torque of the motors.
        stopping: torque of the end stops.
        friction: torque of the friction; it opposes the motion.
        friction_z: its slope over the bristle at the start [N m/rad].
        friction_start: its slope over the speed at the start [N m s/rad].
        friction_end: its slope over the speed at the end [N m s/rad].
        after: bristle at the end [rad].
        after_z: its slope over the bristle at the start [1].
        after_start: its slope over the speed at the start [s].
        after_end: its slope over the speed at the end [s].
        middle: positions the forward dynamics are asked for [rad].
        mean_speed: speeds they are asked for [rad/s].
        load: torques they are asked for.
        rotors: rotor inertias with the stiffness in them [kg m2].
        stiffness: slopes of all torques against the motion over the acceleration [kg m2].
        found: accelerations they answer with [rad/s2].
    """

    position: int
    speed: int
    bristle: int
    drive: int
    back_emf: int
    acceleration: int
    driving: int
    stopping: int
    friction: int
    friction_z: int
    friction_start: int
    friction_end: int
    after: int
    after_z: int
    after_start: int
    after_end: int
    middle: int
    mean_speed: int
    load: int
    rotors: int
    stiffness: int
    found: int


ROW = Rows(*range(len(Rows._fields)))


class StepWork(NamedTuple):
    """Memory of a step.

    Args:
        table: (22, n), see `Rows`.
        numbers: (p,) of the straight-line code, with other rotors.
        derivatives: (3, 1, n, n) slopes of the accelerations over middle position, mean speed and torque.
    """

    table: Vector
    numbers: Vector
    derivatives: Vector


@compiled
def step_work(body: ArmBody) -> StepWork:
    """Memory for steps of an arm."""
    n = len(body.joints)
    return StepWork(np.zeros((len(ROW), n)), body.parameters.copy(), np.zeros((3, 1, n, n)))


@compiled
def friction_over_step(
    z: float, v_start: float, v_end: float, dt: float, constants: Vector
) -> tuple[float, float, float, float, float, float, float, float]:
    """Bristle after a step and mean friction torque over it, each with its slopes over z, v_start and v_end.

    The mean of sigma1 dz/dt is exact, sigma1 (z+ - z) / dt; that of sigma0 z is taken between both ends.

    Args:
        z: bristle at the start [rad].
        v_start: [rad/s].
        v_end: [rad/s].
        dt: [s].
        constants: (6,), what comes after is not read: coulomb, viscous, sigma0, sigma1, static, stribeck_speed.
    """
    viscous, sigma0, sigma1 = constants[1], constants[2], constants[3]
    after, over_z, over_start, over_end = advance_with_slopes(
        z, v_start, v_end, dt, constants[0], sigma0, constants[4], constants[5]
    )
    stiff = 0.5 * sigma0 + sigma1 / dt
    return (
        after,
        over_z,
        over_start,
        over_end,
        0.5 * sigma0 * (z + after) + sigma1 * (after - z) / dt + 0.5 * viscous * (v_start + v_end),
        0.5 * sigma0 - sigma1 / dt + stiff * over_z,
        stiff * over_start + 0.5 * viscous,
        stiff * over_end + 0.5 * viscous,
    )


@compiled
def balance(joints: Vector, halfway: bool, dt: float, least: float, table: Vector) -> None:
    """Write the torques of a step that ends with the accelerations of a table, and Newton's next equation.

    Args:
        joints: (n, 11) of `ArmBody`.
        halfway: whether the bodies stand halfway.
        dt: [s].
        least: stiffness that a joint counts with [kg m2].
        table: (22, n), changed.
    """
    half = 0.5 * dt
    for i in range(table.shape[1]):
        v, a, back_emf = table[ROW.speed, i], table[ROW.acceleration, i], table[ROW.back_emf, i]
        mean_speed = v + half * a
        (
            table[ROW.after, i],
            table[ROW.after_z, i],
            table[ROW.after_start, i],
            table[ROW.after_end, i],
            friction,
            table[ROW.friction_z, i],
            table[ROW.friction_start, i],
            friction_end,
        ) = friction_over_step(table[ROW.bristle, i], v, v + dt * a, dt, joints[i])
        stopping, stop_slope = stop_torque(table[ROW.position, i], dt * mean_speed, dt, joints[i, _STOP:_ROTOR])
        driving = table[ROW.drive, i] - back_emf * mean_speed
        # Slopes over a: v+ answers with dt, the mean speed with dt / 2.
        stiffness = max(dt * (friction_end - stop_slope) + half * back_emf, least)
        table[ROW.driving, i], table[ROW.stopping, i] = driving, stopping
        table[ROW.friction, i], table[ROW.friction_end, i] = friction, friction_end
        table[ROW.middle, i] = table[ROW.position, i] + half * (mean_speed if halfway else v)
        table[ROW.mean_speed, i] = mean_speed
        table[ROW.load, i] = driving - friction + stopping + stiffness * a
        table[ROW.stiffness, i] = stiffness
        table[ROW.rotors, i] = joints[i, _ROTOR] + stiffness


@compiled
def shortened(body: ArmBody, dt: float, table: Vector) -> float:
    """Share of a stride of Newton's method after which the convex function behind the step no longer falls, up to 1.

    At a + s p the slope of that function along the stride p = found - a is, with the velocity forces held,

        g(s) = p' (s - 1) M p + p' (phi(a + s p) - phi(a) - D p),    phi = friction less motors and stops of each joint

    below 0 at s = 0; D, at least 0, are the slopes of phi that Newton's method took. The zero of g is found by false
    position with halved weights, to a tenth of g(0).

    Args:
        body: the arm.
        dt: [s].
        table: (22, n) after an iteration from a.
    """
    n = table.shape[1]
    matrix = np.zeros((1, n, n))
    mass_matrix_rows(body.layout, table[ROW.middle : ROW.middle + 1], matrix)
    stride = table[ROW.found] - table[ROW.acceleration]
    quadratic, fixed, start = 0.0, 0.0, 0.0
    for i in range(n):
        opposing = table[ROW.friction, i] - table[ROW.driving, i] - table[ROW.stopping, i]
        fixed -= stride[i] * (opposing + table[ROW.stiffness, i] * stride[i])
        start -= stride[i] * table[ROW.stiffness, i] * stride[i]
        for j in range(n):
            quadratic += stride[i] * matrix[0, i, j] * stride[j]
    start -= quadratic
    low, high, below, above, share, side = 0.0, 1.0, start, 0.0, 1.0, 0
    for _ in range(_CUTS):
        slope = fixed + (share - 1.0) * quadratic
        for i in range(n):
            v, there = table[ROW.speed, i], table[ROW.acceleration, i] + share * stride[i]
            mean_speed = v + 0.5 * dt * there
            resisting = friction_over_step(table[ROW.bristle, i], v, v + dt * there, dt, body.joints[i])[4]
            stopping, _ = stop_torque(table[ROW.position, i], dt * mean_speed, dt, body.joints[i, _STOP:_ROTOR])
            slope += stride[i] * (resisting - (table[ROW.drive, i] - table[ROW.back_emf, i] * mean_speed) - stopping)
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
def slopes_by_recursion(body: ArmBody, dt: float, work: StepWork) -> bool:
    """Write `work.derivatives` at a solution; False where M is not positive."""
    table, slopes = work.table, work.derivatives
    balance(body.joints, body.halfway, dt, -np.inf, table)
    slopes[:] = 0.0
    a, here = table[ROW.acceleration], table[ROW.middle : ROW.middle + 1]
    speed = table[ROW.mean_speed : ROW.mean_speed + 1]
    external = np.zeros((1, len(a), 6))
    derivative_rows(body.layout, here, speed, a.reshape(1, -1), external, slopes[0], slopes[1], slopes[2])
    for i in range(len(a)):
        slopes[2, 0, i, i] += table[ROW.stiffness, i]
    return solve_derivative_rows(slopes[0], slopes[1], slopes[2])


@compiled
def largest_change(dt: float, table: Vector) -> float:
    """Largest change of a speed by an iteration [rad/s]; NaN where one becomes absurd. The table is (22, n)."""
    change = 0.0
    for i in range(table.shape[1]):
        if not abs(table[ROW.speed, i] + dt * table[ROW.found, i]) < _FASTEST:  # NaN neither
            return np.nan
        change = max(change, abs(table[ROW.found, i] - table[ROW.acceleration, i]) * dt)
    return change


@compiled
def plain_step(
    joints: Vector,
    halfway: bool,
    iterations: int,
    converged: float,
    dt: float,
    slopes: bool,
    table: Vector,
    numbers: Vector,
    derivatives: Vector,
) -> int:
    """Solve a step as `implicit_step` by plain iterations of the straight-line code: what nearly every step needs.

    It takes no tuples, which cost as much as an iteration.

    Args:
        joints: (n, 11) of `ArmBody`.
        halfway: of `ArmBody`.
        iterations: most of them.
        converged: change of a speed in the last iteration [rad/s]; the error left is about its square.
        dt: [s].
        slopes: whether `derivatives` are wanted: an iteration takes them along.
        table: (22, n) of `StepWork`.
        numbers: (p,) of `StepWork`.
        derivatives: (3, 1, n, n) of `StepWork`.

    Returns:
        DONE, UNBOUNDED or UNSOLVED.
    """
    middle, mean_speed = table[ROW.middle : ROW.middle + 1], table[ROW.mean_speed : ROW.mean_speed + 1]
    load, found = table[ROW.load : ROW.load + 1], table[ROW.found : ROW.found + 1]
    change = np.inf
    for _ in range(iterations):
        balance(joints, halfway, dt, -np.inf, table)
        for i in range(table.shape[1]):
            numbers[STRIDE * i + ROTOR] = table[ROW.rotors, i]
        along = slopes and change < _NEAR  # they cost as much as another iteration
        if along:
            arm_derivatives(middle, mean_speed, load, numbers, found, derivatives)  # type: ignore[no-untyped-call]
        elif not arm_accelerations(middle[0], mean_speed[0], load[0], numbers, found[0]):
            return UNBOUNDED
        change = largest_change(dt, table)
        if not change < np.inf:
            return UNBOUNDED
        for i in range(table.shape[1]):
            table[ROW.acceleration, i] = found[0, i]
        if change < converged and (along or not slopes):
            return DONE
    return UNSOLVED


@compiled
def implicit_step(body: ArmBody, dt: float, slopes: bool, work: StepWork) -> int:
    """Solve a step of any arm for the accelerations in a table that holds where it starts and what drives it.

    Args:
        body: the arm.
        dt: [s].
        slopes: whether `work.derivatives` are wanted.
        work: its table's torques are those of the last iteration.

    Returns:
        DONE; UNBOUNDED numbers or a joint without inertia; or UNSOLVED.
    """
    table = work.table
    middle, mean_speed = table[ROW.middle : ROW.middle + 1], table[ROW.mean_speed : ROW.mean_speed + 1]
    load, found = table[ROW.load : ROW.load + 1], table[ROW.found : ROW.found + 1]
    n = table.shape[1]
    external = np.zeros((1, n, 6))
    for iteration in range(_ITERATIONS):
        cut = iteration >= _UNCUT
        balance(body.joints, body.halfway, dt, 0.0 if cut else -np.inf, table)
        if forward_dynamics_rows(body.layout, table[ROW.rotors], middle, mean_speed, load, external, found) >= 0:
            return UNBOUNDED
        change = largest_change(dt, table)
        share = shortened(body, dt, table) if cut and change >= _CONVERGED else 1.0
        if not (change < np.inf and np.isfinite(share)):
            return UNBOUNDED
        for i in range(n):
            a = table[ROW.acceleration, i]
            table[ROW.acceleration, i] = found[0, i] if share == 1.0 else a + share * (found[0, i] - a)
        if change < _CONVERGED:
            return DONE if not slopes or slopes_by_recursion(body, dt, work) else UNBOUNDED
    return UNSOLVED


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
            temperature [degC] (systems 1, 2).
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
    work = step_work(body)
    table, numbers, derivatives = work.table, work.numbers, work.derivatives
    joints, halfway, straight = body.joints, body.halfway, body.written_out
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
        end = UNSOLVED
        if straight:
            end = plain_step(joints, halfway, _PLAIN_ITERATIONS, _CONVERGED, dt, False, table, numbers, derivatives)
        if end == UNSOLVED:
            end = implicit_step(body, dt, False, work)
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


def rows_of(values: Any, width: int) -> Vector:
    """Stack tuples of constants into an array (n, width)."""
    return np.array([tuple(value) for value in values], dtype=np.float64).reshape(-1, width)
