"""Lock-step drives: a plant behind its driver with our own controllers in simulated time, repeatable to the bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np

from youbot_dynamics.arrays import Vector, made_of
from youbot_dynamics.control.tracker import TrackerSettings, TrackerState
from youbot_dynamics.control.tracking_run import RunSettings, TrackingRun
from youbot_dynamics.control.trajectory import Trajectory
from youbot_dynamics.control.wheel_commands import BaseDriver, CommanderSettings
from youbot_dynamics.errors import InputError, ParameterError
from youbot_dynamics.estimation.odometry import (
    BaseEstimator,
    GyroSettings,
    OdometryState,
    SlipSettings,
)
from youbot_dynamics.kinematics.steering import RolledAngles
from youbot_dynamics.robot import Robot
from youbot_dynamics.simulation.arm import ArmDriver
from youbot_dynamics.simulation.driver_reports import JointReport
from youbot_dynamics.simulation.faults import BASE, Fault
from youbot_dynamics.simulation.mujoco_youbot import contact_model
from youbot_dynamics.simulation.robot_driver import Report, RobotDriver
from youbot_dynamics.simulation.truth import BaseTruth, generator
from youbot_dynamics.simulation.youbot import BaseOnly, Plant

_GYRO_PERIOD = 0.005  # [s] between readings
_GYRO_NOISE = 1e-4  # density [rad/s/sqrt(Hz)], 0.006 deg/s/sqrt(Hz), as small MEMS gyros have
_GYRO_BIAS = 0.02  # standard deviation of the constant bias that is drawn [rad/s]


class Gyro:
    """A gyro on a simulated robot: yaw rates at a fixed rate with noise and a bias, on a clock of its own.

    Args:
        seed: of the noise and the bias; equal seeds give equal bits.
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng([seed, 11])
        self._noise = _GYRO_NOISE / sqrt(_GYRO_PERIOD)
        self._bias = _GYRO_BIAS * float(self._random.standard_normal())
        self._count = 0

    @property
    def next_time(self) -> float:
        """When the next reading is due [s]."""
        return self._count * _GYRO_PERIOD

    def read(self, time: float, yaw_rate: float) -> tuple[float, float]:
        """Stamp [s] and what it reads of a true yaw rate [rad/s]; the next reading is due a period later."""
        self._count += 1
        return time, yaw_rate + self._bias + self._noise * float(self._random.standard_normal())


INTERFACES = ("twist", "wheels")
_ROUNDING = 1e-9  # [s] of times that are multiples of two periods
_REST = 0.5  # [s] of standstill after the end


@dataclass(frozen=True)
class ArmOrder:
    """A command to the arm during a drive."""

    time: float  # when it is sent [s]
    # Takes the arm and the time of the command, and calls a method of the arm.
    command: Callable[[ArmDriver, float], None]


@dataclass(frozen=True)
class Message:
    """A message of the driver."""

    received: float  # [s] when it came
    channel: str  # "odom", "base" or "arm"
    report: Report  # its fields


@dataclass(frozen=True, eq=False)
class Sent:
    """What the base controller sent."""

    stamp: float  # [s]
    wheel_speeds: Vector  # (4,) [rad/s], positive forward, of the mean rows
    rolling_speeds: Vector  # (4,) the same for the rollers to come, where these are known: what the driver should do
    driver_twist: Vector  # (3,) what of them a driver is sent that takes a twist [m/s, m/s, rad/s]
    steering: float | None = None  # angle of the joint that steers [rad], None without one


@dataclass(frozen=True, eq=False)
class TrackerRequest:
    """What the tracker sent to the base controller, from the trajectory's first command to its end."""

    stamp: float  # [s]
    pose_stamp: float  # of the pose it corrects [s]
    twist: Vector  # (3,) within the limits [m/s, m/s, rad/s]
    state: TrackerState  # of the tracker


