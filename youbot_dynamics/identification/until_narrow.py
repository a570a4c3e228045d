"""Drive until intervals are narrow enough: after each stretch of motion, the intervals so far choose the next one.

A stretch is drives to and fro along single axes, interleaved, so that blocks of time left out by the jackknife hold
every axis. It begins and ends at rest in the same place. The half-width of an interval falls with the square root of
the time along the axis that shows the value, which predicts the time that is left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import IdentificationError, ParameterError, did_you_mean
from youbot_dynamics.identification.excitation import check_size
from youbot_dynamics.identification.finding import CASES, Finding
from youbot_dynamics.identification.least_squares import Kind, with_unit
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
    "lateral": (GEOMETRY, ((("lateral_factor",), "y"),)),
}
_NARROWEST, _WIDEST = 0.001, 50.0  # wishes [%]; values with wider intervals are not identified
_LONG, _SHORT = 2.6, 1.4  # duration of a drive along the axis of an unmet wish, and along others [s]
_SHARE = 0.8  # share of the largest speeds and accelerations that is used
_TURN = 1.5  # largest turn [rad]
_REST = 0.5  # at the end of a stretch [s]
_TRIED = 0.1  # share of the longest time after which a prediction may end the drive: early intervals are uncertain
_MOTIONS = {"x": "forward and back", "y": "sideways", "yaw": "turns"}
_HOPELESS = (Kind.NOT_MEASURED, Kind.WRONG_SIGNALS)  # reasons that more of the same motion does not change


@dataclass(frozen=True)
class Wished:
    """A value whose interval is to be narrow."""

    name: str  # in the wish
    stage: str  # that finds it
    keys: tuple[str, ...]  # one of which its row has in the findings of the stage
    axis: str  # whose motion shows it
    share: float  # largest half-width of the 95 % interval over the value

    def is_of(self, finding: Finding) -> bool:
        """Whether a finding is this value."""
        return finding.row.key in self.keys and finding.row.of.get("axis", self.axis) == self.axis


@dataclass(frozen=True)
class Seen:
    """What is known of a wished value so far."""

    wished: Wished
    finding: Finding | None = None  # None where there are too few data

    @property
    def share(self) -> float:
        """Half-width of the 95 % interval over the value; infinite where it is unknown."""
        if self.finding is None or not self.finding.estimate.value:
            return math.inf
        low, high = self.finding.estimate.interval
        share = 0.5 * abs((high - low) / self.finding.estimate.value)
        return share if math.isfinite(share) else math.inf

    @property
    def met(self) -> bool:
        """Whether it is identified and its interval is as narrow as wished."""
        return self.finding is not None and self.finding.identified and self.share <= self.wished.share

    @property
    def hopeless(self) -> bool:
        """Whether more motion does not help."""
        reason = None if self.finding is None else self.finding.estimate.reason
        return reason is not None and reason.kind in _HOPELESS

    @property
    def in_words(self) -> str:
        """Value, half-width and wish."""
        wish = f"wish {100.0 * self.wished.share:g} %{', met' if self.met else ''}"
        if self.finding is None:
            return f"{self.wished.name} {CASES['axis'][self.wished.axis]}: too little data ({wish})"
        one = self.finding.estimate
        if not math.isfinite(self.share):
            return f"{self.finding.row.in_words}: {one.reason.kind.in_words if one.reason else 'no interval'} ({wish})"
        value = with_unit(f"{one.value:.4g}", one.unit)
        return f"{self.finding.row.in_words} {value} +- {100.0 * self.share:.2g} % ({wish})"


class Next(Enum):
    """What follows a stretch."""

    DRIVE = "drive on"
    MET = "the wish is met"
    TOO_SLOW = "too slow"
    NOT_OBSERVABLE = "not observable"


@dataclass(frozen=True)
class Plan:
    """What follows, and the motion of the next stretch."""

    next: Next
    drives: tuple[tuple[str, float], ...] = ()  # axis and duration of each drive to and fro, one way [s], in order
    left: float = math.inf  # predicted time to the wish [s]; infinite where it is unknown

    @property
    def in_words(self) -> str:
        """The motion of the next stretch and the time that is left."""
        times = {axis: 2.0 * sum(time for one, time in self.drives if one == axis) for axis in AXES}
        motion = ", ".join(f"{_MOTIONS[axis]} {time:.0f} s" for axis, time in times.items() if time)
        return f"next: {motion}" + (f"; about {self.left:.0f} s left" if math.isfinite(self.left) else "")


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
    """
    wished: dict[str, tuple[Wished, ...]] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([A-Za-z_]+)\s+([0-9]*\.?[0-9]+)\s*%\s*", part)
        name = found[1] if found else (part.split() or [""])[0]
        if found is None or name not in _WISHES or name in wished:
            names = ", ".join(_WISHES)
            expected = f"NAME NUMBER %, with commas, each NAME once: {names}; such as 'delay 2 %, radius 0.1 %'"
            remedy = did_you_mean(name.lower(), list(_WISHES)) if name not in _WISHES else ""
            raise ParameterError("--until", got=repr(part.strip()), expected=expected, remedy=remedy)
        percent = float(found[2])
        if not _NARROWEST <= percent <= _WIDEST:
            raise ParameterError(f"--until {name}", got=f"{percent:g} %", expected=f"{_NARROWEST:g} to {_WIDEST:g} %")
        stage, values = _WISHES[name]
        free = free_axes(base)
        wished[name] = tuple(Wished(name, stage, keys, axis, percent / 100) for keys, axis in values if axis in free)
        if not wished[name]:
            raise ParameterError(f"--until {name}", got="a base that cannot move sideways", remedy="leave it out")
    return tuple(one for several in wished.values() for one in several)


