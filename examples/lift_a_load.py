"""Which torques lift half a kilogram by half a metre? Optimal force on the load, carried down to the joints.

The youBot's arm lifts it. The load is a free body led along a smooth path by an LQ law (`FreeBody`); its force becomes
torques of the joints (`load_lift`), and the friction of sliding joints is made up for. Every joint has LuGre friction.

    raised by 0.516 m; farthest off its path 0.67 mm
    work 16.36 J = stored 9.94 J + friction 6.42 J
    torques, of the limits [%]: 0 85 85 54 0; 0 were cut
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.dynamics.arm import ArmModel
from youbot_dynamics.source_systems.load_lift import (
    FreeBody,
    LiftLaw,
    LiftWeights,
    Load,
    optimal_lift,
    smooth_path,
    with_load,
)

LOW, HIGH = (2.95, 2.2, -1.4, 2.5, 2.9), (2.95, 1.3, -2.0, 2.2, 2.9)  # [rad] postures of the arm
HALF_A_KILO = Load(0.5, [0.0, 0.0, 0.05], np.diag([3e-4, 3e-4, 2e-4]))  # in the frame of the last link
SLIDING = 0.02  # [rad/s] of desired speed from which a joint's friction is made up for
SUBSTEPS = 4  # of the simulation in a period of the law


@dataclass
class Lift:
    """What happened, at k + 1 times: motion of the joints and of the load, torques, energies [J]."""

    speed: np.ndarray  # (k + 1, 5) [rad/s]
    torque: np.ndarray  # (k, 5) [N m]
    limits: np.ndarray  # (5,) [N m]
    errors: np.ndarray  # (k + 1, 2) of the load: [m, rad] off its path
    rise: float  # [m]
    cut: int  # torques cut to their limits
    work: float  # of the motors
    stored: float  # kinetic, potential, in the bristles
    heat: float  # of the friction


def lift(load: Load, start=LOW, goal=HIGH, duration=2.0, *, hold=0.5, period=0.01) -> Lift:
    """Lift a load from one posture of the arm to another in `duration` [s], then hold it."""
    bare = yd.load_robot().arm.model()
    carrier = bare.tree.names[-1]
    loaded = ArmModel(with_load(bare.tree, carrier, load), bare.friction, bare.motors)
    first, last = (bare.tree.poses(np.array(posture))[-1] for posture in (start, goal))
    body = FreeBody(load, first[:3, :3], bare.tree.layout.gravity)
    desired = smooth_path(body, first, last, duration)
    ticks = round((duration + hold) / period)
    law = LiftLaw(bare.tree, carrier, body, optimal_lift(desired, ticks * period, ticks, LiftWeights()))
    limits = np.array([limit.effort for limit in bare.tree.limits])
    state = loaded.at_rest(start)
    before, work, heat, cut, torques, loads, speeds = loaded.energy(state), 0.0, 0.0, 0, [], [], []
    for tick in range(ticks + 1):
        asked = law.step(tick * period, state.position, state.speed)
        loads.append(asked.state)
        speeds.append(state.speed)
        if tick == ticks:
            break
        wanted = asked.torque + sliding_friction(bare, state.position, desired(tick * period), asked.state, body)
        torques.append(np.clip(wanted, -limits, limits))
        cut += int(np.count_nonzero(torques[-1] != wanted))
        motion = loaded.simulate(state, period / SUBSTEPS, torque=np.tile(torques[-1], (SUBSTEPS, 1)))
        moved = np.diff(np.vstack([state.position, motion.position]), axis=0)
        work += float(np.sum(motion.motor_torque * moved))
        heat += float(np.sum(motion.friction_torque * moved))
        state = motion.end
    bristles = sum(0.5 * f.sigma0 * z**2 for f, z in zip(bare.friction, state.bristle.tolist(), strict=True))
    off = np.array(loads) - [desired(tick * period) for tick in range(ticks + 1)]
    errors = np.column_stack([np.linalg.norm(off[:, :3], axis=1), np.linalg.norm(off[:, 3:6], axis=1)])
    stored = loaded.energy(state) - before + bristles
    rise = loads[-1][2] - loads[0][2]
    return Lift(np.array(speeds), np.array(torques), limits, errors, rise, cut, work, stored, heat - bristles)


def sliding_friction(arm: ArmModel, position, desired, state, body: FreeBody) -> np.ndarray:
    """Friction (5,) [N m] at the joint speeds that go with the desired motion of the load."""
    jacobian = arm.tree.jacobian(position, arm.tree.names[-1])
    rotation, omega, _ = body.turning(np.concatenate([state[:6], desired[6:]]), np.zeros(6))
    spin = rotation.T @ omega
    twist = np.concatenate([rotation.T @ desired[6:9] - np.cross(spin, body.load.centre_of_mass), spin])
    speeds = np.linalg.lstsq(jacobian, twist, rcond=1e-6)[0]
    friction = np.array([f.steady_torque(float(v)) for f, v in zip(arm.friction, speeds, strict=True)])
    return friction * np.minimum(1.0, np.abs(speeds) / SLIDING)


if __name__ == "__main__":
    run = lift(HALF_A_KILO)
    shares = np.abs(run.torque).max(axis=0) / run.limits
    print(f"raised by {run.rise:.3f} m; farthest off its path {1e3 * run.errors[:, 0].max():.2f} mm")
    print(f"work {run.work:.2f} J = stored {run.stored:.2f} J + friction {run.heat:.2f} J")
    print(f"torques, of the limits [%]: {' '.join(f'{100 * share:.0f}' for share in shares)}; {run.cut} were cut")