@dataclass(frozen=True, eq=False)
class ArmTrace:
    """What the arm really did, a row for each pass of the driver's loop."""

    position: Vector  # (m, n) [rad]
    speed: Vector  # (m, n) [rad/s]
    torque: Vector  # (m, n) of the motors at the joints [N m]
    winding: Vector  # (m, n) [degC]
    housing: Vector  # (m, n) [degC]


@dataclass(frozen=True, eq=False)
class Drive:
    """What happened, on the clock of the simulation."""

    start: float  # time at which the trajectory began [s]
    desired: Trajectory  # the trajectory, in the world frame
    sent: tuple[Sent, ...]  # wheel commands
    tracker_requests: tuple[TrackerRequest, ...]
    messages: tuple[Message, ...]  # of the driver
    odometry: tuple[OdometryState, ...]  # what odometry made of them
    odometry_time: Vector  # (k,) when it did so [s]; their stamps are those of the readings, in the driver's rhythm
    reading_time: Vector  # (m,) when each pass of the driver's loop really took place [s]
    wheel_angle: Vector  # (m, 4) what the wheels then really did [rad], without noise or quantum
    true_pose: Vector  # (m, 3) in the world [m, m, rad]
    true_twist: Vector  # (m, 3) in the body frame [m/s, m/s, rad/s]
    odometry_pose: Vector  # (m, 3) as estimated then; the first row is the origin
    complaints: tuple[str, ...]  # of odometry at the end, one text each
    given_up: str  # why the trajectory was given up and the base stopped; "" where it was followed to its end
    arm: ArmTrace | None  # what the arm did; None on a robot without one
    refusals: tuple[str, ...]  # why the plant refused a command, one text a refusal


@dataclass(frozen=True)
class DriveSetup:
    """What else is chosen of a drive.

    Raises:
        InputError: another interface.
    """

    tracker_settings: TrackerSettings = field(default_factory=TrackerSettings)  # feedback and its gains
    commander_settings: CommanderSettings = field(default_factory=CommanderSettings)  # rate and timeout
    slip_settings: SlipSettings | None = None  # of odometry, defaults if not given
    gyro_settings: GyroSettings | None = None  # what odometry expects of a gyro, defaults if not given
    gyro: Gyro | None = None  # on the robot, if it has one
    find_phases: bool = False  # whether the gyro is to find the roller phases, for odometry and preview
    interface: str = "twist"  # what the driver takes: "twist", or "wheels" for their speeds
    rest: float = 0.0  # how much later the trajectory begins [s]: time in which a gyro's bias is seen
    arm_orders: Sequence[ArmOrder] = ()  # commands to the arm, in the order of time
    faults: tuple[Fault, ...] = ()  # of the driver and the base
    # Called with each message of the driver, in the order of reception; such as an estimator.
    listeners: Sequence[Callable[[Message], None]] = ()

    def __post_init__(self) -> None:
        if self.interface not in INTERFACES:
            raise InputError("interface", got=self.interface, expected=" or ".join(INTERFACES))


