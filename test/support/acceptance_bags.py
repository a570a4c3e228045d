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
from effective_delay import effective_delay
from friction_runs import COEFFICIENTS
from response_runs import true_response
from stage_bags import ARM, BASE, ROBOT, WHEELS, nanoseconds, write_rows

from youbot_dynamics.identification.excitation import ArmExcitation, base_program
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.recording.message_types import JOINT_STATE, ODOMETRY, joint_state_cdr, odometry_cdr
from youbot_dynamics.simulation.arm import ArmDriver, ArmPlant
from youbot_dynamics.simulation.base import BasePlant, SimulatedBase
from youbot_dynamics.simulation.truth import ArmTruth, BaseTruth, load_arm_truth, load_truth

PERIOD = 0.02
POSE_NOISE = np.array([1e-3, 1e-3, 2e-3])  # of the camera system [m, m, rad]

Row = tuple[float, str, str, bytes]  # time [s], topic, type, message
Advance = Callable[[float], None]


@cache
def base_motion(duration: float = 60.0) -> np.ndarray:
    """Twists (k, 3) of the excitation that `youbot play excitation` drives, one a period."""
    return base_program(ROBOT, duration, 1.0, PERIOD).twists


def drawn_base(seed: int) -> BaseTruth:
    """Base of one seed, nothing of it known."""
    return load_truth(seed)


@dataclasses.dataclass
class BaseRun:
    """A drive of a base: its messages, and what only a simulation knows, true wheel angles (k, 4) at times (k,)."""

    rows: list[Row]
    times: np.ndarray
    angles: np.ndarray


def base_run(base: SimulatedBase, advance: Advance, twists: np.ndarray, seed: int, told: float | None = 1.0) -> BaseRun:
    """Drive along twists (k, 3), read once a period at a phase of the seed's.

    Of the efforts the share `told` is told: 0 is a driver that fills in zeros, None one that has none.
    """
    random = np.random.default_rng([seed, 2])
    phase = PERIOD * float(random.random())
    driver, own = ROBOT.driver.mecanum(), BASE
    rows: list[Row] = []
    angles: list[np.ndarray] = []
    for k, twist in enumerate(twists):
        sent = k * PERIOD
        advance(sent)
        speeds = own.wheel_speeds(twist)
        base.command_twist(driver.twist(speeds))
        rows.append((sent, "/wheel_commands", JOINT_STATE, joint_state_cdr(nanoseconds(sent), WHEELS, velocity=speeds)))
        advance(sent + phase)
        angles.append(base.wheel_angles)
        read, efforts = base.read(), base.read_efforts().effort
        pulls = () if told is None else told * efforts
        state = joint_state_cdr(nanoseconds(read.stamp), WHEELS, read.position, read.velocity, pulls)
        rows.append((read.stamp, "/driver/joint_states", JOINT_STATE, state))
        seen = base.pose + POSE_NOISE * random.standard_normal(3)
        pose = odometry_cdr(nanoseconds(sent + phase), "odom", "base_footprint", seen, base.twist)
        rows.append((sent + phase, "/ground_truth", ODOMETRY, pose))
    return BaseRun(rows, PERIOD * np.arange(len(twists)) + phase, np.array(angles))


def arm_rows(arm: ArmDriver, advance: Advance, motion: ArmExcitation, told: float | None = 1.0) -> list[Row]:
    """Messages of an arm that follows a motion; `told` as for the base."""
    arm.command_trajectory(motion.times, motion.positions, motion.velocities, motion.accelerations)
    rows: list[Row] = []
    for k in range(1, int(motion.times[-1] / PERIOD)):
        advance(PERIOD * k)
        read = arm.read()
        pulls = () if told is None else told * read.effort[:5]
        state = joint_state_cdr(nanoseconds(read.stamp), ARM, read.position[:5], read.velocity[:5], pulls)
        rows.append((read.stamp, "/driver/joint_states", JOINT_STATE, state))
    return rows


def arm_motion(seed: int = 0, duration: float = 60.0) -> ArmExcitation:
    """Recommended excitation of the arm; another seed is another motion of the same search."""
    return recommended(duration, seed)


