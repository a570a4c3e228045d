"""Will my robot tip over? Loads of the wheels with the arm stretched out, with a load, and while the base brakes.

Bars are the load of the wheel that carries least; below zero it has lifted.

"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.estimation.support import Carried, SupportModel

robot = yd.load_robot()
model = SupportModel(robot)
FOLDED = np.array(robot.arm.rest_position)
FORWARD = np.array([2.95, 2.65, -2.55, 1.79, 2.92])  # [rad] level, joint 1 turns it
HEAVY = Carried(3.0, [0.0, 0.0, 0.07])  # [kg], [m]; six times what the youBot may carry
BRAKING = [-3.0, 0.0, 0.0]  # [m/s2, m/s2, rad/s2], twice the limit of the base


def aside(arm: np.ndarray) -> np.ndarray:
    """The same, turned to the left."""
    return arm - [0.5 * np.pi, 0.0, 0.0, 0.0, 0.0]


least = {}
for load, carried in (("empty", Carried()), (f"{HEAVY.mass:.0f} kg", HEAVY)):
    model.carry(carried)
    for what, arm in (("folded", FOLDED), ("forward", FORWARD), ("to the side", aside(FORWARD))):
        for how, rate in (("at rest", [0.0, 0.0, 0.0]), ("braking", BRAKING)):
            support = model.support(arm, twist_rate=rate)
            wheel = ("fl", "fr", "rl", "rr")[int(np.argmin(support.normal_forces))]
            print(f"{load:5s} arm {what:11s} {how}: {wheel} {support.margin:6.1f} N {'#' * round(support.margin / 2)}")
            least[support.margin] = f"{load}, arm {what}, {how}"
worst = min(least)
print(f"worst: {least[worst]}, {'a wheel lifts' if worst < 0.0 else 'all wheels stay on the floor'}")
