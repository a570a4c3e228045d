"""Mass matrix, torques and their derivatives of an arm whose joints have one speed each, without allocations.

The formulas are those of `_derivatives`, in the world frame, and use what holds for such an arm: S' = v x S and
S'' = a x S + v x S' with v and a of the body itself, so that v x S is S'. The inertia of a body has ten numbers, mass,
first moment h and inertia J, and B has twelve: with the linear momentum p = m v + w x h and v = [v; w],

    I = [[m E, -h~], [h~, J]],    B = [[0, -2 p~], [0, G]],    G = 2 w~ J - tr(J) w~ + 2 (h.v E - v h')

so all of them, and their sums over the bodies that a joint carries, take a third of the products of (6, 6) matrices.
Source: Singh, Russell, Wensing 2022; systems 19, 26.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree._derivatives import inertias_in_world, place_in_world
from youbot_dynamics.dynamics.tree._layout import REVOLUTE, Layout
from youbot_dynamics.dynamics.tree._recursion import place, sines_and_cosines
from youbot_dynamics.dynamics.tree._spatial import cross, momentum_of, rotate, rotate_back


class ArmRoom(NamedTuple):
    """Work space for an arm of n joints, in one array that the caller keeps; names as in the module, all in the world.

    A carried quantity is the sum over a body and all bodies that it carries.
    """

    rotations: Any  # (n, 3, 3) body to parent
    positions: Any  # (n, 3) in the parent
    turned: Any  # (n, 3, 3) body to world
    moved: Any  # (n, 3)
    moments: Any  # (n, 3) h
    inertias: Any  # (n, 3, 3) J
    masses: Any  # (n,) carried
    carried_moments: Any  # (n, 3)
    carried_inertias: Any  # (n, 3, 3)
    columns: Any  # (n, 6) S
    loads: Any  # (n, 6) carried I S
    rates: Any  # (n, 6) S'
    seconds: Any  # (n, 6) S''
    velocity: Any  # (n, 6)
    acceleration: Any  # (n, 6) minus gravity
    force: Any  # (n, 6); carried once the torques are written
    momentum: Any  # (n, 3) p; carried once the derivatives are written
    coriolis: Any  # (n, 3, 3) G, likewise
    pushes: Any  # (3, 6) of a joint, see `push`; the first half of the last stays 0
    still: Any  # (n,) zeros, never written
    factors: Any  # (n, n) for the caller


@compiled
def room_size(n: int) -> int:
    """Length of an array of zeros for `room_in`."""
    return 104 * n + n * n + 18


@compiled
def room_in(room: Any, n: int) -> ArmRoom:
    """Work space in an array; one array is much faster to allocate and to pass than twenty."""
    return ArmRoom(
        room[: 9 * n].reshape(n, 3, 3),
        room[9 * n : 12 * n].reshape(n, 3),
        room[12 * n : 21 * n].reshape(n, 3, 3),
        room[21 * n : 24 * n].reshape(n, 3),
        room[24 * n : 27 * n].reshape(n, 3),
        room[27 * n : 36 * n].reshape(n, 3, 3),
        room[36 * n : 37 * n],
        room[37 * n : 40 * n].reshape(n, 3),
        room[40 * n : 49 * n].reshape(n, 3, 3),
        room[49 * n : 55 * n].reshape(n, 6),
        room[55 * n : 61 * n].reshape(n, 6),
        room[61 * n : 67 * n].reshape(n, 6),
        room[67 * n : 73 * n].reshape(n, 6),
        room[73 * n : 79 * n].reshape(n, 6),
        room[79 * n : 85 * n].reshape(n, 6),
        room[85 * n : 91 * n].reshape(n, 6),
        room[91 * n : 94 * n].reshape(n, 3),
        room[94 * n : 103 * n].reshape(n, 3, 3),
        room[104 * n + n * n :].reshape(3, 6),
        room[103 * n : 104 * n],
        room[104 * n : 104 * n + n * n].reshape(n, n),
    )


@compiled
def motion_product(v: Any, m: Any, i: int) -> Any:
    """Motion product v[i] x m[i] of motions v, m (n, 6), as six scalars; see `add_motion_cross`."""
    ux, uy, uz, wx, wy, wz = v[i, 0], v[i, 1], v[i, 2], v[i, 3], v[i, 4], v[i, 5]
    ax, ay, az = cross(wx, wy, wz, m[i, 0], m[i, 1], m[i, 2])
    bx, by, bz = cross(ux, uy, uz, m[i, 3], m[i, 4], m[i, 5])
    cx, cy, cz = cross(wx, wy, wz, m[i, 3], m[i, 4], m[i, 5])
    return ax + bx, ay + by, az + bz, cx, cy, cz


@compiled
def product(a: Any, i: int, b: Any, k: int) -> float:
    """Scalar product of rows i of a (n, 6) and k of b (n, 6)."""
    total: float = (
        a[i, 0] * b[k, 0]
        + a[i, 1] * b[k, 1]
        + a[i, 2] * b[k, 2]
        + a[i, 3] * b[k, 3]
        + a[i, 4] * b[k, 4]
        + a[i, 5] * b[k, 5]
    )
    return total


@compiled
def mass_matrix_at(layout: Layout, q: Vector, room: ArmRoom, matrix: Vector) -> None:
    """Write the mass matrix (n, n), rotors included, at q (n,); the room keeps what depends on q alone."""
    n, columns, turned, moved = len(q), room.columns, room.turned, room.moved
    masses, moments, inertias = room.masses, room.carried_moments, room.carried_inertias
    # The rates serve as sines and cosines until `move` overwrites them.
    sines, cosines = room.rates.reshape(6 * n)[:n], room.rates.reshape(6 * n)[n : 2 * n]
    sines_and_cosines(layout, q, sines, cosines)
    place(layout, q, sines, cosines, room.rotations, room.positions)
    place_in_world(layout, room.rotations, room.positions, turned, moved)
    inertias_in_world(layout, turned, moved, masses, room.moments, room.inertias)
    moments[:] = room.moments
    inertias[:] = room.inertias
    matrix[:] = 0.0
    for k in range(n - 1, -1, -1):
        i = layout.order[k]
        x, y, z = rotate(turned, i, layout.axes[i, 0], layout.axes[i, 1], layout.axes[i, 2])
        if layout.kinds[i] == REVOLUTE:
            columns[i, 0], columns[i, 1], columns[i, 2] = cross(moved[i, 0], moved[i, 1], moved[i, 2], x, y, z)
            columns[i, 3], columns[i, 4], columns[i, 5] = x, y, z
        else:
            columns[i, 0], columns[i, 1], columns[i, 2] = x, y, z
            columns[i, 3], columns[i, 4], columns[i, 5] = 0.0, 0.0, 0.0
    for k in range(n - 1, -1, -1):
        i = layout.order[k]
        f0, f1, f2, f3, f4, f5 = momentum_of(masses, moments, inertias, i, columns, i)
        room.loads[i, 0], room.loads[i, 1], room.loads[i, 2] = f0, f1, f2
        room.loads[i, 3], room.loads[i, 4], room.loads[i, 5] = f3, f4, f5
        j = i
        while j >= 0:
            matrix[i, j] = matrix[j, i] = product(columns, j, room.loads, i)
            j = layout.parents[j]
        matrix[i, i] += layout.rotor_inertias[i]
        parent = layout.parents[i]
        if parent >= 0:
            masses[parent] += masses[i]
            for row in range(3):
                moments[parent, row] += moments[i, row]
                for column in range(3):
                    inertias[parent, row, column] += inertias[i, row, column]


@compiled
def move(layout: Layout, v: Vector, a: Vector, room: ArmRoom) -> None:
    """Write motions, S', p and the force of each single body for speeds v and accelerations a (n,)."""
    velocity, acceleration, columns, rates = room.velocity, room.acceleration, room.columns, room.rates
    for k in range(len(v)):
        i = layout.order[k]
        parent = layout.parents[i]
        for row in range(6):
            velocity[i, row] = velocity[parent, row] if parent >= 0 else 0.0
            if parent >= 0:
                acceleration[i, row] = acceleration[parent, row]
            else:
                acceleration[i, row] = -layout.gravity[row] if row < 3 else 0.0
        r0, r1, r2, r3, r4, r5 = motion_product(velocity, columns, i)
        rates[i, 0], rates[i, 1], rates[i, 2], rates[i, 3], rates[i, 4], rates[i, 5] = r0, r1, r2, r3, r4, r5
        for row in range(6):
            velocity[i, row] += columns[i, row] * v[i]
            acceleration[i, row] += columns[i, row] * a[i] + rates[i, row] * v[i]
        px, py, pz, lx, ly, lz = momentum_of(layout.masses, room.moments, room.inertias, i, velocity, i)
        fx, fy, fz, mx, my, mz = momentum_of(layout.masses, room.moments, room.inertias, i, acceleration, i)
        ux, uy, uz = velocity[i, 0], velocity[i, 1], velocity[i, 2]
        wx, wy, wz = velocity[i, 3], velocity[i, 4], velocity[i, 5]
        ax, ay, az = cross(wx, wy, wz, px, py, pz)
        bx, by, bz = cross(wx, wy, wz, lx, ly, lz)
        cx, cy, cz = cross(ux, uy, uz, px, py, pz)
        room.momentum[i, 0], room.momentum[i, 1], room.momentum[i, 2] = px, py, pz
        room.force[i, 0], room.force[i, 1], room.force[i, 2] = fx + ax, fy + ay, fz + az
        room.force[i, 3], room.force[i, 4], room.force[i, 5] = mx + bx + cx, my + by + cy, mz + bz + cz


