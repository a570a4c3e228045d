"""Wheel speeds, wheel torques and the command on common times, out of a recording, for the friction of the base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.errors import IdentificationError, RecordingError
from youbot_dynamics.identification.reading import (
    find_topic,
    find_wheel_states,
    positions_in_degrees,
    speed_ratio,
    times_of,
)
from youbot_dynamics.identification.signals import HeldCommand, base_signals
from youbot_dynamics.kinematics.mecanum import MecanumBase
from youbot_dynamics.recording.bag import Recording
from youbot_dynamics.recording.series import JointSeries
from youbot_dynamics.robot import Robot

_COMMANDS = ("wheel_commands", "driver_cmd_vel", "cmd_vel")  # roles that can be one
_AROUND = 2  # intervals on either side
_FEWEST = 20  # readings
_GAP = 1.3  # mean of the intervals around over the median from which on readings are missing
_LOOKED_AT = 100_000  # samples looked at for signs of sensible efforts

NO_EFFORT = (
    "the recording holds no wheel effort: the standard youBot driver publishes none; use a driver that does, or let "
    "the base coast with the motors switched off eight times or more (service base/switchOffMotors) and name the spans "
    "with --motors-off, which gives friction over effective mass"
)
ZERO_EFFORT = "every wheel effort in the recording is exactly 0: its driver fills in zeros where it measures nothing"
AGAINST = "the efforts drive against the motion: check the signs of the efforts and of the wheels"


@dataclass(frozen=True, eq=False)
class FrictionSignals:
    """What the friction of a base is fitted to; columns are wheels, positive forward."""

    time: Vector  # (s,) [s], increasing
    speeds: Vector  # (s, n) wheel speeds [rad/s], from positions where they are known: the mean over each interval
    torques: Vector | None  # (s, n) of the motors at the wheels, gear included [N m]; None where nothing reports them
    # (s, n) wheel speeds asked for, held and moved by the identified delay [rad/s]; None where unknown
    commanded: Vector | None = None
    recording: int = 0  # number of the recording, another one for each

    @property
    def fastest(self) -> float:
        """Largest wheel speed [rad/s], 0 where there is none."""
        return float(np.nanmax(np.abs(self.speeds), initial=0.0))

    def without(self, spans: Sequence[tuple[float, float]]) -> FrictionSignals:
        """The same without the readings in some spans (begin, end) [s]."""
        keep = np.ones(len(self.time), dtype=bool)
        for begin, end in spans:
            keep &= (self.time < begin) | (self.time > end)
        if np.all(keep):
            return self
        torques, commanded = (None if one is None else one[keep] for one in (self.torques, self.commanded))
        return FrictionSignals(self.time[keep], self.speeds[keep], torques, commanded, self.recording)

    def refusal(self) -> str:
        """Why nothing can be learnt from the efforts, "" where something can."""
        if self.torques is None or not _any_of(self.torques, np.isfinite):
            return NO_EFFORT
        if not _any_of(self.torques, np.nan_to_num):
            return ZERO_EFFORT
        every = max(1, len(self.time) // _LOOKED_AT)
        power = np.nansum(self.torques[::every] * self.speeds[::every])
        return AGAINST if power < 0.0 else ""


def _any_of(table: Vector, condition: Callable[[Vector], Vector | Flags]) -> bool:
    """Whether a condition holds of any value of a table (s, n); stops at the first chunk in which it does."""
    return any(bool(np.any(condition(table[k : k + _LOOKED_AT]))) for k in range(0, len(table), _LOOKED_AT))


def recorded_wheel_signals(
    recording: Recording, robot: Robot, chosen: Mapping[str, str], delays: Vector, number: int = 0
) -> FrictionSignals:
    """Signals of a bag: wheel angles and efforts of the wheel states, the command where there is one.

    Efforts carry the sign of the velocities. The standard driver publishes none: `torques` is then None.

    Args:
        recording: the bag.
        robot: geometry, joint names and signs.
        chosen: role -> topic, where the user overrides.
        delays: (3,) effective delays of x, y, yaw [s], as identified from the same bag or set in the robot.
        number: of the recording, another one for each.

    Raises:
        RecordingError: no wheel states, wheel angles that are degrees, or a command that shares no clock with them.
    """
    joints = robot.driver.wheel_joints
    states = recording.joint_states(find_wheel_states(recording, joints, chosen), joints)
    _refuse_degrees(states, recording)
    time, command = times_of(states), None
    # Friction needs no command, it only gains instruments by one; but one that cannot be read is told.
    if any(find_topic(recording, role, chosen) is not None for role in _COMMANDS):
        motion = base_signals(recording, robot, chosen)
        time, command = motion.measured_time, (motion.command_time, motion.command)
    efforts = states.effort * np.array(robot.driver.velocity_sign)
    torques = efforts if bool(np.any(np.isfinite(efforts))) else None
    positions = states.position * np.array(robot.driver.position_sign)
    return wheel_signals(time, positions, torques, command, delays, robot.base.geometry.mecanum(), number)


def _refuse_degrees(states: JointSeries, recording: Recording) -> None:
    """Angles in degrees would make friction coefficients wrong by 57 without looking wrong.

    Raises:
        RecordingError: d(position)/dt is 57 times the velocity.
    """
    time = times_of(states)
    for k, name in enumerate(states.names):
        ratio = speed_ratio(time, states.position[:, k], states.velocity[:, k])
        if positions_in_degrees(ratio):
            raise RecordingError(
                f"topic {states.topic} in {recording.path}",
                got=f"angles of {name} that look like degrees: they grow {abs(ratio):.4g} times as fast as it turns",
                expected="angles [rad], velocities [rad/s]",
                remedy="record the driver's own states, or convert them",
            )


def wheel_signals(
    time: Vector,
    positions: Vector,
    torques: Vector | None,
    command: tuple[Vector, Vector] | None,
    delays: Vector,
    base: MecanumBase,
    recording: int = 0,
) -> FrictionSignals:
    """Signals in the middle of each interval between two readings.

    The speed there is the turn of the wheel over the usual length of the intervals around it, where the driver's own
    speed is quantised and lags; over its own length, whose ends jitter, it would come out too large on average: 1 ms
    in 20 ms makes half a per cent. The torque is the mean of its two readings; the command is the mean of what was
    asked for over the interval, moved by the delay of its axis.

    Args:
        time: (s,) stamps of the readings [s], increasing.
        positions: (s, n) wheel angles [rad], positive forward.
        torques: (s, n) [N m], positive forward; None where nothing reports them.
        command: times (c,) [s] and body twists (c, 3) asked for, held between them; None where unknown.
        delays: (3,) effective delays of x, y, yaw [s].
        base: kinematics.
        recording: number of the recording.

    Raises:
        IdentificationError: hardly any readings, or commands of which none can be read.
    """
    keep = np.concatenate([[True], np.diff(time) > 0.0]) if len(time) else np.zeros(0, dtype=bool)
    time, positions = time[keep], positions[keep]
    torques = None if torques is None else torques[keep]
    if len(time) < _FEWEST:
        raise IdentificationError(
            "states of the wheels", got=f"{len(time)} readings", expected=f"{_FEWEST} or more", remedy="record longer"
        )
    spans = np.diff(time)
    middle = time[:-1] + 0.5 * spans
    speeds = np.diff(positions, axis=0) / _usual(spans)[:, None]
    mean = None if torques is None else 0.5 * (torques[:-1] + torques[1:])
    commanded = None
    if command is not None:
        # One that cannot be read is not one to stop: the one before it is taken to hold.
        told = np.isfinite(command[0]) & np.all(np.isfinite(command[1]), axis=1)
        sent, twists = command[0][told], command[1][told]
        if not len(sent):
            raise IdentificationError(
                "commands of the wheels",
                got="none that can be read",
                expected="finite velocities",
                remedy="look at what sends them, or leave their topic out of the recording",
            )
        asked = np.empty((len(middle), 3))
        for axis in range(3):
            moved = HeldCommand(sent, twists[:, axis], 0.0).integral(time - delays[axis])
            asked[:, axis] = np.diff(moved) / spans
        known = (time[:-1] - np.max(delays) >= sent[0]) & (time[1:] - np.min(delays) <= sent[-1] + np.median(spans))
        asked[~known] = np.nan
        commanded = asked @ base.inverse_matrix.T
    return FrictionSignals(middle, speeds, mean, commanded, recording)


def _usual(spans: Vector) -> Vector:
    """Mean of five intervals around each (s,) [s]; NaN near a gap, where readings are missing."""
    around = np.convolve(np.pad(spans, _AROUND, mode="reflect"), np.ones(2 * _AROUND + 1), mode="valid")
    around /= 2 * _AROUND + 1
    around[around > _GAP * np.median(spans)] = np.nan
    return around
