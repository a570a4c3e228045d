"""Exact derivatives of inverse and forward dynamics of a tree, O(N d) for N joints and depth d.

The formulas are in the world frame, where inertias of composite bodies add up without a transformation. With S a
joint's column, v and a of the body and v_p, a_p of its parent (gravity is an acceleration -g of the world):

    S' = v_p x S,   S'' = a_p x S + v_p x S',   B = v x* I - I v x + (I v) x~*   (f x~* m = m x* f)

and with I, B, f summed over all bodies that a joint carries, for r on the way from s to the root

    d tau_r/d q_s = S_r' (B S_s' + I S_s'' + f x~* S_s)      d tau_s/d q_r = S_s' (B S_r' + I S_r'')
    d tau_r/d v_s = S_r' (B S_s + I (S_s' + v x S_s))        d tau_s/d v_r = S_s' (B S_r + I (S_r' + v x S_r))

Derivatives by q of a floating joint are along the motions [linear; angular] of its body, not along the quaternion.
Document 001 calls the derivatives too complex and uses finite differences. They are d qdd/d q = -M^-1 d ID/d q and
d qdd/d tau = M^-1.
Source: Singh, Russell, Wensing 2022; document 001 (5), (6), system 8; D-001-2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree._articulated_body import body_inertia
from youbot_dynamics.dynamics.tree._layout import Layout
from youbot_dynamics.dynamics.tree._spatial import add_force_cross, add_motion_cross, cross, factor, rotate, solve


@compiled
def place_in_world(layout: Layout, rotations: Any, positions: Any, turned: Any, moved: Any) -> None:
    """Write the pose of every body in the world: turned (n, 3, 3), moved (n, 3). Source: system 17."""
    for k in range(layout.order.shape[0]):
        i = layout.order[k]
        parent = layout.parents[i]
        if parent < 0:
            for row in range(3):
                moved[i, row] = positions[i, row]
                for column in range(3):
                    turned[i, row, column] = rotations[i, row, column]
            continue
        x, y, z = rotate(turned, parent, positions[i, 0], positions[i, 1], positions[i, 2])
        moved[i, 0], moved[i, 1], moved[i, 2] = moved[parent, 0] + x, moved[parent, 1] + y, moved[parent, 2] + z
        for column in range(3):
            x, y, z = rotate(turned, parent, rotations[i, 0, column], rotations[i, 1, column], rotations[i, 2, column])
            turned[i, 0, column], turned[i, 1, column], turned[i, 2, column] = x, y, z


@compiled
def inertias_in_world(layout: Layout, turned: Any, moved: Any, masses: Any, first_moments: Any, inertias: Any) -> None:
    """Write mass, first moment and inertia of every body about the world's origin, in the world's axes.

    turned (n, 3, 3) and moved (n, 3) are from `place_in_world`; masses (n,), first_moments (n, 3) and inertias (n, 3,
    3) are outputs. The parallel-axis theorem is applied to the tensor.
    Source: system 19; D-002-3.
    """
    for i in range(layout.parents.shape[0]):
        m = layout.masses[i]
        masses[i] = m
        h = layout.first_moments[i]
        hx, hy, hz = rotate(turned, i, h[0], h[1], h[2])
        p = moved[i]
        first_moments[i, 0], first_moments[i, 1], first_moments[i, 2] = hx + m * p[0], hy + m * p[1], hz + m * p[2]
        for row in range(3):
            x, y, z = rotate(layout.inertias, i, turned[i, row, 0], turned[i, row, 1], turned[i, row, 2])
            inertias[i, row, 0], inertias[i, row, 1], inertias[i, row, 2] = rotate(turned, i, x, y, z)
        arm = 2.0 * (p[0] * hx + p[1] * hy + p[2] * hz) + m * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2])
        rotated = (hx, hy, hz)
        for row in range(3):
            inertias[i, row, row] += arm
            for column in range(3):
                inertias[i, row, column] -= p[row] * rotated[column] + rotated[row] * p[column] + m * p[row] * p[column]


@compiled
def velocity_inertia(inertia: Any, v: Any, momentum: Any, unit: Any, moved: Any, column: Any, out: Any) -> None:
    """Write B = v x* I - I v x + (I v) x~* to out (6, 6), column by column.

    Arguments are inertia (6, 6), velocity v (6,) and momentum (6,) I v; unit, moved and column (6,) are work space.
    Source: Singh, Russell, Wensing 2022.
    """
    for c in range(6):
        for row in range(6):
            unit[row] = 1.0 if row == c else 0.0
            moved[row] = 0.0
            column[row] = 0.0
        add_motion_cross(v, unit, moved)
        add_force_cross(v, inertia[c], column)  # the inertia is symmetric, so row c is column c
        add_force_cross(unit, momentum, column)
        for row in range(6):
            for k in range(6):
                column[row] -= inertia[row, k] * moved[k]
            out[row, c] = column[row]


class Space(NamedTuple):
    """Work space for n bodies and nv joint speeds; names as in the formulas of the module."""

    turned: Any  # (n, 3, 3) body to world
    moved: Any  # (n, 3) in the world
    masses: Any  # (n,)
    first_moments: Any  # (n, 3) about the world's origin
    inertias: Any  # (n, 3, 3) about the world's origin
    velocity: Any  # (n, 6) v
    acceleration: Any  # (n, 6) a
    columns: Any  # (nv, 6) S
    rates: Any  # (nv, 6) S'
    seconds: Any  # (nv, 6) S''
    sweeps: Any  # (nv, 6) v x S
    inertia: Any  # (n, 6, 6) I; after the inward pass the sum over all carried bodies
    coriolis: Any  # (n, 6, 6) B, likewise
    force: Any  # (n, 6) f, likewise
    vectors: Any  # (7, 6)


@compiled
def new_space(n: int, nv: int) -> Space:
    """Work space filled with zeros, in one array, which is much faster to allocate than fifteen."""
    room = np.zeros(115 * n + 24 * nv + 42)
    bodies, joints, vectors = room[: 115 * n], room[115 * n : 115 * n + 24 * nv], room[115 * n + 24 * nv :]
    return Space(
        bodies[: 9 * n].reshape(n, 3, 3),
        bodies[9 * n : 12 * n].reshape(n, 3),
        bodies[12 * n : 13 * n],
        bodies[13 * n : 16 * n].reshape(n, 3),
        bodies[16 * n : 25 * n].reshape(n, 3, 3),
        bodies[25 * n : 31 * n].reshape(n, 6),
        bodies[31 * n : 37 * n].reshape(n, 6),
        joints[: 6 * nv].reshape(nv, 6),
        joints[6 * nv : 12 * nv].reshape(nv, 6),
        joints[12 * nv : 18 * nv].reshape(nv, 6),
        joints[18 * nv :].reshape(nv, 6),
        bodies[37 * n : 73 * n].reshape(n, 6, 6),
        bodies[73 * n : 109 * n].reshape(n, 6, 6),
        bodies[109 * n :].reshape(n, 6),
        vectors.reshape(7, 6),
    )


@compiled
def sweep_out(layout: Layout, rotations: Any, positions: Any, v: Any, a: Any, external: Any, space: Space) -> None:
    """Fill the work space from the root to the tips: motions, columns, and I, B, f of each single body.

    Arguments are the poses in the parent, rotations (n, 3, 3) and positions (n, 3), joint speeds v and accelerations a
    (nv,), and a wrench on each body in its frame, external (n, 6). The formulas are in the docstring of the module.
    """
    turned, moved, velocity, acceleration = space.turned, space.moved, space.velocity, space.acceleration
    columns, rates, seconds, sweeps, force = space.columns, space.rates, space.seconds, space.sweeps, space.force
    momentum, unit, shifted, column = space.vectors[0], space.vectors[1], space.vectors[2], space.vectors[3]
    place_in_world(layout, rotations, positions, turned, moved)
    inertias_in_world(layout, turned, moved, space.masses, space.first_moments, space.inertias)
    for k in range(layout.order.shape[0]):
        i = layout.order[k]
        parent = layout.parents[i]
        for row in range(6):
            velocity[i, row] = velocity[parent, row] if parent >= 0 else 0.0
            if parent >= 0:
                acceleration[i, row] = acceleration[parent, row]
            else:
                acceleration[i, row] = -layout.gravity[row] if row < 3 else 0.0
            force[i, row] = 0.0
            momentum[row] = 0.0
        start, end = layout.v_start[i], layout.v_start[i] + layout.v_count[i]
        for s in range(start, end):
            local = layout.subspace[s]
            wx, wy, wz = rotate(turned, i, local[3], local[4], local[5])
            vx, vy, vz = rotate(turned, i, local[0], local[1], local[2])
            sx, sy, sz = cross(moved[i, 0], moved[i, 1], moved[i, 2], wx, wy, wz)
            columns[s, 0], columns[s, 1], columns[s, 2] = vx + sx, vy + sy, vz + sz
            columns[s, 3], columns[s, 4], columns[s, 5] = wx, wy, wz
            for row in range(6):
                rates[s, row] = seconds[s, row] = sweeps[s, row] = 0.0
            # Here velocity[i] and acceleration[i] are still those of the parent.
            add_motion_cross(velocity[i], columns[s], rates[s])
            add_motion_cross(acceleration[i], columns[s], seconds[s])
            add_motion_cross(velocity[i], rates[s], seconds[s])
        for s in range(start, end):
            for row in range(6):
                velocity[i, row] += columns[s, row] * v[s]
        for s in range(start, end):
            add_motion_cross(velocity[i], columns[s], sweeps[s])
            for row in range(6):
                acceleration[i, row] += columns[s, row] * a[s] + sweeps[s, row] * v[s]
        body_inertia(space.masses, space.first_moments, space.inertias, i, space.inertia[i])
        for row in range(6):
            for c in range(6):
                momentum[row] += space.inertia[i, row, c] * velocity[i, c]
                force[i, row] += space.inertia[i, row, c] * acceleration[i, c]
        add_force_cross(velocity[i], momentum, force[i])
        velocity_inertia(space.inertia[i], velocity[i], momentum, unit, shifted, column, space.coriolis[i])
        fx, fy, fz = rotate(turned, i, external[i, 0], external[i, 1], external[i, 2])
        mx, my, mz = rotate(turned, i, external[i, 3], external[i, 4], external[i, 5])
        sx, sy, sz = cross(moved[i, 0], moved[i, 1], moved[i, 2], fx, fy, fz)
        force[i, 0] -= fx
        force[i, 1] -= fy
        force[i, 2] -= fz
        force[i, 3] -= mx + sx
        force[i, 4] -= my + sy
        force[i, 5] -= mz + sz


@compiled
def sweep_in(layout: Layout, space: Space, tau: Any, dq: Any, dv: Any, matrix: Any) -> None:
    """Sum I, B, f from the tips to the root and write torques, their derivatives and the mass matrix.

    tau (nv,) excludes the rotors; dq, dv and matrix (nv, nv) stay zero for joints on different branches.
    The formulas are in the docstring of the module.
    """
    columns, rates, seconds, sweeps = space.columns, space.rates, space.seconds, space.sweeps
    by_q, by_v, carried, swept = space.vectors[3], space.vectors[4], space.vectors[5], space.vectors[6]
    for k in range(layout.order.shape[0] - 1, -1, -1):
        i = layout.order[k]
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            tau[s] = 0.0
            for row in range(6):
                by_q[row] = by_v[row] = carried[row] = swept[row] = 0.0
                tau[s] += columns[s, row] * space.force[i, row]
            add_force_cross(columns[s], space.force[i], by_q)
            for row in range(6):
                for c in range(6):
                    m, b = space.inertia[i, row, c], space.coriolis[i, row, c]
                    by_q[row] += b * rates[s, c] + m * seconds[s, c]
                    by_v[row] += b * columns[s, c] + m * (rates[s, c] + sweeps[s, c])
                    carried[row] += m * columns[s, c]
                    swept[c] += b * columns[s, row]
            j = i
            while j >= 0:
                for r in range(layout.v_start[j], layout.v_start[j] + layout.v_count[j]):
                    up_q, up_v, down_q, down_v, mass = 0.0, 0.0, 0.0, 0.0, 0.0
                    for row in range(6):
                        up_q += columns[r, row] * by_q[row]
                        up_v += columns[r, row] * by_v[row]
                        down_q += swept[row] * rates[r, row] + carried[row] * seconds[r, row]
                        down_v += swept[row] * columns[r, row] + carried[row] * (rates[r, row] + sweeps[r, row])
                        mass += carried[row] * columns[r, row]
                    if j != i:
                        dq[r, s] = up_q
                        dv[r, s] = up_v
                    dq[s, r] = down_q
                    dv[s, r] = down_v
                    matrix[r, s] = mass
                    matrix[s, r] = mass
                j = layout.parents[j]
        parent = layout.parents[i]
        if parent >= 0:
            for row in range(6):
                space.force[parent, row] += space.force[i, row]
                for c in range(6):
                    space.inertia[parent, row, c] += space.inertia[i, row, c]
                    space.coriolis[parent, row, c] += space.coriolis[i, row, c]
    for s in range(tau.shape[0]):
        matrix[s, s] += layout.rotor_inertias[s]


@compiled
def solve_derivatives(dq: Vector, dv: Vector, matrix: Vector) -> bool:
    """Replace d tau/d q, d tau/d v, M by d qdd/d q = -M^-1 d tau/d q, d qdd/d v = -M^-1 d tau/d v, d qdd/d tau = M^-1.

    Each is (nv, nv). Returns False if M is not positive definite.
    Source: document 001 (5), (6), which takes finite differences; system 8; D-001-2.
    """
    nv = matrix.shape[0]
    factors = matrix.copy()
    if not factor(factors, nv):
        return False
    column = np.empty(nv)
    for c in range(nv):
        for row in range(nv):
            column[row] = -dq[row, c]
        solve(factors, nv, column)
        dq[:, c] = column
        for row in range(nv):
            column[row] = -dv[row, c]
        solve(factors, nv, column)
        dv[:, c] = column
        column[:] = 0.0
        column[c] = 1.0
        solve(factors, nv, column)
        matrix[:, c] = column
    return True
