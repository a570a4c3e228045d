"""Drives of the twin with wheel efforts, which the youBot's driver does not publish, for the tests of the friction."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from kept import kept

from youbot_dynamics.identification.base_friction import FrictionModel, FrictionSignals
from youbot_dynamics.identification.base_friction._signals import wheel_signals
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

ROBOT = load_robot()
PERIOD = 0.02
COEFFICIENTS = ("viscous_x", "viscous_y", "roller_coulomb", "wheel_coulomb")


@dataclass
class FrictionRun:
    command_time: np.ndarray
    twist: np.ndarray
    stamps: np.ndarray
    positions: np.ndarray
    efforts: np.ndarray


def calibrated_truth(seed: int) -> BaseTruth:
    """Truth of one seed with the geometry and torque constants our robot believes in: neither is the subject here."""
    truth = load_truth(seed).with_geometry(ROBOT.base.geometry)
    return dataclasses.replace(truth, wheel_torque_constant=(1.0, 1.0, 1.0, 1.0))


def friction_model(each_wheel: bool = False) -> FrictionModel:
    """What our robot believes of its masses, which the truth does not share."""
    base = ROBOT.base
    return FrictionModel(base.geometry.mecanum(), base.mass, base.yaw_inertia, base.wheel_inertia, each_wheel)


@kept
def drive(
    twists: np.ndarray, truth: BaseTruth, seed: int, robot: Robot = ROBOT, off: tuple[tuple[float, float], ...] = ()
) -> FrictionRun:
    """Send twists (k, 3) to the driver, one a period, read wheels and efforts; motors are off in the spans `off`."""
    plant = BasePlant(truth, robot.driver, seed)
    base, driver = robot.base.geometry.mecanum(), robot.driver.mecanum()
    phase = PERIOD * float(np.random.default_rng([seed, 2]).random())
    readings, efforts = [], []
    for k, twist in enumerate(twists):
        now = k * PERIOD
        plant.advance(now)
        plant.switch_motors(not any(a <= now < b for a, b in off))
        plant.command_twist(driver.twist(base.wheel_speeds(twist)))
        plant.advance(now + phase)
        readings.append(plant.read())
        efforts.append(plant.read_efforts().effort)
    return FrictionRun(
        np.arange(len(twists)) * PERIOD,
        twists,
        np.array([reading.stamp for reading in readings]),
        np.array([reading.position for reading in readings]) * np.array(robot.driver.position_sign),
        np.array(efforts) * np.array(robot.driver.velocity_sign),
    )


def multi_sine(duration: float, seed: int = 0, scale: float = 1.0, axes: tuple[float, ...] = (1, 1, 1)) -> np.ndarray:
    """Twists (k, 3): sums of sines of different frequencies in x, y and yaw, eased in and out."""
    t = np.arange(0.0, duration, PERIOD)
    random = np.random.default_rng(seed)
    sines = ((0.32, (0.05, 0.13, 0.23)), (0.28, (0.067, 0.15, 0.27)), (0.5, (0.083, 0.19, 0.31)))
    twists = np.zeros((len(t), 3))
    for axis, (amplitude, frequencies) in enumerate(sines):
        for frequency in frequencies:
            phase = random.uniform(0.0, 2.0 * np.pi)
            twists[:, axis] += axes[axis] * amplitude / len(frequencies) * np.sin(2.0 * np.pi * frequency * t + phase)
    ease = np.clip(np.minimum(t, t[-1] - t) / 1.0, 0.0, 1.0)[:, None]
    return scale * ease * twists


STRAIGHT = tuple((way, sign * speed) for speed in (0.75, 0.25, 0.5) for way in (0, 1) for sign in (1.0, -1.0))
TURNING = tuple((way, sign * speed) for speed in (1.7, 0.6) for way in (2,) for sign in (1.0, -1.0)) + tuple(
    (way, sign * speed) for way in (3, 4) for speed in (0.35, 0.15) for sign in (1.0, -1.0)
)
# Twist of a leg at speed 1: forward, sideways, turning, and two mixtures whose wheels all turn at different speeds.
WAYS = np.array([[1.0, 0.0, 0.0], [0.0, 0.93, 0.0], [0.0, 0.0, 1.0], [1.0, 0.45, 0.4], [-0.4, 1.0, 0.5]])


def stairs(duration: float, legs: tuple[tuple[int, float], ...] = STRAIGHT) -> np.ndarray:
    """Twists (k, 3): legs (way, speed) of 1 s at constant speed between half-cosine ramps of at most 0.8 m/s2."""
    pieces = []
    for way, speed in legs:
        count = int(abs(speed) / 0.8 * np.pi / 2.0 / PERIOD) + 1
        ramp = 0.5 - 0.5 * np.cos(np.pi * np.arange(count) / count)
        profile = speed * np.concatenate([ramp, np.ones(int(1.0 / PERIOD)), ramp[::-1]])
        pieces.append(profile[:, None] * WAYS[way])
    once = np.vstack(pieces)
    count = int(duration / PERIOD)
    return np.vstack([once] * (count // len(once) + 1))[:count]


def signals(run: FrictionRun, truth: BaseTruth, instruments: bool = True, recording: int = 0) -> FrictionSignals:
    """What the estimator gets: stamps, wheel angles, efforts, and the command moved by the effective delays."""
    command = (run.command_time, run.twist) if instruments else None
    delays = np.array(truth.dead_times()) + truth.lag
    base = ROBOT.base.geometry.mecanum()
    return wheel_signals(run.stamps, run.positions, run.efforts, command, delays, base, recording)


def coasts() -> tuple[np.ndarray, tuple[tuple[float, float], ...]]:
    """Drive up to a speed, let go, 24 times: twists (k, 3) and the spans without torque."""
    twists, off, now = [], [], 0.0
    for leg in range(24):
        speed = (0.7, 0.5, 0.3)[leg // 2 % 3] * (1.0 if leg // 6 % 2 == 0 else -1.0)
        rise = np.minimum(np.arange(60) * PERIOD / 0.8, 1.0)[:, None] * speed * WAYS[leg % 2]
        twists += [rise, np.zeros((125, 3))]
        off.append((now + 60 * PERIOD, now + 180 * PERIOD))
        now += 185 * PERIOD
    return np.vstack(twists), tuple(off)
