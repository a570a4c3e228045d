"""Poses, Jacobians, centre of mass, momentum and energies of the bodies of a tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.tree._articulated_body import articulate, new_space
from youbot_dynamics.dynamics.tree._layout import FLOATING, PRISMATIC, REVOLUTE, Layout
from youbot_dynamics.dynamics.tree._rows import places
from youbot_dynamics.dynamics.tree._spatial import cross, rotate_back
from youbot_dynamics.dynamics.tree._sweeps import inertias_in_world, place_in_world
from youbot_dynamics.kinematics import se3
from youbot_dynamics.kinematics.rotations import nearest_rotation
from youbot_dynamics.kinematics.so3 import matrix_to_quaternion, quaternion_to_matrix


@dataclass(frozen=True, eq=False)
class Bodies:
    """Quantities of a whole tree at one state, in the world frame.

    Source: systems 18, 20, 23.
    """

    mass: float  # of all bodies [kg]
    centre_of_mass: Vector  # (3,) [m]
    momentum: Vector  # (6,) [linear; angular about the centre of mass] [kg m/s, kg m2/s], of the bodies without rotors
    kinetic_energy: float  # v' M v / 2, with the rotors [J]
    potential_energy: float  # -m g.c, 0 at the world's origin [J]

    @classmethod
    def at(cls, layout: Layout, q: Vector, v: Vector) -> Bodies:
        """Compute the sums over all bodies at q (nq,), v (nv,)."""
        total, moment, momentum, kinetic = _sums(layout, q, v)
        centre = moment / total if total > 0.0 else np.zeros(3)
        # From the world's origin to the centre of mass.
        momentum[3:] -= np.cross(centre, momentum[:3])
        kinetic += 0.5 * float(layout.rotor_inertias @ (v * v))
        return cls(total, centre, momentum, kinetic, -float(layout.gravity @ moment))


@dataclass(frozen=True, eq=False)
class Articulation:
    """Articulated inertias and biases from the inward pass.

    Source: document 002 (A.12), (A.21), (A.22).
    """

    inertias: Vector  # (n, 6, 6) articulated inertia Delta of each body, in its frame
    # (n, 6) articulated bias delta: the joint that carries body i exerts Delta_i a_i + delta_i on it, with a_i its
    # spatial acceleration and gravity as an acceleration -g of the world
    biases: Vector


@compiled
def world_poses(layout: Layout, q: Vector, turned: Vector, moved: Vector) -> None:
    """Write rotations (n, 3, 3) and positions (n, 3) of all bodies in the world at q (nq,). Source: system 17."""
    n = layout.parents.shape[0]
    rotations, positions = np.zeros((n, 3, 3)), np.zeros((n, 3))
    places(layout, q, rotations, positions)
    place_in_world(layout, rotations, positions, turned, moved)


@compiled
def _sums(layout: Layout, q: Vector, v: Vector) -> tuple[float, Vector, Vector, float]:
    n = layout.parents.shape[0]
    turned, moved = np.zeros((n, 3, 3)), np.zeros((n, 3))
    world_poses(layout, q, turned, moved)
    masses, first_moments, inertias = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3))
    inertias_in_world(layout, turned, moved, masses, first_moments, inertias)
    velocity, joint, lever = np.zeros((n, 6)), np.zeros(6), np.zeros(3)
    total, kinetic, moment, momentum = 0.0, 0.0, np.zeros(3), np.zeros(6)
    for k in range(n):
        i = layout.order[k]
        if layout.parents[i] >= 0:
            velocity[i] = velocity[layout.parents[i]]
        joint[:] = 0.0
        for s in range(layout.v_start[i], layout.v_start[i] + layout.v_count[i]):
            joint += layout.subspace[s] * v[s]
        for row in range(3):
            for column in range(3):
                velocity[i, row] += turned[i, row, column] * joint[column]
                velocity[i, 3 + row] += turned[i, row, column] * joint[3 + column]
            lever[row] = turned[i, row, 0] * joint[3] + turned[i, row, 1] * joint[4] + turned[i, row, 2] * joint[5]
        x, y, z = cross(moved[i, 0], moved[i, 1], moved[i, 2], lever[0], lever[1], lever[2])
        velocity[i, 0] += x
        velocity[i, 1] += y
        velocity[i, 2] += z
        w, h = velocity[i, 3:], first_moments[i]
        ax, ay, az = cross(w[0], w[1], w[2], h[0], h[1], h[2])
        bx, by, bz = cross(h[0], h[1], h[2], velocity[i, 0], velocity[i, 1], velocity[i, 2])
        linear, angular = (ax, ay, az), (bx, by, bz)
        total += masses[i]
        for row in range(3):
            p = masses[i] * velocity[i, row] + linear[row]
            spin = angular[row]
            for column in range(3):
                spin += inertias[i, row, column] * w[column]
            momentum[row] += p
            momentum[3 + row] += spin
            moment[row] += h[row]
            kinetic += 0.5 * (velocity[i, row] * p + w[row] * spin)
    return total, moment, momentum, kinetic


def body_poses(layout: Layout, q: Vector) -> Vector:
    """Poses (n, 4, 4) of all bodies in the world at q (nq,). Source: system 17."""
    n = len(layout.parents)
    turned, moved = np.zeros((n, 3, 3)), np.zeros((n, 3))
    world_poses(layout, q, turned, moved)
    poses = np.tile(np.eye(4), (n, 1, 1))
    poses[:, :3, :3], poses[:, :3, 3] = turned, moved
    return poses


@compiled
def body_jacobian(layout: Layout, q: Vector, body: int) -> Vector:
    """Jacobian (6, nv) of one body in its own frame, [linear; angular], at q (nq,). Source: system 26; D-002-10."""
    n, nv = layout.parents.shape[0], layout.subspace.shape[0]
    turned, moved = np.zeros((n, 3, 3)), np.zeros((n, 3))
    world_poses(layout, q, turned, moved)
    jacobian = np.zeros((6, nv))
    world = np.zeros(6)
    j = body
    while j >= 0:
        arm = moved[body] - moved[j]
        for s in range(layout.v_start[j], layout.v_start[j] + layout.v_count[j]):
            for row in range(3):
                world[row] = world[3 + row] = 0.0
                for column in range(3):
                    world[row] += turned[j, row, column] * layout.subspace[s, column]
                    world[3 + row] += turned[j, row, column] * layout.subspace[s, 3 + column]
            x, y, z = cross(world[3], world[4], world[5], arm[0], arm[1], arm[2])
            jacobian[0, s], jacobian[1, s], jacobian[2, s] = rotate_back(
                turned, body, world[0] + x, world[1] + y, world[2] + z
            )
            jacobian[3, s], jacobian[4, s], jacobian[5, s] = rotate_back(turned, body, world[3], world[4], world[5])
        j = layout.parents[j]
    return jacobian


def articulation_of(layout: Layout, q: Vector, v: Vector, tau: Vector, external: Vector) -> tuple[Vector, Vector, int]:
    """Articulated inertias (n, 6, 6) and biases (n, 6) at q (nq,), v (nv,), tau (nv,), external (n, 6).

    Returns:
        Both, and -1 or the body whose joint has no inertia to accelerate.

    Source: document 002 (A.21), (A.22), systems 21, 22; D-002-6, D-002-7.
    """
    space = new_space(len(layout.parents), len(v))
    places(layout, q, space.rotations, space.positions)
    stuck = articulate(layout, layout.rotor_inertias.copy(), v, tau, external, space)
    return space.inertia, space.bias, int(stuck)


def step_positions(layout: Layout, q: Vector, v: Vector, dt: float) -> Vector:
    """Positions (nq,) after `dt` [s] at constant v (nv,), from q (nq,); exact on SE(3) for a floating joint.

    Source: system 16.
    """
    moved = q.copy()
    for i, kind in enumerate(layout.kinds):
        start, speed = int(layout.q_start[i]), int(layout.v_start[i])
        if kind in (REVOLUTE, PRISMATIC):
            moved[start] += v[speed] * dt
        elif kind == FLOATING:
            rotation = quaternion_to_matrix(q[start + 3 : start + 7])
            step = se3.exponential(v[speed : speed + 6] * dt)
            moved[start : start + 3] += rotation @ step[:3, 3]
            moved[start + 3 : start + 7] = matrix_to_quaternion(nearest_rotation(rotation @ step[:3, :3]))
    return moved