def drive(
    trajectory: Trajectory,
    robot: Robot,
    plant: Plant,
    seed: int,
    tracker_settings: TrackerSettings | None = None,
    commander_settings: CommanderSettings | None = None,
    **setup: Any,
) -> Drive:
    """Drive one trajectory from rest at the origin.

    Each period: the base controller sends its command; the tracker, woken by it, prepares the next one; the driver's
    loop reads the robot, and odometry takes the reading. That is the order of the live nodes, and `TrackingRun` and
    `BaseDriver` are what they run.

    Args:
        trajectory: poses relative to the start.
        robot: what the controllers believe.
        plant: the simulated robot, not driven before; `BaseOnly` for one without an arm.
        seed: of the phase between the driver's loop and ours, in which it reads, and of the faults. Commands to the arm
            wait for the arm truth's `loop_phase`, so that a base drives alike with and without an arm. The real
            driver has one loop for both: who needs that gives the truth the phase of `reading_phase`.
        tracker_settings: feedback and its gains, defaults if not given.
        commander_settings: rate and timeout, defaults if not given.
        setup: other fields of `DriveSetup` by their names.

    Returns:
        Commands, messages, estimates and true poses, on the clock of the simulation.

    Raises:
        InputError: a plant that has been used before, or another interface.

    Example:
        >>> t = np.linspace(0.0, 20.0, 401)
        >>> path = yd.Trajectory(t, 0.3 * (1.0 - np.cos(t[:, None] * [1.0, 0.7, 1.3])))
        >>> robot = yd.load_robot()
        >>> run = yd.drive(path, robot, yd.BaseOnly(yd.load_truth(0), robot.driver, seed=1), seed=1)
        >>> bool(np.linalg.norm(run.true_pose[-1] - path.poses[-1]) < 0.1)
        True
    """
    made_of("trajectory", trajectory, Trajectory)
    made_of("robot", robot, Robot)
    if plant.time != 0.0:
        raise InputError("time of the plant", got=f"{plant.time:g} s", expected="0: a new one for each drive")
    chosen = DriveSetup(tracker_settings or TrackerSettings(), commander_settings or CommanderSettings(), **setup)
    return _LockStep(trajectory, robot, plant, seed, chosen).drive()


