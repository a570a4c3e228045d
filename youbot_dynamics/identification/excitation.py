"""Excitation motions for identification: multi-sines, D-optimal within the limits of the robot.

The information in the data depends more on the motion than on the estimator: move every axis both ways, at several
speeds, all axes at different frequencies. A random search, followed by changes of single amplitudes and phases,
maximises the determinant of the information matrix of the unknowns. Limits scale the motion down; they never clip it.

`youbot play` drives the base. The arm driver accepts trajectories, not torques, so `arm_motion` is a trajectory;
only the simulated robot can be excited with torques.

Source: system 36.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import IdentificationError, ProgramError
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.arm_friction import (
    SLOWEST,
    felt_parameters,
    inertial_parameters,
    regressor,
    uncertainty,
)
from youbot_dynamics.identification.base_friction import ROLLER_DEADBAND, WHEEL_DEADBAND, FrictionModel
from youbot_dynamics.resources import ARM_EXCITATION, EXCITATION
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_base import Base

_SHARE = 0.8  # share of the largest speeds and accelerations that is used
_USUAL_FRICTION = 0.05  # Coulomb torque, and that at 1 rad/s, over the largest torque
_TURN = 1.5  # largest turn of the base [rad]
_STEERED, _STEERED_TRIES = 1.0, 20  # [rad] widest steering angle, and random motions that are tried
_KNOT = 0.1  # interval between knots of a trajectory [s]
_RAMP = 2.0  # duration of the fade-in and fade-out [s]
_HARMONICS = 5
_SLOWEST_SINE, _FASTEST_SINE = 0.04, 0.3  # [Hz]
_FELT = 0.005  # [N m] smallest effect on the torques for a combination of inertial parameters to be included
_LOOKED_AT = 0.1  # interval between the samples in the information sum [s]
_NOTHING = 1e-9  # largest value on an axis along which the base does not move
_KNOWN = 1e-6  # information added to every unknown, so that an unexcited one gives a bad value instead of infinity

_SHORTEST, _LONGEST = 20.0, 600.0  # [s]
_SHORTEST_HOLD, _LONGEST_HOLD = 0.001, 0.1  # duration of a line [s]
_SMALLEST_ROOM, _LARGEST_ROOM = 0.3, 10.0  # [m]
_APPROACH = 0.2  # share of the largest joint speeds on the way to the start


@dataclass(frozen=True, eq=False)
class MultiSine:
    """Sum of sines on each of n axes, faded in and out."""

    duration: float  # [s]
    frequencies: Vector  # (n, h) [Hz]
    amplitudes: Vector  # (n, h) of the position [unit]
    phases: Vector  # (n, h) [rad]

    def at(self, time: ArrayLike) -> tuple[Vector, Vector, Vector]:
        """Positions, speeds and accelerations, each (t, n), at times (t,) [s]; all 0 at the start and the end."""
        t = array("time", time, (None,))
        angle = 2.0 * np.pi * self.frequencies * t[:, None, None] + self.phases
        rate = 2.0 * np.pi * self.frequencies
        x = np.sum(self.amplitudes * np.sin(angle), axis=2)
        v = np.sum(self.amplitudes * rate * np.cos(angle), axis=2)
        a = -np.sum(self.amplitudes * rate**2 * np.sin(angle), axis=2)
        ramp = min(_RAMP, 0.25 * self.duration)
        weight, slope, bend = _smooth_step(np.clip(np.minimum(t, self.duration - t) / ramp, 0.0, 1.0))
        direction = np.where(t < 0.5 * self.duration, 1.0, -1.0) / ramp
        w, dw, ddw = weight[:, None], (slope * direction)[:, None], (bend / ramp**2)[:, None]
        return w * x, w * v + dw * x, w * a + 2.0 * dw * v + ddw * x

    def scaled(self, factors: Vector | float) -> MultiSine:
        """Same motion with amplitudes multiplied by factors (n,) or one factor."""
        by = np.broadcast_to(factors, len(self.amplitudes))[:, None]
        return MultiSine(self.duration, self.frequencies, self.amplitudes * by, self.phases)


def _smooth_step(s: Vector) -> tuple[Vector, Vector, Vector]:
    """10 s^3 - 15 s^4 + 6 s^5, from 0 to 1 with zero slope at both ends, and its two derivatives, all (t,)."""
    step = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return step, 30.0 * s**2 * (1.0 - s) ** 2, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)


@dataclass(frozen=True, eq=False)
class ArmExcitation:
    """Trajectory of n joints; each row is a knot with position, speed and acceleration, the format of the driver."""

    times: Vector  # (m,) [s]
    positions: Vector  # (m, n) [rad]
    velocities: Vector  # (m, n) [rad/s]
    accelerations: Vector  # (m, n) [rad/s2]
    information: float = math.nan  # logarithm of the determinant reached; larger is better


def _friction_and_limits(robot: Robot, tree: Tree) -> tuple[Vector, Vector]:
    """Coulomb and viscous friction (n, 2) and largest torques (n,) that are expected of the joints."""
    joints = robot.arm.joints
    rubbing = np.array([[joint.friction.coulomb, joint.friction.viscous] for joint in joints])
    strongest = np.array([joint.motor.largest_torque for joint in joints])
    strongest = np.where(np.isnan(strongest), [limit.effort for limit in tree.limits], strongest)
    usual = np.where(np.isfinite(strongest), _USUAL_FRICTION * strongest, 1.0)
    return np.where(np.isnan(rubbing), usual[:, None], rubbing), strongest


def arm_motion(robot: Robot, duration: float, *, tries: int = 80, seed: int = 0) -> ArmExcitation:
    """Find a trajectory for weight, inertia and friction of the arm, within angle, speed and torque limits.

    Obstacles are not considered: clear the space within `robot.arm.excitation_reach` of `excitation_centre`, where the
    motion starts and ends.

    Args:
        robot: robot with an arm of n joints; the friction that it expects counts for the torque limits. Torque limits
            of unknown motors are those of the URDF; unknown friction is taken as 5 % of them.
        duration: [s].
        tries: number of motions in the search.
        seed: random seed of the search.

    Raises:
        ProgramError: the duration is out of range, or the robot has no arm.
        IdentificationError: a centre beyond the limits of the joints, or a joint whose largest speed is 0.
    """
    _check("--duration", duration, _SHORTEST, _LONGEST, "s")
    if not robot.has_arm:
        got, remedy = f"robot {robot.robot_id}, which has none (robot.has_arm)", f"play {EXCITATION}"
        raise ProgramError(ARM_EXCITATION, got=got, expected="a robot with an arm", remedy=remedy)
    tree = robot.arm.tree()
    n = tree.nv
    middle, room = _arm_room(robot, tree)
    rubbing, strongest = _friction_and_limits(robot, tree)
    fastest = _SHARE * np.array([limit.velocity for limit in tree.limits])
    if not np.all(fastest > 0.0):
        joint, got = tree.joint_names[int(np.argmin(fastest))], '<limit velocity="0"> in the URDF'
        raise IdentificationError(f"excitation of {joint}", got=got, expected="the largest speed of this joint")
    looked_at = np.arange(0.0, duration, _LOOKED_AT)
    nominal, known = inertial_parameters(tree), uncertainty(tree)

    def within(sines: MultiSine) -> tuple[MultiSine, Vector]:
        """The motion as large as the room and the speeds allow, within the torque limits; and its regressor."""
        x, v, _ = sines.at(looked_at)
        sines = sines.scaled(np.minimum(room / np.abs(x).max(axis=0), fastest / np.abs(v).max(axis=0)))
        for _ in range(20):
            x, v, a = sines.at(looked_at)
            table = regressor(tree, middle + x, v, a)
            torque = np.abs(table @ nominal) + rubbing[:, 0] + rubbing[:, 1] * np.abs(v)
            beyond = np.max(torque / strongest, axis=0) > 1.0
            if not np.any(beyond):
                break
            sines = sines.scaled(0.9)
        return sines, table

    _, first_table = within(_random_sines(np.random.default_rng(seed), n, duration))
    felt = felt_parameters(tree, first_table.reshape(-1, len(known)), _FELT).columns

    def information(sines: MultiSine) -> tuple[MultiSine, float]:
        kept, table = within(sines)
        return kept, _arm_information(table[:, :, felt] * known[felt], kept.at(looked_at)[1], rubbing)

    best, reached = _search(information, n, duration, tries, seed)
    knots = np.linspace(0.0, duration, max(2, round(duration / _KNOT) + 1))
    x, v, a = best.at(knots)
    return ArmExcitation(knots, middle + x, v, a, reached)


def _arm_information(bodies: Vector, speed: Vector, rubbing: Vector) -> float:
    """Information on bodies and friction from scaled columns (t, n, b) of the bodies and the speeds (t, n) of n joints.

    Each row counts in units of the Coulomb friction of its joint; `rubbing` (n, 2) is Coulomb and viscous friction.
    """
    n, count = speed.shape[1], bodies.shape[2]
    total = np.zeros((count + 2 * n, count + 2 * n))
    for j, (coulomb, viscous) in enumerate(rubbing):
        rows = np.zeros((len(speed), len(total)))
        rows[:, :count] = bodies[:, j]
        rows[:, count + 2 * j] = np.sign(speed[:, j]) * coulomb
        rows[:, count + 2 * j + 1] = speed[:, j] * viscous
        rows = rows[np.abs(speed[:, j]) > SLOWEST] / coulomb
        total += rows.T @ rows / len(speed)
    return _log_determinant(total)


def _arm_room(robot: Robot, tree: Tree) -> tuple[Vector, Vector]:
    """Centre (n,) of the motion, and how far (n,) the joints may move from it [rad].

    Raises:
        IdentificationError: a centre at or beyond a joint limit.
    """
    middle = array("excitation_centre", robot.arm.excitation_centre, (tree.nv,))
    widest = array("excitation_reach", robot.arm.excitation_reach, (tree.nv,))
    lower, upper = np.array([(limit.lower, limit.upper) for limit in tree.limits]).T
    room: Vector = np.minimum(widest, np.minimum(middle - lower, upper - middle))
    if not np.all(room > 0.0):
        joint = tree.joint_names[int(np.argmin(room))]
        raise IdentificationError(
            f"excitation of {joint}", got="a centre at or beyond the joint limit", expected="a centre within the limits"
        )
    return middle, room


def base_program(robot: Robot, duration: float, room: float, dt: float, *, tries: int = 150, seed: int = 0) -> Program:
    """Find a program of body twists for the friction of the base: forward, sideways if it can, and turning at once.

    Args:
        robot: its limits of wheel speed, acceleration and deceleration, and its inertia.
        duration: [s].
        room: largest distance from the start along either axis, computed without the turns [m].
        dt: duration of each line [s].
        tries: number of motions in the search.
        seed: random seed of the search.

    Raises:
        ProgramError: duration, room or dt is out of range, or the limits allow no motion.
    """
    check_size(duration, room)
    _check("--dt", dt, _SHORTEST_HOLD, _LONGEST_HOLD, "s")
    base = robot.base
    if base.geometry.wheelbase > 0.0:
        return _steered_program(base, duration, room, dt, seed)
    friction = FrictionModel(base.geometry.mecanum(), base.mass, base.yaw_inertia, base.wheel_inertia)
    limits, jacobian = base.limits, base.geometry.mecanum().inverse_matrix
    farthest = np.array([room, room, _TURN]) * friction.base.free_axes
    along = min(limits.acceleration, limits.deceleration)
    turning = min(limits.angular_acceleration, limits.angular_deceleration)
    steepest = _SHARE * np.array([along, along, turning])
    looked_at = np.arange(0.0, duration, _LOOKED_AT)
    places = friction.base.positions[:, 0]
    coefficients = friction.coefficients
    scale = np.ones(coefficients)

    def information(sines: MultiSine) -> tuple[MultiSine, float]:
        x, _, a = (np.maximum(np.abs(values).max(axis=0), _NOTHING) for values in sines.at(looked_at))
        kept = sines.scaled(np.minimum(farthest / x, 0.7 * steepest / a))
        fastest = float(np.abs(kept.at(looked_at)[1] @ jacobian.T).max())
        kept = kept.scaled(min(1.0, _SHARE * limits.wheel_speed / fastest))
        twist = kept.at(looked_at)[1]
        wheels, sliding = twist @ jacobian.T, twist[:, 1:2] + twist[:, 2:3] * places
        slid = np.all(np.abs(sliding) > ROLLER_DEADBAND, axis=1) | (not np.any(friction.base.roller_gains))
        clear = np.all(np.abs(wheels) > WHEEL_DEADBAND, axis=1) & slid
        none = np.zeros((int(clear.sum()), 3))
        rows = friction.columns(twist[clear], (none, none, none), np.sign(wheels[clear]), np.sign(sliding[clear]))
        rows = rows[:, :, :coefficients].reshape(-1, coefficients) / scale
        return kept, _log_determinant(rows.T @ rows / len(twist))

    best, _ = _search(information, 3, duration, tries, seed)
    steps = np.arange(0.0, duration, dt)
    program = Program(EXCITATION, best.at(steps + 0.5 * dt)[1], dt)
    program.check(base)
    return program


def _steered_program(base: Base, duration: float, room: float, dt: float, seed: int) -> Program:
    """Program of a base with a steered wheel, which drives to and fro while its steering swings, as `base_program`."""
    limits, random = base.limits, np.random.default_rng(seed)
    widest = _SHARE * min(limits.steering, _STEERED)
    along = _SHARE * min(limits.acceleration, limits.deceleration)
    turning = _SHARE * min(limits.angular_acceleration, limits.angular_deceleration)
    steps = np.arange(0.0, duration, dt) + 0.5 * dt
    best, most = np.zeros((len(steps), 3)), 0.0
    for _ in range(_STEERED_TRIES):
        sines = _random_sines(random, 2, duration)
        x, v, _ = sines.at(steps)
        angle = x[:, 1] * min(widest / np.abs(x[:, 1]).max(), _SHARE * limits.steering_speed / np.abs(v[:, 1]).max())
        twists = v[:, :1] * np.column_stack(
            [np.ones(len(v)), np.zeros(len(v)), np.tan(angle) / base.geometry.wheelbase]
        )
        changes = np.abs(np.diff(twists, axis=0)).max(axis=0) / dt
        fastest = float(np.max(base.geometry.mecanum().fastest(base.geometry.mecanum().wheel_speeds(twists))))
        largest = room / np.abs(x[:, 0]).max(), along / changes[0], turning / changes[2]
        twists *= min(*largest, _SHARE * limits.wheel_speed / fastest)
        if (reached := float(np.prod(np.mean(twists[:, [0, 2]] ** 2, axis=0)))) > most:
            best, most = twists, reached
    program = Program(EXCITATION, best, dt)
    program.check(base)
    return program


def _log_determinant(information: Vector) -> float:
    """Log-determinant of the information (k, k), with a small prior."""
    return float(np.linalg.slogdet(information + _KNOWN * np.eye(len(information)))[1])


def _random_sines(random: np.random.Generator, axes: int, duration: float) -> MultiSine:
    """Random sines with distinct frequencies; faster ones have smaller amplitudes, so that their speeds are similar."""
    count = axes * _HARMONICS
    grid = np.geomspace(max(_SLOWEST_SINE, 1.5 / duration), _FASTEST_SINE, count)
    frequencies = grid[np.argsort(np.tile(np.arange(axes), _HARMONICS), kind="stable")].reshape(axes, _HARMONICS)
    amplitudes = random.uniform(0.2, 1.0, (axes, _HARMONICS)) / frequencies
    return MultiSine(duration, frequencies, amplitudes, random.uniform(0.0, 2.0 * np.pi, (axes, _HARMONICS)))


def _search(
    information: Callable[[MultiSine], tuple[MultiSine, float]], axes: int, duration: float, tries: int, seed: int
) -> tuple[MultiSine, float]:
    """Return the best motion within the limits and its information; half of the tries are random, half modify it."""
    random = np.random.default_rng(seed)
    best, reached = information(_random_sines(random, axes, duration))
    for k in range(1, tries):
        if k < tries // 2:
            trial = _random_sines(random, axes, duration)
        else:
            amplitudes = best.amplitudes * np.exp(0.3 * random.standard_normal(best.amplitudes.shape))
            phases = best.phases + 0.4 * random.standard_normal(best.phases.shape)
            trial = MultiSine(duration, best.frequencies, amplitudes, phases)
        kept, value = information(trial)
        if value > reached:
            best, reached = kept, value
    return best, reached


def check_size(duration: float, room: float) -> None:
    """Raise ProgramError if the duration [s] or room [m] of an excitation is out of range."""
    _check("--duration", duration, _SHORTEST, _LONGEST, "s")
    _check("--room", room, _SMALLEST_ROOM, _LARGEST_ROOM, "m")


def _check(what: str, value: float, low: float, high: float, unit: str) -> None:
    if not low <= value <= high:
        raise ProgramError(what, got=f"{value:g} {unit}", expected=f"{low:g} to {high:g} {unit}")


def from_here(motion: ArmExcitation, position: ArrayLike, fastest: ArrayLike) -> ArmExcitation:
    """Precede the motion by a slow approach to its start, from rest to rest along 10 s^3 - 15 s^4 + 6 s^5.

    The n joints are at `position` (n,) [rad]; their largest speeds are `fastest` (n,) [rad/s].
    """
    n = motion.positions.shape[1]
    here, limits = array("position", position, (n,)), array("fastest", fastest, (n,))
    offset = motion.positions[0] - here
    # The peak speed of this approach is 1.875 times its mean speed.
    duration = max(2.0 * _KNOT, float(np.max(1.875 * np.abs(offset) / (_APPROACH * limits))))
    times = np.linspace(0.0, duration, round(duration / _KNOT) + 1)[:-1]
    x, v, a = _smooth_step((times / duration)[:, None])
    return ArmExcitation(
        np.concatenate([times, duration + motion.times]),
        np.vstack([here + x * offset, motion.positions]),
        np.vstack([v / duration * offset, motion.velocities]),
        np.vstack([a / duration**2 * offset, motion.accelerations]),
        motion.information,
    )


def write_program(path: Path, program: Program, command: str = "youbot play FILE") -> None:
    """Write a program in the format of `youbot play FILE`, completely or not at all; its head names the command.

    Raises:
        OSError: the file cannot be written.
    """
    lines = [f"# Vx Vy Omega [m/s, m/s, rad/s], each held for {program.dt:g} s: {command}"]
    lines += [" ".join(f"{value:.6f}" for value in twist) for twist in program.twists]
    write_atomically(path, "\n".join(lines) + "\n")


def write_goal(path: Path, motion: ArmExcitation, joints: tuple[str, ...]) -> None:
    """Write a motion as a goal of FollowJointTrajectory, in the YAML format of `ros2 action send_goal`.

    Raises:
        OSError: the file cannot be written.
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
