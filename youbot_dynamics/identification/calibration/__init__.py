"""Geometry of the base from wheel angles and measured poses: radii, size, lateral factor, roller phases."""

from youbot_dynamics.identification.calibration._fit import Calibration, calibrate
from youbot_dynamics.identification.calibration._poses import CalibrationSignals

__all__ = [
    "Calibration",
    "CalibrationSignals",
    "calibrate",
]
