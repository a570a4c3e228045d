"""Will my robot tip over with this load? The wheels say so: one that would have to be pulled down has lifted.

Bars are the load of the wheel that carries least, with 2 kg in the gripper of a youBot, four times what it may carry.

    arm folded      at rest: rl  62.6 N ###############################
    arm folded      braking: rl  54.9 N ###########################
    arm forward     at rest: rl  43.1 N ######################
    arm forward     braking: rl  36.6 N ##################
    arm to the left at rest: rr  32.0 N ################
    arm to the left braking: rr  25.5 N #############
    arm to the left, braking: a wheel lifts from 5.2 kg on
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.estimation.support import Carried, SupportModel

robot = yd.load_robot()
model = SupportModel(robot)
FOLDED = np.array(robot.arm.rest_position)
FORWARD = np.array([2.95, 2.65, -2.55, 1.79, 2.92])  # [rad] level
LEFT = FORWARD - [0.5 * np.pi, 0.0, 0.0, 0.0, 0.0]
BRAKING = [-robot.base.limits.deceleration, 0.0, 0.0]  # [m/s2, m/s2, rad/s2]


def least(arm: np.ndarray, rate: list[float], mass: float) -> tuple[float, str]:
    """Load [N] of the wheel that carries least, and its name, with a mass [kg] in the gripper."""
    model.carry(Carried(mass, robot.arm.grip_point))
    forces = model.support(arm, twist_rate=rate).normal_forces
    return float(forces.min()), ("fl", "fr", "rl", "rr")[int(forces.argmin())]


for what, arm in (("folded", FOLDED), ("forward", FORWARD), ("to the left", LEFT)):
    for how, rate in (("at rest", [0.0, 0.0, 0.0]), ("braking", BRAKING)):
        force, wheel = least(arm, rate, 2.0)
        print(f"arm {what:11s} {how}: {wheel} {force:5.1f} N {'#' * round(force / 2.0)}")
first = next(mass for mass in np.arange(0.0, 20.0, 0.1) if least(LEFT, BRAKING, mass)[0] < 0.0)
print(f"arm to the left, braking: a wheel lifts from {first:.1f} kg on")
