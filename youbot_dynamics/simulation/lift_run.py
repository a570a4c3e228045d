"""A load lifted by the youBot's arm in simulation: optimal force, torques, friction, energy, limits."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, scalar
from youbot_dynamics.control.free_body import FreeBody, LiftWeights, Load, optimal_lift, smooth_path
from youbot_dynamics.control.load_lift import LiftLaw, LiftStep
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.dynamics.rigid_body import inertia_about
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import InputError
from youbot_dynamics.robot import Robot

_SLIDING = 0.02  # [rad/s] of desired speed from which the friction of a sliding joint is made up for
_SUBSTEPS = 4  # steps of the arm's simulation in a period of the law


@dataclass(frozen=True)
class LiftEnergy:
    """Where the work went [J]: work = stored + heat, but for the error of the integration.

    Args:
        work: of the motors at the joints.
        stored: change of kinetic and potential energy, load included, and of what the bristles hold.
        heat: lost in friction.
    """

    work: float
    stored: float
    heat: float

    @property
    def gap(self) -> float:
        """What the balance misses [J]."""
        return self.work - self.stored - self.heat


@dataclass(frozen=True, eq=False)
class LiftRun:
    """A lift at k + 1 times, n joints; torques are those held from each time on, the last row repeats the one before.

    Args:
        times: (k + 1,) [s].
        position: (k + 1, n) [rad].
        speed: (k + 1, n) [rad/s].
        torque: (k + 1, n) of the motors [N m].
        propagated: (k + 1, n) J' F, the part of the optimal force in it [N m].
        wrench: (k + 1, 6) on the load, in its carrier's frame [N, N m].
        load: (k + 1, 12) coordinates of the load: position, turn and their rates.
        desired: (k + 1, 12).
        limits: (n,) torques the joints can give [N m].
        cut: how often a torque was cut to its limit.
        energy: balance of the lift.
    """

    times: Vector
    position: Vector
    speed: Vector
    torque: Vector
    propagated: Vector
    wrench: Vector
    load: Vector
    desired: Vector
    limits: Vector
    cut: int
    energy: LiftEnergy

    @property
    def peak_share(self) -> Vector:
        """Largest torque of each joint over its limit (n,)."""
        found: Vector = np.abs(self.torque).max(axis=0) / self.limits
        return found

    @property
    def errors(self) -> Vector:
        """Distance [m] and angle [rad] of the load from where it should be, (k + 1, 2)."""
        off = self.load - self.desired
        return np.column_stack([np.linalg.norm(off[:, :3], axis=1), np.linalg.norm(off[:, 3:6], axis=1)])


def with_load(tree: Tree, body: int | str, load: Load) -> Tree:
    """Same tree with a load fixed to a body.

    Args:
        tree: of any bodies.
        body: that carries the load, by index or name.
        load: in the frame of that body.

    Raises:
        InputError: no such body.
        ModelError: a load that no body has.
    """
    i, layout = tree.body(body), tree.layout
    masses, moments, inertias = (part.copy() for part in (layout.masses, layout.first_moments, layout.inertias))
    masses[i] += load.mass
    moments[i] += load.mass * load.centre_of_mass
    inertias[i] += inertia_about(load.inertia, load.mass, load.centre_of_mass)
    return dataclasses.replace(tree, layout=layout._replace(masses=masses, first_moments=moments, inertias=inertias))


def lift_with_arm(
    robot: Robot,
    load: Load,
    start: ArrayLike,
    goal: ArrayLike,
    duration: float = 3.0,
    *,
    hold: float = 1.0,
    period: float = 0.004,
    weights: LiftWeights | None = None,
) -> LiftRun:
    """Lift a load from the pose of one arm posture to that of another, along a smooth path of the load.

    The law knows the arm and its load; of its friction it makes up for what a sliding joint has, at the speeds that go
    with the desired motion of the load. The plant has the bristles as well. Torques are held over a period.

    Args:
        robot: whose arm lifts.
        load: in the frame of the arm's last body.
        start: (5,) joint positions at the start [rad], at rest.
        goal: (5,) posture in whose pose the load is put down [rad].
        duration: of the motion [s].
        hold: how long it is held afterwards, by the same law [s].
        period: of the law [s].
        weights: of the cost, defaults if not given.

    Raises:
        InputError: wrong shapes, or times that are not above 0.
    """
    bare = robot.arm.model()
    loaded = ArmModel(with_load(bare.tree, -1 + len(bare.tree.names), load), bare.friction, bare.motors)
    carrier = bare.tree.names[-1]
    first, last = array("start", start, (5,)), array("goal", goal, (5,))
    step = scalar("period", period)
    ticks = round((scalar("duration", duration) + scalar("hold", hold)) / step) if step > 0.0 else 0
    if ticks < 1:
        raise InputError("period", got=f"{period:g} s", expected="above 0 and less than the lift takes")
    poses = [bare.tree.poses(q)[-1] for q in (first, last)]
    body = FreeBody(load, poses[0][:3, :3], bare.tree.layout.gravity)
    desired = smooth_path(body, poses[0], poses[1], duration)
    gains = optimal_lift(desired, ticks * step, ticks, weights or LiftWeights())
    law = LiftLaw(bare.tree, carrier, body, gains)
    limits = np.array([limit.effort for limit in bare.tree.limits])

    state = loaded.at_rest(first)
    before = loaded.energy(state)
    rows: list[tuple[Vector, Vector, Vector, LiftStep]] = []
    cut, work, resisted = 0, 0.0, 0.0
    for tick in range(ticks):
        asked = law.step(tick * step, state.position, state.speed)
        torque = asked.torque + _sliding_friction(bare, state.position, desired(tick * step), asked.state, body)
        given = np.clip(torque, -limits, limits)
        cut += int(np.count_nonzero(given != torque))
        rows.append((state.position, state.speed, given, asked))
        motion = loaded.simulate(state, step / _SUBSTEPS, torque=np.tile(given, (_SUBSTEPS, 1)))
        moved = np.diff(np.vstack([state.position, motion.position]), axis=0)
        work += float(np.sum(motion.motor_torque * moved))
        resisted += float(np.sum(motion.friction_torque * moved))
        state = motion.end
    end = law.step(ticks * step, state.position, state.speed)
    rows.append((state.position, state.speed, rows[-1][2], end))
    times: Vector = step * np.arange(ticks + 1, dtype=np.float64)
    stored = loaded.energy(state) - before
    bristles = sum(0.5 * f.sigma0 * z**2 for f, z in zip(bare.friction, state.bristle.tolist(), strict=True))
    return LiftRun(
        times=times,
        position=np.array([row[0] for row in rows]),
        speed=np.array([row[1] for row in rows]),
        torque=np.array([row[2] for row in rows]),
        propagated=np.array([row[3].propagated for row in rows]),
        wrench=np.array([row[3].wrench for row in rows]),
        load=np.array([row[3].state for row in rows]),
        desired=np.array([desired(float(time)) for time in times]),
        limits=limits,
        cut=cut,
        energy=LiftEnergy(work, stored, resisted - bristles),
    )


def _sliding_friction(arm: ArmModel, position: Vector, desired: Vector, state: Vector, body: FreeBody) -> Vector:
    """Torques (n,) that make up for the friction at the joint speeds of the desired motion of the load."""
    jacobian = arm.tree.jacobian(position, arm.tree.names[-1])
    rotation, omega, _ = body.turning(np.concatenate([state[:6], desired[6:]]), np.zeros(6))
    spin = rotation.T @ omega
    twist = np.concatenate([rotation.T @ desired[6:9] - np.cross(spin, body.load.centre_of_mass), spin])
    speeds = np.linalg.lstsq(jacobian, twist, rcond=1e-6)[0]
    friction = np.array([f.steady_torque(float(v)) for f, v in zip(arm.friction, speeds, strict=True)])
    made_up: Vector = friction * np.minimum(1.0, np.abs(speeds) / _SLIDING)
    return made_up
