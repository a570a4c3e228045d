"""Open-loop drives of the twin for the tests of the delay estimator: quick, since no tracker takes part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from effective_delay import effective_delay
from kept import kept

from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.identification.delay import DelayEstimate, estimate_delay
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

PERIOD = 0.02
REST = 2.0


def calibrated_truth(seed: int) -> BaseTruth:
    """Truth of one seed with the geometry our robot believes in, for tests whose subject is not calibration."""
    return load_truth(seed).with_geometry(load_robot().base.geometry)


@dataclass
class Run:
    command_time: np.ndarray
    twist: np.ndarray
    wheel_speeds: np.ndarray
    stamps: np.ndarray
    positions: np.ndarray
    time: np.ndarray
    motion: np.ndarray


@kept
def drive_open_loop(program: Program, robot: Robot, truth: BaseTruth, seed: int) -> Run:
    """Send the program straight to the driver and read the wheels once a period, at a random phase."""
    plant = BasePlant(truth, robot.driver, seed)
    base, driver = robot.base.geometry.mecanum(), robot.driver.mecanum()
    phase = PERIOD * float(np.random.default_rng([seed, 2]).random())
    twists = np.vstack([program.twists, np.zeros((int(REST / PERIOD), 3))])
    readings, angles, times = [], [], []
    for k, twist in enumerate(twists):
        plant.advance(k * PERIOD)
        plant.command_twist(driver.twist(base.wheel_speeds(twist)))
        plant.advance(k * PERIOD + phase)
        readings.append(plant.read())
        angles.append(plant.wheel_angles)
        times.append(plant.time)
    sign = np.array(robot.driver.position_sign)
    return Run(
        np.arange(len(twists)) * PERIOD,
        twists,
        twists @ base.inverse_matrix.T,
        np.array([reading.stamp for reading in readings]),
        np.array([reading.position * sign for reading in readings]) @ base.forward_matrix.T,
        np.array(times),
        np.array(angles) @ base.forward_matrix.T,
    )


def ramps(seed: int, duration: float = 60.0) -> Program:
    """Twists that ramp to speeds at random, every 0.2 to 0.8 s: each change of slope tells dead time from lag."""
    random, steps = np.random.default_rng([seed, 7]), round(duration / PERIOD)
    twists = np.zeros((steps, 3))
    for axis, (fastest, steepest) in enumerate(((0.2, 0.7), (0.2, 0.7), (0.4, 1.8))):
        speed, goal, left = 0.0, 0.0, 0
        for k in range(steps):
            if left == 0:
                goal, left = random.uniform(-fastest, fastest), int(random.uniform(0.2, 0.8) / PERIOD)
            speed += np.clip(goal - speed, -steepest * PERIOD, steepest * PERIOD)
            twists[k, axis], left = speed, left - 1
    return Program("ramps", twists, PERIOD)


def estimates(run: Run, robot: Robot, model: str = "delay") -> tuple[DelayEstimate, ...]:
    """Delays of x, y, yaw, with the friction the wheels feel by their commanded speeds."""
    base = robot.base.geometry.mecanum()
    friction = np.tanh(run.wheel_speeds / 0.1) @ base.inverse_matrix
    return estimate_delay(
        run.command_time,
        run.twist,
        run.stamps,
        run.positions,
        model=model,
        measured_is="position",
        channels=("x", "y", "yaw"),
        friction=friction,
    )


def true_delays(run: Run, axes: tuple[int, ...] = (0, 1, 2)) -> np.ndarray:
    return np.array([effective_delay(run.command_time, run.twist[:, a], run.time, run.motion[:, a]) for a in axes])