@compiled
def bias_at(layout: Layout, v: Vector, room: ArmRoom, tau: Vector) -> None:
    """Write the torques tau (n,) of gravity and speeds v (n,) at the position of the last `mass_matrix_at`."""
    move(layout, v, room.still, room)
    for k in range(len(v) - 1, -1, -1):
        i = layout.order[k]
        tau[i] = product(room.columns, i, room.force, i)
        parent = layout.parents[i]
        if parent >= 0:
            for row in range(6):
                room.force[parent, row] += room.force[i, row]


@compiled
def turn_momenta(velocity: Vector, moments: Vector, inertias: Vector, i: int, coriolis: Vector) -> None:
    """Write G (3, 3) of body i to coriolis (n, 3, 3): 2 w~ J - tr(J) w~ + 2 (h.v E - v h')."""
    wx, wy, wz = velocity[i, 3], velocity[i, 4], velocity[i, 5]
    trace = inertias[i, 0, 0] + inertias[i, 1, 1] + inertias[i, 2, 2]
    along = 0.0
    for row in range(3):
        along += 2.0 * moments[i, row] * velocity[i, row]
    for c in range(3):
        x, y, z = cross(wx, wy, wz, inertias[i, 0, c], inertias[i, 1, c], inertias[i, 2, c])
        twice = 2.0 * moments[i, c]
        coriolis[i, 0, c] = 2.0 * x - velocity[i, 0] * twice
        coriolis[i, 1, c] = 2.0 * y - velocity[i, 1] * twice
        coriolis[i, 2, c] = 2.0 * z - velocity[i, 2] * twice
        coriolis[i, c, c] += along
    coriolis[i, 0, 1] += trace * wz
    coriolis[i, 0, 2] -= trace * wy
    coriolis[i, 1, 0] -= trace * wz
    coriolis[i, 1, 2] += trace * wx
    coriolis[i, 2, 0] += trace * wy
    coriolis[i, 2, 1] -= trace * wx


