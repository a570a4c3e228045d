"""Mass matrix, torques and their exact derivatives of a tree, O(N d) for N joints and depth d, without allocations.

The formulas are in the world frame, where inertias of composite bodies add up without a transformation. With S a
joint's column, v and a of the body and v_p, a_p of its parent (gravity is an acceleration -g of the world):

    S' = v_p x S,   S'' = a_p x S + v_p x S',   B = v x* I - I v x + (I v) x~*   (f x~* m = m x* f)

and with I, B, f summed over all bodies that a joint carries, for r on the way from s to the root

    M_rs = S_r' I S_s
    d tau_r/d q_s = S_r' (B S_s' + I S_s'' + f x~* S_s)      d tau_s/d q_r = S_s' (B S_r' + I S_r'')
    d tau_r/d v_s = S_r' (B S_s + I (S_s' + v x S_s))        d tau_s/d v_r = S_s' (B S_r + I (S_r' + v x S_r))

The inertia of a body has ten numbers, mass, first moment h and inertia J, and B has twelve: with the linear momentum
p = m v + w x h and v = [v; w],

    I = [[m E, -h~], [h~, J]],    B = [[0, -2 p~], [0, G]],    G = 2 w~ J - tr(J) w~ + 2 (h.v E - v h')

so all of them, and their sums over the bodies that a joint carries, take a third of the products of (6, 6) matrices.
Derivatives by q of a floating joint are along the motions [linear; angular] of its body, not along the quaternion.
Source: Singh, Russell, Wensing 2022; Walker and Orin 1982; systems 19, 26.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree._layout import Layout
from youbot_dynamics.dynamics.tree._recursion import place, sines_and_cosines
from youbot_dynamics.dynamics.tree._spatial import cross, momentum_of, rotate, rotate_back


class Placed(NamedTuple):
    """What depends on the position alone, for n bodies and nv joint speeds, in the world; names as in the module.

    A carried quantity is the sum over a body and all that it carries.
    """

    sines: Any  # (n,)
    cosines: Any  # (n,)
    rotations: Any  # (n, 3, 3) body to parent
    positions: Any  # (n, 3) in the parent
    turned: Any  # (n, 3, 3) body to world
    moved: Any  # (n, 3)
    moments: Any  # (n, 3) h
    inertias: Any  # (n, 3, 3) J
    masses: Any  # (n,) carried
    carried_moments: Any  # (n, 3)
    carried_inertias: Any  # (n, 3, 3)
    columns: Any  # (nv, 6) S
    loads: Any  # (nv, 6) carried I S


class Room(NamedTuple):
    """Work space in one array that the caller keeps; names and carried quantities as in `Placed`."""

    placed: Placed
    velocity: Any  # (n + 1, 6); the last is the world's, where the parent -1 finds it
    acceleration: Any  # (n + 1, 6) minus gravity, likewise
    force: Any  # (n, 6); carried once the torques are written
    momentum: Any  # (n, 3) p; carried once the derivatives are written
    coriolis: Any  # (n, 3, 3) G, likewise
    rates: Any  # (nv, 6) S'
    sums: Any  # (nv, 6) S' + v x S
    seconds: Any  # (nv, 6) S''
    pushes: Any  # (3, 6) of a column, see `push`; the first half of the last stays 0
    still: Any  # (nv,) zeros, never written
    factors: Any  # (nv, nv) for the caller
    none: Any  # (0, 6) wrenches of a tree without any


@compiled
def room_size(n: int, nv: int) -> int:
    """Length of an array of zeros for `room_in`."""
    return 81 * n + 31 * nv + nv * nv + 30


@compiled
def room_in(room: Any, n: int, nv: int) -> Room:
    """Work space in an array; one array is much faster to allocate and to pass than twenty."""
    last = 78 * n + 30 * nv + 30
    matrices, vectors = room[: 45 * n].reshape(5 * n, 3, 3), room[45 * n : 60 * n].reshape(5 * n, 3)
    motions, rest = room[60 * n : last].reshape(3 * n + 5 * nv + 5, 6), room[last:]
    joints = motions[3 * n + 2 :]
    placed = Placed(
        rest[n : 2 * n],
        rest[2 * n : 3 * n],
        matrices[:n],
        vectors[:n],
        matrices[n : 2 * n],
        vectors[n : 2 * n],
        vectors[2 * n : 3 * n],
        matrices[2 * n : 3 * n],
        rest[:n],
        vectors[3 * n : 4 * n],
        matrices[3 * n : 4 * n],
        joints[:nv],
        joints[nv : 2 * nv],
    )
    return Room(
        placed,
        motions[: n + 1],
        motions[n + 1 : 2 * n + 2],
        motions[2 * n + 2 : 3 * n + 2],
        vectors[4 * n :],
        matrices[4 * n :],
        joints[2 * nv : 3 * nv],
        joints[3 * nv : 4 * nv],
        joints[4 * nv : 5 * nv],
        joints[5 * nv :],
        rest[3 * n : 3 * n + nv],
        rest[3 * n + nv :].reshape(nv, nv),
        motions[:0],
    )


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
    3) are outputs. The parallel-axis theorem from pole to pole, with the first moment h after rotation, is
    I + 2 (p.h) E - p h' - h p' + m (p.p E - p p'). The scalar I + m |d|^2 of document 002 is valid only from the centre
    of mass.
    Source: system 19; D-002-3.
    """
    for i in range(layout.parents.shape[0]):
        m, px, py, pz = layout.masses[i], moved[i, 0], moved[i, 1], moved[i, 2]
        hx, hy, hz = rotate(
            turned, i, layout.first_moments[i, 0], layout.first_moments[i, 1], layout.first_moments[i, 2]
        )
        # Moment of the mass about the world's origin; terms in (h + m p) need fewer products.
        gx, gy, gz = hx + m * px, hy + m * py, hz + m * pz
        # Upper triangle of R I R': xx, xy, xz, yy, yz, zz.
        ax, ay, az = rotate(layout.inertias, i, turned[i, 0, 0], turned[i, 0, 1], turned[i, 0, 2])
        bx, by, bz = rotate(layout.inertias, i, turned[i, 1, 0], turned[i, 1, 1], turned[i, 1, 2])
        cx, cy, cz = rotate(layout.inertias, i, turned[i, 2, 0], turned[i, 2, 1], turned[i, 2, 2])
        xx, xy, xz = rotate(turned, i, ax, ay, az)
        _, yy, yz = rotate(turned, i, bx, by, bz)
        _, _, zz = rotate(turned, i, cx, cy, cz)
        xy -= gx * py + px * hy
        xz -= gx * pz + px * hz
        yz -= gy * pz + py * hz
        masses[i] = m
        first_moments[i, 0], first_moments[i, 1], first_moments[i, 2] = gx, gy, gz
        inertias[i, 0, 0] = xx + py * gy + pz * gz + hy * py + hz * pz
        inertias[i, 1, 1] = yy + px * gx + pz * gz + hx * px + hz * pz
        inertias[i, 2, 2] = zz + px * gx + py * gy + hx * px + hy * py
        inertias[i, 0, 1], inertias[i, 0, 2], inertias[i, 1, 2] = xy, xz, yz
        inertias[i, 1, 0], inertias[i, 2, 0], inertias[i, 2, 1] = xy, xz, yz


