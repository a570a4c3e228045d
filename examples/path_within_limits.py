"""Can my base follow this path in this time? The wheels say so, and how much slower it must be.

A Ridgeback drives through four waypoints, at rest in each, within 12 s. Bars are the speed of its fastest wheel.

     0.5 s   4.5 rad/s #####
     1.5 s   9.3 rad/s #########
     2.5 s   9.2 rad/s #########
     3.5 s   4.1 rad/s ####
     4.5 s   5.8 rad/s ######
     5.5 s  14.0 rad/s ##############
     6.5 s  13.7 rad/s ##############
     7.5 s   5.2 rad/s #####
     8.5 s   7.0 rad/s #######
     9.5 s  17.2 rad/s #################
    10.5 s  16.8 rad/s #################
    11.5 s   6.3 rad/s ######
    fastest wheel 18.7 rad/s, its limit 17.1 rad/s
    refused: a wheel speed of 18.7 rad/s, at most 17.13 rad/s
    1.10 times slower it fits: 13.2 s instead of 12 s
"""

from math import pi

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.control.trajectory import Program
from youbot_dynamics.errors import ProgramError
from youbot_dynamics.resources import robot_path

base = yd.load_robot(robot_file=robot_path("ridgeback")).base
times = [0.0, 4.0, 8.0, 12.0]  # [s]
waypoints = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 1.5, 0.5 * pi], [0.0, 1.5, pi]]  # [m, m, rad]
path = yd.Trajectory(times, waypoints, np.zeros((4, 3)))  # twists of 0: at rest in each point

DT = 0.05  # [s]
starts = np.arange(0.0, path.duration - 0.5 * DT, DT)
program = Program("waypoints", np.array([path.mean_twist(t, t + DT) for t in starts]), DT)
fastest = np.abs(base.geometry.mecanum().wheel_speeds(program.twists)).max(axis=1)  # [rad/s]
for t in np.arange(0.5, 12.0, 1.0):
    speed = fastest[round(t / DT)]
    print(f"{t:4.1f} s {speed:5.1f} rad/s {'#' * round(speed)}")
print(f"fastest wheel {fastest.max():.1f} rad/s, its limit {base.limits.wheel_speed:.1f} rad/s")
try:
    program.check(base)
except ProgramError as problem:
    print(f"refused: {problem.got}, {problem.expected}")
scale = program.fitting_time_scale(base)
program.scaled(scale).check(base)
print(f"{scale:.2f} times slower it fits: {scale * path.duration:.1f} s instead of {path.duration:.0f} s")
