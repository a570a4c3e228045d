"""Time step of an arm: rigid bodies, LuGre friction, end stops and motors together, stable at 1 ms.

With q+ = q + dt (v + v+) / 2 and v+ = v + dt a, a step of second order solves for the acceleration

    M(q_mid) a = tau_m - N v_mid - bias(q_mid, v_mid) - tau_f + tau_s,    v_mid = v + dt a / 2
    tau_f = sigma0 (z + z+) / 2 + sigma1 (z+ - z) / dt + viscous v_mid,      z+ from the exact path exponential

by Newton's method. tau_m is the motor torque at standstill, N the back-EMF damping, tau_s the torque of the end stops.
q_mid is q + dt v / 2, which is fixed, or the middle between both ends, q + dt v_mid / 2. The second choice is symmetric
and keeps the energy balance 3 times better. The derivatives of friction, stops and back-EMF with respect to a are
diagonal and are added to the rotor inertias on the diagonal of M, so each iteration is one call of the forward
dynamics. The rotor inertias are needed: without them the back-EMF of a voltage-driven motor acts on the bare links,
1e-4 kg m2 at the last joint.

With stiff bristles the friction torque is nearly a step function of the acceleration, and plain Newton iterations
oscillate around the step. But M is positive definite and no torque grows with a. Apart from the velocity forces, which
depend little on a, the equations are therefore the gradient of a convex function. Where plain iterations fail, a second
attempt with a line search (`shortened`) ends each Newton step at the minimum of that function. It solves steps of 0.1
to 10 ms at 250 to 1e6 N m/rad. A Stribeck curve falls with speed, so the argument does not hold for it; an unsolved
step is reported and never returned.

A stable step is not always exact. It is of second order where it resolves the bristle: sigma0 |v| dt below the Coulomb
torque around a reversal. Otherwise the mean of sigma0 z is wrong in the one step that contains the reversal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector, read_only
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.arm._stops import stop_torque
from youbot_dynamics.dynamics.generated.youbot_arm import derivative_rows as arm_derivatives
from youbot_dynamics.dynamics.generated.youbot_arm import forward_dynamics as arm_accelerations
from youbot_dynamics.dynamics.generated.youbot_arm import mass_matrix as arm_mass_matrix
from youbot_dynamics.dynamics.lugre import advance_with_slopes
from youbot_dynamics.dynamics.tree import (
    ROTOR,
    STRIDE,
    Layout,
    Tree,
    bias_at,
    factor,
    mass_matrix_at,
    parameters_of,
    room_in,
    room_size,
    slopes_at,
    solve,
)

_NEAR = 1e-2  # [rad/s] after a change this small the next iteration is probably the last
_UNCUT, _ITERATIONS = 3, 60  # of the second attempt: without line search, and in total
_CONVERGED = 1e-10  # [rad/s] change of a speed in its last iteration
_CUTS = 60  # iterations of a line search
_FASTEST = 1e6  # [rad/s or m/s] above the speed of any joint; far above it products overflow to NaN

# First columns of the end stops and of the rotor inertia in the constants of a joint.
_STOP, _ROTOR = 6, 10

# Result codes of a step.
DONE, UNBOUNDED, UNSOLVED = range(3)


class ArmBody(NamedTuple):
    """An arm of n joints for compiled steps."""

    layout: Layout | None  # n revolute or prismatic joints; None where the straight-line code applies to the arm
    parameters: Vector  # (p,) of the straight-line code; read only where it applies
    # (n, 11) LuGre constants coulomb, viscous, sigma0, sigma1, static, stribeck_speed; constants of the end stops,
    # see `stop_torque`; rotor inertia [kg m2]. One array, because passing an array costs about 10 ns.
    joints: Vector
    halfway: bool  # whether q_mid is the middle between both ends of a step, instead of q + dt v / 2


def arm_body(tree: Tree, frictions: Vector, stops: Vector | None = None) -> ArmBody:
    """Return an arm for compiled steps; one with end stops uses `halfway`.

    Args:
        tree: n revolute or prismatic joints.
        frictions: (n, 6) LuGre constants.
        stops: (n, 4) constants of the end stops.
    """
    n, layout = len(frictions), tree.layout
    free = np.tile([-np.inf, np.inf, 0.0, 0.0], (n, 1))
    joints = np.column_stack([frictions, free if stops is None else stops, layout.rotor_inertias])
    parameters = read_only(parameters_of(layout) if tree.is_written_out else np.zeros(1))
    return ArmBody(None if tree.is_written_out else layout, parameters, read_only(joints), stops is not None)


class Rows(NamedTuple):
    """Rows of a step's table (22, n); n joints, torques are means over the step [N m]."""

    position: int  # at the start [rad]
    speed: int  # at the start [rad/s]
    bristle: int  # at the start [rad]
    drive: int  # torque of the motors at standstill
    back_emf: int  # decrease of the motor torque with speed [N m s/rad]
    acceleration: int  # initial value, then the solution [rad/s2]
    driving: int  # torque of the motors
    stopping: int  # torque of the end stops
    friction: int  # torque of the friction; it opposes the motion
    friction_z: int  # its derivative with respect to the bristle at the start [N m/rad]
    friction_start: int  # its derivative with respect to the speed at the start [N m s/rad]
    friction_end: int  # its derivative with respect to the speed at the end [N m s/rad]
    after: int  # bristle at the end [rad]
    after_z: int  # its derivative with respect to the bristle at the start [1]
    after_start: int  # its derivative with respect to the speed at the start [s]
    after_end: int  # its derivative with respect to the speed at the end [s]
    middle: int  # position argument of the forward dynamics [rad]
    mean_speed: int  # speed argument of the forward dynamics [rad/s]
    load: int  # torque argument of the forward dynamics
    rotors: int  # rotor inertias plus stiffness [kg m2]
    stiffness: int  # derivatives of all opposing torques with respect to the acceleration [kg m2]
    solution: int  # accelerations returned by the forward dynamics [rad/s2]


