"""Signals that several stages read from a recording: base, arm, held commands, smoothed stamps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from youbot_dynamics.arrays import Indices, Vector, array, burst_length, usual_step
from youbot_dynamics.control.stamp_rhythm import in_rhythm
from youbot_dynamics.errors import IdentificationError, InputError, RecordingError, listed
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.identification.reading import (
    ROLES,
    efforts_of,
    excess_of_angles,
    find_arm_states,
    find_odometry,
    find_pose_topic,
    find_topic,
    find_wheel_states,
    is_to_driver,
    new_readings,
    on_one_clock,
    recorded_joints,
    times_of,
    wheel_commands,
)
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.kinematics.steering import joint_orders
from youbot_dynamics.recording.bag import POSE_TYPES, Recording
from youbot_dynamics.recording.message_types import ODOMETRY
from youbot_dynamics.recording.series import JointSeries, PoseSeries, TwistSeries
from youbot_dynamics.robot import Robot

UNLIKELY_GAIN = 4.0  # of motion over command, or its inverse, above which a unit is wrong
UNITS = "check the units of both (57.3: degrees, 1000: mm, 9.55: revolutions per minute)"
_AROUND = 12  # readings on either side over which stamps are smoothed
_GAP = 3.0  # multiple of the usual step between stamps above which readings are missing
TRAVEL = 0.03  # [rad] larger than the bristle deflection of a joint


def even_stamps(time: ArrayLike, position: ArrayLike) -> Vector:
    """Smooth the jitter out of times (s,) if the positions become smoother too; otherwise return them unchanged.

    If a driver reads in a regular loop but stamps late, its jitter looks like acceleration: at 50 Hz and 1 rad/s, 1 ms
    looks like 2.5 rad/s2. If the loop itself is irregular, the stamps are correct and must not be smoothed. The third
    differences of the positions decide. Stretches between gaps are smoothed separately. Readings that come in
    bursts, each stamped as it arrives, are spread evenly over the time between bursts.

    Args:
        time: (s,) stamps, increasing [s].
        position: (s, n) of the joints [rad].
    """
    stamps = array("time", time, (None,))
    table = array("position", position, (len(stamps), None))
    if len(stamps) < 2:
        return stamps
    steps, burst = np.diff(stamps), burst_length(stamps)
    longest = _GAP * usual_step(stamps[::burst])
    ends, around = np.concatenate([[0], np.flatnonzero(steps > longest) + 1, [len(stamps)]]), _AROUND * burst
    even = stamps.copy()
    for first, last in zip(ends[:-1], ends[1:], strict=True):
        if last - first > 2 * around + 1:
            since = _on_lines(stamps[first:last] - stamps[first], around)
            even[first:last] = stamps[first] + (since if burst == 1 else _on_lines(since, around))
    if np.any(np.diff(even) <= 0.0):
        return stamps
    return even if _roughness(even, table) < _roughness(stamps, table) else stamps


def _on_lines(values: Vector, around: int) -> Vector:
    """Values (s,) replaced by those of lines fitted to `around` on either side; the first and the last share a line.

    The line through a symmetric window has the mean in the middle. `scipy.signal` would take 0.9 s to import.
    """
    window = 2 * around + 1
    smooth, steps = np.convolve(values, np.full(window, 1.0 / window), "same"), np.arange(window) - around
    for end, kept in ((slice(0, window), slice(0, around)), (slice(-window, None), slice(-around, None))):
        line = np.mean(values[end]) + steps * (steps @ values[end] / (steps @ steps))
        smooth[kept] = line[kept]
    return smooth


def _roughness(time: Vector, position: Vector) -> float:
    """Sum of squared third divided differences of positions (s, n) over times (s,), each joint scaled by its spread."""
    table = position / np.maximum(np.ptp(position, axis=0), 1e-6)
    for order in range(1, 4):
        spans = np.maximum(time[order:] - time[:-order], 1e-9)
        table = np.diff(table, axis=0) / spans[:, None]
    return float(np.sum(table**2))


# Multiples of the usual period: nearly all intervals of a stream are shorter; messages are missing in a longer one.
_EVEN, _MISSING = 2.0, 10.0


def stream_gaps(sent: ArrayLike) -> NDArray[np.intp]:
    """Indices (k,) of messages, sent at increasing times (n,) [s], after which messages are missing.

    Empty if the messages are not a stream but are sent at changes: a long pause then means a held command.
    """
    periods = np.nan_to_num(np.diff(np.asarray(sent, dtype=float)), posinf=0.0, neginf=0.0)
    usual = float(np.median(periods)) if len(periods) else 0.0
    if not len(periods) or np.quantile(periods, 0.95) > _EVEN * usual:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(periods > _MISSING * usual)


class HeldCommand:
    """Zero-order hold of a sampled velocity command.

    Args:
        times: (n,) when each value was sent, increasing [s].
        values: (n,) commanded velocity [unit/s].
        half_window: 0 compares with positions; above 0, with velocities averaged over twice this time [s].
    """

    def __init__(self, times: ArrayLike, values: ArrayLike, half_window: float) -> None:
        self.times: Vector = np.asarray(times, dtype=float)
        self.values: Vector = np.asarray(values, dtype=float)
        self.half_window = half_window
        self._corners = np.concatenate([[0.0], np.cumsum(np.diff(self.times) * self.values[:-1])])

    @classmethod
    def beside(cls, times: Vector, values: Vector, stamps: Vector, measured_is: str) -> HeldCommand:
        """Command (n,) where it is known, beside a motion read at `stamps` (m,) [s]; a speed is a mean over a step."""
        known, step = np.isfinite(values), usual_step(stamps, 0.0) if measured_is == "velocity" else 0.0
        return cls(times[known], values[known], 0.5 * step)

    def place(self, query: ArrayLike) -> tuple[NDArray[np.intp], Vector]:
        """Sample (m,) held at each time of `query` (m,), and the time (m,) since it was sent [s].

        Before the first sample, the first one is used and the time is negative.
        """
        at = np.asarray(query, dtype=float)
        k = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, None)
        return k, at - self.times[k]

    def held(self, query: ArrayLike) -> Vector:
        """Value held at each time of `query` (m,)."""
        return self.values[self.place(query)[0]]

    def integral(self, query: ArrayLike) -> Vector:
        """Integral of the held command from its first sample to each time of `query` (m,)."""
        k, since = self.place(query)
        return self._corners[k] + self.values[k] * since

    def over_window(self, values_at: Callable[[Vector], Vector], query: ArrayLike) -> Vector:
        """Values (..., m) at times (m,); if there is a window, their mean rate over it."""
        at = np.asarray(query, dtype=float)
        if self.half_window == 0.0:
            return values_at(at)
        return (values_at(at + self.half_window) - values_at(at - self.half_window)) / (2.0 * self.half_window)

    def motion(self, query: ArrayLike) -> Vector:
        """Motion of an ideal robot at `query` (m,): the integral, or its mean slope over the window."""
        return self.over_window(self.integral, query)

    def rate(self, query: ArrayLike) -> Vector:
        """Time derivative of `motion` at `query` (m,)."""
        return self.over_window(self.held, query)


_AT_REST = 0.1  # [rad] largest turn of a wheel that counts as rest
_MOST_PROPOSED = 3  # topics of another name that are proposed
_SIGN_SPEED = 0.1  # width of the smoothed sign function of wheel friction [rad/s]


@dataclass(frozen=True, eq=False)
class MotionSignals:
    """Commands and motion for the delay fit."""

    channels: tuple[str, ...]  # names of the channels
    units: tuple[str, ...]  # unit of the position of each channel
    command_time: Vector  # (n,) [s]
    command: Vector  # (n, k) commanded velocity [unit/s]
    measured_time: Vector  # (m,) [s]
    measured: Vector  # (m, k) motion
    measured_is: str  # "position" or "velocity"
    friction: Vector | None  # (n, k) sign of the wheel friction that acts on each channel, None if unknown
    clock: str  # clock of the times, for the result
    source: str  # topics or columns that were read
    tracked: bool = False  # whether the motion is the path of a body with an unknown pose on the base


def base_signals(
    recording: Recording,
    robot: Robot,
    chosen: Mapping[str, str],
    of_joints: bool = False,
    sent_with: MecanumBase | None = None,
) -> MotionSignals:
    """Commanded twist and wheel motion of the axes x, y, yaw in a bag.

    The command is `wheel_commands`; if it is missing, `driver/cmd_vel` or `cmd_vel`, whose wheel speeds follow from the
    geometry of the driver or from ours: from `sent_with`, if the robot's was calibrated since. Commands then hold what
    unequal wheels make of the other axes, but no gain of their own axis. Times are those of `on_one_clock`. The motion
    is computed from the wheels with the calibrated kinematics, so that rotation does not mix the axes; their speeds are
    integrated where the driver reports no angles. Stamps are earlier by `robot.base.delay.stamps`; their jitter about
    the period of the driver is removed (`in_rhythm`). `chosen` is role -> topic, given by the user. Where `of_joints`
    is set, x and yaw of a steered wheel are the way of its rim [m] and its angle [rad], and their commands [m/s, rad].

    Raises:
        RecordingError: a required topic is missing.
    """
    base = robot.base.geometry.mecanum()
    joints = robot.driver.wheel_joints
    states = recording.joint_states(find_wheel_states(recording, joints, chosen), joints)
    angles = base.rolled(states.position[np.all(np.isfinite(states.position), axis=1)])
    at_rest = len(angles) > 0 and bool(np.all(np.ptp(angles, axis=0) < _AT_REST))
    roles = "wheel_commands", "driver_cmd_vel", "cmd_vel"
    role, topic = _topic_of(recording, roles, "command", chosen, at_rest, joints)
    command_times: tuple[Vector | None, Vector]
    if role == "wheel_commands":
        commands = wheel_commands(recording, topic, robot.driver)
        command_times = commands.stamp, commands.received
        wheel_speeds = base.rolling(commands.velocity, commands.position)
    else:
        twists = recording.twists(topic)
        command_times = twists.stamp, twists.received
        own = (sent_with or base) if role == "cmd_vel" else robot.driver.mecanum()  # the geometry behind the twist
        wheel_speeds = twists.twist @ own.inverse_matrix.T
    times = on_one_clock(command_times, (states.stamp, states.received), (topic, states.topic))
    motion_time = times.motion - (robot.base.delay.stamps if times.stamped else 0.0)
    command, driver = wheel_speeds @ base.forward_matrix.T, robot.driver
    if role == "cmd_vel" and sent_with is not None:
        gains = np.diag(base.forward_matrix @ sent_with.inverse_matrix)
        command = command / np.where(gains > 0.0, gains, 1.0)  # 0 of an axis that the base lacks
    signs = driver.position_sign, driver.velocity_sign
    angles, source = wheel_angles(recording, states, motion_time, signs, base.steered)
    if source == states.topic and times.stamped:
        even = in_rhythm if burst_length(motion_time) == 1 else even_stamps
        motion_time = even(motion_time, base.rolled(angles))
    measured = base.rolled(angles) @ base.forward_matrix.T
    if base.steered and of_joints:
        if role == "wheel_commands":
            orders = np.column_stack([commands.velocity[:, 0], commands.position[:, 1]])
        else:
            orders = joint_orders(wheel_speeds, robot.base.limits.steering)
        command, measured = base.of_joints(orders), base.of_joints(_unwrapped(angles))
    return MotionSignals(
        channels=("x", "y", "yaw"),
        units=("m", "m", "rad"),
        command_time=times.command,
        command=command,
        measured_time=motion_time,
        measured=measured,
        measured_is="position",
        friction=None if base.steered else np.tanh(wheel_speeds / _SIGN_SPEED) @ base.inverse_matrix,
        clock=times.words,
        source=f"{topic} to {source}",
    )


def _unwrapped(angles: Vector) -> Vector:
    """Readings (m, 2) [rad] of a steered wheel with a steering angle that goes on from within half a turn of 0."""
    out, sound = angles.copy(), np.isfinite(angles[:, 1])
    out[sound, 1] = np.unwrap(np.append(0.0, angles[sound, 1]))[1:]
    return out


def wheel_angles(
    bag: Recording, states: JointSeries, time: Vector, signs: Sequence[ArrayLike], steered: bool = False
) -> tuple[Vector, str]:
    """Angles (m, n) of wheels [rad] by positions, else by speeds, with `signs` (n,) of both, and where they are from.

    Raises:
        RecordingError: neither angles nor speeds, or no angles of a steered wheel.
    """
    angles: Vector = states.position * np.array(signs[0])
    speeds = states.velocity * np.array(signs[1])
    sound = np.all(np.isfinite(speeds), axis=1)
    known = np.isfinite(angles)  # some drivers fill angles that they do not measure with zeros
    if np.any(angles[known]) or (np.any(known) and not np.any(speeds[sound])):
        return angles, states.topic
    if steered or not np.any(sound):
        got = "no positions" if steered else "neither positions nor velocities"
        raise RecordingError(f"topic {states.topic} in {bag.path}", got=got, expected="wheel angles [rad]")
    means = 0.5 * (speeds[sound][1:] + speeds[sound][:-1])
    angles[sound] = np.cumsum(np.vstack([np.zeros(speeds.shape[1]), means * np.diff(time[sound])[:, None]]), axis=0)
    return angles, f"the integrated speeds of {states.topic}, which has no angles"


def body_signals(recording: Recording, chosen: Mapping[str, str], pose_topic: str = "") -> MotionSignals:
    """Commanded twist and measured motion of the body on the axes x, y, yaw, in a bag.

    The command is a Twist or TwistStamped. The motion is the speed of odometry, its path if its speeds are all zero;
    the path of any other pose topic; else the only topic of odometry that has another name; or the yaw rate of a gyro,
    with NaN for x and y. A path is that of the tracked frame along its own axes. `chosen` is role -> topic, given by
    the user; a topic of the poses takes precedence, "" is to look for a motion.

    Raises:
        RecordingError: a required topic is missing.
    """
    commands = recording.twists(_topic_of(recording, ("cmd_vel", "driver_cmd_vel"), "command", chosen)[1])
    states, measured, tracked = _body_motion(recording, chosen, pose_topic)
    topics = commands.topic, states.topic
    times = on_one_clock((commands.stamp, commands.received), (states.stamp, states.received), topics)
    return MotionSignals(
        channels=("x", "y", "yaw"),
        units=("m", "m", "rad"),
        command_time=times.command,
        command=commands.twist,
        measured_time=times.motion,
        measured=measured,
        measured_is="position" if isinstance(states, PoseSeries) else "velocity",
        friction=None,
        clock=times.words,
        source=f"{commands.topic} to {states.topic}",
        tracked=tracked,
    )


def _body_motion(
    recording: Recording, chosen: Mapping[str, str], pose_topic: str
) -> tuple[TwistSeries | PoseSeries, Vector, bool]:
    """Where the motion of a body is read: speeds (m, 3), or for poses the path (m, 3) along the axes of the body.

    Also whether the body may have any pose on the base: that of `odom` is the base itself.
    """
    others = any(one.type in POSE_TYPES and one.type != ODOMETRY and one.count for one in recording.topics.values())
    others = bool(others or pose_topic or "ground_truth" in chosen)
    odometry = None if pose_topic else find_topic(recording, "odom", chosen)
    if odometry is None and not others:
        odometry = find_odometry(recording, chosen)
    if odometry:
        states = recording.twists(odometry)
        # Some drivers leave the twist of their odometry empty.
        poses = None if np.any(states.twist) else recording.poses(odometry)
        if poses is None or not np.any(poses.pose != poses.pose[:1]):
            return states, states.twist, False
    else:
        if not others:
            states = recording.twists(_topic_of(recording, ("odom", "imu"), "odometry, pose or gyro", chosen)[1])
            return states, states.twist, False
        poses = recording.poses(find_pose_topic(recording, chosen, pose_topic))
    path = np.vstack([np.zeros(3), np.cumsum(planar.steps_of_path(poses.pose), axis=0)])
    return poses, path, not odometry


def _topic_of(
    recording: Recording,
    roles: Sequence[str],
    what: str,
    chosen: Mapping[str, str],
    at_rest: bool = False,
    joints: tuple[str, ...] = (),
) -> tuple[str, str]:
    """First of some roles that the recording has, and its topic; `at_rest` says that the wheels did not turn.

    Commands of another name are found if they are the only twists whose name calls them commands, such as
    /mobile_base/commands/velocity: other twists may be measured.

    Raises:
        RecordingError: it has none of them; for commands perhaps because nothing was driven.
    """
    for role in roles:
        topic = find_topic(recording, role, chosen)
        if topic is not None:
            return role, topic
    names = [ROLES[role][0][0] for role in roles]
    role = "cmd_vel" if "cmd_vel" in roles else roles[0]
    infos = recording.topics.values()
    alike = [info.name for info in infos if info.type in ROLES[role][1] and info.count]
    commands = [name for name in alike if role == "cmd_vel" and ("cmd" in name.lower() or "command" in name.lower())]
    if len(commands) == 1:
        return role, commands[0]
    silent = not alike and any(info.name.endswith(tuple(f"/{name}" for name in names)) for info in infos)
    if role == "cmd_vel" and (at_rest or silent):
        got, remedy = (
            f"no message on {', '.join(names[:-1])} or {names[-1]}",
            "record while `youbot play excitation` runs",
        )
        raise RecordingError(f"nothing was driven in {recording.path}", got=got, remedy=remedy)
    if not alike and "wheel_commands" in roles:
        orders = [one.name for one in infos if one.type in ROLES["wheel_commands"][1] and is_to_driver(one.name)]
        alike = [name for name in orders if recorded_joints(recording, name, joints) == joints]
        role = "wheel_commands" if alike else role
    got = f"no {what} (topics: {listed(list(recording.topics)) or 'none'})"
    remedy = f"record it; youbot identify takes --topic {role}={' or '.join(alike[:_MOST_PROPOSED]) or 'NAME'}"
    raise RecordingError(f"{recording.path}", got=got, expected=" or ".join(names), remedy=remedy)


NO_EFFORT = Reason(Kind.NOT_MEASURED, "the states of the arm have no efforts: use a driver that reports them")
_ZERO_EFFORT = Reason(
    Kind.NOT_MEASURED,
    "every effort of the arm is exactly 0: its motors were off, or its driver does not measure efforts",
)
_NOT_MOVED = Reason(Kind.NOT_EXCITED, "the arm never moved")


@dataclass(frozen=True, eq=False)
class RecordedArm:
    """Signals of an arm of n joints in a bag; columns are joints, with the signs of the driver."""

    topic: str  # of its states
    signals: ArmSignals  # positions [rad] and efforts [N m] at the stamps [s]
    speed: Vector  # (s, n) as reported by the driver, at the times of `signals` [rad/s]
    # Times (c,) [s] and commanded torques (c, n) [N m]; None without torque commands
    torque_commands: tuple[Vector, Vector] | None
    left_out: int  # readings with a missing number in one of their fields
    beyond: float = 0.0  # largest excess of angles over the limits of their joints [rad]
    missing: tuple[int, ...] = ()  # numbers of joints that were not recorded: they stand still, without efforts
    repeats: int = 1  # how many times the driver gives each reading, of which `signals` have the first

    def refusal(self) -> Reason | None:
        """Why nothing about the arm can be identified, None if something can."""
        if not len(self.signals.time):
            return NO_EFFORT
        if not np.any(self.signals.torque):
            return _ZERO_EFFORT
        return None if np.any(np.ptp(self.signals.position, axis=0) > TRAVEL) else _NOT_MOVED


def recorded_arm(recording: Recording, robot: Robot, chosen: Mapping[str, str], number: int = 0) -> RecordedArm:
    """Readings of the arm in a bag; each recording has its own `number`; `chosen` is role -> topic, given by the user.

    Raises:
        RecordingError: no states of any of these joints, or angles that cannot be radians.
    """
    joints = robot.driver.arm_joints
    named = recorded_joints(recording, topic := find_arm_states(recording, joints, chosen), joints) or joints
    states, there = recording.joint_states(topic, named), [joints.index(name) for name in named]
    time, resting = times_of(states), np.tile(robot.arm.rest_position, (len(states.position), 1))
    position, effort, velocity = resting.copy(), np.zeros_like(resting), np.full_like(resting, np.nan)
    efforts = efforts_of(states, recording.path, robot)
    without = ~np.any(np.isfinite(efforts), axis=0)
    efforts = np.where(without & ~np.all(without), 0.0, efforts)  # nothing is found of these joints alone
    position[:, there], effort[:, there], velocity[:, there] = states.position, efforts, states.velocity
    beyond = excess_of_angles(f"topic {states.topic} in {recording.path}", position, robot)
    sound = np.isfinite(time) & np.all(np.isfinite(position) & np.isfinite(effort), axis=1)
    left_out = int(np.count_nonzero(~sound))
    sound[sound] = _first_of_each(time[sound])  # as `ArmSignals` does, so that the speeds stay beside them
    sound[sound], repeats = new_readings(np.hstack([position[sound], effort[sound]]))
    signals = ArmSignals(time[sound], position[sound], effort[sound], number)
    torque_commands = None
    commanded = find_topic(recording, "arm_torque_commands", chosen)
    missing = tuple(k for k in range(len(joints)) if k not in there)
    if commanded is not None and not missing:
        commands = recording.joint_states(commanded, joints)
        torque_commands = times_of(commands) if time is states.stamp else commands.received, commands.effort
    return RecordedArm(states.topic, signals, velocity[sound], torque_commands, left_out, beyond, missing, repeats)


def advancing(time: Vector, table: Vector) -> Indices:
    """Rows of a table (n, k) that are finite and whose times (n,) exceed all times before."""
    rows = np.flatnonzero(np.isfinite(time) & np.isfinite(table).all(axis=1))
    latest = np.maximum.accumulate(time[rows])
    return rows[np.diff(latest, prepend=-np.inf) > 0.0]


def _first_of_each(time: Vector) -> NDArray[np.bool_]:
    """Whether each of some times (s,) differs from the one before: two publishers may send every reading twice."""
    return np.asarray(np.diff(time, prepend=-np.inf) != 0.0)


@dataclass(frozen=True, eq=False)
class ArmSignals:
    """Readings of n joints; rows with a number that is not finite are left out, and those that repeat a stamp.

    Raises:
        InputError: shapes that do not fit.
        IdentificationError: stamps that decrease.
    """

    time: Vector  # (s,) stamps [s], increasing
    position: Vector  # (s, n) [rad]
    torque: Vector  # (s, n) motor torques at the joints, after the gear [N m]
    recording: int = 0  # number of the recording, distinct for each
    delay: float = 0.0  # by which torques are later than positions [s]; found with the friction of an arm

    def __post_init__(self) -> None:
        """Check the shapes and leave out what is not finite, and repetitions."""
        time = np.asarray(self.time, dtype=float)
        table = [np.asarray(value, dtype=float) for value in (self.position, self.torque)]
        if time.ndim != 1 or any(value.ndim != 2 or value.shape != (len(time), table[0].shape[1]) for value in table):
            shapes = ", ".join(str(value.shape) for value in (time, *table))
            raise InputError("time, position, torque", got=shapes, expected="(s,), (s, n), (s, n)")
        sound = np.isfinite(time) & np.all([np.all(np.isfinite(value), axis=1) for value in table], axis=0)
        if np.any(np.diff(time[sound]) < 0.0):
            back = int(np.argmax(np.diff(time[sound]) < 0.0))
            raise IdentificationError(
                "stamps of the joints",
                got=f"a decrease by {-np.diff(time[sound])[back]:.3g} s at sample {back}",
                expected="increasing times",
                remedy="cut the recording where its clock jumps",
            )
        sound[sound] = _first_of_each(time[sound])
        for name, value in (("time", time), ("position", table[0]), ("torque", table[1])):
            object.__setattr__(self, name, np.ascontiguousarray(value[sound]))