@compiled
def motion_product(v: Any, i: int, m: Any, k: int) -> Any:
    """Motion product v[i] x m[k] of motions v, m (n, 6), as six scalars; see `add_motion_cross`."""
    ux, uy, uz, wx, wy, wz = v[i, 0], v[i, 1], v[i, 2], v[i, 3], v[i, 4], v[i, 5]
    ax, ay, az = cross(wx, wy, wz, m[k, 0], m[k, 1], m[k, 2])
    bx, by, bz = cross(ux, uy, uz, m[k, 3], m[k, 4], m[k, 5])
    cx, cy, cz = cross(wx, wy, wz, m[k, 3], m[k, 4], m[k, 5])
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
def mass_matrix_at(layout: Layout, q: Vector, placed: Placed, matrix: Vector) -> None:
    """Write the mass matrix (nv, nv), rotors included, at q (nq,); `placed` keeps what it needs."""
    n, columns, loads, turned, moved = len(layout.parents), placed.columns, placed.loads, placed.turned, placed.moved
    masses, moments, inertias = placed.masses, placed.carried_moments, placed.carried_inertias
    sines_and_cosines(layout, q, placed.sines, placed.cosines)
    place(layout, q, placed.sines, placed.cosines, placed.rotations, placed.positions)
    place_in_world(layout, placed.rotations, placed.positions, turned, moved)
    inertias_in_world(layout, turned, moved, masses, placed.moments, placed.inertias)
    matrix[:] = 0.0
    for i in range(n):
        for row in range(3):
            moments[i, row] = placed.moments[i, row]
            for column in range(3):
                inertias[i, row, column] = placed.inertias[i, row, column]
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            x, y, z = rotate(turned, i, layout.subspace[s, 0], layout.subspace[s, 1], layout.subspace[s, 2])
            wx, wy, wz = rotate(turned, i, layout.subspace[s, 3], layout.subspace[s, 4], layout.subspace[s, 5])
            ax, ay, az = cross(moved[i, 0], moved[i, 1], moved[i, 2], wx, wy, wz)
            columns[s, 0], columns[s, 1], columns[s, 2] = x + ax, y + ay, z + az
            columns[s, 3], columns[s, 4], columns[s, 5] = wx, wy, wz
    for k in range(n - 1, -1, -1):
        i = layout.order[k]
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            f0, f1, f2, f3, f4, f5 = momentum_of(masses, moments, inertias, i, columns, s)
            loads[s, 0], loads[s, 1], loads[s, 2], loads[s, 3], loads[s, 4], loads[s, 5] = f0, f1, f2, f3, f4, f5
            j = i
            while j >= 0:
                for r in range(layout.v_start[j], layout.v_start[j] + layout.v_count[j]):
                    entry = columns[r, 0] * f0 + columns[r, 1] * f1 + columns[r, 2] * f2
                    entry += columns[r, 3] * f3 + columns[r, 4] * f4 + columns[r, 5] * f5
                    matrix[s, r] = matrix[r, s] = entry
                j = layout.parents[j]
            matrix[s, s] += layout.rotor_inertias[s]
        parent = layout.parents[i]
        if parent >= 0:
            masses[parent] += masses[i]
            for row in range(3):
                moments[parent, row] += moments[i, row]
                for column in range(3):
                    inertias[parent, row, column] += inertias[i, row, column]


