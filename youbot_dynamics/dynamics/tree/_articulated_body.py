"""Featherstone's articulated-body algorithm: forward dynamics of a tree in three passes, outward, inward, outward.

The force through the joint that carries body i is f_i = Delta_i a_i + delta_i, with Delta the articulated inertia,
delta the articulated bias force and a_i the body's spatial acceleration; gravity is an acceleration -g of the world.
Document 002 splits a_i into a direct part and a rest a_r that it does not define. Here the rest is the velocity product
c_i = v_i x S qd.

With P = S, the motion subspace of joint i, D = S' Delta S + rotor inertia and u = tau - S' delta:

    qdd   = (u - S' Delta a) / D                                                                (A.20)
    Delta_parent += X* (Delta - Delta S S' Delta / D) X                                         (A.21)
    delta_parent += X* (delta + (Delta - Delta S S' Delta / D) c + Delta S u / D)               (A.22)

The last term has a plus sign and the factor Delta S; the document prints a minus sign and omits the factor. In a
branched tree each child has its own S, tau and Delta, and the bias of a body counts once. External forces may act on
every body.
Source: Featherstone 2008, chapter 7; document 002 A.3, A.12-A.22, systems 21-23; D-002-6, D-002-7.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree._layout import Layout
from youbot_dynamics.dynamics.tree._spatial import (
    ROUNDING,
    add_force_cross,
    add_force_to_parent,
    add_motion_cross,
    factor,
    motion_to_child,
    solve,
)


@compiled
def add_inertia_to_parent(
    rotations: Vector, positions: Vector, i: int, local: Vector, turned: Vector, total: Vector
) -> None:
    """Add to total (6, 6) the symmetric inertia local (6, 6) of frame i, transformed to its parent: X* I X.

    With blocks [[A, B], [B', C]] after the rotation: A; B - A p~; C + p~ (B - A p~) - B' p~.
    rotations (n, 3, 3) and positions (n, 3) are the pose of frame i in its parent; turned (6, 6) is work space.
    Source: document 002 (A.21), system 19.
    """
    for top in range(0, 6, 3):
        for left in range(0, 6, 3):
            for row in range(3):
                # Row of R I, then times R'.
                r0 = r1 = r2 = 0.0
                for k in range(3):
                    r0 += rotations[i, row, k] * local[top + k, left]
                    r1 += rotations[i, row, k] * local[top + k, left + 1]
                    r2 += rotations[i, row, k] * local[top + k, left + 2]
                for column in range(3):
                    turned[top + row, left + column] = (
                        r0 * rotations[i, column, 0] + r1 * rotations[i, column, 1] + r2 * rotations[i, column, 2]
                    )
    x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
    # Subtract the right-hand columns [A; B'] p~ from [B; C].
    for row in range(6):
        a, b, c = turned[row, 0], turned[row, 1], turned[row, 2]
        turned[row, 3] -= b * z - c * y
        turned[row, 4] -= c * x - a * z
        turned[row, 5] -= a * y - b * x
    # Add p~ times the upper rows to the lower ones.
    for column in range(6):
        a, b, c = turned[0, column], turned[1, column], turned[2, column]
        turned[3, column] += y * c - z * b
        turned[4, column] += z * a - x * c
        turned[5, column] += x * b - y * a
    for row in range(6):
        for column in range(6):
            total[row, column] += turned[row, column]


@compiled
def body_inertia(masses: Any, first_moments: Any, inertias: Any, i: int, out: Any) -> None:
    """Write the spatial inertia (6, 6) of body i to out: [[m E, -h~], [h~, I]].

    masses (n,), first_moments (n, 3) h = m times centre, inertias (n, 3, 3) about the frame's origin.
    Source: systems 18, 20.
    """
    for row in range(6):
        for column in range(6):
            out[row, column] = 0.0
    for row in range(3):
        out[row, row] = masses[i]
        for column in range(3):
            out[3 + row, 3 + column] = inertias[i, row, column]
    x, y, z = first_moments[i, 0], first_moments[i, 1], first_moments[i, 2]
    out[3, 1] = out[1, 3] = -z
    out[3, 2] = out[2, 3] = y
    out[4, 0] = out[0, 4] = z
    out[4, 2] = out[2, 4] = -x
    out[5, 0] = out[0, 5] = -y
    out[5, 1] = out[1, 5] = x


@compiled
def carried_sizes(layout: Layout, positions: Any, masses: Any, moments: Any) -> None:
    """Write mass and second moment of each body with all bodies that it carries, as a scale for rounding errors.

    masses (n,) [kg] and moments (n,) [kg m2] are outputs; positions (n, 3) are those of the origins in the parent [m].
    The second moment about the body's origin, sum m |r|^2, is that of fully stretched joints, so it is an upper bound
    at any angle: by Minkowski's inequality sqrt(sum m |p + r|^2) <= sqrt(sum m |r|^2) + |p| sqrt(m).
    """
    for i in range(layout.parents.shape[0]):
        masses[i] = layout.masses[i]
        moments[i] = 0.5 * (layout.inertias[i, 0, 0] + layout.inertias[i, 1, 1] + layout.inertias[i, 2, 2])
    for k in range(layout.order.shape[0] - 1, -1, -1):
        i = layout.order[k]
        parent = layout.parents[i]
        if parent >= 0:
            x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
            # Merged bodies may be points, whose inertia is 0 up to rounding.
            reach = sqrt(max(moments[i], 0.0)) + sqrt((x * x + y * y + z * z) * masses[i])
            masses[parent] += masses[i]
            moments[parent] += reach * reach


class Space(NamedTuple):
    """Work space for n bodies and nv joint speeds."""

    rotations: Any  # (n, 3, 3) from `place`
    positions: Any  # (n, 3) from `place`
    inertia: Any  # (n, 6, 6) Delta of each body
    bias: Any  # (n, 6) delta of each body
    product: Any  # (n, 6) c = v x S qd of each body
    gain: Any  # (nv, 6) Delta S of each joint
    pivot: Any  # (n, 6, 6) S' Delta S + rotor inertia of each joint, factorised
    joint_force: Any  # (nv,) u = tau - S' delta of each joint


@compiled
def new_space(n: int, nv: int) -> Space:
    """Work space for n bodies and nv joint speeds."""
    return Space(
        np.zeros((n, 3, 3)),
        np.zeros((n, 3)),
        np.zeros((n, 6, 6)),
        np.zeros((n, 6)),
        np.zeros((n, 6)),
        np.zeros((nv, 6)),
        np.zeros((n, 6, 6)),
        np.zeros(nv),
    )


@compiled
def project(inertia: Any, gain: Any, pivot: Any, start: int, count: int, scaled: Any, local: Any) -> None:
    """Write to local (6, 6) the part of an articulated inertia that passes the joint: Delta - Delta S S' Delta / D."""
    local[:, :] = inertia
    for column in range(6):
        for s in range(count):
            scaled[s] = gain[start + s, column]
        solve(pivot, count, scaled)
        for row in range(6):
            for s in range(count):
                local[row, column] -= gain[start + s, row] * scaled[s]


@compiled
def articulate(layout: Layout, rotors: Vector, v: Vector, tau: Vector, external: Vector, space: Space) -> int:
    """Outward pass for velocities and inward pass for articulated inertias Delta and biases delta (A.21, A.22).

    Args:
        layout: the tree of n bodies, nv speeds.
        rotors: (nv,) rotor inertias, or other diagonal terms of the mass matrix.
        v: (nv,) joint speeds.
        tau: (nv,) joint torques and forces.
        external: (n, 6) wrench on each body, in its frame.
        space: contains the poses of the bodies; all else is output.

    Returns:
        -1, or the body whose joint has no inertia to accelerate: its S' Delta S is not positive, or not above the
        rounding error of its terms.
    """
    rotations, positions, inertia, bias, product, gain, pivot, joint_force = space
    n = layout.parents.shape[0]
    velocity = np.zeros((n, 6))
    motion = np.zeros(6)
    momentum = np.zeros(6)
    for k in range(n):
        i = layout.order[k]
        if layout.parents[i] >= 0:
            motion_to_child(rotations, positions, i, velocity, layout.parents[i], velocity)
        motion[:] = 0.0
        product[i, :] = 0.0
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            for row in range(6):
                motion[row] += layout.subspace[s, row] * v[s]
        for row in range(6):
            velocity[i, row] += motion[row]
        add_motion_cross(velocity[i], motion, product[i])
        body_inertia(layout.masses, layout.first_moments, layout.inertias, i, inertia[i])
        for row in range(6):
            momentum[row] = 0.0
            for column in range(6):
                momentum[row] += inertia[i, row, column] * velocity[i, column]
            bias[i, row] = -external[i, row]
        add_force_cross(velocity[i], momentum, bias[i])
    masses, moments = np.zeros(n), np.zeros(n)
    carried_sizes(layout, positions, masses, moments)
    local = np.zeros((6, 6))
    turned = np.zeros((6, 6))
    through = np.zeros((n, 6))
    scaled = np.zeros(6)
    for k in range(n - 1, -1, -1):
        i = layout.order[k]
        start, count = layout.v_start[i], layout.v_count[i]
        for s in range(start, start + count):
            joint_force[s] = tau[s]
            for row in range(6):
                gain[s, row] = 0.0
                joint_force[s] -= layout.subspace[s, row] * bias[i, row]
                for column in range(6):
                    gain[s, row] += inertia[i, row, column] * layout.subspace[s, column]
        for s in range(count):
            for r in range(count):
                pivot[i, r, s] = 0.0
                for row in range(6):
                    pivot[i, r, s] += layout.subspace[start + r, row] * gain[start + s, row]
            pivot[i, s, s] += rotors[start + s]
            size = 0.0  # at least every S' I S of the bodies that it carries, with locked joints
            for row in range(3):
                linear, angular = layout.subspace[start + s, row], layout.subspace[start + s, 3 + row]
                size += linear * linear * masses[i] + angular * angular * moments[i]
            if not pivot[i, s, s] > ROUNDING * size:
                return int(i)
        if not factor(pivot[i], count):
            return int(i)
        parent = layout.parents[i]
        if parent < 0:
            continue
        project(inertia[i], gain, pivot[i], start, count, scaled, local)
        for s in range(count):
            scaled[s] = joint_force[start + s]
        solve(pivot[i], count, scaled)
        for row in range(6):
            through[i, row] = bias[i, row]
            for column in range(6):
                through[i, row] += local[row, column] * product[i, column]
            for s in range(count):
                through[i, row] += gain[start + s, row] * scaled[s]
        add_inertia_to_parent(rotations, positions, i, local, turned, inertia[parent])
        through[parent, :] = 0.0
        add_force_to_parent(rotations, positions, i, through, parent)
        for row in range(6):
            bias[parent, row] += through[parent, row]
    return -1


@compiled
def accelerate(
    layout: Layout,
    space: Space,
    acceleration: Vector,
) -> None:
    """Outward pass with the work space of `articulate`: qdd = D^-1 (u - S' Delta a) joint by joint; output (nv,).

    A floating root needs no special case: there S = E and a_0 = -Delta_0^-1 delta_0.
    Source: document 002 (A.20), systems 21-23.
    """
    rotations, positions, _, _, product, gain, pivot, joint_force = space
    n = layout.parents.shape[0]
    bodies = np.zeros((n, 6))
    wanted = np.zeros(6)
    for k in range(n):
        i = layout.order[k]
        if layout.parents[i] >= 0:
            motion_to_child(rotations, positions, i, bodies, layout.parents[i], bodies)
        else:
            for row in range(3):
                for column in range(3):
                    bodies[i, row] -= rotations[i, column, row] * layout.gravity[column]
        start, count = layout.v_start[i], layout.v_count[i]
        for row in range(6):
            bodies[i, row] += product[i, row]
        for s in range(count):
            wanted[s] = joint_force[start + s]
            for row in range(6):
                wanted[s] -= gain[start + s, row] * bodies[i, row]
        solve(pivot[i], count, wanted)
        for s in range(count):
            acceleration[start + s] = wanted[s]
            for row in range(6):
                bodies[i, row] += layout.subspace[start + s, row] * wanted[s]
