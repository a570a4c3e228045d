"""Faults on demand: which there are, how they are written, and what they do to commands and messages.

A text of faults, several apart by semicolons, each a name and its options in any order; empty for none:

    frozen_encoder joint=wheel_joint_fl after=2.0 lasting=1.5; lost share=0.1
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import ParameterError, did_you_mean
from youbot_dynamics.parameters import Parameter
from youbot_dynamics.robot import Driver
from youbot_dynamics.simulation.driver_reports import JointReport

_THING = "parameter fault"

FOREVER = 1e9  # [s]
BASE, ARM, ODOMETRY, COMMANDS = "base", "arm", "odom", "commands"
CHANNELS = (BASE, ARM, ODOMETRY)
STATES = "states"  # all three

_JOINT = Parameter("joint", "", "Name of a wheel or arm joint, as the driver writes it.")
_WHEEL = Parameter("joint", "", "Name of a wheel joint, as the driver writes it.")
_OF = Parameter(
    "of",
    STATES,
    "Which messages: joint states of the base, of the arm, the driver's odometry, all of these, or commands to it.",
    choices=(STATES, *CHANNELS, COMMANDS),
)
_AFTER = Parameter("after", 0.0, "Start, counted from the setting of the fault.", unit="s", low=0.0, high=1e6)
_LASTING = Parameter("lasting", FOREVER, "Duration; without end if not given.", unit="s", low=0.0, high=FOREVER)


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault."""

    name: str  # as it is written
    description: str  # what it does
    options: tuple[Parameter, ...] = ()  # its own, besides `after` and `lasting`; `joint` without default must be given

    @property
    def all_options(self) -> dict[str, Parameter]:
        """Options by name, those of every fault included."""
        return {option.name: option for option in (_AFTER, _LASTING, *self.options)}


KINDS = (
    FaultKind(
        "frozen_encoder",
        "The joint reports its last position and speed 0; its motion meanwhile is never counted.",
        (_JOINT,),
    ),
    FaultKind(
        "jumping_encoder",
        "The joint's position jumps up or down, again after each `every`, and keeps the offset.",
        (
            _JOINT,
            Parameter("size", 1.0, "How far.", unit="rad", low=1e-6, high=1e6),
            Parameter("every", FOREVER, "From one jump to the next.", unit="s", low=0.02, high=FOREVER),
        ),
    ),
    FaultKind("dead_wheel", "The wheel gets no speed and reports speed 0: dead or stuck.", (_WHEEL,)),
    FaultKind(
        "reversed_wheel",
        "The driver inverts the direction of the wheel, in commands and in readings.",
        (_WHEEL,),
    ),
    FaultKind(
        "off_pattern",
        "The joint reports `factor` times its motion, like a wheel that slips or has another radius.",
        (_JOINT, Parameter("factor", 1.2, "Reported over true turning.", unit="1", low=-10.0, high=10.0)),
    ),
    FaultKind(
        "lost",
        "Messages are lost, each with the same probability.",
        (Parameter("share", 0.1, "Share of messages.", unit="1", low=0.0, high=1.0), _OF),
    ),
    FaultKind(
        "late",
        "Messages come late, each with the same probability: after newer ones, with their original stamps.",
        (
            Parameter("delay", 0.1, "How late.", unit="s", low=0.0, high=60.0),
            Parameter("share", 1.0, "Share of messages.", unit="1", low=0.0, high=1.0),
            _OF,
        ),
    ),
    FaultKind(
        "restart",
        "The driver restarts: it stops the base, neither receives nor sends, then counts wheels and odometry "
        "from zero.",
        (Parameter("lasting", 2.0, "Time until it sends again.", unit="s", low=0.0, high=600.0),),
    ),
    FaultKind(
        "clock_jump",
        "The driver's clock jumps: all later stamps have this error.",
        (Parameter("size", 1.0, "Added to each stamp; negative for back.", unit="s", low=-1e6, high=1e6),),
    ),
    FaultKind("missing_effort", "The efforts are left out of the arm's messages (and of the base's)."),
    FaultKind(
        "zero_effort",
        "The efforts are zero: those of one joint, or of all.",
        (Parameter("joint", "all", "Name of a joint, or all."),),
    ),
    FaultKind(
        "duplicate_names",
        "The message contains the joint twice, the second time with zeros.",
        (_JOINT,),
    ),
    FaultKind("partial_names", "The joint is left out of its message.", (_JOINT,)),
)

_BY_NAME = {kind.name: kind for kind in KINDS}
_WHEELS_ALONE = ("dead_wheel", "reversed_wheel")


@dataclass(frozen=True)
class Fault:
    """One fault with its options."""

    kind: str  # its name, one of KINDS
    after: float  # from when it is set to its begin [s]
    lasting: float  # [s]
    joint: str  # the joint it is about; empty where it is about none
    of: str  # which messages; empty where it is about none in particular
    numbers: Mapping[str, float]  # its other options


