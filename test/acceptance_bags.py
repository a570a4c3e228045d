"""Bags of simulated robots with drawn parameters for the acceptance of identification, and which truth each number has.

A robot of one seed has its own geometry, masses, friction, delays, motors, noise. Its bag holds what such a robot could
record: commands, states of the wheels with efforts, states of the arm with efforts, poses of a camera system.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from arm_motions import recommended, true_friction, true_stiffness
from friction_runs import COEFFICIENTS
from stage_bags import ARM, BASE, ROBOT, WHEELS, nanoseconds
from test_response_fit import expected

from youbot_dynamics.identification.excitation import ArmExcitation
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.recommended import base_program
from youbot_dynamics.recording.mcap_writer import BagWriter
from youbot_dynamics.recording.message_types import JOINT_STATE, ODOMETRY
from youbot_dynamics.recording.serialize import joint_state_cdr, odometry_cdr
from youbot_dynamics.simulation.arm_truth import ArmTruth
from youbot_dynamics.simulation.base_plant import BasePlant
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.effective_delay import effective_delay
from youbot_dynamics.simulation.plant import ArmFace, BaseFace
from youbot_dynamics.simulation.truth import load_truth

PERIOD = 0.02
_POSE_NOISE = np.array([1e-3, 1e-3, 2e-3])  # of the camera system [m, m, rad]

Row = tuple[float, str, str, bytes]  # time [s], topic, type, message
Advance = Callable[[float], None]


@cache
def base_motion(duration: float = 60.0) -> np.ndarray:
    """Twists (k, 3) of the excitation that `youbot play excitation` drives, one a period."""
    return base_program(ROBOT, duration, 1.0, PERIOD).twists


def drawn_base(seed: int) -> BaseTruth:
    """Base of one seed, nothing of it known."""
    return load_truth(seed)


def base_rows(base: BaseFace, advance: Advance, twists: np.ndarray, seed: int, effort: bool = True) -> list[Row]:
    """Messages of a drive along twists (k, 3), read once a period at a phase of the seed's."""
    random = np.random.default_rng([seed, 2])
    phase = PERIOD * float(random.random())
    driver, own = ROBOT.driver.mecanum(), BASE
    rows: list[Row] = []
    for k, twist in enumerate(twists):
        sent = k * PERIOD
        advance(sent)
        speeds = own.wheel_speeds(twist)
        base.command_twist(driver.twist(speeds))
        rows.append((sent, "/wheel_commands", JOINT_STATE, joint_state_cdr(nanoseconds(sent), WHEELS, velocity=speeds)))
        advance(sent + phase)
        read, pulls = base.read(), base.read_efforts().effort if effort else ()
        state = joint_state_cdr(nanoseconds(read.stamp), WHEELS, read.position, read.velocity, pulls)
        rows.append((read.stamp, "/driver/joint_states", JOINT_STATE, state))
        seen = base.pose + _POSE_NOISE * random.standard_normal(3)
        pose = odometry_cdr(nanoseconds(sent + phase), "odom", "base_footprint", seen, base.twist)
        rows.append((sent + phase, "/ground_truth", ODOMETRY, pose))
    return rows


def arm_rows(arm: ArmFace, advance: Advance, motion: ArmExcitation, effort: bool = True) -> list[Row]:
    """Messages of an arm that follows a motion."""
    arm.command_trajectory(motion.times, motion.positions, motion.velocities, motion.accelerations)
    rows: list[Row] = []
    for k in range(1, int(motion.times[-1] / PERIOD)):
        advance(PERIOD * k)
        read = arm.read()
        pulls = read.effort[:5] if effort else ()
        state = joint_state_cdr(nanoseconds(read.stamp), ARM, read.position[:5], read.velocity[:5], pulls)
        rows.append((read.stamp, "/driver/joint_states", JOINT_STATE, state))
    return rows


def write(folder: Path, rows: list[Row]) -> Path:
    """A bag of messages in the order of their times."""
    with BagWriter(folder, {"robot_id": ROBOT.robot_id}) as bag:
        for time, topic, kind, cdr in sorted(rows, key=lambda row: row[0]):
            bag.add_topic(topic, kind)
            bag.write(topic, cdr, nanoseconds(time))
    return folder


def arm_motion(seed: int = 0, duration: float = 60.0) -> ArmExcitation:
    """Recommended excitation of the arm; another seed is another motion of the same search."""
    return recommended(duration, seed)


# Which truth a number has


