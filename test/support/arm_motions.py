"""Runs of the simulated arm for its identification, and what a perfect identification of it would say."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cache

import numpy as np
from kept import kept

from youbot_dynamics.identification.arm_friction import inertial_parameters
from youbot_dynamics.identification.arm_friction._fit import ArmFriction
from youbot_dynamics.identification.arm_friction._inertia import pseudo_inertia
from youbot_dynamics.identification.arm_friction._rows import arm_equations
from youbot_dynamics.identification.excitation import ArmExcitation, arm_motion
from youbot_dynamics.identification.signals import ArmSignals
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.arm import ArmPlant
from youbot_dynamics.simulation.truth import ArmTruth, load_arm_truth

ROBOT = load_robot()
TREE = ROBOT.arm.model().tree
JOINTS = tuple(f"joint_{k + 1}" for k in range(5))


def expected_friction() -> np.ndarray:
    return np.array([[joint.friction.coulomb, joint.friction.viscous] for joint in ROBOT.arm.joints])


def torque_limits() -> np.ndarray:
    motors = [joint.motor for joint in ROBOT.arm.joints]
    return np.array([motor.current_limit * motor.torque_constant * motor.gear_ratio for motor in motors])


@cache
@kept
def recommended(duration: float = 60.0, seed: int = 0, tries: int = 40) -> ArmExcitation:
    return arm_motion(ROBOT, duration, seed=seed, tries=tries)


@kept
def excited(
    truth: ArmTruth, motion: ArmExcitation, seed: int = 0, rate: float = 50.0, number: int = 0, robot: Robot = ROBOT
) -> ArmSignals:
    """What the driver reports while the simulated arm follows a motion."""
    plant, n = ArmPlant(truth, robot, seed, position=motion.positions[0]), len(robot.arm.joints)
    plant.command_trajectory(motion.times, motion.positions, motion.velocities, motion.accelerations)
    readings = []
    for k in range(1, int(motion.times[-1] * rate)):
        plant.advance(k / rate)
        readings.append(plant.read())
    return ArmSignals(
        np.array([reading.stamp for reading in readings]),
        np.array([reading.position[:n] for reading in readings]),
        np.array([reading.effort[:n] for reading in readings]),
        number,
    )


def is_consistent(parameters: np.ndarray) -> bool:
    """Whether a body with parameters (10,) can exist: a positive mass spread over space somehow."""
    matrix = pseudo_inertia(parameters)
    return bool(np.linalg.eigvalsh(matrix)[0] > -1e-12 * np.trace(matrix))


def told(truth: ArmTruth) -> np.ndarray:
    """Told over true torque (n,): efforts are currents times the torque constants of the sheets."""
    return 1.0 / np.array(truth.torque_constant)


def true_friction(truth: ArmTruth, robot: Robot = ROBOT) -> np.ndarray:
    """Coulomb and viscous friction (n, 2) as efforts show them."""
    model = truth.model(robot)
    return np.array([[f.coulomb, f.viscous] for f in model.friction]) * told(truth)[:, None]


def true_stiffness(truth: ArmTruth) -> np.ndarray:
    """sigma0 (5,) as efforts show it."""
    return np.array([f.sigma0 for f in truth.model(ROBOT).friction]) * told(truth)


def true_parameters(truth: ArmTruth) -> np.ndarray:
    return inertial_parameters(truth.model(ROBOT).tree)


def truth_of(seed: int) -> ArmTruth:
    return load_arm_truth(seed)


def explained_in(found: ArmFriction, recordings: Sequence[ArmSignals]) -> dict[str, float]:
    """R2 of the torque of each joint in recordings that were not fitted, or parts of them."""
    rows, shares = {row.name: row for row in arm_equations(recordings, found.model).rows}, {}
    for k, fitted in enumerate(found.rows):
        row = dataclasses.replace(rows[fitted.name], free=fitted.free, offset=fitted.offset)
        if found.base is not None:
            row = row.linearised(found.values, found.reading_values[k])
        shares[row.name] = row.explained(found.equations.table(k, row) @ found.values)
    return shares