def bag_of_twin(folder: Path, seed: int, twists: np.ndarray, motion: ArmExcitation | None) -> Path:
    """Bag of a drive of the twin's base, with its arm in motion at the same time if there is one."""
    base = BasePlant(drawn_base(seed), ROBOT.driver, seed)
    rows = base_run(base, base.advance, twists, seed).rows
    if motion is not None:
        arm = ArmPlant(load_arm_truth(seed), ROBOT, seed, position=motion.positions[0])
        rows += arm_rows(arm, arm.advance, motion)
    return write_rows(folder, rows)


# Which truth a number has


def told(truth: BaseTruth) -> float:
    """Told over true force: efforts are currents times the torque constant of the sheets, the mean over the wheels."""
    return float(np.mean(1.0 / np.array(truth.wheel_torque_constant)))


def truths_of_geometry(truth: BaseTruth) -> dict[str, float]:
    """Mean wheel radius, what each wheel differs from it by, mean lateral factor, and the lever of a turn."""
    radii = truth.wheel_radii()
    errors = zip(("fl", "fr", "rl", "rr"), (radii / np.mean(radii) - 1.0).tolist(), strict=True)
    return {
        "robot.base.geometry.wheel_radius": float(np.mean(radii)),
        **{f"robot.base.geometry.wheel_radius_error_{wheel}": error for wheel, error in errors},
        "base.geometry.lever": truth.half_length / truth.lateral_factor + truth.half_width,
        "robot.base.geometry.lateral_factor": truth.lateral_factor,
    }


def truths_of_friction(truth: BaseTruth) -> dict[str, float]:
    """Coefficients as told by the torque constants: their mean, each wheel's Coulomb torque by its own."""
    true = {f"robot.base.friction.{name}": told(truth) * getattr(truth, name) for name in COEFFICIENTS}
    for wheel, constant in zip(("fl", "fr", "rl", "rr"), truth.wheel_torque_constant, strict=True):
        true[f"base.friction.wheel_coulomb_{wheel}"] = truth.wheel_coulomb / constant
    return true


def truths_of_response(truth: BaseTruth) -> dict[str, float]:
    """Friction over true inertia, times the inertia the fit is given; dead times, lag and rate of the motor loop."""
    return {f"robot.base.response.{name}": value for name, value in true_response(truth).items()}


def truths_of_delay(run: BaseRun, twists: np.ndarray) -> dict[str, float]:
    """Shift of the true motion of a run without noise behind its command, by brute force [s]."""
    moved, sent = run.angles @ BASE.forward_matrix.T, PERIOD * np.arange(len(twists))
    return {
        f"robot.base.delay.effective_{name}": effective_delay(sent, twists[:, axis], run.times, moved[:, axis])
        for axis, name in enumerate(("x", "y", "yaw"))
    }


def truths_of_twin(seed: int, twists: np.ndarray) -> dict[str, float]:
    """Truth of what is identified of the base and arm of the twin, by the names of the findings."""
    truth = drawn_base(seed)
    plain = BasePlant(truth.without_noise(), ROBOT.driver, seed)
    return {
        **truths_of_geometry(truth),
        **truths_of_friction(truth),
        **truths_of_response(truth),
        **truths_of_delay(base_run(plain, plain.advance, twists, seed), twists),
        **truths_of_arm(load_arm_truth(seed)),
    }


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


def found_values(findings: tuple[Finding, ...]) -> dict[str, float]:
    """Values as they came out, identified or not: a force may be known where its parts are not."""
    return {finding.name: finding.estimate.value for finding in findings}


def forces(values: dict[str, float], speeds: tuple[float, ...]) -> np.ndarray:
    """Friction forces (2, s) forward and sideways at s speeds [m/s], of values by the names of the findings.

    xi V + 4 F1 / R, sideways over the lateral factor, and there 4 sqrt(2) F2 / r.
    """
    xi_x, xi_y, rollers, wheels = (values[f"robot.base.friction.{name}"] for name in COEFFICIENTS)
    radius, lateral = (values[f"robot.base.geometry.{name}"] for name in ("wheel_radius", "lateral_factor"))
    pull, over = 4.0 * wheels / radius, np.array(speeds)
    return np.array([xi_x * over + pull, xi_y * over + pull / lateral + 4.0 * np.sqrt(2.0) * rollers])
