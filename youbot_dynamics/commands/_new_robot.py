"""`youbot new-robot`: a robot file from a recording, a URDF and the answers of its owner."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from youbot_dynamics.arrays import rounded
from youbot_dynamics.bringup_plan import option_words
from youbot_dynamics.commands._terminal import CONSOLE, announce, new_file
from youbot_dynamics.dynamics.tree import arm_chain, read_urdf
from youbot_dynamics.errors import InputError, ModelError, ParameterError, did_you_mean, listed, wrapped
from youbot_dynamics.identification.calibration import read_distance
from youbot_dynamics.identification.new_robot import (
    Judged,
    TurningJoint,
    Wheels,
    arranged,
    commanded_turns,
    drawn_wheels,
    turning_joints,
)
from youbot_dynamics.identification.reading import columns_of
from youbot_dynamics.parameter_file import Placed, format_value, write_parameters
from youbot_dynamics.parameters import Value
from youbot_dynamics.recording.bag import LogRecording, Recording, open_bag
from youbot_dynamics.recording.message_types import JOINT_STATE, TWIST, TWIST_STAMPED
from youbot_dynamics.recording.text_log import read_text_log
from youbot_dynamics.robot import Robot, assumptions, load_robot, robot_from_values, robot_table

_Answer = TypeVar("_Answer")
_Facts: TypeAlias = dict[str, tuple[Value, str]]  # by name, each with how it is known
_DRAWN, _GIVEN = "found in the URDF", "given"
# Sizes that are asked, and their range [m]
_SIZES = {
    "wheel_radius": ("wheel radius", 0.02, 0.5),
    "wheelbase": ("distance between front and rear axle", 0.1, 2.0),
    "track": ("distance between left and right wheel", 0.04, 2.0),
}
_OTHER = "right", "left"  # sides where the wheels of a robot file are not, in their order
_OURS = "driver/wheel_velocity_command"  # topic on which base_controller sends speeds
_LARGEST_SPEED = 200.0  # of a wheel [rad/s]: a URDF may have any number for no limit
_NEAR_ONE = 0.002  # a lateral factor that is left out
_ALIKE = 0.01  # relative difference of the steps of readings below which wheels have the same


def new_robot_command(given: argparse.Namespace) -> int:
    """Run the command.

    Raises:
        YoubotDynamicsError: a recording, URDF or option cannot be used, or what is needed is neither found nor given.
    """
    new_file("--out", given.out, given.overwrite)
    if given.bag is None and given.urdf is None:
        raise ParameterError("youbot new-robot", got="neither --bag nor --urdf", expected="one of them, or both")
    recording = _recording(given) if given.bag else None
    judged = turning_joints(recording) if recording else Judged("", "", ())
    bag = None if isinstance(recording, LogRecording) else recording
    states = listed(sorted({joint.topic for joint in judged.wheels or judged.joints}))
    facts = _facts(given, bag, judged)
    speeds = _commanded_speeds(facts, bag, judged)
    motions = {**judged.motions, **({"commands": speeds} if speeds else {})}
    topics = "; ".join([f"joints {states}", *(f"{by} {topic}" for by, topic in motions.items())])
    head = ["Written by youbot new-robot; behind each value: how it is known. More values: docs/new_robot.md."]
    head += [f"Topics of {bag.path.name}: {topics}. Nodes need other names: docs/new_robot.md."] if bag else []
    robot = _write(given.out, facts, head, speeds)
    for topic in judged.unused:
        announce(f"note: {topic} contradicts {judged.motions['commands']} about how the base moved, and is not used")
    if judged.heading:
        way = "left" if judged.heading > 0.0 else "right"
        told = f"the body of {judged.topic} looks {math.degrees(abs(judged.heading)):.0f} deg to the {way}"
        announce(f"note: {told}, by {judged.motions['commands']}: the file is for the way in which the commands drive")
    if len(judged.wheels) == 4 and len(robot.driver.wheel_joints) == 2:
        announce("note: of four wheels, one of each side is in the file: the wheels of a side turn together")
    if (others := [joint.name for joint in judged.joints if joint not in judged.wheels]) and not given.urdf:
        announce(f"note: also turned: {listed(others)}; if it is an arm, give its URDF with --urdf")
    if assumed := assumptions(given.out):
        announce(f"note: {assumed}")
    sent = motions.get("commands", "")
    role = "wheel_commands" if speeds else "cmd_vel"
    unusual = f"{role}={sent}" if sent and not sent.endswith(role) else ""
    log = {"columns": given.columns, "rate": given.rate or None, "topic": unusual}
    identify = ["youbot", "identify", str(given.bag), *option_words(robot_file=given.out, **log, out="found")]
    mock = ["youbot", "bringup", *option_words(robot="mock", robot_file=given.out)]
    play = ["youbot", "play", "arm_excitation", *option_words(write="goal.yaml", robot_file=given.out)]
    suggested = (identify, recording), (mock, robot.has_base), (play, not recording and not robot.has_base)
    announce(f"wrote {given.out}; next:", *(shlex.join(words) for words, fits in suggested if fits))
    return 0


def _facts(given: argparse.Namespace, bag: Recording | None, judged: Judged) -> _Facts:
    """All facts; without a bag, the joints are those of a text log, a URDF or none."""
    recorded = bag.metadata.get("robot_id", "") if bag else ""
    name = recorded or given.out.stem
    facts: _Facts = {"robot_id": (name, "found in the recording" if recorded else "given by --out")}
    drawn, mass = drawn_wheels(given.urdf) if given.urdf else ((), 0.0)
    if has_base := bool(judged.wheels or drawn or given.wheels or not given.urdf):
        how = f"found by {judged.by}{f', {judged.topic}' if bag else ''}" if judged.wheels else _DRAWN
        known = {joint.name: joint for joint in (*drawn, *judged.joints)}
        wheels, of = _wheels(given, judged.wheels or drawn, known, how)
        facts["driver.wheel_joints"] = wheels.joints, of
        if min(wheels.signs, default=1.0) < 0.0:
            facts["driver.position_sign"] = wheels.signs, how
        places = {joint.name: joint.place for joint in drawn}
        in_urdf = np.array([places.get(name, (math.nan,) * 3) for name in wheels.joints])
        facts |= _geometry(given, wheels, how, judged.by in ("odometry", "poses"), in_urdf)
        if mass > 0.0 and np.all(np.isfinite(in_urdf[:, 0])):
            facts["base.mass"] = rounded(mass), _DRAWN
        chosen = [known[name] for name in wheels.joints]
        facts |= _readings(chosen, wheels.signs, bag is not None) | _limits(drawn, wheels.joints)
        facts |= _signs_of_commands(bag, chosen, wheels.signs) if bag and judged.joints else {}
    if name.startswith("youbot") and {*load_robot().driver.wheel_joints} != {*(wheels.joints if has_base else ())}:
        expected = "another name: one that begins with youbot stands for a youBot, with all its values"
        remedy = "record the driver alone" if recorded else "name another file"
        raise ParameterError("robot_id", got=f"{name}, of other wheels", expected=expected, remedy=remedy)
    return facts | (_stamped(bag) if bag else {}) | (_arm(given.urdf, has_base) if given.urdf else {})


def _stamped(bag: Recording) -> _Facts:
    """Whether the driver takes TwistStamped: which commands are those of the driver is known by their name alone."""
    twists = {one.name: one.type for one in bag.topics.values() if one.type in (TWIST, TWIST_STAMPED)}
    twists = {name: one for name, one in twists.items() if name.endswith("driver/cmd_vel")} or twists
    stamped, plain = (listed([name for name in twists if twists[name] == one]) for one in (TWIST_STAMPED, TWIST))
    how = f"guessed: {stamped} has TwistStamped, {plain} Twist" if plain else f"found by {stamped}"
    return {"driver.stamped_twist": (True, how)} if stamped else {}


def _write(out: Path, facts: _Facts, head: Sequence[str], speeds: str) -> Robot:
    """Check the facts, write the file, and tell them by how they are known; `speeds` is a topic to the driver."""
    given = {f"robot.{name}": value for name, (value, _) in facts.items()}
    table = {one.name: one for one in robot_table(given)}
    values = {name: table[name].check(value) for name, value in given.items()}
    robot = robot_from_values({name: one.default for name, one in table.items()} | values)
    if urdf := values.get("robot.arm.urdf"):  # a URDF beside the file by its name, so that both can be moved
        values["robot.arm.urdf"] = str(urdf).removeprefix(f"{out.absolute().parent}/")
    notes = {f"robot.{name}": note for name, (_, note) in facts.items()}
    interface = Placed("joint_state", comment=f"found in {speeds}")
    others = {"/**/base_controller": {"command_interface": interface}} if speeds else {}
    write_parameters(out, "/**", values, head, notes, others)
    for how in dict.fromkeys(notes.values()):
        told = [f"{name.rpartition('.')[2]} {format_value(values[name])}" for name in values if notes[name] == how]
        announce(f"{how}: {', '.join(told)}".replace("'", ""))
    if speeds:
        announce(f"{interface.comment}: command_interface joint_state of base_controller")
    return robot


def _recording(given: argparse.Namespace) -> Recording:
    if (log := columns_of(given.bag, given.columns, given.rate, load_robot())) is None:
        return open_bag(given.bag)
    if log.told:
        announce(f"note: {log.told}")
    return LogRecording(read_text_log(given.bag, log.description, log.rate))


def _asked(given: argparse.Namespace, option: str, what: str, parse: Callable[[str], _Answer]) -> _Answer:
    """Value of an option, else the answer on a terminal or from a pipe."""
    if (text := getattr(given, option)) is not None:
        return parse(text)
    question, asks = "\n".join(wrapped(f"{what}:", CONSOLE.width)), sys.stdin is not None and sys.stdin.isatty()
    while True:
        print(question if asks else "", end=" " if asks else "", file=sys.stderr, flush=True)
        line = ""
        with suppress(OSError, AttributeError):  # a standard input that is closed, or none
            line = sys.stdin.readline()
        if not line:
            print(end="\n" if asks else "", file=sys.stderr)
            break
        print(end="" if asks else f"{question} {line.strip()}\n", file=sys.stderr)
        try:
            return parse(line)
        except (InputError, ParameterError) as problem:
            announce(f"not understood: {problem}")
    name = f"--{option.replace('_', '-')}"
    remedy = f"answer the questions in a terminal, or give {name} and what is asked next, such as --wheel-radius"
    raise ParameterError(name, got="nothing", expected=what, remedy=remedy)


def _wheels(
    given: argparse.Namespace, likely: Sequence[TurningJoint], known: Mapping[str, TurningJoint], how: str
) -> tuple[Wheels, str]:
    """The wheels of the base, by how they turn with it, or as the user says; and which of both."""
    found = None if given.wheels else arranged(likely)
    if found is not None:
        return found, how
    names = ", ".join(f"{one.name} ({one.side})" if one.side else one.name for one in likely)
    what = "joints of the wheels front left, front right, rear left, rear right, or of one left and one right without "
    what += f"rollers: {names or ', '.join(known) + '; for an arm give --urdf'}"
    if any("steer" in name.lower() for name in known):
        what += "; for a steered wheel docs/new_robot.md has a file of six lines"

    def parse(text: str) -> Wheels:
        chosen = [name.strip() for name in text.split(",")]
        for name in chosen:
            if name not in known:
                remedy = did_you_mean(name, list(known))
                raise ParameterError("--wheels", got=name, expected=f"one of {', '.join(known)}", remedy=remedy)
        if steering := [name for name in chosen if "steer" in name.lower()]:
            remedy = "the file of a base with a steered wheel is six lines: docs/new_robot.md has them"
            raise ParameterError("--wheels", got=steering[0], expected="wheels that do not steer", remedy=remedy)
        if len({*chosen}) < len(chosen) or (wheels := arranged([known[name] for name in chosen], ordered=True)) is None:
            expected = "two or four different ones, or omni wheels in a recording of motion along all axes"
            raise ParameterError("--wheels", got=f"{len(chosen)} joints", expected=expected)
        wrong = [f"{name}, {known[name].side}" for k, name in enumerate(chosen) if known[name].side == _OTHER[k % 2]]
        if wrong and not wheels.drive_angles:
            got = f"{'; '.join(wrong)}, as it turned, in another place"
            raise ParameterError("--wheels", got=got, expected="left, right, and again left, right")
        return wheels

    return _asked(given, "wheels", what, parse), _GIVEN


def _size(given: argparse.Namespace, option: str, *known: tuple[float, str]) -> tuple[float, str]:
    """A size of the base [m] and how it is known: given, else the first that is positive, else as answered."""
    what, low, high = _SIZES[option]

    def checked(value: float, how: str = _GIVEN) -> tuple[float, str]:
        if not low <= value <= high:
            remedy = "" if how == _GIVEN else "check that positions of wheels are in rad and motions in m"
            got, expected = f"{value:.4g} m, {how}", f"{low:g} to {high:g} m"
            raise ParameterError(what, got=got, expected=expected, remedy=remedy)
        return rounded(value), how

    if getattr(given, option) is None and (found := next((one for one in known if one[0] > 0.0), None)):
        return checked(*found)
    return _asked(given, option, f"{what} [m, or such as 97 mm]", lambda text: checked(read_distance(text)))


def _geometry(given: argparse.Namespace, wheels: Wheels, how: str, scaled: bool, in_urdf: np.ndarray) -> _Facts:
    """Sizes of the base: given, by a motion that shows them (`scaled`), or by x, y and radius (n, 3) in its URDF."""
    (length, track), shown = np.ptp(in_urdf[:, :2], axis=0).tolist(), 1.0 if scaled else math.nan
    lever, factor = shown * wheels.lever, wheels.lateral_factor if scaled else 1.0
    facts: _Facts = {}
    facts["wheel_radius"] = _size(given, "wheel_radius", (shown * wheels.radius, how), (in_urdf[:, 2].mean(), _DRAWN))
    if wheels.drive_angles:
        facts["wheel_distance"] = rounded(wheels.lever), how if scaled else how.replace("found by", "guessed from")
        facts["drive_angles"] = tuple(map(rounded, wheels.drive_angles)), how
    elif len(wheels.joints) == 2:
        facts["track"] = _size(given, "track", (2.0 * lever, how), (track, _DRAWN))
    else:
        even = f"guessed: length and width alike, with the sum {how}"
        length, note = _size(given, "wheelbase", (length, _DRAWN), (2.0 * lever / (1.0 + 1.0 / factor), even))
        width = 2.0 * lever - length / factor, note if note == even else how
        track, of = _size(given, "track", width, (track, _DRAWN))
        facts |= {"half_length": (rounded(0.5 * length), note), "half_width": (rounded(0.5 * track), of)}
        if abs(factor - 1.0) > _NEAR_ONE:
            facts["lateral_factor"] = rounded(factor), how
    return {f"base.geometry.{name}": fact for name, fact in facts.items()}


def _readings(wheels: Sequence[TurningJoint], signs: tuple[float, ...], is_bag: bool) -> _Facts:
    """Rate, steps and signs of the readings of the wheels."""
    facts: _Facts = {}
    how = f"found in {wheels[0].topic}" if is_bag else "found in the log"
    table = [(joint.rate, *joint.quanta) for joint in wheels]
    for name, values in zip(("rate", "position_quantum", "velocity_quantum"), zip(*table, strict=True), strict=True):
        if max(values) < (1.0 + _ALIKE) * min(values):
            facts[f"driver.{name}"] = rounded(float(np.mean(values))), how
    ratios = np.array([joint.ratio for joint in wheels])
    if np.any((reversed_ := np.nan_to_num(np.sign(ratios), nan=1.0) * (signs or 1.0)) < 0.0):
        how = how if np.all(np.isfinite(ratios)) else "guessed: positions and speeds alike"
        facts["driver.velocity_sign"] = tuple(reversed_.tolist()), how
    return facts


def _limits(drawn: Sequence[TurningJoint], joints: Sequence[str]) -> _Facts:
    """Largest speed of the wheels by the limits of their joints in a URDF."""
    speeds = [wheel.fastest for wheel in drawn if wheel.name in joints]
    slowest = min(speeds, default=math.inf)
    return {"base.limits.wheel_speed": (rounded(slowest), _DRAWN)} if 0.1 <= slowest <= _LARGEST_SPEED else {}


def _commanded_speeds(facts: _Facts, bag: Recording | None, judged: Judged) -> str:
    """Topic on which the driver takes speeds of the wheels; "" for one that takes twists, or where none is shown.

    Where twists were recorded too, the driver takes these, but for the name of our own topic to it.
    """
    known = {joint.name: joint for joint in judged.joints}
    names, _ = facts.get("driver.wheel_joints", ((), ""))
    wheels = [known[str(name)] for name in names if name in known] if isinstance(names, tuple) else []
    if bag is None or not wheels:
        return ""
    topic, _ = commanded_turns(bag, wheels)
    fits = bool(topic) and bag.topics[topic].type == JOINT_STATE
    return topic if fits and ("commands" not in judged.motions or topic.endswith(_OURS)) else ""


def _signs_of_commands(bag: Recording, wheels: Sequence[TurningJoint], signs: tuple[float, ...]) -> _Facts:
    """Signs of the commands of a driver that takes the speeds of the wheels."""
    topic, turns = commanded_turns(bag, wheels)
    same = tuple((np.array(turns) * (signs or 1.0)).tolist()) if turns else (1.0,)
    return {"driver.command_sign": (same, f"found in {topic}")} if min(same) < 0.0 else {}


def _arm(urdf: Path, has_base: bool) -> _Facts:
    """The arm of the URDF, if it has one; an error if it has neither arm nor base."""
    with suppress(ModelError) if has_base else nullcontext():
        root, tip = arm_chain(urdf)
        moving = [link for link in read_urdf(urdf, root, tip=tip)[1:] if link.joint_type != "fixed"]
        names, mass = listed([link.joint for link in moving]), sum(link.mass for link in moving)
        how = f"given, with joints {names}, {mass:.3g} kg, from {root} to {tip}"
        return {"arm.urdf": (str(urdf.absolute()), how)}
    return {}
