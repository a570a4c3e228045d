"""Lock-step drives: a plant behind its driver with our own controllers in simulated time, repeatable to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.control.tracker import TrackerSettings, TrackerState
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.control.wheel_commands import CommanderSettings, WheelCommander, limit_speed
from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation.odometry import Odometry, OdometrySettings, OdometryState
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.base_only import BaseOnly
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.driver_reports import JointReport
from youbot_dynamics.simulation.faults import BASE, Fault
from youbot_dynamics.simulation.plant import ArmFace, Plant
from youbot_dynamics.simulation.robot_driver import Report, RobotDriver

Vector = NDArray[np.float64]

LEAD = 0.1  # [s] between taking a trajectory and its first command, besides the preview
_REST = 0.5  # [s] of standstill after the end


@dataclass(frozen=True)
class ArmOrder:
    """Something the arm is told during a drive.

    Args:
        time: when [s].
        command: is given the arm and the time it is told, and calls one of its commands.
    """

    time: float
    command: Callable[[ArmFace, float], None]


@dataclass(frozen=True)
class Message:
    """A message of the driver.

    Args:
        received: [s] when it came.
        channel: "odom", "base" or "arm".
        report: its fields.
    """

    received: float
    channel: str
    report: Report


@dataclass(frozen=True, eq=False)
class Sent:
    """What the base controller sent.

    Args:
        stamp: [s].
        wheel_speeds: (4,) [rad/s], positive forward.
        driver_twist: (3,) what the driver was sent [m/s, m/s, rad/s].
    """

    stamp: float
    wheel_speeds: Vector
    driver_twist: Vector


@dataclass(frozen=True, eq=False)
class Wish:
    """What the tracker asked the base controller for.

    Args:
        stamp: [s].
        pose_stamp: of the pose it corrects [s].
        twist: (3,) within the limits [m/s, m/s, rad/s].
        state: of the tracker.
    """

    stamp: float
    pose_stamp: float
    twist: Vector
    state: TrackerState


@dataclass(frozen=True, eq=False)
class ArmTrace:
    """What the arm really did, a row for each pass of the driver's loop.

    Args:
        position: (m, 5) [rad].
        speed: (m, 5) [rad/s].
        torque: (m, 5) of the motors at the joints [N m].
        winding: (m, 5) [degC].
        housing: (m, 5) [degC].
    """

    position: Vector
    speed: Vector
    torque: Vector
    winding: Vector
    housing: Vector


@dataclass(frozen=True, eq=False)
class Drive:
    """What happened, on the clock of the simulation.

    Args:
        start: time at which the trajectory began [s].
        desired: the trajectory, in the world frame.
        sent: wheel commands.
        wishes: of the tracker.
        messages: of the driver.
        odometry: what odometry made of them.
        reading_time: (m,) when each pass of the driver's loop really took place [s].
        wheel_angle: (m, 4) what the wheels then really did [rad], without noise or quantum.
        true_pose: (m, 3) in the world [m, m, rad].
        true_twist: (m, 3) in the body frame [m/s, m/s, rad/s].
        odometry_pose: (m, 3) as estimated then; the first row is the origin.
        arm: what the arm did; None on a robot without one.
        refusals: why the plant refused a command, one text a refusal.
    """

    start: float
    desired: Trajectory
    sent: tuple[Sent, ...]
    wishes: tuple[Wish, ...]
    messages: tuple[Message, ...]
    odometry: tuple[OdometryState, ...]
    reading_time: Vector
    wheel_angle: Vector
    true_pose: Vector
    true_twist: Vector
    odometry_pose: Vector
    arm: ArmTrace | None
    refusals: tuple[str, ...]


def drive(
    trajectory: Trajectory,
    robot: Robot,
    plant: Plant,
    seed: int,
    tracker_settings: TrackerSettings | None = None,
    commander_settings: CommanderSettings | None = None,
    odometry_settings: OdometrySettings | None = None,
    *,
    arm_orders: Sequence[ArmOrder] = (),
    faults: tuple[Fault, ...] = (),
    listeners: Sequence[Callable[[Message], None]] = (),
) -> Drive:
    """Drive one trajectory from rest at the origin.

    Each period: the base controller sends its command; the tracker, woken by it, prepares the next one; the driver's
    loop reads the robot, and odometry takes the reading. That is the order of the live nodes.

    Args:
        trajectory: poses relative to the start.
        robot: what the controllers believe.
        plant: what the robot is, at rest at the origin at time 0; `BaseOnly` for one without an arm.
        seed: of the phase between the driver's loop and ours, in which it reads, and of the faults. Commands to the arm
            wait for the arm truth's `loop_phase`, so that a base drives alike with and without an arm. The real
            driver has one loop for both: who needs that gives the truth the phase of `reading_phase`.
        tracker_settings: feedback and its gains, defaults if not given.
        commander_settings: rate and timeout, defaults if not given.
        odometry_settings: noise growth, defaults if not given.
        arm_orders: what the arm is told, in the order of time.
        faults: of the driver and the base.
        listeners: called with each message of the driver, in the order of reception; such as an estimator.

    Raises:
        InputError: a plant that has been used before.
    """
    if plant.time != 0.0:
        raise InputError("time of the plant", got=f"{plant.time:g} s", expected="0: a new one for each drive")
    commander_settings = commander_settings or CommanderSettings()
    tracker_settings = tracker_settings or TrackerSettings()
    period = 1.0 / commander_settings.rate
    has_arm = not isinstance(plant, BaseOnly)
    driver = RobotDriver(plant, robot.driver, seed, arm=has_arm)
    driver.set_faults(faults)
    commander = WheelCommander(robot.base.geometry.mecanum(), robot.base.limits, commander_settings.command_timeout)
    driver_base = robot.driver.mecanum()
    reader = _OdometryOfMessages(robot, odometry_settings or OdometrySettings())
    model = robot.base.driven()
    start = float(model.dead_times.max()) + LEAD
    tracker = tracker_settings.for_trajectory(trajectory, start, model, period)
    phase = reading_phase(seed, period)
    sent: list[Sent] = []
    wishes: list[Wish] = []
    messages: list[Message] = []
    trace: list[tuple[float, Vector, Vector, Vector, Vector]] = []
    arm_trace: list[tuple[Vector, ...]] = []
    orders = list(arm_orders)
    refusals: list[str] = []
    ticks = int(np.ceil((start + trajectory.duration + tracker_settings.settle + _REST) / period))
    commander.offer("tracker", np.zeros(3), 0.0)
    for tick in range(ticks):
        now = tick * period
        driver.advance(now)
        while orders and orders[0].time <= now:
            driver.command_arm(orders.pop(0).command, now)
        refusals += [driver.last_refusal] * (driver.refused - len(refusals))
        command = commander.step(now, period)
        if command is not None:
            sent.append(Sent(now, command.wheel_speeds, driver_base.twist(command.wheel_speeds)))
            driver.command_twist(sent[-1].driver_twist, now)
            tracker.observe_sent(command.twist)
        state = tracker.step(now + period, reader.stamp, reader.pose)
        wishes.append(Wish(now, reader.stamp, limit_speed(state.twist, commander.base, robot.base.limits), state))
        commander.offer("tracker", wishes[-1].twist, now)
        driver.advance(now + phase)
        time = plant.time
        for channel, report in driver.read():
            messages.append(Message(time, channel, report))
            reader.take(messages[-1])
            for listener in listeners:
                listener(messages[-1])
        base = plant.base
        trace.append((time, base.wheel_angles, base.pose, base.twist, reader.pose.copy()))
        if has_arm:
            arm = plant.arm
            arm_trace.append((arm.position, arm.speed, arm.torque, arm.winding, arm.housing))
    times, angles, poses, twists, estimates = (np.array(column) for column in zip(*trace, strict=True))
    return Drive(
        start=start,
        desired=trajectory,
        sent=tuple(sent),
        wishes=tuple(wishes),
        messages=tuple(messages),
        odometry=tuple(reader.states),
        reading_time=times,
        wheel_angle=angles,
        true_pose=poses,
        true_twist=twists,
        odometry_pose=estimates,
        arm=_arm_trace(arm_trace) if has_arm else None,
        refusals=tuple(refusals),
    )


def reading_phase(seed: int, period: float = 0.02) -> float:
    """How long after our commands the driver's loop reads in a drive of this seed [s], within `period` [s]."""
    return period * float(np.random.default_rng([seed, 2]).random())


