"""`youbot new-robot`: a robot file from a recording, a URDF and the answers of its owner."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from youbot_dynamics.bringup_plan import option_words
from youbot_dynamics.commands._terminal import announce, new_file
from youbot_dynamics.dynamics.tree import arm_chain, read_urdf
from youbot_dynamics.errors import InputError, ModelError, ParameterError, did_you_mean
from youbot_dynamics.identification.calibration import read_distance
from youbot_dynamics.identification.new_robot import (
    Judged,
    TurningJoint,
    Wheels,
    arranged,
    drawn_wheels,
    turning_joints,
)
from youbot_dynamics.identification.reading import Options, columns_of, listed, open_recording, robot_of
from youbot_dynamics.parameter_file import format_value, write_parameters
from youbot_dynamics.parameters import Value
from youbot_dynamics.recording.bag import Recording, open_bag
from youbot_dynamics.recording.message_types import TWIST, TWIST_STAMPED
from youbot_dynamics.robot import Robot, assumptions, load_robot, robot_from_values, robot_table

_Answer = TypeVar("_Answer")
_DRAWN, _GIVEN = "found in the URDF", "given"
_RADII = 0.02, 0.2  # [m] of wheels
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
    name = recording.metadata.get("robot_id", "") if recording else ""
    named = "found in the recording" if name else "given by --out"
    facts: dict[str, tuple[Value, str]] = {"robot_id": (name or given.out.stem, named)}
    judged = turning_joints(recording) if recording else Judged("", "", ())
    drawn, places, mass = drawn_wheels(given.urdf) if given.urdf else ((), {}, 0.0)
    turning = judged.wheels
    others = [joint.name for joint in judged.joints if not (joint in turning or joint.name in places)]
    if turning or drawn or given.wheels or not given.urdf:
        how = f"found by {judged.by}, {judged.topic}" if turning else _DRAWN
        known = {joint.name: joint for joint in (*drawn, *judged.joints)}
        wheels, of = _wheels(given, turning or drawn, known, how)
        facts["driver.wheel_joints"] = wheels.joints, of
        if min(wheels.signs, default=1.0) < 0.0:
            facts["driver.position_sign"] = wheels.signs, how
        in_urdf = np.array([places.get(name, (math.nan,) * 3) for name in wheels.joints])
        facts |= _geometry(given, wheels, how, judged.by in ("odometry", "poses"), in_urdf)
        if mass > 0.0 and np.all(np.isfinite(in_urdf[:, 0])):
            facts["base.mass"] = _rounded(mass), _DRAWN
        facts |= _readings([known[name] for name in wheels.joints], wheels.signs)
    twists = [one for one in recording.topics.values() if one.type in (TWIST, TWIST_STAMPED)] if recording else []
    if twists and all(one.type == TWIST_STAMPED for one in twists):
        facts["driver.stamped_twist"] = True, f"found by {twists[0].name}"
    if given.urdf:
        facts |= _arm(given, bool(turning or drawn or given.wheels))
    robot = _write(given.out, {f"robot.{name}": fact for name, fact in facts.items()})
    if others and not given.urdf:
        announce(f"note: also turned: {listed(others)}; if it is an arm, give its URDF with --urdf")
    if assumed := assumptions(given.out):
        announce(f"note: {assumed}")
    identify = ["youbot", "identify", str(given.bag), *option_words(robot_file=given.out, out="found")]
    mock = ["youbot", "bringup", *option_words(robot="mock", robot_file=given.out)]
    play = ["youbot", "play", "arm_excitation", *option_words(write="goal.yaml", robot_file=given.out)]
    suggested = (identify, recording), (mock, robot.has_base), (play, not recording and not robot.has_base)
    announce(f"wrote {given.out}; next: {', or '.join(shlex.join(words) for words, fits in suggested if fits)}")
    return 0


def _write(out: Path, facts: Mapping[str, tuple[Value, str]]) -> Robot:
    """Check the facts, write the file, and tell them by how they are known.

    Raises:
        ParameterError: a value that no robot can have.
    """
    table = {one.name: one for one in robot_table({name: value for name, (value, _) in facts.items()})}
    values = {name: table[name].check(value) for name, (value, _) in facts.items()}
    robot = robot_from_values({name: one.default for name, one in table.items()} | values)
    if urdf := values.get("robot.arm.urdf"):  # a URDF beside the file by its name, so that both can be moved
        values["robot.arm.urdf"] = str(urdf).removeprefix(f"{out.absolute().parent}/")
    notes = {name: note for name, (_, note) in facts.items()}
    head = ["Written by youbot new-robot; behind each value: how it is known. More values: docs/new_robot.md."]
    write_parameters(out, "/**", values, head, notes)
    for how in dict.fromkeys(notes.values()):
        told = [f"{name.rpartition('.')[2]} {format_value(values[name])}" for name in values if notes[name] == how]
        announce(f"{how}: {', '.join(told)}".replace("'", ""))
    return robot


def _recording(given: argparse.Namespace) -> Recording:
    youbot = load_robot()
    if (log := columns_of(given.bag, given.columns, given.rate, youbot)) is None:
        return open_bag(given.bag)
    if log.told:
        announce(f"note: {log.told}")
    return open_recording(given.bag, 0, robot_of([log], youbot), Options(columns=given.columns, rate=given.rate)).bag()


def _asked(given: argparse.Namespace, option: str, what: str, parse: Callable[[str], _Answer]) -> _Answer:
    """Value of an option, else the answer on a terminal.

    Raises:
        ParameterError: neither an option nor a terminal, or the input ended.
        InputError: an option that cannot be understood.
    """
    if (text := getattr(given, option)) is not None:
        return parse(text)
    while sys.stdin.isatty():
        print(f"{what}: ", end="", file=sys.stderr, flush=True)
        if not (line := sys.stdin.readline()):
            break
        try:
            return parse(line)
        except (InputError, ParameterError) as problem:
            announce(f"not understood: {problem}")
    name = f"--{option.replace('_', '-')}"
    raise ParameterError(name, got="nothing", expected=what, remedy="give it, or answer on a terminal")


def _wheels(
    given: argparse.Namespace, likely: Sequence[TurningJoint], known: Mapping[str, TurningJoint], how: str
) -> tuple[Wheels, str]:
    """The wheels of the base, by how they turn with it, or as the user says; and which of both."""
    found = None if given.wheels else arranged(likely)
    if found is not None:
        return found, how
    names = ", ".join(joint.name for joint in likely) or f"some of {', '.join(known)}"
    what = f"joints ({names}) of the wheels front left, front right, rear left, rear right; or left, right without "
    what += "rollers; for an arm give --urdf"

    def parse(text: str) -> Wheels:
        chosen = [name.strip() for name in text.split(",")]
        for name in chosen:
            if name not in known:
                remedy = did_you_mean(name, list(known))
                raise ParameterError("--wheels", got=name, expected=f"one of {', '.join(known)}", remedy=remedy)
        if (wheels := arranged([known[name] for name in chosen], ordered=True)) is None:
            expected = "two or four, or omni wheels in a recording of motion along all axes"
            raise ParameterError("--wheels", got=f"{len(chosen)} joints", expected=expected)
        return wheels

    return _asked(given, "wheels", what, parse), _GIVEN


def _geometry(
    given: argparse.Namespace, wheels: Wheels, how: str, scaled: bool, in_urdf: np.ndarray
) -> dict[str, tuple[Value, str]]:
    """Sizes of the base: given, by a motion that shows them (`scaled`), or by x, y and radius (n, 3) in its URDF."""

    def size(option: str, what: str, *known: tuple[float, str]) -> tuple[float, str]:
        sizes = [] if getattr(given, option) is not None else [one for one in known if one[0] > 0.0]
        value, note = (
            sizes[0] if sizes else (_asked(given, option, f"{what} [m, or such as 97 mm]", read_distance), _GIVEN)
        )
        return _rounded(value), note

    (length, track), shown = np.ptp(in_urdf[:, :2], axis=0).tolist(), 1.0 if scaled else math.nan
    lever, factor = shown * wheels.lever, wheels.lateral_factor if scaled else 1.0
    radius = size("wheel_radius", "wheel radius", (shown * wheels.radius, how), (float(np.mean(in_urdf[:, 2])), _DRAWN))
    if not _RADII[0] < radius[0] < _RADII[1]:
        got, expected = f"{radius[0]:g} m, {radius[1]}", f"{_RADII[0]:g} to {_RADII[1]:g} m"
        remedy = "check that positions of wheels are in rad and motions in m"
        raise ParameterError("wheel radius", got=got, expected=expected, remedy=remedy)
    facts: dict[str, tuple[Value, str]] = {"wheel_radius": radius}
    across = "distance between left and right wheel"
    if wheels.drive_angles:
        facts["wheel_distance"] = _rounded(wheels.lever), how
        facts["drive_angles"] = tuple(map(_rounded, wheels.drive_angles)), how
    elif len(wheels.joints) == 2:
        facts["track"] = size("track", across, (2.0 * lever, how), (track, _DRAWN))
    else:
        even = (
            2.0 * lever / (1.0 + 1.0 / factor),
            f"guessed: as long as wide; {how.removeprefix('found ')} shows the sum",
        )
        length, note = size("wheelbase", "distance between front and rear axle", (length, _DRAWN), even)
        width = 2.0 * lever - length / factor, note if note == even[1] else how
        track, of = size("track", across, width, (track, _DRAWN))
        facts |= {"half_length": (_rounded(0.5 * length), note), "half_width": (_rounded(0.5 * track), of)}
        if abs(factor - 1.0) > _NEAR_ONE:
            facts["lateral_factor"] = _rounded(factor), how
    return {f"base.geometry.{name}": fact for name, fact in facts.items()}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _readings(wheels: Sequence[TurningJoint], signs: tuple[float, ...]) -> dict[str, tuple[Value, str]]:
    """Rate, steps and signs of the readings of the wheels."""
    facts: dict[str, tuple[Value, str]] = {}
    for name, values in (
        ("rate", [joint.rate for joint in wheels]),
        ("position_quantum", [joint.quanta[0] for joint in wheels]),
        ("velocity_quantum", [joint.quanta[1] for joint in wheels]),
    ):
        if max(values) < (1.0 + _ALIKE) * min(values):
            facts[f"driver.{name}"] = _rounded(float(np.mean(values))), f"found in {wheels[0].topic}"
    ratios = np.nan_to_num(np.sign([joint.ratio for joint in wheels]), nan=1.0)
    if np.any((velocity_signs := ratios * (signs or 1.0)) < 0.0):
        facts["driver.velocity_sign"] = tuple(velocity_signs.tolist()), f"found in {wheels[0].topic}"
    return facts


def _arm(given: argparse.Namespace, has_base: bool) -> dict[str, tuple[Value, str]]:
    """The arm of the URDF, if it has one.

    Raises:
        ModelError: neither an arm nor a base.
    """
    try:
        root, tip = arm_chain(given.urdf)
    except ModelError:
        if has_base:
            return {}
        raise
    moving = [link for link in read_urdf(given.urdf, root, tip=tip)[1:] if link.joint_type != "fixed"]
    names, mass = listed([link.joint for link in moving]), sum(link.mass for link in moving)
    return {
        "arm.urdf": (str(given.urdf.absolute()), f"given, with joints {names}, {mass:.3g} kg, from {root} to {tip}")
    }
