"""Which of my wheels is larger? A minute of driving, watched by motion capture, shows the radius of each.

The poses have a noise of 0.5 mm and 1 mrad.

    fl: 46.73 mm, 95 % from 46.72 to 46.73 mm (true 46.73), -0.5 %
    fr: 46.91 mm, 95 % from 46.91 to 46.92 mm (true 46.91), -0.1 %
    rl: 47.47 mm, 95 % from 47.46 to 47.48 mm (true 47.48), +1.1 %
    rr: 46.77 mm, 95 % from 46.77 to 46.78 mm (true 46.77), -0.4 %
    rl is the largest; mean radius 46.97 mm, identified
"""

from dataclasses import replace

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.identification.calibration import CalibrationSignals, calibrate
from youbot_dynamics.identification.excitation import base_program

SEED = 4
robot = yd.load_robot()
truth = replace(yd.load_truth(SEED), wheel_radius_error=(-0.004, 0.0, 0.012, -0.003))
path = base_program(robot, duration=60.0, room=1.0, dt=0.02, tries=20).trajectory()
run = yd.drive(path, robot, yd.BaseOnly(truth, robot.driver, SEED), SEED, yd.TrackerSettings(feedback=False))

readings = [message.report for message in run.messages if message.channel == "base"]
stamps = np.array([reading.stamp for reading in readings])
angles = np.array(robot.driver.position_sign) * [reading.position[:4] for reading in readings]
noise = np.random.default_rng(SEED).normal(size=run.true_pose.shape)
poses = run.true_pose + [5e-4, 5e-4, 1e-3] * noise  # [m, m, rad], as motion capture sees them

found = calibrate([CalibrationSignals(stamps, angles, run.reading_time, poses)], robot.base.geometry.mecanum())
mean = found["wheel_radius"].value
for wheel, true in zip(("fl", "fr", "rl", "rr"), 1e3 * truth.wheel_radii(), strict=True):
    radius = found[f"wheel_radius_{wheel}"]
    low, high = (1e3 * bound for bound in radius.interval)
    share = 100.0 * (radius.value / mean - 1.0)
    print(
        f"{wheel}: {1e3 * radius.value:.2f} mm, 95 % from {low:.2f} to {high:.2f} mm (true {true:.2f}), {share:+.1f} %"
    )
largest = max(("fl", "fr", "rl", "rr"), key=lambda wheel: found[f"wheel_radius_{wheel}"].value)
print(f"{largest} is the largest; mean radius {1e3 * mean:.2f} mm, {found['wheel_radius'].verdict}")
