"""Fewer inertial numbers for the same joint torques: what a revolute joint cannot tell apart goes to its carrier.

Mass on the axis of a joint, spread along it in any way, moves alike for every angle of the joint: it may as well
belong to the body that carries the joint. Of each body's ten inertial numbers three can so be moved down: the mass,
the first moment along the axis, and a rod along the axis, of inertia d (E - a a') about the joint. What is left are not
the inertias of real bodies, and forces between bodies differ; joint torques and accelerations stay the same
(base parameters: Gautier and Khalil 1990).
"""

from __future__ import annotations

import numpy as np

from youbot_dynamics.dynamics.layout import Layout, Vector


def spared_axis(axis: Vector) -> int:
    """Axis of the body's frame (0, 1, 2) whose moment of inertia regrouping clears; square to the joint's axis (3,)."""
    return int(np.argmin(np.abs(axis)))


def regrouped(layout: Layout) -> Layout:
    """Layout of revolute joints along axes of their bodies' frames, with masses and two more numbers a body cleared.

    Cleared are the mass, the first moment along the joint's axis and the moment of inertia about `spared_axis`.
    """
    masses, moments = np.array(layout.masses), np.array(layout.first_moments)
    inertias = np.array(layout.inertias)
    for i in reversed(layout.order):
        axis, spared, parent = layout.axes[i], spared_axis(layout.axes[i]), int(layout.parents[i])
        mass, along, rod = masses[i], float(axis @ moments[i]), inertias[i, spared, spared]
        masses[i] = 0.0
        moments[i] = np.where(np.abs(axis) > 0.5, 0.0, moments[i])
        inertias[i] -= rod * (np.eye(3) - np.outer(axis, axis))
        inertias[i, spared, spared] = 0.0
        if parent < 0:
            continue
        p, a = layout.positions[i], layout.rotations[i] @ axis
        h = along * a
        masses[parent] += mass
        moments[parent] += h + mass * p
        inertias[parent] += rod * (np.eye(3) - np.outer(a, a))
        inertias[parent] += (2.0 * p @ h + mass * p @ p) * np.eye(3)
        inertias[parent] -= np.outer(p, h) + np.outer(h, p) + mass * np.outer(p, p)
    return layout._replace(masses=masses, first_moments=moments, inertias=inertias)
