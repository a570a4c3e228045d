"""Rows of states through the recursions: one compiled call for a whole motion."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.articulated_body import accelerate, articulate
from youbot_dynamics.dynamics.dynamics_derivatives import new_space, solve_derivatives, sweep_in, sweep_out
from youbot_dynamics.dynamics.layout import Layout, Vector
from youbot_dynamics.dynamics.recursion import (
    composite_inertias,
    forces,
    gather,
    mass_matrix,
    motions,
    place,
    sines_and_cosines,
)


@compiled
def places(layout: Layout, q: Vector, rotations: Vector, positions: Vector) -> None:
    """Write the pose of every body in its parent: rotations (n, 3, 3), positions (n, 3), of q (nq,)."""
    n = layout.parents.shape[0]
    sines, cosines = np.zeros(n), np.zeros(n)
    sines_and_cosines(layout, q, sines, cosines)
    place(layout, q, sines, cosines, rotations, positions)


@compiled
def inverse_dynamics_rows(layout: Layout, q: Vector, v: Vector, a: Vector, external: Vector, tau: Vector) -> None:
    """Write tau (t, nv) of q (t, nq), v (t, nv), a (t, nv) and wrenches external (t, n, 6) or (1, n, 6) (system 20)."""
    n = layout.parents.shape[0]
    rotations, positions = np.zeros((n, 3, 3)), np.zeros((n, 3))
    velocity, acceleration, joint = np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6))
    momentum, force = np.zeros((n, 6)), np.zeros((n, 6))
    for t in range(q.shape[0]):
        places(layout, q[t], rotations, positions)
        motions(layout, rotations, positions, v[t], a[t], velocity, acceleration, joint)
        forces(layout, velocity, acceleration, external[t % external.shape[0]], momentum, force)
        gather(layout, rotations, positions, force, tau[t])
        for s in range(tau.shape[1]):
            tau[t, s] += layout.rotor_inertias[s] * a[t, s]


@compiled
def mass_matrix_rows(layout: Layout, q: Vector, matrix: Vector) -> None:
    """Write mass matrices (t, nv, nv) of q (t, nq); matrix comes in filled with zeros (system 26)."""
    n = layout.parents.shape[0]
    rotations, positions = np.zeros((n, 3, 3)), np.zeros((n, 3))
    masses, first_moments, inertias = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))
    force = np.zeros((n, 6))
    for t in range(q.shape[0]):
        places(layout, q[t], rotations, positions)
        composite_inertias(layout, rotations, positions, masses, first_moments, inertias)
        mass_matrix(layout, rotations, positions, masses, first_moments, inertias, force, matrix[t])


@compiled
def forward_dynamics_rows(
    layout: Layout, rotors: Vector, q: Vector, v: Vector, tau: Vector, external: Vector, out: Vector
) -> int:
    """Write accelerations (t, nv) of q (t, nq), v (t, nv), tau (t, nv), external (t, n, 6) or (1, n, 6); rotors (nv,).

    By Featherstone's recursion (systems 21-23).

    Returns:
        -1, or the body whose joint has nothing to accelerate.
    """
    n, nv = layout.parents.shape[0], v.shape[1]
    rotations, positions = np.zeros((n, 3, 3)), np.zeros((n, 3))
    inertia, bias, product = np.zeros((n, 6, 6)), np.zeros((n, 6)), np.zeros((n, 6))
    gain, pivot, rest = np.zeros((nv, 6)), np.zeros((n, 6, 6)), np.zeros(nv)
    for t in range(q.shape[0]):
        places(layout, q[t], rotations, positions)
        wrenches = external[t % external.shape[0]]
        stuck = articulate(
            layout, rotors, rotations, positions, v[t], tau[t], wrenches, inertia, bias, product, gain, pivot, rest
        )
        if stuck >= 0:
            return stuck
        accelerate(layout, rotations, positions, product, gain, pivot, rest, out[t])
    return -1


@compiled
def derivative_rows(
    layout: Layout, q: Vector, v: Vector, a: Vector, external: Vector, dq: Vector, dv: Vector, matrix: Vector
) -> None:
    """Write d tau/d q, d tau/d v, M, each (t, nv, nv) zero on entry, of q (t, nq), v, a (t, nv), external (D-001-2)."""
    n = layout.parents.shape[0]
    rotations, positions = np.zeros((n, 3, 3)), np.zeros((n, 3))
    space, tau = new_space(n, v.shape[1]), np.zeros(v.shape[1])
    for t in range(q.shape[0]):
        places(layout, q[t], rotations, positions)
        sweep_out(layout, rotations, positions, v[t], a[t], external[t % external.shape[0]], space)
        sweep_in(layout, space, tau, dq[t], dv[t], matrix[t])


@compiled
def solve_derivative_rows(dq: Vector, dv: Vector, matrix: Vector) -> bool:
    """Turn inverse into forward derivatives in place, each (t, nv, nv); False where M is not positive (D-001-2)."""
    for t in range(dq.shape[0]):
        if not solve_derivatives(dq[t], dv[t], matrix[t]):
            return False
    return True
