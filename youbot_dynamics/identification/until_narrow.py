"""Drive until intervals are narrow enough: after each stretch of motion, the intervals so far choose the next one.

A stretch is drives to and fro: for delays along single axes, for the geometry along arcs, forward and sideways with a
turn to either side, so that each block of time shows all of it. It begins and ends at rest in the same place. The
half-width of an interval falls with the square root of the time of the motion that shows the value, which predicts the
time that is left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import IdentificationError, ParameterError, did_you_mean
from youbot_dynamics.identification.excitation import check_size
from youbot_dynamics.identification.finding import CASES, Finding
from youbot_dynamics.identification.least_squares import WIDEST_SHARE, Kind, with_unit
from youbot_dynamics.identification.pipeline import identify
from youbot_dynamics.identification.reading import Options, find_pose_topic, find_wheel_states, open_recording
from youbot_dynamics.resources import EXCITATION
from youbot_dynamics.robot import Robot
from youbot_dynamics.robot_base import Base

AXES = tuple(CASES["axis"])
GEOMETRY = "calibration"
# Name in a wish -> stage, and of each value the keys that its row may have in the findings, and the axis that shows it
_WISHES: dict[str, tuple[str, tuple[tuple[tuple[str, ...], str], ...]]] = {
    "delay": ("delay", tuple((("effective_{axis}",), axis) for axis in AXES)),
    "radius": (GEOMETRY, ((("wheel_radius",), "x"),)),
    "lever": (GEOMETRY, ((("lever", "track", "wheel_distance"), "yaw"),)),
    "track": (GEOMETRY, ((("track",), "yaw"),)),
    "lateral": (GEOMETRY, ((("lateral_factor",), "y"),)),
}
_NARROWEST, _WIDEST = 0.001, 100.0 * WIDEST_SHARE  # wishes [%]; values with wider intervals are not identified
_STRAIGHT = 2.6  # duration of a drive along an axis one way [s]
_ARCS = (("x", 2.6), ("y", 2.0))  # axis and duration one way of the arcs of a round [s]
_ARC = 0.8  # their turn [rad] over the way [m]
_FIRST_ARCS, _LEAST = 2.0, 2.0  # rounds of arcs in the first stretch; least time that an unmet wish needs [s]
_SHARE = 0.8  # share of the largest speeds and accelerations that is used
_TURN = 1.5  # largest turn [rad]
_REST = 0.5  # at the end of a stretch [s]
_TRIED = 0.1  # share of the longest time after which a prediction may end the drive: early intervals are uncertain
_MOTIONS = {"x": "forward and back", "y": "to the sides", "yaw": "in turns"}
_HOPELESS = (Kind.NOT_MEASURED, Kind.WRONG_SIGNALS, Kind.NOT_OF_THE_ROBOT)  # reasons that more motion does not change


@dataclass(frozen=True)
class Wished:
    """A value whose interval is to be narrow, and what is known of it so far."""

    name: str  # in the wish
    stage: str  # that finds it
    keys: tuple[str, ...]  # one of which its row has in the findings of the stage
    axis: str  # whose motion shows it
    most: float  # largest half-width of the 95 % interval over the value
    finding: Finding | None = None  # None where there are too few data

    def with_findings(self, findings: Sequence[Finding]) -> Wished:
        """The same with its finding among those of an identification."""
        mine = (one for one in findings if one.row.key in self.keys and one.row.of.get("axis", self.axis) == self.axis)
        return replace(self, finding=next(mine, None))

    @property
    def share(self) -> float:
        """Half-width of the 95 % interval over the value; infinite where it is unknown."""
        if self.finding is None or not self.finding.estimate.value:
            return math.inf
        share = 0.5 * float(np.ptp(self.finding.estimate.interval)) / abs(self.finding.estimate.value)
        return share if math.isfinite(share) else math.inf

    @property
    def met(self) -> bool:
        """Whether it is identified and its interval is as narrow as wished."""
        return self.finding is not None and self.finding.identified and self.share <= self.most

    @property
    def hopeless(self) -> str:
        """Why more motion does not help, "" if it may."""
        reason = None if self.finding is None else self.finding.estimate.reason
        return reason.text if reason is not None and reason.kind in _HOPELESS else ""

    @property
    def in_words(self) -> str:
        """Value, half-width and wish."""
        wish = f"(wish {100.0 * self.most:g} %{', met' if self.met else ''})"
        if self.finding is None:
            return f"{self.name} {CASES['axis'][self.axis]}: too little data {wish}"
        one, width = self.finding.estimate, f"+- {100.0 * self.share:.2g} %"
        if not math.isfinite(self.share):
            width = one.reason.kind.in_words if one.reason else "without an interval"
        return f"{self.finding.row.in_words} {with_unit(f'{one.value:.4g}', one.unit)} {width} {wish}"


class Next(Enum):
    """What follows a stretch."""

    DRIVE = "drive"
    MET = "met"
    TOO_SLOW = "too slow"
    NOT_OBSERVABLE = "not observable"


class Drive(NamedTuple):
    """A drive along an axis or an arc, and back."""

    axis: str
    duration: float  # one way [s]
    turn: float = 0.0  # of an arc over its way [rad/m]

    def shows(self, one: Wished) -> bool:
        """Whether it narrows the interval of a value."""
        if one.stage == GEOMETRY:
            return self.turn != 0.0
        return one.axis == self.axis or (one.axis == "yaw" and self.turn != 0.0)


@dataclass(frozen=True)
class Plan:
    """What follows, and the motion of the next stretch."""

    next: Next
    drives: tuple[Drive, ...] = ()  # in order
    left: float = math.inf  # predicted time to the wish [s]; infinite where it is unknown


@dataclass(frozen=True)
class Bounds:
    """Bounds of all stretches together.

    Raises:
        ProgramError: a time or a room out of range.
    """

    longest: float  # time of all drives [s]
    room: float = 1.0  # largest distance from the start [m]
    dt: float = 0.02  # time each line is held [s]
    time_scale: float = 1.0  # factor by which the motion is slowed down

    def __post_init__(self) -> None:
        """Check them."""
        check_size(self.longest, self.room)


def read_wish(text: str, base: Base) -> tuple[Wished, ...]:
    """Parse a wish such as "delay 2 %, radius 0.1 %" for a base.

    Raises:
        ParameterError: an unknown or repeated name, no percentage, one out of range, or a value that the base lacks.
        ModelError: a steered wheel.
    """
    base.geometry.mecanum().refuse_steered("--until")
    wished: dict[str, tuple[Wished, ...]] = {}
    geometry, free = base.geometry, free_axes(base)
    lacking = {"track": geometry.track == 0.0, "lateral": geometry.track > 0.0 or geometry.wheel_distance > 0.0}
    names = [name for name in _WISHES if not lacking.get(name)]
    for part in text.split(","):
        found = re.fullmatch(r"\s*([A-Za-z_]+)\s+([0-9]*\.?[0-9]+)\s*%\s*", part)
        name = found[1] if found else (part.split() or [""])[0]
        if found is None or name not in names or name in wished:
            expected = f"NAME NUMBER %, with commas, each NAME once: {', '.join(names)}; such as 'delay 2 %'"
            remedy = did_you_mean(name.lower(), names) if name not in _WISHES else ""
            remedy = f"this base has no {name}" if lacking.get(name) else remedy
            raise ParameterError("--until", got=repr(part.strip()), expected=expected, remedy=remedy)
        percent = float(found[2])
        if not _NARROWEST <= percent <= _WIDEST:
            raise ParameterError(f"--until {name}", got=f"{percent:g} %", expected=f"{_NARROWEST:g} to {_WIDEST:g} %")
        stage, values = _WISHES[name]
        wished[name] = tuple(Wished(name, stage, keys, axis, percent / 100) for keys, axis in values if axis in free)
    return tuple(one for several in wished.values() for one in several)


def free_axes(base: Base) -> tuple[str, ...]:
    """Axes along which a base can move."""
    return tuple(axis for axis, free in zip(AXES, base.geometry.mecanum().free_axes, strict=True) if free)


def plan(seen: Sequence[Wished], driven: Sequence[Drive], longest: float, axes: Sequence[str]) -> Plan:
    """Choose what follows.

    Args:
        seen: the wished values.
        driven: all drives so far.
        longest: longest time of all drives [s].
        axes: those along which the base can move.
    """
    unmet, so_far = [one for one in seen if not one.met], time_of(driven)
    if not unmet:
        return Plan(Next.MET, left=0.0)
    if any(one.hopeless for one in unmet):
        return Plan(Next.NOT_OBSERVABLE)
    arcs, straight = 0.0, dict[str, float]()  # more time that is needed [s]
    for one in unmet:
        useful = [drive for drive in driven if drive.shows(one)]
        more = max(time_of(useful) * ((one.share / one.most) ** 2 - 1.0), _LEAST) if useful else math.inf
        if one.stage == GEOMETRY:
            arcs = max(arcs, more)
        else:
            straight[one.axis] = more
    # Arcs narrow delays too: straight drives are for those that are farther from their wish.
    lines = [Drive(axis, _STRAIGHT) for axis, more in straight.items() if more > arcs]
    bends = [Drive(axis, duration, _ARC) for axis, duration in _ARCS if arcs and axis in axes]
    one_round = [*bends, *lines]
    counts = [straight[line.axis] / time_of([line]) for line in lines] + ([arcs / time_of(bends)] if bends else [])
    left = max(counts) * time_of(one_round)
    if so_far >= longest or (so_far >= _TRIED * longest and so_far + left > longest):
        return Plan(Next.TOO_SLOW, left=left)
    # Early intervals are uncertain, so a stretch is at most half as long as all before it.
    most = 0.5 * so_far / time_of(one_round) if so_far else (_FIRST_ARCS if bends else 1.0)
    count = max(1, math.floor(min(max(counts) + 1.0, most)))
    # Arcs turn to one side and the other in turn.
    before = sum(1 for drive in driven if drive.turn and drive.axis == _ARCS[0][0])
    sides = [(1.0, -1.0)[(before + k) % 2] for k in range(count)]
    drives = tuple(drive._replace(turn=side * drive.turn) for side in sides for drive in one_round)
    if not so_far and bends and "yaw" in straight and "y" not in axes:
        drives += (Drive("yaw", _STRAIGHT),)  # two wheels turn one way in an arc: friction hardly acts against the turn
    return Plan(Next.DRIVE, drives, left)


def time_of(drives: Sequence[Drive]) -> float:
    """Time of drives, there and back [s]."""
    return 2.0 * sum(drive.duration for drive in drives)


def stretch(drives: Sequence[Drive], base: Base, bounds: Bounds) -> Program:
    """Program of a stretch: drives to and fro, and a rest.

    Raises:
        ProgramError: the limits of the base allow no such motion.
    """
    limits, jacobian = base.limits, base.geometry.mecanum().inverse_matrix
    along = _SHARE * min(limits.acceleration, limits.deceleration)
    turning = _SHARE * min(limits.angular_acceleration, limits.angular_deceleration)
    rows: list[Vector] = []
    for drive in drives:
        direction = np.zeros(3)
        direction[AXES.index(drive.axis)] = 1.0
        direction[2] += drive.turn
        farthest, ramp = (_TURN, turning) if drive.axis == "yaw" else (bounds.room, along)
        if drive.turn:
            ramp = min(ramp, turning / abs(drive.turn))
        fastest = _SHARE * limits.wheel_speed / float(np.abs(jacobian @ direction).max())
        # Of a trapezoid with these ramps: the speed at which it is as long as the room, if it can be that long.
        root = drive.duration**2 - 4.0 * farthest / ramp
        speed = min(fastest, 0.5 * ramp * (drive.duration - math.sqrt(max(root, 0.0))))
        time = (np.arange(round(drive.duration / bounds.dt)) + 0.5) * bounds.dt
        way = np.minimum(ramp * np.minimum(time, time[::-1]), speed)[:, None] * direction
        rows += [way, -way]
    rows.append(np.zeros((round(_REST / bounds.dt), 3)))
    program = Program(EXCITATION, np.vstack(rows), bounds.dt).scaled(bounds.time_scale)
    program.check(base)
    return program


def look(recording: Path, robot: Robot, wished: Sequence[Wished], options: Options) -> tuple[Wished, ...]:
    """What a recording of all stretches so far shows of the wished values, by the stages of `youbot identify`.

    Raises:
        RecordingError: it lacks a signal that a value needs; the message names it.
    """
    try:
        stages = tuple(dict.fromkeys(one.stage for one in wished))
        findings = identify(recording, robot, options, only=stages).result.findings
    except IdentificationError:  # too little data so far
        findings = ()
    return tuple(one.with_findings(findings) for one in wished)


def check_signals(recording: Path, robot: Robot, wished: Sequence[Wished], options: Options) -> None:
    """Refuse a wish that a robot cannot fulfil, by a recording of it at rest.

    Raises:
        RecordingError: no poses of the base for its geometry, or no states of the wheels.
    """
    bag = open_recording(recording, 0, robot, options).bag()
    joints = robot.driver.wheel_joints
    bag.joint_states(find_wheel_states(bag, joints, options.topics), joints)  # a topic that is found by its name
    if any(one.stage == GEOMETRY for one in wished):
        find_pose_topic(bag, options.topics, options.pose_topic)


def drive_until(
    wished: Sequence[Wished],
    base: Base,
    bounds: Bounds,
    drive: Callable[[Program], bool],
    see: Callable[[], Sequence[Wished] | None],
    tell: Callable[[str], None] = lambda line: None,
) -> Plan | None:
    """Drive stretch after stretch, until the wish is met or cannot be met.

    Args:
        wished: values with their wishes.
        base: its limits.
        bounds: of all stretches.
        drive: drives a program from rest to rest; False if it was interrupted.
        see: what all stretches so far show, as `look`; None if it was interrupted.
        tell: gets a line after each stretch.

    Returns:
        The last plan, which says how it ended; None after an interruption.
    """
    axes, driven, longest = free_axes(base), list[Drive](), bounds.longest / bounds.time_scale
    following = plan(wished, driven, longest, axes)
    while following.next is Next.DRIVE:
        if not drive(stretch(following.drives, base, bounds)):
            return None
        driven += following.drives
        if (seen := see()) is None:
            return None
        following = plan(seen, driven, longest, axes)
        following = replace(following, left=following.left * bounds.time_scale)
        found, so_far = "; ".join(one.in_words for one in seen), time_of(driven) * bounds.time_scale
        tell(f"{so_far:.0f} s driven: {found}; {_ending(following, seen, so_far, bounds)}")
    return following


def _ending(following: Plan, seen: Sequence[Wished], so_far: float, bounds: Bounds) -> str:
    """What follows in words, with the reason where it is an end."""
    left = f"about {following.left:.0f} s" if math.isfinite(following.left) else "an unknown time"
    if following.next is Next.TOO_SLOW:
        return f"stopped after {so_far:.0f} s: it takes {left} more, and at most {bounds.longest:g} s are allowed"
    if following.next is Next.NOT_OBSERVABLE:
        return f"stopped: {'; '.join(filter(None, (one.hopeless for one in seen)))}"
    if following.next is Next.MET:
        return "the wish is met"
    motions = dict.fromkeys(f"{_MOTIONS[drive.axis]}{' in arcs' if drive.turn else ''}" for drive in following.drives)
    return f"next {bounds.time_scale * time_of(following.drives):.0f} s {', '.join(motions)}; {left} left"