def parse_faults(text: str, driver: Driver) -> tuple[Fault, ...]:
    """Faults of a text as the head of this file describes it, on the joints of `driver`.

    Raises:
        ParameterError: an unknown fault, option or joint (with the nearest known one), an option twice, without its
            value or out of its range.
    """
    return tuple(_fault(words, driver) for part in text.split(";") if (words := part.split()))


def _fault(words: list[str], driver: Driver) -> Fault:
    name, *options_given = words
    if name not in _BY_NAME:
        raise ParameterError(_THING, got=f"'{name}'", remedy=_nearest(name, _BY_NAME, "faults"))
    kind = _BY_NAME[name]
    options = kind.all_options
    given: dict[str, str] = {}
    for word in options_given:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise ParameterError(f"{_THING}, {name}", got=f"'{word}'", expected="options such as after=1.5")
        if key not in options:
            raise ParameterError(f"{_THING}, {name}", got=f"option '{key}'", remedy=_nearest(key, options, "options"))
        if key in given:
            raise ParameterError(f"{_THING}, {name}", got=f"'{key}' twice", expected="each option once")
        given[key] = value
    values = {key: _value(kind, option, given.get(key), driver) for key, option in options.items()}
    texts = {key: str(values.pop(key, "")) for key in ("joint", "of")}
    numbers = {key: float(value) for key, value in values.items()}
    return Fault(name, numbers.pop("after"), numbers.pop("lasting"), texts["joint"], texts["of"], numbers)


def _value(kind: FaultKind, option: Parameter, text: str | None, driver: Driver) -> float | str:
    thing = f"{_THING}, {option.name} of {kind.name}"
    if option.name == "joint":
        joints = driver.wheel_joints if kind.name in _WHEELS_ALONE else (*driver.wheel_joints, *driver.arm_joints)
        if option.default and text in (None, option.default):
            return str(option.default)
        if text not in joints:
            got = "nothing" if text is None else f"'{text}'"
            raise ParameterError(thing, got=got, remedy=_nearest(text or "", joints, "joints"))
        return text
    given = option.default if text is None else text if isinstance(option.default, str) else _number(thing, text)
    try:
        return option.check(given)  # type: ignore[return-value]
    except ParameterError as problem:
        raise ParameterError(thing, got=problem.got, expected=problem.expected) from None


