"""Tracking on contact physics: one open-loop drive tells all parameters, then programs are driven stabilised."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from delay_runs import PERIOD, REST, Run, estimates
from named_findings import named_estimates
from response_runs import ROBOT, excitation, true_loops
from roller_drives import phases_of, twin_truth

from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import Trajectory, read_program
from youbot_dynamics.identification.calibration._fit import WHEELS
from youbot_dynamics.identification.calibration._poses import calibration_signals
from youbot_dynamics.identification.calibration._rollers import RollerPhaseFit, calibrate_with_rollers
from youbot_dynamics.identification.comparison import path_errors, sample_poses
from youbot_dynamics.identification.response import identify_response
from youbot_dynamics.identification.response._signals import DriveSignals, rolled_path
from youbot_dynamics.kinematics.mecanum import mean_factor
from youbot_dynamics.kinematics.roller_phase import ideal_depth
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.base import BasePlant
from youbot_dynamics.simulation.mujoco_youbot._plant import MujocoPlant
from youbot_dynamics.simulation.mujoco_youbot._youbot import MujocoBase
from youbot_dynamics.simulation.scenario import Gyro, drive
from youbot_dynamics.simulation.scenario._drive import Drive
from youbot_dynamics.simulation.truth import BaseTruth
from youbot_dynamics.simulation.youbot import BaseOnly

SIGNS = np.array(ROBOT.driver.position_sign)
STANDING = 8.0  # [s] before a drive with a gyro


def contact_truth(seed: int, rollers: int) -> BaseTruth:
    """Random robot for contact physics, with Coulomb torques of 0.03 to 0.15 N m instead of 0.03 to 0.25 N m.

    With more, a stiff servo makes wheels slip against each other, which odometry reports.
    """
    truth = twin_truth(seed, rollers)
    return dataclasses.replace(truth, wheel_coulomb=0.03 + (truth.wheel_coulomb - 0.03) * 0.12 / 0.22)


class ContactBaseOnly(BaseOnly):
    """The base of a truth in MuJoCo, its arm held."""

    def __init__(self, truth: BaseTruth, seed: int, gravity: Sequence[float] | None = None) -> None:
        plant = MujocoPlant(truth, ROBOT.arm.model(), with_arm=False)
        if gravity is not None:
            plant.model.opt.gravity[:] = gravity
        self.base = MujocoBase(plant, truth, ROBOT.driver, seed)


@dataclass(frozen=True, eq=False)
class Identified:
    """Our robot with what one drive told, and the fit of its rollers."""

    robot: Robot
    phases: RollerPhaseFit | None

    def without_phases(self) -> Robot:
        """Same robot whose rollers stand anywhere."""
        return with_geometry(self.robot, roller_phase_error=0.0)


def with_geometry(robot: Robot, **changes: object) -> Robot:
    """Robot of another geometry."""
    geometry = dataclasses.replace(robot.base.geometry, **changes)
    return dataclasses.replace(robot, base=dataclasses.replace(robot.base, geometry=geometry))


def excited(base: BasePlant | MujocoBase, seed: int) -> tuple[Run, np.ndarray]:
    """Readings and true poses (m, 3) of a base that is sent the recommended motion."""
    mean, driver = ROBOT.base.geometry.mecanum(), ROBOT.driver.mecanum()
    phase = PERIOD * float(np.random.default_rng([seed, 2]).random())
    twists = np.vstack([excitation().twists, np.zeros((int(REST / PERIOD), 3))])
    readings, times, poses = [], [], []
    for k, twist in enumerate(twists):
        base.advance(k * PERIOD)
        base.command_twist(driver.twist(mean.wheel_speeds(twist)))
        base.advance(k * PERIOD + phase)
        readings.append(base.read())
        times.append(base.time)
        poses.append(base.pose)
    angles = np.array([reading.position for reading in readings]) * SIGNS
    stamps = np.array([reading.stamp for reading in readings])
    sent = np.arange(len(twists)) * PERIOD
    run = Run(sent, twists, twists @ mean.inverse_matrix.T, stamps, angles, np.array(times), angles)
    return run, np.array(poses)


def identify_from(run: Run, poses: np.ndarray, rollers: int) -> Identified:
    """All that a drive with true poses tells, in the order of `youbot identify`."""
    depth = ideal_depth(ROBOT.base.geometry.wheel_radius, np.pi / 4.0, rollers)
    robot = with_geometry(ROBOT, rollers=float(rollers), roller_depth=depth)
    geometry = robot.base.geometry
    signals = calibration_signals(run.stamps, run.positions, run.time, poses)
    found = calibrate_with_rollers([signals], geometry.wheels(), robot.base.wheel_weights())
    values = {
        name.removeprefix("robot.base.geometry."): one.value
        for name, one in named_estimates(found.calibration, geometry).items()
        if name.startswith("robot.") and (one.identified or one.name in ("half_length", "half_width"))
    }
    phases = found.phases if isinstance(found.phases, RollerPhaseFit) else None
    if phases is not None and phases.identified:
        values |= {
            f"roller_phase_{wheel}": estimate.value for wheel, estimate in zip(WHEELS, phases.estimates, strict=True)
        }
        values["roller_phase_error"] = max(estimate.standard_error for estimate in phases.estimates)
    robot = with_geometry(robot, **values)
    mecanum = robot.base.geometry.mecanum()
    # The twist that was sent moves a robot that is not of the sheets' geometry otherwise.
    twists = run.wheel_speeds @ mecanum.forward_matrix.T
    run = dataclasses.replace(run, twist=twists, positions=run.positions @ mecanum.forward_matrix.T)
    delays = np.array([one.value if one.identified else 0.0 for one in estimates(run, robot)])
    response = identify_response(
        [DriveSignals(run.command_time, run.twist, run.stamps, rolled_path(run.positions))],
        robot.base.dynamics(),
        delays,
    )
    felt = {
        one.name: one.value
        for one in response.estimates
        if response.usable and np.isfinite(one.value) and not one.name.startswith("gain_")
    }
    delay = dict(zip(("effective_x", "effective_y", "effective_yaw"), delays.tolist(), strict=True))
    base = dataclasses.replace(
        robot.base,
        delay=dataclasses.replace(robot.base.delay, **delay),
        response=dataclasses.replace(robot.base.response, **felt),
    )
    robot = dataclasses.replace(robot, base=base)
    return Identified(robot, phases)


def informed(seed: int, rollers: int) -> Robot:
    """Our robot that knows its rollers and its response as they are in the truth: quick, nothing is identified."""
    truth = contact_truth(seed, rollers)
    phases = dict(zip([f"roller_phase_{wheel}" for wheel in WHEELS], phases_of(seed), strict=True))
    pitch = 2.0 * np.pi / rollers
    robot = with_geometry(
        ROBOT,
        rollers=float(rollers),
        roller_depth=ideal_depth(truth.wheel_radius, np.pi / 4.0, rollers),
        lateral_factor=mean_factor(rollers),
        roller_phase_error=1e-3,
        **{name: pitch * share for name, share in phases.items()},
    )
    return knowing(robot, truth)


def knowing(robot: Robot, truth: BaseTruth) -> Robot:
    """Robot that knows how a truth answers its commands."""
    felt = dataclasses.replace(
        robot.base.response,
        dead_time_x=truth.dead_time_x,
        dead_time_y=truth.dead_time_y,
        dead_time_yaw=truth.dead_time_yaw,
        **true_loops(truth),
        wheel_coulomb=truth.wheel_coulomb,
        roller_coulomb=truth.roller_coulomb,
        viscous_x=truth.viscous_x,
        viscous_y=truth.viscous_y,
    )
    base = dataclasses.replace(robot.base, response=felt, mass=truth.mass, yaw_inertia=truth.yaw_inertia)
    return dataclasses.replace(robot, base=base)


@cache
def identified_in_mujoco(seed: int, rollers: int) -> Identified:
    """What a minute of the recommended motion tells of a robot in MuJoCo."""
    plant = ContactBaseOnly(contact_truth(seed, rollers), seed)
    return identify_from(*excited(plant.base, seed), rollers)


def drive_in_mujoco(
    name: str,
    robot: Robot,
    seed: int,
    rollers: int,
    *,
    gyro: bool = False,
    settings: TrackerSettings | None = None,
    interface: str = "twist",
    trajectory: Trajectory | None = None,
    find_phases: bool = False,
    gravity: Sequence[float] | None = None,
) -> Drive:
    """Drive one of the three programs (or a trajectory) in MuJoCo, with other noise than the drive before it.

    `gravity` (3,) is that of a tilted floor [m/s2].
    """
    if trajectory is None:
        trajectory = read_program(program_path(name), PERIOD).trajectory()
    plant = ContactBaseOnly(contact_truth(seed, rollers), seed + 1000, gravity)
    sensor = Gyro(seed + 1000) if gyro else None
    rest = STANDING if gyro else 0.0
    return drive(
        trajectory,
        robot,
        plant,
        seed + 1000,
        settings,
        gyro=sensor,
        interface=interface,
        rest=rest,
        find_phases=find_phases,
    )


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors over a whole program, rows (k, 3) in the body frame [m, m, rad].

    Args:
        truth: true poses off the desired ones.
        odometry: odometry off the desired ones: what the controllers could see and left.
        drift: true poses off odometry: what they could not see.
    """

    truth: np.ndarray
    odometry: np.ndarray
    drift: np.ndarray


def errors_of(run: Drive) -> Errors:
    """Errors of a drive, from its start to the end of the program."""
    time = np.arange(0.0, run.desired.duration + 1e-9, PERIOD)
    desired = run.desired.path(time)
    true = sample_poses(run.reading_time - run.start, run.true_pose, time)
    # Odometry by its stamps, so that its age is no error.
    stamps = np.array([state.stamp for state in run.odometry]) - run.start
    told = sample_poses(stamps, np.array([state.pose for state in run.odometry]), time)
    return Errors(path_errors(true, desired), path_errors(told, desired), path_errors(true, told))


def summary(errors: Errors) -> str:
    """Deviation and mean of all three, in mm, mm, mrad."""
    parts = []
    for name in ("truth", "odometry", "drift"):
        rows = 1e3 * getattr(errors, name)
        parts.append(f"{name} std {rows.std(axis=0).round(3)} mean {rows.mean(axis=0).round(3)}")
    return "; ".join(parts)
