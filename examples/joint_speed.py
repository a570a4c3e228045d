"""How fast does my joint really turn? Encoders give steps: compare differences, the driver's speed, and a filter.

The youBot's arm swings for 8 s; its driver reports 50 times a second. Errors are root mean squares of
joints 1 to 5 against the truth.

    differences   27.0    9.9   15.9   27.5   57.5 mrad/s
    driver        17.2    5.2    9.7   18.8   38.5 mrad/s
    filter         8.3    3.7    6.3    9.7   19.4 mrad/s
    error of the filter: 0.53 of that of the driver's speed
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.estimation.arm_ekf import ArmSensors
from youbot_dynamics.simulation.arm import ArmPlant

SEED = 2
robot = yd.load_robot()
arm = ArmPlant(yd.load_arm_truth(SEED), robot, SEED, position=robot.arm.excitation_centre)
times = np.arange(0.1, 8.5, 0.1)
rates = np.array([1.9, 1.3, 1.6, 2.1, 2.4])  # [rad/s] of the swing of each joint
reach = 0.6 * np.array(robot.arm.excitation_reach)
angles = np.outer(times, rates)
ramp = (np.minimum(times, 1.0) ** 2 * (3.0 - 2.0 * np.minimum(times, 1.0)))[:, None]
swing = robot.arm.excitation_centre + reach * ramp * np.sin(angles)
arm.command_trajectory(times, swing, np.gradient(swing, times, axis=0), np.zeros_like(swing))

readings, truth = [], []
for k in range(1, 401):
    arm.advance(0.02 * k)
    readings.append(arm.read())
    truth.append(arm.speed)
stamps = np.array([reading.stamp for reading in readings])
positions, speeds, efforts = (
    np.array([getattr(reading, name)[:5] for reading in readings]) for name in ("position", "velocity", "effort")
)
filtered = yd.ArmEkf(robot.arm.model(), ArmSensors.of_robot(robot)).replay(stamps, positions, efforts).speed
differences = np.diff(positions, axis=0, prepend=positions[:1]) / np.diff(stamps, prepend=stamps[0] - 0.02)[:, None]

later, means = stamps > 2.0, {}
for name, estimate in (("differences", differences), ("driver", speeds), ("filter", filtered)):
    errors = 1e3 * np.sqrt(np.mean((estimate - truth)[later] ** 2, axis=0))
    print(f"{name:11s} {' '.join(f'{error:6.1f}' for error in errors)} mrad/s")
    means[name] = np.mean(errors)
print(f"error of the filter: {means['filter'] / means['driver']:.2f} of that of the driver's speed")
