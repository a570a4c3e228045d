"""Is one of my encoders reversed? A drive seen by a camera says which signs of the wheels fit the motion.

Here the driver reports the front left wheel with the wrong sign.

    the poses do not follow the wheels, but would if the readings of fl were reversed and the tracked
    body turned by 0 deg on the robot (correct robot.driver.position_sign)
    with fl put right: wheel radius 51.1 mm, identified
"""

import textwrap

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


def calibrated(signs: list[float]):
    """Calibration of the base with the wheels' readings times signs."""
    signals = CalibrationSignals(stamps, angles * signs, run.reading_time, poses)
    return calibrate([signals], robot.base.geometry.mecanum())


reported = [-1.0, 1.0, 1.0, 1.0]
print(textwrap.fill(calibrated(reported).wiring.text, 100))
radius = calibrated([1.0, 1.0, 1.0, 1.0])["wheel_radius"]
print(f"with fl put right: wheel radius {1e3 * radius.value:.1f} mm, {radius.verdict}")