def truths_of_base(truth: BaseTruth, twists: np.ndarray, seed: int) -> dict[str, float]:
    """Truth of what is identified of the base, by the names of the findings.

    - Geometry: the mean wheel radius, the half lengths by their sum (the motion shows no more; each is the sheets' times
      one factor), the mean lateral factor.
    - Effective delay: the shift between command and noise-free motion of the same robot on the same drive.
    - Friction: efforts are currents times the sheet's torque constant, so all forces are told over true ones as
      1 / (true over nominal constant), the mean over the wheels; each wheel's Coulomb torque by its own.
    - Response: friction over true inertia times the inertia the fit is given.
    """
    constants = np.array(truth.wheel_torque_constant)
    told = float(np.mean(1.0 / constants))
    geometry = ROBOT.base.geometry
    size = (truth.half_length + truth.half_width) / (geometry.half_length + geometry.half_width)
    true = {
        "robot.base.geometry.wheel_radius": float(np.mean(truth.wheel_radii())),
        "robot.base.geometry.half_length": size * geometry.half_length,
        "robot.base.geometry.half_width": size * geometry.half_width,
        "robot.base.geometry.lateral_factor": truth.lateral_factor,
    }
    true |= {f"robot.base.friction.{name}": told * getattr(truth, name) for name in COEFFICIENTS}
    for wheel, constant in zip(("fl", "fr", "rl", "rr"), constants.tolist(), strict=True):
        true[f"base.friction.wheel_coulomb_{wheel}"] = truth.wheel_coulomb / constant
    true |= {f"robot.base.response.{name}": value for name, value in expected(truth).items()}
    shifts = noise_free_shifts(truth, twists, seed)
    true |= {f"robot.base.delay.effective_{a}": s for a, s in zip(("x", "y", "yaw"), shifts, strict=True)}
    return true


def noise_free_shifts(truth: BaseTruth, twists: np.ndarray, seed: int) -> list[float]:
    """Shift of the motion behind the command of x, y, yaw [s], by brute force on the robot without noise."""
    plant = BasePlant(truth.without_noise(), ROBOT.driver, seed)
    driver, times, angles = ROBOT.driver.mecanum(), [], []
    for k, twist in enumerate(twists):
        plant.advance(k * PERIOD)
        plant.command_twist(driver.twist(BASE.wheel_speeds(twist)))
        plant.advance(k * PERIOD + 0.5 * PERIOD)
        times.append(plant.time)
        angles.append(plant.wheel_angles)
    moved, sent = np.array(angles) @ BASE.forward_matrix.T, PERIOD * np.arange(len(twists))
    return [effective_delay(sent, twists[:, axis], times, moved[:, axis]) for axis in range(3)]


def truths_of_arm(truth: ArmTruth) -> dict[str, float]:
    """Truth of Coulomb and viscous friction and sigma0 of each joint, over the true torque constant as efforts are.

    Of the bodies only combinations show, and each joint tells them by its own torque constant: they have no one truth.
    """
    true = {}
    for k, ((coulomb, viscous), stiffness) in enumerate(zip(true_friction(truth), true_stiffness(truth), strict=True)):
        prefix = f"robot.arm.joint_{k + 1}.friction"
        true |= {f"{prefix}.coulomb": coulomb, f"{prefix}.viscous": viscous, f"{prefix}.sigma0": stiffness}
    return true


def true_value(finding: Finding, true: dict[str, float]) -> float | None:
    """Truth of a finding, None where it has none; a total friction is that of its joint at its speed."""
    if ".friction.total_at_" not in finding.name:
        return true.get(finding.name)
    prefix, speed = finding.name.split(".total_at_")
    coulomb, viscous = (true.get(f"robot.{prefix}.{what}") for what in ("coulomb", "viscous"))
    return None if coulomb is None or viscous is None else coulomb + viscous * float(speed)


@dataclasses.dataclass(frozen=True)
class Judged:
    """A value that was called identified.

    Args:
        name: of the finding.
        sigmas: its error in its own standard errors.
        inside: whether its interval holds the truth.
        relative: its error over the truth.
    """

    name: str
    sigmas: float
    inside: bool
    relative: float


def judged(findings: tuple[Finding, ...], true: dict[str, float]) -> list[Judged]:
    """Every identified value that has a truth."""
    found = []
    for finding in findings:
        value, one = true_value(finding, true), finding.estimate
        if value is None or not one.identified:
            continue
        low, high = one.interval
        error = one.value - value
        found.append(Judged(finding.name, error / one.standard_error, low <= value <= high, error / value))
    return found