class _LockStep:
    """A drive on its way: translates between the driver and the objects that the nodes run."""

    def __init__(self, trajectory: Trajectory, robot: Robot, plant: Plant, seed: int, setup: DriveSetup) -> None:
        self._trajectory, self._robot, self._plant, self._setup = trajectory, robot, plant, setup
        rate = setup.commander_settings.rate
        self._period = 1.0 / rate
        self._phase = reading_phase(seed, self._period)
        self._reads = 0  # of the driver's loop so far
        self._has_arm = not isinstance(plant, BaseOnly)
        self._driver = RobotDriver(plant, robot.driver, seed, arm=self._has_arm)
        self._driver.set_faults(setup.faults)
        self._driver_base = robot.driver.mecanum()
        self._rolled = RolledAngles(self._driver_base.steered)
        self._estimator = BaseEstimator(robot, setup.slip_settings, setup.gyro_settings, setup.find_phases)
        self._base = BaseDriver(robot, setup.commander_settings, setup.find_phases)
        self._base.commander.offer("tracker", np.zeros(3), 0.0)
        self._run = TrackingRun(robot, setup.tracker_settings, RunSettings(rate=rate))
        self._run.take_odometry(0.0, 0.0, np.zeros(3))
        self._start = self._run.earliest_start(setup.rest)
        self._run.accept(trajectory, self._start, 0.0, relative=False)
        self._orders = list(setup.arm_orders)
        self._sent: list[Sent] = []
        self._requests: list[TrackerRequest] = []
        self._messages: list[Message] = []
        self._odometry: list[tuple[float, OdometryState]] = []
        self._trace: list[tuple[float | Vector, ...]] = []
        self._arm_trace: list[tuple[Vector, ...]] = []
        self._refusals: list[str] = []
        self._given_up = ""
        self._phases: Vector | None = None  # roller phases that odometry has estimated

    def drive(self) -> Drive:
        """Drive to the end of the trajectory and a moment of rest."""
        duration = self._start + self._trajectory.duration + self._setup.tracker_settings.settle + _REST
        driver_period = 1.0 / self._robot.driver.rate
        for tick in range(int(np.ceil(duration / self._period))):
            now = tick * self._period
            self._advance(now)
            self._command_arm(now)
            self._send(now)
            self._track(now)
            # The driver's loop has a rate of its own: none, one or several readings in a period of ours.
            while (due := self._reads * driver_period + self._phase) <= now + self._phase + _ROUNDING:
                self._advance(due)
                self._read()
                self._reads += 1
        times, angles, poses, twists, estimates = map(np.array, zip(*self._trace, strict=True))
        return Drive(
            start=self._start,
            desired=self._trajectory,
            sent=tuple(self._sent),
            tracker_requests=tuple(self._requests),
            messages=tuple(self._messages),
            odometry=tuple(state for _, state in self._odometry),
            odometry_time=np.array([time for time, _ in self._odometry]),
            reading_time=times,
            wheel_angle=angles,
            true_pose=poses,
            true_twist=twists,
            odometry_pose=estimates,
            complaints=self._estimator.complaints(),
            given_up=self._given_up,
            arm=ArmTrace(*(np.array(column) for column in zip(*self._arm_trace, strict=True)))
            if self._has_arm
            else None,
            refusals=tuple(self._refusals),
        )

    def _advance(self, until: float) -> None:
        """Let the robot move, and its gyro speak, until a time [s]."""
        gyro = self._setup.gyro
        while gyro is not None and gyro.next_time <= until:
            self._driver.advance(gyro.next_time)
            self._estimator.take_rate(*gyro.read(self._plant.time, float(self._plant.base.twist[2])))
        self._driver.advance(until)

    def _command_arm(self, now: float) -> None:
        while self._orders and self._orders[0].time <= now:
            self._driver.command_arm(self._orders.pop(0).command, now)
        self._refusals += [self._driver.last_refusal] * (self._driver.refused - len(self._refusals))

    def _send(self, now: float) -> None:
        """The base controller's command, to the driver and to the tracker."""
        command = self._base.step(now, now)
        if command is None:
            return
        twist = self._driver_base.twist(command.rolling_speeds)
        self._sent.append(Sent(now, command.wheel_speeds, command.rolling_speeds, twist, command.steering))
        if self._setup.interface == "twist":
            self._driver.command_twist(twist, now)
        else:
            self._driver.command_wheels(command.rolling_speeds * np.array(self._robot.driver.command_sign), now)
        self._ended(self._run.take_sent(now, now, command.twist, command.wheel_speeds), now)

    def _track(self, now: float) -> None:
        """The tracker's next command, to the base controller."""
        command = self._run.step(now + self._period)
        if command is None:
            return
        self._ended(command.given_up, now)
        self._base.commander.offer("tracker", command.twist, now)
        if command.state is not None:
            self._requests.append(TrackerRequest(now, command.pose_stamp, command.twist, command.state))

    def _read(self) -> None:
        """What the driver reads, to all that listen; and what is true then."""
        plant = self._plant
        for channel, report in self._driver.read():
            message = Message(plant.time, channel, report)
            self._messages.append(message)
            if channel == BASE and isinstance(report, JointReport):
                self._take_wheels(plant.time, report)
            for listener in self._setup.listeners:
                listener(message)
        base = plant.base
        self._trace.append((plant.time, base.wheel_angles, base.pose, base.twist, self._run.pose.copy()))
        if self._has_arm:
            arm = plant.arm
            self._arm_trace.append((arm.position, arm.speed, arm.torque, arm.winding, arm.housing))

    def _take_wheels(self, now: float, report: JointReport) -> None:
        """Wheels to base controller, odometry and tracker; a report without all of them changes nothing."""
        driver = self._robot.driver
        if not set(driver.wheel_joints) <= set(report.names):
            return
        columns = [report.names.index(name) for name in driver.wheel_joints]
        position = np.array(driver.position_sign) * report.position[columns]
        velocity = self._driver_base.rolling(np.array(driver.velocity_sign) * report.velocity[columns], position)
        position = self._rolled.take(position)
        self._base.take_wheels(report.stamp, position)
        self._ended(self._run.take_wheels(report.stamp, position.tolist()), now)
        estimate = self._estimator.take_wheels(report.stamp, position, velocity)
        phases = self._estimator.found_phases
        if phases is not None and phases is not self._phases:
            self._base.take_phases(phases)
        self._phases = phases
        if estimate is not None:
            self._odometry.append((now, estimate))
            self._ended(self._run.take_odometry(now, estimate.stamp, estimate.pose), now)

    def _ended(self, reason: str, now: float) -> None:
        """Ask for rest where a trajectory was given up, as the node does at once."""
        if reason:
            self._given_up = reason
            self._base.commander.offer("tracker", np.zeros(3), now)


