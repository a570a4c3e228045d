"""Is a wheel slipping, and how wrong is my odometry then? The four wheels of a base must fit one motion.

From 8 to 10 s the front left wheel loses a third of its turn to slip. Odometry reports it and widens its covariance.

    at 8 s: +0 mm sideways, -0 mrad off; odometry expects up to 72 mm, 57 mrad (2 deviations)
    at 11 s: -53 mm sideways, -59 mrad off; odometry expects up to 197 mm, 246 mrad (2 deviations)
    slip is reported 0.28 s after it began, until 2.2 s after its end
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.estimation.odometry import BaseEstimator
from youbot_dynamics.simulation.base import SlipEvent

SEED, START, END = 0, 8.0, 10.0  # [s]
robot = yd.load_robot()
twin = yd.Youbot(
    yd.load_truth(SEED), yd.load_arm_truth(SEED), robot, SEED, slips=[SlipEvent(0, share=0.33, start=START, end=END)]
)
time = np.linspace(0.0, 16.0, 321)
straight = yd.Trajectory(time, np.outer(0.3 * time, [1.0, 0.0, 0.0])).eased(2.0)
watch, alarms = BaseEstimator(robot), []


def look(message) -> None:
    """Give the wheels to an odometry of our own, and remember its alarms."""
    if message.channel == "base":
        wheels = np.array(robot.driver.position_sign) * message.report.position[:4]
        watch.take_wheels(message.report.stamp, wheels)
        if watch.odometry.slip.alarm:
            alarms.append(message.report.stamp)


run = yd.drive(straight, robot, twin, SEED, yd.TrackerSettings(feedback=False), listeners=[look])
for when in (START, END + 1.0):
    k = int(np.searchsorted(run.odometry_time, when))
    true = run.true_pose[np.searchsorted(run.reading_time, run.odometry_time[k])]
    off = run.odometry[k].pose - true
    deviation = np.sqrt(np.diag(run.odometry[k].covariance))
    print(f"at {when:.0f} s: {1e3 * off[1]:+.0f} mm sideways, {1e3 * off[2]:+.0f} mrad off; ", end="")
    print(f"odometry expects up to {2e3 * deviation[1]:.0f} mm, {2e3 * deviation[2]:.0f} mrad (2 deviations)")
print(f"slip is reported {alarms[0] - START:.2f} s after it began, until {alarms[-1] - END:.1f} s after its end")
