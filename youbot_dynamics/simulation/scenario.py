"""Lock-step drives: the twin with our own controller, odometry and tracker in simulated time, repeatable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.control.tracker import Tracker, TrackerSettings
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.control.wheel_commands import CommanderSettings, WheelCommander, limit_speed
from youbot_dynamics.estimation.odometry import Odometry, OdometrySettings
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.truth import BaseTruth
from youbot_dynamics.simulation.youbot import BaseReading, Youbot

Vector = NDArray[np.float64]

LEAD = 0.1  # [s] between taking a trajectory and its first command, besides the preview
_REST = 0.5  # [s] of standstill after the end


@dataclass(frozen=True, eq=False)
class Drive:
    """What happened, on the clock of the simulation.

    Args:
        start: time at which the trajectory began [s].
        desired: the trajectory, in the world frame.
        command_stamp: (n,) when each wheel command was sent [s].
        wheel_command: (n, 4) [rad/s], positive forward.
        driver_twist: (n, 3) what the driver was sent [m/s, m/s, rad/s].
        readings: (m) what the driver reported.
        reading_time: (m,) when each reading was really taken [s].
        wheel_angle: (m, 4) what the wheels then really did [rad], without noise or quantum.
        true_pose: (m, 3) in the world [m, m, rad].
        odometry_pose: (m, 3) as estimated; the first row is the origin.
    """

    start: float
    desired: Trajectory
    command_stamp: Vector
    wheel_command: Vector
    driver_twist: Vector
    readings: tuple[BaseReading, ...]
    reading_time: Vector
    wheel_angle: Vector
    true_pose: Vector
    odometry_pose: Vector


def drive(
    trajectory: Trajectory,
    robot: Robot,
    truth: BaseTruth,
    seed: int,
    tracker_settings: TrackerSettings | None = None,
    commander_settings: CommanderSettings | None = None,
    odometry_settings: OdometrySettings | None = None,
) -> Drive:
    """Drive one trajectory from rest at the origin.

    Each period: the driver's loop reads the wheels and odometry takes the reading; the base controller sends its
    command; the tracker, woken by it, prepares the next one. That is the order of the live nodes.

    Args:
        trajectory: poses relative to the start.
        robot: what the controllers believe.
        truth: what the robot is.
        seed: of the noise and of the phase between the driver's loop and ours.
        tracker_settings: feedback and its gains, defaults if not given.
        commander_settings: rate and timeout, defaults if not given.
        odometry_settings: noise growth, defaults if not given.
    """
    commander_settings = commander_settings or CommanderSettings()
    tracker_settings = tracker_settings or TrackerSettings()
    period = 1.0 / commander_settings.rate
    plant = Youbot(truth, robot.driver, seed)
    commander = WheelCommander(robot.base.geometry.mecanum(), robot.base.limits, commander_settings.command_timeout)
    driver_base = robot.driver.mecanum()
    odometry = Odometry(robot, odometry_settings or OdometrySettings())
    preview = robot.base.delay.effective()
    start = float(preview.max()) + LEAD
    tracker = Tracker(
        trajectory, start, preview, tracker_settings.gains(preview, period), period, tracker_settings.settle
    )
    phase = period * float(np.random.default_rng([seed, 2]).random())
    pose, pose_stamp = np.zeros(3), 0.0
    sent: list[tuple[float, Vector, Vector]] = []
    seen: list[tuple[BaseReading, float, Vector, Vector, Vector]] = []
    ticks = int(np.ceil((start + trajectory.duration + tracker_settings.settle + _REST) / period))
    commander.offer("tracker", np.zeros(3), 0.0)
    for tick in range(ticks):
        now = tick * period
        plant.advance(now)
        command = commander.step(now, period)
        if command is not None:
            twist = driver_base.twist(command.wheel_speeds)
            plant.command_twist(twist)
            sent.append((now, command.wheel_speeds, twist))
            tracker.observe_sent(command.twist)
        state = tracker.step(now + period, pose_stamp, pose)
        commander.offer("tracker", limit_speed(state.twist, commander.base, robot.base.limits), now)
        plant.advance(now + phase)
        reading = plant.read()
        estimate = odometry.update(reading.stamp, reading.position * np.array(robot.driver.position_sign))
        if estimate is not None:
            pose, pose_stamp = estimate.pose, estimate.stamp
        seen.append((reading, plant.time, plant.wheel_angles, plant.pose, pose.copy()))
    return Drive(
        start=start,
        desired=trajectory,
        command_stamp=np.array([entry[0] for entry in sent]),
        wheel_command=np.array([entry[1] for entry in sent]),
        driver_twist=np.array([entry[2] for entry in sent]),
        readings=tuple(entry[0] for entry in seen),
        reading_time=np.array([entry[1] for entry in seen]),
        wheel_angle=np.array([entry[2] for entry in seen]),
        true_pose=np.array([entry[3] for entry in seen]),
        odometry_pose=np.array([entry[4] for entry in seen]),
    )


# Inertia and motor loop of the identified model: without friction they hardly matter, but there must be some.
_MODEL_MASS = 29.9  # [kg] youbot facts, section 2.1
_MODEL_YAW_INERTIA = 1.1  # [kg m2] youbot facts, section 5
_MODEL_WHEEL_INERTIA = 0.0106  # [kg m2] youbot facts, sections 2.1 and 2.2
_MODEL_LAG = 0.005  # [s] share of the effective delay that is lag, the least the facts give


def identified_model(robot: Robot) -> BaseTruth:
    """What is known of a robot as a twin: its geometry and effective delays, no friction, no noise."""
    geometry = robot.base.geometry
    dead = [max(0.0, delay - _MODEL_LAG) for delay in robot.base.delay.effective()]
    return BaseTruth(
        dead_time_x=dead[0],
        dead_time_y=dead[1],
        dead_time_yaw=dead[2],
        lag=_MODEL_LAG,
        stamp_jitter=0.0,
        wheel_radius=geometry.wheel_radius,
        half_length=geometry.half_length,
        half_width=geometry.half_width,
        lateral_factor=geometry.lateral_factor,
        mass=_MODEL_MASS,
        yaw_inertia=_MODEL_YAW_INERTIA,
        wheel_inertia=_MODEL_WHEEL_INERTIA,
        torque_noise=0.0,
        wheel_coulomb=0.0,
        roller_coulomb=0.0,
        viscous_x=0.0,
        viscous_y=0.0,
    )