def free_axes(base: Base) -> tuple[str, ...]:
    """Axes along which a base can move."""
    return tuple(axis for axis, free in zip(AXES, base.geometry.mecanum().free_axes, strict=True) if free)


def plan(seen: Sequence[Seen], driven: Mapping[str, float], longest: float) -> Plan:
    """Choose what follows.

    Args:
        seen: the wished values.
        driven: each axis along which the base can move -> time for which it was driven [s].
        longest: longest time of all drives [s].
    """
    unmet, so_far = [one for one in seen if not one.met], sum(driven.values())
    if not unmet:
        return Plan(Next.MET, left=0.0)
    if any(one.hopeless for one in unmet):
        return Plan(Next.NOT_OBSERVABLE)
    needed: dict[str, float] = {}  # axis -> more time along it [s]
    for one in unmet:
        axis = one.wished.axis
        more = driven[axis] * ((one.share / one.wished.share) ** 2 - 1.0) if driven[axis] else math.inf
        needed[axis] = max(more, _SHORT, needed.get(axis, 0.0))
    # Geometry is fitted as a whole, so the other axes must move as well; at first, delays need less than geometry.
    geometry = {one.wished.axis for one in unmet if one.wished.stage == GEOMETRY}
    longer = needed.keys() if so_far or not geometry else geometry
    moving = [axis for axis in driven if geometry or axis in needed]
    one_round = tuple((axis, _LONG if axis in longer else _SHORT) for axis in moving)
    rounds = max(needed.values()) / (2.0 * _LONG)
    left = rounds * 2.0 * sum(time for _, time in one_round)
    if so_far >= longest or (so_far >= _TRIED * longest and so_far + left > longest):
        return Plan(Next.TOO_SLOW, left=left)
    # Early intervals are uncertain, so a stretch is at most half as long as all before it.
    most = so_far / (4.0 * sum(time for _, time in one_round)) if so_far else (2.0 if geometry else 1.0)
    count = max(1, math.floor(min(rounds + 1.0, most)))
    return Plan(Next.DRIVE, one_round * count, left)