def reading_phase(seed: int, period: float = 0.02) -> float:
    """How long after our commands the driver's loop reads in a drive of this seed [s], within `period` [s]."""
    return period * float(generator(seed, 2).random())


_URDF = "youbot.urdf"
_MODEL_FLOOR_FRICTION = 0.8  # chosen: config/mock.yaml
_FRICTION = ("wheel_coulomb", "roller_coulomb", "viscous_x", "viscous_y")
_MODEL_LAG = 0.005  # [s] share of the effective delay that is lag, the least the facts give


def identified_twin(robot: Robot, noisy: BaseTruth) -> BaseTruth:
    """The identified robot as a twin whose stamps and readings are as noisy as those of another.

    Raises:
        ParameterError: no delay of it is known.
    """
    if not (robot.base.response.known or np.any(robot.base.delay.effective() > 0.0)):
        remedy = "give the robot.yaml or result.yaml of an identification"
        raise ParameterError(f"robot '{robot.robot_id}'", got="no identified delay", remedy=remedy)
    noise = {name: getattr(noisy, name) for name in ("stamp_jitter", "speed_lag", "effort_noise")}
    return replace(identified_model(robot), **noise)


def identified_model(robot: Robot) -> BaseTruth:
    """What is known of a robot as a twin: geometry, inertia, delays, lag and the friction its loops feel; no noise."""
    geometry, felt = robot.base.geometry, robot.base.response
    lag = max(felt.lag, _MODEL_LAG)
    dead = felt.dead_times() if felt.known else np.maximum(0.0, robot.base.delay.effective() - lag)
    gain = reset = 0.0
    if felt.known and felt.feed == 0.0 and felt.rate > 0.0:
        # Servos move an axis against its inertia in units of the wheel, forward m R^2 / 4 of four mecanum wheels.
        wheels = float(np.sum(geometry.mecanum().along ** 2))
        inertia = robot.base.dynamics().effective_inertia[0, 0] * geometry.wheel_radius**2 / wheels
        gain = 2.0 * felt.rate * inertia
        reset = 2.0 / (felt.rate * felt.integral) if felt.integral > 0.0 else 0.0
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
        **{name: getattr(felt, name) if felt.known else 0.0 for name in _FRICTION},
        wheel_radius_error=tuple(geometry.wheel_radius_errors.tolist()),
        speed_lag=0.0,
        effort_noise=0.0,
        rollers=0.0,
        roller_depth=0.0,
        roller_phase=(0.0, 0.0, 0.0, 0.0),
        wheel_torque_constant=(1.0, 1.0, 1.0, 1.0),
        floor_friction=_MODEL_FLOOR_FRICTION,
        servo_gain=gain,
        servo_reset=reset,
        wheel_distance=geometry.wheel_distance,
        track=geometry.track,
        wheelbase=geometry.wheelbase,
        steering_offset=geometry.steering_offset,
        steering_lag=lag,
        drive_angles=geometry.drive_angles,
    )


def identified_mjcf(robot: Robot) -> str:
    """MJCF text of the whole robot with its values, on a floor; "" for a robot that is not that of urdf/youbot.urdf.

    Masses, geometry and friction are those of `robot`; its wheels are of free rollers, from which the lateral factor
    comes (`mujoco_youbot.contact_model`). It has no delays and no speed loops.

    Raises:
        ModelError: a mass that leaves nothing for the body of the base.
    """
    if not robot.has_arm or robot.arm.urdf_file().name != _URDF or not robot.base.geometry.mecanum().all_forward:
        return ""
    friction = {name: getattr(robot.base.friction, name) for name in _FRICTION}
    return contact_model(replace(identified_model(robot), **friction), robot.arm.model())
