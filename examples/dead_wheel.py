"""A wheel fails while my robot drives: when does it know, and how far has it gone astray? The tracker gives up.

The motor of the front left wheel dies 8 s into a drive of 20 s.

    wheel_joint_fl stands still though commanded: it is dead or stuck, or its encoder does not count
    off the path: 26 mm at the failure, 28 mm when it was given up
    given up 0.32 s after the failure, at rest 0.93 s after it
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.resources import program_path
from youbot_dynamics.simulation.faults import parse_faults

SEED, FAILS = 1, 8.0  # [s]
robot = yd.load_robot()
path = read_program(program_path("translation"), dt=0.02).trajectory()
faults = parse_faults(f"dead_wheel joint=wheel_joint_fl after={FAILS}", robot.driver)
run = yd.drive(path, robot, yd.BaseOnly(yd.load_truth(SEED), robot.driver, SEED), SEED, faults=faults)


def astray(time: float) -> float:
    """Distance [mm] of the true position from the desired one at a time [s] of the simulation."""
    pose = run.true_pose[np.searchsorted(run.reading_time, time)]
    return 1e3 * float(np.linalg.norm((pose - path.pose(time - run.start))[:2]))


given_up = run.tracker_requests[-1].stamp
moving = run.reading_time[np.linalg.norm(run.true_twist, axis=1) > 1e-3]
print(run.given_up)
print(f"off the path: {astray(FAILS):.0f} mm at the failure, {astray(given_up):.0f} mm when it was given up")
print(f"given up {given_up - FAILS:.2f} s after the failure, at rest {moving[-1] - FAILS:.2f} s after it")
