"""Sorts and checks the readings of the arm, and reports faults of the arm and its motors.

Each finding has a cause and a remedy. The module does not use ROS: the node passes in messages with their times, and
publishes the findings on /diagnostics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from youbot_dynamics.arrays import Indices, Vector
from youbot_dynamics.errors import doubled
from youbot_dynamics.estimation.motor_heat import HeatBelief
from youbot_dynamics.estimation.odometry import SignCheck

# Names of the counts.
OTHERS = "messages of other joints"
FOREIGN = "messages without a known joint"
PARTIAL = "messages that lack a joint"
TWICE = "messages that name a joint twice"
UNSTAMPED = "messages without a stamp"
NO_EFFORT = "messages without efforts"
NAN_EFFORT = "messages with an effort that is not a number"
NAN_POSITION = "messages with a position that is missing or not a number"
VOLTAGES_OFF_CLOCK = "voltages off the clock of the efforts"

KINDS = (OTHERS, FOREIGN, PARTIAL, TWICE, UNSTAMPED, NO_EFFORT, NAN_EFFORT, NAN_POSITION)
REFUSALS = (OTHERS, FOREIGN, PARTIAL, TWICE, UNSTAMPED)  # messages that are ignored completely

# Larger values are impossible for a joint, such as those of uninitialised memory.
_FARTHEST = 1e6  # [rad]; a wheel of the youBot has travelled 47 km then
_FASTEST = 1e4  # [rad/s]
_STRONGEST = 1e4  # [N m]; [V] or [degC] for messages of motors

_ALL_KNOWN = 50  # orders of names that are stored: a robot has two


@dataclass(frozen=True, eq=False)
class JointReading:
    """One message on n joints; NaN for missing values."""

    stamp: float  # [s]
    position: Vector  # (n,) [rad]
    velocity: Vector  # (n,) [rad/s]
    effort: Vector  # (n,) [N m]


class JointIntake:
    """Reads joint messages with any joints in any order.

    Args:
        joints: names of the n wanted joints.
        others: names of other joints of the robot: wheels, fingers.
    """

    def __init__(self, joints: Sequence[str], others: Sequence[str] = ()) -> None:
        self.joints = tuple(joints)
        self._others = frozenset(others)
        self._places: dict[tuple[str, ...], Indices | None] = {}
        self._counts = dict.fromkeys(KINDS, 0)
        self._names: dict[str, tuple[str, ...]] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of messages of each kind."""
        return dict(self._counts)

    @property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Names in the last message of a kind: all names if no joint is known, missing or duplicate joints."""
        return dict(self._names)

    def take(
        self,
        stamp: float,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
    ) -> JointReading | None:
        """Reading of a message; None if it has no stamp, lacks one of the joints, or names any joint twice.

        A stamp [s] of 0 or an invalid one counts as none. There may be fewer positions, velocities and efforts than
        names.
        """
        places = self._find(tuple(names))
        if places is None:
            return None
        if not (math.isfinite(stamp) and stamp != 0.0):
            self._counts[UNSTAMPED] += 1
            return None
        reading = JointReading(
            stamp,
            _picked(position, places, _FARTHEST),
            _picked(velocity, places, _FASTEST),
            _picked(effort, places, _STRONGEST),
        )
        if np.isnan(reading.position).any():
            self._counts[NAN_POSITION] += 1
        if np.isnan(reading.effort).any():
            self._counts[NO_EFFORT if len(effort) <= places.min() else NAN_EFFORT] += 1
        return reading

    def _find(self, names: tuple[str, ...]) -> Indices | None:
        """Indices of the joints in a message; None, with a count, if one is missing or duplicate."""
        if names not in self._places:
            if len(self._places) >= _ALL_KNOWN:
                self._places.clear()
            there = set(self.joints) <= set(names) and not doubled(names)
            self._places[names] = np.array([names.index(joint) for joint in self.joints]) if there else None
        places = self._places[names]
        if places is None:
            missing = tuple(joint for joint in self.joints if joint not in names)
            if not missing:
                self._counts[TWICE] += 1
                self._names[TWICE] = doubled(names)
            elif len(missing) < len(self.joints):
                self._counts[PARTIAL] += 1
                self._names[PARTIAL] = missing
            elif self._others.isdisjoint(names):
                self._counts[FOREIGN] += 1
                self._names[FOREIGN] = names
            else:
                self._counts[OTHERS] += 1
        return places


def _picked(values: Sequence[float], places: Indices, most: float) -> Vector:
    """Values (n,) at the indices (n,), NaN for missing ones and for magnitudes above `most`."""
    numbers = np.asarray(values, dtype=np.float64)
    try:
        picked: Vector = numbers[places]
    except IndexError:
        picked = np.array([numbers[k] if k < len(numbers) else np.nan for k in places])
    picked[~(np.abs(picked) <= most)] = np.nan
    return picked


WARNING, ERROR = "warning", "error"

SILENCE = 0.5  # [s] without a message of the arm after which it counts as silent
_FIRST = 5.0  # [s] allowed for a first message: DDS needs 3 s to discover a driver
_MEMORY = 10.0  # [s] that a finding about a message stays
_OFF_CLOCK = 0.5  # [s] tolerance between stamps and the clock
_ZEROS = 25  # messages in a row whose efforts are exactly 0
_SLOWEST = 0.1  # [rad/s] lowest speed for a comparison of signs: ten times the resolution of the driver's speeds
_SILENT_MOTOR = 1.0  # of the Coulomb torque: a joint with a higher load cannot stand without effort
_OPPOSITE = 0.5  # of an effort: tolerance between the torque error and minus twice the effort
_AGAINST = 0.3  # of the votes: 0.5 on a real youBot with a wrong sign, at most 0.02 with the right one
_VOTES = 25

# Count that increased within the last 10 s -> level, cause, remedy.
_RISING = {
    FOREIGN: (WARNING, "messages name none of the robot's joints", "check remappings, robot.driver.arm_joints"),
    PARTIAL: (WARNING, "messages of the arm lack a joint", "check the driver's configuration"),
    TWICE: (ERROR, "messages name a joint twice and are refused", "look for two drivers on one topic"),
    UNSTAMPED: (WARNING, "messages have no stamp", "let the driver fill header.stamp"),
    NO_EFFORT: (
        WARNING,
        "efforts are missing: friction and payload cannot be distinguished from load, temperatures stay constant",
        "use a driver that reports effort",
    ),
    NAN_EFFORT: (WARNING, "efforts are NaN or infinite; each was left out", "check the driver's currents"),
    NAN_POSITION: (WARNING, "positions are missing or NaN; each was left out", "check the driver and its encoders"),
    "late stamps": (
        WARNING,
        "stamps go backwards; those messages were dropped",
        "look for two publishers, or messages delayed on the way",
    ),
    "repeated stamps": (WARNING, "stamps repeat; those messages were dropped", "look for two publishers or relays"),
    "readings beyond the gate": (
        WARNING,
        "positions jump beyond what the motion allows; they were left out",
        "check encoders and collisions; if neither, raise gate or stamp jitter",
    ),
    "joints restarted": (
        WARNING,
        "the positions of a joint stayed elsewhere: its filter restarted there",
        "look for a restarted driver or a slipped encoder",
    ),
    "steps without a solution": (
        WARNING,
        "the arm's model found no solution: the filter restarted",
        "check robot.arm.*",
    ),
    "starts after a gap": (
        WARNING,
        "stamps jumped by more than a second: the filter restarted",
        "check the driver and its clock",
    ),
    VOLTAGES_OFF_CLOCK: (
        WARNING,
        "motor voltages come without an effort of the same time; they are left out",
        "check the clocks of both topics",
    ),
    "motor sensor readings beyond the gate": (
        WARNING,
        "motor voltages or temperatures contradict the heat model; they were left out",
        "check the sensors, temperature_sensor and robot.arm.*.motor",
    ),
    "motors restarted": (
        WARNING,
        "a motor's sensor kept another temperature: the estimate restarted there",
        "set cold_start false and start_temperature if the motors were warm",
    ),
    "motor messages refused": (
        WARNING,
        "motor messages lack joints or stamps",
        "check motor_voltage, motor_temperature",
    ),
}


@dataclass(frozen=True)
class Finding:
    """A problem with its cause and remedy."""

    name: str  # short and constant, so that a log can distinguish new findings from old ones
    level: str  # WARNING or ERROR
    cause: str  # what was observed
    remedy: str  # what to do about it

    def __str__(self) -> str:
        """Show cause and remedy in one line."""
        return f"{self.cause}: {self.remedy}"


class ArmHealth:
    """Monitors the messages of an arm of n joints.

    Args:
        joints: their names.
        coulomb: (n,) Coulomb torques [N m].
        topic: name of the topic, for the findings.
    """

    def __init__(self, joints: Sequence[str], coulomb: Vector, topic: str) -> None:
        self._joints, self._coulomb, self._topic = tuple(joints), coulomb, topic
        self.forget_signs()
        self._zeros = np.zeros(len(self._joints), dtype=int)
        self._last_heard, self._first_look = -np.inf, np.inf
        self._lag = 0.0
        self._counts: dict[str, int] = {}
        self._rose: dict[str, float] = {}

    def forget_signs(self) -> None:
        """Restart the check of the signs, after they were corrected."""
        self._signs = SignCheck(self._joints, _SLOWEST, _VOTES)
        self._opposed = np.zeros((len(self._joints), 2), dtype=int)

    def hear(self, reading: JointReading, now: float, clock: float) -> None:
        """Check a message of the arm at steady time `now` [s]; `clock` is the time that its stamp should have [s]."""
        self._last_heard = now
        self._lag = clock - reading.stamp
        self._zeros = np.where(reading.effort == 0.0, self._zeros + 1, 0)
        self._signs.update(reading.stamp, reading.position.tolist(), reading.velocity.tolist())

    def compare(self, effort: Vector, torque_error: Vector, speed: Vector) -> None:
        """Find joints whose effort has the wrong sign: the filter's torque error is then minus twice the effort.

        Args:
            effort: (n,) as reported [N m].
            torque_error: (n,) [N m].
            speed: (n,) [rad/s].
        """
        loaded = (np.abs(effort) > 2.0 * self._coulomb) & (np.abs(speed) > _SLOWEST)
        opposite = np.abs(torque_error + 2.0 * effort) < 2.0 * _OPPOSITE * np.abs(effort)
        self._opposed[:, 0] += loaded & ~opposite
        self._opposed[:, 1] += loaded & opposite

    def count(self, counts: Mapping[str, int], now: float) -> None:
        """Record which counts have increased since the last call, at steady time `now` [s]."""
        for name, value in counts.items():
            if value > self._counts.get(name, 0):
                self._rose[name] = now
            self._counts[name] = value

    def findings(self, now: float, load: Vector, names: Mapping[str, Sequence[str]]) -> tuple[Finding, ...]:
        """Findings at steady time `now` [s], the worst first.

        Args:
            now: steady time [s].
            load: (n,) torque of gravity on the joints [N m], NaN if unknown.
            names: count -> joints or names concerned.
        """
        result = list(self._of_silence(now, names))
        if not result:
            result += self._of_values(load)
        for name, (level, cause, remedy) in _RISING.items():
            if now - self._rose.get(name, -np.inf) < _MEMORY:
                about = f" ({', '.join(names[name])})" if names.get(name) else ""
                result.append(Finding(name, level, f"{cause}{about} [{self._counts[name]}]", remedy))
        return tuple(sorted(result, key=lambda finding: finding.level != ERROR))

    def _of_silence(self, now: float, names: Mapping[str, Sequence[str]]) -> Iterable[Finding]:
        self._first_look = min(self._first_look, now)
        silent = now - self._last_heard
        if silent <= SILENCE or (np.isinf(silent) and now < self._first_look + _FIRST):
            return
        since = "" if np.isinf(silent) else f" for {silent:.1f} s"
        heard = names.get(FOREIGN) or ()
        instead = f"; received {', '.join(heard)}" if heard else ""
        yield Finding(
            "silence",
            ERROR,
            f"no states of {self._joints[0]} to {self._joints[-1]} on {self._topic}{since}{instead}",
            "is the driver running and remapped, and has the robot an arm?",
        )

    def _of_values(self, load: Vector) -> Iterable[Finding]:
        contradicting = self._signs.contradicting()
        if contradicting:
            yield Finding(
                "sign trap",
                ERROR,
                f"position and velocity of {', '.join(contradicting)} move in opposite directions",
                "check the driver's signs, because with a wrong position all estimates are wrong; then call ~/reset",
            )
        against = self._opposed[:, 1] >= np.maximum(_VOTES, _AGAINST * self._opposed.sum(axis=1))
        if against.any():
            yield Finding(
                "effort sign",
                ERROR,
                f"efforts of {self._of(against)} seem to have the wrong sign",
                "invert them in the driver, then call ~/reset",
            )
        zero = self._zeros >= _ZEROS
        if zero.all():
            yield Finding(
                "zero efforts",
                WARNING,
                "efforts of all joints are exactly 0: motors off, or currents not read",
                "switch the motors on, or use a driver that reports effort",
            )
        else:
            dead = zero & (np.abs(load) > _SILENT_MOTOR * self._coulomb)
            if dead.any():
                yield Finding(
                    "zero effort",
                    WARNING,
                    f"effort of {self._of(dead)} is exactly 0 under load",
                    "check the current reading of that motor",
                )
        if abs(self._lag) > _OFF_CLOCK:
            side = "behind" if self._lag > 0.0 else "ahead of"
            yield Finding(
                "stale stamps",
                WARNING,
                f"stamps are {abs(self._lag):.1f} s {side} the clock",
                "synchronise the clocks; with a bag or a simulation set use_sim_time",
            )

    def _of(self, which: NDArray[np.bool_]) -> str:
        return ", ".join(name for name, concerned in zip(self._joints, which, strict=True) if concerned)


def heat_findings(
    joints: Sequence[str],
    beliefs: Sequence[HeatBelief],
    limits: Sequence[float],
    seconds: Sequence[float],
    margin: float,
) -> tuple[Finding, ...]:
    """Findings on motors that are hot or will soon be.

    Args:
        joints: names.
        beliefs: their temperatures.
        limits: of the windings [degC].
        seconds: time until those are reached under the present load.
        margin: a motor is hot within this distance of its limit [K].
    """
    findings = []
    for name, belief, limit, remaining in zip(joints, beliefs, limits, seconds, strict=True):
        if belief.winding < limit - margin:
            continue
        temperature = f"winding of {name} at {belief.winding:.0f} +- {belief.winding_deviation:.0f} degC"
        if belief.winding >= limit:
            cause, level = f"{temperature} is beyond its limit of {limit:.0f}", ERROR
        else:
            cause, level = f"{temperature} is within {margin:g} K of its limit of {limit:.0f}", WARNING
        when = f"in {remaining:.0f} s at this load" if np.isfinite(remaining) else "not at this load"
        remedy = "unload the joint and let it cool" + ("" if belief.winding >= limit else f"; limit reached {when}")
        findings.append(Finding(f"hot {name}", level, cause, remedy))
    return tuple(sorted(findings, key=lambda finding: finding.level != ERROR))
