"""Drives of the twin from which its response is identified, and drives of the robot so identified."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
from delay_runs import drive_open_loop, estimates

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Program, read_program
from youbot_dynamics.dynamics.mecanum_dynamics import effective_inertia
from youbot_dynamics.identification.comparison import path_errors, sample_poses
from youbot_dynamics.identification.excitation import base_program
from youbot_dynamics.identification.response import Response, identify_response
from youbot_dynamics.identification.response._signals import DriveSignals, rolled_path
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.scenario import drive
from youbot_dynamics.simulation.scenario._drive import Drive
from youbot_dynamics.simulation.truth import BaseTruth
from youbot_dynamics.simulation.youbot import BaseOnly

PROGRAMS = ("translation", "rotation", "combined")
ROBOT = load_robot()


def with_own_loops(truth: BaseTruth) -> BaseTruth:
    """Same robot on speed loops that know its inertia: a plain lag but for friction."""
    return dataclasses.replace(truth, servo_gain=0.0)


def true_loops(truth: BaseTruth) -> dict[str, float]:
    """Speed loops of a robot in the numbers of its response."""
    if truth.servo_gain == 0.0:
        return {"lag": truth.lag, "rate": 0.5 / truth.lag, "integral": 1.0, "feed": 1.0}
    # Gains over the inertia that they move forward: four wheels of gain over the squared radius.
    inertia = effective_inertia(truth.mecanum(), truth.mass, truth.yaw_inertia, truth.wheel_inertia)[0, 0]
    rate = 2.0 * truth.servo_gain / truth.wheel_radius**2 / inertia
    integral = 2.0 / (truth.servo_reset * rate) if truth.servo_reset > 0.0 else 0.0
    return {"lag": truth.lag, "rate": rate, "integral": integral, "feed": 0.0}


@cache
def excitation(duration: float = 60.0) -> Program:
    """The recommended motion for identifying the base."""
    return base_program(ROBOT, duration, 1.0, 0.02)


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
        **{name: true_loops(truth)[name] for name in ("lag", "rate")},
        "wheel_coulomb": truth.wheel_coulomb * heavier,
        "roller_coulomb": truth.roller_coulomb * heavier,
        "viscous_x": truth.viscous_x * heavier,
        "viscous_y": truth.viscous_y * heavier,
        "turn_factor": stiffer / heavier,
        "centre_x": 0.0,
    }
