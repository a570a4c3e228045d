"""Lock-step drives: a plant behind its driver with our own controllers in simulated time, repeatable to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.control.roller_preview import RollerPreview
from youbot_dynamics.control.stamp_watch import StampWatch
from youbot_dynamics.control.tracker import TrackerSettings, TrackerState
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.control.wheel_commands import CommanderSettings, WheelCommander, limit_speed, limit_wheels
from youbot_dynamics.errors import InputError
from youbot_dynamics.estimation.base_estimator import BaseEstimator
from youbot_dynamics.estimation.gyro import GyroSettings
from youbot_dynamics.estimation.odometry import OdometrySettings, OdometryState
from youbot_dynamics.estimation.phase_guard import PhaseGuard
from youbot_dynamics.estimation.slip import SlipSettings
from youbot_dynamics.estimation.wheel_watch import WheelWatch
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.base_only import BaseOnly
from youbot_dynamics.simulation.base_truth import BaseTruth
from youbot_dynamics.simulation.driver_reports import JointReport
from youbot_dynamics.simulation.faults import BASE, Fault
from youbot_dynamics.simulation.gyro import Gyro
from youbot_dynamics.simulation.plant import ArmFace, Plant
from youbot_dynamics.simulation.robot_driver import Report, RobotDriver

Vector = NDArray[np.float64]

INTERFACES = ("twist", "wheels")
ODOM_TIMEOUT = 0.5  # [s] off the age of odometry at which a trajectory is given up, as by the node trajectory_tracker
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
        wheel_speeds: (4,) [rad/s], positive forward, of the mean rows.
        rolling_speeds: (4,) the same for the rollers to come, where these are known: what the driver should do.
        driver_twist: (3,) what of them a driver is sent that takes a twist [m/s, m/s, rad/s].
    """

    stamp: float
    wheel_speeds: Vector
    rolling_speeds: Vector
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
        complaints: of odometry at the end, one text each.
        given_up: why the trajectory was given up and the base stopped; "" where it was followed to its end.
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
    complaints: tuple[str, ...]
    given_up: str
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
    slip_settings: SlipSettings | None = None,
    gyro_settings: GyroSettings | None = None,
    gyro: Gyro | None = None,
    interface: str = "twist",
    rest: float = 0.0,
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
        slip_settings: of odometry, defaults if not given.
        gyro_settings: what odometry expects of a gyro, defaults if not given.
        gyro: on the robot, if it has one.
        interface: what the driver takes: "twist", or "wheels" for their speeds.
        rest: how much later the trajectory begins [s]: time in which a gyro's bias is seen.
        arm_orders: what the arm is told, in the order of time.
        faults: of the driver and the base.
        listeners: called with each message of the driver, in the order of reception; such as an estimator.

    Raises:
        InputError: a plant that has been used before, or another interface.
    """
    if interface not in INTERFACES:
        raise InputError("interface", got=interface, expected=" or ".join(INTERFACES))
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
    model = robot.base.driven()
    reader = _WheelReader(robot, BaseEstimator(robot, odometry_settings, slip_settings, gyro_settings), period)
    start = rest + float(model.dead_times.max()) + LEAD
    tracker = tracker_settings.for_trajectory(trajectory, start, model, period)
    phase = reading_phase(seed, period)
    sent: list[Sent] = []
    wishes: list[Wish] = []
    messages: list[Message] = []
    trace: list[tuple[float, Vector, Vector, Vector, Vector]] = []
    arm_trace: list[tuple[Vector, ...]] = []
    orders = list(arm_orders)
    refusals: list[str] = []
    given_up = ""
    ticks = int(np.ceil((start + trajectory.duration + tracker_settings.settle + _REST) / period))
    commander.offer("tracker", np.zeros(3), 0.0)

    def advance(until: float) -> None:
        while gyro is not None and gyro.next_time <= until:
            driver.advance(gyro.next_time)
            reader.estimator.take_rate(*gyro.read(plant.time, float(plant.base.twist[2])))
        driver.advance(until)

    for tick in range(ticks):
        now = tick * period
        advance(now)
        while orders and orders[0].time <= now:
            driver.command_arm(orders.pop(0).command, now)
        refusals += [driver.last_refusal] * (driver.refused - len(refusals))
        command = commander.step(now, period)
        if command is not None:
            speeds = reader.wheel_speeds(now, command.twist, command.wheel_speeds, robot.base.limits.wheel_speed)
            sent.append(Sent(now, command.wheel_speeds, speeds, driver_base.twist(speeds)))
            if interface == "twist":
                driver.command_twist(sent[-1].driver_twist, now)
            else:
                driver.command_wheels(speeds * np.array(robot.driver.command_sign), now)
            tracker.observe_sent(command.twist)
            reader.watch.sent(now, command.wheel_speeds.tolist())
        wish = np.zeros(3)
        # As the node: before that it waits, and takes no pose yet.
        if now + period >= start - float(model.dead_times.max()) - period:
            state = tracker.step(now + period, reader.stamp, reader.pose)
            given_up = given_up or _reason_to_stop(now, reader, state, tracker_settings)
            if not given_up:
                wish = limit_speed(state.twist, commander.base, robot.base.limits)
            wishes.append(Wish(now, reader.stamp, wish, state))
        commander.offer("tracker", wish, now)
        advance(now + phase)
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
        complaints=reader.estimator.complaints(),
        given_up=given_up,
        arm=_arm_trace(arm_trace) if has_arm else None,
        refusals=tuple(refusals),
    )


def _reason_to_stop(now: float, reader: _WheelReader, state: TrackerState, settings: TrackerSettings) -> str:
    """Why a trajectory is given up, as by its node: a faulty wheel, odometry that fell silent, a base far off."""
    if reader.fault:
        return reader.fault
    if reader.jump:
        return f"odometry is {now - reader.stamp:.2f} s old: its stamps {reader.jump}"
    if now - reader.stamp > ODOM_TIMEOUT:
        return f"odometry is {now - reader.stamp:.2f} s old"
    if not settings.tolerates(state.error):
        return f"the base is {np.hypot(*state.error[:2]):.2f} m and {abs(state.error[2]):.2f} rad off"
    return ""


def reading_phase(seed: int, period: float = 0.02) -> float:
    """How long after our commands the driver's loop reads in a drive of this seed [s], within `period` [s]."""
    return period * float(np.random.default_rng([seed, 2]).random())