def _number(thing: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(thing, got=f"'{text}'", expected="a number")
    return value


def _nearest(name: str, known: Iterable[str], what: str) -> str:
    table = list(known)
    return f"{did_you_mean(name, table)} known {what}: {', '.join(table)}".strip()


Item = TypeVar("Item")

# Reported over true turning of a joint, and given over commanded speed of a wheel.
_READ = {"frozen_encoder": 0.0, "dead_wheel": 0.0, "reversed_wheel": -1.0}
_DRIVEN = {"dead_wheel": 0.0, "reversed_wheel": -1.0}


class ActiveFaults:
    """Faults that were set at one time [s], and which of them act at another."""

    def __init__(self, faults: Sequence[Fault], set_at: float) -> None:
        self.faults = tuple(faults)
        self._set_at = set_at

    def at(self, time: float, *kinds: str) -> list[Fault]:
        """Those of some kinds that act at `time` [s], in their order."""
        since = time - self._set_at
        return [f for f in self.faults if f.kind in kinds and f.after <= since < f.after + f.lasting]

    def driven(self, time: float, driver: Driver) -> Vector:
        """Given over commanded speed of each wheel (n,), at `time` [s]."""
        factors = np.ones(len(driver.wheel_joints))
        for fault in self.at(time, *_DRIVEN):
            factors[driver.wheel_joints.index(fault.joint)] *= _DRIVEN[fault.kind]
        return factors

    def deaf(self, time: float) -> bool:
        """Whether the driver is away at `time` [s]: restarting."""
        return bool(self.at(time, "restart"))

    def stamp(self, time: float, stamp: float) -> float:
        """A stamp [s] that is given at `time` [s] by the driver's clock."""
        return stamp + sum(fault.numbers["size"] for fault in self.at(time, "clock_jump"))

    def read(self, time: float, joint: str) -> float:
        """Reported over true turning of a joint at `time` [s]."""
        factor = 1.0
        for fault in self.at(time, *_READ, "off_pattern"):
            if fault.joint == joint:
                factor *= fault.numbers.get("factor", _READ.get(fault.kind, 1.0))
        return factor

    def jumps(self, fault: Fault, time: float) -> int:
        """How often a jumping encoder has jumped until `time` [s]."""
        span = min(time - self._set_at - fault.after, fault.lasting)
        return 1 + math.floor(span / fault.numbers["every"]) if span >= 0.0 else 0


class Encoders:
    """Counts of the joints as the driver has them: what it missed or miscounted stays wrong.

    Without faults, every report passes as it is, bit by bit.

    Args:
        seed: of the signs of jumps.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._active = ActiveFaults((), 0.0)
        self._random: dict[int, np.random.Generator] = {}
        self._jumped: dict[int, int] = {}
        self._to_jump: dict[str, float] = {}
        self._true: dict[str, float] = {}
        self._shown: dict[str, float] = {}
        self._off: dict[str, float] = {}

    def set(self, active: ActiveFaults) -> None:
        """Let other faults act from now on; wrong counts stay wrong."""
        self._active = active
        self._jumped = dict.fromkeys(range(len(active.faults)), 0)
        self._random = {k: np.random.default_rng([self._seed, 16, k]) for k in self._jumped}

    def restart(self, joints: Sequence[str]) -> None:
        """Count some joints from zero, beginning where they last were seen."""
        for joint in joints:
            self._off[joint] = -self._true.get(joint, 0.0)
            self._shown[joint] = 0.0

    def report(self, time: float, report: JointReport) -> JointReport:
        """Positions and velocities of a report as the driver has them at `time` [s]."""
        position, velocity = report.position.copy(), report.velocity.copy()
        self._draw_jumps(time)
        for k, joint in enumerate(report.names):
            true, factor = float(position[k]), self._active.read(time, joint)
            off = self._off.get(joint, 0.0)
            shown = true + off
            if factor != 1.0:
                shown = self._shown.get(joint, shown) + factor * (true - self._true.get(joint, true))
                velocity[k] = factor * velocity[k] + 0.0  # no negative zero
            jump = self._to_jump.pop(joint, 0.0)
            shown += jump
            if factor != 1.0 or jump:
                self._off[joint] = shown - true
            position[k], self._true[joint], self._shown[joint] = shown, true, shown
        return replace(report, position=position, velocity=velocity)

    @property
    def wrong(self) -> bool:
        """Whether any joint has ever been counted wrongly."""
        return bool(self._off)

    def _draw_jumps(self, time: float) -> None:
        for index, fault in enumerate(self._active.faults):
            if fault.kind != "jumping_encoder":
                continue
            before, self._jumped[index] = self._jumped[index], self._active.jumps(fault, time)
            signs = self._random[index].choice([-1.0, 1.0], self._jumped[index] - before)
            size = fault.numbers["size"] * float(signs.sum())
            self._to_jump[fault.joint] = self._to_jump.get(fault.joint, 0.0) + size


class Mail(Generic[Item]):
    """What is sent on one channel and may be lost or come late.

    Args:
        channel: one of the CHANNELS of `faults`, or COMMANDS.
        seed: of losses and delays.
    """

    def __init__(self, channel: str, seed: int) -> None:
        # Apart for each channel, so that losses of one leave the others as they are.
        self._random = np.random.default_rng([seed, 17, *channel.encode()])
        self._of = (channel,) if channel == COMMANDS else (channel, STATES)
        self._waiting: list[tuple[float, int, Item]] = []
        self._sent = 0

    def send(self, time: float, item: Item, active: ActiveFaults) -> None:
        """Hand in an item at `time` [s]."""
        delay = 0.0
        for fault in active.at(time, "lost", "late"):
            if fault.of in self._of and self._random.random() < fault.numbers["share"]:
                if fault.kind == "lost":
                    return
                delay = max(delay, fault.numbers["delay"])
        heapq.heappush(self._waiting, (time + delay, self._sent, item))
        self._sent += 1

    def due(self, time: float) -> list[tuple[float, Item]]:
        """What has arrived by `time` [s] and has not been handed out yet, each with its arrival [s]."""
        arrived = []
        while self._waiting and self._waiting[0][0] <= time:
            arrival, _, item = heapq.heappop(self._waiting)
            arrived.append((arrival, item))
        return arrived


def with_wrong_fields(time: float, report: JointReport, active: ActiveFaults) -> JointReport:
    """A report whose names and efforts are as the faults want them at `time` [s]."""
    names, values = list(report.names), [report.position, report.velocity, report.effort]
    for fault in active.at(time, "missing_effort", "zero_effort", "duplicate_names", "partial_names"):
        if fault.kind == "missing_effort":
            values[2] = np.zeros(0)
        elif fault.kind == "zero_effort":
            values[2] = values[2].copy()
            if fault.joint == "all":
                values[2][:] = 0.0
            elif fault.joint in names[: len(values[2])]:
                values[2][names.index(fault.joint)] = 0.0
        elif fault.joint in names:
            place = names.index(fault.joint)
            if fault.kind == "duplicate_names":
                values = [np.insert(v, len(names), 0.0) if len(v) >= len(names) else v for v in values]
                names.append(fault.joint)
            else:
                del names[place]
                values = [np.delete(v, place) if place < len(v) else v for v in values]
    return JointReport(report.stamp, tuple(names), *values)
