"""`youbot calibrate --tape`: geometry of the base from measured ends of short drives, without motion capture."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from youbot_dynamics.bringup_plan import positive
from youbot_dynamics.commands._terminal import announce, new_file, print_answer, robot_words
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.identification.calibration import TapeLeg, read_distance, read_turn, recorded_legs, tape_findings
from youbot_dynamics.identification.result import Result, next_bringup
from youbot_dynamics.parameter_file import write_parameters
from youbot_dynamics.recording.bag import open_bag
from youbot_dynamics.resources import robot_path
from youbot_dynamics.robot import Robot, load_robot

_STAGE = "calibration"


def calibrate_command(given: argparse.Namespace, ros_arguments: Sequence[str]) -> int:
    """Run the command; return 3 if a value is not identifiable, 1 or 130 if the drive ended early.

    Raises:
        YoubotDynamicsError: an option, a recording or a file cannot be used.
    """
    for name, value in (("distance-error", given.distance_error), ("angle-error", given.angle_error)):
        positive(f"--{name}", value)
    if given.write is not None:
        new_file("--write", given.write, given.overwrite)
    errors = dict.fromkeys(("forward", "sideways"), given.distance_error)
    errors["turn"] = math.radians(given.angle_error)
    robot = load_robot(params_file=given.params_file, robot_file=robot_path(given.robot_file))
    robot.base.geometry.mecanum().refuse_steered("youbot calibrate --tape")
    kinds = [kind for kind in errors if kind != "sideways" or robot.base.geometry.moves_sideways]
    legs, ended = (_recorded(given, robot, errors), 0) if given.bag else _driven(given, kinds, errors, ros_arguments)
    if not legs:
        return ended
    findings = tape_findings(legs, robot)
    stages = {finding.name: _STAGE for finding in findings}
    result = Result(robot.robot_id, findings, (_STAGE,), {}, stages, ())
    print_answer(result)
    if ended:
        announce(f"the drive ended early: these values are of the finished legs, {len(legs)} of {len(kinds)}")
    announce("the radius is the mean of the wheels; youbot identify finds delays and friction in a recorded drive")
    if given.write is not None:
        command = next_bringup(robot_words(given), str(given.write))
        head = ["Calibrated with a tape measure: youbot calibrate --tape.", f"Use: {command}"]
        write_parameters(given.write, "/**", result.parameters(), head)
        announce(f"wrote {given.write}; drive with it:", command)
    return ended or (0 if result.complete else 3)


def _driven(
    given: argparse.Namespace, kinds: Sequence[str], errors: dict[str, float], ros_arguments: Sequence[str]
) -> tuple[list[TapeLeg], int]:
    from youbot_dynamics.nodes.tape_player import drive_legs

    if not 0.2 <= given.distance <= 10.0:
        raise ParameterError("--distance", got=f"{given.distance:g} m", expected="0.2 to 10 m")
    if not 1 <= given.turns <= 20:
        raise ParameterError("--turns", got=str(given.turns), expected="1 to 20")
    turn = 2.0 * math.pi * given.turns
    plan = [(kind, turn if kind == "turn" else given.distance) for kind in kinds]
    return drive_legs(plan, errors, ros_arguments)


def _recorded(given: argparse.Namespace, robot: Robot, errors: dict[str, float]) -> list[TapeLeg]:
    readings = {"forward": given.forward, "sideways": given.sideways, "turn": given.turn}
    known = {
        kind: (read_turn if kind == "turn" else read_distance)(text)
        for kind, text in readings.items()
        if text is not None
    }
    if not known:
        raise ParameterError("--bag", got="no reading", remedy="give --forward, --sideways and --turn as measured")
    recorded = recorded_legs(open_bag(given.bag), robot, len(known))
    pairs = zip(known.items(), recorded, strict=True)
    return [TapeLeg(kind, angles, value, errors[kind]) for (kind, value), angles in pairs]
