"""What names of columns tell: a unit, a role, the joint or axis."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from youbot_dynamics.recording._columns import COMMANDS, ROLES, units_of

_TOKEN = re.compile(r"[A-Z]?[a-zµ°º]+|[A-Z]+(?![a-z])|\d+")
# Units of one word each, and "cur" behind a name, in words that nothing else has; only beside a word of their role.
_WORDS_OF_ROLES = (
    ("", re.compile(r"(?<![A-Za-z])mNm(?![A-Za-z])"), "millinewtonmeter"),
    ("", re.compile(r"(?<=[_ .-])cur(?![A-Za-z])"), "current"),
    ("effort", re.compile(r"(?<![A-Za-z])N[\s_·⋅*.-]m(?![A-Za-z])"), "newtonmeter"),
    ("effort", re.compile(r"(?<![A-Za-z])N[\s_·⋅*.-]cm(?![A-Za-z])"), "ncm"),
    ("effort", re.compile(r"(?<![A-Za-z])(?:mN[\s_·⋅*.-]m|N[\s_·⋅*.-]mm)(?![A-Za-z])"), "millinewtonmeter"),
    ("current", re.compile(r"(?<![A-Za-z])mA(?![A-Za-z])"), "milliampere"),
    ("voltage", re.compile(r"(?<![A-Za-z])mV(?![A-Za-z])"), "millivolt"),
)
_BRACKETS = re.compile(r"[\[(<{]\s*([^\])>}]*[^\])>}\d\s][^\])>}]*)[\])>}]")  # not those of an index
_UNITS = {  # in lower case, without blanks and signs of a product
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("us", "µs", "usec", "usecs", "micros", "microseconds"), "us"),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosec", "nanosecs", "nanoseconds"), "ns"),
    **dict.fromkeys(("rad", "radian", "radians"), "rad"),
    **dict.fromkeys(("mrad", "mrads", "milliradians"), "mrad"),
    **dict.fromkeys(("deg", "degs", "°", "º", "degree", "degrees"), "deg"),
    **dict.fromkeys(("turn", "turns", "rev", "revs", "revolutions"), "turn"),
    **dict.fromkeys(("rad/s", "rads^-1", "rad/sec", "radps"), "rad/s"),
    **dict.fromkeys(("deg/s", "°/s", "º/s", "deg/sec", "degps", "dps"), "deg/s"),
    **dict.fromkeys(("rps", "rev/s", "revs/s", "turn/s", "turns/s", "rev/sec"), "turn/s"),
    **dict.fromkeys(("rpm", "rev/min", "r/min", "1/min", "u/min"), "rpm"),
    **dict.fromkeys(("a", "amp", "amps", "ampere", "amperes"), "A"),
    **dict.fromkeys(("v", "volt", "volts"), "V"),
    **dict.fromkeys(("nm", "newtonmeter", "newtonmetre"), "Nm"),
    **dict.fromkeys(("c", "°c", "degc", "celsius"), "degC"),
    **{"ma": "mA", "mv": "mV", "mnm": "mNm", "ncm": "Ncm", "nmm": "mNm", "n": "N", "m": "m", "mm": "mm"},
    **{"milliampere": "mA", "millivolt": "mV", "millinewtonmeter": "mNm"},
    **dict.fromkeys(("km/h", "kmh", "kph", "kmph", "km/hr"), "km/h"),
    **dict.fromkeys(("cm/s", "cmps", "cm/sec"), "cm/s"),
    **{"m/s": "m/s", "mps": "m/s", "mm/s": "mm/s", "mrad/s": "mrad/s", "cm": "cm"},
}
_ROLES = {
    **dict.fromkeys(("q", "pos", "position", "positions", "angle", "angles", "theta", "enc", "encoder"), "position"),
    **dict.fromkeys(("dq", "qd", "qdot", "vel", "velocity", "velocities", "speed", "speeds", "rpm", "v"), "velocity"),
    **dict.fromkeys(("tau", "torque", "torques", "effort", "efforts", "trq", "force", "forces"), "effort"),
    **dict.fromkeys(("i", "iq", "current", "currents", "curr", "amps", "ampere", "amperes"), "current"),
    **dict.fromkeys(("voltage", "voltages", "volt", "volts", "millivolt"), "voltage"),
    **dict.fromkeys(("temp", "temperature", "temperatures"), "temperature"),
}
_OF_UNIT = {"deg": "position", "rad": "position", "rad/s": "velocity", "deg/s": "velocity", "A": "current"}
_OF_UNIT |= {
    "mA": "current",
    "V": "voltage",
    "mV": "voltage",
    "Nm": "effort",
    "mNm": "effort",
    "Ncm": "effort",
    "N": "effort",
}
# They are no names, wherever they stand.
_ANYWHERE = set(
    "milliampere millivolt millinewtonmeter newtonmeter nm ncm nmm mrad deg degs degree degrees rpm mm".split()
)
_ANYWHERE |= set("kmh kph kmph cmps mps radps degps dps rps".split())
_OTHERS = set("err error acc accel acceleration ddq qdd std var covariance limit min max".split())
_NANOSECONDS = set("nanosec nanosecs nsec nsecs nanoseconds".split())
_TIMES = {*"time datetime timestamp timestamps stamp elapsed date clock sec secs seconds zeit".split(), *_NANOSECONDS}
_COMMANDS = set("cmd command commanded commands des desired ref reference target setpoint goal sp set soll".split())
_HOUSING, _WINDING = {"housing", "case", "casing", "shell"}, {"winding", "windings", "coil"}
_POSES = {"mocap", "vicon", "optitrack", "pose", "truth", "gt"}
# Words that tell no role and no name.
_SILENT = set(
    "meas measured actual act feedback fb state states header msg data field odom odometry robot base".split()
)
_SILENT |= set("twist value rads ticks counts raw sensor dot per ist".split())
_GENERAL = {"joint", "motor", "axis", "arm", "shaft", "actuator"}  # names of the only joint
_JOINT_SYMBOLS = {"j", "J"}
_NUMBERED = re.compile(r"(?P<word>[A-Za-z]+)_?(?P<number>\d+)")
_SPEEDS = {"vx": "x", "vy": "y", "wz": "yaw", "vyaw": "yaw", "vtheta": "yaw", "vth": "yaw"}
_SPEEDS |= dict.fromkeys(("yawrate", "turnrate"), "yaw")
# Of a base that drives and turns, where no header names an axis: "v_cmd, w_cmd, v, w".
_FORWARD = {"v", "vel", "velocity", "speed", "linvel", "forward"}
_TURNING = {"w", "omega", "yaw", "turn", "rate", "yawrate", "turnrate", "angvel"}
# A symbol of a speed and what it is of in one word, such as "Vref".
_GLUED = re.compile(r"(?<![A-Za-z])([vw]|omega|vx|vy|wz)(cmd|ref|des|set|soll|meas|act|ist)(?![A-Za-z])", re.IGNORECASE)
_SYMBOLS = ("V", "W")  # both
_MESSAGES = ("field.", "field.twist.")  # starts of the names of a Twist and a TwistStamped
_LINEAR, _ANGULAR = {"linear", "lin", "linvel"}, {"angular", "ang", "angvel"}
_MOVING = {*_LINEAR, *_ANGULAR, "omega", "w", "rate"}
_OF_SPEED = {"m/s", "cm/s", "mm/s", "km/h", "rad/s", "deg/s", "mrad/s", "turn/s", "rpm"}
_RPS = re.compile(r"(?<![A-Za-z])rps(?![A-Za-z])", re.IGNORECASE)  # revolutions of a motor; of a base maybe radians
_OF_AXIS = {"x": {"rad/s", "deg/s", "mrad/s", "rpm", "turn/s"}, "yaw": {"m/s", "mm/s", "cm/s", "km/h"}}  # not of it
_AXES = {"x": "x", "y": "y", "yaw": "yaw", "theta": "yaw", "heading": "yaw", "omega": "yaw", "w": "yaw"}

_OF_MOTOR = re.compile(r"(?<=.)_motor$", re.IGNORECASE)  # "J1 Motor Current" is of joint J1
_DESCRIBED = re.compile(rf"(?P<role>{'|'.join((*ROLES, *COMMANDS))})\.(?P<channel>[^:=,]+)(:(?P<unit>[^,]+))?")


@dataclass(frozen=True)
class Meaning:
    """What the name of a column tells."""

    role: str = ""  # "" for unclear
    channel: str = ""  # joint or axis
    unit: str = ""  # "" for that of SI
    why: str = ""  # of an unclear one: what it may be
    guess: str = ""  # of an unclear motion: the role that is most likely


def unit_of(header: str) -> str:
    """Unit that the name of a column tells, such as `rpm` of "speed [rpm]" or "motor_rpm"; "" for none."""
    words = _words(header)
    if brackets := _BRACKETS.findall(header):
        unit = next((unit for text in brackets if (unit := _bracketed(text))), "")
    else:
        last = words[-1] if len(words) > 1 or words == ["rpm"] else ""
        unit = _UNITS.get("/".join(words[-2:]), "") or _UNITS.get(last, "")
        unit = unit if len(last) > 1 or "/" in unit else ""  # a single letter may be anything
        unit = unit or next((_UNITS[word] for word in words if word in _ANYWHERE), "")
    role = _role(words)
    if role == "velocity" and unit in ("rad", "deg", "mrad"):
        return f"{unit}/s"
    return unit or {"current": "A", "voltage": "V"}.get(role, "")


def _bracketed(text: str) -> str:
    """Unit of a text in brackets, "" for none that is known."""
    plain = re.sub(r"[\s·⋅*.]", "", text.lower())
    return _UNITS.get(plain, "") or _UNITS.get(re.sub(r"[_-]", "", plain), "")


def _words(header: str) -> list[str]:
    return _lowered(_without_brackets(header))


def _lowered(text: str, symbols: Collection[str] = ()) -> list[str]:
    """Words of a text in lower case; V is a voltage unless it is among the `symbols` of a speed and a turn."""
    return ["volt" if token == "V" and token not in symbols else token.lower() for token in _TOKEN.findall(text)]


def _without_brackets(header: str) -> str:
    """The name of a column without what it has in brackets, and with units such as "mA" and "N_m" as one word."""
    text = _GLUED.sub(r"\1_\2", _BRACKETS.sub("", header))
    for role, pattern, word in _WORDS_OF_ROLES:
        if not role or role in {_ROLES.get(one) for one in _lowered(text)}:
            text = pattern.sub(word, text)
    return text


def _role(words: Sequence[str]) -> str:
    """Role of a joint that some words tell; the adjective in "current position" is none."""
    roles = list(dict.fromkeys(_ROLES[word] for word in words if word in _ROLES))
    if len(roles) > 1 and "current" in roles:
        roles.remove("current")
    if roles == ["position"] and "dot" in words:
        return "velocity"
    return roles[0] if len(roles) == 1 else ""


def joint_in(header: str, joints: Collection[str]) -> str:
    """The one of some joints that the name of a column has beside words that name no other; "" for none."""
    for joint in sorted(joints, key=len, reverse=True):
        rest = _without(header, joint)
        if rest != header and _joint(rest).lower() in _GENERAL:
            return joint
    return ""


def _without(header: str, joint: str) -> str:
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", "", header, count=1)


def meaning_of(header: str, base: bool, forward: str = "", joint: str = "") -> Meaning:
    """What the name of a column tells.

    Args:
        header: the name.
        base: whether the log is of a base, with axes x, y, yaw.
        forward: the axis that `forward_axes` tells of it.
        joint: the joint of the robot that `joint_in` finds in it; its name tells nothing else.
    """
    if described := _DESCRIBED.fullmatch(header.strip()):
        return Meaning(described["role"], described["channel"], described["unit"] or "")
    header = _without(header, joint) if joint else header
    words = _words(header) or (["joint"] if joint else [])
    unit, brackets = unit_of(header), _BRACKETS.findall(header)
    if not words or _OTHERS & {*words} or (words == ["i"] and not unit_of(header[1:])):  # it may count the lines
        return Meaning()
    if words in (["ms"], ["us"], ["ns"]) and not brackets:
        return Meaning("time", "", words[0])
    if brackets and not any(map(_bracketed, brackets)):
        return Meaning(why=f"unit {brackets[-1]!r} is none that is known: give it with a factor")
    commanded = any(word in _COMMANDS for word in words)
    role = _role(words)
    if joint:
        return _of_joint(header, words, role, commanded, unit, joint)
    if base and ("orientation" in words or {"position", "z"} <= {*words}):  # of a pose in space
        return Meaning()
    if base and (axis := forward or _axis(words)):
        role = _role([word for word in words if word not in _AXES])
        if forward and unit == "V":  # the symbol of a speed
            role, unit = "velocity", "m/s"
        one = _of_axis(words, axis, role, commanded or "u" in words, unit)
        if one.role and _RPS.search(header):
            name = f"{one.role}.{axis}"
            return Meaning("", axis, "rad/s", f"{name}:rad/s, or {name}:turn/s of revolutions", one.role)
        return one
    named = words[-1] in _TIMES or (words[0] in _TIMES and not role) or [w for w in words if w not in _UNITS] == ["t"]
    if (named and not unit) or (unit in units_of("time") and (named or _BRACKETS.search(header))):
        return Meaning("time", "", "ns" if _NANOSECONDS & {*words} else "" if unit == "s" else unit)
    return _of_joint(header, words, role, commanded, unit)


def _axis(words: Sequence[str]) -> str:
    """Axis of a base that some words name, "" for none."""
    if _ANGULAR & {*words}:
        return "" if {"x", "y"} & {*words} else "yaw"
    numbered = {word for word, after in pairwise(words) if after.isdigit()}  # "w0" is a wheel
    axes = {**_SPEEDS, **{word: axis for word, axis in _AXES.items() if word not in numbered}}
    named = next((axis for word in words if (axis := axes.get(word))), "")
    return named or ("x" if _LINEAR & {*words} and "z" not in words else "")


def _of_axis(words: Sequence[str], axis: str, role: str, commanded: bool, unit: str) -> Meaning:
    """Meaning of a column of the base: a commanded or measured twist, or a pose."""
    moving = role == "velocity" or unit in _OF_SPEED or any(word in _SPEEDS or word in _MOVING for word in words)
    if commanded and not moving and not {"cmd", "command", "commanded", "u"} & {*words}:  # a desired pose or speed
        return Meaning("", axis, unit, f"command.{axis}, a speed, or command_position.{axis}", "command")
    if commanded and role != "position":
        return Meaning("command", axis, unit)
    if moving:
        return Meaning("measured", axis, unit)
    if _POSES & {*words}:
        wheels = {"odom", "odometry"} & {*words}  # such a pose tells nothing of the wheels
        why = f"pose.{axis} only if it does not come from the wheels"
        return Meaning(why=why) if wheels else Meaning("pose", axis, unit)
    return Meaning("", axis, unit, f"measured.{axis}, a speed, or pose.{axis} by motion capture", "measured")


def _of_joint(header: str, words: Sequence[str], role: str, commanded: bool, unit: str, joint: str = "") -> Meaning:
    """Meaning of a column of a joint, of which the name is in the header if it is none of the robot."""
    name = _joint(header)
    if not role and (role := _OF_UNIT.get(unit, "") if _BRACKETS.search(header) else ""):  # a word of another language
        name = _joint("".join(char for char in header if char.isdigit()))
    if not role and words[0] == "t" and (_HOUSING | _WINDING) & {*words}:  # "T_winding_C"
        role, name = "temperature", _joint(header[header.lower().index("t") + 1 :])
    if role == "voltage" and name in ("U", "u"):  # the symbol of a voltage
        name = "joint"
    name = joint or name
    if role == "temperature":
        housing, winding = bool(_HOUSING & {*words}), bool(_WINDING & {*words})
        role = "housing" if housing else role
        if not (housing or winding):
            return Meaning(why=f"temperature.{name} of the winding, or housing.{name}")
    if "ticks" in words or "counts" in words or "raw" in words:
        return Meaning(why=f"position.{name}:turn/TICKS with the ticks of a turn")
    if commanded and not role:
        return Meaning("", name, unit, f"command.{name}, a speed, or command_position.{name}", "command")
    if commanded:
        role = {"position": "command_position", "velocity": "command"}.get(role, "")
    return Meaning(role, name, unit) if role else Meaning()


def forward_axes(headers: Sequence[str]) -> list[str]:
    """Axis of each column of a base that drives and turns, where no name tells axes, as "v_cmd", "w_cmd", "v", "w".

    It is "" for other columns, and for those of a log that does not command both.
    """
    texts = list(map(_without_brackets, headers))
    symbols = _SYMBOLS if {token for text in texts for token in _TOKEN.findall(text)} >= {*_SYMBOLS} else ()
    units = [{*map(_bracketed, _BRACKETS.findall(header))} - {""} for header in headers]
    words = [_lowered(text, symbols) if of <= _OF_SPEED else [] for text, of in zip(texts, units, strict=True)]
    commanded = [one for one in words if {"u", *_COMMANDS} & {*one}]
    if not all(any(_is_of(one, kind) for one in commanded) for kind in (_FORWARD, _TURNING)):
        return [""] * len(headers)
    # An input u has an output y.
    rest = [one[1:] if one[:1] == ["y"] and any("u" in other for other in commanded) else one for one in words]
    axes = ["x" if _is_of(one, _FORWARD) else "yaw" if _is_of(one, _TURNING) else "" for one in rest]
    other_units = ({*of} & _OF_AXIS[axis] for axis, of in zip(axes, units, strict=True) if axis)
    # u, v, w are phases of a motor, or axes of a ship; a motor has a voltage v, a current i and a speed w.
    others = [one in (["u"], ["u", "u"], ["i"]) or _role(one) in ("current", "effort") for one in map(_words, headers)]
    return [""] * len(headers) if any(other_units) or any(others) else axes


def commands_of_messages(headers: Sequence[str]) -> set[str]:
    """Names of columns of a Twist that `rostopic echo -p` wrote without the name of its topic: such one is a command.

    None where another column is one. That of an odometry is in a `twist.twist`.
    """
    if any({"u", *_COMMANDS} & {*_words(header)} for header in headers):
        return set()
    twists = ([f"{start}{kind}.{axis}" for kind in ("linear", "angular") for axis in "xyz"] for start in _MESSAGES)
    return {name for names in twists if {*names} <= {*headers} for name in names}


def _is_of(words: Sequence[str], kind: set[str]) -> bool:
    """Whether words, but for units and those of commands and measurements, are of a kind."""
    rest = {*words} - {"u"} - _COMMANDS - _SILENT - {unit for unit in _UNITS if len(unit) > 1 and unit not in kind}
    return bool(rest) and rest <= kind


def is_base(headers: Sequence[str]) -> bool:
    """Whether names of columns are of a base, which moves along axes."""
    words = {word for header in headers for word in _words(header)}
    return (
        any(forward_axes(headers))
        or bool({*_SPEEDS, *_LINEAR, "angular", "angvel"} & words)
        or any({"x", other} <= words for other in ("y", "yaw"))
    )


def beside(meanings: Sequence[Meaning]) -> list[Meaning]:
    """The meanings without the voltages and temperatures of what does not move, such as a supply."""
    moving = {one.channel for one in meanings if one.role in ("position", "velocity", "effort", "current")}
    still = [one.role in ("voltage", "temperature", "housing") and one.channel not in moving for one in meanings]
    named = [one.channel.lower() not in _GENERAL for one in meanings]
    return [Meaning() if moving and all(of) else one for one, *of in zip(meanings, still, named, strict=True)]


def one_joint(names: Sequence[str]) -> dict[str, str]:
    """Names of the joints of a log -> the one that is meant: "motor" and "joint" are the only joint there is."""
    general = [name for name in names if name.lower() in _GENERAL]
    own = [name for name in names if name not in general]
    return dict.fromkeys(general, own[0] if own else "joint") if len(own) < 2 else {}


def numbered_alike(meanings: Sequence[Meaning], known: Set[str]) -> dict[str, str]:
    """Names of numbered joints -> those that columns of other roles give them, as of tau_J[0] beside q[0].

    Words such as "joint", "motor" and "J" are of the same joints where they have the same numbers, each with roles of
    its own. Names that are `known` come first, else those that the header has first.
    """
    names, roles = dict[str, dict[str, str]](), dict[str, set[str]]()
    for one in meanings:
        numbered = _NUMBERED.fullmatch(one.channel)
        if numbered and (numbered["word"].lower() in _GENERAL or numbered["word"] in _JOINT_SYMBOLS):
            names.setdefault(numbered["word"], {})[numbered["number"]] = one.channel
            roles.setdefault(numbered["word"], set()).add(one.role)
    first, *others = sorted(names.values(), key=lambda of: known.isdisjoint(of.values())) if names else [{}]
    shared = sum(map(len, roles.values())) > len(set().union(*roles.values()))
    if shared or any({*other} != {*first} for other in others):
        return {}
    return {name: first[number] for other in others for number, name in other.items()}


def _joint(header: str) -> str:
    """Name of a joint: what no other word of a header says, with its own separators where letters and digits touch."""
    name, end = "", -1
    others = {*_ROLES, *_COMMANDS, *_SILENT, *_HOUSING, *_WINDING, *_TIMES, *(unit for unit in _UNITS if len(unit) > 1)}
    tokens = list(_TOKEN.finditer(_without_brackets(header)))
    for token in tokens:
        word = token.group().lower()
        if not (word in others or (token is tokens[-1] and word in _UNITS)):
            name += ("" if token.start() == end or not name else "_") + token.group()
            end = token.end()
    name = _OF_MOTOR.sub("", name)
    return name if name and not name.isdigit() else f"joint_{name}" if name else "joint"
