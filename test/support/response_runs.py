"""Drives of the twin from which its response is identified, and drives of the robot so identified."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
from delay_runs import drive_open_loop, estimates

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.identification.base_friction import FrictionModel
from youbot_dynamics.identification.comparison import path_errors, sample_poses
from youbot_dynamics.identification.excitation import base_excitation
from youbot_dynamics.identification.response import Response, identify_response
from youbot_dynamics.identification.response._signals import DriveSignals, rolled_path
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.plant import BaseOnly
from youbot_dynamics.simulation.scenario import drive
from youbot_dynamics.simulation.scenario._drive import Drive
from youbot_dynamics.simulation.truth import BaseTruth

PROGRAMS = ("translation", "rotation", "combined")
ROBOT = load_robot()


def with_servo(truth: BaseTruth, seed: int) -> BaseTruth:
    """Same robot with speed loops of a family drawn by the seed: P or PI servos on the wheels, or the twin's own."""
    random, family = np.random.default_rng([seed, 77]), seed % 3
    gain, coulomb = random.uniform(1.5, 8.0), random.uniform(0.03, 0.15)
    reset = float(np.exp(random.uniform(np.log(0.03), np.log(0.5))))
    return dataclasses.replace(
        truth,
        servo_gain=0.0 if family == 2 else gain,
        servo_reset=reset if family == 1 else 0.0,
        wheel_coulomb=coulomb,
    )


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


def true_response(truth: BaseTruth) -> dict[str, float]:
    """The twin's numbers in units of the inertia the fit is given: only friction over inertia shows."""
    own, base = ROBOT.base, truth.mecanum()
    given = effective_inertia(own.geometry.mecanum(), own.mass, own.yaw_inertia, own.wheel_inertia)
    true = effective_inertia(base, truth.mass, truth.yaw_inertia, truth.wheel_inertia)
    heavier, stiffer = given[0, 0] / true[0, 0], given[2, 2] / true[2, 2]
    return {
        "dead_time_x": truth.dead_time_x,
        "dead_time_y": truth.dead_time_y,
        "dead_time_yaw": truth.dead_time_yaw,
        "lag": truth.lag,
        "rate": 0.5 / truth.lag,
        "wheel_coulomb": truth.wheel_coulomb * heavier,
        "roller_coulomb": truth.roller_coulomb * heavier,
        "viscous_x": truth.viscous_x * heavier,
        "viscous_y": truth.viscous_y * heavier,
        "turn_factor": stiffer / heavier,
        "centre_x": 0.0,
    }
