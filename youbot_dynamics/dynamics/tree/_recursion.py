"""Recursions over a tree of bodies: poses and inverse dynamics.

All vectors are [linear; angular] in the frame of their body. The functions write into the caller's arrays and use only
sums and products of their arguments. Compiled, they run on any tree; traced with symbols, they become the straight-line
code of one tree.
Source: document 002 A.2, A.5.
"""

from __future__ import annotations

from math import cos, sin, sqrt
from typing import Any

from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree._layout import FLOATING, PRISMATIC, REVOLUTE, Layout
from youbot_dynamics.dynamics.tree._spatial import (
    add_force_cross,
    add_force_to_parent,
    add_motion_cross,
    cross,
    momentum_of,
    motion_to_child,
    rotate,
)


@compiled
def sines_and_cosines(layout: Layout, q: Any, sines: Any, cosines: Any) -> None:
    """Write sine and cosine (n,) of every revolute joint's angle; q (nq,). Source: system 15."""
    for i in range(layout.parents.shape[0]):
        if layout.kinds[i] == REVOLUTE:
            sines[i] = sin(q[layout.q_start[i]])
            cosines[i] = cos(q[layout.q_start[i]])


@compiled
def place(layout: Layout, q: Any, sines: Any, cosines: Any, rotations: Any, positions: Any) -> None:
    """Write the pose of every body in its parent at q (nq,): rotations (n, 3, 3), positions (n, 3).

    A revolute joint rotates by R = E + sin(q) a~ + (1 - cos(q)) a~a~ about its axis a, a prismatic one translates along
    it, and a floating one has position and quaternion in q. sines and cosines (n,) are those of the revolute joints.
    Source: Rodrigues' formula; system 15.
    """
    for i in range(layout.parents.shape[0]):
        kind = layout.kinds[i]
        for row in range(3):
            positions[i, row] = layout.positions[i, row]
            for column in range(3):
                rotations[i, row, column] = layout.rotations[i, row, column]
        x, y, z = layout.axes[i, 0], layout.axes[i, 1], layout.axes[i, 2]
        start = layout.q_start[i]
        if kind == REVOLUTE:
            s, u = sines[i], 1.0 - cosines[i]
            for row in range(3):
                a, b, c = layout.rotations[i, row, 0], layout.rotations[i, row, 1], layout.rotations[i, row, 2]
                along = a * x + b * y + c * z
                # Row times a~ is the cross product of row and axis; row times a~a~ is axis (row.axis) - row.
                p, r, t = cross(a, b, c, x, y, z)
                rotations[i, row, 0] = a + s * p + u * (x * along - a)
                rotations[i, row, 1] = b + s * r + u * (y * along - b)
                rotations[i, row, 2] = c + s * t + u * (z * along - c)
        elif kind == PRISMATIC:
            dx, dy, dz = rotate(layout.rotations, i, x * q[start], y * q[start], z * q[start])
            positions[i, 0] += dx
            positions[i, 1] += dy
            positions[i, 2] += dz
        elif kind == FLOATING:
            dx, dy, dz = rotate(layout.rotations, i, q[start], q[start + 1], q[start + 2])
            positions[i, 0] += dx
            positions[i, 1] += dy
            positions[i, 2] += dz
            x, y, z, w = q[start + 3], q[start + 4], q[start + 5], q[start + 6]
            length = sqrt(x * x + y * y + z * z + w * w)
            x, y, z, w = x / length, y / length, z / length, w / length
            for row in range(3):
                a, b, c = layout.rotations[i, row, 0], layout.rotations[i, row, 1], layout.rotations[i, row, 2]
                rotations[i, row, 0] = (
                    a * (1.0 - 2.0 * (y * y + z * z)) + b * 2.0 * (x * y + z * w) + c * 2.0 * (x * z - y * w)
                )
                rotations[i, row, 1] = (
                    a * 2.0 * (x * y - z * w) + b * (1.0 - 2.0 * (x * x + z * z)) + c * 2.0 * (y * z + x * w)
                )
                rotations[i, row, 2] = (
                    a * 2.0 * (x * z + y * w) + b * 2.0 * (y * z - x * w) + c * (1.0 - 2.0 * (x * x + y * y))
                )


