"""Read wheel speeds, wheel torques and the command at common times, for the friction of the base."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from youbot_dynamics.arrays import Flags, Vector
from youbot_dynamics.errors import IdentificationError, RecordingError
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.identification.reading import (
    efforts_of,
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

_COMMANDS = ("wheel_commands", "driver_cmd_vel", "cmd_vel")  # roles of commands
_NEIGHBOURS = 2  # intervals on either side
_FEWEST = 20  # readings
_GAP = 1.3  # ratio of the local mean interval to the median above which readings are missing
_CHECKED_SAMPLES = 100_000  # samples checked for plausible efforts
_COMPARED_SAMPLES = 10_000  # about as many are compared with the motion of the wheels

NO_EFFORT = Reason(
    Kind.NOT_MEASURED,
    "the recording holds no wheel effort; many drivers publish none. Currents need robot.driver.wheel_torque_constant. "
    "Without efforts, switch the motors off while the base rolls, eight times or more, and give each time span with "
    "--motors-off BEGIN,END: that shows friction divided by the mass",
)
ZERO_EFFORT = Reason(
    Kind.NOT_MEASURED,
    "every wheel effort in the recording is exactly 0: its driver does not measure efforts and writes zeros",
)
AGAINST = Reason(
    Kind.WRONG_SIGNALS, "the efforts act against the motion: check the signs of the efforts and of the wheels"
)
# Wheels whose efforts are compared with their motion: speed of a moving wheel [rad/s]; motion needed [s]; rms that the
# sign of a speed must keep beside what accelerations explain, since one that hardly changes agrees with any by chance;
# correlation that is none by chance; and the share of the unexplained effort that remains if it is another wheel's.
# Of 420 right drives, each with 16 kinds of efforts (filtered, noisy, of a tilted floor, of wheels that work against
# each other by up to 0.5 N m), of twins with friction of a tenth to ten times the usual, 10 of 6720 were refused.
_MOVING, _LEAST_MOTION, _VARIED, _CORRELATED, _OF_ANOTHER = 0.2, 10.0, 0.5, 0.5, 0.5


@dataclass(frozen=True, eq=False)
class FrictionSignals:
    """Signals for the friction fit of a base; columns are wheels, positive forward."""

    time: Vector  # (s,) [s], increasing
    speeds: Vector  # (s, n) wheel speeds [rad/s]: means over each interval from positions, if known
    torques: Vector | None  # (s, n) motor torques at the wheels, after the gear [N m]; None if not reported
    # (s, n) commanded wheel speeds, held and shifted by the identified delay [rad/s]; None if unknown
    commanded: Vector | None = None
    recording: int = 0  # number of the recording, distinct for each
    base: MecanumBase | None = None  # its kinematics, if known
    wheels: tuple[str, ...] = ()  # [n] names of the wheels' joints, empty if unknown

    @property
    def fastest(self) -> float:
        """Largest wheel speed [rad/s], 0 if there is none."""
        return float(np.nanmax(np.abs(self.speeds), initial=0.0))

    def without(self, spans: Sequence[tuple[float, float]]) -> FrictionSignals:
        """The same without the readings in the spans (begin, end) [s]."""
        keep = np.ones(len(self.time), dtype=bool)
        for begin, end in spans:
            keep &= (self.time < begin) | (self.time > end)
        if np.all(keep):
            return self
        torques, commanded = (None if table is None else table[keep] for table in (self.torques, self.commanded))
        return replace(self, time=self.time[keep], speeds=self.speeds[keep], torques=torques, commanded=commanded)

    def refusal(self) -> Reason | None:
        """Reason why the efforts cannot be used, None if they can."""
        if self.torques is None or not _any_value(self.torques, np.isfinite):
            return NO_EFFORT
        if not _any_value(self.torques, np.nan_to_num):
            return ZERO_EFFORT
        step = max(1, len(self.time) // _COMPARED_SAMPLES)
        torques, speeds = self.torques[::step], self.speeds[::step]
        for wheel, name in enumerate(self._names):
            told = torques[np.isfinite(torques[:, wheel]), wheel]
            frozen = len(told) > 0 and told.min() == told.max()
            if not _any_value(self.torques[:, wheel], np.isfinite) or (
                frozen and np.nanmax(np.abs(speeds[:, wheel]), initial=0.0) > _MOVING
            ):
                missing = f"the effort of {name} is missing, or never changes: check the driver"
                return Reason(Kind.NOT_MEASURED, missing)
        return AGAINST if np.nansum(torques * speeds) < 0.0 else self._exchanged()

    @property
    def _names(self) -> tuple[str, ...]:
        return self.wheels or tuple(f"wheel {wheel + 1}" for wheel in range(self.speeds.shape[1]))

    def _exchanged(self) -> Reason | None:
        """Which effort is another wheel's or has the wrong sign, None if none.

        Friction has the sign of the wheel's own speed. The torque that accelerates the base, a function of all
        accelerations, is removed from both first. Wheels that always turn alike may be exchanged, which is harmless.
        Efforts are exchanged if all of a set of wheels agree with the speed of another wheel of this set. One has the
        wrong sign if it opposes its own speed, also without the part by which wheels work against each other.
        """
        assert self.torques is not None
        step = max(1, len(self.time) // _COMPARED_SAMPLES)
        rows = np.arange(1, len(self.time) - 1, step)
        moving = np.all(np.abs(self.speeds[rows]) > _MOVING, axis=1) & np.all(np.isfinite(self.torques[rows]), axis=1)
        rows = rows[moving & np.all(np.isfinite(self.speeds[rows + 1] - self.speeds[rows - 1]), axis=1)]
        elapsed = self.time[rows + 1] - self.time[rows - 1]
        if len(rows) == 0 or 0.5 * step * len(rows) * float(np.median(elapsed)) < _LEAST_MOTION:
            return None
        accelerations = (self.speeds[rows + 1] - self.speeds[rows - 1]) / elapsed[:, None]
        common = np.linalg.qr(np.column_stack([accelerations, np.ones(len(rows))]))[0]
        signs = np.sign(self.speeds[rows])
        signs -= common @ (common.T @ signs)
        sizes = np.linalg.norm(signs, axis=0)
        varied = sizes > _VARIED * math.sqrt(len(rows))

        def correlations(torques: Vector) -> Vector:
            torques = torques - common @ (common.T @ torques)
            product = np.outer(np.linalg.norm(torques, axis=0), sizes)
            table: Vector = (torques.T @ signs) / np.maximum(product, np.finfo(float).tiny) * np.outer(varied, varied)
            return table

        table = correlations(self.torques[rows])
        own, others = np.diag(table), np.argmax(np.abs(table), axis=1)
        best = table[np.arange(len(table)), others]
        clear = (np.abs(best) > _CORRELATED) & (1.0 - best**2 < _OF_ANOTHER * (1.0 - own**2))
        moved = {wheel: int(others[wheel]) for wheel in np.flatnonzero(clear & (others != np.arange(len(others))))}
        names, remedy = self._names, "check order and signs of the efforts"
        if moved and set(moved) == set(moved.values()):
            wheel, other = next(iter(moved.items()))
            how = "against" if best[wheel] < 0.0 else "with"
            acts = f"the effort of {names[wheel]} acts {how} the motion of {names[other]}, not with its own"
            return Reason(Kind.WRONG_SIGNALS, f"{acts}: {remedy}")
        if self.base is not None:
            pushing = self.torques[rows] @ (self.base.inverse_matrix @ self.base.forward_matrix).T
            own = np.where(others == np.arange(len(others)), np.maximum(own, np.diag(correlations(pushing))), 0.0)
        if np.min(own) < -_CORRELATED:
            against = f"the effort of {names[int(np.argmin(own))]} acts against its own motion: {remedy}"
            return Reason(Kind.WRONG_SIGNALS, against)
        return None


def _any_value(table: Vector, condition: Callable[[Vector], Vector | Flags]) -> bool:
    """Whether a condition is true for any value of a table (s, n); stops at the first chunk in which it is."""
    return any(bool(np.any(condition(table[k : k + _CHECKED_SAMPLES]))) for k in range(0, len(table), _CHECKED_SAMPLES))


def recorded_wheel_signals(
    recording: Recording, robot: Robot, chosen: Mapping[str, str], delays: Vector, number: int = 0
) -> FrictionSignals:
    """Signals of a bag: wheel angles and efforts of the wheel states, and the command if there is one.

    Efforts have the sign of the velocities. The standard driver publishes none: `torques` is then None. `chosen` is
    role -> topic, given by the user; `delays` (3,) are the effective ones of x, y, yaw [s]; each recording has its own
    `number`.

    Raises:
        RecordingError: no wheel states, or wheel angles in degrees.
    """
    robot.base.geometry.mecanum().refuse_steered("friction of the base")
    joints = robot.driver.wheel_joints
    states = recording.joint_states(find_wheel_states(recording, joints, chosen), joints)
    _refuse_degrees(states, recording)
    time, command = times_of(states), None
    # The fit needs no command; a command only adds instruments. An unreadable command is still an error.
    if any(find_topic(recording, role, chosen) is not None for role in _COMMANDS):
        motion = base_signals(recording, robot, chosen)
        time, command = motion.measured_time, (motion.command_time, motion.command)
    efforts = efforts_of(states, recording.path, robot) if robot.driver.wheel_torque_constant > 0.0 else states.effort
    torques = efforts if bool(np.any(np.isfinite(efforts))) else None
    base = robot.base.geometry.mecanum()
    signals = wheel_signals(time, states.position, torques, command, delays, base, number)
    speeds, torques = signals.speeds, signals.torques  # signs in place: copies of all readings would fill the memory
    speeds *= robot.driver.position_sign
    if torques is not None:
        torques *= robot.driver.velocity_sign
    return replace(signals, wheels=joints)


def _refuse_degrees(states: JointSeries, recording: Recording) -> None:
    """Reject angles in degrees, which would make friction coefficients wrong by a factor of 57 without notice.

    Raises:
        RecordingError: d(position)/dt is 57 times the velocity.
    """
    time = times_of(states)
    for k, name in enumerate(states.names):
        ratio = speed_ratio(time, states.position[:, k], states.velocity[:, k])
        if positions_in_degrees(ratio):
            raise RecordingError(
                f"topic {states.topic} in {recording.path}",
                got=f"angles of {name} that look like degrees: they change {abs(ratio):.4g} times the velocity",
                expected="angles [rad], velocities [rad/s]",
                remedy="record the states of the driver, or convert the angles",
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
    """Signals at the middle of each interval between two readings.

    The speed is the turn of the wheel over the mean length of the intervals around it; the speed of the driver is
    quantised and lags. Dividing by the length of the single interval, whose ends jitter, would bias the speed: 1 ms of
    jitter in 20 ms makes it half a per cent too large. The torque is the mean of its two readings. The command is its
    mean over the interval, shifted by the delay of its axis.

    The stamps (s,) [s] of the readings increase; wheel angles [rad] and torques [N m], None if not reported, are (s, n)
    and positive forward. `command` are times (c,) [s] and body twists (c, 3), held between them; None if unknown.
    `delays` (3,) are the effective ones of x, y, yaw [s].

    Raises:
        IdentificationError: too few readings, or no readable command.
    """
    keep = np.concatenate([[True], np.diff(time) > 0.0]) if len(time) else np.zeros(0, dtype=bool)
    if not np.all(keep):  # no copy of many readings for nothing
        time, positions = time[keep], positions[keep]
        torques = None if torques is None else torques[keep]
    if len(time) < _FEWEST:
        raise IdentificationError(
            "states of the wheels",
            got=f"{len(time)} readings",
            expected=f"{_FEWEST} or more",
            remedy="record a longer drive",
        )
    spans = np.diff(time)
    middle = time[:-1] + 0.5 * spans
    speeds = np.diff(positions, axis=0)
    speeds /= _mean_intervals(spans)[:, None]
    mean_torques = None if torques is None else torques[:-1] + torques[1:]
    if mean_torques is not None:
        mean_torques *= 0.5
    commanded = None if command is None else _mean_twists(command, time, delays) @ base.inverse_matrix.T
    return FrictionSignals(middle, speeds, mean_torques, commanded, recording, base)


def _mean_twists(command: tuple[Vector, Vector], time: Vector, delays: Vector) -> Vector:
    """Commanded twist (s - 1, 3) between stamps (s,), each axis late by its delay; NaN before and after the command."""
    # An unreadable command is not a stop: the command before it stays in force.
    readable = np.isfinite(command[0]) & np.all(np.isfinite(command[1]), axis=1)
    sent, twists = command[0][readable], command[1][readable]
    if not len(sent):
        raise IdentificationError(
            "commands of the wheels",
            got="none that can be read",
            expected="finite velocities",
            remedy="check the node that sends them, or leave their topic out of the recording",
        )
    spans = np.diff(time)
    mean_twists = np.empty((len(spans), 3))
    for axis in range(3):
        displacement = HeldCommand(sent, twists[:, axis], 0.0).integral(time - delays[axis])
        mean_twists[:, axis] = np.diff(displacement) / spans
    covered = (time[:-1] - np.max(delays) >= sent[0]) & (time[1:] - np.min(delays) <= sent[-1] + np.median(spans))
    mean_twists[~covered] = np.nan
    return mean_twists


def _mean_intervals(spans: Vector) -> Vector:
    """Mean of the five intervals around each (s,) [s]; NaN near a gap, where readings are missing."""
    means = np.convolve(np.pad(spans, _NEIGHBOURS, mode="reflect"), np.ones(2 * _NEIGHBOURS + 1), mode="valid")
    means /= 2 * _NEIGHBOURS + 1
    means[means > _GAP * np.median(spans)] = np.nan
    return means
