"""`youbot play ... --write FILE`: the recommended excitations as files, without ROS."""

from __future__ import annotations

import argparse
import shlex

from youbot_dynamics.commands.terminal import announce
from youbot_dynamics.errors import ProgramError
from youbot_dynamics.identification.excitation import ARM, BASE, arm_motion, base_program, write_goal, write_program
from youbot_dynamics.robot import load_robot

_SHORTEST_LINE, _LONGEST_LINE = 0.001, 0.1  # [s]
_FASTEST, _SLOWEST = 0.1, 1000.0  # times slower than chosen


def check_numbers(given: argparse.Namespace) -> None:
    """Refuse impossible numbers before the search for a motion.

    Raises:
        ProgramError: an excitation whose lines are held too long, an impossible time scale, or one for the arm,
            whose excitation has a fixed speed.
    """
    if given.program == BASE and not _SHORTEST_LINE <= given.dt <= _LONGEST_LINE:
        expected = f"{_SHORTEST_LINE:g} to {_LONGEST_LINE:g} s for an excitation"
        raise ProgramError("--dt", got=f"{given.dt:g} s", expected=expected)
    if given.program == BASE and not _FASTEST <= given.time_scale <= _SLOWEST:
        raise ProgramError("--time-scale", got=f"{given.time_scale:g}", expected=f"{_FASTEST:g} to {_SLOWEST:g}")
    if given.program == ARM and given.time_scale != 1.0:
        remedy = "leave it out, or choose another --duration"
        raise ProgramError(f"--time-scale with {ARM}", got=f"{given.time_scale:g}", expected="1", remedy=remedy)


def write_excitation(given: argparse.Namespace) -> int:
    """Write the program of the base, or the goal of the arm, and say how to play it.

    Raises:
        ProgramError: a program that is a file already, a duration or room beyond what is sensible, a motion too fast
            for the robot, or a file that cannot be written.
    """
    try:
        _write(given)
    except OSError as problem:
        got, expected = str(problem.strerror), "a file that can be written, in a folder that is there"
        raise ProgramError(f"--write {given.write}", got=got, expected=expected, remedy="name another one") from None
    return 0


def _write(given: argparse.Namespace) -> None:
    robot, quoted = load_robot(params_file=given.params_file), shlex.quote(str(given.write))
    if given.program == BASE:
        program = base_program(robot, given.duration, given.room, given.dt).scaled(given.time_scale)
        program.check(robot.base)
        write_program(given.write, program)
        announce(f"wrote {given.write}; play it with: youbot play {quoted} --dt {program.dt:g}")
    elif given.program == ARM:
        write_goal(given.write, arm_motion(robot, given.duration), robot.driver.arm_joints)
        announce(
            f"wrote {given.write}, which starts upright: move the arm there first, keep its reach free, then run: "
            "ros2 action send_goal /arm_1/arm_controller/follow_joint_trajectory "
            f'control_msgs/action/FollowJointTrajectory "$(cat {quoted})"'
        )
    else:
        raise ProgramError(f"--write with {given.program}", expected=f"{BASE} or {ARM}")
