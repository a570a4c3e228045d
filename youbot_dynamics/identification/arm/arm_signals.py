"""Readings of the arm out of a recording: positions and efforts, and what was asked of its torques."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.identification.arm.arm_windows import TRAVEL, ArmSignals
from youbot_dynamics.identification.reading.topics import find_arm_states, find_topic
from youbot_dynamics.identification.reading.units import angles_beyond
from youbot_dynamics.identification.timing.held_command import HeldCommand
from youbot_dynamics.identification.timing.torque_delay import DURATION
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.robot import Robot

Vector = NDArray[np.float64]

_FEWEST = 10  # readings of a start
_STILL = 0.01  # share of the fastest speed
_NO_RADIANS = 6.5  # [rad] beyond a limit: more than a turn, which no zero is set wrong by
NO_EFFORT = "the arm's states hold no efforts: record a driver that reports them, as the youBot's does"


@dataclass(frozen=True, eq=False)
class RecordedArm:
    """What a bag holds of an arm of n joints; columns are joints, positive as the driver counts.

    Args:
        topic: of its states.
        signals: positions [rad] and efforts [N m] at the stamps [s].
        speed: (s, n) as the driver says, at the times of `signals` [rad/s].
        asked: times (c,) [s] and torques (c, n) [N m] that were asked for; None where none were.
        left_out: readings without a number in one of their fields.
        beyond: how far angles go beyond the limits of their joints [rad], 0 where they do not.
    """

    topic: str
    signals: ArmSignals
    speed: Vector
    asked: tuple[Vector, Vector] | None
    left_out: int
    beyond: float = 0.0

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Which joints (n,) went further than their bristles bend."""
        position = self.signals.position
        if not len(position):
            return np.zeros(position.shape[1], dtype=bool)
        far: NDArray[np.bool_] = np.ptp(position, axis=0) > TRAVEL
        return far

    def refusal(self) -> str:
        """Why nothing can be learnt of the arm at all, "" where something can."""
        if not len(self.signals.time):
            return NO_EFFORT
        if not np.any(self.signals.torque):
            return "every effort of the arm is exactly 0: its motors were off, or its driver fills in zeros"
        return "" if np.any(self.moved) else "the arm never moved"


def recorded_arm(recording: Recording, robot: Robot, chosen: Mapping[str, str], number: int = 0) -> RecordedArm:
    """Readings of the arm of a bag.

    Args:
        recording: the bag.
        robot: names and limits of the joints.
        chosen: role -> topic, where the user overrides.
        number: of the recording, another one for each.

    Raises:
        RecordingError: no states of these joints, or angles that cannot be radians.
    """
    joints = robot.driver.arm_joints
    states = recording.joint_states(find_arm_states(recording, joints, chosen), joints)
    time = times_of(states)
    beyond = angles_beyond(states.position, *joint_limits(robot))
    if beyond > _NO_RADIANS:
        raise RecordingError(
            f"topic {states.topic} in {recording.path}",
            got=f"angles up to {beyond:.4g} beyond the limits of their joints: they look like degrees",
            expected="angles [rad] counted as urdf/youbot.urdf does",
            remedy="record the driver's own states, or convert them",
        )
    sound = np.isfinite(time) & np.all(np.isfinite(states.position) & np.isfinite(states.effort), axis=1)
    signals = ArmSignals(time[sound], states.position[sound], states.effort[sound], number)
    asked = _asked(recording, joints, chosen, time is states.stamp)
    return RecordedArm(states.topic, signals, states.velocity[sound], asked, int(np.count_nonzero(~sound)), beyond)


def joint_limits(robot: Robot) -> tuple[list[float], list[float]]:
    """Lower and upper mechanical limits of the arm's joints [rad]."""
    limits = robot.arm.model().tree.limits
    return [limit.lower for limit in limits], [limit.upper for limit in limits]


def torque_starts(arm: RecordedArm, joint: int) -> list[tuple[Vector, Vector, Vector]]:
    """Times [s], torques asked for [N m] and speeds [rad/s], each (m,), of the starts of a joint out of rest.

    Instants are those of readings and of commands, so that a command between two readings keeps its time; speeds in
    between are interpolated. One way only: a start ends where the joint turns round.

    Args:
        arm: with torques that were asked for.
        joint: its number.
    """
    time, speed = arm.signals.time, arm.speed[:, joint]
    if arm.asked is None or len(time) < _FEWEST or not np.all(np.isfinite(speed)):
        return []
    sent, asked = arm.asked[0], arm.asked[1][:, joint]
    known = np.isfinite(asked)
    if not np.any(asked[known]):
        return []
    command = HeldCommand(sent[known], asked[known], 0.0)
    still = np.abs(speed) <= _STILL * float(np.max(np.abs(speed)))
    begins = np.flatnonzero(still[:-1] & ~still[1:])
    starts = []
    for begin, after in zip(begins, np.append(begins, len(time))[1:], strict=True):
        if time[begin] < sent[known][0]:
            continue
        first, last = time[begin], min(time[after - 1], time[begin] + DURATION)
        inside = (sent > first) & (sent < last)
        moments = np.union1d(time[(time >= first) & (time <= last)], sent[inside])
        starts.append((moments, command.held(moments), np.interp(moments, time, speed)))
    return [start for start in starts if len(start[0]) >= _FEWEST]


def times_of(states: JointSeries) -> Vector:
    """Stamps (n,) of joint states where all have one, else when they were received [s]."""
    return states.stamp if bool(np.all(np.isfinite(states.stamp))) else states.received


def _asked(
    recording: Recording, joints: tuple[str, ...], chosen: Mapping[str, str], stamped: bool
) -> tuple[Vector, Vector] | None:
    topic = find_topic(recording, "arm_torque_commands", chosen)
    if topic is None:
        return None
    commands = recording.joint_states(topic, joints)
    own = times_of(commands) if stamped else commands.received
    return own, commands.effort
