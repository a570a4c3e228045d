"""How much friction has a joint of my arm? A CSV file with time, joint angle and torque shows it.

The file is of a joint that swings slowly and quickly for a minute; weight and inertia are fitted as well.

    explains 100.00 % of the torque over 444 windows
    coulomb: 0.450 N m, 95 % from 0.448 to 0.451 (true 0.450), identified
    viscous: 0.301 N m s/rad, 95 % from 0.298 to 0.303 (true 0.300), identified
"""

import tempfile
from pathlib import Path

import numpy as np

from youbot_dynamics.identification.arm_friction import ArmFrictionModel, identify_arm_friction
from youbot_dynamics.identification.signals import ArmSignals

COULOMB, VISCOUS, INERTIA, WEIGHT = 0.45, 0.30, 0.08, 1.2  # of the arm that writes the file: N m, N m s/rad, kg m2, N m


def write_log(file: Path) -> None:
    """Log of a joint swung slowly and quickly, 100 readings a second, efforts with noise."""
    time = np.arange(0.0, 60.0, 0.01)
    phase = 0.6 * time + 6.0 * np.sin(0.1 * time)
    position = 0.9 * np.sin(phase)
    speed = np.gradient(position, time)
    torque = INERTIA * np.gradient(speed, time) + WEIGHT * np.sin(position)
    torque += COULOMB * np.sign(speed) + VISCOUS * speed + 0.02 * np.random.default_rng(3).normal(size=len(time))
    np.savetxt(file, np.column_stack([time, position, torque]), delimiter=",", header="time,position,torque")


with tempfile.TemporaryDirectory() as folder:
    log = Path(folder) / "my_arm.csv"
    write_log(log)
    time, position, torque = np.loadtxt(log, delimiter=",").T

found = identify_arm_friction([ArmSignals(time, position[:, None], torque[:, None])], ArmFrictionModel(("elbow",)))
joint = found["elbow"]
print(f"explains {100.0 * joint.explained:.2f} % of the torque over {joint.windows} windows")
for name, unit, true in (("coulomb", "N m", COULOMB), ("viscous", "N m s/rad", VISCOUS)):
    part = joint[name]
    low, high = part.interval
    print(f"{name}: {part.value:.3f} {unit}, 95 % from {low:.3f} to {high:.3f} (true {true:.3f}), {part.verdict}")