@compiled
def move(layout: Layout, v: Vector, a: Vector, external: Vector, room: Room) -> None:
    """Write motions, S', p and the force of each single body for speeds v and accelerations a (nv,).

    external is a wrench on each body in its frame (n, 6), or (0, 6) for none.
    """
    velocity, acceleration, columns, rates = room.velocity, room.acceleration, room.placed.columns, room.rates
    sums, force, n = room.sums, room.force, len(layout.parents)
    for row in range(3):
        acceleration[n, row] = -layout.gravity[row]
    for k in range(n):
        i = layout.order[k]
        parent, start, end = layout.parents[i], layout.v_start[i], layout.v_start[i] + layout.v_count[i]
        for row in range(6):
            velocity[i, row], acceleration[i, row] = velocity[parent, row], acceleration[parent, row]
        for s in range(start, end):
            r0, r1, r2, r3, r4, r5 = motion_product(velocity, parent, columns, s)
            rates[s, 0], rates[s, 1], rates[s, 2], rates[s, 3], rates[s, 4], rates[s, 5] = r0, r1, r2, r3, r4, r5
            for row in range(6):
                velocity[i, row] += columns[s, row] * v[s]
        for s in range(start, end):
            if end - start > 1:  # else v x S is S'
                r0, r1, r2, r3, r4, r5 = motion_product(velocity, i, columns, s)
                sums[s, 0], sums[s, 1], sums[s, 2], sums[s, 3], sums[s, 4], sums[s, 5] = r0, r1, r2, r3, r4, r5
            for row in range(6):
                rate = sums[s, row] if end - start > 1 else rates[s, row]
                sums[s, row] = rates[s, row] + rate
                acceleration[i, row] += columns[s, row] * a[s] + rate * v[s]
        px, py, pz, lx, ly, lz = momentum_of(layout.masses, room.placed.moments, room.placed.inertias, i, velocity, i)
        fx, fy, fz, mx, my, mz = momentum_of(
            layout.masses, room.placed.moments, room.placed.inertias, i, acceleration, i
        )
        ux, uy, uz = velocity[i, 0], velocity[i, 1], velocity[i, 2]
        wx, wy, wz = velocity[i, 3], velocity[i, 4], velocity[i, 5]
        ax, ay, az = cross(wx, wy, wz, px, py, pz)
        bx, by, bz = cross(wx, wy, wz, lx, ly, lz)
        cx, cy, cz = cross(ux, uy, uz, px, py, pz)
        room.momentum[i, 0], room.momentum[i, 1], room.momentum[i, 2] = px, py, pz
        force[i, 0], force[i, 1], force[i, 2] = fx + ax, fy + ay, fz + az
        force[i, 3], force[i, 4], force[i, 5] = mx + bx + cx, my + by + cy, mz + bz + cz
        if len(external) > 0:
            fx, fy, fz = rotate(room.placed.turned, i, external[i, 0], external[i, 1], external[i, 2])
            mx, my, mz = rotate(room.placed.turned, i, external[i, 3], external[i, 4], external[i, 5])
            ax, ay, az = cross(room.placed.moved[i, 0], room.placed.moved[i, 1], room.placed.moved[i, 2], fx, fy, fz)
            for row, part in enumerate((fx, fy, fz, mx + ax, my + ay, mz + az)):
                force[i, row] -= part


