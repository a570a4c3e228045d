"""How heavy is what my gripper holds? The torques of a swinging arm show its mass.

The youBot's arm holds 0.3 kg. Its driver reports positions and efforts 50 times a second; the filter knows the data
sheets of the empty arm only. `arm_ekf` and `youbot replay` do the same.

    after  2 s: 293 +- 127 g (true: 300 g)
    after  4 s: 281 +- 122 g (true: 300 g)
    after  8 s: 269 +- 116 g (true: 300 g)
    after 16 s: 296 +- 115 g (true: 300 g)
"""

from dataclasses import replace

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.estimation.arm_ekf import ArmEkfTuning, ArmSensors
from youbot_dynamics.estimation.payload import Payload, PayloadTuning
from youbot_dynamics.simulation.arm import ArmPlant

LOAD, SEED = 0.3, 1  # [kg]
LEVEL = np.array([2.95, 1.13, -1.0, 1.79, 2.92])  # [rad] forearm level: its joints feel the load
robot = yd.load_robot()
empty, model = yd.load_arm_truth(0), robot.arm.model()
layout = model.tree.layout
own, centre = layout.masses[-1], layout.first_moments[-1] / layout.masses[-1]  # of the last link
shift = LOAD / (own + LOAD) * (np.array(robot.arm.grip_point) - centre)  # [m] of its centre of mass by the load
moved = {f"centre_{axis}": (0.0,) * 4 + (float(by),) for axis, by in zip("xyz", shift, strict=True)}
loaded = replace(empty, link_mass=(1.0,) * 4 + (float((own + LOAD) / own),), **moved)

arm = ArmPlant(loaded, robot, SEED, position=LEVEL)
times = np.arange(0.0, 16.5, 0.1)
begin = np.clip(times / 2.0, 0.0, 1.0)
fade = (begin**3 * (10.0 - 15.0 * begin + 6.0 * begin**2))[:, None]
swing = 0.6 * np.array(robot.arm.excitation_reach) * fade * np.sin(np.outer(times, [0.9, 1.1, 1.3, 1.6, 1.8]))
rates = np.gradient(swing, times, axis=0)
path = (LEVEL + swing, rates, np.gradient(rates, times, axis=0))
arm.command_trajectory(times[1:], *(rows[1:] for rows in path))

ekf, tuning = yd.ArmEkf(model, ArmSensors.of_robot(robot)), ArmEkfTuning()
payload = Payload(model, tuning, PayloadTuning().of_arm(robot.arm))
for k in range(1, 801):
    arm.advance(0.02 * k)
    reading = arm.read()
    ekf.predict(reading.stamp, reading.effort[:5])
    ekf.update(reading.position[:5])
    payload.add(ekf.state)
    if k in (100, 200, 400, 800):
        found = payload.state
        print(f"after {k // 50:2d} s: {1e3 * found.mass:.0f} +- {1e3 * found.mass_deviation:.0f} g", end="")
        print(" (true: 300 g)" if found.identifiable else f", {found.reason}")
