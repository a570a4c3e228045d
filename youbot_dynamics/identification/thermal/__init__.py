"""Electrical and thermal constants of a motor."""

from youbot_dynamics.identification.thermal._armature import Armature, identify_armature
from youbot_dynamics.identification.thermal._fit import HEAT_CONSTANTS, Heat, identify_heat
from youbot_dynamics.identification.thermal._run import HeatRun

__all__ = [
    "Armature",
    "HEAT_CONSTANTS",
    "Heat",
    "HeatRun",
    "identify_armature",
    "identify_heat",
]