@compiled
def push(room: ArmRoom, i: int) -> None:
    """Write B S' + I S'' + S x* f, B S + 2 I S' and B' S of joint i to `pushes`, with what it carries."""
    columns, rates, force, pushes = room.columns, room.rates, room.force, room.pushes
    px, py, pz = 2.0 * room.momentum[i, 0], 2.0 * room.momentum[i, 1], 2.0 * room.momentum[i, 2]
    ux, uy, uz = columns[i, 0], columns[i, 1], columns[i, 2]
    wx, wy, wz = columns[i, 3], columns[i, 4], columns[i, 5]
    sx, sy, sz = rates[i, 3], rates[i, 4], rates[i, 5]
    f0, f1, f2, f3, f4, f5 = momentum_of(room.masses, room.carried_moments, room.carried_inertias, i, room.seconds, i)
    ax, ay, az = cross(sx, sy, sz, px, py, pz)
    bx, by, bz = rotate(room.coriolis, i, sx, sy, sz)
    cx, cy, cz = cross(wx, wy, wz, force[i, 0], force[i, 1], force[i, 2])
    dx, dy, dz = cross(wx, wy, wz, force[i, 3], force[i, 4], force[i, 5])
    ex, ey, ez = cross(ux, uy, uz, force[i, 0], force[i, 1], force[i, 2])
    pushes[0, 0], pushes[0, 1], pushes[0, 2] = f0 + ax + cx, f1 + ay + cy, f2 + az + cz
    pushes[0, 3], pushes[0, 4], pushes[0, 5] = f3 + bx + dx + ex, f4 + by + dy + ey, f5 + bz + dz + ez
    f0, f1, f2, f3, f4, f5 = momentum_of(room.masses, room.carried_moments, room.carried_inertias, i, rates, i)
    ax, ay, az = cross(wx, wy, wz, px, py, pz)
    bx, by, bz = rotate(room.coriolis, i, wx, wy, wz)
    pushes[1, 0], pushes[1, 1], pushes[1, 2] = 2.0 * f0 + ax, 2.0 * f1 + ay, 2.0 * f2 + az
    pushes[1, 3], pushes[1, 4], pushes[1, 5] = 2.0 * f3 + bx, 2.0 * f4 + by, 2.0 * f5 + bz
    ax, ay, az = cross(px, py, pz, ux, uy, uz)
    bx, by, bz = rotate_back(room.coriolis, i, wx, wy, wz)
    pushes[2, 3], pushes[2, 4], pushes[2, 5] = ax + bx, ay + by, az + bz


