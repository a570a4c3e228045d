"""Robots with other arms than the youBot's, for tests: a UR5e with six joints and a Panda with seven."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from arm_runs import JITTER, Array, Run, swing

from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.truth import ArmTruth, load_arm_truth

FILES = {name: Path(__file__).parents[1] / "robots" / f"{name}.yaml" for name in ("ur5e", "panda")}
ROBOTS: dict[str, Robot] = {name: load_robot(robot_file=path) for name, path in FILES.items()}


def truth_of(name: str, seed: int = 0, jitter: float = JITTER) -> ArmTruth:
    """Arm of a seed; 0 is the nominal one."""
    return load_arm_truth(seed, FILES[name])


def swing_of(name: str, truth: ArmTruth, seed: int, seconds: float, period: int) -> Run:
    """The arm swings about its resting position, a quarter of a radian each way; as `arm_runs.swing`."""
    robot = ROBOTS[name]
    middle: Array = np.array(robot.arm.rest_position)
    return swing(seed, truth, seconds, period, robot, middle, np.full(len(middle), 0.6))
