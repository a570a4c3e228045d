"""What do the casters of my cart do when it starts backwards? They swing round, at hardly any loss.

The cart has two driven wheels and two casters, and is pushed back by its motors for 3 s.

    after 3 s: -1.92 m along x at -1.24 m/s
    work of the motors 20.52 J, kinetic energy gained 20.49 J, lost in slip 0.03 J
    smallest force under a wheel 45.1 N of 245.2 N in all
    casters stand at 180.0 and -180.0 degrees
"""

import numpy as np

import youbot_dynamics as yd
from youbot_dynamics.source_systems.wheeled_base import simulate

wheels = [
    yd.Wheel(name, "fixed", (-0.15, y), radius=0.075, spin_inertia=0.004, friction_coefficient=0.8)
    for name, y in (("left", 0.2), ("right", -0.2))
]
wheels += [
    yd.Wheel(
        name, "caster", (0.25, y), radius=0.05, spin_inertia=5e-4, friction_coefficient=0.8, steering_inertia=0.002,
        offset=0.03,
    )
    for name, y in (("front left", 0.15), ("front right", -0.15))
]  # fmt: skip
cart = yd.WheeledBase(tuple(wheels), mass=25.0, yaw_inertia=0.9, centre_of_mass=[0.0, 0.0, 0.2])

# Casters as they stand after driving forward, a little off, and torques that push the cart back.
start = cart.rolling_state([-0.05, 0.0, 0.0], steering_angles=[0.0, 0.0, 0.05, -0.05])
steps = 3000  # of 1 ms
torques = np.zeros((steps, 4))
torques[:, :2] = -0.4  # [N m]
run = simulate(cart, start, torques, dt=1e-3)

work = float(np.sum(torques * np.diff(run.wheel_angles, axis=0)))
gained = cart.energy(run.state(-1)) - cart.energy(start)
swung = np.degrees(run.steering_angles[-1, 2:])
print(f"after 3 s: {run.poses[-1, 0]:.2f} m along x at {run.twists[-1, 0]:.2f} m/s")
print(f"work of the motors {work:.2f} J, kinetic energy gained {gained:.2f} J, lost in slip {work - gained:.2f} J")
print(f"smallest force under a wheel {run.smallest_normal_force:.1f} N of {25.0 * 9.81:.1f} N in all")
print(f"casters stand at {swung[0]:.1f} and {swung[1]:.1f} degrees")