@compiled
def motions(
    layout: Layout, rotations: Any, positions: Any, v: Any, a: Any, velocity: Any, acceleration: Any, joint: Any
) -> None:
    """Write velocity and acceleration of every body; gravity is an acceleration -g of the world.

    v_i = X v_parent + S qd, a_i = X a_parent + S qdd + v_i x S qd. Arguments are the poses from `place` and joint
    speeds v and accelerations a (nv,); the outputs velocity, acceleration and joint, which is S qd, are (n, 6).
    Source: document 002 (A.8)-(A.12), system 17.
    """
    for k in range(layout.order.shape[0]):
        i = layout.order[k]
        parent = layout.parents[i]
        if parent >= 0:
            motion_to_child(rotations, positions, i, velocity, parent, velocity)
            motion_to_child(rotations, positions, i, acceleration, parent, acceleration)
        else:
            for row in range(6):
                velocity[i, row] = 0.0
                acceleration[i, row] = 0.0
            # R' g by rows: the world is the parent of the first bodies.
            for row in range(3):
                for column in range(3):
                    acceleration[i, row] -= rotations[i, column, row] * layout.gravity[column]
        for row in range(6):
            joint[i, row] = 0.0
            for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
                joint[i, row] += layout.subspace[s, row] * v[s]
                acceleration[i, row] += layout.subspace[s, row] * a[s]
            velocity[i, row] += joint[i, row]
        if layout.v_count[i] > 0:
            add_motion_cross(velocity[i], joint[i], acceleration[i])


@compiled
def forces(layout: Layout, velocity: Any, acceleration: Any, external: Any, momentum: Any, force: Any) -> None:
    """Write the force (n, 6) on each body for its motion: f = I a + v x* I v - external.

    These are the Newton-Euler equations about the origin of the body's frame, not its centre of mass. The linear part
    contains alpha x h and the angular part h x a, which the moment equation of document 002 lacks. velocity,
    acceleration (with gravity) and external, a wrench on each body in its frame, are (n, 6). The momentum I v (n, 6) is
    written, too.
    Source: system 20; D-002-4.
    """
    for i in range(layout.parents.shape[0]):
        inertia = (layout.masses, layout.first_moments, layout.inertias)
        a0, a1, a2, a3, a4, a5 = momentum_of(inertia[0], inertia[1], inertia[2], i, acceleration, i)
        p0, p1, p2, p3, p4, p5 = momentum_of(inertia[0], inertia[1], inertia[2], i, velocity, i)
        force[i, 0], force[i, 1], force[i, 2] = a0 - external[i, 0], a1 - external[i, 1], a2 - external[i, 2]
        force[i, 3], force[i, 4], force[i, 5] = a3 - external[i, 3], a4 - external[i, 4], a5 - external[i, 5]
        momentum[i, 0], momentum[i, 1], momentum[i, 2] = p0, p1, p2
        momentum[i, 3], momentum[i, 4], momentum[i, 5] = p3, p4, p5
        add_force_cross(velocity[i], momentum[i], force[i])


@compiled
def gather(layout: Layout, rotations: Any, positions: Any, force: Any, tau: Any) -> None:
    """Sum the forces (n, 6) from the tips to the root and write each joint's component: tau = S' f (nv,).

    The poses are from `place`. Afterwards the force of a body includes all bodies that it carries.
    Source: system 26.
    """
    for k in range(layout.order.shape[0] - 1, -1, -1):
        i = layout.order[k]
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            tau[s] = layout.subspace[s, 0] * force[i, 0]
            for row in range(1, 6):
                tau[s] += layout.subspace[s, row] * force[i, row]
        if layout.parents[i] >= 0:
            add_force_to_parent(rotations, positions, i, force, layout.parents[i])
