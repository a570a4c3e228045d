"""Standing up from a seat: the chain of seed 002 A.6, shank, thigh and the rest of the body as the load.

Head, arms and trunk ("HAT") are a free body led from sitting to standing by the optimal force; the torques of ankle,
knee and hip carry that force (`control.load_lift`). Motion in the x-z plane, joints about y, the foot on the floor.
Proportions of a grown-up from Winter's tables (Biomechanics and Motor Control of Human Movement, table 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Vector, number
from youbot_dynamics.control.free_body import FreeBody, LiftWeights, Load, optimal_lift, smooth_path
from youbot_dynamics.control.load_lift import LiftLaw
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.simulation.lift_run import LiftEnergy, LiftRun, with_load

SITTING = (np.deg2rad(18.0), np.deg2rad(-103.0), np.deg2rad(107.0))  # thigh 5 degrees above level, trunk 22 forward
STANDING = (np.deg2rad(6.0), np.deg2rad(-10.0), np.deg2rad(6.0))  # hardly bent: stretched legs cannot push

_MASS_SHARES = (2 * 0.0465, 2 * 0.100, 0.678)  # both shanks, both thighs, HAT
_LENGTH_SHARES = (0.246, 0.245)  # of the height
_CENTRE_SHARES = (1.0 - 0.433, 1.0 - 0.433)  # from ankle and knee, of the length
_GYRATION_SHARES = (0.302, 0.323)  # about the centre, of the length
_HAT_LENGTH, _HAT_CENTRE, _HAT_GYRATION = 0.288, 0.626, 0.496  # hip to shoulder; of the height, of that length
_HEAD = 0.18  # shoulder to top, of the height
_PLATE = 1e-9  # [kg] of what carries the load: a tree takes no joint without mass beyond it
_STEPS = 4  # of the integration in a period of the law
_GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Person:
    """Somebody who stands up.

    Args:
        mass: [kg].
        height: [m].

    Raises:
        ModelError: a mass or height that is not above 0.
    """

    mass: float = 75.0
    height: float = 1.75

    def __post_init__(self) -> None:
        """Check the ranges."""
        number("mass", self.mass, "kg", above=0.0)
        number("height", self.height, "m", above=0.0)

    def upper_body(self) -> Load:
        """Head, arms and trunk, in the frame of the hip."""
        length = _HAT_LENGTH * self.height
        mass = _MASS_SHARES[2] * self.mass
        inertia = mass * (_HAT_GYRATION * length) ** 2
        centre = np.array([0.0, 0.0, _HAT_CENTRE * length])
        return Load(mass, centre, np.diag([inertia, inertia, 0.25 * inertia]))

    def legs(self) -> Tree:
        """Shank, thigh and a plate at the hip for the load; joints ankle, knee, hip about y, all parts upright at 0."""
        lengths = np.array(_LENGTH_SHARES) * self.height
        masses = np.array([*(share * self.mass for share in _MASS_SHARES[:2]), _PLATE])
        gyrations = np.append(np.array(_GYRATION_SHARES) * lengths, 0.1) ** 2 * masses
        placements = np.tile(np.eye(4), (3, 1, 1))
        placements[1:, 2, 3] = lengths
        centres = np.zeros((3, 3))
        centres[:2, 2] = np.array(_CENTRE_SHARES) * lengths
        return Tree.from_arrays(
            [-1, 0, 1],
            ["revolute"] * 3,
            np.tile([0.0, 1.0, 0.0], (3, 1)),
            placements,
            masses,
            centres,
            np.array([np.diag([inertia, inertia, 0.2 * inertia]) for inertia in gyrations]),
            gravity=_GRAVITY,
            names=("shank", "thigh", "HAT"),
        )

    def outline(self, position: Vector) -> Vector:
        """Ankle, knee, hip and top of the head in the x-z plane, (k, 4, 2) [m], for drawing.

        Args:
            position: (k, 3) joint positions [rad].
        """
        pitch = np.cumsum(position, axis=1)
        lengths = np.array([*_LENGTH_SHARES, _HAT_LENGTH + _HEAD]) * self.height
        parts = lengths[None, :, None] * np.stack([np.sin(pitch), np.cos(pitch)], axis=2)
        return np.concatenate([np.zeros((len(position), 1, 2)), np.cumsum(parts, axis=1)], axis=1)


def stand_up(
    person: Person,
    duration: float = 2.0,
    *,
    hold: float = 0.5,
    period: float = 0.01,
    weights: LiftWeights | None = None,
) -> LiftRun:
    """Stand up from `SITTING` to `STANDING`; joints without friction, integrated by Runge and Kutta's fourth order.

    Args:
        person: who stands up.
        duration: of the motion [s].
        hold: how long it stands afterwards [s].
        period: for which torques are held [s].
        weights: of the cost, defaults if not given.

    Returns:
        The run with unlimited torques.
    """
    legs, load = person.legs(), person.upper_body()
    whole = with_load(legs, "HAT", load)
    poses = [legs.poses(np.array(posture))[-1] for posture in (SITTING, STANDING)]
    body = FreeBody(load, poses[0][:3, :3], np.array(_GRAVITY))
    desired = smooth_path(body, poses[0], poses[1], duration)
    ticks = round((duration + hold) / period)
    law = LiftLaw(legs, "HAT", body, optimal_lift(desired, ticks * period, ticks, weights or LiftWeights()))
    q, v, work = np.array(SITTING), np.zeros(3), 0.0
    states, steps = [np.concatenate([q, v])], []
    for tick in range(ticks):
        steps.append(law.step(tick * period, q, v))
        torque = steps[-1].torque
        for _ in range(_STEPS):
            before = q
            q, v = _advanced(whole, torque, q, v, period / _STEPS)
            work += float(torque @ (q - before))
        states.append(np.concatenate([q, v]))
    steps.append(law.step(ticks * period, q, v))
    times: Vector = period * np.arange(ticks + 1, dtype=np.float64)
    energies = [
        whole.bodies(row[:3], row[3:]).kinetic_energy + whole.bodies(row[:3]).potential_energy
        for row in (states[0], states[-1])
    ]
    rows = np.array(states)
    return LiftRun(
        times=times,
        position=rows[:, :3],
        speed=rows[:, 3:],
        torque=np.array([step.torque for step in steps]),
        propagated=np.array([step.propagated for step in steps]),
        wrench=np.array([step.wrench for step in steps]),
        load=np.array([step.state for step in steps]),
        desired=np.array([desired(float(time)) for time in times]),
        limits=np.full(3, np.inf),
        cut=0,
        energy=LiftEnergy(work, energies[1] - energies[0], 0.0),
    )


def _advanced(tree: Tree, torque: Vector, q: Vector, v: Vector, dt: float) -> tuple[Vector, Vector]:
    """Positions and speeds (n,) after dt [s] under torques (n,)."""
    k1 = tree.forward_dynamics(q, v, torque)
    k2 = tree.forward_dynamics(q + 0.5 * dt * v, v + 0.5 * dt * k1, torque)
    k3 = tree.forward_dynamics(q + 0.5 * dt * v + 0.25 * dt**2 * k1, v + 0.5 * dt * k2, torque)
    k4 = tree.forward_dynamics(q + dt * v + 0.5 * dt**2 * k2, v + dt * k3, torque)
    return q + dt * v + dt**2 / 6.0 * (k1 + k2 + k3), v + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
