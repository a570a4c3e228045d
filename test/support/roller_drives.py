"""Drives of bases whose rollers stand anywhere, on the twin and in MuJoCo, as odometry meets them and as they were."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache

import numpy as np
from kept import kept
from mujoco_arms import with_rollers

from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.kinematics.mecanum import MecanumBase, mean_factor
from youbot_dynamics.kinematics.roller_phase import RollingWheels
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import load_robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.mujoco_youbot._model import rollers_of
from youbot_dynamics.simulation.mujoco_youbot._plant import MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoBase
from youbot_dynamics.simulation.truth import BaseTruth, load_truth

ROBOT = load_robot()
PROGRAMS = ("translation", "rotation", "combined")
PERIOD = 0.02
_POSITION_SIGN = np.array(ROBOT.driver.position_sign)
_VELOCITY_SIGN = np.array(ROBOT.driver.velocity_sign)


@dataclass(frozen=True, eq=False)
class RollerDrive:
    """One drive, a row a reading of the driver.

    Args:
        wheels: rows and rollers as they are.
        time: (m,) of the readings [s].
        stamp: (m,) with the driver's jitter [s].
        position: (m, 4) as the driver counts, in our signs [rad].
        velocity: (m, 4) as the driver tells, in our signs [rad/s].
        angle: (m, 4) of the wheels without quantum [rad].
        pose: (m, 3) true [m, m, rad].
        rate: (m, 2) true yaw rates, half a period before and at the readings [rad/s].
    """

    wheels: RollingWheels
    time: np.ndarray
    stamp: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    angle: np.ndarray
    pose: np.ndarray
    rate: np.ndarray

    def off_pattern(self, wheel: int, since: float, factor: float = 1.2) -> RollerDrive:
        """Same drive with a wheel whose count from `since` [s] on is `factor` times its turn."""
        position, k = self.position.copy(), int(np.searchsorted(self.time, since))
        position[k:, wheel] = position[k, wheel] + factor * (position[k:, wheel] - position[k, wheel])
        return dataclasses.replace(self, position=position)


def phases_of(seed: int) -> tuple[float, ...]:
    """Where the rollers of the four wheels begin, over the pitch."""
    return tuple(np.random.default_rng([seed, 99]).uniform(-0.5, 0.5, 4).tolist())


def twists_of(program: str, repeats: int = 1, standing: float = 0.0, seconds: float = 20.0) -> np.ndarray:
    """Rows (k, 3) of a program of the lab or its begin, some time of standstill before, a little after it."""
    rows = read_program(program_path(program), PERIOD).twists[: round(seconds / PERIOD)]
    rest = np.zeros((round(standing / PERIOD), 3))
    return np.vstack([rest, np.tile(rows, (repeats, 1)), np.zeros((30, 3))])


def run(base: BasePlant | MujocoBase, wheels: RollingWheels, twists: np.ndarray) -> RollerDrive:
    """Command twists (k, 3) one after the other, and read after each."""
    rows = []
    for k, twist in enumerate(twists):
        base.command_twist(twist)
        base.advance((k + 0.5) * PERIOD)
        between = base.twist[2]
        base.advance((k + 1.0) * PERIOD)
        reading = base.read()
        position, velocity = reading.position * _POSITION_SIGN, reading.velocity * _VELOCITY_SIGN
        rates = np.array([between, base.twist[2]])
        rows.append((base.time, reading.stamp, position, velocity, base.wheel_angles, base.pose, rates))
    return RollerDrive(wheels, *(np.array(column) for column in zip(*rows, strict=True)))


def twin_truth(seed: int, rollers: int = 6, calibrated: bool = True) -> BaseTruth:
    """Drawn robot with rollers anywhere; 0 for smooth wheels."""
    truth = load_truth(seed)
    if calibrated:
        truth = truth.with_geometry(ROBOT.base.geometry)
    return dataclasses.replace(truth, rollers=float(rollers), roller_phase=phases_of(seed))


def twin_wheels(truth: BaseTruth) -> RollingWheels:
    """Rows and rollers of a calibrated twin."""
    count = round(truth.rollers) or 6
    phases = 2.0 * np.pi / count * np.array(truth.roller_phase) if truth.rollers else None
    return RollingWheels(ROBOT.base.geometry.mecanum(), count, truth.roller_depth, phases)


@cache
@kept
def twin_drive(
    program: str,
    seed: int,
    *,
    repeats: int = 1,
    rollers: int = 6,
    calibrated: bool = True,
    standing: float = 0.0,
    seconds: float = 20.0,
) -> RollerDrive:
    """Drive of a program on the twin."""
    truth = twin_truth(seed, rollers, calibrated)
    base = BasePlant(truth, ROBOT.driver, seed)
    return run(base, twin_wheels(truth), twists_of(program, repeats, standing, seconds))


@cache
@kept
def mujoco_drive(program: str, seed: int, *, rollers: int = 6, repeats: int = 1, seconds: float = 20.0) -> RollerDrive:
    """Drive of a program in MuJoCo, rollers of 41 spheres, geometry as the sheets have it."""
    truth = dataclasses.replace(twin_truth(seed, rollers), lag=load_truth(0).lag)
    truth = with_rollers(truth, rollers)
    plant = MujocoPlant(truth, ROBOT.arm.model(), with_arm=False)
    geometry = ROBOT.base.geometry
    even = MecanumBase.rectangular(
        geometry.wheel_radius, geometry.half_length, geometry.half_width, mean_factor(rollers)
    )
    depth = geometry.wheel_radius - rollers_of(truth).radius(geometry.wheel_radius, np.pi / 4)
    wheels = RollingWheels(even, rollers, depth, 2.0 * np.pi / rollers * np.array(truth.roller_phase))
    return run(MujocoBase(plant, truth, ROBOT.driver, seed), wheels, twists_of(program, repeats, seconds=seconds))
