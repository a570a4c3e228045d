"""How far off may my odometry be after 10 m, and how much does a gyro help? The covariance says so in advance.

A straight drive at 0.4 m/s; bars are the standard deviation sideways. The growth for each metre is a fact of robot and
floor, `robot.base.drift`: `youbot identify` measures it.

     2 m  wheels ##                      36 mm
          gyro   #                        14 mm
     4 m  wheels ######                  95 mm
          gyro   #                        20 mm
     6 m  wheels ###########             171 mm
          gyro   ##                       26 mm
     8 m  wheels ################        263 mm
          gyro   ##                       32 mm
    10 m  wheels ####################### 367 mm
          gyro   ##                       39 mm
    after 10 m: 367 mm sideways and 63 mrad by the wheels, 39 mm and 5 mrad with a gyro
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.estimation.odometry import BaseEstimator

PERIOD, REST, SPEED, DISTANCE = 0.02, 2.0, 0.4, 10.0  # [s], [s], [m/s], [m]
robot = yd.load_robot()
turning = robot.base.geometry.mecanum().wheel_speeds([SPEED, 0.0, 0.0])  # [rad/s] of each wheel


def sideways(gyro: bool) -> dict[int, np.ndarray]:
    """Standard deviations (3,) of x, y and yaw [m, m, rad] after each two metres."""
    estimator, found = BaseEstimator(robot), {}
    for k in range(int((REST + DISTANCE / SPEED) / PERIOD) + 1):
        rolled = max(0.0, k * PERIOD - REST)
        if gyro:
            estimator.take_rate(k * PERIOD, 0.0)
        state = estimator.take_wheels(k * PERIOD, turning * rolled)
        metres = SPEED * rolled
        if state is not None and metres > 0.0 and abs(metres / 2.0 - round(metres / 2.0)) < 1e-6:
            found[round(metres)] = np.sqrt(np.diag(state.covariance))
    return found


wheels, with_gyro = sideways(gyro=False), sideways(gyro=True)
for metres in wheels:
    bars = (1e3 * wheels[metres][1], 1e3 * with_gyro[metres][1])
    print(f"{metres:2d} m  wheels {'#' * round(bars[0] / 16):<23} {bars[0]:.0f} mm")
    print(f"      gyro   {'#' * round(bars[1] / 16):<24} {bars[1]:.0f} mm")
last = [1e3 * found[10] for found in (wheels, with_gyro)]
print(f"after 10 m: {last[0][1]:.0f} mm sideways and {last[0][2]:.0f} mrad by the wheels, ", end="")
print(f"{last[1][1]:.0f} mm and {last[1][2]:.0f} mrad with a gyro")
