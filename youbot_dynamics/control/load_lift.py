"""Optimal force on a load, carried down a chain to the torques of its joints (seed 002 A.4, A.5; D-002-10).

The force the load needs comes from its own LQ problem (`free_body`). tau = J' F holds it in rest; gravity and, in
motion, the inertia of the chain itself come on top: tau = J' F + inverse dynamics of the chain without its load, at the
joint accelerations that go with the load's.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.free_body import FreeBody, Load
from youbot_dynamics.control.lq_tracking import TrackingGains
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.tree import Tree

_NUDGE = 1e-6  # [s] over which the rate of the Jacobian is taken
_FLAT = 1e-6  # share of the largest singular value below which a direction of the load cannot be moved


@dataclass(frozen=True, eq=False)
class LiftStep:
    """What the law asks for at one moment.

    Args:
        state: (12,) coordinates of the load.
        push: (6,) optimal accelerations of them.
        wrench: (6,) on the load, in the carrier's frame [N, N m].
        propagated: (nv,) J' F [N m].
        torque: (nv,) of the joints, friction apart [N m].
        unmoved: part of the carrier's rate that no joint can give [m/s2, rad/s2].
    """

    state: Vector
    push: Vector
    wrench: Vector
    propagated: Vector
    torque: Vector
    unmoved: float


@dataclass(frozen=True, eq=False)
class LiftLaw:
    """Law that lifts a load with a chain.

    Args:
        chain: without the load.
        carrier: body, by name or index, in whose frame the load is fixed.
        body: coordinates of the load.
        gains: of its optimal motion.
    """

    chain: Tree
    carrier: int | str
    body: FreeBody
    gains: TrackingGains

    def step(self, time: float, q: ArrayLike, v: ArrayLike) -> LiftStep:
        """Joint torques at a time [s] since the lift began, at q (n,) of revolute and prismatic joints and v (n,).

        u = K x + p, F(u), tau = J'F + ID(q, v, qdd) with J qdd = rate of the carrier's twist - J' v. A chain of fewer
        joints than the load has freedoms does what it can, in least squares weighted by the load's inertia: that is
        Gauss' principle for the load, and what is left over has no share in J'F. The joints then accelerate by qdd.
        """
        positions, speeds = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        jacobian = self.chain.jacobian(positions, self.carrier)
        pose = self.chain.poses(positions)[self.chain.body(self.carrier)]
        state = self.body.state(pose, jacobian @ speeds)
        push = self.gains.command(time, state)
        wrench = self.body.wrench(state, push)
        ahead, behind = (self.chain.jacobian(positions + side * _NUDGE * speeds, self.carrier) for side in (1.0, -1.0))
        wanted = self.body.carrier_rate(state, push) - (ahead - behind) @ speeds / (2.0 * _NUDGE)
        metric = np.linalg.cholesky(self.body.load.spatial_inertia()).T
        accelerations = np.linalg.lstsq(metric @ jacobian, metric @ wanted, rcond=_FLAT)[0]
        propagated = self.chain.propagate_force(positions, self.carrier, wrench)
        torque = propagated + self.chain.inverse_dynamics(positions, speeds, accelerations)
        unmoved = float(np.linalg.norm(wanted - jacobian @ accelerations))
        return LiftStep(state, push, wrench, propagated, torque, unmoved)


def with_load(tree: Tree, body: int | str, load: Load) -> Tree:
    """Same tree with a load fixed to a body, by index or name, in whose frame the load is.

    Raises:
        InputError: no such body.
    """
    i, layout = tree.body(body), tree.layout
    masses, moments, inertias = (part.copy() for part in (layout.masses, layout.first_moments, layout.inertias))
    masses[i] += load.mass
    moments[i] += load.mass * load.centre_of_mass
    inertias[i] += inertia_about(load.inertia, load.mass, load.centre_of_mass)
    return dataclasses.replace(tree, layout=layout._replace(masses=masses, first_moments=moments, inertias=inertias))