@compiled
def bias_at(layout: Layout, v: Vector, room: Room, tau: Vector) -> None:
    """Write the torques tau (nv,) of gravity and speeds v (nv,) at the position of the last `mass_matrix_at`."""
    force = room.force
    move(layout, v, room.still, room.none, room)
    for k in range(len(layout.parents) - 1, -1, -1):
        i = layout.order[k]
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            tau[s] = product(room.placed.columns, s, force, i)
        parent = layout.parents[i]
        if parent >= 0:
            for row in range(6):
                force[parent, row] += force[i, row]


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
def push(room: Room, i: int, s: int) -> None:
    """Write B S' + I S'' + S x* f, B S + I (S' + v x S) and B' S of column s of body i to `pushes`; carried I, B, f."""
    columns, rates, force, pushes = room.placed.columns, room.rates, room.force, room.pushes
    px, py, pz = 2.0 * room.momentum[i, 0], 2.0 * room.momentum[i, 1], 2.0 * room.momentum[i, 2]
    ux, uy, uz = columns[s, 0], columns[s, 1], columns[s, 2]
    wx, wy, wz = columns[s, 3], columns[s, 4], columns[s, 5]
    sx, sy, sz = rates[s, 3], rates[s, 4], rates[s, 5]
    f0, f1, f2, f3, f4, f5 = momentum_of(
        room.placed.masses, room.placed.carried_moments, room.placed.carried_inertias, i, room.seconds, s
    )
    ax, ay, az = cross(sx, sy, sz, px, py, pz)
    bx, by, bz = rotate(room.coriolis, i, sx, sy, sz)
    cx, cy, cz = cross(wx, wy, wz, force[i, 0], force[i, 1], force[i, 2])
    dx, dy, dz = cross(wx, wy, wz, force[i, 3], force[i, 4], force[i, 5])
    ex, ey, ez = cross(ux, uy, uz, force[i, 0], force[i, 1], force[i, 2])
    pushes[0, 0], pushes[0, 1], pushes[0, 2] = f0 + ax + cx, f1 + ay + cy, f2 + az + cz
    pushes[0, 3], pushes[0, 4], pushes[0, 5] = f3 + bx + dx + ex, f4 + by + dy + ey, f5 + bz + dz + ez
    f0, f1, f2, f3, f4, f5 = momentum_of(
        room.placed.masses, room.placed.carried_moments, room.placed.carried_inertias, i, room.sums, s
    )
    ax, ay, az = cross(wx, wy, wz, px, py, pz)
    bx, by, bz = rotate(room.coriolis, i, wx, wy, wz)
    pushes[1, 0], pushes[1, 1], pushes[1, 2] = f0 + ax, f1 + ay, f2 + az
    pushes[1, 3], pushes[1, 4], pushes[1, 5] = f3 + bx, f4 + by, f5 + bz
    ax, ay, az = cross(px, py, pz, ux, uy, uz)
    bx, by, bz = rotate_back(room.coriolis, i, wx, wy, wz)
    pushes[2, 3], pushes[2, 4], pushes[2, 5] = ax + bx, ay + by, az + bz


