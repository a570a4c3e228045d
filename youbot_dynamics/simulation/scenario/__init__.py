"""Lock-step runs: a plant, the estimators and the controllers on simulated time."""

from youbot_dynamics.simulation.scenario._drive import (
    Drive,
    Gyro,
    drive,
    identified_mjcf,
    identified_model,
    identified_twin,
)

__all__ = ["Drive", "Gyro", "drive", "identified_mjcf", "identified_model", "identified_twin"]
