"""Optimal force on a load, and the torques of a chain of joints that exert it.

The force on the load solves an LQ problem of its own (`FreeBody`). At rest, tau = J' F holds it. Gravity and inertia
of the chain itself are added: tau = J' F + inverse dynamics of the chain without its load, at the joint accelerations
that correspond to those of the load.

The load is a free rigid body, linearised exactly so that its optimal motion is an LQ problem.
Document 002 writes p' = nu, M nu' = F, u = M^-1 F, y = x. That holds for the translation of a body without weight. It
lacks gravity, the gyroscopic moment and the kinematics of orientation. Here the coordinates are the centre of mass p
and the rotation vector phi from the initial orientation, both in fixed axes; u = (p'', phi'') and

    f = m (p'' - gravity),   mu = I alpha + omega x I omega,   omega = J phi',   alpha = J phi'' + J' phi'

with J the left Jacobian of rotations. So x' = A x + B u is exact for any motion whose turn stays below pi. What R = 1
minimises is the effort int |u|^2, not the work of the force.

Source: document 002 A.4, A.5; D-002-9, D-002-10.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, number, positive_time, read_only
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import ModelError
from youbot_dynamics.kinematics import so3
from youbot_dynamics.kinematics.rotations import skew
from youbot_dynamics.source_systems.optimal_tracking import TrackingGains, TrackingProblem, track
from youbot_dynamics.source_systems.rigid_motion import check_pose, left_jacobian_inverse, rotation_logarithm

_NUDGE = 1e-5  # [rad] along phi' over which the rate of J is taken


@dataclass(frozen=True, eq=False)
class Load:
    """A rigid body that is carried, in the frame of the body that carries it.

    Raises:
        ModelError: a mass that is not above 0, or an inertia that is not symmetric and positive definite.
        InputError: a wrong shape or a number that is not finite.
    """

    mass: float  # [kg]
    centre_of_mass: Vector  # (3,) [m]
    inertia: Vector  # (3, 3) about the centre of mass [kg m2]

    def __post_init__(self) -> None:
        """Check and lock."""
        object.__setattr__(self, "mass", number("mass of the load", self.mass, "kg", above=0.0))
        for name, shape in (("centre_of_mass", (3,)), ("inertia", (3, 3))):
            object.__setattr__(self, name, read_only(array(f"{name} of the load", getattr(self, name), shape).copy()))
        if not (np.allclose(self.inertia, self.inertia.T) and np.linalg.eigvalsh(self.inertia)[0] > 0.0):
            raise ModelError("inertia of the load", got="another matrix", expected="a symmetric positive definite one")

    def spatial_inertia(self) -> Vector:
        """Inertia (6, 6) at the carrier's origin: its momentum [linear; angular] for a twist of the carrier."""
        arm = skew(self.centre_of_mass)
        return np.block(
            [[self.mass * np.eye(3), -self.mass * arm], [self.mass * arm, self.inertia - self.mass * arm @ arm]]
        )


@dataclass(frozen=True, eq=False)
class FreeBody:
    """Linear coordinates of a load: x = [p; phi; p'; phi'] (12,), u = [p''; phi''] (6,), R = exp(phi) orientation."""

    load: Load  # the body
    orientation: Vector  # (3, 3) of the carrier's frame at phi = 0, best that at the start of the motion
    gravity: Vector  # (3,) [m/s2]

    def state(self, pose: ArrayLike, twist: ArrayLike) -> Vector:
        """Coordinates x (12,) of a carrier's pose (4, 4), fixed axes, and twist (6,) [linear; angular] in its frame."""
        carrier, speed = check_pose(pose), array("twist", twist, (6,))
        rotation, centre = carrier[:3, :3], self.load.centre_of_mass
        turn = rotation_logarithm(rotation @ self.orientation.T)
        rate = left_jacobian_inverse(turn) @ rotation @ speed[3:]
        moving = rotation @ (speed[:3] + np.cross(speed[3:], centre))
        return np.concatenate([carrier[:3, 3] + rotation @ centre, turn, moving, rate])

    def turning(self, state: ArrayLike, push: ArrayLike) -> tuple[Vector, Vector, Vector]:
        """Rotation (3, 3), angular velocity (3,) and acceleration (3,) in fixed axes, of x (12,) and u (6,)."""
        x, u = array("state", state, (12,)), array("push", push, (6,))
        turn, rate = x[3:6], x[9:]
        jacobian = so3.left_jacobian(turn)
        speed = float(np.linalg.norm(rate))
        changing = np.zeros((3, 3))
        if speed > 0.0:
            step = _NUDGE / speed
            ahead, behind = (so3.left_jacobian(turn + side * step * rate) for side in (1.0, -1.0))
            changing = (ahead - behind) / (2.0 * step)
        return so3.exponential(turn) @ self.orientation, jacobian @ rate, jacobian @ u[3:] + changing @ rate

    def wrench(self, state: ArrayLike, push: ArrayLike) -> Vector:
        """Wrench (6,) [force; moment] on the load that moves it at x (12,) by u (6,), in N and N m.

        It acts at the origin of the carrier's frame and is given in it.
        """
        rotation, omega, alpha = self.turning(state, push)
        force = rotation.T @ (self.load.mass * (np.asarray(push, dtype=float)[:3] - self.gravity))
        spin, turned = rotation.T @ omega, rotation.T @ alpha
        moment = self.load.inertia @ turned + np.cross(spin, self.load.inertia @ spin)
        return np.concatenate([force, moment + np.cross(self.load.centre_of_mass, force)])

    def carrier_rate(self, state: ArrayLike, push: ArrayLike) -> Vector:
        """Rate (6,) of the carrier's twist [linear; angular] in its frame, as the load at x (12,) moves by u (6,)."""
        rotation, omega, alpha = self.turning(state, push)
        spin, turned, centre = rotation.T @ omega, rotation.T @ alpha, self.load.centre_of_mass
        # At the carrier's origin; the frame turns under the velocity it is written in.
        point = rotation.T @ np.asarray(push, dtype=float)[:3] - np.cross(turned, centre)
        point -= np.cross(spin, np.cross(spin, centre))
        velocity = rotation.T @ np.asarray(state, dtype=float)[6:9] - np.cross(spin, centre)
        return np.concatenate([point - np.cross(spin, velocity), turned])