def _arm_trace(rows: Sequence[Sequence[Vector]]) -> ArmTrace:
    position, speed, torque, winding, housing = (np.array(column) for column in zip(*rows, strict=True))
    return ArmTrace(position, speed, torque, winding, housing)


class _OdometryOfMessages:
    """Odometry as its node runs it: it picks the wheels out of the driver's messages."""

    def __init__(self, robot: Robot, settings: OdometrySettings) -> None:
        self.states: list[OdometryState] = []
        self.pose, self.stamp = np.zeros(3), 0.0
        self._odometry = Odometry(robot, settings)
        self._names = robot.driver.wheel_joints
        self._signs = np.array(robot.driver.position_sign)

    def take(self, message: Message) -> None:
        """Take a message; those of other channels, or without all wheels, change nothing."""
        report = message.report
        if message.channel != BASE or not isinstance(report, JointReport) or not set(self._names) <= set(report.names):
            return
        picked = [report.position[report.names.index(name)] for name in self._names]
        estimate = self._odometry.update(report.stamp, self._signs * picked)
        if estimate is not None:
            self.states.append(estimate)
            self.pose, self.stamp = estimate.pose, estimate.stamp


_MODEL_FLOOR_FRICTION = 0.8  # chosen: config/mock.yaml
_MODEL_LAG = 0.005  # [s] share of the effective delay that is lag, the least the facts give


def identified_model(robot: Robot) -> BaseTruth:
    """What is known of a robot as a twin: its geometry, inertia, delays and lag, no friction, no noise."""
    geometry, felt = robot.base.geometry, robot.base.response
    lag = max(felt.lag, _MODEL_LAG)
    dead = felt.dead_times() if felt.known else np.maximum(0.0, robot.base.delay.effective() - lag)
    return BaseTruth(
        dead_time_x=float(dead[0]),
        dead_time_y=float(dead[1]),
        dead_time_yaw=float(dead[2]),
        lag=lag,
        stamp_jitter=0.0,
        wheel_radius=geometry.wheel_radius,
        half_length=geometry.half_length,
        half_width=geometry.half_width,
        lateral_factor=geometry.lateral_factor,
        mass=robot.base.mass,
        yaw_inertia=robot.base.yaw_inertia,
        wheel_inertia=robot.base.wheel_inertia,
        torque_noise=0.0,
        wheel_coulomb=0.0,
        roller_coulomb=0.0,
        viscous_x=0.0,
        viscous_y=0.0,
        wheel_radius_error=(0.0, 0.0, 0.0, 0.0),
        speed_lag=0.0,
        effort_noise=0.0,
        rollers=0.0,
        roller_depth=0.0,
        roller_phase=(0.0, 0.0, 0.0, 0.0),
        wheel_torque_constant=(1.0, 1.0, 1.0, 1.0),
        floor_friction=_MODEL_FLOOR_FRICTION,
    )
