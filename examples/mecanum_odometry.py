"""How do I get wheel speeds from a twist, and the pose back from the wheels?

A mecanum base drives a square of a metre and turns once; its odometry integrates the angles of the wheels.

    fastest wheel 8.50 rad/s
    the four wheels fit one motion: True
    after 4.00 m and one turn: 0.000 mm and 0.000 mrad from the start
"""

import numpy as np

import youbot_dynamics as yd

PERIOD = 0.02  # [s]
base = yd.MecanumBase.rectangular(wheel_radius=0.0475, half_length=0.235, half_width=0.15)  # [m]

# Four sides of a metre while the base turns once: (n, 3) twists in the body frame.
heading = np.linspace(0.0, 2.0 * np.pi, 1001)[:-1]
side = np.repeat([[0.2, 0.0], [0.0, 0.2], [-0.2, 0.0], [0.0, -0.2]], 250, axis=0)  # [m/s] in the fixed frame
middle = heading + 0.5 * heading[1]
ahead = np.cos(middle) * side[:, 0] + np.sin(middle) * side[:, 1]
left = -np.sin(middle) * side[:, 0] + np.cos(middle) * side[:, 1]
twists = np.column_stack([ahead, left, np.full(1000, heading[1] / PERIOD)])

speeds = base.wheel_speeds(twists)  # (n, 4) [rad/s] FL FR RL RR, the whole path at once
angles = np.cumsum(speeds * PERIOD, axis=0)  # what encoders would read

pose = np.zeros(3)
for step in base.twist(np.diff(angles, axis=0, prepend=np.zeros((1, 4)))):
    pose = yd.integrate(pose, step, 1.0)

print(f"fastest wheel {np.abs(speeds).max():.2f} rad/s")
print(f"the four wheels fit one motion: {bool(np.abs(base.slip(speeds)).max() < 1e-9)}")
off, turned = 1e3 * np.hypot(*pose[:2]), 1e3 * abs(pose[2] - 2.0 * np.pi)
print(f"after 4.00 m and one turn: {off:.3f} mm and {turned:.3f} mrad from the start")
