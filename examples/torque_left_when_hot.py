"""How long can my arm hold this load, and what torque has it left when it is hot?

The youBot's arm holds 0.5 kg stretched out forward. The motors have no sensors of temperature: it is estimated from the
current, and assumed two standard deviations hotter.

    joint 2: 10.27 N m, 1.96 A, limit of 125 degC never reached; after 20 min 68 +- 13 degC
    joint 3: 4.93 N m, 1.47 A, limit of 125 degC never reached; after 20 min 47 +- 8 degC
    joint 4: 1.78 N m, 0.49 A, limit of 125 degC never reached; after 20 min 36 +- 6 degC
    torque that is left for a minute: joint 2 81 %, joint 3 92 % of a cold motor's
"""

import numpy as np

import youbot_dynamics as yd

STRETCHED = [2.95, 2.65, -2.55, 1.79, 2.92]  # [rad]
LOAD = 0.5  # [kg]
robot = yd.load_robot()
tree = robot.arm.tree()
weight = [*(tree.poses(STRETCHED)[-1][:3, :3].T @ [0.0, 0.0, 9.81 * LOAD]), 0.0, 0.0, 0.0]  # carries the load
torques = tree.gravity_forces(STRETCHED) + tree.propagate_force(STRETCHED, tree.names[-1], weight)  # (5,) [N m]

left = {}
for k in (1, 2, 3):
    joint, motor = robot.arm.joints[k].motor, robot.arm.motors()[k]
    current = abs(torques[k]) / (joint.torque_constant * joint.gear_ratio)
    heat, limit = yd.MotorHeat(motor, stamp=0.0), joint.winding_temperature_limit
    lasts = heat.seconds_to(limit, current**2, deviations=2.0)
    cold = heat.torque_available(limit, 60.0, joint.current_limit, deviations=2.0)
    for minute in range(1, 21):
        heat.predict(60.0 * minute, current**2)
    hot = heat.torque_available(limit, 60.0, joint.current_limit, deviations=2.0)
    left[k + 1] = hot / cold
    print(f"joint {k + 1}: {abs(torques[k]):.2f} N m, {current:.2f} A, ", end="")
    print(
        f"limit of {limit:.0f} degC {'never reached' if np.isinf(lasts) else f'after {lasts / 60.0:.0f} min'}; ", end=""
    )
    print(f"after 20 min {heat.state.winding:.0f} +- {heat.state.winding_deviation:.0f} degC")
print(
    f"torque that is left for a minute: joint 2 {100 * left[2]:.0f} %, joint 3 {100 * left[3]:.0f} % of a cold motor's"
)
