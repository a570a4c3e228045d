"""Geometry of the base from wheel angles and measured poses, or a tape: radii, size, lateral factor, roller phases."""

from youbot_dynamics.identification.calibration._drift import Drift
from youbot_dynamics.identification.calibration._fit import Calibration, calibrate
from youbot_dynamics.identification.calibration._held import Held, held
from youbot_dynamics.identification.calibration._poses import CalibrationSignals
from youbot_dynamics.identification.calibration._tape import (
    TapeLeg,
    calibrate_by_tape,
    recorded_legs,
    standstill,
    tape_findings,
    tape_program,
)
from youbot_dynamics.identification.calibration._tape_reading import read_distance, read_turn
from youbot_dynamics.identification.calibration._whole_way import WholeWay, calibrate_whole_way, expected_drift

__all__ = [
    "Calibration",
    "CalibrationSignals",
    "Drift",
    "Held",
    "TapeLeg",
    "WholeWay",
    "calibrate",
    "calibrate_by_tape",
    "calibrate_whole_way",
    "expected_drift",
    "held",
    "read_distance",
    "read_turn",
    "recorded_legs",
    "standstill",
    "tape_findings",
    "tape_program",
]
