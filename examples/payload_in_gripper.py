"""How heavy is what my gripper holds? The torques of a swinging arm show its mass.

The youBot's arm holds 0.3 kg. Its driver reports positions and efforts 50 times a second; the filter knows the data
sheets of the empty arm only.

"""

from dataclasses import replace

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.estimation.replay import ArmLog, replay_arm
from youbot_dynamics.simulation.arm import ArmPlant

LOAD, SEED = 0.3, 1  # [kg]
robot = yd.load_robot()
empty, layout = yd.load_arm_truth(0), robot.arm.tree().layout
own, centre = layout.masses[-1], layout.first_moments[-1] / layout.masses[-1]  # of the last link
shift = LOAD / (own + LOAD) * (np.array(robot.arm.grip_point) - centre)  # [m] of its centre of mass by the load
moved = {f"centre_{axis}": (0.0,) * 4 + (float(by),) for axis, by in zip("xyz", shift, strict=True)}
loaded = replace(empty, link_mass=(1.0,) * 4 + (float((own + LOAD) / own),), **moved)

arm = ArmPlant(loaded, robot, SEED, position=robot.arm.excitation_centre)
times = np.arange(0.1, 16.5, 0.1)
ramp = (np.minimum(times, 1.0) ** 2 * (3.0 - 2.0 * np.minimum(times, 1.0)))[:, None]
phases = np.outer(times, [0.9, 1.1, 1.3, 1.6, 1.8])
swing = robot.arm.excitation_centre + 0.7 * np.array(robot.arm.excitation_reach) * ramp * np.sin(phases)
arm.command_trajectory(times, swing, np.gradient(swing, times, axis=0), np.zeros_like(swing))
readings = []
for k in range(1, 801):
    arm.advance(0.02 * k)
    readings.append(arm.read())
stamps = np.array([reading.stamp for reading in readings])
columns = (np.array([getattr(r, name)[:5] for r in readings]) for name in ("position", "velocity", "effort"))

found = replay_arm(ArmLog(robot.driver.arm_joints, stamps, stamps, *columns), robot).support
for second in (2, 4, 8, 12, 15):
    mass = found.payload[np.searchsorted(found.time, second)]
    print(f"after {second:2d} s: {'not known yet' if np.isnan(mass) else f'{1e3 * mass:.0f} g'}")
print(f"true: {1e3 * LOAD:.0f} g, found: {1e3 * found.payload[-1]:.0f} g")
