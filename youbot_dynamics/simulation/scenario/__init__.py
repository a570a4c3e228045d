"""Lock-step runs: a plant, the estimators and the controllers on simulated time."""

from youbot_dynamics.simulation.scenario._bag import write_bag
from youbot_dynamics.simulation.scenario._drive import Gyro, drive, identified_mjcf, identified_model

__all__ = ["Gyro", "drive", "identified_mjcf", "identified_model", "write_bag"]
