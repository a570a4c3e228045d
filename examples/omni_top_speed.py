"""How fast can my omni base drive, and in which direction fastest?

Three wheels of a Robotino 2, from its robot file; the bars are its top speed.

       0 deg ############################################ 1.088 m/s
      10 deg ######################################## 1.003 m/s
      20 deg ###################################### 0.957 m/s
      30 deg ###################################### 0.942 m/s
      40 deg ###################################### 0.957 m/s
      50 deg ######################################## 1.003 m/s
      60 deg ############################################ 1.088 m/s
      70 deg ######################################## 1.003 m/s
      80 deg ###################################### 0.957 m/s
      90 deg ###################################### 0.942 m/s
     100 deg ###################################### 0.957 m/s
     110 deg ######################################## 1.003 m/s
     120 deg ############################################ 1.088 m/s
    turning on the spot: 7.25 rad/s
    slowest 0.942 m/s at 30 deg, fastest 1.088 m/s at 0 deg
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
