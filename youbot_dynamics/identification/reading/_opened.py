"""Open and number a recording, find its topics, check its units."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, burst_length
from youbot_dynamics.errors import ParameterError, RecordingError, did_you_mean, listed
from youbot_dynamics.identification.reading._logs import columns_of, read_log
from youbot_dynamics.identification.reading._whose import unnamed
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.recording.bag import POSE_TYPES, LogRecording, Recording
from youbot_dynamics.recording.message_types import (
    DYNAMIC_JOINT_STATE,
    IMU,
    JOINT_STATE,
    JOINT_TYPES,
    MULTI_DOF_TRAJECTORY,
    ODOMETRY,
    TRANSFORMS,
    TWIST,
    TWIST_STAMPED,
)
from youbot_dynamics.recording.series import JointSeries, PoseSeries, TwistSeries
from youbot_dynamics.recording.text_log import TextLog
from youbot_dynamics.robot import Robot

_TOLERANCE = 0.15  # relative tolerance of the ratio of a unit
_SLACK = 0.2  # [rad] tolerance beyond joint limits, since the zero is set by hand
_MOVING = 0.05  # [rad/s]
_FEWEST = 20  # readings in motion
_DEGREES = 180.0 / math.pi
_RPM = 60.0 / (2.0 * math.pi)
# d(position)/dt over velocity, and its meaning.
_RATIOS = (
    (_DEGREES, "the positions look like degrees"),
    (1.0 / _DEGREES, "the velocities look like degrees per second"),
    (1.0 / _RPM, "the velocities look like revolutions per minute"),
    (_DEGREES / _RPM, "the positions look like degrees, the velocities like revolutions per minute"),
)


def angles_beyond(position: ArrayLike, lower: Sequence[float], upper: Sequence[float]) -> float:
    """Largest excess of finite angles (s, n) [rad] over the limits [n] of their joints; 0 within `_SLACK` of them."""
    angles = np.asarray(position, dtype=float)
    beyond = np.maximum(np.asarray(lower) - angles, angles - np.asarray(upper))
    farthest = float(np.max(beyond[np.isfinite(beyond)], initial=0.0))
    return farthest if farthest > _SLACK else 0.0


def speed_ratio(time: Vector, position: Vector, velocity: Vector) -> float:
    """d(position)/dt over velocity by least squares; NaN if the joint hardly moved or one of the two is missing.

    Times (s,) [s] increase; positions (s,) [rad] and velocities (s,) [rad/s] are as reported. Of a burst, one counts.
    """
    time, position, velocity = (values[:: burst_length(time)] for values in (time, position, velocity))
    steps = np.diff(time)
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.diff(position) / steps
    mean = 0.5 * (velocity[1:] + velocity[:-1])
    usual = float(np.median(steps)) if len(steps) else 0.0
    # Near a gap the two do not refer to the same time.
    use = np.isfinite(speed) & np.isfinite(mean) & (steps > 0.5 * usual) & (steps < 1.5 * usual)
    use &= (np.abs(speed) > _MOVING) | (np.abs(mean) > _MOVING)
    power = float(mean[use] @ mean[use])
    if np.count_nonzero(use) < _FEWEST or power == 0.0:
        return math.nan
    return float(speed[use] @ mean[use]) / power


def ratio_tells(ratio: float) -> str:
    """Problem indicated by a ratio of `speed_ratio`, "" if there is none or the ratio is unknown."""
    if not math.isfinite(ratio) or abs(ratio - 1.0) < _TOLERANCE:
        return ""
    for wrong, words in _RATIOS:
        if abs(abs(ratio) / wrong - 1.0) < _TOLERANCE:
            return words
    if abs(ratio + 1.0) < _TOLERANCE:
        return "velocities and positions have opposite signs: see robot.driver.position_sign and velocity_sign"
    return "positions and velocities do not match: one of them has another unit, or lags far behind"


def positions_in_degrees(ratio: float) -> bool:
    """Whether a ratio of `speed_ratio` shows that the positions are in degrees."""
    return any(abs(abs(ratio) / wrong - 1.0) < _TOLERANCE for wrong in (_DEGREES, _DEGREES / _RPM))


# Role -> standard names, best first, and accepted types.
ROLES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "wheel_commands": (("wheel_commands",), (JOINT_STATE,)),
    "driver_cmd_vel": (("driver/cmd_vel",), (TWIST, TWIST_STAMPED)),
    "cmd_vel": (("cmd_vel",), (TWIST, TWIST_STAMPED)),
    "wheel_states": (("driver/joint_states", "joint_states", "dynamic_joint_states"), JOINT_TYPES),
    "odom": (("odom",), (ODOMETRY,)),
    "imu": (("imu/data", "imu"), (IMU,)),
    "ground_truth": (("ground_truth",), (ODOMETRY,)),
    "trajectory": (("trajectory",), (MULTI_DOF_TRAJECTORY,)),
    "arm_states": (("driver/joint_states", "joint_states", "dynamic_joint_states"), JOINT_TYPES),
    "arm_torque_commands": (("arm_1/joint_torque_command",), (JOINT_STATE,)),
    "motor_voltage": (("arm_1/motor_voltage",), (JOINT_STATE,)),
    "motor_temperature": (("arm_1/motor_temperature",), (JOINT_STATE,)),
    "housing_temperature": (("arm_1/housing_temperature",), (JOINT_STATE,)),
}

_OF_MOTORS = {"motor_voltage": "voltage", "motor_temperature": "winding", "housing_temperature": "housing"}
# Topics with the ending of a standard name but another role.
_NOT_MEANT = {
    "cmd_vel": ("driver/cmd_vel", "trajectory_tracker/cmd_vel"),
    "odom": ("driver/odom",),
    "joint_states": ("driver/joint_states",),
}
# Topics with the arm joints that are not measurements: commands, estimates, and values known only to a simulation.
_NO_READINGS = ("_command", "_commands", "estimated_joint_states", "motor_voltage", "_temperature")
_NO_READINGS_OF = ("ground_truth", "arm_1/friction", "arm_1/torque_available")
# Only youbot identify and replay read topics of other names.
_RECORD = "record it; youbot identify takes another name with --topic {}=NAME, and another robot with --robot-file"
# Types that a chosen topic of a role may have, where they are more than those of a topic that is found.
_CHOSEN = {"odom": (ODOMETRY, TWIST_STAMPED, TWIST), "ground_truth": (*POSE_TYPES, TRANSFORMS)}


def _topics(recording: Recording, types: Collection[str]) -> list[str]:
    """Names of the topics of some types that have messages."""
    return [info.name for info in recording.topics.values() if info.type in types and info.count]


def named_topics(words: Sequence[str], roles: Collection[str]) -> dict[str, str]:
    """Return role -> topic from the values ROLE=NAME of --topic."""
    topics = {}
    for word in words:
        role, _, name = word.partition("=")
        if role not in roles or not name:
            raise ParameterError(f"--topic {word}", expected=f"ROLE=NAME, ROLE one of {', '.join(roles)}")
        topics[role] = name
    return topics


def find_topic(recording: Recording, role: str, chosen: Mapping[str, str]) -> str | None:
    """Name of the topic for a role, a key of ROLES; None if the recording has none.

    `chosen` is role -> topic, given by the user; it takes precedence and must exist.

    Raises:
        RecordingError: several candidates (several robots in one bag), or the chosen topic is missing or of another
            type.
    """
    names, types = ROLES[role]
    if role in chosen:
        return chosen_topic(recording, role, chosen[role])
    candidates = _topics(recording, types)
    for name in names:
        topics = [topic for topic in candidates if _called(topic, name)]
        if topics:
            return _only(recording, name, topics, role)
    return None


def chosen_topic(recording: Recording, role: str, name: str) -> str:
    """The topic that the user chose for a role, or with --pose-topic for the role "".

    Raises:
        RecordingError: the recording lacks it, or it has another type; the message lists those of the right type.
    """
    if role:
        types = ROLES[role][1]
        types = _CHOSEN.get(role, JOINT_TYPES if JOINT_STATE in types else types)
    else:
        types = _CHOSEN["ground_truth"]
    info = recording.topics.get(name)
    if info is not None and info.type in types:
        return name
    option = f"--topic {role}={name}" if role else f"--pose-topic {name}"
    there, got = _topics(recording, types), f"a topic of type {info.type}" if info is not None else "no such topic"
    expected = f"one of {listed(there)}" if there else f"a topic of type {' or '.join(types)}, which it lacks"
    remedy = did_you_mean(name, there) or ("correct the option" if there else "record such a topic")
    raise RecordingError(f"{option} in {recording.path}", got=got, expected=expected, remedy=remedy)


def _called(topic: str, name: str) -> bool:
    """Whether a topic has a standard name, in any namespace, and is not one of another role with the same ending."""
    whole = f"/{topic.lstrip('/')}"
    return whole.endswith(f"/{name}") and not whole.endswith(tuple(f"/{other}" for other in _NOT_MEANT.get(name, ())))


def _only(recording: Recording, what: str, topics: Sequence[str], role: str) -> str:
    """The only topic for a role; a RecordingError if there are several robots in one bag."""
    if len(topics) == 1:
        return topics[0]
    got = f"several topics {what}: {', '.join(topics)}"
    remedy = f"youbot identify chooses with --topic {role}={topics[0]}"
    raise RecordingError(f"{recording.path}", got=got, expected="one robot", remedy=remedy)


def find_odometry(recording: Recording, chosen: Mapping[str, str]) -> str | None:
    """Name of the topic with the odometry: by name, else the only one of its type; None if the recording has none.

    Raises:
        RecordingError: several candidates, or the chosen topic is missing.
    """
    named = find_topic(recording, "odom", chosen)
    others = [info.name for info in recording.topics.values() if info.type == ODOMETRY and info.count]
    return named or (_only(recording, "of odometry", others, "odom") if others else None)


def find_pose_topic(recording: Recording, chosen: Mapping[str, str], pose_topic: str = "") -> str:
    """Name of the topic with the poses of the robot: the chosen one, `ground_truth`, or the only candidate.

    Odometry counts only if it is chosen by name, because it is usually computed from the same wheels.

    Raises:
        RecordingError: none, several candidates, or the chosen topic is missing or has no poses.
    """
    if pose_topic:
        return chosen_topic(recording, "", pose_topic)
    exact = find_topic(recording, "ground_truth", chosen)
    if exact is not None:
        return exact
    candidates = _topics(recording, set(POSE_TYPES) - {ODOMETRY})
    if len(candidates) == 1:
        return candidates[0]
    trees = _topics(recording, (TRANSFORMS,))
    example = f"{trees[0]} if AMCL or SLAM ran" if trees and not candidates else (*candidates, "NAME")[0]
    several = f"several topics with poses: {', '.join(candidates)}"
    got = several if candidates else "no topic with poses besides odometry"
    expected = "motion capture, tags, AMCL or ground truth, which do not come from the wheels"
    remedy = f"choose with --pose-topic {example}"
    raise RecordingError(f"{recording.path}", got=got, expected=expected, remedy=remedy)


def find_wheel_states(recording: Recording, joints: tuple[str, ...], chosen: Mapping[str, str]) -> str:
    """Name of the topic with the wheel states: by name, else any topic that names all the joints.

    Raises:
        RecordingError: there is none; the message names the joints and the JointState topics.
    """
    named = find_topic(recording, "wheel_states", chosen)
    if named is not None:
        return named
    candidates = _topics(recording, JOINT_TYPES)
    for name in candidates:
        if name.rsplit("/", 1)[-1] != "wheel_commands" and _names(recording, name, joints):
            return name
    if not candidates:
        remedy = "without it `youbot identify --only body` finds delays and gains, from cmd_vel with odom or poses"
        raise _no_states(recording, (), (), "joint_states of the wheels", remedy)
    remedy = _RECORD.format("wheel_states")
    raise _no_states(recording, joints, candidates, "a topic driver/joint_states", remedy)


def joint_readings(recording: Recording) -> list[str]:
    """Topics of joints that are measurements."""
    topics = [topic for topic in _topics(recording, JOINT_TYPES) if not topic.endswith(_NO_READINGS)]
    return [topic for topic in topics if not any(part in topic for part in _NO_READINGS_OF)]


def find_arm_states(recording: Recording, joints: tuple[str, ...], chosen: Mapping[str, str]) -> str:
    """Name of the topic with the arm states: by name, else any measurement that names all the joints, else some.

    Raises:
        RecordingError: none, or those of several robots.
    """
    if "arm_states" in chosen and (named := find_topic(recording, "arm_states", chosen)):
        return named
    readings = joint_readings(recording)
    candidates = [topic for topic in readings if _names(recording, topic, joints)]
    candidates = candidates or [topic for topic in readings if recorded_joints(recording, topic, joints)]
    candidates = candidates or [topic for topic in readings if not recording.joint_names(topic)]  # all broken: told why
    for name in ROLES["arm_states"][0]:
        topics = [topic for topic in candidates if _called(topic, name)]
        if topics:
            return _only(recording, "with the states of the arm", topics, "arm_states")
    if candidates:
        return candidates[0]
    expected = "a topic driver/joint_states with messages of the arm"
    raise _no_states(recording, joints, readings, expected, _RECORD.format("arm_states"))


def _no_states(
    recording: Recording, joints: Sequence[str], topics: Sequence[str], expected: str, remedy: str
) -> RecordingError:
    got = f"no states of {', '.join(joints) or 'joints'} ({_topics_text(recording, topics)})"
    return RecordingError(f"{recording.path}", got=got, expected=expected, remedy=remedy)


def _topics_text(recording: Recording, candidates: Sequence[str]) -> str:
    """Topics of the type with their joints, else topics of any type with messages; of many the first eight."""
    if candidates:
        return f"JointState topics: {listed([_with_joints(recording, name) for name in candidates], '; ')}"
    heard = [info.name for info in recording.topics.values() if info.count > 0]
    return f"no JointState topic; topics: {listed(heard)}" if heard else "no messages at all"


def _with_joints(recording: Recording, topic: str) -> str:
    """A topic with the joints that it names, the first eight of many."""
    joints = sorted({name for names in recording.joint_names(topic) for name in names})
    return f"{topic} with {listed(joints)}" if joints else topic


def motor_readings(
    recording: Recording, role: str, joints: tuple[str, ...], chosen: Mapping[str, str]
) -> tuple[str, Vector, Vector] | None:
    """Topic, times (m,) [s] and values (m, n) of motors: `motor_voltage`, `motor_temperature` or `housing_temperature`.

    Without a topic of the role they are those of a DynamicJointState; None without any. A temperature of which its name
    does not tell the part is read only if it is `chosen`, as role -> topic.

    Raises:
        RecordingError: as `find_topic`.
    """
    topic = find_topic(recording, role, chosen)
    topics = [topic] if topic else _topics(recording, (DYNAMIC_JOINT_STATE,))
    for name in topics:
        if not topic and not _names(recording, name, joints):
            continue
        states = recording.joint_states(name, joints)
        values = states.effort
        if recording.topics[name].type == DYNAMIC_JOINT_STATE:
            interfaces = (_OF_MOTORS[role], *(["temperature"] if topic and role != "motor_voltage" else []))
            tables = (states.interfaces.get(interface, values[:0]) for interface in interfaces)
            values = next((table for table in tables if np.any(np.isfinite(table))), values[:0])
        if len(values):
            return name, times_of(states), values
    return None


def recorded_joints(recording: Recording, topic: str, joints: tuple[str, ...]) -> tuple[str, ...]:
    """Which of the joints a topic names, in their order."""
    named = {name for names in recording.joint_names(topic) for name in names}
    return tuple(joint for joint in joints if joint in named)


def _names(recording: Recording, topic: str, joints: tuple[str, ...]) -> bool:
    return len(recorded_joints(recording, topic, joints)) == len(joints)


def times_of(states: JointSeries | PoseSeries) -> Vector:
    """Stamps (n,) of joint states or poses if all have one, else their receive times [s]."""
    return states.stamp if bool(np.all(np.isfinite(states.stamp))) else states.received


@dataclass(frozen=True)
class Options:
    """How recordings are read.

    Args:
        topics: role -> topic, such as {"wheel_states": "/joint_states"}; roles that are not given are found.
        columns: description of the columns of text logs (docs/identification/text_logs.md); "" to read their headers.
        pose_topic: topic with the pose of the base, "" to find it.
        motors_off: (begin, end) of spans in which the base coasted [s], after the first wheel state of each recording.
            A bag does not record the service calls that switch motors off.
        rate: lines a second [Hz] of text logs without a column with the time; 0 for those with it.
        sent_with: geometry by which `cmd_vel` became wheel speeds; None for that of the robot, as it is configured.

    Example:
        >>> yd.Options(pose_topic="/camera/pose").columns
        ''
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    columns: str = ""
    pose_topic: str = ""
    motors_off: tuple[tuple[float, float], ...] = ()
    rate: float = 0.0
    sent_with: MecanumBase | None = None


