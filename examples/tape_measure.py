"""Which wheel radius and size has my base, without motion capture? Three legs and a tape measure show it.

The base drives 1.5 m forward, 1.5 m sideways and three turns; each end is measured, to 2 mm and to 1 degree. The lever,
half_length / lateral_factor + half_width, is the distance at which the wheels turn the base. `youbot calibrate --tape`
does this with a running robot.

    forward: asked for 1.500, measured 1.476 m
    sideways: asked for 1.500, measured 1.496 m
    turn: asked for 18.850, measured 18.523 rad
    lateral_factor: 0.9671, 95 % from 0.9632 to 0.9710 (true 0.9665)
    lever: 0.3972, 95 % from 0.3958 to 0.3986 (true 0.3971)
    wheel_radius: 0.0471, 95 % from 0.0469 to 0.0472 (true 0.0471)
"""

from math import hypot, pi, radians

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.identification.calibration import TapeLeg, calibrate_by_tape, tape_program

SEED = 1
robot, truth = yd.load_robot(), yd.load_truth(SEED)
random = np.random.default_rng(SEED)
legs = []
for kind, amount, error in (("forward", 1.5, 0.002), ("sideways", 1.5, 0.002), ("turn", 6.0 * pi, radians(1.0))):
    path = tape_program(kind, amount, robot.base).trajectory()
    run = yd.drive(path, robot, yd.BaseOnly(truth, robot.driver, SEED), SEED, yd.TrackerSettings(feedback=False))
    readings = [message.report.position[:4] for message in run.messages if message.channel == "base"]
    x, y, yaw = np.unwrap(run.true_pose, axis=0, period=2.0 * pi)[-1]
    measured = (yaw if kind == "turn" else hypot(x, y)) + error * random.normal()
    legs.append(TapeLeg(kind, np.array(robot.driver.position_sign) * readings, measured, error))
    print(f"{kind}: asked for {amount:.3f}, measured {measured:.3f} {'rad' if kind == 'turn' else 'm'}")

found = calibrate_by_tape(legs, robot.base.geometry.mecanum())
lever = truth.half_length / truth.lateral_factor + truth.half_width
true = {"lateral_factor": truth.lateral_factor, "lever": lever, "wheel_radius": truth.wheel_radius}
for name, value in true.items():
    low, high = found[name].interval
    print(f"{name}: {found[name].value:.4f}, 95 % from {low:.4f} to {high:.4f} (true {value:.4f})")