@compiled
def slopes_at(
    layout: Layout, v: Vector, a: Vector, external: Vector, room: Room, tau: Vector, dq: Vector, dv: Vector
) -> None:
    """Write tau (nv,), d tau/d q and d tau/d v (nv, nv) at the position of the last `mass_matrix_at`.

    Speeds v and accelerations a are (nv,); external is a wrench on each body in its frame (n, 6), or (0, 6) for none.
    tau excludes the rotors.
    """
    columns, rates, seconds, loads, sums = room.placed.columns, room.rates, room.seconds, room.placed.loads, room.sums
    force, momentum, coriolis, pushes, n = room.force, room.momentum, room.coriolis, room.pushes, len(layout.parents)
    move(layout, v, a, external, room)
    for i in range(n):
        turn_momenta(room.velocity, room.placed.moments, room.placed.inertias, i, coriolis)
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            a0, a1, a2, a3, a4, a5 = motion_product(room.acceleration, layout.parents[i], columns, s)
            b0, b1, b2, b3, b4, b5 = motion_product(room.velocity, layout.parents[i], rates, s)
            seconds[s, 0], seconds[s, 1], seconds[s, 2] = a0 + b0, a1 + b1, a2 + b2
            seconds[s, 3], seconds[s, 4], seconds[s, 5] = a3 + b3, a4 + b4, a5 + b5
    dq[:] = 0.0
    dv[:] = 0.0
    for k in range(n - 1, -1, -1):
        i = layout.order[k]
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            tau[s] = product(columns, s, force, i)
            push(room, i, s)
            j = i
            while j >= 0:
                for r in range(layout.v_start[j], layout.v_start[j] + layout.v_count[j]):
                    if j != i:
                        dq[r, s] = product(columns, r, pushes, 0)
                        dv[r, s] = product(columns, r, pushes, 1)
                    dq[s, r] = product(rates, r, pushes, 2) + product(seconds, r, loads, s)
                    dv[s, r] = product(columns, r, pushes, 2) + product(sums, r, loads, s)
                j = layout.parents[j]
        parent = layout.parents[i]
        if parent >= 0:
            for row in range(6):
                force[parent, row] += force[i, row]
            for row in range(3):
                momentum[parent, row] += momentum[i, row]
                for column in range(3):
                    coriolis[parent, row, column] += coriolis[i, row, column]
