"""Is one of my encoders reversed? A drive seen by a camera says which signs of the wheels fit the motion.

Here the driver reports the front left wheel with the wrong sign.

    as they are: wheel radius identified
    fl reversed: wheel radius not identifiable: the poses do not follo
    the poses do not follow the wheels, but would if the readings of fl were reversed and the tracked body turned by 0 deg on the robot (correct robot.driver.position_sign)
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.identification.calibration import CalibrationSignals, calibrate
from youbot_dynamics.resources import program_path, robot_path

SEED, FILE = 2, robot_path("dingo_o")
robot = yd.load_robot(robot_file=FILE)
path = read_program(program_path("combined"), dt=0.02).trajectory()
plant = yd.BaseOnly(yd.load_truth(SEED, FILE), robot.driver, SEED)
run = yd.drive(path, robot, plant, SEED, yd.TrackerSettings(feedback=False))

readings = [message.report for message in run.messages if message.channel == "base"]
stamps = np.array([reading.stamp for reading in readings])
angles = np.array([reading.position[:4] for reading in readings])
noise = np.random.default_rng(SEED).normal(size=run.true_pose.shape)
poses = run.true_pose + [2e-3, 2e-3, 5e-3] * noise  # [m, m, rad] of a camera

for what, sign in (("as they are", 1.0), ("fl reversed", -1.0)):
    signals = CalibrationSignals(stamps, angles * [sign, 1.0, 1.0, 1.0], run.reading_time, poses)
    found = calibrate([signals], robot.base.geometry.mecanum())
    print(f"{what}: wheel radius {found['wheel_radius'].verdict[:40]}")
print(found.wiring)
