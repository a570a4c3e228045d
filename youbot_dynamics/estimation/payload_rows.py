"""Torques that a payload, or a model that is wrong, adds at the joints of an arm (systems 7, 18, 20).

A body of mass m whose centre stands at c in the frame of the last link drives the joints with

    w = -J' [m a + wd x m c + w x (w x m c); m c x a] = Y(q, v, v') (m, m c)

where J is the Jacobian of that link, a the acceleration of its origin less that of gravity, w and wd its angular
velocity and acceleration: linear in m and m c. What its spread about the joint adds, c x m (wd x c) and its own
inertia, is left out: some 1 % of its pull.
"""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.layout import Layout

PAYLOAD = 4  # columns of its mass and its first moment


@compiled
def torque_rows(layout: Layout, poses: Vector, speed: Vector, acceleration: Vector) -> Vector:
    """Slopes (n, 4 + 4 n) of the torques that drive the joints beside the motors, over what may cause them.

    Columns: mass and first moment (3,) of the payload; shares by which each link and each rotor is heavier than known;
    Coulomb torque and viscous coefficient by which the friction of each joint is larger.

    Args:
        layout: chain of n revolute joints, on a base at rest.
        poses: (n, 4, 4) of its bodies.
        speed: (n,) [rad/s].
        acceleration: (n,) [rad/s2].
    """
    n = len(speed)
    rows = np.zeros((n, PAYLOAD + 4 * n))
    axes, places = np.zeros((n, 3)), np.zeros((n, 3))
    spin, spin_rate, pull = np.zeros(3), np.zeros(3), -layout.gravity
    turn = np.eye(3)
    for k in range(n):
        turn = np.ascontiguousarray(poses[k, :3, :3])
        axes[k], places[k] = turn @ layout.axes[k], poses[k, :3, 3]
        if k > 0:
            pull = pull + carried(spin, spin_rate, places[k] - places[k - 1])
        turning = axes[k] * speed[k]
        spin_rate = spin_rate + axes[k] * acceleration[k] + np.cross(spin, turning)
        spin = spin + turning
        first, second = turn @ layout.first_moments[k], turn @ layout.inertias[k] @ turn.T
        force = layout.masses[k] * pull + carried(spin, spin_rate, first)
        moment = second @ spin_rate + np.cross(spin, second @ spin) + np.cross(first, pull)
        drive(axes, places, k, force, moment, rows[:, PAYLOAD + k])
        rows[k, PAYLOAD + n + k] = -layout.rotor_inertias[k] * acceleration[k]
        rows[k, PAYLOAD + 2 * n + k] = -np.sign(speed[k])
        rows[k, PAYLOAD + 3 * n + k] = -speed[k]
    drive(axes, places, n - 1, pull, np.zeros(3), rows[:, 0])
    for axis in range(3):
        unit = np.ascontiguousarray(turn[:, axis])
        drive(axes, places, n - 1, carried(spin, spin_rate, unit), np.cross(unit, pull), rows[:, 1 + axis])
    return rows


@compiled
def carried(spin: Vector, spin_rate: Vector, arm: Vector) -> Vector:
    """Acceleration (3,) of the end of an arm (3,) over that of its begin, on a body of spin (3,) and its rate (3,)."""
    return np.cross(spin_rate, arm) + np.cross(spin, np.cross(spin, arm))


@compiled
def drive(axes: Vector, places: Vector, body: int, force: Vector, moment: Vector, torques: Vector) -> None:
    """Write the torques (n,) by which a body that needs a force (3,) and moment (3,) at its joint drives the joints.

    Args:
        axes: (n, 3) of the joints in the world.
        places: (n, 3) [m].
        body: index; joints up to its own are driven.
        force: in the world [N].
        moment: about the body's joint [N m].
        torques: (n,) written [N m].
    """
    for j in range(body + 1):
        torques[j] = -axes[j] @ (moment + np.cross(places[body] - places[j], force))
