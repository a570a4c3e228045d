"""Which torques does a person need to stand up? Head, arms and trunk are a load, led by the optimal force.

Motion in the x-z plane, joints ankle, knee, hip about y, the foot on the floor. Proportions of a grown-up from D. A.
Winter, Biomechanics and Motor Control of Human Movement, table 4.1.

    upper body raised by 0.432 m; farthest off its path 1.93 mm
    work 251.43 J, stored 251.43 J
    largest torques: ankles 112 N m, knees 206 N m, hips 59 N m
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.source_systems.load_lift import (
    FreeBody,
    LiftLaw,
    LiftWeights,
    Load,
    optimal_lift,
    smooth_path,
    with_load,
)

SITTING = np.deg2rad([18.0, -103.0, 107.0])  # thigh 5 degrees above level, trunk 22 forward
STANDING = np.deg2rad([6.0, -10.0, 6.0])  # hardly bent: stretched legs cannot push
MASS_SHARES = (2 * 0.0465, 2 * 0.100, 0.678)  # both shanks, both thighs, head with arms and trunk
LENGTH_SHARES = (0.246, 0.245)  # of the height
CENTRE_SHARE = 1.0 - 0.433  # from ankle and knee, of the length
GYRATION_SHARES = (0.302, 0.323)  # about the centre, of the length
TRUNK, TRUNK_CENTRE, TRUNK_GYRATION = 0.288, 0.626, 0.496  # hip to shoulder; of the height, of that length
PLATE = 1e-9  # [kg] of what carries the load: a tree takes no joint without mass beyond it
GRAVITY = (0.0, 0.0, -9.81)
STEPS = 4  # of the integration in a period of the law


@dataclass
class Standing:
    """What happened, at k + 1 times."""

    position: np.ndarray  # (k + 1, 3) [rad]
    torque: np.ndarray  # (k + 1, 3) [N m]
    wrench: np.ndarray  # (k + 1, 6) on the upper body [N, N m]
    errors: np.ndarray  # (k + 1,) of its centre of mass [m]
    rise: float  # of it [m]
    work: float  # of the joints [J]
    stored: float  # [J]


def upper_body(mass: float, height: float) -> Load:
    """Head, arms and trunk, in the frame of the hip."""
    length = TRUNK * height
    inertia = MASS_SHARES[2] * mass * (TRUNK_GYRATION * length) ** 2
    return Load(MASS_SHARES[2] * mass, [0.0, 0.0, TRUNK_CENTRE * length], np.diag([inertia, inertia, 0.25 * inertia]))


def legs(mass: float, height: float) -> yd.Tree:
    """Shank, thigh and a plate at the hip for the load; all parts upright at 0."""
    lengths = np.array(LENGTH_SHARES) * height
    masses = np.array([MASS_SHARES[0] * mass, MASS_SHARES[1] * mass, PLATE])
    gyrations = np.append(np.array(GYRATION_SHARES) * lengths, 0.1) ** 2 * masses
    placements, centres = np.tile(np.eye(4), (3, 1, 1)), np.zeros((3, 3))
    placements[1:, 2, 3] = lengths
    centres[:2, 2] = CENTRE_SHARE * lengths
    inertias = np.array([np.diag([inertia, inertia, 0.2 * inertia]) for inertia in gyrations])
    axes, names = np.tile([0.0, 1.0, 0.0], (3, 1)), ("shank", "thigh", "upper_body")
    return yd.Tree.from_arrays(
        [-1, 0, 1], ["revolute"] * 3, axes, placements, masses, centres, inertias, gravity=GRAVITY, names=names
    )


def stand_up(mass=75.0, height=1.75, duration=2.0, *, hold=0.5, period=0.02) -> Standing:
    """Stand up in `duration` [s]; joints without friction, integrated by Runge and Kutta's fourth order."""
    chain, load = legs(mass, height), upper_body(mass, height)
    whole = with_load(chain, "upper_body", load)
    first, last = (chain.poses(posture)[-1] for posture in (SITTING, STANDING))
    body = FreeBody(load, first[:3, :3], np.array(GRAVITY))
    desired = smooth_path(body, first, last, duration)
    ticks = round((duration + hold) / period)
    law = LiftLaw(chain, "upper_body", body, optimal_lift(desired, ticks * period, ticks, LiftWeights()))
    q, v, work, positions, asked = SITTING, np.zeros(3), 0.0, [], []
    for tick in range(ticks + 1):
        asked.append(law.step(tick * period, q, v))
        positions.append(q)
        if tick == ticks:
            break
        for _ in range(STEPS):
            before = q
            q, v = advanced(whole, asked[-1].torque, q, v, period / STEPS)
            work += float(asked[-1].torque @ (q - before))
    ends = (whole.bodies(SITTING), whole.bodies(q, v))
    energies = [bodies.potential_energy + bodies.kinetic_energy for bodies in ends]
    loads = np.array([step.state for step in asked])
    off = loads[:, :3] - [desired(tick * period)[:3] for tick in range(ticks + 1)]
    return Standing(
        position=np.array(positions),
        torque=np.array([step.torque for step in asked]),
        wrench=np.array([step.wrench for step in asked]),
        errors=np.linalg.norm(off, axis=1),
        rise=loads[-1, 2] - loads[0, 2],
        work=work,
        stored=energies[1] - energies[0],
    )


def advanced(tree: yd.Tree, torque, q, v, dt: float):
    """Positions and speeds (3,) after dt [s] under torques (3,)."""
    k1 = tree.forward_dynamics(q, v, torque)
    k2 = tree.forward_dynamics(q + 0.5 * dt * v, v + 0.5 * dt * k1, torque)
    k3 = tree.forward_dynamics(q + 0.5 * dt * v + 0.25 * dt**2 * k1, v + 0.5 * dt * k2, torque)
    k4 = tree.forward_dynamics(q + dt * v + 0.5 * dt**2 * k2, v + dt * k3, torque)
    return q + dt * v + dt**2 / 6.0 * (k1 + k2 + k3), v + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


if __name__ == "__main__":
    run = stand_up()
    ankle, knee, hip = np.abs(run.torque).max(axis=0)
    print(f"upper body raised by {run.rise:.3f} m; farthest off its path {1e3 * run.errors.max():.2f} mm")
    print(f"work {run.work:.2f} J, stored {run.stored:.2f} J")
    print(f"largest torques: ankles {ankle:.0f} N m, knees {knee:.0f} N m, hips {hip:.0f} N m")
