"""`youbot play ... --write FILE`: the recommended excitations as files, without ROS."""

from __future__ import annotations

import argparse

from youbot_dynamics.commands.progress import announce
from youbot_dynamics.errors import ProgramError
from youbot_dynamics.identification.recommended import ARM, BASE, arm_motion, base_program, write_goal, write_program
from youbot_dynamics.robot import load_robot


def write_excitation(given: argparse.Namespace) -> int:
    """Write the program of the base, or the goal of the arm, and say how it is played.

    Raises:
        ProgramError: a program that is a file already, or a duration or room beyond what is sensible.
    """
    robot = load_robot(params_file=given.params_file)
    if given.program == BASE:
        program = base_program(robot, given.duration, given.room, given.dt).scaled(given.time_scale)
        write_program(given.write, program)
        announce(f"wrote {given.write}; play it with: youbot play {given.write} --dt {program.dt:g}")
    elif given.program == ARM:
        write_goal(given.write, arm_motion(robot, given.duration), robot.driver.arm_joints)
        announce(
            f"wrote {given.write}, which begins upright: bring the arm there first, keep its reach free, then: "
            "ros2 action send_goal /arm_1/arm_controller/follow_joint_trajectory "
            f'control_msgs/action/FollowJointTrajectory "$(cat {given.write})"'
        )
    else:
        raise ProgramError(f"--write with {given.program}", expected=f"{BASE} or {ARM}")
    return 0