def _arm_trace(rows: Sequence[Sequence[Vector]]) -> ArmTrace:
    position, speed, torque, winding, housing = (np.array(column) for column in zip(*rows, strict=True))
    return ArmTrace(position, speed, torque, winding, housing)


class _WheelReader:
    """What our nodes make of the driver's messages: odometry, and the base controller's rollers to come."""

    def __init__(self, robot: Robot, estimator: BaseEstimator, period: float) -> None:
        self.states: list[OdometryState] = []
        self.pose, self.stamp, self.jump, self.fault = np.zeros(3), 0.0, "", ""
        self._stamps, self.watch = StampWatch(), WheelWatch(robot)
        self.estimator = estimator
        self._rollers = RollerPreview(robot.base.geometry.wheels(), robot.base.driven(), period)
        self._guard = PhaseGuard(robot)
        self._names = robot.driver.wheel_joints
        self._position_signs = np.array(robot.driver.position_sign)
        self._velocity_signs = np.array(robot.driver.velocity_sign)

    def take(self, message: Message) -> None:
        """Take a message; those of other channels, or without all wheels, change nothing."""
        report = message.report
        if message.channel != BASE or not isinstance(report, JointReport) or not set(self._names) <= set(report.names):
            return
        columns = [report.names.index(name) for name in self._names]
        position = self._position_signs * report.position[columns]
        self.fault = self.fault or self.watch.read(report.stamp, position.tolist())
        estimate = self.estimator.take_wheels(report.stamp, position, self._velocity_signs * report.velocity[columns])
        if not self._guard.update(report.stamp, position):
            self._rollers.observe(report.stamp, position)
        if estimate is not None:
            self.states.append(estimate)
            self.pose, self.stamp = estimate.pose, estimate.stamp
            self.jump = self.jump or self._stamps.take(message.received, estimate.stamp)

    def wheel_speeds(self, now: float, twist: Vector, mean: Vector, fastest: float) -> Vector:
        """Wheel speeds (4,) [rad/s] of a twist (3,): those of the rollers to come where their phases are known."""
        return mean if self._guard.lost else limit_wheels(self._rollers.wheel_speeds(now, twist), fastest)


_MODEL_FLOOR_FRICTION = 0.8  # chosen: config/mock.yaml
_MODEL_LAG = 0.005  # [s] share of the effective delay that is lag, the least the facts give


def identified_model(robot: Robot) -> BaseTruth:
    """What is known of a robot as a twin: geometry, inertia, delays, lag and the friction its loops feel; no noise."""
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
        wheel_coulomb=felt.wheel_coulomb if felt.known else 0.0,
        roller_coulomb=felt.roller_coulomb if felt.known else 0.0,
        viscous_x=felt.viscous_x if felt.known else 0.0,
        viscous_y=felt.viscous_y if felt.known else 0.0,
        wheel_radius_error=tuple(geometry.wheel_radius_errors.tolist()),
        speed_lag=0.0,
        effort_noise=0.0,
        rollers=0.0,
        roller_depth=0.0,
        roller_phase=(0.0, 0.0, 0.0, 0.0),
        wheel_torque_constant=(1.0, 1.0, 1.0, 1.0),
        floor_friction=_MODEL_FLOOR_FRICTION,
    )
