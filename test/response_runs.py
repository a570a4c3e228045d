"""Drives of the twin from which its response is identified, and drives of the robot so identified."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
from delay_runs import drive_open_loop, estimates

from youbot_dynamics.control.program import Program, read_program
from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.identification.base.friction_rows import FrictionModel
from youbot_dynamics.identification.comparison import path_errors, sample_poses
from youbot_dynamics.identification.excitation import base_excitation
from youbot_dynamics.identification.timing.drive_signals import DriveSignals, rolled_path
from youbot_dynamics.identification.timing.response_fit import Response, identify_response
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.base_only import BaseOnly
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.scenario import Drive, drive

PROGRAMS = ("translation", "rotation", "combined")
ROBOT = load_robot()


@cache
def excitation(duration: float = 60.0) -> Program:
    """The recommended motion for identifying the base."""
    base = ROBOT.base
    model = FrictionModel(base.geometry.mecanum(), base.mass, base.yaw_inertia, base.wheel_inertia)
    return base_excitation(base, model, duration=duration)


def response_of(program: Program, truth: BaseTruth, seed: int) -> tuple[Response, np.ndarray]:
    """Response and effective delays (3,) identified from one open-loop drive, by the wheels."""
    run = drive_open_loop(program, ROBOT, truth, seed)
    delays = np.array([one.value if one.identified else 0.0 for one in estimates(run, ROBOT)])
    signals = DriveSignals(run.command_time, run.twist, run.stamps, rolled_path(run.positions), recording=seed)
    return identify_response([signals], ROBOT.base.dynamics(), delays), delays


def with_response(response: Response, delays: np.ndarray) -> Robot:
    """Our robot with what was identified, as `youbot identify` writes it."""
    base = ROBOT.base
    x, y, yaw = (float(value) for value in delays)
    delay = dataclasses.replace(base.delay, effective_x=x, effective_y=y, effective_yaw=yaw)
    values = {
        one.name: one.value
        for one in response.estimates
        if response.usable and np.isfinite(one.value) and not one.name.startswith("gain_")
    }
    felt = dataclasses.replace(base.response, **values)
    return dataclasses.replace(ROBOT, base=dataclasses.replace(base, delay=delay, response=felt))


def drive_program(
    name: str, robot: Robot, truth: BaseTruth, seed: int, settings: TrackerSettings | None = None
) -> Drive:
    """Drive one of the three programs on a new twin of this truth."""
    trajectory = read_program(program_path(name), 0.02).trajectory()
    return drive(trajectory, robot, BaseOnly(truth, ROBOT.driver, seed), seed, settings)


def errors_of(run: Drive) -> np.ndarray:
    """Errors (n, 3) of the true poses over the whole program [m, m, rad]."""
    time = np.arange(0.0, run.desired.duration + 1e-9, 0.02)
    actual = sample_poses(run.reading_time - run.start, run.true_pose, time)
    return path_errors(actual, run.desired.path(time))