ROW = Rows(*range(len(Rows._fields)))


class StepWork(NamedTuple):
    """Work arrays of a step."""

    table: Vector  # (22, n), see `Rows`
    numbers: Vector  # (p,) parameters of the straight-line code, with changed rotor inertias
    derivatives: Vector  # (3, 1, n, n) of the accelerations with respect to middle position, mean speed and torque
    room: Vector  # of the recursions for a tree without straight-line code; empty for one with it


@compiled
def step_work(body: ArmBody) -> StepWork:
    """Allocate the work arrays for steps of an arm."""
    n = len(body.joints)
    room = np.zeros(0 if body.layout is None else room_size(n, n))
    return StepWork(np.zeros((len(ROW), n)), body.parameters.copy(), np.zeros((3, 1, n, n)), room)


@compiled
def friction_over_step(
    z: float, v_start: float, v_end: float, dt: float, constants: Vector
) -> tuple[float, float, float, float, float, float, float, float]:
    """Bristle after a step and mean friction torque over it, each with its derivatives by z, v_start and v_end.

    The mean of sigma1 dz/dt is exact, sigma1 (z+ - z) / dt; the mean of sigma0 z is that of both ends.

    Args:
        z: bristle at the start [rad].
        v_start: [rad/s].
        v_end: [rad/s].
        dt: [s].
        constants: (6,) coulomb, viscous, sigma0, sigma1, static, stribeck_speed; further elements are ignored.
    """
    viscous, sigma0, sigma1 = constants[1], constants[2], constants[3]
    joint = (constants[0], viscous, sigma0, sigma1, constants[4], constants[5])
    after, over_z, over_start, over_end = advance_with_slopes(z, v_start, v_end, dt, joint)
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
    """Write the torques of a step for the accelerations in the table, and the equation of Newton's next iteration.

    Args:
        joints: (n, 11) of `ArmBody`.
        halfway: as in `ArmBody`.
        dt: [s].
        least: lower bound of each joint's stiffness [kg m2].
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
        # Derivatives by a: v+ changes with dt, the mean speed with dt / 2.
        stiffness = max(dt * (friction_end - stop_slope) + half * back_emf, least)
        table[ROW.driving, i], table[ROW.stopping, i] = driving, stopping
        table[ROW.friction, i], table[ROW.friction_end, i] = friction, friction_end
        table[ROW.middle, i] = table[ROW.position, i] + half * (mean_speed if halfway else v)
        table[ROW.mean_speed, i] = mean_speed
        table[ROW.load, i] = driving - friction + stopping + stiffness * a
        table[ROW.stiffness, i] = stiffness
        table[ROW.rotors, i] = joints[i, _ROTOR] + stiffness


@compiled
def shortened(joints: Vector, dt: float, matrix: Vector, table: Vector) -> float:
    """Fraction of a Newton step, at most 1, that minimizes the convex function of the step equations.

    At a + s p, with p = solution - a and fixed velocity forces, the derivative of that function along p is

        g(s) = p' (s - 1) M p + p' (phi(a + s p) - phi(a) - D p),    phi = friction less motors and stops of each joint

    with g(0) < 0. D, at least 0, are the derivatives of phi used by Newton's method. The zero of g is found by false
    position with halved weights (Illinois), to a tenth of g(0).

    Args:
        joints: (n, 11) of `ArmBody`.
        dt: [s].
        matrix: (n, n) mass matrix M.
        table: (22, n) after an iteration from a.
    """
    n = table.shape[1]
    stride = table[ROW.solution] - table[ROW.acceleration]
    quadratic, fixed, start = 0.0, 0.0, 0.0
    for i in range(n):
        opposing = table[ROW.friction, i] - table[ROW.driving, i] - table[ROW.stopping, i]
        fixed -= stride[i] * (opposing + table[ROW.stiffness, i] * stride[i])
        start -= stride[i] * table[ROW.stiffness, i] * stride[i]
        for j in range(n):
            quadratic += stride[i] * matrix[i, j] * stride[j]
    start -= quadratic
    low, high, below, above, share, side = 0.0, 1.0, start, 0.0, 1.0, 0
    for _ in range(_CUTS):
        slope = fixed + (share - 1.0) * quadratic
        for i in range(n):
            v, there = table[ROW.speed, i], table[ROW.acceleration, i] + share * stride[i]
            mean_speed = v + 0.5 * dt * there
            resisting = friction_over_step(table[ROW.bristle, i], v, v + dt * there, dt, joints[i])[4]
            stopping, _ = stop_torque(table[ROW.position, i], dt * mean_speed, dt, joints[i, _STOP:_ROTOR])
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
def largest_change(dt: float, table: Vector) -> float:
    """Largest change of a speed by an iteration [rad/s]; NaN if a speed exceeds all bounds. The table is (22, n)."""
    change = 0.0
    for i in range(table.shape[1]):
        if not abs(table[ROW.speed, i] + dt * table[ROW.solution, i]) < _FASTEST:  # true for NaN, too
            return np.nan
        change = max(change, abs(table[ROW.solution, i] - table[ROW.acceleration, i]) * dt)
    return change


@compiled
def written_out_mass_matrix(joints: Vector, middle: Vector, numbers: Vector, matrix: Vector) -> None:
    """Write the mass matrix (n, n) at a position (n,) by straight-line code; joints and numbers as in `arm_step`."""
    for i in range(len(joints)):
        numbers[STRIDE * i + ROTOR] = joints[i, _ROTOR]
    arm_mass_matrix(middle, numbers, matrix)  # type: ignore[no-untyped-call]


@compiled
def solve_swept(along: bool, table: Vector, matrix: Vector, factors: Vector) -> bool:
    """Solve the equation in a table (22, n), whose row of solutions contains torques of the bodies; False if singular.

    The torques are those at the accelerations in the table, without rotors, if `along`, else those at none. `matrix`
    (n, n) is M; factors (n, n) is an output, of M with the stiffness.
    """
    n, solution = len(matrix), table[ROW.solution]
    for i in range(n):
        known = table[ROW.rotors, i] * table[ROW.acceleration, i] if along else 0.0
        solution[i] = table[ROW.load, i] - known - solution[i]
        for j in range(i + 1):
            factors[i, j] = matrix[i, j]
        factors[i, i] += table[ROW.stiffness, i]
    if not factor(factors, n):
        return False
    solve(factors, n, solution)
    if along:
        for i in range(n):
            solution[i] += table[ROW.acceleration, i]
    return True


@compiled
def invert_slopes(factors: Vector, derivatives: Vector, column: Vector) -> None:
    """Replace d tau/d q, d tau/d v, M (3, n, n) by the derivatives of the accelerations, with the factors (n, n) of M.

    `column` (n,) is work space.
    """
    n = len(column)
    inverse = derivatives[2]
    for c in range(n):
        for i in range(n):
            column[i] = 1.0 if i == c else 0.0
        solve(factors, n, column)
        for i in range(n):
            inverse[i, c] = column[i]
    for k in range(2):
        for c in range(n):
            for i in range(n):
                column[i] = derivatives[k, i, c]
            for i in range(n):
                slope = 0.0
                for j in range(n):
                    slope -= inverse[i, j] * column[j]
                derivatives[k, i, c] = slope


@compiled
def arm_step(
    layout: Layout | None,
    joints: Vector,
    halfway: bool,
    iterations: int,
    converged: float,
    search: bool,
    dt: float,
    slopes: bool,
    work: StepWork,
) -> int:
    """Solve a step for the accelerations by Newton's method; the table contains the start and the drive.

    Each iteration is one forward dynamics, by straight-line code or by recursion. The type of `layout` decides, so only
    one of them is compiled. One position argument has one mass matrix, which the recursion computes once. Parts of
    `ArmBody` are passed, not all of it, because each array of a tuple costs about 10 ns.

    Args:
        layout: that of `ArmBody`.
        joints: (n, 11), likewise.
        halfway: likewise.
        iterations: limit of the plain iterations; enough for nearly every step.
        converged: change of a speed in the last one [rad/s]; the remaining error is about its square.
        search: whether what they do not solve is attempted again from no acceleration, with a line search.
        dt: [s].
        slopes: whether to compute `work.derivatives`.
        work: on return its table has the torques of the last iteration.

    Returns:
        DONE, UNBOUNDED (numbers without bounds or a joint without inertia) or UNSOLVED.
    """
    table, numbers, derivatives, n = work.table, work.numbers, work.derivatives, len(joints)
    middle, mean_speed = table[ROW.middle : ROW.middle + 1], table[ROW.mean_speed : ROW.mean_speed + 1]
    load, solution = table[ROW.load : ROW.load + 1], table[ROW.solution : ROW.solution + 1]
    if layout is not None:
        room, torques = room_in(work.room, n, n), solution[0]
        dq, dv, matrix = derivatives[0, 0], derivatives[1, 0], derivatives[2, 0]
    end, limit, allowed = UNSOLVED, iterations, converged
    for attempt in range(2 if search else 1):
        if attempt == 1:
            end, limit, allowed = UNSOLVED, _ITERATIONS, _CONVERGED
            table[ROW.acceleration] = 0.0
        change = np.inf
        for iteration in range(limit):
            cut = attempt == 1 and iteration >= _UNCUT
            # Derivatives cost as much as another iteration. After a line search they are those of its solution.
            along = slopes and change < (_CONVERGED if cut else _NEAR)
            balance(joints, halfway, dt, 0.0 if cut and not along else -np.inf, table)
            regular = True
            if layout is None:
                for i in range(n):
                    numbers[STRIDE * i + ROTOR] = table[ROW.rotors, i]
                if along:
                    arm_derivatives(  # type: ignore[no-untyped-call]
                        middle, mean_speed, load, numbers, solution, derivatives
                    )
                else:
                    regular = arm_accelerations(middle[0], mean_speed[0], load[0], numbers, solution[0])
            else:
                if iteration == 0 or halfway:
                    mass_matrix_at(layout, middle[0], room.placed, matrix)
                if along:  # this sweep gives the torques of the accelerations, too
                    a = table[ROW.acceleration]
                    slopes_at(layout, mean_speed[0], a, room.none, room, torques, dq, dv)
                else:
                    bias_at(layout, mean_speed[0], room, torques)
                regular = solve_swept(along, table, matrix, room.factors)
            change = largest_change(dt, table) if regular else np.nan
            share = 0.0 if cut and along else 1.0
            if cut and not along and change >= _CONVERGED:
                if layout is None:
                    written_out_mass_matrix(joints, middle[0], numbers, derivatives[2, 0])
                share = shortened(joints, dt, derivatives[2, 0], table)
            if not (change < np.inf and np.isfinite(share)):
                end = UNBOUNDED
                break
            for i in range(n):
                start, target = table[ROW.acceleration, i], solution[0, i]
                table[ROW.acceleration, i] = target if share == 1.0 else start + share * (target - start)
            if (cut and along) or (change < allowed and (along or not slopes)):
                if layout is not None and slopes:
                    invert_slopes(room.factors, derivatives[:, 0], torques)
                return DONE
    return end
