"""`youbot play ... --write FILE`: write the recommended excitations to files, without ROS."""

from __future__ import annotations

import argparse
import shlex

from youbot_dynamics.bringup_plan import option_words
from youbot_dynamics.commands._terminal import announce, new_file
from youbot_dynamics.errors import ProgramError
from youbot_dynamics.resources import ARM_EXCITATION, EXCITATION, robot_path
from youbot_dynamics.robot import assumptions, load_robot

_DURATION, _ROOM = 60.0, 1.0  # of an excitation, unless given [s], [m]
_LONGEST = 600.0  # the same with --until [s]
_SHORTEST_LINE, _LONGEST_LINE = 0.001, 0.1  # [s]
_FASTEST, _SLOWEST = 0.1, 1000.0  # bounds of --time-scale


def check_numbers(given: argparse.Namespace) -> tuple[float, float]:
    """Check the numbers before the search for a motion; return duration [s] and room [m] of an excitation.

    Raises:
        ProgramError: --dt is too long for an excitation, the time scale is out of range, a time scale was given for
            the arm, whose excitation has a fixed speed, duration or room for a program that has its own, or a wish for
            another motion than the excitation of the base, or beside --write, or a pose topic without a wish.
    """
    for option, programs in (("duration", (EXCITATION, ARM_EXCITATION)), ("room", (EXCITATION,))):
        if (value := getattr(given, option)) is not None and given.program not in programs:
            raise ProgramError(
                f"--{option} with {given.program}",
                got=f"{value:g}",
                expected=f"it for {' or '.join(programs)} alone",
                remedy="leave it out" + "; --time-scale slows a path down" * (option == "duration"),
            )
    if given.program == EXCITATION and not _SHORTEST_LINE <= given.dt <= _LONGEST_LINE:
        expected = f"{_SHORTEST_LINE:g} to {_LONGEST_LINE:g} s for an excitation"
        raise ProgramError("--dt", got=f"{given.dt:g} s", expected=expected)
    if given.program == EXCITATION and not _FASTEST <= given.time_scale <= _SLOWEST:
        raise ProgramError("--time-scale", got=f"{given.time_scale:g}", expected=f"{_FASTEST:g} to {_SLOWEST:g}")
    if given.program == ARM_EXCITATION and given.time_scale != 1.0:
        remedy = "leave it out, or choose another --duration"
        raise ProgramError(
            f"--time-scale with {ARM_EXCITATION}", got=f"{given.time_scale:g}", expected="1", remedy=remedy
        )
    duration = _LONGEST if given.until is not None else _DURATION
    for option, value, why in (("pose-topic", given.pose_topic, "fitted"), ("out", given.out, "recorded")):
        if given.until is None and value:
            raise ProgramError(f"--{option}", got="no --until", expected=f"both: other motions are not {why}")
    if given.until is not None and given.program != EXCITATION:
        raise ProgramError("--until", got=f"the program {given.program}", expected=EXCITATION)
    if given.until is not None and given.write is not None:
        got, expected = "--write too", "a motion to drive: what is found chooses it"
        raise ProgramError("--until", got=got, expected=expected, remedy="leave one of them out")
    if given.until is not None and given.out is None:
        raise ProgramError("--until", got="no --out", expected="a folder for the recording", remedy="add --out drive_1")
    return duration if given.duration is None else given.duration, _ROOM if given.room is None else given.room


def write_excitation(given: argparse.Namespace) -> int:
    """Write the program of the base or the goal of the arm, and print how to play it.

    Raises:
        ProgramError: the program is an existing file, duration or room are out of range, the motion is too fast for the
            robot, or the file cannot be written.
        OutputError: the file exists, and --overwrite was not given.
    """
    new_file("--write", given.write, given.overwrite)
    try:
        _write(given)
    except OSError as problem:
        got, expected = str(problem.strerror), "a writable file in an existing folder"
        raise ProgramError(f"--write {given.write}", got=got, expected=expected, remedy="name another one") from None
    return 0


def _write(given: argparse.Namespace) -> None:
    # Only here: it takes two seconds, and every `youbot play` imports this file.
    from youbot_dynamics.identification.excitation import arm_motion, base_program, write_goal, write_program

    robot = load_robot(params_file=given.params_file, robot_file=robot_path(given.robot_file))
    quoted = shlex.quote(str(given.write))
    files = shlex.join(option_words(robot_file=given.robot_file, params_file=given.params_file))
    if given.program == EXCITATION:
        program = base_program(robot, given.duration, given.room, given.dt).scaled(given.time_scale)
        program.check(robot.base)
        command = f"youbot play {quoted} --dt {program.dt:g} {files}".strip()
        write_program(given.write, program, command)
        announce(f"wrote {given.write}; play it with: {command}")
    elif given.program == ARM_EXCITATION:
        write_goal(given.write, arm_motion(robot, given.duration), robot.driver.arm_joints)
        announce(
            f"wrote {given.write}, which starts upright: move the arm there first, clear its workspace, then run: "
            "ros2 action send_goal /arm_1/arm_controller/follow_joint_trajectory "
            f'control_msgs/action/FollowJointTrajectory "$(cat {quoted})"'
        )
    else:
        got, remedy = f"the program {given.program}", "leave --write out to play it"
        raise ProgramError("--write", got=got, expected=f"{EXCITATION} or {ARM_EXCITATION}", remedy=remedy)
    if assumed := assumptions(given.robot_file, given.params_file):
        announce(f"note: {assumed}")
