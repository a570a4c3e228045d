"""Command and motion of the base per axis, out of a recording, on one clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.reading.topics import find_topic, find_wheel_states
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.recording.text_log import TextLog
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

# Receive times serve for an unstamped command only if they share a clock with the stamps of the motion.
_WORST_CLOCK_OFFSET = 1.0  # [s]
_SIGN_SPEED = 0.1  # [rad/s] over which the sign of a wheel's friction turns


@dataclass(frozen=True, eq=False)
class MotionSignals:
    """What a delay is fitted to.

    Args:
        channels: names of the channels.
        units: unit of the position of each channel.
        command_time: (n,) [s].
        command: (n, k) commanded velocity [unit/s].
        measured_time: (m,) [s].
        measured: (m, k) motion.
        measured_is: "position" or "velocity".
        friction: (n, k) sign pattern of the wheels' friction felt by each channel, None where unknown.
        clock: which clock the times are of, for the result.
        source: what they were read from.
    """

    channels: tuple[str, ...]
    units: tuple[str, ...]
    command_time: Vector
    command: Vector
    measured_time: Vector
    measured: Vector
    measured_is: str
    friction: Vector | None
    clock: str
    source: str


def base_signals(recording: Recording, robot: Robot, chosen: Mapping[str, str]) -> MotionSignals:
    """Commanded twist and wheel motion of the axes x, y, yaw.

    The command is `wheel_commands`, stamped when it was sent. Where it is missing, the unstamped
    `driver/cmd_vel` or `cmd_vel` serves by its receive time. The motion is that of the wheels through the
    calibrated kinematics: per axis, so rotation does not mix them.

    Args:
        recording: a bag.
        robot: geometry, joint names and signs.
        chosen: role -> topic, where the user overrides.

    Raises:
        RecordingError: a needed topic is missing, or command and motion share no clock.
    """
    base = robot.base.geometry.mecanum()
    joints = robot.driver.wheel_joints
    states = recording.joint_states(find_wheel_states(recording, joints, chosen), joints)
    topic = find_topic(recording, "wheel_commands", chosen)
    if topic is not None:
        commands = recording.joint_states(topic, joints)
        stamped = _stamped(states.stamp) and _stamped(commands.stamp)
        command_time = commands.stamp if stamped else commands.received
        motion_time = states.stamp if stamped else states.received
        clock = f"{'stamps' if stamped else 'receive times'} of {topic} and {states.topic}"
        wheel_speeds = commands.velocity
    else:
        topic, command_time, wheel_speeds = _twist_command(recording, robot, chosen)
        motion_time = _motion_time_for_receive_clock(recording, states, topic)
        own = "stamps" if motion_time is states.stamp else "receive times"
        clock = f"receive times of {topic}, {own} of {states.topic}"
    twist = wheel_speeds @ base.forward_matrix.T
    signs = np.tanh(wheel_speeds / _SIGN_SPEED)
    positions = states.position * np.array(robot.driver.position_sign)
    if not np.any(np.isfinite(positions)):
        raise RecordingError(
            f"topic {states.topic} in {recording.path}", got="no positions", expected="wheel angles [rad]"
        )
    return MotionSignals(
        channels=("x", "y", "yaw"),
        units=("m", "m", "rad"),
        command_time=command_time,
        command=twist,
        measured_time=motion_time,
        measured=positions @ base.forward_matrix.T,
        measured_is="position",
        friction=signs @ base.inverse_matrix,
        clock=clock,
        source=f"{topic} to {states.topic}",
    )


def _stamped(stamps: Vector) -> bool:
    return bool(np.all(np.isfinite(stamps)))


def _motion_time_for_receive_clock(recording: Recording, states: JointSeries, topic: str) -> Vector:
    """Stamps of the motion where they share a clock with receive times, its receive times if it has no stamps."""
    if not _stamped(states.stamp):
        return states.received
    offset = float(np.median(np.abs(states.received - states.stamp)))
    if offset > _WORST_CLOCK_OFFSET:
        raise RecordingError(
            f"{recording.path}",
            got=f"stamps of {states.topic} that differ from their receive times by {offset:.1f} s",
            expected=f"less than {_WORST_CLOCK_OFFSET:g} s, since {topic} carries no stamp",
            remedy="record wheel_commands, which is stamped, or synchronise the clocks",
        )
    return states.stamp


def _twist_command(recording: Recording, robot: Robot, chosen: Mapping[str, str]) -> tuple[str, Vector, Vector]:
    """Topic, receive times (n,) [s] and wheel speeds (n, 4) that a Twist asks for.

    The driver turns its cmd_vel into wheel speeds with its own geometry; an operator's cmd_vel means ours.
    """
    for role, base in (("driver_cmd_vel", robot.driver.mecanum()), ("cmd_vel", robot.base.geometry.mecanum())):
        topic = find_topic(recording, role, chosen)
        if topic is not None:
            series = recording.twists(topic)
            return topic, series.received, series.twist @ base.inverse_matrix.T
    raise RecordingError(
        f"{recording.path}",
        got=f"no command (topics: {', '.join(recording.topics) or 'none'})",
        expected="wheel_commands, driver/cmd_vel or cmd_vel",
        remedy="record one of them, or name it with --topic wheel_commands=NAME",
    )


def text_signals(log: TextLog) -> MotionSignals:
    """Command and motion of the channels of a text log; speeds are preferred to positions.

    Raises:
        RecordingError: no channel has both a command and a motion.
    """
    both = [name for name in log.command if name in log.measured or name in log.measured_position]
    if not both:
        raise RecordingError(
            f"{log.path}",
            got=f"commands {', '.join(log.command) or 'none'}, motions {', '.join(log.measured) or 'none'}",
            expected="a channel with both",
            remedy="name them in --columns as command.NAME and measured.NAME",
        )
    speeds = all(name in log.measured for name in both)
    motion = [log.measured[n] if speeds else log.measured_position.get(n, np.full(len(log.time), np.nan)) for n in both]
    return MotionSignals(
        channels=tuple(both),
        units=("1",) * len(both),
        command_time=log.time,
        command=np.column_stack([log.command[name] for name in both]),
        measured_time=log.time,
        measured=np.column_stack(motion),
        measured_is="velocity" if speeds else "position",
        friction=None,
        clock="time column",
        source="command to measured columns",
    )