@compiled
def slopes_at(layout: Layout, v: Vector, a: Vector, room: ArmRoom, tau: Vector, dq: Vector, dv: Vector) -> None:
    """Write tau (n,), d tau/d q and d tau/d v (n, n) at the position of the last `mass_matrix_at`; no rotors in tau."""
    columns, rates, seconds, loads, force = room.columns, room.rates, room.seconds, room.loads, room.force
    momentum, coriolis, n = room.momentum, room.coriolis, len(v)
    move(layout, v, a, room)
    for i in range(n):
        turn_momenta(room.velocity, room.moments, room.inertias, i, coriolis)
        a0, a1, a2, a3, a4, a5 = motion_product(room.acceleration, columns, i)
        b0, b1, b2, b3, b4, b5 = motion_product(room.velocity, rates, i)
        seconds[i, 0], seconds[i, 1], seconds[i, 2] = a0 + b0, a1 + b1, a2 + b2
        seconds[i, 3], seconds[i, 4], seconds[i, 5] = a3 + b3, a4 + b4, a5 + b5
    dq[:] = 0.0
    dv[:] = 0.0
    for k in range(n - 1, -1, -1):
        i = layout.order[k]
        tau[i] = product(columns, i, force, i)
        push(room, i)
        j = i
        while j >= 0:
            if j != i:
                dq[j, i] = product(columns, j, room.pushes, 0)
                dv[j, i] = product(columns, j, room.pushes, 1)
            dq[i, j] = product(rates, j, room.pushes, 2) + product(seconds, j, loads, i)
            dv[i, j] = product(columns, j, room.pushes, 2) + 2.0 * product(rates, j, loads, i)
            j = layout.parents[j]
        parent = layout.parents[i]
        if parent >= 0:
            for row in range(6):
                force[parent, row] += force[i, row]
            for row in range(3):
                momentum[parent, row] += momentum[i, row]
                for column in range(3):
                    coriolis[parent, row, column] += coriolis[i, row, column]
