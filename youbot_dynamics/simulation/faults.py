"""Faults on demand: which there are, and how they are written.

A text of faults, several apart by semicolons, each a name and its options in any order; empty for none:

    frozen_encoder joint=wheel_joint_fl after=2.0 lasting=1.5; lost share=0.1

What they do to commands and messages stands in `fault_effects`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from youbot_dynamics.errors import ParameterError
from youbot_dynamics.parameters import Parameter
from youbot_dynamics.robot import Driver

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
_AFTER = Parameter("after", 0.0, "Begin, from when the fault is asked for.", unit="s", low=0.0, high=1e6)
_LASTING = Parameter("lasting", FOREVER, "How long; for ever if not given.", unit="s", low=0.0, high=FOREVER)


@dataclass(frozen=True)
class FaultKind:
    """A fault that can be asked for.

    Args:
        name: as it is written.
        description: what it does.
        options: its own, besides `after` and `lasting`; `joint` without default must be given.
    """

    name: str
    description: str
    options: tuple[Parameter, ...] = ()

    @property
    def all_options(self) -> dict[str, Parameter]:
        """Options by name, those of every fault included."""
        return {option.name: option for option in (_AFTER, _LASTING, *self.options)}


KINDS = (
    FaultKind(
        "frozen_encoder",
        "The joint reports that it stands where it last was; what it turns meanwhile is never counted.",
        (_JOINT,),
    ),
    FaultKind(
        "jumping_encoder",
        "The joint's position jumps up or down at once, and again `every` so often, and stays off.",
        (
            _JOINT,
            Parameter("size", 1.0, "How far.", unit="rad", low=1e-6, high=1e6),
            Parameter("every", FOREVER, "From one jump to the next.", unit="s", low=0.02, high=FOREVER),
        ),
    ),
    FaultKind("dead_wheel", "The wheel gets no speed and reports that it stands: dead or stuck.", (_WHEEL,)),
    FaultKind(
        "reversed_wheel",
        "The driver has the wheel's direction the wrong way round, in what it sends and in what it reads.",
        (_WHEEL,),
    ),
    FaultKind(
        "off_pattern",
        "The joint reports `factor` times its turning, as a wheel that slips or whose radius is another.",
        (_JOINT, Parameter("factor", 1.2, "Reported over true turning.", unit="1", low=-10.0, high=10.0)),
    ),
    FaultKind(
        "lost",
        "Messages are lost, each with the same probability.",
        (Parameter("share", 0.1, "How many of them.", unit="1", low=0.0, high=1.0), _OF),
    ),
    FaultKind(
        "late",
        "Messages come late, each with the same probability: behind newer ones, with the stamps they had.",
        (
            Parameter("delay", 0.1, "How late.", unit="s", low=0.0, high=60.0),
            Parameter("share", 1.0, "How many of them.", unit="1", low=0.0, high=1.0),
            _OF,
        ),
    ),
    FaultKind(
        "restart",
        "The driver restarts: it stops the base, is deaf and silent, then counts wheels and odometry from zero.",
        (Parameter("lasting", 2.0, "Until it speaks again.", unit="s", low=0.0, high=600.0),),
    ),
    FaultKind(
        "clock_jump",
        "The driver's clock jumps: stamps are off from then on.",
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
        "The joint stands in its message twice, the second time with zeros.",
        (_JOINT,),
    ),
    FaultKind("partial_names", "The joint is left out of its message.", (_JOINT,)),
)

_BY_NAME = {kind.name: kind for kind in KINDS}
_WHEELS_ALONE = ("dead_wheel", "reversed_wheel")


@dataclass(frozen=True)
class Fault:
    """One fault as asked for.

    Args:
        kind: its name, one of KINDS.
        after: from when it was asked for to its begin [s].
        lasting: [s].
        joint: the joint it is about; empty where it is about none.
        of: which messages; empty where it is about none in particular.
        numbers: its other options.
    """

    kind: str
    after: float
    lasting: float
    joint: str
    of: str
    numbers: Mapping[str, float]

    def active(self, since: float) -> bool:
        """Whether it acts `since` [s] after it was asked for."""
        return self.after <= since < self.after + self.lasting


def parse_faults(text: str, driver: Driver) -> tuple[Fault, ...]:
    """Read a text of faults.

    Args:
        text: see the head of this file.
        driver: names of the joints there are.

    Raises:
        ParameterError: an unknown fault, option or joint (with the nearest known one), an option twice, without its
            value or out of its range.
    """
    return tuple(_fault(words, driver) for part in text.split(";") if (words := part.split()))


def _fault(words: list[str], driver: Driver) -> Fault:
    name, *rest = words
    if name not in _BY_NAME:
        raise ParameterError(_THING, got=f"'{name}'", remedy=_nearest(name, _BY_NAME, "faults"))
    kind = _BY_NAME[name]
    options = kind.all_options
    given: dict[str, str] = {}
    for word in rest:
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
    value: float | str
    if text is None:
        value = option.default  # type: ignore[assignment]
    elif isinstance(option.default, str):
        value = text
    else:
        value = _number(thing, text)
    try:
        return option.check(value)  # type: ignore[return-value]
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
    near = difflib.get_close_matches(name, table, n=1, cutoff=0.5)
    return (f"did you mean {near[0]}? " if near else "") + f"known {what}: {', '.join(table)}"
