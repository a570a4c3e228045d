"""The motions recommended for identification of one robot, and files of them for those who send them otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import array
from youbot_dynamics.control.program import Program
from youbot_dynamics.errors import ProgramError
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.base.friction_rows import FrictionModel
from youbot_dynamics.identification.excitation import ArmExcitation, arm_excitation, base_excitation
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

BASE, ARM = "excitation", "arm_excitation"  # names to play them by
_SHORTEST, _LONGEST = 20.0, 600.0  # [s]
_SHORTEST_HOLD, _LONGEST_HOLD = 0.001, 0.1  # [s] of a line
_SMALLEST_ROOM, _LARGEST_ROOM = 0.3, 10.0  # [m]
_APPROACH = 0.2  # share of the joints' largest speeds on the way to the start
_KNOT = 0.1  # [s]


def base_program(robot: Robot, duration: float, room: float, dt: float) -> Program:
    """Program for the friction of the base, within its limits.

    Args:
        robot: geometry, masses and limits.
        duration: [s].
        room: farthest it goes from the start along either axis, were it not turning [m].
        dt: time each line is held [s].

    Raises:
        ProgramError: a duration or room beyond what is sensible.
    """
    _check("--duration", duration, _SHORTEST, _LONGEST, "s")
    _check("--room", room, _SMALLEST_ROOM, _LARGEST_ROOM, "m")
    _check("--dt", dt, _SHORTEST_HOLD, _LONGEST_HOLD, "s")
    base = robot.base
    model = FrictionModel(base.geometry.mecanum(), base.mass, base.yaw_inertia, base.wheel_inertia)
    return base_excitation(base, model, duration=duration, room=room, dt=dt)


def arm_motion(robot: Robot, duration: float) -> ArmExcitation:
    """Trajectory for friction and bodies of the arm, within angles, speeds and torques of its joints.

    Nothing here knows obstacles: keep free what the arm reaches from its upright pose.

    Args:
        robot: friction and motors of the joints; limits stand in urdf/youbot.urdf.
        duration: [s].

    Raises:
        ProgramError: a duration beyond what is sensible.
    """
    _check("--duration", duration, _SHORTEST, _LONGEST, "s")
    joints = robot.arm.joints
    friction = [[joint.friction.coulomb, joint.friction.viscous] for joint in joints]
    motors = [joint.motor for joint in joints]
    torques = [motor.current_limit * motor.torque_constant * motor.gear_ratio for motor in motors]
    return arm_excitation(robot.arm.model().tree, friction, torques, duration=duration)


def _check(what: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        raise ProgramError(what, got=f"{value:g} {unit}", expected=f"{low:g} to {high:g} {unit}")


def from_here(motion: ArmExcitation, position: ArrayLike, fastest: ArrayLike) -> ArmExcitation:
    """The motion after a slow way to its start, from rest to rest along 10 s^3 - 15 s^4 + 6 s^5.

    Args:
        motion: of n joints.
        position: (n,) where they are [rad].
        fastest: (n,) their largest speeds [rad/s].
    """
    n = motion.positions.shape[1]
    here, limits = array("position", position, (n,)), array("fastest", fastest, (n,))
    way = motion.positions[0] - here
    # Such a way is at most 1.875 times as fast as its mean.
    duration = max(2.0 * _KNOT, float(np.max(1.875 * np.abs(way) / (_APPROACH * limits))))
    times = np.linspace(0.0, duration, round(duration / _KNOT) + 1)[:-1]
    s = (times / duration)[:, None]
    x = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    v = 30.0 * s**2 * (1.0 - s) ** 2 / duration
    a = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / duration**2
    return ArmExcitation(
        np.concatenate([times, duration + motion.times]),
        np.vstack([here + x * way, motion.positions]),
        np.vstack([v * way, motion.velocities]),
        np.vstack([a * way, motion.accelerations]),
        motion.information,
        motion.at_random,
    )


def write_program(path: Path, program: Program) -> None:
    """Write a program as `youbot play FILE` reads it, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    lines = [f"# Vx Vy Omega [m/s, m/s, rad/s], each held for {program.dt:g} s: youbot play FILE --dt {program.dt:g}"]
    lines += [" ".join(f"{value:.6f}" for value in twist) for twist in program.twists]
    write_atomically(path, "\n".join(lines) + "\n")


def write_goal(path: Path, motion: ArmExcitation, joints: tuple[str, ...]) -> None:
    """Write a motion as a goal of FollowJointTrajectory, in YAML as `ros2 action send_goal` takes it.

    Raises:
        OSError: it cannot be written.
    """
    points = [
        {
            "positions": [round(float(x), 6) for x in position],
            "velocities": [round(float(x), 6) for x in velocity],
            "accelerations": [round(float(x), 6) for x in acceleration],
            "time_from_start": dict(zip(("sec", "nanosec"), divmod(round(1e9 * time), 1_000_000_000), strict=True)),
        }
        for time, position, velocity, acceleration in zip(
            motion.times.tolist(), motion.positions, motion.velocities, motion.accelerations, strict=True
        )
    ]
    goal = {"trajectory": {"joint_names": list(joints), "points": points}}
    write_atomically(path, yaml.safe_dump(goal, sort_keys=False, default_flow_style=None, width=200))