@dataclass(frozen=True)
class Source:
    """A recording that was used."""

    path: str  # as given
    sha256: str  # of its data
    clock: str  # clock of its signals, "" if no stage compared times
    signals: str  # topics or columns that were compared
    robot_id: str  # as recorded, "" if unknown
    lost: str  # what could not be read, "" if nothing


_SERIES_KEPT = 30_000_000  # bytes of the series that are put together once; the columns of a bag are more

_Series = TypeVar("_Series", JointSeries, TwistSeries, PoseSeries)


class _ReadOnce(Recording):
    """A bag from which many stages ask for the same series: small ones are put together once.

    It can forget what it has decoded: a long bag would otherwise fill the memory while the stages fit.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.forget()

    def forget(self) -> None:
        """Decode again what is asked for from now on."""
        self._decoded.clear()
        self._series: dict[tuple[object, ...], Any] = {}
        self._room = _SERIES_KEPT

    def joint_states(self, topic: str, joints: Sequence[str]) -> JointSeries:
        """As `Recording.joint_states`."""
        return self._once(super().joint_states, topic, tuple(joints))

    def twists(self, topic: str) -> TwistSeries:
        """As `Recording.twists`."""
        return self._once(super().twists, topic)

    def poses(self, topic: str) -> PoseSeries:
        """As `Recording.poses`."""
        return self._once(super().poses, topic)

    def _once(self, read: Callable[..., _Series], *given: object) -> _Series:
        key = read.__name__, *given
        if key not in self._series:
            series = read(*given)
            size = sum(value.nbytes for value in vars(series).values() if isinstance(value, np.ndarray))
            if size > self._room:
                return series
            self._room -= size
            self._series[key] = series
        kept: _Series = self._series[key]
        return kept


@dataclass(frozen=True, eq=False)
class Opened:
    """An opened recording."""

    path: Path  # as given
    number: int  # of the recording within the identification, 0 for the first
    options: Options  # how the user wants it read
    recording: Recording | None = None  # topics of a bag, or of a text log of a robot; None for channels alone
    log: TextLog | None = None  # the text log, None for a bag
    unnamed: str = ""  # what to call the robot of a bag that tells neither its name nor a joint

    def bag(self) -> Recording:
        """The topics.

        Raises:
            RecordingError: it is a text log of channels, which has no topics.
        """
        if self.recording is None:
            expected = "a bag with topics, or a text log with position.JOINT, measured.x or pose.x"
            speeds = ", ".join(self.log.joints.get("velocity", ())) if self.log is not None else ""
            got = f"a text log with the speed of {speeds}, but no angle" if speeds else "a text log"
            remedy = "add a column with the angle, the sum of speed times time" if speeds else ""
            raise RecordingError(str(self.path), got=got, expected=expected, remedy=remedy)
        return self.recording

    @property
    def sha256(self) -> str:
        """Hash of its data in hexadecimal digits."""
        return self.log.sha256 if self.log is not None else self.bag().sha256

    @property
    def robot_id(self) -> str:
        """Robot of the recording, "" if unknown."""
        return "" if self.recording is None else self.recording.metadata.get("robot_id", "")

    @property
    def lost(self) -> str:
        """What could not be read so far, "" if nothing."""
        return "" if self.recording is None else self.recording.lost

    def forget(self) -> None:
        """Give back the memory of what was decoded of a bag."""
        if isinstance(self.recording, _ReadOnce):
            self.recording.forget()


def open_recording(path: Path, number: int, robot: Robot, options: Options) -> Opened:
    """Open a bag (rosbag2 folder, .mcap, .db3, .bag) or a text log of a robot; its `number` is that within all.

    Raises:
        RecordingError: it cannot be read.
        ParameterError: it names another robot.
    """
    if (columns := columns_of(path, options.columns, options.rate, robot)) is not None:
        log = read_log(path, columns, robot)
        moves = LogRecording.has_motion(log, robot.driver.wheel_joints)
        return Opened(path, number, options, LogRecording(log) if moves else None, log)
    try:
        recording = _ReadOnce(path)
    except OSError as problem:
        raise RecordingError(str(path), got=str(problem.strerror), expected="a recording that can be read") from None
    opened = Opened(path, number, options, recording=recording)
    if opened.robot_id and opened.robot_id != robot.robot_id:
        got, expected = f"robot '{opened.robot_id}'", f"robot '{robot.robot_id}'"
        remedy = "name its robot with --robot-file (without it: the default one), or its own with --params-file"
        raise ParameterError(f"recording {path}", got=got, expected=expected, remedy=remedy)
    other = unnamed(recording, robot)
    return replace(opened, unnamed="" if opened.robot_id else other)
