"""Electrical and thermal constants of a motor."""

from youbot_dynamics.identification.thermal._armature import Armature, identify_armature
from youbot_dynamics.identification.thermal._fit import Heat, HeatRun, identify_heat

__all__ = [
    "Armature",
    "Heat",
    "HeatRun",
    "identify_armature",
    "identify_heat",
]