def stretch(drives: Sequence[tuple[str, float]], base: Base, bounds: Bounds) -> Program:
    """Program of a stretch: drives along an axis and back, each of a duration [s] one way, and a rest.

    Raises:
        ProgramError: the limits of the base allow no such motion.
    """
    limits, jacobian = base.limits, base.geometry.mecanum().inverse_matrix
    along = min(limits.acceleration, limits.deceleration)
    turning = min(limits.angular_acceleration, limits.angular_deceleration)
    rows: list[Vector] = []
    for axis, duration in drives:
        k = AXES.index(axis)
        farthest, ramp = (_TURN, _SHARE * turning) if axis == "yaw" else (bounds.room, _SHARE * along)
        fastest = _SHARE * limits.wheel_speed / float(np.abs(jacobian[:, k]).max())
        # Of a trapezoid with these ramps: the speed at which it is as long as the room, if it can be that long.
        root = duration**2 - 4.0 * farthest / ramp
        speed = min(fastest, 0.5 * ramp * (duration - math.sqrt(max(root, 0.0))))
        time = (np.arange(round(duration / bounds.dt)) + 0.5) * bounds.dt
        way = np.zeros((len(time), 3))
        way[:, k] = np.minimum(ramp * np.minimum(time, time[::-1]), speed)
        rows += [way, -way]
    rows.append(np.zeros((round(_REST / bounds.dt), 3)))
    program = Program(EXCITATION, np.vstack(rows), bounds.dt).scaled(bounds.time_scale)
    program.check(base)
    return program


def look(recording: Path, robot: Robot, wished: Sequence[Wished], options: Options) -> tuple[Seen, ...]:
    """What a recording of all stretches so far shows of the wished values, by the stages of `youbot identify`.

    Raises:
        RecordingError: it lacks a signal that a value needs; the message names it.
    """
    try:
        stages = tuple(dict.fromkeys(one.stage for one in wished))
        findings = identify(recording, robot, options, only=stages).result.findings
    except IdentificationError:  # too little data so far
        findings = ()
    return tuple(Seen(one, next(filter(one.is_of, findings), None)) for one in wished)


def check_signals(recording: Path, robot: Robot, wished: Sequence[Wished], options: Options) -> None:
    """Refuse a wish that a robot cannot fulfil, by a recording of it at rest.

    Raises:
        RecordingError: no poses of the base for its geometry, or no states of the wheels.
    """
    bag = open_recording(recording, 0, robot, options).bag()
    find_wheel_states(bag, robot.driver.wheel_joints, options.topics)
    if any(one.stage == GEOMETRY for one in wished):
        find_pose_topic(bag, options.topics, options.pose_topic)


def drive_until(
    wished: Sequence[Wished],
    base: Base,
    bounds: Bounds,
    drive: Callable[[Program], bool],
    see: Callable[[], Sequence[Seen] | None],
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
    driven = dict.fromkeys(free_axes(base), 0.0)
    following = plan([Seen(one) for one in wished], driven, bounds.longest)
    while following.next is Next.DRIVE:
        if not drive(stretch(following.drives, base, bounds)):
            return None
        for axis, time in following.drives:
            driven[axis] += 2.0 * time * bounds.time_scale
        if (seen := see()) is None:
            return None
        following, so_far = plan(seen, driven, bounds.longest), sum(driven.values())
        found = "; ".join(one.in_words for one in seen)
        tell(f"{so_far:.0f} s driven: {found}; {_ending(following, seen, so_far, bounds)}")
    return following


def _ending(following: Plan, seen: Sequence[Seen], so_far: float, bounds: Bounds) -> str:
    """What follows in words, with the reason where it is an end."""
    if following.next is Next.TOO_SLOW:
        known = math.isfinite(following.left)
        when = f"after about {so_far + following.left:.0f} s" if known else "at no foreseeable time"
        return f"stopped: it would be met {when}, the longest time is {bounds.longest:g} s (--duration)"
    if following.next is Next.NOT_OBSERVABLE:
        return f"stopped: {'; '.join(one.finding.estimate.verdict for one in seen if one.hopeless and one.finding)}"
    return following.in_words if following.next is Next.DRIVE else following.next.value
