"""How fast can my omni base drive, and in which direction fastest?

Three wheels of a Robotino 2, from its robot file; the bars are its top speed.
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.resources import robot_path

robot = yd.load_robot(robot_file=robot_path("robotino_2"))
base, limit = robot.base.geometry.mecanum(), robot.base.limits.wheel_speed

degrees = np.arange(0, 121, 10)
angles = np.radians(degrees)
unit = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))])  # 1 m/s in each direction
top = limit / np.abs(base.wheel_speeds(unit)).max(axis=1)  # [m/s]
for degree, speed in zip(degrees.tolist(), top.tolist(), strict=True):
    print(f"{degree:4d} deg {'#' * round(40 * speed)} {speed:.3f} m/s")
turn = limit / np.abs(base.wheel_speeds([0.0, 0.0, 1.0])).max()
print(f"turning on the spot: {turn:.2f} rad/s")
print(f"slowest {top.min():.3f} m/s at {degrees[top.argmin()]} deg, ", end="")
print(f"fastest {top.max():.3f} m/s at {degrees[top.argmax()]} deg")
