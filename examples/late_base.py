"""How late is my base, and does feedback help? A ROSbot XL, whose driver runs at 20 Hz.

One drive shows the delay of each axis. The same path is then driven with and without the delay, and with and without
feedback. Errors are root mean squares against the true position; what is left is mostly a wrong wheel radius and size.

    delay x: 239.8 ms, 95 % from 237.0 to 242.7 ms
    delay y: 348.7 ms, 95 % from 345.0 to 352.3 ms
    delay yaw: 148.8 ms, 95 % from 143.0 to 154.6 ms
    delay ignored:     56.6 mm without feedback, 26.6 mm with
    delay compensated: 22.6 mm without feedback, 12.9 mm with
"""

from dataclasses import replace

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.resources import program_path, robot_path

SEED = 1  # which robot: its truth is drawn from it
FILE = robot_path("rosbot_xl")
sheets = yd.load_robot(robot_file=FILE)
path = read_program(program_path("combined"), dt=0.02).trajectory()


def drive(robot: yd.Robot, feedback: bool):
    """Drive the path with what is believed of the robot."""
    plant = yd.BaseOnly(yd.load_truth(SEED, FILE), sheets.driver, SEED)
    return yd.drive(path, robot, plant, SEED, yd.TrackerSettings(feedback=feedback))


def error(run) -> float:
    """Root mean square distance [mm] of the true position from the desired one."""
    during = (run.reading_time >= run.start) & (run.reading_time <= run.start + path.duration)
    away = run.true_pose[during] - path.path(run.reading_time[during] - run.start)
    return 1e3 * float(np.sqrt(np.mean(np.sum(away[:, :2] ** 2, axis=1))))


first = drive(sheets, feedback=False)
wheels = sheets.base.geometry.mecanum()
readings = [message.report for message in first.messages if message.channel == "base"]
delays = yd.estimate_delay(
    [sent.stamp for sent in first.sent],
    wheels.twist(np.array([sent.wheel_speeds for sent in first.sent])),
    [reading.stamp for reading in readings],
    wheels.twist(np.array([reading.position[:4] for reading in readings])),
    measured_is="position",
    channels=("x", "y", "yaw"),
)
for axis in delays:
    low, high = axis.interval
    print(f"delay {axis.channel}: {1e3 * axis.value:.1f} ms, 95 % from {1e3 * low:.1f} to {1e3 * high:.1f} ms")

effective = {f"effective_{axis.channel}": axis.value for axis in delays}
known = replace(sheets, base=replace(sheets.base, delay=replace(sheets.base.delay, **effective)))
errors = [error(drive(robot, feedback)) for robot in (sheets, known) for feedback in (False, True)]
print(f"delay ignored:     {errors[0]:.1f} mm without feedback, {errors[1]:.1f} mm with")
print(f"delay compensated: {errors[2]:.1f} mm without feedback, {errors[3]:.1f} mm with")
