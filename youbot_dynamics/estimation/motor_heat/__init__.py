"""Temperatures of the arm's motors from currents, voltages and the thermal network. Source: systems 1 to 6."""

from youbot_dynamics.estimation.motor_heat._heat import HeatBelief, HeatTuning, MotorHeat
from youbot_dynamics.estimation.motor_heat._temperatures import PERIOD, ArmTemperatures, MotorLimits

__all__ = ["ArmTemperatures", "HeatBelief", "HeatTuning", "MotorHeat", "MotorLimits", "PERIOD"]