@dataclass(frozen=True)
class LiftWeights:
    """Weights of the cost int e'Q e + |u|^2 dt + e(tf)'Sf e(tf), the same for all axes, a radian for a metre."""

    position: float = 1e4  # of position and turn [1/s4]
    speed: float = 1e2  # of their rates [1/s2]
    end: float = 1e3  # of all of them at the end [1/s3 and 1/s]


def smooth_path(body: FreeBody, start: ArrayLike, goal: ArrayLike, duration: float) -> Callable[[float], Vector]:
    """Desired x(t) (12,) from one pose (4, 4) of the carrier to another, at rest at both ends and with least jerk.

    s(t) = 10 r^3 - 15 r^4 + 6 r^5 with r = t/duration, for the centre of mass and the rotation vector; z stacks
    positions and velocities, without which y = x has no meaning (D-002-9).

    Raises:
        InputError: wrong shapes or no duration.
        ModelError: a matrix that is no pose.
    """
    length = positive_time("duration", duration)
    first, last = (body.state(pose, np.zeros(6))[:6] for pose in (start, goal))

    def desired(time: float) -> Vector:
        r = min(max(time / length, 0.0), 1.0)
        share = r**3 * (10.0 - 15.0 * r + 6.0 * r**2)
        rate = 30.0 * r**2 * (1.0 - r) ** 2 / length
        return np.concatenate([first + share * (last - first), rate * (last - first)])

    return desired


def optimal_lift(
    desired: Callable[[float], ArrayLike], duration: float, steps: int, weights: LiftWeights
) -> TrackingGains:
    """Optimal law u = K x + p of a free body along a desired x(t) (12,), by `track` in `steps` (D-002-9)."""
    zeros, unit = np.zeros((6, 6)), np.eye(6)
    rates = np.block([[zeros, unit], [zeros, zeros]])
    errors = np.diag(np.repeat([weights.position, weights.speed], 6))
    inputs, end = np.vstack([zeros, unit]), weights.end * np.eye(12)
    return track(TrackingProblem(rates, inputs, np.eye(12), errors, unit, end, desired), 0.0, duration, steps)


_TICK = 1e-6  # [s] over which the rate of the Jacobian is taken
_FLAT = 1e-6  # share of the largest singular value below which a direction of the load cannot be moved


@dataclass(frozen=True, eq=False)
class LiftStep:
    """Output of the law at one moment."""

    state: Vector  # (12,) coordinates of the load
    push: Vector  # (6,) optimal accelerations of them
    wrench: Vector  # (6,) on the load, in the carrier's frame [N, N m]
    propagated: Vector  # (nv,) J' F [N m]
    torque: Vector  # (nv,) of the joints, friction apart [N m]
    unmoved: float  # part of the carrier's rate that no joint can give [m/s2, rad/s2]


@dataclass(frozen=True, eq=False)
class LiftLaw:
    """Law that lifts a load with a chain."""

    chain: Tree  # without the load
    carrier: int | str  # body, by name or index, in whose frame the load is fixed
    body: FreeBody  # coordinates of the load
    gains: TrackingGains  # of its optimal motion

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
        ahead, behind = (self.chain.jacobian(positions + side * _TICK * speeds, self.carrier) for side in (1.0, -1.0))
        wanted = self.body.carrier_rate(state, push) - (ahead - behind) @ speeds / (2.0 * _TICK)
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
    return replace(tree, layout=layout._replace(masses=masses, first_moments=moments, inertias=inertias))
